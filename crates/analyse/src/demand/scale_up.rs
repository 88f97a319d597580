//! A scale-up series: reports of the same work with more and more sessions, whose files are numbered
//! by sessions, such as `awr.txt.1` to `awr.txt.50`. It becomes loads of a curve.

use super::database_figures::DatabaseFigures;
use super::{loops, report_figures, streams};
use crate::figures::quantity::counted;
use rigel_model::file_name;
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::ReportKind;
use rigel_model::record::imported::{Flow, LoadPoint, ReportedLatency, ReportedLoad};

/// Files below which a number in their names is more likely something else.
const FILES_MIN: usize = 3;

/// The number at the end of a file's name, and the name without it.
fn numbered(file: &str) -> Option<(String, u32)> {
    let name = file_name(file);
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = name[..end]
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| {
            at + name[at..].chars().next().map_or(1, char::len_utf8)
        });
    let number = name[start..end].parse().ok()?;
    Some((format!("{}#{}", &name[..start], &name[end..]), number))
}

/// The number of sessions of each report, if the files are a scale-up series: their names differ in
/// the last number alone, and their windows do not follow each other as hours of a day do.
///
/// Spools count their sessions themselves.
pub(super) fn sessions(reports: &[&DatabaseReport]) -> Option<Vec<u32>> {
    if reports.iter().all(|one| one.kind == ReportKind::Spool) {
        return reports
            .iter()
            .map(|report| Some(loops::figures(report)?.sessions))
            .collect();
    }
    let names: Vec<(String, u32)> = reports
        .iter()
        .map(|report| numbered(&report.file))
        .collect::<Option<_>>()?;
    let mut numbers: Vec<u32> = names.iter().map(|(_, number)| *number).collect();
    let is_one_name = names.windows(2).all(|two| two[0].0 == two[1].0);
    let sessions = numbers.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let are_loads = numbers.len() == reports.len() && numbers[0] > 0;
    let is_series = reports
        .iter()
        .all(|report| report.kind != ReportKind::Capture);
    (reports.len() >= FILES_MIN && is_one_name && are_loads && is_series && !follow(reports))
        .then_some(sessions)
}

/// True if each window begins with the snapshot that ended another.
fn follow(reports: &[&DatabaseReport]) -> bool {
    let follows = |report: &&&DatabaseReport| {
        let begin = report.window.begin_id;
        begin.is_some() && reports.iter().any(|other| other.window.end_id == begin)
    };
    let following = reports.iter().filter(follows).count();
    following * 2 >= reports.len()
}

/// The loads of a scale-up series, in order of sessions; empty if the reports are none. Of spools, even
/// of one, the operations that their sessions counted.
pub fn load_points(reports: &[DatabaseReport]) -> Vec<LoadPoint> {
    let mut of_loops: Vec<LoadPoint> = reports.iter().filter_map(loops::load_point).collect();
    if !of_loops.is_empty() {
        let depth = |point: &LoadPoint| match point.load {
            ReportedLoad::Closed { depth } => depth,
            _ => 0,
        };
        of_loops.sort_by_key(depth);
        return of_loops;
    }
    let all: Vec<&DatabaseReport> = reports.iter().collect();
    let Some(sessions) = sessions(&all) else {
        return Vec::new();
    };
    let mut points: Vec<(u32, LoadPoint)> = reports
        .iter()
        .zip(sessions)
        .map(|(report, sessions)| {
            let figures = report_figures::figures(report, &streams::interval(report));
            (sessions, point(report, sessions, &figures))
        })
        .collect();
    points.sort_by_key(|(sessions, _)| *sessions);
    points.into_iter().map(|(_, point)| point).collect()
}

fn point(report: &DatabaseReport, sessions: u32, figures: &DatabaseFigures) -> LoadPoint {
    let ns = |us: Option<f64>| us.map(|us| us * 1e3);
    let quantiles = [
        (0.5, ns(figures.random_read_p50_us)),
        (0.99, ns(figures.random_read_p99_us)),
    ];
    LoadPoint {
        label: counted(sessions.into(), "session"),
        load: ReportedLoad::Closed { depth: sessions },
        processes: None,
        pattern: Some("uniform".into()),
        writes_percent: None,
        beside: Vec::new(),
        began: report.window.begin,
        seconds: figures.seconds,
        flows: vec![Flow {
            class: "small".into(),
            kind: "read".into(),
            io_bytes: report.identity.block_bytes,
            done: None,
            iops: figures.random_reads_per_s,
            bytes_per_s: figures
                .random_reads_per_s
                .zip(report.identity.block_bytes)
                .map(|(reads, bytes)| reads * f64::from(bytes)),
            latencies: vec![ReportedLatency {
                of: "total".into(),
                mean: ns(figures.random_read_us),
                quantiles: quantiles
                    .into_iter()
                    .filter_map(|(share, ns)| Some((share, ns?)))
                    .collect(),
                ..ReportedLatency::default()
            }],
        }],
        ..LoadPoint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(names: &[&str]) -> Vec<DatabaseReport> {
        names
            .iter()
            .map(|name| DatabaseReport {
                file: (*name).into(),
                ..DatabaseReport::default()
            })
            .collect()
    }

    fn numbers(names: &[&str]) -> Option<Vec<u32>> {
        sessions(&reports(names).iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_number_at_the_end_is_the_sessions() {
        assert_eq!(
            numbers(&["awr.txt.1", "awr.txt.10", "awr.txt.2"]).unwrap(),
            [1, 10, 2]
        );
        assert_eq!(
            numbers(&["sp_64.lst", "sp_8.lst", "sp_16.lst"]).unwrap(),
            [64, 8, 16]
        );
    }

    #[test]
    fn other_numbers_are_no_sessions() {
        assert_eq!(
            numbers(&[
                "awrrpt_1_10_11.html",
                "awrrpt_1_11_12.html",
                "awrrpt_1_12_13.html"
            ]),
            None
        );
        assert_eq!(numbers(&["a.1", "a.2"]), None);
        assert_eq!(numbers(&["a.1", "b.2", "a.3"]), None);
        assert_eq!(numbers(&["a", "b", "c"]), None);
    }

    #[test]
    fn windows_that_follow_each_other_are_hours_and_no_scale_up() {
        let mut hours = reports(&["awr.1", "awr.2", "awr.3"]);
        for (at, report) in hours.iter_mut().enumerate() {
            report.window.begin_id = Some(at as u64);
            report.window.end_id = Some(at as u64 + 1);
        }
        assert_eq!(sessions(&hours.iter().collect::<Vec<_>>()), None);
    }

    #[test]
    fn loads_are_in_order_of_sessions_and_not_of_text() {
        let points = load_points(&reports(&["awr.10", "awr.2", "awr.1"]));
        let labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
        assert_eq!(labels, ["1 session", "2 sessions", "10 sessions"]);
    }
}
