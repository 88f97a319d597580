//! How ranks find rank 0 and prove that they belong to the run.
//!
//! Rank 0 listens while the others join, and closes the listener when all are there. The
//! invitation (addresses, port, a secret of this run) goes through the process manager. A
//! connection that does not prove within five seconds that it knows the secret is closed. The
//! secret itself is never sent over a connection. Both sides derive from it, and from what they sent
//! each other, the keys of all frames that follow.

use super::frame::Seal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos, failed};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// The first bytes of each side: whoever is not Rigel is recognised at once.
const GREETING: [u8; 8] = *b"rigel 2\n";
/// Time for a handshake.
const HANDSHAKE: Nanos = Nanos::from_secs(5);
/// Time for a connection to one address.
const CONNECT: Duration = Duration::from_secs(2);
/// Pause between two rounds of addresses, and between two looks at the listener.
const LOOK: Duration = Duration::from_millis(5);
/// Connections that may be in a handshake at once: a port scanner cannot take all threads.
const HANDSHAKES_MAX: usize = 256;

type Nonce = [u8; 32];

/// A connection whose other end has proved that it belongs to the run.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// Of the frames that are written.
    pub(super) ours: Seal,
    /// Of the frames that are read.
    pub(super) theirs: Seal,
}

impl Connection {
    /// The connection between rank 0, which sent `of_root` in the handshake, and `rank`, which sent
    /// `of_rank`.
    fn new(
        stream: TcpStream,
        secret: &Nonce,
        (of_root, of_rank): (&[u8], &[u8]),
        rank: &[u8],
        is_root: bool,
    ) -> Self {
        let salt = [GREETING.as_slice(), of_root, of_rank, rank].concat();
        let shared = hkdf::Salt::new(hkdf::HKDF_SHA256, &salt).extract(secret);
        let (to_rank, to_root) = (
            Seal::of(&shared, b"root to rank"),
            Seal::of(&shared, b"rank to root"),
        );
        let (ours, theirs) = if is_root {
            (to_rank, to_root)
        } else {
            (to_root, to_rank)
        };
        Self {
            stream,
            ours,
            theirs,
        }
    }
}

/// Where rank 0 listens, and the secret of this run. It goes through the process manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Invitation {
    /// Names and addresses, best first.
    addresses: Vec<String>,
    port: u16,
    secret: Nonce,
}

impl Invitation {
    /// As text that PMI can carry, with as many addresses as fit into `room` bytes.
    pub(super) fn to_text(&self, room: usize) -> Result<String, Error> {
        let mut shown = self.clone();
        loop {
            let json = serde_json::to_vec(&Compact::of(&shown)).expect("text and numbers");
            let text = URL_SAFE_NO_PAD.encode(json);
            if text.len() <= room {
                return Ok(text);
            }
            if shown.addresses.len() <= 1 {
                return Err(failed!(
                    "an invitation of {count} bytes does not fit into PMI",
                    "give rank 0's address by --rank-address",
                    count = text.len()
                ));
            }
            shown.addresses.pop();
        }
    }

    /// Reads what [`Invitation::to_text`] wrote.
    pub(super) fn of_text(text: &str) -> Result<Self, Error> {
        let read = || {
            let json = URL_SAFE_NO_PAD.decode(text).ok()?;
            let compact: Compact = serde_json::from_slice(&json).ok()?;
            let secret = URL_SAFE_NO_PAD.decode(compact.s).ok()?;
            Some(Self {
                addresses: compact.a,
                port: compact.p,
                secret: secret.try_into().ok()?,
            })
        };
        read().ok_or_else(|| {
            failed!(
                "rank 0's invitation cannot be read",
                "is rank 0 the same version of rigel?"
            )
        })
    }
}

/// An invitation with short names: a line of PMI has 1,000 bytes.
#[derive(Serialize, Deserialize)]
struct Compact {
    a: Vec<String>,
    p: u16,
    s: String,
}

impl Compact {
    fn of(invitation: &Invitation) -> Self {
        Self {
            a: invitation.addresses.clone(),
            p: invitation.port,
            s: URL_SAFE_NO_PAD.encode(invitation.secret),
        }
    }
}

/// Rank 0 before the others have joined.
pub(super) struct Listening {
    listener: TcpListener,
    secret: Nonce,
}

