//! The request of `rigel soak`.

use crate::plan::SqlTerms;
use rigel_model::{Load, Mix, Nanos, Objective, Pattern, Ratio};
use serde::{Deserialize, Serialize};

/// The options of `soak`. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoakRequest {
    /// When operations are due.
    pub load: Load,
    /// Bytes of one I/O.
    pub length: u32,
    /// Reads and writes.
    pub mix: Mix,
    /// The blocks to visit.
    pub pattern: Pattern,
    /// The work of database sessions; `None` for raw I/O. Its stop condition and warm-up are not
    /// used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlTerms>,
    /// Operations per round; `None` if a round lasts until the next one begins.
    pub work: Option<u64>,
    /// Maximum duration of a round.
    pub limit: Nanos,
    /// Time from the start of one round to the start of the next.
    pub every: Nanos,
    /// Time from the start of the first round to the end of the last.
    pub lasting: Nanos,
    /// Objectives of every round.
    pub objectives: Vec<Objective>,
    /// Fraction of time for which objectives must be kept.
    pub share: Ratio,
}

impl SoakRequest {
    /// Number of rounds in the whole timetable, without a last one that would not end in time.
    pub fn rounds(&self) -> u32 {
        u32::try_from(self.lasting.0 / self.every.0.max(1)).unwrap_or(u32::MAX)
    }
}
