//! Calls that may never return, made in a thread that may be left behind.
//!
//! Input: a call, such as opening a file or asking a server, and the longest time to wait for it.
//! Output: its result, or that there was no answer. Storage that hangs keeps a thread in the kernel,
//! where no signal ends it. Such a thread is left behind, and [`left_behind`] names what it waits
//! for. The wait also ends soon after the program was asked to stop. Nothing here ends a thread, and
//! nothing waits for one that was left behind.

use crate::clock;
use rigel_model::{Error, Nanos};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// How long storage or a server may take for a call that takes milliseconds, before it counts as
/// one that stopped answering.
pub const ANSWER: Nanos = Nanos::from_secs(10);

/// The limit of a call that may take any time, until the program is asked to stop.
pub const NEVER: Nanos = Nanos(u64::MAX);

/// How long a call may still take after the program was asked to stop.
const STOPPED: Nanos = Nanos::from_secs(2);

/// Interval at which a wait looks whether the program was asked to stop.
pub const LOOK: Nanos = Nanos::from_millis(50);

/// The request to stop that every call heeds, once there is one. It comes by a signal, which is sent
/// to a process: calls deep below need not be handed what no caller could choose.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The calls that were left behind: their threads keep the whole process from ending, whoever made
/// them.
static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// A call that was left behind.
struct Left {
    what: String,
    /// Set when it has returned after all.
    returned: Arc<AtomicBool>,
}

/// A call that did not return in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnswer {
    /// What was called: "opening '/mnt/a'".
    pub what: String,
    /// How long it was waited for.
    pub waited: Nanos,
    /// True if the wait ended because the program was asked to stop.
    pub is_stopped: bool,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, waited, .. } = self;
        write!(f, "{what}: no answer for {:.0} s", waited.as_secs_f64())
    }
}

impl From<NoAnswer> for Error {
    fn from(unanswered: NoAnswer) -> Self {
        let hint = "the storage or server behind it does not answer; look at the kernel's log \
                    (dmesg)";
        Error::failed(unanswered.to_string(), hint)
    }
}

/// Makes every call heed this request to stop. Only the first one counts.
pub fn heed(stop: Arc<AtomicBool>) {
    let _ = STOP.set(stop);
}

/// Makes a call in a thread of its own, and waits for it up to `limit`, or shortly after the program
/// was asked to stop. `what` names the call, for messages: "opening '/mnt/a'".
///
/// # Errors
/// The call has not returned. Its thread is left behind, with all that `work` owns.
///
/// # Panics
/// If `work` does.
pub fn call<Answer: Send + 'static>(
    what: &str,
    limit: Nanos,
    work: impl FnOnce() -> Answer + Send + 'static,
) -> Result<Answer, NoAnswer> {
    call_while(what, limit, work, &mut || ())
}

/// The same, with what the caller does at each look.
///
/// # Errors
/// As [`call`].
///
/// # Panics
/// As [`call`].
pub fn call_while<Answer: Send + 'static>(
    what: &str,
    limit: Nanos,
    work: impl FnOnce() -> Answer + Send + 'static,
    look: &mut dyn FnMut(),
) -> Result<Answer, NoAnswer> {
    let returned = Arc::new(AtomicBool::new(false));
    let (sender, answer) = mpsc::sync_channel(1);
    let over = Arc::clone(&returned);
    let run = move || {
        let answer = work();
        over.store(true, Ordering::Release);
        // Nobody waits any more if it was left behind.
        let _ = sender.send(answer);
    };
    let thread = thread::Builder::new()
        .name("bounded".into())
        .spawn(run)
        .unwrap_or_else(|error| panic!("cannot start a thread for {what}: {error}"));
    let mut wait = BoundedWait::new(limit);
    loop {
        look();
        match answer.recv_timeout(Duration::from_nanos(LOOK.0)) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("a thread that returned has sent its answer"),
            },
            Err(RecvTimeoutError::Timeout) if wait.is_over() => {
                leave(what, returned);
                return Err(NoAnswer {
                    what: what.into(),
                    waited: wait.waited,
                    is_stopped: wait.waited < limit,
                });
            }
            Err(RecvTimeoutError::Timeout) => (),
        }
    }
}

/// Notes that a thread was left behind which waits for `what`, and sets `returned` when it ends.
pub fn leave(what: &str, returned: Arc<AtomicBool>) {
    lock().push(Left {
        what: what.into(),
        returned,
    });
}

/// What the threads that were left behind still wait for.
pub fn left_behind() -> Vec<String> {
    let left = lock();
    let waiting = left
        .iter()
        .filter(|left| !left.returned.load(Ordering::Acquire));
    waiting.map(|left| left.what.clone()).collect()
}

fn lock() -> MutexGuard<'static, Vec<Left>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time for which something was waited for, in looks. A machine that stood still for a minute is
/// not storage that did not answer for a minute, so no look counts for more than two.
#[derive(Debug, Clone)]
pub struct BoundedWait {
    limit: Nanos,
    limit_stopped: Nanos,
    waited: Nanos,
    waited_stopped: Nanos,
    last: Nanos,
}

impl BoundedWait {
    /// A wait that begins now, for at most `limit`, and shortly after the program was asked to stop.
    pub fn new(limit: Nanos) -> Self {
        Self::until(limit, STOPPED)
    }

    /// A wait that begins now, for at most `limit`, and `limit_stopped` after the program was asked to stop.
    pub fn until(limit: Nanos, limit_stopped: Nanos) -> Self {
        Self {
            limit,
            limit_stopped,
            waited: Nanos(0),
            waited_stopped: Nanos(0),
            last: clock::monotonic(),
        }
    }

    /// True if the time is up, or the program was asked to stop long enough ago. To be called after
    /// each look, at least every [`LOOK`].
    pub fn is_over(&mut self) -> bool {
        let now = clock::monotonic();
        let step = now.since(self.last).min(Nanos(2 * LOOK.0));
        self.last = now;
        self.waited = self.waited.plus(step);
        if STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.waited_stopped = self.waited_stopped.plus(step);
        }
        self.waited >= self.limit || self.waited_stopped >= self.limit_stopped
    }

    /// How long it has lasted.
    pub fn waited(&self) -> Nanos {
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_returns_gives_its_answer() {
        assert_eq!(call("adding", ANSWER, || 1 + 1), Ok(2));
    }

    #[test]
    fn a_call_that_does_not_return_is_left_behind_by_name_until_it_does() {
        let (release, gate) = mpsc::channel::<()>();
        let (sender, ended) = mpsc::channel();
        let work = move || {
            let _ = gate.recv();
            let _ = sender.send(());
        };
        let unanswered = call("reading 'left'", Nanos::from_millis(100), work).unwrap_err();
        assert!(!unanswered.is_stopped);
        let error = Error::from(unanswered);
        assert!(
            error.what().starts_with("reading 'left': no answer for"),
            "{error}"
        );
        let is_left = || left_behind().iter().any(|what| what == "reading 'left'");
        assert!(is_left());
        release.send(()).unwrap();
        ended.recv().unwrap();
        while is_left() {
            thread::yield_now();
        }
    }

    #[test]
    #[should_panic(expected = "inside the call")]
    fn a_panic_of_the_call_is_that_of_the_caller() {
        let _ = call("panicking", ANSWER, || panic!("inside the call"));
    }
}
