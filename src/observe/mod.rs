//! Facts and counters of the host: what the machine is, what the disks are, what they are doing.
//!
//! Goes in: /proc, /sys and a device number. Comes out: [`Host`](crate::model::Host), block devices and
//! [`Sample`](crate::model::Sample)s. It never fails a run: what cannot be read is left at its default, but for how
//! devices stand on each other, which the guard insists on. It writes nothing and opens no target.

mod device;
mod host;
mod process;
mod sample;
pub mod stack;

pub use device::{devices, devices_of};
pub use host::host;
pub use process::{ProcessCounters, processes_below};
pub use sample::{Observer, set_this_thread_aside};

/// A small file of /proc or /sys without its line end; none if it cannot be read or is empty.
fn read(path: impl AsRef<std::path::Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// A small file that holds one number.
fn read_number<N: std::str::FromStr>(path: impl AsRef<std::path::Path>) -> Option<N> {
    read(path)?.parse().ok()
}
