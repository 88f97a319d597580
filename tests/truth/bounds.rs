//! Bounds of a record, derived from the log of the measured device.
//!
//! Nothing here is a tolerance. A read is issued before the device has it, and its completion is
//! seen after the device has answered it, whatever the machine does in between: so it took at least
//! as long as the device took. In a closed loop with one outstanding read, the next read comes only
//! after that, so it took at most until then. If the machine stops, the log has the gap too, and
//! the bounds are wider by the gap.
//!
//! All times are nanoseconds since the point was requested, by the log's clock.

use super::LENGTH;
use super::device::{Device, Served, at_once};
use rigel_analyse::PointSummary;
use rigel_model::Nanos;
use rigel_model::record::histogram::{bucket_of, lower_edge, upper_edge};
use rigel_model::record::{Latencies, PointRecord, Window};
use std::time::Instant;

/// Distance in blocks between the beginnings of two streams. No stream has as many reads.
pub(crate) const APART: u64 = 1024;

/// Maximum relative error of a quantile, which is the middle of a bucket.
const HALF_A_BUCKET: f64 = 1.0 / 256.0;

/// A closed interval that contains a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between {
    least: u64,
    most: u64,
}

/// Bounds of one operation from the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    /// Since measuring began.
    due: Between,
    response: Between,
    /// From start to end; equals the response time in a closed loop.
    service: Between,
    failed: bool,
}

/// The log of a device during one point.
pub(crate) struct Log {
    /// Sorted by stream and number.
    pub(crate) reads: Vec<Served>,
    began: Instant,
    /// When the record was complete.
    ended: u64,
}

impl Log {
    /// Measures a point. Returns its record and the device's log.
    pub(crate) fn of(
        device: &Device,
        measure: impl FnOnce() -> PointRecord,
    ) -> (PointRecord, Self) {
        device.take();
        let began = Instant::now();
        let record = measure();
        let ended = nanos(began, Instant::now());
        let mut reads = device.take();
        reads.sort_by_key(|read| read.offset);
        (
            record,
            Self {
                reads,
                began,
                ended,
            },
        )
    }

    /// A log that others made between two moments.
    pub(crate) fn between(reads: Vec<Served>, began: Instant, ended: Instant) -> Self {
        Self {
            reads,
            began,
            ended: nanos(began, ended),
        }
    }

    fn came(&self, read: &Served) -> u64 {
        nanos(self.began, read.came)
    }

    fn went(&self, read: &Served) -> u64 {
        nanos(self.began, read.went)
    }

    /// The reads of each stream; each stream reads block after block.
    fn streams(&self) -> impl Iterator<Item = &[Served]> {
        let block = |read: &Served| read.offset / u64::from(LENGTH);
        self.reads
            .chunk_by(move |a, b| block(a) / APART == block(b) / APART)
            .inspect(move |reads| {
                let numbers = reads.iter().map(|read| block(read) % APART);
                assert!(
                    numbers.eq(0..reads.len() as u64),
                    "a read was lost or made twice"
                );
            })
    }

    /// The operations of closed-loop streams with one outstanding read each, without the first
    /// `warm_up` reads of each, which do not count.
    pub(crate) fn closed(&self, warm_up: usize) -> Vec<Operation> {
        // Measuring begins before the device has the first counted read, and after the last but one
        // uncounted read: the last one may already have been due.
        let began = Between {
            least: if warm_up < 2 {
                0
            } else {
                self.streams()
                    .map(|reads| self.went(&reads[warm_up - 2]))
                    .max()
                    .unwrap_or(0)
            },
            most: self
                .streams()
                .filter_map(|reads| Some(self.came(reads.get(warm_up)?)))
                .min()
                .unwrap_or(self.ended),
        };
        self.streams()
            .flat_map(|reads| (warm_up..reads.len()).map(move |at| self.chained(reads, at, began)))
            .collect()
    }

