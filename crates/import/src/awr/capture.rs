//! Captures by AWR-Miner, its Statspack sister and the DBCSI dialect: a series of snapshots.
//!
//! A capture has blocks `~~BEGIN-NAME~~` to `~~END-NAME~~`, each with heads, a ruler and rows. Lines
//! between blocks are timings and progress. One row of MAIN-METRICS is an instance in a snapshot;
//! the histogram of waits is summed over instances.

use super::grid::squeezed;
use super::identity::MINUTE_S;
use super::{Source, number};
use crate::limits::NO_BOUND_MS;
use crate::limits::REPORT_MAX;
use crate::ruler::{LineCells, Ruler, expanded_text, unclear};
use crate::time::{Order, moment};
use rigel_model::record::Imported;
use rigel_model::record::database::{
    CaptureMetrics, DatabaseIdentity, DatabaseReport, Printed, ReportKind, SnapshotWindow,
    WaitBucket, WaitHistogram,
};
use rigel_model::record::imported::Figures;
use rigel_model::{Error, Moment, failed};
use std::collections::BTreeMap;

/// Columns that are kept; `_max` is the busiest minute.
const METRICS: &[&str] = &[
    "aas",
    "commits_s",
    "db_time",
    "exec_s",
    "l_reads_s",
    "os_cpu",
    "os_cpu_max",
    "read_bks",
    "read_bks_direct",
    "read_iops",
    "read_iops_direct",
    "read_iops_max",
    "read_mb_s",
    "read_mb_s_max",
    "redo_mb_s",
    "redo_mb_s_max",
    "s_blk_r_lat",
    "write_bks",
    "write_bks_direct",
    "write_iops",
    "write_iops_direct",
    "write_iops_max",
    "write_mb_s",
    "write_mb_s_max",
];

/// The rows of one block.
struct BlockRows {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Words that were left out, because they may belong to either of two columns.
    unclear: usize,
}

impl BlockRows {
    fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|head| head == name)
    }
}

