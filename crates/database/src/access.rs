//! Access to a database: its URL, the user, and the protection of the connection.
//!
//! Input: URLs, and environment variables for passwords and certificates. Output: an [`Access`]. It
//! never shows a password: not in a URL, in debug output, or in the journal.

use rigel_model::files;
use rigel_model::{Dbms, Error, Finding, FindingName, decoded, usage};
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// The hint where a server wants a password.
pub(super) const PASSWORD_HINT: &str = "set PGPASSWORD or MYSQL_PWD, use ~/.pgpass or \
                                        --password-file, or run in a terminal to be asked";

/// Problem and hint if a password would be sent to a server without TLS.
pub(super) fn no_tls() -> (String, String) {
    (
        "offers no TLS, and the password would be readable on the network".into(),
        "enable TLS on the server; or add sslmode=disable to the URL if the network is private"
            .into(),
    )
}

/// A password. It is displayed as stars.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text` so that it is not displayed.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The password itself, only for the connection.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Protection of a connection: encryption and certificate checks. Names and meanings are those of
/// libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// No TLS.
    Disable,
    /// TLS if the server supports it; any certificate.
    Prefer,
    /// Always TLS; any certificate.
    Require,
    /// Always TLS; the certificate must be from a known authority.
    VerifyCa,
    /// Like `VerifyCa`, and the certificate must match the host's name.
    VerifyFull,
}

/// Address of one server, without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The database management system.
    pub dbms: Dbms,
    /// The user.
    pub user: String,
    /// Host name or address; for a socket its directory (`PostgreSQL`) or path (`MySQL`), with a
    /// leading slash.
    pub host: String,
    /// TCP port, or the number in the socket's name.
    pub port: u16,
    /// The database.
    pub database: String,
    /// Protection of the connection.
    pub tls: Tls,
    /// File with certificates of trusted authorities; `None` = the system's.
    pub authorities: Option<PathBuf>,
    /// The ways of logging in that the user accepts; `None` = the default.
    pub auth: Option<AuthMethods>,
    /// Whether SCRAM is bound to the server's certificate.
    pub binding: Binding,
}

/// Whether logging in is bound to the server's certificate, as libpq's `channel_binding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Binding {
    /// Never.
    Disable,
    /// Where both sides can.
    #[default]
    Prefer,
    /// Always; a server that does not is refused.
    Require,
}

/// A way of logging in to `PostgreSQL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthMethod {
    /// Nothing is asked for.
    None,
    /// The password itself.
    Password,
    /// A hash of it that whoever listens can test guesses with.
    Md5,
    /// A proof of both sides, from which nobody learns the password.
    Scram,
}

impl AuthMethod {
    const ALL: [Self; 4] = [Self::None, Self::Password, Self::Md5, Self::Scram];

    /// Its name in `require_auth`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::Scram => "scram-sha-256",
        }
    }
}

/// The ways of logging in of a `require_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthMethods([bool; 4]);

impl AuthMethods {
    /// Every way.
    pub(super) const ALL: Self = Self([true; 4]);

    /// Without those in which the server learns the password, or a hash of it, without a proof that
    /// it is the right server.
    const WITHOUT_PASSWORD: Self = Self([true, false, false, true]);

    pub(super) fn contains(self, method: AuthMethod) -> bool {
        self.0[method as usize]
    }

    /// Parses names with a comma between them, as libpq has them; with a `!` before each, all others
    /// are accepted.
    fn parse(text: &str) -> Result<Self, Error> {
        // Known to libpq, and not supported here.
        const OTHERS: [&str; 3] = ["gss", "sspi", "oauth"];
        let wrong = |what: &str| {
            usage!(
                "require_auth {what}",
                "give password, md5, scram-sha-256 or none, with a comma between them; or each \
                 with a ! before it, which accepts all others"
            )
        };
        let is_negated = text.trim_start().starts_with('!');
        let mut methods = [is_negated; 4];
        for name in text.split(',').map(str::trim) {
            let (is_excluded, name) = match name.strip_prefix('!') {
                Some(name) => (true, name),
                None => (false, name),
            };
            if is_excluded != is_negated {
                return Err(wrong("has some names with a ! and some without"));
            }
            match AuthMethod::ALL.iter().find(|method| method.name() == name) {
                Some(method) => methods[*method as usize] = !is_excluded,
                None if is_excluded && OTHERS.contains(&name) => (),
                None => return Err(wrong("has an unknown or unsupported method")),
            }
        }
        Ok(Self(methods))
    }
}

