//! The folder of a private server: whose it is, how it is told from others' folders, and what a crash leaves of it.
//!
//! Goes in: a directory on the storage under test. Comes out: a folder in it, closed to all but the server's user, with
//! a marker in it that was written before anything else. While Rigel lives it holds a lock on the marker; so whoever
//! cleans up knows what is in use, whatever numbers processes have by then. A folder without a marker is never touched.

use super::{memory, process};
use crate::model::{Dbms, Error};
use rustix::fs::{FlockOperation, OFlags};
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, Metadata};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How the folders are called; a number follows.
const NAME: &str = "rigel-sql-";
/// The file that says whose the folder is.
const MARKER: &str = "rigel-server";
/// Its first line.
const FORMAT: &str = "a private server of rigel, format 1";
/// Output of all programs of the server.
const LOG: &str = "log";
/// The address of a socket has 107 bytes at most, of which its name in the folder takes some.
const SOCKET_MOST: usize = 100;

/// Who a server runs as where Rigel is root; servers refuse to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// A folder of a private server; removed with all that is in it when this value goes.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    account: Option<Account>,
    /// Holds the lock.
    marker: File,
    log: File,
    removed: bool,
}

impl Place {
    /// A new folder in `directory`. `socket` is the longest name of a socket in it, and `programs` what the server's
    /// user must be able to reach beside it.
    pub(super) fn make(dbms: Dbms, directory: &Path, socket: &str, programs: &Path) -> Result<Self, Error> {
        let facts = std::fs::metadata(directory).map_err(|error| refused(directory, &error))?;
        if !facts.is_dir() {
            return Err(Error::asked(format!("{} is not a directory", directory.display()), "name a directory"));
        }
        let whole = std::fs::canonicalize(directory).map_err(|error| refused(directory, &error))?;
        let first = std::process::id();
        let names = (first..=u32::MAX).map(|number| whole.join(format!("{NAME}{number}")));
        let folder = names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| whole.join(NAME));
        check_length(&folder.join(socket), directory)?;
        let account = account(dbms)?;
        if let Some(account) = &account {
            check_reachable(&whole, account)?;
            check_reachable(&std::fs::canonicalize(programs).unwrap_or_else(|_| programs.into()), account)?;
        }
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| refused(directory, &error))?;
        // From here on, whatever fails takes the folder with it.
        Self::furnish(dbms, &folder, account).map_err(|error| {
            let _ = std::fs::remove_dir_all(&folder);
            refused(directory, &error)
        })
    }

    fn furnish(dbms: Dbms, folder: &Path, account: Option<Account>) -> std::io::Result<Self> {
        // It gets its name when it is whole and locked.
        let unready = folder.join("rigel-server.new");
        let mut marker = File::create_new(&unready)?;
        // A filesystem without locks: then the number of the process must do.
        let _ = rustix::fs::flock(&marker, FlockOperation::NonBlockingLockExclusive);
        marker.write_all(format!("{FORMAT}\nrigel {}\ndbms {}\n", std::process::id(), dbms.name()).as_bytes())?;
        std::fs::rename(&unready, folder.join(MARKER))?;
        let log = File::options().append(true).create_new(true).open(folder.join(LOG))?;
        if let Some(account) = &account {
            std::os::unix::fs::chown(folder, Some(account.uid), Some(account.gid))?;
        }
        Ok(Self { folder: folder.to_path_buf(), account, marker, log, removed: false })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// None where the server runs as the user of Rigel.
    pub(super) fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    pub(super) fn log(&self) -> &File {
        &self.log
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// The folder's own name, which nothing else on this machine has that Rigel makes.
    pub(super) fn unique_name(&self) -> String {
        unique_name(&self.folder)
    }

    /// Adds a line to the marker, for those who clean up.
    pub(super) fn note(&mut self, key: &str, value: &str) -> std::io::Result<()> {
        self.marker.write_all(format!("{key} {value}\n").as_bytes())
    }

    /// A file in the folder, for the server's user to read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        let write = || {
            // By now the folder is the user's: nothing that lies there is followed.
            let mut file = File::create_new(&path)?;
            if let Some(account) = &self.account {
                std::os::unix::fs::fchown(&file, Some(account.uid), Some(account.gid))?;
            }
            file.write_all(text.as_bytes())
        };
        write().map_err(|error| Error::failed(format!("cannot write {}: {error}", path.display()), ""))?;
        Ok(path)
    }

    /// True if files here can be read past the page cache.
    pub(super) fn can_be_direct(&self) -> bool {
        let path = self.folder.join("direct");
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
        let _ = std::fs::remove_file(&path);
        opened.is_ok()
    }

    /// Removes the folder; the processes of the server must be gone.
    pub(super) fn remove(&mut self) -> Result<(), Error> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        remove_folder(&self.folder)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// A folder whose Rigel is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The folder.
    pub folder: PathBuf,
    /// What server is in it: `postgres` or `mysql`.
    pub dbms: String,
    /// The process that made it, and that is gone.
    pub rigel: u32,
    /// Processes of the server that still run.
    pub running: Vec<u32>,
}