/// Reads a capture.
///
/// # Errors
/// It has no rows of metrics.
pub(super) fn read(source: Source) -> Result<Imported, Error> {
    let text = expanded_text(source.name, source.text, REPORT_MAX)?;
    let (blocks, mut missing) = blocks(&text);
    let facts = pairs(&blocks, "OS-INFORMATION");
    let of = |name: &str| {
        facts
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let has_comma = has_decimal_comma(&blocks);
    let plain = |text: &str| {
        if has_comma {
            text.replace(',', ".")
        } else {
            text.to_string()
        }
    };
    let version = ["AWR_MINER_VER", "STATSPACK_MINER_VER"]
        .iter()
        .find_map(|name| of(name));
    let parameters: Vec<(String, String)> = pairs(&blocks, "DATABASE-PARAMETERS")
        .into_iter()
        .filter(|(name, _)| super::names::is_parameter(name))
        .collect();
    let whole = |name: &str| of(name).and_then(|text| text.trim().parse::<u32>().ok());
    let identity = DatabaseIdentity {
        db_name: of("DB_NAME"),
        db_id: of("DBID"),
        release: of("VERSION"),
        host: of("HOSTS"),
        platform: of("PLATFORM_NAME")
            .map(|name| name.replace('_', " "))
            .filter(|name| name != "None"),
        cpus: whole("NUM_CPUS"),
        cores: whole("NUM_CPU_CORES"),
        memory_gib: of("PHYSICAL_MEMORY_GB").and_then(|text| plain(&text).parse().ok()),
        instances: whole("INSTANCES"),
        is_rac: whole("INSTANCES").map(|count| count > 1),
        block_bytes: parameters
            .iter()
            .find(|(name, _)| name == "db_block_size")
            .and_then(|(_, value)| number::block_bytes(value)),
        ..DatabaseIdentity::default()
    };
    let mut notes = Vec::new();
    if has_comma {
        notes.push("numbers have a decimal comma".to_string());
    }
    let unclear_in = |(name, block): (&String, &BlockRows)| unclear(block.unclear, name);
    notes.extend(blocks.iter().filter_map(unclear_in));
    let metrics = metrics(&blocks, &plain);
    if metrics.is_empty() {
        return Err(failed!(
            "'{name}' has no rows in MAIN-METRICS",
            "check that the capture ran to its end, and that the database keeps snapshots",
            name = source.name
        ));
    }
    let histograms = histograms(&blocks, &plain);
    if histograms.is_empty() {
        notes.push("no histogram of waits: latencies and single streams are unknown".into());
    }
    missing.extend(without_histogram(&metrics, &histograms));
    let cut_after = (!missing.is_empty()).then(|| missing.join("; "));
    let mut reports = snapshots(source.name, metrics, histograms, &identity, &parameters);
    // What is missing would stand behind the last one.
    if let Some(last) = reports.last_mut() {
        last.cut_after = cut_after;
    }
    Ok(Imported {
        sources: vec![source.name.to_string()],
        tool: if of("STATSPACK_MINER_VER").is_some() {
            "Statspack-Miner"
        } else {
            "AWR-Miner"
        }
        .into(),
        version,
        reported: Vec::new(),
        notes,
        figures: Figures::Database(reports),
    })
}

/// What is missing of the histogram: rows of snapshots behind the first one, which has none because
/// its counts are differences.
fn without_histogram(
    metrics: &SnapshotMetrics,
    histograms: &BTreeMap<u64, Vec<WaitHistogram>>,
) -> Option<String> {
    const NAMED_MAX: usize = 5;
    let without: Vec<u64> = metrics
        .keys()
        .skip(1)
        .copied()
        .filter(|snap| !histograms.contains_key(snap))
        .collect();
    let named: Vec<String> = without.iter().take(NAMED_MAX).map(u64::to_string).collect();
    let others = match without.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    (!without.is_empty() && !histograms.is_empty()).then(|| {
        let named = named.join(", ");
        format!("IO-WAIT-HISTOGRAM has no rows of snapshot {named}{others}, only of others")
    })
}

/// The blocks by name, and what is missing. A block that is not closed ends where the next one
/// begins, and has no half row if it ends with the file.
fn blocks(text: &str) -> (BTreeMap<String, BlockRows>, Vec<String>) {
    const WANTED: &[&str] = &[
        "OS-INFORMATION",
        "MAIN-METRICS",
        "DATABASE-PARAMETERS",
        "IO-WAIT-HISTOGRAM",
    ];
    let mut blocks: BTreeMap<String, BlockRows> = BTreeMap::new();
    let mut open: Option<String> = None;
    let mut unclosed = Vec::new();
    let mut ruler: Option<Ruler> = None;
    let mut head = String::new();
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(name) = line.strip_prefix("~~BEGIN-") {
            let name = name.trim_end_matches('~').to_string();
            unclosed.extend(open.replace(name));
            ruler = None;
            continue;
        }
        if line.starts_with("~~END-") {
            open = None;
        }
        let wanted = open.as_ref().filter(|name| WANTED.contains(&name.as_str()));
        let Some(name) = wanted else { continue };
        if line.is_empty() {
            continue;
        }
        let is_ruler = line.starts_with(['-', ' ']) && line.contains("---");
        if let Some(columns) = Ruler::of(line).filter(|_| is_ruler) {
            let header = columns.cells(&head).cells;
            blocks.entry(name.clone()).or_insert(BlockRows {
                header: header.iter().map(|head| head.to_lowercase()).collect(),
                rows: Vec::new(),
                unclear: 0,
            });
            ruler = Some(columns);
        } else if let Some((columns, block)) = ruler.as_ref().zip(blocks.get_mut(name)) {
            let LineCells { cells, unclear } = columns.cells(line);
            block.unclear += unclear;
            // Heads are printed again on every page.
            if cells
                .iter()
                .zip(&block.header)
                .any(|(cell, head)| squeezed(cell) != *head)
            {
                block.rows.push(cells);
            }
        }
        head = line.to_string();
    }
    if let Some(block) = open.as_ref().and_then(|name| blocks.get_mut(name))
        && !text.ends_with('\n')
    {
        block.rows.pop();
    }
    unclosed.extend(open);
    let missing = unclosed
        .into_iter()
        .map(|name| format!("the block {name} has no end, so rows of it may be missing"))
        .collect();
    (blocks, missing)
}

