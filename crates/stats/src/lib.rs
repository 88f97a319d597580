//! The statistical core: figures with their intervals.
//!
//! Input: numbers of windows and blocks, in order of time. Output: means and
//! knees, each with its 95 % interval. It knows no record, no verb and no unit, and never fails:
//! what is not known is `None`.

pub mod curve;
pub mod estimate;
pub mod knee;
pub mod mean;
pub mod noise;
pub mod robust;
pub mod verdict;
