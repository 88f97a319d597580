//! Connections to `MariaDB` and `MySQL`, and what their errors mean.
//!
//! Input: addresses. Output: connections with the settings of every session, the version of the
//! server, and errors with a hint. The names of tables, columns and the index are here too.

use super::connection::{MysqlConnection, silent};
use crate::access::{self, Access, Address, Tls};
use crate::peer;
use crate::tables;
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, OptsBuilder, SslOpts};
use rigel_device::{bounded, rights};
use rigel_model::{Error, Nanos, failed, usage};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Columns of a row besides its key.
pub(super) const COLUMNS: usize = 19;

/// The index on the key of a table for reads by key.
pub(super) const INDEX: &str = "id";

/// Settings of every session: one transaction per statement, visibility as in `PostgreSQL` and
/// Oracle, one page after another. Conditions are checked on the index: otherwise the row after the
/// last one is read too, which costs one more page per statement.
const SETTINGS: [&str; 4] = [
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION optimizer_switch = 'mrr=off,index_condition_pushdown=on'",
    // A load must not wait for another load's lock on a table that both find empty.
    "SET SESSION unique_checks = 1, foreign_key_checks = 1",
];

/// Timeout for a connection attempt, for all of a login, and for any reply once data was sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// The server's error code for a missing database.
pub(super) const NO_SUCH_DATABASE: u16 = 1049;

/// The server's error code for a missing table.
pub(super) const NO_SUCH_TABLE: u16 = 1146;

/// Name of table `number`, from 0, for reads by key.
pub(super) fn blocks_table(number: usize) -> String {
    format!("{}_{}", tables::SCHEMA, tables::blocks_table(number))
}

/// Name of table `number`, from 0, for scans.
pub(super) fn scan_table(number: usize) -> String {
    format!("{}_{}", tables::SCHEMA, tables::scan_table(number))
}

/// Characters per column, for pages of `page` bytes.
///
/// Two rows always fit into a page, because `InnoDB` allows no row longer than half a page. So rows
/// are almost as long as allowed, and a short one is between each two: these three do not fit into
/// one page. The server itself uses 132 bytes of a page and at most 75 of a row; 65 more are left
/// free so that no version finds a row too long.
pub(super) fn column_chars(page: u32) -> usize {
    ((page as usize - 132) / 2 - 140) / COLUMNS
}

/// Connects to `address`.
///
/// # Errors
/// No server answers there, or it does not let this user in.
pub(super) fn connect(access: &Access, address: &Address) -> Result<MysqlConnection, Error> {
    try_connect(access, address, Some(&address.database))
        .map_err(|error| not_connected(access, address, &error))
}

/// Connects to `address` without a database, which may not exist yet.
pub(crate) fn connect_outside(
    access: &Access,
    address: &Address,
) -> Result<MysqlConnection, Error> {
    try_connect(access, address, None).map_err(|error| not_connected(access, address, &error))
}

/// Connects within half a minute, and returns the server's own error.
///
/// The wait of the client's library for a reply of the server has no limit of its own.
pub(super) fn try_connect(
    access: &Access,
    address: &Address,
    database: Option<&str>,
) -> Result<MysqlConnection, mysql::Error> {
    let what = format!("connecting to '{address}'");
    let (access, address) = (access.clone(), address.clone());
    let database = database.map(String::from);
    let log_in = move || log_in(&access, &address, database.as_deref());
    let limit = Nanos::from_secs(PATIENCE.as_secs());
    let logged_in = bounded::call(&what, limit, log_in);
    let connection = logged_in.map_err(|unanswered| silent(unanswered.waited))??;
    Ok(MysqlConnection::new(connection)?)
}

fn log_in(
    access: &Access,
    address: &Address,
    database: Option<&str>,
) -> Result<Conn, mysql::Error> {
    refuse_foreign_socket(access, address)?;
    let options = options(access, address, database);
    let secured = options.clone().ssl_opts(tls(address));
    // The client opens the socket, reads certificates and logs in by one call.
    let connected = |options: OptsBuilder| rights::to_connect(|| Conn::new(options));
    let mut connection = match connected(secured) {
        Err(error) if is_without_tls(&error) && access.tls(address) == Tls::Prefer => {
            connected(options)?
        }
        other => other?,
    };
    for setting in SETTINGS {
        connection.query_drop(setting)?;
    }
    // Only old servers have a query cache. If it is on, it would answer instead of the pages.
    let _ = connection.query_drop("SET SESSION query_cache_type = OFF");
    Ok(connection)
}

