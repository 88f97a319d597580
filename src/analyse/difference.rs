//! Whether a figure of one run differs from that of another, and by how much.
//!
//! Goes in: two figures, each with what is known of its error. Comes out: their ratio with its 95 % interval, and the
//! chance that the difference is none. Everything is reckoned on logarithms, on which a ratio is a difference: whether
//! a run is twice as fast or half as fast as another is then the same distance.
//!
//! A mean brings its standard error, by the delta method. A quantile brings only an interval, whose two arms differ: on
//! the logarithm each arm over Student's t is taken for the standard error to that side, and the lower end of the
//! ratio is told from the lower arm of the one and the upper arm of the other (the method of variance estimates
//! recovery: Zou and Donner, Statistics in Medicine 27, 2008). The interval of a quantile reaches to the outer edges of
//! its buckets, so that of the ratio is rather too wide than too narrow.

use super::confidence::Estimate;
use super::statistics::{Interval, Limits, Mean, Spread, t_quantile, welch};
use serde::Serialize;
use std::f64::consts::FRAC_PI_2;

/// The least error of a figure, as a share of it: what the first and last operation of a measurement, which are counted
/// whole or not at all, and the rounding of its length can make. A model without chance would have no error at all.
const ERROR_MIN: f64 = 0.001;

/// A figure of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The figure with its interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// None where its error is not known.
    #[serde(skip)]
    error: Option<LogError>,
}

/// The standard error of a figure's logarithm to either side; above none where the upper end is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LogError {
    below: f64,
    above: Option<f64>,
    degrees: f64,
}

impl Figure {
    /// A figure whose error is not known.
    #[must_use]
    pub fn unknown(value: f64) -> Self {
        Self { estimate: Estimate { value, interval: None }, error: None }
    }

    /// A figure whose error is that of `mean`.
    #[must_use]
    pub fn of_mean(value: f64, mean: Option<Mean>) -> Self {
        let Some(mean) = mean.filter(|mean| mean.value > 0.0) else { return Self::unknown(value) };
        let error = (mean.error / mean.value).max(ERROR_MIN);
        Self {
            estimate: Estimate { value, interval: Some(mean.interval().into()) },
            error: Some(LogError { below: error, above: Some(error), degrees: mean.degrees }),
        }
    }

    /// A quantile with its interval, whose error is known to so many `degrees` of freedom.
    #[must_use]
    pub fn of_quantile(value: f64, known: Option<(Limits, f64)>) -> Self {
        let usable = |(interval, _): &(Limits, f64)| interval.low > 0.0 && interval.contains(value);
        let Some((interval, degrees)) = known.filter(usable) else { return Self::unknown(value) };
        let error = |arm: f64| (arm.ln() / t_quantile(degrees)).max(ERROR_MIN);
        let above = interval.high.map(|high| error(high / value));
        let error = LogError { below: error(value / interval.low), above, degrees };
        Self { estimate: Estimate { value, interval: Some(interval) }, error: Some(error) }
    }

    /// Its interval is one of chance, told from an error.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.error.is_some()
    }

    /// What lies between two values that were tried; its error of chance is not known.
    #[must_use]
    pub fn within(value: f64, interval: Option<Interval>) -> Self {
        Self { estimate: Estimate { value, interval: interval.map(Limits::from) }, error: None }
    }
}

/// What is to be said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The interval of the ratio lies on the good side of 1.
    Better,
    /// The interval of the ratio lies on the bad side of 1.
    Worse,
    /// The interval of the ratio holds 1.
    NoDifferenceShown,
    /// There is no interval.
    NotKnown,
}

/// A figure of a run against that of the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// How many times the baseline's it is.
    pub ratio: f64,
    /// With 95 % confidence: from 0 where the baseline's upper end is not known, and without an upper end where the
    /// other's is not.
    pub interval: Option<Limits>,
    /// By this interval alone.
    pub judgement: Judgement,
    /// None where they are not known.
    #[serde(skip)]
    errors: Option<Errors>,
}

/// The standard error of the logarithm of a ratio, down from it and up from it; none to a side without an end, to which
/// the truth may be any distance away.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Errors {
    down: Option<Spread>,
    up: Option<Spread>,
}

