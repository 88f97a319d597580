//! A file to measure, created in a directory of the storage under test.
//!
//! Input: a directory and optionally a size. Output: a file of data that neither compress nor
//! deduplicate, with every block written and on the device. Unless it is kept it never has a name,
//! so that nothing is left behind however the process ends. Existing files are never touched.

use super::buffers::Buffers;
use super::guard::{self, Permit};
use super::opened::{Opened, by_number};
use super::verification::VolumeContents;
use rigel_model::{Bytes, Error, FileKind, Finding, FindingName, GIB, MIB, failed, usage};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Minimum size: a cache in the device would hold anything smaller.
const BYTES_MIN: u64 = 64 * MIB;
/// Default size, if there is enough space.
const BYTES_DEFAULT: u64 = 4 * GIB;
/// Size of one write: large enough for the best throughput of any device.
const PIECE: u32 = 4 << 20;
/// Sizes are a multiple of this, which is a multiple of every device's block.
const GRAIN: u64 = 4096;

/// A scratch file; deleted on drop, unless it is kept.
#[derive(Debug)]
pub struct Scratch {
    /// The open file; keeps a file without a name alive.
    made: Made,
    bytes: Bytes,
    name: String,
}

impl Scratch {
    /// Creates a file of `bytes` in `directory` and fills it. The default size is 4 GiB, or a
    /// quarter of the free space if that is less. With `keep` it stays, as
    /// `rigel-scratch-<process>.dat`.
    ///
    /// Calls `progress` after every piece with the bytes written and the total. Filling stops if it
    /// returns false.
    ///
    /// # Errors
    /// There is no such directory, it may not be written to, there is too little space, filling was
    /// stopped, or a write failed.
    pub fn make(
        directory: &Path,
        bytes: Option<Bytes>,
        keep: bool,
        progress: &mut dyn FnMut(Bytes, Bytes) -> bool,
    ) -> Result<Self, Error> {
        let facts = std::fs::metadata(directory).map_err(|error| refused(directory, &error))?;
        if !facts.is_dir() {
            return Err(usage!(
                "{directory} is not a directory",
                "give a directory",
                directory = directory.display()
            ));
        }
        let free = free_space(directory)?;
        let bytes = size(bytes, free).map_err(|problem| no_such_size(directory, problem))?;
        let (mut made, name) = Made::new(directory, keep)?;
        fill(&made.file, bytes, &name, progress)?;
        made.settle(&name, keep)?;
        guard::mark(&made.file);
        let name = if keep {
            name.display().to_string()
        } else {
            format!("a scratch file of {bytes} in {}", directory.display())
        };
        Ok(Self { made, bytes, name })
    }

    /// Opens the file for inspection and for measuring.
    ///
    /// # Errors
    /// The system cannot open it again.
    pub fn opened(&self) -> Result<Opened, Error> {
        Opened::through(&self.made.file, Path::new(&self.name))
    }

    /// A permit to write to it. It needs no check: no path was resolved since the file was created.
    pub fn permit(&self) -> Result<Permit, Error> {
        self.opened().map(Permit::of_own)
    }

    /// Its size.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Name for users: `a scratch file of 4 GiB in /data`, or its path if it is kept.
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// A note if the file is smaller than the default because of little free space.
    pub fn smaller_than_usual(&self) -> Option<Finding> {
        (self.bytes.0 < BYTES_DEFAULT).then(|| {
            let what = format!(
                "the scratch file has {} instead of {}, because little space is free: a cache may \
                 hold more of it",
                self.bytes,
                Bytes(BYTES_DEFAULT)
            );
            Finding::note(FindingName::SmallScratch, what)
        })
    }
}

/// Names that no file has now. In a container every run may have the same PID: the first that is free.
fn free_names(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let numbers = std::process::id()..=u32::MAX;
    let names = numbers.map(|number| directory.join(format!("rigel-scratch-{number}.dat")));
    names.filter(|name| name.symlink_metadata().is_err())
}

/// Refuses new files of `bytes` in total, which are called `what`, where too little space is free.
pub(super) fn require_room(
    directory: &Path,
    what: &str,
    bytes: Bytes,
    hint: &str,
) -> Result<(), Error> {
    fits(bytes, free_space(directory)?).map_err(|problem| {
        usage!(
            "{what} in {directory}: {problem}",
            hint,
            directory = directory.display()
        )
    })
}

