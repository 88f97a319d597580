//! Log writes to a file of their own, as databases make them: pwrite of a record behind the one before,
//! and fdatasync.
//!
//! Input: a directory, and the life cycle of a log's file. Output: an engine that ignores positions. All
//! sessions write to one log, and commit as a group: while one of them waits for fdatasync, the records of
//! the others gather, and the next fdatasync is for all of them. The file begins anew with each point, and
//! where a segment is full. It has no name, as a scratch file has none.

use super::blocking::Blocking;
use super::buffers::Buffers;
use super::guard;
use super::scratch::{self, Made};
use super::verification::VolumeContents;
use super::{Engine, Session};
use crate::clock::Clock;
use rigel_model::{Bytes, Error, Fault, LifeCycle, MIB, Op, Outcome, failed};
use rustix::fs::FallocateFlags;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of a log's file, where it begins anew: a segment of etcd; those of `PostgreSQL` have 16 MiB.
pub const SEGMENT: u64 = 64 * MIB;

/// Size of one write when a file is filled.
const PIECE: usize = 1 << 20;

/// A log, and the engine of its writers.
#[derive(Debug)]
pub struct LogFile {
    made: Made,
    life_cycle: LifeCycle,
    clock: Clock,
    state: Mutex<LogState>,
    /// A group is durable.
    synced: Condvar,
    contents: VolumeContents,
}

/// What its writers share.
#[derive(Debug, Default)]
struct LogState {
    /// Sessions that are open.
    writers: usize,
    /// Where the next record goes.
    end: u64,
    /// Records that were written.
    written: u64,
    /// How many of these, from the first on, are durable or have failed.
    settled: u64,
    /// A writer waits for fdatasync.
    is_syncing: bool,
    /// The first and the last record of each group whose fdatasync failed, and the error's number.
    failed: VecDeque<(u64, u64, i32)>,
}

impl LogState {
    /// Groups that failed and are remembered: a writer that wakes up late looks for its own.
    const FAILED_MOST: usize = 1024;

    /// What fdatasync answered for all records up to the last of the group. A failure is that of each of
    /// them: the kernel reports it once, and says of the same pages that they are durable when it is asked
    /// again.
    fn settle(&mut self, last: u64, result: &std::io::Result<()>) {
        self.is_syncing = false;
        if let Err(error) = result {
            if self.failed.len() == Self::FAILED_MOST {
                self.failed.pop_front();
            }
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            self.failed.push_back((self.settled + 1, last, number));
        }
        self.settled = self.settled.max(last);
    }

    /// What became of a record; `None` until it is known.
    fn fate(&self, record: u64) -> Option<std::io::Result<()>> {
        if record > self.settled {
            return None;
        }
        let is_in = |(first, last, _): &&(u64, u64, i32)| (*first..=*last).contains(&record);
        Some(match self.failed.iter().find(is_in) {
            Some((_, _, number)) => Err(std::io::Error::from_raw_os_error(*number)),
            None => Ok(()),
        })
    }
}

