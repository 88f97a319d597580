//! Open loops that waited for Rigel's own limit of operations in flight, and not for the storage.
//!
//! Input: the points of a run. Output: the same, with what says nothing of the storage left undecided.

use crate::point::backlog::RateMet;
use crate::point::summary::{ClassSummary, PointSummary};
use rigel_model::{DemandKind, Finding, FindingName};
use rigel_stats::verdict::BoundVerdict;

/// Leaves undecided whether loads are served at which all operations that may be in flight were, and took no
/// longer than at the lowest load: with more of them in flight the storage may serve it. One operation at a time,
/// as of the writer of a log, and the sessions of a database are what was to be measured.
pub(super) fn undecide_full_flights(points: &mut [PointSummary]) {
    for at in 0..points.len() {
        for own in 0..points[at].classes.len() {
            let class = &points[at].classes[own];
            if is_full(class) && is_as_fast_as_any(class, points) {
                let most = class.in_flight_max;
                let point = &mut points[at];
                undecide(&mut point.classes[own]);
                point.findings.push(Finding::warning(
                    FindingName::NotReached,
                    format!(
                        "all {most} operations that Rigel keeps in flight were outstanding, and took no longer \
                         than at low load: the storage may serve more"
                    ),
                    "run several at once: `mpiexec -n 4 rigel …`",
                ));
            }
        }
    }
}

/// True if a load was not met while nearly all operations were in flight that may be.
fn is_full(class: &ClassSummary) -> bool {
    const NEARLY_ALL: f64 = 0.9;
    let is_limited = class.met == Some(RateMet::No)
        && class.failed.is_empty()
        && class.in_flight_max > 1
        && class.name != DemandKind::Operations.words();
    let in_flight = service_us(class).map_or(0.0, |us| class.iops * us / 1e6);
    is_limited && in_flight >= NEARLY_ALL * class.in_flight_max as f64
}

/// True if its operations took no longer in the storage than those of any other load.
fn is_as_fast_as_any(class: &ClassSummary, points: &[PointSummary]) -> bool {
    const AS_FAST: f64 = 1.25;
    let alike = points
        .iter()
        .flat_map(|point| &point.classes)
        .filter(|other| {
            other.io_bytes == class.io_bytes && (other.reads == 0) == (class.reads == 0)
        });
    let fastest = alike
        .filter(|other| other.met != Some(RateMet::No))
        .filter_map(service_us);
    let fastest = fastest.fold(f64::INFINITY, f64::min);
    service_us(class).is_some_and(|own| own <= AS_FAST * fastest && fastest.is_finite())
}

/// The mean time of an operation in the storage.
fn service_us(class: &ClassSummary) -> Option<f64> {
    Some(class.service.or(class.latency)?.mean_us)
}

fn undecide(class: &mut ClassSummary) {
    class.met = Some(RateMet::Undecided);
    class.late = None;
    if let Some(within) = &mut class.within {
        within.verdict = BoundVerdict::Undecided;
    }
    if let Some(judged) = &mut class.objective {
        judged.verdict = BoundVerdict::Undecided;
    }
}
