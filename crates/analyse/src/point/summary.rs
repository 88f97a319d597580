//! Summary of a data point: rates, latencies with their bands, steadiness, coverage, and findings.
//!
//! Everything is computed from the record, whenever it is needed. Names carry their unit; MB are
//! 10^6 bytes, MiB 2^20.

use super::backlog::{RateMet, rate_met};
use super::coverage::CoverageSummary;
use super::events::Events;
use super::expected::{ClassFigures, Criteria, ExpectedVerdict};
use super::kernel_time::{OwnIos, kernel_mean};
use super::late::LateOperations;
use super::objective::{ObjectiveVerdict, objective_of};
use super::sql::SqlSummary;
use super::stalls::response_jumps;
use super::steady::{Steady, steady};
use super::syncs::{SyncSummary, syncs};
use super::visit_part::VisitPart;
use super::witness::{DeviceBytes, witness, witness_warning};
use crate::figures::confidence::{BoundCheck, Confidence, level_of, whole_windows};
use crate::figures::latency::{LatencyFigure, LatencySummary};
use crate::figures::quantity::{count, counted, rounded_percent, time};
use rigel_model::record::{End, Histogram, Latencies, PointRecord, StreamRecord, Verified, Window};
use rigel_model::{
    Bound, Cause, Coordinates, Finding, FindingName, Kind, Load, MIB, Nanos, Objective, Step,
};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{Level, gamma_limits};
use rigel_stats::verdict::BoundVerdict;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Summary of one point.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PointSummary {
    /// The step and its load.
    #[serde(flatten)]
    pub coordinates: Coordinates,
    /// How it ended.
    pub end: End,
    /// Wall-clock time of its start.
    pub started: String,
    /// Duration of the warm-up in seconds.
    pub warm_up_s: f64,
    /// Measured time in seconds.
    pub measured_s: f64,
    /// CPU time of this process per operation, user and system. `None` if nothing completed, and
    /// for an open loop, whose thread busy-waits for the next operation.
    pub cpu_us_per_io: Option<f64>,
    /// Number of ranks that measured together; `None` if one process measured alone. Figures are of
    /// all of them together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// Summary of each class.
    pub classes: Vec<ClassSummary>,
    /// The same of each rank, if the point is judged on every host; else empty.
    #[serde(skip)]
    pub of_ranks: Vec<RankClasses>,
    /// The kernel's counts of the devices below during the point; `None` if not available.
    pub witness: Option<DeviceBytes>,
    /// Figures of database sessions; `None` for raw I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<Box<SqlSummary>>,
    /// The visits in which the point was measured; empty if it was measured in one piece.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<VisitFigures>,
    /// The syncs of logs, apart from the commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syncs: Option<SyncSummary>,
    /// What looking at its blocks found.
    #[serde(skip)]
    pub verified: Option<Verified>,
    /// True once the intervals include what the other points of the run show.
    #[serde(skip)]
    pub is_widened: bool,
    /// Findings about this point.
    #[serde(serialize_with = "rigel_model::with_causes")]
    #[schemars(with = "Vec<rigel_model::FindingWithCause>")]
    pub findings: Vec<Finding>,
}

/// The classes of one rank at a point.
#[derive(Debug, Clone, PartialEq)]
pub struct RankClasses {
    /// The rank.
    pub rank: u32,
    /// What it measured itself.
    pub classes: Vec<ClassSummary>,
}

/// Figures of the first class in one visit to a point.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct VisitFigures {
    /// Wall-clock time of its start.
    pub started: String,
    /// The same on the clock of the engine, which tells visits of one second apart.
    #[serde(skip)]
    pub began: Nanos,
    /// Measured time in seconds.
    pub measured_s: f64,
    /// Completed operations per second.
    pub iops: f64,
    /// Mean response time; `None` if nothing completed.
    pub mean_us: Option<f64>,
    /// Median response time.
    pub p50_us: Option<f64>,
    /// Its 99th percentile.
    pub p99_us: Option<f64>,
}

