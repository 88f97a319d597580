//! Conducts runs: point after point into the journal.
//!
//! Input: plans and targets. Output: records in a journal. It prints nothing.

mod asked;
pub mod preflight;
pub mod run;
mod stalls;
pub mod watch;

#[cfg(test)]
#[path = "../../device/src/engine/temp_dir.rs"]
mod temp_dir;
