//! A file to import, and what the parsers share: numbers, and errors that name the file and the
//! line.

use rigel_model::record::Imported;
use rigel_model::record::imported::Figures;
use rigel_model::{Error, failed};

/// A file and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its contents.
    pub text: &'a str,
}

/// Refuses a source without figures.
pub(super) fn refuse_empty(name: &str, found: Imported) -> Result<Imported, Error> {
    let is_empty = match &found.figures {
        Figures::Loads(points) => points.iter().all(|point| point.flows.is_empty()),
        Figures::Series(series) => series.iter().all(|series| series.samples.is_empty()),
        Figures::Database(reports) => reports.is_empty(),
        Figures::Claims(claims) => claims.is_empty(),
    };
    if is_empty {
        return Err(failed!(
            "'{name}' contains no figures, only the headings of {tool}",
            "check that the tool ran to its end and did some I/O",
            tool = found.tool
        ));
    }
    Ok(found)
}

/// The error for a damaged line in a file of a known format.
pub(super) fn damaged(name: &str, line: usize, why: &str, hint: &str) -> Error {
    failed!("'{name}' line {line}: {why}", hint)
}

/// Parses a number as tools write it, with a decimal comma if `comma` is set. Rejects `inf` and
/// `nan`.
pub(super) fn number(text: &str, comma: bool) -> Option<f64> {
    let text = text.trim();
    let text = if comma {
        text.replace(',', ".")
    } else {
        text.to_string()
    };
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// Shortens a text from a file for an error message.
pub(super) fn shortened(text: &str) -> String {
    const LENGTH_MAX: usize = 80;
    let start: String = text.chars().take(LENGTH_MAX).collect();
    if start.len() < text.len() {
        start + "…"
    } else {
        start
    }
}

/// The first `bytes` of a text, or fewer where a character would be cut.
pub(super) fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    &text[..end]
}
