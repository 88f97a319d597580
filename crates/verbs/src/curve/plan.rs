//! The plan of `curve`: latency against throughput, at the requested loads.
//!
//! Loads are depths of a closed loop, offered rates of an open loop, or offered rates in percent of
//! the maximum, which is then searched for first by doubling the depth. A second, closed-loop
//! stream may run during every point.

use super::request::{BackgroundKind, CurveRequest, Loads};
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::ranks;
use rigel_analyse::plan::search::{
    NEIGHBOURS, SMALL, WARM_UP, WINDOW, WINDOWS_MIN, climb, doubled, seed_of,
};
use rigel_analyse::plan::visits::Visits;
use rigel_analyse::plan::{SqlStop, SqlTerms, least_common_multiple};
use rigel_analyse::{PointSummary, widen};
use rigel_model::{
    Bound, Coordinates, ExpectedLoad, Load, LogKind, Mix, Nanos, Pattern, Point, Ratio, Step,
    Stream, Until,
};

/// What all loads are measured for together, at least: few loads are precise within seconds, and have
/// not met a stall that comes every ten.
const SEEN_LEAST: Nanos = Nanos::from_secs(20);

/// Maximum depth of the search for the maximum.
const DEPTH_MAX: u32 = 256;

impl Plan for CurveRequest {
    fn name(&self) -> &'static str {
        if self.is_sql_run { "sql" } else { "curve" }
    }

    fn bound(&self) -> Option<Bound> {
        self.bound
    }

    fn precision(&self) -> Ratio {
        self.precision
    }

    fn sql(&self) -> Option<SqlTerms> {
        self.sql
    }

    fn sizes(&self) -> Vec<u32> {
        let beside = self.background.iter().map(|background| background.length);
        [self.volume_length()].into_iter().chain(beside).collect()
    }

    /// The next point after those in `done`; `None` if all are done.
    fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        let mut points = done.to_vec();
        widen(&mut points);
        let coordinates = match self.loads {
            // The maximum must not change any more when rates are taken from it.
            Loads::Percents(_) => match self.maximum(&points) {
                Err(depth) => Some(self.depth(depth)),
                Ok(_) => self
                    .next_visit(seed, &points)
                    .or_else(|| self.next_load(&points)),
            },
            Loads::Depths(_) | Loads::Rates(_) => self
                .next_load(&points)
                .or_else(|| self.next_visit(seed, &points)),
        }
        .or_else(|| {
            let load = ranks::fullest(self.ranks, &points);
            ranks::next(self.ranks, load, &points)
        })
        .or_else(|| {
            let offered = (self.neighbours_per_s?, self.in_flight_max);
            ranks::next_beside(self.ranks, offered, &points)
        })?;
        let point = self.point(coordinates, usable, seed);
        Some(Visits::again(point, usable, done, seed))
    }

    /// Points with the maximum number of outstanding I/Os.
    fn extremes(&self, usable: u64, seed: u64) -> Vec<Point> {
        let deepest = match &self.loads {
            Loads::Depths(depths) => self.at_depth(depths.iter().copied().max().unwrap_or(1)),
            Loads::Rates(_) => vec![self.rate(1)],
            Loads::Percents(_) => vec![self.depth(self.deepest()), self.rate(1)],
        };
        let offered = self.neighbours_per_s.map(|rate| (rate, self.in_flight_max));
        let beside = offered.and_then(|offered| ranks::most_beside(self.ranks, offered));
        deepest
            .into_iter()
            .chain(beside)
            .map(|coordinates| self.point(coordinates, usable, seed))
            .collect()
    }

    /// The approximate number of points when `done` are complete.
    fn points_expected(&self) -> usize {
        const SEARCH: usize = 9;
        let points = match &self.loads {
            Loads::Depths(depths) => depths.len() * self.logs.len().max(1),
            Loads::Rates(rates) => rates.len(),
            Loads::Percents(percents) => percents.len() + SEARCH,
        };
        let beside = self.neighbours_per_s.map_or(0, |_| ranks::points_beside());
        points + ranks::points_expected(self.ranks) + beside
    }

    /// Maximum time of a point in seconds.
    fn point_seconds(&self) -> f64 {
        let (most, warm_up) = match self.sql {
            Some(SqlTerms {
                stop: SqlStop::Elapsed(time),
                warm_up,
                ..
            }) => (time, warm_up),
            Some(terms) => (self.point_most, terms.warm_up),
            None => (self.point_most, WARM_UP),
        };
        most.plus(warm_up.most).as_secs_f64()
    }

    /// The unit in which members of a volume are cut, so that no I/O spans two of them.
    fn grain(&self) -> u64 {
        let beside = self
            .background
            .iter()
            .map(|background| u64::from(background.length));
        beside.fold(self.volume_length().into(), least_common_multiple)
    }

    /// Bytes of the largest I/O.
    fn largest(&self) -> u64 {
        let beside = self.background.iter().map(|background| background.length);
        u64::from(beside.fold(self.length, u32::max))
    }

    /// True if any operation writes.
    fn writes(&self) -> bool {
        self.mix.writes != Ratio::ZERO
            || (self.background.iter()).any(|beside| beside.kind == BackgroundKind::Write)
            || self
                .sql
                .is_some_and(|terms| terms.work.updates != Ratio::ZERO)
    }
}

