//! Processes of a server: started as another user, watched, ended.
//!
//! Input: a program and its arguments. Output: a child in its own process group. So Ctrl-C at the
//! terminal reaches only Rigel, which then shuts the server down cleanly.

use super::find;
use super::server_dir::ServerDir;
use rigel_device::bounded::{self, BoundedWait};
use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos, failed};
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Poll interval of [`wait_until`].
const LOOK: Nanos = Nanos::from_millis(20);
/// Timeout for processes that were killed: one that waits for storage ends when that answers.
pub(super) const KILLING_MOST: Nanos = Nanos::from_secs(20);

/// Starts a program in the server's folder, as the server's user, with its output in the server's
/// log.
///
/// `with_us` is the signal that the kernel sends to the program when Rigel is killed; it is not
/// sent if `setpriv` is missing. For the kernel, Rigel is the thread that calls this function.
pub(super) fn spawn(
    place: &ServerDir,
    program: &Path,
    arguments: &[String],
    with_us: &str,
) -> io::Result<Child> {
    let mut command = if let Some(setpriv) = find::on_path("setpriv") {
        let mut command = Command::new(setpriv);
        command
            .args(["--pdeathsig", with_us, "--no-new-privs", "--"])
            .arg(program);
        command
    } else {
        Command::new(program)
    };
    let path = std::env::var("PATH").unwrap_or_default();
    // Variables that the user has set for other servers (PGDATA, MYSQL_HOME) must not affect this
    // one.
    command
        .env_clear()
        .env("PATH", format!("{path}:/usr/local/bin:/usr/bin:/bin"))
        .env("LC_ALL", "C");
    if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    if let Some(account) = place.account() {
        command.gid(account.gid).uid(account.uid);
    }
    let log: &File = place.log();
    command
        .args(arguments)
        .current_dir(place.folder())
        .process_group(0);
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        .spawn()
}

/// Polls until `done` returns true, for at most `most`. Returns false on timeout or if `stop` was
/// set.
pub(super) fn wait_until(most: Nanos, stop: &AtomicBool, mut done: impl FnMut() -> bool) -> bool {
    let clock = Clock::real();
    while !done() {
        if clock.now() > most || stop.load(Ordering::Relaxed) {
            return false;
        }
        clock.wait_until(clock.now().plus(LOOK));
    }
    true
}

/// Polls until `done` returns true. Returns false if the wait is over before.
pub(super) fn wait_within(mut wait: BoundedWait, mut done: impl FnMut(Nanos) -> bool) -> bool {
    while !done(wait.waited()) {
        if wait.is_over() {
            return false;
        }
        let clock = Clock::real();
        clock.wait_until(clock.now().plus(bounded::LOOK));
    }
    true
}

/// Runs a program to its end, with a timeout.
pub(super) fn run(
    place: &ServerDir,
    program: &Path,
    arguments: &[String],
    most: Nanos,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let name = program.display();
    let mut child =
        spawn(place, program, arguments, "KILL").map_err(|error| not_started(program, &error))?;
    let mut status = None;
    wait_until(most, stop, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    let Some(status) = status else {
        let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        return Err(if stop.load(Ordering::Relaxed) {
            stopped()
        } else {
            failed(place, &format!("{name} took longer than {most}"))
        });
    };
    if status.success() {
        Ok(())
    } else {
        Err(failed(place, &format!("{name} failed: {status}")))
    }
}

/// The error for a failed action on the server, with what its log says of it.
pub(super) fn failed(place: &ServerDir, what: &str) -> Error {
    let reason = reason(&place.log_end());
    let reason = reason.map_or_else(
        || " (its log is empty)".into(),
        |line| format!("; its log says: {line}"),
    );
    failed!(
        "the private server in {folder}: {what}{reason}",
        "",
        folder = place.folder().display()
    )
}

/// The error for a program that exists but does not start.
pub(super) fn not_started(program: &Path, error: &io::Error) -> Error {
    failed!(
        "{program} cannot be started: {error}",
        "check that the server's user can reach it, or give other programs with --server-bin DIR",
        program = program.display()
    )
}

/// The error if the stop flag was set before the server was ready.
pub(super) fn stopped() -> Error {
    failed!(
        "stopped while the private server was being made; it was removed",
        ""
    )
}

/// The line of a log that says why its server ended: the last that is fatal, else the first error, as MariaDB ends with
/// general ones, else the last.
pub(super) fn reason(text: &str) -> Option<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let has = |words: &[&str], line: &str| words.iter().any(|word| line.contains(word));
    let fatal = lines().rfind(|line| has(&["FATAL", "PANIC"], line));
    let error = || lines().find(|line| has(&["ERROR", "error:"], line));
    fatal
        .or_else(error)
        .or_else(|| lines().next_back())
        .map(String::from)
}

/// Sends a signal. Ignores processes that are gone.
pub(super) fn signal(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Programs of a server, by their process names in the kernel.
const SERVERS: [&str; 6] = [
    "postgres",
    "initdb",
    "mariadbd",
    "mysqld",
    "mariadb-install",
    "mysql_install_d",
];

/// PIDs of the server processes whose current directory is inside `folder`: the server and its
/// children. So a reused PID is never hit.
pub(super) fn processes_in(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|number| {
            let there = std::fs::read_link(format!("/proc/{number}/cwd"))
                .is_ok_and(|path| path.starts_with(folder));
            there
                && std::fs::read_to_string(format!("/proc/{number}/comm"))
                    .is_ok_and(|name| SERVERS.contains(&name.trim()))
        })
        .collect()
}

/// Kills all processes of the server in `folder` and waits until they are gone. Returns false if
/// some remain.
pub(super) fn kill_all_in(folder: &Path) -> bool {
    wait_within(BoundedWait::new(KILLING_MOST), |_| {
        let left = processes_in(folder);
        left.iter()
            .for_each(|process| signal(*process, Signal::KILL));
        left.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_a_log_says_why_its_server_ended() {
        let postgres =
            "LOG:  starting\nFATAL:  could not map memory\n\nLOG:  database system is shut down\n";
        assert_eq!(
            reason(postgres).as_deref(),
            Some("FATAL:  could not map memory")
        );
        let mariadb = "[Note] starting\n[ERROR] unknown variable 'a=1'\n[ERROR] Aborting\n";
        assert_eq!(
            reason(mariadb).as_deref(),
            Some("[ERROR] unknown variable 'a=1'")
        );
        assert_eq!(reason("one\n\ntwo\n \n").as_deref(), Some("two"));
        assert_eq!(reason("\n \n"), None);
    }

    #[test]
    fn a_process_that_is_no_server_is_none_of_ours() {
        let here = std::env::current_dir().unwrap();
        assert!(!processes_in(&here).contains(&std::process::id()));
    }

    #[test]
    fn waiting_ends_when_it_is_so_when_it_is_stopped_and_when_it_has_lasted() {
        let going = AtomicBool::new(false);
        let mut looks = 0;
        assert!(wait_until(Nanos::from_secs(60), &going, || {
            looks += 1;
            looks == 3
        }));
        assert!(!wait_until(
            Nanos::from_secs(60),
            &AtomicBool::new(true),
            || false
        ));
        assert!(!wait_until(Nanos::from_millis(1), &going, || false));
    }
}
