//! The request of `rigel curve` and `rigel sql run`.

use rigel_analyse::plan::SqlTerms;
use rigel_analyse::plan::ranks::is_alone;
use rigel_model::{Arrivals, Bound, LogKind, Mix, Nanos, Pattern, Provisioned, Ratio};
use serde::{Deserialize, Serialize};

/// The loads of a curve, ascending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loads {
    /// Outstanding I/Os of a closed loop.
    Depths(Vec<u32>),
    /// Offered operations per second.
    Rates(Vec<u64>),
    /// Offered operations per second, in percent of a closed loop's maximum throughput.
    Percents(Vec<f64>),
}

impl Loads {
    /// The maximum number of concurrent database sessions; `in_flight_max` is that of an open loop,
    /// and of the search for the maximum.
    pub fn most_sessions(&self, in_flight_max: u32) -> u32 {
        match self {
            Loads::Depths(depths) => depths.iter().copied().max().unwrap_or(1),
            Loads::Rates(_) | Loads::Percents(_) => in_flight_max,
        }
    }
}

/// A closed-loop stream of another size that runs during every point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// Bytes of one I/O.
    pub length: u32,
    /// Outstanding I/Os.
    pub depth: u32,
}

/// The options of `curve`. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveRequest {
    /// True if `rigel sql run` asked for it.
    #[serde(skip)]
    pub is_sql_run: bool,
    /// The loads.
    pub loads: Loads,
    /// How the due times of an open loop are spaced.
    pub arrivals: Arrivals,
    /// Maximum number of operations in flight in an open loop.
    pub in_flight_max: u32,
    /// Bytes of one I/O.
    pub length: u32,
    /// Reads and writes.
    pub mix: Mix,
    /// The blocks to visit.
    pub pattern: Pattern,
    /// Depths are writers of a log, whose own file is in this state; `None` if the volume is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// The second stream, if there is one.
    pub background: Option<Background>,
    /// The latency bound, if there is one.
    #[serde(default)]
    pub bound: Option<Bound>,
    /// What the volume was sold with, if the user said that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<Provisioned>,
    /// A point ends when the half-width of its figures' 95 % intervals is below this fraction of
    /// their values.
    pub precision: Ratio,
    /// Minimum measured time of a point, over all its visits; 0 in runs of versions that measured
    /// each point in one piece.
    #[serde(default)]
    pub point_least: Nanos,
    /// Maximum measured time of a point, precise or not.
    pub point_most: Nanos,
    /// The work of database sessions; `None` for raw I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlTerms>,
    /// Operations per second that the last rank offers while the others climb; `None` if that is
    /// not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours_per_s: Option<u64>,
    /// Number of ranks that measure together; 0 if one process measures alone. Depths are those of
    /// each rank, offered rates those of all together.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub ranks: u32,
}

impl CurveRequest {
    /// Maximum number of operations in flight on a connection; 1 for raw I/O.
    pub fn pipeline(&self) -> u32 {
        self.sql.map_or(1, |terms| terms.work.pipeline)
    }
}
