//! What the blocks of a volume hold, and whether they do.
//!
//! Input: the writes of a run, and the blocks that it reads. Output: content for each write, and [`Verified`]. It is
//! known what a block holds if Rigel filled its file, or if this run wrote the block or once read it as written. A read
//! that overlaps a write may find either, and where blocks were only probed, one that Rigel has not written is no fault
//! of the device.

use super::guard;
use super::ledger::Ledger;
use super::opened::Opened;
use crate::clock;
use rigel_model::record::{CoverageMap, Verified, WrongBlock};
use rigel_model::workload::content::{SECTOR, SectorHeld, SectorName, Sectors};
use rigel_model::{Cause, Error, Kind, Outcome, WrongBytes, usage};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks that are read of a file to see whether it describes itself.
const PROBED: u64 = 64;
/// Parts of [`PROBED`] that must: a rotten block among them is a finding, not a reason not to look.
const DESCRIBED_MIN: usize = 58;
/// Size of a probe: a multiple of every device's block.
const PROBE: usize = 4096;
/// Units of the ledger, if all operations are multiples of it; otherwise sectors are.
const UNIT: u64 = 4096;

/// What the files of a volume hold, and what is written to them.
#[derive(Debug)]
pub(super) struct VolumeContents {
    files: Vec<FileContents>,
    /// The generation of the next write: never behind the clock, so that a later run has later ones.
    generation: AtomicU64,
    verification: Option<Verification>,
}

/// One file of a volume.
#[derive(Debug)]
struct FileContents {
    sectors: Sectors,
    described: Described,
    /// The file, to be probed; `None` if it cannot be opened again, or is not read.
    file: Option<File>,
    bytes: u64,
    /// As it was named.
    path: PathBuf,
}

/// Whether the blocks of a file describe themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Described {
    /// Some do not.
    No,
    /// Those that were probed do. One that does not may never have been written by Rigel.
    Probed,
    /// All do: Rigel made the file, and nobody has changed it since.
    Whole,
}

/// What comparing a block found.
enum BlockSeen {
    Right,
    Wrong(WrongBlock),
    /// Rigel may never have written it.
    Unknown,
}

/// How a volume is verified.
#[derive(Debug)]
struct Verification {
    ledger: Ledger,
    /// The units that this run has written, or has read as they were written.
    known: CoverageMap,
    /// Bytes of a unit.
    unit: u64,
    /// The number of each file's first unit in the ledger.
    first_units: Vec<u64>,
    found: Mutex<Verified>,
}

/// An operation, as it was submitted.
#[derive(Debug, Clone, Default)]
pub(super) struct SubmittedOp {
    /// What it does; `None` if nobody looks, or once somebody did.
    kind: Option<Kind>,
    file: usize,
    offset: u64,
    length: u32,
    /// The generation of a write.
    generation: u64,
    /// The oldest generation that each unit of a read may hold.
    floors: Vec<u64>,
    /// True if all that is read was known.
    is_known: bool,
}

