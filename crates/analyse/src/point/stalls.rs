//! Stalls: times in which nothing completed though I/O was outstanding.
//!
//! A stall delays all outstanding operations of a closed loop, and by more than the storage's own
//! operation delays single ones. An open loop goes on offering operations, and those that are due at
//! the beginning of a stall wait for all of it: response time jumps within a window, faster than any
//! queue grows.

use super::events::{Events, EventsSeen};
use super::lost::upper_median;
use crate::figures::confidence::whole_windows;
use crate::figures::quantity::{counted, rounded_percent, time};
use rigel_model::record::{Latencies, PointRecord, StreamRecord, Window};
use rigel_model::{Point, StalledIo};
use std::ops::Range;

/// Minimum duration of a stall in seconds: shorter ones belong to the tail of response times.
const STALL_MIN_S: f64 = 0.02;

impl Events {
    /// Finds the stalls of a closed loop of `slots` outstanding operations, whose median response
    /// time is `median_s` seconds, in pieces of consecutive windows of `width_s` seconds.
    ///
    /// A stall makes as many operations slow as there are slots. They were due shortly before it, in
    /// one window or in two, or before the piece began. So many must be unlikely at the rate at which
    /// single ones are slow. Pieces in which nothing completed cannot tell a stall from slow storage.
    fn of_closed_loop(
        pieces: &[ClosedPiece],
        width_s: f64,
        (slots, median_s): (u64, f64),
    ) -> Vec<Stalled> {
        const CHANCE_MAX: f64 = 1e-5;
        let slots = slots.max(1) as f64;
        let windows = || pieces.iter().flat_map(|piece| &piece.windows);
        if windows().all(|window| window.done == 0) {
            return Vec::new();
        }
        let usual = Usual {
            slots,
            median_s,
            least_s: slow_from(windows(), slots, median_s),
            width_s,
        };
        let (mut stalls, mut alone) = (Vec::new(), 0.0);
        for piece in pieces {
            alone += piece.groups(&usual, &mut stalls);
        }
        if chance_of(slots, 2.0 * alone / windows().count().max(1) as f64) >= CHANCE_MAX {
            stalls.clear();
        }
        stalls
    }

    /// The stalls of a record's first stream.
    pub fn stalls_of(record: &PointRecord) -> Self {
        let stream = record.streams.first();
        stream.map_or_else(Self::default, |stream| {
            Self::stalls_of_class(stream, record)
        })
    }

    /// The stalls of one of a record's streams.
    fn stalls_of_class(stream: &StreamRecord, record: &PointRecord) -> Self {
        let jumps = if stream.is_open() {
            response_jumps(&whole_windows(stream, record), record.window.as_secs_f64())
        } else {
            Vec::new()
        };
        let median = stream.total().response.histogram.quantile(0.5);
        let median_s = median.map_or(0.0, |band| band.middle() / 1e9);
        Self::stalls_of_stream(stream, record, &jumps, median_s)
    }

    /// The stalls of a stream, whose median response time is `median_s` seconds, and whose response times
    /// jump so. An open loop whose slots are all taken is a closed one. What the journal says of ten
    /// seconds without a completion is one of them, or was in no measurement.
    pub(super) fn stalls_of_stream(
        stream: &StreamRecord,
        record: &PointRecord,
        jumps: &[ResponseJump],
        median_s: f64,
    ) -> Self {
        if record.has_suspensions() {
            return Self::default();
        }
        let width_s = record.window.as_secs_f64();
        let is_served = || stream.unserved.iter().all(|unserved| *unserved == 0);
        let mut stalls = if stream.is_open() && (is_served() || !jumps.is_empty()) {
            jumps
                .iter()
                .map(|jump| Stalled::within(jump.seconds))
                .collect()
        } else {
            let visits = record.pieces().iter();
            let pieces: Vec<ClosedPiece> = visits
                .filter_map(|visit| ClosedPiece::of(&stream.name, visit))
                .collect();
            Self::of_closed_loop(&pieces, width_s, (stream.slots(), median_s))
        };
        add_silences(&mut stalls, &record.silences);
        stalls.iter().collect()
    }
}

