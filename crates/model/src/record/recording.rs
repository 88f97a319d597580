//! Records of one data point: counts and latencies per class, kind of operation and second.
//!
//! Input: due, start and end time of every operation, from each worker's [`Recorder`]. Output:
//! [`PointRecord`], which goes into the journal. An operation belongs to the second in which it was
//! *due*, so every second obeys its own law: offered = done + failed + unserved. Totals are sums
//! over windows and are not stored. This module does not judge, and never removes what was
//! recorded.

use super::coverage::Coverage;
use super::histogram::{Bins, Histogram};
use super::merge::RankMerge;
use super::suspension::Suspension;
use super::verified::Verified;
use crate::serde_defaults::is_zero;
use crate::{
    Cause, Coordinates, Kind, Load, Nanos, Outcome, Pattern, Point, Sample, SqlWork, StalledIo,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::iter::Sum;
use std::sync::{Arc, Mutex, MutexGuard};

/// Default width of a window.
pub const WINDOW: Nanos = Nanos::from_secs(1);

/// Latencies of one kind: the histogram, and exact moments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Counts per bucket of nanoseconds.
    pub histogram: Histogram,
    /// Sum, in nanoseconds.
    pub sum: u64,
    /// Sum of the squares, in square nanoseconds.
    pub sum_squares: f64,
    /// Minimum, in nanoseconds; `u64::MAX` if nothing was recorded.
    pub min: u64,
    /// Maximum, in nanoseconds.
    pub max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            histogram: Histogram::default(),
            sum: 0,
            sum_squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Latencies {
    /// Adds all of `other`. Sums of what others wrote or sent may be of any size: they saturate.
    pub fn merge(&mut self, other: &Latencies) {
        self.histogram.merge(&other.histogram);
        self.merge_sums(other);
    }

    /// The same of all but the histogram.
    fn merge_sums(&mut self, other: &Latencies) {
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_squares += other.sum_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The sum of all of them.
    fn sum(all: &[&Latencies]) -> Self {
        let mut sum = Self::default();
        all.iter().for_each(|one| sum.merge_sums(one));
        sum.histogram = all.iter().map(|one| &one.histogram).collect();
        sum
    }

    /// Those of all parts together; `None` if none has any.
    pub fn of_parts<'a>(parts: impl Iterator<Item = Option<&'a Latencies>>) -> Option<Self> {
        let all: Vec<&Latencies> = parts.flatten().collect();
        (!all.is_empty()).then(|| Self::sum(&all))
    }

    /// Adds one value: outside of the main loop, which counts in dense bins.
    pub fn record(&mut self, value: Nanos) {
        self.histogram.record(value.0);
        self.sum = self.sum.saturating_add(value.0);
        self.sum_squares += (value.0 as f64) * (value.0 as f64);
        self.min = self.min.min(value.0);
        self.max = self.max.max(value.0);
    }
}

/// Results of the operations of one kind that were due in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Operations that succeeded.
    pub done: u64,
    /// Operations that failed, by cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, u64>,
    /// Latency from due to end, of successful operations.
    pub response: Latencies,
    /// Latency from start to end. `None` in a closed loop, where an operation is due and starts
    /// when the previous one ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Latencies>,
}

