//! One screen of text: the answer, its figures, whether to trust them, and what to do next.
//!
//! Whatever the document has, it fits into 24 lines of 80 columns, together with the lines that say
//! where the journal and the page are. What is left out here is in the full text, which
//! `rigel report RUN --verbose` prints, on the page and in JSON.

use super::document::{Block, Document, Extent, HEADLINES_MAX, Headline, Section, Table};
use super::lines::{self, wrapped};
use rigel_model::in_line;
use std::fmt::Write;

/// Columns of a terminal.
pub(super) const WIDTH: usize = 80;
/// Lines of the text: those of a terminal, without the ones that say where the results are.
pub const LINES_MAX: usize = 20;
/// Maximum number of lines of the answer.
const ANSWER_MAX: usize = 5;
/// Maximum width of what is aligned in columns.
const ALIGNED_MAX: usize = 28;
/// Maximum number of rows of a table.
const ROWS_MAX: usize = 10;
/// Number of rows that are shown after the one that decides, if not all are.
const ROWS_AFTER: usize = 1;
/// Maximum number of lines of what is known beside the answer and of what to do next.
const NEXT_MAX: usize = 6;
/// Maximum number of commands to run next.
const COMMANDS_MAX: usize = 3;
/// Least width of a column that may be cut.
const CUT_MIN: usize = 16;
/// Columns that a line may lose because its next word is too long.
const WORD_MAX: usize = 12;
/// Minimum number of lines of a table: its header, a row, and how many more there are.
const TABLE_MIN: usize = 3;

/// Renders one screen of a document.
pub(super) fn screen(document: &Document) -> String {
    let answered = document
        .sections
        .iter()
        .filter(|section| section.extent == Extent::Screen && table_of(section).is_some());
    let answered: Vec<&Section> = answered.collect();
    let mut text = format!("{}\n", heading(&in_line(&document.heading)));
    if !document.conclusion.sentence.is_empty() {
        let _ = write!(text, "\n{}", answer(&document.answer()));
    }
    // A table that is the answer has the figures.
    if answered.is_empty() && !document.headlines.is_empty() {
        let _ = write!(text, "\n{}", figures(document));
    }
    let ending = ending(document);
    for section in &answered {
        let room = LINES_MAX.saturating_sub(lines_of(&text) + lines_of(&ending) + 1);
        if room >= TABLE_MIN
            && let Some(table) = table_of(section)
        {
            let title = if answered.len() > 1 {
                format!("{}\n", shortened(&section.title, WIDTH))
            } else {
                String::new()
            };
            let table = small(table, room - lines_of(&title));
            let _ = write!(text, "\n{title}{table}");
        }
    }
    text + &ending
}

/// The first table of a section.
fn table_of(section: &Section) -> Option<&Table> {
    section.blocks.iter().find_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    })
}

fn lines_of(text: &str) -> usize {
    text.lines().count()
}

/// The conclusion, or as many of its sentences as fit.
fn answer(sentence: &str) -> String {
    let fits = |text: &str| lines_of(&wrapped("", text, 0, WIDTH)) <= ANSWER_MAX;
    if fits(sentence) {
        return wrapped("", sentence, 0, WIDTH);
    }
    let is_end = |at: usize| sentence[at + 2..].starts_with(|c: char| c.is_uppercase());
    let ends = sentence
        .match_indices(". ")
        .map(|(at, _)| at)
        .filter(|at| is_end(*at));
    match ends.filter(|at| fits(&sentence[..=*at])).last() {
        Some(end) => wrapped("", &sentence[..=end], 0, WIDTH),
        None => wrapped("", &shortened(sentence, ANSWER_MAX * (WIDTH - 8)), 0, WIDTH),
    }
}

