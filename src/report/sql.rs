//! The report of database sessions as text, and the line format of SLOB users' spreadsheets.

use super::calibration::NAME_WIDTH;
use super::curve::{p99, steady, times};
use crate::analyse::sql::{ServerFigures, ServerMoment, ServerRate, SqlSummary, Witnessed, mib};
use crate::analyse::{ClassSummary, CurveResult, PointSummary, quantity};
use crate::model::{Bytes, Nanos, Ratio, ReadWay, Redo, Request, ServerFacts, SqlTerms, SqlWork, Tables};
use crate::record::journal::Run;
use std::fmt::Write;

/// Maximum number of rows of a timeline; a longer one has several seconds per row.
const TIMELINE_MAX: usize = 20;

/// Maximum width of a histogram's bars.
const BAR: usize = 40;

/// The heading, and the figures; `None` if the run is not one of sessions.
pub(super) fn parts(run: &Run, found: &CurveResult) -> Option<(String, String)> {
    let Request::Sql(request) = run.header.request() else { return None };
    let terms = request.sql?;
    let mut text = loads(&found.points);
    text.push_str(super::calibration::open_ends(&text));
    if let [point] = &found.points[..] {
        text.push_str(&details(point));
    } else {
        text.push('\n');
        text.push_str(&super::curve::shape(found));
        for point in &found.points {
            if let Some(sql) = &point.sql {
                let _ = write!(text, "\n{} sessions", point.coordinates.outstanding());
                text.push_str(&waits(sql));
            }
        }
    }
    text.push_str(&plan(run));
    Some((heading(run, &terms, &found.points), text))
}

fn heading(run: &Run, terms: &SqlTerms, points: &[PointSummary]) -> String {
    let header = &run.header;
    let mut text = format!("{}\n", header.facts.name);
    if let Some(server) = &header.facts.server {
        let _ = writeln!(text, "{}", server_line(server));
    }
    let points = points.len();
    let of = if points == 1 { "" } else { "s" };
    let _ = writeln!(text, "{}; {points} point{of}, Rigel {}", work_line(&terms.work), header.version);
    text
}

/// `PostgreSQL 18.1, buffer cache 32 MiB, direct I/O; 1 table of 131072 rows, one to a block of 8 KiB: 1 GiB`.
pub(super) fn server_line(server: &ServerFacts) -> String {
    let how = if server.direct { "direct I/O" } else { "through the page cache" };
    let mut text = format!("{}, buffer cache {}, {how}", server.version, server.buffer_cache);
    if let Some(tables) = server.tables {
        let _ = write!(text, "; {}: {}", tables_line(tables), tables.bytes());
    }
    text
}

/// `2 tables of 131072 rows, one to a block of 8 KiB`.
pub(super) fn tables_line(tables: Tables) -> String {
    let number = if tables.schemas == 1 { "1 table".into() } else { format!("{} tables", tables.schemas) };
    format!("{number} of {} rows, one to a block of {}", tables.scale, Bytes(tables.block.into()))
}

/// The work of the sessions, in words.
pub(super) fn work_line(work: &SqlWork) -> String {
    let percent = |share: f64| format!("{} %", (share * 1e4).round() / 100.0);
    let way = match work.way {
        ReadWay::Row => "rows by index",
        ReadWay::File => "blocks of its files, without the buffer cache",
    };
    let mut text = format!("reads of {} {way}", work.read_rows);
    if work.scans != Ratio::ZERO {
        let _ = write!(text, ", {} of them scans of {} blocks", percent(work.scans.get()), work.tables.scan_blocks);
    }
    if work.updates != Ratio::ZERO {
        let columns = match work.redo {
            Redo::Lite => "2 columns",
            Redo::Heavy => "all columns",
        };
        let _ = write!(text, "; {} updates of {} rows, {columns}", percent(work.updates.get()), work.update_rows);
    }
    if let Some(spot) = work.hot_spot {
        let _ = write!(text, "; every {}th in a hot spot of {} rows", spot.every, spot.rows);
    }
    if let Some(every) = work.hot_schema_every {
        let _ = write!(text, "; every {every}th in the first table");
    }
    if let Some(think) = work.think {
        let _ = write!(text, "; a pause of {} to {} after every {}th", think.least, think.most, think.every);
    }
    text
}

