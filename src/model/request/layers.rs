//! The request of `rigel layers`.

use crate::model::{Nanos, SqlWork, WarmUp};
use serde::{Deserialize, Serialize};

/// The options of `layers`. Kept in the journal's header, so that the report can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayersRequest {
    /// Numbers of outstanding I/Os, threads, or sessions; each number gives a table.
    pub sessions: Vec<u32>,
    /// Number of times each layer is measured.
    pub rounds: u32,
    /// Duration of each measurement.
    pub point_time: Nanos,
    /// The warm-up before each measurement.
    pub warm_up: WarmUp,
    /// The work of the sessions at [`Layer::Row`](crate::model::Layer::Row).
    pub work: SqlWork,
    /// True if [`Layer::Prefetch`](crate::model::Layer::Prefetch) is measured too.
    #[serde(default)]
    pub prefetch: bool,
    /// True if [`Layer::Single`](crate::model::Layer::Single) is measured too.
    pub single: bool,
    /// The engine of [`Layer::Async`](crate::model::Layer::Async): the best that the machine
    /// allows.
    pub asynchronous: String,
}
