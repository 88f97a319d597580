//! The highest offered rate within a bound on response time: where a curve through all rates meets
//! the bound, what each rate shows by itself, and which rate to offer next.
//!
//! Input: the summaries of a run's points. Each rate is judged by the interval of its share of
//! operations within the bound, or by all rates together if the storage stalls: kept, broken or
//! undecided.

use super::at_load::{AtLoad, reads_alone};
use super::bracket::Bracket;
use super::crossing::{
    Crossing, ServiceTimes, StallShare, expected_rate, highest_met, is_interrupted,
};
use super::full_flights::undecide_full_flights;
use super::shape::CurveShape;
use crate::figures::quantity::count;
use crate::point::summary::PointSummary;
use rigel_model::{Arrivals, Bound, Coordinates, Finding, Nanos, Step};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::Limits;
use rigel_stats::verdict::BoundVerdict;
use serde::Serialize;

/// The rate at which a bound is met exactly; beside it the highest offered rate that certainly kept
/// the bound, and the lowest that certainly did not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Sustained {
    /// The rate at which the bound is met exactly, by all offered rates. `None` without
    /// a bound, or if one end of its interval is not known.
    pub rate: Option<Estimate>,
    /// Figures at the highest rate that was fully served and certainly kept the bound; `None` if no
    /// rate did.
    pub kept: Option<AtLoad>,
    /// The offered rate of that point, as planned.
    pub kept_rate: Option<u64>,
    /// The lowest offered rate that certainly broke the bound or was not met, always above
    /// `kept_rate`; `None` if there was none.
    pub broken_rate: Option<u64>,
    /// The lowest rate between these two for which the measured time did not decide; `None` if
    /// there was none.
    pub undecided_rate: Option<u64>,
    /// The highest rate that kept the bound above one that did not: the storage changed. `None` if
    /// there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradicting_rate: Option<u64>,
    /// Whether any rate is served and keeps the bound; `None` if none was offered.
    pub offered_verdict: Option<BoundVerdict>,
    /// Whether any depth of a closed loop kept the bound; `None` without depths or bound.
    pub constant_verdict: Option<BoundVerdict>,
    /// Figures at the closed-loop depth of highest throughput whose response times certainly keep
    /// the bound.
    pub closed: Option<AtLoad>,
    /// How the operations of the rates were spaced.
    #[serde(skip)]
    pub arrivals: Arrivals,
    /// The offered rates between which the bound is met exactly.
    #[serde(skip)]
    bracket: Bracket<f64>,
}

impl Sustained {
    /// Whether any load kept the bound, offered or constant; undecided if none was measured.
    pub fn verdict(&self) -> BoundVerdict {
        let measured = || {
            self.offered_verdict
                .into_iter()
                .chain(self.constant_verdict)
        };
        if measured().next().is_none() {
            return BoundVerdict::Undecided;
        }
        BoundVerdict::any_of(measured())
    }

    /// The same, with a closed loop whose throughput is that of `maximum` if its depth is on the
    /// curve's plateau: which of the plateau's depths had the highest is chance. It is never higher,
    /// and no offered rate above a plateau is served.
    pub fn at_most(self, maximum: Option<AtLoad>, curve: &CurveShape) -> Self {
        let closed = self.closed.map(|at| {
            let plateau = curve.knee.map(|knee| knee.plateau.from..=knee.plateau.to);
            let is_level = plateau.is_some_and(|depths| depths.contains(&f64::from(at.depth)));
            maximum
                .filter(|maximum| is_level || at.iops.value > maximum.iops.value)
                .map_or(at, |maximum| at.with_rate(maximum.iops))
        });
        let most = maximum
            .filter(|_| curve.knee.is_some_and(|knee| knee.bounded_above))
            .map(|most| most.iops);
        let capped = |rate: Estimate| {
            let Some(most) = most else { return rate };
            // A rate beyond the maximum is known no better than that.
            let least = if rate.value > most.value {
                most.least()
            } else {
                most.value
            };
            let interval = rate.interval.map(|limits| Limits {
                low: limits.low.min(least),
                high: limits.high.map(|high| high.min(most.greatest())),
            });
            Estimate::new(rate.value.min(most.value), interval)
        };
        Self {
            closed,
            rate: self.rate.map(capped),
            ..self
        }
    }

    /// The same of operations that were spaced so.
    #[must_use]
    pub fn arriving(self, arrivals: Arrivals) -> Self {
        Self { arrivals, ..self }
    }

    /// Warnings of rates that contradict each other, and of a rate that is hardly known.
    pub fn warnings(&self) -> impl Iterator<Item = Finding> {
        self.contradiction().into_iter().chain(self.uncertainty())
    }

    /// Warns of a rate that is hardly known.
    fn uncertainty(&self) -> Option<Finding> {
        let hint = "measure longer, with `--for 15min`";
        self.bracket
            .uncertainty(self.rate, ("the rate within the bound", hint), |rate| {
                format!("{} per second", count(rate))
            })
    }

