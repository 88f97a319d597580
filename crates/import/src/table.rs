//! Plain csv: lines with a time and values, such as figures extracted from AWR with SQL.

use super::csv_columns::{Columns, CsvColumns, CsvRow, TOP_ROWS, is_date, places};
use super::limits::refuse_large_table;
use super::samples::{Remarks, impossible, put_in_order};
use super::source::{Source, beginning, damaged, number, refuse_empty, shortened};
use super::time::{self, Order, moment};
use csv::{Position, StringRecord};
use rigel_model::record::Imported;
use rigel_model::record::imported::{Counted, Figures, ImportedSeries};
use rigel_model::{Error, Moment, failed};
use std::collections::{HashMap, HashSet};
use std::io::Cursor;

/// Recognises text that SQL*Plus spools around a table: the statement, and the number of rows.
#[derive(Default)]
struct Talk {
    /// Line number that SQL*Plus would print for the next line of the statement; `None` outside of
    /// a statement.
    next: Option<usize>,
}

impl Talk {
    /// True if `line` begins a row: it is not blank, no comment and no talk.
    fn is_row(&mut self, line: &str) -> bool {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && !self.is(line)
    }

    fn is(&mut self, line: &str) -> bool {
        let goes_on = self
            .next
            .filter(|next| line.split_whitespace().next() == Some(next.to_string().as_str()));
        self.next = if line.starts_with("SQL>") {
            Some(2)
        } else {
            goes_on.map(|next| next + 1)
        };
        self.next.is_some()
            || line.starts_with("Elapsed: ")
            || ["row selected.", "rows selected."]
                .iter()
                .any(|end| line.ends_with(end))
    }
}

/// Reads the rows of a table one by one. Passes over blank lines, comments and what SQL*Plus spools
/// around them.
struct CsvRows<'a> {
    text: &'a str,
    separator: char,
    reader: csv::Reader<Cursor<&'a str>>,
    talk: Talk,
    /// Line of a row whose last quote is missing, so that it has swallowed the rest of the file.
    unclosed: Option<usize>,
}

impl<'a> CsvRows<'a> {
    /// `None` if the first row has no separator.
    fn of(text: &'a str) -> Option<Self> {
        let mut talk = Talk::default();
        let first = text.lines().find(|line| talk.is_row(line))?;
        let separator = ['\t', ';', ',']
            .into_iter()
            .find(|separator| first.contains(*separator))?;
        let mut form = csv::ReaderBuilder::new();
        form.delimiter(u8::try_from(separator).ok()?)
            .has_headers(false)
            .flexible(true);
        let reader = form.from_reader(Cursor::new(text));
        Some(Self {
            text,
            separator,
            reader,
            talk: Talk::default(),
            unclosed: None,
        })
    }

    /// Finds the next row, and moves the reader there. A quote in a line that is passed over has no
    /// meaning.
    fn find(&mut self) -> Option<Position> {
        let mut position = self.reader.position().clone();
        loop {
            let line = self.rest(&position).split_inclusive('\n').next()?;
            if self.talk.is_row(line) {
                break;
            }
            let next = (position.byte() + line.len() as u64, position.line() + 1);
            position.set_byte(next.0).set_line(next.1);
        }
        self.reader.seek(position.clone()).ok()?;
        Some(position)
    }

    fn rest(&self, at: &Position) -> &'a str {
        usize::try_from(at.byte())
            .ok()
            .and_then(|at| self.text.get(at..))
            .unwrap_or_default()
    }

    fn is_number(&self, field: &str) -> bool {
        number(field, self.separator != ',').is_some() || is_grouped(field)
    }
}

impl Iterator for CsvRows<'_> {
    type Item = CsvRow;

    fn next(&mut self) -> Option<CsvRow> {
        let position = self.find()?;
        let line = usize::try_from(position.line()).ok()?;
        let mut record = StringRecord::new();
        if !self.reader.read_record(&mut record).ok()? {
            return None;
        }
        let rest = self.rest(&position).trim_end();
        let is_last = self.rest(self.reader.position()).is_empty();
        if is_last && rest.contains('\n') && rest.matches('"').count() % 2 == 1 {
            self.unclosed = Some(line);
        }
        Some((line, record.iter().map(field).collect()))
    }
}

