//! `rigel sql`: physical I/O through a real database's own SQL, by the SLOB method.

use super::conf::Settings;
use super::database::{self, PasswordArgs};
use super::measuring::{self, MeasuringArgs};
use super::outcome::OutcomeArgs;
use super::output::{remark, result};
use super::progress::{Progress, Way};
use super::sql_args::{self, TablesArgs, WorkArgs};
use super::{calibrate, page, ranges};
use crate::analyse::RunResult;
use crate::engine::sql::access::shown;
use crate::engine::sql::{self, Access, LoadEvent, LoadRequest};
use crate::model::{
    Arrivals, Bound, Bytes, CurveRequest, Dbms, Error, Finding, FindingName, Loads, MIB, Mix, Nanos, Pattern, Ratio,
    Request, SqlStop, SqlTerms, Tables, WarmUp,
};
use crate::report;
use crate::server::{self, Server};
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Page cache that a private server may have where it cannot do without: so little that reads are physical.
pub(super) const PAGE_CACHE: Bytes = Bytes(32 * MIB);

/// Drive I/O through a database's own SQL, by the SLOB method: one row per block
#[derive(Debug, Args)]
pub(super) struct SqlArgs {
    #[command(subcommand)]
    verb: SqlVerb,
}

#[derive(Debug, Subcommand)]
enum SqlVerb {
    Run(Box<RunArgs>),
    Load(Box<LoadArgs>),
    Drop(DropArgs),
    Clean(CleanArgs),
}

/// Run sessions on a database, and report what it did
///
/// With --on, makes a private server on the storage under test, loads it, and removes it afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 complete, 1 failed or incomplete, 2 wrong usage, 3 no load met --max-latency.")]
struct RunArgs {
    /// Databases: `postgres://user@host:port/database` or `mysql://…`; sessions are assigned to them in turn
    #[arg(value_name = "URL", conflicts_with = "on")]
    urls: Vec<OsString>,
    #[command(flatten)]
    private: PrivateArgs,
    #[command(flatten)]
    tables: TablesArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    results: ResultsArgs,
}

/// A server of Rigel's own.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A private server")]
pub(super) struct PrivateArgs {
    /// Make a private server in this directory, on the storage under test [without a value: .]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pub(super) on: Option<PathBuf>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

/// What a server of Rigel's own is made of.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A private server")]
pub(super) struct ServerArgs {
    /// Kind of server
    #[arg(long, value_name = "SERVER", value_enum, default_value_t = ServerKind::Postgres)]
    server: ServerKind,
    /// Directory of the server's programs [default: the newest installed version]
    #[arg(long, value_name = "DIR")]
    server_bin: Option<PathBuf>,
    /// Configuration setting of the server, such as `io_method=io_uring`; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    server_set: Vec<String>,
    /// Size of the server's buffer cache; small, so that reads are physical
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    buffer_cache: Bytes,
}

/// A kind of server that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ServerKind {
    /// `PostgreSQL`
    Postgres,
    /// `MariaDB` or `MySQL`
    Mariadb,
}

/// How many sessions, and how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
struct ShapeArgs {
    /// Sessions per table [default: 16 in total]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    threads: Option<u32>,
    /// Measure a curve: one point for each number of sessions, such as 1..32
    #[arg(long, value_name = "RANGE", group = "loads", conflicts_with = "threads")]
    sessions: Option<String>,
    /// Open loop: offered load in operations per second; 10%..120% is of the maximum, which is measured first
    #[arg(long, value_name = "RANGE", group = "loads")]
    rate: Option<String>,
    /// Measured time of a point [default: 60s; with --sessions or --rate until precise, at most 10s]
    #[arg(long, value_name = "TIME", group = "stop")]
    run_time: Option<Nanos>,
    /// Fixed work: number of operations per session
    #[arg(long, value_name = "N", group = "stop", value_parser = clap::value_parser!(u64).range(1..))]
    work_loop: Option<u64>,
    /// Measure until throughput and median are known to --precision, at most --run-time
    #[arg(long, conflicts_with = "work_loop")]
    until_steady: bool,
    /// Maximum warm-up; it ends earlier when throughput is steady
    #[arg(long, value_name = "TIME", default_value = "10s")]
    warm_up: Nanos,
    /// Maximum response time of a point, such as 20ms@p99
    #[arg(long, value_name = "LATENCY[@QUANTILE]")]
    max_latency: Option<Bound>,
    /// Stop a point when the half-width of its 95 % interval is below this share of the figure
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    precision: Ratio,
}

