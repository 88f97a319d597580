//! High quantiles of an open loop near saturation, by the excesses over a lower one.
//!
//! Input: the windows of a point whose queue remembers for a known time. Output: the limits of a high
//! quantile. A queue near its limit visits the region beyond its p99.9 once in minutes, so that no count
//! of the operations there can bound it. But waiting times have an exponential tail (Abate, Choudhury and
//! Whitt, Operations Research 43, 1995), which begins far below.

use rigel_model::Nanos;
use rigel_model::record::{Histogram, Window};
use rigel_stats::mean::{Interval, t_quantile};

/// The quantile from which the tail is taken to be exponential.
const FROM: f64 = 0.9;

/// Relaxation times of the queue that a batch of windows lasts, so that batches are independent.
const BATCH: u64 = 6;

/// Minimum number of batches: a hundred relaxation times. With fewer, the limits hold in 75 to 85 % of
/// runs.
const BATCHES_LEAST: usize = 16;

/// Maximum number of batches; more know the error no better.
const BATCHES_MOST: usize = 64;

/// Relative standard error of a p99.9 in times of the square root of relaxation time by measured time,
/// in simulated queues of one to eight servers at 80 to 95 %: what a quiet phase does not show.
const QUEUE_ERROR: f64 = 1.9;

/// Minimum number of excesses.
const EXCESSES_LEAST: f64 = 100.0;

/// Squared coefficients of variation of the excesses of an exponential tail: those of generalised
/// Pareto tails with shapes between -0.2 and 0.2, which are `1 / (1 - 2 shape)`.
const VARIATION: [f64; 2] = [1.0 / 1.4, 1.0 / 0.6];

/// The exponential tail of an open loop's response times.
#[derive(Debug)]
pub struct Tail {
    all: Histogram,
    /// Where it begins, in nanoseconds.
    from: u64,
    /// The excesses of each batch of windows, and of all.
    parts: Vec<Excesses>,
    sum: Excesses,
    /// Relative standard error of a queue.
    of_queue: f64,
}

impl Tail {
    /// The tail of these windows, each of which lasts `width`; the queue forgets in the time
    /// `relaxation`. `None` if the time is too short, or the tail is not exponential.
    pub fn of(windows: &[Window], width: Nanos, relaxation: Nanos) -> Option<Self> {
        let each = relaxation.0.saturating_mul(BATCH).div_ceil(width.0.max(1));
        let batches = windows.len() / usize::try_from(each.max(1)).ok()?;
        if batches < BATCHES_LEAST {
            return None;
        }
        let all: Histogram = windows
            .iter()
            .map(|window| &window.response.histogram)
            .collect();
        let from = all.quantile(FROM)?.high;
        let mut parts = vec![Excesses::default(); batches.min(BATCHES_MOST)];
        for (place, window) in windows.iter().enumerate() {
            let part = place * parts.len() / windows.len();
            parts[part].include(&window.response.histogram, from);
        }
        let sum = parts.iter().fold(Excesses::default(), Excesses::plus);
        let mean = sum.sum / sum.beyond;
        let variation = sum.squares / sum.beyond / (mean * mean) - 1.0;
        let is_exponential = (VARIATION[0]..=VARIATION[1]).contains(&variation);
        let measured_ns = windows.len() as f64 * width.0 as f64;
        (sum.beyond >= EXCESSES_LEAST && is_exponential).then(|| Self {
            all,
            from,
            parts,
            sum,
            of_queue: QUEUE_ERROR * (relaxation.0 as f64 / measured_ns).sqrt(),
        })
    }

