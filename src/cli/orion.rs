//! `rigel orion`, or the program called `orion`: Orion's runs, with Orion's files and our journal.

use super::measuring::{self, Announce, BlocksArgs, Job, MeasuringArgs};
use super::membership::Membership;
use super::orion_args::{self, OrionArgs, Parsed};
use super::output::{self, remark, result};
use super::outputs::{Kept, OutputFile, OutputKind, directory_of};
use super::page;
use super::results::Results;
use super::target::check_members;
use rigel_device::clock;
use rigel_model::files;
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord};
use rigel_model::{Coordinates, Error, OrionFiles, Target, failed, shell_path, usage};
use rigel_verbs::orion::OrionRequest;
use rigel_verbs::orion::files::{self as files_of_orion, Names};
use rigel_verbs::orion::lun;
use rigel_verbs::{Evaluated, Verb};
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
    let kept = Kept::of_job(&job);
    refuse_others(&job, &kept)?;
    let measured = measuring::measure_announced(&mut job, &args.outcome, &announcer)?;
    let Some((measured, outcome)) = measured else {
        return Ok(0);
    };
    show(&job, &args, &kept, &measured)?;
    outcome
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

    fn refuse_incomplete(
        &self,
        run: &Run,
        _: &dyn Verb,
        stopped: bool,
        path: &Path,
    ) -> Result<(), Error> {
        refuse_incomplete(run, &run.joined(), path, stopped)
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

/// A run that was cut short, from its journal. Its files are where those of a new run of this name are, whatever
/// the journal says: beside the directory of a run that is called as they are, else beside the journal.
fn resume(run: &Path, args: &OrionArgs, membership: &Membership) -> Result<Job, Error> {
    let mut job = measuring::resume(run, &measuring(args), membership, "orion", &[])?;
    let request = request_of(&job)?.clone();
    let run = job.results.path().to_path_buf();
    if let Some(files) = &mut job.files {
        let name = format!("{}_{}", request.testname, files.stamp);
        let is_called_so = run
            .file_name()
            .is_some_and(|directory| directory.to_string_lossy() == format!("{name}.rigel"));
        files.prefix = match directory_of(&run) {
            Some(directory) if !is_called_so => directory.join(name),
            _ => run.with_file_name(name),
        };
        refuse_unsafe(&files.prefix)?;
    }
    Ok(job)
}

/// Prints the results and writes Orion's files, all from the journal. What was measured is shown
/// before anything can fail for want of room.
fn show(job: &Job, args: &OrionArgs, kept: &Kept, measured: &Evaluated) -> Result<(), Error> {
    let run = &measured.run;
    let points = run.joined();
    let asked = OrionRun::of(run)?;
    // That of the journal names no file.
    let prefix = job.files.as_ref().map(|files| &files.prefix);
    let prefix = prefix.ok_or_else(|| made_by(&run.header.invocation.verb))?;
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
    write_files(run, prefix, kept)?;
    page::place(&measured.document(), measured, job.results.path());
    remark(&format!(
        "Orion's files: {}*\n",
        shell_path(&with_suffix(prefix, ""))
    ));
    Ok(())
}

/// Refuses a run of which not every point ran to its end.
fn refuse_incomplete(
    run: &Run,
    points: &[PointRecord],
    directory: &Path,
    stopped: bool,
) -> Result<(), Error> {
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
    Ok(())
}

/// The files or devices of the run, as Orion's summary lists them.
fn members(run: &Run) -> Vec<files_of_orion::Member<'_>> {
    let members = &run.header.facts.members;
    members
        .iter()
        .map(|member| (member.path.as_path(), member.bytes.0))
        .collect()
}

/// Orion's file with this end of its name.
fn file<'a>(prefix: &Path, suffix: &'static str, files: &'a OrionFiles) -> OutputFile<'a> {
    let stamp = &files.stamp;
    OutputFile::beside(
        with_suffix(prefix, suffix),
        OutputKind::Orion { suffix, stamp },
    )
}

/// Refuses to write any of Orion's files over another one, before anything is measured. In a directory that the run
/// makes there is none.
fn refuse_others(job: &Job, kept: &Kept) -> Result<(), Error> {
    let is_follower = job.membership.as_follower().is_some();
    let is_new = |files: &&OrionFiles| {
        let above = files
            .prefix
            .parent()
            .filter(|above| *above != Path::new(""));
        above.is_some_and(|above| !above.exists())
    };
    let files = job.files.as_ref();
    let Some(files) = files.filter(|files| !is_follower && !is_new(files)) else {
        return Ok(());
    };
    files_of_orion::SUFFIXES
        .iter()
        .try_for_each(|suffix| file(&files.prefix, suffix, files).refuse_other(kept))
}

/// Writes Orion's six files with names that begin with `prefix`.
fn write_files(run: &Run, prefix: &Path, kept: &Kept) -> Result<Vec<PathBuf>, Error> {
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
        let file = file(prefix, suffix, &asked.files);
        file.write(text.as_bytes(), kept)?;
        written.push(file.path().to_path_buf());
    }
    Ok(written)
}

/// `rigel report --orion-files`: the six files of a run, into another directory.
pub(super) fn write_files_again(run: &Run, directory: &Path, kept: &Kept) -> Result<(), Error> {
    let OrionRun { request, files } = OrionRun::of(run)?;
    let prefix = directory.join(format!("{}_{}", request.testname, files.stamp));
    refuse_unusable(&prefix)?;
    files_of_orion::SUFFIXES
        .iter()
        .try_for_each(|suffix| file(&prefix, suffix, &files).refuse_other(kept))?;
    write_files(run, &prefix, kept)?
        .iter()
        .for_each(|path| result(&format!("{}\n", path.display())));
    Ok(())
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
