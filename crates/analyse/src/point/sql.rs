//! The results of a point of database sessions: the client's counts, the server's counts, wait
//! events, and whether the counts agree.
//!
//! The server publishes its counts late: a `PostgreSQL` session about once a second, and the rest
//! when it ends. So the server's counters, from before the first session to after the last, are
//! divided by all operations of the point: the figures per operation are exact. Figures per second
//! are those times the measured operations per second.

use crate::figures::quantity::percent;
use rigel_model::record::{Latencies, PointRecord, StreamRecord};
use rigel_model::{
    Counters, Finding, FindingName, Kind, MIB, Nanos, ReadWay, Sample, ServerSample,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Allowed relative difference of two counts of the same blocks.
const AGREEMENT: f64 = 0.01;

/// Allowed number of blocks besides those of our statements, such as the catalogue's or a
/// checkpoint's.
const BLOCKS_BESIDE: f64 = 200.0;

/// The results of one point of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SqlSummary {
    /// Number of sessions.
    pub sessions: u32,
    /// Maximum number of operations in flight on each connection: 1 unless they were pipelined.
    pub pipeline: u32,
    /// Completed operations, warm-up included.
    pub operations: u64,
    /// Operations per second during the measurement.
    pub operations_per_s: f64,
    /// Completed operations during the measurement, by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Blocks visited by the statements, as the client counts them, per operation and per second.
    pub visited: ServerRate,
    /// Mean time per block of an operation: total response time divided by blocks.
    pub block_mean_us: f64,
    /// CPU time of this process per operation.
    pub client_cpu_us: f64,
    /// The server's figures; `None` if it reported nothing.
    pub server: Option<ServerFigures>,
    /// The disks' figures, for all their users; `None` if they are not on this machine.
    pub disk: Option<DiskFigures>,
    /// What the sessions waited for, the most frequent first.
    pub waits: Vec<Wait>,
    /// Histogram of response times in powers of two of a microsecond: upper edge and count.
    pub histogram_us: Vec<(u64, u64)>,
    /// The measurement second by second.
    pub timeline: Vec<ServerMoment>,
    /// Counts of the same blocks by different parties.
    pub witnesses: Vec<Witnessed>,
}

/// A count per operation and per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ServerRate {
    /// Count per operation.
    pub per_operation: f64,
    /// Count per second.
    pub per_s: f64,
}

/// The server's figures for the sessions. `None` means that it does not report the figure.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ServerFigures {
    /// Blocks visited in the buffer cache.
    pub logical: Option<ServerRate>,
    /// Blocks not found in the buffer cache and read.
    pub physical: Option<ServerRate>,
    /// Fraction of the visited blocks that were in the buffer cache.
    pub hit_share: Option<f64>,
    /// Blocks written.
    pub written: Option<ServerRate>,
    /// Bytes of log written.
    pub log_bytes: Option<ServerRate>,
    /// Number of log syncs.
    pub log_syncs: Option<ServerRate>,
    /// Committed transactions.
    pub commits: Option<ServerRate>,
    /// Mean time to read a block.
    pub read_mean_us: Option<f64>,
    /// CPU time of its processes: microseconds per operation, and CPUs kept busy.
    pub cpu_us: Option<ServerRate>,
    /// Physical reads per second of its CPU time.
    pub physical_per_cpu_s: Option<f64>,
    /// Bytes that its processes read from storage.
    pub storage_read: Option<ServerRate>,
    /// Fraction of the blocks it read that the page cache served instead of storage.
    pub page_cache_share: Option<f64>,
    /// Mean number of active sessions: the database's time in seconds per second.
    pub active: Option<f64>,
}

/// The load of the disks below the server's data during the point, warm-up included, from all their
/// users.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiskFigures {
    /// Completed reads per second.
    pub reads_per_s: f64,
    /// Completed writes per second.
    pub writes_per_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Mean time of a read, as the kernel counts it; `None` if there was no read.
    pub read_mean_us: Option<f64>,
    /// Fraction of time with at least one request in flight, on the busiest disk.
    pub busy: f64,
}

