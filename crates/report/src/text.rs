//! Renders a document as text: one screen of it ([`screen`]), or all, at most 120 columns wide where
//! its tables allow it.
//!
//! In all of it, warnings and notes come last, next to the prompt. Charts are drawn in plain
//! characters if they are made for that; of the others, the text has the description.

use super::document::{
    Block, CauseFound, Chart, Column, Document, Extent, Headline, Heat, Lines, Merge, Plot,
    Section, Series, Table,
};
use super::lines::{self, wrapped};
use super::unit;
use super::{chart, parts, screen};
use rigel_analyse::median;
use rigel_model::{Severity, in_line};
use std::fmt::Write;

/// Maximum number of columns of wrapped text.
const WIDTH: usize = 118;
/// Columns of the longest bar of a time series.
const BAR: f64 = 40.0;
/// Maximum number of rows of a time series; of a longer one, several values share a row.
const ROWS_MAX: usize = 26;
/// Maximum number of columns of a heat map whose values are written.
const WRITTEN_MAX: usize = 8;
/// Bar characters from zero to the maximum.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Renders a document.
pub fn render(document: &Document, extent: Extent) -> String {
    let document = &document.in_words();
    if extent == Extent::Screen {
        return screen::screen(document);
    }
    let mut text = wrapped("", &document.heading, 2, WIDTH);
    if !document.about.is_empty() {
        text += &wrapped("", &document.about, 2, WIDTH);
    }
    text.push('\n');
    text += &wrapped("", &document.answer(), 0, WIDTH);
    if !document.headlines.is_empty() {
        text.push('\n');
        text += &table(&headlines(&document.headlines));
    }
    if let Some(trust) = &document.trust {
        text.push('\n');
        text += &wrapped("", &trust.sentence(), 0, WIDTH);
    }
    for sentence in &document.standing {
        text += &wrapped("", sentence, 0, WIDTH);
    }
    for section in &document.sections {
        text += &self::section(section);
    }
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let causes = blocks.filter_map(|block| match block {
        Block::Causes(causes) => Some(causes),
        _ => None,
    });
    text + &self::causes(&causes.flatten().collect::<Vec<_>>())
}

/// A table in its full width.
fn table(table: &Table) -> String {
    lines::table(table, Extent::Full, WIDTH)
}

/// The headline figures as a table without a header.
fn headlines(all: &[Headline]) -> Table {
    let row = |headline: &Headline| {
        vec![
            headline.label.clone(),
            headline.value.clone(),
            headline.interval.clone(),
            headline.note.clone(),
        ]
    };
    Table {
        columns: vec![Column::default(); 4],
        rows: all.iter().map(row).collect(),
        ..Table::default()
    }
}

/// A section with its title; empty if none of its blocks is shown. Findings are not part of it.
pub fn section(section: &Section) -> String {
    let is_table = |block: &&&Block| matches!(block, Block::Table(_));
    let with_captions = flat(&section.blocks).iter().filter(is_table).count() > 1;
    let mut blocks = String::new();
    for block in flat(&section.blocks) {
        let shown = match block {
            Block::Table(table) if with_captions => {
                wrapped("", &table.caption, 0, WIDTH) + &self::table(table)
            }
            Block::Table(table) => self::table(table),
            Block::Chart(chart) => self::chart(chart),
            Block::Text(text) => wrapped("", text, 0, WIDTH),
            Block::Code(code) => {
                let lines = code.lines().map(|line| format!("  {}\n", in_line(line)));
                lines.collect()
            }
            Block::Causes(_) | Block::Beside(_) => String::new(),
        };
        if !shown.is_empty() {
            if !blocks.is_empty() && !matches!(block, Block::Text(_)) {
                blocks.push('\n');
            }
            blocks += &shown;
        }
    }
    if blocks.is_empty() {
        return String::new();
    }
    let lead = match section.lead.as_str() {
        "" => String::new(),
        lead => wrapped("", lead, 0, WIDTH),
    };
    let title = in_line(&section.title);
    let rule = "-".repeat(title.chars().count());
    format!("\n{title}\n{rule}\n{lead}{blocks}")
}

/// The blocks, with those side by side one after the other.
fn flat(blocks: &[Block]) -> Vec<&Block> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            Block::Beside(inside) => all.extend(flat(inside)),
            block => all.push(block),
        }
    }
    all
}

fn chart(chart: &Chart) -> String {
    if !chart.in_text {
        return wrapped("", &chart.description, 0, WIDTH);
    }
    let drawing = match &chart.plot {
        Plot::Lines(lines) => chart::draw(lines),
        Plot::Stack { panels } => time_series(panels),
        Plot::Heat(heat) => heat_map(heat),
        // Its figures are in a table of the document.
        Plot::Changes(_) => String::new(),
    };
    if drawing.is_empty() {
        wrapped("", &chart.description, 0, WIDTH)
    } else {
        drawing
    }
}

