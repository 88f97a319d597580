//! Options of all verbs that measure, and the target that they name.

use crate::cli::database::PasswordArgs;
use crate::cli::outcome::OutcomeArgs;
use crate::cli::target::{self, GivenTargets};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use rigel_device::engine::{AUTO, ENGINES};
use rigel_model::{Bytes, Error, Nanos, Target};
use std::ffi::OsString;
use std::path::PathBuf;

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
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct MeasuringArgs {
    /// Files and devices (addressed as one volume), a directory for a scratch file, or a model:
    /// sim:… or null:
    #[arg(value_name = "TARGET", required_unless_present = "resume")]
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
    /// Allow targets with holes: blocks that were never written
    #[arg(long, conflicts_with = "resume")]
    pub(in crate::cli) allow_holes: bool,
    /// Target that Rigel may overwrite, by the same path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) destroy: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
    /// Minimum number of threads; psync has one per outstanding I/O [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "resume")]
    pub(in crate::cli) workers: Option<u32>,
    #[command(flatten)]
    pub(in crate::cli) password: PasswordArgs,
}

impl MeasuringArgs {
    /// Joins the other ranks, if a launcher started several. The first thing that a verb does.
    pub(in crate::cli) fn enter(&self) -> Result<(), Error> {
        self.outcome.ranks.joining.enter(!self.destroy.is_empty())
    }
}

/// What the options name as the target.
///
/// # Errors
/// It is not one.
pub(super) fn target(args: &MeasuringArgs) -> Result<Target, Error> {
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
