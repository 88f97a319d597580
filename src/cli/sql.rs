//! `rigel sql`: physical I/O through a real database's own SQL, by the SLOB method.

use super::database::{self, PasswordArgs};
use super::measuring::{self, MeasuringArgs};
use super::output::{remark, result};
use super::ranges;
use crate::engine::sql::{self, Access, LoadEvent, LoadRequest};
use crate::model::{
    Arrivals, Bound, Bytes, Dbms, Error, HotSpot, Mix, Nanos, Pattern, Ratio, Redo, SqlWork, Tables, Think, WarmUp,
};
use crate::plan::curve::Loads;
use crate::plan::{CurveRequest, Search, SqlStop, SqlTerms};
use crate::report;
use clap::{Args, Subcommand, ValueEnum};

/// Sessions where nothing else is said: enough to keep a local disk busy, few enough for a small server.
const SESSIONS: u32 = 16;

/// Drives I/O through a database's own SQL: one row a block, by the SLOB method
#[derive(Debug, Args)]
pub(super) struct SqlArgs {
    #[command(subcommand)]
    verb: SqlVerb,
}

#[derive(Debug, Subcommand)]
enum SqlVerb {
    Run(Box<RunArgs>),
    Load(LoadArgs),
    Drop(DropArgs),
}

/// Runs the sessions and reports what the database did
#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    measuring: MeasuringArgs,
    #[command(flatten)]
    work: WorkArgs,
    /// Sessions of each table; with -s the number of sessions in all is tables times this [default: 16 in all]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    threads: Option<u32>,
    /// One point for each of these numbers of sessions, such as 1..32
    #[arg(long, value_name = "RANGE", group = "loads", conflicts_with = "threads")]
    sessions: Option<String>,
    /// Open loop: so many operations due a second, whatever the database does; 10%..120% is of its maximum
    #[arg(long, value_name = "RANGE", group = "loads")]
    rate: Option<String>,
    /// How long is measured [default: 60s]
    #[arg(long, value_name = "TIME", group = "stop")]
    run_time: Option<String>,
    /// Fixed work: so many operations of every session
    #[arg(long, value_name = "N", group = "stop", value_parser = clap::value_parser!(u64).range(1..))]
    work_loop: Option<u64>,
    /// Measures until throughput and median are known to --precision, at most --run-time
    #[arg(long)]
    until_steady: bool,
    /// What comes before measuring: at most so long, less when throughput is steady
    #[arg(long, value_name = "TIME", default_value = "10s")]
    warm_up: String,
    /// Response time of an operation that points are held against, such as 20ms@p99
    #[arg(long, value_name = "LATENCY[@QUANTILE]")]
    max_latency: Option<String>,
    /// How well figures are to be known with --until-steady, --sessions and --rate: half the 95 % interval, as a share
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    precision: String,
}

/// What the sessions do.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct WorkArgs {
    /// Rows, and so blocks, that one read visits [default: 64]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) work_unit: Option<u32>,
    /// Rows that one update changes [default: as --work-unit]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) update_work_unit: Option<u32>,
    /// Share of the operations that update and commit [default: 0%]
    #[arg(long, value_name = "SHARE")]
    pub(super) update: Option<String>,
    /// Share of the reads that scan a whole table [default: 0%]
    #[arg(long, value_name = "SHARE")]
    pub(super) scan: Option<String>,
    /// How much of a row an update changes [default: lite, 2 of 19 columns]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(super) redo_stress: Option<RedoStress>,
    /// Every Nth operation goes to a part of its table: its offset and size, such as 16MiB+8MiB/3
    #[arg(long, value_name = "OFFSET+SIZE/N")]
    pub(super) hot_spot: Option<String>,
    /// Every Nth operation goes to the first table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) hot_schema: Option<u32>,
    /// A pause after every Nth operation, such as 100ms..500ms/10
    #[arg(long, value_name = "LEAST..MOST/N")]
    pub(super) think: Option<String>,
    /// The server ends a statement after so long; it counts as failed
    #[arg(long, value_name = "TIME")]
    pub(super) statement_timeout: Option<String>,
}

/// How much of a row an update changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RedoStress {
    /// Two of nineteen columns
    Lite,
    /// All of them
    Heavy,
}

/// Makes the tables, or goes on with a load that was cut short
#[derive(Debug, Args)]
struct LoadArgs {
    /// The databases: postgres://user@host:port/database or mysql://…
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    tables: TablesArgs,
    /// The tablespace to make them in [default: the database's]
    #[arg(long, value_name = "NAME")]
    tablespace: Option<String>,
}

/// Which tables.
#[derive(Debug, Clone, Args)]
struct TablesArgs {
    /// Tables, each with sessions of its own [default: 1]
    #[arg(short = 's', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    schemas: Option<u32>,
    /// Size of each table: blocks, or bytes such as 1GiB [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    scale: Option<String>,
    /// Size of the table that is scanned, likewise [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    scan_table: Option<String>,
    /// Connections that load at the same time [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    load_degree: Option<u32>,
}