/// Rows of a name and a value.
fn pairs(blocks: &BTreeMap<String, BlockRows>, block: &str) -> Vec<(String, String)> {
    let rows = blocks.get(block).map_or(&[][..], |block| &block.rows);
    rows.iter()
        .filter_map(|row| match &row[..] {
            [name, value, ..] if !value.is_empty() => Some((name.clone(), value.clone())),
            _ => None,
        })
        .collect()
}

/// True if numbers are written as `7,8`. One sense for the whole file.
fn has_decimal_comma(blocks: &BTreeMap<String, BlockRows>) -> bool {
    let cells = blocks
        .get("MAIN-METRICS")
        .into_iter()
        .flat_map(|block| block.rows.iter().flatten());
    let is_decimal = |text: &String| {
        text.split_once(',').is_some_and(|(whole, rest)| {
            !rest.is_empty()
                && rest.len() != 3
                && (whole.bytes().chain(rest.bytes())).all(|byte| byte.is_ascii_digit())
        })
    };
    let mut memory = blocks
        .get("OS-INFORMATION")
        .into_iter()
        .flat_map(|block| &block.rows)
        .filter(|row| row[0] == "PHYSICAL_MEMORY_GB");
    memory.any(|row| row.iter().any(is_decimal)) || cells.clone().any(is_decimal)
}

/// A snapshot with its end and the metrics of each instance.
type SnapshotMetrics = BTreeMap<u64, (Option<Moment>, Vec<CaptureMetrics>)>;

fn metrics(
    blocks: &BTreeMap<String, BlockRows>,
    plain: &dyn Fn(&str) -> String,
) -> SnapshotMetrics {
    let mut metrics = SnapshotMetrics::new();
    let Some(block) = blocks.get("MAIN-METRICS") else {
        return metrics;
    };
    let (snap, end) = (block.column("snap"), block.column("end"));
    let (minutes, inst) = (block.column("dur_m"), block.column("inst"));
    let columns: Vec<(usize, &str)> = METRICS
        .iter()
        .filter_map(|name| Some((block.column(name)?, *name)))
        .collect();
    for row in &block.rows {
        let of = |column: Option<usize>| {
            column
                .and_then(|column| row.get(column))
                .map_or("", String::as_str)
        };
        let Ok(snap) = of(snap).parse::<u64>() else {
            continue;
        };
        let figures = columns
            .iter()
            .filter_map(|(at, name)| {
                Some(((*name).to_string(), number::figure(&plain(of(Some(*at))))?))
            })
            .collect();
        let (_, instances) = metrics
            .entry(snap)
            .or_insert_with(|| (short_time(of(end)), Vec::new()));
        instances.push(CaptureMetrics {
            instance: of(inst).to_string(),
            minutes: plain(of(minutes)).parse().unwrap_or(0.0),
            figures,
        });
    }
    metrics
}

/// `12/02/24 00:59` with the year first.
fn short_time(text: &str) -> Option<Moment> {
    let (date, time) = text.split_once(' ')?;
    let mut parts = date.split('/');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 2 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    moment(&format!("20{year}-{month}-{day} {time}"), Order::DayFirst)
}

