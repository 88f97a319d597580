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

/// Deviations beyond which the absence of a backlog is not chance.
const DEVIATIONS: f64 = 6.0;

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
    let rate = |load: &Load| match load {
        Load::Open { rate, .. } => *rate,
        Load::Closed { .. } => 0.0,
    };
    let per_s = stream.loads.iter().map(rate).sum();
    let width_s = record.window.as_secs_f64();
    of_medians(&medians(stream, record), width_s, per_s)
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

/// `per_s` is the number of operations that are due in a second.
fn of_medians(medians: &[f64], width_s: f64, per_s: f64) -> Option<FellBehind> {
    let least = medians.iter().copied().reduce(f64::min)?;
    let calm = medians
        .iter()
        .take_while(|one| **one <= CALM * least)
        .count();
    let late = &medians[calm..];
    let grows = late.is_sorted_by(|before, after| *after >= STEADY * *before);
    let end = *late.last()?;
    let is_behind = end >= BEHIND_S && end >= BEHIND * least;
    let after_s = calm as f64 * width_s;
    // A rate slightly above the capacity may have no backlog for a while by chance: the backlog is a random
    // walk, and what it would have grown to in this time is several deviations of it.
    let growth_s = (end - late.first()?) / (late.len() as f64 - 1.0).max(1.0) / width_s;
    let is_chance = growth_s * after_s < DEVIATIONS * (2.0 * after_s / per_s).sqrt();
    let is_long = calm >= WINDOWS_MIN && late.len() >= WINDOWS_MIN;
    (is_long && grows && is_behind && !is_chance).then(|| FellBehind {
        after_s,
        calm_s: medians[..calm].iter().copied().fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(medians: &[f64]) -> bool {
        of_medians(medians, 0.1, 8000.0).is_some()
    }

    #[test]
    fn a_calm_beginning_and_a_backlog_without_end_are_credit_and_an_overload_is_none() {
        let calm = vec![0.0005; 12];
        let growing = |from: usize| (from..from + 12).map(|at| 0.05 * at as f64);
        let then = |late: Vec<f64>| [calm.clone(), late].concat();
        let found = of_medians(&then(growing(1).collect()), 0.1, 8000.0).unwrap();
        assert!((found.after_s - 1.2).abs() < 1e-9);
        // By 3 % above the capacity, the backlog of a second is no more than chance.
        let slowly = then((1..40).map(|at| 0.02 + 0.003 * f64::from(at)).collect());
        assert!(!is_found(&slowly));
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
