//! A figure with its interval, and what follows for figures that are made of others.
//!
//! Every figure that is shown, compared or judged is one of these, whatever it was made of. Of several
//! figures that were measured independently the errors of the logarithms add up as squares, with the degrees
//! of freedom of Welch and Satterthwaite. An interval has two different arms if it is that of a quantile: then
//! each arm, divided by Student's t, serves as the standard error to that side; a ratio's lower arm is made of
//! the lower one of the numerator and the upper one of the denominator (the method of variance estimates
//! recovery: Zou and Donner, Statistics in Medicine 27, 2008).
//!
//! An estimate does not say what each block of time adds to it, since no two figures of the same operations
//! are combined: those of a quotient, a difference or a mean are of other loads, other visits or other runs.
//! What they have in common is a state of the storage that lasts longer than a visit, and every figure has the
//! error of that already.

use crate::mean::{Interval, Level, Limits, Mean, Spread, t_quantile, welch};
use serde::{Deserialize, Serialize};

/// Minimum standard error of a figure, as a fraction of it. The first and last operation of a measurement
/// count as a whole or not at all, and its length is rounded; a model without randomness would have
/// no error at all.
pub const ERROR_MIN: f64 = 0.001;

/// A figure with its 95 % interval, if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The 95 % confidence interval, provided that the measured time is representative.
    pub interval: Option<Limits>,
    /// Degrees of freedom of the error; infinite if they are not known, and 0 if the limits are values that
    /// were tried.
    #[serde(skip, default = "unknown_degrees")]
    pub degrees: f64,
}

fn unknown_degrees() -> f64 {
    f64::INFINITY
}

/// Relative standard errors to either side; `None` on a side without a limit, where the truth may be any
/// distance away.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arms {
    /// To lower values.
    pub down: Option<Spread>,
    /// To higher values.
    pub up: Option<Spread>,
}

impl Arms {
    /// The same to both sides.
    pub fn both(spread: Spread) -> Self {
        let spread = Some(spread);
        Self {
            down: spread,
            up: spread,
        }
    }

    /// The interval of `value`: from 0 if it has no lower arm. `None` if it has none at all.
    pub fn around(self, value: f64) -> Option<Limits> {
        let factor = |arm: Spread| arm.half_width().exp();
        (self.down.is_some() || self.up.is_some()).then(|| Limits {
            low: self.down.map_or(0.0, |down| value / factor(down)),
            high: self.up.map(|up| value * factor(up)),
        })
    }
}

impl From<f64> for Estimate {
    /// A figure whose interval is not known.
    fn from(value: f64) -> Self {
        Self::new(value, None)
    }
}

impl From<Mean> for Estimate {
    fn from(mean: Mean) -> Self {
        Self::new(mean.value, Some(mean.limits())).with_degrees(mean.degrees)
    }
}

impl Estimate {
    /// A figure with its interval.
    pub const fn new(value: f64, interval: Option<Limits>) -> Self {
        Self {
            value,
            interval,
            degrees: f64::INFINITY,
        }
    }

    /// A figure between two values that were tried; its random error is not known.
    pub fn between(value: f64, limits: Option<Limits>) -> Self {
        Self::new(value, limits).with_degrees(0.0)
    }

    /// A figure with this relative error, of these degrees of freedom.
    pub fn with_spread(value: f64, spread: Spread) -> Self {
        let interval = Arms::both(spread).around(value);
        Self::new(value, interval).with_degrees(spread.degrees)
    }

    /// The geometric mean of values above zero that were measured independently, by Student's t on their
    /// logarithms. `None` of fewer than two.
    pub fn of_values(values: &[f64]) -> Option<Self> {
        let (count, degrees) = (values.len() as f64, values.len() as f64 - 1.0);
        let logs = || values.iter().map(|value| value.ln());
        let middle = logs().sum::<f64>() / count;
        let squares: f64 = logs().map(|log| (log - middle).powi(2)).sum();
        let error = (squares / degrees / count).sqrt();
        (degrees > 0.0).then(|| Self::with_spread(middle.exp(), Spread { error, degrees }))
    }

    /// The figure whose interval has an error of these degrees of freedom.
    #[must_use]
    pub const fn with_degrees(self, degrees: f64) -> Self {
        Self { degrees, ..self }
    }

    /// The lower limit of the interval; the figure itself if it has none.
    pub fn least(self) -> f64 {
        self.interval.map_or(self.value, |limits| limits.low)
    }

    /// The upper limit of the interval; the figure itself if it has none.
    pub fn greatest(self) -> f64 {
        let high = self.interval.and_then(|limits| limits.high);
        high.unwrap_or(self.value)
    }

    /// Half the width of the interval as a fraction of the figure; `None` if one of the limits is
    /// unknown.
    pub fn precision(self) -> Option<f64> {
        let interval = self.interval.and_then(Limits::both);
        interval.map(|interval| interval.relative(self.value))
    }

    /// True if its interval is a confidence interval.
    pub fn is_known(self) -> bool {
        self.interval.is_some() && self.degrees > 0.0
    }

