//! What verbs that measure have in common: their targets and terms, a run's journal from the first point to the last,
//! and going on with a run that was cut short.

pub(super) mod rounds;

use super::database::{self, PasswordArgs};
use super::outcome::OutcomeArgs;
use super::output::remark;
use super::progress::Progress;
use super::results::Results;
use super::target::{self, Given};
use crate::analyse::{PointSummary, summarise_within};
use crate::clock;
use crate::engine::sql::Access;
use crate::engine::{AUTO, ENGINES};
use crate::model::{
    Bytes, Coordinates, Error, Finding, Invocation, Layout, Point, Request, RunOptions, SqlTarget, Target,
};
use crate::record::journal::{self, EngineChoice, Header, Journal, Run};
use crate::record::{End, PointRecord};
use crate::run::{Bench, BenchRequest, Event, Listen, Next, SqlRequest};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a run that is gone on with has from its beginning.
const RESUMED: [&str; 9] =
    ["targets", "out", "scratch_size", "engine", "keep", "buffered", "allow_holes", "workers", "seed"];

/// The valid values of `--engine`.
pub(super) fn engines() -> PossibleValuesParser {
    let auto = PossibleValue::new(AUTO).help("uring, or libaio with a warning where the kernel forbids io_uring");
    let named = ENGINES.iter().map(|engine| PossibleValue::new(engine.info.name).help(engine.info.help));
    PossibleValuesParser::new(std::iter::once(auto).chain(named))
}

/// The targets, and on what terms they are measured.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct MeasuringArgs {
    /// Files and devices (addressed as one volume), a directory for a scratch file, or a model: sim:… or null:
    #[arg(value_name = "TARGET", required_unless_present = "resume")]
    pub(super) targets: Vec<OsString>,
    /// Size of the scratch file, such as 4GiB [default: depends on the free space]
    #[arg(long, value_name = "SIZE")]
    pub(super) scratch_size: Option<Bytes>,
    /// Keep the scratch file
    #[arg(long)]
    pub(super) keep: bool,
    /// I/O engine; auto is the best one that works here [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = engines())]
    pub(super) engine: Option<String>,
    /// Use the page cache instead of direct I/O
    #[arg(long)]
    pub(super) buffered: bool,
    /// Allow targets with holes: blocks that were never written
    #[arg(long)]
    pub(super) allow_holes: bool,
    /// Target that Rigel may overwrite, by the same path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(super) destroy: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) outcome: OutcomeArgs,
    /// Resume the run in this directory with its original options
    #[arg(long, value_name = "DIR", conflicts_with_all = RESUMED)]
    pub(super) resume: Option<PathBuf>,
    /// Minimum number of threads; psync has one per outstanding I/O [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) workers: Option<u32>,
    #[command(flatten)]
    pub(super) password: PasswordArgs,
}

/// A run to be made, or to be resumed.
pub(super) struct Job {
    /// What was asked for.
    pub(super) invocation: Invocation,
    /// What is measured.
    pub(super) target: Target,
    /// By which engine.
    pub(super) engine: EngineChoice,
    /// The command line, without the program.
    pub(super) command: Vec<String>,
    /// Where its journal is.
    pub(super) results: Results,
    /// How a database is reached.
    access: Option<Access>,
    /// What is doubtful about a server that was made for this run.
    findings: Vec<Finding>,
    /// The run so far, and its journal.
    resumed: Option<(Journal, Run)>,
}

impl Job {
    /// A new run of `invocation`.
    pub(super) fn new(
        invocation: Invocation,
        target: Target,
        engine: EngineChoice,
        command: Vec<String>,
        results: Results,
    ) -> Self {
        Self { invocation, target, engine, command, results, access: None, findings: Vec::new(), resumed: None }
    }

    /// Points that are still to be measured, as far as that is known before it is measured.
    pub(super) fn points_expected(&self) -> usize {
        let expected = self.invocation.request.points_expected(0);
        match (&self.invocation.request, &self.resumed) {
            (Request::Orion(_), Some((_, run))) => expected - run.complete().len().min(expected),
            _ => expected,
        }
    }

    /// Makes the directory of a new run. Where another run of this minute has the name of Orion's files, a number
    /// follows the minute.
    fn claim(&mut self) -> Result<(), Error> {
        self.results.claim()?;
        if let Some(files) = &mut self.invocation.files {
            let suffix = self.results.suffix();
            files.stamp.push_str(&suffix);
            files.prefix.as_mut_os_string().push(&suffix);
        }
        Ok(())
    }
}

/// A new run: everything that can be wrong with the request is found here, before anything is opened or written.
/// `engine` is the one to take where none is asked for.
pub(super) fn begin(args: &MeasuringArgs, request: Request, engine: &str) -> Result<Job, Error> {
    begin_on(args, request, engine, target(args)?)
}

