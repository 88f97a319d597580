//! Orion's `_iops.csv`, `_mbps.csv`, `_lat.csv` and `_summary.txt`, of every version, and those of
//! `rigel orion`.
//!
//! Files of one run, which have one prefix, are combined. A file with several reports, one after the
//! other, has as many runs. Versions before 11.2.0.2 wrote latencies in milliseconds without the
//! unit. By Little's law the latency is outstanding I/Os divided by IOPS, which reveals the unit.

use super::limits::{IN_PARTS, MATRIX_CELLS_MAX, MATRIX_SIDE_MAX, REPORTS_MAX};
use super::orion_cells::{OrionCell, OrionTerms, flows};
use super::orion_histogram::{self, HistogramRow};
use super::source::{Source, damaged, number, refuse_empty, shortened};
use rigel_model::record::Imported;
use rigel_model::record::imported::{Figures, LoadPoint, ReportedLatency, ReportedLoad};
use rigel_model::{Coordinates, Error, failed, file_name, usage};
use std::collections::{BTreeMap, HashMap};

/// Suffixes of the file names.
const ENDS: [(&str, OrionFile); 4] = [
    ("_summary.txt", OrionFile::Summary),
    ("_iops.csv", OrionFile::Iops),
    ("_mbps.csv", OrionFile::Mbps),
    ("_lat.csv", OrionFile::Latency),
];

const HINT: &str =
    "give Orion's files as it wrote them: _iops.csv, _mbps.csv, _lat.csv, _summary.txt";

/// The kinds of Orion files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrionFile {
    Summary,
    Iops,
    Mbps,
    Latency,
}

/// Contents of the files of a run.
#[derive(Debug, Default)]
struct OrionContents {
    cells: BTreeMap<(u32, u32), OrionCell>,
    /// Maximum number of its cells: other runs have the rest.
    cells_most: usize,
    reported: Vec<(String, String)>,
    version: Option<String>,
    sources: Vec<String>,
    /// Cells with a maximum in the summary: label, cell, value.
    maxima: Vec<(&'static str, (u32, u32), f64)>,
    /// The minimum mean latency: its cell, the value as written, whether it has a unit.
    least: Option<((u32, u32), f64, bool)>,
    notes: Vec<String>,
}

impl OrionContents {
    /// The cell at a place.
    ///
    /// # Errors
    /// All matrices together would have too many.
    fn cell(&mut self, name: &str, place: (u32, u32)) -> Result<&mut OrionCell, Error> {
        if self.cells.len() >= self.cells_most && !self.cells.contains_key(&place) {
            return Err(usage!(
                "'{name}' has more than {MATRIX_CELLS_MAX} cells with the files before it, the limit \
                 of matrices of Orion",
                IN_PARTS
            ));
        }
        Ok(self.cells.entry(place).or_default())
    }
}

/// True if Orion wrote `text`.
pub fn is_like(text: &str) -> bool {
    // Screens are pasted with what stands above Orion's output.
    const LINES: usize = 100;
    text.trim_start().starts_with("Large/Small") || text.lines().take(LINES).any(is_summary_line)
}

fn is_summary_line(line: &str) -> bool {
    let line = line.trim_start();
    version(line).is_some()
        || [
            "Maximum Large MBPS=",
            "Maximum Small IOPS=",
            orion_histogram::HEAD,
        ]
        .iter()
        .any(|mark| line.starts_with(mark))
}

/// Beginnings of lines with figures. A page or a mail may have lost the line ends before them.
const FIGURES: [&str; 6] = [
    "Maximum Large MBPS=",
    "Maximum Small IOPS=",
    "Minimum Small Latency=",
    "Small Read Latency: avg=",
    "Small Write Latency: avg=",
    orion_histogram::HEAD,
];

/// A line, cut where a figure begins that has lost the line end before it.
fn pieces(line: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = FIGURES
        .iter()
        .flat_map(|mark| line.match_indices(mark).map(|(at, _)| at))
        .filter(|at| *at > 0)
        .collect();
    starts.push(0);
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(from, to)| line[*from..to].trim())
        .collect()
}

/// The version in the first line of a summary, or in the first line that Orion prints.
fn version(line: &str) -> Option<&str> {
    ["ORION VERSION", "ORION: ORacle IO Numbers -- Version"]
        .iter()
        .find_map(|mark| line.trim_start().strip_prefix(mark))
        .map(str::trim)
}

