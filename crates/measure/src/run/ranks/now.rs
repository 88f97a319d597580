//! A running point of several ranks as one: what rank 0 shows while they measure.
//!
//! Input: what every rank says of itself while it measures, by its [`Teller`]. Output: a
//! [`RunningSum`], which has the counts and the windows of all ranks together, in the form in which
//! one process has them.

use super::super::bench::{Event, Listen, RunningRanks, SlowestHost};
use rigel_drive::{Live, LiveClass};
use rigel_model::record::{PointRecord, SharedWindows, StreamRecord, Window};
use rigel_model::{Nanos, Point, Sample};
use rigel_ranks::Ranks;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Interval at which a rank sends its counts. As all ranks begin to measure at one moment, they
/// also send at nearly the same moments: so the counts of all are of one time.
const TELL: Nanos = Nanos::from_secs(1);

/// Number of latest windows that are looked at again each time: a slow operation belongs to the
/// window in which it was due.
const REVISITED: usize = 25;

/// Running counts of one rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunningCounts {
    /// Time since the point began on that rank.
    elapsed: Nanos,
    /// When measuring began, counted from then; `None` during the warm-up.
    measuring_since: Option<Nanos>,
    /// By the name of a class: completed operations, and the sum of their response times in
    /// nanoseconds.
    classes: Vec<(String, u64, u64)>,
}

impl RunningCounts {
    fn of(live: &Live, point: &Point) -> Self {
        let count = |(name, class): (&str, &LiveClass)| {
            let (done, response) = (class.done.load(Relaxed), class.response.load(Relaxed));
            (name.to_string(), done, response)
        };
        Self {
            elapsed: live.elapsed,
            measuring_since: live.measuring_since,
            classes: rigel_drive::classes(point)
                .into_iter()
                .zip(live.classes)
                .map(count)
                .collect(),
        }
    }

    /// Those of a point that is over.
    fn of_record(record: &PointRecord) -> Self {
        let count = |stream: &StreamRecord| {
            let total = stream.total();
            let done = total.done.saturating_add(stream.warm_up_done);
            (stream.name.clone(), done, total.response.sum)
        };
        Self {
            elapsed: record.warm_up.plus(record.measured),
            measuring_since: Some(record.warm_up),
            classes: record.streams.iter().map(count).collect(),
        }
    }

    /// Completed operations of a class, and the sum of their response times.
    fn class(&self, name: &str) -> (u64, u64) {
        let counts = self.classes.iter().find(|class| class.0 == name);
        counts.map_or((0, 0), |(_, done, response)| (*done, *response))
    }
}

/// What one rank says of a point while it measures.
#[derive(Debug, Default)]
pub(super) struct Teller {
    /// Operations in each window that was sent.
    sent: Vec<u64>,
    /// Stage and second in which the last counts were sent.
    counted: Option<(bool, u64)>,
}

impl Teller {
    /// The running counts, once a second.
    pub(super) fn counts(&mut self, live: &Live, point: &Point) -> Option<RunningCounts> {
        let since = live.measuring_since.unwrap_or_default();
        let second = live.elapsed.since(since).0 / TELL.0;
        let now = Some((live.measuring_since.is_some(), second));
        (std::mem::replace(&mut self.counted, now) != now).then(|| RunningCounts::of(live, point))
    }

    /// Windows of the first class by number: those that became complete, without those that a worker
    /// may still hold. If `again`, also earlier ones that have changed since they were sent.
    pub(super) fn windows(
        &mut self,
        live: &Live,
        point: &Point,
        again: bool,
    ) -> BTreeMap<usize, Window> {
        let mut changed = BTreeMap::new();
        let (Some(since), Some(class)) = (live.measuring_since, live.seconds.first()) else {
            return changed;
        };
        let over = live.elapsed.since(since).0 / point.window.0.max(1);
        let over = usize::try_from(over).unwrap_or(0).saturating_sub(1);
        if over <= self.sent.len() && !again {
            return changed;
        }
        let back = if again { REVISITED } else { 0 };
        let first = self.sent.len().saturating_sub(back);
        let mut windows = class.since(first);
        // Windows in which nothing was due exist too.
        windows.resize_with(over.max(self.sent.len()) - first, Window::default);
        for (at, window) in (first..).zip(windows) {
            let count = window.done.saturating_add(window.failures());
            match self.sent.get_mut(at) {
                Some(sent) if *sent == count => continue,
                Some(sent) => *sent = count,
                None => self.sent.push(count),
            }
            changed.insert(at, window);
        }
        changed
    }
}