/// The error if a file in `directory` cannot have its size, by the problem and its hint.
fn no_such_size(directory: &Path, (what, hint): (String, String)) -> Error {
    usage!(
        "a scratch file in {directory}: {what}",
        hint,
        directory = directory.display()
    )
}

/// The file itself; removes its name on drop unless it is kept.
#[derive(Debug)]
pub(super) struct Made {
    file: File,
    /// The name to remove on drop.
    named: Option<PathBuf>,
}

impl Made {
    /// Creates an empty file, without a name if the filesystem can. Returns also the name that it has, or may
    /// get.
    pub(super) fn new(directory: &Path, keep: bool) -> Result<(Self, PathBuf), Error> {
        let mut names = free_names(directory);
        let mut next = || names.next().expect("no directory has that many files");
        let mut name = next();
        let owner_only = Mode::RUSR | Mode::WUSR;
        let nameless = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(directory, nameless, owner_only) {
            let made = Self {
                file: file.into(),
                named: None,
            };
            return Ok((made, name));
        }
        // NFS and others cannot create a file without a name: there it has one as long as
        // necessary.
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let file = loop {
            match rustix::fs::open(&name, new, owner_only) {
                Ok(file) => break file,
                // Another writer took it meanwhile.
                Err(Errno::EXIST) => name = next(),
                Err(error) => return Err(refused(directory, &error.into())),
            }
        };
        let mut made = Self {
            file: file.into(),
            named: Some(name.clone()),
        };
        if !keep && std::fs::remove_file(&name).is_ok() {
            made.named = None;
        }
        Ok((made, name))
    }

    /// The same file, opened again with these flags; as it is without any.
    pub(super) fn reopen(mut self, flags: OFlags) -> std::io::Result<Self> {
        if !flags.is_empty() {
            let access = OFlags::RDWR | OFlags::CLOEXEC | flags;
            self.file = rustix::fs::open(by_number(&self.file), access, Mode::empty())?.into();
        }
        Ok(self)
    }

