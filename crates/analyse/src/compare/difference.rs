//! Whether a figure of one run differs from that of another, and by how much.
//!
//! Input: two figures with their known errors. Output: their ratio with its 95 % interval, and the
//! probability that the difference is due to chance. All calculations use logarithms, where a ratio
//! is a difference: twice as fast and half as fast are then equally far away.
//!
//! Each figure knows its error to either side ([`Arms`]), and the ratio has those of both.

use super::counts::CountPair;
use crate::figures::quantity::Unit;
use rigel_stats::estimate::{Arms, ERROR_MIN, Estimate};
use rigel_stats::mean::{Limits, Spread};
use serde::Serialize;
use std::f64::consts::FRAC_PI_2;

/// The figure of several runs of one side: their geometric mean, with the error of their differences.
///
/// The error between runs is the standard deviation of the logarithms divided by the square
/// root of their number, with one degree of freedom less than runs (Kalibera and Jones,
/// "Rigorous benchmarking in reasonable time", ISMM 2013, with a run as the level of
/// repetition). If the runs differ less than their own errors allow, that is luck: then the
/// error is the one within runs, with the degrees of freedom between runs. It is unknown if
/// the runs have no error of their own and do not differ: their values are rounded.
///
/// `None` without figures. A figure that is not above zero has no logarithm, and one without a
/// direction is not judged: then the plain mean is shown, without an error.
pub fn of_runs(figures: &[Estimate], unit: Unit) -> Option<Estimate> {
    if let [one] = figures {
        return Some(*one);
    }
    let n = figures.len() as f64;
    let mean = |of: &dyn Fn(f64) -> f64| {
        let sum: f64 = figures.iter().map(|one| of(one.value)).sum();
        sum / n
    };
    if !unit.is_judged() || figures.iter().any(|one| one.value <= 0.0) {
        return (!figures.is_empty()).then(|| mean(&|value| value).into());
    }
    let log = mean(&f64::ln);
    let value = log.exp();
    let variance = n * mean(&|value| (value.ln() - log).powi(2)) / (n - 1.0);
    let between = (variance / n).sqrt();
    let within = |side: fn(Arms) -> Option<Spread>| {
        let arms = figures.iter().map(|one| side(one.arms()?));
        let squares: Option<f64> = arms.map(|arm| Some(arm?.error.powi(2))).sum();
        squares.map(|squares| squares.sqrt() / n)
    };
    let arm = |side| {
        let error = match within(side) {
            Some(within) => between.max(within),
            None => (between > 0.0).then(|| between.max(ERROR_MIN))?,
        };
        let degrees = n - 1.0;
        Some(Spread { error, degrees })
    };
    let arms = arm(|arms| arms.down).zip(arm(|arms| arms.up));
    Some(arms.map_or(value.into(), |(down, up)| {
        let (down, up) = (Some(down), Some(up));
        Estimate::new(value, Arms { down, up }.around(value)).with_degrees(n - 1.0)
    }))
}

/// The judgement on a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The interval of the ratio lies on the good side of 1.
    Better,
    /// The interval of the ratio lies on the bad side of 1.
    Worse,
    /// The interval of the ratio contains 1.
    NoDifferenceShown,
    /// There is no interval.
    NotKnown,
}

/// The change of a figure from the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// The figure divided by the baseline's; null in JSON if that is 0.
    #[schemars(with = "Option<f64>")]
    pub ratio: f64,
    /// The 95 % interval: from 0 if the baseline's upper limit is unknown, and without an upper
    /// limit if the other's is unknown.
    pub interval: Option<Limits>,
    /// The judgement by this interval alone.
    pub judgement: Judgement,
    /// Standard errors of its logarithm; `None` if unknown.
    #[serde(skip)]
    errors: Option<Arms>,
    /// The events on both sides, if it is about counted events.
    #[serde(skip)]
    counted: Option<CountPair>,
}

impl Change {
    /// The change from `before` to `after`; `more_is_better` as for a rate. `None` unless both are
    /// above zero.
    pub fn of(before: &Estimate, after: &Estimate, more_is_better: bool) -> Option<Self> {
        if before.value <= 0.0 || after.value <= 0.0 {
            return None;
        }
        let ratio = after.value / before.value;
        let errors = after.arms_over(*before);
        let interval = errors.and_then(|arms| arms.around(ratio));
        Some(Self {
            ratio,
            interval,
            judgement: judgement(interval, more_is_better),
            errors,
            counted: None,
        })
    }

    /// The change of the rate of events, of which fewer are better. `ratio` is infinite if there
    /// were none before.
    pub(super) fn of_events(ratio: f64, counted: CountPair) -> Self {
        let interval = Some(counted.limits());
        Self {
            ratio,
            interval,
            judgement: judgement(interval, false),
            errors: None,
            counted: Some(counted),
        }
    }

