//! A database server of Rigel's own: found, made, started, stopped, removed.
//!
//! Goes in: a directory on the storage under test. Comes out: a server of the newest programs that are there, empty, on
//! a socket only, as an unprivileged user, with a small buffer cache and reads past the page cache where it can. It
//! goes with the value that stands for it; what a killed Rigel leaves, [`clean`] removes. No server that was there
//! before, and no file of one, is ever touched.

mod find;
mod mariadb;
mod memory;
mod place;
mod postgres;
mod process;

pub use find::Version;
pub use place::{Cleaned, Leftover, clean, is_marker, leftovers};

use crate::model::{Bytes, Dbms, Error, MIB, Nanos};
use find::Programs;
use memory::Group;
use place::Place;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

/// Making the files of a server may take this long, and so may starting it.
const MAKING_MOST: Nanos = Nanos::from_secs(300);
const STARTING_MOST: Nanos = Nanos::from_secs(60);
/// A server that is told to end writes its cache first.
const ENDING_MOST: Nanos = Nanos::from_secs(60);
/// What a server needs beside its buffer cache, and for each session: with less, the kernel kills it.
const MEMORY_BASE: u64 = 64 * MIB;
const MEMORY_PER_SESSION: u64 = 4 * MIB;
/// Connections beyond the sessions: for those who load, watch and sample.
const MORE_CONNECTIONS: u32 = 20;

/// The server that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which system.
    pub dbms: Dbms,
    /// Where its folder is made: on the storage under test.
    pub directory: &'a Path,
    /// The folder of its programs; none = the newest that are found.
    pub bin: Option<&'a Path>,
    /// Bytes of its buffer cache.
    pub buffer_cache: Bytes,
    /// Sessions that will work at the same time, those that load included.
    pub sessions: u32,
    /// Further settings by their names in the server's manual; they have the last word.
    pub settings: &'a [(String, String)],
}

/// A private server that runs. When this value goes, it is ended and removed.
#[derive(Debug)]
pub struct Server {
    dbms: Dbms,
    programs: Programs,
    arguments: Vec<String>,
    url: String,
    direct: bool,
    /// What the server itself needs, of memory.
    needs: u64,
    child: Option<Child>,
    /// Removed after the processes in it are gone.
    group: Option<Group>,
    /// The last: nothing of the server is left by then.
    place: Place,
}

/// What the arguments of a server are made of.
#[derive(Debug, Clone, Copy)]
struct Facts<'a> {
    folder: &'a Path,
    buffer_cache: Bytes,
    sessions: u32,
    direct: bool,
    settings: &'a [(String, String)],
}

impl Facts<'_> {
    fn connections(&self) -> u32 {
        self.sessions.saturating_add(MORE_CONNECTIONS)
    }
}

impl Server {
    /// Makes a server and starts it. It takes seconds, and ends early when `stop` is set.
    ///
    /// Call it on a thread that lives as long as the server is wanted: where there is `setpriv`, the kernel ends the
    /// server together with the thread that started it, so that it goes even if Rigel is killed.
    ///
    /// # Errors
    /// No programs are there; the directory cannot be used, or not by the server's user (nothing was made then); the
    /// server did not start, and the end of its log says why; `stop` was set. In each case nothing is left.
    pub fn start(request: &Request, stop: &AtomicBool) -> Result<Self, Error> {
        let dbms = request.dbms;
        let account = place::account(dbms)?;
        let programs = find::programs(dbms, request.bin, account.as_ref())?;
        let socket = if dbms == Dbms::Postgres { postgres::SOCKET } else { mariadb::SOCKET };
        let place = Place::make(dbms, request.directory, socket, &programs.server, account)?;
        let folder = place.folder().to_path_buf();
        let able = dbms == Dbms::Mysql || postgres::can_be_direct(programs.version.major);
        let direct = able && place.can_be_direct();
        let facts = Facts {
            folder: &folder,
            buffer_cache: request.buffer_cache,
            sessions: request.sessions,
            direct,
            settings: request.settings,
        };
        let (making, serving, url) = match dbms {
            Dbms::Postgres => (postgres::making(&folder), postgres::serving(&facts), postgres::url(&folder)),
            Dbms::Mysql => (mariadb::making(&folder, &programs), mariadb::serving(&facts), mariadb::url(&folder)),
        };
        if dbms == Dbms::Mysql {
            place.write(mariadb::FIRST_FILE, mariadb::FIRST)?;
        }
        let mut server = Self {
            dbms,
            arguments: serving,
            url,
            direct,
            needs: request.buffer_cache.0 + MEMORY_BASE + u64::from(request.sessions) * MEMORY_PER_SESSION,
            child: None,
            group: None,
            programs,
            place,
        };
        let maker = server.programs.maker.as_ref().unwrap_or(&server.programs.server);
        process::run(&server.place, maker, &making, MAKING_MOST, stop)?;
        server.launch(stop)?;
        Ok(server)
    }

