//! What a calibration found: the storage's limits and its latencies, each with its interval, and what is doubtful.
//!
//! Goes in: the records of a `calibrate` or `curve` run, and the bound on latency it was asked about. Every figure is
//! of one point or of several named ones; nothing is made up between them.

use super::confidence::Estimate;
use super::knee::{Cap, Knee, Loaded, cap, knee};
use super::run_checks::{self, CacheTest};
use super::summary::{ClassSummary, PointSummary, summarise_within};
use super::usl::{Usl, usl};
use crate::model::{Bound, Coordinates, Finding, Ratio, Step};
use crate::record::PointRecord;
use serde::Serialize;

/// What a class showed at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AtLoad {
    /// Outstanding I/Os; in an open loop the most that there may be.
    pub depth: u32,
    /// Bytes of one I/O.
    pub io_bytes: u32,
    /// I/Os done a second.
    pub iops: Estimate,
    /// Megabytes (10^6) a second.
    pub mb_per_s: Estimate,
    /// Mean response time.
    pub mean_us: Estimate,
    /// Median.
    pub p50_us: Estimate,
    /// 99 % are not slower.
    pub p99_us: Estimate,
    /// 99.9 % are not slower.
    pub p999_us: Estimate,
    /// SNIA's judgement; none where the windows are too few.
    pub steady: Option<bool>,
}

impl AtLoad {
    /// None if nothing was done.
    #[must_use]
    pub fn of(point: &PointSummary, class: &ClassSummary) -> Option<Self> {
        let (latency, known) = (class.latency?, class.confidence);
        let estimate = |value, interval| Estimate { value, interval };
        let iops = class.rate();
        Some(Self {
            // A stream beside this one may be deeper.
            depth: if class.outstanding > 0 { class.outstanding } else { point.coordinates.outstanding() },
            io_bytes: class.io_bytes,
            iops,
            mb_per_s: iops.scaled(f64::from(class.io_bytes) / 1e6),
            mean_us: estimate(latency.mean_us, known.and_then(|c| c.mean_us).map(|mean| mean.interval().into())),
            p50_us: estimate(latency.p50_us, known.and_then(|c| c.p50_us)),
            p99_us: estimate(latency.p99_us, known.and_then(|c| c.p99_us)),
            p999_us: estimate(latency.p999_us, known.and_then(|c| c.p999_us)),
            steady: class.steady.map(|steady| steady.steady),
        })
    }
}

impl Loaded {
    /// A point of a closed loop's curve, for the knee; none if its figures are not known well enough to have an error.
    #[must_use]
    pub fn of(class: &ClassSummary) -> Option<Self> {
        let response = class.latency?.mean_us / 1e6;
        Some(Self { load: f64::from(class.outstanding), throughput: class.confidence?.iops, response })
    }
}

/// The greatest offered rate that was met within the bound, and the least that was not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sustained {
    /// What was done at the greatest rate of which all was served, within the bound; none if no rate was.
    pub kept: Option<AtLoad>,
    /// What was offered then, as planned.
    pub kept_rate: Option<u64>,
    /// The least rate offered that broke the bound, or was not met; none if every one was kept.
    pub broken_rate: Option<u64>,
    /// The greatest depth whose response times keep the bound in a closed loop, and what was done at it.
    pub closed: Option<AtLoad>,
}

/// Durable appends of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LogWrites {
    /// Bytes of one append.
    pub bytes: u32,
    /// What was done.
    pub at: AtLoad,
}

/// What the shape of a closed loop's curve tells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurveFacts {
    /// The load beyond which latency grows and throughput does not.
    pub knee: Option<Knee>,
    /// The hard limit that throughput runs into, if it does.
    pub cap: Option<Cap>,
    /// The Universal Scalability Law, fitted.
    pub usl: Option<Usl>,
}

/// What the shape of the curve of these points tells; `tolerance` is the share of the maximum that is still as good.
#[must_use]
pub fn curve_facts<'a>(classes: impl Iterator<Item = &'a ClassSummary>, tolerance: f64) -> CurveFacts {
    let loads: Vec<Loaded> = classes.filter_map(Loaded::of).collect();
    let pairs: Vec<(f64, f64)> = loads.iter().map(|point| (point.load, point.throughput.value)).collect();
    CurveFacts { knee: knee(&loads, tolerance), cap: cap(&loads), usl: usl(&pairs) }
}

