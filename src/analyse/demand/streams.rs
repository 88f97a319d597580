//! From a report to a demand: which figure is which stream, with a fallback for each.
//!
//! docs/methods/awr.md has the table of this mapping and its reasons.

use super::captures;
use super::distribution::{counted, distribution};
use super::evidence::{
    DIRECT_READ, DIRECT_WRITE, LOG_WRITE, MULTI_BLOCK, SINGLE_BLOCK, file_type, function,
    has_possible_reads, waited, waited_in,
};
use super::rates::{MIB, WAITS_MIN, db_time_s, rate, redo_write_bytes, seconds};
use crate::model::{DemandInterval, DemandKind, DemandStream, LeftOut};
use crate::record::DatabaseReport;
use crate::record::database::{IoStatRow, Printed, ReportKind, WaitTable};

/// Below this mean number of blocks, reads past the buffer cache are random reads: LOBs.
const RANDOM_BLOCKS_MAX: f64 = 2.0;

/// Largest request that LGWR makes: a longer write of the log is several.
const LOG_REQUEST_MAX_BYTES: f64 = 1_048_576.0;

/// Share of DB time that waits for full buffers may take, and single-block reads, before the
/// database must be thought to have wanted more.
const CENSORED_SHARE: (f64, f64) = (0.01, 0.30);

/// Waits of a database that could not write as fast as it wanted to.
const BLOCKED: &[&str] = &[
    "free buffer waits",
    "write complete waits",
    "log buffer space",
    "log file switch (checkpoint incomplete)",
    "resmgr: I/O prioritization",
    "resmgr: I/O rate limit",
];

/// The three ways to count random reads, each per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RandomReadRates {
    /// Requests of `Buffer Cache Reads`, without multi-block reads.
    pub(super) requests: Option<f64>,
    /// Waits for single blocks: a lower bound, because parallel reads are calls of several.
    pub(super) waits: Option<f64>,
    /// Blocks read into the cache without read-ahead, without multi-block reads.
    pub(super) blocks: Option<f64>,
}

impl RandomReadRates {
    pub(super) fn of(report: &DatabaseReport) -> Self {
        /// 0.3 may be 0.25: then waits tell more.
        const HALF_MAX: f64 = 0.05;
        let per_s = |events: &[&str]| Some(waited(report, events)?.waits / seconds(report)?);
        let multi = per_s(MULTI_BLOCK).unwrap_or(0.0);
        let row = function(report, "Buffer Cache Reads").filter(|row| has_possible_reads(row));
        let precise = |reads: &Printed| reads.half <= HALF_MAX * reads.value;
        let by_function = details(report, "Buffer Cache Reads")
            .or_else(|| row.and_then(|row| value(row.reads_per_s.filter(precise))))
            .map(|reads| reads - multi);
        let by_blocks = rate(report, "physical reads cache")
            .zip(rate(report, "physical reads cache prefetch"))
            .map(|(cache, ahead)| cache - ahead - multi);
        let positive = |rate: Option<f64>| rate.filter(|rate| *rate >= 0.0);
        Self {
            requests: positive(by_function),
            waits: per_s(SINGLE_BLOCK),
            blocks: positive(by_blocks),
        }
    }

    /// The one that counts, and how it was derived.
    pub(super) fn best(self) -> Option<(f64, &'static str)> {
        let choices = [
            (
                self.requests,
                "requests of Buffer Cache Reads without multi-block reads",
            ),
            (
                self.waits,
                "waits for single blocks: a lower bound, parallel reads are calls of several",
            ),
            (
                self.blocks,
                "blocks read into the cache without read-ahead and multi-block reads",
            ),
        ];
        choices
            .into_iter()
            .find_map(|(rate, how)| Some((rate?, how)))
    }
}

fn value(printed: Option<Printed>) -> Option<f64> {
    printed.map(|printed| printed.value)
}

/// Statspack counts small and large requests of a function.
fn details(report: &DatabaseReport, function: &str) -> Option<f64> {
    let of = |what: &str| {
        let name = format!("{function}: {what}");
        let row = report.per_instance.iter().find(|row| row.name == name)?;
        Some(row.value.value)
    };
    let (small, large) = (of("smallreadreqs"), of("largereadreqs"));
    (small.is_some() || large.is_some())
        .then(|| small.unwrap_or(0.0) + large.unwrap_or(0.0))
        .zip(seconds(report))
        .map(|(reads, seconds)| reads / seconds)
}

