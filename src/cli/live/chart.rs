//! The charts of the live view: a column of the terminal is a window, the latest at the right.

use super::cells::{Buffer, Rect};
use super::column::{BINS, BINS_A_DECADE, LiveColumn, edge_of};
use super::look::{ColourMode, SHADES};
use super::unit::ThroughputUnit;
use anstyle::Style;
use rigel_analyse::LatencyFigure;
use rigel_model::Nanos;

/// Width of the labels left of a chart, in columns.
pub(super) const LABEL: u16 = 12;

/// Eighths of a cell, from below.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Writes `text` right-aligned at `right`. A text that is too long begins at `left` and is
/// truncated.
pub(super) fn put_right(
    buffer: &mut Buffer,
    left: u16,
    right: u16,
    y: u16,
    text: &str,
    style: Style,
) {
    let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
    buffer.put(right.saturating_sub(width).max(left), y, right, text, style);
}

/// The latest of `columns` that fit into a chart of `width`, each with its position from the left.
fn placed<'a, T>(
    columns: impl DoubleEndedIterator<Item = &'a T>,
    width: u16,
) -> impl Iterator<Item = (u16, &'a T)>
where
    T: 'a,
{
    (0..width).rev().zip(columns.rev())
}

/// The part of `area` right of the labels.
pub(super) fn plot(area: Rect) -> Rect {
    let label = LABEL.min(area.width);
    Rect {
        x: area.x + label,
        width: area.width - label,
        ..area
    }
}

/// Number of columns that a chart shows.
pub(super) fn shown(area: Rect) -> usize {
    usize::from(plot(area).width)
}

/// Draws a bar from below, `share` of the height.
fn bar(buffer: &mut Buffer, x: u16, area: Rect, share: f64, style: Style) {
    let most = f64::from(area.height) * 8.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to eighths of a height"
    )]
    let mut left = (share.clamp(0.0, 1.0) * most).round() as usize;
    if share > 0.0 {
        left = left.max(1);
    }
    for y in (area.y..area.bottom()).rev() {
        let part = left.min(8);
        left -= part;
        if part > 0 {
            buffer.put(x, y, x + 1, EIGHTHS[part], style);
        }
    }
}

/// Draws throughput from zero up to `top`; the warm-up is faint. Columns in another unit than `unit`
/// are left out, as they have another scale.
pub(super) fn rates<'a>(
    buffer: &mut Buffer,
    area: Rect,
    columns: impl DoubleEndedIterator<Item = &'a LiveColumn>,
    (top, unit): (f64, ThroughputUnit),
    look: ColourMode,
) {
    let plot = plot(area);
    for (at, column) in placed(columns, plot.width) {
        if column.unit != unit {
            continue;
        }
        let style = if column.warming {
            look.bar().dimmed()
        } else {
            look.bar()
        };
        bar(
            buffer,
            plot.x + at,
            plot,
            column.rate / top.max(1e-9),
            style,
        );
    }
}

/// Draws one figure of response times per column on a logarithmic scale over `low..=high`, in
/// microseconds.
pub(super) fn times<'a>(
    buffer: &mut Buffer,
    area: Rect,
    columns: impl DoubleEndedIterator<Item = &'a LiveColumn>,
    figure: LatencyFigure,
    (low, high): (f64, f64),
    look: ColourMode,
) {
    let plot = plot(area);
    let low = low.max(1e-3);
    let span = (high / low).ln().max(1e-9);
    for (at, column) in placed(columns, plot.width) {
        let Some(latency) = column.latency else {
            continue;
        };
        let above = (latency.get(figure).max(1e-3) / low).ln();
        // The minimum needs a visible height too, otherwise it would look like no data.
        let eighth = 1.0 / (8.0 * f64::from(plot.height.max(1)));
        bar(
            buffer,
            plot.x + at,
            plot,
            eighth + (1.0 - eighth) * above / span,
            look.bar(),
        );
    }
}

/// Draws values relative to `top` as a sparkline.
pub(super) fn spark(buffer: &mut Buffer, area: Rect, values: &[f64], top: f64, style: Style) {
    for (at, value) in placed(values.iter(), area.width) {
        bar(buffer, area.x + at, area, value / top.max(1e-9), style);
    }
}

/// Draws a gauge of one line.
pub(super) fn gauge(buffer: &mut Buffer, area: Rect, share: f64, look: ColourMode) {
    let eighths = (share.clamp(0.0, 1.0) * f64::from(area.width) * 8.0).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "eighths of a width"
    )]
    let eighths = eighths as u16;
    for at in 0..area.width {
        let is_full = eighths >= (at + 1) * 8;
        let (symbol, style) = if is_full {
            ("█", look.bar())
        } else {
            ("░", ColourMode::faint())
        };
        buffer.put(area.x + at, area.y, area.right(), symbol, style);
    }
}

/// The bins that a heat map shows: from `first` on, `together` bins per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BinScale {
    first: usize,
    together: usize,
    rows: usize,
}

