//! The facts of a report, from its tables: one reader for text and HTML, for AWR and Statspack.

use super::grid::{Grid, cell, plain, squeezed};
use super::names;
use super::number::{self, BucketHead};
use crate::limits::EVENT_ROWS_MAX;
use rigel_model::record::database::{
    DatabaseReport, IoStatRow, NamedFigure, Printed, ReportKind, StatisticRow, WaitBucket,
    WaitHistogram, WaitRow, WaitTable,
};
use rigel_model::{Error, usage};
use std::collections::HashSet;

/// Beginnings of the headings of tables that are read, in lower case. The first page of a text has
/// its own headings and is always read.
const WANTED: &[&str] = &[
    "background wait events",
    "cache sizes",
    "foreground wait events",
    "host cpu",
    "init.ora parameters",
    "instance activity stats",
    "io profile",
    "io stat by function",
    "iostat by file type",
    "iostat by filetype",
    "iostat by function",
    "key instance activity stats",
    "load profile",
    "modified parameters",
    "os statistics by instance",
    "other instance activity stats",
    "report summary",
    "system statistics",
    "time model",
    "top ",
    "wait event",
    "workload repository",
];

/// True if tables below this heading are read.
pub(super) fn is_wanted(heading: &str) -> bool {
    let heading = plain(heading);
    WANTED.iter().any(|wanted| heading.starts_with(wanted))
        && !heading.starts_with("time model - %")
}

/// Adds what the tables say to `report`.
///
/// # Errors
/// Its tables list more events than there are.
pub(super) fn read(grids: &[Grid], report: &mut DatabaseReport) -> Result<(), Error> {
    for grid in grids {
        refuse_many_events(report)?;
        let heading = grid.plain_heading();
        if heading.starts_with("wait event histogram") {
            histograms(grid, &heading, report);
        } else if let Some(of) = wait_table(grid, &heading) {
            waits(grid, of, report);
        } else if heading.starts_with("iostat by file") {
            let rows = io_stat(grid, &["filetypename"], &["smallread"], report.kind);
            report.file_types.extend(rows);
        } else if heading.contains("- detail") {
            function_details(grid, report);
        } else if heading.starts_with("iostat by function")
            || heading.starts_with("io stat by function")
        {
            let means = ["avgtm(ms)", "avgtime"];
            let names = ["functionname", "function", "function/filename"];
            let rows = io_stat(grid, &names, &means, report.kind);
            // The second table repeats the rows of functions, and divides them by file type.
            let names_before: Vec<String> = report
                .functions
                .iter()
                .map(|row| row.name.clone())
                .collect();
            let is_second = heading.starts_with("iostat by function/");
            let is_new = |row: &IoStatRow| !is_second || !names_before.contains(&row.name);
            report.functions.extend(rows.into_iter().filter(is_new));
        } else if heading.contains("parameters") {
            parameters(grid, report);
        } else {
            by_header(grid, &heading, report);
        }
    }
    refuse_many_events(report)
}

fn refuse_many_events(report: &DatabaseReport) -> Result<(), Error> {
    let rows = report.waits.len().max(report.histograms.len());
    if rows <= EVENT_ROWS_MAX {
        return Ok(());
    }
    Err(usage!(
        "'{name}' has more than {EVENT_ROWS_MAX} rows of events, the limit of a report",
        "give files of one report each",
        name = report.file
    ))
}

/// Tables that are known by their header cells, because one heading stands for many.
fn by_header(grid: &Grid, heading: &str, report: &mut DatabaseReport) {
    let has = |names: &[&str]| grid.column(names).is_some();
    if has(&["i#"]) {
        instance_rows(grid, heading, report);
    } else if has(&["statistic", "statisticname"]) && has(&["total"]) && has(&["persecond"]) {
        statistics(grid, report);
    } else if has(&["statistic", "statisticname"]) && has(&["time(s)"]) {
        let time = grid.column(&["time(s)"]);
        let rows = named(grid, time, "");
        report.time_model.extend(rows);
    } else if grid.column_from("read+write").is_some() {
        for (column, of) in [("read", "read"), ("write", "write")] {
            let names = [
                format!("{column}persecond"),
                format!("{column}/second"),
                format!("{column}s/s"),
            ];
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let rows = named(grid, grid.column(&names), &format!(": {of}"));
            report.io_profile.extend(rows);
        }
    } else if has(&["persecond"]) && has(&["pertransaction"]) {
        let rows = named(grid, grid.column(&["persecond"]), "");
        report.load_profile.extend(rows);
    } else if has(&["%user", "user"]) && has(&["%idle", "idle"]) {
        host_cpu(grid, report);
    }
}

