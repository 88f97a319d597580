//! The points of one run together: a curve, a calibration, a matrix, layers.
//!
//! Input: the records and summaries of a run's points. Output: maximum throughput, the knee, the
//! latency at each load, the cost of each layer, and the findings that only several points show.

pub(super) mod at_load;
pub(super) mod bracket;
pub(super) mod calibration;
pub(super) mod curve;
pub(super) mod fit;
mod kernel_witness;
pub(super) mod knee;
pub(super) mod layers;
pub(super) mod matrix;
pub(super) mod reread;
pub(super) mod run_checks;
pub(super) mod shape;
pub(super) mod sustained;
pub(super) mod unseen;