/// Panels with a common axis as rows: a bar for the first series of the first panel, and columns
/// for the other series of the first two.
fn time_series(panels: &[Lines]) -> String {
    let Some((first, main)) = panels
        .first()
        .and_then(|panel| Some((panel, panel.series.first()?)))
    else {
        return String::new();
    };
    let each = main.x.len().div_ceil(ROWS_MAX).max(1);
    let greatest = main.y.iter().flatten().copied().fold(0.0, f64::max);
    let others: Vec<(&Lines, &Series)> = panels
        .iter()
        .take(2)
        .flat_map(|panel| panel.series.iter().map(move |series| (panel, series)))
        .filter(|(_, series)| !std::ptr::eq(*series, main))
        .take(4)
        .collect();
    let column = |name: &str, is_number| Column {
        name: name.into(),
        is_number,
        ..Column::default()
    };
    let mut columns = vec![column(&first.x.label, false), column(&main.name, true)];
    columns.push(column(
        &format!("full width is {}", unit::text(first.y.unit, greatest)),
        false,
    ));
    // Values that share a row hide their minimum, unless a series shows it.
    let with_minimum = each > 1
        && others
            .iter()
            .all(|(_, series)| series.merge != Merge::Least);
    if with_minimum {
        columns.push(column("minimum", true));
    }
    columns.extend(others.iter().map(|(_, series)| column(&series.name, true)));
    let rows = (0..main.x.len()).step_by(each).map(|from| {
        let range = main.x[from]..main.x.get(from + each).copied().unwrap_or(f64::INFINITY);
        let within = |series: &Series| -> Vec<f64> {
            let inside = series
                .x
                .iter()
                .zip(&series.y)
                .filter(|(x, _)| range.contains(*x));
            inside.filter_map(|(_, y)| *y).collect()
        };
        let shown = |value: Option<f64>, lines: &Lines| {
            parts::known(value, |value| unit::text(lines.y.unit, value))
        };
        let value = median(&within(main));
        let mut row = vec![unit::text(first.x.unit, main.x[from]), shown(value, first)];
        row.push(value.map_or_else(String::new, |value| bar(value / greatest)));
        if with_minimum {
            row.push(shown(within(main).into_iter().reduce(f64::min), first));
        }
        row.extend(
            others
                .iter()
                .map(|(lines, series)| shown(series.merge.of(&within(series)), lines)),
        );
        row
    });
    table(&Table {
        rows: rows.collect(),
        columns,
        ..Table::default()
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most the bar's columns"
)]
fn bar(share: f64) -> String {
    "█".repeat(((share * BAR).round() as usize).max(1))
}

/// Rows of values; as bars of different height if there are many columns.
fn heat_map(heat: &Heat) -> String {
    let greatest = heat
        .values
        .iter()
        .flatten()
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    let is_written = heat.columns.len() <= WRITTEN_MAX;
    let cells = |values: &[Option<f64>]| -> Vec<String> {
        if is_written {
            let shown =
                |value: &Option<f64>| parts::known(*value, |value| unit::text(heat.unit, value));
            return values.iter().map(shown).collect();
        }
        vec![
            values
                .iter()
                .map(|value| value.map_or(' ', |value| level(value / greatest)))
                .collect(),
        ]
    };
    let rows = heat.rows.iter().zip(&heat.values).rev();
    let rows = rows
        .map(|(name, values)| std::iter::once(name.clone()).chain(cells(values)).collect())
        .collect();
    let names = if is_written {
        heat.columns.clone()
    } else {
        // The first and the last column, as far apart as they are drawn.
        let (first, last) = (heat.columns.first().cloned(), heat.columns.last().cloned());
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        vec![format!(
            "{first}{last:>width$}",
            width = heat.columns.len().saturating_sub(first.chars().count())
        )]
    };
    let numbers = names.into_iter().map(|name| Column {
        name,
        is_number: is_written,
        ..Column::default()
    });
    let corner = Column {
        name: heat.y_label.clone(),
        ..Column::default()
    };
    let table = Table {
        columns: std::iter::once(corner).chain(numbers).collect(),
        rows,
        ..Table::default()
    };
    let key = if is_written {
        String::new()
    } else {
        format!("; █ is {}", unit::text(heat.unit, greatest))
    };
    format!(
        "{}, by {} and {}{key}\n{}",
        heat.label,
        heat.y_label,
        heat.x_label,
        self::table(&table)
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of eight levels"
)]
fn level(share: f64) -> char {
    LEVELS[((share.clamp(0.0, 1.0) * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

/// Each cause with its findings and their hints, one line each; empty if there are none.
pub(super) fn causes(all: &[&CauseFound]) -> String {
    let mut text = String::new();
    for found in all {
        let severity = match found.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Refusal => "refused",
        };
        let _ = writeln!(text, "\n{severity}: {}", found.title());
        for finding in &found.findings {
            let _ = writeln!(text, "  {}: {}", finding.name, finding.what);
            if !finding.hint.is_empty() {
                let _ = writeln!(text, "    hint: {}", finding.hint);
            }
        }
    }
    text
}
