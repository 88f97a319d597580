//! Blocking sockets to a `PostgreSQL` server: local, TCP, or TLS over TCP.

use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What a client needs of a socket.
pub(in crate::engine::sql) trait PostgresLink: Read {
    /// Writes all of `bytes`, with one system call if the system accepts them at once.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Limits the time of each read; `None` waits as long as the connection exists.
    fn wait_at_most(&mut self, time: Option<Duration>) -> io::Result<()>;
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
}
