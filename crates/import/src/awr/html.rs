//! The tables of an AWR report in HTML.
//!
//! Reports come as Oracle writes them and as browsers save them: tags in upper case, values without
//! quotes, cells and rows that are never closed, torn closing tags. So a cell ends where the next
//! one begins.

use super::grid::{Grid, words};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Maximum depth of tables in tables. Reports have none that matter.
const DEPTH_MAX: usize = 8;

/// Maximum length of a title that is no heading tag. Longer ones are sentences.
const TITLE_BYTES: usize = 100;

/// Tags within a line of text. All others end it.
const INLINE: &[&[u8]] = &[
    b"a", b"b", b"code", b"em", b"font", b"i", b"small", b"span", b"strong", b"u",
];

/// What the tags of a report contain.
#[derive(Debug, Default)]
struct Contents {
    grids: Vec<Grid>,
    /// Tables that are open, the outermost first.
    open: Vec<OpenTable>,
    heading: String,
    /// Name of the open heading tag, and its text so far.
    in_heading: Option<(Vec<u8>, String)>,
    /// The line of text so far that is neither in a heading nor in a cell.
    line: String,
    /// The last such line that is a title, if no heading and no table followed.
    title: String,
    /// True if tables without a wanted heading are taken too.
    takes_untitled: bool,
}

#[derive(Debug, Default)]
struct OpenTable {
    heading: String,
    is_wanted: bool,
    /// Rows, each with its cells and whether one of them is a head.
    rows: Vec<(Vec<String>, bool)>,
    cell: Option<String>,
}

/// The tables whose heading `wanted` accepts, in order.
pub(super) fn tables(text: &str, wanted: &dyn Fn(&str) -> bool) -> Vec<Grid> {
    read(Contents::default(), text, wanted, &|_| false)
}

/// As [`tables`], of a part that was pasted. A line of text that `is_title` accepts is the heading of
/// the next table. The tables below `Report Summary` have such lines: `<p />Load Profile<p />`. A table
/// without any gets the heading that `heading_of` knows by its heads.
pub(super) fn pasted_tables(
    text: &str,
    wanted: &dyn Fn(&str) -> bool,
    is_title: &dyn Fn(&str) -> bool,
    heading_of: &dyn Fn(&Grid) -> Option<&'static str>,
) -> Vec<Grid> {
    let contents = Contents {
        takes_untitled: true,
        ..Contents::default()
    };
    let grids = read(contents, text, wanted, is_title).into_iter();
    let named = |mut grid: Grid| {
        if grid.heading.is_empty() {
            grid.heading = heading_of(&grid)?.into();
        }
        Some(grid)
    };
    grids.filter_map(named).collect()
}

/// The text of all `<pre>`, as a browser shows it.
pub(super) fn preformatted(text: &str) -> String {
    let (mut depth, mut inside) = (0_usize, String::new());
    let callback = |event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        match event {
            CallbackEvent::OpenStartTag { name: b"pre" } => depth += 1,
            CallbackEvent::EndTag { name: b"pre" } => {
                depth = depth.saturating_sub(1);
                inside.push('\n');
            }
            CallbackEvent::String { value } if depth > 0 => {
                inside.push_str(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
        None
    };
    let emitter = CallbackEmitter::new(callback);
    Tokenizer::new_with_emitter(text, emitter).for_each(drop);
    inside
}

fn read(
    mut contents: Contents,
    text: &str,
    wanted: &dyn Fn(&str) -> bool,
    is_title: &dyn Fn(&str) -> bool,
) -> Vec<Grid> {
    let callback = |event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                contents.end_line(name, is_title);
                contents.start(name, wanted);
            }
            CallbackEvent::EndTag { name } => {
                contents.end_line(name, is_title);
                contents.end(name);
            }
            CallbackEvent::String { value } => contents.text(value),
            _ => {}
        }
        None
    };
    let mut emitter = CallbackEmitter::new(callback);
    // Scripts and styles are not text.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(text, emitter).for_each(drop);
    while !contents.open.is_empty() {
        contents.close_table();
    }
    contents.grids
}

