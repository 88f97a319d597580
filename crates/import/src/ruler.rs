//! Columns of a text by the ruler of dashes below their heads: the cells of a line, and the heads.
//!
//! Input: the lines of a table. Output: cells, never a part of a number: a number that touches two
//! columns and may belong to either is left out and counted.

use rigel_model::{Bytes, Error, usage};
use std::borrow::Cow;

/// Columns of a table by the dashes of its ruler: where each begins, and the width of its dashes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruler(Vec<(usize, usize)>);

/// The cells of a line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LineCells {
    /// The cells, trimmed.
    pub(super) cells: Vec<String>,
    /// Number of words that were left out, because they may belong to either of two columns.
    pub(super) unclear: usize,
}

/// A word of a line: where it begins and ends in characters, and in bytes.
#[derive(Debug, Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    from: usize,
    to: usize,
}

impl Ruler {
    /// Reads a ruler: groups of dashes, or of tildes as on the first page of a report.
    pub(super) fn of(line: &str) -> Option<Self> {
        let mut groups: Vec<(usize, usize)> = Vec::new();
        let mut before = ' ';
        for (column, c) in line.chars().enumerate() {
            match c {
                '-' | '~' if before == c => groups.last_mut()?.1 += 1,
                '-' | '~' => groups.push((column, 1)),
                ' ' => {}
                _ => return None,
            }
            before = c;
        }
        (!groups.is_empty()).then_some(Self(groups))
    }

    /// True for a dashed line below a table: one long group behind blanks.
    pub(super) fn is_end(&self) -> bool {
        matches!(self.0[..], [(start, width)] if start >= 8 && width >= 20)
    }

    /// Adds a column before the first group, for labels above which there are no dashes.
    pub(super) fn with_labels(mut self) -> Self {
        if self.0.first().is_some_and(|(start, _)| *start > 2) {
            self.0.insert(0, (0, usize::MAX));
        }
        self
    }

    /// Cuts a line into cells. A column reaches to where the next one begins, and columns behind the
    /// line's end have no cell, except the first, so that a row takes no more than its line.
    ///
    /// A word that touches two columns stays whole. Texts are left-aligned and belong to the column
    /// in which they begin, numbers are right-aligned and belong to the column in which they end. A
    /// number that fills the end of a column that has nothing else may be that column's.
    pub(super) fn cells(&self, line: &str) -> LineCells {
        let words = words(line);
        let length = words.last().map_or(0, |word| word.end);
        let reached = self.0.partition_point(|(start, _)| *start < length).max(1);
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; reached];
        let mut is_unclear = vec![false; reached];
        let mut unclear = 0;
        // True behind a number that may have moved the rest of its line.
        let mut is_moved = false;
        for word in words {
            let text = &line[word.from..word.to];
            let (first, last) = (self.column_of(word.start), self.column_of(word.end - 1));
            let column = if is_number(text) {
                self.column_of_number(word, first, last, is_moved, &spans)
            } else if first < last && word.start >= self.dashes_end(first) {
                Some(last)
            } else {
                Some(first)
            };
            is_moved |= column.is_none();
            if let Some(column) = column.filter(|column| !is_unclear[*column]) {
                let from = spans[column].map_or(word.from, |(from, _)| from);
                spans[column] = Some((from, word.to));
                continue;
            }
            unclear += 1;
            for column in first..=last {
                is_unclear[column] = true;
                spans[column] = None;
            }
        }
        LineCells {
            cells: spans
                .into_iter()
                .map(|span| span.map_or_else(String::new, |(from, to)| line[from..to].to_string()))
                .collect(),
            unclear,
        }
    }

    /// The column of a number that begins in `first` and ends in `last`; `None` if it may be either's.
    fn column_of_number(
        &self,
        word: Word,
        first: usize,
        last: usize,
        is_moved: bool,
        spans: &[Option<(usize, usize)>],
    ) -> Option<usize> {
        if is_moved && word.end != self.dashes_end(last) {
            return None;
        }
        let is_alone = spans[first].is_none();
        let is_last = first == last || word.start >= self.dashes_end(first) || !is_alone;
        (is_last && last <= first + 1).then_some(last)
    }

    /// The column that reaches over the character at `place`.
    fn column_of(&self, place: usize) -> usize {
        self.0
            .partition_point(|(start, _)| *start <= place)
            .saturating_sub(1)
    }

    /// Where the dashes of a column end.
    fn dashes_end(&self, column: usize) -> usize {
        let (start, width) = self.0[column];
        start.saturating_add(width)
    }

    /// The heads of the columns. A word belongs to the column that it overlaps, or to the nearest.
    pub(super) fn heads(&self, lines: &[String]) -> Vec<String> {
        let mut heads = vec![String::new(); self.0.len()];
        for line in lines {
            // `--- Read ---` groups columns.
            let grouped = line.find("---").zip(line.rfind("---"));
            for (start, word) in heads_at(line) {
                if grouped.is_some_and(|(from, to)| start + 3 > from && start < to + 3) {
                    continue;
                }
                let middle = start + word.chars().count() / 2;
                let head = &mut heads[self.column_of(middle)];
                if !head.is_empty() {
                    head.push(' ');
                }
                head.push_str(word);
            }
        }
        heads
    }

    /// Width of each column's dashes.
    pub(super) fn widths(&self) -> Vec<usize> {
        self.0.iter().map(|(_, width)| *width).collect()
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The words of a line.
fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut columns = 0;
    for (column, (byte, c)) in line.char_indices().enumerate() {
        columns = column + 1;
        if !c.is_whitespace() {
            open = open.or(Some((column, byte)));
        } else if let Some((start, from)) = open.take() {
            words.push(Word {
                start,
                end: column,
                from,
                to: byte,
            });
        }
    }
    words.extend(open.map(|(start, from)| Word {
        start,
        end: columns,
        from,
        to: line.len(),
    }));
    words
}

