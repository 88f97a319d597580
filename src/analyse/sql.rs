//! What a point of a database's sessions showed: what the client counted, what the server did for it, what it waited
//! for, and whether those who counted agree.
//!
//! What the server counts comes late: a `PostgreSQL` session publishes its counts about once a second, and the rest as
//! it ends. So the server's counters are held against all operations of the point, from before its first session to
//! after its last: the figures of an operation are exact. Figures a second are those times the operations a second of
//! the measurement.

use crate::model::{Counters, Finding, Kind, MIB, Nanos, ReadWay, Sample, ServerSample};
use crate::record::{Latencies, PointRecord, StreamRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// By how much two counts of the same blocks may differ.
const AGREEMENT: f64 = 0.01;

/// Blocks beside those of our statements that nobody minds: of the catalogue, of a checkpoint.
const BLOCKS_BESIDE: f64 = 200.0;

/// What one point of sessions showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SqlSummary {
    /// Sessions.
    pub sessions: u32,
    /// Operations done, warm-up included.
    pub operations: u64,
    /// Operations a second while measuring.
    pub operations_per_s: f64,
    /// Of those done while measuring, by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Blocks that the statements visited, as the client counts them: per operation and second.
    pub visited: Figure,
    /// Mean time of a block within its operation: response times over the blocks that they were for.
    pub block_mean_us: f64,
    /// CPU time of this process for each operation.
    pub client_cpu_us: f64,
    /// What the server did; none if it told nothing.
    pub server: Option<ServerFigures>,
    /// What the disks below did meanwhile, for everybody; none where they are not on this machine.
    pub disk: Option<DiskFigures>,
    /// What the sessions waited for, most first.
    pub waits: Vec<Wait>,
    /// Response times of operations in powers of two of a microsecond: the upper edge, and how many.
    pub histogram_us: Vec<(u64, u64)>,
    /// Second by second, while measuring.
    pub timeline: Vec<Moment>,
    /// Who counted the same, and what.
    pub witnesses: Vec<Witnessed>,
}

/// A count for each operation, and a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figure {
    /// For each operation.
    pub per_operation: f64,
    /// A second.
    pub per_s: f64,
}

/// What the server did for the sessions. None where it does not tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerFigures {
    /// Blocks visited in its buffer cache.
    pub logical: Option<Figure>,
    /// Blocks read past its buffer cache.
    pub physical: Option<Figure>,
    /// Blocks written.
    pub written: Option<Figure>,
    /// Bytes of log made.
    pub log_bytes: Option<Figure>,
    /// Times the log was made durable.
    pub log_syncs: Option<Figure>,
    /// Transactions committed.
    pub commits: Option<Figure>,
    /// Mean time that it waited for a block.
    pub read_mean_us: Option<f64>,
    /// CPU time of its processes: microseconds for each operation, and CPUs kept busy.
    pub cpu_us: Option<Figure>,
    /// Physical reads for each second of its CPU.
    pub physical_per_cpu_s: Option<f64>,
    /// Bytes that its processes read from storage.
    pub storage_read: Option<Figure>,
    /// Share of the blocks it read that the page cache served, and not storage.
    pub page_cache_share: Option<f64>,
    /// Sessions that were at work at once, on average: the database's time in seconds a second.
    pub active: Option<f64>,
}

/// What the disks below the server's data did while the point ran, warm-up included, whoever asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DiskFigures {
    /// Reads completed a second.
    pub reads_per_s: f64,
    /// Writes completed a second.
    pub writes_per_s: f64,
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Mean time of a read, as the kernel counts it; none if there was none.
    pub read_mean_us: Option<f64>,
    /// Share of the time in which at least one request was in flight, of the busiest disk.
    pub busy: f64,
}

/// An event that sessions waited for, from samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wait {
    /// Its name; `CPU` for a session that was not waiting.
    pub event: String,
    /// Share of the sessions' time.
    pub share: f64,
    /// Sessions that were in it at once, on average.
    pub sessions: f64,
}

/// About a second of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moment {
    /// Its end, since the point began.
    pub at_s: f64,
    /// Physical reads a second, as the server published them.
    pub physical_per_s: Option<f64>,
    /// CPUs that the server's processes kept busy.
    pub cpu: Option<f64>,
    /// Bytes a second that they read from storage.
    pub storage_read_per_s: Option<f64>,
    /// Sessions in each event, on average.
    pub waits: BTreeMap<String, f64>,
}

