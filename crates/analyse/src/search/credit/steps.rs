//! Steps down of the throughput of closed loops: within a point, and within a part of the volume.
//!
//! Input: the records of a run. Output: a warning, and what is left without credit.

use crate::figures::quantity::count;
use crate::point::steady::step;
use crate::point::summary::PointSummary;
use crate::search::at_load::reads_alone;
use rigel_model::record::{PointRecord, StreamRecord};
use rigel_model::{Bytes, Coordinates, Finding, FindingName, Nanos, Step};

/// Factor by which throughput falls when credit runs out.
pub(crate) const STEP: f64 = 1.25;

/// Factor by which throughput may exceed the level without credit, by chance.
pub(super) const LASTS: f64 = 1.15;

/// What to do once there is no credit.
const LATER: &str = "use the later figures as the sustained performance; run again now, while there is no \
                     credit left";

/// Deviations that make a fall of throughput more than chance, which a run has many occasions for.
pub(crate) const STEP_DEVIATIONS: f64 = 4.0;

/// Warns of reads within a part of the volume that began fast and slowed down to the rate of the whole
/// volume: a cache would have stayed fast, burst credit does not.
pub(super) fn credit_within(records: &[PointRecord], points: &[PointSummary]) -> Option<Finding> {
    const AS_THE_WHOLE: f64 = 1.15;
    const WINDOWS_MIN: usize = 5;
    let whole = reads_alone(points)?.iops;
    records.iter().find_map(|record| {
        let Coordinates::Within { bytes } = record.coordinates else {
            return None;
        };
        let windows = record.whole_windows();
        let stream = record.streams.first().filter(|_| windows >= WINDOWS_MIN)?;
        let counts = counts(stream, windows);
        let (early, late) = (&counts[..windows / 5], &counts[windows / 2..]);
        let rate = |counts: &[f64]| {
            counts.iter().sum::<f64>() / counts.len() as f64 / record.window.as_secs_f64()
        };
        let (before, after) = (rate(early), rate(late));
        // Few windows may be alike by chance, and so may the operations in them be many.
        let expected = whole.max(after) * early.len() as f64 * record.window.as_secs_f64();
        let beyond = (early.iter().sum::<f64>() - expected) / expected.max(1.0).sqrt();
        let step = step(early, late);
        let by_chance =
            beyond < STEP_DEVIATIONS || step.is_none_or(|step| step.deviations() < STEP_DEVIATIONS);
        let is_lower = before >= STEP * after && after <= AS_THE_WHOLE * whole;
        // If an operation takes longer than a window, the windows show nothing.
        (before > 0.0 && is_lower && !by_chance).then(|| {
            Finding::warning(
                FindingName::BurstCredit,
                format!(
                    "random reads within {} began at {} IOPS and ended at {}, the same as the \
                     whole volume: burst credit has run out",
                    Bytes(bytes),
                    count(before.round()),
                    count(after.round())
                ),
                LATER,
            )
        })
    })
}

/// Warns of a step down within a point to a level that no later point exceeds: credit that was used
/// up. If later points exceed it, another user's load came and went, or credit grew again.
pub(crate) fn ran_out(records: &[PointRecord]) -> Option<Finding> {
    let rate_of = |record: &PointRecord| {
        let first = record.streams.first();
        first.map_or(0.0, |stream| record.rate_of(stream))
    };
    let is_preparation = |record: &PointRecord| {
        let step = record.coordinates.step();
        matches!(step, Step::Reread | Step::Refill | Step::Precondition)
    };
    let of_step = |(index, record): (usize, &PointRecord)| {
        let step = step_within(record).filter(|_| !is_preparation(record))?;
        let rate = |count: f64| count / record.window.as_secs_f64();
        let length = |record: &PointRecord| record.streams.first().map(|stream| stream.length);
        let mut later = records[index + 1..]
            .iter()
            .filter(|later| length(later) == length(record) && !is_preparation(later))
            .peekable();
        // The closing measurement is the last of its load, and the longest.
        let lasts = is_closing(record)
            || later.peek().is_some()
                && later.all(|later| rate_of(later) <= LASTS * rate(step.after));
        let after = Nanos(record.window.0.saturating_mul(step.at as u64));
        let then = if is_closing(record) {
            "stayed there: other load began, or burst"
        } else {
            "no later point exceeded that: burst"
        };
        lasts.then(|| {
            Finding::warning(
                FindingName::BurstCredit,
                format!(
                    "at {} throughput fell after {after} from {} IOPS to {}, and {then} credit \
                     has run out",
                    record.coordinates,
                    count(rate(step.before).round()),
                    count(rate(step.after).round())
                ),
                LATER,
            )
        })
    };
    records.iter().enumerate().find_map(of_step)
}

