//! Log writes to files of their own, as databases make them: a record behind the one before, and durable before it
//! counts.
//!
//! Input: a directory, and a [`LogKind`]. Output: an engine that ignores positions. Sessions that write to one log
//! commit as a group: while one of them waits for fdatasync, the records of the others gather, and the next fdatasync
//! is for all of them. Or each has a log of its own. A file begins anew with each point, and where a segment is full.
//! It has no name, as a scratch file has none.

use super::blocking::Blocking;
use super::buffers::Buffers;
use super::scratch::{self, Made};
use super::verification::VolumeContents;
use super::{Engine, Session};
use crate::clock::{self, Clock};
use io_uring::squeue::Flags;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode};
use rigel_model::record::Latencies;
use rigel_model::{Bytes, Error, Fault, LifeCycle, LogKind, MIB, Op, Outcome, SyncMethod, failed};
use rustix::fs::{FallocateFlags, OFlags};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of a log's file, where it begins anew: a segment of etcd.
pub const SEGMENT: u64 = 64 * MIB;

/// The same of a log that one of several writers has for itself: a segment of `PostgreSQL`.
const OWN_SEGMENT: u64 = 16 * MIB;

/// Size of one write when a file is filled: that of a database's page. Larger ones leave larger pieces in the page
/// cache, and the filesystem looks at the whole of a piece at each sync.
const PIECE: usize = 8 << 10;

/// The engine of a log's writers.
#[derive(Debug)]
pub struct LogFile {
    directory: PathBuf,
    kind: LogKind,
    clock: Clock,
    /// Files for which there was space when the first was made.
    granted: u64,
    logs: Mutex<Logs>,
    /// The times of syncs, of sessions that were closed.
    syncs: Mutex<Latencies>,
    contents: VolumeContents,
}

/// The logs that were made.
#[derive(Debug)]
struct Logs {
    /// Those that no session holds; one that all sessions share is never held.
    free: Vec<Arc<Log>>,
    made: u64,
}

/// A log.
#[derive(Debug)]
struct Log {
    made: Made,
    kind: LogKind,
    segment: u64,
    state: Mutex<LogState>,
    /// A group is durable.
    synced: Condvar,
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
    /// The last record of the next group: the last that was written when the group before it was durable; `None` if
    /// none waited then.
    next_group: Option<u64>,
    /// How long syncs took.
    syncs: Latencies,
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
        // What its writers write next comes after those that wait, as that of a session does, which has work of its
        // own between two commits. Without it, writers would join the next group while its leader wakes up.
        self.next_group = (self.written > last).then_some(self.written);
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
    /// Makes the first file of each log. They are given with the most sessions that write to one at the
    /// same time.
    ///
    /// # Errors
    /// There is too little space for all files together, no file can be made in the directory, or its
    /// filesystem does not know the life cycle or the method.
    pub fn all(
        directory: &Path,
        logs: &BTreeMap<LogKind, u64>,
    ) -> Result<Vec<(LogKind, Self)>, Error> {
        let files = |(kind, writers): (&LogKind, &u64)| if kind.is_own { *writers } else { 1 };
        let bytes: u64 = logs
            .iter()
            .map(|log| segment_of(*log.0).saturating_mul(files(log)))
            .fold(0, u64::saturating_add);
        let own = logs.iter().filter(|(kind, _)| kind.is_own).map(files).sum();
        require_room(directory, own, Bytes(bytes))?;
        let make = |log: (&LogKind, &u64)| {
            let kind = *log.0;
            let logs = Logs {
                free: vec![Arc::new(Log::new(directory, kind)?)],
                made: 1,
            };
            let file = Self {
                directory: directory.to_path_buf(),
                kind,
                clock: Clock::real(),
                granted: files(log),
                logs: Mutex::new(logs),
                syncs: Mutex::default(),
                contents: VolumeContents::of_new_file(),
            };
            Ok((kind, file))
        };
        logs.iter().map(make).collect()
    }

    /// Makes the first file of one log.
    ///
    /// # Errors
    /// As [`LogFile::all`].
    ///
    /// # Panics
    /// Never: there is one file for one log.
    pub fn new(directory: &Path, kind: LogKind, writers: u64) -> Result<Self, Error> {
        let mut made = Self::all(directory, &BTreeMap::from([(kind, writers)]))?;
        Ok(made.remove(0).1)
    }

    /// The methods that work for files in `directory`.
    pub fn methods(directory: &Path) -> Vec<SyncMethod> {
        let works = |method: &SyncMethod| {
            let made = Made::new(directory, false).ok();
            let opened = made.and_then(|(made, _)| made.reopen(flags_of(*method)).ok());
            opened.is_some() && (*method != SyncMethod::Uring || LinkedRing::new().is_ok())
        };
        SyncMethod::ALL.into_iter().filter(works).collect()
    }

