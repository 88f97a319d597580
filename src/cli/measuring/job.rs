//! A run that is to be made or resumed, and the first line of its journal.

use super::host_lines::HostLines;
use crate::cli::attend;
use crate::cli::membership::Membership;
use crate::cli::output;
use crate::cli::private_server::{self, Private};
use crate::cli::progress::ProgressMode;
use crate::cli::ranks::RanksArgs;
use crate::cli::results::Results;
use rigel_analyse::SoFar;
use rigel_device::observe::stack::device_number;

use rigel_database::Access;
use rigel_device::clock;
use rigel_measure::run::agreement::{self, Agreement, AgreementTerms};
use rigel_measure::run::{Bench, LOST_STATUS};
use rigel_model::record::journal::Header;
use rigel_model::record::journal::Run;
use rigel_model::record::journal::{self, EngineChoice, Journal};
use rigel_model::record::{End, HowEnded, PointRecord, RunEnd};
use rigel_model::{
    Error, Expectation, Invocation, OrionFiles, RunOptions, SqlTarget, Target, TargetFacts,
    in_line, shell_path, usage,
};
use rigel_verbs::Verb;
use rigel_verbs::duet::DuetRequest;
use rigel_verbs::ending::resume_command;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A run to be made, or to be resumed.
pub(in crate::cli) struct Job {
    /// What was asked for.
    pub(in crate::cli) verb: Box<dyn Verb>,
    /// The options that every verb has.
    pub(in crate::cli) options: RunOptions,
    /// The files of `rigel orion`.
    pub(in crate::cli) files: Option<OrionFiles>,
    /// What is measured.
    pub(in crate::cli) target: Target,
    /// By which engine.
    pub(in crate::cli) engine: EngineChoice,
    /// The command line, without the program.
    pub(in crate::cli) command: Vec<String>,
    /// Where its journal is.
    pub(in crate::cli) results: Results,
    /// How a database is reached.
    pub(in crate::cli) access: Option<Access>,
    /// The servers that were made for this run; they are removed with this.
    pub(in crate::cli) private: Vec<Private>,
    /// The run so far, and its journal.
    pub(in crate::cli) resumed: Option<(Journal, Run)>,
    /// The journal of a run, from when it is made or resumed: its last line is still to be written.
    pub(in crate::cli) journal: Option<Journal>,
    /// What the ranks have agreed about, if there are several.
    pub(in crate::cli) agreement: Agreement,
    /// Every rank has storage of its own.
    pub(in crate::cli) separate: bool,
    /// All ranks write to the same blocks.
    pub(in crate::cli) same_blocks: bool,
    /// The other ranks, if a launcher started several.
    pub(in crate::cli) membership: Membership,
}

impl Job {
    /// Adds what is expected of what a new run measures; one that is resumed has its own.
    pub(in crate::cli) fn expect(&mut self, expected: Vec<Expectation>) {
        if self.resumed.is_none() {
            self.options.expected = expected;
        }
    }

    /// Agrees with the other ranks, if there are any, before anything is opened for writing. `refusal`
    /// is why this rank cannot take part.
    pub(in crate::cli) fn agree(
        &mut self,
        args: &RanksArgs,
        refusal: Option<&Error>,
    ) -> Result<(), Error> {
        let membership = self.membership.clone();
        let Some(ranks) = membership.joined() else {
            return Ok(());
        };
        let (request, options) = (&mut self.verb, &self.options);
        let terms = AgreementTerms {
            target: &self.target,
            writes: request.writes(),
            destroy: &options.destroy,
            separate: self.separate,
            hosts: args.hosts,
            refusal,
            database: self
                .access
                .as_ref()
                .map(|access| membership.own_servers(access))
                .zip(request.tables()),
        };
        self.agreement = agreement::agree(ranks, &terms)?;
        for left in &self.agreement.leftovers {
            output::remark(&format!(
                "{}: '{}'\n",
                if left.is_removed {
                    "removed a file that a killed run left in the target"
                } else {
                    "another run agrees on this target now, or left a file there a moment ago"
                },
                in_line(&left.name)
            ));
        }
        if let Some((access, application)) =
            self.access.as_mut().zip(self.agreement.application.clone())
        {
            access.application = application;
        }
        request.set_ranks(u32::try_from(ranks.size()).unwrap_or(u32::MAX));
        if let Target::Scratch { bytes, .. } = &mut self.target {
            *bytes = bytes.or(self.agreement.scratch);
        }
        Ok(())
    }