impl Listening {
    /// Listens on a free port, or on one of `ports`: on all addresses, or on `address` alone.
    pub(super) fn listen(address: Option<&str>, ports: Option<(u16, u16)>) -> Result<Self, Error> {
        let (first, last) = ports.unwrap_or((0, 0));
        let mut tried = Err(ErrorKind::AddrNotAvailable.into());
        for port in first..=last {
            tried = match address {
                Some(address) => TcpListener::bind((address, port)),
                // One socket for both protocols where the kernel has IPv6.
                None => TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
                    .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))),
            };
            if tried.is_ok() {
                break;
            }
        }
        let listener = tried.map_err(|error: std::io::Error| {
            let place = address.unwrap_or("any address");
            let ports = ports.map_or_else(String::new, |(from, to)| format!(", ports {from}-{to}"));
            failed!(
                "rank 0 cannot listen on {place}{ports}: {error}",
                "give an address of this host by --rank-address, free ports by --rank-ports"
            )
        })?;
        let mut secret = [0; 32];
        random(&mut secret)?;
        Ok(Self { listener, secret })
    }

    /// The invitation, with these addresses of rank 0.
    pub(super) fn invitation(&self, addresses: Vec<String>) -> Result<Invitation, Error> {
        let port = self
            .listener
            .local_addr()
            .map_err(|error| failed!("no port to listen on: {error}", ""))?
            .port();
        Ok(Invitation {
            addresses,
            port,
            secret: self.secret,
        })
    }

    /// Waits for the ranks 1 to `size - 1`. Returns their connections in this order. The listener
    /// is closed.
    pub(super) fn welcome(
        self,
        size: usize,
        clock: &Clock,
        within: Nanos,
    ) -> Result<Vec<Connection>, Error> {
        let due = clock.now().plus(within);
        let failed = |error| failed!("cannot wait for ranks: {error}", "");
        self.listener.set_nonblocking(true).map_err(failed)?;
        let mut there: Vec<Option<Connection>> = (1..size).map(|_| None).collect();
        let (proved, arrivals) = mpsc::channel();
        let busy = Arc::new(AtomicUsize::new(0));
        while there.iter().any(Option::is_none) {
            match self.listener.accept() {
                Ok((stream, _)) => greet(stream, self.secret, clock, &proved, &busy),
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
                // The peer went away, or descriptors are short for a moment.
                Err(_) => std::thread::sleep(LOOK),
            }
            while let Ok((rank, stream)) = arrivals.try_recv() {
                let place = usize::checked_sub(rank, 1).and_then(|at| there.get_mut(at));
                if let Some(place @ None) = place {
                    *place = Some(stream);
                }
            }
            if clock.now() >= due {
                break;
            }
        }
        let missing: Vec<String> = (1..)
            .zip(&there)
            .filter(|(_, stream)| stream.is_none())
            .map(|(rank, _)| rank.to_string())
            .collect();
        if missing.is_empty() {
            return Ok(there.into_iter().flatten().collect());
        }
        Err(failed!(
            "rank {missing} did not reach rank 0 in {within}",
            "give an address of rank 0 that the others reach by --rank-address, and ports that a \
             firewall lets through by --rank-ports",
            missing = missing.join(", "),
            within = within.exact()
        ))
    }
}

