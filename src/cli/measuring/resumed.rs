//! A run that is resumed: what its command line names again, and what ranks learn from rank 0.
//!
//! Only rank 0 has the journal. It tells the others how the points are planned. What is opened,
//! written to, or sent a password comes from each rank's own command line, and rank 0 compares that
//! with its journal: nothing that arrives over the network names a file, a directory or a server.

use super::args::{MeasuringArgs, SHARED, target};
use super::job::Job;
use crate::cli::database;
use crate::cli::membership::Membership;
use crate::cli::ranks::refuse_other_flags;
use crate::cli::results::{Results, own_arguments};
use rigel_model::Invocation;
use rigel_model::record::journal::Header;

use rigel_database::Access;
use rigel_device::engine::{self, AUTO};
use rigel_measure::run::agreement::Agreement;
use rigel_model::record::RankGroup;
use rigel_model::record::journal::EngineChoice;
use rigel_model::{
    Bytes, Dbms, Error, Layout, ReadWay, RunOptions, SqlTarget, Target, failed, usage,
};
use rigel_ranks::Ranks;
use rigel_verbs::{Verb, registry};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The target that the command line of a resumed run names again.
pub(super) struct NamedAgain {
    target: Target,
    /// The URLs, of databases.
    urls: Option<Vec<String>>,
}

/// What rank 0 tells the others of a run that is resumed.
#[derive(Serialize, Deserialize)]
pub(super) struct SharedPlan {
    verb: String,
    request: serde_json::Value,
    seed: u64,
    workers: usize,
    allow_holes: bool,
    engine: EngineChoice,
    /// How the named files and devices form a volume.
    layout: Layout,
}

impl SharedPlan {
    pub(super) fn of(header: &Header) -> Self {
        let options = &header.invocation.options;
        Self {
            verb: header.invocation.verb.clone(),
            request: header.invocation.request.clone(),
            seed: options.seed,
            workers: options.workers,
            allow_holes: options.allow_holes,
            engine: header.engine.clone(),
            layout: match &header.target {
                Target::Paths { layout, .. } => *layout,
                _ => Layout::Concat,
            },
        }
    }

    /// The verb. Refuses what no command line could have asked for.
    fn check(&self, verb: &str, target: &Target) -> Result<Box<dyn Verb>, Error> {
        let refused = |what: String| {
            Err(failed!(
                "rank 0 sent {what}",
                "is rank 0 the same version of rigel?"
            ))
        };
        let invocation = Invocation::of(&self.verb, &self.request);
        let asked = match registry::asked(&invocation) {
            Ok(asked) => asked,
            Err(why) => return refused(format!("a run, and {why}")),
        };
        if asked.command() != verb {
            return refused(format!(
                "a run of rigel {}, and this is rigel {verb}",
                asked.command()
            ));
        }
        if !(1..=1024).contains(&self.workers) {
            return refused(format!("a run with {} threads", self.workers));
        }
        let dbms = [Dbms::Postgres, Dbms::Mysql].map(Dbms::name);
        let mut names = engine::names().chain(dbms).chain([AUTO, "sim", "null"]);
        if !names.any(|name| name == self.engine.name) {
            return refused("a run with an unknown engine".into());
        }
        registry::check(&*asked, target)?;
        if asked.work().is_some_and(|work| work.way == ReadWay::File) {
            return refused("work that reads a server's files".into());
        }
        Ok(asked)
    }
}

impl NamedAgain {
    /// The target that `args` name; `None` if they name none, which ranks may not do.
    pub(super) fn of(args: &MeasuringArgs, membership: &Membership) -> Result<Option<Self>, Error> {
        if !args.targets.is_empty() {
            let urls = database::urls(&args.targets)?;
            let target = match &urls {
                Some(urls) => {
                    let of_environment = |name: &str| std::env::var(name).ok();
                    let access = Access::parse(urls.iter().map(String::as_str), &of_environment)?;
                    sql_target(&access)
                }
                None => target(args)?,
            };
            return Ok(Some(Self { target, urls }));
        }
        if let Some(ranks) = membership.joined() {
            return Err(usage!(
                "{size} ranks cannot resume a run whose TARGET is not given again",
                "name the same files, devices, directory or URLs as then: only rank 0 has the \
                 journal, and no rank opens what another one names",
                size = ranks.size()
            ));
        }
        let option = [
            ("--scratch-size", args.scratch_size.is_some()),
            ("--keep", args.keep),
        ];
        match option.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(usage!(
                "{option} is given, and a resumed run has its original options",
                "give --resume without it, or start another run"
            )),
            None => Ok(None),
        }
    }

    /// Refuses another target than that of the run.
    pub(super) fn refuse_other(&self, header: &Header) -> Result<(), Error> {
        let then = &header.invocation.options.directory;
        let here = std::env::current_dir().unwrap_or_default();
        let is_same_path = |old: &Path, new: &Path| {
            // A journal that does not know its directory has paths as they were typed.
            old == new || !then.as_os_str().is_empty() && then.join(old) == here.join(new)
        };
        let is_same = match (&header.target, &self.target) {
            (Target::Paths { members: old, .. }, Target::Paths { members: new, .. }) => {
                old.len() == new.len()
                    && old.iter().zip(new).all(|(old, new)| is_same_path(old, new))
            }
            (Target::Scratch { directory: old, .. }, Target::Scratch { directory: new, .. }) => {
                is_same_path(old, new)
            }
            (old, new) => old == new,
        };
        if is_same {
            return Ok(());
        }
        Err(usage!(
            "this run was made on '{target}', and '{given}' is given",
            "give the target of the run, as it was given then; or start another run",
            target = header.target,
            given = self.target
        ))
    }

    /// The target to measure on: that which is named here, with the size of the scratch file or the
    /// layout of the volume that the run had.
    pub(super) fn target(&self, layout: Layout, scratch: Option<Bytes>) -> Target {
        match self.target.clone() {
            Target::Paths { members, .. } => Target::Paths { members, layout },
            Target::Scratch {
                directory,
                bytes,
                keep,
            } => Target::Scratch {
                directory,
                bytes: bytes.or(scratch),
                keep,
            },
            other => other,
        }
    }

    /// Access to the databases that are named here, by the same passwords as in a new run.
    pub(super) fn access(
        &self,
        args: &MeasuringArgs,
        membership: &Membership,
    ) -> Result<Option<Access>, Error> {
        let urls = self.urls.as_deref();
        urls.map(|urls| database::access(urls, &args.password, membership))
            .transpose()
    }
}

