//! Blocking sockets to a `PostgreSQL` server: local, TCP, or TLS over TCP.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum time of one wait.
const LONGEST: Duration = Duration::from_secs(3600);

/// What a client needs of a socket.
pub(crate) trait PostgresLink: Read {
    /// Writes all of `bytes`, with one system call if the system accepts them at once.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Reads once, without looking first whether there is something to read.
    fn read_arrived(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read(into)
    }

    /// Limits the time of each read; `None` waits as long as the connection exists.
    fn wait_at_most(&mut self, time: Option<Duration>) -> io::Result<()>;

    /// Waits until a read would not wait; false if that takes longer than `time`.
    fn hears_within(&mut self, time: Duration) -> bool;
}

/// A connected socket.
pub(crate) enum PostgresSocket {
    Local(PostgresLocal),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A local socket, which is waited for by `poll`, with this limit on the time of each read.
///
/// A thread that waits in `read` on a local socket is woken twice for each operation: by the answer,
/// and before that when the server takes the request, because then the socket can be written to
/// again. `poll` waits for the answer only: half the context switches for one system call more.
pub(crate) struct PostgresLocal {
    socket: UnixStream,
    at_most: Option<Duration>,
}

impl PostgresLocal {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            at_most: None,
        }
    }
}

impl Read for PostgresLocal {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !is_readable(self.socket.as_fd(), self.at_most)? {
            if self.at_most.is_some() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        self.socket.read(into)
    }
}

impl PostgresSocket {
    /// The socket, to wait for.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Local(local) => local.socket.as_fd(),
            Self::Tcp(socket) => socket.as_fd(),
            Self::Tls(tls) => tls.sock.as_fd(),
        }
    }
}

impl Read for PostgresSocket {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(local) => local.read(into),
            Self::Tcp(socket) => socket.read(into),
            Self::Tls(socket) => socket.read(into),
        }
    }
}

impl PostgresLink for PostgresSocket {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Local(local) => local.socket.write_all(bytes),
            Self::Tcp(socket) => socket.write_all(bytes),
            Self::Tls(socket) => {
                socket.write_all(bytes)?;
                socket.flush()
            }
        }
    }

    fn read_arrived(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(local) => local.socket.read(into),
            Self::Tcp(_) | Self::Tls(_) => self.read(into),
        }
    }

    fn wait_at_most(&mut self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Local(local) => {
                local.at_most = time;
                Ok(())
            }
            Self::Tcp(socket) => socket.set_read_timeout(time),
            Self::Tls(socket) => socket.sock.set_read_timeout(time),
        }
    }

    fn hears_within(&mut self, time: Duration) -> bool {
        let socket = match self {
            Self::Local(local) => local.socket.as_fd(),
            Self::Tcp(socket) => (*socket).as_fd(),
            // What was decrypted already does not show at the socket. An error shows in the read.
            Self::Tls(tls) => {
                let decrypted = tls.conn.process_new_packets();
                if decrypted.map_or(true, |state| state.plaintext_bytes_to_read() > 0) {
                    return true;
                }
                tls.sock.as_fd()
            }
        };
        // Interrupted by a signal: the caller looks whether it is to stop.
        is_readable(socket, Some(time)).unwrap_or(false)
    }
}

/// True if the socket has bytes, or an error or end; false if that takes longer than `time`, which
/// is an hour if there is no limit.
#[inline]
fn is_readable(socket: BorrowedFd<'_>, time: Option<Duration>) -> io::Result<bool> {
    let mut asked = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    is_any_readable(&mut asked, time.unwrap_or(LONGEST))
}

/// True if one of these sockets has what was asked for; false if that takes longer than `time`, or an
/// hour.
#[inline]
pub(crate) fn is_any_readable(asked: &mut [PollFd], time: Duration) -> io::Result<bool> {
    let time = time.min(LONGEST);
    let timeout = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    Ok(poll(asked, Some(&timeout))? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::sync::mpsc;
    use std::thread;

    /// How often the thread with this status file gave up the CPU to wait.
    fn waits(status: &str) -> u64 {
        let status = fs::read_to_string(status).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    }

    #[test]
    fn a_session_that_waits_is_woken_by_the_answer_alone() {
        const OPERATIONS: u64 = 50;
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (say, hear) = mpsc::channel();
        let session = thread::spawn(move || {
            let mut socket = PostgresSocket::Local(PostgresLocal::new(ours));
            say.send(rustix::thread::gettid()).unwrap();
            let before = waits("/proc/thread-self/status");
            for _ in 0..OPERATIONS {
                socket.send(b"SELECT").unwrap();
                assert_eq!(socket.read(&mut [0; 9]).unwrap(), 2);
            }
            waits("/proc/thread-self/status") - before
        });
        let thread = hear.recv().unwrap().as_raw_nonzero();
        let is_asleep = || {
            let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
            stat.rsplit_once(')').unwrap().1.starts_with(" S")
        };
        for _ in 0..OPERATIONS {
            // The request is taken while the session waits, and answered when it waits again.
            while !is_asleep() {
                thread::yield_now();
            }
            theirs.read_exact(&mut [0; 6]).unwrap();
            while !is_asleep() {
                thread::yield_now();
            }
            theirs.write_all(b"64").unwrap();
        }
        let waits = session.join().unwrap();
        // One for each answer, and not one more for each request that was taken.
        assert!(waits < OPERATIONS * 3 / 2, "{waits}");
    }

    #[test]
    fn a_read_with_a_limit_ends_without_an_answer() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut socket = PostgresSocket::Local(PostgresLocal::new(ours));
        socket.wait_at_most(Some(Duration::from_millis(1))).unwrap();
        let error = socket.read(&mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(!socket.hears_within(Duration::ZERO));
        theirs.write_all(b"64").unwrap();
        assert!(socket.hears_within(Duration::ZERO));
        assert_eq!(socket.read(&mut [0; 9]).unwrap(), 2);
        drop(theirs);
        // The end is something to hear.
        assert!(socket.hears_within(Duration::ZERO));
        assert_eq!(socket.read(&mut [0; 9]).unwrap(), 0);
    }
}
