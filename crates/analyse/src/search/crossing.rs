//! Where offered loads cross a bound: a curve through all of them.
//!
//! Input: the operations that were late at each load. Output: the load at which as many are late as
//! the bound allows, with its interval.

use super::bracket::Bracket;
use crate::point::backlog::RateMet;
use crate::point::events::{Events, EventsSeen};
use crate::point::summary::ClassSummary;
use rigel_model::{Bound, Measure, Nanos};
use rigel_stats::curve::{Curve, LateBlock, Queue, SHAPE, last_inside};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{Interval, Limits, gamma_limits};
use rigel_stats::verdict::BoundVerdict;

/// Times of operations that wait for no other.
#[derive(Debug, Clone, Copy)]
pub struct ServiceTimes {
    /// Their squared coefficient of variation.
    variation: f64,
    /// The share of them that is late.
    late: f64,
}

/// The rate at which a bound is met exactly, as the theory of queues has it for a storage that serves
/// `capacity` operations a second: in heavy traffic a response time exceeds t with the probability
/// exp(-2 (capacity - rate) t / (1 + c²)) (Kingman 1962), c being the coefficient of variation of
/// service times.
pub(super) fn expected_rate(capacity: f64, bound: Bound, alone: ServiceTimes) -> f64 {
    let exponent = -(1.0 - bound.quantile).ln();
    let spare = exponent * (1.0 + alone.variation) / (2.0 * bound.latency.as_secs_f64());
    capacity - spare
}

impl ServiceTimes {
    /// Where nothing is known: exponential ones, of which none is late.
    pub const UNKNOWN: Self = Self {
        variation: 1.0,
        late: 0.0,
    };

    /// Those of a class with one operation at a time, or with so few that hardly any waits.
    pub fn of(class: &ClassSummary) -> Option<Self> {
        let latency = class.latency?;
        let late = match &class.late {
            Some(late) => late.share(),
            None => class.within.map_or(0.0, |within| 1.0 - within.share),
        };
        Some(Self {
            variation: (latency.deviation_us / latency.mean_us).powi(2),
            late,
        })
    }
}

/// The late operations of several loads, and the curve through them.
#[derive(Debug, Clone, Copy)]
pub struct Crossing {
    /// `None` if no operation was late but for stalls.
    curve: Option<Curve>,
    bound: Bound,
    limit: f64,
    /// The lowest load that was certainly not served.
    not_served: Option<f64>,
    /// The root as theory expects it, if it is known what the storage serves at most.
    expected: Option<f64>,
    /// True if more than one load was served: of one alone, the slope is that of theory.
    has_slope: bool,
    stalls: StallShare,
    /// The load at which the bound is met exactly.
    root: Estimate,
}

/// Stalls, and the share of operations that they make late.
#[derive(Debug, Clone, Copy, Default)]
pub struct StallShare {
    seen: EventsSeen,
    /// Those of closed loops, which tell a stall from operations that wait for slow ones.
    closed: EventsSeen,
    /// The load that the storage serves at most.
    capacity: f64,
}

impl StallShare {
    /// Stalls of a storage that serves at most this load.
    pub fn below(capacity: f64) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// The same stalls of a storage that serves at most this load.
    #[must_use]
    pub fn at_most(self, capacity: f64) -> Self {
        Self { capacity, ..self }
    }

    /// True if there were none.
    pub fn is_none(&self) -> bool {
        self.seen.events.is_none()
    }

    /// Includes what a measurement of `seconds` saw.
    pub fn include(&mut self, class: &ClassSummary, seconds: f64) {
        self.include_events(class, &class.stalls, seconds);
    }

    /// Includes what a load met that was not served although a higher one was: that is no overload.
    pub fn include_interrupted(&mut self, class: &ClassSummary, seconds: f64) {
        self.seen.include(&class.stalls, seconds);
    }

    /// The same, if these are the stalls.
    pub fn include_events(&mut self, class: &ClassSummary, stalls: &Events, seconds: f64) {
        if !class.is_not_met() {
            self.seen.include(stalls, seconds);
        }
        if class.offered.is_none() {
            self.closed.include(stalls, seconds);
        }
    }

