//! Connecting to a `PostgreSQL` server: its address, the request for TLS, the login.

use super::authentication::PostgresLogin;
use super::binding::certificate_hash;
use super::client::PostgresClient;
use super::error::PostgresError;
use super::outbox;
use super::socket::{PostgresLocal, PostgresSocket, is_late, limit};
use crate::access::{Access, Address, Secret, Tls};
use crate::peer;
use rigel_device::bounded::{self, BoundedWait};
use rigel_device::rights;
use rigel_model::Nanos;
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time for connecting to an address, and again for everything until the server is ready. Also the
/// time after which sent bytes that nobody acknowledged, or an idle connection whose other end does
/// not answer, end a connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connects to `address` and logs in. `tls` is absent where there must be none.
///
/// # Errors
/// No server answers there, or it does not let this user in.
pub(crate) fn connect(
    access: &Access,
    address: &Address,
    tls: Option<ClientConfig>,
) -> Result<PostgresClient, PostgresError> {
    let mut is_proven = false;
    let (socket, login, certificate) = if address.is_socket() {
        let path = PathBuf::from(format!("{}/.s.PGSQL.{}", address.host, address.port));
        let to = path.clone();
        let socket = bounded(address, move || {
            Ok(rights::to_connect(|| UnixStream::connect(to))?)
        })?;
        is_proven = peer::is_trusted(socket.as_fd(), &path);
        let socket = PostgresSocket::Local(PostgresLocal::new(socket)?);
        (socket, login(), None)
    } else {
        let (host, port) = (address.host.clone(), address.port);
        let socket = bounded(address, move || connect_tcp(&host, port))?;
        let login = login();
        let is_required = !matches!(access.tls(address), Tls::Disable | Tls::Prefer);
        match tls {
            Some(config) => encrypt(socket, address, config, is_required, login)?,
            None => (PostgresSocket::Tcp(socket), login, None),
        }
    };
    is_proven |= matches!(socket, PostgresSocket::Tls(_)) && address.is_verified();
    let mut client = PostgresClient::new(socket, Some(login));
    client.log_in(&PostgresLogin {
        user: &address.user,
        database: &address.database,
        application: &access.application,
        password: access.password(address).map(Secret::reveal),
        certificate,
        methods: address.auth_methods(is_proven),
        binding: address.binding,
    })?;
    client.be_patient();
    Ok(client)
}

/// The wait for a login that begins now.
fn login() -> BoundedWait {
    BoundedWait::new(Nanos::from_secs(PATIENCE.as_secs()))
}

/// Connects in a thread of its own, where a signal does not have to wait for it.
fn bounded<S: Send + 'static>(
    address: &Address,
    connect: impl FnOnce() -> Result<S, PostgresError> + Send + 'static,
) -> Result<S, PostgresError> {
    let what = format!("connecting to '{address}'");
    let socket = bounded::call(&what, bounded::NEVER, connect);
    socket.map_err(|unanswered| PostgresError::Silent(unanswered.waited))?
}

/// Reads from a server that logs us in, until it has an answer or its time is up.
fn hear<T>(
    socket: &mut TcpStream,
    login: &mut BoundedWait,
    mut read: impl FnMut(&mut TcpStream) -> io::Result<T>,
) -> Result<T, PostgresError> {
    loop {
        if login.is_over() {
            return Err(PostgresError::Silent(login.waited()));
        }
        match read(socket) {
            Err(error) if is_late(&error) => (),
            read => return Ok(read?),
        }
    }
}

/// Connects to the first address of the host that answers.
fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, PostgresError> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for place in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, PATIENCE) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                let time = u32::try_from(PATIENCE.as_millis()).expect("half a minute");
                let set = sockopt::set_tcp_user_timeout(&socket, time)
                    .and_then(|()| sockopt::set_socket_keepalive(&socket, true))
                    .and_then(|()| sockopt::set_tcp_keepidle(&socket, PATIENCE));
                set.map_err(io::Error::from)?;
                limit(&socket)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// A socket, the wait for its login, and the hash of the server's certificate.
type Prepared = (PostgresSocket, BoundedWait, Option<Vec<u8>>);

/// Asks for TLS, and begins it where the server has it.
fn encrypt(
    mut socket: TcpStream,
    address: &Address,
    config: ClientConfig,
    is_required: bool,
    mut login: BoundedWait,
) -> Result<Prepared, PostgresError> {
    let mut request = Vec::new();
    outbox::tls_request(&mut request);
    socket.write_all(&request)?;
    // Exactly one byte is read in the clear: whatever somebody in between adds to it goes to the
    // handshake, which then fails, and never into the encrypted session.
    let mut answer = [0];
    hear(&mut socket, &mut login, |socket| {
        socket.read_exact(&mut answer)
    })?;
    match answer[0] {
        b'S' => (),
        b'N' if !is_required => return Ok((PostgresSocket::Tcp(socket), login, None)),
        b'N' => return Err(PostgresError::NoTls),
        // Nobody has proven to be the server yet: its words are not repeated.
        b'E' => {
            let what = "the server answered the request for TLS with an error: see its log";
            return Err(PostgresError::Lost(what.into()));
        }
        other => {
            let what = format!("the byte {other} as the answer to the request for TLS");
            return Err(PostgresError::Protocol(what));
        }
    }
    let lost = |error: &dyn std::fmt::Display| PostgresError::Lost(format!("TLS: {error}"));
    let name = ServerName::try_from(address.host.clone()).map_err(|error| lost(&error))?;
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(|error| lost(&error))?;
    while tls.is_handshaking() {
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
        if !tls.is_handshaking() {
            break;
        }
        if hear(&mut socket, &mut login, |socket| tls.read_tls(socket))? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if let Err(error) = tls.process_new_packets() {
            // The server learns why.
            let _ = tls.write_tls(&mut socket);
            return Err(lost(&error));
        }
    }
    while tls.wants_write() {
        tls.write_tls(&mut socket)?;
    }
    let certificate = tls
        .peer_certificates()
        .and_then(|chain| certificate_hash(chain.first()?));
    let socket = PostgresSocket::Tls(Box::new(StreamOwned::new(tls, socket)));
    Ok((socket, login, certificate))
}