/// A stall of a load.
#[derive(Debug, Clone, Copy)]
struct Stalled {
    times: u64,
    /// The length of each in seconds, and what of it lies in the measured time.
    seconds: f64,
    within_s: f64,
}

impl Stalled {
    /// One that lies in the measured time.
    fn within(seconds: f64) -> Self {
        Self {
            times: 1,
            seconds,
            within_s: seconds,
        }
    }
}

impl<'a> FromIterator<&'a Stalled> for Events {
    fn from_iter<T: IntoIterator<Item = &'a Stalled>>(stalls: T) -> Self {
        let mut events = Self::default();
        for stall in stalls {
            events.include(stall.times, stall.seconds);
            events.beyond_s += stall.times as f64 * (stall.seconds - stall.within_s);
        }
        events
    }
}

/// Adds the times of ten seconds and longer in which nothing completed, as they were seen. One that
/// a measurement has, has at least half of it there: only its warm-up is missing.
fn add_silences(stalls: &mut Vec<Stalled>, silences: &[StalledIo]) {
    const SAME: f64 = 0.5;
    let measured = stalls.len();
    let mut is_taken = vec![false; measured];
    for silence in silences {
        let seconds = silence.silent.as_secs_f64();
        let same = (0..measured).find(|at| !is_taken[*at] && stalls[*at].seconds >= SAME * seconds);
        match same {
            Some(at) => {
                is_taken[at] = true;
                stalls[at].seconds = stalls[at].seconds.max(seconds);
            }
            None => stalls.push(Stalled {
                within_s: 0.0,
                ..Stalled::within(seconds)
            }),
        }
    }
}

/// What is usual in a closed loop.
struct Usual {
    slots: f64,
    median_s: f64,
    /// The response time from which an operation is slow.
    least_s: f64,
    width_s: f64,
}

/// What a measurement without a pause shows of a closed loop.
struct ClosedPiece<'a> {
    windows: Vec<Window>,
    /// The operations that were due before it, and those that did not end.
    over_edges: Option<&'a Latencies>,
}

impl<'a> ClosedPiece<'a> {
    fn of(class: &str, visit: &'a PointRecord) -> Option<Self> {
        let stream = visit.stream(class)?;
        Some(Self {
            windows: whole_windows(stream, visit),
            // Of an open loop they waited for slots, too.
            over_edges: stream.censored.as_ref().filter(|_| !stream.is_open()),
        })
    }

    fn is_empty(&self, at: usize) -> bool {
        self.windows[at].done == 0 && self.windows[at].failed.is_empty()
    }

