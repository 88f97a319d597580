//! Formats the figures of rounds, and merges those that share a point of a chart.

use crate::document::{Merge, Series, Shape};
use crate::parts;
use rigel_analyse::Quantity;
use rigel_model::Moment;

/// Maximum number of points of a series; with more rounds, several share a point.
pub(super) const POINTS_MAX: usize = 2000;

/// The position of a moment on the axis of local time. All moments use the UTC offset of the first;
/// otherwise the hour that is repeated in autumn would be drawn over the previous one.
pub fn wall(moment: Moment, first: Moment) -> f64 {
    moment.by_the_clock_of(first).wall_seconds() as f64
}

/// Formats a value of a quantity with its unit.
pub(crate) fn show(of: Quantity, value: f64) -> String {
    match of {
        Quantity::Rate => parts::per_second(value),
        Quantity::P99Us => parts::time(value),
    }
}

/// The series of rounds over time; with many rounds, several share a point.
pub fn thinned<T>(
    name: &str,
    rounds: &[T],
    begin: impl Fn(&T) -> f64,
    value: &dyn Fn(&T) -> Option<f64>,
    merge: Merge,
) -> Series {
    let shared = || rounds.chunks(rounds.len().div_ceil(POINTS_MAX).max(1));
    let merged = |some: &[T]| merge.of(&some.iter().filter_map(value).collect::<Vec<f64>>());
    Series {
        name: name.into(),
        shape: Shape::Line,
        x: shared().map(|some| begin(&some[0])).collect(),
        y: shared().map(merged).collect(),
        merge,
        ..Series::default()
    }
}
