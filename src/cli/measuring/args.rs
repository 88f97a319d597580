//! Options of all verbs that measure, and the target that they name.

use crate::cli::database::PasswordArgs;
use crate::cli::membership::Membership;
use crate::cli::outcome::{OutcomeArgs, RESULTS, TARGET_AND_ENGINE};
use crate::cli::target::{self, GivenTargets};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use rigel_device::engine::{AUTO, ENGINES};
use rigel_model::{Bytes, Error, MIB, Nanos, Target, usage};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Time for rank 0 to read the journal of a run that is resumed, or the files of a demand.
pub(in crate::cli) const SHARED: Nanos = Nanos::from_secs(600);

/// The valid values of `--engine`.
pub(in crate::cli) fn engines() -> PossibleValuesParser {
    let auto = PossibleValue::new(AUTO)
        .help("uring, or libaio with a warning where the kernel forbids io_uring");
    let named = ENGINES
        .iter()
        .map(|engine| PossibleValue::new(engine.info.name).help(engine.info.help));
    PossibleValuesParser::new(std::iter::once(auto).chain(named))
}

/// The targets, and on what terms they are measured.
// A verb has them last: headings stand in the help in this order, and one is that of all options that follow.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = TARGET_AND_ENGINE)]
pub(in crate::cli) struct MeasuringArgs {
    /// Files and devices (addressed as one volume), a directory for a scratch file, or a model such as
    /// sim:8,500us,limit=3000/s (eight servers of 500 us, and a limit), or null:
    #[arg(value_name = "TARGET", help_heading = None::<&str>, required_unless_present = "resume")]
    pub(in crate::cli) targets: Vec<OsString>,
    /// Size of the scratch file, such as 4GiB [default: depends on the free space]
    #[arg(long, value_name = "SIZE")]
    pub(in crate::cli) scratch_size: Option<Bytes>,
    /// Keep the scratch file
    #[arg(long)]
    pub(in crate::cli) keep: bool,
    /// I/O engine; auto is the best one that works here [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = engines(), conflicts_with = "resume")]
    pub(in crate::cli) engine: Option<String>,
    /// Use the page cache instead of direct I/O
    #[arg(long, conflicts_with = "resume")]
    pub(in crate::cli) buffered: bool,
    #[command(flatten)]
    pub(in crate::cli) blocks: BlocksArgs,
    /// Target that Rigel may overwrite, by the same path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) destroy: Vec<PathBuf>,
    /// Minimum number of threads; psync has one per outstanding I/O [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "resume")]
    pub(in crate::cli) workers: Option<u32>,
    #[command(flatten)]
    pub(in crate::cli) password: PasswordArgs,
    #[command(flatten, next_help_heading = RESULTS)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

/// What the blocks of files and devices hold.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(in crate::cli) struct BlocksArgs {
    /// Compare every block that is read with what was written; name those that differ
    #[arg(long, conflicts_with = "resume")]
    pub(in crate::cli) verify: bool,
    /// Allow targets with holes: blocks that were never written
    #[arg(long, conflicts_with = "resume")]
    pub(in crate::cli) allow_holes: bool,
}

impl MeasuringArgs {
    /// Joins the other ranks, if a launcher started several. The first thing that a verb does.
    pub(in crate::cli) fn enter(&self, membership: &Membership) -> Result<(), Error> {
        self.refuse_destroy_of_others()?;
        let ranks = &self.outcome.ranks;
        ranks.enter(membership, !self.destroy.is_empty())
    }

    /// Refuses leave to destroy what is no target: it is misspelt, or meant for something else.
    fn refuse_destroy_of_others(&self) -> Result<(), Error> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
        let is_target = |named: &Path| {
            self.targets
                .iter()
                .any(|one| real(Path::new(one)) == real(named))
        };
        match self.destroy.iter().find(|named| !is_target(named)) {
            Some(other) if !self.targets.is_empty() => Err(usage!(
                "--destroy '{other}' is no target of this run",
                "repeat the path of the target",
                other = other.display()
            )),
            _ => Ok(()),
        }
    }

    /// True if the target is a directory, for files that Rigel makes.
    pub(in crate::cli) fn is_directory(&self) -> bool {
        matches!(&self.targets[..], [one] if Path::new(one).is_dir())
    }

    /// Refuses files and devices for what needs a directory, in which the file of a log is made. Where
    /// nothing else is measured, the scratch file only stands for a volume, and is small.
    pub(in crate::cli) fn require_directory(
        &mut self,
        what: &str,
        is_all: bool,
    ) -> Result<(), Error> {
        let is_directory = self.is_directory();
        if is_directory && is_all {
            self.scratch_size.get_or_insert(SCRATCH_LEAST);
            // These are what the writers of a log do.
            self.buffered = true;
            let engine = self.engine.get_or_insert_with(|| LOG_ENGINE.into());
            if engine != LOG_ENGINE {
                return Err(usage!(
                    "{what} is measured by {LOG_ENGINE}, and --engine {engine} is given",
                    "omit it: the writers of a log wait for pwrite and fdatasync"
                ));
            }
        }
        let other = self.targets.iter().find(|one| Path::new(one).exists());
        match other.filter(|_| !is_directory) {
            None => Ok(()),
            Some(other) => Err(usage!(
                "{what} needs a directory, in which the file of the log is made, and '{target}' is none",
                "give a directory on that storage; 'log p99<10ms', and curve --mix log=100, overwrite \
                 blocks of a file or device",
                target = other.display()
            )),
        }
    }
}

/// Size of the scratch file where only the files of logs are measured.
const SCRATCH_LEAST: Bytes = Bytes(64 * MIB);

/// The engine of log writes to files of their own.
const LOG_ENGINE: &str = "psync";

/// What the options name as the target.
///
/// # Errors
/// It is not one.
pub(in crate::cli) fn target(args: &MeasuringArgs) -> Result<Target, Error> {
    let given = GivenTargets {
        targets: &args.targets,
        option: "",
        scratch_size: args.scratch_size,
        keep: args.keep,
    };
    let target = match given.model()? {
        Some(model) => model,
        None => given.paths(target::is_directory)?,
    };
    given.check_scratch(&target)?;
    target::check_members(&target)?;
    Ok(target)
}
