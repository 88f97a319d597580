//! The modes of a distribution: its local maxima, and the parts of it that they stand for.
//!
//! Input: bounds and counts of buckets, of whatever was counted. Output: parts that are cut at the
//! minima between the maxima. Storage that answers from two places, such as a cache and a disk, has
//! two.

use super::quantile::error_of_share;
use super::quantity::{listed, time};
use rigel_model::record::Histogram;
use rigel_model::{Finding, FindingName};
use rigel_stats::mean::{Interval, Level};
use serde::Serialize;

/// A valley counts if its density is below this fraction of the lower of the maxima beside it.
const VALLEY_MAX: f64 = 0.5;

/// How many standard deviations of the counts a valley is below the maxima beside it.
const DEVIATIONS: f64 = 4.0;

/// Minimum share of a mode.
const SHARE_MIN: f64 = 0.01;

/// A bucket of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedRange {
    /// Its lower bound.
    pub low: f64,
    /// Its upper bound; `None` if it has none.
    pub high: Option<f64>,
    /// What it counted.
    pub count: f64,
}

impl CountedRange {
    /// The count on a scale of octaves. A bucket without one of its bounds is one octave wide.
    fn density(&self) -> f64 {
        let octaves = self.high.filter(|_| self.low > 0.0);
        let octaves = octaves.map_or(1.0, |high| (high / self.low).log2());
        if octaves > 0.0 {
            self.count / octaves
        } else {
            self.count
        }
    }
}

/// A part of a distribution around a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Mode {
    /// Where it begins.
    pub low: f64,
    /// Where it ends; `None` if nowhere.
    pub high: Option<f64>,
    /// Its share of all.
    pub share: f64,
    /// The interval of the share; `None` if nothing is known of its error, as in a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

/// A run of buckets between two minima: the first, the one with the maximum, and the last.
#[derive(Debug, Clone, Copy)]
struct ModePart {
    first: usize,
    peak: usize,
    last: usize,
}

/// The modes of `buckets`, which ascend; those without counts may be left out. One for a
/// distribution with one maximum; none for an empty one.
pub fn modes(buckets: &[CountedRange]) -> Vec<Mode> {
    let all: f64 = buckets.iter().map(|bucket| bucket.count).sum();
    if all.is_nan() || all <= 0.0 {
        return Vec::new();
    }
    let filled = without_gaps(buckets);
    let densities: Vec<f64> = filled.iter().map(CountedRange::density).collect();
    let mut parts = parts(&densities);
    let share = |part: &ModePart| {
        let counts = filled[part.first..=part.last].iter();
        counts.map(|bucket| bucket.count).sum::<f64>() / all
    };
    loop {
        // The boundary that separates least: the valley beside a small mode, or the shallowest.
        let boundary = (1..parts.len())
            .map(|at| {
                let (left, right) = (&parts[at - 1], &parts[at]);
                let is_small = share(left).min(share(right)) < SHARE_MIN;
                (
                    at,
                    depth(&filled, &densities, left, right).filter(|_| !is_small),
                    is_small,
                )
            })
            .filter(|(_, depth, _)| depth.is_none())
            .min_by(|one, other| {
                let shallow = |at: usize| valley(&densities, &parts[at - 1], &parts[at]);
                shallow(other.0).total_cmp(&shallow(one.0))
            });
        let Some((at, ..)) = boundary else { break };
        let right = parts.remove(at);
        let left = &mut parts[at - 1];
        left.last = right.last;
        if densities[right.peak] > densities[left.peak] {
            left.peak = right.peak;
        }
    }
    let mode = |part: &ModePart| {
        let filled = &filled[part.first..=part.last];
        let counted = || filled.iter().filter(|bucket| bucket.count > 0.0);
        Mode {
            low: counted().next().map_or(0.0, |bucket| bucket.low),
            high: counted().next_back().and_then(|bucket| bucket.high),
            share: share(part),
            interval: None,
        }
    };
    parts.iter().map(mode).collect()
}

/// Parts of an octave in which measured times are counted: finer ones would be small hills.
const STEPS: f64 = 4.0;

/// The step of an octave to which a time in nanoseconds belongs.
fn step(nanoseconds: u64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "at most 4 * 64")]
    let step = ((nanoseconds.max(1) as f64).log2() * STEPS).floor() as i32;
    step
}

