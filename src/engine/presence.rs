//! A small file by which ranks find out whether they mean the same directory.
//!
//! Input: a directory that the user named, and a name that no other run has. Output: a file with
//! that name as its content, removed when it is dropped; or the answer whether such a file is seen.
//! A mount point where nothing is mounted, or another share, does not show it.

use crate::model::Error;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How these files begin, so that one that a crash left is recognised.
pub const PREFIX: &str = ".rigel-ranks-";

/// A file that other ranks look for.
#[derive(Debug)]
pub struct PresenceFile(PathBuf);

impl PresenceFile {
    /// Makes the file. An existing one of this name is not touched.
    ///
    /// # Errors
    /// The directory may not be written to.
    pub fn make(directory: &Path, name: &str) -> Result<Self, Error> {
        let path = directory.join(format!("{PREFIX}{name}"));
        let failed = |error: std::io::Error| {
            Error::usage(
                format!("cannot create a file in '{}': {error}", directory.display()),
                "give an existing directory that you may write to, on the storage to be measured",
            )
        };
        // Readable for all: another host's root may be nobody here.
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, mode).map_err(|error| failed(error.into()))?;
        let presence = Self(path);
        let mut file = File::from(file);
        file.write_all(name.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        Ok(presence)
    }

    /// True if another rank's file is seen in this directory.
    #[must_use]
    pub fn is_seen(directory: &Path, name: &str) -> bool {
        let path = directory.join(format!("{PREFIX}{name}"));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut content = Vec::new();
        rustix::fs::open(path, flags, Mode::empty()).is_ok_and(|file| {
            File::from(file)
                .take(name.len() as u64 + 1)
                .read_to_end(&mut content)
                .is_ok()
        }) && content == name.as_bytes()
    }
}

impl Drop for PresenceFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;

    #[test]
    fn a_file_is_seen_in_its_own_directory_alone_and_only_while_it_lasts() {
        let (here, there) = (
            TempDir::new("presence-here"),
            TempDir::new("presence-there"),
        );
        let file = PresenceFile::make(&here.0, "a1").unwrap();
        assert!(PresenceFile::is_seen(&here.0, "a1"));
        assert!(!PresenceFile::is_seen(&there.0, "a1"));
        assert!(PresenceFile::make(&here.0, "a1").is_err(), "it exists");
        drop(file);
        assert!(!PresenceFile::is_seen(&here.0, "a1"));
        // A link that somebody else put there is not followed.
        std::fs::write(there.0.join("target"), "a1").unwrap();
        std::os::unix::fs::symlink(there.0.join("target"), here.0.join(".rigel-ranks-a1")).unwrap();
        assert!(!PresenceFile::is_seen(&here.0, "a1"));
        assert!(PresenceFile::make(&here.0, "a1").is_err());
    }
}
