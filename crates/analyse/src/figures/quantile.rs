//! Quantiles of latency with their interval, and the stopping rule of a running measurement.
//!
//! Input: one histogram for each of many windows of equal width, in order of time. Output: the
//! bucket that contains a quantile of all of them, and its 95 % confidence interval. It is never
//! more exact than a bucket of the histogram, and there is no interval if there are too few
//! operations.
//!
//! The error is that of the fraction of operations that take no longer than the quantile. This
//! fraction is a mean of ones and zeros, and its standard error is estimated like that of any mean,
//! over batches of windows; the quantiles at the two limits of the fraction are the interval. So
//! slow operations that come in bunches widen it, as they should. (For independent values this is
//! the interval of order statistics: David and Nagaraja, Order Statistics, 2003, ch. 7.)

use rigel_model::record::{Band, Histogram};
use rigel_stats::mean::{Level, Limits, Mean, Spread, spread_in};
use rigel_stats::noise::{Deviation, Noise};

/// With fewer expected values beyond a quantile than this, batches cannot show its error.
const BEYOND_MIN: f64 = 10.0;

/// Minimum number of independent values expected beyond a quantile for an upper limit. Fewer hardly
/// show how far the tail reaches, and never that it reaches beyond their maximum.
pub(super) const INDEPENDENT_FOR_UPPER: f64 = 5.0;
/// Minimum number of independent values expected beyond a quantile for any interval.
const INDEPENDENT_FOR_LOWER: f64 = 1.0;
/// For an upper limit, the values beyond the quantile must be spread over this many windows, or
/// over half of all windows if that is less. The error alone is not enough: among series with a few
/// bunches, those whose error is small by chance would get an upper limit, and it was right in 27
/// of 43 series instead of 41.
pub(super) const SPREAD_OVER: f64 = 15.0;

/// Number of windows at the first check for precision.
const FIRST_LOOK: usize = 16;

/// A quantile of latency, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// The fraction of values below it: 0.5 is the median.
    pub q: f64,
    /// The bucket that contains the exact quantile of the measured values.
    pub band: Band,
    /// The 95 % confidence interval, to the outer edges of its buckets.
    ///
    /// The upper limit is unknown if it would lie above the maximum measured value, if fewer than
    /// five independent values lie beyond the quantile, or if these come in bunches, spread
    /// over fewer than fifteen windows.
    ///
    /// There is no interval with fewer than [`BATCHES_MIN`](crate::BATCHES_MIN) windows,
    /// without an independent value beyond the quantile, or if even the maximum measured value
    /// lies below the true quantile with a probability above 2.5 %, as with fewer than 3.7 /
    /// (1 - `q`) operations; likewise for the minimum. There is none either if windows differ
    /// so much that no lower limit above the minimum value is known.
    pub interval: Option<Limits>,
}

impl Quantile {
    /// The `q`-quantile of all windows together, and its interval of this level; `None` if they are
    /// empty.
    ///
    /// In simulation, with lognormal latencies and 2,000 values in 20 or 100 windows, the intervals
    /// of median and p99 contain the truth in 96 to 97 % of series if windows are independent,
    /// and in 94 to 97 % if they drift up and down. They contain it more often if they are so
    /// narrow that the edges of buckets widen them, or if the tail has few values.
    pub fn of_windows(windows: &[&Histogram], q: f64, level: Level) -> Option<Quantile> {
        let all = windows.iter().copied().collect();
        Self::of_all(&all, windows, q, level)
    }

    /// The same, where `all` is the sum of the windows: for several quantiles of them.
    pub(super) fn of_all(
        all: &Histogram,
        windows: &[&Histogram],
        q: f64,
        level: Level,
    ) -> Option<Quantile> {
        let band = all.quantile(q)?;
        Some(Quantile {
            q,
            band,
            interval: limits(windows, all, (q, band), level),
        })
    }
}

