//! The plan of `duet`: rounds in which every arm is visited once, in an order that the seed draws, until
//! every answer is known or the time is over.

use super::request::{DuetArm, DuetRequest};
use super::rounds::{DuetFigure, ROUNDS_LEAST, rounds};
use crate::expect::STALLS_SEEN_LEAST;
use rigel_analyse::PointSummary;
use rigel_analyse::plan::search::{SMALL, WARM_UP, WINDOW, seed_of};
use rigel_analyse::plan::visits::{Visits, time_used};
use rigel_analyse::plan::{Plan, SqlStop, SqlTerms, check_sizes};
use rigel_model::{
    Arrivals, Coordinates, Error, ExpectedLoad, Load, Mix, Nanos, Pattern, Point, Ratio, SqlWork,
    Stream, Until, WarmUp, usage,
};

impl Plan for DuetRequest {
    fn name(&self) -> &'static str {
        "duet"
    }

    fn sql(&self) -> Option<SqlTerms> {
        self.sql
    }

    fn writes(&self) -> bool {
        let updates = self.sql.map_or(Ratio::ZERO, |terms| terms.work.updates);
        let writes = [self.mix.writes, updates];
        self.is_of_logs() || writes.into_iter().any(|share| share != Ratio::ZERO)
    }

    fn sizes(&self) -> Vec<u32> {
        // A log's own file takes records of any length.
        let of_volume = |arm: &DuetArm| arm.log.map_or(arm.length, |_| ExpectedLoad::LOG_BYTES);
        self.arms.iter().map(of_volume).collect()
    }

    fn check_values(&self) -> Result<(), Error> {
        check_sizes(self.sizes(), self.largest())?;
        let (error, arms) = (self.error.get(), self.arms.len());
        let is_known = (2..=Self::ARMS_MAX).contains(&arms) && error > 0.0 && error < 1.0;
        // The first is on the run's target. Sessions are those of servers of their own.
        let is_sound = |(at, arm): (usize, &DuetArm)| {
            let is_served = match &arm.target {
                None => at == 0 || self.sql.is_none(),
                Some(target) => at > 0 && target.is_private() == self.sql.is_some(),
            };
            arm.depth > 0 && arm.length > 0 && is_served && arm.log.is_some() == self.is_of_logs()
        };
        if !is_known || !self.arms.iter().enumerate().all(is_sound) {
            return Err(usage!(
                "this run compares {arms} arms with an error of {error}",
                "the journal is damaged, or of another version"
            ));
        }
        Ok(())
    }

    fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        if self.used_s(done) >= self.budget.as_secs_f64() || self.is_answered(done) {
            return None;
        }
        if self.together {
            return self.round(usable, seed, done).into_iter().next();
        }
        let is_done = |at: &Coordinates| done.iter().any(|point| point.coordinates == *at);
        let first = self
            .numbers()
            .map(|arm| self.coordinates(arm))
            .filter(|at| !is_done(at))
            .min_by_key(|at| seed_of(seed, *at));
        let next = first.or_else(|| Visits::next(done, usize::MAX, seed, |_| true))?;
        let point = self.point(next, seed)?;
        Some(Visits::again(point, usable, done, seed))
    }

    fn beside(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Vec<Point> {
        let round = self.round(usable, seed, done).into_iter();
        round.skip(1).filter(|_| self.together).collect()
    }

    fn extremes(&self, _: u64, seed: u64) -> Vec<Point> {
        self.numbers()
            .flat_map(|arm| self.extremes_of(arm, seed))
            .collect()
    }

    fn points_expected(&self) -> usize {
        let steps = if self.together { 1 } else { self.arms.len() };
        steps * ROUNDS_LEAST * 2
    }

    fn point_seconds(&self) -> f64 {
        Self::VISIT.plus(WARM_UP.least).as_secs_f64()
    }
}

impl DuetRequest {
    /// Length of a visit: short beside the minutes in which shared storage changes, long beside the queue
    /// that it begins with.
    const VISIT: Nanos = Nanos::from_secs(1);

    /// The terms of sessions that do this work.
    pub fn sessions(work: SqlWork, statement_timeout: Option<Nanos>) -> SqlTerms {
        SqlTerms {
            work,
            stop: SqlStop::Elapsed(Self::VISIT),
            warm_up: WARM_UP,
            statement_timeout,
        }
    }

