//! Noise whose neighbours are alike, and what a level, a slope and steps explain besides it.
//!
//! The noise is the sum of two parts: independent errors, and a slow wave (first-order
//! autoregressive), as of a neighbour's load under errors of measuring. The likelihood is that of
//! the Kalman filter (Harvey, Forecasting, Structural Time Series Models and the Kalman Filter,
//! 1989, ch. 3), which also makes the noise independent, so that the rest is least squares. With
//! independent errors alone, a slow wave looks like steps.

use rigel_stats::mean::{Effect, Spread};

/// Correlations of the slow wave from round to round, of which the most likely one is taken.
const CORRELATIONS: [f64; 8] = [0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.985];
/// Minimum length of a series, in units of the rounds that a wave takes to fade to 1/e.
const ROUNDS_OF_WAVE: f64 = 6.0;
/// Shares of the slow wave in the variance of the noise.
const SHARES: [f64; 7] = [0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0];
/// A column that the others explain up to this fraction adds only rounding errors.
const OWN: f64 = 1e-9;
/// Minimum variance, of rounding: a thousandth of a percent, squared.
pub(super) const ROUNDING: f64 = 1e-10;

/// A model of the values: a size for each column, and noise.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    /// Twice the logarithm of the likelihood, with the sign changed: less is more likely.
    pub(super) unlikely: f64,
    /// Size of each column.
    pub(super) sizes: Vec<Effect>,
    /// What the columns do not explain.
    pub(super) left: Vec<f64>,
    /// The indexes of the most likely correlation and share.
    at: (usize, usize),
}

/// The most likely model of the values as a sum of the columns and of noise; `near` is a similar
/// model, from which the search begins. `None` if the columns are too many or depend on each other.
pub(super) fn fit(values: &[f64], columns: &[Vec<f64>], near: Option<&Fit>) -> Option<Fit> {
    // A wave that is longer than the series cannot be distinguished from its level.
    let longest = 1.0 - ROUNDS_OF_WAVE / values.len() as f64;
    let waves = CORRELATIONS
        .iter()
        .filter(|wave| **wave <= longest)
        .count()
        .max(1);
    let of = |at: (usize, usize)| fit_at(values, columns, at);
    let starts = match near {
        Some(near) => vec![near.at],
        None => vec![(0, 0), (5.min(waves - 1), 3)],
    };
    let climb = |start: (usize, usize)| {
        let mut best = of(start)?;
        loop {
            let (wave, share) = best.at;
            let beside = [
                (wave + 1, share),
                (wave.wrapping_sub(1), share),
                (wave, share + 1),
                (wave, share.wrapping_sub(1)),
            ];
            let valid = |at: &(usize, usize)| at.0 < waves && at.1 < SHARES.len();
            let better = beside
                .into_iter()
                .filter(valid)
                .filter_map(of)
                .min_by(|a, b| a.unlikely.total_cmp(&b.unlikely))
                .filter(|other| other.unlikely < best.unlikely - 1e-6);
            match better {
                Some(better) => best = better,
                None => return Some(best),
            }
        }
    };
    starts
        .into_iter()
        .filter_map(climb)
        .min_by(|a, b| a.unlikely.total_cmp(&b.unlikely))
}

fn fit_at(values: &[f64], columns: &[Vec<f64>], at: (usize, usize)) -> Option<Fit> {
    let (n, count) = (values.len(), columns.len());
    // Two more parameters for the noise.
    let degrees = n.checked_sub(count + 2).filter(|degrees| *degrees > 0)? as f64;
    let filter = Filter::new(n, CORRELATIONS[at.0], SHARES[at.1]);
    let mut rows: Vec<Vec<f64>> = columns.iter().map(|column| filter.errors(column)).collect();
    rows.push(filter.errors(values));
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let matrix: Vec<Vec<f64>> = rows
        .iter()
        .map(|one| {
            rows[..count]
                .iter()
                .map(|other| product(one, other))
                .collect()
        })
        .collect();
    let inverse = inverse(&matrix[..count])?;
    let sizes: Vec<f64> = inverse
        .iter()
        .map(|row| product(row, &matrix[count]))
        .collect();
    let squares = (product(&rows[count], &rows[count]) - product(&sizes, &matrix[count])).max(0.0);
    let variance = (squares / degrees).max(ROUNDING);
    let explained = |index: usize| -> f64 {
        columns
            .iter()
            .zip(&sizes)
            .map(|(column, size)| column[index] * size)
            .sum()
    };
    let coefficient = |(index, size): (usize, &f64)| Effect {
        size: *size,
        spread: Spread {
            error: (variance * inverse[index][index]).sqrt(),
            degrees,
        },
    };
    Some(Fit {
        unlikely: n as f64 * (squares / n as f64).max(ROUNDING).ln() + filter.logarithms,
        sizes: sizes.iter().enumerate().map(coefficient).collect(),
        left: (0..n)
            .map(|index| values[index] - explained(index))
            .collect(),
        at,
    })
}

/// The Kalman filter of a wave with independent errors, whose variances sum up to 1.
struct Filter {
    correlation: f64,
    /// For each value: the share of an error that the wave takes over, and the deviation of errors.
    steps: Vec<(f64, f64)>,
    /// Sum of the logarithms of the errors' variances.
    logarithms: f64,
}

impl Filter {
    fn new(n: usize, correlation: f64, share: f64) -> Self {
        let mut variance = share;
        let mut logarithms = 0.0;
        // The gain soon stays the same.
        let mut same: Option<(f64, f64, f64)> = None;
        let step = |_| {
            if let Some((gain, deviation, logarithm)) = same {
                logarithms += logarithm;
                return (gain, deviation);
            }
            let before = variance;
            let total = variance + 1.0 - share;
            let gain = variance / total;
            logarithms += total.ln();
            variance =
                correlation.powi(2) * variance * (1.0 - gain) + share * (1.0 - correlation.powi(2));
            if (variance - before).abs() < 1e-12 {
                same = Some((gain, total.sqrt(), total.ln()));
            }
            (gain, total.sqrt())
        };
        let steps = (0..n).map(step).collect();
        Self {
            correlation,
            steps,
            logarithms,
        }
    }

    /// The errors of predicting each value from those before it, in units of their deviation.
    fn errors(&self, values: &[f64]) -> Vec<f64> {
        let mut expected = 0.0;
        let error = |(value, (gain, deviation)): (&f64, &(f64, f64))| {
            let error = value - expected;
            expected = self.correlation * (expected + gain * error);
            error / deviation
        };
        values.iter().zip(&self.steps).map(error).collect()
    }
}

/// The inverse of a symmetric positive definite matrix (Gauss and Jordan); `None` if there is none.
fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let unit = |row: usize| (0..n).map(move |at| f64::from(u8::from(row == at)));
    let mut rows: Vec<Vec<f64>> = matrix
        .iter()
        .enumerate()
        .map(|(row, values)| values.iter().copied().chain(unit(row)).collect())
        .collect();
    for column in 0..n {
        let pivot = rows[column][column];
        if pivot.is_nan() || pivot <= OWN * matrix[column][column] {
            return None;
        }
        rows[column].iter_mut().for_each(|value| *value /= pivot);
        let pivot_row = rows[column].clone();
        for row in (0..n).filter(|row| *row != column) {
            let times = rows[row][column];
            let pairs = rows[row].iter_mut().zip(&pivot_row);
            pairs.for_each(|(value, pivot)| *value -= times * pivot);
        }
    }
    Some(rows.into_iter().map(|row| row[n..].to_vec()).collect())
}