/// True for a number as reports print it: `1,234.5`, `.5`, `321.5K`, `353.90us`, `0.0(539)`, or the
/// `####` of one that did not fit.
fn is_number(word: &str) -> bool {
    const UNIT: usize = 2;
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_plain = |c: char| c.is_ascii_digit() || ".,+-<(%)#E".contains(c);
    word.len() - number.len() <= UNIT
        && number.contains(|c: char| c.is_ascii_digit() || c == '#')
        && number.chars().all(is_plain)
}

/// The words of a line of heads, each with the character at which it begins. Heads of buckets that
/// fill their columns touch: `<256us<512us` is two words.
fn heads_at(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut words = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut before = ' ';
    for (column, (byte, c)) in line.char_indices().enumerate() {
        let begins =
            c != ' ' && (before == ' ' || matches!(c, '<' | '>') && before.is_alphanumeric());
        if let Some((start, from)) = open.filter(|_| begins || c == ' ') {
            words.push((start, &line[from..byte]));
            open = None;
        }
        if begins {
            open = Some((column, byte));
        }
        before = c;
    }
    words.extend(open.map(|(start, from)| (start, &line[from..])));
    words.into_iter()
}

/// The note about `count` words in `table` that were left out; `None` for none.
pub(super) fn unclear(count: usize, table: &str) -> Option<String> {
    let (words, are) = match count {
        1 => ("number touches", "is"),
        _ => ("numbers touch", "are"),
    };
    (count > 0).then(|| {
        format!("{count} {words} two columns of {table}, may belong to either, and {are} unknown")
    })
}

/// A line with tabs as blanks up to the next multiple of 8, as SQL*Plus means them, and without
/// trailing blanks.
pub(super) fn expanded(line: &str) -> Cow<'_, str> {
    const TAB: usize = 8;
    let line = line.trim_end();
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut wide = String::new();
    let mut column = 0;
    for c in line.chars() {
        if c == '\t' {
            let blanks = TAB - column % TAB;
            wide.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        } else {
            wide.push(c);
            column += 1;
        }
    }
    Cow::Owned(wide)
}

