//! CSV tables for spreadsheets. Orion's files have their own format and are not made here.

use csv::Writer;
use rigel_analyse::LatencyFigure;
use rigel_model::escaped;
use std::fmt::Display;

/// What a formula begins with; the last four are the full-width forms of the first, which some
/// spreadsheets take for the same.
const FORMULAS: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// A name of a column, and its cell in a row.
type CsvColumn<'a, R> = (String, Box<dyn Fn(&R) -> String + 'a>);

/// A table whose columns know their name and where their value is. Rows are made one after the
/// other: an import may have millions.
pub struct CsvTable<'a, R, I> {
    rows: I,
    columns: Vec<CsvColumn<'a, R>>,
}

impl<'a, R, I: Iterator<Item = R>> CsvTable<'a, R, I> {
    /// A table of these rows, without columns yet.
    pub fn of(rows: impl IntoIterator<IntoIter = I>) -> Self {
        Self {
            rows: rows.into_iter(),
            columns: Vec::new(),
        }
    }

    /// A column of numbers, or of words of this program.
    #[must_use]
    pub fn value<V: Display>(mut self, name: &str, value: impl Fn(&R) -> V + 'a) -> Self {
        let cell = move |row: &R| value(row).to_string();
        self.columns.push((name.into(), Box::new(cell)));
        self
    }

    /// A column of texts from outside. A spreadsheet would run a text that begins like a formula,
    /// so such a text gets an apostrophe before it.
    #[must_use]
    pub fn text<T: AsRef<str>>(self, name: &str, text: impl Fn(&R) -> T + 'a) -> Self {
        self.value(name, move |row| {
            let text = text(row);
            let is_formula = text.as_ref().starts_with(FORMULAS);
            // Some spreadsheets split cells at tabs, too.
            let text = escaped(text.as_ref()).replace('\t', " ");
            format!("{}{text}", if is_formula { "'" } else { "" })
        })
    }

    /// A column of values; a cell is empty if it is unknown.
    #[must_use]
    pub fn maybe<V: Display>(self, name: &str, value: impl Fn(&R) -> Option<V> + 'a) -> Self {
        let cell = move |row: &R| value(row).map_or_else(String::new, |value| value.to_string());
        self.value(name, cell)
    }

    /// A column of numbers with three decimals; a cell is empty if it is unknown.
    #[must_use]
    pub fn figure<F: Into<Option<f64>>>(self, name: &str, figure: impl Fn(&R) -> F + 'a) -> Self {
        self.maybe(name, move |row| {
            figure(row).into().map(|figure| format!("{figure:.3}"))
        })
    }

    /// All figures of response times.
    #[must_use]
    pub fn times(self, of: impl Fn(&R, LatencyFigure) -> Option<f64> + Copy + 'a) -> Self {
        LatencyFigure::ALL.iter().fold(self, |table, figure| {
            table.figure(figure.key(), move |row| of(row, *figure))
        })
    }

    /// The table as text: a line of names, then one for each row.
    pub fn into_text(self) -> String {
        let mut writer = Writer::from_writer(Vec::new());
        let mut write = |cells: &mut dyn Iterator<Item = String>| {
            writer.write_record(cells).expect("memory takes every row");
        };
        write(&mut self.columns.iter().map(|(name, _)| name.clone()));
        for row in self.rows {
            write(&mut self.columns.iter().map(|(_, cell)| cell(&row)));
        }
        let bytes = writer.into_inner().expect("memory takes every row");
        String::from_utf8(bytes).expect("cells are text")
    }
}

#[cfg(test)]
mod tests {
    use super::CsvTable;

    #[test]
    fn a_text_stays_one_cell_and_is_no_formula() {
        for (text, is) in [
            ("reads per second", "reads per second"),
            ("a,b", "\"a,b\""),
            ("a\nb", "\"a\nb\""),
            ("say \"so\"", "\"say \"\"so\"\"\""),
            ("=cmd|'/c calc'!A1 /s", "'=cmd|'/c calc'!A1 /s"),
            ("=1,2", "\"'=1,2\""),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("＝1+1", "'＝1+1"),
            ("＋1", "'＋1"),
            ("－1", "'－1"),
            ("＠SUM(A1)", "'＠SUM(A1)"),
            ("\t=1", "' =1"),
            ("\r=1", "'\\r=1"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("", ""),
        ] {
            let table = CsvTable::of([text])
                .text("text", |text| *text)
                .figure("figure", |_| None)
                .value("word", |_| -1);
            assert_eq!(
                table.into_text(),
                format!("text,figure,word\n{is},,-1\n"),
                "{text:?}"
            );
        }
    }
}
