//! `rigel orion`, or the program called `orion`: Orion's runs, with Orion's files and our journal.

use super::measuring::{begun_in, header, refuse_another_target, refuse_failed, reopen, stop_flag, target_again};
use super::orion_args::{self, OrionArgs, Parsed};
use super::output::{self, remark, result};
use super::page;
use super::progress::{Progress, Way};
use super::results::Results;
use super::target::check_members;
use crate::clock;
use crate::files;
use crate::model::{Error, Invocation, OrionFiles, OrionRequest, Request, RunOptions, Target};
use crate::plan::lun;
use crate::plan::orion::VolumeShape;
use crate::record::journal::{self, EngineChoice, Journal, Run};
use crate::record::{End, PointRecord};
use crate::report::classic::{self, Names};
use crate::report::table::Detail;
use crate::report::{self, data};
use crate::run::{Bench, BenchRequest, Event, Next};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What was asked of Orion: the parts of its invocation.
struct OrionRun {
    request: OrionRequest,
    options: RunOptions,
    files: OrionFiles,
}

impl OrionRun {
    /// The invocation of a run.
    ///
    /// # Errors
    /// Another verb made the run.
    fn of(run: &Run) -> Result<Self, Error> {
        match run.header.invocation.clone() {
            Invocation { request: Request::Orion(request), options, files: Some(files) } => {
                Ok(Self { request, options, files })
            }
            other => Err(Error::usage(
                format!("this run was not made by orion, but by {}", other.request.command()),
                "use a report that its verb has",
            )),
        }
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            request: Request::Orion(self.request.clone()),
            options: self.options.clone(),
            files: Some(self.files.clone()),
        }
    }
}

/// A run that is to be made, or to be gone on with.
struct Job {
    asked: OrionRun,
    target: Target,
    engine: EngineChoice,
    command: Vec<String>,
    /// Where its journal is.
    results: Results,
    /// The run so far, and its journal.
    resumed: Option<(Journal, Run)>,
}

impl Job {
    /// Makes the directory of a new run. Where another run of this minute has the name of the files, a number follows
    /// the minute.
    fn claim(&mut self) -> Result<(), Error> {
        self.results.claim()?;
        let suffix = self.results.suffix();
        self.asked.files.stamp.push_str(&suffix);
        self.asked.files.prefix.as_mut_os_string().push(&suffix);
        Ok(())
    }

    fn names(&self) -> Names<'_> {
        names(&self.asked, &self.command, env!("CARGO_PKG_VERSION"))
    }
}

/// Runs the verb with its own arguments.
pub(super) fn run(arguments: &[OsString]) -> Result<u8, Error> {
    let args = match orion_args::parse(arguments.iter().cloned())? {
        Parsed::Help(text) => {
            result(&text);
            return Ok(0);
        }
        Parsed::Measure(args) => args,
    };
    args.remarks().iter().for_each(|text| remark(&format!("{text}\n")));
    let job = match &args.resume {
        Some(directory) => resume(directory, &args.destroy)?,
        None => begin(&args, arguments)?,
    };
    measure(job, &args)
}

/// A new run: everything that can be wrong with the request is found here, before anything is opened or written.
fn begin(args: &OrionArgs, arguments: &[OsString]) -> Result<Job, Error> {
    let (request, target) = args.resolve(|| read_lun(&args.testname), Path::is_dir)?;
    check_members(&target)?;
    request.overrides().iter().for_each(|text| remark(&format!("{text}\n")));
    let stamp = clock::file_stamp();
    let prefix = PathBuf::from(format!("{}_{stamp}", request.testname));
    let (prefix, results) = match &args.out {
        None => {
            refuse_unusable(&prefix)?;
            let results = Results::numbered(&prefix.display().to_string())?;
            (prefix, results)
        }
        Some(out) => (out.join(prefix.file_name().unwrap_or_default()), Results::named(out)?),
    };
    let options = RunOptions {
        destroy: args.destroy.clone(),
        allow_holes: args.allow_holes,
        workers: args.workers.unwrap_or(1) as usize,
        seed: args.seed.unwrap_or_else(clock::fresh_seed),
        directory: std::env::current_dir().unwrap_or_default(),
    };
    let command = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let asked = OrionRun { request, options, files: OrionFiles { stamp, prefix } };
    Ok(Job { asked, target, engine: args.engine_choice(), command, results, resumed: None })
}

