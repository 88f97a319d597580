//! What ranks ask of whoever started them, at the beginning and at the end.

use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos};
use serde::{Deserialize, Serialize};

/// When this rank entered and left a barrier, on its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarrierTimes {
    /// Before its request was written.
    pub enter: Nanos,
    /// After the reply was read.
    pub leave: Nanos,
}

/// The process manager that started the ranks, or a library that speaks to it.
pub trait ProcessManager: std::fmt::Debug + Send {
    /// Number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Waits until all ranks have come here, for at most `within`.
    ///
    /// # Errors
    /// Not all ranks came, or the process manager is gone.
    fn barrier(&mut self, clock: &Clock, within: Nanos) -> Result<BarrierTimes, Error>;

    /// The longest text that can be announced, in bytes.
    fn room(&self) -> usize;

    /// Gives all ranks a text, and waits until all have come here; called once, by rank 0.
    ///
    /// # Errors
    /// As [`ProcessManager::barrier`], or the text is longer than there is room.
    fn announce(&mut self, text: &str, clock: &Clock, within: Nanos)
    -> Result<BarrierTimes, Error>;

    /// The text that rank 0 announces, called by every other rank.
    ///
    /// # Errors
    /// As [`ProcessManager::barrier`], or the text arrived damaged.
    fn announced(&mut self, clock: &Clock, within: Nanos) -> Result<(String, BarrierTimes), Error>;

    /// Says goodbye, after a barrier that all ranks have passed.
    ///
    /// # Errors
    /// The process manager is gone.
    fn finalize(&mut self) -> Result<(), Error>;

    /// Asks for the end of all ranks, this one included. It may not return.
    ///
    /// # Errors
    /// The process manager is gone.
    fn abort(&mut self, status: u8) -> Result<(), Error>;
}
