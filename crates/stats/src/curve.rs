//! The share of late operations as it rises with the load, and the load at which it crosses a limit.
//!
//! Input: blocks of operations at several loads, each with the number that took longer than a bound.
//! Output: a curve through all of them, and its root: the load at which as many are late as may be,
//! with its interval.
//!
//! The share is a steep function of the load: in a queue the logarithm of the share above a time t
//! rises by about 2 t λ / (1 + c²) as the rate λ grows by its own size, where c is the coefficient
//! of variation of service times (heavy traffic: Kingman, Journal of the Royal Statistical Society
//! B 24, 1962). So an error of 30 % in a share is one of a few percent, or less, in the load. To
//! judge each load alone gives that away; a line through the logits of all of them uses it.

use crate::mean::{Limits, t_quantile};

/// Operations that were due at one load within a second or so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateBlock {
    /// The load, such as a rate or a multiple.
    pub load: f64,
    /// Number of operations.
    pub count: f64,
    /// Those beyond the bound.
    pub late: f64,
}

/// A load at which the curve crosses a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Root {
    /// The load.
    pub load: f64,
    /// Its 95 % interval: all loads at which the share of late operations does not differ
    /// significantly from the limit, as in Fieller's theorem.
    pub interval: Limits,
}

/// Late operations against load: beside those that are late without any queue, the logit of their
/// share is a line in the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// The share that is late at any load.
    floor: f64,
    /// The load at which `intercept` holds.
    centre: f64,
    /// Logit of the share there.
    intercept: f64,
    /// Logarithm of the rise of the logit as the load grows by `centre`.
    log_slope: f64,
    /// Variances of the two, and between them their covariance.
    covariance: [f64; 3],
    /// Degrees of freedom: blocks with late operations count for more than blocks without.
    degrees: f64,
    /// The highest load below the ceiling.
    highest: f64,
    /// The root is below this.
    ceiling: Option<Ceiling>,
}

/// A load that is too high for the line to say anything about it, and so for the root.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ceiling {
    /// The load.
    load: f64,
    /// Where the straight line of logits from the next lower load crosses the limit.
    crossed: f64,
}

/// What the theory of queues expects of late operations in heavy traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// The rise of the logarithm of their share for one unit of load.
    pub slope_per_load: f64,
    /// The squared coefficient of variation of service times.
    pub variation: f64,
    /// The greatest load that is served, if it is known.
    pub capacity: Option<f64>,
    /// The share that is late without any queue.
    pub floor: f64,
}

impl Queue {
    /// How many times as much the number of late operations varies as if all were independent, at a load at
    /// which this share is late: those that wait come in bunches, while the work that waits is above the bound.
    /// Waiting work moves like a Brownian motion with drift -d and variance s² per unit of time, whose time A
    /// above a level that it has just reached has the transform 2 / (1 + √(1 + 2q s²/d²)), so that
    /// E A² = 2 s²/d² E A.
    fn bunching(&self, load: f64, share: f64) -> f64 {
        let by_share = self.slope_per_load * load / -share.ln();
        let use_over_idle = match self.capacity {
            Some(capacity) if capacity > load => by_share.min(load / (capacity - load)),
            _ => by_share,
        };
        let waiting = 1.0 - self.floor / share;
        // Those that begin a bunch are above the level already.
        let of_waiting = 2.0 * (1.0 + self.variation) * use_over_idle * (1.0 + use_over_idle);
        1.0 + waiting * (of_waiting - 1.0).max(0.0)
    }
}

/// Standard deviation of the logarithm of the slope that the theory of queues gives.
const SLOPE_SPREAD: f64 = 0.7;

/// Degrees of freedom that theory's variance of late operations is worth.
const BUNCHING_DEGREES: f64 = 4.0;

/// Minimum half-width of a root's interval, relative: the logit is not exactly a line.
pub const SHAPE: f64 = 0.0125;

/// The floor is no higher than this part of the limit.
const FLOOR: f64 = 0.8;

/// Blocks farther than this from the root in logit say nothing about the line there: where queues hardly
/// form, and where they hardly drain, the share rises otherwise.
const BELOW: f64 = 2.0;
const ABOVE: f64 = 2.5;

