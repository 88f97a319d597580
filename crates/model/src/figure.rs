//! The figures that an answer has, one for each kind of load: what a doubt is about.

use super::point::{Coordinates, Step};
use serde::{Deserialize, Serialize};

/// A headline figure. A doubt about one does not affect the others.
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
pub enum Figure {
    /// Most small reads per second.
    MaxIops,
    /// Most bytes per second, of large reads.
    MaxThroughput,
    /// Response times of one small read at a time.
    LowLoad,
    /// The highest offered rate that keeps the bound.
    SustainedRate,
    /// Writes.
    Writes,
    /// Durable appends to a log.
    LogWrites,
}

impl Figure {
    /// As a sentence names it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::MaxIops => "max IOPS",
            Self::MaxThroughput => "MB/s",
            Self::LowLoad => "p99 at low load",
            Self::SustainedRate => "the sustained rate",
            Self::Writes => "writes",
            Self::LogWrites => "log writes",
        }
    }
}

impl Coordinates {
    /// The figure that a point at these coordinates is for; `None` of points that test the storage as a whole.
    pub fn figure(self) -> Option<Figure> {
        Some(match self.step() {
            Step::Depth if self.outstanding() == 1 => Figure::LowLoad,
            Step::Closing if matches!(self, Self::ClosingWrite { .. }) => Figure::Writes,
            Step::Depth | Step::Again | Step::Closing => Figure::MaxIops,
            Step::Rate => Figure::SustainedRate,
            Step::Large | Step::Stream => Figure::MaxThroughput,
            Step::Write | Step::Mixed | Step::LargeWrite | Step::Precondition => Figure::Writes,
            Step::Log => Figure::LogWrites,
            Step::Cell
            | Step::Pass
            | Step::Within
            | Step::Reread
            | Step::Refill
            | Step::Layer
            | Step::Round
            | Step::Hosts
            | Step::Neighbours
            | Step::Arm
            | Step::Multiple => return None,
        })
    }
}
