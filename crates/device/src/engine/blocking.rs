//! Adapter for blocking engines: turns a closure that executes one operation into a session with
//! one slot.

use super::Session;
use crate::clock::Clock;
use rigel_model::{Completion, Fault, Nanos, Op, Outcome, Slot};

/// A session with one slot, whose operation is executed by `execute` in [`Session::reap`].
pub struct Blocking<F> {
    clock: Clock,
    pending: Option<(Slot, Op)>,
    execute: F,
}

impl<F: FnMut(Op) -> Result<Outcome, Fault>> Blocking<F> {
    /// Creates a session that executes operations with `execute`.
    pub fn new(clock: Clock, execute: F) -> Self {
        Self {
            clock,
            pending: None,
            execute,
        }
    }
}

impl<F: FnMut(Op) -> Result<Outcome, Fault>> Session for Blocking<F> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        self.pending = Some((slot, op));
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        match self.pending.take() {
            Some((slot, op)) => out.push(Completion {
                slot,
                outcome: (self.execute)(op)?,
            }),
            None => self.clock.wait_until(until),
        }
        Ok(())
    }
}
