//! The report of a latency-throughput curve.

use super::request::CurveRequest;
use super::result::{CurveResult, LogCurve};
use rigel_analyse::{AtLoad, CurveShape, LatencyFigure, PointSummary};
use rigel_model::record::PointRecord;
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Coordinates, Ratio, Step};
use rigel_report::columns::TableOf;
use rigel_report::distribution::Chosen;
use rigel_report::document::{Block, Document, Headline, Mark, Section, Shape};
use rigel_report::frame::about;
use rigel_report::points::{self, Units};
use rigel_report::throughput::{
    self, Group, first_classes, knee, not_sustained, sustained_headline, sustained_sentence,
};
use rigel_report::{distribution, parts, setup, timeline};
use std::fmt::Write;

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    result: &CurveResult,
    findings: Section,
    frame: Document,
) -> Document {
    let workload = workload(&run.header);
    Document {
        about: about(
            &run.header,
            &workload,
            &parts::counted(result.points.len() as u64, "point"),
        ),
        headlines: headlines(result),
        sections: sections(run, result, findings, &workload),
        ..frame
    }
}

/// The workload of a curve or of database sessions, in words; empty if another verb made the run.
pub(super) fn workload(header: &Header) -> String {
    let invocation = &header.invocation;
    let request: Option<CurveRequest> = invocation.asked(&invocation.verb);
    request.map_or_else(String::new, |request| of_request(&request))
}

/// `8 KiB reads, zipf:0.99, with large reads of 1 MiB, 2 outstanding at the same time`.
fn of_request(request: &CurveRequest) -> String {
    if let Some(terms) = &request.sql {
        return terms.work.to_string();
    }
    let mut text = if request.logs.is_empty() {
        on_volume(request)
    } else {
        let logs: Vec<String> = request.logs.iter().map(|log| log.about()).collect();
        format!(
            "commits of {} to {}",
            parts::size(request.length),
            logs.join(" and ")
        )
    };
    for background in &request.background {
        let _ = write!(text, ", with {background} at the same time");
    }
    text
}

/// `8 KiB I/O, 70 % reads and 30 % durable writes, zipf:0.99`.
fn on_volume(request: &CurveRequest) -> String {
    let writes = if request.mix.durable {
        "durable writes"
    } else {
        "writes"
    };
    let share = request.mix.writes;
    let kinds = match share {
        Ratio::ZERO => "reads".to_string(),
        Ratio::ONE => writes.to_string(),
        _ => format!("I/O, {} reads and {share} {writes}", share.complement()),
    };
    format!(
        "{} {kinds}, {}",
        parts::size(request.length),
        request.pattern
    )
}

/// The headline figures: at maximum throughput, at the lowest load, and at the highest rate within
/// the bound.
fn headlines(found: &CurveResult) -> Vec<Headline> {
    let mut figures = Vec::new();
    let load = |at: &AtLoad| {
        let each = parts::on_each(at.ranks);
        let log = found.logs.first();
        let log = log.map_or_else(String::new, |first| format!(", {}", first.log));
        format!("{} {}{each}{log}", at.depth, found.naming().place)
    };
    if let Some(most) = &found.maximum {
        let label = format!("max {}", found.naming().rate);
        let knee = found.shape.knee.filter(|knee| knee.bounded_above);
        let note = match knee {
            Some(_) => load(most).replacen(' ', " or more ", 1),
            None => load(most),
        };
        let name = "curve.maximum.iops.value";
        figures.push(parts::rate(name, &label, most.iops, note));
    }
    let (open, closed): (Vec<_>, Vec<_>) = found
        .points
        .iter()
        .enumerate()
        .filter(|(_, point)| !point.classes.is_empty() && found.is_of(point))
        .filter(|(_, point)| !matches!(point.step(), Step::Hosts | Step::Neighbours))
        .partition(|(_, point)| point.step() == Step::Rate);
    // What was served says little of the load.
    let load_of = |point: &PointSummary| {
        let outstanding = || u64::from(point.coordinates.outstanding());
        point.coordinates.rate().unwrap_or_else(outstanding)
    };
    let of_which = if closed.len() > 1 || open.is_empty() {
        &closed
    } else {
        &open
    };
    let least = of_which
        .iter()
        .min_by_key(|(_, point)| load_of(point))
        .copied();
    if let Some((index, point)) = least.filter(|_| found.points.len() > 1) {
        figures.extend(p99(index, point, "p99 at the lowest load"));
    }
    let within = found.bound.as_ref().and_then(|bound| {
        let label = format!("within {}", parts::bound_in_words(bound));
        sustained_headline("curve.sustained", &label, &found.sustained)
    });
    if let Some(within) = within {
        figures.push(within);
    } else if let Some(rate) = found.sustained.kept_rate {
        let label = found.bound.as_ref().map_or_else(
            || "highest rate met".into(),
            |bound| format!("within {}", parts::bound_in_words(bound)),
        );
        let tried = not_sustained(&found.sustained);
        let value = parts::per_second(rate as f64);
        let note = format!(
            "offered {}, and served",
            found.sustained.arrivals.in_words()
        );
        figures.push(parts::headline(
            "curve.sustained.kept_rate",
            &label,
            rate as f64,
            value,
            tried,
            note,
        ));
        let point = found
            .points
            .iter()
            .enumerate()
            .find(|(_, point)| point.coordinates.rate() == Some(rate));
        figures.extend(point.and_then(|(index, point)| p99(index, point, "p99 at that rate")));
    } else if let Some(knee) = found.shape.knee {
        let point = found
            .points
            .iter()
            .enumerate()
            .find(|(_, point)| point.is_at_depth(knee.load));
        let label = match (found.points.len(), knee.bounded_above) {
            (..=1, _) => "p99",
            (_, true) => "p99 at the knee",
            (_, false) => "p99 at the maximum",
        };
        figures.extend(point.and_then(|(index, point)| p99(index, point, label)));
    }
    if figures.len() < 4
        && let Some(most) = &found.maximum
    {
        let median = parts::latency(
            "curve.maximum.p50_us.value",
            "median at the maximum",
            most.p50_us,
            load(most),
        );
        figures.push(median);
    }
    figures
}

