//! One point: what its record means.
//!
//! Input: the record of a point and the samples of its host. Output: its summary, with the load of
//! the host, the counters of a database, and the findings that one point shows. It knows no other
//! point and not why this one was measured.

pub mod backlog;
pub mod bytes;
pub mod coverage;
pub mod events;
pub mod expected;
pub mod host;
pub mod kernel_time;
pub mod late;
pub mod load;
pub mod lost;
mod modes;
pub mod objective;
pub mod of_ranks;
pub mod skew;
pub mod so_far;
pub mod sql;
pub mod stalls;
pub mod steady;
pub mod summary;
pub(crate) mod suspended;
pub mod syncs;
pub mod verified;
pub mod visit_part;
pub mod visits;
pub mod witness;
