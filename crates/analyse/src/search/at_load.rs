//! The figures of one class of a point, with their intervals.

use crate::figures::latency::LatencyFigure;
use crate::point::backlog::RateMet;
use crate::point::summary::{ClassSummary, PointSummary};
use crate::point::visits::Variation;
use rigel_model::{Coordinates, Step};
use rigel_stats::estimate::Estimate;
use serde::Serialize;
use std::num::NonZeroU32;

/// The figures of a class at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AtLoad {
    /// Outstanding I/Os; in an open loop, the maximum allowed. Of each rank, if there are several.
    pub depth: u32,
    /// Number of ranks that measured together; `None` if one process measured alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<NonZeroU32>,
    /// Bytes of one I/O.
    pub io_bytes: u32,
    /// Completed I/Os per second.
    pub iops: Estimate,
    /// Megabytes (10^6) per second.
    pub mb_per_s: Estimate,
    /// Mean response time.
    pub mean_us: Estimate,
    /// Median response time.
    pub p50_us: Estimate,
    /// 99th percentile of response time.
    pub p99_us: Estimate,
    /// 99.9th percentile of response time.
    pub p999_us: Estimate,
    /// SNIA's steady-state judgement; `None` if there are too few windows.
    pub steady: Option<bool>,
}

impl AtLoad {
    /// The figures of this class at this point; `None` if nothing completed.
    pub fn of(point: &PointSummary, class: &ClassSummary) -> Option<Self> {
        let iops = class.rate();
        Some(Self {
            // Use the depth of the class: another stream of the point may be deeper.
            depth: if class.outstanding > 0 {
                point.outstanding_each(class)
            } else {
                point.coordinates.outstanding()
            },
            ranks: point.ranks.and_then(NonZeroU32::new),
            io_bytes: class.io_bytes,
            iops,
            mb_per_s: iops.scaled(class.operation_bytes() / 1e6),
            mean_us: class.time(LatencyFigure::Mean)?,
            p50_us: class.time(LatencyFigure::P50)?,
            p99_us: class.time(LatencyFigure::P99)?,
            p999_us: class.time(LatencyFigure::P999)?,
            steady: class.steady.and_then(|steady| steady.steady),
        })
    }

    /// The same load with another throughput.
    pub(super) fn with_rate(self, iops: Estimate) -> Self {
        Self {
            iops,
            mb_per_s: iops.scaled(self.mb_per_s.value / self.iops.value),
            ..self
        }
    }

    /// The same with a rate that is the mean over a run of this variation: states of the storage that last
    /// longer than a visit are no chance that more visits make smaller.
    #[must_use]
    pub fn in_states(self, variation: Option<Variation>) -> Self {
        match variation.and_then(|variation| variation.lasting) {
            Some(lasting) => self.with_rate(self.iops.with_error(lasting)),
            None => self,
        }
    }

    /// The same with a rate that is not known better than a measurement can tell.
    pub(super) fn with_least_error(self) -> Self {
        self.with_rate(self.iops.with_least_error())
    }
}

/// The random reads that wait for no other: those of depth 1; `None` if there are none.
pub fn reads_alone(points: &[PointSummary]) -> Option<&ClassSummary> {
    let mut depths = points.iter().filter(|point| point.step() == Step::Depth);
    let alone = depths.find(|point| point.coordinates.depth() == Some(1))?;
    alone.classes.first()
}

/// The figures at one offered rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AtRate {
    /// I/Os per second that were due.
    pub offered_per_s: f64,
    /// Whether they were served.
    pub met: RateMet,
    /// What was measured.
    pub at: AtLoad,
}

impl AtRate {
    /// The figures of the first class of this point; `None` if it is no offered rate, or nothing
    /// completed.
    pub(super) fn of(point: &PointSummary) -> Option<Self> {
        let is_rate = matches!(point.coordinates, Coordinates::Rate { .. });
        let class = point.classes.first().filter(|_| is_rate)?;
        Some(Self {
            offered_per_s: class.offered?,
            met: if class.is_not_met() {
                RateMet::No
            } else {
                class.met?
            },
            at: AtLoad::of(point, class)?,
        })
    }
}