fn limits(
    windows: &[&Histogram],
    all: &Histogram,
    (q, band): (f64, Band),
    level: Level,
) -> Option<Limits> {
    let count = all.count() as f64;
    if q.max(1.0 - q).powf(count) > level.error / 2.0 {
        return None;
    }
    let parts: Vec<[f64; 3]> = windows.iter().map(|window| parts(window, band)).collect();
    let spread = error_of_share(&parts, q, level.batch)?;
    // This many independent values would have the same error.
    let independent = (q * (1.0 - q) / spread.error.powi(2)).min(count);
    let mut half = level.errors(spread.degrees, parts.len() as f64) * spread.error;
    if q.min(1.0 - q) * count < BEYOND_MIN {
        half = half.max(level.errors(f64::INFINITY, independent) * (q * (1.0 - q) / count).sqrt());
    }
    // The same if windows differ so much that only the minimum value remains as the lower limit.
    if half >= q || (1.0 - q) * independent < INDEPENDENT_FOR_LOWER {
        return None;
    }
    let low = all.quantile(q - half)?.low;
    // There is no value above the measured ones to read the upper limit from.
    let is_known = q + half < 1.0
        && (1.0 - q) * independent >= INDEPENDENT_FOR_UPPER
        && spread_over(&parts, q) >= SPREAD_OVER.min(parts.len() as f64 / 2.0);
    let high = if is_known {
        Some(all.quantile(q + half)?.high as f64)
    } else {
        None
    };
    Some(Limits {
        low: low as f64,
        high,
    })
}

/// How far a visit's `q`-quantile lies from that of all visits, as a logarithm, and the variance that counting gives
/// it: from the quantiles of all at a standard error of the share to either side. `None` if there are no values.
pub(crate) fn quantile_of_visit(visit: &Histogram, all: &Histogram, q: f64) -> Option<Deviation> {
    let at = |of: &Histogram, q: f64| of.quantile(q).map(|band| band.middle().max(1.0).ln());
    let error = (q * (1.0 - q) / visit.count() as f64).sqrt();
    let aside = (at(all, (q + error).min(1.0))? - at(all, (q - error).max(0.0))?) / 2.0;
    Some(Deviation {
        size: at(visit, q)? - at(all, q)?,
        counted: aside * aside,
    })
}

/// The interval of the `q`-quantile of these values, of `visits` in this noise of a run: the quantiles at the limits of
/// the share beyond it, by counting, and to either side the error of the level. Its upper limit is unknown if no value
/// is left beyond it; there is no interval if even the maximum value lies below the true quantile with more than half
/// of the probability `error`.
pub(crate) fn limits_in_noise(
    times: &Histogram,
    q: f64,
    (noise, visits): (Noise, f64),
    error: f64,
) -> Option<Limits> {
    let count = times.count() as f64;
    if q.max(1.0 - q).powf(count) > error / 2.0 {
        return None;
    }
    let band = times.quantile(q)?;
    let beyond = (1.0 - q) * count;
    // Half a value keeps the odds finite.
    let of_odds = 1.0 / (beyond + 0.5) + 1.0 / (count - beyond + 0.5);
    let errors = Level::one_look(error).errors(noise.degrees, visits);
    let [level, counted] =
        [noise.level / visits, noise.counting * of_odds].map(|variance| errors * variance.sqrt());
    let odds = (1.0 - q) / q;
    let share = |half: f64| 1.0 - 1.0 / (1.0 + odds * half.exp());
    let (most, least) = (share(counted), share(-counted));
    let value = band.middle().max(1.0);
    let farther = |end: f64| (end.max(1.0) / value).ln().hypot(level).exp();
    let low = times.quantile(1.0 - most)?.low as f64;
    let high = times
        .quantile(1.0 - least)
        .filter(|_| least * count >= 1.0)
        .map(|band| band.high as f64);
    Some(Limits {
        low: value / farther(low),
        high: high.map(|high| value * farther(high)),
    })
}

/// The effective number of windows over which the values beyond the `q`-quantile are spread.
fn spread_over(windows: &[[f64; 3]], q: f64) -> f64 {
    let part = part_at(windows, q);
    let beyond = windows
        .iter()
        .map(|[below, at, count]| count - below - part * at);
    effective_number(beyond)
}

/// The effective number of windows over which values are spread, of their number in each window:
/// this many windows with equal numbers would be equivalent (the effective sample size of Kish,
/// Survey Sampling, 1965, 11.7).
pub(super) fn effective_number(counts: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares: f64 = counts.clone().map(|count| count * count).sum();
    counts.sum::<f64>().powi(2) / squares
}

