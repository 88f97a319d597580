//! The report for programs: JSON and csv.

use crate::analyse::{Calibration, PointSummary, summarise, summarise_within};
use crate::model::{Finding, Host, TargetFacts};
use crate::plan::Search;
use crate::record::journal::Run;
use serde::Serialize;
use std::fmt::Write;

/// What the JSON report holds. Fields are added, never renamed or taken away.
#[derive(Debug, Serialize)]
struct Report<'a> {
    version: &'a str,
    started: &'a str,
    command: &'a [String],
    engine: &'a str,
    engine_about: &'a str,
    host: &'a Host,
    target: &'a TargetFacts,
    points_planned: usize,
    points: Vec<PointSummary>,
    /// Of a run by `calibrate`: what it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<Calibration>,
    findings: Vec<Finding>,
}

/// The report of a run as JSON, one document.
#[must_use]
pub fn json(run: &Run) -> String {
    let header = &run.header;
    let search = Search::of(&header.plan);
    let bound = search.as_ref().map(Search::bound);
    let points: Vec<PointSummary> = run.latest().iter().map(|record| summarise_within(record, bound)).collect();
    let calibration = match &search {
        Some(Search::Calibrate(_)) => super::calibration::of(run),
        _ => None,
    };
    let of_run = calibration.iter().flat_map(|found| &found.findings);
    let of_points = points.iter().flat_map(|point| &point.findings);
    let findings = header.findings.iter().chain(of_run).chain(of_points).cloned().collect();
    let report = Report {
        version: &header.version,
        started: &header.started,
        command: &header.command,
        engine: &header.engine.name,
        engine_about: &header.engine_about,
        host: &header.host,
        target: &header.facts,
        points_planned: header.points.len().max(points.len()),
        points,
        calibration,
        findings,
    };
    let mut text = serde_json::to_string_pretty(&report).expect("a report is made of maps with text keys");
    text.push('\n');
    text
}

/// The report of a run as csv: a head line, then a line for every class of every point.
#[must_use]
pub fn csv(run: &Run) -> String {
    let mut text = "small,large,class,io_bytes,outstanding,done,failed,iops,mib_per_s,mean_us,deviation_us,min_us,p50_us,\
                    p90_us,p99_us,p999_us,max_us,littles_law,steady,cpu_us_per_io,warm_up_s,measured_s,distinct_blocks\n"
        .to_string();
    for point in run.latest().iter().map(summarise) {
        for class in &point.classes {
            let failed: u64 = class.failed.values().sum();
            let _ = write!(text, "{},{},{},{},", point.small, point.large, class.name, class.io_bytes);
            let _ =
                write!(text, "{},{},{failed},{:.2},{:.3},", class.outstanding, class.done, class.iops, class.mib_per_s);
            match class.latency {
                Some(l) => {
                    let figures =
                        [l.mean_us, l.deviation_us, l.min_us, l.p50_us, l.p90_us, l.p99_us, l.p999_us, l.max_us];
                    figures.iter().for_each(|figure| {
                        let _ = write!(text, "{figure:.3},");
                    });
                }
                None => text.push_str(",,,,,,,,"),
            }
            let steady = class.steady.map_or("", |steady| if steady.steady { "yes" } else { "no" });
            let cpu = point.cpu_us_per_io.map_or_else(String::new, |cpu| format!("{cpu:.4}"));
            let _ = write!(text, "{:.4},{steady},{cpu},", class.littles_law);
            let _ = writeln!(text, "{:.3},{:.3},{}", point.warm_up_s, point.measured_s, class.coverage.distinct);
        }
    }
    text
}
