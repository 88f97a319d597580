//! Converts the connection string of `psql` into a URL: libpq's `host=… dbname=…`, a URL, or
//! options of psql.
//!
//! Input: the text of `CONNECT_STRING`. Output: a URL without any password, and the parts that were
//! left out. Opens nothing. No input text appears in a remark: it may be a password.

use std::fmt::Write;

/// A converted connection string.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionTerms {
    /// `postgres://user@host:port/database?sslmode=…`, with the parts that were present; `None` if
    /// the server could not be determined.
    pub(super) url: Option<String>,
    /// The database in it.
    pub(super) database: Option<String>,
    /// Sentences about parts that are not in the URL; each begins with a word that follows the
    /// key.
    pub(super) remarks: Vec<String>,
}

/// Decoded parts of a connection string.
#[derive(Default)]
struct Parts {
    host: Option<String>,
    port: Option<String>,
    user: Option<String>,
    database: Option<String>,
    tls: Option<String>,
    password: bool,
    /// Names of settings that are left out.
    dropped: Vec<&'static str>,
    /// Why the server cannot be determined.
    obscure: Option<&'static str>,
}

/// Settings of libpq that do not affect which server is used.
const LIBPQ: [&str; 37] = [
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_issuer",
    "oauth_scope",
    "options",
    "passfile",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslnegotiation",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
];

/// Those of them that protect the connection: without one, Rigel would trust more than the user does.
const PROTECTIONS: [&str; 8] = [
    "channel_binding",
    "require_auth",
    "requirepeer",
    "requiressl",
    "ssl_min_protocol_version",
    "sslcrl",
    "sslcrldir",
    "sslrootcert",
];

/// Options of psql that do not affect the server: short, long, and whether a value follows.
const PSQL: [(&str, &str, bool); 14] = [
    ("-X", "--no-psqlrc", false),
    ("-q", "--quiet", false),
    ("-A", "--no-align", false),
    ("-t", "--tuples-only", false),
    ("-w", "--no-password", false),
    ("-W", "--password", false),
    ("-1", "--single-transaction", false),
    ("-a", "--echo-all", false),
    ("-e", "--echo-queries", false),
    ("-v", "--set", true),
    ("-P", "--pset", true),
    ("-F", "--field-separator", true),
    ("-o", "--output", true),
    ("-c", "--command", true),
];

const UNREADABLE: &str = "cannot be parsed the way psql does";

/// Converts `text` into a URL; `database` is the default if it names none.
pub(super) fn connection(text: &str, database: Option<&str>) -> ConnectionTerms {
    let mut parts = Parts::default();
    if parts.read(text).is_none() {
        parts.obscure = parts.obscure.or(Some(UNREADABLE));
    }
    parts.finish(database)
}

/// The URL of `database` on psql's default server.
pub(super) fn local(database: &str) -> String {
    format!("postgres:///{}", encoded(database))
}

impl Parts {
    /// `None` if the text is invalid.
    fn read(&mut self, text: &str) -> Option<()> {
        let text = text.trim();
        if let Some(rest) = ["postgres://", "postgresql://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
        {
            return self.url(rest);
        }
        if text.split_whitespace().any(|word| word.starts_with('-')) {
            return self.options(text);
        }
        if text.contains('=') {
            return self.settings(text);
        }
        self.positions(text.split_whitespace())
    }

    /// Parses the database, then the user.
    fn positions<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) -> Option<()> {
        for name in ["dbname", "user"] {
            if let Some(word) = words.next() {
                self.set(name, word)?;
            }
        }
        words.next().is_none().then_some(())
    }

    /// Parses `user:password@host:port/database?name=value&…`, where all parts are optional.
    fn url(&mut self, text: &str) -> Option<()> {
        let (text, query) = text.split_once('?').unwrap_or((text, ""));
        let (server, database) = text.split_once('/').unwrap_or((text, ""));
        // A password with a slash in it would be taken for a database.
        if database.contains(['@', '/']) || query.contains('@') {
            return None;
        }
        let (who, server) = server.rsplit_once('@').unwrap_or(("", server));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        self.password |= !password.is_empty();
        let is_bracketed = server.starts_with('[');
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !is_bracketed || host.ends_with(']') => (host, port),
            _ => (server, ""),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        for (name, value) in [
            ("host", host),
            ("port", port),
            ("user", user),
            ("dbname", database),
        ] {
            if !value.is_empty() {
                self.set(name, &decoded(value)?)?;
            }
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            self.set(&decoded(name)?, &decoded(value)?)?;
        }
        Some(())
    }

