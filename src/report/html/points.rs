//! The table of all points.

use super::page::{Block, Section};
use super::words;
use crate::analyse::{ClassSummary, Estimate, PointSummary};
use crate::report::curve;

/// A table with more rows than this is collapsed.
const OPEN_MAX: usize = 14;

/// All points, one row per class; `operations` is the unit of throughput, such as `IOPS`.
pub(super) fn section(points: &[PointSummary], operations: &str) -> Section {
    let rate = format!("#{operations}");
    let columns = [
        "point",
        "class",
        &rate,
        "#± (95 %)",
        "#MiB/s",
        "#mean",
        "#p50",
        "#p99 (95 % interval)",
        "#p99.9",
        "#max",
        "steady",
        "remark",
    ];
    let rows: Vec<Vec<String>> =
        points.iter().flat_map(|point| point.classes.iter().map(move |class| row(point, class))).collect();
    let mut table = words::rows("Every point, in the order it was measured", &columns, rows);
    table.folded = table.rows.len() > OPEN_MAX;
    let lead = format!("{} measured.", words::points(points.len()));
    words::section("points", "All points", &lead, vec![Block::Table(table)])
}

fn row(point: &PointSummary, class: &ClassSummary) -> Vec<String> {
    let time = |of: fn(&crate::analyse::LatencySummary) -> f64| {
        class.latency.as_ref().map_or_else(|| "-".into(), |latency| words::time(of(latency)))
    };
    let p99 = class.latency.map_or_else(
        || "-".into(),
        |latency| {
            let interval = class.confidence.and_then(|known| known.p99_us);
            words::time_between(Estimate { value: latency.p99_us, interval })
        },
    );
    let known = class.rate().precision().filter(|share| share.is_finite());
    vec![
        point.coordinates.to_string(),
        class.name.clone(),
        words::count(class.iops),
        known.map_or_else(|| "?".into(), words::percent),
        format!("{:.1}", class.mib_per_s),
        time(|l| l.mean_us),
        time(|l| l.p50_us),
        p99,
        time(|l| l.p999_us),
        time(|l| l.max_us),
        curve::steady(point, class).into(),
        curve::mark(class).into(),
    ]
}