/// The root is not below this part of the lowest load, nor above its inverse times the highest.
const BEYOND: f64 = 0.5;

/// Late operations in all, and those in time, without which there is no curve.
const LEAST: f64 = 1.0;

impl Curve {
    /// The curve through these blocks near the load at which the share `limit` is late.
    /// `None` if none or all are late.
    pub fn fit(blocks: &[LateBlock], limit: f64, queue: Queue) -> Option<Self> {
        const PASSES: usize = 4;
        let usable: Vec<LateBlock> = blocks
            .iter()
            .filter(|block| block.load > 0.0 && block.count > 0.0)
            .copied()
            .collect();
        let late: f64 = usable.iter().map(|block| block.late).sum();
        let all: f64 = usable.iter().map(|block| block.count).sum();
        if queue.slope_per_load <= 0.0 || late < LEAST || all - late < LEAST {
            return None;
        }
        let queue = Queue {
            floor: queue.floor.clamp(0.0, FLOOR * limit),
            ..queue
        };
        let loads = || usable.iter().map(|block| block.load);
        let lowest = loads().fold(f64::INFINITY, f64::min);
        let highest = loads().fold(0.0, f64::max);
        let mut centre = usable.iter().map(|of| of.late * of.load).sum::<f64>() / late;
        let mut curve = Self::through(&usable, centre, limit, queue)?;
        for _ in 0..PASSES {
            centre = curve
                .load_of(limit)
                .clamp(BEYOND * lowest, highest / BEYOND);
            let is_near = |block: &&LateBlock| {
                let above = curve.rise(block.load) + curve.intercept - curve.level(limit);
                (-BELOW..=ABOVE).contains(&above)
            };
            let near: Vec<LateBlock> = usable.iter().filter(is_near).copied().collect();
            let late: f64 = near.iter().map(|block| block.late).sum();
            if late < LEAST {
                break;
            }
            curve = Self::through(&near, centre, limit, queue)?;
        }
        (curve.highest, curve.ceiling) = curve.ceiling(&usable, limit);
        Some(curve)
    }

    /// The loads between which the root is, if the line says nothing of any load between them: the highest is so
    /// far below the limit that what is late there need not have waited. Without an upper end if no load was
    /// too high.
    pub fn gap(&self, limit: f64) -> Option<(f64, Option<f64>)> {
        let is_below = self.level(limit) - self.intercept - self.rise(self.highest) > BELOW;
        is_below.then(|| (self.highest, self.ceiling.map(|ceiling| ceiling.load)))
    }

    /// The lowest load whose share is so far above the limit that the line leaves it out, and the highest load
    /// below it.
    fn ceiling(&self, blocks: &[LateBlock], limit: f64) -> (f64, Option<Ceiling>) {
        let mut loads: Vec<LateBlock> = Vec::new();
        for block in blocks {
            match loads
                .iter_mut()
                .find(|sum| sum.load.total_cmp(&block.load).is_eq())
            {
                Some(sum) => {
                    (sum.count, sum.late) = (sum.count + block.count, sum.late + block.late);
                }
                None => loads.push(*block),
            }
        }
        loads.sort_by(|one, other| one.load.total_cmp(&other.load));
        // Half an operation more or less keeps the logit finite.
        let level = |sum: &LateBlock| {
            let most = 1.0 - 0.5 / sum.count;
            let share = (sum.late / sum.count)
                .max(self.floor + 0.5 / sum.count)
                .min(most);
            self.level(share)
        };
        let wanted = self.level(limit);
        let first = loads.iter().position(|sum| level(sum) > wanted + ABOVE);
        let below = first.unwrap_or(loads.len()).checked_sub(1);
        let (low, high) = match (below, first) {
            (Some(below), Some(first)) => (loads[below], loads[first]),
            (Some(below), None) => return (loads[below].load, None),
            (None, _) => return (0.0, None),
        };
        let part = (wanted - level(&low)) / (level(&high) - level(&low));
        let ceiling = (part > 0.0).then_some(Ceiling {
            load: high.load,
            crossed: low.load + part * (high.load - low.load),
        });
        (low.load, ceiling)
    }

