//! The request of `rigel curve` and `rigel sql run`.

use crate::model::{Arrivals, Bound, Mix, Nanos, Pattern, Ratio, SqlWork, WarmUp};
use serde::{Deserialize, Serialize};

/// The loads of a curve, ascending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loads {
    /// Outstanding I/Os of a closed loop.
    Depths(Vec<u32>),
    /// Offered operations a second.
    Rates(Vec<u64>),
    /// Offered operations a second, in percent of the greatest throughput of a closed loop.
    Percents(Vec<f64>),
}

impl Loads {
    /// The greatest number of a database's sessions at the same time; `in_flight_max` is that of an open loop, and of
    /// the search for the maximum.
    #[must_use]
    pub fn most_sessions(&self, in_flight_max: u32) -> u32 {
        match self {
            Loads::Depths(depths) => depths.iter().copied().max().unwrap_or(1),
            Loads::Rates(_) | Loads::Percents(_) => in_flight_max,
        }
    }
}

/// A closed stream of another size beside every point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// Bytes of one I/O.
    pub length: u32,
    /// Outstanding I/Os.
    pub depth: u32,
}

/// What `curve` was asked for. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveRequest {
    /// The loads.
    pub loads: Loads,
    /// How the due times of an open loop are spaced.
    pub arrivals: Arrivals,
    /// Most operations of an open loop in flight.
    pub in_flight_max: u32,
    /// Bytes of one I/O.
    pub length: u32,
    /// Reads and writes.
    pub mix: Mix,
    /// Which blocks.
    pub pattern: Pattern,
    /// What runs beside.
    pub background: Option<Background>,
    /// The response time that is judged, if one was asked about.
    #[serde(default)]
    pub bound: Option<Bound>,
    /// Half-width of a figure's 95 % interval, as a share of it, at which a point ends.
    pub precision: Ratio,
    /// Maximum time of a point, precise or not.
    pub point_most: Nanos,
    /// What the sessions of a database do; none for raw I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlTerms>,
}

/// What the sessions of a database do, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SqlTerms {
    /// What they do.
    pub work: SqlWork,
    /// When a point ends.
    pub stop: SqlStop,
    /// What comes before measuring.
    pub warm_up: WarmUp,
    /// Timeout of a statement at the server; none: as it is set there.
    pub statement_timeout: Option<Nanos>,
}

/// When a point with sessions of a database ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlStop {
    /// As a curve's points do: when the figures are precise.
    Precise,
    /// After this long.
    Elapsed(Nanos),
    /// After this number of operations of each session.
    OpsOfEach(u64),
}
