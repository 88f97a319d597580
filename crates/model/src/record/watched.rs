//! What `rigel watch` saw in an interval: requests of disks, counters of disks and of databases.
//!
//! Facts only: counts, sums, histograms, and two readings of each counter. What a source does not
//! say is absent. Rates and the demand that follows are computed by `analyse`.

use super::{Latencies, Window};
use crate::text::read_device_name;
use crate::{Bytes, Counters, LogKind, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedInterval {
    /// Its number on the timetable, from 1. A number that is missing was not observed.
    pub number: u32,
    /// Wall-clock time of its beginning.
    pub started: String,
    /// Its length.
    pub measured: Nanos,
    /// CPU time that this process used in it.
    pub cpu: Nanos,
    /// Resident memory of this process at its end.
    pub memory: Bytes,
    /// The disks, in the order of the request; absent without disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskInterval>,
    /// The databases, in the order of the request; absent without databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<DatabaseInterval>,
}

impl WatchedInterval {
    /// Everything that its disks were asked to read and write, as one window. Counted requests have
    /// no latencies.
    pub fn together(&self) -> Window {
        let mut all = Window::default();
        for disk in &self.disks {
            if let Some(traced) = disk.all_requests() {
                for flow in traced.flows.iter().filter(|flow| flow.kind.is_data()) {
                    all.done += flow.requests - flow.failed.min(flow.requests);
                    all.response.merge(flow.response());
                }
            } else if let Some([before, after]) = &disk.counters {
                let reads = after.reads.saturating_sub(before.reads);
                all.done += reads + after.writes.saturating_sub(before.writes);
            }
        }
        all
    }
}

/// A disk, or a partition, in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskInterval {
    /// The kernel's name.
    #[serde(deserialize_with = "read_device_name")]
    pub name: String,
    /// The kernel's counters at the beginning and at the end; `None` if they could not be read.
    pub counters: Option<[Counters; 2]>,
    /// Its requests, one by one; `None` if they could not be traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<TracedRequests>,
}

impl DiskInterval {
    /// Reads and writes that the kernel's counters have and the trace has not; zero where they agree.
    pub fn missed(&self) -> u64 {
        /// Requests that may be on two sides of an interval's edge, because counters are read a moment
        /// after the clock; and the share of them.
        const AT_EDGE: u64 = 2;
        const SHARE: u64 = 50;
        let Some((traced, [before, after])) = self.traced.as_ref().zip(self.counters) else {
            return 0;
        };
        let rose = |of: fn(&Counters) -> u64| of(&after).saturating_sub(of(&before));
        let counted = rose(|one| one.reads) + rose(|one| one.writes);
        let flows = traced.flows.iter().filter(|flow| flow.kind.is_data());
        let seen = flows.map(|flow| flow.requests).sum::<u64>() + traced.empty_writes;
        let missed = counted.saturating_sub(seen);
        // Requests of before the first interval end without a known beginning.
        let allowed = AT_EDGE + counted / SHARE + before.in_flight;
        if missed > allowed { missed } else { 0 }
    }

    /// Its requests, one by one; `None` if they could not be traced, or if the trace missed some that
    /// the counters have.
    pub fn all_requests(&self) -> Option<&TracedRequests> {
        self.traced.as_ref().filter(|_| self.missed() == 0)
    }
}

/// The requests that ended in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TracedRequests {
    /// By kind, in the order of [`FlowKind`]; kinds that did not occur are absent.
    pub flows: Vec<RequestFlow>,
    /// Events that the kernel could not deliver.
    pub lost: u64,
    /// Completions of requests whose issue was not seen: it was before the beginning, or lost.
    /// They have no latency and are in no flow.
    pub unmatched: u64,
    /// Requests that were outstanding at the end.
    pub open: u64,
    /// Requests that were outstanding when events were lost: nothing more is known of them.
    #[serde(default)]
    pub abandoned: u64,
    /// Writes without data that ended. Each only asks for a flush; the kernel's counters have it as a
    /// write.
    #[serde(default)]
    pub empty_writes: u64,
}

/// Kinds of requests, as far as a disk can distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// Reads of at most two blocks.
    RandomReads,
    /// Larger reads.
    MultiblockReads,
    /// Writes that are not log writes.
    PageWrites,
    /// Writes with forced unit access, and the last write that completed before a flush.
    LogWrites,
    /// Flushes of the disk's cache.
    Flushes,
    /// Discards and whatever else is neither a read nor a write of data.
    Others,
}