impl fmt::Display for AuthMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = AuthMethod::ALL
            .iter()
            .filter(|method| self.contains(**method));
        let names: Vec<_> = names.map(|method| method.name()).collect();
        if names.is_empty() {
            return f.write_str("!none,!password,!md5,!scram-sha-256");
        }
        f.write_str(&names.join(","))
    }
}

/// Keys allowed in the query of a URL.
const KEYS: [&str; 11] = [
    "host",
    "port",
    "user",
    "dbname",
    "socket",
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-ca",
    "require_auth",
    "channel_binding",
];

/// Keys that the environment may set, and its variables. All are those of `PostgreSQL`.
const VARIABLES: [(&str, &str); 4] = [
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("require_auth", "PGREQUIREAUTH"),
    ("channel_binding", "PGCHANNELBINDING"),
];

const USAGE: &str = "write postgres://user@host:port/database or mysql://user@host:port/database, \
                     and give the password in PGPASSWORD or MYSQL_PWD, in the file of \
                     --password-file, or at the prompt";

impl Address {
    /// True if `text` looks like the URL of a database.
    pub fn is_url(text: &str) -> bool {
        dbms_of(text).is_some()
    }

    /// Parses a URL. `environment` returns variables such as `PGUSER`.
    ///
    /// # Errors
    /// It is not such a URL, or contains a password, which every user of the machine could then
    /// read.
    pub fn parse(url: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let (dbms, rest) = dbms_of(url).ok_or_else(|| {
            usage!(
                "'{url}' is not the URL of a database",
                USAGE,
                url = shown(url)
            )
        })?;
        // Errors do not repeat the text: a misplaced part may belong to a password.
        let host = if may_hold_password(url) {
            ""
        } else {
            rest.split([':', '/', '?', '#']).next().unwrap_or_default()
        };
        let named = if host.is_empty() {
            shown(url)
        } else {
            format!("{}://{host}", dbms.name()).into()
        };
        let wrong = |what: &str| usage!("the URL '{named}' {what}", USAGE);
        // Use the last `@`: a password may contain an `@`, and characters that start other parts of
        // a URL.
        let (name, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |text: &str| decoded(text).ok_or_else(|| wrong("has an invalid % escape"));
        let user = plain(name)?;
        let names_password = |part: &str| part.to_ascii_lowercase().starts_with("password=");
        if user.contains(':') || query.split('&').any(names_password) {
            return Err(usage!(
                "the URL '{url}' contains a password, which every user of this machine can read",
                "remove it, and use PGPASSWORD, MYSQL_PWD or --password-file",
                url = shown(url)
            ));
        }
        if name.contains(['/', '?', '#']) {
            return Err(wrong("has an @ after its host; within a name, write %40"));
        }
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (place, None),
        };
        let host = plain(host.trim_start_matches('[').trim_end_matches(']'))?;
        if host.contains('@') || (host.contains(':') && !host.starts_with('/') && !is_ipv6(&host)) {
            return Err(wrong("has no host"));
        }
        let parse_port = |port: &str| port.parse::<u16>().ok().filter(|port| *port > 0);
        let port = port.map_or(Some(default_port(dbms)), parse_port);
        let mut address = Self {
            dbms,
            user,
            host,
            port: port.ok_or_else(|| wrong("has no valid port (1 to 65535) after its host"))?,
            database: plain(database)?,
            tls: Tls::Prefer,
            authorities: None,
            auth: None,
            binding: Binding::default(),
        };
        let mut trust = Trust::default();
        for (key, variable) in VARIABLES {
            let value = environment(variable).filter(|_| dbms == Dbms::Postgres);
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                address.set(key, &value, &mut trust)?;
            }
        }
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = plain(value)?;
            if !KEYS.contains(&key) {
                return Err(wrong(&format!(
                    "has an unknown parameter after the ?; known are {}",
                    KEYS.join(", ")
                )));
            }
            if dbms != Dbms::Postgres && ["require_auth", "channel_binding"].contains(&key) {
                return Err(wrong(&format!(
                    "has {key} after the ?, which is for PostgreSQL"
                )));
            }
            address.set(key, &value, &mut trust)?;
        }
        address.protect(trust)?;
        address.fill_in(environment);
        Ok(address)
    }

    /// Applies mode and authorities, once all keys and the environment are read. Public authorities
    /// have certificates for everybody: as in libpq, who trusts them must check the name too.
    fn protect(&mut self, trust: Trust) -> Result<(), Error> {
        match (trust.is_system, trust.mode) {
            (true, Some(mode)) if mode != Tls::VerifyFull => {
                return Err(usage!(
                    "sslrootcert=system has an sslmode that does not check the server's name",
                    "use sslmode=verify-full, or name the file of your own authority"
                ));
            }
            (true, _) => self.tls = Tls::VerifyFull,
            (false, mode) => self.tls = mode.unwrap_or(Tls::Prefer),
        }
        Ok(())
    }

    /// Fills in what the URL does not name: user, host and database, as the database's own programs do.
    fn fill_in(&mut self, environment: &dyn Fn(&str) -> Option<String>) {
        if self.user.is_empty() {
            let name = if self.dbms == Dbms::Postgres {
                "PGUSER"
            } else {
                "MYSQL_USER"
            };
            self.user = environment(name)
                .or_else(|| environment("USER"))
                .unwrap_or_else(|| self.dbms.name().into());
        }
        if self.host.is_empty() {
            self.host = if self.dbms == Dbms::Postgres {
                "/var/run/postgresql"
            } else {
                "/run/mysqld/mysqld.sock"
            }
            .into();
        }
        if self.database.is_empty() {
            self.database = if self.dbms == Dbms::Postgres {
                self.user.clone()
            } else {
                "rigel".into()
            };
        }
    }

    fn set(&mut self, key: &str, value: &str, trust: &mut Trust) -> Result<(), Error> {
        match key {
            "host" | "socket" => self.host = value.into(),
            "port" => {
                let number = value.parse().ok().filter(|port| *port > 0);
                self.port = number
                    .ok_or_else(|| usage!("port= in a URL is not a port", "give 1 to 65535"))?;
            }
            "user" => self.user = value.into(),
            "dbname" => self.database = value.into(),
            "sslmode" | "ssl-mode" => {
                trust.mode = Some(match value.to_ascii_lowercase().as_str() {
                    "disable" | "disabled" => Tls::Disable,
                    "allow" | "prefer" | "preferred" => Tls::Prefer,
                    "require" | "required" => Tls::Require,
                    "verify-ca" | "verify_ca" => Tls::VerifyCa,
                    "verify-full" | "verify_identity" => Tls::VerifyFull,
                    _ => {
                        return Err(usage!(
                            "'{value}' is not an sslmode",
                            "give disable, prefer, require, verify-ca or verify-full"
                        ));
                    }
                });
            }
            "sslrootcert" | "ssl-ca" => {
                trust.is_system = value == "system";
                self.authorities = (!trust.is_system).then(|| PathBuf::from(value));
            }
            "require_auth" => self.auth = Some(AuthMethods::parse(value)?),
            "channel_binding" => {
                self.binding = match value {
                    "disable" => Binding::Disable,
                    "prefer" => Binding::Prefer,
                    "require" => Binding::Require,
                    _ => {
                        return Err(usage!(
                            "channel_binding has an unknown value",
                            "give disable, prefer or require"
                        ));
                    }
                }
            }
            _ => unreachable!("one of KEYS"),
        }
        Ok(())
    }

    /// True if whoever answers has to prove to be the server, by its certificate.
    pub(super) fn is_verified(&self) -> bool {
        let has_authority = self.authorities.is_some() && self.tls != Tls::Disable;
        has_authority || matches!(self.tls, Tls::VerifyCa | Tls::VerifyFull)
    }

    /// The ways of logging in that are accepted from a server that has proven to be the right one, by its certificate
    /// or its local socket, or not.
    pub(super) fn auth_methods(&self, is_proven: bool) -> AuthMethods {
        // The user is warned of it.
        let is_asked = self.tls == Tls::Disable && !self.is_local();
        self.auth.unwrap_or(if is_proven || is_asked {
            AuthMethods::ALL
        } else {
            AuthMethods::WITHOUT_PASSWORD
        })
    }

    /// True if the server is reached through a local socket.
    pub fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }

    /// True if the connection stays on this machine: a socket, or a loopback address.
    pub fn is_local(&self) -> bool {
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        self.is_socket() || self.host == "localhost" || self.host.parse().is_ok_and(is_loopback)
    }
}