    /// The relative standard errors that the interval is of, at least [`ERROR_MIN`]. `None` without a
    /// confidence interval, and if the figure or its lower limit is not above zero.
    pub fn arms(self) -> Option<Arms> {
        let known = self.interval.filter(|known| {
            self.is_known() && self.value > 0.0 && known.low > 0.0 && known.contains(self.value)
        })?;
        let arm = |distance: f64| Spread {
            error: (distance.ln() / t_quantile(self.degrees)).max(ERROR_MIN),
            degrees: self.degrees,
        };
        Some(Arms {
            down: Some(arm(self.value / known.low)),
            up: known.high.map(|high| arm(high / self.value)),
        })
    }

    /// The relative standard error, the larger of both sides. `None` if one is not known.
    pub fn spread(self) -> Option<Spread> {
        let Arms { down, up } = self.arms()?;
        let (down, up) = down.zip(up)?;
        Some(if down.error > up.error { down } else { up })
    }

    /// The figure with the interval of another probability of an error than 5 %, at one look.
    #[must_use]
    pub fn at(self, error: f64) -> Self {
        let wider = Level::one_look(error).errors(self.degrees, self.degrees + 1.0)
            / t_quantile(self.degrees);
        let interval = self.arms().and_then(|Arms { down, up }| {
            let wider = |arm: Spread| Spread {
                error: wider * arm.error,
                ..arm
            };
            let arms = Arms {
                down: down.map(wider),
                up: up.map(wider),
            };
            arms.around(self.value)
        });
        Self { interval, ..self }
    }

    /// The figure with an interval that is not narrower than [`ERROR_MIN`] allows.
    #[must_use]
    pub fn with_least_error(self) -> Self {
        let least = Interval::around(self.value, ERROR_MIN * t_quantile(f64::INFINITY));
        let interval = self.interval.map(|known| Limits {
            low: known.low.min(least.low),
            high: known.high.map(|high| high.max(least.high)),
        });
        Self { interval, ..self }
    }

    /// The figure with a further, independent, relative error.
    #[must_use]
    pub fn with_error(self, more: Spread) -> Self {
        let Some(Arms { down, up }) = self.arms().filter(|_| more.error > 0.0) else {
            return self;
        };
        let arms = Arms {
            down: down.map(|arm| welch(arm, more)),
            up: up.map(|arm| welch(arm, more)),
        };
        let degrees = arms.down.map_or(self.degrees, |arm| arm.degrees);
        Self::new(self.value, arms.around(self.value)).with_degrees(degrees)
    }

