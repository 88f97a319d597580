//! Reports in all formats: text, JSON and CSV, HTML, Orion's own files, fio's job files.
//!
//! Input: a journal that was read. Output: text. Each verb has one function that builds a
//! [`Document`], which [`text`] and [`html`] render. Pure: nothing here opens a file or reads a
//! clock.

use document::{Document, Section};
use frame::frame;
use rigel_analyse::request::Run;
use rigel_analyse::{self as analyse, RunResult};
use rigel_model::Error;
use rigel_model::record::StallEvent;

pub mod advice;
mod against;
mod calibrate;
mod chart;
pub mod claimed;
pub mod classic;
pub mod compare;
mod csv;
mod curve;
pub mod data;
mod database;
mod distribution;
pub mod document;
mod event_distribution;
pub mod fio;
mod fit;
mod frame;
#[cfg(test)]
#[path = "../../../tests/common/golden.rs"]
pub(crate) mod golden;
pub mod html;
mod imported;
mod layers;
mod loops;
mod matrix;
mod neighbours;
pub mod openmetrics;
pub mod oracle_row;
mod parts;
mod points;
mod ranks;
mod setup;
pub mod soak;
pub mod sql;
mod sweep;
pub mod text;
mod throughput;
mod timeline;
mod unit;
pub mod watch;

pub use fit::fits;
pub use frame::result;

/// The report of a run.
pub fn document(run: &Run, result: &RunResult) -> Document {
    let header = &run.header;
    let frame = frame(header, result.conclusion(header));
    let findings = parts::findings(result.all_findings(&header.findings));
    let mut document = match result {
        RunResult::Matrix(found) => matrix::document(run, found, findings, frame),
        RunResult::Calibration(found) => calibrate::document(run, found, findings, frame),
        RunResult::Curve(found) if found.busiest().is_some() => {
            sql::document(run, found, findings, frame)
        }
        RunResult::Curve(found) => curve::document(run, found, findings, frame),
        RunResult::Layers(found) => layers::document(run, found, findings, frame),
        RunResult::Fit(found) => fit::document(run, found, findings, frame),
        RunResult::Soak(found) => soak::document(header, found),
        RunResult::Watch(found) => watch::document(header, found),
        RunResult::Imported(found) => imported::document(run, found, findings, frame),
    };
    let is_soak = matches!(result, RunResult::Soak(_));
    if let Some(found) = analyse::ranks(run).filter(|_| !is_soak) {
        // Behind the first section, which has the figures that the hosts' are the parts of.
        let at = document.sections.len().min(1);
        document.sections.insert(at, ranks::section(&found));
    }
    document.sections.extend(stalls(run));
    document.sections.extend(cut_off(run));
    document
}

/// When storage or a server stopped answering, if it did.
fn stalls(run: &Run) -> Option<Section> {
    let event = |event: &StallEvent| document::Block::Text(format!("{}  {event}", event.noticed));
    let events: Vec<document::Block> = run.stalls.iter().map(event).collect();
    let lead = "When nothing completed for ten seconds or longer, and when it went on.";
    (!events.is_empty()).then(|| parts::section("stalls", "Stalls", lead, events))
}

/// The same report with a section about each host at every load.
///
/// # Errors
/// One process measured alone.
pub fn with_each_host(run: &Run, mut document: Document) -> Result<Document, Error> {
    let loads = ranks::each_load(run)?;
    document.sections.push(ranks::per_host(&loads));
    Ok(document)
}

/// The same report with how the run ended, if it had several ranks and did not end well: for a
/// journal that is no longer written.
pub fn with_end(run: &Run, mut document: Document) -> Document {
    document.sections.extend(ranks::end(run));
    document
}

/// Each host at every load as CSV.
///
/// # Errors
/// One process measured alone.
pub fn csv_of_hosts(run: &Run) -> Result<String, Error> {
    Ok(ranks::per_host_csv(&ranks::each_load(run)?))
}

/// Says that the journal's last line was lost, if it was.
fn cut_off(run: &Run) -> Option<Section> {
    let lost = "The journal's last line is incomplete and was ignored: the run was killed while \
                writing it.";
    run.cut.then(|| {
        parts::section(
            "cut-off",
            "The end of the journal",
            "",
            vec![document::Block::Text(lost.into())],
        )
    })
}

/// The report as CSV.
pub fn csv(result: &RunResult) -> String {
    match result {
        RunResult::Soak(found) => soak::csv(found),
        RunResult::Watch(found) => watch::csv(found),
        RunResult::Imported(found) => imported::csv(found),
        _ => data::csv(result.points()),
    }
}