/// Where the results go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub(super) struct ResultsArgs {
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    outcome: OutcomeArgs,
    /// Resume the run in this directory with its original options
    #[arg(long, value_name = "DIR", conflicts_with_all = ["urls", "on", "out", "seed"])]
    resume: Option<PathBuf>,
}

impl ResultsArgs {
    fn measuring(&self) -> MeasuringArgs {
        MeasuringArgs {
            password: self.password.clone(),
            outcome: self.outcome.clone(),
            resume: self.resume.clone(),
            ..MeasuringArgs::default()
        }
    }
}

/// Create the tables, or resume an interrupted load
#[derive(Debug, Args)]
struct LoadArgs {
    /// Databases: postgres://user@host:port/database or mysql://…
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Hide progress
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    tables: TablesArgs,
    /// Read table sizes from a slob.conf or pgio.conf; options override them
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Tablespace for the tables [default: the database's]
    #[arg(long, value_name = "NAME")]
    tablespace: Option<String>,
}

/// Remove everything that `rigel sql load` created, and nothing else
#[derive(Debug, Args)]
struct DropArgs {
    /// Databases: postgres://user@host:port/database or mysql://…
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    password: PasswordArgs,
}

/// Stop and remove private servers that were left because Rigel was killed
#[derive(Debug, Args)]
struct CleanArgs {
    /// Directory in which they were made
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

/// Carries out the verb.
pub(super) fn run(args: &SqlArgs) -> Result<u8, Error> {
    match &args.verb {
        SqlVerb::Run(args) => measure(args),
        SqlVerb::Load(args) => load(args),
        SqlVerb::Drop(args) => remove(args),
        SqlVerb::Clean(args) => clean(&args.directory),
    }
}

fn load(args: &LoadArgs) -> Result<u8, Error> {
    let settings = args.tables.or(WorkArgs::of_file(args.conf.clone()).settings()?)?;
    let access = database::access(&args.urls, &args.password)?;
    let request = LoadRequest {
        tables: sql_args::tables(&settings, access.dbms())?,
        degree: settings.load_degree.unwrap_or(2),
        tablespace: args.tablespace.clone(),
    };
    let stop = measuring::stop_flag()?;
    load_tables(&access, &request, Way::of(args.no_progress, false), &stop)?;
    Ok(0)
}

/// Loads with progress, and tells what came of it.
fn load_tables(access: &Access, request: &LoadRequest, way: Way, stop: &AtomicBool) -> Result<(), Error> {
    let block = u64::from(request.tables.block);
    let progress = Mutex::new(Progress::new(&format!("loading {}", access.servers[0]), 1, 0.0, way));
    let listen = |event| {
        let mut progress = progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            LoadEvent::Rows { done, of } => progress.fill("loading", Bytes(done * block), Bytes(of * block)),
            LoadEvent::Indexing => progress.say("creating the indexes"),
            LoadEvent::Verifying => progress.say("checking rows, blocks and order"),
        }
    };
    let loaded = sql::load(access, request, stop, &listen);
    progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner).finish();
    let loaded = loaded?;
    let before = match loaded.rows_before {
        0 => String::new(),
        rows => format!(", {rows} of them by an earlier load"),
    };
    remark(&format!(
        "loaded: {} rows{before} in {} blocks, one per block; correlation of key and position {:.3}\n",
        loaded.rows, loaded.blocks, loaded.correlation
    ));
    Ok(())
}

fn remove(args: &DropArgs) -> Result<u8, Error> {
    let access = database::access(&args.urls, &args.password)?;
    let removed = sql::remove(&access)?;
    if removed.is_empty() {
        remark("there are no tables of rigel sql load\n");
    }
    removed.iter().for_each(|name| result(&format!("removed {name}\n")));
    Ok(0)
}