    /// The figure in another unit. `factor` must not be negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            interval: self.interval.map(|interval| interval.scaled(factor)),
            ..self
        }
    }

    /// The relative errors of the quotient with another figure, which was measured independently.
    pub fn arms_over(self, divisor: Self) -> Option<Arms> {
        let (of, by) = self.arms().zip(divisor.arms())?;
        let both = |one: Option<Spread>, other: Option<Spread>| {
            one.zip(other).map(|(one, other)| welch(one, other))
        };
        Some(Arms {
            down: both(of.down, by.up),
            up: both(of.up, by.down),
        })
        .filter(|arms| arms.down.is_some() || arms.up.is_some())
    }

    /// The quotient with another figure, which was measured independently. No interval if either has none
    /// above zero.
    #[must_use]
    pub fn over(self, divisor: Self) -> Self {
        let (value, arms) = (self.value / divisor.value, self.arms_over(divisor));
        let interval = arms.and_then(|arms| arms.around(value));
        let known = arms.and_then(|arms| arms.down.or(arms.up));
        Self::new(value, interval)
            .with_degrees(known.map_or(f64::INFINITY, |spread| spread.degrees))
    }

    /// True if it certainly differs from another one, which was measured independently, and by more than the
    /// fraction `margin`.
    pub fn differs_from(self, other: Self, margin: f64) -> bool {
        let ratio = self.over(other);
        let is_certain = ratio
            .interval
            .is_some_and(|interval| !interval.contains(1.0));
        is_certain && ratio.value.ln().abs() > margin
    }

    /// The figure with an interval that has that of another one in it; none if one end is not known.
    #[must_use]
    pub fn covering(self, other: Self) -> Self {
        let both = |of: Self| of.interval.and_then(Limits::both);
        let interval = both(self).zip(both(other)).map(|(one, other)| Limits {
            low: one.low.min(other.low),
            high: Some(one.high.max(other.high)),
        });
        Self { interval, ..self }
    }

    /// The mean of two figures that were measured independently, of which the second counts for this share.
    #[must_use]
    pub fn mixed_with(self, other: Self, share: f64) -> Self {
        let value = (1.0 - share) * self.value + share * other.value;
        let part = |of: Self, share: f64| {
            let spread = of.spread()?;
            let error = spread.error * share * of.value / value;
            Some(Spread { error, ..spread })
        };
        let parts = part(self, 1.0 - share).zip(part(other, share));
        match parts {
            Some((one, two)) => Self::with_spread(value, welch(one, two)),
            None => value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(value: f64, share: f64, degrees: f64) -> Estimate {
        let spread = Spread {
            error: share,
            degrees,
        };
        Estimate::with_spread(value, spread)
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one / other - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_quotient_has_the_error_of_both_its_parts() {
        let found = known(12.0, 0.03, f64::INFINITY).over(known(4.0, 0.04, f64::INFINITY));
        let interval = found.interval.and_then(Limits::both).unwrap();
        let arm = (0.05 * t_quantile(f64::INFINITY)).exp();
        assert!(is_near(found.value, 3.0));
        assert!(is_near(interval.low, 3.0 / arm) && is_near(interval.high, 3.0 * arm));
        // The other way round it is the reciprocal.
        let back = known(4.0, 0.04, 5.0).over(known(12.0, 0.03, 9.0));
        let there = known(12.0, 0.03, 9.0).over(known(4.0, 0.04, 5.0));
        assert!(is_near(there.least() * back.greatest(), 1.0));
        assert_eq!(known(12.0, 0.03, 9.0).over(4.0.into()).interval, None);
        let from_zero = Estimate::new(
            4.0,
            Some(Limits {
                low: 0.0,
                high: Some(8.0),
            }),
        );
        assert_eq!(known(12.0, 0.03, 9.0).over(from_zero).interval, None);
    }

    #[test]
    fn an_unknown_end_stays_unknown() {
        let open = Estimate::new(
            10.0,
            Some(Limits {
                low: 9.0,
                high: None,
            }),
        );
        let closed = known(5.0, 0.01, 9.0);
        let above = open.over(closed).interval.unwrap();
        assert!(above.low > 1.7 && above.high.is_none(), "{above:?}");
        let below = closed.over(open).interval.unwrap();
        assert!(below.low <= 0.0 && below.high.is_some(), "{below:?}");
        assert_eq!(open.over(open).interval, None);
        let wider = Spread {
            error: 0.1,
            degrees: 3.0,
        };
        let widened = open.with_error(wider).interval.unwrap();
        assert!(widened.low < 9.0 && widened.high.is_none());
    }

    #[test]
    fn a_few_values_have_students_interval_on_their_logarithms() {
        // Logarithms -0.1, 0 and 0.1: their deviation is 0.1, Student's t of two degrees 4.303.
        let found = Estimate::of_values(&[(-0.1_f64).exp(), 1.0, 0.1_f64.exp()]).unwrap();
        let half = 4.303 * 0.1 / 3.0_f64.sqrt();
        assert!((found.value - 1.0).abs() < 1e-12);
        assert!(
            (found.greatest().ln() / half - 1.0).abs() < 0.002,
            "{found:?}"
        );
        assert_eq!(Estimate::of_values(&[1.0]), None);
        assert_eq!(Estimate::of_values(&[]), None);
    }

    #[test]
    fn values_that_were_tried_show_no_error() {
        let tried = Estimate::between(
            5.0,
            Some(Limits {
                low: 4.0,
                high: Some(6.0),
            }),
        );
        assert!(tried.arms().is_none() && tried.precision().is_some());
        assert_eq!(tried.over(known(5.0, 0.1, 9.0)).interval, None);
    }

    #[test]
    fn a_further_error_and_another_level_make_it_wider() {
        let one = known(100.0, 0.03, 9.0);
        let more = Spread {
            error: 0.04,
            degrees: f64::INFINITY,
        };
        let both = one.with_error(more);
        let spread = both.spread().unwrap();
        assert!(
            is_near(spread.error, 0.05) && spread.degrees > 60.0,
            "{spread:?}"
        );
        let strict = one.at(0.01);
        assert!(strict.least() < one.least() && strict.greatest() > one.greatest());
        // No error at all is more than a measurement can tell.
        let exact = Estimate::new(
            3.0,
            Some(
                Interval {
                    low: 3.0,
                    high: 3.0,
                }
                .into(),
            ),
        );
        assert!(is_near(exact.spread().unwrap().error, ERROR_MIN));
        assert!(exact.with_least_error().precision().unwrap() > ERROR_MIN);
    }

    #[test]
    fn figures_differ_by_more_than_chance_and_more_than_the_margin() {
        let [low, high] = [100.0, 106.0].map(|value| known(value, 0.01, 19.0));
        assert!(high.differs_from(low, 0.02) && low.differs_from(high, 0.02));
        assert!(!high.differs_from(low, 0.1) && !high.differs_from(known(100.0, 0.05, 19.0), 0.02));
        let mixed = low.mixed_with(high, 0.5);
        assert!(is_near(mixed.value, 103.0) && mixed.spread().unwrap().error < 0.01);
        assert_eq!(low.mixed_with(5.0.into(), 0.5).interval, None);
        let covering = low.covering(high);
        assert!(
            is_near(covering.least(), low.least()) && is_near(covering.greatest(), high.greatest())
        );
        assert_eq!(low.covering(5.0.into()).interval, None);
    }
}
