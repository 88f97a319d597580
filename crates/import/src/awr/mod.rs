//! Reports of Oracle databases: AWR as text and HTML, Statspack, and captures by AWR-Miner and its
//! relatives.
//!
//! Input: the text of a file. Output: facts. Reading has two stages: text or HTML becomes tables
//! ([`grid`]), then one reader ([`facts`], [`identity`]) finds facts in tables by heading and heads
//! of columns. So text and HTML of the same snapshots give the same figures.

mod capture;
mod facts;
mod fragment;
mod grid;
mod html;
mod identity;
mod kinds;
mod names;
mod number;
mod parts;
mod text;

use super::ruler::{expanded_text, unclear};
use super::source::{Source, beginning, shortened};
use crate::limits::{REPORT_LINES_MAX, REPORT_MAX, REPORTS_MAX, refuse_oversized};
use grid::Grid;
use kinds::{TextKind, WORDS};
use rigel_model::record::Imported;
use rigel_model::record::database::{DatabaseReport, NamedFigure, ReportKind};
use rigel_model::record::imported::Figures;
use rigel_model::{Error, failed, file_name, usage};
use std::collections::BTreeMap;

pub(super) use grid::plain;
pub(super) use names::event;
pub(super) use number::{count, figure};

/// How much of a file decides what it is. A page saved from a browser may have tens of kilobytes of
/// icons in front.
const BEGINNING_BYTES: usize = 1 << 18;

/// How far into a text the first line of a report may stand.
const FIRST_LINE_BYTES: usize = 1 << 12;

/// True if the text is a report of an Oracle database, or of a kind that is refused by name.
pub(super) fn is_like(text: &str) -> bool {
    kind_of(text).is_some()
}

/// True if a report begins with this line.
pub(super) fn begins(line: &str) -> bool {
    parts::kind_at(line).is_some()
}

/// True if tags of HTML are near the text's beginning.
pub(super) fn is_html(text: &str) -> bool {
    let start = beginning(text, BEGINNING_BYTES).to_ascii_lowercase();
    ["<html", "<table", "<h1", "<title"]
        .iter()
        .any(|tag| start.contains(tag))
}

fn kind_of(text: &str) -> Option<TextKind> {
    let first = beginning(text, FIRST_LINE_BYTES);
    if first.contains("~~BEGIN-OS-INFORMATION~~") || first.contains("STATSPACK_MINER_VER") {
        return Some(TextKind::Capture);
    }
    let start = if is_html(text) {
        beginning(text, BEGINNING_BYTES)
    } else {
        first
    };
    let start = grid::plain(start);
    let beginning = WORDS
        .iter()
        .filter_map(|(words, kind)| Some((start.find(words)?, *kind)))
        .min_by_key(|(at, _)| *at)?;
    match beginning.1 {
        TextKind::Report(ReportKind::AwrText) if is_html(text) => {
            Some(TextKind::Report(ReportKind::AwrHtml))
        }
        // Its columns were never seen, and figures of instances would be taken for sums.
        TextKind::Report(ReportKind::AwrGlobal) if !is_html(text) => Some(TextKind::Refused(
            "a global report as text, whose layout is not known",
            "make it as HTML: awrgrpt.sql, report type 'html'",
        )),
        kind => Some(kind),
    }
}

