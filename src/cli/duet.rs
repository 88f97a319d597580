//! `rigel duet`: which of two or more is faster, measured in turn within one run.

use super::calibrate::size_of_io;
use super::exit_status::exit_status;
use super::measuring::{self, MeasuringArgs};
use super::{page, ranks};
use clap::Args;
use rigel_device::engine::{self, AUTO};
use rigel_model::{Bytes, Error, Nanos, Ratio, Target, usage};
use rigel_verbs::Evaluated;
use rigel_verbs::duet::{DuetArm, DuetRequest};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Shortest time for each arm: eight visits with their warm-ups.
const EACH_MIN: Nanos = Nanos::from_secs(15);

/// Most outstanding I/Os.
const DEPTH_MAX: u32 = 1024;

/// What the positional arguments are.
pub(super) const TARGETS: &str = "Two or more targets to compare, each a file, a device, a directory for a \
                                  scratch file, or a model: sim:… or null:; with --vary, the one target \
                                  of all arms";

/// Decide which of two targets, or of two settings, is faster: different, equivalent, undecided
///
/// Arms are visited in turn, a second each, in rounds of random order, so that whatever else happens to
/// shared storage happens to all of them; compared is the throughput of random reads within a round. Ends
/// as soon as it is known: the interval holds at every look.
#[derive(Debug, Args)]
#[command(
    override_usage = "rigel duet [OPTIONS] TARGET TARGET...\n       rigel duet [OPTIONS] --vary \
                      NAME=VALUE,VALUE... TARGET\n       rigel duet --resume RUN",
    after_help = "Exit status: 0 answered, 1 failed or incomplete, 2 wrong usage, 3 slower than \
                  --fail-if-slower allows, 4 undecided."
)]
pub(super) struct DuetArgs {
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// Compare values of a setting on one target: engine=uring,psync, size=8k,16k or depth=1,4
    #[arg(long, value_name = "NAME=VALUES", conflicts_with = "resume")]
    vary: Option<String>,
    /// Outstanding I/Os
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=i64::from(DEPTH_MAX)))]
    #[arg(conflicts_with = "resume")]
    depth: u32,
    /// Size of an I/O
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "8k",
        conflicts_with = "resume"
    )]
    size: Bytes,
    /// Maximum time of all visits: what is undecided then stays so
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "5min",
        conflicts_with = "resume"
    )]
    time: Nanos,
    /// A difference of throughput that does not matter
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
}

/// Measures until all is decided, and shows the arms.
pub(super) fn run(args: &DuetArgs) -> Result<u8, Error> {
    args.measuring.enter()?;
    ranks::refuse_shared(
        "duet",
        "its arms are visited by one host",
        "start one process, with --alone; rigel compare compares runs of several hosts",
    )?;
    let mut job = if let Some(run) = &args.measuring.outcome.resume {
        measuring::resume(run, &args.measuring, "duet", None)?
    } else {
        let (request, first) = args.request()?;
        measuring::begin(&first, Box::new(request), AUTO)?
    };
    let Some((run, stopped)) = measuring::measure(&mut job, &args.measuring)? else {
        return Ok(0);
    };
    let measured = Evaluated::of(run)?;
    page::show(&measured, job.results.path(), args.measuring.outcome.json);
    let status = measured.results.outcome().map_or(0, exit_status);
    measuring::conclude(job, &measured, stopped, status)
}

impl DuetArgs {
    /// What is asked for, and the first arm as if it were measured alone.
    fn request(&self) -> Result<(DuetRequest, MeasuringArgs), Error> {
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
        let (arms, first) = match &self.vary {
            Some(vary) => (self.varied(vary)?, self.measuring.clone()),
            None => self.of_targets()?,
        };
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
        let request = DuetRequest {
            arms,
            budget: self.time,
            margin: self.margin,
            error: self.error,
            slower_most: self.fail_if_slower,
        };
        Ok((request, first))
    }

    fn arm(&self, name: String) -> Result<DuetArm, Error> {
        Ok(DuetArm {
            name,
            target: None,
            engine: None,
            length: size_of_io("--size", self.size)?,
            depth: self.depth,
        })
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
        for (at, given) in targets.iter().enumerate() {
            if targets[..at].contains(given) {
                return Err(usage!(
                    "'{given}' is given twice",
                    "give every target once",
                    given = given.display()
                ));
            }
            let target = absolute(measuring::target(&self.alone(given))?);
            let arm = self.arm(given.to_string_lossy().into_owned())?;
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
        let unknown = || {
            usage!(
                "--vary {vary} is not known",
                "give engine=uring,psync, size=8k,16k or depth=1,4, with two values or more"
            )
        };
        let (name, values) = vary.split_once('=').ok_or_else(unknown)?;
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if values.len() < 2 {
            return Err(unknown());
        }
        let mut arms: Vec<DuetArm> = Vec::new();
        for value in values {
            let mut arm = self.arm(format!("{name}={value}"))?;
            match name {
                "engine" => arm.engine = Some(self.engine(value)?),
                "size" => arm.length = size_of_io("--vary size", value.parse::<Bytes>()?)?,
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
                _ => return Err(unknown()),
            }
            if arms.iter().any(|other| other.name == arm.name) {
                return Err(usage!(
                    "--vary {name} has {value} twice",
                    "give every value once"
                ));
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
        if engine::names().any(|name| name == value) {
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
