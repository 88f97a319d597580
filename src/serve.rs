//! A small HTTP server for what others may read while a run goes on: `/metrics`, and a line at `/` that names it.
//!
//! Goes in: an address, and a function from the `Accept` of a request to a content type and a body. Comes out:
//! HTTP/1.1, one answer a connection. It writes no file and keeps nothing of a request. Whoever connects may be slow
//! or hostile: a request may have 8 KiB and `PATIENCE`, so may taking the answer, and what four such clients hold
//! is one thread and one answer each. docs/decisions/0015-metrics-endpoint.md says why this is not a library.

use crate::clock::Clock;
use crate::model::{Error, Nanos};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads, and so clients at once. Others wait in the kernel's queue.
const THREADS: usize = 4;
/// Bytes of a request, without a body.
const REQUEST_MOST: usize = 8 * 1024;
/// A client may take so long to ask, and again to take the answer.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// How often a thread that waits for a client looks whether the server is to stop.
const GLANCE: Nanos = Nanos::from_millis(100);
/// What is answered at `/`.
const WELCOME: &str = "Rigel. What it measures stands at /metrics, in the text formats of Prometheus and OpenMetrics \
and in Prometheus's protobuf.\n";

/// Where to listen: a socket's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl Address {
    /// A sentence about who can read what is served here; none where only this host can.
    #[must_use]
    pub fn remark(self) -> Option<String> {
        (!self.0.ip().is_loopback()).then(|| {
            format!(
                "metrics are served on {self}: whoever can reach this address can read them, without a password; \
                 127.0.0.1:{} is for this host alone",
                self.0.port()
            )
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Address {
    type Err = Error;

    /// `127.0.0.1:9464` or `[::1]:9464`; `:9464`, `9464` and `localhost:9464` are of this host alone, 127.0.0.1.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::asked(
                format!("'{text}' is not an address to listen on"),
                "write it as 127.0.0.1:9464, [::1]:9464 or 9464; names of hosts are not looked up",
            )
        };
        let text = text.trim();
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
        // A sign is a number's, not a port's.
        let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port = port.and_then(|port| port.parse().ok()).ok_or_else(wrong)?;
        Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)))
    }
}

/// A server that answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Listens on `address`, and answers `/metrics` with what `answer` makes of the `Accept` of a request: a content
    /// type and a body.
    ///
    /// # Errors
    /// If nobody can listen there: the port is taken or not permitted, or this host has no such address.
    pub fn start<Answer>(Address(address): Address, answer: Answer) -> Result<Self, Error>
    where
        Answer: Fn(&str) -> (&'static str, Vec<u8>) + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
        // With port 0 the kernel chooses one.
        let address = listener.local_addr().map_err(|error| cannot_listen(address, &error))?;
        let (listener, stop, answer) = (Arc::new(listener), Arc::new(AtomicBool::new(false)), Arc::new(answer));
        let mut server = Self { address, listener, stop, threads: Vec::new() };
        for _ in 0..THREADS {
            let (listener, stop, answer) = (server.listener.clone(), server.stop.clone(), answer.clone());
            let thread = std::thread::Builder::new().name("metrics".into()).stack_size(256 * 1024);
            let thread = thread.spawn(move || serve(&listener, &stop, &*answer));
            let failed = |error| Error::failed(format!("no thread to serve metrics: {error}"), "see ulimit -u");
            server.threads.push(thread.map_err(failed)?);
        }
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Shutting down a listening socket wakes all who wait in accept(2); std has it for streams, so call it one.
        if let Ok(listener) = self.listener.try_clone() {
            let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
        }
        self.threads.drain(..).for_each(|thread| {
            let _ = thread.join();
        });
    }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Error {
    let (why, cure) = match error.kind() {
        ErrorKind::AddrInUse => (
            "somebody does already".to_string(),
            format!("take another port, or end what listens there: ss -ltnp 'sport = :{}' names it", address.port()),
        ),
        ErrorKind::PermissionDenied => {
            ("not permitted".to_string(), "ports below 1024 are for the administrator: take one above".to_string())
        }
        ErrorKind::AddrNotAvailable => {
            ("this host has no such address".to_string(), "take one that `ip address` shows, or 127.0.0.1".to_string())
        }
        _ => (error.to_string(), "take another address".to_string()),
    };
    Error::asked(format!("cannot listen on {address}: {why}"), cure)
}

