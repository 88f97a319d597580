//! The running point in the live view: its windows, and the confidence interval of its throughput.

use super::column::{LiveColumn, Span};
use super::unit::ThroughputUnit;
use rigel_analyse::{Level, Mean};
use rigel_drive::Live;
use rigel_measure::run::RunningRanks;
use rigel_model::record::Window;
use rigel_model::{Load, Nanos, Point, Step, Until, in_line};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// Number of latest windows that may still lack operations that a worker holds.
const UNSETTLED: usize = 2;

/// Number of latest windows read again once a second: a slow operation belongs to the window in
/// which it was due.
const REVISITED: usize = 25;

/// Interval at which they are read again.
const REVISIT: Nanos = Nanos::from_secs(1);

/// Maximum number of seconds shown of a running round: earlier rounds are more important.
const SECONDS_OF_ROUND: usize = 30;

/// Maximum number of half-widths of the interval to keep.
const NARROWING_MAX: usize = 64;

/// The running point.
#[derive(Debug, Clone)]
pub(super) struct PointNow {
    /// Its load, in the words of the plan.
    pub(super) name: String,
    /// Descriptions of its streams' loads, and whether each of several ranks has it.
    loads: Vec<(String, bool)>,
    /// The ranks that measure it together; `None` if this process measures alone.
    pub(super) ranks: Option<RunningRanks>,
    /// Unit of the throughput of the first class.
    pub(super) unit: ThroughputUnit,
    /// Width of a window.
    width: Nanos,
    /// Time span of its columns.
    pub(super) span: Span,
    /// When it ends.
    pub(super) until: Until,
    /// Time since it began.
    pub(super) elapsed: Nanos,
    /// When measuring began.
    pub(super) measuring_since: Option<Nanos>,
    /// Number of its windows in the columns.
    windows: usize,
    /// Operations of the first class in each settled window.
    counts: Counts,
    /// Relative half-width of the confidence interval of throughput, over time.
    pub(super) narrowing: VecDeque<f64>,
    /// Counters of every class at the last window: completed operations, and the sum of their
    /// response times.
    last: (Nanos, Vec<(u64, u64)>),
    /// Operations of the first class completed during warm-up.
    warmed: u64,
    /// Mean response time of the first class in the last second of a round.
    pub(super) mean: Option<Nanos>,
    /// The other classes: name, throughput and response time.
    pub(super) beside: Vec<String>,
    /// Time when [`REVISITED`] windows were last read again.
    revisited: Nanos,
    /// Number of host samples seen so far.
    samples: usize,
}

impl PointNow {
    /// The state before any data.
    pub(super) fn new(point: &Point) -> Self {
        let first = point.streams.first();
        Self {
            name: point.coordinates.to_string(),
            loads: point
                .streams
                .iter()
                .map(|stream| {
                    let is_of_each = matches!(stream.load, Load::Closed { .. })
                        || point.coordinates.step() == Step::Hosts
                        || stream.rank.is_some();
                    (load(&stream.load, stream.sql.is_some()), is_of_each)
                })
                .collect(),
            ranks: None,
            unit: first.map_or(ThroughputUnit::Iops, |stream| {
                ThroughputUnit::of(stream.sql.is_some(), stream.length)
            }),
            width: point.window,
            span: match point.coordinates.step() {
                Step::Round => Span::Round,
                _ => Span::Window(point.window),
            },
            until: point.until,
            elapsed: Nanos(0),
            measuring_since: None,
            windows: 0,
            counts: Counts::default(),
            narrowing: VecDeque::new(),
            last: (Nanos(0), Vec::new()),
            warmed: 0,
            mean: None,
            beside: Vec::new(),
            revisited: Nanos(0),
            samples: 1,
        }
    }

    /// The loads in words, after the ranks that have them.
    pub(super) fn loads(&self) -> String {
        let is_shared = self.ranks.as_ref().is_some_and(|ranks| ranks.ranks > 1);
        let load = |(load, is_of_each): &(String, bool)| {
            let each = if is_shared && *is_of_each {
                " each"
            } else {
                ""
            };
            format!("{load}{each}")
        };
        let loads: Vec<String> = self.loads.iter().map(load).collect();
        let ranks = self.ranks.as_ref();
        let ranks = ranks.map_or_else(String::new, |ranks| format!("{ranks}, "));
        ranks + &loads.join(" and ")
    }

    /// The slowest host, after a comma.
    pub(super) fn slowest(&self) -> String {
        let slowest = self.ranks.as_ref().and_then(|ranks| ranks.slowest.as_ref());
        slowest.map_or_else(String::new, |slowest| {
            let rate = self.unit.rate(slowest.rate);
            format!(", slowest {} {rate}", in_line(&slowest.name))
        })
    }