/// The p99 of a point; `index` is its position in the report.
pub(super) fn p99(index: usize, point: &PointSummary, label: &str) -> Option<Headline> {
    let class = point.classes.first()?;
    let median = parts::time(class.latency?.p50_us);
    let note = format!("{}; median {median}", point.coordinates);
    let name = format!("points.{index}.classes.0.p99_us");
    let p99 = class.time(LatencyFigure::P99)?;
    Some(parts::latency(&name, label, p99, note))
}

fn sections(run: &Run, result: &CurveResult, findings: Section, workload: &str) -> Vec<Section> {
    let units = Units::of(result.naming().rate);
    let mut sections = vec![drawn(run, result), findings];
    sections.extend(distribution::section(&chosen(result, &run.joined())));
    sections.extend(timeline::section(run, units));
    sections.push(points::section(run, &result.points, units));
    sections.extend(points::coverage(&result.points, &run.header.findings));
    sections.push(setup::section(&run.header, workload));
    sections
}

/// Latency against throughput, and the facts about the shape.
pub(super) fn drawn(run: &Run, result: &CurveResult) -> Section {
    let is_own = |point: &PointSummary| point.step() == Step::Depth && result.is_of(point);
    let closed = first_classes(&result.points, is_own);
    let open = first_classes(&result.points, |point| point.step() == Step::Rate);
    let invocation = &run.header.invocation;
    let request: Option<CurveRequest> = invocation.asked(&invocation.verb);
    let bound = request.and_then(|request| request.bound);
    let has_shape = closed.len() > 1;
    let mut facts = result.shape;
    if !has_shape {
        (facts.knee, facts.cap) = (None, None);
    }
    let names: Vec<String> = result.logs.iter().map(|one| one.log.about()).collect();
    let mut groups =
        throughput::closed_and_open(closed.clone(), open, &facts, bound, &result.sustained);
    if !names.is_empty() {
        groups = result
            .logs
            .iter()
            .zip(&names)
            .map(|(log, name)| of_log(result, log, name))
            .collect();
    }
    let depth =
        throughput::depth_chart(&closed, &facts, result.naming().rate).filter(|_| names.is_empty());
    let mut blocks: Vec<Block> = throughput::latency_charts(groups, result.naming().rate)
        .into_iter()
        .collect();
    draw_last_in_text(&mut blocks);
    blocks.extend(parts::beside([depth]));
    blocks.extend(compared(result));
    blocks.extend(points::syncs(&result.points));
    if has_shape {
        blocks.extend(knee(&result.shape).into_iter().map(Block::Text));
    }
    blocks.extend(
        cap(&facts, result.naming().rate)
            .into_iter()
            .chain(highest_loads(result))
            .map(Block::Text),
    );
    if let Some(delay) = result.scheduling_delay {
        blocks.push(Block::Text(format!(
            "Scheduling delay, which Rigel itself adds and response times include: p99 at most \
             {}, at {}/s.",
            parts::time(delay.p99_us),
            parts::count(delay.rate as f64)
        )));
    }
    let lead = "Response times count from when an operation was due. Beyond the knee, where \
                points are fainter, operations only wait longer.";
    parts::section(
        "latency-throughput",
        "Latency against throughput",
        lead,
        blocks,
    )
}

/// The loads of one of several logs, to be drawn.
fn of_log<'a>(result: &'a CurveResult, log: &LogCurve, name: &'a str) -> (Group<'a>, Vec<Mark>) {
    let group = Group {
        name,
        loads: first_classes(&result.points, |point| {
            point.coordinates.log() == Some(log.log)
        }),
        shape: Shape::Line,
    };
    (group, throughput::marks(&log.shape, None, None))
}