/// Reads Orion's files; those of one run are combined.
///
/// # Errors
/// A file is not Orion's, or a line of it is damaged.
pub fn read(sources: &[Source]) -> Result<Vec<Imported>, Error> {
    let mut runs: Vec<OrionContents> = Vec::new();
    let mut stems: HashMap<String, usize> = HashMap::new();
    // Number of cells of all runs.
    let mut cells = 0;
    for source in sources {
        let parts = parts(source.text);
        let count = parts.len();
        if count > REPORTS_MAX {
            return Err(usage!(
                "'{name}' has {count} reports, and the limit is {REPORTS_MAX}",
                "give files of fewer reports each",
                name = source.name
            ));
        }
        for (number, (line, text)) in parts.into_iter().enumerate() {
            let part = OrionPart {
                name: source.name,
                text,
                line,
            };
            // Which of several reports a csv belongs to is unknown.
            let stem = if count == 1 {
                stem(source.name)
            } else {
                format!("{} {number}", source.name)
            };
            let place = *stems.entry(stem).or_insert_with(|| {
                runs.push(OrionContents::default());
                runs.len() - 1
            });
            let contents = &mut runs[place];
            let others = cells - contents.cells.len();
            contents.cells_most = MATRIX_CELLS_MAX - others;
            add(part, contents)?;
            cells = others + contents.cells.len();
            if count > 1 {
                let (number, line) = (number + 1, line + 1);
                let place = format!("{number} of {count}, from line {line}");
                contents.reported.insert(0, ("report".into(), place));
            }
        }
    }
    runs.into_iter().map(finish).collect()
}

/// One report of a file.
#[derive(Debug, Clone, Copy)]
struct OrionPart<'a> {
    /// Name of the file.
    name: &'a str,
    text: &'a str,
    /// Number of lines of the file above it.
    line: usize,
}

impl OrionPart<'_> {
    /// The error for damage in the line at `at`, from 0.
    fn damaged(self, at: usize, why: &str) -> Error {
        damaged(self.name, self.line + at + 1, why, HINT)
    }

    /// The error for a report that ends too early.
    fn cut(self, what: &str) -> Error {
        let why = format!("the file is truncated here: {what}");
        self.damaged(self.text.lines().count().saturating_sub(1), &why)
    }
}

/// The reports in `text`, each with the number of lines above it. A report begins with its version,
/// after the results of the one before.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut starts = vec![(0, 0)];
    let (mut at, mut has_results) = (0, false);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if version(line).is_some() {
            if has_results {
                starts.push((number, at));
            }
            has_results = false;
        } else {
            has_results |= is_summary_line(line);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|(_, at)| *at);
    let ends: Vec<usize> = ends.chain([text.len()]).collect();
    starts
        .iter()
        .zip(ends)
        .map(|((line, from), to)| (*line, &text[*from..to]))
        .collect()
}

/// The common prefix of a run's file names.
fn stem(name: &str) -> String {
    let end = ENDS.iter().find_map(|(end, _)| name.strip_suffix(end));
    end.unwrap_or(name).to_string()
}

fn add(part: OrionPart, contents: &mut OrionContents) -> Result<(), Error> {
    if !contents.sources.iter().any(|name| name == part.name) {
        contents.sources.push(part.name.into());
    }
    let is_matrix = part.text.trim_start().starts_with("Large/Small");
    contents.notes.extend(open_end(part, is_matrix)?);
    if !is_matrix {
        return summary(part, contents);
    }
    let by_name = ENDS
        .iter()
        .find(|(end, _)| part.name.ends_with(end))
        .map(|(_, kind)| *kind);
    let kind = by_name
        .filter(|kind| *kind != OrionFile::Summary)
        .unwrap_or_else(|| kind_of(part.text));
    matrix(part, kind, contents)
}

/// A note about a last line without a line end. Orion ends every line, but text that was pasted has
/// no last line end. Half a number is a number too.
///
/// # Errors
/// The last line of a csv is shorter than its columns are wide.
fn open_end(part: OrionPart, is_matrix: bool) -> Result<Option<String>, Error> {
    if part.text.ends_with('\n') {
        return Ok(None);
    }
    let last = part.text.lines().last().unwrap_or_default();
    let what = format!("'{}' has no line end", shortened(last.trim()));
    let number = part.text.lines().count();
    if is_matrix && !has_whole_fields(part.text) {
        let why = format!("{what}: the file is truncated here");
        return Err(part.damaged(number - 1, &why));
    }
    Ok(Some(format!(
        "{} line {}: {what}: it is read, and may be cut short",
        file_name(part.name),
        part.line + number
    )))
}

