//! The points of one run together: a curve, a calibration, a matrix, layers.
//!
//! Input: the records and summaries of a run's points. Output: maximum throughput, the knee, the
//! latency at each load, the cost of each layer, and the findings that only several points show.

pub mod at_load;
pub mod bracket;
pub mod bucket;
pub mod calibration;
pub mod closing;
pub mod credit;
pub mod crossing;
pub mod delivered;
mod full_flights;
pub mod kernel_witness;
mod large;
pub mod reference;
pub mod reread;
pub mod run_checks;
pub mod shape;
pub mod sustained;
pub mod unseen;
