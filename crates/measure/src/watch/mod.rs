//! The demand of a live host: requests of its disks and counters of its databases, interval by
//! interval, without a load of its own.
//!
//! Input: a [`WatchRequest`]. Output: [`WatchedInterval`]s. Disks are opened by nobody here: their
//! requests come from the kernel's tracepoints, and their counters from /sys. What may not be
//! traced is only counted, and a finding says why.

mod databases;
mod disks;
mod reader;
mod requests;
mod stalls;

pub use disks::disks_below;
pub use requests::{DiskPart, Requests};
pub use stalls::WatchNews;

use crate::asked::PATIENCE;
use databases::DatabaseWatch;
use reader::TraceReader;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::demand::watch_request::WatchedDisk;
use rigel_database::{Access, ServerStatus};
use rigel_device::clock;
use rigel_device::engine::trace::BlockTrace;
use rigel_device::observe::{disk_counters, own_memory};
use rigel_model::record::{DiskInterval, TracedRequests, WatchedInterval};
use rigel_model::{Counters, Finding, FindingName, Moment, Nanos};
use stalls::WatchedStalls;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks at the kernel's events and at the request to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Number of times that counters are read at the edge of an interval. The fastest reading counts: this
/// process was not interrupted in it.
const READINGS_MAX: usize = 3;

/// A database that is to be observed: its URL without a password, and an open connection.
pub type WatchedServer = (String, Access, ServerStatus);

/// Observes the disks and databases of a request.
pub struct Watcher {
    request: WatchRequest,
    trace: Option<TraceReader>,
    /// One for each disk of the request; `None` for one that cannot be traced.
    requests: Vec<Option<Requests>>,
    databases: Vec<DatabaseWatch>,
    stalls: WatchedStalls,
    /// Events that were lost in this interval.
    lost: u64,
    /// When the first interval began, on the monotonic clock.
    origin: Nanos,
    /// The interval that comes next.
    next: u32,
    /// Where it begins.
    begin: Readings,
    /// True after the last one.
    is_over: bool,
}

/// What is read at the edge of an interval.
struct Readings {
    at: Nanos,
    wall: Moment,
    cpu: Nanos,
    disks: Vec<Option<Counters>>,
}

impl Watcher {
    /// Begins to observe. `since` is the time since the first interval of the whole began, and `last`
    /// the number of the last interval that is known: zero, or more for a run that is resumed.
    pub fn begin(
        request: &WatchRequest,
        servers: Vec<WatchedServer>,
        since: Nanos,
        last: u32,
    ) -> (Self, Vec<Finding>) {
        let requests = request.disks.iter().map(|disk| {
            disks::is_traceable(disk).then(|| {
                Requests::new(DiskPart {
                    sectors: disk.sectors,
                    block: request.block,
                })
            })
        });
        let requests: Vec<Option<Requests>> = requests.collect();
        let (traced, counted) = by_way(&request.disks, &requests);
        let mut findings = Vec::new();
        if !counted.is_empty() {
            findings.push(without_queue(&counted));
        }
        let databases: Vec<DatabaseWatch> = servers
            .into_iter()
            .map(|(name, access, status)| DatabaseWatch::begin(name, access, status))
            .collect();
        let numbers: Vec<(u32, u32)> = traced.iter().map(|disk| disk.number).collect();
        let trace = (!numbers.is_empty()).then(|| {
            TraceReader::begin(BlockTrace::open(&numbers)?, LOOK).map_err(|error| error.to_string())
        });
        let trace =
            trace.and_then(|opened| opened.map_err(|why| findings.push(not_traced(&why))).ok());
        let begin = Readings::take(request);
        let watcher = Self {
            requests,
            trace,
            stalls: WatchedStalls::of(request, &databases),
            databases,
            lost: 0,
            origin: Nanos(begin.at.0.saturating_sub(since.0)),
            next: number_at(since, request.every).max(last.saturating_add(1)),
            begin,
            request: request.clone(),
            is_over: false,
        };
        (watcher, findings)
    }

    /// How the requests of disks are observed, in words.
    pub fn about(&self) -> String {
        const COUNTERS: &str = "the kernel's counters of";
        let (_, counted) = by_way(&self.request.disks, &self.requests);
        match &self.trace {
            Some(trace) if counted.is_empty() => trace.about().into(),
            Some(trace) => format!("{}; {COUNTERS} {}", trace.about(), names(&counted)),
            None if self.request.disks.is_empty() => String::new(),
            None => format!("{COUNTERS} its disks"),
        }
    }

