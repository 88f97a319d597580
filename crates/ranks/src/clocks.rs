//! How far another rank's clock is from that of rank 0.
//!
//! Two ways that do not share an assumption: the fastest of several exchanges over a connection,
//! whose error is at most half its round trip; and barriers, which nobody leaves before everybody
//! has entered. Where the two contradict each other, the offset is doubtful.

use super::manager::BarrierTimes;
use rigel_model::Nanos;
use serde::{Deserialize, Serialize};

/// A rank's clock against that of rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Its reading less that of rank 0 at the same moment, in nanoseconds.
    pub ahead_ns: i64,
    /// The truth lies within this of `ahead_ns`: half of the fastest round trip.
    pub bound: Nanos,
    /// When it was measured, on the clock of rank 0.
    pub at: Nanos,
    /// False if the barriers at the beginning contradict it.
    pub agreed: bool,
}

impl Default for ClockOffset {
    /// That of rank 0.
    fn default() -> Self {
        Self {
            ahead_ns: 0,
            bound: Nanos(0),
            at: Nanos(0),
            agreed: true,
        }
    }
}

/// The answer to a question for the clock.
pub(super) struct Pong {
    /// Who answered.
    pub(super) peer: usize,
    /// When the question was sent, on the clock of who asked.
    pub(super) sent: Nanos,
    /// The other's clock.
    theirs: Nanos,
    /// When the answer was read.
    received: Nanos,
}

impl Pong {
    /// Reads the bytes of an answer.
    pub(super) fn read(peer: usize, bytes: &[u8], received: Nanos) -> Option<Self> {
        let number = |bytes: &[u8]| Some(Nanos(u64::from_be_bytes(bytes.try_into().ok()?)));
        let (sent, theirs) = bytes.split_at_checked(8)?;
        Some(Self {
            peer,
            sent: number(sent)?,
            theirs: number(theirs)?,
            received,
        })
    }
}

impl ClockOffset {
    /// Before anything is known.
    pub(super) const UNKNOWN: Self = Self {
        ahead_ns: 0,
        bound: Nanos::MAX,
        at: Nanos(0),
        agreed: true,
    };

    /// By one exchange: the other's clock was read somewhere between question and answer.
    pub(super) fn of(pong: &Pong) -> Self {
        let half = Nanos(pong.received.since(pong.sent).0.div_ceil(2));
        let middle = pong.sent.plus(half);
        Self {
            ahead_ns: difference(pong.theirs, middle),
            bound: half,
            at: middle,
            agreed: true,
        }
    }

    /// The one with the narrower bound.
    pub(super) fn better_of(self, other: Self) -> Self {
        if other.bound < self.bound {
            other
        } else {
            self
        }
    }

    /// True if it is possible by the bounds that barriers give. A drift of 500 parts per million
    /// over a minute fits into the 30 ms by which they are widened.
    pub(super) fn agrees_with(self, (low, high): (i64, i64)) -> bool {
        const DRIFT_NS: i64 = 30_000_000;
        let bound = i64::try_from(self.bound.0).unwrap_or(i64::MAX);
        let (least, most) = (
            self.ahead_ns.saturating_sub(bound),
            self.ahead_ns.saturating_add(bound),
        );
        most >= low.saturating_sub(DRIFT_NS) && least <= high.saturating_add(DRIFT_NS)
    }

    /// Change of the offset from `earlier` to this one, in parts per million of the time between
    /// them; 0 if that is less than the bounds allow to know.
    pub fn drift_ppm_since(self, earlier: Self) -> f64 {
        let change = self.ahead_ns.saturating_sub(earlier.ahead_ns);
        let unsure = self.bound.plus(earlier.bound);
        let time = self.at.since(earlier.at);
        if time == Nanos(0) || change.unsigned_abs() <= unsure.0 {
            return 0.0;
        }
        change as f64 / time.0 as f64 * 1e6
    }

    /// A moment of rank 0's clock on this one.
    pub fn of_root(self, at: Nanos) -> Nanos {
        Nanos(at.0.saturating_add_signed(self.ahead_ns))
    }
}

/// Least and greatest offset of a rank's clock by barriers: it left each after rank 0 had entered,
/// and entered before rank 0 left.
pub(super) fn bounds(root: &[BarrierTimes], other: &[BarrierTimes]) -> (i64, i64) {
    let pairs = || root.iter().zip(other);
    let low = pairs().map(|(root, other)| difference(other.enter, root.leave));
    let high = pairs().map(|(root, other)| difference(other.leave, root.enter));
    (
        low.max().unwrap_or(i64::MIN),
        high.min().unwrap_or(i64::MAX),
    )
}

fn difference(one: Nanos, other: Nanos) -> i64 {
    i64::try_from(i128::from(one.0) - i128::from(other.0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(enter: u64, leave: u64) -> BarrierTimes {
        BarrierTimes {
            enter: Nanos(enter),
            leave: Nanos(leave),
        }
    }

    proptest! {
        #[test]
        fn the_truth_lies_within_both_bounds(
            ahead in 0_u64..1 << 40,
            question in 0_u64..1_000_000,
            answer in 0_u64..1_000_000,
            waits in proptest::collection::vec((0_u64..50_000, 0_u64..50_000, 0_u64..9_000), 1..5),
        ) {
            // One exchange: the ways there and back differ.
            let pong = Pong {
                peer: 1,
                sent: Nanos(77),
                theirs: Nanos(77 + question + ahead),
                received: Nanos(77 + question + answer),
            };
            let offset = ClockOffset::of(&pong);
            let error = offset.ahead_ns.abs_diff(i64::try_from(ahead).unwrap());
            prop_assert!(error <= offset.bound.0, "{error} of {}", offset.bound);
            // Barriers: all enter, then all leave.
            let (mut root, mut other, mut now) = (Vec::new(), Vec::new(), 1000);
            for (late_root, late_other, leave) in waits {
                let done = now + late_root.max(late_other);
                root.push(times(now + late_root, done + leave));
                other.push(times(now + late_other + ahead, done + ahead));
                now = done + leave;
            }
            let (low, high) = bounds(&root, &other);
            let ahead = i64::try_from(ahead).unwrap();
            prop_assert!(low <= ahead && ahead <= high);
            prop_assert!(offset.agrees_with((low, high)));
        }
    }

    #[test]
    fn an_offset_outside_the_barriers_does_not_agree() {
        let offset = ClockOffset {
            ahead_ns: 1_000_000_000,
            bound: Nanos(10_000),
            ..ClockOffset::default()
        };
        assert!(offset.agrees_with((999_000_000, 1_001_000_000)));
        assert!(!offset.agrees_with((0, 900_000_000)));
        assert!(!offset.agrees_with((1_100_000_000, 1_200_000_000)));
        assert!(offset.agrees_with((i64::MIN, i64::MAX)), "no barrier");
    }

    #[test]
    fn drift_is_known_only_beyond_the_bounds() {
        let at = |ahead_ns, at| ClockOffset {
            ahead_ns,
            bound: Nanos(1_000),
            at: Nanos::from_secs(at),
            agreed: true,
        };
        assert!((at(20_000, 11).drift_ppm_since(at(0, 1)) - 2.0).abs() < 1e-9);
        assert!(at(1_500, 11).drift_ppm_since(at(0, 1)).abs() < 1e-9);
        assert_eq!(at(-500, 1).of_root(Nanos(2_000)), Nanos(1_500));
    }
}