fn clean(directory: &Path) -> Result<u8, Error> {
    let cleaned = server::clean(directory)?;
    if cleaned.removed.is_empty() && cleaned.kept.is_empty() {
        remark("there are no private servers left here\n");
    }
    cleaned.removed.iter().for_each(|what| result(&format!("{what}\n")));
    cleaned.kept.iter().for_each(|what| remark(&format!("{what}\n")));
    Ok(u8::from(!cleaned.kept.is_empty()))
}

fn measure(args: &RunArgs) -> Result<u8, Error> {
    let measuring = args.results.measuring();
    args.refuse_ignored()?;
    if let Some(directory) = &args.results.resume {
        return report_on(measuring::resume(directory, &measuring)?, &measuring);
    }
    let mut settings = args.tables.or(args.work.settings()?)?;
    settings.threads_per_schema = args.shape.threads.or(settings.threads_per_schema);
    settings.run_time = args.shape.run_time.or(settings.run_time);
    // An option that says when a run ends counts before a file that says it otherwise.
    let ends_by_time = args.shape.run_time.is_some() || args.shape.until_steady;
    settings.work_loop = args.shape.work_loop.or(settings.work_loop.filter(|_| !ends_by_time));
    if args.private.on.is_some() {
        return measure_privately(args, &settings, &measuring);
    }
    let named = database::urls(&args.urls)?.or_else(|| settings.url.clone().map(|url| vec![url]));
    let urls = named.ok_or_else(|| match args.urls.first() {
        Some(other) => {
            Error::usage(format!("'{}' is not the URL of a database", shown(&other.to_string_lossy())), NAME_ONE)
        }
        None => Error::usage("no database is given", NAME_ONE),
    })?;
    let access = database::access(&urls, &measuring.password)?;
    let tables = tables_of(&access)?;
    args.tables.refuse_others(&args.work.stated()?, tables)?;
    let request = args.shape.request(&settings, tables, args.work.statement_timeout())?;
    report_on(measuring::begin_sql(&measuring, Request::Sql(request), access, None, Vec::new())?, &measuring)
}

impl RunArgs {
    /// Refuses options that this run would not heed.
    fn refuse_ignored(&self) -> Result<(), Error> {
        let server = &self.private.server;
        let of_server = server.server_bin.is_some() || !server.server_set.is_empty();
        if self.private.on.is_none() && (of_server || server.server != ServerKind::Postgres) {
            return Err(Error::usage(
                "--server, --server-bin and --server-set are for a private server, and --on is missing",
                "add --on DIR, or leave them out",
            ));
        }
        let asked = self.work != WorkArgs::default() || self.tables != TablesArgs::default();
        let shaped = self.shape.threads.is_some() || self.shape.sessions.is_some() || self.shape.run_time.is_some();
        if self.results.resume.is_some() && (asked || shaped) {
            return Err(Error::usage(
                "a resumed run has its original options",
                "give --resume without options of load and work, or start another run",
            ));
        }
        if self.shape.rate.is_some() && self.work.has_pauses() {
            return Err(rate_with_pauses());
        }
        Ok(())
    }
}

/// Offered operations wait for a session that pauses.
pub(super) fn rate_with_pauses() -> Error {
    Error::usage("--rate and --think exclude each other: a pause would count as response time", "leave one of them out")
}

/// Refuses options that are for files and devices where a database is measured: each with whether it is given, and what
/// there is in its place.
pub(super) fn refuse_raw(asked: &[(&str, bool, &str)], url: &str) -> Result<(), Error> {
    match asked.iter().find(|(_, given, _)| *given) {
        Some((option, _, instead)) => Err(Error::usage(
            format!("{option} is for files and devices, and '{url}' is a database"),
            format!("leave it out; a database has {instead} instead"),
        )),
        None => Ok(()),
    }
}

const NAME_ONE: &str =
    "give one: rigel sql run postgres://user@host/database; or make a private server: rigel sql run --on DIR";

