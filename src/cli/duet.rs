//! `rigel duet`: which of two or more is faster, measured in turn within one run.

use super::curve::length;
use super::expected::AnswerArgs;
use super::measuring::{self, Job, MeasuringArgs};
use super::membership::Membership;
use super::outcome::RESULTS;
use super::outputs::Kept;
use super::private_server::{PrivateArgs, ServerArgs};
use super::sql_args::{self, TablesArgs, WorkArgs};
use super::{page, ranges};
use clap::Args;
use rigel_device::engine::{self, AUTO};
use rigel_model::{Bytes, Error, LogKind, Nanos, Ratio, Target, usage};
use rigel_verbs::curve::Loads;
use rigel_verbs::duet::{DuetArm, DuetRequest, SERVER_BIN};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Shortest time for each arm: eight visits with their warm-ups.
const EACH_MIN: Nanos = Nanos::from_secs(15);

/// Outstanding I/Os, where nothing is given.
const DEPTH: u32 = 32;

/// Most outstanding I/Os.
const DEPTH_MAX: u32 = 1024;

/// What the positional arguments are.
pub(super) const TARGETS: &str = "Two or more targets to compare, each a file, a device, a directory for a \
                                  scratch file, or a model such as sim:8,500us; with --vary, the one target of \
                                  all arms; none with --on";

/// Decide which of two targets, or of two settings, is faster: different, equivalent, undecided
///
/// Arms are visited in turn, a second each, in rounds of random order, so that whatever else happens to
/// shared storage happens to all of them; compared is the throughput within a round, of random I/O, of
/// commits, or of a database's sessions. Ends as soon as it is known: the interval holds at every look.
#[derive(Debug, Args)]
#[command(
    override_usage = "rigel duet [OPTIONS] TARGET TARGET...\n       rigel duet [OPTIONS] --vary \
                      NAME=VALUE,VALUE... TARGET\n       rigel duet [OPTIONS] --on DIR --vary \
                      SETTING=VALUE,VALUE...\n       rigel duet --resume RUN",
    after_help = "Exit status: 0 answered, 1 failed or incomplete, 2 wrong usage, 3 slower than \
                  --fail-if-slower allows, 4 undecided."
)]
pub(super) struct DuetArgs {
    /// Compare values of a setting on one target: engine=uring,psync, size=8k,16k, depth=1,4 or
    /// log=grow,reused. With --on, of a server's setting, such as jit=on,off, or of
    /// server-bin=DIR,DIR
    #[arg(long, value_name = "NAME=VALUES")]
    vary: Option<String>,
    /// Outstanding I/Os, writers of --log, or sessions; of --rate at most [default: 32;
    /// of --rate 256, of a log 1, of a server 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(DEPTH_MAX)))]
    #[arg(conflicts_with = "resume")]
    depth: Option<u32>,
    /// Offer each arm as many operations per second, and compare response times: p50, and p99 from 500/s on
    #[arg(long, value_name = "RATE", conflicts_with = "resume")]
    rate: Option<String>,
    /// Measure all arms at the same time, and not in turn: what they take from each other is part of the answer
    #[arg(long, conflicts_with = "resume")]
    together: bool,
    /// Size of an I/O, or of a commit [default: 8KiB; of a commit 4KiB]
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["resume", "on"])]
    size: Option<Bytes>,
    /// Kinds of I/O in percent, such as read=70,write=30 or read=70,log=30 for durable writes
    #[arg(long, value_name = "MIX", default_value = "read=100", conflicts_with_all = ["resume", "on"])]
    mix: String,
    /// Commits to a log's own file, made in the directory: grow, reserved, sized or reused
    #[arg(long, value_name = "STATE", conflicts_with_all = ["resume", "on", "mix"])]
    log: Option<LogKind>,
    /// Maximum time of all visits: what is undecided then stays so
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "5min",
        conflicts_with = "resume"
    )]
    time: Nanos,
    /// A difference that does not matter
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "2%",
        conflicts_with = "resume"
    )]
    margin: Ratio,
    /// Share of runs with a wrong answer
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "5%",
        conflicts_with = "resume"
    )]
    error: Ratio,
    /// Decide whether an arm is slower than the first by more than this, with exit status 3
    #[arg(long, value_name = "SHARE", conflicts_with = "resume")]
    fail_if_slower: Option<Ratio>,
    #[command(flatten)]
    private: PrivateArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    tables: TablesArgs,
    #[command(flatten)]
    measuring: MeasuringArgs,
    #[command(flatten, next_help_heading = RESULTS)]
    answers: AnswerArgs,
}