/// A scale on which all data of `columns` fit into `height` rows. Row edges are at powers of ten if
/// rows are that wide. `None` if there are no data.
fn scale<'a>(columns: impl Iterator<Item = &'a LiveColumn>, height: usize) -> Option<BinScale> {
    let mut seen = [false; BINS];
    columns.for_each(|column| {
        seen.iter_mut()
            .zip(column.bins)
            .for_each(|(seen, count)| *seen |= count > 0);
    });
    let (low, high) = (
        seen.iter().position(|seen| *seen)?,
        seen.iter().rposition(|seen| *seen)?,
    );
    let fits = |together: &usize| (high / together + 1) - low / together <= height;
    let together = [1, 2, 4, 8, 16, 32, 64].into_iter().find(fits)?;
    let (low, high) = (low / together, high / together);
    // Unused rows are divided between both sides, so that the picture stays stable when a bin
    // appears or disappears.
    let spare = height - (high + 1 - low);
    let low = low.saturating_sub(spare / 2);
    let rows = height.min(BINS.div_ceil(together) - low);
    Some(BinScale {
        first: low * together,
        together,
        rows,
    })
}

/// Draws response times over time as a heat map. Rows are bins of response time, the slowest on
/// top, shaded by their number of operations on a logarithmic scale.
pub(super) fn heat<'a, I>(buffer: &mut Buffer, area: Rect, columns: I, look: ColourMode)
where
    I: DoubleEndedIterator<Item = &'a LiveColumn> + Clone,
{
    let plot = plot(area);
    let visible = columns.rev().take(usize::from(plot.width));
    let Some(scale) = scale(visible.clone(), usize::from(area.height)) else {
        return;
    };
    let row_of = |column: &LiveColumn, row: usize| -> u64 {
        let from = scale.first + row * scale.together;
        column.bins[from..(from + scale.together).min(BINS)]
            .iter()
            .map(|count| u64::from(*count))
            .sum()
    };
    let counts = visible
        .clone()
        .flat_map(|column| (0..scale.rows).map(move |row| row_of(column, row)));
    let most = (1.0 + counts.max().unwrap_or(0) as f64).ln();
    for row in 0..scale.rows {
        let y = area.bottom() - 1 - u16::try_from(row).unwrap_or(0);
        if let Some(label) = label(scale, row) {
            put_right(
                buffer,
                area.x,
                plot.x.saturating_sub(1),
                y,
                &label,
                ColourMode::faint(),
            );
        }
        for (at, column) in (0..plot.width).rev().zip(visible.clone()) {
            let count = row_of(column, row);
            let x = plot.x + at;
            if count > 0 {
                let share = (1.0 + count as f64).ln() / most.max(1e-9);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of SHADES"
                )]
                let (symbol, style) =
                    look.shade(((share * SHADES as f64).ceil() as usize).saturating_sub(1));
                buffer.put(x, y, x + 1, symbol, style);
            } else if column.first {
                buffer.put(x, y, x + 1, "│", ColourMode::faint());
            }
        }
    }
}

/// Label of a row: its lower edge, if that is a power of ten, or if the row is the first or the
/// last.
fn label(scale: BinScale, row: usize) -> Option<String> {
    let bin = scale.first + row * scale.together;
    let is_decade =
        bin.is_multiple_of(BINS_A_DECADE) || (bin % BINS_A_DECADE) + scale.together > BINS_A_DECADE;
    let is_near =
        |other: usize| (other * scale.together + scale.first).is_multiple_of(BINS_A_DECADE);
    let is_end = row == 0 && !is_near(1)
        || row + 1 == scale.rows && !row.checked_sub(1).is_some_and(is_near);
    (is_decade || is_end).then(|| edge(edge_of(bin)))
}

/// Formats an edge in a few characters: `10us`, `178us`, `1ms`, `1.78s`.
fn edge(at: Nanos) -> String {
    let text = at.to_string();
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(bins: &[usize]) -> LiveColumn {
        let mut column = LiveColumn::empty();
        bins.iter().for_each(|bin| column.bins[*bin] = 1);
        column
    }

    #[test]
    fn a_scale_holds_all_that_is_there_whatever_the_height() {
        assert_eq!(scale([LiveColumn::empty()].iter(), 5), None);
        for height in 1..20 {
            for (low, high) in [(0, 0), (0, 63), (7, 9), (16, 40), (63, 63)] {
                let columns = [column(&[low]), column(&[high])];
                let found = scale(columns.iter(), height).unwrap();
                assert!(found.first <= low && found.rows <= height, "{found:?}");
                assert!(
                    high < found.first + found.rows * found.together,
                    "{low} to {high} in {height}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn edges_are_short() {
        assert_eq!(
            [0, 8, 10, 24, 26].map(|bin| edge(edge_of(bin))),
            ["1 µs", "10 µs", "17.8 µs", "1 ms", "1.78 ms"]
        );
    }
}
