//! What the page of a run by Orion's verb says: the matrix of small and large loads as fields of colour.

use super::calibrate::{failures, throttle};
use super::distribution::Chosen;
use super::page::{Answer, Block, Chart, Headline, Heat, Page, Plot, Section, Shape, Unit};
use super::throughput::{self, Group, first_classes};
use super::{distribution, points, setup, timeline, words};
use crate::analyse::{ClassSummary, CurveFacts, Estimate, MatrixResult, PointSummary, curve_facts};
use crate::model::{Finding, Request};
use crate::record::journal::Run;
use crate::record::{End, PointRecord};
use std::fmt::Write;

/// Most columns and rows of a field whose values are written into it.
const WRITTEN_MAX: usize = 8;
/// Share of the maximum that is still as good, as the findings of a matrix have it.
const TOLERANCE: f64 = 0.02;

/// Below this share of what small I/O does alone, large I/O beside has a cost.
const CLEARLY_LESS: f64 = 0.95;

/// A class of a point, and which point of the report it is of.
type Found<'a> = (usize, &'a PointSummary, usize, &'a ClassSummary);

/// The page, with what stands above it.
pub(super) fn page(run: &Run, result: &MatrixResult, page: Page) -> Page {
    let records = run.latest();
    let MatrixResult { points, findings: of_run } = result;
    let alone = points.iter().filter(|point| point.step.is_cell() && point.large == 0);
    let shape = curve_facts(alone.filter_map(|point| point.classes.first()), TOLERANCE);
    Page {
        answer: answer(run, points, of_run, &shape),
        figures: figures(points),
        sections: sections(run, &records, points, of_run, &shape),
        ..page
    }
}

/// The classes of this name in points that came to their end.
fn classes<'a>(points: &'a [PointSummary], name: &'a str) -> impl Iterator<Item = Found<'a>> {
    points.iter().enumerate().filter(|(_, point)| point.end == End::Complete).filter_map(move |(index, point)| {
        let at = point.classes.iter().position(|class| class.name == name && class.done > 0)?;
        Some((index, point, at, &point.classes[at]))
    })
}

fn most<'a>(points: &'a [PointSummary], name: &'a str) -> Option<Found<'a>> {
    // Orion names the first of several that are as good.
    classes(points, name).reduce(|best, new| if new.3.iops > best.3.iops { new } else { best })
}

/// The cell whose mean response of small I/O is the least.
fn quickest(points: &[PointSummary]) -> Option<Found<'_>> {
    let mean = |found: &Found<'_>| found.3.latency.map_or(f64::INFINITY, |latency| latency.mean_us);
    classes(points, "small").reduce(|best, new| if mean(&new) < mean(&best) { new } else { best })
}

fn place(point: &PointSummary) -> String {
    format!("Small={}, Large={}", point.small, point.large)
}

/// What ran beside; empty if nothing did.
fn with_others(number: u32, kind: &str) -> String {
    if number == 0 { String::new() } else { format!(" beside {number} {kind}") }
}

fn answer(run: &Run, points: &[PointSummary], of_run: &[Finding], shape: &CurveFacts) -> Answer {
    let mut parts = Vec::new();
    if let Some((_, point, _, class)) = most(points, "small") {
        parts.push(format!(
            "at most {} small I/Os of {} a second, with {} outstanding{}",
            words::count(class.iops),
            words::size(class.io_bytes),
            point.small,
            with_others(point.large, "large")
        ));
    }
    if let Some((_, point, _, class)) = most(points, "large") {
        parts.push(format!(
            "at most {} MBPS of large I/O of {}, with {} outstanding{}",
            words::count(class.mib_per_s),
            words::size(class.io_bytes),
            point.large,
            with_others(point.small, "small")
        ));
    }
    let mut text = if parts.is_empty() {
        "No complete data point has done an I/O, so there is no maximum.".to_string()
    } else {
        format!("It gives {}.", parts.join("; "))
    };
    if let Some(latency) = quickest(points).and_then(|(.., class)| class.latency) {
        let _ = write!(
            text,
            " A small I/O takes {} at the least, p99 {}.",
            words::time(latency.mean_us),
            words::time(latency.p99_us)
        );
    }
    if let Some(beside) = beside(points) {
        text.push_str(&beside);
    }
    let planned = run.header.points.len();
    let bad = failures(points.iter().flat_map(|point| &point.findings)).or_else(|| {
        let complete = points.iter().filter(|point| point.end == End::Complete).count();
        (complete < planned).then(|| format!("{} of {planned} data points are not complete.", planned - complete))
    });
    let warnings = words::warnings(run, of_run, points);
    words::answer(&text, throttle(of_run, points, shape).as_deref(), bad.as_deref(), &warnings)
}

