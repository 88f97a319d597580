//! What verbs that measure have in common: their targets and terms, a run's journal from the first
//! point to the last, and going on with a run that was cut short.

mod args;
mod benches;
mod host_lines;
mod job;
mod rank_journal;
mod resumed;
pub(super) mod rounds;

use super::attend;
use super::database;
use super::exit_status::exit_status;
use super::membership::Membership;
use super::metrics::Metrics;
use super::outcome::OutcomeArgs;
use super::output::remark;
use super::private_server::{Private, ServerArgs};
use super::progress::{Progress, Total};
use super::ranks;
use super::results::{Results, own_arguments};
use super::stop::stop_flag;
pub(super) use args::{BlocksArgs, MeasuringArgs, SHARED, engines, target};
use benches::Benches;
pub(super) use job::{Job, begun_in, commands, targets};
use rank_journal::OwnJournal;
use resumed::NamedAgain;
use rigel_analyse::SoFar;
use rigel_database::Access;
use rigel_device::engine::AUTO;
use rigel_measure::run::agreement::Agreement;
use rigel_measure::run::ranks::FollowedBenches;
use rigel_measure::run::{self, Event, Listen, Next};
use rigel_model::record::journal::Header;
use rigel_model::record::journal::Run;
use rigel_model::record::journal::{EngineChoice, Journal};
use rigel_model::record::{End, HowEnded, PointRecord};
use rigel_model::{
    Bytes, Coordinates, Dbms, Error, FileKind, Layout, Point, PrivateServer, RunOptions, SqlTarget,
    Step, Target, TargetFacts, failed, in_line, shell_path, usage,
};
use rigel_ranks::Ranks;
use rigel_verbs::ending::resume_command;
use rigel_verbs::{Evaluated, Verb};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A new run: everything that can be wrong with the request is found here, before anything is
/// opened or written. `engine` is the one to take where none is asked for.
pub(super) fn begin(
    args: &MeasuringArgs,
    membership: &Membership,
    verb: Box<dyn Verb>,
    engine: &str,
) -> Result<Job, Error> {
    begin_on(args, membership, verb, engine, target(args)?)
}

/// The same on a database.
pub(super) fn begin_sql(
    args: &MeasuringArgs,
    membership: &Membership,
    verb: Box<dyn Verb>,
    access: Access,
) -> Result<Job, Error> {
    let target = resumed::sql_target(&access);
    let job = begin_on(args, membership, verb, access.dbms().name(), target)?;
    Ok(Job {
        access: Some(access),
        ..job
    })
}

/// The same on a server that is made for this run in `directory`, when it is measured.
pub(super) fn begin_private(
    args: &MeasuringArgs,
    membership: &Membership,
    verb: Box<dyn Verb>,
    dbms: Dbms,
    directory: &Path,
    server: PrivateServer,
) -> Result<Job, Error> {
    if !directory.is_dir() {
        return Err(usage!(
            "'{directory}' is no directory, and a private server is made in one",
            "give a directory on the storage under test",
            directory = directory.display()
        ));
    }
    begin_on(
        args,
        membership,
        verb,
        dbms.name(),
        private(dbms, directory, server),
    )
}

/// A server that is made for a run in `directory`.
pub(super) fn private(dbms: Dbms, directory: &Path, server: PrivateServer) -> Target {
    Target::Sql(SqlTarget {
        dbms,
        urls: Vec::new(),
        private_in: Some(directory.display().to_string()),
        private: Some(server),
    })
}

/// The same on a target that is known already.
pub(super) fn begin_on(
    args: &MeasuringArgs,
    membership: &Membership,
    verb: Box<dyn Verb>,
    engine: &str,
    target: Target,
) -> Result<Job, Error> {
    refuse_unfit(args, &*verb, &target)?;
    let results = if membership.as_follower().is_some() {
        Results::elsewhere()
    } else {
        Results::begin(args.outcome.out.as_deref(), verb.name())?
    };
    Ok(job(args, membership, verb, engine, target, results))
}

