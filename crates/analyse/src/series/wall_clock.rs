//! Times of rounds while somebody sets the wall clock.
//!
//! Input: rounds as they were measured, each with its wall-clock time and that of the engine's clock, which
//! nobody sets. Output: wall-clock times as if nobody had set that one either, and a note.

use super::rounds::Round;
use rigel_model::{Finding, FindingName, Moment, Nanos};

/// When a round began, by both clocks as they were recorded.
#[derive(Debug, Clone, Copy)]
struct RoundTimes {
    number: u32,
    wall: Moment,
    engine: Nanos,
}

/// Follows both clocks from round to round.
#[derive(Debug, Clone, Default)]
pub(super) struct WallClock {
    every_s: i64,
    /// The last round whose time is known by both clocks.
    last: Option<RoundTimes>,
    /// Seconds by which the wall clock was set so far.
    ahead_s: i64,
    /// The rounds before which it was set, and by how many seconds.
    jumps: Vec<(u32, i64)>,
}

impl WallClock {
    /// For rounds that are due every `every`.
    pub(super) fn new(every: Nanos) -> Self {
        Self {
            every_s: seconds(every),
            ..Self::default()
        }
    }

    /// Corrects the time of the next round, which began at `began` by the engine's clock; 0 if that is
    /// not known.
    pub(super) fn correct(&mut self, round: &mut Round, began: Nanos) {
        let recorded = round.begin;
        if began > Nanos(0) {
            let times = RoundTimes {
                number: round.number,
                wall: recorded,
                engine: began,
            };
            let jump = self.last.map_or(0, |last| self.jump(last, times));
            if jump != 0 {
                self.ahead_s += jump;
                self.jumps.push((round.number, jump));
            }
            self.last = Some(times);
        }
        round.begin = recorded.plus_seconds(-self.ahead_s);
    }

    /// Seconds by which the wall clock was set between two rounds. The engine's clock stands still while
    /// the machine sleeps, and begins anew with it; the timetable does neither, but of a soak that is
    /// resumed it follows the wall clock. So both must contradict it.
    fn jump(&self, before: RoundTimes, after: RoundTimes) -> i64 {
        let passed = after.wall.since(before.wall);
        let by_engine = seconds(after.engine) - seconds(before.engine);
        let by_timetable = (i64::from(after.number) - i64::from(before.number)) * self.every_s;
        // A round begins at any moment of its interval, and times are whole seconds.
        let late = self.every_s + 2;
        let agree = |one: i64, other: i64| (one - other).abs() <= late;
        if agree(passed, by_engine) || agree(passed, by_timetable) {
            return 0;
        }
        if agree(by_engine, by_timetable) {
            passed - by_engine
        } else {
            passed - by_timetable
        }
    }

    /// Says that the clock was set, if it was.
    pub(super) fn finding(&self) -> Option<Finding> {
        let (number, jump) = self.jumps.first()?;
        let direction = if *jump > 0 { "forward" } else { "back" };
        let more = match self.jumps.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more times"),
        };
        Some(Finding::note(
            FindingName::ClockSet,
            format!(
                "before round {number} the clock was set {direction} by {} s{more}: rounds have the times \
                 of the clock before that",
                jump.abs()
            ),
        ))
    }
}

/// Whole seconds.
fn seconds(time: Nanos) -> i64 {
    i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::rounds;

    const EVERY: Nanos = Nanos::from_secs(900);

    /// The times of ten rounds, in seconds after the first, and what is said of them: rounds are due
    /// every 900 s, and `clocks` says how far the wall clock and the engine's are ahead from a round on.
    fn times(numbers: &[u32], clocks: &[(usize, i64, i64)]) -> (Vec<i64>, Option<Finding>) {
        let mut all = rounds(u32::try_from(numbers.len()).unwrap());
        let first = all[0].begin;
        let mut clock = WallClock::new(EVERY);
        let (mut wall, mut engine) = (0, 1_000_000);
        for (at, (round, number)) in all.iter_mut().zip(numbers).enumerate() {
            for (_, wall_by, engine_by) in clocks.iter().filter(|(from, ..)| *from == at) {
                wall += wall_by;
                engine += engine_by;
            }
            let due = i64::from(*number - 1) * 900;
            round.number = *number;
            round.begin = first.plus_seconds(due + wall);
            let began = u64::try_from(due + engine).unwrap();
            clock.correct(round, Nanos::from_secs(began));
        }
        let since = all.iter().map(|round| round.begin.since(first)).collect();
        (since, clock.finding())
    }

    const IN_TURN: [u32; 6] = [1, 2, 3, 4, 5, 6];

    #[test]
    fn a_clock_that_is_set_changes_no_time_between_rounds() {
        let (since, said) = times(&IN_TURN, &[(2, -3600, 0), (4, 7200, 0)]);
        assert_eq!(since, [0, 900, 1800, 2700, 3600, 4500]);
        let said = said.unwrap().what;
        assert!(
            said.contains("before round 3 the clock was set back by 3600 s, and 1 more times"),
            "{said}"
        );
    }

    #[test]
    fn a_machine_that_slept_or_started_again_has_a_clock_that_nobody_set() {
        // Two rounds were missed while the engine's clock stood still.
        let (since, said) = times(&[1, 2, 5, 6], &[(2, 0, -2700)]);
        assert_eq!((since, said), (vec![0, 900, 3600, 4500], None));
        // After a reboot the engine's clock begins anew.
        let (_, said) = times(&[1, 2, 5, 6], &[(2, 0, -900_000)]);
        assert_eq!(said, None);
        // A soak that is resumed late, on the same clocks.
        assert_eq!(times(&[1, 2, 40, 41], &[]).1, None);
    }

    #[test]
    fn a_clock_that_was_set_before_a_soak_was_resumed_is_not_set_again_by_that() {
        // Two hours too far ahead, the resumed soak believes that eight rounds have passed.
        let mut clock = WallClock::new(EVERY);
        let mut all = rounds(3);
        let first = all[0].begin;
        for (round, (number, wall, engine)) in
            all.iter_mut()
                .zip([(1, 0, 100), (2, 900, 1000), (11, 1900, 2000)])
        {
            round.number = number;
            round.begin = first.plus_seconds(wall);
            clock.correct(round, Nanos::from_secs(engine));
        }
        assert_eq!(clock.finding(), None);
    }
}
