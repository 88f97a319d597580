//! The plan of `calibrate`: searches for the storage's limits; each point is chosen by the results
//! of the previous ones.
//!
//! The order is: tests for a cache; random reads at rising depth until throughput stops rising, and at one far
//! beyond; depths in between around the knee; large reads; one sequential stream; a second visit to each of these,
//! but for large reads, in random order; offered rates under the latency bound: half load, nearly all of it, then on
//! both sides of the rate at which it is met in turn; further visits; and closing measurements, at the knee and of
//! large reads in one piece, which show whether the storage changed. Where a cache is suspected, parts of the volume
//! are read again then. Writes come last, and only if the user asked for them.

use super::bucket;
use super::precondition::{self, PASSES as PRECONDITIONING};
use super::request::{CalibrateRequest, OwnLogs};
use super::reread;
use rigel_analyse::plan::ranks::{self, LoadOfEach};
use rigel_analyse::plan::search::{
    Climb, LARGE, SMALL, WARM_UP, WINDOW, WINDOWS_MIN, climb, doubled, seed_of,
};
use rigel_analyse::plan::visits::Visits;
use rigel_analyse::plan::{Plan, least_common_multiple};
use rigel_analyse::{
    BoundVerdict, ClassSummary, Estimate, Knee, PointSummary, Sustained, curve_shape, rate_beside,
    rate_expected, sustained, widen,
};
use rigel_model::{
    Arrivals, Bound, Coordinates, ExpectedLoad, KIB, Load, LogKind, MIB, Mix, Nanos, Pattern,
    Point, Ratio, Step, Stream, Until, WarmUp,
};

/// Maximum size of the part of the volume that is read twice to find a cache.
const PASS_MAX: u64 = 128 * MIB;

/// The same for each second of a shorter run.
const PASS_PER_SECOND: u64 = 2 * MIB;

/// Maximum time of a pass over that part; only its rate is compared, so it need not finish.
const PASS_TIME_MAX: Nanos = Nanos::from_secs(60);

/// Ratio of each working set's size to the previous one's.
const GROWTH: u64 = 4;

/// Maximum size of a working set. Each is read completely once; a larger one would take longer than
/// everything else.
const WORKING_SET_MAX: u64 = 8 << 30;

/// Number of depths measured between the doublings, around the knee and around the bound each.
const REFINEMENTS: usize = 3;

/// Number of visits to each point before rates are offered.
const SECOND: usize = 2;

/// Time of all offered rates with their warm-ups, in times of the longest point; a visit that has begun
/// is completed.
const RATE_VISITS: f64 = 8.0;

/// Fewest visits to offered rates, however long all else took: half load, nearly all of it, and three beside the bound,
/// since with fewer there is seldom a curve. Depths are not visited again in the time that these need.
const RATES_LEAST: usize = 5;

/// Longest time of a run, as a multiple of that of its visits.
const RUN_MOST: f64 = 90.0 / 75.0;

/// Usual number of offered rates tried under the bound while there is no curve.
const RATES: usize = 5;

/// Number of offered rates tried where even single I/Os certainly break the bound.
const RATES_OF_A_SLOW_DEVICE: usize = 2;

/// The search ends when the highest kept rate and the lowest missed one differ by less than this
/// fraction.
const SEARCH_GAP: f64 = 0.01;

/// A rate that is certainly kept, or certainly not, is offered this fraction beside one that may be either.
const RATE_GAP: f64 = 0.05;

/// Minimum measured time of a point of some of the ranks, and of half load.
const PIECE_LEAST: Nanos = Nanos::from_secs(2);

/// Maximum depth of writes.
const WRITES_MAX: u32 = 64;

/// Maximum depth of large reads, and the ratio of one to the one before: they are searched for in few steps, and
/// measured at length in one piece at the end.
const LARGE_MAX: u32 = 256;
const LARGE_STEP: u32 = 4;

/// Time of large writes in times of the longest point: a minute, in which a cache may take what is written, and half
/// a minute after it.
const LARGE_WRITES: [u64; 2] = [12, 6];

/// Sizes of log writes: from a single commit to a group of many.
const LOG_SIZES: [u64; 4] = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB];

/// Writers of a log that is reused, which commit together. Other logs have one writer.
const WRITERS: [u32; 3] = [4, 16, 64];

/// The completed points, from which the next one is derived.
struct DonePoints<'a> {
    request: &'a CalibrateRequest,
    points: &'a [PointSummary],
    seed: u64,
}

