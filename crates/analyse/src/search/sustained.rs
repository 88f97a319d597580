//! The highest offered rate within a bound on response time: where a curve through all rates meets
//! the bound, what each rate shows by itself, and which rate a closing measurement can be expected
//! to confirm.
//!
//! Input: the summaries of a run's points. Each rate is judged by the interval of its share of
//! operations within the bound: kept, broken or undecided.

use super::at_load::AtLoad;
use super::bracket::Bracket;
use super::crossing::{Crossing, ServiceTimes, StallShare};
use super::shape::CurveShape;
use crate::figures::confidence::{BoundCheck, BoundVerdict, Estimate, shows_kept};
use crate::figures::quantity::count;
use crate::point::summary::{ClassSummary, PointSummary};
use rigel_model::{Bound, Coordinates, Finding, Nanos, Step};
use rigel_stats::mean::Interval;
use serde::Serialize;

/// The rate at which a bound is met exactly; beside it the highest offered rate that certainly kept
/// the bound, and the lowest that certainly did not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sustained {
    /// The rate at which the bound is met exactly, by a curve through all offered rates. `None`
    /// without a bound, if no operation was late, or if one end of its interval is not known.
    pub rate: Option<Estimate>,
    /// Figures at the highest rate that was fully served and certainly kept the bound; `None` if no
    /// rate did. If it was confirmed, those of the closing measurement.
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
    /// Whether any offered rate was served and kept the bound; `None` if none was offered.
    pub offered_verdict: Option<BoundVerdict>,
    /// Whether any depth of a closed loop kept the bound; `None` without depths or bound.
    pub constant_verdict: Option<BoundVerdict>,
    /// True if a fresh measurement of the rate kept the bound too; `None` if there was none.
    pub confirmed: Option<bool>,
    /// Figures at the closed-loop depth of highest throughput whose response times certainly keep
    /// the bound.
    pub closed: Option<AtLoad>,
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
    /// curve's plateau: which of the plateau's depths had the highest is chance. It is never higher.
    pub fn at_most(self, maximum: Option<AtLoad>, curve: &CurveShape) -> Self {
        let closed = self.closed.map(|at| {
            let plateau = curve.knee.map(|knee| knee.plateau.from..=knee.plateau.to);
            let is_level = plateau.is_some_and(|depths| depths.contains(&f64::from(at.depth)));
            maximum
                .filter(|maximum| is_level || at.iops.value > maximum.iops.value)
                .map_or(at, |maximum| at.with_rate(maximum.iops))
        });
        Self { closed, ..self }
    }

    /// Warns of a rate that was served above one that was not.
    pub fn contradiction(&self) -> Option<Finding> {
        let (broken, above) = self.broken_rate.zip(self.contradicting_rate)?;
        let bracket = Bracket::of([(broken, BoundVerdict::Broken), (above, BoundVerdict::Kept)]);
        bracket.contradiction(|rate| format!("{} per second", count(rate as f64)))
    }
}

/// A measurement of an offered rate.
#[derive(Clone, Copy)]
struct Measured<'a> {
    point: &'a PointSummary,
    class: &'a ClassSummary,
}

impl<'a> Measured<'a> {
    fn of(point: &'a PointSummary) -> Option<Self> {
        let class = point.classes.first()?;
        Some(Self { point, class })
    }

    /// The check of the bound, if the rate was met.
    fn check(self) -> Option<BoundCheck> {
        self.class.within.filter(|_| !self.class.is_not_met())
    }
}

/// An offered rate and its measurements, of which there is at least one.
struct RateVerdict<'a> {
    rate: u64,
    searched: Option<Measured<'a>>,
    closing: Option<Measured<'a>>,
}

impl<'a> RateVerdict<'a> {
    /// What search and closing measurement show together. The closing measurement decides, if it
    /// can.
    fn verdict(&self) -> BoundVerdict {
        let searched = self.searched.map(|of| of.class.sustained());
        let closing = self.closing.map(|of| of.class.sustained());
        match (searched, closing) {
            (Some(BoundVerdict::Kept), Some(BoundVerdict::Undecided)) if !self.is_confirmed() => {
                BoundVerdict::Undecided
            }
            (Some(searched), None | Some(BoundVerdict::Undecided)) => searched,
            (_, Some(decided)) => decided,
            (None, None) => BoundVerdict::Undecided,
        }
    }

