//! The kernel's events of block requests, through `perf_event_open` and one ring for each CPU.
//!
//! Input: numbers of disks. Output: [`RequestEvent`]s in order of time, and how many were lost.
//! Nothing is written to the kernel's trace files. Needs `CAP_PERFMON` (or root) and tracefs, which
//! has the layout of events. The kernel drops events of other disks before they reach a ring.

use super::tracepoint::{RequestEvent, RequestStep, TracepointFormat, id_of};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::ffi::CString;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory for the rings of all CPUs together.
const RINGS_BYTES: usize = 16 << 20;

/// Sizes of a ring: large enough for a tenth of a second of 100,000 events a second on one CPU,
/// and small enough for the limits of an ordinary system.
const RING_BYTES_MAX: usize = 4 << 20;
const RING_BYTES_MIN: usize = 64 << 10;

/// Events that may still be on their way to a ring are at most this old: they are timed just before
/// they are written, with interrupts off.
const SETTLE_NS: u64 = 10_000_000;

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

/// Records of a ring.
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// Where the first page of a ring has the kernel's position and ours.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The events of some disks.
#[derive(Debug)]
pub struct BlockTrace {
    formats: Vec<TracepointFormat>,
    rings: Vec<Ring>,
    /// Read from the rings and not yet old enough to be in order, ascending by time.
    held: Vec<RequestEvent>,
    lost: u64,
}

/// One CPU's ring. The first event's descriptor owns it, the others write into it.
#[derive(Debug)]
struct Ring {
    base: NonNull<u8>,
    /// Bytes of data, after the first page; a power of two.
    data: usize,
    page: usize,
    /// The record that is read at present.
    record: Vec<u8>,
    events: Vec<OwnedFd>,
}

impl BlockTrace {
    /// Traces the requests of these disks, of which each is `(major, minor)`.
    ///
    /// # Errors
    /// What is missing, in words, such as a right.
    pub fn open(disks: &[(u32, u32)]) -> Result<Self, String> {
        let tracefs = tracefs()?;
        let formats = RequestStep::ALL
            .into_iter()
            .map(|step| (step, format_of(&tracefs, step)))
            .filter(|(step, format)| format.is_ok() || !step.is_optional())
            .map(|(_, format)| format)
            .collect::<Result<Vec<_>, String>>()?;
        let filter = disks
            .iter()
            .map(|(major, minor)| format!("dev == {}", major << 20 | minor))
            .collect::<Vec<_>>()
            .join(" || ");
        let filter = CString::new(filter).expect("digits have no zero");
        let cpus = online_cpus();
        let share = (RINGS_BYTES / cpus.len().max(1)).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
        let mut bytes = 1 << share.ilog2();
        let rings = loop {
            let all = cpus
                .iter()
                .map(|cpu| Ring::open(*cpu, &formats, &filter, bytes))
                .collect::<Result<Vec<_>, String>>();
            match all {
                Ok(rings) => break rings,
                // An ordinary user with the rights may lock less memory than root.
                Err(_) if bytes > RING_BYTES_MIN => bytes /= 2,
                Err(why) => return Err(why),
            }
        };
        Ok(Self {
            formats,
            rings,
            held: Vec::new(),
            lost: 0,
        })
    }

    /// Passes every event before the time `until` to `each`, in order of time. The clock must be
    /// some milliseconds beyond `until`, so that every CPU has written what it saw before.
    pub fn read(&mut self, until: u64, each: &mut dyn FnMut(&RequestEvent)) {
        let Self {
            formats,
            rings,
            held,
            lost,
        } = self;
        for ring in rings {
            ring.read(formats, held, lost);
        }
        // Consists of a few runs that are in order already, which this sort takes as they are.
        held.sort_by_key(|event| event.at);
        let ready = held.partition_point(|event| event.at < until);
        held.drain(..ready).for_each(|event| each(&event));
    }

    /// The latest time for [`BlockTrace::read`] when the clock shows `now`.
    #[must_use]
    pub fn settled(now: u64) -> u64 {
        now.saturating_sub(SETTLE_NS)
    }

