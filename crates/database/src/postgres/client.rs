//! Connections to `PostgreSQL`, and what its errors mean.
//!
//! Input: addresses. Output: connections with the settings of every session, and errors with a
//! hint.

use super::protocol::{self, PostgresClient, PostgresError};
use crate::access::{self, Access, Address, Tls};
use crate::tls;
use rigel_device::rights;
use rigel_model::{Error, ReadWay, failed};

/// Columns of a row besides its key.
pub(super) const COLUMNS: usize = 19;

/// Characters per column: a row with its header and key has about a kilobyte.
pub(super) const COLUMN_CHARS: usize = 50;

/// Settings that fix the plan of every statement that finds its rows in this way, and prevent scans
/// from sharing blocks.
pub(super) fn settings(way: ReadWay) -> String {
    let (index, bitmap) = match way {
        ReadWay::Row | ReadWay::File => ("on", "off"),
        ReadWay::Prefetch => ("off", "on"),
    };
    format!(
        "SET enable_indexscan = {index}; SET enable_bitmapscan = {bitmap}; SET enable_seqscan = \
         off; SET enable_indexonlyscan = off; SET max_parallel_workers_per_gather = 0; SET jit = \
         off; SET plan_cache_mode = force_generic_plan; SET synchronize_seqscans = off"
    )
}

/// Minimum server version with the required statistics.
pub(super) const VERSION_MIN: i32 = 140_000;

/// Connects to `address`.
///
/// # Errors
/// No server answers there, or it does not let this user in.
pub(crate) fn connect(access: &Access, address: &Address) -> Result<PostgresClient, Error> {
    let is_plain = address.is_socket() || address.tls == Tls::Disable;
    let tls = if is_plain {
        None
    } else {
        Some(rights::to_connect(|| tls::config(address))?)
    };
    protocol::connect(access, address, tls)
        .map_err(|error| not_connected(address, access.password(address).is_some(), &error))
}

fn not_connected(address: &Address, with_password: bool, error: &PostgresError) -> Error {
    let message = error.in_words();
    let (what, hint) = match error.code() {
        _ if *error == PostgresError::NoPassword => {
            ("requires a password".into(), access::PASSWORD_HINT.into())
        }
        _ if matches!(error, PostgresError::NotAccepted(_)) => (
            format!("cannot be trusted with the password: {message}"),
            "check the server's certificate: sslmode=verify-full with sslrootcert; or, if you \
             trust whoever answers there, name the method in the URL: require_auth=password or \
             require_auth=md5"
                .into(),
        ),
        _ if *error == PostgresError::NoTls && with_password => access::no_tls(),
        "28P01" if with_password => (
            format!("does not accept the password of {}", address.user),
            "check the user, and the password: in the file of --password-file, in PGPASSWORD, or \
             in ~/.pgpass"
                .to_string(),
        ),
        "28P01" => (
            format!("refuses the connection: {message}"),
            access::PASSWORD_HINT.into(),
        ),
        // A password does not help: the user does not exist, or pg_hba.conf has no line for us or
        // one that rejects us.
        "28000" => (
            format!("refuses the connection: {message}"),
            "check user and sslmode, and pg_hba.conf on the server".into(),
        ),
        "3D000" => (
            "has no such database".into(),
            "give an existing one, or create it".into(),
        ),
        "53300" => (
            "has no connections left".into(),
            "request fewer sessions, or raise max_connections on the server".into(),
        ),
        _ => (
            format!("cannot be reached: {message}"),
            "check that the server is running, and check host, port and sslmode".into(),
        ),
    };
    failed!("'{address}' {what}", hint)
}

/// The error for a statement that should not have failed.
pub(super) fn failed(address: &Address, what: &str, error: &PostgresError) -> Error {
    let hint = match error.code() {
        "42501" => "grant this user CREATE on the database, or use another user",
        "53100" => "free some space on the server; the same command then resumes",
        "57014" => "raise statement_timeout for this user, or set it to 0",
        _ if matches!(error, PostgresError::Silent(_)) => {
            "the server, or storage below it, hangs: see its log"
        }
        _ if error.is_closed() => "the server closed the connection: see its log",
        _ => "see the server's log",
    };
    failed!(
        "'{address}' could not {what}: {error}",
        hint,
        error = error.in_words()
    )
}
