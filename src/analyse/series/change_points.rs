//! What a series of figures did over time: kept its level, rose or fell, followed the hour of the
//! day, or changed in steps.
//!
//! Input: values (logarithms of a rate or a latency) with their times, ascending. Output: the model
//! that explains them best, with the parts of it that are beyond chance. A model is a level,
//! optionally a slope and a daily pattern, and steps. The residual is noise whose neighbours
//! correlate (first-order autoregressive). The correlation is estimated and used in generalised
//! least squares; without it, a slow wave would look like steps. docs/methods/predictability.md has
//! the method, its sources and the measured rates of false alarms.

use super::least_squares::{
    Basis, Coefficient, DAY, Fit, Wave, autocorrelation, fit, harmonics, whiten,
};
use crate::analyse::figures::robust::{
    median, normal_quantile, quantile, spread_of_differences, z_of_t,
};

/// False-alarm rate: at most one in this many series of pure noise is reported as changed, rising,
/// falling or following the day.
pub const FALSE_ALARMS_ONE_IN: u32 = 1000;
/// Significance level of each single test. A tenth of the promised rate, because several tests are
/// made per series, and they assume noise more regular than it may be.
const SIGNIFICANCE: f64 = 0.1 / FALSE_ALARMS_ONE_IN as f64;
/// The significance level that makes a step a candidate for closer examination.
const CANDIDATE: f64 = 0.2;
/// Minimum number of rounds on either side of a step: one or two slow rounds are outliers.
pub(super) const SEGMENT_MIN: usize = 3;
/// Heavy tails of the noise count if a level has fewer rounds than this.
const SHORT: usize = 12;
/// With fewer steps than this, all steps are placed again when one is dropped; with more it would
/// take too long.
const FEW: usize = 6;
/// Maximum factor by which heavy tails raise the threshold of a short change.
const HEAVINESS_MAX: f64 = 3.0;
/// Maximum number of steps per series. With more, none is reported, because the omitted ones
/// distort the others.
pub(super) const STEPS_MAX: usize = 20;
/// With fewer values than this, only the level is reported.
pub(super) const VALUES_MIN: usize = 10;
/// Smallest change that is worth reporting, on the logarithmic scale: 1 %.
pub(super) const WORTH_TELLING: f64 = 0.01;
/// A value this many times the noise away is an outlier, if it is at least `OUTLIER_MIN` away.
const OUTLIER: f64 = 6.0;
const OUTLIER_MIN: f64 = 0.02;
/// The search for steps clips values that are more than this many times the noise away from their
/// neighbours.
const DRAWN_IN: f64 = 3.0;
/// Noise floor for rounding: a thousandth of a percent.
const ROUNDING: f64 = 1e-5;

/// Minimum number of days for a daily pattern; with fewer it cannot be told from chance.
const DAYS_MIN: f64 = 1.98;

/// A series of finite values, with one time per value.
#[derive(Debug, Clone)]
pub(super) struct LogSeries {
    /// Seconds since the first value.
    pub(super) seconds: Vec<f64>,
    /// Seconds since local midnight.
    pub(super) of_day: Vec<f64>,
    /// Values, as logarithms.
    pub(super) values: Vec<f64>,
}

/// The model that explains a series best.
#[derive(Debug, Clone)]
pub(super) struct Explained {
    /// Steps, ascending.
    pub(super) steps: Vec<StepFound>,
    /// True if there are more changes than `STEPS_MAX`; then the found steps must not be reported.
    pub(super) too_many: bool,
    /// Slope per day on the logarithmic scale.
    pub(super) slope: Option<Coefficient>,
    /// The daily pattern, by seconds since midnight.
    pub(super) daily: Option<Wave>,
    /// Standard deviation of single values from the model, with outliers clipped.
    pub(super) noise: f64,
    /// The values without slope and daily pattern, outliers not clipped.
    pub(super) levelled: Vec<f64>,
    /// Indexes of outliers.
    pub(super) outliers: Vec<usize>,
}

