//! Reads files of users, but only regular files up to a maximum length.
//!
//! A device, a FIFO or a socket under the name of a file could be read forever. A descriptor that
//! the user passes, such as `/dev/stdin` or a shell's `<(command)`, may also be a pipe.

use crate::{Bytes, MIB};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Maximum length of files that people write by hand: a list of targets, settings, passwords.
pub const HAND_WRITTEN_MAX: Bytes = Bytes(MIB);

/// Directories of this process's own descriptors: only its user can have put something there.
const OWN: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Opens a regular file for reading, without ever blocking.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        FileType::Fifo if OWN.iter().any(|own| path.starts_with(own)) => {
            rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
            Ok(file)
        }
        FileType::Directory => Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory")),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// Reads a whole file of at most `most` bytes. The limit is checked while reading, so it also holds
/// for a growing file.
///
/// # Errors
/// As [`open`], or the file is longer.
pub fn read(path: &Path, most: Bytes) -> io::Result<Vec<u8>> {
    read_open(&open(path)?, most)
}

/// Reads a whole open file of at most `most` bytes.
///
/// # Errors
/// The file is longer, or it cannot be read.
fn read_open(file: &File, most: Bytes) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.0.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most.0 {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it is larger than the limit of {most}"),
        ));
    }
    Ok(bytes)
}

/// Reads the text of a file of at most `most` bytes.
///
/// # Errors
/// As [`read`], or it is not UTF-8.
pub fn read_text(path: &Path, most: Bytes) -> io::Result<String> {
    text(read(path, most)?)
}

/// Reads the text of a file with a secret. The file must belong to the user or to root, and nobody
/// else may read or write it.
///
/// # Errors
/// As [`read_text`], or others have access to it.
pub fn read_secret(path: &Path, most: Bytes) -> io::Result<String> {
    let file = open(path)?;
    let facts = rustix::fs::fstat(&file)?;
    let others = Mode::from_raw_mode(facts.st_mode) & (Mode::RWXG | Mode::RWXO);
    let why = if !others.is_empty() {
        format!(
            "others may read or write it (mode {:o})",
            facts.st_mode & 0o777
        )
    } else if ![0, rustix::process::geteuid().as_raw()].contains(&facts.st_uid) {
        format!("it belongs to user {}", facts.st_uid)
    } else {
        return text(read_open(&file, most)?);
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_limit() {
        // A file of the kernel reports a length of zero.
        let path = Path::new("/proc/self/maps");
        assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
        let error = read(path, Bytes(10)).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than the limit of 10 bytes");
        assert!(read(path, Bytes(1 << 30)).unwrap().len() > 10);
        assert_eq!(
            open(Path::new("/dev/zero")).unwrap_err().to_string(),
            "it is not a regular file"
        );
        assert_eq!(
            open(Path::new("/")).unwrap_err().to_string(),
            "it is a directory"
        );
    }
}