    /// The 95 % limits of the `q`-quantile in nanoseconds. The error is a jackknife's over batches of
    /// windows, or that of a queue if it is more. The limits contain the measured quantile.
    pub fn limits(&self, q: f64) -> Option<Interval> {
        let quantile = |of: &Excesses| {
            let share = of.beyond / of.count;
            self.from as f64 + (share / (1.0 - q)).ln() * of.sum / of.beyond
        };
        let value = quantile(&self.sum);
        let number = self.parts.len() as f64;
        let squares: f64 = self
            .parts
            .iter()
            .map(|part| (quantile(&self.sum.minus(part)) - value).powi(2))
            .sum();
        let by_batches = (squares * (number - 1.0) / number).sqrt() / value;
        let half = t_quantile(number - 1.0) * by_batches.max(self.of_queue);
        let measured = self.all.quantile(q)?;
        half.is_finite().then_some(Interval {
            low: (value * (-half).exp()).min(measured.low as f64),
            high: (value * half.exp()).max(measured.high as f64),
        })
    }
}

/// The values of some windows beyond a threshold.
#[derive(Debug, Clone, Copy, Default)]
struct Excesses {
    /// Number of all values.
    count: f64,
    /// Number of those beyond the threshold.
    beyond: f64,
    /// Sum of what they exceed it by.
    sum: f64,
    /// Sum of the squares of that.
    squares: f64,
}

impl Excesses {
    fn include(&mut self, values: &Histogram, from: u64) {
        for (low, high, count) in values.buckets() {
            let count = count as f64;
            self.count += count;
            if low > from {
                let excess = f64::midpoint(low as f64, high as f64) - from as f64;
                self.beyond += count;
                self.sum += count * excess;
                self.squares += count * excess * excess;
            }
        }
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            beyond: self.beyond + other.beyond,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    fn minus(self, other: &Self) -> Self {
        Self {
            count: self.count - other.count,
            beyond: self.beyond - other.beyond,
            sum: self.sum - other.sum,
            squares: self.squares - other.squares,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::record::histogram::Bins;
    use rigel_model::workload::rng::Rng;

    fn tail(windows: &[Window], width: Nanos, relaxation: Nanos, q: f64) -> Option<Interval> {
        Tail::of(windows, width, relaxation)?.limits(q)
    }

    const WIDTH: Nanos = Nanos::from_millis(100);

    /// Windows of a thousand values each, in nanoseconds.
    fn windows(number: usize, mut value: impl FnMut() -> f64) -> Vec<Window> {
        let mut bins = Bins::default();
        let mut window = || {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            (0..1000).for_each(|_| bins.record(value() as u64));
            let mut window = Window::default();
            window.response.histogram = bins.take();
            window
        };
        (0..number).map(|_| window()).collect()
    }

    #[test]
    fn an_exponential_tail_is_known_beyond_its_values() {
        let mut rng = Rng::new(1, 0);
        let truth = 1e6 * 10_000f64.ln();
        let mut held = 0;
        for _ in 0..200 {
            // Two of 20,000 values lie beyond the quantile.
            let windows = windows(20, || 1e6 * rng.exponential());
            let limits = tail(&windows, WIDTH, Nanos(10_000), 0.9999).unwrap();
            held += usize::from(limits.low <= truth && truth <= limits.high);
            assert!(limits.high < 1.25 * truth, "{limits:?}");
        }
        assert!((180..=199).contains(&held), "{held} of 200");
    }

    #[test]
    fn a_tail_of_another_shape_and_a_short_time_have_no_limits() {
        let mut rng = Rng::new(2, 0);
        let limits = |windows: &[Window], ms| tail(windows, WIDTH, Nanos::from_millis(ms), 0.999);
        let exponential = windows(100, || 1e6 * rng.exponential());
        assert!(limits(&exponential, 100).is_some());
        assert!(limits(&exponential, 200).is_none(), "50 relaxation times");
        let level = windows(100, || 1e6 * rng.unit());
        assert!(limits(&level, 100).is_none(), "all below 1 ms");
        let heavy = windows(100, || 1e6 * (2.0 * rng.exponential()).exp());
        assert!(limits(&heavy, 100).is_none(), "some beyond any bound");
        let equal = windows(100, || 1e6);
        assert!(limits(&equal, 100).is_none(), "nothing beyond the p90");
        assert!(limits(&[], 100).is_none());
    }
}
