//! The plan of `soak`: the same round repeatedly, on a timetable, for hours to weeks.
//!
//! Each round has a place in a timetable of equal intervals from the soak's start, however long
//! earlier rounds took. So the time of day is sampled evenly, and a resumed soak continues at the
//! current time. A round's number is its index in the timetable; a missing number is a skipped round.
//!
//! A round of fixed work begins at any moment of its interval that leaves it enough time, by another
//! time in each: what the storage does every five minutes would meet rounds that begin every hour
//! always, or never.

use super::search::{SMALL, seed_of};
use super::{Plan, SqlTerms, check_sizes};
use crate::PointSummary;
use crate::series::soak_request::SoakRequest;
use rigel_model::record::{End, PointRecord};
use rigel_model::{Coordinates, Error, Nanos, Pattern, Point, Ratio, Stream, Until, WarmUp, usage};

/// Number of windows of a round of maximum duration: enough to see its course, few enough for weeks
/// of rounds.
const WINDOWS: u64 = 4;

impl Plan for SoakRequest {
    fn name(&self) -> &'static str {
        "soak"
    }

    fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        let rounds = done.iter().filter_map(|point| match point.coordinates {
            Coordinates::Round { round, .. } => Some(round),
            _ => None,
        });
        let next = rounds.max().unwrap_or(0) + 1;
        (next <= self.rounds()).then(|| self.point(next, Nanos(0), usable, seed))
    }

    fn extremes(&self, usable: u64, seed: u64) -> Vec<Point> {
        vec![self.point(1, Nanos(0), usable, seed)]
    }

    fn points_expected(&self) -> usize {
        self.rounds() as usize
    }

    fn point_seconds(&self) -> f64 {
        self.every.as_secs_f64()
    }

    fn sql(&self) -> Option<SqlTerms> {
        self.sql
    }

    fn sizes(&self) -> Vec<u32> {
        vec![self.length]
    }

    fn check_values(&self) -> Result<(), Error> {
        if self.every == Nanos(0) {
            return Err(usage!(
                "this soak begins a round every 0s",
                "the journal is damaged, or of another version"
            ));
        }
        check_sizes(self.sizes(), self.largest())
    }

    /// True if any operation writes.
    fn writes(&self) -> bool {
        self.mix.writes != Ratio::ZERO
            || self
                .sql
                .is_some_and(|terms| terms.work.updates != Ratio::ZERO)
    }
}

impl SoakRequest {
    /// When the interval of round `number`, from 1, begins, measured from the soak's start.
    pub fn place(&self, number: u32) -> Nanos {
        let before = u64::from(number.saturating_sub(1));
        Nanos(self.every.0.saturating_mul(before))
    }

    /// When round `number` is due, where the rounds so far took `longest` at most; 0 if none was complete.
    pub fn due(&self, number: u32, longest: Nanos) -> Nanos {
        self.place(number).plus(self.shift(number, longest))
    }

    /// How long after its place in the timetable a round begins: evenly spread over what leaves it the
    /// time of the longest one, by multiples of the golden ratio.
    fn shift(&self, number: u32, longest: Nanos) -> Nanos {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        if self.work.is_none() || longest == Nanos(0) {
            return Nanos(0);
        }
        let share = GOLDEN.wrapping_mul(u64::from(number.saturating_sub(1)));
        let shift = (u128::from(self.every.since(longest).0) * u128::from(share)) >> 64;
        Nanos(u64::try_from(shift).unwrap_or(0))
    }

    /// The longest of the rounds so far, with this one.
    #[must_use]
    pub fn longest_with(longest: Nanos, round: &PointRecord) -> Nanos {
        match round.end {
            End::Complete => longest.max(round.measured),
            End::Stopped | End::Broken(_) => longest,
        }
    }

    /// The number of the round whose interval contains the time `since` the soak's start.
    pub fn number_at(&self, since: Nanos) -> u32 {
        u32::try_from(since.0 / self.every.0.max(1))
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }

    /// Round `number`, which begins this long after its place; it ends before the next one's.
    pub fn point(&self, number: u32, begins: Nanos, usable: u64, seed: u64) -> Point {
        let coordinates = Coordinates::Round {
            round: number,
            outstanding: self.load.slots(),
        };
        let seed = seed_of(seed, coordinates);
        let pattern = match self.pattern {
            // Starts at a different block than the last round.
            Pattern::Sequential { .. } => Pattern::Sequential {
                start: seed % (usable / u64::from(self.length)).max(1),
            },
            other => other,
        };
        let left = self.every.since(begins);
        let left = Nanos(left.0.min(self.limit.0).max(1));
        Point {
            coordinates,
            streams: vec![Stream {
                objective: None,
                name: SMALL.into(),
                load: self.load,
                mix: self.mix,
                pattern,
                length: self.length,
                sql: self.sql.map(|terms| terms.work),
                rank: None,
                log: None,
            }],
            warm_up: WarmUp::NONE,
            until: match self.work {
                Some(ops) => Until::Work { ops, most: left },
                None => Until::Elapsed(left),
            },
            window: self.window(),
            seed,
        }
    }

