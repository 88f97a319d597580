//! What a single visit to a load tells of the noise of the run.
//!
//! Input: the operations of a visit, and of all visits to its load. Output: how far its figures lie from theirs.

use crate::figures::quantile::quantile_of_visit;
use rigel_model::record::Histogram;
use rigel_stats::noise::Deviation;

/// The quantiles of response times that have an interval.
pub(super) const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// What one visit adds to the figures of its class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VisitPart {
    /// Of its throughput, but for the dispersion: the variance of independent operations.
    pub(super) rate: Deviation,
    /// The dispersion of the operations in its windows, and its degrees of freedom.
    pub(super) dispersion: (f64, f64),
    /// Of each quantile.
    pub(super) quantiles: [Option<Deviation>; 3],
}

impl VisitPart {
    /// What a visit with `done` operations, whose `windows` have these numbers of them, adds to a load at which
    /// `expected` are usual in its time. The response times are those of the visit, and of all visits.
    pub(super) fn of(
        (done, windows): (u64, &[f64]),
        expected: f64,
        [visit, all]: [&Histogram; 2],
    ) -> Self {
        let degrees = windows.len() as f64 - 1.0;
        let mean = windows.iter().sum::<f64>() / windows.len() as f64;
        let squares: f64 = windows.iter().map(|count| (count - mean).powi(2)).sum();
        let dispersion = squares / degrees / mean;
        // Half an operation keeps the logarithm finite.
        Self {
            dispersion: if dispersion.is_finite() {
                (dispersion, degrees)
            } else {
                (0.0, 0.0)
            },
            rate: Deviation {
                size: ((done as f64 + 0.5) / (expected + 0.5)).ln(),
                counted: 1.0 / (expected + 0.5),
            },
            quantiles: QUANTILES.map(|q| quantile_of_visit(visit, all, q)),
        }
    }
}