/// Summary of one class of operations.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ClassSummary {
    /// The class, such as `small`.
    pub name: String,
    /// Bytes of one operation.
    pub io_bytes: u32,
    /// Number of operations that closed loops keep outstanding.
    pub outstanding: u32,
    /// Number of operations that all of its loops may have in flight.
    #[serde(skip)]
    pub in_flight_max: u64,
    /// Completed operations.
    pub done: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Failed operations, by cause.
    pub failed: BTreeMap<String, u64>,
    /// Operations that were due and never started.
    pub unserved: u64,
    /// Operations due per second, in an open loop: done, failed and unserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// Open loop: whether at most min(in-flight limit, 1 % of due operations) were never started,
    /// and the backlog did not grow. That many may be waiting at any moment, including the end of
    /// the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub met: Option<RateMet>,
    /// Open loop: true if the response times are worth too few independent observations for any
    /// interval.
    #[serde(skip)]
    pub is_too_short: bool,
    /// Completed operations per second.
    pub iops: f64,
    /// 2^20 bytes per second.
    pub mib_per_s: f64,
    /// Response times; `None` if nothing completed.
    #[serde(flatten)]
    pub latency: Option<LatencySummary>,
    /// Mean time of the I/Os in the kernel's queue and in the device, by the kernel's counters;
    /// `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_mean_us: Option<f64>,
    /// Why the kernel's counters give no mean time; `None` if they do, and without counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_mean_unknown: Option<String>,
    /// Confidence intervals of the figures; `None` if there are too few windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Open loop: the times from issue to completion, without the time that operations waited to
    /// be issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<LatencySummary>,
    /// Open loop: the times from due, with a free slot, to issue: what the tool added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_delay: Option<LatencySummary>,
    /// Comparison of the response times with the bound, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<BoundCheck>,
    /// Open loop: the operations that missed the bound, in blocks of time.
    #[serde(skip)]
    pub late: Option<LateOperations>,
    /// Whether the response times keep the objective that the point was asked to keep, if there is
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<ObjectiveVerdict>,
    /// Whether what the run expects of this load is kept.
    #[serde(skip)]
    pub expected: Vec<ExpectedVerdict>,
    /// Rate times mean response time: the outstanding operations, by Little's law.
    pub littles_law: f64,
    /// Closed loop: time in which far less than usual was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Events>,
    /// Stalls, as far as the windows show them.
    #[serde(skip_serializing_if = "Events::is_none")]
    pub stalls: Events,
    /// Whether throughput stayed level; in an open loop, the mean response time. `None` if there
    /// are too few windows.
    pub steady: Option<Steady>,
    /// The blocks that were touched.
    pub coverage: CoverageSummary,
    /// What each visit adds to its figures; empty if it was measured in one piece.
    #[serde(skip)]
    pub parts: Vec<VisitPart>,
    /// The response times of all operations.
    #[serde(skip)]
    pub times: Arc<Histogram>,
    /// Figures reported by another tool; `None` for what Rigel measured.
    #[serde(rename = "told", skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedFigures>,
}

/// Another tool's figures of a class, as far as they are compared. `None` means not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ReportedFigures {
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Response times.
    #[serde(flatten)]
    pub latency: LatencySummary<Option<f64>>,
}

/// Fraction of available CPU time in use above which the CPU is the limit.
const CPU_TOLERANCE: f64 = 0.95;

/// Allowed p99 of the scheduling delay, as a fraction of the median response time.
const DELAY_TOLERANCE: f64 = 0.5;

/// Minimum number of independent observations of response time in an open loop: that many pass in
/// about twenty relaxation times of the queue.
const INDEPENDENT_MIN: f64 = 10.0;

/// Scheduling delay in microseconds that is short compared with any storage.
const DELAY_LEAST_US: f64 = 10.0;

/// Allowed relative deviation from Little's law.
const LITTLE_TOLERANCE: f64 = 0.01;

/// A visit shorter than this may miss the part of a window at its beginning.
const SHORT_VISIT: Nanos = Nanos::from_secs(2);

impl PointSummary {
    /// The step of the point.
    pub fn step(&self) -> Step {
        self.coordinates.step()
    }

    /// Outstanding operations of a class in each process that measured: of each rank, or of the
    /// only one.
    pub fn outstanding_each(&self, class: &ClassSummary) -> u32 {
        class.outstanding / self.ranks.unwrap_or(1).max(1)
    }

    /// True if this is a closed loop with a depth of `load` small I/Os.
    pub fn is_at_depth(&self, load: f64) -> bool {
        let depth = self.coordinates.depth().or(self.coordinates.small_alone());
        depth.is_some_and(|depth| (f64::from(depth) - load).abs() < 0.5)
    }

    /// Number of visits in which the point was measured so far.
    pub fn visits_made(&self) -> usize {
        self.visits.len().max(1)
    }

    /// The figures of this summary of a single visit.
    fn as_visit(&self, began: Nanos) -> VisitFigures {
        let class = self.classes.first();
        let latency = class.and_then(|class| class.latency);
        VisitFigures {
            started: self.started.clone(),
            began,
            measured_s: self.measured_s,
            iops: class.map_or(0.0, |class| class.iops),
            mean_us: latency.map(|latency| latency.mean_us),
            p50_us: latency.map(|latency| latency.p50_us),
            p99_us: latency.map(|latency| latency.p99_us),
        }
    }
}

impl ClassSummary {
    /// Completed operations per second with their interval. No interval for an offered load that
    /// was not met: windows count operations by due time, and the last ones were never served,
    /// so the windows are not samples of one rate.
    pub fn rate(&self) -> Estimate {
        let confidence = self.confidence.filter(|_| self.met != Some(RateMet::No));
        confidence.map_or(self.iops.into(), |known| Estimate {
            value: self.iops,
            ..known.iops.into()
        })
    }

