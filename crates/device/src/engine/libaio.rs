//! Asynchronous I/O with Linux's older interface, used by Oracle and Orion: `io_submit` and
//! `io_getevents`.
//!
//! Makes four system calls directly. Only direct I/O is asynchronous: through the page cache,
//! `io_submit` itself blocks.

use super::buffers::Buffers;
use super::volume::Volume;
use super::{Engine, FileEngine, Session};
use crate::clock::Clock;
use rigel_model::record::Verified;
use rigel_model::{
    Cause, Completion, EngineInfo, Error, Fault, FioEngine, Kind, Nanos, Op, Outcome, Slot, failed,
};
use std::io;
use std::os::fd::AsRawFd;

/// `struct iocb` of `linux/aio_abi.h`, little-endian.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    address: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// `IOCB_CMD_PREAD` and `IOCB_CMD_PWRITE`.
const PREAD: u16 = 0;
const PWRITE: u16 = 1;

/// This engine in the table of engines.
pub(super) const ENGINE: FileEngine = FileEngine {
    info: EngineInfo {
        name: "libaio",
        help: "Linux's older asynchronous I/O, which needs direct I/O",
        thread_per_io: false,
        fio: FioEngine {
            name: "libaio",
            options: "",
            log_writes: "",
        },
    },
    open: |clock, volume, _| Ok(Box::new(Libaio::new(clock, volume))),
};

/// libaio on a volume.
#[derive(Debug)]
pub struct Libaio {
    volume: Volume,
    clock: Clock,
}

impl Libaio {
    /// Creates the engine for `volume`.
    pub fn new(clock: Clock, volume: Volume) -> Self {
        Self { volume, clock }
    }
}

impl Engine for Libaio {
    fn name(&self) -> &'static str {
        ENGINE.info.name
    }

    fn about(&self) -> String {
        if self.volume.is_direct() {
            "libaio: io_submit, io_getevents".into()
        } else {
            "libaio: io_submit, io_getevents; through the page cache io_submit itself waits for \
             the device"
                .into()
        }
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        usize::from(Slot::MAX)
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
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `context`.
        check(unsafe { libc::syscall(libc::SYS_io_setup, lengths.len(), &raw mut context) })
            .map_err(|error| {
                let hint = "raise fs.aio-max-nr (sysctl), or request fewer outstanding I/Os";
                failed!(
                    "io_setup for {count} I/Os: {error}",
                    hint,
                    count = lengths.len()
                )
            })?;
        self.volume.contents().catch_up();
        Ok(Box::new(LibaioSession {
            volume: &self.volume,
            clock: &self.clock,
            context,
            buffers: Some(Buffers::new(lengths, self.volume.is_writable())),
            blocks: vec![ControlBlock::default(); lengths.len()],
            collected: Vec::with_capacity(lengths.len()),
            pointers: Vec::with_capacity(lengths.len()),
            events: vec![IoEvent::default(); lengths.len()],
            outstanding: 0,
        }))
    }
}

struct LibaioSession<'a> {
    volume: &'a Volume,
    clock: &'a Clock,
    context: libc::c_ulong,
    /// `None` only while dropping.
    buffers: Option<Buffers>,
    /// One per slot. Never grows, so that the kernel may keep addresses.
    blocks: Vec<ControlBlock>,
    /// Slots of the control blocks not submitted to the kernel yet, in order.
    collected: Vec<Slot>,
    /// Buffer for their addresses.
    pointers: Vec<*const ControlBlock>,
    events: Vec<IoEvent>,
    /// Operations submitted to the kernel and not completed.
    outstanding: usize,
}

