//! The runs before one: those in directories beside its own.

use rigel_analyse::compare::next_run::RUNS_MOST;
use rigel_model::record::journal::{self, Header};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of directories that are looked at.
const LOOKED_AT_MOST: usize = 1000;

/// Maximum size of a journal that is read, in bytes.
const JOURNAL_MOST: u64 = 64 << 20;

/// The journals beside that of the run in `place` that began before the run with this header, and may
/// be of the same kind: the latest, and none of another user.
pub fn runs_before(place: &Path, header: &Header) -> Vec<PathBuf> {
    let own = journal::file_of(place);
    let Ok(owner) = std::fs::metadata(&own).map(|metadata| metadata.uid()) else {
        return Vec::new();
    };
    let mut headers: Vec<(String, PathBuf)> = beside(&own)
        .into_iter()
        .flatten()
        .filter(|path| is_owned_by(path, owner))
        .filter_map(|path| Some((Header::read(&path).ok()?, path)))
        .filter(|(earlier, _)| is_like(earlier, header))
        .map(|(earlier, path)| (earlier.started, path))
        .collect();
    headers.sort();
    let latest = headers.into_iter().rev().take(RUNS_MOST);
    latest.map(|(_, path)| path).collect()
}

/// The journals in the directories beside that of this journal, as far as they have the usual name.
fn beside(journal: &Path) -> Option<Vec<PathBuf>> {
    let own = std::fs::canonicalize(journal).ok()?;
    let folder = own.parent()?.parent()?;
    let entries = std::fs::read_dir(folder).ok()?.take(LOOKED_AT_MOST);
    let journals = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .map(|directory| directory.join(journal::FILE_NAME))
        .filter(|path| *path != own);
    Some(journals.collect())
}

/// True if this is a file of this user, and no link, of a size that is read at once.
fn is_owned_by(path: &Path, owner: u32) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| {
        metadata.is_file() && metadata.uid() == owner && metadata.len() <= JOURNAL_MOST
    })
}

/// True if a run may be like another that began later, as far as headers tell.
fn is_like(earlier: &Header, later: &Header) -> bool {
    earlier.started < later.started
        && earlier.invocation.verb == later.invocation.verb
        && earlier.facts.name == later.facts.name
        && earlier.host.name == later.host.name
}
