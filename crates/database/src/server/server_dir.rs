//! The folder of a private server: ownership, detection among other folders, and cleanup after a
//! crash.
//!
//! Input: a directory on the storage under test. Output: a folder in it that only the server's user
//! can access. Its marker file is written before anything else. Rigel holds a lock on the marker
//! while it lives. The lock tells cleanup that the server is alive, even if its PID was reused. A
//! folder without a marker is never touched.

use super::account::Account;
use super::site::{Detour, Site, check_reachable, refused};
use rigel_model::files::{Directory, mount_of};
use rigel_model::{Bytes, Dbms, Error, failed, shell_path, usage};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Name prefix of the folders; a number follows.
pub(super) const NAME: &str = "rigel-sql-";
/// File that identifies the owner of the folder.
pub(super) const MARKER: &str = "rigel-server";
/// Its first line.
const FORMAT: &str = "a private server of rigel, format 1";
/// Maximum size of a marker, in bytes.
pub(super) const MARKER_MOST: u64 = 4096;
/// Output of all programs of the server.
const LOG: &str = "log";
/// Number of bytes read from the end of a log for an error.
const LOG_END: u64 = 64 * 1024;
/// Mode of the folder.
const FOLDER_MODE: Mode = Mode::RWXU;
/// The address of a socket has 107 bytes at most, including its name in the folder.
const SOCKET_MOST: usize = 100;

/// A folder of a private server; removed with all its contents on drop.
///
/// All access goes through file descriptors. The folder belongs to the server's user, who can put
/// anything under any name in it, and its path may meanwhile lead elsewhere.
#[derive(Debug)]
pub(super) struct ServerDir {
    folder: PathBuf,
    site: Site,
    inside: Directory,
    account: Option<Account>,
    /// Open marker; holds the lock.
    marker: File,
    log: File,
    removed: bool,
}

impl ServerDir {
    /// Creates a folder in `directory`. `socket` is the longest name of a socket in it. `programs`
    /// is another path that the server's user must be able to reach.
    pub(super) fn make(
        dbms: Dbms,
        directory: &Path,
        socket: &str,
        programs: &Path,
        account: Option<Account>,
    ) -> Result<Self, Error> {
        let facts = std::fs::metadata(directory).map_err(|error| refused(directory, &error))?;
        if !facts.is_dir() {
            return Err(usage!(
                "{directory} is not a directory",
                "give a directory",
                directory = directory.display()
            ));
        }
        let site = Site::find(directory, account.as_ref())?;
        let first = std::process::id();
        let names = (first..=u32::MAX).map(|number| format!("{NAME}{number}"));
        let name = names
            .into_iter()
            .find(|name| !site.path.join(name).exists())
            .unwrap_or_else(|| NAME.into());
        check_length(&site.path.join(&name).join(socket), directory)?;
        if let Some(account) = &account {
            check_reachable(
                &std::fs::canonicalize(programs).unwrap_or_else(|_| programs.into()),
                account,
            )?;
        }
        let inside = site
            .directory
            .make_inside(&name, FOLDER_MODE)
            .map_err(|error| refused(directory, &error))?;
        Self::furnish(dbms, site, &name, inside, account)
            .map_err(|error| refused(directory, &error))
    }

    /// Creates the contents of the folder; removes the folder on any error.
    fn furnish(
        dbms: Dbms,
        site: Site,
        name: &str,
        inside: Directory,
        account: Option<Account>,
    ) -> io::Result<Self> {
        let folder = site.path.join(name);
        match Self::furnished(dbms, &inside, site.detour.as_ref(), account.as_ref()) {
            Ok((marker, log)) => Ok(Self {
                folder,
                site,
                inside,
                account,
                marker,
                log,
                removed: false,
            }),
            Err(error) => {
                let _ = remove_all(&site.directory, &inside, &folder);
                Err(error)
            }
        }
    }

