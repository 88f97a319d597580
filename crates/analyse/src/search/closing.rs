//! The closing measurements: whether they differ from what the search found, and both together.
//!
//! Input: the points of a calibration. Output: the figures of its closing measurements, and the throughput of
//! the search and of one of them together, or a warning that they differ.

use super::at_load::AtLoad;
use crate::figures::quantity::count;
use crate::point::summary::PointSummary;
use crate::point::visits::Variation;
use rigel_model::{Coordinates, Figure, Finding, FindingName, Ratio};
use serde::Serialize;

/// What the closing measurements of fixed length found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ClosingFigures {
    /// Random reads at the knee.
    pub knee: Option<AtLoad>,
    /// Large random reads, the last of those that go on without a pause.
    pub large: Option<AtLoad>,
    /// Random writes at the depth of maximum throughput.
    pub writes: Option<AtLoad>,
}

impl ClosingFigures {
    /// Those of these points.
    pub(super) fn of(points: &[PointSummary]) -> Self {
        let find = |wanted: fn(Coordinates) -> bool| {
            let closing = points.iter().rfind(|point| wanted(point.coordinates))?;
            AtLoad::of(closing, closing.classes.first()?)
        };
        Self {
            knee: find(|at| matches!(at, Coordinates::ClosingDepth { .. })),
            large: find(|at| at.is_without_pause(true)),
            writes: find(|at| matches!(at, Coordinates::ClosingWrite { .. })),
        }
    }
}

/// Whether what was searched and its closing measurement differ by more than both intervals and this fraction:
/// of three such pairs in a run, one would often differ by more than chance does in a single one. Where chance is
/// known of the closing one alone, by more than this fraction.
pub(super) fn differ_by(margin: Ratio, (searched, closing): &(AtLoad, AtLoad)) -> bool {
    let (one, other) = (searched.iops, closing.iops);
    let is_unknown = one.spread().is_none() && other.spread().is_some();
    let is_apart = one.least() > other.greatest() || other.least() > one.greatest();
    is_apart && other.differs_from(one, margin.get())
        || is_unknown && (one.value / other.value).ln().abs() > margin.get()
}

/// The throughput of the search and of the closing measurement, in proportion to their times in `seconds`. The
/// closing measurement is in one piece, so that a change between visits adds to its error, if it is more than
/// chance. Where they differ by more than chance, if only by a little, one of them may be slightly less than the
/// other for another reason.
pub(super) fn together(
    searched: AtLoad,
    closing: AtLoad,
    seconds: [f64; 2],
    variation: Option<Variation>,
) -> AtLoad {
    let [search_s, closing_s] = seconds;
    let share = closing_s / (closing_s + search_s);
    let closing = match variation.filter(Variation::is_significant) {
        Some(variation) => closing.iops.with_error(variation.of_a_visit()),
        None => closing.iops,
    };
    let both = searched.iops.mixed_with(closing, share);
    let both = if searched.iops.differs_from(closing, 0.0) {
        both.covering(searched.iops).covering(closing)
    } else {
        both
    };
    if both.is_known() {
        searched.with_rate(both)
    } else {
        searched
    }
}

/// Says of what was searched that its closing measurement differs, if it does.
pub(super) fn differs(
    (what, figure): (&str, Figure),
    missed: Option<&(AtLoad, AtLoad)>,
) -> Option<Finding> {
    let (searched, closing) = missed?;
    let lost = closing.iops.value < searched.iops.value;
    let finding = Finding::warning(
        FindingName::ClosingDiffers,
        format!(
            "{what}: short measurements gave {} IOPS, the closing measurement {} at depth {}: {}",
            count(searched.iops.value.round()),
            count(closing.iops.value.round()),
            closing.depth,
            if lost {
                "they missed stalls or slow phases, or the storage's credit ran out"
            } else {
                "the storage was slower during the search"
            }
        ),
        "the result is that of the closing measurement; `--for 15min` measures every load for \
         longer, and `rigel soak` for hours",
    );
    Some(finding.at(Some(figure)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use rigel_stats::estimate::Estimate;
    use rigel_stats::mean::{Limits, Spread};

    #[test]
    fn a_closing_measurement_replaces_what_has_no_interval() {
        let margin = Ratio::from_percent(2.0).unwrap();
        let at = |iops: Estimate| examples::at(4, 8192, iops.value).with_rate(iops);
        let spread = Spread {
            error: 0.005,
            degrees: 19.0,
        };
        let known = |value| at(Estimate::with_spread(value, spread));
        let anything = |high| Limits { low: 0.0, high };
        let unknown = |value: f64| at(Estimate::new(value, Some(anything(Some(2.0 * value)))));
        // Writes that were fast on credit, and whose rate had no interval.
        assert!(differ_by(margin, &(unknown(5090.0), known(3000.0))));
        assert!(!differ_by(margin, &(unknown(3030.0), known(3000.0))));
        assert!(!differ_by(margin, &(known(3300.0), unknown(3000.0))));
        assert!(differ_by(margin, &(known(3300.0), known(3000.0))));
        assert!(!differ_by(margin, &(known(3010.0), known(3000.0))));
    }
}
