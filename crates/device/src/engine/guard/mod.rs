//! Protects existing data from a run that writes.
//!
//! Input: an open target, and the paths that the user has repeated to confirm that their content
//! may be destroyed. Output: a [`Permit`], without which nothing is opened for writing, or a
//! refusal with its reason and hint. It reads only and changes nothing.
//!
//! Always refused: a target in use (mounted, swap, part of an array or of a logical volume, behind
//! a loop device, held open by another process); a target with a filesystem, a partition table or a
//! database; a file among the files of a database or of the system. Files made by Rigel may be
//! written. Everything else may be written if the user gave its path twice.
//!
//! All checks use the one descriptor that the target was opened by, and exactly that file or device
//! is written later. It does not matter if the path leads elsewhere meanwhile.

mod checked_target;
mod contents;
mod exported;
mod family;
mod held;
mod place;
mod processes;
mod refusal;

use super::mounts::unescape;
use super::opened::{Identity, Opened, identity_and_place};
use super::sampled;
use crate::observe::stack::{Sys, device_number};
use checked_target::CheckedTarget;
use family::{Relation, Relative, TargetFamily};
use refusal::{blind, checked_mounts, unreadable};
use rigel_model::{Bytes, Error, FileKind, Finding, shell_path};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Extended attribute of the files that Rigel makes: [`state_of`] the file, and the time of its last change.
const MARK: &str = "user.rigel.scratch";

/// Permission to write to one file or device. Holds the checked target open. Only the guard creates
/// it.
#[derive(Debug)]
pub struct Permit {
    target: Opened,
    /// True if Rigel made the file and nobody has changed it since.
    is_ours: bool,
    doubt: Option<Finding>,
}

impl Permit {
    /// For a file that this process has just made and has held open since.
    pub(super) fn of_own(made: Opened) -> Self {
        Self {
            target: made,
            is_ours: true,
            doubt: None,
        }
    }

    /// What could not be verified, for the report of the run.
    pub fn doubt(&self) -> Option<&Finding> {
        self.doubt.as_ref()
    }

    pub(super) fn target(&self) -> &Opened {
        &self.target
    }

    pub(super) fn is_ours(&self) -> bool {
        self.is_ours
    }
}

/// Permits writing to `target`. Its content may be destroyed if `destroy` names it too.
pub fn permit(target: Opened, destroy: &[PathBuf]) -> Result<Permit, Error> {
    judge(&target, destroy)?;
    let is_ours = is_made_by_rigel(&target)?;
    let doubt = held::doubt(&target);
    Ok(Permit {
        target,
        is_ours,
        doubt,
    })
}

/// Checks whether `target` would be permitted now.
///
/// # Errors
/// The target is in use, contains data that somebody may need, or was not repeated in `destroy`.
pub fn judge(target: &Opened, destroy: &[PathBuf]) -> Result<(), Error> {
    let family = TargetFamily::of(target, &Sys::default())?;
    let target = CheckedTarget {
        opened: target,
        family,
    };
    target.refuse_read_only()?;
    target.refuse_mounted()?;
    target.refuse_swap()?;
    target.refuse_built_on()?;
    target.refuse_exported()?;
    target.refuse_held()?;
    target.refuse_contents()?;
    target.refuse_contents_of_partitions()?;
    target.refuse_place()?;
    target.refuse_below()?;
    let opened = target.opened;
    if is_made_by_rigel(opened)? || destroy.iter().any(|named| is_named(named, opened)) {
        Ok(())
    } else {
        Err(target.unnamed())
    }
}

/// Marks a file that Rigel has made, or has just written to, as Rigel's. Any later change of the file makes the
/// mark void, so this comes last. A filesystem without extended attributes stores no mark; then the user must name
/// the file twice like any other.
pub(super) fn mark(file: &File) {
    let Ok(state) = state_of(file) else { return };
    // Setting a mark changes the file, at a time that only its filesystem knows. It is void if that comes too long
    // after the time that it holds, as on a machine that stood still in between.
    for _ in 0..10 {
        let Ok(changed) = changed_at(file) else {
            return;
        };
        let value = format!("{state} {changed}");
        let flags = rustix::fs::XattrFlags::empty();
        if rustix::fs::fsetxattr(file, MARK, value.as_bytes(), flags).is_err()
            || changed_at(file).is_ok_and(|now| is_same_change(changed, now))
        {
            return;
        }
    }
}

/// The first part of the mark of a file with these facts and this content. It differs on a copy, and when somebody
/// has written to the file or truncated it.
fn state_of(file: &File) -> std::io::Result<String> {
    const BLOCKS: u64 = 16;
    let facts = file.metadata()?;
    let digest = sampled::digest_of(file, facts.len(), BLOCKS)?;
    Ok(format!(
        "{} {} {}.{:09} {digest}",
        facts.ino(),
        facts.len(),
        facts.mtime(),
        facts.mtime_nsec()
    ))
}

/// Time of the last change of a file or its attributes (ctime), in nanoseconds. Unlike the time of the last write, no
/// program can set it.
fn changed_at(file: &File) -> std::io::Result<i128> {
    let facts = file.metadata()?;
    Ok(i128::from(facts.ctime()) * 1_000_000_000 + i128::from(facts.ctime_nsec()))
}

