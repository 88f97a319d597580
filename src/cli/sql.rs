//! `rigel sql`: physical I/O through a real database's own SQL, by the SLOB method.

use super::conf::{LOAD_DEGREE, Settings};
use super::database::{self, PasswordArgs};
use super::expected::ExpectedArgs;
use super::measuring::{self, MeasuringArgs};
use super::membership::Membership;
use super::outcome::{OutcomeArgs, RESULTS};
use super::output::{remark, result};
use super::private_server::{PrivateArgs, ServerArgs, load_tables};
use super::progress::ProgressMode;
use super::ranks::JoinArgs;
use super::sql_args::{self, TablesArgs, WorkArgs};
use super::sql_script::{self, ScriptArgs};
use super::{calibrate, page, ranges};
use clap::{Args, Subcommand};
use rigel_analyse::plan::SqlStop;
use rigel_analyse::plan::SqlTerms;
use rigel_database::access::shown;
use rigel_database::server;
use rigel_database::{self as sql, LoadRequest};
use rigel_model::{
    Arrivals, Bound, Error, Expectation, Mix, Nanos, Pattern, Ratio, Tables, WarmUp, usage,
};
use rigel_verbs::curve::CurveRequest;
use rigel_verbs::curve::Loads;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Drive I/O through a database's own SQL, by the SLOB method: one row per block
#[derive(Debug, Args)]
pub(super) struct SqlArgs {
    #[command(subcommand)]
    verb: SqlVerb,
}

#[derive(Debug, Subcommand)]
enum SqlVerb {
    Run(Box<RunArgs>),
    Load(Box<SqlLoadArgs>),
    Drop(DropArgs),
    Clean(CleanArgs),
    Script(ScriptArgs),
}

/// Run sessions on a database, and report what it did
///
/// With --on, makes a private server on the storage under test, loads it, and removes it
/// afterwards.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 complete, 1 failed or incomplete, 2 wrong usage, 3 no load met \
                  --max-latency, 4 undecided."
)]
struct RunArgs {
    /// Databases: postgres://user@host:port/database or mysql://…; sessions are assigned to
    /// them in turn
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
    expected: ExpectedArgs,
    #[command(flatten)]
    results: ResultsArgs,
}

/// How many sessions, and how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
struct ShapeArgs {
    /// Sessions per table [default: 16 in total]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    threads: Option<u32>,
    /// Measure a curve: one point for each number of sessions, such as 1..32
    #[arg(
        long,
        value_name = "RANGE",
        group = "loads",
        conflicts_with = "threads"
    )]
    sessions: Option<String>,
    /// Open loop: offered load in operations per second; 10%..120% is of the maximum, which is
    /// measured first
    #[arg(long, value_name = "RANGE", group = "loads", conflicts_with = "resume")]
    rate: Option<String>,
    /// Measured time of a point [default: 60s; with --sessions or --rate until precise, at most
    /// 10s]
    #[arg(long, value_name = "TIME", group = "stop")]
    run_time: Option<Nanos>,
    /// Fixed work: number of operations per session
    #[arg(long, value_name = "N", group = "stop", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with = "resume")]
    work_loop: Option<u64>,
    /// Measure until throughput and median are known to --precision, at most --run-time
    #[arg(long, conflicts_with_all = ["work_loop", "resume"])]
    until_steady: bool,
    /// Maximum warm-up; it ends earlier when throughput is steady
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        conflicts_with = "resume"
    )]
    warm_up: Nanos,
    /// Maximum response time of a point, such as 20ms@p99
    #[arg(long, value_name = "LATENCY[@QUANTILE]", conflicts_with = "resume")]
    max_latency: Option<Bound>,
    /// Stop a point when the half-width of its 95 % interval is below this share of the figure
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "2%",
        conflicts_with = "resume"
    )]
    precision: Ratio,
}

