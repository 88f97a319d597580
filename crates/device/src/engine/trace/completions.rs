//! Completions of requests, by a program that the kernel runs.
//!
//! Input: the layout of a completion, and numbers of disks. Output: [`RequestEvent`]s, in the order of
//! their records. Needs `CAP_BPF` and `CAP_PERFMON` (or root), and Linux 5.8.

use super::event::TraceEvent;
use super::mapping::Mapping;
use super::program::{BpfInstruction, ProgramMaps, RECORD_TIME, program};
use super::rings::online_cpus;
use super::tracepoint::{RequestEvent, TracepointFormat};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::io;
use std::sync::atomic::Ordering;

/// Bytes of the ring: some seconds of 20,000 completions per second. It is read ten times per
/// second.
const RING_BYTES: usize = 4 << 20;

/// Where the ring's two positions are: in a page that is ours, and in one that is the kernel's. The
/// data follow, twice, so that no record has a break.
const CONSUMED: usize = 0;
const PRODUCED: usize = 0;

/// The header of a record: bits that say that it is being written, or is void, and its length.
const HEADER: usize = 8;
const BUSY: u32 = 1 << 31;
const VOID: u32 = 1 << 30;

/// Commands and kinds of `bpf(2)`.
const CREATE_MAP: libc::c_long = 0;
const LOOK_UP: libc::c_long = 1;
const LOAD_PROGRAM: libc::c_long = 5;
const INFORM: libc::c_long = 15;
const MAP_ARRAY: u32 = 2;
const MAP_RING: u32 = 27;
const PROGRAM_OF_TRACEPOINT: u32 = 5;

/// The first 64 bytes of `union bpf_attr`: the commands above use no more, and all others are zero.
type Arguments = [u64; 8];

/// Where `struct bpf_prog_info` has the number of times that the program was not run, since Linux
/// 5.12.
const INFO_WORDS: usize = 27;
const INFO_MISSES: usize = 26;

/// The completions of some disks.
#[derive(Debug)]
pub(super) struct Completions {
    format: TracepointFormat,
    ring: CompletionRing,
    lost_map: OwnedFd,
    program: OwnedFd,
    /// Keeps the program at its tracepoint.
    _event: TraceEvent,
    /// The record that is read at present.
    record: Vec<u8>,
    /// Lost events that [`Completions::read`] has reported so far.
    reported: u64,
}

/// The ring, as this process sees it.
#[derive(Debug)]
struct CompletionRing {
    /// The page with our position.
    ours: Mapping,
    /// The page with the kernel's position, and the data.
    theirs: Mapping,
    page: usize,
    bytes: usize,
    _descriptor: Option<OwnedFd>,
}

impl Completions {
    /// Traces the completions of these disks. A disk's number is `major << 20 | minor`.
    ///
    /// # Errors
    /// The kernel has no such programs, or the right is missing.
    pub(super) fn open(format: TracepointFormat, disks: &[u32]) -> io::Result<Self> {
        let ring = create_map(MAP_RING, 0, 0, RING_BYTES)?;
        let lost_map = create_map(MAP_ARRAY, 4, 8, 1)?;
        let maps = ProgramMaps {
            ring: ring.as_raw_fd(),
            lost: lost_map.as_raw_fd(),
        };
        let program = program(&format, disks, maps).ok_or(io::ErrorKind::Unsupported)?;
        let program = load(&program)?;
        let cpu = online_cpus()[0];
        let event = TraceEvent::plain(cpu, format.id).map_err(io::Error::other)?;
        let ring = CompletionRing::map(ring)?;
        event.run(&program)?;
        event.enable()?;
        Ok(Self {
            format,
            ring,
            lost_map,
            program,
            _event: event,
            record: Vec::new(),
            reported: 0,
        })
    }