impl Window {
    /// Number of failed operations, over all causes.
    pub fn failures(&self) -> u64 {
        self.failed
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Latency from start to end.
    pub fn service(&self) -> &Latencies {
        self.service.as_ref().unwrap_or(&self.response)
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Window) {
        self.merge_counts(other);
        self.response.merge(&other.response);
        if let Some(theirs) = &other.service {
            self.service.get_or_insert_default().merge(theirs);
        }
    }

    /// The same of all but the latencies.
    fn merge_counts(&mut self, other: &Window) {
        self.done = self.done.saturating_add(other.done);
        for (cause, count) in &other.failed {
            let sum = self.failed.entry(cause.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

/// All of them together.
impl<'a> Sum<&'a Window> for Window {
    fn sum<I: Iterator<Item = &'a Window>>(windows: I) -> Self {
        let (mut sum, mut responses, mut services) = (Window::default(), vec![], vec![]);
        for window in windows {
            sum.merge_counts(window);
            responses.push(&window.response);
            services.extend(&window.service);
        }
        sum.response = Latencies::sum(&responses);
        sum.service = (!services.is_empty()).then(|| Latencies::sum(&services));
        sum
    }
}

/// One kind of operation of one class: one window per second of the measurement, from its
/// beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindRecord {
    /// The kind.
    pub kind: Kind,
    /// One window per second. Seconds without due operations are included, empty.
    pub windows: Vec<Window>,
}

impl KindRecord {
    /// Total over all windows.
    pub fn total(&self) -> Window {
        self.windows.iter().sum()
    }

    /// Number of completed operations in all windows.
    pub fn done(&self) -> u64 {
        let windows = self.windows.iter().map(|window| window.done);
        windows.fold(0, u64::saturating_add)
    }
}

/// One class of operations in a point: all streams of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// The class, such as `small` or `large`.
    pub name: String,
    /// Bytes of one operation.
    pub length: u32,
    /// The load of each of its streams.
    pub loads: Vec<Load>,
    /// The pattern of each of its streams.
    pub patterns: Vec<Pattern>,
    /// Work of the database sessions; `None` for raw I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlWork>,
    /// One record for each kind that can occur in the mix.
    pub kinds: Vec<KindRecord>,
    /// Operations per second that were due and never started. Empty in a closed loop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<u64>,
    /// Operations that were due before the measurement ended, and waited for a free slot until
    /// after it. Zero in a closed loop.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drained: u64,
    /// How long operations were outstanding of which only a part lies in the measurement: those that
    /// were due before it began and ended in it, and those that never ended, whose response times are at
    /// least this long. They are in no window. `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Latencies>,
    /// Delay of each operation from the moment it was due and had a free slot until it was issued.
    /// This is the delay added by the tool itself and by the CPU scheduler. `None` in a closed
    /// loop, where an operation is due when the previous one ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Latencies>,
    /// Operations completed before measuring began.
    pub warm_up_done: u64,
    /// Blocks touched, warm-up included.
    pub coverage: Coverage,
}

impl StreamRecord {
    /// Total over all kinds of operations and all windows.
    pub fn total(&self) -> Window {
        self.kinds.iter().flat_map(|kind| &kind.windows).sum()
    }

    /// The longest time in nanoseconds that an operation was outstanding, also one of which only a
    /// part lies in the measurement.
    pub fn longest(&self) -> u64 {
        let censored = self.censored.as_ref().map_or(0, |censored| censored.max);
        self.total().response.max.max(censored)
    }

    /// Number of completed operations of all kinds, in all windows.
    pub fn done(&self) -> u64 {
        let kinds = self.kinds.iter().map(KindRecord::done);
        kinds.fold(0, u64::saturating_add)
    }

    /// True if operations of a load of it were due at times of their own.
    pub fn is_open(&self) -> bool {
        self.loads.iter().any(|load| load.is_open())
    }

    /// The most operations that all its loads had outstanding at once.
    pub fn slots(&self) -> u64 {
        self.loads.iter().map(|load| u64::from(load.slots())).sum()
    }

    /// Operations per second that were due, of all its loads; `None` of a closed loop.
    pub fn offered_per_s(&self) -> Option<f64> {
        let rates = self.loads.iter().map(|load| match load {
            Load::Open { rate, .. } => Some(*rate),
            Load::Closed { .. } => None,
        });
        rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)
    }

    /// The completed operations that count for the throughput of one measurement: those that started before
    /// it ended, and those of an open loop that were in no slot yet when it began. As many as there are slots
    /// ended in it and began before, or began in it and ended after.
    fn in_time(&self) -> u64 {
        let before = self.censored.as_ref().filter(|_| self.is_open());
        let before = before.map_or(0, |before| before.histogram.count());
        let queued = before.saturating_sub(self.slots());
        (self.done() + queued).saturating_sub(self.drained)
    }

    /// The same with the operations of one kind alone.
    #[must_use]
    pub fn only(&self, kind: Kind) -> Self {
        let mut only = self.clone();
        only.kinds.retain(|record| record.kind == kind);
        only
    }

    /// Window number `at`, from 0, of every kind of operation.
    pub fn windows_at(&self, at: usize) -> impl Iterator<Item = &Window> {
        self.kinds
            .iter()
            .filter_map(move |kind| kind.windows.get(at))
    }

    /// Completed operations of window number `at`, from 0, of every kind.
    pub fn done_at(&self, at: usize) -> u64 {
        self.windows_at(at).map(|window| window.done).sum()
    }

    /// Total of one kind of operation over all windows.
    pub fn total_of(&self, kind: Kind) -> Option<Window> {
        self.kinds
            .iter()
            .find(|record| record.kind == kind)
            .map(KindRecord::total)
    }
}

/// The full record of one data point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointRecord {
    /// Its coordinates in the plan.
    pub coordinates: Coordinates,
    /// Wall-clock time of its beginning.
    pub started: String,
    /// When its measured time began, on the monotonic clock of the engine, which begins anew when a run is
    /// resumed; 0 if unknown.
    #[serde(default, skip_serializing_if = "Nanos::is_zero")]
    pub began: Nanos,
    /// Duration of the warm-up.
    pub warm_up: Nanos,
    /// Duration of the measurement.
    pub measured: Nanos,
    /// How it ended.
    pub end: End,
    /// CPU time of this process while measuring, user and system.
    pub cpu: Nanos,
    /// Number of CPUs that its workers could keep busy: one per worker, up to the number of CPUs;
    /// 0 if unknown.
    #[serde(default)]
    pub cpus: u32,
    /// Width of the windows.
    #[serde(default = "Point::second")]
    pub window: Nanos,
    /// The requested point, to repeat it; `None` in journals that have it only in the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Point>>,
    /// By class.
    pub streams: Vec<StreamRecord>,
    /// Counters of the host, before, during and after the point.
    pub samples: Vec<Sample>,
    /// How the records of several ranks became this one; `None` for what one process measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<RankMerge>,
    /// What looking at its blocks found; `None` if nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// How long the syncs of logs took that were calls of their own, those of the warm-up included; `None` if there
    /// were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syncs: Option<Latencies>,
    /// The visits that were joined to this record; empty in the record of one visit, and in the
    /// journal.
    #[serde(skip)]
    pub visits: Vec<PointRecord>,
    /// The times of ten seconds and longer in which nothing completed, of all its visits; empty in the
    /// record of one visit, and in the journal, which has lines of their own for them.
    #[serde(skip)]
    pub silences: Vec<StalledIo>,
    /// The times in which this program itself did not run, as far as they touch the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended: Vec<Suspension>,
    /// What was left out of the measured time for them; zero in the journal.
    #[serde(skip)]
    pub left_out: Nanos,
}

