//! The report of database sessions, and the line format of SLOB users' spreadsheets.

use super::curve;
use super::document::{Block, Document, Headline, Section, Table};
use super::frame::about_server;
use super::points::{self, Units};
use super::{distribution, parts, setup, timeline};
use rigel_analyse::request::Run;
use rigel_analyse::sql::{ServerFigures, ServerRate, SqlSummary, Wait, mib};
use rigel_analyse::{ClassSummary, CurveResult, Naming, PointSummary};
use rigel_model::Nanos;
use std::fmt::Write;

/// Maximum number of wait events in a point's table.
const EVENTS_MAX: usize = 8;

/// Completes `frame`, which has the heading and the conclusion; returns it unchanged if no point
/// has sessions.
pub(super) fn document(
    run: &Run,
    found: &CurveResult,
    findings: Section,
    frame: Document,
) -> Document {
    let Some((index, point, sql)) = found.busiest() else {
        return frame;
    };
    let workload = curve::workload(run);
    Document {
        about: about_server(
            &run.header,
            &workload,
            &parts::counted(found.points.len() as u64, "point"),
        ),
        headlines: headlines(found, index, point, sql),
        sections: sections(run, found, findings, &workload),
        ..frame
    }
}

fn headlines(
    found: &CurveResult,
    index: usize,
    point: &PointSummary,
    sql: &SqlSummary,
) -> Vec<Headline> {
    let mut figures = Vec::new();
    let at = match point.coordinates.rate() {
        Some(rate) => format!("{} offered per second", parts::count(rate as f64)),
        _ => format!("{} sessions{}", sql.sessions, pipelined(sql)),
    };
    if let Some(class) = point.classes.first() {
        let name = format!("points.{index}.classes.0.iops");
        let note = format!("{at}; {:.0} blocks each", sql.visited.per_operation);
        figures.push(parts::rate(
            &name,
            "operations per second",
            class.rate(),
            note,
        ));
    }
    let server = sql.server.as_ref();
    let uncounted = || "counted by the server".to_string();
    if let Some(physical) = server.and_then(|server| server.physical) {
        let name = format!("points.{index}.sql.server.physical.per_s");
        let value = parts::count(physical.per_s);
        figures.push(parts::headline(
            &name,
            "physical reads per second",
            physical.per_s,
            value,
            uncounted(),
            at.clone(),
        ));
    }
    figures.extend(curve::p99(index, point, "p99 of an operation"));
    if let Some(reads) = server.and_then(|server| server.physical_per_cpu_s) {
        let name = format!("points.{index}.sql.server.physical_per_cpu_s");
        let note = "how much the server's CPU can read".to_string();
        figures.push(parts::headline(
            &name,
            "reads per CPU second",
            reads,
            parts::count(reads),
            uncounted(),
            note,
        ));
    } else if let Some(rate) = found.sustained.kept_rate {
        let (name, value) = ("curve.sustained.kept_rate", parts::per_second(rate as f64));
        let note = "offered at random times, and served".to_string();
        figures.push(parts::headline(
            name,
            "highest rate met",
            rate as f64,
            value,
            String::new(),
            note,
        ));
    }
    figures
}

fn sections(run: &Run, found: &CurveResult, findings: Section, workload: &str) -> Vec<Section> {
    let units = Units::of(Naming::SESSIONS.rate);
    let mut sections = Vec::new();
    if found.points.len() > 1 {
        sections.push(curve::drawn(run, found));
    }
    sections.push(points::section(run, &found.points, units));
    sections.push(findings);
    if let Some((_, point, _)) = found.busiest() {
        let points: Vec<&PointSummary> = found.points.iter().collect();
        sections.push(database(&points, point));
    }
    sections.extend(timeline::section(run, units).map(|timeline| {
        if found.points.len() == 1 {
            parts::in_text(timeline)
        } else {
            timeline
        }
    }));
    let records = run.joined();
    let chosen = if records.len() == 1 {
        records
            .iter()
            .map(|record| (record.coordinates.to_string(), record))
            .collect()
    } else {
        curve::chosen(found, &records)
    };
    sections.extend(distribution::section(&chosen));
    sections.push(setup::section(&run.header, workload));
    sections
}