/// An event that sessions waited for, from sampling.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Wait {
    /// Name of the event; `CPU` for a session that was not waiting.
    pub event: String,
    /// Fraction of the sessions' time.
    pub share: f64,
    /// Mean number of sessions in this event.
    pub sessions: f64,
}

/// About one second of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ServerMoment {
    /// Its end, in seconds since the point began.
    pub at_s: f64,
    /// Physical reads per second, as the server published them.
    pub physical_per_s: Option<f64>,
    /// CPUs kept busy by the server's processes.
    pub cpu: Option<f64>,
    /// Bytes per second that they read from storage.
    pub storage_read_per_s: Option<f64>,
    /// Mean number of sessions in each event.
    pub waits: BTreeMap<String, f64>,
}

/// Two counts of the same blocks.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Witnessed {
    /// What was counted.
    pub what: &'static str,
    /// First counting party, and its count.
    pub first: (&'static str, u64),
    /// Second counting party, and its count.
    pub second: (&'static str, u64),
    /// Why the two may differ; `None` if they should be equal.
    pub may_differ: Option<&'static str>,
}

impl Witnessed {
    /// The second count as a fraction of the first.
    pub fn ratio(&self) -> f64 {
        self.second.1 as f64 / (self.first.1 as f64).max(1.0)
    }

    /// True if the two differ by at most a hundredth, or by at most 200 blocks.
    pub fn agrees(&self) -> bool {
        let off = (self.second.1 as f64 - self.first.1 as f64).abs();
        off <= AGREEMENT * self.first.1 as f64 || off <= BLOCKS_BESIDE
    }
}

/// Summarises the sessions of a point; `None` if it has none.
pub fn sql(record: &PointRecord) -> Option<SqlSummary> {
    let stream = record.streams.iter().find(|stream| stream.sql.is_some())?;
    let work = stream.sql?;
    let seconds = record.measured.as_secs_f64().max(1e-9);
    let total = stream.total();
    let operations = total.done + stream.warm_up_done;
    let per_s = record.rate_of(stream);
    let blocks: u64 = stream
        .kinds
        .iter()
        .map(|kind| kind.done() * work.blocks(kind.kind))
        .sum();
    let per_operation = |count: f64| count / total.done.max(1) as f64;
    let server = server(record, stream, operations, per_s);
    let sessions = stream.slots() / u64::from(work.pipeline.max(1));
    Some(SqlSummary {
        sessions: u32::try_from(sessions).unwrap_or(u32::MAX),
        pipeline: work.pipeline,
        operations,
        operations_per_s: per_s,
        kinds: stream
            .kinds
            .iter()
            .map(|kind| (kind.kind.name(), kind.done()))
            .collect(),
        visited: ServerRate {
            per_operation: per_operation(blocks as f64),
            per_s: blocks as f64 / seconds,
        },
        block_mean_us: total.response.sum as f64 / 1e3 / blocks.max(1) as f64,
        client_cpu_us: per_operation(record.cpu.as_micros_f64()),
        disk: disk(record),
        waits: waits(record),
        histogram_us: powers_of_two(&total.response),
        timeline: timeline(record),
        witnesses: witnesses(record, stream),
        server,
    })
}

/// The first and the last sample of a visit.
#[derive(Debug, Clone, Copy)]
struct VisitEnds<'a> {
    samples: [&'a Sample; 2],
    server: [&'a ServerSample; 2],
}

impl<'a> VisitEnds<'a> {
    fn of(visit: &'a PointRecord) -> Option<Self> {
        let samples = [visit.samples.first()?, visit.samples.last()?];
        let [first, last] = samples.map(|sample| sample.server.as_deref());
        let server = [first?, last?];
        Some(Self { samples, server })
    }
}

/// The ends of each visit, because what the server did between two visits is not of this point;
/// `None` if the server was not asked in one of them.
fn ends(record: &PointRecord) -> Option<Vec<VisitEnds<'_>>> {
    record.pieces().iter().map(VisitEnds::of).collect()
}

/// The increase of a counter during the visits.
fn counted(ends: &[VisitEnds<'_>], of: impl Fn(&ServerSample) -> Option<u64>) -> Option<u64> {
    ends.iter().map(|one| rise(one.server, &of)).sum()
}

/// The increase of a counter between two samples.
fn rise(
    [first, last]: [&ServerSample; 2],
    of: impl Fn(&ServerSample) -> Option<u64>,
) -> Option<u64> {
    Some(of(last)?.saturating_sub(of(first)?))
}

/// How often sessions were looked at in these visits, and what they waited for. Each visit counts
/// from zero.
fn looks<'a>(ends: &[VisitEnds<'a>]) -> (u64, BTreeMap<&'a str, u64>) {
    let mut waits: BTreeMap<&'a str, u64> = BTreeMap::new();
    for (event, count) in ends.iter().flat_map(|one| &one.server[1].waits) {
        *waits.entry(event).or_default() += count;
    }
    (ends.iter().map(|one| one.server[1].looks).sum(), waits)
}

