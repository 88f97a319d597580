//! Orion's `_iops.csv`, `_mbps.csv`, `_lat.csv` and `_summary.txt`, of every version, and those of
//! `rigel orion`.
//!
//! Files of one run, which have one prefix, are combined. Versions before 11.2.0.2 wrote latencies
//! in milliseconds without the unit. By Little's law the latency is outstanding I/Os divided by
//! IOPS, which reveals the unit.

use super::source::{Source, damaged, file_name, number, refuse_empty, shortened};
use crate::model::{Coordinates, Error, MIB};
use crate::record::Imported;
use crate::record::imported::{Figures, Flow, LoadPoint, ReportedLatency, ReportedLoad};
use std::collections::BTreeMap;

/// Suffixes of the file names.
const ENDS: [(&str, OrionFile); 4] = [
    ("_summary.txt", OrionFile::Summary),
    ("_iops.csv", OrionFile::Iops),
    ("_mbps.csv", OrionFile::Mbps),
    ("_lat.csv", OrionFile::Latency),
];

const CURE: &str =
    "give Orion's files as it wrote them: _iops.csv, _mbps.csv, _lat.csv, _summary.txt";

/// The kinds of Orion files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrionFile {
    Summary,
    Iops,
    Mbps,
    Latency,
}

/// Figures of a cell from the files of a run.
#[derive(Debug, Clone, Default)]
struct OrionCell {
    iops: Option<f64>,
    mbps: Option<f64>,
    /// Mean latency of small I/O, in the unit of the file.
    latency: Option<f64>,
    /// Latencies of its small I/O in the summary, in nanoseconds.
    lines: Vec<(String, ReportedLatency)>,
}