    /// Width of the windows of a round.
    fn window(&self) -> Nanos {
        Nanos((self.limit.0 / WINDOWS).max(Nanos::from_millis(100).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::{Load, Mix};

    fn request() -> SoakRequest {
        SoakRequest {
            load: Load::Closed { depth: 8 },
            length: 8192,
            mix: Mix::READS,
            pattern: Pattern::Uniform,
            sql: None,
            work: Some(1000),
            limit: Nanos::from_secs(60),
            every: Nanos::from_secs(60),
            lasting: Nanos::from_secs(3600),
            objectives: Vec::new(),
            share: Ratio::of(99, 100),
        }
    }

    #[test]
    fn rounds_stand_in_a_timetable() {
        let request = request();
        assert_eq!(request.rounds(), 60);
        let steady = SoakRequest {
            work: None,
            ..request.clone()
        };
        assert_eq!(
            [1, 3].map(|number| steady.due(number, Nanos::from_secs(1))),
            [Nanos(0), Nanos::from_secs(120)]
        );
        assert_eq!(
            (
                request.number_at(Nanos(0)),
                request.number_at(Nanos::from_secs(119))
            ),
            (1, 2)
        );
        let odd = SoakRequest {
            lasting: Nanos::from_secs(61),
            ..request
        };
        assert_eq!(odd.rounds(), 1, "a second round would not be over in time");
    }

    #[test]
    fn rounds_of_fixed_work_meet_every_phase_of_what_comes_regularly() {
        let request = request();
        let longest = Nanos::from_secs(10);
        let shift = |number| {
            let due = request.due(number, longest);
            due.since(request.place(number))
        };
        // All of a minute but the ten seconds of the longest round: five intervals with 12 rounds each.
        let shifts: Vec<u64> = (1..=60).map(|number| shift(number).0).collect();
        for ten in 0..5 {
            let from = Nanos::from_secs(10 * ten).0;
            let to = Nanos::from_secs(10 * (ten + 1)).0;
            let rounds = shifts.iter().filter(|shift| (from..to).contains(shift));
            assert!((11..=13).contains(&rounds.count()), "{ten}: {shifts:?}");
        }
        for number in 1..=60 {
            let due = request.due(number, longest);
            assert_eq!(request.number_at(due), number);
            let point = request.point(number, shift(number), 1 << 30, 1);
            let Until::Work { most, .. } = point.until else {
                panic!("fixed work");
            };
            assert!(most >= longest && due.plus(most) <= request.place(number + 1));
        }
        // As long as no round was complete, nobody knows how much time one needs.
        assert_eq!(request.due(7, Nanos(0)), request.place(7));
        assert_eq!(request.due(7, request.every), request.place(7));
    }

    #[test]
    fn a_round_that_begins_late_ends_in_time_for_the_next() {
        let until = |limit, late| {
            SoakRequest {
                limit: Nanos::from_secs(limit),
                ..request()
            }
            .point(1, Nanos::from_secs(late), 1 << 30, 1)
            .until
        };
        assert_eq!(
            until(60, 0),
            Until::Work {
                ops: 1000,
                most: Nanos::from_secs(60)
            }
        );
        assert_eq!(
            until(60, 7),
            Until::Work {
                ops: 1000,
                most: Nanos::from_secs(53)
            }
        );
        assert_eq!(
            until(20, 7),
            Until::Work {
                ops: 1000,
                most: Nanos::from_secs(20)
            }
        );
        let steady = SoakRequest {
            work: None,
            ..request()
        };
        assert_eq!(
            steady.point(1, Nanos::from_secs(1), 1 << 30, 1).until,
            Until::Elapsed(Nanos::from_secs(59))
        );
    }

    #[test]
    fn every_round_reads_other_blocks_and_always_the_same_ones() {
        let point = |number| request().point(number, Nanos(0), 1 << 30, 7);
        assert_eq!(point(3), point(3));
        assert_ne!(point(3).seed, point(4).seed);
    }
}
