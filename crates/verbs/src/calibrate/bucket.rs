//! Burst credit: what lasts without it, and pauses of known length, after each of which the storage is read
//! until what came back is used up again.
//!
//! First it is read without a pause, until it is no slower than before: small reads where their search was
//! slower at some time, large ones always, for a visit of the search is short beside the credit of a bucket of
//! bytes. Each pause is twice as long as the one before, until twice the time brings back no more, or the time
//! is over. [`rigel_analyse::search::bucket`] says what follows.

use super::request::CalibrateRequest;
use rigel_analyse::PointSummary;
use rigel_analyse::plan::search::{WINDOW, seed_of};
use rigel_analyse::plan::visits::Visits;
use rigel_analyse::search::bucket::{LARGE_VARIES, Pace, Regained, is_same_rate};
use rigel_model::{Arrivals, Coordinates, Load, Nanos, Point, Step, Stream, Until, WarmUp};

/// The first pause.
const PAUSE_FIRST_MS: u32 = 500;

/// How long the storage is read without a pause before it, once in this many parts of the closing measurement,
/// and at least.
const DRAIN_PARTS: u64 = 4;
const DRAIN_LEAST: Nanos = Nanos::from_secs(1);

/// How often at most, and how often large reads are at least: 15 seconds in one piece show a credit of bytes that
/// lasts as long.
const DRAINS_MOST: u32 = 10;
const DRAINS_LEAST: u64 = 6;

/// What lasts differs by less than this share from what is known to.
const LASTS_WITHIN: f64 = 0.1;

/// How long the storage is read after a pause at least.
const READ_LEAST_S: f64 = 1.0;

/// How many times as long as the credit lasts it is read after a pause.
const READ_TIMES: f64 = 2.0;

/// The same at most, as times of the pause: credit that lasts longer was hardly faster.
const READ_MOST: f64 = 6.0;

/// All pauses and what follows them take this long where a run takes as long as usual.
const BUDGET: Nanos = Nanos::from_secs(75);

/// What the sweep and the reads after it show.
struct CreditSeen<'a> {
    /// The depth at which reads go on: that with the highest rate; of large ones the deepest, which uses up
    /// most, unless another was faster.
    depth: u32,
    /// The highest pace: with credit, if there is any.
    fast: Pace,
    /// The lowest pace where more depth gains little: without credit, if any ran out.
    slow: Pace,
    /// Reads without a pause.
    drains: Vec<&'a PointSummary>,
    /// Reads after pauses, in order.
    pauses: Vec<&'a PointSummary>,
    /// True if these are large reads.
    large: bool,
}

fn pace(point: &PointSummary) -> Option<Pace> {
    point.classes.first().map(|class| Pace {
        per_s: class.iops,
        count: class.done as f64,
    })
}

impl<'a> CreditSeen<'a> {
    fn of(done: &'a [PointSummary], large: bool) -> Option<Self> {
        let is_refill = |one: &&PointSummary| {
            one.step() == Step::Refill && one.coordinates.is_refill_of_large() == large
        };
        let refills = done.iter().filter(is_refill);
        let (drains, pauses): (Vec<_>, Vec<_>) =
            refills.partition(|one| one.coordinates.is_without_pause(large));
        let is_own = |at: &&PointSummary| match at.step() {
            Step::Large => large,
            Step::Depth => !large,
            _ => !large && is_closing_of_reads(at.coordinates),
        };
        let at_depth = |point: &PointSummary| Some((point.coordinates.outstanding(), pace(point)?));
        let searched: Vec<(u32, Pace)> = done.iter().filter(is_own).filter_map(at_depth).collect();
        let slower = |one: &Pace, other: &Pace| one.per_s.total_cmp(&other.per_s);
        let (fastest, fast) = *searched
            .iter()
            .max_by(|one, other| slower(&one.1, &other.1))?;
        // From where more depth gains little.
        let is_level = |pace: &Pace| fast.per_s <= (1.0 + LASTS_WITHIN) * pace.per_s;
        let level = searched.iter().filter(|(_, pace)| is_level(pace));
        let level = level.map(|(depth, _)| *depth).min()?;
        let deeper = searched.iter().filter(|(depth, _)| *depth >= level);
        let slow = deeper.map(|(_, pace)| *pace).min_by(slower)?;
        let (deepest, at_deepest) = *searched.iter().max_by_key(|(depth, _)| *depth)?;
        // The search of large reads may have begun without credit.
        let drained = drains.iter().filter(|_| large);
        let drained = drained.filter_map(|one| pace(one)).max_by(slower);
        Some(Self {
            depth: if large && is_level(&at_deepest) {
                deepest
            } else {
                fastest
            },
            fast: drained.into_iter().chain([fast]).max_by(slower)?,
            slow,
            drains,
            pauses,
            large,
        })
    }

