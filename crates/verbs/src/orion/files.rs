//! Orion's files, in Orion's own format.
//!
//! Input: the request (from [`plan::orion`](super::plan): this module may read it, as it is
//! stored in the journal), names, the targets, and the records of the points. Output: the text of
//! each file. What existing scripts read (the CSV files, and the lines they search for in the
//! summary) is identical to Orion's, byte for byte; `docs/methods/orion.md` has the derivation. A
//! label always names the cell of the numbers next to it, and an incomplete point is never listed
//! among the complete ones.

use super::request::{LargeType, OrionRequest};
use rigel_analyse::plan::search::{LARGE, SMALL};
use rigel_model::record::{End, Histogram, Latencies, PointRecord, StreamRecord, Window};
use rigel_model::{Coordinates, Kind, Layout, MIB, Nanos, in_line};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};

/// The names of the files, and the origin they state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    /// Prefix of every file, with its path.
    pub testname: &'a str,
    /// Start of the run, as `yyyymmdd_hhmm`.
    pub stamp: &'a str,
    /// Version of the program.
    pub version: &'a str,
    /// The arguments of the command line, as typed, without the program's name.
    pub arguments: &'a [String],
}

impl Names<'_> {
    /// The common prefix of the run's files: `mytest_20110510_2303`.
    pub fn prefix(&self) -> String {
        format!("{}_{}", self.testname, self.stamp)
    }

    /// The path of a file, such as `summary.txt`.
    pub fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("{}_{file}", self.prefix()))
    }
}

/// A target and its size in bytes.
pub type Member<'a> = (&'a Path, u64);

/// The ends of the names of the six files.
pub const SUFFIXES: [&str; 6] = [
    "summary.txt",
    "mbps.csv",
    "iops.csv",
    "lat.csv",
    "hist.txt",
    "trace.txt",
];

