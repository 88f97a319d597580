//! Counters of `MariaDB` and `MySQL`, and the waits of their sessions, through a separate
//! connection to one server.
//!
//! Input: the connection IDs of our sessions. Output: the server's counters, which cover the whole
//! server: neither product counts per table. The server's settings are never changed to see more.

use super::client::failed;
use super::connection::MysqlConnection;
use crate::access::Address;
use crate::peer;
use rigel_device::clock::Clock;
use rigel_device::rights;
use rigel_model::{Error, Nanos, ServerSample, files};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Observes one server.
pub(super) struct MysqlMonitor {
    probe: Mutex<MysqlProbe>,
    /// Connection IDs of our sessions.
    sessions: Mutex<BTreeSet<u64>>,
    /// The server's process, if it runs on this machine.
    process: Option<u32>,
}

struct MysqlProbe {
    client: MysqlConnection,
    /// True if the server instruments the waits of its threads.
    sees_waits: bool,
    /// True if the server times its reads of data files.
    times_reads: bool,
    seen: BTreeMap<String, u64>,
    looks: u64,
}

impl MysqlMonitor {
    pub(super) fn new(mut client: MysqlConnection, address: &Address) -> Result<Self, Error> {
        // Some users lack the privilege, and some servers lack the feature.
        let mut is_so = |text: &str| {
            client
                .query_first::<u64>(text)
                .ok()
                .flatten()
                .is_some_and(|count| count > 0)
        };
        let on = is_so("SELECT @@performance_schema");
        let sees_waits =
            on && is_so(
                "SELECT COUNT(*) FROM performance_schema.setup_consumers WHERE NAME = \
                 'events_waits_current' AND ENABLED = 'YES'",
            ) && client.query_drop(WAITS).is_ok();
        let times_reads = on && client.query_drop(READ_TIME).is_ok();
        client
            .query_drop(COUNTERS)
            .map_err(|error| failed(address, "report its statistics", &error))?;
        let process = process(&mut client, address);
        let probe = MysqlProbe {
            client,
            sees_waits,
            times_reads,
            seen: BTreeMap::new(),
            looks: 0,
        };
        Ok(Self {
            probe: Mutex::new(probe),
            sessions: Mutex::new(BTreeSet::new()),
            process,
        })
    }

    /// The server's process, if it runs on this machine.
    pub(super) fn process(&self) -> Option<u32> {
        self.process
    }

    /// Adds one of our sessions.
    pub(super) fn watch(&self, session: u32) {
        self.sessions().insert(session.into());
    }

    pub(super) fn begin(&self) {
        let mut probe = self.probe();
        probe.seen.clear();
        probe.looks = 0;
    }

    /// Samples the waits. Ignores errors: the sessions detect a server that does not answer.
    pub(super) fn look(&self) {
        let sessions = self.sessions().clone();
        let _ = self.probe().look(&sessions);
    }

    pub(super) fn counters(&self) -> Option<ServerSample> {
        self.probe().counters().ok()
    }

    /// Waits until the sessions are gone. The counters themselves are correct at once.
    pub(super) fn flush(&self) {
        let sessions = self.sessions().clone();
        let clock = Clock::real();
        for _ in 0..100 {
            let there = self.probe().processes();
            if !there.is_ok_and(|there| there.iter().any(|(number, ..)| sessions.contains(number)))
            {
                break;
            }
            clock.wait_until(clock.now().plus(Nanos::from_millis(50)));
        }
        self.sessions().clear();
    }

    fn probe(&self) -> MutexGuard<'_, MysqlProbe> {
        self.probe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters. `Com_commit` counts explicit COMMIT statements, which we do not use; `Com_update`
/// counts ours, each a transaction. `Handler_commit` would also count reads, and count an update
/// twice with a binary log.
const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                        ('Innodb_buffer_pool_read_requests', 'Innodb_pages_read', \
                        'Innodb_pages_written', 'Innodb_os_log_written', 'Innodb_os_log_fsyncs', \
                        'Com_commit', 'Com_update')";

/// Total time of reads of data files, in picoseconds.
const READ_TIME: &str = "SELECT CAST(SUM_TIMER_READ AS UNSIGNED) FROM \
                         performance_schema.file_summary_by_event_name WHERE EVENT_NAME = \
                         'wait/io/file/innodb/innodb_data_file' AND COUNT_READ > 0";

/// The current waits of each connection, the innermost last.
const WAITS: &str = "SELECT t.PROCESSLIST_ID, t.PROCESSLIST_COMMAND, w.EVENT_NAME FROM \
                     performance_schema.threads t LEFT JOIN \
                     performance_schema.events_waits_current w ON w.THREAD_ID = t.THREAD_ID AND \
                     w.END_EVENT_ID IS NULL WHERE t.PROCESSLIST_ID IS NOT NULL ORDER BY w.EVENT_ID";

impl MysqlProbe {
    fn look(&mut self, sessions: &BTreeSet<u64>) -> Result<(), mysql::Error> {
        let events = if self.sees_waits {
            self.waits(sessions)?
        } else {
            self.states(sessions)?
        };
        for event in events {
            *self.seen.entry(event).or_default() += 1;
        }
        self.looks += 1;
        Ok(())
    }

