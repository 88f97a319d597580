//! What a database server did for sessions: the cost of an operation, latencies, waits, and what
//! other witnesses counted.

use super::columns::TableOf;
use super::document::{Block, Section, Table};
use super::parts;
use rigel_analyse::LatencySummary;
use rigel_analyse::sql::{ServerFigures, ServerRate, SqlSummary};
use rigel_analyse::{ClassSummary, PointSummary, ShownIn};
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
        let of_point = if several {
            format!(", {}", shown.coordinates)
        } else {
            String::new()
        };
        let tables = [costs(sql, &of_point), waits(sql, &of_point)];
        let tables = tables
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .map(Block::Table);
        blocks.push(Block::Beside(tables.collect()));
        blocks.push(Block::Text(sessions(shown, sql)));
        if let Some(class) = shown.classes.first() {
            blocks.push(Block::Table(latencies(class, sql, &of_point)));
        }
        blocks.push(Block::Table(histogram(sql, &of_point)));
        if !sql.witnesses.is_empty() {
            blocks.push(Block::Table(witnesses(sql, &of_point)));
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
        "{}{}, {} measured after {} of warm-up{active}.",
        parts::counted(sql.sessions.into(), "session"),
        pipelined(sql),
        Nanos::from_secs_f64(point.measured_s),
        Nanos::from_secs_f64(point.warm_up_s)
    )
}

/// What is timed, and its latencies as far as they are known.
struct TimedPart(&'static str, LatencySummary<Option<f64>>);

/// Latencies of an operation and of its parts.
fn latencies(class: &ClassSummary, sql: &SqlSummary, at: &str) -> Table {
    let mut rows = Vec::new();
    if class.latency.is_some() {
        let mean = |mean_us: f64| LatencySummary {
            mean_us: Some(mean_us),
            ..LatencySummary::default()
        };
        rows.push(TimedPart("an operation", class.latency.into()));
        rows.push(TimedPart("a block within it", mean(sql.block_mean_us)));
        let read = sql.server.as_ref().and_then(|server| server.read_mean_us);
        rows.extend(read.map(|us| TimedPart("a physical read, as the server times it", mean(us))));
    }
    TableOf::of(&format!("Latency{at}"), rows)
        .text("", |row| row.0)
        .times(ShownIn::Files, |row, figure| row.1.get(figure))
        .table()
}

/// The distribution of an operation's latency, in powers of two.
fn histogram(sql: &SqlSummary, at: &str) -> Table {
    let all: u64 = sql.histogram_us.iter().map(|(_, count)| count).sum();
    let caption = format!("Latency of an operation, in powers of two{at}");
    TableOf::of(&caption, &sql.histogram_us)
        .time("up to", |(edge, _)| *edge as f64)
        .count("operations", |(_, count)| *count as f64)
        .percent("share", |(_, count)| *count as f64 / all.max(1) as f64)
        .folded_if(true)
        .table()
}

/// A load through a database, and what the server did.
struct ServerLoad<'a> {
    point: &'a PointSummary,
    sql: &'a SqlSummary,
}

impl ServerLoad<'_> {
    fn per_s(&self, of: fn(&ServerFigures) -> Option<ServerRate>) -> Option<f64> {
        self.one(of).map(|figure| figure.per_s)
    }

    fn one<T>(&self, of: fn(&ServerFigures) -> Option<T>) -> Option<T> {
        self.sql.server.as_ref().and_then(of)
    }
}

fn loads(points: &[&PointSummary]) -> Table {
    let loads = points.iter().filter_map(|point| {
        let sql = point.sql.as_deref()?;
        Some(ServerLoad { point, sql })
    });
    TableOf::of("Each load", loads)
        .text("point", |load| load.point.coordinates)
        .count("op/s", |load| load.sql.operations_per_s)
        .count("blocks/s", |load| load.sql.visited.per_s)
        .on_page()
        .count("physical/s", |load| load.per_s(|server| server.physical))
        .percent("buffer hits", |load| load.one(|server| server.hit_share))
        .count("written/s", |load| load.per_s(|server| server.written))
        .count("commits/s", |load| load.per_s(|server| server.commits))
        .on_page()
        .number("active", |load| {
            parts::known(load.one(|server| server.active), |active| {
                format!("{active:.1}")
            })
        })
        .number("CPUs", |load| {
            parts::known(load.per_s(|server| server.cpu_us), |cpus| {
                format!("{cpus:.2}")
            })
        })
        .count("reads/CPU s", |load| {
            load.one(|server| server.physical_per_cpu_s)
        })
        .text("longest wait", |load| {
            parts::known(load.sql.waits.first(), |wait| {
                format!("{} {}", wait.event, parts::percent(wait.share))
            })
        })
        .table()
}

