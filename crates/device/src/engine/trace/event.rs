//! The kernel's performance events of tracepoints: opened, controlled.
//!
//! Input: a tracepoint's number, and a CPU. Output: a descriptor, or what is missing in words.

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ffi::CStr;
use std::io;

/// `struct perf_event_attr` of `linux/perf_event.h`, version 5.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    registers_user: u64,
    stack_user: u32,
    clock: i32,
    registers_interrupt: u64,
    auxiliary: u32,
    stack_max: u16,
    reserved: u16,
}

const KIND_TRACEPOINT: u32 = 2;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
const FLAG_DISABLED: u64 = 1;
const FLAG_WATERMARK: u64 = 1 << 14;
const FLAG_USE_CLOCK: u64 = 1 << 25;
const OPEN_CLOEXEC: libc::c_ulong = 8;
const IOCTL_ENABLE: libc::Ioctl = 0x2400;
const IOCTL_SET_OUTPUT: libc::Ioctl = 0x2405;
const IOCTL_SET_FILTER: libc::Ioctl = 0x4008_2406;
const IOCTL_SET_PROGRAM: libc::Ioctl = 0x4004_2408;

impl Attributes {
    fn of_tracepoint(id: u16) -> Self {
        Self {
            kind: KIND_TRACEPOINT,
            size: u32::try_from(size_of::<Self>()).expect("a hundred bytes"),
            config: id.into(),
            ..Self::default()
        }
    }
}

/// A tracepoint on one CPU. It does nothing until it is enabled.
#[derive(Debug)]
pub(super) struct TraceEvent(OwnedFd);

impl TraceEvent {
    /// A tracepoint that writes each event, with its time on the monotonic clock, to a ring of this
    /// many bytes.
    ///
    /// # Errors
    /// What is missing, in words, such as a right.
    pub(super) fn sampled(cpu: u32, id: u16, ring: usize) -> Result<Self, String> {
        open(
            cpu,
            &Attributes {
                sample_period: 1,
                sample_type: SAMPLE_TIME | SAMPLE_RAW,
                flags: FLAG_DISABLED | FLAG_WATERMARK | FLAG_USE_CLOCK,
                wakeup: u32::try_from(ring / 2).expect("a ring has megabytes"),
                clock: libc::CLOCK_MONOTONIC,
                ..Attributes::of_tracepoint(id)
            },
        )
    }

    /// A tracepoint that writes nothing by itself.
    ///
    /// # Errors
    /// What is missing, in words, such as a right.
    pub(super) fn plain(cpu: u32, id: u16) -> Result<Self, String> {
        open(
            cpu,
            &Attributes {
                flags: FLAG_DISABLED,
                ..Attributes::of_tracepoint(id)
            },
        )
    }

    /// The descriptor, to map a ring.
    pub(super) fn descriptor(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }

    /// Writes into the ring of another event of the same CPU.
    pub(super) fn share_ring(&self, with: &TraceEvent) -> io::Result<()> {
        self.control(IOCTL_SET_OUTPUT, with.descriptor().cast_unsigned().into())
    }

    /// Drops the events for which the expression is false.
    pub(super) fn filter(&self, expression: &CStr) -> io::Result<()> {
        self.control(IOCTL_SET_FILTER, expression.as_ptr() as libc::c_ulong)
    }

    /// Runs a program of the kernel at the tracepoint, on every CPU, as long as this is open.
    pub(super) fn run(&self, program: &OwnedFd) -> io::Result<()> {
        let program = program.as_raw_fd().cast_unsigned();
        self.control(IOCTL_SET_PROGRAM, program.into())
    }

    /// Lets it begin.
    pub(super) fn enable(&self) -> io::Result<()> {
        self.control(IOCTL_ENABLE, 0)
    }

    fn control(&self, request: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the value is a number, a descriptor, or the address of a text that outlives the call.
        match unsafe { libc::ioctl(self.descriptor(), request, value) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn open(cpu: u32, attributes: &Attributes) -> Result<TraceEvent, String> {
    // SAFETY: the kernel reads `size` bytes of the attributes, and returns a descriptor.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            -1,
            libc::c_long::from(cpu),
            -1,
            OPEN_CLOEXEC,
        )
    };
    let Ok(descriptor @ 0..) = libc::c_int::try_from(opened) else {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                "tracing the requests of a disk needs root, or the right CAP_PERFMON".into()
            }
            Some(libc::EMFILE) => "too few files may be open (ulimit -n)".into(),
            _ => format!("the kernel refuses its events (perf_event_open): {error}"),
        });
    };
    // SAFETY: the kernel has just opened it for us.
    Ok(TraceEvent(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}