/// All six files, as the end of the name and text.
pub fn files(
    request: &OrionRequest,
    names: &Names<'_>,
    members: &[Member<'_>],
    points: &[PointRecord],
) -> impl Iterator<Item = (&'static str, String)> {
    let texts = [
        summary(request, names, members, points),
        mbps_csv(request, points),
        iops_csv(request, points),
        lat_csv(request, points),
        hist_txt(names, points),
        trace_txt(names, points),
    ];
    SUFFIXES.into_iter().zip(texts)
}

/// True if a file with this end of its name that begins so is Orion's, or ours, of the run with this `stamp`. The
/// csv files and the summary say it in their names only.
pub fn begins(suffix: &str, stamp: &str, begins: &str) -> bool {
    let first = begins.lines().next().unwrap_or_default();
    match suffix {
        "summary.txt" => first.starts_with("ORION VERSION "),
        "hist.txt" | "trace.txt" => {
            first.starts_with("# ORION VERSION ") && first.contains(&format!("_{stamp}: "))
        }
        _ => first.starts_with("Large/Small"),
    }
}

/// The text that is printed before the targets are examined.
pub fn banner(request: &OrionRequest, names: &Names<'_>) -> String {
    format!(
        "ORION: ORacle IO Numbers -- Version {}\n{}\nCalibration will take approximately {} \
         minutes.\nUsing a large value for -cache_size may take longer.\n",
        names.version,
        names.prefix(),
        request.estimate_minutes()
    )
}

/// A more accurate estimate than Orion's, printed below the banner, for the `left` data points
/// still to be run: it includes the warm-up and not the idle cell. Of a model, whose time is not
/// `is_real`, only their number.
pub fn estimate_line(request: &OrionRequest, left: usize, is_real: bool) -> String {
    let (range, cells) = (request.estimate_seconds(), request.cells().len());
    let share = |seconds: &u64| seconds * left as u64 / cells.max(1) as u64;
    let (least, most) = (share(range.start()), share(range.end()));
    let time = if most < 120 {
        format!("{least} to {most} seconds")
    } else {
        format!("{} to {} minutes", least / 60, most.div_ceil(60))
    };
    let of = if left == cells {
        String::new()
    } else {
        format!(" of {cells}")
    };
    let s = if cells == 1 { "" } else { "s" };
    let warming = if request.cache_size.is_some_and(|mib| mib > 0) {
        ", and the reading for -cache_size"
    } else {
        ""
    };
    let takes = if is_real {
        format!("; with warm-up that takes {time}{warming}")
    } else {
        String::new()
    };
    format!("{left}{of} data point{s} to run{takes}.\n")
}

/// The lines that `-verbose` prints when the point of `cell` begins; empty for a cell of another
/// matrix.
pub fn verbose_lines(request: &OrionRequest, cell: Coordinates) -> String {
    let number = request.number_of(cell);
    number.map_or_else(String::new, |number| {
        format!(
            "Running point: {cell}\nPoint {number} out of {}\n",
            request.total_data_points()
        )
    })
}

/// `summary.txt`.
pub fn summary(
    request: &OrionRequest,
    names: &Names<'_>,
    members: &[Member<'_>],
    points: &[PointRecord],
) -> String {
    let mut text = format!("ORION VERSION {}\n\nCommand line:\n", names.version);
    for argument in names.arguments {
        text.push_str(&in_line(argument));
        text.push(' ');
    }
    text.push_str("\n\nThese options enable these settings:\n");
    text.push_str(&settings(request));
    text.push('\n');
    for (path, bytes) in members {
        line(
            &mut text,
            format_args!(
                "Name: {}\tSize: {bytes}",
                in_line(&path.display().to_string())
            ),
        );
    }
    line(&mut text, format_args!("{} files found.\n", members.len()));
    text.push_str(&result_block(request, points));
    text
}

fn settings(request: &OrionRequest) -> String {
    let large = match request.large_type {
        LargeType::Rand => "large random IOs",
        LargeType::Seq => "large sequential streams",
    };
    let streams = match request.simulate {
        // Orion's line has a trailing space.
        Layout::Concat => "one LUN per stream ",
        Layout::Stripe { .. } => "RAID-0 striping for all streams",
    };
    let cache = request
        .cache_size
        .map_or_else(|| "not specified".into(), |mib| format!("{mib} MB"));
    let mut text = String::new();
    line(&mut text, format_args!("Test: {}", request.testname));
    line(
        &mut text,
        format_args!("Small IO size: {} KB", request.size_small / 1024),
    );
    line(
        &mut text,
        format_args!("Large IO size: {} KB", request.size_large / 1024),
    );
    line(
        &mut text,
        format_args!("IO types: small random IOs, {large}"),
    );
    line(
        &mut text,
        format_args!("Sequential stream pattern: {streams}"),
    );
    if request.large_type == LargeType::Seq {
        line(
            &mut text,
            format_args!(
                "Number of concurrent IOs per stream: {}",
                request.num_stream_io
            ),
        );
    }
    line(&mut text, format_args!("Writes: {}%", request.write));
    line(&mut text, format_args!("Cache size: {cache}"));
    line(
        &mut text,
        format_args!("Duration for each data point: {} seconds", request.duration),
    );
    line(
        &mut text,
        format_args!("Small Columns:,{}", fields(&request.small_columns())),
    );
    line(
        &mut text,
        format_args!("Large Columns:,{}", fields(&request.large_rows())),
    );
    line(
        &mut text,
        format_args!("Total Data Points: {}", request.total_data_points()),
    );
    text
}

/// The end of the summary, which is also printed at the end of the run.
pub fn result_block(request: &OrionRequest, points: &[PointRecord]) -> String {
    let cells = complete_cells(request, points);
    let mut blocks = Vec::new();
    if let Some((cell, mbps)) = best(&cells, Cell::mbps, |new, best| new > best) {
        blocks.push(format!("Maximum Large MBPS={mbps:.2} @ {}\n", label(cell)));
    }
    if let Some((most, iops)) = best(&cells, Cell::iops, |new, best| new > best) {
        blocks.push(format!(
            "Maximum Small IOPS={iops:.0} @ {}\n{}",
            label(most),
            latency_lines(most)
        ));
        if let Some((least, latency)) = best(&cells, Cell::latency_us, |new, best| new < best) {
            let head = format!(
                "Minimum Small Latency={latency:.3} usecs @ {}\n",
                label(least)
            );
            blocks.push(format!(
                "{head}{}{}",
                latency_lines(least),
                summary_histogram(most)
            ));
        }
    }
    if blocks.is_empty() {
        blocks.push("No complete data point has done an I/O, so there is no maximum.\n".into());
    }
    let warnings = failed_lines(&cells) + &incomplete_lines(request, points);
    if !warnings.is_empty() {
        blocks.push(warnings);
    }
    blocks.join("\n")
}

/// `mbps.csv`: large I/O in MiB per second; rows from 1.
pub fn mbps_csv(request: &OrionRequest, points: &[PointRecord]) -> String {
    let (columns, rows) = (request.small_columns(), without_idle(request.large_rows()));
    csv(&columns, &rows, &complete_cells(request, points), |cell| {
        cell.mbps().map(|mbps| format!("{mbps:.2}"))
    })
}

/// `iops.csv`: small I/O in operations per second; columns from 1.
pub fn iops_csv(request: &OrionRequest, points: &[PointRecord]) -> String {
    let (columns, rows) = (without_idle(request.small_columns()), request.large_rows());
    csv(&columns, &rows, &complete_cells(request, points), |cell| {
        cell.iops().map(|iops| format!("{iops:.0}"))
    })
}

/// `lat.csv`: mean response time of small I/O in microseconds; columns from 1.
pub fn lat_csv(request: &OrionRequest, points: &[PointRecord]) -> String {
    let (columns, rows) = (without_idle(request.small_columns()), request.large_rows());
    csv(&columns, &rows, &complete_cells(request, points), |cell| {
        cell.latency_us().map(|us| format!("{us:.2}"))
    })
}

/// `hist.txt`: the histogram of every class and kind of every point, one line per non-empty bucket.
pub fn hist_txt(names: &Names<'_>, points: &[PointRecord]) -> String {
    let mut text = format!(
        "# ORION VERSION {} {}: latency histograms\n# point, class, kind, from us (inclusive), to \
         us (exclusive), I/Os; then their sum. The last bucket has no end.\n",
        names.version,
        names.prefix()
    );
    for point in points {
        text.push_str(&point_comment(point));
        for (stream, kind) in classes(point) {
            let Some(total) = stream.total_of(kind) else {
                continue;
            };
            let who = format!("{} {} {}", key(point.coordinates), stream.name, kind.name());
            for (bucket, count) in orion_counts(&total.response.histogram)
                .iter()
                .enumerate()
                .filter(|(_, n)| **n > 0)
            {
                let (from, to) = orion_edges(bucket);
                let to = if bucket + 1 == ORION_BUCKETS {
                    "-".into()
                } else {
                    to.to_string()
                };
                line(&mut text, format_args!("{who} {from} {to} {count}"));
            }
            line(&mut text, format_args!("{who} sum - {}", total.done));
        }
    }
    text
}

/// `trace.txt`: one line for every second and class of every point.
pub fn trace_txt(names: &Names<'_>, points: &[PointRecord]) -> String {
    let mut text = format!(
        "# ORION VERSION {} {}: every second of every data point\n# point, class, second, reads, \
         writes, failed, bytes, mean us, min us, max us\n",
        names.version,
        names.prefix()
    );
    for point in points {
        text.push_str(&point_comment(point));
        for stream in &point.streams {
            let seconds = stream
                .kinds
                .iter()
                .map(|kind| kind.windows.len())
                .max()
                .unwrap_or(0);
            for second in 0..seconds {
                line(
                    &mut text,
                    format_args!("{} {}", key(point.coordinates), trace_line(stream, second)),
                );
            }
        }
    }
    text
}

fn trace_line(stream: &StreamRecord, second: usize) -> String {
    let (mut both, mut done) = (Window::default(), [0, 0]);
    for kind in &stream.kinds {
        let Some(window) = kind.windows.get(second) else {
            continue;
        };
        both.merge(window);
        done[usize::from(kind.kind != Kind::Read)] += window.done;
    }
    let [reads, writes] = done;
    let bytes = both.done * u64::from(stream.length);
    let latency = match Moments::of(&both.response) {
        Some(moments) => format!(
            "{:.3} {:.3} {:.3}",
            moments.mean_us, moments.min_us, moments.max_us
        ),
        None => "- - -".into(),
    };
    format!(
        "{} {} {reads} {writes} {} {bytes} {latency}",
        stream.name,
        second + 1,
        both.failures()
    )
}

/// Describes a point in a comment above its lines.
fn point_comment(point: &PointRecord) -> String {
    format!(
        "# {} started {} warm-up {:.3} s measured {:.3} s {}\n",
        key(point.coordinates),
        point.started,
        point.warm_up.as_secs_f64(),
        point.measured.as_secs_f64(),
        ending(&point.end)
    )
}

fn ending(end: &End) -> String {
    match end {
        End::Complete => "complete".into(),
        End::Stopped => "stopped".into(),
        End::Broken(why) => format!("broken: {}", in_line(&why.replace('\n', " "))),
    }
}

/// The classes and kinds of a point, in the order of Orion's histograms: small reads, small writes,
/// large reads, large writes.
fn classes(point: &PointRecord) -> impl Iterator<Item = (&StreamRecord, Kind)> {
    [SMALL, LARGE]
        .into_iter()
        .filter_map(|name| point.stream(name))
        .flat_map(|stream| Kind::ALL.map(|kind| (stream, kind)))
}

/// Totals of one measured cell.
struct Cell<'a> {
    point: &'a PointRecord,
    small: Option<Window>,
    large: Option<Window>,
}

impl<'a> Cell<'a> {
    fn of(point: &'a PointRecord) -> Self {
        let total = |name| point.stream(name).map(StreamRecord::total);
        Self {
            point,
            small: total(SMALL),
            large: total(LARGE),
        }
    }

    /// Large MiB per second; `None` if no large I/O completed.
    fn mbps(&self) -> Option<f64> {
        let done = self
            .large
            .as_ref()
            .map(|window| window.done)
            .filter(|done| *done > 0)?;
        let length = self.point.stream(LARGE)?.length;
        Some(done as f64 * f64::from(length) / MIB as f64 / self.seconds()?)
    }

    /// Small I/Os per second; `None` if none completed.
    fn iops(&self) -> Option<f64> {
        let done = self
            .small
            .as_ref()
            .map(|window| window.done)
            .filter(|done| *done > 0)?;
        Some(done as f64 / self.seconds()?)
    }

    /// Mean response time of small I/O, in microseconds.
    fn latency_us(&self) -> Option<f64> {
        Moments::of(&self.small.as_ref()?.response).map(|moments| moments.mean_us)
    }

    fn seconds(&self) -> Option<f64> {
        (self.point.measured > Nanos(0)).then(|| self.point.measured.as_secs_f64())
    }

    /// Counts of small I/Os of one kind by Orion's buckets.
    fn small_counts(&self, kind: Kind) -> [u64; ORION_BUCKETS] {
        let total = self
            .point
            .stream(SMALL)
            .and_then(|stream| stream.total_of(kind))
            .unwrap_or_default();
        orion_counts(&total.response.histogram)
    }
}

/// The figures of Orion's latency lines, in microseconds.
#[expect(clippy::struct_field_names, reason = "a number carries its unit")]
struct Moments {
    mean_us: f64,
    min_us: f64,
    max_us: f64,
    deviation_us: f64,
}

impl Moments {
    /// `None` if nothing was recorded.
    fn of(latencies: &Latencies) -> Option<Self> {
        let count = latencies.histogram.count();
        if count == 0 {
            return None;
        }
        let mean = latencies.sum as f64 / count as f64;
        // If all values are equal, rounding can make the variance slightly negative.
        let variance = (latencies.sum_squares / count as f64 - mean * mean).max(0.0);
        Some(Self {
            mean_us: mean / 1e3,
            min_us: Nanos(latencies.min).as_micros_f64(),
            max_us: Nanos(latencies.max).as_micros_f64(),
            deviation_us: variance.sqrt() / 1e3,
        })
    }
}

/// The last record of each cell, in running order: if a cell was stopped and run again, the last
/// run counts.
fn last_records<'a>(request: &OrionRequest, points: &'a [PointRecord]) -> Vec<&'a PointRecord> {
    let last: BTreeMap<Coordinates, &PointRecord> = points
        .iter()
        .map(|point| (point.coordinates, point))
        .collect();
    request
        .cells()
        .iter()
        .filter_map(|cell| last.get(cell).copied())
        .collect()
}