    /// A figure of its response times, with its interval if that is known; another tool's has none.
    pub fn time(&self, figure: LatencyFigure) -> Option<Estimate> {
        let value = match self.reported {
            Some(reported) => reported.latency.get(figure)?,
            None => self.latency?.get(figure),
        };
        let Some(known) = self.confidence else {
            return Some(value.into());
        };
        // The same windows, the same number of batches.
        Some(Estimate::new(value, known.of_latency(figure)).with_degrees(known.iops.degrees))
    }

    /// The longest that an operation took, in microseconds: at an offered rate that is not served without its
    /// wait in a queue that grows.
    pub fn longest_us(&self) -> Option<f64> {
        let without_wait = self.service.filter(|_| self.met == Some(RateMet::No));
        without_wait.or(self.latency).map(|times| times.max_us)
    }

    /// Whether the load is met without failures, and within the bound on response time if there is
    /// one.
    pub fn sustained(&self) -> BoundVerdict {
        if self.is_not_met() {
            return BoundVerdict::Broken;
        }
        let without_bound = match self.met {
            Some(RateMet::Undecided) => BoundVerdict::Undecided,
            _ => BoundVerdict::Kept,
        };
        let within = self.within.map(|within| within.verdict);
        let objective = self.objective.map(|objective| objective.verdict);
        within.or(objective).unwrap_or(without_bound)
    }

    /// True if an offered load was certainly not met, or operations failed.
    pub fn is_not_met(&self) -> bool {
        self.met == Some(RateMet::No) || !self.failed.is_empty()
    }

    /// True if the measured operations were met without failures, and kept the bound on response
    /// time if there is one.
    pub fn kept(&self) -> bool {
        !self.is_not_met()
            && self.within.is_none_or(|within| within.kept)
            && self.objective.is_none_or(|objective| objective.kept)
    }
}

/// Summarises a point.
pub fn summarise(record: &PointRecord) -> PointSummary {
    summarise_within(record, None)
}

/// Summarises a point, and checks its response times against `bound`.
pub fn summarise_within(record: &PointRecord, bound: Option<Bound>) -> PointSummary {
    summarise_judged(record, &bound.into())
}

/// Summarises a point, and judges it.
pub fn summarise_judged(record: &PointRecord, by: &Criteria) -> PointSummary {
    let judged = |stream: &StreamRecord| {
        let class = class(stream, record, by);
        let figures = ClassFigures {
            iops: class.iops,
            io_bytes: class.io_bytes,
            latency: class.latency,
            longest_us: class.longest_us(),
            missed: class.unserved + class.failed.values().sum::<u64>(),
            met: class.met,
        };
        ClassSummary {
            expected: by.verdicts((record, stream), figures),
            ..class
        }
    };
    let mut classes: Vec<ClassSummary> = record.streams.iter().map(judged).collect();
    let own: Vec<OwnIos> = classes.iter().map(own_ios).collect();
    let kernel_mean = kernel_mean(record, &own);
    for class in &mut classes {
        match kernel_mean.clone() {
            Some(Ok(mean)) => class.kernel_mean_us = Some(mean),
            Some(Err(why)) => class.kernel_mean_unknown = Some(why),
            None => {}
        }
    }
    let done: u64 = classes.iter().map(|class| class.done).sum();
    let visits: Vec<(&PointRecord, PointSummary)> = record
        .visits
        .iter()
        .map(|visit| (visit, summarise(visit)))
        .collect();
    for (at, class) in classes.iter_mut().enumerate() {
        let of_visits = visits.iter().filter_map(|(record, visit)| {
            let (own, expected) = (visit.classes.get(at)?, class.iops * visit.measured_s);
            let stream = record.streams.get(at)?;
            let windows = (0..record.whole_windows()).map(|at| stream.done_at(at) as f64);
            let counts: Vec<f64> = windows.collect();
            let times: [&Histogram; 2] = [&own.times, &class.times];
            Some(VisitPart::of((own.done, &counts), expected, times))
        });
        class.parts = of_visits.collect();
    }
    let witness = if visits.is_empty() {
        let done: Vec<u64> = classes.iter().map(|class| class.done).collect();
        witness(record, &done)
    } else {
        DeviceBytes::sum(visits.iter().map(|(_, visit)| visit.witness))
    };
    let mut findings: Vec<Finding> = super::suspended::finding(record).into_iter().collect();
    for class in &classes {
        check_class(class, record, &mut findings);
    }
    if visits.is_empty() {
        findings.extend(checks(record, &classes, witness));
    }
    // What is wrong at several visits is said once.
    for (visit, found) in &visits {
        for finding in checks(visit, &found.classes, found.witness) {
            if findings.iter().all(|other| other.name != finding.name) {
                findings.push(finding);
            }
        }
    }
    findings.extend(super::skew::skew(record));
    findings.extend(super::modes::modes(record));
    let sql = super::sql::sql(record).map(Box::new);
    findings.extend(
        sql.iter()
            .flat_map(|sql| super::sql::warnings(sql, &record.coordinates.to_string())),
    );
    PointSummary {
        coordinates: record.coordinates,
        end: record.end.clone(),
        started: record.started.clone(),
        warm_up_s: record.warm_up.as_secs_f64(),
        measured_s: record.measured.as_secs_f64(),
        cpu_us_per_io: (done > 0 && !is_open(record))
            .then(|| record.cpu.as_micros_f64() / done as f64),
        ranks: record
            .merge
            .as_ref()
            .map(|merge| u32::try_from(merge.ranks.len()).unwrap_or(u32::MAX)),
        classes,
        of_ranks: Vec::new(),
        witness,
        sql,
        visits: visits
            .iter()
            .map(|(record, visit)| visit.as_visit(record.began))
            .collect(),
        syncs: syncs(record),
        verified: record.verified.clone(),
        is_widened: false,
        findings,
    }
}

