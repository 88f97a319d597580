//! Reports in all formats: text, JSON and CSV, HTML, Orion's own files, fio's job files.
//!
//! Input: a journal that was read. Output: text. Pure: it opens nothing and reads no clock.

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

/// The results of a run.
#[must_use]
pub fn result(run: &Run) -> RunResult {
    let usable = run.header.facts.usable.0;
    let is_more_planned = |points: &[PointSummary]| run.header.request().next(usable, 0, points).is_some();
    RunResult::of(run, &is_more_planned)
}

/// The report as text: what was measured, the conclusion, the figures, the findings.
#[must_use]
pub fn text(run: &Run, result: &RunResult, detail: table::Detail) -> String {
    let header = &run.header;
    let (heading, figures) = match result {
        RunResult::Matrix(found) => table::parts(run, found),
        RunResult::Calibration(found) => calibration::parts(run, found),
        RunResult::Curve(found) => sql::parts(run, found).unwrap_or_else(|| curve::parts(run, found)),
        RunResult::Layers(found) => layers::parts(run, found),
        RunResult::Soak(found) => soak::parts(header, found),
        RunResult::Imported(found) => imported::parts(run, found),
    };
    let findings = table::findings(result.all_findings(&header.findings), detail);
    let conclusion = table::conclusion(&result.conclusion(header));
    format!("{heading}\n{conclusion}\n{figures}{findings}{}", table::cut_off(run))
}

/// The report as CSV.
#[must_use]
pub fn csv(result: &RunResult) -> String {
    match result {
        RunResult::Soak(found) => soak::csv(found),
        RunResult::Imported(found) => imported::csv(found),
        _ => data::csv(result.points()),
    }
}