/// A step in the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepFound {
    /// Index of the first value after the step.
    pub(super) at: usize,
    pub(super) size: Coefficient,
}

/// The model that explains the series best; `None` if the series is too short or a value is not
/// finite.
pub(super) fn explain(series: &LogSeries) -> Option<Explained> {
    let n = series.values.len();
    if n < VALUES_MIN
        || series
            .values
            .iter()
            .chain(&series.seconds)
            .any(|value| !value.is_finite())
    {
        return None;
    }
    let drawn_in = draw_in(&series.values);
    let mut bases = vec![(false, false), (true, false)];
    if days_are_told(series) {
        bases.extend([(false, true), (true, true)]);
    }
    let models = bases
        .into_iter()
        .filter_map(|(sloped, daily)| model(series, &drawn_in, sloped, daily));
    let best = models.min_by(|a, b| a.criterion.total_cmp(&b.criterion))?;
    Some(best.explained(series))
}

/// True if the series covers enough days, and enough hours of the day, for a daily pattern.
fn days_are_told(series: &LogSeries) -> bool {
    let days = series.seconds.last().copied().unwrap_or(0.0) / DAY;
    let mut hours = [false; 24];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an hour of the day, below 24"
    )]
    series
        .of_day
        .iter()
        .for_each(|second| hours[((second / 3600.0) as usize).min(23)] = true);
    // Rounds at both ends of two days span one interval less than two days.
    let interval = days / (series.values.len() as f64 - 1.0);
    days + interval >= DAYS_MIN
        && hours.iter().filter(|seen| **seen).count() >= 6
        && series.values.len() >= 16
}

/// Clips values that stand out from the median of the five around them to three times the noise
/// (Hampel's filter; Davies and Gather, Journal of the American Statistical Association 88, 1993).
/// Three in a row stay as they are.
fn draw_in(values: &[f64]) -> Vec<f64> {
    let limit = DRAWN_IN * spread_of_differences(values).max(ROUNDING);
    (0..values.len())
        .map(|at| {
            let around = middle_of_five(values, at);
            values[at].clamp(around - limit, around + limit)
        })
        .collect()
}

/// The median of a value and its two neighbours on either side, as far as they exist.
pub(super) fn middle_of_five(values: &[f64], at: usize) -> f64 {
    let from = at.saturating_sub(2).min(values.len().saturating_sub(5));
    median(&values[from..(from + 5).min(values.len())]).unwrap_or(values[at])
}

/// A fitted model.
struct Model {
    sloped: bool,
    daily: bool,
    steps: Vec<usize>,
    too_many: bool,
    fit: Fit,
    criterion: f64,
}

/// Columns of level, slope and daily pattern.
fn columns(series: &LogSeries, sloped: bool, daily: bool) -> Vec<Vec<f64>> {
    let mut columns = vec![vec![1.0; series.values.len()]];
    if sloped {
        let middle = series.seconds.last().copied().unwrap_or(0.0) / 2.0;
        columns.push(
            series
                .seconds
                .iter()
                .map(|second| (second - middle) / DAY)
                .collect(),
        );
    }
    if daily {
        let waves: Vec<[f64; 4]> = series
            .of_day
            .iter()
            .map(|second| harmonics(*second))
            .collect();
        columns.extend((0..4).map(|wave| waves.iter().map(|all| all[wave]).collect()));
    }
    columns
}

fn with_steps(base: &[Vec<f64>], steps: &[usize]) -> Vec<Vec<f64>> {
    let n = base[0].len();
    let step = |at: &usize| {
        (0..n)
            .map(|index| if index >= *at { 1.0 } else { 0.0 })
            .collect()
    };
    base.iter().cloned().chain(steps.iter().map(step)).collect()
}