    /// Number of events that were lost since the last call: the kernel dropped them because a ring was
    /// full, or they could not be read.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Bytes of memory for the rings.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.rings.iter().map(|ring| ring.data + ring.page).sum()
    }
}

/// The directory of tracefs: where it is mounted, or else a mount of our own that nobody else sees.
fn tracefs() -> Result<OwnedFd, String> {
    let directory = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH;
    let mut refused = None;
    for path in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        let opened = rustix::fs::open(path, directory, Mode::empty()).and_then(|found| {
            rustix::fs::accessat(
                &found,
                "events/block",
                rustix::fs::Access::EXISTS,
                rustix::fs::AtFlags::empty(),
            )
            .map(|()| found)
        });
        match opened {
            Ok(found) => return Ok(found),
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
                refused = Some(format!("{path} may not be read by this user"));
            }
            Err(_) => {}
        }
    }
    own_tracefs().map_err(|error| {
        refused.unwrap_or_else(|| {
            format!("tracefs is not mounted at /sys/kernel/tracing, and cannot be mounted: {error}")
        })
    })
}

/// A mount that is in no directory, and ends with its descriptor.
fn own_tracefs() -> rustix::io::Result<OwnedFd> {
    use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )
}

fn format_of(tracefs: &OwnedFd, step: RequestStep) -> Result<TracepointFormat, String> {
    let name = step.tracepoint();
    let path = format!("events/block/{name}/format");
    let text = rustix::fs::openat(
        tracefs,
        &path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(io::Error::from)
    .and_then(|file| io::read_to_string(std::fs::File::from(file)));
    match text {
        Ok(text) => TracepointFormat::parse(step, &text)
            .map_err(|field| format!("this kernel's {name} has no field {field} that is known")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err("the layout of the kernel's events may be read by root only".into())
        }
        Err(error) => Err(format!("this kernel has no tracepoint {name}: {error}")),
    }
}

/// The CPUs that are online.
fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_list(&text);
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Largest CPU number that is believed.
const CPU_MAX: u32 = 65_535;

/// Parses a list such as `0-3,8`.
fn parse_list(text: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (last <= CPU_MAX).then_some(first..=last)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

impl Ring {
    fn open(
        cpu: u32,
        formats: &[TracepointFormat],
        filter: &CString,
        bytes: usize,
    ) -> Result<Self, String> {
        let mut events: Vec<OwnedFd> = Vec::new();
        for format in formats {
            events.push(open_event(cpu, format.id, bytes)?);
        }
        let page = rustix::param::page_size();
        let first = &events[0];
        // SAFETY: a new mapping of the ring that belongs to this descriptor, at no fixed address.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                first.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            return Err(format!(
                "no memory for the kernel's events: {error} (see kernel.perf_event_mlock_kb)"
            ));
        }
        let base = NonNull::new(mapped.cast::<u8>()).ok_or("no memory for the kernel's events")?;
        let mut ring = Self {
            base,
            data: bytes,
            page,
            record: Vec::new(),
            events: Vec::new(),
        };
        for (at, event) in events.iter().enumerate() {
            if at > 0 {
                control(
                    event,
                    IOCTL_SET_OUTPUT,
                    first.as_raw_fd().cast_unsigned().into(),
                )
                .map_err(|error| format!("the kernel's events cannot share a ring: {error}"))?;
            }
            control(event, IOCTL_SET_FILTER, filter.as_ptr() as libc::c_ulong)
                .map_err(|error| format!("the kernel's events cannot be filtered: {error}"))?;
        }
        for event in &events {
            control(event, IOCTL_ENABLE, 0)
                .map_err(|error| format!("the kernel's events cannot be enabled: {error}"))?;
        }
        ring.events = events;
        Ok(ring)
    }

    /// Appends the events in this ring to `out`, and adds those that were dropped to `lost`.
    fn read(&mut self, formats: &[TracepointFormat], out: &mut Vec<RequestEvent>, lost: &mut u64) {
        // SAFETY: both words lie in the first page, aligned, and the kernel accesses them as words.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(self.base.as_ptr().add(HEAD).cast()),
                AtomicU64::from_ptr(self.base.as_ptr().add(TAIL).cast()),
            )
        };
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let data = RingData {
            // SAFETY: the data follow the first page in the same mapping.
            base: unsafe { self.base.add(self.page) },
            bytes: self.data,
        };
        while at < end {
            if !data.copy_record(at, end, &mut self.record) {
                // How many events the rest has is unknown: one at least.
                *lost += 1;
                at = end;
                break;
            }
            match parse_record(&self.record) {
                Some(RingRecord::Sample(time, raw)) => {
                    let id = id_of(raw);
                    let format = formats.iter().find(|format| Some(format.id) == id);
                    out.extend(format.and_then(|format| format.event(time, raw)));
                }
                Some(RingRecord::Lost(count)) => *lost = lost.saturating_add(count),
                None => {}
            }
            at += self.record.len() as u64;
        }
        tail.store(at, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.data) };
    }
}

