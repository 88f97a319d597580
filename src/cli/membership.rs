//! What this process is among the others that its launcher started.
//!
//! Input: the ranks that it joined. Output: who is asked later, by whatever part of the command line.
//! This prints nothing and joins nothing: [`ranks`](super::ranks) does.

use rigel_ranks::{ProcessManager, Ranks};
use std::sync::{Mutex, OnceLock};

/// Set once. A launcher knows ranks as processes, speaks to each once, and learns from the end of the
/// process what became of it: so this belongs to the process, from the first step of a verb to its
/// exit status.
static MEMBERSHIP: OnceLock<Membership> = OnceLock::new();

enum Membership {
    /// It is a rank of one run.
    Joined(Ranks),
    /// The ranks could not be joined. They are ended through their process manager.
    Unjoined(Mutex<Box<dyn ProcessManager>>),
}

/// Remembers the ranks that this process has joined.
pub(super) fn join(ranks: Ranks) {
    MEMBERSHIP.get_or_init(|| Membership::Joined(ranks));
}

/// Remembers the process manager of ranks that could not be joined.
pub(super) fn fail(manager: Box<dyn ProcessManager>) {
    MEMBERSHIP.get_or_init(|| Membership::Unjoined(Mutex::new(manager)));
}

/// The ranks that this process has joined; `None` if it measures alone.
pub(super) fn joined() -> Option<&'static Ranks> {
    match MEMBERSHIP.get() {
        Some(Membership::Joined(ranks)) => Some(ranks),
        Some(Membership::Unjoined(_)) | None => None,
    }
}

/// The process manager of ranks that could not be joined.
pub(super) fn unjoined() -> Option<&'static Mutex<Box<dyn ProcessManager>>> {
    match MEMBERSHIP.get() {
        Some(Membership::Unjoined(manager)) => Some(manager),
        Some(Membership::Joined(_)) | None => None,
    }
}

/// True at a rank that only measures: it plans, prints and writes nothing.
pub(super) fn is_follower() -> bool {
    joined().is_some_and(|ranks| !ranks.is_root())
}
