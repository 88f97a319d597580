//! The streams of an interval of `rigel watch`: of a disk by its requests or its counters, of a
//! database by its counters.
//!
//! Input: a record. Output: `SeenStream`s, from which reports and the demand are made. What the
//! source does not say stays absent.

use super::read_kind::reads_of;
use rigel_model::record::{DiskInterval, FlowKind, Latencies, RequestFlow};
use rigel_model::{Counters, DemandKind, DemandStream, LatencyShare};

/// Bytes of a sector, as the kernel counts them.
const SECTOR: f64 = 512.0;

/// One kind of I/O in an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SeenStream {
    /// Its name in reports.
    pub(super) name: &'static str,
    /// Its kind in a demand; `None` for what no database asks for.
    pub(super) kind: Option<DemandKind>,
    /// Operations.
    pub(super) operations: f64,
    /// Those that failed.
    pub(super) failed: u64,
    /// Their bytes; `None` if unknown.
    pub(super) bytes: Option<f64>,
    /// Those that continued an earlier one; `None` if unknown.
    pub(super) sequential: Option<u64>,
    /// Sum of all times in microseconds; `None` if unknown.
    pub(super) total_us: Option<f64>,
    /// Every time from the first sight of a request to its end.
    pub(super) response: Option<Latencies>,
    /// Every time in the disk.
    pub(super) device: Option<Latencies>,
    /// Every time in a queue, of those that were queued.
    pub(super) queue: Option<Latencies>,
    /// How the rate was derived.
    pub(super) rate_of: &'static str,
    /// What the latency is of.
    pub(super) latency_of: &'static str,
}

/// The streams of a disk; `None` if nothing is known of it.
pub(super) fn of_disk(disk: &DiskInterval) -> Option<Vec<SeenStream>> {
    if let Some(traced) = disk.all_requests() {
        return Some(traced.flows.iter().map(of_flow).collect());
    }
    let [before, after] = disk.counters?;
    of_counters(before, after)
}

fn demand_kind(kind: FlowKind) -> Option<DemandKind> {
    match kind {
        FlowKind::RandomReads => Some(DemandKind::RandomReads),
        FlowKind::MultiblockReads => Some(DemandKind::MultiblockReads),
        FlowKind::PageWrites => Some(DemandKind::PageWrites),
        FlowKind::LogWrites => Some(DemandKind::LogWrites),
        FlowKind::Flushes | FlowKind::Others => None,
    }
}

fn of_flow(flow: &RequestFlow) -> SeenStream {
    let response = flow.response();
    SeenStream {
        name: flow.kind.words(),
        kind: demand_kind(flow.kind),
        operations: flow.requests as f64,
        failed: flow.failed,
        bytes: Some(flow.bytes as f64),
        sequential: Some(flow.sequential),
        total_us: Some(response.sum as f64 / 1e3),
        response: Some(response.clone()),
        device: Some(flow.device.clone()),
        queue: Some(flow.queue.clone()),
        rate_of: match flow.kind {
            FlowKind::RandomReads => "reads of at most two blocks, by the disk's requests",
            FlowKind::MultiblockReads => "reads of more than two blocks, by the disk's requests",
            FlowKind::LogWrites => {
                "writes with forced unit access, and the last write before each flush"
            }
            FlowKind::PageWrites => "the other writes, by the disk's requests",
            FlowKind::Flushes | FlowKind::Others => "the disk's requests",
        },
        latency_of: if flow.kind == FlowKind::LogWrites {
            "from the queue to the end of the flush"
        } else {
            "from the queue to the end of the request"
        },
    }
}

/// How far a counter of milliseconds rose. The kernel prints these with 32 bits, so that they begin
/// anew every 50 days of I/O; `None` if it went back and is larger than that.
fn milliseconds(before: u64, after: u64) -> Option<u64> {
    /// The number of values of such a counter.
    const WRAP: u64 = 1 << 32;
    match after.checked_sub(before) {
        None if before < WRAP => Some(after + WRAP - before),
        difference => difference,
    }
}

/// The streams by the kernel's counters; `None` if one of operations or sectors went back, as after
/// a device was replaced.
fn of_counters(before: Counters, after: Counters) -> Option<Vec<SeenStream>> {
    let difference = |of: fn(&Counters) -> u64| of(&after).checked_sub(of(&before));
    let stream = |ops: Option<u64>, sectors: Option<u64>, ms: Option<u64>| {
        let (operations, sectors, ms) = (ops?, sectors?, ms?);
        Some(SeenStream {
            operations: operations as f64,
            bytes: Some(sectors as f64 * SECTOR),
            total_us: Some(ms as f64 * 1e3),
            latency_of: "the kernel's mean time of the disk's requests",
            ..SeenStream::default()
        })
    };
    let reads = stream(
        difference(|one| one.reads),
        difference(|one| one.read_sectors),
        milliseconds(before.read_ms, after.read_ms),
    );
    let writes = stream(
        difference(|one| one.writes),
        difference(|one| one.write_sectors),
        milliseconds(before.write_ms, after.write_ms),
    );
    let (reads, writes) = (reads?, writes?);
    let mean = reads.bytes.map(|bytes| bytes / reads.operations);
    let kind = reads_of(mean.filter(|bytes| bytes.is_finite()));
    let reads = SeenStream {
        name: "reads",
        kind: Some(kind),
        rate_of: "all reads of the disk; the mean size hides a mixture",
        ..reads
    };
    let writes = SeenStream {
        name: "writes",
        kind: Some(DemandKind::PageAndDirectWrites),
        rate_of: "all writes of the disk, those of the log among them",
        ..writes
    };
    let streams = [reads, writes].into_iter();
    Some(streams.filter(|stream| stream.operations > 0.0).collect())
}

