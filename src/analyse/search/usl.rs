//! The Universal Scalability Law, fitted to throughput by load.
//!
//! Input: loads (outstanding I/Os) and the throughput measured at each. Output: the law's three
//! coefficients, how well they fit the measurement, and the predicted peak. It is a second opinion
//! on the knee, and states if it does not fit.
//!
//! X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)): Gunther, Guerrilla Capacity Planning,
//! 2007, ch. 4 to 6.

use serde::{Deserialize, Serialize};

/// Minimum number of loads to fit three coefficients.
const LOADS_MIN: usize = 4;
/// Maximum relative distance of a point from the law, if the law is to be believed.
const RESIDUAL_MAX: f64 = 0.10;

/// A fitted law. All numbers are finite; `lambda` is above zero, `sigma` and `kappa` are at least
/// zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput at a load of one, in the unit of the input.
    pub lambda: f64,
    /// Contention: the fraction of the work that is serial.
    pub sigma: f64,
    /// Coherency: the cost of each pair of concurrent I/Os.
    pub kappa: f64,
    /// Coefficient of determination of throughput: the fraction of its variance that the law
    /// explains; below zero if a plain mean would explain more.
    pub r_squared: f64,
    /// Maximum distance of a point from the law, as a fraction of the law's value.
    pub greatest_residual: f64,
    /// The law's maximum throughput; `None` if it rises without limit.
    pub peak: Option<Peak>,
    /// True if the law describes the measurement: no point is more than 10 % away from it.
    pub fits: bool,
}

/// The maximum throughput according to a law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// The load of the maximum.
    pub load: f64,
    /// The throughput, in the unit of the input.
    pub throughput: f64,
}

impl Usl {
    /// The law's throughput at a load.
    #[must_use]
    pub fn at(&self, load: f64) -> f64 {
        load * self.lambda / (1.0 + self.sigma * (load - 1.0) + self.kappa * load * (load - 1.0))
    }
}

/// Fits the law to `(load, throughput)`, in any order. `None` with fewer than 4 loads, or if a load
/// is below 1 or a throughput not above zero.
///
/// By linear least squares on N / X = a + b (N - 1) + c N (N - 1), each point weighted by X / N, so
/// that relative errors of throughput are minimised and large loads count no more than others.
/// Coefficients cannot be negative: of the fits with and without b and c, the closest one without a
/// negative coefficient is used.
#[must_use]
pub fn usl(points: &[(f64, f64)]) -> Option<Usl> {
    let mut loads: Vec<f64> = points.iter().map(|point| point.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let usable =
        |&(load, x): &(f64, f64)| load >= 1.0 && load.is_finite() && x > 0.0 && x.is_finite();
    if loads.len() < LOADS_MIN || !points.iter().all(usable) {
        return None;
    }
    // The terms of N / X, divided by N / X: their weighted sum is 1 at every point of a perfect
    // fit.
    let rows: Vec<[f64; 3]> = points
        .iter()
        .map(|(load, x)| [1.0, load - 1.0, load * (load - 1.0)].map(|term| term * x / load))
        .collect();
    let missed = |fit: &[f64; 3]| -> f64 {
        rows.iter()
            .map(|row| (1.0 - row.iter().zip(fit).map(|(term, k)| term * k).sum::<f64>()).powi(2))
            .sum()
    };
    let [a, b, c] = [
        [true, true, true],
        [true, true, false],
        [true, false, true],
        [true, false, false],
    ]
    .into_iter()
    .filter_map(|used| least_squares(&rows, used))
    .filter(|[a, b, c]| *a > 0.0 && *b >= 0.0 && *c >= 0.0)
    .min_by(|one, other| missed(one).total_cmp(&missed(other)))?;
    let law = Usl {
        lambda: 1.0 / a,
        sigma: b / a,
        kappa: c / a,
        r_squared: 0.0,
        greatest_residual: 0.0,
        peak: None,
        fits: false,
    };
    Some(judged(law, points))
}

/// Completes the law with its fit to the points.
fn judged(law: Usl, points: &[(f64, f64)]) -> Usl {
    let mean = points.iter().map(|(_, x)| x).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|(_, x)| (x - mean).powi(2)).sum();
    let missed: f64 = points
        .iter()
        .map(|(load, x)| (x - law.at(*load)).powi(2))
        .sum();
    let residuals = points
        .iter()
        .map(|(load, x)| (x / law.at(*load) - 1.0).abs());
    let greatest_residual = residuals.fold(0.0, f64::max);
    let peak = (law.kappa > 0.0).then(|| {
        let load = ((1.0 - law.sigma).max(0.0) / law.kappa).sqrt().max(1.0);
        Peak {
            load,
            throughput: law.at(load),
        }
    });
    Usl {
        // A level series has no variance to explain.
        r_squared: if total > 0.0 {
            1.0 - missed / total
        } else {
            0.0
        },
        greatest_residual,
        peak,
        fits: greatest_residual <= RESIDUAL_MAX,
        ..law
    }
}