/// The standard error of the fraction of values not above their `q`-quantile. Each window, in order
/// of time, has the number of its values below the quantile, the number at it, and the number of
/// all. `None` if there are too few windows.
pub(crate) fn error_of_share(windows: &[[f64; 3]], q: f64, batch: usize) -> Option<Spread> {
    let (part, count) = (
        part_at(windows, q),
        windows.iter().map(|window| window[2]).sum::<f64>(),
    );
    let residuals: Vec<f64> = windows
        .iter()
        .map(|[below, at, count]| below + part * at - q * count)
        .collect();
    let spread = spread_in(batch, &residuals)?;
    Some(Spread {
        error: spread.error * residuals.len() as f64 / count,
        ..spread
    })
}

/// The fraction of the values at the quantile that makes the share below exactly `q`; 0 if there
/// are none.
fn part_at(windows: &[[f64; 3]], q: f64) -> f64 {
    let sum = |part: usize| windows.iter().map(|window| window[part]).sum::<f64>();
    let (below, at, count) = (sum(0), sum(1), sum(2));
    if at > 0.0 {
        (q * count - below) / at
    } else {
        0.0
    }
}

/// The number of a window's values below the band, within it, and in all.
fn parts(window: &Histogram, band: Band) -> [f64; 3] {
    let (mut below, mut within) = (0, 0);
    for (low, _, count) in window.buckets().take_while(|(low, ..)| *low <= band.high) {
        if low < band.low {
            below += count;
        } else {
            within += count;
        }
    }
    [below as f64, within as f64, window.count() as f64]
}

/// True if throughput and median latency are known to within `precision` (0.02 for 2 %), as half
/// the width of their 95 % intervals relative to their values. A median without an upper limit is
/// not precise. A running measurement calls this after every window with all windows so far:
/// `counts` are the completed operations, `latencies` their latencies. Buckets are up to 0.78 %
/// wide, so the median seldom reaches a `precision` below 1 %.
///
/// Stopping as soon as an interval is narrow is too early: in short series, narrow intervals come
/// from luck as often as from precision, and contain the truth less often than 95 %. With a check
/// after every window from the 12th on, 85 to 95 % of intervals contained the truth in simulation.
/// So there are few checks, at 16 windows and then whenever their number has grown by a quarter,
/// and two consecutive ones must agree; between checks the last answer stays. No measurement ends
/// with fewer than 20 windows, and of those that end this way, 94 to 95 % contain the truth if
/// windows are independent, 96 % if they correlate by -0.5, and 92 to 95 % if they correlate by
/// 0.5.
pub fn precise(counts: &[f64], latencies: &[&Histogram], precision: f64) -> bool {
    // The means first: they are cheap and usually decide.
    looks(counts.len().min(latencies.len())).is_some_and(|looks| {
        looks
            .iter()
            .all(|look| mean_is_precise(&counts[..*look], precision))
            && looks
                .iter()
                .all(|look| median_is_precise(&latencies[..*look], precision))
    })
}

/// The numbers of windows at the last two checks of a measurement that has this many; `None` before
/// the second check.
pub(crate) fn looks(windows: usize) -> Option<[usize; 2]> {
    let (mut before, mut last) = (0, FIRST_LOOK);
    while last + last / 4 <= windows {
        (before, last) = (last, last + last / 4);
    }
    (before > 0).then_some([before, last])
}

fn mean_is_precise(counts: &[f64], precision: f64) -> bool {
    Mean::of_batches(counts).is_some_and(|mean| mean.interval().relative(mean.value) <= precision)
}

