//! The request of `rigel duet`.

use rigel_analyse::plan::SqlTerms;
use rigel_model::{LogKind, Mix, Nanos, PrivateServer, Ratio, Target, shell_word};
use serde::{Deserialize, Serialize};

/// The options of `duet`. Kept in the journal's header, so that reports can be made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuetRequest {
    /// What is compared: each of the others with the first.
    pub arms: Vec<DuetArm>,
    /// Maximum time of all visits, with their warm-ups.
    pub budget: Nanos,
    /// Arms whose throughputs certainly differ by no more than this are equivalent.
    pub margin: Ratio,
    /// Probability of a wrong answer, at any arm and at any moment.
    pub error: Ratio,
    /// How much slower than the first another arm may be; `None` if that is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_most: Option<Ratio>,
    /// Which I/Os, of a volume.
    pub mix: Mix,
    /// Operations offered to each arm per second; `None` in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u64>,
    /// Arms are measured at the same time, and not in turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// What database sessions do, if the arms are private servers; `None` for raw I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlTerms>,
    /// The setting of servers that differs, with its values, as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_setting: Option<String>,
}

/// One of the things that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuetArm {
    /// What sets it apart, in the user's words: a target, or `engine=psync`.
    pub name: String,
    /// Its target; `None` for that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Its engine; `None` for that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Bytes of an I/O, or of a commit.
    pub length: u32,
    /// Outstanding I/Os, sessions, or writers of a log; of offered operations at most.
    pub depth: u32,
    /// The state of the log's own file to which it commits; `None` if the volume is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
}

impl DuetRequest {
    /// Most arms of a run: each has its part of the time and of the error.
    pub const ARMS_MAX: usize = 8;

    /// The targets of the arms that have one of their own.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.arms.iter().filter_map(|arm| arm.target.as_ref())
    }

    /// The same, to change them.
    pub fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        self.arms.iter_mut().filter_map(|arm| arm.target.as_mut())
    }

    /// The options that make the servers of the arms again: what they have in common, of which `first` is
    /// one, and what differs. As [`PrivateServer::confirmed_options`].
    pub(super) fn server_options(&self, first: &PrivateServer) -> String {
        let Some(setting) = &self.server_setting else {
            return first.confirmed_options();
        };
        let mut common = first.clone();
        match setting.split_once('=') {
            Some((SERVER_BIN, _)) => common.bin = None,
            _ => drop(common.settings.pop()),
        }
        format!(
            "{} --vary {}",
            common.confirmed_options(),
            shell_word(setting)
        )
    }
}

/// What `--vary` calls the directory of a server's programs.
pub const SERVER_BIN: &str = "server-bin";
