//! A target that was opened once.
//!
//! Input: a path. Output: a descriptor for reading, and the identity of the file or device. All
//! later checks use this descriptor, and the target is opened for measuring through it. The path is
//! resolved only once. So nobody can exchange a link or a directory between the check and the
//! writes.

use crate::bounded;
use crate::observe::stack::device_number;
use rigel_model::{Error, FileKind, failed, usage};
use rustix::fs::{CWD, Mode, OFlags};
use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Identity of a target, independent of its name: hard links and device nodes of the same thing are
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A file, by the device of its filesystem and its inode number.
    File(u64, u64),
    /// A block device, by its number.
    Device(u64),
    /// A character device, by its number: one may lead to a disk past its block device. No target.
    Generic(u64),
}

impl Identity {
    /// The identity of a regular file or block device; `None` for anything else.
    pub(super) fn of(facts: &Metadata) -> Option<Self> {
        if facts.is_file() {
            Some(Self::File(facts.dev(), facts.ino()))
        } else {
            facts
                .file_type()
                .is_block_device()
                .then(|| Self::Device(facts.rdev()))
        }
    }

    /// The identity of the target of `path`; `None` if it is neither a file nor a block device.
    pub fn at(path: &Path) -> Option<Self> {
        Self::of(&std::fs::metadata(path).ok()?)
    }

    /// The identity of whatever `path` leads to; `None` if nothing is there. A directory has one as a file has.
    pub fn of_any(path: &Path) -> Option<Self> {
        let facts = std::fs::metadata(path).ok()?;
        Some(Self::of(&facts).unwrap_or_else(|| match facts.rdev() {
            0 => Self::File(facts.dev(), facts.ino()),
            number => Self::Generic(number),
        }))
    }

    /// The block device with this major and minor number.
    pub(super) fn of_device((major, minor): (u32, u32)) -> Self {
        Self::Device(rustix::fs::makedev(major, minor))
    }
}

/// A regular file or block device, open for reading.
#[derive(Debug)]
pub struct Opened {
    path: PathBuf,
    file: File,
    kind: FileKind,
    identity: Identity,
}

