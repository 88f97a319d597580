//! Makes parts of a document from figures and findings: headlines, sections, tables, charts.

use super::document::{
    Axis, Block, Chart, Extent, Headline, Lines, Plot, RunTrust, Section, Series, Unit,
};
pub use rigel_analyse::quantity::{
    Amount, UNKNOWN, bound_in_words, bytes, capital, change, count, counted, lasting,
    mb_per_second, per_second, percent, rounded_percent, share, size, time,
};
use rigel_analyse::{Estimate, Interval, NextRun, Status};
use std::num::NonZeroU32;

/// A headline rate. `name` is the figure's path in the JSON report.
pub fn rate(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    let amount = Amount::new(figure, Unit::Number);
    let (value, interval) = (amount.to_string(), amount.plus_minus());
    headline(name, label, figure.value, value, interval, note)
}

/// A headline in megabytes per second.
pub fn throughput(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    let amount = Amount::new(figure, Unit::MbPerSecond);
    let (value, interval) = (amount.to_string(), amount.plus_minus());
    headline(name, label, figure.value, value, interval, note)
}

/// A headline time.
pub fn latency(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    let amount = Amount::new(figure, Unit::Microseconds);
    let (value, interval) = (amount.to_string(), amount.range());
    headline(name, label, figure.value, value, interval, note)
}

/// A headline of any unit.
pub fn headline(
    name: &str,
    label: &str,
    exact: f64,
    value: String,
    interval: String,
    note: String,
) -> Headline {
    Headline {
        name: name.into(),
        label: label.into(),
        value,
        interval,
        note,
        exact,
        tone: Status::Plain,
        figure: None,
    }
}

/// What earlier runs say of the next one; or of this one, if it is not what they let expect.
pub fn next_run(found: NextRun) -> String {
    let between =
        |interval: Interval| format!("{} to {}", count(interval.low), count(interval.high));
    match found
        .expected_max_iops
        .filter(|_| found.is_as_expected == Some(false))
    {
        None => format!(
            "By {} runs like this one, the next has a max IOPS of {}.",
            found.runs,
            between(found.max_iops)
        ),
        Some(expected) => format!(
            "Unexpected: {} earlier runs predict a max IOPS of {}.",
            found.runs - 1,
            between(expected)
        ),
    }
}

/// The section of findings, by cause.
pub fn findings(trust: &RunTrust) -> Section {
    let lead = match trust.causes.as_slice() {
        [] => "The checks raised no warnings.".to_string(),
        _ => trust.sentence(),
    };
    let blocks = match trust.causes.as_slice() {
        [] => Vec::new(),
        causes => vec![Block::Causes(causes.to_vec())],
    };
    section("findings", "Warnings and notes", &lead, blocks)
}

/// A section; tables without rows are left out.
pub fn section(id: &str, title: &str, lead: &str, mut blocks: Vec<Block>) -> Section {
    blocks.retain(|block| !matches!(block, Block::Table(table) if table.rows.is_empty()));
    Section {
        id: id.into(),
        title: title.into(),
        lead: lead.into(),
        blocks,
        extent: Extent::Full,
    }
}

/// Shows a section on the screen, too: it is the answer, or a part of it.
pub fn on_screen(section: Section) -> Section {
    Section {
        extent: Extent::Screen,
        ..section
    }
}

/// A chart, drawn on a page only.
pub fn chart(id: &str, title: &str, description: String, plot: Plot) -> Chart {
    Chart {
        id: id.into(),
        title: title.into(),
        description,
        plot,
        in_text: false,
    }
}

/// Latency over operations per second.
pub fn latency_over_iops(series: Vec<Series>) -> Lines {
    Lines {
        x: Axis {
            label: "IOPS".into(),
            unit: Unit::PerSecond,
            ..Axis::default()
        },
        y: Axis {
            label: "latency".into(),
            unit: Unit::Microseconds,
            log: true,
            ..Axis::default()
        },
        series,
        ..Lines::default()
    }
}

/// Draws the charts of a section in text, too.
pub fn in_text(mut section: Section) -> Section {
    for block in &mut section.blocks {
        if let Block::Chart(chart) = block {
            chart.in_text = true;
        }
    }
    section
}

/// Where a load is, if several ranks measured together: ` on each of 3 ranks`; else empty.
pub fn on_each(ranks: Option<NonZeroU32>) -> String {
    ranks.map_or_else(String::new, |ranks| format!(" on each of {ranks} ranks"))
}

/// Puts the existing charts side by side.
pub fn beside(charts: impl IntoIterator<Item = Option<Chart>>) -> Option<Block> {
    let mut blocks: Vec<Block> = charts
        .into_iter()
        .flatten()
        .map(|chart| Block::Chart(Box::new(chart)))
        .collect();
    match blocks.len() {
        0 => None,
        1 => blocks.pop(),
        _ => Some(Block::Beside(blocks)),
    }
}

/// Text of a figure that is not known.
pub const NOT_KNOWN: &str = "-";

/// A figure, or [`NOT_KNOWN`].
pub fn known<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NOT_KNOWN.into(), show)
}

/// The precision of a rate: `0.7 %`; `?` if it is not known.
pub fn precision(figure: Estimate) -> String {
    Amount::new(figure, Unit::Number).precision()
}

/// The interval of a rate: `± 0.7 %`.
pub fn plus_minus(figure: Estimate) -> String {
    Amount::new(figure, Unit::Number).plus_minus()
}

/// A time with its interval, for a cell: `458 µs (438 to 463)`.
pub fn time_in_cell(figure: Estimate) -> String {
    Amount::new(figure, Unit::Microseconds).in_cell()
}
