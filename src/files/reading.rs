//! Files of others, as far as they are sane: regular ones, up to a length.
//!
//! A device, a FIFO or a socket under the name of a file would be read for ever. What the user hands over as an open
//! descriptor, such as `/dev/stdin` or a shell's `<(command)`, is read as a pipe too.

use crate::model::{Bytes, MIB};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// More than anybody writes by hand: a list of targets, settings, passwords.
pub const HAND_WRITTEN_MAX: Bytes = Bytes(MIB);

/// Where the descriptors of this process are: only its user can have put something there.
const OWN: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Opens a regular file for reading, without ever waiting for anybody.
///
/// # Errors
/// It cannot be opened, or is no regular file.
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
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// All that is in a file, of `most` bytes at the most: counted while reading, so that a file which grows is held to it.
///
/// # Errors
/// As of [`open`], or there is more in it.
pub fn read(path: &Path, most: Bytes) -> io::Result<Vec<u8>> {
    read_open(&open(path)?, most)
}

/// The same of a file that is open.
///
/// # Errors
/// There is more in it, or it cannot be read.
fn read_open(file: &File, most: Bytes) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.0.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most.0 {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most}, and no more is read")));
    }
    Ok(bytes)
}

/// The text of a file of `most` bytes at the most.
///
/// # Errors
/// As of [`read`], or it is no UTF-8.
pub fn read_text(path: &Path, most: Bytes) -> io::Result<String> {
    text(read(path, most)?)
}

/// The text of a file that holds a secret: it has to be the user's own or root's, and nobody else may read or write it.
///
/// # Errors
/// As of [`read_text`], or it is open to others.
pub fn read_secret(path: &Path, most: Bytes) -> io::Result<String> {
    let file = open(path)?;
    let facts = rustix::fs::fstat(&file)?;
    let others = Mode::from_raw_mode(facts.st_mode) & (Mode::RWXG | Mode::RWXO);
    let why = if !others.is_empty() {
        format!("others may read or write it (mode {:o})", facts.st_mode & 0o777)
    } else if ![0, rustix::process::geteuid().as_raw()].contains(&facts.st_uid) {
        format!("it belongs to user {}", facts.st_uid)
    } else {
        return text(read_open(&file, most)?);
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not a text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_on_what_is_read() {
        // A file of the kernel's says of itself that it is empty.
        let path = Path::new("/proc/self/maps");
        assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
        let error = read(path, Bytes(10)).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 10 bytes, and no more is read");
        assert!(read(path, Bytes(1 << 30)).unwrap().len() > 10);
        assert_eq!(open(Path::new("/dev/zero")).unwrap_err().to_string(), "it is not a regular file");
        assert_eq!(open(Path::new("/")).unwrap_err().to_string(), "it is a directory");
    }
}
