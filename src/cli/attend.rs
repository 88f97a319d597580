//! The process that was started, beside the one that touches the storage.
//!
//! It passes signals on and returns the other's exit status. After a signal it does not wait for a
//! target that does not answer: it leaves the other process behind by its number, and ends. Once the
//! other process says that it only needs its journal, one wait may take ten seconds: slow storage is
//! no hung target. A second signal ends both at once. If the other process comes to no end of its own,
//! this one says what to do.

use super::output::remark;
use super::stop;
use rigel_device::bounded;
use rigel_device::engine::fork::{Child, ChildNews, Forked, fork};
use rigel_device::{clock, rights};
use rigel_model::{Nanos, STALLED};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Interval at which the other process is looked at after a signal, and while it ends.
const LOOK: Nanos = Nanos::from_millis(50);

/// The same while it measures.
const SELDOM: Nanos = Nanos::from_secs(1);

/// Time after a signal in which a process whose first thread waits for a device may end. With
/// [`ENDING`] and the wait of [`Attendant::leave`], that is less than five seconds.
const PATIENCE: Nanos = Nanos::from_secs(3);

/// Time in which a process that has told its exit status must end.
const ENDING: Nanos = Nanos::from_secs(1);

/// The exit status of a process that was ended by a signal, and of one that was left behind.
const ENDED: u8 = 1;

/// What this process tells its parent by, if it has one, and what it leaves if it is ended at once.
static PARENT: Mutex<Parent> = Mutex::new(Parent {
    pipe: None,
    left: Vec::new(),
});

struct Parent {
    pipe: Option<File>,
    left: Vec<String>,
}

impl Parent {
    fn tell(&mut self, news: &ChildNews) {
        self.pipe.iter_mut().for_each(|pipe| news.tell(pipe));
    }

    fn tell_left(&mut self) {
        self.tell(&ChildNews::Left(self.left.concat()));
    }
}

fn parent() -> MutexGuard<'static, Parent> {
    PARENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run has a journal from now on: `what_to_do` are commands for a run that comes to no end.
pub(super) fn has_journal(what_to_do: String) {
    parent().tell(&ChildNews::Journal(what_to_do));
}

/// Nothing is asked of the target any more.
pub(super) fn is_measured() {
    parent().tell(&ChildNews::Measured);
}

/// What the parent says if this process is ended at once, while this exists.
pub(super) struct LeftNote(String);

impl LeftNote {
    /// `text` is a line.
    pub(super) fn new(text: String) -> Self {
        let mut parent = parent();
        parent.left.push(text.clone());
        parent.tell_left();
        Self(text)
    }
}

impl Drop for LeftNote {
    fn drop(&mut self) {
        let mut parent = parent();
        if let Some(index) = parent.left.iter().position(|note| *note == self.0) {
            parent.left.remove(index);
        }
        parent.tell_left();
    }
}

/// Runs the program in a second process, if that is possible. Returns its exit status, in both.
pub(super) fn attended(is_watch: bool, run: impl FnOnce() -> u8) -> u8 {
    match fork() {
        None => run(),
        Some(Forked::Child(sender)) => {
            stop::leave_second_signal();
            parent().pipe = Some(sender);
            let status = run();
            end(status);
            status
        }
        Some(Forked::Parent(child)) => {
            if is_watch {
                // For weeks; and only the other process traces.
                let _ = rights::give_up_all();
            }
            Attendant::new(child).watch()
        }
    }
}

/// Tells the exit status. If a thread is left behind, this process cannot end: then it lets go of its
/// output, for which others may wait.
fn end(status: u8) {
    let left = bounded::left_behind();
    if !left.is_empty() {
        remark(&format!(
            "left behind, as the kernel does not end it: process {}, {}\n",
            std::process::id(),
            left.join(", ")
        ));
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
    }
    parent().tell(&ChildNews::Status(status));
}