/// A named figure a row; the name is in the first column. `suffix` is added to it.
fn named(grid: &Grid, column: Option<usize>, suffix: &str) -> Vec<NamedFigure> {
    let row = |row: &Vec<String>| {
        let name = cell(row, Some(0)).trim_end_matches(':');
        Some(NamedFigure {
            name: format!("{name}{suffix}"),
            instance: None,
            value: number::figure(cell(row, column))?,
        })
    };
    grid.rows.iter().filter_map(row).collect()
}

fn host_cpu(grid: &Grid, report: &mut DatabaseReport) {
    let Some(row) = grid.rows.first() else { return };
    for (name, heads) in [
        ("user", ["%user", "user"]),
        ("system", ["%system", "system"]),
        ("wio", ["%wio", "wio"]),
        ("idle", ["%idle", "idle"]),
    ] {
        if let Some(value) = number::figure(cell(row, grid.column(&heads))) {
            report.host_cpu.push(NamedFigure {
                name: name.into(),
                instance: None,
                value,
            });
        }
    }
}

/// Figures of each instance of a report of several.
fn instance_rows(grid: &Grid, heading: &str, report: &mut DatabaseReport) {
    let is_of_use = match heading {
        "time model" | "system statistics" | "system statistics - per second" => true,
        "os statistics by instance" => grid.column(&["%busy"]).is_some(),
        _ => false,
    };
    let instance = grid.column(&["i#"]);
    if !is_of_use {
        return;
    }
    for row in &grid.rows {
        for (at, head) in grid.header.iter().enumerate() {
            let Some(value) = number::figure(cell(row, Some(at))) else {
                continue;
            };
            if Some(at) == instance {
                continue;
            }
            let of = cell(row, instance);
            if heading == "time model" && of == "Sum" {
                report.time_model.extend(of_time_model(head, value));
            }
            let is_number = of.bytes().all(|byte| byte.is_ascii_digit());
            if is_number && !of.is_empty() || of == "Sum" {
                report.per_instance.push(NamedFigure {
                    name: format!("{}: {head}", grid.heading),
                    instance: Some(of.to_string()),
                    value,
                });
            }
        }
    }
}

/// The line of an instance's time model that a column of the global one corresponds to.
fn of_time_model(head: &str, value: Printed) -> Option<NamedFigure> {
    let name = match squeezed(head).as_str() {
        "dbtime(s)" => "DB time",
        "dbcpu(s)" => "DB CPU",
        "bgtime(s)" => "background elapsed time",
        "bgcpu(s)" => "background cpu time",
        _ => return None,
    };
    Some(NamedFigure {
        name: name.into(),
        instance: None,
        value,
    })
}

fn statistics(grid: &Grid, report: &mut DatabaseReport) {
    let (total, per_s) = (grid.column(&["total"]), grid.column(&["persecond"]));
    let known = report.statistics.iter().map(|row| row.name.clone());
    let mut known: HashSet<String> = known.collect();
    for row in &grid.rows {
        let printed = cell(row, Some(0));
        let Some(name) = names::statistic(printed, grid.may_be_cut(0, printed)) else {
            continue;
        };
        let statistic = StatisticRow {
            name,
            total: number::count(cell(row, total)),
            per_s: number::figure(cell(row, per_s)),
        };
        // A statistic of the key table stands in the other one, too.
        if statistic.total.is_some() && known.insert(statistic.name.clone()) {
            report.statistics.push(statistic);
        }
    }
}

// ---- waits ----

/// Which table of waits it is, if it is one.
fn wait_table(grid: &Grid, heading: &str) -> Option<WaitTable> {
    grid.column(&["event"])?;
    grid.column(&["waits"])?;
    if heading.starts_with("foreground wait events") {
        Some(WaitTable::Foreground)
    } else if heading.starts_with("background wait events") {
        Some(WaitTable::Background)
    } else if heading.starts_with("wait events") {
        Some(WaitTable::Both)
    } else if heading.starts_with("top") || heading == "report summary" {
        // Of the global lists, the first is of both; the others are parts of it.
        let is_part = heading.contains("timed foreground") || heading.contains("timed background");
        (!is_part || grid.column(&["i#"]).is_none()).then_some(WaitTable::Top)
    } else {
        None
    }
}

