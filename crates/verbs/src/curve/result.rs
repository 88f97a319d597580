//! The results of a latency-throughput curve: maximum throughput, shape, the offered rates that
//! were met, and warnings.
//!
//! Input: the records of a `curve` run, and the latency bound if there was one.

use crate::naming::Naming;
use rigel_analyse::BoundVerdict;
use rigel_analyse::Estimate;
use rigel_analyse::point::sql::SqlSummary;
use rigel_analyse::point::summary::{ClassSummary, PointSummary, summarise_within};
use rigel_analyse::point::visits::{variation, widen};
use rigel_analyse::search::at_load::AtLoad;
use rigel_analyse::search::calibration::at_plateau;
use rigel_analyse::search::delivered::{Delivered, DeliveredRates};
use rigel_analyse::search::run_checks::{self, CacheTest};
use rigel_analyse::search::shape::{CurveShape, curve_shape};
use rigel_analyse::search::sustained::{Sustained, judge_together, sustained};
use rigel_model::record::PointRecord;
use rigel_model::{ActiveRanks, Arrivals, Bound, Finding, Load, LogKind, Provisioned, Ratio, Step};
use serde::Serialize;

/// The results of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CurveResult {
    /// The log with files of its own, if its writers were measured; of several, the one that was named first,
    /// which the figures below are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// Each of several logs that were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogCurve>,
    /// The latency bound of the run, such as `2ms@p99`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// Maximum throughput of the closed loop; `None` if the run had no closed loop.
    pub maximum: Option<AtLoad>,
    /// The shape of the closed loop's curve.
    pub shape: CurveShape,
    /// The offered rates that were met, and within the bound if there is one.
    pub sustained: Sustained,
    /// What was delivered of what the volume was sold with, if the user said that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
    /// The offered rate with the highest p99 of Rigel's own scheduling delay, and that delay.
    pub scheduling_delay: Option<SchedulingDelay>,
    /// All points, in measuring order.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// Findings about the run as a whole; findings about a point are in the point.
    pub findings: Vec<Finding>,
}

/// One of several logs that were compared.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LogCurve {
    /// The log.
    pub log: LogKind,
    /// Maximum throughput.
    pub maximum: Option<AtLoad>,
    /// The shape of its curve.
    pub shape: CurveShape,
    /// What the fewest writers did.
    pub fewest: Option<AtLoad>,
    /// Their commits per second over those to the log that was named first; `None` of that one.
    pub times: Option<Estimate>,
}

impl LogCurve {
    /// Its points.
    pub fn points<'a>(&self, points: &'a [PointSummary]) -> impl Iterator<Item = &'a PointSummary> {
        let log = Some(self.log);
        points
            .iter()
            .filter(move |point| point.coordinates.log() == log)
    }
}

impl CurveResult {
    /// True if the figures of the result are of this point: of several logs, they are of the first.
    pub fn is_of(&self, point: &PointSummary) -> bool {
        point.coordinates.log() == self.logs.first().map(|first| first.log)
    }

    /// What was delivered of `provisioned`: by the closed loop, or by the highest rate that was met.
    pub(super) fn delivered_of(&self, provisioned: Provisioned) -> Delivered {
        let rates = DeliveredRates {
            iops: self.maximum.map(|at| at.iops).or(self.sustained.rate),
            iops_on_credit: None,
            mb_per_s: self.maximum.map(|at| at.mb_per_s),
        };
        Delivered::of(provisioned, rates)
    }

    /// Whether any offered rate kept the latency bound, or any depth if there was none; `None` if the run had no
    /// bound. Depths of which rates are a part do not decide: they hide what rates show.
    pub fn bound_verdict(&self) -> Option<BoundVerdict> {
        let offered = self.sustained.offered_verdict;
        let verdict = || offered.unwrap_or_else(|| self.sustained.verdict());
        self.bound.as_ref().map(|_| verdict())
    }

    /// The point of database sessions with the highest throughput, and its index; `None` for raw
    /// I/O. Of several hosts, a point at which only some of them measured is not the run's.
    pub fn busiest(&self) -> Option<(usize, &PointSummary, &SqlSummary)> {
        let is_of_all = |point: &PointSummary| point.coordinates.active_ranks() == ActiveRanks::All;
        let points = self.points.iter().enumerate();
        let points = points.filter(|(_, point)| is_of_all(point));
        let with = points.filter_map(|(index, point)| Some((index, point, point.sql.as_deref()?)));
        with.max_by(|one, other| one.2.operations_per_s.total_cmp(&other.2.operations_per_s))
    }

    /// The names of this curve's operations and units.
    pub fn naming(&self) -> Naming {
        if self.points.iter().any(|point| point.sql.is_some()) {
            Naming::SESSIONS
        } else if self.log.is_some() {
            Naming::COMMITS
        } else {
            Naming::RAW
        }
    }
}

