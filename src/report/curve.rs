//! A latency-throughput curve as text: one line per point, a chart, and the facts about its shape.

use super::calibration::{self, NAME_WIDTH};
use super::chart::{self, Mark, Series};
use crate::analyse::{ClassSummary, CurveResult, Estimate, LatencySummary, PointSummary, quantity};
use crate::model::{Arrivals, Bytes, CurveRequest, Loads, Nanos, Ratio, Request, Step};
use crate::record::End;
use crate::record::journal::Run;
use std::fmt::Write;

fn request(run: &Run) -> Option<&CurveRequest> {
    match run.header.request() {
        Request::Curve(request) | Request::Sql(request) => Some(request),
        _ => None,
    }
}

/// The heading; and tables, chart and facts of the curve. Empty if another verb made the run.
pub(super) fn parts(run: &Run, found: &CurveResult) -> (String, String) {
    let Some(request) = request(run) else { return Default::default() };
    let mut text = String::new();
    let (open, closed) = by_loop(found);
    if !closed.is_empty() {
        if matches!(request.loads, Loads::Percents(_)) {
            text.push_str("closed loop, to find the maximum\n");
        }
        text.push_str(&closed_table(&closed, found.naming().rate));
        text.push_str(&beside(&closed, "depth"));
        text.push('\n');
    }
    if !open.is_empty() {
        text.push_str(&open_heading(request));
        text.push_str(&open_table(&open, found, request));
        text.push_str(&beside(&open, "rate/s"));
        text.push_str(&scheduling_delay(found));
        text.push('\n');
    }
    text.push_str(&shape(found));
    text.push_str(calibration::open_ends(&text));
    text.push_str(&super::sql::beside_curve(&found.points));
    (calibration::heading(run, &workload(request), found.points.len()), text)
}

/// The points of the open loop, and those of the closed loop.
fn by_loop(found: &CurveResult) -> (Vec<&PointSummary>, Vec<&PointSummary>) {
    found.points.iter().partition(|point| point.step() == Step::Rate)
}

/// The chart, and the facts about all points together.
pub(super) fn shape(found: &CurveResult) -> String {
    let (open, closed) = by_loop(found);
    drawn(if open.is_empty() { &closed } else { &open }, found) + &facts(found)
}

/// The workload of a run, in words; empty if another verb made it.
pub(super) fn workload_of(run: &Run) -> String {
    request(run).map_or_else(String::new, workload)
}

/// `8 KiB I/O, 70 % reads and 30 % durable writes, zipf:0.99, beside large reads of 1 MiB, 2 outstanding`.
fn workload(request: &CurveRequest) -> String {
    if let Some(terms) = &request.sql {
        return super::sql::work_line(&terms.work);
    }
    let writes = if request.mix.durable { "durable writes" } else { "writes" };
    let percent = |share: f64| format!("{} %", (share * 1e4).round() / 100.0);
    let share = request.mix.writes;
    let kinds = match share {
        Ratio::ZERO => "reads".to_string(),
        Ratio::ONE => writes.to_string(),
        _ => format!("I/O, {} reads and {} {writes}", percent(1.0 - share.get()), percent(share.get())),
    };
    let mut text = format!("{} {kinds}, {}", Bytes(request.length.into()), request.pattern);
    if let Some(background) = request.background {
        let _ = write!(
            text,
            ", beside large reads of {}, {} outstanding",
            Bytes(background.length.into()),
            background.depth
        );
    }
    text
}

