//! A question at the terminal whose answer is not shown.
//!
//! Goes in: what is asked for. Comes out: the line that was typed. However it ends, short of SIGKILL, the terminal
//! shows again what is typed: signals that end or stop the program are heeded here and not by their default.

use super::measuring::stop_flag;
use super::output::remark;
use crate::engine::sql::{Address, Secret};
use crate::model::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, BufRead, Stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a signal that came just before waiting may go unheeded, in nanoseconds; others wake the wait.
const GLANCE: i64 = 100_000_000;

/// The terminal while it does not show what is typed.
struct Silent<'a> {
    input: &'a Stdin,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn new(input: &'a Stdin) -> io::Result<Self> {
        let before = tcgetattr(input)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(input, OptionalActions::Flush, &silent)?;
        Ok(Self { input, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.input, OptionalActions::Flush, &self.before);
        remark("\n");
    }
}

/// Asks for the password of `address`. Ctrl-C, SIGTERM and SIGHUP end the question, Ctrl-Z interrupts it.
///
/// # Errors
/// There is no terminal to ask at, or the question was ended by a signal.
pub(super) fn password(address: &Address) -> Result<Secret, Error> {
    let failed = |error: io::Error| {
        Error::failed(format!("the password cannot be asked for: {error}"), "put it in a file named by --password-file")
    };
    let stop = stop_flag()?;
    let suspend = Suspend::heeded().map_err(failed)?;
    let input = io::stdin();
    loop {
        remark(&format!("password for '{address}': "));
        let silent = Silent::new(&input).map_err(failed)?;
        if !waited(&input, &[&stop, &suspend.wanted]).map_err(failed)? {
            let mut line = String::new();
            input.lock().read_line(&mut line).map_err(failed)?;
            return Ok(Secret::new(line.trim_end_matches(['\r', '\n']).to_string()));
        }
        drop(silent);
        if stop.load(Ordering::Relaxed) {
            return Err(Error::failed("stopped while the password was asked for", ""));
        }
        suspend.wanted.store(false, Ordering::Relaxed);
        emulate_default_handler(SIGTSTP).map_err(failed)?;
    }
}

/// Waits for a line; true if one of the signals came first.
fn waited(input: &Stdin, signals: &[&AtomicBool]) -> io::Result<bool> {
    loop {
        if signals.iter().any(|signal| signal.load(Ordering::Relaxed)) {
            return Ok(true);
        }
        let mut line = [PollFd::new(input, PollFlags::IN)];
        match poll(&mut line, Some(&Timespec { tv_sec: 0, tv_nsec: GLANCE })) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ctrl-Z is heeded by the question while this value lives, and stops the program as ever afterwards.
struct Suspend {
    wanted: Arc<AtomicBool>,
    by_default: Arc<AtomicBool>,
}

impl Suspend {
    fn heeded() -> io::Result<Self> {
        let heeded = Self { wanted: Arc::default(), by_default: Arc::default() };
        signal_hook::flag::register(SIGTSTP, Arc::clone(&heeded.wanted))?;
        signal_hook::flag::register_conditional_default(SIGTSTP, Arc::clone(&heeded.by_default))?;
        Ok(heeded)
    }
}

impl Drop for Suspend {
    fn drop(&mut self) {
        self.by_default.store(true, Ordering::Relaxed);
    }
}
