//! The request of `rigel layers`.

use crate::model::{Nanos, SqlWork, WarmUp};
use serde::{Deserialize, Serialize};

/// What `layers` was asked for. Kept in the journal's header, so that the report can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayersRequest {
    /// I/Os outstanding, threads, or sessions: a table for each number.
    pub sessions: Vec<u32>,
    /// How often each layer is measured.
    pub rounds: u32,
    /// How long each time.
    pub point_time: Nanos,
    /// What comes before each measurement.
    pub warm_up: WarmUp,
    /// What the sessions do by [`Layer::Row`](crate::model::Layer::Row).
    pub work: SqlWork,
    /// [`Layer::Single`](crate::model::Layer::Single) is measured too.
    pub single: bool,
    /// The engine of [`Layer::Async`](crate::model::Layer::Async): the best that the machine grants.
    pub asynchronous: String,
}
