//! Means with their error.
//!
//! Input: one value for each of many windows of equal width, in order of time. Output: the mean,
//! its standard error and its 95 % confidence interval. Windows are never assumed to be
//! independent: a device that works in bursts makes neighbours similar, a throttle that works in
//! slices makes them differ, and either way the spread of single windows gives the wrong error.
//!
//! The method is batch means: neighbouring windows are averaged into 5 to 20 batches, long enough
//! to be nearly independent, and the error is estimated from the spread of the batches. Schmeiser,
//! "Batch size effects in the analysis of simulation output", Operations Research 30 (1982), shows
//! that more than 10 to 30 batches gain next to nothing.

use crate::robust::normal_quantile;
use serde::{Deserialize, Serialize};

/// Confidence level of all intervals in this module.
pub const CONFIDENCE: f64 = 0.95;
/// Minimum number of batches for an error estimate, and so the minimum number of windows.
pub const BATCHES_MIN: usize = 5;
const BATCHES_MAX: usize = 20;
/// Windows per batch, if that gives neither too few nor too many batches.
const BATCH_SIZE: usize = 4;
/// Minimum number of batches for an estimate of their correlation.
const BATCHES_CORRELATED_MIN: usize = 8;
/// Maximum correlation of neighbours that is corrected for: beyond it, the series is too short.
const CORRELATION_MAX: f64 = 0.9;
/// Margin added to an estimate of correlation, in standard errors: an estimate that is too low
/// misleads, one that is too high costs a little time.
const MARGIN: f64 = 0.5;
/// Threshold of a correlation in standard errors, which chance exceeds one time in six.
const CHANCE: f64 = 1.0;

/// A 95 % confidence interval, in the unit of its value; never empty, never NaN.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interval {
    /// The lower limit.
    pub low: f64,
    /// The upper limit.
    pub high: f64,
}

impl Interval {
    /// The limits at a distance from a positive value on a logarithmic scale, so that none is
    /// negative.
    pub fn around(value: f64, distance: f64) -> Self {
        Self {
            low: value * (-distance).exp(),
            high: value * distance.exp(),
        }
    }

    /// Half the distance between the limits.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// True if `value` lies within the limits or on one of them.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// True if the two intervals have a value in common.
    pub fn overlaps(self, other: Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The interval in another unit. `factor` must not be negative.
    pub fn scaled(self, factor: f64) -> Interval {
        Interval {
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// Half the width as a fraction of `centre`; infinite if `centre` is zero.
    pub fn relative(self, centre: f64) -> f64 {
        if centre == 0.0 {
            f64::INFINITY
        } else {
            self.half_width() / centre.abs()
        }
    }
}

/// The limits of a 95 % confidence interval whose upper limit may be unknown. If few independent
/// values exceed a quantile, its true value may lie far above all measured ones. JSON has null for
/// it, text a `?`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Limits {
    /// The lower limit.
    pub low: f64,
    /// The upper limit; `None` if unknown.
    pub high: Option<f64>,
}

impl Limits {
    /// Both limits; `None` if the upper one is unknown.
    pub fn both(self) -> Option<Interval> {
        self.high.map(|high| Interval {
            low: self.low,
            high,
        })
    }

    /// True if `value` lies within the known limits.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && self.high.is_none_or(|high| value <= high)
    }

    /// The limits in another unit. `factor` must not be negative.
    pub fn scaled(self, factor: f64) -> Limits {
        Limits {
            low: self.low * factor,
            high: self.high.map(|high| high * factor),
        }
    }
}

impl From<Interval> for Limits {
    fn from(interval: Interval) -> Self {
        Self {
            low: interval.low,
            high: Some(interval.high),
        }
    }
}

/// A mean with its error. The constructors guarantee that all numbers are finite and the error is
/// not negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mean {
    /// The mean of all windows.
    pub value: f64,
    /// Its standard error, in the same unit.
    pub error: f64,
    /// Effective number of independent windows: the variance of single windows divided by the
    /// squared error. It exceeds the number of windows if neighbours compensate for each
    /// other, and is lower if they are similar. It equals the number of windows if the error
    /// is zero.
    pub effective_n: f64,
    /// Degrees of freedom of the error: the number of batches minus one.
    pub degrees: f64,
}

