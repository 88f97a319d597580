//! The page of a latency-throughput curve.

use super::calibrate::knee;
use super::distribution::Chosen;
use super::page::{Block, Headline, Page, Section};
use super::throughput::{self, first_classes};
use super::{distribution, points, setup, timeline, words};
use crate::analyse::{AtLoad, CurveResult, Estimate, Naming, PointSummary};
use crate::model::Step;
use crate::record::PointRecord;
use crate::record::journal::Run;
use crate::report::curve;

/// Completes `page`, which has the heading and the conclusion.
pub(super) fn page(run: &Run, found: &CurveResult, findings: Section, page: Page) -> Page {
    Page { figures: figures(found), sections: sections(run, found, findings), ..page }
}

/// The headline figures: at maximum throughput, at the lowest load, and at the highest rate within the bound.
pub(super) fn figures(found: &CurveResult) -> Vec<Headline> {
    let mut figures = Vec::new();
    let at = |at: &AtLoad| format!("{} {}", at.depth, found.naming().place);
    if let Some(most) = &found.maximum {
        let label = format!("max {}", found.naming().rate);
        figures.push(words::rate("curve.maximum.iops.value", &label, most.iops, at(most)));
    }
    let (open, closed): (Vec<_>, Vec<_>) = found
        .points
        .iter()
        .enumerate()
        .filter(|(_, point)| !point.classes.is_empty())
        .partition(|(_, point)| point.step() == Step::Rate);
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
            .map_or_else(|| "greatest rate met".into(), |bound| format!("within {}", words::bound_in_words(bound)));
        let tried = found.sustained.broken_rate.map_or_else(
            || "the greatest that was offered".into(),
            |broken| format!("tried; {}/s was not", words::count(broken as f64)),
        );
        let value = format!("{}/s", words::count(rate as f64));
        let note = "offered at times of their own, and served".to_string();
        figures.push(words::headline("curve.sustained.kept_rate", &label, rate as f64, value, tried, note));
        let kept = found.points.iter().enumerate().find(|(_, point)| point.coordinates.rate() == Some(rate));
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

/// The p99 of a point; `index` is its position in the report.
pub(super) fn p99(index: usize, point: &PointSummary, label: &str) -> Option<Headline> {
    let class = point.classes.first()?;
    let value = class.latency?.p99_us;
    let interval = class.confidence.and_then(|known| known.p99_us);
    let median = class.latency.map_or_else(String::new, |latency| words::time(latency.p50_us));
    let note = format!("{}; median {median}", point.coordinates);
    let name = format!("points.{index}.classes.0.p99_us");
    Some(words::latency(&name, label, Estimate { value, interval }, note))
}

fn sections(run: &Run, found: &CurveResult, findings: Section) -> Vec<Section> {
    let mut sections = vec![drawn(run, found), findings];
    sections.extend(distribution::section(&chosen(found, &run.latest())));
    sections.extend(timeline::section(run, Naming::RAW.rate));
    sections.push(points::section(&found.points, Naming::RAW.rate));
    sections.push(setup::section(&run.header, &curve::workload_of(run)));
    sections
}

/// Latency against throughput, and the facts about the shape.
pub(super) fn drawn(run: &Run, found: &CurveResult) -> Section {
    let closed = first_classes(&found.points, |point| point.step() == Step::Depth);
    let open = first_classes(&found.points, |point| point.step() == Step::Rate);
    let bound = run.header.request().bound();
    let has_shape = closed.len() > 1;
    let mut facts = found.shape;
    if !has_shape {
        (facts.knee, facts.cap) = (None, None);
    }
    let groups = throughput::closed_and_open(closed.clone(), open, &facts, bound, &found.sustained);
    let depth = throughput::depth_chart(&closed, facts.usl, &facts, found.naming().rate);
    let mut blocks: Vec<Block> = throughput::latency_charts(groups, found.naming().rate).into_iter().collect();
    blocks.extend(throughput::beside([depth]));
    if has_shape {
        blocks.extend(knee(&found.shape, found.naming().rate));
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

/// Points for the distributions. For depths: the minimum, the knee and the maximum; for offered rates: about 50 %, 90
/// % and 100 % of the highest rate that was met.
pub(super) fn chosen<'a>(found: &CurveResult, records: &'a [PointRecord]) -> Vec<Chosen<'a>> {
    let depths: Vec<u32> = depths(records);
    let mut wanted: Vec<&PointRecord> = Vec::new();
    if let Some(kept) = found.sustained.kept_rate {
        for share in [0.5, 0.9, 1.0] {
            let goal = kept as f64 * share;
            let rates = records.iter().filter_map(|record| match record.coordinates.rate() {
                Some(rate) if rate <= kept => Some((rate as f64, record)),
                _ => None,
            });
            let nearest = rates.min_by(|one, other| (one.0 - goal).abs().total_cmp(&(other.0 - goal).abs()));
            wanted.extend(nearest.map(|(_, record)| record));
        }
    } else {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a depth that was measured")]
        let knee = found.shape.knee.map(|knee| knee.load as u32);
        for depth in [depths.first().copied(), knee, depths.last().copied()].into_iter().flatten() {
            let of_depth = |record: &&PointRecord| record.coordinates.depth() == Some(depth);
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
    let mut depths: Vec<u32> = records.iter().filter_map(|record| record.coordinates.depth()).collect();
    depths.sort_unstable();
    depths
}
