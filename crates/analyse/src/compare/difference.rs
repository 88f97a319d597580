//! Whether a figure of one run differs from that of another, and by how much.
//!
//! Input: two figures with their known errors. Output: their ratio with its 95 % interval, and the
//! probability that the difference is due to chance. All calculations use logarithms, where a ratio
//! is a difference: twice as fast and half as fast are then equally far away.
//!
//! A mean has its standard error, by the delta method. A quantile has only an interval, with two
//! different arms. On the logarithm, each arm divided by Student's t serves as the standard error
//! to that side; the lower limit of the ratio uses the lower arm of one figure and the upper arm of
//! the other (the method of variance estimates recovery: Zou and Donner, Statistics in Medicine 27,
//! 2008). The interval of a quantile extends to the outer edges of its buckets, so that of the
//! ratio is rather too wide than too narrow.

use super::counts::CountPair;
use crate::figures::confidence::{ERROR_MIN, Estimate};
use crate::figures::quantity::Unit;
use rigel_stats::mean::{Interval, Level, Limits, Mean, Spread, t_quantile, welch};
use serde::Serialize;
use std::f64::consts::FRAC_PI_2;

/// A figure of one run, or of several runs of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Figure {
    /// The figure with its interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Its standard error; `None` if unknown.
    #[serde(skip)]
    error: Option<LogError>,
}

/// The standard error of a figure's logarithm to either side; `above` is `None` if the upper limit
/// is unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LogError {
    below: f64,
    above: Option<f64>,
    degrees: f64,
}

impl Figure {
    /// A figure with an unknown error.
    pub fn unknown(value: f64) -> Self {
        Self {
            estimate: value.into(),
            error: None,
        }
    }

    /// A figure with the error of `mean`.
    pub fn of_mean(value: f64, mean: Option<Mean>) -> Self {
        let Some(mean) = mean.filter(|mean| mean.value > 0.0) else {
            return Self::unknown(value);
        };
        let error = (mean.error / mean.value).max(ERROR_MIN);
        Self {
            estimate: Estimate {
                value,
                interval: Some(mean.interval().into()),
            },
            error: Some(LogError {
                below: error,
                above: Some(error),
                degrees: mean.degrees,
            }),
        }
    }

    /// A quantile with its interval and the degrees of freedom of its error.
    pub fn of_quantile(value: f64, known: Option<(Limits, f64)>) -> Self {
        let usable = |(interval, _): &(Limits, f64)| interval.low > 0.0 && interval.contains(value);
        let Some((interval, degrees)) = known.filter(usable) else {
            return Self::unknown(value);
        };
        let error = |arm: f64| (arm.ln() / t_quantile(degrees)).max(ERROR_MIN);
        let above = interval.high.map(|high| error(high / value));
        let error = LogError {
            below: error(value / interval.low),
            above,
            degrees,
        };
        Self {
            estimate: Estimate {
                value,
                interval: Some(interval),
            },
            error: Some(error),
        }
    }

    /// The figure with the interval of another error than 5 %, at one look.
    pub fn at(&self, error: f64) -> Estimate {
        let level = Level::one_look(error);
        let value = self.estimate.value;
        let limits = |known: LogError| {
            let errors = level.errors(known.degrees, known.degrees + 1.0);
            Limits {
                low: value * (-errors * known.below).exp(),
                high: known.above.map(|above| value * (errors * above).exp()),
            }
        };
        Estimate {
            value,
            interval: self.error.map(limits),
        }
    }

    /// The figure of several runs: their geometric mean, with the error of their differences.
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
    pub fn of_runs(figures: &[Figure], unit: Unit) -> Option<Self> {
        if let [one] = figures {
            return Some(*one);
        }
        let n = figures.len() as f64;
        let mean = |of: &dyn Fn(f64) -> f64| {
            let sum: f64 = figures.iter().map(|one| of(one.estimate.value)).sum();
            sum / n
        };
        if !unit.is_judged() || figures.iter().any(|one| one.estimate.value <= 0.0) {
            return (!figures.is_empty()).then(|| Self::unknown(mean(&|value| value)));
        }
        let log = mean(&f64::ln);
        let value = log.exp();
        let variance = n * mean(&|value| (value.ln() - log).powi(2)) / (n - 1.0);
        let between = (variance / n).sqrt();
        let within = |arm: fn(&LogError) -> Option<f64>| {
            let arms: Option<Vec<f64>> =
                figures.iter().map(|one| arm(one.error.as_ref()?)).collect();
            Some(arms?.iter().map(|arm| arm * arm).sum::<f64>().sqrt() / n)
        };
        let error = |arm| match within(arm) {
            Some(within) => Some(between.max(within)),
            None => (between > 0.0).then(|| between.max(ERROR_MIN)),
        };
        let arms = error(|of| Some(of.below)).zip(error(|of| of.above));
        let Some((below, above)) = arms else {
            return Some(Self::unknown(value));
        };
        let degrees = n - 1.0;
        let arm = |error: f64| (t_quantile(degrees) * error).exp();
        Some(Self {
            estimate: Estimate {
                value,
                interval: Some(Limits {
                    low: value / arm(below),
                    high: Some(value * arm(above)),
                }),
            },
            error: Some(LogError {
                below,
                above: Some(above),
                degrees,
            }),
        })
    }

