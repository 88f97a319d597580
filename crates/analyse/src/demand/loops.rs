//! What the sessions of a spool did: operations and their latencies as the loop counted them, and
//! whether the server counted the same.

use super::distribution::quantile_us;
use super::evidence::time_model;
use super::rates::{rate, seconds};
use crate::figures::latency::{LatencyFigure, LatencySummary, Statistic};
use rigel_model::record::database::{DatabaseReport, ReportKind};
use rigel_model::record::imported::{Flow, LoadPoint, ReportedLatency, ReportedLoad};
use rigel_model::record::loop_record::{LoopOperations, LoopRecord, LoopSession};
use rigel_model::{Finding, FindingName, LatencyShare, file_name};
use serde::Serialize;

/// Relative difference up to which two counts of one thing agree.
const AGREE: f64 = 0.01;

/// Counts below which two counts of one thing are not compared: each session also reads the
/// catalogue.
const COUNTS_MIN: f64 = 1000.0;

/// Events of a session that reads one block.
const ONE_BLOCK: [&str; 2] = ["db file sequential read", "cell single block physical read"];

/// Operations of one kind, of all sessions together.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoopKind {
    /// `read`, `update` or `scan`.
    pub kind: String,
    /// Complete and timed.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Rows of a complete one.
    pub rows_each: Option<f64>,
    /// Operations per second.
    pub per_s: f64,
    /// Latencies: mean and extremes are exact, quantiles interpolated within a bucket that is as wide
    /// as its lower bound.
    #[serde(flatten)]
    pub latency: LatencySummary<Option<f64>>,
    /// Its distribution.
    pub latencies: Vec<LatencyShare>,
}

/// Waits of the sessions for one event.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoopWait {
    /// The event, or `CPU and others`.
    pub event: String,
    /// Number of waits; `None` for what is no wait.
    pub waits: Option<f64>,
    /// Their mean.
    pub mean_us: Option<f64>,
    /// Their share of the sessions' measured time.
    pub share: f64,
}

/// Two independent counts of one thing.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoopWitness {
    /// What was counted.
    pub what: String,
    /// Who counted, and how many.
    pub first: (String, f64),
    /// The other one.
    pub second: (String, f64),
}

impl LoopWitness {
    /// The second count over the first.
    pub fn ratio(&self) -> f64 {
        self.second.1 / self.first.1
    }

    fn agrees(&self) -> bool {
        let most = self.first.1.max(self.second.1);
        most < COUNTS_MIN || (self.first.1 - self.second.1).abs() <= AGREE * most
    }
}

/// What the sessions of one spool did.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoopFigures {
    /// The file.
    pub file: String,
    /// Sessions that worked to their end.
    pub sessions: u32,
    /// Mean of their measured times.
    pub seconds: f64,
    /// Operations of each kind.
    pub kinds: Vec<LoopKind>,
    /// Rows found per second, each in a block of its own.
    pub blocks_per_s: f64,
    /// Blocks that the sessions' own statistics count as read from storage.
    pub physical_reads_per_s: Option<f64>,
    /// Redo of an update, by the sessions' own statistics.
    pub redo_bytes_per_update: Option<f64>,
    /// CPU seconds of the whole server per second.
    pub cpu_s_per_s: Option<f64>,
    /// Physical reads of the whole server for each second of its CPU time.
    pub physical_reads_per_cpu_s: Option<f64>,
    /// What the sessions waited for, the most time first.
    pub waits: Vec<LoopWait>,
    /// Who counted what.
    pub witnesses: Vec<LoopWitness>,
}

