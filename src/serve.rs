//! A small HTTP server for metrics during a run: `/metrics`, and a line at `/` that mentions it.
//!
//! Input: an address, and a function from the `Accept` header of a request to a content type and a
//! body. Output: HTTP/1.1, one response per connection. It writes no file and stores nothing of a
//! request. Clients may be slow or hostile: one thread serves all clients and blocks on none of
//! them. A request is limited to 8 KiB and `PATIENCE`, and sending the response to `PATIENCE` too.
//! With more than `CLIENTS`, the oldest is dropped: four silent ones once held all.
//!
//! It is not a library: `tiny_http` has no timeouts, `hyper` and `axum` bring an async runtime, and a
//! soak runs for weeks on networks that others scan.

use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos, failed, usage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Maximum number of concurrent clients. A further client replaces the oldest.
const CLIENTS: usize = 64;
/// Maximum size of a request in bytes, without a body.
const REQUEST_MOST: usize = 8 * 1024;
/// Timeout for a client to send its request, and again to receive the response.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Pause before accepting the next client if the system is out of resources.
const BREAK: Nanos = Nanos::from_millis(100);
/// Response at `/`.
const WELCOME: &str = "Rigel. Metrics are at /metrics, in the text formats of Prometheus and \
                       OpenMetrics and in Prometheus's protobuf.\n";