    /// The most likely line, by Fisher's scoring with the slope's expected value as a prior. The
    /// variance of late operations, which come in bunches, is that of all blocks together and theory's, each
    /// with the weight of its degrees of freedom.
    fn through(blocks: &[LateBlock], centre: f64, limit: f64, queue: Queue) -> Option<Self> {
        const STEPS: usize = 60;
        const STEP_MAX: f64 = 1.0;
        const SMALL: f64 = 1e-9;
        let (prior, precision) = ((queue.slope_per_load * centre).ln(), SLOPE_SPREAD.powi(-2));
        let bunching = queue.bunching(centre, limit);
        let floor = queue.floor;
        let late: f64 = blocks.iter().map(|block| block.late).sum();
        let all: f64 = blocks.iter().map(|block| block.count).sum();
        let share = ((late / all - floor) / (1.0 - floor)).clamp(0.5 / all, 1.0 - 0.5 / all);
        let mut curve = Self {
            floor,
            centre,
            intercept: logit(share),
            log_slope: prior,
            covariance: [0.0; 3],
            degrees: BUNCHING_DEGREES,
            highest: 0.0,
            ceiling: None,
        };
        let mut dispersion = 1.0;
        for step in 0..STEPS {
            let [mut gradient, mut own] = [[0.0; 2]; 2];
            let [mut cross, mut squares, mut variance] = [0.0; 3];
            let [mut expected, mut expected_squares] = [0.0; 2];
            for block in blocks {
                let terms = curve.terms(block);
                for (row, factor) in [1.0, terms.rise].into_iter().enumerate() {
                    gradient[row] += terms.score * factor;
                    own[row] += terms.information * factor * factor;
                }
                cross += terms.information * terms.rise;
                squares += terms.excess * terms.excess;
                variance += terms.variance;
                expected += terms.information;
                expected_squares += terms.information * terms.information;
            }
            let pull = (curve.log_slope - prior) * precision * dispersion;
            gradient[1] -= pull;
            let information = [own[0], cross, own[1] + precision * dispersion];
            let inverse = inverted(information)?;
            let change = [
                inverse[0] * gradient[0] + inverse[1] * gradient[1],
                inverse[1] * gradient[0] + inverse[2] * gradient[1],
            ];
            let largest = change[0].abs().max(change[1].abs());
            let scale = (STEP_MAX / largest).min(1.0);
            curve.intercept += scale * change[0];
            curve.log_slope += scale * change[1];
            let worth = expected * expected / expected_squares;
            let spread = squares / variance * (worth / (worth - 1.0).max(0.5));
            let of_blocks = (worth - 1.0).max(0.0);
            curve.degrees = of_blocks + BUNCHING_DEGREES;
            let settled = largest < SMALL && step > 2;
            if settled || step == STEPS - 1 {
                curve.covariance = inverse.map(|entry| entry * dispersion);
                break;
            }
            if spread.is_finite() {
                let sum = BUNCHING_DEGREES * bunching + of_blocks * spread;
                dispersion = (sum / curve.degrees).max(1.0);
            }
        }
        let is_known = curve.intercept.is_finite() && curve.log_slope.is_finite();
        is_known.then_some(curve)
    }

    /// The rise of the logit from the centre to this load.
    fn rise(&self, load: f64) -> f64 {
        self.log_slope.exp() * (load / self.centre - 1.0)
    }

    /// What a block says about the line.
    fn terms(&self, block: &LateBlock) -> BlockTerms {
        let rise = self.rise(block.load);
        let share = self.share(block.load);
        let queued = (share - self.floor) / (1.0 - self.floor);
        let steepness = (1.0 - self.floor) * queued * (1.0 - queued);
        let (excess, each) = (block.late - block.count * share, share * (1.0 - share));
        BlockTerms {
            rise,
            excess,
            variance: block.count * each,
            score: excess * steepness / each,
            information: block.count * steepness * steepness / each,
        }
    }

