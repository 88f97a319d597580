//! A second process of this program, which can be left behind.
//!
//! A thread that waits in the kernel for storage which does not answer is ended by no signal, and
//! the process whose thread it is stays until it is: whoever waits for the process, such as a shell,
//! waits too. So the process that was started does not touch the storage, and another one does.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getppid, waitpid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// The functions of the kernel in which a request waits for a filesystem in another process.
const FUSE: [&str; 2] = ["request_wait_answer", "__fuse_simple_request"];

/// One of two processes.
pub enum Forked {
    /// The one that was started.
    Parent(Child),
    /// The other one, with what it tells its parent by.
    Child(File),
}

/// What the process that touches the storage tells its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildNews {
    /// There is a journal; with what to do if the process does not come to an end.
    Journal(String),
    /// What is left if the process is ended at once, in lines; in place of what was told before.
    Left(String),
    /// The target is closed: what follows reads the journal.
    Measured,
    /// The exit status: it ends.
    Status(u8),
}

impl ChildNews {
    /// Maximum length of a text, in bytes: the kernel does not divide such a message.
    const TEXT_MOST: usize = 4000;

    /// Tells the parent. What cannot be told is not reported: the parent has ended, and this process
    /// with it.
    pub fn tell(&self, parent: &mut File) {
        let (kind, text) = match self {
            Self::Journal(text) => (b'j', text.as_bytes()),
            Self::Left(text) => (b'l', text.as_bytes()),
            Self::Measured => (b'm', &[][..]),
            Self::Status(status) => (b's', std::slice::from_ref(status)),
        };
        let text = &text[..text.len().min(Self::TEXT_MOST)];
        let length = u16::try_from(text.len()).unwrap_or(0).to_le_bytes();
        let _ = parent.write_all(&[&[kind][..], &length[..], text].concat());
    }

    fn read(parent: &mut File) -> io::Result<Self> {
        let mut head = [0; 3];
        parent.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut text = vec![0; u16::from_le_bytes(length).into()];
        parent.read_exact(&mut text)?;
        let in_words = || String::from_utf8_lossy(&text).into_owned();
        Ok(match (kind, &text[..]) {
            (b's', [status]) => Self::Status(*status),
            (b'm', []) => Self::Measured,
            (b'l', _) => Self::Left(in_words()),
            _ => Self::Journal(in_words()),
        })
    }
}

/// The process that touches the storage, as its parent sees it.
pub struct Child {
    /// Its number.
    pub pid: Pid,
    /// It writes here what it tells.
    pub news: OwnedFd,
    /// Signals wait until its parent can pass them on.
    held: Option<HeldSignals>,
}

/// The signals that end a program, held back while this exists: one that came between the fork and its
/// parent's handlers would end the parent alone.
struct HeldSignals(libc::sigset_t);

impl HeldSignals {
    fn hold() -> Self {
        // SAFETY: a set of signals is plain data, and all three calls only write to these two sets.
        unsafe {
            let (mut held, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut held);
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
                libc::sigaddset(&raw mut held, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled when the signals were held.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

/// Makes a second process; `None` if that is not possible. The child is killed with its parent. The
/// parent gets no signal that ends it before [`Child::accept_signals`].
pub fn fork() -> Option<Forked> {
    // Only the calling thread goes on in the child.
    let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
    if threads != 1 {
        return None;
    }
    let (news, sender) = io::pipe().ok()?;
    let parent = rustix::process::getpid();
    let held = HeldSignals::hold();
    // SAFETY: this process has one thread, so no lock is held by another one.
    match unsafe { libc::fork() } {
        0 => {
            drop((news, held));
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            if getppid() != Some(parent) {
                // It has died meanwhile.
                let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
            }
            Some(Forked::Child(OwnedFd::from(sender).into()))
        }
        number => {
            let pid = Pid::from_raw(number).filter(|_| number > 0)?;
            Some(Forked::Parent(Child {
                pid,
                news: news.into(),
                held: Some(held),
            }))
        }
    }
}

impl Child {
    /// Lets this process have the signals that came since the fork, once they do not end it.
    pub fn accept_signals(&mut self) {
        self.held = None;
    }

    /// How it ended; `None` if it has not, or if a thread of it is still in the kernel.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn ended(&self) -> io::Result<Option<WaitStatus>> {
        let waited = waitpid(Some(self.pid), WaitOptions::NOHANG)?;
        Ok(waited.map(|(_, status)| status))
    }

    /// What it tells next; `None` if there is nothing new. Does not wait.
    pub fn read_news(&self) -> Option<ChildNews> {
        let mut waited = [PollFd::new(&self.news, PollFlags::IN)];
        let ready = poll(&mut waited, Some(&Timespec::default())).ok()?;
        let mut pipe = File::from(self.news.try_clone().ok().filter(|_| ready > 0)?);
        ChildNews::read(&mut pipe).ok()
    }

    /// The state of its first thread, as the kernel names it: `D` waits for a device, `T` is suspended,
    /// `Z` has ended. A wait for a filesystem in another process (FUSE) is one for a device too, though
    /// a signal may interrupt it.
    pub fn state(&self) -> Option<char> {
        let pid = self.pid.as_raw_nonzero();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).ok()?;
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        let waits_for_fuse = || self.waits_in().is_some_and(|place| FUSE.contains(&&*place));
        Some(if state == 'S' && waits_for_fuse() {
            'D'
        } else {
            state
        })
    }

    /// How often its first thread has begun to wait. While this stays the same, it is one wait.
    pub fn waits(&self) -> Option<u64> {
        let pid = self.pid.as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/status")).ok()?;
        let line = |line: &str| {
            line.strip_prefix("voluntary_ctxt_switches:")
                .map(str::to_string)
        };
        status.lines().find_map(line)?.trim().parse().ok()
    }

    /// The function of the kernel in which its first thread waits, if the kernel tells it.
    pub fn waits_in(&self) -> Option<String> {
        let pid = self.pid.as_raw_nonzero();
        let name = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/wchan")).ok()?;
        Some(name).filter(|name| !name.is_empty() && name != "0")
    }

    /// Kills it, as far as the kernel lets it.
    pub fn kill(&self) {
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
    }

    /// Suspends it, until [`Child::resume`].
    pub fn suspend(&self) {
        let _ = rustix::process::kill_process(self.pid, Signal::TSTP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        let _ = rustix::process::kill_process(self.pid, Signal::CONT);
    }

    /// Asks it to stop.
    pub fn stop(&self) {
        let _ = rustix::process::kill_process(self.pid, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_once_in_its_order_and_never_waited_for() {
        let (news, sender) = io::pipe().unwrap();
        let child = Child {
            pid: rustix::process::getpid(),
            news: news.into(),
            held: None,
        };
        assert_eq!(child.read_news(), None);
        let mut sender = File::from(OwnedFd::from(sender));
        let reported = [
            ChildNews::Left("a server\n".into()),
            ChildNews::Journal("rigel report run".into()),
            ChildNews::Left(String::new()),
            ChildNews::Measured,
            ChildNews::Status(3),
        ];
        for news in &reported {
            news.tell(&mut sender);
        }
        for news in reported {
            assert_eq!(child.read_news(), Some(news));
        }
        assert_eq!(child.read_news(), None);
        drop(sender);
        assert_eq!(child.read_news(), None);
    }
}