/// The figures of a spool; `None` for another report.
pub(super) fn figures(report: &DatabaseReport) -> Option<LoopFigures> {
    let all = report.sessions.as_ref()?;
    let measured = measured(all);
    let sessions = u32::try_from(measured.len()).unwrap_or(u32::MAX);
    let total_us: f64 = measured.iter().map(|session| session.measured_us).sum();
    let kinds: Vec<LoopKind> = ["read", "update", "scan"]
        .into_iter()
        .filter_map(|name| kind(&measured, name))
        .collect();
    let per_s = |of: &dyn Fn(&LoopSession) -> f64| -> f64 {
        measured
            .iter()
            .map(|session| of(session) / (session.measured_us / 1e6))
            .sum()
    };
    let blocks_per_s = per_s(&|session| {
        let rows = session.operations.iter().map(|one| one.rows);
        rows.sum::<u64>() as f64
    });
    let physical = "physical reads";
    let has_own = !measured.is_empty()
        && measured
            .iter()
            .all(|session| statistic(session, physical).is_some());
    let updates: u64 = kinds
        .iter()
        .filter(|kind| kind.kind == "update")
        .map(|kind| kind.done)
        .sum();
    let redo = sum_of(&measured, "redo size").filter(|_| updates > 0);
    let cpu_s = time_model(report, "DB CPU").map(|cpu| {
        cpu.value + time_model(report, "background cpu time").map_or(0.0, |time| time.value)
    });
    let cpu_s_per_s = cpu_s.zip(seconds(report)).map(|(cpu, s)| cpu / s);
    Some(LoopFigures {
        file: report.file.clone(),
        sessions,
        seconds: total_us / 1e6 / f64::from(sessions.max(1)),
        blocks_per_s,
        physical_reads_per_s: has_own
            .then(|| per_s(&|session| statistic(session, physical).unwrap_or(0.0))),
        redo_bytes_per_update: redo.map(|redo| redo / updates as f64),
        cpu_s_per_s,
        physical_reads_per_cpu_s: rate(report, physical)
            .zip(cpu_s_per_s.filter(|cpu| *cpu > 0.0))
            .map(|(reads, cpu)| reads / cpu),
        waits: waits(&measured, total_us),
        witnesses: witnesses(&measured, &kinds),
        kinds,
    })
}

/// The sessions that measured something.
fn measured(all: &LoopRecord) -> Vec<&LoopSession> {
    all.sessions
        .iter()
        .filter(|session| session.measured_us > 0.0)
        .collect()
}

fn statistic(session: &LoopSession, name: &str) -> Option<f64> {
    let statistic = session.statistics.iter().find(|one| one.0 == name)?;
    Some(statistic.1)
}

/// A statistic of all sessions; `None` if one of them does not have it.
fn sum_of(sessions: &[&LoopSession], name: &str) -> Option<f64> {
    let sum = sessions
        .iter()
        .map(|session| statistic(session, name))
        .sum::<Option<f64>>();
    sum.filter(|_| !sessions.is_empty())
}

fn kind(sessions: &[&LoopSession], name: &str) -> Option<LoopKind> {
    let of = |session: &&LoopSession| {
        let operations = session.operations.iter().find(|one| one.kind == name);
        operations.cloned()
    };
    let all: Vec<LoopOperations> = sessions.iter().filter_map(of).collect();
    if all.is_empty() {
        return None;
    }
    let sum = |of: fn(&LoopOperations) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    let done = sum(|one| one.done);
    let if_done = |value: f64| (done > 0).then_some(value);
    let timed = || all.iter().filter(|one| one.done > 0);
    let mut buckets: Vec<(f64, u64)> = Vec::new();
    for (bound, count) in all.iter().flat_map(|one| &one.buckets) {
        match buckets
            .iter_mut()
            .find(|one| one.0.total_cmp(bound).is_eq())
        {
            Some(bucket) => bucket.1 += count,
            None => buckets.push((*bound, *count)),
        }
    }
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    let least = timed().map(|one| one.min_us).fold(f64::INFINITY, f64::min);
    let greatest = timed().map(|one| one.max_us).fold(0.0, f64::max);
    let mut latencies = shares(&buckets);
    // The least and the greatest latency are exact, and narrow the first and the last bucket.
    if let Some(first) = latencies.first_mut() {
        first.low_us = first.low_us.max(least);
    }
    if let Some(last) = latencies.last_mut() {
        last.high_us = last.high_us.map(|high| high.min(greatest.max(last.low_us)));
    }
    let mean = all.iter().map(|one| one.sum_us).sum::<f64>() / done.max(1) as f64;
    let per_s = sessions.iter().map(|session| {
        let operations = session.operations.iter().find(|one| one.kind == name);
        operations.map_or(0.0, |one| one.done as f64) / (session.measured_us / 1e6)
    });
    Some(LoopKind {
        kind: name.into(),
        done,
        failed: sum(|one| one.failed),
        rows_each: if_done(sum(|one| one.rows) as f64 / done.max(1) as f64),
        per_s: per_s.sum(),
        latency: LatencySummary::from_figures(|figure| match figure.statistic() {
            Statistic::Mean => if_done(mean),
            Statistic::Deviation => None,
            Statistic::Min => if_done(least),
            Statistic::Quantile(share) => quantile_us(&latencies, share),
            Statistic::Max => if_done(greatest),
        }),
        latencies,
    })
}