    fn is_confirmed(&self) -> bool {
        self.closing.is_some_and(|of| of.class.kept())
    }

    /// The measurement that the figures are taken from.
    fn best(&self) -> Option<Measured<'a>> {
        self.closing.or(self.searched)
    }
}

/// The rate that a point offered, in the search or in a closing measurement.
fn offered(point: &PointSummary) -> Option<u64> {
    match point.coordinates {
        Coordinates::ClosingRate { rate_per_s, .. } => Some(rate_per_s),
        other => other.rate(),
    }
}

/// The offered rates of a run, rising.
fn rates(points: &[PointSummary]) -> Vec<RateVerdict<'_>> {
    let mut rates: Vec<RateVerdict> = Vec::new();
    for point in points {
        let Some(rate) = offered(point) else { continue };
        let is_closing = matches!(point.coordinates, Coordinates::ClosingRate { .. });
        let Some(measured) = Measured::of(point) else {
            continue;
        };
        let at = rates
            .iter()
            .position(|known| known.rate == rate)
            .unwrap_or_else(|| {
                rates.push(RateVerdict {
                    rate,
                    searched: None,
                    closing: None,
                });
                rates.len() - 1
            });
        let place = if is_closing {
            &mut rates[at].closing
        } else {
            &mut rates[at].searched
        };
        *place = Some(measured);
    }
    rates.sort_by_key(|one| one.rate);
    rates
}

/// Where these rates, rising, stop being served within the bound.
fn bracket(rates: &[RateVerdict]) -> Bracket<u64> {
    Bracket::of(rates.iter().map(|one| (one.rate, one.verdict())))
}

/// The rates that kept the bound and those that did not, in the first class of these points. Only
/// rates below the lowest that did not are the answer. Where closing measurements kept the bound, it
/// is the highest of them. Where one broke what the search found certain, nothing is believed that
/// no closing measurement confirms.
pub fn sustained(points: &[PointSummary]) -> Sustained {
    let rates = rates(points);
    let bracket = bracket(&rates);
    let is_kept = |one: &&RateVerdict| {
        one.verdict() == BoundVerdict::Kept && bracket.held.is_some_and(|held| one.rate <= held)
    };
    let lowest_refused = rates
        .iter()
        .filter(|one| one.closing.is_some() && one.verdict() == BoundVerdict::Broken)
        .map(|one| one.rate)
        .min();
    let searched_kept = |of: Measured| of.class.sustained() == BoundVerdict::Kept;
    let is_refuted = lowest_refused.is_some_and(|refused| {
        rates
            .iter()
            .any(|one| one.rate >= refused && one.searched.is_some_and(searched_kept))
    });
    let confirmed = rates.iter().filter(is_kept).rfind(|one| one.is_confirmed());
    let best = confirmed.or_else(|| rates.iter().rfind(is_kept).filter(|_| !is_refuted));
    let depths = || {
        points
            .iter()
            .filter(|point| point.step() == Step::Depth)
            .filter_map(|point| Some((point, point.classes.first()?)))
            .filter(|(_, class)| class.within.is_some())
    };
    let offered_verdict = match bracket.verdict() {
        // What is not believed is not known.
        BoundVerdict::Kept if best.is_none() => BoundVerdict::Undecided,
        verdict => verdict,
    };
    let kept_rate = best.map(|one| one.rate);
    Sustained {
        rate: root(points).and_then(|root| within(root, kept_rate, bracket.not_held)),
        kept: best
            .and_then(RateVerdict::best)
            .and_then(|of| AtLoad::of(of.point, of.class)),
        kept_rate,
        broken_rate: bracket.not_held,
        undecided_rate: bracket.undecided,
        contradicting_rate: bracket.held_above,
        offered_verdict: (!rates.is_empty()).then_some(offered_verdict),
        constant_verdict: depths()
            .next()
            .map(|_| BoundVerdict::any_of(depths().map(|(_, class)| class.sustained()))),
        confirmed: best
            .filter(|one| one.closing.is_some())
            .map(RateVerdict::is_confirmed),
        closed: depths()
            .filter(|(_, class)| class.sustained() == BoundVerdict::Kept)
            .max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
            .and_then(|(point, class)| AtLoad::of(point, class)),
    }
}

