//! A data point: a few streams that run together for a while.

use super::{Kind, Nanos, Ratio};
use serde::{Deserialize, Serialize};

/// Where a point lies in the plan's matrix: how many small and large I/Os (or streams) are outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Coordinates {
    /// Outstanding small I/Os.
    pub small: u32,
    /// Outstanding large I/Os, or sequential streams.
    pub large: u32,
}

impl std::fmt::Display for Coordinates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Small={}, Large={}", self.small, self.large)
    }
}

/// One data point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its place in the plan.
    pub coordinates: Coordinates,
    /// What runs, together.
    pub streams: Vec<Stream>,
    /// What comes before measuring.
    pub warm_up: WarmUp,
    /// When it ends.
    pub until: Until,
    /// Seed of every random choice in it.
    pub seed: u64,
}

/// One stream of operations: a load, a workload and the part of the volume it works on.
///
/// Streams of one name are one class: their operations are recorded together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The class, such as `small` or `large`.
    pub name: String,
    /// When operations are due.
    pub load: Load,
    /// Which kinds of operation.
    pub mix: Mix,
    /// Which positions.
    pub pattern: Pattern,
    /// Bytes of one operation.
    pub length: u32,
}

/// When operations are due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Closed loop: a constant number of outstanding operations; one is issued as one completes.
    Closed {
        /// Outstanding operations.
        depth: u32,
    },
    /// Open loop: operations are due at times of their own, whatever the target does.
    Open {
        /// Offered load, operations a second.
        rate: f64,
        /// How the due times are spaced.
        arrivals: Arrivals,
        /// Most operations outstanding; those due beyond it wait, and the wait counts as response time.
        in_flight_max: u32,
    },
}

impl Load {
    /// Places for outstanding operations that the load needs.
    #[must_use]
    pub fn slots(self) -> u32 {
        match self {
            Load::Closed { depth } => depth,
            Load::Open { in_flight_max, .. } => in_flight_max,
        }
    }
}

/// How the due times of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Independent arrivals: exponential gaps.
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// Which kinds of operation a stream is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Share of operations that are writes; each operation is drawn independently.
    pub writes: Ratio,
}

impl Mix {
    /// Reads only.
    pub const READS: Mix = Mix { writes: Ratio::ZERO };

    /// The kinds that can occur in this mix.
    #[must_use]
    pub fn kinds(self) -> &'static [Kind] {
        if self.writes == Ratio::ZERO {
            &[Kind::Read]
        } else if self.writes == Ratio::ONE {
            &[Kind::Write]
        } else {
            &Kind::ALL
        }
    }
}

/// Which positions a stream visits, of the `extent` blocks of its length that the volume holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Independent and equally likely.
    Uniform,
    /// One after the other from `start`, wrapping at the end of the volume.
    Sequential {
        /// First position, in blocks.
        start: u64,
    },
}

/// What comes before measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// At least this long.
    pub least: Nanos,
    /// Measuring begins when throughput is steady, and at the latest now.
    pub most: Nanos,
}

impl WarmUp {
    /// Measure from the first operation.
    pub const NONE: WarmUp = WarmUp { least: Nanos(0), most: Nanos(0) };
}

/// When a point ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// After this long, counted from the end of the warm-up.
    Elapsed(Nanos),
    /// After exactly this many operations of each stream.
    Ops(u64),
}
