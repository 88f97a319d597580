//! Listings of SQL*Plus as people paste them: heads, a ruler of dashes, rows, pages.
//!
//! Two kinds are read: intervals with their physical reads, which become a series as csv does, and
//! histograms of waits from `v$event_histogram_micro` and its relatives.

use super::awr::{count, event, figure, plain};
use super::csv_columns;
use super::limits::{COLUMNS_MAX, NO_BOUND_MS, REPORT_MAX};
use super::ruler::{LineCells, Ruler, expanded, unclear};
use super::source::Source;
use super::table;
use super::time::{Order, moment};
use rigel_model::record::Imported;
use rigel_model::record::database::{DatabaseReport, ReportKind, WaitBucket, WaitHistogram};
use rigel_model::record::imported::Figures;
use rigel_model::{Bytes, Error, failed, usage};
use std::borrow::Cow;

/// Names of columns that heads may be cut from.
const NAMES: &[&str] = &[
    "begin_interval_time",
    "begin_time",
    "con_id",
    "elapsed_seconds",
    "end_interval_time",
    "end_time",
    "event",
    "event_name",
    "inst_id",
    "instance_number",
    "last_update_time",
    "latency",
    "max_iops",
    "max_mbps",
    "max_pmbps",
    "num_physical_disks",
    "physical_reads",
    "physical_reads_per_sec",
    "physical_reads_per_second",
    "seconds",
    "snap_id",
    "snap_time",
    "start_time",
    "wait_class",
    "wait_count",
    "wait_time_format",
    "wait_time_micro",
    "wait_time_milli",
];

/// Columns whose blank cells repeat the value above (`BREAK ON`).
const REPEATED: &[&str] = &[
    "event",
    "event_name",
    "con_id",
    "inst_id",
    "instance_number",
    "snap_id",
    "wait_class",
];

/// Maximum length of a cell that is repeated, in bytes: an identifier's of Oracle.
const REPEATED_MAX: usize = 128;

/// The note about a single listing of a histogram.
pub(super) const SINCE_START: &str = "a listing of a histogram counts since the instance was started: it has a distribution and no \
     rate; give two listings for what happened between them";

/// A listing.
struct Listing {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Cells that did not fit their column.
    unfit: usize,
    /// Words that may belong to either of two columns.
    unclear: usize,
}

impl Listing {
    fn column(&self, names: &[&str]) -> Option<usize> {
        self.names
            .iter()
            .position(|name| names.contains(&name.as_str()))
    }

    fn is_histogram(&self) -> bool {
        self.column(&["wait_time_micro", "wait_time_milli"])
            .is_some()
            && self.column(&["wait_count"]).is_some()
    }

    fn is_interval(&self) -> bool {
        let times = [
            "begin_interval_time",
            "begin_time",
            "snap_time",
            "end_interval_time",
            "end_time",
        ];
        self.column(&times).is_some()
            && self
                .names
                .iter()
                .any(|name| name.starts_with("physical_read"))
    }
}

/// True if the text is a listing of one of the two kinds.
pub(super) fn is_like(text: &str) -> bool {
    // A listing begins with its heads, at most a screen of dialogue before.
    const LINES: usize = 100;
    let start: Vec<&str> = text.lines().take(LINES).collect();
    let listings = listings("", &start.join("\n")).unwrap_or_default();
    listings
        .iter()
        .any(|listing| listing.is_histogram() || listing.is_interval())
}

