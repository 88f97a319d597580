//! What a measurement on a model must find where no closed form is known: a simulation of the device, which
//! shares nothing with Rigel's own but the description.
//!
//! Input: the description of a model, the length of its operations and what of them its cache answers. Output: what
//! the device does if it goes on like this for ever: credit has been used up where a load needs it, and stalls come.

use super::truths::{Queue, bisect};
use rigel_model::workload::rng::Rng;
use rigel_model::{Bound, Distribution, Limit, SimSpec};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Late operations of a simulation near the rate that keeps a bound, if the rate is needed exactly: their share is
/// known to a percent or two though they come in bunches, and the rate far better.
pub(crate) const EXACTLY: f64 = 100_000.0;

/// The same for a first look, which costs a tenth.
pub(crate) const ROUGHLY: f64 = 10_000.0;

/// Halvings of the interval that holds the rate.
const STEPS: u32 = 14;

/// Stalls that a simulation meets at least.
const STALLS: f64 = 20.0;

/// Operations of a closed loop in a simulation.
const OPERATIONS: u32 = 1_000_000;

/// The deepest closed loop of a calibration.
const DEPTH_MAX: usize = 256;

/// The block of small reads, in bytes, and of large ones.
pub(crate) const SMALL: u32 = 8192;
pub(crate) const LARGE: u32 = 1 << 20;

/// A value of a device, or the lowest and highest where its state decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl From<f64> for Truth {
    fn from(value: f64) -> Self {
        let (low, high) = (value, value);
        Self { low, high }
    }
}

impl Truth {
    /// The range that holds both.
    pub(crate) fn covering(self, other: Self) -> Self {
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        Self { low, high }
    }

    /// Wider by this share at both ends.
    pub(crate) fn widened(self, share: f64) -> Self {
        let (low, high) = (self.low * (1.0 - share), self.high * (1.0 + share));
        Self { low, high }
    }

    /// The same in another unit.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        let (low, high) = (self.low * factor, self.high * factor);
        Self { low, high }
    }

    pub(crate) fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// How far a value lies outside, as a share of the nearest end.
    pub(crate) fn miss(self, value: f64) -> f64 {
        let (below, above) = (self.low - value, value - self.high);
        (below / self.low).max(above / self.high).max(0.0)
    }
}

/// The description of a target such as `sim:4,1ms`.
///
/// # Panics
/// Unless it is one.
pub(crate) fn spec(target: &str) -> SimSpec {
    let words = target.strip_prefix("sim:");
    let spec = words.and_then(|words| words.parse().ok());
    spec.unwrap_or_else(|| panic!("{target} is no model"))
}

/// What a value is with an empty cache and with a full one; `None` if it has none in either state.
pub(crate) fn in_each_state(
    spec: &SimSpec,
    length: u32,
    value: impl Fn(Device<'_>) -> Option<Truth>,
) -> Option<Truth> {
    let empty = value(Device::of(spec, length));
    if spec.cache.is_none() {
        return empty;
    }
    let full = value(Device::of(spec, length).with_full_cache());
    match (empty, full) {
        (Some(empty), Some(full)) => Some(empty.covering(full)),
        (one, other) => one.or(other),
    }
}

/// A model in one state of its cache, with operations of one length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device<'a> {
    spec: &'a SimSpec,
    /// Bytes of an operation.
    length: f64,
    /// Share of operations that the cache answers.
    hits: f64,
}

impl<'a> Device<'a> {
    /// With an empty cache.
    pub(crate) fn of(spec: &'a SimSpec, length: u32) -> Self {
        Self {
            spec,
            length: f64::from(length),
            hits: 0.0,
        }
    }

    /// With a cache that holds what random reads of the whole volume leave in it.
    pub(crate) fn with_full_cache(self) -> Self {
        let share = |bytes: u64| (bytes as f64 / self.spec.bytes.0 as f64).min(1.0);
        let hits = self.spec.cache.map_or(0.0, |cache| share(cache.bytes.0));
        Self { hits, ..self }
    }

    /// Seconds that a transfer takes beside the service time.
    fn transfer(self) -> f64 {
        let seconds = |bytes: u64| self.length / bytes as f64;
        self.spec.bandwidth.map_or(0.0, |it| seconds(it.0))
    }

