//! fio's logs over time: `_iops`, `_bw`, `_lat`, `_clat` and `_slat`, averaged or of each I/O.
//!
//! A line is the time in milliseconds, the value, with `log_window_value=both` the maximum, the
//! direction (0 read, 1 write, 2 trim), the block size, and by version and options the offset, the
//! priority and the time of issue (fio's manual, "Log File Formats"). Averaged lines have a block
//! size of 0. Files of one prefix are one run. What a log counts is in its name alone.
//!
//! Series have steps of at least a second, because logs of several processes have no common times.

use super::limits::LOG_LINES_MAX;
use super::source::{Source, damaged, refuse_empty, shortened};
use rigel_model::record::Imported;
use rigel_model::record::imported::{Counted, Figures, ImportedSeries};
use rigel_model::{Error, Moment, failed, file_name, usage};
use std::collections::BTreeMap;

const HINT: &str = "give fio's logs as it wrote them, such as NAME_iops.1.log and NAME_clat.1.log";

/// What a log counts, by the end of its name. The longest ends come first.
const KINDS: [(&str, FioLogKind); 5] = [
    ("iops", FioLogKind::Iops),
    ("clat", FioLogKind::Completion),
    ("slat", FioLogKind::Submission),
    ("lat", FioLogKind::Total),
    ("bw", FioLogKind::Bandwidth),
];

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Times from here on count from 1970: smaller ones count from the start of the job.
const DATED_FROM_MS: u64 = 100_000_000_000;

/// Times up to here are valid: the year 5138.
const TIME_MAX_MS: u64 = 100_000_000_000_000;

/// What a log counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FioLogKind {
    Iops,
    Bandwidth,
    Total,
    Completion,
    Submission,
}

impl FioLogKind {
    fn is_rate(self) -> bool {
        matches!(self, Self::Iops | Self::Bandwidth)
    }

    /// The name of a figure: quantiles of whole operations have the names that soaks use.
    fn figure(self, figure: &str) -> String {
        match (self, figure) {
            (Self::Iops, _) => "iops".into(),
            (Self::Bandwidth, _) => "bw".into(),
            (Self::Total, "") => "lat".into(),
            (Self::Total, figure) => figure.into(),
            (Self::Completion, figure) => format!("clat {figure}").trim_end().into(),
            (Self::Submission, figure) => format!("slat {figure}").trim_end().into(),
        }
    }
}

/// A line of a log.
#[derive(Debug, Clone, Copy)]
struct LogRow {
    time_ms: u64,
    value: u64,
    max: Option<u64>,
    direction: u8,
    bytes: u64,
}

/// The rows of one process. A file has several if its processes share it.
#[derive(Debug)]
struct ProcessLog {
    kind: FioLogKind,
    is_averaged: bool,
    rows: Vec<LogRow>,
}

/// The logs of one run.
#[derive(Debug, Default)]
struct LogRun {
    prefix: String,
    sources: Vec<String>,
    logs: Vec<ProcessLog>,
    notes: Vec<String>,
    /// True if latencies may be in microseconds: the columns are those of fio 2 and of early versions of fio 3.
    may_be_us: bool,
}

/// The steps of the series of a run, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Steps {
    /// Beginning of the first step, in the time of the log.
    origin: u64,
    /// Length of a step.
    width: u64,
    /// End of the last line.
    end: u64,
}

/// The step of a value, and the value.
type PlacedValue = (u64, u64);

/// True if fio wrote it as a log: its name says what it counts, and its first line has the form.
pub fn is_like(source: Source) -> bool {
    kind(source.name).is_some() && has_lines(source.text)
}

/// True if the first line has the form of a log.
pub(super) fn has_lines(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.and_then(fields).is_some_and(|(_, count)| count >= 4)
}

/// What the log of this name counts, and the prefix that the logs of one run share.
fn kind(name: &str) -> Option<(FioLogKind, &str)> {
    let stem = name.strip_suffix(".log")?;
    let stem = match stem.rsplit_once('.') {
        Some((stem, number)) if number.parse::<u32>().is_ok() => stem,
        _ => stem,
    };
    KINDS
        .iter()
        .find_map(|(end, kind)| Some((*kind, stem.strip_suffix(end)?)))
        .filter(|(_, prefix)| prefix.is_empty() || prefix.ends_with(['_', '/']))
}

/// The first numbers of a line, and how many fields it has.
fn fields(line: &str) -> Option<([u64; 5], usize)> {
    const FIELDS_MAX: usize = 8;
    let mut numbers = [0; 5];
    let mut count = 0;
    for field in line.split(',').map(str::trim) {
        let hexadecimal = || u64::from_str_radix(field.strip_prefix("0x")?, 16).ok();
        let number = field.parse().ok().or_else(hexadecimal)?;
        if let Some(place) = numbers.get_mut(count) {
            *place = number;
        }
        count += 1;
    }
    (count <= FIELDS_MAX).then_some((numbers, count))
}

