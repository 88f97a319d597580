//! Who a report is about, and which time it covers.

use super::grid::{Grid, cell, squeezed};
use super::number;
use crate::ruler::Ruler;
use crate::time::{Order, moment};
use rigel_model::Moment;
use rigel_model::record::database::{DatabaseReport, NamedFigure, Printed, ReportKind};

/// Seconds in a minute.
pub(super) const MINUTE_S: f64 = 60.0;

/// Adds identity and window to `report`.
pub(super) fn read(grids: &[Grid], report: &mut DatabaseReport) {
    for grid in grids {
        let has = |names: &[&str]| grid.column(names).is_some();
        if has(&["snapid"]) {
            snapshots(grid, report);
        } else if has(&["beginsnaptime"]) && has(&["i#"]) {
            instances(grid, report);
        } else if has(&["blocksize"]) && has(&["elapsedtime"]) {
            database(grid, report);
        } else if is_first(grid) && has(&["dbid", "instance", "hostname", "platform"]) {
            who(grid, report);
        } else if has(&["containername"]) && report.kind == ReportKind::AwrPdb {
            let name = grid
                .rows
                .first()
                .map(|row| cell(row, grid.column(&["containername"])));
            report.identity.container = name.and_then(filled);
        }
        if report.identity.block_bytes.is_none() {
            report.identity.block_bytes = block_size(grid);
        }
    }
    let parameter = report
        .parameters
        .iter()
        .find(|(name, _)| name == "db_block_size");
    if report.identity.block_bytes.is_none() {
        report.identity.block_bytes = parameter.and_then(|(_, value)| number::block_bytes(value));
    }
}