/// One line per point.
fn loads(points: &[PointSummary]) -> String {
    let mut text = format!(
        "{:>8} {:>8} {:<8} {:>8} {:>10} {:>7} {:>7}  {:<20} {:>7} {:>7} {:>6} {:>10}  steady\n",
        "sessions",
        "op/s",
        "",
        "blocks/s",
        "physical/s",
        "mean",
        "p50",
        "p99 [95 % interval]",
        "p99.9",
        "max",
        "DB CPU",
        "phys/CPU s"
    );
    for point in points {
        let (Some(class), Some(sql)) = (point.classes.first(), &point.sql) else { continue };
        let [mean, p50, p999, max] = times(class.latency, |l| [l.mean_us, l.p50_us, l.p999_us, l.max_us]);
        let server = sql.server.as_ref();
        let physical = server.and_then(|server| server.physical);
        let cpu = server.and_then(|server| server.cpu_us);
        let per_cpu = server.and_then(|server| server.physical_per_cpu_s);
        let sessions = || point.coordinates.outstanding().to_string();
        let load = point.coordinates.rate().map_or_else(sessions, |rate| format!("{rate}/s"));
        let line = format!(
            "{load:>8} {:>8.0} {:<8} {:>8.0} {:>10} {mean:>7} {p50:>7}  {:<20} {p999:>7} {max:>7} {:>6} {:>10}  {}",
            class.iops,
            quantity::precision(class.rate()),
            sql.visited.per_s,
            known(physical.map(|figure| figure.per_s), 0),
            p99(class),
            known(cpu.map(|figure| figure.per_s), 2),
            known(per_cpu, 0),
            steady(point, class)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Formats a figure with this number of decimals; a dash if unknown.
fn known(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.decimals$}"))
}

/// All details of one point.
fn details(point: &PointSummary) -> String {
    let (Some(class), Some(sql)) = (point.classes.first(), &point.sql) else { return String::new() };
    let mut text = figures(point, sql);
    text.push_str(&latencies(class, sql));
    text.push_str(&waits(sql));
    text.push_str(&histogram(sql));
    text.push_str(&timeline(&sql.timeline));
    text.push_str(&witnesses(&sql.witnesses));
    text
}

fn figures(point: &PointSummary, sql: &SqlSummary) -> String {
    let mut text = format!("\n{:<NAME_WIDTH$} {:>14} {:>14}\n", "", "an operation", "a second");
    let _ = writeln!(text, "{:<NAME_WIDTH$} {:>14} {:>14.1}", "operations", "", sql.operations_per_s);
    for (kind, count) in sql.kinds.iter().filter(|_| sql.kinds.len() > 1) {
        let share = *count as f64 / sql.kinds.values().sum::<u64>().max(1) as f64;
        let name = format!("  of those {kind}s");
        let _ = writeln!(text, "{name:<NAME_WIDTH$} {:>13.2}% {:>14.1}", share * 100.0, sql.operations_per_s * share);
    }
    let mut count = |name: &str, figure: Option<ServerRate>| {
        if let Some(figure) = figure {
            let _ = writeln!(text, "{name:<NAME_WIDTH$} {:>14.2} {:>14.1}", figure.per_operation, figure.per_s);
        }
    };
    count("blocks visited", Some(sql.visited));
    let Some(server) = &sql.server else {
        return text + "the server told nothing of its counters\n";
    };
    count("logical reads", server.logical);
    count("physical reads", server.physical);
    count("blocks written", server.written);
    count("transactions", server.commits);
    count("log syncs", server.log_syncs);
    let mut bytes = |name: &str, figure: Option<ServerRate>| {
        if let Some(figure) = figure {
            let (each, second) = (figure.per_operation / 1024.0, mib(figure.per_s));
            let _ = writeln!(text, "{name:<NAME_WIDTH$} {each:>10.1} KiB {second:>10.2} MiB");
        }
    };
    bytes("log", server.log_bytes);
    bytes("read from storage", server.storage_read);
    if let Some(disk) = &sql.disk {
        let mean = disk.read_mean_us.map_or_else(String::new, |us| format!(", {} each", Nanos::from_micros_f64(us)));
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} {:>14} {:>14.1}   reads{mean}; {:.1} writes; busy {:.0} % of the time",
            "the disk, all of it",
            "",
            disk.reads_per_s,
            disk.writes_per_s,
            disk.busy * 100.0
        );
    }
    if let Some(cpu) = server.cpu_us {
        let (each, busy) = (Nanos::from_micros_f64(cpu.per_operation), cpu.per_s);
        let per_cpu = known(server.physical_per_cpu_s, 0);
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} {:>14} {busy:>9.2} CPUs   {per_cpu} physical reads a CPU second",
            "database CPU",
            each.to_string()
        );
    }
    let client = Nanos::from_micros_f64(sql.client_cpu_us);
    let busy = sql.client_cpu_us * sql.operations_per_s / 1e6;
    let _ = writeln!(text, "{:<NAME_WIDTH$} {:>14} {busy:>9.2} CPUs", "client CPU", client.to_string());
    let _ = writeln!(
        text,
        "\n{} sessions, {:.1} s measured after {:.1} s of warming up{}",
        sql.sessions,
        point.measured_s,
        point.warm_up_s,
        server.active.map_or_else(String::new, |active| format!("; {active:.1} of them at work at once"))
    );
    text
}

