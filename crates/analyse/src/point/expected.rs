//! Whether a load keeps what is expected of it, while it is measured in visits and somebody looks after
//! each of them.
//!
//! Input: the record of a load, expectations, and the level of their intervals. Output: a verdict for
//! each, with the figure and how much longer would decide.
//!
//! Visits differ by more than their own windows show, so the error is that between visits: each of them
//! is one value.

use super::backlog::RateMet;
use super::lost::upper_median;
use crate::figures::confidence::{BoundCheck, whole_windows};
use crate::figures::latency::LatencySummary;
use crate::figures::quantile::Quantile;
use rigel_model::record::{Histogram, PointRecord, StreamRecord, Window};
use rigel_model::{Bound, Coordinates, Expectation, ExpectedOf, Kind, Measure, Nanos};
use rigel_stats::estimate::{ERROR_MIN, Estimate};
use rigel_stats::mean::{BATCHES_MIN, Level, Limits, Mean};
use rigel_stats::verdict::{BoundVerdict, Wanted};

/// Minimum number of visits to a load for a verdict: with fewer nobody knows how they differ.
pub const VISITS_LEAST: usize = BATCHES_MIN;

/// If more than this many times the measured time would be needed, no time is suggested.
const TIMES_MOST: f64 = 10_000.0;

/// What points are judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct Criteria {
    /// A bound on the response times of every point.
    pub bound: Option<Bound>,
    /// What is expected of the point with these coordinates; of every point, without.
    pub expected: Vec<(Expectation, Option<Coordinates>)>,
    /// The level of the interval of each expectation.
    pub level: Level,
    /// The error of the intervals of all figures of the point: 5 %, unless a run that is complete is
    /// judged by them.
    pub error: f64,
}

impl From<Option<Bound>> for Criteria {
    fn from(bound: Option<Bound>) -> Self {
        Self {
            bound,
            expected: Vec::new(),
            level: Level::ONE_LOOK,
            error: Level::ONE_LOOK.error,
        }
    }
}

/// An expectation at one load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedVerdict {
    /// Its place among those of the run.
    pub index: usize,
    /// Whether it is kept.
    pub verdict: BoundVerdict,
    /// The figure in microseconds, per second, or in megabytes per second, and its interval at the level
    /// of the run.
    pub figure: Option<Estimate>,
    /// Of a rate or a mean: that of the middle visit, which met no stall, in times of the figure.
    pub calm: Option<f64>,
    /// If undecided: how many times as much must be measured, if the figure stays as it is; `None` if
    /// that is unknown, or out of reach.
    pub times: Option<f64>,
}

impl Criteria {
    /// The verdicts of a class of a point.
    pub(super) fn verdicts(
        &self,
        (record, stream): (&PointRecord, &StreamRecord),
        class: ClassFigures,
    ) -> Vec<ExpectedVerdict> {
        let is_here = |at: Option<Coordinates>| at.is_none_or(|at| at == record.coordinates);
        let of_kind = |kind: Option<Kind>| {
            let here = self.expected.iter().enumerate();
            let here: Vec<(usize, &Expectation)> = here
                .filter(|(_, (one, at))| is_here(*at) && one.kind() == kind)
                .map(|(index, (one, _))| (index, one))
                .collect();
            if here.is_empty() {
                return Vec::new();
            }
            let evidence = Evidence::of((record, stream), kind, class, self.level);
            let judged = here.into_iter().map(|(index, one)| ExpectedVerdict {
                index,
                ..evidence.judge(one)
            });
            judged.collect()
        };
        [None, Some(Kind::Read), Some(Kind::Write)]
            .into_iter()
            .flat_map(of_kind)
            .collect()
    }
}

/// The figures of a class over all visits.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassFigures {
    /// Completed operations per second.
    pub(super) iops: f64,
    /// Bytes of one operation.
    pub(super) io_bytes: u32,
    /// Response times; `None` if nothing completed.
    pub(super) latency: Option<LatencySummary>,
    /// The longest that one took.
    pub(super) longest_us: Option<f64>,
    /// Operations that failed, or were never started.
    pub(super) missed: u64,
    /// Open loop: whether the offered rate is served.
    pub(super) met: Option<RateMet>,
}