fn own_ios(class: &ClassSummary) -> OwnIos {
    OwnIos {
        reads: class.reads,
        writes: class.writes,
        any_failed: !class.failed.is_empty(),
        outstanding: class.littles_law,
    }
}

/// Checks of one piece of measuring: of coverage, by Little's law, of the host and by the kernel's
/// counts.
fn checks(
    record: &PointRecord,
    classes: &[ClassSummary],
    witness: Option<DeviceBytes>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for class in classes {
        check_operations(class, record, &mut findings);
    }
    findings.extend(cpu_warning(record));
    findings.extend(super::host::warnings(record));
    findings.extend(witness.and_then(|witness| witness_warning(witness, record)));
    findings
}

/// True if any stream is an open loop.
fn is_open(record: &PointRecord) -> bool {
    record.streams.iter().any(StreamRecord::is_open)
}

fn class(stream: &StreamRecord, record: &PointRecord, by: &Criteria) -> ClassSummary {
    let (total, measured) = (stream.total(), record.measured);
    let seconds = measured.as_secs_f64();
    let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let iops = record.rate_of(stream);
    let blocks_each = stream.sql.map_or(1.0, |work| {
        let kinds = stream.kinds.iter();
        let blocks: u64 = kinds.map(|kind| kind.done() * work.blocks(kind.kind)).sum();
        blocks as f64 / total.done.max(1) as f64
    });
    let latency = latency_with_edges(stream, &total.response);
    let objective = objective_of(stream, record);
    let bound = by.bound.or(objective.and_then(Objective::bound));
    let unserved = stream.unserved.iter().sum();
    let (open, in_flight) = (stream.is_open(), stream.slots());
    let due = total.done + total.failures() + unserved;
    let windows = whole_windows(stream, record);
    let counts: Vec<f64> = windows.iter().map(|window| window.done as f64).collect();
    let width_s = record.window.as_secs_f64();
    let (confidence, is_too_short) = confidence(
        &windows,
        (record.window, level_at(record, by.error)),
        open.then(|| relaxation_s(iops, latency.map_or(0.0, |latency| latency.p50_us))),
    );
    let steady = level(&windows, &counts, open);
    let within = bound.map(|bound| {
        let missed = unserved + total.failures();
        let asked = (bound, Level::ONE_LOOK);
        BoundCheck::of_windows(
            &total.response.histogram,
            missed,
            (&windows, width_s),
            asked,
        )
    });
    let jumps = if open {
        response_jumps(&windows, width_s)
    } else {
        Vec::new()
    };
    let median_s = latency.map_or(0.0, |latency| latency.p50_us / 1e6);
    ClassSummary {
        name: stream.name.clone(),
        io_bytes: stream.length,
        outstanding: stream.loads.iter().map(closed_depth).sum(),
        in_flight_max: in_flight,
        done: total.done,
        reads: done_of(stream, Kind::Read),
        writes: done_of(stream, Kind::Write) + done_of(stream, Kind::Log),
        unserved,
        offered: open.then(|| rate(due as f64)),
        met: open.then(|| {
            let waited = unserved.saturating_add(stream.drained);
            let counted = [due, waited, in_flight];
            rate_met(stream, record, counted, steady, is_too_short)
        }),
        is_too_short,
        iops,
        mib_per_s: iops * blocks_each * f64::from(stream.length) / MIB as f64,
        littles_law: latency.map_or(0.0, |latency| iops * latency.mean_us / 1e6),
        latency,
        kernel_mean_us: None,
        kernel_mean_unknown: None,
        confidence,
        service: total.service.as_ref().and_then(LatencySummary::of),
        scheduling_delay: stream.delay.as_ref().and_then(LatencySummary::of),
        late: bound
            .and_then(|bound| LateOperations::of(stream, &windows, width_s, (bound, &jumps))),
        within,
        objective: objective.map(|objective| {
            let measured = latency.map(|latency| [latency.mean_us, latency.max_us]);
            ObjectiveVerdict::of(objective, within, confidence, measured)
        }),
        expected: Vec::new(),
        lost: (!open).then(|| Events::lost(&counts, width_s)),
        stalls: Events::stalls_of_stream(stream, record, &jumps, median_s),
        steady: match steady {
            Some(steady) if is_too_short => Some(steady.undecided()),
            steady => steady,
        },
        coverage: CoverageSummary::of(stream),
        parts: Vec::new(),
        times: Arc::new(total.response.histogram),
        reported: None,
        failed: total.failed,
    }
}