    /// Mean service time in seconds.
    fn mean(self) -> f64 {
        let hit = self.spec.cache.map_or(0.0, |it| it.service.as_secs_f64());
        let (share, slow) = self.slow();
        let normal = (1.0 - share) * self.spec.service.as_secs_f64() + share * slow;
        self.hits * hit + (1.0 - self.hits) * (normal + self.transfer())
    }

    /// Share of slow operations, and their service time in seconds.
    fn slow(self) -> (f64, f64) {
        let of = self.spec.slow;
        of.map_or((0.0, 0.0), |it| (it.share.get(), it.service.as_secs_f64()))
    }

    /// Length and period of stalls in seconds.
    fn stall(self) -> Option<(f64, f64)> {
        let of = self.spec.stall;
        of.map(|it| (it.length.as_secs_f64(), it.period.as_secs_f64()))
    }

    /// Share of the time that the device works.
    fn works(self) -> f64 {
        self.stall()
            .map_or(1.0, |(length, period)| 1.0 - length / period)
    }

    /// Operations per second that the servers complete between stalls.
    fn served(self) -> f64 {
        f64::from(self.spec.servers) / self.mean()
    }

    /// The limits, each with the tokens of an operation.
    fn limits(self) -> impl Iterator<Item = (Limit, f64)> {
        let each = [(self.spec.limit, 1.0), (self.spec.byte_limit, self.length)];
        each.into_iter()
            .filter_map(|(limit, tokens)| Some((limit?, tokens)))
    }

    /// Operations per second that the limits let pass.
    fn limited(self) -> f64 {
        self.limits()
            .map(|(limit, tokens)| limit.rate as f64 / tokens)
            .fold(f64::INFINITY, f64::min)
    }

    /// Operations per second that the device completes at most. During a stall tokens are saved for no more than
    /// its credit and the operations that wait, so with a limit the depth decides how much of a stall is made up
    /// for: from what the credit does, to what the deepest closed loop does.
    pub(crate) fn capacity(self) -> Truth {
        let (works, served, limited) = (self.works(), self.served(), self.limited());
        let high = (works * served).min(limited);
        let (length, period) = self.stall().unwrap_or_default();
        let saved = |(limit, tokens): (Limit, f64)| limit.burst as f64 / tokens / period;
        let credit = self.limits().map(saved).fold(f64::INFINITY, f64::min);
        let low = high.min(limited * works + credit);
        if length <= 0.0 || low >= high {
            return high.into();
        }
        let operations = (STALLS * period * high).max(f64::from(OPERATIONS));
        let rate = self.closed(DEPTH_MAX, operations).rate;
        Truth::from(low).covering(rate.into())
    }