    /// Takes the journal, which is made or opened again.
    pub(super) fn begin(&mut self, journal: Journal, header: &Header) {
        let place = self.results.path();
        attend::has_journal(commands(&*self.verb, header, place));
        self.journal = Some(journal);
    }

    /// How the run ends with this outcome; of several ranks, the status is that of all.
    pub(super) fn end(&self, how: HowEnded, outcome: &Result<u8, Error>) -> RunEnd {
        let ranks = self.membership.joined();
        let status = match outcome {
            _ if ranks.is_some_and(|ranks| !ranks.lost().is_empty()) => LOST_STATUS,
            Ok(status) => *status,
            Err(error) => error.exit_status(),
        };
        RunEnd { how, status }
    }

    /// Writes the last line of the journal, if the run has one and it is not written yet. Returns the
    /// outcome.
    pub(in crate::cli) fn ended(
        &mut self,
        how: HowEnded,
        outcome: Result<u8, Error>,
    ) -> Result<u8, Error> {
        let end = self.end(how, &outcome);
        let written = match &mut self.journal {
            Some(journal) => journal.end(&end),
            None => Ok(()),
        };
        outcome.and_then(|status| written.map(|()| status))
    }

    /// The same after an error.
    pub(super) fn failed<T>(&mut self, error: Error, was_stopped: bool) -> Result<T, Error> {
        let outcome = Err(error);
        let how = HowEnded::of(&outcome, was_stopped);
        Err(self.ended(how, outcome).expect_err("an error stays one"))
    }

    /// Points that are still to be measured, as far as that is known before it is measured.
    pub(in crate::cli) fn points_expected(&self) -> usize {
        let expected = self.verb.points_expected();
        match (&self.verb, &self.resumed) {
            (request, Some((_, run))) if request.is_known_beforehand() => {
                expected - run.complete().len().min(expected)
            }
            _ => expected,
        }
    }

    /// True if nothing of a resumed run is left to measure.
    pub(in crate::cli) fn is_over(&self) -> bool {
        let Some((_, run)) = &self.resumed else {
            return false;
        };
        let request = &self.verb;
        if request.is_known_beforehand() {
            return self.points_expected() == 0;
        }
        let Ok(lines) = self.host_lines(true) else {
            return false;
        };
        let done = run.points.iter().cloned();
        let done: Vec<PointRecord> = done.filter(|point| point.end == End::Complete).collect();
        let mut so_far = SoFar::default();
        let done = so_far.of_ranks(&done, &lines.get(), request.judged());
        let (usable, seed) = (run.header.facts.usable.0, self.options.seed);
        request.next(usable, seed, done).is_none()
    }

    /// What each rank has measured so far, where the verb judges by it; read if the run `is_resumed`.
    pub(super) fn host_lines(&self, is_resumed: bool) -> Result<HostLines, Error> {
        HostLines::of(
            &*self.verb,
            &self.membership,
            self.results.path(),
            is_resumed,
        )
    }

