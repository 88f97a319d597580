//! `MariaDB` and `MySQL`: connections, sessions, loading, and the servers' counters.
//!
//! Input: addresses and a request. Output: tables, or an engine on them.

mod client;
mod connection;
mod engine;
mod load;
mod status;
mod trust;
mod watch;

pub(super) use client::connect_outside;
pub(super) use engine::Mysql;
pub(super) use load::{find, load, remove};
pub(super) use status::MysqlStatus;