fn median_is_precise(latencies: &[&Histogram], precision: f64) -> bool {
    let median = Quantile::of_windows(latencies, 0.5, Level::ONE_LOOK);
    median.is_some_and(|Quantile { band, interval, .. }| {
        interval
            .and_then(Limits::both)
            .is_some_and(|interval| interval.relative(band.middle()) <= precision)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::record::histogram::Bins;
    use rigel_model::workload::rng::Rng;

    /// The median of [`latencies`], in nanoseconds.
    const MEDIAN: f64 = 100_000.0;
    /// The 99th percentile of the standard normal distribution.
    const NORMAL_P99: f64 = 2.326_348;

    /// Its 99.9th percentile.
    const NORMAL_P999: f64 = 3.090_232;

    /// Windows of lognormal latencies. The standard deviation of the logarithm is 1 within a window
    /// and `between` from window to window, where neighbours correlate by 0.5.
    fn latencies(rng: &mut Rng, windows: usize, count: usize, between: f64) -> Vec<Histogram> {
        let (mut bins, mut at) = (Bins::default(), rng.normal());
        let mut next = || {
            at = 0.5 * at + 0.75f64.sqrt() * rng.normal();
            for _ in 0..count {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                bins.record((MEDIAN * (rng.normal() + between * at).exp()) as u64);
            }
            bins.take()
        };
        (0..windows).map(|_| next()).collect()
    }

    fn quantile(windows: &[Histogram], q: f64) -> Quantile {
        Quantile::of_windows(&windows.iter().collect::<Vec<_>>(), q, Level::ONE_LOOK).unwrap()
    }

    #[test]
    fn the_interval_of_a_quantile_holds_the_truth_as_often_as_it_says() {
        for (windows, count, between) in [
            (20, 100, 0.0f64),
            (100, 20, 0.0),
            (20, 100, 0.2),
            (100, 20, 0.2),
        ] {
            let mut rng = Rng::new(1, windows as u64);
            let p99 = MEDIAN * (NORMAL_P99 * (1.0 + between * between).sqrt()).exp();
            let (mut median_held, mut p99_held, mut p99_told) = (0, 0, 0);
            for _ in 0..1000 {
                let series = latencies(&mut rng, windows, count, between);
                median_held +=
                    usize::from(quantile(&series, 0.5).interval.unwrap().contains(MEDIAN));
                let tail = quantile(&series, 0.99).interval;
                p99_told += usize::from(tail.is_some());
                p99_held += usize::from(tail.is_some_and(|tail| tail.contains(p99)));
            }
            let what =
                format!("{windows} x {count}, {between}: {median_held}, {p99_held} of {p99_told}");
            // If the upper limit of the p99 is unknown, only the lower one can be wrong.
            assert!((920..=980).contains(&median_held), "{what}");
            assert!(p99_told > 800 && 100 * p99_held >= 92 * p99_told, "{what}");
        }
    }

    #[test]
    fn the_interval_of_a_sparse_tail_covers_at_least_as_often() {
        // Five of 500 values lie beyond the p99.
        let mut rng = Rng::new(2, 0);
        let truth = MEDIAN * NORMAL_P99.exp();
        let of_one = |_| quantile(&latencies(&mut rng, 20, 25, 0.0), 0.99).interval;
        let told: Vec<Limits> = (0..1000).filter_map(of_one).collect();
        let held = told.iter().filter(|limits| limits.contains(truth)).count();
        assert!(
            told.len() > 500 && 100 * held >= 92 * told.len(),
            "{held} of {}",
            told.len()
        );
    }

    #[test]
    fn slow_operations_spread_too_evenly_are_not_taken_for_certain() {
        // Five of 500, one in each batch: the batches do not differ, so they show no error.
        let window = |window: u64| {
            let mut histogram = Histogram::default();
            (0..24).for_each(|_| histogram.record(100_000));
            histogram.record(if window.is_multiple_of(4) {
                1_000_000 + 100_000 * window
            } else {
                100_000
            });
            histogram
        };
        let interval = quantile(&(0..20).map(window).collect::<Vec<_>>(), 0.99)
            .interval
            .unwrap();
        assert!(
            interval.low < 101_000.0 && interval.high.is_none_or(|high| high > 2_600_000.0),
            "{interval:?}"
        );
    }

    #[test]
    fn a_tail_of_a_few_bunches_has_no_upper_end() {
        // Latencies that drift up and down, with slow ones in a few bunches: the end of the tail is
        // unknown.
        let mut rng = Rng::new(7, 0);
        let (mut open, mut wrong) = (0, 0);
        for _ in 0..200 {
            let series = latencies(&mut rng, 50, 200, 1.0);
            let p999 = MEDIAN * (NORMAL_P999 * 2.0f64.sqrt()).exp();
            if let Some(interval) = quantile(&series, 0.999).interval {
                open += usize::from(interval.high.is_none());
                wrong += usize::from(!interval.contains(p999));
            }
        }
        // For 200 lower limits and a few intervals, not more errors than chance allows at 2.5 to 5
        // %.
        assert!(open > 100 && wrong <= 18, "{open} open, {wrong} wrong");
    }

    #[test]
    fn too_few_values_give_no_interval() {
        let mut rng = Rng::new(3, 0);
        let series = latencies(&mut rng, 20, 5, 0.0);
        assert!(quantile(&series, 0.5).interval.is_some());
        // One value of a hundred lies beyond the p99: the maximum is below the truth more than one
        // time in three.
        assert_eq!(quantile(&series, 0.99).interval, None);
        assert_eq!(quantile(&series, 0.01).interval, None);
        assert_eq!(quantile(&series[..4], 0.5).interval, None);
        assert_eq!(
            Quantile::of_windows(&[&Histogram::default()], 0.5, Level::ONE_LOOK),
            None
        );
    }

    #[test]
    fn windows_in_which_nothing_was_done_are_no_harm() {
        let mut rng = Rng::new(4, 0);
        let mut series = latencies(&mut rng, 20, 50, 0.0);
        series[7] = Histogram::default();
        let quantile = quantile(&series, 0.5);
        let interval = quantile.interval.unwrap();
        assert!(
            interval.contains(quantile.band.middle()) && interval.contains(MEDIAN),
            "{quantile:?}"
        );
    }

    #[test]
    fn slow_operations_in_bunches_widen_the_interval() {
        // 2 % of operations take 1 ms, the others 100 us: either one in every 50, or a whole window
        // in every 50.
        let series = |bunched: bool| -> Vec<Histogram> {
            let one = |window: usize| {
                let mut bins = Bins::default();
                let slow = |op: usize| {
                    if bunched {
                        window % 50 == 25
                    } else {
                        op % 50 == 25
                    }
                };
                (0..100).for_each(|op| {
                    bins.record(if slow(op) {
                        1_000_000 + 1000 * op as u64
                    } else {
                        100_000
                    });
                });
                bins.take()
            };
            (0..100).map(one).collect()
        };
        let (spread, bunched) = (
            quantile(&series(false), 0.99),
            quantile(&series(true), 0.99),
        );
        assert!(spread.interval.unwrap().low > 1e6, "{spread:?}");
        assert!(bunched.interval.unwrap().low < 1.1e5, "{bunched:?}");
    }

    /// Simulates a measurement in windows of mean 100 that ends when it is precise to 2 %: true if
    /// its interval contains the truth, and the number of windows.
    fn stopped(rng: &mut Rng, deviation: f64, rho: f64, level: &Histogram) -> (bool, usize) {
        let (mut counts, mut at, mut histograms) = (Vec::new(), rng.normal(), Vec::new());
        loop {
            at = rho * at + (1.0 - rho * rho).sqrt() * rng.normal();
            counts.push(100.0 * (1.0 + deviation * at));
            histograms.push(level);
            // Every third window is enough: the checks are further apart.
            if counts.len() % 3 == 0 && precise(&counts, &histograms, 0.02) {
                return (
                    Mean::of_batches(&counts)
                        .unwrap()
                        .interval()
                        .contains(100.0),
                    counts.len(),
                );
            }
        }
    }

    #[test]
    fn stopping_at_a_precision_keeps_the_coverage_of_intervals() {
        let mut level = Histogram::default();
        (0..20).for_each(|_| level.record(100_000));
        for (deviation, rho) in [
            (0.02, 0.0),
            (0.04, 0.0),
            (0.08, 0.0),
            (0.02, 0.5),
            (0.04, 0.5),
            (0.08, 0.5),
            (0.04, -0.5),
        ] {
            let mut rng = Rng::new(5, 0);
            let runs: Vec<_> = (0..1000)
                .map(|_| stopped(&mut rng, deviation, rho, &level))
                .collect();
            let held = runs.iter().filter(|(held, _)| *held).count();
            assert!(
                (920..=980).contains(&held),
                "deviation {deviation}, correlation {rho}: {held}"
            );
            assert!(runs.iter().all(|(_, windows)| *windows >= 20));
        }
    }

    #[test]
    fn latency_must_be_precise_as_well() {
        let mut rng = Rng::new(6, 0);
        let counts = [100.0; 40];
        let asked =
            |series: &[Histogram]| precise(&counts, &series.iter().collect::<Vec<_>>(), 0.02);
        assert!(asked(&latencies(&mut rng, 40, 2000, 0.0)));
        assert!(!asked(&latencies(&mut rng, 40, 2000, 0.4)));
        assert!(!asked(&latencies(&mut rng, 19, 1000, 0.0)));
    }
}
