//! Demand: what a database asks of its storage, and what it got.
//!
//! A demand is a header and intervals; an interval has a stream for each kind of I/O. Plain data. A
//! figure that the source does not give is `None`, never 0 and never a guess. A figure that was
//! derived from others says so.

use super::{DemandAt, LogKind, Moment, SqlWork};
use serde::{Deserialize, Serialize};

/// The kinds of I/O of a database, each with its own size, concurrency and need for speed.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DemandKind {
    /// Reads of one block each.
    RandomReads,
    /// Reads of several blocks through the buffer cache: scans.
    MultiblockReads,
    /// Reads past the buffer cache, into a session's own memory.
    DirectReads,
    /// Reads that Exadata's cells answer; other storage would have to deliver all of it.
    SmartScans,
    /// Pages that the database writes in the background.
    PageWrites,
    /// Writes past the buffer cache: loads, temporary segments.
    DirectWrites,
    /// Page writes and direct writes together, where the source does not separate them.
    PageAndDirectWrites,
    /// Appends to the log, each durable before the next.
    LogWrites,
    /// Operations of sessions on a database, which makes the I/O of them.
    Operations,
}

impl DemandKind {
    /// Every kind, in the order of reports.
    pub const ALL: [DemandKind; 9] = [
        Self::RandomReads,
        Self::MultiblockReads,
        Self::DirectReads,
        Self::SmartScans,
        Self::PageWrites,
        Self::DirectWrites,
        Self::PageAndDirectWrites,
        Self::LogWrites,
        Self::Operations,
    ];

    /// The kind in words: `random reads`.
    pub fn words(self) -> &'static str {
        match self {
            Self::RandomReads => "random reads",
            Self::MultiblockReads => "multi-block reads",
            Self::DirectReads => "direct reads",
            Self::SmartScans => "smart scans",
            Self::PageWrites => "page writes",
            Self::DirectWrites => "direct writes",
            Self::PageAndDirectWrites => "page and direct writes",
            Self::LogWrites => "log writes",
            Self::Operations => "operations",
        }
    }

    /// True for reads.
    pub fn is_read(self) -> bool {
        matches!(
            self,
            Self::RandomReads | Self::MultiblockReads | Self::DirectReads | Self::SmartScans
        )
    }
}

/// The share of operations whose latency lies between two bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LatencyShare {
    /// Label of the bucket as the source prints it: `<512us`.
    pub label: String,
    /// Lower bound in microseconds.
    pub low_us: f64,
    /// Upper bound in microseconds; `None` for the last bucket, which has none.
    pub high_us: Option<f64>,
    /// Share of all operations, from 0 to 1.
    pub share: f64,
}

impl LatencyShare {
    /// True if both are of the same bucket.
    pub fn is_same_bucket(&self, other: &LatencyShare) -> bool {
        let bits = |one: &LatencyShare| (one.low_us.to_bits(), one.high_us.map(f64::to_bits));
        bits(self) == bits(other)
    }
}

/// One kind of I/O in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DemandStream {
    /// The kind of I/O.
    pub kind: DemandKind,
    /// Operations per second.
    pub per_s: Option<f64>,
    /// Mean size of an operation in bytes.
    pub mean_bytes: Option<f64>,
    /// Mean latency as the database saw it.
    pub mean_us: Option<f64>,
    /// The interval in which that mean lies, from the printed digits of the source.
    pub mean_range_us: Option<(f64, f64)>,
    /// Number of operations behind the latency.
    pub waits: Option<f64>,
    /// Distribution of the latency as the database saw it; empty if the source has none.
    pub latencies: Vec<LatencyShare>,
    /// How the rate was derived, from which figures of the source.
    pub rate_of: String,
    /// Which event or column the latency is of.
    pub latency_of: String,
}

/// I/O of one interval that is not part of the demand: backups, archiving, control files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftOut {
    /// Read, in 2^20 bytes per second.
    pub read_mib_per_s: f64,
    /// Written, in 2^20 bytes per second.
    pub write_mib_per_s: f64,
}

/// The operations of sessions that Rigel ran on a database, which made the I/O of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DemandOperations {
    /// Operations per second.
    pub per_s: f64,
    /// Mean response time, as the sessions saw it.
    pub mean_us: Option<f64>,
    /// Mean response time of those that only read.
    pub read_mean_us: Option<f64>,
    /// Number of sessions.
    pub sessions: u32,
    /// What each operation did.
    pub work: SqlWork,
}

/// What a database asked for in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DemandInterval {
    /// The file or snapshots that it was read from.
    pub label: String,
    /// When it began.
    pub begin: Option<Moment>,
    /// Its length.
    pub seconds: Option<f64>,
    /// Its streams; a kind that the source says nothing about is missing.
    pub streams: Vec<DemandStream>,
    /// I/O that is left out; `None` if the source does not distinguish it.
    pub left_out: Option<LeftOut>,
    /// Why the database might have asked for more if the storage had been faster; empty if nothing
    /// speaks for it.
    pub censored: String,
    /// What its sessions did; `None` unless they were Rigel's: nobody else's statements are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<DemandOperations>,
}

impl DemandInterval {
    /// The stream of a kind.
    pub fn stream(&self, kind: DemandKind) -> Option<&DemandStream> {
        self.streams.iter().find(|stream| stream.kind == kind)
    }