/// True if the last field of a csv is as wide as the column heads, which all have one width.
fn has_whole_fields(text: &str) -> bool {
    let widths = |line: &str| {
        let fields = line.split(',').skip(1);
        fields.map(str::len).collect::<Vec<usize>>()
    };
    let heads = text.lines().find(|line| line.starts_with("Large/Small"));
    let heads = heads.map(widths).unwrap_or_default();
    let last = text.lines().last().map(widths).unwrap_or_default();
    last.last()
        .is_some_and(|width| heads.iter().all(|head| head == width))
}

/// Kind of a file with an unknown name: MBPS has a column without small I/O, IOPS are integers.
fn kind_of(text: &str) -> OrionFile {
    let mut lines = text.lines();
    let columns = lines.next().unwrap_or("");
    let has_idle = columns
        .split(',')
        .nth(1)
        .is_some_and(|first| first.trim() == "0");
    let has_point = lines.any(|line| line.split(',').skip(1).any(|field| field.contains('.')));
    match (has_idle, has_point) {
        (true, _) => OrionFile::Mbps,
        (_, false) => OrionFile::Iops,
        _ => OrionFile::Latency,
    }
}

fn matrix(part: OrionPart, kind: OrionFile, contents: &mut OrionContents) -> Result<(), Error> {
    let mut columns: Vec<u32> = Vec::new();
    let mut rows = 0;
    let refuse_many = |what: &str, count: usize| {
        if count <= MATRIX_SIDE_MAX {
            return Ok(());
        }
        Err(usage!(
            "'{name}' has a matrix of more than {MATRIX_SIDE_MAX} {what}, the limit of Orion's files",
            HINT,
            name = part.name
        ))
    };
    for (at, line) in part
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let mut fields = line.trim_end().split(',').map(str::trim);
        let head = fields.next().unwrap_or("");
        let level = |text: &str| {
            text.parse::<u32>()
                .map_err(|_| part.damaged(at, &format!("'{text}' is not a number of I/Os")))
        };
        if head == "Large/Small" {
            refuse_many("columns", line.matches(',').count())?;
            columns = fields
                .filter(|field| !field.is_empty())
                .map(level)
                .collect::<Result<_, _>>()?;
            continue;
        }
        let large = level(head)?;
        rows += 1;
        refuse_many("rows", rows)?;
        let mut values: Vec<&str> = fields.collect();
        while values.last() == Some(&"") {
            values.pop();
        }
        if values.len() > columns.len() {
            let why = format!("{} values for {} columns", values.len(), columns.len());
            return Err(part.damaged(at, &why));
        }
        // For large I/O many runs measure only the first column; any other short row lacks cells.
        let is_short = !values.is_empty() && values.len() < columns.len();
        if is_short && (kind != OrionFile::Mbps || values.len() > 1) {
            contents.notes.push(format!(
                "{} line {}: {} values for {} columns: the others were not measured",
                file_name(part.name),
                part.line + at + 1,
                values.len(),
                columns.len()
            ));
        }
        for (small, text) in columns
            .iter()
            .zip(values)
            .filter(|(_, text)| !text.is_empty())
        {
            let value = number(text, false).filter(|value| *value >= 0.0);
            let value =
                value.ok_or_else(|| part.damaged(at, &format!("'{text}' is not a number")))?;
            let cell = contents.cell(part.name, (*small, large))?;
            match kind {
                OrionFile::Mbps => cell.mbps = Some(value),
                OrionFile::Latency => cell.latency = Some(value),
                OrionFile::Iops | OrionFile::Summary => cell.iops = Some(value),
            }
        }
    }
    Ok(())
}