/// Watches the other process.
struct Attendant {
    child: Child,
    signals: Option<UnixStream>,
    suspensions: Option<UnixStream>,
    /// Time since the first signal, and since the other process told its exit status, in looks. No
    /// look counts for much more than its interval: this machine may stand still.
    signalled: Option<Nanos>,
    ending: Option<(Nanos, u8)>,
    /// What to do if the other process comes to no end, once there is a journal.
    what_to_do: String,
    /// What it leaves if it is ended at once, in lines.
    left: String,
    /// True once the other process asks nothing of the target any more.
    is_measured: bool,
    /// Time for which its first thread has been in one wait for a device, and which wait that is.
    blocked: Nanos,
    wait: Option<u64>,
    /// The time without an answer from which on the wait is said, or said again.
    say_at: Nanos,
    looked: Nanos,
}

impl Attendant {
    fn new(mut child: Child) -> Self {
        let (signals, suspensions) = (stop::signals().ok(), stop::suspensions());
        child.accept_signals();
        Self {
            child,
            signals,
            suspensions,
            signalled: None,
            ending: None,
            what_to_do: String::new(),
            left: String::new(),
            is_measured: false,
            blocked: Nanos(0),
            wait: None,
            say_at: STALLED,
            looked: clock::monotonic(),
        }
    }

    /// Waits until it ends or is left behind. Returns the exit status.
    fn watch(mut self) -> u8 {
        loop {
            let is_busy = self.signalled.is_none() && self.ending.is_none();
            let interval = if is_busy { SELDOM } else { LOOK };
            let has_signal = self.wait(interval);
            self.suspend();
            if let Ok(Some(status)) = self.child.ended() {
                self.read_news();
                self.say_left();
                return exit_status(status.exit_status(), status.terminating_signal());
            }
            let now = clock::monotonic();
            let step = now.since(self.looked).min(Nanos(2 * interval.0));
            self.looked = now;
            // A process writes its status before it ends. So its state is read before its status: in the
            // other order, one that ends in between would seem to have ended without a status.
            let state = self.child.state();
            self.read_news();
            if has_signal && self.is_second_signal() {
                self.child.kill();
                return self.leave(ENDED);
            }
            if let Some(time) = &mut self.signalled {
                *time = time.plus(step);
            }
            if let Some((time, _)) = &mut self.ending {
                *time = time.plus(step);
            }
            match state {
                Some('D') => self.note_wait(step),
                // It was killed, and a thread of it is still in the kernel.
                Some('Z') if self.ending.is_none() => self.ending = Some((Nanos(0), ENDED)),
                _ => self.blocked = Nanos(0),
            }
            if let Some((time, status)) = self.ending
                && time >= ENDING
            {
                self.child.kill();
                return self.leave(status);
            }
            let is_late = self.signalled.is_some_and(|time| time >= PATIENCE);
            // The journal may be on slow storage, where one wait is long.
            let patience = if self.is_measured { STALLED } else { ENDING };
            if is_late && self.blocked >= patience {
                self.child.kill();
                return self.leave(ENDED);
            }
        }
    }

    /// Takes what the other process tells.
    fn read_news(&mut self) {
        while self.ending.is_none()
            && let Some(news) = self.child.read_news()
        {
            match news {
                ChildNews::Journal(what_to_do) => self.what_to_do = what_to_do,
                ChildNews::Left(left) => self.left = left,
                ChildNews::Measured => self.is_measured = true,
                ChildNews::Status(status) => self.ending = Some((Nanos(0), status)),
            }
        }
    }

    /// Adds to the time of the wait for a device, if it is still the same one, and says it after ten
    /// seconds: before and after measuring, the other process cannot say it itself.
    fn note_wait(&mut self, step: Nanos) {
        let wait = self.child.waits();
        if wait != self.wait {
            (self.wait, self.blocked, self.say_at) = (wait, Nanos(0), STALLED);
        }
        self.blocked = self.blocked.plus(step);
        if self.blocked >= self.say_at && self.signalled.is_none() {
            self.say_at = Nanos(2 * self.blocked.0);
            let place = self.child.waits_in();
            let place =
                place.map_or_else(String::new, |place| format!(" (in the kernel: {place})"));
            remark(&format!(
                "process {} waits for storage: nothing has completed for {:.0} s{place}\n",
                self.child.pid,
                self.blocked.as_secs_f64()
            ));
        }
    }