fn histograms(
    blocks: &BTreeMap<String, BlockRows>,
    plain: &dyn Fn(&str) -> String,
) -> BTreeMap<u64, Vec<WaitHistogram>> {
    let mut histograms: BTreeMap<u64, Vec<WaitHistogram>> = BTreeMap::new();
    let Some(block) = blocks.get("IO-WAIT-HISTOGRAM") else {
        return histograms;
    };
    let columns = ["snap_id", "event_name", "wait_time_milli", "wait_count"];
    let [Some(snap), Some(event), Some(milli), Some(count)] =
        columns.map(|name| block.column(name))
    else {
        return histograms;
    };
    for row in &block.rows {
        let of = |column: usize| row.get(column).map_or("", String::as_str);
        let numbers = (
            of(snap).parse::<u64>(),
            number::figure(&plain(of(milli))),
            number::count(of(count)),
        );
        let (Ok(snap), Some(Printed { value: ms, .. }), Some(count)) = numbers else {
            continue;
        };
        let of_snap = histograms.entry(snap).or_default();
        WaitHistogram::listed(of_snap, of(event))
            .buckets
            .push(WaitBucket {
                label: format!("<{}ms", of(milli)),
                high_us: (ms < NO_BOUND_MS).then_some(ms * 1e3),
                percent: None,
                count: Some(count.value),
            });
    }
    histograms
}

