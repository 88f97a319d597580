//! How well the figures of one class of a point are known: intervals from its windows, and how its response times
//! stand to a bound.

use super::quantile::Quantile;
use super::statistics::{Limits, Mean};
use crate::model::Bound;
use crate::record::{Histogram, PointRecord, StreamRecord, Window};
use serde::{Deserialize, Serialize};

/// A figure with its 95 % interval; none where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// What holds the truth with 95 % confidence, as far as the measured time stands for all time.
    pub interval: Option<Limits>,
}

impl Estimate {
    /// The figure in another unit. `factor` must not be negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, interval: self.interval.map(|interval| interval.scaled(factor)) }
    }

    /// Half the width of the interval as a share of the figure; none where one of its ends is not known.
    #[must_use]
    pub fn precision(self) -> Option<f64> {
        self.interval.and_then(Limits::both).map(|interval| interval.relative(self.value))
    }
}

/// The 95 % intervals of one class. Times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Operations done a second.
    pub iops: Mean,
    /// Mean response time.
    pub mean_us: Option<Mean>,
    /// Median response time.
    pub p50_us: Option<Limits>,
    /// 99 % are not slower.
    pub p99_us: Option<Limits>,
    /// 99.9 % are not slower.
    pub p999_us: Option<Limits>,
}

impl Confidence {
    /// From the windows that were measured to their end; none if they are too few.
    #[must_use]
    pub fn of(stream: &StreamRecord, record: &PointRecord) -> Option<Self> {
        let windows: Vec<Window> = (0..record.whole_windows())
            .map(|at| {
                let mut together = Window::default();
                stream.windows_at(at).for_each(|window| together.merge(window));
                together
            })
            .collect();
        let counts: Vec<f64> = windows.iter().map(|window| window.done as f64).collect();
        let sums: Vec<f64> = windows.iter().map(|window| window.response.sum as f64 / 1e3).collect();
        let histograms: Vec<&Histogram> = windows.iter().map(|window| &window.response.histogram).collect();
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

/// How the response times of one class stand to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// Share of operations that certainly were as good, of all that were due.
    pub share: f64,
    /// The bound is kept.
    pub kept: bool,
}

impl Within {
    /// Counts the operations within the bound. What failed or was never served is not within it; nor, to be sure, is
    /// what lies in a bucket that the bound cuts.
    #[must_use]
    pub fn of(response: &Histogram, missed: u64, bound: Bound) -> Self {
        let within: u64 =
            response.buckets().filter(|(_, high, _)| *high <= bound.latency.0).map(|(_, _, count)| count).sum();
        let all = response.count() + missed;
        let share = if all > 0 { within as f64 / all as f64 } else { 0.0 };
        Self { share, kept: all > 0 && share >= bound.quantile }
    }
}

/// True when a running measurement of these windows has shown enough: throughput and median response time are known to
/// within `precision`.
#[must_use]
pub fn is_precise(windows: &[Window], precision: f64) -> bool {
    let counts: Vec<f64> = windows.iter().map(|window| window.done as f64).collect();
    let histograms: Vec<&Histogram> = windows.iter().map(|window| &window.response.histogram).collect();
    super::quantile::precise(&counts, &histograms, precision)
}
