//! `MariaDB` and `MySQL`: arguments to create the files and to start the server, its URL, and a
//! check that it is ready.

use super::find::Programs;
use super::terms::{ServerTerms, percent};
use rigel_device::bounded;
use std::path::Path;

/// The name of the server's socket.
pub(super) const SOCKET: &str = "socket";

/// Statements executed before anybody can connect, one per line.
pub(super) const FIRST: &str = "create user if not exists rigel@localhost;\ngrant all on *.* to \
                                rigel@localhost with grant option;\ncreate database if not exists \
                                rigel;\n";
/// File with these statements.
pub(super) const FIRST_FILE: &str = "first.sql";

/// Arguments of `mariadb-install-db`, or of a server that creates its files itself.
pub(super) fn making(folder: &Path, programs: &Programs) -> Vec<String> {
    let data = format!("--datadir={}", data(folder));
    // A server that starts removes every temporary table in its directory for them, also those of
    // other servers: none shares it.
    let temporary = format!("--tmpdir={}", folder.display());
    if programs.maker.is_none() {
        return vec![
            "--no-defaults".into(),
            "--initialize-insecure".into(),
            data,
            temporary,
        ];
    }
    let mut arguments = vec!["--no-defaults".to_string(), data, temporary];
    // No password and not bound to a system user: only the server's user can enter the folder.
    arguments.push("--auth-root-authentication-method=normal".into());
    arguments.push("--skip-test-db".into());
    // A version unpacked outside /usr does not find its own files.
    let base = programs
        .server
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/"));
    if base != Path::new("/usr") && base.join("share").is_dir() {
        arguments.push(format!("--basedir={}", base.display()));
    }
    arguments
}

/// Arguments of the server.
pub(super) fn serving(terms: &ServerTerms) -> Vec<String> {
    let folder = terms.folder.display();
    let mut arguments: Vec<String> = [
        // Must come first.
        "--no-defaults",
        "--skip-networking",
        // A second protocol of MySQL, with its own port; MariaDB does not know it.
        "--loose-mysqlx=OFF",
        "--skip-log-bin",
        "--performance-schema=ON",
        // Waits of sessions are shown only if this is on from the beginning.
        "--performance-schema-consumer-events-waits-current=ON",
        // Reads that no statement requested would be measured too.
        "--innodb-read-ahead-threshold=0",
        "--innodb-random-read-ahead=OFF",
        "--innodb-buffer-pool-load-at-startup=OFF",
        "--innodb-buffer-pool-dump-at-shutdown=OFF",
    ]
    .map(String::from)
    .into();
    arguments.push(format!("--datadir={}", data(terms.folder)));
    arguments.push(format!("--socket={folder}/{SOCKET}"));
    arguments.push(format!("--pid-file={folder}/pid"));
    arguments.push(format!("--tmpdir={folder}"));
    arguments.push(format!("--init-file={folder}/{FIRST_FILE}"));
    arguments.push(format!(
        "--innodb-buffer-pool-size={}",
        terms.buffer_cache.0
    ));
    arguments.push(format!("--max-connections={}", terms.connections()));
    if terms.direct {
        arguments.push("--innodb-flush-method=O_DIRECT".into());
    }
    arguments.extend(
        terms
            .settings
            .iter()
            .map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))),
    );
    arguments
}

/// URL for clients.
pub(super) fn url(folder: &Path) -> String {
    format!(
        "mysql://rigel@localhost/rigel?socket={}",
        percent(&folder.join(SOCKET).display().to_string())
    )
}

/// True if the server answers.
pub(super) fn is_ready(folder: &Path) -> bool {
    folder.join(SOCKET).exists()
        && mysql::Opts::from_url(&url(folder)).is_ok_and(|options| {
            let ping = || mysql::Conn::new(options).is_ok_and(|mut session| session.ping().is_ok());
            bounded::call("connecting to the private server", bounded::ANSWER, ping) == Ok(true)
        })
}

fn data(folder: &Path) -> String {
    folder.join("data").display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::find::Version;
    use rigel_model::{Bytes, MIB};

    #[test]
    fn no_server_shares_its_directory_for_temporary_tables() {
        let folder = Path::new("/somewhere/rigel-sql-1");
        let terms = ServerTerms {
            folder,
            buffer_cache: Bytes(32 * MIB),
            sessions: 4,
            direct: true,
            settings: &[],
        };
        let programs = |maker: Option<&str>| Programs {
            server: "/usr/sbin/mariadbd".into(),
            maker: maker.map(Into::into),
            version: Version::read("mariadbd  Ver 10.11.14-MariaDB").unwrap(),
        };
        for arguments in [
            making(folder, &programs(Some("/usr/bin/mariadb-install-db"))),
            making(folder, &programs(None)),
            serving(&terms),
        ] {
            let own = "--tmpdir=/somewhere/rigel-sql-1".to_string();
            assert!(arguments.contains(&own), "{arguments:?}");
        }
    }

    #[test]
    fn no_option_file_is_read_and_settings_of_the_caller_override_defaults() {
        let settings = [("innodb_read_ahead_threshold".to_string(), "56".to_string())];
        let terms = ServerTerms {
            folder: Path::new("/a b"),
            buffer_cache: Bytes(32 * MIB),
            sessions: 4,
            direct: true,
            settings: &settings,
        };
        let arguments = serving(&terms);
        assert_eq!(arguments[0], "--no-defaults");
        assert_eq!(
            arguments.last().unwrap(),
            "--innodb-read-ahead-threshold=56"
        );
        for wanted in [
            "--innodb-buffer-pool-size=33554432",
            "--max-connections=24",
            "--innodb-flush-method=O_DIRECT",
        ] {
            assert!(
                arguments.iter().any(|argument| argument == wanted),
                "{wanted}: {arguments:?}"
            );
        }
    }

    #[test]
    fn the_url_leads_to_the_socket() {
        let options = mysql::Opts::from_url(&url(Path::new("/disk one/rigel-sql-7"))).unwrap();
        assert_eq!(options.get_socket(), Some("/disk one/rigel-sql-7/socket"));
        assert_eq!(
            (options.get_user(), options.get_db_name()),
            (Some("rigel"), Some("rigel"))
        );
    }
}