/// Reads the reports or captures of a file.
///
/// # Errors
/// None of them has figures: each is of a kind without the wanted ones, a page copied out of a
/// browser, or none of these. The error is the first one's.
pub(super) fn read(source: Source) -> Result<Vec<Imported>, Error> {
    let inside = preformatted(source.text);
    let source = Source {
        text: inside.as_deref().unwrap_or(source.text),
        ..source
    };
    if inside.is_some() {
        refuse_oversized(source, REPORT_LINES_MAX, false)?;
    }
    if is_html(source.text) && html::is_quoted(source.text) {
        return Err(usage!(
            "'{name}' is a page of which some lines begin with '>', as mail programs quote",
            "give the page itself, or without them: sed 's/^> *//' FILE > NEW",
            name = source.name
        ));
    }
    let parts = parts::parts(source.text);
    let count = parts.len();
    if count > REPORTS_MAX {
        return Err(usage!(
            "'{name}' has {count} reports, and the limit is {REPORTS_MAX}",
            "give files of fewer reports each",
            name = source.name
        ));
    }
    let mut reports = Vec::new();
    let mut errors = Vec::new();
    let mut kind_before = None;
    for (index, text) in parts.into_iter().enumerate() {
        let name = part_name(source.name, index, count);
        let kind = kind_of(text).or(kind_before);
        kind_before = kind;
        match read_one(Source { name: &name, text }, kind) {
            Ok(mut read) => {
                read.sources = vec![source.name.to_string()];
                if count > 1 {
                    let prefixed = |note: &String| format!("{}: {note}", file_name(&name));
                    read.notes = read.notes.iter().map(prefixed).collect();
                }
                join(&mut reports, read);
            }
            Err(error) => errors.push(error),
        }
    }
    match (reports.first_mut(), errors.is_empty()) {
        (Some(first), _) => {
            let others = errors
                .iter()
                .map(|error| format!("not read: {}", error.what()));
            first.notes.extend(others);
            Ok(reports)
        }
        (None, false) => Err(errors.swap_remove(0)),
        (None, true) => Ok(reports),
    }
}

/// Name of a report: that of the file, if it is the only one.
fn part_name(file: &str, index: usize, count: usize) -> String {
    if count == 1 {
        return file.to_string();
    }
    format!("{file} (report {} of {count})", index + 1)
}

fn read_one(source: Source, kind: Option<TextKind>) -> Result<Imported, Error> {
    let name = source.name;
    match kind {
        Some(TextKind::Refused(what, hint)) => Err(usage!("'{name}' is {what}", hint)),
        Some(TextKind::Capture) => capture::read(source),
        Some(TextKind::Report(kind)) => report(source, kind),
        None if is_fragment(source.text) => sections(source),
        None => Err(usage!(
            "'{name}' does not begin as a report of AWR or Statspack, nor as a capture of \
             AWR-Miner",
            "give the file as awrrpt.sql, awrgrpt.sql or spreport.sql wrote it"
        )),
    }
}

/// True if the text has sections of a report, whatever is around them.
pub(super) fn is_fragment(text: &str) -> bool {
    let is_html = is_html(text);
    // Nothing was refused yet for its length.
    let source = Source { name: "", text };
    refuse_oversized(source, REPORT_LINES_MAX, is_html).is_ok()
        && (is_html && has_pasted_table(text)
            || preformatted(text).is_some()
            || fragment::is_like(text))
}

/// The tables of a page or of a part of one.
fn pasted_tables(text: &str) -> Vec<Grid> {
    html::pasted_tables(
        text,
        &facts::is_wanted,
        &fragment::is_known,
        &fragment::heading_of,
    )
}

fn has_pasted_table(text: &str) -> bool {
    pasted_tables(text)
        .iter()
        .any(|grid| !grid.rows.is_empty() && fragment::is_known(&grid.heading))
}

/// The report as text, or its sections, that a page has in `<pre>`; `None` if it has none there, or has
/// tables.
fn preformatted(text: &str) -> Option<String> {
    let start = beginning(text, BEGINNING_BYTES).to_ascii_lowercase();
    if !start.contains("<pre") || has_pasted_table(text) {
        return None;
    }
    let inside = html::preformatted(text);
    (kind_of(&inside).is_some() || fragment::is_like(&inside)).then_some(inside)
}