    /// Adds the groups of slow operations as large as the slots, and returns the number of slow ones
    /// that are in none.
    fn groups(&self, usual: &Usual, stalls: &mut Vec<Stalled>) -> f64 {
        let Usual { slots, width_s, .. } = *usual;
        let count = self.windows.len();
        let before = (0..count).take_while(|at| self.is_empty(*at)).count();
        let after = (before..count)
            .rev()
            .take_while(|at| self.is_empty(*at))
            .count();
        let seconds = |windows: usize| windows as f64 * width_s;
        let edge = self
            .over_edges
            .map(|latencies| SlowOperations::of(latencies, usual));
        // A journal without them: nothing was due at first, so a stall began before the measurement.
        if edge.is_none() && seconds(before) >= usual.least_s && before < count {
            stalls.push(Stalled::within(seconds(before)));
        }
        let edge = edge.unwrap_or_default();
        // Window 0 is what lies before the first one.
        let slow = |window: &Window| SlowOperations::of(&window.response, usual);
        let all: Vec<SlowOperations> = [edge]
            .into_iter()
            .chain(self.windows.iter().map(slow))
            .collect();
        let (mut alone, mut index) = (0.0, 0);
        while index < all.len() {
            let one = all[index];
            let two = one.with(all.get(index + 1).copied().unwrap_or_default());
            let (group, next) = match () {
                () if one.count >= slots => (one, index + 1),
                () if one.count > 0.0 && two.count >= slots => (two, index + 2),
                () => {
                    alone += one.count;
                    index += 1;
                    continue;
                }
            };
            let each_s = group.excess_s / group.count;
            // While all operations wait, no other one is due: a stall of two windows and more leaves
            // one empty.
            let mut later = (index + 1..all.len())
                .take_while(|later| ((later - index) as f64 - 1.0) * width_s < each_s)
                .peekable();
            let is_short = each_s < 2.0 * width_s || later.peek().is_none();
            // Before the first window any part of it may lie.
            if index == 0 || is_short || later.any(|at| self.is_empty(at - 1)) {
                let within_s = if index == 0 {
                    seconds(before.max(after))
                } else {
                    seconds(all.len() - index)
                };
                stalls.push(Stalled {
                    times: whole(group.count / slots),
                    within_s: within_s.min(each_s),
                    ..Stalled::within(each_s)
                });
            }
            index = next;
        }
        alone
    }
}

/// How far a long operation of a class reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StallExtent {
    /// All I/O of its class stalled.
    All,
    /// Other operations completed meanwhile.
    Others,
    /// The record cannot tell, as in an open loop, where operations are due all the time.
    Unknown,
}

impl StallExtent {
    /// That of an operation of this class that took so long.
    ///
    /// While it was outstanding, every other slot of a closed loop ended an operation, unless it had one
    /// that took half as long. So with fewer of these than slots others completed.
    pub(crate) fn of(record: &PointRecord, class: &str, took_us: f64) -> Self {
        const HALF: f64 = 0.5;
        let Some(stream) = record.stream(class).filter(|stream| !stream.is_open()) else {
            return Self::Unknown;
        };
        let least_ns = HALF * took_us * 1e3;
        if stream.slots() == 1
            || Events::stalls_of_class(stream, record).longest_seconds * 1e9 >= least_ns
        {
            return Self::All;
        }
        let total = stream.total();
        let long = |latencies: &Latencies| {
            let buckets = latencies.histogram.buckets();
            let long = buckets.filter(|(_, high, _)| *high as f64 >= least_ns);
            long.map(|(.., count)| count).sum::<u64>()
        };
        let long = long(&total.response) + stream.censored.as_ref().map_or(0, long);
        let is_work = |point: &Point| point.until.is_work();
        let pauses = stream.sql.is_some_and(|work| work.think.is_some())
            || record.asked.as_deref().is_some_and(is_work);
        if total.done == 0 && long >= stream.slots() {
            Self::All
        } else if long < stream.slots() && !pauses && total.failed.is_empty() {
            Self::Others
        } else {
            Self::Unknown
        }
    }

    /// The same in words, behind the length of the operation.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::All => ": all I/O stalled",
            Self::Others => ": others completed meanwhile",
            Self::Unknown => "",
        }
    }
}

/// The stalls that several measurements met.
#[derive(Debug, Clone, Copy, Default)]
pub struct StallsSeen {
    seen: EventsSeen,
    /// Measurements, and those of them that met one.
    measurements: u64,
    places: u64,
}

impl StallsSeen {
    /// Adds what a measurement of `seconds` met.
    pub fn add(&mut self, stalls: &Events, seconds: f64) {
        self.seen.include(stalls, seconds);
        self.measurements += 1;
        self.places += u64::from(!stalls.is_none());
    }

