//! The number of runs that would show a difference.
//!
//! Input: the figures of two sides of several runs each. Output: for the first headline figure and
//! for the one that varies most, the number of runs a side at which a difference of a given size is
//! called one in four of five comparisons.

use super::difference::beyond;
use super::row::Row;
use rigel_model::Ratio;
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::CONFIDENCE;
use serde::Serialize;

/// The difference to look for, if the user gave no limit.
const DIFFERENCE: f64 = 0.05;

/// The standard normal quantile at 80 %: a true difference is called one in four of five times.
const POWER: f64 = 0.842;

/// More runs than that are not counted.
const RUNS_MAX: u32 = 1000;

/// The number of runs a side that would show a difference in a figure.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RunsNeeded {
    /// Name of the figure.
    pub figure: String,
    /// The difference, as a fraction.
    pub difference: f64,
    /// Runs a side; `None` if more than 1000.
    pub runs: Option<u32>,
}

/// For the first headline figure of `side` and the one that varies most; empty unless both sides
/// have several runs. `share` is the part of the level of significance that a figure has, by its name.
pub(super) fn runs_needed(
    rows: &[Row],
    side: usize,
    share: impl Fn(&str) -> f64,
    limit: Option<Ratio>,
) -> Vec<RunsNeeded> {
    let difference = limit
        .map(Ratio::get)
        .filter(|limit| *limit > 0.0)
        .unwrap_or(DIFFERENCE);
    let deviations: Vec<(&str, f64)> = rows
        .iter()
        .filter(|row| row.headline)
        .filter_map(|row| Some((row.name.as_str(), deviation(row, side)?)))
        .collect();
    let widest = deviations
        .iter()
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut chosen: Vec<(&str, f64)> = deviations.first().copied().into_iter().collect();
    chosen.extend(widest.filter(|widest| chosen.first() != Some(widest)));
    chosen
        .into_iter()
        .map(|(name, deviation)| RunsNeeded {
            figure: name.into(),
            difference,
            runs: runs(deviation, difference, share(name)),
        })
        .collect()
}

/// The standard deviation of the logarithm of one run's figure, over both sides.
fn deviation(row: &Row, side: usize) -> Option<f64> {
    let of = |side: usize| {
        let n = row.runs.get(side).filter(|runs| runs.len() > 1)?.len() as f64;
        let spread = row.figures[side].and_then(Estimate::spread)?;
        Some(n * spread.error.powi(2))
    };
    Some(f64::midpoint(of(0)?, of(side)?).sqrt())
}

/// The smallest number of runs a side whose t-test, at this share of the level, finds this
/// difference. The error of a difference of two means of n runs is that of one run times the square
/// root of 2 / n.
fn runs(deviation: f64, difference: f64, share: f64) -> Option<u32> {
    let level = (1.0 - CONFIDENCE) / 2.0 * share;
    let finds = |n: u32| {
        let error = deviation * (2.0 / f64::from(n)).sqrt();
        let t = difference.ln_1p() / error - POWER;
        t > 0.0 && beyond(t, f64::from(2 * n - 2)) <= level
    };
    if !finds(RUNS_MAX) {
        return None;
    }
    let (mut low, mut high) = (1, RUNS_MAX);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if finds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_variation_and_a_smaller_difference_need_more_runs() {
        // By the tables of Student's t, for a difference of three deviations: with 3 runs,
        // 3 / sqrt(2 / 3) = 3.67 is above 2.776 + 0.842; with 2 runs, 3 is below 4.303.
        let tenth = 0.1f64.ln_1p();
        assert_eq!(runs(tenth / 3.0, 0.1, 1.0), Some(3));
        assert!(runs(0.02, 0.05, 0.1) > runs(0.01, 0.05, 0.1));
        assert!(runs(0.02, 0.05, 0.1) > runs(0.02, 0.05, 1.0));
        assert_eq!(runs(0.5, 0.001, 0.1), None);
    }
}
