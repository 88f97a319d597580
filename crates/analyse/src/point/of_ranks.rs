//! What each rank measured of a point, where a point is judged on every host.
//!
//! Input: a point's summary, and the lines of ranks. Output: the same summary with the classes of
//! each rank.

use super::summary::{PointSummary, RankClasses, summarise};
use rigel_model::record::RankLines;

/// Adds the classes of each rank that measured this point, all visits together.
pub fn add_ranks(point: &mut PointSummary, lines: &RankLines) {
    let parts = lines.of_each_rank(point.coordinates).into_iter();
    let classes = parts.map(|(rank, record)| RankClasses {
        rank,
        classes: summarise(&record).classes,
    });
    point.of_ranks = classes.collect();
}
