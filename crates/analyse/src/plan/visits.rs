//! Visits: a point's time in several pieces, spread over the run in random order.
//!
//! The storage of a shared machine changes within minutes. If each load is measured in one piece,
//! the change looks like a difference between loads. With visits at several times it widens the
//! interval of each instead. And a point that met no stall in its first second is visited again
//! as often as one that did.

use super::search::{WARM_UP, WINDOW, seed_of};
use crate::PointSummary;
use rigel_model::{Coordinates, Load, Nanos, Pattern, Point, Ratio, Step, Stream, Until, WarmUp};
use rigel_stats::mean::BATCHES_MIN;

/// Minimum number of visits to a point.
const VISITS_MIN: u64 = 3;
/// Maximum length of a visit, if more than the minimum number are possible.
const LENGTH_MAX: Nanos = Nanos::from_secs(2);
/// Minimum length of a visit: with fewer windows, a load that is visited once would have no interval.
const LENGTH_MIN: Nanos = Nanos(WINDOW.0 * BATCHES_MIN as u64);

/// A later visit is longer by up to one part in this many. Visits of one length, one after the other,
/// would always meet the same part of whatever comes regularly: a stall once a second in each of
/// them, or in none.
const LONGER_BY: u64 = 4;

/// How a point's time is divided into visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visits {
    /// Minimum measured time of each.
    pub length: Nanos,
    /// Minimum number.
    pub least: usize,
    /// Maximum number.
    pub most: usize,
}

impl Visits {
    /// Visits to a point that is measured for `least` to `most` in all.
    pub fn of(least: Nanos, most: Nanos) -> Self {
        let count = least.0.div_ceil(LENGTH_MAX.0).max(VISITS_MIN);
        let length = Self::whole_windows(Nanos(least.0.div_ceil(count))).max(LENGTH_MIN);
        let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let usual = length.0 + length.0 / LONGER_BY / 2;
        Self {
            length,
            least: whole(count),
            most: whole((most.0 / usual).max(count)),
        }
    }

    /// The shortest time that is not below `time` and consists of whole windows: visits that end with a
    /// part of one cannot be joined.
    pub fn whole_windows(time: Nanos) -> Nanos {
        Nanos(time.0.div_ceil(WINDOW.0).saturating_mul(WINDOW.0))
    }

    /// When the first visit to a point ends.
    pub fn until(self) -> Until {
        Until::Elapsed(self.length)
    }

    /// The point to visit next, of those `wanted`, so that each has `count` visits: one with the
    /// fewest so far, in an order that the seed decides.
    pub fn next(
        done: &[PointSummary],
        count: usize,
        seed: u64,
        wanted: impl Fn(&PointSummary) -> bool,
    ) -> Option<Coordinates> {
        done.iter()
            .filter(|point| wanted(point) && point.visits_made() < count)
            .min_by_key(|point| {
                let visits = point.visits_made();
                (visits, seed_of_visit(seed, point.coordinates, visits))
            })
            .map(|point| point.coordinates)
    }

    /// A further visit to one of the points `wanted` whose rate is known less well than to within
    /// `precision`. None gets its second further visit before all have had their first.
    pub fn next_extra(
        self,
        done: &[PointSummary],
        precision: Ratio,
        seed: u64,
        wanted: impl Fn(&PointSummary) -> bool,
    ) -> Option<Coordinates> {
        let is_imprecise = |point: &PointSummary| {
            let class = point.classes.first();
            let reached = class.and_then(|class| class.rate().precision());
            reached.is_none_or(|reached| reached > precision.get())
        };
        let wanted = |point: &PointSummary| wanted(point) && is_imprecise(point);
        let fewest = done
            .iter()
            .filter(|point| wanted(point))
            .map(PointSummary::visits_made)
            .min()?;
        Self::next(done, self.most.min(fewest + 1), seed, wanted)
    }