    fn syncs(&self) -> MutexGuard<'_, Latencies> {
        self.syncs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log of a new session: the one of all, or one that no other has.
    fn take(&self) -> Result<Arc<Log>, Error> {
        let mut logs = self.logs();
        if !self.kind.is_own {
            return Ok(Arc::clone(&logs.free[0]));
        }
        if let Some(taken) = logs.free.pop() {
            return Ok(taken);
        }
        if logs.made >= self.granted {
            require_room(&self.directory, 1, Bytes(segment_of(self.kind)))?;
        }
        logs.made += 1;
        drop(logs);
        Log::new(&self.directory, self.kind).map(Arc::new)
    }
}

/// Size of a file, where it begins anew.
fn segment_of(kind: LogKind) -> u64 {
    if kind.is_own { OWN_SEGMENT } else { SEGMENT }
}

/// Refuses the files of logs where too little space is free for all of them. `own` is the number of those
/// that a writer has for itself.
fn require_room(directory: &Path, own: u64, bytes: Bytes) -> Result<(), Error> {
    let what = match own {
        0 => "files of logs".to_string(),
        1 => "the file of a writer's log".to_string(),
        own => format!("the files of the logs of {own} writers"),
    };
    let fewer = if own > 1 {
        "give fewer writers (--writers), "
    } else {
        ""
    };
    let hint = format!("{fewer}free some space, or give a directory on a larger filesystem");
    scratch::require_room(directory, &what, bytes, &hint)
}

impl Log {
    fn new(directory: &Path, kind: LogKind) -> Result<Self, Error> {
        let segment = segment_of(kind);
        let (made, _) = Made::new(directory, false)?;
        let log = Self {
            made,
            kind,
            segment,
            state: Mutex::default(),
            synced: Condvar::new(),
        };
        let file = log.made.file();
        let prepared = match kind.life_cycle {
            LifeCycle::Reused => log.fill(),
            _ => log.begin(),
        };
        let prepared = prepared.and_then(|()| file.sync_all());
        let reopened = prepared.and_then(|()| log.made.reopen(flags_of(kind.method)));
        let made = reopened.map_err(|error| {
            failed!(
                "cannot make {about} in {directory}: {error}",
                "its filesystem may not know it: try another life cycle or method, or another filesystem",
                about = kind.about(),
                directory = directory.display()
            )
        })?;
        Ok(Self { made, ..log })
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
        let last = state.next_group.take().unwrap_or(state.written);
        drop(state);
        let began = clock::monotonic();
        let result = match self.kind.method {
            SyncMethod::Fsync => self.made.file().sync_all(),
            _ => self.made.file().sync_data(),
        };
        let took = clock::monotonic().since(began);
        let mut state = self.state();
        state.syncs.record(took);
        state.settle(last, &result);
        self.synced.notify_all();
        state
    }

    /// Appends a record and waits until it is durable. Returns its bytes.
    fn append(&self, record: &[u8], ring: &mut Option<LinkedRing>) -> std::io::Result<usize> {
        let mut state = self.state();
        while state.end + record.len() as u64 > self.segment {
            if state.is_syncing || state.settled < state.written {
                state = self.sync(state);
            } else {
                self.begin()?;
                state.end = 0;
            }
        }
        let (file, at) = (self.made.file(), state.end);
        let bytes = match (self.kind.method, ring) {
            (SyncMethod::RwfDsync, _) => {
                let record = [std::io::IoSlice::new(record)];
                rustix::io::pwritev2(file, &record, at, rustix::io::ReadWriteFlags::DSYNC)?
            }
            (SyncMethod::Uring, Some(ring)) => ring.append(file, record, at)?,
            _ => file.write_at(record, at)?,
        };
        state.end += bytes as u64;
        state.written += 1;
        let own = state.written;
        if !self.kind.method.is_shared() {
            // It is durable already.
            state.settled = own;
            return Ok(bytes);
        }
        loop {
            if let Some(fate) = state.fate(own) {
                return fate.map(|()| bytes);
            }
            state = self.sync(state);
        }
    }

    /// Makes a file that was used, or is new, as its life cycle begins.
    fn begin(&self) -> std::io::Result<()> {
        let file = self.made.file();
        if self.kind.life_cycle == LifeCycle::Reused {
            return Ok(());
        }
        file.set_len(0)?;
        match self.kind.life_cycle {
            LifeCycle::Reserved => {
                rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, self.segment)?;
            }
            LifeCycle::Sized => {
                // Where blocks cannot be reserved, databases set the size alone.
                if rustix::fs::fallocate(file, FallocateFlags::empty(), 0, self.segment).is_err() {
                    file.set_len(self.segment)?;
                }
            }
            LifeCycle::Grow | LifeCycle::Reused => {}
        }
        Ok(())
    }

    fn fill(&self) -> std::io::Result<()> {
        let contents = VolumeContents::of_new_file();
        let mut piece = vec![0; PIECE];
        for at in (0..self.segment).step_by(PIECE) {
            contents.fill(&mut piece, at);
            self.made.file().write_all_at(&piece, at)?;
        }
        Ok(())
    }
}