fn latencies(class: &ClassSummary, sql: &SqlSummary) -> String {
    let Some(latency) = class.latency else { return String::new() };
    let mut text = format!(
        "\n{:<NAME_WIDTH$} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        "latency", "mean", "p50", "p90", "p99", "p99.9", "max"
    );
    let row = [latency.mean_us, latency.p50_us, latency.p90_us, latency.p99_us, latency.p999_us, latency.max_us];
    let row = row.map(|us| format!("{:>8}", Nanos::from_micros_f64(us).to_string()));
    let _ = writeln!(text, "{:<NAME_WIDTH$} {}", "an operation", row.join(" "));
    let block = Nanos::from_micros_f64(sql.block_mean_us).to_string();
    let _ = writeln!(text, "{:<NAME_WIDTH$} {block:>8}", "a block within it");
    if let Some(read) = sql.server.as_ref().and_then(|server| server.read_mean_us) {
        let read = Nanos::from_micros_f64(read).to_string();
        let _ = writeln!(text, "{:<NAME_WIDTH$} {read:>8}  as the server times it", "a physical read");
    }
    text
}

fn waits(sql: &SqlSummary) -> String {
    if sql.waits.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{:<28} {:>8} {:>9}\n", "the sessions' time", "share", "sessions");
    for wait in sql.waits.iter().take(8) {
        let _ = writeln!(text, "{:<28} {:>6.1} % {:>9.2}", wait.event, wait.share * 100.0, wait.sessions);
    }
    text
}

fn histogram(sql: &SqlSummary) -> String {
    let most = sql.histogram_us.iter().map(|(_, count)| *count).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let mut text = "\nlatency of an operation, in powers of two\n".to_string();
    for (edge, count) in &sql.histogram_us {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few columns")]
        let width = ((*count as f64 / most as f64) * BAR as f64).ceil() as usize;
        let edge = Nanos(edge * 1000).to_string();
        let _ = writeln!(text, "  up to {edge:>8} {count:>10} {}", "#".repeat(width));
    }
    text
}