impl Plan for CalibrateRequest {
    fn name(&self) -> &'static str {
        "calibrate"
    }

    fn bound(&self) -> Option<Bound> {
        Some(self.bound)
    }

    fn precision(&self) -> Ratio {
        self.precision
    }

    fn sizes(&self) -> Vec<u32> {
        vec![self.block, self.large]
    }

    fn writes(&self) -> bool {
        self.writes
    }

    /// The next point on a volume of `usable` bytes after those in `done`; `None` if the search is
    /// complete.
    fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        let mut points = done.to_vec();
        widen(&mut points);
        let done = DonePoints {
            request: self,
            points: &points,
            seed,
        };
        let least = self.visits().map_or(1, |visits| visits.least);
        let coordinates = done
            .next_pass(self.pass(usable))
            .or_else(|| done.next_depth())
            .or_else(|| done.next_working_set(self.pass(usable), usable))
            .or_else(|| done.next_between())
            .or_else(|| done.next_large())
            .or_else(|| done.unless_done(Coordinates::Stream))
            .or_else(|| done.next_visit_in_time(least.min(SECOND), self.least_of_rates()))
            .or_else(|| done.next_rate())
            .or_else(|| done.next_visit_in_time(least, 0.0))
            .or_else(|| done.next_extra_visit(false))
            .or_else(|| done.next_closing())
            .or_else(|| ranks::next(self.ranks, done.host_load(), done.points))
            .or_else(|| {
                let fullest = ranks::fullest(self.ranks, done.points);
                ranks::next_of_ladder(self.ranks, fullest, done.points)
            })
            .or_else(|| reread::next(self, done.points, usable))
            .or_else(|| bucket::next(self, done.points))
            .or_else(|| done.next_write())?;
        if let Coordinates::Refill {
            depth, of_large, ..
        } = coordinates
        {
            // It is measured once, and from its first operation.
            let stream = self.random_reads(Load::Closed { depth }, of_large);
            return Some(bucket::point(self, coordinates, stream, seed, done.points));
        }
        let mut point = self.point(coordinates, usable, seed);
        if coordinates.step() == Step::Rate && done.of(Step::Rate).next().is_none() {
            // Half load needs no queue to settle.
            point.until = Until::Elapsed(self.point_least.max(PIECE_LEAST).min(self.point_most));
        }
        Some(Visits::again(point, usable, done.points, seed))
    }

    /// The unrecorded load before a point: a working set is read once, so that a cache can hold it.
    fn warming(&self, coordinates: Coordinates, usable: u64, seed: u64) -> Option<Point> {
        if let Coordinates::Refill {
            depth, of_large, ..
        } = coordinates
        {
            let stream = self.random_reads(Load::Closed { depth }, of_large);
            return bucket::warming(bucket::point(self, coordinates, stream, seed, &[]));
        }
        let Coordinates::Within { bytes } = coordinates else {
            return reread::warming(self, coordinates, usable, seed);
        };
        // The smallest set was read in the passes.
        (bytes > self.pass(usable))
            .then(|| self.sequential(coordinates, Until::Ops(bytes / u64::from(self.large)), seed))
    }

    /// One point of each kind with its maximum number of outstanding I/Os, which must be available
    /// before anything begins.
    fn extremes(&self, usable: u64, seed: u64) -> Vec<Point> {
        let deepest = [
            Coordinates::at_depth(self.depth_max),
            Coordinates::Large { depth: LARGE_MAX },
            Coordinates::Rate {
                rate_per_s: 1,
                in_flight_max: IN_FLIGHT_MAX,
                large_beside: 0,
            },
        ];
        let large = std::iter::once(Coordinates::LargeWrite { sustained: false });
        let written = large.chain(LOG_SIZES.map(log)).filter(|_| self.writes);
        let log_files = self.log_files();
        let before = PRECONDITIONING.map(|pass| Coordinates::Precondition { pass });
        let before = if self.precondition { &before[..] } else { &[] };
        deepest
            .iter()
            .copied()
            .chain(written)
            .chain(log_files)
            .chain(before.iter().copied())
            .map(|coordinates| self.point(coordinates, usable, seed))
            .collect()
    }

    /// The approximate number of visits of a run when `done` are complete; used for the remaining
    /// time.
    fn points_expected(&self) -> usize {
        const USUAL: usize = 17;
        const RATES_AND_CLOSING: usize = 10;
        let visits = self.visits().map_or(1, |visits| visits.least);
        let writes = if self.writes { 8 + LOG_SIZES.len() } else { 0 };
        let log_files = self.log_files().count();
        let large = if self.writes { LARGE_WRITES.len() } else { 0 };
        let once = large
            + RATES_AND_CLOSING
            + reread::points_expected(self)
            + ranks::points_expected(self.ranks);
        (USUAL + writes + log_files) * visits + once
    }

    /// Usual time of a visit in seconds, warm-up included.
    fn point_seconds(&self) -> f64 {
        let measured = self
            .visits()
            .map_or(self.point_most, |visits| visits.length);
        measured.plus(WARM_UP.least).as_secs_f64()
    }

    /// Bytes of the largest I/O.
    fn largest(&self) -> u64 {
        let log = if self.writes {
            LOG_SIZES[LOG_SIZES.len() - 1]
        } else {
            0
        };
        u64::from(self.block.max(self.large)).max(log)
    }

    /// The unit in which members of a volume are cut, so that no I/O spans two of them.
    fn grain(&self) -> u64 {
        let sizes = [u64::from(self.block), u64::from(self.large)];
        let log = if self.writes { &LOG_SIZES[..] } else { &[] };
        sizes
            .into_iter()
            .chain(log.iter().copied())
            .fold(1, least_common_multiple)
    }
}

impl CalibrateRequest {
    /// The request with all defaults.
    pub const DEFAULT: CalibrateRequest = CalibrateRequest {
        block: 8192,
        large: 1 << 20,
        bound: Bound::CALIBRATE_IO,
        precision: Ratio::from_parts_per_million(20_000),
        point_least: Nanos::from_secs(2),
        point_most: Nanos::from_secs(5),
        visits_until: Some(Nanos::from_secs(75)),
        closing: Nanos::from_secs(10),
        num_disks: 1,
        depth_max: 256,
        writes: false,
        own_logs: OwnLogs::None,
        log_methods: Vec::new(),
        precondition: false,
        suspect_below: None,
        provisioned: None,
        bound_given: false,
        ranks: 0,
    };

