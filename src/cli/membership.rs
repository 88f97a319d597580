//! What this process is among the others that its launcher started.
//!
//! Input: the ranks that it joined. Output: whoever this is handed down to asks it.
//! This prints nothing and joins nothing: [`ranks`](super::ranks) does.

use rigel_database::Access;
use rigel_model::{Error, usage};
use rigel_ranks::{ProcessManager, Ranks};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// Decided once, by the first step of a verb, and asked until the exit status: a launcher knows
/// ranks as processes, speaks to each once, and learns from the end of the process what became of it.
#[derive(Clone, Default)]
pub(super) struct Membership(Arc<OnceLock<RankPlace>>);

enum RankPlace {
    /// It is a rank of one run.
    Joined(Ranks),
    /// The ranks could not be joined. They are ended through their process manager.
    Unjoined(Mutex<Box<dyn ProcessManager>>),
}

impl Membership {
    /// Remembers the ranks that this process has joined.
    pub(super) fn join(&self, ranks: Ranks) {
        self.0.get_or_init(|| RankPlace::Joined(ranks));
    }

    /// Remembers the process manager of ranks that could not be joined.
    pub(super) fn fail(&self, manager: Box<dyn ProcessManager>) {
        self.0
            .get_or_init(|| RankPlace::Unjoined(Mutex::new(manager)));
    }

    /// The ranks that this process has joined; `None` if it measures alone.
    pub(super) fn joined(&self) -> Option<&Ranks> {
        match self.0.get() {
            Some(RankPlace::Joined(ranks)) => Some(ranks),
            Some(RankPlace::Unjoined(_)) | None => None,
        }
    }

    /// The process manager of ranks that could not be joined.
    pub(super) fn unjoined(&self) -> Option<&Mutex<Box<dyn ProcessManager>>> {
        match self.0.get() {
            Some(RankPlace::Unjoined(manager)) => Some(manager),
            Some(RankPlace::Joined(_)) | None => None,
        }
    }

    /// The ranks, at one that only measures: it plans, prints and writes nothing.
    pub(super) fn as_follower(&self) -> Option<&Ranks> {
        self.joined().filter(|ranks| !ranks.is_root())
    }

    /// The servers that this process uses of those that were given: all of them, unless there are
    /// other ranks.
    pub(super) fn own_servers(&self, access: &Access) -> Access {
        match self.joined() {
            Some(ranks) => access.of_rank(ranks.rank(), ranks.size()),
            None => access.clone(),
        }
    }

    /// Refuses a private server for several ranks: each would make its own.
    pub(super) fn refuse_private(&self, directory: &Path) -> Result<(), Error> {
        match self.joined() {
            None => Ok(()),
            Some(ranks) => Err(usage!(
                "{size} ranks cannot share a private server in '{directory}'",
                "start one process, or measure a server that is there, by its URL",
                size = ranks.size(),
                directory = directory.display()
            )),
        }
    }

    /// Refuses a verb that several ranks cannot share, and says why.
    pub(super) fn refuse_shared(&self, verb: &str, why: &str, hint: &str) -> Result<(), Error> {
        match self.joined() {
            None => Ok(()),
            Some(ranks) => Err(usage!(
                "{size} ranks cannot share rigel {verb}: {why}",
                hint,
                size = ranks.size()
            )),
        }
    }
}
