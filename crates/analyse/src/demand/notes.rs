//! What a reader has to know of a report before the figures are used: not contradictions, but
//! circumstances.

use super::distribution::distribution;
use super::evidence::{SINGLE_BLOCK, is_exadata, total, waited};
use super::memory;
use super::rates::{REQUEST_MAX_BYTES, WAITS_MIN, log_bytes, rate, read_bytes, written_bytes};
use super::streams::LogRequests;
use crate::figures::quantity::{mb_per_second, per_second, rounded_length};
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::ReportKind;
use rigel_model::{DemandInterval, DemandKind, DemandStream, Finding, FindingName, file_name};

/// Notes about one report, whose demand is `interval`.
pub(super) fn notes(report: &DatabaseReport, interval: &DemandInterval) -> Vec<Finding> {
    let mut notes = Vec::new();
    let file = file_name(&report.file);
    if report.kind == ReportKind::Capture {
        return notes;
    }
    notes.extend(idle(report, file));
    notes.extend(exadata(report, file));
    notes.extend(page_cache(report, file));
    if !interval.censored.is_empty() {
        notes.push(Finding::note(
            FindingName::DemandCensored,
            format!(
                "{file}: {}: the database may have asked for more than it got, so read the demand \
                 as \"at least this\"",
                interval.censored
            ),
        ));
    }
    notes.extend(incomplete(report, interval, file));
    notes.extend(log_members(report, file));
    if report.kind == ReportKind::AwrPdb {
        notes.push(Finding::note(FindingName::OneContainer, {
            let no_log = interval.stream(DemandKind::LogWrites).is_none();
            let missing = match (no_log, report.functions.is_empty()) {
                (true, true) => ": it has no log writes and no I/O by function",
                (true, false) => ": it has no log writes",
                (false, true) => ": it has no I/O by function",
                (false, false) => "",
            };
            format!("{file}: the report is of one container{missing}")
        }));
    }
    if let Some(seconds) = interval.seconds {
        let length = rounded_length(seconds);
        notes.push(Finding::note(
            FindingName::BurstsUnknown,
            format!("{file}: its figures are averages of {length}; bursts within are unknown"),
        ));
    }
    notes
}

/// Requests and bytes of the database that are in none of the streams.
fn incomplete(report: &DatabaseReport, interval: &DemandInterval, file: &str) -> Vec<Finding> {
    /// A smaller part is within what two counters may differ by.
    const SHARE_MIN: f64 = 0.05;
    const PER_S_MIN: f64 = 1.0;
    const BYTES_MIN: f64 = 1_048_576.0;
    let missing = |all: f64, counted: f64, least: f64| {
        (all - counted > (all * SHARE_MIN).max(least)).then_some(all - counted)
    };
    let mut parts: Vec<String> = Vec::new();
    for (statistic, bytes, what, is_of) in SIDES {
        let (requests, bytes) = (rate(report, statistic), bytes(report));
        let streams = || interval.streams.iter().filter(|one| is_of(one.kind));
        let counted: f64 = streams().filter_map(|one| one.per_s).sum();
        let not_counted = requests.and_then(|all| missing(all, counted, PER_S_MIN).zip(Some(all)));
        if let Some((missing, all)) = not_counted {
            parts.push(format!(
                "{} of {} {what}",
                per_second(missing),
                per_second(all)
            ));
        }
        // A stream without a size has at most its rate of the largest requests.
        let bytes_of =
            |one: &DemandStream| Some(one.per_s? * one.mean_bytes.unwrap_or(REQUEST_MAX_BYTES));
        let counted: f64 = streams().filter_map(bytes_of).sum();
        let not_counted = bytes
            .filter(|_| not_counted.is_none())
            .and_then(|all| missing(all, counted, BYTES_MIN).zip(Some(all)));
        if let Some((missing, all)) = not_counted {
            parts.push(format!(
                "{} of {} of {what}",
                mb_per_second(missing / 1e6),
                mb_per_second(all / 1e6)
            ));
        }
    }
    parts.extend(log_without_writes(report, interval));
    if parts.is_empty() {
        return Vec::new();
    }
    let parts = parts.join(" and ");
    vec![if report.functions.is_empty() {
        Finding::warning(
            FindingName::DemandIncomplete,
            format!(
                "{file}: {parts} of the database are in no stream of the demand: the report does \
                 not say of what kind they are"
            ),
            "read the demand as \"at least this\"; a report of the whole instance has I/O by \
             function",
        )
    } else {
        Finding::warning(
            FindingName::DemandIncomplete,
            format!(
                "{file}: {parts} of the database are in no stream of the demand: the report's I/O \
                 by function has fewer than its statistics, or counts them for functions that are \
                 left out"
            ),
            "read the demand as \"at least this\"",
        )
    }]
}

/// The log's bytes, if the demand has no writes of it.
fn log_without_writes(report: &DatabaseReport, interval: &DemandInterval) -> Option<String> {
    let mut logs = interval.streams.iter();
    let has_writes = logs.any(|one| one.kind == DemandKind::LogWrites && one.per_s.is_some());
    let bytes =
        log_bytes(report).filter(|bytes| *bytes > 0.0 && !has_writes && !is_idle(report))?;
    Some(format!("{} of the log", mb_per_second(bytes / 1e6)))
}