/// The best model with these columns; `None` if its slope or daily pattern may be chance or is too
/// small to report.
fn model(series: &LogSeries, values: &[f64], sloped: bool, daily: bool) -> Option<Model> {
    let base = columns(series, sloped, daily);
    let n = values.len();
    let (mut steps, too_many) = candidates(values, &base);
    refine(values, &base, &mut steps);
    let (fit, steps) = loop {
        let all = with_steps(&base, &steps);
        let found = correlated_fit(values, &all, true)?;
        let weight = |step: usize| {
            let found = found.found(base.len() + step);
            z_of_t(found.value / found.error, found.degrees)
        };
        let enough = normal_quantile(SIGNIFICANCE / (2.0 * places(n)));
        let tail = heaviness(&found, values, &series.values);
        let needed = |step: usize| {
            if is_short(&steps, step, n) {
                enough * tail
            } else {
                enough
            }
        };
        let margins = (0..steps.len()).map(|step| (weight(step) / needed(step), step));
        match margins.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((margin, step)) if margin < 1.0 => {
                steps.remove(step);
                // The neighbours take over what the dropped step explained, so they are placed
                // again.
                if steps.len() < FEW {
                    refine(values, &base, &mut steps);
                }
            }
            _ => break (found, steps),
        }
    };
    let whole = series.seconds.last().copied().unwrap_or(0.0) / DAY;
    if sloped {
        let slope = fit.found(1);
        let by_chance =
            z_of_t(slope.value / slope.error, slope.degrees) < normal_quantile(SIGNIFICANCE / 2.0);
        if by_chance || (slope.value * whole).abs() < WORTH_TELLING {
            return None;
        }
    }
    if daily {
        let first = base.len() - 4;
        let wave = fit.wave(first);
        let (greatest, least) = wave.extremes();
        if fit.chance_of_four(first) > SIGNIFICANCE
            || wave.at(greatest) - wave.at(least) < WORTH_TELLING
        {
            return None;
        }
    }
    // The likelihood uses the correlation as estimated, not its cautious upper value.
    let likely = correlated_fit(values, &with_steps(&base, &steps), false)?;
    let (count, variance) = (
        n as f64,
        (likely.squares / n as f64).max(ROUNDING * ROUNDING),
    );
    let parameters = (base.len() + 2 * steps.len()) as f64;
    let criterion =
        count * variance.ln() - (1.0 - likely.rho * likely.rho).ln() + parameters * count.ln();
    Some(Model {
        sloped,
        daily,
        steps,
        too_many,
        fit,
        criterion,
    })
}

/// True if the level on one side of a step has so few rounds that its mean is not normal unless the
/// noise is.
fn is_short(steps: &[usize], step: usize, n: usize) -> bool {
    let before = step.checked_sub(1).map_or(0, |before| steps[before]);
    let after = steps.get(step + 1).copied().unwrap_or(n);
    (steps[step] - before).min(after - steps[step]) < SHORT
}

/// The 99.5th percentile of the distances, relative to normal noise, to the power 1.5; clamped to 1
/// to 3.
fn heaviness(fit: &Fit, drawn_in: &[f64], values: &[f64]) -> f64 {
    let off = |at: usize| (fit.left[at] + values[at] - drawn_in[at]).abs();
    let distances: Vec<f64> = (0..values.len()).map(off).collect();
    let deviation = (fit.left.iter().map(|value| value * value).sum::<f64>() / fit.degrees).sqrt();
    let far = quantile(&distances, 0.995).unwrap_or(0.0);
    // The power makes up for the few values, which show it only roughly.
    (far / (normal_quantile(0.0025) * deviation.max(ROUNDING)))
        .powf(1.5)
        .clamp(1.0, HEAVINESS_MAX)
}