fn summary(part: OrionPart, contents: &mut OrionContents) -> Result<(), Error> {
    let lines = part.text.lines().enumerate();
    let mut lines = lines
        .flat_map(|(at, line)| pieces(line).into_iter().map(move |piece| (at, piece)))
        .peekable();
    let mut is_known = false;
    // The cell of the histogram whose rows follow.
    let mut of_histogram = None;
    let mut names = 0_u32;
    while let Some((at, line)) = lines.next() {
        is_known |= is_summary_line(line);
        let wrong = |what: &str| part.damaged(at, &format!("'{}' is {what}", shortened(line)));
        let figure = |rest: &str| {
            labelled(rest)
                .ok_or_else(|| part.damaged(at, &format!("'{rest}' is not a figure of a cell")))
        };
        if let Some(version) = version(line) {
            contents.version = Some(version.into());
        } else if ["Command line:", "Commandline:"].contains(&line) {
            let command = lines.peek().map_or("", |(_, next)| next.trim());
            contents.reported.push(("command".into(), command.into()));
        } else if let Some(rest) = line.strip_prefix("Maximum Large MBPS=") {
            let (cell, value, _) = figure(rest)?;
            contents.cell(part.name, cell)?;
            contents.maxima.push(("MBPS", cell, value));
        } else if let Some(rest) = line.strip_prefix("Maximum Small IOPS=") {
            let (cell, value, _) = figure(rest)?;
            contents.cell(part.name, cell)?;
            contents.maxima.push(("IOPS", cell, value));
        } else if let Some(rest) = line.strip_prefix("Minimum Small Latency=") {
            let (cell, value, has_unit) = figure(rest)?;
            contents.least = Some((cell, value, has_unit));
        } else if line.starts_with(orion_histogram::HEAD) {
            let cell = cell_of(line).ok_or_else(|| wrong("not the histogram of a cell"))?;
            contents.cell(part.name, cell)?.histogram.clear();
            of_histogram = Some(cell);
        } else if let Some(cell) = of_histogram.filter(|_| HistogramRow::begins(line)) {
            let row = HistogramRow::of(line).ok_or_else(|| wrong("not a row of a histogram"))?;
            contents.cell(part.name, cell)?.histogram.push(row);
        } else if let Some((kind, rest)) = line.split_once(" Latency: avg=") {
            let parsed = latency_line(rest);
            let (cell, reported) = parsed.ok_or_else(|| wrong("not a latency line"))?;
            contents.cell(part.name, cell)?.add_line(kind, reported);
        } else if let Some(count) = files_found(line) {
            if names > 0 && count != names {
                contents.notes.push(format!(
                    "the summary says '{line}' below {names} lines with the name of one"
                ));
            }
        } else if let Some((name, value)) = line.split_once(':') {
            names += u32::from(name == "Name");
            let is_setting = SETTINGS.contains(&name) || name == "Name";
            if is_setting && !value.trim().is_empty() {
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                contents.reported.push((
                    if name == "Name" {
                        "file".into()
                    } else {
                        name.into()
                    },
                    value,
                ));
            }
        } else if line.contains("orion") && line.contains("-run ") {
            contents.reported.push(("command".into(), shortened(line)));
        }
    }
    if !is_known {
        return Err(failed!(
            "'{name}' is not a file of Orion's",
            HINT,
            name = part.name
        ));
    }
    missing(part.text).map_or(Ok(()), |what| Err(part.cut(what)))
}

/// The number in `2 files found.`
fn files_found(line: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    let count = words.next()?.parse().ok()?;
    let is_end = words.next()?.eq_ignore_ascii_case("files") && words.next() == Some("found.");
    is_end.then_some(count)
}

/// A required part of a summary that is missing. After a stopped run, `rigel orion` reports that
/// instead of results.
fn missing(text: &str) -> Option<&'static str> {
    let has = |mark: &str| {
        let mut pieces = text.lines().flat_map(pieces);
        pieces.any(|piece| piece.starts_with(mark))
    };
    let (large, small) = (has("Maximum Large MBPS="), has("Maximum Small IOPS="));
    let is_ended_early = [
        "No complete data point",
        "Failed IOs=",
        "Incomplete @",
        "Not run:",
    ]
    .into_iter()
    .any(has);
    let asks = |columns: &str| {
        let levels = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(columns));
        levels.is_some_and(|levels| {
            levels
                .split(',')
                .any(|level| level.trim().parse::<u32>().is_ok_and(|n| n > 0))
        })
    };
    if small && !has("Minimum Small Latency=") {
        Some("there is no 'Minimum Small Latency='")
    } else if has(orion_histogram::HEAD) && !has_last_bucket(text) {
        Some("its histogram has no last bucket")
    } else if is_ended_early {
        None
    } else if !small && asks("Small Columns:") {
        Some("there is no 'Maximum Small IOPS='")
    } else if !small && !large && !has(orion_histogram::HEAD) {
        Some("there are no results")
    } else {
        None
    }
}

