//! What a series of figures did over time: what it repeats by the calendar, how its spread and its
//! level changed, and whether it rose or fell.
//!
//! Input: values (logarithms of a rate or a latency) with their times, ascending. Output: the parts
//! of them that are beyond chance, and what is left. docs/methods/predictability.md has the method,
//! its sources and the measured rates of false alarms.

use super::calendar::{Calendar, calendar};
use super::log_series::{LogSeries, WORTH_TELLING};
use super::noise::{Fit, ROUNDING, fit};
use super::segments;
use rigel_stats::mean::Effect;
use rigel_stats::robust::{
    MAD_TO_DEVIATION, median, normal_quantile, quantile, spread_of_differences,
};

/// False-alarm rate: at most one in this many series of pure noise is reported as changed, rising,
/// falling or following the calendar.
pub const FALSE_ALARMS_ONE_IN: u32 = 1000;
/// Significance level of the search for steps, and of that for a slope. A tenth of the promised
/// rate, because several tests are made per series, and noise is never quite normal.
const SIGNIFICANCE: f64 = 0.1 / FALSE_ALARMS_ONE_IN as f64;
/// Minimum number of rounds on either side of a step: up to three slow rounds are outliers or a
/// short slowdown.
pub(super) const SEGMENT_MIN: usize = 4;
/// Minimum number of rounds of one spread.
const SPREAD_MIN: usize = 24;
/// Smallest ratio of two spreads that is worth reporting.
const SPREAD_RATIO: f64 = 1.5;
/// Maximum number of steps per series; of more, none is reported.
pub(super) const STEPS_MAX: usize = 20;
/// With fewer values than this, only the level is reported.
pub(super) const VALUES_MIN: usize = 10;
/// A value this many times the noise away is an outlier, if it is at least `OUTLIER_MIN` away.
const OUTLIER: f64 = 6.0;
const OUTLIER_MIN: f64 = 0.02;
/// The search for steps clips values that are more than this many times the noise away from their
/// neighbours.
const DRAWN_IN: f64 = 3.0;
/// Standard deviation of the logarithm of a normal variable's absolute value: π/√8.
const OF_LOGARITHM: f64 = 1.110_72;
/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// The parts of a series.
#[derive(Debug, Clone)]
pub(super) struct Explained {
    /// What it repeats by the calendar.
    pub(super) calendar: Option<Calendar>,
    /// Changes of its spread, ascending.
    pub(super) spreads: Vec<SpreadFound>,
    /// Steps, ascending.
    pub(super) steps: Vec<StepFound>,
    /// True if there are more changes than `STEPS_MAX`; then the found steps must not be reported.
    pub(super) too_many: bool,
    /// Slope per day on the logarithmic scale.
    pub(super) slope: Option<Effect>,
    /// Standard deviation of single values from the model, with outliers clipped.
    pub(super) noise: f64,
    /// Standard deviation of the values around each value, from differences of neighbours.
    pub(super) deviations: Vec<f64>,
    /// Half the range of the middle 95 % of the values around the model.
    pub(super) around: f64,
    /// The values without slope and calendar, outliers not clipped.
    pub(super) levelled: Vec<f64>,
    /// Indexes of outliers.
    pub(super) outliers: Vec<usize>,
}

/// A step in the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepFound {
    /// Index of the first value after the step.
    pub(super) at: usize,
    pub(super) change: Effect,
}

/// A change of the spread of neighbouring values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SpreadFound {
    /// Index of the first value after the change.
    pub(super) at: usize,
    /// Half the range of the middle 95 % of the values before and after it, without the rest of the
    /// model.
    pub(super) before: f64,
    pub(super) after: f64,
}

