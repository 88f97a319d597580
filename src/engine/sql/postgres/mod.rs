//! `PostgreSQL`: sessions, loading, and the server's counters.
//!
//! Input: addresses and a request. Output: tables, or an engine on them.

mod engine;
mod load;

pub(super) use engine::{Postgres, connect, files};
pub(super) use load::{find, load, remove};
