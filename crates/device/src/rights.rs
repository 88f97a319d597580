//! The rights (capabilities) of this process, and how it gives them up.
//!
//! Input: nothing. Effect: the kernel's sets of the calling thread. Threads inherit them, so what is
//! given up by the first thread before it starts others is given up by the process.
//!
//! A program file may bring rights (`setcap`), and then everybody who may run it has them, for
//! everything that it does. So they are given up before anything is read, except by a verb that
//! traces: it keeps those for tracing, and uses each only for the calls that need it.

use rigel_model::{Error, failed};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_ambient_set, set_capabilities,
    set_no_new_privs,
};
use std::io;

/// What the kernel's events need: `perf_event_open` and `bpf`.
const TRACING: CapabilitySet = CapabilitySet::PERFMON.union(CapabilitySet::BPF);

/// What the layout of the events needs, which tracefs shows to root only by default.
const LAYOUTS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// What a server's socket in a directory of another user needs, for root too.
const CONNECTING: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// What rings of CPUs that come online later need, if they are larger than an ordinary user's may
/// be. No program file is advised to bring it.
const LARGE_RINGS: CapabilitySet = CapabilitySet::IPC_LOCK;

/// Gives up the rights that the program's file brings. If `is_tracing`, those for tracing stay, to be
/// used by `to_trace` and `to_read_layouts` alone. Rights of root, and those that were passed on
/// by the process that started this one (ambient), are the caller's own, and stay.
///
/// To be called first, and by the only thread.
///
/// # Errors
/// The kernel does not show or change the rights.
pub fn give_up_those_of_the_file(is_tracing: bool) -> Result<(), Error> {
    let given_up = || {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let permitted = capabilities(None)?.permitted;
        // A program file that brings rights empties the ambient set.
        if is_ambient(permitted) {
            return Ok(());
        }
        let rights = if is_tracing {
            TRACING | LAYOUTS
        } else {
            CapabilitySet::empty()
        };
        keep_unused(rights)
    };
    given_up().map_err(|error: io::Error| {
        failed!(
            "the rights of this program's file cannot be given up: {error}",
            "remove them (setcap -r), and run it as root where it needs rights"
        )
    })
}

/// Gives up all rights but those to go on tracing, and those to gain any by starting a program. To
/// be called when everything is open.
///
/// # Errors
/// The kernel refuses.
pub fn keep_those_to_trace() -> Result<(), Error> {
    keep_at_most(TRACING | LARGE_RINGS)
}

/// Gives up all rights of the calling thread.
///
/// # Errors
/// The kernel refuses.
pub fn give_up_all() -> Result<(), Error> {
    keep_at_most(CapabilitySet::empty())
}

/// Gives up all rights of the calling thread but the one to reach a server's socket in a directory of
/// another user, which a connection that is made again needs. It is used by [`to_connect`] alone.
///
/// # Errors
/// The kernel refuses.
pub fn keep_that_to_connect() -> Result<(), Error> {
    keep_at_most(CONNECTING)
}

/// Makes a call in a thread with no other right than to connect, such as one that reads what a server
/// answers.
///
/// # Errors
/// That of the call, or the kernel refuses to take rights away.
///
/// # Panics
/// If the call does.
pub fn in_thread_that_connects<Answer: Send>(
    call: impl FnOnce() -> Result<Answer, Error> + Send,
) -> Result<Answer, Error> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| keep_that_to_connect().and_then(|()| call()));
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Makes a call with the right to reach sockets and files in directories of other users, as far as
/// this thread may have it.
pub fn to_connect<Answer>(call: impl FnOnce() -> Answer) -> Answer {
    with(CONNECTING, call)
}

/// Makes a call with the rights to trace, as far as this thread may have them.
pub(crate) fn to_trace<Answer>(call: impl FnOnce() -> Answer) -> Answer {
    with(TRACING | LARGE_RINGS, call)
}