    /// The same without any, if only offered rates met what looks like stalls, and closed loops would have
    /// met some, but for one time in a hundred: then operations waited for slow ones.
    #[must_use]
    pub fn confirmed(self) -> Self {
        const BY_CHANCE: f64 = 0.01;
        let offered_s = self.seen.seconds - self.closed.seconds;
        let expected = self.seen.times() / offered_s.max(f64::MIN_POSITIVE) * self.closed.seconds;
        if self.closed.events.is_none() && (-expected).exp() < BY_CHANCE {
            return Self {
                seen: EventsSeen::default(),
                ..self
            };
        }
        self
    }

    /// The share of operations that stalls delay beyond `latency` at this load, if they come `times`
    /// as often as measured. A stall of length L delays those that arrive in its first L - t, and
    /// the queue that it leaves as many again as the load leaves little to drain it.
    fn late(&self, load: f64, latency: Nanos, times: f64) -> f64 {
        if self.is_none() {
            return 0.0;
        }
        let count = self.seen.times();
        let beyond_s = count * (self.seen.events.seconds / count - latency.as_secs_f64()).max(0.0);
        let left = (1.0 - load / self.capacity).max(f64::MIN_POSITIVE);
        (times * beyond_s / (left * self.seen.seconds)).min(1.0)
    }

    /// The greatest share of operations that stalls may delay beyond `latency` at this load, with 95 %
    /// confidence.
    pub fn late_at_most(&self, load: f64, latency: Nanos) -> f64 {
        if self.is_none() {
            return 0.0;
        }
        let [_, more] = self.limits();
        self.late(load, latency, more)
    }

    /// True if a class that met no stall keeps its mean or its maximum only for that; loads are rates.
    pub fn would_break(&self, class: &ClassSummary) -> bool {
        let (all, seconds) = (&self.seen.events, self.seen.seconds);
        let spared = !self.is_none() && class.stalls.is_none();
        let judged = class.objective.filter(|_| spared);
        judged.is_some_and(|judged| match judged.objective.0 {
            Measure::Max(limit) => all.seconds / self.seen.times() > limit.as_secs_f64(),
            Measure::Mean(limit) => class.latency.is_some_and(|latency| {
                let left = 1.0 - class.offered.unwrap_or(0.0) / self.capacity;
                let waits_s = all.squares / (2.0 * seconds * left.max(f64::MIN_POSITIVE));
                latency.mean_us / 1e6 + waits_s > limit.as_secs_f64()
            }),
            Measure::Quantile(..) | Measure::Rate(_) => false,
        })
    }

    /// How long an operation that is due in a stall waits for its end on average, in seconds.
    pub fn mean_wait_s(&self) -> f64 {
        let all = &self.seen.events;
        all.squares / (2.0 * all.seconds).max(f64::MIN_POSITIVE)
    }

    /// The 95 % limits of the number of stalls, in times of the number that was seen: of a Poisson
    /// count (Garwood, Biometrika 28, 1936).
    fn limits(&self) -> [f64; 2] {
        let count = self.seen.times();
        let [low, _] = gamma_limits(count);
        let [_, high] = gamma_limits(count + 1.0);
        [low / count, high / count]
    }
}

/// The highest of these loads that was certainly served.
pub(super) fn highest_met<'a>(classes: impl Iterator<Item = (f64, &'a ClassSummary)>) -> f64 {
    classes
        .filter(|(_, class)| class.met == Some(RateMet::Yes))
        .map(|(load, _)| load)
        .fold(0.0, f64::max)
}

/// True if a load was not served, and one above it was: something else held it up.
pub(super) fn is_interrupted((load, class): (f64, &ClassSummary), highest_met: f64) -> bool {
    class.met == Some(RateMet::No) && class.failed.is_empty() && load < highest_met
}

