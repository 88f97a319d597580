//! What a file may have at most, so that memory and time stay in proportion to its length.
//!
//! A compressed file, a ruler of many columns and control characters grow when they are read: a
//! file of kilobytes would take gigabytes. The limits are far above what tools write.

use super::ruler::Ruler;
use super::source::{Source, beginning};
use rigel_model::record::Imported;
use rigel_model::{Bytes, Error, MIB, drives_a_terminal, usage};
use std::io::{self, Write};

/// Maximum length of a compressed file when uncompressed, and of a report of a database, whether it
/// was compressed or not. An AWR report of a large system has 5 MiB.
pub(super) const REPORT_MAX: Bytes = Bytes(32 * MIB);

/// The bound of a histogram's bucket, in milliseconds, from which on it has none: it is longer than any time.
pub(super) const NO_BOUND_MS: f64 = 1e15;

/// Lines at the beginning of a file that decide what it is: a client may say something before.
pub(super) const LINES_BEFORE: usize = 200;

/// Maximum length of a line of a report. `SQL*Plus` writes at most 32,767 characters.
const LINE_MAX: Bytes = Bytes(64 << 10);

/// Maximum number of columns that a ruler of dashes has. Reports have up to 20.
pub(super) const COLUMNS_MAX: usize = 256;

/// Maximum number of lines of a report. A text report has some 20,000.
pub(super) const REPORT_LINES_MAX: usize = 500_000;

/// Maximum number of lines of a listing: a histogram of all events has some 30,000.
pub(super) const LISTING_LINES_MAX: usize = 100_000;

/// Maximum number of figures of a file of iostat. Each takes some hundred bytes until the report is
/// written; 20 devices over a day, every 10 s, have as many.
pub(super) const FIGURES_MAX: usize = 2_000_000;

/// Maximum number of devices of a file of iostat. A large host has some thousand.
pub(super) const DEVICES_MAX: usize = 4096;

/// Maximum number of reports in a file.
pub(super) const REPORTS_MAX: usize = 1000;

/// Maximum number of rows of events in the tables of waits of a report, and in its histograms. Oracle
/// knows some 2,000 events, and a report lists some 300.
pub(super) const EVENT_ROWS_MAX: usize = 5000;

/// Maximum number of rows and of columns of a matrix of Orion, which has some hundred of them.
pub(super) const MATRIX_SIDE_MAX: usize = 1000;

/// Maximum number of cells of all matrices of an import. One that measures every combination of 30
/// disks has some thousand.
pub(super) const MATRIX_CELLS_MAX: usize = 10_000;

/// Maximum memory of one text when parsed, as JSON or as the rows of a table. fio's json+ of a hundred
/// jobs takes 100 MiB.
const PARSED_MAX: Bytes = Bytes(512 * MIB);

/// Maximum number of cells of a report's tables. The largest reports have some hundred thousand.
const CELLS_MAX: usize = 2_000_000;

/// Maximum number of lines of all logs of fio together, whose rows are kept until the last is read.
pub(super) const LOG_LINES_MAX: usize = 8_000_000;

/// Maximum length of what all files of an import say, as the journal has it. The figures of iostat
/// that are allowed have some 150 MiB.
const KEPT_MAX: Bytes = Bytes(200 * MIB);

/// The length of what was read so far.
#[derive(Debug, Default)]
pub(super) struct KeptFigures(Bytes);

impl KeptFigures {
    /// Counts what one more file says.
    ///
    /// # Errors
    /// All files together say too much; the error names this one, the value and the limit.
    pub(super) fn add(&mut self, found: &Imported) -> Result<(), Error> {
        serde_json::to_writer(&mut *self, found).expect("figures are written as JSON");
        if self.0 <= KEPT_MAX {
            return Ok(());
        }
        let last = found.sources.last().map_or("", String::as_str);
        Err(usage!(
            "'{last}' and the files before it have figures of {count} together, and the limit is \
             {KEPT_MAX}",
            IN_PARTS,
            count = self.0
        ))
    }
}