/// What [`clean`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// One sentence for each folder that was removed.
    pub removed: Vec<String>,
    /// One sentence for each that was left, with the reason.
    pub kept: Vec<String>,
}

/// Private servers in `directory` whose Rigel is gone: what [`clean`] would remove.
///
/// # Errors
/// The directory cannot be read.
pub fn leftovers(directory: &Path) -> Result<Vec<Leftover>, Error> {
    let looks = folders(directory)?.into_iter().map(|folder| look(&folder));
    Ok(looks.filter_map(|look| if let Look::Left(left, ..) = look { Some(left) } else { None }).collect())
}

/// Ends and removes the private servers in `directory` whose Rigel is gone. A folder without Rigel's marker, and one
/// whose Rigel is alive, is left as it is.
///
/// # Errors
/// The directory cannot be read, or a server that is left cannot be ended or removed.
pub fn clean(directory: &Path) -> Result<Cleaned, Error> {
    let mut cleaned = Cleaned::default();
    for folder in folders(directory)? {
        match look(&folder) {
            Look::NotOurs => {}
            Look::Kept(why) => cleaned.kept.push(format!("{}: {why}", folder.display())),
            // The lock is held until the folder is gone, so that nobody else cleans at the same time.
            Look::Left(left, marker, _lock) => {
                if !process::kill_all_in(&folder) {
                    return Err(Error::failed(
                        format!("{}: processes {:?} of its server cannot be ended", folder.display(), left.running),
                        "end them, as root if need be, and clean again",
                    ));
                }
                if let Some(group) = marker.group {
                    memory::remove_left(&group, &unique_name(&folder));
                }
                remove_folder(&folder)?;
                let mut said = format!("removed {}, a {} server of rigel {}", folder.display(), left.dbms, left.rigel);
                if !left.running.is_empty() {
                    let _ = write!(said, ", and ended its {} processes", left.running.len());
                }
                cleaned.removed.push(said);
            }
        }
    }
    Ok(cleaned)
}

/// What a folder with a fitting name is.
enum Look {
    /// No marker of ours.
    NotOurs,
    /// Of ours, and not to be removed.
    Kept(String),
    /// The lock is ours now.
    Left(Leftover, Marker, File),
}

fn look(folder: &Path) -> Look {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file: File = match rustix::fs::open(folder.join(MARKER), flags, rustix::fs::Mode::empty()) {
        Ok(file) => file.into(),
        Err(rustix::io::Errno::ACCESS) => {
            return Look::Kept("it may not be looked at: clean as its owner or root".into());
        }
        Err(_) => return Look::NotOurs,
    };
    let mut text = String::new();
    let marker = file.read_to_string(&mut text).ok().and_then(|_| Marker::read(&text));
    let Some(marker) = marker else { return Look::NotOurs };
    let in_use = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(rustix::io::Errno::WOULDBLOCK) => true,
        // No locks here: the process of this number may be another one by now, but is more likely ours.
        Err(_) => Path::new(&format!("/proc/{}", marker.rigel)).exists(),
    };
    if in_use {
        return Look::Kept(format!("in use by rigel {}", marker.rigel));
    }
    let left = Leftover {
        folder: folder.to_path_buf(),
        dbms: marker.dbms.clone(),
        rigel: marker.rigel,
        running: process::processes_in(folder),
    };
    Look::Left(left, marker, file)
}

/// What a marker says.
#[derive(Debug, PartialEq, Eq)]
struct Marker {
    rigel: u32,
    dbms: String,
    group: Option<PathBuf>,
}

