//! What a series of figures did over time: held its level, rose or fell, followed the hour of the day, changed at once.
//!
//! Goes in: values (logarithms of a rate or of a latency) with their times, ascending. Comes out: the model that
//! explains them best, with what in it is beyond chance. A model is a level, a slope if there is one, a daily pattern
//! if there is one, and steps; what is left is noise whose neighbours correlate (autoregressive, of first order), which
//! is estimated and taken into account by generalised least squares, or a slow wave would be taken for steps.
//! docs/methods/predictability.md has the method, its sources and the rates of false alarms that were measured.

use super::least_squares::{Basis, Fit, autocorrelation, fit, whiten};
use super::robust::{median, normal_quantile, quantile, spread_of_differences, z_of_t};

/// How often a series of pure noise may be told to have changed, to rise or fall, or to follow the day: one in so many.
pub const FALSE_ALARMS_ONE_IN: u32 = 1000;
/// What each test is made with. A tenth of what is promised: several tests are made of a series, and they take the
/// noise for more regular than it may be.
const SIGNIFICANCE: f64 = 0.1 / FALSE_ALARMS_ONE_IN as f64;
/// What a candidate must be below to be looked at closely.
const CANDIDATE: f64 = 0.2;
/// Rounds on either side of a change, at least: a single slow round, or two, are outliers.
pub(super) const SEGMENT_MIN: usize = 3;
/// Rounds of a level below which heavy tails of the noise count.
const SHORT: usize = 12;
/// Steps of which all places are looked at again when one is dropped; of more it would take too long.
const FEW: usize = 6;
/// How much more is asked of a short change for heavy tails, at most.
const HEAVINESS_MAX: f64 = 3.0;
/// Steps that are looked at in one series, at most: of more none is told, since what was left out distorts the others.
pub(super) const STEPS_MAX: usize = 20;
/// Values below which nothing is told but the level.
pub(super) const VALUES_MIN: usize = 10;
/// Smallest change that is worth a word, on the scale of logarithms: 1 %.
pub(super) const WORTH_TELLING: f64 = 0.01;
/// Times the noise beyond which a single value is an outlier, and its least distance.
const OUTLIER: f64 = 6.0;
const OUTLIER_MIN: f64 = 0.02;
/// Times the noise to which a value may stand out from its neighbours before it is drawn in for the search of steps.
const DRAWN_IN: f64 = 3.0;
/// Noise that is taken for rounding: a thousandth of a percent.
const ROUNDING: f64 = 1e-5;
const DAY: f64 = 86_400.0;
/// Days below which a daily pattern cannot be told from chance.
const DAYS_MIN: f64 = 1.98;

/// A series: as many times as values, all finite.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// Seconds from the first value.
    pub(super) seconds: Vec<f64>,
    /// Seconds since local midnight.
    pub(super) of_day: Vec<f64>,
    /// Logarithms.
    pub(super) values: Vec<f64>,
}

/// What explains a series best.
#[derive(Debug, Clone)]
pub(super) struct Explained {
    /// First index after each step, ascending.
    pub(super) steps: Vec<StepFound>,
    /// There are more changes than steps were looked at, so those that were found are not to be told.
    pub(super) too_many: bool,
    /// Per day, on the scale of logarithms: value and standard error.
    pub(super) slope: Option<Found>,
    /// What the hour of the day adds, by seconds since midnight.
    pub(super) daily: Option<Wave>,
    /// Deviation of single values from all of that, outliers drawn in.
    pub(super) noise: f64,
    /// What single values would be without slope and daily pattern; outliers as they are.
    pub(super) levelled: Vec<f64>,
    /// Indexes of values that stand alone.
    pub(super) outliers: Vec<usize>,
}

/// A figure of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub(super) value: f64,
    pub(super) error: f64,
    pub(super) degrees: f64,
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepFound {
    /// First value after it.
    pub(super) at: usize,
    pub(super) size: Found,
}

/// A daily pattern of two harmonics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wave(pub(super) [f64; 4]);

impl Wave {
    /// What it adds so many seconds after midnight.
    pub(super) fn at(self, second: f64) -> f64 {
        harmonics(second).iter().zip(self.0).map(|(wave, size)| wave * size).sum()
    }

