//! Connections to `PostgreSQL`, and what its errors mean.
//!
//! Input: addresses. Output: connections with the settings of every session, and errors with a
//! hint.

use crate::engine::sql::access::{self, Access, Address, Tls};
use crate::engine::sql::tls;
use crate::model::Error;
use postgres::config::SslMode;
use postgres::{Client, NoTls};
use std::fmt::Write as _;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Columns of a row besides its key.
pub(super) const COLUMNS: usize = 19;

/// Characters per column: a row with its header and key has about a kilobyte.
pub(super) const COLUMN_CHARS: usize = 50;

/// Settings that fix the plan of every statement, and prevent scans from sharing blocks.
pub(super) const SETTINGS: &str = "SET enable_bitmapscan = off; SET enable_seqscan = off; SET enable_indexonlyscan = off; SET \
     max_parallel_workers_per_gather = 0; SET jit = off; SET plan_cache_mode = \
     force_generic_plan; SET synchronize_seqscans = off";

/// Minimum server version with the required statistics.
pub(super) const VERSION_MIN: i32 = 140_000;

/// Timeout for a connection attempt, and for any reply once data was sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connects to `address`.
///
/// # Errors
/// No server answers there, or it does not let this user in.
pub(in crate::engine::sql) fn connect(access: &Access, address: &Address) -> Result<Client, Error> {
    let mut config = postgres::Config::new();
    config
        .user(&address.user)
        .dbname(&address.database)
        .port(address.port)
        .application_name(&access.application);
    config
        .connect_timeout(PATIENCE)
        .tcp_user_timeout(PATIENCE)
        .keepalives_idle(PATIENCE);
    if address.is_socket() {
        config.host_path(&address.host);
    } else {
        config.host(&address.host);
    }
    if let Some(password) = &access.password {
        config.password(password.reveal());
    }
    config.ssl_mode(match access.tls(address) {
        Tls::Disable => SslMode::Disable,
        Tls::Prefer => SslMode::Prefer,
        Tls::Require | Tls::VerifyCa | Tls::VerifyFull => SslMode::Require,
    });
    let client = if address.is_socket() || address.tls == Tls::Disable {
        config.connect(NoTls)
    } else {
        config.connect(MakeRustlsConnect::new(tls::config(address)?))
    };
    client.map_err(|error| not_connected(address, access.password.is_some(), &error))
}

fn not_connected(address: &Address, with_password: bool, error: &postgres::Error) -> Error {
    let said = in_words(error);
    let code = error.code().map(postgres::error::SqlState::code);
    let (what, hint) = match code {
        Some("28P01") if with_password => (
            format!("does not accept the password of {}", address.user),
            "check the user, and the password: in the file of --password-file, in PGPASSWORD, or \
             in ~/.pgpass"
                .to_string(),
        ),
        Some("28P01") => (
            format!("refuses the connection: {said}"),
            access::PASSWORD_HINT.into(),
        ),
        // A password does not help: the user does not exist, or pg_hba.conf has no line for us or
        // one that rejects us.
        Some("28000") => (
            format!("refuses the connection: {said}"),
            "check user and sslmode, and pg_hba.conf on the server".into(),
        ),
        None if with_password && said.contains("does not support TLS") => access::no_tls(),
        None if said.contains("password missing") => {
            ("requires a password".into(), access::PASSWORD_HINT.into())
        }
        Some("3D000") => (
            "has no such database".into(),
            "give an existing one, or create it".into(),
        ),
        Some("53300") => (
            "has no connections left".into(),
            "request fewer sessions, or raise max_connections on the server".into(),
        ),
        _ => (
            format!("cannot be reached: {said}"),
            "check that the server is running, and check host, port and sslmode".into(),
        ),
    };
    Error::failed(format!("'{address}' {what}"), hint)
}

/// The message of the server or the connection on one line, with the hint if there is one.
pub(super) fn in_words(error: &postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        let hint = said
            .hint()
            .map_or(String::new(), |hint| format!(" ({hint})"));
        return format!("{}{hint}", said.message());
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// The error for a statement that should not have failed.
pub(super) fn failed(address: &Address, what: &str, error: &postgres::Error) -> Error {
    let code = error.code().map_or("", postgres::error::SqlState::code);
    let hint = match code {
        "42501" => "grant this user CREATE on the database, or use another user",
        "53100" => "free some space on the server; the same command then resumes",
        "57014" => "raise statement_timeout for this user, or set it to 0",
        _ if error.is_closed() => "the server closed the connection: see its log",
        _ => "see the server's log",
    };
    Error::failed(
        format!("'{address}' could not {what}: {}", in_words(error)),
        hint,
    )
}