/// How a point ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// As planned.
    Complete,
    /// Stopped early. The figures are valid, but there are fewer of them.
    Stopped,
    /// A session broke.
    Broken(String),
}

impl PointRecord {
    /// The visits that were joined to this record; itself, if none were.
    pub fn pieces(&self) -> &[Self] {
        match &self.visits[..] {
            [] => std::slice::from_ref(self),
            visits => visits,
        }
    }

    /// Operations of one of its classes that were completed per second of measured time.
    pub fn rate_of(&self, class: &StreamRecord) -> f64 {
        let in_time: u64 = match &self.visits[..] {
            [] => class.in_time(),
            visits => {
                let of_visits = visits.iter().filter_map(|visit| visit.stream(&class.name));
                of_visits.map(StreamRecord::in_time).sum()
            }
        };
        let seconds = self.measured.as_secs_f64();
        if seconds > 0.0 {
            in_time as f64 / seconds
        } else {
            0.0
        }
    }

    /// The record of the class `name`.
    pub fn stream(&self, name: &str) -> Option<&StreamRecord> {
        self.streams.iter().find(|stream| stream.name == name)
    }
}

/// Times of one operation, on the point's clock.
#[derive(Debug, Clone, Copy)]
pub struct OperationTimes {
    /// When it should have started.
    pub due: Nanos,
    /// When it was submitted to the session.
    pub start: Nanos,
    /// When its completion was seen.
    pub done: Nanos,
}

/// The completed seconds of one class, shared by the recorders of all its workers. Separate seconds
/// for hundreds of workers would fill the memory within an hour.
#[derive(Debug)]
pub struct SharedWindows {
    width: Nanos,
    /// By [`Kind::index`].
    kinds: [Mutex<Vec<Window>>; Kind::ALL.len()],
}

impl Default for SharedWindows {
    fn default() -> Self {
        Self::new(WINDOW)
    }
}

impl SharedWindows {
    /// Creates an empty list of windows of `width`.
    pub fn new(width: Nanos) -> Self {
        Self {
            width,
            kinds: Default::default(),
        }
    }

    /// The windows stored so far, all kinds of operations together, for a look at a running
    /// measurement. The latest windows may lack operations that a worker still holds.
    pub fn snapshot(&self) -> Vec<Window> {
        self.since(0)
    }

