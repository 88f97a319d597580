//! Whether an open loop's offered rate is served: what its backlog shows.

use super::steady::Steady;
use rigel_model::record::{PointRecord, StreamRecord, Window};
use serde::{Serialize, Serializer};
use std::ops::Range;

/// Whether an offered rate is served. JSON has true, false, and null for undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateMet {
    /// It is served, and the backlog does not grow.
    Yes,
    /// Operations were never started, or the backlog grows.
    No,
    /// The measurement is too short to tell a growing backlog from one that varies.
    Undecided,
}

impl Serialize for RateMet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Yes => serializer.serialize_bool(true),
            Self::No => serializer.serialize_bool(false),
            Self::Undecided => serializer.serialize_none(),
        }
    }
}

/// Judges the backlog of `due` operations of an open loop, of which `waited` still waited for a free
/// slot when the measurement ended, and `in_flight` may be outstanding. `trend` is that of their
/// response times; `is_short` says that the measurement is worth too few independent observations
/// of them.
pub(super) fn rate_met(
    stream: &StreamRecord,
    record: &PointRecord,
    [due, waited, in_flight]: [u64; 3],
    trend: Option<Steady>,
    is_short: bool,
) -> RateMet {
    let grows = growth(stream, record, [due, waited]);
    let is_backlog = ends_with_backlog(stream, record, in_flight);
    if is_backlog || grows == Growth::Certain {
        RateMet::No
    } else if is_short || grows == Growth::Possible || trend.is_some_and(rises) {
        RateMet::Undecided
    } else {
        RateMet::Yes
    }
}

/// True if at the end of most visits more operations waited than storage that serves the rate lets wait. That
/// one visit ends in a stall is no sign of an overload.
fn ends_with_backlog(stream: &StreamRecord, record: &PointRecord, in_flight: u64) -> bool {
    let has_backlog = |visit: &&PointRecord| {
        let Some(own) = visit.stream(&stream.name) else {
            return false;
        };
        let unserved: u64 = own.unserved.iter().sum();
        let windows = own.kinds.iter().flat_map(|kind| &kind.windows);
        let due = own.done() + windows.map(Window::failures).sum::<u64>() + unserved;
        let waited = unserved.saturating_add(own.drained);
        // A single writer's queue stands before it, not in the storage, and varies by chance.
        let most = if in_flight > 1 {
            in_flight.min((due / 100).max(1))
        } else {
            by_chance(own, due)
        };
        waited > most && !has_drained(own, visit, [due, waited])
    };
    let visits = record.pieces();
    2 * visits.iter().filter(has_backlog).count() > visits.len()
}

/// True if as long a backlog as that at the end stood before the last quarter of the measurement, and
/// drained: slow operations in a bunch make one anywhere, and at the end it is no sign of an overload.
fn has_drained(stream: &StreamRecord, record: &PointRecord, [due, waited]: [u64; 2]) -> bool {
    if waited > stream.drained {
        // Where some were never started, nobody knows how long they would have waited.
        return false;
    }
    // The last operation of the backlog waits for the time in which that many become due.
    let half_wait = (record.measured.0 / due.max(1)).saturating_mul(waited) / 2;
    // The operations that took half of that time in windows that followed each other. A queue that stands
    // delays nearly all of a window; without one some are slow, too, but few.
    let (mut delayed, mut has_stood) = (0, false);
    for at in 0..record.whole_windows() * 3 / 4 {
        let windows = stream
            .windows_at(at)
            .map(|window| &window.response.histogram);
        let [slow, all] = windows.fold([0, 0], |[slow, all], one| {
            [slow + one.count_above(half_wait), all + one.count()]
        });
        delayed += slow;
        has_stood |= 2 * delayed >= waited;
        if 2 * slow < all {
            if has_stood {
                return true;
            }
            delayed = 0;
        }
    }
    false
}

/// True if response times certainly rose through the measurement.
fn rises(trend: Steady) -> bool {
    trend.steady == Some(false) && trend.slope > 0.0
}

/// The longest backlog that chance makes of `due` operations.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a root of a count"
)]
fn by_chance(stream: &StreamRecord, due: u64) -> u64 {
    const DEVIATIONS: f64 = 4.0;
    (DEVIATIONS * (due as f64 * (1.0 + service_variation(stream))).sqrt()) as u64
}

/// Whether the backlog grew throughout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Certain,
    Possible,
    None,
}

/// Judges the operations that ended after the measurement.
///
/// At exactly the capacity, the backlog is a random walk of arrivals and departures: without a
/// drift, its variance after n Poisson arrivals is n (1 + c²) with the coefficient of variation c of
/// service times, and below the capacity it is less (the heavy-traffic limit: Kingman, Journal of
/// the Royal Statistical Society B 24, 1962). Four of these deviations, with response times that
/// rise from quarter to quarter, are an overload. Half of all due operations always are.
fn growth(stream: &StreamRecord, record: &PointRecord, [due, waited]: [u64; 2]) -> Growth {
    const BY_LAST: f64 = 1.5;
    const BY_THIRD: f64 = 1.25;
    // What waited and was drained ended after the measurement, too.
    let never_started = waited.saturating_sub(stream.drained);
    let late = waited.max(never_started.saturating_add(ended_after(stream, record)));
    let whole = record.whole_windows();
    let quarter = |at: usize| mean(stream, whole * at / 4..whole * (at + 1) / 4);
    let has_grown = quarter(3) > BY_LAST * quarter(0) && quarter(2) > BY_THIRD * quarter(0);
    let by_chance = by_chance(stream, due);
    if late > due / 2 || has_grown && late > due / 100 && late > by_chance {
        Growth::Certain
    } else if late > due / 100 && quarter(3) > BY_LAST * quarter(0) {
        Growth::Possible
    } else {
        Growth::None
    }
}

/// The squared coefficient of variation of the service times, at least that of exponential ones.
fn service_variation(stream: &StreamRecord) -> f64 {
    let total = stream.total();
    let times = total.service();
    let count = times.histogram.count().max(1) as f64;
    let mean = times.sum as f64 / count;
    (times.sum_squares / count / (mean * mean).max(1.0) - 1.0).max(1.0)
}

/// The number of operations that certainly ended after the measurement: those that took longer than
/// from the start of their due window to its end.
fn ended_after(stream: &StreamRecord, record: &PointRecord) -> u64 {
    let of_window = |at: usize| {
        let left = record
            .measured
            .0
            .saturating_sub(record.window.0.saturating_mul(at as u64));
        let windows = stream.windows_at(at);
        let late = windows.map(|window| window.response.histogram.count_above(left));
        late.sum::<u64>()
    };
    (0..record.whole_windows()).map(of_window).sum()
}

/// The mean response time of these windows in nanoseconds.
fn mean(stream: &StreamRecord, windows: Range<usize>) -> f64 {
    let (sum, count) =
        windows
            .flat_map(|at| stream.windows_at(at))
            .fold((0, 0), |(sum, count), window| {
                (
                    sum + window.response.sum,
                    count + window.response.histogram.count(),
                )
            });
    sum as f64 / count.max(1) as f64
}