    /// The quarter of an hour at which it is greatest, and least: seconds since midnight.
    pub(super) fn extremes(self) -> (f64, f64) {
        let quarters = || (0..96).map(|quarter| f64::from(quarter) * 900.0);
        let greatest = quarters().max_by(|a, b| self.at(*a).total_cmp(&self.at(*b))).unwrap_or(0.0);
        let least = quarters().min_by(|a, b| self.at(*a).total_cmp(&self.at(*b))).unwrap_or(0.0);
        (greatest, least)
    }
}

fn harmonics(second: f64) -> [f64; 4] {
    let angle = std::f64::consts::TAU * second / DAY;
    [angle.cos(), angle.sin(), (2.0 * angle).cos(), (2.0 * angle).sin()]
}

/// What explains the series best. None if it is too short to tell, or a value is not finite.
pub(super) fn explain(series: &Series) -> Option<Explained> {
    let n = series.values.len();
    if n < VALUES_MIN || series.values.iter().chain(&series.seconds).any(|value| !value.is_finite()) {
        return None;
    }
    let drawn_in = draw_in(&series.values);
    let mut bases = vec![(false, false), (true, false)];
    if days_are_told(series) {
        bases.extend([(false, true), (true, true)]);
    }
    let models = bases.into_iter().filter_map(|(sloped, daily)| model(series, &drawn_in, sloped, daily));
    let best = models.min_by(|a, b| a.criterion.total_cmp(&b.criterion))?;
    Some(best.explained(series))
}

/// There are days enough, and hours enough in them.
fn days_are_told(series: &Series) -> bool {
    let days = series.seconds.last().copied().unwrap_or(0.0) / DAY;
    let mut hours = [false; 24];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an hour of the day, below 24")]
    series.of_day.iter().for_each(|second| hours[((second / 3600.0) as usize).min(23)] = true);
    // A round that begins at each end of two days leaves one interval out.
    let interval = days / (series.values.len() as f64 - 1.0);
    days + interval >= DAYS_MIN && hours.iter().filter(|seen| **seen).count() >= 6 && series.values.len() >= 16
}

/// Values that stand out from the median of the five around them, drawn in to three times the noise (Hampel's filter;
/// Davies and Gather, Journal of the American Statistical Association 88, 1993). Three in a row stay as they are.
fn draw_in(values: &[f64]) -> Vec<f64> {
    let limit = DRAWN_IN * spread_of_differences(values).max(ROUNDING);
    (0..values.len())
        .map(|at| {
            let around = middle_of_five(values, at);
            values[at].clamp(around - limit, around + limit)
        })
        .collect()
}

/// The median of a value and of two on either side, as far as there are.
pub(super) fn middle_of_five(values: &[f64], at: usize) -> f64 {
    let from = at.saturating_sub(2).min(values.len().saturating_sub(5));
    median(&values[from..(from + 5).min(values.len())]).unwrap_or(values[at])
}

/// A model that was fitted.
struct Model {
    sloped: bool,
    daily: bool,
    steps: Vec<usize>,
    too_many: bool,
    fit: Fit,
    criterion: f64,
}

/// Level, slope and daily pattern as columns.
fn columns(series: &Series, sloped: bool, daily: bool) -> Vec<Vec<f64>> {
    let mut columns = vec![vec![1.0; series.values.len()]];
    if sloped {
        let middle = series.seconds.last().copied().unwrap_or(0.0) / 2.0;
        columns.push(series.seconds.iter().map(|second| (second - middle) / DAY).collect());
    }
    if daily {
        let waves: Vec<[f64; 4]> = series.of_day.iter().map(|second| harmonics(*second)).collect();
        columns.extend((0..4).map(|wave| waves.iter().map(|all| all[wave]).collect()));
    }
    columns
}

fn with_steps(base: &[Vec<f64>], steps: &[usize]) -> Vec<Vec<f64>> {
    let n = base[0].len();
    let step = |at: &usize| (0..n).map(|index| if index >= *at { 1.0 } else { 0.0 }).collect();
    base.iter().cloned().chain(steps.iter().map(step)).collect()
}

