//! The request of `rigel calibrate`.

use crate::model::{Bound, Nanos, Ratio};
use serde::{Deserialize, Serialize};

/// The options of `calibrate`. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrateRequest {
    /// Bytes of a small I/O: the database's block.
    pub block: u32,
    /// Bytes of a large I/O.
    pub large: u32,
    /// The response time that a sustained rate must keep.
    pub bound: Bound,
    /// A point ends when the half-width of its figures' 95 % intervals is below this fraction of
    /// their values.
    pub precision: Ratio,
    /// Maximum time of a point, precise or not.
    pub point_most: Nanos,
    /// `num_physical_disks` of `CALIBRATE_IO`: the second depth of the search, after depth 1.
    pub num_disks: u32,
    /// Maximum depth of random reads.
    pub depth_max: u32,
    /// True if random writes and log writes are measured too.
    pub writes: bool,
    /// True if the user gave the bound; false for the default.
    #[serde(default)]
    pub bound_given: bool,
}
