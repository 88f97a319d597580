//! Executes single operations: the only module that touches files and devices that are measured.
//!
//! Input: [`Op`]s in slots. Output: [`Completion`]s. An engine does not measure itself, does not
//! know loads or records, and reads time only through the clock it is given.

pub mod blocking;
mod buffers;
mod file_engine;
pub mod fork;
pub mod guard;
pub mod inherited;
pub mod layout;
mod ledger;
pub mod level;
pub mod libaio;
pub mod log;
mod mounts;
pub mod null;
pub mod opened;
pub mod presence;
pub mod probe;
pub mod psync;
mod registry;
pub mod sampled;
pub mod scratch;
pub mod signature;
pub mod sim;
#[cfg(test)]
pub(crate) mod temp_dir;
pub mod trace;
pub mod uring;
mod verification;
pub mod volume;

pub use file_engine::{FileEngine, Open};
pub use registry::{AUTO, ENGINES, choose, info, names};

use crate::clock::Clock;
use rigel_model::record::{Latencies, Verified};
use rigel_model::{Completion, Error, Fault, Nanos, Op, Outcome, ServerSample, Slot};

/// One ring, one file handle, one connection: a session with outstanding operations.
///
/// A session belongs to the thread that opened it.
pub trait Session {
    /// Accepts `op` in `slot`, which must be free. May leave the start of the operation to
    /// [`reap`](Session::reap).
    ///
    /// # Errors
    /// The session is broken. A failure of the operation itself is reported as its outcome.
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault>;

    /// Starts everything that was submitted, then appends completed operations to `out`.
    ///
    /// Waits until `until` at the latest for one of them, and does not wait if `until` has passed.
    /// A session waits nowhere else.
    ///
    /// # Errors
    /// The session is broken.
    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault>;

    /// Looks at the bytes of a completed operation, if its engine verifies. Returns its outcome, which is a failure if
    /// they are wrong. Called after the end of the operation was timed, and before its slot is used again.
    fn look(&mut self, _slot: Slot, outcome: Outcome) -> Outcome {
        outcome
    }
}

/// A way to execute operations on one target.
pub trait Engine: Send + Sync {
    /// Name of the engine in options.
    fn name(&self) -> &'static str;

    /// Features used on this machine, and features that were not available, for the record.
    fn about(&self) -> String;

    /// Clock of its sessions.
    fn clock(&self) -> Clock;

    /// Maximum number of outstanding operations per session.
    fn slots_max(&self) -> usize;

    /// Size of the part of the volume that operations can reach, in bytes.
    fn usable(&self) -> u64;

    /// True if sessions [look](Session::look) at what they read.
    fn verifies(&self) -> bool {
        false
    }

    /// What looking found since the last call; `None` if nobody looked.
    fn verified(&self) -> Option<Verified> {
        None
    }

    /// How long syncs took that were calls of their own, since the last call; `None` if there were none.
    fn syncs(&self) -> Option<Latencies> {
        None
    }

    /// Observer of a target with its own counters, independent of the sessions.
    fn server_monitor(&self) -> Option<&dyn ServerMonitor> {
        None
    }

    /// Opens a session with one slot for each of `lengths`, the maximum operation size of the slot
    /// in bytes.
    ///
    /// # Errors
    /// The system refuses a resource of the session.
    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error>;
}

/// Observes a server during a measurement, outside its sessions: its counters, and the waits of the
/// sessions.
pub trait ServerMonitor: Sync {
    /// Begins a point: discards the waits seen before.
    fn begin(&self);

    /// Samples the current waits of the sessions. Takes about a millisecond.
    fn look(&self);

    /// The server's counters; `None` if it does not answer.
    fn counters(&self) -> Option<ServerSample>;

    /// Waits until the counters include all work of sessions that are now closed, a few seconds at
    /// most.
    fn flush(&self);

    /// The first process of each server, if all servers run on this machine.
    fn processes(&self) -> Vec<u32>;
}
