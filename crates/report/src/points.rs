//! The tables of all points, and which blocks they touched.

use super::columns::TableOf;
use super::document::{Block, Section, Table, Unit};
use super::parts;
use rigel_analyse::plan::SqlTerms;
use rigel_analyse::{BoundVerdict, ClassSummary, PointSummary, RateMet, ShownIn, SyncSummary};
use rigel_model::record::End;
use rigel_model::record::journal::Run;
use rigel_model::{Arrivals, Bytes, Coordinates, Finding, FindingName, Step};
use serde::Deserialize;

/// A table with more rows than this is collapsed on a page.
const OPEN_MAX: usize = 14;

/// Units of the tables of points.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    /// The unit of throughput, such as `IOPS`.
    pub operations: &'a str,
    /// Bytes per second; Orion's are mebibytes.
    pub bytes: Unit,
}

impl<'a> Units<'a> {
    /// Megabytes, and these operations.
    pub fn of(operations: &'a str) -> Self {
        Self {
            operations,
            bytes: Unit::MbPerSecond,
        }
    }
}

/// All points, one row per class: those of the closed loop, and those of offered rates.
pub fn section(run: &Run, points: &[PointSummary], units: Units<'_>) -> Section {
    let (open, closed): (Vec<&PointSummary>, Vec<&PointSummary>) =
        points.iter().partition(|point| point.step() == Step::Rate);
    let in_order = "Every point, in the order it was measured";
    let blocks = [
        table(in_order, &closed, units, false),
        table(&offered_caption(run), &open, units, true),
    ];
    let lead = format!("{} measured.", parts::counted(points.len() as u64, "point"));
    parts::section(
        "points",
        "All points",
        &lead,
        blocks.into_iter().map(Block::Table).collect(),
    )
}

fn with_classes<'a>(
    points: &[&'a PointSummary],
) -> impl Iterator<Item = (&'a PointSummary, &'a ClassSummary)> {
    points
        .iter()
        .flat_map(|point| point.classes.iter().map(move |class| (*point, class)))
}

/// A table of points with one row per class. That of offered rates has the service times, too.
fn table(caption: &str, points: &[&PointSummary], units: Units<'_>, is_offered: bool) -> Table {
    type Row<'a> = (&'a PointSummary, &'a ClassSummary);
    let (rate, bytes) = (units.operations, units.bytes);
    let (point, rate) = if is_offered {
        ("offered", format!("{rate} served"))
    } else {
        ("point", rate.to_string())
    };
    // The class is known if every point has only one.
    let has_classes = points.iter().any(|point| point.classes.len() > 1);
    let has_kernel = with_classes(points).any(|(_, class)| class.kernel_mean_us.is_some());
    let rows = with_classes(points).count();
    TableOf::of(caption, with_classes(points))
        .text(point, |(point, _)| point.coordinates)
        .text("class", |(_, class)| class.name.clone())
        .on_page_if(!has_classes)
        .count(&rate, |(_, class)| class.iops)
        .number("± (95 %)", |(_, class)| match class.met {
            Some(RateMet::No) => String::new(),
            _ => parts::precision(class.rate()),
        })
        .on_page_if(is_offered)
        .count(bytes.name(), |(_, class)| {
            class.bytes_per_s() / bytes.bytes()
        })
        .on_page_if(is_offered)
        .times(ShownIn::Pages, |(_, class), figure| class.time(figure))
        .and_if(has_kernel, |table: TableOf<Row<'_>>| {
            table
                .time("kernel's mean", |(_, class)| class.kernel_mean_us)
                .on_page()
        })
        .and_if(is_offered, |table| {
            table
                .time("service p50", |(_, class)| Some(class.service?.p50_us))
                .time("service p99", |(_, class)| Some(class.service?.p99_us))
        })
        .time("CPU per I/O", |(point, _)| point.cpu_us_per_io)
        .on_page()
        .text("steady", |(point, class)| steady(point, class))
        .text("remark", |(_, class)| mark(class))
        .folded_if(rows > OPEN_MAX)
        .table()
}

/// What the table of offered rates says above itself.
fn offered_caption(run: &Run) -> String {
    #[derive(Deserialize)]
    struct Asked {
        arrivals: Arrivals,
        in_flight_max: u32,
        sql: Option<SqlTerms>,
    }
    let invocation = &run.header.invocation;
    let (spacing, in_flight) = match invocation.asked::<Asked>(&invocation.verb) {
        Some(asked) => {
            let spacing = match asked.arrivals {
                Arrivals::Poisson => "Poisson",
                Arrivals::Uniform => "uniform",
            };
            let pipeline = asked.sql.map_or(1, |terms| terms.work.pipeline);
            let in_flight = asked.in_flight_max.saturating_mul(pipeline);
            (spacing, format!(", at most {in_flight} in flight"))
        }
        None => ("Poisson", String::new()),
    };
    format!(
        "Offered rates, {spacing} arrivals{in_flight}; response times count from the due time, \
         service times from the issue"
    )
}

/// Whether a class stayed level, in a word.
fn steady(point: &PointSummary, class: &ClassSummary) -> &'static str {
    match (&point.end, class.steady) {
        (End::Stopped, _) => "stopped",
        (End::Broken(_), _) => "broken",
        (End::Complete, None) => "-",
        (End::Complete, Some(_)) if class.met == Some(RateMet::No) => "-",
        (End::Complete, Some(steady)) => match steady.steady {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        },
    }
}

