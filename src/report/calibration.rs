//! The answer of a calibration on one screen, and the row that Oracle keeps of one.

use super::table;
use crate::analyse::{AtLoad, Calibration, CurveFacts, Estimate, Interval, calibration};
use crate::model::{Bytes, Nanos, Severity, Target};
use crate::plan::Search;
use crate::record::journal::Run;
use std::fmt::Write;

/// Columns of the names at the left.
pub(super) const NAME_WIDTH: usize = 22;

/// What a run found; none if it was made by another verb.
#[must_use]
pub fn of(run: &Run) -> Option<Calibration> {
    let Search::Calibrate(request) = Search::of(&run.header.plan)? else { return None };
    Some(calibration(&run.latest(), request.bound, request.precision))
}

/// The screen: the figures with their intervals, then what is doubtful.
#[must_use]
pub fn text(run: &Run, found: &Calibration) -> String {
    let sizes = found.maximum.zip(found.large).map_or_else(String::new, |(small, large)| {
        format!("{} and {} reads", Bytes(small.io_bytes.into()), Bytes(large.io_bytes.into()))
    });
    let mut text = heading(run, &sizes, found.points.len());
    text.push_str(&limits(found));
    text.push_str(&latencies(found));
    text.push_str(&sustained(found));
    text.push_str(&writes(found));
    text.push_str(&knee(&found.curve));
    let of_points = found.points.iter().flat_map(|point| &point.findings);
    text.push_str(&table::findings(run.header.findings.iter().chain(&found.findings).chain(of_points)));
    if run.cut {
        text.push_str("\nThe journal's last line was cut off and is left out: the run was killed while writing it.\n");
    }
    text
}

/// What was measured and how, in two lines; `workload` says what was done to it.
pub(super) fn heading(run: &Run, workload: &str, points: usize) -> String {
    let header = &run.header;
    let size = match header.target {
        Target::Scratch { .. } => String::new(),
        _ => format!(", {}", header.facts.usable),
    };
    let how = if header.engine.buffered { "through the page cache" } else { "direct" };
    format!(
        "{}{size}\n{workload}, {how}, by {}; {points} point{}, Rigel {}\n\n",
        header.facts.name,
        header.engine.name,
        if points == 1 { "" } else { "s" },
        header.version
    )
}

fn limits(found: &Calibration) -> String {
    let mut text = String::new();
    let mut line = |name: &str, figure: Option<String>, unit: &str, at: Option<String>| {
        if let (Some(figure), Some(at)) = (figure, at) {
            let _ = writeln!(text, "{name:<NAME_WIDTH$} {figure:>10} {unit:<4} {at}");
        }
    };
    let depth = |at: AtLoad| format!("at depth {}", at.depth);
    let iops = |at: AtLoad| format!("{:.0}", at.iops.value);
    let mb = |at: AtLoad| format!("{:.0}", at.mb_per_s.value);
    let known = |estimate: Estimate, at: String| format!("{:<9} {at}", plus_minus(estimate));
    line("max IOPS", found.maximum.map(iops), "", found.maximum.map(|at| known(at.iops, depth(at))));
    line("max throughput", found.large.map(mb), "MB/s", found.large.map(|at| known(at.mb_per_s, depth(at))));
    let stream = |at: AtLoad| known(at.mb_per_s, "one sequential stream, one read after the other".into());
    line("one process", found.stream.map(mb), "MB/s", found.stream.map(stream));
    text
}

fn latencies(found: &Calibration) -> String {
    let rows = [
        ("latency at low load", found.low_load),
        ("latency at the knee", found.at_knee),
        ("large read, low load", found.large_low_load),
        ("write, low load", found.write_low_load),
        ("write, greatest load", found.writes),
    ];
    let mut text = format!("\n{:<NAME_WIDTH$} {:<22} {:<22} {:<22}\n", "", "p50", "p99", "p99.9");
    for (name, at) in rows.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        let [p50, p99, p999] = [at.p50_us, at.p99_us, at.p999_us].map(latency);
        let _ = writeln!(text, "{name:<NAME_WIDTH$} {p50:<22} {p99:<22} {p999:<22} depth {}", at.depth);
    }
    text
}

fn sustained(found: &Calibration) -> String {
    let sustained = &found.sustained;
    let mut text = format!("\n{:<NAME_WIDTH$} ", format!("within {}", found.bound));
    match (sustained.kept, sustained.kept_rate) {
        (Some(at), Some(rate)) => {
            let _ =
                write!(text, "{rate}/s offered at random times were all served in time, p99 {}", latency(at.p99_us));
        }
        _ => text.push_str("no offered rate was served in time"),
    }
    if let Some(rate) = sustained.broken_rate {
        let _ = write!(text, "; {rate}/s were not");
    }
    text.push('\n');
    if let Some(closed) = sustained.closed {
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} with a constant number outstanding: {:.0} IOPS {} at depth {}",
            "",
            closed.iops.value,
            plus_minus(closed.iops),
            closed.depth
        );
    }
    text
}