    /// The operations of one closed loop, whose `reads` came one after the other, without the first
    /// `warm_up` of them. Due times are since this loop began to measure.
    pub(crate) fn chain(&self, reads: &[Served], warm_up: usize) -> Vec<Operation> {
        let began = Between {
            least: warm_up
                .checked_sub(2)
                .map_or(0, |before| self.went(&reads[before])),
            most: reads
                .get(warm_up)
                .map_or(self.ended, |first| self.came(first)),
        };
        let counted = warm_up..reads.len();
        counted.map(|at| self.chained(reads, at, began)).collect()
    }

    /// One operation of a chain, in which each operation is due when the previous one completes.
    fn chained(&self, reads: &[Served], at: usize, began: Between) -> Operation {
        let read = &reads[at];
        let over = Between {
            least: self.went(read),
            most: reads.get(at + 1).map_or(self.ended, |next| self.came(next)),
        };
        let (due, response) = match at.checked_sub(1) {
            // Due when the point begins.
            None => (
                Between { least: 0, most: 0 },
                Between {
                    least: over.least - began.most,
                    most: over.most - began.least,
                },
            ),
            Some(before) => {
                let due = Between {
                    least: self.went(&reads[before]),
                    most: self.came(read),
                };
                (due.since(began), over.since(due))
            }
        };
        Operation {
            due,
            response,
            service: response,
            failed: read.failed,
        }
    }

    /// The operations of one open-loop stream with one slot, due every `gap`, without a warm-up.
    pub(crate) fn open(&self, gap: Nanos) -> Vec<Operation> {
        let due = |at: usize| (at as u64 + 1) * gap.0;
        let reads = self.streams().next().expect("something was read");
        assert_eq!(reads.len(), self.reads.len(), "one stream");
        let latest = reads
            .iter()
            .enumerate()
            .map(|(at, read)| self.came(read).saturating_sub(due(at)));
        let began = Between {
            least: 0,
            most: latest.min().expect("something was read"),
        };
        let operation = |(at, read): (usize, &Served)| {
            let over = Between {
                least: self.went(read),
                most: reads.get(at + 1).map_or(self.ended, |next| self.came(next)),
            };
            let due = Between {
                least: began.least + due(at),
                most: began.most + due(at),
            };
            let free = at
                .checked_sub(1)
                .map_or(0, |before| self.went(&reads[before]));
            let started = Between {
                least: due.least.max(free),
                most: self.came(read),
            };
            let exact = due.least - began.least;
            Operation {
                due: Between {
                    least: exact,
                    most: exact,
                },
                response: over.since(due),
                service: over.since(started),
                failed: read.failed,
            }
        };
        reads.iter().enumerate().map(operation).collect()
    }

    /// Checks that all time of a closed loop is accounted for: the response times of each slot are
    /// contiguous, from the beginning of the measurement to the end of the last read. For fixed
    /// work without a warm-up.
    #[track_caller]
    pub(crate) fn assert_conserved(&self, record: &PointRecord, depth: u32, what: &str) {
        let first = self
            .reads
            .iter()
            .map(|read| self.came(read))
            .min()
            .expect("something was read");
        let last = self
            .reads
            .iter()
            .map(|read| self.went(read))
            .max()
            .expect("something was read");
        let measured = record.measured.0;
        assert!(
            (last - first..=self.ended).contains(&measured),
            "{what}: measured {measured}, by the log {first}..{last}"
        );
        let total = record.streams[0].total();
        let (sum, places) = (total.response.sum, u64::from(depth));
        assert!(
            sum <= places * measured,
            "{what}: {sum} ns of response times in {measured} ns at {depth}"
        );
        if depth == 1 && total.failures() == 0 {
            assert_eq!(
                sum, measured,
                "{what}: one read after the other fills the time"
            );
        }
        assert!(
            at_once(&self.reads) <= depth as usize,
            "{what}: the device had more reads at once than were asked for"
        );
    }