    /// Parses any number of `name = value`; a value may be in single quotes, and a backslash
    /// escapes the next character.
    fn settings(&mut self, text: &str) -> Option<()> {
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=')?;
            let after = after.trim_start();
            let is_quoted = after.starts_with('\'');
            let mut chars = after.char_indices().skip(usize::from(is_quoted));
            let (mut value, mut end, mut is_closed) = (String::new(), after.len(), !is_quoted);
            while let Some((at, c)) = chars.next() {
                match c {
                    '\\' => value.push(chars.next()?.1),
                    '\'' if is_quoted => {
                        (end, is_closed) = (at + 1, true);
                        break;
                    }
                    c if !is_quoted && c.is_whitespace() => {
                        end = at;
                        break;
                    }
                    c => value.push(c),
                }
            }
            if !is_closed {
                return None;
            }
            self.set(name.trim(), &value)?;
            rest = after[end..].trim_start();
        }
        Some(())
    }

    /// Parses the options of psql, then the database, then the user.
    fn options(&mut self, text: &str) -> Option<()> {
        let mut words = text.split_whitespace();
        let mut positions = Vec::new();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                positions.push(word);
                continue;
            }
            let (option, mut value) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ if word.starts_with("--") || word.len() == 2 => (word, None),
                _ => (word.get(..2)?, word.get(2..)),
            };
            let name = match option {
                "-h" | "--host" => "host",
                "-p" | "--port" => "port",
                "-U" | "--username" => "user",
                "-d" | "--dbname" => "dbname",
                _ => {
                    let ignored = PSQL
                        .iter()
                        .find(|(short, long, _)| [*short, *long].contains(&option))?;
                    if ignored.2 && value.is_none() {
                        words.next()?;
                    }
                    self.dropped.push(ignored.1);
                    continue;
                }
            };
            if value.is_none() {
                value = words.next();
            }
            match value? {
                // psql also accepts a URL or settings in place of a database name.
                value if name == "dbname" && (value.contains("://") || value.contains('=')) => {
                    self.read(value)?;
                }
                value => self.set(name, value)?,
            }
        }
        self.positions(positions.into_iter())
    }

    /// `None` for a setting unknown to libpq, or an invalid value.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let place = match name {
            "password" => {
                self.password = true;
                return Some(());
            }
            _ if PROTECTIONS.contains(&name) && !value.is_empty() => {
                self.obscure = Some(
                    "protects the connection by sslrootcert, require_auth, channel_binding or \
                     another setting that is not taken over",
                );
                return Some(());
            }
            "hostaddr" | "service" | "servicefile" => {
                self.obscure = Some("names the server by a separate address or a service file");
                return Some(());
            }
            "host" if value.contains(',') => {
                self.obscure = Some("names several servers");
                return Some(());
            }
            "host" if is_host(value) => &mut self.host,
            "port" if value.parse().is_ok_and(|port: u16| port > 0) => &mut self.port,
            "user" | "dbname" if value.contains("://") || value.contains(['=', '\0']) => {
                return None;
            }
            "user" => &mut self.user,
            "dbname" => &mut self.database,
            "sslmode" if value.chars().all(|c| c.is_ascii_lowercase() || c == '-') => &mut self.tls,
            _ => {
                self.dropped
                    .push(LIBPQ.iter().find(|known| **known == name)?);
                return Some(());
            }
        };
        // In libpq, an empty value counts as absent.
        *place = (!value.is_empty()).then(|| value.to_string());
        Some(())
    }

    fn finish(mut self, database: Option<&str>) -> ConnectionTerms {
        let mut remarks = Vec::new();
        if self.password {
            remarks.push(format!("has a password, which {NO_PASSWORD}"));
        }
        self.dropped.sort_unstable();
        self.dropped.dedup();
        for name in &self.dropped {
            remarks.push(match *name {
                "--password" => {
                    "asks for a password (--password): rigel asks too, if none is set".into()
                }
                "passfile" => {
                    "names a password file (passfile), which is ignored: set PGPASSFILE".into()
                }
                "--no-password" | "--no-psqlrc" | "--quiet" | "--no-align" | "--tuples-only" => {
                    format!("has {name}, which only psql needs")
                }
                _ => format!("has {name}, which is ignored"),
            });
        }
        if let Some(why) = self.obscure {
            remarks.push(format!(
                "{why}: give the server on the command line, postgres://USER@HOST:PORT/DATABASE"
            ));
            return ConnectionTerms {
                url: None,
                database: None,
                remarks,
            };
        }
        if let (Some(_), Some(_)) = (
            &self.database,
            database.filter(|name| self.database.as_deref() != Some(name)),
        ) {
            remarks.push("names another database than DBNAME, and takes precedence".into());
        }
        self.database = self.database.or_else(|| database.map(String::from));
        ConnectionTerms {
            url: Some(self.print()),
            database: self.database,
            remarks,
        }
    }

    fn print(&self) -> String {
        let mut url = String::from("postgres://");
        let mut write = |before: &str, part: &Option<String>, after: &str| {
            if let Some(part) = part {
                let _ = write!(url, "{before}{}{after}", encoded(part));
            }
        };
        write("", &self.user, "@");
        match &self.host {
            Some(address) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                url.extend(["[", address, "]"]);
            }
            host => write("", host, ""),
        }
        let mut write = |before: &str, part: &Option<String>| {
            if let Some(part) = part {
                let _ = write!(url, "{before}{}", encoded(part));
            }
        };
        write(":", &self.port);
        write("/", &self.database);
        write("?sslmode=", &self.tls);
        url
    }
}

