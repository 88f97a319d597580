//! Tests on what this machine has: files, devices, signals, terminals, sockets. They wait more than they compute.
//!
//! A file here is a module, declared below. `cargo test --test machine guard::` runs those of one file.

#[path = "../common/mod.rs"]
mod common;

mod engines;
mod guard;
mod guard_attacks;
mod hostile;
mod interrupt;
mod live;
mod secrets;
mod serve;
mod soak;
