//! The request of `rigel expect`.

use super::profile::ProfileUsed;
use rigel_model::{Expectation, Nanos, Ratio};
use serde::{Deserialize, Serialize};

/// The options of `expect`. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpectRequest {
    /// What is expected, in the order in which it was given.
    pub expectations: Vec<Expectation>,
    /// The profiles that some of them come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileUsed>,
    /// Bytes of an I/O.
    pub block: u32,
    /// Bytes of an I/O of throughput.
    pub large: u32,
    /// Maximum time of all visits, with their warm-ups.
    pub budget: Nanos,
    /// Probability of a wrong answer, in the whole list.
    pub error: Ratio,
}

impl ExpectRequest {
    /// Bytes of an I/O of throughput, at least.
    pub const LARGE: u32 = 1 << 20;
}