    /// Checks, for every time, that at least as many operations took longer as in the device's log.
    /// For streams with several outstanding reads, where it is unknown which read made room for
    /// which.
    #[track_caller]
    pub(crate) fn assert_none_shorter(&self, record: &PointRecord, what: &str) {
        let mut took: Vec<u64> = self
            .reads
            .iter()
            .map(|read| self.went(read) - self.came(read))
            .collect();
        took.sort_unstable();
        let response = record.streams[0].total().response;
        assert!(
            response.sum >= took.iter().sum() && response.max >= took[took.len() - 1],
            "{what}: {response:?}"
        );
        let measured = response
            .histogram
            .buckets()
            .flat_map(|(_, high, count)| (0..count).map(move |_| high));
        for (rank, (measured, took)) in measured.zip(&took).enumerate() {
            assert!(
                measured >= *took,
                "{what}: number {rank} of {}: {measured}, the device {took}",
                self.reads.len()
            );
        }
    }
}

impl Between {
    /// Whether a figure may be this value.
    pub(crate) fn allows(self, value: f64) -> bool {
        // A rate times its time is the count again, but for rounding.
        const ROUNDING: f64 = 1e-6;
        (self.least as f64 - ROUNDING..=self.most as f64 + ROUNDING).contains(&value)
    }

    /// A figure that is known.
    pub(crate) fn exactly(value: u64) -> Self {
        Self {
            least: value,
            most: value,
        }
    }

    /// Adds two counts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }

    /// The quotient of two counts.
    pub(crate) fn over(self, other: Self) -> (f64, f64) {
        (
            self.least as f64 / other.most as f64,
            self.most as f64 / other.least as f64,
        )
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            least: self.least.saturating_sub(earlier.most),
            most: self.most.saturating_sub(earlier.least),
        }
    }

    #[track_caller]
    fn assert_holds(self, value: u64, what: &str) {
        assert!(
            (self.least..=self.most).contains(&value),
            "{what}: {value}, and the log allows {self:?}"
        );
    }
}

/// Nanoseconds from one moment to a later one.
pub(crate) fn nanos(since: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(since).as_nanos()).expect("a test is short")
}

/// Number of `operations` that certainly meet a condition, and number that may meet it.
fn count(
    operations: &[Operation],
    certain: impl Fn(&Operation) -> bool,
    possible: impl Fn(&Operation) -> bool,
) -> Between {
    let of = |is: &dyn Fn(&Operation) -> bool| {
        operations.iter().filter(|operation| is(operation)).count() as u64
    };
    Between {
        least: of(&certain),
        most: of(&possible),
    }
}

/// Checks that the record, with one class and one kind of operation, contains these operations with
/// their times, each in the window in which it was due.
#[track_caller]
pub(crate) fn assert_holds(record: &PointRecord, operations: &[Operation], what: &str) {
    let windows = &record.streams[0].kinds[0].windows;
    let width = record.window.0;
    assert!(
        windows.len() as u64 * width >= record.measured.0,
        "{what}: empty windows are there as well"
    );
    for edge in 0..=windows.len() {
        let at = edge as u64 * width;
        let (before, after) = windows.split_at(edge);
        let failed = |windows: &[Window]| windows.iter().map(Window::failures).sum::<u64>();
        let early = count(
            operations,
            |op| op.failed && op.due.most < at,
            |op| op.failed && op.due.least < at,
        );
        early.assert_holds(failed(before), &format!("{what}: failed before {at}"));
        let late = count(
            operations,
            |op| op.failed && op.due.least >= at,
            |op| op.failed && op.due.most >= at,
        );
        late.assert_holds(failed(after), &format!("{what}: failed from {at} on"));
    }
    let done = operations
        .iter()
        .filter(|operation| !operation.failed)
        .count() as u64;
    let total = record.streams[0].total();
    assert_eq!(
        (total.done, total.failures()),
        (done, operations.len() as u64 - done),
        "{what}: done and failed"
    );
    assert_times_hold(
        windows,
        width,
        operations,
        |window| &window.response,
        |op| op.response,
        what,
    );
    assert_times_hold(
        windows,
        width,
        operations,
        Window::service,
        |op| op.service,
        &format!("service, {what}"),
    );
}