/// Where the results go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = RESULTS)]
pub(super) struct ResultsArgs {
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

impl ResultsArgs {
    fn measuring(&self) -> MeasuringArgs {
        MeasuringArgs {
            password: self.password.clone(),
            outcome: self.outcome.clone(),
            ..MeasuringArgs::default()
        }
    }
}

/// Create the tables, or resume an interrupted load
///
/// Under mpiexec or srun one process does it, and the others wait.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 loaded, 1 failed or interrupted, 2 wrong usage.")]
struct SqlLoadArgs {
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
    #[command(flatten)]
    joining: JoinArgs,
}

/// Remove everything that rigel sql load created, and nothing else
///
/// Under mpiexec or srun one process does it, and the others wait.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 removed, 1 failed, 2 wrong usage.")]
struct DropArgs {
    /// Databases: postgres://user@host:port/database or mysql://…
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    joining: JoinArgs,
}

/// Stop and remove private servers that were left because Rigel was killed
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 removed, or none left; 1 failed, or not all removed; 2 wrong usage."
)]
struct CleanArgs {
    /// Directory in which they were made
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

/// Carries out the verb.
pub(super) fn run(args: &SqlArgs, membership: &Membership) -> Result<u8, Error> {
    match &args.verb {
        SqlVerb::Run(args) => measure(args, membership),
        SqlVerb::Load(args) => load(args, membership),
        SqlVerb::Drop(args) => remove(args, membership),
        SqlVerb::Clean(args) => clean(&args.directory),
        SqlVerb::Script(args) => sql_script::run(args),
    }
}

fn load(args: &SqlLoadArgs, membership: &Membership) -> Result<u8, Error> {
    args.joining.enter(membership, false)?;
    if membership.as_follower().is_some() {
        return Ok(0);
    }
    let settings = args
        .tables
        .or(WorkArgs::of_file(args.conf.clone()).settings()?)?;
    let access = database::access(&args.urls, &args.password, membership)?;
    let request = LoadRequest {
        tables: sql_args::tables(&settings, access.dbms())?,
        degree: settings.load_degree.unwrap_or(LOAD_DEGREE),
        tablespace: args.tablespace.clone(),
    };
    let stop = super::stop::stop_flag()?;
    load_tables(
        &access,
        &request,
        ProgressMode::of(args.no_progress, false),
        &stop,
    )?;
    Ok(0)
}

fn remove(args: &DropArgs, membership: &Membership) -> Result<u8, Error> {
    args.joining.enter(membership, false)?;
    if membership.as_follower().is_some() {
        return Ok(0);
    }
    let access = database::access(&args.urls, &args.password, membership)?;
    let removed = sql::remove(&access)?;
    if removed.is_empty() {
        remark("there are no tables of rigel sql load\n");
    }
    removed
        .iter()
        .for_each(|name| result(&format!("removed {name}\n")));
    Ok(0)
}

fn clean(directory: &Path) -> Result<u8, Error> {
    let cleaned = server::clean(directory)?;
    if cleaned.removed.is_empty() && cleaned.kept.is_empty() {
        remark("there are no private servers left here\n");
    }
    cleaned
        .removed
        .iter()
        .for_each(|what| result(&format!("{what}\n")));
    cleaned
        .kept
        .iter()
        .for_each(|what| remark(&format!("{what}\n")));
    Ok(u8::from(!cleaned.kept.is_empty()))
}

fn measure(args: &RunArgs, membership: &Membership) -> Result<u8, Error> {
    let mut measuring = args.results.measuring();
    measuring.enter(membership)?;
    args.refuse_ignored()?;
    let is_resumed = measuring.outcome.resume.is_some();
    let expected = args.expected.expectations_of_new(is_resumed, None)?;
    if let Some(run) = measuring.outcome.resume.clone() {
        measuring.targets.clone_from(&args.urls);
        let job = measuring::resume(
            &run,
            &measuring,
            membership,
            "sql run",
            std::slice::from_ref(&args.private.server),
        )?;
        return report_on(job, &measuring, expected);
    }
    let mut settings = args.tables.or(args.work.settings()?)?;
    settings.threads_per_schema = args.shape.threads.or(settings.threads_per_schema);
    settings.run_time = args.shape.run_time.or(settings.run_time);
    // An option that says when a run ends counts before a file that says it otherwise.
    let ends_by_time = args.shape.run_time.is_some() || args.shape.until_steady;
    settings.work_loop = args
        .shape
        .work_loop
        .or(settings.work_loop.filter(|_| !ends_by_time));
    if let Some(directory) = &args.private.on {
        membership.refuse_private(directory)?;
        sql_args::refuse_foreign(&settings, args.private.server.dbms())?;
        let job = begin_privately(args, membership, directory, &settings, &measuring)?;
        return report_on(job, &measuring, expected);
    }
    let named = database::urls(&args.urls)?.or_else(|| settings.url.clone().map(|url| vec![url]));
    let urls = named.ok_or_else(|| match args.urls.first() {
        Some(other) => usage!(
            "'{other}' is not the URL of a database",
            NAME_ONE,
            other = shown(&other.to_string_lossy())
        ),
        None => usage!("no database is given", NAME_ONE),
    })?;
    let access = database::access(&urls, &measuring.password, membership)?;
    sql_args::refuse_foreign(&settings, access.dbms())?;
    let tables = database::tables_of(&access, membership)?;
    args.tables.refuse_others(&args.work.stated()?, tables)?;
    let request = args
        .shape
        .request(&settings, tables, args.work.statement_timeout())?;
    report_on(
        measuring::begin_sql(&measuring, membership, Box::new(request), access)?,
        &measuring,
        expected,
    )
}

impl RunArgs {
    /// Refuses options that this run would not heed.
    fn refuse_ignored(&self) -> Result<(), Error> {
        let server = &self.private.server;
        let is_private = self.private.on.is_some() || self.results.outcome.resume.is_some();
        if !is_private && server.is_given() {
            return Err(ServerArgs::without_server());
        }
        let asked = self.work != WorkArgs::default() || self.tables != TablesArgs::default();
        let shaped = self.shape.threads.is_some()
            || self.shape.sessions.is_some()
            || self.shape.run_time.is_some();
        if self.results.outcome.resume.is_some() && (asked || shaped) {
            return Err(usage!(
                "a resumed run has its original options",
                "give --resume without options of load and work, or start another run"
            ));
        }
        if self.shape.rate.is_some() && self.work.has_pauses() {
            return Err(sql_args::rate_with_pauses());
        }
        Ok(())
    }
}

const NAME_ONE: &str = "give one: rigel sql run postgres://user@host/database; or make a private \
                        server: rigel sql run --on DIR";

/// The same on a server that is made for it and removed.
fn begin_privately(
    args: &RunArgs,
    membership: &Membership,
    directory: &Path,
    settings: &Settings,
    measuring: &MeasuringArgs,
) -> Result<measuring::Job, Error> {
    let tables = sql_args::tables(settings, args.private.server.dbms())?;
    // All that can be wrong with the request is found before anything is made.
    let request = args
        .shape
        .request(settings, tables, args.work.statement_timeout())?;
    let sessions = request.loads.most_sessions(request.in_flight_max);
    let server = args.private.server.made(sessions, settings.load_degree)?;
    let dbms = args.private.server.dbms();
    measuring::begin_private(
        measuring,
        membership,
        Box::new(request),
        dbms,
        directory,
        server,
    )
}

/// Measures, and shows the report.
fn report_on(
    mut job: measuring::Job,
    args: &MeasuringArgs,
    expected: Vec<Expectation>,
) -> Result<u8, Error> {
    job.expect(expected);
    let Some((measured, outcome)) = measuring::measure(&mut job, args)? else {
        return Ok(0);
    };
    page::show(&measured, job.results.path(), args.outcome.json);
    measuring::conclude(job, outcome)
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
        let warm_up = WarmUp {
            least: Nanos::from_secs(1).min(self.warm_up),
            most: self.warm_up,
        };
        Ok(CurveRequest {
            is_sql_run: true,
            loads,
            arrivals: Arrivals::Poisson,
            in_flight_max: sessions,
            length: tables.block,
            mix: Mix::READS,
            pattern: Pattern::Uniform,
            background: Vec::new(),
            logs: Vec::new(),
            provisioned: None,
            bound: self.max_latency,
            precision: self.precision,
            point_least: Nanos(0),
            point_most: settings.run_time.unwrap_or(longest),
            neighbours_per_s: None,
            ranks: 0,
            sql: Some(SqlTerms {
                work: sql_args::work(settings, tables)?,
                stop,
                warm_up,
                statement_timeout,
            }),
        })
    }
}