/// The level of the intervals of a point, with this error.
fn level_at(record: &PointRecord, error: f64) -> Level {
    Level {
        error,
        ..level_of(record)
    }
}

/// The operations that a closed loop keeps outstanding.
fn closed_depth(load: &Load) -> u32 {
    match load {
        Load::Closed { depth } => *depth,
        Load::Open { .. } => 0,
    }
}

/// The operations of a kind that ended.
fn done_of(stream: &StreamRecord, kind: Kind) -> u64 {
    let of_kind = stream.kinds.iter().filter(|record| record.kind == kind);
    let windows = of_kind.flat_map(|record| &record.windows);
    windows.map(|window| window.done).sum()
}

/// The intervals of a class, and whether an open loop is too short for its load: then its response
/// times have none.
///
/// `relaxation_s` is the relaxation time of an open loop's queue.
fn confidence(
    windows: &[Window],
    (width, level): (Nanos, Level),
    relaxation_s: Option<f64>,
) -> (Option<Confidence>, bool) {
    let Some(known) = Confidence::of(windows, width.as_secs_f64(), level) else {
        return (None, false);
    };
    let Some(relaxation_s) = relaxation_s else {
        return (Some(known), false);
    };
    let in_windows = relaxation_s / width.as_secs_f64();
    if is_too_short(&known, windows.len(), in_windows) {
        let of_rate = Confidence {
            iops: known.iops,
            mean_us: None,
            p50_us: None,
            p99_us: None,
            p999_us: None,
        };
        return (Some(of_rate), true);
    }
    let relaxation = Nanos::from_secs_f64(relaxation_s);
    (Some(known.with_tails(windows, width, relaxation)), false)
}

/// Whether throughput stayed level; in an open loop, whose throughput is the offered rate, the mean
/// response time.
fn level(windows: &[Window], counts: &[f64], open: bool) -> Option<Steady> {
    if !open {
        return steady(counts, &vec![1.0; counts.len()]);
    }
    let sums: Vec<f64> = windows
        .iter()
        .map(|window| window.response.sum as f64)
        .collect();
    steady(&sums, counts)
}

/// True if the mean response time is worth too few independent observations. Operations that waited
/// in the same queue are alike; a mean over few relaxation times of the queue tells little of the
/// next ones, and its own error even less.
///
/// The number of observations follows from that error, and is known no better: it must be certain
/// that they are too few. A measurement that saw only a quiet phase gives too many, so the queue's
/// relaxation time, in windows, counts too. It says nothing where the windows are hardly alike: then
/// long response times are the storage's own, without a queue.
fn is_too_short(known: &Confidence, windows: usize, relaxation: f64) -> bool {
    let Some(mean) = known.mean_us else {
        return false;
    };
    let windows = windows as f64;
    let shape = mean.degrees / 2.0;
    let [_, high] = gamma_limits(shape);
    let at_most = mean.effective_n * high / shape;
    let is_short_for_queue = windows < 2.0 * INDEPENDENT_MIN * relaxation;
    at_most < INDEPENDENT_MIN.min(windows / 2.0)
        || is_short_for_queue && mean.effective_n < windows / 2.0
}

/// The relaxation time of a queue near saturation, in seconds, from its throughput and its median
/// response time.
///
/// It is 1 / (sqrt(mu) - sqrt(lambda))² (Cohen, The Single Server Queue, 1982), which near
/// saturation is 4 lambda W² with the mean waiting time W. Waiting times are exponential there, and
/// W is the median divided by ln 2 (Kingman, 1962).
fn relaxation_s(rate_per_s: f64, p50_us: f64) -> f64 {
    let waiting_s = p50_us / 1e6 / std::f64::consts::LN_2;
    4.0 * rate_per_s * waiting_s * waiting_s
}

/// The latencies of a class. An operation that lies in the measurement only in part took at least that
/// long.
fn latency_with_edges(stream: &StreamRecord, response: &Latencies) -> Option<LatencySummary> {
    let longest_us = stream.longest() as f64 / 1e3;
    LatencySummary::of(response).map(|latency| LatencySummary {
        max_us: latency.max_us.max(longest_us),
        ..latency
    })
}

/// How many operations were outstanding all the time, and how long, in words.
fn outstanding_over_edges(class: &ClassSummary, record: &PointRecord) -> String {
    let stream = record.stream(&class.name);
    stream
        .and_then(|stream| stream.censored.as_ref())
        .map_or_else(String::new, |left| {
            let outstanding = counted(left.histogram.count(), "operation");
            format!("; {outstanding} took up to {} and longer", Nanos(left.max))
        })
}