fn waits(grid: &Grid, of: WaitTable, report: &mut DatabaseReport) {
    let (instance, event) = (grid.column(&["i#"]), grid.column(&["event"]));
    let class = grid.column(&["waitclass", "class"]);
    let count = grid.column(&["waits"]);
    let time = grid.column(&[
        "totalwaittime(s)",
        "totalwaittime(sec)",
        "totalwaittime",
        "total(s)",
        "time(s)",
        "totatime",
    ]);
    let in_ms = grid.column(&[
        "avgwait(ms)",
        "waitavg(ms)",
        "avgwait(ms)",
        "avg(ms)",
        "(ms)",
    ]);
    let mean = in_ms.or_else(|| grid.column(&["avgwait"]));
    let percent = grid.column(&["%dbtime", "%bgtime", "%totalcalltime", "%total"]);
    for row in &grid.rows {
        let printed = cell(row, event);
        let is_of_one = instance.is_some() && !matches!(cell(row, instance), "*" | "");
        if printed.is_empty() || is_of_one {
            continue;
        }
        let bare_us = in_ms.map(|_| 1e3);
        report.waits.push(WaitRow {
            of,
            event: names::event(
                printed,
                event.is_some_and(|column| grid.may_be_cut(column, printed)),
            ),
            class: Some(cell(row, class).to_string()).filter(|class| !class.is_empty()),
            waits: number::count(cell(row, count)),
            time_s: number::figure(cell(row, time)),
            mean_us: number::microseconds(cell(row, mean), bare_us),
            percent: number::figure(cell(row, percent)),
        });
    }
}

/// True if the bounds of a histogram are powers of two of a microsecond, as since 12.2: it has a bound
/// below a millisecond, or is titled as `(up to 2 sec)`.
fn is_in_microseconds(heads: &[(usize, BucketHead)], heading: &str) -> bool {
    let is_small =
        |(_, head): &(usize, BucketHead)| matches!(head, BucketHead::Below(us) if *us < 1e3);
    heading.contains("(up to") || heads.iter().any(is_small)
}

fn histograms(grid: &Grid, heading: &str, report: &mut DatabaseReport) {
    let is_detail = heading.contains("detail") || heading.contains("(up to");
    let event = grid.column(&["event"]);
    let total = grid
        .column(&["totalwaits", "waits"])
        .or_else(|| grid.column_from("waits"));
    let heads: Vec<(usize, BucketHead)> = grid
        .header
        .iter()
        .enumerate()
        .filter_map(|(at, head)| Some((at, number::bucket_head(head)?)))
        .collect();
    let is_in_microseconds = is_in_microseconds(&heads, heading);
    let bounds = heads.iter().filter_map(|(_, head)| match head {
        BucketHead::Below(us) => Some(number::true_bound_us(*us, is_in_microseconds)),
        BucketHead::Above(_) => None,
    });
    let (first_bound_us, last_bound_us) = (bounds.clone().next(), bounds.max_by(f64::total_cmp));
    for row in &grid.rows {
        let printed = cell(row, event);
        if printed.is_empty() || heads.is_empty() {
            continue;
        }
        let bucket = |(at, head): &(usize, BucketHead)| {
            let (percent, count) = number::share_and_count(cell(row, Some(*at)));
            let high_us = match head {
                BucketHead::Below(us) => Some(number::true_bound_us(*us, is_in_microseconds)),
                BucketHead::Above(_) => None,
            };
            (percent.is_some() || count.is_some()).then(|| WaitBucket {
                label: grid.header[*at].split_whitespace().collect(),
                high_us,
                percent,
                count,
            })
        };
        let of_total = cell(row, total);
        report.histograms.push(WaitHistogram {
            event: names::event(
                printed,
                event.is_some_and(|column| grid.may_be_cut(column, printed)),
            ),
            is_detail,
            waits: number::count(of_total),
            may_be_cut: total.is_some_and(|column| grid.may_be_cut(column, of_total)),
            first_bound_us,
            last_bound_us,
            buckets: heads.iter().filter_map(bucket).collect(),
        });
    }
}