    /// Warns of a rate that was served above one that was not.
    fn contradiction(&self) -> Option<Finding> {
        self.bracket
            .contradiction(|rate| format!("{} per second", count(rate)))
    }
}

/// The points that offered a rate, with it, the first class of operations, and what is known of the
/// rate: rising. No rate above `most` is served for long.
fn rates<'a>(
    points: &'a [PointSummary],
    (crossing, most): (Option<&Crossing>, f64),
) -> Vec<(f64, &'a PointSummary, BoundVerdict)> {
    let judged = |point: &'a PointSummary| {
        let (rate, class) = (point.coordinates.rate()? as f64, point.classes.first()?);
        let own = class.sustained();
        let verdict = match crossing {
            _ if rate > most => BoundVerdict::Broken,
            Some(crossing) if !class.is_not_met() => crossing.judged(rate, own),
            _ => own,
        };
        Some((rate, point, verdict))
    };
    let mut rates: Vec<_> = points.iter().filter_map(judged).collect();
    rates.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    rates
}

/// The rates that kept the bound and those that did not, in the first class of these points. Only
/// rates below the lowest that did not are the answer.
pub fn sustained(points: &[PointSummary]) -> Sustained {
    sustained_below(points, f64::INFINITY, false)
}

/// The same for a storage that serves at most this rate for long, whatever it served for a while. If credit was
/// `used_up`, a curve that meets the bound above that is of rates on credit; else if a rate above it kept the bound.
pub fn sustained_below(points: &[PointSummary], most: f64, used_up: bool) -> Sustained {
    /// A rate of this part of what closed loops did is low.
    const LOW: f64 = 0.5;
    let on_credit = |point: &PointSummary| {
        let is_above = point
            .coordinates
            .rate()
            .is_some_and(|rate| rate as f64 > most);
        let mut classes = point.classes.iter();
        is_above && classes.any(|class| class.sustained() == BoundVerdict::Kept)
    };
    let has_credit = points.iter().any(on_credit);
    let crossing = crossing(points)
        .filter(|crossing| !(has_credit || used_up && crossing.root().value > most));
    let mut rates = rates(points, (crossing.as_ref(), most));
    // If all were served on credit, nothing is known of lower ones.
    if rates.iter().all(|(rate, ..)| *rate > most) {
        rates.clear();
    }
    let bracket = Bracket::of(rates.iter().map(|(rate, _, verdict)| (*rate, *verdict)));
    let held = rates
        .iter()
        .find(|(rate, ..)| bracket.held == Some(*rate))
        .and_then(|(_, point, _)| AtLoad::of(point, point.classes.first()?));
    let depths = || {
        points
            .iter()
            .filter(|point| point.step() == Step::Depth)
            .filter_map(|point| Some((point, point.classes.first()?)))
            .filter(|(_, class)| class.within.is_some())
    };
    let between = || bracket.between(most).filter(|_| !(has_credit || used_up));
    let rate = crossing
        .and_then(|crossing| crossing.within(&bracket, most))
        .or_else(between);
    let rate = rate.filter(is_estimate);
    let of_depths = depths().map(|(_, class)| class.sustained());
    let constant_verdict = depths().next().map(|_| BoundVerdict::any_of(of_depths));
    let low = LOW * capacity(points);
    let are_high = rates.first().is_some_and(|(lowest, ..)| *lowest > low);
    let offered_verdict = match bracket.verdict() {
        // Below a root that is known, the bound is kept.
        _ if rate.is_some() => BoundVerdict::Kept,
        // While credit runs out, or in a stall, all high rates break it, and a lower one may keep it.
        BoundVerdict::Broken if constant_verdict == Some(BoundVerdict::Kept) && are_high => {
            BoundVerdict::Undecided
        }
        verdict => verdict,
    };
    Sustained {
        rate,
        kept: held,
        kept_rate: bracket.held.map(whole),
        broken_rate: bracket.not_held.map(whole),
        undecided_rate: bracket.undecided.map(whole),
        contradicting_rate: bracket.held_above.map(whole),
        offered_verdict: (!rates.is_empty()).then_some(offered_verdict),
        constant_verdict,
        closed: depths()
            .filter(|(_, class)| class.sustained() == BoundVerdict::Kept)
            .max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
            .and_then(|(point, class)| AtLoad::of(point, class)),
        arrivals: Arrivals::Poisson,
        bracket,
    }
}

/// True if the rate is known to within this factor: beyond it, a value would say what nobody knows.
fn is_estimate(rate: &Estimate) -> bool {
    const FACTOR: f64 = 4.0;
    rate.greatest() <= FACTOR * rate.least()
}