    /// The wait of each active session.
    fn waits(&mut self, sessions: &BTreeSet<u64>) -> Result<Vec<String>, mysql::Error> {
        let rows: Vec<(u64, Option<String>, Option<String>)> = self.client.query(WAITS)?;
        let mut events = BTreeMap::new();
        for (number, command, event) in rows {
            if sessions.contains(&number) && command.as_deref().is_some_and(works) {
                events.insert(
                    number,
                    event
                        .as_deref()
                        .and_then(waiting)
                        .unwrap_or("CPU")
                        .to_string(),
                );
            }
        }
        Ok(events.into_values().collect())
    }

    /// The state of each active session, used if waits are not instrumented.
    fn states(&mut self, sessions: &BTreeSet<u64>) -> Result<Vec<String>, mysql::Error> {
        let ours = self
            .processes()?
            .into_iter()
            .filter(|(number, ..)| sessions.contains(number));
        let working = ours.filter(|(_, command, _)| works(command));
        Ok(working
            .map(|(.., state)| format!("state:{}", if state.is_empty() { "none" } else { &state }))
            .collect())
    }

    /// ID, command and state of every connection that this user may see, which includes its own.
    fn processes(&mut self) -> Result<Vec<(u64, String, String)>, mysql::Error> {
        let rows: Vec<mysql::Row> = self.client.query("SHOW FULL PROCESSLIST")?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let text = |name: &str| {
                    row.get_opt::<String, _>(name)
                        .and_then(Result::ok)
                        .unwrap_or_default()
                };
                Some((row.get_opt("Id")?.ok()?, text("Command"), text("State")))
            })
            .collect())
    }

    fn counters(&mut self) -> Result<ServerSample, mysql::Error> {
        let rows: Vec<(String, String)> = self.client.query(COUNTERS)?;
        let counters: HashMap<String, u64> = rows
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect();
        let number = |name: &str| counters.get(name).copied();
        let read_time: Option<u64> = if self.times_reads {
            self.client.query_first(READ_TIME)?
        } else {
            None
        };
        Ok(ServerSample {
            logical: number("Innodb_buffer_pool_read_requests"),
            physical: number("Innodb_pages_read"),
            read_time: read_time.map(|picoseconds| Nanos(picoseconds / 1000)),
            written: number("Innodb_pages_written"),
            log_bytes: number("Innodb_os_log_written"),
            log_syncs: number("Innodb_os_log_fsyncs"),
            commits: number("Com_commit")
                .zip(number("Com_update"))
                .map(|(commits, updates)| commits + updates),
            waits: self.seen.clone(),
            looks: self.looks,
            ..ServerSample::default()
        })
    }
}

/// True for a command that is more than an idle connection.
fn works(command: &str) -> bool {
    !matches!(command, "Sleep" | "Daemon" | "Connect")
}

/// The wait in an event's name, such as `io/file/innodb/innodb_data_file`. A table's own event
/// covers all work for a row, including CPU time, and is not a wait.
fn waiting(event: &str) -> Option<&str> {
    event
        .strip_prefix("wait/")
        .filter(|wait| !wait.starts_with("io/table/"))
}

/// The server's process, if it runs on this machine.
fn process(client: &mut MysqlConnection, address: &Address) -> Option<u32> {
    let pid = if address.is_socket() {
        listener(Path::new(&address.host))
    } else if ["localhost", "127.0.0.1", "::1"].contains(&address.host.as_str()) {
        let files: (String, String) = client.query_first("SELECT @@pid_file, @@datadir").ok()??;
        let path = Path::new(&files.1).join(&files.0);
        // The server names the path: it may be anything that this user can open.
        rights::to_connect(|| files::read_text(&path, files::HAND_WRITTEN_MAX))
            .ok()
            .and_then(|text| text.trim().parse().ok())
    } else {
        None
    };
    pid.filter(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        ["mariadbd", "mysqld"].contains(&name.trim())
    })
}

/// The process that listens on a socket. The kernel tells it to everybody who may connect, while
/// the server's own PID file is often readable only by its own user.
fn listener(path: &Path) -> Option<u32> {
    let stream = rights::to_connect(|| UnixStream::connect(path)).ok()?;
    let peer = peer::credentials(stream.as_fd())?;
    u32::try_from(peer.pid).ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_distinguished_from_work() {
        assert_eq!(
            waiting("wait/io/file/innodb/innodb_data_file"),
            Some("io/file/innodb/innodb_data_file")
        );
        assert_eq!(waiting("wait/io/table/sql/handler"), None);
        assert_eq!(waiting("idle"), None);
        assert!(works("Execute") && works("Query") && !works("Sleep"));
    }

    #[test]
    fn who_listens_on_a_socket_is_found() {
        let path = std::env::temp_dir().join(format!("rigel-listener-{}", std::process::id()));
        let listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let found = listener(&path);
        std::fs::remove_file(&path).unwrap();
        drop(listening);
        assert_eq!(found, Some(std::process::id()));
        assert_eq!(listener(&path), None);
    }
}
