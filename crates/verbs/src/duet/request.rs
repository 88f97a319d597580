//! The request of `rigel duet`.

use rigel_model::{Nanos, Ratio, Target};
use serde::{Deserialize, Serialize};

/// The options of `duet`. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuetRequest {
    /// What is compared: each of the others with the first.
    pub arms: Vec<DuetArm>,
    /// Maximum time of all visits, with their warm-ups.
    pub budget: Nanos,
    /// Arms whose throughputs certainly differ by no more than this are equivalent.
    pub margin: Ratio,
    /// Probability of a wrong answer, at any arm and at any moment.
    pub error: Ratio,
    /// How much slower than the first another arm may be; `None` if that is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_most: Option<Ratio>,
}

/// One of the things that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuetArm {
    /// What sets it apart, in the user's words: a target, or `engine=psync`.
    pub name: String,
    /// Its target; `None` for that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Its engine; `None` for that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Bytes of an I/O.
    pub length: u32,
    /// Outstanding I/Os.
    pub depth: u32,
}

impl DuetRequest {
    /// Most arms of a run: each has its part of the time and of the error.
    pub const ARMS_MAX: usize = 8;
}
