//! The results of a matrix of small and large I/O.

use rigel_analyse::plan::search::SMALL;
use rigel_analyse::point::summary::{ClassSummary, PointSummary, summarise};
use rigel_analyse::search::run_checks::warnings_of_matrix;
use rigel_analyse::search::shape::{CurveShape, curve_shape};
use rigel_model::Finding;
use rigel_model::record::{End, PointRecord};

/// Throughputs within this share of the maximum count as equal to it.
const TOLERANCE: f64 = 0.02;

/// The results of a matrix of small and large I/O.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixResult {
    /// All points, in measuring order.
    pub points: Vec<PointSummary>,
    /// The shape of the curve of small I/O alone.
    pub shape: CurveShape,
    /// Findings about the run as a whole; findings about a point are in the point.
    pub findings: Vec<Finding>,
}

/// One class of a complete point.
#[derive(Debug, Clone, Copy)]
pub struct MatrixCell<'a> {
    /// Index of the point.
    pub index: usize,
    /// The point.
    pub point: &'a PointSummary,
    /// Index of the class in the point.
    pub at: usize,
    /// The class.
    pub class: &'a ClassSummary,
}

impl MatrixCell<'_> {
    /// Outstanding small I/Os.
    pub fn small(&self) -> u32 {
        self.point.coordinates.small_and_large().0
    }

    /// Outstanding large I/Os.
    pub fn large(&self) -> u32 {
        self.point.coordinates.small_and_large().1
    }
}

impl MatrixResult {
    /// Outstanding small and large I/Os of each point.
    pub fn loads(&self) -> impl Iterator<Item = (u32, u32)> {
        self.points
            .iter()
            .map(|point| point.coordinates.small_and_large())
    }

    /// Evaluates the records of a matrix.
    pub fn of(records: &[PointRecord]) -> Self {
        let points: Vec<PointSummary> = records.iter().map(summarise).collect();
        let alone = points
            .iter()
            .filter(|point| point.coordinates.small_alone().is_some());
        let alone = alone.filter_map(|point| Some((point, point.classes.first()?)));
        let shape = curve_shape(alone, TOLERANCE);
        let findings = warnings_of_matrix(records, &points, &shape);
        Self {
            points,
            shape,
            findings,
        }
    }

    /// The classes with this name in complete points that completed at least one operation.
    pub fn cells<'a>(&'a self, name: &'a str) -> impl Iterator<Item = MatrixCell<'a>> {
        self.points
            .iter()
            .enumerate()
            .filter(|(_, point)| point.end == End::Complete)
            .filter_map(move |(index, point)| {
                let at = point
                    .classes
                    .iter()
                    .position(|class| class.name == name && class.done > 0)?;
                Some(MatrixCell {
                    index,
                    point,
                    at,
                    class: &point.classes[at],
                })
            })
    }

    /// The cell with the maximum throughput of this class; the first of several equal ones, as in
    /// Orion.
    pub fn most<'a>(&'a self, name: &'a str) -> Option<MatrixCell<'a>> {
        self.cells(name).reduce(|best, new| {
            if new.class.iops > best.class.iops {
                new
            } else {
                best
            }
        })
    }

    /// The cell with the minimum mean response time of small I/O.
    pub fn quickest(&self) -> Option<MatrixCell<'_>> {
        let mean = |cell: &MatrixCell<'_>| {
            cell.class
                .latency
                .map_or(f64::INFINITY, |latency| latency.mean_us)
        };
        self.cells(SMALL)
            .reduce(|best, new| if mean(&new) < mean(&best) { new } else { best })
    }
}