/// The data of a ring. The kernel writes into this memory at any time, although not between our
/// position and its own: so it is copied, and no reference to it is made.
struct RingData {
    base: NonNull<u8>,
    /// A power of two.
    bytes: usize,
}

impl RingData {
    /// Copies the record at position `at` of a ring whose data end at `end`. False if it cannot be one.
    fn copy_record(&self, at: u64, end: u64, record: &mut Vec<u8>) -> bool {
        let mut header = [0; 8];
        if end - at < 8 {
            return false;
        }
        self.copy(at, &mut header);
        let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        if length < 8 || length as u64 > end - at || length > self.bytes {
            return false;
        }
        record.resize(length, 0);
        self.copy(at, record);
        true
    }

    /// Copies the bytes from position `at` on; after the end of the memory comes its beginning.
    fn copy(&self, at: u64, to: &mut [u8]) {
        assert!(
            to.len() <= self.bytes,
            "a record is not longer than its ring"
        );
        let place = usize::try_from(at % self.bytes as u64).expect("less than the ring's bytes");
        let (first, rest) = to.split_at_mut(to.len().min(self.bytes - place));
        // SAFETY: both parts lie in the memory of `bytes` bytes at `base`, by the line above and the
        // assertion, and `to` is memory of our own.
        unsafe {
            let from = self.base.as_ptr().add(place);
            std::ptr::copy_nonoverlapping(from, first.as_mut_ptr(), first.len());
            std::ptr::copy_nonoverlapping(self.base.as_ptr(), rest.as_mut_ptr(), rest.len());
        }
    }
}

/// A record of a ring.
#[derive(Debug, PartialEq)]
enum RingRecord<'a> {
    /// An event: its time, and its bytes.
    Sample(u64, &'a [u8]),
    /// So many events were dropped.
    Lost(u64),
}

/// Reads a record with its header; `None` if it is of another kind.
fn parse_record(record: &[u8]) -> Option<RingRecord<'_>> {
    let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
    match u32::from_ne_bytes(record.get(..4)?.try_into().ok()?) {
        RECORD_SAMPLE => {
            let time = word(8)?;
            let length = u32::from_ne_bytes(record.get(16..20)?.try_into().ok()?);
            let raw = record.get(20..20 + usize::try_from(length).ok()?)?;
            Some(RingRecord::Sample(time, raw))
        }
        RECORD_LOST => Some(RingRecord::Lost(word(16)?)),
        _ => None,
    }
}

