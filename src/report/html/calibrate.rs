//! What the page of a calibration says.

use super::distribution::Chosen;
use super::page::{Answer, Block, Headline, Page, Section, Table};
use super::throughput::{self, first_classes};
use super::{distribution, points, setup, timeline, words};
use crate::analyse::{AtLoad, Calibration, CurveFacts, Estimate, PointSummary, is_throttled};
use crate::model::{Finding, Request, Step};
use crate::record::PointRecord;
use crate::record::journal::Run;
use crate::report::calibration;
use std::fmt::Write;

/// The page, with what stands above it.
pub(super) fn page(run: &Run, found: &Calibration, page: Page) -> Page {
    Page { answer: answer(run, found), figures: figures(found), sections: sections(run, found), ..page }
}

fn answer(run: &Run, found: &Calibration) -> Answer {
    let mut text = String::new();
    if let Some(low) = found.low_load {
        let _ = write!(
            text,
            "A session that reads block after block gets {} reads of {} a second, half of them within {}",
            words::count(low.iops.value),
            words::size(low.io_bytes),
            words::time(low.p50_us.value)
        );
        text.push_str(&at_most(found));
    }
    if let (Some(at), Some(rate)) = (found.sustained.kept, found.sustained.kept_rate) {
        let _ = write!(
            text,
            " Within {} it serves {} a second that come at random times, p99 {}.",
            bound_words(&found.bound),
            words::count(rate as f64),
            words::time(at.p99_us.value)
        );
    }
    if text.is_empty() {
        text.push_str("The run measured too little to say what this storage can do.");
    }
    words::answer(
        &text,
        care(run, found).as_deref(),
        bad(run, found).as_deref(),
        &words::warnings(run, &found.findings, &found.points),
    )
}

/// A throttle, a tail that no load explains, and that no rate kept a bound for which nobody asked.
fn care(run: &Run, found: &Calibration) -> Option<String> {
    let throttle = throttle(&found.findings, &found.points, &found.curve);
    let parts: Vec<String> = throttle
        .into_iter()
        .chain(sentence_of("tail", &found.findings))
        .chain(kept_none(found).filter(|_| !asked(run)))
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What a finding says of a limit that makes operations wait: that every part of a device is at work needs no telling.
pub(super) fn throttle(findings: &[Finding], points: &[PointSummary], curve: &CurveFacts) -> Option<String> {
    if is_throttled(points, curve) { sentence_of("cap", findings) } else { None }
}

/// The finding of this name as a sentence.
fn sentence_of(name: &str, findings: &[Finding]) -> Option<String> {
    let finding = findings.iter().find(|finding| finding.name == name)?;
    Some(format!("{}.", words::capital(&finding.what)))
}

fn at_most(found: &Calibration) -> String {
    match (found.maximum, found.at_knee.filter(|_| found.curve.knee.is_some_and(|knee| knee.bounded_above))) {
        (_, Some(knee)) if knee.depth == 1 => "; more at a time only wait longer.".into(),
        (_, Some(knee)) => {
            format!("; {} at a time get {}, and more only wait longer.", knee.depth, words::count(knee.iops.value))
        }
        (Some(most), _) => {
            format!("; {} at a time get {}, and it still rose there.", most.depth, words::count(most.iops.value))
        }
        _ => ".".into(),
    }
}

/// `20ms@p99` as `p99 20 ms` would read: the bound's own words stay, a reader finds them in the command.
fn bound_words(bound: &str) -> String {
    match bound.split_once('@') {
        Some((latency, quantile)) => format!("{latency} at {quantile}"),
        None => bound.into(),
    }
}

/// A promise that was asked for and not kept, or I/Os that failed.
fn bad(run: &Run, found: &Calibration) -> Option<String> {
    if let Some(failed) = failures(found.points.iter().flat_map(|point| &point.findings)) {
        return Some(failed);
    }
    kept_none(found).filter(|_| asked(run))
}

/// True if the bound is of whoever started the run, and not what Oracle's procedure has by default.
fn asked(run: &Run) -> bool {
    matches!(run.header.request(), Request::Calibrate(request) if request.bound_given)
}

/// That nothing that was offered kept the bound.
fn kept_none(found: &Calibration) -> Option<String> {
    let rates = || found.points.iter().any(|point| matches!(point.step, Step::Rate(_)));
    (found.sustained.kept.is_none() && rates())
        .then(|| format!("No offered rate kept the bound of {}.", bound_words(&found.bound)))
}

/// That I/Os failed, if some did.
pub(super) fn failures<'a>(mut findings: impl Iterator<Item = &'a Finding>) -> Option<String> {
    let failed = findings.find(|finding| finding.name == "failures")?;
    Some(format!("I/Os failed: {}.", failed.what))
}

fn figures(found: &Calibration) -> Vec<Headline> {
    let of = |at: AtLoad| format!("random reads of {}, {} outstanding", words::size(at.io_bytes), at.depth);
    let mut figures = Vec::new();
    if let Some(at) = found.maximum {
        figures.push(words::rate("calibration.maximum.iops.value", "max IOPS", at.iops, of(at)));
    }
    if let Some(at) = found.large {
        figures.push(words::throughput("calibration.large.mb_per_s.value", "max throughput", at.mb_per_s, of(at)));
    }
    if let Some(at) = found.low_load {
        let note = format!(
            "random reads of {}, one at a time; median {}",
            words::size(at.io_bytes),
            words::time(at.p50_us.value)
        );
        figures.push(words::latency("calibration.low_load.p99_us.value", "p99 at low load", at.p99_us, note));
    }
    let label = format!("within {}", bound_words(&found.bound));
    match (found.sustained.kept, found.sustained.kept_rate, found.at_knee) {
        (Some(at), Some(rate), _) => {
            let tried = found.sustained.broken_rate.map_or_else(
                || "the greatest that was offered".into(),
                |broken| format!("tried; {}/s was not", words::count(broken as f64)),
            );
            let note = format!("offered at random times and served; p99 {}", words::time(at.p99_us.value));
            let value = format!("{}/s", words::count(rate as f64));
            let name = "calibration.sustained.kept_rate";
            figures.push(words::headline(name, &label, rate as f64, value, tried, note));
        }
        (_, _, Some(at)) => {
            figures.push(words::latency("calibration.at_knee.p99_us.value", "p99 at the knee", at.p99_us, of(at)));
        }
        _ => {}
    }
    figures
}

