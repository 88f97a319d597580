//! The request of `rigel soak`.

use super::SqlTerms;
use crate::model::{Load, Mix, Nanos, Objective, Pattern, Ratio};
use serde::{Deserialize, Serialize};

/// What `soak` was asked for. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoakRequest {
    /// When operations are due.
    pub load: Load,
    /// Bytes of one I/O.
    pub length: u32,
    /// Reads and writes.
    pub mix: Mix,
    /// Which blocks.
    pub pattern: Pattern,
    /// What the sessions of a database do; none for raw I/O. Its stop and warm-up are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlTerms>,
    /// Operations of a round; none if it lasts until the next one begins.
    pub work: Option<u64>,
    /// The longest that a round may take.
    pub limit: Nanos,
    /// From the beginning of one round to that of the next.
    pub every: Nanos,
    /// From the beginning of the first round to the end of the last.
    pub lasting: Nanos,
    /// What every round must keep.
    pub objectives: Vec<Objective>,
    /// Share of the time in which objectives must be kept.
    pub share: Ratio,
}

impl SoakRequest {
    /// Rounds of the whole timetable: a last one that would not be over in time is none.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        u32::try_from(self.lasting.0 / self.every.0.max(1)).unwrap_or(u32::MAX)
    }
}
