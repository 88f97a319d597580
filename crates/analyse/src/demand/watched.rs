//! The results of `rigel watch`: the demand of each disk and database, over time.
//!
//! Input: intervals, one after the other, so that a journal of weeks is never in memory as a whole.
//! Output: a [`WatchResult`].

use super::memory;
use super::room::room;
use super::watch_request::WatchRequest;
use super::watched_demand::{is_short, not_short, of_counters};
use super::watched_streams::{SeenStream, of_disk};
use super::watched_types::{
    BusiestInterval, OwnCost, StreamPoint, WatchResult, WatchedPoint, WatchedSource, WatchedStream,
};
use crate::figures::latency::LatencySummary;
use crate::figures::modes::ModesReader;
use crate::figures::quantity::{counted, lasting, listed, percent};
use crate::series::soak::SoakResult;
use rigel_model::record::imported::{Counted, ImportedSeries};
use rigel_model::record::{DiskInterval, Latencies, WatchedInterval};
use rigel_model::{Bytes, DemandKind, Finding, FindingName, LogKind, Moment, Nanos};
use std::collections::BTreeMap;
use std::ops::Add;

/// Number of windows in which the course over time is judged. More are joined.
const WINDOWS_MAX: usize = 2000;

/// A source so far.
#[derive(Debug, Clone, Default)]
struct SourceSums {
    name: String,
    by: &'static str,
    is_database: bool,
    streams: Vec<SeenStream>,
    /// How a database writes its log.
    log: Option<LogKind>,
    /// The times of single-block reads in the disk.
    modes: ModesReader,
    points: Vec<WatchedPoint>,
    seconds: f64,
    gaps: usize,
    /// Why the last gap was.
    gap: String,
    waits: BTreeMap<String, u64>,
    looks: u64,
    /// Time with requests outstanding, and the time of the counters that say so, in seconds.
    busy: (f64, f64),
}

/// The intervals of a watch so far.
#[derive(Debug, Clone, Default)]
pub struct WatchReader {
    sources: Vec<SourceSums>,
    /// All disks together, by kind: what the storage below them is asked for.
    together: SourceSums,
    intervals: usize,
    seconds: f64,
    cpu_seconds: f64,
    own: OwnCost,
    /// When the last interval ended, and the time between intervals that was not observed.
    end: Option<(Moment, f64)>,
    missing_seconds: f64,
}

/// How a disk was observed.
fn way(disk: &DiskInterval) -> &'static str {
    if disk.traced.is_some() {
        "its requests, one by one"
    } else {
        "the kernel's counters"
    }
}

/// Time in which requests of a disk were outstanding, by the kernel; `None` if it is not known.
fn busy_seconds(disk: &DiskInterval) -> Option<f64> {
    let [before, after] = disk.counters?;
    let busy = Nanos::from_millis(after.busy_ms.checked_sub(before.busy_ms)?);
    Some(busy.as_secs_f64())
}

/// Adds the streams of a disk to those of others, without latencies: streams of a kind are one.
fn add_by_kind(sums: &mut Vec<SeenStream>, seen: &[SeenStream]) {
    for one in seen {
        let Some(kind) = one.kind else { continue };
        let alone = SeenStream {
            name: kind.words(),
            kind: Some(kind),
            operations: one.operations,
            failed: one.failed,
            bytes: one.bytes,
            ..SeenStream::default()
        };
        match sums.iter_mut().find(|sum| sum.kind == alone.kind) {
            Some(sum) => sum.add(&alone),
            None => sums.push(alone),
        }
    }
}

/// The names of the disks of a watch, in words.
fn together(request: &WatchRequest) -> String {
    let names: Vec<&str> = request
        .disks
        .iter()
        .map(|disk| disk.name.as_str())
        .collect();
    match names.len() {
        ..2 => names.concat(),
        _ => format!("{} together", listed(&names)),
    }
}

