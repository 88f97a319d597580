//! How precisely the figures of one class of a point are known: intervals from its windows, and the
//! check of a bound.

use super::latency::LatencyFigure;
use super::quantile::{INDEPENDENT_FOR_UPPER, Quantile, SPREAD_OVER, effective_number};
use super::tail::Tail;
use rigel_model::record::{End, Histogram, PointRecord, StreamRecord, Window};
use rigel_model::{Bound, Nanos, Until};
use rigel_stats::mean::{Interval, Level, Limits, Mean, spread_in};
use rigel_stats::verdict::BoundVerdict;
use serde::{Deserialize, Serialize};

/// The 95 % intervals of one class. Times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Intervals of this level from the complete windows of `width_s` seconds; `None` if there are too
    /// few.
    pub fn of(windows: &[Window], width_s: f64, level: Level) -> Option<Self> {
        let counts: Vec<f64> = windows.iter().map(|window| window.done as f64).collect();
        let sums: Vec<f64> = windows
            .iter()
            .map(|window| window.response.sum as f64 / 1e3)
            .collect();
        let histograms: Vec<&Histogram> = windows
            .iter()
            .map(|window| &window.response.histogram)
            .collect();
        let all = histograms.iter().copied().collect();
        let quantile = |q| {
            let quantile_ns = Quantile::of_all(&all, &histograms, q, level)?;
            quantile_ns.interval.map(|interval| interval.scaled(1e-3))
        };
        Some(Self {
            iops: Mean::of_batches(&counts)?.at(level).scaled(1.0 / width_s),
            mean_us: mean_of_operations(&sums, &counts).map(|mean| mean.at(level)),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
        })
    }

    /// The interval of a figure of response times; `None` if it is unknown.
    pub fn of_latency(&self, figure: LatencyFigure) -> Option<Limits> {
        match figure {
            LatencyFigure::Mean => self.mean_us.map(|mean| mean.limits()),
            LatencyFigure::P50 => self.p50_us,
            LatencyFigure::P99 => self.p99_us,
            LatencyFigure::P999 => self.p999_us,
            _ => None,
        }
    }

    /// The same of an open loop whose queue forgets in the time `relaxation`: where too few operations
    /// lie beyond a high quantile to show its upper end, its [`Tail`] does.
    #[must_use]
    pub fn with_tails(self, windows: &[Window], width: Nanos, relaxation: Nanos) -> Self {
        let tail = Tail::of(windows, width, relaxation);
        let ended = |known: Option<Limits>, q: f64| {
            if known.is_some_and(|known| known.high.is_some()) {
                return known;
            }
            let Some(found) = tail.as_ref().and_then(|tail| tail.limits(q)) else {
                return known;
            };
            Some(Limits {
                low: known.map_or(found.low / 1e3, |known| known.low),
                high: Some(found.high / 1e3),
            })
        };
        Self {
            p99_us: ended(self.p99_us, 0.99),
            p999_us: ended(self.p999_us, 0.999),
            ..self
        }
    }
}

/// Minimum number of windows with operations for the interval of a mean. Windows without any differ
/// from it by nothing: the error of a mean of three operations in forty windows would be that of
/// forty figures, and that of one window's operations would be 0.
pub const WINDOWS_FOR_MEAN: usize = 10;

/// The mean of operations from the sums and counts of windows; `None` if too few windows have any.
fn mean_of_operations(sums: &[f64], counts: &[f64]) -> Option<Mean> {
    let filled = counts.iter().filter(|count| **count > 0.0).count();
    let mean =
        Mean::of_ratio(sums, counts).filter(|_| filled >= WINDOWS_FOR_MEAN.min(counts.len()))?;
    Some(Mean {
        degrees: mean.degrees.min(filled as f64 - 1.0),
        ..mean
    })
}

/// The level of a point's intervals: who stops a run looked at it before.
pub(crate) fn level_of(record: &PointRecord) -> Level {
    match record.end {
        End::Stopped => Level::ANY_LOOKS,
        End::Complete | End::Broken(_) => Level::ONE_LOOK,
    }
}

