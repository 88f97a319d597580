//! The point that runs, as the live view follows it: window by window, with the interval of its throughput.

use super::state::{BINS, Column, Percentiles, Span, bin_of};
use super::unit::Unit;
use crate::analyse::Mean;
use crate::drive::{self, Live};
use crate::model::{Load, Nanos, Point, Step, Until};
use crate::record::Window;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// Windows at the young end that may still lack what some worker holds.
const UNSETTLED: usize = 2;

/// Windows that are read again once a second: an operation that took long belongs to the window in which it was due.
const REVISITED: usize = 25;

/// How often.
const REVISIT: Nanos = Nanos::from_secs(1);

/// Seconds of a round that are shown while it runs: the rounds before it are worth more.
const SECONDS_OF_ROUND: usize = 30;

/// Half-widths of the interval that are kept.
const NARROWING_MAX: usize = 64;

/// The point that runs.
#[derive(Debug, Clone)]
pub(super) struct PointNow {
    /// Its load, in the words of the plan.
    pub(super) name: String,
    /// Its streams' loads, each with the name of its class.
    pub(super) loads: Vec<String>,
    /// How throughput of the first class is told.
    pub(super) unit: Unit,
    /// Width of a window.
    width: Nanos,
    /// What a column of it is.
    pub(super) span: Span,
    /// When it ends.
    pub(super) until: Until,
    /// Since it began.
    pub(super) elapsed: Nanos,
    /// When measuring began.
    pub(super) measuring_since: Option<Nanos>,
    /// Windows that are in the columns.
    windows: usize,
    /// Operations of the first class in each window that is settled.
    counts: Counts,
    /// Half the interval of throughput, as a share, look by look.
    pub(super) narrowing: VecDeque<f64>,
    /// Running counters of every class at the last window: done, and response times summed.
    last: (Nanos, Vec<(u64, u64)>),
    /// Operations of the first class that were done before measuring.
    warmed: u64,
    /// Mean response time of the first class in the last second of a round.
    pub(super) mean: Option<Nanos>,
    /// Classes beside the first: name, and how they stand.
    pub(super) beside: Vec<String>,
    /// When many windows were last read again.
    revisited: Nanos,
    /// Samples of the host that were seen.
    samples: usize,
}