/// A field without blanks around it, and in one line.
fn field(raw: &str) -> String {
    let text = raw.trim();
    // The reader knows quotes only where a field begins, so not after blanks.
    let within = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let text = within
        .filter(|_| raw.starts_with(char::is_whitespace))
        .unwrap_or(text);
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// As much of a text as shows whether it is a table. It may be no table and have one line of millions
/// of commas.
fn top(text: &str) -> &str {
    const BYTES: usize = 1 << 20;
    beginning(text, BYTES)
}

/// True if `text` contains lines with a time and a number.
pub fn is_like(text: &str, columns: &Columns) -> bool {
    let Some(mut rows) = CsvRows::of(top(text)) else {
        return false;
    };
    let top: Vec<CsvRow> = rows.by_ref().take(TOP_ROWS).collect();
    let is_sample =
        |row: &[String]| row.iter().any(|f| is_date(f)) && row.iter().any(|f| rows.is_number(f));
    columns.time.is_some() || top.iter().any(|(_, row)| is_sample(row))
}

/// Why `text` is not a table: its first line, and the first field that is not a time or a number.
pub fn why_not(text: &str) -> String {
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let first = format!("its first line is '{}'", shortened(first));
    let Some(mut table) = CsvRows::of(top(text)) else {
        return first;
    };
    // If there is more than one line, the first is a header.
    let rows: Vec<CsvRow> = table
        .by_ref()
        .filter(|row| !is_rule(row))
        .take(TOP_ROWS)
        .collect();
    let Some((line, row)) = rows.get(1).or(rows.first()) else {
        return first;
    };
    let is_timed = row.iter().any(|field| is_date(field));
    let wrong = row
        .iter()
        .find(|field| !is_void(field) && !is_date(field) && !table.is_number(field));
    let Some(wrong) = wrong else { return first };
    let why = if is_timed {
        "is not a number"
    } else {
        time::why_not(wrong)
    };
    format!("{first}, and '{}' in line {line} {why}", shortened(wrong))
}

/// True for an empty field.
fn is_void(field: &str) -> bool {
    field.bytes().all(|byte| byte == b'-') || field.eq_ignore_ascii_case("null")
}

/// Reads a table.
///
/// # Errors
/// A column is missing, or a line does not match the others.
pub fn read(source: Source, columns: &Columns) -> Result<Imported, Error> {
    refuse_large_table(source)?;
    let name = source.name;
    let mut table = CsvRows::of(source.text).ok_or_else(|| {
        failed!(
            "'{name}' has no line with a comma, semicolon or tab as separator",
            "write one line per sample, such as 2016-04-23T10:17,6272"
        )
    })?;
    let all: Vec<CsvRow> = table.by_ref().collect();
    if let Some(line) = table.unclosed {
        let why = "has a quote that is not closed, so that the rest of the file is one field";
        return Err(damaged(
            name,
            line,
            why,
            "close the quote, or write it twice if it is part of a text",
        ));
    }
    let first = all.first().map(|(_, row)| row.clone()).unwrap_or_default();
    let has_head = !first.iter().any(|field| is_date(field));
    // The header may be repeated above every page of a report.
    let is_frame = |row: &CsvRow| is_rule(row) || has_head && row.1 == first;
    let rows: Vec<CsvRow> = all.into_iter().filter(|row| !is_frame(row)).collect();
    let places = places(name, &first, has_head, columns, &rows)?;
    let begins = rows
        .iter()
        .filter_map(|(_, row)| row.get(places.begin))
        .map(String::as_str);
    let (order, of_times) = time::manner(begins);
    let mut notes = Vec::new();
    let mut signs = vec![Sign::Point; places.names.len()];
    if table.separator != ',' {
        for at in places.figures() {
            signs[at] = sign_of(name, &rows, at, &places.names[at])?;
            if let Sign::Thousands(sign) = signs[at] {
                let what = if sign == ',' { "commas" } else { "points" };
                notes.push(format!(
                    "{what} in {} are taken as thousands separators",
                    places.names[at]
                ));
            }
        }
    }
    let mut reader = RowReader {
        name,
        order,
        signs,
        places: &places,
        remarks: Remarks::default(),
        lengths: Vec::new(),
    };
    let mut series: Vec<ImportedSeries> = places.series(columns.unit.as_deref());
    for (line, row) in &rows {
        reader.row(*line, row, &mut series)?;
    }
    reader.warn_of_lengths();
    warn_of_doubled(&mut reader.remarks, &rows, &places);
    let remarks = reader.remarks;
    remarks.refuse_all_left_out(name, &series)?;
    notes.extend(remarks.notes());
    notes.extend(of_times);
    notes.extend(places.notes(&series));
    notes.extend(put_in_order(&mut series));
    if let Some((line, _)) = rows.last().filter(|_| !source.text.ends_with('\n')) {
        notes.push(format!(
            "the last line, {line}, has no line end: if the file is truncated there, its figures \
             are wrong"
        ));
    }
    let sources = vec![name.to_string()];
    refuse_empty(
        name,
        Imported {
            sources,
            tool: "csv".into(),
            version: None,
            reported: comments(source.text),
            notes,
            figures: Figures::Series(series),
        },
    )
}

/// Marks lines with the same time as an earlier line as doubtful: two instances in one file are not
/// a series.
fn warn_of_doubled(remarks: &mut Remarks, rows: &[CsvRow], places: &CsvColumns) {
    let (mut seen, mut by_time) = (HashSet::new(), HashMap::<&str, Vec<&CsvRow>>::new());
    for row in rows {
        if !seen.insert(&row.1) {
            remarks.doubtful(row.0, "it repeats an earlier line");
        } else if let Some(time) = row.1.get(places.begin).filter(|time| !is_void(time)) {
            by_time.entry(time).or_default().push(row);
        }
    }
    by_time.retain(|_, rows| rows.len() > 1);
    let used: HashSet<usize> = places
        .figures()
        .chain(places.end)
        .chain([places.begin])
        .collect();
    let is_apart = |at: &usize| {
        let differ = |rows: &Vec<&CsvRow>| {
            rows.iter()
                .map(|row| &row.1[*at])
                .collect::<HashSet<_>>()
                .len()
                == rows.len()
        };
        by_time.values().all(differ)
    };
    let column = (0..places.names.len())
        .filter(|at| !used.contains(at))
        .find(is_apart);
    let why = column.map_or_else(
        || "an earlier line has the same time".to_string(),
        |at| {
            let name = &places.names[at];
            format!("an earlier line has the same time and another {name}: use one file per {name}")
        },
    );
    let mut lines: Vec<usize> = by_time
        .values()
        .flat_map(|rows| rows[1..].iter().map(|row| row.0))
        .collect();
    lines.sort_unstable();
    lines
        .into_iter()
        .for_each(|line| remarks.doubtful(line, &why));
}

/// True for a line of dashes, as SQL*Plus draws below its headings.
fn is_rule((_, row): &CsvRow) -> bool {
    row.iter()
        .all(|field| !field.is_empty() && field.bytes().all(|byte| byte == b'-'))
}

/// Comments in the file.
fn comments(text: &str) -> Vec<(String, String)> {
    let comments = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('#'))
        .map(str::trim);
    comments
        .filter(|said| !said.is_empty())
        .take(5)
        .map(|said| ("comment".into(), said.into()))
        .collect()
}