    /// Log writes to files of their own: each state by one writer, several writers that commit together, and
    /// each method.
    fn log_files(&self) -> impl Iterator<Item = Coordinates> {
        let states = LogKind::STATES.map(|state| (state, 1));
        let together = WRITERS.map(|writers| (LogKind::REUSED, writers));
        let methods = self.log_methods.iter().copied();
        let methods = methods.map(|method| (LogKind::REUSED.by(method), 1));
        let all = states.into_iter().chain(together).chain(methods);
        let asked = all.filter(|_| !self.own_logs.is_none());
        asked.map(|(log, writers)| Coordinates::Log {
            bytes: ExpectedLoad::LOG_BYTES,
            log: Some(log),
            writers,
        })
    }

    /// The shortest closing measurement that shows more than the search.
    pub const CLOSING_LEAST: Nanos = Nanos::from_secs(3);

    /// The request whose run takes about this long; that with all defaults takes `USUAL`.
    pub fn lasting(time: Nanos) -> Self {
        const USUAL: Nanos = Nanos::from_secs(90);
        let scaled = |part: Nanos| {
            Nanos::from_secs_f64(part.as_secs_f64() * time.as_secs_f64() / USUAL.as_secs_f64())
        };
        let usual = Self::DEFAULT;
        Self {
            point_least: scaled(usual.point_least),
            point_most: scaled(usual.point_most),
            visits_until: usual.visits_until.map(scaled),
            closing: scaled(usual.closing).max(Self::CLOSING_LEAST),
            ..usual
        }
    }

    /// How points are divided into visits; `None` in runs of versions that measured each point in
    /// one piece.
    fn visits(&self) -> Option<Visits> {
        (self.point_least > Nanos(0)).then(|| Visits::of(self.point_least, self.point_most))
    }

    /// The usual time of the fewest visits to offered rates, in seconds.
    fn least_of_rates(&self) -> f64 {
        let visit = self.point_most.plus(Nanos(WARM_UP.most.0 / 2));
        RATES_LEAST as f64 * visit.as_secs_f64()
    }

    /// The depth that the search tries after `depth`. Whatever the number of disks, the second
    /// depth is low enough to find a knee at low depths.
    fn deeper(&self, depth: u32) -> u32 {
        const FIRST_MAX: u32 = 16;
        let next = if depth == 1 {
            self.num_disks.clamp(2, FIRST_MAX)
        } else {
            depth.saturating_mul(2)
        };
        next.min(self.depth_max)
    }

    /// Bytes of the part that is read twice: whole large I/Os, fewer in a shorter run; 0 if the volume is too
    /// small to show anything.
    fn pass(&self, usable: u64) -> u64 {
        let large = u64::from(self.large);
        let seconds = self.visits_until.map(|until| until.0 / 1_000_000_000);
        let most = seconds.map_or(PASS_MAX, |seconds| PASS_PER_SECOND.saturating_mul(seconds));
        let bytes = most.min(PASS_MAX).min(usable / 8) / large * large;
        if bytes < 8 * large { 0 } else { bytes }
    }

    /// How long small reads of a working set are measured: a cache answers far faster than storage.
    fn within_lasts(&self) -> Nanos {
        const MOST: Nanos = Nanos::from_secs(1);
        const LEAST: Nanos = Nanos::from_millis(300);
        Visits::whole_windows(Nanos(self.point_least.0 / 2)).clamp(LEAST, MOST)
    }

    /// The point with these coordinates.
    pub fn point(&self, coordinates: Coordinates, usable: u64, seed: u64) -> Point {
        let random = |load, pattern| self.stream(load, Mix::READS, pattern, self.block);
        let stream = match coordinates {
            Coordinates::Pass { .. } => {
                let ops = self.pass(usable) / u64::from(self.large);
                let most = PASS_TIME_MAX;
                return self.sequential(coordinates, Until::Work { ops, most }, seed);
            }
            Coordinates::Within { bytes } => {
                let space = Ratio::of(bytes, usable);
                return Point {
                    until: Until::Elapsed(self.within_lasts()),
                    ..self.measured(
                        coordinates,
                        random(
                            Load::Closed { depth: 1 },
                            Pattern::Hotspot {
                                space,
                                share: Ratio::ONE,
                            },
                        ),
                        seed,
                    )
                };
            }
            Coordinates::Rate {
                rate_per_s,
                in_flight_max,
                ..
            } => {
                let stream = random(offered(rate_per_s, in_flight_max), Pattern::Uniform);
                return Point {
                    until: Until::Elapsed(self.point_most.max(self.point_least)),
                    ..self.measured(coordinates, stream, seed)
                };
            }
            Coordinates::Hosts { .. } => return self.of_hosts(coordinates, seed),
            Coordinates::Large { depth } => self.stream(
                Load::Closed { depth },
                Mix::READS,
                Pattern::Uniform,
                self.large,
            ),
            Coordinates::Stream => return self.sequential(coordinates, self.until(), seed),
            Coordinates::Reread { .. } => return reread::point(self, coordinates, usable, seed),
            Coordinates::Precondition { pass } => {
                let sizes = [self.block, self.large];
                return precondition::point(pass, sizes, usable, seed);
            }
            Coordinates::Write { depth } | Coordinates::ClosingWrite { depth } => {
                let mix = Mix {
                    writes: Ratio::ONE,
                    durable: false,
                };
                self.stream(Load::Closed { depth }, mix, Pattern::Uniform, self.block)
            }
            Coordinates::LargeWrite { sustained } => return self.large_writes(sustained, seed),
            Coordinates::Log {
                bytes,
                log,
                writers,
            } => Stream {
                objective: None,
                sql: None,
                name: SMALL.into(),
                load: Load::Closed { depth: writers },
                mix: Mix::LOG,
                pattern: Pattern::Sequential { start: 0 },
                length: bytes,
                rank: None,
                log,
            },
            other => random(
                Load::Closed {
                    depth: other.outstanding(),
                },
                Pattern::Uniform,
            ),
        };
        self.measured(coordinates, stream, seed)
    }

