//! A directory in which files are made.
//!
//! It is opened once, and everything in it goes by that descriptor, so that what its path leads to later is of no
//! importance. A file is made under a name that did not exist, and gets the name of a result when it is whole: no link
//! that somebody put there is ever followed.
//!
//! Where Rigel is root, another user must not be able to choose what root writes to:
//! * the directory itself has to be root's, and nobody else may exchange what is in it: it is not writable for its
//!   group or for all, or it has the sticky bit, like `/tmp`;
//! * a symbolic link on the way to it is followed only where root alone could have made it.
//!
//! Other users choose their own directories, and nothing is asked of those.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// A handle that serves to reach what is in a directory, and needs no permission to list it.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A file that was not there before, whatever its name leads to.
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A file that is added to, and never something else by its name.
const ADD: OFlags = OFlags::RDWR.union(OFlags::APPEND).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What a new file may be, before the umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// What a directory of root's may be, before the umask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
/// Links on the way to a directory, as the kernel has it; a path that takes more leads in a circle.
const LINKS_MAX: usize = 40;

/// A directory, open.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
}

impl Directory {
    /// Opens the directory at `path` for files to be made in it.
    ///
    /// # Errors
    /// There is none, or root must not write there.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !is_root() {
            return Ok(Self { handle: rustix::fs::open(or_here(path), HANDLE, Mode::empty())? });
        }
        let handle = walk(path, false)?;
        refuse_foreign(path, &rustix::fs::fstat(&handle)?)?;
        Ok(Self { handle })
    }

    /// The same, of a directory that is made first where it is missing, with those above it.
    ///
    /// # Errors
    /// It cannot be made, or root must not write there.
    pub fn make(path: &Path) -> io::Result<Self> {
        if is_root() {
            drop(walk(path, true)?);
        } else {
            std::fs::create_dir_all(path)?;
        }
        Self::open(path)
    }

    /// A new directory in this one, of the user Rigel runs as.
    ///
    /// # Errors
    /// The name is taken, or it cannot be made. Or another user has put one of theirs in its place, as one can who
    /// may write to this directory.
    pub fn make_inside(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.handle, name.as_ref(), mode)?;
        let handle = rustix::fs::openat(&self.handle, name.as_ref(), HANDLE | OFlags::NOFOLLOW, Mode::empty())?;
        let inside = Self { handle };
        let is_own = rustix::fs::fstat(&inside.handle)?.st_uid == rustix::process::geteuid().as_raw();
        if !is_own || !inside.is_empty()? {
            return Err(io::Error::other(format!(
                "'{}' was exchanged as soon as it was made",
                name.as_ref().display()
            )));
        }
        Ok(inside)
    }

    /// True if nothing is in it.
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

    /// A new file, for adding to it.
    ///
    /// # Errors
    /// The name is taken, by a link too, or nothing can be made here.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.handle, name.as_ref(), ADD | NEW, FILE_MODE)?.into())
    }

    /// A file that is there, for reading and adding to it.
    ///
    /// # Errors
    /// It is missing, a link, or anything else but a file, or may not be written to.
    pub fn append(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let opened = rustix::fs::openat(&self.handle, name.as_ref(), ADD | OFlags::NONBLOCK, Mode::empty());
        let file = File::from(opened.map_err(|error| match error {
            Errno::LOOP => io::Error::other("it is a symbolic link"),
            other => other.into(),
        })?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
    }

    /// Writes a whole file in the place of whatever has its name, and waits until it is on disk: half of a file never
    /// has the name of a result.
    ///
    /// # Errors
    /// It cannot be written; then what had the name still has it, and nothing is left.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        // Of 2^64 names, so that nobody can take it beforehand.
        let unfinished = format!(".unfinished-{:016x}", RandomState::new().build_hasher().finish());
        let mut file = File::from(rustix::fs::openat(&self.handle, &unfinished, NEW | OFlags::WRONLY, FILE_MODE)?);
        let written =
            file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| self.rename(&unfinished, name.as_ref()));
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.handle, &unfinished, AtFlags::empty());
        }
        written
    }

    /// Gives a file in this directory another name in it.
    ///
    /// # Errors
    /// There is no such file, or its name cannot be changed.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from.as_ref(), &self.handle, to.as_ref())?)
    }

    /// Gives the directory itself to another user.
    ///
    /// # Errors
    /// Only root may.
    pub fn give(&self, uid: Uid, gid: Gid) -> io::Result<()> {
        Ok(rustix::fs::chownat(&self.handle, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?)
    }

    /// Waits until the names in it are on disk; those of new files are lost in a power cut otherwise.
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

/// Writes a whole file at `path` in the place of whatever has its name, as [`Directory::replace`].
///
/// # Errors
/// As of [`Directory::open`] and [`Directory::replace`].
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))?;
    Directory::open(path.parent().unwrap_or(Path::new("")))?.replace(name, bytes)
}

/// Refuses a directory in which root must not write, whether it exists already or is to be made. Nothing is made.
///
/// # Errors
/// It is such a directory, or the way to it leads through a link that another user may have made.
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
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Goes to a directory by single steps, so that every link on the way is seen. `make` makes what is missing.
fn walk(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let top = || rustix::fs::open("/", HANDLE, Mode::empty());
    let mut at = top()?;
    let mut ahead = steps(&std::env::current_dir()?.join(path));
    let mut turns = 0;
    while let Some(step) = ahead.pop() {
        let missing = match rustix::fs::openat(&at, &step, HANDLE | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => {
                at = next;
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
            match rustix::fs::mkdirat(&at, &step, DIRECTORY_MODE) {
                Ok(()) | Err(Errno::EXIST) => ahead.push(step),
                Err(error) => return Err(error.into()),
            }
        } else {
            let leads_to = followed(&at, &step)?;
            if leads_to.is_absolute() {
                at = top()?;
            }
            ahead.append(&mut steps(&leads_to));
        }
    }
    Ok(at)
}

/// The steps of a path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let named = |part: Component| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(named).collect()
}

/// Where a link in `directory` leads, if root alone can have made it.
fn followed(directory: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new()).map_err(|error| match error {
        Errno::INVAL => Errno::NOTDIR,
        other => other,
    })?;
    let above = rustix::fs::fstat(directory)?;
    let link = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if above.st_uid != 0 || link.st_uid != 0 || is_open_to_others(&above) {
        let why = format!("'{}' on the way to it is a symbolic link that another user can make", name.display());
        return Err(refused(&why, "name the directory without links"));
    }
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// Refuses root a directory in which another user decides what lies there.
fn refuse_foreign(path: &Path, facts: &Stat) -> io::Result<()> {
    let path = or_here(path).display();
    let why = if facts.st_uid != 0 {
        format!("'{path}' belongs to user {}", facts.st_uid)
    } else if is_open_to_others(facts) {
        format!("others may exchange what is in '{path}' (mode {:o})", facts.st_mode & 0o7777)
    } else {
        return Ok(());
    };
    Err(refused(&why, "run rigel as the user whose directory it is, or name one that only root may write to"))
}

/// Others may remove and rename what is in it.
fn is_open_to_others(facts: &Stat) -> bool {
    let mode = Mode::from_raw_mode(facts.st_mode);
    mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX)
}

fn refused(why: &str, way_out: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{why}, and root writes no files there: {way_out}"))
}