/// The rate that says most about the sustained one when it is offered next; `None` if there is no curve
/// yet. `turn` is the number of rates offered for it so far.
pub fn rate_beside(points: &[PointSummary], turn: usize) -> Option<f64> {
    let rate = crossing(points)?.next_load(turn);
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// The rate that theory expects to be the sustained one; `None` without depths, or if it expects none.
pub fn rate_expected(points: &[PointSummary], bound: Bound) -> Option<f64> {
    let rate = expected_rate(capacity(points), bound, service_times(points));
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// The curve through all offered rates.
fn crossing(points: &[PointSummary]) -> Option<Crossing> {
    let rates = points.iter().filter_map(|point| {
        let class = point.classes.first()?;
        class.within?;
        Some((point.coordinates.rate()? as f64, class))
    });
    Crossing::of(rates, service_times(points), stalls(points))
}

/// Times of operations at depth 1, where nothing waits.
fn service_times(points: &[PointSummary]) -> ServiceTimes {
    let alone = reads_alone(points).and_then(ServiceTimes::of);
    alone.unwrap_or(ServiceTimes::UNKNOWN)
}

/// The stalls that all reads show, whatever their size. Where no depth was measured, as much is
/// served as is offered.
fn stalls(points: &[PointSummary]) -> StallShare {
    let capacity = Some(capacity(points)).filter(|capacity| *capacity > 0.0);
    let mut share = StallShare::below(capacity.unwrap_or(f64::INFINITY));
    let is_read = |point: &PointSummary| {
        is_small_read(point) || matches!(point.step(), Step::Large | Step::Stream | Step::Refill)
    };
    let reads = points.iter().filter(|point| is_read(point));
    let rate_of = |point: &PointSummary| point.coordinates.rate().map_or(0.0, |rate| rate as f64);
    let classes = || {
        reads
            .clone()
            .filter_map(|point| Some((point, point.classes.first()?)))
    };
    let highest = highest_met(classes().map(|(point, class)| (rate_of(point), class)));
    for (point, class) in classes() {
        if is_interrupted((rate_of(point), class), highest) {
            share.include_interrupted(class, point.measured_s);
        } else {
            share.include(class, point.measured_s);
        }
    }
    share.confirmed()
}

/// What all points together say of one that it does not show itself: loads that waited for Rigel, and stalls
/// that it met none of.
pub fn judge_together(points: &mut [PointSummary]) {
    undecide_full_flights(points);
    open_to_stalls(points);
}

/// Takes the upper end from each quantile of an offered rate that met no stall, if those of the other
/// measurements come often enough to decide about it: the rate met none by chance.
fn open_to_stalls(points: &mut [PointSummary]) {
    /// The part of the operations beyond a quantile that may be delayed by stalls before they count.
    const PART: f64 = 0.2;
    let stalls = stalls(points);
    let offered = points
        .iter_mut()
        .filter_map(|point| Some((point.coordinates.rate()? as f64, point)));
    for (rate, point) in offered {
        let classes = point
            .classes
            .iter_mut()
            .filter(|class| class.stalls.is_none());
        for known in classes.filter_map(|class| class.confidence.as_mut()) {
            for (q, limits) in [(0.99, &mut known.p99_us), (0.999, &mut known.p999_us)] {
                let decides = |high| {
                    let beyond = stalls.late_at_most(rate, Nanos::from_micros_f64(high));
                    beyond > PART * (1.0 - q)
                };
                if let Some(limits) = limits
                    && limits.high.is_some_and(decides)
                {
                    limits.high = None;
                }
            }
        }
    }
}

/// True if the point has random reads of the small size over the whole volume, in a closed loop or
/// offered.
fn is_small_read(point: &PointSummary) -> bool {
    matches!(
        point.coordinates,
        Coordinates::Depth { .. } | Coordinates::ClosingDepth { .. } | Coordinates::Rate { .. }
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive; casts saturate"
)]
fn whole(rate: f64) -> u64 {
    rate as u64
}

/// The highest throughput of any depth, in operations per second.
fn capacity(points: &[PointSummary]) -> f64 {
    points
        .iter()
        .filter(|point| point.step() == Step::Depth)
        .filter_map(|point| point.classes.first())
        .map(|class| class.iops)
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn a_rate_beyond_the_maximum_is_known_no_better_than_the_maximum() {
        let found = examples::calibration();
        let around = |value: f64, low: f64, high: f64| {
            let high = Some(high);
            Estimate::new(value, Some(Limits { low, high }))
        };
        let most = examples::at(16, 8192, 1000.0).with_rate(around(1000.0, 960.0, 1040.0));
        let capped = |rate: Estimate| {
            let sustained = Sustained {
                rate: Some(rate),
                ..found.sustained
            };
            let capped = sustained.at_most(Some(most), &found.curve).rate.unwrap();
            (capped.value, capped.least(), capped.greatest())
        };
        // The storage was faster while rates were offered.
        assert_eq!(
            capped(around(1030.0, 999.0, 1100.0)),
            (1000.0, 960.0, 1040.0)
        );
        assert_eq!(capped(around(990.0, 980.0, 1100.0)), (990.0, 980.0, 1040.0));
        assert_eq!(capped(around(900.0, 880.0, 920.0)), (900.0, 880.0, 920.0));
    }
}