/// How a file is opened for a method.
fn flags_of(method: SyncMethod) -> OFlags {
    match method {
        SyncMethod::OpenDatasync => OFlags::DSYNC,
        SyncMethod::Direct => OFlags::DSYNC | OFlags::DIRECT,
        SyncMethod::Fdatasync | SyncMethod::Fsync | SyncMethod::RwfDsync | SyncMethod::Uring => {
            OFlags::empty()
        }
    }
}

/// A ring of one session, which writes and syncs by one system call.
struct LinkedRing(IoUring);

impl LinkedRing {
    fn new() -> Result<Self, Error> {
        let ring = IoUring::builder().dontfork().build(4);
        ring.map(Self).map_err(|error| {
            failed!(
                "io_uring cannot be used here: {error}",
                "allow it (sysctl kernel.io_uring_disabled=0), or use another method, such as fdatasync"
            )
        })
    }

    /// Writes a record at an offset, and then syncs the file. Returns its bytes.
    fn append(&mut self, file: &File, record: &[u8], at: u64) -> std::io::Result<usize> {
        let to = Fd(file.as_raw_fd());
        let length = u32::try_from(record.len()).map_err(std::io::Error::other)?;
        let write = opcode::Write::new(to, record.as_ptr(), length)
            .offset(at)
            .build();
        let sync = opcode::Fsync::new(to).flags(FsyncFlags::DATASYNC).build();
        let both = [write.flags(Flags::IO_LINK).user_data(0), sync.user_data(1)];
        // SAFETY: the record and the file live until both have completed, which is awaited below.
        unsafe { self.0.submission().push_multiple(&both) }.map_err(std::io::Error::other)?;
        let (mut written, mut left) = (Ok(0), both.len());
        while left > 0 {
            match self.0.submit_and_wait(left) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
                    ) => {}
                Err(error) => return Err(error),
            }
            for entry in self.0.completion() {
                left -= 1;
                match usize::try_from(entry.result()) {
                    Ok(bytes) if entry.user_data() == 0 => written = written.map(|_: usize| bytes),
                    Ok(_) => {}
                    Err(_) => written = Err(std::io::Error::from_raw_os_error(-entry.result())),
                }
            }
        }
        written
    }
}

/// A session's part in a log.
struct Writer<'a> {
    engine: &'a LogFile,
    log: Arc<Log>,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        let mut state = self.log.state();
        state.writers -= 1;
        let syncs = std::mem::take(&mut state.syncs);
        drop(state);
        self.engine.syncs().merge(&syncs);
        if self.engine.kind.is_own {
            self.engine.logs().free.push(Arc::clone(&self.log));
        }
    }
}