/// Buckets as shares; the one below 1 us begins at 0.
fn shares(buckets: &[(f64, u64)]) -> Vec<LatencyShare> {
    let all: u64 = buckets.iter().map(|one| one.1).sum();
    buckets
        .iter()
        .map(|(bound, count)| LatencyShare {
            label: format!("<{bound}us"),
            low_us: if *bound <= 1.0 { 0.0 } else { bound / 2.0 },
            high_us: Some(*bound),
            share: *count as f64 / all.max(1) as f64,
        })
        .collect()
}

/// The waits of the sessions, and what is left of their time.
fn waits(sessions: &[&LoopSession], total_us: f64) -> Vec<LoopWait> {
    let mut sums: Vec<(String, f64, f64)> = Vec::new();
    for (event, waits, us) in sessions.iter().flat_map(|session| &session.waits) {
        match sums.iter_mut().find(|one| one.0 == *event) {
            Some(known) => {
                known.1 += waits;
                known.2 += us;
            }
            None => sums.push((event.clone(), *waits, *us)),
        }
    }
    if sums.is_empty() || total_us <= 0.0 {
        return Vec::new();
    }
    let waited_us: f64 = sums.iter().map(|one| one.2).sum();
    let paused_us: f64 = sessions.iter().map(|session| session.paused_us).sum();
    let mut waits: Vec<LoopWait> = sums
        .into_iter()
        .map(|(event, waits, us)| LoopWait {
            event,
            waits: Some(waits),
            mean_us: (waits > 0.0).then(|| us / waits),
            share: us / total_us,
        })
        .collect();
    waits.push(LoopWait {
        event: "CPU and what is no wait".into(),
        waits: None,
        mean_us: None,
        share: ((total_us - waited_us - paused_us) / total_us).max(0.0),
    });
    waits.sort_by(|one, other| other.share.total_cmp(&one.share));
    waits
}

fn witnesses(sessions: &[&LoopSession], kinds: &[LoopKind]) -> Vec<LoopWitness> {
    let rows = |name: &str| {
        let of = |one: &LoopOperations| (one.kind == name).then_some(one.rows);
        let all = sessions.iter().flat_map(|session| &session.operations);
        all.filter_map(of).sum::<u64>() as f64
    };
    let done = |name: &str| {
        let kind = kinds.iter().find(|kind| kind.kind == name);
        kind.map_or(0.0, |kind| kind.done as f64)
    };
    let loop_counts = "the loop".to_string();
    let mut witnesses = Vec::new();
    let mut add = |what: &str, ours: f64, name: &str| {
        if let Some(theirs) = sum_of(sessions, name).filter(|_| ours > 0.0) {
            witnesses.push(LoopWitness {
                what: what.into(),
                first: (loop_counts.clone(), ours),
                second: (format!("'{name}' of the sessions"), theirs),
            });
        }
    };
    add(
        "rows read by the index",
        rows("read"),
        "table fetch by rowid",
    );
    add("rows read by scans", rows("scan"), "table scan rows gotten");
    add("updates committed", done("update"), "user commits");
    add("commits waited for", done("update"), "redo synch writes");
    let single: f64 = sessions
        .iter()
        .flat_map(|session| &session.waits)
        .filter(|one| ONE_BLOCK.contains(&one.0.as_str()))
        .map(|one| one.1)
        .sum();
    let cached = sum_of(sessions, "physical reads cache");
    if let Some(cached) = cached.filter(|cached| *cached > 0.0 || single > 0.0) {
        witnesses.push(LoopWitness {
            what: "blocks read into the cache, one by one".into(),
            first: ("'physical reads cache' of the sessions".into(), cached),
            second: ("waits for single blocks".into(), single),
        });
    }
    witnesses
}