    /// True if the reads without a pause show what lasts: the last were no slower than those before them. Small
    /// ones were searched at this depth for longer: that the first are as slow as the slowest before is enough.
    fn is_drained(&self) -> bool {
        let rates = self.drains.iter().filter_map(|one| pace(one));
        let rates: Vec<f64> = rates.map(|pace| pace.per_s).collect();
        match &rates[..] {
            [] => false,
            [..] if self.large && (rates.len() as u64) < DRAINS_LEAST => false,
            [.., before, last] if *last >= (1.0 - LASTS_WITHIN) * before => true,
            [.., last] => !self.large && *last <= (1.0 + LASTS_WITHIN) * self.slow.per_s,
        }
    }

    /// True if what lasts is more than chance below the highest pace, which pauses may bring back.
    fn is_slower(&self, lasting: Pace) -> bool {
        let varies = if self.large { LARGE_VARIES } else { 1.0 };
        let most = Pace {
            per_s: lasting.per_s * varies,
            ..lasting
        };
        most.is_worth_pausing(self.fast)
    }

    /// The pace without credit: that of the last reads without a pause, once there are some.
    fn lasting(&self) -> Pace {
        let drained = self.drains.last().and_then(|one| pace(one));
        drained.unwrap_or(self.slow)
    }

    /// What came back in each pause.
    fn regained(&self) -> Vec<Regained> {
        let of = |point: &&PointSummary| {
            let done = point.classes.first()?.done;
            let paused = point.coordinates.pause()?.as_secs_f64();
            let operations = done as f64 - self.lasting().per_s * point.measured_s;
            Some(Regained { paused, operations })
        };
        self.pauses.iter().filter_map(of).collect()
    }

    /// How long the storage is read after a pause, so that what came back is used up.
    fn read_after(&self, paused: f64) -> Nanos {
        let slow = self.lasting().per_s;
        let lasts = slow * paused / (self.fast.per_s - slow).max(f64::MIN_POSITIVE);
        let most = READ_MOST * paused + READ_LEAST_S;
        Nanos::from_secs_f64((READ_LEAST_S + READ_TIMES * lasts).min(most))
    }
}

/// How long the storage is read without a pause.
fn drain_time(request: &CalibrateRequest) -> Nanos {
    Visits::whole_windows(Nanos(request.closing.0 / DRAIN_PARTS)).max(DRAIN_LEAST)
}

/// The time that every run needs for reads without a pause.
pub(super) fn least_time(request: &CalibrateRequest) -> Nanos {
    if request.ranks > 0 || request.closing == Nanos(0) {
        return Nanos(0);
    }
    Nanos(DRAINS_LEAST * drain_time(request).0)
}

fn is_closing_of_reads(at: Coordinates) -> bool {
    matches!(at, Coordinates::ClosingDepth { .. })
}

