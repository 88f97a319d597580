//! What an engine for files and devices tells the registry.

use super::Engine;
use super::volume::Volume;
use crate::clock::Clock;
use rigel_model::{EngineInfo, Error};

/// An engine for files and devices.
#[derive(Debug)]
pub struct FileEngine {
    /// What the rest of the program knows about it.
    pub info: EngineInfo,
    /// Opens it on a volume.
    pub open: Open,
}

/// Opens an engine on a volume. The lengths have the maximum number of slots that a session will
/// need.
pub type Open = fn(Clock, Volume, &[u32]) -> Result<Box<dyn Engine>, Error>;