impl Write for KeptFigures {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What to do with too many files.
pub(super) const IN_PARTS: &str = "import fewer at once: `rigel compare` takes several runs";

/// Refuses the text of a table that would take more memory than [`PARSED_MAX`] when parsed: a comma
/// begins a cell.
pub(super) fn refuse_large_table(source: Source) -> Result<(), Error> {
    // A row is also looked up by its time and by its cells.
    const ROW: u64 = 160;
    const CELL: u64 = 56;
    let bytes = source.text.bytes().map(|byte| match byte {
        b'\n' => ROW + CELL,
        b',' | b';' | b'\t' => CELL,
        _ => 0,
    });
    refuse_above_parsed_max(source, bytes.sum(), "give files of fewer lines each")
}

fn refuse_above_parsed_max(source: Source, bytes: u64, hint: &str) -> Result<(), Error> {
    let bytes = Bytes(bytes);
    if bytes <= PARSED_MAX {
        return Ok(());
    }
    Err(usage!(
        "'{name}' would take about {bytes} of memory when parsed, and the limit is {PARSED_MAX}",
        hint,
        name = source.name
    ))
}

/// Refuses a JSON text that would take more memory than [`PARSED_MAX`] when parsed: objects of a few
/// bytes take hundreds. Returns how many bytes it takes.
///
/// # Errors
/// It would; the error names the file, the value and the limit.
pub(super) fn refuse_large_json(source: Source) -> Result<u64, Error> {
    // An object allocates room for eleven members of 56 bytes. A member may have a key of its own.
    const OBJECT: u64 = 680;
    const ARRAY: u64 = 160;
    const MEMBER: u64 = 100;
    // A text is copied.
    const CHARACTER: u64 = 1;
    let (mut bytes, mut is_inside, mut is_escaped) = (0_u64, false, false);
    for byte in source.text.bytes() {
        if is_inside {
            bytes += CHARACTER;
            is_inside = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        bytes += match byte {
            b'{' => OBJECT,
            b'[' => ARRAY,
            b',' => MEMBER,
            _ => 0,
        };
        is_inside = byte == b'"';
    }
    refuse_json_above_parsed_max(source, bytes)?;
    Ok(bytes)
}

/// Refuses a JSON text of which this much would be in memory at once, if that is too much.
pub(super) fn refuse_json_above_parsed_max(source: Source, bytes: u64) -> Result<(), Error> {
    refuse_above_parsed_max(source, bytes, "give files of fewer jobs or reports each")
}

/// Refuses a binary file, and a text that consists largely of control characters, each of which
/// takes several bytes once it is made visible.
///
/// # Errors
/// It begins with a zero byte among others, or more than a quarter of its characters are such.
pub(super) fn refuse_controls(source: Source) -> Result<(), Error> {
    const SHARE: usize = 4;
    let drives = |c: &char| drives_a_terminal(*c) && !matches!(c, '\n' | '\t' | '\r');
    let controls = source.text.chars().filter(drives).count();
    if beginning(source.text, BINARY_BYTES).contains('\0') {
        return Err(usage!(
            "'{name}' is not text: it begins with bytes of a program's own",
            AS_WRITTEN,
            name = source.name
        ));
    }
    if controls <= source.text.len() / SHARE {
        return Ok(());
    }
    Err(usage!(
        "'{name}' is not text: {controls} of its {count} bytes are control characters, and the \
         limit is a quarter",
        AS_WRITTEN,
        name = source.name,
        count = source.text.len()
    ))
}

const AS_WRITTEN: &str = "give the results as the tool wrote them, or compressed by gzip";

/// Bytes at the beginning of a file in which a binary one has a zero.
const BINARY_BYTES: usize = 4096;

/// Refuses a report, listing or spool that is longer, wider or has more lines than any, which is
/// `lines_max`. In HTML, line ends mean nothing.
///
/// # Errors
/// It is; the error names the file, the line, the value and the limit.
pub(super) fn refuse_oversized(
    source: Source,
    lines_max: usize,
    is_html: bool,
) -> Result<(), Error> {
    let Source { name, text } = source;
    let refused = |what: String| Err(Error::usage(what, "give files of one report each"));
    let length = Bytes(text.len() as u64);
    if length > REPORT_MAX {
        return refused(format!(
            "'{name}' has {length}, and the limit of a report is {REPORT_MAX}"
        ));
    }
    let refuse_many = |cells: usize| {
        if cells <= CELLS_MAX {
            return Ok(());
        }
        refused(format!(
            "'{name}' has tables of more than {CELLS_MAX} cells, the limit of a report"
        ))
    };
    if is_html {
        return refuse_many(tags_of_cells(text));
    }
    // The columns of the ruler above a line, and the cells that lines may have at most.
    let (mut columns, mut cells) = (0, 0);
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if number > lines_max {
            return refused(format!(
                "'{name}' has more than {lines_max} lines, the limit of a report"
            ));
        }
        let length = Bytes(line.len() as u64);
        if length > LINE_MAX {
            return refused(format!(
                "'{name}' line {number} has {length}, and the limit of a line is {LINE_MAX}"
            ));
        }
        if let Some(ruler) = Ruler::of(line) {
            columns = ruler.len();
            if columns > COLUMNS_MAX {
                return refused(format!(
                    "'{name}' line {number} is a ruler of {columns} columns, and the limit is \
                     {COLUMNS_MAX}"
                ));
            }
        }
        // A column has a dash and a blank at least, and a tab is up to eight blanks.
        let width = line.len() + 7 * line.bytes().filter(|byte| *byte == b'\t').count();
        cells += columns.min(width / 2 + 1);
    }
    refuse_many(cells)
}

/// Number of tags in HTML that begin a cell or a row.
fn tags_of_cells(text: &str) -> usize {
    text.as_bytes()
        .windows(3)
        .filter(|tag| {
            tag[0] == b'<'
                && tag[1].eq_ignore_ascii_case(&b't')
                && matches!(tag[2].to_ascii_lowercase(), b'd' | b'h' | b'r')
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::super::{ImportFormat, csv_columns::Columns, read, table, text};
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use rigel_model::record::imported::Figures;
    use std::io::Write;

    fn refusal(text: &str, format: Option<ImportFormat>) -> String {
        let source = Source { name: "f", text };
        read(&[source], format, &Columns::default())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_no_tool_writes_is_refused_with_value_and_limit() {
        const AWR: &str = "WORKLOAD REPOSITORY report for\n\n";
        let ruler = |columns: usize| format!("{}\n", "- ".repeat(columns).trim_end());
        let listing = |columns: usize| {
            let head = "WAIT_TIME_MICRO WAIT_COUNT";
            format!("{head}\n--------------- ---------- {}1 2\n", ruler(columns))
        };
        for (text, part) in [
            (
                format!("{AWR}{}x\n", ruler(20_000)),
                "line 3 is a ruler of 20000 columns, and the limit is 256",
            ),
            (
                format!("{AWR}{}x\n", ruler(200_000)),
                "line 3 has 390.6 KiB, and the limit of a line is 64 KiB",
            ),
            (
                format!("{AWR}{}", "\n".repeat(600_000)),
                "more than 500000 lines",
            ),
            (
                format!("{AWR}{}", "x\n".repeat(17 << 20)),
                "has 34.0 MiB, and the limit of a report is 32 MiB",
            ),
            (listing(300), "is a ruler of 302 columns"),
            (
                format!("{AWR}{}", "\u{1b}".repeat(1000)),
                "1000 of its 1032 bytes are control characters",
            ),
        ] {
            let refused = refusal(&text, None);
            assert!(
                refused.contains("'f' ") && refused.contains(part),
                "{refused}"
            );
            assert!(refused.contains("hint: "), "{refused}");
        }
        // As wide as it may be: refused for something else, or read.
        let wide = refusal(&format!("{AWR}{}x\n", ruler(COLUMNS_MAX)), None);
        assert!(!wide.contains("limit"), "{wide}");
    }

    #[test]
    fn json_that_would_take_gigabytes_is_refused() {
        for head in [
            "{\"fio version\": \"fio-3.33\", \"jobs\": [",
            "{\"sysstat\": [",
        ] {
            let text = format!("{head}{}0]}}", "{\"\":0},".repeat(1_000_000));
            let refused = refusal(&text, None);
            assert!(
                refused.contains("of memory when parsed, and the limit is 512 MiB"),
                "{refused}"
            );
        }
        // Braces in strings are no objects.
        let text = format!("{{\"fio version\": \"{}\"}}", "{\\\"".repeat(1_000_000));
        assert!(!refusal(&text, None).contains("of memory"));
    }

    #[test]
    fn rows_of_iostat_have_a_limit() {
        let head = "2026-11-21T10:00:11+0000\nDevice r/s %util\n";
        let rows = "d 1 1\n".repeat(FIGURES_MAX / 2 + 1);
        let refused = refusal(&format!("{head}{rows}"), None);
        assert!(
            refused.contains("has more than 2000000 figures"),
            "{refused}"
        );
        let rows: Vec<String> = (0..=DEVICES_MAX)
            .map(|device| format!("d{device} 1 1\n"))
            .collect();
        let rows = rows.concat();
        let refused = refusal(&format!("{head}{rows}"), None);
        assert!(refused.contains("has more than 4096 devices"), "{refused}");
    }

    #[test]
    fn a_matrix_of_orion_has_a_limit_while_it_is_read() {
        let matrix = |columns: usize, rows: usize| {
            let heads: Vec<String> = (1..=columns).map(|column| column.to_string()).collect();
            let values = vec!["5"; columns].join(",");
            let rows: String = (0..rows)
                .flat_map(|row| [row.to_string(), format!(",{values}\n")])
                .collect();
            format!("Large/Small,{}\n{rows}", heads.join(","))
        };
        for (columns, rows, part) in [
            (MATRIX_SIDE_MAX + 1, 1, "a matrix of more than 1000 columns"),
            (1, MATRIX_SIDE_MAX + 1, "a matrix of more than 1000 rows"),
            (101, 100, "more than 10000 cells"),
        ] {
            let refused = refusal(&matrix(columns, rows), None);
            assert!(
                refused.contains("'f' has ") && refused.contains(part),
                "{refused}"
            );
        }
        // Of all files together.
        let text = matrix(60, 100);
        let sources = ["1_iops.csv", "2_iops.csv"].map(|name| Source { name, text: &text });
        let refused = read(&sources, None, &Columns::default())
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("'2_iops.csv' has more than 10000 cells"),
            "{refused}"
        );
        let largest = matrix(100, 100);
        let source = Source {
            name: "f_iops.csv",
            text: &largest,
        };
        let found = read(&[source], None, &Columns::default()).unwrap();
        let Figures::Loads(loads) = &found[0].figures else {
            panic!("{found:?}")
        };
        assert_eq!(loads.len(), MATRIX_CELLS_MAX);
        let report = "ORION VERSION 11.2.0.1.0\nMaximum Small IOPS=5 @ Small=5 and Large=0\n\
                      Minimum Small Latency=1.0 @ Small=5 and Large=0\n";
        let refused = refusal(&report.repeat(REPORTS_MAX + 1), None);
        assert!(
            refused.contains("has 1001 reports, and the limit is 1000"),
            "{refused}"
        );
    }

    #[test]
    fn rows_of_events_have_a_limit() {
        let rows = "<tr><td>db file sequential read</td><td>5</td><td>1</td></tr>";
        let page = |heads: &str, rows: &str| {
            format!("<h3>Foreground Wait Events</h3><table><tr>{heads}</tr>{rows}</table>")
        };
        let heads = "<th>Event</th><th>Waits</th><th>Total Wait Time (s)</th>";
        let refused = refusal(&page(heads, &rows.repeat(EVENT_ROWS_MAX + 1)), None);
        assert!(
            refused.contains("'f' has more than 5000 rows of events"),
            "{refused}"
        );
        let text = page(heads, &rows.repeat(EVENT_ROWS_MAX));
        let source = Source {
            name: "f",
            text: &text,
        };
        assert!(read(&[source], None, &Columns::default()).is_ok());
    }

    #[test]
    fn figures_of_all_files_have_one_limit() {
        let rows = "2026-01-01 00:00:00,5\n".repeat(1000);
        let source = Source {
            name: "f",
            text: &format!("time,v\n{rows}"),
        };
        let found = table::read(source, &Columns::default()).unwrap();
        let mut kept = KeptFigures::default();
        kept.add(&found).unwrap();
        let one = kept.0;
        // Two more than this are too many.
        kept = KeptFigures(Bytes(KEPT_MAX.0 - one.0));
        kept.add(&found).unwrap();
        let why = kept.add(&found).unwrap_err().to_string();
        assert!(
            why.starts_with("'f' and the files before it have figures of 2"),
            "{why}"
        );
        assert!(why.contains("and the limit is 200 MiB"), "{why}");
    }

    #[test]
    fn a_compressed_file_stops_at_the_limit() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![b'\n'; 1 << 20];
        (0..33).for_each(|_| packed.write_all(&zeros).unwrap());
        let refused = text("f.gz", packed.finish().unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("'f.gz' has more than 32 MiB when uncompressed, the limit"),
            "{refused}"
        );
    }
}