/// Refuses a directory for results that cannot be used, before anything is made.
pub(super) fn refuse_unusable(args: &MeasuringArgs) -> Result<(), Error> {
    args.outcome.out.as_deref().map_or(Ok(()), journal::refuse_unusable)
}

/// The same on a database. `private_in` is the directory of a server that was made for this run.
pub(super) fn begin_sql(
    args: &MeasuringArgs,
    request: Request,
    access: Access,
    private_in: Option<String>,
    findings: Vec<Finding>,
) -> Result<Job, Error> {
    let urls = access.servers.iter().map(ToString::to_string).collect();
    let dbms = access.dbms();
    let target = Target::Sql(SqlTarget { dbms, urls, private_in });
    let job = begin_on(args, request, dbms.name(), target)?;
    Ok(Job { access: Some(access), findings, ..job })
}

fn begin_on(args: &MeasuringArgs, request: Request, engine: &str, target: Target) -> Result<Job, Error> {
    let results = Results::begin(args.outcome.out.as_deref(), request.verb())?;
    let options = RunOptions {
        destroy: args.destroy.clone(),
        allow_holes: args.allow_holes,
        workers: args.workers.unwrap_or(1) as usize,
        seed: args.outcome.seed(),
        directory: std::env::current_dir().unwrap_or_default(),
    };
    let engine =
        EngineChoice { name: args.engine.clone().unwrap_or_else(|| engine.to_string()), buffered: args.buffered };
    let command = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let invocation = Invocation { request, options, files: None };
    Ok(Job::new(invocation, target, engine, command, results))
}

fn target(args: &MeasuringArgs) -> Result<Target, Error> {
    let given = Given { targets: &args.targets, option: "", scratch_size: args.scratch_size, keep: args.keep };
    let target = match given.model()? {
        Some(model) => model,
        None => given.paths(Path::is_dir)?,
    };
    given.check_scratch(&target)?;
    target::check_members(&target)?;
    Ok(target)
}

/// A run that was cut short: all that it was is in its journal.
pub(super) fn resume(directory: &Path, args: &MeasuringArgs) -> Result<Job, Error> {
    let (journal, run) = reopen(directory)?;
    if let Request::Orion(_) = run.header.request() {
        return Err(Error::usage("this run was made by rigel orion", "resume it with the verb that started it"));
    }
    job_again(directory, args, journal, run)
}

/// The job of the run whose journal this is.
pub(super) fn job_again(directory: &Path, args: &MeasuringArgs, journal: Journal, run: Run) -> Result<Job, Error> {
    let header = run.header.clone();
    let mut invocation = header.invocation;
    if let Request::Layers(_) | Request::Import(_) = invocation.request {
        return Err(Error::usage(
            format!("this run was made by rigel {}", invocation.request.command()),
            "resume it with the verb that started it",
        ));
    }
    // Leave to destroy is given anew: much may have changed since.
    invocation.options.destroy.clone_from(&args.destroy);
    let begun_in = begun_in(&invocation.options.directory);
    if let Some(files) = &mut invocation.files {
        files.prefix = begun_in.join(&files.prefix);
    }
    let target = target_again(&run.header, &begun_in);
    let access = match &target {
        Target::Sql(SqlTarget { private_in: Some(_), .. }) => {
            return Err(Error::usage("the run used a private server, which was removed with it", "start another run"));
        }
        Target::Sql(servers) => Some(database::access_again(&servers.urls, &args.password)?),
        _ => None,
    };
    Ok(Job {
        invocation,
        target,
        engine: header.engine,
        command: header.command,
        results: Results::existing(directory),
        access,
        findings: Vec::new(),
        resumed: Some((journal, run)),
    })
}

/// The journal in `directory`, to be gone on with.
pub(super) fn reopen(directory: &Path) -> Result<(Journal, Run), Error> {
    let (journal, run) = Journal::reopen(directory)?;
    if run.cut {
        remark("the journal's last line is incomplete: its point is measured again\n");
    }
    Ok((journal, run))
}

/// What stands before the relative paths of a run that was begun in `directory`: nothing if that is here, so that they
/// can stay as they were typed.
fn begun_in(directory: &Path) -> PathBuf {
    let here = std::env::current_dir().is_ok_and(|here| here == directory);
    if here { PathBuf::new() } else { directory.to_path_buf() }
}

