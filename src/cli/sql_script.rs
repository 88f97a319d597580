//! `rigel sql script`: files for a database that Rigel does not reach itself.

use super::conf::{LOAD_DEGREE, Settings};
use super::output::result;
use super::sql_args::{self, TablesArgs, WorkArgs};
use crate::script::{ScriptFile, calibrate_io, oracle};
use clap::{Args, Subcommand};
use rigel_model::files::Directory;
use rigel_model::{Bytes, Error, Nanos, failed, usage};
use rustix::fs::Mode;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Bytes of a block of an Oracle database, unless it was created otherwise.
const BLOCK: u32 = 8192;

/// Write files for a database's own client, for servers that Rigel does not reach itself
///
/// Written for Oracle Database, and never run on one by Rigel's authors: read the files first.
#[derive(Debug, Args)]
pub(super) struct ScriptArgs {
    #[command(subcommand)]
    what: ScriptKind,
}

#[derive(Debug, Subcommand)]
enum ScriptKind {
    Oracle(Box<OracleArgs>),
    OracleCalibrate(OracleCalibrateArgs),
}

/// Write files for SQL*Plus or SQLcl that load, run and drop, by the SLOB method
///
/// Grants for a DBA to read, a load by several sessions, a proof of one row in a block, the loop in
/// the server, and a shell script that starts the sessions and collects one spool. rigel import
/// reads the spool. Prints the redo that is expected, and refuses more than --max-redo.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 1 failed, 2 wrong usage.")]
struct OracleArgs {
    /// Directory for the files; must not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    tables: TablesArgs,
    #[command(flatten)]
    work: WorkArgs,
    /// Sessions per table [default: 16 in total]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    threads: Option<u32>,
    /// Measured time [default: 60s]
    #[arg(long, value_name = "TIME", conflicts_with = "work_loop")]
    run_time: Option<Nanos>,
    /// Fixed work: number of operations per session
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    work_loop: Option<u64>,
    /// Time before the measurement, in which all sessions work already
    #[arg(long, value_name = "TIME", default_value = "10s")]
    warm_up: Nanos,
    /// Redo that the load, and that a run, may write by the estimate
    #[arg(long, value_name = "SIZE", default_value = "32GiB")]
    max_redo: Bytes,
    /// Tablespace for the tables [default: the user's]
    #[arg(long, value_name = "NAME")]
    tablespace: Option<String>,
    /// Seed of the random keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    key_seed: u32,
}

/// Write a file that runs DBMS_RESOURCE_MANAGER.CALIBRATE_IO and prints its result
///
/// rigel import reads what it prints, and rigel compare shows it beside a calibration of Rigel's.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 1 failed, 2 wrong usage.")]
struct OracleCalibrateArgs {
    /// Directory for the files; must not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Carries out the verb.
pub(super) fn run(args: &ScriptArgs) -> Result<u8, Error> {
    match &args.what {
        ScriptKind::Oracle(args) => for_oracle(args),
        ScriptKind::OracleCalibrate(args) => {
            let files = calibrate_io::calibrate_io();
            write(&args.directory, &files)?;
            result(&summary(&args.directory, &files));
            result("Next: read README.txt. It replaces the calibration that the database has.\n");
            Ok(0)
        }
    }
}

fn for_oracle(args: &OracleArgs) -> Result<u8, Error> {
    if args.work.statement_timeout().is_some() {
        return Err(usage!(
            "--statement-timeout is for servers that Rigel reaches itself",
            "leave it out; a DBA can limit the sessions by a resource plan"
        ));
    }
    let settings = args.tables.or(args.work.settings()?)?;
    if settings.way.is_some() {
        return Err(usage!(
            "--prefetch is for PostgreSQL",
            "leave it out: Oracle itself decides to read ahead by index (db file parallel read)"
        ));
    }
    if settings.pipeline.is_some_and(|pipeline| pipeline > 1) {
        return Err(usage!(
            "--pipeline is for PostgreSQL",
            "leave it out: the loop runs in the server, where nothing is in flight"
        ));
    }
    let request = args.request(settings)?;
    let files = oracle::oracle(&request)?;
    write(&args.directory, &files)?;
    let redo = request.redo();
    let mut text = summary(&args.directory, &files);
    let _ = writeln!(text, "Redo by estimate: load {}.", redo.load);
    let per_row = Bytes(redo.updated_row.0);
    let _ = match redo.run.filter(|_| request.work.updates.get() > 0.0) {
        Some(run) => writeln!(text, "A run writes {run}: {per_row} for each updated row."),
        None if request.work.updates.get() > 0.0 => writeln!(
            text,
            "A run writes {per_row} for each updated row, and ends its sessions at --max-redo {}.",
            request.max_redo
        ),
        None => writeln!(text, "A run changes no row."),
    };
    text.push_str(
        "Next: read README.txt. The files are written for Oracle, and were never run on an Oracle \
         server by Rigel's authors.\n",
    );
    result(&text);
    Ok(0)
}

impl OracleArgs {
    fn request(&self, mut settings: Settings) -> Result<oracle::OracleScriptRequest, Error> {
        settings.threads_per_schema = self.threads.or(settings.threads_per_schema);
        let tables = sql_args::tables_in_blocks(&settings, BLOCK)?;
        let work_loop = self
            .work_loop
            .or(settings.work_loop.filter(|_| self.run_time.is_none()));
        let run_time = self
            .run_time
            .or(settings.run_time)
            .unwrap_or(Nanos::from_secs(60));
        if run_time < Nanos::from_secs(1) {
            return Err(usage!(
                "a run of {run_time} is too short for figures of the server",
                "give at least 1s"
            ));
        }
        Ok(oracle::OracleScriptRequest {
            work: sql_args::work(&settings, tables)?,
            sessions: sql_args::sessions(&settings, tables),
            load_degree: settings.load_degree.unwrap_or(LOAD_DEGREE),
            run_time: work_loop.is_none().then_some(run_time),
            work_loop,
            warm_up: self.warm_up,
            max_redo: self.max_redo,
            tablespace: self.tablespace.clone(),
            seed: self.key_seed,
        })
    }
}

/// Makes the directory, for its owner alone, and the files in it. Nothing that exists is changed.
fn write(path: &Path, files: &[ScriptFile]) -> Result<(), Error> {
    let failed = |error: io::Error| {
        let hint = if error.kind() == io::ErrorKind::AlreadyExists {
            "give the name of a new directory: existing files are never changed"
        } else {
            "give a new directory in one that you may write to"
        };
        usage!("cannot make '{path}': {error}", hint, path = path.display())
    };
    let name = path
        .file_name()
        .ok_or_else(|| failed(io::ErrorKind::AlreadyExists.into()))?;
    let above = Directory::open(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
    let made = above
        .make_inside(name, Mode::from_raw_mode(0o700))
        .map_err(failed)?;
    for file in files {
        made.create(file.name)
            .and_then(|mut open| open.write_all(file.text.as_bytes()))
            .map_err(|error| {
                failed!(
                    "cannot write '{path}': {error}",
                    "remove the directory and try again",
                    path = path.join(file.name).display()
                )
            })?;
    }
    Ok(())
}

/// The directory and the names of its files.
fn summary(path: &Path, files: &[ScriptFile]) -> String {
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    format!("{}: {}\n", path.display(), names.join(", "))
}
