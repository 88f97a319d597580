//! A run as one self-contained HTML file: no network, no other file.
//!
//! Input: a journal that was read. Output: a page. This module decides what a page contains, with the types of
//! [`page`]; the renderer decides how it looks.

mod calibrate;
mod compare;
mod curve;
mod distribution;
mod imported;
mod layers;
mod matrix;
pub mod page;
mod points;
mod render;
mod setup;
mod soak;
mod sql;
mod throughput;
mod timeline;
mod words;

use crate::analyse::RunResult;
use crate::model::Moment;
use crate::record::journal::Run;
pub use compare::compared;
use page::Page;
pub use render::render;
pub use soak::page as of_soak;

/// The page of a run, for any verb.
#[must_use]
pub fn of(run: &Run, result: &RunResult) -> Page {
    let page = frame(run, result);
    let findings = words::findings(result.all_findings(&run.header.findings));
    match result {
        RunResult::Matrix(found) => matrix::page(run, found, findings, page),
        RunResult::Calibration(found) => calibrate::page(run, found, findings, page),
        RunResult::Curve(found) if found.busiest().is_some() => sql::page(run, found, findings, page),
        RunResult::Curve(found) => curve::page(run, found, findings, page),
        RunResult::Layers(found) => layers::page(run, found, findings, page),
        RunResult::Soak(found) => soak::page(&run.header, found),
        RunResult::Imported(found) => imported::page(run, found, page),
    }
}

/// The heading and the conclusion of a page.
fn frame(run: &Run, result: &RunResult) -> Page {
    let header = &run.header;
    let verb = header.request().verb();
    let begun = header.started.parse::<Moment>().map_or_else(|_| header.started.clone(), Moment::short);
    let target = &header.facts.name;
    Page {
        title: format!("{target}: rigel {verb}, {begun}"),
        heading: format!("rigel {verb} of {target}, {begun}"),
        conclusion: result.conclusion(header),
        ..Page::default()
    }
}