impl FlowKind {
    /// Every kind, in order.
    pub const ALL: [FlowKind; 6] = [
        Self::RandomReads,
        Self::MultiblockReads,
        Self::PageWrites,
        Self::LogWrites,
        Self::Flushes,
        Self::Others,
    ];

    /// True for reads and writes of data.
    pub fn is_data(self) -> bool {
        !matches!(self, Self::Flushes | Self::Others)
    }

    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::RandomReads => "random reads",
            Self::MultiblockReads => "multi-block reads",
            Self::PageWrites => "page writes",
            Self::LogWrites => "log writes",
            Self::Flushes => "flushes",
            Self::Others => "discards and others",
        }
    }
}

/// Requests of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestFlow {
    /// The kind.
    pub kind: FlowKind,
    /// Requests that ended.
    pub requests: u64,
    /// Those of them that failed.
    #[serde(default)]
    pub failed: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
    /// Requests that began where an earlier request of the same direction ended.
    pub sequential: u64,
    /// From the issue to the disk to its completion. For a log write that a flush made durable, to
    /// the completion of the flush.
    pub device: Latencies,
    /// In a queue before the disk, of requests that the kernel queued.
    pub queue: Latencies,
    /// Both together, of all requests; absent if none was queued, because it is then the same as
    /// `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Latencies>,
}

impl RequestFlow {
    /// The time from the first sight of a request to its end.
    pub fn response(&self) -> &Latencies {
        self.response.as_ref().unwrap_or(&self.device)
    }
}

/// A database in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseInterval {
    /// Its URL, without a password.
    pub name: String,
    /// Time between the two readings; zero in a gap.
    #[serde(default)]
    pub measured: Nanos,
    /// The server's counters at the beginning and at the end, by the server's names; `None` in a
    /// gap.
    pub counters: Option<[BTreeMap<String, u64>; 2]>,
    /// Why there are no counters; empty if there are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gap: String,
    /// How the server writes its log; `None` if it waits for no write, and in a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// What active sessions were waiting for, in all looks together. `CPU` is none.
    pub waits: BTreeMap<String, u64>,
    /// Number of looks.
    pub looks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(counted: u64, seen: u64, in_flight: u64) -> DiskInterval {
        let counters = |reads| Counters {
            reads,
            in_flight,
            ..Counters::default()
        };
        let flow = RequestFlow {
            kind: FlowKind::RandomReads,
            requests: seen,
            failed: 0,
            bytes: 0,
            sequential: 0,
            device: Latencies::default(),
            queue: Latencies::default(),
            response: None,
        };
        DiskInterval {
            counters: Some([counters(1000), counters(1000 + counted)]),
            traced: Some(TracedRequests {
                flows: vec![flow],
                ..TracedRequests::default()
            }),
            ..DiskInterval::default()
        }
    }

    #[test]
    fn a_trace_that_misses_requests_is_not_all_of_them() {
        assert_eq!(interval(1000, 10, 0).missed(), 990);
        assert_eq!(interval(10, 0, 0).missed(), 10);
        assert_eq!(interval(10, 0, 0).all_requests(), None);
        let whole = WatchedInterval {
            disks: vec![interval(10, 0, 0)],
            ..WatchedInterval::default()
        };
        assert_eq!(whole.together().done, 10);
    }

    #[test]
    fn a_write_that_only_asks_for_a_flush_is_not_missed() {
        let mut disk = interval(1000, 700, 0);
        assert_eq!(disk.missed(), 300);
        disk.traced.as_mut().unwrap().empty_writes = 300;
        assert_eq!(disk.missed(), 0);
    }

    #[test]
    fn what_may_be_at_an_edge_is_not_missed() {
        for (counted, seen, in_flight) in [
            (1000, 1000, 0),
            (1000, 978, 0),
            (1000, 946, 32),
            (2, 0, 0),
            // Counters can be switched off.
            (0, 1000, 0),
        ] {
            let interval = interval(counted, seen, in_flight);
            assert_eq!(interval.missed(), 0, "{counted} {seen} {in_flight}");
            assert!(interval.all_requests().is_some());
        }
        let untraced = DiskInterval {
            traced: None,
            ..interval(1000, 0, 0)
        };
        assert_eq!(untraced.missed(), 0);
    }
}
