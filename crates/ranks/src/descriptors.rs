//! Open files of rank 0, which has a connection to every other rank.

use rigel_device::limits;
use rigel_model::{Error, failed};
use rustix::process::Resource;

/// Open files for everything but connections to ranks: devices, results, and handshakes with whoever
/// else connects.
const OTHERS: u64 = 320;

/// Raises this process's limit of open files, as far as it must be for connections to `size` ranks.
///
/// # Errors
/// The hard limit does not allow it.
pub(super) fn raise_for(size: usize) -> Result<(), Error> {
    let needed = size as u64 + OTHERS;
    limits::raise(Resource::Nofile, needed).map_err(|why| {
        failed!(
            "rank 0 needs {needed} open files for {size} ranks: {why}",
            "raise the limit on its host: ulimit -Hn {needed}, or start fewer ranks"
        )
    })
}