/// The best model with these columns. None if the slope or the daily pattern in it may be chance, or cannot be told.
fn model(series: &Series, values: &[f64], sloped: bool, daily: bool) -> Option<Model> {
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
        let needed = |step: usize| if is_short(&steps, step, n) { enough * tail } else { enough };
        let margins = (0..steps.len()).map(|step| (weight(step) / needed(step), step));
        match margins.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((margin, step)) if margin < 1.0 => {
                steps.remove(step);
                // Its neighbours explain what it did.
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
        let by_chance = z_of_t(slope.value / slope.error, slope.degrees) < normal_quantile(SIGNIFICANCE / 2.0);
        if by_chance || (slope.value * whole).abs() < WORTH_TELLING {
            return None;
        }
    }
    if daily {
        let first = base.len() - 4;
        let wave = fit.wave(first);
        let (greatest, least) = wave.extremes();
        if fit.chance_of_four(first) > SIGNIFICANCE || wave.at(greatest) - wave.at(least) < WORTH_TELLING {
            return None;
        }
    }
    // Of the likelihood, with the correlation as it was found and not as it may be at most.
    let likely = correlated_fit(values, &with_steps(&base, &steps), false)?;
    let (count, variance) = (n as f64, (likely.squares / n as f64).max(ROUNDING * ROUNDING));
    let parameters = (base.len() + 2 * steps.len()) as f64;
    let criterion = count * variance.ln() - (1.0 - likely.rho * likely.rho).ln() + parameters * count.ln();
    Some(Model { sloped, daily, steps, too_many, fit, criterion })
}

/// The level on one side of a step lasts so few rounds that its mean is not normal yet if the noise is not.
fn is_short(steps: &[usize], step: usize, n: usize) -> bool {
    let before = step.checked_sub(1).map_or(0, |before| steps[before]);
    let after = steps.get(step + 1).copied().unwrap_or(n);
    (steps[step] - before).min(after - steps[step]) < SHORT
}

/// How much farther the farthest of two hundred values is off than they would be in normal noise; once to three times.
fn heaviness(fit: &Fit, drawn_in: &[f64], values: &[f64]) -> f64 {
    let off = |at: usize| (fit.left[at] + values[at] - drawn_in[at]).abs();
    let distances: Vec<f64> = (0..values.len()).map(off).collect();
    let deviation = (fit.left.iter().map(|value| value * value).sum::<f64>() / fit.degrees).sqrt();
    let far = quantile(&distances, 0.995).unwrap_or(0.0);
    // To a power, because a few values tell it only roughly.
    (far / (normal_quantile(0.0025) * deviation.max(ROUNDING))).powf(1.5).clamp(1.0, HEAVINESS_MAX)
}

/// A fit whose noise correlates as what it leaves over does; `cautious`: by half a standard error more than it was
/// found to.
fn correlated_fit(values: &[f64], columns: &[Vec<f64>], cautious: bool) -> Option<Fit> {
    let mut found = fit(values, columns, 0.0)?;
    for _ in 0..2 {
        let rho = autocorrelation(&found.left, columns.len(), cautious);
        found = fit(values, columns, rho)?;
    }
    Some(found)
}

/// How many places a step is looked for in: every round, and every stretch of several lengths.
fn places(n: usize) -> f64 {
    n as f64 * (1.0 + lengths(n).len() as f64)
}

/// Lengths of stretches that are looked at as a whole: each about a third more than the one before.
fn lengths(n: usize) -> Vec<usize> {
    let next = |length: &usize| Some(length + (length / 3).max(1));
    std::iter::successors(Some(SEGMENT_MIN), next).take_while(|length| *length <= n / 2).collect()
}

/// Steps that may be more than chance, by the greatest gain first (orthogonal matching pursuit; with stretches, as wild
/// binary segmentation has them, a short change between two long levels is seen as well); and whether there are more of
/// them than are looked at.
fn candidates(values: &[f64], base: &[Vec<f64>]) -> (Vec<usize>, bool) {
    let n = values.len();
    // As neighbours differ when their level does not (Chakar et al., Bernoulli 23, 2017).
    let rho = super::robust::autocorrelation_of_differences(values);
    let noise = spread_of_differences(&whiten(values, rho)).max(ROUNDING);
    let enough = normal_quantile(CANDIDATE / (2.0 * places(n)));
    let mut basis = Basis::of(base.iter().map(|column| whiten(column, rho)));
    let mut left = basis.without(whiten(values, rho));
    let mut steps: Vec<usize> = Vec::new();
    let lengths = lengths(n);
    let too_many = loop {
        let gains = &Gains::of(&left, &basis, rho);
        let is_free = |at: usize| at >= SEGMENT_MIN && at + SEGMENT_MIN <= n && apart(&steps, at);
        let singles = (0..n).filter(|at| is_free(*at)).map(|at| (gains.of_step(at), at, None));
        let is_free = &is_free;
        let pairs = lengths.iter().flat_map(|length| {
            let ends = move |at: &usize| is_free(*at) && is_free(at + length);
            let pair = move |at| (gains.of_stretch(at, *length), at, Some(at + length));
            (0..n.saturating_sub(*length)).filter(ends).map(pair)
        });
        let best = singles.chain(pairs).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, at, end)) = best.filter(|(gain, ..)| gain.max(0.0).sqrt() >= enough * noise) else { break false };
        if steps.len() >= STEPS_MAX {
            break true;
        }
        for at in std::iter::once(at).chain(end) {
            steps.push(at);
            let step: Vec<f64> = (0..n).map(|index| if index >= at { 1.0 } else { 0.0 }).collect();
            basis.add(whiten(&step, rho));
        }
        left = basis.without(left);
    };
    steps.sort_unstable();
    (steps, too_many)
}

