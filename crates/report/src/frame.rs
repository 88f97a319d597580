//! What every document begins with: title, heading, and what was measured.

use super::document::Document;
use super::setup;
use rigel_analyse::{Conclusion, RunTrust};
use rigel_model::record::journal::Header;
use rigel_model::{Moment, Target};

/// Title, heading, conclusion, and how far it can be trusted.
pub fn frame(header: &Header, conclusion: Conclusion, trust: RunTrust) -> Document {
    let verb = &header.invocation.verb;
    let begun = begun(header);
    let target = &header.facts.name;
    Document {
        title: format!("{target}: rigel {verb}, {begun}"),
        heading: heading(header),
        conclusion,
        trust: Some(trust),
        ..Document::default()
    }
}

/// `rigel calibrate of /data, 2026-01-02 03:04`.
pub(super) fn heading(header: &Header) -> String {
    let (verb, target) = (&header.invocation.verb, &header.facts.name);
    let others = match header.facts_of_others.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    format!("rigel {verb} of {target}{others}, {}", begun(header))
}

/// When the run began, without its seconds.
fn begun(header: &Header) -> String {
    let begun = header.started.parse::<Moment>();
    begun.map_or_else(|_| header.started.clone(), Moment::short)
}

/// As [`about`], after a line about the server, if the run has one.
pub fn about_server(header: &Header, workload: &str, measured: &str) -> String {
    let about = about(header, workload, measured);
    match &header.facts.server {
        Some(server) => format!("{}; {about}", setup::server_line(server)),
        None => about,
    }
}

/// What was measured and how, in a line: size, workload, engine, and how much was measured.
pub fn about(header: &Header, workload: &str, measured: &str) -> String {
    // The name of a scratch file contains its size, and so does the line about a server's tables.
    let size = match header.target {
        Target::Scratch { .. } | Target::Sql(_) => String::new(),
        _ if header.facts.usable.0 == 0 => String::new(),
        _ => header.facts.usable.to_string(),
    };
    let engine = format!("by {}{}", header.engine.name, setup::manner(header));
    let parts = [
        size,
        workload.into(),
        engine,
        measured.into(),
        format!("Rigel {}", header.version),
    ];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}