/// Refuses what is for files and devices where the target is a model, and to verify where others write the
/// blocks.
pub(super) fn refuse_unfit(
    args: &MeasuringArgs,
    verb: &dyn Verb,
    target: &Target,
) -> Result<(), Error> {
    let is_model = target.is_model();
    let is_engine = args.engine.as_deref().is_some_and(|name| name != AUTO);
    let of_files = [
        ("--engine", is_engine),
        ("--buffered", args.buffered),
        ("--allow-holes", args.blocks.allow_holes),
    ];
    if let Some((option, _)) = of_files.iter().find(|(_, is_given)| is_model && *is_given) {
        return Err(usage!(
            "{option} is for files and devices, and '{target}' is a model",
            "leave it out, or give a directory, a file or a device"
        ));
    }
    if !args.blocks.verify {
        return Ok(());
    }
    match target {
        Target::Sim(_) | Target::Null { .. } => Err(usage!(
            "--verify compares bytes, and '{target}' has none",
            "give a directory, a file or a device"
        )),
        Target::Sql(_) => Err(usage!(
            "--verify is for files and devices, and '{target}' is a database",
            "leave it out; a database has checksums of its own"
        )),
        _ if args.outcome.ranks.same_blocks && verb.writes() => Err(usage!(
            "with --same-blocks every rank writes the same blocks, and --verify knows only what one wrote",
            "leave one of them out"
        )),
        Target::Paths { .. } | Target::Scratch { .. } => Ok(()),
    }
}

/// A new run that leaves these results.
pub(super) fn job(
    args: &MeasuringArgs,
    membership: &Membership,
    verb: Box<dyn Verb>,
    engine: &str,
    target: Target,
    results: Results,
) -> Job {
    let options = RunOptions {
        destroy: args.destroy.clone(),
        allow_holes: args.blocks.allow_holes,
        workers: args.workers.unwrap_or(1) as usize,
        seed: args.outcome.seed(),
        directory: std::env::current_dir().unwrap_or_default(),
        expected: Vec::new(),
    };
    let engine = EngineChoice {
        name: args.engine.clone().unwrap_or_else(|| engine.to_string()),
        buffered: args.buffered,
        verify: args.blocks.verify,
    };
    let command = own_arguments();
    Job {
        verb,
        options,
        files: None,
        target,
        engine,
        command,
        results,
        access: None,
        private: Vec::new(),
        resumed: None,
        journal: None,
        agreement: Agreement::default(),
        separate: args.outcome.ranks.separate,
        same_blocks: args.outcome.ranks.same_blocks,
        membership: membership.clone(),
    }
}

/// A run of `verb` that was cut short, given by its directory or its journal: all that it was is in
/// its journal. `servers` are the options of verbs that make private servers, of each server.
pub(super) fn resume(
    run: &Path,
    args: &MeasuringArgs,
    membership: &Membership,
    verb: &str,
    servers: &[ServerArgs],
) -> Result<Job, Error> {
    let path = run;
    let named = NamedAgain::of(args, membership)?;
    if let Some(ranks) = membership.as_follower() {
        // Only rank 0 has the journal.
        return resumed::follow(ranks, args, membership, named, verb);
    }
    let (journal, run) = Journal::reopen(path)?;
    if run.cut {
        remark("the journal's last line is incomplete: its point is measured again\n");
    }
    refuse_other_verb(&*rigel_verbs::of(&run.header)?, &run.header, verb, path)?;
    resumed::share(&run.header, args, membership)?;
    job_again(
        path,
        args,
        membership,
        named.as_ref(),
        servers,
        (journal, run),
    )
}

/// Refuses to resume a run by another verb than its own.
fn refuse_other_verb(
    made_by: &dyn Verb,
    header: &Header,
    verb: &str,
    path: &Path,
) -> Result<(), Error> {
    let own = made_by.command();
    if own == verb {
        return Ok(());
    }
    let hint = if own == "import" {
        "import the files again".to_string()
    } else {
        format!(
            "resume it with `{}`",
            resume_command(made_by, header, Some(path))
        )
    };
    Err(usage!("this run was made by rigel {own}", hint))
}

