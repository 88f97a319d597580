//! The request of `rigel calibrate`.

use rigel_analyse::plan::ranks::is_alone;
use rigel_model::record::journal::Header;
use rigel_model::{Bound, Nanos, Provisioned, Ratio, SyncMethod};
use serde::{Deserialize, Serialize};

/// Which log writes to files of their own a calibration measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnLogs {
    /// None: there is no directory for the files.
    #[default]
    None,
    /// A file in each state.
    All,
}

impl OwnLogs {
    /// True if there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

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
    /// Minimum measured time of a point, over all its visits; 0 in runs of versions that measured
    /// each point in one piece.
    #[serde(default)]
    pub point_least: Nanos,
    /// Maximum measured time of a point, precise or not.
    pub point_most: Nanos,
    /// Once the run has measured for this long, imprecise points are visited no more; `None` if
    /// only the maximum time of a point counts.
    #[serde(default)]
    pub visits_until: Option<Nanos>,
    /// Measured time of each closing measurement; 0 for none.
    #[serde(default)]
    pub closing: Nanos,
    /// `num_physical_disks` of `CALIBRATE_IO`: the second depth of the search, after depth 1.
    pub num_disks: u32,
    /// Maximum depth of random reads.
    pub depth_max: u32,
    /// True if random writes and log writes are measured too.
    pub writes: bool,
    /// Log writes to files of their own.
    #[serde(default, skip_serializing_if = "OwnLogs::is_none")]
    pub own_logs: OwnLogs,
    /// The methods by which one writer commits to a log that is reused, beside fdatasync.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_methods: Vec<SyncMethod>,
    /// True if the whole target is written before writes are measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub precondition: bool,
    /// A cache is suspected to hold all of the target if half of the reads at depth 1 take less
    /// than this: then parts are read again after the sweep. `None` if none is suspected whatever
    /// they take, and in runs of versions that did not read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect_below: Option<Nanos>,
    /// What the volume was sold with; `None` if the user did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<Provisioned>,
    /// True if the user gave the bound; false for the default.
    #[serde(default)]
    pub bound_given: bool,
    /// Number of ranks that measure together; 0 if one process measures alone. Depths are those of
    /// each rank, offered rates those of all together.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub ranks: u32,
}

/// True if the user gave the latency bound: what it is by default nobody expects of every storage.
pub(super) fn is_bound_given(header: &Header) -> bool {
    let request = header.invocation.asked::<CalibrateRequest>("calibrate");
    request.is_some_and(|request| request.bound_given)
}
