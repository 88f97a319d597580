//! How one operation is executed: the only room that touches a target, and the only one with `unsafe`.
//!
//! Goes in: [`Op`]s in slots. Comes out: [`Completion`]s. An engine does not measure itself, knows nothing of loads
//! or records, and reads time only through the clock it is handed.

pub mod blocking;
mod buffers;
mod choose;
pub mod guard;
pub mod layout;
pub mod libaio;
mod mounts;
pub mod null;
pub mod opened;
#[cfg(test)]
pub(crate) mod place;
pub mod probe;
pub mod psync;
pub mod scratch;
pub mod signature;
pub mod sim;
pub mod sql;
pub mod uring;
pub mod volume;

pub use choose::choose;

use crate::clock::Clock;
use crate::model::{Completion, Error, Fault, Nanos, Op, Slot};

/// One ring, one file handle, one connection: a place where operations are outstanding.
///
/// A session belongs to one thread, the one that opened it.
pub trait Session {
    /// Takes on `op` in `slot`, which must be free. May leave it to [`reap`](Session::reap) to set it going.
    ///
    /// # Errors
    /// The session is broken; the operation's own failure comes as its outcome.
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault>;

    /// Sets going whatever was submitted, then adds to `out` the operations that are over. Waits for one at the
    /// latest until `until`, and does not wait at all if that has passed. The only place where a session waits.
    ///
    /// # Errors
    /// The session is broken.
    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault>;
}

/// A way to execute operations on one target.
pub trait Engine: Sync {
    /// The name it is asked for by.
    fn name(&self) -> &'static str;

    /// What it makes use of on this machine, and what it had to do without, for the record.
    fn about(&self) -> String;

    /// The clock its sessions live on.
    fn clock(&self) -> Clock;

    /// Most operations that one session can have outstanding.
    fn slots_max(&self) -> usize;

    /// Bytes of the volume that operations can reach.
    fn usable(&self) -> u64;

    /// What looks on from outside its sessions, where the target counts for itself.
    fn witness(&self) -> Option<&dyn sql::Witness> {
        None
    }

    /// Opens a session with a slot for each of `lengths`, the greatest number of bytes of an operation in it.
    ///
    /// # Errors
    /// The system refuses what the session needs.
    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error>;
}