impl LibaioSession<'_> {
    /// Submits the collected operations to the kernel. An operation that it refuses completes with
    /// an error.
    fn submit_collected(&mut self, out: &mut Vec<Completion>) {
        if self.collected.is_empty() {
            return;
        }
        // Addresses are computed only now, and no control block is touched between this and the
        // call.
        let blocks = self.blocks.as_ptr();
        self.pointers.clear();
        self.pointers.extend(
            self.collected
                .iter()
                .map(|slot| blocks.wrapping_add(usize::from(*slot))),
        );
        // SAFETY: every pointer is to a control block of this session; file and buffer in it live
        // as long as the session.
        let result = check(unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.context,
                self.pointers.len(),
                self.pointers.as_ptr(),
            )
        });
        match result {
            Ok(taken) => {
                self.outstanding += taken;
                self.collected.drain(..taken);
            }
            Err(error) if again(&error) => {}
            // The kernel refuses the first operation of the batch and has not checked the others.
            Err(error) => {
                let slot = self.collected.remove(0);
                let number = error.raw_os_error().unwrap_or(libc::EIO);
                out.push(Completion {
                    slot,
                    outcome: Outcome::Failed(Cause::Errno(number)),
                });
            }
        }
    }

    /// Waits for at least `least` operations, at most for `wait`, and appends completed operations
    /// to `out`.
    fn fetch(&mut self, least: usize, wait: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        let time = libc::timespec {
            tv_sec: i64::try_from(wait.0 / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(wait.0 % 1_000_000_000).unwrap_or(0),
        };
        // SAFETY: the kernel writes at most `events.len()` events to it.
        let result = check(unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                least,
                self.events.len(),
                self.events.as_mut_ptr(),
                &raw const time,
            )
        });
        let count = match result {
            Ok(count) => count,
            Err(error) if again(&error) => 0,
            Err(error) => return Err(Fault(format!("io_getevents: {error}"))),
        };
        self.outstanding -= count;
        out.extend(self.events[..count].iter().map(|event| {
            let slot = slot_of(event.data);
            let length = u32::try_from(self.blocks[usize::from(slot)].length).unwrap_or(u32::MAX);
            Completion {
                slot,
                outcome: Outcome::of_transfer(event.result, length),
            }
        }));
        Ok(())
    }
}

impl Session for LibaioSession<'_> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        let (file, offset) = self.volume.locate(op);
        let buffers = self
            .buffers
            .as_mut()
            .expect("only drop takes the buffers away");
        let piece = buffers.take(slot, op, (file, offset), self.volume.contents());
        let (opcode, rw_flags) = match op.kind {
            Kind::Read | Kind::Scan => (PREAD, 0),
            Kind::Write => (PWRITE, 0),
            Kind::Log => (PWRITE, libc::RWF_DSYNC.cast_unsigned()),
        };
        self.blocks[usize::from(slot)] = ControlBlock {
            data: slot.into(),
            opcode,
            rw_flags,
            file: u32::try_from(self.volume.files()[file].as_raw_fd())
                .expect("an open file's number is not negative"),
            address: buffers.address(piece) as u64,
            length: op.length.into(),
            offset: i64::try_from(offset).expect("file offsets fit"),
            ..ControlBlock::default()
        };
        self.collected.push(slot);
        Ok(())
    }

    fn look(&mut self, slot: Slot, outcome: Outcome) -> Outcome {
        let buffers = self.buffers.as_mut();
        let buffers = buffers.expect("only drop takes the buffers away");
        buffers.look(slot, outcome, self.volume.contents())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        self.submit_collected(out);
        if until == Nanos(0) || !out.is_empty() {
            return self.fetch(0, Nanos(0), out);
        }
        if self.outstanding == 0 {
            self.clock.wait_until(until);
            return Ok(());
        }
        self.fetch(1, until.since(self.clock.now()), out)
    }
}

impl Drop for LibaioSession<'_> {
    /// Waits for outstanding operations: the kernel writes to our buffers until then.
    fn drop(&mut self) {
        let mut over = Vec::new();
        while self.outstanding > 0 {
            if self.fetch(1, Nanos::from_secs(1), &mut over).is_err() {
                // Leak memory that the kernel may still write to.
                std::mem::forget(self.buffers.take());
                break;
            }
        }
        // SAFETY: the context is ours and is used no more.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

/// The slot stored in a control block or an event.
#[expect(clippy::cast_possible_truncation, reason = "its data is a slot")]
fn slot_of(data: u64) -> Slot {
    data as Slot
}

/// Converts the result of a system call into a count or an error.
fn check(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// True for errors that mean "try again".
fn again(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR))
}
