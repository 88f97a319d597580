//! The shape of a closed loop's curve: knee, cap and scalability.

use super::knee::{Cap, CurvePoint, Knee, cap, knee};
use super::usl::{Usl, usl};
use crate::analyse::point::summary::ClassSummary;
use serde::Serialize;

impl CurvePoint {
    /// A point of a closed loop's curve, for the knee; `None` if it has too few data for an error
    /// estimate.
    #[must_use]
    pub fn of(class: &ClassSummary) -> Option<Self> {
        let response = class.latency?.mean_us / 1e6;
        Some(Self {
            load: f64::from(class.outstanding),
            throughput: class.confidence?.iops,
            response,
        })
    }
}

/// What the shape of a closed loop's curve shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurveShape {
    /// The load beyond which latency grows and throughput does not.
    pub knee: Option<Knee>,
    /// The hard limit that throughput reaches, if there is one.
    pub cap: Option<Cap>,
    /// The fitted Universal Scalability Law.
    pub usl: Option<Usl>,
}

/// The shape of these points' curve; throughput within the fraction `tolerance` of the maximum
/// counts as equal to it.
#[must_use]
pub fn curve_shape<'a>(
    classes: impl Iterator<Item = &'a ClassSummary>,
    tolerance: f64,
) -> CurveShape {
    let loads: Vec<CurvePoint> = classes.filter_map(CurvePoint::of).collect();
    let pairs: Vec<(f64, f64)> = loads
        .iter()
        .map(|point| (point.load, point.throughput.value))
        .collect();
    CurveShape {
        knee: knee(&loads, tolerance),
        cap: cap(&loads),
        usl: usl(&pairs),
    }
}
