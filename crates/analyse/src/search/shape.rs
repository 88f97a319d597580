//! The shape of a closed loop's curve: plateau, knee and cap.

use crate::point::summary::{ClassSummary, PointSummary};
use rigel_stats::knee::{Cap, CurvePoint, Knee, cap, knee};
use serde::Serialize;

/// A point of a closed loop's curve, for the knee; `None` if it has too few data for an error
/// estimate.
fn curve_point(point: &PointSummary, class: &ClassSummary) -> Option<CurvePoint> {
    let throughput = class.confidence?.iops;
    Some(CurvePoint {
        load: f64::from(point.outstanding_each(class)),
        throughput,
        response: class.latency?.mean_us / 1e6,
    })
}

/// What the shape of a closed loop's curve shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CurveShape {
    /// The load beyond which latency grows and throughput does not, and the throughput there.
    pub knee: Option<Knee>,
    /// The hard limit that throughput reaches, if there is one.
    pub cap: Option<Cap>,
}

/// The shape of these points' curve; throughput within the fraction `margin` of the plateau counts
/// as equal to it.
pub fn curve_shape<'a>(
    points: impl Iterator<Item = (&'a PointSummary, &'a ClassSummary)>,
    margin: f64,
) -> CurveShape {
    let loads: Vec<CurvePoint> = points
        .filter_map(|(point, class)| curve_point(point, class))
        .collect();
    CurveShape {
        knee: knee(&loads, margin),
        cap: cap(&loads),
    }
}
