//! The plan of `expect`: every load is visited once, in an order that the seed decides; then those of
//! which a line is undecided, until none is, or the budget is used up.

use super::request::ExpectRequest;
use super::stalls::RunStalls;
use rigel_analyse::plan::search::{LARGE, SMALL, WARM_UP, WINDOW, seed_of};
use rigel_analyse::plan::visits::{Visits, time_used};
use rigel_analyse::plan::{Plan, check_sizes};
use rigel_analyse::point::expected::VISITS_LEAST;
use rigel_analyse::{BoundVerdict, Criteria, Level, Looks, PointSummary};
use rigel_model::{
    Arrivals, Coordinates, Error, Expectation, ExpectedLoad, ExpectedOf, Load, Measure, Mix, Nanos,
    Pattern, Point, Ratio, Stream, Until, usage,
};

/// Outstanding I/Os where IOPS are expected at no depth: enough for any rate that cloud volumes are
/// sold with, at a millisecond each.
pub const DEPTH: u32 = 32;

/// Outstanding large I/Os where throughput is expected at no depth.
pub const LARGE_DEPTH: u32 = 8;

/// Maximum number of I/Os in flight at an offered rate.
const IN_FLIGHT_MAX: u32 = 512;

/// All loads together are measured for so long at least: within seconds nobody meets a stall that comes
/// every ten.
const SEEN_LEAST: Nanos = Nanos::from_secs(20);

/// The same where an expectation is about what stalls decide.
pub(crate) const STALLS_SEEN_LEAST: Nanos = Nanos::from_secs(60);

/// Length of a visit in a closed loop: as short as can be, since their number decides.
const VISIT_CLOSED: Nanos = Nanos::from_millis(500);

/// The same at an offered rate, whose queue must fill.
const VISIT_OPEN: Nanos = Nanos::from_secs(2);

impl Plan for ExpectRequest {
    fn name(&self) -> &'static str {
        "expect"
    }

    fn judged(&self) -> Criteria {
        let expected = self.expectations.iter();
        Criteria {
            expected: expected.map(|one| (*one, Self::load_of(one))).collect(),
            level: self.level(),
            ..Criteria::from(None)
        }
    }

    fn sizes(&self) -> Vec<u32> {
        // Log writes to files of their own need not fit into the volume.
        let loads = self.loads().into_iter();
        let log = loads.filter_map(|load| match load {
            Coordinates::Log {
                bytes, log: None, ..
            } => Some(bytes),
            _ => None,
        });
        [self.block, self.large].into_iter().chain(log).collect()
    }

    fn check_values(&self) -> Result<(), Error> {
        check_sizes(self.sizes(), self.largest())?;
        let (error, lines) = (self.error.get(), self.expectations.len());
        if error <= 0.0 || error >= 1.0 || lines == 0 {
            return Err(usage!(
                "this run expects {lines} things with an error of {error}",
                "the journal is damaged, or of another version"
            ));
        }
        Ok(())
    }

    fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        let point = self.point(self.next_load(seed, done)?, seed);
        Some(Visits::again(point, usable, done, seed))
    }

    fn extremes(&self, _: u64, seed: u64) -> Vec<Point> {
        let loads = self.loads().into_iter();
        loads.map(|load| self.point(load, seed)).collect()
    }

    fn points_expected(&self) -> usize {
        self.loads().len() * 2 * VISITS_LEAST
    }

    fn point_seconds(&self) -> f64 {
        let visits = self.loads().into_iter().map(Self::visit);
        let longest = visits.max().unwrap_or(VISIT_CLOSED);
        longest.plus(WARM_UP.least).as_secs_f64()
    }

    fn writes(&self) -> bool {
        self.expectations.iter().any(Expectation::writes)
    }
}

impl ExpectRequest {
    /// The level of each interval: the error is that of all lines together.
    pub fn level(&self) -> Level {
        Level {
            looks: Looks::Any,
            error: self.error.get() / self.expectations.len().max(1) as f64,
            batch: 1,
        }
    }

    /// The load of an expectation; `None` if it is about all of them.
    fn load_of(expectation: &Expectation) -> Option<Coordinates> {
        let depth = |usual: u32| match expectation.load {
            Some(ExpectedLoad::Depth(depth)) => depth,
            _ => usual,
        };
        Some(match (expectation.of, expectation.load) {
            (
                ExpectedOf::Log,
                Some(ExpectedLoad::Log {
                    log,
                    bytes,
                    writers,
                }),
            ) => Coordinates::Log {
                bytes,
                log: Some(log),
                writers,
            },
            (
                _,
                Some(ExpectedLoad::Mix {
                    depth,
                    write_percent,
                }),
            ) => Coordinates::Mixed {
                depth,
                write_percent,
            },
            (ExpectedOf::Log, _) => Coordinates::Log {
                bytes: ExpectedLoad::LOG_BYTES,
                log: None,
                writers: 1,
            },
            (ExpectedOf::Throughput, _) => Coordinates::Large {
                depth: depth(LARGE_DEPTH),
            },
            (ExpectedOf::Reads, Some(ExpectedLoad::Rate(rate_per_s))) => Coordinates::Rate {
                rate_per_s,
                in_flight_max: IN_FLIGHT_MAX,
                large_beside: 0,
            },
            (ExpectedOf::Reads, None) if matches!(expectation.limit.0, Measure::Max(_)) => {
                return None;
            }
            _ => Coordinates::at_depth(depth(DEPTH)),
        })
    }