    /// Waits for a signal, an exit status or the end of the interval. Returns whether a signal came.
    fn wait(&self, interval: Nanos) -> bool {
        let time = Timespec {
            tv_sec: i64::try_from(interval.0 / 1_000_000_000).unwrap_or(1),
            tv_nsec: i64::try_from(interval.0 % 1_000_000_000).unwrap_or(0),
        };
        let mut waited = Vec::new();
        if self.ending.is_none() {
            waited.push(PollFd::new(&self.child.news, PollFlags::IN));
        }
        let own = waited.len();
        waited.extend(
            self.signals
                .as_ref()
                .map(|signals| PollFd::new(signals, PollFlags::IN)),
        );
        let after = waited.len();
        waited.extend(
            self.suspensions
                .as_ref()
                .map(|signals| PollFd::new(signals, PollFlags::IN)),
        );
        let _ = poll(&mut waited, Some(&time));
        waited[own..after].iter().any(|fd| !fd.revents().is_empty())
    }

    /// Suspends both processes, if that was asked for, until this one goes on.
    fn suspend(&mut self) {
        let mut bytes = [0; 64];
        let signals = self.suspensions.as_mut();
        if !signals.is_some_and(|signals| signals.read(&mut bytes).is_ok_and(|count| count > 0)) {
            return;
        }
        // A terminal tells both. One that waits for a device cannot be suspended before that answers.
        for look in 0..20 {
            if self.child.state() == Some('T') {
                break;
            }
            if look == 4 {
                self.child.suspend();
            }
            std::thread::sleep(std::time::Duration::from_nanos(LOOK.0));
        }
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
        self.child.resume();
        self.looked = clock::monotonic();
    }

    /// Passes the first signal on. Returns whether this is another one.
    fn is_second_signal(&mut self) -> bool {
        let mut bytes = [0; 64];
        let count = self
            .signals
            .as_mut()
            .map_or(0, |signals| signals.read(&mut bytes).unwrap_or(0));
        if count == 0 {
            return false;
        }
        match self.signalled {
            None => {
                self.signalled = Some(Nanos(0));
                self.child.stop();
                false
            }
            Some(time) => time >= stop::SAME,
        }
    }

    /// Says what the other process has not removed.
    fn say_left(&self) {
        if !self.left.is_empty() {
            remark(&self.left);
        }
    }

    /// Ends without the other process, unless it ends soon. Says so, if that told no status.
    fn leave(&self, status: u8) -> u8 {
        self.say_left();
        let mut has_ended = false;
        for _ in 0..10 {
            has_ended = !matches!(self.child.ended(), Ok(None));
            if has_ended {
                break;
            }
            std::thread::sleep(std::time::Duration::from_nanos(LOOK.0));
        }
        if self.ending.is_some() {
            return status;
        }
        let how = match (has_ended, self.is_measured) {
            (true, true) => "ended before the report was made".into(),
            (true, false) => "ended at once".into(),
            (false, _) => format!(
                "left behind, as the kernel does not end it: process {}, which waits for storage \
                 that does not answer",
                self.child.pid
            ),
        };
        let what_to_do = match self.what_to_do.as_str() {
            "" => String::new(),
            commands => format!("; {commands}"),
        };
        remark(&format!("{how}{what_to_do}\n"));
        status
    }
}

/// The exit status for that of the other process, or for the signal that ended it.
fn exit_status(status: Option<i32>, signal: Option<i32>) -> u8 {
    if let Some(signal) = signal {
        // Whoever started the program sees the signal. One that cannot be had again is a status.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return 128u8.saturating_add(u8::try_from(signal).unwrap_or(0));
    }
    status
        .and_then(|status| u8::try_from(status).ok())
        .unwrap_or(ENDED)
}