    /// True if there is a new sample.
    pub(super) fn is_fresh(&mut self, samples: usize) -> bool {
        samples > std::mem::replace(&mut self.samples, samples)
    }

    /// Updates the point from `live`. Appends its completed windows to `columns`, whose last
    /// entries are its earlier windows.
    pub(super) fn look(&mut self, point: &Point, live: &Live, columns: &mut VecDeque<LiveColumn>) {
        (self.elapsed, self.measuring_since) = (live.elapsed, live.measuring_since);
        self.count(point, live, columns);
        if self.span == Span::Round {
            return;
        }
        let Some(since) = live.measuring_since else {
            return;
        };
        let over = whole(live.elapsed.since(since), self.width).saturating_sub(1);
        let Some(seconds) = live.seconds.first() else {
            return;
        };
        let again = if live.elapsed >= self.revisited.plus(REVISIT) {
            self.revisited = live.elapsed;
            REVISITED
        } else {
            UNSETTLED
        };
        // Windows that have left the columns cannot be corrected.
        let first = self.windows.saturating_sub(again.min(columns.len()));
        let mut windows = seconds.since(first);
        windows.resize_with(over.saturating_sub(first), Window::default);
        self.settle(first, &windows);
        for (at, window) in windows
            .iter()
            .enumerate()
            .map(|(at, window)| (first + at, window))
        {
            let mut column = LiveColumn::of(window, self.width);
            column.unit = self.unit;
            match self.windows.checked_sub(at) {
                Some(back) if back > 0 => {
                    let place = columns.len() - back;
                    column.first = columns[place].first;
                    columns[place] = column;
                }
                _ => {
                    column.first =
                        self.windows == 0 && columns.back().is_none_or(|before| !before.warming);
                    columns.push_back(column);
                    self.windows += 1;
                }
            }
        }
        if let Some((_, half)) = self.interval()
            && self.narrowing.back() != Some(&half)
        {
            self.narrowing.push_back(half);
            if self.narrowing.len() > NARROWING_MAX {
                self.narrowing.pop_front();
            }
        }
    }

    /// Counts the windows that are final. `windows` are the windows from number `first` on.
    fn settle(&mut self, first: usize, windows: &[Window]) {
        let end = (first + windows.len()).saturating_sub(UNSETTLED);
        for at in self.counts.windows..end {
            self.counts.push(windows[at - first].done as f64);
        }
    }

    /// Evaluates the running counters: of the first class during warm-up and in rounds, of the
    /// other classes always.
    fn count(&mut self, point: &Point, live: &Live, columns: &mut VecDeque<LiveColumn>) {
        let counts: Vec<(u64, u64)> = live
            .classes
            .iter()
            .map(|class| (class.done.load(Relaxed), class.response.load(Relaxed)))
            .collect();
        let span = live.elapsed.since(self.last.0);
        let is_first = self.last.1.len() != counts.len();
        if !is_first && span < self.width.min(Nanos::from_secs(1)) {
            return;
        }
        let (_, before) = std::mem::replace(&mut self.last, (live.elapsed, counts.clone()));
        let seconds = span.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let grown: Vec<(u64, u64)> = counts
            .iter()
            .enumerate()
            .map(|(at, (done, response))| {
                let (done_before, response_before) = before.get(at).copied().unwrap_or_default();
                (
                    done.saturating_sub(done_before),
                    response.saturating_sub(response_before),
                )
            })
            .collect();
        if live.measuring_since.is_none() {
            self.warmed = counts.first().map_or(0, |(done, _)| *done);
        }
        if (live.measuring_since.is_none() || self.span == Span::Round)
            && let Some((done, response)) = grown.first()
        {
            let first = is_first;
            columns.push_back(LiveColumn {
                warming: true,
                first,
                rate: *done as f64 / seconds,
                unit: self.unit,
                ..LiveColumn::empty()
            });
            self.mean = response.checked_div(*done).map(Nanos);
        }
        if self.span == Span::Round {
            keep_last_seconds(columns);
        }
        let of_stream = |(name, (done, response)): (&str, &(u64, u64))| {
            let stream = point.streams.iter().find(|stream| stream.name == name)?;
            let unit = ThroughputUnit::of(stream.sql.is_some(), stream.length);
            let mean = Nanos(response.checked_div(*done)?);
            Some(format!(
                "{name} {} mean {mean}",
                unit.rate(*done as f64 / seconds)
            ))
        };
        self.beside = rigel_drive::classes(point)
            .into_iter()
            .zip(&grown)
            .skip(1)
            .filter_map(of_stream)
            .collect();
    }

