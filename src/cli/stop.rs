//! The request to stop, by a signal.

use rigel_device::{bounded, clock, rights};
use rigel_model::{Error, Nanos, failed};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGXFSZ};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What signals do. The kernel knows one handler of a signal for a process, so this belongs to the
/// process.
static SIGNALS: Mutex<SignalState> = Mutex::new(SignalState {
    stop: None,
    is_attended: false,
});

struct SignalState {
    /// The flag that the signals set, once they are heeded.
    stop: Option<Arc<AtomicBool>>,
    /// True if another process decides what a second signal does.
    is_attended: bool,
}

fn signal_state() -> MutexGuard<'static, SignalState> {
    SIGNALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The flag that Ctrl-C, SIGTERM and SIGHUP set: one for the whole process, so that no signal
/// between two steps of a verb is lost. A second one ends the process at once, or the process that
/// attends to it does. Where SIGHUP is ignored, as below `nohup`, it stays ignored.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>, Error> {
    let mut state = signal_state();
    if let Some(stop) = &state.stop {
        return Ok(Arc::clone(stop));
    }
    let stop = listen(state.is_attended)?;
    bounded::heed(Arc::clone(&stop));
    state.stop = Some(Arc::clone(&stop));
    Ok(stop)
}

/// Makes a write beyond the limit of file sizes an error, as one to a full disk is, and not the end of
/// this process. Programs that it starts have the signal as usual.
pub(super) fn survive_file_size_limit() {
    // Without this handler the limit still ends the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Leaves it to another process to end this one at a second signal.
pub(super) fn leave_second_signal() {
    signal_state().is_attended = true;
}

/// A flag that the signals set from now on. `is_attended` if another process decides what a second
/// one does.
fn listen(is_attended: bool) -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let failed = |error| failed!("cannot listen for signals: {error}", "");
    // The program sets the first flag itself when another rank stopped. The Ctrl-C that stopped that
    // rank may still be on its way to this one, where it is the first.
    let signalled = Arc::new(AtomicBool::new(false));
    if !is_attended {
        signal_hook::flag::register_conditional_shutdown(SIGINT, 1, Arc::clone(&signalled))
            .map_err(failed)?;
        end_at_second_signal().map_err(failed)?;
    }
    for signal in heeded() {
        for flag in [&stop, &signalled] {
            signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed)?;
        }
    }
    Ok(stop)
}

/// Signals within this time of the first one are the same: `timeout` sends two.
pub(super) const SAME: Nanos = Nanos::from_millis(300);

/// Ends the process at the second SIGTERM or SIGHUP, also while a server does not answer. Ctrl-C ends
/// it without this thread.
fn end_at_second_signal() -> std::io::Result<()> {
    let mut signals = signals()?;
    signals.set_nonblocking(false)?;
    let wait = move || {
        // It needs no right, and outlives those of a watch.
        let _ = rights::give_up_all();
        let (mut bytes, mut first) = ([0; 64], None);
        while let Ok(1..) = signals.read(&mut bytes) {
            let now = clock::monotonic();
            let since = now.since(*first.get_or_insert(now));
            if since >= SAME {
                signal_hook::low_level::exit(1);
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(wait).map(drop)
}

/// The signals that ask to stop.
fn heeded() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hang_up = (!ignores(&status, SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hang_up)
}

/// A socket that has a byte for each such signal from now on.
pub(super) fn signals() -> std::io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    receiver.set_nonblocking(true)?;
    for signal in heeded() {
        signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
    }
    Ok(receiver)
}

/// A socket that has a byte for each request to suspend the program from now on, in place of its
/// default action. `None` if that is ignored.
pub(super) fn suspensions() -> Option<UnixStream> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    if ignores(&status, SIGTSTP) {
        return None;
    }
    let (receiver, sender) = UnixStream::pair().ok()?;
    receiver.set_nonblocking(true).ok()?;
    signal_hook::low_level::pipe::register(SIGTSTP, sender).ok()?;
    Some(receiver)
}

/// True if a process whose `/proc/<pid>/status` this is ignores `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn the_first_ctrl_c_ends_nothing_even_if_the_program_stops_already() {
        let stop = listen(false).unwrap();
        stop.store(true, Ordering::Relaxed);
        // If this ended the process, the test would fail with it.
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn an_ignored_signal_is_found_in_the_status_of_a_process() {
        let status = |mask: &str| {
            format!("SigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n")
        };
        assert!(ignores(&status("0000000000001001"), SIGHUP));
        assert!(!ignores(&status("0000000000001000"), SIGHUP));
        assert!(!ignores("", SIGHUP));
    }
}