    /// How often, how long and for what share of the time all I/O stalled, and at how many places, each
    /// called `place`. `None` if fewer than three stalls were met, or they took less than a hundredth of
    /// the time. Of fewer, those count that took a twentieth: the p99 lies within them, and no operation
    /// took far longer.
    pub fn in_words(&self, place: &str) -> Option<String> {
        const TIMES_MIN: u64 = 3;
        const SHARE_MIN: f64 = 0.01;
        const SHARE_OF_FEW_MIN: f64 = 0.05;
        // A mean that is off by more than a tenth hides the longest.
        const MEAN_OFF_MAX: f64 = 1.1;
        // Of short measurements, many stalls lie across an end: their number is not that of stalls.
        const LONG: f64 = 10.0;
        let Self {
            seen,
            measurements,
            places,
        } = self;
        let EventsSeen {
            events: all,
            seconds,
        } = seen;
        let share = all.seconds / seconds;
        let mean_s = all.seconds / all.times.max(1) as f64;
        let each = |seconds: f64| time(seconds * 1e6 / all.times as f64);
        let is_long = seconds / *measurements as f64 >= LONG * mean_s;
        let place = match places {
            1 => format!("at one {place}"),
            many => format!("at {}", counted(*many, place)),
        };
        let often = match all.times {
            1 => "once".into(),
            times if is_long => format!("{times} times, on average every {}", each(*seconds)),
            times => format!("{times} times"),
        };
        let least = if all.times < TIMES_MIN {
            SHARE_OF_FEW_MIN
        } else {
            SHARE_MIN
        };
        let longest = if all.longest_seconds > MEAN_OFF_MAX * mean_s {
            format!("for up to {}: ", time(all.longest_seconds * 1e6))
        } else {
            String::new()
        };
        (share >= least).then(|| {
            format!(
                "all I/O stalled {longest}{often} for {}, {} of the time ({place})",
                each(all.seconds),
                rounded_percent(share)
            )
        })
    }
}

/// Approximate Poisson probability of at least `number` events where `expected` are expected; meant for
/// comparison with a small probability.
fn chance_of(number: f64, expected: f64) -> f64 {
    let mut chance = 1.0;
    for one in 1..=whole(number) {
        let one = one as f64;
        chance *= expected / one;
        // From here on it only falls. A damaged journal may have any number.
        if !chance.is_normal() || (one > expected && chance < 1e-9) {
            break;
        }
    }
    chance
}

/// The response time in seconds from which an operation of a closed loop is slow: beyond the longest
/// one in three quarters of the windows by 20 ms, and by twice as much as that is beyond the median.
/// A few slots may be slow together by chance: of exponential response times, all of them exceed 20
/// medians divided by their number one time in a million.
fn slow_from<'a>(windows: impl Iterator<Item = &'a Window>, slots: f64, median_s: f64) -> f64 {
    const TIMES_USUAL: f64 = 2.0;
    const TIMES_MEDIAN: f64 = 20.0;
    let busy = windows.filter(|window| window.done > 0);
    let mut longest: Vec<u64> = busy.map(|window| window.response.max).collect();
    longest.sort_unstable();
    // What comes in every fourth window is the storage's own operation.
    let usual = longest.get(longest.len() * 3 / 4);
    let usual = usual.map_or(0.0, |usual| *usual as f64 / 1e9);
    let beyond = usual + STALL_MIN_S.max(TIMES_USUAL * (usual - median_s));
    beyond.max(TIMES_MEDIAN * median_s / slots)
}

/// The slow operations of a closed loop that were due in one window, or in two.
#[derive(Debug, Clone, Copy, Default)]
struct SlowOperations {
    count: f64,
    /// The time by which they exceeded the median, in seconds, over all of them.
    excess_s: f64,
}

impl SlowOperations {
    fn of(latencies: &Latencies, usual: &Usual) -> Self {
        let mut slow = Self::default();
        // Most windows have no slow operation.
        if (latencies.max as f64) < usual.least_s * 1e9 {
            return slow;
        }
        for (low, high, count) in latencies.histogram.buckets() {
            let middle_s = low.midpoint(high) as f64 / 1e9;
            if middle_s >= usual.least_s {
                slow.count += count as f64;
                slow.excess_s += count as f64 * (middle_s - usual.median_s);
            }
        }
        slow
    }