impl Crossing {
    /// The curve of these classes, each with its load and the planned rate of one unit of load.
    /// Loads that were not served have queues that grow: they are no part of it, and above it. Those that only
    /// were interrupted are left out; whoever counts `stalls` may count theirs.
    /// `alone` has the times of operations that wait for no other. `None` if none or all operations
    /// were late, and if the loads say otherwise: where operations are late that wait for no other, their
    /// share does not rise as a queue's does.
    pub fn of<'a>(
        classes: impl Iterator<Item = (f64, &'a ClassSummary)>,
        alone: ServiceTimes,
        mut stalls: StallShare,
    ) -> Option<Self> {
        /// What may be served at most, in times of the highest load, if all were.
        const UNKNOWN: f64 = 2.0;
        let (mut blocks, mut not_served) = (Vec::<LateBlock>::new(), None::<f64>);
        let mut bound: Option<(Bound, f64)> = None;
        let mut own: Vec<(f64, BoundVerdict)> = Vec::new();
        let mut served = f64::INFINITY;
        let classes: Vec<(f64, &ClassSummary)> = classes.collect();
        let highest = highest_met(classes.iter().copied());
        for (load, class) in classes {
            own.push((load, class.sustained()));
            if is_interrupted((load, class), highest) {
                continue;
            }
            if class.is_not_met() {
                not_served = Some(not_served.map_or(load, |lowest| lowest.min(load)));
                served = served.min(class.iops);
            } else if let Some(late) = &class.late {
                let rate = late.blocks.first().map_or(0.0, |block| block.load);
                bound = Some((late.bound, rate / load));
                let of_load = |block: LateBlock| LateBlock { load, ..block };
                if stalls.is_none() {
                    blocks.extend(late.with_delayed().map(of_load));
                } else {
                    blocks.extend(late.blocks.iter().copied().map(of_load));
                }
            }
        }
        let (bound, rate_per_load) = bound?;
        let limit = 1.0 - bound.quantile;
        // In heavy traffic.
        let slope = 2.0 * bound.latency.as_secs_f64() * rate_per_load / (1.0 + alone.variation);
        stalls.capacity = stalls.capacity.min(served / rate_per_load);
        let queue = Queue {
            slope_per_load: slope,
            variation: alone.variation,
            capacity: Some(stalls.capacity).filter(|capacity| capacity.is_finite()),
            floor: alone.late,
        };
        if queue.capacity.is_none() {
            stalls.capacity = UNKNOWN * own.iter().map(|(load, _)| *load).fold(0.0, f64::max);
        }
        let curve = Curve::fit(&blocks, limit, queue);
        let is_known = curve.is_some() || !stalls.is_none();
        let mut crossing = Self {
            curve,
            bound,
            limit,
            not_served,
            expected: queue
                .capacity
                .map(|most| expected_rate(most * rate_per_load, bound, alone) / rate_per_load),
            has_slope: blocks
                .iter()
                .any(|block| block.load.total_cmp(&blocks[0].load).is_ne()),
            stalls,
            root: Estimate::from(0.0),
        };
        crossing.root = crossing.computed_root();
        (is_known && !crossing.is_refuted_by(&own)).then_some(crossing)
    }

    /// True if several loads below the root certainly did not keep the bound by themselves, or several above it
    /// did: of one alone that is chance, and where there are stalls, of all that met one, or none.
    fn is_refuted_by(&self, own: &[(f64, BoundVerdict)]) -> bool {
        const BY_CHANCE: usize = 1;
        let Some(limits) = self.known_limits().filter(|_| self.stalls.is_none()) else {
            return false;
        };
        let contradicts = |(load, own): &&(f64, BoundVerdict)| match own {
            BoundVerdict::Broken => *load < limits.low,
            BoundVerdict::Kept => limits.high.is_some_and(|high| *load > high),
            BoundVerdict::Undecided | BoundVerdict::NotMeasured => false,
        };
        own.iter().filter(contradicts).count() > BY_CHANCE
    }

    /// The load at which the bound is met exactly.
    pub fn root(&self) -> Estimate {
        self.root
    }

