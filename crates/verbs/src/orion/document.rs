//! The report of `rigel orion`: the matrix of small and large loads as heat maps.

use super::result::{MatrixCell, MatrixResult};
use rigel_analyse::plan::search::{LARGE, SMALL};
use rigel_analyse::{ClassSummary, CurveShape, LatencyFigure, PointSummary};
use rigel_model::Coordinates;
use rigel_model::record::PointRecord;
use rigel_model::record::journal::Run;
use rigel_report::distribution::Chosen;
use rigel_report::document::{Block, Chart, Document, Headline, Heat, Plot, Section, Shape, Unit};
use rigel_report::frame::about;
use rigel_report::points::{self, Units};
use rigel_report::throughput::{self, Group, first_classes};
use rigel_report::{distribution, parts, setup, timeline};

/// Orion's MBPS are mebibytes per second.
const UNITS: Units<'_> = Units {
    operations: "IOPS",
    bytes: Unit::MibPerSecond,
};

/// Maximum number of columns and of rows of a heat map with values in its cells.
const WRITTEN_MAX: usize = 8;

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    result: &MatrixResult,
    findings: Section,
    frame: Document,
) -> Document {
    let header = &run.header;
    let (done, planned) = (result.points.len(), header.points.len());
    let of = if planned > 0 {
        format!(" of {planned}")
    } else {
        String::new()
    };
    let records = run.joined();
    Document {
        about: about(header, &workload(run), &format!("{done}{of} data points")),
        headlines: headlines(result),
        sections: sections(run, &records, result, findings),
        ..frame
    }
}

fn place(point: &PointSummary) -> String {
    point.coordinates.to_string()
}

fn headlines(result: &MatrixResult) -> Vec<Headline> {
    let mut figures = Vec::new();
    if let Some(MatrixCell {
        index,
        point,
        at,
        class,
    }) = result.most(SMALL)
    {
        let name = format!("points.{index}.classes.{at}.iops");
        let note = format!(
            "small I/O of {}, {}",
            parts::size(class.io_bytes),
            place(point)
        );
        figures.push(parts::rate(&name, "max small IOPS", class.rate(), note));
    }
    if let Some(MatrixCell {
        index,
        point,
        at,
        class,
    }) = result.most(LARGE)
    {
        let name = format!("points.{index}.classes.{at}.mib_per_s");
        let note = format!(
            "large I/O of {}, {}; MBPS are MiB per second",
            parts::size(class.io_bytes),
            place(point)
        );
        let value = parts::count(class.mib_per_s);
        let precision = parts::plus_minus(class.rate());
        figures.push(parts::headline(
            &name,
            "max large MBPS",
            class.mib_per_s,
            value,
            precision,
            note,
        ));
    }
    if let Some(MatrixCell {
        index,
        point,
        at,
        class,
    }) = result.quickest()
        && let Some(mean) = class.time(LatencyFigure::Mean)
        && let Some(p99) = class.time(LatencyFigure::P99)
    {
        let note = place(point);
        let path = format!("points.{index}.classes.{at}");
        figures.push(parts::latency(
            &format!("{path}.mean_us"),
            "minimum small latency",
            mean,
            format!("mean, {note}"),
        ));
        figures.push(parts::latency(
            &format!("{path}.p99_us"),
            "p99 there",
            p99,
            note,
        ));
    }
    figures
}

fn sections(
    run: &Run,
    records: &[PointRecord],
    result: &MatrixResult,
    findings: Section,
) -> Vec<Section> {
    let MatrixResult { points, shape, .. } = result;
    let mut sections: Vec<Section> = fields(points).into_iter().collect();
    sections.extend(alone(points, shape));
    sections.push(findings);
    sections.extend(distribution::section(&chosen(points, records, shape)));
    sections.extend(timeline::section(run, UNITS));
    sections.push(points::section(run, points, UNITS));
    sections.extend(points::coverage(points, &run.header.findings));
    sections.push(setup::section(&run.header, &workload(run)));
    sections
}

/// The three heat maps; `None` if no cell has both small and large I/O, because lines show that
/// better.
fn fields(points: &[PointSummary]) -> Option<Section> {
    let is_alone = |point: &PointSummary| {
        let (small, large) = point.coordinates.small_and_large();
        small == 0 || large == 0
    };
    if points.iter().all(is_alone) {
        return None;
    }
    let iops = |class: &ClassSummary| Some(class.iops);
    let charts = [
        (
            "matrix-iops",
            "IOPS of small I/O",
            SMALL,
            Unit::PerSecond,
            false,
            iops as fn(&ClassSummary) -> Option<f64>,
        ),
        (
            "matrix-mbps",
            "MBPS of large I/O",
            LARGE,
            Unit::MibPerSecond,
            false,
            |class| Some(class.mib_per_s),
        ),
        (
            "matrix-p99",
            "p99 of small I/O",
            SMALL,
            Unit::Microseconds,
            true,
            |class| Some(class.latency?.p99_us),
        ),
    ];
    let charts = charts
        .map(|(id, title, class, unit, log, of)| field(points, id, title, class, (unit, log), of));
    let lead = "More small I/Os are outstanding to the right, more large ones upward. MBPS are \
                MiB per second, as in Orion.";
    Some(parts::section(
        "matrix",
        "Orion's matrix",
        lead,
        parts::beside(charts).into_iter().collect(),
    ))
}