fn server(
    record: &PointRecord,
    stream: &StreamRecord,
    operations: u64,
    per_s: f64,
) -> Option<ServerFigures> {
    let ends = ends(record)?;
    let block = f64::from(stream.length);
    let count = |of: fn(&ServerSample) -> Option<u64>| counted(&ends, of);
    let (looks, waits) = looks(&ends);
    let figure = |count: u64| {
        let per_operation = count as f64 / operations.max(1) as f64;
        ServerRate {
            per_operation,
            per_s: per_operation * per_s,
        }
    };
    let logical = count(|sample| sample.logical);
    let physical = count(|sample| sample.physical);
    let storage_read = count(|sample| sample.storage_read);
    let cpu = count(|sample| sample.cpu.map(|cpu| cpu.0));
    let read_time = count(|sample| sample.read_time.map(|time| time.0));
    let cpu_us = cpu.map(|nanos| {
        let per_operation = nanos as f64 / 1e3 / operations.max(1) as f64;
        ServerRate {
            per_operation,
            per_s: per_operation * per_s / 1e6,
        }
    });
    Some(ServerFigures {
        logical: logical.map(figure),
        physical: physical.map(figure),
        hit_share: logical
            .zip(physical)
            .filter(|(logical, _)| *logical > 0)
            .map(|(logical, physical)| (1.0 - physical as f64 / logical as f64).max(0.0)),
        written: count(|sample| sample.written).map(figure),
        log_bytes: count(|sample| sample.log_bytes).map(figure),
        log_syncs: count(|sample| sample.log_syncs).map(figure),
        commits: count(|sample| sample.commits).map(figure),
        read_mean_us: read_time.zip(physical).and_then(|(time, reads)| {
            (reads > 0 && time > 0).then(|| time as f64 / 1e3 / reads as f64)
        }),
        physical_per_cpu_s: physical
            .zip(cpu)
            .filter(|(_, cpu)| *cpu > 0)
            .map(|(reads, cpu)| reads as f64 / (cpu as f64 / 1e9)),
        cpu_us,
        storage_read: storage_read.map(figure),
        page_cache_share: physical
            .zip(storage_read)
            .filter(|(reads, _)| *reads > 0)
            .map(|(reads, bytes)| (1.0 - bytes as f64 / (reads as f64 * block)).max(0.0)),
        active: (looks > 0).then(|| waits.values().sum::<u64>() as f64 / looks as f64),
    })
}

