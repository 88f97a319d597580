//! `rigel orion`, or the program called `orion`: Orion's runs, with Orion's files and our journal.

use super::measuring::{self, Announce, BlocksArgs, Job, MeasuringArgs, refuse_failed};
use super::membership::Membership;
use super::orion_args::{self, OrionArgs, Parsed};
use super::output::{self, remark, result};
use super::page;
use super::results::Results;
use super::target::check_members;
use rigel_device::clock;
use rigel_model::files;
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord};
use rigel_model::{Coordinates, Error, OrionFiles, Target, failed, shell_path, usage};
use rigel_verbs::Evaluated;
use rigel_verbs::orion::OrionRequest;
use rigel_verbs::orion::files::{self as files_of_orion, Names};
use rigel_verbs::orion::lun;
use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

/// What was asked of Orion: the parts of its invocation.
struct OrionRun {
    request: OrionRequest,
    files: OrionFiles,
}

impl OrionRun {
    /// The invocation of a run.
    ///
    /// # Errors
    /// Another verb made the run.
    fn of(run: &Run) -> Result<Self, Error> {
        let invocation = &run.header.invocation;
        let asked = invocation.asked("orion").zip(invocation.files.clone());
        let (request, files) = asked.ok_or_else(|| made_by(&invocation.verb))?;
        Ok(Self { request, files })
    }
}

fn made_by(verb: &str) -> Error {
    usage!(
        "this run was not made by orion, but by {verb}",
        "use a report of that verb"
    )
}

/// Runs the verb with its own arguments.
pub(super) fn run(arguments: &[OsString], membership: &Membership) -> Result<u8, Error> {
    let args = match orion_args::parse(arguments.iter().cloned())? {
        Parsed::Help(text) => {
            result(&text);
            return Ok(0);
        }
        Parsed::Measure(args) => args,
    };
    let ranks = &args.outcome.ranks;
    ranks.enter(membership, !args.destroy.is_empty())?;
    args.remarks()
        .iter()
        .for_each(|text| remark(&format!("{text}\n")));
    let mut job = match &args.outcome.resume {
        Some(run) => resume(run, &args, membership)?,
        None => begin(&args, membership, arguments)?,
    };
    let request = request_of(&job)?.clone();
    let announcer = Announcer {
        args: &args,
        has_own_lines: has_own_lines(&args, &request),
        request,
        cells: job.points_expected(),
    };
    let stopped = if announcer.cells > 0 {
        match measuring::measure_announced(&mut job, &args.outcome, &announcer)? {
            Some((_, stopped)) => stopped,
            None => return Ok(0),
        }
    } else {
        if job.is_over() {
            remark(measuring::COMPLETE);
        }
        announcer.ready(&job, &|say| say());
        false
    };
    let outcome = conclude(&job, &args, stopped);
    job.ended(outcome)
}

/// Orion's banner, how long it will take, and which point begins.
struct Announcer<'a> {
    args: &'a OrionArgs,
    has_own_lines: bool,
    request: OrionRequest,
    cells: usize,
}

/// True if Orion's own lines are printed: to a file or a pipe, for programs that read them. On a
/// terminal, one screen has the answer unless `-verbose` asks for them.
fn has_own_lines(args: &OrionArgs, request: &OrionRequest) -> bool {
    !args.outcome.json && (request.verbose || !io::stdout().is_terminal())
}

impl Announce for Announcer<'_> {
    fn ready(&self, job: &Job, aside: &dyn Fn(&dyn Fn())) {
        let Some(files) = &job.files else {
            return;
        };
        let names = names(
            &self.request,
            files,
            &job.command,
            env!("CARGO_PKG_VERSION"),
        );
        // How long it takes is said once it is sure that it will be done.
        aside(&|| {
            if self.has_own_lines {
                result(&files_of_orion::banner(&self.request, &names));
            }
            if !self.args.outcome.no_progress {
                // The time of a model is not that of the clock.
                let is_real = !matches!(job.target, Target::Sim(_));
                let line = files_of_orion::estimate_line(&self.request, self.cells, is_real);
                remark(&line);
            }
        });
    }

    fn point(&self, coordinates: Coordinates, aside: &dyn Fn(&dyn Fn())) {
        if self.request.verbose && !self.args.outcome.json {
            aside(&|| result(&files_of_orion::verbose_lines(&self.request, coordinates)));
        }
    }
}