impl WatchReader {
    /// Adds an interval.
    pub fn add(&mut self, interval: &WatchedInterval) {
        let seconds = interval.measured.as_secs_f64();
        let begin: Option<Moment> = interval.started.parse().ok();
        let Some(begin) = begin.filter(|_| seconds > 0.0) else {
            return;
        };
        self.intervals += 1;
        self.seconds += seconds;
        self.cpu_seconds += interval.cpu.as_secs_f64();
        self.own.memory_bytes = self.own.memory_bytes.max(interval.memory.0);
        if let Some((before, length)) = self.end {
            let missing = begin.since(before) as f64 - length;
            // The wall clock is read to the second.
            self.missing_seconds += if missing > 2.0 { missing } else { 0.0 };
        }
        self.end = Some((begin, seconds));
        let lost = |disk: &DiskInterval| disk.traced.as_ref().map_or(0, |traced| traced.lost);
        // The disks share the rings, and each says the same number.
        self.own.lost_events += interval.disks.iter().map(lost).max().unwrap_or(0);
        let mut together: Option<Vec<SeenStream>> = None;
        for disk in &interval.disks {
            self.own.unmatched += disk.traced.as_ref().map_or(0, |traced| traced.unmatched);
            let missed = disk.missed();
            self.own.missed += missed;
            self.own.incomplete += u64::from(missed > 0);
            let seen = of_disk(disk);
            if let Some(seen) = &seen {
                add_by_kind(together.get_or_insert_default(), seen);
            }
            let source = self.source(&disk.name, way(disk));
            source.add(begin, seconds, seen.as_deref());
            if let Some(busy_s) = busy_seconds(disk) {
                source.busy = (source.busy.0 + busy_s, source.busy.1 + seconds);
            }
            if disk.counters.is_some() && seen.is_none() {
                source.gap = "a counter went back: the disk was replaced".into();
            }
        }
        self.together.add(begin, seconds, together.as_deref());
        for database in &interval.databases {
            let source = self.source(&database.name, "the server's counters");
            let (seconds, seen) = of_counters(database);
            let is_known = database.counters.is_some();
            source.add(begin, seconds, is_known.then_some(&seen));
            source.is_database = true;
            source.log = database.log.or(source.log);
            source.looks += database.looks;
            for (name, count) in &database.waits {
                *source.waits.entry(name.clone()).or_default() += count;
            }
            if !database.gap.is_empty() {
                source.gap.clone_from(&database.gap);
            }
        }
    }

    fn source(&mut self, name: &str, by: &'static str) -> &mut SourceSums {
        let index = self.sources.iter().position(|source| source.name == name);
        let index = index.unwrap_or_else(|| {
            self.sources.push(SourceSums {
                name: name.into(),
                by,
                ..SourceSums::default()
            });
            self.sources.len() - 1
        });
        &mut self.sources[index]
    }

    /// Evaluates the intervals so far.
    pub fn result(self, request: &WatchRequest) -> WatchResult {
        let course = self.sources.first().and_then(course);
        let own = OwnCost {
            cpu: if self.seconds > 0.0 {
                self.cpu_seconds / self.seconds
            } else {
                0.0
            },
            ..self.own
        };
        let mut findings = findings(&own, self.missing_seconds, request);
        findings.extend(short_intervals(&self.sources, request.every));
        let modes = |source: &SourceSums| {
            let what = format!("random reads in {}", source.name);
            source.modes.finding(&what)
        };
        findings.extend(self.sources.iter().filter_map(modes));
        let of_memory = |source: &SourceSums| {
            let mut streams = source.streams.iter().filter(|_| source.is_database);
            let random = streams.find(|one| one.kind == Some(DemandKind::RandomReads))?;
            memory::of_counters(&source.name, random.mean_us(), random.operations)
        };
        findings.extend(self.sources.iter().filter_map(of_memory));
        findings.extend(course.iter().flat_map(|course| course.findings.clone()));
        let sources: Vec<WatchedSource> = self
            .sources
            .into_iter()
            .map(|source| source.result(request.every))
            .collect();
        let together = WatchedSource {
            name: together(request),
            ..self.together.result(request.every)
        };
        let asked = if request.disks.is_empty() {
            sources.first()
        } else {
            Some(&together)
        };
        let room = request
            .against
            .as_ref()
            .zip(asked)
            .map(|(serves, source)| room(source, request.disks.len(), serves));
        WatchResult {
            sources,
            room,
            intervals: self.intervals,
            seconds: self.seconds,
            own,
            course,
            findings,
        }
    }
}

