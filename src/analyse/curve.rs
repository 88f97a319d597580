//! What a curve of latency against throughput showed as a whole: its greatest throughput, its shape, which offered
//! rates were met, and what is doubtful.
//!
//! Goes in: the records of a `curve` run, and the bound on latency if one was asked about.

use super::calibration::{AtLoad, CurveFacts, Sustained, curve_facts, sustained};
use super::run_checks::{self, CacheTest};
use super::sql::SqlSummary;
use super::summary::{ClassSummary, PointSummary, summarise_within};
use crate::model::{Bound, Finding, Ratio, Step};
use crate::record::PointRecord;
use serde::Serialize;

/// What a curve showed as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurveResult {
    /// The bound on latency that was asked about, such as `2ms@p99`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// The greatest throughput of a closed loop; none of a run that had none.
    pub maximum: Option<AtLoad>,
    /// The shape of the closed loop's curve.
    pub shape: CurveFacts,
    /// Which offered rates were met, and within the bound if there is one.
    pub sustained: Sustained,
    /// The offered rate at which Rigel itself was latest, and by how much, at its p99.
    pub scheduling_delay: Option<SchedulingDelay>,
    /// Every point, in the order it was measured.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// What is doubtful about the run as a whole; what is doubtful about a point stands with it.
    pub findings: Vec<Finding>,
}

impl CurveResult {
    /// True if some load kept the bound on latency, or if none was asked about.
    #[must_use]
    pub fn keeps_bound(&self) -> bool {
        self.bound.is_none() || self.sustained.kept.is_some() || self.sustained.closed.is_some()
    }

    /// The point of a database's sessions that did the most, and its place among the points; `None` of raw I/O.
    #[must_use]
    pub fn busiest(&self) -> Option<(usize, &PointSummary, &SqlSummary)> {
        let points = self.points.iter().enumerate();
        let with = points.filter_map(|(index, point)| Some((index, point, point.sql.as_deref()?)));
        with.max_by(|one, other| one.2.operations_per_s.total_cmp(&other.2.operations_per_s))
    }

    /// What the operations of this curve are called.
    #[must_use]
    pub fn naming(&self) -> Naming {
        if self.points.iter().any(|point| point.sql.is_some()) { Naming::SESSIONS } else { Naming::RAW }
    }
}

/// What the operations of a curve are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    /// The unit of their rate.
    pub rate: &'static str,
    /// Several of them.
    pub one: &'static str,
    /// What a depth counts.
    pub place: &'static str,
}

impl Naming {
    /// Of raw I/O.
    pub const RAW: Naming = Naming { rate: "IOPS", one: "I/Os", place: "outstanding" };
    /// Of a database's sessions, whose operation is a statement over a work unit.
    pub const SESSIONS: Naming = Naming { rate: "op/s", one: "operations", place: "sessions" };
}

/// What the tool itself added, at worst.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SchedulingDelay {
    /// Offered operations a second.
    pub rate: u64,
    /// One in a hundred was issued so much after it was due, with a free slot, or more.
    pub p99_us: f64,
}

/// What the records of a curve tell, the figures wanted to within `precision`.
#[must_use]
pub fn curve(records: &[PointRecord], bound: Option<Bound>, precision: Ratio) -> CurveResult {
    let points: Vec<PointSummary> = records.iter().map(|record| summarise_within(record, bound)).collect();
    let closed = || {
        let chosen = points.iter().filter(|point| point.step() == Step::Depth);
        chosen.filter_map(|point| Some((point, point.classes.first()?)))
    };
    let greatest = closed().max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
    let shape = curve_facts(closed().map(|(_, class)| class), precision.get());
    CurveResult {
        bound: bound.map(|bound| bound.to_string()),
        maximum: greatest.and_then(|(point, class)| AtLoad::of(point, class)),
        sustained: sustained(&points),
        scheduling_delay: points.iter().filter_map(delay).max_by(|one, other| one.p99_us.total_cmp(&other.p99_us)),
        findings: run_checks::warnings(records, &points, &shape, &CacheTest::default(), precision),
        shape,
        points,
    }
}

fn delay(point: &PointSummary) -> Option<SchedulingDelay> {
    let rate = point.coordinates.rate()?;
    let delay = point.classes.first().and_then(|class: &ClassSummary| class.scheduling_delay)?;
    Some(SchedulingDelay { rate, p99_us: delay.p99_us })
}
