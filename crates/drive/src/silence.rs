//! What a point does when its outstanding operations stop completing.
//!
//! Input: at each look, how many operations have completed, and how many are outstanding. Output:
//! whether to wait, and the stall that the point is in.

use super::lane::Outstanding;
use super::shown::WATCH;
use rigel_model::record::SUSPENDED;
use rigel_model::{Nanos, StallDetector, StallLook, StalledIo};

/// A point ends after this time without a completion, so that an unattended run does not hang for
/// ever.
const LONGEST: Nanos = Nanos::from_secs(600);

/// Time without a completion after which a point that was stopped no longer waits for what is
/// outstanding.
const STOPPED: Nanos = Nanos::from_secs(2);

/// Time after which a point that was stopped waits no longer even if operations complete.
const STOPPED_MOST: Nanos = Nanos::from_secs(4);

/// Time from giving up on operations until threads that are still blocked by them are left behind.
const BLOCKED: Nanos = Nanos::from_millis(500);

/// How long nothing has completed, and since when the point waits for its end.
#[derive(Debug)]
pub(super) struct Silence {
    /// Begin and end of each time in which this program did not run.
    pub(super) suspended: Vec<(Nanos, Nanos)>,
    detector: StallDetector,
    /// Time since the point was stopped.
    stopped: Nanos,
    /// The same without a completion.
    stopped_silent: Nanos,
    /// Time since the point gave up on what is outstanding.
    given_up: Nanos,
    pub(super) stalled: Option<StalledIo>,
}

/// What a look shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Wait.
    Wait,
    /// Nothing has completed for so long that the point must end.
    End,
    /// Wait no longer for outstanding operations.
    GiveUp,
    /// Wait no longer for threads that they block.
    LeaveThreads,
}

impl Silence {
    /// Begins at `now`.
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            suspended: Vec::new(),
            detector: StallDetector::new(now, WATCH),
            stopped: Nanos(0),
            stopped_silent: Nanos(0),
            given_up: Nanos(0),
            stalled: None,
        }
    }

    /// Notes a look at `now` if it is so late after the one at `looked` that this program cannot have run.
    pub(super) fn note_late(&mut self, looked: Nanos, now: Nanos) {
        if now.since(looked.plus(WATCH)) >= SUSPENDED {
            self.suspended.push((looked, now));
        }
    }

    /// Looks again. `is_stopped` if no more operations start because the point was stopped, and
    /// `has_given_up` if it waits no longer for those that are outstanding.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        completed: u64,
        (is_stopped, has_given_up): (bool, bool),
        outstanding: impl FnOnce() -> Outstanding,
    ) -> Patience {
        let look = self.detector.look(now, completed, || {
            let Outstanding { count, oldest } = outstanding();
            (count, Some(oldest))
        });
        let StallLook {
            step,
            has_completed,
            stalled,
        } = look;
        self.stalled = stalled;
        self.stopped_silent = if has_completed {
            Nanos(0)
        } else {
            self.stopped_silent.plus(step)
        };
        if is_stopped {
            self.stopped = self.stopped.plus(step);
        } else {
            self.stopped_silent = Nanos(0);
        }
        if has_given_up {
            self.given_up = self.given_up.plus(step);
        }
        if self.given_up >= BLOCKED {
            Patience::LeaveThreads
        } else if self.stopped_silent >= STOPPED || self.stopped >= STOPPED_MOST {
            Patience::GiveUp
        } else if stalled.is_some_and(|stalled| stalled.silent >= LONGEST) {
            Patience::End
        } else {
            Patience::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 100 ms from `from` to `to` seconds.
    fn looks(
        silence: &mut Silence,
        seconds: std::ops::Range<u64>,
        completed: u64,
        state: (bool, bool),
        count: u64,
    ) -> Vec<Patience> {
        let mut seen = Vec::new();
        for tenth in seconds.start * 10..seconds.end * 10 {
            let now = Nanos((tenth + 1) * WATCH.0);
            let oldest = Nanos(0);
            let patience = silence.look(now, completed, state, || Outstanding { count, oldest });
            seen.push(patience);
        }
        seen.dedup();
        seen
    }

    const RUNNING: (bool, bool) = (false, false);

    #[test]
    fn an_unattended_point_ends_and_a_stopped_one_soon() {
        let mut silence = Silence::new(Nanos(0));
        let seen = looks(&mut silence, 0..601, 0, RUNNING, 1);
        assert_eq!(seen, [Patience::Wait, Patience::End]);
        let seen = looks(&mut silence, 601..604, 0, (true, false), 1);
        assert_eq!(seen, [Patience::End, Patience::GiveUp]);
        let seen = looks(&mut silence, 604..605, 0, (true, true), 1);
        assert_eq!(seen, [Patience::GiveUp, Patience::LeaveThreads]);
    }

    #[test]
    fn a_look_that_comes_seconds_late_is_a_suspension_and_no_silence() {
        let mut silence = Silence::new(Nanos(0));
        let at = Nanos::from_millis;
        silence.note_late(at(0), at(400));
        let patience = silence.look(at(400), 0, RUNNING, Outstanding::default);
        assert_eq!((patience, silence.suspended.len()), (Patience::Wait, 0));
        silence.note_late(at(400), at(30_500));
        let patience = silence.look(at(30_500), 0, RUNNING, Outstanding::default);
        assert_eq!(patience, Patience::Wait);
        assert_eq!(silence.suspended, [(at(400), at(30_500))]);
        assert_eq!(silence.stalled, None);
    }

    #[test]
    fn operations_that_still_complete_are_waited_for_a_little_longer() {
        let mut silence = Silence::new(Nanos(0));
        let mut seen = Vec::new();
        for tenth in 1..=41 {
            let outstanding = || Outstanding {
                count: 1,
                oldest: Nanos(0),
            };
            let now = Nanos(tenth * WATCH.0);
            seen.push(silence.look(now, tenth, (true, false), outstanding));
        }
        assert!(
            seen[..39]
                .iter()
                .all(|patience| *patience == Patience::Wait)
        );
        assert_eq!(seen[40], Patience::GiveUp);
    }
}
