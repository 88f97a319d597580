//! Cleanup: finds what dead Rigel processes left in a directory, and removes it.
//!
//! Input: a directory. Output: the folders of private servers in it whose Rigel process is gone, or
//! a sentence for each that was removed or kept. A folder above it that was made for it counts, too.
//! A folder without Rigel's marker is never touched.

use super::server_dir::{
    MARKER, MARKER_MOST, Marker, NAME, bytes_of, names_in, open_in, refuse_mounts, remove_all,
    unique_name,
};
use super::{memory, process};
use rigel_model::files::mount_of;
use rigel_model::{Bytes, Error, failed, usage};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A folder left over by a dead Rigel process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The folder.
    pub folder: PathBuf,
    /// DBMS of its server: `postgres` or `mysql`.
    pub dbms: String,
    /// PID of the Rigel process that made it; the process is gone.
    pub rigel: u32,
    /// Storage space of its files.
    pub bytes: Bytes,
    /// Server processes that still run.
    pub running: Vec<u32>,
}

/// Result of [`clean`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// One sentence for each removed folder.
    pub removed: Vec<String>,
    /// One sentence for each folder that was kept, with the reason.
    pub kept: Vec<String>,
}

/// Lists private servers in `directory` whose Rigel process is gone: those that [`clean`] would
/// remove.
///
/// # Errors
/// The directory cannot be read.
pub fn leftovers(directory: &Path) -> Result<Vec<Leftover>, Error> {
    let candidates = candidates(directory)?;
    Ok(candidates
        .iter()
        .filter_map(|candidate| {
            if let FolderState::Left(left, ..) = state_of(candidate) {
                Some(left)
            } else {
                None
            }
        })
        .collect())
}

/// Stops and removes the private servers in `directory` whose Rigel process is gone. Keeps folders
/// without Rigel's marker, and folders whose Rigel process is alive.
///
/// # Errors
/// The directory cannot be read, or a leftover server cannot be stopped or removed.
pub fn clean(directory: &Path) -> Result<Cleaned, Error> {
    let mut cleaned = Cleaned::default();
    for candidate in candidates(directory)? {
        let folder = &candidate.folder;
        match state_of(&candidate) {
            FolderState::NotOurs => {}
            FolderState::Kept(why) => cleaned.kept.push(format!("{}: {why}", folder.display())),
            // Hold the lock until the folder is gone, so that nobody else cleans at the same time.
            FolderState::Left(left, marker, inside, _lock) => {
                if !process::kill_all_in(folder) {
                    return Err(failed!(
                        "{folder}: processes {running:?} of its server cannot be ended",
                        "stop them, as root if necessary, and clean again",
                        folder = folder.display(),
                        running = left.running
                    ));
                }
                if let Some(group) = marker.group {
                    memory::remove_left(&group, &unique_name(folder));
                }
                remove_all(&candidate.parent, &inside, folder)?;
                let mut sentence = format!(
                    "removed {}, a {} server of rigel {}",
                    folder.display(),
                    left.dbms,
                    left.rigel
                );
                if !left.running.is_empty() {
                    let _ = write!(sentence, ", and ended its {} processes", left.running.len());
                }
                cleaned.removed.push(sentence);
            }
        }
    }
    Ok(cleaned)
}

/// A folder with a matching name.
struct Candidate {
    parent: Rc<OwnedFd>,
    name: String,
    folder: PathBuf,
    /// Inode of the directory for which it must have been made; `None` if it is in that directory.
    made_for: Option<u64>,
}

/// Classification of a folder with a matching name.
enum FolderState {
    /// Has no marker of ours.
    NotOurs,
    /// Ours, but must be kept.
    Kept(String),
    /// A leftover. The `File` holds the lock, which is ours now.
    Left(Leftover, Marker, OwnedFd, File),
}

