//! What a reader has to know of a report before the figures are used: not contradictions, but
//! circumstances.

use super::distribution::distribution;
use super::evidence::{SINGLE_BLOCK, is_exadata, total, waited};
use super::rates::{WAITS_MIN, rate};
use super::streams;
use crate::figures::quantity::{per_second, rounded_length};
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::ReportKind;
use rigel_model::{DemandInterval, DemandKind, Finding, FindingName, LatencyShare};

/// Below this mean, reads came from memory.
const MEMORY_US: f64 = 50.0;

/// Notes about one report, whose demand is `interval`.
pub(super) fn notes(report: &DatabaseReport, interval: &DemandInterval) -> Vec<Finding> {
    let mut found = Vec::new();
    let file = report.file.rsplit('/').next().unwrap_or_default();
    if report.kind == ReportKind::Capture {
        return found;
    }
    found.extend(idle(report, file));
    found.extend(exadata(report, file));
    found.extend(page_cache(report, file));
    if !interval.censored.is_empty() {
        found.push(Finding::note(
            FindingName::DemandCensored,
            format!(
                "{file}: {}: the database may have asked for more than it got, so read the demand \
                 as \"at least this\"",
                interval.censored
            ),
        ));
    }
    found.extend(incomplete(report, interval, file));
    found.extend(log_members(report, file));
    if report.kind == ReportKind::AwrPdb {
        found.push(Finding::note(
            FindingName::OneContainer,
            format!(
                "{file}: the report is of one container: it has no log writes and no I/O by \
                 function"
            ),
        ));
    }
    if let Some(seconds) = interval.seconds {
        let length = rounded_length(seconds);
        found.push(Finding::note(
            FindingName::BurstsUnknown,
            format!("{file}: its figures are averages of {length}; bursts within are unknown"),
        ));
    }
    found
}

/// Requests of the database that are in none of the streams.
fn incomplete(report: &DatabaseReport, interval: &DemandInterval, file: &str) -> Option<Finding> {
    /// A smaller part is within what two counters may differ by.
    const SHARE_MIN: f64 = 0.05;
    const PER_S_MIN: f64 = 1.0;
    let missing = |statistic: &str, is_of: fn(DemandKind) -> bool, what: &str| {
        let all = rate(report, statistic)?;
        let streams = interval.streams.iter().filter(|one| is_of(one.kind));
        let counted: f64 = streams.filter_map(|one| one.per_s).sum();
        (all - counted > (all * SHARE_MIN).max(PER_S_MIN)).then(|| {
            format!(
                "{} of {} {what}",
                per_second(all - counted),
                per_second(all)
            )
        })
    };
    let parts: Vec<String> = [
        missing("physical read IO requests", DemandKind::is_read, "reads"),
        missing(
            "physical write IO requests",
            |kind| !kind.is_read() && kind != DemandKind::LogWrites,
            "writes",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| {
        Finding::warning(
            FindingName::DemandIncomplete,
            format!(
                "{file}: {} of the database are in no stream of the demand: the report does not \
                 say of what kind they are",
                parts.join(" and ")
            ),
            "read the demand as \"at least this\"; a report of the whole instance has I/O by \
             function",
        )
    })
}

/// The requests to all members of a log group but one.
fn log_members(report: &DatabaseReport, file: &str) -> Option<Finding> {
    let members = streams::log_members(report).filter(|members| *members > 1.0)?;
    let writes = rate(report, "redo writes")?;
    Some(Finding::note(
        FindingName::DemandIncomplete,
        format!(
            "{file}: each write of the log goes to {members:.0} members of its group: the demand \
             has the {} of one of them, and the storage of all has {} of log writes",
            per_second(writes),
            per_second(writes * members)
        ),
    ))
}

/// True if the database asked for nearly nothing.
pub(super) fn is_idle(report: &DatabaseReport) -> bool {
    let requests = [
        rate(report, "physical read IO requests"),
        rate(report, "physical write IO requests"),
    ];
    let known: Vec<f64> = requests.into_iter().flatten().collect();
    !known.is_empty() && known.iter().sum::<f64>() < 1.0
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
    let told = match waited.mean_range_us() {
        Some((_, high)) if high < MEMORY_US => {
            format!("a single-block read takes {high:.0} us at most on average")
        }
        _ => {
            let share = memory_share(&distribution(report, SINGLE_BLOCK))?;
            format!(
                "{:.0} % of single-block reads take less than 64 us",
                share * 100.0
            )
        }
    };
    Some(Finding::warning(
        FindingName::ReadsFromMemory,
        format!(
            "{file}: {told}: they came from memory of the host or the storage \
             (filesystemio_options is {option}); the latency is not that of the storage, and the \
             rate of reads is an upper bound"
        ),
        "set filesystemio_options = setall on a file system, and take a report again",
    ))
}

/// The share of reads below 64 us, if it is more than a fifth and there is a second mode above.
fn memory_share(all: &[LatencyShare]) -> Option<f64> {
    const MEMORY_BOUND_US: f64 = 64.0;
    const SHARE_MIN: f64 = 0.2;
    let is_below = |one: &&LatencyShare| one.high_us.is_some_and(|high| high <= MEMORY_BOUND_US);
    let share: f64 = all.iter().filter(is_below).map(|one| one.share).sum();
    let above: Vec<f64> = all
        .iter()
        .filter(|one| !is_below(one))
        .map(|one| one.share)
        .collect();
    let has_second_mode = above.windows(2).any(|two| two[1] > two[0]);
    (share > SHARE_MIN && has_second_mode).then_some(share)
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