/// What an operation costs, per operation and per second.
struct Cost {
    name: String,
    each: String,
    per_s: String,
}

fn cost(name: impl Into<String>, each: impl Into<String>, per_s: impl Into<String>) -> Cost {
    Cost {
        name: name.into(),
        each: each.into(),
        per_s: per_s.into(),
    }
}

/// Blocks, transactions and bytes, per operation and per second.
fn counts(sql: &SqlSummary) -> Vec<Cost> {
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
        Some(cost(name, each, parts::count(figure.per_s)))
    };
    let bytes = |name: &str, figure: Option<ServerRate>| {
        let figure = figure?;
        let each = parts::bytes(figure.per_operation);
        let per_s = parts::mb_per_second(figure.per_s / 1e6);
        Some(cost(name, each, per_s))
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
    let mut rows = vec![cost("operations", "", parts::count(sql.operations_per_s))];
    let all = sql.kinds.values().sum::<u64>().max(1) as f64;
    let kinds = sql.kinds.iter().filter(|_| sql.kinds.len() > 1);
    rows.extend(kinds.map(|(kind, count)| {
        let share = *count as f64 / all;
        let per_s = parts::count(sql.operations_per_s * share);
        cost(format!("of those {kind}s"), parts::percent(share), per_s)
    }));
    rows.extend(counts(sql));
    let server = sql.server.as_ref();
    if let Some(share) = server.and_then(|server| server.hit_share) {
        rows.push(cost(
            "logical reads found in the buffer cache",
            parts::percent(share),
            "",
        ));
    }
    if let Some(active) = server.and_then(|server| server.active) {
        // Little's law: the time that an operation keeps a session active.
        let each = active / sql.operations_per_s.max(1e-9) * 1e6;
        let name = "database time, from samples of its sessions";
        rows.push(cost(
            name,
            parts::time(each),
            format!("{active:.2} sessions"),
        ));
    }
    if let Some(cpu) = server.and_then(|server| server.cpu_us) {
        let per_s = format!("{:.2} CPUs", cpu.per_s);
        rows.push(cost("database CPU", parts::time(cpu.per_operation), per_s));
    }
    let busy = sql.client_cpu_us * sql.operations_per_s / 1e6;
    let each = parts::time(sql.client_cpu_us);
    rows.push(cost("client CPU", each, format!("{busy:.2} CPUs")));
    if let Some(reads) = server.and_then(|server| server.physical_per_cpu_s) {
        let name = "physical reads per CPU second of the database";
        rows.push(cost(name, "", parts::count(reads)));
    }
    if let Some(disk) = &sql.disk {
        let each = disk.read_mean_us.map_or_else(String::new, parts::time);
        let (reads, writes) = (
            parts::count(disk.reads_per_s),
            parts::count(disk.writes_per_s),
        );
        rows.push(cost("reads of the disk, of all processes", each, reads));
        rows.push(cost("writes of the disk, of all processes", "", writes));
        rows.push(cost(
            "the busiest disk was busy",
            parts::percent(disk.busy),
            "",
        ));
    }
    TableOf::of(&format!("Figures of the database{at}"), rows)
        .text("", |row| row.name.clone())
        .number("per operation", |row| row.each.clone())
        .number("per second", |row| row.per_s.clone())
        .table()
}

fn waits(sql: &SqlSummary, at: &str) -> Table {
    let caption = format!("Where the sessions spent their time{at}");
    TableOf::of(&caption, sql.waits.iter().take(EVENTS_MAX))
        .text("event", |wait| wait.event.clone())
        .percent("share", |wait| wait.share)
        .number("sessions", |wait| format!("{:.2}", wait.sessions))
        .table()
}

fn witnesses(sql: &SqlSummary, at: &str) -> Table {
    let counted = |(name, count): &(&str, u64)| format!("{name} {}", parts::count(*count as f64));
    let caption = format!("Independent counts of the same blocks{at}");
    TableOf::of(&caption, &sql.witnesses)
        .text("counted, warm-up included", |witness| witness.what)
        .text("first", |witness| counted(&witness.first))
        .text("second", |witness| counted(&witness.second))
        .number("second of first", |witness| parts::share(witness.ratio()))
        .text("", |witness| match (witness.may_differ, witness.agrees()) {
            (_, true) => "agrees".to_string(),
            (None, false) => "does not agree".to_string(),
            (Some(why), false) => format!("may differ: {why}"),
        })
        .table()
}
