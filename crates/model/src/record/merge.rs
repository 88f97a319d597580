//! How one record was made of several ranks' records. The ranks themselves are in `ranks`.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// How the records of several ranks became one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankMerge {
    /// The ranks that measured, ascending.
    pub ranks: Vec<u32>,
    /// From the first rank's beginning to the last one's.
    pub skew: Nanos,
    /// The same after the windows were shifted against each other by whole windows.
    pub skew_left: Nanos,
    /// Windows at the edges that were left out, of all ranks together.
    pub windows_dropped: u64,
    /// The widest bound of a clock.
    pub clock_bound: Nanos,
    /// True if the figures are those of the time in which all ranks measured. False if no whole
    /// window of that time exists, as for a fixed amount of work that was soon done: then they are
    /// of the time from the first beginning to the last end.
    pub is_common: bool,
}

impl RankMerge {
    /// What holds for several visits to one point together: the largest skew and bound, and all
    /// windows that were left out.
    pub fn of_visits<'a>(visits: impl Iterator<Item = &'a RankMerge>) -> Option<RankMerge> {
        visits.cloned().reduce(|one, other| RankMerge {
            ranks: one.ranks,
            skew: one.skew.max(other.skew),
            skew_left: one.skew_left.max(other.skew_left),
            windows_dropped: one.windows_dropped.saturating_add(other.windows_dropped),
            clock_bound: one.clock_bound.max(other.clock_bound),
            is_common: one.is_common && other.is_common,
        })
    }
}
