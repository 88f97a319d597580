//! What a measurement on a model must find where no closed form is known: a simulation of the device, which
//! shares nothing with Rigel's own but the description.
//!
//! Input: the description of a model and a bound. Output: the rate at which the bound is met exactly.

use super::truths::Queue;
use rigel_model::workload::rng::Rng;
use rigel_model::{Bound, Distribution, SimSpec};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Operations of one simulation that are late where the bound is met: their share is known to a percent or
/// two though they come in bunches, and the rate far better.
const LATE: f64 = 100_000.0;

/// Halvings of the interval that holds the rate.
const STEPS: u32 = 14;

/// The description of a target such as `sim:4,1ms`.
///
/// # Panics
/// Unless it is one.
pub(crate) fn spec(target: &str) -> SimSpec {
    let words = target.strip_prefix("sim:");
    let spec = words.and_then(|words| words.parse().ok());
    spec.unwrap_or_else(|| panic!("{target} is no model"))
}

/// The greatest rate at which Poisson arrivals keep the bound.
pub(crate) fn greatest_rate(spec: &SimSpec, bound: Bound) -> f64 {
    let service = spec.service.as_secs_f64();
    let seconds = bound.latency.as_secs_f64();
    let is_exponential = spec.distribution == Distribution::Exponential;
    let limit = spec.limit.map(|limit| limit.rate as f64);
    let queue = Queue {
        servers: spec.servers,
        service,
        rate: 0.0,
    };
    // With credit in the bucket nothing waits for a token, until more than the limit is offered.
    let saves = spec.limit.is_none_or(|limit| limit.burst > 1);
    if is_exponential && saves && spec.slow.is_none() && spec.stall.is_none() {
        let rate = queue.greatest_rate(bound.quantile, seconds);
        return limit.map_or(rate, |limit| rate.min(limit));
    }
    let (mut low, mut high) = (0.0, limit.unwrap_or(f64::INFINITY).min(capacity(spec)));
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if late(spec, middle, bound) < 1.0 - bound.quantile {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Operations per second that the model completes at most.
pub(crate) fn capacity(spec: &SimSpec) -> f64 {
    let slow = spec.slow.map_or((0.0, 0.0), |slow| {
        (slow.share.get(), slow.service.as_secs_f64())
    });
    let mean = (1.0 - slow.0) * spec.service.as_secs_f64() + slow.0 * slow.1;
    let works = spec.stall.map_or(1.0, |stall| {
        1.0 - stall.length.as_secs_f64() / stall.period.as_secs_f64()
    });
    let served = works * f64::from(spec.servers) / mean;
    spec.limit
        .map_or(served, |limit| served.min(limit.rate as f64))
}

/// The share of operations that take longer than the bound.
fn late(spec: &SimSpec, rate: f64, bound: Bound) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a hundred million for a p99.9"
    )]
    let operations = (LATE / (1.0 - bound.quantile)) as u32;
    let bound = bound.latency.as_secs_f64();
    let mut rng = Rng::new(1, 1);
    let order = |seconds: f64| Reverse(seconds.to_bits());
    let mut free: BinaryHeap<Reverse<u64>> = (0..spec.servers).map(|_| order(0.0)).collect();
    let (mut due, mut token, mut late) = (0.0, 0.0, 0_u32);
    for _ in 0..operations {
        due += rng.exponential() / rate;
        let mut start: f64 = due;
        if let Some(limit) = spec.limit {
            start = start.max(token);
            token = start + 1.0 / limit.rate as f64;
        }
        let slow = spec.slow.filter(|slow| rng.unit() < slow.share.get());
        let work = match (slow, spec.distribution) {
            (Some(slow), _) => slow.service.as_secs_f64(),
            (None, Distribution::Fixed) => spec.service.as_secs_f64(),
            (None, Distribution::Exponential) => spec.service.as_secs_f64() * rng.exponential(),
        };
        // Times above zero are in the order of their bits.
        if let Some(Reverse(server)) = free.pop() {
            start = start.max(f64::from_bits(server));
        }
        let end = start + stretched(spec, start, work);
        free.push(order(end));
        late += u32::from(end - due > bound);
    }
    f64::from(late) / f64::from(operations)
}

/// How long work lasts with the stalls that it meets: each period ends with one.
fn stretched(spec: &SimSpec, start: f64, work: f64) -> f64 {
    let Some(stall) = spec.stall else {
        return work;
    };
    let (length, period) = (stall.length.as_secs_f64(), stall.period.as_secs_f64());
    let (mut left, mut now, mut ends) = (work, start, (start / period).floor() * period + period);
    loop {
        let works_until = ends - length;
        if now + left <= works_until {
            return now + left - start;
        }
        left -= (works_until - now).max(0.0);
        (now, ends) = (now.max(ends), ends + period);
    }
}
