//! Burst credit that runs out while rates are offered: one that is served in time at first and then never
//! again, or one at which less is done than at a lower one before it.
//!
//! Input: the records of open loops. Output: a warning. Completed operations say nothing there, because
//! windows count operations by when they were due; response times do. A rate above the capacity has no
//! calm beginning: its backlog grows from the first operation.

use super::steps::STEP;
use crate::figures::confidence::whole_windows;
use crate::figures::quantity::count;
use rigel_model::record::{PointRecord, StreamRecord, Window};
use rigel_model::{Coordinates, Finding, FindingName, Nanos};
use std::collections::BTreeMap;

/// Minimum number of windows of each part.
const WINDOWS_MIN: usize = 5;

/// A window is calm if its median is at most this many times the lowest median of all windows.
const CALM: f64 = 3.0;

/// The last window must have a median of at least this many times the lowest one, and of at least this many
/// seconds.
const BEHIND: f64 = 20.0;
const BEHIND_S: f64 = 0.02;

/// A calm beginning grows by no more than this part of what it would have by the later growth.
const LEVEL: f64 = 0.2;

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
/// behind; or of one that certainly did less than a lower rate had before it.
pub fn fell_behind(records: &[PointRecord]) -> Option<Finding> {
    let mut visits: Vec<&PointRecord> = records.iter().flat_map(PointRecord::pieces).collect();
    visits.sort_by_key(|visit| visit.began);
    let why = "burst credit ran out, or other load began";
    let slowly = visits.iter().find_map(|visit| {
        let found = within(visit)?;
        Some(format!(
            "at {} half of the operations took up to {} for {}, then it fell further and further behind: {why}",
            visit.coordinates,
            Nanos::from_secs_f64(found.calm_s),
            Nanos::from_secs_f64(found.after_s)
        ))
    });
    let what = slowly.or_else(|| {
        let (at, most, before) = did_less(&visits)?;
        Some(format!(
            "at {at} it did at most {} per second, after it had served {}: {why}",
            count(most.round()),
            count(before.round())
        ))
    })?;
    Some(Finding::warning(
        FindingName::BurstCredit,
        what,
        "lower rates may have been served by credit, too: measure again now, while there is none, or each \
         load for longer",
    ))
}

/// The first load that did certainly less than one before it that was served, the most that it can have done
/// in a second, and the rate that was served. What completed of the measured time came after all that was
/// due in the warm-up: that much was done at most, while nothing stalled. No stall is longer than the longest
/// operation took in the storage, and credit that ran out makes none as long.
fn did_less(visits: &[&PointRecord]) -> Option<(Coordinates, f64, f64)> {
    const SERVED: f64 = 0.98;
    let mut served: BTreeMap<&str, f64> = BTreeMap::new();
    visits.iter().find_map(|visit| {
        let (stream, rate) = offered(visit)?;
        let windows = || stream.kinds.iter().flat_map(|kind| &kind.windows);
        if windows().any(|window| window.failures() > 0) {
            return None;
        }
        let (warm_s, measured_s) = (visit.warm_up.as_secs_f64(), visit.measured.as_secs_f64());
        let done = stream.done() as f64;
        let services = windows().filter_map(|window| window.service.as_ref());
        let longest = services.map(|service| service.max).max();
        let stalled_s = longest.unwrap_or(0) as f64 / 1e9;
        let before = served.entry(&stream.name).or_insert(0.0);
        if done >= SERVED * rate * measured_s {
            *before = before.max(rate);
            return None;
        }
        let served_s = (warm_s + measured_s - stalled_s).max(f64::MIN_POSITIVE);
        let most = (rate * warm_s + done + stream.slots() as f64) / served_s;
        let is_more = rate > *before;
        (is_more && most * STEP < *before).then_some((visit.coordinates, most, *before))
    })
}