/// The same on a server that is made for it and removed.
fn measure_privately(args: &RunArgs, settings: &Settings, measuring: &MeasuringArgs) -> Result<u8, Error> {
    let tables = sql_args::tables(settings, args.private.server.dbms())?;
    // All that can be wrong with the request is found before anything is made.
    let request = args.shape.request(settings, tables, args.work.statement_timeout())?;
    measuring::refuse_unusable(measuring)?;
    if let Some(directory) = &args.private.on {
        refuse_full(directory, tables, request.sql.is_some_and(|terms| terms.work.updates != Ratio::ZERO))?;
    }
    let stop = measuring::stop_flag()?;
    let sessions = request.loads.most_sessions(request.in_flight_max);
    let way = measuring.outcome.progress();
    let private = Private::make(&args.private, tables, sessions, settings.load_degree, way, &stop)?;
    let directory = args.private.on.as_ref().map(|directory| directory.display().to_string());
    let (access, findings) = (private.access.clone(), private.findings.clone());
    let status =
        report_on(measuring::begin_sql(measuring, Request::Sql(request), access, directory, findings)?, measuring);
    private.server.stop()?;
    status
}

/// A private server, loaded.
pub(super) struct Private {
    /// It is removed with this.
    pub(super) server: Server,
    /// How it is reached.
    pub(super) access: Access,
    /// What is doubtful about it.
    pub(super) findings: Vec<Finding>,
}

impl Private {
    /// Makes one and loads it.
    pub(super) fn make(
        args: &PrivateArgs,
        tables: Tables,
        sessions: u32,
        load_degree: Option<u32>,
        way: Way,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let directory = args.on.as_deref().unwrap_or(Path::new("."));
        refuse_full(directory, tables, false)?;
        let settings = args.server.settings()?;
        let degree = load_degree.unwrap_or(2);
        let request = server::Request {
            dbms: args.server.dbms(),
            directory,
            bin: args.server.server_bin.as_deref(),
            buffer_cache: args.server.buffer_cache,
            sessions: sessions.max(degree),
            settings: &settings,
        };
        tell_leftovers(directory);
        let mut server = Server::start(&request, stop)?;
        remark(&format!("a private {} in {}\n", server.version(), server.directory().display()));
        let access = Access::parse([server.url()], &|_| None)?;
        load_tables(&access, &LoadRequest { tables, degree, tablespace: None }, way, stop)?;
        let findings = if server.is_direct() { Vec::new() } else { limited(&mut server) };
        Ok(Self { server, access, findings })
    }
}

/// Says which servers a killed Rigel left in the directory: they take its space.
fn tell_leftovers(directory: &Path) {
    // A directory that cannot be listed is refused for what it is elsewhere.
    for left in server::leftovers(directory).unwrap_or_default() {
        remark(&format!(
            "a {} server of rigel {}, which no longer runs, takes {} in {}; `rigel sql clean {}` removes it\n",
            left.dbms,
            left.rigel,
            left.bytes,
            left.folder.display(),
            directory.display()
        ));
    }
}

/// A server that reads through the page cache gets little of it.
fn limited(server: &mut Server) -> Vec<Finding> {
    let version = server.version().to_string();
    match server.limit_page_cache(PAGE_CACHE) {
        Ok(limit) => vec![Finding::note(
            FindingName::MemoryLimit,
            format!(
                "{version} reads through the page cache; its processes are limited to {limit} of memory in total, \
                 cache included"
            ),
        )],
        Err(why) => vec![Finding::warning(
            FindingName::PageCacheUnlimited,
            format!("{version} reads through the page cache, and its memory could not be limited: {why}"),
            "install PostgreSQL 16 or newer, run as root, or load tables several times as large as the memory",
        )],
    }
}

