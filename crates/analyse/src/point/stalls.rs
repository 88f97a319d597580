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
use rigel_model::record::{PointRecord, StreamRecord, Window};
use std::ops::Range;

/// Minimum duration of a stall in seconds: shorter ones belong to the tail of response times.
const STALL_MIN_S: f64 = 0.02;

impl Events {
    /// Finds the stalls of a closed loop of `slots` outstanding operations, whose median response
    /// time is `median_s` seconds, in consecutive windows of `width_s` seconds.
    ///
    /// A stall makes as many operations slow as there are slots. They were due shortly before it, in
    /// one window or in two. So many must be unlikely at the rate at which single ones are slow.
    fn of_closed_loop(windows: &[Window], width_s: f64, (slots, median_s): (u64, f64)) -> Self {
        const CHANCE_MAX: f64 = 1e-5;
        let slots = slots.max(1) as f64;
        let least_s = slow_from(windows, slots, median_s);
        let slow = |window: &Window| SlowOperations::of(window, least_s, median_s);
        let all: Vec<SlowOperations> = windows.iter().map(slow).collect();
        let is_empty = |at: usize| windows[at].done == 0 && windows[at].failed.is_empty();
        let mut stalls = Self::default();
        let first = (0..all.len()).take_while(|at| is_empty(*at)).count();
        let before_s = first as f64 * width_s;
        // Nothing was due at first: a stall began before the measurement.
        if before_s >= least_s && first < all.len() {
            stalls.include(1, before_s);
        }
        let (mut groups, mut alone) = (Vec::new(), 0.0);
        let mut index = first;
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
            if is_short || later.any(is_empty) {
                groups.push((whole(group.count / slots), each_s));
            }
            index = next;
        }
        if chance_of(slots, 2.0 * alone / all.len().max(1) as f64) < CHANCE_MAX {
            let groups = groups.into_iter();
            groups.for_each(|(times, each_s)| stalls.include(times, each_s));
        }
        stalls
    }

    /// The stalls of a record's first stream.
    pub fn stalls_of(record: &PointRecord) -> Self {
        let Some(stream) = record.streams.first() else {
            return Self::default();
        };
        let windows = whole_windows(stream, record);
        let width_s = record.window.as_secs_f64();
        let jumps = response_jumps(&windows, width_s);
        let median = stream.total().response.histogram.quantile(0.5);
        let median_s = median.map_or(0.0, |band| band.middle() / 1e9);
        Self::stalls_of_stream(stream, (&windows, width_s), &jumps, median_s)
    }

    /// The stalls of a stream, whose median response time is `median_s` seconds, in consecutive windows of
    /// one width in seconds, where response times jump so. An open loop whose slots are all taken is a
    /// closed one.
    pub(super) fn stalls_of_stream(
        stream: &StreamRecord,
        (windows, width_s): (&[Window], f64),
        jumps: &[ResponseJump],
        median_s: f64,
    ) -> Self {
        let is_served = || stream.unserved.iter().all(|unserved| *unserved == 0);
        if stream.is_open() && (is_served() || !jumps.is_empty()) {
            return Self::of_jumps(jumps);
        }
        Self::of_closed_loop(windows, width_s, (stream.slots(), median_s))
    }

    /// The stalls of an open loop together.
    fn of_jumps(jumps: &[ResponseJump]) -> Self {
        let mut stalls = Self::default();
        jumps
            .iter()
            .for_each(|stall| stalls.include(1, stall.seconds));
        stalls
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
        let each = |seconds: f64| time(seconds * 1e6 / all.times as f64);
        let is_long =
            seconds / *measurements as f64 >= LONG * all.seconds / all.times.max(1) as f64;
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
        (share >= least).then(|| {
            format!(
                "all I/O stalled {often} for {}, {} of the time ({place})",
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
fn slow_from(windows: &[Window], slots: f64, median_s: f64) -> f64 {
    const TIMES_USUAL: f64 = 2.0;
    const TIMES_MEDIAN: f64 = 20.0;
    let busy = windows.iter().filter(|window| window.done > 0);
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
    fn of(window: &Window, least_s: f64, median_s: f64) -> Self {
        let mut slow = Self::default();
        // Most windows have no slow operation.
        if (window.response.max as f64) < least_s * 1e9 {
            return slow;
        }
        for (low, high, count) in window.response.histogram.buckets() {
            let middle_s = low.midpoint(high) as f64 / 1e9;
            if middle_s >= least_s {
                slow.count += count as f64;
                slow.excess_s += count as f64 * (middle_s - median_s);
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
        Events::of_closed_loop(windows, 0.1, (slots as u64, median_s))
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
        let found = Events::of_jumps(&response_jumps(&served(1, 3000.0, 1e-4, true), 0.1));
        assert!((9..=10).contains(&found.times), "{found:?}");
        assert!((found.seconds / found.times as f64 - 0.1).abs() < 0.01);
        for (service, rate) in [(1e-4, 9500.0), (1e-3, 950.0), (5e-3, 190.0), (5e-3, 100.0)] {
            for seed in 0..100 {
                let found =
                    Events::of_jumps(&response_jumps(&served(seed, rate, service, false), 0.1));
                assert!(found.is_none(), "{rate} {seed}: {found:?}");
            }
        }
    }
}
