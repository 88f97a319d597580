//! The request of `rigel layers`.

use rigel_model::{Nanos, SqlWork, WarmUp};
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
    /// The work of the sessions at [`Layer::Row`](rigel_model::Layer::Row).
    pub work: SqlWork,
    /// True if [`Layer::Prefetch`](rigel_model::Layer::Prefetch) is measured too.
    #[serde(default)]
    pub prefetch: bool,
    /// True if [`Layer::Single`](rigel_model::Layer::Single) is measured too.
    pub single: bool,
    /// The engine of [`Layer::Async`](rigel_model::Layer::Async): the best that the machine
    /// allows.
    pub asynchronous: String,
}