/// Databases as a target.
pub(super) fn sql_target(access: &Access) -> Target {
    Target::Sql(SqlTarget {
        dbms: access.dbms(),
        urls: access.servers.iter().map(ToString::to_string).collect(),
        private_in: None,
        private: None,
    })
}

/// Tells the other ranks how a run is planned that is resumed on `named`. Refuses another number of
/// ranks than it had, whose sums would be of another number of hosts, and other terms between the
/// hosts.
pub(super) fn share(
    header: &Header,
    args: &MeasuringArgs,
    membership: &Membership,
) -> Result<(), Error> {
    let then = header.ranks.as_ref().map_or(1, |group| group.size());
    let now = membership.joined().map_or(1, Ranks::size);
    if then != now {
        return Err(usage!(
            "this run was made by {then} ranks, and these are {now}",
            "resume it with as many ranks, on the same hosts"
        ));
    }
    let (Some(ranks), Some(group)) = (membership.joined(), &header.ranks) else {
        return Ok(());
    };
    refuse_other_flags(group, &args.outcome.ranks)?;
    ranks.send_all(&SharedPlan::of(header))
}

/// Refuses other hosts than those of the run, by rank: its journal and its reports name each host
/// once, for all that was measured. A host that was restarted meanwhile is the same.
pub(super) fn refuse_other_hosts(header: &Header, now: Option<&RankGroup>) -> Result<(), Error> {
    let Some((then, now)) = header.ranks.as_ref().zip(now) else {
        return Ok(());
    };
    let mut pairs = then.members.iter().zip(&now.members);
    match pairs.find(|(then, now)| then.host.name != now.host.name) {
        None => Ok(()),
        Some((then, now)) => Err(usage!(
            "rank {rank} of this run was on '{there}', and is on '{here}'",
            "resume it on the same hosts in the same order, or start another run",
            rank = then.rank,
            there = then.host.name,
            here = now.host.name
        )),
    }
}

/// The job of a rank that has no journal: measured on what its own command line names.
pub(super) fn follow(
    ranks: &Ranks,
    args: &MeasuringArgs,
    membership: &Membership,
    named: Option<NamedAgain>,
    verb: &str,
) -> Result<Job, Error> {
    let named = named.ok_or_else(|| usage!("no target is given", "name one"))?;
    let plan: SharedPlan = ranks.from_root(SHARED)?;
    let verb = plan.check(verb, &named.target)?;
    let access = named.access(args, membership)?;
    if let Some(access) = &access {
        let tables = database::tables_of(access, membership)?;
        if verb.tables() != Some(tables) {
            return Err(usage!(
                "'{target}' has {tables}, and this run was made on other tables",
                "restore the tables that it was started on, or start another run",
                target = named.target
            ));
        }
    }
    let options = RunOptions {
        destroy: args.destroy.clone(),
        allow_holes: plan.allow_holes,
        workers: plan.workers,
        seed: plan.seed,
        directory: std::env::current_dir().unwrap_or_default(),
        expected: Vec::new(),
    };
    Ok(Job {
        verb,
        options,
        files: None,
        target: named.target(plan.layout, None),
        engine: plan.engine,
        command: own_arguments(),
        results: Results::elsewhere(),
        access,
        private: Vec::new(),
        resumed: None,
        journal: None,
        agreement: Agreement::default(),
        separate: args.outcome.ranks.separate,
        same_blocks: args.outcome.ranks.same_blocks,
        membership: membership.clone(),
    })
}

/// The target of `header`'s run as `named` names it again, and access to it.
pub(super) fn again(
    named: &NamedAgain,
    header: &Header,
    args: &MeasuringArgs,
    membership: &Membership,
) -> Result<(Target, Option<Access>), Error> {
    let (layout, bytes) = match &header.target {
        Target::Paths { layout, .. } => (*layout, None),
        _ => (
            Layout::Concat,
            header.facts.members.first().map(|member| member.bytes),
        ),
    };
    Ok((named.target(layout, bytes), named.access(args, membership)?))
}
