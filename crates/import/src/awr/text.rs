//! The tables of AWR and Statspack reports in text: heading, header lines, ruler, rows.

use super::grid::{Grid, words};
use crate::ruler::Ruler;

/// Tildes that underline a heading beside heads of columns: `~~~~~~~~   Load Average`.
const UNDERLINED_MIN: usize = 4;

/// What was found in the text of a report.
pub(super) struct TextTables<'a> {
    /// The tables, in order.
    pub(super) grids: Vec<Grid>,
    /// Database and instance as titles of sections name them: `ORCL/orcl2`.
    pub(super) titled: Option<&'a str>,
    /// The lines before the first section.
    pub(super) first_page: Vec<&'a str>,
    /// True if the report's last line was there.
    pub(super) has_end: bool,
    /// Heading of the last section.
    pub(super) last_heading: String,
}

/// Reads the tables of sections whose heading `wanted` accepts, and all of the first page.
pub(super) fn tables<'a>(text: &'a str, wanted: &dyn Fn(&str) -> bool) -> TextTables<'a> {
    let lines = lines(text);
    let mut tables = TextTables {
        grids: Vec::new(),
        titled: None,
        first_page: Vec::new(),
        has_end: false,
        last_heading: String::new(),
    };
    let mut heading = String::new();
    let mut is_wanted = true;
    // The lines since the last blank one, which may be the head of a table.
    let mut above: Vec<String> = Vec::new();
    let mut table: Option<(Ruler, Grid)> = None;
    let mut title = "";
    for line in lines {
        let previous = std::mem::replace(&mut title, line);
        if tables.last_heading.is_empty() {
            tables.first_page.push(line);
        }
        if let Some((section, named)) = line.split_once("DB/Inst:") {
            tables.titled = tables.titled.or_else(|| named.split_whitespace().next());
            tables.grids.extend(table.take().map(|(_, grid)| grid));
            above.clear();
            heading = words(section);
            is_wanted = wanted(&heading);
            tables.last_heading.clone_from(&heading);
            continue;
        }
        tables.has_end |= line.trim_start().starts_with("End of Report");
        if tildes(line) >= UNDERLINED_MIN && begins_section(previous, is_wanted, wanted) {
            // The title may stand right below the rows of the table before, or end a section that
            // is not read.
            if let Some((_, mut grid)) = table.take() {
                grid.rows.pop();
                tables.grids.push(grid);
            }
            above = vec![previous.to_string()];
            is_wanted = true;
        }
        if !is_wanted {
            continue;
        }
        if line.is_empty() || line.starts_with("->") {
            tables.grids.extend(table.take().map(|(_, grid)| grid));
            above.clear();
            continue;
        }
        if let Some(ruler) = Ruler::of(line) {
            tables.grids.extend(table.take().map(|(_, grid)| grid));
            if ruler.is_end() {
                above.clear();
                continue;
            }
            table = begin(ruler, line, &mut above, &mut heading);
            continue;
        }
        if let Some((ruler, grid)) = &mut table {
            if let Some(name) = named_above(&grid.heading, line) {
                grid.rows.push(vec![name]);
                continue;
            }
            // `Elapsed: 60.22 (mins) Av Act Sess: 1.1` stands across the columns.
            if let Some((label, minutes)) = line
                .split_once(':')
                .filter(|(_, rest)| rest.contains("(mins)"))
            {
                grid.rows
                    .push(vec![label.trim().into(), minutes.trim().into()]);
                continue;
            }
            let cut = ruler.cells(line);
            if !is_named_above(&grid.heading) {
                grid.rows.push(cut.cells);
            } else if let Some(row) = grid.rows.last_mut().filter(|row| row.len() == 1) {
                row.extend(cut.cells);
            }
            grid.unclear += cut.unclear;
        } else if tildes(line) >= UNDERLINED_MIN {
            heading = underlined(&mut above).unwrap_or_default();
            above.push(line.replace('~', " "));
        } else {
            above.push(line.to_string());
        }
    }
    tables.grids.extend(table.take().map(|(_, grid)| grid));
    tables
}

/// True if `title`, which is underlined, begins a section: one that is read, where the section before
/// is not.
fn begins_section(title: &str, is_wanted: bool, wanted: &dyn Fn(&str) -> bool) -> bool {
    !title.is_empty() && (is_wanted || wanted(&words(split_title(title).0)))
}

