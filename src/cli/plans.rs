//! Index and sequential plans on a private PostgreSQL, for `rigel advise --plans-on`.
//!
//! Input: a directory on the storage under test. Output: the times of both plans at several numbers
//! of rows, the planner's costs where they cross, and what follows for `random_page_cost`. The
//! server is removed before this returns.

use super::conf::LOAD_DEGREE;
use super::output::remark;
use super::private_server::{self, Private};
use super::progress::ProgressMode;
use super::stop::stop_flag;
use rigel_analyse::{PLAN_COSTS_ASKED, PlanTest, plan_crossings};
use rigel_database::PlanSession;
use rigel_device::observe::processes_below;
use rigel_model::{
    Bytes, Dbms, Error, MIB, PlanCosts, PlanTime, PrivateServer, TablePlan, Tables, failed, usage,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of rounds.
const ROUNDS: u32 = 5;

/// Numbers of rows that are read by the index, as multiples of that at which the first look expects
/// the times to cross. The storage may be twice as fast for a while.
const ROWS: [f64; 5] = [0.4, 0.65, 1.0, 1.5, 2.4];

/// Share of the table's rows that the first look reads by the index.
const FIRST_LOOK: f64 = 0.01;

/// The server's block: `BLCKSZ` of nearly every build.
const BLOCK: u32 = 8192;

/// Size of the server's buffer cache, and the smallest table: several times as large.
const BUFFER_CACHE: Bytes = Bytes(32 * MIB);
const TABLE_MIN: Bytes = Bytes(256 * MIB);

/// What is measured, and with which programs.
pub(super) struct PlansRequest<'a> {
    /// Where the server is made.
    pub(super) directory: &'a Path,
    /// Size of the table.
    pub(super) table: Bytes,
    /// The server's programs; `None` = the newest installed.
    pub(super) bin: Option<PathBuf>,
    /// How progress is shown.
    pub(super) way: ProgressMode,
}

/// Measures both plans, and removes the server.
pub(super) fn measure(request: &PlansRequest) -> Result<PlanTest, Error> {
    if request.table < TABLE_MIN {
        return Err(usage!(
            "--plans-scale {table} is too small: caches would hold the table",
            "give {TABLE_MIN} or more; the default is 1GiB",
            table = request.table
        ));
    }
    let stop = stop_flag()?;
    let tables = Tables {
        schemas: 1,
        scale: request.table.0 / u64::from(BLOCK),
        scan_blocks: 1,
        block: BLOCK,
    };
    let made = PrivateServer {
        bin: request.bin.clone(),
        buffer_cache: BUFFER_CACHE,
        settings: Vec::new(),
        sessions: LOAD_DEGREE,
        load_degree: LOAD_DEGREE,
        device: None,
    };
    private_server::refuse_full(request.directory, tables, false, 1)?;
    let mut private = Private::start(Dbms::Postgres, request.directory, &made, &stop)?;
    private.load(tables, request.way, &stop)?;
    for finding in &private.findings {
        remark(&format!("{}\n", finding.what));
    }
    let tested = Plans::new(&private, tables.scale, &stop)?.test();
    private.end()?;
    tested
}

/// The executions so far.
struct Plans<'a> {
    private: &'a Private,
    session: PlanSession,
    stop: &'a AtomicBool,
    /// Rows of the table.
    rows: u64,
    /// Where the next range of keys begins: none is read twice in a row.
    next: u64,
    times: Vec<PlanTime>,
}

impl<'a> Plans<'a> {
    fn new(private: &'a Private, rows: u64, stop: &'a AtomicBool) -> Result<Self, Error> {
        Ok(Self {
            session: PlanSession::open(&private.access)?,
            private,
            stop,
            rows,
            next: 0,
            times: Vec::new(),
        })
    }