    /// Large sequential writes from the beginning of the volume, for a time that does not depend on what they show.
    fn large_writes(&self, sustained: bool, seed: u64) -> Point {
        let coordinates = Coordinates::LargeWrite { sustained };
        let mix = Mix {
            writes: Ratio::ONE,
            durable: false,
        };
        let load = Load::Closed {
            depth: coordinates.outstanding(),
        };
        let pattern = Pattern::Sequential { start: 0 };
        let times = LARGE_WRITES[usize::from(sustained)];
        Point {
            warm_up: WarmUp::NONE,
            until: Until::Elapsed(Nanos(times * self.point_most.0)),
            ..self.measured(
                coordinates,
                self.stream(load, mix, pattern, self.large),
                seed,
            )
        }
    }

    /// Random reads by some of the ranks, in an open loop if a rate is given.
    fn of_hosts(&self, coordinates: Coordinates, seed: u64) -> Point {
        let depth = coordinates.outstanding();
        let load = match coordinates.rate_of_each() {
            None => Load::Closed { depth },
            Some(rate) => offered(rate, depth),
        };
        let stream = self.stream(load, Mix::READS, Pattern::Uniform, self.block);
        Point {
            until: Until::Elapsed(self.point_least.max(PIECE_LEAST)),
            ..self.measured(coordinates, stream, seed)
        }
    }

    /// Random reads of blocks of the small size.
    fn random_reads(&self, load: Load, large: bool) -> Stream {
        let length = if large { self.large } else { self.block };
        self.stream(load, Mix::READS, Pattern::Uniform, length)
    }

    fn stream(&self, load: Load, mix: Mix, pattern: Pattern, length: u32) -> Stream {
        let name = if length == self.large && length != self.block {
            LARGE
        } else {
            SMALL
        };
        Stream {
            objective: None,
            sql: None,
            name: name.into(),
            load,
            mix,
            pattern,
            length,
            rank: None,
            log: None,
        }
    }

    /// When a closed loop's visit ends.
    fn until(&self) -> Until {
        if let Some(visits) = self.visits() {
            return visits.until();
        }
        let least = Nanos(WINDOW.0 * WINDOWS_MIN).min(self.point_most);
        Until::Precise {
            precision: self.precision,
            least,
            most: self.point_most,
        }
    }

    fn measured(&self, coordinates: Coordinates, stream: Stream, seed: u64) -> Point {
        // The seed differs from all other points', because a cache would know the blocks of a
        // repeated sequence.
        let seed = seed_of(seed, coordinates);
        let until = if coordinates.step() == Step::Closing {
            Until::Elapsed(self.closing)
        } else {
            self.until()
        };
        let window = until.window(WINDOW);
        Point {
            coordinates,
            streams: vec![stream],
            warm_up: WARM_UP,
            until,
            seed,
            window,
        }
    }

    /// One sequential stream of large reads at depth 1, from the beginning of the volume.
    fn sequential(&self, coordinates: Coordinates, until: Until, seed: u64) -> Point {
        let pattern = Pattern::Sequential { start: 0 };
        let stream = self.stream(Load::Closed { depth: 1 }, Mix::READS, pattern, self.large);
        let warm_up = if until.is_work() {
            WarmUp::NONE
        } else {
            WARM_UP
        };
        Point {
            warm_up,
            until,
            ..self.measured(coordinates, stream, seed)
        }
    }
}

/// Maximum number of operations in flight in an open loop.
const IN_FLIGHT_MAX: u32 = 512;

fn offered(rate_per_s: u64, in_flight_max: u32) -> Load {
    Load::Open {
        rate: rate_per_s as f64,
        arrivals: Arrivals::Poisson,
        in_flight_max,
    }
}

fn log(bytes: u64) -> Coordinates {
    Coordinates::Log {
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        log: None,
        writers: 1,
    }
}

impl<'a> DonePoints<'a> {
    fn of(&self, step: Step) -> impl Iterator<Item = (&'a PointSummary, &'a ClassSummary)> {
        let points = self.points.iter().filter(move |point| point.step() == step);
        points.filter_map(|point| Some((point, point.classes.first()?)))
    }