/// True for the tables above the first heading of a text, and below the first one of a page.
fn is_first(grid: &Grid) -> bool {
    grid.heading.is_empty() || grid.plain_heading().starts_with("workload repository")
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

fn yes(text: &str) -> Option<bool> {
    match text {
        "YES" => Some(true),
        "NO" => Some(false),
        _ => None,
    }
}

fn time(text: &str) -> Option<Moment> {
    moment(text, Order::DayFirst)
}

/// The tables at the top: name, number, release, host.
fn who(grid: &Grid, report: &mut DatabaseReport) {
    let Some(row) = grid.rows.first() else { return };
    let of = |names: &[&str]| cell(row, grid.column(names));
    let who = &mut report.identity;
    let set = |slot: &mut Option<String>, names: &[&str]| {
        if let Some(text) = filled(of(names)) {
            *slot = Some(text);
        }
    };
    set(&mut who.db_name, &["dbname", "database"]);
    set(&mut who.db_id, &["dbid"]);
    set(&mut who.instance, &["instance"]);
    set(&mut who.release, &["release"]);
    set(&mut who.host, &["hostname", "host"]);
    set(&mut who.platform, &["platform"]);
    if grid.column(&["platform"]).is_some() {
        // The heads of Statspack are two words over two columns.
        set(&mut who.host, &["name"]);
    }
    who.instance_number = whole(of(&["instnum"])).or(who.instance_number);
    who.is_rac = yes(of(&["rac"])).or(who.is_rac);
    who.is_cdb = yes(of(&["cdb"])).or(who.is_cdb);
    who.cpus = whole(of(&["cpus"])).or(who.cpus);
    who.cores = whole(of(&["cores"])).or(who.cores);
    let memory = number::count(of(&["memory(gb)", "memory(g)"]));
    who.memory_gib = memory.map(|gib| gib.value).or(who.memory_gib);
    who.startup = time(of(&["startuptime"])).or(who.startup);
}

/// The record about the host on the first page of a text. Its columns say it, unless its line was
/// folded or a cell is not of its column's type: then its words do, from the right, where numbers are.
pub(super) fn host(first_page: &[&str], report: &mut DatabaseReport) {
    let begins = |line: &&str| squeezed(line).starts_with("hostname");
    let Some(start) = first_page.iter().position(begins) else {
        return;
    };
    let lines: Vec<&str> = first_page[start..]
        .iter()
        .copied()
        .take_while(|line| !line.is_empty())
        .collect();
    let rulers: Vec<usize> = (0..lines.len())
        .filter(|line| Ruler::of(lines[*line]).is_some())
        .collect();
    let Some(last_ruler) = rulers.last().copied() else {
        return;
    };
    let heads: String = (0..last_ruler)
        .filter(|line| !rulers.contains(line))
        .map(|line| squeezed(lines[line]))
        .collect();
    // A memory without its unit may be anything.
    let columns = ["cpus", "cores", "sockets", "memory(g"];
    let columns: Vec<&str> = columns
        .into_iter()
        .filter(|column| heads.contains(column))
        .collect();
    let rows = &lines[last_ruler + 1..];
    let words: Vec<&str> = rows.iter().flat_map(|row| row.split_whitespace()).collect();
    let is_folded = rows.len() > 1 || rulers.len() > 1;
    let who = &mut report.identity;
    let is_text = |text: &Option<String>| {
        text.as_ref()
            .is_some_and(|text| text.contains(|c: char| c.is_ascii_alphabetic()))
    };
    let is_of_types = is_text(&who.platform) && is_text(&who.host) && who.cpus.is_some();
    if words.is_empty() || columns.is_empty() || is_of_types && !is_folded {
        return;
    }
    (who.cpus, who.cores, who.memory_gib) = (None, None, None);
    let numbers = (words.iter().rev())
        .take_while(|word| number::figure(word).is_some())
        .count();
    let texts = words.len() - numbers.min(columns.len());
    if numbers >= columns.len() {
        for (column, word) in columns.iter().zip(&words[texts..]) {
            match *column {
                "cpus" => who.cpus = whole(word),
                "cores" => who.cores = whole(word),
                "memory(g" => who.memory_gib = number::figure(word).map(|gib| gib.value),
                _ => {}
            }
        }
    } else {
        report.notes.push(format!(
            "the line of the host has {numbers} of {} numbers and is folded: its CPUs and memory \
             are unknown",
            columns.len()
        ));
    }
    who.host = filled(words[0]).filter(|_| texts > 0);
    who.platform = filled(&words[1.min(texts)..texts].join(" "));
    if !is_text(&who.platform) {
        who.platform = None;
    }
}

/// How busy the host's CPUs were, from the line of the first page, if its columns do not tell: without
/// a number of sockets the line is shorter than its ruler. So it is read from the right.
pub(super) fn host_load(first_page: &[&str], report: &mut DatabaseReport) {
    const COLUMNS: [(&str, &str); 4] = [
        ("user", "%User"),
        ("system", "%System"),
        ("wio", "%WIO"),
        ("idle", "%Idle"),
    ];
    /// Each share is rounded, and they are of slightly different times.
    const SUM_APART: f64 = 1.0;
    if !report.host_cpu.is_empty() {
        return;
    }
    let mut lines = first_page.iter().skip_while(|line| !line.contains("%Idle"));
    let (Some(heads), Some(row)) = (lines.next(), lines.nth(1)) else {
        return;
    };
    let heads: Vec<&str> = heads.split_whitespace().rev().collect();
    let values: Vec<&str> = row.split_whitespace().rev().collect();
    let value = |(name, head): (&str, &str)| {
        let column = heads.iter().position(|known| *known == head)?;
        Some(NamedFigure {
            name: name.into(),
            instance: None,
            value: number::figure(values.get(column)?)?,
        })
    };
    let figures: Vec<NamedFigure> = COLUMNS.into_iter().filter_map(value).collect();
    // Waiting for I/O is a kind of being idle.
    let parts = figures.iter().filter(|figure| figure.name != "wio");
    let sum: f64 = parts.map(|figure| figure.value.value).sum();
    if (sum - 100.0).abs() <= SUM_APART {
        report.host_cpu = figures;
    }
}

/// A whole number, such as a number of CPUs.
fn whole(text: &str) -> Option<u32> {
    let printed = number::count(text)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "compared"
    )]
    let value = printed.value as u32;
    (f64::from(value).to_bits() == printed.value.to_bits()).then_some(value)
}

