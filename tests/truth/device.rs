//! A device whose times are programmed: one file in a filesystem of this process.
//!
//! Goes in: a [`Behaviour`]. Comes out: a path to read from with direct I/O, and the device's own [`Count`] of what it
//! did. Each thread that serves takes one request, sleeps until the answer is due and gives it, so as many are served
//! at once as there are threads, and the others wait in the kernel's queue, first come first served.
//! Nothing is stored: every read gives the same bytes, none of them zero, and a write is refused.

use crate::common::{Missing, Place, need, text, wait};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request,
};
use rigel::clock::Clock;
use rigel::model::Nanos;
use rigel::workload::rng::Rng;
use std::ffi::OsStr;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

/// Sleeping ends this long before an answer is due, and the rest is spun: a thread that sleeps wakes up late.
const SPIN: Nanos = Nanos(20_000);
/// Attributes never change.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);
/// More outstanding reads than any test has.
const OUTSTANDING_MAX: u16 = 256;
const NAME: &str = "file";
const FILE: INodeNo = INodeNo(2);

/// What the device does with a read. Every choice follows from `seed` and the number of the read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behaviour {
    /// How long a read takes. Zero: it is answered as soon as it is seen.
    pub(crate) service: Nanos,
    /// The share of reads that take this long instead.
    pub(crate) slow: (f64, Nanos),
    /// The share of reads that fail with `EIO`, in the time that they would have taken.
    pub(crate) errors: f64,
    /// So long after the first read the device stops, and so long it stands still, whatever it is serving.
    pub(crate) stall: Option<(Nanos, Nanos)>,
    /// Reads served at once.
    pub(crate) servers: usize,
    pub(crate) seed: u64,
}

impl Behaviour {
    /// Every read takes `service`.
    pub(crate) const fn fixed(service: Nanos) -> Self {
        Self { service, slow: (0.0, Nanos(0)), errors: 0.0, stall: None, servers: 8, seed: 11 }
    }
}

/// What the device did.
#[derive(Debug, Default)]
pub(crate) struct Count {
    taken: AtomicU64,
    served: AtomicU64,
    failed: AtomicU64,
    slow: AtomicU64,
    held: AtomicU64,
    first: OnceLock<Nanos>,
    stopped: OnceLock<Nanos>,
}

impl Count {
    /// Reads answered with data.
    pub(crate) fn served(&self) -> u64 {
        self.served.load(Relaxed)
    }

    /// Reads answered with `EIO`.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Reads that took the slow time.
    pub(crate) fn slow(&self) -> u64 {
        self.slow.load(Relaxed)
    }

    /// Reads that the stall held up.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// When the stall first held up a read, counted from the first read; none if it held up none.
    pub(crate) fn stopped(&self) -> Option<Nanos> {
        self.stopped.get().copied()
    }
}

/// A mounted device, unmounted at the end.
pub(crate) struct Device {
    /// Its only file.
    pub(crate) path: PathBuf,
    pub(crate) count: Arc<Count>,
    mount: PathBuf,
    /// Serves until it is unmounted.
    _session: fuser::BackgroundSession,
}

impl Device {
    /// A device of `bytes` in a directory of its own in `place`.
    pub(crate) fn mount(place: &Place, bytes: u64, behaviour: Behaviour) -> Result<Self, Missing> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !Path::new("/dev/fuse").exists() {
            return Err(Missing("no /dev/fuse: the kernel has no FUSE, or a container hides it".into()));
        }
        let mount = place.0.join(format!("device-{}", NUMBER.fetch_add(1, Relaxed)));
        std::fs::create_dir_all(&mount).unwrap();
        let count = Arc::new(Count::default());
        let server = Server { clock: Clock::real(), bytes, behaviour, count: Arc::clone(&count) };
        let mut config = Config::default();
        // Read-only, or the kernel forgets the attributes at every read to have a new access time.
        config.mount_options = vec![MountOption::RO, MountOption::FSName("rigel-truth".into())];
        config.n_threads = Some(behaviour.servers);
        let session = fuser::Session::new(server, &mount, &config).and_then(|session| {
            // Its threads take after the one that starts them.
            std::thread::scope(|scope| {
                let start = || {
                    real_time(1);
                    session.spawn()
                };
                scope.spawn(start).join().expect("starting threads does not panic")
            })
        });
        let session = session.map_err(|error| Missing(format!("mounting a FUSE filesystem: {error}")))?;
        // Each thread of the crate first clears 16 MiB for itself.
        wait(100);
        Ok(Self { path: mount.join(NAME), count, mount, _session: session })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The kernel closes the files of a ring after the ring: until then a plain unmount finds the device busy.
        let _ = need("umount", &["--lazy", text(&self.mount)]);
    }
}

/// Has the calling thread, and those that it starts, run before all others but those of a higher priority. Where that is
/// not allowed, it is left as it is: the times are then as exact as the machine is idle.
pub(crate) fn real_time(priority: u32) {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let _ = need("chrt", &["--fifo", "--pid", &priority.to_string(), &thread]);
}

struct Server {
    clock: Clock,
    bytes: u64,
    behaviour: Behaviour,
    count: Arc<Count>,
}

impl Server {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let (kind, size) = if inode == FILE { (FileType::RegularFile, self.bytes) } else { (FileType::Directory, 0) };
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: 0o555,
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// When the read that arrived at `now` is due to be answered, having taken `service`.
    fn due(&self, now: Nanos, service: Nanos) -> Nanos {
        let first = *self.count.first.get_or_init(|| now);
        let due = now.plus(service);
        let Some((at, length)) = self.behaviour.stall else { return due };
        let (stop, go) = (first.plus(at), first.plus(at).plus(length));
        if due <= stop || now >= go {
            return due;
        }
        self.count.held.fetch_add(1, Relaxed);
        let held_from = now.max(stop);
        self.count.stopped.get_or_init(|| held_from.since(first));
        due.plus(go.since(held_from))
    }

    fn wait_until(&self, due: Nanos) {
        if self.clock.now() >= due {
            return;
        }
        // Of the calling thread alone; the default lets a sleep end 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.clock.wait_until(Nanos(due.0.saturating_sub(SPIN.0)));
        while self.clock.now() < due {
            std::hint::spin_loop();
        }
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it direct reads of one file run one after the other.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| io::Error::other("no FUSE_ASYNC_DIO"))?;
        let wrong = |_| io::Error::other("the number of outstanding reads");
        config.set_max_background(OUTSTANDING_MAX).map_err(wrong)?;
        config.set_congestion_threshold(OUTSTANDING_MAX).map_err(wrong)?;
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&FOR_EVER, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(inode));
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
        let now = self.clock.now();
        let (behaviour, count) = (&self.behaviour, &self.count);
        let mut rng = Rng::new(behaviour.seed, count.taken.fetch_add(1, Relaxed));
        let (is_slow, fails) = (rng.unit() < behaviour.slow.0, rng.unit() < behaviour.errors);
        self.wait_until(self.due(now, if is_slow { behaviour.slow.1 } else { behaviour.service }));
        // Counted before the answer, or who has it could ask too early.
        count.slow.fetch_add(u64::from(is_slow), Relaxed);
        if fails {
            count.failed.fetch_add(1, Relaxed);
            reply.error(Errno::EIO);
        } else {
            count.served.fetch_add(1, Relaxed);
            let size = usize::try_from(u64::from(size).min(self.bytes.saturating_sub(offset))).expect("32 bits fit");
            reply.data(&vec![0xa5; size]);
        }
    }
}
