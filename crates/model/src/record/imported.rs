//! Measurements of other tools, as reported in their files.
//!
//! Facts only: a value that the tool does not report is `None`. Nothing is computed from other
//! values, except sums over several entries of one load. Analysis decides which of Rigel's own
//! loads a load corresponds to.

use super::{DatabaseReport, Histogram};
use crate::{LogKind, Moment, SyncMethod};
use serde::{Deserialize, Serialize};

/// Contents of one source: a file, or the files of one run of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The files, as named by the user.
    pub sources: Vec<String>,
    /// The tool that wrote them: `fio`, `orion`, `iostat`, `csv`, or the kind of a database's
    /// reports: `AWR`, `Statspack`, `AWR-Miner`.
    pub tool: String,
    /// Its version, if reported.
    pub version: Option<String>,
    /// What it reports about the host, the target and the request, by name.
    #[serde(rename = "told")]
    pub reported: Vec<(String, String)>,
    /// Notes for the reader of the figures: values that were left out, assumed, or cannot be
    /// known.
    pub notes: Vec<String>,
    /// The figures.
    pub figures: Figures,
}

/// The figures of another tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figures {
    /// Results at each of several loads.
    Loads(Vec<LoadPoint>),
    /// Counters over time.
    Series(Vec<ImportedSeries>),
    /// Reports of a database, in reading order.
    Database(Vec<DatabaseReport>),
    /// What Oracle's own calibration claims.
    Claims(Vec<ClaimedCalibration>),
}

/// A row of Oracle's view `DBA_RSRC_IO_CALIBRATE`: what `CALIBRATE_IO` claims.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClaimedCalibration {
    /// When it began, as printed.
    pub started: Option<String>,
    /// When it ended, as printed.
    pub ended: Option<String>,
    /// Reads of a block per second.
    pub max_iops: Option<f64>,
    /// Megabytes per second of large reads, by all processes.
    pub max_mbps: Option<f64>,
    /// Megabytes per second of large reads, by one process.
    pub max_pmbps: Option<f64>,
    /// Latency at `max_iops` in whole milliseconds.
    pub latency_ms: Option<f64>,
    /// The number of disks that it was given.
    pub disks: Option<f64>,
    /// The greatest latency that it was given; `None` if that is unknown.
    pub asked_latency_ms: Option<f64>,
}

/// Result at one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// The tool's name for it: the job's name, or the cell.
    pub label: String,
    /// The load.
    pub load: ReportedLoad,
    /// Number of processes that share it, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Access pattern, in the words of [`Pattern`](crate::Pattern) where they mean the
    /// same.
    pub pattern: Option<String>,
    /// Requested percentage of writes.
    pub writes_percent: Option<f64>,
    /// Labels of the loads that ran at the same time.
    pub beside: Vec<String>,
    /// When it began.
    pub began: Option<Moment>,
    /// Duration of the measurement.
    pub seconds: Option<f64>,
    /// Durations of the processes in seconds, if they are reported one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process_seconds: Vec<f64>,
    /// Numbers of the errors by which processes ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<i64>,
    /// The engine, if its I/O went through the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffered_by: Option<String>,
    /// Requested number of outstanding operations, if the tool's engine cannot keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored_depth: Option<u32>,
    /// How writes are made durable, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syncs: Option<ReportedSyncs>,
    /// Operations, by class and kind.
    pub flows: Vec<Flow>,
}

/// Which sync follows which writes, and what the file is that is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportedSyncs {
    /// The system call.
    pub method: SyncMethod,
    /// Number of writes before each.
    pub writes_each: u64,
    /// The log that this is, if blocks are written one after the other.
    pub log: Option<LogKind>,
}

/// A load, as far as it is reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedLoad {
    /// A cell of Orion's matrix.
    Cell {
        /// Outstanding small I/Os.
        small: u32,
        /// Outstanding large I/Os, or sequential streams.
        large: u32,
    },
    /// A constant number of outstanding operations, over all processes.
    Closed {
        /// Outstanding operations.
        depth: u32,
    },
    /// A requested rate of operations per second, over all processes.
    Open {
        /// Operations per second.
        rate: u64,
        /// Maximum number of outstanding operations.
        in_flight: u32,
    },
    /// Neither of these, in words.
    Other(String),
}

impl Default for ReportedLoad {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// The operations of one class and kind at one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// `small` or `large`.
    pub class: String,
    /// `read`, `write`, `mixed`, `trim` or `sync`.
    pub kind: String,
    /// Bytes of one operation.
    pub io_bytes: Option<u32>,
    /// Completed operations.
    pub done: Option<u64>,
    /// Completed operations per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Latencies of the operations.
    pub latencies: Vec<ReportedLatency>,
}