/// The two snapshots, elapsed time and DB time.
fn snapshots(grid: &Grid, report: &mut DatabaseReport) {
    let (id, at) = (grid.column(&["snapid"]), grid.column(&["snaptime"]));
    let instances = grid.column(&["instances"]);
    let window = &mut report.window;
    for row in &grid.rows {
        let label = squeezed(cell(row, Some(0)));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        let number = number::count(cell(row, id)).map(|count| count.value as u64);
        let rest = row[1..].join(" ");
        if label.starts_with("beginsnap") {
            (window.begin_id, window.begin) = (number, time(cell(row, at)));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            let open = number::count(cell(row, instances)).map(|count| count.value as u32);
            report.identity.instances = open;
        } else if label.starts_with("endsnap") {
            (window.end_id, window.end) = (number, time(cell(row, at)));
        } else if label.starts_with("elapsed") {
            window.elapsed_s = minutes(&rest);
        } else if label.starts_with("dbtime") {
            window.db_time_s = minutes(&rest);
            // Statspack has the CPU in the same line.
            if let Some((_, cpu)) = rest.split_once("DB CPU:") {
                report
                    .load_profile
                    .extend(minutes(cpu).map(|value| NamedFigure {
                        name: "DB CPU of the first page (s)".into(),
                        instance: None,
                        value,
                    }));
            }
        }
    }
}

/// Seconds of the first `60.22 (mins)`.
fn minutes(text: &str) -> Option<Printed> {
    let (number, _) = text.split_once("(mins)")?;
    Some(number::figure(number.split_whitespace().next_back()?)?.scaled(MINUTE_S))
}

/// The table of a global report about the database.
fn database(grid: &Grid, report: &mut DatabaseReport) {
    let Some(row) = grid.rows.first() else { return };
    let of = |names: &[&str]| cell(row, grid.column(names));
    let who = &mut report.identity;
    who.db_id = filled(of(&["id"]));
    who.db_name = filled(of(&["name"]));
    who.is_rac = yes(of(&["rac"]));
    who.is_cdb = yes(of(&["cdb"]));
    who.block_bytes = number::block_bytes(of(&["blocksize"]));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates"
    )]
    let whole = |text: &str| number::count(text).map(|count| count.value as u64);
    report.window.begin_id = whole(of(&["begin"]));
    report.window.end_id = whole(of(&["end"]));
    report.window.elapsed_s = number::figure(of(&["elapsedtime"])).map(|m| m.scaled(MINUTE_S));
    report.window.db_time_s = number::figure(of(&["dbtime"])).map(|m| m.scaled(MINUTE_S));
    // Of the database, then of the hosts: in the report, and in total.
    let mut totals = grid.columns(&["total"]);
    who.instances = totals
        .next()
        .and_then(|total| whole(cell(row, Some(total))))
        .and_then(|count| u32::try_from(count).ok());
    let in_report = grid
        .column(&["inreport"])
        .and_then(|at| whole(cell(row, Some(at))));
    if let Some((of_report, all)) = in_report.zip(who.instances)
        && of_report < u64::from(all)
    {
        report
            .notes
            .push(format!("the report covers {of_report} of {all} instances"));
    }
}

/// The instances of a global report.
fn instances(grid: &Grid, report: &mut DatabaseReport) {
    let of = |row: &Vec<String>, names: &[&str]| cell(row, grid.column(names)).to_string();
    let mut hosts: Vec<String> = Vec::new();
    for row in &grid.rows {
        let host = of(row, &["host"]);
        if !host.is_empty() && !hosts.contains(&host) {
            hosts.push(host);
        }
        let (begin, end) = (
            time(&of(row, &["beginsnaptime"])),
            time(&of(row, &["endsnaptime"])),
        );
        let window = &mut report.window;
        window.begin = window.begin.or(begin);
        window.end = window.end.or(end);
        let who = &mut report.identity;
        who.release = who
            .release
            .take()
            .or_else(|| filled(&of(row, &["release"])));
        who.platform = who
            .platform
            .take()
            .or_else(|| filled(&of(row, &["platform"])));
        // The latest start: an instance that was restarted makes a window doubtful.
        who.startup = who.startup.max(time(&of(row, &["startup"])));
    }
    report.identity.host = filled(&hosts.join(", "));
}

/// The cell behind `Std Block Size:`.
fn block_size(grid: &Grid) -> Option<u32> {
    for row in grid.rows.iter().chain([&grid.header]) {
        for (at, text) in row.iter().enumerate() {
            let Some((_, behind)) = text.split_once("Std Block Size:") else {
                continue;
            };
            let behind = behind.split_whitespace().next();
            return number::block_bytes(behind.unwrap_or_else(|| cell(row, Some(at + 1))));
        }
    }
    None
}
