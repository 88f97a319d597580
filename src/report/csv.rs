//! Cells of our CSV files. Orion's files have their own format and are not made here.

use crate::model::escaped;

/// A text as a cell, quoted if necessary. A spreadsheet would run a text that begins like a formula, so such a text
/// gets an apostrophe before it. Numbers are written directly, not with this function.
pub(super) fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = escaped(text);
    if is_formula || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}{}\"", if is_formula { "'" } else { "" }, text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_text_stays_one_cell_and_is_no_formula() {
        for (text, is) in [
            ("reads per second", "reads per second"),
            ("a,b", "\"a,b\""),
            ("say \"so\"", "\"say \"\"so\"\"\""),
            ("=cmd|'/c calc'!A1 /s", "\"'=cmd|'/c calc'!A1 /s\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\\r=1\""),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("", ""),
        ] {
            assert_eq!(cell(text), is, "{text:?}");
        }
    }
}