    /// True after the last interval. One is still to come if the request to stop came while another was
    /// already being read: it has what happened meanwhile.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Number of the interval that comes next.
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// Observes the next interval: to its end on the timetable, or until `stop` is set. Tells `hear`
    /// meanwhile of disks and databases on which nothing has completed for ten seconds.
    pub fn interval(
        &mut self,
        stop: &AtomicBool,
        hear: &mut dyn FnMut(WatchNews),
    ) -> WatchedInterval {
        let due = self.origin.0 + u64::from(self.next) * self.request.every.0;
        while clock::monotonic().0 < due && !stop.load(Ordering::Relaxed) {
            let left = Duration::from_nanos(due.saturating_sub(clock::monotonic().0));
            std::thread::sleep(left.min(LOOK));
            self.read_trace(BlockTrace::settled(clock::monotonic().0));
            self.stalls.look(&self.requests, &self.databases, hear);
        }
        let is_planned_last = self.request.intervals() == Some(self.next);
        let is_last = is_planned_last || stop.load(Ordering::Relaxed);
        self.is_over = is_last;
        let end = Readings::take(&self.request);
        self.databases.iter_mut().for_each(DatabaseWatch::ask);
        let mut traced = self.end_trace(end.at, is_last);
        self.wait_for_databases();
        let databases = self.databases.iter_mut().map(DatabaseWatch::end).collect();
        let begin = std::mem::replace(&mut self.begin, end);
        let end = &self.begin;
        let disks = self.request.disks.iter().enumerate().map(|(at, disk)| {
            let counters = begin.disks[at].zip(end.disks[at]);
            let traced = traced.get_mut(at).and_then(Option::take);
            DiskInterval {
                name: disk.name.clone(),
                counters: counters.map(|(before, after)| [before, after]),
                traced,
            }
        });
        let interval = WatchedInterval {
            number: self.next,
            started: begin.wall.to_string(),
            measured: end.at.since(begin.at),
            cpu: end.cpu.since(begin.cpu),
            memory: own_memory(),
            disks: disks.collect(),
            databases,
        };
        // Where this process was stopped, an interval is longer, and numbers are missing. The time
        // in which the machine slept does not count: this clock stands still meanwhile.
        let now = number_at(end.at.since(self.origin), self.request.every);
        self.next = now.max(self.next.saturating_add(1));
        interval
    }

    /// Ends: tells of disks and databases that still do not answer.
    pub fn end(&self, hear: &mut dyn FnMut(WatchNews)) {
        self.stalls.end(hear);
    }

    /// Waits until the databases have answered, all together no longer than the patience with one.
    fn wait_for_databases(&mut self) {
        let patience = PATIENCE.0.min(self.request.every.0 / 2);
        let deadline = Nanos(clock::monotonic().0 + patience);
        let databases = self.databases.iter_mut();
        databases.for_each(|database| database.wait(deadline));
    }

    /// Adds the events before `until` to the requests of their disks.
    fn read_trace(&mut self, until: u64) {
        let Some(trace) = &self.trace else {
            return;
        };
        let numbers: Vec<u32> = self
            .request
            .disks
            .iter()
            .map(|disk| disk.number.0 << 20 | disk.number.1)
            .collect();
        let requests = &mut self.requests;
        let lost = trace.read(until, &mut |event| {
            let of = numbers.iter().zip(requests.iter_mut());
            of.filter(|(number, _)| **number == event.disk)
                .filter_map(|(_, requests)| requests.as_mut())
                .for_each(|requests| requests.add(event));
        });
        if lost > 0 {
            self.lost += lost;
            let traced = self.requests.iter_mut().flatten();
            traced.for_each(Requests::abandon);
        }
    }

    /// The requests that ended before `end`, of each disk that is traced; empty if none is.
    fn end_trace(&mut self, end: Nanos, is_last: bool) -> Vec<Option<TracedRequests>> {
        if self.trace.is_none() {
            return Vec::new();
        }
        // Until every CPU has written what it saw before the end.
        while BlockTrace::settled(clock::monotonic().0) < end.0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.read_trace(end.0);
        let lost = std::mem::take(&mut self.lost);
        let each = self.requests.iter_mut().map(|requests| {
            let requests = requests.as_mut()?;
            let traced = if is_last {
                requests.take_last()
            } else {
                requests.take()
            };
            Some(TracedRequests { lost, ..traced })
        });
        each.collect()
    }
}