/// Latencies of operations, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportedLatency {
    /// The measured interval: `total`, `completion` (without the time to submit) or `submission`
    /// (only that time).
    pub of: String,
    /// Number of timed operations.
    pub count: Option<u64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Minimum.
    pub min: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Standard deviation.
    pub deviation: Option<f64>,
    /// Quantiles: the fraction of operations that are not slower, and the time.
    pub quantiles: Vec<(f64, f64)>,
    /// Where the tool's buckets end, if some operations took that long: a quantile from there on is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram_end: Option<f64>,
    /// All latencies, in our buckets. Where the tool's buckets are wider, each is counted at its
    /// middle, and those of an octave are spread over it.
    pub histogram: Option<Histogram>,
}

/// A counter over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedSeries {
    /// Its name, such as `physical_reads_per_second` or `sda r/s`.
    pub name: String,
    /// Unit of the values, such as `/s`; empty if not reported.
    pub unit: String,
    /// Half of the last printed place of the values; `None` if they are not rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<f64>,
    /// Samples in order of time.
    pub samples: Vec<Counted>,
}

/// One sample of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counted {
    /// When it began.
    pub begin: Moment,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Its value, in the unit of the series.
    pub value: Option<f64>,
    /// Number of events counted in that time.
    pub count: Option<f64>,
}

impl Flow {
    /// The latencies reported for this interval, as in [`ReportedLatency::of`].
    pub fn latency(&self, of: &str) -> Option<&ReportedLatency> {
        self.latencies.iter().find(|latency| latency.of == of)
    }
}

impl ReportedLatency {
    /// The `share`-quantile in nanoseconds: as reported, otherwise from the histogram.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let reported = self
            .quantiles
            .iter()
            .find(|(of, _)| (of - share).abs() < 1e-9)
            .map(|(_, value)| *value);
        reported.or_else(|| Some(self.histogram.as_ref()?.quantile(share)?.middle()))
    }
}

impl ReportedLatency {
    /// Combines the latencies of several flows that ran together, as far as possible. Quantiles are
    /// available only if all flows have a histogram.
    pub fn together(of: &str, all: &[ReportedLatency]) -> Self {
        let counts: Option<Vec<f64>> = all
            .iter()
            .map(|one| one.count.map(|count| count as f64))
            .collect();
        let total = counts
            .as_ref()
            .map(|counts| counts.iter().sum::<f64>())
            .filter(|total| *total > 0.0);
        let weighted = |of: &dyn Fn(&ReportedLatency) -> Option<f64>| {
            let parts = all
                .iter()
                .zip(counts.as_ref()?)
                .map(|(one, count)| Some(of(one)? * count));
            Some(parts.sum::<Option<f64>>()? / total?)
        };
        let mean = weighted(&|one| one.mean);
        let squares = weighted(&|one| Some(one.deviation?.powi(2) + one.mean?.powi(2)));
        let extreme = |of: fn(&ReportedLatency) -> Option<f64>, pick: fn(f64, f64) -> f64| {
            all.iter()
                .map(of)
                .collect::<Option<Vec<f64>>>()?
                .into_iter()
                .reduce(pick)
        };
        let histograms: Option<Vec<&Histogram>> =
            all.iter().map(|one| one.histogram.as_ref()).collect();
        let sum = histograms
            .filter(|all| all.iter().all(|one| one.count() < 1 << 50))
            .map(|all| all.into_iter().collect());
        ReportedLatency {
            of: of.into(),
            count: all
                .iter()
                .try_fold(0u64, |sum, one| sum.checked_add(one.count?)),
            mean,
            min: extreme(|one| one.min, f64::min),
            max: extreme(|one| one.max, f64::max),
            deviation: squares
                .zip(mean)
                .map(|(squares, mean)| (squares - mean * mean).max(0.0).sqrt()),
            quantiles: Vec::new(),
            histogram_end: all
                .iter()
                .filter_map(|one| one.histogram_end)
                .reduce(f64::min),
            histogram: sum.filter(is_countable),
        }
    }
}

/// True if the counts of the histogram have a sum in the valid range.
pub fn is_countable(histogram: &Histogram) -> bool {
    let sum = histogram
        .buckets()
        .try_fold(0u64, |sum, (.., count)| sum.checked_add(count));
    sum.is_some_and(|sum| (1..1 << 62).contains(&sum))
}

impl Counted {
    /// The value: as reported, otherwise the count per second.
    pub fn rate(&self) -> Option<f64> {
        let counted = || Some(self.count? / self.seconds.filter(|seconds| *seconds > 0.0)?);
        self.value.or_else(counted)
    }
}