/// Findings about the sessions of a spool.
pub(super) fn findings(report: &DatabaseReport, figures: &LoopFigures) -> Vec<Finding> {
    let Some(all) = &report.sessions else {
        return Vec::new();
    };
    let file = file_name(&report.file);
    let mut findings = troubles(all, file);
    findings.extend(of_sessions(all, file));
    for witness in figures.witnesses.iter().filter(|witness| !witness.agrees()) {
        findings.push(Finding::warning(
            FindingName::Witnesses,
            format!(
                "{file}: {}: {} counts {:.0}, and {} {:.0}",
                witness.what, witness.first.0, witness.first.1, witness.second.0, witness.second.1
            ),
            "read the plan of 5_proof.sql, and the waits: reads may be batched, or rows in several \
             blocks",
        ));
    }
    let measured = measured(all);
    for (name, means) in [
        (
            "Batched IO vector read count",
            "reads are of several blocks at once",
        ),
        (
            "table fetch continued row",
            "rows lie in more than one block",
        ),
    ] {
        let counted = sum_of(&measured, name).filter(|count| *count > 0.0);
        findings.extend(counted.map(|count| {
            Finding::warning(
                FindingName::Witnesses,
                format!("{file}: '{name}' is {count:.0} and not 0: {means}"),
                "read the plan of 5_proof.sql; load the tables again if rows have moved",
            )
        }));
    }
    findings.extend(others(report, figures, file));
    findings.extend(little(all, figures, file));
    findings
}

/// What went wrong while the files ran.
fn troubles(all: &LoopRecord, file: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(first) = all.errors.first() {
        findings.push(Finding::warning(
            FindingName::SpoolErrors,
            format!(
                "{file}: {} lines have errors, the first: {first}",
                all.error_lines
            ),
            "remove the cause and run it again",
        ));
    }
    let ended = u32::try_from(all.sessions.len()).unwrap_or(u32::MAX);
    if ended < all.started {
        findings.push(Finding::warning(
            FindingName::Incomplete,
            format!("{file}: {ended} of {} sessions printed their end", all.started),
            "run it again; figures are of the sessions that ended, and the others worked beside them",
        ));
    }
    let failures: Vec<String> = summed(all)
        .into_iter()
        .map(|(cause, count)| match cause.as_str() {
            "rows" => format!("{count} found a wrong number of rows"),
            code => format!("{count} by {}", ora(code.parse().unwrap_or(0))),
        })
        .collect();
    if !failures.is_empty() {
        findings.push(Finding::warning(
            FindingName::Failures,
            format!("{file}: operations failed: {}", failures.join(", ")),
            "remove the cause and run it again: failed operations have no latency",
        ));
    }
    if !all.missing.is_empty() {
        let views: Vec<String> = all
            .missing
            .iter()
            .map(|(view, code)| format!("{view} ({})", ora(*code)))
            .collect();
        findings.push(Finding::note(
            FindingName::Imported,
            format!(
                "{file}: figures of these views are unknown, because the user may not read them: {}",
                views.join(", ")
            ),
        ));
    }
    findings
}

/// `ORA-00942`, of a code as PL/SQL has it, -942.
fn ora(code: i64) -> String {
    format!("ORA-{:05}", code.unsigned_abs())
}

fn summed(all: &LoopRecord) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (cause, count) in all.sessions.iter().flat_map(|session| &session.failures) {
        match sums.iter_mut().find(|one| one.0 == *cause) {
            Some(known) => known.1 += count,
            None => sums.push((cause.clone(), *count)),
        }
    }
    sums
}

/// Sessions that began late, ended early, or saw the clock go back.
fn of_sessions(all: &LoopRecord, file: &str) -> Vec<Finding> {
    /// A session sleeps until the start in steps of a hundredth of a second, and so is a little late.
    const LATE_US: f64 = 100_000.0;
    let number = |name: &str| {
        let setting = all.settings.iter().find(|one| one.0 == name);
        setting.and_then(|one| one.1.parse::<f64>().ok())
    };
    let warm_up_us = number("warm_up_s").unwrap_or(0.0) * 1e6;
    let with = |wanted: &dyn Fn(&LoopSession) -> bool| {
        all.sessions
            .iter()
            .filter(|session| wanted(session))
            .count()
    };
    let mut findings = Vec::new();
    let mut warn = |count: usize, what: &str, hint: &str| {
        if count > 0 {
            findings.push(Finding::warning(
                FindingName::Incomplete,
                format!("{file}: {count} of {} sessions {what}", all.sessions.len()),
                hint,
            ));
        }
    };
    warn(
        with(&|session| session.late_us > warm_up_us + LATE_US),
        "began when others were measured already",
        "give more time to connect: a longer --warm-up, or fewer sessions",
    );
    warn(
        with(&|session| session.ended == "failures"),
        "ended early, after 100 failures",
        "remove the cause and run it again",
    );
    warn(
        with(&|session| session.ended == "max-redo"),
        "ended early, because they had updated as many rows as --max-redo allows",
        "raise --max-redo, or give a shorter --run-time",
    );
    warn(
        with(&|session| session.ended == "archiving"),
        "ended early, because the database waited for logs that could not be archived",
        "make room for archived logs (V$RECOVERY_FILE_DEST), and update less: --max-redo",
    );
    warn(
        with(&|session| session.clock_back > 0),
        "saw the server's clock go back: latencies of those operations count as 0",
        "run it again when the clock is steady",
    );
    findings
}