/// True if `text` has the last line of a histogram, which ends at 2^28 us. From 19c on, Orion
/// joins the empty buckets at both ends, and adds the share of the I/Os up to each bucket.
fn has_last_bucket(text: &str) -> bool {
    const END: &str = "268435456";
    let bucket = |line: &str| {
        let (from, rest) = line.split_once(" - ")?;
        let mut words = rest.split_whitespace();
        let is_last = from.trim().parse::<u64>().is_ok() && words.next() == Some(END);
        let counts = words.skip(1).filter(|word| word.parse::<u64>().is_ok());
        (is_last && counts.count() >= 2).then_some(())
    };
    text.lines().any(|line| bucket(line).is_some())
}

/// The settings of a summary to keep.
const SETTINGS: &[&str] = &[
    "Test",
    "Small IO size",
    "Large IO size",
    "IO types",
    "IO Types",
    "Sequential stream pattern",
    "Simulated Array Type",
    "Stripe Depth",
    "Writes",
    "Write",
    "Cache size",
    "Cache Size",
    "Duration for each data point",
    "Number of concurrent IOs per stream",
];

/// Parses `4734 @ Small=5 and Large=0` or `248.000 usecs @ …`: the cell, the value, whether it has
/// a unit.
fn labelled(text: &str) -> Option<((u32, u32), f64, bool)> {
    let (value, cell) = text.split_once('@')?;
    let mut words = value.split_whitespace();
    let value = number(words.next()?, false).filter(|value| *value >= 0.0)?;
    let scale = match words.next() {
        None => return Some((cell_of(cell)?, value, false)),
        Some("usecs" | "us") => 1.0,
        Some("msecs" | "ms") => 1e3,
        Some(_) => return None,
    };
    Some((cell_of(cell)?, value * scale, true))
}

/// Parses `Small=5 and Large=0`.
fn cell_of(text: &str) -> Option<(u32, u32)> {
    let after = |mark: &str| {
        let rest = &text[text.find(mark)? + mark.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    Some((after("Small=")?, after("Large=")?))
}

/// Parses `639.000 us, min=… us, max=… us, std dev=… us @ Small=5 and Large=0`.
fn latency_line(text: &str) -> Option<((u32, u32), ReportedLatency)> {
    let (figures, cell) = text.split_once('@')?;
    let mut latency = ReportedLatency {
        of: "total".into(),
        ..ReportedLatency::default()
    };
    for part in format!("avg={figures}").split(',') {
        let (name, value) = part.split_once('=')?;
        let mut words = value.split_whitespace();
        let value = number(words.next()?, false).filter(|value| *value >= 0.0)?;
        let value = Some(value * if words.next() == Some("ms") { 1e6 } else { 1e3 });
        match name.trim() {
            "avg" => latency.mean = value,
            "min" => latency.min = value,
            "max" => latency.max = value,
            "std dev" => latency.deviation = value,
            _ => {}
        }
    }
    Some((cell_of(cell)?, latency))
}

/// The size in a setting, in bytes.
fn size(reported: &[(String, String)], name: &str) -> Option<u32> {
    let text = &reported.iter().find(|(known, _)| known == name)?.1;
    let kb: u32 = text.split_whitespace().next()?.parse().ok()?;
    kb.checked_mul(1024)
}

/// The percentage of writes in `-run oltp -write 50`.
fn writes_of(command: &str) -> Option<f64> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == "-write")?;
    words.next()?.parse().ok()
}