fn complete_cells<'a>(request: &OrionRequest, points: &'a [PointRecord]) -> Vec<Cell<'a>> {
    last_records(request, points)
        .into_iter()
        .filter(|point| point.end == End::Complete)
        .map(Cell::of)
        .collect()
}

/// The first cell whose figure is `better` than all previous ones, and the figure.
fn best<'a, 'b>(
    cells: &'b [Cell<'a>],
    figure: impl Fn(&Cell<'a>) -> Option<f64>,
    better: impl Fn(f64, f64) -> bool,
) -> Option<(&'b Cell<'a>, f64)> {
    let figures = cells
        .iter()
        .filter_map(|cell| figure(cell).map(|figure| (cell, figure)));
    figures.reduce(|best, new| if better(new.1, best.1) { new } else { best })
}

/// `Small=5 and Large=0`.
fn label(cell: &Cell<'_>) -> String {
    let (small, large) = cell.point.coordinates.small_and_large();
    format!("Small={small} and Large={large}")
}

/// `Small=5 Large=0`: two words that no other line of the file contains.
fn key(coordinates: Coordinates) -> String {
    let (small, large) = coordinates.small_and_large();
    format!("Small={small} Large={large}")
}

/// A latency line for each kind of small I/O in the cell.
fn latency_lines(cell: &Cell<'_>) -> String {
    let mut text = String::new();
    for (kind, name) in [(Kind::Read, "Read"), (Kind::Write, "Write")] {
        let total = cell
            .point
            .stream(SMALL)
            .and_then(|stream| stream.total_of(kind));
        let Some(moments) = total.and_then(|total| Moments::of(&total.response)) else {
            continue;
        };
        let Moments {
            mean_us,
            min_us,
            max_us,
            deviation_us,
        } = moments;
        line(
            &mut text,
            format_args!(
                "Small {name} Latency: avg={mean_us:.3} us, min={min_us:.3} us, max={max_us:.3} \
                 us, std dev={deviation_us:.3} us @ {}",
                label(cell)
            ),
        );
    }
    text
}