impl Readings {
    /// Reads everything at the same moment, as far as possible: requests that end between the clock
    /// and a counter are on two sides of the interval's edge.
    fn take(request: &WatchRequest) -> Self {
        let read = || {
            let begun = clock::monotonic();
            let disks = request.disks.iter().map(|disk| disk_counters(&disk.name));
            let disks = disks.collect();
            (clock::monotonic().since(begun), begun, disks)
        };
        let tries = (0..READINGS_MAX).map(|_| read());
        let (_, at, disks) = tries.min_by_key(|(took, ..)| *took).expect("several");
        Self {
            at,
            wall: clock::moment(),
            cpu: clock::process_cpu(),
            disks,
        }
    }
}

/// Number of the interval to which this time since the beginning of the first belongs.
fn number_at(since: Nanos, every: Nanos) -> u32 {
    let whole = since.0 / every.0.max(1);
    u32::try_from(whole).unwrap_or(u32::MAX).saturating_add(1)
}

/// The disks that can be traced, and those of which only counters are known.
fn by_way<'a>(
    disks: &'a [WatchedDisk],
    requests: &[Option<Requests>],
) -> (Vec<&'a WatchedDisk>, Vec<&'a WatchedDisk>) {
    let both = disks.iter().zip(requests);
    let (traced, counted): (Vec<_>, Vec<_>) = both.partition(|(_, requests)| requests.is_some());
    let disks =
        |these: Vec<(&'a WatchedDisk, _)>| these.into_iter().map(|(disk, _)| disk).collect();
    (disks(traced), disks(counted))
}

fn names(disks: &[&WatchedDisk]) -> String {
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    names.join(", ")
}

/// Says what is missing of disks that have no requests.
fn without_queue(disks: &[&WatchedDisk]) -> Finding {
    Finding::warning(
        FindingName::NotTraced,
        format!(
            "the I/O of {} is counted and not traced, because the kernel makes no requests for it: \
             rates, mean sizes and mean times are known; percentiles, queues and log writes are not",
            names(disks)
        ),
        "if it is made of other devices, such as the paths of an NVMe disk, give those",
    )
}

/// Says what is missing without the kernel's events.
fn not_traced(why: &str) -> Finding {
    Finding::warning(
        FindingName::NotTraced,
        format!(
            "the requests of the disks are counted and not traced, because {why}: rates, mean \
             sizes and mean times are known; percentiles, queues and log writes are not"
        ),
        "run it as root, or let a group trace: mount -o remount,gid=GROUP,mode=750 \
         /sys/kernel/tracing, and a copy of the program of that group, mode 0750, with setcap \
         cap_perfmon,cap_bpf+p",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request for a disk that no machine has, and so has no queue.
    fn of_no_disk() -> WatchRequest {
        WatchRequest {
            disks: vec![WatchedDisk {
                name: "none".into(),
                number: (4095, 0),
                ..WatchedDisk::default()
            }],
            every: Nanos::from_secs(10),
            ..WatchRequest::default()
        }
    }

    #[test]
    fn a_disk_without_a_queue_is_counted_and_named() {
        let (mut watcher, findings) = Watcher::begin(&of_no_disk(), Vec::new(), Nanos(0), 0);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].name, "not-traced");
        assert!(findings[0].what.contains("the I/O of none is counted"));
        assert_eq!(watcher.about(), "the kernel's counters of its disks");
        let interval = watcher.interval(&AtomicBool::new(true), &mut |_| ());
        assert_eq!(interval.disks[0].traced, None);
    }

    #[test]
    fn a_number_that_the_journal_has_is_not_used_again() {
        let next = |since, last| {
            let since = Nanos::from_secs(since);
            Watcher::begin(&of_no_disk(), Vec::new(), since, last)
                .0
                .next_number()
        };
        // Interrupted after 14 s in interval 2, and resumed after 17 s.
        assert_eq!(next(17, 2), 3);
        assert_eq!(next(17, 1), 2);
        assert_eq!(next(47, 2), 5);
        assert_eq!(next(0, 0), 1);
        let (mut watcher, _) = Watcher::begin(&of_no_disk(), Vec::new(), Nanos::from_secs(17), 2);
        assert_eq!(
            watcher.interval(&AtomicBool::new(true), &mut |_| ()).number,
            3
        );
        assert_eq!(watcher.next_number(), 4);
    }
}