/// The open loop with the most operations, and how many are due in a second.
fn offered(record: &PointRecord) -> Option<(&StreamRecord, f64)> {
    let streams = record.streams.iter();
    let open = streams.filter_map(|stream| Some((stream, stream.offered_per_s()?)));
    open.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

fn within(record: &PointRecord) -> Option<FellBehind> {
    let (stream, per_s) = offered(record)?;
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
    // The window in which a backlog or a stall begins has a part without it.
    let backlog = late.get(1..)?;
    let growth_s = (end - backlog.first()?) / (backlog.len() as f64 - 1.0).max(1.0) / width_s;
    let expected_s = growth_s * after_s;
    let is_chance = expected_s < DEVIATIONS * (2.0 * after_s / per_s).sqrt();
    let calm_s = medians[..calm].iter().copied().fold(0.0, f64::max);
    // A backlog that the warm-up left grows as it does later.
    let is_calm = calm_s - least <= LEVEL * expected_s;
    let is_long = calm >= WINDOWS_MIN && late.len() >= WINDOWS_MIN;
    let is_credit = is_long && grows && is_behind && is_calm && !is_chance;
    is_credit.then_some(FellBehind { after_s, calm_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::record::Latencies;
    use rigel_model::{Arrivals, Load, Ratio};

    fn is_found(medians: &[f64]) -> bool {
        of_medians(medians, 0.1, 8000.0).is_some()
    }

    #[test]
    fn less_than_a_lower_rate_had_is_credit_and_what_a_device_can_do_is_none() {
        let point = |rate: f64, per_s: u64, began_s: u64| {
            let mut record = crate::examples::sessions(Ratio::ZERO);
            record.began = Nanos::from_secs(began_s);
            record.warm_up = Nanos::from_secs(2);
            record.measured = Nanos::from_secs(record.streams[0].kinds[0].windows.len() as u64);
            record.window = Nanos::from_secs(1);
            let stream = &mut record.streams[0];
            stream.loads = vec![Load::Open {
                rate,
                arrivals: Arrivals::Poisson,
                in_flight_max: 16,
            }];
            for window in &mut stream.kinds[0].windows {
                window.done = per_s;
            }
            record
        };
        let found = |records: &[PointRecord]| {
            fell_behind(records).is_some_and(|found| found.what.contains("after it had served"))
        };
        let served = point(1000.0, 1000, 1);
        assert!(found(&[served.clone(), point(2000.0, 10, 20)]));
        // In any order of the journal, but not of time.
        assert!(found(&[point(2000.0, 10, 20), served.clone()]));
        assert!(!found(&[point(2000.0, 10, 1), point(1000.0, 1000, 20)]));
        // The backlog of the warm-up is served first.
        assert!(!found(&[served.clone(), point(2000.0, 800, 20)]));
        // Nothing is done in a stall.
        let mut stalled = point(2000.0, 10, 20);
        let service = stalled.streams[0].kinds[0].windows[0]
            .service
            .insert(Latencies::default());
        service.max = stalled.measured.0;
        assert!(!found(&[served.clone(), stalled]));
        // Less is done because less is offered, by chance less than on average.
        assert!(!found(&[served.clone(), point(500.0, 450, 20)]));
        assert!(!found(&[served]));
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
        // However long the warm-up was.
        let late = (0..40)
            .map(|at| 0.12 + 0.02 * f64::from(at))
            .collect::<Vec<_>>();
        assert!(!is_found(&late));
        // A stall at the end: who comes later waits less.
        assert!(!is_found(&then(vec![0.42, 0.97, 0.93, 0.89, 0.855, 0.82])));
        // A stall is over once.
        let mut over: Vec<f64> = growing(1).collect();
        over.extend(&calm);
        assert!(!is_found(&then(over)));
        // Too little of either.
        assert!(!is_found(&then(growing(1).take(4).collect())));
        assert!(!is_found(&calm) && !is_found(&[]));
    }
}