fn field(
    points: &[PointSummary],
    id: &str,
    title: &str,
    class: &str,
    (unit, log): (Unit, bool),
    of: fn(&ClassSummary) -> Option<f64>,
) -> Option<Chart> {
    let mut cells: Vec<(u32, u32, f64)> = Vec::new();
    for point in points {
        let (small, large) = point.coordinates.small_and_large();
        let value = point
            .classes
            .iter()
            .find(|it| it.name == class && it.done > 0)
            .and_then(of);
        cells.extend(value.map(|value| (small, large, value)));
    }
    let axis = |of: fn(&(u32, u32, f64)) -> u32| {
        let mut loads: Vec<u32> = cells.iter().map(of).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    };
    let (columns, rows) = (axis(|cell| cell.0), axis(|cell| cell.1));
    let value = |small: u32, large: u32| {
        cells
            .iter()
            .find(|(s, l, _)| (*s, *l) == (small, large))
            .map(|(.., value)| *value)
    };
    let least = cells
        .iter()
        .min_by(|one, other| one.2.total_cmp(&other.2))?;
    let most = cells
        .iter()
        .max_by(|one, other| one.2.total_cmp(&other.2))?;
    let shown = |value: f64| {
        if unit == Unit::Microseconds {
            parts::time(value)
        } else {
            parts::count(value)
        }
    };
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
        values: rows
            .iter()
            .map(|large| columns.iter().map(|small| value(*small, *large)).collect())
            .collect(),
        range: None,
        written: columns.len() <= WRITTEN_MAX && rows.len() <= WRITTEN_MAX,
        columns: columns.iter().map(ToString::to_string).collect(),
        rows: rows.iter().map(ToString::to_string).collect(),
        unit,
        label: title.into(),
        log,
    };
    Some(parts::chart(id, title, description, Plot::Heat(heat)))
}

/// Small I/O without large I/O, and large without small, as lines.
fn alone(points: &[PointSummary], shape: &CurveShape) -> Option<Section> {
    let small = first_classes(points, |point| {
        point
            .coordinates
            .small_alone()
            .is_some_and(|small| small > 0)
    });
    let large = first_classes(points, |point| {
        point
            .coordinates
            .large_alone()
            .is_some_and(|large| large > 0)
    });
    let group = Group {
        name: "",
        loads: small.clone(),
        shape: Shape::Line,
    };
    let latency = throughput::latency_chart(&[group], throughput::marks(shape, None, None), "IOPS");
    let mut blocks: Vec<Block> = parts::beside([latency]).into_iter().collect();
    blocks.extend(parts::beside([
        throughput::depth_chart(&small, shape, "IOPS"),
        throughput::large_chart(&large, "large I/O", Unit::MibPerSecond),
    ]));
    let lead = "Small I/O without large I/O, and large I/O without small I/O.";
    let section = parts::section(
        "latency-throughput",
        "Latency against throughput",
        lead,
        blocks,
    );
    (!section.blocks.is_empty()).then_some(section)
}

/// Points for the distributions: the minimum and maximum number of small I/Os alone, the knee
/// between them, and the highest load with large I/O.
fn chosen<'a>(
    points: &[PointSummary],
    records: &'a [PointRecord],
    shape: &CurveShape,
) -> Vec<Chosen<'a>> {
    let alone = || {
        points
            .iter()
            .filter_map(|point| point.coordinates.small_alone())
            .filter(|small| *small > 0)
    };
    let knee = shape
        .knee
        .and_then(|knee| alone().find(|small| (f64::from(*small) - knee.load).abs() < 0.5));
    let mut wanted: Vec<(u32, u32)> = [alone().min(), knee, alone().max()]
        .into_iter()
        .flatten()
        .map(|small| (small, 0))
        .collect();
    let loads = points
        .iter()
        .map(|point| point.coordinates.small_and_large());
    wanted.extend(
        loads
            .filter(|(small, large)| *small > 0 && *large > 0)
            .max(),
    );
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    for (small, large) in wanted {
        let of_cell = |record: &&PointRecord| record.coordinates == Coordinates::cell(small, large);
        if let Some(record) = records.iter().find(of_cell)
            && chosen
                .iter()
                .all(|(_, known)| known.coordinates != record.coordinates)
        {
            chosen.push((record.coordinates.to_string(), record));
        }
    }
    chosen
}

/// The workload, from the planned points.
fn workload(run: &Run) -> String {
    if run.header.invocation.verb != "orion" {
        return String::new();
    }
    let streams = || run.header.points.iter().flat_map(|point| &point.streams);
    let words = |name: &str| {
        let stream = streams().find(|stream| stream.name == name)?;
        let writes = match stream.mix.writes.get() {
            0.0 => "reads".to_string(),
            share => format!("{} writes", parts::percent(share)),
        };
        Some(format!(
            "{name} I/O of {}, {}, {writes}",
            parts::size(stream.length),
            stream.pattern
        ))
    };
    [SMALL, LARGE]
        .into_iter()
        .filter_map(words)
        .collect::<Vec<_>>()
        .join("; ")
}
