//! How a run was called: the options that every verb has, and the request of one.

use super::{Error, Target};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The options that every verb has, and that `--resume` takes from the original run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// Targets that may be overwritten: `--destroy`.
    pub destroy: Vec<PathBuf>,
    /// True if holes of a file may be read: `--allow-holes`.
    pub allow_holes: bool,
    /// Minimum number of threads: `--workers`.
    pub workers: usize,
    /// Seed of all random choices: `--seed`.
    pub seed: u64,
    /// Working directory of the run: relative paths are resolved against it. Empty if unknown.
    pub directory: PathBuf,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            destroy: Vec::new(),
            allow_holes: false,
            workers: 1,
            seed: 0,
            directory: PathBuf::new(),
        }
    }
}

/// Names of the files that `rigel orion` writes as Orion did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrionFiles {
    /// Date and time in the names.
    pub stamp: String,
    /// Path of the files without `_summary.txt` and the other suffixes.
    pub prefix: PathBuf,
}

/// What a verb was asked for. This crate knows none: a journal is read as one of whatever knows them.
pub trait VerbRequest: Serialize + Sized {
    /// Takes the request out of the members of an invocation.
    ///
    /// # Errors
    /// None of them is a request, or it cannot be read.
    fn take(members: &mut Map<String, Value>) -> Result<Self, String>;

    /// Refuses numbers that no command line can ask for: a journal may contain any.
    ///
    /// # Errors
    /// The sentence names the value.
    fn check(&self, target: &Target) -> Result<(), Error>;
}

/// How a run was called: request and options. The journal's header keeps it, so that reports can be
/// made again and the run can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invocation<R> {
    /// The request.
    #[serde(flatten)]
    pub request: R,
    /// The options that every verb has.
    #[serde(flatten)]
    pub options: RunOptions,
    /// The files of `rigel orion`.
    #[serde(flatten)]
    pub files: Option<OrionFiles>,
}

impl<R> Invocation<R> {
    /// A request with default options.
    pub fn of(request: R) -> Self {
        Self {
            request,
            options: RunOptions::default(),
            files: None,
        }
    }
}

impl<'de, R: VerbRequest> Deserialize<'de> for Invocation<R> {
    /// Implemented by hand because derived code would report "no variant found" whichever part of a
    /// request is unreadable.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(deserializer)?;
        let request = R::take(&mut members).map_err(D::Error::custom)?;
        let rest = Value::Object(members);
        let options = RunOptions::deserialize(&rest).map_err(D::Error::custom)?;
        Ok(Self {
            request,
            options,
            files: OrionFiles::deserialize(&rest).ok(),
        })
    }
}