fn closed_table(points: &[&PointSummary], rate: &str) -> String {
    let mut text = format!(
        "{:>6} {:>8} {:<8} {:>8} {:>7} {:>7}  {:<20} {:>7} {:>7}  steady\n",
        "depth", rate, "", "MiB/s", "mean", "p50", "p99 [95 % interval]", "p99.9", "max"
    );
    for (point, class) in with_class(points) {
        let [mean, p50, p999, max] = times(class.latency, |l| [l.mean_us, l.p50_us, l.p999_us, l.max_us]);
        let line = format!(
            "{:>6} {:>8.0} {:<8} {:>8.1} {mean:>7} {p50:>7}  {:<20} {p999:>7} {max:>7}  {:<6}  {}",
            point.coordinates.outstanding(),
            class.iops,
            quantity::precision(class.rate()),
            class.mib_per_s,
            p99(class),
            steady(point, class),
            mark(class)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Explains the columns of an open loop.
fn open_heading(request: &CurveRequest) -> String {
    let spacing = match request.arrivals {
        Arrivals::Poisson => "Poisson",
        Arrivals::Uniform => "uniform",
    };
    format!(
        "open loop, {spacing} arrivals, {} in flight at most; response counts from the due time, service from the \
         issue\n",
        request.in_flight_max
    )
}

fn open_table(points: &[&PointSummary], found: &CurveResult, request: &CurveRequest) -> String {
    let maximum = found.maximum.filter(|_| matches!(request.loads, Loads::Percents(_))).map(|at| at.iops.value);
    let share = |rate: u64| maximum.map_or_else(String::new, |maximum| percent(rate as f64 / maximum * 100.0));
    let mut text = format!(
        "{:>7} {:>5} {:>7} {:<8} {:>7} {:>6} {:>6}  {:<20} {:>6} {:>6} {:>15}  steady\n",
        "rate/s",
        maximum.map_or("", |_| "share"),
        "done/s",
        "",
        "MiB/s",
        "mean",
        "p50",
        "p99 [95 % interval]",
        "p99.9",
        "max",
        "service p50 p99"
    );
    for (point, class) in with_class(points) {
        let Some(rate) = point.coordinates.rate() else { continue };
        let [mean, p50, p999, max] = times(class.latency, |l| [l.mean_us, l.p50_us, l.p999_us, l.max_us]);
        let [service, service_p99] = times(class.service, |l| [l.p50_us, l.p99_us]);
        let line = format!(
            "{rate:>7} {:>5} {:>7.0} {:<8} {:>7.1} {mean:>6} {p50:>6}  {:<20} {p999:>6} {max:>6} {service:>8} \
             {service_p99:>6}  {:<6} {}",
            share(rate),
            class.iops,
            if class.met == Some(false) { String::new() } else { quantity::precision(class.rate()) },
            class.mib_per_s,
            p99(class),
            steady(point, class),
            mark(class)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The second streams, one line per point; empty if there were none.
fn beside(points: &[&PointSummary], load: &str) -> String {
    let mut text = String::new();
    for point in points {
        for class in point.classes.iter().skip(1) {
            if text.is_empty() {
                let _ = writeln!(
                    text,
                    "\n{load:>7}  {:<14} {:>8} {:<8} {:>8} {:>7} {:>7}  p99 [95 % interval]",
                    "beside it", "IOPS", "", "MiB/s", "mean", "p50"
                );
            }
            let at = point.coordinates.rate().unwrap_or(point.coordinates.outstanding().into());
            let [mean, p50] = times(class.latency, |l| [l.mean_us, l.p50_us]);
            let name = format!("{}, depth {}", class.name, class.outstanding);
            let _ = writeln!(
                text,
                "{at:>7}  {name:<14} {:>8.0} {:<8} {:>8.1} {mean:>7} {p50:>7}  {}",
                class.iops,
                quantity::precision(class.rate()),
                class.mib_per_s,
                p99(class)
            );
        }
    }
    text
}

fn with_class<'a>(points: &[&'a PointSummary]) -> impl Iterator<Item = (&'a PointSummary, &'a ClassSummary)> {
    points.iter().filter_map(|point| Some((*point, point.classes.first()?)))
}

/// `10 %`, `2.5 %`.
fn percent(value: f64) -> String {
    let text = format!("{value:.1}");
    format!("{}%", text.trim_end_matches(".0"))
}

pub(super) fn times<const N: usize>(
    latency: Option<LatencySummary>,
    of: fn(&LatencySummary) -> [f64; N],
) -> [String; N] {
    match latency {
        Some(latency) => of(&latency).map(|us| Nanos::from_micros_f64(us).to_string()),
        None => [(); N].map(|()| "-".into()),
    }
}

/// `468us [455, 479]`.
pub(super) fn p99(class: &ClassSummary) -> String {
    let interval = class.confidence.and_then(|confidence| confidence.p99_us);
    let estimate = |latency: LatencySummary| Estimate { value: latency.p99_us, interval };
    class.latency.map_or_else(|| "-".into(), |latency| calibration::latency(estimate(latency)))
}

pub(super) fn steady(point: &PointSummary, class: &ClassSummary) -> &'static str {
    match (&point.end, class.steady) {
        (End::Stopped, _) => "stopped",
        (End::Broken(_), _) => "broken",
        (End::Complete, None) => "-",
        (End::Complete, Some(_)) if class.met == Some(false) => "-",
        (End::Complete, Some(steady)) if steady.steady => "yes",
        (End::Complete, Some(_)) => "no",
    }
}

/// The fault of a point: its offered rate was not met, or it broke the bound.
pub(super) fn mark(class: &ClassSummary) -> &'static str {
    if class.met == Some(false) {
        "not met"
    } else if class.within.is_some_and(|within| !within.kept) {
        "bound"
    } else {
        ""
    }
}

/// A line about the delay that the tool itself added, so that it is not attributed to the device.
fn scheduling_delay(found: &CurveResult) -> String {
    found.scheduling_delay.map_or_else(String::new, |delay| {
        format!(
            "\nscheduling delay, which is Rigel's own and in the response times: p99 {} at worst, at {}/s\n",
            Nanos::from_micros_f64(delay.p99_us),
            delay.rate
        )
    })
}

/// The chart with a legend, and a mark at the knee or the maximum.
fn drawn(points: &[&PointSummary], found: &CurveResult) -> String {
    let series = |mark, of: fn(&LatencySummary) -> f64| Series {
        mark,
        points: with_class(points).filter_map(|(_, class)| Some((class.iops, of(&class.latency?)))).collect(),
    };
    let is_open = points.iter().any(|point| point.step() == Step::Rate);
    let mark = if is_open {
        found.maximum.map(|at| Mark { throughput: at.iops.value, word: "maximum of the closed loop".into() })
    } else {
        let knee = found.shape.knee.filter(|_| has_shape(found));
        knee.map(|knee| Mark { throughput: knee.throughput.value, word: format!("knee, depth {}", knee.load) })
    };
    let marks: Vec<Mark> = mark.into_iter().collect();
    let chart = chart::latency_over_throughput(
        &[series('o', |l| l.p50_us), series('x', |l| l.p99_us)],
        &marks,
        found.naming().rate,
    );
    if chart.is_empty() {
        return chart;
    }
    let what = if is_open { "response time" } else { "latency" };
    let both = if chart.contains(chart::BOTH) { ", * both" } else { "" };
    format!("{what} over throughput: o p50, x p99{both}\n{chart}")
}

/// A single load is not a curve and has no knee.
fn has_shape(found: &CurveResult) -> bool {
    found.points.iter().filter(|point| point.step() == Step::Depth).count() > 1
}

/// The facts about all points together.
fn facts(found: &CurveResult) -> String {
    let mut text = String::new();
    let rate = found.naming().rate;
    if let Some(at) = found.maximum {
        let (name, precision) = (format!("max {rate}"), quantity::precision(at.iops));
        let _ = writeln!(text, "\n{name:<NAME_WIDTH$} {:.0} {precision} at depth {}", at.iops.value, at.depth);
    }
    if has_shape(found) {
        text.push_str(calibration::knee_lines(&found.shape, rate).trim_start());
    }
    if let Some(cap) = found.shape.cap {
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} {:.0} {rate} [{:.0}, {:.0}], from depth {}",
            "cap", cap.throughput, cap.interval.low, cap.interval.high, cap.from
        );
    }
    text + &kept(found)
}

/// The highest load that was met, or that kept the bound.
fn kept(found: &CurveResult) -> String {
    let sustained = &found.sustained;
    let name = found.bound.as_ref().map_or_else(|| "offered rates".into(), |bound| format!("within {bound}"));
    let mut text = String::new();
    let mut line = |what: String| {
        let _ = writeln!(text, "{name:<NAME_WIDTH$} {what}");
    };
    match (sustained.kept_rate, sustained.broken_rate) {
        (Some(rate), None) => line(format!("{rate}/s, the greatest offered, was met")),
        (Some(rate), Some(broken)) => line(format!("{rate}/s is the greatest that was met; {broken}/s was not")),
        (None, Some(broken)) => line(format!("no offered rate was met, not even {broken}/s")),
        (None, None) => {}
    }
    match sustained.closed {
        Some(at) => line(format!(
            "{:.0} {} {} at depth {}",
            at.iops.value,
            found.naming().rate,
            quantity::precision(at.iops),
            at.depth
        )),
        None if found.bound.is_some() && found.maximum.is_some() => line("no depth kept it".into()),
        None => {}
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}