impl CurveRequest {
    /// How closed loops are divided into visits. Sessions of a database are not, since each visit
    /// would need new ones.
    fn visits(&self) -> Option<Visits> {
        let in_visits = self.sql.is_none() && self.point_least > Nanos(0);
        in_visits.then(|| Visits::of(self.point_least, self.point_most))
    }

    /// The part of [`SEEN_LEAST`] of each offered rate, where all depths together have theirs.
    fn seen_of_each(&self) -> Nanos {
        let rates = match &self.loads {
            Loads::Depths(_) => 0,
            Loads::Rates(rates) => rates.len(),
            Loads::Percents(percents) => percents.len(),
        };
        let seen = self.visits().map_or(Nanos(0), |_| SEEN_LEAST);
        seen.0.checked_div(rates as u64).map_or(Nanos(0), Nanos)
    }

    /// A further visit to a closed loop with too few, or whose rate is known less well than
    /// requested.
    fn next_visit(&self, seed: u64, done: &[PointSummary]) -> Option<Coordinates> {
        let visits = self.visits()?;
        let is_closed = |point: &PointSummary| point.step() == Step::Depth;
        let measured: f64 = done
            .iter()
            .filter(|point| is_closed(point))
            .map(|point| point.measured_s)
            .sum();
        let is_short = measured < SEEN_LEAST.min(self.point_most).as_secs_f64();
        Visits::next(done, visits.least, seed, is_closed)
            .or_else(|| visits.next_extra(done, self.precision, seed, is_closed))
            .or_else(|| Visits::next(done, usize::MAX, seed, |point| is_short && is_closed(point)))
    }

    /// The next load that was not measured yet.
    fn next_load(&self, done: &[PointSummary]) -> Option<Coordinates> {
        let is_done = |wanted: &Coordinates| done.iter().any(|point| point.coordinates == *wanted);
        Some(match &self.loads {
            Loads::Depths(depths) => depths
                .iter()
                .flat_map(|depth| self.at_depth(*depth))
                .find(|wanted| !is_done(wanted))?,
            Loads::Rates(rates) => rates
                .iter()
                .map(|rate| self.rate(*rate))
                .find(|wanted| !is_done(wanted))?,
            Loads::Percents(percents) => match self.maximum(done) {
                Err(depth) => self.depth(depth),
                Ok(maximum) => {
                    let rates = percents
                        .iter()
                        .map(|percent| self.rate(share_of(maximum, *percent)));
                    rates.into_iter().find(|wanted| !is_done(wanted))?
                }
            },
        })
    }

    /// The maximum throughput of a closed loop, or the depth to measure next to find it.
    fn maximum(&self, done: &[PointSummary]) -> Result<f64, u32> {
        let class_at = |depth| {
            done.iter()
                .find(|point| point.coordinates == self.depth(depth))?
                .classes
                .first()
        };
        let climbed = climb(self.precision, 2, self.deepest(), doubled, |depth| {
            class_at(depth).map(|class| class.iops)
        });
        climbed.wanted.map_or(Ok(climbed.best), Err)
    }

    /// Maximum depth of the search; for a database, at most the number of prepared sessions.
    fn deepest(&self) -> u32 {
        match self.sql {
            Some(_) => 1 << self.in_flight_max.clamp(1, DEPTH_MAX).ilog2(),
            None => DEPTH_MAX,
        }
    }

    /// Bytes of an I/O of the volume: a log's own file takes records of any length.
    fn volume_length(&self) -> u32 {
        if self.logs.is_empty() {
            self.length
        } else {
            ExpectedLoad::LOG_BYTES
        }
    }

    fn depth(&self, depth: u32) -> Coordinates {
        match self.sql {
            Some(_) => Coordinates::Sessions { sessions: depth },
            None => Coordinates::Depth {
                depth,
                large_beside: self.beside(),
                log: None,
            },
        }
    }

    /// The points of a depth: one for each log, if several are compared.
    fn at_depth(&self, depth: u32) -> Vec<Coordinates> {
        let of = |log: &LogKind| Coordinates::Depth {
            depth,
            large_beside: self.beside(),
            log: Some(*log),
        };
        match &self.logs[..] {
            [] | [_] => vec![self.depth(depth)],
            logs => logs.iter().map(of).collect(),
        }
    }

    fn rate(&self, rate_per_s: u64) -> Coordinates {
        Coordinates::Rate {
            rate_per_s,
            in_flight_max: self.in_flight_max.saturating_mul(self.pipeline()),
            large_beside: self.beside(),
        }
    }

    fn beside(&self) -> u32 {
        let large = self.background.iter();
        let large = large.filter(|beside| beside.kind == BackgroundKind::Large);
        large.map(|beside| beside.depth).sum()
    }

