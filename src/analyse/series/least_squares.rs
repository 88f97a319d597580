//! Least squares with correlated noise: first-order autoregressive, with the same correlation
//! throughout.
//!
//! Input: values, columns that may explain them, the correlation. Output: the coefficient of each
//! column, with its error. The transformation of Prais and Winsten (Cowles Commission discussion
//! paper 383, 1954; Judge et al., The Theory and Practice of Econometrics, 1985, ch. 8) makes the
//! noise independent; the rest is ordinary least squares.

/// Maximum correlation that is corrected for.
const CORRELATION_MAX: f64 = 0.95;
/// Fraction of a column that must be independent of the others; less counts as rounding.
const OWN: f64 = 1e-9;
/// Seconds of a day.
pub(super) const DAY: f64 = 86_400.0;

/// An estimated figure of a model: value, standard error and degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Coefficient {
    pub(super) value: f64,
    pub(super) error: f64,
    pub(super) degrees: f64,
}

/// A daily pattern of two harmonics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wave(pub(super) [f64; 4]);

impl Wave {
    /// The pattern's contribution at this second after midnight.
    pub(super) fn at(self, second: f64) -> f64 {
        harmonics(second)
            .iter()
            .zip(self.0)
            .map(|(wave, size)| wave * size)
            .sum()
    }

    /// The quarters of an hour of its maximum and its minimum, in seconds since midnight.
    pub(super) fn extremes(self) -> (f64, f64) {
        let quarters = || (0..96).map(|quarter| f64::from(quarter) * 900.0);
        let greatest = quarters()
            .max_by(|a, b| self.at(*a).total_cmp(&self.at(*b)))
            .unwrap_or(0.0);
        let least = quarters()
            .min_by(|a, b| self.at(*a).total_cmp(&self.at(*b)))
            .unwrap_or(0.0);
        (greatest, least)
    }
}

/// Sine and cosine of a day and of half a day, at this second after midnight.
pub(super) fn harmonics(second: f64) -> [f64; 4] {
    let angle = std::f64::consts::TAU * second / DAY;
    [
        angle.cos(),
        angle.sin(),
        (2.0 * angle).cos(),
        (2.0 * angle).sin(),
    ]
}

/// The result of a fit.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    /// The assumed correlation of neighbours.
    pub(super) rho: f64,
    /// Sum of squared residuals of the whitened values.
    pub(super) squares: f64,
    /// Degrees of freedom: number of values minus number of parameters.
    pub(super) degrees: f64,
    /// Residual of each value, not whitened.
    pub(super) left: Vec<f64>,
    sizes: Vec<f64>,
    /// Inverse of the products of the columns.
    inverse: Vec<Vec<f64>>,
}

impl Fit {
    fn variance(&self) -> f64 {
        // A standard deviation of a thousandth of a percent is rounding.
        (self.squares / self.degrees.max(1.0)).max(1e-10)
    }

    /// The coefficient of a column, with its error.
    pub(super) fn found(&self, column: usize) -> Coefficient {
        let error = (self.variance() * self.inverse[column][column]).sqrt();
        Coefficient {
            value: self.sizes[column],
            error,
            degrees: self.degrees,
        }
    }

    /// Four columns, starting at `first`, as a daily pattern.
    pub(super) fn wave(&self, first: usize) -> Wave {
        Wave(std::array::from_fn(|wave| self.sizes[first + wave]))
    }

    /// The probability that four columns, starting at `first`, explain this much in pure noise: the
    /// F test, by Bartlett's approximation of the likelihood ratio, whose distribution is chi
    /// square with four degrees.
    pub(super) fn chance_of_four(&self, first: usize) -> f64 {
        let block: Vec<Vec<f64>> = (0..4)
            .map(|row| self.inverse[first + row][first..first + 4].to_vec())
            .collect();
        let Some(weights) = inverse(&block) else {
            return 1.0;
        };
        let sizes = &self.sizes[first..first + 4];
        let explained: f64 = (0..4)
            .flat_map(|a| (0..4).map(move |b| (a, b)))
            .fold(0.0, |sum, (a, b)| sum + sizes[a] * weights[a][b] * sizes[b]);
        let ratio =
            (self.degrees + 1.0) * (1.0 + explained / self.variance() / self.degrees.max(1.0)).ln();
        (-ratio / 2.0).exp() * (1.0 + ratio / 2.0)
    }
}

/// Whitens the values: removes the correlation of neighbours.
pub(super) fn whiten(values: &[f64], rho: f64) -> Vec<f64> {
    let first = values.first().map(|first| first * (1.0 - rho * rho).sqrt());
    first
        .into_iter()
        .chain(values.windows(2).map(|two| two[1] - rho * two[0]))
        .collect()
}