/// Reads a listing.
///
/// # Errors
/// It has no ruler, no known columns, or records that are folded over two lines.
pub(super) fn read(source: Source, columns: &csv_columns::Columns) -> Result<Vec<Imported>, Error> {
    let mut all = listings(source.name, source.text)?;
    let count = all.len();
    if all.iter().any(Listing::is_histogram) {
        all.retain(Listing::is_histogram);
        let mut imported = all_histograms(source.name, &all)?;
        imported[0].notes.extend(left_out(count - all.len()));
        return Ok(imported);
    }
    let chosen = all.iter().position(Listing::is_interval).unwrap_or(0);
    let mut listing = all.swap_remove(chosen);
    let (same, others): (Vec<Listing>, Vec<Listing>) = all
        .into_iter()
        .partition(|other| other.names == listing.names);
    for other in same {
        listing.rows.extend(other.rows);
        listing.unfit += other.unfit;
        listing.unclear += other.unclear;
    }
    if !listing.is_interval() && *columns == csv_columns::Columns::default() {
        return Err(usage!(
            "'{name}' is a listing, and its columns are neither times with physical reads nor a \
             histogram of waits: {names}",
            "name the columns with --time and --value",
            name = source.name,
            names = listing.names.join(", ")
        ));
    }
    let text = as_csv(&listing);
    let mut read = table::read(
        Source {
            text: &text,
            ..source
        },
        columns,
    )?;
    read.notes.extend(unfit(&listing));
    read.notes.extend(contradiction(&listing));
    read.notes.extend(left_out(others.len()));
    Ok(vec![read])
}

/// The note about listings of other columns in the same text.
fn left_out(count: usize) -> Option<String> {
    (count > 0).then(|| format!("listings of other columns are left out: {count}"))
}

/// Names the rows whose rate times seconds is not their count, within the rounding of the three.
fn contradiction(listing: &Listing) -> Option<String> {
    let rate = listing.column(&["physical_reads_per_sec", "physical_reads_per_second"])?;
    let seconds = listing.column(&["seconds", "elapsed_seconds"])?;
    let reads = listing.column(&["physical_reads"])?;
    let contradicts = |row: &&Vec<String>| {
        let of = |column: usize| row.get(column).and_then(|cell| figure(cell));
        let (Some(rate), Some(seconds), Some(reads)) = (of(rate), of(seconds), of(reads)) else {
            return false;
        };
        // Each may be rounded by half of its last digit, and a whole number of seconds be cut.
        let rounding = rate.half * seconds.value + 2.0 * seconds.half.max(0.5) * rate.value;
        (rate.value * seconds.value - reads.value).abs() > rounding + reads.half + 1.0
    };
    let rows: Vec<&Vec<String>> = listing.rows.iter().filter(contradicts).collect();
    let first = rows.first()?;
    Some(format!(
        "in {} of {} rows, reads per second times seconds are not the reads: the first has {} x {} \
         and {}",
        rows.len(),
        listing.rows.len(),
        first[rate].trim(),
        first[seconds].trim(),
        first[reads].trim()
    ))
}

/// Names of the columns of any listing, and its rows.
pub(super) fn columns(source: Source) -> Result<(Vec<String>, Vec<Vec<String>>), Error> {
    let mut all = listings(source.name, source.text)?.into_iter();
    let Some(mut found) = all.next() else {
        return Ok((Vec::new(), Vec::new()));
    };
    for other in all.filter(|other| other.names == found.names) {
        found.rows.extend(other.rows);
    }
    Ok((found.names, found.rows))
}

/// Notes about cells that are unknown.
fn unfit(listing: &Listing) -> Vec<String> {
    let mut notes = Vec::new();
    if listing.unfit > 0 {
        notes.push(format!(
            "{} cells did not fit their column (####) and are unknown",
            listing.unfit
        ));
    }
    notes.extend(unclear(listing.unclear, "the listing"));
    notes
}

