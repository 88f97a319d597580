//! `PostgreSQL`: arguments to create its files and to start it, its URL, and a check that it is
//! ready.

use super::terms::{ServerTerms, percent};
use rigel_model::files;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The longest socket name of the server. Its lock file has a longer name but is no socket.
pub(super) const SOCKET: &str = ".s.PGSQL.5432";

/// Arguments of `initdb`.
pub(super) fn making(folder: &Path) -> Vec<String> {
    // Measured data are written later, so no sync. `trust`: only the server's user can enter the
    // folder.
    let fixed = [
        "--username=rigel",
        "--auth=trust",
        "--no-locale",
        "--encoding=UTF8",
        "--no-sync",
    ];
    let mut arguments: Vec<String> = fixed.map(String::from).into();
    arguments.push(format!("--pgdata={}", data(folder)));
    arguments
}

/// Arguments of `postgres`.
pub(super) fn serving(terms: &ServerTerms) -> Vec<String> {
    let mut settings: Vec<(String, String)> = [
        ("listen_addresses", ""),
        ("port", "5432"),
        // Readers pin pages of small caches only briefly; no other process shares the machine's
        // huge pages with a test.
        ("huge_pages", "off"),
        ("track_io_timing", "on"),
        // Background work that nobody requested would be measured too.
        ("autovacuum", "off"),
        ("jit", "off"),
        // No standby: write no more WAL than crash safety needs.
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        // Checkpoint by WAL volume, not by time in the middle of a short run. The WAL needs at
        // most about this much space in the directory.
        ("max_wal_size", "4GB"),
        ("checkpoint_timeout", "1h"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .into();
    // PostgreSQL splits the list at commas, unless a name is in quotes.
    let directory = format!(
        "\"{}\"",
        terms.folder.display().to_string().replace('"', "\"\"")
    );
    settings.push(("unix_socket_directories".into(), directory));
    settings.push((
        "shared_buffers".into(),
        format!("{}kB", terms.buffer_cache.0 / 1024),
    ));
    settings.push(("max_connections".into(), terms.connections().to_string()));
    if terms.direct {
        settings.push(("debug_io_direct".into(), "data".into()));
    }
    settings.extend_from_slice(terms.settings);
    let mut arguments = vec!["-D".to_string(), data(terms.folder)];
    for (name, value) in settings {
        arguments.push("-c".into());
        arguments.push(format!("{name}={value}"));
    }
    arguments
}

/// True if this version supports direct I/O.
pub(super) fn can_be_direct(major: u32) -> bool {
    major >= 16
}

/// URL for clients.
pub(super) fn url(folder: &Path) -> String {
    format!(
        "postgres://rigel@{}/postgres",
        percent(&folder.display().to_string())
    )
}

/// True if the server accepts sessions: somebody listens on its socket, and its first process has
/// written so to the file of its number, as `pg_ctl` sees it too. A server that was killed leaves
/// the file, but nobody listens.
pub(super) fn is_ready(folder: &Path) -> bool {
    UnixStream::connect(folder.join(SOCKET)).is_ok()
        && files::read_text(&folder.join("data/postmaster.pid"), files::HAND_WRITTEN_MAX)
            .is_ok_and(|text| says_ready(&text))
}

/// True if the last line of this `postmaster.pid`, the eighth, says that the server is ready.
fn says_ready(text: &str) -> bool {
    text.lines()
        .nth(7)
        .is_some_and(|line| line.trim() == "ready")
}

fn data(folder: &Path) -> String {
    folder.join("data").display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::{Bytes, MIB};

    #[test]
    fn settings_of_the_caller_override_defaults() {
        let settings = [("jit".to_string(), "on".to_string())];
        let terms = ServerTerms {
            folder: Path::new("/a b/c,\"d"),
            buffer_cache: Bytes(32 * MIB),
            sessions: 30,
            direct: true,
            settings: &settings,
        };
        let arguments = serving(&terms);
        let at = |text: &str| {
            arguments
                .iter()
                .position(|argument| argument == text)
                .unwrap_or_else(|| panic!("{text}"))
        };
        assert!(at("jit=off") < at("jit=on") && at("jit=on") == arguments.len() - 1);
        at("shared_buffers=32768kB");
        at("max_connections=50");
        at("debug_io_direct=data");
        at("unix_socket_directories=\"/a b/c,\"\"d\"");
        let plain = serving(&ServerTerms {
            direct: false,
            ..terms
        });
        assert!(plain.iter().all(|argument| !argument.contains("direct=")));
    }

    #[test]
    fn a_server_is_ready_when_its_file_says_so() {
        let until_the_seventh = "4711\n/d/data\n1763800000\n5432\n/d\n\n  1234  5678\n";
        for (status, is_ready) in [("ready   \n", true), ("starting\n", false), ("", false)] {
            assert_eq!(
                says_ready(&format!("{until_the_seventh}{status}")),
                is_ready
            );
        }
    }

    #[test]
    fn the_url_leads_to_the_socket() {
        // As libpq reads it, a host that begins with a slash is a directory.
        assert_eq!(
            url(Path::new("/disk one/rigel-sql-7")),
            "postgres://rigel@%2Fdisk%20one%2Frigel-sql-7/postgres"
        );
    }
}