/// The modes of times that were measured in these windows, in order of time; in microseconds, each
/// with the interval of its share. Empty if the share of any is not known to be above zero: some slow
/// operations that came together are no second mode.
pub fn of_windows(windows: &[&Histogram], level: Level) -> Vec<Mode> {
    let all: Histogram = windows.iter().copied().collect();
    let mut counted: Vec<(i32, CountedRange)> = Vec::new();
    let edge = |step: i32| (f64::from(step) / STEPS).exp2();
    for (low, _, count) in all.buckets() {
        let at = step(low);
        if counted.last().is_none_or(|(before, _)| *before != at) {
            let range = CountedRange {
                low: edge(at),
                high: Some(edge(at + 1)),
                count: 0.0,
            };
            counted.push((at, range));
        }
        if let Some((_, range)) = counted.last_mut() {
            range.count += count as f64;
        }
    }
    let ranges: Vec<CountedRange> = counted.into_iter().map(|(_, range)| range).collect();
    let split = modes(&ranges);
    let with_intervals = split.iter().map(|mode| {
        let is_in = |low: u64| {
            let middle = f64::midpoint(edge(step(low)), edge(step(low) + 1));
            middle > mode.low && mode.high.is_none_or(|high| middle < high)
        };
        let inside = || all.buckets().filter(|(low, ..)| is_in(*low));
        let (first, last) = (inside().next()?, inside().last()?);
        let share = |window: &&Histogram| {
            let counts = window.buckets().filter(|(low, ..)| is_in(*low));
            let inside: u64 = counts.map(|(.., count)| count).sum();
            [inside as f64, 0.0, window.count() as f64]
        };
        let shares: Vec<[f64; 3]> = windows.iter().map(share).collect();
        let spread = error_of_share(&shares, mode.share, level.batch)?;
        let half = level.errors(spread.degrees, shares.len() as f64) * spread.error;
        (half < mode.share).then_some(Mode {
            low: first.0 as f64 / 1e3,
            high: Some(last.1 as f64 / 1e3),
            interval: Some(Interval {
                low: mode.share - half,
                high: (mode.share + half).min(1.0),
            }),
            ..*mode
        })
    });
    with_intervals.collect::<Option<_>>().unwrap_or_default()
}

/// Names the modes of times that were measured in these windows, if there are several; `what` ended so.
pub fn finding(what: &str, windows: &[&Histogram], level: Level) -> Option<Finding> {
    let modes = of_windows(windows, level);
    (modes.len() > 1).then(|| {
        let (count, words) = (modes.len(), in_words(&modes, time));
        Finding::note(
            FindingName::Modes,
            format!("{what} ended in {count} different ways: {words}"),
        )
    })
}

/// The times of a series that may last for weeks, in windows of equal numbers of its parts.
#[derive(Debug, Clone, Default)]
pub struct ModesReader {
    windows: Vec<Histogram>,
    /// Parts in a window, as a power of two.
    doublings: u32,
    /// Parts so far.
    parts: u64,
}

impl ModesReader {
    /// Most windows: then every two are joined.
    const WINDOWS_MOST: usize = 128;

    /// Adds the next part of the series.
    pub fn add(&mut self, times: &Histogram) {
        let is_new = self.parts.is_multiple_of(1 << self.doublings);
        self.parts += 1;
        if !is_new && let Some(last) = self.windows.last_mut() {
            last.merge(times);
            return;
        }
        if self.windows.len() == Self::WINDOWS_MOST {
            let pairs = self.windows.chunks(2);
            self.windows = pairs.map(|pair| pair.iter().collect()).collect();
            self.doublings += 1;
        }
        self.windows.push(times.clone());
    }

    /// Names the modes, if there are several; `what` ended so.
    pub fn finding(&self, what: &str) -> Option<Finding> {
        let windows: Vec<&Histogram> = self.windows.iter().collect();
        finding(what, &windows, Level::ONE_LOOK)
    }
}

/// The buckets, with an empty one wherever one does not begin where the one before ends.
fn without_gaps(buckets: &[CountedRange]) -> Vec<CountedRange> {
    let mut filled: Vec<CountedRange> = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let end = filled.last().and_then(|before| before.high);
        if let Some(end) = end.filter(|end| *end < bucket.low) {
            filled.push(CountedRange {
                low: end,
                high: Some(bucket.low),
                count: 0.0,
            });
        }
        filled.push(*bucket);
    }
    filled
}

