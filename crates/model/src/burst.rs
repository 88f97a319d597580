//! How much busier the busiest ten seconds of a demand are than their hour: what an hour's average
//! hides.

use super::{Demand, DemandInterval, Moment};
use serde::{Deserialize, Serialize};

/// Length of the windows.
const WINDOW_S: f64 = 10.0;

/// Intervals drift by some of a second where a tool sleeps between two readings.
const DRIFT_S: f64 = 0.5;

/// An hour of which less is known has no average to speak of.
const KNOWN_MIN_S: f64 = 600.0;

/// The ten-second window that is busiest beside its hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// Its I/O operations per second over those of its hour.
    pub ratio: f64,
    /// When the window began.
    pub begin: Moment,
    /// How much of the hour is known.
    pub known_s: f64,
}

/// An interval with a begin and a length.
#[derive(Clone, Copy)]
struct Timed {
    begin: Moment,
    seconds: f64,
    operations: f64,
}

impl Timed {
    fn of(interval: &DemandInterval) -> Option<Self> {
        let seconds = interval.seconds.filter(|seconds| *seconds > 0.0)?;
        Some(Self {
            begin: interval.begin?,
            seconds,
            operations: interval.operations_per_s() * seconds,
        })
    }

    /// This and the next, if nothing lies between them.
    fn joined(self, next: Self) -> Option<Self> {
        let gap = next.begin.since(self.begin) as f64 - self.seconds;
        // Moments are whole seconds.
        (gap.abs() <= 1.0 + DRIFT_S).then_some(Self {
            begin: self.begin,
            seconds: self.seconds + next.seconds,
            operations: self.operations + next.operations,
        })
    }
}

impl Demand {
    /// The highest ratio of a ten-second window to its hour; `None` if the intervals are longer than
    /// ten seconds, have no times, or cover too little.
    pub fn burst(&self) -> Option<Burst> {
        let timed: Vec<Timed> = self.intervals.iter().filter_map(Timed::of).collect();
        let first = timed.first()?.begin;
        if timed.iter().any(|one| one.seconds > WINDOW_S + DRIFT_S) {
            return None;
        }
        let hour_of = |one: &Timed| one.begin.since(first).div_euclid(3600);
        timed
            .chunk_by(|one, other| hour_of(one) == hour_of(other))
            .filter_map(busiest_of_an_hour)
            .max_by(|one, other| one.ratio.total_cmp(&other.ratio))
    }
}

fn busiest_of_an_hour(hour: &[Timed]) -> Option<Burst> {
    let known_s: f64 = hour.iter().map(|one| one.seconds).sum();
    let operations: f64 = hour.iter().map(|one| one.operations).sum();
    if known_s < KNOWN_MIN_S || operations <= 0.0 {
        return None;
    }
    let mean = operations / known_s;
    let window = |at: usize| {
        let mut window = hour[at];
        let mut rest = hour[at + 1..].iter();
        while window.seconds < WINDOW_S - DRIFT_S {
            window = window.joined(*rest.next()?)?;
        }
        Some(Burst {
            ratio: window.operations / window.seconds / mean,
            begin: window.begin,
            known_s,
        })
    };
    (0..hour.len())
        .filter_map(window)
        .max_by(|one, other| one.ratio.total_cmp(&other.ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DemandKind;
    use crate::examples::{interval, stream};

    /// A demand of intervals of `seconds` each, with these rates.
    fn demand(seconds: i32, rates: &[f64]) -> Demand {
        let begin: Moment = "2026-04-23T10:00".parse().unwrap();
        let of = |(at, rate): (i64, &f64)| DemandInterval {
            begin: Some(begin.plus_seconds(at * i64::from(seconds))),
            seconds: Some(seconds.into()),
            ..interval(vec![stream(DemandKind::RandomReads, *rate, None)])
        };
        Demand {
            source: "iostat".into(),
            database: "vda".into(),
            release: None,
            host: None,
            block_bytes: None,
            log: None,
            intervals: (0..).zip(rates).map(of).collect(),
            sum_of: Vec::new(),
            is_device: false,
        }
    }

    #[test]
    fn a_burst_is_measured_against_its_own_hour() {
        // A quiet hour with one window of 40, then a busy hour of even load.
        let mut rates = vec![10.0; 360];
        rates[100] = 40.0;
        rates.extend(vec![1000.0; 360]);
        let burst = demand(10, &rates).burst().unwrap();
        let mean = (359.0 * 10.0 + 40.0) / 360.0;
        assert!((burst.ratio - 40.0 / mean).abs() < 1e-9, "{burst:?}");
        assert_eq!(burst.begin.short(), "2026-04-23 10:16");
        assert!((burst.known_s - 3600.0).abs() < 1e-9);
    }

    #[test]
    fn shorter_intervals_are_joined_to_ten_seconds() {
        // One second of a hundred in ten of ten: the window has nineteen on average.
        let mut rates = vec![10.0; 3600];
        rates[50] = 100.0;
        let burst = demand(1, &rates).burst().unwrap();
        assert!((burst.ratio - 19.0 / 10.025).abs() < 1e-9, "{burst:?}");
    }

    #[test]
    fn what_is_too_coarse_or_too_short_has_no_burst() {
        assert_eq!(demand(60, &[10.0; 60]).burst(), None);
        assert_eq!(demand(10, &[10.0; 59]).burst(), None);
        assert!(demand(10, &[10.0; 60]).burst().is_some());
        assert_eq!(demand(10, &[0.0; 60]).burst(), None);
        assert_eq!(demand(10, &[]).burst(), None);
    }

    #[test]
    fn a_window_does_not_reach_over_a_gap() {
        let mut gap = demand(5, &[10.0; 200]);
        // The only busy five seconds stand alone between two gaps: no window of ten has them.
        gap.intervals.remove(101);
        gap.intervals.remove(99);
        gap.intervals[99].streams[0].per_s = Some(1000.0);
        let burst = gap.burst().unwrap();
        assert!(burst.ratio < 1.0, "{burst:?}");
    }
}
