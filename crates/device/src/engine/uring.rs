//! Asynchronous I/O with `io_uring`: the default.
//!
//! Requests the fastest ring that the kernel supports and does without refused features;
//! [`Uring::about`] reports which. The main loop decides how many operations one system call
//! carries: one call submits all operations collected since the last call and fetches completions.

use super::buffers::Buffers;
use super::volume::Volume;
use super::{Engine, FileEngine, Session};
use crate::clock::Clock;
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rigel_model::record::Verified;
use rigel_model::{
    Completion, EngineInfo, Error, Fault, FioEngine, Kind, Nanos, Op, Outcome, Slot, failed,
};
use std::os::fd::{AsRawFd, RawFd};

/// Maximum number of outstanding operations in one ring: half of the kernel's limit for a ring's
/// entries, so that the completion ring, twice as long, fits too.
pub const SLOTS_MAX: usize = 16_384;

/// Setups of a ring, best first.
const SETUPS: [Setup; 4] = [
    Setup::NoSubmissionArray,
    Setup::DeferredTaskRun,
    Setup::CooperativeTaskRun,
    Setup::Plain,
];

/// Setup of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setup {
    /// Linux 6.6.
    NoSubmissionArray,
    /// Linux 6.1: completions are processed when we request them and do not interrupt us.
    DeferredTaskRun,
    /// Linux 5.19.
    CooperativeTaskRun,
    /// Linux 5.1.
    Plain,
}

impl Setup {
    fn name(self) -> &'static str {
        match self {
            Setup::NoSubmissionArray => "single issuer, deferred task run, no submission array",
            Setup::DeferredTaskRun => "single issuer, deferred task run",
            Setup::CooperativeTaskRun => "cooperative task run",
            Setup::Plain => "plain ring",
        }
    }

    /// The best setup that the kernel allows, and a ring with it.
    fn best(slots: usize) -> Result<(Self, IoUring), Error> {
        let mut refused = String::new();
        for setup in SETUPS {
            match setup.build(slots) {
                Ok(ring) => return Ok((setup, ring)),
                Err(error) => refused = error.to_string(),
            }
        }
        Err(failed!(
            "io_uring cannot be used here: {refused}",
            "allow it (sysctl kernel.io_uring_disabled=0; in a container, its seccomp profile), or \
             use --engine libaio"
        ))
    }

    fn build(self, slots: usize) -> std::io::Result<IoUring> {
        let mut builder = IoUring::builder();
        match self {
            Setup::NoSubmissionArray => {
                builder
                    .setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_taskrun_flag()
                    .setup_no_sqarray();
            }
            Setup::DeferredTaskRun => {
                builder
                    .setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_taskrun_flag();
            }
            Setup::CooperativeTaskRun => {
                builder.setup_coop_taskrun().setup_taskrun_flag();
            }
            Setup::Plain => {}
        }
        builder
            .dontfork()
            .build(u32::try_from(slots.next_power_of_two()).unwrap_or(u32::MAX))
    }
}

/// This engine in the table of engines.
pub(super) const ENGINE: FileEngine = FileEngine {
    info: EngineInfo {
        name: "uring",
        help: "io_uring, asynchronous also through the page cache",
        thread_per_io: false,
        fio: FioEngine {
            name: "io_uring",
            options: "registerfiles=1\nfixedbufs=1\n",
            log_writes: "",
        },
    },
    open: |clock, volume, lengths| Ok(Box::new(Uring::new(clock, volume, lengths)?)),
};

/// `io_uring` on a volume.
#[derive(Debug)]
pub struct Uring {
    volume: Volume,
    clock: Clock,
    setup: Setup,
    /// Whether the kernel accepted the files and the buffers of a trial ring into its own tables.
    files: bool,
    buffers: bool,
}

impl Uring {
    /// Checks that the kernel allows a ring of `slots`.
    ///
    /// # Errors
    /// `io_uring` is forbidden or missing.
    pub fn granted(slots: usize) -> Result<(), Error> {
        Setup::best(slots).map(drop)
    }