impl PointNow {
    /// Before anything was seen of it.
    pub(super) fn new(point: &Point) -> Self {
        let first = point.streams.first();
        Self {
            name: point.coordinates.to_string(),
            loads: point.streams.iter().map(|stream| load(&stream.load, stream.sql.is_some())).collect(),
            unit: first.map_or(Unit::Iops, |stream| Unit::of(stream.sql.is_some(), stream.length)),
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

    /// True if there is a sample that was not seen before.
    pub(super) fn is_fresh(&mut self, samples: usize) -> bool {
        samples > std::mem::replace(&mut self.samples, samples)
    }

    /// Follows the point: its windows that are over go to `columns`, in which its earlier ones stand last.
    pub(super) fn look(&mut self, point: &Point, live: &Live, columns: &mut VecDeque<Column>) {
        (self.elapsed, self.measuring_since) = (live.elapsed, live.measuring_since);
        self.count(point, live, columns);
        if self.span == Span::Round {
            return;
        }
        let Some(since) = live.measuring_since else { return };
        let over = whole(live.elapsed.since(since), self.width).saturating_sub(1);
        let Some(seconds) = live.seconds.first() else { return };
        let again = if live.elapsed >= self.revisited.plus(REVISIT) {
            self.revisited = live.elapsed;
            REVISITED
        } else {
            UNSETTLED
        };
        // What is no longer in the columns cannot be put right.
        let first = self.windows.saturating_sub(again.min(columns.len()));
        let mut windows = seconds.since(first);
        windows.resize_with(over.saturating_sub(first), Window::default);
        self.settle(first, &windows);
        for (at, window) in windows.iter().enumerate().map(|(at, window)| (first + at, window)) {
            let mut column = Column::of(window, self.width);
            match self.windows.checked_sub(at) {
                Some(back) if back > 0 => {
                    let place = columns.len() - back;
                    column.first = columns[place].first;
                    columns[place] = column;
                }
                _ => {
                    column.first = self.windows == 0 && columns.back().is_none_or(|before| !before.warming);
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

    /// Counts the windows of which nothing more is to come, `windows` being those from number `first` on.
    fn settle(&mut self, first: usize, windows: &[Window]) {
        let end = (first + windows.len()).saturating_sub(UNSETTLED);
        for at in self.counts.windows..end {
            self.counts.push(windows[at - first].done as f64);
        }
    }

    /// What the running counters say: of the first class while it warms up and in rounds, of those beside it always.
    fn count(&mut self, point: &Point, live: &Live, columns: &mut VecDeque<Column>) {
        let counts: Vec<(u64, u64)> =
            live.classes.iter().map(|class| (class.done.load(Relaxed), class.response.load(Relaxed))).collect();
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
                (done.saturating_sub(done_before), response.saturating_sub(response_before))
            })
            .collect();
        if live.measuring_since.is_none() {
            self.warmed = counts.first().map_or(0, |(done, _)| *done);
        }
        if (live.measuring_since.is_none() || self.span == Span::Round)
            && let Some((done, response)) = grown.first()
        {
            let first = is_first;
            columns.push_back(Column { warming: true, first, rate: *done as f64 / seconds, ..Column::empty() });
            self.mean = response.checked_div(*done).map(Nanos);
        }
        if self.span == Span::Round {
            keep_last_seconds(columns);
        }
        let told = |(name, (done, response)): (&str, &(u64, u64))| {
            let stream = point.streams.iter().find(|stream| stream.name == name)?;
            let unit = Unit::of(stream.sql.is_some(), stream.length);
            let mean = Nanos(response.checked_div(*done)?);
            Some(format!("{name} {} mean {mean}", unit.rate(*done as f64 / seconds)))
        };
        self.beside = drive::classes(point).into_iter().zip(&grown).skip(1).filter_map(told).collect();
    }

    /// Operations a second of the first class so far, and half the 95 % interval as a share of it; none before there
    /// are enough windows.
    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        let mean = Mean::of_batches(&self.counts.values)?;
        let half = mean.interval().relative(mean.value);
        let width = self.width.as_secs_f64() * self.counts.together as f64;
        (mean.value > 0.0 && half.is_finite() && width > 0.0).then_some((mean.value / width, half))
    }

    /// How long was measured so far.
    pub(super) fn measured(&self) -> Nanos {
        self.measuring_since.map_or(Nanos(0), |since| self.elapsed.since(since))
    }

    /// Half-width of the interval that was asked for, as a share.
    pub(super) fn precision(&self) -> Option<f64> {
        if let Until::Precise { precision, .. } = self.until { Some(precision.get()) } else { None }
    }

    /// The longest that it is measured; none for fixed work without a limit.
    pub(super) fn most(&self) -> Option<Nanos> {
        match self.until {
            Until::Elapsed(most) | Until::Work { most, .. } | Until::Precise { most, .. } => Some(most),
            Until::Ops(_) => None,
        }
    }

    /// Operations of fixed work: done, and asked for.
    pub(super) fn work(&self) -> Option<(u64, u64)> {
        let (Until::Ops(ops) | Until::Work { ops, .. }) = self.until else { return None };
        let done = self.last.1.first().map_or(0, |(done, _)| done.saturating_sub(self.warmed));
        Some((done.min(ops), ops))
    }

    /// Share of the point that is over.
    pub(super) fn share(&self) -> f64 {
        let of_time = self.most().map_or(0.0, |most| self.measured().as_secs_f64() / most.as_secs_f64().max(1e-9));
        let of_work = self.work().map_or(0.0, |(done, ops)| done as f64 / ops.max(1) as f64);
        of_time.max(of_work).min(1.0)
    }
}

/// Takes all but the last seconds of a round that runs out of the columns.
fn keep_last_seconds(columns: &mut VecDeque<Column>) {
    let seconds = columns.iter().rev().take_while(|column| column.warming).count();
    let from = columns.len() - seconds;
    if seconds > SECONDS_OF_ROUND {
        columns.drain(from..from + seconds - SECONDS_OF_ROUND);
    }
    if let Some(first) = columns.get_mut(from) {
        first.first = true;
    }
}

/// A load in a few words.
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

impl Column {
    /// Nothing happened.
    pub(super) fn empty() -> Self {
        Self { warming: false, first: false, rate: 0.0, failed: 0, latency: None, bins: [0; BINS] }
    }

    /// What a window shows.
    pub(super) fn of(window: &Window, width: Nanos) -> Self {
        let histogram = &window.response.histogram;
        let mut bins = [0u32; BINS];
        for (low, high, count) in histogram.buckets() {
            let bin = &mut bins[bin_of(Nanos(low.midpoint(high)))];
            *bin = bin.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
        let quantile = |q| histogram.quantile(q).map(|band| Nanos(band.low.midpoint(band.high)));
        let max = Nanos(window.response.max);
        // The middle of a bucket may lie above the greatest value in it.
        let latency = quantile(0.5).zip(quantile(0.99));
        let latency = latency.map(|(p50, p99)| Percentiles { p50: p50.min(max), p99: p99.min(max), max });
        let rate = window.done as f64 / width.as_secs_f64().max(1e-9);
        Self { rate, failed: window.failures(), latency, bins, ..Self::empty() }
    }
}

/// Counts of windows of equal width, at most [`Counts::MOST`] numbers however many windows there were: where they would
/// be more, neighbours are put together.
#[derive(Debug, Clone)]
struct Counts {
    values: Vec<f64>,
    /// Windows in each value.
    together: usize,
    /// The value that is not full yet: the windows in it, and their sum.
    open: (usize, f64),
    /// Windows in all.
    windows: usize,
}

impl Default for Counts {
    fn default() -> Self {
        Self { values: Vec::new(), together: 1, open: (0, 0.0), windows: 0 }
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
            self.values = self.values.chunks(2).map(|pair| pair.iter().sum()).collect();
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
        assert!(counts.values.len() < Counts::MOST, "{}", counts.values.len());
        let mean = Mean::of_batches(&counts.values).unwrap().value / counts.together as f64;
        assert!((mean - 100.5).abs() < 1e-6, "{mean}");
        assert_eq!(counts.windows, 604_800);
    }

    #[test]
    fn loads_are_told_in_the_words_of_their_target() {
        assert_eq!(load(&Load::Closed { depth: 8 }, false), "8 outstanding");
        assert_eq!(load(&Load::Closed { depth: 8 }, true), "8 sessions");
        let arrivals = crate::model::Arrivals::Poisson;
        assert_eq!(load(&Load::Open { rate: 1200.0, arrivals, in_flight_max: 9 }, false), "1200/s offered");
    }
}