/// What a URL and the environment say of the server's certificate.
#[derive(Clone, Copy, Default)]
struct Trust {
    mode: Option<Tls>,
    /// True if the system's authorities were named.
    is_system: bool,
}

fn default_port(dbms: Dbms) -> u16 {
    match dbms {
        Dbms::Postgres => 5432,
        Dbms::Mysql => 3306,
    }
}

fn is_ipv6(host: &str) -> bool {
    // The interface of a link-local address follows a %.
    host.split('%')
        .next()
        .is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// True if `text` begins like a URL: `scheme://`.
pub fn has_scheme(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.bytes().all(is_of_scheme))
}

/// True if `text` has `password=`, as libpq's settings have it, in any case and with blanks.
pub fn names_password(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut after = text.split("password").skip(1).map(str::trim_start);
    after.any(|rest| rest.starts_with('=') || rest.starts_with("%3d"))
}

/// True if `text` may contain a password: as a URL, with any scheme and in any form, or as
/// `password=`.
pub fn may_hold_password(text: &str) -> bool {
    let url = text.split_once("://");
    let signs = ["@", "%40"];
    names_password(text)
        || url.is_some_and(|(_, rest)| {
            signs
                .iter()
                .any(|sign| rest.to_ascii_lowercase().contains(sign))
        })
}

