//! How a run ended: the last line of its journal.

use crate::Error;
use crate::text::read_in_line;
use serde::{Deserialize, Serialize};

/// The last line of a journal. A run without it was killed, or still runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Whether it measured all that it was to measure.
    pub how: HowEnded,
    /// Its exit status; of several ranks that of all.
    pub status: u8,
}

impl RunEnd {
    /// The end of a run that measured all that it was to measure.
    pub fn complete(status: u8) -> Self {
        Self {
            how: HowEnded::Complete,
            status,
        }
    }

    /// The end of a run that returned this status or error.
    pub fn of(outcome: &Result<u8, Error>, was_stopped: bool) -> Self {
        Self {
            how: HowEnded::of(outcome, was_stopped),
            status: match outcome {
                Ok(status) => *status,
                Err(error) => error.exit_status(),
            },
        }
    }
}

/// Whether a run measured all that it was to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HowEnded {
    /// It did.
    Complete,
    /// A signal stopped it.
    Stopped,
    /// It could not, and why.
    Failed(#[serde(deserialize_with = "read_in_line")] String),
}

impl HowEnded {
    /// How a run ended that returned this, and whether a signal had stopped it.
    pub fn of<T>(outcome: &Result<T, Error>, was_stopped: bool) -> Self {
        match outcome {
            _ if was_stopped => Self::Stopped,
            Ok(_) => Self::Complete,
            Err(error) => Self::Failed(error.what().to_string()),
        }
    }
}

/// How a run ended, as far as its journal and its lock tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// As the last line says.
    Said(&'a RunEnd),
    /// Its program did not write how a run ended.
    Unknown,
    /// Its program was killed, or its machine stopped.
    Killed,
    /// Another process is still writing the journal.
    Running,
}
