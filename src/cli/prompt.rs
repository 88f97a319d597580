//! A prompt on the terminal that does not echo the answer.
//!
//! Input: what to ask for. Output: the typed line. However it ends, except by SIGKILL, the echo is
//! restored: signals that end or stop the program are handled here instead of by their default
//! action.

use super::output::remark;
use super::stop::stop_flag;
use rigel_database::{Address, Secret};
use rigel_model::{Error, failed, spoken};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, BufRead, Stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Poll interval in nanoseconds: the maximum delay for a signal that came just before the wait;
/// other signals interrupt it.
const GLANCE: i64 = 100_000_000;

/// The terminal while echo is off.
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

/// Prompts for the password of `address`. Ctrl-C, SIGTERM and SIGHUP end the prompt, Ctrl-Z
/// suspends it.
///
/// # Errors
/// There is no terminal, or a signal ended the prompt.
pub(super) fn password(address: &Address) -> Result<Secret, Error> {
    let failed = |error: io::Error| {
        failed!(
            "the password cannot be asked for: {error}",
            "give a file with --password-file"
        )
    };
    let stop = stop_flag()?;
    let suspend = Suspend::heeded().map_err(failed)?;
    let input = io::stdin();
    loop {
        remark(&spoken(&format!("password for '{address}': ")));
        let silent = Silent::new(&input).map_err(failed)?;
        if !waited(&input, &[&stop, &suspend.wanted]).map_err(failed)? {
            let mut line = String::new();
            input.lock().read_line(&mut line).map_err(failed)?;
            return Ok(Secret::new(line.trim_end_matches(['\r', '\n']).to_string()));
        }
        drop(silent);
        if stop.load(Ordering::Relaxed) {
            return Err(failed!("stopped at the password prompt", ""));
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
        match poll(
            &mut line,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: GLANCE,
            }),
        ) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Handles Ctrl-Z during the prompt; when this value is dropped, Ctrl-Z stops the program as usual.
struct Suspend {
    wanted: Arc<AtomicBool>,
    by_default: Arc<AtomicBool>,
}

impl Suspend {
    fn heeded() -> io::Result<Self> {
        let heeded = Self {
            wanted: Arc::default(),
            by_default: Arc::default(),
        };
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