/// Remark for every password.
pub(super) const NO_PASSWORD: &str =
    "is not used, stored or shown: set PGPASSWORD, or put it in a password file (PGPASSFILE)";

/// True for a name, an address, the directory of a socket, or an empty text.
fn is_host(text: &str) -> bool {
    if text.starts_with(['/', '@']) {
        return !text.contains('\0');
    }
    if text.contains(':') {
        return text.parse::<std::net::Ipv6Addr>().is_ok();
    }
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Percent-encodes all characters except letters, digits and `-._~`.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// `None` for invalid percent codes.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(if *first == b'%' {
            let code = std::str::from_utf8(after.get(..2)?).ok()?;
            rest = &after[2..];
            // A sign before the digit would be accepted as part of the number.
            u8::from_str_radix(code, 16)
                .ok()
                .filter(|_| !code.starts_with('+'))?
        } else {
            *first
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> Option<String> {
        connection(text, Some("base")).url
    }

    #[test]
    fn every_manner_of_naming_a_server_gives_a_url() {
        for (text, wanted) in [
            ("pg10", "postgres:///pg10"),
            ("pg10 bob", "postgres://bob@/pg10"),
            ("", "postgres:///base"),
            ("-h db1 -p 5433 -U bob", "postgres://bob@db1:5433/base"),
            ("-hdb1 -p5433 -Ubob pgio", "postgres://bob@db1:5433/pgio"),
            (
                "--host=db1 --port 5433 --username=bob --dbname pgio",
                "postgres://bob@db1:5433/pgio",
            ),
            (
                "-h /run/postgresql pgio bob",
                "postgres://bob@%2Frun%2Fpostgresql/pgio",
            ),
            ("-d postgresql://bob@db1/pgio", "postgres://bob@db1/pgio"),
            (
                "host=db1 port=5432 user=bob dbname=pgio",
                "postgres://bob@db1:5432/pgio",
            ),
            (
                "host = db1 dbname='my base' user='o\\'hara'",
                "postgres://o%27hara@db1/my%20base",
            ),
            ("host=::1 dbname=pgio", "postgres://[::1]/pgio"),
            ("host=/run/a:b", "postgres://%2Frun%2Fa%3Ab/base"),
            (
                "postgresql://bob@db1:5432/pgio",
                "postgres://bob@db1:5432/pgio",
            ),
            ("postgres://db1", "postgres://db1/base"),
            ("postgres://[::1]:5432/pgio", "postgres://[::1]:5432/pgio"),
            ("postgres://[::1]/pgio", "postgres://[::1]/pgio"),
            (
                "postgres://%2Frun%2Fpostgresql/pgio",
                "postgres://%2Frun%2Fpostgresql/pgio",
            ),
            (
                "postgres:///pgio?host=/run/postgresql&user=bob",
                "postgres://bob@%2Frun%2Fpostgresql/pgio",
            ),
            (
                "host=db1 sslmode=verify-full",
                "postgres://db1/base?sslmode=verify-full",
            ),
        ] {
            assert_eq!(url(text).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(local("my base"), "postgres:///my%20base");
    }

    #[test]
    fn a_password_is_mentioned_and_never_shown() {
        for text in [
            "host=db1 password=hush dbname=pgio",
            "host=db1 password='hu sh' dbname=pgio",
            "postgres://bob:hush@db1/pgio",
            "postgres://bob:hu@sh@db1/pgio",
            "postgres://db1/pgio?password=hush",
            "-d postgres://bob:hush@db1/pgio -X",
        ] {
            let found = connection(text, None);
            let said = format!("{found:?}");
            assert!(
                !said.contains("hush") && !said.contains("hu sh") && !said.contains("sh@"),
                "{said}"
            );
            assert!(found.remarks[0].contains("set PGPASSWORD"), "{said}");
            assert!(
                found.url.is_some_and(|url| url.ends_with("db1/pgio")),
                "{text}"
            );
        }
    }

    #[test]
    fn where_the_server_is_not_plain_there_is_no_url() {
        for text in [
            "host=db1,db2 dbname=pgio",
            "postgres://db1:1,db2:2/pgio",
            "service=prod",
            "host=db1 hostaddr=10.0.0.1",
            "host=db1 secret=hush",
            "host=db1 hush",
            "host='hush",
            "-h",
            "-h db1 --hush",
            "-h db1 a b hush",
            "postgres://bob:hu/hush@db1/pgio",
            "host=db1 port=hush",
            "host=hu$h dbname=pgio",
            "dbname=a\\",
            "postgres://db1/%zz",
            "-d hush=hush",
            "postgres://db1/a?password=hu@hush",
            "postgres://db1/x?hush",
        ] {
            let found = connection(text, Some("base"));
            assert_eq!((&found.url, &found.database), (&None, &None), "{text}");
            let said = found.remarks.join("\n");
            assert!(
                said.contains("postgres://USER@HOST:PORT/DATABASE") && !said.contains("hush"),
                "{text}: {said}"
            );
        }
    }

    #[test]
    fn a_protection_of_the_connection_is_never_left_out() {
        for name in PROTECTIONS {
            for text in [
                format!("host=db1 dbname=pgio sslmode=require {name}=x"),
                format!("postgres://db1/pgio?sslmode=require&{name}=x"),
            ] {
                let found = connection(&text, None);
                assert_eq!(found.url, None, "{text}");
                let said = found.remarks.join("\n");
                assert!(said.contains("protects the connection"), "{text}: {said}");
            }
            // libpq takes an empty value for none.
            assert!(
                connection(&format!("host=db1 {name}=''"), Some("d"))
                    .url
                    .is_some()
            );
        }
    }

    #[test]
    fn ignored_parameters_are_named() {
        let found = connection(
            "host=db1 dbname=pgio application_name=x connect_timeout=3 passfile=/x",
            Some("other"),
        );
        let said = found.remarks.join("\n");
        for name in [
            "application_name",
            "connect_timeout",
            "passfile",
            "another database than DBNAME",
        ] {
            assert!(said.contains(name), "{name}: {said}");
        }
        assert_eq!(found.database.as_deref(), Some("pgio"));
        let found = connection("-X -v ON_ERROR_STOP=1 -W pgio", Some("pgio"));
        assert_eq!(
            (found.url.as_deref(), found.remarks.len()),
            (Some("postgres:///pgio"), 3),
            "{found:?}"
        );
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_url_is_read_as_itself(
            text in "((-[hpUdXvW]|--host=|host|port|user|dbname|password|=|'|\\\\|postgres://|[@/:?&%,]|[a-z0-9]{1,3}| |.)){0,12}",
        ) {
            if let Some(url) = url(&text) {
                prop_assert_eq!(connection(&url, None).url, Some(url));
            }
        }
    }
}
