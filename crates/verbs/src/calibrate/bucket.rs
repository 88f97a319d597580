//! Burst credit, once it was used up: pauses of known length, after each of which the storage is read until
//! what came back is used up again.
//!
//! First it is read without a pause, until what lasts is reached. Each pause is twice as long as the one
//! before, until twice the time brings back no more, or the time is over. [`rigel_analyse::search::bucket`]
//! says what follows.

use super::request::CalibrateRequest;
use rigel_analyse::PointSummary;
use rigel_analyse::plan::search::{WINDOW, seed_of};
use rigel_analyse::search::bucket::{Pace, Regained, is_same_rate};
use rigel_model::{Arrivals, Coordinates, Load, Nanos, Point, Step, Stream, Until, WarmUp};

/// The first pause.
const PAUSE_FIRST_MS: u32 = 500;

/// How long the storage is read without a pause before it, and how often at most.
const DRAIN: Nanos = Nanos::from_secs(3);
const DRAINS_MOST: u32 = 8;

/// What lasts differs by less than this share from what is known to.
const LASTS_WITHIN: f64 = 0.1;

/// By how much single visits of large reads vary where there is no credit.
const LARGE_VARIES: f64 = 1.3;

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
    /// The depth with the highest rate, and its pace: with credit, if there is any.
    fast: (u32, Pace),
    /// The lowest pace at that depth or a deeper one: without credit, if any ran out.
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
        let is_own = |at: &&PointSummary| match at.step() {
            Step::Large => large,
            Step::Depth => !large,
            _ => !large && is_closing_of_reads(at.coordinates),
        };
        let paces: Vec<(u32, Pace)> = done
            .iter()
            .filter(is_own)
            .filter_map(|point| Some((point.coordinates.outstanding(), pace(point)?)))
            .collect();
        let slower = |one: &Pace, other: &Pace| one.per_s.total_cmp(&other.per_s);
        let fast = *paces.iter().max_by(|one, other| slower(&one.1, &other.1))?;
        let deeper = paces.iter().filter(|(depth, _)| *depth >= fast.0);
        // Few depths of large reads are measured, each with credit and without it.
        let deep = done.iter().filter(|_| large).filter(is_own);
        let deep = deep.filter(|point| point.coordinates.outstanding() >= fast.0);
        let visits = deep.flat_map(|point| &point.visits);
        let visits = visits.map(|visit| Pace {
            per_s: visit.iops * LARGE_VARIES,
            count: visit.iops * visit.measured_s,
        });
        let slow = deeper.map(|(_, pace)| *pace).chain(visits);
        let slow = slow.min_by(slower)?;
        let is_refill = |one: &&PointSummary| {
            one.step() == Step::Refill && one.coordinates.is_refill_of_large() == large
        };
        let refills = done.iter().filter(is_refill);
        let (drains, pauses) = refills.partition(|one| one.coordinates.pause() == Some(Nanos(0)));
        Some(Self {
            fast,
            slow,
            drains,
            pauses,
            large,
        })
    }

    /// True if the last reads without a pause had no credit left: they are as slow as the slowest before, or
    /// no slower than those before them.
    fn is_drained(&self) -> bool {
        let rates = self.drains.iter().filter_map(|one| pace(one));
        let rates: Vec<f64> = rates.map(|pace| pace.per_s).collect();
        match &rates[..] {
            [] => false,
            [.., before, last] if *last >= (1.0 - LASTS_WITHIN) * before => true,
            [.., last] => *last <= (1.0 + LASTS_WITHIN) * self.slow.per_s,
        }
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
        let lasts = slow * paused / (self.fast.1.per_s - slow).max(f64::MIN_POSITIVE);
        let most = READ_MOST * paused + READ_LEAST_S;
        Nanos::from_secs_f64((READ_LEAST_S + READ_TIMES * lasts).min(most))
    }
}

fn is_closing_of_reads(at: Coordinates) -> bool {
    matches!(at, Coordinates::ClosingDepth { .. })
}

/// The next pause: of small reads, then of large ones, unless they are held by the same bucket of operations.
/// `None` if no credit ran out, or enough is known of it.
pub(super) fn next(request: &CalibrateRequest, done: &[PointSummary]) -> Option<Coordinates> {
    let is_closed = done.iter().any(|one| is_closing_of_reads(one.coordinates));
    if request.ranks > 0 || !is_closed {
        return None;
    }
    let [small, large] = [false, true].map(|large| CreditSeen::of(done, large));
    let of_operations = |large: &CreditSeen| {
        let small = small.as_ref().filter(|small| !small.pauses.is_empty());
        small.is_some_and(|small| is_same_rate(small.lasting().per_s, large.slow.per_s))
    };
    let large = large.filter(|large| !of_operations(large));
    let mut all = small.iter().chain(&large);
    all.find_map(|seen| next_of(request, seen))
}

/// The next pause of these reads.
fn next_of(request: &CalibrateRequest, seen: &CreditSeen) -> Option<Coordinates> {
    if !seen.slow.is_worth_pausing(seen.fast.1) {
        return None;
    }
    let at = |pause_ms, drain| {
        let (depth, _) = seen.fast;
        Some(Coordinates::Refill {
            depth,
            pause_ms,
            drain,
            of_large: seen.large,
        })
    };
    if !seen.is_drained() {
        let drain = u32::try_from(seen.drains.len()).unwrap_or(u32::MAX);
        return at(0, drain).filter(|_| drain < DRAINS_MOST);
    }
    // Reads without a pause are as fast as the sweep: what was slow before did not lack credit.
    if !seen.lasting().is_worth_pausing(seen.fast.1) {
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
    coordinates: Coordinates,
    stream: Stream,
    seed: u64,
    done: &[PointSummary],
) -> Point {
    let paused = coordinates.pause().filter(|pause| *pause > Nanos(0));
    let credit = CreditSeen::of(done, coordinates.is_refill_of_large());
    let time = paused.zip(credit).map(|(pause, seen)| {
        let time = seen.read_after(pause.as_secs_f64()).0;
        Nanos(time.div_ceil(WINDOW.0) * WINDOW.0)
    });
    Point {
        coordinates,
        streams: vec![stream],
        warm_up: WarmUp::NONE,
        until: Until::Elapsed(time.unwrap_or(DRAIN)),
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
