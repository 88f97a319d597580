//! Times and costs of plans on tables that Rigel loaded, by the server's EXPLAIN.

use super::client::{connect, failed};
use super::protocol::PostgresClient;
use super::trust::refuse_foreign;
use crate::access::{Access, Address};
use crate::tables::{SCHEMA, blocks_table};
use rigel_model::{Error, TablePlan, failed};
use serde_json::Value;

/// A session that executes statements by a given plan.
pub struct PlanSession {
    client: PostgresClient,
    address: Address,
}

/// What EXPLAIN says of an execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanRun {
    /// Time in milliseconds.
    pub execution_ms: f64,
    /// Blocks that were not in the server's buffer cache.
    pub blocks_read: u64,
}

impl PlanSession {
    /// Connects to the first server of `access`.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, or its tables could run code of somebody else.
    pub fn open(access: &Access) -> Result<Self, Error> {
        let address = access.servers[0].clone();
        let mut client = connect(access, &address)?;
        refuse_foreign(&mut client, &address)?;
        // Only the two plans are compared, and the clock is not read for each row.
        let settings = "SET max_parallel_workers_per_gather = 0; SET jit = off; SET \
                        synchronize_seqscans = off; SET enable_bitmapscan = off; SET \
                        enable_indexonlyscan = off";
        client
            .batch(settings)
            .map_err(|error| failed(&address, "set its session", &error))?;
        Ok(Self { client, address })
    }

    /// Executes a statement for `rows` rows from `first` on by this plan.
    ///
    /// # Errors
    /// The server fails, or uses another plan.
    pub fn run(&mut self, plan: TablePlan, first: u64, rows: u64) -> Result<PlanRun, Error> {
        let explained = self.explain(Some(plan), "ANALYZE, TIMING OFF, BUFFERS", first, rows)?;
        let number = |value: &Value| value.as_f64();
        let blocks = explained["Plan"]["Shared Read Blocks"].as_u64();
        number(&explained["Execution Time"])
            .zip(blocks)
            .map(|(execution_ms, blocks_read)| PlanRun {
                execution_ms,
                blocks_read,
            })
            .ok_or_else(|| self.unclear(&explained))
    }

    /// The planner's cost of this plan with this `random_page_cost`.
    pub fn cost(
        &mut self,
        plan: TablePlan,
        random_page_cost: f64,
        first: u64,
        rows: u64,
    ) -> Result<f64, Error> {
        self.set_cost(random_page_cost)?;
        let explained = self.explain(Some(plan), "", first, rows)?;
        explained["Plan"]["Total Cost"]
            .as_f64()
            .ok_or_else(|| self.unclear(&explained))
    }

    /// The plan that the planner chooses with this `random_page_cost`.
    pub fn choice(
        &mut self,
        random_page_cost: f64,
        first: u64,
        rows: u64,
    ) -> Result<TablePlan, Error> {
        self.set_cost(random_page_cost)?;
        let explained = self.explain(None, "", first, rows)?;
        plan_of(&explained).ok_or_else(|| self.unclear(&explained))
    }

    fn set_cost(&mut self, random_page_cost: f64) -> Result<(), Error> {
        self.execute(&format!("SET random_page_cost = {random_page_cost}"))
    }

    fn execute(&mut self, statement: &str) -> Result<(), Error> {
        let done = self.client.batch(statement);
        done.map_err(|error| failed(&self.address, "plan a statement", &error))
    }

    /// The plan of a statement, as the only object of EXPLAIN's JSON.
    fn explain(
        &mut self,
        plan: Option<TablePlan>,
        options: &str,
        first: u64,
        rows: u64,
    ) -> Result<Value, Error> {
        let (index, sequential) = match plan {
            Some(TablePlan::Index) => ("on", "off"),
            Some(TablePlan::Sequential) => ("off", "on"),
            None => ("on", "on"),
        };
        self.execute(&format!(
            "SET enable_indexscan = {index}; SET enable_seqscan = {sequential}"
        ))?;
        let options = if options.is_empty() {
            "FORMAT JSON".to_string()
        } else {
            format!("{options}, FORMAT JSON")
        };
        let statement = format!(
            "EXPLAIN ({options}) SELECT count(c1) FROM {SCHEMA}.{} WHERE id >= {first} AND id < {}",
            blocks_table(0),
            first + rows
        );
        let answer = self.client.query(&statement, &[]);
        let answer =
            answer.map_err(|error| failed(&self.address, "explain a statement", &error))?;
        let text: Vec<&str> = answer.iter().map(|row| row.text(0)).collect();
        let explained: Value = serde_json::from_str(&text.join("\n")).unwrap_or_default();
        let explained = explained[0].clone();
        if plan.is_some() && plan_of(&explained) != plan {
            return Err(self.unclear(&explained));
        }
        Ok(explained)
    }

    fn unclear(&self, explained: &Value) -> Error {
        failed!(
            "'{address}' does not explain the expected plan: {explained}",
            "give another version of PostgreSQL with --server-bin",
            address = self.address
        )
    }
}

/// The plan below the aggregate.
fn plan_of(explained: &Value) -> Option<TablePlan> {
    match explained["Plan"]["Plans"][0]["Node Type"].as_str()? {
        "Index Scan" => Some(TablePlan::Index),
        "Seq Scan" => Some(TablePlan::Sequential),
        _ => None,
    }
}
