//! Statistics per second, and what follows from two of them.

use super::evidence::{divisor, time_model, total};
use rigel_model::record::DatabaseReport;

/// Bytes in a mebibyte.
pub(super) const MIB: f64 = 1_048_576.0;

/// Waits below which an event has no latency worth naming.
pub(super) const WAITS_MIN: f64 = 100.0;

/// The time that the counters cover, in seconds.
pub(super) fn seconds(report: &DatabaseReport) -> Option<f64> {
    divisor(report).map(|(low, high)| f64::midpoint(low, high))
}

/// A statistic per second.
pub(super) fn rate(report: &DatabaseReport, name: &str) -> Option<f64> {
    Some(total(report, name)? / seconds(report)?)
}

/// DB time in seconds.
pub(super) fn db_time_s(report: &DatabaseReport) -> Option<f64> {
    let printed = time_model(report, "DB time").or(report.window.db_time_s);
    printed.map(|time| time.value)
}

/// Mean size of a write of the log, with what fills its last block.
pub(super) fn redo_write_bytes(report: &DatabaseReport) -> Option<f64> {
    let writes = total(report, "redo writes").filter(|writes| *writes > 0.0)?;
    let wastage = total(report, "redo wastage").unwrap_or(0.0);
    Some((total(report, "redo size")? + wastage) / writes)
}

/// Largest request that a database makes: a longer write of the log is several.
pub(super) const REQUEST_MAX_BYTES: f64 = 1_048_576.0;

/// A mean size that follows from differences of large rates: `None` if no request is so long or so short.
pub(super) fn possible(bytes: f64) -> Option<f64> {
    /// The parts of a difference are not of exactly the same time.
    const SLACK: f64 = 1.05;
    const SECTOR: f64 = 512.0;
    (SECTOR..=REQUEST_MAX_BYTES * SLACK)
        .contains(&bytes)
        .then_some(bytes)
}
