//! The conclusion of a matrix of small and large I/O.

use super::result::MatrixResult;
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failures, limit};
use rigel_analyse::figures::quantity::{count, size, time};
use rigel_analyse::plan::search::{LARGE, SMALL};
use rigel_model::record::End;
use rigel_model::record::journal::Header;
use std::fmt::Write;

/// Large I/O has a cost if small I/O beside it reaches less than this fraction of its rate alone.
const CLEARLY_LESS: f64 = 0.95;

pub(super) fn conclusion(header: &Header, result: &MatrixResult) -> Conclusion {
    let mut parts = Vec::new();
    let caution = still_rising(result);
    if let Some(most) = result.most(SMALL) {
        // What was still rising is no maximum.
        let tried = result.loads().map(|(small, _)| small).max();
        let bound = if caution.is_none() && tried.is_some_and(|tried| tried > most.small()) {
            "at most"
        } else {
            "at least"
        };
        parts.push(format!(
            "{bound} {} small I/Os of {} per second, with {} outstanding{}",
            count(most.class.iops),
            size(most.class.io_bytes),
            most.small(),
            with_others(most.large(), "large")
        ));
    }
    if let Some(most) = result.most(LARGE) {
        let tried = result.loads().map(|(_, large)| large).max();
        let bound = if tried.is_some_and(|tried| tried > most.large()) {
            "at most"
        } else {
            "at least"
        };
        parts.push(format!(
            "{bound} {} MBPS of large I/O of {}, with {} outstanding{}",
            count(most.class.mib_per_s),
            size(most.class.io_bytes),
            most.large(),
            with_others(most.small(), "small")
        ));
    }
    let mut text = if parts.is_empty() {
        "No complete data point has done an I/O, so there is no maximum.".to_string()
    } else {
        let limit = limit(&result.points, &result.shape, &result.findings);
        format!("It does {}{limit}.", parts.join("; "))
    };
    if let Some(latency) = result
        .quickest()
        .and_then(|quickest| quickest.class.latency)
    {
        let (mean, p99) = (time(latency.mean_us), time(latency.p99_us));
        let _ = write!(
            text,
            " A small I/O takes at least {mean} on average, p99 {p99}."
        );
    }
    text.push_str(&cost_of_large(result).unwrap_or_default());
    let planned = header.points.len();
    let failure = failures(&result.points).or_else(|| {
        let complete = result
            .points
            .iter()
            .filter(|point| point.end == End::Complete)
            .count();
        (complete < planned).then(|| {
            format!(
                "{} of {planned} data points are not complete.",
                planned - complete
            )
        })
    });
    let objections = Objections { caution, failure };
    objections.conclude(&text, &result.findings)
}

/// Says that the maximum was not reached, if small I/O alone still gained throughput at the highest
/// load.
fn still_rising(result: &MatrixResult) -> Option<String> {
    let loads = result.loads().filter(|(_, large)| *large == 0);
    let most = loads.map(|(small, _)| small).max()?;
    let knee = result.shape.knee.filter(|_| most > 1)?;
    (!knee.bounded_above).then(|| {
        format!(
            "Throughput was still rising with {most} outstanding, the most that were tried: it may \
             do more."
        )
    })
}

/// Names the I/O that ran at the same time; empty if none did.
fn with_others(number: u32, kind: &str) -> String {
    if number == 0 {
        String::new()
    } else {
        format!(" together with {number} {kind}")
    }
}

/// The cost of large I/O for small I/O, where it is clear: the same number of small I/Os, alone and
/// beside the maximum number of large ones.
fn cost_of_large(result: &MatrixResult) -> Option<String> {
    let most_large = result
        .loads()
        .filter(|(small, _)| *small > 0)
        .map(|(_, large)| large)
        .max()?;
    let class_at = |small: u32, large: u32| {
        let mut cells = result
            .cells(SMALL)
            .filter(|cell| (cell.small(), cell.large()) == (small, large));
        cells.next().map(|cell| cell.class)
    };
    let small = result
        .cells(SMALL)
        .filter(|cell| cell.large() == most_large)
        .map(|cell| cell.small())
        .max()?;
    let (alone, beside) = (class_at(small, 0)?, class_at(small, most_large)?);
    let plural = |number: u32| if number == 1 { "" } else { "s" };
    (most_large > 0 && beside.iops < CLEARLY_LESS * alone.iops).then(|| {
        format!(
            " Together with {most_large} large I/O{}, {small} small one{} do{} {} per second \
             instead of {}.",
            plural(most_large),
            plural(small),
            if small == 1 { "es" } else { "" },
            count(beside.iops),
            count(alone.iops)
        )
    })
}