/// The complete windows, all kinds of operations together.
pub(crate) fn whole_windows(stream: &StreamRecord, record: &PointRecord) -> Vec<Window> {
    let together = |at| {
        let mut kinds = stream.windows_at(at);
        let mut together = kinds.next().cloned().unwrap_or_default();
        kinds.for_each(|window| together.merge(window));
        together
    };
    (0..record.whole_windows()).map(together).collect()
}

/// How the response times of one class compare with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BoundCheck {
    /// Fraction of all due operations that were certainly within the bound.
    pub share: f64,
    /// True if the measured operations keep the bound.
    pub kept: bool,
    /// The 95 % interval of the share; `None` if there are too few windows.
    pub share_interval: Option<Interval>,
    /// Whether the storage keeps the bound.
    pub verdict: BoundVerdict,
    /// The number of independent operations that the measured ones are worth for the share; `None`
    /// if there are too few windows.
    pub independent: Option<f64>,
}

impl BoundCheck {
    /// Counts the operations within the bound. Failed and unserved operations are not within it. To
    /// be certain, neither are those in a histogram bucket that contains the bound.
    pub fn of(response: &Histogram, missed: u64, bound: Bound) -> Self {
        let within = response.count_within(bound.latency.0);
        let all = response.count() + missed;
        let share = if all > 0 {
            within as f64 / all as f64
        } else {
            0.0
        };
        Self {
            share,
            kept: all > 0 && share >= bound.quantile,
            share_interval: None,
            verdict: BoundVerdict::Undecided,
            independent: None,
        }
    }

    /// The same with the interval of the share, from consecutive windows of `width_s` seconds. `response` has all
    /// operations that ended; `missed` are failed and
    /// unserved operations, which are not within the bound.
    ///
    /// It is of this level.
    ///
    /// Wilson's score interval (Journal of the American Statistical Association 22, 1927), with
    /// Student's t, for as many independent operations as the measured ones are worth. Slow
    /// operations come together, so that number follows from the error of the share over windows.
    /// Where that rests on a few bunches of slow operations, the error of the mean response time
    /// counts too, if it gives less.
    ///
    /// That is too cautious where the bound lies far from what was measured and the mean drifts. So
    /// the bound is also kept if it is more than luck that no operation came near it. It is broken if the
    /// interval of the quantile begins above it.
    ///
    /// In simulation, with queues and with lognormal response times that drift, a bound that is the
    /// true p99 is called kept in at most 4 % of series, and broken in as many. Of series of 1,000
    /// operations or more whose p99 is a tenth of the bound, 99.9 % are decided; by the share
    /// alone, of some kinds none.
    pub fn of_windows(
        response: &Histogram,
        missed: u64,
        (windows, width_s): (&[Window], f64),
        (bound, level): (Bound, Level),
    ) -> Self {
        let plain = Self::of(response, missed, bound);
        let Some(worth) = independent(windows, plain.share, (bound, level)) else {
            return plain;
        };
        let interval = wilson(
            plain.share,
            worth.count,
            level.errors(worth.degrees, windows.len() as f64),
        );
        let verdict = if interval.low >= bound.quantile {
            BoundVerdict::Kept
        } else if interval.high < bound.quantile {
            BoundVerdict::Broken
        } else if is_far_below(
            (windows, width_s),
            (missed, plain.share, worth.count),
            (bound, level),
        ) {
            BoundVerdict::Kept
        } else {
            by_quantile(windows, missed, (bound, level))
        };
        Self {
            share_interval: Some(interval),
            verdict,
            independent: Some(worth.count),
            ..plain
        }
    }

    /// True if this number of windows, `times` as many as were measured, would show whether the bound is
    /// kept, if the share within it stays as it is.
    pub fn is_decided_after(
        &self,
        times: f64,
        windows: f64,
        (bound, level): (Bound, Level),
    ) -> bool {
        // So many batches has whoever measures for long.
        const DEGREES: f64 = 19.0;
        self.independent.is_some_and(|independent| {
            let interval = wilson(
                self.share,
                independent * times,
                level.errors(DEGREES, windows),
            );
            interval.low >= bound.quantile || interval.high < bound.quantile
        })
    }
}

