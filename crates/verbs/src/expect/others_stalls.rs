//! Whether a load kept what is expected of it only since it met fewer stalls than the others.
//!
//! Input: the points of a run. Output: a verdict, with the stalls of all of them. Each load of a list is
//! measured for seconds, and a stall that comes every ten may miss one of them; it misses no run.

use rigel_analyse::point::expected::ExpectedVerdict;
use rigel_analyse::search::crossing::StallShare;
use rigel_analyse::{BoundVerdict, ExpectedLimit, PointSummary};
use rigel_model::{Expectation, Measure, Nanos};

/// The stalls that the loads of a run met.
pub(super) struct OthersStalls(StallShare);

impl OthersStalls {
    /// Those of these points.
    pub(super) fn of(points: &[PointSummary]) -> Self {
        // Of no load is said how much is left to drain a queue.
        let mut stalls = StallShare::below(f64::INFINITY);
        for point in points {
            if let Some(class) = point.classes.first() {
                stalls.include(class, point.measured_s);
            }
        }
        Self(stalls.confirmed())
    }

    /// The verdict of an expectation at a point: undecided if it would not be kept had the point met as many
    /// stalls as may be usual.
    pub(super) fn judge(
        &self,
        point: &PointSummary,
        condition: &Expectation,
        found: &ExpectedVerdict,
    ) -> BoundVerdict {
        let class = point.classes.first();
        let Some((class, figure)) = class.zip(found.figure) else {
            return found.verdict;
        };
        let own = class.stalls.seconds / point.measured_s.max(f64::MIN_POSITIVE);
        // The share of time, or of operations that are due at random times, which stalls delay by more than this.
        let missed = |by: Nanos| (self.0.late_at_most(0.0, by) - own).clamp(0.0, 1.0);
        let share: f64 = missed(Nanos(0));
        let keeps = |factor: f64| {
            ExpectedLimit::from(condition).verdict(figure.scaled(factor)) == BoundVerdict::Kept
        };
        let is_kept = match (condition.limit.0, class.offered) {
            (Measure::Rate(_), _) => keeps(1.0 - share),
            // Of so many outstanding operations a lower rate is a longer time.
            (Measure::Mean(_), None) => keeps(1.0 / (1.0 - share).max(f64::MIN_POSITIVE)),
            // As if all that stalls delay were later than the limit.
            (Measure::Mean(limit), Some(_)) => missed(limit) <= 0.0,
            (Measure::Quantile(quantile, limit), Some(_)) => missed(limit) < 1.0 - quantile,
            // A stall delays no more operations of a closed loop than are outstanding.
            (Measure::Quantile(..), None) | (Measure::Max(_), _) => true,
        };
        match found.verdict {
            BoundVerdict::Kept if !is_kept => BoundVerdict::Undecided,
            verdict => verdict,
        }
    }
}
