//! A storage device as a queueing model on virtual time: an hour of it takes a second, and its answers are known
//! beforehand.
//!
//! Operations queue, first come first served, for `servers` equal servers. With exponential service times and a
//! Poisson load that is the M/M/c queue. Stalls stop every server; an operation being served goes on afterwards.

use super::{Engine, Session};
use crate::clock::Clock;
use crate::model::{Cause, Completion, Distribution, Error, Fault, Nanos, Op, Outcome, SimSpec, Slot};
use crate::workload::rng::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The error number of an operation that the model fails: EIO.
const EIO: i32 = 5;

/// A simulated device.
#[derive(Debug)]
pub struct Sim {
    spec: SimSpec,
    seed: u64,
    clock: Clock,
}

impl Sim {
    /// A device as in `spec`, whose chances are drawn from `seed`.
    #[must_use]
    pub fn new(spec: SimSpec, seed: u64) -> Self {
        Self { spec, seed, clock: Clock::simulated() }
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
            rng: Rng::new(self.seed, now.0),
            free_at: vec![Reverse(now); self.spec.servers as usize].into(),
            outstanding: BinaryHeap::with_capacity(lengths.len()),
        }))
    }
}

struct SimSession<'a> {
    spec: &'a SimSpec,
    clock: &'a Clock,
    rng: Rng,
    /// When each server has worked off what it took on; the earliest on top.
    free_at: BinaryHeap<Reverse<Nanos>>,
    /// When each outstanding operation ends; the earliest on top.
    outstanding: BinaryHeap<Reverse<(Nanos, Slot, bool)>>,
}

impl SimSession<'_> {
    /// How long a server works on `op`.
    fn service_time(&mut self, op: Op) -> Nanos {
        let mean = self.spec.service.as_secs_f64();
        let varied = match self.spec.distribution {
            Distribution::Fixed => mean,
            Distribution::Exponential => mean * self.rng.exponential(),
        };
        let transfer = self.spec.bandwidth.map_or(0.0, |bandwidth| f64::from(op.length) / bandwidth.0 as f64);
        Nanos::from_secs_f64(varied + transfer)
    }

    /// When a server that begins at `start` has worked for `work`, with all stalls on the way waited out.
    fn end_of_work(&self, start: Nanos, work: Nanos) -> Nanos {
        let Some(stall) = self.spec.stall else { return start.plus(work) };
        // Each period begins with the working part and ends with the stall.
        let working = stall.period.0 - stall.length.0;
        let into_period = start.0 % stall.period.0;
        let period_start = start.0 - into_period;
        // Count only working time, from the beginning of the period; a start within a stall waits for its end.
        let total = into_period.min(working) + work.0;
        let (periods, rest) = (total / working, total % working);
        if rest == 0 && periods > 0 {
            return Nanos(period_start + (periods - 1) * stall.period.0 + working);
        }
        Nanos(period_start + periods * stall.period.0 + rest)
    }
}

impl Session for SimSession<'_> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        let work = self.service_time(op);
        let Reverse(free) = self.free_at.pop().unwrap_or(Reverse(Nanos(0)));
        let end = self.end_of_work(free.max(self.clock.now()), work);
        self.free_at.push(Reverse(end));
        let fails = self.spec.errors.get() > 0.0 && self.rng.unit() < self.spec.errors.get();
        self.outstanding.push(Reverse((end, slot, fails)));
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        let first = self.outstanding.peek().map_or(Nanos::MAX, |Reverse((end, ..))| *end);
        self.clock.wait_until(first.min(until));
        let now = self.clock.now();
        while let Some(Reverse((end, slot, fails))) = self.outstanding.peek().copied() {
            if end > now {
                break;
            }
            self.outstanding.pop();
            let outcome = if fails { Outcome::Failed(Cause::Errno(EIO)) } else { Outcome::Done };
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
            let clock = sim.clock();
            let (free_at, outstanding) = (BinaryHeap::new(), BinaryHeap::new());
            let session = SimSession { spec: &spec, clock: &clock, rng: Rng::new(1, 1), free_at, outstanding };
            let end = session.end_of_work(Nanos(start), Nanos(work)).0;
            // Nanosecond by nanosecond: a server works in every one that lies in no stall.
            let worked = (start..end).filter(|at| at % (stall + working) < working).count() as u64;
            prop_assert_eq!(worked, work);
            prop_assert!((end - 1) % (stall + working) < working, "it ends as soon as the work is done");
        }
    }
}
