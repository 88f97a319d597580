//! The tables of all points, and which blocks they touched.

use super::document::{Block, Section, Table, Unit};
use super::parts;
use rigel_analyse::plan::SqlTerms;
use rigel_analyse::{BoundVerdict, ClassSummary, Estimate, LatencySummary, PointSummary, RateMet};
use rigel_model::record::End;
use rigel_model::record::journal::Run;
use rigel_model::{Arrivals, Bytes, Finding, FindingName, Step};
use serde::Deserialize;

/// A table with more rows than this is collapsed on a page.
const OPEN_MAX: usize = 14;

/// Units of the tables of points.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    /// The unit of throughput, such as `IOPS`.
    pub operations: &'a str,
    /// Bytes per second; Orion's are mebibytes.
    pub bytes: ByteRate,
}

/// A unit of bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRate {
    /// Megabytes, 10^6.
    Mb,
    /// Mebibytes, 2^20.
    Mib,
}

impl ByteRate {
    /// `MB/s`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mb => "MB/s",
            Self::Mib => "MiB/s",
        }
    }

    /// Bytes in one of this unit.
    pub fn bytes(self) -> f64 {
        match self {
            Self::Mb => 1e6,
            Self::Mib => f64::from(1 << 20),
        }
    }

    /// The unit of an axis.
    pub fn of_axis(self) -> Unit {
        match self {
            Self::Mb => Unit::MbPerSecond,
            Self::Mib => Unit::MibPerSecond,
        }
    }

    /// A number of bytes per second in this unit.
    fn of(self, class: &ClassSummary) -> String {
        parts::count(class.bytes_per_s() / self.bytes())
    }
}

impl<'a> Units<'a> {
    /// Megabytes, and these operations.
    pub fn of(operations: &'a str) -> Self {
        Self {
            operations,
            bytes: ByteRate::Mb,
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

/// The columns of an operation's response times.
const TIMES: [&str; 5] = ["*#mean", "#p50", "#p99 (95 % interval)", "#p99.9", "#max"];

fn times(class: &ClassSummary) -> [String; 5] {
    let time = |of: fn(&LatencySummary) -> f64| {
        parts::known(class.latency.as_ref(), |l| parts::time(of(l)))
    };
    let p99 = parts::known(class.latency, |latency| {
        let interval = class.confidence.and_then(|known| known.p99_us);
        parts::time_in_cell(Estimate {
            value: latency.p99_us,
            interval,
        })
    });
    [
        time(|l| l.mean_us),
        time(|l| l.p50_us),
        p99,
        time(|l| l.p999_us),
        time(|l| l.max_us),
    ]
}

/// Marks the column of classes as one of the full extent if every point has only one.
fn class_column(points: &[&PointSummary]) -> &'static str {
    if points.iter().any(|point| point.classes.len() > 1) {
        "class"
    } else {
        "*class"
    }
}

/// A table of points with one row per class. That of offered rates has the service times, too.
fn table(caption: &str, points: &[&PointSummary], units: Units<'_>, is_offered: bool) -> Table {
    let (rate, bytes) = (units.operations, units.bytes.name());
    let (point, [rate, precision, bytes]) = if is_offered {
        let throughput = [
            format!("#{rate} served"),
            "*#± (95 %)".into(),
            format!("*#{bytes}"),
        ];
        ("offered", throughput)
    } else {
        let throughput = [format!("#{rate}"), "#± (95 %)".into(), format!("#{bytes}")];
        ("point", throughput)
    };
    let mut columns = vec![point, class_column(points), &rate, &precision, &bytes];
    columns.extend(TIMES);
    let has_kernel = with_classes(points).any(|(_, class)| class.kernel_mean_us.is_some());
    if has_kernel {
        columns.push("*#kernel's mean");
    }
    if is_offered {
        columns.extend(["#service p50", "#service p99"]);
    }
    columns.extend(["*#CPU per I/O", "steady", "remark"]);
    let row = |(point, class): (&PointSummary, &ClassSummary)| {
        let precision = if class.met == Some(RateMet::No) {
            String::new()
        } else {
            parts::precision(class.rate())
        };
        let mut row = vec![
            point.coordinates.to_string(),
            class.name.clone(),
            parts::count(class.iops),
            precision,
            units.bytes.of(class),
        ];
        row.extend(times(class));
        if has_kernel {
            row.push(parts::known(class.kernel_mean_us, parts::time));
        }
        if is_offered {
            let service = class.service.as_ref();
            row.push(parts::known(service, |l| parts::time(l.p50_us)));
            row.push(parts::known(service, |l| parts::time(l.p99_us)));
        }
        row.push(parts::known(point.cpu_us_per_io, parts::time));
        row.extend([steady(point, class).into(), mark(class).into()]);
        row
    };
    let mut table = parts::rows(caption, &columns, with_classes(points).map(row).collect());
    table.folded = table.rows.len() > OPEN_MAX;
    table
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
    let known = points.iter().find_map(|point| {
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
    let text = known.map(|(at, kernel, own)| {
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