/// What the server did at each of these points; and at `shown`, which is one of them, the cost of an
/// operation, latencies and wait events.
pub(super) fn database(points: &[&PointSummary], shown: &PointSummary) -> Section {
    let mut blocks = Vec::new();
    let several = points.len() > 1;
    if several {
        blocks.push(Block::Table(loads(points)));
    }
    if let Some(sql) = shown.sql.as_deref() {
        let at = if several {
            format!(", {}", shown.coordinates)
        } else {
            String::new()
        };
        let tables = [costs(sql, &at), waits(sql, &at)];
        let tables = tables
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .map(Block::Table);
        blocks.push(Block::Beside(tables.collect()));
        blocks.push(Block::Text(sessions(shown, sql)));
        if let Some(class) = shown.classes.first() {
            blocks.push(Block::Table(latencies(class, sql, &at)));
        }
        blocks.push(Block::Table(histogram(sql, &at)));
        if !sql.witnesses.is_empty() {
            blocks.push(Block::Table(witnesses(sql, &at)));
        }
    }
    let lead = "What the server counted, per operation and per second, compared with what the \
                client, the kernel and the disk counted.";
    parts::section("database", "What the database did", lead, blocks)
}

/// What stands behind the number of sessions that were pipelined.
fn pipelined(sql: &SqlSummary) -> String {
    if sql.pipeline > 1 {
        format!(", {} operations in flight each", sql.pipeline)
    } else {
        String::new()
    }
}

/// How many sessions worked, and for how long.
fn sessions(point: &PointSummary, sql: &SqlSummary) -> String {
    let active = sql.server.as_ref().and_then(|server| server.active);
    let active = active.map_or_else(String::new, |active| {
        format!("; {active:.1} of them active on average")
    });
    format!(
        "{} sessions{}, {} measured after {} of warm-up{active}.",
        sql.sessions,
        pipelined(sql),
        Nanos::from_secs_f64(point.measured_s),
        Nanos::from_secs_f64(point.warm_up_s)
    )
}

/// Latencies of an operation and of its parts.
fn latencies(class: &ClassSummary, sql: &SqlSummary, at: &str) -> Table {
    let mut rows = Vec::new();
    if let Some(l) = class.latency {
        let times = [l.mean_us, l.p50_us, l.p90_us, l.p99_us, l.p999_us, l.max_us].map(parts::time);
        rows.push(
            std::iter::once("an operation".to_string())
                .chain(times)
                .collect(),
        );
        let mean = |name: &str, us: f64| {
            let mut row = vec![name.to_string(), parts::time(us)];
            row.resize(7, String::new());
            row
        };
        rows.push(mean("a block within it", sql.block_mean_us));
        let read = sql.server.as_ref().and_then(|server| server.read_mean_us);
        rows.extend(read.map(|us| mean("a physical read, as the server times it", us)));
    }
    parts::rows(
        &format!("Latency{at}"),
        &["", "#mean", "#p50", "#p90", "#p99", "#p99.9", "#max"],
        rows,
    )
}

/// The distribution of an operation's latency, in powers of two.
fn histogram(sql: &SqlSummary, at: &str) -> Table {
    let all: u64 = sql.histogram_us.iter().map(|(_, count)| count).sum();
    let row = |(edge, count): &(u64, u64)| {
        let share = parts::percent(*count as f64 / all.max(1) as f64);
        vec![
            parts::time(*edge as f64),
            parts::count(*count as f64),
            share,
        ]
    };
    let rows = sql.histogram_us.iter().map(row).collect();
    let table = parts::rows(
        &format!("Latency of an operation, in powers of two{at}"),
        &["#up to", "#operations", "#share"],
        rows,
    );
    Table {
        folded: true,
        ..table
    }
}