impl ClassFigures {
    /// Those of one kind of its operations.
    fn of_kind(self, kind: Kind, stream: &StreamRecord) -> Self {
        let total = stream.total_of(kind).unwrap_or_default();
        let latency = LatencySummary::of(&total.response);
        Self {
            iops: self.iops * total.done as f64 / (stream.done() as f64).max(1.0),
            latency,
            longest_us: latency.map(|latency| latency.max_us),
            missed: total.failures(),
            ..self
        }
    }
}

/// What the visits to a load show.
struct Evidence {
    class: ClassFigures,
    /// The visits, each as one window, and the time in seconds that each stands for.
    windows: Vec<Window>,
    seconds: Vec<f64>,
    /// All of them.
    response: Histogram,
    /// True if there are [`VISITS_LEAST`] visits or more.
    is_enough: bool,
    level: Level,
}

impl Evidence {
    /// Of the operations of a kind, or of all.
    fn of(
        (record, stream): (&PointRecord, &StreamRecord),
        kind: Option<Kind>,
        class: ClassFigures,
        level: Level,
    ) -> Self {
        let mut found = Self {
            class: kind.map_or(class, |kind| class.of_kind(kind, stream)),
            windows: Vec::new(),
            seconds: Vec::new(),
            response: Histogram::default(),
            is_enough: record.visits.len() >= VISITS_LEAST,
            level,
        };
        let mut overruns = Vec::new();
        for visit in record.pieces() {
            let own = visit.streams.iter().find(|own| own.name == stream.name);
            let windows = own.map_or_else(Vec::new, |own| match kind {
                None => whole_windows(own, visit),
                Some(kind) => whole_windows(&own.only(kind), visit),
            });
            let together: Window = windows.iter().sum();
            found.response.merge(&together.response.histogram);
            found.windows.push(together);
            let width_s = visit.window.as_secs_f64();
            let idle = if stream.is_open() {
                0
            } else {
                idle_at_first(&windows)
            };
            found.seconds.push((windows.len() - idle) as f64 * width_s);
            overruns.push(overrun_s(&windows, width_s));
        }
        if !stream.is_open() {
            let stalled = stalled_after(&overruns);
            let seconds = found.seconds.iter_mut().zip(stalled);
            seconds.for_each(|(seconds, stalled)| *seconds += stalled);
        }
        found
    }

    fn judge(&self, expectation: &Expectation) -> ExpectedVerdict {
        let margin = expectation.margin.get();
        let found = match expectation.limit.0 {
            Measure::Rate(_) => {
                let scale = match expectation.of {
                    ExpectedOf::Throughput => f64::from(self.class.io_bytes) / 1e6,
                    _ => 1.0,
                };
                let counts: Vec<f64> = self.windows.iter().map(|of| of.done as f64).collect();
                let mean = Mean::of_ratio_in(self.level.batch, &counts, &self.seconds);
                let mean = mean.map(|mean| mean.scaled(scale));
                let calm = middle(&counts, &self.seconds) * scale;
                self.of_mean(mean, calm, self.class.iops * scale, expectation.into())
            }
            Measure::Mean(_) => {
                let sum = |of: &Window| of.response.sum as f64 / 1e3;
                let sums: Vec<f64> = self.windows.iter().map(sum).collect();
                let counts: Vec<f64> = self.windows.iter().map(|of| of.done as f64).collect();
                let mean = Mean::of_ratio_in(self.level.batch, &sums, &counts);
                let value = self.class.latency.map(|latency| latency.mean_us);
                let value = value.unwrap_or(f64::NAN);
                self.of_mean(mean, middle(&sums, &counts), value, expectation.into())
            }
            Measure::Quantile(quantile, limit) => self.of_quantile(quantile, limit, margin),
            // A stall is one whatever is served.
            Measure::Max(limit) => return self.of_longest(limit),
        };
        self.if_served(found)
    }

