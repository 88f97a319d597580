//! Which engine works on a volume.

use super::Engine;
use super::libaio::Libaio;
use super::psync::Psync;
use super::uring::Uring;
use super::volume::Volume;
use crate::clock::Clock;
use crate::model::{Error, Finding};

/// The engine called `name` on `volume`; `auto` is `io_uring`, or libaio where the kernel forbids that, which is then
/// said. `lengths` has the most slots that a session will be asked for.
///
/// # Errors
/// There is no engine of this name, or the machine does not grant it.
pub fn choose(name: &str, volume: Volume, lengths: &[u32]) -> Result<(Box<dyn Engine>, Option<Finding>), Error> {
    let clock = Clock::real();
    match name {
        "psync" => Ok((Box::new(Psync::new(clock, volume)), None)),
        "libaio" => Ok((Box::new(Libaio::new(clock, volume)), None)),
        "uring" => Ok((Box::new(Uring::new(clock, volume, lengths)?), None)),
        "auto" => match Uring::granted(lengths.len()) {
            Ok(()) => Ok((Box::new(Uring::new(clock, volume, lengths)?), None)),
            Err(Error::Usage { what, hint } | Error::Failed { what, hint }) => {
                let finding = Finding::warning("engine", format!("{what}; libaio is used instead"), hint);
                Ok((Box::new(Libaio::new(clock, volume)), Some(finding)))
            }
        },
        _ => Err(Error::usage(format!("there is no engine '{name}'"), "take auto, uring, libaio or psync")),
    }
}
