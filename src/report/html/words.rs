//! Makes parts of a page from figures and findings: headlines, sections, tables.

use super::page::{Block, Column, Headline, Section, Table};
use crate::analyse::Estimate;
pub(super) use crate::analyse::quantity::{
    UNKNOWN, bound_in_words, capital, count, from_to, lasting, percent, plus_minus, points, size, time, time_between,
};
use crate::model::{Finding, Severity};
use crate::report::table;

/// A headline rate. `name` is the figure's path in the JSON report.
pub(super) fn rate(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    headline(name, label, figure.value, count(figure.value), plus_minus(figure), note)
}

/// A headline in megabytes per second.
pub(super) fn throughput(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    headline(name, label, figure.value, format!("{} MB/s", count(figure.value)), plus_minus(figure), note)
}

/// A headline time.
pub(super) fn latency(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    headline(name, label, figure.value, time(figure.value), from_to(figure.interval), note)
}

/// A headline of any unit.
pub(super) fn headline(name: &str, label: &str, exact: f64, value: String, interval: String, note: String) -> Headline {
    Headline { name: name.into(), label: label.into(), value, interval, note, exact }
}

/// The section of findings, highest severity first; findings of the same kind appear once.
pub(super) fn findings<'a>(all: impl Iterator<Item = &'a Finding>) -> Section {
    let told: Vec<Finding> = table::grouped(all)
        .into_iter()
        .map(|(finding, others)| {
            let more = if others > 0 { format!(" (and {others} more of this kind)") } else { String::new() };
            Finding { what: format!("{}{more}", finding.what), ..finding.clone() }
        })
        .collect();
    let warnings = told.iter().filter(|finding| finding.severity != Severity::Note).count();
    let lead = match (warnings, told.len()) {
        (_, 0) => "Nothing was found that a reader of these figures must know.".to_string(),
        (0, _) => "No warnings; what is worth knowing beside the figures.".into(),
        (1, _) => "One warning, with its evidence and what to do about it; notes after.".into(),
        (warnings, _) => format!("{warnings} warnings, each with its evidence and what to do about it; notes after."),
    };
    let blocks = if told.is_empty() { Vec::new() } else { vec![Block::Findings(told)] };
    section("findings", "Warnings and notes", &lead, blocks)
}

/// A section; tables without rows are left out.
pub(super) fn section(id: &str, title: &str, lead: &str, mut blocks: Vec<Block>) -> Section {
    blocks.retain(|block| !matches!(block, Block::Table(table) if table.rows.is_empty()));
    Section { id: id.into(), title: title.into(), lead: lead.into(), blocks }
}

/// A table; a `#` before a column name marks a column of numbers.
pub(super) fn rows(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let column = |name: &&str| match name.strip_prefix('#') {
        Some(name) => Column { name: name.into(), is_number: true },
        None => Column { name: (*name).into(), is_number: false },
    };
    Table { caption: caption.into(), columns: columns.iter().map(column).collect(), rows, folded: false }
}
