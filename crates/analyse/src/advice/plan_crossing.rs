//! The `random_page_cost` at which the planner changes from an index to a sequential plan where the
//! times of the two are the same.
//!
//! Input: times of both plans on a private server, for several numbers of rows in several rounds,
//! and the planner's costs. Output: the number of rows at which the times cross in each round, and
//! the cost at which the planner's choice crosses there. If the page cache served reads, there is no
//! answer: then the times are not the storage's.

use crate::Estimate;
use rigel_model::{PlanCosts, PlanTime, TablePlan};
use serde::Serialize;

/// Maximum share of the blocks that may come from elsewhere than storage.
const CACHED_MAX: f64 = 0.05;

/// Minimum number of rounds for an interval.
const ROUNDS_MIN: usize = 3;

/// The values of `random_page_cost` of [`PlanCosts::index`].
pub const COSTS_ASKED: [f64; 2] = [1.0, 10.0];

/// What both plans on a private server show.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PlanTest {
    /// Version of the server.
    pub server: String,
    /// Rows of the table, one to a block.
    pub table_rows: u64,
    /// Bytes of a block.
    pub block: u32,
    /// The executions.
    pub times: Vec<PlanTime>,
    /// The planner's costs where the times crossed, by round.
    pub costs: Vec<PlanCosts>,
    /// The share of the blocks read that did not come from storage, by plan: index, then
    /// sequential; `None` if it is unknown.
    pub cached: [Option<f64>; 2],
    /// The cost at which the planner's choice crosses where the times do: the geometric mean over
    /// the rounds, with Student's t on their logarithms.
    pub crossing: Option<Estimate>,
    /// Why there is no such cost.
    pub why_not: Option<String>,
}

/// The number of rows at which index and sequential plan took the same time, in each round; `None`
/// for a round in which one was faster throughout.
pub fn crossings(times: &[PlanTime]) -> Vec<Option<f64>> {
    let rounds = times.iter().map(|time| time.round).max().unwrap_or(0);
    (1..=rounds)
        .map(|round| {
            let of_round = times.iter().filter(|time| time.round == round);
            crossing(&of_round.copied().collect::<Vec<_>>())
        })
        .collect()
}

/// Between the two numbers of rows next to the crossing, times are taken to follow a power of the
/// number.
fn crossing(times: &[PlanTime]) -> Option<f64> {
    let of = |plan: TablePlan| times.iter().filter(move |time| time.plan == plan);
    let sequential = of(TablePlan::Sequential).map(|time| time.execution_ms);
    let count = sequential.clone().count();
    let sequential = sequential.sum::<f64>() / count.max(1) as f64;
    let mut by_index: Vec<(f64, f64)> = of(TablePlan::Index)
        .map(|time| {
            (
                (time.rows as f64).ln(),
                (time.execution_ms / sequential).ln(),
            )
        })
        .filter(|(rows, ratio)| rows.is_finite() && ratio.is_finite())
        .collect();
    by_index.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    // The last pair with the crossing between: times vary, and may cross more than once.
    by_index.windows(2).rev().find_map(|pair| {
        let [(rows, ratio), (more_rows, more)] = pair else {
            return None;
        };
        (*ratio <= 0.0 && *more > 0.0)
            .then(|| (rows + (more_rows - rows) * ratio / (ratio - more)).exp())
    })
}

/// The `random_page_cost` at which both plans have the same cost. `None` if there is none above 0.
fn cost_at(costs: &PlanCosts) -> Option<f64> {
    let [at_one, at_ten] = costs.index;
    let slope = (at_ten - at_one) / (COSTS_ASKED[1] - COSTS_ASKED[0]);
    let cost = COSTS_ASKED[0] + (costs.sequential - at_one) / slope;
    (slope > 0.0 && cost > 0.0).then_some(cost)
}

