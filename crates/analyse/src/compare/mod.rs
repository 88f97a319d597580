//! Comparisons of runs.
//!
//! Input: two or more runs, with the conditions under which each was measured. Output: the
//! conditions that differ, and for each figure its ratio and whether the difference is real.

pub mod claimed;
pub mod comparison;
pub mod conditions;
pub mod counts;
pub mod difference;
pub mod next_run;
pub mod over_time;
pub mod power;
pub mod row;
pub mod side;
pub mod standstill;
pub mod subject;