    /// The greatest rate at which Poisson arrivals keep the bound, by simulations with about `late` operations
    /// beyond it; `None` if no rate does.
    pub(crate) fn greatest_rate(self, bound: Bound, late: f64) -> Option<f64> {
        let is_exponential = self.spec.distribution == Distribution::Exponential;
        let is_plain = self.spec.slow.is_none() && self.spec.stall.is_none() && self.hits <= 0.0;
        // With credit in the bucket nothing waits for a token, until more than the limit is offered.
        let saves = self
            .limits()
            .all(|(limit, tokens)| limit.burst as f64 > tokens);
        let most = self.limited().min(self.works() * self.served());
        let seconds = bound.latency.as_secs_f64();
        if is_exponential && is_plain && saves && self.spec.bandwidth.is_none() {
            let queue = Queue {
                servers: self.spec.servers,
                service: self.spec.service.as_secs_f64(),
                rate: 0.0,
            };
            let rate = queue.greatest_rate(bound.quantile, seconds).min(most);
            return (rate > 0.0).then_some(rate);
        }
        let allowed = 1.0 - bound.quantile;
        let operations = late / allowed;
        let is_kept = |rate: f64| self.late(rate, seconds, operations, allowed) < allowed;
        // One in a hundred never waits for another, so what is late then is late at any rate.
        let (mut low, mut high) = (most / 100.0, most);
        if !is_kept(low) {
            return None;
        }
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if is_kept(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// The share of Poisson arrivals that take longer than `bound`; far beyond `allowed`, only that it is more.
    fn late(self, rate: f64, bound: f64, operations: f64, allowed: f64) -> f64 {
        let Some((length, period)) = self.stall() else {
            return self.open(rate, bound, operations, allowed, None);
        };
        // The queue of a stall drains at the speed that the load leaves.
        let spare = 1.0 - rate / self.served();
        let (drained, surely_late) = (length / spare, (length - bound) / spare / period);
        if spare <= 0.0 || surely_late > 3.0 * allowed {
            return 1.0;
        }
        // Between stalls that are far apart nothing is left of them: fewer such seconds are simulated, and counted
        // for all of them.
        let shorter = (8.0 * drained).max(operations / rate / STALLS).min(period);
        let operations = operations.max(STALLS * shorter * rate);
        let with = self.open(rate, bound, operations, 1.0, Some((length, shorter)));
        if shorter >= period {
            return with;
        }
        let without = self.open(rate, bound, operations, allowed, None);
        without + (with - without) * shorter / period
    }

    /// The share of Poisson arrivals that take longer than `bound`, with stalls of this length and period.
    fn open(
        self,
        rate: f64,
        bound: f64,
        operations: f64,
        allowed: f64,
        stall: Option<(f64, f64)>,
    ) -> f64 {
        let mut servers = Servers::new(self, stall, true);
        // Twice as many as allowed decide before the end.
        let enough = 2.0 * allowed * operations;
        let (mut due, mut late, mut done) = (0.0, 0.0, 0.0);
        while done < operations && late < enough {
            due += servers.rng.exponential() / rate;
            done += 1.0;
            late += f64::from(u8::from(servers.serve(due) - due > bound));
        }
        late / done
    }

    /// A closed loop of this depth.
    pub(crate) fn closed(self, depth: usize, operations: f64) -> Closed {
        // Credit stays where the loop needs less than the limit, and is gone for ever where it needs more.
        let needs = depth as f64 / self.mean();
        let has_credit = needs.min(self.works() * self.served()) < self.limited();
        let mut servers = Servers::new(self, self.stall(), has_credit);
        let mut due: BinaryHeap<Reverse<u64>> = (0..depth).map(|_| order(0.0)).collect();
        // A tenth is its warm-up.
        let (mut began, mut done, mut now) = (0.0, 0.0, 0.0);
        let mut responses = Vec::new();
        while done < operations * 1.1 {
            let Some(Reverse(first)) = due.pop() else {
                break;
            };
            now = f64::from_bits(first);
            let end = servers.serve(now);
            due.push(order(end));
            done += 1.0;
            if done <= operations * 0.1 {
                began = now;
            } else {
                responses.push(end - now);
            }
        }
        Closed {
            rate: responses.len() as f64 / (now - began),
            responses,
        }
    }

    /// The response time that this share of the operations of one reader does not exceed.
    pub(crate) fn idle_quantile(self, quantile: f64) -> f64 {
        let alone = 1.0 / self.mean();
        let level = match self.stall() {
            // One operation in each stall takes longer than any other: of many that are met by chance, what a level
            // is worth is known without.
            Some((_, period)) if alone * period > 10.0 / (1.0 - quantile) => {
                let share = 1.0 / (alone * period);
                1.0 - (1.0 - quantile - share) / (1.0 - share)
            }
            Some(_) => return self.closed(1, f64::from(OPERATIONS)).quantile(quantile),
            None => quantile,
        };
        let waits = self
            .limits()
            .any(|(limit, tokens)| limit.burst as f64 <= tokens || alone > self.limited());
        if waits {
            let spec = SimSpec {
                stall: None,
                ..self.spec.clone()
            };
            let spec = &spec;
            return Device { spec, ..self }
                .closed(1, f64::from(OPERATIONS))
                .quantile(level);
        }
        let longest = self.slow().1.max(self.spec.service.as_secs_f64() * 100.0) + self.transfer();
        bisect(2.0 * longest, |time| self.longer(time) > 1.0 - level)
    }

    /// Share of service times above `time`.
    fn longer(self, time: f64) -> f64 {
        let is_longer = |fixed: f64| f64::from(u8::from(fixed > time));
        let hit = self.spec.cache.map_or(0.0, |it| it.service.as_secs_f64());
        let (share, slow) = self.slow();
        let (service, transfer) = (self.spec.service.as_secs_f64(), self.transfer());
        let normal = match self.spec.distribution {
            Distribution::Fixed => is_longer(service + transfer),
            Distribution::Exponential => (-(time - transfer).max(0.0) / service).exp(),
        };
        let missed = share * is_longer(slow + transfer) + (1.0 - share) * normal;
        self.hits * is_longer(hit) + (1.0 - self.hits) * missed
    }
}

/// What a closed loop did.
pub(crate) struct Closed {
    /// Operations per second.
    pub(crate) rate: f64,
    responses: Vec<f64>,
}

impl Closed {
    /// The response time that this share of the operations does not exceed.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    pub(crate) fn quantile(mut self, quantile: f64) -> f64 {
        let at = (self.responses.len() as f64 * quantile) as usize;
        let at = at.min(self.responses.len() - 1);
        *self.responses.select_nth_unstable_by(at, f64::total_cmp).1
    }
}

/// Times above zero are in the order of their bits.
fn order(seconds: f64) -> Reverse<u64> {
    Reverse(seconds.to_bits())
}

/// The tokens of a limit, by their number at one time: below zero, operations wait for theirs.
struct Tokens {
    limit: Limit,
    of_operation: f64,
    number: f64,
    at: f64,
}

impl Tokens {
    /// When an operation that is due now has its tokens: once the bucket has them all, or is full.
    fn take(&mut self, now: f64) -> f64 {
        let (rate, most) = (self.limit.rate as f64, self.limit.burst as f64);
        self.number = (self.number + (now - self.at) * rate).min(most);
        self.at = now;
        let missing = (most.min(self.of_operation) - self.number).max(0.0);
        self.number -= self.of_operation;
        now + missing / rate
    }
}

/// The servers of a device with their queue.
struct Servers<'a> {
    device: Device<'a>,
    stall: Option<(f64, f64)>,
    rng: Rng,
    free: BinaryHeap<Reverse<u64>>,
    tokens: Vec<Tokens>,
}