fn check_class(class: &ClassSummary, record: &PointRecord, findings: &mut Vec<Finding>) {
    let cell = format!("{} I/O at {}", class.name, record.coordinates);
    if !class.failed.is_empty() {
        let causes: Vec<String> = class
            .failed
            .iter()
            .map(|(cause, count)| format!("{count} x {cause}"))
            .collect();
        let only_short = class
            .failed
            .keys()
            .all(|cause| *cause == Cause::Short.name());
        findings.push(Finding::warning(
            FindingName::Failures,
            format!(
                "{cell}: {} failed; the figures are for the others",
                causes.join(", ")
            ),
            if only_short {
                "the target may have become smaller: compare its size with that at the start of the run"
            } else {
                "see the log of the kernel (dmesg) and of the device"
            },
        ));
    }
    check_offered(class, &cell, findings);
    if class.done == 0 && class.failed.is_empty() && class.outstanding > 0 {
        findings.push(Finding::warning(
            FindingName::NothingDone,
            format!(
                "{cell}: no operation completed in {}{}",
                record.measured,
                outstanding_over_edges(class, record)
            ),
            "measure longer; if operations of other loads took far less, the storage stood still",
        ));
    }
    if class.is_too_short && class.met != Some(RateMet::No) {
        findings.push(Finding::note(
            FindingName::TooShort,
            format!(
                "{cell}: response times changed so slowly that {} are worth fewer than {} \
                 independent observations: no intervals, and whether the rate is served is \
                 undecided",
                record.measured,
                count(INDEPENDENT_MIN)
            ),
        ));
    }
    // If a rate was not met, the operations due last were never served, so steadiness cannot be
    // judged.
    if let Some(steady) = class
        .steady
        .filter(|steady| steady.steady == Some(false) && class.met != Some(RateMet::No))
    {
        findings.push(Finding::warning(
            FindingName::Unsteady,
            format!(
                "{cell} was not steady: {} {}, or {} by {} in one step",
                if class.offered.is_some() {
                    "response time"
                } else {
                    "throughput"
                },
                trend(steady.slope),
                if steady.step < 0.0 { "fell" } else { "rose" },
                if steady.step.abs() <= 1.0 {
                    rounded_percent(steady.step.abs())
                } else {
                    format!("{:.1} times its mean", steady.step.abs())
                }
            ),
            "measure longer, or when the device has less other load",
        ));
    }
}

/// Checks which blocks the operations touched, and their number by Little's law.
fn check_operations(class: &ClassSummary, record: &PointRecord, findings: &mut Vec<Finding>) {
    let cell = format!("{} I/O at {}", class.name, record.coordinates);
    if !class.failed.is_empty() || class.done == 0 {
        // Failed operations took time and a place in the pattern, but are in none of the figures
        // below.
        return;
    }
    if let Some(expected) = class.coverage.beyond_chance() {
        findings.push(Finding::warning(
            FindingName::Coverage,
            format!(
                "{cell} touched {} distinct blocks, but {expected:.0} are expected by chance",
                class.coverage.distinct
            ),
            "report this as a bug: the volume was not read as planned",
        ));
    }
    check_littles_law(class, record, &cell, findings);
}

/// Compares the outstanding operations with rate times latency.
fn check_littles_law(
    class: &ClassSummary,
    record: &PointRecord,
    cell: &str,
    findings: &mut Vec<Finding>,
) {
    let outstanding = f64::from(class.outstanding);
    let off = (class.littles_law - outstanding).abs();
    // Operations in flight at the edges count as a whole or not at all, and stalls there may last
    // long: the time of each slot may be wrong by the longest operation.
    let edge = class.latency.map_or(f64::INFINITY, |latency| {
        latency.max_us / 1e6 / record.measured.as_secs_f64()
    });
    // Operations that were due before the measurement and delayed its beginning are in none of its
    // windows.
    let stream = record
        .streams
        .iter()
        .find(|stream| stream.name == class.name);
    let idle = |at: &usize| {
        stream.is_some_and(|stream| stream.windows_at(*at).all(|window| window.done == 0))
    };
    let whole = record.whole_windows();
    // Of a short visit, the part of a window that such an operation delays is a large share.
    let partly = usize::from(record.measured < SHORT_VISIT);
    let late = (0..whole).take_while(idle).count() + partly;
    let edge = edge + late as f64 / whole.max(1) as f64;
    // Sessions that pause, and those that finish their share of fixed work before others, have
    // nothing outstanding.
    let pauses = stream
        .and_then(|stream| stream.sql)
        .is_some_and(|work| work.think.is_some())
        || record
            .asked
            .as_ref()
            .is_some_and(|point| point.until.is_work());
    let off = if pauses {
        (class.littles_law - outstanding).max(0.0)
    } else {
        off
    };
    if record.end == End::Complete
        && outstanding > 0.0
        && off > (LITTLE_TOLERANCE + edge) * outstanding
    {
        findings.push(Finding::warning(
            FindingName::LittlesLaw,
            format!(
                "{cell}: rate times latency is {:.2}, but {outstanding} were outstanding",
                class.littles_law
            ),
            "report this as a bug: operations were lost or counted twice",
        ));
    }
}

