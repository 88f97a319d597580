//! Several processes of the program as one run, started as a launcher starts them, by a server of
//! PMI-1 in the test's own process.

use super::pmi::{Dialect, Server};
use super::{Place, rigel, signal};
use rigel_model::record::journal::Run;
use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};

/// A process that is one rank of a run. It is killed when it is dropped.
pub(crate) struct Rank(Option<Child>);

impl Rank {
    pub(crate) fn start(command: Command, end: &UnixStream, rank: usize, size: usize) -> Self {
        Self::start_to(Stdio::piped(), command, end, (rank, size))
    }

    /// The same with stderr elsewhere, where it can be read while the rank runs.
    pub(crate) fn start_to(
        stderr: impl Into<Stdio>,
        mut command: Command,
        end: &UnixStream,
        (rank, size): (usize, usize),
    ) -> Self {
        // Inherited as a launcher leaves it: open in the new program.
        fcntl_setfd(end, FdFlags::empty()).unwrap();
        let child = command
            .env("PMI_FD", end.as_raw_fd().to_string())
            .env("PMI_RANK", rank.to_string())
            .env("PMI_SIZE", size.to_string())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        Self(Some(child))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    pub(crate) fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    pub(crate) fn signal_and_wait(mut self, name: &str) {
        self.signal(name);
        let _ = self.0.take().unwrap().wait();
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts `size` ranks of this command line, each with what `of_rank` adds to its command.
pub(crate) fn start(
    place: &Place,
    line: &str,
    size: usize,
    of_rank: impl Fn(usize, &mut Command),
) -> (Server, Vec<Rank>) {
    let (server, ends) = Server::start(Dialect::Hydra5, size, usize::MAX);
    let ranks = ends.into_iter().enumerate().map(|(rank, end)| {
        let mut command = rigel(place, line);
        command.env("RIGEL_TEST_BOOT_ID", format!("boot-{rank}"));
        of_rank(rank, &mut command);
        command.stdin(Stdio::null());
        Rank::start(command, &end, rank, size)
    });
    let ranks = ranks.collect();
    (server, ranks)
}

/// Runs `size` ranks of this command line to their end.
pub(crate) fn run(place: &Place, line: &str, size: usize) -> Vec<Output> {
    let (_server, ranks) = start(place, line, size, |_, _| ());
    ranks.into_iter().map(Rank::end).collect()
}

pub(crate) fn statuses(outputs: &[Output]) -> Vec<Option<i32>> {
    outputs.iter().map(|output| output.status.code()).collect()
}

/// The journal of the run in this directory of `place`.
pub(crate) fn journal(place: &Place, name: &str) -> Run {
    Run::read(&place.0.join(name)).unwrap()
}