    /// Creates the marker and the log.
    fn furnished(
        dbms: Dbms,
        inside: &Directory,
        detour: Option<&Detour>,
        account: Option<&Account>,
    ) -> io::Result<(File, File)> {
        // Renamed to its final name only when it is complete and locked.
        let unready = "rigel-server.new";
        let mut marker = inside.create(unready)?;
        // On a filesystem without locks, cleanup relies on the process number.
        let _ = rustix::fs::flock(&marker, FlockOperation::NonBlockingLockExclusive);
        marker.write_all(
            format!(
                "{FORMAT}\nrigel {}\ndbms {}\n",
                std::process::id(),
                dbms.name()
            )
            .as_bytes(),
        )?;
        if let Some(detour) = detour {
            marker.write_all(format!("directory {}\n", detour.inode).as_bytes())?;
        }
        inside.rename(unready, MARKER)?;
        let log = inside.create(LOG)?;
        if let Some(account) = account {
            inside.give(Uid::from_raw(account.uid), Gid::from_raw(account.gid))?;
        }
        Ok((marker, log))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `None` if the folder is in the directory that the user named.
    pub(super) fn detour(&self) -> Option<&Detour> {
        self.site.detour.as_ref()
    }

    /// `None` if the server runs as the user of Rigel.
    pub(super) fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    pub(super) fn log(&self) -> &File {
        &self.log
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// The end of the log. Read through the descriptor, because the server's user may have put a
    /// link under its name.
    pub(super) fn log_end(&self) -> String {
        let length = self.log.metadata().map_or(0, |facts| facts.len());
        let mut bytes = vec![0; usize::try_from(length.min(LOG_END)).unwrap_or(0)];
        let read = self
            .log
            .read_at(&mut bytes, length.saturating_sub(LOG_END))
            .unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// The folder's own name, unique among all names that Rigel makes on this machine.
    pub(super) fn unique_name(&self) -> String {
        unique_name(&self.folder)
    }

    /// Adds a line to the marker, for cleanup.
    pub(super) fn note(&mut self, key: &str, value: &str) -> std::io::Result<()> {
        self.marker.write_all(format!("{key} {value}\n").as_bytes())
    }

    /// Writes a file into the folder, readable by the server's user.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        let write = || {
            let mut file = self.inside.create(name)?;
            if let Some(account) = &self.account {
                std::os::unix::fs::fchown(&file, Some(account.uid), Some(account.gid))?;
            }
            file.write_all(text.as_bytes())
        };
        write()
            .map_err(|error| failed!("cannot write {path}: {error}", "", path = path.display()))?;
        Ok(path)
    }

    /// True if the filesystem supports direct I/O, which bypasses the page cache.
    pub(super) fn can_be_direct(&self) -> bool {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.inside, "direct", flags, Mode::RUSR | Mode::WUSR);
        let _ = rustix::fs::unlinkat(&self.inside, "direct", AtFlags::empty());
        opened.is_ok()
    }

    /// Removes the folder. The processes of the server must be gone.
    pub(super) fn remove(&mut self) -> Result<(), Error> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        remove_all(&self.site.directory, &self.inside, &self.folder)
    }

    /// Leaves the folder to be cleaned up later.
    pub(super) fn leave(&mut self) {
        self.removed = true;
    }

    /// Drops cached pages of the files in the folder. Pages read before a memory limit was set do
    /// not count against it.
    pub(super) fn drop_cached(&self) {
        let _ = each_file(self.inside.as_fd(), &mut |file| {
            // Pages that are not yet on the device cannot be dropped.
            let _ = rustix::fs::fsync(&file);
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        });
    }
}

impl Drop for ServerDir {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Opens an entry of a directory for reading. Does not follow links, and does not block on special
/// files that others put there.
pub(super) fn open_in(
    directory: impl AsFd,
    name: impl rustix::path::Arg,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let always = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, always | flags, Mode::empty())
}

/// Contents of a marker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) rigel: u32,
    pub(super) dbms: String,
    pub(super) group: Option<PathBuf>,
    /// Inode of the directory for which the folder was made, if it is not in it.
    pub(super) directory: Option<u64>,
}

impl Marker {
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(FORMAT) {
            return None;
        }
        let mut marker = Self {
            rigel: 0,
            dbms: String::new(),
            group: None,
            directory: None,
        };
        for (key, value) in lines.filter_map(|line| line.split_once(' ')) {
            match key {
                "rigel" => marker.rigel = value.parse().ok()?,
                "dbms" => marker.dbms = value.to_string(),
                "group" => marker.group = Some(value.into()),
                "directory" => marker.directory = Some(value.parse().ok()?),
                // Written for people, or by a later version.
                _ => {}
            }
        }
        (marker.rigel > 0 && !marker.dbms.is_empty()).then_some(marker)
    }
}

/// Lists a directory, which may be open only as a handle.
fn listed(directory: impl AsFd) -> io::Result<Dir> {
    Ok(Dir::new(open_in(directory, ".", OFlags::DIRECTORY)?)?)
}

/// UTF-8 names in a directory.
pub(super) fn names_in(directory: impl AsFd) -> io::Result<Vec<String>> {
    let entries = listed(directory)?.flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_string()))
        .collect();
    names.retain(|name| name != "." && name != "..");
    Ok(names)
}