/// What is known of one rank.
#[derive(Debug, Default)]
struct RankNow {
    /// Complete windows of its first class.
    windows: Vec<Window>,
    /// Its counts at last, and before that.
    counts: Option<RunningCounts>,
    before: Option<RunningCounts>,
    /// Number of times that it sent its counts since the sum was last made.
    fresh: usize,
    is_over: bool,
}

impl RankNow {
    /// Operations per second of a class between the last two counts.
    fn rate(&self, name: &str) -> Option<f64> {
        let (now, before) = (self.counts.as_ref()?, self.before.as_ref()?);
        let time = now.elapsed.since(before.elapsed).as_secs_f64();
        let done = now.class(name).0.saturating_sub(before.class(name).0);
        (time > 0.0).then(|| done as f64 / time)
    }
}

/// All ranks that measure a point, while they do.
pub(super) struct RunningSum {
    names: Vec<String>,
    /// The ranks that measure, ascending.
    active: Vec<usize>,
    /// By rank.
    ranks: Vec<RankNow>,
    /// The ranks whose first class is that of the point: only their windows are added up. A stream
    /// that only one rank has may be another rank's first.
    of_first_class: Vec<bool>,
    /// True if all active ranks have the same load, so that their rates can be compared.
    is_alike: bool,
    classes: Arc<[LiveClass]>,
    seconds: Arc<[Arc<SharedWindows>]>,
    /// Number of the first window that must be added up anew.
    stale_from: usize,
}

impl RunningSum {
    /// Before anything is known of `point`, of which every rank measures its part of `parts`.
    pub(super) fn new(point: &Point, active: &[usize], parts: &[Point]) -> Self {
        let names = rigel_drive::classes(point);
        let first = |part: &Point| {
            let first = part.streams.first();
            first.is_some_and(|stream| Some(&stream.name.as_str()) == names.first())
        };
        Self {
            active: active.to_vec(),
            ranks: parts.iter().map(|_| RankNow::default()).collect(),
            of_first_class: parts.iter().map(first).collect(),
            is_alike: point.streams.iter().all(|stream| stream.rank.is_none()),
            classes: names.iter().map(|_| LiveClass::default()).collect(),
            seconds: Arc::new([Arc::new(SharedWindows::new(point.window))]),
            stale_from: 0,
            names: names.into_iter().map(String::from).collect(),
        }
    }

    /// Takes windows of a rank, by number.
    pub(super) fn add_windows(&mut self, rank: usize, changed: BTreeMap<usize, Window>) {
        let windows = &mut self.ranks[rank].windows;
        for (at, window) in changed {
            match at.cmp(&windows.len()) {
                Less => windows[at] = window,
                Equal => windows.push(window),
                // No rank that follows the protocol leaves a window out.
                Greater => return,
            }
            self.stale_from = self.stale_from.min(at);
        }
    }

    /// Takes the running counts of a rank.
    pub(super) fn add_counts(&mut self, rank: usize, counts: RunningCounts) {
        let now = &mut self.ranks[rank];
        now.before = now.counts.replace(counts);
        now.fresh += 1;
    }

    /// Notes that a rank has measured its part.
    pub(super) fn end(&mut self, rank: usize) {
        self.ranks[rank].is_over = true;
    }

    /// Complete windows of each active rank.
    pub(super) fn windows(&self) -> impl Iterator<Item = &[Window]> {
        self.active.iter().map(|rank| &*self.ranks[*rank].windows)
    }

    /// The sum of the first `count` windows of all active ranks.
    pub(super) fn sum(&self, count: usize) -> Vec<Window> {
        self.sum_between(0, count, |_| true)
    }

    fn sum_between(&self, from: usize, to: usize, counts: impl Fn(usize) -> bool) -> Vec<Window> {
        let mut sum = vec![Window::default(); to.saturating_sub(from)];
        for rank in self.active.iter().filter(|rank| counts(**rank)) {
            let windows = self.ranks[*rank].windows.iter().skip(from);
            sum.iter_mut()
                .zip(windows)
                .for_each(|(sum, window)| sum.merge(window));
        }
        sum
    }

    /// True if there is something new to show: of all ranks, or of the first although another one
    /// has been silent for a second.
    fn is_due(&self) -> bool {
        let mut active = self.active.iter().map(|rank| &self.ranks[*rank]);
        let Some(first) = active.next().filter(|first| first.fresh > 0) else {
            return false;
        };
        first.fresh > 1 || active.all(|rank| rank.fresh > 0 || rank.is_over)
    }