/// A run that was cut short: all that it was is in its journal.
fn resume(directory: &Path, destroy: &Vec<PathBuf>) -> Result<Job, Error> {
    let (journal, run) = reopen(directory)?;
    let header = run.header.clone();
    let mut asked = OrionRun::of(&run)?;
    let begun_in = begun_in(&asked.options.directory);
    asked.files.prefix = begun_in.join(&asked.files.prefix);
    refuse_unsafe(&asked.files.prefix)?;
    // Leave to destroy is given anew: much may have changed since.
    asked.options.destroy.clone_from(destroy);
    let target = target_again(&run.header, &begun_in);
    Ok(Job {
        asked,
        target,
        engine: header.engine,
        command: header.command,
        results: Results::existing(directory),
        resumed: Some((journal, run)),
    })
}

fn measure(mut job: Job, args: &OrionArgs) -> Result<u8, Error> {
    let stop = stop_flag()?;
    let request = job.asked.request.clone();
    let silent = args.no_progress;
    let cells = request.cells().len() - job.resumed.as_ref().map_or(0, |(_, run)| run.complete().len());
    let title = format!("orion {}", job.target);
    let way = Way::of(silent, args.live);
    let progress = RefCell::new(Progress::new(&title, cells, request.point_seconds(), way));
    // What it will take is said once it is sure that it will be done.
    let begin = |names: &Names| {
        progress.borrow().aside(|| {
            if !args.json {
                result(&classic::banner(&request, names));
            }
            if !silent {
                remark(&classic::estimate_line(&request, cells));
            }
        });
    };
    let mut listen = |event: Event| {
        if let Event::Begin { point } = event
            && request.verbose
            && !args.json
        {
            progress.borrow().aside(|| result(&classic::verbose_lines(&request, point.coordinates)));
        }
        progress.borrow_mut().hear(&event);
    };
    if cells > 0 {
        let measured = prepare_and_measure(&mut job, &request, &stop, &begin, &mut listen);
        progress.borrow().finish();
        measured?;
    } else {
        begin(&job.names());
    }
    conclude(&job, args, stop.load(Ordering::Relaxed))
}

/// Measures what is still to be measured, into the journal.
fn prepare_and_measure(
    job: &mut Job,
    request: &OrionRequest,
    stop: &AtomicBool,
    begin: &dyn Fn(&Names),
    listen: &mut dyn FnMut(Event),
) -> Result<(), Error> {
    let options = &job.asked.options;
    let points = |volume: VolumeShape| request.points(volume, options.seed);
    let bench = Bench::prepare(
        &BenchRequest {
            sql: None,
            target: &job.target,
            engine: &job.engine,
            grain: request.grain(),
            largest: request.largest_io(),
            writes: request.write > 0,
            destroy: &options.destroy,
            allow_holes: options.allow_holes,
            workers: options.workers,
            seed: options.seed,
        },
        points,
        stop,
        listen,
    )?;
    let (mut journal, done) = if let Some((journal, run)) = job.resumed.take() {
        refuse_another_target(&run.header, &bench)?;
        (journal, run.complete())
    } else {
        job.claim()?;
        let points = bench.points.clone();
        let header = header(&bench, points, &job.command, &job.target, job.engine.buffered, &job.asked.invocation());
        (Journal::create(job.results.directory(), &header)?, Vec::new())
    };
    begin(&job.names());
    let seed = job.asked.options.seed;
    let mut left = bench.points.iter().filter(|point| !done.contains(&point.coordinates));
    let mut next = |_: &[PointRecord]| {
        let point = left.next()?.clone();
        Some(Next { warming: request.warming(point.coordinates, seed), point })
    };
    bench.measure(&mut journal, Vec::new(), &mut next, stop, listen).map(drop)
}

/// Prints the results and writes Orion's files, all from the journal. What was measured is shown before anything can
/// fail for want of room.
fn conclude(job: &Job, args: &OrionArgs, stopped: bool) -> Result<u8, Error> {
    let run = journal::read(job.results.directory())?;
    let points = run.latest();
    let found = report::result(&run);
    if args.json {
        output::json(&data::json(&run, &found));
    } else {
        result(&format!("\n{}", classic::result_block(&job.asked.request, &points)));
    }
    remark(&format!("\n{}", report::text(&run, &found, Detail::Usual)));
    let files = write_files(&run, &job.asked.files.prefix)?;
    let mut text = "\nOrion's files:\n".to_string();
    for path in &files {
        let _ = writeln!(text, "  {}", path.display());
    }
    let _ = writeln!(text, "the whole record, for `rigel report`:\n  {}", job.results.directory().display());
    remark(&text);
    page::beside(&run, &found, job.results.directory());
    exit_status(&run, &points, job.results.directory(), stopped)
}