    /// Creates the engine for `volume`. A trial ring with slots for `lengths`, the maximum that
    /// will be needed, detects what the kernel allows.
    ///
    /// # Errors
    /// `io_uring` is forbidden or missing.
    pub fn new(clock: Clock, volume: Volume, lengths: &[u32]) -> Result<Self, Error> {
        let (setup, ring) = Setup::best(lengths.len())?;
        let files = register_files(&ring, &volume);
        let trial = Buffers::new(lengths, volume.is_writable());
        let buffers = register_buffers(&ring, &trial);
        // A dropped ring releases its locked memory some time later: too late for the next ring.
        let _ = ring.submitter().unregister_buffers();
        drop(ring);
        Ok(Self {
            volume,
            clock,
            setup,
            files,
            buffers,
        })
    }
}

fn register_files(ring: &IoUring, volume: &Volume) -> bool {
    let files: Vec<RawFd> = volume.files().iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&files).is_ok()
}

fn register_buffers(ring: &IoUring, buffers: &Buffers) -> bool {
    let pieces: Vec<libc::iovec> = (0..buffers.pieces())
        .map(|piece| libc::iovec {
            iov_base: buffers.address(piece).cast(),
            iov_len: buffers.length(piece),
        })
        .collect();
    // SAFETY: the pieces are allocated, and the owner of both keeps the buffers until the ring is
    // gone.
    unsafe { ring.submitter().register_buffers(&pieces).is_ok() }
}

impl Engine for Uring {
    fn name(&self) -> &'static str {
        ENGINE.info.name
    }

    fn about(&self) -> String {
        let registered = |is: bool, what: &str| {
            if is {
                format!("registered {what}")
            } else {
                format!("{what} not registered")
            }
        };
        format!(
            "io_uring: {}, {}, {}",
            self.setup.name(),
            registered(self.files, "files"),
            registered(self.buffers, "buffers")
        )
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        SLOTS_MAX
    }

    fn usable(&self) -> u64 {
        self.volume.usable()
    }

    fn verifies(&self) -> bool {
        self.volume.contents().is_verified()
    }

    fn verified(&self) -> Option<Verified> {
        self.volume.contents().take()
    }

    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        let failed = |error: std::io::Error| {
            failed!(
                "cannot set up a ring for {count} I/Os: {error}",
                "request fewer outstanding I/Os",
                count = lengths.len()
            )
        };
        let ring = self.setup.build(lengths.len()).map_err(failed)?;
        self.volume.contents().catch_up();
        let buffers = Buffers::new(lengths, self.volume.is_writable());
        let files_registered = self.files && register_files(&ring, &self.volume);
        let buffers_registered = self.buffers && register_buffers(&ring, &buffers);
        Ok(Box::new(UringSession {
            volume: &self.volume,
            clock: &self.clock,
            ring,
            buffers: Some(buffers),
            files_registered,
            buffers_registered,
            asked: vec![0; lengths.len()],
            collected: 0,
            outstanding: 0,
        }))
    }
}

struct UringSession<'a> {
    volume: &'a Volume,
    clock: &'a Clock,
    ring: IoUring,
    /// `None` only while dropping.
    buffers: Option<Buffers>,
    files_registered: bool,
    buffers_registered: bool,
    /// Requested length of the operation in each slot.
    asked: Vec<u32>,
    /// Operations in the submission ring that were not submitted to the kernel yet.
    collected: usize,
    /// Operations that are not completed.
    outstanding: usize,
}