    fn computed_root(&self) -> Estimate {
        let cap = |load: f64| self.not_served.map_or(load, |lowest| lowest.min(load));
        let of_curve = self.curve.map(|curve| curve.root(self.limit));
        if self.stalls.is_none() {
            let (value, low, high) = of_curve.map_or((0.0, 0.0, None), |root| {
                (root.load, root.interval.low, root.interval.high)
            });
            return Estimate::new(
                cap(value),
                Some(Limits {
                    low: cap(low),
                    high: high.map_or(self.not_served, |high| Some(cap(high))),
                }),
            );
        }
        let [fewer, more] = self.stalls.limits();
        let value = self.load_of(self.limit, 1.0);
        // The errors of curve and stalls are independent; what one of them adds to the other is small.
        let (down, up) = of_curve.map_or((1.0 - SHAPE, 1.0 + SHAPE), |root| {
            let up = root
                .interval
                .high
                .map_or(f64::INFINITY, |high| high / root.load);
            // A root at no load at all has no ratios.
            ((root.interval.low / root.load).min(1.0), up.max(1.0))
        });
        let high = self.load_of(self.limit, fewer) * up;
        Estimate::new(
            cap(value),
            Some(Limits {
                low: cap(self.load_of(self.limit, more) * down),
                high: if high.is_finite() {
                    Some(cap(high))
                } else {
                    self.not_served
                },
            }),
        )
    }

    /// The load at which the bound is met exactly, with its interval cut where loads were decided by
    /// themselves: it is not below one that was certainly held, and not above one that certainly was
    /// not. Without an upper end it is not above `most`, which is all that the storage serves. `None` if it
    /// contradicts them, or if one end is not known.
    pub fn within(&self, decided: &Bracket<f64>, most: f64) -> Option<Estimate> {
        let limits = self.known_limits()?;
        let value = match limits.high {
            Some(_) => self.root.value,
            None => self.root.value.min(most),
        };
        let low = limits.low.max(decided.held.unwrap_or(0.0));
        let not_held = decided.not_held.unwrap_or(f64::INFINITY);
        let high = limits.high.unwrap_or(most).min(not_held);
        let is_known = low > 0.0 && high.is_finite() && (low..=high).contains(&value);
        is_known.then(|| Estimate {
            value,
            interval: Some(Interval { low, high }.into()),
            ..self.root
        })
    }

    /// The limits of the root. `None` without a slope, and if the curve would meet the bound only where
    /// nothing was served: then the loads are too far below the root to show it.
    fn known_limits(&self) -> Option<Limits> {
        let is_served = self
            .not_served
            .is_none_or(|lowest| self.root.value < lowest);
        self.root.interval.filter(|_| self.has_slope && is_served)
    }

    /// What is known of a load that was served, and of which its own operations say `own`. All loads together
    /// decide, if they give both ends: of many loads near the root, each judged alone, some would be
    /// judged wrongly, and in a few seconds a load meets a stall or none. A load decides about itself where
    /// they do not.
    pub fn judged(&self, load: f64, own: BoundVerdict) -> BoundVerdict {
        /// Far below the root this part of what may be late is expected to be.
        const FAR: f64 = 0.01;
        let has_stalls = !self.stalls.is_none();
        // What contradicts the load itself is not certain, unless that met a stall, or none, by chance.
        let unless = |contrary: BoundVerdict, verdict: BoundVerdict| {
            if own == contrary && !has_stalls {
                BoundVerdict::Undecided
            } else {
                verdict
            }
        };
        match self.known_limits() {
            Some(limits) if has_stalls || (limits.low > 0.0 && limits.high.is_some()) => {
                if load < limits.low {
                    unless(BoundVerdict::Broken, BoundVerdict::Kept)
                } else if limits.high.is_some_and(|high| load > high) {
                    unless(BoundVerdict::Kept, BoundVerdict::Broken)
                } else {
                    // A slope that is hardly known says little of a load at which hardly any is late.
                    let is_far = self
                        .curve
                        .is_some_and(|curve| curve.share(load) < FAR * self.limit);
                    match own {
                        BoundVerdict::Kept if !has_stalls && is_far => own,
                        _ => BoundVerdict::Undecided,
                    }
                }
            }
            // It met fewer stalls than come on average, by chance.
            _ if own == BoundVerdict::Kept
                && self.stalls.late(load, self.bound.latency, 1.0) > self.limit =>
            {
                BoundVerdict::Undecided
            }
            _ => own,
        }
    }