    /// Time that the visits took, in seconds.
    pub(super) fn used_s(&self, done: &[PointSummary]) -> f64 {
        let at_once = if self.together { self.arms.len() } else { 1 };
        time_used(done) / at_once as f64
    }

    /// The points of a round that is measured at once: of the arms that are behind, if a run ended within
    /// one. All warm up as long as the slowest, so that they measure the same second.
    fn round(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Vec<Point> {
        let made = |at: Coordinates| {
            let before = done.iter().find(|point| point.coordinates == at);
            before.map_or(0, PointSummary::visits_made)
        };
        let fewest = self.numbers().map(|arm| made(self.coordinates(arm))).min();
        let behind = self.numbers().map(|arm| self.coordinates(arm));
        let behind = behind.filter(|at| Some(made(*at)) == fewest);
        let mut points: Vec<Point> = behind
            .filter_map(|at| Some(Visits::again(self.point(at, seed)?, usable, done, seed)))
            .collect();
        let longest = points.iter().map(|point| point.warm_up.most).max();
        let until = points.first().map(|point| point.until);
        for point in &mut points {
            let length = longest.unwrap_or(point.warm_up.most);
            point.warm_up = WarmUp {
                least: length,
                most: length,
            };
            point.until = until.unwrap_or(point.until);
        }
        points
    }

    /// The point of an arm.
    pub(super) fn coordinates(&self, arm: u32) -> Coordinates {
        Coordinates::Arm {
            arm,
            depth: self.arms[arm as usize].depth,
        }
    }

    /// True if the arms are logs.
    pub(super) fn is_of_logs(&self) -> bool {
        self.arms.iter().any(|arm| arm.log.is_some())
    }

    /// The numbers of the arms.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.arms).map(|(arm, _)| arm)
    }

    /// The points of an arm with the maximum outstanding.
    pub fn extremes_of(&self, arm: u32, seed: u64) -> Vec<Point> {
        self.point(self.coordinates(arm), seed)
            .into_iter()
            .collect()
    }

    /// True if all arms had as many visits, and every comparison has its answer.
    fn is_answered(&self, done: &[PointSummary]) -> bool {
        let visits = done.iter().map(PointSummary::visits_made);
        let is_whole = visits.clone().min() == visits.max();
        // Of two that are alike so far, one may stall at times.
        let is_short = self.used_s(done) < STALLS_SEEN_LEAST.as_secs_f64();
        let is_known = |arm: u32, figure: DuetFigure| {
            let ratio = self.estimate(figure, &rounds(self, done, arm, figure));
            ratio.is_some_and(|ratio| {
                self.is_decided(figure, ratio) && !(is_short && self.is_as_good(figure, ratio))
            })
        };
        let mut others = self.numbers().skip(1);
        let figures = self.figures();
        done.len() == self.arms.len()
            && is_whole
            && others.all(|arm| figures.iter().all(|figure| is_known(arm, *figure)))
    }

    fn point(&self, coordinates: Coordinates, seed: u64) -> Option<Point> {
        let Coordinates::Arm { arm, depth } = coordinates else {
            return None;
        };
        let until = Until::Elapsed(Self::VISIT);
        let of = self.arms.get(arm as usize)?;
        let slots = depth.saturating_mul(self.sql.map_or(1, |terms| terms.work.pipeline));
        Some(Point {
            coordinates,
            streams: vec![Stream {
                objective: None,
                sql: self.sql.map(|terms| terms.work),
                name: SMALL.into(),
                load: match self.rate_per_s {
                    Some(rate) => Load::Open {
                        rate: rate as f64,
                        arrivals: Arrivals::Poisson,
                        in_flight_max: slots,
                    },
                    None => Load::Closed { depth: slots },
                },
                mix: of.log.map_or(self.mix, |_| Mix::LOG),
                pattern: match of.log {
                    Some(_) => Pattern::Sequential { start: 0 },
                    None => Pattern::Uniform,
                },
                length: of.length,
                rank: None,
                log: of.log,
            }],
            warm_up: WARM_UP,
            until,
            seed: seed_of(seed, coordinates),
            window: until.window(WINDOW),
        })
    }
}
