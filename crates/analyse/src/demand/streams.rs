//! From a report to a demand: which figure is which stream, with a fallback for each.
//!
//! docs/methods/awr.md has the table of this mapping and its reasons.

use super::captures;
use super::distribution::{counted, distribution};
use super::evidence::{
    DIRECT_READ, DIRECT_WRITE, LOG_WRITE, MULTI_BLOCK, SINGLE_BLOCK, file_type, function,
    has_possible_reads, waited, waited_in,
};
use super::rates::{
    self, LOG_FILE_WRITES, MIB, REQUEST_MAX_BYTES, WAITS_MIN, db_time_s, log_bytes, possible,
    printed_rate, rate, read_bytes, redo_write_bytes, seconds, written_bytes,
};
use super::read_kind::BLOCK_ASSUMED;
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::{IoStatRow, Printed, ReportKind, WaitTable};
use rigel_model::{DemandInterval, DemandKind, DemandStream, LeftOut, file_name};

/// Below this mean number of blocks, reads past the buffer cache are random reads: LOBs.
const RANDOM_BLOCKS_MAX: f64 = 2.0;

/// Share of DB time that waits for full buffers may take, and single-block reads, before the
/// database must be thought to have wanted more.
const CENSORED_SHARE: (f64, f64) = (0.01, 0.30);

/// What other processes do to files of the database; only some reports divide it by file.
const OTHERS: [&str; 2] = ["Others (Data File)", "Others (Temp File)"];

/// Direct blocks written per second from which on they are more than a trifle.
const DIRECT_MIN: f64 = 1.0;

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
    let mut interval = DemandInterval {
        label: label(report),
        begin: report.window.begin,
        seconds: seconds(report),
        streams: Vec::new(),
        left_out: left_out(report),
        censored: censored(report),
        operations: None,
    };
    if report.kind == ReportKind::Capture {
        captures::streams(report, &mut interval.streams);
        return interval;
    }
    if report.kind == ReportKind::Listing {
        interval.streams = listed(report);
        return interval;
    }
    let (direct, are_random) = direct_reads(report);
    let random = random_reads(report, are_random);
    let rate_of_random = random.as_ref().and_then(|stream| stream.per_s);
    interval.streams.extend(random);
    interval
        .streams
        .extend(multi_block_reads(report, rate_of_random));
    interval
        .streams
        .extend(direct.filter(|_| are_random.is_none()));
    interval.streams.extend(smart_scans(report));
    let direct_writes = direct_writes(report);
    let page_writes = page_writes(report, direct_writes.as_ref());
    let has_both = page_writes
        .as_ref()
        .is_some_and(|stream| stream.kind == DemandKind::PageAndDirectWrites);
    interval.streams.extend(page_writes);
    interval.streams.extend(direct_writes.filter(|_| !has_both));
    interval.streams.extend(log_writes(report));
    interval
}