    /// The load to measure next, below the root and above it in turn, `turn` being the number of loads
    /// measured so far, from one: the slope is known best from both (Wu, Journal of the American
    /// Statistical Association 80, 1985). If no load is near the root, where theory expects it, or in the
    /// middle of what is left.
    pub fn next_load(&self, turn: usize) -> f64 {
        /// In logits of the share of late operations.
        const ASIDE: f64 = 0.8;
        let aside = if turn.is_multiple_of(2) {
            ASIDE
        } else {
            -ASIDE
        };
        match self.curve.filter(|_| self.stalls.is_none()) {
            Some(curve) => {
                let in_gap = curve.gap(self.limit).and_then(|(below, above)| {
                    let above = above.or(self.not_served);
                    let is_inside =
                        |load: &f64| *load > below && above.is_none_or(|above| *load < above);
                    let middle = || above.map(|above| f64::midpoint(below, above));
                    self.expected.filter(is_inside).or_else(middle)
                });
                in_gap.unwrap_or_else(|| curve.load_beside(self.limit, aside))
            }
            None => self.load_of(self.limit * aside.exp(), 1.0),
        }
    }

    /// The load at which this share is late, if stalls come `times` as often as measured.
    fn load_of(&self, share: f64, times: f64) -> f64 {
        let is_below = |load: f64| {
            let queued = self.curve.map_or(0.0, |curve| curve.share(load));
            queued + self.stalls.late(load, self.bound.latency, times) < share
        };
        let most = self.curve.map_or(self.stalls.capacity, |curve| {
            curve.load_of(share).min(self.stalls.capacity)
        });
        last_inside(0.0, most, is_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::events::Events;

    /// What this many stalls of 80 ms at offered rates and in closed loops are taken for.
    fn stalls(offered: u64, closed: u64) -> StallShare {
        let seen = |times: u64, seconds: f64| EventsSeen {
            events: Events {
                times,
                seconds: 0.08 * times as f64,
                squares: 0.0064 * times as f64,
                ..Events::default()
            },
            seconds,
        };
        let share = StallShare {
            seen: seen(offered + closed, 70.0),
            closed: seen(closed, 35.0),
            capacity: 10_000.0,
        };
        share.confirmed()
    }

    #[test]
    fn a_load_that_was_not_served_below_one_that_was_is_interrupted() {
        let class = |met: RateMet| {
            let mut point = crate::summarise(&crate::examples::reads_of_a_millisecond());
            point.classes[0].met = Some(met);
            point.classes.remove(0)
        };
        let (yes, no, open) = (
            class(RateMet::Yes),
            class(RateMet::No),
            class(RateMet::Undecided),
        );
        let highest = highest_met([(2.0, &no), (3.0, &yes), (4.0, &open)].into_iter());
        assert!((highest - 3.0).abs() < 1e-9);
        assert!(is_interrupted((2.0, &no), highest));
        assert!(!is_interrupted((4.0, &no), highest) && !is_interrupted((2.0, &yes), highest));
        let mut failed = no.clone();
        failed.failed.insert("EIO".into(), 1);
        assert!(!is_interrupted((2.0, &failed), highest));
        let mut seen = StallShare::below(10.0);
        let mut stalled = no;
        stalled.stalls = Events {
            times: 1,
            seconds: 2.0,
            squares: 4.0,
            ..Events::default()
        };
        seen.include(&stalled, 5.0);
        assert!(seen.is_none(), "an overload has a backlog");
        seen.include_interrupted(&stalled, 5.0);
        assert!(!seen.is_none());
    }

    #[test]
    fn stalls_that_closed_loops_would_have_met_and_did_not_are_none() {
        assert!(stalls(5, 0).is_none(), "five expected");
        assert!(
            !stalls(4, 0).is_none(),
            "one run in fifty meets none of four"
        );
        assert!(!stalls(5, 1).is_none());
        assert!(!stalls(0, 3).is_none(), "rates met none by chance");
        assert!(stalls(0, 0).is_none());
    }
}