/// `text` as errors may show it. If a URL may contain a password, only its scheme is shown, and its
/// host if that part is unambiguous; of other text that names a password, nothing.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !may_hold_password(text) {
        return Cow::Borrowed(text);
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Cow::Borrowed("…");
    };
    let scheme = scheme
        .rsplit(|character: char| !u8::try_from(character).is_ok_and(is_of_scheme))
        .next();
    let (user, place) = rest.split_once('@').unwrap_or((rest, ""));
    // Without the port: it may be a misplaced password.
    let host = place.split([':', '/', '?', '#']).next().unwrap_or_default();
    let is_plain =
        !user.contains(['/', '?', '#']) && !place.contains('@') && !host.starts_with('[');
    Cow::Owned(format!(
        "{}://{}",
        scheme.unwrap_or_default(),
        if is_plain && !host.is_empty() {
            host
        } else {
            "…"
        }
    ))
}

fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

fn dbms_of(url: &str) -> Option<(Dbms, &str)> {
    let schemes = [
        ("postgres://", Dbms::Postgres),
        ("postgresql://", Dbms::Postgres),
        ("mysql://", Dbms::Mysql),
        ("mariadb://", Dbms::Mysql),
    ];
    schemes.iter().find_map(|(scheme, dbms)| {
        let (before, rest) = url.split_at_checked(scheme.len())?;
        before.eq_ignore_ascii_case(scheme).then_some((*dbms, rest))
    })
}

