//! A directory in which files are created.
//!
//! It is opened once, and everything in it is accessed through that descriptor, so it does not
//! matter where its path leads later. A file is created under a new name, and gets the name of a
//! result only when it is complete. A link that somebody put there is never followed.
//!
//! If Rigel is root, another user must not be able to choose what root writes to:
//! * the directory itself must be root's, and nobody else may exchange its contents: it is not
//!   writable for its group or for all, or it has the sticky bit, like `/tmp`;
//! * a symbolic link in its path is followed only if only root could have made it.
//!
//! For other users there are no such checks: they choose their own directories.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// A handle to access the contents of a directory, which needs no permission to list it.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Creates a file that did not exist before, without following links.
const NEW: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Opens a file for appending, without following links.
const ADD: OFlags = OFlags::RDWR
    .union(OFlags::APPEND)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Mode of a new file, before the umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Mode of a new directory of root, before the umask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
/// Maximum number of links in a path, as in the kernel; a path with more is a cycle.
const LINKS_MAX: usize = 40;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
}

impl Directory {
    /// Opens the directory at `path` to create files in it.
    ///
    /// # Errors
    /// It does not exist, or root must not write there.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !is_root() {
            return Ok(Self {
                handle: rustix::fs::open(or_here(path), HANDLE, Mode::empty())?,
            });
        }
        let handle = walk(path, IfMissing::Refused)?;
        refuse_foreign(&named(path), &rustix::fs::fstat(&handle)?)?;
        Ok(Self { handle })
    }

    /// Like [`Directory::open`], but first creates the directory and its parents if missing.
    ///
    /// # Errors
    /// It cannot be created, or root must not write there, or in the directory in which the first is missing.
    pub fn make(path: &Path) -> io::Result<Self> {
        if is_root() {
            drop(walk(path, IfMissing::Made)?);
        } else {
            std::fs::create_dir_all(path)?;
        }
        Self::open(path)
    }

    /// Creates a directory in this one, owned by the user Rigel runs as.
    ///
    /// # Errors
    /// The name is taken, or it cannot be created. Or another user has replaced it by their own,
    /// which is possible for anybody who may write to this directory.
    pub fn make_inside(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.handle, name.as_ref(), mode)?;
        let handle = rustix::fs::openat(
            &self.handle,
            name.as_ref(),
            HANDLE | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        let inside = Self { handle };
        let is_own =
            rustix::fs::fstat(&inside.handle)?.st_uid == rustix::process::geteuid().as_raw();
        if !is_own || !inside.is_empty()? {
            return Err(io::Error::other(format!(
                "'{}' was replaced as soon as it was created",
                name.as_ref().display()
            )));
        }
        Ok(inside)
    }

    /// True if the directory is empty.
    ///
    /// # Errors
    /// It cannot be listed.
    pub fn is_empty(&self) -> io::Result<bool> {
        for entry in Dir::new(self.listed()?)? {
            if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Creates a file for appending.
    ///
    /// # Errors
    /// The name is taken, even by a link, or nothing can be created here.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.handle, name.as_ref(), ADD | NEW, FILE_MODE)?.into())
    }

    /// Opens an existing file for reading and appending.
    ///
    /// # Errors
    /// It is missing, a link, or not a regular file, or may not be written to. Or others may make files in this
    /// directory, and it is another user's, or has another name elsewhere.
    pub fn append(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let file = self.open_regular(name.as_ref(), ADD)?;
        if is_writable_for_others(&rustix::fs::fstat(&self.handle)?) {
            refuse_planted(&rustix::fs::fstat(&file)?)?;
        }
        Ok(file)
    }

    /// True if a regular file has this name, and false if the name is free.
    fn has_regular(&self, name: &OsStr) -> io::Result<bool> {
        match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            facts => refuse_special(&facts?).map(|()| true),
        }
    }

    /// Opens the file of this name for reading; `None` if the name is free.
    ///
    /// # Errors
    /// It is a link, or not a regular file, or may not be read.
    fn existing(&self, name: &OsStr) -> io::Result<Option<File>> {
        // Opening a device could already do something to it.
        if !self.has_regular(name)? {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        self.open_regular(name, flags).map(Some)
    }

    fn open_regular(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let opened =
            rustix::fs::openat(&self.handle, name, flags | OFlags::NONBLOCK, Mode::empty());
        let file = File::from(opened.map_err(|error| match error {
            Errno::LOOP => is_link(),
            other => other.into(),
        })?);
        refuse_special(&rustix::fs::fstat(&file)?)?;
        Ok(file)
    }

    /// True if the file of this name is a mount of its own, as a container runtime mounts single files.
    fn is_mounted_alone(&self, name: &OsStr) -> io::Result<bool> {
        // Opens nothing: a file may be a pipe or a device.
        let handle = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.handle, name, handle, Mode::empty())?;
        Ok(mount_of(&self.handle)? != mount_of(opened)?)
    }

    /// Writes a complete file that replaces any file of this name, and waits until it is on disk. A
    /// partial file never has the name of a result.
    ///
    /// # Errors
    /// The name is that of a link, a device, a pipe or a directory, or the file cannot be written; then the name
    /// keeps what it has, and nothing else is left.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        self.has_regular(name.as_ref())?;
        // One of 2^64 names, so that nobody can take it in advance.
        let unfinished = format!(
            ".unfinished-{:016x}",
            RandomState::new().build_hasher().finish()
        );
        let mut file = File::from(rustix::fs::openat(
            &self.handle,
            &unfinished,
            NEW | OFlags::WRONLY,
            FILE_MODE,
        )?);
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.rename(&unfinished, name.as_ref()));
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.handle, &unfinished, AtFlags::empty());
        }
        written
    }

    /// Renames a file in this directory.
    ///
    /// # Errors
    /// There is no such file, or its name cannot be changed.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::renameat(
            &self.handle,
            from.as_ref(),
            &self.handle,
            to.as_ref(),
        )?)
    }

    /// Gives the directory itself to another user.
    ///
    /// # Errors
    /// Only root may do this.
    pub fn give(&self, uid: Uid, gid: Gid) -> io::Result<()> {
        Ok(rustix::fs::chownat(
            &self.handle,
            "",
            Some(uid),
            Some(gid),
            AtFlags::EMPTY_PATH,
        )?)
    }

    /// Waits until the names in it are on disk; otherwise a power failure loses the names of new
    /// files.
    ///
    /// # Errors
    /// The disk is gone, or the directory may not be listed.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.listed()?)?)
    }

    fn listed(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Writes a complete file at `path` that replaces any existing file, as [`Directory::replace`].
///
/// # Errors
/// As [`Directory::open`] and [`Directory::replace`].
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = place_of(path)?;
    directory.replace(name, bytes)
}