impl SourceSums {
    /// Adds an interval; `None` is a gap.
    fn add(&mut self, begin: Moment, seconds: f64, seen: Option<&[SeenStream]>) {
        let Some(seen) = seen.filter(|_| seconds > 0.0) else {
            self.gaps += 1;
            return;
        };
        self.seconds += seconds;
        let mut streams = vec![StreamPoint::default(); self.streams.len()];
        for one in seen {
            let per_s = one.operations / seconds;
            let p99 = one.response.as_ref().and_then(LatencySummary::of);
            let index = self.stream(one.name, &mut streams);
            streams[index] = StreamPoint {
                per_s,
                bytes_per_s: one.bytes.map(|bytes| bytes / seconds),
                p99_us: p99.map(|times| times.p99_us),
            };
            self.streams[index].add(one);
            if let Some(device) = one.device.as_ref()
                && one.kind == Some(DemandKind::RandomReads)
            {
                self.modes.add(&device.histogram);
            }
        }
        self.points.push(WatchedPoint {
            begin,
            seconds,
            streams,
        });
    }

    fn stream(&mut self, name: &'static str, streams: &mut Vec<StreamPoint>) -> usize {
        let index = self.streams.iter().position(|one| one.name == name);
        index.unwrap_or_else(|| {
            self.streams.push(SeenStream::default());
            streams.push(StreamPoint::default());
            self.streams.len() - 1
        })
    }

    fn result(self, every: Nanos) -> WatchedSource {
        let seconds = self.seconds.max(f64::MIN_POSITIVE);
        let whole = not_short(&self.points, |point| point.seconds, every);
        let busiest = whole
            .iter()
            .max_by(|one, other| one.per_s().total_cmp(&other.per_s()))
            .map(|point| BusiestInterval {
                begin: point.begin,
                seconds: point.seconds,
                per_s: point.per_s(),
            });
        let streams = self.streams.into_iter().enumerate().map(|(at, seen)| {
            let points = || whole.iter().filter_map(|point| point.streams.get(at));
            let bytes = points().filter_map(|one| one.bytes_per_s);
            WatchedStream {
                busiest_per_s: points().map(|one| one.per_s).fold(0.0, f64::max),
                busiest_bytes_per_s: bytes.max_by(f64::total_cmp),
                ..seen.result(seconds)
            }
        });
        let streams = streams.collect();
        WatchedSource {
            name: self.name,
            by: self.by.into(),
            log: self.log,
            busy: (self.busy.1 > 0.0).then(|| (self.busy.0 / self.busy.1).min(1.0)),
            streams,
            busiest,
            gaps: self.gaps,
            gap: self.gap,
            active: (self.looks > 0).then(|| {
                let seen: u64 = self.waits.values().sum();
                seen as f64 / self.looks as f64
            }),
            waits: wait_shares(&self.waits),
            points: self.points,
        }
    }
}

impl SeenStream {
    /// Adds the operations of a later interval.
    fn add(&mut self, other: &SeenStream) {
        fn sum<T: Add<Output = T>>(
            ours: Option<T>,
            theirs: Option<T>,
            is_first: bool,
        ) -> Option<T> {
            if is_first {
                theirs
            } else {
                ours.zip(theirs).map(|(ours, theirs)| ours + theirs)
            }
        }
        let is_first = self.operations <= 0.0;
        let merged = |ours: &mut Option<Latencies>, theirs: &Option<Latencies>| match theirs {
            Some(theirs) => ours.get_or_insert_default().merge(theirs),
            None => *ours = None,
        };
        self.bytes = sum(self.bytes, other.bytes, is_first);
        self.total_us = sum(self.total_us, other.total_us, is_first);
        self.sequential = sum(self.sequential, other.sequential, is_first);
        merged(&mut self.response, &other.response);
        merged(&mut self.device, &other.device);
        merged(&mut self.queue, &other.queue);
        self.operations += other.operations;
        self.failed += other.failed;
        self.name = other.name;
        self.kind = other.kind;
        self.rate_of = other.rate_of;
        self.latency_of = other.latency_of;
    }

    /// Mean time of those that did not fail; `None` if unknown.
    fn mean_us(&self) -> Option<f64> {
        let done = self.operations - self.failed as f64;
        self.total_us.map(|us| us / done).filter(|_| done > 0.0)
    }