/// Measures until all is decided, and shows the arms.
pub(super) fn run(args: &DuetArgs, membership: &Membership) -> Result<u8, Error> {
    args.measuring.enter(membership)?;
    membership.refuse_shared(
        "duet",
        "its arms are visited by one host",
        "start one process, with --alone; rigel compare compares runs of several hosts",
    )?;
    let mut job = if let Some(run) = &args.measuring.outcome.resume {
        let servers = args.vary.as_deref().map(|vary| args.servers(vary));
        let servers = servers.transpose()?.unwrap_or_default();
        measuring::resume(run, &args.measuring, membership, "duet", &servers)?
    } else {
        args.job(membership)?
    };
    let kept = Kept::of_job(&job);
    args.answers.refuse_others(&kept)?;
    let Some((measured, outcome)) = measuring::measure(&mut job, &args.measuring)? else {
        return Ok(0);
    };
    page::show(&measured, job.results.path(), args.measuring.outcome.json);
    args.answers.tell(&measured, &kept)?;
    measuring::conclude(job, outcome)
}

impl DuetArgs {
    /// A new run.
    fn job(&self, membership: &Membership) -> Result<Job, Error> {
        self.check()?;
        if let Some(directory) = &self.private.on {
            return self.on_servers(directory, membership);
        }
        let is_given = self.work != WorkArgs::default() || self.tables != TablesArgs::default();
        if is_given || self.private.server.is_given() {
            return Err(usage!(
                "options of servers, sessions and tables are given, and --on is not",
                "add --on DIR for private servers, or leave them out"
            ));
        }
        let (arms, mut first) = match &self.vary {
            Some(vary) => (self.varied(vary)?, self.measuring.clone()),
            None => self.of_targets()?,
        };
        if arms.iter().any(|arm| arm.log.is_some()) {
            first.require_directory("a log", true)?;
        }
        let request = self.request(arms)?;
        measuring::begin(&first, membership, Box::new(request), AUTO)
    }

    /// Refuses shares out of their range.
    fn check(&self) -> Result<(), Error> {
        for (option, share, most) in [
            ("--margin", Some(self.margin), 0.5),
            ("--error", Some(self.error), 0.2),
            ("--fail-if-slower", self.fail_if_slower, 0.99),
        ] {
            let share = share.filter(|share| !(1e-4..=most).contains(&share.get()));
            if let Some(share) = share {
                return Err(usage!(
                    "{option} {share} is out of range",
                    "give 0.01% to {most}%",
                    share = share.exact(),
                    most = most * 100.0
                ));
            }
        }
        Ok(())
    }

    /// What is asked for, on these arms.
    fn request(&self, arms: Vec<DuetArm>) -> Result<DuetRequest, Error> {
        if arms.len() > DuetRequest::ARMS_MAX {
            return Err(usage!(
                "{count} arms are too many for one run",
                "give at most {most}",
                count = arms.len(),
                most = DuetRequest::ARMS_MAX
            ));
        }
        let least = Nanos(EACH_MIN.0 * arms.len() as u64);
        if self.time < least {
            return Err(usage!(
                "--for {time} is too short for {count} arms",
                "give {least} or more, such as 5min",
                time = self.time,
                count = arms.len()
            ));
        }
        Ok(DuetRequest {
            arms,
            budget: self.time,
            margin: self.margin,
            error: self.error,
            slower_most: self.fail_if_slower,
            mix: ranges::mix(&self.mix)?,
            rate_per_s: self.rate_per_s()?,
            together: self.together,
            sql: None,
            server_setting: None,
        })
    }

    /// The one rate that is offered.
    fn rate_per_s(&self) -> Result<Option<u64>, Error> {
        let Some(text) = &self.rate else {
            return Ok(None);
        };
        match ranges::rates(text) {
            Ok(Loads::Rates(rates)) if rates.len() == 1 => Ok(Some(rates[0])),
            _ => Err(usage!(
                "--rate {text} is not one rate",
                "give operations per second, such as 3000 or 20k"
            )),
        }
    }