impl fmt::Display for Address {
    /// Writes a URL that parses to the same address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}@", self.dbms.name(), encode(&self.user))?;
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&encode(&self.host))?;
        }
        if self.port != default_port(self.dbms) {
            write!(f, ":{}", self.port)?;
        }
        write!(f, "/{}", encode(&self.database))?;
        let tls = match self.tls {
            Tls::Disable => Some("disable"),
            Tls::Prefer => None,
            Tls::Require => Some("require"),
            Tls::VerifyCa => Some("verify-ca"),
            Tls::VerifyFull => Some("verify-full"),
        };
        let binding = match self.binding {
            Binding::Disable => Some("disable"),
            Binding::Prefer => None,
            Binding::Require => Some("require"),
        };
        let authorities = self
            .authorities
            .as_ref()
            .map(|path| encode(&path.to_string_lossy()));
        let parts = [
            ("sslmode", tls.map(String::from)),
            ("sslrootcert", authorities),
            (
                "require_auth",
                self.auth.map(|auth| encode(&auth.to_string())),
            ),
            ("channel_binding", binding.map(String::from)),
        ];
        for (number, (key, value)) in parts
            .into_iter()
            .filter_map(|(k, v)| Some((k, v?)))
            .enumerate()
        {
            write!(f, "{}{key}={value}", if number == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// Encodes characters with a meaning in URLs as `%2F` and the like.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// The servers of a run and their credentials.
#[derive(Debug, Clone)]
pub struct Access {
    /// At least one server; all are equivalent.
    pub servers: Vec<Address>,
    /// Each goes to its own server alone.
    passwords: Vec<(Address, Secret)>,
    /// Name of this run's sessions on the server.
    pub application: String,
}

impl Access {
    /// Parses URLs, which must all be of one kind of database.
    ///
    /// # Errors
    /// One is not a URL of a database, or contains a password, or they are of different kinds.
    pub fn parse<'a>(
        urls: impl IntoIterator<Item = &'a str>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let servers = urls
            .into_iter()
            .map(|url| Address::parse(url, environment))
            .collect::<Result<Vec<_>, Error>>()?;
        let first = servers
            .first()
            .ok_or_else(|| usage!("no database is given", USAGE))?;
        if let Some(other) = servers.iter().find(|other| other.dbms != first.dbms) {
            return Err(usage!(
                "'{first}' and '{other}' are different kinds of database",
                "measure them separately, and compare the runs"
            ));
        }
        // A unique name, so that two runs on one server can be distinguished. Processes in
        // different containers may have the same PID, so the name includes the time.
        let application = format!(
            "rigel-{}-{:x}",
            std::process::id(),
            rigel_device::clock::fresh_seed() & 0xFFFF_FFFF
        );
        Ok(Self {
            servers,
            passwords: Vec::new(),
            application,
        })
    }

    /// The password for the server at `address`.
    pub fn password(&self, address: &Address) -> Option<&Secret> {
        let mut passwords = self.passwords.iter();
        let (_, password) = passwords.find(|(server, _)| server == address)?;
        Some(password)
    }

    /// Sets the password for the server at `address`, and for no other.
    pub fn set_password(&mut self, address: &Address, password: Secret) {
        self.passwords.retain(|(server, _)| server != address);
        self.passwords.push((address.clone(), password));
    }

    /// The servers of rank `rank` of `size`: every server is used by one rank, or, if there are more
    /// ranks than servers, every rank uses one server.
    pub fn of_rank(&self, rank: usize, size: usize) -> Self {
        let first = rank % self.servers.len();
        let own = self.servers.iter().skip(first).step_by(size.max(1));
        let servers: Vec<Address> = own.cloned().collect();
        let mut passwords = self.passwords.clone();
        passwords.retain(|(server, _)| servers.contains(server));
        Self {
            servers,
            passwords,
            application: self.application.clone(),
        }
    }

    /// The kind of database of the servers.
    pub fn dbms(&self) -> Dbms {
        self.servers[0].dbms
    }

    /// Protection of the connection to `address`. If a password leaves this machine, TLS is
    /// required: otherwise an attacker could claim that the server has no TLS, and read the
    /// password.
    pub(super) fn tls(&self, address: &Address) -> Tls {
        let goes_out = self.password(address).is_some() && !address.is_local();
        if goes_out && address.tls == Tls::Prefer {
            Tls::Require
        } else {
            address.tls
        }
    }

    /// Warns if a password leaves this machine without TLS because the user requested so.
    pub fn clear_text_warning(&self) -> Option<Finding> {
        let in_clear = |address: &&Address| {
            let has_password = self.password(address).is_some();
            has_password && !address.is_local() && address.tls == Tls::Disable
        };
        self.servers.iter().find(in_clear).map(|address| {
            Finding::warning(
                FindingName::PasswordWithoutTls,
                format!(
                    "a password is sent to {} without TLS: anyone on the network path can read or \
                     guess it",
                    address.host
                ),
                "use sslmode=require, or verify-full, which also verifies the server, instead of \
                 sslmode=disable",
            )
        })
    }
}

/// The password for `address` from `~/.pgpass` (or the file in `PGPASSFILE`). As in libpq, a file
/// that others may read is ignored: then the second value says so.
pub fn from_pgpass(path: &Path, address: &Address) -> (Option<Secret>, Option<String>) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = std::fs::metadata(path) else {
        return (None, None);
    };
    if metadata.permissions().mode() & 0o077 != 0 {
        let why = format!(
            "'{}' is not used, because others may read it: set its mode to 0600",
            path.display()
        );
        return (None, Some(why));
    }
    let Ok(text) = files::read_text(path, files::HAND_WRITTEN_MAX) else {
        return (None, None);
    };
    (
        text.lines()
            .find_map(|line| password_in(line, address))
            .map(Secret::new),
        None,
    )
}

