//! The report of database sessions, and the line format of SLOB users' spreadsheets.

use super::document as curve;
use super::result::CurveResult;
use crate::naming::Naming;
use rigel_analyse::PointSummary;
use rigel_analyse::sql::{ServerFigures, ServerRate, SqlSummary, mib};
use rigel_model::record::journal::Run;
use rigel_report::document::{Document, Headline, Section};
use rigel_report::frame::about_server;
use rigel_report::points::{self, Units};
use rigel_report::sql::{database, pipelined};
use rigel_report::{distribution, parts, setup, timeline};
use std::fmt::Write;

/// Completes `frame`, which has the heading and the conclusion; returns it unchanged if no point
/// has sessions.
pub fn document(run: &Run, result: &CurveResult, findings: Section, frame: Document) -> Document {
    let Some((index, point, sql)) = result.busiest() else {
        return frame;
    };
    let workload = curve::workload(&run.header);
    Document {
        about: about_server(
            &run.header,
            &workload,
            &parts::counted(result.points.len() as u64, "point"),
        ),
        headlines: headlines(result, index, point, sql),
        sections: sections(run, result, findings, &workload),
        ..frame
    }
}

fn headlines(
    result: &CurveResult,
    index: usize,
    point: &PointSummary,
    sql: &SqlSummary,
) -> Vec<Headline> {
    let mut figures = Vec::new();
    let load = point.coordinates.rate().map_or_else(
        || parts::counted(sql.sessions.into(), "session") + &pipelined(sql),
        |rate| format!("{} offered per second", parts::count(rate as f64)),
    );
    if let Some(class) = point.classes.first() {
        let name = format!("points.{index}.classes.0.iops");
        let note = format!("{load}; {:.0} blocks each", sql.visited.per_operation);
        figures.push(parts::rate(
            &name,
            "operations per second",
            class.rate(),
            note,
        ));
    }
    let server = sql.server.as_ref();
    let uncounted = || "counted by the server".to_string();
    if let Some(physical) = server.and_then(|server| server.physical) {
        let name = format!("points.{index}.sql.server.physical.per_s");
        let value = parts::count(physical.per_s);
        figures.push(parts::headline(
            &name,
            "physical reads per second",
            physical.per_s,
            value,
            uncounted(),
            load.clone(),
        ));
    }
    figures.extend(curve::p99(index, point, "p99 of an operation"));
    if let Some(reads) = server.and_then(|server| server.physical_per_cpu_s) {
        let name = format!("points.{index}.sql.server.physical_per_cpu_s");
        let note = "how much the server's CPU can read".to_string();
        figures.push(parts::headline(
            &name,
            "reads per CPU second",
            reads,
            parts::count(reads),
            uncounted(),
            note,
        ));
    } else if let Some(rate) = result.sustained.kept_rate {
        let (name, value) = ("curve.sustained.kept_rate", parts::per_second(rate as f64));
        let note = "offered at random times, and served".to_string();
        figures.push(parts::headline(
            name,
            "highest rate met",
            rate as f64,
            value,
            String::new(),
            note,
        ));
    }
    figures
}

fn sections(run: &Run, result: &CurveResult, findings: Section, workload: &str) -> Vec<Section> {
    let units = Units::of(Naming::SESSIONS.rate);
    let mut sections = Vec::new();
    if result.points.len() > 1 {
        sections.push(curve::drawn(run, result));
    }
    let timeline = timeline::section(run, units);
    // Of a single point it is all there is to draw, and what the answer is an average of.
    if result.points.len() == 1 {
        sections.extend(timeline.clone().map(parts::in_text));
    }
    sections.push(findings);
    let records = run.joined();
    let chosen = if records.len() == 1 {
        records
            .iter()
            .map(|record| (record.coordinates.to_string(), record))
            .collect()
    } else {
        curve::chosen(result, &records)
    };
    sections.extend(distribution::section(&chosen));
    if result.points.len() > 1 {
        sections.extend(timeline);
    }
    sections.push(points::section(run, &result.points, units));
    if let Some((_, point, _)) = result.busiest() {
        let points: Vec<&PointSummary> = result.points.iter().collect();
        sections.push(database(&points, point));
    }
    sections.push(setup::section(&run.header, workload));
    sections
}

/// Header of the columns that [`awr_lines`] fills.
const AWR_HEAD: &str = "FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS|PWRITES|WRITE_MBS|REDO_MBS|\
                        DFSR_LAT|DPR_LAT|DFPR_LAT|DFPW_LAT|LFPW_LAT|TOP WAIT|";

/// One line per point in the format of SLOB's `awr_info`, with its header. Figures that the server
/// does not report are empty.
pub fn awr_lines(run: &Run, points: &[PointSummary]) -> String {
    let block = run
        .header
        .facts
        .server
        .as_ref()
        .and_then(|server| server.tables)
        .map_or(8192.0, |tables| f64::from(tables.block));
    let mut text = format!("{AWR_HEAD}\n");
    for point in points {
        let Some(sql) = &point.sql else { continue };
        let name = format!("{}:{}", run.header.started, point.coordinates.name());
        let server = sql.server.as_ref();
        let figure = |of: fn(&ServerFigures) -> Option<ServerRate>| {
            server.and_then(of).map(|figure| figure.per_s)
        };
        let whole = |value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("{:.0}", value.trunc()))
        };
        let mbs = |bytes: Option<f64>| {
            bytes.map_or_else(String::new, |bytes| format!("{:.1}", mib(bytes)))
        };
        let plain =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
        let (reads, writes) = (
            figure(|server| server.physical),
            figure(|server| server.written),
        );
        let top = sql
            .waits
            .iter()
            .find(|wait| wait.event != "CPU")
            .map_or_else(String::new, |wait| {
                format!("{} {:.1}", wait.event, wait.share * 100.0)
            });
        let fields = [
            name.replace('|', "/"),
            sql.sessions.to_string(),
            format!("{:.0}", point.measured_s),
            plain(figure(|server| server.cpu_us)),
            plain(server.and_then(|server| server.active)),
            whole(Some(sql.operations_per_s)),
            whole(figure(|server| server.logical)),
            whole(reads),
            mbs(reads.map(|reads| reads * block)),
            whole(writes),
            mbs(writes.map(|writes| writes * block)),
            mbs(figure(|server| server.log_bytes)),
            whole(server.and_then(|server| server.read_mean_us)),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            top,
        ];
        let _ = writeln!(text, "{}|", fields.join("|"));
    }
    text
}
