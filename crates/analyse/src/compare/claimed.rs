//! What Oracle's own calibration claims, beside a calibration of ours of the same storage.

use crate::search::at_load::AtLoad;
use crate::search::calibration::Calibration;
use rigel_model::Step;
use rigel_model::record::imported::ClaimedCalibration;
use serde::Serialize;

/// The greatest latency that `CALIBRATE_IO` accepts if it is given none, in milliseconds.
const BOUND_MS: f64 = 20.0;

/// A claim and our figures within the same bound of latency.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ClaimBeside {
    /// The claim.
    pub claim: ClaimedCalibration,
    /// The bound in milliseconds.
    pub bound_ms: f64,
    /// True if the claim does not state its bound, and the procedure's default is taken.
    pub is_default_bound: bool,
    /// Our load with the most reads per second whose mean latency is within the bound, which is how
    /// `CALIBRATE_IO` judges.
    pub by_mean: Option<AtLoad>,
    /// Our load with the most reads per second whose p99 is within the bound.
    pub by_p99: Option<AtLoad>,
    /// Our large reads: `MAX_MBPS`.
    pub large: Option<AtLoad>,
    /// Our single stream: `MAX_PMBPS`.
    pub stream: Option<AtLoad>,
}

/// Puts `ours` beside the latest of `claims`; `None` if there is no claim.
pub fn beside(claims: &[ClaimedCalibration], ours: &Calibration) -> Option<ClaimBeside> {
    let claim = claims.last()?;
    let bound_ms = claim.asked_latency_ms.unwrap_or(BOUND_MS);
    let loads: Vec<AtLoad> = ours
        .points
        .iter()
        .filter(|point| point.step() == Step::Depth)
        .filter_map(|point| AtLoad::of(point, point.classes.first()?))
        .collect();
    let most = |latency_us: fn(&AtLoad) -> f64| {
        loads
            .iter()
            .filter(|at| latency_us(at) <= bound_ms * 1e3)
            .max_by(|one, other| one.iops.value.total_cmp(&other.iops.value))
            .copied()
    };
    Some(ClaimBeside {
        claim: claim.clone(),
        bound_ms,
        is_default_bound: claim.asked_latency_ms.is_none(),
        by_mean: most(|at| at.mean_us.value),
        by_p99: most(|at| at.p99_us.value),
        large: ours.large,
        stream: ours.stream,
    })
}