/// The disks' figures between the first sample of each visit and the last one before the sessions
/// ended.
fn disk(record: &PointRecord) -> Option<DiskFigures> {
    let spans: Vec<[&Sample; 2]> = record
        .pieces()
        .iter()
        .map(|visit| {
            let (_, before_the_end) = visit.samples.split_last()?;
            Some([before_the_end.first()?, before_the_end.last()?])
        })
        .collect::<Option<_>>()?;
    let lengths = spans.iter().map(|[first, last]| last.at.since(first.at));
    let seconds: f64 = lengths.map(Nanos::as_secs_f64).sum();
    if spans.iter().any(|[first, _]| first.devices.is_empty()) || seconds < 0.5 {
        return None;
    }
    let count = |of: fn(&Counters) -> u64| -> f64 {
        let sum = |sample: &Sample| sample.devices.values().map(of).sum::<u64>();
        let rises = spans
            .iter()
            .map(|[first, last]| sum(last).saturating_sub(sum(first)));
        rises.sum::<u64>() as f64
    };
    let mut busy_ms: BTreeMap<&str, u64> = BTreeMap::new();
    for [first, last] in &spans {
        for (name, counters) in &last.devices {
            let before = first.devices.get(name).map_or(counters, |before| before);
            *busy_ms.entry(name).or_default() += counters.busy_ms.saturating_sub(before.busy_ms);
        }
    }
    let busiest = busy_ms.into_values().max().unwrap_or(0);
    let reads = count(|counters| counters.reads);
    Some(DiskFigures {
        reads_per_s: reads / seconds,
        writes_per_s: count(|counters| counters.writes) / seconds,
        read_bytes_per_s: count(|counters| counters.read_sectors) * 512.0 / seconds,
        read_mean_us: (reads > 0.0).then(|| count(|counters| counters.read_ms) * 1e3 / reads),
        busy: (busiest as f64 / 1e3 / seconds).min(1.0),
    })
}

fn waits(record: &PointRecord) -> Vec<Wait> {
    let (looks, waits) = looks(&ends(record).unwrap_or_default());
    let all: u64 = waits.values().sum();
    let wait = |(event, count): (&str, u64)| Wait {
        event: event.into(),
        share: count as f64 / all.max(1) as f64,
        sessions: count as f64 / looks.max(1) as f64,
    };
    let mut waits: Vec<Wait> = waits.into_iter().map(wait).collect();
    waits.sort_by(|a, b| b.share.total_cmp(&a.share));
    waits
}

/// Counts by power of two of a microsecond, given by its upper edge. A histogram bucket that
/// contains an edge counts where its middle lies; it is less than a hundredth wide.
fn powers_of_two(latencies: &Latencies) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (low, high, count) in latencies.histogram.buckets() {
        let micros = (low / 2 + high / 2).div_ceil(1000).max(1);
        *counts.entry(micros.next_power_of_two()).or_default() += count;
    }
    counts.into_iter().collect()
}

fn timeline(record: &PointRecord) -> Vec<ServerMoment> {
    let (from, end) = (
        record.warm_up,
        record
            .warm_up
            .plus(record.measured)
            .plus(Nanos::from_millis(200)),
    );
    let inside = |sample: &&Sample| sample.at >= from && sample.at <= end;
    // The last sample was taken after all sessions had ended and published their remaining counts.
    let before_the_end = record
        .samples
        .split_last()
        .map_or(&[][..], |(_, before)| before);
    let samples: Vec<(&Sample, &ServerSample)> = before_the_end
        .iter()
        .filter(inside)
        .filter_map(|sample| Some((sample, sample.server.as_deref()?)))
        .collect();
    let moment = |pair: &[(&Sample, &ServerSample)]| {
        let [(a, first), (b, last)] = pair else {
            unreachable!("windows of two")
        };
        let seconds = b.at.since(a.at).as_secs_f64();
        let looks = last.looks.saturating_sub(first.looks).max(1) as f64;
        let rate = |of: fn(&ServerSample) -> Option<u64>| {
            rise([first, last], of).map(|count| count as f64 / seconds)
        };
        let waits = last.waits.iter().filter_map(|(event, count)| {
            let fresh = count.saturating_sub(first.waits.get(event).copied().unwrap_or(0));
            (fresh > 0).then(|| (event.clone(), fresh as f64 / looks))
        });
        (seconds > 0.1).then(|| ServerMoment {
            at_s: b.at.as_secs_f64(),
            physical_per_s: rate(|sample| sample.physical),
            cpu: rate(|sample| sample.cpu.map(|cpu| cpu.0)).map(|nanos| nanos / 1e9),
            storage_read_per_s: rate(|sample| sample.storage_read),
            waits: waits.collect(),
        })
    };
    samples.windows(2).filter_map(moment).collect()
}