/// The decimal and thousands separators in the numbers of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Decimal point.
    Point,
    /// Decimal comma.
    Comma,
    /// This character separates thousands.
    Thousands(char),
}

/// True for digits in groups of three separated by commas or points, such as `1,234`, `1.234,5` or
/// `1,234,567.8`.
fn is_grouped(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['+', '-']);
    let (whole, rest) = match (digits.rfind(','), digits.rfind('.')) {
        // With both characters, the last is the decimal separator.
        (Some(comma), Some(point)) => digits.split_at(comma.max(point)),
        (None, None) => return false,
        _ => (digits, ""),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.split([',', '.']);
    let first = groups.next().unwrap_or_default();
    is_number(first)
        && first.len() <= 3
        && groups.all(|group| is_number(group) && group.len() == 3)
        && (rest.is_empty() || is_number(&rest[1..]))
}

/// The meaning of commas or points in column `at`. Before exactly three digits either is possible,
/// so another value of the column must decide.
fn sign_of(name: &str, rows: &[CsvRow], at: usize, column: &str) -> Result<Sign, Error> {
    // With four decimals, a point is not mistaken for a thousands separator.
    const HINT: &str =
        "write numbers without thousands separators, with a point for decimals: 6272 or 6.2720";
    let values = || {
        rows.iter()
            .filter_map(|(line, row)| Some((*line, row.get(at)?.as_str())))
    };
    let first_with = |sign: char| values().find(|(_, value)| value.contains(sign));
    let (sign, word, (line, value)) = match (first_with(','), first_with('.')) {
        (None, None) => return Ok(Sign::Point),
        (Some((line, value)), Some((other_line, other))) => {
            let why = if line == other_line {
                format!("'{value}' in {column} has a comma and a point")
            } else {
                format!(
                    "'{value}' in {column} has a comma, and '{other}' in line {other_line} has a \
                     point"
                )
            };
            return Err(damaged(name, line, &why, HINT));
        }
        (Some(found), None) => (',', "comma", found),
        (None, Some(found)) => ('.', "point", found),
    };
    let (mut is_thousands, mut is_decimal) = (false, false);
    for (_, value) in values().filter(|(_, value)| value.contains(sign)) {
        is_thousands |= value.matches(sign).count() > 1;
        is_decimal |= !is_grouped(value) || value.trim_start_matches(['+', '-']).starts_with('0');
    }
    match (is_thousands, is_decimal) {
        (true, false) => Ok(Sign::Thousands(sign)),
        (false, true) => Ok(if sign == ',' {
            Sign::Comma
        } else {
            Sign::Point
        }),
        (true, true) => {
            let why = format!("the {word}s in {column} separate both thousands and decimals");
            Err(damaged(name, line, &why, HINT))
        }
        (false, false) => {
            let why =
                format!("the {word} in '{value}' in {column} may separate thousands or decimals");
            Err(damaged(name, line, &why, HINT))
        }
    }
}

