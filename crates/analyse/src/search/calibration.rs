//! The result of a calibration: the storage's limits and latencies, each with its interval, and
//! warnings.
//!
//! Input: the records of a `calibrate` or `curve` run, and its latency bound. Every figure is of
//! one point or of several named ones; nothing is interpolated.

use super::at_load::{AtLoad, AtRate};
use super::bucket::{Buckets, ByteBucket, TokenBucket};
use super::closing::{ClosingFigures, differ_by, differs, together};
use super::credit::{credit_ended, without_credit};
use super::delivered::{Delivered, DeliveredRates};
use super::large::{LargeReads, drained};
use super::reference::{ClassStanding, standing_of};
use super::run_checks::{self, CacheTest};
use super::shape::{CurveShape, curve_shape};
use super::sustained::{Sustained, judge_together, sustained_below};
use crate::point::summary::{ClassSummary, PointSummary, summarise_within};
use crate::point::visits::{Variation, widen_reads};
use rigel_model::record::PointRecord;
use rigel_model::{
    Bound, Coordinates, Figure, Finding, FindingName, LogKind, Provisioned, Ratio, Step,
    TrustCause, Weight,
};
use rigel_stats::estimate::Estimate;
use rigel_stats::knee::Plateau;
use rigel_stats::verdict::BoundVerdict;
use serde::Serialize;

/// Durable appends of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LogWrites {
    /// Bytes of one append.
    pub bytes: u32,
    /// The state of the log's own file; `None` if blocks of the volume are overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// The figures.
    pub at: AtLoad,
}

impl LogWrites {
    /// The figures of a point of log writes; `None` if it is none, or nothing completed.
    fn of(point: &PointSummary) -> Option<Self> {
        let Coordinates::Log { bytes, log, .. } = point.coordinates else {
            return None;
        };
        let at = AtLoad::of(point, point.classes.first()?)?;
        Some(Self { bytes, log, at })
    }
}

/// Large sequential writes, before and after a cache may have taken them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LargeWrites {
    /// In their first minute.
    pub first_minute: Option<AtLoad>,
    /// After it: what lasts.
    pub lasting: Option<AtLoad>,
}

impl LargeWrites {
    fn of(points: &[PointSummary]) -> Self {
        let at = |sustained| {
            let wanted = Coordinates::LargeWrite { sustained };
            let point = points.iter().find(|point| point.coordinates == wanted)?;
            AtLoad::of(point, point.classes.first()?)
        };
        Self {
            first_minute: at(false),
            lasting: at(true),
        }
    }
}

/// The result of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Calibration {
    /// The latency bound of the run, such as `2ms@p99`.
    pub bound: String,
    /// Random reads of the small size at depth 1: latency at low load.
    pub low_load: Option<AtLoad>,
    /// Random reads at the knee, with the throughput of `maximum`; after burst credit ran out, those
    /// of the closing measurement.
    pub at_knee: Option<AtLoad>,
    /// Random reads at the knee, with the throughput of the plateau: `MAX_IOPS`. If the closing
    /// measurement differs from it, that of the closing measurement, with an interval that covers
    /// both; if burst credit ran out, what is left of the closing measurement alone.
    pub maximum: Option<AtLoad>,
    /// The throughput of the plateau, if burst credit ran out during the run: what the storage does
    /// while it has credit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_credit: Option<Estimate>,
    /// The token bucket that lends it, as far as pauses show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<TokenBucket>,
    /// The token bucket of bytes, as far as pauses between large reads show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_bucket: Option<ByteBucket>,
    /// Large random reads at the depth of maximum throughput: `MAX_MBPS`; that of the closing measurement, with an
    /// interval that covers both, if they differ.
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
    /// Large sequential writes.
    pub large_writes: LargeWrites,
    /// Durable appends, one after the other, by size.
    pub log_writes: Vec<LogWrites>,
    /// Durable appends to files of their own, by life cycle and number of writers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log_files: Vec<LogWrites>,
    /// The shape of the curve of random reads.
    pub curve: CurveShape,
    /// The closing measurements.
    pub closing: ClosingFigures,
    /// How much throughput of reads varied between visits to the same load; `None` if each was
    /// measured in one piece.
    pub variation: Option<Variation>,
    /// Whether a cache served the reads.
    pub cache: CacheTest,
    /// Which known kind of storage it is like; `None` if that is not asked of a model, or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<ClassStanding>,
    /// What was delivered of what the volume was sold with, if the user said that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
    /// Random reads of the small size at each offered rate, rising.
    #[serde(skip)]
    pub rates: Vec<AtRate>,
    /// All points, in measuring order.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// Findings about the run as a whole; findings about a point are in the point.
    pub findings: Vec<Finding>,
}