    /// The share of late operations at this load.
    pub fn share(&self, load: f64) -> f64 {
        let queued = 1.0 / (1.0 + (-self.intercept - self.rise(load)).exp());
        self.floor + (1.0 - self.floor) * queued
    }

    /// The logit of the share that queues make late where this share is.
    fn level(&self, share: f64) -> f64 {
        logit((share - self.floor) / (1.0 - self.floor))
    }

    /// The load at which this share is late; 0 if it is at every load.
    pub fn load_of(&self, share: f64) -> f64 {
        self.at_rise(self.level(share) - self.intercept)
    }

    fn at_rise(&self, rise: f64) -> f64 {
        (self.centre * (1.0 + rise / self.log_slope.exp())).max(0.0)
    }

    /// The load at which the logit of the share that queues make late is `nats` above that of `limit`.
    pub fn load_beside(&self, limit: f64, nats: f64) -> f64 {
        self.at_rise(self.level(limit) + nats - self.intercept)
    }

    /// The load at which the share `limit` is late.
    pub fn root(&self, limit: f64) -> Root {
        let by_line = self.load_of(limit);
        let (low, high) = inverted(self.covariance).map_or((0.0, None), |precision| {
            self.ends(limit, by_line, precision)
        });
        let ceiling = self.ceiling.filter(|ceiling| by_line >= ceiling.load);
        let load = ceiling.map_or(by_line, |ceiling| ceiling.crossed);
        let (low, high) = match ceiling {
            Some(ceiling) => (
                low.min(self.highest * (1.0 - SHAPE)),
                Some(high.map_or(ceiling.load, |high| high.min(ceiling.load))),
            ),
            None => (low, high),
        };
        let (low, high) = match self.gap(limit) {
            Some((below, above)) => (
                low.min(below),
                high.zip(above).map(|(high, above)| high.max(above)),
            ),
            None => (low, high),
        };
        Root {
            load,
            interval: Limits {
                low: low.min(load * (1.0 - SHAPE)),
                high: high.map(|high| high.max(load * (1.0 + SHAPE))),
            },
        }
    }

    /// The ends of the loads around `load` that some line within the 95 % ellipse of level and
    /// logarithm of the slope takes to `limit`; `precision` is the inverse of their covariance. This
    /// is Fieller's interval for a slope that is uncertain by a factor, and so never negative.
    fn ends(&self, limit: f64, load: f64, precision: [f64; 3]) -> (f64, Option<f64>) {
        const MOST: f64 = 4.0;
        let t = t_quantile(self.degrees);
        let is_possible = |load: f64| self.distance(limit, load, precision, t) <= t * t;
        let end = |beyond: f64| last_inside(load, beyond, is_possible);
        let low = if is_possible(0.0) { 0.0 } else { end(0.0) };
        let most = MOST * load.max(self.centre);
        (low, (!is_possible(most)).then(|| end(most)))
    }

    /// The squared distance, in standard deviations, of this curve from the nearest one that has its
    /// root at `load` and a slope within `t` of its own.
    fn distance(&self, limit: f64, load: f64, [of_level, both, of_slope]: [f64; 3], t: f64) -> f64 {
        const STEPS: i32 = 100;
        let (wanted, rise) = (self.level(limit) - self.intercept, self.rise(load));
        let most = t * self.covariance[2].sqrt();
        let squared = |step: i32| {
            let slope = most * f64::from(step) / f64::from(STEPS);
            let level = wanted - rise * slope.exp();
            of_level * level * level + 2.0 * both * level * slope + of_slope * slope * slope
        };
        (-STEPS..=STEPS).map(squared).fold(f64::INFINITY, f64::min)
    }
}

