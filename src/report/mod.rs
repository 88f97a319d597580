//! How results look: text for people, data for programs, Orion's own files, fio's job files.
//!
//! Goes in: a journal that was read. Comes out: text. Pure: it opens nothing, and asks no clock what time it is.

use crate::analyse::{PointSummary, RunResult};
use crate::record::journal::Run;

pub mod advice;
pub mod calibration;
mod chart;
pub mod classic;
pub mod comparison;
mod csv;
pub mod curve;
pub mod data;
pub mod fio;
#[cfg(test)]
pub(crate) mod golden;
pub mod html;
pub mod imported;
pub mod layers;
pub mod openmetrics;
pub mod soak;
pub mod sql;
pub mod table;

/// What a run found.
#[must_use]
pub fn result(run: &Run) -> RunResult {
    let usable = run.header.facts.usable.0;
    let is_more_planned = |points: &[PointSummary]| run.header.request().next(usable, 0, points).is_some();
    RunResult::of(run, &is_more_planned)
}

/// The report for people, which the verb of the run decides.
#[must_use]
pub fn text(run: &Run, result: &RunResult, detail: table::Detail) -> String {
    match result {
        RunResult::Matrix(found) => table::text(run, found, detail),
        RunResult::Calibration(found) => calibration::text(run, found, detail),
        RunResult::Curve(found) => sql::text(run, found, detail).unwrap_or_else(|| curve::text(run, found, detail)),
        RunResult::Layers(found) => layers::text(run, found, detail),
        RunResult::Soak(found) => soak::text(&run.header, found, detail),
        RunResult::Imported(found) => imported::text(run, found, detail),
    }
}

/// The report for spreadsheets.
#[must_use]
pub fn csv(run: &Run, result: &RunResult) -> String {
    match result {
        RunResult::Soak(found) => soak::csv(found),
        RunResult::Imported(found) => imported::csv(found),
        _ => data::csv(run),
    }
}