impl LogFile {
    /// Makes the file.
    ///
    /// # Errors
    /// There is too little space, no file can be made in the directory, or its filesystem does not know
    /// the life cycle.
    pub fn new(directory: &Path, life_cycle: LifeCycle) -> Result<Self, Error> {
        scratch::require_room(directory, Bytes(SEGMENT))?;
        let made = Made::new(directory, &scratch::free_name(directory), false)?;
        let file = made.file();
        let prepared = match life_cycle {
            LifeCycle::Reused => fill(file),
            other => begin(file, other),
        };
        prepared.and_then(|()| file.sync_all()).map_err(|error| {
            failed!(
                "cannot make {about} in {directory}: {error}",
                "its filesystem may not know it: try another life cycle, or another filesystem",
                about = life_cycle.about(),
                directory = directory.display()
            )
        })?;
        guard::mark(file);
        Ok(Self {
            made,
            life_cycle,
            clock: Clock::real(),
            state: Mutex::default(),
            synced: Condvar::new(),
            contents: VolumeContents::of_new_file(),
        })
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all records durable that were written so far, or waits for a writer that does.
    fn sync<'a>(&'a self, mut state: MutexGuard<'a, LogState>) -> MutexGuard<'a, LogState> {
        if state.is_syncing {
            let waited = self.synced.wait(state);
            return waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.is_syncing = true;
        let last = state.written;
        drop(state);
        let result = self.made.file().sync_data();
        let mut state = self.state();
        state.settle(last, &result);
        self.synced.notify_all();
        state
    }

    /// Appends a record and waits until it is durable. Returns its bytes.
    fn append(&self, record: &[u8]) -> std::io::Result<usize> {
        let mut state = self.state();
        while state.end + record.len() as u64 > SEGMENT {
            if state.is_syncing || state.settled < state.written {
                state = self.sync(state);
            } else {
                begin(self.made.file(), self.life_cycle)?;
                state.end = 0;
            }
        }
        let bytes = self.made.file().write_at(record, state.end)?;
        state.end += bytes as u64;
        state.written += 1;
        let own = state.written;
        loop {
            if let Some(fate) = state.fate(own) {
                return fate.map(|()| bytes);
            }
            state = self.sync(state);
        }
    }
}

/// Makes a file that was used, or is new, as its life cycle begins.
fn begin(file: &File, life_cycle: LifeCycle) -> std::io::Result<()> {
    if life_cycle == LifeCycle::Reused {
        return Ok(());
    }
    file.set_len(0)?;
    match life_cycle {
        LifeCycle::Reserved => {
            rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, SEGMENT)?;
        }
        LifeCycle::Sized => {
            // Where blocks cannot be reserved, databases set the size alone.
            if rustix::fs::fallocate(file, FallocateFlags::empty(), 0, SEGMENT).is_err() {
                file.set_len(SEGMENT)?;
            }
        }
        LifeCycle::Grow | LifeCycle::Reused => {}
    }
    Ok(())
}

fn fill(file: &File) -> std::io::Result<()> {
    let contents = VolumeContents::of_new_file();
    let mut piece = vec![0; PIECE];
    for at in (0..SEGMENT).step_by(PIECE) {
        contents.fill(&mut piece, at);
        file.write_all_at(&piece, at)?;
    }
    Ok(())
}

/// A session's part in a log.
struct Writer<'a> {
    log: &'a LogFile,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.log.state().writers -= 1;
    }
}

