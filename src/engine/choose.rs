//! Choice of the engine for a volume.

use super::Engine;
use super::libaio::Libaio;
use super::psync::Psync;
use super::uring::Uring;
use super::volume::Volume;
use crate::clock::Clock;
use crate::model::{Error, Finding, FindingName};

/// Returns the engine called `name` for `volume`. `auto` is `io_uring`, or libaio with a warning if the kernel forbids
/// `io_uring`. `lengths` has the maximum number of slots that a session will need.
///
/// # Errors
/// There is no engine of this name, or the machine does not allow it.
pub fn choose(name: &str, volume: Volume, lengths: &[u32]) -> Result<(Box<dyn Engine>, Option<Finding>), Error> {
    let clock = Clock::real();
    match name {
        "psync" => Ok((Box::new(Psync::new(clock, volume)), None)),
        "libaio" => Ok((Box::new(Libaio::new(clock, volume)), None)),
        "uring" => Ok((Box::new(Uring::new(clock, volume, lengths)?), None)),
        "auto" => match Uring::granted(lengths.len()) {
            Ok(()) => Ok((Box::new(Uring::new(clock, volume, lengths)?), None)),
            Err(Error::Usage { what, hint } | Error::Failed { what, hint }) => {
                let finding = Finding::warning(FindingName::Engine, format!("{what}; libaio is used instead"), hint);
                Ok((Box::new(Libaio::new(clock, volume)), Some(finding)))
            }
        },
        _ => Err(Error::usage(format!("there is no engine '{name}'"), "take auto, uring, libaio or psync")),
    }
}