    /// Like [`SharedWindows::snapshot`], from window number `first` on. Suits repeated calls: it
    /// copies only the requested windows.
    pub fn since(&self, first: usize) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        for kind in &self.kinds {
            let over = lock(kind);
            let late = over.get(first..).unwrap_or_default();
            windows.resize_with(windows.len().max(late.len()), Window::default);
            windows
                .iter_mut()
                .zip(late)
                .for_each(|(window, theirs)| window.merge(theirs));
        }
        windows
    }

    /// Sets window number `at`, all kinds of operations together: for sums of what others recorded.
    /// Windows before it that were never set are empty.
    pub fn put(&self, at: usize, window: Window) {
        let mut windows = lock(&self.kinds[0]);
        if windows.len() <= at {
            windows.resize_with(at + 1, Window::default);
        }
        windows[at] = window;
    }
}

/// One worker's counts for one stream, written in the main loop. Allocates only once a second.
#[derive(Debug)]
pub struct Recorder {
    seconds: Arc<SharedWindows>,
    /// Beginning of the measurement; operations due earlier are warm-up. `Nanos::MAX` until it is
    /// known.
    measure_from: Nanos,
    /// Indexed by [`Kind::index`]; `None` for kinds that cannot occur.
    kinds: [Option<KindRecorder>; Kind::ALL.len()],
    warm_up_done: u64,
    drained: u64,
    /// See [`StreamRecord::censored`].
    censored: Latencies,
    /// Only in an open loop.
    delay: Option<DenseLatencies>,
}

/// The dense window that is being written.
#[derive(Debug)]
struct KindRecorder {
    /// Width of a window.
    width: Nanos,
    /// Start and end of the dense window.
    second: std::ops::Range<Nanos>,
    done: u64,
    failed: BTreeMap<Cause, u64>,
    response: DenseLatencies,
    /// Separate from response times only in an open loop.
    service: Option<DenseLatencies>,
}

#[derive(Debug)]
struct DenseLatencies {
    bins: Bins,
    sum: u64,
    sum_squares: f64,
    min: u64,
    max: u64,
}

