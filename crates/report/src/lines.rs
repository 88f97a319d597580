//! Lines of text: wrapped words, and tables with aligned columns.

use super::document::{Column, Extent, Table};
use rigel_model::in_line;
use std::fmt::Write;

/// Minimum number of columns of the last column of a table, which is wrapped.
const LAST_WIDTH_MIN: usize = 30;

/// Wraps words after `opening` to `width` columns; further lines are indented by `hang`. A longer
/// word has its own line.
pub(super) fn wrapped(opening: &str, words: &str, hang: usize, width: usize) -> String {
    let (mut text, mut line) = (String::new(), opening.to_string());
    for word in words.split_whitespace() {
        let is_blank = line.trim().is_empty();
        if !is_blank && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(hang);
        } else if !is_blank {
            line.push(' ');
        }
        line.push_str(word);
    }
    text + &line + "\n"
}

/// A table with aligned columns; the last column is wrapped if it is long.
pub(super) fn table(table: &Table, extent: Extent, width: usize) -> String {
    let shown: Vec<usize> = (0..table.columns.len())
        .filter(|at| table.columns[*at].extent <= extent)
        .collect();
    let cell = |row: &[String], at: usize| {
        row.get(at)
            .map_or_else(String::new, |cell| in_line(cell).into_owned())
    };
    let mut rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| shown.iter().map(|at| cell(row, *at)).collect())
        .collect();
    let columns: Vec<&Column> = shown.iter().map(|at| &table.columns[*at]).collect();
    if columns.is_empty() {
        return String::new();
    }
    if columns.iter().any(|column| !column.name.is_empty()) {
        rows.insert(
            0,
            columns.iter().map(|column| column.name.clone()).collect(),
        );
    }
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            rows.iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate().filter(|(at, _)| widths[*at] > 0) {
            let gap = if line.is_empty() { "" } else { "  " };
            let space = " ".repeat(widths[at] - cell.chars().count());
            let begin = line.chars().count() + gap.len();
            let shown = match (columns[at].is_number, at + 1 == row.len()) {
                (true, _) => format!("{gap}{space}{cell}"),
                (false, true)
                    if width.saturating_sub(begin) >= LAST_WIDTH_MIN && !cell.is_empty() =>
                {
                    wrapped(&" ".repeat(begin), cell, begin, width).split_off(line.chars().count())
                }
                (false, _) => format!("{gap}{cell}{space}"),
            };
            line += &shown;
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
