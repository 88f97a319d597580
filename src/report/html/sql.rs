//! The page of database sessions.

use super::curve;
use super::page::{Block, Headline, Page, Section, Table};
use super::{distribution, points, setup, timeline, words};
use crate::analyse::sql::{ServerFigures, ServerRate, SqlSummary};
use crate::analyse::{CurveResult, Naming, PointSummary};
use crate::record::journal::Run;
use crate::report::curve::workload_of;

/// Maximum number of wait events in a point's table.
const EVENTS_MAX: usize = 8;

/// Completes `page`, which has the heading and the conclusion; returns it unchanged if no point has sessions.
pub(super) fn page(run: &Run, found: &CurveResult, findings: Section, page: Page) -> Page {
    let Some((index, point, sql)) = found.busiest() else { return page };
    Page { figures: figures(found, index, point, sql), sections: sections(run, found, findings), ..page }
}

fn figures(found: &CurveResult, index: usize, point: &PointSummary, sql: &SqlSummary) -> Vec<Headline> {
    let mut figures = Vec::new();
    let at = match point.coordinates.rate() {
        Some(rate) => format!("{} offered a second", words::count(rate as f64)),
        _ => format!("{} sessions", sql.sessions),
    };
    if let Some(class) = point.classes.first() {
        let name = format!("points.{index}.classes.0.iops");
        let note = format!("{at}; {:.0} blocks each", sql.visited.per_operation);
        figures.push(words::rate(&name, "operations a second", class.rate(), note));
    }
    let server = sql.server.as_ref();
    let uncounted = || "counted by the server".to_string();
    if let Some(physical) = server.and_then(|server| server.physical) {
        let name = format!("points.{index}.sql.server.physical.per_s");
        let value = words::count(physical.per_s);
        figures.push(words::headline(&name, "physical reads a second", physical.per_s, value, uncounted(), at.clone()));
    }
    figures.extend(curve::p99(index, point, "p99 of an operation"));
    if let Some(reads) = server.and_then(|server| server.physical_per_cpu_s) {
        let name = format!("points.{index}.sql.server.physical_per_cpu_s");
        let note = "how much the server's CPU can read".to_string();
        figures.push(words::headline(&name, "reads a CPU second", reads, words::count(reads), uncounted(), note));
    } else if let Some(rate) = found.sustained.kept_rate {
        let (name, value) = ("curve.sustained.kept_rate", format!("{}/s", words::count(rate as f64)));
        let note = "offered at times of their own, and served".to_string();
        figures.push(words::headline(name, "greatest rate met", rate as f64, value, String::new(), note));
    }
    figures
}

fn sections(run: &Run, found: &CurveResult, findings: Section) -> Vec<Section> {
    let mut sections = Vec::new();
    if found.points.len() > 1 {
        sections.push(curve::drawn(run, found));
    }
    sections.extend([findings, database(found)]);
    sections.extend(timeline::section(run, Naming::SESSIONS.rate));
    let records = run.latest();
    let chosen = if records.len() == 1 {
        records.iter().map(|record| (record.coordinates.to_string(), record)).collect()
    } else {
        curve::chosen(found, &records)
    };
    sections.extend(distribution::section(&chosen));
    sections.push(points::section(&found.points, Naming::SESSIONS.rate));
    sections.push(setup::section(&run.header, &workload_of(run)));
    sections
}

/// The server's figures for each point, and the cost of an operation at the busiest point.
fn database(found: &CurveResult) -> Section {
    let mut blocks = Vec::new();
    let several = found.points.len() > 1;
    if several {
        blocks.push(Block::Table(loads(&found.points)));
    }
    if let Some((_, point, sql)) = found.busiest() {
        let at = if several { format!(", {}", point.coordinates) } else { String::new() };
        let tables = [costs(sql, &at), waits(sql, &at)];
        let tables = tables.into_iter().filter(|table| !table.rows.is_empty()).map(Block::Table);
        blocks.push(Block::Beside(tables.collect()));
        if !sql.witnesses.is_empty() {
            blocks.push(Block::Table(witnesses(sql, &at)));
        }
    }
    let lead = "What the server counted, for each operation and a second, held against what the client, the kernel and \
                the disk counted.";
    words::section("database", "What the database did", lead, blocks)
}