/// The counts of the same blocks: by the client, the server, its processes in the kernel, the disk.
fn witnesses(record: &PointRecord, stream: &StreamRecord) -> Vec<Witnessed> {
    let Some(ends) = ends(record) else {
        return Vec::new();
    };
    let block = u64::from(stream.length);
    let count = |of: fn(&ServerSample) -> Option<u64>| counted(&ends, of);
    // What the client asked for, in all visits.
    let streams = record.pieces().iter().flat_map(|visit| &visit.streams);
    let slices = streams
        .filter(|one| one.sql.is_some())
        .flat_map(|one| &one.coverage.slices);
    let asked: u64 = slices.sum();
    let mut witnesses = Vec::new();
    if stream.sql.is_some_and(|work| work.way == ReadWay::File) {
        // The server does not count blocks that do not go through its buffer cache.
        witnesses.extend(count(|sample| sample.storage_read).map(|bytes| Witnessed {
            what: "blocks read from files",
            first: ("client", asked),
            second: ("the server's processes from storage", bytes / block),
            may_differ: Some("blocks in the page cache are not read from storage"),
        }));
        return witnesses;
    }
    if let Some(visited) = count(|sample| sample.visited) {
        witnesses.push(Witnessed {
            what: "blocks of the tables visited",
            first: ("client", asked),
            second: ("server", visited),
            may_differ: visited_otherwise(stream),
        });
    }
    let physical = count(|sample| sample.physical);
    let storage = count(|sample| sample.storage_read).map(|bytes| bytes / block);
    if let (Some(physical), Some(storage)) = (physical, storage) {
        witnesses.push(Witnessed {
            what: "blocks read past the buffer cache",
            first: ("server", physical),
            second: ("its processes from storage", storage),
            may_differ: None,
        });
    }
    let sectors = |sample: &Sample| {
        sample
            .devices
            .values()
            .map(|counters| counters.read_sectors)
            .sum::<u64>()
    };
    let has_disks = ends.iter().all(|one| !one.samples[0].devices.is_empty());
    if let Some(physical) = physical.filter(|_| has_disks) {
        let rise =
            |one: &VisitEnds<'_>| sectors(one.samples[1]).saturating_sub(sectors(one.samples[0]));
        let disk = ends.iter().map(rise).sum::<u64>() * 512 / block;
        witnesses.push(Witnessed {
            what: "blocks read from the disk",
            first: ("server", physical),
            second: ("the disk, for everybody", disk),
            may_differ: Some("caches between the server and the disk, and other users of the disk"),
        });
    }
    witnesses
}

/// Why the server visits a different number of blocks than the client requests; `None` if it should
/// not.
fn visited_otherwise(stream: &StreamRecord) -> Option<&'static str> {
    let has = |wanted: Kind| stream.kinds.iter().any(|kind| kind.kind == wanted);
    if stream.total().failures() > 0 {
        Some("a failed operation visited only some of its blocks")
    } else if has(Kind::Write) {
        Some("an update finds its row, then visits the block again to change it")
    } else if has(Kind::Scan) {
        Some("a scan visits every block of its table")
    } else {
        None
    }
}