/// The listings of a text. Heads that come again on a new page continue a listing; heads after the
/// end of a query begin another one.
fn listings(name: &str, text: &str) -> Result<Vec<Listing>, Error> {
    let lines: Vec<Cow<str>> = text.lines().map(expanded).collect();
    let lines = unfolded(name, &lines)?;
    let is_gap = |line: &Cow<str>| line.is_empty() || is_talk(line);
    let rulers = lines.iter().enumerate().filter(|(_, line)| is_ruler(line));
    let mut open: Option<OpenListing> = None;
    let mut listings = Vec::new();
    let mut body = 0;
    for (at, line) in rulers {
        let between = &lines[body..at];
        let is_again = |open: &OpenListing| {
            open.line == *line
                && between.len() >= open.heads.len()
                && between[between.len() - open.heads.len()..] == *open.heads
        };
        if let Some(mut known) = open.take_if(|open| is_again(open)) {
            let rows = &between[..between.len() - known.heads.len()];
            known.add(rows);
            // A page ends with a blank line, and a query with its dialogue.
            if rows.iter().any(|line| is_talk(line)) {
                let next = known.again();
                listings.push(known.listing);
                known = next;
            }
            open = Some(known);
        } else {
            let gap = between.iter().rposition(is_gap);
            let start = gap.map_or(0, |gap| gap + 1);
            if let Some(mut known) = open.take() {
                if gap.is_none() || start == between.len() {
                    return Err(usage!(
                        "'{name}' line {line}: another ruler: records are folded over two lines",
                        "make the listing again after: set linesize 200",
                        line = at + 1
                    ));
                }
                known.add(&between[..start]);
                listings.push(known.listing);
            }
            open = OpenListing::of(&between[start..], line);
        }
        body = at + 1;
    }
    if let Some(mut known) = open {
        known.add(&lines[body..]);
        listings.push(known.listing);
    }
    if listings.is_empty() {
        return Err(usage!(
            "'{name}' has no ruler of dashes below the heads of columns",
            "paste the listing with its heads, as SQL*Plus prints it"
        ));
    }
    Ok(listings)
}

fn is_ruler(line: &str) -> bool {
    let dashes = line.bytes().filter(|byte| *byte == b'-').count();
    dashes >= 2 && line.bytes().all(|byte| matches!(byte, b'-' | b' '))
}

/// The lines with heads, rulers and records in one line each, where a screen of 80 columns folded them:
/// the heads and ruler of its first columns are followed by those of the others, and so is a record.
///
/// # Errors
/// Blanks between short lines below wide rulers would be longer than a report may be.
fn unfolded<'a>(name: &str, lines: &[Cow<'a, str>]) -> Result<Vec<Cow<'a, str>>, Error> {
    /// Lines of a head and its ruler.
    const HEAD: usize = 2;
    let is_head = |at: usize| {
        let of = |at: usize| lines.get(at).map(|line| &**line);
        let is_name = |line: &str| !line.is_empty() && !is_ruler(line) && !is_talk(line);
        of(at).is_some_and(is_name) && of(at + 1).is_some_and(is_ruler)
    };
    let mut whole = Vec::new();
    let mut widths: Vec<usize> = Vec::new();
    let mut length = Bytes(0);
    let mut at = 0;
    while at < lines.len() {
        if length > REPORT_MAX {
            return Err(usage!(
                "'{name}' line {line}: more than {max} when folded records are joined",
                "make the listing again after: set linesize 200",
                line = at + 1,
                max = REPORT_MAX
            ));
        }
        let heads = (0..COLUMNS_MAX).take_while(|head| is_head(at + HEAD * head));
        let heads = heads.count();
        if heads > 0 {
            let rulers = (0..heads).map(|head| lines[at + HEAD * head + 1].chars().count());
            widths = rulers.collect();
        }
        if heads > 1 {
            let every = |from: usize| (0..heads).map(move |head| at + HEAD * head + from);
            for from in 0..HEAD {
                whole.push(joined(every(from).map(|at| &*lines[at]), &widths));
            }
            at += HEAD * heads;
            continue;
        }
        let rest = lines[at..].iter();
        let record = rest.take_while(|line| !line.is_empty() && !is_talk(line));
        let record = record.take(widths.len()).count();
        if widths.len() > 1 && record == widths.len() {
            let record = lines[at..at + record].iter().map(|line| &**line);
            let record = joined(record, &widths);
            length = Bytes(length.0 + record.len() as u64);
            whole.push(record);
            at += widths.len();
            continue;
        }
        whole.push(lines[at].clone());
        at += 1;
    }
    Ok(whole)
}

