//! `PostgreSQL`: connections, sessions, loading, and the server's counters.
//!
//! Input: addresses and a request. Output: tables, or an engine on them.

mod client;
mod engine;
mod group;
mod load;
mod pipeline;
mod plans;
mod protocol;
mod session;
mod status;
mod trust;
mod watch;

pub(super) use client::connect;
pub(super) use engine::{Postgres, files};
pub(super) use load::{find, load, remove};
pub use plans::{PlanRun, PlanSession};
pub use protocol::converse;
pub(super) use status::PostgresStatus;