impl Calibration {
    /// Where it stands beside the known kinds of storage; `None` if one of its figures is unknown, or a cache
    /// may have answered.
    pub fn class_standing(&self) -> Option<ClassStanding> {
        let is_of_a_cache =
            |one: &Finding| one.cause() == TrustCause::Cache && one.weight() != Weight::Aside;
        let figures = [
            self.low_load?.p50_us.value,
            self.maximum?.iops.value,
            self.large?.mb_per_s.value,
        ];
        let is_known = figures.iter().all(|figure| *figure > 0.0);
        (is_known && !self.findings.iter().any(is_of_a_cache)).then(|| standing_of(figures))
    }

    /// What was delivered of `provisioned`.
    pub fn delivered_of(&self, provisioned: Provisioned) -> Delivered {
        let rates = DeliveredRates {
            iops: self.maximum.map(|at| at.iops),
            iops_on_credit: self.on_credit,
            mb_per_s: self.large.map(|at| at.mb_per_s),
        };
        Delivered::of(provisioned, rates)
    }

    /// Commits to a log's own file in this state, by this number of writers.
    pub fn commits(&self, log: LogKind, writers: u32) -> Option<AtLoad> {
        let mut logs = self.log_files.iter();
        let log = logs.find(|one| one.log == Some(log) && one.at.depth == writers)?;
        Some(log.at)
    }
}

/// Evaluates the records of a run against `bound`, with figures wanted to within `precision`.
pub fn calibration(records: &[PointRecord], bound: Bound, precision: Ratio) -> Calibration {
    let mut points: Vec<PointSummary> = records
        .iter()
        .map(|record| summarise_within(record, Some(bound)))
        .collect();
    let mut buckets = Buckets::of(records);
    let variation = widen_reads(&mut points, buckets.bytes.is_some());
    judge_together(&mut points);
    buckets.explain(&mut points);
    let of = |step: Step| {
        let chosen = points.iter().filter(move |point| point.step() == step);
        chosen.filter_map(|point| Some((point, point.classes.first()?)))
    };
    let greatest = |step| of(step).max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
    let at_load = |found: Option<(&PointSummary, &ClassSummary)>| {
        found.and_then(|(point, class)| AtLoad::of(point, class))
    };
    let shallow = |step| of(step).find(|(point, _)| point.coordinates.outstanding() == 1);
    let mut curve = curve_shape(of(Step::Depth), precision.get());
    let depth = |load: f64| of(Step::Depth).find(|(point, _)| point.is_at_depth(load));
    let cache = CacheTest::of(records, &points);
    let low_load = at_load(shallow(Step::Depth));
    let closing = ClosingFigures::of(&points);
    let searched = match curve.knee {
        Some(knee) => at_load(depth(knee.load)).map(|at_load| at_plateau(at_load, &knee.plateau)),
        None => at_load(greatest(Step::Depth)),
    };
    let is_missed = |pair: &_| differ_by(precision, pair);
    let own = closing.knee.and_then(|at| at_load(depth(at.depth.into())));
    let missed = own.zip(closing.knee).filter(is_missed);
    let plateau = curve.knee.map(|knee| knee.plateau);
    let seconds = plateau.map(|plateau| times_at_knee(&points, &plateau));
    let maximum = searched.map(|searched| match (missed, closing.knee, seconds) {
        // It changed during the run, and is as likely to change again.
        (Some((_, closing)), ..) => closing.with_rate(closing.iops.covering(searched.iops)),
        (_, Some(closing), Some(seconds)) => together(searched, closing, seconds, variation),
        _ => searched,
    });
    let maximum = maximum.map(|maximum| maximum.in_states(variation));
    let writes = at_load(greatest(Step::Write));
    let missed_writes = writes.zip(closing.writes).filter(is_missed);
    let mut findings = run_checks::warnings(records, &points, &curve, &cache, variation, precision);
    let large = LargeReads::of(&points, &buckets, variation, credit_ended(&findings));
    findings.extend(differs(("reads", Figure::MaxIops), missed.as_ref()));
    findings.extend(large.as_ref().and_then(LargeReads::differs));
    findings.extend(differs(("writes", Figure::Writes), missed_writes.as_ref()));
    findings.extend(low_load.and_then(run_checks::tail));
    let closed = left_without_credit(records, bound).or(closing.knee);
    let lasting =
        closed.filter(|_| credit_ended(&findings) && !others_used(&points, Step::Closing));
    // After pauses nobody needs to guess what lasts.
    let level = large.and_then(|large| large.level_mb_per_s);
    let held = match buckets.small {
        Some(small) => drained(&points, small, false),
        None => maximum.and_then(|small| buckets.held_by_bytes(small, level)),
    };
    let lasting = held.or(lasting);
    let searched = held.map_or(searched, |_| at_load(greatest(Step::Depth)));
    let most = served_at_most(lasting, maximum, &curve);
    let sustained = sustained_below(&points, most, lasting.is_some());
    let on_credit = lasting.zip(searched).and_then(certainly_faster);
    let maximum = lasting.or(maximum).map(AtLoad::with_least_error);
    let sustained = sustained.at_most(maximum, &curve);
    findings.extend(sustained.warnings());
    buckets.name_in(&mut findings);
    // Depths that were measured on credit and without it have no knee.
    curve.knee = curve.knee.filter(|_| on_credit.is_none());
    let large = large.map(|large| large.maximum);
    let at_knee = lasting.or_else(|| curve.knee.and_then(|knee| at_load(depth(knee.load))));
    Calibration {
        bound: bound.to_string(),
        low_load,
        // Which of the plateau's depths had the highest throughput is chance.
        at_knee: at_knee
            .map(|at_load| maximum.map_or(at_load, |maximum| at_load.with_rate(maximum.iops))),
        maximum,
        bucket: buckets.operations,
        byte_bucket: buckets.bytes,
        on_credit,
        standing: None,
        delivered: None,
        large,
        large_low_load: at_load(shallow(Step::Large)),
        stream: at_load(of(Step::Stream).next()).map(|stream| buckets.held(stream, large)),
        sustained,
        write_low_load: at_load(shallow(Step::Write)),
        writes: missed_writes.map(|(_, closing)| closing).or(writes),
        large_writes: LargeWrites::of(&points),
        log_writes: logs(&points, false),
        log_files: logs(&points, true),
        curve,
        closing,
        variation,
        cache,
        findings,
        rates: rates(&points),
        points,
    }
}