/// The rate at which the bound is met exactly, by a curve through all offered rates.
fn root(points: &[PointSummary]) -> Option<Estimate> {
    let rates = points.iter().filter_map(|point| {
        let class = point.classes.first()?;
        class.within?;
        Some((offered(point)? as f64, class))
    });
    Some(Crossing::of(rates, service_times(points), stalls(points))?.root())
}

/// The rate with its interval cut where rates were decided by themselves: it is not below one that
/// certainly kept the bound, and not above one that certainly did not. `None` if it contradicts
/// them, or if one end is not known.
fn within(root: Estimate, kept: Option<u64>, broken: Option<u64>) -> Option<Estimate> {
    let limits = root.interval?;
    let low = limits.low.max(kept.map_or(0.0, |rate| rate as f64));
    let broken = broken.map_or(f64::INFINITY, |rate| rate as f64);
    let high = limits.high.unwrap_or(f64::INFINITY).min(broken);
    let is_known = low > 0.0 && high.is_finite() && (low..=high).contains(&root.value);
    is_known.then_some(Estimate {
        interval: Some(Interval { low, high }.into()),
        ..root
    })
}

/// Times of operations at depth 1, where nothing waits.
fn service_times(points: &[PointSummary]) -> ServiceTimes {
    let mut depths = points.iter().filter(|point| point.step() == Step::Depth);
    let alone = depths.find(|point| point.coordinates.depth() == Some(1));
    let class = alone.and_then(|point| point.classes.first());
    class
        .and_then(ServiceTimes::of)
        .unwrap_or(ServiceTimes::UNKNOWN)
}

/// The stalls that all measurements of small reads show.
fn stalls(points: &[PointSummary]) -> StallShare {
    let mut share = StallShare::below(capacity(points));
    for point in points.iter().filter(|point| is_small_read(point)) {
        if let Some(class) = point.classes.first() {
            share.include(class, point.measured_s);
        }
    }
    share
}

/// True if the point has random reads of the small size over the whole volume, in a closed loop or
/// offered.
fn is_small_read(point: &PointSummary) -> bool {
    matches!(
        point.coordinates,
        Coordinates::Depth { .. }
            | Coordinates::ClosingDepth { .. }
            | Coordinates::Rate { .. }
            | Coordinates::ClosingRate { .. }
    )
}

/// Number of visits to offered rates that close a run, if one shows that the bound is kept.
const CLOSINGS: usize = 2;

/// Maximum number of these visits, if none shows it.
const CLOSINGS_MAX: usize = 3;

/// The next rate after one that the closing measurement did not confirm is at most this part of it.
const LOWER: f64 = 0.95;

/// A second rate after one that was confirmed is at least this many times as high.
const HIGHER: f64 = 1.1;

/// The first rate is at least this part of the highest that kept the bound in the search.
const BOLD: f64 = 0.75;

/// The lowest rate to measure for longer, because it probably is one that certainly breaks `bound`;
/// `None` if there is none that further visits can be expected to decide.
pub fn rate_to_refute(points: &[PointSummary], bound: Bound) -> Option<u64> {
    /// Maximum number of visits to a rate.
    const VISITS_MAX: usize = 3;
    /// Minimum gain, as a fraction of the lowest rate that is known to break the bound.
    const GAIN: f64 = 0.1;
    let rates = rates(points);
    let known = bracket(&rates)
        .not_held
        .map_or(f64::INFINITY, |rate| rate as f64);
    rates
        .iter()
        .filter_map(|one| Some((one.rate, one.searched?)))
        .filter(|(rate, _)| (*rate as f64) < (1.0 - GAIN) * known)
        .find(|(_, of)| {
            let visits = of.point.visits_made();
            let times = VISITS_MAX as f64 / visits as f64;
            of.class.sustained() == BoundVerdict::Undecided
                && visits < VISITS_MAX
                && of
                    .check()
                    .is_some_and(|it| it.would_be_broken(times, bound))
        })
        .map(|(rate, _)| rate)
}

