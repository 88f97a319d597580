//! A device with programmed times that logs every read: one file in a filesystem of this process.
//!
//! Input: a [`Behaviour`]. Output: a path to read from with direct I/O, and a [`Served`] in the log
//! for each read: when it came, when it was answered, and what was done to it. The log reads the
//! machine's monotonic clock directly, not through Rigel's code. Each serving thread takes one
//! request, sleeps until the answer is due, and sends it. So the device serves as many reads at
//! once as it has threads, and the others wait in the kernel's queue, first come first
//! served. Nothing is stored: every read returns the same bytes, none of them zero, and writes are
//! refused.
//!
//! The benchmark `against_fio` and the tests of signals include this file: it uses nothing of the tests.

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request,
};
use std::ffi::OsStr;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Sleeping ends this long before an answer is due, and the thread spins for the rest: sleeping
/// threads wake up late.
const SPIN: Duration = Duration::from_micros(20);
/// Poll interval while reads wait for others to come.
const POLL: Duration = Duration::from_millis(1);
/// Timeout for the device to wait for reads that do not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Attributes never change.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(1 << 20);
/// More outstanding reads than any test uses.
const OUTSTANDING_MAX: u16 = 256;
pub(crate) const NAME: &str = "file";
pub(crate) const FILE: INodeNo = INodeNo(2);

/// What the device does with a read. All choices depend on the number of the read, from 0 in order
/// of arrival.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behaviour {
    /// Duration of a read. With zero it is answered as soon as it is seen.
    pub(crate) service: Duration,
    /// One of this many reads takes this long instead; 0 = none.
    pub(crate) slow: (u64, Duration),
    /// One of this many reads fails with `EIO`, after its normal duration; 0 = none.
    pub(crate) errors: u64,
    /// When the read with this number comes, the device stalls for this long, whatever it is
    /// serving.
    pub(crate) stall: Option<(u64, Duration)>,
    /// This many first reads are answered only when all of them have come.
    pub(crate) together: u64,
    /// Number of reads served at once.
    pub(crate) servers: usize,
    /// Reads that it serves a second in the long run, and how many more at once; a rate of 0 = no limit.
    pub(crate) limit: (u32, u32),
}

impl Behaviour {
    /// A device on which every read takes `service`.
    pub(crate) const fn fixed(service: Duration) -> Self {
        Self {
            service,
            slow: (0, Duration::ZERO),
            errors: 0,
            stall: None,
            together: 0,
            servers: 4,
            limit: (0, 0),
        }
    }
}

/// One read, as the device saw it.
#[derive(Debug, Clone, Copy)]
#[allow(
    dead_code,
    reason = "the tests and the benchmark each use a part of it"
)]
pub(crate) struct Served {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    /// When a server took the read.
    pub(crate) came: Instant,
    /// When the server sent the answer. The reader gets it later.
    pub(crate) went: Instant,
    /// True if it took the slow time.
    pub(crate) slow: bool,
    /// True if it was answered with `EIO`.
    pub(crate) failed: bool,
    /// True if the stall delayed it.
    pub(crate) held: bool,
}

/// Maximum number of reads that the device served at the same time.
pub(crate) fn at_once(log: &[Served]) -> usize {
    let mut moments: Vec<(Instant, i64)> = log
        .iter()
        .flat_map(|read| [(read.came, 1), (read.went, -1)])
        .collect();
    moments.sort_unstable();
    let mut now = 0;
    let counts = moments.iter().map(|(_, change)| {
        now += change;
        now
    });
    counts
        .max()
        .and_then(|most| usize::try_from(most).ok())
        .unwrap_or(0)
}

/// State shared by the threads of a device and its owner.
#[derive(Debug, Default)]
struct Shared {
    taken: AtomicU64,
    log: Mutex<Vec<Served>>,
    /// No read is answered while it is set.
    hangs: AtomicBool,
    /// Nothing at all is.
    hangs_all: AtomicBool,
    /// End of the stall, once it has begun.
    go: Mutex<Option<Instant>>,
    /// When the bucket of the limit will be full again.
    full: Mutex<Option<Instant>>,
}

/// A filesystem of this process, unmounted on drop.
pub(crate) struct Mounted {
    /// Where it is mounted.
    pub(crate) at: PathBuf,
    /// Serves until it is unmounted.
    _session: fuser::BackgroundSession,
}

impl Mounted {
    /// Mounts what `server` serves by this number of threads in a new directory.
    pub(crate) fn mount<Served: Filesystem + Send + Sync + 'static>(
        server: Served,
        at: PathBuf,
        (threads, option): (usize, MountOption),
    ) -> io::Result<Self> {
        if !Path::new("/dev/fuse").exists() {
            return Err(io::Error::other(
                "no /dev/fuse: the kernel has no FUSE, or a container hides it",
            ));
        }
        std::fs::create_dir_all(&at)?;
        let mut config = Config::default();
        config.mount_options = vec![option, MountOption::FSName("rigel-truth".into())];
        config.n_threads = Some(threads);
        let session = fuser::Session::new(server, &at, &config).and_then(fuser::Session::spawn);
        let session = session.map_err(|error| {
            io::Error::new(error.kind(), format!("mounting a FUSE filesystem: {error}"))
        })?;
        Ok(Self {
            at,
            _session: session,
        })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The kernel closes the files of a ring after the ring: until then a plain unmount finds
        // the device busy.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.at)
            .stderr(Stdio::null())
            .status();
    }
}

/// A mounted device, unmounted on drop.
pub(crate) struct Device {
    /// Its only file.
    pub(crate) path: PathBuf,
    shared: Arc<Shared>,
    _mounted: Mounted,
}

