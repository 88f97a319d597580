//! A table of a report, whether it was text or HTML: what the reader of facts sees.

/// A table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Grid {
    /// The nearest heading above it.
    pub(super) heading: String,
    /// Heads of the columns. Several lines of a head are joined by blanks.
    pub(super) header: Vec<String>,
    /// The cells, trimmed. A row may have fewer cells than the header.
    pub(super) rows: Vec<Vec<String>>,
    /// Widths of the columns in characters, where they are known: a text that is as wide may have
    /// been cut.
    pub(super) widths: Vec<usize>,
    /// Number of words that were left out, because they may belong to either of two columns.
    pub(super) unclear: usize,
}

impl Grid {
    /// The heading in lower case with single blanks.
    pub(super) fn plain_heading(&self) -> String {
        plain(&self.heading)
    }

    /// Index of the first column whose head, without blanks and in lower case, is one of `names`.
    pub(super) fn column(&self, names: &[&str]) -> Option<usize> {
        self.columns(names).next()
    }

    /// As [`Self::column`], all of them.
    pub(super) fn columns<'a>(&'a self, names: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        self.header
            .iter()
            .enumerate()
            .filter(|(_, head)| names.contains(&squeezed(head).as_str()))
            .map(|(at, _)| at)
    }

    /// Index of the first column whose head starts with `start`, without blanks and in lower case.
    pub(super) fn column_from(&self, start: &str) -> Option<usize> {
        self.header
            .iter()
            .position(|head| squeezed(head).starts_with(start))
    }

    /// True if a text of this length in this column may have been cut.
    pub(super) fn may_be_cut(&self, column: usize, text: &str) -> bool {
        self.widths
            .get(column)
            .is_some_and(|width| text.chars().count() >= *width)
    }
}

/// The cell of a row, or an empty text.
pub(super) fn cell(row: &[String], column: Option<usize>) -> &str {
    column
        .and_then(|column| row.get(column))
        .map_or("", String::as_str)
}

/// Without blanks, in lower case.
pub(super) fn squeezed(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// With single blanks, in lower case.
pub(crate) fn plain(text: &str) -> String {
    words(text).to_lowercase()
}

/// With single blanks.
pub(super) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
