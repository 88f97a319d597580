//! What the page of a curve of latency against throughput says.

use super::calibrate::{failures, shape, throttle};
use super::distribution::Chosen;
use super::page::{Answer, Block, Headline, Page, Section};
use super::throughput::{self, first_classes};
use super::{distribution, points, setup, timeline, words};
use crate::analyse::{AtLoad, CurveResult, Estimate, PointSummary};
use crate::model::Step;
use crate::record::PointRecord;
use crate::record::journal::Run;
use crate::report::{calibration, curve};
use std::fmt::Write;

/// The page, with what stands above it.
pub(super) fn page(run: &Run, found: &CurveResult, page: Page) -> Page {
    Page { answer: answer(run, found, IOPS, ""), figures: figures(found, IOPS), sections: sections(run, found), ..page }
}

/// What operations of raw I/O are called.
pub(super) const IOPS: Words = Words { rate: "IOPS", one: "I/Os", place: "outstanding" };

/// What things are called.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// So many a second.
    pub(super) rate: &'static str,
    /// What is counted.
    pub(super) one: &'static str,
    /// What there are so many of at a depth.
    pub(super) place: &'static str,
}

/// The answer, of which `called` says what things are called. It begins with `opening`, which says all that is to be
/// said of a single point.
pub(super) fn answer(run: &Run, found: &CurveResult, called: Words, opening: &str) -> Answer {
    let mut text = opening.to_string();
    if let Some(most) = found.maximum.filter(|_| opening.is_empty() || found.points.len() > 1) {
        let _ = write!(text, " {}", closed(found, &most, called));
    }
    text.push_str(&offered(found, called));
    if text.is_empty() {
        text.push_str("The run measured too little to say anything.");
    }
    let bad = failures(found.points.iter().flat_map(|point| &point.findings)).or_else(|| {
        let bound = found.bound.as_ref().filter(|_| !found.keeps_bound())?;
        Some(format!("No load kept the bound of {bound}."))
    });
    words::answer(
        text.trim_start(),
        throttle(&found.findings, &found.points, &found.shape).as_deref(),
        bad.as_deref(),
        &words::warnings(run, &found.findings, &found.points),
    )
}

fn closed(found: &CurveResult, most: &AtLoad, called: Words) -> String {
    let Words { rate, place, .. } = called;
    let greatest = words::count(most.iops.value);
    let (p50, p99) = (words::time(most.p50_us.value), words::time(most.p99_us.value));
    match found.shape.knee.filter(|_| found.points.iter().filter(|point| point.step == Step::Depth).count() > 1) {
        Some(knee) if knee.bounded_above => {
            let at = found.points.iter().find(|point| point.is_at_depth(knee.load));
            let there = at.and_then(|point| point.classes.first()).map_or(knee.throughput.value, |class| class.iops);
            format!("With {} {place} it does {} {rate}; more only wait longer.", knee.load, words::count(there))
        }
        Some(_) => format!(
            "At {} {place} it does {greatest} {rate}, and throughput still rose there: median {p50}, p99 {p99}.",
            most.depth
        ),
        None => format!("With {} {place} it does {greatest} {rate}: median {p50}, p99 {p99}.", most.depth),
    }
}

/// What was offered and met.
fn offered(found: &CurveResult, called: Words) -> String {
    let sustained = &found.sustained;
    let within =
        found.bound.as_ref().map_or_else(String::new, |bound| format!(" within {}", bound.replace('@', " at ")));
    let one = called.one;
    let mut text = match (sustained.kept, sustained.kept_rate, sustained.broken_rate) {
        (Some(at), Some(rate), broken) => {
            let but = broken.map_or_else(
                || ", the greatest rate that was tried".into(),
                |broken| format!(", but not {}", words::count(broken as f64)),
            );
            let (p50, p99) = (words::time(at.p50_us.value), words::time(at.p99_us.value));
            let rate = words::count(rate as f64);
            format!(
                " Of {one} that come at times of their own it serves {rate} a second{within}, median {p50} and p99 {p99}{but}."
            )
        }
        (_, _, Some(broken)) => {
            format!(" No offered rate was served{within}, not even {} {one} a second.", words::count(broken as f64))
        }
        _ => String::new(),
    };
    if let (Some(closed), Some(_)) = (sustained.closed, &found.bound) {
        let (depth, iops) = (closed.depth, words::count(closed.iops.value));
        let _ = write!(text, " With a constant {depth} {}, {iops} {} stay{within}.", called.place, called.rate);
    }
    text
}

