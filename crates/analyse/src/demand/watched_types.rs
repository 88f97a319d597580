//! The types of a watch's results. `watched` and `room` fill them in.

use crate::figures::latency::LatencySummary;
use crate::series::soak::SoakResult;
use rigel_model::{DemandKind, Finding, LogKind, Moment};
use serde::Serialize;

/// The results of a watch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WatchResult {
    /// The disks, then the databases.
    pub sources: Vec<WatchedSource>,
    /// Number of intervals.
    pub intervals: usize,
    /// Their time together, in seconds.
    pub seconds: f64,
    /// What Rigel itself needed.
    pub own: OwnCost,
    /// The room that a calibrated storage leaves; `None` without `--against`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<StorageRoom>,
    /// The course of the first source's operations per second.
    #[serde(skip)]
    pub course: Option<SoakResult>,
    /// Findings that are not in the header.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// What Rigel itself needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OwnCost {
    /// CPU time over time: 0.01 is one percent of one CPU.
    pub cpu: f64,
    /// Most resident memory in bytes.
    pub memory_bytes: u64,
    /// Events that the kernel could not deliver.
    pub lost_events: u64,
    /// Completions without a known beginning.
    pub unmatched: u64,
    /// Requests that the kernel's counters have and the trace has not.
    pub missed: u64,
    /// Intervals of disks in which that was so.
    #[serde(skip)]
    pub incomplete: u64,
}

/// A disk or a database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WatchedSource {
    /// Name of the disk, or URL of the database.
    pub name: String,
    /// How it was observed, in words.
    pub by: String,
    /// How a database writes its log; `None` if it waits for no write, and of a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// Share of the time in which requests of a disk were outstanding, by the kernel; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// Its kinds of I/O.
    pub streams: Vec<WatchedStream>,
    /// The interval with the most operations, of those that are not cut short.
    pub busiest: Option<BusiestInterval>,
    /// Intervals without figures.
    pub gaps: usize,
    /// Why the last of these has none; empty if unknown.
    pub gap: String,
    /// Sessions of a database that were active on average; `None` if nobody looked.
    pub active: Option<f64>,
    /// What they waited for, most frequent first: a name, and its share of all that was seen. `CPU`
    /// is none.
    pub waits: Vec<(String, f64)>,
    /// The intervals, for charts.
    #[serde(skip)]
    pub points: Vec<WatchedPoint>,
}

/// The interval of a source with the most operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BusiestInterval {
    /// When it began.
    pub begin: Moment,
    /// Its length.
    pub seconds: f64,
    /// Operations per second.
    pub per_s: f64,
}

/// One kind of I/O over the whole time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WatchedStream {
    /// Its name.
    pub name: String,
    /// Its kind in a demand.
    pub kind: Option<DemandKind>,
    /// Operations.
    pub operations: f64,
    /// Those that failed.
    pub failed: u64,
    /// Operations per second over the whole time.
    pub per_s: f64,
    /// The same in the interval with the most operations of this kind, of those that are not cut
    /// short.
    pub busiest_per_s: f64,
    /// Bytes per second in the interval with the most bytes of this kind; `None` if unknown.
    pub busiest_bytes_per_s: Option<f64>,
    /// Mean size of an operation.
    pub mean_bytes: Option<f64>,
    /// Share of operations that continued an earlier one.
    pub sequential: Option<f64>,
    /// Mean time from the first sight of a request to its end.
    pub mean_us: Option<f64>,
    /// The distribution of that time.
    pub response: Option<LatencySummary>,
    /// The distribution of the time in the disk.
    pub device: Option<LatencySummary>,
    /// The distribution of the time in a queue, of those that were queued.
    pub queue: Option<LatencySummary>,
    /// Number of operations that were queued.
    pub queued: Option<u64>,
    /// What the latency is of.
    pub latency_of: String,
}

/// An interval of a source, for charts.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedPoint {
    /// When it began.
    pub begin: Moment,
    /// Its length.
    pub seconds: f64,
    /// Of each stream of the source, in its order. Shorter where later streams had not occurred
    /// yet.
    pub streams: Vec<StreamPoint>,
}

/// One kind of I/O in an interval of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamPoint {
    /// Operations per second.
    pub per_s: f64,
    /// Their bytes per second; `None` if unknown.
    pub bytes_per_s: Option<f64>,
    /// The 99th percentile of their times in microseconds; `None` if unknown.
    pub p99_us: Option<f64>,
}

impl WatchedStream {
    /// Bytes per second over the whole time; `None` if the size is unknown, or there are none.
    pub fn bytes_per_s(&self) -> Option<f64> {
        let size = self.mean_bytes.filter(|size| *size > 0.0)?;
        Some(self.per_s * size)
    }
}

impl WatchedPoint {
    /// Operations per second of all streams.
    pub fn per_s(&self) -> f64 {
        self.streams.iter().map(|stream| stream.per_s).sum()
    }
}

/// One kind of I/O beside what the storage serves.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StreamRoom {
    /// The kind.
    pub kind: DemandKind,
    /// Operations per second in its busiest interval; of large reads the bytes of their busiest
    /// interval, as operations of their mean size.
    pub per_s: f64,
    /// Operations of that size per second that the storage serves.
    pub serves_per_s: f64,
    /// The share of it that is used.
    pub used: f64,
    /// In a sentence.
    pub sentence: String,
}

/// The room of a storage beside the demand of all disks that were watched, or of the first database
/// if there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StorageRoom {
    /// The disks, or the database.
    pub source: String,
    /// The kinds that the calibration measured.
    pub streams: Vec<StreamRoom>,
    /// Kinds that were asked for and that the calibration did not measure.
    pub not_measured: Vec<DemandKind>,
    /// The share that all kinds but log writes use together.
    pub used_together: f64,
}
