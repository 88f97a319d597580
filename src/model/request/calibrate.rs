//! The request of `rigel calibrate`.

use crate::model::{Bound, Nanos, Ratio};
use serde::{Deserialize, Serialize};

/// What `calibrate` was asked for. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrateRequest {
    /// Bytes of a small I/O: the database's block.
    pub block: u32,
    /// Bytes of a large I/O.
    pub large: u32,
    /// The response time that a sustained rate must keep.
    pub bound: Bound,
    /// Half-width of a figure's 95 % interval, as a share of it, at which a point ends.
    pub precision: Ratio,
    /// Maximum time of a point, precise or not.
    pub point_most: Nanos,
    /// `num_physical_disks` of `CALIBRATE_IO`: the second depth of the search, after depth 1.
    pub num_disks: u32,
    /// Greatest depth of random reads.
    pub depth_max: u32,
    /// Random writes, and log writes, are measured too.
    pub writes: bool,
    /// The bound was asked for, and not the usual one taken.
    #[serde(default)]
    pub bound_given: bool,
}