impl Change {
    /// `after` against `before`; `more_is_better` as of a rate. None unless both are above zero.
    #[must_use]
    pub fn of(before: &Figure, after: &Figure, more_is_better: bool) -> Option<Self> {
        let (one, other) = (before.estimate, after.estimate);
        if one.value <= 0.0 || other.value <= 0.0 {
            return None;
        }
        let ratio = other.value / one.value;
        let errors = before.error.zip(after.error).map(|(one, other)| Errors {
            down: one.above.map(|above| welch((above, one.degrees), (other.below, other.degrees))),
            up: other.above.map(|above| welch((one.below, one.degrees), (above, other.degrees))),
        });
        let errors = errors.filter(|errors| errors.down.is_some() || errors.up.is_some());
        let arm = |spread: Spread| (t_quantile(spread.degrees) * spread.error).exp();
        let interval = errors.map(|Errors { down, up }| Limits {
            low: down.map_or(0.0, |down| ratio / arm(down)),
            high: up.map(|up| ratio * arm(up)),
        });
        let judgement = match interval {
            None => Judgement::NotKnown,
            Some(interval) if interval.contains(1.0) => Judgement::NoDifferenceShown,
            Some(interval) if (interval.low > 1.0) == more_is_better => Judgement::Better,
            Some(_) => Judgement::Worse,
        };
        Some(Self { ratio, interval, judgement, errors })
    }

    /// How likely chance makes the ratio differ from `limit` by as much as it does, to this side, if `limit` is the
    /// truth: as likely as not where nothing is known to this side. None where the error is not known.
    #[must_use]
    pub(super) fn chance(&self, limit: f64) -> Option<f64> {
        let Errors { down, up } = self.errors?;
        let distance = (self.ratio / limit).ln();
        let spread = if distance > 0.0 { down } else { up };
        Some(spread.map_or(0.5, |spread| beyond(distance.abs() / spread.error, spread.degrees)))
    }
}

/// The chance that Student's t exceeds `t`, which is not negative. With t = √ν tan θ it is an integral of cos^(ν-1)
/// (Abramowitz and Stegun 26.7.3 and 26.7.4 are its closed forms), here by Simpson's rule. More than a thousand degrees
/// of freedom are taken for a thousand.
fn beyond(t: f64, degrees: f64) -> f64 {
    const STEPS: u32 = 2000;
    let degrees = degrees.clamp(1.0, 1000.0);
    let integral = |from: f64| {
        let step = (FRAC_PI_2 - from) / f64::from(STEPS);
        let value = |index: u32| (from + f64::from(index) * step).cos().max(0.0).powf(degrees - 1.0);
        let weight = |index: u32| if index == 0 || index == STEPS { 1.0 } else { f64::from(2 + 2 * (index % 2)) };
        (0..=STEPS).map(|index| weight(index) * value(index)).sum::<f64>() * step / 3.0
    };
    integral((t / degrees.sqrt()).atan()) / integral(0.0) / 2.0
}