/// Warnings about disagreeing counts of a point's sessions; `at` names the point.
pub fn warnings(summary: &SqlSummary, at: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for witness in summary
        .witnesses
        .iter()
        .filter(|witness| witness.may_differ.is_none() && !witness.agrees())
    {
        let (what, (first, one), (second, other)) = (witness.what, witness.first, witness.second);
        let share = summary
            .server
            .as_ref()
            .and_then(|server| server.page_cache_share);
        let finding = match share.filter(|_| what.contains("past") && other < one) {
            Some(share) => from_page_cache(at, share, one, other),
            None => Finding::warning(
                FindingName::Witnesses,
                format!(
                    "at {at} {what}: {first} counted {one} and {second} {other}, {}",
                    percent(witness.ratio())
                ),
                "check what else uses the server: other sessions, a vacuum, a checkpoint",
            ),
        };
        findings.push(finding);
    }
    findings
}

/// Says that the page cache served a `share` of the `read` blocks, of which `other` came from storage. If these
/// cannot be told from none, no storage was measured.
fn from_page_cache(at: &str, share: f64, read: u64, from_storage: u64) -> Finding {
    const HINT: &str = "use a server with direct I/O (PostgreSQL 16 or newer, debug_io_direct=data), give it \
                        less memory, or load larger tables (--scale)";
    let of_storage = Witnessed {
        what: "",
        first: ("server", read),
        second: ("page cache", read.saturating_sub(from_storage)),
        may_differ: None,
    };
    let what = format!(
        "at {at} the page cache served {} of the blocks that the server read: {read} blocks, {from_storage} of \
         them from storage",
        percent(share)
    );
    if of_storage.agrees() {
        let what = format!("{what}: no storage was measured");
        return Finding::refusal(FindingName::PageCache, what, HINT);
    }
    Finding::warning(FindingName::PageCache, what, HINT)
}