fn sections(run: &Run, found: &Calibration) -> Vec<Section> {
    let of_points = found.points.iter().flat_map(|point| &point.findings);
    let all = run.header.findings.iter().chain(&found.findings).chain(of_points);
    let records = run.latest();
    let mut sections = vec![curve(run, found), words::findings(all), latencies(found)];
    sections.extend(distribution::section(&chosen(found, &records)));
    sections.extend(timeline::section(run, "IOPS"));
    sections.push(points::section(&found.points, "IOPS"));
    let sizes = found.maximum.zip(found.large).map_or_else(
        || "reads".into(),
        |(small, large)| format!("random reads of {} and {}", words::size(small.io_bytes), words::size(large.io_bytes)),
    );
    sections.push(setup::section(&run.header, &sizes));
    sections
}

fn curve(run: &Run, found: &Calibration) -> Section {
    let closed = first_classes(&found.points, |point| point.step == Step::Depth);
    let open = first_classes(&found.points, |point| matches!(point.step, Step::Rate(_)));
    let large = first_classes(&found.points, |point| point.step == Step::Large);
    let bound = run.header.request().bound();
    let groups = throughput::closed_and_open(closed.clone(), open, &found.curve, bound, &found.sustained);
    let mut blocks: Vec<Block> = throughput::latency_charts(groups, "IOPS").into_iter().collect();
    blocks.extend(throughput::beside([
        throughput::depth_chart(&closed, found.curve.usl, &found.curve, "IOPS"),
        throughput::large_chart(&large, "large random reads"),
    ]));
    blocks.extend(shape(&calibration::knee(&found.curve)));
    let lead = "Random reads of the small size. Along the line more are outstanding; beyond the knee, where points are \
                fainter, that only makes them wait. What is offered at random times comes whether or not the storage \
                is ready.";
    words::section("latency-throughput", "Latency against throughput", lead, blocks)
}

/// What two theories say of the knee, as the text report has it in columns.
pub(super) fn shape(text: &str) -> Option<Block> {
    let sentence = |line: &str| {
        let mut columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
        let name = columns.next()?;
        let rest = columns.collect::<Vec<_>>().join(", ");
        Some(if rest.is_empty() { name.to_string() } else { format!("{name}: {rest}") })
    };
    let text = text.lines().filter_map(sentence).collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then(|| Block::Text(format!("{}.", words::capital(&text))))
}

/// The table of latencies.
fn latencies(found: &Calibration) -> Section {
    let fixed = [
        ("random reads, low load", found.low_load),
        ("random reads, at the knee", found.at_knee),
        ("random reads, at the maximum", found.maximum),
        ("large random reads, low load", found.large_low_load),
        ("large random reads, most", found.large),
        ("one sequential stream", found.stream),
        ("within the bound, offered", found.sustained.kept),
        ("random writes, low load", found.write_low_load),
        ("random writes, most", found.writes),
    ];
    let mut rows: Vec<Vec<String>> =
        fixed.into_iter().filter_map(|(name, at)| Some(row(name.to_string(), &at?))).collect();
    let log =
        |log: &crate::analyse::LogWrites| row(format!("durable log writes of {}", words::size(log.bytes)), &log.at);
    rows.extend(found.log_writes.iter().map(log));
    let columns = ["", "#outstanding", "#size", "#IOPS", "#±", "#MB/s", "#p50 (95 %)", "#p99 (95 %)", "#p99.9 (95 %)"];
    let table: Table = words::rows("What was found, with 95 % intervals", &columns, rows);
    let lead = "Every figure is of one point, or of several that are named; nothing is made up between them.";
    words::section("figures", "All figures", lead, vec![Block::Table(table)])
}

fn row(name: String, at: &AtLoad) -> Vec<String> {
    let known = |figure: Estimate| {
        figure.precision().filter(|share| share.is_finite()).map_or_else(|| "?".into(), words::percent)
    };
    vec![
        name,
        at.depth.to_string(),
        words::size(at.io_bytes),
        words::count(at.iops.value),
        known(at.iops),
        words::count(at.mb_per_s.value),
        words::time_between(at.p50_us),
        words::time_between(at.p99_us),
        words::time_between(at.p999_us),
    ]
}

/// Low load, the knee, and the deepest that was tried.
fn chosen<'a>(found: &Calibration, records: &'a [PointRecord]) -> Vec<Chosen<'a>> {
    let depths = || records.iter().filter(|record| record.coordinates.step == Step::Depth);
    let deepest = depths().map(|record| record.coordinates.small).max();
    let wanted = [found.low_load.map(|at| at.depth), found.at_knee.map(|at| at.depth), deepest];
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    for depth in wanted.into_iter().flatten() {
        let name = format!("depth {depth}");
        if let Some(record) = depths().find(|record| record.coordinates.small == depth)
            && chosen.iter().all(|(known, _)| *known != name)
        {
            chosen.push((name, record));
        }
    }
    chosen
}