fn finish(mut found: OrionContents) -> Result<Imported, Error> {
    for (what, cell, value) in std::mem::take(&mut found.maxima) {
        let cell = found.cells.entry(cell).or_default();
        let place = if what == "MBPS" {
            &mut cell.mbps
        } else {
            &mut cell.iops
        };
        place.get_or_insert(value);
    }
    let scale = unit(&mut found);
    if let Some((cell, value, has_unit)) = found
        .least
        .filter(|(_, _, has_unit)| *has_unit || scale > 0.0)
    {
        let ns = value * if has_unit { 1e3 } else { scale };
        found.cells.entry(cell).or_default().least_ns = Some(ns);
    }
    let sizes = (
        size(&found.reported, "Small IO size"),
        size(&found.reported, "Large IO size"),
    );
    let setting = |names: [&str; 2]| {
        found
            .reported
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()))
            .map(|(_, v)| v)
    };
    let writes = setting(["Writes", "Write"])
        .and_then(|text| text.trim_end_matches('%').parse::<f64>().ok())
        .or_else(|| writes_of(setting(["command", ""])?));
    let seconds = setting(["Duration for each data point", ""])
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let is_summed_up = sizes.0.is_some() || sizes.1.is_some();
    let run = OrionTerms {
        sizes,
        scale,
        seconds,
        kind: OrionTerms::kind(writes, &found.cells.values()),
    };
    let mut points = Vec::new();
    for (&(small, large), cell) in &found.cells {
        let flows = flows((small, large), cell, run, &mut found.notes);
        if flows.is_empty() {
            continue;
        }
        points.push(LoadPoint {
            label: Coordinates::cell(small, large).to_string(),
            load: ReportedLoad::Cell { small, large },
            processes: None,
            pattern: is_summed_up.then(|| "uniform".to_string()),
            writes_percent: writes,
            beside: Vec::new(),
            began: None,
            seconds,
            flows,
            ..LoadPoint::default()
        });
    }
    if !is_summed_up {
        found
            .notes
            .push("without its _summary.txt, I/O sizes and the share of writes are unknown".into());
    }
    if points.iter().flat_map(|point| &point.flows).any(|flow| {
        let mut latencies = flow.latencies.iter();
        latencies.any(|latency| latency.histogram.is_some())
    }) {
        found.notes.push(
            "percentiles are interpolated within the buckets of Orion's histogram, each of which \
             is as wide as the shortest latency in it"
                .into(),
        );
    }
    if points
        .iter()
        .flat_map(|point| &point.flows)
        .any(|flow| flow.class == "large")
    {
        found
            .notes
            .push("Orion's MB are taken as 2^20 bytes".into());
    }
    let name = file_name(found.sources.first().map_or("", String::as_str)).to_string();
    let imported = Imported {
        sources: found.sources,
        tool: "orion".into(),
        version: found.version,
        reported: found.reported,
        notes: found.notes,
        figures: Figures::Loads(points),
    };
    refuse_empty(&name, imported)
}

/// The unit of latencies without a written unit, in nanoseconds: microseconds or milliseconds,
/// whichever is closer to outstanding I/Os divided by IOPS. Without IOPS microseconds, as in
/// 11.2.0.2 and later.
fn unit(found: &mut OrionContents) -> f64 {
    let of_files =
        |(&(small, _), cell): (&(u32, u32), &OrionCell)| Some((small, cell.iops?, cell.latency?));
    let of_summary = || {
        let (cell, latency, has_unit) = found.least?;
        (!has_unit).then_some((cell.0, found.cells.get(&cell)?.iops?, latency))
    };
    let cells: Vec<(u32, f64, f64)> = found
        .cells
        .iter()
        .filter_map(of_files)
        .chain(of_summary())
        .collect();
    let mut shifts: Vec<f64> = cells
        .into_iter()
        .filter(|(small, iops, latency)| *small > 0 && *iops > 0.0 && *latency > 0.0)
        .map(|(small, iops, latency)| (f64::from(small) / iops * 1e6 / latency).log10())
        .collect();
    shifts.sort_by(f64::total_cmp);
    let is_written = found.least.is_some_and(|(_, _, has_unit)| !has_unit)
        || found.cells.values().any(|c| c.latency.is_some());
    match shifts.get(shifts.len() / 2) {
        Some(shift) if *shift > 1.5 => {
            found.notes.push(
                "latencies are taken as milliseconds, which outstanding I/Os divided by IOPS \
                 confirm"
                    .into(),
            );
            1e6
        }
        Some(_) => 1e3,
        None if found.version.as_deref().is_some_and(writes_milliseconds) => {
            if is_written {
                found.notes.push(
                    "latencies are taken as milliseconds, which versions before 11.2.0.2 write"
                        .into(),
                );
            }
            1e6
        }
        None => {
            if is_written {
                found.notes.push(
                    "the unit of latencies is not given, and there are no IOPS to derive it from: \
                     taken as microseconds, which versions since 11.2.0.2 write; older ones wrote \
                     milliseconds"
                        .into(),
                );
            }
            1e3
        }
    }
}

/// True for versions before 11.2.0.2.
fn writes_milliseconds(version: &str) -> bool {
    const FIRST: [u32; 4] = [11, 2, 0, 2];
    let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
    numbers.is_some_and(|numbers| numbers.as_slice() < FIRST.as_slice())
}

#[cfg(test)]
mod tests;
