//! Facts and counters of the host: the machine, its disks, and their activity.
//!
//! Input: /proc, /sys and a device number. Output: [`Host`](crate::model::Host), block devices and
//! [`Sample`](crate::model::Sample)s. It never fails a run: unreadable values stay at their default. The exception is
//! the stack of devices, which the guard requires. It writes nothing and opens no target.

mod device;
mod host;
mod process;
mod sample;
pub mod stack;

pub use device::{devices, devices_of};
pub use host::host;
pub use process::{ProcessCounters, processes_below};
pub use sample::{Observer, set_this_thread_aside};

/// A small file of /proc or /sys without its line end; `None` if it cannot be read or is empty.
fn read(path: impl AsRef<std::path::Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// A small file that contains one number.
fn read_number<N: std::str::FromStr>(path: impl AsRef<std::path::Path>) -> Option<N> {
    read(path)?.parse().ok()
}
