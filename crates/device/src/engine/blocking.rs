//! Adapter for blocking engines: makes a session with one slot of what executes one operation.

use super::Session;
use crate::clock::Clock;
use rigel_model::{Completion, Fault, Nanos, Op, Outcome, Slot};

/// Executes one operation, and waits for it.
pub trait Execute {
    /// Executes it.
    ///
    /// # Errors
    /// The session is broken.
    fn execute(&mut self, op: Op) -> Result<Outcome, Fault>;

    /// As [`Session::look`], of the last operation.
    fn look(&mut self, outcome: Outcome) -> Outcome {
        outcome
    }
}

impl<F: FnMut(Op) -> Result<Outcome, Fault>> Execute for F {
    fn execute(&mut self, op: Op) -> Result<Outcome, Fault> {
        self(op)
    }
}

/// A session with one slot, whose operation is executed in [`Session::reap`].
pub struct Blocking<E> {
    clock: Clock,
    pending: Option<(Slot, Op)>,
    execute: E,
}

impl<E: Execute> Blocking<E> {
    /// Creates a session that executes operations with `execute`.
    pub fn new(clock: Clock, execute: E) -> Self {
        Self {
            clock,
            pending: None,
            execute,
        }
    }
}

impl<E: Execute> Session for Blocking<E> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        self.pending = Some((slot, op));
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        match self.pending.take() {
            Some((slot, op)) => out.push(Completion {
                slot,
                outcome: self.execute.execute(op)?,
            }),
            None => self.clock.wait_until(until),
        }
        Ok(())
    }

    fn look(&mut self, _: Slot, outcome: Outcome) -> Outcome {
        self.execute.look(outcome)
    }
}