impl Device {
    /// Mounts a device of `bytes` in its own directory in `place`.
    pub(crate) fn mount(place: &Path, bytes: u64, behaviour: Behaviour) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        assert!(
            behaviour.together <= behaviour.servers as u64,
            "reads that wait in the queue do not come"
        );
        let at = place.join(format!("device-{}", NUMBER.fetch_add(1, Relaxed)));
        let shared = Arc::new(Shared::default());
        let server = Server {
            bytes,
            behaviour,
            shared: Arc::clone(&shared),
        };
        // Read-only, otherwise the kernel discards the attributes at every read to get a new access
        // time.
        let mounted = Mounted::mount(server, at, (behaviour.servers, MountOption::RO))?;
        Ok(Self {
            path: mounted.at.join(NAME),
            shared,
            _mounted: mounted,
        })
    }

    /// Answers no more reads, until it is told to.
    #[allow(dead_code, reason = "only some test programs have devices that hang")]
    pub(crate) fn hang(&self, hangs: bool) {
        self.shared.hangs.store(hangs, Relaxed);
        if !hangs {
            self.shared.hangs_all.store(false, Relaxed);
        }
    }

    /// Answers nothing more, not even whether the file is there, until it is told to.
    #[allow(dead_code, reason = "only some test programs have devices that hang")]
    pub(crate) fn hang_all(&self) {
        self.shared.hangs_all.store(true, Relaxed);
        self.hang(true);
    }

    /// Number of reads answered so far.
    #[allow(dead_code, reason = "only some test programs have devices that hang")]
    pub(crate) fn answered(&self) -> usize {
        lock(&self.shared.log).len()
    }

    /// Returns the log since the last call, sorted by time of answer. Read numbers restart at 0.
    /// Nobody may be reading.
    pub(crate) fn take(&self) -> Vec<Served> {
        self.shared.taken.store(0, Relaxed);
        *lock(&self.shared.go) = None;
        std::mem::take(&mut lock(&self.shared.log))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.hang(false);
    }
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return;
    }
    // Only for the calling thread; by default a sleep may end 50 us late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    sleep(left.saturating_sub(SPIN));
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

/// The attributes of the file of `bytes` that a filesystem has, or of its directory.
pub(crate) fn attributes(inode: INodeNo, bytes: u64) -> FileAttr {
    let (kind, size) = if inode == FILE {
        (FileType::RegularFile, bytes)
    } else {
        (FileType::Directory, 0)
    };
    FileAttr {
        ino: inode,
        size,
        blocks: size / 512,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0o755,
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

struct Server {
    bytes: u64,
    behaviour: Behaviour,
    shared: Arc<Shared>,
}

impl Server {
    fn wait_for_answers(&self) {
        while self.shared.hangs_all.load(Relaxed) {
            sleep(POLL);
        }
    }

    /// Takes the next token of the limit.
    fn wait_for_token(&self, came: Instant) {
        let (rate, burst) = self.behaviour.limit;
        if rate == 0 {
            return;
        }
        let one = Duration::from_secs(1) / rate;
        let due = {
            let mut full = lock(&self.shared.full);
            let next = full.map_or(came, |full| full.max(came)) + one;
            *full = Some(next);
            next.checked_sub(one * burst)
        };
        due.into_iter().for_each(wait_until);
    }

    /// Waits as long as required for the read with this number, which came at `came`. Returns
    /// whether the stall delayed it.
    fn serve(&self, number: u64, came: Instant, service: Duration) -> bool {
        self.wait_for_token(came);
        let Behaviour {
            stall, together, ..
        } = self.behaviour;
        if let Some((_, length)) = stall.filter(|(at, _)| *at == number) {
            *lock(&self.shared.go) = Some(came + length);
        }
        wait_until(came + service);
        while number < together
            && self.shared.taken.load(Relaxed) < together
            && came.elapsed() < PATIENCE
        {
            sleep(POLL);
        }
        while self.shared.hangs.load(Relaxed) {
            sleep(POLL);
        }
        let go = lock(&self.shared.go).filter(|go| came < *go);
        go.into_iter().for_each(wait_until);
        go.is_some()
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it, direct reads of one file are serialised.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| io::Error::other("no FUSE_ASYNC_DIO"))?;
        let wrong = |_| io::Error::other("the number of outstanding reads");
        config.set_max_background(OUTSTANDING_MAX).map_err(wrong)?;
        config
            .set_congestion_threshold(OUTSTANDING_MAX)
            .map_err(wrong)?;
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.wait_for_answers();
        if name == NAME {
            reply.entry(&FOR_EVER, &attributes(FILE, self.bytes), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.wait_for_answers();
        reply.attr(&FOR_EVER, &attributes(inode, self.bytes));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let came = Instant::now();
        let (behaviour, shared) = (&self.behaviour, &self.shared);
        let number = shared.taken.fetch_add(1, Relaxed);
        let is_one_in = |count: u64| count > 0 && number % count == count - 1;
        let (slow, failed) = (is_one_in(behaviour.slow.0), is_one_in(behaviour.errors));
        let held = self.serve(
            number,
            came,
            if slow {
                behaviour.slow.1
            } else {
                behaviour.service
            },
        );
        let served = Served {
            offset,
            bytes: size,
            came,
            went: Instant::now(),
            slow,
            failed,
            held,
        };
        // Log before the answer, otherwise the reader could look too early.
        lock(&shared.log).push(served);
        if failed {
            reply.error(Errno::EIO);
        } else {
            let size = usize::try_from(u64::from(size).min(self.bytes.saturating_sub(offset)))
                .expect("32 bits fit");
            reply.data(&vec![0xa5; size]);
        }
    }
}