/// The statistic of requests, the bytes, what they are of, and the streams that should hold them.
type RequestsOfSide = (
    &'static str,
    fn(&DatabaseReport) -> Option<f64>,
    &'static str,
    fn(DemandKind) -> bool,
);

/// Reads, and writes without those of the log.
const SIDES: [RequestsOfSide; 2] = [
    (
        "physical read IO requests",
        read_bytes,
        "reads",
        DemandKind::is_read,
    ),
    (
        "physical write IO requests",
        written_bytes,
        "writes",
        |kind| !kind.is_read() && kind != DemandKind::LogWrites,
    ),
];

/// The requests to log files that are no write of the log of their own.
fn log_members(report: &DatabaseReport, file: &str) -> Option<Finding> {
    /// A smaller part is within what two counters may differ by.
    const SHARE_MIN: f64 = 0.05;
    let requests = LogRequests::of(report)?;
    let (all, writes) = (requests.requests_per_s, requests.writes_per_s);
    let others = all - writes;
    if others <= SHARE_MIN * all {
        return None;
    }
    let why = match requests.members() {
        // One member, and requests for other reasons.
        Some(members) if members < 2.0 => "they are not writes of the log".into(),
        Some(members) => format!("each write of the log goes to {members:.0} members of its group"),
        None => "a log group has 2 or more members, or its writes are split".into(),
    };
    Some(Finding::note(
        FindingName::DemandIncomplete,
        format!(
            "{file}: {} of {} writes to log files are in no stream of the demand, which has the \
             {} of one member: {why}",
            per_second(others),
            per_second(all),
            per_second(writes)
        ),
    ))
}

/// True if the database asked for nearly nothing.
pub(super) fn is_idle(report: &DatabaseReport) -> bool {
    let requests = [
        rate(report, "physical read IO requests"),
        rate(report, "physical write IO requests"),
    ];
    let rates: Vec<f64> = requests.into_iter().flatten().collect();
    !rates.is_empty() && rates.iter().sum::<f64>() < 1.0
}

fn idle(report: &DatabaseReport, file: &str) -> Option<Finding> {
    let sum = rate(report, "physical read IO requests")?
        + rate(report, "physical write IO requests").unwrap_or(0.0);
    is_idle(report).then(|| {
        Finding::warning(
            FindingName::DatabaseIdle,
            format!("{file}: no demand to speak of: {sum:.2} requests of the database per second"),
            "take a report of a busy hour",
        )
    })
}

fn exadata(report: &DatabaseReport, file: &str) -> Option<Finding> {
    if !is_exadata(report) {
        return None;
    }
    let optimized = total(report, "physical read requests optimized")
        .zip(total(report, "physical read total IO requests"))
        .filter(|(_, all)| *all > 0.0)
        .map_or_else(String::new, |(optimized, all)| {
            format!(", {:.1} % of all reads", optimized / all * 100.0)
        });
    let saved: f64 = [
        "cell physical IO bytes saved by storage index",
        "cell physical IO bytes saved by columnar cache",
    ]
    .iter()
    .filter_map(|name| rate(report, name))
    .sum::<f64>()
        / 1_048_576.0;
    let more = if saved >= 1.0 {
        format!(
            ", and other storage would have to read {saved:.0} MiB/s more, which the cells did not \
             read at all"
        )
    } else {
        String::new()
    };
    Some(Finding::note(
        FindingName::Exadata,
        format!(
            "{file}: the storage is an Exadata: latencies are of its flash or memory{optimized}; \
             smart scans read at the cells{more}"
        ),
    ))
}

/// Reads that a page cache or an array's memory answered.
fn page_cache(report: &DatabaseReport, file: &str) -> Option<Finding> {
    if is_exadata(report) {
        return None;
    }
    let waited = waited(report, SINGLE_BLOCK).filter(|waited| waited.waits >= WAITS_MIN)?;
    let option = report
        .parameters
        .iter()
        .find(|(name, _)| name == "filesystemio_options")
        .map_or("not set", |(_, value)| value.as_str());
    let mean_us = waited.mean_range_us().map(|(_, high)| high);
    let evidence = memory::evidence(mean_us, &distribution(report, SINGLE_BLOCK))?;
    Some(Finding::warning(
        FindingName::ReadsFromMemory,
        format!(
            "{file}: {evidence}: they came from memory of the host or the storage \
             (filesystemio_options is {option}); the latency is not that of the storage, and the \
             rate of reads is an upper bound"
        ),
        "set filesystemio_options = setall on a file system, and take a report again",
    ))
}

/// Notes about how long reads take, with the bar and its source.
pub(super) fn against_bars(report: &DatabaseReport, file: &str) -> Option<Finding> {
    const BAR_US: f64 = 10_000.0;
    let waited = waited(report, SINGLE_BLOCK).filter(|waited| waited.waits >= 1000.0)?;
    let mean = waited.mean_us()?;
    (mean > BAR_US).then(|| {
        Finding::warning(
            FindingName::SlowReads,
            format!(
                "{file}: a single-block read takes {:.1} ms on average, above 10 ms, the bar of \
                 ADDM's DBIO_EXPECTED, which is meant for disks",
                mean / 1e3
            ),
            "compare it with what the storage can do: rigel calibrate",
        )
    })
}