/// As [`expanded`], for all lines of a report.
///
/// # Errors
/// The text would be longer than a report may be.
pub(super) fn expanded_text<'a>(
    name: &str,
    text: &'a str,
    most: Bytes,
) -> Result<Cow<'a, str>, Error> {
    if !text.contains('\t') {
        return Ok(Cow::Borrowed(text));
    }
    let mut wide = String::new();
    for line in text.lines() {
        wide += &expanded(line);
        wide.push('\n');
        if Bytes(wide.len() as u64) > most {
            return Err(usage!(
                "'{name}' has more than {most} with its tabs as blanks, and the limit of a report \
                 is {most}",
                "give files of one report each"
            ));
        }
    }
    Ok(Cow::Owned(wide))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(ruler: &str, line: &str) -> (Vec<String>, usize) {
        let cut = Ruler::of(ruler).unwrap().cells(line);
        (cut.cells, cut.unclear)
    }

    #[test]
    fn heads_of_buckets_that_touch_are_heads_of_their_columns() {
        let head =
            "Event                       Waits  <8us <16us <32us <64us<128us<256us<512us>=512us";
        let line =
            "-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- ------";
        let heads = Ruler::of(line).unwrap().heads(&[head.into()]);
        assert_eq!(
            heads[2..],
            [
                "<8us", "<16us", "<32us", "<64us", "<128us", "<256us", "<512us", ">=512us"
            ]
        );
    }

    #[test]
    fn letters_of_several_bytes_do_not_move_a_column() {
        assert_eq!(cells("------ ---", "Größe  12").0, ["Größe", "12"]);
        assert_eq!(cells("------ ---", "Größ").0, ["Größ"]);
        assert_eq!(cells("------ ---", "").0, [""]);
        let wide = "- ".repeat(256);
        assert_eq!(
            cells(&wide, "x").0,
            ["x"],
            "a row takes no more than its line"
        );
        assert_eq!(Ruler::of("--- x"), None);
    }

    #[test]
    fn a_number_that_touches_a_column_belongs_to_the_one_in_which_it_ends() {
        let ruler = "---------- ---- ---- ----------";
        let row = |cells: [&str; 4]| (cells.map(String::from).to_vec(), 0);
        // It begins between the columns, or in one that has a number of its own.
        assert_eq!(
            cells(ruler, "log file        29.5         11"),
            row(["log file", "", "29.5", "11"])
        );
        assert_eq!(
            cells(ruler, "log file       229.5         11"),
            row(["log file", "", "229.5", "11"])
        );
        assert_eq!(
            cells(ruler, "log file   1 1234567         11"),
            row(["log file", "1", "1234567", "11"])
        );
        assert_eq!(
            cells(ruler, "log file 123456 29.5         11"),
            row(["log file", "123456", "29.5", "11"])
        );
    }

    #[test]
    fn a_number_that_may_be_of_either_column_is_left_out() {
        let ruler = "---------- ---------- ----------";
        let (found, unclear) = cells(ruler, "         1      2850.12345678");
        assert_eq!(
            (found, unclear),
            (vec!["1".into(), String::new(), String::new()], 1)
        );
        // It moves what is behind it, and nothing there is read in its neighbour's place.
        let ruler = "---------- ---------- ---------- ----------";
        let (found, unclear) = cells(ruler, "1234567890123          7         42         .5");
        assert!(
            found.iter().all(String::is_empty) && unclear == 4,
            "{found:?} {unclear}"
        );
    }

    #[test]
    fn a_text_that_is_wider_than_its_column_stays_whole() {
        let (found, _) = cells("------ -------------- ----", "a-long-name Linux x86    8");
        assert_eq!(found, ["a-long-name", "Linux x86", "8"]);
    }

    #[test]
    fn tabs_reach_to_the_next_multiple_of_eight() {
        assert_eq!(expanded("a\tb"), "a       b");
        assert_eq!(expanded("12345678\tb\t"), "12345678        b");
        assert_eq!(
            expanded_text("f", "a\tb\nc", Bytes(100)).unwrap(),
            "a       b\nc\n"
        );
    }

    proptest! {
        /// A cell has nothing that its line has not, and no word is cut.
        #[test]
        fn cells_are_of_whole_words(groups in prop::collection::vec((1..12usize, 1..4usize), 1..9), line in "[ 0-9a-z.,é]{0,90}") {
            let ruler: String = groups.iter().map(|(width, gap)| "-".repeat(*width) + &" ".repeat(*gap)).collect();
            let cut = Ruler::of(&ruler).unwrap().cells(&line);
            let words: Vec<&str> = line.split_whitespace().collect();
            let read: Vec<&str> = cut.cells.iter().flat_map(|cell| cell.split_whitespace()).collect();
            prop_assert!(read.len() <= words.len());
            prop_assert!(read.iter().all(|word| words.contains(word)), "{read:?} of {words:?}");
        }
    }
}