    /// The loads, each once.
    pub fn loads(&self) -> Vec<Coordinates> {
        let mut loads: Vec<Coordinates> =
            self.expectations.iter().filter_map(Self::load_of).collect();
        if loads.is_empty() {
            loads.push(Coordinates::at_depth(DEPTH));
        }
        loads.sort_unstable();
        loads.dedup();
        loads
    }

    /// True if an expectation is about the longest I/Os, or so few that a stall of half a second in a minute is among
    /// them.
    fn is_about_stalls(&self) -> bool {
        const RARE: f64 = 0.99;
        let is_rare = |one: &Expectation| match one.limit.0 {
            Measure::Max(_) => true,
            Measure::Quantile(quantile, _) => quantile >= RARE,
            Measure::Mean(_) | Measure::Rate(_) => false,
        };
        self.expectations.iter().any(is_rare)
    }

    /// How long all loads together are measured at least, with their warm-ups.
    pub fn seen_least(&self) -> Nanos {
        let least = if self.is_about_stalls() {
            STALLS_SEEN_LEAST
        } else {
            SEEN_LEAST
        };
        least.min(self.budget)
    }

    /// The length of a visit.
    fn visit(load: Coordinates) -> Nanos {
        if load.rate().is_some() {
            VISIT_OPEN
        } else {
            VISIT_CLOSED
        }
    }

    fn next_load(&self, seed: u64, done: &[PointSummary]) -> Option<Coordinates> {
        let used = time_used(done);
        if used >= self.budget.as_secs_f64() {
            return None;
        }
        let is_done = |load: &Coordinates| done.iter().any(|point| point.coordinates == *load);
        let loads = self.loads().into_iter().filter(|load| !is_done(load));
        let first = loads.min_by_key(|load| seed_of(seed, *load));
        let is_short = used < self.seen_least().as_secs_f64();
        let stalls = RunStalls::of(done);
        first
            .or_else(|| Visits::next(done, usize::MAX, seed, |point| self.is_open(point, &stalls)))
            .or_else(|| Visits::next(done, usize::MAX, seed, |_| is_short))
    }

    /// True if a line of this load is undecided. Of stalls, time alone decides.
    fn is_open(&self, point: &PointSummary, stalls: &RunStalls) -> bool {
        let mut lines = point.classes.iter().flat_map(|class| &class.expected);
        lines.any(|line| {
            let one = self.expectations.get(line.index);
            one.is_some_and(|one| {
                !matches!(one.limit.0, Measure::Max(_))
                    && stalls.judge(point, one, line).verdict == BoundVerdict::Undecided
            })
        })
    }

    fn point(&self, coordinates: Coordinates, seed: u64) -> Point {
        let log = match coordinates {
            Coordinates::Log { log, .. } => log,
            _ => None,
        };
        let (name, length, mix, pattern) = match coordinates {
            Coordinates::Large { .. } => (LARGE, self.large, Mix::READS, Pattern::Uniform),
            Coordinates::Log { bytes, .. } => {
                (SMALL, bytes, Mix::LOG, Pattern::Sequential { start: 0 })
            }
            Coordinates::Mixed { write_percent, .. } => {
                let writes = Ratio::of(write_percent.into(), 100);
                let mix = Mix {
                    writes,
                    durable: false,
                };
                (SMALL, self.block, mix, Pattern::Uniform)
            }
            _ => (SMALL, self.block, Mix::READS, Pattern::Uniform),
        };
        let load = match coordinates {
            Coordinates::Rate {
                rate_per_s,
                in_flight_max,
                ..
            } => Load::Open {
                rate: rate_per_s as f64,
                arrivals: Arrivals::Poisson,
                in_flight_max,
            },
            other => Load::Closed {
                depth: other.outstanding(),
            },
        };
        let until = Until::Elapsed(Self::visit(coordinates));
        Point {
            coordinates,
            streams: vec![Stream {
                objective: None,
                sql: None,
                name: name.into(),
                load,
                mix,
                pattern,
                length,
                rank: None,
                log,
            }],
            warm_up: WARM_UP,
            until,
            seed: seed_of(seed, coordinates),
            window: until.window(WINDOW),
        }
    }
}