/// The demand of one report.
pub(super) fn interval(report: &DatabaseReport) -> DemandInterval {
    let mut found = DemandInterval {
        label: label(report),
        begin: report.window.begin,
        seconds: seconds(report),
        streams: Vec::new(),
        left_out: left_out(report),
        censored: censored(report),
        operations: None,
    };
    if report.kind == ReportKind::Capture {
        captures::streams(report, &mut found.streams);
        return found;
    }
    if report.kind == ReportKind::Listing {
        found.streams = listed(report);
        return found;
    }
    let (direct, are_random) = direct_reads(report);
    let random = random_reads(report, are_random);
    let rate_of_random = random.as_ref().and_then(|stream| stream.per_s);
    found.streams.extend(random);
    found
        .streams
        .extend(multi_block_reads(report, rate_of_random));
    found
        .streams
        .extend(direct.filter(|_| are_random.is_none()));
    found.streams.extend(smart_scans(report));
    let direct_writes = direct_writes(report);
    found
        .streams
        .extend(page_writes(report, direct_writes.as_ref()));
    found.streams.extend(direct_writes);
    found.streams.extend(log_writes(report));
    found
}

fn label(report: &DatabaseReport) -> String {
    match (report.kind, report.window.end_id) {
        (ReportKind::Capture, Some(snap)) => format!("snapshot {snap}"),
        _ => report
            .file
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_string(),
    }
}

/// A stream with the latency of `events`.
fn stream(report: &DatabaseReport, kind: DemandKind, events: &[&str], of: &str) -> DemandStream {
    let waited = waited(report, events).filter(|waited| waited.waits >= WAITS_MIN);
    DemandStream {
        kind,
        per_s: None,
        mean_bytes: None,
        mean_us: waited.and_then(|waited| waited.mean_us()),
        mean_range_us: waited.and_then(|waited| waited.mean_range_us()),
        waits: waited.map(|waited| waited.waits),
        latencies: if waited.is_some() {
            distribution(report, events)
        } else {
            Vec::new()
        },
        rate_of: String::new(),
        latency_of: if waited.is_some() {
            of.into()
        } else {
            String::new()
        },
    }
}

/// The streams of a listing of histograms: distributions, with a rate if it is the difference of two.
fn listed(report: &DatabaseReport) -> Vec<DemandStream> {
    let kinds: [(DemandKind, &[&str]); 5] = [
        (DemandKind::RandomReads, SINGLE_BLOCK),
        (DemandKind::MultiblockReads, MULTI_BLOCK),
        (DemandKind::DirectReads, DIRECT_READ),
        (DemandKind::DirectWrites, DIRECT_WRITE),
        (DemandKind::LogWrites, LOG_WRITE),
    ];
    let of = |(kind, events): (DemandKind, &[&str])| {
        let latencies = distribution(report, events);
        let waits = counted(report, events);
        let per_s = seconds(report).map(|seconds| waits / seconds);
        let rate_of = match per_s {
            Some(_) => "waits between two listings",
            None => "unknown: the counts have no known time",
        };
        (!latencies.is_empty()).then(|| DemandStream {
            per_s,
            waits: Some(waits),
            latencies,
            rate_of: rate_of.into(),
            latency_of: "the listed histogram".into(),
            ..stream(report, kind, &[], "")
        })
    };
    kinds.into_iter().filter_map(of).collect()
}

fn block_bytes(report: &DatabaseReport) -> Option<f64> {
    report.identity.block_bytes.map(f64::from)
}

fn random_reads(report: &DatabaseReport, direct: Option<f64>) -> Option<DemandStream> {
    let (mut per_s, how) = RandomReadRates::of(report).best()?;
    let mut how = how.to_string();
    if let Some(direct) = direct {
        per_s += direct;
        how.push_str(", and direct reads of less than 2 blocks");
    }
    if let Some(others) = others(report, true) {
        per_s += others;
        how.push_str(", and Others (Data File)");
    }
    Some(DemandStream {
        per_s: Some(per_s),
        mean_bytes: block_bytes(report),
        rate_of: how,
        ..stream(
            report,
            DemandKind::RandomReads,
            SINGLE_BLOCK,
            "single-block reads",
        )
    })
}

/// Reads of `Others` from data files belong to the database: random ones if `are_random`.
fn others(report: &DatabaseReport, are_random: bool) -> Option<f64> {
    let row = function(report, "Others (Data File)").filter(|row| has_possible_reads(row))?;
    let reads = value(row.reads_per_s).filter(|reads| *reads > 0.0)?;
    let blocks = value(row.read_mib_per_s)? * MIB / reads / block_bytes(report)?;
    (are_random == (blocks < RANDOM_BLOCKS_MAX)).then_some(reads)
}