    /// I/O operations per second of all streams whose rate is known.
    pub fn operations_per_s(&self) -> f64 {
        self.streams.iter().filter_map(|stream| stream.per_s).sum()
    }
}

/// What a database asks of its storage over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Demand {
    /// What was read: `AWR`, `Statspack`, `AWR-Miner`.
    pub source: String,
    /// Database and instance in words.
    pub database: String,
    /// Release of the database.
    pub release: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// Size of a block in bytes.
    pub block_bytes: Option<u32>,
    /// How the database writes its log; `None` if the source does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// The intervals, in order of time.
    pub intervals: Vec<DemandInterval>,
    /// The instances of which this is the sum; empty if it is not a sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sum_of: Vec<String>,
    /// True if a device was observed, and no database: its latency is that of storage, whatever it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_device: bool,
}

impl Demand {
    /// The interval with the most I/O operations, and the share of intervals with fewer.
    pub fn busiest(&self) -> Option<(&DemandInterval, f64)> {
        let rate = DemandInterval::operations_per_s;
        let busiest = self
            .intervals
            .iter()
            .max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
        let fewer = self
            .intervals
            .iter()
            .filter(|interval| rate(interval) < rate(busiest))
            .count();
        Some((busiest, fewer as f64 / self.intervals.len() as f64))
    }

    /// I/O operations per second of its busiest interval; 0 without any.
    pub fn peak_operations_per_s(&self) -> f64 {
        let busiest = self.busiest();
        busiest.map_or(0.0, |(interval, _)| interval.operations_per_s())
    }

    /// The interval that `at` names, and the share of intervals with fewer I/O operations; `None` if
    /// there is no such interval.
    pub fn interval_at(&self, at: DemandAt) -> Option<(&DemandInterval, f64)> {
        /// Share of the busiest intervals that p95 leaves out, in percent.
        const LEFT_OUT_PERCENT: usize = 5;
        let chosen = match at {
            DemandAt::Peak => return self.busiest(),
            DemandAt::P95 => {
                let mut ranked: Vec<&DemandInterval> = self.intervals.iter().collect();
                ranked.sort_by(|one, other| {
                    other.operations_per_s().total_cmp(&one.operations_per_s())
                });
                *ranked.get((ranked.len() * LEFT_OUT_PERCENT).div_ceil(100))?
            }
            // By the clock on the wall: people type a time as the report prints it.
            DemandAt::Time(time) => self.intervals.iter().find(|interval| {
                let into = interval
                    .begin
                    .map(|begin| (time.wall_seconds() - begin.wall_seconds()) as f64);
                into.zip(interval.seconds)
                    .is_some_and(|(into, seconds)| (0.0..seconds).contains(&into))
            })?,
        };
        let rate = chosen.operations_per_s();
        let fewer = self
            .intervals
            .iter()
            .filter(|interval| interval.operations_per_s() < rate)
            .count();
        Some((chosen, fewer as f64 / self.intervals.len() as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{self, stream};

    fn interval(label: &str, per_s: f64) -> DemandInterval {
        DemandInterval {
            label: label.into(),
            ..examples::interval(vec![stream(DemandKind::RandomReads, per_s, None)])
        }
    }

    #[test]
    fn the_busiest_interval_has_the_most_operations() {
        let demand = Demand {
            source: "AWR".into(),
            database: "X".into(),
            release: None,
            host: None,
            block_bytes: None,
            log: None,
            intervals: vec![
                interval("a", 5.0),
                interval("b", 9.0),
                interval("c", 1.0),
                interval("d", 9.0),
            ],
            sum_of: Vec::new(),
            is_device: false,
        };
        let (busiest, below) = demand.busiest().unwrap();
        assert!((busiest.operations_per_s() - 9.0).abs() < 1e-12);
        assert!((below - 0.5).abs() < 1e-12);
        assert!(busiest.stream(DemandKind::LogWrites).is_none());
    }

    #[test]
    fn an_interval_is_found_by_rank_and_by_time() {
        let begin: Moment = "2026-04-23T10:00".parse().unwrap();
        let intervals: Vec<DemandInterval> = (0..40)
            .map(|hour| DemandInterval {
                begin: Some(begin.plus_seconds(3600 * hour)),
                ..interval(&format!("hour {hour}"), 100.0 + hour as f64)
            })
            .collect();
        let demand = Demand {
            source: "AWR".into(),
            database: "X".into(),
            release: None,
            host: None,
            block_bytes: None,
            log: None,
            intervals,
            sum_of: Vec::new(),
            is_device: false,
        };
        let label = |at: &str| {
            let (interval, below) = demand.interval_at(at.parse().unwrap())?;
            Some((interval.label.clone(), (below * 40.0).round()))
        };
        assert_eq!(label("peak"), Some(("hour 39".into(), 39.0)));
        // The two busiest of forty are 5 %.
        assert_eq!(label("p95"), Some(("hour 37".into(), 37.0)));
        assert_eq!(label("2026-04-23T12:59"), Some(("hour 2".into(), 2.0)));
        assert_eq!(label("2026-04-23T09:59"), None);
        assert_eq!(label("2026-04-25T02:00"), None);
    }
}
