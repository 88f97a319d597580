//! The request of `rigel curve` and `rigel sql run`.

use rigel_analyse::plan::SqlTerms;
use rigel_analyse::plan::ranks::is_alone;
use rigel_analyse::plan::search::LARGE;
use rigel_model::{Arrivals, Bound, Bytes, Load, LogKind, Mix, Nanos, Pattern, Provisioned, Ratio};
use serde::{Deserialize, Serialize};
use std::fmt;

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

/// What a stream does that runs during every point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackgroundKind {
    /// Random reads, large ones if nothing else is said.
    Large,
    /// Random reads.
    Read,
    /// Random writes, as those of pages.
    Write,
}

impl BackgroundKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Large, Self::Read, Self::Write];

    /// Its name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The name of its stream.
    pub const fn stream(self) -> &'static str {
        match self {
            Self::Large => LARGE,
            Self::Read => "reads beside",
            Self::Write => "writes beside",
        }
    }

    /// What it does, in words.
    const fn words(self) -> &'static str {
        match self {
            Self::Large => "large reads",
            Self::Read => "reads",
            Self::Write => "writes",
        }
    }
}

/// A stream that runs during every point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// What it does.
    pub kind: BackgroundKind,
    /// Bytes of one I/O.
    pub length: u32,
    /// Outstanding I/Os; in an open loop the maximum.
    pub depth: u32,
    /// I/Os per second of an open loop, at random times; `None` for a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<u64>,
}

impl Background {
    /// Its load.
    pub fn load(self) -> Load {
        match self.per_s {
            None => Load::Closed { depth: self.depth },
            Some(rate) => Load::Open {
                rate: rate as f64,
                arrivals: Arrivals::Poisson,
                in_flight_max: self.depth,
            },
        }
    }
}

/// `large reads of 1 MiB, 2 outstanding`; `reads of 8 KiB, 5000/s`.
impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, size) = (self.kind.words(), Bytes(self.length.into()));
        match self.per_s {
            None => write!(f, "{what} of {size}, {} outstanding", self.depth),
            Some(rate) => write!(f, "{what} of {size}, {rate}/s"),
        }
    }
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
    /// Depths are writers of a log with files of its own, of each of these; empty if the volume is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogKind>,
    /// The streams that run during every point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<Background>,
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