/// True if no operation is beyond a bound, and it is more than luck that none came near it. `missed` operations are
/// not within it.
///
/// The response times of a queue have an exponential tail (Kingman 1962; Abate, Choudhury and Whitt 1995). So if a
/// share `p` were beyond the bound, `p^(longest / bound)` would be beyond the longest that was seen, and none was in
/// all the time. That time is `worth` many independent looks, or as many as a queue that slow would forget in it: one
/// in 4 λ W² (Cohen 1982), W being its mean wait.
///
/// What is no queue has no such tail: there must be as many operations as would show that the bound is kept if all
/// were independent, or slow ones that are rarer than these may be missing.
fn is_far_below(
    (windows, width_s): (&[Window], f64),
    (missed, share, worth): (u64, f64, f64),
    (bound, level): (Bound, Level),
) -> bool {
    let histograms = windows.iter().map(|window| &window.response.histogram);
    let longest = histograms.filter_map(|times| times.quantile(1.0));
    let Some(longest) = longest.map(|band| band.high).max() else {
        return false;
    };
    let (done, missed) = (counts(windows).iter().sum::<f64>(), missed as f64);
    let may_exceed = 1.0 - bound.quantile - missed / (done + missed);
    if longest >= bound.latency.0 || may_exceed <= 0.0 {
        return false;
    }
    let wait_s = bound.latency.as_secs_f64() / -may_exceed.ln();
    let seconds = windows.len() as f64 * width_s;
    let forgotten = seconds / (4.0 * done / seconds * wait_s * wait_s);
    let beyond = may_exceed.powf(longest as f64 / bound.latency.0 as f64);
    let by_luck = (1.0 - beyond).powf(worth.max(forgotten));
    by_luck <= level.error / 2.0 && shows_kept(share, done + missed, (bound, level))
}

/// Whether a bound is certainly not kept, by the interval of its quantile. `missed` operations are not within it.
///
/// An interval that ends below it does not say that it is kept: where operations of one length are slow, many
/// quantiles are that length, and a bunch of them that is rarer than the measured time is long is beyond it.
fn by_quantile(windows: &[Window], missed: u64, (bound, level): (Bound, Level)) -> BoundVerdict {
    let histograms: Vec<&Histogram> = windows
        .iter()
        .map(|window| &window.response.histogram)
        .collect();
    let done: f64 = counts(windows).iter().sum();
    let of_done = bound.quantile * (done + missed as f64) / done;
    let quantile = Quantile::of_windows(&histograms, of_done, level).filter(|_| of_done < 1.0);
    let limit = bound.latency.0 as f64;
    match quantile.and_then(|known| known.interval) {
        Some(Limits { low, .. }) if low > limit => BoundVerdict::Broken,
        _ => BoundVerdict::Undecided,
    }
}

/// The number of operations in each window.
fn counts(windows: &[Window]) -> Vec<f64> {
    windows
        .iter()
        .map(|window| window.response.histogram.count() as f64)
        .collect()
}

/// True if this share among this number of independent operations shows that the bound is kept.
fn shows_kept(share: f64, independent: f64, (bound, level): (Bound, Level)) -> bool {
    let errors = level.errors(f64::INFINITY, independent);
    wilson(share, independent, errors).low >= bound.quantile
}

/// Independent operations.
struct Independent {
    /// Their number.
    count: f64,
    /// Degrees of freedom of the error that the number follows from.
    degrees: f64,
}

/// The number of independent operations that these windows are worth for the share within the
/// bound; `None` if there are too few windows, or no operations.
fn independent(
    windows: &[Window],
    share: f64,
    (bound, level): (Bound, Level),
) -> Option<Independent> {
    let counts = counts(windows);
    let count: f64 = counts.iter().sum();
    if count <= 0.0 {
        return None;
    }
    let sums: Vec<f64> = windows
        .iter()
        .map(|window| window.response.sum as f64)
        .collect();
    let squares: f64 = windows
        .iter()
        .map(|window| window.response.sum_squares)
        .sum();
    let mean = Mean::of_ratio_in(level.batch, &sums, &counts)?;
    let variance = (squares / count - mean.value * mean.value).max(0.0);
    let by_mean = if mean.error > 0.0 {
        variance / mean.error.powi(2)
    } else {
        count
    };
    let within = |window: &Window| window.response.histogram.count_within(bound.latency.0) as f64;
    // Failed operations are not within the bound, and have no response time.
    let ended = |window: &Window| (window.response.histogram.count() + window.failures()) as f64;
    let residuals: Vec<f64> = windows
        .iter()
        .map(|window| within(window) - share * ended(window))
        .collect();
    let spread = spread_in(level.batch, &residuals)?;
    let error = spread.error * residuals.len() as f64 / windows.iter().map(ended).sum::<f64>();
    let by_share = if error > 0.0 {
        share * (1.0 - share) / error.powi(2)
    } else {
        count
    };
    let slow = windows.iter().map(|window| ended(window) - within(window));
    // As for the upper limit of a quantile.
    let is_known =
        (1.0 - share) * by_share >= INDEPENDENT_FOR_UPPER && effective_number(slow) >= SPREAD_OVER;
    Some(Independent {
        count: if is_known {
            by_share
        } else {
            by_mean.min(by_share)
        }
        .min(count),
        degrees: spread.degrees,
    })
}