/// Why a local socket gets no password.
#[derive(Debug)]
struct ForeignSocket;

impl fmt::Display for ForeignSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the process that listens there is not of root, of this user, or of the owner of a directory that is not \
             open to all",
        )
    }
}

impl std::error::Error for ForeignSocket {}

/// Refuses a local socket of another user if there is a password: the client gives it to a server that asks for it.
fn refuse_foreign_socket(access: &Access, address: &Address) -> io::Result<()> {
    let is_asked = address.tls == Tls::Disable;
    if !address.is_socket() || is_asked || access.password(address).is_none() {
        return Ok(());
    }
    let path = Path::new(&address.host);
    match rights::to_connect(|| UnixStream::connect(path)) {
        Ok(socket) if !peer::is_trusted(socket.as_fd(), path) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            ForeignSocket,
        )),
        // The client's library says what is wrong.
        _ => Ok(()),
    }
}

fn options(access: &Access, address: &Address, database: Option<&str>) -> OptsBuilder {
    let mut attributes = std::collections::HashMap::new();
    attributes.insert("program_name".to_string(), access.application.clone());
    let patience = u32::try_from(PATIENCE.as_millis()).expect("half a minute");
    let options = OptsBuilder::new()
        .user(Some(address.user.clone()))
        .pass(
            access
                .password(address)
                .map(|password| password.reveal().to_string()),
        )
        .db_name(database)
        .prefer_socket(false)
        .tcp_connect_timeout(Some(PATIENCE))
        .tcp_user_timeout_ms(Some(patience))
        .tcp_keepalive_time_ms(Some(patience))
        // Statements are stored here, and none is closed to make room for another.
        .stmt_cache_size(0)
        // An update reports the number of rows found, not of rows changed.
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
        .connect_attrs(Some(attributes));
    if address.is_socket() {
        options.socket(Some(address.host.clone()))
    } else {
        options
            .ip_or_hostname(Some(address.host.clone()))
            .tcp_port(address.port)
    }
}

/// Certificate checks. The crate has its own list of authorities, Mozilla's; the named file adds to
/// it.
fn tls(address: &Address) -> Option<SslOpts> {
    if address.is_socket() || address.tls == Tls::Disable {
        return None;
    }
    let wants_authority =
        matches!(address.tls, Tls::VerifyCa | Tls::VerifyFull) || address.authorities.is_some();
    Some(
        SslOpts::default()
            .with_root_cert_path(
                address
                    .authorities
                    .clone()
                    .map(std::borrow::Cow::<std::path::Path>::Owned),
            )
            .with_danger_accept_invalid_certs(!wants_authority)
            // The crate trusts public authorities besides the named one, so the name is always
            // checked.
            .with_danger_skip_domain_validation(!wants_authority),
    )
}

fn not_connected(access: &Access, address: &Address, error: &mysql::Error) -> Error {
    let message = in_words(error);
    let (what, hint) = match code(error) {
        Some(1045 | 1698) if access.password(address).is_some() => (
            "does not accept the password".to_string(),
            "check user and password".to_string(),
        ),
        Some(1045 | 1698) => (
            format!("refuses the connection: {message}"),
            access::PASSWORD_HINT.into(),
        ),
        Some(1044) => (
            format!("refuses access to the database: {message}"),
            "grant this user access to it, or use another user or database".into(),
        ),
        Some(NO_SUCH_DATABASE) => (
            "has no such database".into(),
            "give an existing one, or create it with rigel sql load".into(),
        ),
        Some(1040 | 1203 | 1226) => (
            "has no connections left".into(),
            "request fewer sessions, or raise max_connections on the server".into(),
        ),
        None if access.password(address).is_some() && is_without_tls(error) => access::no_tls(),
        None if is_foreign(error) => (
            format!("cannot be trusted with the password: {message}"),
            "give a socket in a directory of the server's user; or, if you trust whoever answers there, add \
             sslmode=disable to the URL"
                .into(),
        ),
        _ => (
            format!("cannot be reached: {message}"),
            "check that the server is running, and check host, port, socket and sslmode".into(),
        ),
    };
    failed!("'{address}' {what}", hint)
}

/// True if TLS was requested and the server does not support it.
fn is_without_tls(error: &mysql::Error) -> bool {
    matches!(
        error,
        mysql::Error::DriverError(DriverError::TlsNotSupported)
    )
}

