//! A commit counts when a sync of its record has completed, and not before: a filesystem counts both.
//!
//! Every write and every fsync of a log passes through a filesystem of this process, which notes the bytes of each
//! file that were written before a sync that succeeded. They are the witness: nothing here looks at a log's own
//! counts.

use super::device::{FILE, Mounted, attributes, lock};
use crate::common::{Missing, Place, test};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate, ReplyEmpty, ReplyEntry, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rigel_device::engine::Engine;
use rigel_device::engine::log::LogFile;
use rigel_model::{Kind, LifeCycle, LogKind, Nanos, Op, Outcome, SyncMethod};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, SystemTime};

/// Bytes of a commit: not a multiple of anything, as etcd's, where the method takes that.
fn record_of(kind: LogKind) -> u32 {
    if kind.method == SyncMethod::Direct {
        4096
    } else {
        2300
    }
}

/// Commits of each writer.
const COMMITS: u64 = 200;
/// Attributes are asked for again each time: sizes change.
const NEVER: Duration = Duration::ZERO;

/// What was done to a file.
#[derive(Debug, Default, Clone, Copy)]
struct Done {
    size: u64,
    written: u64,
    /// Of those, the bytes that were written before a sync that succeeded.
    durable: u64,
    syncs: u64,
}

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<OsString, u64>,
    files: BTreeMap<u64, Done>,
    /// Syncs of all files, and which of them fail: one in this number; 0 = none.
    syncs: u64,
    failing: u64,
    failed: u64,
}

/// A mounted filesystem that counts, unmounted on drop.
struct Counting {
    mounted: Mounted,
    state: Arc<Mutex<State>>,
}

impl Counting {
    fn mount(place: &Path) -> Result<Self, Missing> {
        let state = Arc::new(Mutex::new(State::default()));
        let server = Server(Arc::clone(&state));
        let at = place.join("counting");
        let mounted = Mounted::mount(server, at, (2, MountOption::NoAtime));
        let mounted = mounted.map_err(|error| Missing(error.to_string()))?;
        Ok(Self { mounted, state })
    }

    /// The sums over all files.
    fn sums(&self) -> Done {
        let mut sums = Done::default();
        for one in lock(&self.state).files.values() {
            sums.written += one.written;
            sums.durable += one.durable;
            sums.syncs += one.syncs;
        }
        sums
    }
}

struct Server(Arc<Mutex<State>>);

