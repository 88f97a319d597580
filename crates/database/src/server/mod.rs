//! A private database server: find its programs, create, start, stop and remove it.
//!
//! Input: a directory on the storage under test. Output: an empty server of the newest installed
//! programs. It listens only on a socket, runs as an unprivileged user, has a small buffer cache
//! and reads with direct I/O where it can. It is removed when its value is dropped; [`clean`]
//! removes what a killed Rigel process leaves. Existing servers and their files are never touched.

mod account;
mod clean;
mod find;
mod mariadb;
mod memory;
mod postgres;
mod process;
mod server_dir;
mod site;
mod terms;

pub use clean::{Cleaned, Leftover, clean, is_marker, leftovers};
pub use find::Version;
pub use site::Detour;

use find::Programs;
use memory::ControlGroup;
use rigel_device::bounded::BoundedWait;
use rigel_model::{Bytes, Dbms, Error, MIB, Nanos, failed, usage};
use rustix::process::Signal;
use server_dir::ServerDir;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use terms::ServerTerms;

/// Timeouts for creating the files of a server, and for starting it.
const MAKING_MOST: Nanos = Nanos::from_secs(300);
const STARTING_MOST: Nanos = Nanos::from_secs(60);
/// Timeout for a shutdown: the server writes its cache first. And the same after a signal.
const ENDING_MOST: Nanos = Nanos::from_secs(60);
const ENDING_STOPPED: Nanos = Nanos::from_secs(5);
/// Timeout for a shutdown that writes nothing, and the same after a signal.
const QUITTING_MOST: Nanos = Nanos::from_secs(10);
const QUITTING_STOPPED: Nanos = Nanos::from_secs(2);
/// Time after which a wait for the server's end is said.
const SAID_AFTER: Nanos = Nanos::from_secs(1);
/// Memory that a server needs beside its buffer cache, and for each session: with less, the kernel
/// kills it.
const MEMORY_BASE: u64 = 64 * MIB;
const MEMORY_PER_SESSION: u64 = 4 * MIB;

/// Request for a private server.
#[derive(Debug, Clone, Copy)]
pub struct ServerRequest<'a> {
    /// The DBMS.
    pub dbms: Dbms,
    /// Where to create its folder: on the storage under test. If the server's user cannot reach it, the folder is
    /// created above it, on the same filesystem.
    pub directory: &'a Path,
    /// The folder of its programs; `None` = the newest that are found.
    pub bin: Option<&'a Path>,
    /// Size of its buffer cache.
    pub buffer_cache: Bytes,
    /// Number of concurrent sessions, including those that load.
    pub sessions: u32,
    /// Further settings by their names in the server's manual; they override all others.
    pub settings: &'a [(String, String)],
}

/// A running private server. Stopped and removed on drop.
#[derive(Debug)]
pub struct Server {
    dbms: Dbms,
    programs: Programs,
    arguments: Vec<String>,
    url: String,
    direct: bool,
    /// Memory that the server itself needs, in bytes.
    needs: u64,
    child: Option<Child>,
    /// True until it has started with settings of the user.
    has_untried_settings: bool,
    /// True if it was ended, or could not be.
    is_over: bool,
    /// Dropped after the processes in it are gone.
    group: Option<ControlGroup>,
    /// Dropped last: by then nothing else of the server is left.
    place: ServerDir,
}

impl Server {
    /// Creates a server and starts it. This takes seconds, and ends early when `stop` is set.
    ///
    /// Call it on a thread that lives as long as the server is needed. If `setpriv` is installed,
    /// the kernel ends the server together with the thread that started it, so that the server
    /// ends even if Rigel is killed.
    ///
    /// # Errors
    /// No programs are found; the directory cannot be used, or not by the server's user (then
    /// nothing was created); the server did not start, and the end of its log says why; `stop`
    /// was set. In each case nothing is left.
    pub fn start(request: &ServerRequest, stop: &AtomicBool) -> Result<Self, Error> {
        let dbms = request.dbms;
        let account = account::account(dbms)?;
        let programs = find::programs(dbms, request.bin, account.as_ref())?;
        let socket = if dbms == Dbms::Postgres {
            postgres::SOCKET
        } else {
            mariadb::SOCKET
        };
        let place = ServerDir::make(dbms, request.directory, socket, &programs.server, account)?;
        let folder = place.folder().to_path_buf();
        let able = dbms == Dbms::Mysql || postgres::can_be_direct(programs.version.major);
        let direct = able && place.can_be_direct();
        let terms = ServerTerms {
            folder: &folder,
            buffer_cache: request.buffer_cache,
            sessions: request.sessions,
            direct,
            settings: request.settings,
        };
        let (making, serving, url) = match dbms {
            Dbms::Postgres => (
                postgres::making(&folder),
                postgres::serving(&terms),
                postgres::url(&folder),
            ),
            Dbms::Mysql => (
                mariadb::making(&folder, &programs),
                mariadb::serving(&terms),
                mariadb::url(&folder),
            ),
        };
        if dbms == Dbms::Mysql {
            place.write(mariadb::FIRST_FILE, mariadb::FIRST)?;
        }
        let mut server = Self {
            dbms,
            arguments: serving,
            url,
            direct,
            needs: request
                .buffer_cache
                .0
                .saturating_add(MEMORY_BASE + u64::from(request.sessions) * MEMORY_PER_SESSION),
            child: None,
            has_untried_settings: !request.settings.is_empty(),
            is_over: false,
            group: None,
            programs,
            place,
        };
        let maker = server
            .programs
            .maker
            .as_ref()
            .unwrap_or(&server.programs.server);
        process::run(&server.place, maker, &making, MAKING_MOST, stop)?;
        server.launch(stop)?;
        Ok(server)
    }