/// Reads fio's logs; those of one prefix are one run.
///
/// # Errors
/// A name does not say what is counted, or a line is damaged.
pub fn read(sources: &[Source]) -> Result<Vec<Imported>, Error> {
    let mut runs: Vec<LogRun> = Vec::new();
    let mut lines = 0;
    for source in sources {
        lines += source.text.bytes().filter(|byte| *byte == b'\n').count();
        if lines > LOG_LINES_MAX {
            return Err(usage!(
                "'{name}' and the logs before it have {lines} lines together, and the limit is \
                 {LOG_LINES_MAX}",
                "log averages, with fio's log_avg_msec, or import fewer at once",
                name = file_name(source.name)
            ));
        }
        let (kind, prefix) = kind(source.name).ok_or_else(|| {
            failed!(
                "the name '{name}' does not say what was logged",
                HINT,
                name = file_name(source.name)
            )
        })?;
        let place = runs.iter().position(|run| run.prefix == prefix);
        let place = place.unwrap_or_else(|| {
            runs.push(LogRun {
                prefix: prefix.into(),
                ..LogRun::default()
            });
            runs.len() - 1
        });
        runs[place].add(*source, kind)?;
    }
    runs.into_iter().map(finish).collect()
}

impl LogRun {
    fn add(&mut self, source: Source, kind: FioLogKind) -> Result<(), Error> {
        self.sources.push(source.name.into());
        let (rows, columns) = rows(source, &mut self.notes)?;
        self.may_be_us |= columns == 4 && !kind.is_rate();
        let is_averaged = rows.iter().all(|row| row.bytes == 0);
        let parts = parts(rows);
        if parts.len() > 1 {
            self.notes.push(format!(
                "{}: its times start again {} times: each is taken as a process of its own",
                file_name(source.name),
                parts.len() - 1
            ));
        }
        self.logs.extend(parts.into_iter().map(|rows| ProcessLog {
            kind,
            is_averaged,
            rows,
        }));
        Ok(())
    }

    fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.into());
        }
    }
}

/// The rows of each process, which wrote them in order, but for less than a second.
fn parts(mut rows: Vec<LogRow>) -> Vec<Vec<LogRow>> {
    let mut begins = Vec::new();
    let mut latest = 0;
    for (index, row) in rows.iter().enumerate() {
        if index > 0 && row.time_ms + 1000 <= latest {
            begins.push(index);
            latest = 0;
        }
        latest = latest.max(row.time_ms);
    }
    let mut parts: Vec<Vec<LogRow>> = begins
        .into_iter()
        .rev()
        .map(|begin| rows.split_off(begin))
        .collect();
    if !rows.is_empty() {
        parts.push(rows);
    }
    parts.reverse();
    parts
}

/// The lines of a log, and the number of its columns. A last line that is cut short is left out.
fn rows(source: Source, notes: &mut Vec<String>) -> Result<(Vec<LogRow>, usize), Error> {
    let lines = || {
        let numbered = source.text.lines().enumerate();
        numbered.filter(|(_, line)| !line.trim().is_empty())
    };
    let is_ended = source.text.ends_with('\n');
    let count = source.text.lines().count();
    let columns = lines()
        .find_map(|(_, line)| fields(line))
        .map_or(0, |f| f.1);
    // With a maximum after the value, the direction is the fourth number, not the third.
    let rows_of_columns = || {
        lines()
            .filter_map(|(_, line)| fields(line))
            .filter(|f| f.1 == columns)
    };
    let has_max = columns > 5
        && rows_of_columns()
            .next()
            .is_some_and(|([_, _, third, ..], _)| third > 2)
        && rows_of_columns().all(|([_, value, third, fourth, _], _)| third >= value && fourth < 3);
    let mut rows = Vec::with_capacity(lines().count());
    for (at, line) in lines() {
        let row = fields(line)
            .filter(|(_, fields)| *fields == columns && columns >= 4)
            .and_then(|(numbers, _)| row(numbers, has_max));
        let is_last = !is_ended && at + 1 == count;
        match row {
            Some(row) => rows.push(row),
            None if is_last => {}
            None => {
                let why = format!(
                    "'{}' is not a line of fio's log with {columns} columns",
                    shortened(line.trim())
                );
                return Err(damaged(source.name, at + 1, &why, HINT));
            }
        }
        if is_last {
            let what = if row.is_some() {
                "is read, and may be cut short"
            } else {
                "is left out: it is cut short"
            };
            notes.push(format!(
                "{} line {}: the last line has no line end and {what}",
                file_name(source.name),
                at + 1
            ));
        }
    }
    Ok((rows, columns))
}

fn row([time_ms, value, third, fourth, fifth]: [u64; 5], has_max: bool) -> Option<LogRow> {
    let (max, direction, bytes) = if has_max {
        (Some(third), fourth, fifth)
    } else {
        (None, third, fourth)
    };
    let direction = u8::try_from(direction).ok().filter(|place| *place < 3)?;
    (time_ms <= TIME_MAX_MS).then_some(LogRow {
        time_ms,
        value,
        max,
        direction,
        bytes,
    })
}

