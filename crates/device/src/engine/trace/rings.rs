//! One ring of the kernel's performance events for each CPU.
//!
//! Input: layouts of tracepoints, and numbers of disks. Output: [`RequestEvent`]s, in order for each
//! CPU.

use super::event::TraceEvent;
use super::mapping::Mapping;
use super::tracepoint::{RequestEvent, TracepointFormat, id_of};
use crate::rights;
use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering;

/// Memory for the rings of all CPUs together.
const RINGS_BYTES: usize = 16 << 20;

/// Sizes of a ring: large enough for a tenth of a second of 100,000 events per second on one CPU,
/// and small enough for the limits of an ordinary system.
const RING_BYTES_MAX: usize = 4 << 20;
const RING_BYTES_MIN: usize = 64 << 10;

/// Records of a ring.
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// Where the first page of a ring has the kernel's position and ours.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The rings of all CPUs.
#[derive(Debug)]
pub(super) struct Rings {
    formats: Vec<TracepointFormat>,
    /// Lets the kernel drop events of other disks.
    filter: CString,
    /// Size of each ring.
    bytes: usize,
    of_cpus: Vec<Ring>,
}

/// One CPU's ring. The first event's descriptor owns it, the others write into it.
#[derive(Debug)]
struct Ring {
    cpu: u32,
    data: RingData,
    /// The record that is read at present.
    record: Vec<u8>,
    _events: Vec<TraceEvent>,
}

/// The first page with the positions, and the data behind it.
#[derive(Debug)]
struct RingData {
    mapping: Mapping,
    /// Where the data begin.
    page: usize,
    /// A power of two.
    bytes: usize,
}

impl Rings {
    /// Opens the tracepoints of these disks on every CPU that is online. A disk's number is
    /// `major << 20 | minor`.
    ///
    /// # Errors
    /// What is missing, in words, such as a right.
    pub(super) fn open(formats: Vec<TracepointFormat>, disks: &[u32]) -> Result<Self, String> {
        let filter = disks
            .iter()
            .map(|disk| format!("dev == {disk}"))
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
            filter,
            bytes,
            of_cpus: rings,
        })
    }

    /// Opens rings for CPUs that came online, and closes those of CPUs that are gone: their events
    /// do not return with them. What a CPU saw before its ring was open is unknown: `lost` counts
    /// one event. So it does at each call for a CPU whose ring cannot be opened.
    pub(super) fn follow_cpus(&mut self, out: &mut Vec<RequestEvent>, lost: &mut u64) {
        let online = online_cpus();
        let is_gone = |ring: &&mut Ring| !online.contains(&ring.cpu);
        for ring in self.of_cpus.iter_mut().filter(is_gone) {
            ring.read(&self.formats, out, lost);
        }
        self.of_cpus.retain(|ring| online.contains(&ring.cpu));
        for cpu in online {
            if self.of_cpus.iter().all(|ring| ring.cpu != cpu) {
                let ring =
                    rights::to_trace(|| Ring::open(cpu, &self.formats, &self.filter, self.bytes));
                self.of_cpus.extend(ring.ok());
                *lost += 1;
            }
        }
    }

    /// Appends the events in the rings to `out`, and adds those that were dropped to `lost`.
    pub(super) fn read(&mut self, out: &mut Vec<RequestEvent>, lost: &mut u64) {
        for ring in &mut self.of_cpus {
            ring.read(&self.formats, out, lost);
        }
    }
}

