//! Sections about the sessions of spools: what they did, what they waited for, who counted what.

use super::document::{Block, Headline, Section};
use super::parts;
use rigel_analyse::{DatabaseResult, Estimate, LoopFigures, LoopKind};

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
    let plain = |value| Estimate {
        value,
        interval: None,
    };
    let name = |figure: &str| format!("database.loops.{at}.{figure}");
    let note = match best.sessions {
        1 => "1 session".to_string(),
        sessions => format!("{sessions} sessions"),
    };
    let mut found = vec![parts::rate(
        &name("blocks_per_s"),
        "blocks visited per second",
        plain(best.blocks_per_s),
        note.clone(),
    )];
    found.extend(best.physical_reads_per_s.map(|reads| {
        parts::rate(
            &name("physical_reads_per_s"),
            "physical reads per second",
            plain(reads),
            "of these sessions, by their own statistics".into(),
        )
    }));
    found.extend(best.physical_reads_per_cpu_s.map(|reads| {
        parts::rate(
            &name("physical_reads_per_cpu_s"),
            "physical reads per CPU second",
            plain(reads),
            "of the whole server".into(),
        )
    }));
    let read = best.kinds.iter().position(|kind| kind.kind == "read");
    found.extend(read.and_then(|kind| {
        let p99 = best.kinds[kind].p99_us?;
        Some(parts::latency(
            &name(&format!("kinds.{kind}.p99_us")),
            "p99 of a read operation",
            plain(p99),
            "within a bucket as wide as its lower bound".into(),
        ))
    }));
    found
}

fn operations(all: &[LoopFigures]) -> Section {
    let time = |us: Option<f64>| parts::known(us, parts::time);
    let row = |spool: &LoopFigures, kind: &LoopKind| {
        vec![
            spool.sessions.to_string(),
            kind.kind.clone(),
            parts::count(kind.done as f64),
            parts::known(kind.rows_each, |rows| format!("{rows:.2}")),
            parts::count(kind.per_s),
            time(kind.mean_us),
            time(kind.p50_us),
            time(kind.p99_us),
            time(kind.p999_us),
            time(kind.max_us),
            kind.failed.to_string(),
        ]
    };
    let columns = [
        "#sessions",
        "operation",
        "#done",
        "#rows each",
        "#per second",
        "#mean",
        "#p50",
        "#p99",
        "*#p99.9",
        "#max",
        "#failed",
    ];
    let rows = all
        .iter()
        .flat_map(|spool| spool.kinds.iter().map(move |kind| row(spool, kind)))
        .collect();
    parts::section(
        "operations",
        "What the sessions did",
        "As the loop in the server counted and timed it. Mean and maximum are exact; percentiles are \
         interpolated within buckets of powers of two.",
        vec![Block::Table(parts::rows("", &columns, rows))],
    )
}

fn per_second(all: &[LoopFigures]) -> Section {
    let row = |spool: &LoopFigures| {
        let known = |figure: Option<f64>| parts::known(figure, parts::count);
        vec![
            spool.file.rsplit('/').next().unwrap_or_default().into(),
            spool.sessions.to_string(),
            format!("{:.1}", spool.seconds),
            parts::count(spool.blocks_per_s),
            known(spool.physical_reads_per_s),
            parts::known(spool.cpu_s_per_s, parts::three_digits),
            known(spool.physical_reads_per_cpu_s),
            known(spool.redo_bytes_per_update),
        ]
    };
    let columns = [
        "spool",
        "#sessions",
        "#seconds",
        "#blocks/s",
        "#physical reads/s",
        "#CPU s per s",
        "#reads per CPU s",
        "#redo bytes per update",
    ];
    parts::section(
        "sessions",
        "Per second",
        "Blocks and reads are of the sessions; CPU is of the whole server.",
        vec![Block::Table(parts::rows(
            "",
            &columns,
            all.iter().map(row).collect(),
        ))],
    )
}

fn waits(spool: &LoopFigures) -> Option<Section> {
    const SHARE_MIN: f64 = 0.001;
    let rows: Vec<Vec<String>> = spool
        .waits
        .iter()
        .filter(|one| one.share >= SHARE_MIN)
        .map(|one| {
            vec![
                one.event.clone(),
                parts::known(one.waits, parts::count),
                parts::known(one.mean_us, parts::time),
                parts::percent(one.share),
            ]
        })
        .collect();
    let columns = ["event", "#waits", "#mean", "#share of their time"];
    (!rows.is_empty()).then(|| {
        parts::section(
            "session-waits",
            "What the sessions waited for",
            "By each session's own v$session_event.",
            vec![Block::Table(parts::rows("", &columns, rows))],
        )
    })
}

fn witnesses(spool: &LoopFigures) -> Option<Section> {
    let rows: Vec<Vec<String>> = spool
        .witnesses
        .iter()
        .map(|one| {
            vec![
                one.what.clone(),
                one.first.0.clone(),
                parts::count(one.first.1),
                one.second.0.clone(),
                parts::count(one.second.1),
                format!("{:.4}", one.ratio()),
            ]
        })
        .collect();
    let columns = ["what", "counted by", "#count", "and by", "#count", "#ratio"];
    (!rows.is_empty()).then(|| {
        parts::section(
            "witnesses",
            "Who counted what",
            "Two independent counts of the same thing.",
            vec![Block::Table(parts::rows("", &columns, rows))],
        )
    })
}