    /// A new run on private servers, one for each value of a setting.
    fn on_servers(&self, directory: &Path, membership: &Membership) -> Result<Job, Error> {
        let given = directory.to_string_lossy();
        if let [target, ..] = &self.measuring.targets[..] {
            return Err(usage!(
                "'{target}' is given, and the arms are private servers in '{given}'",
                "leave one of them out",
                target = target.display()
            ));
        }
        let scratch = self.measuring.scratch_size.is_some() || self.measuring.keep;
        let own = [("--scratch-size and --keep", scratch, "--scale")];
        sql_args::refuse_raw(&self.measuring, &own, &given)?;
        let vary = self.vary.as_deref().ok_or_else(|| {
            usage!(
                "--on {given} is given, and nothing is varied",
                "add the setting to compare, such as --vary io_method=worker,io_uring,sync"
            )
        })?;
        let dbms = self.private.server.dbms();
        let settings = self.tables.or(self.work.settings()?)?;
        sql_args::refuse_foreign(&settings, dbms)?;
        let tables = sql_args::tables(&settings, dbms)?;
        let sessions = self.depth.unwrap_or(sql_args::SESSIONS);
        let sessions = sessions.max(tables.schemas);
        let mut arms = Vec::new();
        let (name, values) = name_and_values(vary)?;
        for (value, server) in values.iter().zip(self.servers(vary)?) {
            let made = server.made(sessions, settings.load_degree)?;
            arms.push(DuetArm {
                name: format!("{name}={value}"),
                target: Some(measuring::private(dbms, directory, made)),
                engine: None,
                length: tables.block,
                depth: sessions,
                log: None,
            });
        }
        let work = sql_args::work(&settings, tables)?;
        let mut request = DuetRequest {
            sql: Some(DuetRequest::sessions(work, self.work.statement_timeout())),
            server_setting: Some(vary.into()),
            ..self.request(arms)?
        };
        let first = request.arms[0].target.take();
        let first = first.expect("every arm was given a server");
        measuring::begin_on(
            &self.measuring,
            membership,
            Box::new(request),
            dbms.name(),
            first,
        )
    }

    /// The servers of the arms.
    fn servers(&self, vary: &str) -> Result<Vec<ServerArgs>, Error> {
        let (name, values) = name_and_values(vary)?;
        if ["engine", "size", "depth", "log"].contains(&name) {
            return Err(usage!(
                "--vary {vary} is not a setting of a server",
                "give --vary {SERVER_BIN}=DIR,DIR or a setting of it, such as io_method=worker,sync; \
                 or leave --on out"
            ));
        }
        let server = &self.private.server;
        let varied = values.iter().map(|value| server.varied(name, value));
        Ok(varied.collect())
    }

    fn arm(&self, name: String, log: Option<LogKind>) -> Result<DuetArm, Error> {
        let arm = DuetArm {
            name,
            target: None,
            engine: None,
            length: length("--size", self.size, log)?,
            depth: self.depth.unwrap_or(match (log, &self.rate) {
                (Some(_), _) => 1,
                (None, Some(_)) => ranges::IN_FLIGHT,
                (None, None) => DEPTH,
            }),
            log,
        };
        if let Some(log) = log {
            log.check(arm.depth, arm.length)?;
        }
        Ok(arm)
    }

    /// One arm for each target.
    fn of_targets(&self) -> Result<(Vec<DuetArm>, MeasuringArgs), Error> {
        let targets = &self.measuring.targets;
        if let [only] = &targets[..] {
            return Err(usage!(
                "'{only}' is the only target, and nothing is varied",
                "name another target, or compare settings of this one, such as --vary engine=uring,psync",
                only = only.display()
            ));
        }
        let mut arms = Vec::new();
        // One that is given twice shows what the same makes of itself.
        for (at, given) in targets.iter().enumerate() {
            let mut alone = self.alone(given);
            if self.log.is_some() {
                alone.require_directory("a log", true)?;
            }
            let target = absolute(measuring::target(&alone)?);
            let arm = self.arm(given.to_string_lossy().into_owned(), self.log)?;
            arms.push(DuetArm {
                target: (at > 0).then_some(target),
                ..arm
            });
        }
        Ok((arms, self.alone(&targets[0])))
    }

    /// One target as if it were measured alone. Options of scratch files are for directories; where none
    /// is given, they are refused as usual.
    fn alone(&self, target: &OsString) -> MeasuringArgs {
        let is_directory = |one: &OsString| Path::new(one).is_dir();
        let targets = &self.measuring.targets;
        let is_meant = is_directory(target) || !targets.iter().any(is_directory);
        MeasuringArgs {
            targets: vec![target.clone()],
            scratch_size: self.measuring.scratch_size.filter(|_| is_meant),
            keep: self.measuring.keep && is_meant,
            ..self.measuring.clone()
        }
    }