impl VolumeContents {
    /// Contents of open files, of which nothing is read: a device counts what it is asked.
    pub(super) fn of<'a>(members: impl Iterator<Item = &'a Opened>) -> Self {
        let contents = |(number, member): (u64, &Opened)| FileContents {
            sectors: Sectors::of_file(clock::fresh_seed().wrapping_add(number)),
            described: Described::No,
            file: readable(member),
            bytes: member.bytes().unwrap_or(0),
            path: member.path().to_path_buf(),
        };
        Self::new((0..).zip(members).map(contents).collect())
    }

    /// The same for files that are written: they go on as their first block begins.
    pub(super) fn going_on(mut self) -> Self {
        self.files.iter_mut().for_each(FileContents::adopt);
        self
    }

    /// Contents of a new file, of which nothing is read.
    pub(super) fn of_new_file() -> Self {
        Self::new(vec![FileContents {
            sectors: Sectors::of_file(clock::fresh_seed()),
            described: Described::No,
            file: None,
            bytes: 0,
            path: PathBuf::new(),
        }])
    }

    fn new(files: Vec<FileContents>) -> Self {
        Self {
            files,
            generation: AtomicU64::new(clock::since_epoch().0),
            verification: None,
        }
    }

    /// Compares from now on what is read with what was written. All operations are multiples of `grain` bytes.
    ///
    /// # Errors
    /// A file does not describe itself, and nothing is written to it.
    pub(super) fn verify(&mut self, grain: u64, writes: bool) -> Result<(), Error> {
        let unit = if grain.is_multiple_of(UNIT) {
            UNIT
        } else {
            SECTOR as u64
        };
        let (mut first_units, mut units) = (Vec::new(), 0);
        for file in &mut self.files {
            file.adopt();
            file.probe();
            if !writes && file.described == Described::No {
                let path = file.path.display();
                return Err(usage!(
                    "--verify cannot know what '{path}' holds: its blocks do not describe themselves, as those that \
                     Rigel writes do",
                    "give a directory, in which a scratch file is filled, or fill it before with rigel calibrate \
                     --write --precondition"
                ));
            }
            first_units.push(units);
            units += file.bytes.div_ceil(unit);
        }
        self.verification = Some(Verification {
            ledger: Ledger::new(units),
            known: CoverageMap::new(units),
            unit,
            first_units,
            found: Mutex::default(),
        });
        Ok(())
    }

    /// True if what is read is compared.
    pub(super) fn is_verified(&self) -> bool {
        self.verification.is_some()
    }

    /// Writes to a file have later generations from here on than all that were made before, by whatever wrote to it.
    pub(super) fn catch_up(&self) {
        self.generation.fetch_max(clock::since_epoch().0, Relaxed);
    }

    /// Fills the sectors of a new file from `offset` on.
    pub(super) fn fill(&self, memory: &mut [u8], offset: u64) {
        self.files[0]
            .sectors
            .write(memory, offset / SECTOR as u64, 0);
    }

    /// Notes a read of `length` bytes that is submitted.
    #[inline]
    pub(super) fn begin_read(
        &self,
        (file, offset): (usize, u64),
        length: u32,
        op: &mut SubmittedOp,
    ) {
        if let Some(verification) = &self.verification {
            op.note(Kind::Read, (file, offset), length);
            let floor = |unit| verification.ledger.floor(unit);
            op.floors.clear();
            op.floors.extend(verification.units(op).map(floor));
            op.is_known = verification
                .units(op)
                .all(|unit| verification.known.has_touched(unit));
        }
    }

    /// Makes the content of a write that is submitted.
    #[inline]
    pub(super) fn begin_write(
        &self,
        (file, offset): (usize, u64),
        memory: &mut [u8],
        op: &mut SubmittedOp,
    ) {
        if let Some(verification) = &self.verification {
            op.note(
                Kind::Write,
                (file, offset),
                u32::try_from(memory.len()).unwrap_or(u32::MAX),
            );
            verification
                .units(op)
                .for_each(|unit| verification.ledger.begin(unit));
        }
        // Later than that of every write that has ended, since this one is in the ledger already.
        op.generation = self.generation.fetch_add(1, Relaxed);
        let sectors = &self.files[file].sectors;
        sectors.write(memory, offset / SECTOR as u64, op.generation);
    }

    /// The outcome of an operation that ended, with its bytes in `memory`. A read of wrong bytes has failed.
    pub(super) fn end(&self, op: &mut SubmittedOp, memory: &[u8], outcome: Outcome) -> Outcome {
        let Some((verification, kind)) = self.verification.as_ref().zip(op.kind.take()) else {
            return outcome;
        };
        let is_done = outcome == Outcome::Done;
        if kind == Kind::Write {
            for unit in verification.units(op) {
                let is_written = is_done && verification.is_whole(op, unit);
                if is_written {
                    verification.known.touch(unit);
                }
                let generation = is_written.then_some(op.generation);
                verification.ledger.end(unit, generation);
            }
            return outcome;
        }
        if !is_done {
            return outcome;
        }
        let compared = op.compare(
            &self.files[op.file],
            &memory[..op.length as usize],
            verification.unit,
        );
        if matches!(compared, BlockSeen::Right) {
            verification
                .units(op)
                .filter(|unit| verification.is_whole(op, *unit))
                .for_each(|unit| verification.known.touch(unit));
        }
        let mut found = verification.found();
        if matches!(compared, BlockSeen::Unknown) {
            found.unknown += 1;
            return outcome;
        }
        found.blocks += 1;
        found.bytes += u64::from(op.length);
        let BlockSeen::Wrong(wrong) = compared else {
            return outcome;
        };
        let how = wrong.how;
        found.wrong_blocks += 1;
        found.name(wrong);
        Outcome::Failed(Cause::Wrong(how))
    }

    /// What was found since the last call; `None` if nobody looks.
    pub(super) fn take(&self) -> Option<Verified> {
        let verification = self.verification.as_ref()?;
        Some(std::mem::take(&mut *verification.found()))
    }
}

impl FileContents {
    /// Takes the identity that the first block of the file has, if it has one.
    fn adopt(&mut self) {
        let names = self
            .file
            .iter()
            .flat_map(|file| names(file, std::iter::once(0)));
        if let Some(name) = names.into_iter().next() {
            self.sectors = Sectors::of_file(name.file);
        }
    }