/// Buckets of Orion's histograms: below 2 us, then doubling.
const ORION_BUCKETS: usize = 28;

/// Lower edge, inclusive, and upper edge, exclusive, of one of Orion's buckets, in microseconds.
/// The last bucket has no upper edge.
fn orion_edges(bucket: usize) -> (u64, u64) {
    (if bucket == 0 { 0 } else { 1 << bucket }, 2 << bucket)
}

/// The counts of a histogram by Orion's buckets; their sum is the number of all values.
///
/// The counts are exact: 1000 · 2^k ns = 250 · 2^(k+2), and 250 has 8 bits, so every edge of
/// Orion's buckets is an edge of ours.
fn orion_counts(histogram: &Histogram) -> [u64; ORION_BUCKETS] {
    let mut counts = [0; ORION_BUCKETS];
    for (low, _, count) in histogram.buckets() {
        let whole_us = (low / 1000).max(1);
        let bucket = (whole_us.ilog2() as usize).min(ORION_BUCKETS - 1);
        counts[bucket] += count;
    }
    counts
}

fn summary_histogram(cell: &Cell<'_>) -> String {
    let mut text = format!("Small Read / Write Latency Histogram @ {}\n", label(cell));
    text.push_str("\tLatency:\t\t# of IOs (read) \t # of IOs (write) \n");
    let (reads, writes) = (
        cell.small_counts(Kind::Read),
        cell.small_counts(Kind::Write),
    );
    for (bucket, (reads, writes)) in reads.iter().zip(&writes).enumerate() {
        let (from, to) = orion_edges(bucket);
        // Orion labels its first bucket with the whole microseconds it contains, and all others
        // with their edges.
        let to = if bucket == 0 { 1 } else { to };
        line(
            &mut text,
            format_args!("{from:>9} - {to}\t\tus:\t\t{reads}\t\t\t{writes}"),
        );
    }
    text
}

