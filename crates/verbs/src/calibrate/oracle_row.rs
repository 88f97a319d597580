//! A calibration as a row of Oracle's view `DBA_RSRC_IO_CALIBRATE`.

use super::request::CalibrateRequest;
use rigel_analyse::{Calibration, PointSummary};
use rigel_model::Severity;
use rigel_model::record::journal::Run;
use rigel_report::parts;
use std::fmt::Write;

/// Right-aligns text to `width` columns, which may exceed the maximum of a format string.
fn right(text: &str, width: usize) -> String {
    " ".repeat(width - text.len()) + text
}

/// The end of a point that began at `started`, in the same format.
fn after(started: &str, point: &PointSummary) -> String {
    let moved = || {
        let (time, offset) = started.split_at_checked(19)?;
        let time: jiff::civil::DateTime = time.parse().ok()?;
        let took =
            jiff::SignedDuration::try_from_secs_f64(point.warm_up_s + point.measured_s).ok()?;
        Some(format!(
            "{}{offset}",
            time.checked_add(took).ok()?.strftime("%Y-%m-%dT%H:%M:%S")
        ))
    };
    moved().unwrap_or_else(|| started.to_string())
}

/// The row of `DBA_RSRC_IO_CALIBRATE` that corresponds to this run: whole numbers, with the latency
/// in milliseconds at the rate of `MAX_IOPS`, as in Oracle.
pub fn oracle_row(run: &Run, calibration: &Calibration) -> String {
    let whole = |figure: Option<f64>| parts::known(figure, |figure| format!("{figure:.0}"));
    let start = &run.header.started;
    let request: Option<CalibrateRequest> = run.header.invocation.asked("calibrate");
    let disks = parts::known(request, |request| request.num_disks.to_string());
    let end = calibration
        .points
        .last()
        .map_or_else(|| start.clone(), |point| after(&point.started, point));
    let columns = [
        ("START_TIME", start.clone()),
        ("END_TIME", end),
        (
            "MAX_IOPS",
            whole(calibration.maximum.map(|at| at.iops.value)),
        ),
        (
            "MAX_MBPS",
            whole(calibration.large.map(|at| at.mb_per_s.value)),
        ),
        (
            "MAX_PMBPS",
            whole(calibration.stream.map(|at| at.mb_per_s.value)),
        ),
        (
            "LATENCY",
            whole(calibration.maximum.map(|at| at.mean_us.value / 1e3)),
        ),
        ("NUM_PHYSICAL_DISKS", disks),
    ];
    let mut text = String::new();
    for part in [0, 1, 2] {
        let cells = columns.iter().map(|(name, value)| {
            let width = name.len().max(value.len());
            match part {
                0 => right(name, width),
                1 => "-".repeat(width),
                _ => right(value, width),
            }
        });
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(" "));
    }
    let of_points = calibration.points.iter().flat_map(|point| &point.findings);
    let mut all = run
        .header
        .findings
        .iter()
        .chain(&calibration.findings)
        .chain(of_points);
    if all.any(|finding| finding.severity != Severity::Note) {
        text.push_str("-- there are warnings about these figures: rigel report shows them\n");
    }
    text
}