/// Reads rows one by one.
struct RowReader<'a> {
    name: &'a str,
    order: Order,
    /// By column.
    signs: Vec<Sign>,
    places: &'a CsvColumns,
    remarks: Remarks,
    /// Line and duration in seconds of samples between two times of a clock that may be local.
    lengths: Vec<(usize, i64)>,
}

impl RowReader<'_> {
    fn row(
        &mut self,
        line: usize,
        row: &[String],
        series: &mut [ImportedSeries],
    ) -> Result<(), Error> {
        let places = self.places;
        if row.len() != places.names.len() {
            let why = format!(
                "the number of fields is {} and not {}",
                row.len(),
                places.names.len()
            );
            return Err(damaged(
                self.name,
                line,
                &why,
                "write every line with the same number of fields, or remove it",
            ));
        }
        if is_void(&row[places.begin]) {
            self.remarks.left_out(line, "its time is empty");
            return Ok(());
        }
        let begin = self.time(line, &row[places.begin])?;
        let end = places.end.map(|at| &row[at]).filter(|text| !is_void(text));
        let end = end.map(|text| self.time(line, text)).transpose()?;
        let seconds = match places.seconds {
            Some(at) => self.number(line, row, at)?,
            None => end.map(|end| end.since(begin) as f64),
        };
        if let (Some(end), None) = (end, places.seconds) {
            self.lengths.push((line, end.since(begin)));
        }
        let counted = |value, count| Counted {
            begin,
            seconds,
            value,
            count,
        };
        if places.values.is_empty() {
            for (at, one) in places.counts.iter().zip(series.iter_mut()) {
                let count = self.number(line, row, *at)?;
                self.add(line, one, counted(None, count));
            }
            return Ok(());
        }
        let first = places.counts.first();
        let count = first.map(|at| self.number(line, row, *at)).transpose()?;
        for (at, one) in places.values.iter().zip(series.iter_mut()) {
            let value = self.number(line, row, *at)?;
            self.add(line, one, counted(value, count.flatten()));
        }
        Ok(())
    }

    fn add(&mut self, line: usize, series: &mut ImportedSeries, sample: Counted) {
        match impossible(&sample, &series.unit) {
            Some(why) => self.remarks.left_out(line, why),
            None => series.samples.push(sample),
        }
    }

    /// Marks samples exactly an hour longer or shorter than the median as doubtful: when a local
    /// clock changes, an hour is missing or repeated.
    fn warn_of_lengths(&mut self) {
        const HOUR: i64 = 3600;
        let mut sorted: Vec<i64> = self
            .lengths
            .iter()
            .map(|length| length.1)
            .filter(|length| *length > 0)
            .collect();
        sorted.sort_unstable();
        let Some(usual) = sorted.get(sorted.len() / 2) else {
            return;
        };
        for (line, length) in &self.lengths {
            if *length > 0 && (length - usual).abs() == HOUR {
                self.remarks.doubtful(
                    *line,
                    "its duration is an hour off the usual one, as when a local clock changes to \
                     or from summer time",
                );
            }
        }
    }

    fn time(&self, line: usize, text: &str) -> Result<Moment, Error> {
        moment(text, self.order).ok_or_else(|| {
            let why = format!("'{}' {}", shortened(text), time::why_not(text));
            damaged(
                self.name,
                line,
                &why,
                "write it as 2016-04-23T10:17; --time COLUMN names another column",
            )
        })
    }

    /// The number in a column; `None` if it is empty.
    fn number(&self, line: usize, row: &[String], at: usize) -> Result<Option<f64>, Error> {
        let text = &row[at];
        if is_void(text) {
            return Ok(None);
        }
        let plain = if let Sign::Thousands(sign) = self.signs[at] {
            text.replace(sign, "")
        } else {
            text.clone()
        };
        number(&plain, self.signs[at] == Sign::Comma)
            .map(Some)
            .ok_or_else(|| {
                let why = format!(
                    "'{}' of {} is not a number",
                    shortened(text),
                    self.places.names[at]
                );
                damaged(
                    self.name,
                    line,
                    &why,
                    "write it without thousands separators; leave it empty where it is unknown",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(text: &str, columns: &Columns) -> Vec<ImportedSeries> {
        match read(
            Source {
                name: "f.csv",
                text,
            },
            columns,
        )
        .unwrap()
        .figures
        {
            Figures::Series(series) => series,
            _ => unreachable!("a table is a series"),
        }
    }

    fn refused(text: &str) -> String {
        read(
            Source {
                name: "f.csv",
                text,
            },
            &Columns::default(),
        )
        .unwrap_err()
        .to_string()
    }

    #[test]
    fn the_csv_of_a_cloud_day_is_read_unchanged() {
        let found = series(
            include_str!("../../../docs/examples/cloud-day.csv"),
            &Columns::default(),
        );
        let [one] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (one.name.as_str(), one.unit.as_str(), one.samples.len()),
            ("physical_reads_per_second", "/s", 51)
        );
        let first = one.samples[0];
        assert_eq!(first.begin.to_string(), "2016-04-23T10:17:00+00:00");
        assert_eq!(
            (first.seconds, first.value, first.count),
            (Some(1018.0), Some(6272.0), Some(6_385_274.0))
        );
    }

    fn notes(text: &str) -> String {
        read(
            Source {
                name: "f.csv",
                text,
            },
            &Columns::default(),
        )
        .unwrap()
        .notes
        .join("; ")
    }

    fn values(text: &str) -> Vec<Option<f64>> {
        series(text, &Columns::default())[0]
            .samples
            .iter()
            .map(Counted::rate)
            .collect()
    }

    #[test]
    fn counts_of_reads_and_of_writes_are_two_series() {
        let text = "begin,reads,writes,seconds\n2026-03-01T00:00,600000,60000,600\n";
        let found = series(text, &Columns::default());
        let rates = |one: &ImportedSeries| (one.name.clone(), one.samples[0].rate());
        let [reads, writes] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(rates(reads), ("reads".into(), Some(1000.0)));
        assert_eq!(rates(writes), ("writes".into(), Some(100.0)));
        // Who names one wants that one.
        let named = Columns {
            count: Some("writes".into()),
            ..Columns::default()
        };
        assert_eq!(rates(&series(text, &named)[0]), rates(writes));
        // Two counts of reads are two ways to count them.
        let reads = "begin,physical_reads,reads,seconds\n2026-03-01T00:00,600,60,600\n";
        assert_eq!(series(reads, &Columns::default()).len(), 1);
    }

    #[test]
    fn impossible_samples_are_left_out_and_noted() {
        let reset = "begin,seconds,reads\n2026-03-01T00:00,900,9000\n2026-03-01T00:15,900,\
                     -1000000000\n2026-03-01T00:30,0,9000\n2026-03-01T00:45,,9000\n2026-03-01T01:\
                     00,900,1800\n,900,5\n";
        assert_eq!(values(reset), [Some(10.0), Some(2.0)]);
        for part in [
            "1 sample is left out, in line 3: the count is negative, as after a reset of a counter",
            "1 sample is left out, in line 4: its duration is 0",
            "1 sample is left out, in line 5: it has a count but no duration",
            "1 sample is left out, in line 7: its time is empty",
        ] {
            assert!(notes(reset).contains(part), "{}", notes(reset));
        }
        let empty = "time,iops\n2026-03-01T00:00,\n2026-03-01T00:15,NULL\n2026-03-01T00:30,-5\n\
                     2026-03-01T00:45,5\n";
        assert!(
            notes(empty)
                .contains("2 samples are left out, the first in line 2: the value is empty")
        );
        assert_eq!(values(empty), [Some(5.0)]);
        let turned = "begin,end,value\n2026-03-01T01:00,2026-03-01T00:00,5\n2026-03-01T02:00,\
                      2026-03-01T01:00,6\n";
        let said = refused(turned);
        assert!(said.contains(
            "no valid sample: 2 samples are left out, the first in line 2: it ends before"
        ));
        // Values without a unit may be negative.
        assert_eq!(values("time,value\n2026-03-01T00:00,-5\n"), [Some(-5.0)]);
    }

    #[test]
    fn text_of_sqlplus_around_a_table_is_skipped() {
        let spooled = "SQL> select began, counted\n  2  from \
                       snapshots;\n\n\"begin\",\"seconds\",\"physical_reads\"\n2026-03-01T00:00,\
                       10,50\n\n\"begin\",\"seconds\",\"physical_reads\"\n2026-03-01T00:10,10,70\n\
                       \n2 rows selected.\n\nElapsed: 00:00:00.01\nSQL> spool off\n";
        assert!(is_like(spooled, &Columns::default()));
        assert_eq!(values(spooled), [Some(5.0), Some(7.0)]);
    }

    #[test]
    fn an_empty_first_row_is_accepted() {
        for first in [
            "2026-03-01 00:00;",
            "2026-03-01 00:00;NULL",
            "-----;-----",
            ";5",
        ] {
            let text = format!("time;value\n{first}\n2026-03-01 01:00;5\n");
            assert!(is_like(&text, &Columns::default()), "{first}");
            assert_eq!(values(&text), [Some(5.0)], "{first}");
        }
    }

    #[test]
    fn units_are_derived_from_names_of_rates_and_requested_for_others() {
        for name in [
            "rate",
            "iops",
            "TPS",
            "read_iops",
            "physical reads/s",
            "io_per_s",
            "Reads (per sec)",
        ] {
            let text = format!("time,{name}\n2026-03-01T00:00,5\n");
            assert_eq!(series(&text, &Columns::default())[0].unit, "/s", "{name}");
            assert!(!notes(&text).contains("--unit"), "{name}");
        }
        let said = notes("time,latency\n2026-03-01T00:00,5\n");
        assert!(
            said.contains(
                "latency has no unit: if it is a rate, give --unit /s to have it analysed"
            ),
            "{said}"
        );
    }

    #[test]
    fn duplicate_lines_and_times_are_noted() {
        let two = "instance,time,iops\n1,2026-03-01T00:00,5\n2,2026-03-01T00:00,900\n1,\
                   2026-03-01T01:00,6\n2,2026-03-01T01:00,901\n";
        let said = notes(two);
        let expected = "2 samples are doubtful, the first in line 3: an earlier line has the same \
                        time and another instance: use one file per instance";
        assert!(said.contains(expected), "{said}");
        let said = notes("time,iops\n2026-03-01T00:00,5\n2026-03-01T00:00,5\n2026-03-01T00:00,6\n");
        assert!(
            said.contains("1 sample is doubtful, in line 3: it repeats an earlier line"),
            "{said}"
        );
        assert!(
            said.contains("1 sample is doubtful, in line 4: an earlier line has the same time"),
            "{said}"
        );
    }

    #[test]
    fn assumptions_about_times_are_noted() {
        let spring = "begin,end,iops\n2026-03-29T01:00,2026-03-29T01:15,5\n2026-03-29T01:15,\
                      2026-03-29T01:30,5\n2026-03-29T01:45,2026-03-29T03:00,5\n";
        assert!(
            notes(spring).contains("in line 4: its duration is an hour off the usual one"),
            "{}",
            notes(spring)
        );
        let end = "end_interval_time,reads\n2026-03-29T01:00,5\n";
        assert!(
            notes(end).contains("end_interval_time is taken as the begin"),
            "{}",
            notes(end)
        );
        let cut = "time,iops\n2026-03-01T01:00,6000\n2026-03-01T02:00,60";
        assert_eq!(values(cut), [Some(6000.0), Some(60.0)]);
        assert!(
            notes(cut).contains("the last line, 3, has no line end"),
            "{}",
            notes(cut)
        );
        assert!(!notes("time,iops\n1461449825.5,6000\n").contains("UTC"));
        let said = notes("time,iops\n03-01-2026,5\n04-01-2026,5\n");
        assert!(said.contains("the day is taken to"), "{said}");
    }

    #[test]
    fn separators_heads_and_gaps_of_many_kinds_are_read() {
        assert_eq!(
            values("2016-04-23T10:17,5\n2016-04-23T10:27,6\n"),
            [Some(5.0), Some(6.0)]
        );
        assert_eq!(
            values("time;value\n23.04.2016 10:17;5,25\n23.04.2016 10:27;\n"),
            [Some(5.25)]
        );
        assert_eq!(
            values("\"SNAP_TIME\"\t\"READS\"\n-----\t----\n23-APR-16 10.17.00 AM\t7\n"),
            [Some(7.0)]
        );
        assert_eq!(
            values("begin,seconds,reads\n2016-04-23T10:17,10,50\n"),
            [Some(5.0)]
        );
        assert_eq!(
            values("begin,end,reads\n2016-04-23T10:17,2016-04-23T10:18,120\n"),
            [Some(2.0)]
        );
        // A comma before three digits has the same meaning as the other commas of its column.
        let thousands = "time;value\n2016-04-23;6,272\n2016-04-24;1,234,567\n2016-04-25;417\n";
        assert_eq!(
            values(thousands),
            [Some(6272.0), Some(1_234_567.0), Some(417.0)]
        );
        assert_eq!(
            values("time;value\n2016-04-23;6,272\n2016-04-24;0,125\n"),
            [Some(6.272), Some(0.125)]
        );
        assert_eq!(
            values("time;value\n2016-04-23;6.272\n2016-04-24;0.125\n"),
            [Some(6.272), Some(0.125)]
        );
        assert_eq!(
            values("time;value\n2016-04-23;6.272\n2016-04-24;1.000.125\n"),
            [Some(6272.0), Some(1_000_125.0)]
        );
        assert_eq!(values("time,value\n2016-04-23,6.272\n"), [Some(6.272)]);
        let said = Columns {
            time: Some("3".into()),
            values: vec!["b".into()],
            unit: Some("ms".into()),
            ..Columns::default()
        };
        let found = series("a,b,c\n1,2,2016-04-23\n", &said);
        assert_eq!(
            (found[0].unit.as_str(), found[0].samples[0].value),
            ("ms", Some(2.0))
        );
    }

    #[test]
    fn quotes_hold_separators_quotes_and_line_breaks() {
        let text = "# a comment, \"with a quote\n\"time\",\"the \"\"true\"\"\r\n \
                    IOPS\",note\r\n2026-03-01T00:00,5,\"5\"\" disk, # two\r\n\r\n# \
                    lines\"\r\n2026-03-01T01:00, \"6\" ,5\" disk\r\n2026-03-01T02:00,x,\r\n";
        let rows: Vec<CsvRow> = CsvRows::of(text).unwrap().collect();
        let row = |line, fields: [&str; 3]| (line, fields.map(String::from).to_vec());
        assert_eq!(
            rows,
            [
                row(2, ["time", "the \"true\" IOPS", "note"]),
                row(4, ["2026-03-01T00:00", "5", "5\" disk, # two  # lines"]),
                row(7, ["2026-03-01T01:00", "6", "5\" disk"]),
                row(8, ["2026-03-01T02:00", "x", ""]),
            ]
        );
        let said = refused(text);
        assert!(
            said.contains("line 8: 'x' of the \"true\" IOPS is not a number"),
            "{said}"
        );
        let unclosed = "time,iops,note\n2026-03-01T00:00,5,\"of the\n2026-03-01T01:00,6,night\n";
        assert!(
            refused(unclosed).contains("line 2: has a quote that is not closed"),
            "{}",
            refused(unclosed)
        );
    }

    proptest! {
        #[test]
        fn rows_are_those_that_were_written(
            cells in prop::collection::vec("[a\"#;,\\r\\n ]{0,6}", 4..40),
            tab in any::<bool>(),
        ) {
            let separator = if tab { b'\t' } else { b',' };
            let mut writer = csv::WriterBuilder::new().delimiter(separator).from_writer(Vec::new());
            let rows: Vec<&[String]> = cells.chunks_exact(2).collect();
            // The separator is that of the first line.
            writer.write_record(["begin", "a", "b"]).unwrap();
            for row in &rows {
                writer.write_record(["begin", &row[0], &row[1]]).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let read: Vec<Vec<String>> = CsvRows::of(&text).unwrap().skip(1).map(|(_, row)| row).collect();
            let written = rows.iter().map(|row| vec!["begin".into(), field(&row[0]), field(&row[1])]);
            prop_assert_eq!(read, written.collect::<Vec<_>>());
        }
    }

    #[test]
    fn errors_name_the_line_and_a_hint() {
        for (text, part) in [
            (
                "time\tv\n2016-04-23\t6,272\n2016-04-24\t417.5\n",
                "line 2: '6,272' in v has a comma, and '417.5' in line 3 has",
            ),
            (
                "time\tv\n2016-04-23\t417\n2016-04-24\t6,272\n",
                "line 3: the comma in '6,272' in v may separate",
            ),
            (
                "time;v\n2016-04-23;1.234,5\n",
                "line 2: '1.234,5' in v has a comma and a point",
            ),
            (
                "time;v\n2016-04-23;6.009\n2016-04-24;998\n",
                "line 2: the point in '6.009' in v may separate",
            ),
            (
                "time,v\n26-03-01,5\n2026-04-24,5\n",
                "line 2: '26-03-01' may have its year first or last",
            ),
            (
                "time;v\n2016-04-23;1,5\n2016-04-24;1,234,567\n",
                "line 2: the commas in v separate both",
            ),
            (
                "time,v\n2016-04-23,\"6,272\"\n",
                "line 2: '6,272' of v is not a number",
            ),
            (
                "time,value\n2016-04-23T10:17,5\n2016-04-23T10:27,x\n",
                "line 3: 'x' of value is not a number",
            ),
            (
                "time,value\n2016-04-23T10:17,5\nyesterday,6\n",
                "line 3: 'yesterday' is not a date and time",
            ),
            (
                "time,value\n2016-04-23T10:17,5\n2016-04-23T10:2",
                "line 3: the number of fields is 1 and not 2",
            ),
            (
                "time,a,b\n2016-04-23T10:17,5,6\n",
                "has several columns that may be the value: a, b",
            ),
            ("a,b\n1,2\n", "no column of times"),
            ("time,value\n", "contains no figures"),
        ] {
            let said = refused(text);
            assert!(said.contains(part) && said.contains("hint: "), "{said}");
        }
    }
}