/// Takes client after client, until it is told to stop.
fn serve(listener: &TcpListener, stop: &AtomicBool, answer: &dyn Fn(&str) -> (&'static str, Vec<u8>)) {
    let clock = Clock::real();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // A client that went away is no matter of ours.
            Ok((stream, _)) => drop(attend(Connection { stream, stop, clock: &clock, until: Nanos(0) }, answer)),
            // Such as too many open files: others may close some.
            Err(_) if !stop.load(Ordering::Relaxed) => clock.wait_until(clock.now().plus(GLANCE)),
            Err(_) => {}
        }
    }
}

fn attend(mut connection: Connection<'_>, answer: &dyn Fn(&str) -> (&'static str, Vec<u8>)) -> io::Result<()> {
    connection.be_patient();
    let head = connection.read_head()?;
    let reply = match head {
        Some(head) => reply(&head, answer),
        None => Reply::plain("431 Request Header Fields Too Large", "a request may have 8 KiB\n"),
    };
    connection.be_patient();
    connection.write_all(&reply.bytes())?;
    connection.finish()
}

/// A client, and how long it has.
struct Connection<'a> {
    stream: TcpStream,
    stop: &'a AtomicBool,
    clock: &'a Clock,
    until: Nanos,
}

impl Connection<'_> {
    fn be_patient(&mut self) {
        self.until = self.clock.now().plus(PATIENCE);
    }

    /// Calls `act`, which waits for [`GLANCE`] at most, until it has something, time is over or the server stops.
    fn keep_trying(&mut self, mut act: impl FnMut(&mut TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        let glance = Some(Duration::from_nanos(GLANCE.0));
        self.stream.set_read_timeout(glance)?;
        self.stream.set_write_timeout(glance)?;
        loop {
            // One that sends a byte at a time gets no more time than others.
            if self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.until {
                return Err(ErrorKind::TimedOut.into());
            }
            match act(&mut self.stream) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                other => return other,
            }
        }
    }

    /// Everything up to the empty line; none if it is too long.
    fn read_head(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::with_capacity(1024);
        let mut piece = [0; 1024];
        loop {
            let read = self.keep_trying(|stream| stream.read(&mut piece))?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            bytes.extend(&piece[..read]);
            let end = |mark: &[u8]| bytes.windows(mark.len()).position(|window| window == mark);
            if let Some(end) = end(b"\r\n\r\n").or_else(|| end(b"\n\n")).filter(|end| *end <= REQUEST_MOST) {
                return Ok(Some(String::from_utf8_lossy(&bytes[..end]).into_owned()));
            }
            if bytes.len() > REQUEST_MOST {
                return Ok(None);
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.keep_trying(|stream| stream.write(bytes))?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Closes so that the answer arrives: if something unread were left, the kernel would take the answer back.
    fn finish(mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let mut rest = [0; 1024];
        while self.keep_trying(|stream| stream.read(&mut rest))? > 0 {}
        Ok(())
    }
}

/// An answer.
struct Reply {
    status: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
    /// The body's length is told, and the body is not.
    head_only: bool,
}

impl Reply {
    fn plain(status: &'static str, text: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: text.into(), head_only: false }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, content_type, body, head_only } = self;
        let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}Vary: Accept\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), if *head_only { &[] } else { body }].concat()
    }
}

/// The answer to a request, of which this is all before the empty line.
fn reply(head: &str, answer: &dyn Fn(&str) -> (&'static str, Vec<u8>)) -> Reply {
    let mut lines = head.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return Reply::plain("400 Bad Request", "this is no request of HTTP\n");
    };
    if !version.starts_with("HTTP/1.") {
        return Reply::plain("505 HTTP Version Not Supported", "HTTP/1.1 is spoken here\n");
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let accept: Vec<&str> = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("accept"))
        .map(|(_, value)| value.trim())
        .collect();
    let is_known = matches!(path, "/" | "/metrics");
    let mut reply = match method {
        _ if !is_known => Reply::plain("404 Not Found", "there is /metrics\n"),
        "GET" | "HEAD" if path == "/" => Reply::plain("200 OK", WELCOME),
        "GET" | "HEAD" => {
            let (content_type, body) = answer(&accept.join(","));
            Reply { status: "200 OK", content_type, body, head_only: false }
        }
        _ => Reply::plain("405 Method Not Allowed", "GET and HEAD are answered\n"),
    };
    reply.head_only = method == "HEAD";
    reply
}