/// What large I/O beside costs small I/O, where it clearly does: the same number of small ones, alone and beside the
/// most large ones.
fn beside(points: &[PointSummary]) -> Option<String> {
    let most_large = points.iter().filter(|point| point.small > 0).map(|point| point.large).max()?;
    let at = |small: u32, large: u32| {
        let mut found = classes(points, "small").filter(|(_, point, ..)| (point.small, point.large) == (small, large));
        found.next().map(|(.., class)| class)
    };
    let beside_most = classes(points, "small").filter(|(_, point, ..)| point.large == most_large);
    let small = beside_most.map(|(_, point, ..)| point.small).max()?;
    let (alone, beside) = (at(small, 0)?, at(small, most_large)?);
    let plural = |number: u32| if number == 1 { "" } else { "s" };
    (most_large > 0 && beside.iops < CLEARLY_LESS * alone.iops).then(|| {
        format!(
            " Beside {most_large} large I/O{}, {small} small one{} get{} {} a second instead of {}.",
            plural(most_large),
            plural(small),
            if small == 1 { "s" } else { "" },
            words::count(beside.iops),
            words::count(alone.iops)
        )
    })
}

fn figures(points: &[PointSummary]) -> Vec<Headline> {
    let mut figures = Vec::new();
    if let Some((index, point, at, class)) = most(points, "small") {
        let name = format!("points.{index}.classes.{at}.iops");
        let note = format!("small I/O of {}, {}", words::size(class.io_bytes), place(point));
        figures.push(words::rate(&name, "max small IOPS", class.rate(), note));
    }
    if let Some((index, point, at, class)) = most(points, "large") {
        let name = format!("points.{index}.classes.{at}.mib_per_s");
        let note = format!("MiB a second, large I/O of {}, {}", words::size(class.io_bytes), place(point));
        let value = words::count(class.mib_per_s);
        let known = words::plus_minus(class.rate());
        figures.push(words::headline(&name, "max large MBPS", class.mib_per_s, value, known, note));
    }
    if let Some((index, point, at, class)) = quickest(points)
        && let Some(latency) = class.latency
    {
        let known = class.confidence;
        let note = place(point);
        let mean = Estimate {
            value: latency.mean_us,
            interval: known.and_then(|known| known.mean_us).map(|mean| mean.interval().into()),
        };
        let path = format!("points.{index}.classes.{at}");
        figures.push(words::latency(&format!("{path}.mean_us"), "least small latency", mean, format!("mean, {note}")));
        let p99 = Estimate { value: latency.p99_us, interval: known.and_then(|known| known.p99_us) };
        figures.push(words::latency(&format!("{path}.p99_us"), "p99 there", p99, note));
    }
    figures
}

fn sections(
    run: &Run,
    records: &[PointRecord],
    points: &[PointSummary],
    of_run: &[Finding],
    shape: &CurveFacts,
) -> Vec<Section> {
    let of_points = points.iter().flat_map(|point| &point.findings);
    let all = run.header.findings.iter().chain(of_run).chain(of_points);
    let mut sections: Vec<Section> = fields(points).into_iter().collect();
    sections.extend(alone(points, shape));
    sections.push(words::findings(all));
    sections.extend(distribution::section(&chosen(points, records, shape)));
    sections.extend(timeline::section(run, "IOPS"));
    sections.push(points::section(points, "IOPS"));
    sections.push(setup::section(&run.header, &workload(run)));
    sections
}

/// The three fields; none where no cell has both small and large I/O, as a line says that better.
fn fields(points: &[PointSummary]) -> Option<Section> {
    if points.iter().all(|point| point.small == 0 || point.large == 0) {
        return None;
    }
    let iops = |class: &ClassSummary| Some(class.iops);
    let charts = [
        ("matrix-iops", "IOPS of small I/O", "small", Unit::PerSecond, false, iops as fn(&ClassSummary) -> Option<f64>),
        ("matrix-mbps", "MBPS of large I/O", "large", Unit::Number, false, |class| Some(class.mib_per_s)),
        ("matrix-p99", "p99 of small I/O", "small", Unit::Microseconds, true, |class| Some(class.latency?.p99_us)),
    ];
    let charts = charts.map(|(id, title, class, unit, log, of)| field(points, id, title, class, (unit, log), of));
    let lead = "To the right more small I/Os are outstanding, upward more large ones beside them. MBPS are MiB a \
                second, as Orion has them.";
    Some(words::section("matrix", "Orion's matrix", lead, throughput::beside(charts).into_iter().collect()))
}