/// True if nothing else has changed a file whose mark holds the time `marked`. The mark itself is set within a tick of
/// the filesystem's clock after that, which is a second at most.
fn is_same_change(marked: i128, now: i128) -> bool {
    (0..=1_000_000_000).contains(&(now - marked))
}

fn is_made_by_rigel(target: &Opened) -> Result<bool, Error> {
    if target.kind() != FileKind::File {
        return Ok(false);
    }
    is_unchanged(target.file()).map_err(|error| unreadable(target.path(), &error))
}

/// True if Rigel made the file, and nobody has changed it or its attributes since.
pub(super) fn is_unchanged(file: &File) -> std::io::Result<bool> {
    let mut value = [0; 256];
    let length = rustix::fs::fgetxattr(file, MARK, &mut value[..]);
    let Ok(length) = length else { return Ok(false) };
    let Ok(value) = std::str::from_utf8(&value[..length]) else {
        return Ok(false);
    };
    let Some((state, marked)) = value.rsplit_once(' ') else {
        return Ok(false);
    };
    let changed = changed_at(file)?;
    let is_fresh = marked
        .parse()
        .is_ok_and(|marked| is_same_change(marked, changed));
    Ok(is_fresh && state == state_of(file)?)
}

/// True if `named` leads to the open file or device; for a file, also under the same path.
fn is_named(named: &Path, target: &Opened) -> bool {
    identity_and_place(named).is_some_and(|(identity, place)| {
        let is_place = || target.place().is_ok_and(|own| own == place);
        identity == target.identity() && (target.kind() == FileKind::Device || is_place())
    })
}

