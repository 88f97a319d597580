//! Outstanding I/O of which nothing completes, and how that is noticed.

use super::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// From this time without a completion on, storage or a server counts as stalled.
pub const STALLED: Nanos = Nanos::from_secs(10);

/// Outstanding operations while nothing completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StalledIo {
    /// Time since the last completion, or since the first of them started.
    pub silent: Nanos,
    /// Number of outstanding operations.
    pub outstanding: u64,
    /// Time since the oldest of them started; at least this for a watched disk that is only counted.
    pub oldest: Nanos,
}

/// Notices that outstanding operations stopped completing: of a point, a watched disk or server, or
/// a preparation.
///
/// Input: at each look, what has completed and what is outstanding. Output: since when nothing has
/// completed. The time is counted in looks, and no look counts for more than two: a machine that
/// stood still for a minute is not storage that did.
#[derive(Debug, Clone, Copy)]
pub struct StallDetector {
    /// Interval of the looks.
    every: Nanos,
    /// The previous look.
    looked: Nanos,
    progress: u64,
    silent: Nanos,
}

/// What a look of a [`StallDetector`] shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallLook {
    /// Time since the previous look, as far as it counts.
    pub step: Nanos,
    /// True if something completed since the previous look.
    pub has_completed: bool,
    /// What is outstanding, once nothing has completed for [`STALLED`].
    pub stalled: Option<StalledIo>,
}

impl StallDetector {
    /// Begins at `now`; the caller looks each time that `every` has passed.
    pub fn new(now: Nanos, every: Nanos) -> Self {
        Self {
            every,
            looked: now,
            progress: 0,
            silent: Nanos(0),
        }
    }

    /// Looks again. `progress` is any number that changes whenever an operation completes, such as
    /// how many have. `outstanding` is asked after ten seconds without one: the number of operations,
    /// and when the oldest started; `None` if that is not known.
    pub fn look(
        &mut self,
        now: Nanos,
        progress: u64,
        outstanding: impl FnOnce() -> (u64, Option<Nanos>),
    ) -> StallLook {
        let step = now.since(self.looked).min(Nanos(2 * self.every.0));
        self.looked = now;
        let has_completed = progress != self.progress;
        self.progress = progress;
        self.silent = if has_completed {
            Nanos(0)
        } else {
            self.silent.plus(step)
        };
        let stalled = if self.silent >= STALLED {
            self.stalled(now, outstanding())
        } else {
            None
        };
        StallLook {
            step,
            has_completed,
            stalled,
        }
    }

    /// Nothing is outstanding: the silence begins anew.
    pub fn idle(&mut self) {
        self.silent = Nanos(0);
    }

    fn stalled(&mut self, now: Nanos, (count, oldest): (u64, Option<Nanos>)) -> Option<StalledIo> {
        if count == 0 {
            self.idle();
            return None;
        }
        let oldest = oldest.map_or(self.silent, |oldest| now.since(oldest));
        // Before the oldest of them nothing was due.
        self.silent = self.silent.min(oldest);
        (self.silent >= STALLED).then_some(StalledIo {
            silent: self.silent,
            outstanding: count,
            oldest,
        })
    }
}

impl fmt::Display for StalledIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nothing has completed for {:.0} s ({} outstanding, oldest {:.1} s)",
            self.silent.as_secs_f64(),
            self.outstanding,
            self.oldest.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Nanos = Nanos::from_millis(100);

    /// Looks at each tenth of these seconds; returns what the last one shows.
    fn looks(
        detector: &mut StallDetector,
        seconds: std::ops::Range<u64>,
        (progress, count, oldest): (u64, u64, Option<Nanos>),
    ) -> Option<StalledIo> {
        let mut stalled = None;
        for tenth in seconds.start * 10..seconds.end * 10 {
            let now = Nanos((tenth + 1) * EVERY.0);
            stalled = detector.look(now, progress, || (count, oldest)).stalled;
        }
        stalled
    }

    #[test]
    fn a_stall_is_noticed_after_ten_seconds_and_ends_with_a_completion() {
        let mut detector = StallDetector::new(Nanos(0), EVERY);
        let oldest = Some(Nanos(0));
        assert_eq!(looks(&mut detector, 0..9, (0, 4, oldest)), None);
        let stalled = looks(&mut detector, 9..10, (0, 4, oldest)).unwrap();
        assert_eq!((stalled.outstanding, stalled.silent), (4, STALLED));
        assert_eq!(looks(&mut detector, 10..11, (1, 4, oldest)), None);
        // Nothing is known of the oldest but that it is at least as old.
        let stalled = looks(&mut detector, 11..31, (1, 2, None)).unwrap();
        assert_eq!(stalled.oldest, stalled.silent);
    }

    #[test]
    fn a_time_in_which_nothing_was_outstanding_is_no_stall() {
        let mut detector = StallDetector::new(Nanos(0), EVERY);
        assert_eq!(looks(&mut detector, 0..700, (5, 0, None)), None);
        // One that starts after nine quiet seconds is not ten seconds old at the tenth.
        let mut detector = StallDetector::new(Nanos(0), EVERY);
        let started = Some(Nanos::from_secs(9));
        assert_eq!(looks(&mut detector, 0..18, (0, 1, started)), None);
        let stalled = looks(&mut detector, 18..20, (0, 1, started)).unwrap();
        assert!(stalled.silent <= stalled.oldest, "{stalled}");
        detector.idle();
        assert_eq!(looks(&mut detector, 20..29, (0, 1, None)), None);
    }

    #[test]
    fn a_machine_that_stood_still_is_no_stall() {
        let mut detector = StallDetector::new(Nanos(0), EVERY);
        let look = detector.look(Nanos::from_secs(60), 0, || (1, Some(Nanos(0))));
        assert_eq!(look.stalled, None);
        assert_eq!(look.step, Nanos(2 * EVERY.0));
    }

    #[test]
    fn a_stall_is_described_with_its_numbers() {
        let stalled = StalledIo {
            silent: Nanos::from_secs(10),
            outstanding: 32,
            oldest: Nanos::from_millis(10_200),
        };
        let expected = "nothing has completed for 10 s (32 outstanding, oldest 10.2 s)";
        assert_eq!(stalled.to_string(), expected);
    }
}