    /// One arm for each value of a setting.
    fn varied(&self, vary: &str) -> Result<Vec<DuetArm>, Error> {
        let (name, values) = name_and_values(vary)?;
        let beside = match name {
            "size" => self.size.map(|size| format!("--size {size}")),
            "depth" => self.depth.map(|depth| format!("--depth {depth}")),
            "log" => self.log.map(|log| format!("--log {log}")),
            _ => None,
        };
        if let Some(beside) = beside {
            return Err(usage!(
                "{beside} is given, and --vary {vary} varies it",
                "leave {beside} out"
            ));
        }
        let mut arms: Vec<DuetArm> = Vec::new();
        for value in values {
            let log = match name {
                "log" => Some(value.parse()?),
                _ => self.log,
            };
            let mut arm = self.arm(format!("{name}={value}"), log)?;
            match name {
                "log" => {}
                "engine" => arm.engine = Some(self.engine(value)?),
                "size" => arm.length = length("--vary size", Some(value.parse()?), log)?,
                "depth" => {
                    let depth = value.parse().ok();
                    let depth = depth.filter(|depth| (1..=DEPTH_MAX).contains(depth));
                    arm.depth = depth.ok_or_else(|| {
                        usage!(
                            "--vary depth={value} is no number of outstanding I/Os",
                            "give 1 to {DEPTH_MAX}"
                        )
                    })?;
                }
                _ => return Err(unknown_setting(vary)),
            }
            arms.push(arm);
        }
        Ok(arms)
    }

    /// The name of an engine that is varied.
    fn engine(&self, value: &str) -> Result<String, Error> {
        if let Some(given) = &self.measuring.engine {
            return Err(usage!(
                "--engine {given} is given, and the engine is varied",
                "leave --engine out"
            ));
        }
        if let Some(log) = self.log {
            return Err(usage!(
                "--log {log} is given, and the engine is varied",
                "leave one of them out: the writers of a log wait for pwrite and fdatasync"
            ));
        }
        if engine::names().any(|name| name == value) {
            let target = measuring::target(&self.measuring)?;
            if target.is_model() {
                return Err(usage!(
                    "--vary engine is for files and devices, and '{target}' is a model",
                    "vary another setting, or give a directory, a file or a device"
                ));
            }
            return Ok(value.into());
        }
        let names: Vec<&str> = engine::names().collect();
        Err(usage!(
            "--vary engine={value} is not known",
            "give some of {names}",
            names = names.join(", ")
        ))
    }
}

/// What is varied without a server of its own.
const VARIED: [&str; 4] = ["engine", "size", "depth", "log"];

/// The name of what is varied, and its values.
fn name_and_values(vary: &str) -> Result<(&str, Vec<&str>), Error> {
    let (name, values) = vary.split_once('=').ok_or_else(|| unknown_setting(vary))?;
    let values: Vec<&str> = values.split(',').map(str::trim).collect();
    if let [only] = values[..]
        && VARIED.contains(&name)
    {
        return Err(usage!(
            "--vary {name} has one value, {only}, and a duet compares two or more",
            "add another, such as {name}={only},OTHER"
        ));
    }
    if values.len() < 2 || name.trim() != name || values.contains(&"") {
        return Err(unknown_setting(vary));
    }
    let is_twice = |at: &usize| values[..*at].contains(&values[*at]);
    if let Some(at) = (0..values.len()).find(is_twice) {
        return Err(usage!(
            "--vary {name} has {value} twice",
            "give every value once",
            value = values[at]
        ));
    }
    Ok((name, values))
}

fn unknown_setting(vary: &str) -> Error {
    usage!(
        "--vary {vary} is not known",
        "give engine=uring,psync, size=8k,16k, depth=1,4 or log=grow,reused, with two values or more; \
         settings of a server need --on DIR"
    )
}

/// The same target by paths that a resumed run finds from any directory.
fn absolute(target: Target) -> Target {
    let of = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match target {
        Target::Paths { members, layout } => Target::Paths {
            members: members
                .iter()
                .map(|path| of(path))
                .collect::<Vec<PathBuf>>(),
            layout,
        },
        Target::Scratch {
            directory,
            bytes,
            keep,
        } => Target::Scratch {
            directory: of(&directory),
            bytes,
            keep,
        },
        other => other,
    }
}