/// The highest delay that the tool itself added.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SchedulingDelay {
    /// Offered operations per second.
    pub rate: u64,
    /// 99th percentile of the time from when an operation was due and had a free slot, to its
    /// issue.
    pub p99_us: f64,
}

/// Evaluates the records of a curve, with figures wanted to within `precision`.
pub fn curve(records: &[PointRecord], bound: Option<Bound>, precision: Ratio) -> CurveResult {
    let mut points: Vec<PointSummary> = records
        .iter()
        .map(|record| summarise_within(record, bound))
        .collect();
    let variation = variation(&points, false);
    widen(&mut points);
    judge_together(&mut points);
    let points = points;
    let logs = logs(&points, precision);
    let first = logs.first().map(|first| first.log);
    let own = of_log(&points, first);
    let (shape, maximum) = closed_loop(&own, precision);
    let maximum = maximum.map(|maximum| maximum.in_states(variation));
    let sustained = sustained(&own)
        .at_most(maximum, &shape)
        .arriving(arrivals(records));
    CurveResult {
        log: None,
        logs,
        delivered: None,
        bound: bound.map(|bound| bound.to_string()),
        maximum,
        scheduling_delay: points
            .iter()
            .filter_map(delay)
            .max_by(|one, other| one.p99_us.total_cmp(&other.p99_us)),
        findings: run_checks::warnings(
            records,
            &points,
            &shape,
            &CacheTest::default(),
            variation,
            precision,
        )
        .into_iter()
        .chain(sustained.warnings())
        .collect(),
        sustained,
        shape,
        points,
    }
}

/// How the operations of the offered rates were spaced, which is one of the run's options.
fn arrivals(records: &[PointRecord]) -> Arrivals {
    let loads = records.iter().flat_map(|record| &record.streams);
    let spaced = |load: &Load| match load {
        Load::Open { arrivals, .. } => Some(*arrivals),
        Load::Closed { .. } => None,
    };
    let mut all = loads.flat_map(|stream| &stream.loads).filter_map(spaced);
    all.next().unwrap_or(Arrivals::Poisson)
}

/// The shape of a closed loop's curve, and its maximum.
fn closed_loop(points: &[PointSummary], precision: Ratio) -> (CurveShape, Option<AtLoad>) {
    let closed = || {
        let chosen = points.iter().filter(|point| point.step() == Step::Depth);
        chosen.filter_map(|point| Some((point, point.classes.first()?)))
    };
    let greatest = closed().max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
    let shape = curve_shape(closed(), precision.get());
    let at_load = |found: Option<(&PointSummary, &ClassSummary)>| {
        found.and_then(|(point, class)| AtLoad::of(point, class))
    };
    let at_knee = shape.knee.and_then(|knee| {
        let measured = at_load(closed().find(|(point, _)| point.is_at_depth(knee.load)))?;
        Some(at_plateau(measured, &knee.plateau))
    });
    let maximum = at_knee.or_else(|| at_load(greatest));
    (shape, maximum)
}

/// The points of a log; all if none are compared.
fn of_log(points: &[PointSummary], log: Option<LogKind>) -> Vec<PointSummary> {
    let is_own = |point: &&PointSummary| point.coordinates.log() == log;
    points.iter().filter(is_own).cloned().collect()
}

/// The curve of each log, in the order in which they were named, if several are compared.
fn logs(points: &[PointSummary], precision: Ratio) -> Vec<LogCurve> {
    let mut kinds: Vec<LogKind> = Vec::new();
    for log in points.iter().filter_map(|point| point.coordinates.log()) {
        if !kinds.contains(&log) {
            kinds.push(log);
        }
    }
    let mut logs: Vec<LogCurve> = Vec::new();
    for log in kinds {
        let own = of_log(points, Some(log));
        let (shape, maximum) = closed_loop(&own, precision);
        let fewest = own.iter().min_by_key(|point| point.coordinates.depth());
        let fewest = fewest.and_then(|point| AtLoad::of(point, point.classes.first()?));
        let first = logs.first().and_then(|first| first.fewest);
        let pair = fewest.zip(first);
        let alike = pair.filter(|(fewest, first)| fewest.depth == first.depth);
        logs.push(LogCurve {
            log,
            maximum,
            shape,
            fewest,
            times: alike.map(|(fewest, first)| fewest.iops.over(first.iops)),
        });
    }
    logs
}

fn delay(point: &PointSummary) -> Option<SchedulingDelay> {
    let rate = point.coordinates.rate()?;
    let delay = point
        .classes
        .first()
        .and_then(|class: &ClassSummary| class.scheduling_delay)?;
    Some(SchedulingDelay {
        rate,
        p99_us: delay.p99_us,
    })
}