    /// The sum, if it is due to be shown.
    pub(super) fn picture_if_due(&mut self, ranks: &Ranks) -> Option<Picture> {
        self.is_due().then(|| self.picture(ranks)).flatten()
    }

    /// The sum of all ranks as their records have it, once all are there.
    pub(super) fn final_picture<'a>(
        &mut self,
        records: impl Iterator<Item = (usize, &'a PointRecord)>,
        ranks: &Ranks,
    ) -> Option<Picture> {
        for (rank, record) in records {
            let count = record.streams.first().map_or(0, |stream| {
                let kinds = stream.kinds.iter().map(|kind| kind.windows.len());
                kinds.max().unwrap_or(0)
            });
            let window = |at: usize| {
                let mut sum = Window::default();
                let stream = record.streams.first();
                let windows = stream.into_iter().flat_map(|stream| stream.windows_at(at));
                windows.for_each(|window| sum.merge(window));
                (at, sum)
            };
            self.add_windows(rank, (0..count).map(window).collect());
            self.ranks[rank].counts = Some(RunningCounts::of_record(record));
            self.ranks[rank].is_over = true;
        }
        self.picture(ranks)
    }

    fn picture(&mut self, ranks: &Ranks) -> Option<Picture> {
        let first = self.ranks[*self.active.first()?].counts.as_ref()?;
        let (elapsed, measuring_since) = (first.elapsed, first.measuring_since);
        for (name, sum) in self.names.iter().zip(self.classes.iter()) {
            let of_ranks = self.active.iter().filter_map(|rank| {
                let counts = self.ranks[*rank].counts.as_ref()?;
                Some(counts.class(name))
            });
            let (done, response) = of_ranks.fold((0_u64, 0_u64), |sum, of_rank| {
                let done = sum.0.saturating_add(of_rank.0);
                (done, sum.1.saturating_add(of_rank.1))
            });
            // Counts of a record are without operations that ended after the measurement.
            sum.done.fetch_max(done, Relaxed);
            sum.response.fetch_max(response, Relaxed);
        }
        let common = self.windows().map(<[Window]>::len).min().unwrap_or(0);
        let from = self.stale_from.min(common);
        let sums = self.sum_between(from, common, |rank| self.of_first_class[rank]);
        for (at, window) in (from..).zip(sums) {
            self.seconds[0].put(at, window);
        }
        self.stale_from = common;
        self.active
            .iter()
            .for_each(|rank| self.ranks[*rank].fresh = 0);
        Some(Picture {
            elapsed,
            measuring_since,
            classes: Arc::clone(&self.classes),
            seconds: Arc::clone(&self.seconds),
            ranks: RunningRanks {
                ranks: self.active.len(),
                hosts: ranks.hosts_of(&self.active),
                slowest: self.slowest(ranks),
            },
        })
    }

    /// The host with the lowest rate of the first class, in the last second.
    fn slowest(&self, ranks: &Ranks) -> Option<SlowestHost> {
        let name = self.names.first().filter(|_| self.is_alike)?;
        let rates = self.active.iter().map(|rank| {
            let rate = self.ranks[*rank].rate(name)?;
            Some((*rank, rate))
        });
        let rates: Vec<(usize, f64)> = rates.collect::<Option<_>>()?;
        let (rank, rate) = rates
            .iter()
            .filter(|_| rates.len() > 1)
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(SlowestHost {
            name: ranks.members().get(*rank)?.host.clone(),
            rate: *rate,
        })
    }
}

/// The sum of all ranks at one moment. It holds no lock: who shows it may wait for a terminal.
pub(super) struct Picture {
    elapsed: Nanos,
    measuring_since: Option<Nanos>,
    classes: Arc<[LiveClass]>,
    seconds: Arc<[Arc<SharedWindows>]>,
    ranks: RunningRanks,
}

impl Picture {
    /// Shows the sum as the state of `point`.
    pub(super) fn show(&self, point: &Point, samples: &[Sample], listen: &mut Listen) {
        let live = Live {
            elapsed: self.elapsed,
            measuring_since: self.measuring_since,
            classes: &self.classes,
            seconds: &self.seconds,
            stalled: None,
        };
        listen(Event::Live {
            point,
            live: &live,
            samples,
            ranks: Some(&self.ranks),
        });
    }
}