/// What was done on credit, if it is certainly more than what lasts.
fn certainly_faster((lasting, searched): (AtLoad, AtLoad)) -> Option<Estimate> {
    let is_faster = searched.iops.least() > lasting.iops.greatest();
    is_faster.then_some(searched.iops)
}

/// The offered rates, ascending.
fn rates(points: &[PointSummary]) -> Vec<AtRate> {
    let mut rates: Vec<AtRate> = points.iter().filter_map(AtRate::of).collect();
    rates.sort_by(|one, other| one.offered_per_s.total_cmp(&other.offered_per_s));
    rates
}

/// Durable appends: to files of their own, or overwriting blocks of the volume.
fn logs(points: &[PointSummary], of_own_files: bool) -> Vec<LogWrites> {
    let logs = points.iter().filter_map(LogWrites::of);
    logs.filter(|log| log.log.is_some() == of_own_files)
        .collect()
}

/// The closing measurement without its beginning on burst credit. The search ran on credit in part; the
/// closing measurement came after it was used up, or saw it end.
fn left_without_credit(records: &[PointRecord], bound: Bound) -> Option<AtLoad> {
    let left = summarise_within(&without_credit(records)?, Some(bound));
    AtLoad::of(&left, left.classes.first()?)
}

/// True if others certainly used the device at points of this kind: what fell there is no credit.
fn others_used(points: &[PointSummary], step: Step) -> bool {
    let mut findings = points
        .iter()
        .filter(|point| point.step() == step)
        .flat_map(|point| &point.findings);
    findings.any(|finding| finding.is(FindingName::DeviceLoad))
}

impl Calibration {
    /// Whether any offered rate kept the bound. If none was offered, only a closed loop of which no
    /// depth kept it decides.
    pub fn bound_verdict(&self) -> BoundVerdict {
        match (
            self.sustained.offered_verdict,
            self.sustained.constant_verdict,
        ) {
            (Some(offered), _) => offered,
            (None, Some(BoundVerdict::Broken)) => BoundVerdict::Broken,
            (None, _) => BoundVerdict::Undecided,
        }
    }
}

/// The rate above which rates were served on credit: what lasts without it, or the level that more load does not
/// raise.
fn served_at_most(lasting: Option<AtLoad>, maximum: Option<AtLoad>, curve: &CurveShape) -> f64 {
    let level = maximum.filter(|_| curve.knee.is_some_and(|knee| knee.bounded_above));
    let most = lasting.or(level);
    most.map_or(f64::INFINITY, |most| most.iops.greatest())
}

/// The measured time in seconds of the plateau's depths, and of the closing measurement.
fn times_at_knee(points: &[PointSummary], plateau: &Plateau) -> [f64; 2] {
    let (mut search_s, mut closing_s) = (0.0, 0.0);
    for point in points {
        match point.coordinates {
            Coordinates::ClosingDepth { .. } => closing_s += point.measured_s,
            at if at
                .depth()
                .is_some_and(|depth| (plateau.from..=plateau.to).contains(&f64::from(depth))) =>
            {
                search_s += point.measured_s;
            }
            _ => {}
        }
    }
    [search_s, closing_s]
}

/// The figures at the knee, with the throughput of the plateau. A plateau of one load is that load.
pub fn at_plateau(at: AtLoad, plateau: &Plateau) -> AtLoad {
    if plateau.from >= plateau.to {
        return at;
    }
    let rate = Estimate::new(plateau.throughput, Some(plateau.interval.into()));
    at.with_rate(rate.with_degrees(plateau.degrees))
}
