//! The page of imported figures: loads and time series of other tools.

use super::page::{Axis, Block, Chart, Lines, Page, Plot, Section, Series, Shape, Unit};
use super::{distribution, soak, words};
use crate::analyse::{Estimate, ImportedResult, ImportedSummary, LoadFigures, SeriesSummary, SoakResult};
use crate::model::{Bytes, Moment};
use crate::record::Histogram;
use crate::record::imported::Figures;
use crate::record::journal::Run;
use crate::report::imported;

/// Maximum number of drawn series: iostat has hundreds.
const DRAWN_MAX: usize = 12;

/// Maximum number of overlaid distributions.
const DISTRIBUTIONS_MAX: usize = 4;

/// The page.
pub(super) fn page(run: &Run, result: &ImportedResult, mut page: Page) -> Page {
    if let Some(series) = &result.series {
        return series_page(run, result, series, page);
    }
    let found = &result.sources;
    let loads: Vec<&LoadFigures> = found.iter().flat_map(|one| &one.loads).collect();
    let series: Vec<&SeriesSummary> = found.iter().flat_map(|one| &one.series).collect();
    if let Some((place, load)) = result.best() {
        page.figures = headlines(&place, load);
    }
    page.sections.extend(curve(&loads));
    page.sections.extend(distributions(run));
    page.sections.extend(over_time(&series));
    if !loads.is_empty() {
        page.sections.push(words::section("loads", "Every load", "As the tool tells of it.", vec![table(&loads)]));
    }
    if !series.is_empty() {
        let lead = "What was counted, with the least and the greatest value and when they were.";
        page.sections.push(words::section("series", "Every series", lead, vec![series_table(&series)]));
    }
    if !result.findings.is_empty() {
        page.sections.push(words::findings(run.header.findings.iter().chain(&result.findings)));
    }
    let blocks = found.iter().flat_map(told).collect();
    page.sections.push(words::section("source", "Where it comes from", "Nothing here was measured by Rigel.", blocks));
    page
}

/// The page of a single throughput series, analysed as for a soak.
fn series_page(run: &Run, result: &ImportedResult, series: &SoakResult, frame: Page) -> Page {
    let mut page = soak::of_series(&run.header, series);
    (page.title, page.heading) = (frame.title, frame.heading);
    let blocks = result.sources.iter().flat_map(told).collect();
    page.sections.push(words::section("source", "Where it comes from", "Nothing here was measured by Rigel.", blocks));
    page
}

