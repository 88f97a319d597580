//! How precisely the figures of one class of a point are known: intervals from its windows, and the
//! check of a bound.

use super::quantile::Quantile;
use super::statistics::{Limits, Mean};
use crate::model::Bound;
use crate::record::{Histogram, PointRecord, StreamRecord, Window};
use serde::{Deserialize, Serialize};

/// A figure with its 95 % interval, if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The 95 % confidence interval, provided that the measured time is representative.
    pub interval: Option<Limits>,
}

impl From<f64> for Estimate {
    /// A figure whose interval is not known.
    fn from(value: f64) -> Self {
        Self {
            value,
            interval: None,
        }
    }
}

impl Estimate {
    /// The figure in another unit. `factor` must not be negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            interval: self.interval.map(|interval| interval.scaled(factor)),
        }
    }

    /// Half the width of the interval as a fraction of the figure; `None` if one of the limits is
    /// unknown.
    #[must_use]
    pub fn precision(self) -> Option<f64> {
        self.interval
            .and_then(Limits::both)
            .map(|interval| interval.relative(self.value))
    }
}

/// The 95 % intervals of one class. Times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Completed operations per second.
    pub iops: Mean,
    /// Mean response time.
    pub mean_us: Option<Mean>,
    /// Median response time.
    pub p50_us: Option<Limits>,
    /// 99th percentile of response time.
    pub p99_us: Option<Limits>,
    /// 99.9th percentile of response time.
    pub p999_us: Option<Limits>,
}

impl Confidence {
    /// Intervals from the complete windows; `None` if there are too few.
    #[must_use]
    pub fn of(stream: &StreamRecord, record: &PointRecord) -> Option<Self> {
        let windows: Vec<Window> = (0..record.whole_windows())
            .map(|at| {
                let mut together = Window::default();
                stream
                    .windows_at(at)
                    .for_each(|window| together.merge(window));
                together
            })
            .collect();
        let counts: Vec<f64> = windows.iter().map(|window| window.done as f64).collect();
        let sums: Vec<f64> = windows
            .iter()
            .map(|window| window.response.sum as f64 / 1e3)
            .collect();
        let histograms: Vec<&Histogram> = windows
            .iter()
            .map(|window| &window.response.histogram)
            .collect();
        let quantile = |q| {
            let found = Quantile::of_windows(&histograms, q)?;
            found.interval.map(|interval| interval.scaled(1e-3))
        };
        Some(Self {
            iops: Mean::of_batches(&counts)?.scaled(1.0 / record.window.as_secs_f64()),
            mean_us: Mean::of_ratio(&sums, &counts),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
        })
    }
}

/// How the response times of one class compare with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundCheck {
    /// Fraction of all due operations that were certainly within the bound.
    pub share: f64,
    /// True if the bound is kept.
    pub kept: bool,
}

impl BoundCheck {
    /// Counts the operations within the bound. Failed and unserved operations are not within it. To
    /// be certain, neither are those in a histogram bucket that contains the bound.
    #[must_use]
    pub fn of(response: &Histogram, missed: u64, bound: Bound) -> Self {
        let within: u64 = response
            .buckets()
            .filter(|(_, high, _)| *high <= bound.latency.0)
            .map(|(_, _, count)| count)
            .sum();
        let all = response.count() + missed;
        let share = if all > 0 {
            within as f64 / all as f64
        } else {
            0.0
        };
        Self {
            share,
            kept: all > 0 && share >= bound.quantile,
        }
    }
}

/// True if these windows of a running measurement are enough: throughput and median response time
/// are known to within `precision`.
#[must_use]
pub fn is_precise(windows: &[Window], precision: f64) -> bool {
    let counts: Vec<f64> = windows.iter().map(|window| window.done as f64).collect();
    let histograms: Vec<&Histogram> = windows
        .iter()
        .map(|window| &window.response.histogram)
        .collect();
    super::quantile::precise(&counts, &histograms, precision)
}