/// Describes a slope relative to the mean. A fall by more than the mean would be a meaningless
/// percentage.
fn trend(slope: f64) -> String {
    let word = if slope < 0.0 { "fell" } else { "rose" };
    if slope.abs() <= 1.0 {
        return format!(
            "{word} by {} from start to end",
            rounded_percent(slope.abs())
        );
    }
    let [first, last] = [-0.5, 0.5].map(|side| (1.0 + side * slope).max(0.0));
    format!("{word} from {first:.1} times its mean to {last:.1} times")
}

/// Notes an offered load that was not met, and warns if Rigel itself issued late.
fn check_offered(class: &ClassSummary, cell: &str, findings: &mut Vec<Finding>) {
    let Some(offered) = class.offered else { return };
    if class.met == Some(RateMet::No) {
        findings.push(Finding::note(
            FindingName::RateNotMet,
            format!(
                "{cell}: {} of {} operations per second were served; {} operations in all never started",
                count(class.iops.round()),
                count(offered.round()),
                count(class.unserved as f64)
            ),
        ));
    }
    let medians = class.scheduling_delay.zip(class.latency);
    if let Some((delay, response)) = medians.filter(|(delay, response)| {
        delay.p99_us > (DELAY_TOLERANCE * response.p50_us).max(DELAY_LEAST_US)
    }) {
        findings.push(Finding::warning(
            FindingName::SchedulingDelay,
            format!(
                "{cell}: Rigel itself issued 1 % of the I/Os {} late or more; the median \
                 response time is {}",
                time(delay.p99_us),
                time(response.p50_us)
            ),
            "give it more CPU; service times do not include the delay",
        ));
    }
}