fn request_of(job: &Job) -> Result<&OrionRequest, Error> {
    let request = job.verb.downcast_ref::<OrionRequest>();
    request.ok_or_else(|| made_by(job.verb.name()))
}

/// A new run: everything that can be wrong with the request is found here, before anything is
/// opened or written.
fn begin(args: &OrionArgs, membership: &Membership, arguments: &[OsString]) -> Result<Job, Error> {
    let (request, target) = args.resolve(|| read_lun(&args.testname), Path::is_dir)?;
    check_members(&target)?;
    measuring::refuse_unfit(&measuring(args), &request, &target)?;
    request
        .overrides()
        .iter()
        .for_each(|text| remark(&format!("{text}\n")));
    let stamp = clock::file_stamp();
    let prefix = PathBuf::from(format!("{}_{stamp}", request.testname));
    let (prefix, results) = match &args.outcome.out {
        None => {
            refuse_unusable(&prefix)?;
            let results = Results::numbered(&prefix.display().to_string())?;
            (prefix, results)
        }
        Some(out) => (
            out.join(prefix.file_name().unwrap_or_default()),
            Results::named(out)?,
        ),
    };
    let mut job = measuring::job(
        &measuring(args),
        membership,
        Box::new(request),
        &args.engine,
        target,
        results,
    );
    job.command = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    job.files = Some(OrionFiles { stamp, prefix });
    Ok(job)
}

/// The options that Orion's verb shares with the others.
fn measuring(args: &OrionArgs) -> MeasuringArgs {
    MeasuringArgs {
        buffered: args.buffered,
        blocks: BlocksArgs {
            verify: args.verify,
            allow_holes: args.allow_holes,
        },
        destroy: args.destroy.clone(),
        outcome: args.outcome.clone(),
        workers: args.workers,
        targets: args.target.clone(),
        scratch_size: args.scratch_size,
        keep: args.keep,
        ..MeasuringArgs::default()
    }
}

/// A run that was cut short, from its journal.
fn resume(run: &Path, args: &OrionArgs, membership: &Membership) -> Result<Job, Error> {
    let job = measuring::resume(run, &measuring(args), membership, "orion", &[])?;
    job.files
        .iter()
        .try_for_each(|files| refuse_unsafe(&files.prefix))?;
    Ok(job)
}

/// Prints the results and writes Orion's files, all from the journal. What was measured is shown
/// before anything can fail for want of room.
fn conclude(job: &Job, args: &OrionArgs, stopped: bool) -> Result<u8, Error> {
    let run = Run::read(job.results.path())?;
    let points = run.joined();
    let asked = OrionRun::of(&run)?;
    let prefix = job
        .files
        .as_ref()
        .map_or(&asked.files.prefix, |files| &files.prefix);
    let measured = Evaluated::of(run)?;
    let run = &measured.run;
    if args.outcome.json {
        output::json(&measured.json());
    }
    let screen = page::screen(&measured.document(), job.results.path());
    if has_own_lines(args, &asked.request) {
        result(&format!(
            "\n{}",
            files_of_orion::result_block(&asked.request, &points)
        ));
        remark(&format!("\n{screen}"));
    } else {
        remark(&screen);
    }
    write_files(run, prefix)?;
    page::place(&measured.document(), job.results.path());
    remark(&format!(
        "Orion's files: {}*\n",
        shell_path(&with_suffix(prefix, ""))
    ));
    exit_status(run, &points, job.results.path(), stopped)
}

/// 0 if every point ran to its end and every operation did what it should.
fn exit_status(
    run: &Run,
    points: &[PointRecord],
    directory: &Path,
    stopped: bool,
) -> Result<u8, Error> {
    let planned = run.header.points.len();
    let complete = points
        .iter()
        .filter(|point| point.end == End::Complete)
        .count();
    if complete < planned {
        let broken = points.iter().find_map(|point| match &point.end {
            End::Broken(why) => Some(format!(": {why}")),
            _ => None,
        });
        return Err(failed!(
            "{stopped}{missing} of {planned} data points are not complete{why}",
            "resume them with `rigel orion --resume {directory}`",
            stopped = if stopped { "stopped: " } else { "" },
            missing = planned - complete,
            why = broken.unwrap_or_default(),
            directory = shell_path(directory)
        ));
    }
    refuse_failed(points)?;
    Ok(0)
}

/// The files or devices of the run, as Orion's summary lists them.
fn members(run: &Run) -> Vec<files_of_orion::Member<'_>> {
    let members = &run.header.facts.members;
    members
        .iter()
        .map(|member| (member.path.as_path(), member.bytes.0))
        .collect()
}

