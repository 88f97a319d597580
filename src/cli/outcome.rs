//! The options that every verb that measures has in common: where the results go, which run is
//! resumed, and what is shown meanwhile. They are defined here and nowhere else.

use super::progress::ProgressMode;
use super::ranks::RanksArgs;
use crate::serve::ListenAddress;
use clap::Args;
use rigel_device::clock;
use std::path::PathBuf;

/// Heading of the options that say on what terms a target is measured.
pub const TARGET_AND_ENGINE: &str = "Target and engine";

/// Heading of these options in the help. Each command that has them names it.
pub const RESULTS: &str = "Results and progress";

/// Where the results of a run go, and what is shown meanwhile.
#[derive(Debug, Clone, Default, Args)]
pub struct OutcomeArgs {
    /// Directory for the run [default: a new .rigel directory here, named after verb and time]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Print the results as JSON, and nothing else to stdout
    #[arg(long)]
    pub json: bool,
    /// Hide progress; results, warnings and errors are still shown
    #[arg(long)]
    pub no_progress: bool,
    /// Show the run on a live screen
    #[arg(long, conflicts_with = "no_progress")]
    pub live: bool,
    /// Seed of the random number generator [default: a new one]
    #[arg(long, value_name = "N", value_parser = seed, conflicts_with = "resume")]
    pub seed: Option<u64>,
    /// Resume the run in this directory, or with this journal, with its original options
    #[arg(long, value_name = "RUN")]
    pub resume: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address during the run, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<ListenAddress>,
    #[command(flatten)]
    pub(super) ranks: RanksArgs,
}

impl OutcomeArgs {
    /// How progress is shown.
    pub(super) fn progress(&self) -> ProgressMode {
        ProgressMode::of(self.no_progress, self.live)
    }

    /// The seed: as given, or a new one.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(clock::fresh_seed)
    }
}

/// Parses a seed.
fn seed(text: &str) -> Result<u64, String> {
    let wrong = || format!("it is no whole number from 0 to {}", u64::MAX);
    text.parse().map_err(|_| wrong())
}