fn multi_block_reads(report: &DatabaseReport, random: Option<f64>) -> Option<DemandStream> {
    let waited = waited(report, MULTI_BLOCK)?;
    let per_s = waited.waits / seconds(report)?;
    // Without the random reads that came in through other ways.
    let through_cache = RandomReadRates::of(report)
        .best()
        .map(|(rate, _)| rate)
        .or(random);
    let blocks = rate(report, "physical reads cache")
        .zip(through_cache)
        .map(|(cache, random)| (cache - random) / per_s)
        .filter(|blocks| *blocks >= 1.0 && per_s > 0.0);
    Some(DemandStream {
        per_s: Some(per_s),
        mean_bytes: blocks
            .zip(block_bytes(report))
            .map(|(blocks, bytes)| blocks * bytes),
        rate_of: "waits for multi-block reads; size from blocks read into the cache".into(),
        ..stream(
            report,
            DemandKind::MultiblockReads,
            MULTI_BLOCK,
            "multi-block reads",
        )
    })
}

/// A stream from a row of I/O by function.
fn by_function(row: &IoStatRow, reads: bool) -> Option<(f64, Option<f64>)> {
    let (per_s, mib) = if reads {
        (row.reads_per_s, row.read_mib_per_s)
    } else {
        (row.writes_per_s, row.write_mib_per_s)
    };
    let per_s = value(per_s)?;
    let bytes = value(mib).filter(|mib| *mib > 0.0 && per_s > 0.0);
    Some((per_s, bytes.map(|mib| mib * MIB / per_s)))
}

/// Direct reads; and their rate, if they are so small that they are random reads.
fn direct_reads(report: &DatabaseReport) -> (Option<DemandStream>, Option<f64>) {
    let row = function(report, "Direct Reads").filter(|row| has_possible_reads(row));
    let derived = || {
        let rates = RandomReadRates::of(report);
        let multi = waited(report, MULTI_BLOCK)?.waits / seconds(report)?;
        let per_s = rate(report, "physical read IO requests")? - rates.waits? - multi;
        let bytes = rate(report, "physical reads direct")? * block_bytes(report)? / per_s;
        (per_s > 0.0).then_some((per_s, Some(bytes).filter(|bytes| *bytes > 0.0)))
    };
    let told = row.and_then(|row| by_function(row, true));
    let how = if told.is_some() {
        "Direct Reads of I/O by function"
    } else {
        "derived: read requests without single-block and multi-block waits"
    };
    let Some((per_s, bytes)) = told.or_else(derived) else {
        return (None, None);
    };
    let blocks = bytes
        .zip(block_bytes(report))
        .map(|(bytes, block)| bytes / block);
    let are_random = told.is_some() && blocks.is_some_and(|blocks| blocks < RANDOM_BLOCKS_MAX);
    let found = DemandStream {
        per_s: Some(per_s),
        mean_bytes: bytes,
        rate_of: how.into(),
        ..stream(
            report,
            DemandKind::DirectReads,
            DIRECT_READ,
            "direct path reads",
        )
    };
    (Some(found), are_random.then_some(per_s))
}

fn smart_scans(report: &DatabaseReport) -> Option<DemandStream> {
    let row = function(report, "Smart Scan")?;
    let (per_s, bytes) = by_function(row, true).filter(|_| has_possible_reads(row))?;
    (per_s > 0.0).then(|| DemandStream {
        per_s: Some(per_s),
        mean_bytes: bytes,
        rate_of: "Smart Scan of I/O by function: read at the cells".into(),
        ..stream(report, DemandKind::SmartScans, &[], "")
    })
}

fn page_writes(report: &DatabaseReport, direct: Option<&DemandStream>) -> Option<DemandStream> {
    // A container's report counts what its own sessions wrote, not what DBWR wrote for it.
    let row = match report.kind {
        ReportKind::AwrPdb => file_type(report, "Data File"),
        _ => function(report, "DBWR"),
    };
    let derived = || {
        let direct = direct.and_then(|stream| stream.per_s).unwrap_or(0.0);
        let writes = rate(report, "physical write IO requests")? - direct;
        let bytes = rate(report, "physical writes from cache")? * block_bytes(report)? / writes;
        (writes > 0.0).then_some((writes, Some(bytes)))
    };
    let told = row.and_then(|row| by_function(row, false));
    let how = match (told, report.kind) {
        (Some(_), ReportKind::AwrPdb) => "writes to data files",
        (Some(_), _) => "DBWR of I/O by function",
        (None, _) => "derived: write requests without direct writes; size from blocks of the cache",
    };
    let (per_s, bytes) = told.or_else(derived)?;
    // A batch of page writes is one wait: it is no latency of a write.
    Some(DemandStream {
        per_s: Some(per_s),
        mean_bytes: bytes,
        rate_of: how.into(),
        ..stream(report, DemandKind::PageWrites, &[], "")
    })
}