// ---- I/O by function and file type ----

fn io_stat(grid: &Grid, names: &[&str], means: &[&str], kind: ReportKind) -> Vec<IoStatRow> {
    let Some(name) = grid.column(names) else {
        return Vec::new();
    };
    let instance = grid.column(&["i#"]);
    // Reads stand left of writes.
    let mut per_s = grid.columns(&["reqspersec", "requests/sec"]);
    let (reads, writes) = (per_s.next(), per_s.next());
    let mut data = grid.columns(&["datapersec", "datavol/sec"]);
    let (read_data, write_data) = (data.next(), data.next());
    let reads = reads.or_else(|| grid.column(&["reads/s"]));
    let writes = writes.or_else(|| grid.column(&["writes/s"]));
    let read_data = read_data.or_else(|| grid.column(&["readmb/s"]));
    let write_data = write_data.or_else(|| grid.column(&["writemb/s"]));
    let mean = grid.column(means);
    // Statspack leaves cells without I/O blank.
    let blank = (kind == ReportKind::Statspack).then_some(Printed {
        value: 0.0,
        half: 0.0,
    });
    let row = |row: &Vec<String>| {
        let printed = cell(row, Some(name)).trim_end_matches(':');
        let of = |text: &str, read: fn(&str) -> Option<Printed>| {
            read(text).or_else(|| blank.filter(|_| text.is_empty()))
        };
        let statistic = IoStatRow {
            name: function_name(printed, grid.may_be_cut(name, printed)),
            instance: Some(cell(row, instance).to_string()).filter(|text| !text.is_empty()),
            reads_per_s: of(cell(row, reads), number::figure),
            read_mib_per_s: of(cell(row, read_data), number::mebibytes),
            writes_per_s: of(cell(row, writes), number::figure),
            write_mib_per_s: of(cell(row, write_data), number::mebibytes),
            // Statspack prints 0.0 for every mean.
            mean_us: number::microseconds(cell(row, mean), Some(1e3))
                .filter(|_| kind != ReportKind::Statspack),
        };
        (!printed.is_empty() && statistic.reads_per_s.is_some()).then_some(statistic)
    };
    grid.rows.iter().filter_map(row).collect()
}

/// `Buffer Cache Re` is `Buffer Cache Reads`; `TOTAL` is `Total`.
fn function_name(printed: &str, may_be_cut: bool) -> String {
    const LONG: &[&str] = &[
        "Buffer Cache Reads",
        "Archive Log Backup",
        "Data File Backup",
        "Data File Incremental Backup",
        "Data Pump Dump File",
    ];
    if printed.eq_ignore_ascii_case("total") {
        return "Total".into();
    }
    let mut long = LONG
        .iter()
        .filter(|name| may_be_cut && name.starts_with(printed));
    match (long.next(), long.next()) {
        (Some(name), None) => (*name).into(),
        _ => printed.into(),
    }
}

/// Statspack's counts of small and large requests.
fn function_details(grid: &Grid, report: &mut DatabaseReport) {
    for row in &grid.rows {
        let name = function_name(cell(row, Some(0)), grid.may_be_cut(0, cell(row, Some(0))));
        if name.is_empty() {
            continue;
        }
        for (head, text) in grid.header.iter().zip(row).skip(1) {
            let head = squeezed(head);
            let value = if head.contains("data") {
                number::mebibytes(text)
            } else {
                number::count(text)
            };
            if let Some(value) = value {
                report.per_instance.push(NamedFigure {
                    name: format!("{name}: {head}"),
                    instance: None,
                    value,
                });
            }
        }
    }
}

fn parameters(grid: &Grid, report: &mut DatabaseReport) {
    let name = grid.column(&["parametername"]);
    let (begin, end) = (grid.column(&["beginvalue"]), grid.column_from("endvalue"));
    for row in &grid.rows {
        let name = cell(row, name);
        let is_known = report.parameters.iter().any(|(known, _)| known == name);
        if !names::is_parameter(name) || is_known {
            continue;
        }
        let (begin, end) = (cell(row, begin), cell(row, end));
        let value = if end.is_empty() || end == begin {
            begin.to_string()
        } else {
            format!("{begin}, at the end {end}")
        };
        report.parameters.push((name.to_string(), value));
    }
}