    /// Appends the events in the ring to `out`, and adds those that were dropped to `lost`.
    pub(super) fn read(&mut self, out: &mut Vec<RequestEvent>, lost: &mut u64) {
        while self.ring.next(&mut self.record) {
            let event = self.record.split_at_checked(RECORD_TIME);
            let event = event.and_then(|(time, raw)| {
                let time = u64::from_ne_bytes(time.try_into().ok()?);
                self.format.event(time, raw)
            });
            match event {
                Some(event) => out.push(event),
                None => *lost += 1,
            }
        }
        let all = dropped(&self.lost_map).saturating_add(missed(&self.program));
        *lost = lost.saturating_add(all.saturating_sub(self.reported));
        self.reported = self.reported.max(all);
    }
}

impl CompletionRing {
    fn map(descriptor: OwnedFd) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let number = descriptor.as_raw_fd();
        Ok(Self {
            ours: Mapping::new(number, page, 0, true)?,
            theirs: Mapping::new(number, page + 2 * RING_BYTES, page, false)?,
            page,
            bytes: RING_BYTES,
            _descriptor: Some(descriptor),
        })
    }

    /// Takes the next record that is complete; false if there is none.
    fn next(&mut self, record: &mut Vec<u8>) -> bool {
        let consumed = self.ours.word(CONSUMED);
        let mut position = consumed.load(Ordering::Relaxed);
        let end = self.theirs.word(PRODUCED).load(Ordering::Acquire);
        let mut is_found = false;
        while position < end && !is_found {
            let place =
                usize::try_from(position % self.bytes as u64).expect("less than the ring's bytes");
            let place = self.page + place;
            let header = self.theirs.half_word(place).load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let length = u64::from(header & !VOID);
            is_found = header & VOID == 0;
            if is_found {
                // The kernel keeps a record shorter than the ring, and the data are there twice.
                let length = usize::try_from(length).unwrap_or(self.bytes);
                record.resize(length.min(self.bytes - HEADER), 0);
                self.theirs.copy(place + HEADER, record);
            }
            position += (length + HEADER as u64).next_multiple_of(8);
        }
        consumed.store(position, Ordering::Release);
        is_found
    }
}

/// Events for which the ring had no space.
fn dropped(map: &OwnedFd) -> u64 {
    let (key, mut value) = (0u32, 0u64);
    let words = [
        halves(number(map), 0),
        address(&raw const key),
        address(&raw mut value),
    ];
    // SAFETY: the kernel reads a key of four bytes and writes a value of eight.
    let result = unsafe { bpf(LOOK_UP, &words) };
    if result.is_ok() { value } else { 0 }
}

/// Events at which the kernel did not run the program, as far as it counts that.
fn missed(program: &OwnedFd) -> u64 {
    let mut info = [0u64; INFO_WORDS];
    let bytes = size_of_val(&info) as u64;
    let words = [halves(number(program), bytes), address(info.as_mut_ptr())];
    // SAFETY: the kernel writes at most `bytes` bytes, the size of `info`.
    let result = unsafe { bpf(INFORM, &words) };
    if result.is_ok() { info[INFO_MISSES] } else { 0 }
}

fn create_map(kind: u32, key: u32, value: u32, entries: usize) -> io::Result<OwnedFd> {
    let words = [
        halves(kind.into(), key.into()),
        halves(value.into(), entries as u64),
    ];
    // SAFETY: the kernel reads these words only.
    unsafe { opened(bpf(CREATE_MAP, &words)?) }
}

fn load(program: &[BpfInstruction]) -> io::Result<OwnedFd> {
    // It calls no function that asks for another one.
    let license = c"Apache-2.0";
    let words = [
        halves(PROGRAM_OF_TRACEPOINT.into(), program.len() as u64),
        address(program.as_ptr()),
        address(license.as_ptr()),
    ];
    // SAFETY: the kernel reads the program and the text, which outlive the call.
    unsafe { opened(bpf(LOAD_PROGRAM, &words)?) }
}