/// Contents of the files of a run.
#[derive(Debug, Default)]
struct OrionContents {
    cells: BTreeMap<(u32, u32), OrionCell>,
    told: Vec<(String, String)>,
    version: Option<String>,
    sources: Vec<String>,
    /// Cells with a maximum in the summary: label, cell, value.
    maxima: Vec<(&'static str, (u32, u32), f64)>,
    /// The minimum mean latency: its cell, the value as written, whether it has a unit.
    least: Option<((u32, u32), f64, bool)>,
    notes: Vec<String>,
}

/// True if Orion wrote `text`.
#[must_use]
pub fn is_like(text: &str) -> bool {
    text.trim_start().starts_with("Large/Small") || text.lines().take(20).any(is_summary_line)
}

fn is_summary_line(line: &str) -> bool {
    let line = line.trim_start();
    [
        "ORION VERSION",
        "Maximum Large MBPS=",
        "Maximum Small IOPS=",
    ]
    .iter()
    .any(|mark| line.starts_with(mark))
}

/// Reads Orion's files; those of one run are combined.
///
/// # Errors
/// A file is not Orion's, or a line of it is damaged.
pub fn read(sources: &[Source]) -> Result<Vec<Imported>, Error> {
    let mut runs: Vec<(String, OrionContents)> = Vec::new();
    for source in sources {
        let stem = stem(source.name);
        let place = runs
            .iter()
            .position(|(known, _)| *known == stem)
            .unwrap_or_else(|| {
                runs.push((stem, OrionContents::default()));
                runs.len() - 1
            });
        add(*source, &mut runs[place].1)?;
    }
    runs.into_iter().map(|(_, found)| finish(found)).collect()
}

/// The common prefix of a run's file names.
fn stem(name: &str) -> String {
    let end = ENDS.iter().find_map(|(end, _)| name.strip_suffix(end));
    end.unwrap_or(name).to_string()
}

fn add(source: Source, found: &mut OrionContents) -> Result<(), Error> {
    found.sources.push(source.name.into());
    refuse_cut(source)?;
    if !source.text.trim_start().starts_with("Large/Small") {
        return summary(source, found);
    }
    let by_name = ENDS
        .iter()
        .find(|(end, _)| source.name.ends_with(end))
        .map(|(_, part)| *part);
    let part = by_name
        .filter(|part| *part != OrionFile::Summary)
        .unwrap_or_else(|| part_of(source.text));
    matrix(source, part, found)
}

/// Refuses a file whose last line has no line end: Orion ends every line, and half a number is a
/// number too.
fn refuse_cut(source: Source) -> Result<(), Error> {
    if source.text.ends_with('\n') {
        return Ok(());
    }
    let last = source.text.lines().last().unwrap_or_default();
    let why = format!(
        "'{}' has no line end: the file is truncated here",
        shortened(last.trim())
    );
    Err(damaged(
        source.name,
        source.text.lines().count(),
        &why,
        CURE,
    ))
}

/// Kind of a file with an unknown name: MBPS has a column without small I/O, IOPS are integers.
fn part_of(text: &str) -> OrionFile {
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

fn matrix(source: Source, part: OrionFile, found: &mut OrionContents) -> Result<(), Error> {
    let wrong = |line: usize, why: &str| damaged(source.name, line, why, CURE);
    let mut columns: Vec<u32> = Vec::new();
    for (at, line) in source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let mut fields = line.trim_end().split(',').map(str::trim);
        let head = fields.next().unwrap_or("");
        let level = |text: &str| {
            text.parse::<u32>()
                .map_err(|_| wrong(at + 1, &format!("'{text}' is not a number of I/Os")))
        };
        if head == "Large/Small" {
            columns = fields
                .filter(|field| !field.is_empty())
                .map(level)
                .collect::<Result<_, _>>()?;
            continue;
        }
        let large = level(head)?;
        let mut values: Vec<&str> = fields.collect();
        while values.last() == Some(&"") {
            values.pop();
        }
        if values.len() > columns.len() {
            return Err(wrong(
                at + 1,
                &format!("{} values for {} columns", values.len(), columns.len()),
            ));
        }
        // For large I/O many runs measure only the first column; any other short row lacks cells.
        let is_short = !values.is_empty() && values.len() < columns.len();
        if is_short && (part != OrionFile::Mbps || values.len() > 1) {
            found.notes.push(format!(
                "{} line {}: {} values for {} columns: the others were not measured",
                file_name(source.name),
                at + 1,
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
            let value = value.ok_or_else(|| wrong(at + 1, &format!("'{text}' is not a number")))?;
            let cell = found.cells.entry((*small, large)).or_default();
            match part {
                OrionFile::Mbps => cell.mbps = Some(value),
                OrionFile::Latency => cell.latency = Some(value),
                OrionFile::Iops | OrionFile::Summary => cell.iops = Some(value),
            }
        }
    }
    Ok(())
}

fn summary(source: Source, found: &mut OrionContents) -> Result<(), Error> {
    let mut lines = source.text.lines().enumerate().peekable();
    let mut is_known = false;
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        is_known |= is_summary_line(line);
        let figure = |rest: &str| {
            let parsed = labelled(rest);
            parsed.ok_or_else(|| {
                damaged(
                    source.name,
                    at + 1,
                    &format!("'{rest}' is not a figure of a cell"),
                    CURE,
                )
            })
        };
        if let Some(version) = line.strip_prefix("ORION VERSION") {
            found.version = Some(version.trim().into());
        } else if line == "Command line:" {
            let command = lines.peek().map_or("", |(_, next)| next.trim());
            found.told.push(("command".into(), command.into()));
        } else if let Some(rest) = line.strip_prefix("Maximum Large MBPS=") {
            let (cell, value, _) = figure(rest)?;
            found.maxima.push(("MBPS", cell, value));
        } else if let Some(rest) = line.strip_prefix("Maximum Small IOPS=") {
            let (cell, value, _) = figure(rest)?;
            found.maxima.push(("IOPS", cell, value));
        } else if let Some(rest) = line.strip_prefix("Minimum Small Latency=") {
            let (cell, value, has_unit) = figure(rest)?;
            found.least = Some((cell, value, has_unit));
        } else if let Some((kind, rest)) = line.split_once(" Latency: avg=") {
            let parsed = latency_line(rest);
            let (cell, told) = parsed.ok_or_else(|| {
                damaged(
                    source.name,
                    at + 1,
                    &format!("'{line}' is not a latency line"),
                    CURE,
                )
            })?;
            found
                .cells
                .entry(cell)
                .or_default()
                .lines
                .push((kind.trim_start_matches("Small ").to_lowercase(), told));
        } else if let Some((name, value)) = line.split_once(':') {
            let is_setting = SETTINGS.contains(&name) || name == "Name";
            if is_setting && !value.trim().is_empty() {
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                found.told.push((
                    if name == "Name" {
                        "file".into()
                    } else {
                        name.into()
                    },
                    value,
                ));
            }
        }
    }
    if !is_known {
        return Err(Error::failed(
            format!("'{}' is not a file of Orion's", source.name),
            CURE,
        ));
    }
    match missing(source.text) {
        None => Ok(()),
        Some(what) => {
            let why = format!("the file is truncated here: {what}");
            Err(damaged(
                source.name,
                source.text.lines().count(),
                &why,
                CURE,
            ))
        }
    }
}

/// A required part of a summary that is missing. After a stopped run, `rigel orion` reports that
/// instead of results.
fn missing(text: &str) -> Option<&'static str> {
    let has = |mark: &str| text.lines().any(|line| line.trim_start().starts_with(mark));
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
    } else if has("Small Read / Write Latency Histogram") && !text.contains(LAST_BUCKET) {
        Some("its histogram has no last bucket")
    } else if is_ended_early {
        None
    } else if !small && asks("Small Columns:") {
        Some("there is no 'Maximum Small IOPS='")
    } else if !small && !large {
        Some("there are no results")
    } else {
        None
    }
}