fn loads(points: &[&PointSummary]) -> Table {
    let count = |value: Option<f64>| parts::known(value, parts::count);
    let mut rows = Vec::new();
    for point in points {
        let Some(sql) = &point.sql else { continue };
        let server = sql.server.as_ref();
        let rate = |of: fn(&ServerFigures) -> Option<ServerRate>| {
            server.and_then(of).map(|figure| figure.per_s)
        };
        let one = |of: fn(&ServerFigures) -> Option<f64>| server.and_then(of);
        rows.push(vec![
            point.coordinates.to_string(),
            parts::count(sql.operations_per_s),
            parts::count(sql.visited.per_s),
            count(rate(|server| server.physical)),
            parts::known(one(|server| server.hit_share), parts::percent),
            count(rate(|server| server.written)),
            count(rate(|server| server.commits)),
            parts::known(one(|server| server.active), |active| format!("{active:.1}")),
            parts::known(rate(|server| server.cpu_us), |cpus| format!("{cpus:.2}")),
            count(one(|server| server.physical_per_cpu_s)),
            parts::known(sql.waits.first(), |wait| {
                format!("{} {}", wait.event, parts::percent(wait.share))
            }),
        ]);
    }
    let columns = [
        "point",
        "#op/s",
        "*#blocks/s",
        "#physical/s",
        "#buffer hits",
        "#written/s",
        "*#commits/s",
        "#active",
        "#CPUs",
        "#reads/CPU s",
        "longest wait",
    ];
    parts::rows("Each load", &columns, rows)
}

/// Blocks, transactions and bytes, per operation and per second.
fn counts(sql: &SqlSummary) -> Vec<Vec<String>> {
    let server = sql.server.as_ref();
    let of = |of: fn(&ServerFigures) -> Option<ServerRate>| server.and_then(of);
    let count = |name: &str, figure: Option<ServerRate>| {
        let figure = figure?;
        let each = figure.per_operation;
        let each = if each < 1000.0 {
            format!("{each:.2}")
        } else {
            parts::count(each)
        };
        Some(vec![name.to_string(), each, parts::count(figure.per_s)])
    };
    let bytes = |name: &str, figure: Option<ServerRate>| {
        let figure = figure?;
        let each = format!("{} KiB", parts::count(figure.per_operation / 1024.0));
        let per_s = parts::mb_per_second(figure.per_s / 1e6);
        Some(vec![name.to_string(), each, per_s])
    };
    let rows = [
        count("blocks visited", Some(sql.visited)),
        count("logical reads", of(|server| server.logical)),
        count("physical reads", of(|server| server.physical)),
        count("blocks written", of(|server| server.written)),
        count("transactions", of(|server| server.commits)),
        count("log syncs", of(|server| server.log_syncs)),
        bytes("log written", of(|server| server.log_bytes)),
        bytes("read from storage", of(|server| server.storage_read)),
    ];
    rows.into_iter().flatten().collect()
}

/// The cost of an operation, and the rates per second.
fn costs(sql: &SqlSummary, at: &str) -> Table {
    let mut rows = vec![vec![
        "operations".into(),
        String::new(),
        parts::count(sql.operations_per_s),
    ]];
    let all = sql.kinds.values().sum::<u64>().max(1) as f64;
    let of_kind = |(kind, count): (&&'static str, &u64)| {
        let share = *count as f64 / all;
        vec![
            format!("of those {kind}s"),
            parts::percent(share),
            parts::count(sql.operations_per_s * share),
        ]
    };
    rows.extend(
        sql.kinds
            .iter()
            .filter(|_| sql.kinds.len() > 1)
            .map(of_kind),
    );
    rows.extend(counts(sql));
    let server = sql.server.as_ref();
    let of = |of: fn(&ServerFigures) -> Option<ServerRate>| server.and_then(of);
    let row = |name: &str, each: String, second: String| vec![name.to_string(), each, second];
    if let Some(share) = server.and_then(|server| server.hit_share) {
        let (name, share) = (
            "logical reads found in the buffer cache",
            parts::percent(share),
        );
        rows.push(row(name, share, String::new()));
    }
    if let Some(active) = server.and_then(|server| server.active) {
        // Little's law: the time that an operation keeps a session active.
        let each = active / sql.operations_per_s.max(1e-9) * 1e6;
        rows.push(row(
            "database time, from samples of its sessions",
            parts::time(each),
            format!("{active:.2} sessions"),
        ));
    }
    if let Some(cpu) = of(|server| server.cpu_us) {
        rows.push(row(
            "database CPU",
            parts::time(cpu.per_operation),
            format!("{:.2} CPUs", cpu.per_s),
        ));
    }
    let busy = sql.client_cpu_us * sql.operations_per_s / 1e6;
    rows.push(row(
        "client CPU",
        parts::time(sql.client_cpu_us),
        format!("{busy:.2} CPUs"),
    ));
    if let Some(reads) = server.and_then(|server| server.physical_per_cpu_s) {
        rows.push(row(
            "physical reads per CPU second of the database",
            String::new(),
            parts::count(reads),
        ));
    }
    if let Some(disk) = &sql.disk {
        let each = disk.read_mean_us.map_or_else(String::new, parts::time);
        let reads = parts::count(disk.reads_per_s);
        rows.push(row("reads of the disk, of all processes", each, reads));
        rows.push(row(
            "writes of the disk, of all processes",
            String::new(),
            parts::count(disk.writes_per_s),
        ));
        rows.push(row(
            "the busiest disk was busy",
            parts::percent(disk.busy),
            String::new(),
        ));
    }
    parts::rows(
        &format!("Figures of the database{at}"),
        &["", "#per operation", "#per second"],
        rows,
    )
}