/// Reads sections of a report without its first page.
fn sections(source: Source) -> Result<Imported, Error> {
    let mut report = DatabaseReport {
        file: source.name.to_string(),
        kind: ReportKind::Fragment,
        ..DatabaseReport::default()
    };
    let grids = if is_html(source.text) {
        pasted_tables(source.text)
    } else {
        let text = fragment::as_sections(source.text);
        text::tables(&text, &facts::is_wanted).grids
    };
    refuse_decimal_commas(source.name, &grids)?;
    facts::read(&grids, &mut report)?;
    // Sentences around a table are no rows of it.
    report
        .waits
        .retain(|row| row.waits.or(row.time_s).or(row.mean_us).is_some());
    if report.waits.is_empty() && report.histograms.is_empty() && report.load_profile.is_empty() {
        return Err(failed!(
            "'{name}' has headings of a report, and no rows below them",
            "paste the rows with their heads and the ruler between, as the report prints them",
            name = source.name
        ));
    }
    refuse_without_io(source.name, &report)?;
    let mut names: Vec<&str> = Vec::new();
    for grid in grids.iter().filter(|grid| !grid.rows.is_empty()) {
        if !grid.heading.is_empty() && !names.contains(&grid.heading.as_str()) {
            names.push(&grid.heading);
        }
    }
    report.notes.push(format!(
        "part of a report: {}; no window, so no rates but those that are printed",
        names.join(", ")
    ));
    Ok(Imported {
        sources: vec![source.name.to_string()],
        tool: "AWR".into(),
        version: None,
        reported: Vec::new(),
        notes: report.notes.clone(),
        figures: Figures::Database(vec![report]),
    })
}

fn report(source: Source, kind: ReportKind) -> Result<Imported, Error> {
    let mut report = DatabaseReport {
        file: source.name.to_string(),
        kind,
        ..DatabaseReport::default()
    };
    if is_html(source.text) {
        let grids = html::tables(source.text, &facts::is_wanted);
        if !source.text.contains("End of Report") {
            let last = grids.last().map_or("", |grid| grid.heading.as_str());
            report.cut_after = Some(last.to_string());
        }
        refuse_decimal_commas(source.name, &grids)?;
        facts::read(&grids, &mut report)?;
        identity::read(&grids, &mut report);
    } else {
        let expanded = expanded_text(source.name, source.text, REPORT_MAX)?;
        let tables = text::tables(&expanded, &facts::is_wanted);
        // A page copied out of a browser.
        if tables.grids.is_empty() && source.text.contains("Back to Top") {
            return Err(usage!(
                "'{name}' is the text of a page, without the lines of dashes that separate columns",
                "save the page itself, as HTML, and give that file",
                name = source.name
            ));
        }
        if !tables.has_end {
            report.cut_after = Some(tables.last_heading.clone());
        }
        refuse_decimal_commas(source.name, &tables.grids)?;
        note_unclear(&tables.grids, &mut report);
        facts::read(&tables.grids, &mut report)?;
        identity::read(&tables.grids, &mut report);
        identity::host(&tables.first_page, &mut report);
        identity::host_load(&tables.first_page, &mut report);
        name_by_title(tables.titled, &mut report);
    }
    refuse_without_figures(source, &report)?;
    refuse_without_io(source.name, &report)?;
    let tool = match kind {
        ReportKind::Statspack => "Statspack",
        _ => "AWR",
    };
    Ok(Imported {
        sources: vec![source.name.to_string()],
        tool: tool.into(),
        version: None,
        reported: Vec::new(),
        notes: report.notes.clone(),
        figures: Figures::Database(vec![report]),
    })
}

/// Notes the numbers of each section that may belong to either of two columns.
fn note_unclear(grids: &[Grid], report: &mut DatabaseReport) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for grid in grids {
        *counts.entry(&grid.heading).or_default() += grid.unclear;
    }
    let note = |(heading, count): (&str, usize)| {
        let table = match heading {
            "" => "the first page".to_string(),
            heading => format!("'{heading}'"),
        };
        unclear(count, &table)
    };
    report.notes.extend(counts.into_iter().filter_map(note));
}

/// Statspack leaves the name of the database blank at the top; titles of sections have it.
fn name_by_title(titled: Option<&str>, report: &mut DatabaseReport) {
    let Some((database, instance)) = titled.and_then(|titled| titled.split_once('/')) else {
        return;
    };
    let who = &mut report.identity;
    who.db_name.get_or_insert_with(|| database.to_string());
    who.instance.get_or_insert_with(|| instance.to_string());
}