/// The parts around every local maximum. A minimum belongs to the part before it.
fn parts(densities: &[f64]) -> Vec<ModePart> {
    let mut parts: Vec<ModePart> = Vec::new();
    let mut falls = false;
    for (at, density) in densities.iter().enumerate() {
        let before = at.checked_sub(1).map_or(0.0, |before| densities[before]);
        match parts.last_mut() {
            Some(part) if !(falls && *density > before) => {
                part.last = at;
                if *density > densities[part.peak] {
                    part.peak = at;
                }
                falls |= *density < before;
            }
            _ => {
                parts.push(ModePart {
                    first: at,
                    peak: at,
                    last: at,
                });
                falls = false;
            }
        }
    }
    parts
}

/// The minimum between two maxima, as a fraction of the lower one.
fn valley(densities: &[f64], left: &ModePart, right: &ModePart) -> f64 {
    let between = densities[left.peak..=right.peak].iter().copied();
    let lower = densities[left.peak].min(densities[right.peak]);
    between.fold(f64::INFINITY, f64::min) / lower
}

/// How deep the valley between two maxima is; `None` if it is not deep enough to separate them.
fn depth(
    filled: &[CountedRange],
    densities: &[f64],
    left: &ModePart,
    right: &ModePart,
) -> Option<f64> {
    let ratio = valley(densities, left, right);
    let counts = filled[left.peak..=right.peak]
        .iter()
        .map(|bucket| bucket.count);
    let least = counts.fold(f64::INFINITY, f64::min);
    let lower = filled[left.peak].count.min(filled[right.peak].count);
    let is_chance = lower - least < DEVIATIONS * (lower + least).sqrt();
    (ratio < VALLEY_MAX && !is_chance).then_some(1.0 - ratio)
}