/// Which of these hypotheses stand rejected, given how likely chance is to look as far off as each does, so that the
/// chance of rejecting any one that is true is `level` at most, however they depend on one another: Holm's stepwise
/// Bonferroni (Scandinavian Journal of Statistics 6, 1979).
#[must_use]
pub(super) fn holm(chances: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|one, other| chances[*one].total_cmp(&chances[*other]));
    let mut rejected = vec![false; chances.len()];
    for (place, index) in order.into_iter().enumerate() {
        if chances[index] > level / (chances.len() - place) as f64 {
            break;
        }
        rejected[index] = true;
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::ratio;
    use proptest::prelude::*;

    fn mean(value: f64, error: f64, degrees: f64) -> Mean {
        Mean { value, error, effective_n: degrees + 1.0, degrees }
    }

    fn of_mean(mean: Mean) -> Figure {
        Figure::of_mean(mean.value, Some(mean))
    }

    #[test]
    fn the_chance_beyond_students_t_is_that_of_the_tables() {
        for (t, degrees, chance) in
            [(12.706, 1.0, 0.025), (2.776, 4.0, 0.025), (4.604, 4.0, 0.005), (2.093, 19.0, 0.025), (0.0, 7.0, 0.5)]
        {
            assert!((beyond(t, degrees) / chance - 1.0).abs() < 2e-3, "{t} {degrees}: {}", beyond(t, degrees));
        }
        assert!((beyond(1.96, f64::INFINITY) / 0.025 - 1.0).abs() < 0.01);
    }

    #[test]
    fn holm_divides_the_level_by_what_is_left() {
        assert_eq!(holm(&[0.01, 0.04, 0.03], 0.05), [true, false, false]);
        assert_eq!(holm(&[0.01, 0.02, 0.04], 0.05), [true, true, true]);
        assert_eq!(holm(&[], 0.05), Vec::<bool>::new());
    }

    #[test]
    fn what_differs_is_better_or_worse_by_what_it_is() {
        let (slow, fast) = (of_mean(mean(100.0, 1.0, 19.0)), of_mean(mean(120.0, 1.0, 19.0)));
        let judge = |before, after, more| Change::of(before, after, more).unwrap().judgement;
        assert_eq!(judge(&slow, &fast, true), Judgement::Better);
        assert_eq!(judge(&slow, &fast, false), Judgement::Worse);
        assert_eq!(judge(&fast, &slow, true), Judgement::Worse);
        let near = of_mean(mean(101.0, 1.0, 19.0));
        assert_eq!(judge(&slow, &near, true), Judgement::NoDifferenceShown);
        assert_eq!(judge(&slow, &Figure::unknown(120.0), true), Judgement::NotKnown);
        assert_eq!(Change::of(&slow, &Figure::unknown(0.0), true), None);
    }

    #[test]
    fn what_only_lies_between_two_values_is_not_judged() {
        let between = |low, high| Figure::within(low, Some(Interval { low, high }));
        let change = Change::of(&between(90.0, 95.0), &between(96.0, 100.0), true).unwrap();
        assert_eq!((change.judgement, change.interval), (Judgement::NotKnown, None));
    }

    #[test]
    fn an_upper_end_that_is_not_known_says_nothing_to_its_side() {
        let p99 = |value: f64, high| Figure::of_quantile(value, Some((Limits { low: value * 0.9, high }, 9.0)));
        let (known, open) = (p99(100.0, Some(110.0)), p99(100.0, None));
        // The same figure, and nobody knows how much greater either is.
        assert_eq!(Change::of(&open, &open, false).unwrap().judgement, Judgement::NotKnown);
        // What is greater with certainty is worse, however much greater it may be.
        let worse = Change::of(&known, &p99(200.0, None), false).unwrap();
        assert_eq!((worse.judgement, worse.interval.unwrap().high), (Judgement::Worse, None));
        assert!(worse.chance(1.0).unwrap() < 0.01);
        // What seems greater than something that may be greater still is not.
        let unclear = Change::of(&open, &p99(200.0, Some(220.0)), false).unwrap();
        assert_eq!((unclear.judgement, unclear.chance(1.0)), (Judgement::NoDifferenceShown, Some(0.5)));
        assert!(unclear.interval.unwrap().low <= 0.0);
        // What seems smaller, and may be greater, is not better.
        let unclear = Change::of(&known, &p99(50.0, None), false).unwrap();
        assert_eq!((unclear.judgement, unclear.chance(1.0)), (Judgement::NoDifferenceShown, Some(0.5)));
    }

    proptest! {
        #[test]
        fn of_means_it_is_the_ratio_of_the_delta_method(
            a in 50.0..150.0f64, b in 50.0..150.0f64, errors in (0.5..3.0f64, 0.5..3.0f64),
        ) {
            let (a, b) = (mean(a, errors.0, 4.0), mean(b, errors.1, 19.0));
            let (value, interval) = ratio(&b, &a).unwrap();
            let change = Change::of(&of_mean(a), &of_mean(b), true).unwrap();
            let found = change.interval.unwrap();
            prop_assert!((change.ratio - value).abs() < 1e-9);
            prop_assert!((found.low - interval.low).abs() < 1e-9);
            prop_assert!((found.high.unwrap() - interval.high).abs() < 1e-9);
            // The interval holds a limit if and only if chance makes as much of a difference one time in forty.
            let edge = change.chance(found.low).unwrap();
            prop_assert!((edge - 0.025).abs() < 3e-4, "{}", edge);
        }

        #[test]
        fn a_quantile_against_itself_is_one_and_turns_round(
            // Arms that are wider than the least error.
            value in 10.0..1000.0f64, arms in (1.02..1.5f64, 1.02..1.5f64), other in 10.0..1000.0f64,
        ) {
            let interval = Limits { low: value / arms.0, high: Some(value * arms.1) };
            let figure = Figure::of_quantile(value, Some((interval, 4.0)));
            prop_assert_eq!(Change::of(&figure, &figure, false).unwrap().judgement, Judgement::NoDifferenceShown);
            let second = Limits { low: other / arms.1, high: Some(other * arms.0) };
            let second = Figure::of_quantile(other, Some((second, 9.0)));
            let there = Change::of(&figure, &second, false).unwrap().interval.unwrap();
            let back = Change::of(&second, &figure, false).unwrap().interval.unwrap();
            prop_assert!((there.low * back.high.unwrap() - 1.0).abs() < 1e-9, "{:?} {:?}", there, back);
            // Never wider than from end to end, which would be right more often than it need.
            prop_assert!(there.low >= second.estimate.interval.unwrap().low / interval.high.unwrap() - 1e-9);
        }
    }
}