    /// A change with this standard error of the ratio's logarithm, where less is better.
    pub(super) fn of_less(ratio: f64, spread: Spread) -> Self {
        let arms = Arms::both(spread);
        let interval = arms.around(ratio);
        Self {
            ratio,
            interval,
            judgement: judgement(interval, false),
            errors: Some(arms),
            counted: None,
        }
    }

    /// True if it is a ratio of counts of events.
    pub fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    /// The probability that chance alone makes the ratio differ from `limit` this far to this side,
    /// if `limit` is the true ratio; 0.5 if the error to this side is unknown. `None` if no
    /// error is known.
    pub(super) fn chance(&self, limit: f64) -> Option<f64> {
        if let Some(counted) = self.counted {
            return Some(counted.chance(limit));
        }
        let Arms { down, up } = self.errors?;
        let distance = (self.ratio / limit).ln();
        let spread = if distance > 0.0 { down } else { up };
        Some(spread.map_or(0.5, |spread| {
            beyond(distance.abs() / spread.error, spread.degrees)
        }))
    }
}

fn judgement(interval: Option<Limits>, more_is_better: bool) -> Judgement {
    match interval {
        None => Judgement::NotKnown,
        Some(interval) if interval.contains(1.0) => Judgement::NoDifferenceShown,
        Some(interval) if (interval.low > 1.0) == more_is_better => Judgement::Better,
        Some(_) => Judgement::Worse,
    }
}

/// The probability that Student's t exceeds `t`, which must not be negative. With t = √ν tan θ it
/// is an integral of cos^(ν-1) (Abramowitz and Stegun 26.7.3 and 26.7.4 are its closed forms), here
/// by Simpson's rule, over ten deviations at most. More than a thousand degrees of freedom count as a
/// thousand.
pub(super) fn beyond(t: f64, degrees: f64) -> f64 {
    const STEPS: u32 = 200;
    let degrees = degrees.clamp(1.0, 1000.0);
    let integral = |from: f64| {
        let width = (FRAC_PI_2 - from).min(10.0 / (degrees - 1.0).sqrt());
        let step = width / f64::from(STEPS);
        let value = |index: u32| {
            (from + f64::from(index) * step)
                .cos()
                .max(0.0)
                .powf(degrees - 1.0)
        };
        let weight = |index: u32| {
            if index == 0 || index == STEPS {
                1.0
            } else {
                f64::from(2 + 2 * (index % 2))
            }
        };
        (0..=STEPS)
            .map(|index| weight(index) * value(index))
            .sum::<f64>()
            * step
            / 3.0
    };
    integral((t / degrees.sqrt()).atan()) / integral(0.0) / 2.0
}