fn is_closing(record: &PointRecord) -> bool {
    matches!(record.coordinates, Coordinates::ClosingDepth { .. })
}

/// The step down within a point. None is known of an offered rate that was not met: windows count
/// operations by due time, and the last ones were never served.
fn step_within(record: &PointRecord) -> Option<StepDown> {
    let stream = record
        .streams
        .first()
        .filter(|stream| stream.drained == 0 && stream.unserved.iter().all(|it| *it == 0))?;
    step_down(&counts(stream, record.whole_windows()))
}

/// What was left of the closing measurement of random reads when credit had run out within it; `None`
/// if throughput did not fall.
pub(crate) fn without_credit(records: &[PointRecord]) -> Option<PointRecord> {
    let closing = records.iter().rfind(|record| is_closing(record))?;
    let before = step_within(closing)?.at + 1;
    let mut left = closing.clone();
    let lost = Nanos(closing.window.0.saturating_mul(before as u64));
    left.measured = Nanos(closing.measured.0.saturating_sub(lost.0));
    for kind in left.streams.iter_mut().flat_map(|stream| &mut stream.kinds) {
        kind.windows.drain(..before.min(kind.windows.len()));
    }
    Some(left)
}

/// Completed operations of each of the first `windows`.
pub(crate) fn counts(stream: &StreamRecord, windows: usize) -> Vec<f64> {
    (0..windows).map(|at| stream.done_at(at) as f64).collect()
}

/// A step down in a series of counts.
struct StepDown {
    /// Number of windows before the step.
    at: usize,
    /// Mean count before the step.
    before: f64,
    /// Mean count after the step.
    after: f64,
}

/// The step of a series that has one step down and is level on both sides of it.
fn step_down(counts: &[f64]) -> Option<StepDown> {
    const WINDOWS_MIN: usize = 5;
    const LEVEL: f64 = 0.10;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let missed = |values: &[f64]| {
        let mean = mean(values);
        values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
    };
    let last = counts.len().checked_sub(WINDOWS_MIN)?;
    let split = (WINDOWS_MIN..=last).min_by(|one, other| {
        let cost = |at: usize| missed(&counts[..at]) + missed(&counts[at..]);
        cost(*one).total_cmp(&cost(*other))
    })?;
    // The window of the step belongs to neither side, whichever side it was counted on.
    let (early, late) = (&counts[..split - 1], &counts[split + 1..]);
    let (before, after) = (mean(early), mean(late));
    let level =
        |values: &[f64], mean: f64| (missed(values) / values.len() as f64).sqrt() <= LEVEL * mean;
    // A rate of zero is a stall, not the rate without credit.
    let is_step =
        after > 0.0 && before >= STEP * after && level(early, before) && level(late, after);
    let by_chance = step(early, late).is_none_or(|step| step.deviations() < STEP_DEVIATIONS);
    (is_step && !by_chance).then_some(StepDown {
        at: split,
        before,
        after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_lasts_is_found_and_noise_or_a_dip_is_not() {
        let series = |parts: &[(usize, f64)]| -> Vec<f64> {
            parts
                .iter()
                .flat_map(|(count, value)| {
                    (0..*count).map(move |i| value * (1.0 + 0.02 * (i % 3) as f64))
                })
                .collect()
        };
        let step = step_down(&series(&[(12, 500.0), (20, 200.0)])).unwrap();
        assert_eq!(step.at, 12);
        assert!((step.before / step.after - 2.5).abs() < 0.1);
        for none in [
            &[(30, 500.0)][..],
            &[(12, 200.0), (20, 500.0)],
            &[(12, 500.0), (4, 100.0), (12, 500.0)],
        ] {
            assert!(step_down(&series(none)).is_none(), "{none:?}");
        }
        assert!(step_down(&[500.0; 6]).is_none());
    }
}