/// A report for each snapshot.
fn snapshots(
    file: &str,
    metrics: SnapshotMetrics,
    mut histograms: BTreeMap<u64, Vec<WaitHistogram>>,
    identity: &DatabaseIdentity,
    parameters: &[(String, String)],
) -> Vec<DatabaseReport> {
    let mut reports = Vec::new();
    for (snap, (end, instances)) in metrics {
        let minutes = instances.iter().map(|one| one.minutes).fold(0.0, f64::max);
        let seconds = minutes * MINUTE_S;
        #[expect(clippy::cast_possible_truncation, reason = "an hour or a day")]
        let begin = end.map(|end| end.plus_seconds(-(seconds as i64)));
        reports.push(DatabaseReport {
            file: file.to_string(),
            kind: ReportKind::Capture,
            identity: identity.clone(),
            window: SnapshotWindow {
                begin_id: snap.checked_sub(1),
                end_id: Some(snap),
                begin,
                end,
                elapsed_s: (seconds > 0.0).then_some(Printed {
                    value: seconds,
                    half: MINUTE_S / 2.0,
                }),
                db_time_s: None,
            },
            histograms: histograms.remove(&snap).unwrap_or_default(),
            parameters: if reports.is_empty() {
                parameters.to_vec()
            } else {
                Vec::new()
            },
            metrics: instances,
            ..DatabaseReport::default()
        });
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made for these tests, in the layout of version 4.0.11.
    const CAPTURE: &str = "\
~~BEGIN-OS-INFORMATION~~
STAT_NAME                      STAT_VALUE
------------------------------ ------------------------------
NUM_CPUS                       22
VERSION                        11.2.0.4.0
DB_NAME                        SYNTH
INSTANCES                      1
AWR_MINER_VER                  4.0.11
~~END-OS-INFORMATION~~


~~BEGIN-MAIN-METRICS~~

      snap      dur_m end                  inst  read_iops read_iops_max write_iops
---------- ---------- -------------- ---------- ---------- ------------- ----------
       101         60 26/03/02 10:00          1      250.5         900.5       60.5
       102         60 26/03/02 11:00          1      251.5         901.5       61.5
       103         60 26/03/02 12:00          1      252.5         902.5       62.5

~~END-MAIN-METRICS~~
Elapsed: 00:00:00.13
~~BEGIN-IO-WAIT-HISTOGRAM~~

   SNAP_ID WAIT_CLASS      EVENT_NAME                WAIT_TIME_MILLI WAIT_COUNT
---------- --------------- ------------------------- --------------- ----------
       102 User I/O        db file sequential read                 1       9000
       102 User I/O        db file sequential read                 2       1000
       103 User I/O        db file sequential read                 1       8000

~~END-IO-WAIT-HISTOGRAM~~
~~BEGIN-TOP-SQL-BY-SNAPID~~
~~END-TOP-SQL-BY-SNAPID~~
";

    fn one(text: &str) -> (Vec<DatabaseReport>, Vec<String>) {
        let one = read(Source {
            name: "capture",
            text,
        })
        .unwrap();
        match one.figures {
            Figures::Database(reports) => (reports, one.notes),
            other => panic!("{other:?}"),
        }
    }

    fn missing(text: &str) -> Vec<String> {
        let (reports, _) = one(text);
        reports
            .into_iter()
            .filter_map(|one| one.cut_after)
            .collect()
    }

    #[test]
    fn rows_below_the_head_of_a_page_stay() {
        let whole = one(CAPTURE);
        assert_eq!(whole.0.len(), 3);
        assert_eq!(whole.0[1].histograms[0].buckets.len(), 2);
        for (head, row) in [
            ("      snap", "       102"),
            ("   SNAP_ID", "       103 User"),
        ] {
            let from = CAPTURE.find(head).unwrap();
            let lines: Vec<&str> = CAPTURE[from..].lines().take(2).collect();
            let page = format!("\n{}\n{}\n", lines[0], lines[1]);
            let at = CAPTURE.find(row).unwrap();
            for page in [
                page.clone(),
                page.replace("\n\n", "\n"),
                format!("\\u{{c}}{}", &page[1..]),
            ] {
                let paged = format!("{}{page}{}", &CAPTURE[..at], &CAPTURE[at..]);
                assert_eq!(one(&paged), whole, "{paged}");
            }
        }
    }

    #[test]
    fn a_number_wider_than_its_column_is_whole_or_unknown() {
        let figure = |text: &str, name: &str| {
            let (reports, notes) = one(text);
            let figures = &reports[0].metrics[0].figures;
            let value = figures
                .iter()
                .find(|(of, _)| of == name)
                .map(|(_, it)| it.value);
            (value.map(|value| value.to_string()), notes)
        };
        let cells = "1      250.5         900.5       60.5";
        let (value, notes) = figure(
            &CAPTURE.replacen(cells, "1 2850.125678         900.5       60.5", 1),
            "read_iops",
        );
        assert_eq!((value.as_deref(), notes.len()), (Some("2850.125678"), 0));
        // 2850.12 behind a 1, or 12850.12.
        for name in ["read_iops", "read_iops_max"] {
            let (value, notes) = figure(
                &CAPTURE.replacen(cells, "1       12850.12345678900.5       60.5", 1),
                name,
            );
            assert_eq!(value, None);
            assert!(notes[0].contains("two columns of MAIN-METRICS, may belong to either"));
        }
    }

    #[test]
    fn a_block_without_its_end_is_named() {
        assert_eq!(missing(CAPTURE), [""; 0]);
        for name in ["OS-INFORMATION", "MAIN-METRICS", "TOP-SQL-BY-SNAPID"] {
            let open = CAPTURE.replace(&format!("~~END-{name}~~\n"), "");
            let expected = format!("the block {name} has no end, so rows of it may be missing");
            assert_eq!(missing(&open), [expected]);
        }
        // Half a number would be a number.
        let cut = &CAPTURE[..CAPTURE.find("61.5").unwrap() + 2];
        let (reports, _) = one(cut);
        assert_eq!(reports.len(), 1);
        assert!(
            reports[0]
                .cut_after
                .as_ref()
                .unwrap()
                .contains("MAIN-METRICS has no end")
        );
    }

    #[test]
    fn a_snapshot_without_its_histogram_is_named_unless_it_is_the_first() {
        let row =
            "       103 User I/O        db file sequential read                 1       8000\n";
        assert_eq!(
            missing(&CAPTURE.replace(row, "")),
            ["IO-WAIT-HISTOGRAM has no rows of snapshot 103, only of others"]
        );
    }

    #[test]
    fn tabs_in_place_of_blanks_change_nothing() {
        let tabbed: String = CAPTURE
            .lines()
            .map(|line| {
                let mut tabbed = String::new();
                for (column, c) in line.chars().enumerate() {
                    tabbed.push(c);
                    if column % 8 == 7 && tabbed.ends_with("  ") {
                        tabbed.truncate(tabbed.trim_end_matches(' ').len().max(tabbed.len() - 8));
                        tabbed.push('\t');
                    }
                }
                tabbed + "\n"
            })
            .collect();
        assert!(tabbed.contains('\t'));
        assert_eq!(one(&tabbed), one(CAPTURE));
    }
}