/// Opens the file at `path` for reading before it is replaced; `None` if the name is free. Creates nothing.
///
/// # Errors
/// No file could be made there, or it is a link, a device, a pipe or a directory.
pub fn existing(path: &Path) -> io::Result<Option<File>> {
    let (directory, name) = place_of(path)?;
    directory.existing(name)
}

/// Opens the file at `path` for reading and appending; `None` if the name is free. Creates nothing.
///
/// # Errors
/// As [`existing`], or as [`Directory::append`].
pub fn existing_to_append(path: &Path) -> io::Result<Option<File>> {
    let (directory, name) = place_of(path)?;
    let is_there = directory.has_regular(name)?;
    is_there.then(|| directory.append(name)).transpose()
}

/// Number of the mount by which an open file or directory was reached, as /proc/self/mountinfo has it. A bind mount has
/// another one than what surrounds it, even if both show the same filesystem.
///
/// # Errors
/// Without /proc.
pub fn mount_of(opened: impl AsFd) -> io::Result<u64> {
    let number = opened.as_fd().as_raw_fd();
    let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let mount = facts.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    mount
        .and_then(|mount| mount.trim().parse().ok())
        .ok_or_else(|| io::Error::other("the kernel does not say what is mounted there"))
}

/// True if the file at `path` is a mount of its own, such as `/dev/termination-log` in a container of Kubernetes.
///
/// # Errors
/// As [`existing`], or it is missing.
pub fn is_mounted_alone(path: &Path) -> io::Result<bool> {
    let (directory, name) = place_of(path)?;
    directory.is_mounted_alone(name)
}

/// Adds to the file at `path`, as [`Directory::append`], or creates it.
///
/// # Errors
/// As [`Directory::open`], [`Directory::append`] and [`Directory::create`]; or it cannot be written.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = place_of(path)?;
    let mut file = match directory.append(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => directory.create(name)?,
        opened => opened?,
    };
    file.write_all(bytes)
}

/// The directory of a file, and its name there.
fn place_of(path: &Path) -> io::Result<(Directory, &OsStr)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))?;
    let directory = Directory::open(path.parent().unwrap_or(Path::new("")))?;
    Ok((directory, name))
}

/// Refuses a directory in which root must not write, or below which it must not make one. Creates nothing.
///
/// # Errors
/// It is such a directory, or the last in its path that exists is; or its path leads through a link that
/// another user may have made.
pub fn refuse_unsafe(path: &Path) -> io::Result<()> {
    match Directory::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !is_root() => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = walk(path, IfMissing::Left)?;
            refuse_above_new(path, &above)
        }
        opened => opened.map(drop),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

/// What becomes of directories of a path that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Refused,
    Made,
    /// The last directory that exists is opened in their place.
    Left,
}