    /// The open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the filled file its name if it is kept.
    fn settle(&mut self, name: &Path, keep: bool) -> Result<(), Error> {
        if keep && self.named.take().is_none() {
            rustix::fs::linkat(
                CWD,
                by_number(&self.file),
                CWD,
                name,
                AtFlags::SYMLINK_FOLLOW,
            )
            .map_err(|error| refused(name, &error.into()))?;
        }
        Ok(())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(named) = &self.named {
            let _ = std::fs::remove_file(named);
        }
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    usage!(
        "cannot create a scratch file in {path}: {error}",
        "give an existing directory that you may write to, on the storage to be measured",
        path = path.display()
    )
}

fn free_space(directory: &Path) -> Result<u64, Error> {
    let facts =
        rustix::fs::statvfs(directory).map_err(|error| refused(directory, &error.into()))?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Usable part of free space: others write to the filesystem too, and fail if it is full. A
/// twentieth stays free, but at least 64 MiB.
fn room(free: u64) -> u64 {
    free - (free / 20).max(BYTES_MIN).min(free)
}

/// Size of each of `runs` scratch files in one directory, where the user gave none: together they
/// take no more than one would.
///
/// # Errors
/// There is no such directory, or too little space is free.
pub fn default_size(directory: &Path, runs: u64) -> Result<Bytes, Error> {
    let free = free_space(directory)?;
    shared_size(free, runs).map_err(|problem| no_such_size(directory, problem))
}

/// The same by the free space. Otherwise the problem and its hint.
fn shared_size(free: u64, runs: u64) -> Result<Bytes, (String, String)> {
    let runs = runs.max(1);
    size(None, free / runs).map_err(|(what, hint)| {
        let shared = || {
            format!(
                "{runs} ranks together take a quarter of the free space, {} of {}, and each needs {}",
                Bytes(free / 4),
                Bytes(free),
                Bytes(BYTES_MIN)
            )
        };
        (if runs > 1 { shared() } else { what }, hint)
    })
}

/// Refuses writes to `targets` if filling their holes would take too much space of their
/// filesystem.
///
/// # Errors
/// It would take too much, or the system does not report the space.
pub fn refuse_filling(targets: &[Opened]) -> Result<(), Error> {
    let mut holes: BTreeMap<u64, (u64, &Opened)> = BTreeMap::new();
    for target in targets
        .iter()
        .filter(|target| target.kind() == FileKind::File)
    {
        let facts = target.metadata()?;
        // Units of 512 bytes, whatever the block size.
        let hole = facts
            .len()
            .saturating_sub(facts.blocks().saturating_mul(512));
        holes.entry(facts.dev()).or_insert((0, target)).0 += hole;
    }
    for (holes, target) in holes.into_values() {
        let facts = rustix::fs::fstatvfs(target.file()).map_err(|error| {
            let what = format!(
                "cannot read the free space of the filesystem of '{}': {error}",
                target.path().display()
            );
            Error::failed(what, "give a file that is completely written")
        })?;
        let free = facts.f_bavail.saturating_mul(facts.f_frsize);
        if holes > room(free) {
            return Err(usage!(
                "writing to '{path}' would fill its filesystem: {holes} of the blocks to write are \
                 not allocated yet, {free} are free, of which {room} may be used",
                "give a smaller file or one that is completely written, or free some space",
                path = target.path().display(),
                holes = Bytes(holes),
                free = Bytes(free),
                room = Bytes(room(free))
            ));
        }
    }
    Ok(())
}

/// The size of the file: as requested, or by the free space. Otherwise the problem and its hint.
fn size(asked: Option<Bytes>, free: u64) -> Result<Bytes, (String, String)> {
    let Some(asked) = asked else {
        let bytes = BYTES_DEFAULT.min(free / 4) / MIB * MIB;
        return if bytes < BYTES_MIN {
            Err((
                format!(
                    "a quarter of the free space, {} of {}, is less than {}",
                    Bytes(free / 4),
                    Bytes(free),
                    Bytes(BYTES_MIN)
                ),
                "free some space, or give a directory on a larger filesystem".into(),
            ))
        } else {
            Ok(Bytes(bytes))
        };
    };
    let bytes = asked.0 / GRAIN * GRAIN;
    if bytes < BYTES_MIN {
        return Err((
            format!("{asked} is too small: a cache would hold all of it"),
            format!(
                "request {} or more; better several times the size of the storage's caches",
                Bytes(BYTES_MIN)
            ),
        ));
    }
    fits(Bytes(bytes), free).map_err(|problem| {
        let hint = "request less, free some space, or give a directory on a larger filesystem";
        (problem, hint.into())
    })?;
    Ok(Bytes(bytes))
}

/// The problem if new files of `bytes` in total take more of the free space than may be used.
fn fits(bytes: Bytes, free: u64) -> Result<(), String> {
    let room = room(free);
    if bytes.0 > room {
        return Err(format!(
            "{bytes} does not fit: {} are free, of which {} may be used",
            Bytes(free),
            Bytes(room)
        ));
    }
    Ok(())
}

fn fill(
    file: &File,
    bytes: Bytes,
    name: &Path,
    progress: &mut dyn FnMut(Bytes, Bytes) -> bool,
) -> Result<(), Error> {
    let failed = |error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::FileTooLarge => {
                "raise the limit of file sizes (ulimit -f), or request less with --scratch-size"
            }
            _ => "check the free space of the filesystem, and your quota",
        };
        failed!(
            "filling the scratch file {name} failed: {error}",
            hint,
            name = name.display()
        )
    };
    // Reserve the space at once, so that the file has few extents and a full filesystem shows now.
    // Not every filesystem can.
    let reserved = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes.0);
    match reserved {
        Err(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => {
            return Err(failed(std::io::ErrorKind::StorageFull.into()));
        }
        Err(too_large @ rustix::io::Errno::FBIG) => return Err(failed(too_large.into())),
        _ => {}
    }
    // Bypass the page cache if the filesystem allows it: filling should not evict pages of other
    // programs.
    let direct = rustix::fs::fcntl_getfl(file)
        .and_then(|flags| rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT))
        .is_ok();
    let mut buffers = Buffers::new(&[PIECE], false);
    let contents = VolumeContents::of_new_file();
    let mut written = 0;
    while written < bytes.0 {
        let length =
            usize::try_from(u64::from(PIECE).min(bytes.0 - written)).expect("at most one piece");
        let piece = &mut buffers.piece(0)[..length];
        contents.fill(piece, written);
        file.write_all_at(piece, written).map_err(failed)?;
        written += length as u64;
        if !progress(Bytes(written), bytes) {
            return Err(failed!(
                "stopped while the scratch file was being filled; it is removed",
                ""
            ));
        }
    }
    file.sync_all().map_err(failed)?;
    if !direct {
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::probe::probe;
    use crate::engine::temp_dir::TempDir;

    const SMALL: Option<Bytes> = Some(Bytes(BYTES_MIN));

    #[test]
    fn a_scratch_file_is_full_and_leaves_no_name() {
        let place = TempDir::new("scratch-full");
        let mut reported = Vec::new();
        let mut progress = |done: Bytes, all: Bytes| {
            reported.push(done);
            all.0 == BYTES_MIN
        };
        let scratch = Scratch::make(&place.0, SMALL, false, &mut progress).unwrap();
        assert_eq!(reported.last(), SMALL.as_ref());
        assert_eq!(place.entries(), 0);
        let member = probe(&scratch.opened().unwrap()).unwrap();
        assert_eq!(member.bytes, Bytes(BYTES_MIN));
        if let Some(extents) = member.extents {
            assert_eq!(
                (extents.written, extents.unwritten, extents.holes),
                (Bytes(BYTES_MIN), Bytes(0), Bytes(0))
            );
        }
        let mut block = [0; 4096];
        scratch
            .opened()
            .unwrap()
            .file()
            .read_exact_at(&mut block, BYTES_MIN - 4096)
            .unwrap();
        let different: std::collections::BTreeSet<_> = block.into_iter().collect();
        assert!(different.len() > 200, "the last block holds no random data");
    }

    #[test]
    fn a_kept_scratch_file_has_a_name_and_remains() {
        let place = TempDir::new("scratch-kept");
        let scratch = Scratch::make(&place.0, SMALL, true, &mut |_, _| true).unwrap();
        let path = PathBuf::from(scratch.display_name());
        drop(scratch);
        let before = std::fs::read(&path).unwrap();
        assert_eq!(before.len() as u64, BYTES_MIN);
        let second = Scratch::make(&place.0, SMALL, true, &mut |_, _| true).unwrap();
        assert_ne!(
            second.display_name(),
            path.to_str().unwrap(),
            "an existing file was taken over"
        );
        assert!(
            std::fs::read(&path).unwrap() == before,
            "an existing file was written"
        );
        assert_eq!(place.entries(), 2);
    }

    #[test]
    fn a_stopped_filling_leaves_nothing() {
        let place = TempDir::new("scratch-stopped");
        for keep in [false, true] {
            let error = Scratch::make(&place.0, SMALL, keep, &mut |_, _| false).unwrap_err();
            assert!(error.to_string().contains("stopped"), "{error}");
            assert_eq!(place.entries(), 0);
        }
    }

    #[test]
    fn a_place_that_cannot_take_it_is_refused_by_name() {
        let place = TempDir::new("scratch-refused");
        let file = place.0.join("file");
        File::create(&file).unwrap();
        for path in [place.0.join("absent"), file, "/proc".into()] {
            let error = Scratch::make(&path, SMALL, false, &mut |_, _| true).unwrap_err();
            assert!(
                error.exit_status() == 2 && error.to_string().contains(path.to_str().unwrap()),
                "{error}"
            );
        }
    }

    #[test]
    fn the_size_follows_the_free_space() {
        assert_eq!(size(None, 100 * GIB), Ok(Bytes(4 * GIB)));
        assert_eq!(size(None, 8 * GIB), Ok(Bytes(2 * GIB)));
        assert!(size(None, 255 * MIB).is_err());
        assert_eq!(size(Some(Bytes(GIB + 5)), 8 * GIB), Ok(Bytes(GIB)));
        assert!(size(Some(Bytes(63 * MIB)), 8 * GIB).is_err());
        assert!(size(Some(Bytes(8 * GIB)), 8 * GIB).is_err());
        assert!(size(Some(Bytes(100 * MIB)), 10 * MIB).is_err());
        assert_eq!(shared_size(8 * GIB, 2), Ok(Bytes(GIB)));
        let (what, _) = shared_size(512 * MIB, 3).unwrap_err();
        let expected = "3 ranks together take a quarter of the free space, 128 MiB of 512 MiB, and \
                        each needs 64 MiB";
        assert_eq!(what, expected);
        let (what, _) = shared_size(128 * MIB, 1).unwrap_err();
        assert_eq!(
            what,
            "a quarter of the free space, 32 MiB of 128 MiB, is less than 64 MiB"
        );
    }
}