/// Explains a series; `None` if it is too short or a value is not finite.
pub(super) fn explain(series: &LogSeries) -> Option<Explained> {
    let n = series.values.len();
    let mut all = series.values.iter().chain(&series.seconds);
    if n < VALUES_MIN || all.any(|value| !value.is_finite()) {
        return None;
    }
    let calendar = calendar(series);
    let shares = calendar.as_ref().map(|calendar| &calendar.shares);
    let values: Vec<f64> = (0..n)
        .map(|at| series.values[at] - shares.map_or(0.0, |shares| shares[at]))
        .collect();
    let (spreads, deviations) = spreads(&values);
    let clipped = draw_in(&values, &deviations);
    let in_days: Vec<f64> = {
        let middle = series.seconds.last().copied().unwrap_or(0.0) / 2.0;
        series
            .seconds
            .iter()
            .map(|second| (second - middle) / DAY)
            .collect()
    };
    let search = Search {
        values: &clipped,
        deviations: &deviations,
        in_days: &in_days,
    };
    let level = search.best(false)?;
    let sloped = search.best(true).filter(|model| search.is_told(model));
    let best = sloped
        .filter(|sloped| sloped.criterion < level.criterion)
        .unwrap_or(level);
    let slope = best.sloped.then(|| best.fit.sizes[1]);
    let levelled: Vec<f64> = (0..n)
        .map(|at| values[at] - slope.map_or(0.0, |slope| slope.size * in_days[at]))
        .collect();
    let left: Vec<f64> = (0..n)
        .map(|at| best.fit.left[at] * deviations[at])
        .collect();
    let squares: f64 = left.iter().map(|value| value * value).sum();
    let noise = (squares / (n - best.fit.sizes.len()).max(1) as f64).sqrt();
    let limit = |at: usize| (OUTLIER * noise.max(deviations[at])).max(OUTLIER_MIN);
    let stands_out = |at: &usize| (levelled[*at] - middle_of(5, &levelled, *at)).abs() > limit(*at);
    let outliers = (0..n).filter(stands_out).collect();
    let first = 1 + usize::from(best.sloped);
    let steps = best.steps.iter().enumerate();
    let step = |(index, at): (usize, &usize)| StepFound {
        at: *at,
        change: best.fit.sizes[first + index],
    };
    let unexplained: Vec<f64> = (0..n)
        .map(|at| left[at] + values[at] - clipped[at])
        .collect();
    Some(Explained {
        steps: steps.map(step).collect(),
        calendar,
        spreads: ranges(&spreads, &unexplained),
        too_many: best.too_many,
        slope,
        noise,
        around: half_range(&unexplained),
        levelled,
        outliers,
        deviations,
    })
}

/// Clips values that stand out from the median of the seven around them to three times the noise
/// (Hampel's filter; Davies and Gather, Journal of the American Statistical Association 88, 1993).
/// Four in a row stay as they are.
fn draw_in(values: &[f64], deviations: &[f64]) -> Vec<f64> {
    let clip = |at: usize| {
        let (around, limit) = (middle_of(7, values, at), DRAWN_IN * deviations[at]);
        values[at].clamp(around - limit, around + limit)
    };
    (0..values.len()).map(clip).collect()
}

/// The median of a value and its neighbours on either side, as far as they exist, this many in all.
pub(super) fn middle_of(count: usize, values: &[f64], at: usize) -> f64 {
    let from = at
        .saturating_sub(count / 2)
        .min(values.len().saturating_sub(count));
    median(&values[from..(from + count).min(values.len())]).unwrap_or(values[at])
}