/// The rate for the next closing measurement of length `closing`: the highest for which the
/// measurement can be expected to show that `bound` is kept. A rate that was not decided is
/// measured on, if as much time again can be expected to. `None` if there is no such rate, or no
/// need.
pub fn closing_rate(points: &[PointSummary], bound: Bound, closing: Nanos) -> Option<u64> {
    let rates = rates(points);
    let closed = || rates.iter().filter_map(|one| Some((one, one.closing?)));
    let spent: usize = closed().map(|(_, of)| of.point.visits_made()).sum();
    let is_known = rates.iter().any(|one| one.verdict() == BoundVerdict::Kept);
    if spent >= if is_known { CLOSINGS } else { CLOSINGS_MAX } {
        return None;
    }
    let seconds = closing.as_secs_f64();
    let trend = LateShare::of(&rates, capacity(points));
    let expected = |most: f64| trend.as_ref()?.highest(most, seconds, bound);
    let mut held = closed().filter(|(one, _)| one.verdict() == BoundVerdict::Kept);
    if let Some((held, _)) = held.next_back() {
        let lowest_missed = rates
            .iter()
            .filter(|one| one.best().is_some_and(|of| !of.class.kept()))
            .map(|one| one.rate as f64)
            .fold(f64::INFINITY, f64::min);
        return expected(LOWER * lowest_missed)
            .filter(|rate| *rate as f64 > HIGHER * held.rate as f64);
    }
    let is_promising = |of: Measured| {
        let times = 1.0 + seconds / of.point.measured_s.max(f64::MIN_POSITIVE);
        of.class.kept() && of.check().is_some_and(|it| it.would_be_kept(times, bound))
    };
    let again =
        closed().rfind(|(one, of)| one.verdict() == BoundVerdict::Undecided && is_promising(*of));
    if let Some((one, _)) = again {
        return Some(one.rate);
    }
    let tried = closed().map(|(one, _)| one.rate).min();
    let most = tried.map_or(f64::INFINITY, |rate| LOWER * rate as f64);
    // What is above a rate that was not served is never the answer.
    let broken = bracket(&rates).not_held.unwrap_or(u64::MAX);
    let all = || {
        rates
            .iter()
            .filter(|one| one.rate < broken)
            .filter_map(|one| Some((one.rate, one.searched?)))
    };
    let searched = || all().filter(|(rate, _)| *rate as f64 <= most);
    let (highest, _) = all().rfind(|(_, of)| of.class.kept())?;
    let highest = most.min(highest as f64);
    // The first measurement may be bold: if the bound is not shown to be kept, a second follows.
    let least = if tried.is_none() { BOLD * highest } else { 0.0 };
    // What certainly held for a short time is expected to hold for longer.
    let certain = searched()
        .rfind(|(_, of)| of.class.sustained() == BoundVerdict::Kept)
        .map(|(rate, _)| rate);
    let expected = expected(highest).map(|rate| rate.max(whole(least)));
    let promising = || {
        searched()
            .rfind(|(_, of)| is_promising(*of))
            .map(|(rate, _)| rate)
    };
    certain.max(expected).or_else(promising)
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

/// The share of operations beyond a bound as it grows with the offered rate.
///
/// In a queue with exponential service times the probability of a response time above t is about
/// exp(-(c·mu - lambda)·t): its logarithm rises in proportion to the rate lambda (Kleinrock,
/// Queueing Systems, volume 1, 1975).
struct LateShare {
    /// Logarithm of the share at rate 0, and its rise for each operation per second.
    intercept: f64,
    slope: f64,
    /// Rates, rising, with the independent operations that a second is worth there.
    independent_per_s: Vec<(f64, f64)>,
    /// The rate at which the queue no longer drains.
    capacity: f64,
}

impl LateShare {
    /// The trend over all measurements that were met and have an interval; `None` of fewer than
    /// two rates.
    fn of(rates: &[RateVerdict], capacity: f64) -> Option<Self> {
        let (mut weights, mut xs, mut ys) = (Vec::new(), Vec::new(), Vec::new());
        let mut independent_per_s: Vec<(f64, f64)> = Vec::new();
        for one in rates {
            let Some((of, check, count)) = one.best().and_then(|of| {
                let check = of.check()?;
                Some((of, check, check.independent?))
            }) else {
                continue;
            };
            let late = (1.0 - check.share) * count;
            weights.push(late + 0.5);
            xs.push(one.rate as f64);
            ys.push(((late + 0.5) / (count + 1.0)).ln());
            independent_per_s.push((one.rate as f64, count / of.point.measured_s));
        }
        if xs.len() < 2 {
            return None;
        }
        let total: f64 = weights.iter().sum();
        let mean = |of: &[f64]| of.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>() / total;
        let (x, y) = (mean(&xs), mean(&ys));
        let product = |of: &[f64], centre: f64| -> f64 {
            let terms = xs.iter().zip(of).zip(&weights);
            terms
                .map(|((at, value), w)| w * (at - x) * (value - centre))
                .sum()
        };
        let slope = (product(&ys, y) / product(&xs, x)).max(0.0);
        slope.is_finite().then_some(Self {
            intercept: y - slope * x,
            slope,
            independent_per_s,
            capacity,
        })
    }

    /// The highest rate up to `most` for which `seconds` can be expected to show that `bound` is
    /// kept.
    fn highest(&self, most: f64, seconds: f64, bound: Bound) -> Option<u64> {
        const STEPS: u64 = 100;
        (STEPS / 4..=STEPS)
            .rev()
            .map(|step| most * step as f64 / STEPS as f64)
            .find(|rate| self.is_expected(*rate, seconds, bound))
            .map(whole)
    }

    fn is_expected(&self, rate: f64, seconds: f64, bound: Bound) -> bool {
        /// The share that is planned for is larger than the expected one, which is an estimate.
        const CAUTION: f64 = 1.25;
        let late = (self.intercept + self.slope * rate).exp() * CAUTION;
        late < 1.0 && shows_kept(1.0 - late, self.independent_per_s(rate) * seconds, bound)
    }

    /// By a straight line between the neighbouring rates; above all, that of the highest. Below all,
    /// it grows as the relaxation time of a queue becomes shorter: (sqrt(mu) - sqrt(lambda))^-2
    /// (Cohen, The Single Server Queue, 1982).
    fn independent_per_s(&self, rate: f64) -> f64 {
        let known = &self.independent_per_s;
        let above = known.partition_point(|(at, _)| *at < rate);
        match (above.checked_sub(1).map(|at| known[at]), known.get(above)) {
            (Some((low, of_low)), Some((high, of_high))) => {
                of_low + (of_high - of_low) * (rate - low) / (high - low)
            }
            (Some((_, highest)), None) => highest,
            (None, Some((low, of_low))) => {
                let margin = |rate: f64| self.capacity.sqrt() - rate.sqrt();
                let times = if margin(*low) > 0.0 {
                    (margin(rate) / margin(*low)).powi(2)
                } else {
                    1.0
                };
                (of_low * times).min(rate.max(*of_low))
            }
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trend through these rates, with the share beyond the bound and the independent operations
    /// that a second is worth.
    fn trend(intercept: f64, slope: f64, independent_per_s: &[(f64, f64)]) -> LateShare {
        LateShare {
            intercept,
            slope,
            independent_per_s: independent_per_s.to_vec(),
            capacity: 1000.0,
        }
    }

    #[test]
    fn the_expected_rate_is_lower_the_less_time_there_is_to_show_it() {
        // M/M/1 of 1,000 a second: a response time exceeds 10 ms with exp(-(1000 - rate) / 100).
        let bound: Bound = "10ms@p99".parse().unwrap();
        let found = trend(-10.0, 0.01, &[(300.0, 300.0), (600.0, 300.0)]);
        let at = |seconds| found.highest(600.0, seconds, bound).unwrap();
        assert!(at(10.0) < at(100.0) && at(100.0) < at(10_000.0));
        // With unlimited time, up to where 1.25 of the share is 1 %.
        let limit = (0.01f64 / 1.25).ln() / 0.01 + 1000.0;
        assert!((at(1e9) as f64 - limit).abs() < 7.0, "{} {limit}", at(1e9));
        assert_eq!(found.highest(600.0, 0.1, bound), None);
    }

    #[test]
    fn independent_operations_follow_the_relaxation_time_below_all_rates() {
        let found = trend(0.0, 0.0, &[(490.0, 90.0), (810.0, 10.0)]);
        let at = |rate| found.independent_per_s(rate);
        for (rate, wanted) in [(490.0, 90.0), (650.0, 50.0), (810.0, 10.0), (900.0, 10.0)] {
            assert!((at(rate) - wanted).abs() < 1e-9, "{rate}");
        }
        let margin = |rate: f64| 1000f64.sqrt() - rate.sqrt();
        let times = (margin(360.0) / margin(490.0)).powi(2);
        assert!((at(360.0) - 90.0 * times).abs() < 1e-9);
        // Never more than there are operations.
        let capped = trend(0.0, 0.0, &[(490.0, 480.0)]).independent_per_s(300.0);
        assert!((capped - 480.0).abs() < 1e-9, "{capped}");
    }
}
