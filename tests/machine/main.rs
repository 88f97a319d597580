//! Tests of features of this machine: files, devices, signals, terminals, sockets. They wait more
//! than they compute.
//!
//! Each file here is a module, declared below. `cargo test --test machine guard::` runs the tests
//! of one file.

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the tests here use a part of it")]
#[path = "../truth/device.rs"]
mod device;

mod cluster;
mod engines;
mod guard;
mod guard_attacks;
mod hang;
mod hostile;
mod hostile_inputs;
mod interrupt;
mod limits;
mod live;
mod ranks;
mod ranks_fit;
mod ranks_hang;
mod ranks_hostile;
mod ranks_soak;
mod rights;
mod secrets;
mod serve;
mod soak;