fn direct_writes(report: &DatabaseReport) -> Option<DemandStream> {
    let rows = ["Direct Writes", "Direct Reads"].map(|name| function(report, name));
    let parts: Vec<(f64, Option<f64>)> = rows
        .into_iter()
        .flatten()
        .filter_map(|row| by_function(row, false))
        .collect();
    let has_own = rows[0].is_some();
    let latency = stream(
        report,
        DemandKind::DirectWrites,
        DIRECT_WRITE,
        "direct path writes",
    );
    if !has_own {
        // Blocks alone: how many requests they were is unknown.
        let blocks = rate(report, "physical writes direct")?;
        return Some(DemandStream {
            rate_of: format!("requests are not reported, {blocks:.2} blocks per second"),
            ..latency
        });
    }
    let per_s: f64 = parts.iter().map(|(per_s, _)| per_s).sum();
    let bytes: f64 = parts
        .iter()
        .filter_map(|(per_s, bytes)| Some(per_s * (*bytes)?))
        .sum();
    Some(DemandStream {
        per_s: Some(per_s),
        mean_bytes: (per_s > 0.0 && bytes > 0.0).then(|| bytes / per_s),
        rate_of: "writes of Direct Writes and Direct Reads of I/O by function".into(),
        ..latency
    })
}

fn log_writes(report: &DatabaseReport) -> Option<DemandStream> {
    let per_s = rate(report, "redo writes")?;
    let bytes = redo_write_bytes(report);
    let mut found = DemandStream {
        per_s: Some(per_s),
        mean_bytes: bytes,
        rate_of: "redo writes; size from redo size and redo wastage".into(),
        ..stream(
            report,
            DemandKind::LogWrites,
            LOG_WRITE,
            "log file parallel write",
        )
    };
    if bytes.is_some_and(|bytes| bytes > LOG_REQUEST_MAX_BYTES) {
        let of_files = file_type(report, "Log File").and_then(|row| value(row.writes_per_s));
        if let Some(requests) = of_files {
            found.per_s = Some(requests / log_members(report).unwrap_or(1.0));
            found.mean_bytes = Some(LOG_REQUEST_MAX_BYTES);
            found.rate_of = "requests of 1 MiB to log files, for one member".into();
        }
    }
    Some(found)
}

/// Members of a log group: each write of the log is a request to every one. `None` if large writes,
/// which are several requests, hide it.
pub(super) fn log_members(report: &DatabaseReport) -> Option<f64> {
    const MEAN_MAX_BYTES: f64 = 262_144.0;
    const TOLERANCE: f64 = 0.05;
    let writes = rate(report, "redo writes").filter(|writes| *writes >= 1.0)?;
    let requests = file_type(report, "Log File")
        .or_else(|| function(report, "LGWR"))
        .and_then(|row| value(row.writes_per_s))?;
    let ratio = requests / writes;
    let whole = ratio.round();
    let is_clear = redo_write_bytes(report)? < MEAN_MAX_BYTES && whole >= 1.0;
    (is_clear && (ratio / whole - 1.0).abs() <= TOLERANCE).then_some(whole)
}

/// I/O that is neither the database's nor of its log: backups, archiving, control files.
fn left_out(report: &DatabaseReport) -> Option<LeftOut> {
    let mib = |name: &str| rate(report, name).map(|bytes| bytes / MIB);
    let read = mib("physical read total bytes")? - mib("physical read bytes")?;
    let log = file_type(report, "Log File")
        .or_else(|| function(report, "LGWR"))
        .and_then(|row| value(row.write_mib_per_s))
        .or_else(|| mib("redo size"))
        .unwrap_or(0.0);
    let written = mib("physical write total bytes")? - mib("physical write bytes")? - log;
    Some(LeftOut {
        read_mib_per_s: read.max(0.0),
        write_mib_per_s: written.max(0.0),
    })
}

/// Why the database may have wanted more than it got; empty if nothing speaks for it.
fn censored(report: &DatabaseReport) -> String {
    let tables = [WaitTable::Foreground, WaitTable::Both];
    let Some(all) = db_time_s(report).filter(|time| *time > 0.0) else {
        return String::new();
    };
    let share = |events: &[&str]| {
        let foreground = waited_in(report, events, &tables[..1]);
        let waited = foreground.or_else(|| waited_in(report, events, &tables[1..]));
        waited
            .and_then(|waited| waited.time_s)
            .map_or(0.0, |(low, high)| f64::midpoint(low, high) / all)
    };
    let mut why = Vec::new();
    let blocked = share(BLOCKED);
    if blocked > CENSORED_SHARE.0 {
        why.push(format!(
            "{:.1} % of DB time waited for buffers, the log or a limit",
            blocked * 100.0
        ));
    }
    let reads = share(SINGLE_BLOCK);
    if reads > CENSORED_SHARE.1 {
        why.push(format!(
            "{:.1} % of DB time waited for single-block reads",
            reads * 100.0
        ));
    }
    why.join("; ")
}