/// Two numbers of four bytes as a word: the one that is first in memory, then the other.
fn halves(first: u64, second: u64) -> u64 {
    if cfg!(target_endian = "little") {
        second << 32 | first
    } else {
        first << 32 | second
    }
}

/// The number of a descriptor.
fn number(of: &OwnedFd) -> u64 {
    of.as_raw_fd().cast_unsigned().into()
}

fn address<T>(of: *const T) -> u64 {
    of as u64
}

/// Calls `bpf(2)`.
///
/// # Safety
/// Addresses in the words must be valid for what the command does with them.
unsafe fn bpf(command: libc::c_long, words: &[u64]) -> io::Result<libc::c_long> {
    let mut arguments = Arguments::default();
    arguments[..words.len()].copy_from_slice(words);
    // SAFETY: as above; the kernel reads no more of the arguments than their size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            &raw mut arguments,
            size_of::<Arguments>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// # Safety
/// The kernel has just opened this descriptor for us.
unsafe fn opened(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    let number = libc::c_int::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: as above. The kernel opens descriptors of programs and maps so that no child has them.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of 64 bytes with these records at their places, of which the kernel has produced the
    /// first `produced` bytes.
    fn ring(produced: u64, records: &[(usize, u32, &[u8])]) -> CompletionRing {
        let (page, bytes) = (rustix::param::page_size(), 64);
        let theirs = Mapping::anonymous(page + 2 * bytes);
        theirs.word(PRODUCED).store(produced, Ordering::Relaxed);
        for (place, header, data) in records {
            let record = [&header.to_ne_bytes()[..], &[0; 4], data].concat();
            // The kernel shows the same memory twice.
            for (at, byte) in record.iter().enumerate() {
                let at = (place + at) % bytes;
                theirs.put(page + at, &[*byte]);
                theirs.put(page + bytes + at, &[*byte]);
            }
        }
        CompletionRing {
            ours: Mapping::anonymous(page),
            theirs,
            page,
            bytes,
            _descriptor: None,
        }
    }

    fn taken(ring: &mut CompletionRing) -> Vec<Vec<u8>> {
        let mut record = Vec::new();
        let mut all = Vec::new();
        while ring.next(&mut record) {
            all.push(record.clone());
        }
        all
    }

    #[test]
    fn records_are_taken_in_order_and_void_ones_are_left_out() {
        let records = [
            (0, 3, &b"one"[..]),
            (16, VOID | 8, b"nothing!"),
            (32, 3, b"two"),
        ];
        let mut ring = ring(48, &records);
        assert_eq!(taken(&mut ring), [b"one", b"two"]);
        assert!(taken(&mut ring).is_empty());
        assert_eq!(ring.ours.word(CONSUMED).load(Ordering::Relaxed), 48);
    }

    #[test]
    fn a_record_that_is_being_written_is_waited_for() {
        let mut ring = ring(32, &[(0, 3, b"one"), (16, BUSY | 3, b"...")]);
        assert_eq!(taken(&mut ring), [b"one"]);
        assert_eq!(ring.ours.word(CONSUMED).load(Ordering::Relaxed), 16);
        ring.theirs.put(ring.page + 16, &3u32.to_ne_bytes());
        assert_eq!(taken(&mut ring), [b"..."]);
    }

    #[test]
    fn a_record_over_the_end_of_the_ring_is_whole() {
        let mut ring = ring(64 + 16, &[(48, 24, b"abcdefghijklmnopqrstuvwx")]);
        ring.ours.word(CONSUMED).store(48, Ordering::Relaxed);
        assert_eq!(taken(&mut ring), [b"abcdefghijklmnopqrstuvwx"]);
    }

    #[test]
    fn no_length_makes_the_reader_panic() {
        for length in [0, 63, 64, 65, VOID - 1] {
            let mut ring = ring(8, &[(0, length, b"")]);
            let _ = taken(&mut ring);
        }
    }
}