/// The password in a line `host:port:database:user:password` that matches `address`. `*` matches
/// everything, and a backslash escapes the next character.
fn password_in(line: &str, address: &Address) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut()?.extend(characters.next()),
            other => fields.last_mut()?.push(other),
        }
    }
    let [host, port, database, user, password] = <[String; 5]>::try_from(fields).ok()?;
    let named = if address.is_socket() {
        "localhost"
    } else {
        &address.host
    };
    let fits = |field: &str, value: &str| field == "*" || field == value;
    let all = (fits(&host, named) || host == address.host)
        && fits(&port, &address.port.to_string())
        && fits(&database, &address.database)
        && fits(&user, &address.user);
    all.then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(url: &str) -> Result<Address, Error> {
        Address::parse(url, &|_| None)
    }

    #[test]
    fn a_url_is_read_in_its_usual_forms() {
        let address = parse(
            "postgresql://ana@db.example:6432/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem",
        )
        .unwrap();
        assert_eq!(
            (address.user.as_str(), address.host.as_str(), address.port),
            ("ana", "db.example", 6432)
        );
        assert_eq!(
            (address.database.as_str(), address.tls),
            ("shop", Tls::VerifyFull)
        );
        assert_eq!(address.authorities, Some(PathBuf::from("/etc/ca.pem")));
        let socket = parse("postgres://rigel@%2Ftmp%2Fx/postgres").unwrap();
        assert!(socket.is_socket() && socket.host == "/tmp/x", "{socket:?}");
        assert_eq!(
            parse("postgres:///postgres?host=/tmp/x&user=rigel").unwrap(),
            socket
        );
        let six = parse("mysql://root@[::1]:3307/rigel").unwrap();
        assert_eq!(
            (six.host.as_str(), six.port, six.dbms),
            ("::1", 3307, Dbms::Mysql)
        );
        let words = |name: &str| (name == "PGUSER").then(|| "eva".to_string());
        assert_eq!(
            Address::parse("postgres://h", &words).unwrap().to_string(),
            "postgres://eva@h/eva"
        );
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        for url in [
            "postgres://ana:s3cret@h/d",
            "postgres://ana@h/d?password=s3cret",
            "mysql://ana:s3cret@h/d",
        ] {
            let error = parse(url).unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        assert_eq!(format!("{:?}", Secret::new("s3cret".into())), "***");
    }

    #[test]
    fn a_password_in_a_url_of_whatever_shape_is_refused_and_not_repeated() {
        let shapes = [
            "postgres://ana:s3c/ret@h/d",
            "postgres://ana:77/s3cret@h/d",
            "postgres://ana:s3c?ret@h/d",
            "postgres://ana:s3@cret@h/d",
            "postgres://ana%3As3cret@h/d",
            "postgres://ana%3As3cret%40h/d",
            "postgres://ana:s3cret%zz@h/d",
            "postgres://ana:s3cret",
            "postgres://h/d?password=s3@cret",
            "postgres://h/d?PassWord=s3cret",
            "postgres://ana@h/d?s3cret",
            "postgres://ana@h/d?s3cret=1",
            "postgres://ana@h:s3cret/d",
            "postgres://ana@h/d?port=s3cret",
            "POSTGRES://ana:s3cret@h/d",
            "oracle://ana:s3cret@h/d",
        ];
        for url in shapes {
            let error = parse(url).expect_err(url).to_string();
            let parts = ["s3c", "cret", "ret@", "s3@"];
            assert!(
                !parts.iter().any(|part| error.contains(part)),
                "{url}: {error}"
            );
        }
    }

    #[test]
    fn of_a_url_only_scheme_and_host_are_shown_and_of_other_text_all() {
        for (text, wanted) in [
            ("oracle://ana:s3cret@h:1/d", "oracle://h"),
            ("--target=oracle://ana:s3cret@h", "oracle://h"),
            ("oracle://ana:s3/cret@h", "oracle://…"),
            ("oracle://h/d?password=s3@cret", "oracle://…"),
            ("oracle://h/d?password=s3cret", "oracle://…"),
            ("oracle://h/d", "oracle://h/d"),
            ("host=h PassWord\t= s3cret", "…"),
            ("postgresql:host=h password=s3cret", "…"),
            ("--password-file=key", "--password-file=key"),
            ("/data/file@2", "/data/file@2"),
        ] {
            assert_eq!(shown(text), wanted);
        }
    }

    #[test]
    fn a_password_goes_out_of_the_machine_only_with_tls_unless_it_is_said() {
        let of = |url: &str, password: Option<&str>| {
            let mut access = Access::parse([url], &|_| None).unwrap();
            let address = access.servers[0].clone();
            if let Some(text) = password {
                access.set_password(&address, Secret::new(text.into()));
            }
            (access.tls(&address), access.clear_text_warning().is_some())
        };
        assert_eq!(
            of("postgres://ana@db1/d", Some("s3cret")),
            (Tls::Require, false)
        );
        assert_eq!(of("postgres://ana@db1/d", None), (Tls::Prefer, false));
        assert_eq!(
            of("mysql://ana@192.0.2.1/d?sslmode=disable", Some("s3cret")),
            (Tls::Disable, true)
        );
        assert_eq!(
            of("mysql://ana@192.0.2.1/d?sslmode=disable", None),
            (Tls::Disable, false)
        );
        for here in [
            "127.3.2.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost",
            "%2Ftmp",
        ] {
            assert_eq!(
                of(&format!("postgres://ana@{here}/d"), Some("s3cret")),
                (Tls::Prefer, false),
                "{here}"
            );
        }
    }

    #[test]
    fn public_authorities_are_trusted_only_with_the_name_wherever_it_is_said() {
        let of = |query: &str, mode: Option<&str>, root: Option<&str>| {
            let environment = |name: &str| match name {
                "PGSSLMODE" => mode.map(String::from),
                "PGSSLROOTCERT" => root.map(String::from),
                _ => None,
            };
            let address = Address::parse(&format!("postgres://ana@h/d{query}"), &environment);
            address.ok().map(|address| address.tls)
        };
        let system = "sslrootcert=system";
        for mode in ["disable", "allow", "prefer", "require", "verify-ca"] {
            let said = format!("sslmode={mode}");
            assert_eq!(of(&format!("?{system}&{said}"), None, None), None, "{mode}");
            assert_eq!(of(&format!("?{said}&{system}"), None, None), None, "{mode}");
            assert_eq!(
                of(&format!("?{said}"), None, Some("system")),
                None,
                "{mode}"
            );
            assert_eq!(of(&format!("?{system}"), Some(mode), None), None, "{mode}");
            assert_eq!(of("", Some(mode), Some("system")), None, "{mode}");
            let mysql = format!("mysql://ana@h/d?ssl-ca=system&ssl-mode={mode}");
            assert!(mode == "allow" || parse(&mysql).is_err(), "{mysql}");
        }
        let full = Some(Tls::VerifyFull);
        assert_eq!(of(&format!("?{system}"), None, None), full);
        assert_eq!(of("", None, Some("system")), full);
        assert_eq!(
            of(&format!("?{system}&sslmode=verify-full"), None, None),
            full
        );
        assert_eq!(
            of("?sslmode=verify-full", Some("require"), Some("system")),
            full
        );
        // A file takes the place of the system's.
        let file = "?sslrootcert=/a.pem&sslmode=require";
        assert_eq!(of(file, None, Some("system")), Some(Tls::Require));
    }

    #[test]
    fn a_password_itself_is_given_only_to_whom_it_is_meant_for() {
        let accepts = |host: &str, query: &str, is_encrypted: bool| {
            let address = parse(&format!("postgres://ana@{host}/d?{query}")).unwrap();
            let methods = address.auth_methods(is_encrypted && address.is_verified());
            AuthMethod::ALL.map(|method| methods.contains(method))
        };
        let (all, proven) = ([true; 4], [true, false, false, true]);
        for query in ["", "sslmode=prefer", "sslmode=require"] {
            assert_eq!(accepts("db1", query, true), proven, "{query}");
            // Any user of this host can listen there.
            assert_eq!(accepts("127.0.0.1", query, true), proven, "{query}");
            assert_eq!(accepts("[::1]", query, false), proven, "{query}");
        }
        for query in [
            "sslmode=verify-ca",
            "sslmode=verify-full",
            "sslmode=require&sslrootcert=/ca.pem",
        ] {
            assert_eq!(accepts("db1", query, true), all, "{query}");
        }
        // That the password is readable on the network was said.
        assert_eq!(accepts("db1", "sslmode=disable", false), all);
        assert_eq!(accepts("localhost", "sslmode=disable", false), proven);
        // A certificate that was not shown proves nothing.
        assert_eq!(accepts("localhost", "sslrootcert=/ca.pem", false), proven);
        for (methods, wanted) in [
            ("password", [false, true, false, false]),
            ("md5,scram-sha-256", [false, false, true, true]),
            ("!password,!md5,!gss", [true, false, false, true]),
            ("!none,!password,!md5,!scram-sha-256", [false; 4]),
        ] {
            assert_eq!(
                accepts("db1", &format!("require_auth={methods}"), true),
                wanted
            );
        }
        for wrong in [
            "require_auth=gss",
            "require_auth=",
            "require_auth=md5,!none",
            "channel_binding=x",
        ] {
            assert!(
                parse(&format!("postgres://h/d?{wrong}")).is_err(),
                "{wrong}"
            );
        }
        for key in ["require_auth=password", "channel_binding=require"] {
            assert!(parse(&format!("mysql://h/d?{key}")).is_err(), "{key}");
        }
        for url in [
            "postgres://ana@h/d?require_auth=none%2Cscram-sha-256&channel_binding=require",
            "postgres://ana@h/d?require_auth=%21none%2C%21password%2C%21md5%2C%21scram-sha-256",
        ] {
            assert_eq!(parse(url).unwrap().to_string(), url);
        }
    }

    #[test]
    fn a_password_belongs_to_one_server() {
        let urls = ["postgres://ana@a/d", "postgres://ana@b/d"];
        let mut access = Access::parse(urls, &|_| None).unwrap();
        let [first, second] = [access.servers[0].clone(), access.servers[1].clone()];
        access.set_password(&first, Secret::new("one".into()));
        assert_eq!(access.password(&first).map(Secret::reveal), Some("one"));
        assert_eq!(access.password(&second), None);
        let other = access.of_rank(1, 2);
        assert_eq!((other.servers.len(), other.passwords.len()), (1, 0));
        assert_eq!(access.tls(&second), Tls::Prefer);
    }

    #[test]
    fn a_url_that_makes_no_sense_is_refused() {
        for url in [
            "oracle://h",
            "postgres://h:0/d",
            "postgres://h:x/d",
            "postgres://h/%zz",
            "postgres://h/d?mode=x",
            "mysql://h/d?sslmode=maybe",
        ] {
            assert_eq!(parse(url).unwrap_err().exit_status(), 2, "{url}");
        }
        assert!(Access::parse(["postgres://h/d", "mysql://h/d"], &|_| None).is_err());
        assert!(Access::parse([], &|_| None).is_err());
    }

    #[test]
    fn a_line_of_pgpass_fits_as_libpq_has_it() {
        let address = parse("postgres://ana@h:6432/shop").unwrap();
        assert_eq!(
            password_in("h:6432:shop:ana:one", &address).as_deref(),
            Some("one")
        );
        assert_eq!(
            password_in("*:*:*:ana:a\\:b:c", &address).as_deref(),
            Some("a:b:c")
        );
        for line in [
            "#h:6432:shop:ana:one",
            "h:5432:shop:ana:one",
            "h:6432:shop:eva:one",
            "h:6432",
            "",
        ] {
            assert_eq!(password_in(line, &address), None, "{line}");
        }
        let socket = parse("postgres://ana@%2Ftmp/shop").unwrap();
        assert_eq!(
            password_in("localhost:*:*:*:two", &socket).as_deref(),
            Some("two")
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(user in "[a-z@/% ]{1,9}", host in "[a-z./-]{1,12}", port in 1u16.., database in "[a-zA-Z?&/ ]{1,9}") {
            let address = Address {
                dbms: Dbms::Postgres, user, host, port, database, tls: Tls::Require, authorities: None,
                auth: None, binding: Binding::Prefer,
            };
            prop_assert_eq!(parse(&address.to_string()).unwrap(), address);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(postgres://|mysql://)?.{0,40}") {
            let _ = parse(&text);
        }
    }
}