/// The value between `inside` and `outside` up to which `is_inside` holds, by halving.
pub fn last_inside(mut inside: f64, mut outside: f64, is_inside: impl Fn(f64) -> bool) -> f64 {
    const HALVINGS: usize = 60;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(inside, outside);
        if is_inside(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    inside
}

/// A block beside the line.
struct BlockTerms {
    /// The rise of the logit from the centre.
    rise: f64,
    /// Late operations beyond those expected.
    excess: f64,
    /// Variance of their number if all were independent.
    variance: f64,
    /// The derivative of the likelihood by the logit, and its expected square.
    score: f64,
    information: f64,
}

fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

/// The inverse of a symmetric matrix of two rows, given as its two diagonal entries with the other
/// one between them.
fn inverted([one, cross, other]: [f64; 3]) -> Option<[f64; 3]> {
    let determinant = one * other - cross * cross;
    (determinant > 0.0).then(|| [other / determinant, -cross / determinant, one / determinant])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rigel_model::workload::rng::Rng;

    /// Blocks of `seconds` each of one server with exponential times of a second on average: its
    /// queue is carried over from block to block, as in a measurement.
    fn queue(rng: &mut Rng, rate: f64, bound: f64, blocks: usize, seconds: f64) -> Vec<LateBlock> {
        let (mut due, mut free) = (0.0f64, 0.0f64);
        let mut all = vec![
            LateBlock {
                load: rate,
                count: 0.0,
                late: 0.0,
            };
            blocks
        ];
        let before = 50.0;
        loop {
            due += rng.exponential() / rate;
            free = due.max(free) + rng.exponential();
            if due < before {
                continue;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let at = ((due - before) / seconds) as usize;
            let Some(block) = all.get_mut(at) else {
                return all;
            };
            block.count += 1.0;
            block.late += f64::from(u8::from(free - due > bound));
        }
    }

    /// One server with exponential times.
    fn one_server(bound: f64) -> Queue {
        Queue {
            slope_per_load: bound,
            variation: 1.0,
            capacity: None,
            floor: 0.0,
        }
    }

    #[test]
    fn late_operations_of_a_queue_come_in_bunches_as_theory_has_them() {
        // Blocks are much longer than a queue's memory, which is 380 at nine tenths.
        for rate in [0.5, 0.6, 0.7, 0.8, 0.9] {
            let share = 0.01f64;
            let bound = -share.ln() / (1.0 - rate);
            let mut rng = Rng::new(7, 0);
            let blocks = queue(&mut rng, rate, bound, 400, 20_000.0);
            let mean = blocks.iter().map(|it| it.late).sum::<f64>() / 400.0;
            let squares = blocks
                .iter()
                .map(|it| (it.late - mean).powi(2))
                .sum::<f64>();
            let (found, expected) = (
                squares / 399.0 / mean,
                one_server(bound).bunching(rate, share),
            );
            let times = found / expected;
            assert!(
                (0.75..1.25).contains(&times),
                "at {rate}: {found} {expected}"
            );
        }
    }

    #[test]
    fn the_root_is_the_rate_at_which_the_tail_of_a_queue_meets_the_bound() {
        // Response times of M/M/1 are exponential with the rate 1 - λ (Kleinrock, Queueing Systems
        // 1, 1975), so that one in a hundred exceeds t at λ = 1 - ln 100 / t.
        let bound = 20.0;
        let truth = 1.0 - 100f64.ln() / bound;
        let (mut ratios, mut held) = (Vec::new(), 0);
        for seed in 0..200 {
            let mut rng = Rng::new(seed, 0);
            let rates = [0.7, 0.77, 0.8, 0.74, 0.79];
            let blocks: Vec<LateBlock> = rates
                .into_iter()
                .flat_map(|rate| queue(&mut rng, rate, bound, 12, 800.0))
                .collect();
            let root = Curve::fit(&blocks, 0.01, one_server(bound))
                .unwrap()
                .root(0.01);
            ratios.push(root.load / truth);
            held += usize::from(root.interval.contains(truth));
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        // The tail of a queue is exponential in the load, and so not exactly a line in logit.
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        assert!(held >= 184, "{held} of 200");
    }

    #[test]
    fn the_root_is_below_a_load_far_beyond_the_limit() {
        // As near saturation, where a queue is there for seconds, and then is not.
        let blocks = |load: f64, late: [f64; 4]| {
            let count = 10_000.0;
            late.map(|late| LateBlock { load, count, late })
        };
        let blocks = [
            blocks(93.0, [0.0; 4]),
            blocks(97.0, [0.0, 0.0, 12.0, 0.0]),
            blocks(99.4, [0.0, 9_500.0, 700.0, 1_500.0]),
        ];
        let curve = Curve::fit(&blocks.concat(), 0.01, one_server(0.3)).unwrap();
        assert!(
            curve.load_of(0.01) > 99.4,
            "by the line alone: {}",
            curve.load_of(0.01)
        );
        let root = curve.root(0.01);
        assert!((97.0..99.4).contains(&root.load), "{root:?}");
        assert!(root.interval.contains(root.load), "{root:?}");
        assert!(
            root.interval.high.is_some_and(|high| high <= 99.4),
            "{root:?}"
        );
    }

    #[test]
    fn where_no_load_is_near_the_root_it_may_be_anywhere_between_them() {
        let block = |load: f64, late: f64| LateBlock {
            load,
            count: 10_000.0,
            late,
        };
        let low = [block(50.0, 0.0), block(60.0, 1.0), block(70.0, 2.0)];
        let fit = |blocks: &[LateBlock]| Curve::fit(blocks, 0.01, one_server(1.0)).unwrap();
        let open = fit(&low);
        assert_eq!(open.gap(0.01), Some((70.0, None)));
        assert_eq!(open.root(0.01).interval.high, None);
        let between = fit(&[&low[..], &[block(100.0, 9_990.0)]].concat());
        assert_eq!(between.gap(0.01), Some((70.0, Some(100.0))));
        let limits = between.root(0.01).interval;
        assert!(
            limits.contains(70.0) && limits.contains(100.0),
            "{limits:?}"
        );
        let near = fit(&[&low[..], &[block(80.0, 90.0)]].concat());
        assert_eq!(near.gap(0.01), None);
    }

    #[test]
    fn what_is_late_without_a_queue_does_not_lower_the_root() {
        // A quarter of a percent at any load, and a steep rise at 100.
        let share = |load: f64| 0.0025 + 0.9975 / (1.0 + (-2.0 * (load - 101.0)).exp());
        let block = |load: f64| LateBlock {
            load,
            count: 1e6,
            late: 1e6 * share(load),
        };
        let blocks = [80.0, 90.0, 97.0, 98.0, 99.5].map(block);
        let truth = 101.0 + logit(0.0075 / 0.9975) / 2.0;
        let queue = Queue {
            floor: 0.0025,
            ..one_server(2.0)
        };
        let known = Curve::fit(&blocks, 0.01, queue).unwrap().load_of(0.01);
        assert!((known / truth - 1.0).abs() < 1e-3, "{known} {truth}");
    }

    #[test]
    fn without_late_operations_there_is_no_curve() {
        let block = |late| LateBlock {
            load: 10.0,
            count: 100.0,
            late,
        };
        assert_eq!(Curve::fit(&[block(0.0); 5], 0.01, one_server(1.0)), None);
        assert_eq!(Curve::fit(&[block(100.0); 5], 0.01, one_server(1.0)), None);
        assert_eq!(Curve::fit(&[], 0.01, one_server(1.0)), None);
    }

    proptest! {
        #[test]
        fn the_root_lies_within_its_interval_whatever_was_measured(
            blocks in prop::collection::vec((0.0..1e6f64, 0u32..100_000, 0.0..1.0f64), 0..40),
            limit in 0.0001..0.5f64,
            slope_per_load in 1e-6..10.0f64,
            variation in 0.0..10.0f64,
            capacity in prop::option::of(0.0..1e6f64),
            floor in 0.0..1.0f64,
        ) {
            let blocks: Vec<LateBlock> = blocks
                .into_iter()
                .map(|(load, count, share)| {
                    let count = f64::from(count);
                    LateBlock { load, count, late: (share * count).floor() }
                })
                .collect();
            if let Some(curve) = Curve::fit(&blocks, limit, Queue { slope_per_load, variation, capacity, floor }) {
                let root = curve.root(limit);
                prop_assert!(root.load.is_finite() && root.load >= 0.0, "{root:?}");
                prop_assert!(root.interval.contains(root.load), "{root:?}");
            }
        }
    }
}