impl Engine for LogFile {
    fn name(&self) -> &'static str {
        "log"
    }

    fn about(&self) -> String {
        let about = self.life_cycle.about();
        format!("pwrite and fdatasync to {about}, one thread per writer")
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        1
    }

    fn usable(&self) -> u64 {
        SEGMENT
    }

    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        let mut state = self.state();
        if state.writers == 0 {
            let file = self.made.file();
            begin(file, self.life_cycle)
                .and_then(|()| file.sync_all())
                .map_err(|error| {
                    failed!(
                        "cannot begin the file of a log anew: {error}",
                        "check the free space of the filesystem"
                    )
                })?;
            state.end = 0;
        }
        state.writers += 1;
        drop(state);
        let writer = Writer { log: self };
        let mut buffers = Buffers::new(lengths, true);
        // Records lie anywhere: each is the first of a generation of its own.
        let contents = &self.contents;
        let execute = move |op: Op| -> Result<Outcome, Fault> {
            let piece = buffers.take(0, op, (0, 0), contents);
            let record = &buffers.piece(piece)[..op.length as usize];
            let transferred = match writer.log.append(record) {
                Ok(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
                Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
            };
            Ok(Outcome::of_transfer(transferred, op.length))
        };
        Ok(Box::new(Blocking::new(self.clock.clone(), execute)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;
    use rigel_model::{Kind, Nanos};
    use std::os::unix::fs::MetadataExt;
    use std::sync::Barrier;

    /// Each of the writers writes this number of records of 5,000 bytes.
    fn write(log: &LogFile, records: u64, writers: u64) {
        let all_are_open = Barrier::new(usize::try_from(writers).unwrap());
        let write = || {
            let mut session = log.open(&[5000]).unwrap();
            all_are_open.wait();
            let mut completed = Vec::new();
            for position in 0..records {
                let op = Op {
                    position,
                    length: 5000,
                    kind: Kind::Log,
                };
                session.submit(0, op).unwrap();
                session.reap(Nanos(0), &mut completed).unwrap();
            }
            assert!(completed.iter().all(|one| one.outcome == Outcome::Done));
            assert_eq!(completed.len() as u64, records);
        };
        std::thread::scope(|scope| {
            for _ in 0..writers {
                scope.spawn(write);
            }
        });
    }

    /// The size of the file and its blocks of 512 bytes, before and after this number of records.
    fn written(life_cycle: LifeCycle, records: u64) -> [(u64, u64); 2] {
        let place = TempDir::new(&format!("log-{life_cycle}-{records}"));
        let log = LogFile::new(&place.0, life_cycle).unwrap();
        assert_eq!(place.entries(), 0, "the file has a name");
        let look = || {
            let facts = log.made.file().metadata().unwrap();
            (facts.len(), facts.blocks())
        };
        let before = look();
        write(&log, records, 1);
        [before, look()]
    }

    #[test]
    fn a_file_is_as_its_life_cycle_says_before_and_after() {
        let whole = SEGMENT / 512;
        let [(size, blocks), (grown, _)] = written(LifeCycle::Grow, 3);
        assert_eq!((size, grown), (0, 15_000));
        // The mark of a file of Rigel's may have a block.
        assert!(blocks < 64, "{blocks}");
        let [(size, blocks), (grown, after)] = written(LifeCycle::Reserved, 3);
        assert_eq!((size, grown), (0, 15_000));
        assert!(blocks >= whole && after >= whole, "{blocks} {after}");
        for life_cycle in [LifeCycle::Sized, LifeCycle::Reused] {
            let [(size, blocks), (grown, _)] = written(life_cycle, 3);
            assert_eq!((size, grown), (SEGMENT, SEGMENT));
            assert!(blocks >= whole, "{blocks}");
        }
    }

    #[test]
    fn records_of_a_group_lie_behind_one_another_and_all_are_durable() {
        let place = TempDir::new("log-group");
        let log = LogFile::new(&place.0, LifeCycle::Grow).unwrap();
        write(&log, 20, 8);
        let state = log.state();
        assert_eq!((state.written, state.settled, state.writers), (160, 160, 0));
        assert!(state.failed.is_empty());
        assert_eq!(log.made.file().metadata().unwrap().len(), 160 * 5000);
        let mut records = std::collections::HashSet::new();
        for number in 0..160 {
            let mut record = vec![0; 5000];
            log.made
                .file()
                .read_exact_at(&mut record, number * 5000)
                .unwrap();
            assert!(records.insert(record), "record {number} is there twice");
        }
    }

    #[test]
    fn a_failure_is_that_of_each_record_of_its_group_however_late_it_looks() {
        let mut state = LogState {
            written: 9,
            ..LogState::default()
        };
        assert!(state.fate(1).is_none());
        state.settle(3, &Ok(()));
        state.settle(6, &Err(std::io::Error::from_raw_os_error(libc::EIO)));
        state.settle(8, &Ok(()));
        let fates: Vec<_> = (1..=9)
            .map(|record| state.fate(record).map(|fate| fate.is_ok()))
            .collect();
        let (kept, lost) = (Some(true), Some(false));
        assert_eq!(
            fates,
            [kept, kept, kept, lost, lost, lost, kept, kept, None]
        );
        for group in 9..3000 {
            state.settle(group, &Err(std::io::ErrorKind::StorageFull.into()));
        }
        assert_eq!(state.failed.len(), LogState::FAILED_MOST);
    }

    #[test]
    fn a_full_segment_begins_anew() {
        let place = TempDir::new("log-full");
        let log = LogFile::new(&place.0, LifeCycle::Grow).unwrap();
        let nearly = SEGMENT - 7000;
        log.state().writers = 1;
        log.state().end = nearly;
        write(&log, 2, 1);
        assert_eq!(log.state().end, 5000);
        assert_eq!(log.made.file().metadata().unwrap().len(), 5000);
    }
}
