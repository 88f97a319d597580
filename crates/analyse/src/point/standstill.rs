//! Stalls of all I/O within one point: times in which nothing completed though I/O was outstanding.
//!
//! Input: the record of a point. Output: the number of stalls, and the time that the device stood
//! still. Everything comes from the response times of each window, so it works on every journal.
//!
//! An operation is slow if it took at least `STALL_MIN` and several times its class's median. One
//! slow operation is no stall: the device stood still if every slot that could have completed
//! something waited. In a closed loop these are all outstanding operations. In an open loop they
//! are the slots that the arrivals during the stall take.

use rigel_model::record::{Latencies, PointRecord, StreamRecord};
use rigel_model::{Load, Nanos};

/// Minimum duration of a stall: shorter ones belong to the tail of response times.
const STALL_MIN: Nanos = Nanos::from_millis(20);

/// Minimum duration of a slow operation, as a multiple of the median.
const TIMES_MEDIAN: f64 = 3.0;

/// The same for a depth of one, divided by the depth, and for an offered load, of which only a few
/// operations may be outstanding. Of exponential response times, all outstanding ones exceed it
/// together one time in a million.
const TIMES_MEDIAN_ALONE: f64 = 20.0;

/// Fraction of the arrivals during a stall that must have waited, in an open loop: arrivals are
/// random.
const WAITED_MIN: f64 = 0.5;

/// The stalls in one point.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PointStalls {
    /// Number of stalls.
    pub stalls: f64,
    /// Time in which the device stood still, in seconds.
    pub stalled_s: f64,
    /// Sum of the squares of the durations of the stalls, in square seconds.
    pub squares_s2: f64,
    /// Measured time in seconds.
    pub measured_s: f64,
}

impl PointStalls {
    /// The stalls in this point; `None` if nothing completed.
    pub fn of(record: &PointRecord) -> Option<Self> {
        // Beside an offered load, a constant load shows nothing more.
        let open: Vec<&StreamRecord> = record
            .streams
            .iter()
            .filter(|stream| is_open(stream))
            .collect();
        let streams = if open.is_empty() {
            record.streams.iter().collect()
        } else {
            open
        };
        let classes: Vec<SlowClass> = streams
            .iter()
            .filter_map(|stream| SlowClass::of(stream))
            .collect();
        if classes.is_empty() {
            return None;
        }
        let mut found = Self {
            measured_s: record.measured.as_secs_f64(),
            ..Self::default()
        };
        let windows = Windows {
            width_s: record.window.as_secs_f64(),
            slots: classes.iter().map(|class| class.slots).sum(),
            all: windows(&classes),
        };
        if is_open(streams[0]) {
            windows.of_offered_load(found.measured_s, &mut found);
        } else {
            windows.of_constant_load(&mut found);
        }
        Some(found)
    }

    fn add(&mut self, stalls: f64, each_s: f64) {
        self.stalls += stalls;
        self.stalled_s += stalls * each_s;
        self.squares_s2 += stalls * each_s * each_s;
    }
}

fn is_open(stream: &StreamRecord) -> bool {
    let mut loads = stream.loads.iter();
    loads.any(|load| matches!(load, Load::Open { .. }))
}

/// A class with the duration from which its operations count as slow.
struct SlowClass<'a> {
    stream: &'a StreamRecord,
    slots: f64,
    median: f64,
    slow: Nanos,
}

impl<'a> SlowClass<'a> {
    fn of(stream: &'a StreamRecord) -> Option<Self> {
        let total = stream.total();
        // In an open loop, the time from issue: a queue of the load generator is no stall.
        let median = total.service().histogram.quantile(0.5)?.middle();
        let slots = stream.loads.iter().map(|load| load.slots()).sum::<u32>();
        let slots = f64::from(slots.max(1));
        let depth = if is_open(stream) { 1.0 } else { slots };
        let times = TIMES_MEDIAN.max(TIMES_MEDIAN_ALONE / depth);
        Some(Self {
            stream,
            slots,
            median,
            slow: STALL_MIN.max(Nanos::from_secs_f64(times * median / 1e9)),
        })
    }
}

/// The operations that were due in one window, of all classes.
#[derive(Debug, Clone, Copy, Default)]
struct SlowWindow {
    /// All operations.
    count: f64,
    /// The slow ones.
    slow: f64,
    /// The time by which they exceeded the median, in seconds, over all slow ones.
    excess_s: f64,
    /// The longest such time.
    longest_s: f64,
}