/// The next reads that show credit: small ones, then large ones, which need no pauses if they are held by the
/// same bucket of operations. `None` if no credit ran out, or enough is known of it.
pub(super) fn next(request: &CalibrateRequest, done: &[PointSummary]) -> Option<Coordinates> {
    let is_closed = done.iter().any(|one| is_closing_of_reads(one.coordinates));
    if request.ranks > 0 || !is_closed {
        return None;
    }
    let [small, large] = [false, true].map(|large| CreditSeen::of(done, large));
    let small_lasts = small.as_ref().filter(|small| !small.pauses.is_empty());
    let small_lasts = small_lasts.map(|small| small.lasting().per_s);
    let next = |seen: CreditSeen| {
        let is_of_operations =
            small_lasts.is_some_and(|small| is_same_rate(small, seen.lasting().per_s));
        next_of(request, &seen, seen.large && is_of_operations)
    };
    small.and_then(next).or_else(|| large.and_then(next))
}

/// The next pause of these reads, or the next reads without one; no pause if what they show `is_known` already.
fn next_of(request: &CalibrateRequest, seen: &CreditSeen, is_known: bool) -> Option<Coordinates> {
    let at = |pause_ms, drain| {
        Some(Coordinates::Refill {
            depth: seen.depth,
            pause_ms,
            drain,
            of_large: seen.large,
        })
    };
    if !seen.large && !seen.is_slower(seen.slow) {
        return None;
    }
    if !seen.is_drained() {
        let drain = u32::try_from(seen.drains.len()).unwrap_or(u32::MAX);
        return at(0, drain).filter(|_| drain < DRAINS_MOST);
    }
    // Reads without a pause are as fast as the search: what was slow before did not lack credit.
    if is_known || !seen.is_slower(seen.lasting()) {
        return None;
    }
    let regained = seen.regained();
    let Some(last) = regained.last() else {
        return at(PAUSE_FIRST_MS, 0);
    };
    let used: f64 = seen
        .pauses
        .iter()
        .zip(&regained)
        .map(|(point, one)| point.measured_s + one.paused)
        .sum();
    let next = 2.0 * last.paused;
    let needed = next + seen.read_after(next).as_secs_f64();
    let budget = request.visits_until.unwrap_or(BUDGET);
    let is_over = used + needed > budget.as_secs_f64();
    let lasts = seen.lasting().per_s;
    let is_known = Regained::is_all(&regained, lasts) || Regained::is_none(&regained, lasts);
    if is_over || is_known {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "doubled from half a second, within a budget of days"
    )]
    at((next * 1e3).round() as u32, 0)
}

/// The measurement at these coordinates, of this stream; after a pause as long as `done` tells.
pub(super) fn point(
    request: &CalibrateRequest,
    coordinates: Coordinates,
    stream: Stream,
    seed: u64,
    done: &[PointSummary],
) -> Point {
    let paused = coordinates.pause().filter(|pause| *pause > Nanos(0));
    let credit = CreditSeen::of(done, coordinates.is_refill_of_large());
    let time = paused
        .zip(credit)
        .map(|(pause, seen)| Visits::whole_windows(seen.read_after(pause.as_secs_f64())));
    Point {
        coordinates,
        streams: vec![stream],
        warm_up: WarmUp::NONE,
        until: Until::Elapsed(time.unwrap_or_else(|| drain_time(request))),
        seed: seed_of(seed, coordinates),
        window: WINDOW,
    }
}

/// The pause before a measurement: one operation per second, so that nearly all credit comes back.
pub(super) fn warming(point: Point) -> Option<Point> {
    let pause = point
        .coordinates
        .pause()
        .filter(|pause| *pause > Nanos(0))?;
    let streams = point.streams.into_iter().map(|stream| Stream {
        load: Load::Open {
            rate: 1.0,
            arrivals: Arrivals::Uniform,
            in_flight_max: 1,
        },
        ..stream
    });
    Some(Point {
        streams: streams.collect(),
        until: Until::Elapsed(pause),
        ..point
    })
}