/// 0 if every point ran to its end and every operation did what it should.
fn exit_status(run: &Run, points: &[PointRecord], directory: &Path, stopped: bool) -> Result<u8, Error> {
    let planned = run.header.points.len();
    let complete = points.iter().filter(|point| point.end == End::Complete).count();
    if complete < planned {
        let broken = points.iter().find_map(|point| match &point.end {
            End::Broken(why) => Some(format!(": {why}")),
            _ => None,
        });
        return Err(Error::failed(
            format!(
                "{}{} of {planned} data points are not complete{}",
                if stopped { "stopped: " } else { "" },
                planned - complete,
                broken.unwrap_or_default()
            ),
            format!("resume them by `rigel orion --resume {}`", directory.display()),
        ));
    }
    refuse_failed(points)?;
    Ok(0)
}

/// Writes Orion's six files with names that begin with `prefix`.
fn write_files(run: &Run, prefix: &Path) -> Result<Vec<PathBuf>, Error> {
    let asked = OrionRun::of(run)?;
    let names = names(&asked, &run.header.command, &run.header.version);
    let members: Vec<classic::Member> =
        run.header.facts.members.iter().map(|member| (member.path.as_path(), member.bytes.0)).collect();
    let mut written = Vec::new();
    for (suffix, text) in classic::files(&asked.request, &names, &members, &run.latest()) {
        let path = with_suffix(prefix, suffix);
        files::replace(&path, text.as_bytes()).map_err(|error| {
            Error::failed(
                format!("cannot write '{}': {error}", path.display()),
                "the journal is whole: once there is room, `rigel report RUN --orion-files DIR` writes the files",
            )
        })?;
        written.push(path);
    }
    Ok(written)
}

/// `rigel report --orion-files`: the six files of a run, into another directory.
pub(super) fn write_files_again(run: &Run, directory: &Path) -> Result<u8, Error> {
    let asked = OrionRun::of(run)?;
    let name = asked.files.prefix.file_name().map(PathBuf::from).unwrap_or_default();
    let prefix = directory.join(name);
    refuse_unusable(&prefix)?;
    let summary = with_suffix(&prefix, "summary.txt");
    if summary.exists() {
        return Err(Error::usage(
            format!("'{}' exists", summary.display()),
            "name another directory, or remove the files there",
        ));
    }
    write_files(run, &prefix)?.iter().for_each(|path| result(&format!("{}\n", path.display())));
    Ok(0)
}

/// `rigel report --format orion`: Orion's summary.
pub(super) fn summary_again(run: &Run) -> Result<String, Error> {
    let asked = OrionRun::of(run)?;
    let members: Vec<classic::Member> =
        run.header.facts.members.iter().map(|member| (member.path.as_path(), member.bytes.0)).collect();
    Ok(classic::summary(
        &asked.request,
        &names(&asked, &run.header.command, &run.header.version),
        &members,
        &run.latest(),
    ))
}

/// `version` is that of the program that measures, whichever one makes a report of it later.
fn names<'a>(asked: &'a OrionRun, command: &'a [String], version: &'a str) -> Names<'a> {
    Names { testname: &asked.request.testname, stamp: &asked.files.stamp, version, arguments: command }
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
                lun::remark(testname, path).iter().for_each(|text| remark(&format!("{text}\n")));
                return lun::parse(&text, path, Path::exists);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let hint = "make it a text file that you may read, with one file or device a line";
                return Err(Error::usage(format!("cannot read the LUN file '{}': {error}", path.display()), hint));
            }
        }
    }
    let tried: Vec<String> = candidates.iter().map(|path| format!("'{}'", path.display())).collect();
    Err(Error::usage(
        format!("there is no LUN file {}", tried.join(" or ")),
        "make it, with one file or device a line; or name targets by --target PATH, or a directory for a scratch file",
    ))
}

/// Refuses files whose directory does not exist, or is not safe.
fn refuse_unusable(prefix: &Path) -> Result<(), Error> {
    let parent = prefix.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent.filter(|parent| !parent.is_dir()) {
        None => refuse_unsafe(prefix),
        Some(parent) => Err(Error::usage(
            format!("there is no directory '{}' for the result files", parent.display()),
            "make it first",
        )),
    }
}

/// Refuses root a place for the files in which another user could exchange them.
fn refuse_unsafe(prefix: &Path) -> Result<(), Error> {
    files::refuse_unsafe(prefix.parent().unwrap_or(Path::new(""))).map_err(|error| {
        Error::usage(
            format!("the files '{}' cannot be written: {error}", with_suffix(prefix, "*").display()),
            "name a directory for the run by --out DIR",
        )
    })
}