/// Calls `act` on every regular file below a directory. Follows no link, whoever owns the
/// directories.
fn each_file(directory: impl AsFd, act: &mut dyn FnMut(OwnedFd)) -> io::Result<()> {
    for name in names_in(&directory)? {
        let Ok(opened) = open_in(&directory, name.as_str(), OFlags::empty()) else {
            continue;
        };
        let Ok(facts) = rustix::fs::fstat(&opened) else {
            continue;
        };
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::Directory => each_file(opened, act)?,
            FileType::RegularFile => act(opened),
            _ => {}
        }
    }
    Ok(())
}

/// Storage space of the files below a directory.
pub(super) fn bytes_of(directory: impl AsFd) -> Bytes {
    let mut blocks = 0;
    let _ = each_file(directory, &mut |file| {
        blocks +=
            rustix::fs::fstat(&file).map_or(0, |facts| u64::try_from(facts.st_blocks).unwrap_or(0));
    });
    Bytes(blocks * 512)
}

/// Removes the folder `inside` with all its contents. It is in `parent` and was made as `folder`.
pub(super) fn remove_all(parent: impl AsFd, inside: impl AsFd, folder: &Path) -> Result<(), Error> {
    let name = folder.file_name().unwrap_or_default();
    let removed = mount_of(&parent).and_then(|mount| {
        refuse_mounts(&inside, folder, mount)?;
        empty(&inside, mount)?;
        match rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    });
    removed.map_err(|error| {
        failed!(
            "the private server's folder {shown} cannot be removed: {error}",
            format!("correct that, then run `{}`", clean_command(folder)),
            shown = folder.display()
        )
    })
}

/// The command that removes a folder of a dead server.
pub(super) fn clean_command(folder: &Path) -> String {
    let directory = folder.parent().unwrap_or(folder);
    format!("rigel sql clean {}", shell_path(directory))
}

/// Refuses a folder `path` below which something is mounted: that belongs to others. `mount` is the
/// mount of the directory that contains it.
pub(super) fn refuse_mounts(inside: impl AsFd, path: &Path, mount: u64) -> io::Result<()> {
    if mount_of(&inside)? != mount {
        return Err(mounted(path));
    }
    for entry in listed(&inside)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path = path.join(OsStr::from_bytes(name.to_bytes()));
        // Opens nothing: a file may be a pipe or a device.
        let handle = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(&inside, name, handle, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            opened => opened?,
        };
        match FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) {
            FileType::Directory => refuse_mounts(opened, &path, mount)?,
            _ if mount_of(&opened)? != mount => return Err(mounted(&path)),
            _ => {}
        }
    }
    Ok(())
}

fn mounted(path: &Path) -> io::Error {
    io::Error::other(format!(
        "something is mounted at '{}'; unmount it",
        path.display()
    ))
}

