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

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
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
        let handle = walk(path, false)?;
        refuse_foreign(path, &rustix::fs::fstat(&handle)?)?;
        Ok(Self { handle })
    }

    /// Like [`Directory::open`], but first creates the directory and its parents if missing.
    ///
    /// # Errors
    /// It cannot be created, or root must not write there.
    pub fn make(path: &Path) -> io::Result<Self> {
        if is_root() {
            drop(walk(path, true)?);
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
    /// It is missing, a link, or not a regular file, or may not be written to.
    pub fn append(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let opened = rustix::fs::openat(
            &self.handle,
            name.as_ref(),
            ADD | OFlags::NONBLOCK,
            Mode::empty(),
        );
        let file = File::from(opened.map_err(|error| match error {
            Errno::LOOP => io::Error::other("it is a symbolic link"),
            other => other.into(),
        })?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is not a regular file"))
        }
    }

    /// That the name is free, or that of a regular file or a link, which goes and not what it leads to.
    fn refuse_special(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile | FileType::Symlink => Ok(()),
                FileType::Directory => Err(ErrorKind::IsADirectory.into()),
                _ => Err(io::Error::other("it is not a regular file")),
            },
        }
    }

    /// Writes a complete file that replaces any file of this name, and waits until it is on disk. A
    /// partial file never has the name of a result.
    ///
    /// # Errors
    /// The name is that of a device, a pipe or a directory, or the file cannot be written; then the name keeps
    /// what it has, and nothing else is left.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        self.refuse_special(name.as_ref())?;
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

/// Refuses a path at which no file could be made, or which names a device, a pipe or a directory. Creates
/// nothing.
///
/// # Errors
/// It is such a path.
pub fn refuse_special(path: &Path) -> io::Result<()> {
    let (directory, name) = place_of(path)?;
    directory.refuse_special(name)
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

/// Refuses a directory in which root must not write, whether it exists or not. Creates nothing.
///
/// # Errors
/// It is such a directory, or its path leads through a link that another user may have made.
pub fn refuse_unsafe(path: &Path) -> io::Result<()> {
    match Directory::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
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

/// Opens a directory step by step, so that every link in its path is checked. `make` creates
/// missing directories.
fn walk(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let top = || rustix::fs::open("/", HANDLE, Mode::empty());
    let mut directory = top()?;
    let mut ahead = steps(&std::env::current_dir()?.join(path));
    let mut turns = 0;
    while let Some(step) = ahead.pop() {
        let missing =
            match rustix::fs::openat(&directory, &step, HANDLE | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(next) => {
                    directory = next;
                    continue;
                }
                Err(Errno::NOENT) if make => true,
                Err(Errno::NOTDIR | Errno::LOOP) => false,
                Err(error) => return Err(error.into()),
            };
        turns += 1;
        if turns > LINKS_MAX + path.components().count() {
            return Err(Errno::LOOP.into());
        }
        if missing {
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

/// Refuses, for root, a directory whose contents another user controls.
fn refuse_foreign(path: &Path, facts: &Stat) -> io::Result<()> {
    let path = or_here(path).display();
    let why = if facts.st_uid != 0 {
        format!("'{path}' belongs to user {}", facts.st_uid)
    } else if is_open_to_others(facts) {
        format!(
            "others may replace files in '{path}' (mode {:o})",
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

/// True if others may remove and rename its contents.
fn is_open_to_others(facts: &Stat) -> bool {
    let mode = Mode::from_raw_mode(facts.st_mode);
    mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX)
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
        for name in ["pipe", "inside"] {
            let before = std::fs::symlink_metadata(at(name)).unwrap().file_type();
            assert!(replace(&at(name), b"three").is_err() && refuse_special(&at(name)).is_err());
            let after = std::fs::symlink_metadata(at(name)).unwrap().file_type();
            assert_eq!(before, after, "{name}");
        }
        assert_eq!(std::fs::read(at("new")).unwrap(), b"two");
        symlink("new", at("link")).unwrap();
        replace(&at("link"), b"three").unwrap();
        assert_eq!(std::fs::read(at("new")).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 4);
        assert!(refuse_special(&at("other")).is_ok() && refuse_special(&at("no/where")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