/// Converts bytes to units of 2^20 bytes.
pub fn mib(bytes: f64) -> f64 {
    bytes / MIB as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::sessions as record;
    use rigel_model::Ratio;

    #[test]
    #[expect(clippy::float_cmp, reason = "ratios of small whole numbers")]
    fn figures_of_an_operation_are_of_all_operations_and_those_a_second_of_the_measurement() {
        let found = sql(&record(Ratio::ZERO)).unwrap();
        assert_eq!(
            (found.sessions, found.operations, found.operations_per_s),
            (4, 1100, 100.0)
        );
        assert_eq!(
            found.visited,
            ServerRate {
                per_operation: 64.0,
                per_s: 6400.0
            }
        );
        assert_eq!((found.block_mean_us, found.client_cpu_us), (625.0, 100.0));
        let server = found.server.unwrap();
        assert_eq!(
            server.physical,
            Some(ServerRate {
                per_operation: 64.0,
                per_s: 6400.0
            })
        );
        assert_eq!(server.logical.unwrap().per_operation, 128.0);
        assert_eq!(
            (server.read_mean_us, server.page_cache_share),
            (Some(250.0), Some(0.0))
        );
        // 64 blocks at 20 us: 1.28 ms per operation, a hundred operations per second.
        assert!(
            (server.cpu_us.unwrap().per_s - 0.128).abs() < 1e-9,
            "{server:?}"
        );
        assert!(
            (server.physical_per_cpu_s.unwrap() - 50_000.0).abs() < 1e-6,
            "{server:?}"
        );
        assert_eq!(
            (server.active, found.waits[0].share, found.waits[0].sessions),
            (Some(4.0), 0.75, 3.0)
        );
        assert_eq!(found.histogram_us, [(65_536, 1000)]);
        let disk = found.disk.unwrap();
        assert_eq!(
            (disk.reads_per_s, disk.read_mean_us),
            (6000.0, Some(1000.0))
        );
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "ratios of small whole numbers")]
    fn the_timeline_excludes_counts_published_at_the_end() {
        let found = sql(&record(Ratio::ZERO)).unwrap();
        assert_eq!(found.timeline.len(), 9, "{:?}", found.timeline);
        assert!(
            found
                .timeline
                .iter()
                .all(|moment| moment.physical_per_s == Some(6000.0)),
            "{:?}",
            found.timeline
        );
        assert_eq!(found.timeline[0].waits["IO:DataFileRead"], 3.0);
    }

    #[test]
    fn witnesses_agree_or_it_is_said_who_does_not() {
        let mut record = record(Ratio::ZERO);
        let found = sql(&record).unwrap();
        assert!(
            found.witnesses.iter().all(Witnessed::agrees) && warnings(&found, "here").is_empty(),
            "{found:?}"
        );
        // Storage gave half of what the server read; the page cache gave the rest.
        let last = record.samples.last_mut().unwrap().server.as_mut().unwrap();
        last.storage_read = Some(550 * 64 * 8192);
        let found = sql(&record).unwrap();
        let findings = warnings(&found, "here");
        assert_eq!(
            (findings.len(), findings[0].name.as_str()),
            (1, "page-cache")
        );
        assert!(findings[0].what.contains("50.0 %"), "{}", findings[0].what);
        assert_eq!(findings[0].severity, rigel_model::Severity::Warning);
        // It gave a hundredth, as far as two counts can tell.
        let last = record.samples.last_mut().unwrap().server.as_mut().unwrap();
        last.storage_read = Some(11 * 64 * 8192);
        let findings = warnings(&sql(&record).unwrap(), "here");
        assert_eq!(findings[0].severity, rigel_model::Severity::Refusal);
        assert!(
            findings[0].what.ends_with("no storage was measured"),
            "{findings:?}"
        );
        // The server saw fewer visits than the client made.
        record
            .samples
            .last_mut()
            .unwrap()
            .server
            .as_mut()
            .unwrap()
            .visited = Some(1000 * 64);
        let findings = warnings(&sql(&record).unwrap(), "here");
        assert!(
            findings
                .iter()
                .any(|finding| finding.is(FindingName::Witnesses)),
            "{findings:?}"
        );
        // An update visits a block more than once, which is no disagreement.
        let mixed = sql(&self::record(Ratio::from_percent(50.0).unwrap())).unwrap();
        assert!(
            mixed.witnesses[0]
                .may_differ
                .is_some_and(|why| why.contains("update"))
        );
    }

    #[test]
    fn what_the_server_did_between_two_visits_is_of_another_point() {
        let alone = sql(&record(Ratio::ZERO)).unwrap();
        let mut again = record(Ratio::ZERO);
        for sample in &mut again.samples {
            let server = sample.server.as_mut().unwrap();
            let later = |count: &mut Option<u64>| *count = count.map(|count| count + 1_000_000);
            later(&mut server.visited);
            later(&mut server.logical);
            later(&mut server.physical);
            server.cpu = server.cpu.map(|cpu| cpu.plus(Nanos::from_secs(100)));
            server.storage_read = server.storage_read.map(|bytes| bytes + 8_192_000_000);
            for counters in sample.devices.values_mut() {
                counters.reads += 1_000_000;
                counters.read_sectors += 16_000_000;
            }
        }
        let joined = rigel_model::record::visits::joined(&[record(Ratio::ZERO), again]).remove(0);
        assert_eq!(joined.visits.len(), 2);
        let both = sql(&joined).unwrap();
        assert_eq!(both.operations, 2 * alone.operations);
        assert_eq!((&both.server, &both.disk), (&alone.server, &alone.disk));
        assert_eq!(both.waits, alone.waits);
        for (both, alone) in both.witnesses.iter().zip(&alone.witnesses) {
            assert_eq!(both.first.1, 2 * alone.first.1, "{both:?}");
            assert!(both.agrees(), "{both:?}");
        }
    }

    #[test]
    fn without_a_server_there_are_the_clients_figures_alone() {
        let mut record = record(Ratio::ZERO);
        record.samples.clear();
        let found = sql(&record).unwrap();
        assert!(found.server.is_none() && found.disk.is_none() && found.witnesses.is_empty());
        assert_eq!(found.operations, 1100);
        record.streams[0].sql = None;
        assert_eq!(sql(&record), None);
    }
}
