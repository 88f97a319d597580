//! Tables from columns that know their heading, their unit and where their figure is.
//!
//! Input: rows of any type. Output: a [`Table`]. A heading and its cells are named in one place, so
//! that they cannot drift apart.

use super::document::{Block, Column, Extent, Table, Unit};
use super::parts::{Amount, NOT_KNOWN};
use rigel_analyse::{Estimate, LatencyFigure, ShownIn};
use std::fmt::Display;

/// A figure of a cell, of which there may be none.
pub trait TableFigure {
    /// The figure with its interval, if it is known.
    fn estimate(self) -> Option<Estimate>;
}

impl TableFigure for f64 {
    fn estimate(self) -> Option<Estimate> {
        Some(self.into())
    }
}

impl TableFigure for Estimate {
    fn estimate(self) -> Option<Estimate> {
        Some(self)
    }
}

impl<F: TableFigure> TableFigure for Option<F> {
    fn estimate(self) -> Option<Estimate> {
        self.and_then(TableFigure::estimate)
    }
}

/// A table that is made column by column.
pub struct TableOf<R> {
    rows: Vec<R>,
    table: Table,
}

impl<R> TableOf<R> {
    /// A table of these rows, without columns yet.
    pub fn of(caption: &str, rows: impl IntoIterator<Item = R>) -> Self {
        let rows: Vec<R> = rows.into_iter().collect();
        Self {
            table: Table {
                caption: caption.into(),
                columns: Vec::new(),
                rows: rows.iter().map(|_| Vec::new()).collect(),
                ..Table::default()
            },
            rows,
        }
    }

    fn column<C: Display>(
        mut self,
        heading: &str,
        is_number: bool,
        cell: impl Fn(&R) -> C,
    ) -> Self {
        self.table.columns.push(Column {
            name: heading.into(),
            is_number,
            extent: Extent::Screen,
            may_be_cut: false,
        });
        for (row, cells) in self.rows.iter().zip(&mut self.table.rows) {
            cells.push(cell(row).to_string());
        }
        self
    }

    /// A column of words.
    #[must_use]
    pub fn text<C: Display>(self, heading: &str, cell: impl Fn(&R) -> C) -> Self {
        self.column(heading, false, cell)
    }

    /// A column of numbers that are written already; they are right-aligned.
    #[must_use]
    pub fn number<C: Display>(self, heading: &str, cell: impl Fn(&R) -> C) -> Self {
        self.column(heading, true, cell)
    }

    /// A column of figures in a unit, each with its interval if it has one; `-` if it is not known.
    #[must_use]
    pub fn amount<F: TableFigure>(
        self,
        heading: &str,
        unit: Unit,
        figure: impl Fn(&R) -> F,
    ) -> Self {
        self.number(heading, |row| {
            figure(row).estimate().map_or_else(
                || NOT_KNOWN.to_string(),
                |figure| Amount::new(figure, unit).in_cell(),
            )
        })
    }

    /// Figures without a unit: `79,941`.
    #[must_use]
    pub fn count<F: TableFigure>(self, heading: &str, figure: impl Fn(&R) -> F) -> Self {
        self.amount(heading, Unit::Number, figure)
    }

    /// Microseconds: `450 µs`.
    #[must_use]
    pub fn time<F: TableFigure>(self, heading: &str, us: impl Fn(&R) -> F) -> Self {
        self.amount(heading, Unit::Microseconds, us)
    }

    /// The response times that an output shows, on a page if they are not for the text. The p99 has
    /// its interval where that is known; for more there are too few columns.
    #[must_use]
    pub fn times<F: TableFigure>(
        self,
        output: ShownIn,
        of: impl Fn(&R, LatencyFigure) -> F,
    ) -> Self {
        let estimate = |row: &R, figure| of(row, figure).estimate();
        LatencyFigure::shown_in(output).fold(self, |table, figure| {
            let interval = |row: &R| estimate(row, figure)?.interval;
            let has_interval = figure == LatencyFigure::P99
                && table.rows.iter().any(|row| interval(row).is_some());
            let column = if has_interval {
                let heading = format!("{} (95 % interval)", figure.label());
                table.time(&heading, |row| estimate(row, figure))
            } else {
                table.time(figure.label(), |row| Some(estimate(row, figure)?.value))
            };
            column.on_page_if(!figure.is_shown_in(ShownIn::Tables))
        })
    }

