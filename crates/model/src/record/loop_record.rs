//! What the sessions of a loop in a database counted themselves: `rigel sql script` has the loop, and
//! `rigel import` reads this from its spool.
//!
//! Facts only, as printed. Each session counted and timed its own operations, and read its own
//! statistics before the first and after the last of them.

use serde::{Deserialize, Serialize};

/// A spool, as far as the sessions are concerned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopRecord {
    /// Name of the run, which is on every line of its spool.
    pub run: String,
    /// What was asked for, by name: `sessions`, `read_rows`, `update_share` and so on.
    pub settings: Vec<(String, String)>,
    /// Sessions that were started.
    pub started: u32,
    /// The sessions that ended.
    pub sessions: Vec<LoopSession>,
    /// Views that could not be read, and the error's number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<(String, i64)>,
    /// Lines with errors of the database or its client, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Number of such lines.
    #[serde(default)]
    pub error_lines: u64,
}

/// One session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopSession {
    /// Its number, from 1.
    pub number: u32,
    /// The number of its table.
    pub table: u32,
    /// Microseconds by which it began later than asked.
    pub late_us: f64,
    /// Measured time in microseconds.
    pub measured_us: f64,
    /// Pauses in it, in microseconds.
    pub paused_us: f64,
    /// Operations during which the server's clock went back.
    pub clock_back: u64,
    /// Why it ended: `complete`, `failures` or `max-redo`.
    pub ended: String,
    /// Its operations, by kind.
    pub operations: Vec<LoopOperations>,
    /// Failures by cause: the number of an error, or `rows` for a wrong number of rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<(String, u64)>,
    /// What its statistics grew by, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statistics: Vec<(String, f64)>,
    /// Its waits: event, number, microseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<(String, f64, f64)>,
}

/// The operations of one kind of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopOperations {
    /// `read`, `update` or `scan`.
    pub kind: String,
    /// Complete and timed.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Rows that the complete ones found.
    pub rows: u64,
    /// Sum of their latencies in microseconds.
    pub sum_us: f64,
    /// The least latency.
    pub min_us: f64,
    /// The greatest latency.
    pub max_us: f64,
    /// Upper bound of each bucket in microseconds, a power of two, and the operations in it. A bucket
    /// begins at half of its bound.
    pub buckets: Vec<(f64, u64)>,
}