/// Lines one behind the other, each but the last as wide as its ruler.
fn joined<'a>(lines: impl Iterator<Item = &'a str>, widths: &[usize]) -> Cow<'static, str> {
    let lines = lines
        .zip(widths)
        .map(|(line, width)| format!("{line:<width$}"));
    let line: Vec<String> = lines.collect();
    Cow::Owned(line.join(" ").trim_end().to_string())
}

/// A listing whose rows are being read.
struct OpenListing<'a> {
    heads: &'a [Cow<'a, str>],
    line: &'a str,
    ruler: Ruler,
    listing: Listing,
}

impl<'a> OpenListing<'a> {
    fn of(heads: &'a [Cow<'a, str>], line: &'a str) -> Option<Self> {
        let ruler = Ruler::of(line)?;
        let lines: Vec<String> = heads.iter().map(ToString::to_string).collect();
        let names = ruler
            .heads(&lines)
            .iter()
            .zip(&ruler.widths())
            .map(|(head, width)| whole(head, *width))
            .collect();
        Some(Self {
            heads,
            line,
            ruler,
            listing: Listing {
                names,
                rows: Vec::new(),
                unfit: 0,
                unclear: 0,
            },
        })
    }

    /// Another one with the same heads, without rows.
    fn again(&self) -> Self {
        Self {
            ruler: self.ruler.clone(),
            listing: Listing {
                names: self.listing.names.clone(),
                rows: Vec::new(),
                unfit: 0,
                unclear: 0,
            },
            ..*self
        }
    }

    fn add(&mut self, rows: &[Cow<str>]) {
        for line in rows {
            let is_head = self.heads.iter().any(|head| head == line);
            if !line.is_empty() && !is_head && !is_talk(line) {
                self.listing.add(self.ruler.cells(line));
            }
        }
    }
}

impl Listing {
    fn add(&mut self, line: LineCells) {
        let mut cells = line.cells;
        self.unclear += line.unclear;
        // A row ends with its line, and blanks at its end may repeat the value above, too.
        let repeated = |name: &String| REPEATED.contains(&name.as_str());
        let least = self.names.iter().rposition(repeated).map_or(0, |at| at + 1);
        if cells.len() < least {
            cells.resize(least, String::new());
        }
        for (at, cell) in cells.iter_mut().enumerate() {
            if !cell.is_empty() && cell.bytes().all(|byte| byte == b'#') {
                cell.clear();
                self.unfit += 1;
            } else if cell.is_empty()
                && self
                    .names
                    .get(at)
                    .is_some_and(|name| REPEATED.contains(&name.as_str()))
                && let Some(above) = self.rows.last().and_then(|row| row.get(at))
                && above.len() <= REPEATED_MAX
            {
                cell.clone_from(above);
            }
        }
        self.rows.push(cells);
    }
}

/// Lines of the dialogue: prompts, counts of rows.
fn is_talk(line: &str) -> bool {
    let words = line.trim();
    words.starts_with("SQL>")
        || words.ends_with("rows selected.")
        || words.ends_with("row selected.")
        || words.starts_with("Elapsed:")
        || is_continued(line)
}

/// A line of a statement after its first one: `  2  from v$event_histogram_micro`.
fn is_continued(line: &str) -> bool {
    const NUMBER: usize = 3;
    let (Some(number), Some(rest)) = (line.get(..NUMBER), line.get(NUMBER..)) else {
        return false;
    };
    number.trim_start().parse::<u32>().is_ok() && rest.starts_with("  ") && line.starts_with(' ')
}

/// The whole name of a column whose head may be cut to its width.
fn whole(head: &str, width: usize) -> String {
    let name = plain(head).replace(' ', "_");
    if NAMES.contains(&name.as_str()) || name.chars().count() < width {
        return name;
    }
    let mut fitting = NAMES
        .iter()
        .filter(|known| known.starts_with(name.as_str()));
    match (fitting.next(), fitting.next()) {
        (Some(known), None) => (*known).to_string(),
        _ => name,
    }
}

