//! Blocking sockets to a `PostgreSQL` server: local, TCP, or TLS over TCP.

use rigel_device::bounded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum time of one read or write. Whoever wants to wait longer tries again.
pub(super) const LOOK: Duration = Duration::from_nanos(bounded::LOOK.0);

/// Maximum time of one wait.
const LONGEST: Duration = Duration::from_secs(3600);

/// What a client needs of a socket.
pub(crate) trait PostgresLink: Read {
    /// Writes all of `bytes`, with one system call if the system accepts them at once. After
    /// `WouldBlock`, they are what is left to write.
    fn send(&mut self, bytes: &mut &[u8]) -> io::Result<()>;

    /// Reads once, without looking first whether there is something to read.
    fn read_arrived(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read(into)
    }

    /// Waits until a read would not wait; false if that takes longer than `time`.
    fn hears_within(&mut self, time: Duration) -> bool;
}

/// A connected socket.
pub(crate) enum PostgresSocket {
    Local(PostgresLocal),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A local socket, which is waited for by `poll`.
///
/// A thread that waits in `read` on a local socket is woken twice for each operation: by the answer,
/// and before that when the server takes the request, because then the socket can be written to
/// again. `poll` waits for the answer only: half the context switches for one system call more.
pub(crate) struct PostgresLocal(UnixStream);

impl PostgresLocal {
    /// # Errors
    /// The system does not limit the time of a write.
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_write_timeout(Some(LOOK))?;
        Ok(Self(socket))
    }
}

impl Read for PostgresLocal {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !is_readable(self.0.as_fd(), LOOK)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0.read(into)
    }
}

impl PostgresSocket {
    /// The socket, to wait for.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Local(local) => local.0.as_fd(),
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
    fn send(&mut self, bytes: &mut &[u8]) -> io::Result<()> {
        match self {
            Self::Local(local) => write_all(&mut local.0, bytes),
            Self::Tcp(socket) => write_all(socket, bytes),
            Self::Tls(socket) => {
                write_all(socket, bytes)?;
                socket.flush()
            }
        }
    }

    fn read_arrived(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(local) => local.0.read(into),
            Self::Tcp(_) | Self::Tls(_) => self.read(into),
        }
    }

    fn hears_within(&mut self, time: Duration) -> bool {
        let socket = match self {
            Self::Local(local) => local.0.as_fd(),
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
        is_readable(socket, time).unwrap_or(false)
    }
}

/// Makes each read and write on this socket end after a look.
///
/// # Errors
/// The system does not limit them.
pub(super) fn limit(socket: &TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(LOOK))?;
    socket.set_write_timeout(Some(LOOK))
}

/// True if a socket gave up for now: nothing came, or nothing was taken, for a look. A signal ends a
/// read that has a limit, too.
pub(super) fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}

/// Writes all of `bytes`, which are what is left to write if it fails.
fn write_all(socket: &mut impl Write, bytes: &mut &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// True if the socket has bytes, or an error or end; false if that takes longer than `time`.
#[inline]
fn is_readable(socket: BorrowedFd<'_>, time: Duration) -> io::Result<bool> {
    let mut asked = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    is_any_readable(&mut asked, time)
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

    /// Reads, however long the answer takes.
    fn patient_read(socket: &mut PostgresSocket) -> usize {
        loop {
            match socket.read(&mut [0; 9]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                read => return read.unwrap(),
            }
        }
    }

    #[test]
    fn a_session_that_waits_is_woken_by_the_answer_alone() {
        const OPERATIONS: u64 = 50;
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (say, hear) = mpsc::channel();
        let session = thread::spawn(move || {
            let mut socket = PostgresSocket::Local(PostgresLocal::new(ours).unwrap());
            say.send(rustix::thread::gettid()).unwrap();
            let before = waits("/proc/thread-self/status");
            for _ in 0..OPERATIONS {
                socket.send(&mut b"SELECT".as_slice()).unwrap();
                assert_eq!(patient_read(&mut socket), 2);
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
    fn a_read_ends_without_an_answer() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut socket = PostgresSocket::Local(PostgresLocal::new(ours).unwrap());
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
