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
pub(in crate::engine::sql) trait PostgresLink: Read {
    /// Writes all of `bytes`, with one system call if the system accepts them at once.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Limits the time of each read; `None` waits as long as the connection exists.
    fn wait_at_most(&mut self, time: Option<Duration>) -> io::Result<()>;

    /// Waits until a read would not wait; false if that takes longer than `time`.
    fn hears_within(&mut self, time: Duration) -> bool;
}

/// A connected socket.
pub(in crate::engine::sql) enum PostgresSocket {
    Local(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for PostgresSocket {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(socket) => socket.read(into),
            Self::Tcp(socket) => socket.read(into),
            Self::Tls(socket) => socket.read(into),
        }
    }
}

impl PostgresLink for PostgresSocket {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Local(socket) => socket.write_all(bytes),
            Self::Tcp(socket) => socket.write_all(bytes),
            Self::Tls(socket) => {
                socket.write_all(bytes)?;
                socket.flush()
            }
        }
    }

    fn wait_at_most(&mut self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Local(socket) => socket.set_read_timeout(time),
            Self::Tcp(socket) => socket.set_read_timeout(time),
            Self::Tls(socket) => socket.sock.set_read_timeout(time),
        }
    }

    fn hears_within(&mut self, time: Duration) -> bool {
        match self {
            Self::Local(socket) => is_readable(socket.as_fd(), time),
            Self::Tcp(socket) => is_readable(socket.as_fd(), time),
            // What was decrypted already does not show at the socket. An error shows in the read.
            Self::Tls(tls) => {
                let decrypted = tls.conn.process_new_packets();
                decrypted.map_or(true, |state| state.plaintext_bytes_to_read() > 0)
                    || is_readable(tls.sock.as_fd(), time)
            }
        }
    }
}

/// True if the socket has bytes, or an error or end, within `time`.
fn is_readable(socket: BorrowedFd<'_>, time: Duration) -> bool {
    let time = time.min(LONGEST);
    let timeout = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    // Interrupted by a signal: the caller looks whether it is to stop.
    poll(
        &mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)],
        Some(&timeout),
    )
    .is_ok_and(|ready| ready > 0)
}