fn is_foreign(error: &mysql::Error) -> bool {
    let mysql::Error::IoError(error) = error else {
        return false;
    };
    let Some(inner) = error.get_ref() else {
        return false;
    };
    inner.is::<ForeignSocket>()
}

/// The server's error code; `None` if the error is not from the server.
pub(super) fn code(error: &mysql::Error) -> Option<u16> {
    if let mysql::Error::MySqlError(said) = error {
        Some(said.code)
    } else {
        None
    }
}

fn is_silent(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::IoError(error) if error.kind() == io::ErrorKind::TimedOut)
}

/// The message of the server or the connection on one line.
pub(super) fn in_words(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(said) => said.message.clone(),
        mysql::Error::IoError(error) => error.to_string(),
        mysql::Error::DriverError(error) => error.to_string(),
        mysql::Error::TlsError(error) => error.to_string(),
        // Its names for the kinds of errors, around the words.
        other => {
            let text = other.to_string();
            let inner = text
                .split_once(" { ")
                .and_then(|(_, rest)| rest.strip_suffix(" }"));
            let inner = inner.unwrap_or(&text);
            let words = inner
                .strip_prefix("IO error: `")
                .and_then(|rest| rest.strip_suffix('\''));
            words.unwrap_or(inner).to_string()
        }
    }
}

/// The error for a statement that should not have failed.
pub(super) fn failed(address: &Address, what: &str, error: &mysql::Error) -> Error {
    let hint = match code(error) {
        Some(1044 | 1142 | 1227 | 1370) => {
            "grant this user ALL on the database of the URL, or use another user or database"
        }
        // The table, or a file of the server, is full.
        Some(3 | 1021 | 1026 | 1114) => {
            "free some space on the server; the same command then resumes"
        }
        Some(1969 | 3024) => {
            "raise max_statement_time (MariaDB) or max_execution_time (MySQL) for this user"
        }
        Some(1290) => "the server is read-only: give one that accepts writes",
        None if is_silent(error) => "the server, or storage below it, hangs: see its log",
        None => "the server closed the connection: see its log",
        Some(_) => "see the server's log",
    };
    failed!(
        "'{address}' could not {what}: {error}",
        hint,
        error = in_words(error)
    )
}

/// Product and version of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MysqlVersion {
    pub(super) is_mariadb: bool,
    pub(super) numbers: (u32, u32),
    /// For display.
    pub(super) name: String,
}

impl MysqlVersion {
    /// Parses the server's version string, such as `10.11.19-MariaDB-0+deb12u1`.
    pub(super) fn parse(text: &str) -> Self {
        let is_mariadb = text.contains("MariaDB");
        // Some servers prefix 5.5.5 for the sake of old replicas.
        let text = text
            .strip_prefix("5.5.5-")
            .filter(|_| is_mariadb)
            .unwrap_or(text);
        let number = text.split("-MariaDB").next().unwrap_or(text);
        let mut parts = number
            .split(['.', '-'])
            .map(|part| part.parse().unwrap_or(0));
        let numbers = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let name = format!("{} {number}", if is_mariadb { "MariaDB" } else { "MySQL" });
        Self {
            is_mariadb,
            numbers,
            name,
        }
    }

    /// True if the server is older than the oldest version with the statements and statistics used
    /// here.
    pub(super) fn is_old(&self) -> bool {
        self.numbers < if self.is_mariadb { (10, 2) } else { (5, 7) }
    }
}

/// Product and version of the server.
pub(super) fn version(
    connection: &mut MysqlConnection,
    address: &Address,
) -> Result<MysqlVersion, Error> {
    let text: Option<String> = connection
        .query_first("SELECT VERSION()")
        .map_err(|error| failed(address, "report its version", &error))?;
    let version = MysqlVersion::parse(&text.unwrap_or_default());
    if version.is_old() {
        return Err(usage!(
            "'{address}' is {name}",
            "its statistics are not sufficient: use MariaDB 10.2, MySQL 5.7 or newer",
            name = version.name
        ));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_told_in_words() {
        let text = "CodecError { IO error: `Connection reset by peer (os error 104)' }";
        let reset = || io::Error::from_raw_os_error(libc::ECONNRESET);
        let of_codec = mysql::Error::CodecError(reset().into());
        assert_eq!(of_codec.to_string(), text);
        assert_eq!(
            in_words(&of_codec),
            "Connection reset by peer (os error 104)"
        );
        assert_eq!(
            in_words(&mysql::Error::IoError(reset())),
            in_words(&of_codec)
        );
    }
}