/// Begins a table at its ruler; `None` for a line of tildes that only underlines a heading.
fn begin(
    ruler: Ruler,
    line: &str,
    above: &mut Vec<String>,
    heading: &mut String,
) -> Option<(Ruler, Grid)> {
    // Tildes below the name of a first column are shorter.
    const NAME_MAX: usize = 8;
    if tildes(line) > NAME_MAX {
        *heading = underlined(above)?;
        if ruler.len() == 1 {
            return None;
        }
    }
    let ruler = ruler.with_labels();
    let mut grid = Grid {
        heading: heading.clone(),
        header: ruler.heads(above),
        rows: Vec::new(),
        widths: ruler.widths(),
        unclear: 0,
    };
    if is_named_above(heading) {
        grid.header.insert(0, "Function/File Name".into());
        grid.widths.insert(0, usize::MAX);
    }
    above.clear();
    Some((ruler, grid))
}

/// True for the table of functions and file types, whose names stand in a line above their figures.
fn is_named_above(heading: &str) -> bool {
    heading.starts_with("IOStat by Function/")
}

/// The name that a line has for the figures below it: figures are indented further.
fn named_above(heading: &str, line: &str) -> Option<String> {
    let is_name = is_named_above(heading) && line.chars().take(2).any(|c| c != ' ');
    is_name.then(|| line.trim().trim_end_matches(':').to_string())
}

/// Number of tildes at the start of a line.
fn tildes(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b'~').count()
}

/// Takes the heading out of the last line of `above`. What stands right of it are heads of columns,
/// which stay.
fn underlined(above: &mut Vec<String>) -> Option<String> {
    let title = above.pop()?;
    above.clear();
    let (heading, rest) = split_title(&title);
    above.push(" ".repeat(heading.chars().count()) + rest);
    Some(words(heading))
}

/// A heading, and the heads of columns that stand right of it behind three blanks. Blanks in
/// brackets are the heading's: `Host CPU (CPUs:    2 Cores:    1)`.
fn split_title(title: &str) -> (&str, &str) {
    let bracket = title.find('(').zip(title.find(')'));
    let mut gaps = title.match_indices("   ").map(|(gap, _)| gap);
    let end = gaps.find(|gap| bracket.is_none_or(|(open, close)| !(open..close).contains(gap)));
    title.split_at(end.unwrap_or(title.len()))
}

