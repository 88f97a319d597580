//! What a matrix of small and large I/O showed as a whole.

use super::calibration::{CurveFacts, curve_facts};
use super::run_checks::warnings_of_matrix;
use super::summary::{ClassSummary, PointSummary, summarise};
use crate::model::Finding;
use crate::record::{End, PointRecord};

/// Share of the maximum that is still as good, as the findings of a matrix have it.
const TOLERANCE: f64 = 0.02;

/// What a matrix of small and large I/O found.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixResult {
    /// Every point, in the order it was measured.
    pub points: Vec<PointSummary>,
    /// The shape of the curve of small I/O alone.
    pub shape: CurveFacts,
    /// Findings of the run as a whole; those of a point stand with it.
    pub findings: Vec<Finding>,
}

/// One class of a complete point.
#[derive(Debug, Clone, Copy)]
pub struct MatrixCell<'a> {
    /// Which point.
    pub index: usize,
    /// The point.
    pub point: &'a PointSummary,
    /// Which class of the point.
    pub at: usize,
    /// The class.
    pub class: &'a ClassSummary,
}

impl MatrixCell<'_> {
    /// Outstanding small I/Os.
    #[must_use]
    pub fn small(&self) -> u32 {
        self.point.coordinates.small_and_large().0
    }

    /// Outstanding large I/Os.
    #[must_use]
    pub fn large(&self) -> u32 {
        self.point.coordinates.small_and_large().1
    }
}

impl MatrixResult {
    /// Small and large I/Os outstanding in each point.
    pub fn loads(&self) -> impl Iterator<Item = (u32, u32)> {
        self.points.iter().map(|point| point.coordinates.small_and_large())
    }

    /// What the records of a matrix show.
    #[must_use]
    pub fn of(records: &[PointRecord]) -> Self {
        let points: Vec<PointSummary> = records.iter().map(summarise).collect();
        let findings = warnings_of_matrix(records, &points);
        let alone = points.iter().filter(|point| point.coordinates.small_alone().is_some());
        let shape = curve_facts(alone.filter_map(|point| point.classes.first()), TOLERANCE);
        Self { points, shape, findings }
    }

    /// The classes of this name in complete points that have done something.
    pub fn cells<'a>(&'a self, name: &'a str) -> impl Iterator<Item = MatrixCell<'a>> {
        self.points.iter().enumerate().filter(|(_, point)| point.end == End::Complete).filter_map(
            move |(index, point)| {
                let at = point.classes.iter().position(|class| class.name == name && class.done > 0)?;
                Some(MatrixCell { index, point, at, class: &point.classes[at] })
            },
        )
    }

    /// The cell with the maximum throughput of this class. Orion names the first of several that are as good.
    #[must_use]
    pub fn most<'a>(&'a self, name: &'a str) -> Option<MatrixCell<'a>> {
        self.cells(name).reduce(|best, new| if new.class.iops > best.class.iops { new } else { best })
    }

    /// The cell with the minimum mean response time of small I/O.
    #[must_use]
    pub fn quickest(&self) -> Option<MatrixCell<'_>> {
        let mean = |cell: &MatrixCell<'_>| cell.class.latency.map_or(f64::INFINITY, |latency| latency.mean_us);
        self.cells("small").reduce(|best, new| if mean(&new) < mean(&best) { new } else { best })
    }
}
