//! The points of a search that is running: what its plan decides by.

use super::expected::Criteria;
use super::of_ranks::add_ranks;
use super::summary::{PointSummary, summarise_judged};
use rigel_model::record::{PointRecord, RankLines, visits};

/// One summary for each point that a search has visited so far.
#[derive(Debug, Clone, Default)]
pub struct SoFar {
    points: Vec<PointSummary>,
    /// Number of records that they include.
    records: usize,
}

impl SoFar {
    /// Includes the latest of these records, which are only ever added, and judges them.
    /// A further visit to a point changes that point's summary. Returns all summaries, in the order
    /// of the first visits.
    pub fn of(&mut self, records: &[PointRecord], by: impl Into<Criteria>) -> &[PointSummary] {
        self.of_ranks(records, &RankLines::default(), by)
    }

    /// As [`SoFar::of`], with what each rank measured of the points, by their `lines`.
    pub fn of_ranks(
        &mut self,
        records: &[PointRecord],
        lines: &RankLines,
        by: impl Into<Criteria>,
    ) -> &[PointSummary] {
        let by = by.into();
        for record in &records[self.records..] {
            if let Some(joined) = visits::joined_at(records, record.coordinates) {
                let mut summary = summarise_judged(&joined, &by);
                add_ranks(&mut summary, lines);
                let mut points = self.points.iter_mut();
                match points.find(|point| point.coordinates == record.coordinates) {
                    Some(point) => *point = summary,
                    None => self.points.push(summary),
                }
            }
        }
        self.records = records.len();
        &self.points
    }
}