impl Mean {
    /// The mean of a series of equal windows, such as the operations completed in each 200 ms, by
    /// batch means over all of them. The sizes of batches differ by at most one; no window is
    /// left out. `None` with fewer than [`BATCHES_MIN`] windows, or if a value is not finite.
    ///
    /// In simulation, the interval contains the truth in 95 to 96 % of series of independent
    /// windows, whatever their number. If neighbours correlate by 0.5, it does in 92 % of
    /// series of 12 windows, 94 % of 20, and 95 to 96 % of 30 and more. At 0.8 it does in only
    /// 86 % of 12, 90 % of 20, 92 % of 30, and 95 to 96 % of 50 and more. If neighbours
    /// compensate for each other, it is on the safe side: 97 % at a correlation of -0.5, and nearly
    /// always if a strict throttle makes up in each window for everything that the previous one
    /// lacked.
    pub fn of_batches(values: &[f64]) -> Option<Mean> {
        let value = mean(values)?;
        let residuals: Vec<f64> = values.iter().map(|single| single - value).collect();
        Mean::around(value, &residuals, BATCH_SIZE)
    }

    /// The mean per operation of a quantity such as response time: the sum of all numerators
    /// divided by the sum of all denominators, both given per window. The error is that of the
    /// ratio estimator (Cochran, Sampling Techniques, 1977, ch. 6): of the residuals y - R x,
    /// in batches, divided by the mean of x; so windows with more operations have more weight.
    /// `None` with fewer than [`BATCHES_MIN`] windows, if the lengths differ, a value is not
    /// finite, or the sum of the denominators is not above zero.
    pub fn of_ratio(numerators: &[f64], denominators: &[f64]) -> Option<Mean> {
        Mean::of_ratio_in(BATCH_SIZE, numerators, denominators)
    }

    /// The same in batches of `batch` windows.
    pub fn of_ratio_in(batch: usize, numerators: &[f64], denominators: &[f64]) -> Option<Mean> {
        let (above, below) = (mean(numerators)?, mean(denominators)?);
        if numerators.len() != denominators.len() || below <= 0.0 {
            return None;
        }
        let value = above / below;
        let residuals: Vec<f64> = numerators
            .iter()
            .zip(denominators)
            .map(|(y, x)| (y - value * x) / below)
            .collect();
        Mean::around(value, &residuals, batch)
    }

    /// The 95 % confidence interval, by Student's t.
    pub fn interval(&self) -> Interval {
        let half = t_quantile(self.degrees) * self.error;
        Interval {
            low: self.value - half,
            high: self.value + half,
        }
    }

    /// Its error as a fraction of it.
    pub fn relative(&self) -> Spread {
        Spread {
            error: self.error / self.value,
            degrees: self.degrees,
        }
    }

    /// The mean with a further, independent, relative error.
    #[must_use]
    pub fn with_error(self, more: Spread) -> Mean {
        if more.error * self.value <= 0.0 {
            return self;
        }
        let both = welch(self.relative(), more);
        Mean {
            error: both.error * self.value,
            degrees: both.degrees,
            ..self
        }
    }

    /// The same mean, whose interval is that of this level: at a stricter one, its error is greater.
    #[must_use]
    pub fn at(self, level: Level) -> Mean {
        let wider = level.errors(self.degrees, self.effective_n) / t_quantile(self.degrees);
        Mean {
            error: self.error * wider,
            ..self
        }
    }

    /// The interval of a figure that cannot be negative, such as a rate or a time.
    pub fn limits(&self) -> Limits {
        let Interval { low, high } = self.interval();
        Limits {
            low: low.max(0.0),
            high: Some(high),
        }
    }

    /// The mean in another unit, such as operations per second from operations per window. `factor`
    /// must not be negative.
    pub fn scaled(self, factor: f64) -> Mean {
        Mean {
            value: self.value * factor,
            error: self.error * factor,
            ..self
        }
    }

    fn around(value: f64, residuals: &[f64], batch: usize) -> Option<Mean> {
        let Spread { error, degrees } = spread_in(batch, residuals)?;
        let n = residuals.len() as f64;
        let deviation = (residuals
            .iter()
            .map(|residual| residual * residual)
            .sum::<f64>()
            / (n - 1.0))
            .sqrt();
        let effective_n = if error > 0.0 {
            (deviation / error).powi(2)
        } else {
            n
        };
        let made = Mean {
            value,
            error,
            effective_n,
            degrees,
        };
        (value.is_finite() && error.is_finite() && effective_n.is_finite()).then_some(made)
    }
}