/// What a calibration found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The bound on latency that it was asked about, such as `2ms@p99`.
    pub bound: String,
    /// Random reads of the small size at depth 1: latency at low load.
    pub low_load: Option<AtLoad>,
    /// Random reads at the knee.
    pub at_knee: Option<AtLoad>,
    /// Random reads at the depth of the greatest throughput: `MAX_IOPS`.
    pub maximum: Option<AtLoad>,
    /// Random reads of the large size at the depth of the greatest throughput: `MAX_MBPS`.
    pub large: Option<AtLoad>,
    /// Random reads of the large size one after the other: for what depth 1 costs.
    pub large_low_load: Option<AtLoad>,
    /// One sequential stream of large reads, one after the other: `MAX_PMBPS`.
    pub stream: Option<AtLoad>,
    /// The greatest rate that keeps the bound.
    pub sustained: Sustained,
    /// Random writes of the small size at depth 1.
    pub write_low_load: Option<AtLoad>,
    /// Random writes of the small size at the depth of the greatest throughput.
    pub writes: Option<AtLoad>,
    /// Durable appends, one after the other, by size.
    pub log_writes: Vec<LogWrites>,
    /// The shape of the curve of random reads.
    pub curve: CurveFacts,
    /// Whether a cache answered.
    pub cache: CacheTest,
    /// Every point, in the order it was measured.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// What is doubtful about the run as a whole; what is doubtful about a point stands with it.
    pub findings: Vec<Finding>,
}

/// What the records of a run tell, against `bound`, the figures wanted to within `precision`.
#[must_use]
pub fn calibration(records: &[PointRecord], bound: Bound, precision: Ratio) -> Calibration {
    let points: Vec<PointSummary> = records.iter().map(|record| summarise_within(record, Some(bound))).collect();
    let of = |step: Step| {
        let chosen = points.iter().filter(move |point| point.step() == step);
        chosen.filter_map(|point| Some((point, point.classes.first()?)))
    };
    let greatest = |step| of(step).max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
    let at = |found: Option<(&PointSummary, &ClassSummary)>| found.and_then(|(point, class)| AtLoad::of(point, class));
    let shallow = |step| of(step).find(|(point, _)| point.coordinates.outstanding() == 1);
    let curve = curve_facts(of(Step::Depth).map(|(_, class)| class), precision.get());
    let depth = |load: f64| of(Step::Depth).find(|(point, _)| point.is_at_depth(load));
    let log_writes = points.iter().filter_map(|point| match point.coordinates {
        Coordinates::Log { bytes } => Some(LogWrites { bytes, at: AtLoad::of(point, point.classes.first()?)? }),
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

/// Of points that are level the greatest is so by chance: then the maximum is what all of them show.
fn pooled(at: AtLoad, cap: Option<Cap>) -> AtLoad {
    let Some(cap) = cap else { return at };
    let iops = Estimate { value: cap.throughput, interval: Some(cap.interval.into()) };
    AtLoad { iops, mb_per_s: iops.scaled(f64::from(at.io_bytes) / 1e6), ..at }
}

/// What was offered and met, and what was not, in the first class of these points.
pub(super) fn sustained(points: &[PointSummary]) -> Sustained {
    let rates = || {
        points.iter().filter_map(|point| match (point.coordinates.rate(), point.classes.first()) {
            (Some(rate), Some(class)) => Some((rate, point, class)),
            _ => None,
        })
    };
    let best = rates().filter(|(.., class)| class.sustained()).max_by_key(|(rate, ..)| *rate);
    let kept_depths = points.iter().filter(|point| point.step() == Step::Depth).filter_map(|point| {
        let class = point.classes.first()?;
        class.within.is_some_and(|within| within.kept).then_some((point, class))
    });
    Sustained {
        kept: best.and_then(|(_, point, class)| AtLoad::of(point, class)),
        kept_rate: best.map(|(rate, ..)| rate),
        broken_rate: rates().filter(|(.., class)| !class.sustained()).map(|(rate, ..)| rate).min(),
        closed: kept_depths
            .max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
            .and_then(|(point, class)| AtLoad::of(point, class)),
    }
}
