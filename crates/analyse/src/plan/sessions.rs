//! The terms of database sessions: their work, and when a point of them ends.

use rigel_model::{Nanos, SqlWork, WarmUp};
use serde::{Deserialize, Serialize};

/// The work of database sessions, and its duration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SqlTerms {
    /// The work.
    pub work: SqlWork,
    /// When a point ends.
    pub stop: SqlStop,
    /// The warm-up before the measurement.
    pub warm_up: WarmUp,
    /// Statement timeout at the server; `None` keeps the server's setting.
    pub statement_timeout: Option<Nanos>,
}

/// When a point of database sessions ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlStop {
    /// When the figures are precise, as for a curve of raw I/O.
    Precise,
    /// After this time.
    Elapsed(Nanos),
    /// After this number of operations of each session.
    OpsOfEach(u64),
}