/// Fits the columns to the values; `None` if the columns are not independent, or are too many.
pub(super) fn fit(values: &[f64], columns: &[Vec<f64>], rho: f64) -> Option<Fit> {
    let degrees = values
        .len()
        .checked_sub(columns.len())
        .filter(|degrees| *degrees > 0)? as f64;
    let whitened: Vec<Vec<f64>> = columns.iter().map(|column| whiten(column, rho)).collect();
    let target = whiten(values, rho);
    let mut products = vec![vec![0.0; columns.len()]; columns.len()];
    for one in 0..columns.len() {
        for other in 0..=one {
            products[one][other] = product(&whitened[one], &whitened[other]);
            products[other][one] = products[one][other];
        }
    }
    let inverse = inverse(&products)?;
    let with_target: Vec<f64> = whitened
        .iter()
        .map(|column| product(column, &target))
        .collect();
    let sizes: Vec<f64> = inverse
        .iter()
        .map(|row| product(row, &with_target))
        .collect();
    let explained = |columns: &[Vec<f64>], at: usize| -> f64 {
        columns
            .iter()
            .zip(&sizes)
            .map(|(column, size)| column[at] * size)
            .sum()
    };
    let left = (0..values.len())
        .map(|at| values[at] - explained(columns, at))
        .collect();
    let squares = (0..target.len())
        .map(|at| (target[at] - explained(&whitened, at)).powi(2))
        .sum();
    Some(Fit {
        rho,
        squares,
        degrees,
        left,
        sizes,
        inverse,
    })
}

/// Correlation of neighbouring residuals after a fit with this number of parameters. The plain
/// estimate is too low in short series (Kendall, Biometrika 41, 1954), the more so the more
/// parameters were fitted; this is corrected. `cautious` adds half a standard error, and more in
/// short series. Never below zero: noise with a negative correlation counts as independent.
pub(super) fn autocorrelation(left: &[f64], parameters: usize, cautious: bool) -> f64 {
    let (n, parameters) = (left.len() as f64, parameters as f64);
    let squares = product(left, left);
    if squares <= 0.0 {
        return 0.0;
    }
    let plain = left.windows(2).map(|two| two[0] * two[1]).sum::<f64>() / squares;
    let unbiased = plain + (parameters * (1.0 + plain) + 2.0 * plain) / n;
    let margin = if cautious {
        0.5 / n.sqrt() + 2.0 / n
    } else {
        0.0
    };
    (unbiased + margin).clamp(0.0, CORRELATION_MAX)
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// The inverse of a symmetric matrix, by elimination with the largest pivot; `None` if there is
/// none.
fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut rows: Vec<Vec<f64>> = matrix.to_vec();
    let mut inverse: Vec<Vec<f64>> = (0..n)
        .map(|row| (0..n).map(|at| f64::from(u8::from(row == at))).collect())
        .collect();
    for column in 0..n {
        let pivot =
            (column..n).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        if rows[pivot][column].abs() <= OWN * matrix[column][column].abs() {
            return None;
        }
        rows.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = 1.0 / rows[column][column];
        rows[column]
            .iter_mut()
            .chain(&mut inverse[column])
            .for_each(|value| *value *= scale);
        for row in (0..n).filter(|row| *row != column) {
            let times = rows[row][column];
            for at in 0..n {
                rows[row][at] -= times * rows[column][at];
                inverse[row][at] -= times * inverse[column][at];
            }
        }
    }
    inverse
        .iter()
        .flatten()
        .all(|value| value.is_finite())
        .then_some(inverse)
}

/// Orthonormal columns (Gram and Schmidt, applied twice because of rounding).
pub(super) struct Basis(Vec<Vec<f64>>);

impl Basis {
    pub(super) fn of(columns: impl Iterator<Item = Vec<f64>>) -> Self {
        let mut basis = Self(Vec::new());
        columns.for_each(|column| basis.add(column));
        basis
    }

    pub(super) fn columns(&self) -> &[Vec<f64>] {
        &self.0
    }

    /// Adds a column, unless it depends on the existing ones.
    pub(super) fn add(&mut self, column: Vec<f64>) {
        let before = product(&column, &column);
        let own = self.without(self.without(column));
        let length = product(&own, &own);
        if length > OWN * before {
            self.0
                .push(own.iter().map(|value| value / length.sqrt()).collect());
        }
    }

    /// The part of a column that the basis does not explain.
    pub(super) fn without(&self, mut column: Vec<f64>) -> Vec<f64> {
        for of_basis in &self.0 {
            let share = product(&column, of_basis);
            column
                .iter_mut()
                .zip(of_basis)
                .for_each(|(value, other)| *value -= share * other);
        }
        column
    }
}