/// Makes a call with the right to read the layout of the kernel's events, and gives that right up if
/// the program's file brought it.
pub(crate) fn to_read_layouts<Answer>(call: impl FnOnce() -> Answer) -> Answer {
    let answer = with(LAYOUTS, call);
    if !rustix::process::geteuid().is_root()
        && let Ok(sets) = capabilities(None)
        && sets.permitted.contains(LAYOUTS)
        && !is_ambient(LAYOUTS)
    {
        set(CapabilitySets {
            effective: sets.effective - LAYOUTS,
            permitted: sets.permitted - LAYOUTS,
            inheritable: sets.inheritable,
        })
        .expect("a thread may give up its rights");
    }
    answer
}

/// Makes a call with rights that this thread may have and does not use otherwise.
fn with<Answer>(rights: CapabilitySet, call: impl FnOnce() -> Answer) -> Answer {
    // Without an answer nothing is raised, and the call says what is missing.
    let lower = capabilities(None).ok().filter(|sets| {
        let raised = CapabilitySets {
            effective: sets.effective | (sets.permitted & rights),
            ..*sets
        };
        raised != *sets && set(raised).is_ok()
    });
    let _lowered = lower.map(Lowered);
    call()
}

/// Sets the thread's rights back when it is dropped.
struct Lowered(CapabilitySets);

impl Drop for Lowered {
    fn drop(&mut self) {
        set(self.0).expect("a thread may stop to use its rights");
    }
}

/// Gives up all rights but these, and those to gain any by starting a program.
fn keep_at_most(rights: CapabilitySet) -> Result<(), Error> {
    keep_unused(rights)
        .and_then(|()| Ok(set_no_new_privs(true)?))
        .map_err(|error| refused(&error))
}

/// Keeps these rights, of those that the thread has, without using them; gives up all others.
fn keep_unused(rights: CapabilitySet) -> io::Result<()> {
    let wanted = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: capabilities(None)?.permitted & rights,
        inheritable: CapabilitySet::empty(),
    };
    set(wanted)?;
    if capabilities(None)? == wanted {
        Ok(())
    } else {
        Err(io::Error::other("the kernel did not take them"))
    }
}

fn set(sets: CapabilitySets) -> io::Result<()> {
    Ok(set_capabilities(None, sets)?)
}

/// True if all these rights were passed on by the process that started this one.
fn is_ambient(rights: CapabilitySet) -> bool {
    let mut each = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    each.all(|right| !rights.contains(right) || capability_is_in_ambient_set(right) == Ok(true))
}

fn refused(error: &io::Error) -> Error {
    failed!(
        "the rights of this process cannot be given up: {error}",
        "run it as a user that has only the rights to trace, or none"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sets of the calling thread.
    fn sets() -> CapabilitySets {
        capabilities(None).unwrap()
    }

    /// The kernel's sets are those of a thread, so other tests keep theirs.
    fn in_a_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(work).join()).unwrap();
    }

    #[test]
    fn what_traces_keeps_its_rights_unused_and_raises_them_for_a_call() {
        in_a_thread(|| {
            let before = sets().permitted;
            keep_those_to_trace().unwrap();
            let kept = before & (TRACING | LARGE_RINGS);
            assert_eq!((sets().effective.bits(), sets().permitted), (0, kept));
            assert_eq!(to_trace(|| sets().effective), kept);
            assert_eq!(to_read_layouts(|| sets().effective.bits()), 0);
            let panicked = std::panic::catch_unwind(|| to_trace(|| panic!("in a call")));
            assert!(panicked.is_err());
            assert_eq!(sets().effective.bits(), 0);
            assert_eq!(rustix::thread::no_new_privs(), Ok(true));
        });
    }

    #[test]
    fn a_thread_that_connects_uses_its_right_for_that_call_only() {
        let before = sets();
        let of_thread = in_thread_that_connects(|| {
            let kept = sets();
            let connecting = to_connect(|| sets().effective);
            assert_eq!(sets(), kept);
            Ok((kept.permitted, kept.effective, connecting))
        });
        let kept = before.permitted & CapabilitySet::DAC_OVERRIDE;
        assert_eq!(of_thread.unwrap(), (kept, CapabilitySet::empty(), kept));
        assert_eq!(sets(), before);
        let failed = in_thread_that_connects(|| Err::<(), _>(failed!("it failed", "")));
        assert_eq!(failed.unwrap_err().what(), "it failed");
    }
}
