//! A small file by which ranks find out whether they mean the same directory.
//!
//! Input: a directory that the user named, and a name that no other run has. Output: a file with
//! that name as its content, removed when it is dropped; or the answer whether such a file is seen.
//! A mount point where nothing is mounted, or another share, does not show it.
//!
//! The file is locked as long as its run lives. What a killed run left is removed by a later one: a
//! file of our own making and of our own user, that nobody locks. A filesystem may keep the locks of
//! other hosts from us, so a young file is left alone too.

use rigel_model::{Error, Nanos, usage};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How these files begin, so that one that a crash left is recognised.
pub const PREFIX: &str = ".rigel-ranks-";

/// A file lives for the seconds in which ranks agree, which may take three minutes at most. An older
/// one is a leftover.
const AGE_MAX: Nanos = Nanos::from_secs(600);

/// A file that other ranks look for.
#[derive(Debug)]
pub struct PresenceFile {
    path: PathBuf,
    /// Keeps the lock.
    _file: File,
}

/// A file that another run made and did not remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftoverFile {
    /// Its name in the directory.
    pub name: String,
    /// False if its run may still need it.
    pub is_removed: bool,
}

impl PresenceFile {
    /// Makes the file. An existing one of this name is not touched.
    ///
    /// # Errors
    /// The directory may not be written to.
    pub fn make(directory: &Path, name: &str) -> Result<Self, Error> {
        let path = directory.join(format!("{PREFIX}{name}"));
        let failed = |error: std::io::Error| {
            usage!(
                "cannot create a file in '{directory}': {error}",
                "give an existing directory that you may write to, on the storage to be measured",
                directory = directory.display()
            )
        };
        // Readable for all: another host's root may be nobody here.
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, mode).map_err(|error| failed(error.into()))?;
        let mut file = File::from(file);
        // Not every filesystem has locks; there the age of the file decides.
        let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        let written = file
            .write_all(name.as_bytes())
            .and_then(|()| file.sync_all());
        let presence = Self { path, _file: file };
        written.map_err(failed)?;
        Ok(presence)
    }

    /// Removes what killed runs left in this directory, at `now` by the wall clock. Files of other
    /// runs that may live are named and stay. A file that is not of our making is ignored.
    pub fn sweep(directory: &Path, now: Nanos) -> Vec<LeftoverFile> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
        names.sort_unstable();
        let of = |name: String| {
            let path = directory.join(&name);
            let (file, modified) = own_file(&path, &name)?;
            let is_old = now.since(modified) > AGE_MAX;
            let is_free = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
            let is_removed = is_old && is_free.is_ok() && std::fs::remove_file(&path).is_ok();
            Some(LeftoverFile { name, is_removed })
        };
        names.into_iter().filter_map(of).collect()
    }

    /// True if another rank's file is seen in this directory.
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
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The file at `path` and when it was written, if it is as [`PresenceFile::make`] makes it, by this
/// user.
fn own_file(path: &Path, name: &str) -> Option<(File, Nanos)> {
    let suffix = name.strip_prefix(PREFIX)?;
    // A device is not even opened.
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    // For writing, because some filesystems lock nothing else exclusively. Nothing is written.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let facts = file.metadata().ok()?;
    let is_own = facts.is_file()
        && facts.nlink() == 1
        && facts.uid() == rustix::process::geteuid().as_raw()
        && facts.len() == suffix.len() as u64;
    let mut content = Vec::new();
    let limit = suffix.len() as u64 + 1;
    (&file).take(limit).read_to_end(&mut content).ok()?;
    let modified = Nanos::from_secs(u64::try_from(facts.mtime()).unwrap_or(0));
    (is_own && content == suffix.as_bytes()).then_some((file, modified))
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

    #[test]
    fn a_later_run_removes_what_nobody_locks_and_only_files_of_our_making() {
        let here = TempDir::new("presence-left");
        let write = |name: &str, content: &str| {
            std::fs::write(here.0.join(name), content).unwrap();
        };
        let living = PresenceFile::make(&here.0, "alive-0").unwrap();
        write(".rigel-ranks-dead-1", "dead-1");
        // Named alike, and not ours.
        write(".rigel-ranks-mine", "a file of somebody");
        write("rigel-ranks-dead-2", "dead-2");
        write(".rigel-ranks-linked", "linked");
        std::fs::hard_link(here.0.join(".rigel-ranks-linked"), here.0.join("other")).unwrap();
        std::os::unix::fs::symlink("other", here.0.join(".rigel-ranks-link")).unwrap();
        let left = |name: &str, is_removed| LeftoverFile {
            name: name.into(),
            is_removed,
        };
        let now = crate::clock::since_epoch();
        // A young file may be that of a run whose locks are not seen here.
        let young = [
            left(".rigel-ranks-alive-0", false),
            left(".rigel-ranks-dead-1", false),
        ];
        assert_eq!(PresenceFile::sweep(&here.0, now), young);
        let later = now.plus(Nanos::from_secs(3600));
        let old = [
            left(".rigel-ranks-alive-0", false),
            left(".rigel-ranks-dead-1", true),
        ];
        assert_eq!(PresenceFile::sweep(&here.0, later), old);
        assert!(PresenceFile::is_seen(&here.0, "alive-0"));
        drop(living);
        assert_eq!(PresenceFile::sweep(&here.0, later), []);
        let mut names: Vec<String> = std::fs::read_dir(&here.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        let kept = [
            ".rigel-ranks-link",
            ".rigel-ranks-linked",
            ".rigel-ranks-mine",
        ];
        assert_eq!(
            names,
            [&kept[..], &["other", "rigel-ranks-dead-2"]].concat()
        );
    }
}