/// Writes Orion's six files with names that begin with `prefix`.
fn write_files(run: &Run, prefix: &Path) -> Result<Vec<PathBuf>, Error> {
    let asked = OrionRun::of(run)?;
    let names = names(
        &asked.request,
        &asked.files,
        &run.header.command,
        &run.header.version,
    );
    let members = members(run);
    let mut written = Vec::new();
    for (suffix, text) in files_of_orion::files(&asked.request, &names, &members, &run.joined()) {
        let path = with_suffix(prefix, suffix);
        files::replace(&path, text.as_bytes()).map_err(|error| {
            failed!(
                "cannot write '{path}': {error}",
                "the journal is complete: free some space, then `rigel report RUN --orion-files \
                 DIR` writes the files",
                path = path.display()
            )
        })?;
        written.push(path);
    }
    Ok(written)
}

/// `rigel report --orion-files`: the six files of a run, into another directory.
pub(super) fn write_files_again(run: &Run, directory: &Path) -> Result<u8, Error> {
    let asked = OrionRun::of(run)?;
    let name = asked
        .files
        .prefix
        .file_name()
        .map(PathBuf::from)
        .unwrap_or_default();
    let prefix = directory.join(name);
    refuse_unusable(&prefix)?;
    let summary = with_suffix(&prefix, "summary.txt");
    if summary.exists() {
        return Err(usage!(
            "'{summary}' exists",
            "give another directory, or remove the files there",
            summary = summary.display()
        ));
    }
    write_files(run, &prefix)?
        .iter()
        .for_each(|path| result(&format!("{}\n", path.display())));
    Ok(0)
}

/// `rigel report --format orion`: Orion's summary.
pub(super) fn summary_again(run: &Run) -> Result<String, Error> {
    let asked = OrionRun::of(run)?;
    let members = members(run);
    Ok(files_of_orion::summary(
        &asked.request,
        &names(
            &asked.request,
            &asked.files,
            &run.header.command,
            &run.header.version,
        ),
        &members,
        &run.joined(),
    ))
}

/// `version` is that of the program that measures, whichever one makes a report of it later.
fn names<'a>(
    request: &'a OrionRequest,
    files: &'a OrionFiles,
    command: &'a [String],
    version: &'a str,
) -> Names<'a> {
    Names {
        testname: &request.testname,
        stamp: &files.stamp,
        version,
        arguments: command,
    }
}

fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_os_string();
    name.push(format!("_{suffix}"));
    PathBuf::from(name)
}

/// The LUN file of a test, and the targets in it.
fn read_lun(testname: &str) -> Result<Vec<PathBuf>, Error> {
    let candidates = lun::candidates(testname);
    for path in &candidates {
        match files::read_text(path, files::HAND_WRITTEN_MAX) {
            Ok(text) => {
                lun::remark(testname, path)
                    .iter()
                    .for_each(|text| remark(&format!("{text}\n")));
                return lun::parse(&text, path, Path::exists);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let hint = "make it a readable text file, with one file or device per line";
                return Err(usage!(
                    "cannot read the LUN file '{path}': {error}",
                    hint,
                    path = path.display()
                ));
            }
        }
    }
    let tried: Vec<String> = candidates
        .iter()
        .map(|path| format!("'{}'", path.display()))
        .collect();
    Err(usage!(
        "there is no LUN file {tried}",
        "make it, with one file or device per line; or give targets with --target PATH, which may \
         be a directory for a scratch file",
        tried = tried.join(" or ")
    ))
}

/// Refuses files whose directory does not exist, or is not safe.
fn refuse_unusable(prefix: &Path) -> Result<(), Error> {
    let parent = prefix
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match parent.filter(|parent| !parent.is_dir()) {
        None => refuse_unsafe(prefix),
        Some(parent) => Err(usage!(
            "there is no directory '{parent}' for the result files",
            "create it first",
            parent = parent.display()
        )),
    }
}

/// Refuses root a place for the files in which another user could exchange them.
fn refuse_unsafe(prefix: &Path) -> Result<(), Error> {
    files::refuse_unsafe(prefix.parent().unwrap_or(Path::new(""))).map_err(|error| {
        usage!(
            "the files '{files}' cannot be written: {error}",
            "give a directory for the run with --out DIR",
            files = with_suffix(prefix, "*").display()
        )
    })
}
