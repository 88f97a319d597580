//! Burst credit that runs out: a fast beginning that does not come again.
//!
//! Input: the records of a run. Output: a warning, and what is left without credit. Each kind of load shows
//! it in its own way: a closed loop by a step of its throughput (`steps`), a series of rounds or of visits
//! by rates that stay on a lower level (`series`), an offered rate by response times that grow from some
//! moment on (`fell_behind`).

mod fell_behind;
mod series;
mod steps;

use crate::point::summary::PointSummary;
pub use fell_behind::fell_behind;
use rigel_model::record::PointRecord;
use rigel_model::{Finding, FindingName};
pub(crate) use series::CreditReader;
use series::credit_of_loads;
pub use series::credit_of_visits;
use steps::credit_within;
pub(crate) use steps::{STEP, STEP_DEVIATIONS, counts, ran_out, without_credit};

/// True if burst credit was used up in a run with these findings.
pub fn credit_ended(findings: &[Finding]) -> bool {
    let mut findings = findings.iter();
    findings.any(|finding| finding.is(FindingName::BurstCredit))
}

/// Warns of the first load that shows that credit ran out.
pub(super) fn burst_credit(records: &[PointRecord], points: &[PointSummary]) -> Option<Finding> {
    ran_out(records)
        .or_else(|| credit_within(records, points))
        .or_else(|| fell_behind(records))
        .or_else(|| credit_of_loads(records))
}
