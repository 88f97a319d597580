//! Comparisons of runs.
//!
//! Input: two or more runs, with the conditions under which each was measured. Output: the
//! conditions that differ, and for each figure its ratio and whether the difference is real.

pub(super) mod claimed;
pub(super) mod comparison;
pub(super) mod conditions;
mod counts;
pub(super) mod difference;
pub(super) mod over_time;
pub(super) mod power;
pub(super) mod row;
pub(super) mod side;
mod standstill;
pub(super) mod subject;