/// The listing as csv, for the reader of csv. Numbers lose the commas between their thousands.
fn as_csv(listing: &Listing) -> String {
    let cell = |text: &str| match count(text) {
        Some(_) if text.contains(',') => text.replace(',', ""),
        _ if text.contains([',', '"']) => format!("\"{}\"", text.replace('"', "\"\"")),
        _ => text.to_string(),
    };
    let mut csv = listing.names.join(",") + "\n";
    for row in &listing.rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        csv += &cells.join(",");
        // Columns behind the line's end are empty.
        csv.extend(std::iter::repeat_n(
            ',',
            listing.names.len().saturating_sub(cells.len()),
        ));
        csv.push('\n');
    }
    csv
}

/// The histograms of all listings of a text. Listings of different events are parts of one.
fn all_histograms(name: &str, all: &[Listing]) -> Result<Vec<Imported>, Error> {
    let mut imported: Vec<Imported> = Vec::new();
    for listing in all {
        let next = histograms(name, listing)?;
        match imported.last_mut() {
            Some(last) if next.len() == 1 && are_parts(last, &next[0]) => {
                if let (Figures::Database(reports), Figures::Database(more)) =
                    (&mut last.figures, next[0].figures.clone())
                {
                    for report in more {
                        let container = &report.identity.container;
                        match reports
                            .iter_mut()
                            .find(|known| known.identity.container == *container)
                        {
                            Some(known) => known.histograms.extend(report.histograms),
                            None => reports.push(report),
                        }
                    }
                }
            }
            _ => imported.extend(next),
        }
    }
    Ok(imported)
}

/// True if no event of a container is in both.
fn are_parts(one: &Imported, other: &Imported) -> bool {
    let events = |of: &Imported| -> Vec<(Option<String>, String)> {
        let Figures::Database(reports) = &of.figures else {
            return Vec::new();
        };
        let is_snapshot = |report: &DatabaseReport| report.window.end_id.is_some();
        let all = reports.iter().filter(|report| !is_snapshot(report));
        all.flat_map(|report| {
            let container = &report.identity.container;
            let rows = report.histograms.iter();
            rows.map(|row| (container.clone(), row.event.clone()))
        })
        .collect()
    };
    let (first, second) = (events(one), events(other));
    !first.is_empty() && !second.is_empty() && first.iter().all(|event| !second.contains(event))
}

/// The listing of each snapshot, in order; the listing itself if it has none.
fn snapshots(listing: &Listing) -> Vec<(Option<u64>, Vec<&Vec<String>>)> {
    let column = listing.column(&["snap_id"]);
    let mut all = std::collections::BTreeMap::<Option<u64>, Vec<&Vec<String>>>::new();
    for row in &listing.rows {
        let cell = column.and_then(|column| row.get(column));
        let snap = cell.and_then(|cell| cell.trim().parse().ok());
        all.entry(snap).or_default().push(row);
    }
    all.into_iter().collect()
}

/// A source for each snapshot of a listing. Each has a report for each container and instance, with
/// the histograms of its events.
fn histograms(name: &str, listing: &Listing) -> Result<Vec<Imported>, Error> {
    let mut all = Vec::new();
    for (snap, rows) in snapshots(listing) {
        let reports = reports(name, listing, &rows, snap);
        if reports.is_empty() {
            continue;
        }
        let mut notes = Vec::new();
        if all.is_empty() {
            notes.extend(unfit(listing));
        }
        notes.push(SINCE_START.into());
        all.push(Imported {
            sources: vec![name.to_string()],
            tool: "listing".into(),
            version: None,
            reported: Vec::new(),
            notes,
            figures: Figures::Database(reports),
        });
    }
    if all.is_empty() {
        return Err(if listing.rows.is_empty() {
            failed!(
                "'{name}' is a listing of a histogram without rows",
                "paste the rows, too"
            )
        } else {
            failed!(
                "'{name}' is a listing of a histogram, and its numbers do not stand below their heads",
                "blanks were lost, as in a mail: send the file that SPOOL wrote, or give csv"
            )
        });
    }
    Ok(all)
}