    /// A rate, or a mean of response times; `calm` is that of the middle visit.
    fn of_mean(
        &self,
        mean: Option<Mean>,
        calm: f64,
        value: f64,
        limit: ExpectedLimit,
    ) -> ExpectedVerdict {
        let after = |mean: Mean, times: f64| {
            let longer = Mean {
                error: mean.error.max(ERROR_MIN * mean.value) / times.sqrt(),
                effective_n: mean.effective_n * times,
                ..mean
            };
            longer.at(self.level).limits()
        };
        let Some(mean) = mean.filter(|_| self.is_enough) else {
            return undecided(value.is_finite().then(|| value.into()), None);
        };
        let figure = |times: f64| Estimate::new(mean.value, Some(after(mean, times)));
        let decides = |times: f64| limit.verdict(figure(times)) != BoundVerdict::Undecided;
        ExpectedVerdict {
            verdict: limit.verdict(figure(1.0)),
            calm: Some(calm / mean.value),
            ..undecided(Some(figure(1.0)), times_needed(decides))
        }
    }

    /// A quantile: by the share of operations within the limit, and within what its margin forgives.
    fn of_quantile(&self, quantile: f64, limit: Nanos, margin: f64) -> ExpectedVerdict {
        let histograms: Vec<&Histogram> = self
            .windows
            .iter()
            .map(|window| &window.response.histogram)
            .collect();
        let done = self.response.count() as f64;
        let of_done = quantile * (done + self.class.missed as f64) / done;
        let known = Some(of_done)
            .filter(|share| *share < 1.0)
            .and_then(|share| Quantile::of_windows(&histograms, share, self.level));
        let value = known.map(|known| known.band.middle() / 1e3);
        if !self.is_enough {
            return undecided(value.map(Estimate::from), None);
        }
        let of = |factor: f64| {
            let latency = Nanos::from_secs_f64(limit.as_secs_f64() * factor);
            let asked = (Bound { latency, quantile }, self.level);
            let seconds: f64 = self.seconds.iter().sum();
            let windows = (&self.windows[..], seconds / self.windows.len() as f64);
            let check = BoundCheck::of_windows(&self.response, self.class.missed, windows, asked);
            (check, asked)
        };
        let (exact, worst) = (of(1.0), of(1.0 + margin));
        let found = BoundVerdict::of(
            worst.0.verdict == BoundVerdict::Kept,
            exact.0.verdict == BoundVerdict::Broken,
        );
        let decides = |times: f64| {
            let windows = self.windows.len() as f64 * times;
            let after =
                |(check, asked): &(BoundCheck, _)| check.is_decided_after(times, windows, *asked);
            after(&worst) || after(&exact)
        };
        // The share says more than the interval where few operations are as slow.
        let ends = [&exact, &worst].map(|(_, (bound, _))| bound.latency.as_micros_f64());
        let interval = known.and_then(|known| known.interval);
        let interval = interval.map(|interval| interval.scaled(1e-3));
        let interval = match (found, interval) {
            (BoundVerdict::Kept, known) => Some(Limits {
                low: known.map_or(0.0, |known| known.low),
                high: Some(
                    known
                        .and_then(|known| known.high)
                        .map_or(ends[1], |high| high.min(ends[1])),
                ),
            }),
            (BoundVerdict::Broken, known) => Some(Limits {
                low: known.map_or(ends[0], |known| known.low.max(ends[0])),
                high: known.and_then(|known| known.high),
            }),
            (_, known) => known,
        };
        let figure = value.map(|value| Estimate::new(value, interval));
        ExpectedVerdict {
            verdict: found,
            ..undecided(figure, times_needed(decides))
        }
    }

    /// The longest operation, which has no interval: what was measured decides. One that failed is slower
    /// than any limit.
    fn of_longest(&self, limit: Nanos) -> ExpectedVerdict {
        let longest = self.class.longest_us;
        let has_failed = self.windows.iter().any(|window| window.failures() > 0);
        let verdict = match longest {
            _ if has_failed => BoundVerdict::Broken,
            None => BoundVerdict::Undecided,
            Some(longest) if longest > limit.as_micros_f64() => BoundVerdict::Broken,
            Some(_) => BoundVerdict::Kept,
        };
        ExpectedVerdict {
            verdict,
            ..undecided(longest.map(Estimate::from), None)
        }
    }

    /// No response time keeps anything at a rate that is not served.
    fn if_served(&self, found: ExpectedVerdict) -> ExpectedVerdict {
        let verdict = match self.class.met {
            Some(RateMet::No) if self.is_enough => BoundVerdict::Broken,
            Some(RateMet::Undecided) if found.verdict == BoundVerdict::Kept => {
                BoundVerdict::Undecided
            }
            _ => found.verdict,
        };
        ExpectedVerdict {
            verdict,
            times: found.times.filter(|_| verdict == BoundVerdict::Undecided),
            ..found
        }
    }
}

