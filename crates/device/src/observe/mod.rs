//! Facts and counters of the host: the machine, its disks, and their activity.
//!
//! Input: /proc, /sys and a device number. Output: [`Host`](rigel_model::Host), block devices and
//! [`Sample`](rigel_model::Sample)s. It never fails a run: unreadable values stay at their
//! default. The exception is the stack of devices, which the guard requires. It writes nothing and
//! opens no target.

mod device;
mod host;
mod identity;
mod process;
mod sample;
mod small_file;
pub mod stack;

pub use device::{devices, devices_of};
pub use host::host;
pub use identity::{addresses, boot_id, cpu_mask, mtu_towards, paths, storage_name};
pub use process::{ProcessCounters, processes_below};
pub use sample::{Observer, disk_counters, disk_progress, own_memory, set_this_thread_aside};