/// The rejected hypotheses, given the probability that chance deviates as far as each does, and the
/// weight of each. The probability of rejecting any true one is at most `level`, whatever their
/// dependence: Holm's stepwise Bonferroni, with weights (Scandinavian Journal of Statistics 6,
/// 1979, section 5).
pub(super) fn holm(weighted: &[(f64, f64)], level: f64) -> Vec<bool> {
    let scaled = |index: usize| weighted[index].0 / weighted[index].1;
    let mut order: Vec<usize> = (0..weighted.len()).collect();
    order.sort_by(|one, other| scaled(*one).total_cmp(&scaled(*other)));
    let mut rejected = vec![false; weighted.len()];
    for place in 0..order.len() {
        let left: f64 = order[place..].iter().map(|index| weighted[*index].1).sum();
        if scaled(order[place]) > level / left {
            break;
        }
        rejected[order[place]] = true;
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rigel_stats::mean::{Interval, Mean};

    fn mean(value: f64, error: f64, degrees: f64) -> Mean {
        Mean {
            value,
            error,
            effective_n: degrees + 1.0,
            degrees,
        }
    }

    fn of_mean(mean: Mean) -> Estimate {
        mean.into()
    }

    #[test]
    fn the_chance_beyond_students_t_is_that_of_the_tables() {
        for (t, degrees, chance) in [
            (12.706, 1.0, 0.025),
            (2.776, 4.0, 0.025),
            (4.604, 4.0, 0.005),
            (2.093, 19.0, 0.025),
            (0.0, 7.0, 0.5),
        ] {
            assert!(
                (beyond(t, degrees) / chance - 1.0).abs() < 2e-3,
                "{t} {degrees}: {}",
                beyond(t, degrees)
            );
        }
        assert!((beyond(1.96, f64::INFINITY) / 0.025 - 1.0).abs() < 0.01);
    }

    #[test]
    fn holm_divides_the_level_by_the_remaining_comparisons() {
        let plain = |chances: &[f64]| {
            let weighted: Vec<(f64, f64)> = chances.iter().map(|chance| (*chance, 1.0)).collect();
            holm(&weighted, 0.05)
        };
        assert_eq!(plain(&[0.01, 0.04, 0.03]), [true, false, false]);
        assert_eq!(plain(&[0.01, 0.02, 0.04]), [true, true, true]);
        assert_eq!(plain(&[]), Vec::<bool>::new());
        // Half of the level is that of the first.
        let others = [(0.03, 1.0), (0.03, 1.0)];
        assert_eq!(
            holm(&[(0.024, 2.0), others[0], others[1]], 0.05),
            [true, false, false]
        );
        assert_eq!(
            holm(&[(0.026, 2.0), others[0], others[1]], 0.05),
            [false; 3]
        );
    }

    #[test]
    fn a_difference_is_better_or_worse_depending_on_the_quantity() {
        let (slow, fast) = (
            of_mean(mean(100.0, 1.0, 19.0)),
            of_mean(mean(120.0, 1.0, 19.0)),
        );
        let judge = |before, after, more| Change::of(before, after, more).unwrap().judgement;
        assert_eq!(judge(&slow, &fast, true), Judgement::Better);
        assert_eq!(judge(&slow, &fast, false), Judgement::Worse);
        assert_eq!(judge(&fast, &slow, true), Judgement::Worse);
        let near = of_mean(mean(101.0, 1.0, 19.0));
        assert_eq!(judge(&slow, &near, true), Judgement::NoDifferenceShown);
        assert_eq!(judge(&slow, &120.0.into(), true), Judgement::NotKnown);
        assert_eq!(Change::of(&slow, &0.0.into(), true), None);
    }

    #[test]
    fn an_estimate_known_only_as_a_range_is_not_judged() {
        let between = |low, high| Estimate::between(low, Some(Interval { low, high }.into()));
        let change = Change::of(&between(90.0, 95.0), &between(96.0, 100.0), true).unwrap();
        assert_eq!(
            (change.judgement, change.interval),
            (Judgement::NotKnown, None)
        );
    }

    #[test]
    fn an_upper_end_that_is_not_known_says_nothing_to_its_side() {
        let p99 = |value: f64, high| {
            let low = value * 0.9;
            Estimate::new(value, Some(Limits { low, high })).with_degrees(9.0)
        };
        let (known, open) = (p99(100.0, Some(110.0)), p99(100.0, None));
        // The same figure, and it is unknown how much higher either may be.
        assert_eq!(
            Change::of(&open, &open, false).unwrap().judgement,
            Judgement::NotKnown
        );
        // A certainly higher figure is worse, however high it may be.
        let worse = Change::of(&known, &p99(200.0, None), false).unwrap();
        assert_eq!(
            (worse.judgement, worse.interval.unwrap().high),
            (Judgement::Worse, None)
        );
        assert!(worse.chance(1.0).unwrap() < 0.01);
        // A figure that looks higher is not worse if the other may be higher still.
        let unclear = Change::of(&open, &p99(200.0, Some(220.0)), false).unwrap();
        assert_eq!(
            (unclear.judgement, unclear.chance(1.0)),
            (Judgement::NoDifferenceShown, Some(0.5))
        );
        assert!(unclear.interval.unwrap().low <= 0.0);
        // A figure that looks lower but may be higher is not better.
        let unclear = Change::of(&known, &p99(50.0, None), false).unwrap();
        assert_eq!(
            (unclear.judgement, unclear.chance(1.0)),
            (Judgement::NoDifferenceShown, Some(0.5))
        );
    }

    proptest! {
        #[test]
        fn a_limit_of_the_interval_is_reached_by_chance_one_time_in_forty(
            a in 50.0..150.0f64, b in 50.0..150.0f64, errors in (0.5..3.0f64, 0.5..3.0f64),
        ) {
            let (a, b) = (mean(a, errors.0, 4.0), mean(b, errors.1, 19.0));
            let change = Change::of(&of_mean(a), &of_mean(b), true).unwrap();
            let found = change.interval.unwrap();
            for limit in [found.low, found.high.unwrap()] {
                let edge = change.chance(limit).unwrap();
                prop_assert!((edge - 0.025).abs() < 3e-4, "{}", edge);
            }
        }

        #[test]
        fn a_quantile_against_itself_is_one_and_turns_round(
            // Arms that are wider than the minimum error.
            value in 10.0..1000.0f64, arms in (1.02..1.5f64, 1.02..1.5f64), other in 10.0..1000.0f64,
        ) {
            let interval = Limits { low: value / arms.0, high: Some(value * arms.1) };
            let figure = Estimate::new(value, Some(interval)).with_degrees(4.0);
            prop_assert_eq!(Change::of(&figure, &figure, false).unwrap().judgement, Judgement::NoDifferenceShown);
            let second = Limits { low: other / arms.1, high: Some(other * arms.0) };
            let second = Estimate::new(other, Some(second)).with_degrees(9.0);
            let there = Change::of(&figure, &second, false).unwrap().interval.unwrap();
            let back = Change::of(&second, &figure, false).unwrap().interval.unwrap();
            prop_assert!((there.low * back.high.unwrap() - 1.0).abs() < 1e-9, "{:?} {:?}", there, back);
            // Never wider than the distance between the outer limits, which would be right more often than necessary.
            prop_assert!(there.low >= second.interval.unwrap().low / interval.high.unwrap() - 1e-9);
        }
    }
}