/// Modes of times in microseconds in words: `75 % up to 2.05 ms, 25 % above`; with the intervals of
/// their shares, where these are known.
pub fn in_words(modes: &[Mode], time: impl Fn(f64) -> String) -> String {
    let share = |share: f64| match share * 100.0 {
        percent if percent < 0.95 => "under 1 %".to_string(),
        percent => format!("{percent:.0} %"),
    };
    let mut before: Option<f64> = None;
    let mut words = Vec::new();
    for (at, mode) in modes.iter().enumerate() {
        let (is_first, is_last) = (at == 0, at + 1 == modes.len());
        let is_next = before == Some(mode.low);
        let place = match mode.high {
            Some(high) if is_first => format!("up to {}", time(high)),
            _ if is_first => format!("above {}", time(mode.low)),
            _ if is_last && is_next => "above".to_string(),
            Some(high) => format!("from {} to {}", time(mode.low), time(high)),
            None => format!("above {}", time(mode.low)),
        };
        let between = mode.interval.map_or(String::new(), |interval| {
            format!(
                " ({:.1} to {:.1})",
                interval.low * 100.0,
                interval.high * 100.0
            )
        });
        words.push(format!("{}{between} {place}", share(mode.share)));
        before = mode.high;
    }
    match words.as_slice() {
        [one, other] => format!("{one}, {other}"),
        words => listed(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::workload::rng::Rng;

    /// Windows of 100 times around `fast` ns, of which a share is around `slow` ns. Both are exponential
    /// beyond a half.
    fn measured(rng: &mut Rng, share: f64, [fast, slow]: [f64; 2]) -> Vec<Histogram> {
        let window = |_| {
            let mut histogram = Histogram::default();
            for _ in 0..100 {
                let mean = if rng.unit() < share { slow } else { fast };
                let time = mean * (0.5 + 0.5 * rng.exponential());
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                histogram.record(time as u64);
            }
            histogram
        };
        (0..40).map(window).collect()
    }

    fn of(windows: &[Histogram]) -> Vec<Mode> {
        of_windows(&windows.iter().collect::<Vec<_>>(), Level::ONE_LOOK)
    }

    #[test]
    fn shares_of_two_places_are_those_of_the_mixture() {
        let mut rng = Rng::new(9, 0);
        for truth in [0.05, 0.25, 0.6] {
            let mut held = 0;
            for _ in 0..200 {
                let found = of(&measured(&mut rng, truth, [20e3, 2e6]));
                assert_eq!(found.len(), 2, "{truth}: {found:?}");
                assert!((found[1].share - truth).abs() < 0.03, "{truth}: {found:?}");
                let interval = found[1].interval.unwrap();
                held += usize::from(interval.low <= truth && truth <= interval.high);
            }
            assert!((182..=199).contains(&held), "{truth}: {held} of 200");
        }
    }

    #[test]
    fn a_series_of_any_length_is_kept_in_few_windows_and_nothing_of_it_lost() {
        let mut rng = Rng::new(11, 0);
        let mut reader = ModesReader::default();
        for parts in 1..=1000u64 {
            let mut times = Histogram::default();
            times.record(if rng.unit() < 0.3 { 2_000_000 } else { 20_000 });
            reader.add(&times);
            let kept: u64 = reader.windows.iter().map(Histogram::count).sum();
            assert_eq!(kept, parts);
            assert!(reader.windows.len() <= ModesReader::WINDOWS_MOST);
            let whole = reader
                .windows
                .split_last()
                .map_or(&[][..], |(_, whole)| whole);
            assert!(whole.iter().all(|one| one.count() == 1 << reader.doublings));
        }
        let found = reader.finding("reads of vda").unwrap().what;
        assert!(
            found.starts_with("reads of vda ended in 2 different ways: 7"),
            "{found}"
        );
        assert_eq!(ModesReader::default().finding("nothing"), None);
    }

    #[test]
    fn none_is_invented_where_all_come_from_one_place() {
        let mut rng = Rng::new(10, 0);
        for _ in 0..200 {
            let found = of(&measured(&mut rng, 0.0, [100e3, 0.0]));
            assert_eq!(found.len(), 1, "{found:?}");
        }
    }

    #[test]
    fn slow_operations_that_came_together_are_no_second_mode() {
        let mut rng = Rng::new(11, 0);
        let mut windows = measured(&mut rng, 0.0, [100e3, 0.0]);
        windows.truncate(39);
        windows.extend(measured(&mut rng, 1.0, [0.0, 10e6]).pop());
        assert!(of(&windows).len() < 2);
    }

    /// Octaves from `low` on.
    fn octaves(low: f64, counts: &[f64]) -> Vec<CountedRange> {
        let mut low = low;
        let range = |count: &f64| {
            let from = low;
            low *= 2.0;
            CountedRange {
                low: from,
                high: Some(low),
                count: *count,
            }
        };
        counts.iter().map(range).collect()
    }

    fn words(counts: &[f64]) -> String {
        in_words(&modes(&octaves(250.0, counts)), time)
    }

    #[test]
    fn two_maxima_are_cut_at_the_minimum_between_them() {
        assert_eq!(
            words(&[100.0, 600.0, 50.0, 100.0, 150.0]),
            "75 % up to 2.00 ms, 25 % above"
        );
    }

    #[test]
    fn one_maximum_is_one_mode() {
        assert_eq!(words(&[100.0, 600.0, 300.0]), "100 % up to 2.00 ms");
        assert_eq!(words(&[5.0]), "100 % up to 500 µs");
        assert!(modes(&[]).is_empty() && modes(&octaves(1.0, &[0.0])).is_empty());
    }

    #[test]
    fn neither_chance_nor_a_shallow_valley_makes_a_mode() {
        // A valley of 400 between 600 and 500, and one of 3 between 9 and 8.
        assert_eq!(modes(&octaves(1.0, &[600.0, 400.0, 500.0])).len(), 1);
        assert_eq!(modes(&octaves(1.0, &[9.0, 3.0, 8.0])).len(), 1);
        assert_eq!(modes(&octaves(1.0, &[900.0, 300.0, 800.0])).len(), 2);
        // Half a percent far away is a tail.
        assert_eq!(modes(&octaves(1.0, &[99_500.0, 10.0, 490.0])).len(), 1);
    }

    #[test]
    fn buckets_that_are_left_out_are_empty() {
        let mut apart = octaves(64.0, &[700.0]);
        apart.extend(octaves(8192.0, &[300.0]));
        let found = modes(&apart);
        assert_eq!(
            in_words(&found, time),
            "70 % up to 128 µs, 30 % from 8.19 ms to 16.4 ms"
        );
        let sum: f64 = found.iter().map(|mode| mode.share).sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_wide_bucket_is_no_maximum_because_it_is_wide() {
        let of = |low: f64, high: Option<f64>, count: f64| CountedRange { low, high, count };
        let found = modes(&[
            of(1.0, Some(2.0), 400.0),
            of(2.0, Some(4.0), 100.0),
            of(4.0, Some(4096.0), 900.0),
            of(4096.0, None, 5.0),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].high, None);
    }

    #[test]
    fn three_modes_are_three_parts() {
        assert_eq!(
            words(&[500.0, 0.0, 300.0, 0.0, 200.0]),
            "50 % up to 500 µs, 30 % from 1.00 ms to 2.00 ms and 20 % from 4.00 ms to 8.00 ms"
        );
    }
}