/// Checks the number of operations in each window, and the number of those longer than each time,
/// against the log.
#[track_caller]
fn assert_times_hold(
    windows: &[Window],
    width: u64,
    operations: &[Operation],
    of_window: fn(&Window) -> &Latencies,
    of_operation: fn(&Operation) -> Between,
    what: &str,
) {
    let done: Vec<Operation> = operations
        .iter()
        .filter(|operation| !operation.failed)
        .copied()
        .collect();
    let mut total = Latencies::default();
    windows
        .iter()
        .for_each(|window| total.merge(of_window(window)));
    let all = |end: fn(Between) -> u64| {
        done.iter()
            .map(move |operation| end(of_operation(operation)))
    };
    let between = |of: fn(&mut dyn Iterator<Item = u64>) -> u64| Between {
        least: of(&mut all(|between| between.least)),
        most: of(&mut all(|between| between.most)),
    };
    between(|times| times.sum()).assert_holds(total.sum, &format!("{what}: sum"));
    between(|times| times.min().unwrap_or(u64::MAX))
        .assert_holds(total.min, &format!("{what}: least"));
    between(|times| times.max().unwrap_or(0)).assert_holds(total.max, &format!("{what}: greatest"));

    // At bucket limits, the exact number of longer operations is known.
    let ends = all(|between| between.least)
        .chain(all(|between| between.most))
        .map(bucket_of);
    let mut limits: Vec<u64> = ends
        .flat_map(|bucket| [lower_edge(bucket).saturating_sub(1), upper_edge(bucket)])
        .collect();
    limits.sort_unstable();
    limits.dedup();
    for edge in 0..=windows.len() {
        let at = edge as u64 * width;
        let (before, after) = windows.split_at(edge);
        for limit in &limits {
            let longer = |windows: &[Window]| {
                let buckets = windows
                    .iter()
                    .flat_map(|window| of_window(window).histogram.buckets());
                buckets
                    .filter(|(low, ..)| low > limit)
                    .map(|(.., count)| count)
                    .sum::<u64>()
            };
            let certain = |op: &Operation| of_operation(op).least;
            let possible = |op: &Operation| of_operation(op).most;
            let early = count(
                &done,
                |op| op.due.most < at && certain(op) > *limit,
                |op| op.due.least < at && possible(op) > *limit,
            );
            early.assert_holds(
                longer(before),
                &format!("{what}: longer than {limit}, due before {at}"),
            );
            let late = count(
                &done,
                |op| op.due.least >= at && certain(op) > *limit,
                |op| op.due.most >= at && possible(op) > *limit,
            );
            late.assert_holds(
                longer(after),
                &format!("{what}: longer than {limit}, due from {at} on"),
            );
        }
    }
}

/// What ranks did together: the operations of each, and how many of its first windows are not in the
/// sum.
pub(crate) struct Shared {
    pub(crate) ranks: Vec<(usize, Vec<Operation>)>,
    /// Number of windows of the sum, and their width.
    pub(crate) windows: usize,
    pub(crate) width: u64,
}

impl Shared {
    /// The operations that certainly, and those that possibly, were due in the first `windows` of
    /// the sum.
    fn due_in(&self, windows: usize) -> (Vec<Operation>, Vec<Operation>) {
        let (mut certain, mut possible) = (Vec::new(), Vec::new());
        for (skipped, operations) in &self.ranks {
            let from = *skipped as u64 * self.width;
            let to = from + windows as u64 * self.width;
            for operation in operations {
                let Between { least, most } = operation.due;
                if least < to && most >= from {
                    possible.push(*operation);
                }
                if least >= from && most < to {
                    certain.push(*operation);
                }
            }
        }
        (certain, possible)
    }

    /// Number of operations due in all windows of the sum.
    pub(crate) fn count(&self) -> Between {
        let (certain, possible) = self.due_in(self.windows);
        Between {
            least: certain.len() as u64,
            most: possible.len() as u64,
        }
    }