/// The changes of the spread, and the spread at each value. It is that of the differences of
/// neighbours, which levels and slopes do not change; their logarithms have a level for each spread.
fn spreads(values: &[f64]) -> (Vec<usize>, Vec<f64>) {
    let n = values.len();
    let usual = spread_of_differences(values).max(ROUNDING.sqrt());
    // Equal neighbours have no logarithm, and one outlier must not count much.
    let logarithm = |two: &[f64]| ((two[1] - two[0]).abs() / usual).clamp(0.05, 20.0).ln();
    let logarithms: Vec<f64> = values.windows(2).map(logarithm).collect();
    let scaled: Vec<f64> = logarithms
        .iter()
        .map(|value| value / OF_LOGARITHM)
        .collect();
    // Differences of neighbours that share a value are alike, and noise is never quite normal.
    let penalty = 2.0 * penalty_of_a_step(n);
    let mut changes = segments::changes(&scaled, penalty, SPREAD_MIN);
    let differences: Vec<f64> = values.windows(2).map(|two| two[1] - two[0]).collect();
    for index in 0..changes.len() {
        let from = if index == 0 { 0 } else { changes[index - 1] };
        let to = changes.get(index + 1).copied().unwrap_or(n - 1);
        changes[index] = boundary(&differences, from, changes[index], to);
    }
    let of = |from: usize, to: usize| spread_of_differences(&values[from..to]).max(ROUNDING.sqrt());
    loop {
        let ends: Vec<usize> = [0]
            .into_iter()
            .chain(changes.iter().copied())
            .chain([n])
            .collect();
        let parts: Vec<f64> = ends.windows(2).map(|two| of(two[0], two[1])).collect();
        let ratio = |index: usize| (parts[index + 1] / parts[index]).ln().abs();
        let least = (0..changes.len()).min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)));
        match least {
            Some(least) if ratio(least) < SPREAD_RATIO.ln() => {
                changes.remove(least);
            }
            _ => {
                // The place of a change is not known exactly, so the larger one counts around it.
                let covers = |at: usize, two: &[usize]| {
                    at + SPREAD_MIN >= two[0] && at < two[1] + SPREAD_MIN
                };
                let deviation = |at: usize| {
                    let near = ends
                        .windows(2)
                        .zip(&parts)
                        .filter(|(two, _)| covers(at, two));
                    near.map(|(_, part)| *part).fold(0.0, f64::max)
                };
                let deviations = (0..n).map(deviation).collect();
                return (changes, deviations);
            }
        }
    }
}

/// The most likely place of a change of spread near `at`, between `from` and `to`: that of normal
/// differences with the deviations on either side.
fn boundary(differences: &[f64], from: usize, at: usize, to: usize) -> usize {
    let deviation = |part: &[f64]| {
        let sizes: Vec<f64> = part.iter().map(|value| value.abs()).collect();
        (MAD_TO_DEVIATION * median(&sizes).unwrap_or(0.0)).max(ROUNDING.sqrt())
    };
    let (before, after) = (
        deviation(&differences[from..at]),
        deviation(&differences[at..to]),
    );
    let unlikely = |value: f64, deviation: f64| deviation.ln() + (value / deviation).powi(2) / 2.0;
    let near = (from + 1).max(at.saturating_sub(SPREAD_MIN))..(to - 1).min(at + SPREAD_MIN);
    let first = near.start;
    let cost = |place: usize| -> f64 {
        (first..place).fold(0.0, |sum, index| {
            sum + unlikely(differences[index], before) - unlikely(differences[index], after)
        })
    };
    near.min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
        .unwrap_or(at)
}

/// Half the range of the middle 95 % of the values.
fn half_range(values: &[f64]) -> f64 {
    let limits = quantile(values, 0.975).zip(quantile(values, 0.025));
    limits.map_or(0.0, |(high, low)| (high - low) / 2.0)
}

/// The ranges of the values before and after each of these places.
fn ranges(changes: &[usize], values: &[f64]) -> Vec<SpreadFound> {
    let range = |from: usize, to: usize| half_range(&values[from..to]);
    let spread = |(index, at): (usize, &usize)| SpreadFound {
        at: *at,
        before: range(if index == 0 { 0 } else { changes[index - 1] }, *at),
        after: range(*at, changes.get(index + 1).copied().unwrap_or(values.len())),
    };
    changes.iter().enumerate().map(spread).collect()
}

/// How much less likely the values must become, on the scale of twice the logarithm of the
/// likelihood, before one of `n` places is called a step (Bonferroni, over all places and a
/// logarithmic number of lengths).
fn penalty_of_a_step(n: usize) -> f64 {
    let n = n as f64;
    normal_quantile(SIGNIFICANCE / (2.0 * n * n.ln())).powi(2)
}

/// The search for steps in values of known spread.
struct Search<'a> {
    values: &'a [f64],
    deviations: &'a [f64],
    in_days: &'a [f64],
}

/// A level, steps, perhaps a slope, and noise.
#[derive(Debug, Clone)]
struct Model {
    sloped: bool,
    steps: Vec<usize>,
    too_many: bool,
    fit: Fit,
    /// Twice the negative logarithm of the likelihood plus the penalties.
    criterion: f64,
}

