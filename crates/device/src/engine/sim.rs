//! A storage device as a queueing model on virtual time: an hour takes a second, and its results
//! are known in advance.
//!
//! Operations queue, first come first served, for `servers` equal servers. With exponential service
//! times and a Poisson load that is the M/M/c queue. Stalls stop every server; interrupted
//! operations resume afterwards. With a level, servers work faster or slower for a while. With a
//! limit, operations first wait for a token. Its credit, the level and the cache belong to the
//! device: they outlive a session.

use super::level::Levels;
use super::{Engine, Session};
use crate::clock::Clock;
use lru::LruCache;
use rigel_model::workload::rng::Rng;
use rigel_model::{
    Cache, Cause, Completion, Distribution, Error, Fault, Kind, Limit, Nanos, Op, Outcome, SimSpec,
    Slot, SpeedLevel,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;

/// Error number of a failed operation of the model: EIO.
const EIO: i32 = 5;

/// A simulated device.
#[derive(Debug)]
pub struct Sim {
    spec: SimSpec,
    seed: u64,
    clock: Clock,
    state: Mutex<SimState>,
    levels: Option<Mutex<Levels>>,
}

/// State of a device that outlives a session.
#[derive(Debug, Default)]
struct SimState {
    bucket: Bucket,
    byte_bucket: Bucket,
    cached: Recent,
}

/// Token bucket of a limit, stored as the time when it will be full again.
///
/// This is the virtual scheduling algorithm of ITU-T I.371, which needs no refilling.
#[derive(Debug, Default)]
struct Bucket {
    /// Time in nanoseconds times the rate, so that one token is an integer: `NANOS_A_SECOND`.
    full_at: u128,
}

const NANOS_A_SECOND: u128 = 1_000_000_000;

impl Bucket {
    /// Takes this number of tokens. Returns when they are available, `now` at the earliest; for more
    /// than the bucket holds, that is when it is full.
    fn take(&mut self, limit: Limit, tokens: u64, now: Nanos) -> Nanos {
        let rate = u128::from(limit.rate);
        let depth = u128::from(limit.burst.saturating_sub(tokens)) * NANOS_A_SECOND;
        let available_at = self
            .full_at
            .saturating_sub(depth)
            .div_ceil(rate)
            .max(now.0.into());
        self.full_at = self.full_at.max(available_at * rate) + u128::from(tokens) * NANOS_A_SECOND;
        Nanos(u64::try_from(available_at).unwrap_or(u64::MAX))
    }
}

/// A block: its position and its length.
type BlockSpan = (u64, u32);

/// Cache of the most recently touched blocks, up to its capacity.
#[derive(Debug)]
struct Recent {
    blocks: LruCache<BlockSpan, ()>,
    bytes: u64,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            blocks: LruCache::unbounded(),
            bytes: 0,
        }
    }
}

impl Recent {
    /// Touches the block of `op`. Returns true on a hit.
    fn touch(&mut self, cache: Cache, op: Op) -> bool {
        let block = (op.position, op.length);
        if self.blocks.get(&block).is_some() {
            return true;
        }
        self.blocks.put(block, ());
        self.bytes += u64::from(op.length);
        while self.bytes > cache.bytes.0
            && let Some((oldest, ())) = self.blocks.pop_lru()
        {
            self.bytes -= u64::from(oldest.1);
        }
        false
    }
}

impl Sim {
    /// Creates a device as described by `spec`, with `seed` for its random choices.
    ///
    /// # Errors
    /// The file of its levels cannot be read, or is not one of counts.
    pub fn open(spec: SimSpec, seed: u64) -> Result<Self, Error> {
        let levels = spec.level.as_ref();
        let levels = levels.map(|level| Levels::open(level, seed)).transpose()?;
        Ok(Self {
            spec,
            seed,
            clock: Clock::simulated(),
            state: Mutex::default(),
            levels: levels.map(Mutex::new),
        })
    }

    /// The same for a model that needs no file.
    ///
    /// # Panics
    /// Where [`Sim::open`] has an error.
    pub fn new(spec: SimSpec, seed: u64) -> Self {
        Self::open(spec, seed).expect("the model needs no file")
    }
}

impl Engine for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn about(&self) -> String {
        format!("{}: a model on virtual time, not a device", self.spec)
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        usize::from(Slot::MAX)
    }

    fn usable(&self) -> u64 {
        self.spec.bytes.0
    }

    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        let now = self.clock.now();
        Ok(Box::new(SimSession {
            spec: &self.spec,
            clock: &self.clock,
            state: &self.state,
            levels: self.levels.as_ref(),
            rng: Rng::new(self.seed, now.0),
            free_at: vec![Reverse(now); self.spec.servers as usize].into(),
            outstanding: BinaryHeap::with_capacity(lengths.len()),
        }))
    }
}