/// The limits between which a gamma variable of this shape and of scale 1 lies with a probability of
/// 95 %, by the cube root of chi-square (Wilson and Hilferty, Proceedings of the National Academy of
/// Sciences 17, 1931). A variance of `d` degrees of freedom is the true one times a gamma variable of
/// shape `d / 2`, divided by that shape.
pub fn gamma_limits(shape: f64) -> [f64; 2] {
    let ninth = 1.0 / (9.0 * shape);
    let normal = t_quantile(f64::INFINITY);
    [-normal, normal].map(|z| shape * (1.0 - ninth + z * ninth.sqrt()).max(0.0).powi(3))
}

/// The standard error of the sum or difference of two figures that were measured independently (Satterthwaite,
/// Biometrics Bulletin 2, 1946).
pub fn welch(a: Spread, b: Spread) -> Spread {
    let (a_squared, b_squared) = (a.error * a.error, b.error * b.error);
    let fourth = a_squared * a_squared / a.degrees + b_squared * b_squared / b.degrees;
    let degrees = if fourth > 0.0 {
        (a_squared + b_squared).powi(2) / fourth
    } else {
        a.degrees + b.degrees
    };
    Spread {
        error: (a_squared + b_squared).sqrt(),
        degrees,
    }
}

/// The value that Student's t exceeds with a probability of 2.5 %, for 1 to infinity degrees of
/// freedom; accurate to 0.2 %.
///
/// Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5: an expansion in the inverse
/// of the degrees, here with its coefficients at 0.975. The last two terms are fitted to the exact
/// values at 1 and 2 degrees, where the series would be wrong by 11 % and 0.8 %.
pub fn t_quantile(degrees: f64) -> f64 {
    const TERMS: [f64; 7] = [
        1.959_964, 2.372_271, 2.822_499, 2.555_853, 1.589_533, 0.647, 0.759,
    ];
    let inverse = 1.0 / degrees.max(1.0);
    TERMS
        .iter()
        .rev()
        .fold(0.0, |sum, term| sum * inverse + term)
}

/// When somebody looks at an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// Once, at a time that was fixed before.
    One,
    /// As often and as long as he likes, while values come in.
    Any,
}

/// How sure an interval is: when somebody looks at it, and how often it may miss the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// The looks at which it is to hold the truth, all together.
    pub looks: Looks,
    /// The probability that it does not at one of them; between 0 and 1.
    pub error: f64,
    /// Number of neighbouring values that together are nearly independent of the others: windows of one
    /// measurement, or single visits at random times.
    pub batch: usize,
}

impl Level {
    /// 95 % at one look: that of all reports.
    pub const ONE_LOOK: Self = Self {
        looks: Looks::One,
        error: 1.0 - CONFIDENCE,
        batch: BATCH_SIZE,
    };

    /// The same with another probability of an error.
    pub const fn one_look(error: f64) -> Self {
        Self {
            error,
            ..Self::ONE_LOOK
        }
    }

    /// 95 % at any number of looks.
    pub const ANY_LOOKS: Self = Self {
        looks: Looks::Any,
        error: 1.0 - CONFIDENCE,
        batch: BATCH_SIZE,
    };

    /// The number of standard errors that the interval reaches to each side. The error has these degrees
    /// of freedom, and is that of a mean of `count` independent values.
    ///
    /// One look has Student's t. Any number has the asymptotic confidence sequence of Waudby-Smith,
    /// Arbour, Sinha, Kennedy and Ramdas (Annals of Statistics 52, 2024, theorem 2.2): a normal mixture
    /// over the boundaries, here with the weight that makes it narrowest at 40 values and within 4 % of
    /// that from 14 to 200. With few degrees it is the value of Student's t that is as rare. At 95 % it
    /// is 1.6 times as wide as Student's interval, and 2.4 times with five batches.
    pub fn errors(self, degrees: f64, count: f64) -> f64 {
        const NARROWEST_AT: f64 = 40.0;
        match self.looks {
            Looks::One if self == Self::ONE_LOOK => t_quantile(degrees),
            Looks::One => student(normal_quantile(self.error / 2.0), degrees),
            Looks::Any => {
                // 2 (1 + 1 / x) ln(sqrt(x + 1) / error) is least where x = ln(x + 1) - 2 ln(error).
                let once = -2.0 * self.error.ln();
                let least = (0..3).fold(once, |x: f64, _| once + x.ln_1p()).round();
                let x = least / NARROWEST_AT * count.max(1.0);
                let rarity = ((x + 1.0).sqrt() / self.error).ln();
                student((2.0 * (1.0 + 1.0 / x) * rarity).sqrt(), degrees)
            }
        }
    }
}