/// A socket address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl ListenAddress {
    /// A sentence about who can read the metrics at this address; `None` if only this host can.
    pub fn remark(self) -> Option<String> {
        (!self.0.ip().is_loopback()).then(|| {
            format!(
                "metrics are served on {self}: anyone who can reach this address can read them, \
                 without a password; 127.0.0.1:{} restricts them to this host",
                self.0.port()
            )
        })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ListenAddress {
    type Err = Error;

    /// Parses `127.0.0.1:9464` or `[::1]:9464`; `:9464`, `9464` and `localhost:9464` mean only this
    /// host, 127.0.0.1.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not an address to listen on",
                "write it as 127.0.0.1:9464, [::1]:9464 or 9464; host names are not supported"
            )
        };
        let text = text.trim();
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let port = text
            .strip_prefix("localhost:")
            .or_else(|| text.strip_prefix(':'))
            .unwrap_or(text);
        // Reject a sign, which the number parser would accept.
        let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port = port.and_then(|port| port.parse().ok()).ok_or_else(wrong)?;
        Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)))
    }
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Response to `/metrics`: from the `Accept` header of a request to a content type and a body.
type MetricsPage = dyn Fn(&str) -> (&'static str, Arc<[u8]>) + Send + Sync;

impl HttpServer {
    /// Listens on `address`, and answers `/metrics` with `answer`, a function from the `Accept`
    /// header of a request to a content type and a body.
    ///
    /// # Errors
    /// It cannot listen there: the port is taken or not permitted, or this host has no such
    /// address.
    pub fn start(
        ListenAddress(address): ListenAddress,
        answer: impl Fn(&str) -> (&'static str, Arc<[u8]>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let listener =
            TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
        listener
            .set_nonblocking(true)
            .map_err(|error| cannot_listen(address, &error))?;
        // With port 0 the kernel chooses a port.
        let address = listener
            .local_addr()
            .map_err(|error| cannot_listen(address, &error))?;
        let (listener, stop) = (Arc::new(listener), Arc::new(AtomicBool::new(false)));
        let (shared, ended) = (Arc::clone(&listener), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .stack_size(256 * 1024);
        let thread =
            thread.spawn(move || serve(&shared, address.ip().is_loopback(), &ended, &answer));
        let failed = |error| {
            failed!(
                "cannot start a thread to serve metrics: {error}",
                "see ulimit -u"
            )
        };
        Ok(Self {
            address,
            listener,
            stop,
            thread: Some(thread.map_err(failed)?),
        })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Shutting down a listening socket wakes the thread that waits on it. std offers this only
        // for streams, hence the conversion.
        if let Ok(listener) = self.listener.try_clone() {
            let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Error {
    let (why, hint) = match error.kind() {
        ErrorKind::AddrInUse => (
            "the port is in use".to_string(),
            format!(
                "use another port, or stop the process that listens there: ss -ltnp 'sport = :{}' \
                 shows it",
                address.port()
            ),
        ),
        ErrorKind::PermissionDenied => (
            "not permitted".to_string(),
            "ports below 1024 need root: use a higher one".to_string(),
        ),
        ErrorKind::AddrNotAvailable => (
            "this host has no such address".to_string(),
            "use one that `ip address` shows, or 127.0.0.1".to_string(),
        ),
        _ => (error.to_string(), "use another address".to_string()),
    };
    usage!("cannot listen on {address}: {why}", hint)
}

/// Serves all clients until `stop` is set.
fn serve(listener: &TcpListener, is_loopback: bool, stop: &AtomicBool, answer: &MetricsPage) {
    let clock = Clock::real();
    // Oldest first.
    let mut clients: Vec<Client> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let soonest = clients.iter().map(|client| client.until).min();
        let ready = wait(
            listener,
            &clients,
            soonest.map(|until| until.since(clock.now())),
        );
        let now = clock.now();
        let mut is_ready = ready[1..].iter();
        clients.retain_mut(|client| {
            let goes_on = !is_ready.next().is_some_and(|ready| *ready)
                || client.step(now, is_loopback, answer);
            goes_on && now < client.until
        });
        if ready[0] && !accept(listener, &mut clients, now) && !stop.load(Ordering::Relaxed) {
            clock.wait_until(now.plus(BREAK));
        }
    }
}

/// Waits until somebody connects or a client is ready, at most for `most`. Returns readiness for
/// the listener and each client.
fn wait(listener: &TcpListener, clients: &[Client], most: Option<Nanos>) -> Vec<bool> {
    let most = most.map(|most| Timespec {
        tv_sec: i64::try_from(most.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(most.0 % 1_000_000_000).expect("less than a second"),
    });
    let mut watched = vec![PollFd::new(listener, PollFlags::IN)];
    watched.extend(
        clients
            .iter()
            .map(|client| PollFd::new(&client.stream, client.awaited())),
    );
    // If interrupted, nobody is ready.
    let _ = poll(&mut watched, most.as_ref());
    watched
        .iter()
        .map(|one| !one.revents().is_empty())
        .collect()
}

/// Accepts new clients. Returns false if the system is out of resources.
fn accept(listener: &TcpListener, clients: &mut Vec<Client>, now: Nanos) -> bool {
    // At most as many as can be served; the rest is accepted next time.
    for _ in 0..CLIENTS {
        match listener.accept() {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                if clients.len() == CLIENTS {
                    clients.remove(0);
                }
                clients.push(Client {
                    stream,
                    until: now.plus(PATIENCE),
                    stage: ClientStage::Asking(Vec::new()),
                });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            // A client that has disconnected again.
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                ) => {}
            // For example too many open files: closing one of ours may help.
            Err(_) => {
                clients.drain(..clients.len().min(1));
                return false;
            }
        }
    }
    true
}

/// A client, and its deadline.
struct Client {
    stream: TcpStream,
    until: Nanos,
    stage: ClientStage,
}

/// Stage of a client.
enum ClientStage {
    /// It sends its request.
    Asking(Vec<u8>),
    /// It receives the response: the header, the body, and the number of bytes sent of both.
    Taking {
        head: Vec<u8>,
        body: Arc<[u8]>,
        taken: usize,
    },
    /// It has the response and should close. If we closed first with unread input, the kernel would
    /// discard the response.
    Leaving,
}

impl Client {
    /// The event to wait for.
    fn awaited(&self) -> PollFlags {
        if matches!(self.stage, ClientStage::Taking { .. }) {
            PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }

    /// Reads or writes once. Returns false if the client is finished or gone.
    fn step(&mut self, now: Nanos, is_loopback: bool, answer: &MetricsPage) -> bool {
        match self.read_or_write(now, is_loopback, answer) {
            Ok(goes_on) => goes_on,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn read_or_write(
        &mut self,
        now: Nanos,
        is_loopback: bool,
        answer: &MetricsPage,
    ) -> io::Result<bool> {
        let mut piece = [0; 4096];
        match &mut self.stage {
            ClientStage::Asking(request) => {
                let read = self.stream.read(&mut piece)?;
                request.extend(&piece[..read]);
                if let Some(reply) = reply_to(request, is_loopback, answer) {
                    let (head, body) = reply.head_and_body();
                    self.stage = ClientStage::Taking {
                        head,
                        body,
                        taken: 0,
                    };
                    self.until = now.plus(PATIENCE);
                }
                Ok(read > 0)
            }
            ClientStage::Taking { head, body, taken } => {
                let rest = head.get(*taken..).filter(|rest| !rest.is_empty());
                let rest = rest.unwrap_or_else(|| &body[*taken - head.len()..]);
                *taken += self.stream.write(rest)?;
                if *taken == head.len() + body.len() {
                    self.stream.shutdown(Shutdown::Write)?;
                    self.stage = ClientStage::Leaving;
                }
                Ok(true)
            }
            ClientStage::Leaving => Ok(self.stream.read(&mut piece)? > 0),
        }
    }
}

/// The response to the request so far; `None` if the request is incomplete.
fn reply_to(request: &[u8], is_loopback: bool, answer: &MetricsPage) -> Option<Reply> {
    let end = |mark: &[u8]| {
        request
            .windows(mark.len())
            .position(|window| window == mark)
    };
    if let Some(end) = end(b"\r\n\r\n")
        .or_else(|| end(b"\n\n"))
        .filter(|end| *end <= REQUEST_MOST)
    {
        return Some(reply(
            &String::from_utf8_lossy(&request[..end]),
            is_loopback,
            answer,
        ));
    }
    (request.len() > REQUEST_MOST).then(|| {
        Reply::plain(
            "431 Request Header Fields Too Large",
            "a request may have at most 8 KiB\n",
        )
    })
}

/// The complete response of a server on loopback to `request`; `None` if the request is incomplete.
pub fn respond(request: &[u8], answer: &MetricsPage) -> Option<Vec<u8>> {
    let (head, body) = reply_to(request, true, answer)?.head_and_body();
    Some([&head[..], &body[..]].concat())
}

/// A response.
struct Reply {
    status: &'static str,
    content_type: &'static str,
    body: Arc<[u8]>,
    /// True to send the body's length but not the body.
    head_only: bool,
}

impl Reply {
    fn plain(status: &'static str, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: text.as_bytes().into(),
            head_only: false,
        }
    }

    fn head_and_body(self) -> (Vec<u8>, Arc<[u8]>) {
        let Self {
            status,
            content_type,
            body,
            head_only,
        } = self;
        let allow = if status.starts_with("405") {
            "Allow: GET, HEAD\r\n"
        } else {
            ""
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: \
             {}\r\n{allow}Vary: Accept\r\nCache-Control: no-store\r\nX-Content-Type-Options: \
             nosniff\r\nConnection: close\r\n\r\n",
            body.len()
        );
        (head.into(), if head_only { Arc::new([]) } else { body })
    }
}

/// The response to a request; `head` is everything before the empty line.
fn reply(head: &str, is_loopback: bool, answer: &MetricsPage) -> Reply {
    let mut lines = head.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return Reply::plain("400 Bad Request", "this is not an HTTP request\n");
    };
    if !version.starts_with("HTTP/1.") {
        return Reply::plain(
            "505 HTTP Version Not Supported",
            "only HTTP/1.1 is supported\n",
        );
    }
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    // Otherwise `Host :` would count as no host.
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    if !headers.iter().all(|(name, _)| is_name(name)) {
        return Reply::plain("400 Bad Request", "a header's name has no blanks\n");
    }
    let of = |name: &str| {
        let named = headers
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim()).collect::<Vec<_>>()
    };
    let (host, target) = without_host(target);
    // A server on loopback accepts only the machine's own names. Otherwise a web page from
    // elsewhere could reach it through a browser on this machine (DNS rebinding). On other
    // addresses a scraper may use any name.
    if is_loopback && !of("host").into_iter().chain(host).all(is_this_machine) {
        return Reply::plain(
            "421 Misdirected Request",
            "use localhost or an address as the host\n",
        );
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let accept = of("accept");
    let is_known = matches!(path, "/" | "/metrics");
    let mut reply = match method {
        _ if !is_known => Reply::plain("404 Not Found", "metrics are at /metrics\n"),
        "GET" | "HEAD" if path == "/" => Reply::plain("200 OK", WELCOME),
        "GET" | "HEAD" => {
            let (content_type, body) = answer(&accept.join(","));
            Reply {
                status: "200 OK",
                content_type,
                body,
                head_only: false,
            }
        }
        _ => Reply::plain(
            "405 Method Not Allowed",
            "only GET and HEAD are supported\n",
        ),
    };
    reply.head_only = method == "HEAD";
    reply
}

/// Splits `http://127.0.0.1:9464/metrics` into the host and the rest; `/metrics` has no host.
fn without_host(target: &str) -> (Option<&str>, &str) {
    let scheme = target
        .split_at_checked("http://".len())
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http://"));
    let Some((_, rest)) = scheme else {
        return (None, target);
    };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    (Some(host), if path.is_empty() { "/" } else { path })
}

/// True for an address and for `localhost`, with or without a port.
fn is_this_machine(host: &str) -> bool {
    let port = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let (address, _) = port
        .filter(|(before, _)| !before.contains(':') || before.ends_with(']'))
        .unwrap_or((host, ""));
    let six = address
        .strip_prefix('[')
        .and_then(|address| address.strip_suffix(']'));
    address.eq_ignore_ascii_case("localhost") || six.unwrap_or(address).parse::<IpAddr>().is_ok()
}
