//! Burst credit that runs out within an offered rate: served in time at first, then never again.
//!
//! Input: the records of open loops. Output: a warning. Completed operations say nothing there, because
//! windows count operations by when they were due; response times do. A rate above the capacity has no
//! calm beginning: its backlog grows from the first operation.

use crate::figures::confidence::whole_windows;
use rigel_model::record::{PointRecord, StreamRecord, Window};
use rigel_model::{Finding, FindingName, Load, Nanos};

/// Minimum number of windows of each part.
const WINDOWS_MIN: usize = 5;

/// A window is calm if its median is at most this many times the lowest median of all windows.
const CALM: f64 = 3.0;

/// The last window must have a median of at least this many times the lowest one, and of at least this many
/// seconds.
const BEHIND: f64 = 20.0;
const BEHIND_S: f64 = 0.02;

/// A growing backlog may fall by chance to this share of it.
const STEADY: f64 = 0.9;

/// When a rate was no longer served.
struct FellBehind {
    /// How long it was served in time, in seconds.
    after_s: f64,
    /// The median response time until then, in seconds.
    calm_s: f64,
}

/// Warns of the first load that was served in time for a while, and from then on fell further and further
/// behind.
pub fn fell_behind(records: &[PointRecord]) -> Option<Finding> {
    let of = |record: &PointRecord| {
        let alone = std::slice::from_ref(record);
        let visits = match &record.visits[..] {
            [] => alone,
            visits => visits,
        };
        let found = visits.iter().find_map(within)?;
        Some(Finding::warning(
            FindingName::BurstCredit,
            format!(
                "at {} half of the operations took up to {} for {}, then it fell further and further behind: \
                 burst credit ran out, or other load began",
                record.coordinates,
                Nanos::from_secs_f64(found.calm_s),
                Nanos::from_secs_f64(found.after_s)
            ),
            "lower rates may have been served by credit, too: measure again now, while there is none, or each \
             load for longer",
        ))
    };
    records.iter().find_map(of)
}

fn within(record: &PointRecord) -> Option<FellBehind> {
    let is_open = |load: &Load| matches!(load, Load::Open { .. });
    let open = record
        .streams
        .iter()
        .filter(|one| one.loads.iter().all(is_open));
    let stream = open.max_by_key(|stream| stream.done())?;
    of_medians(&medians(stream, record), record.window.as_secs_f64())
}

/// The median response time of each window in seconds, until the first without operations: the rest of
/// them was never served.
fn medians(stream: &StreamRecord, record: &PointRecord) -> Vec<f64> {
    let median = |window: &Window| {
        let band = window.response.histogram.quantile(0.5)?;
        Some(band.middle() / 1e9)
    };
    whole_windows(stream, record)
        .iter()
        .map_while(median)
        .collect()
}

fn of_medians(medians: &[f64], width_s: f64) -> Option<FellBehind> {
    let least = medians.iter().copied().reduce(f64::min)?;
    let calm = medians
        .iter()
        .take_while(|one| **one <= CALM * least)
        .count();
    let late = &medians[calm..];
    let grows = late.is_sorted_by(|before, after| *after >= STEADY * *before);
    let end = *late.last()?;
    let is_behind = end >= BEHIND_S && end >= BEHIND * least;
    (calm >= WINDOWS_MIN && late.len() >= WINDOWS_MIN && grows && is_behind).then(|| FellBehind {
        after_s: calm as f64 * width_s,
        calm_s: medians[..calm].iter().copied().fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(medians: &[f64]) -> bool {
        of_medians(medians, 0.1).is_some()
    }

    #[test]
    fn a_calm_beginning_and_a_backlog_without_end_are_credit_and_an_overload_is_none() {
        let calm = vec![0.0005; 12];
        let growing = |from: usize| (from..from + 12).map(|at| 0.05 * at as f64);
        let then = |late: Vec<f64>| [calm.clone(), late].concat();
        let found = of_medians(&then(growing(1).collect()), 0.1).unwrap();
        assert!((found.after_s - 1.2).abs() < 1e-9);
        // An overload grows from the first operation on.
        assert!(!is_found(&growing(1).collect::<Vec<_>>()));
        // A stall is over once.
        let mut over: Vec<f64> = growing(1).collect();
        over.extend(&calm);
        assert!(!is_found(&then(over)));
        // Too little of either.
        assert!(!is_found(&then(growing(1).take(4).collect())));
        assert!(!is_found(&calm) && !is_found(&[]));
    }
}