/// The figures of a load; `place` is its path in the JSON report.
fn headlines(place: &str, best: &LoadFigures) -> Vec<super::page::Headline> {
    let plain = |value| Estimate { value, interval: None };
    let at = format!("{}, {}", best.label, best.load);
    let name = |figure: &str| format!("{place}.{figure}");
    [
        best.iops.map(|iops| words::rate(&name("iops"), "most IOPS", plain(iops), at.clone())),
        best.mib_per_s.map(|mib| {
            let value = format!("{} MiB/s", words::count(mib));
            words::headline(&name("mib_per_s"), "throughput there", mib, value, String::new(), at.clone())
        }),
        best.p50_us.map(|p50| words::latency(&name("p50_us"), "p50 there", plain(p50), at.clone())),
        best.p99_us.map(|p99| words::latency(&name("p99_us"), "p99 there", plain(p99), at.clone())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Latency against throughput, if there are at least two loads.
fn curve(loads: &[&LoadFigures]) -> Option<Section> {
    type Of = fn(&LoadFigures) -> Option<f64>;
    let of: [(&str, Of); 3] = [("mean", |load| load.mean_us), ("p50", |load| load.p50_us), ("p99", |load| load.p99_us)];
    let series = of.iter().filter_map(|(name, value)| {
        let mut points: Vec<(f64, f64, String)> =
            loads.iter().filter_map(|load| Some((load.iops?, value(load)?, load.label.clone()))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        (points.len() > 1).then(|| Series {
            name: (*name).into(),
            shape: Shape::Points,
            x: points.iter().map(|point| point.0).collect(),
            y: points.iter().map(|point| Some(point.1)).collect(),
            labels: points.into_iter().map(|point| point.2).collect(),
            ..Series::default()
        })
    });
    let series: Vec<Series> = series.collect();
    let lines = Lines {
        x: Axis { label: "IOPS".into(), unit: Unit::PerSecond, ..Axis::default() },
        y: Axis { label: "latency".into(), unit: Unit::Microseconds, log: true, ..Axis::default() },
        series,
        ..Lines::default()
    };
    if lines.series.is_empty() {
        return None;
    }
    let chart = Chart {
        id: "imported-curve".into(),
        title: "Latency against throughput".into(),
        description: format!("Each of {} loads that the tool tells of.", loads.len()),
        plot: Plot::Lines(lines),
    };
    let lead = "Points are not joined: they may be of different work.";
    Some(words::section("latency-throughput", "Latency", lead, vec![Block::Chart(Box::new(chart))]))
}

/// Distributions of response times, for loads whose tool reports a histogram.
fn distributions(run: &Run) -> Option<Section> {
    let points = run.imported.iter().flat_map(|one| match &one.figures {
        Figures::Loads(points) => points.as_slice(),
        Figures::Series(_) => &[],
    });
    let flows = points.flat_map(|point| point.flows.iter().map(move |flow| (point, flow)));
    let all: Vec<(String, Histogram)> = flows
        .filter_map(|(point, flow)| {
            let of = |name: &str| flow.latencies.iter().find(|it| it.of == name && it.histogram.is_some());
            let histogram = of("total").or_else(|| of("completion"))?.histogram.clone()?;
            (histogram.count() > 0).then(|| (format!("{}, {}", point.label, flow.kind), histogram))
        })
        .collect();
    let drawn: Vec<(&str, Histogram)> =
        all.iter().take(DISTRIBUTIONS_MAX).map(|(name, histogram)| (name.as_str(), histogram.clone())).collect();
    let mut section = distribution::of_histograms(&drawn)?;
    section.lead = if drawn.len() < all.len() {
        format!("{} of {} loads, from the tool's own bins.", drawn.len(), all.len())
    } else {
        "From the tool's own bins.".into()
    };
    Some(section)
}

fn over_time(all: &[&SeriesSummary]) -> Option<Section> {
    let drawn = || all.iter().filter(|series| series.samples.len() > 1).take(DRAWN_MAX);
    let first = drawn().next()?.samples.first()?.begin;
    let panel = |series: &&SeriesSummary| Lines {
        x: Axis { label: "time".into(), unit: Unit::Moment, ..Axis::default() },
        y: Axis { label: series.name.clone(), unit: Unit::Number, ..Axis::default() },
        series: vec![Series {
            name: series.name.clone(),
            x: series.samples.iter().map(|sample| soak::wall(sample.begin, first)).collect(),
            y: series.samples.iter().map(|sample| sample.value).collect(),
            ..Series::default()
        }],
        ..Lines::default()
    };
    let panels: Vec<Lines> = drawn().map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let lead = if drawn().count() < all.len() {
        format!("{} of {} series; the table below has all.", panels.len(), all.len())
    } else {
        String::new()
    };
    let chart = Chart {
        id: "imported-series".into(),
        title: "Over time".into(),
        description: format!("{} series on one axis of time.", panels.len()),
        plot: Plot::Stack { panels },
    };
    Some(words::section("timeline", "Timeline", &lead, vec![Block::Chart(Box::new(chart))]))
}

fn table(loads: &[&LoadFigures]) -> Block {
    let figure = |value: Option<f64>| value.map_or_else(|| "-".into(), words::count);
    let time = |value: Option<f64>| value.map_or_else(|| "-".into(), words::time);
    let row = |load: &&LoadFigures| {
        vec![
            load.label.clone(),
            load.load.clone(),
            load.kind.clone(),
            load.io_bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes.into()).to_string()),
            figure(load.iops),
            figure(load.mib_per_s),
            time(load.mean_us),
            time(load.p50_us),
            time(load.p99_us),
            time(load.p999_us),
            time(load.max_us),
        ]
    };
    let columns = ["name", "load", "kind", "#size", "#IOPS", "#MiB/s", "#mean", "#p50", "#p99", "#p99.9", "#max"];
    Block::Table(words::rows("Loads; - is what the tool does not tell", &columns, loads.iter().map(row).collect()))
}

/// Formats a value of a series: waits are fractions of a millisecond, rates are thousands.
fn counted(value: f64) -> String {
    if value.abs() < 99.95 { imported::three_digits(value) } else { words::count(value) }
}

fn series_table(all: &[&SeriesSummary]) -> Block {
    let figure = |value: Option<f64>| value.map_or_else(|| "-".into(), counted);
    let when = |value: Option<(f64, Moment)>| {
        value.map_or_else(|| "-".into(), |(value, at)| format!("{} at {}", counted(value), at.short()))
    };
    let row = |series: &&SeriesSummary| {
        vec![
            series.name.clone(),
            series.unit.clone(),
            series.samples.len().to_string(),
            figure(series.median),
            when(series.least),
            when(series.greatest),
        ]
    };
    let columns = ["series", "unit", "#samples", "#median", "least", "greatest"];
    let mut table = words::rows("Series", &columns, all.iter().map(row).collect());
    table.folded = all.len() > DRAWN_MAX;
    Block::Table(table)
}

fn told(found: &ImportedSummary) -> Vec<Block> {
    let pair = |(name, value): &(String, String)| vec![name.clone(), value.clone()];
    let mut rows =
        vec![vec!["files".into(), found.sources.join(", ")], vec!["written by".into(), found.tool_and_version()]];
    rows.extend(found.told.iter().map(pair));
    let mut blocks = vec![Block::Table(words::rows("What the file says of itself", &["", "value"], rows))];
    blocks.extend(found.notes.iter().map(|note| Block::Text(note.clone())));
    blocks
}
