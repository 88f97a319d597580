//! Reports in all formats: text, JSON and CSV, HTML, Orion's own files, fio's job files.
//!
//! Input: a journal that was read. Output: text. Each verb builds a [`Document`] from the parts that
//! are here, which [`text`] and [`html`] render. Pure: nothing here opens a file or reads a
//! clock.

use document::{Document, Section};
use rigel_analyse as analyse;
use rigel_model::Error;
use rigel_model::record::StallEvent;
use rigel_model::record::journal::Run;

pub mod advice;
pub mod against;
pub mod answers;
pub mod chart;
pub mod claimed;
pub mod columns;
pub mod compare;
pub mod csv;
pub mod data;
pub mod database;
pub mod distribution;
pub mod document;
pub mod event_distribution;
pub mod fio;
pub mod frame;
#[cfg(test)]
#[path = "../../../tests/common/golden.rs"]
pub(crate) mod golden;
pub mod html;
mod lines;
pub mod loops;
pub mod neighbours;
pub mod openmetrics;
pub mod parts;
pub mod points;
pub mod ranks;
pub mod screen;
pub mod setup;
pub mod soak;
pub mod sql;
pub mod text;
pub mod throughput;
pub mod timeline;
pub mod unit;

/// The document with what every run may have behind its own sections: its hosts, stalls, and that the
/// journal was cut off. A soak says itself what its hosts did.
pub fn completed(run: &Run, mut document: Document) -> Document {
    let is_soak = run.header.invocation.verb == "soak";
    if let Some(found) = analyse::ranks(run).filter(|_| !is_soak) {
        // Behind the first section, which has the figures that the hosts' are the parts of.
        let place = document.sections.len().min(1);
        document.sections.insert(place, ranks::section(&found));
    }
    document.sections.extend(stalls(run));
    document.sections.extend(cut_off(run));
    document
}

/// Events of stalls that a report lists: a watch may be of weeks.
const EVENTS_MAX: usize = 200;

/// When storage or a server stopped answering, if it did.
fn stalls(run: &Run) -> Option<Section> {
    let event = |event: &StallEvent| document::Block::Text(format!("{}  {event}", event.noticed));
    let mut events: Vec<document::Block> = run.stalls.iter().take(EVENTS_MAX).map(event).collect();
    let left_out = run.stalls.len() - events.len();
    if left_out > 0 {
        events.push(document::Block::Text(format!(
            "{left_out} more are in the JSON report."
        )));
    }
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

/// The same report with the exit status of a run of several ranks that did not end well.
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