/// The job of a run that is resumed, on what the command line names again if it does.
fn job_again(
    path: &Path,
    args: &MeasuringArgs,
    membership: &Membership,
    named: Option<&NamedAgain>,
    servers: &[ServerArgs],
    resumed: (Journal, Run),
) -> Result<Job, Error> {
    let header = &resumed.1.header.clone();
    if let Some(named) = named {
        named.refuse_other(header)?;
    }
    // Leave to destroy is given anew: much may have changed since.
    let options = RunOptions {
        destroy: args.destroy.clone(),
        ..header.invocation.options.clone()
    };
    let begun_in = begun_in(&options.directory);
    let mut job = Job {
        verb: rigel_verbs::of(header)?,
        options,
        files: header.invocation.files.clone(),
        target: header.target.clone(),
        engine: header.engine.clone(),
        command: header.command.clone(),
        results: Results::existing(path),
        access: None,
        private: Vec::new(),
        resumed: Some(resumed),
        journal: None,
        agreement: Agreement::default(),
        separate: header.ranks.as_ref().is_some_and(|group| group.separate),
        same_blocks: header.ranks.as_ref().is_some_and(|group| group.same_blocks),
        membership: membership.clone(),
    };
    // A complete run needs its target no more, nor a remark about it.
    if job.is_over() {
        return Ok(job);
    }
    if let Some(named) = named {
        (job.target, job.access) = resumed::again(named, header, args, membership)?;
    } else {
        job.target = target_again(header, &begun_in);
    }
    targets(&job.target, &*job.verb).for_each(say_target);
    if named.is_none() {
        job.access = access_again(&mut job, args, servers)?;
    }
    Ok(job)
}

/// Names what of a journal is opened or made, before it is: whoever can write the journal chose it. Servers are
/// named where they are reached.
fn say_target(target: &Target) {
    let say = |what: &str, path: &Path| {
        remark(&format!(
            "resuming on {what}'{}', as the journal says\n",
            in_line(&path.display().to_string())
        ));
    };
    match target {
        Target::Paths { members, .. } => members.iter().for_each(|path| say("", path)),
        Target::Scratch { directory, .. } => say("a new scratch file in ", directory),
        Target::Sim(_) | Target::Null { .. } | Target::Sql(_) => {}
    }
}

/// Access to the databases of a run that is resumed, if its target is some.
fn access_again(
    job: &mut Job,
    args: &MeasuringArgs,
    servers: &[ServerArgs],
) -> Result<Option<Access>, Error> {
    match &job.target {
        Target::Sql(SqlTarget {
            private_in: Some(directory),
            private,
            ..
        }) => {
            let Some(private) = private else {
                let what = "the private server of this run was removed, and its journal does not \
                            say how it was made";
                return Err(Error::usage(what, "start another run"));
            };
            let made_with = job.verb.server_options(private);
            let directory = directory.clone();
            if !are_confirmed(job, servers)? {
                return Err(Error::usage(
                    match made_with.as_str() {
                        "" => "the private server of this run was made without --server-set".into(),
                        named => format!("the private server of this run was made with{named}"),
                    },
                    "programs and settings are not taken from a journal: give the same options again, \
                     if you know them to be your own",
                ));
            }
            remark(&format!(
                "resuming on a private server in '{directory}', which the journal names\n"
            ));
            Ok(None)
        }
        Target::Sql(_) if servers.iter().any(ServerArgs::is_given) => {
            Err(ServerArgs::without_server())
        }
        Target::Sql(servers) => {
            database::access_again(&servers.urls, &args.password, &job.membership).map(Some)
        }
        other if !servers.is_empty() => Err(usage!(
            "settings of servers are given, and this run was made on '{other}'",
            "give --resume without --vary: a resumed run has its original options"
        )),
        _ => Ok(None),
    }
}