/// The tables, their log and what loading needs beside must fit.
fn refuse_full(directory: &Path, tables: Tables, updates: bool) -> Result<(), Error> {
    let Ok(facts) = rustix::fs::statvfs(directory) else { return Ok(()) };
    let free = Bytes(facts.f_bavail * facts.f_frsize);
    let needed = tables.bytes().0 + u64::from(tables.schemas) * tables.scan_blocks * u64::from(tables.block);
    // A tenth for the index, the log that loading makes, room for an empty server, and the log that updates may make:
    // the server keeps up to 4 GB of it.
    let log = if updates { 4096 * MIB } else { (needed / 4).min(4096 * MIB) };
    let needed = Bytes(needed + needed / 10 + log + 512 * MIB);
    if free < needed {
        return Err(Error::usage(
            format!("'{}' has {free} free, but the tables and the server need {needed}", directory.display()),
            "give a smaller --scale, or another directory",
        ));
    }
    Ok(())
}

impl ServerArgs {
    /// Which system.
    pub(super) fn dbms(&self) -> Dbms {
        match self.server {
            ServerKind::Postgres => Dbms::Postgres,
            ServerKind::Mariadb => Dbms::Mysql,
        }
    }

    fn settings(&self) -> Result<Vec<(String, String)>, Error> {
        let pair = |text: &String| {
            text.split_once('=').map(|(name, value)| (name.trim().to_string(), value.trim().to_string())).ok_or_else(
                || {
                    Error::usage(
                        format!("--server-set '{text}' is not a setting"),
                        "write NAME=VALUE, such as io_method=sync",
                    )
                },
            )
        };
        self.server_set.iter().map(pair).collect()
    }
}

/// Measures, and shows the report.
fn report_on(mut job: measuring::Job, args: &MeasuringArgs) -> Result<u8, Error> {
    let (run, stopped) = measuring::measure(&mut job, args)?;
    let directory = job.results.directory();
    let found = report::result(&run);
    let RunResult::Curve(curve) = &found else {
        return Err(Error::usage("this run was made by another verb", "resume it with the verb that started it"));
    };
    page::show(&run, &found, directory, args.outcome.json, "`rigel report` and `compare`");
    measuring::refuse_incomplete(&run, stopped, directory)?;
    Ok(if curve.keeps_bound() { 0 } else { 3 })
}

/// The tables that a database has from us.
pub(super) fn tables_of(access: &Access) -> Result<Tables, Error> {
    sql::find(access)?.ok_or_else(|| {
        let address = &access.servers[0];
        Error::usage(
            format!("'{address}' has no tables of rigel sql load, or not all of them"),
            format!("create them: rigel sql load {address}"),
        )
    })
}

impl ShapeArgs {
    fn request(
        &self,
        settings: &Settings,
        tables: Tables,
        statement_timeout: Option<Nanos>,
    ) -> Result<CurveRequest, Error> {
        let sessions = sql_args::sessions(settings, tables);
        let loads = match (&self.sessions, &self.rate) {
            (Some(sessions), _) => ranges::depths("--sessions", sessions)?,
            (_, Some(rate)) => ranges::rates(rate)?,
            _ => Loads::Depths(vec![sessions]),
        };
        let is_curve = self.sessions.is_some() || self.rate.is_some();
        let stop = match (settings.work_loop, settings.run_time) {
            (Some(count), _) => SqlStop::OpsOfEach(count),
            (None, None) if is_curve => SqlStop::Precise,
            _ if self.until_steady => SqlStop::Precise,
            (None, time) => SqlStop::Elapsed(time.unwrap_or(Nanos::from_secs(60))),
        };
        calibrate::refuse_imprecise(self.precision)?;
        let longest = Nanos::from_secs(if is_curve { 10 } else { 60 });
        let warm_up = WarmUp { least: Nanos::from_secs(1).min(self.warm_up), most: self.warm_up };
        Ok(CurveRequest {
            loads,
            arrivals: Arrivals::Poisson,
            in_flight_max: sessions,
            length: tables.block,
            mix: Mix::READS,
            pattern: Pattern::Uniform,
            background: None,
            bound: self.max_latency,
            precision: self.precision,
            point_most: settings.run_time.unwrap_or(longest),
            sql: Some(SqlTerms { work: sql_args::work(settings, tables)?, stop, warm_up, statement_timeout }),
        })
    }
}