/// The value of a normal distribution that is exceeded as often as this one of Student's t:
/// significance in standard deviations, whatever the degrees of freedom (Wallace, Annals of
/// Mathematical Statistics 30, 1959).
pub fn deviations(t: f64, degrees: f64) -> f64 {
    let scale = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0);
    scale * (degrees * (t * t / degrees).ln_1p()).sqrt()
}

/// The value of Student's t that is exceeded as often as this number of standard deviations: the
/// inverse of [`deviations`].
fn student(deviations: f64, degrees: f64) -> f64 {
    if degrees.is_infinite() {
        return deviations;
    }
    let scale = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0);
    (degrees * ((deviations / scale).powi(2) / degrees).exp_m1()).sqrt()
}

/// The interval that holds the next of these positive values with 95 % confidence, if the logarithms
/// of all are independent draws from one normal distribution: their mean ± t √(1 + 1/n) deviations
/// (Hahn and Meeker, Statistical Intervals, 1991, section 4.8). Equal values do not make the next one
/// certain: the deviation is at least `error`, that of one value relative to it. `None` with fewer than
/// three values.
pub fn prediction(values: &[f64], error: f64) -> Option<Interval> {
    const LEAST: usize = 3;
    if values.len() < LEAST || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let n = values.len() as f64;
    let logs = || values.iter().map(|value| value.ln());
    let mean = logs().sum::<f64>() / n;
    let squares: f64 = logs().map(|log| (log - mean).powi(2)).sum();
    let deviation = (squares / (n - 1.0)).sqrt().max(error);
    let distance = t_quantile(n - 1.0) * (1.0 + 1.0 / n).sqrt() * deviation;
    Some(Interval::around(mean.exp(), distance))
}

/// The standard error of a mean, with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Spread {
    /// The standard error.
    pub error: f64,
    /// Its degrees of freedom.
    pub degrees: f64,
}

impl Spread {
    /// Half the width of the 95 % interval, by Student's t.
    pub fn half_width(self) -> f64 {
        t_quantile(self.degrees) * self.error
    }
}

/// A change or a slope, which may be none: its size and the error of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Its size.
    pub size: f64,
    /// The standard error of it.
    pub spread: Spread,
}

impl Effect {
    /// How far it is from none, in standard deviations of a normal distribution.
    pub fn deviations(self) -> f64 {
        if self.size == 0.0 {
            return 0.0;
        }
        deviations(self.size.abs() / self.spread.error, self.spread.degrees)
    }
}

/// The standard error of the mean of `residuals`, which sum to zero, by batch means; `None` if
/// there are too few.
///
/// Batches have four windows; their size differs only if there would be fewer than 5 or more than
/// 20 batches. The remaining correlation between batches is estimated from neighbouring windows, as
/// for a first-order process. It is also estimated from neighbouring batches, if there are enough
/// of them and it is unlikely to be chance (one time in six).
pub fn spread(residuals: &[f64]) -> Option<Spread> {
    spread_in(BATCH_SIZE, residuals)
}

/// The same in batches of `batch` windows, as far as possible.
pub fn spread_in(batch: usize, residuals: &[f64]) -> Option<Spread> {
    let n = residuals.len();
    if n < BATCHES_MIN {
        return None;
    }
    let batches = (n / batch.max(1)).clamp(BATCHES_MIN, BATCHES_MAX);
    let (mut squares, mut means) = (0.0, Vec::with_capacity(batches));
    for batch in 0..batches {
        let part = &residuals[batch * n / batches..(batch + 1) * n / batches];
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        squares += part.len() as f64 * mean * mean;
        means.push(mean);
    }
    let (count, windows) = (batches as f64, n as f64);
    let variance = squares / (count - 1.0) / windows;
    let near = correlation(residuals) + MARGIN / windows.sqrt();
    let mut missed = missed_by_batches(near, windows / count, count);
    let between = correlation(&means);
    if batches >= BATCHES_CORRELATED_MIN && between > CHANCE / count.sqrt() {
        missed = missed.max(missed_by_batches(
            between + MARGIN / count.sqrt(),
            1.0,
            count,
        ));
    }
    Some(Spread {
        error: (variance * missed).sqrt(),
        degrees: count - 1.0,
    })
}

