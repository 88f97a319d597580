//! The page of a calibration.

use super::distribution::Chosen;
use super::page::{Block, Headline, Page, Section, Table};
use super::throughput::{self, first_classes};
use super::{distribution, points, setup, timeline, words};
use crate::analyse::{AtLoad, Calibration, CurveShape, Estimate};
use crate::model::Step;
use crate::record::PointRecord;
use crate::record::journal::Run;
use crate::report::calibration;

/// Completes `page`, which has the heading and the conclusion.
pub(super) fn page(run: &Run, found: &Calibration, findings: Section, page: Page) -> Page {
    Page { figures: figures(found), sections: sections(run, found, findings), ..page }
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
    let label = format!("within {}", words::bound_in_words(&found.bound));
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

fn sections(run: &Run, found: &Calibration, findings: Section) -> Vec<Section> {
    let records = run.latest();
    let mut sections = vec![curve(run, found), findings, latencies(found)];
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
    let closed = first_classes(&found.points, |point| point.step() == Step::Depth);
    let open = first_classes(&found.points, |point| point.step() == Step::Rate);
    let large = first_classes(&found.points, |point| point.step() == Step::Large);
    let bound = run.header.request().bound();
    let groups = throughput::closed_and_open(closed.clone(), open, &found.curve, bound, &found.sustained);
    let mut blocks: Vec<Block> = throughput::latency_charts(groups, "IOPS").into_iter().collect();
    blocks.extend(throughput::beside([
        throughput::depth_chart(&closed, found.curve.usl, &found.curve, "IOPS"),
        throughput::large_chart(&large, "large random reads"),
    ]));
    blocks.extend(knee(&found.curve, "IOPS"));
    let lead = "Random reads of the small size. Along the line more are outstanding; beyond the knee, where points are \
                fainter, that only makes them wait. What is offered at random times comes whether or not the storage \
                is ready.";
    words::section("latency-throughput", "Latency against throughput", lead, blocks)
}

/// Two theories about the knee; `rate` is the unit of throughput.
pub(super) fn knee(shape: &CurveShape, rate: &str) -> Option<Block> {
    let facts = calibration::knee(shape, rate)?;
    let first = format!("Knee: {}, {}", facts.load, facts.reached);
    let sentences: Vec<String> = std::iter::once(first).chain(facts.theories).collect();
    Some(Block::Text(format!("{}.", sentences.join("; "))))
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

/// Low load, the knee, and the maximum measured depth.
fn chosen<'a>(found: &Calibration, records: &'a [PointRecord]) -> Vec<Chosen<'a>> {
    let deepest = records.iter().filter_map(|record| record.coordinates.depth()).max();
    let wanted = [found.low_load.map(|at| at.depth), found.at_knee.map(|at| at.depth), deepest];
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    for depth in wanted.into_iter().flatten() {
        let name = format!("depth {depth}");
        if let Some(record) = records.iter().find(|record| record.coordinates.depth() == Some(depth))
            && chosen.iter().all(|(known, _)| *known != name)
        {
            chosen.push((name, record));
        }
    }
    chosen
}