impl PlanTest {
    /// The test with these times, and the planner's costs at the crossings of [`crossings`].
    pub fn of(
        server: String,
        (table_rows, block): (u64, u32),
        times: Vec<PlanTime>,
        costs: Vec<PlanCosts>,
    ) -> Self {
        let cached =
            [TablePlan::Index, TablePlan::Sequential].map(|plan| cached_share(&times, plan, block));
        let rounds = crossings(&times).len();
        let crossings: Vec<f64> = costs.iter().filter_map(cost_at).collect();
        let answer = match cached {
            [Some(index), Some(sequential)] if index.max(sequential) <= CACHED_MAX => {
                if costs.len() < rounds || crossings.len() < rounds {
                    Err(format!(
                        "the times crossed in {} of {rounds} rounds only",
                        crossings.len()
                    ))
                } else {
                    mean(&crossings).ok_or_else(|| "there were too few rounds".to_string())
                }
            }
            [Some(index), Some(sequential)] => Err(format!(
                "a page cache served {:.0} % of the blocks of index plans and {:.0} % of those of \
                 sequential ones, so that the times are not the storage's",
                100.0 * index.max(0.0),
                100.0 * sequential.max(0.0)
            )),
            _ => Err("it is unknown how much a page cache served".into()),
        };
        Self {
            server,
            table_rows,
            block,
            times,
            costs,
            cached,
            crossing: answer.clone().ok(),
            why_not: answer.err(),
        }
    }
}

/// The share of the blocks read that did not come from storage.
fn cached_share(times: &[PlanTime], plan: TablePlan, block: u32) -> Option<f64> {
    let of_plan = || times.iter().filter(move |time| time.plan == plan);
    let bytes: Option<u64> = of_plan().map(|time| time.storage_bytes).sum();
    let blocks: u64 = of_plan().map(|time| time.blocks_read).sum();
    (blocks > 0).then_some(())?;
    Some(1.0 - bytes? as f64 / (blocks as f64 * f64::from(block)))
}

/// Geometric mean with its interval.
fn mean(values: &[f64]) -> Option<Estimate> {
    let is_enough = values.len() >= ROUNDS_MIN;
    is_enough.then(|| Estimate::of_values(values)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 8192;
    const ROWS: u64 = 100_000;

    /// Five rounds of a storage on which a random block takes `random_us` and one of a scan
    /// `sequential_us`; `from_storage` is the share of blocks that come from there.
    fn times(random_us: f64, sequential_us: f64, from_storage: f64) -> Vec<PlanTime> {
        let time = |round, plan, rows: u64, blocks: u64, us: f64| PlanTime {
            round,
            plan,
            rows,
            execution_ms: us * blocks as f64 / 1e3,
            blocks_read: blocks,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small"
            )]
            storage_bytes: Some((blocks as f64 * f64::from(BLOCK) * from_storage) as u64),
        };
        (1..=5)
            .flat_map(|round| {
                let by_index = [5_000, 7_000, 10_000, 14_000, 20_000]
                    .map(|rows| time(round, TablePlan::Index, rows, rows, random_us));
                let all = time(round, TablePlan::Sequential, 10_000, ROWS, sequential_us);
                by_index.into_iter().chain([all])
            })
            .collect()
    }

    /// The planner's costs, without CPU: a block of a scan costs 1.
    fn costs(times: &[PlanTime]) -> Vec<PlanCosts> {
        let rows = crossings(times).into_iter().flatten();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small"
        )]
        let costs = rows.map(|rows| PlanCosts {
            rows: rows as u64,
            sequential: ROWS as f64,
            index: COSTS_ASKED.map(|cost| cost * rows),
        });
        costs.collect()
    }

    fn test_of(times: Vec<PlanTime>) -> PlanTest {
        let costs = costs(&times);
        PlanTest::of("PostgreSQL 15".into(), (ROWS, BLOCK), times, costs)
    }

    #[test]
    fn without_cpu_the_crossing_is_the_ratio_of_the_times_of_a_block() {
        let found = test_of(times(90.0, 10.0, 1.0)).crossing.unwrap();
        assert!((found.value - 9.0).abs() < 1e-6, "{found:?}");
        let interval = found.interval.unwrap().both().unwrap();
        assert!(interval.high - interval.low < 1e-6, "no round differs");
    }

    #[test]
    fn times_of_a_page_cache_give_no_answer() {
        let found = test_of(times(90.0, 10.0, 0.6));
        assert_eq!(found.crossing, None);
        assert!(found.why_not.unwrap().contains("40 %"));
        let mut unknown = times(90.0, 10.0, 1.0);
        unknown[3].storage_bytes = None;
        assert!(test_of(unknown).why_not.unwrap().contains("unknown"));
    }

    #[test]
    fn without_a_crossing_in_every_round_there_is_no_answer() {
        // The index is slower throughout.
        let found = test_of(times(900.0, 10.0, 1.0));
        assert_eq!(found.crossing, None);
        assert!(found.why_not.unwrap().contains("0 of 5 rounds"));
    }
}