/// The headline figures, one line each: label, value and interval, then as much of the note as fits.
fn figures(document: &Document) -> String {
    let all = &document.headlines[..document.headlines.len().min(HEADLINES_MAX)];
    // One long interval would leave no room for the notes of the others.
    let width = |of: fn(&Headline) -> &str| {
        let widths = all.iter().map(|headline| of(headline).chars().count());
        let widths = widths.filter(|width| *width <= ALIGNED_MAX);
        widths.max().unwrap_or(0)
    };
    let label = width(|headline| &headline.label);
    let value = width(|headline| &headline.value);
    let interval = width(|headline| &headline.interval);
    let mut text = String::new();
    for headline in all {
        let figure = format!(
            "{:label$}  {:value$}  {:interval$}",
            headline.label, headline.value, headline.interval
        );
        let room = WIDTH.saturating_sub(figure.chars().count() + 2);
        let note = match shortened(&in_line(&headline.note), room) {
            cut if cut.ends_with('…') => String::new(),
            note => note,
        };
        let line = format!("{figure}  {note}");
        let _ = writeln!(text, "{}", shortened(line.trim_end(), WIDTH));
    }
    text
}

/// A table with the columns that fit side by side, and the rows that fit into `room` lines.
fn small(table: &Table, room: usize) -> String {
    let mut shown: Vec<usize> = (0..table.columns.len())
        .filter(|at| table.columns[*at].extent == Extent::Screen)
        .collect();
    let width = |at: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest
            .unwrap_or(0)
            .max(table.columns[at].name.chars().count())
            + 2
    };
    let least = |at: usize| {
        let is_cut = table.columns[at].may_be_cut;
        if is_cut {
            width(at).min(CUT_MIN)
        } else {
            width(at)
        }
    };
    while shown.len() > 1 && shown.iter().map(|at| least(*at)).sum::<usize>() > WIDTH + 2 {
        let last_number = shown.iter().rposition(|at| table.columns[*at].is_number);
        shown.remove(last_number.unwrap_or(shown.len() - 1));
    }
    let has_header = shown.iter().any(|at| !table.columns[*at].name.is_empty());
    let room = room.saturating_sub(usize::from(has_header)).min(ROWS_MAX);
    let rows = if table.rows.len() > room {
        room.saturating_sub(1)
    } else {
        room
    };
    let kept = rows_kept(table, rows);
    let cells = |row: &Vec<String>| {
        let cell = |at: &usize| row.get(*at).cloned().unwrap_or_default();
        shown.iter().map(cell).collect()
    };
    let narrow = Table {
        columns: shown.iter().map(|at| table.columns[*at].clone()).collect(),
        rows: table
            .rows
            .iter()
            .enumerate()
            .filter(|(at, _)| kept.contains(at))
            .map(|(_, row)| cells(row))
            .collect(),
        ..Table::default()
    };
    let text = lines::table(&narrow, Extent::Screen, usize::MAX);
    let mut text: String = text
        .lines()
        .map(|line| shortened(line, WIDTH) + "\n")
        .collect();
    if table.rows.len() > rows {
        let _ = writeln!(text, "and {} more rows", table.rows.len() - rows);
    }
    text
}

/// The rows of a table that are shown if there is room for `room`: those that decide, the one after them,
/// then those before, nearest first, and at last those behind.
fn rows_kept(table: &Table, room: usize) -> Vec<usize> {
    let all = table.rows.len();
    let after = table.deciding.last().map_or(0, |at| at + 1 + ROWS_AFTER);
    let after = after.min(all);
    // The last one is the limit that was found.
    let deciding = table.deciding.iter().rev().copied();
    let others = (0..after).rev().chain(after..all);
    let mut kept: Vec<usize> = Vec::new();
    for at in deciding.chain(others) {
        if kept.len() < room && !kept.contains(&at) {
            kept.push(at);
        }
    }
    kept
}