/// Commits by number of writers, of each of several logs.
fn compared(result: &CurveResult) -> Option<Block> {
    let first = result.logs.first()?;
    let writers = depths(first.points(&result.points).map(|point| point.coordinates));
    let mut table = TableOf::of("Commits by number of writers", writers)
        .number("writers", |writers| parts::count(f64::from(*writers)));
    for one in &result.logs {
        let at = |writers: u32| {
            let mut points = one.points(&result.points);
            let point = points.find(|point| point.coordinates.depth() == Some(writers));
            point?.classes.first()
        };
        table = table
            .number(&format!("{}: commits/s", one.log), |writers| {
                parts::known(at(*writers).map(|class| class.iops), parts::count)
            })
            .time("p99", |writers| at(*writers)?.time(LatencyFigure::P99));
    }
    Some(table.block())
}

/// The last of the charts side by side is also drawn in text: the one of offered rates, if there is
/// one.
fn draw_last_in_text(blocks: &mut [Block]) {
    match blocks.first_mut() {
        Some(Block::Chart(chart)) => chart.in_text = true,
        Some(Block::Beside(inside)) => {
            if let Some(Block::Chart(chart)) = inside.last_mut() {
                chart.in_text = true;
            }
        }
        _ => {}
    }
}

/// A limit of throughput, in a sentence.
fn cap(shape: &CurveShape, rate: &str) -> Option<String> {
    let cap = shape.cap?;
    let [low, high] = [cap.interval.low, cap.interval.high].map(parts::count);
    let throughput = parts::count(cap.throughput);
    Some(format!(
        "Cap: {throughput} {rate} (95 %: {low} to {high}) from depth {} on.",
        cap.from
    ))
}

/// The highest load that was met or stayed within the bound, in sentences.
fn highest_loads(result: &CurveResult) -> Vec<String> {
    let sustained = &result.sustained;
    let name = result.bound.as_ref().map_or_else(
        || "Offered rates".into(),
        |it| format!("Within {}", parts::bound_in_words(it)),
    );
    let rate = |rate: u64| parts::per_second(rate as f64);
    let open = match (
        sustained.kept_rate,
        sustained.broken_rate,
        sustained.undecided_rate,
    ) {
        (Some(kept), None, None) => {
            Some(format!("{}, the highest offered rate, was met", rate(kept)))
        }
        (Some(kept), ..) => Some(format!(
            "{} is the highest rate that was met; {}",
            rate(kept),
            not_sustained(sustained)
        )),
        (None, _, Some(_)) => Some(format!(
            "no offered rate certainly was met; {}",
            not_sustained(sustained)
        )),
        (None, Some(broken), None) => {
            Some(format!("no offered rate was met, down to {}", rate(broken)))
        }
        (None, None, None) => None,
    };
    let closed = match sustained.closed {
        Some(at) => Some(format!(
            "{} {} ({}) at depth {}",
            parts::count(at.iops.value),
            result.naming().rate,
            parts::plus_minus(at.iops),
            at.depth
        )),
        None if result.bound.is_some() && result.maximum.is_some() => {
            Some("no measured depth".into())
        }
        None => None,
    };
    let root = result
        .bound
        .as_ref()
        .and_then(|bound| sustained_sentence(&parts::bound_in_words(bound), sustained));
    let others = open.into_iter().chain(closed);
    root.into_iter()
        .chain(others.map(|what| format!("{name}: {what}.")))
        .collect()
}

/// Points for the distributions. For depths: the minimum, the knee and the maximum; for offered
/// rates: about 50 %, 90 % and 100 % of the highest rate that was met.
pub(super) fn chosen<'a>(result: &CurveResult, records: &'a [PointRecord]) -> Vec<Chosen<'a>> {
    let depths = depths(records.iter().map(|record| record.coordinates));
    let mut wanted: Vec<&PointRecord> = Vec::new();
    if let Some(kept) = result.sustained.kept_rate {
        for share in [0.5, 0.9, 1.0] {
            let goal = kept as f64 * share;
            let rates = records
                .iter()
                .filter_map(|record| match record.coordinates.rate() {
                    Some(rate) if rate <= kept => Some((rate as f64, record)),
                    _ => None,
                });
            let nearest =
                rates.min_by(|one, other| (one.0 - goal).abs().total_cmp(&(other.0 - goal).abs()));
            wanted.extend(nearest.map(|(_, record)| record));
        }
    } else {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a depth that was measured"
        )]
        let knee = result.shape.knee.map(|knee| knee.load as u32);
        for depth in [depths.first().copied(), knee, depths.last().copied()]
            .into_iter()
            .flatten()
        {
            let of_depth = |record: &&PointRecord| record.coordinates.depth() == Some(depth);
            wanted.extend(records.iter().find(of_depth));
        }
    }
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    for record in wanted {
        if chosen
            .iter()
            .all(|(_, known)| known.coordinates != record.coordinates)
        {
            chosen.push((record.coordinates.to_string(), record));
        }
    }
    chosen
}

/// The depths of closed loops, ascending.
fn depths(all: impl Iterator<Item = Coordinates>) -> Vec<u32> {
    let mut depths: Vec<u32> = all.filter_map(Coordinates::depth).collect();
    depths.sort_unstable();
    depths
}