fn field(
    points: &[PointSummary],
    id: &str,
    title: &str,
    class: &str,
    (unit, log): (Unit, bool),
    of: fn(&ClassSummary) -> Option<f64>,
) -> Option<Chart> {
    let mut found: Vec<(u32, u32, f64)> = Vec::new();
    for point in points.iter().filter(|point| point.step.is_cell()) {
        let value = point.classes.iter().find(|it| it.name == class && it.done > 0).and_then(of);
        found.extend(value.map(|value| (point.small, point.large, value)));
    }
    let axis = |of: fn(&(u32, u32, f64)) -> u32| {
        let mut loads: Vec<u32> = found.iter().map(of).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    };
    let (columns, rows) = (axis(|found| found.0), axis(|found| found.1));
    let value =
        |small: u32, large: u32| found.iter().find(|(s, l, _)| (*s, *l) == (small, large)).map(|(.., value)| *value);
    let least = found.iter().min_by(|one, other| one.2.total_cmp(&other.2))?;
    let most = found.iter().max_by(|one, other| one.2.total_cmp(&other.2))?;
    let shown = |value: f64| if unit == Unit::Microseconds { words::time(value) } else { words::count(value) };
    let description = format!(
        "{title}: from {} at {} small and {} large outstanding to {} at {} small and {} large.",
        shown(least.2),
        least.0,
        least.1,
        shown(most.2),
        most.0,
        most.1
    );
    let heat = Heat {
        x_label: "small I/Os outstanding".into(),
        y_label: "large I/Os outstanding".into(),
        downward: false,
        values: rows.iter().map(|large| columns.iter().map(|small| value(*small, *large)).collect()).collect(),
        range: None,
        written: columns.len() <= WRITTEN_MAX && rows.len() <= WRITTEN_MAX,
        columns: columns.iter().map(ToString::to_string).collect(),
        rows: rows.iter().map(ToString::to_string).collect(),
        unit,
        label: title.into(),
        log,
    };
    Some(throughput::chart(id, title, description, Plot::Heat(heat)))
}

/// Small I/O without large beside, and large without small, as lines.
fn alone(points: &[PointSummary], shape: &CurveFacts) -> Option<Section> {
    let small = first_classes(points, |point| point.step.is_cell() && point.large == 0 && point.small > 0);
    let large = first_classes(points, |point| point.step.is_cell() && point.small == 0 && point.large > 0);
    let group = Group { name: "", loads: small.clone(), shape: Shape::Line };
    let latency = throughput::latency_chart(&[group], throughput::marks(shape, None, None), "IOPS");
    let mut blocks: Vec<Block> = throughput::beside([latency]).into_iter().collect();
    blocks.extend(throughput::beside([
        throughput::depth_chart(&small, shape.usl, shape, "IOPS"),
        throughput::large_chart(&large, "large I/O"),
    ]));
    let lead = "Small I/O without large beside it, and large I/O without small.";
    let section = words::section("latency-throughput", "Latency against throughput", lead, blocks);
    (!section.blocks.is_empty()).then_some(section)
}

/// The least and the greatest number of small I/Os alone and the knee between, and the most beside large ones.
fn chosen<'a>(points: &[PointSummary], records: &'a [PointRecord], shape: &CurveFacts) -> Vec<Chosen<'a>> {
    let alone = || points.iter().filter(|point| point.large == 0 && point.small > 0).map(|point| point.small);
    let knee = shape.knee.and_then(|knee| alone().find(|small| (f64::from(*small) - knee.load).abs() < 0.5));
    let mut wanted: Vec<(u32, u32)> =
        [alone().min(), knee, alone().max()].into_iter().flatten().map(|small| (small, 0)).collect();
    let both = points.iter().filter(|point| point.small > 0 && point.large > 0);
    wanted.extend(both.map(|point| (point.small, point.large)).max());
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    for (small, large) in wanted {
        let of_cell = |record: &&PointRecord| (record.coordinates.small, record.coordinates.large) == (small, large);
        if let Some(record) = records.iter().find(of_cell)
            && chosen.iter().all(|(_, known)| known.coordinates != record.coordinates)
        {
            chosen.push((record.coordinates.to_string(), record));
        }
    }
    chosen
}

/// What was done, from the points that were planned.
fn workload(run: &Run) -> String {
    if !matches!(run.header.request(), Request::Orion(_)) {
        return String::new();
    }
    let streams = || run.header.points.iter().flat_map(|point| &point.streams);
    let one = |name: &str| {
        let stream = streams().find(|stream| stream.name == name)?;
        let writes = match stream.mix.writes.get() {
            0.0 => "reads".to_string(),
            share => format!("{} writes", words::percent(share)),
        };
        Some(format!("{name} I/O of {}, {}, {writes}", words::size(stream.length), stream.pattern))
    };
    ["small", "large"].into_iter().filter_map(one).collect::<Vec<_>>().join("; ")
}
