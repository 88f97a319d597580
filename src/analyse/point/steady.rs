//! Whether throughput was steady during a measurement.

use serde::{Deserialize, Serialize};

/// Minimum number of windows for a judgement.
const WINDOWS_MIN: usize = 5;

/// SNIA's bounds (Performance Test Specification, steady state): range and slope within these
/// fractions of the mean.
const RANGE: f64 = 0.20;
const SLOPE: f64 = 0.10;

/// The judgement on a series of counts in windows of equal width, by SNIA's rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// True if both bounds are kept.
    pub steady: bool,
    /// Maximum minus minimum, as a fraction of the mean; SNIA allows 20 % (within 10 % of the mean
    /// on either side).
    pub range: f64,
    /// Rise or fall of the fitted line from the first window to the last, as a fraction of the
    /// mean; SNIA allows 10 %.
    pub slope: f64,
}

/// Judges counts of complete windows of equal width: a second each in a report, or less during a
/// run. `None` if there are too few or all counts are zero.
#[must_use]
pub fn steady(counts: &[u64]) -> Option<Steady> {
    let n = counts.len();
    let values: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    let mean = values.iter().sum::<f64>() / n as f64;
    if n < WINDOWS_MIN || mean <= 0.0 {
        return None;
    }
    let (least, greatest) = values.iter().fold((f64::MAX, 0.0f64), |(low, high), v| {
        (low.min(*v), high.max(*v))
    });
    let middle = (n as f64 - 1.0) / 2.0;
    let (mut xy, mut xx) = (0.0, 0.0);
    for (x, y) in values.iter().enumerate() {
        xy += (x as f64 - middle) * (y - mean);
        xx += (x as f64 - middle).powi(2);
    }
    // Chance alone spreads counts, and more so the more there are: the maximum of n lies about
    // sqrt(2 ln n) standard deviations above the mean, the minimum as far below. Two more
    // deviations are seldom exceeded.
    let spread = 2.0 * (2.0 * (n as f64).ln()).sqrt() + 2.0;
    let allowed = RANGE.max(spread / mean.sqrt());
    let (range, slope) = ((greatest - least) / mean, xy / xx * (n as f64 - 1.0) / mean);
    Some(Steady {
        steady: range <= allowed && slope.abs() <= SLOPE.max(allowed / 2.0),
        range,
        slope,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_is_steady_and_a_slope_or_a_gap_is_not() {
        let judge = |counts: &[u64]| steady(counts).unwrap();
        assert!(judge(&[10_000, 10_500, 9_800, 10_100, 9_900, 10_000]).steady);
        let falling = judge(&[11_000, 10_800, 10_500, 10_200, 9_900, 9_500]);
        assert!(!falling.steady && falling.slope < -0.10, "{falling:?}");
        let gap = judge(&[10_000, 10_000, 1_000, 10_000, 10_000, 10_000]);
        assert!(!gap.steady && gap.range > 0.9, "{gap:?}");
    }

    #[test]
    fn small_counts_may_spread_as_chance_does() {
        assert!(steady(&[25, 31, 20, 27, 24, 29]).unwrap().steady);
        assert!(!steady(&[25, 31, 2, 27, 24, 90]).unwrap().steady);
    }

    #[test]
    fn a_steady_series_is_rarely_called_unsteady() {
        // An hour of Poisson counts with mean 100, a hundred times; each counts exponential gaps.
        let mut rng = crate::workload::rng::Rng::new(3, 0);
        let mut count = || {
            let (mut time, mut count) = (0.0, 0);
            loop {
                time += rng.exponential();
                if time > 100.0 {
                    return count;
                }
                count += 1;
            }
        };
        let unsteady = (0..100).filter(|_| {
            let counts: Vec<u64> = (0..3600).map(|_| count()).collect();
            !steady(&counts).unwrap().steady
        });
        assert!(unsteady.count() <= 3);
    }

    #[test]
    fn too_little_is_not_judged() {
        assert_eq!(steady(&[100; 4]), None);
        assert_eq!(steady(&[0; 10]), None);
    }
}