/// Removes what load made, and nothing else
#[derive(Debug, Args)]
struct DropArgs {
    /// The databases
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    password: PasswordArgs,
}

/// Carries out the verb.
pub(super) fn run(args: &SqlArgs) -> Result<u8, Error> {
    match &args.verb {
        SqlVerb::Run(args) => measure(args),
        SqlVerb::Load(args) => load(args),
        SqlVerb::Drop(args) => remove(args),
    }
}

fn load(args: &LoadArgs) -> Result<u8, Error> {
    let tables = args.tables.tables(Dbms::Postgres)?;
    let access = database::access(&args.urls, &args.password)?;
    let degree = args.tables.load_degree.unwrap_or(2);
    let request = LoadRequest { tables, degree, tablespace: args.tablespace.clone() };
    load_tables(&access, &request)?;
    Ok(0)
}

/// Loads with progress, and tells what came of it.
fn load_tables(access: &Access, request: &LoadRequest) -> Result<(), Error> {
    let stop = measuring::stop_flag()?;
    let listen = |event| {
        if let LoadEvent::Rows { done, of } = event {
            remark(&format!("\rloading: {done} of {of} rows"));
        }
    };
    let loaded = sql::load(access, request, &stop, &listen)?;
    remark(&format!(
        "\nloaded: {} rows in {} blocks, one row a block; correlation of key and place {:.3}\n",
        loaded.rows, loaded.blocks, loaded.correlation
    ));
    Ok(())
}

fn remove(args: &DropArgs) -> Result<u8, Error> {
    let access = database::access(&args.urls, &args.password)?;
    let removed = sql::remove(&access)?;
    if removed.is_empty() {
        remark("nothing of ours is there\n");
    }
    removed.iter().for_each(|name| result(&format!("removed {name}\n")));
    Ok(0)
}

fn measure(args: &RunArgs) -> Result<u8, Error> {
    let job = if let Some(directory) = &args.measuring.resume {
        measuring::resume(directory, &args.measuring)?
    } else {
        let urls = database::urls(&args.measuring.targets)?.ok_or_else(|| {
            Error::asked("no database is named", "name one: rigel sql run postgres://user@host/database")
        })?;
        let access = database::access(&urls, &args.measuring.password)?;
        let tables = tables_of(&access)?;
        let request = args.request(tables)?;
        measuring::begin_sql(&args.measuring, Search::Sql(request), access, None)?
    };
    let directory = job.directory.clone();
    let (run, stopped) = measuring::measure(job, &args.measuring)?;
    if args.measuring.json {
        result(&report::data::json(&run));
    } else if let Some(found) = report::curve::of(&run) {
        result(&report::sql::text(&run, &found).unwrap_or_else(|| report::curve::text(&run, &found)));
    }
    remark(&format!("\nthe whole record, for `rigel report` and `compare`:\n  {}\n", directory.display()));
    measuring::refuse_incomplete(&run, stopped, &directory)?;
    Ok(0)
}

/// The tables that a database has from us.
pub(super) fn tables_of(access: &Access) -> Result<Tables, Error> {
    sql::find(access)?.ok_or_else(|| {
        let address = &access.servers[0];
        Error::asked(
            format!("'{address}' has no tables of ours, or not all of them"),
            format!("make them: rigel sql load {address}"),
        )
    })
}

impl TablesArgs {
    fn tables(&self, dbms: Dbms) -> Result<Tables, Error> {
        let block = match dbms {
            Dbms::Postgres => 8192,
            Dbms::Mysql => 16_384,
        };
        let blocks = |text: Option<&str>, option: &str, least: u64| {
            let text = text.unwrap_or(if option == "--scale" { "1GiB" } else { "1MiB" });
            let blocks = match text.parse::<u64>() {
                Ok(blocks) => blocks,
                Err(_) => text.parse::<Bytes>()?.0 / u64::from(block),
            };
            if blocks < least {
                return Err(Error::asked(
                    format!("{option} {text} is {blocks} blocks"),
                    format!("give at least {least}: blocks, or bytes such as 1GiB"),
                ));
            }
            Ok(blocks)
        };
        Ok(Tables {
            schemas: self.schemas.unwrap_or(1),
            scale: blocks(self.scale.as_deref(), "--scale", 1000)?,
            scan_blocks: blocks(self.scan_table.as_deref(), "--scan-table", 1)?,
            block,
        })
    }
}