/// Removes all entries of a directory, and of those below it that are on the same `mount`.
fn empty(directory: impl AsFd, mount: u64) -> io::Result<()> {
    for entry in listed(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        let inside = open_in(&directory, name, OFlags::DIRECTORY)?;
        // Mounted since the folder was looked through.
        if mount_of(&inside)? != mount {
            return Err(mounted(Path::new(OsStr::from_bytes(name.to_bytes()))));
        }
        empty(inside, mount)?;
        rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

pub(super) fn unique_name(folder: &Path) -> String {
    let inode = std::fs::metadata(folder).map_or(0, |facts| facts.ino());
    format!(
        "{}-{inode}",
        folder.file_name().unwrap_or_default().to_string_lossy()
    )
}

fn check_length(socket: &Path, directory: &Path) -> Result<(), Error> {
    let Some(text) = socket.to_str() else {
        return Err(usage!(
            "the name of the directory {directory} is not UTF-8",
            "give one whose whole path is UTF-8",
            directory = directory.display()
        ));
    };
    if text.len() > SOCKET_MOST {
        return Err(usage!(
            "the path of the socket {text} has {count} bytes; the maximum is {SOCKET_MOST}",
            "give a directory with a shorter path on the same storage",
            count = text.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::clean::{clean, leftovers};
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("rigel-place-{name}-{}", std::process::id()));
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

    fn furnished(place: &Folder, number: u32) -> ServerDir {
        let name = format!("{NAME}{number}");
        let site = Site::find(&place.0, None).unwrap();
        let inside = site.directory.make_inside(&name, FOLDER_MODE).unwrap();
        ServerDir::furnish(Dbms::Postgres, site, &name, inside, None).unwrap()
    }

    #[test]
    fn only_leftovers_of_a_dead_rigel_are_removed() {
        let place = Folder::new("clean");
        let alive = furnished(&place, 1);
        let mut dead = furnished(&place, 2);
        dead.note("group", "/tmp").unwrap();
        dead.removed = true;
        let dead_folder = dead.folder().to_path_buf();
        drop(dead);
        // Matching names that are not ours.
        for (name, marker) in [
            ("rigel-sql-3", None),
            ("rigel-sql-4", Some("rigel 1\ndbms postgres\n")),
            ("rigel-sql-x", None),
        ] {
            std::fs::create_dir(place.0.join(name)).unwrap();
            if let Some(text) = marker {
                std::fs::write(place.0.join(name).join(MARKER), text).unwrap();
            }
        }
        std::os::unix::fs::symlink(&dead_folder, place.0.join("rigel-sql-5")).unwrap();

        let left = leftovers(&place.0).unwrap();
        assert_eq!(
            left.iter().map(|left| &left.folder).collect::<Vec<_>>(),
            [&dead_folder]
        );
        assert_eq!(
            (left[0].rigel, left[0].dbms.as_str()),
            (std::process::id(), "postgres")
        );
        let cleaned = clean(&place.0).unwrap();
        assert!(
            cleaned.removed.len() == 1 && cleaned.removed[0].contains("rigel-sql-2"),
            "{cleaned:?}"
        );
        assert!(
            cleaned.kept.len() == 1 && cleaned.kept[0].contains("rigel-sql-1: in use by rigel"),
            "{cleaned:?}"
        );
        assert!(!dead_folder.exists() && alive.folder().exists());
        for name in ["rigel-sql-3", "rigel-sql-4", "rigel-sql-x"] {
            assert!(place.0.join(name).exists(), "{name}");
        }
        assert!(leftovers(&place.0).unwrap().is_empty());
    }

    #[test]
    fn a_leftover_above_the_directory_is_removed_only_for_that_directory() {
        let place = Folder::new("above");
        let [inner, other] = ["inner", "other"].map(|name| place.0.join(name));
        for folder in [&inner, &other] {
            std::fs::create_dir(folder).unwrap();
        }
        let inode = std::fs::metadata(&inner).unwrap().ino();
        let left = place.0.join("rigel-sql-1");
        std::fs::create_dir(&left).unwrap();
        let marker = format!("{FORMAT}\nrigel 4194305\ndbms postgres\ndirectory {inode}\n");
        std::fs::write(left.join(MARKER), marker).unwrap();
        // Made in the directory above, for that one.
        let beside = place.0.join("rigel-sql-2");
        std::fs::create_dir(&beside).unwrap();
        let marker = format!("{FORMAT}\nrigel 4194305\ndbms postgres\n");
        std::fs::write(beside.join(MARKER), marker).unwrap();

        assert!(leftovers(&other).unwrap().is_empty());
        assert_eq!(clean(&other).unwrap().removed, [""; 0]);
        let found = leftovers(&inner).unwrap();
        assert!(found.len() == 1 && found[0].folder == left, "{found:?}");
        assert_eq!(clean(&inner).unwrap().removed.len(), 1);
        assert!(!left.exists() && beside.exists());
        assert_eq!(clean(&place.0).unwrap().removed.len(), 1);
    }

    #[test]
    fn a_folder_that_is_exchanged_takes_nothing_else_with_it() {
        let place = Folder::new("exchanged");
        let victim = place.0.join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("precious"), "").unwrap();
        let site = Site::find(&place.0, None).unwrap();
        let made = site.directory.make_inside("rigel-sql-1", FOLDER_MODE);
        let inside = made.unwrap();
        let folder = place.0.join("rigel-sql-1");
        // What anybody who may write to the directory can do at any time.
        std::fs::rename(&folder, place.0.join("away")).unwrap();
        std::os::unix::fs::symlink(&victim, &folder).unwrap();
        let before = std::fs::metadata(&victim).unwrap();
        let root = rustix::process::geteuid().is_root();
        let account = root.then(|| Account {
            name: "nobody".into(),
            uid: 65534,
            gid: 65534,
        });
        let mut made =
            ServerDir::furnish(Dbms::Postgres, site, "rigel-sql-1", inside, account).unwrap();
        made.write("settings", "").unwrap();
        assert!(made.can_be_direct() || !victim.join("direct").exists());
        let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
        assert_eq!(
            owner(&victim),
            before.uid(),
            "the directory behind the link was given away"
        );
        assert_eq!(
            owner(&place.0.join("away")),
            if root { 65534 } else { before.uid() }
        );
        let _ = made.remove();
        let left: Vec<_> = std::fs::read_dir(&victim)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left, ["precious"]);
        assert_eq!(
            std::fs::read_dir(place.0.join("away")).unwrap().count(),
            0,
            "the folder itself is emptied"
        );
    }

    #[test]
    fn a_log_that_is_exchanged_is_not_read_instead() {
        let place = Folder::new("log");
        let made = furnished(&place, 1);
        made.log().write_all(b"said by the server").unwrap();
        let log = made.log_path();
        std::fs::remove_file(&log).unwrap();
        std::fs::write(place.0.join("secret"), "a secret").unwrap();
        std::os::unix::fs::symlink(place.0.join("secret"), &log).unwrap();
        assert_eq!(made.log_end(), "said by the server");
    }

    #[test]
    fn root_makes_no_server_in_a_directory_of_another_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = Folder::new("foreign");
        std::os::unix::fs::chown(&place.0, Some(65534), Some(65534)).unwrap();
        let error =
            ServerDir::make(Dbms::Postgres, &place.0, "s", Path::new("/"), None).unwrap_err();
        assert!(
            error.exit_status() == 2 && error.to_string().contains("cannot make a private server"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 0);
    }

    #[test]
    fn markers_of_other_users_or_file_types_are_ignored() {
        let place = Folder::new("strange");
        let text = format!("{FORMAT}\nrigel 4194305\ndbms postgres\n");
        let folder = |number: u32| {
            let folder = place.0.join(format!("{NAME}{number}"));
            std::fs::create_dir(&folder).unwrap();
            folder
        };
        // Valid within the part that is read.
        let long = folder(1);
        std::fs::write(long.join(MARKER), format!("{text}{}", "x".repeat(5000))).unwrap();
        std::fs::create_dir(folder(2).join(MARKER)).unwrap();
        let linked = folder(3);
        std::fs::write(place.0.join("marker"), &text).unwrap();
        std::os::unix::fs::symlink(place.0.join("marker"), linked.join(MARKER)).unwrap();
        let foreign = folder(4);
        std::fs::write(foreign.join(MARKER), &text).unwrap();
        let root = rustix::process::geteuid().is_root();
        if root {
            std::os::unix::fs::chown(foreign.join(MARKER), Some(65534), Some(65534)).unwrap();
        } else {
            std::fs::remove_dir_all(&foreign).unwrap();
        }
        let cleaned = clean(&place.0).unwrap();
        assert!(
            cleaned.removed.len() == 1 && cleaned.removed[0].contains("rigel-sql-1"),
            "{cleaned:?}"
        );
        assert_eq!(cleaned.kept.len(), usize::from(root), "{cleaned:?}");
        assert!(
            !root || cleaned.kept[0].contains("rigel-sql-4: its marker belongs to user"),
            "{cleaned:?}"
        );
    }

    #[test]
    fn a_marker_is_read_back_and_others_are_not_markers() {
        let text = format!(
            "{FORMAT}\nrigel 7\ndbms mysql\ndirectory 9\nserver 8\ngroup /a b\nlater thing\n"
        );
        assert_eq!(
            Marker::read(&text),
            Some(Marker {
                rigel: 7,
                dbms: "mysql".into(),
                group: Some("/a b".into()),
                directory: Some(9),
            })
        );
        for text in [
            "",
            "rigel 7\ndbms mysql\n",
            &format!("{FORMAT}\n"),
            &format!("{FORMAT}\nrigel x\ndbms a\n"),
        ] {
            assert_eq!(Marker::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let long = PathBuf::from(format!("/{}", "x".repeat(100)));
        let error = check_length(&long.join("s"), &long).unwrap_err();
        assert!(
            error.exit_status() == 2 && error.to_string().contains("shorter path"),
            "{error}"
        );
        check_length(&PathBuf::from(format!("/{}", "x".repeat(99))), &long).unwrap();
    }

    #[test]
    fn a_directory_that_is_missing_or_a_file_is_refused() {
        let place = Folder::new("refused");
        std::fs::write(place.0.join("file"), "").unwrap();
        for name in ["file", "missing"] {
            let error = ServerDir::make(
                Dbms::Postgres,
                &place.0.join(name),
                "s",
                Path::new("/"),
                None,
            )
            .unwrap_err();
            assert!(
                error.exit_status() == 2 && error.to_string().contains(name),
                "{error}"
            );
        }
        assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 1);
    }
}