struct SimSession<'a> {
    spec: &'a SimSpec,
    clock: &'a Clock,
    state: &'a Mutex<SimState>,
    levels: Option<&'a Mutex<Levels>>,
    rng: Rng,
    /// When each server will be free; the earliest on top.
    free_at: BinaryHeap<Reverse<Nanos>>,
    /// When each outstanding operation ends; the earliest on top.
    outstanding: BinaryHeap<Reverse<(Nanos, Slot, bool)>>,
}

impl SimSession<'_> {
    /// When a server may start `op`, and the service time of the cache on a hit.
    fn admit(&self, op: Op) -> (Nanos, Option<Nanos>) {
        let now = self.clock.now();
        let limits = [self.spec.limit, self.spec.byte_limit];
        if limits == [None, None] && self.spec.cache.is_none() {
            return (now, None);
        }
        let mut state = self
            .state
            .lock()
            .expect("nothing panics while it holds the state");
        let [operations, bytes] = limits;
        let start = operations.map_or(now, |limit| state.bucket.take(limit, 1, now));
        let length = u64::from(op.length);
        let transferred = bytes.map_or(now, |limit| state.byte_bucket.take(limit, length, now));
        let start = start.max(transferred);
        let hit = self
            .spec
            .cache
            .filter(|cache| state.cached.touch(*cache, op) && op.kind == Kind::Read);
        (start, hit.map(|cache| cache.service))
    }

    /// Service time of `op` on a cache miss.
    fn service_time(&mut self, op: Op) -> Nanos {
        let mean = self.spec.service.as_secs_f64();
        let slow = self
            .spec
            .slow
            .filter(|slow| self.rng.unit() < slow.share.get());
        let varied = match (slow, self.spec.distribution) {
            (Some(slow), _) => slow.service.as_secs_f64(),
            (None, Distribution::Fixed) => mean,
            (None, Distribution::Exponential) => mean * self.rng.exponential(),
        };
        let transfer = self
            .spec
            .bandwidth
            .map_or(0.0, |bandwidth| f64::from(op.length) / bandwidth.0 as f64);
        Nanos::from_secs_f64(varied + transfer)
    }

    /// End time of `work` that a server starts at `start`, at the levels and with all stalls on the way.
    fn end_of_work(&self, start: Nanos, work: Nanos) -> Nanos {
        let Some(levels) = self.levels else {
            return self.end_at_full_speed(start, work);
        };
        let mut levels = levels.lock().expect("nothing panics while it holds them");
        let (mut now, mut left) = (start, work.0 as f64);
        loop {
            let window = now.0 / SpeedLevel::WINDOW.0;
            let ends = Nanos((window + 1) * SpeedLevel::WINDOW.0);
            let level = levels.at(window);
            // What takes more than the window has is not over in it, however long: a level of 0 has no end.
            let takes = left / level;
            if takes <= SpeedLevel::WINDOW.0 as f64 {
                let end = self.end_at_full_speed(now, rounded(takes));
                if end <= ends {
                    return end;
                }
            }
            let worked = self.worked_until(ends) - self.worked_until(now);
            left = (left - worked as f64 * level).max(0.0);
            now = ends;
        }
    }

    /// Nanoseconds without a stall from the beginning to `time`.
    fn worked_until(&self, time: Nanos) -> u64 {
        let Some(stall) = self.spec.stall else {
            return time.0;
        };
        let working = stall.period.0 - stall.length.0;
        time.0 / stall.period.0 * working + (time.0 % stall.period.0).min(working)
    }

    /// End time of `work` that a server starts at `start`, including all stalls on the way.
    fn end_at_full_speed(&self, start: Nanos, work: Nanos) -> Nanos {
        let Some(stall) = self.spec.stall else {
            return start.plus(work);
        };
        // Each period begins with the working part and ends with the stall.
        let working = stall.period.0 - stall.length.0;
        let into_period = start.0 % stall.period.0;
        let period_start = start.0 - into_period;
        // Count only working time, from the beginning of the period; a start within a stall waits
        // for the end of the stall.
        let total = into_period.min(working) + work.0;
        let (periods, rest) = (total / working, total % working);
        if rest == 0 && periods > 0 {
            return Nanos(period_start + (periods - 1) * stall.period.0 + working);
        }
        Nanos(period_start + periods * stall.period.0 + rest)
    }
}

