//! Sections about the sessions of spools: what they did, what they waited for, who counted what.

use super::columns::TableOf;
use super::document::{Block, Headline, Section};
use super::parts;
use rigel_analyse::quantity::counted;
use rigel_analyse::{DatabaseResult, LoopFigures, ShownIn};
use rigel_model::file_name;

/// The sections; none for other reports.
pub(super) fn sections(result: &DatabaseResult) -> Vec<Section> {
    if result.loops.is_empty() {
        return Vec::new();
    }
    let mut sections = vec![operations(&result.loops), per_second(&result.loops)];
    if let [one] = &result.loops[..] {
        sections.extend(waits(one));
        sections.extend(witnesses(one));
    }
    sections
}

/// Headlines of the spool with the most blocks per second.
pub(super) fn headlines(result: &DatabaseResult) -> Vec<Headline> {
    let all = result.loops.iter().enumerate();
    let Some((at, best)) =
        all.max_by(|one, other| one.1.blocks_per_s.total_cmp(&other.1.blocks_per_s))
    else {
        return Vec::new();
    };
    let name = |figure: &str| format!("database.loops.{at}.{figure}");
    let note = counted(u64::from(best.sessions), "session");
    let mut headlines = vec![parts::rate(
        &name("blocks_per_s"),
        "blocks visited per second",
        best.blocks_per_s.into(),
        note.clone(),
    )];
    headlines.extend(best.physical_reads_per_s.map(|reads| {
        parts::rate(
            &name("physical_reads_per_s"),
            "physical reads per second",
            reads.into(),
            "of these sessions, by their own statistics".into(),
        )
    }));
    headlines.extend(best.physical_reads_per_cpu_s.map(|reads| {
        parts::rate(
            &name("physical_reads_per_cpu_s"),
            "physical reads per CPU second",
            reads.into(),
            "of the whole server".into(),
        )
    }));
    let read = best.kinds.iter().position(|kind| kind.kind == "read");
    headlines.extend(read.and_then(|kind| {
        let p99 = best.kinds[kind].latency.p99_us?;
        Some(parts::latency(
            &name(&format!("kinds.{kind}.p99_us")),
            "p99 of a read operation",
            p99.into(),
            "within a bucket as wide as its lower bound".into(),
        ))
    }));
    headlines
}

fn operations(all: &[LoopFigures]) -> Section {
    let kinds = all
        .iter()
        .flat_map(|spool| spool.kinds.iter().map(move |kind| (spool, kind)));
    let table = TableOf::of("", kinds)
        .number("sessions", |(spool, _)| spool.sessions)
        .text("operation", |(_, kind)| kind.kind.clone())
        .count("done", |(_, kind)| kind.done as f64)
        .number("rows each", |(_, kind)| {
            parts::known(kind.rows_each, |rows| format!("{rows:.2}"))
        })
        .count("per second", |(_, kind)| kind.per_s)
        .times(ShownIn::Pages, |(_, kind), figure| kind.latency.get(figure))
        .number("failed", |(_, kind)| kind.failed)
        .block();
    parts::section(
        "operations",
        "What the sessions did",
        "As the loop in the server counted and timed it. Mean and maximum are exact; percentiles are \
         interpolated within buckets of powers of two.",
        vec![table],
    )
}

fn per_second(all: &[LoopFigures]) -> Section {
    let table = TableOf::of("", all)
        .text("spool", |spool| file_name(&spool.file).to_string())
        .number("sessions", |spool| spool.sessions)
        .number("seconds", |spool| format!("{:.1}", spool.seconds))
        .count("blocks/s", |spool| spool.blocks_per_s)
        .count("physical reads/s", |spool| spool.physical_reads_per_s)
        .number("CPU s per s", |spool| {
            parts::known(spool.cpu_s_per_s, parts::count)
        })
        .count("reads per CPU s", |spool| spool.physical_reads_per_cpu_s)
        .count("redo bytes per update", |spool| spool.redo_bytes_per_update)
        .block();
    parts::section(
        "sessions",
        "Per second",
        "Blocks and reads are of the sessions; CPU is of the whole server.",
        vec![table],
    )
}

fn waits(spool: &LoopFigures) -> Option<Section> {
    const SHARE_MIN: f64 = 0.001;
    let table = TableOf::of("", spool.waits.iter().filter(|one| one.share >= SHARE_MIN))
        .text("event", |one| one.event.clone())
        .count("waits", |one| one.waits)
        .time("mean", |one| one.mean_us)
        .percent("share of their time", |one| one.share)
        .table();
    (!table.rows.is_empty()).then(|| {
        parts::section(
            "session-waits",
            "What the sessions waited for",
            "By each session's own v$session_event.",
            vec![Block::Table(table)],
        )
    })
}

fn witnesses(spool: &LoopFigures) -> Option<Section> {
    let table = TableOf::of("", &spool.witnesses)
        .text("what", |one| one.what.clone())
        .text("counted by", |one| one.first.0.clone())
        .count("count", |one| one.first.1)
        .text("and by", |one| one.second.0.clone())
        .count("count", |one| one.second.1)
        .number("ratio", |one| format!("{:.4}", one.ratio()))
        .table();
    (!table.rows.is_empty()).then(|| {
        parts::section(
            "witnesses",
            "Who counted what",
            "Two independent counts of the same thing.",
            vec![Block::Table(table)],
        )
    })
}