/// The windows at the beginning of a closed loop's visit in which nothing was due, since all waited for a stall
/// that began before it.
fn idle_at_first(windows: &[Window]) -> usize {
    let is_idle = |window: &&Window| window.done == 0 && window.failed.is_empty();
    windows.iter().take_while(is_idle).count()
}

/// How long after a visit its last operation certainly ended, in seconds.
fn overrun_s(windows: &[Window], width_s: f64) -> f64 {
    let ended = windows
        .iter()
        .enumerate()
        .map(|(at, window)| at as f64 * width_s + window.response.max as f64 / 1e9);
    (ended.fold(0.0, f64::max) - windows.len() as f64 * width_s).max(0.0)
}

/// The time in seconds for which a stall that began in a visit went on after it. The next visit waits for its
/// end: what is measured would have the part of each stall in it alone, and the rate be too high.
fn stalled_after(overruns: &[f64]) -> impl Iterator<Item = f64> {
    const TIMES_USUAL: f64 = 3.0;
    const LEAST_S: f64 = 0.02;
    let usual = upper_median(overruns);
    let is_stall = move |over: f64| over > TIMES_USUAL * usual + LEAST_S;
    overruns
        .iter()
        .map(move |over| if is_stall(*over) { over - usual } else { 0.0 })
}

fn undecided(figure: Option<Estimate>, times: Option<f64>) -> ExpectedVerdict {
    ExpectedVerdict {
        index: 0,
        verdict: BoundVerdict::Undecided,
        figure,
        calm: None,
        times,
    }
}

/// The quotient of the middle visit.
fn middle(numerators: &[f64], denominators: &[f64]) -> f64 {
    let pairs = numerators.iter().zip(denominators);
    let known = pairs.filter(|(_, below)| **below > 0.0);
    upper_median(
        &known
            .map(|(above, below)| above / below)
            .collect::<Vec<_>>(),
    )
}

/// The least number of times as much that decides, in steps of a tenth.
fn times_needed(decides: impl Fn(f64) -> bool) -> Option<f64> {
    const STEP: f64 = 1.1;
    std::iter::successors(Some(STEP), |times| Some(times * STEP))
        .take_while(|times| *times < TIMES_MOST)
        .find(|times| decides(*times))
}

/// The limit of an expectation, with its margin, in the unit of its figure: microseconds, or per second.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedLimit {
    wanted: Wanted,
    margin: f64,
}

impl From<&Expectation> for ExpectedLimit {
    fn from(expectation: &Expectation) -> Self {
        let wanted = match expectation.limit.0 {
            Measure::Rate(limit) => Wanted::AtLeast(limit),
            Measure::Mean(limit) | Measure::Quantile(_, limit) | Measure::Max(limit) => {
                Wanted::AtMost(limit.as_micros_f64())
            }
        };
        Self {
            wanted,
            margin: expectation.margin.get(),
        }
    }
}

impl ExpectedLimit {
    /// Whether a figure keeps it, by its interval: undecided if it has none.
    pub fn verdict(&self, figure: Estimate) -> BoundVerdict {
        let forgiven = self.wanted.forgiving(self.margin);
        BoundVerdict::of(
            figure.against(forgiven) == BoundVerdict::Kept,
            figure.against(self.wanted) == BoundVerdict::Broken,
        )
    }

    /// The limit and as much more as its margin forgives.
    pub fn forgiven(&self) -> f64 {
        self.wanted.forgiving(self.margin).limit()
    }

    /// How many times as much must be measured to decide, if the figure stays as it is and its interval
    /// narrows as that of a mean; `None` if that is out of reach.
    pub fn times_to_decide(&self, figure: Estimate) -> Option<f64> {
        let Limits { low, high } = figure.interval?;
        times_needed(|times| {
            let nearer = |limit: f64| figure.value + (limit - figure.value) / times.sqrt();
            let interval = Some(Limits {
                low: nearer(low),
                high: high.map(nearer),
            });
            self.verdict(Estimate { interval, ..figure }) != BoundVerdict::Undecided
        })
    }
}