    fn at(&self, coordinates: Coordinates) -> Option<&'a ClassSummary> {
        self.points
            .iter()
            .find(|point| point.coordinates == coordinates)?
            .classes
            .first()
    }

    fn at_depth(&self, depth: u32) -> Option<&'a ClassSummary> {
        self.at(Coordinates::at_depth(depth))
    }

    fn unless_done(&self, coordinates: Coordinates) -> Option<Coordinates> {
        self.points
            .iter()
            .all(|point| point.coordinates != coordinates)
            .then_some(coordinates)
    }

    fn next_pass(&self, bytes: u64) -> Option<Coordinates> {
        if bytes == 0 {
            return None;
        }
        let pass = |pass| self.unless_done(Coordinates::Pass { pass });
        let within = || self.unless_done(Coordinates::Within { bytes });
        pass(1).or_else(|| pass(2)).or_else(within)
    }

    /// A larger working set, if the last one was served from a cache.
    fn next_working_set(&self, first: u64, usable: u64) -> Option<Coordinates> {
        let whole = self.at_depth(1)?;
        let sets = self
            .points
            .iter()
            .filter_map(|point| match point.coordinates {
                Coordinates::Within { bytes } => Some((bytes, point.classes.first()?)),
                _ => None,
            });
        let (bytes, class) = sets.max_by_key(|(bytes, _)| *bytes)?;
        let next = bytes.max(first) * GROWTH;
        (rigel_analyse::answers_from_cache(class, whole)
            && next <= (usable / 2).min(WORKING_SET_MAX))
        .then_some(Coordinates::Within { bytes: next })
    }

    /// Depth 1, then doubling from the second depth, until two consecutive doublings gained
    /// nothing.
    fn climb_depths(&self) -> Climb {
        let request = self.request;
        let iops = |depth| self.at_depth(depth).map(|class| class.iops);
        climb(
            request.precision,
            2,
            request.depth_max,
            |depth| request.deeper(depth),
            iops,
        )
    }

    fn next_depth(&self) -> Option<Coordinates> {
        let climbed = self.climb_depths().wanted.map(Coordinates::at_depth);
        climbed.or_else(|| self.unless_done(Coordinates::at_depth(self.depth_beyond())))
    }

    /// Large reads: deeper until one step gained nothing.
    fn next_large(&self) -> Option<Coordinates> {
        let at = |depth| Coordinates::Large { depth };
        self.next_step(at, LARGE_MAX, |depth| depth * LARGE_STEP)
    }

    /// Deeper until one step gained nothing.
    fn next_step(
        &self,
        coordinates: impl Fn(u32) -> Coordinates,
        most: u32,
        deeper: impl Fn(u32) -> u32,
    ) -> Option<Coordinates> {
        let rate_at = |depth| self.at(coordinates(depth)).map(|class| class.iops);
        let climbed = climb(self.request.precision, 1, most, deeper, rate_at);
        climbed.wanted.map(coordinates)
    }

    /// The depth far beyond the last of the search: a maximum may creep up by less than each doubling shows.
    fn depth_beyond(&self) -> u32 {
        const FAR: u32 = 8;
        let tried = self.climb_depths().tried;
        let last = (1..tried).fold(1, |depth, _| self.request.deeper(depth));
        last.saturating_mul(FAR).min(self.request.depth_max)
    }

    /// Depths between the measured ones: around the knee, then around the depth at which the bound
    /// is broken.
    fn next_between(&self) -> Option<Coordinates> {
        // One of them is far beyond the search.
        let searched = self.climb_depths().tried + 1;
        let refined = self.of(Step::Depth).count().saturating_sub(searched);
        if refined >= 2 * REFINEMENTS {
            return None;
        }
        let mut depths: Vec<u32> = self
            .of(Step::Depth)
            .filter_map(|(point, _)| point.coordinates.depth())
            .collect();
        depths.sort_unstable();
        let between = |low: u32, high: u32| {
            let gap = high - low;
            (gap > (high / 8).max(1)).then_some(Coordinates::at_depth(low + gap / 2))
        };
        let knee = self.knee_depth()?;
        let below = depths.iter().rev().find(|depth| **depth < knee);
        if let Some(wanted) = below.and_then(|below| between(*below, knee)) {
            return Some(wanted);
        }
        let is_within = |class: &ClassSummary| class.within.is_some_and(|within| within.kept);
        let depths_kept = self.of(Step::Depth).filter(|(_, class)| is_within(class));
        let last_kept = depths_kept
            .filter_map(|(point, _)| point.coordinates.depth())
            .max()?;
        let broken = depths.iter().find(|depth| **depth > last_kept)?;
        if last_kept >= knee {
            return None;
        }
        between(last_kept, *broken)
    }

    fn knee(&self) -> Option<Knee> {
        curve_shape(self.of(Step::Depth), self.request.precision.get()).knee
    }

    fn knee_depth(&self) -> Option<u32> {
        self.knee().map(|found| whole_depth(found.load))
    }

    /// The load at which ranks are compared: the knee, or the depth with the most throughput.
    fn host_load(&self) -> Option<LoadOfEach> {
        let knee = self.knee_depth().map(|depth| LoadOfEach {
            depth,
            rate_per_s: 0,
        });
        knee.or_else(|| ranks::fullest(self.request.ranks, self.points))
    }

    /// True if the point is measured in visits: a closed loop of reads, or one that writes.
    fn is_visited(point: &PointSummary, writes: bool) -> bool {
        match point.step() {
            Step::Depth | Step::Stream => !writes,
            Step::Write | Step::Log => writes,
            _ => false,
        }
    }

    /// The next of the visits that bring every point to `count`.
    fn next_visit(&self, count: usize, writes: bool) -> Option<Coordinates> {
        Visits::next(self.points, count, self.seed, |point| {
            Self::is_visited(point, writes)
        })
    }

    /// The next of the visits that bring every read to `count`, while more than `reserved` seconds are left
    /// for what follows.
    fn next_visit_in_time(&self, count: usize, reserved: f64) -> Option<Coordinates> {
        let is_time = self.time_left(self.request.point_seconds()) > reserved;
        is_time.then(|| self.next_visit(count, false)).flatten()
    }

    /// Time of all points so far, in seconds.
    fn spent(&self) -> f64 {
        let counts = |point: &&PointSummary| point.step() != Step::Precondition;
        let spent = self.points.iter().filter(counts);
        spent.map(|point| point.warm_up_s + point.measured_s).sum()
    }

    /// Seconds until the run has taken as long as it may, without the closing measurements, and without half
    /// of a visit of `visit_s`: one that has begun is completed. Infinite if it may take any time.
    fn time_left(&self, visit_s: f64) -> f64 {
        let Some(until) = self.request.visits_until else {
            return f64::INFINITY;
        };
        let closing = self.request.closing.plus(WARM_UP.least);
        let closing = closing.plus(bucket::least_time(self.request)).as_secs_f64();
        RUN_MOST * until.as_secs_f64() - closing - visit_s / 2.0 - self.spent()
    }

    /// A further visit to a point that is known less well than requested.
    fn next_extra_visit(&self, writes: bool) -> Option<Coordinates> {
        let request = self.request;
        if self.time_left(request.point_seconds()) <= 0.0 {
            return None;
        }
        request
            .visits()?
            .next_extra(self.points, request.precision, self.seed, |point| {
                Self::is_visited(point, writes)
            })
    }

    /// The closing measurement, at the knee, or at the lowest measured load that is twice as high if it is not
    /// certain that the knee has the full throughput of the plateau.
    fn next_closing(&self) -> Option<Coordinates> {
        let is_of_knee =
            |point: &PointSummary| matches!(point.coordinates, Coordinates::ClosingDepth { .. });
        if self.request.closing == Nanos(0) || self.points.iter().any(is_of_knee) {
            return None;
        }
        let knee = self.knee()?;
        // The knee itself may give slightly less than more.
        let least = knee.plateau.from.max(2.0 * knee.load);
        let depths = self.of(Step::Depth);
        let depths = depths.map(|(point, _)| f64::from(point.coordinates.outstanding()));
        let depth = depths
            .filter(|depth| *depth >= least)
            .min_by(f64::total_cmp);
        Some(Coordinates::ClosingDepth {
            depth: whole_depth(depth.unwrap_or(knee.plateau.to)),
        })
    }

    /// The next offered rate: one of the search for where the bound is met, then on both sides of that
    /// rate in turn.
    fn next_rate(&self) -> Option<Coordinates> {
        let rates = || self.of(Step::Rate);
        if rates().any(|(_, class)| !class.failed.is_empty()) {
            // If I/Os fail, no rate is fully served.
            return None;
        }
        let spent: f64 = rates()
            .map(|(point, _)| point.warm_up_s + point.measured_s)
            .sum();
        let left = RATE_VISITS * self.request.point_most.as_secs_f64() - spent;
        let visits: usize = rates().map(|(point, _)| point.visits_made()).sum();
        let a_visit = self.request.point_most.plus(WARM_UP.most).as_secs_f64();
        let left = if visits >= RATES_LEAST {
            left.min(self.time_left(a_visit))
        } else {
            left
        };
        if left <= 0.0 {
            return None;
        }
        let sustained = sustained(self.points);
        let half = sustained.rate.and_then(Estimate::precision);
        let is_precise = half.is_some_and(|half| half <= self.request.precision.get());
        // Few blocks of time look alike by chance.
        if is_precise && visits >= RATES_LEAST && sustained.kept_rate.is_some() {
            return None;
        }
        let is_last = is_precise || left <= a_visit;
        let beside = || {
            // A curve of one load has the slope of theory alone.
            let has_two = rates().nth(1).is_some();
            self.next_rate_beside(&sustained, is_last)
                .filter(|_| has_two)
        };
        let rate_per_s = beside()
            .or_else(|| self.next_rate_of_search())
            .or_else(|| self.rate_to_decide(&sustained))
            .filter(|rate| *rate > 0)?;
        Some(Coordinates::Rate {
            rate_per_s,
            in_flight_max: self.in_flight(),
            large_beside: 0,
        })
    }

    /// A rate near the one at which the bound is met; `None` if that is not known. The last one is low
    /// enough to be kept for certain, if none was so far.
    fn next_rate_beside(&self, known: &Sustained, is_last: bool) -> Option<u64> {
        let certain = known.rate.filter(|_| is_last && known.kept_rate.is_none());
        if let Some(rate) = certain {
            return Some(rounded((1.0 - RATE_GAP) * rate.least()));
        }
        let visits = self.of(Step::Rate).map(|(point, _)| point.visits_made());
        let rate = rate_beside(self.points, visits.sum())?;
        // What cannot be served tells nothing more about the curve.
        let broken = known.broken_rate.map(|broken| broken as f64);
        let capacity = self.knee().map(|knee| knee.plateau.throughput);
        let most = broken
            .into_iter()
            .chain(capacity)
            .fold(f64::INFINITY, f64::min);
        if rate <= (1.0 - SEARCH_GAP) * most {
            return Some(rounded(rate));
        }
        let kept = self.of(Step::Rate).filter(|(_, class)| class.kept());
        let kept = kept.filter_map(|(point, _)| Some(point.coordinates.rate()? as f64));
        let highest = kept.filter(|rate| *rate < most).fold(0.0, f64::max);
        let least = (1.0 - RATE_GAP) * most;
        Some(rounded(f64::midpoint(highest.max(least), most)))
    }

    /// The highest rate that was kept, but not for long enough to be certain of it: measured on, it is,
    /// or some of its operations are late, and there is a curve. After a second visit without either, a
    /// lower one, unless a rate was kept for certain.
    fn rate_to_decide(&self, known: &Sustained) -> Option<u64> {
        const VISITS: usize = 2;
        const LOWER: f64 = 0.9;
        let met = || {
            let rates = self.of(Step::Rate).filter(|(_, class)| class.kept());
            rates.filter_map(|(point, class)| Some((point.coordinates.rate()?, point, class)))
        };
        let is_open = |class: &ClassSummary| class.sustained() == BoundVerdict::Undecided;
        let open = met().filter(|(.., class)| is_open(class));
        let (highest, point, _) = open.max_by_key(|(rate, ..)| *rate)?;
        if point.visits_made() < VISITS || known.kept_rate.is_some() {
            return Some(highest);
        }
        let lowest = met().map(|(rate, ..)| rate).min()?;
        Some(rounded(LOWER * lowest as f64))
    }

    /// The next rate of the search: between the highest that kept the bound and the lowest that did
    /// not, by what was measured, whether certain or not.
    fn next_rate_of_search(&self) -> Option<u64> {
        let kept_depth =
            |(_, class): &(_, &ClassSummary)| class.within.is_some_and(|within| within.kept);
        let rate = |(_, class): (_, &ClassSummary)| class.iops;
        let best = self
            .of(Step::Depth)
            .filter(kept_depth)
            .map(rate)
            .fold(0.0, f64::max);
        // If not even depth 1 keeps the bound, a mostly idle load may.
        let lowest = self.of(Step::Depth).map(rate).fold(f64::INFINITY, f64::min);
        let limit = if best > 0.0 { best } else { lowest };
        let measured: Vec<(f64, &ClassSummary)> = self
            .of(Step::Rate)
            .filter_map(|(point, class)| Some((point.coordinates.rate()? as f64, class)))
            .collect();
        let rates_kept = |kept: bool| {
            let of_kind = measured
                .iter()
                .filter(move |(_, class)| class.kept() == kept);
            of_kind.map(|(rate, _)| *rate)
        };
        let high = rates_kept(false).fold(limit, f64::min);
        let low = rates_kept(true)
            .filter(|rate| *rate < high)
            .fold(0.0, f64::max);
        let is_broken =
            |(_, class): &(f64, &ClassSummary)| class.sustained() == BoundVerdict::Broken;
        let expected = rate_expected(self.points, self.request.bound).filter(|_| best > 0.0);
        let tried = measured.len();
        // Half load, which many ask for; then nearly all of it, unless theory expects that it is not kept.
        let nearly_all = 0.9 * limit;
        let first = expected.map_or(nearly_all, |rate| rate.min(nearly_all));
        let last = expected.map_or(nearly_all, |rate| rate.min(0.97 * high));
        let ladder = [0.5 * limit, first, nearly_all, last];
        let gap = SEARCH_GAP * high;
        let is_new = |rate: &f64| {
            let is_near = |(known, _): &(f64, &ClassSummary)| (known - rate).abs() <= gap;
            *rate > low && *rate < high && !measured.iter().any(is_near)
        };
        let next = match (tried, low) {
            (1, _) if !is_broken(&measured[0]) => first,
            (1.., low) if low <= 0.0 => 0.5 * high,
            _ => {
                let mut ladder = ladder.into_iter();
                ladder.find(is_new).unwrap_or(f64::midpoint(low, high))
            }
        };
        // Down to a small part of the closed loop's rate until one is kept; then a few more.
        let certainly_broken = |class: &ClassSummary| {
            class
                .within
                .is_some_and(|within| within.verdict == BoundVerdict::Broken)
        };
        let most = if low > 0.0 {
            RATES.max(rates_kept(false).count() + RATES / 2)
        } else if self.at_depth(1).is_some_and(certainly_broken) {
            // Without a queue it is too slow already.
            RATES_OF_A_SLOW_DEVICE
        } else {
            2 * RATES
        };
        let open =
            limit.is_finite() && limit > 0.0 && tried < most && high - low > SEARCH_GAP * high;
        let wanted = open.then(|| rounded(next));
        let is_tried = |rate: u64| {
            let mut points = self.points.iter();
            points.any(|point| point.coordinates.rate() == Some(rate))
        };
        wanted.filter(|rate| !is_tried(*rate))
    }

    /// The maximum number of operations in flight at an offered rate.
    fn in_flight(&self) -> u32 {
        let rates = self
            .points
            .iter()
            .find_map(|point| match point.coordinates {
                Coordinates::Rate { in_flight_max, .. } => Some(in_flight_max),
                _ => None,
            });
        // The first rate decides for all.
        rates.unwrap_or_else(|| {
            let knee = self.knee_depth().unwrap_or(1);
            knee.saturating_mul(4).clamp(64, IN_FLIGHT_MAX)
        })
    }

    fn next_write(&self) -> Option<Coordinates> {
        if !self.request.writes {
            return None;
        }
        let log = |bytes| self.unless_done(log(bytes));
        let least = self.request.visits().map_or(1, |visits| visits.least);
        let large = |sustained| self.unless_done(Coordinates::LargeWrite { sustained });
        precondition::next(self.request.precondition, self.points)
            .or_else(|| large(false).or_else(|| large(true)))
            .or_else(|| self.next_step(|depth| Coordinates::Write { depth }, WRITES_MAX, doubled))
            .or_else(|| LOG_SIZES.into_iter().find_map(log))
            .or_else(|| self.next_log_file())
            .or_else(|| self.next_visit(least, true))
            .or_else(|| self.next_extra_visit(true))
            .or_else(|| self.next_closing_write())
    }

    fn next_log_file(&self) -> Option<Coordinates> {
        let mut all = self.request.log_files();
        all.find_map(|coordinates| self.unless_done(coordinates))
    }

    fn next_closing_write(&self) -> Option<Coordinates> {
        if self.request.closing == Nanos(0) {
            return None;
        }
        let is_done =
            |point: &PointSummary| matches!(point.coordinates, Coordinates::ClosingWrite { .. });
        if self.points.iter().any(is_done) {
            return None;
        }
        let (best, _) = self
            .of(Step::Write)
            .max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))?;
        Some(Coordinates::ClosingWrite {
            depth: best.coordinates.outstanding(),
        })
    }
}