/// The coefficients, zero where not `used`, that bring the row sums closest to 1; `None` if they
/// are not determined.
fn least_squares(rows: &[[f64; 3]], used: [bool; 3]) -> Option<[f64; 3]> {
    const SINGULAR: f64 = 1e-12;
    // Columns are scaled to length one, because the squares of loads would lose the rest in
    // rounding.
    let lengths: [f64; 3] =
        std::array::from_fn(|i| rows.iter().map(|row| row[i] * row[i]).sum::<f64>().sqrt());
    let product = |i: usize, j: usize| {
        rows.iter().map(|row| row[i] * row[j]).sum::<f64>() / (lengths[i] * lengths[j])
    };
    // Normal equations; an unused coefficient has its own equation with the solution zero.
    let mut equations: [[f64; 4]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| match j {
            3 if used[i] => rows.iter().map(|row| row[i]).sum::<f64>() / lengths[i],
            3 => 0.0,
            _ if used[i] && used[j] => product(i, j),
            _ => f64::from(u8::from(i == j)),
        })
    });
    // Gauss-Jordan elimination; the matrix is positive definite, so no pivoting is needed.
    for pivot in 0..3 {
        let scale = equations[pivot][pivot];
        if scale < SINGULAR {
            return None;
        }
        equations[pivot]
            .iter_mut()
            .for_each(|value| *value /= scale);
        let row = equations[pivot];
        for (_, other) in equations
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| *i != pivot)
        {
            let times = other[pivot];
            other
                .iter_mut()
                .zip(row)
                .for_each(|(value, own)| *value -= times * own);
        }
    }
    Some(std::array::from_fn(|i| equations[i][3] / lengths[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

    fn curve(throughput: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        LOADS
            .iter()
            .map(|load| (*load, throughput(*load)))
            .collect()
    }

    fn law(lambda: f64, sigma: f64, kappa: f64) -> impl Fn(f64) -> f64 {
        move |n| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }

    fn near(found: f64, truth: f64) -> bool {
        (found - truth).abs() <= 1e-6 * truth.abs().max(1e-6)
    }

    #[test]
    fn a_law_is_found_again() {
        for (lambda, sigma, kappa) in [
            (5000.0, 0.03, 0.0002),
            (12_000.0, 0.2, 0.0),
            (800.0, 0.0, 0.001),
            (100.0, 0.0, 0.0),
        ] {
            let fit = usl(&curve(law(lambda, sigma, kappa))).unwrap();
            assert!(
                near(fit.lambda, lambda) && near(fit.sigma, sigma) && near(fit.kappa, kappa),
                "{fit:?}"
            );
            assert!(
                fit.fits && fit.r_squared > 0.999_999 && fit.greatest_residual < 1e-6,
                "{fit:?}"
            );
        }
        let peak = usl(&curve(law(5000.0, 0.03, 0.0002)))
            .unwrap()
            .peak
            .unwrap();
        // The square root of (1 - 0.03) / 0.0002.
        assert!(
            (peak.load - 69.64).abs() < 0.01 && (peak.throughput - 86_680.0).abs() < 100.0,
            "{peak:?}"
        );
        // A curve that falls from the start has its peak there, not below one.
        let peak = usl(&curve(law(5000.0, 0.5, 2.0))).unwrap().peak.unwrap();
        assert!(
            near(peak.load, 1.0) && near(peak.throughput, 5000.0),
            "{peak:?}"
        );
    }

    #[test]
    fn no_coefficient_is_negative() {
        // Throughput that rises faster than load would need negative contention.
        let fit = usl(&curve(|n| n.powf(1.1))).unwrap();
        assert!(fit.sigma >= 0.0 && fit.kappa >= 0.0, "{fit:?}");
        assert!(fit.peak.is_none() && !fit.fits);
        // Noise around a law without coherency.
        let mut points = curve(law(1000.0, 0.1, 0.0));
        points
            .iter_mut()
            .enumerate()
            .for_each(|(i, point)| point.1 *= if i % 2 == 0 { 1.02 } else { 0.98 });
        let fit = usl(&points).unwrap();
        assert!(
            fit.fits && fit.kappa >= 0.0 && (fit.lambda / 1000.0 - 1.0).abs() < 0.05,
            "{fit:?}"
        );
    }

    #[test]
    fn fixed_servers_do_not_follow_the_law_and_it_says_so() {
        let fit = usl(&curve(|n| n.min(16.0) * 1000.0)).unwrap();
        assert!(!fit.fits && fit.greatest_residual > 0.1, "{fit:?}");
    }

    #[test]
    fn too_little_is_not_fitted() {
        assert_eq!(usl(&curve(|n| n)[..3]), None);
        assert_eq!(usl(&[(1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (4.0, 3.0)]), None);
        assert_eq!(usl(&curve(|n| n - 1.0)), None);
        assert_eq!(usl(&curve(|_| f64::NAN)), None);
    }
}