/// Warns if the tool has no CPU left: then it measures itself.
fn cpu_warning(record: &PointRecord) -> Option<Finding> {
    let available = record.measured.as_secs_f64() * f64::from(record.cpus);
    let busy = record.cpu.as_secs_f64() / available;
    // Open-loop workers busy-wait, so their CPU use is not a limit. Nor is a model's time that of
    // the CPU: no samples of the host are taken for it.
    let real = !record.samples.is_empty();
    (real && available > 0.0 && busy > CPU_TOLERANCE && !is_open(record)).then(|| {
        Finding::warning(
            FindingName::CpuLimit,
            format!(
                "at {} Rigel's own threads kept {} of the CPUs busy for {} of the time: the \
                 storage may be able to do more",
                record.coordinates,
                record.cpus,
                rounded_percent(busy)
            ),
            "use more threads with --workers, if there are more CPUs; otherwise the figures are \
             the limit of this machine",
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    pub(crate) use crate::examples::reads_of_a_millisecond as record;
    use rigel_model::record::Coverage;
    use rigel_model::{Counters, Nanos, Sample, SqlWork, Tables, Think};
    use rigel_stats::mean::Mean;

    #[test]
    fn the_relaxation_time_is_that_of_a_queue_near_saturation() {
        // One server of 200 a second at 95 %: W = 1/(200 - 190) s, and its median is ln 2 of it.
        let exact = (200f64.sqrt() - 190f64.sqrt()).powi(-2);
        let found = relaxation_s(190.0, 100_000.0 * std::f64::consts::LN_2);
        assert!((found / exact - 1.0).abs() < 0.05, "{found} {exact}");
    }

    #[test]
    fn a_point_is_too_short_if_it_certainly_has_too_few_observations() {
        let of = |effective_n: f64| {
            let windows: Vec<Window> = record().streams[0].kinds[0].windows.clone();
            let known = Confidence::of(&windows, 0.1, Level::ONE_LOOK).unwrap();
            let mean = Mean {
                value: 1000.0,
                error: 1.0,
                effective_n,
                degrees: 9.0,
            };
            Confidence {
                mean_us: Some(mean),
                ..known
            }
        };
        // An error of nine degrees of freedom is known to a factor of one and a half, its square to two.
        assert!(is_too_short(&of(4.0), 50, 0.01));
        assert!(!is_too_short(&of(8.0), 50, 0.01));
        // The queue decides where it is slow.
        assert!(is_too_short(&of(20.0), 50, 3.0));
        assert!(!is_too_short(&of(30.0), 50, 3.0));
    }

    #[test]
    fn a_point_that_was_stopped_has_intervals_for_any_number_of_looks() {
        let of = |end: End| {
            let mut record = PointRecord { end, ..record() };
            let windows = &mut record.streams[0].kinds[0].windows;
            (0..)
                .zip(windows)
                .for_each(|(at, window)| window.done += at * 7 % 5);
            summarise(&record).classes[0].confidence.unwrap().iops
        };
        let (whole, stopped) = (of(End::Complete), of(End::Stopped));
        assert!((whole.value - stopped.value).abs() < 1e-9);
        assert!(
            stopped.error > 1.4 * whole.error && whole.error > 0.0,
            "{whole:?} {stopped:?}"
        );
    }

    #[test]
    fn a_steep_trend_is_reported_in_times_of_the_mean() {
        assert_eq!(trend(-0.4), "fell by 40 % from start to end");
        assert_eq!(trend(-1.36), "fell from 1.7 times its mean to 0.3 times");
        assert_eq!(trend(2.6), "rose from 0.0 times its mean to 2.3 times");
    }

    fn names(record: &PointRecord) -> Vec<String> {
        summarise(record)
            .findings
            .into_iter()
            .map(|finding| finding.name)
            .collect()
    }

    #[test]
    fn figures_are_those_of_the_record() {
        let summary = summarise(&record());
        let class = &summary.classes[0];
        assert_eq!((class.done, class.reads, class.writes), (10_000, 10_000, 0));
        assert!((class.iops - 1000.0).abs() < 1e-9 && (class.littles_law - 1.0).abs() < 1e-9);
        assert!((class.mib_per_s - 7.8125).abs() < 1e-9);
        assert_eq!(summary.cpu_us_per_io, Some(5.0));
        let latency = class.latency.unwrap();
        // All operations are equal, so every figure is exactly the same.
        for figure in [
            latency.mean_us,
            latency.min_us,
            latency.p50_us,
            latency.p999_us,
            latency.max_us,
        ] {
            assert!((figure - 1000.0).abs() < 1e-9, "{latency:?}");
        }
        assert!(latency.deviation_us < 1e-3);
        assert_eq!(class.steady.and_then(|steady| steady.steady), Some(true));
        assert_eq!(names(&record()), Vec::<String>::new());
    }

    #[test]
    fn a_corner_of_the_volume_is_no_coverage() {
        let mut record = record();
        record.streams[0].coverage = Coverage {
            distinct: 10,
            ..record.streams[0].coverage.clone()
        };
        assert_eq!(names(&record), ["coverage"]);
    }

    #[test]
    fn a_rate_that_contradicts_its_latency_is_doubted() {
        let mut record = record();
        record.streams[0].loads = vec![Load::Closed { depth: 2 }];
        assert_eq!(names(&record), ["littles-law"]);
    }

    #[test]
    fn sessions_that_pause_have_less_outstanding() {
        let tables = Tables {
            schemas: 1,
            scale: 10_000,
            scan_blocks: 0,
            block: 8192,
        };
        let think = Some(Think {
            every: 1,
            least: Nanos(1),
            most: Nanos(1),
        });
        let mut record = record();
        record.streams[0].sql = Some(SqlWork {
            think,
            ..SqlWork::reads(tables)
        });
        record.streams[0].loads = vec![Load::Closed { depth: 2 }];
        assert!(!names(&record).contains(&"littles-law".to_string()));
        record.streams[0].kinds[0]
            .windows
            .iter_mut()
            .for_each(|window| window.response.sum *= 4);
        assert!(names(&record).contains(&"littles-law".to_string()));
    }

    #[test]
    fn a_stall_at_the_edge_is_no_contradiction() {
        let mut record = record();
        let latencies = &mut record.streams[0].kinds[0].windows[9].response;
        // The last of ten thousand operations took 200 ms, most of it after the end of the
        // measurement.
        latencies.sum += 199_000_000;
        latencies.max = 200_000_000;
        assert_eq!(names(&record), Vec::<String>::new());
        let latencies = &mut record.streams[0].kinds[0].windows[9].response;
        latencies.sum += 400_000_000;
        assert_eq!(names(&record), ["littles-law"]);
    }

    #[test]
    fn the_kernel_is_heard_as_a_witness() {
        let sample = |sectors| Sample {
            devices: [(
                "sda".to_string(),
                Counters {
                    read_sectors: sectors,
                    ..Counters::default()
                },
            )]
            .into(),
            ..Sample::default()
        };
        let mut record = record();
        record.samples = vec![sample(1000), sample(1000 + 10_000 * 16)];
        assert_eq!(names(&record), Vec::<String>::new());
        record.samples[1] = sample(1000 + 5_000 * 16);
        assert_eq!(names(&record), ["not-from-device"]);
        record.samples[1] = sample(1000 + 15_000 * 16);
        assert_eq!(names(&record), ["device-load"]);
    }

    #[test]
    fn a_tool_without_cpu_to_spare_is_doubted() {
        let mut record = record();
        record.cpu = Nanos::from_millis(9800);
        // In virtual time there are no samples, and no CPU that could be short.
        assert_eq!(names(&record), Vec::<String>::new());
        record.samples = vec![Sample::default()];
        assert_eq!(names(&record), ["cpu-limit"]);
        record.cpus = 2;
        assert_eq!(names(&record), Vec::<String>::new());
    }

    #[test]
    fn failures_and_unsteadiness_are_said() {
        let mut record = record();
        let of_kind = &mut record.streams[0].kinds[0];
        // The second half lacks three tenths of the operations and of their time, which
        // breaks the law as well.
        for window in &mut of_kind.windows[5..] {
            window.done = 700;
            window.response.sum = 700_000_000;
        }
        assert_eq!(names(&record), ["unsteady", "littles-law"]);
        record.streams[0].kinds[0].windows[3]
            .failed
            .insert("short transfer".into(), 7);
        assert_eq!(names(&record), ["failures", "unsteady"]);
        record.streams[0].kinds[0].windows.clear();
        assert_eq!(names(&record), ["nothing-done"]);
    }
}
