//! The size of what is shown by default: one screen of 80 columns and 24 lines.

/// Columns and lines of a terminal. Two of the lines say where the results are, and one is blank.
const TERMINAL: (usize, usize) = (80, 24 - 3);

/// Fails if `text` does not fit on a screen.
#[track_caller]
pub(crate) fn must_fit(text: &str) {
    let widest = text.lines().map(|line| line.chars().count()).max();
    let (columns, lines) = (widest.unwrap_or(0), text.lines().count());
    assert!(
        columns <= TERMINAL.0 && lines <= TERMINAL.1,
        "{columns} columns, {lines} lines:\n{text}"
    );
}