fn loads(points: &[PointSummary]) -> Table {
    let known = |value: Option<f64>| value.map_or_else(|| "-".into(), words::count);
    let mut rows = Vec::new();
    for point in points {
        let Some(sql) = &point.sql else { continue };
        let server = sql.server.as_ref();
        let rate = |of: fn(&ServerFigures) -> Option<ServerRate>| server.and_then(of).map(|figure| figure.per_s);
        let cpu = rate(|server| server.cpu_us);
        rows.push(vec![
            point.coordinates.to_string(),
            words::count(sql.operations_per_s),
            words::count(sql.visited.per_s),
            known(rate(|server| server.physical)),
            known(rate(|server| server.written)),
            known(rate(|server| server.commits)),
            cpu.map_or_else(|| "-".into(), |cpu| format!("{cpu:.2}")),
            known(server.and_then(|server| server.physical_per_cpu_s)),
            sql.waits
                .first()
                .map_or_else(|| "-".into(), |wait| format!("{} {}", wait.event, words::percent(wait.share))),
        ]);
    }
    let columns = [
        "point",
        "#op/s",
        "#blocks/s",
        "#physical/s",
        "#written/s",
        "#commits/s",
        "#CPUs",
        "#physical a CPU s",
        "most in",
    ];
    words::rows("Each load", &columns, rows)
}

/// The cost of an operation, and the rates per second.
fn costs(sql: &SqlSummary, at: &str) -> Table {
    let mut rows = vec![vec!["operations".into(), String::new(), words::count(sql.operations_per_s)]];
    let mut count = |name: &str, figure: Option<ServerRate>| {
        if let Some(figure) = figure {
            let each = figure.per_operation;
            let each = if each < 1000.0 { format!("{each:.2}") } else { words::count(each) };
            rows.push(vec![name.into(), each, words::count(figure.per_s)]);
        }
    };
    count("blocks visited", Some(sql.visited));
    let server = sql.server.as_ref();
    let of = |of: fn(&ServerFigures) -> Option<ServerRate>| server.and_then(of);
    count("logical reads", of(|server| server.logical));
    count("physical reads", of(|server| server.physical));
    count("blocks written", of(|server| server.written));
    count("transactions", of(|server| server.commits));
    count("log syncs", of(|server| server.log_syncs));
    count("bytes of log", of(|server| server.log_bytes));
    count("bytes read from storage", of(|server| server.storage_read));
    let row = |name: &str, each: String, second: String| vec![name.to_string(), each, second];
    if let Some(cpu) = of(|server| server.cpu_us) {
        rows.push(row("database CPU", words::time(cpu.per_operation), format!("{:.2} CPUs", cpu.per_s)));
    }
    rows.push(row("client CPU", words::time(sql.client_cpu_us), String::new()));
    if let Some(read) = server.and_then(|server| server.read_mean_us) {
        rows.push(row("a physical read, as the server times it", words::time(read), String::new()));
    }
    if let Some(disk) = &sql.disk {
        let each = disk.read_mean_us.map_or_else(String::new, words::time);
        let reads = words::count(disk.reads_per_s);
        rows.push(row("reads of the disk, for everybody", each, reads));
        rows.push(row("writes of the disk, for everybody", String::new(), words::count(disk.writes_per_s)));
        rows.push(row("the busiest disk was busy", words::percent(disk.busy), String::new()));
    }
    words::rows(&format!("Figures of the database{at}"), &["", "#an operation", "#a second"], rows)
}

fn waits(sql: &SqlSummary, at: &str) -> Table {
    let row = |wait: &crate::analyse::sql::Wait| {
        vec![wait.event.clone(), words::percent(wait.share), format!("{:.2}", wait.sessions)]
    };
    let rows = sql.waits.iter().take(EVENTS_MAX).map(row).collect();
    words::rows(&format!("Where the sessions' time went{at}"), &["event", "#share", "#sessions"], rows)
}

fn witnesses(sql: &SqlSummary, at: &str) -> Table {
    let rows = sql.witnesses.iter().map(|witness| {
        let verdict = match (witness.may_differ, witness.agrees()) {
            (_, true) => "agrees".to_string(),
            (None, false) => "does NOT agree".to_string(),
            (Some(why), false) => format!("may differ: {why}"),
        };
        vec![
            witness.what.to_string(),
            format!("{} {}", witness.first.0, words::count(witness.first.1 as f64)),
            format!("{} {}", witness.second.0, words::count(witness.second.1 as f64)),
            format!("{:.2} %", witness.ratio() * 100.0),
            verdict,
        ]
    });
    let columns = ["who counted what, warm-up included", "first", "second", "#second of first", ""];
    words::rows(&format!("Witnesses{at}"), &columns, rows.collect())
}