/// True if all private servers of a run are made with the programs and settings that the options name.
/// Refuses servers in several directories: the user is shown one.
fn are_confirmed(job: &mut Job, servers: &[ServerArgs]) -> Result<bool, Error> {
    let mut servers = servers.iter();
    let mut place = None;
    for target in job.targets_mut() {
        let Target::Sql(SqlTarget {
            dbms,
            private_in,
            private: Some(made),
            ..
        }) = target
        else {
            continue;
        };
        let own_place = (*dbms, private_in.clone());
        if *place.get_or_insert_with(|| own_place.clone()) != own_place {
            return Err(usage!(
                "the arms of this run have servers in several places",
                "the journal is damaged, or of another version"
            ));
        }
        match servers.next() {
            Some(server) if server.confirm(made)? => {}
            _ => return Ok(false),
        }
    }
    Ok(servers.next().is_none())
}

/// The target of a run that is resumed, with its paths relative to `begun_in`. A scratch file that
/// was kept is the target itself; any other is made anew, with the same size.
fn target_again(header: &Header, begun_in: &Path) -> Target {
    match header.target.clone() {
        Target::Paths { members, layout } => Target::Paths {
            members: members.iter().map(|path| begun_in.join(path)).collect(),
            layout,
        },
        Target::Scratch {
            directory, keep, ..
        } => {
            let members = &header.facts.members;
            let remaining: Vec<PathBuf> = members
                .iter()
                .map(|member| begun_in.join(&member.path))
                .filter(|path| keep && path.is_file())
                .collect();
            if remaining.is_empty() {
                let bytes = members.first().map(|member| member.bytes);
                Target::Scratch {
                    directory: begun_in.join(directory),
                    bytes,
                    keep,
                }
            } else {
                Target::Paths {
                    members: remaining,
                    layout: Layout::Concat,
                }
            }
        }
        other @ (Target::Sim(_) | Target::Null { .. } | Target::Sql(_)) => other,
    }
}

/// Points of one run are of one volume. A scratch file that was made anew is like the one before,
/// and so is a private server.
fn refuse_another_target(begun: (&Target, &TargetFacts), found: &TargetFacts) -> Result<(), Error> {
    match difference_of_targets(begun, found) {
        Some(difference) => Err(usage!(
            "this run cannot be resumed: {difference}",
            "restore the target that it was started on, or start another run"
        )),
        None => Ok(()),
    }
}

/// The first difference between the target of a run and the one that was found now, in words.
fn difference_of_targets(
    (target, then): (&Target, &TargetFacts),
    found: &TargetFacts,
) -> Option<String> {
    match target {
        Target::Sql(SqlTarget {
            private_in: Some(_),
            ..
        }) => difference_of_private(then, found),
        Target::Scratch { .. } if found.usable == then.usable => None,
        _ => then.difference(found),
    }
}

/// The first difference between a private server and the one before it, in words. Its files and
/// directory are new.
fn difference_of_private(then: &TargetFacts, now: &TargetFacts) -> Option<String> {
    let alone = |facts: &TargetFacts| TargetFacts {
        members: Vec::new(),
        ..facts.clone()
    };
    alone(then).difference(&alone(now)).or_else(|| {
        let (then, now) = then.server.as_ref().zip(now.server.as_ref())?;
        let is_other = |(name, value): &(&String, &String)| {
            *name != "data_directory" && now.settings.get(*name) != Some(value)
        };
        let (name, value) = then.settings.iter().find(is_other)?;
        let value_now = now.settings.get(name).map_or("unknown", String::as_str);
        Some(format!(
            "the server's {name} was '{value}' and is '{value_now}'"
        ))
    })
}

/// What a verb says of its own while a run is measured.
pub(super) trait Announce {
    /// Everything is ready, and the journal is made.
    fn ready(&self, job: &Job, aside: &dyn Fn(&dyn Fn()));