    fn with(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            excess_s: self.excess_s + other.excess_s,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of operations"
)]
fn whole(count: f64) -> u64 {
    count.round() as u64
}

/// A stall of an open loop.
pub(super) struct ResponseJump {
    /// The windows whose operations it delayed.
    pub(super) windows: Range<usize>,
    /// Its length.
    seconds: f64,
}

/// Finds the stalls of an open loop in consecutive windows of `width_s` seconds: a window whose
/// upper quartile of response times exceeds that of the previous one by 20 ms, by twice the
/// usual one, and by more than a queue can grow.
///
/// In a window of n operations a queue in equilibrium grows by chance by a standard deviation
/// of sqrt(2 n) operations (as Poisson arrivals and departures do), each of which takes less
/// than 1/n of the window to serve, or else the rate would not be. Five of these deviations are
/// allowed. Windows of fewer than ten operations cannot tell.
pub(super) fn response_jumps(windows: &[Window], width_s: f64) -> Vec<ResponseJump> {
    const TIMES_USUAL: f64 = 2.0;
    const DEVIATIONS: f64 = 5.0;
    const OPERATIONS_MIN: u64 = 10;
    const RECOVERED: f64 = 0.1;
    let quartiles: Vec<Option<f64>> = windows
        .iter()
        .map(|window| {
            let times = &window.response.histogram;
            let enough = times.count() >= OPERATIONS_MIN;
            let band = times.quantile(0.75).filter(|_| enough);
            band.map(|band| band.middle() / 1e9)
        })
        .collect();
    let all: Vec<f64> = quartiles.iter().copied().flatten().collect();
    let usual = upper_median(&all);
    let longest = |at: usize| windows.get(at).map_or(0, |window| window.response.max) as f64;
    let mut jumps: Vec<ResponseJump> = Vec::new();
    for at in 1..windows.len() {
        let (Some(before), Some(now)) = (quartiles[at - 1], quartiles[at]) else {
            continue;
        };
        let count = windows[at].response.histogram.count() as f64;
        let by_queue = DEVIATIONS * width_s * (2.0 / count).sqrt();
        let least = STALL_MIN_S.max(TIMES_USUAL * usual).max(by_queue);
        // A stall that begins in one window may raise the next one further.
        let is_new = jumps.last().is_none_or(|stall| stall.windows.end < at);
        if now - before >= least && is_new {
            // What was due in the window before may have waited, too, and the queue has to drain.
            let settled = before + RECOVERED * (now - before);
            let is_slow = |place: &usize| quartiles[*place].is_none_or(|one| one > settled);
            let after = (at + 1..windows.len()).take_while(is_slow).count();
            jumps.push(ResponseJump {
                windows: at - 1..at + 1 + after,
                seconds: (longest(at - 1).max(longest(at)) / 1e9 - before).max(0.0),
            });
        }
    }
    jumps
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::workload::rng::Rng;

    /// Counts an operation that was due and done at these seconds, in the window in which it was due.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn record(windows: &mut [Window], due_s: f64, done_s: f64) {
        let window = &mut windows[(due_s * 10.0) as usize];
        let response = ((done_s - due_s) * 1e9).round() as u64;
        window.done += 1;
        window.response.histogram.record(response);
        window.response.max = window.response.max.max(response);
    }

    /// Windows of 100 ms of a closed loop of `slots` operations on four servers with exponential
    /// service times, which stand still for the first `stall_s` of each second.
    fn closed(seed: u64, slots: usize, service_s: f64, stall_s: f64) -> Vec<Window> {
        let mut rng = Rng::new(seed, 0);
        let mut windows = vec![Window::default(); 100];
        let (mut due, mut free) = (vec![0.0f64; slots], [0.0f64; 4]);
        loop {
            let next = (0..slots)
                .min_by(|a, b| due[*a].total_cmp(&due[*b]))
                .unwrap();
            let server = (0..4).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
            let (start, mut end) = (due[next], due[next].max(free[server]));
            if start >= 10.0 {
                return windows;
            }
            if end.fract() < stall_s {
                end = end.floor() + stall_s;
            }
            end += rng.exponential() * service_s;
            // The stall interrupts what it finds.
            if end.fract() < stall_s {
                end += stall_s;
            }
            (free[server], due[next]) = (end, end);
            record(&mut windows, start, end);
        }
    }

    fn of_closed(windows: &[Window], slots: usize) -> Events {
        let mut all = rigel_model::record::Latencies::default();
        windows.iter().for_each(|one| all.merge(&one.response));
        let median_s = all.histogram.quantile(0.5).unwrap().middle() / 1e9;
        let piece = ClosedPiece {
            windows: windows.to_vec(),
            over_edges: None,
        };
        let found = Events::of_closed_loop(&[piece], 0.1, (slots as u64, median_s));
        found.iter().collect()
    }

    #[test]
    fn slow_operations_of_a_steady_closed_loop_are_no_stall() {
        let mut found = 0;
        for slots in [1, 2, 4, 8, 32] {
            for service_s in [4e-3, 8e-3, 1e-3] {
                for seed in 0..10 {
                    let stalls = of_closed(&closed(seed, slots, service_s, 0.0), slots);
                    found += stalls.times;
                }
            }
        }
        // One slow operation at depth 1 is all that is outstanding.
        assert!(found <= 2, "{found} stalls in 25 minutes");
    }

    #[test]
    fn a_closed_loop_shows_stalls_of_all_outstanding_operations() {
        for slots in [1, 4, 8, 32] {
            for (service_s, stall_s) in [(250e-6, 0.03), (250e-6, 0.5), (4e-3, 0.3)] {
                let found = of_closed(&closed(1, slots, service_s, stall_s), slots);
                let what = format!("{slots} {service_s} {stall_s}: {found:?}");
                assert!((8..=11).contains(&found.times), "{what}");
                let each_s = found.seconds / found.times as f64;
                assert!((each_s / stall_s - 1.0).abs() < 0.15, "{what}");
            }
        }
    }

    /// A load of two visits, the first of which had operations over its beginning that took so long.
    fn with_censored(took_s: u64, first_is_empty: bool, slots: u64) -> PointRecord {
        let visit = crate::examples::reads_of_a_millisecond();
        let mut first = visit.clone();
        let mut left = Latencies::default();
        (0..slots).for_each(|_| left.record(rigel_model::Nanos::from_secs(took_s)));
        first.streams[0].censored = Some(left);
        if first_is_empty {
            first.streams[0].kinds[0].windows.fill(Window::default());
        }
        let joined = rigel_model::record::visits::joined(&[first, visit]);
        joined.into_iter().next().unwrap()
    }

    #[test]
    fn a_stall_over_the_beginning_of_a_visit_is_as_long_as_its_operations_were_outstanding() {
        for (is_empty, beyond_s) in [(true, 15.0), (false, 25.0)] {
            let found = Events::stalls_of(&with_censored(25, is_empty, 1));
            assert_eq!(found.times, 1, "{found:?}");
            assert!(
                (found.longest_seconds / 25.0 - 1.0).abs() < 0.01,
                "{found:?}"
            );
            assert!((found.beyond_s / beyond_s - 1.0).abs() < 0.02, "{found:?}");
        }
        // No operation waited.
        assert!(Events::stalls_of(&with_censored(25, false, 0)).is_none());
    }

    #[test]
    fn a_silence_that_was_seen_is_a_stall_once() {
        let silence = |seconds| StalledIo {
            silent: rigel_model::Nanos::from_secs(seconds),
            outstanding: 1,
            oldest: rigel_model::Nanos::from_secs(seconds),
        };
        let of = |silences: &[u64]| {
            let mut record = with_censored(20, true, 1);
            record.silences = silences.iter().map(|seconds| silence(*seconds)).collect();
            let found = Events::stalls_of(&record);
            (found.times, found.longest_seconds.round())
        };
        assert_eq!(of(&[]), (1, 20.0));
        // The same with a part of it in the warm-up; and one that lay in a warm-up whole.
        assert_eq!(of(&[24]), (1, 24.0));
        assert_eq!(of(&[24, 11]), (2, 24.0));
    }

    #[test]
    fn the_longest_stall_is_named_first_if_their_mean_hides_it() {
        let words = |lengths: &[f64]| {
            let stalls: Vec<Stalled> = lengths.iter().map(|s| Stalled::within(*s)).collect();
            let mut seen = StallsSeen::default();
            seen.add(&stalls.iter().collect(), 100.0);
            seen.in_words("point").unwrap()
        };
        assert_eq!(
            words(&[12.0, 0.5, 0.5]),
            "all I/O stalled for up to 12.0 s: 3 times, on average every 33.3 s for 4.33 s, 13 % of the time \
             (at one point)"
        );
        assert_eq!(
            words(&[6.0]),
            "all I/O stalled once for 6.00 s, 6.0 % of the time (at one point)"
        );
    }

    #[test]
    fn others_completed_only_if_fewer_operations_than_slots_took_half_as_long() {
        let of = |long: u64| {
            let mut record = crate::examples::reads_of_a_millisecond();
            let stream = &mut record.streams[0];
            stream.loads = vec![rigel_model::Load::Closed { depth: 4 }];
            let mut window = stream.kinds[0].windows[9].clone();
            (0..long).for_each(|_| window.response.record(rigel_model::Nanos::from_secs(8)));
            stream.kinds[0].windows[2] = window;
            StallExtent::of(&record, &record.streams[0].name.clone(), 8e6)
        };
        assert_eq!([1, 3].map(of), [StallExtent::Others; 2]);
        // Four of them, and yet others were due while they waited: one after the other.
        assert_eq!(of(4), StallExtent::Unknown);
    }

    /// Windows of 100 ms of an open loop with these response times of one server, `rate` operations
    /// a second of `service_s` each on average; it stands still for the first tenth of each
    /// second if `stalls`.
    fn served(seed: u64, rate: f64, service_s: f64, stalls: bool) -> Vec<Window> {
        let mut rng = Rng::new(seed, 0);
        let mut windows = vec![Window::default(); 100];
        let (mut due, mut free) = (0.0, 0.0f64);
        loop {
            due += rng.exponential() / rate;
            if due >= 10.0 {
                return windows;
            }
            let mut end = due.max(free);
            if stalls && end.fract() < 0.1 {
                end = end.floor() + 0.1;
            }
            free = end + rng.exponential() * service_s;
            record(&mut windows, due, free);
        }
    }

    #[test]
    fn an_open_loop_shows_stalls_as_jumps_and_a_queue_does_not_jump() {
        let of_jumps = |windows: &[Window]| -> Events {
            let jumps = response_jumps(windows, 0.1).into_iter();
            let stalls: Vec<Stalled> = jumps.map(|jump| Stalled::within(jump.seconds)).collect();
            stalls.iter().collect()
        };
        let found = of_jumps(&served(1, 3000.0, 1e-4, true));
        assert!((9..=10).contains(&found.times), "{found:?}");
        assert!((found.seconds / found.times as f64 - 0.1).abs() < 0.01);
        for (service, rate) in [(1e-4, 9500.0), (1e-3, 950.0), (5e-3, 190.0), (5e-3, 100.0)] {
            for seed in 0..100 {
                let found = of_jumps(&served(seed, rate, service, false));
                assert!(found.is_none(), "{rate} {seed}: {found:?}");
            }
        }
    }
}
