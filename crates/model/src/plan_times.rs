//! Times and costs of two plans for the same rows of a table: by its index, and by reading all of it.

use serde::{Deserialize, Serialize};

/// How a statement reads rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TablePlan {
    /// Each row by the index: random reads of single blocks.
    Index,
    /// All blocks of the table in their order.
    Sequential,
}

/// One execution of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanTime {
    /// Number of the round, from 1.
    pub round: u32,
    /// The plan.
    pub plan: TablePlan,
    /// Number of rows that the statement selects.
    pub rows: u64,
    /// Time of the execution in milliseconds, by the server.
    pub execution_ms: f64,
    /// Blocks that were not in the server's buffer cache.
    pub blocks_read: u64,
    /// Bytes that the server's processes read from storage meanwhile; `None` if unknown.
    pub storage_bytes: Option<u64>,
}

/// What the planner estimates for a number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanCosts {
    /// Number of rows that the statement selects.
    pub rows: u64,
    /// Cost of reading all of the table.
    pub sequential: f64,
    /// Cost by the index with a `random_page_cost` of 1, and with one of 10. The cost is linear in
    /// it.
    pub index: [f64; 2],
}