    /// The figures of `seconds`, but for those of the busiest interval.
    fn result(self, seconds: f64) -> WatchedStream {
        let seen = self;
        let done = seen.operations - seen.failed as f64;
        let per_op = |sum: Option<f64>| sum.map(|sum| sum / done).filter(|_| done > 0.0);
        WatchedStream {
            name: seen.name.into(),
            kind: seen.kind,
            operations: seen.operations,
            failed: seen.failed,
            per_s: seen.operations / seconds,
            busiest_per_s: 0.0,
            busiest_bytes_per_s: None,
            mean_bytes: per_op(seen.bytes),
            sequential: per_op(seen.sequential.map(|count| count as f64)),
            mean_us: seen.mean_us(),
            response: seen.response.as_ref().and_then(LatencySummary::of),
            device: seen.device.as_ref().and_then(LatencySummary::of),
            queue: seen.queue.as_ref().and_then(LatencySummary::of),
            queued: seen.queue.as_ref().map(|queue| queue.histogram.count()),
            latency_of: seen.latency_of.into(),
        }
    }
}

/// The waits by their share, most frequent first.
fn wait_shares(waits: &BTreeMap<String, u64>) -> Vec<(String, f64)> {
    let all: u64 = waits.values().sum();
    let mut shares: Vec<(String, f64)> = waits
        .iter()
        .map(|(name, count)| (name.clone(), *count as f64 / all.max(1) as f64))
        .collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    shares
}

/// The operations per second of a source as a series; `None` if it is too short.
fn course(source: &SourceSums) -> Option<SoakResult> {
    let width = source.points.len().div_ceil(WINDOWS_MAX).max(1);
    let samples = source.points.chunks(width).map(|points| {
        let seconds: f64 = points.iter().map(|point| point.seconds).sum();
        let done: f64 = points
            .iter()
            .map(|point| point.per_s() * point.seconds)
            .sum();
        Counted {
            begin: points[0].begin,
            seconds: Some(seconds),
            value: Some(done / seconds),
            count: Some(done),
        }
    });
    SoakResult::of_imported(&ImportedSeries {
        name: format!("operations of {}", source.name),
        unit: "/s".into(),
        samples: samples.collect(),
        ..ImportedSeries::default()
    })
}

/// Says how many intervals were cut short.
fn short_intervals(sources: &[SourceSums], every: Nanos) -> Option<Finding> {
    let shorts = |source: &SourceSums| {
        let points = source.points.iter();
        points
            .filter(|point| is_short(point.seconds, every))
            .count()
    };
    let number = sources
        .iter()
        .map(shorts)
        .max()
        .filter(|number| *number > 0)?;
    let intervals = if number == 1 {
        "interval was"
    } else {
        "intervals were"
    };
    Some(Finding::note(
        FindingName::ShortIntervals,
        format!(
            "{number} {intervals} cut short, to less than half of {}: they count in the sums, and \
             are neither the busiest nor in the demand for rigel fit, unless there are no others",
            every.exact()
        ),
    ))
}