/// The same blocks, counted twice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Witnessed {
    /// What was counted.
    pub what: &'static str,
    /// Who counted first, and how many.
    pub first: (&'static str, u64),
    /// Who counted again, and how many.
    pub second: (&'static str, u64),
    /// Why the two may differ; none if they should be the same.
    pub may_differ: Option<&'static str>,
}

impl Witnessed {
    /// The second count as a share of the first.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.second.1 as f64 / (self.first.1 as f64).max(1.0)
    }

    /// True if the two agree within a hundredth.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let off = (self.second.1 as f64 - self.first.1 as f64).abs();
        off <= AGREEMENT * self.first.1 as f64 || off <= BLOCKS_BESIDE
    }
}

/// Sums up the sessions of a point; none if it has none.
#[must_use]
pub fn sql(record: &PointRecord) -> Option<SqlSummary> {
    let stream = record.streams.iter().find(|stream| stream.sql.is_some())?;
    let work = stream.sql?;
    let seconds = record.measured.as_secs_f64().max(1e-9);
    let total = stream.total();
    let operations = total.done + stream.warm_up_done;
    let per_s = total.done as f64 / seconds;
    let blocks: u64 = stream.kinds.iter().map(|kind| kind.total().done * work.blocks(kind.kind)).sum();
    let per_operation = |count: f64| count / total.done.max(1) as f64;
    let server = server(record, stream, operations, per_s);
    Some(SqlSummary {
        sessions: stream.loads.iter().map(|load| load.slots()).sum(),
        operations,
        operations_per_s: per_s,
        kinds: stream.kinds.iter().map(|kind| (kind.kind.name(), kind.total().done)).collect(),
        visited: Figure { per_operation: per_operation(blocks as f64), per_s: blocks as f64 / seconds },
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

/// The server's first and last sample of the point.
fn ends(record: &PointRecord) -> Option<(&Sample, &Sample, &ServerSample, &ServerSample)> {
    let (first, last) = (record.samples.first()?, record.samples.last()?);
    Some((first, last, first.server.as_deref()?, last.server.as_deref()?))
}

/// What a counter counted between two samples.
fn counted(a: &ServerSample, b: &ServerSample, of: impl Fn(&ServerSample) -> Option<u64>) -> Option<u64> {
    Some(of(b)?.saturating_sub(of(a)?))
}

fn server(record: &PointRecord, stream: &StreamRecord, operations: u64, per_s: f64) -> Option<ServerFigures> {
    let (_, _, first, last) = ends(record)?;
    let block = f64::from(stream.length);
    let count = |of: fn(&ServerSample) -> Option<u64>| counted(first, last, of);
    let figure = |count: u64| {
        let per_operation = count as f64 / operations.max(1) as f64;
        Figure { per_operation, per_s: per_operation * per_s }
    };
    let physical = count(|sample| sample.physical);
    let storage_read = count(|sample| sample.storage_read);
    let cpu = count(|sample| sample.cpu.map(|cpu| cpu.0));
    let read_time = count(|sample| sample.read_time.map(|time| time.0));
    let cpu_us = cpu.map(|nanos| {
        let per_operation = nanos as f64 / 1e3 / operations.max(1) as f64;
        Figure { per_operation, per_s: per_operation * per_s / 1e6 }
    });
    Some(ServerFigures {
        logical: count(|sample| sample.logical).map(figure),
        physical: physical.map(figure),
        written: count(|sample| sample.written).map(figure),
        log_bytes: count(|sample| sample.log_bytes).map(figure),
        log_syncs: count(|sample| sample.log_syncs).map(figure),
        commits: count(|sample| sample.commits).map(figure),
        read_mean_us: read_time
            .zip(physical)
            .and_then(|(time, reads)| (reads > 0 && time > 0).then(|| time as f64 / 1e3 / reads as f64)),
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
        active: (last.looks > 0).then(|| last.waits.values().sum::<u64>() as f64 / last.looks as f64),
    })
}

/// What the disks did between the first sample and the last that was taken before the sessions went.
fn disk(record: &PointRecord) -> Option<DiskFigures> {
    let (_, before_the_end) = record.samples.split_last()?;
    let (first, last) = (before_the_end.first()?, before_the_end.last()?);
    let seconds = last.at.since(first.at).as_secs_f64();
    if first.devices.is_empty() || seconds < 0.5 {
        return None;
    }
    let count = |of: fn(&Counters) -> u64| -> f64 {
        let sum = |sample: &Sample| sample.devices.values().map(of).sum::<u64>();
        sum(last).saturating_sub(sum(first)) as f64
    };
    let reads = count(|counters| counters.reads);
    let busy = last.devices.iter().filter_map(|(name, counters)| {
        Some(counters.busy_ms.saturating_sub(first.devices.get(name)?.busy_ms) as f64 / 1e3 / seconds)
    });
    Some(DiskFigures {
        reads_per_s: reads / seconds,
        writes_per_s: count(|counters| counters.writes) / seconds,
        read_bytes_per_s: count(|counters| counters.read_sectors) * 512.0 / seconds,
        read_mean_us: (reads > 0.0).then(|| count(|counters| counters.read_ms) * 1e3 / reads),
        busy: busy.fold(0.0, f64::max).min(1.0),
    })
}

fn waits(record: &PointRecord) -> Vec<Wait> {
    let Some((_, _, _, last)) = ends(record) else { return Vec::new() };
    let all: u64 = last.waits.values().sum();
    let wait = |(event, count): (&String, &u64)| Wait {
        event: event.clone(),
        share: *count as f64 / all.max(1) as f64,
        sessions: *count as f64 / last.looks.max(1) as f64,
    };
    let mut waits: Vec<Wait> = last.waits.iter().map(wait).collect();
    waits.sort_by(|a, b| b.share.total_cmp(&a.share));
    waits
}

/// Counts by the upper edge of a power of two of a microsecond. A bucket of ours that holds an edge counts where its
/// middle lies; it is under a hundredth wide.
fn powers_of_two(latencies: &Latencies) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (low, high, count) in latencies.histogram.buckets() {
        let micros = (low / 2 + high / 2).div_ceil(1000).max(1);
        *counts.entry(micros.next_power_of_two()).or_default() += count;
    }
    counts.into_iter().collect()
}

fn timeline(record: &PointRecord) -> Vec<Moment> {
    let (from, end) = (record.warm_up, record.warm_up.plus(record.measured).plus(Nanos::from_millis(200)));
    let inside = |sample: &&Sample| sample.at >= from && sample.at <= end;
    // The last one was taken when all sessions were gone and had published what they still held.
    let before_the_end = record.samples.split_last().map_or(&[][..], |(_, before)| before);
    let samples: Vec<(&Sample, &ServerSample)> =
        before_the_end.iter().filter(inside).filter_map(|sample| Some((sample, sample.server.as_deref()?))).collect();
    let moment = |pair: &[(&Sample, &ServerSample)]| {
        let [(a, first), (b, last)] = pair else { unreachable!("windows of two") };
        let seconds = b.at.since(a.at).as_secs_f64();
        let looks = last.looks.saturating_sub(first.looks).max(1) as f64;
        let rate = |of: fn(&ServerSample) -> Option<u64>| counted(first, last, of).map(|count| count as f64 / seconds);
        let waits = last.waits.iter().filter_map(|(event, count)| {
            let fresh = count.saturating_sub(first.waits.get(event).copied().unwrap_or(0));
            (fresh > 0).then(|| (event.clone(), fresh as f64 / looks))
        });
        (seconds > 0.1).then(|| Moment {
            at_s: b.at.as_secs_f64(),
            physical_per_s: rate(|sample| sample.physical),
            cpu: rate(|sample| sample.cpu.map(|cpu| cpu.0)).map(|nanos| nanos / 1e9),
            storage_read_per_s: rate(|sample| sample.storage_read),
            waits: waits.collect(),
        })
    };
    samples.windows(2).filter_map(moment).collect()
}

/// Who counted what: the client, the server, its processes in the kernel, the disk.
fn witnesses(record: &PointRecord, stream: &StreamRecord) -> Vec<Witnessed> {
    let Some((a, b, first, last)) = ends(record) else { return Vec::new() };
    let block = u64::from(stream.length);
    let mut witnesses = Vec::new();
    if stream.sql.is_some_and(|work| work.way == ReadWay::File) {
        // The server counts no block that did not go through its buffer cache.
        let asked = stream.coverage.slices.iter().sum();
        witnesses.extend(counted(first, last, |sample| sample.storage_read).map(|bytes| Witnessed {
            what: "blocks read as pieces of files",
            first: ("client", asked),
            second: ("the server's processes from storage", bytes / block),
            may_differ: Some("what the page cache holds is not read from storage"),
        }));
        return witnesses;
    }
    if let Some(visited) = counted(first, last, |sample| sample.visited) {
        witnesses.push(Witnessed {
            what: "blocks of the tables visited",
            first: ("client", stream.coverage.slices.iter().sum()),
            second: ("server", visited),
            may_differ: visited_otherwise(stream),
        });
    }
    let physical = counted(first, last, |sample| sample.physical);
    let storage = counted(first, last, |sample| sample.storage_read).map(|bytes| bytes / block);
    if let (Some(physical), Some(storage)) = (physical, storage) {
        witnesses.push(Witnessed {
            what: "blocks read past the buffer cache",
            first: ("server", physical),
            second: ("its processes from storage", storage),
            may_differ: None,
        });
    }
    let sectors = |sample: &Sample| sample.devices.values().map(|counters| counters.read_sectors).sum::<u64>();
    if let Some(physical) = physical.filter(|_| !a.devices.is_empty()) {
        let disk = sectors(b).saturating_sub(sectors(a)) * 512 / block;
        witnesses.push(Witnessed {
            what: "blocks read from the disk",
            first: ("server", physical),
            second: ("the disk, for everybody", disk),
            may_differ: Some("caches between the server and the disk, and other users of the disk"),
        });
    }
    witnesses
}

/// Why the server visits another number of blocks than the client asks for; none if it should not.
fn visited_otherwise(stream: &StreamRecord) -> Option<&'static str> {
    let has = |wanted: Kind| stream.kinds.iter().any(|kind| kind.kind == wanted);
    if stream.total().failures() > 0 {
        Some("an operation that failed visited only some of its blocks")
    } else if has(Kind::Write) {
        Some("an update finds its row, then visits the block again to change it")
    } else if has(Kind::Scan) {
        Some("a scan visits every block of its table")
    } else {
        None
    }
}

/// What is doubtful about the sessions of a point. `direct` says whether the server reads past the page cache.
#[must_use]
pub fn warnings(summary: &SqlSummary, at: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for witness in summary.witnesses.iter().filter(|witness| witness.may_differ.is_none() && !witness.agrees()) {
        let (what, (first, one), (second, other)) = (witness.what, witness.first, witness.second);
        let share = summary.server.as_ref().and_then(|server| server.page_cache_share);
        let finding = match share.filter(|_| what.contains("past") && other < one) {
            Some(share) => Finding::warning(
                "page cache",
                format!(
                    "at {at} the page cache served {:.1} % of the blocks that the server read: {one} blocks, of which \
                     storage gave {other}",
                    share * 100.0
                ),
                "use a server with direct I/O (PostgreSQL 16 or newer, debug_io_direct=data), give it less memory, or load larger tables",
            ),
            None => Finding::warning(
                "witnesses",
                format!("at {at} {what}: {first} counted {one} and {second} {other}, {:.1} %", witness.ratio() * 100.0),
                "see what else uses the server: other sessions, a vacuum, a checkpoint",
            ),
        };
        findings.push(finding);
    }
    findings
}

/// 2^20 bytes.
#[must_use]
pub fn mib(bytes: f64) -> f64 {
    bytes / MIB as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Coordinates, Load, Pattern, Ratio, SqlWork, Tables};
    use crate::record::{Coverage, End, KindRecord, Window};

    /// 1,000 reads of 64 rows measured in ten seconds after 100 that were not, by four sessions.
    fn record(updates: Ratio) -> PointRecord {
        let tables = Tables { schemas: 1, scale: 10_000, scan_blocks: 128, block: 8192 };
        let mut window = Window { done: 100, ..Window::default() };
        (0..100).for_each(|_| window.response.histogram.record(40_000_000));
        window.response.sum = 100 * 40_000_000;
        let work = SqlWork { updates, ..SqlWork::reads(tables) };
        let kinds = work.kinds().into_iter().map(|kind| KindRecord { kind, windows: vec![window.clone(); 10] });
        let stream = StreamRecord {
            name: "small".into(),
            length: 8192,
            loads: vec![Load::Closed { depth: 4 }],
            patterns: vec![Pattern::Uniform],
            sql: Some(work),
            kinds: kinds.collect(),
            unserved: Vec::new(),
            delay: None,
            warm_up_done: 100,
            coverage: Coverage { slices: vec![1100 * 64], ..Coverage::default() },
        };
        PointRecord {
            coordinates: Coordinates::at_depth(4),
            started: "2026-01-01T00:00:00+00:00".into(),
            warm_up: Nanos::from_secs(1),
            measured: Nanos::from_secs(10),
            end: End::Complete,
            cpu: Nanos::from_millis(100),
            cpus: 2,
            window: Nanos::from_secs(1),
            asked: None,
            streams: vec![stream],
            samples: (0..=11).map(sample).collect(),
        }
    }

    /// The counters after so many seconds: the last are settled, and hold what was not published before.
    fn sample(second: u64) -> Sample {
        let blocks = if second == 11 { 1100 * 64 } else { second * 100 * 60 };
        let reads = Counters { reads: blocks, read_sectors: blocks * 16, read_ms: blocks, ..Counters::default() };
        Sample {
            at: Nanos::from_secs(second),
            devices: [("vda".to_string(), reads)].into(),
            server: Some(Box::new(ServerSample {
                visited: Some(blocks),
                logical: Some(blocks * 2),
                physical: Some(blocks),
                read_time: Some(Nanos(blocks * 250_000)),
                storage_read: Some(blocks * 8192),
                cpu: Some(Nanos(blocks * 20_000)),
                waits: [("IO:DataFileRead".into(), second * 30), ("CPU".into(), second * 10)].into(),
                looks: second * 10,
                ..ServerSample::default()
            })),
            ..Sample::default()
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "ratios of small whole numbers")]
    fn figures_of_an_operation_are_of_all_operations_and_those_a_second_of_the_measurement() {
        let found = sql(&record(Ratio::ZERO)).unwrap();
        assert_eq!((found.sessions, found.operations, found.operations_per_s), (4, 1100, 100.0));
        assert_eq!(found.visited, Figure { per_operation: 64.0, per_s: 6400.0 });
        assert_eq!((found.block_mean_us, found.client_cpu_us), (625.0, 100.0));
        let server = found.server.unwrap();
        assert_eq!(server.physical, Some(Figure { per_operation: 64.0, per_s: 6400.0 }));
        assert_eq!(server.logical.unwrap().per_operation, 128.0);
        assert_eq!((server.read_mean_us, server.page_cache_share), (Some(250.0), Some(0.0)));
        // 64 blocks of 20 us: 1.28 ms an operation, a hundred of them a second.
        assert!((server.cpu_us.unwrap().per_s - 0.128).abs() < 1e-9, "{server:?}");
        assert!((server.physical_per_cpu_s.unwrap() - 50_000.0).abs() < 1e-6, "{server:?}");
        assert_eq!((server.active, found.waits[0].share, found.waits[0].sessions), (Some(4.0), 0.75, 3.0));
        assert_eq!(found.histogram_us, [(65_536, 1000)]);
        let disk = found.disk.unwrap();
        assert_eq!((disk.reads_per_s, disk.read_mean_us), (6000.0, Some(1000.0)));
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "ratios of small whole numbers")]
    fn the_timeline_leaves_out_what_was_published_at_the_end() {
        let found = sql(&record(Ratio::ZERO)).unwrap();
        assert_eq!(found.timeline.len(), 9, "{:?}", found.timeline);
        assert!(found.timeline.iter().all(|moment| moment.physical_per_s == Some(6000.0)), "{:?}", found.timeline);
        assert_eq!(found.timeline[0].waits["IO:DataFileRead"], 3.0);
    }

    #[test]
    fn witnesses_agree_or_it_is_said_who_does_not() {
        let mut record = record(Ratio::ZERO);
        let found = sql(&record).unwrap();
        assert!(found.witnesses.iter().all(Witnessed::agrees) && warnings(&found, "here").is_empty(), "{found:?}");
        // Storage gave half of what the server read: the page cache had the rest.
        let last = record.samples.last_mut().unwrap().server.as_mut().unwrap();
        last.storage_read = Some(550 * 64 * 8192);
        let found = sql(&record).unwrap();
        let told = warnings(&found, "here");
        assert_eq!((told.len(), told[0].name.as_str()), (1, "page cache"));
        assert!(told[0].what.contains("50.0 %"), "{}", told[0].what);
        // The server saw fewer visits than the client made.
        record.samples.last_mut().unwrap().server.as_mut().unwrap().visited = Some(1000 * 64);
        let told = warnings(&sql(&record).unwrap(), "here");
        assert!(told.iter().any(|finding| finding.name == "witnesses"), "{told:?}");
        // An update visits a block more than once: that is no disagreement.
        let mixed = sql(&self::record(Ratio::from_percent(50.0).unwrap())).unwrap();
        assert!(mixed.witnesses[0].may_differ.is_some_and(|why| why.contains("update")));
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
