//! Sections of a report without its first page, as articles and mails paste them.
//!
//! A text is one if a line begins with the heading of a section of latencies and a ruler follows.
//! There is no window, so that only latencies and what is printed per second can be read.

use super::grid::{Grid, plain};
use super::number::bucket_head;
use crate::ruler::Ruler;

/// Beginnings of the headings, in lower case.
const HEADINGS: &[&str] = &[
    "background wait events",
    "foreground wait events",
    "load profile",
    "top ",
    "wait event histogram",
    "wait events",
];

/// How many lines below a heading its ruler may be. Details of a histogram have eight lines of notes
/// and six of heads between.
const RULER_WITHIN: usize = 20;

/// True for the heading of such a section.
pub(super) fn is_known(heading: &str) -> bool {
    let heading = plain(heading);
    // `Top` also begins sentences.
    let is_other = heading.starts_with("top ") && !heading.contains("event");
    HEADINGS.iter().any(|known| heading.starts_with(known)) && !is_other
}

/// The heading of a table that was pasted without one, by the heads of its columns; `None` for another
/// table.
pub(super) fn heading_of(grid: &Grid) -> Option<&'static str> {
    let has = |names: &[&str]| grid.column(names).is_some();
    let is_histogram = grid
        .header
        .iter()
        .filter_map(|head| bucket_head(head))
        .count()
        > 1;
    if has(&["event"]) && is_histogram {
        Some("Wait Event Histogram")
    } else if has(&["event"]) && has(&["waits"]) {
        Some(if has(&["%bgtime"]) {
            "Background Wait Events"
        } else if has(&["waits/txn"]) {
            "Foreground Wait Events"
        } else {
            "Top Foreground Events"
        })
    } else {
        (has(&["persecond"]) && has(&["pertransaction"])).then_some("Load Profile")
    }
}

/// True if `line` is a heading, and a ruler of several columns is among `below`.
fn is_heading(line: &str, below: &[&str]) -> bool {
    let has_ruler = || {
        let mut near = below.iter().take(RULER_WITHIN);
        near.any(|line| Ruler::of(line.trim_end()).is_some_and(|ruler| ruler.len() > 1))
    };
    is_known(line) && has_ruler()
}

/// True if the text has such a section.
pub(super) fn is_like(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).any(|at| is_heading(lines[at], &lines[at + 1..]))
}

/// The text as sections of a report: without the indentation of each heading, and with the mark of a
/// title where no line of tildes has it.
pub(super) fn as_sections(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut indent = 0;
    let mut sections = String::new();
    for (at, line) in lines.iter().enumerate() {
        let below = &lines[at + 1..];
        let is_heading = is_heading(line, below);
        if is_heading {
            indent = line.len() - line.trim_start_matches(' ').len();
            sections.push('\n');
        }
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let line = line[blanks.min(indent)..].trim_end();
        sections += line;
        let next = below.first().map_or("", |next| next.trim_start());
        if is_heading && !next.starts_with("~~~~") && !line.contains("DB/Inst:") {
            sections += "   DB/Inst:";
        }
        sections.push('\n');
    }
    sections
}