/// The lines of a text, without line ends, trailing blanks, form feeds, and the page heads that
/// SQL*Plus writes.
fn lines(text: &str) -> Vec<&str> {
    // Control characters of files were made visible, form feeds too.
    const FORM_FEED: &str = "\\u{c}";
    let mut lines: Vec<&str> = Vec::new();
    let mut skips_ruler = false;
    for line in text.lines() {
        let line = line.strip_prefix(FORM_FEED).unwrap_or(line).trim_end();
        let line = line.strip_suffix("\\r").unwrap_or(line).trim_end();
        let line = line.trim_start_matches('\u{c}');
        if skips_ruler && line.len() >= 40 && line.bytes().all(|byte| byte == b'-') {
            skips_ruler = false;
            continue;
        }
        skips_ruler = line == "OUTPUT";
        if skips_ruler {
            if lines.last().is_some_and(|last| last.is_empty()) {
                lines.pop();
            }
            continue;
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
Load Profile                    Per Second   Per Transaction
~~~~~~~~~~~~~~~            ---------------   ---------------
             DB Time(s):               0.0               0.0
       Redo size (bytes):            730.5          11,836.1

Host CPU
~~~~~~~~                  Load Average
 CPUs Cores Sockets     Begin       End     %User
----- ----- ------- --------- --------- ---------
    1                    0.34      0.77       4.9

Background Wait Events                        DB/Inst: ORCL/orcl2  Snaps: 2-3
-> ordered by wait time desc, waits desc (idle events last)

                                                             Avg
                                        %Time Total Wait    wait    Waits   % bg
Event                             Waits -outs   Time (s)    (ms)     /txn   time
-------------------------- ------------ ----- ---------- ------- -------- ------
db file sequential read           1,173     0          5       4      5.3    5.1
os thread startup                    39     0          2      43      0.2    1.9
                          ------------------------------------------------------
SQL ordered by Gets           DB/Inst: ORCL/orcl2  Snaps: 2-3

x y
- -
1 2

End of Report
";

    #[test]
    fn a_section_has_its_header_by_column_and_its_rows() {
        let found = tables(PAGE, &|heading| !heading.starts_with("SQL"));
        assert!(found.has_end);
        let headings: Vec<&str> = found
            .grids
            .iter()
            .map(|grid| grid.heading.as_str())
            .collect();
        assert_eq!(
            headings,
            ["Load Profile", "Host CPU", "Background Wait Events"]
        );
        let waits = &found.grids[2];
        assert_eq!(
            waits.header,
            [
                "Event",
                "Waits",
                "%Time -outs",
                "Total Wait Time (s)",
                "Avg wait (ms)",
                "Waits /txn",
                "% bg time"
            ]
        );
        assert_eq!(waits.rows.len(), 2);
        assert_eq!(
            waits.rows[0],
            [
                "db file sequential read",
                "1,173",
                "0",
                "5",
                "4",
                "5.3",
                "5.1"
            ]
        );
        assert_eq!(
            found.grids[0].rows[1],
            ["Redo size (bytes):", "730.5", "11,836.1"]
        );
        assert_eq!(found.grids[1].rows[0], ["1", "", "", "0.34", "0.77", "4.9"]);
    }

    #[test]
    fn page_heads_line_ends_and_form_feeds_change_nothing() {
        let plain = tables(PAGE, &|_| true).grids;
        let mut paged = String::new();
        for (at, line) in PAGE.lines().enumerate() {
            if at % 7 == 6 {
                paged.extend(["\nOUTPUT\n", &"-".repeat(80), "\n"]);
            }
            paged += line;
            paged += "   \r\n";
        }
        for text in [
            PAGE.replace('\n', "\r\n"),
            PAGE.replace("Background Wait", "\\u{c}Background Wait"),
            paged,
        ] {
            assert_eq!(tables(&text, &|_| true).grids, plain, "{text}");
        }
    }

    #[test]
    fn a_title_below_rows_without_a_blank_line_begins_its_table() {
        let page = "\
Top 5 Timed Foreground Events
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Event                                 Waits
------------------------------ ------------
log file sync                         1,234
Host CPU (CPUs:    6 Cores:    3 Sockets:    1)
~~~~~~~~         Load Average
               Begin       End     %User   %System      %WIO     %Idle
           --------- --------- --------- --------- --------- ---------
                1.50      2.25       6.1       2.2      11.5      91.7
Load Profile                    Per Second   Per Transaction
~~~~~~~~~~~~~~~            ---------------   ---------------
             DB Time(s):               0.7               0.1
";
        let grids = tables(page, &|_| true).grids;
        assert_eq!(grids.len(), 3, "{grids:?}");
        assert_eq!(grids[0].rows, [["log file sync", "1,234"]]);
        assert_eq!(grids[1].heading, "Host CPU (CPUs: 6 Cores: 3 Sockets: 1)");
        assert_eq!(grids[1].header[3..], ["%User", "%System", "%WIO", "%Idle"]);
        assert_eq!(grids[1].rows[0][6], "91.7");
        assert_eq!(grids[2].heading, "Load Profile");
        assert_eq!(grids[2].rows, [["DB Time(s):", "0.7", "0.1"]]);
    }

    #[test]
    fn an_underlined_title_ends_a_section_that_is_not_read() {
        let page = "\
Findings by Active Sessions          DB/Inst: ORCL/orcl2  Snaps: 2-3
Finding                                   %
-------------------------------- ----------
Commits and Rollbacks                  12.5
                          ------------------------------------------------------

Load Profile                    Per Second   Per Transaction
~~~~~~~~~~~~~~~            ---------------   ---------------
             DB Time(s):               0.7               0.1

Something Else
~~~~~~~~~~~~~~            ---------------
             A name:                  0.7
";
        let grids = tables(page, &|heading| heading.starts_with("Load")).grids;
        let load = grids.iter().find(|grid| grid.heading == "Load Profile");
        assert_eq!(
            load.unwrap().rows,
            [["DB Time(s):", "0.7", "0.1"]],
            "{grids:?}"
        );
    }
}
