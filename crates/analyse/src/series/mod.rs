//! Series of hours or days: the rounds of a soak, or the samples of another tool.
//!
//! Input: records of rounds, imported figures, objectives. Output: how predictable throughput and
//! latency are, what changed when, which objectives were met, and the verdict.

pub mod budget;
pub mod calendar;
pub mod causes;
pub mod change_points;
pub mod episodes;
pub mod fixed_work;
pub mod host_shift;
pub mod imported;
pub mod imported_checks;
pub mod log_series;
pub mod noise;
pub mod predictability;
pub mod rounds;
pub mod segments;
pub mod series_figures;
pub mod soak;
pub mod soak_request;
pub mod types;
pub mod verdict;
mod wall_clock;