impl Contents {
    fn start(&mut self, name: &[u8], wanted: &dyn Fn(&str) -> bool) {
        match name {
            b"h1" | b"h2" | b"h3" | b"h4" => {
                self.close_heading();
                self.in_heading = Some((name.to_vec(), String::new()));
            }
            b"table" => {
                self.close_heading();
                let title = std::mem::take(&mut self.title);
                if self.open.len() < DEPTH_MAX {
                    let heading = if !title.is_empty() {
                        title
                    } else if wanted(&self.heading) {
                        self.heading.clone()
                    } else {
                        String::new()
                    };
                    self.open.push(OpenTable {
                        is_wanted: self.takes_untitled || !heading.is_empty(),
                        heading,
                        ..OpenTable::default()
                    });
                }
            }
            b"tr" => {
                if let Some(table) = self.open.last_mut() {
                    table.close_cell();
                    table.rows.push((Vec::new(), false));
                }
            }
            b"td" | b"th" => {
                if let Some(table) = self.open.last_mut().filter(|table| table.is_wanted) {
                    table.close_cell();
                    if table.rows.is_empty() {
                        table.rows.push((Vec::new(), false));
                    }
                    if let Some((_, is_head)) = table.rows.last_mut() {
                        *is_head |= name == b"th";
                    }
                    table.cell = Some(String::new());
                }
            }
            b"br" | b"p" => self.text(b" "),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        match name {
            b"h1" | b"h2" | b"h3" | b"h4" => self.close_heading(),
            b"table" => self.close_table(),
            b"td" | b"th" | b"tr" => {
                if let Some(table) = self.open.last_mut() {
                    table.close_cell();
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, value: &[u8]) {
        if let Some((_, heading)) = &mut self.in_heading {
            heading.push_str(&String::from_utf8_lossy(value));
        } else if let Some(cell) = self.open.last_mut().and_then(|table| table.cell.as_mut()) {
            cell.push_str(&String::from_utf8_lossy(value));
        } else if self.line.len() <= TITLE_BYTES {
            self.line.push_str(&String::from_utf8_lossy(value));
        }
    }

    /// Ends the line of text at a tag, unless the tag is part of the line.
    fn end_line(&mut self, tag: &[u8], is_title: &dyn Fn(&str) -> bool) {
        if INLINE.contains(&tag) {
            return;
        }
        let line = words(&std::mem::take(&mut self.line));
        if line.len() <= TITLE_BYTES && is_title(&line) {
            self.title = line;
        }
    }

    fn close_heading(&mut self) {
        if let Some((_, heading)) = self.in_heading.take() {
            self.heading = words(&heading);
            self.title.clear();
        }
    }

    fn close_table(&mut self) {
        let Some(mut table) = self.open.pop() else {
            return;
        };
        table.close_cell();
        if table.is_wanted {
            self.grids.push(table.grid());
        }
    }
}

impl OpenTable {
    fn close_cell(&mut self) {
        let Some(text) = self.cell.take() else { return };
        // A torn closing tag is text, and so is a lone carriage return that was made visible.
        let text = text.replace("\\r", " ");
        let text = words(&text);
        let text = ["/td>", "/th>", "/tr>"]
            .iter()
            .fold(text.as_str(), |text, torn| {
                text.strip_suffix(torn).unwrap_or(text).trim_end()
            })
            .to_string();
        if let Some((cells, _)) = self.rows.last_mut() {
            cells.push(text);
        }
    }

    /// The header is the last of the first rows that have heads: one above it groups columns. If no
    /// row has any, as where heads are cells like others, it is the first of the widest rows.
    fn grid(self) -> Grid {
        let mut rows = self.rows.into_iter().filter(|(cells, _)| !cells.is_empty());
        let mut header = Vec::new();
        let mut body = Vec::new();
        for (cells, is_head) in rows.by_ref() {
            if is_head {
                header = cells;
            } else {
                body.push(cells);
                break;
            }
        }
        body.extend(rows.map(|(cells, _)| cells));
        if header.is_empty() {
            let widest = body.iter().map(Vec::len).max();
            let first = body.iter().position(|cells| Some(cells.len()) == widest);
            header = first
                .and_then(|at| body.drain(..=at).next_back())
                .unwrap_or_default();
        }
        Grid {
            heading: self.heading,
            header,
            rows: body,
            ..Grid::default()
        }
    }
}

/// True if a line begins with `>` outside of a tag: quoted HTML, in which words of the mail program
/// would be text of cells.
pub(super) fn is_quoted(text: &str) -> bool {
    let mut is_in_tag = false;
    for line in text.lines() {
        if line.starts_with('>') && !is_in_tag {
            return true;
        }
        is_in_tag = match line.rfind(['<', '>']) {
            Some(last) => line[last..].starts_with('<'),
            None => is_in_tag,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Grid> {
        tables(text, &|_| true)
    }

    const ORDERLY: &str = "<html><head><style>h3 {x}</style></head><h3 class=\"awr\">Time \
        Model</h3><p/><table border=\"0\" summary=\"a > b\"><tr><th colspan=\"2\">x</th></tr>\
        <tr><th>Name</th><th>Time (s)</th></tr><tr><td>DB CPU</td><td>1,234.5</td></tr>\
        <tr><td>DB time</td><td>&nbsp;</td></tr></table>End of Report</html>";

    #[test]
    fn lines_of_html_may_begin_with_the_end_of_a_tag() {
        assert!(!is_quoted("<td\nclass=\"x\"\n>1</td\n>\n"));
        assert!(is_quoted("<td>1</td>\nanswer\n> <td>2</td>\n"));
    }

    #[test]
    fn a_table_has_its_heading_its_header_and_its_rows() {
        let grid = &all(ORDERLY)[0];
        assert_eq!(grid.heading, "Time Model");
        assert_eq!(grid.header, ["Name", "Time (s)"]);
        assert_eq!(grid.rows, [vec!["DB CPU", "1,234.5"], vec!["DB time", ""]]);
    }

    #[test]
    fn a_disfigured_table_is_the_same_table() {
        for disfigured in [
            ORDERLY.replace("</td>", "").replace("</tr>", ""),
            ORDERLY
                .replace("\"0\"", "0")
                .replace("table", "TABLE")
                .replace("td>", "TD>"),
            ORDERLY.replace("1,234.5</td>", "1,234.5/td>"),
            ORDERLY.replace("<tr>", "\r\n<tr id=\">=2m\">\r\n"),
            ORDERLY
                .replace("<tr><th colspan=\"2\">x</th></tr>", "")
                .replace("th>", "td>"),
            ORDERLY.replace("</h3>", "</h3><script>if (a < b) { '<table>' }</script>"),
            format!("SQL> Specify the Report Name\n{ORDERLY}\nSQL> spool off"),
        ] {
            assert_eq!(all(&disfigured), all(ORDERLY), "{disfigured}");
        }
    }

    #[test]
    fn a_line_above_a_table_may_be_its_title() {
        let headings = |text: &str| {
            let is_title = |line: &str| line.starts_with("Load");
            let grids = pasted_tables(text, &|heading| heading == "Summary", &is_title, &|_| None);
            let headings = grids.iter().map(|grid| grid.heading.clone());
            headings.collect::<Vec<_>>()
        };
        let table = "<table><tr><td>1</td></tr></table>";
        let long = format!("Load {}", "x".repeat(TITLE_BYTES));
        for (text, expected) in [
            (
                format!("<p />Load Profile<p />{table}"),
                &["Load Profile"][..],
            ),
            (
                format!("<div><b>Load</b>\nProfile<ul><li>Note</ul>{table}{table}"),
                &["Load Profile"],
            ),
            (
                format!("<h3>Summary</h3>Load Profile<p />{table}{table}"),
                &["Load Profile", "Summary"],
            ),
            (format!("Load Profile<h3>Summary</h3>{table}"), &["Summary"]),
            (format!("<p>The Load Profile</p>{table}"), &[]),
            (format!("<p>{long}</p>{table}"), &[]),
        ] {
            assert_eq!(headings(&text), expected, "{text}");
        }
        let text = format!("<h3>Summary</h3>Load Profile<p />{table}");
        assert_eq!(tables(&text, &|_| true)[0].heading, "Summary");
    }

    #[test]
    fn only_wanted_tables_are_kept() {
        assert!(tables(ORDERLY, &|heading| heading != "Time Model").is_empty());
        assert!(all("<table><tr><td>no heading").is_empty());
    }
}