    /// A point begins.
    fn point(&self, coordinates: Coordinates, aside: &dyn Fn(&dyn Fn()));

    /// Refuses a run that is not complete; `path` is its directory.
    fn refuse_incomplete(
        &self,
        run: &Run,
        verb: &dyn Verb,
        stopped: bool,
        path: &Path,
    ) -> Result<(), Error> {
        refuse_incomplete(run, verb, stopped, path)
    }
}

/// Says nothing.
struct Quiet;

impl Announce for Quiet {
    fn ready(&self, _: &Job, _: &dyn Fn(&dyn Fn())) {}

    fn point(&self, _: Coordinates, _: &dyn Fn(&dyn Fn())) {}
}

/// What is said of a resumed run of which nothing is left to measure.
const COMPLETE: &str = "this run is already complete: nothing is measured\n\n";

/// A run that was measured, and its outcome: its exit status, or why it is not complete.
pub(super) type MeasuredRun = (Evaluated, Result<u8, Error>);

/// Measures what is still to be measured, into the journal, and ends it. Returns the run as the
/// journal has it; `None` at a rank that only measures.
pub(super) fn measure(job: &mut Job, args: &MeasuringArgs) -> Result<Option<MeasuredRun>, Error> {
    measure_announced(job, &args.outcome, &Quiet)
}

/// The same, with what a verb says of its own.
pub(super) fn measure_announced(
    job: &mut Job,
    outcome: &OutcomeArgs,
    announce: &dyn Announce,
) -> Result<Option<MeasuredRun>, Error> {
    if job.is_over() {
        remark(COMPLETE);
        announce.ready(job, &|say| say());
        let Some((journal, run)) = job.resumed.take() else {
            return Ok(None);
        };
        // A run may have been killed after its last point.
        job.journal = (!run.is_complete()).then_some(journal);
        return end_of_run(job, run, false, announce).map(Some);
    }
    let stop = stop_flag()?;
    let own = OwnJournal::asked(&outcome.ranks, &job.membership, outcome.resume.is_some());
    job.agree(&outcome.ranks, own.as_ref().err())?;
    if let Some(ranks) = job.membership.as_follower() {
        return follow(job, own?, ranks, &stop).map(|()| None);
    }
    let metrics = Metrics::of(outcome)?;
    job.serve(outcome.progress(), &stop)?;
    // The job may change while it is measured.
    let request = job.verb.boxed();
    let expected = job.points_expected();
    let title = format!("{} {}", request.name(), job.target);
    let total = if request.is_known_beforehand() {
        Total::Known(expected)
    } else {
        Total::Usual(expected)
    };
    let progress = RefCell::new(Progress::new(
        &title,
        total,
        request.point_seconds(),
        outcome.progress(),
    ));
    let aside = |say: &dyn Fn()| progress.borrow().aside(say);
    let mut listen = |event: Event| {
        if let Event::Begin { point } = &event {
            announce.point(point.coordinates, &aside);
        }
        if let (Event::Parts(parts), Some(metrics)) = (&event, &metrics) {
            metrics.add_ranks(parts);
        }
        progress.borrow_mut().on_event(&event);
    };
    let ended = |header: &Header, record: Option<&PointRecord>| {
        if let Some(metrics) = &metrics {
            metrics.add(header, record);
        }
    };
    let measured = prepare_and_measure(
        job,
        &stop,
        &|job| announce.ready(job, &aside),
        &mut listen,
        &ended,
    );
    attend::is_measured();
    progress.borrow().finish();
    let path = job.results.path().to_path_buf();
    if let Err(error) = measured {
        let is_new = outcome.resume.is_none() && job.membership.joined().is_none();
        let points = Run::read(&path).map_or(0, |run: Run| {
            let is_empty = run.points.is_empty() && run.stalls.is_empty();
            // Only a journal that is this run's: others may have made one here meanwhile.
            if is_new && is_empty && job.journal.take().is_some() {
                job.results.abandon();
            }
            run.points.len()
        });
        if points > 0 {
            remark(&format!(
                "{points} points are in the journal: rigel report {}\n",
                shell_path(&path)
            ));
        }
        return job.failed(error, stop.load(Ordering::Relaxed));
    }
    match Run::read(&path) {
        Ok(run) => end_of_run(job, run, stop.load(Ordering::Relaxed), announce).map(Some),
        Err(error) => job.failed(error, false),
    }
}

