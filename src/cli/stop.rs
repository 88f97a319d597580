//! The request to stop, by a signal.

use crate::model::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The flag that Ctrl-C, SIGTERM and SIGHUP set: one for the whole process, so that no signal
/// between two steps of a verb is lost. A second Ctrl-C ends the process at once. Where SIGHUP is
/// ignored, as below `nohup`, it stays ignored.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>, Error> {
    static STOP: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut known = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = known.as_ref() {
        return Ok(Arc::clone(stop));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let failed = |error| Error::failed(format!("cannot listen for signals: {error}"), "");
    signal_hook::flag::register_conditional_shutdown(SIGINT, 1, Arc::clone(&stop))
        .map_err(failed)?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hang_up = if ignores(&status, SIGHUP) {
        None
    } else {
        Some(SIGHUP)
    };
    for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
    }
    *known = Some(Arc::clone(&stop));
    Ok(stop)
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
