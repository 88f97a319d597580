//! What stalls do to an expectation: a load is measured for seconds, and by luck it meets fewer stalls than are
//! usual, or more.
//!
//! Input: the points of a run. Output: a verdict, with as many stalls as all loads together let expect at most.

use rigel_analyse::plan::visits::time_used;
use rigel_analyse::point::expected::ExpectedVerdict;
use rigel_analyse::point::visits::stalls_met;
use rigel_analyse::search::crossing::StallShare;
use rigel_analyse::{BoundVerdict, Estimate, ExpectedLimit, PointSummary};
use rigel_model::{Expectation, Measure, Nanos};

/// The stalls that the loads of a run met.
pub(super) struct RunStalls(StallShare);

impl RunStalls {
    /// Those of these points.
    pub(super) fn of(points: &[PointSummary]) -> Self {
        // Of no load is said how much is left to drain a queue.
        let mut stalls = StallShare::below(f64::INFINITY);
        for point in points {
            if let Some(class) = point.classes.first() {
                // One that begins in a warm-up is met, too.
                let seconds = time_used(std::slice::from_ref(point));
                stalls.include_events(class, &stalls_met(class), seconds);
            }
        }
        Self(stalls.confirmed())
    }

    /// An expectation at a point, whose interval has what it would be with as many stalls as there may be:
    /// undecided if it is not kept then.
    pub(super) fn judge(
        &self,
        point: &PointSummary,
        condition: &Expectation,
        found: &ExpectedVerdict,
    ) -> ExpectedVerdict {
        let class = point.classes.first().filter(|_| !self.0.is_none());
        let Some((class, figure)) = class.zip(found.figure) else {
            return *found;
        };
        let is_open = class.offered.is_some();
        let share = self.0.late_at_most(0.0, Nanos(0)).min(0.99);
        let calm = found.calm.unwrap_or(1.0);
        let limit = ExpectedLimit::from(condition);
        let by_multiple = |multiple: f64| {
            let widened = with(figure, multiple);
            (widened, limit.verdict(widened) == BoundVerdict::Kept)
        };
        let (widened, is_kept) = match condition.limit.0 {
            Measure::Rate(_) => by_multiple(calm * (1.0 - share)),
            // At the same depth, response time rises as throughput falls.
            Measure::Mean(_) if !is_open => by_multiple(calm / (1.0 - share)),
            Measure::Mean(_) => {
                let waited_us = share * self.0.mean_wait_s() * 1e6;
                by_multiple(calm + waited_us / figure.value)
            }
            // As if no operation were late without stalls.
            Measure::Quantile(quantile, limit) if is_open => {
                (figure, self.0.late_at_most(0.0, limit) < 1.0 - quantile)
            }
            // A stall delays no more operations of a closed loop than are outstanding.
            Measure::Quantile(..) | Measure::Max(_) => (figure, true),
        };
        let found = ExpectedVerdict {
            figure: Some(widened),
            ..*found
        };
        if is_kept || found.verdict != BoundVerdict::Kept {
            return found;
        }
        ExpectedVerdict {
            verdict: BoundVerdict::Undecided,
            times: limit.times_to_decide(widened),
            ..found
        }
    }
}

/// A figure whose interval has this multiple of it.
fn with(figure: Estimate, multiple: f64) -> Estimate {
    let value = figure.value * multiple;
    let interval = figure.interval.map(|mut limits| {
        limits.low = limits.low.min(value);
        limits.high = limits.high.map(|high| high.max(value));
        limits
    });
    Estimate { interval, ..figure }
}
