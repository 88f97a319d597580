//! The result of a calibration: the storage's limits and latencies, each with its interval, and
//! warnings.
//!
//! Input: the records of a `calibrate` or `curve` run, and its latency bound. Every figure is of
//! one point or of several named ones; nothing is interpolated.

use super::at_load::AtLoad;
use super::knee::Cap;
use super::run_checks::{self, CacheTest};
use super::shape::{CurveShape, curve_shape};
use crate::analyse::figures::confidence::Estimate;
use crate::analyse::point::summary::{ClassSummary, PointSummary, summarise_within};
use crate::model::{Bound, Coordinates, Finding, Ratio, Step};
use crate::record::PointRecord;
use serde::Serialize;

/// The highest offered rate that was met within the bound, and the lowest that was not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sustained {
    /// Figures at the highest rate that was fully served within the bound; `None` if no rate was.
    pub kept: Option<AtLoad>,
    /// The offered rate of that point, as planned.
    pub kept_rate: Option<u64>,
    /// The lowest offered rate that broke the bound or was not met; `None` if every rate was kept.
    pub broken_rate: Option<u64>,
    /// Figures at the closed-loop depth of highest throughput whose response times keep the bound.
    pub closed: Option<AtLoad>,
}

/// Durable appends of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LogWrites {
    /// Bytes of one append.
    pub bytes: u32,
    /// The figures.
    pub at: AtLoad,
}

/// The result of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The latency bound of the run, such as `2ms@p99`.
    pub bound: String,
    /// Random reads of the small size at depth 1: latency at low load.
    pub low_load: Option<AtLoad>,
    /// Random reads at the knee.
    pub at_knee: Option<AtLoad>,
    /// Random reads at the depth of maximum throughput: `MAX_IOPS`.
    pub maximum: Option<AtLoad>,
    /// Large random reads at the depth of maximum throughput: `MAX_MBPS`.
    pub large: Option<AtLoad>,
    /// Large random reads at depth 1: shows what depth 1 costs.
    pub large_low_load: Option<AtLoad>,
    /// One sequential stream of large reads at depth 1: `MAX_PMBPS`.
    pub stream: Option<AtLoad>,
    /// The highest rate that keeps the bound.
    pub sustained: Sustained,
    /// Random writes of the small size at depth 1.
    pub write_low_load: Option<AtLoad>,
    /// Random writes of the small size at the depth of maximum throughput.
    pub writes: Option<AtLoad>,
    /// Durable appends, one after the other, by size.
    pub log_writes: Vec<LogWrites>,
    /// The shape of the curve of random reads.
    pub curve: CurveShape,
    /// Whether a cache served the reads.
    pub cache: CacheTest,
    /// All points, in measuring order.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// Findings about the run as a whole; findings about a point are in the point.
    pub findings: Vec<Finding>,
}

/// Evaluates the records of a run against `bound`, with figures wanted to within `precision`.
#[must_use]
pub fn calibration(records: &[PointRecord], bound: Bound, precision: Ratio) -> Calibration {
    let points: Vec<PointSummary> = records
        .iter()
        .map(|record| summarise_within(record, Some(bound)))
        .collect();
    let of = |step: Step| {
        let chosen = points.iter().filter(move |point| point.step() == step);
        chosen.filter_map(|point| Some((point, point.classes.first()?)))
    };
    let greatest = |step| of(step).max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
    let at = |found: Option<(&PointSummary, &ClassSummary)>| {
        found.and_then(|(point, class)| AtLoad::of(point, class))
    };
    let shallow = |step| of(step).find(|(point, _)| point.coordinates.outstanding() == 1);
    let curve = curve_shape(of(Step::Depth).map(|(_, class)| class), precision.get());
    let depth = |load: f64| of(Step::Depth).find(|(point, _)| point.is_at_depth(load));
    let log_writes = points.iter().filter_map(|point| match point.coordinates {
        Coordinates::Log { bytes } => Some(LogWrites {
            bytes,
            at: AtLoad::of(point, point.classes.first()?)?,
        }),
        _ => None,
    });
    let cache = CacheTest::of(records, &points);
    let low_load = at(shallow(Step::Depth));
    let mut findings = run_checks::warnings(records, &points, &curve, &cache, precision);
    findings.extend(low_load.and_then(run_checks::tail));
    Calibration {
        bound: bound.to_string(),
        low_load,
        at_knee: curve.knee.and_then(|knee| at(depth(knee.load))),
        maximum: at(greatest(Step::Depth)).map(|at| pooled(at, curve.cap)),
        large: at(greatest(Step::Large)),
        large_low_load: at(shallow(Step::Large)),
        stream: at(of(Step::Stream).next()),
        sustained: sustained(&points),
        write_low_load: at(shallow(Step::Write)),
        writes: at(greatest(Step::Write)),
        log_writes: log_writes.collect(),
        curve,
        cache,
        findings,
        points,
    }
}

/// With a cap, replaces the maximum by the mean of all level points: which of them is the highest
/// is chance.
fn pooled(at: AtLoad, cap: Option<Cap>) -> AtLoad {
    let Some(cap) = cap else { return at };
    let iops = Estimate {
        value: cap.throughput,
        interval: Some(cap.interval.into()),
    };
    AtLoad {
        iops,
        mb_per_s: iops.scaled(f64::from(at.io_bytes) / 1e6),
        ..at
    }
}

/// The rates that were met and those that were not, in the first class of these points.
pub(in crate::analyse) fn sustained(points: &[PointSummary]) -> Sustained {
    let rates = || {
        points.iter().filter_map(
            |point| match (point.coordinates.rate(), point.classes.first()) {
                (Some(rate), Some(class)) => Some((rate, point, class)),
                _ => None,
            },
        )
    };
    let best = rates()
        .filter(|(.., class)| class.sustained())
        .max_by_key(|(rate, ..)| *rate);
    let kept_depths = points
        .iter()
        .filter(|point| point.step() == Step::Depth)
        .filter_map(|point| {
            let class = point.classes.first()?;
            class
                .within
                .is_some_and(|within| within.kept)
                .then_some((point, class))
        });
    Sustained {
        kept: best.and_then(|(_, point, class)| AtLoad::of(point, class)),
        kept_rate: best.map(|(rate, ..)| rate),
        broken_rate: rates()
            .filter(|(.., class)| !class.sustained())
            .map(|(rate, ..)| rate)
            .min(),
        closed: kept_depths
            .max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
            .and_then(|(point, class)| AtLoad::of(point, class)),
    }
}