/// No step is nearer than a segment may be.
fn apart(steps: &[usize], at: usize) -> bool {
    steps.iter().all(|other| other.abs_diff(at) >= SEGMENT_MIN)
}

/// Moves each step to where it explains most, the others as they are.
fn refine(values: &[f64], base: &[Vec<f64>], steps: &mut [usize]) {
    let n = values.len();
    for _ in 0..2 {
        let before = steps.to_vec();
        for index in 0..steps.len() {
            let others: Vec<usize> = steps.iter().copied().filter(|other| *other != steps[index]).collect();
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

/// By how much a step or a stretch would lessen the squares that are left, for every place, from running sums.
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
            (0..column.len()).rev().for_each(|at| sums[at] = sums[at + 1] + column[at]);
            sums
        };
        let of_basis = |column: &Vec<f64>| (column.clone(), after(column));
        let basis = basis.columns().iter().map(of_basis).collect();
        Self { rho, left: left.to_vec(), left_after: after(left), basis }
    }

    /// The product of a column with a whitened step: 1 where it happens, 1 - rho behind.
    fn product(&self, (column, after): (&[f64], &[f64]), at: usize) -> f64 {
        column[at] + (1.0 - self.rho) * after[at + 1]
    }

    fn gain(&self, squares: f64, product: impl Fn((&[f64], &[f64])) -> f64) -> f64 {
        let shared: f64 = self.basis.iter().map(|(column, after)| product((column, after)).powi(2)).sum();
        let own = squares - shared;
        // What the basis holds already explains nothing more.
        if own < 1e-9 * squares { 0.0 } else { product((&self.left, &self.left_after)).powi(2) / own }
    }

    fn of_step(&self, at: usize) -> f64 {
        let behind = (self.left.len() - at - 1) as f64;
        self.gain(1.0 + (1.0 - self.rho).powi(2) * behind, |column| self.product(column, at))
    }

    fn of_stretch(&self, at: usize, length: usize) -> f64 {
        let squares = 1.0 + (1.0 - self.rho).powi(2) * (length as f64 - 1.0) + self.rho.powi(2);
        self.gain(squares, |column| self.product(column, at) - self.product(column, at + length))
    }
}

impl Model {
    fn explained(self, series: &Series) -> Explained {
        let base = 1 + usize::from(self.sloped) + if self.daily { 4 } else { 0 };
        let slope = self.sloped.then(|| self.fit.found(1));
        let daily = self.daily.then(|| self.fit.wave(base - 4));
        let middle = series.seconds.last().copied().unwrap_or(0.0) / 2.0;
        let levelled: Vec<f64> = (0..series.values.len())
            .map(|at| {
                let sloped = slope.map_or(0.0, |slope| slope.value * (series.seconds[at] - middle) / DAY);
                series.values[at] - sloped - daily.map_or(0.0, |wave| wave.at(series.of_day[at]))
            })
            .collect();
        let left = &self.fit.left;
        let noise = (left.iter().map(|value| value * value).sum::<f64>() / self.fit.degrees.max(1.0)).sqrt();
        let limit = (OUTLIER * noise.max(spread_of_differences(&levelled))).max(OUTLIER_MIN);
        let stands_out = |at: &usize| (levelled[*at] - middle_of_five(&levelled, *at)).abs() > limit;
        let outliers = (0..levelled.len()).filter(stands_out).collect();
        let found = |(index, at): (usize, &usize)| StepFound { at: *at, size: self.fit.found(base + index) };
        let steps = self.steps.iter().enumerate().map(found).collect();
        Explained { steps, too_many: self.too_many, slope, daily, noise, levelled, outliers }
    }
}