    pub(crate) fn point(&self, coordinates: Coordinates, usable: u64, seed: u64) -> Point {
        let rate = match coordinates {
            Coordinates::Neighbours { rate_per_s, .. } => Some(rate_per_s),
            other => other.rate().or(other.rate_of_each()),
        };
        let load = match rate {
            Some(rate) => Load::Open {
                rate: rate as f64,
                arrivals: self.arrivals,
                in_flight_max: self.in_flight_max.saturating_mul(self.pipeline()),
            },
            None => Load::Closed {
                depth: coordinates.outstanding().saturating_mul(self.pipeline()),
            },
        };
        let pattern = match self.pattern {
            // Starts at a different block than the last point, whose blocks may be cached.
            Pattern::Sequential { .. } => {
                let blocks = (usable / u64::from(self.length)).max(1);
                Pattern::Sequential {
                    start: seed_of(seed, coordinates) % blocks,
                }
            }
            other => other,
        };
        let sql = self.sql.map(|terms| terms.work);
        let stream = Stream {
            objective: None,
            sql,
            name: SMALL.into(),
            load,
            mix: self.mix,
            pattern,
            length: self.length,
            rank: None,
            log: coordinates.log().or(self.logs.first().copied()),
        };
        let (stream, neighbours) = beside(stream, coordinates);
        let background = self.background.iter().map(|background| Stream {
            objective: None,
            sql: None,
            name: background.kind.stream().into(),
            load: background.load(),
            mix: match background.kind {
                BackgroundKind::Large | BackgroundKind::Read => Mix::READS,
                BackgroundKind::Write => Mix::WRITES,
            },
            pattern: Pattern::Uniform,
            length: background.length,
            rank: None,
            log: None,
        });
        let shortest = Nanos(WINDOW.0 * WINDOWS_MIN).max(self.point_least);
        let in_one_piece = Until::Precise {
            precision: self.precision,
            least: shortest.max(self.seen_of_each()).min(self.point_most),
            most: self.point_most,
        };
        let precise = match self.visits() {
            Some(visits) if coordinates.rate().is_none() => visits.until(),
            _ => in_one_piece,
        };
        let precise = match coordinates.step() {
            Step::Hosts | Step::Neighbours => Until::Elapsed(shortest),
            _ => precise,
        };
        let (until, window) = match self.sql.map_or(SqlStop::Precise, |terms| terms.stop) {
            SqlStop::Precise => (precise, WINDOW),
            SqlStop::Elapsed(time) => (Until::Elapsed(time), Point::second()),
            SqlStop::OpsOfEach(count) => (
                Until::Ops(count * u64::from(coordinates.outstanding())),
                Point::second(),
            ),
        };
        Point {
            coordinates,
            streams: std::iter::once(stream)
                .chain(neighbours)
                .chain(background)
                .collect(),
            warm_up: self.sql.map_or(WARM_UP, |terms| terms.warm_up),
            until,
            seed: seed_of(seed, coordinates),
            window: until.window(window),
        }
    }
}

/// The stream of the rank whose rate is fixed, and that of its neighbours unless they wait; for
/// other points, the stream as it is.
fn beside(stream: Stream, coordinates: Coordinates) -> (Stream, Option<Stream>) {
    let Coordinates::Neighbours { rank, depth, .. } = coordinates else {
        return (stream, None);
    };
    let others = (depth > 0).then(|| Stream {
        name: NEIGHBOURS.into(),
        load: Load::Closed { depth },
        ..stream.clone()
    });
    let own = Stream {
        rank: Some(rank),
        ..stream
    };
    (own, others)
}

/// `percent` of a rate, in whole operations per second; at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate; float casts saturate"
)]
fn share_of(maximum: f64, percent: f64) -> u64 {
    ((maximum * percent / 100.0).round() as u64).max(1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::examples::curve;
    use rigel_model::{SqlWork, Tables, WarmUp};

    /// Sessions of a database, with eight operations in flight on each connection.
    pub(crate) fn request(loads: Loads) -> CurveRequest {
        let tables = Tables {
            schemas: 1,
            scale: 10_000,
            scan_blocks: 1,
            block: 8192,
        };
        let work = SqlWork {
            pipeline: 8,
            ..SqlWork::reads(tables)
        };
        CurveRequest {
            in_flight_max: 4,
            point_least: Nanos(0),
            point_most: Nanos::from_secs(5),
            sql: Some(SqlTerms {
                work,
                stop: SqlStop::OpsOfEach(10),
                warm_up: WarmUp::NONE,
                statement_timeout: None,
            }),
            ..curve(loads)
        }
    }

    #[test]
    fn a_pipeline_multiplies_what_is_in_flight_and_not_the_sessions() {
        let first = |loads| request(loads).next(1 << 30, 1, &[]).unwrap();
        let closed = first(Loads::Depths(vec![3]));
        assert_eq!(closed.coordinates, Coordinates::Sessions { sessions: 3 });
        assert_eq!(closed.streams[0].load, Load::Closed { depth: 24 });
        assert_eq!(
            closed.until,
            Until::Ops(30),
            "of each session, not of each slot"
        );
        assert_eq!(first(Loads::Rates(vec![500])).streams[0].load.slots(), 32);
    }
}