    /// Fractions of 1: `12.5 %`.
    #[must_use]
    pub fn percent<F: TableFigure>(self, heading: &str, share: impl Fn(&R) -> F) -> Self {
        self.amount(heading, Unit::Percent, share)
    }

    /// Events per second: `5,012/s`.
    #[must_use]
    pub fn per_second<F: TableFigure>(self, heading: &str, rate: impl Fn(&R) -> F) -> Self {
        self.amount(heading, Unit::PerSecond, rate)
    }

    /// Fractions of 1, rounded: `12 %`, `0.3 %`.
    #[must_use]
    pub fn rounded_percent<F: TableFigure>(self, heading: &str, share: impl Fn(&R) -> F) -> Self {
        self.amount(heading, Unit::RoundedPercent, share)
    }

    /// How precise estimates are: `0.7 %`.
    #[must_use]
    pub fn precision(self, heading: &str, figure: impl Fn(&R) -> Estimate) -> Self {
        self.number(heading, |row| super::parts::precision(figure(row)))
    }

    /// Shows the last column only in the full extent: text has few columns.
    #[must_use]
    pub fn on_page(self) -> Self {
        self.on_page_if(true)
    }

    /// Shows the last column only in the full extent, if so.
    #[must_use]
    pub fn on_page_if(mut self, is_so: bool) -> Self {
        if let Some(column) = self.table.columns.last_mut().filter(|_| is_so) {
            column.extent = Extent::Full;
        }
        self
    }

    /// Lets the end of the last column be cut where there is no room.
    #[must_use]
    pub fn may_be_cut(mut self) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.may_be_cut = true;
        }
        self
    }

    /// Collapses the table until the reader opens it, if so.
    #[must_use]
    pub fn folded_if(mut self, is_so: bool) -> Self {
        self.table.folded = is_so;
        self
    }

    /// Names the rows that decide, which are shown where there is no room for all.
    #[must_use]
    pub fn decided_by(mut self, decides: impl Fn(&R) -> bool) -> Self {
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(_, row)| decides(row));
        self.table.deciding = rows.map(|(at, _)| at).collect();
        self
    }

    /// Adds the columns that `add` adds, if so.
    #[must_use]
    pub fn and_if(self, is_so: bool, add: impl FnOnce(Self) -> Self) -> Self {
        if is_so { add(self) } else { self }
    }

    /// The table.
    pub fn table(self) -> Table {
        self.table
    }

    /// The table as a part of a section.
    pub fn block(self) -> Block {
        Block::Table(self.table)
    }
}

/// A table of names and their values.
pub fn pairs<N: Display, V: Display>(
    caption: &str,
    headings: [&str; 2],
    pairs: impl IntoIterator<Item = (N, V)>,
) -> Block {
    TableOf::of(caption, pairs)
        .text(headings[0], |(name, _)| name.to_string())
        .text(headings[1], |(_, value)| value.to_string())
        .block()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::Limits;

    #[test]
    fn a_cell_is_below_its_heading_and_in_its_unit() {
        let known = Estimate::new(
            450.0,
            Some(Limits {
                low: 438.0,
                high: Some(463.0),
            }),
        );
        let table = TableOf::of("", [("a", Some(known)), ("b", None)])
            .text("host", |row| row.0)
            .time("p99", |row| row.1)
            .count("op/s", |row| row.1.map(|at| at.value * 1e3))
            .on_page()
            .table();
        let headings: Vec<&str> = table.columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(headings, ["host", "p99", "op/s"]);
        assert_eq!(
            table.rows,
            [["a", "450 µs (438 to 463)", "450,000"], ["b", "-", "-"]]
        );
        assert_eq!(table.columns[2].extent, Extent::Full);
        assert!(!table.columns[0].is_number && table.columns[1].is_number);
    }
}