/// The measurement in steps: reads, CPU, and wait events.
fn timeline(moments: &[ServerMoment]) -> String {
    if moments.len() < 2 {
        return String::new();
    }
    let mut text = format!("\n{:>6} {:>10} {:>9} {:>7}  sessions in\n", "at", "physical/s", "storage/s", "DB CPU");
    let step = moments.len().div_ceil(TIMELINE_MAX);
    for part in moments.chunks(step) {
        let mean = |of: fn(&ServerMoment) -> Option<f64>| {
            let values: Vec<f64> = part.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let mut events: Vec<(&str, f64)> = Vec::new();
        for (event, sessions) in part.iter().flat_map(|moment| &moment.waits) {
            match events.iter_mut().find(|(known, _)| *known == event) {
                Some((_, sum)) => *sum += sessions / part.len() as f64,
                None => events.push((event, sessions / part.len() as f64)),
            }
        }
        events.sort_by(|a, b| b.1.total_cmp(&a.1));
        let events: Vec<String> =
            events.iter().take(3).map(|(event, sessions)| format!("{event} {sessions:.1}")).collect();
        let at = part.last().map_or(0.0, |moment| moment.at_s);
        let _ = writeln!(
            text,
            "{at:>5.0}s {:>10} {:>9} {:>7}  {}",
            known(mean(|moment| moment.physical_per_s), 0),
            mean(|moment| moment.storage_read_per_s)
                .map_or_else(|| "-".into(), |bytes| format!("{:.1} MiB", mib(bytes))),
            known(mean(|moment| moment.cpu), 2),
            events.join(", ")
        );
    }
    text
}

/// The counts of the same blocks by different parties.
fn witnesses(witnesses: &[Witnessed]) -> String {
    if witnesses.is_empty() {
        return String::new();
    }
    let mut text = "\nwho counted what, warm-up included\n".to_string();
    for witness in witnesses {
        let verdict = match (witness.may_differ, witness.agrees()) {
            (_, true) => ", which agrees".to_string(),
            (None, false) => ", which does NOT agree".to_string(),
            (Some(why), false) => format!("\n    the two may differ: {why}"),
        };
        let _ = writeln!(
            text,
            "  {:<34} {} {}, {} {}: {:.2} %{verdict}",
            witness.what,
            witness.first.0,
            witness.first.1,
            witness.second.0,
            witness.second.1,
            witness.ratio() * 100.0
        );
    }
    text
}

/// How the server executes the read, from its `EXPLAIN`.
fn plan(run: &Run) -> String {
    let lines = run.header.facts.server.as_ref().map_or(&[][..], |server| &server.plan);
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "\nhow the server reads, in its own words\n".to_string();
    lines.iter().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    text
}

/// Header of the columns that [`awr_lines`] fills.
const AWR_HEAD: &str = "FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS|PWRITES|WRITE_MBS|REDO_MBS|\
                        DFSR_LAT|DPR_LAT|DFPR_LAT|DFPW_LAT|LFPW_LAT|TOP WAIT|";

/// One line per point in the format of SLOB's `awr_info`, with its header. Figures that the server does not report are
/// empty.
#[must_use]
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
        let figure = |of: fn(&ServerFigures) -> Option<ServerRate>| server.and_then(of).map(|figure| figure.per_s);
        let whole = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{:.0}", value.trunc()));
        let mbs = |bytes: Option<f64>| bytes.map_or_else(String::new, |bytes| format!("{:.1}", mib(bytes)));
        let plain = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
        let (reads, writes) = (figure(|server| server.physical), figure(|server| server.written));
        let top = sql
            .waits
            .iter()
            .find(|wait| wait.event != "CPU")
            .map_or_else(String::new, |wait| format!("{} {:.1}", wait.event, wait.share * 100.0));
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

/// The server's figures for each point of a curve; empty for raw I/O.
pub(super) fn beside_curve(points: &[PointSummary]) -> String {
    if points.iter().all(|point| point.sql.is_none()) {
        return String::new();
    }
    format!("\n{}\n", loads(points).trim_end())
}