/// The line of trust, then what to do: about each cause, or next. Empty if nothing was judged.
fn ending(document: &Document) -> String {
    let Some(trust) = &document.trust else {
        return String::new();
    };
    let mut text = format!("\n{}\n", shortened(&trust.sentence(), WIDTH));
    let mut next_max = NEXT_MAX;
    for sentence in &document.standing {
        // Half a sentence says little: one more line has the rest.
        let whole = wrapped("", &shortened(sentence, 2 * WIDTH - WORD_MAX), 0, WIDTH);
        let is_short = lines_of(&whole) <= 2;
        let shown = if is_short {
            whole
        } else {
            shortened(sentence, WIDTH) + "\n"
        };
        next_max = next_max.saturating_sub(lines_of(&shown));
        text.push_str(&shown);
    }
    let hints = trust
        .doubts()
        .map(|found| (found.cause.title(), found.hint()));
    let mut hints: Vec<(&str, &str)> = hints.filter(|(_, hint)| !hint.is_empty()).collect();
    // What is to be done about several causes is said once.
    for at in (1..hints.len()).rev() {
        if let Some(same) = hints[..at].iter().position(|one| one.1 == hints[at].1) {
            hints[same].0 = "details";
            hints.remove(at);
        }
    }
    let width = hints.iter().map(|(title, _)| title.len()).max();
    let width = width.unwrap_or(0);
    for (title, hint) in &hints {
        if next_max == 0 {
            break;
        }
        let (hint, room) = (in_line(hint), WIDTH - width - 4);
        let mut line = shortened(&hint, room);
        // Half a sentence is no hint: one more line has the rest.
        if line.ends_with('…') {
            let indent = " ".repeat(width + 4);
            let whole = wrapped("", &shortened(&hint, 2 * room - WORD_MAX), 0, room);
            if lines_of(&whole) == 2 && next_max >= 2 {
                line = whole.trim_end().replace('\n', &format!("\n{indent}"));
            }
        }
        let shown = format!("  {title:width$}  {line}\n");
        next_max = next_max.saturating_sub(lines_of(&shown));
        text.push_str(&shown);
    }
    if hints.is_empty() {
        for next in document.next.iter().take(next_max.min(COMMANDS_MAX)) {
            let _ = writeln!(text, "Next: {}", command(next, WIDTH - 6));
        }
    }
    text
}

/// A command with its comment; without it, if both are wider than `width` columns.
fn command(next: &str, width: usize) -> String {
    match next.split_once("  # ") {
        Some((command, _)) if next.chars().count() > width => shortened(command, width),
        _ => shortened(next, width),
    }
}

/// As much of a text as fits into `width` columns and makes sense: up to a punctuation mark, else up
/// to a word.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    let fits = &text[..place(text, width)];
    let marks = ["; ", ", or ", ", and ", ", ", ": ", ". ", " ("];
    // Nothing that was opened before a mark may be left open.
    let is_closed = |at: &usize| {
        let count = |sign: char| fits[..*at].matches(sign).count();
        count('(') == count(')') && count('`').is_multiple_of(2)
    };
    let marks = marks.iter().flat_map(|mark| fits.match_indices(*mark));
    let mark = marks.map(|(at, _)| at).filter(is_closed).max();
    // Half a line says more than two words.
    if let Some(at) = mark.filter(|at| fits[..*at].chars().count() * 2 >= width) {
        return text[..at].trim_end().into();
    }
    let fits = &text[..place(text, width.saturating_sub(1))];
    let word = fits.rfind(' ').filter(|at| *at > 0).unwrap_or(fits.len());
    format!("{}…", fits[..word].trim_end())
}

/// The heading in one line. What is measured may be long: its date is kept whole.
fn heading(text: &str) -> String {
    match text.rsplit_once(", ") {
        Some((what, when)) if when.chars().count() * 2 < WIDTH => {
            let room = WIDTH - when.chars().count() - 2;
            format!("{}, {when}", cut_at_comma(what, room))
        }
        _ => cut(text, WIDTH),
    }
}

/// As [`cut`], but behind a comma if there is one: half a number of a model would be another one.
fn cut_at_comma(text: &str, width: usize) -> String {
    let short = cut(text, width);
    match short.strip_suffix('…').and_then(|kept| kept.rfind(',')) {
        Some(comma) if text.chars().count() > width => format!("{}…", &short[..=comma]),
        _ => short,
    }
}

/// As many characters as fit into `width` columns: for names, which have no punctuation.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    format!("{}…", &text[..place(text, width.saturating_sub(1))])
}