/// A fit that models the autocorrelation of its residuals; `cautious` raises the correlation by
/// half a standard error.
fn correlated_fit(values: &[f64], columns: &[Vec<f64>], cautious: bool) -> Option<Fit> {
    let mut found = fit(values, columns, 0.0)?;
    for _ in 0..2 {
        let rho = autocorrelation(&found.left, columns.len(), cautious);
        found = fit(values, columns, rho)?;
    }
    Some(found)
}

/// Number of places searched for a step: every round, and every stretch of several lengths.
fn places(n: usize) -> f64 {
    n as f64 * (1.0 + lengths(n).len() as f64)
}

/// Lengths of the stretches that are tested as a whole: each about a third more than the previous
/// one.
fn lengths(n: usize) -> Vec<usize> {
    let next = |length: &usize| Some(length + (length / 3).max(1));
    std::iter::successors(Some(SEGMENT_MIN), next)
        .take_while(|length| *length <= n / 2)
        .collect()
}

/// Candidate steps, the largest gain first (orthogonal matching pursuit), and true if there are
/// more than `STEPS_MAX`. Stretches are tested too, as in wild binary segmentation, so that a short
/// change between two long levels is found.
fn candidates(values: &[f64], base: &[Vec<f64>]) -> (Vec<usize>, bool) {
    let n = values.len();
    // The correlation of differences between neighbours does not depend on level changes (Chakar et
    // al., Bernoulli 23, 2017).
    let rho = crate::analyse::figures::robust::autocorrelation_of_differences(values);
    let noise = spread_of_differences(&whiten(values, rho)).max(ROUNDING);
    let enough = normal_quantile(CANDIDATE / (2.0 * places(n)));
    let mut basis = Basis::of(base.iter().map(|column| whiten(column, rho)));
    let mut left = basis.without(whiten(values, rho));
    let mut steps: Vec<usize> = Vec::new();
    let lengths = lengths(n);
    let too_many = loop {
        let gains = &Gains::of(&left, &basis, rho);
        let is_free = |at: usize| at >= SEGMENT_MIN && at + SEGMENT_MIN <= n && apart(&steps, at);
        let singles = (0..n)
            .filter(|at| is_free(*at))
            .map(|at| (gains.of_step(at), at, None));
        let is_free = &is_free;
        let pairs = lengths.iter().flat_map(|length| {
            let ends = move |at: &usize| is_free(*at) && is_free(at + length);
            let pair = move |at| (gains.of_stretch(at, *length), at, Some(at + length));
            (0..n.saturating_sub(*length)).filter(ends).map(pair)
        });
        let best = singles.chain(pairs).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, at, end)) = best.filter(|(gain, ..)| gain.max(0.0).sqrt() >= enough * noise)
        else {
            break false;
        };
        if steps.len() >= STEPS_MAX {
            break true;
        }
        for at in std::iter::once(at).chain(end) {
            steps.push(at);
            let step: Vec<f64> = (0..n)
                .map(|index| if index >= at { 1.0 } else { 0.0 })
                .collect();
            basis.add(whiten(&step, rho));
        }
        left = basis.without(left);
    };
    steps.sort_unstable();
    (steps, too_many)
}

/// True if `at` is at least a minimum segment away from every step.
fn apart(steps: &[usize], at: usize) -> bool {
    steps.iter().all(|other| other.abs_diff(at) >= SEGMENT_MIN)
}

/// Moves each step to where it explains most, with the others fixed.
fn refine(values: &[f64], base: &[Vec<f64>], steps: &mut [usize]) {
    let n = values.len();
    for _ in 0..2 {
        let before = steps.to_vec();
        for index in 0..steps.len() {
            let others: Vec<usize> = steps
                .iter()
                .copied()
                .filter(|other| *other != steps[index])
                .collect();
            let basis = Basis::of(with_steps(base, &others).into_iter());
            let left = basis.without(values.to_vec());
            let gains = Gains::of(&left, &basis, 0.0);
            let from = if index == 0 { 0 } else { steps[index - 1] } + SEGMENT_MIN;
            let to = steps.get(index + 1).copied().unwrap_or(n) - SEGMENT_MIN;
            let best = (from..=to).max_by(|a, b| gains.of_step(*a).total_cmp(&gains.of_step(*b)));
            steps[index] = best.unwrap_or(steps[index]);
        }
        if before == *steps {
            break;
        }
    }
}

