//! The options that every verb that measures has in common: where the results go, and what is shown meanwhile.

use super::progress::Way;
use crate::clock;
use clap::Args;
use std::path::PathBuf;

/// Where the results of a run go, and what is shown meanwhile.
#[derive(Debug, Clone, Default, Args)]
pub struct OutcomeArgs {
    /// Directory for the run [default: a new .rigel directory here, named after verb and time]
    #[arg(long, value_name = "DIR")]
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
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl OutcomeArgs {
    /// How progress is shown.
    pub(super) fn progress(&self) -> Way {
        Way::of(self.no_progress, self.live)
    }

    /// The seed: as given, or a new one.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(clock::fresh_seed)
    }
}