/// The target of a run that is gone on with, its paths counted from `begun_in`. A scratch file that was kept is the
/// target itself; one that was not is made anew, as large as it was.
fn target_again(header: &Header, begun_in: &Path) -> Target {
    match header.target.clone() {
        Target::Paths { members, layout } => {
            Target::Paths { members: members.iter().map(|path| begun_in.join(path)).collect(), layout }
        }
        Target::Scratch { directory, keep, .. } => {
            let members = &header.facts.members;
            let kept: Vec<PathBuf> = members
                .iter()
                .map(|member| begun_in.join(&member.path))
                .filter(|path| keep && path.is_file())
                .collect();
            if kept.is_empty() {
                remark(
                    "the scratch file of this run no longer exists: the remaining points are measured on a new one\n",
                );
                let bytes = members.first().map(|member| member.bytes);
                Target::Scratch { directory: begun_in.join(directory), bytes, keep }
            } else {
                Target::Paths { members: kept, layout: Layout::Concat }
            }
        }
        other @ (Target::Sim(_) | Target::Null { .. } | Target::Sql(_)) => other,
    }
}

/// Points of one run are of one volume. A scratch file that was made anew is like the one before.
pub(super) fn refuse_another_target(header: &Header, bench: &Bench) -> Result<(), Error> {
    let scratch = matches!(header.target, Target::Scratch { .. }) && bench.facts.usable == header.facts.usable;
    match header.facts.difference(&bench.facts) {
        Some(difference) if !scratch => Err(Error::usage(
            format!("this run cannot be resumed: {difference}"),
            "restore the target that it was started on, or start another run",
        )),
        _ => Ok(()),
    }
}

/// What a verb says of its own while a run is measured.
pub(super) trait Announce {
    /// Everything is ready, and the journal is made.
    fn ready(&self, job: &Job, aside: &dyn Fn(&dyn Fn()));

    /// A point begins.
    fn point(&self, coordinates: Coordinates, aside: &dyn Fn(&dyn Fn()));
}

/// Says nothing.
struct Quiet;

impl Announce for Quiet {
    fn ready(&self, _: &Job, _: &dyn Fn(&dyn Fn())) {}

    fn point(&self, _: Coordinates, _: &dyn Fn(&dyn Fn())) {}
}

/// Measures what is still to be measured, into the journal. Returns the run as the journal has it, and whether it was
/// stopped.
pub(super) fn measure(job: &mut Job, args: &MeasuringArgs) -> Result<(Run, bool), Error> {
    measure_announced(job, &args.outcome, &Quiet)
}

/// The same, with what a verb says of its own.
pub(super) fn measure_announced(
    job: &mut Job,
    outcome: &OutcomeArgs,
    announce: &dyn Announce,
) -> Result<(Run, bool), Error> {
    let stop = stop_flag()?;
    let request = job.invocation.request.clone();
    let expected = job.points_expected();
    let title = format!("{} {}", request.verb(), job.target);
    let progress = RefCell::new(Progress::new(&title, expected, request.point_seconds(), outcome.progress()));
    let aside = |say: &dyn Fn()| progress.borrow().aside(say);
    let mut listen = |event: Event| {
        if let Event::Begin { point } = &event {
            if !matches!(request, Request::Orion(_)) {
                progress.borrow_mut().expect(|done| request.points_expected(done));
            }
            announce.point(point.coordinates, &aside);
        }
        progress.borrow_mut().hear(&event);
    };
    let measured = prepare_and_measure(job, &stop, &|job| announce.ready(job, &aside), &mut listen);
    progress.borrow().finish();
    let directory = job.results.directory();
    if let Err(error) = measured {
        let points = journal::read(directory).map_or(0, |run| run.points.len());
        if points > 0 {
            remark(&format!("{points} points are in the journal: rigel report {}\n", directory.display()));
        }
        return Err(error);
    }
    Ok((journal::read(directory)?, stop.load(Ordering::Relaxed)))
}

fn prepare_and_measure(
    job: &mut Job,
    stop: &AtomicBool,
    is_ready: &dyn Fn(&Job),
    listen: &mut Listen,
) -> Result<(), Error> {
    let mut bench = ready(job, stop, listen)?;
    bench.findings.append(&mut job.findings);
    let is_matrix = matches!(job.invocation.request, Request::Orion(_));
    let (mut journal, done): (_, Vec<PointRecord>) = if let Some((journal, run)) = job.resumed.take() {
        refuse_another_target(&run.header, &bench)?;
        (journal, run.latest().into_iter().filter(|point| point.end == End::Complete).collect())
    } else {
        job.claim()?;
        // Which points a search has is found out while measuring; every record says what was asked of it.
        let points = if is_matrix { bench.points.clone() } else { Vec::new() };
        let header = header(&bench, points, &job.command, &job.target, job.engine.buffered, &job.invocation);
        (Journal::create(job.results.directory(), &header)?, Vec::new())
    };
    is_ready(job);
    let (search, seed) = (&job.invocation.request, job.invocation.options.seed);
    if is_matrix {
        let is_left = |point: &&Point| done.iter().all(|record| record.coordinates != point.coordinates);
        let mut left = bench.points.iter().filter(is_left);
        let mut next = |_: &[PointRecord]| {
            let point = left.next()?.clone();
            Some(Next { warming: search.warming(point.coordinates, 0, seed), point })
        };
        return bench.measure(&mut journal, Vec::new(), &mut next, stop, listen).map(drop);
    }
    let usable = bench.facts.usable.0;
    let mut asked = None;
    let mut summaries: Vec<PointSummary> = Vec::new();
    let mut plan = |records: &[PointRecord]| {
        // Records are only ever added.
        let fresh = &records[summaries.len()..];
        summaries.extend(fresh.iter().map(|record| summarise_within(record, search.bound())));
        let point = search.next(usable, seed, &summaries)?;
        // A point that left no record is not asked for twice.
        let again = asked.replace(point.coordinates) == Some(point.coordinates);
        (!again).then(|| Next { warming: search.warming(point.coordinates, usable, seed), point })
    };
    bench.measure(&mut journal, done, &mut plan, stop, listen).map(drop)
}