/// Reads of the server that are not of the sessions.
fn others(report: &DatabaseReport, figures: &LoopFigures, file: &str) -> Option<Finding> {
    const MUCH: f64 = 1.1;
    let own = figures.physical_reads_per_s.filter(|own| *own > 0.0)?;
    let all = rate(report, "physical reads")?;
    (all > own * MUCH).then(|| {
        Finding::warning(
            FindingName::OtherLoad,
            format!(
                "{file}: the server read {all:.0} blocks per second, and these sessions {own:.0}: \
                 others use it"
            ),
            "run it when nobody else uses the database",
        )
    })
}

/// Rate times latency is the number of sessions, without their pauses.
fn little(all: &LoopRecord, figures: &LoopFigures, file: &str) -> Option<Finding> {
    const TOLERANCE: f64 = 0.05;
    let measured = measured(all);
    let paused: f64 = measured
        .iter()
        .map(|session| session.paused_us / session.measured_us)
        .sum();
    let failed = figures.kinds.iter().any(|kind| kind.failed > 0);
    let busy: f64 = figures
        .kinds
        .iter()
        .filter_map(|kind| Some(kind.per_s * kind.latency.mean_us? / 1e6))
        .sum();
    let wanted = f64::from(figures.sessions) - paused;
    (!failed && (busy - wanted).abs() > TOLERANCE * wanted).then(|| {
        Finding::warning(
            FindingName::LittlesLaw,
            format!(
                "{file}: {wanted:.2} operations should be outstanding, but by Little's law {busy:.2} \
                 were on average: operations or time are missing"
            ),
            "look for a clock that is not steady, and for sessions that were stopped",
        )
    })
}

/// The operations of a spool as a load; `None` for another report.
pub(super) fn load_point(report: &DatabaseReport) -> Option<LoadPoint> {
    if report.kind != ReportKind::Spool {
        return None;
    }
    let figures = figures(report)?;
    let number = |name: &str| {
        let settings = &report.sessions.as_ref()?.settings;
        let setting = settings.iter().find(|one| one.0 == name)?;
        setting.1.parse::<f64>().ok()
    };
    let block = report.identity.block_bytes.unwrap_or(8192);
    let kinds = figures.kinds.iter().filter(|kind| kind.kind != "scan");
    let flow = |kind: &LoopKind| {
        let bytes = kind.rows_each.map(|rows| rows * f64::from(block));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float casts saturate"
        )]
        let io_bytes = bytes.map(|bytes| bytes.round() as u32);
        let ns = |us: Option<f64>| us.map(|us| us * 1e3);
        let quantile = |figure: &LatencyFigure| match figure.statistic() {
            Statistic::Quantile(share) => Some((share, ns(kind.latency.get(*figure))?)),
            _ => None,
        };
        Flow {
            class: "small".into(),
            kind: if kind.kind == "update" {
                "write"
            } else {
                "read"
            }
            .into(),
            io_bytes,
            done: Some(kind.done),
            iops: Some(kind.per_s),
            bytes_per_s: bytes.map(|bytes| bytes * kind.per_s),
            latencies: vec![ReportedLatency {
                of: "total".into(),
                count: Some(kind.done),
                mean: ns(kind.latency.mean_us),
                min: ns(kind.latency.min_us),
                max: ns(kind.latency.max_us),
                quantiles: LatencyFigure::ALL.iter().filter_map(quantile).collect(),
                ..ReportedLatency::default()
            }],
        }
    };
    Some(LoadPoint {
        label: match figures.sessions {
            1 => "1 session".into(),
            sessions => format!("{sessions} sessions"),
        },
        load: ReportedLoad::Closed {
            depth: figures.sessions,
        },
        processes: None,
        pattern: Some("uniform".into()),
        writes_percent: number("update_share").map(|share| share * 100.0),
        beside: Vec::new(),
        began: report.window.begin,
        seconds: Some(figures.seconds),
        flows: kinds.map(flow).collect(),
        ..LoadPoint::default()
    })
}