    /// URL for clients, without a password: `postgres://rigel@%2Fdata%2Frigel-sql-7/postgres` or
    /// `mysql://rigel@localhost/rigel?socket=%2Fdata%2Frigel-sql-7%2Fsocket`. The user has all
    /// privileges.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// PID of the server; for `PostgreSQL`, of the parent of all others. 0 after [`Server::kill`].
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Its folder, which is removed with it.
    pub fn directory(&self) -> &Path {
        self.place.folder()
    }

    /// Why its folder is not in the requested directory; `None` if it is.
    pub fn detour(&self) -> Option<&Detour> {
        self.place.detour()
    }

    /// The version of its programs, displayed as `PostgreSQL 18.4`.
    pub fn version(&self) -> &Version {
        &self.programs.version
    }

    /// The folder of the programs that it runs.
    pub fn programs(&self) -> &Path {
        self.programs.server.parent().unwrap_or(Path::new("/"))
    }

    /// True if it is configured for direct I/O: its version supports it (`PostgreSQL` 16 and
    /// later), and so does the filesystem.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Its log: output of the server, and of the program that created its files.
    pub fn log(&self) -> PathBuf {
        self.place.log_path()
    }

    /// PIDs of all its processes.
    pub fn processes(&self) -> Vec<u32> {
        process::processes_in(self.place.folder())
    }

    /// Limits the memory of all its processes together, so that the page cache cannot hold its
    /// tables.
    ///
    /// Also drops the cached pages of its files. For servers without direct I/O. Call it once,
    /// after loading: a limit slows loading, and only later reads count against it.
    ///
    /// Returns the limit: `bytes` for the page cache, plus what the server may need itself (its
    /// buffer cache, 64 MiB, and 4 MiB per session). The cache can also take memory that the
    /// server does not use: rely on the limit, not on `bytes`.
    ///
    /// # Errors
    /// Why there is no limit: no control groups for memory, or no permission to create one.
    pub fn limit_page_cache(&mut self, bytes: Bytes) -> Result<Bytes, String> {
        if self.group.is_some() {
            return Err("its memory is limited already".into());
        }
        let limit = Bytes(self.needs.saturating_add(bytes.0));
        let directory = ControlGroup::place(&self.place.unique_name())?;
        // Noted before it is created, so that cleanup finds it if Rigel is killed in between.
        self.place
            .note("group", &directory.display().to_string())
            .map_err(|error| error.to_string())?;
        let group = ControlGroup::new(directory, limit.0)?;
        let moved = self.move_into(&group);
        // Stored even if some processes could not be moved: the group can be removed only after
        // those in it are gone.
        self.group = Some(group);
        moved?;
        self.place.drop_cached();
        Ok(limit)
    }

    /// Drops the pages of its files from the page cache, so that the next reads of a server without
    /// direct I/O are physical. Its own buffer cache stays.
    pub fn drop_page_cache(&self) {
        self.place.drop_cached();
    }

    /// Shuts the server down cleanly and starts it again on the same files, with an empty buffer
    /// cache.
    ///
    /// # Errors
    /// As for [`Server::start`]; what is left then is removed on drop.
    pub fn restart(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        self.end_processes(&mut |_| ())?;
        self.launch(stop)?;
        if let Some(group) = self.group.take() {
            self.move_into(&group)
                .map_err(|why| process::failed(&self.place, &why))?;
            self.group = Some(group);
        }
        Ok(())
    }

    /// Kills all its processes at once, like a crash. Its files stay.
    ///
    /// # Errors
    /// Some processes cannot be killed.
    pub fn kill(&mut self) -> Result<(), Error> {
        let gone = process::kill_all_in(self.place.folder());
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if gone {
            Ok(())
        } else {
            Err(process::failed(
                &self.place,
                "some of its processes cannot be killed",
            ))
        }
    }

