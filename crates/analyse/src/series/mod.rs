//! Series of hours or days: the rounds of a soak, or the samples of another tool.
//!
//! Input: records of rounds, imported figures, objectives. Output: how predictable throughput and
//! latency are, what changed when, which objectives were met, and the verdict.

pub(super) mod budget;
pub(super) mod calendar;
pub(super) mod causes;
pub(super) mod change_points;
pub(super) mod episodes;
pub(super) mod fixed_work;
pub(super) mod host_shift;
pub(super) mod imported;
mod log_series;
mod noise;
pub(super) mod predictability;
pub(super) mod rounds;
mod segments;
pub(super) mod series_figures;
pub(super) mod soak;
pub(super) mod types;
mod verdict;