/// Beginning of the last line of a summary's histogram.
const LAST_BUCKET: &str = "134217728 - 268435456";

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
    let mut told = ReportedLatency {
        of: "total".into(),
        ..ReportedLatency::default()
    };
    for part in format!("avg={figures}").split(',') {
        let (name, value) = part.split_once('=')?;
        let mut words = value.split_whitespace();
        let value = number(words.next()?, false).filter(|value| *value >= 0.0)?;
        let value = Some(value * if words.next() == Some("ms") { 1e6 } else { 1e3 });
        match name.trim() {
            "avg" => told.mean = value,
            "min" => told.min = value,
            "max" => told.max = value,
            "std dev" => told.deviation = value,
            _ => {}
        }
    }
    Some((cell_of(cell)?, told))
}

/// The size in a setting, in bytes.
fn size(told: &[(String, String)], name: &str) -> Option<u32> {
    let text = &told.iter().find(|(known, _)| known == name)?.1;
    let kb: u32 = text.split_whitespace().next()?.parse().ok()?;
    kb.checked_mul(1024)
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
        let cell = found.cells.entry(cell).or_default();
        if cell.latency.is_none() && cell.lines.is_empty() {
            cell.lines.push((
                "all".into(),
                ReportedLatency {
                    of: "total".into(),
                    mean: Some(ns),
                    ..ReportedLatency::default()
                },
            ));
        }
    }
    let sizes = (
        size(&found.told, "Small IO size"),
        size(&found.told, "Large IO size"),
    );
    let setting = |names: [&str; 2]| {
        found
            .told
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()))
            .map(|(_, v)| v)
    };
    let writes = setting(["Writes", "Write"])
        .and_then(|text| text.trim_end_matches('%').parse::<f64>().ok());
    let seconds = setting(["Duration for each data point", ""])
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let is_summed_up = found.version.is_some() || !found.told.is_empty();
    let mut points = Vec::new();
    for (&(small, large), cell) in &found.cells {
        let flows = flows((small, large), cell, sizes, writes, scale, &mut found.notes);
        if flows.is_empty() {
            continue;
        }
        points.push(LoadPoint {
            label: Coordinates::cell(small, large).to_string(),
            load: ReportedLoad::Cell { small, large },
            pattern: is_summed_up.then(|| "uniform".to_string()),
            writes_percent: writes,
            beside: Vec::new(),
            began: None,
            seconds,
            flows,
        });
    }
    if !is_summed_up {
        found
            .notes
            .push("without its _summary.txt, I/O sizes and the share of writes are unknown".into());
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
        told: found.told,
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
    let known: Vec<(u32, f64, f64)> = found
        .cells
        .iter()
        .filter_map(of_files)
        .chain(of_summary())
        .collect();
    let mut shifts: Vec<f64> = known
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

/// The flows of a cell.
fn flows(
    (small, large): (u32, u32),
    cell: &OrionCell,
    sizes: (Option<u32>, Option<u32>),
    writes: Option<f64>,
    scale: f64,
    notes: &mut Vec<String>,
) -> Vec<Flow> {
    let kind = match writes {
        Some(0.0) => "read",
        Some(100.0) => "write",
        _ => "mixed",
    };
    let mut flows = Vec::new();
    let mean = cell.latency.map(|latency| latency * scale);
    // Separate reads and writes have two lines, and neither line covers both.
    let alone = cell
        .lines
        .first()
        .filter(|_| cell.lines.iter().all(|line| line.0 == cell.lines[0].0));
    let mut told = alone.map(|(_, told)| told.clone());
    if let (Some(mean), Some(line)) = (mean, told.as_ref().and_then(|told| told.mean))
        && (line / mean - 1.0).abs() > 0.01
    {
        notes.push(format!(
            "Small={small} and Large={large}: the summary has a mean latency of {:.0} us, the csv \
             {:.0} us: the csv is used, because Orion 11.2.0.2 is known to print figures below \
             the label of another cell",
            line / 1e3,
            mean / 1e3
        ));
        told = None;
    }
    let latency = told.or_else(|| {
        Some(ReportedLatency {
            of: "total".into(),
            mean: Some(mean?),
            ..ReportedLatency::default()
        })
    });
    if cell.iops.is_some() || latency.is_some() {
        let bytes_per_s = cell
            .iops
            .zip(sizes.0)
            .map(|(iops, size)| iops * f64::from(size));
        flows.push(Flow {
            class: "small".into(),
            kind: kind.into(),
            io_bytes: sizes.0,
            done: None,
            iops: cell.iops,
            bytes_per_s,
            latencies: latency.into_iter().collect(),
        });
    }
    if let Some(mbps) = cell.mbps {
        let bytes_per_s = mbps * MIB as f64;
        flows.push(Flow {
            class: "large".into(),
            kind: kind.into(),
            io_bytes: sizes.1,
            iops: sizes.1.map(|size| bytes_per_s / f64::from(size)),
            bytes_per_s: Some(bytes_per_s),
            ..Flow::default()
        });
    }
    flows
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMPLE: [(&str, &str); 4] = [
        (
            "o_20110510_2303_iops.csv",
            include_str!("../../tests/golden/classic/simple_iops.csv"),
        ),
        (
            "o_20110510_2303_mbps.csv",
            include_str!("../../tests/golden/classic/simple_mbps.csv"),
        ),
        (
            "o_20110510_2303_lat.csv",
            include_str!("../../tests/golden/classic/simple_lat.csv"),
        ),
        (
            "o_20110510_2303_summary.txt",
            include_str!("../../tests/golden/classic/simple_summary.txt"),
        ),
    ];

    fn loads(files: &[(&str, &str)]) -> (Imported, Vec<LoadPoint>) {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source { name, text })
            .collect();
        let mut found = read(&sources).unwrap();
        assert_eq!(found.len(), 1);
        let found = found.remove(0);
        let Figures::Loads(points) = found.figures.clone() else {
            unreachable!("Orion has loads")
        };
        (found, points)
    }

    fn mean(point: &LoadPoint) -> f64 {
        point.flows[0].latencies[0].mean.unwrap()
    }

    #[test]
    fn the_files_of_a_run_are_put_together() {
        let (found, points) = loads(&SIMPLE);
        assert_eq!(found.sources.len(), 4);
        assert_eq!(points.len(), 7);
        assert_eq!(points[0].load, ReportedLoad::Cell { small: 0, large: 1 });
        let flow = &points[2].flows[0];
        assert_eq!(
            (flow.iops, flow.io_bytes, flow.class.as_str()),
            (Some(2302.0), Some(8192), "small")
        );
        assert_eq!(points[0].flows[0].bytes_per_s, Some(271.58 * MIB as f64));
        assert!(
            found.told.contains(&("Writes".into(), "0%".into())),
            "{:?}",
            found.told
        );
    }

    #[test]
    fn a_missing_unit_is_derived_from_littles_law() {
        let iops = (
            "t_iops.csv",
            "Large/Small,      1,      2\n          0,   1000,   1600\n",
        );
        let us = loads(&[
            iops,
            (
                "t_lat.csv",
                "Large/Small,      1,      2\n          0,1000.00,1250.00\n",
            ),
        ]);
        let ms = loads(&[
            iops,
            (
                "t_lat.csv",
                "Large/Small,      1,      2\n          0,   1.00,   1.25\n",
            ),
        ]);
        assert_eq!(
            (mean(&us.1[0]), mean(&ms.1[0]), mean(&ms.1[1])),
            (1e6, 1e6, 1.25e6)
        );
        assert!(ms.0.notes[0].contains("milliseconds"), "{:?}", ms.0.notes);
        let alone = loads(&[("t_lat.csv", "Large/Small,      1\n          0,   1.00\n")]);
        assert!(
            alone.0.notes[0].contains("taken as microseconds"),
            "{:?}",
            alone.0.notes
        );
    }

    #[test]
    fn an_old_summary_gives_its_maxima() {
        let text = "ORION VERSION 11.1.0.7.0\n\nCommandline:\n-run simple -testname t -num_disks \
                    2 \n\nThis maps to this test:\nTest: t\nSmall IO size: 8 KB\nLarge IO size: \
                    1024 KB\nIO Types: Small Random IOs, Large Random IOs\nWrite: 0%\nMaximum \
                    Large MBPS=42.10 @ Small=0 and Large=4 \nMaximum Small IOPS=1250 @ Small=10 \
                    and Large=0 \nMinimum Small Latency=4.00 @ Small=1 and Large=0 \n";
        let (found, points) = loads(&[("t_summary.txt", text)]);
        assert_eq!(found.version.as_deref(), Some("11.1.0.7.0"));
        let labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
        assert_eq!(
            labels,
            ["Small=0, Large=4", "Small=1, Large=0", "Small=10, Large=0"]
        );
        assert!(
            found.notes.iter().any(|note| note.contains("not given")),
            "{:?}",
            found.notes
        );
        assert_eq!(points[2].flows[0].iops, Some(1250.0));
    }

    #[test]
    fn lines_below_a_wrong_label_do_not_count() {
        let files = [
            ("t_lat.csv", "Large/Small,      5\n          0, 639.00\n"),
            (
                "t_summary.txt",
                "ORION VERSION 11.2.0.2.0\nMaximum Small IOPS=7800 @ Small=5 and Large=0\nSmall \
                 Read Latency: avg=248.000 us, min=20 us, max=900 us, std dev=9 us @ Small=5 and \
                 Large=0\nMinimum Small Latency=639.000 usecs @ Small=5 and Large=0\n",
            ),
        ];
        let (found, points) = loads(&files);
        assert_eq!(
            (mean(&points[0]), points[0].flows[0].latencies[0].min),
            (639_000.0, None)
        );
        assert!(
            found
                .notes
                .iter()
                .any(|note| note.contains("below the label of another cell")),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn truncated_files_are_refused() {
        for (name, text) in SIMPLE {
            for end in 0..text.len() {
                let left = &text[..end];
                // A missing row between complete lines cannot be detected, nor can lines that older
                // versions do not write.
                let is_csv = text.starts_with("Large/Small");
                let may_end = is_csv
                    || left.contains("Minimum Small Latency=") && !left.contains("Histogram");
                let found = read(&[Source { name, text: left }]);
                assert!(
                    may_end && left.ends_with('\n') || found.is_err(),
                    "{name} cut after {end} bytes: {found:?}"
                );
            }
        }
        let troubled = include_str!("../../tests/golden/classic/troubled_summary.txt");
        assert!(loads(&[("t_summary.txt", troubled)]).1.len() > 1);
        let rows = include_str!("../../tests/golden/classic/troubled_iops.csv");
        let (found, _) = loads(&[("t_iops.csv", rows)]);
        assert!(
            found.notes[0].contains("t_iops.csv line 2: 2 values for 5 columns"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (name, text, part) in [
            (
                "t_iops.csv",
                "Large/Small, 1, 2\n 0, 2302, x\n",
                "line 2: 'x' is not a number",
            ),
            (
                "t_iops.csv",
                "Large/Small, 1\n 0, 2302, 7\n",
                "line 2: 2 values for 1 columns",
            ),
            ("t_iops.csv", "Large/Small, 1\n", "contains no figures"),
            (
                "t_iops.csv",
                "Large/Small, 1, 2\n 0, 10000,  20",
                "line 2: '0, 10000,  20' has no line end: the file is truncated",
            ),
            (
                "t_summary.txt",
                "ORION VERSION 11\nMaximum Small IOPS=12 @ Sma\n",
                "line 2: '12 @ Sma' is not a figure",
            ),
            (
                "t_summary.txt",
                "ORION VERSION 11\nMaximum Small IOPS=12 @ Small=1 and Large=0\n",
                "line 2: the file is truncated here: there is no 'Minimum Small Latency='",
            ),
            (
                "t_summary.txt",
                "ORION VERSION 11\nTest: t\n",
                "line 2: the file is truncated here: there are no results",
            ),
            ("t.txt", "hello\n", "is not a file of Orion's"),
        ] {
            let said = read(&[Source { name, text }]).unwrap_err().to_string();
            assert!(said.contains(part) && said.contains("hint: "), "{said}");
        }
    }
}