impl Default for DenseLatencies {
    fn default() -> Self {
        Self {
            bins: Bins::default(),
            sum: 0,
            sum_squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl DenseLatencies {
    #[inline]
    fn record(&mut self, value: Nanos) {
        self.bins.record(value.0);
        self.sum += value.0;
        self.sum_squares += (value.0 as f64) * (value.0 as f64);
        self.min = self.min.min(value.0);
        self.max = self.max.max(value.0);
    }

    fn take(&mut self) -> Latencies {
        let latencies = Latencies {
            histogram: self.bins.take(),
            sum: self.sum,
            sum_squares: self.sum_squares,
            min: self.min,
            max: self.max,
        };
        (self.sum, self.sum_squares, self.min, self.max) = (0, 0.0, u64::MAX, 0);
        latencies
    }
}

impl KindRecorder {
    fn new(open: bool, width: Nanos) -> Self {
        Self {
            width,
            second: Nanos::MAX..Nanos::MAX,
            done: 0,
            failed: BTreeMap::new(),
            response: DenseLatencies::default(),
            service: open.then(DenseLatencies::default),
        }
    }

    /// Moves the dense window forward to the second that contains `due`.
    #[cold]
    fn advance(&mut self, past: &Mutex<Vec<Window>>, from: Nanos, due: Nanos) {
        self.flush(past, from);
        let start = Nanos(from.0 + due.since(from).0 / self.width.0 * self.width.0);
        self.second = start..start.plus(self.width);
    }

    /// Merges the dense window into the sparse windows.
    fn flush(&mut self, past: &Mutex<Vec<Window>>, from: Nanos) {
        if self.second.start == Nanos::MAX {
            return;
        }
        let window = Window {
            done: std::mem::take(&mut self.done),
            failed: std::mem::take(&mut self.failed)
                .into_iter()
                .map(|(cause, count)| (cause.name(), count))
                .collect(),
            response: self.response.take(),
            service: self.service.as_mut().map(DenseLatencies::take),
        };
        window_at(&mut lock(past), from, self.second.start, self.width).merge(&window);
    }

    /// Records an operation that was due in an earlier second and ended late.
    #[cold]
    fn record_late(
        &self,
        past: &Mutex<Vec<Window>>,
        from: Nanos,
        times: OperationTimes,
        outcome: Outcome,
    ) {
        let mut past = lock(past);
        let window = window_at(&mut past, from, times.due, self.width);
        match outcome {
            Outcome::Done => {
                window.done += 1;
                window.response.record(times.done.since(times.due));
                if self.service.is_some() {
                    window
                        .service
                        .get_or_insert_default()
                        .record(times.done.since(times.start));
                }
            }
            Outcome::Failed(cause) => *window.failed.entry(cause.name()).or_default() += 1,
        }
    }
}

fn lock(past: &Mutex<Vec<Window>>) -> MutexGuard<'_, Vec<Window>> {
    past.lock()
        .expect("nothing panics while it holds the seconds")
}

/// The window that contains `due`; created if necessary.
fn window_at(windows: &mut Vec<Window>, from: Nanos, due: Nanos, width: Nanos) -> &mut Window {
    let index = usize::try_from(due.since(from).0 / width.0).expect("seconds of a measurement fit");
    if windows.len() <= index {
        windows.resize_with(index + 1, Window::default);
    }
    &mut windows[index]
}

impl Recorder {
    /// Creates a recorder for a stream with operations of `kinds`; `open` if they can be due before
    /// they start. Completed seconds go to `seconds`.
    pub fn new(open: bool, kinds: &[Kind], seconds: Arc<SharedWindows>) -> Self {
        let width = seconds.width;
        let kinds = Kind::ALL.map(|kind| {
            kinds
                .contains(&kind)
                .then(|| KindRecorder::new(open, width))
        });
        let delay = open.then(DenseLatencies::default);
        Self {
            seconds,
            measure_from: Nanos::MAX,
            kinds,
            warm_up_done: 0,
            drained: 0,
            censored: Latencies::default(),
            delay,
        }
    }

    /// Sets the beginning of the measurement to `from`.
    pub fn measure_from(&mut self, from: Nanos) {
        self.measure_from = from;
    }

    /// Records that an operation of an open loop, due at `due`, was issued `delay` after it could
    /// have been.
    #[inline]
    pub fn issued(&mut self, due: Nanos, delay: Nanos) {
        if due >= self.measure_from
            && let Some(latencies) = &mut self.delay
        {
            latencies.record(delay);
        }
    }

    /// Counts an operation that was issued only after the measurement ended.
    pub fn count_drained(&mut self) {
        self.drained += 1;
    }

    /// Records an operation of the warm-up.
    pub fn record_warm_up(&mut self, outcome: Outcome) {
        self.warm_up_done += u64::from(outcome == Outcome::Done);
    }

    /// Records how long an operation was outstanding, if it was within the measurement: it was due
    /// at `due`, and at `until` it ended or was not waited for. What of it lies in the warm-up counts:
    /// a stall is as long as it is, wherever a measurement begins.
    pub fn record_censored(&mut self, due: Nanos, until: Nanos) {
        if until > self.measure_from {
            self.censored.record(until.since(due));
        }
    }

    /// Records a completed operation of `kind`.
    #[inline]
    pub fn record(&mut self, kind: Kind, times: OperationTimes, outcome: Outcome) {
        if times.due < self.measure_from {
            self.record_warm_up(outcome);
            self.record_censored(times.due, times.done);
            return;
        }
        let past = &self.seconds.kinds[kind.index()];
        let Some(tally) = &mut self.kinds[kind.index()] else {
            return;
        };
        if !tally.second.contains(&times.due) {
            if tally.second.start != Nanos::MAX && times.due < tally.second.start {
                tally.record_late(past, self.measure_from, times, outcome);
                return;
            }
            tally.advance(past, self.measure_from, times.due);
        }
        match outcome {
            Outcome::Done => {
                tally.done += 1;
                tally.response.record(times.done.since(times.due));
                if let Some(service) = &mut tally.service {
                    service.record(times.done.since(times.start));
                }
            }
            Outcome::Failed(cause) => *tally.failed.entry(cause).or_default() += 1,
        }
    }

    /// Adds this worker's counts, and the completed seconds of its class, to the record of the
    /// class.
    pub fn merge_into(self, record: &mut StreamRecord) {
        record.warm_up_done += self.warm_up_done;
        record.drained += self.drained;
        if self.censored.max > 0 {
            record
                .censored
                .get_or_insert_default()
                .merge(&self.censored);
        }
        if let Some(mut delay) = self.delay {
            record.delay.get_or_insert_default().merge(&delay.take());
        }
        for ((kind, tally), past) in Kind::ALL
            .into_iter()
            .zip(self.kinds)
            .zip(&self.seconds.kinds)
        {
            let Some(mut tally) = tally else { continue };
            tally.flush(past, self.measure_from);
            let over = std::mem::take(&mut *lock(past));
            if let Some(into) = record.kinds.iter_mut().find(|record| record.kind == kind) {
                into.windows
                    .resize_with(into.windows.len().max(over.len()), Window::default);
                for (window, ours) in into.windows.iter_mut().zip(&over) {
                    window.merge(ours);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(kinds: &[Kind]) -> StreamRecord {
        StreamRecord {
            sql: None,
            name: "small".into(),
            length: 8192,
            loads: vec![Load::Closed { depth: 1 }],
            patterns: vec![Pattern::Uniform],
            kinds: kinds
                .iter()
                .map(|kind| KindRecord {
                    kind: *kind,
                    windows: Vec::new(),
                })
                .collect(),
            unserved: Vec::new(),
            drained: 0,
            censored: None,
            delay: None,
            warm_up_done: 0,
            coverage: Coverage::default(),
        }
    }

    fn times(due_ms: u64, start_ms: u64, done_ms: u64) -> OperationTimes {
        let [due, start, done] = [due_ms, start_ms, done_ms].map(Nanos::from_millis);
        OperationTimes { due, start, done }
    }

    #[test]
    fn an_operation_belongs_to_the_second_in_which_it_was_due() {
        let mut recorder = Recorder::new(true, &[Kind::Read], Arc::default());
        recorder.measure_from(Nanos::from_secs(1));
        recorder.record(Kind::Read, times(999, 999, 1500), Outcome::Done);
        recorder.record(Kind::Read, times(3100, 3100, 3200), Outcome::Done);
        recorder.record(Kind::Read, times(1500, 3000, 3300), Outcome::Done);
        recorder.record(
            Kind::Read,
            times(1600, 3000, 3300),
            Outcome::Failed(Cause::Short),
        );
        let mut record = stream(&[Kind::Read]);
        recorder.merge_into(&mut record);
        let windows = &record.kinds[0].windows;
        assert_eq!(
            windows
                .iter()
                .map(|w| (w.done, w.failures()))
                .collect::<Vec<_>>(),
            [(1, 1), (0, 0), (1, 0)]
        );
        assert_eq!(windows[0].response.max, Nanos::from_millis(1800).0);
        assert_eq!(windows[0].service().max, Nanos::from_millis(300).0);
        assert_eq!(record.warm_up_done, 1);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_late_and_however_the_work_is_split(
            ops in prop::collection::vec((0u64..10_000, 0u64..3_000, 0usize..3, any::<bool>(), 0usize..3), 0..200)
        ) {
            let mut alone = Recorder::new(false, &Kind::ALL, Arc::default());
            let seconds = Arc::<SharedWindows>::default();
            let mut split: [Recorder; 3] = std::array::from_fn(|_| Recorder::new(false, &Kind::ALL, seconds.clone()));
            alone.measure_from(Nanos(0));
            split.iter_mut().for_each(|r| r.measure_from(Nanos(0)));
            for (due, took, kind, fails, worker) in &ops {
                let kind = Kind::ALL[*kind];
                let outcome = if *fails { Outcome::Failed(Cause::Errno(5)) } else { Outcome::Done };
                let times = times(*due, *due, due + took);
                alone.record(kind, times, outcome);
                split[*worker].record(kind, times, outcome);
            }
            let (mut one, mut many) = (stream(&Kind::ALL), stream(&Kind::ALL));
            alone.merge_into(&mut one);
            split.into_iter().for_each(|r| r.merge_into(&mut many));
            let total = one.total();
            prop_assert_eq!(total.done + total.failures(), ops.len() as u64);
            prop_assert_eq!(total.response.histogram.count(), total.done);
            for (a, b) in one.kinds.iter().zip(&many.kinds) {
                let asked = ops.iter().filter(|op| Kind::ALL[op.2] == a.kind).count() as u64;
                prop_assert_eq!(a.total().done + a.total().failures(), asked);
                let (a, b) = (a.total(), b.total());
                prop_assert_eq!(
                    (a.done, &a.failed, a.response.sum, a.response.min, a.response.max),
                    (b.done, &b.failed, b.response.sum, b.response.min, b.response.max)
                );
                prop_assert_eq!(a.response.histogram, b.response.histogram);
            }
        }
    }
}