    /// The targets of the run, as [`targets`], to change them.
    pub(super) fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        let arms = self.verb.downcast_mut::<DuetRequest>();
        let of_arms = arms.into_iter().flat_map(DuetRequest::targets_mut);
        std::iter::once(&mut self.target).chain(of_arms)
    }

    /// Makes, starts and loads the private servers of the run, if it has some.
    pub(in crate::cli) fn serve(
        &mut self,
        way: ProgressMode,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let Some(tables) = self.verb.tables() else {
            return Ok(());
        };
        let (writes, is_layers) = (self.verb.writes(), self.verb.name() == "layers");
        let begun_in = begun_in(&self.options.directory);
        let is_private = |target: &&mut Target| target.is_private();
        let count = self.targets_mut().filter(is_private).count();
        let mut made = Vec::new();
        for target in self.targets_mut() {
            let Target::Sql(SqlTarget {
                dbms,
                urls,
                private_in: Some(directory),
                private: Some(server),
            }) = target
            else {
                continue;
            };
            let directory = begun_in.join(&*directory);
            server.device = same_device(&directory, server.device)?;
            if made.is_empty() {
                private_server::refuse_full(&directory, tables, writes, count)?;
            }
            let private = Private::start(*dbms, &directory, server, stop)?;
            let servers = private.access.servers.iter();
            *urls = servers.map(ToString::to_string).collect();
            made.push(private);
        }
        // Loading takes minutes: by now no server has refused its settings.
        for private in &mut made {
            private.load(tables, way, stop)?;
            if is_layers {
                private.share_files(tables)?;
            }
        }
        if let Some(first) = made.first() {
            self.access = Some(first.access.clone());
        }
        self.private = made;
        Ok(())
    }

    /// Makes the directory of a new run. Where another run of this minute has the name of Orion's
    /// files, a number follows the minute.
    pub(in crate::cli) fn claim(&mut self) -> Result<(), Error> {
        self.results.claim()?;
        if let Some(files) = &mut self.files {
            let suffix = self.results.suffix();
            files.stamp.push_str(&suffix);
            files.prefix.as_mut_os_string().push(&suffix);
        }
        Ok(())
    }
}

/// The commands for a run that came to no end.
pub(in crate::cli) fn commands(verb: &dyn Verb, header: &Header, place: &Path) -> String {
    format!(
        "rigel report {}; {}",
        shell_path(place),
        resume_command(verb, header, Some(place))
    )
}

/// The first line of a run's journal, on this bench. It has the points of a verb that lists them.
pub(in crate::cli) fn header(bench: &Bench, job: &Job) -> Header {
    let listed = job.verb.lists_points().then(|| bench.points.clone());
    Header {
        format: journal::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: clock::wall_time(),
        command: job.command.clone(),
        target: job.target.clone(),
        engine: EngineChoice {
            name: bench.engine_name().into(),
            buffered: job.engine.buffered,
            verify: job.engine.verify,
        },
        engine_about: bench.engine_about(),
        points: listed.unwrap_or_default(),
        invocation: Invocation {
            options: job.options.clone(),
            files: job.files.clone(),
            ..job.verb.invocation()
        },
        host: bench.host.clone(),
        facts_of_others: Vec::new(),
        facts: TargetFacts {
            name: match &job.target {
                // Each of several ranks uses a part of the servers.
                Target::Sql(_) => job.target.to_string(),
                _ => bench.facts.name.clone(),
            },
            ..bench.facts.clone()
        },
        findings: bench.findings.clone(),
        ranks: None,
        says_end: true,
    }
}

/// The targets of a run: its own, and those of arms that have one of their own.
pub(in crate::cli) fn targets<'a>(
    own: &'a Target,
    verb: &'a dyn Verb,
) -> impl Iterator<Item = &'a Target> {
    let arms = verb.downcast_ref::<DuetRequest>();
    std::iter::once(own).chain(arms.into_iter().flat_map(DuetRequest::targets))
}

/// What stands before the relative paths of a run that was begun in `directory`: nothing if that is
/// here, so that they can stay as they were typed.
pub(in crate::cli) fn begun_in(directory: &Path) -> PathBuf {
    let here = std::env::current_dir().is_ok_and(|here| here == directory);
    if here {
        PathBuf::new()
    } else {
        directory.to_path_buf()
    }
}

/// The device of a private server's directory. Refuses another one than that of the run so far, if
/// it is known.
pub(in crate::cli) fn same_device(
    directory: &Path,
    then: Option<(u32, u32)>,
) -> Result<Option<(u32, u32)>, Error> {
    let device = std::fs::metadata(directory).ok().map(|facts| facts.dev());
    let now = device.map(device_number);
    match then.zip(now).filter(|(then, now)| then != now) {
        Some(((major, minor), (major_now, minor_now))) => Err(usage!(
            "this run cannot be resumed: '{directory}' was on device {major}:{minor} and is on \
             {major_now}:{minor_now}",
            "mount the storage that it was started on, or start another run",
            directory = directory.display()
        )),
        None => Ok(now),
    }
}