/// Opens a directory step by step, so that every link in its path is checked.
fn walk(path: &Path, missing: IfMissing) -> io::Result<OwnedFd> {
    let top = || rustix::fs::open("/", HANDLE, Mode::empty());
    let mut directory = top()?;
    let mut ahead = steps(&std::env::current_dir()?.join(path));
    let mut turns = 0;
    while let Some(step) = ahead.pop() {
        let is_missing =
            match rustix::fs::openat(&directory, &step, HANDLE | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(next) => {
                    directory = next;
                    continue;
                }
                Err(Errno::NOENT) if missing == IfMissing::Made => true,
                Err(Errno::NOENT) if missing == IfMissing::Left => return Ok(directory),
                Err(Errno::NOTDIR | Errno::LOOP) => false,
                Err(error) => return Err(error.into()),
            };
        turns += 1;
        if turns > LINKS_MAX + path.components().count() {
            return Err(Errno::LOOP.into());
        }
        if is_missing {
            refuse_above_new(path, &directory)?;
            match rustix::fs::mkdirat(&directory, &step, DIRECTORY_MODE) {
                Ok(()) | Err(Errno::EXIST) => ahead.push(step),
                Err(error) => return Err(error.into()),
            }
        } else {
            let leads_to = followed(&directory, &step)?;
            if leads_to.is_absolute() {
                directory = top()?;
            }
            ahead.append(&mut steps(&leads_to));
        }
    }
    Ok(directory)
}

/// The steps of a path in reverse order.
fn steps(path: &Path) -> Vec<OsString> {
    let named = |part: Component| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(named).collect()
}

/// The target of a link in `directory`, if only root can have made the link.
fn followed(directory: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
    let target =
        rustix::fs::readlinkat(directory, name, Vec::new()).map_err(|error| match error {
            Errno::INVAL => Errno::NOTDIR,
            other => other,
        })?;
    let above = rustix::fs::fstat(directory)?;
    let link = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if above.st_uid != 0 || link.st_uid != 0 || is_open_to_others(&above) {
        let why = format!(
            "'{}' in its path is a symbolic link that another user can change",
            name.display()
        );
        return Err(refused(&why, "give the directory by a path without links"));
    }
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// Refuses, for root, a directory whose contents another user controls. `name` is what a sentence calls it.
fn refuse_foreign(name: &str, facts: &Stat) -> io::Result<()> {
    let why = if facts.st_uid != 0 {
        format!("{name} belongs to user {}", facts.st_uid)
    } else if is_open_to_others(facts) {
        format!(
            "others may replace files in {name} (mode {:o})",
            facts.st_mode & 0o7777
        )
    } else {
        return Ok(());
    };
    Err(refused(
        &why,
        "run rigel as the owner of the directory, or give one that only root may write to",
    ))
}

fn named(path: &Path) -> String {
    format!("'{}'", or_here(path).display())
}

/// Refuses, for root, to make `path` in the last directory of it that exists, if another user owns that: they could
/// move what root makes in it, or put another in its place. Where the caller stands, they chose to.
fn refuse_above_new(path: &Path, above: impl AsFd) -> io::Result<()> {
    let (facts, here) = (rustix::fs::fstat(above)?, rustix::fs::stat(".")?);
    if (facts.st_dev, facts.st_ino) == (here.st_dev, here.st_ino) {
        return Ok(());
    }
    let name = format!("the directory above the new '{}'", path.display());
    refuse_foreign(&name, &facts)
}

/// True if others may remove and rename its contents.
fn is_open_to_others(facts: &Stat) -> bool {
    is_writable_for_others(facts) && !Mode::from_raw_mode(facts.st_mode).contains(Mode::SVTX)
}

/// True if others may make files in it.
fn is_writable_for_others(facts: &Stat) -> bool {
    Mode::from_raw_mode(facts.st_mode).intersects(Mode::WGRP | Mode::WOTH)
}

/// Refuses a file that another user may have put in the place of ours: their own, or a second name of a file
/// of ours.
fn refuse_planted(facts: &Stat) -> io::Result<()> {
    let why = if facts.st_uid != rustix::process::geteuid().as_raw() {
        format!("it belongs to user {}", facts.st_uid)
    } else if facts.st_nlink > 1 {
        format!("it has {} names", facts.st_nlink)
    } else {
        return Ok(());
    };
    Err(io::Error::new(
        ErrorKind::PermissionDenied,
        format!("{why}, and others may make files in its directory"),
    ))
}

fn refuse_special(facts: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(facts.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(is_link()),
        FileType::Directory => Err(ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

fn is_link() -> io::Error {
    io::Error::other("it is a symbolic link")
}

fn refused(why: &str, way_out: &str) -> io::Error {
    io::Error::new(
        ErrorKind::PermissionDenied,
        format!("{why}, and root writes no files there: {way_out}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_are_replaced() {
        let folder = std::env::temp_dir().join(format!("rigel-replaced-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        replace(&at("new"), b"one").unwrap();
        replace(&at("new"), b"two").unwrap();
        assert_eq!(std::fs::read(at("new")).unwrap(), b"two");
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        std::fs::create_dir(at("inside")).unwrap();
        symlink("new", at("link")).unwrap();
        for name in ["pipe", "inside", "link"] {
            let before = std::fs::symlink_metadata(at(name)).unwrap().file_type();
            assert!(replace(&at(name), b"three").is_err() && existing(&at(name)).is_err());
            let after = std::fs::symlink_metadata(at(name)).unwrap().file_type();
            assert_eq!(before, after, "{name}");
        }
        assert_eq!(std::fs::read(at("new")).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 4);
        assert!(existing(&at("new")).unwrap().is_some());
        assert!(existing(&at("other")).unwrap().is_none() && existing(&at("no/where")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