impl<'a> Servers<'a> {
    fn new(device: Device<'a>, stall: Option<(f64, f64)>, has_credit: bool) -> Self {
        let tokens = |(limit, of_operation): (Limit, f64)| Tokens {
            limit,
            of_operation,
            number: if has_credit { limit.burst as f64 } else { 0.0 },
            at: 0.0,
        };
        Self {
            device,
            stall,
            rng: Rng::new(1, 1),
            free: (0..device.spec.servers).map(|_| order(0.0)).collect(),
            tokens: device.limits().map(tokens).collect(),
        }
    }

    /// When an operation ends that is due now. Operations are served in the order of these calls.
    fn serve(&mut self, due: f64) -> f64 {
        let admitted = self.tokens.iter_mut().map(|tokens| tokens.take(due));
        let mut start = admitted.fold(due, f64::max);
        let work = self.work();
        if let Some(Reverse(server)) = self.free.pop() {
            start = start.max(f64::from_bits(server));
        }
        let end = start + stretched(self.stall, start, work);
        self.free.push(order(end));
        end
    }

    /// The service time of the next operation.
    fn work(&mut self) -> f64 {
        let Device { spec, hits, .. } = self.device;
        if let Some(cache) = spec.cache
            && hits > 0.0
            && self.rng.unit() < hits
        {
            return cache.service.as_secs_f64();
        }
        let slow = spec.slow.filter(|slow| self.rng.unit() < slow.share.get());
        let service = spec.service.as_secs_f64();
        let work = match (slow, spec.distribution) {
            (Some(slow), _) => slow.service.as_secs_f64(),
            (None, Distribution::Fixed) => service,
            (None, Distribution::Exponential) => service * self.rng.exponential(),
        };
        work + self.device.transfer()
    }
}

/// How long work lasts with the stalls that it meets: each period ends with one.
fn stretched(stall: Option<(f64, f64)>, start: f64, work: f64) -> f64 {
    let Some((length, period)) = stall else {
        return work;
    };
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