impl Engine for LogFile {
    fn name(&self) -> &'static str {
        "log"
    }

    fn about(&self) -> String {
        let (by, about) = (self.kind.method.about(), self.kind.life_cycle.about());
        format!("{by} to {about}, one thread per writer")
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

    fn syncs(&self) -> Option<Latencies> {
        let syncs = std::mem::take(&mut *self.syncs());
        (syncs.histogram.count() > 0).then_some(syncs)
    }

    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        let log = self.take()?;
        let mut state = log.state();
        if state.writers == 0 {
            let begun = log.begin().and_then(|()| log.made.file().sync_all());
            begun.map_err(|error| {
                failed!(
                    "cannot begin the file of a log anew: {error}",
                    "check the free space of the filesystem"
                )
            })?;
            state.end = 0;
        }
        state.writers += 1;
        drop(state);
        let is_linked = self.kind.method == SyncMethod::Uring;
        let mut ring = is_linked.then(LinkedRing::new).transpose()?;
        let writer = Writer { engine: self, log };
        let mut buffers = Buffers::new(lengths, true);
        // Records lie anywhere: each is the first of a generation of its own.
        let contents = &self.contents;
        let execute = move |op: Op| -> Result<Outcome, Fault> {
            let piece = buffers.take(0, op, (0, 0), contents);
            let record = &buffers.piece(piece)[..op.length as usize];
            let transferred = match writer.log.append(record, &mut ring) {
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

    impl LogFile {
        /// The log of all sessions, or one that none has.
        fn first(&self) -> Arc<Log> {
            Arc::clone(&self.logs().free[0])
        }
    }

    #[test]
    fn the_next_group_is_of_those_that_waited_when_the_last_one_was_durable() {
        let mut state = LogState {
            written: 5,
            is_syncing: true,
            ..LogState::default()
        };
        // Two were of the group; three came meanwhile.
        state.settle(2, &Ok(()));
        assert_eq!((state.settled, state.next_group), (2, Some(5)));
        // The two write again before the next group is synced: they are of the one after it.
        state.written = 7;
        let last = state.next_group.take().unwrap();
        state.settle(last, &Ok(()));
        assert_eq!((state.settled, state.next_group), (5, Some(7)));
        state.next_group = None;
        state.settle(7, &Ok(()));
        assert_eq!(state.next_group, None, "nobody waits");
    }

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
    fn written(kind: LogKind, records: u64) -> [(u64, u64); 2] {
        let place = TempDir::new(&format!("log-{kind}-{records}"));
        let log = LogFile::new(&place.0, kind, 1).unwrap();
        assert_eq!(place.entries(), 0, "the file has a name");
        let look = || {
            let facts = log.first().made.file().metadata().unwrap();
            (facts.len(), facts.blocks())
        };
        let before = look();
        write(&log, records, 1);
        [before, look()]
    }

    #[test]
    fn a_file_is_as_its_life_cycle_says_before_and_after() {
        let whole = SEGMENT / 512;
        let [(size, blocks), (grown, _)] = written(LogKind::GROW, 3);
        assert_eq!((size, grown), (0, 15_000));
        assert_eq!(blocks, 0);
        let [(size, blocks), (grown, after)] = written(LogKind::RESERVED, 3);
        assert_eq!((size, grown), (0, 15_000));
        assert!(blocks >= whole && after >= whole, "{blocks} {after}");
        for kind in [LogKind::SIZED, LogKind::REUSED] {
            let [(size, blocks), (grown, _)] = written(kind, 3);
            assert_eq!((size, grown), (SEGMENT, SEGMENT));
            assert!(blocks >= whole, "{blocks}");
        }
    }

    #[test]
    fn records_of_a_group_lie_behind_one_another_and_all_are_durable() {
        let place = TempDir::new("log-group");
        let log = LogFile::new(&place.0, LogKind::GROW, 8).unwrap();
        write(&log, 20, 8);
        let first = log.first();
        let state = first.state();
        assert_eq!((state.written, state.settled, state.writers), (160, 160, 0));
        assert!(state.failed.is_empty());
        assert_eq!(
            log.first().made.file().metadata().unwrap().len(),
            160 * 5000
        );
        let mut records = std::collections::HashSet::new();
        for number in 0..160 {
            let mut record = vec![0; 5000];
            log.first()
                .made
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
        let log = LogFile::new(&place.0, LogKind::GROW, 8).unwrap();
        let nearly = SEGMENT - 7000;
        log.first().state().writers = 1;
        log.first().state().end = nearly;
        write(&log, 2, 1);
        assert_eq!(log.first().state().end, 5000);
        assert_eq!(log.first().made.file().metadata().unwrap().len(), 5000);
    }

    #[test]
    fn every_method_writes_each_record_once_and_whole() {
        for method in SyncMethod::ALL {
            let place = TempDir::new(&format!("log-{}", method.name()));
            let log = LogFile::new(&place.0, LogKind::GROW.by(method), 1).unwrap();
            let mut session = log.open(&[8192]).unwrap();
            let mut completed = Vec::new();
            for position in 0..5 {
                let op = Op {
                    position,
                    length: 8192,
                    kind: Kind::Log,
                };
                session.submit(0, op).unwrap();
                session.reap(Nanos(0), &mut completed).unwrap();
            }
            assert!(
                completed.iter().all(|one| one.outcome == Outcome::Done),
                "{method:?}: {completed:?}"
            );
            let first = log.first();
            let file = first.made.file();
            assert_eq!(file.metadata().unwrap().len(), 5 * 8192, "{method:?}");
            let state = first.state();
            assert_eq!((state.written, state.settled), (5, 5), "{method:?}");
        }
    }

    #[test]
    fn writers_with_logs_of_their_own_have_one_each_and_take_them_again() {
        let place = TempDir::new("log-own");
        let kind = LogKind {
            is_own: true,
            ..LogKind::GROW
        };
        let log = LogFile::new(&place.0, kind, 4).unwrap();
        for _ in 0..2 {
            write(&log, 3, 4);
            let logs = log.logs();
            let (free, made) = (&logs.free, logs.made);
            assert_eq!(made, 4);
            assert_eq!(free.len(), 4);
            let bytes = free
                .iter()
                .map(|one| one.made.file().metadata().unwrap().len());
            assert_eq!(bytes.collect::<Vec<_>>(), [15_000; 4]);
        }
    }
}
