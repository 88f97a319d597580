//! Time in which a closed loop got far less than usual: stalls and slow phases.

use serde::Serialize;
use std::ops::Range;

/// Time that a closed loop lost in windows with less than half of the usual operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LostTime {
    /// Number of such phases; consecutive windows are one.
    pub phases: u64,
    /// Time in which nothing would have been done at the usual rate, in seconds.
    pub seconds: f64,
    /// Sum of the squares of the phases' lost times.
    #[serde(skip)]
    pub squares: f64,
}

impl LostTime {
    /// Finds the phases in the completed operations of consecutive windows of `width_s` seconds.
    pub fn of(counts: &[f64], width_s: f64) -> Self {
        let mut lost = Self::default();
        for phase in slow_phases(counts, width_s) {
            lost.phases += 1;
            lost.seconds += phase.lost_s;
            lost.squares += phase.lost_s * phase.lost_s;
        }
        lost
    }

    /// Adds what was lost elsewhere.
    fn add(&mut self, other: &Self) {
        self.phases += other.phases;
        self.seconds += other.seconds;
        self.squares += other.squares;
    }
}

/// Consecutive windows of a closed loop with far fewer operations than usual.
#[derive(Debug, Clone, PartialEq)]
struct SlowPhase {
    /// Places of its windows.
    windows: Range<usize>,
    /// Time in which nothing would have been done at the usual rate, in seconds.
    lost_s: f64,
}

/// The slow phases in the completed operations of consecutive windows of `width_s` seconds, in
/// order.
///
/// The usual number is the median of the windows, the upper one of two. A window is part of a phase
/// if it lacks at least half of it, and at least five standard deviations of a Poisson count, which
/// chance does not.
fn slow_phases(counts: &[f64], width_s: f64) -> Vec<SlowPhase> {
    const LACKING: f64 = 0.5;
    const DEVIATIONS: f64 = 5.0;
    let usual = upper_median(counts);
    let least_lacking = (LACKING * usual).max(DEVIATIONS * usual.sqrt());
    let mut phases: Vec<SlowPhase> = Vec::new();
    for (at, count) in counts.iter().enumerate() {
        let lacking = usual - count;
        if usual <= 0.0 || lacking < least_lacking {
            continue;
        }
        let lost = lacking / usual * width_s;
        match phases.last_mut().filter(|phase| phase.windows.end == at) {
            Some(phase) => {
                phase.windows.end += 1;
                phase.lost_s += lost;
            }
            None => phases.push(SlowPhase {
                windows: at..at + 1,
                lost_s: lost,
            }),
        }
    }
    phases
}

/// The middle value, or the upper one of the two in the middle; 0 if there are none.
pub(super) fn upper_median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// What the loads of a run show about lost time: evidence for all of its points, also for those that
/// lost none by luck.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LossEvidence {
    lost: LostTime,
    /// Time in which it was looked for.
    seconds: f64,
}

impl LossEvidence {
    /// Includes what a load lost in `seconds`, or would have in a closed loop.
    pub(super) fn include(&mut self, lost: &LostTime, seconds: f64) {
        self.lost.add(lost);
        self.seconds += seconds;
    }

    /// The relative standard error that lost time adds to the throughput of a measurement of
    /// `seconds`: phases that come at random (a compound Poisson process) with rate λ and lengths L
    /// have the variance λ E(L²) / t of the lost share of a time t.
    pub(super) fn error_over(&self, seconds: f64) -> f64 {
        if self.seconds <= 0.0 || seconds <= 0.0 {
            return 0.0;
        }
        (self.lost.squares / self.seconds / seconds).sqrt()
    }

    /// Degrees of freedom of that error: twice the number of phases, as for the limits of a Poisson
    /// count (Garwood, Biometrika 28, 1936).
    pub(super) fn degrees(&self) -> f64 {
        2.0 * self.lost.phases as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_lost_time_are_found_with_their_length() {
        let counts = [
            100.0, 98.0, 0.0, 0.0, 20.0, 104.0, 97.0, 101.0, 10.0, 99.0, 100.0,
        ];
        let lost = LostTime::of(&counts, 0.1);
        // The median is 98: two windows whole and one by four fifths, then one by nine tenths.
        assert_eq!(lost.phases, 2);
        assert!(
            (lost.seconds - (2.0 + 78.0 / 98.0 + 88.0 / 98.0) * 0.1).abs() < 1e-9,
            "{lost:?}"
        );
    }

    #[test]
    fn chance_is_no_lost_time() {
        assert_eq!(
            LostTime::of(&[4.0, 0.0, 5.0, 3.0, 1.0, 4.0], 0.1),
            LostTime::default()
        );
        assert_eq!(LostTime::of(&[], 0.1), LostTime::default());
        assert_eq!(LostTime::of(&[0.0; 10], 0.1), LostTime::default());
    }
}