/// The CPUs that are online.
pub(super) fn online_cpus() -> Vec<u32> {
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
        filter: &CStr,
        bytes: usize,
    ) -> Result<Self, String> {
        let events = formats
            .iter()
            .map(|format| TraceEvent::sampled(cpu, format.id, bytes))
            .collect::<Result<Vec<_>, String>>()?;
        let page = rustix::param::page_size();
        let first = &events[0];
        let mapping = Mapping::new(first.descriptor(), page + bytes, 0, true).map_err(|error| {
            format!("no memory for the kernel's events: {error} (see kernel.perf_event_mlock_kb)")
        })?;
        for (at, event) in events.iter().enumerate() {
            if at > 0 {
                event
                    .share_ring(first)
                    .map_err(|error| format!("the kernel's events cannot share a ring: {error}"))?;
            }
            event
                .filter(filter)
                .map_err(|error| format!("the kernel's events cannot be filtered: {error}"))?;
        }
        for event in &events {
            event
                .enable()
                .map_err(|error| format!("the kernel's events cannot be enabled: {error}"))?;
        }
        Ok(Self {
            cpu,
            data: RingData {
                mapping,
                page,
                bytes,
            },
            record: Vec::new(),
            _events: events,
        })
    }

    /// Appends the events in this ring to `out`, and adds those that were dropped to `lost`.
    fn read(&mut self, formats: &[TracepointFormat], out: &mut Vec<RequestEvent>, lost: &mut u64) {
        let data = &self.data;
        let end = data.mapping.word(HEAD).load(Ordering::Acquire);
        let mut position = data.mapping.word(TAIL).load(Ordering::Relaxed);
        while position < end {
            if !data.copy_record(position, end, &mut self.record) {
                // How many events the rest has is unknown: one at least.
                *lost += 1;
                position = end;
                break;
            }
            match parse_record(&self.record) {
                Some(RingRecord::Sample(time, raw)) => {
                    let id = id_of(raw);
                    let format = formats.iter().find(|format| Some(format.id) == id);
                    match format.and_then(|format| format.event(time, raw)) {
                        Some(event) => out.push(event),
                        None => *lost += 1,
                    }
                }
                Some(RingRecord::Lost(count)) => *lost = lost.saturating_add(count),
                // Such as that the kernel slowed the events down, which it does not for these.
                None => {}
            }
            position += self.record.len() as u64;
        }
        data.mapping.word(TAIL).store(position, Ordering::Release);
    }
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
        let place = usize::try_from(at % self.bytes as u64).expect("less than the ring's bytes");
        let (first, rest) = to.split_at_mut(to.len().min(self.bytes - place));
        self.mapping.copy(self.page + place, first);
        self.mapping.copy(self.page, rest);
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

/// Reads a record with its header; `None` if it is of another kind. One that is too short for its
/// kind is an event that is lost.
fn parse_record(record: &[u8]) -> Option<RingRecord<'_>> {
    let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
    let sample = || {
        let length = u32::from_ne_bytes(record.get(16..20)?.try_into().ok()?);
        let raw = record.get(20..20 + usize::try_from(length).ok()?)?;
        Some(RingRecord::Sample(word(8)?, raw))
    };
    let lost = || Some(RingRecord::Lost(word(16)?));
    let parsed = match u32::from_ne_bytes(record.get(..4)?.try_into().ok()?) {
        RECORD_SAMPLE => sample(),
        RECORD_LOST => lost(),
        _ => return None,
    };
    Some(parsed.unwrap_or(RingRecord::Lost(1)))
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

    /// A ring with these data, behind a first page.
    fn data_of(bytes: &[u8]) -> RingData {
        let page = rustix::param::page_size();
        let mapping = Mapping::anonymous(page + bytes.len());
        mapping.put(page, bytes);
        RingData {
            mapping,
            page,
            bytes: bytes.len(),
        }
    }

    #[test]
    fn after_an_impossible_record_the_rest_is_lost() {
        let mut record = RECORD_LOST.to_ne_bytes().to_vec();
        record.extend([0, 0, 24, 0]);
        record.extend(5u64.to_ne_bytes());
        record.extend(42u64.to_ne_bytes());
        // A sample that says that it is longer than it is.
        let mut short = sample(7, &[]);
        short[16] = 200;
        record.extend(&short);
        let whole = record.len() as u64;
        record.resize(4096, 0);
        let mut ring = Ring {
            cpu: 0,
            data: data_of(&record),
            record: Vec::new(),
            _events: Vec::new(),
        };
        // What follows has the length zero.
        let head = ring.data.mapping.word(HEAD);
        head.store(whole + 8, Ordering::Relaxed);
        let (mut out, mut lost) = (Vec::new(), 0);
        ring.read(&[], &mut out, &mut lost);
        assert_eq!((out.len(), lost), (0, 42 + 1 + 1));
        // The ring goes on behind it.
        ring.read(&[], &mut out, &mut lost);
        assert_eq!(lost, 42 + 1 + 1);
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
            assert!(data_of(&ring).copy_record(at, end, &mut found));
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
            ring in proptest::collection::vec(any::<u8>(), 128..=128),
            at in 0u64..64,
            length in 0u64..256,
        ) {
            let mut record = Vec::new();
            if data_of(&ring).copy_record(at * 8, at * 8 + length, &mut record) {
                prop_assert!(record.len() as u64 <= length);
                let _ = parse_record(&record);
            }
        }
    }
}
