//! One point: what its record means.
//!
//! Input: the record of a point and the samples of its host. Output: its summary, with the load of
//! the host, the counters of a database, and the findings that one point shows. It knows no other
//! point and not why this one was measured.

pub(super) mod backlog;
mod bytes;
pub(super) mod host;
pub(super) mod kernel_time;
pub(super) mod load;
pub(super) mod lost;
pub(super) mod objective;
pub(super) mod of_ranks;
mod skew;
pub(super) mod so_far;
pub mod sql;
pub(super) mod stalls;
pub(super) mod standstill;
pub(super) mod steady;
pub(super) mod summary;
pub(super) mod visits;