/// The fault of a point: its offered rate was not met, it certainly exceeded the latency bound, or
/// the measured time decides neither.
fn mark(class: &ClassSummary) -> &'static str {
    match (class.met, class.within.map(|within| within.verdict)) {
        (Some(RateMet::No), _) => "not met",
        (_, Some(BoundVerdict::Broken)) => "over the bound",
        (_, Some(BoundVerdict::Undecided)) | (Some(RateMet::Undecided), None) => "undecided",
        _ => "",
    }
}

/// The syncs of logs, apart from the commits that they make durable; `None` if there were none.
pub fn syncs(points: &[PointSummary]) -> Option<Block> {
    let with_syncs = |point: &PointSummary| Some((point.coordinates, point.syncs?));
    let rows: Vec<(Coordinates, SyncSummary)> = points.iter().filter_map(with_syncs).collect();
    if rows.is_empty() {
        return None;
    }
    let table = TableOf::of("The syncs alone", rows)
        .text("point", |(point, _)| point.to_string())
        .count("syncs/s", |(_, syncs)| syncs.per_s)
        .number("commits each", |(_, syncs)| {
            format!("{:.1}", syncs.commits_each)
        })
        .time("p50", |(_, syncs)| syncs.latency.p50_us)
        .time("p99", |(_, syncs)| syncs.latency.p99_us)
        .time("p99.9", |(_, syncs)| syncs.latency.p999_us)
        .time("max", |(_, syncs)| syncs.latency.max_us);
    Some(table.block())
}

/// Shows that the whole volume was measured, not a corner of it: the blocks that each class
/// touched, and the bytes that the kernel counted. `None` if nothing was measured.
pub fn coverage(points: &[PointSummary], findings: &[Finding]) -> Option<Section> {
    let mut names: Vec<&str> = Vec::new();
    for class in points.iter().flat_map(|point| &point.classes) {
        if !names.contains(&class.name.as_str()) {
            names.push(&class.name);
        }
    }
    let mut blocks: Vec<Block> = names
        .iter()
        .filter_map(|name| touched(points, name))
        .map(Block::Text)
        .collect();
    blocks.extend(counted_by_kernel(points, findings).map(Block::Text));
    blocks.extend(timed_by_kernel(points).map(Block::Text));
    let lead = "The point that touched most, of each class.";
    (!blocks.is_empty()).then(|| parts::section("coverage", "What was touched", lead, blocks))
}

fn touched(points: &[PointSummary], name: &str) -> Option<String> {
    let of_class = points
        .iter()
        .flat_map(|point| &point.classes)
        .filter(|class| class.name == name);
    let widest = of_class.max_by_key(|class| class.coverage.distinct)?;
    // The parts of several ranks have it, and their sum has none.
    if widest.coverage.watched == 0 {
        return None;
    }
    let coverage = widest.coverage;
    let expected = coverage.expected.map_or_else(String::new, |expected| {
        format!(" ({} expected by chance)", parts::count(expected.round()))
    });
    Some(format!(
        "{name} I/O touched {} of {} blocks of {}{expected}, in {} of {} slices of the volume.",
        parts::count(coverage.distinct as f64),
        parts::count(coverage.watched as f64),
        Bytes(widest.io_bytes.into()),
        coverage.slices_touched,
        coverage.slices
    ))
}

/// The kernel's byte count of the devices, over all points; `None` if not available. `findings` are
/// those about the target.
fn counted_by_kernel(points: &[PointSummary], findings: &[Finding]) -> Option<String> {
    let witnesses = points.iter().filter_map(|point| point.witness);
    let (device, asked) = witnesses.fold((0, 0), |(device, asked), witness| {
        (device + witness.device_bytes, asked + witness.asked_bytes)
    });
    if asked == 0 {
        return None;
    }
    let share = device as f64 / asked as f64;
    let has_holes = findings
        .iter()
        .any(|finding| finding.is(FindingName::Holes));
    let why = match share {
        ..0.98 if has_holes => ": blocks that were never written are answered without the device",
        ..0.98 => ": the rest was answered by a cache or another layer",
        ..=1.02 => "",
        _ => ": the devices had other work",
    };
    Some(format!(
        "The kernel counted {} of the requested bytes on the devices below{why}.",
        parts::percent(share)
    ))
}

/// The kernel's mean time of I/Os beside Rigel's, at the first point where it is known, and why it
/// is unknown at others; `None` without counters.
fn timed_by_kernel(points: &[PointSummary]) -> Option<String> {
    let classes = || points.iter().flat_map(|point| &point.classes);
    let first = points.iter().find_map(|point| {
        let class = point.classes.first()?;
        let own = class.service.or(class.latency)?.mean_us;
        Some((point.coordinates, class.kernel_mean_us?, own))
    });
    let unknown = classes().filter_map(|class| class.kernel_mean_unknown.as_deref());
    let without = match (unknown.clone().count(), unknown.clone().next()) {
        (0, _) | (_, None) => String::new(),
        (1, Some(why)) => format!(" At one point that mean is unknown: {why}."),
        (many, Some(why)) => {
            format!(" At {many} points that mean is unknown; at the first of them, {why}.")
        }
    };
    let text = first.map(|(at, kernel, own)| {
        format!(
            "By the kernel's counters an I/O took {} in queue and device on average at {at}, by \
             Rigel's records {} from issue to completion.",
            parts::time(kernel),
            parts::time(own)
        )
    });
    match (text, without.is_empty()) {
        (None, true) => None,
        (text, _) => Some(
            format!("{}{without}", text.unwrap_or_default())
                .trim_start()
                .into(),
        ),
    }
}