    /// The point on a volume of `usable` bytes as it is measured at its next visit: with a warm-up as
    /// long as its operations need, if those of its kind are known, and at a later visit with other
    /// random choices and another start than before.
    pub fn again(mut point: Point, usable: u64, done: &[PointSummary], seed: u64) -> Point {
        let response_us = |of: &PointSummary| {
            let latency = of.classes.first().and_then(|class| class.latency);
            latency.map_or(0.0, |latency| latency.mean_us)
        };
        let Some(before) = done
            .iter()
            .find(|before| before.coordinates == point.coordinates)
        else {
            return match beside(&point, done) {
                None => point,
                Some((nearest, times)) => Point {
                    warm_up: warm_up(times * response_us(nearest), point.until),
                    ..point
                },
            };
        };
        let seed = seed_of_visit(seed, point.coordinates, before.visits_made());
        if let Until::Elapsed(shortest) = &mut point.until
            && *shortest <= LENGTH_MAX
        {
            // Whole windows.
            let more = shortest.0 / LONGER_BY / WINDOW.0 + 1;
            shortest.0 += seed % more * WINDOW.0;
        }
        for stream in &mut point.streams {
            if let Pattern::Sequential { start } = &mut stream.pattern {
                // The blocks of the last visit may be cached.
                *start = seed % (usable / u64::from(stream.length)).max(1);
            }
        }
        Point {
            seed,
            warm_up: warm_up(response_us(before), point.until),
            ..point
        }
    }
}

/// The measured point of the same kind with the most outstanding, and how many times as long its
/// operations may take in `point`; `None` of an open loop, of work that begins at once, and if there
/// is none. Throughput of a closed loop does not fall as more are outstanding, so that response times
/// grow no faster.
fn beside<'a>(point: &Point, done: &'a [PointSummary]) -> Option<(&'a PointSummary, f64)> {
    let is_closed = |stream: &Stream| matches!(stream.load, Load::Closed { .. });
    if !matches!(point.until, Until::Elapsed(_)) || !point.streams.iter().all(is_closed) {
        return None;
    }
    let outstanding = |at: Coordinates| f64::from(at.outstanding().max(1));
    let kind = |at: Coordinates| match at {
        Coordinates::ClosingDepth { .. } => Step::Depth,
        Coordinates::ClosingWrite { .. } => Step::Write,
        other => other.step(),
    };
    let of_kind = |before: &&PointSummary| kind(before.coordinates) == kind(point.coordinates);
    let nearest = done
        .iter()
        .filter(of_kind)
        .max_by_key(|before| before.coordinates.outstanding())?;
    let times = outstanding(point.coordinates) / outstanding(nearest.coordinates);
    Some((nearest, times.max(1.0)))
}

/// A warm-up as long as operations of `response_us` each need; before a short visit not the usual least,
/// or a short run would mostly warm up.
fn warm_up(response_us: f64, until: Until) -> WarmUp {
    let least = match until {
        Until::Elapsed(visit) => Nanos(visit.0 / 2).min(WARM_UP.least),
        _ => WARM_UP.least,
    };
    let length = Nanos::from_micros_f64(RESPONSES * response_us);
    let length = length.clamp(least, WARM_UP.most);
    WarmUp {
        least: length,
        most: length,
    }
}

/// Length of a warm-up in mean response times: as long as the first operations
/// of a full queue take to leave it.
const RESPONSES: f64 = 3.0;

/// Time of all visits with their warm-ups, in seconds: what a budget is for.
pub fn time_used(done: &[PointSummary]) -> f64 {
    let of = |point: &PointSummary| point.measured_s + point.warm_up_s;
    done.iter().map(of).sum()
}

fn seed_of_visit(seed: u64, coordinates: Coordinates, visits: usize) -> u64 {
    seed_of(
        seed ^ (visits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        coordinates,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_divided_into_three_visits_or_more() {
        let visits = |least, most| {
            let found = Visits::of(Nanos::from_millis(least), Nanos::from_millis(most));
            (found.length.0 / 1_000_000, found.least, found.most)
        };
        assert_eq!(visits(2000, 5000), (700, 3, 6));
        assert_eq!(visits(5000, 20_000), (1700, 3, 10));
        assert_eq!(visits(10_000, 30_000), (2000, 5, 13));
        assert_eq!(visits(100, 200), (500, 3, 3));
    }
}
