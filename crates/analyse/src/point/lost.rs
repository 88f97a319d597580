//! Time in which a closed loop got far less than usual: stalls and slow phases.

use super::events::Events;
use std::ops::Range;

impl Events {
    /// The slow phases in the completed operations of consecutive windows of `width_s` seconds; consecutive
    /// windows with less than half of the usual operations are one.
    pub fn lost(counts: &[f64], width_s: f64) -> Self {
        let mut lost = Self::default();
        for phase in slow_phases(counts, width_s) {
            lost.include(1, phase.lost_s);
        }
        lost
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_lost_time_are_found_with_their_length() {
        let counts = [
            100.0, 98.0, 0.0, 0.0, 20.0, 104.0, 97.0, 101.0, 10.0, 99.0, 100.0,
        ];
        let lost = Events::lost(&counts, 0.1);
        // The median is 98: two windows whole and one by four fifths, then one by nine tenths.
        assert_eq!(lost.times, 2);
        assert!(
            (lost.seconds - (2.0 + 78.0 / 98.0 + 88.0 / 98.0) * 0.1).abs() < 1e-9,
            "{lost:?}"
        );
    }

    #[test]
    fn chance_is_no_lost_time() {
        assert_eq!(
            Events::lost(&[4.0, 0.0, 5.0, 3.0, 1.0, 4.0], 0.1),
            Events::default()
        );
        assert_eq!(Events::lost(&[], 0.1), Events::default());
        assert_eq!(Events::lost(&[0.0; 10], 0.1), Events::default());
    }
}