/// A line for each class and cause of failed I/Os in each complete cell.
fn failed_lines(cells: &[Cell<'_>]) -> String {
    let mut text = String::new();
    for cell in cells {
        for (class, window) in [(SMALL, &cell.small), (LARGE, &cell.large)] {
            for (cause, count) in window.iter().flat_map(|window| &window.failed) {
                line(
                    &mut text,
                    format_args!("Failed IOs={count} ({class}: {cause}) @ {}", label(cell)),
                );
            }
        }
    }
    text
}

/// A line for each incomplete cell with its known figures, and one for the cells that never began.
fn incomplete_lines(request: &OrionRequest, points: &[PointRecord]) -> String {
    let mut text = String::new();
    let records = last_records(request, points);
    for point in records
        .iter()
        .copied()
        .filter(|point| point.end != End::Complete)
    {
        let cell = Cell::of(point);
        let figures = [
            cell.iops()
                .map(|iops| format!(", {iops:.0} small IOs a second")),
            cell.latency_us().map(|us| format!(", {us:.3} us each")),
            cell.mbps()
                .map(|mbps| format!(", {mbps:.2} MB of large IO a second")),
        ];
        let figures: String = figures.into_iter().flatten().collect();
        let seconds = format!(
            "{:.1} of {} seconds",
            point.measured.as_secs_f64(),
            request.duration
        );
        let ending = ending(&point.end);
        line(
            &mut text,
            format_args!(
                "Incomplete @ {}: {seconds}{figures}, {ending}; in no csv file",
                label(&cell)
            ),
        );
    }
    let cells = request.cells().len();
    if records.len() < cells {
        line(
            &mut text,
            format_args!("Not run: {} of {cells} data points", cells - records.len()),
        );
    }
    text
}

/// The values, each seven columns wide, separated by commas.
fn fields<T: Display>(values: &[T]) -> String {
    values
        .iter()
        .map(|value| format!("{value:>7}"))
        .collect::<Vec<_>>()
        .join(",")
}

fn without_idle(mut loads: Vec<u32>) -> Vec<u32> {
    loads.retain(|load| *load > 0);
    loads
}

/// A matrix in Orion's format: the first field is eleven columns wide, the others seven. A row ends
/// after its last measured cell; earlier cells without a figure are blank.
fn csv(
    columns: &[u32],
    rows: &[u32],
    cells: &[Cell<'_>],
    figure: impl Fn(&Cell<'_>) -> Option<String>,
) -> String {
    let figures: BTreeMap<Coordinates, String> = cells
        .iter()
        .filter_map(|cell| figure(cell).map(|figure| (cell.point.coordinates, figure)))
        .collect();
    let mut text = String::new();
    let mut row = |first: &dyn Display, values: Vec<String>| {
        let comma = if values.is_empty() { "" } else { "," };
        line(
            &mut text,
            format_args!("{first:>11}{comma}{}", fields(&values)),
        );
    };
    row(&"Large/Small", columns.iter().map(u32::to_string).collect());
    for large in rows {
        let of_column = |small: &u32| figures.get(&Coordinates::cell(*small, *large));
        let mut values: Vec<Option<&String>> = columns.iter().map(of_column).collect();
        values.truncate(
            values
                .iter()
                .rposition(Option::is_some)
                .map_or(0, |last| last + 1),
        );
        row(
            large,
            values
                .into_iter()
                .map(|value| value.cloned().unwrap_or_default())
                .collect(),
        );
    }
    text
}

/// Appends a line.
fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(content);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;
    use crate::orion::{Matrix, RunLevel};
    use proptest::prelude::*;
    use rigel_model::record::histogram::bucket_of;
    use rigel_model::record::{Coverage, KindRecord, OperationTimes, Recorder};
    use rigel_model::{Bytes, Cause, KIB, Load, Outcome};

    const NAMES: Names<'_> = Names {
        testname: "mytest",
        stamp: "20110510_2303",
        version: "0.1.0",
        arguments: &[],
    };

    /// I/Os of one class: number, kind, and time of each.
    struct Ios(&'static str, Kind, u64, Nanos);

    /// The record of a point of `seconds` seconds in which `ios` completed.
    fn point(small: u32, large: u32, seconds: u64, ios: &[Ios]) -> PointRecord {
        let names = [(SMALL, small, 8192), (LARGE, large, 1 << 20)];
        let streams = names.into_iter().filter(|(_, depth, _)| *depth > 0);
        PointRecord {
            coordinates: Coordinates::cell(small, large),
            started: "2011-05-10T23:03:00+00:00".into(),
            began: Nanos(0),
            warm_up: Nanos::from_secs(1),
            measured: Nanos::from_secs(seconds),
            end: End::Complete,
            cpu: Nanos(0),
            cpus: 0,
            window: rigel_model::record::WINDOW,
            asked: None,
            streams: streams
                .map(|(name, depth, length)| stream(name, depth, length, seconds, ios))
                .collect(),
            samples: Vec::new(),
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: Vec::new(),
            left_out: Nanos(0),
        }
    }

    /// The kinds that Orion uses.
    const KINDS: [Kind; 2] = [Kind::Read, Kind::Write];

    fn stream(name: &str, depth: u32, length: u32, seconds: u64, ios: &[Ios]) -> StreamRecord {
        let mut record = StreamRecord {
            sql: None,
            name: name.into(),
            length,
            loads: vec![Load::Closed { depth }],
            patterns: vec![rigel_model::Pattern::Uniform],
            kinds: KINDS
                .map(|kind| KindRecord {
                    kind,
                    windows: Vec::new(),
                })
                .to_vec(),
            unserved: Vec::new(),
            drained: 0,
            censored: None,
            delay: None,
            warm_up_done: 0,
            coverage: Coverage::default(),
        };
        let mut recorder = Recorder::new(false, &KINDS, std::sync::Arc::default());
        recorder.measure_from(Nanos(0));
        for Ios(_, kind, count, latency) in ios.iter().filter(|ios| ios.0 == name) {
            for index in 0..*count {
                let due = Nanos(Nanos::from_secs(seconds).0 / count * index);
                recorder.record(
                    *kind,
                    OperationTimes {
                        due,
                        start: due,
                        done: due.plus(*latency),
                    },
                    Outcome::Done,
                );
            }
        }
        recorder.merge_into(&mut record);
        record
    }

    /// The latency at which `depth` outstanding I/Os give `iops`, by Little's law.
    fn little(depth: u32, iops: u64) -> Nanos {
        Nanos::from_secs_f64(f64::from(depth) / iops as f64)
    }

    /// Small reads at `depth`, with the rate of the published sample.
    fn small_cell(depth: u32, iops: u64) -> PointRecord {
        point(
            depth,
            0,
            2,
            &[Ios(SMALL, Kind::Read, 2 * iops, little(depth, iops))],
        )
    }

    /// A point of 50 seconds, so that two decimals of MBPS are exact.
    fn large_cell(depth: u32, in_50_seconds: u64) -> PointRecord {
        point(
            0,
            depth,
            50,
            &[Ios(LARGE, Kind::Read, in_50_seconds, Nanos::from_millis(7))],
        )
    }

    /// A simple run with one disk, with the numbers of a published run.
    fn simple() -> (OrionRequest, Vec<PointRecord>) {
        let iops = [2302, 4398, 5450, 6006, 6210];
        let mut points: Vec<PointRecord> = (1..)
            .zip(iops)
            .map(|(depth, iops)| small_cell(depth, iops))
            .collect();
        points.extend([large_cell(1, 13_579), large_cell(2, 13_600)]);
        (OrionRequest::new(RunLevel::Simple), points)
    }

    #[test]
    fn the_csv_files_of_a_simple_run_are_orions_byte_for_byte() {
        let (request, points) = simple();
        let iops = "Large/Small,      1,      2,      3,      4,      5\n          0,   2302,   \
                    4398,   5450,   6006,   6210\n          1\n          2\n";
        let mbps = "Large/Small,      0,      1,      2,      3,      4,      5\n          1, \
                    271.58\n          2, 272.00\n";
        let lat = "Large/Small,      1,      2,      3,      4,      5\n          0, 434.40, \
                   454.75, 550.46, 666.00, 805.15\n          1\n          2\n";
        assert_eq!(iops_csv(&request, &points), iops);
        assert_eq!(mbps_csv(&request, &points), mbps);
        assert_eq!(lat_csv(&request, &points), lat);
        // The published files have 128, 128 and 100 bytes. Header and idle row of iops and lat: 11
        // + 5 × (1 + 7) = 51 each; two rows that end after their first field: 11 each. The
        // sum is 124, so there are four line ends of one byte, including the last line's.
        // mbps: a header of 11 + 6 × 8 = 59 and two rows of 11 + 8 = 19: 97, and three line
        // ends.
        assert_eq!((iops.len(), lat.len(), mbps.len()), (128, 128, 100));
    }

    #[test]
    fn a_simple_run_makes_these_files() {
        let (request, points) = simple();
        let arguments =
            ["-run", "simple", "-testname", "mytest", "-num_disks", "1"].map(String::from);
        let names = Names {
            arguments: &arguments,
            ..NAMES
        };
        let request = OrionRequest {
            testname: "mytest".into(),
            duration: 2,
            ..request
        };
        assert_eq!(
            banner(&request, &names),
            "ORION: ORacle IO Numbers -- Version 0.1.0\nmytest_20110510_2303\nCalibration will \
             take approximately 2 minutes.\nUsing a large value for -cache_size may take longer.\n"
        );
        let members: [Member<'_>; 1] = [(Path::new("/path/data_02"), 2_147_483_648)];
        for (file, text) in files(&request, &names, &members, &points) {
            golden::check(&format!("classic/simple_{file}"), &text);
        }
        assert_eq!(
            names.path("summary.txt"),
            Path::new("mytest_20110510_2303_summary.txt")
        );
    }

    #[test]
    fn progress_is_told_in_orions_words_and_the_time_in_truer_ones() {
        let request = OrionRequest {
            num_disks: 4,
            ..OrionRequest::new(RunLevel::Simple)
        };
        let lines = verbose_lines(&request, Coordinates::cell(1, 0));
        assert_eq!(
            lines,
            "Running point: Small=1, Large=0\nPoint 2 out of 29\n"
        );
        assert_eq!(verbose_lines(&request, Coordinates::cell(1, 1)), "");
        assert_eq!(
            estimate_line(&request, 28, true),
            "28 data points to run; with warm-up that takes 28 to 33 minutes.\n"
        );
        assert_eq!(
            estimate_line(&request, 28, false),
            "28 data points to run.\n"
        );
        let left = estimate_line(&request, 1, true);
        assert_eq!(
            left,
            "1 of 28 data points to run; with warm-up that takes 61 to 70 seconds.\n"
        );
    }

    /// Mixed cells, writes, failed I/Os, a stopped point and a broken one.
    fn troubled() -> (OrionRequest, Vec<PointRecord>) {
        let mut request = OrionRequest {
            write: 50,
            duration: 2,
            cache_size: Some(51_200),
            ..OrionRequest::new(RunLevel::Normal)
        };
        request.large_type = LargeType::Seq;
        request.simulate = Layout::Stripe {
            stripe: Bytes(1024 * KIB),
        };
        let mixed = |small, large, millis| {
            let latency = Nanos::from_millis(millis);
            let both =
                [Kind::Read, Kind::Write].map(|kind| Ios(SMALL, kind, 1000 / millis, latency));
            let [reads, writes] = both;
            point(
                small,
                large,
                2,
                &[
                    reads,
                    writes,
                    Ios(LARGE, Kind::Write, 100, Nanos::from_millis(10)),
                ],
            )
        };
        let mut failing = mixed(1, 0, 2);
        let failed = &mut failing.streams[0].kinds[0].windows[0].failed;
        failed.insert(Cause::Short.name(), 3);
        let mut stopped = mixed(3, 1, 1);
        (stopped.end, stopped.measured) = (End::Stopped, Nanos::from_millis(700));
        let mut broken = point(0, 2, 0, &[]);
        broken.end = End::Broken("the device is gone".into());
        // Cell (2, 0) was stopped, and run again later.
        let mut again = mixed(2, 0, 8);
        again.end = End::Stopped;
        (
            request,
            vec![
                failing,
                again,
                mixed(2, 0, 1),
                mixed(1, 1, 1),
                mixed(2, 1, 4),
                stopped,
                broken,
            ],
        )
    }

    #[test]
    fn a_run_with_writes_failures_and_points_cut_short_makes_these_files() {
        let (request, points) = troubled();
        for (file, text) in files(
            &request,
            &NAMES,
            &[(Path::new("/a"), 1), (Path::new("/b"), 2)],
            &points,
        ) {
            golden::check(&format!("classic/troubled_{file}"), &text);
        }
    }

    #[test]
    fn labels_name_the_cell_whose_numbers_stand_there() {
        let (request, points) = troubled();
        let block = result_block(&request, &points);
        // Both cells complete 1000 small I/Os per second at 1 ms each: the first in running order
        // is named.
        assert!(
            block.contains(
                "Maximum Small IOPS=1000 @ Small=2 and Large=0\nSmall Read Latency: avg=1000.000 \
                 us"
            ),
            "{block}"
        );
        assert!(
            block.contains("Minimum Small Latency=1000.000 usecs @ Small=2 and Large=0"),
            "{block}"
        );
        assert!(
            block.contains("Maximum Large MBPS=50.00 @ Small=1 and Large=1"),
            "{block}"
        );
    }

    #[test]
    fn what_did_not_run_is_not_in_the_summary() {
        let request = OrionRequest {
            num_large: Some(1),
            ..OrionRequest::new(RunLevel::Dss)
        };
        let block = result_block(&request, &[large_cell(1, 100)]);
        assert_eq!(block, "Maximum Large MBPS=2.00 @ Small=0 and Large=1\n");
        let nothing = "No complete data point has done an I/O, so there is no maximum.\n\nNot \
                       run: 1 of 1 data points\n";
        assert_eq!(result_block(&request, &[]), nothing);
        let oltp = result_block(&OrionRequest::new(RunLevel::Oltp), &[small_cell(1, 100)]);
        assert!(
            !oltp.contains("MBPS") && oltp.starts_with("Maximum Small IOPS=100 @"),
            "{oltp}"
        );
    }

    #[test]
    fn a_matrix_of_few_cells_lists_just_its_rows_and_columns() {
        let mut request = OrionRequest::new(RunLevel::Advanced);
        request.matrix = Some(Matrix::Point);
        (request.num_small, request.num_large) = (Some(4), Some(2));
        let ios = [
            Ios(SMALL, Kind::Read, 1000, Nanos::from_millis(4)),
            Ios(LARGE, Kind::Read, 50, Nanos::from_millis(9)),
        ];
        let points = [point(4, 2, 1, &ios)];
        assert_eq!(
            iops_csv(&request, &points),
            "Large/Small,      4\n          2,   1000\n"
        );
        assert_eq!(
            mbps_csv(&request, &points),
            "Large/Small,      4\n          2,  50.00\n"
        );
        let dss = OrionRequest {
            num_large: Some(1),
            ..OrionRequest::new(RunLevel::Dss)
        };
        assert_eq!(
            iops_csv(&dss, &[]),
            "Large/Small\n          0\n          1\n"
        );
        assert_eq!(mbps_csv(&dss, &[]), "Large/Small,      0\n          1\n");
    }

    #[test]
    fn a_gap_inside_a_row_is_blank() {
        let request = OrionRequest {
            num_small: Some(3),
            num_large: Some(0),
            ..OrionRequest::new(RunLevel::Simple)
        };
        let points = [small_cell(1, 100), small_cell(3, 300)];
        assert_eq!(
            iops_csv(&request, &points),
            "Large/Small,      1,      2,      3\n          0,    100,       ,    300\n"
        );
    }

    #[test]
    fn every_edge_of_orions_buckets_is_an_edge_of_ours() {
        for bucket in 1..ORION_BUCKETS {
            let edge = orion_edges(bucket).0 * 1000;
            assert_eq!(bucket_of(edge - 1) + 1, bucket_of(edge));
        }
        assert_eq!(
            [orion_edges(0), orion_edges(1), orion_edges(27)],
            [(0, 2), (2, 4), (134_217_728, 268_435_456)]
        );
    }

    proptest! {
        #[test]
        fn orions_histogram_loses_nothing_and_puts_each_value_where_it_belongs(
            values in prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift), 0..100)
        ) {
            let mut histogram = Histogram::default();
            let mut expected = [0; ORION_BUCKETS];
            for value in &values {
                histogram.record(*value);
                let holds = |bucket: &usize| orion_edges(*bucket).0 <= value / 1000;
                expected[(0..ORION_BUCKETS).rev().find(holds).unwrap()] += 1;
            }
            prop_assert_eq!(orion_counts(&histogram), expected);
            prop_assert_eq!(expected.iter().sum::<u64>(), values.len() as u64);
        }
    }
}