/// The error below which no averaging brings the mean of a series that has states as long as itself: the
/// Allan deviation of a fifth of it, with overlapping parts (Allan, Proceedings of the IEEE 54, 1966).
/// `None` unless values up to three places apart are more alike than chance makes them, or with fewer than
/// 20 values. `residuals` have a mean of zero.
///
/// Of 1,000 series of 45 independent values 1 % have such an error. Where half of the variance is that of
/// states whose neighbours correlate by 0.8, 81 % of intervals with it hold the truth, without it 63 %.
pub fn floor(residuals: &[f64]) -> Option<Spread> {
    const VALUES_MIN: usize = 20;
    const PARTS: usize = 5;
    const NEIGHBOURS: usize = 3;
    const CERTAIN: f64 = 2.5;
    let n = residuals.len();
    let products = |apart: usize| {
        let pairs = residuals.iter().zip(residuals.iter().skip(apart));
        pairs.map(|(one, other)| one * other).sum::<f64>()
    };
    // Of independent values each correlation is -1 / n on average, with a variance of 1 / n.
    let alike: f64 = (1..=NEIGHBOURS)
        .map(|apart| products(apart) / products(0))
        .sum();
    let of_chance = NEIGHBOURS as f64 / n as f64;
    let is_state = alike + of_chance > CERTAIN * of_chance.sqrt();
    if n < VALUES_MIN || !is_state {
        return None;
    }
    let size = n / PARTS;
    let mean = |from: usize| residuals[from..from + size].iter().sum::<f64>() / size as f64;
    let pairs = n - 2 * size + 1;
    let squares = (0..pairs).map(|at| (mean(at + size) - mean(at)).powi(2));
    Some(Spread {
        error: (squares.sum::<f64>() / 2.0 / pairs as f64).sqrt(),
        degrees: PARTS as f64 - 1.0,
    })
}

/// Correlation of neighbours in a series around zero. The plain estimate is too low in short series
/// by about (1 + 3 r) / n (Kendall, Biometrika 41, 1954); this is corrected.
fn correlation(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let squares: f64 = series.iter().map(|value| value * value).sum();
    let products: f64 = series.windows(2).map(|two| two[0] * two[1]).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let plain = products / squares;
    plain + (1.0 + 3.0 * plain) / n
}

/// The factor by which batch means underestimate the variance of the mean, for `batches` batches of
/// `size` values each from a first-order autoregressive process with correlation `rho`. A negative
/// `rho` counts as 0, which gives 1.
fn missed_by_batches(rho: f64, size: f64, batches: f64) -> f64 {
    let rho = rho.clamp(0.0, CORRELATION_MAX);
    // The variance of the mean of `k` such values, relative to that of one value.
    let of_mean = |k: f64| {
        ((1.0 + rho) / (1.0 - rho) - 2.0 * rho * (1.0 - rho.powf(k)) / (k * (1.0 - rho).powi(2)))
            / k
    };
    let whole = of_mean(size * batches);
    whole * (batches - 1.0) / (of_mean(size) - whole)
}

