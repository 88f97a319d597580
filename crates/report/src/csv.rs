//! CSV tables for spreadsheets. Orion's files have their own format and are not made here.

use csv::Writer;
use rigel_model::escaped;
use std::fmt::Display;

/// What a formula begins with; the last four are the full-width forms of the first, which some
/// spreadsheets take for the same.
const FORMULAS: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// A table that is written cell by cell. Each row has a cell for each column.
pub struct CsvTable(Writer<Vec<u8>>);

impl CsvTable {
    /// Creates a table with these columns, which commas separate.
    pub fn new(columns: &str) -> Self {
        let mut table = Self(Writer::from_writer(Vec::new()));
        columns.split(',').for_each(|column| {
            table.value(column);
        });
        table.end();
        table
    }

    /// Writes a text from outside. A spreadsheet would run a text that begins like a formula, so
    /// such a text gets an apostrophe before it.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let is_formula = text.starts_with(FORMULAS);
        // Some spreadsheets split cells at tabs, too.
        let text = escaped(text).replace('\t', " ");
        self.value(format_args!("{}{text}", if is_formula { "'" } else { "" }))
    }

    /// Writes a number, or a word of this program.
    pub fn value(&mut self, value: impl Display) -> &mut Self {
        self.0
            .write_field(value.to_string())
            .expect("memory takes every cell");
        self
    }

    /// Writes a number with three decimals, or an empty cell if it is unknown.
    pub fn figure(&mut self, figure: Option<f64>) -> &mut Self {
        self.maybe(figure.map(|figure| format!("{figure:.3}")))
    }

    /// Writes a value, or an empty cell if it is unknown.
    pub fn maybe(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.value(value),
            None => self.value(""),
        }
    }

    /// Ends a row.
    pub fn end(&mut self) {
        self.0
            .write_record(None::<&[u8]>)
            .expect("a row has a cell for each column");
    }

    /// Returns the table as text.
    pub fn into_text(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes every row");
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
            let mut table = CsvTable::new("text,figure,word");
            table.text(text).figure(None).value(-1).end();
            assert_eq!(
                table.into_text(),
                format!("text,figure,word\n{is},,-1\n"),
                "{text:?}"
            );
        }
    }
}