    /// A figure with a symmetric interval, such as a mean over several loads, and the degrees of
    /// freedom of its error.
    pub fn of_estimate(estimate: Estimate, degrees: f64) -> Self {
        let half = estimate
            .interval
            .and_then(Limits::both)
            .map(Interval::half_width);
        let mean = half.map(|half| Mean {
            value: estimate.value,
            error: half / t_quantile(degrees),
            effective_n: degrees + 1.0,
            degrees,
        });
        Self::of_mean(estimate.value, mean)
    }

    /// The standard error of the figure's logarithm, the larger of both sides, and its degrees of
    /// freedom.
    pub(super) fn error(&self) -> Option<(f64, f64)> {
        let error = self.error?;
        Some((error.below.max(error.above?), error.degrees))
    }

    /// True if its interval is a confidence interval, from a known error.
    pub fn is_known(&self) -> bool {
        self.error.is_some()
    }

    /// A figure between two values that were tried; its random error is unknown.
    pub fn within(value: f64, interval: Option<Interval>) -> Self {
        Self {
            estimate: Estimate {
                value,
                interval: interval.map(Limits::from),
            },
            error: None,
        }
    }
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
    /// The figure divided by the baseline's.
    pub ratio: f64,
    /// The 95 % interval: from 0 if the baseline's upper limit is unknown, and without an upper
    /// limit if the other's is unknown.
    pub interval: Option<Limits>,
    /// The judgement by this interval alone.
    pub judgement: Judgement,
    /// Standard errors; `None` if unknown.
    #[serde(skip)]
    errors: Option<Errors>,
    /// The events on both sides, if it is about counted events.
    #[serde(skip)]
    counted: Option<CountPair>,
}

/// The standard errors of a ratio's logarithm, downwards and upwards. `None` on a side without a
/// limit, where the true ratio may be any distance away.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Errors {
    down: Option<Spread>,
    up: Option<Spread>,
}

impl Change {
    /// The change from `before` to `after`; `more_is_better` as for a rate. `None` unless both are
    /// above zero.
    pub fn of(before: &Figure, after: &Figure, more_is_better: bool) -> Option<Self> {
        let (baseline, changed) = (before.estimate, after.estimate);
        if baseline.value <= 0.0 || changed.value <= 0.0 {
            return None;
        }
        let ratio = changed.value / baseline.value;
        let errors = before
            .error
            .zip(after.error)
            .map(|(baseline, changed)| Errors {
                down: baseline.above.map(|above| {
                    welch((above, baseline.degrees), (changed.below, changed.degrees))
                }),
                up: changed.above.map(|above| {
                    welch((baseline.below, baseline.degrees), (above, changed.degrees))
                }),
            });
        let errors = errors.filter(|errors| errors.down.is_some() || errors.up.is_some());
        let arm = |spread: Spread| (t_quantile(spread.degrees) * spread.error).exp();
        let interval = errors.map(|Errors { down, up }| Limits {
            low: down.map_or(0.0, |down| ratio / arm(down)),
            high: up.map(|up| ratio * arm(up)),
        });
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
        let arm = (t_quantile(spread.degrees) * spread.error).exp();
        let interval = Some(Limits {
            low: ratio / arm,
            high: Some(ratio * arm),
        });
        Self {
            ratio,
            interval,
            judgement: judgement(interval, false),
            errors: Some(Errors {
                down: Some(spread),
                up: Some(spread),
            }),
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
        let Errors { down, up } = self.errors?;
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
    use crate::ratio;
    use proptest::prelude::*;

    fn mean(value: f64, error: f64, degrees: f64) -> Mean {
        Mean {
            value,
            error,
            effective_n: degrees + 1.0,
            degrees,
        }
    }

    fn of_mean(mean: Mean) -> Figure {
        Figure::of_mean(mean.value, Some(mean))
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
        assert_eq!(
            judge(&slow, &Figure::unknown(120.0), true),
            Judgement::NotKnown
        );
        assert_eq!(Change::of(&slow, &Figure::unknown(0.0), true), None);
    }

    #[test]
    fn an_estimate_known_only_as_a_range_is_not_judged() {
        let between = |low, high| Figure::within(low, Some(Interval { low, high }));
        let change = Change::of(&between(90.0, 95.0), &between(96.0, 100.0), true).unwrap();
        assert_eq!(
            (change.judgement, change.interval),
            (Judgement::NotKnown, None)
        );
    }

    #[test]
    fn an_upper_end_that_is_not_known_says_nothing_to_its_side() {
        let p99 = |value: f64, high| {
            Figure::of_quantile(
                value,
                Some((
                    Limits {
                        low: value * 0.9,
                        high,
                    },
                    9.0,
                )),
            )
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
            // The interval contains a limit if and only if chance makes such a difference one time in forty.
            let edge = change.chance(found.low).unwrap();
            prop_assert!((edge - 0.025).abs() < 3e-4, "{}", edge);
        }

        #[test]
        fn a_quantile_against_itself_is_one_and_turns_round(
            // Arms that are wider than the minimum error.
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
            // Never wider than the distance between the outer limits, which would be right more often than necessary.
            prop_assert!(there.low >= second.estimate.interval.unwrap().low / interval.high.unwrap() - 1e-9);
        }
    }
}