/// Evaluates a run that was measured, and writes to its journal how it ended.
fn end_of_run(
    job: &mut Job,
    mut run: Run,
    stopped: bool,
    announce: &dyn Announce,
) -> Result<MeasuredRun, Error> {
    let path = job.results.path().to_path_buf();
    let complete = announce.refuse_incomplete(&run, &*job.verb, stopped, &path);
    let how = HowEnded::of(&complete, stopped && complete.is_err());
    let outcome = complete.and_then(|()| refuse_failed(&run.joined(), &run.header));
    run.ended = Some(job.end(how.clone(), &Ok(0)));
    let mut measured = match Evaluated::of_run_in(run, Some(&path)) {
        Ok(measured) => measured,
        Err(error) => return job.failed(error, stopped),
    };
    let outcome = outcome.map(|()| measured.outcome().map_or(0, exit_status));
    measured.run.ended = Some(job.end(how.clone(), &outcome));
    let outcome = job.ended(how, outcome);
    Ok((measured, outcome))
}

/// Measures what rank 0 plans.
fn follow(job: &Job, mut own: OwnJournal, ranks: &Ranks, stop: &AtomicBool) -> Result<(), Error> {
    let benches = Benches::prepare(job, stop, &mut |event| ranks::say_stall(&event))?;
    benches.all_ready(job)?;
    own.begin(benches.header(job))?;
    let bench_of = |point: &Point| benches.of(point);
    let fixed = FollowedBenches::Fixed(&bench_of);
    let followed = run::ranks::follow(fixed, ranks, stop, &mut |record| own.keep(record));
    own.end(followed, stop.load(Ordering::Relaxed))
}

/// Told of the header once the journal is there, then of every point that is in it, in order.
type Ended<'a> = dyn Fn(&Header, Option<&PointRecord>) + 'a;

fn prepare_and_measure(
    job: &mut Job,
    stop: &AtomicBool,
    is_ready: &dyn Fn(&Job),
    listen: &mut Listen,
    ended: &Ended,
) -> Result<(), Error> {
    let benches = Benches::prepare(job, stop, listen)?;
    benches.name_engines(&mut *job.verb);
    let membership = job.membership.clone();
    let together = membership.joined();
    let group = benches.all_ready(job)?;
    let (journal, header, before) = if let Some((journal, run)) = job.resumed.take() {
        let header = &run.header;
        refuse_another_target((&header.target, &header.facts), &benches.main().facts)?;
        for (then, (target, now)) in header.facts_of_others.iter().zip(benches.others(job)) {
            refuse_another_target((target, then), now)?;
        }
        resumed::refuse_other_hosts(&run.header, group.as_ref())?;
        (journal, run.header.clone(), Some(run))
    } else {
        job.claim()?;
        benches.note_suspicion(job);
        let mut header = benches.header(job);
        header.ranks = group.map(Box::new);
        (Journal::create(job.results.path(), &header)?, header, None)
    };
    job.begin(journal, &header);
    ended(&header, None);
    before
        .iter()
        .flat_map(|run| &run.points)
        .for_each(|record| ended(&header, Some(record)));
    let lines = job.host_lines(before.is_some())?;
    let done = before.map_or_else(Vec::new, |run| run.points);
    let done = still_valid(done, &job.target);
    is_ready(job);
    let Some(journal) = &mut job.journal else {
        return Ok(());
    };
    let mut events = journal.events()?;
    let mut listen = |event: Event| {
        if let Event::Stall(event) = &event {
            events.stall(event);
        }
        lines.hear(&event);
        if let Event::End(record) = event {
            ended(&header, Some(record));
        }
        listen(event);
    };
    let bench_of = |point: &Point| benches.of(point);
    let (search, seed) = (&job.verb, job.options.seed);
    let usable = benches.main().facts.usable.0;
    let mut asked = None;
    let mut so_far = SoFar::default();
    let mut plan = |records: &[PointRecord]| {
        let mut beside = Vec::new();
        let point = if search.lists_points() {
            let is_done = |point: &&Point| {
                let mut done = records.iter().map(|record| record.coordinates);
                done.any(|coordinates| coordinates == point.coordinates)
            };
            header.points.iter().find(|point| !is_done(point))?.clone()
        } else {
            let done = so_far.of_ranks(records, &lines.get(), search.judged());
            beside = search.beside(usable, seed, done);
            search.next(usable, seed, done)?
        };
        // A visit that left no record is not asked for twice.
        let visit = Some((point.coordinates, point.seed));
        let again = asked == visit;
        asked = visit;
        (!again).then(|| Next {
            warming: search.warming(point.coordinates, usable, seed),
            point,
            beside,
        })
    };
    run::measure(
        &bench_of,
        together,
        journal,
        done,
        &mut plan,
        stop,
        &mut listen,
    )
    .map(drop)
}