/// The reduction of the residual squares by a step or a stretch at every place, from running sums.
struct Gains {
    rho: f64,
    left: Vec<f64>,
    left_after: Vec<f64>,
    basis: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Gains {
    fn of(left: &[f64], basis: &Basis, rho: f64) -> Self {
        let after = |column: &[f64]| {
            let mut sums = vec![0.0; column.len() + 1];
            (0..column.len())
                .rev()
                .for_each(|at| sums[at] = sums[at + 1] + column[at]);
            sums
        };
        let of_basis = |column: &Vec<f64>| (column.clone(), after(column));
        let basis = basis.columns().iter().map(of_basis).collect();
        Self {
            rho,
            left: left.to_vec(),
            left_after: after(left),
            basis,
        }
    }

    /// The product of a column with a whitened step: 1 at the step, 1 - rho behind it.
    fn product(&self, (column, after): (&[f64], &[f64]), at: usize) -> f64 {
        column[at] + (1.0 - self.rho) * after[at + 1]
    }

    fn gain(&self, squares: f64, product: impl Fn((&[f64], &[f64])) -> f64) -> f64 {
        let shared: f64 = self
            .basis
            .iter()
            .map(|(column, after)| product((column, after)).powi(2))
            .sum();
        let own = squares - shared;
        // A column that the basis already contains explains nothing more.
        if own < 1e-9 * squares {
            0.0
        } else {
            product((&self.left, &self.left_after)).powi(2) / own
        }
    }

    fn of_step(&self, at: usize) -> f64 {
        let behind = (self.left.len() - at - 1) as f64;
        self.gain(1.0 + (1.0 - self.rho).powi(2) * behind, |column| {
            self.product(column, at)
        })
    }

    fn of_stretch(&self, at: usize, length: usize) -> f64 {
        let squares = 1.0 + (1.0 - self.rho).powi(2) * (length as f64 - 1.0) + self.rho.powi(2);
        self.gain(squares, |column| {
            self.product(column, at) - self.product(column, at + length)
        })
    }
}

impl Model {
    fn explained(self, series: &LogSeries) -> Explained {
        let base = 1 + usize::from(self.sloped) + if self.daily { 4 } else { 0 };
        let slope = self.sloped.then(|| self.fit.found(1));
        let daily = self.daily.then(|| self.fit.wave(base - 4));
        let middle = series.seconds.last().copied().unwrap_or(0.0) / 2.0;
        let levelled: Vec<f64> = (0..series.values.len())
            .map(|at| {
                let sloped = slope.map_or(0.0, |slope| {
                    slope.value * (series.seconds[at] - middle) / DAY
                });
                series.values[at] - sloped - daily.map_or(0.0, |wave| wave.at(series.of_day[at]))
            })
            .collect();
        let left = &self.fit.left;
        let noise = (left.iter().map(|value| value * value).sum::<f64>()
            / self.fit.degrees.max(1.0))
        .sqrt();
        let limit = (OUTLIER * noise.max(spread_of_differences(&levelled))).max(OUTLIER_MIN);
        let stands_out =
            |at: &usize| (levelled[*at] - middle_of_five(&levelled, *at)).abs() > limit;
        let outliers = (0..levelled.len()).filter(stands_out).collect();
        let found = |(index, at): (usize, &usize)| StepFound {
            at: *at,
            size: self.fit.found(base + index),
        };
        let steps = self.steps.iter().enumerate().map(found).collect();
        Explained {
            steps,
            too_many: self.too_many,
            slope,
            daily,
            noise,
            levelled,
            outliers,
        }
    }
}
