//! What the runs so far of one kind on one storage say of the next one.
//!
//! The interval of a run is of that run: what the storage does for longer than a run adds nothing to its
//! error. Only other runs show how much one differs from the next.

use super::comparison::max_iops;
use super::conditions::is_of_the_same;
use super::subject::Subject;
use rigel_stats::estimate::ERROR_MIN;
use rigel_stats::mean::{Interval, Limits, prediction};
use serde::Serialize;

/// Maximum number of runs that are used, the latest.
pub const RUNS_MOST: usize = 20;

/// What is expected of the next run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NextRun {
    /// Number of runs that it is made of, this one included.
    pub runs: usize,
    /// Where the next run's maximum rate of small reads lies with 95 % confidence.
    pub max_iops: Interval,
    /// The same for this run, by those before it alone; `None` with fewer than three of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_max_iops: Option<Interval>,
    /// True if this run, or its interval, lies within in part; `None` if nothing was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_as_expected: Option<bool>,
}

impl NextRun {
    /// What `run` and those `before` it say: of the latest of these that are whole, and of the same
    /// work on the same target, host and engine. `None` with fewer than three runs.
    pub fn of(run: &Subject, before: &[Subject]) -> Option<Self> {
        let most = |run: &Subject| Some(max_iops(run)?.value);
        let own = max_iops(run).filter(|_| run.whole)?;
        let this = own.value;
        let around = own.interval.and_then(Limits::both).unwrap_or(Interval {
            low: this,
            high: this,
        });
        let mut like: Vec<&Subject> = before
            .iter()
            .filter(|one| one.whole && one.header.started < run.header.started)
            .filter(|one| is_of_the_same(run, one))
            .collect();
        like.sort_by(|one, other| other.header.started.cmp(&one.header.started));
        let latest = like.into_iter().take(RUNS_MOST - 1);
        let mut values: Vec<f64> = latest.filter_map(most).collect();
        let expected_max_iops = prediction(&values, ERROR_MIN);
        values.push(this);
        Some(Self {
            runs: values.len(),
            max_iops: prediction(&values, ERROR_MIN)?,
            expected_max_iops,
            is_as_expected: expected_max_iops.map(|expected| expected.overlaps(around)),
        })
    }
}
