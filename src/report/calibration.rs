//! The results of a calibration on one screen, and the corresponding row of Oracle's view.

use crate::analyse::{AtLoad, Calibration, CurveShape, Estimate, Limits, Peak, PointSummary, quantity};
use crate::model::{Bytes, Nanos, Request, Severity, Step, Target};
use crate::record::journal::Run;
use std::fmt::Write;

/// Width of the names on the left.
pub(super) const NAME_WIDTH: usize = 22;
/// Width of the row names in the table of latencies.
const ROW_WIDTH: usize = 21;

/// The heading, and the figures with their intervals.
pub(super) fn parts(run: &Run, found: &Calibration) -> (String, String) {
    let sizes = found.maximum.zip(found.large).map_or_else(String::new, |(small, large)| {
        format!("{} and {} reads", Bytes(small.io_bytes.into()), Bytes(large.io_bytes.into()))
    });
    let mut figures = limits(found);
    figures.push_str(&knee_lines(&found.curve, "IOPS"));
    figures.push_str(&sustained(found));
    figures.push_str(&latencies(found));
    figures.push_str(open_ends(&figures));
    (heading(run, &sizes, found.points.len()), figures)
}

/// What was measured and how, in two lines; `workload` describes the load.
pub(super) fn heading(run: &Run, workload: &str, points: usize) -> String {
    let header = &run.header;
    let size = match header.target {
        Target::Scratch { .. } => String::new(),
        _ => format!(", {}", header.facts.usable),
    };
    let how = if header.engine.buffered { "through the page cache" } else { "direct" };
    format!(
        "{}{size}\n{workload}, {how}, by {}; {points} point{}, Rigel {}\n",
        header.facts.name,
        header.engine.name,
        if points == 1 { "" } else { "s" },
        header.version
    )
}

/// A line of the screen: a name, a figure, its precision, and its description.
fn line(name: &str, figure: &str, known: &str, of: &str) -> String {
    format!("{name:<NAME_WIDTH$} {figure:<12} {known:<9} {of}").trim_end().to_string() + "\n"
}

/// The most important figures.
fn limits(found: &Calibration) -> String {
    let mut text = String::new();
    let mut rate = |name: &str, at: Option<AtLoad>, of: &str| {
        if let Some(at) = at {
            text.push_str(&line(name, &format!("{:.0}", at.iops.value), &quantity::precision(at.iops), of));
        }
    };
    let size = |at: Option<AtLoad>| at.map_or_else(String::new, |at| Bytes(at.io_bytes.into()).to_string());
    let depth = |at: Option<AtLoad>| at.map_or(0, |at| at.depth);
    let random = |at| format!("random, {}, at depth {}", size(at), depth(at));
    rate("max IOPS", found.maximum, &random(found.maximum));
    rate("max write IOPS", found.writes, &random(found.writes));
    let mut throughput = |name: &str, at: Option<AtLoad>, of: &str| {
        if let Some(at) = at {
            text.push_str(&line(
                name,
                &format!("{:.0} MB/s", at.mb_per_s.value),
                &quantity::precision(at.mb_per_s),
                of,
            ));
        }
    };
    throughput("max throughput", found.large, &random(found.large));
    let stream = format!("one sequential stream of {}, one read after the other", size(found.stream));
    throughput("one process", found.stream, &stream);
    text
}

fn latencies(found: &Calibration) -> String {
    let row = |name: &str, at: AtLoad, of: &str| {
        let [p50, p99, p999] = [at.p50_us, at.p99_us, at.p999_us].map(latency);
        let row = format!("  {name:<ROW_WIDTH$} {p50:<24} {p99:<24} {p999:<24} {of}");
        row.trim_end().to_string() + "\n"
    };
    let rows = [
        ("low load", found.low_load),
        ("the knee", found.at_knee),
        ("large, low load", found.large_low_load),
        ("writes, low load", found.write_low_load),
        ("writes, most", found.writes),
    ];
    let mut text = format!("\nlatency, 95 % interval  {:<24} {:<24} {}\n", "p50", "p99", "p99.9");
    for (name, at) in rows.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        text.push_str(&row(name, at, &format!("depth {}", at.depth)));
    }
    for log in &found.log_writes {
        let name = format!("log, {}", Bytes(log.bytes.into()));
        text.push_str(&row(&name, log.at, &format!("{:.0}/s {}", log.at.iops.value, quantity::precision(log.at.iops))));
    }
    text
}

/// The highest rate that was offered and served within the bound.
fn sustained(found: &Calibration) -> String {
    let sustained = &found.sustained;
    let not = sustained.broken_rate.map_or_else(String::new, |rate| format!("; {rate}/s was not"));
    let name = format!("within {}", found.bound);
    let mut text = if let (Some(at), Some(rate)) = (sustained.kept, sustained.kept_rate) {
        let served = format!("offered at random times and served: p99 {}{not}", latency(at.p99_us));
        line(&name, &format!("{rate}/s"), "", &served)
    } else {
        let mut rates = found.points.iter().filter(|point| point.step() == Step::Rate);
        let fails = |point: &PointSummary| point.classes.iter().any(|class| !class.failed.is_empty());
        let why = match sustained.broken_rate {
            None => "no offered rate was measured".to_string(),
            Some(_) if rates.any(fails) => "I/Os failed, whatever was offered".to_string(),
            Some(rate) => format!("no offered rate kept it, down to {rate}/s"),
        };
        line(&name, "?", "", &why)
    };
    if let Some(closed) = sustained.closed {
        let of = format!("with a constant {} outstanding", closed.depth);
        text.push_str(&line("", &format!("{:.0} IOPS", closed.iops.value), &quantity::precision(closed.iops), &of));
    }
    text
}

