//! The protocol of `PostgreSQL` (version 3.0) over one blocking socket.
//!
//! Input: an address and statements. Output: rows, counts, and errors in the server's words. An
//! operation is one write of a message that was made beforehand and one read into a buffer that is
//! used again: nothing is allocated, and no runtime stands between the session and its socket.
//! What a server sends is not trusted: lengths, order and number of its messages are bounded.

mod authentication;
mod binding;
mod client;
mod connect;
mod copy;
mod error;
mod inbox;
mod outbox;
mod row;
mod script;
mod socket;

pub(crate) use client::PostgresClient;
pub(super) use client::{PostgresAnswer, PostgresStatement};
pub(super) use connect::connect;
pub(super) use copy::{column, columns};
pub(super) use error::PostgresError;
pub(super) use outbox::{PostgresCall, array, types};
pub(super) use row::PostgresRow;
pub use script::converse;
pub(super) use socket::is_any_readable;