fn label(report: &DatabaseReport) -> String {
    match (report.kind, report.window.end_id) {
        (ReportKind::Capture, Some(snap)) => format!("snapshot {snap}"),
        _ => file_name(&report.file).to_string(),
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
    rates::block_bytes(report).map(f64::from)
}

/// Waits for events per second: none, where other events have waits; `None` in a report that lists
/// no waits at all.
fn waits_per_s(report: &DatabaseReport, events: &[&str]) -> Option<f64> {
    let waits = waited(report, events).map(|waited| waited.waits);
    let waits = waits.or_else(|| (!report.waits.is_empty()).then_some(0.0))?;
    Some(waits / seconds(report)?)
}

/// Requests of the database that are neither single-block nor multi-block reads of its cache, per
/// second: for a report that does not divide them by function.
#[derive(Debug, Clone, Copy)]
struct OtherReads {
    /// Reads past the cache; each of a block at least, so never more than blocks.
    direct: f64,
    /// Their mean size, if it is known.
    bytes: Option<f64>,
    /// Single blocks that a call of several read, of which a wait is one.
    parallel: f64,
    /// Mean size of these reads and the multi-block ones together, where their parts are unknown.
    mean_bytes: Option<f64>,
}

impl OtherReads {
    /// `None` if all requests are unknown, or if nothing tells of what kind they are.
    fn of(report: &DatabaseReport) -> Option<Self> {
        let rates = RandomReadRates::of(report);
        let cached = rates.best().map(|(rate, _)| rate);
        let multi = waits_per_s(report, MULTI_BLOCK).unwrap_or(0.0);
        let all = printed_rate(report, "physical read IO requests")?;
        let others = all.value - cached.unwrap_or(0.0) - multi;
        // Where the requests are printed coarsely, a small difference is none.
        let others = if others > all.half { others } else { 0.0 };
        let blocks = rate(report, "physical reads direct");
        let listed = direct_function(report).map(|(per_s, _)| per_s);
        let mean_bytes = || {
            let of_cached = match cached.filter(|cached| *cached > 0.0) {
                Some(cached) => cached * block_bytes(report)?,
                None => 0.0,
            };
            possible((read_bytes(report)? - of_cached) / (others + multi))
        };
        let known = listed.or(blocks);
        let mean_bytes = if known.is_none() { mean_bytes() } else { None };
        known.or(cached).or(mean_bytes)?;
        let block = block_bytes(report).unwrap_or(f64::from(BLOCK_ASSUMED));
        let are_single = mean_bytes.is_some_and(|bytes| bytes < RANDOM_BLOCKS_MAX * block);
        let direct = match known {
            _ if are_single => 0.0,
            Some(most) => most.min(others),
            None => others,
        };
        let size = |blocks: f64| possible(blocks * block_bytes(report)? / direct);
        let is_counted = rates.requests.is_some();
        let of_blocks = blocks.filter(|_| direct > 0.0).and_then(size);
        Some(Self {
            direct,
            bytes: of_blocks.or(mean_bytes),
            parallel: if is_counted { 0.0 } else { others - direct },
            mean_bytes: mean_bytes.filter(|_| !are_single),
        })
    }
}

/// Direct reads per second with their mean size, where a report divides its requests by function.
fn direct_function(report: &DatabaseReport) -> Option<(f64, Option<f64>)> {
    let row = function(report, "Direct Reads").filter(|row| has_possible_reads(row))?;
    by_function(row, true)
}

/// The random reads of the demand of this report.
pub(super) fn counted_random_reads(report: &DatabaseReport) -> Option<DemandStream> {
    let (_, are_random) = direct_reads(report);
    random_reads(report, are_random)
}

fn random_reads(report: &DatabaseReport, direct: Option<f64>) -> Option<DemandStream> {
    let best = RandomReadRates::of(report).best();
    let others_counted = OtherReads::of(report).filter(|others| others.parallel > 0.0);
    let (mut per_s, how) = best.or(others_counted.map(|_| (0.0, "")))?;
    let mut how = how.to_string();
    if let Some(others) = others_counted {
        per_s += others.parallel;
        "read requests without direct and multi-block reads".clone_into(&mut how);
    } else if let Some(others) = others(report, true) {
        per_s += others;
        how.push_str(", and Others from data and temp files");
    }
    if let Some(direct) = direct {
        per_s += direct;
        how.push_str(", and direct reads of less than 2 blocks");
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

/// Reads of `Others` from data and temp files belong to the database: random ones if `are_random`.
fn others(report: &DatabaseReport, are_random: bool) -> Option<f64> {
    let block = block_bytes(report)?;
    let of_file = |name: &&str| {
        let row = function(report, name).filter(|row| has_possible_reads(row))?;
        let reads = value(row.reads_per_s).filter(|reads| *reads > 0.0)?;
        let blocks = value(row.read_mib_per_s)? * MIB / reads / block;
        (are_random == (blocks < RANDOM_BLOCKS_MAX)).then_some(reads)
    };
    OTHERS
        .iter()
        .filter_map(of_file)
        .reduce(|sum, reads| sum + reads)
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
    let mean_bytes = blocks
        .zip(block_bytes(report))
        .and_then(|(blocks, bytes)| possible(blocks * bytes));
    let mean_of_others = || OtherReads::of(report)?.mean_bytes;
    let (mean_bytes, size) = match (mean_bytes, mean_of_others()) {
        (Some(bytes), _) => (Some(bytes), "size from blocks read into the cache"),
        (None, Some(bytes)) => (
            Some(bytes),
            "size as that of all reads that are not of a single block",
        ),
        (None, None) => (
            None,
            "size unknown: blocks read into the cache give no possible one",
        ),
    };
    Some(DemandStream {
        per_s: Some(per_s),
        mean_bytes,
        rate_of: format!("waits for multi-block reads; {size}"),
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
    let derived = || {
        let others = OtherReads::of(report)?;
        (others.direct > 0.0).then_some((others.direct, others.bytes))
    };
    let reported = direct_function(report);
    let how = if reported.is_some() {
        "Direct Reads of I/O by function"
    } else {
        "derived: read requests without single-block and multi-block waits"
    };
    let Some((per_s, bytes)) = reported.or_else(derived) else {
        return (None, None);
    };
    let blocks = bytes
        .zip(block_bytes(report))
        .map(|(bytes, block)| bytes / block);
    let are_random = reported.is_some() && blocks.is_some_and(|blocks| blocks < RANDOM_BLOCKS_MAX);
    let demand = DemandStream {
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
    (Some(demand), are_random.then_some(per_s))
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
    // Direct writes of which only the blocks are counted are among the requests, or none are counted.
    let is_divided = rate(report, "physical writes from cache").is_some();
    let are_direct = match rate(report, "physical writes direct") {
        Some(blocks) => blocks >= DIRECT_MIN,
        None => !is_divided,
    };
    let is_mixed = are_direct && direct.is_none_or(|stream| stream.per_s.is_none());
    let derived = || {
        let direct = direct.and_then(|stream| stream.per_s).unwrap_or(0.0);
        let writes = rate(report, "physical write IO requests")? - direct;
        let bytes = if is_mixed {
            written_bytes(report)
        } else {
            rate(report, "physical writes from cache")
                .zip(block_bytes(report))
                .map(|(blocks, block)| blocks * block)
        };
        let bytes = bytes.and_then(|bytes| possible(bytes / writes));
        (writes > 0.0).then_some((writes, bytes))
    };
    let reported = row.and_then(|row| by_function(row, false));
    let (per_s, bytes) = reported.or_else(derived)?;
    let is_mixed = is_mixed && reported.is_none();
    let how = match (reported, report.kind, bytes) {
        _ if is_mixed => "all write requests: how many of them are direct writes is not reported",
        (Some(_), ReportKind::AwrPdb, _) => "writes to data files",
        (Some(_), ..) => "DBWR of I/O by function",
        (None, _, Some(_)) => {
            "derived: write requests without direct writes; size from blocks of the cache"
        }
        (None, _, None) => "derived: write requests without direct writes",
    };
    // A batch of page writes is one wait: it is no latency of a write.
    Some(DemandStream {
        per_s: Some(per_s),
        mean_bytes: bytes,
        rate_of: how.into(),
        ..stream(
            report,
            if is_mixed {
                DemandKind::PageAndDirectWrites
            } else {
                DemandKind::PageWrites
            },
            &[],
            "",
        )
    })
}

fn direct_writes(report: &DatabaseReport) -> Option<DemandStream> {
    let rows = ["Direct Writes", "Direct Reads"].map(|name| function(report, name));
    let others = OTHERS.map(|name| function(report, name));
    let parts: Vec<(f64, Option<f64>)> = rows
        .into_iter()
        .chain(others)
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
        rate_of: if others
            .iter()
            .flatten()
            .any(|row| by_function(row, false).is_some_and(|(n, _)| n > 0.0))
        {
            "writes of Direct Writes, Direct Reads and Others of I/O by function".into()
        } else {
            "writes of Direct Writes and Direct Reads of I/O by function".into()
        },
        ..latency
    })
}

fn log_writes(report: &DatabaseReport) -> Option<DemandStream> {
    let latency = stream(
        report,
        DemandKind::LogWrites,
        LOG_WRITE,
        "log file parallel write",
    );
    let Some(per_s) = rate(report, "redo writes") else {
        return log_writes_of_page(report, latency);
    };
    let bytes = redo_write_bytes(report);
    let mut demand = DemandStream {
        per_s: Some(per_s),
        mean_bytes: bytes,
        rate_of: "redo writes; size from redo size and redo wastage".into(),
        ..latency
    };
    let requests = LogRequests::of(report);
    if let Some(members) = requests
        .and_then(LogRequests::members)
        .filter(|members| *members > 1.0)
    {
        demand.rate_of = format!(
            "redo writes, for one of {members:.0} members; size from redo size and redo wastage"
        );
    }
    if bytes.is_some_and(|bytes| bytes > REQUEST_MAX_BYTES) {
        let of_files = file_type(report, "Log File").and_then(|row| value(row.writes_per_s));
        if let Some(of_files) = of_files {
            let members = requests.and_then(LogRequests::members);
            demand.per_s = Some(of_files / members.unwrap_or(1.0));
            demand.mean_bytes = Some(REQUEST_MAX_BYTES);
            demand.rate_of = "requests of 1 MiB to log files, for one member".into();
        }
    }
    Some(demand)
}

/// The writes of the log by what a first page has of them.
fn log_writes_of_page(report: &DatabaseReport, latency: DemandStream) -> Option<DemandStream> {
    let waited = waited(report, LOG_WRITE).map(|waited| waited.waits);
    let waits_per_s = waited.zip(seconds(report)).map(|(waits, s)| waits / s);
    let (per_s, how) = match waits_per_s {
        Some(per_s) => (per_s, "waits for log file parallel write"),
        None => (
            rate(report, LOG_FILE_WRITES)?,
            "requests to log files, of all members",
        ),
    };
    (per_s > 0.0).then(|| DemandStream {
        per_s: Some(per_s),
        mean_bytes: log_bytes(report).and_then(|bytes| possible(bytes / per_s)),
        rate_of: format!("{how}; size from redo size"),
        ..latency
    })
}

/// Requests to log files beside the writes of the log. Each write is a request to every member of
/// its group; a large one is several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LogRequests {
    /// Writes of the log per second.
    pub(super) writes_per_s: f64,
    /// Requests to log files per second.
    pub(super) requests_per_s: f64,
    /// Mean size of a write.
    bytes: Option<f64>,
}

impl LogRequests {
    /// `None` if the report does not say it, or there are too few writes.
    pub(super) fn of(report: &DatabaseReport) -> Option<Self> {
        let writes_per_s = rate(report, "redo writes").filter(|writes| *writes >= 1.0)?;
        let requests = file_type(report, "Log File").or_else(|| function(report, "LGWR"))?;
        Some(Self {
            writes_per_s,
            requests_per_s: value(requests.writes_per_s)?,
            bytes: redo_write_bytes(report),
        })
    }

    /// Members of a log group, where the ratio is that of a whole number and some further requests:
    /// LGWR writes file headers too. `None` if it is not, or if writes are so large that they are
    /// several requests.
    pub(super) fn members(self) -> Option<f64> {
        const MEAN_MAX_BYTES: f64 = 262_144.0;
        /// Two counters of one rate.
        const BELOW: f64 = 0.05;
        const ABOVE: f64 = 0.5;
        let ratio = self.requests_per_s / self.writes_per_s;
        let members = (ratio * (1.0 + BELOW)).floor();
        let is_small = self.bytes? < MEAN_MAX_BYTES;
        (is_small && members >= 1.0 && ratio < members + ABOVE).then_some(members)
    }
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

/// On small reports made for these tests.
#[cfg(test)]
mod tests {
    use crate::demand::{DatabaseResult, database};
    use rigel_import::{Source, csv_columns::Columns, read};
    use rigel_model::{DemandKind, DemandStream, FindingName};
    use std::fmt::Write;

    /// Seconds of the reports.
    const SECONDS: f64 = 1000.0;

    fn html_table(heading: &str, heads: &[&str], rows: &[Vec<String>]) -> String {
        let mut html = format!("<h3>{heading}</h3><table><tr>");
        for head in heads {
            write!(html, "<th>{head}</th>").unwrap();
        }
        html.push_str("</tr>");
        for row in rows {
            html.push_str("<tr>");
            for cell in row {
                write!(html, "<td>{cell}</td>").unwrap();
            }
            html.push_str("</tr>");
        }
        html + "</table>"
    }

    /// A report with these statistics per second, foreground waits per second, and file types with
    /// writes and MB written per second. It prints no block size and no I/O by function.
    fn report(
        title: &str,
        statistics: &[(&str, f64)],
        waits: &[(&str, f64)],
        files: &[(&str, f64, f64)],
    ) -> DatabaseResult {
        let elapsed = ["Elapsed:", "", "16.67 (mins)", "", ""];
        let statistic = |(name, per_s): &(&str, f64)| {
            vec![
                (*name).to_string(),
                format!("{:.0}", per_s * SECONDS),
                format!("{per_s:.2}"),
                "1.00".into(),
            ]
        };
        let wait = |(event, per_s): &(&str, f64)| {
            let waits = per_s * SECONDS;
            // Each takes half a millisecond.
            let seconds = (waits * 5e-4).round();
            vec![
                (*event).into(),
                format!("{waits:.0}"),
                "0".into(),
                format!("{seconds:.0}"),
                "500.00us".into(),
            ]
        };
        let file = |(name, writes, mb): &(&str, f64, f64)| {
            let row = [*name, "0M", "0.00", "0M", "1G"];
            let mut row: Vec<String> = row.iter().map(ToString::to_string).collect();
            row.extend([format!("{writes:.2}"), format!("{mb:.3}M")]);
            row
        };
        let text = format!(
            "<html><h1>{title}</h1>{}{}{}{}<p>End of Report</p></html>",
            html_table(
                "Report Summary",
                &["", "Snap Id", "Snap Time", "Sessions", "Cursors/Session"],
                &[elapsed.iter().map(ToString::to_string).collect()]
            ),
            html_table(
                "Foreground Wait Events",
                &[
                    "Event",
                    "Waits",
                    "%Time -outs",
                    "Total Wait Time (s)",
                    "Avg wait"
                ],
                &waits.iter().map(wait).collect::<Vec<_>>()
            ),
            html_table(
                "Instance Activity Stats",
                &["Statistic", "Total", "per Second", "per Trans"],
                &statistics.iter().map(statistic).collect::<Vec<_>>()
            ),
            html_table(
                "IOStat by Filetype summary",
                &[
                    "Filetype Name",
                    "Reads: Data",
                    "Reqs per sec",
                    "Data per sec",
                    "Writes: Data",
                    "Reqs per sec",
                    "Data per sec"
                ],
                &files.iter().map(file).collect::<Vec<_>>()
            ),
        );
        let source = Source {
            name: "made.html",
            text: &text,
        };
        database(&read(&[source], None, &Columns::default()).unwrap()).unwrap()
    }

    const CONTAINER: &str = "WORKLOAD REPOSITORY PDB report (root snapshots)";
    const INSTANCE: &str = "WORKLOAD REPOSITORY report for";

    fn stream(result: &DatabaseResult, kind: DemandKind) -> &DemandStream {
        result.demands[0].intervals[0].stream(kind).unwrap()
    }

    #[track_caller]
    fn near(value: Option<f64>, expected: f64) {
        let value = value.expect("a value");
        assert!(
            (value / expected - 1.0).abs() < 1e-2,
            "{value}, not {expected}"
        );
    }

    fn findings(result: &DatabaseResult, name: FindingName) -> Vec<&str> {
        let named = result.findings.iter().filter(|finding| finding.is(name));
        named.map(|finding| finding.what.as_str()).collect()
    }

    #[test]
    fn all_reads_of_a_container_are_in_its_demand() {
        let found = report(
            CONTAINER,
            &[
                ("physical read IO requests", 700.0),
                ("physical read bytes", 8192.0 * 9000.0),
                ("physical reads", 9000.0),
                ("physical reads cache", 30.0),
                ("physical reads cache prefetch", 0.0),
                ("physical reads direct", 8970.0),
            ],
            &[("db file sequential read", 25.0)],
            &[("Data File", 40.0, 0.625)],
        );
        assert_eq!(
            found.demands[0].block_bytes,
            Some(8192),
            "bytes over blocks"
        );
        let random = stream(&found, DemandKind::RandomReads);
        near(random.per_s, 25.0);
        near(random.mean_bytes, 8192.0);
        let direct = stream(&found, DemandKind::DirectReads);
        near(direct.per_s, 675.0);
        near(direct.mean_bytes, 8970.0 / 675.0 * 8192.0);
        near(stream(&found, DemandKind::PageWrites).per_s, 40.0);
        assert_eq!(findings(&found, FindingName::DemandIncomplete), [""; 0]);
    }

    #[test]
    fn blocks_that_a_call_reads_together_are_random_reads_and_not_direct_ones() {
        let found = report(
            CONTAINER,
            &[
                ("physical read IO requests", 700.0),
                ("physical read bytes", 16384.0 * 700.0),
                ("physical reads", 700.0),
                ("physical reads direct", 20.0),
            ],
            &[("db file sequential read", 100.0)],
            &[],
        );
        let random = stream(&found, DemandKind::RandomReads);
        near(random.per_s, 680.0);
        near(random.mean_bytes, 16384.0);
        near(stream(&found, DemandKind::DirectReads).per_s, 20.0);
    }

    #[test]
    fn reads_and_writes_of_unknown_size_stay() {
        let found = report(
            INSTANCE,
            &[
                ("physical read IO requests", 500.0),
                ("physical reads direct", 4000.0),
                ("physical write IO requests", 60.0),
                ("physical writes from cache", 80.0),
            ],
            &[("db file sequential read", 100.0)],
            &[],
        );
        assert_eq!(found.demands[0].block_bytes, None);
        for (kind, per_s) in [
            (DemandKind::DirectReads, 400.0),
            (DemandKind::PageWrites, 60.0),
        ] {
            near(stream(&found, kind).per_s, per_s);
            assert_eq!(stream(&found, kind).mean_bytes, None);
        }
    }

    #[test]
    fn what_is_in_no_stream_is_named() {
        let found = report(
            INSTANCE,
            &[
                ("physical read IO requests", 500.0),
                ("physical writes direct", 4000.0),
            ],
            &[],
            &[],
        );
        assert_eq!(
            findings(&found, FindingName::DemandIncomplete),
            [
                "made.html: 500/s of 500/s reads of the database are in no stream of the demand: the \
                 report does not say of what kind they are"
            ]
        );
    }

    #[test]
    fn a_difference_of_large_rates_gives_no_impossible_size() {
        let found = report(
            INSTANCE,
            &[
                ("physical read IO requests", 5000.0),
                ("physical read bytes", 8192.0 * 9000.0),
                ("physical reads", 9000.0),
                ("physical reads cache", 9000.0),
                ("physical reads direct", 0.0),
            ],
            &[
                ("db file sequential read", 4999.0),
                ("db file scattered read", 1.0),
            ],
            &[],
        );
        let multi = stream(&found, DemandKind::MultiblockReads);
        near(multi.per_s, 1.0);
        assert_eq!(multi.mean_bytes, None, "4,000 blocks in one read");
        assert!(multi.rate_of.contains("size unknown"), "{}", multi.rate_of);
    }

    #[test]
    fn members_of_the_log_beyond_the_first_are_told() {
        let statistics = [
            ("redo writes", 200.0),
            ("redo size", 200.0 * 6000.0),
            ("redo wastage", 0.0),
        ];
        let two = report(INSTANCE, &statistics, &[], &[("Log File", 400.3, 2.289)]);
        let log = stream(&two, DemandKind::LogWrites);
        near(log.per_s, 200.0);
        assert!(log.rate_of.contains("one of 2 members"), "{}", log.rate_of);
        assert_eq!(
            findings(&two, FindingName::DemandIncomplete),
            [
                "made.html: 200/s of 400/s writes to log files are in no stream of the demand, \
                 which has the 200/s of one member: each write of the log goes to 2 members of its \
                 group"
            ]
        );
        let alone = report(INSTANCE, &statistics, &[], &[("Log File", 200.1, 1.144)]);
        assert_eq!(findings(&alone, FindingName::DemandIncomplete), [""; 0]);
    }

    /// The note about writes to log files, where they are `ratio` times the writes of the log.
    fn of_log_files(ratio: f64, bytes: f64) -> Vec<String> {
        let statistics = [
            ("redo writes", 200.0),
            ("redo size", 200.0 * bytes),
            ("redo wastage", 0.0),
        ];
        let files = [("Log File", 200.0 * ratio, 10.0)];
        let found = report(INSTANCE, &statistics, &[], &files);
        let notes = findings(&found, FindingName::DemandIncomplete);
        notes.into_iter().map(String::from).collect()
    }

    #[test]
    fn writes_to_log_files_are_told_whatever_their_ratio_to_writes_of_the_log() {
        // Ratios of genuine reports: LGWR writes more than the log.
        for (ratio, why) in [
            (2.147, "goes to 2 members"),
            (2.261, "goes to 2 members"),
            (2.413, "goes to 2 members"),
            (1.98, "goes to 2 members"),
            (3.29, "goes to 3 members"),
            (2.7, "2 or more members, or its writes are split"),
            (1.2, "they are not writes of the log"),
        ] {
            let notes = of_log_files(ratio, 6000.0);
            let [note] = &notes[..] else {
                panic!("{ratio}: {notes:?}")
            };
            assert!(note.contains(why), "{ratio}: {note}");
        }
        let large = of_log_files(2.0, 400_000.0);
        assert!(
            large[0].contains("2 or more members, or its writes"),
            "{large:?}"
        );
        assert_eq!(of_log_files(1.03, 6000.0), [""; 0]);
    }

    #[test]
    fn requests_that_may_be_direct_writes_are_no_page_writes() {
        let found = report(
            INSTANCE,
            &[
                ("physical write IO requests", 500.0),
                ("physical writes", 4500.0),
                ("physical writes direct", 4000.0),
                ("physical writes from cache", 500.0),
                ("physical write bytes", 4500.0 * 8192.0),
            ],
            &[("direct path write", 20.0)],
            &[],
        );
        let interval = &found.demands[0].intervals[0];
        assert!(interval.stream(DemandKind::PageWrites).is_none());
        assert!(interval.stream(DemandKind::DirectWrites).is_none());
        let both = stream(&found, DemandKind::PageAndDirectWrites);
        near(both.per_s, 500.0);
        near(both.mean_bytes, 9.0 * 8192.0);
        assert_eq!(findings(&found, FindingName::DemandIncomplete), [""; 0]);
    }

    #[test]
    fn bytes_that_are_in_no_stream_are_named() {
        let found = report(
            CONTAINER,
            &[
                ("physical write IO requests", 40.0),
                ("physical write bytes", 8192.0 * 2000.0),
            ],
            &[],
            &[("Data File", 40.0, 0.625)],
        );
        let named = findings(&found, FindingName::DemandIncomplete);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(
            named[0].contains("15.7 MB/s of 16.4 MB/s of writes"),
            "{named:?}"
        );
    }

    #[test]
    fn genuine_reports_do_not_contradict_themselves() {
        // Of a container: DBWR writes to its files, and its sessions write next to nothing.
        let container = report(
            CONTAINER,
            &[("physical write total IO requests", 0.01)],
            &[],
            &[("Data File", 11.93, 0.5), ("TOTAL:", 11.93, 0.5)],
        );
        assert_eq!(findings(&container, FindingName::FiguresDiffer), [""; 0]);
        let redo = |bytes: f64| {
            let statistics = [
                ("redo size", bytes * 100.0),
                ("redo wastage", 0.0),
                ("redo blocks written", 100.0),
            ];
            report(INSTANCE, &statistics, &[], &[])
        };
        assert_eq!(findings(&redo(487.1), FindingName::FiguresDiffer), [""; 0]);
        assert_eq!(findings(&redo(460.0), FindingName::FiguresDiffer).len(), 1);
        // 1,000 s: five of them are half a percent.
        let total = |written: f64| {
            report(
                INSTANCE,
                &[("physical write total IO requests", 362.97)],
                &[],
                &[("Data File", written, 5.0), ("TOTAL:", written, 5.0)],
            )
        };
        assert_eq!(findings(&total(344.5), FindingName::FiguresDiffer), [""; 0]);
        assert_eq!(findings(&total(340.0), FindingName::FiguresDiffer).len(), 1);
        let sizes = |last: f64| {
            let bounds = [
                "4KB", "8KB", "16KB", "32KB", "64KB", "128KB", "256KB", "512KB",
            ];
            let mut statistics: Vec<(String, f64)> = bounds
                .iter()
                .map(|bound| (format!("redo write size count (   {bound})"), 0.0))
                .collect();
            statistics.push(("redo write size count (inf)".into(), last));
            statistics.push(("redo writes".into(), 7.443));
            let statistics: Vec<(&str, f64)> = statistics
                .iter()
                .map(|(name, per_s)| (name.as_str(), *per_s))
                .collect();
            report(INSTANCE, &statistics, &[], &[])
        };
        assert_eq!(findings(&sizes(7.444), FindingName::FiguresDiffer), [""; 0]);
        assert_eq!(findings(&sizes(7.463), FindingName::FiguresDiffer).len(), 1);
    }
}