impl Opened {
    /// Opens `path`. Refuses pipes, character devices and the like without opening them.
    ///
    /// # Errors
    /// There is nothing at `path`, it may not be read, it is neither a regular file nor a block
    /// device, or the storage does not answer.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let what = format!("opening '{}'", path.display());
        let path = path.to_path_buf();
        bounded::call(&what, bounded::ANSWER, move || Self::open_path(&path))?
    }

    fn open_path(path: &Path) -> Result<Self, Error> {
        // O_PATH gives a descriptor without opening the file: opening a tape or a watchdog has
        // effects.
        let descriptor = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        Self::through(
            &File::from(descriptor.map_err(|error| refused(path, &error.into()))?),
            path,
        )
    }

    /// Opens the file of `file` once more, for reading; messages call it `path`.
    pub fn through(file: &File, path: &Path) -> Result<Self, Error> {
        let facts = file.metadata().map_err(|error| refused(path, &error))?;
        let kind = kind_of(&facts, path)?;
        let identity = Identity::of(&facts).expect("it is a file or a block device");
        // Never block: a network filesystem may have given a lease on the file to another client.
        let file =
            reopen(file, OpenOptions::new().read(true), libc::O_NONBLOCK).map_err(|error| {
                match error.kind() {
                    ErrorKind::NotFound => without_proc(path),
                    _ => refused(path, &error),
                }
            })?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            kind,
            identity,
        })
    }

    /// The path it was opened by. It may lead elsewhere by now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a file or a device.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Identity of the target.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Major and minor number of a block device; `None` for a file.
    pub fn device(&self) -> Option<(u32, u32)> {
        match self.identity {
            Identity::Device(number) => Some(device_number(number)),
            Identity::File(..) | Identity::Generic(_) => None,
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Current metadata.
    pub(super) fn metadata(&self) -> Result<Metadata, Error> {
        self.file
            .metadata()
            .map_err(|error| refused(&self.path, &error))
    }

    /// Current size.
    pub(super) fn bytes(&self) -> std::io::Result<u64> {
        match self.kind {
            FileKind::File => self.file.metadata().map(|facts| facts.len()),
            FileKind::Device => device_bytes(&self.file),
        }
    }

    /// True for a block device that is set to read-only.
    pub(super) fn is_read_only(&self) -> bool {
        self.kind == FileKind::Device && is_read_only(&self.file)
    }

    /// Its current path with links resolved; for a deleted file, its last path.
    pub(super) fn place(&self) -> Result<PathBuf, Error> {
        std::fs::read_link(by_number(&self.file)).map_err(|_| without_proc(&self.path))
    }

    /// Opens the same file or device again with other `options`.
    pub(super) fn reopen(
        &self,
        options: &OpenOptions,
        flags: libc::c_int,
    ) -> std::io::Result<File> {
        reopen(&self.file, options, flags)
    }
}

/// True if the kernel refuses writes to an open block device.
fn is_read_only(file: &File) -> bool {
    // BLKROGET = _IO(0x12, 94).
    const BLKROGET: libc::c_ulong = 0x125e;
    let mut is_read_only: libc::c_int = 0;
    // SAFETY: the request writes an int to the address it is given.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), BLKROGET as _, &raw mut is_read_only) };
    result == 0 && is_read_only != 0
}

fn reopen(file: &File, options: &OpenOptions, flags: libc::c_int) -> std::io::Result<File> {
    options
        .clone()
        .custom_flags(flags | libc::O_CLOEXEC)
        .open(by_number(file))
}

/// Path of one of this process's own descriptors. The kernel resolves it to the open file itself.
pub(super) fn by_number(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn without_proc(path: &Path) -> Error {
    failed!(
        "'{path}' cannot be examined: /proc is not mounted here",
        "mount it: mount -t proc proc /proc",
        path = path.display()
    )
}

/// The kind of a regular file or block device; refuses everything else by name.
fn kind_of(metadata: &Metadata, path: &Path) -> Result<FileKind, Error> {
    let kind = metadata.file_type();
    let (what, hint) = if kind.is_file() {
        return Ok(FileKind::File);
    } else if kind.is_block_device() {
        return Ok(FileKind::Device);
    } else if kind.is_dir() {
        (
            "a directory",
            "give a file or a block device, or a single directory for a scratch file",
        )
    } else if kind.is_char_device() {
        (
            "a character device",
            "give a file or a block device (`lsblk` lists block devices)",
        )
    } else if kind.is_fifo() {
        ("a pipe", "give a file or a block device")
    } else {
        ("a socket", "give a file or a block device")
    };
    Err(usage!("'{path}' is {what}", hint, path = path.display()))
}

/// The error if `path` cannot be opened, with a hint.
fn refused(path: &Path, error: &std::io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound if path.is_symlink() => usage!(
            "'{shown}' is a symbolic link to something that does not exist",
            "`readlink -f` shows where it leads"
        ),
        ErrorKind::NotFound => usage!(
            "'{shown}' does not exist",
            "check the spelling; Rigel creates a file only if a directory is given"
        ),
        ErrorKind::PermissionDenied => usage!(
            "'{shown}' cannot be read: permission denied",
            if rustix::process::geteuid().is_root() {
                "even root is refused: allow the device to this container or service (docker run \
                 --device, DeviceAllow= of systemd), or run outside of it"
            } else {
                "run as root, or as a user with access to it and to every directory above it"
            }
        ),
        ErrorKind::NotADirectory => usage!(
            "'{shown}' does not exist: a part of the path is not a directory",
            "check the spelling"
        ),
        _ => usage!(
            "'{shown}' cannot be opened: {error}",
            "check whether it can be read at all: `dd if=FILE of=/dev/null bs=4k count=1`"
        ),
    }
}

/// The identity and the current location of the target of `path`, both from one descriptor that
/// does not open it.
pub(super) fn identity_and_place(path: &Path) -> Option<(Identity, PathBuf)> {
    let descriptor =
        rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let file = File::from(descriptor);
    Some((
        Identity::of(&file.metadata().ok()?)?,
        std::fs::read_link(by_number(&file)).ok()?,
    ))
}

/// Size of an open block device.
fn device_bytes(file: &File) -> std::io::Result<u64> {
    // BLKGETSIZE64 = _IOR(0x12, 114, size_t).
    const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
    let mut bytes = 0u64;
    // SAFETY: the request writes 8 bytes to the address it is given.
    let result =
        unsafe { libc::ioctl(file.as_fd().as_raw_fd(), BLKGETSIZE64 as _, &raw mut bytes) };
    if result < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;

    #[test]
    fn invalid_targets_are_refused_with_their_name() {
        let place = TempDir::new("opened-refused");
        let pipe = place.0.join("pipe");
        let owner_only = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, owner_only, 0).unwrap();
        let cases = [
            (place.0.clone(), "a directory"),
            (pipe, "a pipe"),
            ("/dev/null".into(), "a character device"),
            (place.0.join("absent"), "does not exist"),
            ("/dev/null/x".into(), "not a directory"),
        ];
        for (path, words) in cases {
            let error = Opened::open(&path).unwrap_err();
            assert_eq!(error.exit_status(), 2, "{error}");
            let text = error.to_string();
            assert!(
                text.contains(words)
                    && text.contains(path.to_str().unwrap())
                    && text.contains("hint:"),
                "{text}"
            );
        }
    }

    #[test]
    fn two_names_of_one_file_are_one_target() {
        let place = TempDir::new("opened-names");
        let (one, two, other) = (
            place.0.join("one"),
            place.0.join("two"),
            place.0.join("other"),
        );
        File::create(&one).unwrap();
        File::create(&other).unwrap();
        std::fs::hard_link(&one, &two).unwrap();
        let identity = |path| Opened::open(path).unwrap().identity();
        assert_eq!(identity(&one), identity(&two));
        assert_ne!(identity(&one), identity(&other));
    }

    #[test]
    fn a_file_is_followed_and_its_path_is_not() {
        let place = TempDir::new("opened-followed");
        let path = place.file("file", 5, 5);
        let opened = Opened::open(&path).unwrap();
        std::fs::rename(&path, place.0.join("moved")).unwrap();
        std::fs::write(&path, "another").unwrap();
        assert_eq!(
            opened.place().unwrap(),
            std::fs::canonicalize(place.0.join("moved")).unwrap()
        );
        let again = opened
            .reopen(OpenOptions::new().read(true).write(true), 0)
            .unwrap();
        assert_eq!(
            Identity::of(&again.metadata().unwrap()),
            Some(opened.identity())
        );
        assert_eq!(opened.bytes().unwrap(), 5);
    }
}