/// A time below 2^53 ns.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within a window"
)]
fn rounded(nanos: f64) -> Nanos {
    Nanos(nanos.round() as u64)
}

impl Session for SimSession<'_> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        let (start, hit) = self.admit(op);
        let work = hit.unwrap_or_else(|| self.service_time(op));
        let Reverse(free) = self.free_at.pop().unwrap_or(Reverse(Nanos(0)));
        let end = self.end_of_work(free.max(start), work);
        self.free_at.push(Reverse(end));
        let fails = self.spec.errors.get() > 0.0 && self.rng.unit() < self.spec.errors.get();
        self.outstanding.push(Reverse((end, slot, fails)));
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        let first = self
            .outstanding
            .peek()
            .map_or(Nanos::MAX, |Reverse((end, ..))| *end);
        self.clock.wait_until(first.min(until));
        let now = self.clock.now();
        while let Some(Reverse((end, slot, fails))) = self.outstanding.peek().copied() {
            if end > now {
                break;
            }
            self.outstanding.pop();
            let outcome = if fails {
                Outcome::Failed(Cause::Errno(EIO))
            } else {
                Outcome::Done
            };
            out.push(Completion { slot, outcome });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn work_takes_its_time_and_the_stalls_on_the_way(
            start in 0u64..1000, work in 1u64..1000, stall in 1u64..50, working in 1u64..50,
        ) {
            let spec: SimSpec = format!("1,1us,stall={stall}ns/{}ns", stall + working).parse().unwrap();
            let sim = Sim::new(spec, 1);
            let end = end_of_work(&sim, start, work);
            // Nanosecond by nanosecond: a server works whenever there is no stall.
            let worked = (start..end).filter(|at| at % (stall + working) < working).count() as u64;
            prop_assert_eq!(worked, work);
            prop_assert!((end - 1) % (stall + working) < working, "it ends as soon as the work is done");
        }

        #[test]
        fn work_takes_what_the_levels_on_the_way_and_the_stalls_leave(
            start in 0u64..1_000_000_000, work in 1u64..500_000_000, stall in 0u64..200, working in 1u64..200,
        ) {
            let period = stall + working;
            let spec = format!("1,1us,stall={stall}ms/{period}ms,level=60% over 200ms");
            let sim = Sim::new(spec.parse().unwrap(), 1);
            let end = end_of_work(&sim, start, work);
            // Microsecond by microsecond: a server works whenever there is no stall, as fast as the level says.
            let mut levels = sim.levels.as_ref().unwrap().lock().unwrap();
            let speed = |now: u64| {
                let works = now % (period * 1_000_000) < working * 1_000_000;
                if works { levels.at(now / SpeedLevel::WINDOW.0) } else { 0.0 }
            };
            let worked: f64 = (start..end).step_by(1000).map(speed).sum::<f64>() * 1000.0;
            // A step may lie on both sides of each edge that it meets: those of windows and of stalls.
            let edges = (end - start) / (working * 1_000_000) + (end - start) / SpeedLevel::WINDOW.0 + 2;
            prop_assert!((worked - work as f64).abs() < 5e3 * edges as f64, "{worked} of {work}");
        }
    }

    fn end_of_work(sim: &Sim, start: u64, work: u64) -> u64 {
        let clock = sim.clock();
        let session = SimSession {
            spec: &sim.spec,
            clock: &clock,
            state: &sim.state,
            levels: sim.levels.as_ref(),
            rng: Rng::new(1, 1),
            free_at: BinaryHeap::new(),
            outstanding: BinaryHeap::new(),
        };
        session.end_of_work(Nanos(start), Nanos(work)).0
    }

    /// Mean, coefficient of variation and correlation of neighbours.
    fn moments(counts: &[f64]) -> [f64; 3] {
        let number = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / number;
        let variance: f64 = counts.iter().map(|it| (it - mean).powi(2)).sum();
        let pairs = counts.iter().zip(&counts[1..]);
        let products: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
        [mean, (variance / number).sqrt() / mean, products / variance]
    }

    #[test]
    fn the_counts_of_a_file_come_back_and_the_mean_speed_stays() {
        // Recorded levels are a slow wave and noise that lasts for some windows; these are, too.
        let mut rng = Rng::new(5, 5);
        let mut noise = 0.0;
        let counts: Vec<f64> = (0..600)
            .map(|window| {
                noise = 0.6 * noise + 0.08 * rng.normal();
                let wave = 0.1 * (f64::from(window) / 40.0).sin();
                (2000.0 * (1.0 + wave + noise)).round()
            })
            .collect();
        let path = std::env::temp_dir().join(format!("rigel-levels-{}.csv", std::process::id()));
        let lines = counts.iter().map(|count| format!("{count}\n"));
        std::fs::write(&path, format!("count\n{}", lines.collect::<String>())).unwrap();
        let open = |seed| {
            let spec = format!("4,200us,fixed,level={}", path.display());
            Sim::open(spec.parse().unwrap(), seed).unwrap()
        };
        let devices = [open(1), open(2)];
        std::fs::remove_file(&path).unwrap();
        let [_, variation, correlation] = moments(&counts);
        let mut began = Vec::new();
        for device in &devices {
            // Four servers of 200 us: 2000 in each window at the level 1, over one whole turn of the file.
            let ended = run(device, 8, Nanos::from_secs(60), reads);
            let mut counted = vec![0.0; counts.len()];
            for (end, _) in ended.iter().filter(|(end, _)| *end < Nanos::from_secs(60)) {
                counted[usize::try_from(end.0 / SpeedLevel::WINDOW.0).unwrap()] += 1.0;
            }
            let [mean, found, neighbours] = moments(&counted);
            assert!((mean - 2000.0).abs() < 1.0, "{mean}");
            assert!(
                (found / variation - 1.0).abs() < 0.02,
                "{found}, {variation}"
            );
            assert!(
                (neighbours - correlation).abs() < 0.02,
                "{neighbours}, {correlation}"
            );
            began.push(counted[0]);
        }
        assert!(
            (began[0] - began[1]).abs() > 10.0,
            "two seeds begin at one place: {began:?}"
        );
    }

    /// Keeps `depth` operations outstanding until `until`, where `position` gives the n-th
    /// position. Returns the end time and duration of each, in order of the end times.
    fn run(
        sim: &Sim,
        depth: u16,
        until: Nanos,
        position: impl Fn(u64) -> (Kind, u64),
    ) -> Vec<(Nanos, Nanos)> {
        let clock = sim.clock();
        let mut session = sim.open(&vec![8192; depth.into()]).unwrap();
        let (mut number, mut ended, mut over) = (0, Vec::new(), Vec::new());
        let mut since = vec![clock.now(); depth.into()];
        let mut submit = |session: &mut dyn Session, slot| {
            let (kind, position) = position(number);
            number += 1;
            session
                .submit(
                    slot,
                    Op {
                        position,
                        length: 8192,
                        kind,
                    },
                )
                .unwrap();
        };
        (0..depth).for_each(|slot| submit(session.as_mut(), slot));
        while clock.now() < until {
            session.reap(until, &mut over).unwrap();
            let now = clock.now();
            for Completion { slot, .. } in over.drain(..) {
                ended.push((now, now.since(since[usize::from(slot)])));
                since[usize::from(slot)] = now;
                submit(session.as_mut(), slot);
            }
        }
        ended
    }

    fn sim(spec: &str) -> Sim {
        Sim::new(spec.parse().unwrap(), 1)
    }

    fn reads(number: u64) -> (Kind, u64) {
        (Kind::Read, number)
    }

    #[test]
    fn a_limit_is_met_exactly_and_the_rest_is_waiting() {
        for rate in [7, 2000, 3000] {
            let ended = run(
                &sim(&format!("8,100us,fixed,limit={rate}/s")),
                16,
                Nanos::from_secs(10),
                reads,
            );
            // One token at the beginning, and the operation of the last token is still being
            // served.
            assert_eq!(ended.len(), 10 * rate, "{rate}");
            if rate > 1000 {
                // By Little's law, sixteen outstanding operations at this rate take this long.
                let took = ended.last().unwrap().1.as_secs_f64();
                assert!((took - 16.0 / rate as f64).abs() < 1e-6, "{took} s");
            }
        }
        // Below the limit nothing waits, and credit is saved for only one operation.
        let ended = run(
            &sim("1,1ms,fixed,limit=2000/s"),
            1,
            Nanos::from_secs(1),
            reads,
        );
        assert!(
            ended.len() == 1000 && ended.iter().all(|(_, took)| *took == Nanos::from_millis(1))
        );
    }

    #[test]
    fn burst_credit_lasts_as_long_as_theory_says_and_comes_back_when_unused() {
        // Served at 20,000 a second while 2000 are refilled: 18,000 of credit last one second.
        let device = sim("2,100us,fixed,limit=2000/s+18000");
        let count = |ended: &[(Nanos, Nanos)], from: Nanos, to: Nanos| {
            ended
                .iter()
                .filter(|(end, _)| from < *end && *end <= to)
                .count()
        };
        let ended = run(&device, 16, Nanos::from_secs(3), reads);
        let [zero, one, two] = [0, 1, 2].map(Nanos::from_secs);
        assert!(
            count(&ended, zero, one).abs_diff(20_000) <= 2,
            "{}",
            count(&ended, zero, one)
        );
        assert!(
            count(&ended, one, two).abs_diff(2000) <= 2,
            "{}",
            count(&ended, one, two)
        );
        // Idle for two seconds: 4000 tokens, although the session is a new one. They last 4000 /
        // 18,000 s.
        device.clock().wait_until(Nanos::from_secs(5));
        let ended = run(&device, 16, Nanos::from_secs(6), reads);
        // The operations outstanding at the end of the first session took sixteen tokens.
        assert!(
            count(&ended, zero, Nanos::MAX).abs_diff(6000 - 16) <= 2,
            "{}",
            ended.len()
        );
    }

    #[test]
    fn the_slow_share_takes_its_own_time_and_no_other_does() {
        let ended = run(
            &sim("1,300us,fixed,slow=50ms@0.5%"),
            1,
            Nanos::from_secs(60),
            reads,
        );
        let slow = ended
            .iter()
            .filter(|(_, took)| *took == Nanos::from_millis(50))
            .count();
        assert_eq!(
            ended
                .iter()
                .filter(|(_, took)| *took == Nanos(300_000))
                .count(),
            ended.len() - slow
        );
        let (expected, deviation) = (
            ended.len() as f64 * 0.005,
            (ended.len() as f64 * 0.005).sqrt(),
        );
        assert!(
            (slow as f64 - expected).abs() < 5.0 * deviation,
            "{slow} of {}, expected {expected}",
            ended.len()
        );
    }

    /// Fraction of the operations from `from` on that take the cache's 20 us, for passes over
    /// `blocks` of 8 KiB.
    fn hits(device: &Sim, blocks: u64, from: usize) -> f64 {
        let end = device.clock().now().plus(Nanos::from_secs(5));
        let ended = run(device, 1, end, |number| {
            (Kind::Read, number * 7919 % blocks)
        });
        let counted = &ended[from..];
        counted
            .iter()
            .filter(|(_, took)| *took == Nanos(20_000))
            .count() as f64
            / counted.len() as f64
    }

    #[test]
    fn a_working_set_that_fits_is_answered_by_the_cache_and_a_larger_one_never() {
        // 1000 blocks of 8 KiB fit.
        let device = || sim("1,100us,fixed,bandwidth=1GB,cache=8000KiB@20us");
        let (fits, too_large) = (device(), device());
        assert_eq!(hits(&fits, 1000, 1000).to_string(), "1");
        // The cache contents of the first session serve the second from the beginning.
        assert_eq!(hits(&fits, 1000, 0).to_string(), "1");
        // In a cycle with one block too many, each block is evicted before its next turn.
        assert_eq!(hits(&too_large, 1001, 0).to_string(), "0");
    }

    #[test]
    fn random_reads_hit_as_often_as_the_cache_holds_of_the_volume() {
        let device = sim("1,100us,fixed,cache=8000KiB@20us");
        let drawn = |number: u64| (Kind::Read, Rng::new(3, number).below(4000));
        let ended = run(&device, 1, Nanos::from_secs(10), drawn);
        let counted = &ended[20_000..];
        let hits = counted
            .iter()
            .filter(|(_, took)| *took == Nanos(20_000))
            .count() as f64
            / counted.len() as f64;
        assert!((hits - 0.25).abs() < 0.01, "{hits}");
    }

    #[test]
    fn writes_take_the_devices_time_and_are_read_back_from_the_cache() {
        let device = sim("1,100us,fixed,cache=1MiB@20us");
        let pairs = |number: u64| {
            (
                if number.is_multiple_of(2) {
                    Kind::Write
                } else {
                    Kind::Read
                },
                number / 2,
            )
        };
        let ended = run(&device, 1, Nanos::from_millis(120), pairs);
        let took: Vec<u64> = ended.iter().map(|(_, took)| took.0).collect();
        assert!(
            took.len() > 1000 && took.chunks_exact(2).all(|pair| pair == [100_000, 20_000]),
            "{took:?}"
        );
    }
}