/// The score interval of a share of `count` independent values; `z` is the quantile of the
/// confidence level.
fn wilson(share: f64, count: f64, z: f64) -> Interval {
    let scale = 1.0 + z * z / count;
    let centre = (share + z * z / (2.0 * count)) / scale;
    let half = z * (share * (1.0 - share) / count + (z / (2.0 * count)).powi(2)).sqrt() / scale;
    Interval {
        low: (centre - half).max(0.0),
        high: (centre + half).min(1.0),
    }
}

/// True if these windows of a running measurement are enough: its figures are as precise as
/// requested.
pub fn is_enough(until: Until, windows: &[Window]) -> bool {
    match until {
        Until::Precise { precision, .. } => is_precise(windows, precision.get()),
        Until::Elapsed(_) | Until::Ops(_) | Until::Work { .. } => false,
    }
}

/// True if throughput and median response time are known to within `precision`.
fn is_precise(windows: &[Window], precision: f64) -> bool {
    let counts: Vec<f64> = windows.iter().map(|window| window.done as f64).collect();
    let histograms: Vec<&Histogram> = windows
        .iter()
        .map(|window| &window.response.histogram)
        .collect();
    super::quantile::precise(&counts, &histograms, precision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Nanos;
    use rigel_model::record::histogram::Bins;
    use rigel_model::workload::rng::Rng;

    /// Windows of response times, in nanoseconds.
    fn windows(of: &[Vec<u64>]) -> Vec<Window> {
        let one = |times: &Vec<u64>| {
            let (mut window, mut bins) = (Window::default(), Bins::default());
            for time in times {
                bins.record(*time);
                window.response.sum += time;
                window.response.sum_squares += (*time as f64).powi(2);
            }
            window.done = times.len() as u64;
            window.response.histogram = bins.take();
            window
        };
        of.iter().map(one).collect()
    }

    fn check(of: &[Vec<u64>], missed: u64, latency_us: u64) -> BoundCheck {
        let windows = windows(of);
        let histograms = windows.iter().map(|window| &window.response.histogram);
        let all: Histogram = histograms.collect();
        let bound = Bound {
            quantile: 0.99,
            latency: Nanos::from_micros(latency_us),
        };
        BoundCheck::of_windows(&all, missed, (&windows, 0.1), (bound, Level::ONE_LOOK))
    }

    /// 4,500 reads of 180 to 240 us in three visits that differ by 20 us.
    fn visits() -> Vec<Vec<u64>> {
        let of_window = |at: u64| {
            let base = 180_000 + 20_000 * (at / 30);
            (0..50).map(|op| base + op * 400).collect()
        };
        (0..90).map(of_window).collect()
    }

    #[test]
    fn the_verdict_of_several_is_that_of_the_worst_or_of_the_best() {
        use BoundVerdict::{Broken, Kept, NotMeasured, Undecided};
        let all = |verdicts: &[BoundVerdict]| BoundVerdict::all_of(verdicts.iter().copied());
        let any = |verdicts: &[BoundVerdict]| BoundVerdict::any_of(verdicts.iter().copied());
        for (verdicts, of_all, of_any) in [
            (&[][..], Kept, Broken),
            (&[Kept, Undecided], Undecided, Kept),
            (&[Undecided, NotMeasured, Kept], NotMeasured, Kept),
            (&[Undecided, NotMeasured, Broken], Broken, Undecided),
            (&[NotMeasured, Broken], Broken, NotMeasured),
        ] {
            assert_eq!((all(verdicts), any(verdicts)), (of_all, of_any));
        }
    }

    #[test]
    fn a_bound_far_above_all_response_times_is_kept_though_visits_differ() {
        let found = check(&visits(), 0, 10_000);
        // The differing visits leave too few independent operations for the share.
        assert!(found.independent.is_some_and(|n| n < 381.0), "{found:?}");
        assert_eq!(found.verdict, BoundVerdict::Kept);
        // No operation lies above the maximum, and that one is not near 10 ms.
        assert_eq!(check(&visits(), 0, 3_000).verdict, BoundVerdict::Kept);
        // 360 operations cannot show that one in a hundred is not slow, however fast they are.
        let few: Vec<Vec<u64>> = visits().iter().map(|of| of[..4].to_vec()).collect();
        assert_eq!(check(&few, 0, 10_000).verdict, BoundVerdict::Undecided);
        // Operations that were not served are not within any bound.
        assert_eq!(check(&visits(), 20, 10_000).verdict, BoundVerdict::Kept);
        assert_ne!(check(&visits(), 60, 10_000).verdict, BoundVerdict::Kept);
    }

    /// The queue of one server with exponential times of 100 us and this utilisation; 125
    /// operations a window.
    fn queue(rng: &mut Rng, utilisation: f64, count: usize) -> Vec<Vec<u64>> {
        let mut wait = 0.0f64;
        let mut next = |rng: &mut Rng| {
            let done = wait + 1e5 * rng.exponential();
            wait = (done - 1e5 / utilisation * rng.exponential()).max(0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let time = done as u64;
            time
        };
        let mut all: Vec<u64> = (0..count + 1000).map(|_| next(rng)).collect();
        all.drain(..1000);
        all.chunks(125).map(<[u64]>::to_vec).collect()
    }

    #[test]
    fn verdicts_on_a_queue_are_wrong_as_seldom_as_they_say() {
        // Response times of this queue are exponential (Kleinrock, Queueing Systems, volume 1, 1975).
        let p99_us = 100.0 / (1.0 - 0.5) * 100.0f64.ln();
        let mut rng = Rng::new(11, 0);
        let series: Vec<_> = (0..400).map(|_| queue(&mut rng, 0.5, 5_000)).collect();
        let count = |factor: f64, wanted: BoundVerdict| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let latency_us = (p99_us * factor) as u64;
            let is_wanted = |of: &&Vec<Vec<u64>>| check(of, 0, latency_us).verdict == wanted;
            series.iter().filter(is_wanted).count()
        };
        // Of 400 series, 5 % are 20.
        let wrong = [
            count(0.95, BoundVerdict::Kept),
            count(1.05, BoundVerdict::Broken),
        ];
        assert!(wrong.iter().all(|count| *count <= 20), "{wrong:?}");
        // By the share alone it would be about half of them.
        let far = count(5.0, BoundVerdict::Kept);
        assert!(far >= 390, "{far}");
        let slow = count(0.6, BoundVerdict::Broken);
        assert!(slow >= 390, "{slow}");
    }

    #[test]
    fn a_mean_of_few_operations_among_many_windows_has_no_interval() {
        let with_operations_in = |filled: usize| {
            let counts: Vec<f64> = (0..40).map(|at| f64::from(u8::from(at < filled))).collect();
            let times = [300.0, 500.0, 400.0, 900.0];
            let sums: Vec<f64> = counts
                .iter()
                .zip(times.iter().cycle())
                .map(|(count, time)| count * time)
                .collect();
            mean_of_operations(&sums, &counts)
        };
        for filled in [1, 3, WINDOWS_FOR_MEAN - 1] {
            assert_eq!(with_operations_in(filled), None, "{filled}");
        }
        let least = with_operations_in(WINDOWS_FOR_MEAN).expect("enough");
        assert!(least.error > 0.0 && least.degrees <= 9.0, "{least:?}");
        let all = with_operations_in(40).expect("enough");
        assert!((all.value - 525.0).abs() < 1e-9, "{all:?}");
    }
}