impl RunArgs {
    fn request(&self, tables: Tables) -> Result<CurveRequest, Error> {
        let run_time: Nanos = self.run_time.as_deref().unwrap_or("60s").parse()?;
        let most: Nanos = self.warm_up.parse()?;
        let sessions = self.threads.map_or(SESSIONS.max(tables.schemas), |threads| threads * tables.schemas);
        let one = self.sessions.is_none() && self.rate.is_none();
        let loads = match (&self.sessions, &self.rate) {
            (Some(sessions), _) => ranges::depths("--sessions", sessions)?,
            (_, Some(rate)) => ranges::rates(rate)?,
            _ => Loads::Depths(vec![sessions]),
        };
        let stop = match self.work_loop {
            Some(count) => SqlStop::OpsOfEach(count),
            None if self.until_steady || (!one && self.run_time.is_none()) => SqlStop::Precise,
            None => SqlStop::Elapsed(run_time),
        };
        let least = Nanos::from_secs(1).min(most);
        let warm_up = WarmUp { least, most };
        let terms = SqlTerms { work: self.work.work(tables)?, stop, warm_up, statement_timeout: self.work.timeout()? };
        let precision: Ratio = self.precision.parse()?;
        super::calibrate::refuse_imprecise(precision)?;
        Ok(CurveRequest {
            loads,
            arrivals: Arrivals::Poisson,
            in_flight_max: sessions,
            length: tables.block,
            mix: Mix::READS,
            pattern: Pattern::Uniform,
            background: None,
            bound: self.max_latency.as_deref().map(str::parse::<Bound>).transpose()?,
            precision,
            point_most: if self.run_time.is_none() && !one { Nanos::from_secs(10) } else { run_time },
            sql: Some(terms),
        })
    }
}

impl WorkArgs {
    /// The statement timeout.
    pub(super) fn timeout(&self) -> Result<Option<Nanos>, Error> {
        self.statement_timeout.as_deref().map(str::parse).transpose()
    }

    /// What the sessions do on `tables`.
    pub(super) fn work(&self, tables: Tables) -> Result<SqlWork, Error> {
        let share = |text: &Option<String>| text.as_deref().map_or(Ok(Ratio::ZERO), str::parse::<Ratio>);
        let read_rows = self.work_unit.unwrap_or(64);
        let work = SqlWork {
            read_rows,
            update_rows: self.update_work_unit.unwrap_or(read_rows),
            updates: share(&self.update)?,
            scans: share(&self.scan)?,
            redo: if self.redo_stress == Some(RedoStress::Heavy) { Redo::Heavy } else { Redo::Lite },
            hot_spot: self.hot_spot.as_deref().map(|text| hot_spot(text, tables)).transpose()?,
            hot_schema_every: self.hot_schema,
            think: self.think.as_deref().map(think).transpose()?,
            ..SqlWork::reads(tables)
        };
        refuse_too_wide(&work)?;
        Ok(work)
    }
}

/// An operation must fit into the table, and into the hot spot.
pub(super) fn refuse_too_wide(work: &SqlWork) -> Result<(), Error> {
    let widest = work.read_rows.max(work.update_rows);
    let (room, what) = match work.hot_spot {
        Some(spot) => (spot.rows, "the hot spot"),
        None => (work.tables.scale, "a table"),
    };
    if u64::from(widest) > room {
        return Err(Error::asked(
            format!("an operation of {widest} rows does not fit into {what} of {room} rows"),
            "give a smaller --work-unit, or larger tables",
        ));
    }
    Ok(())
}

/// `16MiB+8MiB/3`.
fn hot_spot(text: &str, tables: Tables) -> Result<HotSpot, Error> {
    let wrong = || {
        Error::asked(
            format!("--hot-spot '{text}' is no hot spot"),
            "write OFFSET+SIZE/N, such as 16MiB+8MiB/3: every 3rd operation",
        )
    };
    let (place, every) = text.rsplit_once('/').ok_or_else(wrong)?;
    let (offset, size) = place.split_once('+').ok_or_else(wrong)?;
    let blocks = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0 / u64::from(tables.block)).map_err(|_| wrong());
    let every = every.parse().ok().filter(|every| *every > 0).ok_or_else(wrong)?;
    let spot = HotSpot { every, first: blocks(offset)?, rows: blocks(size)? };
    if spot.rows == 0 || spot.first + spot.rows > tables.scale {
        return Err(Error::asked(
            format!(
                "the hot spot '{text}' does not lie within a table of {}",
                Bytes(tables.scale * u64::from(tables.block))
            ),
            "give an offset and a size that do",
        ));
    }
    Ok(spot)
}

/// `100ms..500ms/10`.
fn think(text: &str) -> Result<Think, Error> {
    let wrong = || {
        Error::asked(
            format!("--think '{text}' is no pause"),
            "write LEAST..MOST/N, such as 100ms..500ms/10: after every 10th operation",
        )
    };
    let (times, every) = text.rsplit_once('/').ok_or_else(wrong)?;
    let (least, most) = times.split_once("..").unwrap_or((times, times));
    let time = |text: &str| text.parse::<Nanos>().map_err(|_| wrong());
    let think = Think {
        every: every.parse().ok().filter(|every| *every > 0).ok_or_else(wrong)?,
        least: time(least)?,
        most: time(most)?,
    };
    if think.least > think.most { Err(wrong()) } else { Ok(think) }
}