fn finish(mut run: LogRun) -> Result<Imported, Error> {
    let name = run.sources.first().cloned().unwrap_or_default();
    let steps = steps(&name, &run.logs)?;
    let mut directions: Vec<u8> = run
        .logs
        .iter()
        .flat_map(|log| log.rows.iter().map(|row| row.direction))
        .collect();
    directions.sort_unstable();
    directions.dedup();
    let mut series = series(&run.logs, &directions, steps);
    if run.may_be_us {
        let unit = LatencyUnit::of(&run, &series);
        if let LatencyUnit::Microseconds { .. } = unit {
            run.logs.iter_mut().for_each(ProcessLog::scale_microseconds);
            series = self::series(&run.logs, &directions, steps);
        }
        run.note(&unit.note());
    }
    add_notes(&mut run, steps);
    let facts = facts(&run, &directions);
    let imported = Imported {
        sources: run.sources,
        tool: "fio".into(),
        version: None,
        reported: facts,
        notes: run.notes,
        figures: Figures::Series(series),
    };
    refuse_empty(&name, imported)
}

/// What the logs count.
fn kinds(logs: &[ProcessLog]) -> Vec<FioLogKind> {
    let mut kinds: Vec<FioLogKind> = logs.iter().map(|log| log.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The series of each kind and direction, and of all directions together for rates.
fn series(logs: &[ProcessLog], directions: &[u8], steps: Steps) -> Vec<ImportedSeries> {
    let mut series = Vec::new();
    for kind in kinds(logs) {
        let logs: Vec<&ProcessLog> = logs.iter().filter(|log| log.kind == kind).collect();
        let usual = usual_ms(&logs);
        for direction in directions {
            let prefix = if directions.len() > 1 {
                format!("{} ", DIRECTIONS[usize::from(*direction)])
            } else {
                String::new()
            };
            let of = |row: &&LogRow| row.direction == *direction;
            if !logs.iter().any(|log| log.rows.iter().any(|row| of(&row))) {
                continue;
            }
            if kind.is_rate() {
                series.push(rate(&prefix, &logs, &of, kind, steps, usual));
            } else {
                series.extend(latencies(&prefix, &logs, &of, kind, steps));
            }
        }
        if kind.is_rate() && directions.len() > 1 {
            series.push(rate("", &logs, &|_| true, kind, steps, usual));
        }
    }
    series
}

impl ProcessLog {
    /// Latencies that were written in microseconds.
    fn scale_microseconds(&mut self) {
        const NS: u64 = 1000;
        if self.kind.is_rate() {
            return;
        }
        for row in &mut self.rows {
            row.value = row.value.saturating_mul(NS);
            row.max = row.max.map(|max| max.saturating_mul(NS));
        }
    }
}

/// The unit of latencies, where the columns do not tell.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LatencyUnit {
    /// That of fio 3; `idle` if so few are outstanding that the load would have had pauses.
    Nanoseconds { idle: Option<f64> },
    /// That of fio 2, by what would be outstanding else.
    Microseconds { outstanding: f64 },
}

impl LatencyUnit {
    /// By Little's law. A job of a constant number of outstanding I/Os has at least one in each process. Jobs with
    /// a limited rate have fewer, but their rate does not fall as the latency rises. And only fio 2 averages rates
    /// over other times than latencies.
    fn of(run: &LogRun, series: &[ImportedSeries]) -> Self {
        let pairs = rates_and_times(series);
        let count = pairs.len() as f64;
        let outstanding = pairs.iter().map(|(rate, time)| rate * time).sum::<f64>() / count;
        let of_kinds = |kinds: &[FioLogKind]| -> Vec<&ProcessLog> {
            let logs = run.logs.iter();
            logs.filter(|log| kinds.contains(&log.kind)).collect()
        };
        let rates = of_kinds(&[FioLogKind::Iops]);
        let processes = rates.len() as f64;
        // Half of the time without an I/O is more than fio takes for itself.
        if pairs.is_empty() || outstanding >= processes / 2.0 {
            return Self::Nanoseconds { idle: None };
        }
        let of_times = usual_ms(&of_kinds(&[FioLogKind::Total, FioLogKind::Completion]));
        // Lines are late by some milliseconds.
        let is_apart = usual_ms(&rates).zip(of_times).is_some_and(|(one, other)| {
            let (short, long) = (one.min(other), one.max(other));
            long > short + short / 2
        });
        let spread = |of: &dyn Fn(&(f64, f64)) -> f64| {
            let mean = pairs.iter().map(of).sum::<f64>() / count;
            pairs
                .iter()
                .map(|pair| (of(pair) - mean).powi(2))
                .sum::<f64>()
                / count
        };
        let of_product = spread(&|(rate, time)| (rate * time).ln());
        let of_time = spread(&|(_, time)| time.ln());
        // Where the rate does not depend on the latency, both vary alike.
        let is_constant = of_product < of_time / 2.0;
        if is_apart || is_constant {
            Self::Microseconds { outstanding }
        } else {
            Self::Nanoseconds {
                idle: Some(outstanding),
            }
        }
    }

    fn note(self) -> String {
        match self {
            Self::Nanoseconds { idle: None } => {
                "latencies are taken as nanoseconds, as fio 3 writes them: logs of \
                fio 2 have the same columns and microseconds"
                    .into()
            }
            Self::Nanoseconds {
                idle: Some(outstanding),
            } => format!(
                "latencies are taken as nanoseconds, as fio 3 writes them: then {outstanding:.2} I/Os were outstanding \
                 on average, as with a limited rate: if the rate was not limited, fio 2 wrote microseconds, and \
                 latencies are 1,000 times as long"
            ),
            Self::Microseconds { outstanding } => format!(
                "latencies are taken as microseconds, as fio 2 writes them: as nanoseconds, {outstanding:.2} I/Os would \
                 have been outstanding on average, and the rate was not limited"
            ),
        }
    }
}

/// Operations per second and their mean time in seconds, of all directions, at each step that has both.
fn rates_and_times(series: &[ImportedSeries]) -> Vec<(f64, f64)> {
    let named = |name: String| series.iter().find(|one| one.name == name);
    let mut steps: BTreeMap<Moment, (f64, f64)> = BTreeMap::new();
    let prefixes = ["", "read ", "write ", "trim "];
    for prefix in prefixes {
        let times = ["lat", "clat"]
            .iter()
            .find_map(|name| named(format!("{prefix}{name}")));
        let Some((rates, times)) = named(format!("{prefix}iops")).zip(times) else {
            continue;
        };
        for time in &times.samples {
            let samples = &rates.samples;
            let at = samples.binary_search_by_key(&time.begin, |rate| rate.begin);
            let rate = at.ok().and_then(|at| samples[at].value);
            if let Some((rate, us)) = rate.zip(time.value) {
                let (all, busy) = steps.entry(time.begin).or_default();
                *all += rate;
                *busy += rate * us / 1e6;
            }
        }
    }
    let busy = steps
        .into_values()
        .filter(|(rate, busy)| *rate > 0.0 && *busy > 0.0);
    busy.map(|(rate, busy)| (rate, busy / rate)).collect()
}

fn add_notes(run: &mut LogRun, steps: Steps) {
    let is_averaged = |log: &ProcessLog| !log.kind.is_rate() && log.is_averaged;
    let shared = |kind: FioLogKind| run.logs.iter().filter(|log| log.kind == kind).count() > 1;
    let many = run.logs.iter().any(|log| shared(log.kind));
    let has_averages = run.logs.iter().any(is_averaged);
    if many && has_averages {
        run.note(
            "the rates of the processes are added up, and their mean latencies averaged, each \
             process counted alike: the logs do not say how many I/Os a mean is of",
        );
    } else if many {
        run.note("the rates of the processes are added up");
    }
    if has_averages {
        run.note(
            "latencies are fio's means over each interval, or its maxima if it ran with \
             log_window_value=max, which the log does not say",
        );
    }
    if steps.end < DATED_FROM_MS {
        run.note(
            "times count from the start of the job, which is shown as 1970-01-01 00:00: the logs \
             have no date, unless fio runs with log_alternate_epoch=1 (log_unix_epoch=1 before \
             3.36)",
        );
    }
}

fn facts(run: &LogRun, directions: &[u8]) -> Vec<(String, String)> {
    let words: Vec<String> = directions
        .iter()
        .map(|place| format!("{}s", DIRECTIONS[usize::from(*place)]))
        .collect();
    let mut lines: Vec<String> = Vec::new();
    for kind in kinds(&run.logs) {
        let logs: Vec<&ProcessLog> = run.logs.iter().filter(|log| log.kind == kind).collect();
        // Times of fio are late by some milliseconds.
        let rounded = usual_ms(&logs).map(|usual| (usual + 5) / 10 * 10);
        let line = match rounded {
            Some(usual) if logs.iter().all(|log| log.is_averaged) => {
                format!("averages over {usual} ms")
            }
            Some(usual) => format!("each I/O, or averages over {usual} ms"),
            None => "each I/O".into(),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    vec![
        ("operations".into(), words.join(", ")),
        ("a line of a log".into(), lines.join("; ")),
    ]
}

/// The usual time between averaged lines of one process and direction: the lower quartile, because
/// intervals without any I/O have no line.
fn usual_ms(logs: &[&ProcessLog]) -> Option<u64> {
    let mut steps = Vec::new();
    for log in logs.iter().filter(|log| log.is_averaged) {
        let mut before = [None; 3];
        for row in &log.rows {
            let before = &mut before[usize::from(row.direction)];
            let step = before.map(|before| row.time_ms.saturating_sub(before));
            steps.extend(step.filter(|step| *step > 0));
            *before = Some(row.time_ms);
        }
    }
    steps.sort_unstable();
    let is_averaged = logs.iter().any(|log| log.is_averaged);
    // A single line averages over its whole time.
    let alone = || {
        logs.iter()
            .flat_map(|log| log.rows.iter().map(|row| row.time_ms))
            .max()
    };
    is_averaged.then(|| steps.get(steps.len() / 4).copied().or_else(alone))?
}

fn steps(name: &str, logs: &[ProcessLog]) -> Result<Steps, Error> {
    const SECOND_MS: u64 = 1000;
    let of_kind = |kind: FioLogKind| logs.iter().filter(move |log| log.kind == kind);
    // Each kind has its own steps, and its first line ends the first of them.
    let begins = kinds(logs).into_iter().map(|kind| {
        let usual = usual_ms(&of_kind(kind).collect::<Vec<_>>()).unwrap_or(0);
        let rows = of_kind(kind).flat_map(|log| &log.rows);
        let first = rows.map(|row| row.time_ms).min().unwrap_or(0);
        (usual, first.saturating_sub(usual))
    });
    let begins: Vec<(u64, u64)> = begins.collect();
    let times = || {
        logs.iter()
            .flat_map(|log| log.rows.iter().map(|row| row.time_ms))
    };
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let usual = begins.iter().map(|(usual, _)| *usual).max().unwrap_or(0);
    let width = (usual.saturating_add(SECOND_MS / 2) / SECOND_MS).max(1) * SECOND_MS;
    let origin = if last < DATED_FROM_MS {
        0
    } else {
        begins
            .iter()
            .map(|(_, begin)| *begin)
            .min()
            .unwrap_or(first)
    };
    let steps = Steps {
        origin,
        width,
        end: last.max(origin + 1),
    };
    // Intervals without I/O have no line, but not for most of the time.
    let lines = times().count() as u64;
    if steps.count() > lines.saturating_mul(10).saturating_add(10_000) {
        return Err(failed!(
            "'{name}' has {lines} lines from {first} ms to {last} ms: its times cannot be those of \
             one run",
            HINT
        ));
    }
    Ok(steps)
}

/// The end of the rates in `logs`. fio does not log what a process did after its last whole
/// interval. A process that ends more than two intervals before the others was done.
fn end_of_rates(logs: &[&ProcessLog], usual: Option<u64>) -> u64 {
    let ends = || {
        let last = |log: &&ProcessLog| log.rows.iter().map(|row| row.time_ms).max();
        logs.iter().filter_map(last)
    };
    let latest = ends().max().unwrap_or(0);
    let interval = if logs.iter().all(|log| log.is_averaged) {
        usual.unwrap_or(0)
    } else {
        0
    };
    let running = ends().filter(|end| end.saturating_add(2 * interval) >= latest);
    running.min().unwrap_or(latest)
}

impl Steps {
    fn count(self) -> u64 {
        self.end.saturating_sub(self.origin).div_ceil(self.width)
    }

    /// The step that ends at, or contains, a time.
    fn place(self, time_ms: u64) -> u64 {
        time_ms.saturating_sub(self.origin).saturating_sub(1) / self.width
    }

    /// Seconds of a step that the logs cover.
    fn seconds(self, place: u64) -> f64 {
        let from = self.origin + place * self.width;
        self.end.saturating_sub(from).min(self.width) as f64 / 1e3
    }

    /// True for a last step of which less than half is covered.
    fn is_rest(self, place: u64) -> bool {
        self.count() > 1 && self.seconds(place) * 2e3 < self.width as f64
    }

    fn sample(self, place: u64, value: f64) -> Counted {
        let begin_ms = self.origin + place * self.width;
        let first: Moment = "1970-01-01T00:00:00Z".parse().expect("a moment");
        let seconds = i64::try_from(begin_ms / 1000).unwrap_or(i64::MAX);
        Counted {
            begin: first.plus_seconds(seconds),
            seconds: Some(self.seconds(place)),
            value: Some(value),
            count: None,
        }
    }
}

/// Operations or megabytes per second of all processes. An interval without a line had no I/O.
fn rate(
    prefix: &str,
    logs: &[&ProcessLog],
    of: &dyn Fn(&&LogRow) -> bool,
    kind: FioLogKind,
    steps: Steps,
    usual: Option<u64>,
) -> ImportedSeries {
    let (factor, scale, unit) = match kind {
        FioLogKind::Iops => (1.0, 1.0, "/s"),
        _ => (1024.0, 1e6, "MB/s"),
    };
    let steps = Steps {
        end: end_of_rates(logs, usual).max(steps.origin + 1),
        ..steps
    };
    let mut amounts: BTreeMap<u64, f64> = BTreeMap::new();
    for log in logs {
        let mut before = [steps.origin; 3];
        for row in log.rows.iter().filter(of) {
            if !log.is_averaged {
                // The value is the rate of this I/O alone: what it moved is its size.
                let amount = match kind {
                    FioLogKind::Iops => 1.0,
                    _ => row.bytes as f64,
                };
                *amounts.entry(steps.place(row.time_ms)).or_default() += amount;
                continue;
            }
            let before = &mut before[usize::from(row.direction)];
            let since = row.time_ms.saturating_sub(*before);
            let length = usual
                .filter(|usual| since > usual + usual / 2)
                .unwrap_or(since);
            *before = row.time_ms;
            let per_ms = row.value as f64 * factor / 1e3;
            let mut from = row.time_ms - length;
            let until = row.time_ms.min(steps.end);
            while from < until {
                let place = steps.place(from + 1);
                let end = steps.origin + (place + 1) * steps.width;
                let to = end.min(until);
                *amounts.entry(place).or_default() += per_ms * (to - from) as f64;
                from = to;
            }
        }
    }
    let samples = (0..steps.count())
        .filter(|place| !steps.is_rest(*place))
        .map(|place| {
            let amount = amounts.get(&place).copied().unwrap_or(0.0);
            steps.sample(place, amount / scale / steps.seconds(place))
        });
    ImportedSeries {
        name: format!("{prefix}{}", kind.figure("")),
        unit: unit.into(),
        samples: samples.collect(),
        ..ImportedSeries::default()
    }
}

/// Mean latency of each step, and its maximum and quantiles as far as the logs have them.
fn latencies(
    prefix: &str,
    logs: &[&ProcessLog],
    of: &dyn Fn(&&LogRow) -> bool,
    kind: FioLogKind,
    steps: Steps,
) -> Vec<ImportedSeries> {
    let mut all: Vec<PlacedValue> = Vec::new();
    let mut maxima: BTreeMap<u64, u64> = BTreeMap::new();
    for log in logs {
        for row in log.rows.iter().filter(of) {
            let place = steps.place(row.time_ms);
            if steps.is_rest(place) {
                continue;
            }
            all.push((place, row.value));
            if let Some(max) = row.max {
                let maximum = maxima.entry(place).or_default();
                *maximum = max.max(*maximum);
            }
        }
    }
    all.sort_unstable();
    let series = |figure: &str, samples: Vec<Counted>| ImportedSeries {
        name: format!("{prefix}{}", kind.figure(figure)),
        unit: "us".into(),
        samples,
        ..ImportedSeries::default()
    };
    let us = |ns: u64| ns as f64 / 1e3;
    let each = |value: &dyn Fn(&[PlacedValue]) -> f64| {
        all.chunk_by(|one, other| one.0 == other.0)
            .map(|step| steps.sample(step[0].0, value(step)))
            .collect::<Vec<Counted>>()
    };
    let mean = |step: &[PlacedValue]| {
        step.iter().map(|(_, value)| us(*value)).sum::<f64>() / step.len() as f64
    };
    let mut all_series = vec![series("", each(&mean))];
    if logs.iter().all(|log| !log.is_averaged) {
        for (figure, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            all_series.push(series(figure, each(&|step| us(quantile(step, share)))));
        }
    } else if !maxima.is_empty() {
        let samples = maxima
            .iter()
            .map(|(place, max)| steps.sample(*place, us(*max)));
        all_series.push(series("max", samples.collect()));
    }
    all_series
}

/// The least of the sorted values that at least `share` of them do not exceed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the length"
)]
fn quantile(sorted: &[PlacedValue], share: f64) -> u64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(files: &[(&str, &str)]) -> (Imported, Vec<ImportedSeries>) {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source { name, text })
            .collect();
        assert!(sources.iter().all(|source| is_like(*source)));
        let mut found = read(&sources).unwrap();
        assert_eq!(found.len(), 1);
        let found = found.remove(0);
        let Figures::Series(series) = found.figures.clone() else {
            unreachable!("a log has series")
        };
        (found, series)
    }

    fn values(series: &ImportedSeries) -> Vec<f64> {
        series
            .samples
            .iter()
            .map(|sample| sample.value.unwrap())
            .collect()
    }

    #[test]
    fn a_name_says_what_is_counted_and_which_logs_belong_together() {
        for (name, expected) in [
            ("d/job_iops.1.log", Some((FioLogKind::Iops, "d/job_"))),
            ("job_clat.12.log", Some((FioLogKind::Completion, "job_"))),
            ("job_slat.log", Some((FioLogKind::Submission, "job_"))),
            ("a.b_lat.3.log", Some((FioLogKind::Total, "a.b_"))),
            ("bw.log", Some((FioLogKind::Bandwidth, ""))),
            ("flat.log", None),
            ("job_clat_hist.1.log", None),
            ("job_iops.csv", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn processes_are_added_up_second_by_second() {
        let one = "500, 100, 0, 0\n1000, 300, 0, 0\n1500, 200, 0, 0\n2000, 200, 0, 0\n";
        let other = "501, 40, 0, 0\n1001, 40, 0, 0\n1501, 40, 0, 0\n2001, 40, 0, 0\n";
        let (found, all) = series(&[("j_iops.1.log", one), ("j_iops.2.log", other)]);
        let [iops] = &all[..] else { panic!("{all:?}") };
        assert_eq!((iops.name.as_str(), iops.unit.as_str()), ("iops", "/s"));
        // The first process did 200 in each second, the second 40.
        let known = values(iops);
        assert_eq!(known.len(), 2);
        assert!(
            known.iter().all(|rate| (rate - 240.0).abs() < 1e-9),
            "{known:?}"
        );
        assert_eq!(iops.samples[1].begin.unix_seconds(), 1);
        assert!(found.notes.iter().any(|note| note.contains("added up")));
        assert!(
            found
                .notes
                .iter()
                .any(|note| note.contains("log_alternate_epoch"))
        );
        assert_eq!(found.reported[1].1, "averages over 500 ms");
    }

    #[test]
    fn a_second_without_a_line_did_nothing() {
        let text = "500, 100, 1, 0\n1000, 100, 1, 0\n3500, 100, 1, 0\n4000, 100, 1, 0\n";
        let (_, all) = series(&[("j_iops.1.log", text)]);
        assert_eq!(values(&all[0]), [100.0, 0.0, 0.0, 100.0]);
        let (_, all) = series(&[("j_lat.1.log", text)]);
        let begun: Vec<i64> = all[0]
            .samples
            .iter()
            .map(|s| s.begin.unix_seconds())
            .collect();
        assert_eq!((begun, values(&all[0])), (vec![0, 3], vec![0.1, 0.1]));
    }

    #[test]
    fn what_fio_did_after_its_last_interval_is_not_counted_as_nothing() {
        let iops = "500, 100, 0, 0\n1000, 100, 0, 0\n1500, 100, 0, 0\n";
        let other = "500, 20, 0, 0\n1000, 20, 0, 0\n1500, 20, 0, 0\n2000, 20, 0, 0\n";
        let (_, all) = series(&[
            ("j_iops.1.log", iops),
            ("j_iops.2.log", other),
            ("j_lat.1.log", other),
        ]);
        let reported: Vec<(Option<f64>, Option<f64>)> = all[0]
            .samples
            .iter()
            .map(|sample| (sample.value, sample.seconds))
            .collect();
        assert_eq!(
            reported,
            [(Some(120.0), Some(1.0)), (Some(120.0), Some(0.5))]
        );
        assert_eq!(values(&all[1]), [0.02, 0.02]);
    }

    #[test]
    fn a_log_of_each_io_has_quantiles_and_the_bytes_that_were_moved() {
        let line = |at: u64, value: u64| format!("{at}, {value}, 0, 8192, 4096, 0\n");
        let text: String = (1..=200)
            .map(|n| line(n * 10, n % 100 * 1000 + 1000))
            .collect();
        let (_, all) = series(&[("j_lat.1.log", &text), ("j_bw.1.log", &text)]);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["bw", "lat", "p50", "p99", "max"]);
        let firsts: Vec<f64> = all.iter().map(|one| values(one)[0]).collect();
        // 100 I/Os of 8192 bytes in each second, of 1 to 100 us.
        assert_eq!(firsts, [0.8192, 50.5, 50.0, 99.0, 100.0]);
    }

    #[test]
    fn reads_and_writes_have_series_of_their_own() {
        let text = "250, 4000, 0, 0, 0\n250, 1000, 1, 0, 0\n500, 4000, 0, 0, 0\n500, 1000, 1, 0, 0\n\
                    750, 4000, 0, 0, 0\n750, 1000, 1, 0, 0\n1000, 4000, 0, 0, 0\n1000, 1000, 1, 0, 0\n";
        let (found, all) = series(&[("j_iops.1.log", text), ("j_clat.1.log", text)]);
        let reported: Vec<(&str, Vec<f64>)> =
            all.iter().map(|one| (&*one.name, values(one))).collect();
        assert_eq!(
            reported,
            [
                ("read iops", vec![4000.0]),
                ("write iops", vec![1000.0]),
                ("iops", vec![5000.0]),
                ("read clat", vec![4.0]),
                ("write clat", vec![1.0]),
            ]
        );
        assert_eq!(found.reported[0].1, "reads, writes");
        assert!(
            !found.notes.iter().any(|note| note.contains("fio 2")),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn all_columns_of_newer_versions_are_read() {
        // Both mean and maximum, offset, priority as a number of base 16, time of issue.
        let text = "500, 2000, 9000, 1, 0, 0, 0x0000, 0\n1000, 4000, 5000, 1, 0, 0, 0x0000, 0\n";
        let (_, all) = series(&[("j_lat.1.log", text)]);
        let reported: Vec<(&str, Vec<f64>)> =
            all.iter().map(|one| (&*one.name, values(one))).collect();
        assert_eq!(reported, [("lat", vec![3.0]), ("max", vec![9.0])]);
    }

    #[test]
    fn times_since_1970_are_dates() {
        let text = "1700000000500, 10, 0, 0, 0\n1700000001500, 10, 0, 0, 0\n";
        let (found, all) = series(&[("j_iops.1.log", text)]);
        assert_eq!(all[0].samples[0].begin.unix_seconds(), 1_699_999_999);
        assert_eq!(values(&all[0]), [10.0, 10.0]);
        assert!(
            !found.notes.iter().any(|note| note.contains("1970")),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn a_shared_log_has_each_process_once() {
        let text = "1000, 10, 0, 0, 0\n2000, 10, 0, 0, 0\n1000, 5, 0, 0, 0\n2000, 5, 0, 0, 0\n";
        let (found, all) = series(&[("j_iops.log", text)]);
        assert_eq!(values(&all[0]), [15.0, 15.0]);
        assert!(
            found.notes[0].contains("its times start again 1 times"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn a_cut_last_line_is_left_out_and_damage_is_named() {
        let whole = "1000, 10, 0, 0, 0\n2000, 10, 0, 0, 0\n";
        let (found, all) = series(&[("j_iops.1.log", &format!("{whole}3000, 1"))]);
        assert_eq!(values(&all[0]), [10.0, 10.0]);
        assert!(
            found.notes[0].contains("line 3: the last line has no line end and is left out"),
            "{:?}",
            found.notes
        );
        for (text, part) in [
            (
                format!("{whole}3000, x, 0, 0, 0\n"),
                "line 3: '3000, x, 0, 0, 0' is not a line",
            ),
            (format!("{whole}3000, 1, 0, 0\n"), "line 3: "),
            (format!("{whole}3000, 1, 7, 0, 0\n"), "line 3: "),
            (
                format!("{whole}90000000000, 1, 0, 0, 0\n"),
                "cannot be those of one run",
            ),
        ] {
            let source = Source {
                name: "j_iops.1.log",
                text: &text,
            };
            let said = read(&[source]).unwrap_err().to_string();
            assert!(said.contains(part) && said.contains("hint: "), "{said}");
        }
        let source = Source {
            name: "log.txt",
            text: whole,
        };
        assert!(!is_like(source));
        let said = read(&[source]).unwrap_err().to_string();
        assert!(
            said.contains("'log.txt' does not say what was logged"),
            "{said}"
        );
    }

    /// A line of each kind of log, by its time and value.
    fn lines(every_ms: u64, until_ms: u64, value: &dyn Fn(u64) -> u64) -> String {
        let times = (1..=until_ms / every_ms).map(|step| step * every_ms);
        let lines = times.map(|time| {
            [time, value(time), 0, 0]
                .map(|one| one.to_string())
                .join(", ")
        });
        lines.map(|line| line + "\n").collect()
    }

    #[test]
    fn kinds_of_other_steps_have_their_own_and_fio_2_wrote_microseconds() {
        let iops = lines(500, 10_000, &|_| 16_000);
        let lat = lines(250, 10_000, &|_| 2000);
        let (found, all) = series(&[("j_iops.1.log", &iops), ("j_lat.1.log", &lat)]);
        assert_eq!(values(&all[0]), vec![16_000.0; 10]);
        assert_eq!(values(&all[1]), vec![2000.0; 10]);
        assert_eq!(
            found.reported[1].1,
            "averages over 500 ms; averages over 250 ms"
        );
        let notes = found.notes.join("; ");
        assert!(
            notes.contains("taken as microseconds") && notes.contains("0.03 I/Os"),
            "{notes}"
        );
    }

    #[test]
    fn a_rate_that_falls_as_latency_rises_was_not_limited() {
        // 32 outstanding: slow seconds have fewer.
        let slow = |time: u64| {
            if (time / 1000).is_multiple_of(3) {
                4000
            } else {
                2000
            }
        };
        let closed = [
            lines(1000, 12_000, &|time| 32_000_000 / slow(time)),
            lines(1000, 12_000, &slow),
        ];
        let of = |[iops, lat]: &[String; 2]| {
            let (found, all) = series(&[("j_iops.1.log", iops), ("j_lat.1.log", lat)]);
            (values(&all[1])[..1].to_vec(), found.notes.join("; "))
        };
        let (us, notes) = of(&closed);
        assert_eq!(us, [2000.0]);
        assert!(notes.contains("as fio 2 writes"), "{notes}");
        // A limited rate of fio 3 has the same in slow seconds.
        let [_, lat] = closed;
        let (us, notes) = of(&[lines(1000, 12_000, &|_| 1000), lat]);
        assert_eq!(us, [2.0]);
        assert!(notes.contains("if the rate was not limited"), "{notes}");
        // Fast storage at depth 1 is busy.
        let busy = [
            lines(1000, 4000, &|_| 900_000),
            lines(1000, 4000, &|_| 1100),
        ];
        let (us, notes) = of(&busy);
        assert_eq!(us, [1.1]);
        assert!(!notes.contains("limited"), "{notes}");
    }
}