/// The stream in a demand, of an interval of `seconds`; `None` for what no database asks for.
pub(super) fn demand_stream(seen: &SeenStream, seconds: f64) -> Option<DemandStream> {
    let kind = seen.kind?;
    let done = seen.operations - seen.failed as f64;
    let per_op = |sum: Option<f64>| sum.map(|sum| sum / done).filter(|_| done > 0.0);
    let mean_us = per_op(seen.total_us).filter(|us| *us > 0.0);
    Some(DemandStream {
        kind,
        per_s: Some(seen.operations / seconds),
        mean_bytes: per_op(seen.bytes).filter(|bytes| *bytes > 0.0),
        mean_us,
        mean_range_us: None,
        waits: mean_us.map(|_| done),
        latencies: seen.response.as_ref().map(shares).unwrap_or_default(),
        rate_of: seen.rate_of.into(),
        latency_of: mean_us.map_or("", |_| seen.latency_of).into(),
    })
}

/// The distribution in buckets of powers of two, as databases print it.
fn shares(latencies: &Latencies) -> Vec<LatencyShare> {
    let mut powers: Vec<(u32, u64)> = Vec::new();
    for (low, _, count) in latencies.histogram.buckets() {
        // The power of two of microseconds above its lower edge: a bucket is under 0.8 % wide.
        let power = u64::BITS - (low / 1000).leading_zeros();
        match powers.last_mut() {
            Some(last) if last.0 == power => last.1 += count,
            _ => powers.push((power, count)),
        }
    }
    let all = latencies.histogram.count() as f64;
    let share = |(power, count): (u32, u64)| {
        let high = 2f64.powi(i32::try_from(power).unwrap_or(0));
        LatencyShare {
            label: format!("<{high:.0}us"),
            low_us: if power == 0 { 0.0 } else { high / 2.0 },
            high_us: Some(high),
            share: count as f64 / all,
        }
    };
    powers.into_iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Nanos;

    fn counters(reads: u64, writes: u64) -> Counters {
        Counters {
            reads,
            read_sectors: reads * 16,
            read_ms: reads / 2,
            writes,
            write_sectors: writes * 8,
            write_ms: writes,
            ..Counters::default()
        }
    }

    #[test]
    fn counters_are_reads_and_writes_with_means() {
        let disk = DiskInterval {
            name: "sda".into(),
            counters: Some([counters(100, 10), counters(1100, 30)]),
            traced: None,
        };
        let streams = of_disk(&disk).unwrap();
        let reads = demand_stream(&streams[0], 10.0).unwrap();
        assert_eq!(reads.kind, DemandKind::RandomReads);
        assert_eq!(
            (reads.per_s, reads.mean_bytes, reads.mean_us),
            (Some(100.0), Some(8192.0), Some(500.0))
        );
        let writes = demand_stream(&streams[1], 10.0).unwrap();
        assert_eq!(
            (writes.kind, writes.per_s, writes.mean_us),
            (DemandKind::PageAndDirectWrites, Some(2.0), Some(1000.0))
        );
    }

    #[test]
    fn a_counter_that_went_back_says_nothing() {
        let disk = DiskInterval {
            name: "sda".into(),
            counters: Some([counters(100, 10), counters(5, 30)]),
            traced: None,
        };
        assert_eq!(of_disk(&disk), None);
        assert_eq!(of_disk(&DiskInterval::default()), None);
    }

    #[test]
    fn milliseconds_of_32_bits_begin_anew() {
        let mut before = counters(100, 10);
        before.read_ms = u64::from(u32::MAX) - 99;
        let after = Counters {
            read_ms: 400,
            ..counters(1100, 10)
        };
        let disk = DiskInterval {
            name: "sda".into(),
            counters: Some([before, after]),
            traced: None,
        };
        let streams = of_disk(&disk).unwrap();
        assert_eq!(streams[0].total_us, Some(500e3));
        // What never was a number of 32 bits cannot have begun anew.
        assert_eq!(milliseconds(1 << 40, 5), None);
    }

    #[test]
    fn a_distribution_keeps_every_request() {
        let mut response = Latencies::default();
        for us in [0, 1, 3, 100, 120, 127, 128, 5000] {
            response.record(Nanos::from_micros(us));
        }
        let found = shares(&response);
        let total: f64 = found.iter().map(|one| one.share).sum();
        assert!((total - 1.0).abs() < 1e-12, "{found:?}");
        let hundred = found.iter().find(|one| one.label == "<128us").unwrap();
        assert!((hundred.share - 3.0 / 8.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.last().unwrap().high_us, Some(8192.0));
    }
}