    /// Checks that the sum has the operations of all ranks with their times: up to each of its
    /// windows, the number longer than each time.
    #[track_caller]
    pub(crate) fn assert_holds(&self, sum: &[Window], what: &str) {
        assert_eq!(sum.len(), self.windows, "{what}");
        for edge in 1..=sum.len() {
            let (certain, possible) = self.due_in(edge);
            let ends = possible
                .iter()
                .flat_map(|op| [op.response.least, op.response.most])
                .map(bucket_of);
            let mut limits: Vec<u64> = ends
                .flat_map(|bucket| [lower_edge(bucket).saturating_sub(1), upper_edge(bucket)])
                .collect();
            limits.push(0);
            limits.sort_unstable();
            limits.dedup();
            let mut total = Latencies::default();
            for window in &sum[..edge] {
                total.merge(&window.response);
            }
            let (certain, possible) = (
                sorted(&certain, |op| op.response.least),
                sorted(&possible, |op| op.response.most),
            );
            for limit in limits {
                let above = |times: &[u64]| {
                    (times.len() - times.partition_point(|time| *time <= limit)) as u64
                };
                let longer = Between {
                    least: above(&certain),
                    most: above(&possible),
                };
                let buckets = total.histogram.buckets();
                let counted: u64 = buckets
                    .filter(|(low, ..)| *low > limit)
                    .map(|(.., count)| count)
                    .sum();
                longer.assert_holds(
                    counted,
                    &format!("{what}: longer than {limit} in the first {edge} windows"),
                );
            }
        }
    }

    /// Checks a quantile of all `done` operations of the sum, in microseconds.
    #[track_caller]
    pub(crate) fn assert_quantile(&self, q: f64, done: u64, figure_us: f64, what: &str) {
        let (certain, possible) = self.due_in(self.windows);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        let rank = ((q * done as f64).ceil() as usize).max(1) - 1;
        // The n-th shortest of a set is not shorter than that of a larger set.
        let least = sorted(&possible, |op| op.response.least)[rank] as f64;
        let most = sorted(&certain, |op| op.response.most)
            .get(rank)
            .map_or(f64::INFINITY, |most| *most as f64);
        let allowed = least * (1.0 - HALF_A_BUCKET)..=most * (1.0 + HALF_A_BUCKET);
        assert!(
            allowed.contains(&(figure_us * 1e3)),
            "{what}: quantile {q} is {figure_us} us, and the log allows {allowed:?} ns"
        );
    }
}

fn sorted(operations: &[Operation], end: fn(&Operation) -> u64) -> Vec<u64> {
    let mut times: Vec<u64> = operations.iter().map(end).collect();
    times.sort_unstable();
    times
}

/// Checks that the figures of a closed loop follow from its record and are within the bounds of the
/// log.
#[track_caller]
pub(crate) fn assert_figures_hold(
    summary: &PointSummary,
    record: &PointRecord,
    operations: &[Operation],
    depth: u32,
    what: &str,
) {
    let class = &summary.classes[0];
    let done: Vec<&Operation> = operations
        .iter()
        .filter(|operation| !operation.failed)
        .collect();
    let rate = done.len() as f64 / record.measured.as_secs_f64();
    assert_eq!(class.done, done.len() as u64, "{what}");
    assert!(
        (class.iops / rate - 1.0).abs() < 1e-9,
        "{what}: {} IOPS, and {rate} by the record",
        class.iops
    );
    assert!(
        class.littles_law <= f64::from(depth) * (1.0 + 1e-9),
        "{what}: {} outstanding",
        class.littles_law
    );
    let latency = class.latency.expect("reads were done");
    let sorted = |end: fn(&Operation) -> u64| {
        let mut times: Vec<u64> = done.iter().map(|operation| end(operation)).collect();
        times.sort_unstable();
        times
    };
    let (least, most) = (
        sorted(|op| op.response.least),
        sorted(|op| op.response.most),
    );
    for (q, figure) in [
        (0.5, latency.p50_us),
        (0.9, latency.p90_us),
        (0.99, latency.p99_us),
        (0.999, latency.p999_us),
    ] {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        let rank = ((q * done.len() as f64).ceil() as usize).max(1) - 1;
        let (least, most) = (
            least[rank] as f64 * (1.0 - HALF_A_BUCKET),
            most[rank] as f64 * (1.0 + HALF_A_BUCKET),
        );
        let figure = figure * 1e3;
        assert!(
            (least..=most).contains(&figure),
            "{what}: quantile {q} is {figure}, and the log allows {least} to {most}"
        );
    }
}