impl Search<'_> {
    /// The best model: the segmentation by PELT, of which the weakest step is removed again and
    /// again. Of all these models, the one with the lowest criterion counts. PELT takes the noise to
    /// be independent, so it finds too many steps in a slow wave; the criterion does not.
    fn best(&self, sloped: bool) -> Option<Model> {
        let n = self.values.len();
        let mut flat = self.values.to_vec();
        if sloped {
            let slope = self.model(true, Vec::new(), None)?.fit.sizes[1].size;
            flat.iter_mut()
                .zip(self.in_days)
                .for_each(|(value, days)| *value -= slope * days);
        }
        let scaled: Vec<f64> = flat
            .iter()
            .zip(self.deviations)
            .map(|(value, deviation)| value / deviation)
            .collect();
        let steps = segments::changes(&scaled, penalty_of_a_step(n), SEGMENT_MIN);
        let mut best = self.model(sloped, Vec::new(), None)?;
        if steps.len() > STEPS_MAX {
            best.too_many = self.are_steps(&scaled, &steps, &best);
            return Some(best);
        }
        let mut steps = steps;
        let mut near: Option<Fit> = None;
        while !steps.is_empty() {
            let model = self.model(sloped, steps.clone(), near.as_ref())?;
            let first = 1 + usize::from(sloped);
            let weight = |index: usize| {
                let size = model.fit.sizes[first + index];
                (size.size / size.spread.error).abs()
            };
            let weakest = (0..steps.len()).min_by(|a, b| weight(*a).total_cmp(&weight(*b)))?;
            steps.remove(weakest);
            near = Some(model.fit.clone());
            if model.criterion < best.criterion {
                best = model;
            }
        }
        Some(best)
    }

    /// True if this number of steps, with independent noise, explain the values better than a slow wave.
    fn are_steps(&self, scaled: &[f64], steps: &[usize], wave: &Model) -> bool {
        let n = scaled.len();
        let ends: Vec<usize> = [0]
            .into_iter()
            .chain(steps.iter().copied())
            .chain([n])
            .collect();
        let of_segment = |two: &[usize]| -> f64 {
            let part = &scaled[two[0]..two[1]];
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            part.iter().map(|value| (value - mean).powi(2)).sum()
        };
        let squares: f64 = ends.windows(2).map(of_segment).sum();
        let unlikely = n as f64 * (squares / n as f64).max(ROUNDING).ln();
        unlikely + self.penalties(false, steps.len()) < wave.criterion
    }

    /// The penalties of a model, larger in short series, whose noise is not known well.
    fn penalties(&self, sloped: bool, steps: usize) -> f64 {
        let n = self.values.len();
        let of_slope = normal_quantile(SIGNIFICANCE / 2.0).powi(2);
        let penalties = penalty_of_a_step(n) * steps as f64 + if sloped { of_slope } else { 0.0 };
        let parameters = 3 + steps + usize::from(sloped);
        penalties * n as f64 / n.saturating_sub(parameters).max(1) as f64
    }

    fn model(&self, sloped: bool, steps: Vec<usize>, near: Option<&Fit>) -> Option<Model> {
        let n = self.values.len();
        let scaled = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..n).map(|at| value(at) / self.deviations[at]).collect()
        };
        let mut columns = vec![scaled(&|_| 1.0)];
        if sloped {
            columns.push(scaled(&|at| self.in_days[at]));
        }
        columns.extend(
            steps
                .iter()
                .map(|step| scaled(&|at| f64::from(u8::from(at >= *step)))),
        );
        let fit = fit(&scaled(&|at| self.values[at]), &columns, near)?;
        Some(Model {
            sloped,
            too_many: false,
            criterion: fit.unlikely + self.penalties(sloped, steps.len()),
            steps,
            fit,
        })
    }

    /// True if the slope is large enough over the series to be reported, and not far larger than the values lie
    /// apart: beyond that, steps only make up for it.
    fn is_told(&self, model: &Model) -> bool {
        const TIMES_APART: f64 = 1.25;
        let whole = self.in_days[self.in_days.len() - 1] - self.in_days[0];
        let [least, greatest] = [f64::min, f64::max].map(|end: fn(f64, f64) -> f64| {
            let all = self.values.iter().copied();
            all.reduce(end).unwrap_or_default()
        });
        let possible = WORTH_TELLING..=TIMES_APART * (greatest - least);
        possible.contains(&(model.fit.sizes[1].size * whole).abs())
    }
}