impl Server {
    fn attributes(state: &State, inode: INodeNo) -> FileAttr {
        match state.files.get(&inode.0) {
            Some(file) => FileAttr {
                ino: inode,
                ..attributes(FILE, file.size)
            },
            None => attributes(inode, 0),
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let state = lock(&self.0);
        match state.names.get(name) {
            Some(inode) => {
                let known = Self::attributes(&state, INodeNo(*inode));
                reply.entry(&NEVER, &known, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&NEVER, &Self::attributes(&lock(&self.0), inode));
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = lock(&self.0);
        if let (Some(file), Some(size)) = (state.files.get_mut(&inode.0), size) {
            file.size = size;
        }
        reply.attr(&NEVER, &Self::attributes(&state, inode));
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mut state = lock(&self.0);
        let inode = FILE.0 + state.files.len() as u64;
        state.files.insert(inode, Done::default());
        state.names.insert(name.into(), inode);
        let made = Self::attributes(&state, INodeNo(inode));
        let flags = FopenFlags::empty();
        reply.created(&NEVER, &made, Generation(0), FileHandle(0), flags);
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        lock(&self.0).names.remove(name);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let free = 1 << 20;
        reply.statfs(free, free, free, free, free, 4096, 255, 4096);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & libc::FALLOC_FL_KEEP_SIZE == 0
            && let Some(file) = lock(&self.0).files.get_mut(&inode.0)
        {
            file.size = file.size.max(offset + length);
        }
        reply.ok();
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = lock(&self.0);
        let file = state.files.get_mut(&inode.0).expect("it was made");
        file.written += data.len() as u64;
        file.size = file.size.max(offset + data.len() as u64);
        drop(state);
        reply.written(u32::try_from(data.len()).unwrap());
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let written = lock(&self.0).files[&inode.0].written;
        // Records that come meanwhile are not part of it.
        std::thread::yield_now();
        let mut state = lock(&self.0);
        state.syncs += 1;
        if state.failing > 0 && state.syncs.is_multiple_of(state.failing) {
            state.failed += 1;
            drop(state);
            return reply.error(Errno::EIO);
        }
        let file = state.files.get_mut(&inode.0).expect("it was made");
        file.durable = file.durable.max(written);
        file.syncs += 1;
        drop(state);
        reply.ok();
    }
}

/// Commits of all writers that succeeded and that failed, and what the filesystem did for them.
struct Seen {
    done: u64,
    failed: u64,
    of_files: Done,
    failed_syncs: u64,
    /// Syncs whose times the log has.
    timed: u64,
}

/// Each writer commits; what counts is durable at that moment.
fn commit(files: &Counting, kind: LogKind, writers: u64, failing: u64) -> Seen {
    let (log, record) = (
        LogFile::new(&files.mounted.at, kind, writers).unwrap(),
        record_of(kind),
    );
    let ready = Barrier::new(usize::try_from(writers).unwrap() + 1);
    let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let before = Mutex::new(Done::default());
    std::thread::scope(|scope| {
        let writer = || {
            let session = log.open(&[record]);
            ready.wait();
            ready.wait();
            let mut session = session.unwrap();
            let before = before.lock().unwrap().durable;
            let mut over = Vec::new();
            for position in 0..COMMITS {
                let op = Op {
                    position,
                    length: record,
                    kind: Kind::Log,
                };
                session.submit(0, op).unwrap();
                while over.is_empty() {
                    let until = log.clock().now().plus(Nanos::from_secs(10));
                    session.reap(until, &mut over).unwrap();
                }
                for completion in over.drain(..) {
                    if completion.outcome == Outcome::Done {
                        let counted = done.fetch_add(1, SeqCst) + 1;
                        let durable = files.sums().durable - before;
                        assert!(
                            durable >= counted * u64::from(record),
                            "{kind}, {writers} writers: {counted} commits count, and {durable} bytes are durable"
                        );
                    } else {
                        failed.fetch_add(1, SeqCst);
                    }
                }
            }
        };
        for _ in 0..writers {
            scope.spawn(writer);
        }
        ready.wait();
        *before.lock().unwrap() = files.sums();
        lock(&files.state).failing = failing;
        ready.wait();
    });
    let timed = log.syncs().map_or(0, |times| times.histogram.count());
    let (before, after) = (*before.lock().unwrap(), files.sums());
    let mut state = lock(&files.state);
    state.failing = 0;
    Seen {
        done: done.load(SeqCst),
        failed: failed.load(SeqCst),
        of_files: Done {
            size: 0,
            written: after.written - before.written,
            durable: after.durable - before.durable,
            syncs: after.syncs - before.syncs,
        },
        failed_syncs: std::mem::take(&mut state.failed),
        timed,
    }
}

/// Each life cycle by each method. The kernel makes a call of fsync also of a write with `O_DSYNC`.
fn kinds() -> Vec<LogKind> {
    let by = |life_cycle| SyncMethod::ALL.map(|method| LogKind::of(life_cycle).by(method));
    LifeCycle::ALL.into_iter().flat_map(by).collect()
}

#[test]
fn a_commit_counts_after_a_sync_of_its_record_and_once() {
    test(
        "a_commit_counts_after_a_sync_of_its_record_and_once",
        || {
            let place = Place::new("syncs");
            let files = Counting::mount(&place.0)?;
            for kind in kinds() {
                for (writers, is_own) in [(1, false), (4, false), (4, true)] {
                    let kind = LogKind { is_own, ..kind };
                    if kind
                        .check(u32::try_from(writers).unwrap(), record_of(kind))
                        .is_err()
                    {
                        continue;
                    }
                    let seen = commit(&files, kind, writers, 0);
                    let (all, what) = (writers * COMMITS, format!("{kind}, {writers} writers"));
                    assert_eq!((seen.done, seen.failed), (all, 0), "{what}");
                    let bytes = all * u64::from(record_of(kind));
                    let Done {
                        written,
                        durable,
                        syncs,
                        ..
                    } = seen.of_files;
                    assert_eq!((written, durable), (bytes, bytes), "{what}");
                    // A group and the next have at most one record of each writer together, and one of a
                    // writer that found nobody waiting.
                    let least = if is_own || !kind.method.is_shared() {
                        all
                    } else {
                        2 * (all - writers) / (writers + 1)
                    };
                    assert!((least..=all).contains(&syncs), "{what}: {syncs} syncs");
                    // With the others, a commit is the sync.
                    let timed = if kind.method.is_shared() { syncs } else { 0 };
                    assert_eq!(seen.timed, timed, "{what}");
                }
            }
            Ok(())
        },
    );
}

#[test]
fn a_sync_that_fails_is_the_failure_of_all_its_records() {
    test(
        "a_sync_that_fails_is_the_failure_of_all_its_records",
        || {
            let place = Place::new("failing-syncs");
            let files = Counting::mount(&place.0)?;
            for (kind, writers) in [(LogKind::GROW, 1), (LogKind::GROW, 4), (LogKind::REUSED, 4)] {
                let seen = commit(&files, kind, writers, 5);
                let what = format!("{kind}, {writers} writers: {} failed", seen.failed);
                assert_eq!(seen.done + seen.failed, writers * COMMITS, "{what}");
                let groups = seen.failed_syncs;
                assert_eq!(seen.timed, seen.of_files.syncs + groups, "{what}");
                assert!(groups > 0, "{what}");
                assert!(
                    (groups..=groups * writers).contains(&seen.failed),
                    "{what} of {groups} groups"
                );
            }
            Ok(())
        },
    );
}
