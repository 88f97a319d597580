//! A time in which this program itself did not run.
//!
//! Input: the times of two looks. Output: where that lies in a measurement. It knows no record.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// A look that comes later than this was kept from coming: this program did not run. The looks of a
/// machine that is only busy come within tenths of a second.
pub const SUSPENDED: Nanos = Nanos::from_secs(1);

/// A time in which this program did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Its beginning, since measuring began; zero if it began before.
    pub at: Nanos,
    /// Its end, likewise.
    pub until: Nanos,
    /// Its length, also before measuring began: the time between two looks, which are a tenth of a second apart
    /// otherwise.
    pub lasts: Nanos,
}

impl Suspension {
    /// The time from `begin` to `end` as it lies in a measurement that began at `from`. `None` if it was
    /// over `margin` before that.
    pub fn within((begin, end): (Nanos, Nanos), from: Nanos, margin: Nanos) -> Option<Self> {
        (end.plus(margin) > from).then(|| Self {
            at: begin.since(from),
            until: end.since(from),
            lasts: end.since(begin),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_that_was_over_before_the_measurement_is_none_of_it() {
        let of = |begin, end| {
            let times = (Nanos::from_secs(begin), Nanos::from_secs(end));
            let found = Suspension::within(times, Nanos::from_secs(100), Nanos::from_secs(1))?;
            Some([found.at, found.until, found.lasts].map(|time| time.0 / 1_000_000_000))
        };
        assert_eq!(of(10, 40), None);
        assert_eq!(of(90, 130), Some([0, 30, 40]));
        assert_eq!(of(110, 130), Some([10, 30, 20]));
        // What was outstanding then ended in the measurement.
        assert_eq!(of(60, 99), None);
        assert_eq!(of(60, 100), Some([0, 0, 40]));
    }
}
