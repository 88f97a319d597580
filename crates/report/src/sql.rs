//! What a database server did for sessions: the cost of an operation, latencies, waits, and what
//! other witnesses counted.

use super::document::{Block, Section, Table};
use super::parts;
use rigel_analyse::sql::{ServerFigures, ServerRate, SqlSummary, Wait};
use rigel_analyse::{ClassSummary, PointSummary};
use rigel_model::Nanos;

/// Maximum number of wait events in a point's table.
const EVENTS_MAX: usize = 8;

/// What the server did at each of these points; and at `shown`, which is one of them, the cost of an
/// operation, latencies and wait events.
pub fn database(points: &[&PointSummary], shown: &PointSummary) -> Section {
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
pub fn pipelined(sql: &SqlSummary) -> String {
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
