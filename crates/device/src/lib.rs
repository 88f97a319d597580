//! Clock, engines of files and devices, the guard, and what the kernel says of a machine.
//!
//! Input: operations, paths, the names of disks. Output: completions, facts, counters. Only this crate reads
//! time, and it has all of the `unsafe` that is not a database's.

pub mod bounded;
pub mod clock;
pub mod engine;
pub mod limits;
pub mod observe;
pub mod rights;