/// Where the character with this number begins.
fn place(text: &str, number: usize) -> usize {
    let character = text.char_indices().nth(number);
    character.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::TableOf;
    use crate::document::Conclusion;
    use crate::parts;
    use rigel_analyse::RunTrust;
    use rigel_model::{Finding, FindingName};

    fn crowded() -> Document {
        let findings = [
            FindingName::OtherLoad,
            FindingName::CpuBusy,
            FindingName::Cache,
            FindingName::Stall,
        ]
        .map(|name| Finding::warning(name, "it was so", "do this ".repeat(30)));
        Document {
            heading: "rigel curve of a disk with a very long name, ".repeat(4),
            conclusion: Conclusion {
                sentence: "It does a certain number of reads per second. ".repeat(20),
                ..Conclusion::default()
            },
            headlines: vec![
                parts::headline(
                    "a",
                    "max IOPS",
                    1.0,
                    "1".into(),
                    "± 1 %".into(),
                    "of reads; ".repeat(30)
                );
                6
            ],
            trust: Some(RunTrust::of(findings.iter(), &[])),
            standing: vec!["By 8 runs like this one, it has as much. ".repeat(3)],
            ..Document::default()
        }
    }

    #[test]
    fn whatever_a_document_has_fits_on_a_screen() {
        let mut document = crowded();
        for with_table in [false, true] {
            if with_table {
                let table = TableOf::of("", 0..50)
                    .text("a", |_| "words ".repeat(5))
                    .number("b", |_| "1".repeat(30))
                    .number("c", |_| "2".repeat(30));
                let section = parts::section("t", "T", "", vec![table.block()]);
                document.sections.push(parts::on_screen(section));
            }
            let text = screen(&document);
            assert!(lines_of(&text) <= LINES_MAX, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= WIDTH),
                "{text}"
            );
            assert!(
                text.contains("Trust: with care: memory or a cache answered"),
                "{text}"
            );
            assert_eq!(text.contains("more rows"), with_table, "{text}");
        }
    }

    #[test]
    fn rows_that_decide_are_shown_however_many_there_are() {
        let shown = |deciding: &[usize], room: usize| {
            let table = Table {
                rows: vec![Vec::new(); 20],
                deciding: deciding.to_vec(),
                ..Table::default()
            };
            let mut kept = rows_kept(&table, room);
            kept.sort_unstable();
            kept
        };
        assert_eq!(shown(&[], 4), [0, 1, 2, 3]);
        assert_eq!(shown(&[10], 4), [8, 9, 10, 11]);
        assert_eq!(shown(&[2, 15, 16], 5), [2, 14, 15, 16, 17]);
        assert_eq!(shown(&[0, 2, 15, 16], 3), [2, 15, 16]);
        assert_eq!(shown(&[19], 3), [17, 18, 19]);
    }

    #[test]
    fn a_hint_is_not_cut_within_a_clause_if_two_lines_have_it() {
        let hint = "run as root, or install PostgreSQL 16 or newer or load tables that are several \
                    times as large as the memory";
        let warning = Finding::warning(FindingName::PageCacheUnlimited, "it was so", hint);
        let document = Document {
            trust: Some(RunTrust::of([warning].iter(), &[])),
            ..crowded()
        };
        let text = screen(&document);
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.ends_with(hint), "{text}");
        assert!(lines_of(&text) <= LINES_MAX, "{text}");
    }

    #[test]
    fn a_text_is_cut_where_it_still_makes_sense() {
        let hint = "find it with `iotop -o` and stop it, or measure at a quieter time";
        assert_eq!(shortened(hint, 80), hint);
        assert_eq!(shortened(hint, 50), "find it with `iotop -o` and stop it");
        let server = "use a server with direct I/O (PostgreSQL 16, or newer), or less memory";
        assert_eq!(shortened(server, 50), "use a server with direct I/O");
        assert_eq!(shortened("one two three", 9), "one two…");
        assert_eq!(shortened("", 0), "");
    }

    #[test]
    fn without_doubts_the_next_command_follows() {
        let document = Document {
            trust: Some(RunTrust::default()),
            standing: vec!["By 8 runs, as much.".into()],
            next: vec!["rigel report RUN".into()],
            ..Document::default()
        };
        let end = "\nTrust: good.\nBy 8 runs, as much.\nNext: rigel report RUN\n";
        assert!(screen(&document).ends_with(end));
        let next = "rigel fit RUN TARGET  # carried?";
        assert_eq!(command(next, 32), next);
        assert_eq!(
            command(next, 31),
            "rigel fit RUN TARGET",
            "it can be pasted"
        );
    }
}