/// The figures: what the greatest load, the least, and the greatest rate within the bound gave.
pub(super) fn figures(found: &CurveResult, called: Words) -> Vec<Headline> {
    let mut figures = Vec::new();
    let at = |at: &AtLoad| format!("{} {}", at.depth, called.place);
    if let Some(most) = &found.maximum {
        let label = format!("max {}", called.rate);
        figures.push(words::rate("curve.maximum.iops.value", &label, most.iops, at(most)));
    }
    let (open, closed): (Vec<_>, Vec<_>) = found
        .points
        .iter()
        .enumerate()
        .filter(|(_, point)| !point.classes.is_empty())
        .partition(|(_, point)| matches!(point.step, Step::Rate(_)));
    let throughput = |point: &PointSummary| point.classes.first().map_or(0.0, |class| class.iops);
    let of_which = if closed.len() > 1 || open.is_empty() { &closed } else { &open };
    let least = of_which.iter().min_by(|one, other| throughput(one.1).total_cmp(&throughput(other.1))).copied();
    if let Some((index, point)) = least.filter(|_| found.points.len() > 1) {
        figures.extend(p99(index, point, "p99 at the least load"));
    }
    if let Some(rate) = found.sustained.kept_rate {
        let label = found
            .bound
            .as_ref()
            .map_or_else(|| "greatest rate met".into(), |bound| format!("within {}", bound.replace('@', " at ")));
        let tried = found.sustained.broken_rate.map_or_else(
            || "the greatest that was offered".into(),
            |broken| format!("tried; {}/s was not", words::count(broken as f64)),
        );
        let value = format!("{}/s", words::count(rate as f64));
        let note = "offered at times of their own, and served".to_string();
        figures.push(words::headline("curve.sustained.kept_rate", &label, rate as f64, value, tried, note));
        let kept = found.points.iter().enumerate().find(|(_, point)| point.step == Step::Rate(rate));
        figures.extend(kept.and_then(|(index, point)| p99(index, point, "p99 at that rate")));
    } else if let Some(knee) = found.shape.knee {
        let at = found.points.iter().enumerate().find(|(_, point)| point.is_at_depth(knee.load));
        let label = if found.points.len() > 1 { "p99 at the knee" } else { "p99" };
        figures.extend(at.and_then(|(index, point)| p99(index, point, label)));
    }
    if figures.len() < 4
        && let Some(most) = &found.maximum
    {
        let median = words::latency("curve.maximum.p50_us.value", "median at most", most.p50_us, at(most));
        figures.push(median);
    }
    figures
}

/// The p99 of a point, which is number `index` of the report.
pub(super) fn p99(index: usize, point: &PointSummary, label: &str) -> Option<Headline> {
    let class = point.classes.first()?;
    let value = class.latency?.p99_us;
    let interval = class.confidence.and_then(|known| known.p99_us);
    let median = class.latency.map_or_else(String::new, |latency| words::time(latency.p50_us));
    let note = format!("{}; median {median}", point.coordinates());
    let name = format!("points.{index}.classes.0.p99_us");
    Some(words::latency(&name, label, Estimate { value, interval }, note))
}

fn sections(run: &Run, found: &CurveResult) -> Vec<Section> {
    let of_points = found.points.iter().flat_map(|point| &point.findings);
    let all = run.header.findings.iter().chain(&found.findings).chain(of_points);
    let mut sections = vec![drawn(run, found, IOPS), words::findings(all)];
    sections.extend(distribution::section(&chosen(found, &run.latest())));
    sections.extend(timeline::section(run, IOPS.rate));
    sections.push(points::section(&found.points, IOPS.rate));
    sections.push(setup::section(&run.header, &curve::workload_of(run)));
    sections
}

/// Latency against throughput, and what the shape tells.
pub(super) fn drawn(run: &Run, found: &CurveResult, called: Words) -> Section {
    let closed = first_classes(&found.points, |point| point.step == Step::Depth);
    let open = first_classes(&found.points, |point| matches!(point.step, Step::Rate(_)));
    let bound = run.header.request().bound();
    let has_shape = closed.len() > 1;
    let mut facts = found.shape;
    if !has_shape {
        (facts.knee, facts.cap) = (None, None);
    }
    let groups = throughput::closed_and_open(closed.clone(), open, &facts, bound, &found.sustained);
    let depth = throughput::depth_chart(&closed, facts.usl, &facts, called.rate);
    let mut blocks: Vec<Block> = throughput::latency_charts(groups, called.rate).into_iter().collect();
    blocks.extend(throughput::beside([depth]));
    if has_shape {
        blocks.extend(shape(&calibration::knee(&found.shape).replace("IOPS", called.rate)));
    }
    if let Some(delay) = found.scheduling_delay {
        blocks.push(Block::Text(format!(
            "Scheduling delay, which is Rigel's own and in the response times: p99 {} at worst, at {}/s.",
            words::time(delay.p99_us),
            words::count(delay.rate as f64)
        )));
    }
    let lead = "Response times count from when an operation was due.";
    words::section("latency-throughput", "Latency against throughput", lead, blocks)
}

/// Of depths the least, the knee and the greatest; of offered rates about 50 %, 90 % and all of the greatest that was
/// met.
pub(super) fn chosen<'a>(found: &CurveResult, records: &'a [PointRecord]) -> Vec<Chosen<'a>> {
    let depths: Vec<u32> = depths(records);
    let mut wanted: Vec<&PointRecord> = Vec::new();
    if let Some(kept) = found.sustained.kept_rate {
        for share in [0.5, 0.9, 1.0] {
            let goal = kept as f64 * share;
            let rates = records.iter().filter_map(|record| match record.coordinates.step {
                Step::Rate(rate) if rate <= kept => Some((rate as f64, record)),
                _ => None,
            });
            let nearest = rates.min_by(|one, other| (one.0 - goal).abs().total_cmp(&(other.0 - goal).abs()));
            wanted.extend(nearest.map(|(_, record)| record));
        }
    } else {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a depth that was measured")]
        let knee = found.shape.knee.map(|knee| knee.load as u32);
        for depth in [depths.first().copied(), knee, depths.last().copied()].into_iter().flatten() {
            let of_depth =
                |record: &&PointRecord| record.coordinates.step == Step::Depth && record.coordinates.small == depth;
            wanted.extend(records.iter().find(of_depth));
        }
    }
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    for record in wanted {
        if chosen.iter().all(|(_, known)| known.coordinates != record.coordinates) {
            chosen.push((record.coordinates.to_string(), record));
        }
    }
    chosen
}

fn depths(records: &[PointRecord]) -> Vec<u32> {
    let of_depth = records.iter().filter(|record| record.coordinates.step == Step::Depth);
    let mut depths: Vec<u32> = of_depth.map(|record| record.coordinates.small).collect();
    depths.sort_unstable();
    depths
}
