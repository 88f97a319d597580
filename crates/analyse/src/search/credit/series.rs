//! Burst credit that runs out during a series.
//!
//! Input: the records of its rounds, one after the other. Output: a warning, if the series begins far
//! above the level on which it stays.

use super::steps::{LASTS, STEP, STEP_DEVIATIONS, counts};
use crate::figures::quantity::count;
use crate::point::summary::PointSummary;
use rigel_model::record::{PointRecord, StreamRecord};
use rigel_model::{Coordinates, Finding, FindingName, Nanos, Step};
use rigel_stats::robust::median;

/// Minimum number of rates on the level.
const LEVEL_MIN: usize = 10;

/// A warning, if the visits of a load began fast and then stayed on one level that is lower.
pub fn credit_of_visits(point: &PointSummary) -> Option<Finding> {
    let visits = point.visits.iter();
    let reader = CreditReader {
        rates: visits.map(|visit| (visit.iops, visit.measured_s)).collect(),
    };
    reader.finding()
}

/// A warning, if the visits to all closed loops that reach the last level of throughput began fast. Loads that
/// never reach it say nothing of a limit.
pub(super) fn credit_of_loads(records: &[PointRecord]) -> Option<Finding> {
    const ALIKE: f64 = LASTS - 1.0;
    let mut visits: Vec<&PointRecord> = records
        .iter()
        .filter(|record| record.coordinates.step() == Step::Depth)
        .flat_map(PointRecord::pieces)
        .collect();
    if visits.iter().any(|visit| visit.began == Nanos(0)) {
        return None;
    }
    visits.sort_by_key(|visit| visit.began);
    let rate = |visit: &PointRecord| {
        let done = visit.streams.first().map_or(0, StreamRecord::done);
        done as f64 / visit.measured.as_secs_f64()
    };
    let late = &visits[visits.len() / 2..];
    let level = median(&late.iter().map(|visit| rate(visit)).collect::<Vec<_>>())?;
    let reaches = |at: Coordinates| {
        let mut own = late
            .iter()
            .filter(|visit| visit.coordinates == at)
            .peekable();
        own.peek().is_some() && own.all(|visit| (rate(visit) / level - 1.0).abs() <= ALIKE)
    };
    let of_level = visits.iter().filter(|visit| reaches(visit.coordinates));
    let rates = of_level.map(|visit| (rate(visit), visit.measured.as_secs_f64()));
    CreditReader {
        rates: rates.collect(),
    }
    .finding()
}

/// The throughput of a series, window by window.
#[derive(Debug, Clone, Default)]
pub(crate) struct CreditReader {
    /// Operations per second, with the time of a window in seconds.
    rates: Vec<(f64, f64)>,
}

impl CreditReader {
    /// Adds a round of which `rate` is known.
    pub(crate) fn add(&mut self, record: &PointRecord, rate: f64) {
        let Some(stream) = record.streams.first() else {
            return;
        };
        let width_s = record.window.as_secs_f64();
        let counts = counts(stream, record.whole_windows());
        // The part of a window at the end of a round was measured as well.
        let seconds = record.measured.as_secs_f64() / counts.len().max(1) as f64;
        let windows = counts.into_iter().map(|done| (done / width_s, seconds));
        let before = self.rates.len();
        self.rates.extend(windows);
        if self.rates.len() == before {
            self.rates.push((rate, record.measured.as_secs_f64()));
        }
    }

    /// A warning, if the series began fast and then stayed on one level that is lower.
    pub(crate) fn finding(&self) -> Option<Finding> {
        let late: Vec<f64> = self.rates[self.rates.len() / 2..]
            .iter()
            .map(|(rate, _)| *rate)
            .collect();
        let level = median(&late).filter(|level| *level > 0.0)?;
        // The credit ends within the last of these.
        let last = self
            .rates
            .iter()
            .rposition(|(rate, _)| *rate > LASTS * level)?;
        let (first, others) = self.rates.split_at(last + 1);
        if others.len() < LEVEL_MIN.max(first.len()) {
            return None;
        }
        let squares: f64 = others.iter().map(|(rate, _)| (rate - level).powi(2)).sum();
        let deviation = (squares / others.len() as f64).sqrt();
        let fast_from = (STEP * level).max(level + STEP_DEVIATIONS * deviation);
        let whole = &first[..last.max(1)];
        let is_fast = whole.iter().all(|(rate, _)| *rate >= fast_from);
        let seconds = |part: &[(f64, f64)]| part.iter().map(|(_, seconds)| seconds).sum::<f64>();
        let before = whole.iter().map(|(rate, s)| rate * s).sum::<f64>() / seconds(whole);
        is_fast.then(|| {
            Finding::warning(
                FindingName::BurstCredit,
                format!(
                    "throughput was {} per second in the first {} that were measured, then {}, \
                     and never rose again: burst credit has run out, or other load began",
                    count(before.round()),
                    Nanos::from_secs_f64(seconds(whole)),
                    count(level.round())
                ),
                "use the later figures as the sustained performance, or measure again now, while \
                 there is no credit",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rates: &[f64]) -> Option<String> {
        let reader = CreditReader {
            rates: rates.iter().map(|rate| (*rate, 15.0)).collect(),
        };
        reader.finding().map(|finding| finding.what)
    }

    #[test]
    fn a_round_counts_with_all_of_its_time() {
        let mut round = crate::examples::reads_of_a_millisecond();
        round.measured = round.measured.plus(Nanos(round.window.0 * 9 / 10));
        let mut reader = CreditReader::default();
        reader.add(&round, 0.0);
        let seconds: f64 = reader.rates.iter().map(|(_, seconds)| seconds).sum();
        assert!((seconds - round.measured.as_secs_f64()).abs() < 1e-9);
        assert!(reader.rates.len() > 1);
        assert!(reader.rates.iter().all(|(rate, _)| *rate > 900.0));
    }

    #[test]
    fn a_fast_beginning_is_credit_and_what_comes_again_is_not() {
        let level = |n: usize| (0..n).map(|at| 3000.0 + 30.0 * (at % 3) as f64);
        let after = |first: &[f64], n| first.iter().copied().chain(level(n)).collect::<Vec<_>>();
        assert!(
            found(&after(&[16_000.0, 9000.0], 30))
                .unwrap()
                .contains("16,000 per second")
        );
        assert!(found(&after(&[8000.0], 30)).is_some());
        assert!(found(&after(&[16_000.0; 7], 30)).is_some());
        // Too few rates on the level, no step, and one that comes again.
        assert_eq!(found(&after(&[16_000.0; 7], 6)), None);
        assert_eq!(found(&after(&[16_000.0; 7], 9)), None);
        assert_eq!(found(&after(&[], 30)), None);
        assert_eq!(found(&after(&[3400.0], 30)), None);
        let mut again = after(&[16_000.0], 30);
        again[9] = 16_000.0;
        assert_eq!(found(&again), None);
        // Such a beginning is nothing special for a storage that wanders.
        let wild: Vec<f64> = (0..40)
            .map(|at| [4000.0, 2600.0, 3300.0, 2900.0][at % 4])
            .collect();
        let mut begun = wild.clone();
        begun[0] = 4900.0;
        assert_eq!(found(&begun), None);
    }
}