fn waits(sql: &SqlSummary, at: &str) -> Table {
    let row = |wait: &Wait| {
        vec![
            wait.event.clone(),
            parts::percent(wait.share),
            format!("{:.2}", wait.sessions),
        ]
    };
    let rows = sql.waits.iter().take(EVENTS_MAX).map(row).collect();
    parts::rows(
        &format!("Where the sessions spent their time{at}"),
        &["event", "#share", "#sessions"],
        rows,
    )
}

fn witnesses(sql: &SqlSummary, at: &str) -> Table {
    let rows = sql.witnesses.iter().map(|witness| {
        let verdict = match (witness.may_differ, witness.agrees()) {
            (_, true) => "agrees".to_string(),
            (None, false) => "does not agree".to_string(),
            (Some(why), false) => format!("may differ: {why}"),
        };
        vec![
            witness.what.to_string(),
            format!(
                "{} {}",
                witness.first.0,
                parts::count(witness.first.1 as f64)
            ),
            format!(
                "{} {}",
                witness.second.0,
                parts::count(witness.second.1 as f64)
            ),
            parts::share(witness.ratio()),
            verdict,
        ]
    });
    let columns = [
        "counted, warm-up included",
        "first",
        "second",
        "#second of first",
        "",
    ];
    parts::rows(
        &format!("Independent counts of the same blocks{at}"),
        &columns,
        rows.collect(),
    )
}

/// Header of the columns that [`awr_lines`] fills.
const AWR_HEAD: &str = "FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS|PWRITES|WRITE_MBS|REDO_MBS|\
                        DFSR_LAT|DPR_LAT|DFPR_LAT|DFPW_LAT|LFPW_LAT|TOP WAIT|";

/// One line per point in the format of SLOB's `awr_info`, with its header. Figures that the server
/// does not report are empty.
pub fn awr_lines(run: &Run, points: &[PointSummary]) -> String {
    let block = run
        .header
        .facts
        .server
        .as_ref()
        .and_then(|server| server.tables)
        .map_or(8192.0, |tables| f64::from(tables.block));
    let mut text = format!("{AWR_HEAD}\n");
    for point in points {
        let Some(sql) = &point.sql else { continue };
        let name = format!("{}:{}", run.header.started, point.coordinates.name());
        let server = sql.server.as_ref();
        let figure = |of: fn(&ServerFigures) -> Option<ServerRate>| {
            server.and_then(of).map(|figure| figure.per_s)
        };
        let whole = |value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("{:.0}", value.trunc()))
        };
        let mbs = |bytes: Option<f64>| {
            bytes.map_or_else(String::new, |bytes| format!("{:.1}", mib(bytes)))
        };
        let plain =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
        let (reads, writes) = (
            figure(|server| server.physical),
            figure(|server| server.written),
        );
        let top = sql
            .waits
            .iter()
            .find(|wait| wait.event != "CPU")
            .map_or_else(String::new, |wait| {
                format!("{} {:.1}", wait.event, wait.share * 100.0)
            });
        let fields = [
            name.replace('|', "/"),
            sql.sessions.to_string(),
            format!("{:.0}", point.measured_s),
            plain(figure(|server| server.cpu_us)),
            plain(server.and_then(|server| server.active)),
            whole(Some(sql.operations_per_s)),
            whole(figure(|server| server.logical)),
            whole(reads),
            mbs(reads.map(|reads| reads * block)),
            whole(writes),
            mbs(writes.map(|writes| writes * block)),
            mbs(figure(|server| server.log_bytes)),
            whole(server.and_then(|server| server.read_mean_us)),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            top,
        ];
        let _ = writeln!(text, "{}|", fields.join("|"));
    }
    text
}
