//! For how long throughput held. Storage that lends burst credit for longer does less after it.
//!
//! Input: points, and the findings of their run. Output: one count for each size of operation.

use crate::point::summary::PointSummary;
use rigel_model::{Finding, FindingName};
use serde::Serialize;

/// The findings of a run whose throughput did not hold.
const CHANGED: [FindingName; 4] = [
    FindingName::BurstCredit,
    FindingName::ClosingDiffers,
    FindingName::Drift,
    FindingName::Unsteady,
];

/// Operations of one size through which throughput held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HeldOperations {
    /// Bytes of one operation.
    pub io_bytes: u32,
    /// Number of them.
    pub operations: u64,
    /// The time in which they were measured, in seconds.
    pub measured_s: f64,
}

impl HeldOperations {
    /// That of the points of which `is_own` is true; `None` if there are none.
    pub fn of(points: &[PointSummary], is_own: impl Fn(&PointSummary) -> bool) -> Option<Self> {
        let own = || points.iter().filter(|point| is_own(point));
        let classes = || own().filter_map(|point| point.classes.first());
        Some(Self {
            io_bytes: classes().next()?.io_bytes,
            operations: classes().map(|class| class.done).sum(),
            measured_s: own().map(|point| point.measured_s).sum(),
        })
    }
}

/// True if throughput held in a run with these findings, and those of its points.
pub fn is_unchanged(findings: &[Finding], points: &[PointSummary]) -> bool {
    let of_points = points.iter().flat_map(|point| &point.findings);
    let mut all = findings.iter().chain(of_points);
    !all.any(|finding| CHANGED.iter().any(|name| finding.is(*name)))
}