impl Marker {
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(FORMAT) {
            return None;
        }
        let mut marker = Self { rigel: 0, dbms: String::new(), group: None };
        for (key, value) in lines.filter_map(|line| line.split_once(' ')) {
            match key {
                "rigel" => marker.rigel = value.parse().ok()?,
                "dbms" => marker.dbms = value.to_string(),
                "group" => marker.group = Some(value.into()),
                // Written for people, or by a later version.
                _ => {}
            }
        }
        (marker.rigel > 0 && !marker.dbms.is_empty()).then_some(marker)
    }
}

fn folders(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable =
        |error: std::io::Error| Error::asked(format!("{}: {error}", directory.display()), "name a directory");
    let whole = std::fs::canonicalize(directory).map_err(unreadable)?;
    let entries = std::fs::read_dir(whole).map_err(unreadable)?.flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter(|entry| {
            let number = entry.file_name().to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
            // What a link leads to is somewhere else.
            number.is_some() && entry.file_type().is_ok_and(|kind| kind.is_dir())
        })
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    Ok(folders)
}

fn remove_folder(folder: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::failed(
            format!("the private server's folder {} cannot be removed: {error}", folder.display()),
            "remove it",
        )),
    }
}

fn unique_name(folder: &Path) -> String {
    let inode = std::fs::metadata(folder).map_or(0, |facts| facts.ino());
    format!("{}-{inode}", folder.file_name().unwrap_or_default().to_string_lossy())
}

fn refused(directory: &Path, error: &std::io::Error) -> Error {
    Error::asked(
        format!("no private server can be made in {}: {error}", directory.display()),
        "name a directory that exists and that you may write to, on the storage to be measured",
    )
}

fn check_length(socket: &Path, directory: &Path) -> Result<(), Error> {
    let Some(text) = socket.to_str() else {
        return Err(Error::asked(
            format!("the name of the directory {} is not UTF-8", directory.display()),
            "name one whose whole path is",
        ));
    };
    if text.len() > SOCKET_MOST {
        return Err(Error::asked(
            format!("the socket {text} would have a path of {} bytes, and {SOCKET_MOST} is the most", text.len()),
            "name a directory with a shorter path on the same storage",
        ));
    }
    Ok(())
}

/// Who the server runs as; none where Rigel is not root, and it runs as the same user.
fn account(dbms: Dbms) -> Result<Option<Account>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = if dbms == Dbms::Postgres { "postgres" } else { "mysql" };
    let found = account_in(&users, own).or_else(|| account_in(&users, "nobody"));
    found.map(Some).ok_or_else(|| {
        Error::failed(
            format!("a database server refuses to run as root, and there is neither a user {own} nor nobody"),
            "run rigel as another user, who may write to the directory",
        )
    })
}

fn account_in(users: &str, name: &str) -> Option<Account> {
    let fields: Vec<&str> =
        users.lines().map(|line| line.split(':').collect()).find(|line: &Vec<_>| line[0] == name)?;
    let number = |at: usize| fields.get(at)?.parse().ok();
    let account = Account { name: name.to_string(), uid: number(2)?, gid: number(3)? };
    // A user of this name that is root in disguise does not help.
    (account.uid != 0).then_some(account)
}

/// Every folder on the way to `path`, itself included, lets the user through.
fn check_reachable(path: &Path, account: &Account) -> Result<(), Error> {
    for folder in path.ancestors() {
        let closed = std::fs::metadata(folder).is_ok_and(|facts| !lets_through(&facts, account));
        if closed {
            return Err(Error::asked(
                format!(
                    "the server would run as the user {}, whom the folder {} does not let through to {}",
                    account.name,
                    folder.display(),
                    path.display()
                ),
                format!("name a directory that {} can reach, or `chmod o+x {}`", account.name, folder.display()),
            ));
        }
    }
    Ok(())
}

