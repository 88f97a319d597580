//! A picture of cells, and what changed of it since the last one.
//!
//! Input: texts with a position and a style. Output: the sequences that turn one picture on a
//! terminal into another. Nothing outside of the picture is drawn.

use anstyle::Style;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// A rectangle of cells; from the left and from the top, in columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    /// First column.
    pub(super) x: u16,
    /// First row.
    pub(super) y: u16,
    /// Columns.
    pub(super) width: u16,
    /// Rows.
    pub(super) height: u16,
}

impl Rect {
    /// The column after the last one.
    pub(super) fn right(self) -> u16 {
        self.x + self.width
    }

    /// The row after the last one.
    pub(super) fn bottom(self) -> u16 {
        self.y + self.height
    }
}

/// What a column of a row shows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScreenCell {
    /// A character and what combines with it; empty behind a character of two columns.
    symbol: String,
    style: Style,
}

/// A picture of a terminal's size, from its upper left corner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffer {
    area: Rect,
    cells: Vec<ScreenCell>,
}

impl Buffer {
    /// A blank picture.
    pub(super) fn blank(width: u16, height: u16) -> Self {
        let cell = ScreenCell {
            symbol: " ".into(),
            style: Style::new(),
        };
        Self {
            area: Rect {
                x: 0,
                y: 0,
                width,
                height,
            },
            cells: vec![cell; usize::from(width) * usize::from(height)],
        }
    }

    /// The whole picture.
    pub(super) fn area(&self) -> Rect {
        self.area
    }

    fn row(&self, y: u16) -> std::ops::Range<usize> {
        let width = usize::from(self.area.width);
        let from = usize::from(y) * width;
        from..from + width
    }

    /// Writes `text`, truncated at `right`; nothing if there is no space. Returns its end.
    pub(super) fn put(&mut self, x: u16, y: u16, right: u16, text: &str, style: Style) -> u16 {
        let right = right.min(self.area.width);
        if x >= right || y >= self.area.height {
            return x;
        }
        let row = self.row(y);
        let cells = &mut self.cells[row];
        let mut end = x;
        for character in text.chars() {
            // Control characters have no width, and no place on a terminal.
            let Some(width) = character.width() else {
                continue;
            };
            if width == 0 {
                if end > x {
                    let before = cells[usize::from(x)..usize::from(end)]
                        .iter_mut()
                        .rfind(|cell| !cell.symbol.is_empty());
                    before
                        .into_iter()
                        .for_each(|cell| cell.symbol.push(character));
                }
                continue;
            }
            let after = end + if width > 1 { 2 } else { 1 };
            if after > right {
                break;
            }
            for cell in &mut cells[usize::from(end)..usize::from(after)] {
                *cell = ScreenCell {
                    symbol: String::new(),
                    style,
                };
            }
            cells[usize::from(end)].symbol.push(character);
            end = after;
        }
        end
    }

    /// The sequences that draw this picture where `before` is shown, which has the same size.
    pub(super) fn since(&self, before: &Self) -> String {
        let mut sequences = String::new();
        for y in 0..self.area.height {
            let row = self.row(y);
            // Where the cursor is, and how it writes.
            let mut cursor = None;
            let mut current = Style::new();
            let pairs = self.cells[row.clone()].iter().zip(&before.cells[row]);
            for (x, (cell, shown)) in pairs.enumerate() {
                if cell == shown || cell.symbol.is_empty() {
                    continue;
                }
                if cursor != Some(x) {
                    let _ = write!(sequences, "\x1b[{};{}H", y + 1, x + 1);
                }
                if cell.style != current {
                    let _ = write!(sequences, "{}{}", current.render_reset(), cell.style);
                    current = cell.style;
                }
                sequences.push_str(&cell.symbol);
                cursor = Some(x + 1);
            }
            let _ = write!(sequences, "{}", current.render_reset());
        }
        sequences
    }

    /// The rows as text, without styles.
    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        (0..self.area.height).fold(String::new(), |text, y| {
            let row = self.cells[self.row(y)].iter();
            let row: String = row.map(|cell| cell.symbol.as_str()).collect();
            text + row.trim_end() + "\n"
        })
    }

    /// The style of each cell.
    #[cfg(test)]
    pub(super) fn styles(&self) -> impl Iterator<Item = Style> {
        self.cells.iter().map(|cell| cell.style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstyle::AnsiColor;

    #[test]
    fn a_text_ends_where_there_is_no_space() {
        let mut buffer = Buffer::blank(6, 2);
        assert_eq!(buffer.put(1, 0, 5, "latency", Style::new()), 5);
        assert_eq!(buffer.put(4, 1, 99, "p99", Style::new()), 6);
        assert_eq!(buffer.put(0, 2, 6, "below", Style::new()), 0);
        assert_eq!(buffer.put(6, 0, 9, "beside", Style::new()), 6);
        assert_eq!(buffer.text(), " late\n    p9\n");
    }

    #[test]
    fn a_character_of_two_columns_is_not_cut_and_a_combining_one_takes_none() {
        let mut buffer = Buffer::blank(5, 1);
        assert_eq!(buffer.put(0, 0, 5, "数据库", Style::new()), 4);
        assert_eq!(buffer.text(), "数据\n");
        let mut buffer = Buffer::blank(5, 1);
        assert_eq!(buffer.put(0, 0, 5, "e\u{301}\u{7}x", Style::new()), 2);
        assert_eq!(buffer.text(), "e\u{301}x\n");
    }

    #[test]
    fn only_what_changed_is_drawn() {
        let before = Buffer::blank(10, 2);
        let mut after = before.clone();
        assert_eq!(after.since(&before), "");
        after.put(2, 1, 10, "ab", Style::new());
        assert_eq!(after.since(&before), "\x1b[2;3Hab");
        let red = AnsiColor::Red.on_default();
        let mut coloured = after.clone();
        coloured.put(3, 1, 10, "b", red);
        assert_eq!(
            coloured.since(&after),
            format!("\x1b[2;4H{red}b{}", red.render_reset())
        );
    }
}