/// The plain mean; `None` if there are too few values for a [`Mean`], or one is not finite.
fn mean(values: &[f64]) -> Option<f64> {
    let usable = values.len() >= BATCHES_MIN && values.iter().all(|value| value.is_finite());
    usable.then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::workload::rng::Rng;

    const SERIES: usize = 1000;
    const TRUTH: f64 = 100.0;

    /// Windows with mean 100 and deviation 10 whose neighbours correlate by `rho`.
    fn correlated(rng: &mut Rng, windows: usize, rho: f64) -> Vec<f64> {
        let mut at = rng.normal();
        let mut next = || {
            at = rho * at + (1.0 - rho * rho).sqrt() * rng.normal();
            TRUTH + 10.0 * at
        };
        (0..windows).map(|_| next()).collect()
    }

    /// Windows that each make up for a part of what the previous one lacked.
    fn throttled(rng: &mut Rng, windows: usize, part: f64) -> Vec<f64> {
        let mut short = rng.normal();
        let mut next = || {
            let now = rng.normal();
            let value = TRUTH + 10.0 * (part * short - now);
            short = now;
            value
        };
        (0..windows).map(|_| next()).collect()
    }

    /// Percentage of series whose interval contains the truth.
    fn coverage(seed: u64, mut series: impl FnMut(&mut Rng) -> Option<Mean>) -> f64 {
        let mut rng = Rng::new(seed, 0);
        let held = (0..SERIES)
            .filter(|_| series(&mut rng).unwrap().interval().contains(TRUTH))
            .count();
        held as f64 / SERIES as f64 * 100.0
    }

    #[test]
    fn t_is_that_of_the_tables() {
        let table = [
            (1.0, 12.706),
            (2.0, 4.303),
            (3.0, 3.182),
            (4.0, 2.776),
            (5.0, 2.571),
            (9.0, 2.262),
            (19.0, 2.093),
            (30.0, 2.042),
            (f64::INFINITY, 1.960),
        ];
        for (degrees, t) in table {
            assert!(
                (t_quantile(degrees) / t - 1.0).abs() < 0.002,
                "{degrees}: {} is not {t}",
                t_quantile(degrees)
            );
        }
        // A non-integer case, by integrating the density: 1.5 degrees.
        assert!((t_quantile(1.5) / 6.019 - 1.0).abs() < 0.005);
    }

    #[test]
    fn a_value_of_t_is_as_significant_as_one_of_the_normal_distribution() {
        // 2.5 % exceed each of these.
        for degrees in [4.0, 9.0, 19.0, 1000.0] {
            let normal = deviations(t_quantile(degrees), degrees);
            assert!((normal / 1.96 - 1.0).abs() < 0.01, "{degrees}: {normal}");
            let back = deviations(student(3.0, degrees), degrees);
            assert!((back / 3.0 - 1.0).abs() < 1e-9, "{degrees}: {back}");
        }
    }

    #[test]
    fn the_interval_of_a_mean_holds_the_truth_as_often_as_it_says() {
        for (seed, windows) in [(1, 12), (2, 20), (3, 100)] {
            let held = coverage(seed, |rng| {
                Mean::of_batches(
                    &(0..windows)
                        .map(|_| rng.poisson(TRUTH))
                        .collect::<Vec<f64>>(),
                )
            });
            println!("{windows} independent windows: {held:.1} % of intervals hold the truth");
            assert!(
                (92.0..=98.0).contains(&held),
                "{windows} independent windows: {held} %"
            );
        }
        for (seed, windows, rho) in [
            (4, 20, 0.5),
            (5, 100, 0.5),
            (6, 100, 0.8),
            (7, 20, -0.5),
            (8, 100, -0.5),
        ] {
            let held = coverage(seed, |rng| Mean::of_batches(&correlated(rng, windows, rho)));
            println!(
                "{windows} windows that correlate by {rho}: {held:.1} % of intervals hold the \
                 truth"
            );
            assert!(
                (92.0..=98.0).contains(&held),
                "{windows} windows that correlate by {rho}: {held} %"
            );
        }
    }

    #[test]
    fn a_sequence_holds_the_truth_at_all_looks_together() {
        for (seed, rho) in [(31, 0.0), (32, 0.5), (33, -0.5)] {
            let mut rng = Rng::new(seed, 0);
            let (mut by_sequence, mut by_student) = (0, 0);
            for _ in 0..SERIES {
                let series = correlated(&mut rng, 200, rho);
                let looks = || (8..=200).filter_map(|windows| Mean::of_batches(&series[..windows]));
                by_sequence += usize::from(
                    looks().all(|mean| mean.at(Level::ANY_LOOKS).interval().contains(TRUTH)),
                );
                by_student += usize::from(looks().all(|mean| mean.interval().contains(TRUTH)));
            }
            println!(
                "correlation {rho}: at each of 193 looks the sequence holds the truth in {by_sequence} \
                 of {SERIES} series, Student's interval in {by_student}"
            );
            assert!(by_sequence >= 900, "{rho}: {by_sequence}");
            assert!(by_student < 850, "else it were of no use: {by_student}");
        }
        // Never narrower than at a time fixed before.
        for (degrees, count) in [
            (4.0, 5.0),
            (4.0, 20.0),
            (19.0, 40.0),
            (19.0, 1e3),
            (19.0, 1e6),
        ] {
            assert!(Level::ANY_LOOKS.errors(degrees, count) > 1.4 * t_quantile(degrees));
        }
    }

    #[test]
    fn an_interval_of_another_error_is_as_wide_as_it_must_be() {
        let level = |looks, error| Level {
            looks,
            error,
            batch: 1,
        };
        // Tables of the normal distribution and of Student's t.
        for (error, degrees, errors) in [
            (0.01, f64::INFINITY, 2.576),
            (0.001, f64::INFINITY, 3.291),
            (0.01, 19.0, 2.861),
            (0.05, 19.0, 2.093),
        ] {
            let found = level(Looks::One, error).errors(degrees, 20.0);
            assert!((found / errors - 1.0).abs() < 0.01, "{error}: {found}");
        }
        // Of 1,000 series, 1 % at all looks together are 10.
        let mut rng = Rng::new(34, 0);
        let missed = (0..SERIES).filter(|_| {
            let series = correlated(&mut rng, 100, 0.0);
            let ones = vec![1.0; 100];
            let mean = |visits: usize| Mean::of_ratio_in(1, &series[..visits], &ones[..visits]);
            let sure = level(Looks::Any, 0.01);
            let holds = |mean: Mean| mean.at(sure).interval().contains(TRUTH);
            !(5..=100).filter_map(mean).all(holds)
        });
        let missed = missed.count();
        println!("of {SERIES} series of visits, {missed} missed the truth at one of 96 looks");
        assert!(missed <= 20, "{missed}");
    }

    #[test]
    fn coverage_for_few_correlated_windows_falls_short_as_documented() {
        for (seed, windows, least) in [(21, 12, 83.0), (22, 20, 87.0), (23, 30, 90.0)] {
            let held = coverage(seed, |rng| Mean::of_batches(&correlated(rng, windows, 0.8)));
            println!(
                "{windows} windows that correlate by 0.8: {held:.1} % of intervals hold the truth"
            );
            assert!(
                (least..=96.0).contains(&held),
                "{windows} windows that correlate by 0.8: {held} %"
            );
        }
    }

    #[test]
    fn states_that_last_are_no_chance_that_more_values_make_smaller() {
        // Half of the variance is that of a state; for how many values it lasts, and how often an interval
        // without it and one with it must hold the truth at least and at most.
        for (rho, without, with) in [
            (0.0, 93.0..=97.0, 94.0..=98.0),
            (0.8, 55.0..=70.0, 78.0..=90.0),
        ] {
            let mut rng = Rng::new(41, 0);
            let (mut held, mut found) = ([0, 0], 0);
            for _ in 0..SERIES {
                let states = correlated(&mut rng, 45, rho);
                let values: Vec<f64> = states
                    .iter()
                    .map(|state| state + 10.0 * rng.normal())
                    .collect();
                let n = values.len() as f64;
                let mean = values.iter().sum::<f64>() / n;
                let residuals: Vec<f64> = values.iter().map(|value| value - mean).collect();
                let variance = residuals.iter().map(|one| one * one).sum::<f64>() / (n - 1.0);
                let half = t_quantile(n - 1.0) * (variance / n).sqrt();
                let lasting = floor(&residuals);
                let more = lasting.map_or(0.0, |of| t_quantile(of.degrees) * of.error);
                let off = (mean - TRUTH).abs();
                held[0] += usize::from(off <= half);
                held[1] += usize::from(off <= half.hypot(more));
                found += usize::from(lasting.is_some());
            }
            let held = held.map(|held| held as f64 / SERIES as f64 * 100.0);
            println!("states of {rho}: {held:?} %, {found} of {SERIES} found");
            assert!(
                without.contains(&held[0]) && with.contains(&held[1]),
                "{rho}: {held:?}"
            );
            assert_eq!(found > SERIES / 3, rho > 0.0, "{rho}: {found}");
        }
        assert_eq!(floor(&[0.0; 19]), None);
    }

    #[test]
    fn a_throttle_makes_the_interval_wide_rather_than_wrong() {
        for windows in [20, 100] {
            let held = coverage(9, |rng| Mean::of_batches(&throttled(rng, windows, 1.0)));
            assert!(held >= 92.0, "{windows} windows: {held} %");
        }
        // But narrower than if the windows were independent.
        let mut rng = Rng::new(10, 0);
        let mean = Mean::of_batches(&throttled(&mut rng, 100, 1.0)).unwrap();
        assert!(mean.effective_n > 200.0, "{mean:?}");
    }

    #[test]
    fn the_interval_of_a_mean_response_time_holds_the_truth_as_often_as_it_says() {
        // Busy windows have more operations, and slower ones: 100 + 40 z each, 50 + 10 z of them.
        let truth = (50.0 * 100.0 + 400.0) / 50.0;
        for (seed, windows) in [(11, 20), (12, 100)] {
            let held = coverage(seed, |rng| {
                let busy = correlated(rng, windows, 0.3);
                let counts: Vec<f64> = busy.iter().map(|busy| 50.0 + (busy - TRUTH)).collect();
                let sums: Vec<f64> = counts
                    .iter()
                    .zip(&busy)
                    .map(|(count, busy)| count * (100.0 + 4.0 * (busy - TRUTH)))
                    .collect();
                Mean::of_ratio(&sums, &counts).map(|mean| mean.scaled(TRUTH / truth))
            });
            assert!((92.0..=98.0).contains(&held), "{windows} windows: {held} %");
        }
    }

    #[test]
    fn bursts_are_worth_fewer_windows_than_there_are() {
        let mut rng = Rng::new(13, 0);
        let worth = |values: &[f64]| Mean::of_batches(values).unwrap().effective_n;
        let independent = worth(&correlated(&mut rng, 2000, 0.0));
        // At a correlation of 0.5, three windows are worth one.
        let bursts = worth(&correlated(&mut rng, 2000, 0.5));
        assert!((1000.0..4000.0).contains(&independent), "{independent}");
        assert!((333.0..1333.0).contains(&bursts), "{bursts}");
    }

    #[test]
    fn a_mean_is_of_all_windows() {
        let mean = Mean::of_batches(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 21.0]).unwrap();
        assert!((mean.value - 6.0).abs() < 1e-12 && mean.error > 0.0);
        let level = Mean::of_batches(&[7.0; 9]).unwrap();
        assert_eq!(
            level,
            Mean {
                value: 7.0,
                error: 0.0,
                effective_n: 9.0,
                degrees: 4.0
            }
        );
        assert_eq!(
            level.interval(),
            Interval {
                low: 7.0,
                high: 7.0
            }
        );
    }

    #[test]
    fn a_value_without_an_error_is_not_a_mean() {
        assert_eq!(Mean::of_batches(&[1.0; BATCHES_MIN - 1]), None);
        assert_eq!(Mean::of_batches(&[1.0, 2.0, 3.0, 4.0, f64::NAN]), None);
        assert_eq!(Mean::of_ratio(&[1.0; 8], &[0.0; 8]), None);
        assert_eq!(Mean::of_ratio(&[1.0; 8], &[1.0; 9]), None);
    }

    #[test]
    fn intervals_are_compared_by_their_ends() {
        let interval = Interval {
            low: 90.0,
            high: 110.0,
        };
        assert!(
            (interval.half_width() - 10.0).abs() < 1e-12
                && (interval.relative(100.0) - 0.1).abs() < 1e-12
        );
        assert!(interval.contains(90.0) && !interval.contains(110.1));
        assert!(interval.overlaps(Interval {
            low: 110.0,
            high: 120.0
        }));
        assert!(!interval.overlaps(Interval {
            low: 111.0,
            high: 120.0
        }));
        assert_eq!(
            interval.scaled(5.0),
            Interval {
                low: 450.0,
                high: 550.0
            }
        );
        assert!(interval.relative(0.0).is_infinite());
    }

    #[test]
    fn the_limits_of_a_gamma_variable_are_those_of_chi_square() {
        // Tables of chi-square: 2.700 and 19.02 with nine degrees of freedom, 9.591 and 34.17 with twenty.
        for (degrees, low, high) in [(9.0, 2.700, 19.023), (20.0, 9.591, 34.170)] {
            let found = gamma_limits(degrees / 2.0).map(|limit| 2.0 * limit);
            assert!((found[0] / low - 1.0).abs() < 0.01, "{found:?}");
            assert!((found[1] / high - 1.0).abs() < 0.01, "{found:?}");
        }
        assert!(gamma_limits(0.05)[0] < f64::EPSILON, "not below zero");
    }

    #[test]
    fn the_next_value_lies_within_its_prediction_as_often_as_it_should() {
        assert_eq!(prediction(&[1.0, 2.0], 0.0), None);
        assert_eq!(prediction(&[1.0, 2.0, 0.0], 0.0), None);
        let equal = prediction(&[5.0; 3], 0.001).unwrap();
        assert!(equal.low < 4.99 && equal.high > 5.01, "{equal:?}");
        for n in [3, 8, 20] {
            let holds = (0..SERIES as u64).filter(|seed| {
                let mut rng = Rng::new(*seed, 0);
                let values: Vec<f64> = (0..=n).map(|_| (0.1 * rng.normal()).exp()).collect();
                let (next, before) = values.split_last().unwrap();
                prediction(before, 0.0).unwrap().contains(*next)
            });
            let share = holds.count() as f64 / SERIES as f64;
            println!("prediction of {n} values: {:.1} %", share * 100.0);
            assert!((0.93..=0.97).contains(&share), "{n}: {share}");
        }
    }
}