fn lets_through(facts: &Metadata, account: &Account) -> bool {
    let bit = if facts.uid() == account.uid {
        0o100
    } else if facts.gid() == account.gid {
        0o010
    } else {
        0o001
    };
    facts.mode() & bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rigel-place-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn furnished(place: &Folder, number: u32) -> Place {
        let folder = place.0.join(format!("{NAME}{number}"));
        std::fs::create_dir(&folder).unwrap();
        Place::furnish(Dbms::Postgres, &folder, None).unwrap()
    }

    #[test]
    fn what_a_dead_rigel_left_is_removed_and_nothing_else() {
        let place = Folder::new("clean");
        let alive = furnished(&place, 1);
        let mut dead = furnished(&place, 2);
        dead.note("group", "/tmp").unwrap();
        dead.removed = true;
        let dead_folder = dead.folder().to_path_buf();
        drop(dead);
        // Of the right name, and not of ours.
        for (name, marker) in
            [("rigel-sql-3", None), ("rigel-sql-4", Some("rigel 1\ndbms postgres\n")), ("rigel-sql-x", None)]
        {
            std::fs::create_dir(place.0.join(name)).unwrap();
            if let Some(text) = marker {
                std::fs::write(place.0.join(name).join(MARKER), text).unwrap();
            }
        }
        std::os::unix::fs::symlink(&dead_folder, place.0.join("rigel-sql-5")).unwrap();

        let left = leftovers(&place.0).unwrap();
        assert_eq!(left.iter().map(|left| &left.folder).collect::<Vec<_>>(), [&dead_folder]);
        assert_eq!((left[0].rigel, left[0].dbms.as_str()), (std::process::id(), "postgres"));
        let cleaned = clean(&place.0).unwrap();
        assert!(cleaned.removed.len() == 1 && cleaned.removed[0].contains("rigel-sql-2"), "{cleaned:?}");
        assert!(cleaned.kept.len() == 1 && cleaned.kept[0].contains("rigel-sql-1: in use by rigel"), "{cleaned:?}");
        assert!(!dead_folder.exists() && alive.folder().exists());
        for name in ["rigel-sql-3", "rigel-sql-4", "rigel-sql-x"] {
            assert!(place.0.join(name).exists(), "{name}");
        }
        assert!(leftovers(&place.0).unwrap().is_empty());
    }

    #[test]
    fn a_marker_is_read_back_and_others_are_not_markers() {
        let text = format!("{FORMAT}\nrigel 7\ndbms mysql\nserver 8\ngroup /a b\nlater thing\n");
        assert_eq!(Marker::read(&text), Some(Marker { rigel: 7, dbms: "mysql".into(), group: Some("/a b".into()) }));
        for text in ["", "rigel 7\ndbms mysql\n", &format!("{FORMAT}\n"), &format!("{FORMAT}\nrigel x\ndbms a\n")] {
            assert_eq!(Marker::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_folder_that_is_closed_to_the_user_is_named() {
        let place = Folder::new("closed");
        let inner = place.0.join("inner");
        std::fs::create_dir(&inner).unwrap();
        let stranger = Account { name: "stranger".into(), uid: 4_000_000, gid: 4_000_000 };
        let mode = |bits| std::fs::set_permissions(&place.0, std::fs::Permissions::from_mode(bits)).unwrap();
        mode(0o701);
        check_reachable(&inner, &stranger).unwrap();
        mode(0o770);
        let error = check_reachable(&inner, &stranger).unwrap_err().to_string();
        assert!(
            error.contains("the user stranger") && error.contains(&format!("chmod o+x {}`", place.0.display())),
            "{error}"
        );
        let facts = std::fs::metadata(&place.0).unwrap();
        let insider = |uid, gid| Account { name: "insider".into(), uid, gid };
        assert!(lets_through(&facts, &insider(facts.uid(), 4_000_000)));
        assert!(lets_through(&facts, &insider(4_000_000, facts.gid())));
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let long = PathBuf::from(format!("/{}", "x".repeat(100)));
        let error = check_length(&long.join("s"), &long).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains("shorter path"), "{error}");
        check_length(&PathBuf::from(format!("/{}", "x".repeat(99))), &long).unwrap();
    }

    #[test]
    fn users_are_found_by_name_and_root_is_none() {
        let users = "root:x:0:0:root:/r:/bin/sh\npostgres:x:101:104:,,,:/p:/bin/sh\nnobody:x:0:0::/:/bin/false\n";
        assert_eq!(account_in(users, "postgres").map(|found| (found.uid, found.gid)), Some((101, 104)));
        assert_eq!(account_in(users, "nobody"), None);
        assert_eq!(account_in(users, "post"), None);
    }

    #[test]
    fn a_directory_that_is_missing_or_a_file_is_refused() {
        let place = Folder::new("refused");
        std::fs::write(place.0.join("file"), "").unwrap();
        for name in ["file", "missing"] {
            let error = Place::make(Dbms::Postgres, &place.0.join(name), "s", Path::new("/")).unwrap_err();
            assert!(error.exit_status() == 2 && error.to_string().contains(name), "{error}");
        }
        assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 1);
    }
}