    fn test(mut self) -> Result<PlanTest, Error> {
        let expected = self.first_look()?;
        for round in 1..=ROUNDS {
            // Up in one round and down in the next, so that a drift is not a matter of rows.
            let mut rows = ROWS.map(|times| self.whole(times * expected));
            if round % 2 == 0 {
                rows.reverse();
            }
            self.time(round, TablePlan::Sequential, rows[2])?;
            for rows in rows {
                self.time(round, TablePlan::Index, rows)?;
            }
            self.time(round, TablePlan::Sequential, rows[2])?;
            remark(&format!("plans: round {round} of {ROUNDS} done\n"));
        }
        let crossed: Vec<f64> = plan_crossings(&self.times).into_iter().flatten().collect();
        let mut costs = Vec::new();
        for rows in crossed {
            costs.push(self.costs(self.whole(rows))?);
        }
        let server = self.private.server.version().to_string();
        let test = PlanTest::of(server, (self.rows, BLOCK), self.times.clone(), costs);
        self.confirm(test)
    }

    /// About how many rows the index can read in the time of a sequential plan.
    fn first_look(&mut self) -> Result<f64, Error> {
        let rows = self.whole(FIRST_LOOK * self.rows as f64);
        let by_index = self.run(0, TablePlan::Index, rows)?;
        let sequential = self.run(0, TablePlan::Sequential, rows)?;
        Ok(rows as f64 * sequential.execution_ms / by_index.execution_ms.max(f64::MIN_POSITIVE))
    }

    /// A number of rows within the table: at most nine tenths of it.
    fn whole(&self, rows: f64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float casts saturate"
        )]
        let rows = rows as u64;
        rows.clamp(100, self.rows * 9 / 10)
    }

    fn time(&mut self, round: u32, plan: TablePlan, rows: u64) -> Result<(), Error> {
        let time = self.run(round, plan, rows)?;
        self.times.push(time);
        Ok(())
    }

    fn run(&mut self, round: u32, plan: TablePlan, rows: u64) -> Result<PlanTime, Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(failed!("stopped while plans were measured", ""));
        }
        let first = self.range(rows);
        // What an earlier statement read would be answered from memory.
        self.private.server.drop_page_cache();
        let before = self.storage_bytes();
        let run = self.session.run(plan, first, rows)?;
        let after = self.storage_bytes();
        Ok(PlanTime {
            round,
            plan,
            rows,
            execution_ms: run.execution_ms,
            blocks_read: run.blocks_read,
            storage_bytes: before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before)),
        })
    }

    /// The first key of the next range.
    fn range(&mut self, rows: u64) -> u64 {
        let first = if self.next + rows > self.rows {
            0
        } else {
            self.next
        };
        self.next = first + rows;
        first
    }

    /// Bytes that the server's processes have read from storage.
    fn storage_bytes(&self) -> Option<u64> {
        processes_below(&[self.private.server.pid()])?.storage_read
    }

    fn costs(&mut self, rows: u64) -> Result<PlanCosts, Error> {
        let [low, high] = PLAN_COSTS_ASKED;
        let session = &mut self.session;
        Ok(PlanCosts {
            rows,
            sequential: session.cost(TablePlan::Sequential, low, 0, rows)?,
            index: [
                session.cost(TablePlan::Index, low, 0, rows)?,
                session.cost(TablePlan::Index, high, 0, rows)?,
            ],
        })
    }

    /// Checks that the planner's own choice changes at the cost that was computed.
    fn confirm(&mut self, mut test: PlanTest) -> Result<PlanTest, Error> {
        const ASIDE: f64 = 1.05;
        let Some(found) = test.crossing else {
            return Ok(test);
        };
        let crossed: Vec<f64> = test.costs.iter().map(|costs| costs.rows as f64).collect();
        let mean = crossed.iter().map(|rows| rows.ln()).sum::<f64>() / crossed.len() as f64;
        let rows = self.whole(mean.exp());
        let below = self.session.choice(found.value / ASIDE, 0, rows)?;
        let above = self.session.choice(found.value * ASIDE, 0, rows)?;
        if (below, above) != (TablePlan::Index, TablePlan::Sequential) {
            test.crossing = None;
            test.why_not = Some("the planner's choice did not change at the cost found".into());
        }
        Ok(test)
    }
}