impl UringSession<'_> {
    fn entry(&mut self, slot: Slot, op: Op) -> squeue::Entry {
        let (file, offset) = self.volume.locate(op);
        let buffers = self
            .buffers
            .as_mut()
            .expect("only drop takes the buffers away");
        let piece = buffers.take(slot, op, (file, offset), self.volume.contents());
        let address = buffers.address(piece);
        let piece = u16::try_from(piece).expect("slots are few");
        let fixed_file = Fixed(u32::try_from(file).expect("few files"));
        let plain_file = io_uring::types::Fd(self.volume.files()[file].as_raw_fd());
        let flags = if op.kind == Kind::Log {
            libc::RWF_DSYNC
        } else {
            0
        };
        // Whether a file is registered is part of its type, so this expands the four operations
        // twice.
        macro_rules! entry {
            ($file:expr) => {
                match (op.kind, self.buffers_registered) {
                    (Kind::Read | Kind::Scan, true) => {
                        opcode::ReadFixed::new($file, address, op.length, piece)
                            .offset(offset)
                            .build()
                    }
                    (Kind::Read | Kind::Scan, false) => {
                        opcode::Read::new($file, address, op.length)
                            .offset(offset)
                            .build()
                    }
                    (Kind::Write | Kind::Log, true) => {
                        opcode::WriteFixed::new($file, address, op.length, piece)
                            .offset(offset)
                            .rw_flags(flags)
                            .build()
                    }
                    (Kind::Write | Kind::Log, false) => {
                        opcode::Write::new($file, address, op.length)
                            .offset(offset)
                            .rw_flags(flags)
                            .build()
                    }
                }
            };
        }
        let entry = if self.files_registered {
            entry!(fixed_file)
        } else {
            entry!(plain_file)
        };
        entry.user_data(slot.into())
    }

    /// Submits the collected operations to the kernel. If `wait` is given, waits up to that long
    /// for a completion.
    fn enter(&mut self, wait: Option<Nanos>) -> Result<(), Fault> {
        let submitter = self.ring.submitter();
        let result = match wait {
            None => submitter.submit(),
            Some(wait) => {
                let time = Timespec::from(std::time::Duration::from_nanos(wait.0));
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match result {
            Ok(taken) => {
                self.collected -= taken.min(self.collected);
                Ok(())
            }
            // Timeout, interrupted, or the kernel is short of memory for now: the rest is submitted
            // next time.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)
                ) =>
            {
                self.collected = self.ring.submission().len();
                Ok(())
            }
            Err(error) => Err(Fault(format!("io_uring_enter: {error}"))),
        }
    }

    /// Appends completed operations to `out`.
    fn harvest(&mut self, out: &mut Vec<Completion>) {
        let before = out.len();
        let Self { ring, asked, .. } = self;
        out.extend(ring.completion().map(|entry| {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "user data is the slot it was submitted in"
            )]
            let slot = entry.user_data() as Slot;
            Completion {
                slot,
                outcome: Outcome::of_transfer(entry.result().into(), asked[usize::from(slot)]),
            }
        }));
        self.outstanding -= out.len() - before;
    }
}

impl Session for UringSession<'_> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        let entry = self.entry(slot, op);
        self.asked[usize::from(slot)] = op.length;
        // SAFETY: file, buffer and ring live as long as the session, and `drop` waits for what is
        // outstanding.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| Fault("more operations than slots were submitted".into()))?;
        self.collected += 1;
        self.outstanding += 1;
        Ok(())
    }

    fn look(&mut self, slot: Slot, outcome: Outcome) -> Outcome {
        let buffers = self.buffers.as_mut();
        let buffers = buffers.expect("only drop takes the buffers away");
        buffers.look(slot, outcome, self.volume.contents())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        let ready = !self.ring.completion().is_empty();
        if until > Nanos(0) && !ready {
            let wait = until.since(self.clock.now());
            if self.outstanding == 0 {
                self.clock.wait_until(until);
            } else {
                self.enter(Some(wait))?;
            }
        } else if self.collected > 0 || self.ring.submission().taskrun() {
            self.enter(None)?;
        }
        self.harvest(out);
        Ok(())
    }
}

impl Drop for UringSession<'_> {
    /// Waits for outstanding operations: the kernel writes to our buffers until then.
    fn drop(&mut self) {
        let mut over = Vec::new();
        while self.outstanding > 0 {
            let broken = self
                .ring
                .submit_and_wait(1)
                .is_err_and(|error| error.raw_os_error() != Some(libc::EINTR));
            if broken {
                // Leak memory that the kernel may still write to.
                std::mem::forget(self.buffers.take());
                return;
            }
            self.harvest(&mut over);
        }
        if self.buffers_registered {
            // A dropped ring releases its locked memory some time later: too late for the next
            // session.
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}