/// The bench of a job.
fn ready(job: &Job, stop: &AtomicBool, listen: &mut Listen) -> Result<Bench, Error> {
    let Invocation { request, options, .. } = &job.invocation;
    let sql = job.access.as_ref().zip(request.sql()).map(|(access, terms)| SqlRequest {
        access,
        work: terms.work,
        statement_timeout: terms.statement_timeout,
    });
    let asked = BenchRequest {
        target: &job.target,
        engine: &job.engine,
        grain: request.grain(),
        largest: request.largest(),
        writes: request.writes(),
        destroy: &options.destroy,
        allow_holes: options.allow_holes,
        workers: options.workers,
        seed: options.seed,
        sql,
    };
    Bench::prepare(&asked, |volume| request.prepared(volume, options.seed), stop, listen)
}

/// The first line of a run's journal: `points` are planned on this bench, and `invocation` is what was asked for.
pub(super) fn header(
    bench: &Bench,
    points: Vec<Point>,
    command: &[String],
    target: &Target,
    buffered: bool,
    invocation: &Invocation,
) -> Header {
    Header {
        format: journal::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: clock::wall_time(),
        command: command.to_vec(),
        target: target.clone(),
        engine: EngineChoice { name: bench.engine_name().into(), buffered },
        engine_about: bench.engine_about(),
        points,
        invocation: invocation.clone(),
        host: bench.host.clone(),
        facts: bench.facts.clone(),
        findings: bench.findings.clone(),
    }
}

/// Refuses a run that is not whole: it was stopped, a session broke, or I/Os failed.
pub(super) fn refuse_incomplete(run: &Run, stopped: bool, directory: &Path) -> Result<(), Error> {
    let points = run.latest();
    let broken = points.iter().find_map(|point| match &point.end {
        End::Broken(why) => Some(format!("{}: {why}", point.coordinates)),
        _ => None,
    });
    let verb = run.header.request().command();
    let is_gone = matches!(&run.header.target, Target::Sql(SqlTarget { private_in: Some(_), .. }));
    if stopped || broken.is_some() || points.is_empty() {
        let why = broken.map_or_else(|| "before it was complete".to_string(), |why| format!("at {why}"));
        return Err(Error::failed(
            format!("the run ended {why}"),
            if is_gone {
                "its private server was removed: start another run".to_string()
            } else {
                format!("resume it with `rigel {verb} --resume {}`", directory.display())
            },
        ));
    }
    refuse_failed(&points)
}

/// Refuses points in which I/Os failed.
pub(super) fn refuse_failed(points: &[PointRecord]) -> Result<(), Error> {
    let failures: u64 = points.iter().flat_map(|point| &point.streams).map(|stream| stream.total().failures()).sum();
    if failures > 0 {
        return Err(Error::failed(format!("{failures} I/Os failed"), "the report shows which, and why"));
    }
    Ok(())
}

/// The flag that Ctrl-C, SIGTERM and SIGHUP set: one for the whole process, so that no signal between two steps of a
/// verb is lost. A second Ctrl-C ends the process at once. Where SIGHUP is ignored, as below `nohup`, it stays ignored.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>, Error> {
    static STOP: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut known = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = known.as_ref() {
        return Ok(Arc::clone(stop));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let failed = |error| Error::failed(format!("cannot listen for signals: {error}"), "");
    signal_hook::flag::register_conditional_shutdown(SIGINT, 1, Arc::clone(&stop)).map_err(failed)?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hang_up = if ignores(&status, SIGHUP) { None } else { Some(SIGHUP) };
    for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
    }
    *known = Some(Arc::clone(&stop));
    Ok(stop)
}

/// True if a process whose `/proc/<pid>/status` this is ignores `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_found_in_the_status_of_a_process() {
        let status = |mask: &str| format!("SigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(ignores(&status("0000000000001001"), SIGHUP));
        assert!(!ignores(&status("0000000000001000"), SIGHUP));
        assert!(!ignores("", SIGHUP));
    }
}
