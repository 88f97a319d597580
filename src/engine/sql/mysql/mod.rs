//! `MariaDB` and `MySQL`: sessions, loading, and the servers' counters.
//!
//! Input: addresses and a request. Output: tables, or an engine on them.

mod engine;
mod load;
mod watch;

pub(super) use engine::{Mysql, connect_outside};
pub(super) use load::{find, load, remove};