/// The knee, and two theories about it.
pub(super) struct KneeFacts {
    /// `depth 8`.
    pub(super) load: String,
    /// Whether the knee was reached.
    pub(super) reached: &'static str,
    /// The results of the asymptotes and the Universal Scalability Law, one sentence each.
    pub(super) theories: Vec<String>,
}

/// The knee as lines of the screen.
pub(super) fn knee_lines(curve: &CurveShape, rate: &str) -> String {
    let Some(facts) = knee(curve, rate) else { return String::new() };
    let theories = facts.theories.iter().map(|theory| line("", "", "", theory));
    line("knee", &facts.load, "", facts.reached) + &theories.collect::<String>()
}

/// The knee of a curve whose throughput unit is `rate`.
pub(super) fn knee(curve: &CurveShape, rate: &str) -> Option<KneeFacts> {
    let knee = curve.knee?;
    let reached = if knee.bounded_above {
        "beyond it latency grows and throughput does not"
    } else {
        "not reached: throughput still rose at the greatest depth"
    };
    let mut theories = Vec::new();
    if let Some(asymptotes) = knee.asymptotes {
        theories.push(format!("the asymptotes of throughput cross at depth {asymptotes:.1}"));
    }
    if let Some(law) = curve.usl.filter(|law| law.fits) {
        // A peak far beyond the measured loads is not a reliable prediction.
        let seen = |peak: &Peak| peak.load <= 2.0 * knee.maximum_load;
        let peak = law.peak.filter(seen).map_or_else(
            || "no peak near".to_string(),
            |peak| format!("a peak of {:.0} {rate} at depth {:.0}", peak.throughput, peak.load),
        );
        theories.push(format!(
            "the Universal Scalability Law fits within {:.0} %: sigma {:.3}, kappa {}, {peak}",
            law.greatest_residual * 100.0,
            law.sigma,
            if law.kappa > 0.0 { format!("{:.1e}", law.kappa) } else { "0".into() }
        ));
    }
    Some(KneeFacts { load: format!("depth {}", knee.load), reached, theories })
}

/// Right-aligns text to `width` columns, which may exceed the maximum of a format string.
fn right(text: &str, width: usize) -> String {
    " ".repeat(width - text.len()) + text
}

/// Explains missing upper limits in the figures above it; empty if none is missing.
pub(super) fn open_ends(text: &str) -> &'static str {
    if text.contains(", ?]") {
        "[a, ?]: at least a; too few independent operations took longer to tell the upper end\n"
    } else {
        ""
    }
}

/// `468us [455, 479]`: the interval in the unit of the figure; `468us [455, ?]` if its upper limit is unknown, and
/// `468us [?]` if both are.
#[must_use]
pub fn latency(estimate: Estimate) -> String {
    let figure = Nanos::from_micros_f64(estimate.value).to_string();
    let Some(Limits { low, high }) = estimate.interval else { return format!("{figure} [?]") };
    let unit = figure.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let one = match unit {
        "ns" => 1e-3,
        "us" => 1.0,
        "ms" => 1e3,
        _ => 1e6,
    };
    let high = high.map_or_else(|| "?".into(), |high| digits(high / one));
    format!("{figure} [{}, {high}]", digits(low / one))
}

/// Formats a value with three significant digits, and all digits before the point.
fn digits(value: f64) -> String {
    let decimals = match value {
        small if small < 0.9995 => 3,
        small if small < 9.995 => 2,
        small if small < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// The end of a point that began at `started`, in the same format.
fn after(started: &str, point: &PointSummary) -> String {
    let moved = || {
        let (time, offset) = started.split_at_checked(19)?;
        let time: jiff::civil::DateTime = time.parse().ok()?;
        let took = jiff::SignedDuration::try_from_secs_f64(point.warm_up_s + point.measured_s).ok()?;
        Some(format!("{}{offset}", time.checked_add(took).ok()?.strftime("%Y-%m-%dT%H:%M:%S")))
    };
    moved().unwrap_or_else(|| started.to_string())
}

/// The row of `DBA_RSRC_IO_CALIBRATE` that corresponds to this run: whole numbers, with the latency in milliseconds at
/// the rate of `MAX_IOPS`, as in Oracle.
#[must_use]
pub fn oracle_row(run: &Run, found: &Calibration) -> String {
    let whole = |figure: Option<f64>| figure.map_or_else(|| "-".to_string(), |figure| format!("{figure:.0}"));
    let start = &run.header.started;
    let disks = match run.header.request() {
        Request::Calibrate(request) => request.num_disks.to_string(),
        _ => "-".into(),
    };
    let end = found.points.last().map_or_else(|| start.clone(), |point| after(&point.started, point));
    let columns = [
        ("START_TIME", start.clone()),
        ("END_TIME", end),
        ("MAX_IOPS", whole(found.maximum.map(|at| at.iops.value))),
        ("MAX_MBPS", whole(found.large.map(|at| at.mb_per_s.value))),
        ("MAX_PMBPS", whole(found.stream.map(|at| at.mb_per_s.value))),
        ("LATENCY", whole(found.maximum.map(|at| at.mean_us.value / 1e3))),
        ("NUM_PHYSICAL_DISKS", disks),
    ];
    let mut text = String::new();
    for part in [0, 1, 2] {
        let cells = columns.iter().map(|(name, value)| {
            let width = name.len().max(value.len());
            match part {
                0 => right(name, width),
                1 => "-".repeat(width),
                _ => right(value, width),
            }
        });
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(" "));
    }
    let of_points = found.points.iter().flat_map(|point| &point.findings);
    let mut all = run.header.findings.iter().chain(&found.findings).chain(of_points);
    if all.any(|finding| finding.severity != Severity::Note) {
        text.push_str("-- there are warnings about these figures: rigel report shows them\n");
    }
    text
}