    /// Throughput of the first class so far in operations per second, and the relative half-width
    /// of its 95 % interval, which holds for who looks all the time. `None` if there are too few windows.
    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        let mean = Mean::of_batches(&self.counts.values)?.at(Level::ANY_LOOKS);
        let half = mean.interval().relative(mean.value);
        let width = self.width.as_secs_f64() * self.counts.together as f64;
        (mean.value > 0.0 && half.is_finite() && width > 0.0).then_some((mean.value / width, half))
    }

    /// Duration of the measurement so far.
    pub(super) fn measured(&self) -> Nanos {
        self.measuring_since
            .map_or(Nanos(0), |since| self.elapsed.since(since))
    }

    /// Requested relative half-width of the interval.
    pub(super) fn precision(&self) -> Option<f64> {
        if let Until::Precise { precision, .. } = self.until {
            Some(precision.get())
        } else {
            None
        }
    }

    /// Maximum duration of the measurement; `None` for fixed work without a limit.
    pub(super) fn most(&self) -> Option<Nanos> {
        match self.until {
            Until::Elapsed(most) | Until::Work { most, .. } | Until::Precise { most, .. } => {
                Some(most)
            }
            Until::Ops(_) => None,
        }
    }

    /// Operations of fixed work: completed and requested.
    pub(super) fn work(&self) -> Option<(u64, u64)> {
        let (Until::Ops(ops) | Until::Work { ops, .. }) = self.until else {
            return None;
        };
        let done = self
            .last
            .1
            .first()
            .map_or(0, |(done, _)| done.saturating_sub(self.warmed));
        Some((done.min(ops), ops))
    }

    /// Completed fraction of the point.
    pub(super) fn share(&self) -> f64 {
        let of_time = self.most().map_or(0.0, |most| {
            self.measured().as_secs_f64() / most.as_secs_f64().max(1e-9)
        });
        let of_work = self
            .work()
            .map_or(0.0, |(done, ops)| done as f64 / ops.max(1) as f64);
        of_time.max(of_work).min(1.0)
    }
}

/// Removes all but the last seconds of a running round from the columns.
fn keep_last_seconds(columns: &mut VecDeque<LiveColumn>) {
    let seconds = columns
        .iter()
        .rev()
        .take_while(|column| column.warming)
        .count();
    let from = columns.len() - seconds;
    if seconds > SECONDS_OF_ROUND {
        columns.drain(from..from + seconds - SECONDS_OF_ROUND);
    }
    if let Some(first) = columns.get_mut(from) {
        first.first = true;
    }
}

/// A short description of a load.
fn load(load: &Load, is_sql: bool) -> String {
    match load {
        Load::Closed { depth } if is_sql => format!("{depth} sessions"),
        Load::Closed { depth } => format!("{depth} outstanding"),
        Load::Open { rate, .. } => format!("{rate:.0}/s offered"),
    }
}

fn whole(span: Nanos, width: Nanos) -> usize {
    usize::try_from(span.0 / width.0.max(1)).unwrap_or(usize::MAX)
}

/// Counts of windows of equal width in at most [`Counts::MOST`] numbers: beyond that, neighbouring
/// values are added together.
#[derive(Debug, Clone)]
struct Counts {
    values: Vec<f64>,
    /// Number of windows in each value.
    together: usize,
    /// The incomplete value: number of windows in it, and their sum.
    open: (usize, f64),
    /// Total number of windows.
    windows: usize,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            together: 1,
            open: (0, 0.0),
            windows: 0,
        }
    }
}

impl Counts {
    const MOST: usize = 1024;

    fn push(&mut self, count: f64) {
        self.windows += 1;
        self.open = (self.open.0 + 1, self.open.1 + count);
        if self.open.0 < self.together {
            return;
        }
        self.values.push(self.open.1);
        self.open = (0, 0.0);
        if self.values.len() == Self::MOST {
            self.values = self
                .values
                .chunks(2)
                .map(|pair| pair.iter().sum())
                .collect();
            self.together *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_week_take_no_more_room_than_those_of_an_hour() {
        let mut counts = Counts::default();
        (0..604_800).for_each(|at| counts.push(f64::from(100 + at % 2)));
        assert!(
            counts.values.len() < Counts::MOST,
            "{}",
            counts.values.len()
        );
        let mean = Mean::of_batches(&counts.values).unwrap().value / counts.together as f64;
        assert!((mean - 100.5).abs() < 1e-6, "{mean}");
        assert_eq!(counts.windows, 604_800);
    }

    #[test]
    fn loads_are_named_in_the_terms_of_their_target() {
        assert_eq!(load(&Load::Closed { depth: 8 }, false), "8 outstanding");
        assert_eq!(load(&Load::Closed { depth: 8 }, true), "8 sessions");
        let arrivals = rigel_model::Arrivals::Poisson;
        assert_eq!(
            load(
                &Load::Open {
                    rate: 1200.0,
                    arrivals,
                    in_flight_max: 9
                },
                false
            ),
            "1200/s offered"
        );
    }
}