/// Lets a connection prove itself, in a thread of its own.
fn greet(
    stream: TcpStream,
    secret: Nonce,
    clock: &Clock,
    proved: &Sender<(usize, Connection)>,
    busy: &Arc<AtomicUsize>,
) {
    if busy.fetch_add(1, Ordering::Relaxed) >= HANDSHAKES_MAX {
        busy.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let (proved, of_thread, clock) = (proved.clone(), Arc::clone(busy), clock.clone());
    let handshake = move || {
        if let Ok(admitted) = admit(stream, &secret, &clock) {
            // Rank 0 may have all ranks by now.
            let _ = proved.send(admitted);
        }
        of_thread.fetch_sub(1, Ordering::Relaxed);
    };
    if std::thread::Builder::new().spawn(handshake).is_err() {
        busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Rank 0's side of the handshake.
fn admit(
    mut stream: TcpStream,
    secret: &Nonce,
    clock: &Clock,
) -> std::io::Result<(usize, Connection)> {
    let due = clock.now().plus(HANDSHAKE);
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(CONNECT))?;
    stream.set_nodelay(true)?;
    let mut ours = [0; 32];
    random(&mut ours).map_err(|_| ErrorKind::Other)?;
    stream.write_all(&[&GREETING[..], &ours].concat())?;
    let mut answer = [0; 68];
    read_by(&mut stream, &mut answer, clock, due)?;
    let (rank, rest) = answer.split_at(4);
    let (theirs, proof) = rest.split_at(32);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signed = [b"rank", &ours[..], theirs, rank].concat();
    hmac::verify(&key, &signed, proof).map_err(|_| ErrorKind::PermissionDenied)?;
    let reply = [b"root", &ours[..], theirs, rank].concat();
    stream.write_all(hmac::sign(&key, &reply).as_ref())?;
    let connection = Connection::new(stream, secret, (&ours, theirs), rank, true);
    let rank = u32::from_be_bytes([rank[0], rank[1], rank[2], rank[3]]);
    Ok((rank as usize, connection))
}

/// Another rank's way to rank 0: its addresses in turn, until one of them proves to be rank 0.
pub(super) fn join(
    invitation: &Invitation,
    rank: usize,
    clock: &Clock,
    within: Nanos,
) -> Result<Connection, Error> {
    let due = clock.now().plus(within);
    let mut last = String::from("no address");
    while clock.now() < due {
        for name in &invitation.addresses {
            match connect(name, invitation, rank, clock) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = format!("{name}: {error}"),
            }
        }
        std::thread::sleep(LOOK);
    }
    Err(failed!(
        "rank 0 cannot be reached on port {port} of {addresses}: {last}",
        "give an address of rank 0 that the others reach by --rank-address, and ports that a \
         firewall lets through by --rank-ports",
        port = invitation.port,
        addresses = invitation.addresses.join(", ")
    ))
}

fn connect(
    name: &str,
    invitation: &Invitation,
    rank: usize,
    clock: &Clock,
) -> std::io::Result<Connection> {
    let mut tried = Err(ErrorKind::AddrNotAvailable.into());
    for address in (name, invitation.port).to_socket_addrs()? {
        tried = TcpStream::connect_timeout(&address, CONNECT)
            .and_then(|stream| introduce(stream, &invitation.secret, rank, clock));
        if tried.is_ok() {
            break;
        }
    }
    tried
}

/// Another rank's side of the handshake.
fn introduce(
    mut stream: TcpStream,
    secret: &Nonce,
    rank: usize,
    clock: &Clock,
) -> std::io::Result<Connection> {
    let due = clock.now().plus(HANDSHAKE);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(CONNECT))?;
    let mut greeting = [0; 40];
    read_by(&mut stream, &mut greeting, clock, due)?;
    let (name, theirs) = greeting.split_at(GREETING.len());
    if name != GREETING {
        return Err(std::io::Error::other("it is not rigel of this version"));
    }
    let mut ours = [0; 32];
    random(&mut ours).map_err(|_| ErrorKind::Other)?;
    let rank = u32::try_from(rank)
        .map_err(std::io::Error::other)?
        .to_be_bytes();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signed = [b"rank", theirs, &ours[..], &rank].concat();
    let proof = hmac::sign(&key, &signed);
    stream.write_all(&[&rank[..], &ours, proof.as_ref()].concat())?;
    let mut reply = [0; 32];
    read_by(&mut stream, &mut reply, clock, due)?;
    let signed = [b"root", theirs, &ours[..], &rank].concat();
    hmac::verify(&key, &signed, &reply)
        .map_err(|_| std::io::Error::other("it does not know this run's secret"))?;
    let nonces = (theirs, &ours[..]);
    Ok(Connection::new(stream, secret, nonces, &rank, false))
}

/// Fills `bytes` until `due`, however slowly they come.
fn read_by(
    stream: &mut TcpStream,
    bytes: &mut [u8],
    clock: &Clock,
    due: Nanos,
) -> std::io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let left = due.since(clock.now());
        if left == Nanos(0) {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(Duration::from_nanos(left.0)))?;
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn random(bytes: &mut [u8]) -> Result<(), Error> {
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| failed!("the system gives no random numbers", ""))
}

/// True for an address that only this host reaches.
pub(super) fn is_loopback(name: &str) -> bool {
    name == "localhost"
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
