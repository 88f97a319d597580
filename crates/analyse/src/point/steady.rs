//! Whether throughput or response time stayed level during a measurement.

use rigel_stats::mean::{Effect, Spread, spread};
use serde::{Deserialize, Serialize};

/// Minimum number of windows for a judgement, and on either side of a step.
const WINDOWS_MIN: usize = 5;

/// Smallest change that matters, as a fraction of the mean.
const MATTERS: f64 = 0.10;

/// A series is level if its fitted line certainly changes by no more than this fraction.
const LEVEL: f64 = 0.20;

/// Deviations that make a line significant: chance reaches them once in 16,000 series.
const LINE_DEVIATIONS: f64 = 4.0;

/// Deviations that make a step significant. Its place is chosen to fit, so chance reaches more:
/// five about as often as four at a place that is given (Andrews, Econometrica 61, 1993).
const STEP_DEVIATIONS: f64 = 5.0;

/// Whether a series of windows stayed level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Steady {
    /// False if the line or the step below is significant and at least a tenth of the mean; true
    /// if the 95 % interval of the line's change lies within a fifth; null if neither is certain.
    pub steady: Option<bool>,
    /// Rise or fall of the fitted line from the first window to the last, as a fraction of the
    /// mean.
    pub slope: f64,
    /// Rise or fall of the fitted step, likewise.
    pub step: f64,
}

impl Steady {
    /// The same, without a judgement: the series is too short for one.
    pub(super) fn undecided(self) -> Self {
        Self {
            steady: None,
            ..self
        }
    }
}

/// Judges a series of consecutive windows: the sum of `numerators` by that of `denominators`, such
/// as response times by operations. `None` if there are too few, or their sums are zero.
///
/// The series is compared with a straight line and with a step at the place where it fits best.
/// The error of either change is that of what it leaves unexplained, by batch means: neighbours may
/// be alike, and the change itself does not count as noise.
pub(super) fn steady(numerators: &[f64], denominators: &[f64]) -> Option<Steady> {
    let residuals = relative(numerators, denominators)?;
    let line = line(&residuals)?;
    let step = best_step(&residuals);
    let changed =
        |change: Effect, least| change.size.abs() >= MATTERS && change.deviations() >= least;
    let has_changed =
        changed(line, LINE_DEVIATIONS) || step.is_some_and(|step| changed(step, STEP_DEVIATIONS));
    let is_level = line.size.abs() + line.spread.half_width() <= LEVEL;
    Some(Steady {
        steady: if has_changed {
            Some(false)
        } else {
            is_level.then_some(true)
        },
        slope: line.size,
        step: step.map_or(0.0, |step| step.size),
    })
}

/// Each window's deviation from the mean of all, as a fraction of it: of the ratio estimator
/// (Cochran, Sampling Techniques, 1977, chapter 6).
fn relative(numerators: &[f64], denominators: &[f64]) -> Option<Vec<f64>> {
    let n = numerators.len();
    let (above, below): (f64, f64) = (numerators.iter().sum(), denominators.iter().sum());
    if n < WINDOWS_MIN || n != denominators.len() || above <= 0.0 || below <= 0.0 {
        return None;
    }
    let (value, each) = (above / below, below / n as f64);
    let pairs = numerators.iter().zip(denominators);
    Some(pairs.map(|(y, x)| (y / value - x) / each).collect())
}

/// The change of the straight line fitted to a series around zero, from its first window to its
/// last.
fn line(residuals: &[f64]) -> Option<Effect> {
    let last = residuals.len() as f64 - 1.0;
    let places = || (0..residuals.len()).map(|at| at as f64 - last / 2.0);
    let squares: f64 = places().map(|x| x * x).sum();
    let slope = places().zip(residuals).map(|(x, y)| x * y).sum::<f64>() / squares;
    // The terms of the slope's error; they sum to zero.
    let terms: Vec<f64> = places()
        .zip(residuals)
        .map(|(x, y)| x * (y - slope * x))
        .collect();
    let of_terms = spread(&terms)?;
    Some(Effect {
        size: slope * last,
        spread: Spread {
            error: of_terms.error * residuals.len() as f64 / squares * last,
            ..of_terms
        },
    })
}