fn findings(own: &OwnCost, missing: f64, request: &WatchRequest) -> Vec<Finding> {
    /// Own CPU time that deserves a note: the promise is 1 %.
    const CPU_NOTED: f64 = 0.02;
    let mut findings = Vec::new();
    let only_counted = || {
        format!(
            "{} in {} are known by the kernel's counters only: their rates, mean sizes and mean \
             times; percentiles and kinds are of the other intervals",
            counted(own.missed, "request"),
            counted(own.incomplete, "interval")
        )
    };
    if own.lost_events > 0 && own.missed == 0 {
        findings.push(Finding::note(
            FindingName::EventsLost,
            format!(
                "the kernel could not deliver {} of requests; its counters have no more requests than \
                 the figures, but for less than 2 %",
                counted(own.lost_events, "event")
            ),
        ));
    } else if own.lost_events > 0 {
        findings.push(Finding::warning(
            FindingName::EventsLost,
            format!(
                "the kernel could not deliver {} of requests: {}",
                counted(own.lost_events, "event"),
                only_counted()
            ),
            "the machine had no CPU for Rigel: run it with a higher priority (nice -n -10)",
        ));
    } else if own.missed > 0 {
        findings.push(Finding::warning(
            FindingName::TraceIncomplete,
            format!(
                "the trace lacks some of the requests that the kernel counted: {}",
                only_counted()
            ),
            "another program that traces block requests, such as bpftrace, or a CPU that was switched \
             on meanwhile can be the reason: run it again without",
        ));
    }
    if missing > 0.0 {
        findings.push(Finding::note(
            FindingName::SeriesGaps,
            format!(
                "{} between intervals were not observed: the run was interrupted",
                lasting(Nanos::from_secs_f64(missing))
            ),
        ));
    }
    if own.cpu > CPU_NOTED {
        findings.push(Finding::note(
            FindingName::OwnCost,
            format!("Rigel itself used {} of one CPU", percent(own.cpu)),
        ));
    }
    if request.is_block_assumed && !request.disks.is_empty() {
        findings.push(Finding::note(
            FindingName::BlockAssumed,
            format!(
                "a block is taken to have {}, and reads of up to two blocks count as random; give \
                 the block of the database with --size",
                Bytes(request.block.into())
            ),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::watch_request::{ServedStream, StorageServes, WatchedDisk};
    use rigel_model::record::{DatabaseInterval, TracedRequests};
    use rigel_model::{Counters, DemandKind};
    use std::collections::BTreeMap;

    fn counters(reads: u64) -> Counters {
        Counters {
            reads,
            read_sectors: reads * 16,
            read_ms: reads,
            ..Counters::default()
        }
    }

    /// Ten seconds with `reads` reads of a disk, and of a database unless it is in a gap.
    fn interval(number: u32, reads: u64, gap: &str) -> WatchedInterval {
        let began: Moment = "2026-01-02T03:00:00+00:00".parse().unwrap();
        let blocks = |count: u64| BTreeMap::from([("pg_stat_database.blks_read".into(), count)]);
        WatchedInterval {
            number,
            started: began.plus_seconds(i64::from(number) * 10).to_string(),
            measured: Nanos::from_secs(10),
            cpu: Nanos::from_millis(50),
            memory: Bytes(30 << 20),
            disks: vec![DiskInterval {
                name: "sda".into(),
                counters: Some([counters(0), counters(reads)]),
                traced: None,
            }],
            databases: vec![DatabaseInterval {
                log: gap.is_empty().then_some(LogKind::REUSED),
                name: "postgres://a@b/c".into(),
                measured: Nanos::from_secs(5),
                counters: gap.is_empty().then(|| [blocks(0), blocks(reads)]),
                gap: gap.into(),
                waits: BTreeMap::from([("CPU".to_string(), 1), ("IO:DataFileRead".into(), 3)]),
                looks: 2,
            }],
        }
    }

    fn found(intervals: &[WatchedInterval]) -> WatchResult {
        let mut reader = WatchReader::default();
        intervals.iter().for_each(|interval| reader.add(interval));
        reader.result(&WatchRequest::default())
    }

    #[test]
    fn how_a_database_writes_its_log_is_known_also_after_a_gap() {
        let found = found(&[
            interval(1, 10, ""),
            interval(2, 0, "the connection was lost"),
        ]);
        let [disk, database] = &found.sources[..] else {
            panic!("{:?}", found.sources)
        };
        assert_eq!((disk.log, database.log), (None, Some(LogKind::REUSED)));
    }

    #[test]
    fn an_interval_that_the_trace_saw_in_part_has_the_figures_of_the_counters() {
        let mut seen = interval(1, 5000, "");
        seen.disks[0].traced = Some(TracedRequests::default());
        let mut reader = WatchReader::default();
        reader.add(&seen);
        let found = reader.clone().result(&WatchRequest::default());
        let [reads] = &found.sources[0].streams[..] else {
            panic!("{:?}", found.sources[0].streams)
        };
        assert_eq!((reads.name.as_str(), reads.operations), ("reads", 5000.0));
        let names: Vec<&str> = found.findings.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["trace-incomplete"]);
        assert!(
            found.findings[0]
                .what
                .contains("5,000 requests in 1 interval")
        );
        // Lost events say why.
        seen.disks[0].traced.as_mut().unwrap().lost = 7;
        reader.add(&seen);
        let found = reader.result(&WatchRequest::default());
        let names: Vec<&str> = found.findings.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["events-lost"]);
        let said = &found.findings[0].what;
        assert!(said.contains("7 events") && said.contains("10,000 requests in 2 intervals"));
    }

    #[test]
    fn rates_are_of_the_time_that_was_observed() {
        let all = [interval(1, 1000, ""), interval(2, 5000, "it was restarted")];
        let found = found(&all);
        let [disk, database] = &found.sources[..] else {
            panic!("{found:?}")
        };
        let reads = &disk.streams[0];
        assert_eq!((reads.per_s, reads.busiest_per_s), (300.0, 500.0));
        assert_eq!(
            (reads.mean_bytes, reads.mean_us),
            (Some(8192.0), Some(1000.0))
        );
        let busiest = disk.busiest.unwrap();
        assert_eq!(busiest.begin.to_string(), "2026-01-02T03:00:20+00:00");
        // The time of a database is that between its own readings, without gaps.
        assert!((database.streams[0].per_s - 200.0).abs() < 1e-9);
        assert_eq!(
            (database.gaps, database.gap.as_str()),
            (1, "it was restarted")
        );
        assert_eq!(database.active, Some(2.0));
        assert_eq!(database.waits[0], ("IO:DataFileRead".to_string(), 0.75));
        assert!((found.own.cpu - 0.005).abs() < 1e-9);
        assert!(found.findings.is_empty(), "{:?}", found.findings);
    }

    #[test]
    fn events_lost_of_requests_that_the_counters_do_not_miss_are_a_note() {
        let severity = |missed: u64| {
            let own = OwnCost {
                lost_events: 1,
                missed,
                incomplete: u64::from(missed > 0),
                ..OwnCost::default()
            };
            let found = findings(&own, 0.0, &WatchRequest::default());
            let lost = found.iter().find(|one| one.is(FindingName::EventsLost));
            lost.map(|one| one.severity)
        };
        assert_eq!(severity(0), Some(rigel_model::Severity::Note));
        assert_eq!(severity(9000), Some(rigel_model::Severity::Warning));
    }

    #[test]
    fn a_calibration_is_compared_with_all_disks_together() {
        let mut halves = interval(1, 1000, "");
        halves.disks.push(DiskInterval {
            name: "sdb".into(),
            counters: Some([counters(0), counters(3000)]),
            traced: None,
        });
        let disk = |name: &str| WatchedDisk {
            name: name.into(),
            ..WatchedDisk::default()
        };
        let request = WatchRequest {
            disks: vec![disk("sda"), disk("sdb")],
            against: Some(StorageServes {
                streams: vec![ServedStream {
                    kind: DemandKind::RandomReads,
                    per_s: 1000.0,
                    bytes: 8192,
                    within: String::new(),
                }],
                ..StorageServes::default()
            }),
            ..WatchRequest::default()
        };
        let mut reader = WatchReader::default();
        reader.add(&halves);
        let room = reader.result(&request).room.unwrap();
        assert_eq!(room.source, "sda and sdb together");
        let said = &room.streams[0].sentence;
        assert!(said.starts_with("use 400/s of the 1,000/s"), "{said}");
    }

    #[test]
    fn an_interval_that_was_cut_short_is_not_the_busiest() {
        let mut cut = interval(2, 1000, "");
        cut.measured = Nanos::from_secs(1);
        let request = WatchRequest {
            every: Nanos::from_secs(10),
            ..WatchRequest::default()
        };
        let mut reader = WatchReader::default();
        reader.add(&interval(1, 5000, ""));
        reader.add(&cut);
        let found = reader.result(&request);
        let disk = &found.sources[0];
        assert_eq!(disk.busiest.map(|one| one.per_s), Some(500.0));
        let reads = &disk.streams[0];
        assert_eq!((reads.operations, reads.busiest_per_s), (6000.0, 500.0));
        assert_eq!(reads.busiest_bytes_per_s, Some(500.0 * 8192.0));
        let said = found.findings.last().unwrap();
        assert!(said.is(FindingName::ShortIntervals), "{said:?}");
        // Of a watch that was stopped at once it is all there is.
        let mut reader = WatchReader::default();
        reader.add(&cut);
        let found = reader.result(&request);
        let busiest = found.sources[0].busiest;
        assert_eq!(busiest.map(|one| one.per_s), Some(1000.0));
    }

    #[test]
    fn a_disk_that_was_replaced_is_a_gap() {
        let mut replaced = interval(2, 1000, "");
        replaced.disks[0].counters = Some([counters(1000), counters(10)]);
        let found = found(&[interval(1, 1000, ""), replaced]);
        let disk = &found.sources[0];
        assert_eq!((disk.gaps, disk.streams[0].per_s), (1, 100.0));
        assert!(disk.gap.contains("replaced"), "{disk:?}");
    }

    #[test]
    fn time_that_was_not_observed_is_a_finding() {
        let found = found(&[interval(1, 10, ""), interval(7, 10, "")]);
        let gaps = &found.findings[0];
        assert!(gaps.is(FindingName::SeriesGaps), "{gaps:?}");
        assert!(gaps.what.starts_with("50"), "{gaps:?}");
    }
}