    /// Looks whether the file describes itself, by blocks at equal distances, the first and the last among them.
    fn probe(&mut self) {
        let blocks = self.bytes / PROBE as u64;
        let Some((file, last)) = self.file.as_ref().zip(blocks.checked_sub(1)) else {
            return;
        };
        let probes = (0..PROBED).map(|probe| last * probe / (PROBED - 1) * PROBE as u64);
        let own = names(file, probes).filter(|name| name.file == self.sectors.file());
        self.described = match own.count() {
            0..DESCRIBED_MIN => Described::No,
            _ if guard::is_unchanged(file).unwrap_or(false) => Described::Whole,
            _ => Described::Probed,
        };
    }
}

impl Verification {
    fn found(&self) -> MutexGuard<'_, Verified> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The units that an operation touches.
    fn units(&self, op: &SubmittedOp) -> Range<u64> {
        let first = self.first_units[op.file];
        let end = op.offset + u64::from(op.length);
        first + op.offset / self.unit..first + end.div_ceil(self.unit)
    }

    /// True if a write covers all of `unit`.
    fn is_whole(&self, op: &SubmittedOp, unit: u64) -> bool {
        let start = (unit - self.first_units[op.file]) * self.unit;
        op.offset <= start && start + self.unit <= op.offset + u64::from(op.length)
    }
}

impl SubmittedOp {
    fn note(&mut self, kind: Kind, (file, offset): (usize, u64), length: u32) {
        self.kind = Some(kind);
        (self.file, self.offset, self.length) = (file, offset, length);
    }

    /// Compares every sector of a read with what it must hold.
    fn compare(&self, contents: &FileContents, memory: &[u8], unit: u64) -> BlockSeen {
        let is_certain = self.is_known || contents.described == Described::Whole;
        if !is_certain && contents.described == Described::No {
            return BlockSeen::Unknown;
        }
        let sectors = &contents.sectors;
        let first = self.offset / SECTOR as u64;
        let floor_of = |number: u64| {
            let at = number * SECTOR as u64 / unit - self.offset / unit;
            let floor = usize::try_from(at).ok().and_then(|at| self.floors.get(at));
            floor.copied().unwrap_or(0)
        };
        // The first sector of an older write, and the generation that it must have.
        let mut stale: Option<(u64, u64)> = None;
        let mut newest_floor = 0;
        for (number, sector) in (first..).zip(memory.chunks_exact(SECTOR)) {
            let floor = floor_of(number);
            match sectors.read(sector, number) {
                Some(generation) if generation >= floor => newest_floor = floor.max(newest_floor),
                Some(_) => stale = stale.or(Some((number, floor))),
                None => {
                    let held = sectors.held(sector, number);
                    let how = match held {
                        SectorHeld::OtherPlace(_) => WrongBytes::Misdirected,
                        SectorHeld::Flipped { .. } => WrongBytes::Rotten,
                        _ if !is_certain => return BlockSeen::Unknown,
                        SectorHeld::OtherFile(_) => WrongBytes::Misdirected,
                        SectorHeld::Zeros => WrongBytes::Gone,
                        SectorHeld::Unknown => WrongBytes::Rotten,
                    };
                    return self.wrong(number, how, held.to_string());
                }
            }
        }
        let Some((number, floor)) = stale else {
            return BlockSeen::Right;
        };
        // Another part of the same write is there.
        let is_torn = newest_floor == floor;
        let (how, held) = if is_torn {
            (
                WrongBytes::Torn,
                "it holds an earlier write, and other sectors the last one",
            )
        } else {
            (WrongBytes::Stale, "it holds an earlier write")
        };
        self.wrong(number, how, held.into())
    }

    fn wrong(&self, sector: u64, how: WrongBytes, held: String) -> BlockSeen {
        BlockSeen::Wrong(WrongBlock {
            member: u32::try_from(self.file).unwrap_or(u32::MAX),
            offset: sector * SECTOR as u64,
            length: self.length,
            how,
            held,
        })
    }
}

/// Memory for direct I/O.
#[repr(align(4096))]
struct Page([u8; PROBE]);

/// The file again, past the page cache where it can be: what another host wrote is not in there.
fn readable(member: &Opened) -> Option<File> {
    let open = |flags| member.reopen(OpenOptions::new().read(true), flags);
    let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    open(direct).or_else(|_| open(0)).ok()
}

/// What the blocks of a file at these offsets say of themselves, if they are at home there.
fn names(file: &File, offsets: impl Iterator<Item = u64>) -> impl Iterator<Item = SectorName> {
    let mut memory = Box::new(Page([0; PROBE]));
    offsets.filter_map(move |offset| {
        file.read_exact_at(&mut memory.0, offset).ok()?;
        let name = Sectors::named(&memory.0[..SECTOR])?;
        (name.number == offset / SECTOR as u64).then_some(name)
    })
}