/// The step that leaves the least unexplained.
fn best_step(residuals: &[f64]) -> Option<Effect> {
    let all = residuals.len() as f64;
    let (mut before, mut best) = (0.0, (0.0, WINDOWS_MIN));
    for (at, residual) in (1..).zip(residuals) {
        before += residual;
        // The sum is zero, so that after the step is as far from zero on the other side.
        let explained = before * before * (1.0 / at as f64 + 1.0 / (all - at as f64));
        let inside = at >= WINDOWS_MIN && at + WINDOWS_MIN <= residuals.len();
        if inside && explained > best.0 {
            best = (explained, at);
        }
    }
    let (early, late) = residuals.split_at_checked(best.1)?;
    (late.len() >= WINDOWS_MIN)
        .then(|| step(early, late))
        .flatten()
}

/// The change from the mean of `early` windows to that of `late` ones, in their unit.
pub(crate) fn step(early: &[f64], late: &[f64]) -> Option<Effect> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if early.is_empty() || late.is_empty() {
        return None;
    }
    let (before, after) = (mean(early), mean(late));
    let rest: Vec<f64> = early
        .iter()
        .map(|value| value - before)
        .chain(late.iter().map(|value| value - after))
        .collect();
    let of_rest = spread(&rest)?;
    let shares = 1.0 / early.len() as f64 + 1.0 / late.len() as f64;
    Some(Effect {
        size: after - before,
        spread: Spread {
            error: of_rest.error * (rest.len() as f64 * shares).sqrt(),
            ..of_rest
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::workload::rng::Rng;

    fn judge(counts: &[f64]) -> Option<bool> {
        steady(counts, &vec![1.0; counts.len()]).unwrap().steady
    }

    /// How many of 1,000 series of counts are judged so.
    fn of_a_thousand(judgement: Option<bool>, mut level: impl FnMut(f64) -> f64) -> usize {
        let mut rng = Rng::new(3, 0);
        (0..1000)
            .filter(|_| {
                let counts: Vec<f64> = (0..60)
                    .map(|at| rng.poisson(level(f64::from(at) / 60.0)))
                    .collect();
                judge(&counts) == judgement
            })
            .count()
    }

    #[test]
    fn a_level_series_is_never_called_unsteady_however_few_its_operations() {
        for mean in [5.0, 20.0, 1000.0] {
            assert!(of_a_thousand(Some(false), |_| mean) <= 1, "{mean}");
        }
        assert!(of_a_thousand(Some(true), |_| 1000.0) >= 999);
        // Sixty times five operations cannot show that their rate changed by less than a fifth.
        assert!(of_a_thousand(None, |_| 5.0) >= 500);
    }

    #[test]
    fn a_trend_or_a_step_is_unsteady_where_chance_does_not_explain_it() {
        let falling = |at: f64| 1000.0 * (1.15 - 0.3 * at);
        assert!(of_a_thousand(Some(false), falling) >= 990);
        let stepping = |at: f64| if at < 0.7 { 1000.0 } else { 800.0 };
        assert!(of_a_thousand(Some(false), stepping) >= 990);
        // A change too small to matter, however certain.
        assert_eq!(of_a_thousand(Some(false), |at| 1e4 * (1.0 + 0.05 * at)), 0);
    }

    #[test]
    fn series_whose_neighbours_are_alike_are_seldom_called_unsteady() {
        let mut rng = Rng::new(5, 0);
        let unsteady = (0..1000).filter(|_| {
            let mut now = 0.0;
            let values: Vec<f64> = (0..100)
                .map(|_| {
                    now = 0.7 * now + rng.exponential() - 1.0;
                    20.0 + now
                })
                .collect();
            judge(&values) == Some(false)
        });
        assert!(unsteady.count() <= 10);
    }

    #[test]
    fn too_little_is_not_judged() {
        assert_eq!(steady(&[100.0; 4], &[1.0; 4]), None);
        assert_eq!(steady(&[0.0; 10], &[1.0; 10]), None);
    }
}