impl CheckedTarget<'_> {
    fn refuse_read_only(&self) -> Result<(), Error> {
        if !self.opened.is_read_only() {
            return Ok(());
        }
        let path = shell_path(self.opened.path());
        Err(self.refusal(
            "is read-only",
            format!("give another device, or allow writes: blockdev --setrw {path}"),
        ))
    }

    fn refuse_mounted(&self) -> Result<(), Error> {
        for mount in checked_mounts().map_err(|why| blind(self.opened.path(), &why))? {
            // Match by number, or by the source if the filesystem invents its own number.
            let source = || Identity::at(&mount.source);
            let by_number = self.family.find(Identity::of_device(mount.device));
            let Some(relative) = by_number.or_else(|| self.family.find(source()?)) else {
                continue;
            };
            let point = mount.point.display();
            return Err(self.refusal(
                format!(
                    "{} mounted on {point} ({})",
                    relative.is("is"),
                    mount.filesystem
                ),
                format!(
                    "give another device, or a directory below {point}, where Rigel makes a \
                     scratch file"
                ),
            ));
        }
        Ok(())
    }

    fn refuse_swap(&self) -> Result<(), Error> {
        let swaps = swaps(&std::fs::read("/proc/swaps").unwrap_or_default());
        for swap in swaps.map_err(|why| blind(self.opened.path(), why))? {
            let identity = Identity::at(&swap);
            if let Some(relative) = identity.and_then(|identity| self.family.find(identity)) {
                let hint = format!(
                    "give another target, or stop its use as swap: `swapoff {}`",
                    shell_path(&swap)
                );
                return Err(self.refusal(format!("{} in use as swap", relative.is("is")), hint));
            }
        }
        Ok(())
    }

    /// Refuses a target that is part of an array, a logical volume, or anything else built on it.
    fn refuse_built_on(&self) -> Result<(), Error> {
        let built = self
            .family
            .members
            .iter()
            .find_map(|relative| Some((relative, relative.built_on.as_ref()?)));
        let Some((upper, lower)) = built else {
            return Ok(());
        };
        let name = &upper.name;
        Err(match upper.relation {
            Relation::Holder if name.starts_with("loop") => self.refusal(
                format!("is the backing file of the loop device /dev/{name}"),
                format!("give /dev/{name} itself, or detach it: losetup --detach /dev/{name}"),
            ),
            Relation::Holder => self.refusal(
                format!("is part of {}", upper.description),
                format!("give /dev/{name} itself if it may be overwritten, or another device"),
            ),
            _ => self.refusal(
                format!(
                    "shares storage with {lower}, which is part of {}",
                    upper.description
                ),
                "give another device",
            ),
        })
    }

    fn refuse_exported(&self) -> Result<(), Error> {
        for (path, what) in exported::served(Path::new("/sys/kernel/config")) {
            let identity = Identity::at(&path);
            if let Some(relative) = identity.and_then(|identity| self.family.find(identity)) {
                let complaint = relative.is(&format!("is served to other machines by {what}"));
                return Err(self.refusal(complaint, "stop that, or give another target"));
            }
        }
        Ok(())
    }

    fn refuse_contents(&self) -> Result<(), Error> {
        let quoted = shell_path(self.opened.path());
        if let Some(found) =
            contents::of(self.opened).map_err(|error| unreadable(self.opened.path(), &error))?
        {
            let hint = match self.opened.kind() {
                FileKind::File => {
                    format!(
                        "give another file; if its content is not needed, remove it yourself: rm \
                         {quoted}"
                    )
                }
                FileKind::Device => format!(
                    "give another device; if its content is not needed, clear it yourself: wipefs \
                     --all {quoted} (or, for a database's data: blkdiscard --force {quoted})"
                ),
            };
            return Err(self.refusal(format!("contains {found}"), hint));
        }
        let Identity::Device(number) = self.opened.identity() else {
            return Ok(());
        };
        let content = contents::known_to_udev(
            Path::new("/run/udev/data"),
            device_number(number),
            self.family.is_of_partition(),
        );
        content.map_or(Ok(()), |content| {
            let hint = format!(
                "give another device; if its content is not needed, clear it yourself and make \
                 udev probe it again: wipefs --all {quoted} && udevadm trigger --settle {quoted}"
            );
            Err(self.refusal(format!("contains {content}, according to udev"), hint))
        })
    }

    /// Refuses a disk for what is in its partitions: the kernel still has them where their table was wiped.
    fn refuse_contents_of_partitions(&self) -> Result<(), Error> {
        let is_partition = |relative: &&Relative| relative.relation == Relation::Partition;
        for relative in self.family.members.iter().filter(is_partition) {
            let path = Path::new("/dev").join(&relative.name);
            let partition = match Opened::open(&path) {
                Ok(partition) if partition.identity() == relative.identity => partition,
                _ => {
                    let why = format!("its partition '{}' cannot be opened", path.display());
                    return Err(blind(self.opened.path(), &why));
                }
            };
            let content = contents::of(&partition).map_err(|error| unreadable(&path, &error))?;
            if let Some(content) = content {
                let named = shell_path(&path);
                return Err(self.refusal(
                    relative.is(&format!("contains {content}")),
                    format!(
                        "give another device; if its content is not needed, clear it yourself: wipefs --all {named}"
                    ),
                ));
            }
        }
        Ok(())
    }

    fn refuse_place(&self) -> Result<(), Error> {
        if self.opened.kind() == FileKind::Device {
            return Ok(());
        }
        let objection = place::objection(self.opened, is_made_by_rigel(self.opened)?)?;
        objection.map_or(Ok(()), |(found, hint)| Err(self.refusal(found, hint)))
    }

    /// Refuses a loop device if the files below it are refused.
    fn refuse_below(&self) -> Result<(), Error> {
        for (path, identity) in &self.family.files {
            let shown = path.display();
            let file = match Opened::open(path) {
                Ok(file) if file.identity() == *identity => file,
                // Nobody can find a deleted file any more.
                _ if path.to_string_lossy().ends_with(" (deleted)") => continue,
                _ => {
                    let why = format!("its backing file '{shown}' cannot be found");
                    return Err(blind(self.opened.path(), &why));
                }
            };
            let content = contents::of(&file).map_err(|error| unreadable(path, &error))?;
            // A partition does not contain the partition table.
            if let Some(content) = content.filter(|_| !self.family.is_of_partition()) {
                return Err(self.refusal(
                    format!("is backed by '{shown}', which contains {content}"),
                    "give another device",
                ));
            }
            if let Some((objection, hint)) = place::objection(&file, is_made_by_rigel(&file)?)? {
                return Err(
                    self.refusal(format!("is backed by '{shown}', which {objection}"), hint)
                );
            }
        }
        Ok(())
    }

    /// The refusal of a target that would be permitted if it were named twice.
    fn unnamed(&self) -> Error {
        let what = match self.opened.kind() {
            FileKind::File => "file",
            FileKind::Device => "device",
        };
        let size = self.opened.bytes().unwrap_or_default();
        self.refusal(
            format!(
                "is a {what} of {} that Rigel did not make, and writing destroys its content",
                Bytes(size)
            ),
            format!(
                "if its content is not needed, confirm by repeating its path: --destroy {}",
                shell_path(self.opened.path())
            ),
        )
    }
}

/// The paths in the text of /proc/swaps, after its header line.
fn swaps(text: &[u8]) -> Result<Vec<PathBuf>, &'static str> {
    let mut lines = text.split(|byte| *byte == b'\n');
    if !lines
        .next()
        .is_some_and(|heading| heading.starts_with(b"Filename"))
    {
        return Err("swap devices cannot be listed: /proc/swaps cannot be read");
    }
    let first = |line: &[u8]| {
        line.split(u8::is_ascii_whitespace)
            .next()
            .filter(|field| !field.is_empty())
            .map(unescape)
    };
    Ok(lines.filter_map(first).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_swaps_without_its_heading_is_no_list() {
        let text = b"Filename\t\tType\n/dev/sda2  partition 1 0 -2\n/a\\040b file 1 0 -3\n";
        assert_eq!(swaps(text), Ok(vec!["/dev/sda2".into(), "/a b".into()]));
        assert_eq!(swaps(b"Filename\tType\n"), Ok(Vec::new()));
        // As if a container hides the file behind /dev/null, or /proc is not mounted.
        assert!(swaps(b"").is_err());
    }
}