impl SlowWindow {
    fn with(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            slow: self.slow + other.slow,
            excess_s: self.excess_s + other.excess_s,
            longest_s: self.longest_s.max(other.longest_s),
        }
    }

    fn of(latencies: &Latencies, failures: u64, class: &SlowClass) -> Self {
        let mut found = Self {
            count: (latencies.histogram.count() + failures) as f64,
            ..Self::default()
        };
        // Most windows have no slow operation.
        if latencies.max < class.slow.0 {
            return found;
        }
        let buckets = latencies.histogram.buckets();
        for (low, high, count) in buckets.filter(|(low, ..)| *low >= class.slow.0) {
            let middle = low.midpoint(high) as f64;
            let excess_s = (middle - class.median) / 1e9;
            found.slow += count as f64;
            found.excess_s += count as f64 * excess_s;
            found.longest_s = found.longest_s.max(excess_s);
        }
        found
    }
}

fn windows(classes: &[SlowClass]) -> Vec<SlowWindow> {
    let kinds = || classes.iter().flat_map(|class| &class.stream.kinds);
    let count = kinds().map(|kind| kind.windows.len()).max().unwrap_or(0);
    let mut found = vec![SlowWindow::default(); count];
    for class in classes {
        for kind in &class.stream.kinds {
            for (sum, window) in found.iter_mut().zip(&kind.windows) {
                let of_window = SlowWindow::of(window.service(), window.failures(), class);
                *sum = sum.with(of_window);
            }
        }
    }
    found
}

struct Windows {
    width_s: f64,
    slots: f64,
    all: Vec<SlowWindow>,
}

impl Windows {
    fn at(&self, at: usize) -> SlowWindow {
        self.all.get(at).copied().unwrap_or_default()
    }

    /// Stalls of a constant load. Each slot has one operation outstanding at any time, so a stall
    /// makes as many operations slow as there are slots. They were due shortly before it, in one
    /// window or in two.
    fn of_constant_load(&self, found: &mut PointStalls) {
        // Nothing was due at first: a stall began before the measurement.
        let empty = self.all.iter().take_while(|one| one.count <= 0.0).count();
        let before_s = empty as f64 * self.width_s;
        if before_s >= STALL_MIN.as_secs_f64() && empty < self.all.len() {
            found.add(1.0, before_s);
        }
        let mut at = empty;
        while at < self.all.len() {
            let (one, two) = (self.at(at), self.at(at).with(self.at(at + 1)));
            let (group, next) = if one.slow >= self.slots {
                (one, at + 1)
            } else if one.slow > 0.0 && two.slow >= self.slots {
                (two, at + 2)
            } else {
                at += 1;
                continue;
            };
            let each_s = group.excess_s / group.slow;
            if self.nothing_is_due_after(at, each_s) {
                found.add((group.slow / self.slots).round(), each_s);
            }
            at = next;
        }
    }

    /// True if a window after `at` is empty. While all operations wait, no other one is due, so a
    /// stall of two windows and more leaves one empty. A shorter one need not.
    fn nothing_is_due_after(&self, at: usize, stalled_s: f64) -> bool {
        let within = (at + 1..).take_while(|later| {
            (later - at) as f64 * self.width_s < stalled_s + self.width_s && *later < self.all.len()
        });
        let mut within = within.peekable();
        stalled_s < 2.0 * self.width_s
            || within.peek().is_none()
            || within.any(|later| self.all[later].count <= 0.0)
    }

    /// Stalls of an offered load. Operations that arrive during a stall take slots and wait.
    fn of_offered_load(&self, measured_s: f64, found: &mut PointStalls) {
        let total: f64 = self.all.iter().map(|one| one.count).sum();
        let rate = total / measured_s.max(f64::MIN_POSITIVE);
        let mut at = 0;
        while at < self.all.len() {
            if self.all[at].slow <= 0.0 {
                at += 1;
                continue;
            }
            let mut group = SlowWindow::default();
            while self.at(at).slow > 0.0 {
                group = group.with(self.at(at));
                at += 1;
            }
            // The last arrivals of a stall wait too little to count as slow.
            let waiting_s = (group.longest_s - STALL_MIN.as_secs_f64()).max(0.0);
            let arrivals = (rate * waiting_s).min(self.slots).max(1.0);
            if group.slow >= WAITED_MIN * arrivals {
                found.add((group.slow / arrivals).round().max(1.0), group.longest_s);
            }
        }
    }
}
