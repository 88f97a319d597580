//! `rigel layers`: the same blocks by raw I/O and through a database, in one run: where does the
//! I/O go?

use super::calibrate::refuse_long_point;
use super::measuring::{self, MeasuringArgs};
use super::membership::Membership;
use super::outcome::{OutcomeArgs, RESULTS};
use super::private_server::ServerArgs;
use super::sql_args::{self, TablesArgs};
use super::{conf::Settings, page, ranges};
use clap::Args;
use rigel_model::{Dbms, Error, Nanos, SqlWork, Tables, WarmUp, usage};
use rigel_verbs::curve::Loads;
use rigel_verbs::layers::LayersRequest;
use std::path::PathBuf;

/// Most sessions at the same time.
const SESSIONS_MAX: u32 = 1000;

/// Read the same blocks by raw I/O and through a database, to show the cost of each layer
///
/// Makes a private PostgreSQL server in the directory, loads a table, and reads its blocks
/// through four layers in turn: raw asynchronous I/O, raw synchronous I/O, the database without its
/// buffer cache, and the database with it. Removes the server afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 complete, 1 failed or incomplete, 2 wrong usage.")]
pub(super) struct LayersArgs {
    /// Directory on the storage under test
    #[arg(
        value_name = "DIR",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    directory: Option<PathBuf>,
    /// Number of outstanding I/Os, threads or sessions; a range or list makes one table per number
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "16",
        conflicts_with = "resume"
    )]
    sessions: String,
    /// Number of times that each layer is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(conflicts_with = "resume")]
    rounds: u32,
    /// Measured time of each layer in each round
    #[arg(
        long,
        value_name = "TIME",
        default_value = "8s",
        conflicts_with = "resume"
    )]
    point_time: Nanos,
    /// Maximum warm-up of each measurement; it ends earlier when throughput is steady
    #[arg(
        long,
        value_name = "TIME",
        default_value = "3s",
        conflicts_with = "resume"
    )]
    warm_up: Nanos,
    /// Size of the table, in blocks or in bytes such as 1GiB [default: 1GiB]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    scale: Option<String>,
    /// Rows, and so blocks, that one statement reads
    #[arg(long, value_name = "ROWS", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "resume")]
    work_unit: u32,
    /// Also name the rows of a statement in one list, so that the server reads their blocks ahead
    /// (bitmap scan)
    #[arg(long, conflicts_with = "resume")]
    prefetch: bool,
    /// Also read one row per statement, to show the cost of a statement
    #[arg(long, conflicts_with = "resume")]
    single: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten, next_help_heading = RESULTS)]
    outcome: OutcomeArgs,
}

/// Measures, and shows the table.
pub(super) fn run(args: &LayersArgs, membership: &Membership) -> Result<u8, Error> {
    let measuring = MeasuringArgs {
        outcome: args.outcome.clone(),
        ..MeasuringArgs::default()
    };
    measuring.enter(membership)?;
    membership.refuse_shared(
        "layers",
        "it shows where the I/O of one host goes, on a server that it makes there",
        "start one process, with --alone; rigel curve and rigel sql run measure all hosts together",
    )?;
    let mut job = if let Some(run) = &args.outcome.resume {
        measuring::resume(
            run,
            &measuring,
            membership,
            "layers",
            std::slice::from_ref(&args.server),
        )?
    } else {
        // All that can be wrong with the request is found before anything is made.
        let request = args.request()?;
        let server = args
            .server
            .made(request.sessions.iter().copied().max().unwrap_or(1), None)?;
        let request = Box::new(request);
        measuring::begin_private(
            &measuring,
            membership,
            request,
            args.server.dbms(),
            args.directory
                .as_deref()
                .expect("a run that is not resumed has a directory"),
            server,
        )?
    };
    let Some((measured, outcome)) = measuring::measure(&mut job, &measuring)? else {
        return Ok(0);
    };
    page::show(&measured, job.results.path(), args.outcome.json);
    measuring::conclude(job, outcome)
}

impl LayersArgs {
    fn request(&self) -> Result<LayersRequest, Error> {
        if self.server.dbms() == Dbms::Mysql {
            return Err(usage!(
                "MariaDB and MySQL have no function that reads one block of a file, which is the \
                 third layer",
                "leave --server out: PostgreSQL has one; or use rigel sql run --server mariadb"
            ));
        }
        refuse_long_point("--point-time", self.point_time)?;
        if self.point_time < Nanos::from_millis(500) {
            return Err(usage!(
                "--point-time {point_time} is too short",
                "give 1s or more",
                point_time = self.point_time
            ));
        }
        let sessions = match ranges::depths("--sessions", &self.sessions)? {
            Loads::Depths(sessions) => sessions,
            Loads::Rates(_) | Loads::Percents(_) => Vec::new(),
        };
        if let Some(most) = sessions.iter().find(|sessions| **sessions > SESSIONS_MAX) {
            return Err(usage!(
                "--sessions {most} is more than a private server allows",
                "give at most {SESSIONS_MAX}"
            ));
        }
        let sizes = TablesArgs::of_scale(self.scale.as_deref());
        let settings = Settings {
            work_unit: Some(self.work_unit),
            ..Settings::default()
        };
        let settings = sizes.or(settings)?;
        let tables: Tables = sql_args::tables(&settings, self.server.dbms())?;
        let work: SqlWork = sql_args::work(&settings, tables)?;
        Ok(LayersRequest {
            sessions,
            rounds: self.rounds,
            point_time: self.point_time,
            warm_up: WarmUp {
                least: Nanos::from_millis(500).min(self.warm_up),
                most: self.warm_up,
            },
            work,
            prefetch: self.prefetch,
            single: self.single,
            asynchronous: "auto".into(),
        })
    }
}