/// The points of an earlier part of a run that are not measured again.
fn still_valid(points: Vec<PointRecord>, target: &Target) -> Vec<PointRecord> {
    // Of a resumed run, the scratch file is another one.
    let is_new_file = matches!(target, Target::Scratch { .. });
    points
        .into_iter()
        .filter(|point| point.end == End::Complete)
        .filter(|point| !(is_new_file && point.coordinates.step() == Step::Precondition))
        .collect()
}

/// Ends a run whose report was shown: removes its private servers. Returns its outcome.
pub(super) fn conclude(mut job: Job, outcome: Result<u8, Error>) -> Result<u8, Error> {
    job.private.iter_mut().try_for_each(Private::end)?;
    outcome
}

/// Refuses a run that is not whole: it was stopped, or a session broke.
fn refuse_incomplete(run: &Run, verb: &dyn Verb, stopped: bool, path: &Path) -> Result<(), Error> {
    let points = run.joined();
    let broken = points
        .iter()
        .chain(run.points.last())
        .find_map(|point| match &point.end {
            End::Broken(why) => Some(format!("{}: {why}", point.coordinates)),
            _ => None,
        });
    let expected = if verb.is_known_beforehand() {
        verb.points_expected()
    } else {
        1
    };
    if stopped || broken.is_some() || points.len() < expected {
        let why = broken.map_or_else(
            || "before it was complete".to_string(),
            |why| format!("at {why}"),
        );
        return Err(failed!(
            "the run ended {why}",
            "resume it with `{command}`",
            command = resume_command(verb, &run.header, Some(path))
        ));
    }
    Ok(())
}

/// The file of the target that became smaller, if there is one, in words.
fn shrunk(header: &Header) -> Option<String> {
    let files = header.facts.members.iter();
    files
        .filter(|member| member.kind == FileKind::File)
        .find_map(|member| {
            let now = Bytes(std::fs::metadata(&member.path).ok()?.len());
            let path = member.path.display();
            (now < member.bytes).then(|| format!("'{path}' shrank from {} to {now}", member.bytes))
        })
}

/// Refuses points in which I/Os failed.
fn refuse_failed(points: &[PointRecord], header: &Header) -> Result<(), Error> {
    let failures: u64 = points
        .iter()
        .flat_map(|point| &point.streams)
        .map(|stream| stream.total().failures())
        .sum();
    if failures > 0 {
        if let Some(what) = shrunk(header) {
            return Err(failed!(
                "{failures} I/Os failed: {what}",
                "restore the target, and start another run"
            ));
        }
        return Err(failed!(
            "{failures} I/Os failed",
            "the report shows which, and why"
        ));
    }
    Ok(())
}