fn writes(found: &Calibration) -> String {
    let mut text = String::new();
    if let Some(at) = found.writes {
        let _ = writeln!(
            text,
            "\n{:<NAME_WIDTH$} {:>10.0} IOPS {} at depth {}",
            "max random writes",
            at.iops.value,
            plus_minus(at.iops),
            at.depth
        );
    }
    for log in &found.log_writes {
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} {:>10.0} /s   {} p50 {}, p99 {}",
            format!("log writes of {}", Bytes(log.bytes.into())),
            log.at.iops.value,
            plus_minus(log.at.iops),
            latency(log.at.p50_us),
            latency(log.at.p99_us)
        );
    }
    text
}

/// The knee of a closed loop's curve, and what else its shape says; empty if it has none.
pub(super) fn knee(curve: &CurveFacts) -> String {
    let Some(knee) = curve.knee else { return String::new() };
    let mut text =
        format!("\n{:<NAME_WIDTH$} depth {}: beyond it latency grows and throughput does not", "knee", knee.load);
    if !knee.bounded_above {
        text.push_str(" (none was reached: throughput still rose at the greatest depth)");
    }
    text.push('\n');
    if let Some(asymptotes) = knee.asymptotes {
        let _ = writeln!(text, "{:<NAME_WIDTH$} the asymptotes of throughput cross at depth {asymptotes:.1}", "");
    }
    if let Some(law) = curve.usl.filter(|law| law.fits) {
        let peak = law.peak.map_or_else(
            || "no peak".to_string(),
            |peak| format!("a peak of {:.0} IOPS at depth {:.0}", peak.throughput, peak.load),
        );
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} the Universal Scalability Law fits within {:.0} %: contention {:.3}, coherency {:.2e}, {peak}",
            "",
            law.greatest_residual * 100.0,
            law.sigma,
            law.kappa
        );
    }
    text
}

/// `± 1.2 %`, or that it is not known.
#[must_use]
pub fn plus_minus(estimate: Estimate) -> String {
    match estimate.precision() {
        Some(share) if share.is_finite() => format!("± {:.1} %", share * 100.0),
        _ => "± ?".into(),
    }
}

/// `52.1us [51.8, 52.3]`, the interval where it is known.
#[must_use]
pub fn latency(estimate: Estimate) -> String {
    let time = |us: f64| Nanos::from_secs_f64(us / 1e6);
    match estimate.interval {
        None => time(estimate.value).to_string(),
        Some(Interval { low, high }) => format!("{} [{}, {}]", time(estimate.value), time(low), time(high)),
    }
}

/// The row of `DBA_RSRC_IO_CALIBRATE` that this run would leave: whole numbers, the latency in milliseconds, at the
/// rate of `MAX_IOPS`, as Oracle has it.
#[must_use]
pub fn oracle_row(run: &Run, found: &Calibration) -> String {
    let whole = |figure: Option<f64>| figure.map_or_else(|| "-".to_string(), |figure| format!("{figure:.0}"));
    let start = &run.header.started;
    let end = found.points.last().map_or(start.as_str(), |point| point.started.as_str());
    let columns = [
        ("START_TIME", start.clone()),
        ("END_TIME", end.to_string()),
        ("MAX_IOPS", whole(found.maximum.map(|at| at.iops.value))),
        ("MAX_MBPS", whole(found.large.map(|at| at.mb_per_s.value))),
        ("MAX_PMBPS", whole(found.stream.map(|at| at.mb_per_s.value))),
        ("LATENCY", whole(found.maximum.map(|at| at.mean_us.value / 1e3))),
        ("NUM_PHYSICAL_DISKS", run.header.plan["calibrate"]["num_disks"].to_string()),
    ];
    let mut text = String::new();
    for part in [0, 1, 2] {
        let cells = columns.iter().map(|(name, value)| {
            let width = name.len().max(value.len());
            match part {
                0 => format!("{name:>width$}"),
                1 => "-".repeat(width),
                _ => format!("{value:>width$}"),
            }
        });
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(" "));
    }
    if found.findings.iter().any(|finding| finding.severity != Severity::Note) {
        text.push_str("-- there are doubts about these figures: rigel report tells them\n");
    }
    text
}
