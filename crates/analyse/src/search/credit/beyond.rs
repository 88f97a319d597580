//! How much load a run put on the storage: burst credit that lasts longer is in its figures.
//!
//! Input: points. Output: one count for each size of operation.

use crate::point::summary::PointSummary;
use rigel_model::{Finding, FindingName};
use serde::Serialize;

/// Operations of one size, during which no burst credit was seen to run out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CreditBeyond {
    /// Bytes of one operation.
    pub io_bytes: u32,
    /// Number of them.
    pub operations: u64,
    /// The time in which they were measured, in seconds.
    pub measured_s: f64,
}

impl CreditBeyond {
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

/// True if burst credit was used up in a run with these findings.
pub fn credit_ended(findings: &[Finding]) -> bool {
    let mut findings = findings.iter();
    findings.any(|finding| finding.is(FindingName::BurstCredit))
}