fn state_of(candidate: &Candidate) -> FolderState {
    let folder = &candidate.folder;
    let opened =
        open_in(&*candidate.parent, &*candidate.name, OFlags::DIRECTORY).and_then(|inside| {
            open_in(&inside, MARKER, OFlags::empty()).map(|file| (inside, File::from(file)))
        });
    let (inside, file) = match opened {
        Ok(opened) => opened,
        Err(Errno::ACCESS) if candidate.made_for.is_none() => {
            return FolderState::Kept("it cannot be read: clean as its owner or root".into());
        }
        Err(_) => return FolderState::NotOurs,
    };
    let Ok(facts) = file.metadata() else {
        return FolderState::NotOurs;
    };
    if !facts.is_file() {
        return FolderState::NotOurs;
    }
    let mut text = String::new();
    let marker = (&file)
        .take(MARKER_MOST)
        .read_to_string(&mut text)
        .ok()
        .and_then(|_| Marker::read(&text));
    let Some(marker) = marker else {
        return FolderState::NotOurs;
    };
    if candidate.made_for.is_some() && marker.directory != candidate.made_for {
        return FolderState::NotOurs;
    }
    // Rigel makes the marker as its own user. If another user made this marker, they may want us to
    // remove something else.
    if ![0, rustix::process::geteuid().as_raw()].contains(&facts.uid()) {
        return FolderState::Kept(format!(
            "its marker belongs to user {}: clean as that user",
            facts.uid()
        ));
    }
    let in_use = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(rustix::io::Errno::WOULDBLOCK) => true,
        // No locks on this filesystem: the process with this number may be another one, but is more
        // likely ours.
        Err(_) => Path::new(&format!("/proc/{}", marker.rigel)).exists(),
    };
    if in_use {
        return FolderState::Kept(format!("in use by rigel {}", marker.rigel));
    }
    if let Err(why) =
        mount_of(&*candidate.parent).and_then(|mount| refuse_mounts(&inside, folder, mount))
    {
        return FolderState::Kept(format!("{why}, then clean again"));
    }
    let left = Leftover {
        folder: folder.clone(),
        dbms: marker.dbms.clone(),
        rigel: marker.rigel,
        bytes: bytes_of(&inside),
        running: process::processes_in(folder),
    };
    FolderState::Left(left, marker, inside, file)
}

/// True if `text` is the marker of a private server.
pub fn is_marker(text: &str) -> bool {
    Marker::read(text).is_some()
}

/// Lists the folders with a matching name in the directory, and above it on the same filesystem.
fn candidates(directory: &Path) -> Result<Vec<Candidate>, Error> {
    let unreadable = |error: io::Error| {
        usage!(
            "{directory}: {error}",
            "give a directory",
            directory = directory.display()
        )
    };
    let whole = std::fs::canonicalize(directory).map_err(unreadable)?;
    let parent = opened(&whole).map_err(unreadable)?;
    let facts = rustix::fs::fstat(&parent).map_err(|error| unreadable(error.into()))?;
    let mut candidates = candidates_in(parent, &whole, None).map_err(unreadable)?;
    for above in whole.ancestors().skip(1) {
        // Not everybody may list what is above; of those who may not, no server was made there.
        if let Ok(parent) = opened(above)
            && rustix::fs::fstat(&parent).is_ok_and(|above| above.st_dev == facts.st_dev)
            && let Ok(more) = candidates_in(parent, above, Some(facts.st_ino))
        {
            candidates.extend(more);
        }
    }
    Ok(candidates)
}

fn opened(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(directory, flags, Mode::empty())?)
}

fn candidates_in(
    parent: OwnedFd,
    path: &Path,
    made_for: Option<u64>,
) -> io::Result<Vec<Candidate>> {
    let mut names: Vec<String> = names_in(&parent)?;
    names.retain(|name| {
        name.strip_prefix(NAME)
            .is_some_and(|number| number.parse::<u32>().is_ok())
    });
    names.sort();
    let parent = Rc::new(parent);
    Ok(names
        .into_iter()
        .map(|name| Candidate {
            parent: Rc::clone(&parent),
            folder: path.join(&name),
            name,
            made_for,
        })
        .collect())
}