    /// Where clients find it, without a password: `postgres://rigel@%2Fdata%2Frigel-sql-7/postgres` or
    /// `mysql://rigel@localhost/rigel?socket=%2Fdata%2Frigel-sql-7%2Fsocket`. The user may do everything.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process of the server; of `PostgreSQL`, the parent of all others. 0 after [`Server::kill`].
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Its folder, which is removed with it.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.place.folder()
    }

    /// The version of its programs, which prints as `PostgreSQL 18.4`.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.programs.version
    }

    /// The folder of the programs that it runs.
    #[must_use]
    pub fn programs(&self) -> &Path {
        self.programs.server.parent().unwrap_or(Path::new("/"))
    }

    /// True if it was told to read past the page cache: its version can (`PostgreSQL` 16 and later), and so can the
    /// filesystem.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Its log: what the server, and the program that made its files, printed.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.place.log_path()
    }

    /// All its processes.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        process::processes_in(self.place.folder())
    }

    /// Limits the memory of all its processes together, so that the page cache cannot keep its tables; what the cache
    /// holds of its files is dropped. For servers that are not direct. Call it once, after loading: a limit slows
    /// loading, and only what is read later counts against it.
    ///
    /// Returns the limit: `bytes` for the page cache, and what the server may need itself (its buffer cache, 64 MiB,
    /// and 4 MiB a session). The cache can have what the server does not use: count on the limit, not on `bytes`.
    ///
    /// # Errors
    /// Why there is no limit: no control groups for memory, or no right to make one.
    pub fn limit_page_cache(&mut self, bytes: Bytes) -> Result<Bytes, String> {
        if self.group.is_some() {
            return Err("its memory is limited already".into());
        }
        let limit = Bytes(self.needs.saturating_add(bytes.0));
        let directory = Group::place(&self.place.unique_name())?;
        // Noted before it is made, so that it is found if Rigel is killed in between.
        self.place.note("group", &directory.display().to_string()).map_err(|error| error.to_string())?;
        let group = Group::new(directory, limit.0)?;
        let moved = self.move_into(&group);
        // Even if some of them are not in it: it can be removed only after those that are.
        self.group = Some(group);
        moved?;
        self.place.drop_cached();
        Ok(limit)
    }

    /// Ends it in good order and starts it again on the same files, with an empty buffer cache.
    ///
    /// # Errors
    /// As for [`Server::start`]; what is left then is removed when this value goes.
    pub fn restart(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        self.end_processes()?;
        self.launch(stop)?;
        if let Some(group) = self.group.take() {
            self.move_into(&group).map_err(|why| process::failed(&self.place, &why))?;
            self.group = Some(group);
        }
        Ok(())
    }

    /// Kills all its processes at once, as a crash would. Its files stay.
    ///
    /// # Errors
    /// Some processes do not go.
    pub fn kill(&mut self) -> Result<(), Error> {
        let gone = process::kill_all_in(self.place.folder());
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if gone { Ok(()) } else { Err(process::failed(&self.place, "some of its processes cannot be killed")) }
    }

    /// Ends it and removes all that it had. The same happens, silently, when the value goes.
    ///
    /// # Errors
    /// Its processes do not end, or its folder cannot be removed.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end_processes()?;
        self.group = None;
        self.place.remove()
    }

    fn launch(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        // Its data are thrown away: without Rigel nothing is worth writing.
        let with_us = if self.dbms == Dbms::Postgres { "QUIT" } else { "KILL" };
        let program = &self.programs.server;
        let child = process::spawn(&self.place, program, &self.arguments, with_us)
            .map_err(|error| process::not_started(program, &error))?;
        let noted = self.place.note("server", &child.id().to_string());
        let child = self.child.insert(child);
        noted.map_err(|error| process::failed(&self.place, &format!("its marker cannot be written: {error}")))?;
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
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(process::stopped());
        }
        let what = match ended {
            Some(status) => format!("{} did not start: {status}", self.programs.version),
            None => format!("{} did not answer within {STARTING_MOST}", self.programs.version),
        };
        Err(process::failed(&self.place, &what))
    }

    fn move_into(&self, group: &Group) -> Result<(), String> {
        // The parent first: what it starts from then on is born there.
        group.take_in(self.pid())?;
        for process in self.processes() {
            // One that has ended since is no matter.
            if let Err(why) = group.take_in(process)
                && !group.has(process)
                && Path::new(&format!("/proc/{process}")).exists()
            {
                return Err(why);
            }
        }
        Ok(())
    }

    fn end_processes(&mut self) -> Result<(), Error> {
        if let Some(mut child) = self.child.take() {
            // Fast shutdown: PostgreSQL would wait for its clients on SIGTERM.
            let signal = if self.dbms == Dbms::Postgres { Signal::INT } else { Signal::TERM };
            let patient = AtomicBool::new(false);
            // Once it is waited for, its number may be another's: so it is not signalled then.
            if matches!(child.try_wait(), Ok(None)) {
                process::signal(child.id(), signal);
            }
            process::wait_until(ENDING_MOST, &patient, || !matches!(child.try_wait(), Ok(None)));
            let _ = child.kill();
            let _ = child.wait();
        }
        if process::kill_all_in(self.place.folder()) {
            Ok(())
        } else {
            Err(process::failed(&self.place, "some of its processes cannot be ended"))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end_processes();
        // The group and the folder go after this.
    }
}

/// As a part of a URL: whatever is no plain letter, digit or one of `-._~` becomes `%XX`.
fn percent(text: &str) -> String {
    let mut safe = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            safe.push(byte as char);
        } else {
            safe.push('%');
            safe.extend([byte >> 4, byte & 15].map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_so_that_a_url_can_hold_it() {
        assert_eq!(percent("/a b/ü?.s"), "%2Fa%20b%2F%C3%BC%3F.s");
    }
}
