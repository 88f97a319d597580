//! The engine that does nothing: every operation completes at once.
//!
//! It measures the tool itself. It is also a skeleton to copy for a new engine; see
//! docs/adding-an-engine.md.

use super::{Engine, Session};
use crate::clock::Clock;
use rigel_model::{Completion, Error, Fault, Nanos, Op, Outcome, Slot};

/// An engine without a target.
#[derive(Debug)]
pub struct Null {
    clock: Clock,
    bytes: u64,
}

impl Null {
    /// Creates a nonexistent target of `bytes`.
    pub fn new(clock: Clock, bytes: u64) -> Self {
        Self { clock, bytes }
    }
}

impl Engine for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn about(&self) -> String {
        "null: every operation completes at once; the figures are those of the tool itself".into()
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        usize::from(Slot::MAX)
    }

    fn usable(&self) -> u64 {
        self.bytes
    }

    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        Ok(Box::new(NullSession {
            clock: &self.clock,
            over: Vec::with_capacity(lengths.len()),
        }))
    }
}

struct NullSession<'a> {
    clock: &'a Clock,
    over: Vec<Completion>,
}

impl Session for NullSession<'_> {
    fn submit(&mut self, slot: Slot, _: Op) -> Result<(), Fault> {
        self.over.push(Completion {
            slot,
            outcome: Outcome::Done,
        });
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        if self.over.is_empty() {
            self.clock.wait_until(until);
        }
        out.append(&mut self.over);
        Ok(())
    }
}