    /// Shuts the server down and removes everything that belongs to it. Dropping the value does the
    /// same, but ignores errors.
    ///
    /// # Errors
    /// As [`Server::end`].
    pub fn stop(mut self) -> Result<(), Error> {
        self.end(&mut |_| ())
    }

    /// Shuts the server down and removes everything that belongs to it, once. `say` gets a line if it takes
    /// long.
    ///
    /// # Errors
    /// Its processes do not end, or its folder cannot be removed: then what is left can be cleaned up.
    pub fn end(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        if let Err(error) = self.end_processes(say) {
            self.place.leave();
            return Err(error);
        }
        self.group = None;
        self.place.remove()
    }

    fn launch(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        // Its data are discarded anyway: without Rigel nothing is worth writing.
        let with_us = if self.dbms == Dbms::Postgres {
            "QUIT"
        } else {
            "KILL"
        };
        let program = &self.programs.server;
        let child = process::spawn(&self.place, program, &self.arguments, with_us)
            .map_err(|error| process::not_started(program, &error))?;
        let noted = self.place.note("server", &child.id().to_string());
        let child = self.child.insert(child);
        noted.map_err(|error| {
            process::failed(
                &self.place,
                &format!("its marker cannot be written: {error}"),
            )
        })?;
        let folder = self.place.folder();
        let mut ended = None;
        let mut ready = false;
        process::wait_until(STARTING_MOST, stop, || {
            ended = child.try_wait().ok().flatten();
            ready = ended.is_none()
                && match self.dbms {
                    Dbms::Postgres => postgres::is_ready(folder),
                    Dbms::Mysql => mariadb::is_ready(folder),
                };
            ready || ended.is_some()
        });
        if ready {
            self.has_untried_settings = false;
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(process::stopped());
        }
        let what = match ended {
            // Of a server that starts without further settings, one of them is wrong.
            Some(_) if self.has_untried_settings => {
                let reason = process::reason(&self.place.log_end()).unwrap_or_default();
                return Err(usage!(
                    "{version} did not start with these settings: {reason}",
                    "check the names and values of --server-set, or of --vary",
                    version = self.programs.version
                ));
            }
            Some(status) => format!("{} did not start: {status}", self.programs.version),
            None => format!(
                "{} did not answer within {STARTING_MOST}",
                self.programs.version
            ),
        };
        Err(process::failed(&self.place, &what))
    }

    fn move_into(&self, group: &ControlGroup) -> Result<(), String> {
        // The parent first: from then on its children start in the group.
        group.take_in(self.pid())?;
        for process in self.processes() {
            // Ignore processes that have ended since.
            if let Err(why) = group.take_in(process)
                && !group.has(process)
                && Path::new(&format!("/proc/{process}")).exists()
            {
                return Err(why);
            }
        }
        Ok(())
    }

    fn end_processes(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        if let Some(mut child) = self.child.take() {
            // Fast shutdown: on SIGTERM, PostgreSQL would wait for its clients. MariaDB has no other.
            let fast = (ENDING_MOST, ENDING_STOPPED);
            let immediate = (QUITTING_MOST, QUITTING_STOPPED);
            let ways = match self.dbms {
                Dbms::Postgres => vec![(Signal::INT, fast), (Signal::QUIT, immediate)],
                Dbms::Mysql => vec![(Signal::TERM, fast)],
            };
            let mut is_said = false;
            for (signal, (most, stopped)) in ways {
                // Once it was waited for, its PID may belong to another process: then send no signal.
                if matches!(child.try_wait(), Ok(None)) {
                    process::signal(child.id(), signal);
                }
                let is_gone = process::wait_within(BoundedWait::until(most, stopped), |waited| {
                    if waited >= SAID_AFTER && !std::mem::replace(&mut is_said, true) {
                        say(&format!(
                            "waiting for the private server in '{}' to end",
                            self.place.folder().display()
                        ));
                    }
                    !matches!(child.try_wait(), Ok(None))
                });
                if is_gone {
                    break;
                }
            }
            let _ = child.kill();
            // Not one that waits for storage: see below.
            let killed = BoundedWait::new(process::KILLING_MOST);
            process::wait_within(killed, |_| !matches!(child.try_wait(), Ok(None)));
        }
        let folder = self.place.folder();
        if process::kill_all_in(folder) {
            return Ok(());
        }
        Err(failed!(
            "the private server in {shown}: its processes {running:?} cannot be ended",
            format!(
                "once the storage below it answers, run `{}`",
                server_dir::clean_command(folder)
            ),
            shown = folder.display(),
            running = process::processes_in(folder)
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end(&mut |_| ());
        // The group and the folder are dropped after this.
    }
}