fn open_event(cpu: u32, id: u16, ring: usize) -> Result<OwnedFd, String> {
    let attributes = Attributes {
        kind: KIND_TRACEPOINT,
        size: u32::try_from(size_of::<Attributes>()).expect("a hundred bytes"),
        config: id.into(),
        sample_period: 1,
        sample_type: SAMPLE_TIME | SAMPLE_RAW,
        flags: FLAG_DISABLED | FLAG_WATERMARK | FLAG_USE_CLOCK,
        wakeup: u32::try_from(ring / 2).expect("a ring has megabytes"),
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads `size` bytes of the attributes, and returns a descriptor.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
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
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn control(event: &OwnedFd, request: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the value is a number, a descriptor, or the address of a text that outlives the call.
    match unsafe { libc::ioctl(event.as_raw_fd(), request, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(time: u64, raw: &[u8]) -> Vec<u8> {
        let length = (20 + raw.len()).next_multiple_of(8);
        let mut record = RECORD_SAMPLE.to_ne_bytes().to_vec();
        record.extend([0, 0]);
        record.extend(u16::try_from(length).unwrap().to_ne_bytes());
        record.extend(time.to_ne_bytes());
        record.extend(u32::try_from(raw.len()).unwrap().to_ne_bytes());
        record.extend(raw);
        record.resize(length, 0);
        record
    }

    fn data_of(ring: &mut [u8]) -> RingData {
        RingData {
            base: NonNull::new(ring.as_mut_ptr()).unwrap(),
            bytes: ring.len(),
        }
    }

    #[test]
    fn after_an_impossible_record_the_rest_is_lost() {
        let page = rustix::param::page_size();
        // SAFETY: a new mapping at no fixed address: the first page, and a ring of one page.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(mapped, libc::MAP_FAILED);
        let base = NonNull::new(mapped.cast::<u8>()).unwrap();
        let mut record = RECORD_LOST.to_ne_bytes().to_vec();
        record.extend([0, 0, 24, 0]);
        record.extend(5u64.to_ne_bytes());
        record.extend(42u64.to_ne_bytes());
        let mut ring = Ring {
            base,
            data: page,
            page,
            record: Vec::new(),
            events: Vec::new(),
        };
        // SAFETY: both places are in the mapping, and nobody else uses it.
        unsafe {
            base.add(page)
                .copy_from(NonNull::from(&record[0]), record.len());
            // What follows has the length zero.
            base.add(HEAD).cast::<u64>().write(64);
        }
        let (mut out, mut lost) = (Vec::new(), 0);
        ring.read(&[], &mut out, &mut lost);
        assert_eq!((out.len(), lost), (0, 42 + 1));
        // The ring goes on behind it.
        ring.read(&[], &mut out, &mut lost);
        assert_eq!(lost, 42 + 1);
    }

    #[test]
    fn a_list_of_cpus_is_read() {
        assert_eq!(parse_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("0"), [0]);
        assert!(parse_list("").is_empty() && parse_list("0-99999999999").is_empty());
    }

    #[test]
    fn a_record_that_lies_across_the_end_of_the_ring_is_joined() {
        let raw: Vec<u8> = (0..68).collect();
        let record = sample(7, &raw);
        for place in (0..256).step_by(8) {
            let mut ring = vec![0xaa; 256];
            for (at, byte) in record.iter().enumerate() {
                ring[(place + at) % 256] = *byte;
            }
            let (mut found, at) = (Vec::new(), 512 + place as u64);
            let end = at + record.len() as u64;
            assert!(data_of(&mut ring).copy_record(at, end, &mut found));
            assert_eq!(parse_record(&found), Some(RingRecord::Sample(7, &raw[..])));
        }
    }

    #[test]
    fn lost_events_are_counted() {
        let mut record = RECORD_LOST.to_ne_bytes().to_vec();
        record.extend([0, 0, 24, 0]);
        record.extend(5u64.to_ne_bytes());
        record.extend(42u64.to_ne_bytes());
        assert_eq!(parse_record(&record), Some(RingRecord::Lost(42)));
    }

    proptest! {
        #[test]
        fn no_ring_makes_the_reader_panic(
            mut ring in proptest::collection::vec(any::<u8>(), 128..=128),
            at in 0u64..64,
            length in 0u64..256,
        ) {
            let mut record = Vec::new();
            if data_of(&mut ring).copy_record(at * 8, at * 8 + length, &mut record) {
                prop_assert!(record.len() as u64 <= length);
                let _ = parse_record(&record);
            }
        }
    }
}