/// A load of a closed loop as a depth, as it went in.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a depth, as it went in"
)]
fn whole_depth(load: f64) -> u32 {
    load as u32
}

/// Rounds to three significant digits, so that rates are easy to read.
fn rounded(rate: f64) -> u64 {
    let unit = 10f64.powf((rate.max(1.0).log10().floor() - 2.0).max(0.0));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float casts saturate"
    )]
    let whole = ((rate / unit).round() * unit) as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::{BoundCheck, summarise_within};
    use rigel_model::record::{
        Coverage, End, KindRecord, OperationTimes, PointRecord, Recorder, SharedWindows,
        StreamRecord,
    };
    use rigel_model::{Kind, Outcome};
    use std::sync::Arc;

    /// A point of 3 s at `depth` with `iops` evenly spaced operations per second; `kept` says
    /// whether it keeps the bound.
    fn point(depth: u32, iops: u64, kept: bool) -> PointSummary {
        let seconds = Arc::new(SharedWindows::new(WINDOW));
        let mut recorder = Recorder::new(false, &[Kind::Read], seconds);
        recorder.measure_from(Nanos(0));
        let response = Nanos(u64::from(depth) * 1_000_000_000 / iops);
        for number in 0..3 * iops {
            let due = Nanos(number * 1_000_000_000 / iops);
            recorder.record(
                Kind::Read,
                OperationTimes {
                    due,
                    start: due,
                    done: due.plus(response),
                },
                Outcome::Done,
            );
        }
        let load = Load::Closed { depth };
        let mut stream = StreamRecord {
            sql: None,
            name: SMALL.into(),
            length: 8192,
            loads: vec![load],
            patterns: vec![Pattern::Uniform],
            kinds: vec![KindRecord {
                kind: Kind::Read,
                windows: Vec::new(),
            }],
            unserved: Vec::new(),
            drained: 0,
            censored: None,
            delay: None,
            warm_up_done: 0,
            coverage: Coverage::default(),
        };
        recorder.merge_into(&mut stream);
        let record = PointRecord {
            coordinates: Coordinates::at_depth(depth),
            started: String::new(),
            began: Nanos(0),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(3),
            end: End::Complete,
            cpu: Nanos(0),
            cpus: 1,
            window: WINDOW,
            asked: None,
            streams: vec![stream],
            samples: Vec::new(),
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: Vec::new(),
            left_out: Nanos(0),
        };
        let mut summary = summarise_within(&record, None);
        summary.classes[0].within = Some(BoundCheck {
            share: f64::from(u8::from(kept)),
            kept,
            share_interval: None,
            independent: None,
            verdict: if kept {
                BoundVerdict::Kept
            } else {
                BoundVerdict::Broken
            },
        });
        summary
    }

    /// The depths requested on a device with this throughput, until the first point that is not a
    /// depth.
    fn depths(iops: impl Fn(u32) -> u64, kept: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut done = Vec::new();
        // The volume is too small for passes, so depths come first.
        while let Some(next) = CalibrateRequest::DEFAULT
            .next(1 << 20, 1, &done)
            .map(|point| point.coordinates)
            && next.step() == Step::Depth
        {
            let depth = next.outstanding();
            done.push(point(depth, iops(depth), kept(depth)));
        }
        done.iter()
            .filter_map(|point| point.coordinates.depth())
            .collect()
    }

    #[test]
    fn depth_doubles_until_two_doublings_gain_nothing_and_is_refined_round_the_knee() {
        assert_eq!(
            depths(|depth| 1000 * u64::from(depth.min(4)), |_| true),
            [1, 2, 4, 8, 16, 128, 3]
        );
        assert_eq!(
            depths(|depth| 1000 * u64::from(depth.min(11)), |_| true),
            [1, 2, 4, 8, 16, 32, 64, 256, 12, 10, 11]
        );
        assert_eq!(depths(|_| 1000, |_| true), [1, 2, 4, 32]);
    }

    #[test]
    fn where_a_bound_is_broken_before_the_knee_depths_close_in_on_it() {
        // Throughput rises up to depth 32, and 21 is the last depth that keeps the bound.
        let tried = depths(|depth| 200 * u64::from(depth.min(32)), |depth| depth <= 21);
        assert_eq!(tried, [1, 2, 4, 8, 16, 32, 64, 128, 256, 24, 28, 20, 22]);
    }

    #[test]
    fn rates_read_well() {
        assert_eq!(
            [7.2, 123.4, 45_678.0, 1_234_567.0].map(rounded),
            [7, 123, 45_700, 1_230_000]
        );
    }
}