/// A report for each container and instance in `rows`.
fn reports(
    name: &str,
    found: &Listing,
    rows: &[&Vec<String>],
    snap: Option<u64>,
) -> Vec<DatabaseReport> {
    let micro = found.column(&["wait_time_micro"]);
    let time = micro.or_else(|| found.column(&["wait_time_milli"]));
    let unit_us = if micro.is_some() { 1.0 } else { 1e3 };
    let event_column = found.column(&["event", "event_name"]);
    let waits = found.column(&["wait_count"]);
    let parts: Vec<usize> = [&["inst_id", "instance_number"][..], &["con_id"]]
        .into_iter()
        .filter_map(|names| found.column(names))
        .collect();
    let updated = found.column(&["last_update_time", "end_interval_time", "snap_time"]);
    let mut reports: Vec<DatabaseReport> = Vec::new();
    for row in rows {
        let of = |column: Option<usize>| {
            column
                .and_then(|column| row.get(column))
                .map_or("", String::as_str)
        };
        let (Some(bound), Some(waits)) = (figure(of(time)), count(of(waits))) else {
            continue;
        };
        let part: Vec<String> = parts
            .iter()
            .map(|at| format!("{} {}", found.names[*at], of(Some(*at))))
            .collect();
        let container = Some(part.join(", ")).filter(|part| !part.is_empty());
        let printed = of(event_column);
        let name_of = if printed.is_empty() {
            "all waits"
        } else {
            printed
        };
        let index = reports
            .iter()
            .position(|report| report.identity.container == container);
        let index = index.unwrap_or_else(|| {
            let mut report = DatabaseReport {
                file: name.to_string(),
                kind: ReportKind::Listing,
                ..DatabaseReport::default()
            };
            report.identity.container = container;
            report.window.end_id = snap;
            reports.push(report);
            reports.len() - 1
        });
        // The time of a listing is that of its last update.
        let updated = moment(of(updated), Order::MonthFirst);
        let end = &mut reports[index].window.end;
        *end = (*end).max(updated);
        let all = &mut reports[index].histograms;
        let row = WaitHistogram::listed(all, &event(name_of, false));
        // The first bucket of the view covers everything below its bound.
        row.first_bound_us = Some(unit_us);
        let us = bound.value * unit_us;
        let high_us = (us / 1e3 < NO_BOUND_MS).then_some(us);
        // Rows of several instances, where the listing does not name them, are counted together.
        let bits = |bound: Option<f64>| bound.map(f64::to_bits);
        if let Some(bucket) = row
            .buckets
            .iter_mut()
            .find(|bucket| bits(bucket.high_us) == bits(high_us))
        {
            bucket.count = bucket.count.map(|count| count + waits.value);
            continue;
        }
        row.buckets.push(WaitBucket {
            label: format!("<{}{}", of(time), if micro.is_some() { "us" } else { "ms" }),
            high_us,
            percent: None,
            count: Some(waits.value),
        });
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(text: &str) -> Result<Vec<Imported>, Error> {
        read(
            Source {
                name: "pasted.txt",
                text,
            },
            &csv_columns::Columns::default(),
        )
    }

    fn read_text(text: &str) -> Result<Imported, Error> {
        read_all(text).map(|mut all| all.remove(0))
    }

    const INTERVALS: &str = "\
SQL> select begin_interval_time, physical_reads, seconds from it;

BEGIN_INTERVAL_TI END_INTERVAL_TIME PHYSICAL_READS    SECONDS
----------------- ----------------- -------------- ----------
23-apr-2016 10:17 23-apr-2016 10:34      6,385,274       1018
23-apr-2016 10:44 23-apr-2016 11:01      6,388,349       1017

BEGIN_INTERVAL_TI END_INTERVAL_TIME PHYSICAL_READS    SECONDS
----------------- ----------------- -------------- ----------
23-apr-2016 11:12 23-apr-2016 11:29      6,385,646       1011

3 rows selected.
";

    const HISTOGRAM: &str = "SQL> /

    CON_ID EVENT                          WAIT_TIME_MICRO WAIT_COUNT WAIT_TIME_FORMAT
---------- ------------------------------ --------------- ---------- ------------------------------
         0 db file sequential read                    256        100 256 microseconds
                                                      512        300 512 microseconds
                                                     4096        100 4 milliseconds
         3 db file sequential read                    256          7 256 microseconds
         3 log file parallel write                   1024   ########  1 millisecond
";

    #[test]
    fn a_pasted_listing_of_intervals_is_a_series() {
        let found = read_text(INTERVALS).unwrap();
        let Figures::Series(series) = &found.figures else {
            panic!("{found:?}")
        };
        let samples = &series[0].samples;
        assert_eq!(samples.len(), 3);
        assert_eq!(samples[0].begin.to_string(), "2016-04-23T10:17:00+00:00");
        assert_eq!(samples[1].count, Some(6_388_349.0));
        assert_eq!(samples[2].seconds, Some(1011.0));
    }

    #[test]
    fn reads_that_are_not_rate_times_seconds_are_named() {
        let listing = |reads: &str| {
            format!(
                "END_INTERVAL_TIME PHYSICAL_READS PHYSICAL_READS_PER_SEC    SECONDS\n\
                 ----------------- -------------- ---------------------- ----------\n\
                 23-apr-2016 10:34      6,385,274                 6272.4       1018\n\
                 23-apr-2016 11:01 {reads:>14}                 6281.6       1017\n"
            )
        };
        let notes = |reads| read_text(&listing(reads)).unwrap().notes.join("; ");
        assert!(!notes("6,388,349").contains("times seconds"));
        let said = notes("6,488,349");
        assert!(
            said.contains("in 1 of 2 rows") && said.contains("6281.6 x 1017 and 6,488,349"),
            "{said}"
        );
    }

    #[test]
    fn tabs_are_blanks() {
        let tabbed = INTERVALS.replace("        ", "\t");
        let (one, other) = (read_text(INTERVALS).unwrap(), read_text(&tabbed));
        // Only runs of blanks that reach a multiple of 8 are what SQL*Plus replaces.
        if let Ok(other) = other {
            assert_eq!(one.tool, other.tool);
        }
    }

    #[test]
    fn histograms_of_containers_stay_apart() {
        let found = read_text(HISTOGRAM).unwrap();
        let Figures::Database(reports) = &found.figures else {
            panic!("{found:?}")
        };
        assert_eq!(reports.len(), 2);
        let first = &reports[0].histograms[0];
        assert_eq!(first.event, "db file sequential read");
        let counts: Vec<f64> = first
            .buckets
            .iter()
            .filter_map(|bucket| bucket.count)
            .collect();
        assert_eq!(counts, [100.0, 300.0, 100.0]);
        assert_eq!(reports[1].identity.container.as_deref(), Some("con_id 3"));
        assert!(
            found
                .notes
                .iter()
                .any(|note| note.contains("1 cells did not fit")),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn two_queries_in_one_paste_are_two_listings() {
        let again = HISTOGRAM.replace("SQL> /", "SQL> /\n\nno rows selected.\n");
        let both = format!("{HISTOGRAM}\n5 rows selected.\n\n{again}");
        assert_eq!(read_all(&both).unwrap().len(), 2);
        // Heads of the next page, and other events, are of the same listing.
        let paged = format!("{HISTOGRAM}\n{}", HISTOGRAM.replace("SQL> /\n\n", ""));
        assert_eq!(read_all(&paged).unwrap().len(), 1);
        let other = HISTOGRAM.replace("db file sequential read", "db file scattered read ");
        let other = other.replace("log file parallel", "log file switch  ");
        assert_eq!(
            read_all(&format!("{HISTOGRAM}\nSQL> /\n\n{other}"))
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn a_listing_of_other_columns_beside_it_is_left_out() {
        let other = "SQL> select * from v$system_event;\n\nEVENT           TOTAL_WAITS\n\
                     --------------- -----------\nlog file sync             5\n\n";
        let found = read_text(&format!("{other}{HISTOGRAM}")).unwrap();
        let said = found.notes.join("; ");
        assert!(
            said.contains("listings of other columns are left out: 1"),
            "{said}"
        );
    }

    #[test]
    fn records_folded_at_80_columns_are_those_of_a_wider_screen() {
        let event = "-".repeat(64);
        let page = |rows: &[(u32, u32)]| {
            let row = |(bound, count): &(u32, u32)| {
                format!("db file sequential read\n{bound:>15} {count:>10}\n\n")
            };
            let rows: String = rows.iter().map(row).collect();
            format!(
                "EVENT\n{event}\nWAIT_TIME_MICRO WAIT_COUNT\n--------------- ----------\n{rows}"
            )
        };
        let folded = format!(
            "SQL> select event, wait_time_micro, wait_count from v$event_histogram_micro;\n\n{}{}3 rows selected.\n",
            page(&[(512, 100), (1024, 600)]),
            page(&[(8192, 7)])
        );
        // The count alone does not fit beside an event of 64 characters and its bound.
        let last = format!(
            "EVENT{:>75}\n{event} ---------------\nWAIT_COUNT\n----------\n{:<64} {:>15}\n{:>10}\n\n",
            "WAIT_TIME_MICRO", "db file sequential read", 512, 100
        );
        let counts = |text: &str| -> Vec<(f64, f64)> {
            let found = read_text(text).unwrap();
            let Figures::Database(reports) = &found.figures else {
                panic!("no report of a database")
            };
            let buckets = reports[0].histograms[0].buckets.iter();
            buckets
                .map(|bucket| (bucket.high_us.unwrap(), bucket.count.unwrap()))
                .collect()
        };
        assert_eq!(
            counts(&folded),
            [(512.0, 100.0), (1024.0, 600.0), (8192.0, 7.0)]
        );
        assert_eq!(counts(&last), [(512.0, 100.0)]);
        assert!(is_like(&folded) && is_like(&last));
    }

    #[test]
    fn blanks_of_folded_records_are_within_the_limit_of_a_report() {
        let ruler = "-".repeat(60_000);
        let record = "x\n1\n\n";
        let folded = format!("EVENT\n{ruler}\nCOUNT\n{ruler}\n{}", record.repeat(700));
        let said = read_text(&folded).unwrap_err().to_string();
        assert!(said.contains("when folded records are joined"), "{said}");
    }

    #[test]
    fn columns_that_a_mail_collapsed_are_not_called_missing_rows() {
        let mail = format!(
            "{:<64} WAIT_TIME_MICRO WAIT_COUNT\n{} --------------- ----------\n\
             db file sequential read 1024 600\n",
            "EVENT",
            "-".repeat(64)
        );
        let said = read_text(&mail).unwrap_err().to_string();
        assert!(
            said.contains("below their heads") && said.contains("blanks were lost"),
            "{said}"
        );
    }

    #[test]
    fn only_the_two_kinds_are_recognised() {
        assert!(is_like(INTERVALS) && is_like(HISTOGRAM));
        for text in ["", "a\n-\n1\n", "hello\n-----\nworld\n", "--- ---\n"] {
            assert!(!is_like(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_listing_breaks_the_reader(text in "[-# 0-9a-z,\\t\\n\u{e9}]{0,300}", at in 0..400usize) {
            let _ = read_text(&text);
            let cut: String = HISTOGRAM.chars().take(at).collect();
            let _ = read_text(&(cut + &text));
        }
    }
}