fn refuse_without_figures(source: Source, report: &DatabaseReport) -> Result<(), Error> {
    const END: &str = "End of Report";
    // Rows whose cells were cut in the wrong places have names and no figures.
    let has_statistic = (report.statistics.iter()).any(|row| row.total.is_some());
    let has_wait = (report.waits.iter())
        .any(|row| row.waits.is_some() && (row.time_s.is_some() || row.mean_us.is_some()));
    let is_name = |row: &NamedFigure| row.name.starts_with(|c: char| c.is_ascii_alphabetic());
    if has_statistic || has_wait || report.load_profile.iter().any(is_name) {
        return Ok(());
    }
    let mut ends = source.text.lines().filter_map(|line| line.split_once(END));
    let before_end = ends.next().map(|(before, _)| before.trim_end());
    let (what, hint) = match (before_end, &report.cut_after) {
        (Some(before), _) if !before.is_empty() && !is_html(source.text) => (
            format!(
                "its lines begin with what is no part of it, such as '{}' before '{END}'",
                shortened(before)
            ),
            "give the file as the database wrote it, without what was put before each line",
        ),
        (None, Some(last)) if !last.is_empty() => (
            format!("it ends in the section '{}'", shortened(last)),
            "make the report again, and give the whole file",
        ),
        (None, Some(_)) => (
            "it ends before its first section".into(),
            "make the report again, and give the whole file",
        ),
        _ => (
            "no table has the heads that such reports have".into(),
            "give the file as the database wrote it: text with its columns, or HTML",
        ),
    };
    Err(failed!(
        "'{name}' has no figures of the database: {what}",
        hint,
        name = source.name
    ))
}

/// Refuses a report that says nothing of I/O, such as a list of top events without one of I/O.
fn refuse_without_io(name: &str, report: &DatabaseReport) -> Result<(), Error> {
    let waits = report.waits.iter().map(|row| &row.event);
    let histograms = report.histograms.iter().map(|row| &row.event);
    let has_io = waits.chain(histograms).any(|event| names::is_of_io(event))
        || (report.load_profile.iter()).any(|row| names::is_io_line(&row.name))
        || !report.statistics.is_empty()
        || !report.io_profile.is_empty()
        || !report.functions.is_empty()
        || !report.file_types.is_empty();
    if has_io {
        return Ok(());
    }
    Err(usage!(
        "'{name}' has no figure of I/O: no wait for it, no request and no byte",
        "give the whole report of an Oracle database, or the sections that name I/O"
    ))
}

/// Refuses tables whose numbers have a decimal comma: `1.234,5` and `0,5`. A number with a point alone
/// would be read a thousand times too small.
fn refuse_decimal_commas(name: &str, grids: &[Grid]) -> Result<(), Error> {
    for grid in grids {
        // Values of parameters may be lists.
        if grid.plain_heading().contains("parameters") {
            continue;
        }
        let cells = || grid.rows.iter().flatten().map(String::as_str);
        if let Some(cell) = cells().find(|cell| number::has_decimal_comma(cell)) {
            return Err(usage!(
                "'{name}' has numbers with a decimal comma, such as '{cell}': points between \
                 thousands cannot be told from decimal points",
                "make the report again after: alter session set nls_numeric_characters = '.,'",
                cell = shortened(cell)
            ));
        }
    }
    Ok(())
}

/// Adds `read` to what was read before: reports of one tool are one series.
pub(super) fn join(found: &mut Vec<Imported>, read: Imported) {
    let is_reports = |one: &Imported| matches!(one.figures, Figures::Database(_));
    let series = found.iter_mut().find(|known| {
        known.tool == read.tool
            && known.version == read.version
            && is_reports(known)
            && is_reports(&read)
    });
    let Some(series) = series else {
        found.push(read);
        return;
    };
    for source in read.sources {
        if !series.sources.contains(&source) {
            series.sources.push(source);
        }
    }
    series.notes.extend(read.notes);
    if let (Figures::Database(reports), Figures::Database(more)) =
        (&mut series.figures, read.figures)
    {
        reports.extend(more);
    }
}

#[cfg(test)]
mod tests;
