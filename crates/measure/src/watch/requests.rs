//! Requests of one disk, put together from their events: what each was, and how long it took.
//!
//! Input: events in order of time. Output: [`TracedRequests`] of an interval. Pure.
//!
//! A log write is a write with forced unit access, or the last write that completed shortly before a
//! flush: then its time ends when the flush ends, because only then may the database continue.
//! Requests that were outstanding at the beginning have no known start, and are counted apart.

use rigel_device::engine::trace::{RequestAction, RequestEvent, RequestStep};
use rigel_model::Nanos;
use rigel_model::record::{FlowKind, Latencies, RequestFlow, TracedRequests};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Reads of up to this many blocks are random reads.
const RANDOM_BLOCKS_MAX: u64 = 2;

/// Bytes of a sector, whatever the disk.
const SECTOR: u64 = 512;

/// Requests that may be queued or outstanding at the same time. More can only be requests whose
/// completion was lost.
const OPEN_MAX: usize = 65_536;

/// A request that was issued longer ago than this has ended, and its completion was not seen. A driver
/// that tries a request again a few times, 30 s each, is given that time.
const OPEN_NS_MAX: u64 = 300_000_000_000;

/// A queued request that was not issued for longer than this was merged into another.
const QUEUED_NS_MAX: u64 = 30_000_000_000;

/// Longest time from the end of a log write to the issue of its flush. A database that waits for its
/// log sends the flush at once; a flush that comes later is for something else.
const FLUSH_GAP_NS_MAX: u64 = 10_000_000;

/// Number of streams per direction in which a sequential request is recognised.
const STREAMS: usize = 16;

/// The part of a disk that counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskPart {
    /// First sector and number of sectors; `None` for the whole disk.
    pub sectors: Option<(u64, u64)>,
    /// Bytes of a block of the database.
    pub block: u32,
}

/// The requests of a disk so far.
#[derive(Debug, Default)]
pub struct Requests {
    part: DiskPart,
    /// When a request was queued.
    queued: BySector<u64>,
    open: BySector<OpenRequest>,
    /// Outstanding requests for the sector and action of one in `open`.
    twins: Vec<OpenRequest>,
    /// Requests that the driver could not take, until they are issued again.
    put_back: BySector<OpenRequest>,
    /// The last write that completed, until it is known whether a flush follows.
    last_write: Option<EndedRequest>,
    read_ends: SequentialStreams,
    write_ends: SequentialStreams,
    flows: Vec<FlowSums>,
    unmatched: u64,
    abandoned: u64,
    empty_writes: u64,
    /// The time of the latest event.
    latest: u64,
}

/// What is known of requests, by first sector and action.
type BySector<T> = HashMap<(u64, RequestAction), T, BuildHasherDefault<SectorHasher>>;

/// Mixes a sector and an action. The numbers are the kernel's, and the maps are small.
#[derive(Debug, Default)]
struct SectorHasher(u64);

impl Hasher for SectorHasher {
    fn finish(&self) -> u64 {
        // The map takes the upper bits as well as the lower ones.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, value: u64) {
        /// 2^64 over the golden ratio.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(MIX);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value.unsigned_abs() as u64);
    }
}

#[derive(Debug, Clone, Copy)]
struct OpenRequest {
    /// First sector that is still outstanding.
    sector: u64,
    /// Sectors that are still outstanding.
    left: u32,
    bytes: u64,
    action: RequestAction,
    forced: bool,
    failed: bool,
    is_sequential: bool,
    queued_at: Option<u64>,
    issued_at: u64,
    /// For a flush, the write that it makes durable.
    log_write: Option<EndedRequest>,
}

#[derive(Debug, Clone, Copy)]
struct EndedRequest {
    bytes: u64,
    failed: bool,
    is_sequential: bool,
    queued_at: Option<u64>,
    issued_at: u64,
    ended_at: u64,
}

/// The sums of one kind.
#[derive(Debug, Default)]
struct FlowSums {
    requests: u64,
    failed: u64,
    bytes: u64,
    sequential: u64,
    device: Latencies,
    queue: Latencies,
    /// `None` until a request was queued: up to then it is the same as `device`.
    response: Option<Latencies>,
}

/// Where the latest requests of a direction ended.
#[derive(Debug, Default)]
struct SequentialStreams {
    /// The one that was continued last comes last.
    ends: [u64; STREAMS],
}

impl SequentialStreams {
    /// True if a request that begins at `sector` follows an earlier one. Its own end is `end`.
    fn follows(&mut self, sector: u64, end: u64) -> bool {
        let index = self.ends.iter().position(|known| *known == sector);
        let follows = index.filter(|_| sector > 0);
        // The one that was not continued for longest makes room.
        self.ends[follows.unwrap_or(0)..].rotate_left(1);
        self.ends[STREAMS - 1] = end;
        follows.is_some()
    }
}

impl Requests {
    /// No requests yet, of this part of a disk.
    pub fn new(part: DiskPart) -> Self {
        Self {
            part,
            flows: FlowKind::ALL.iter().map(|_| FlowSums::default()).collect(),
            ..Self::default()
        }
    }

    /// Adds an event of this disk.
    pub fn add(&mut self, event: &RequestEvent) {
        self.latest = event.at;
        // An empty write only asks the kernel for a flush. The kernel counts it as a write, too.
        let is_data = matches!(event.action, RequestAction::Read | RequestAction::Write);
        // A flush and a command of the driver have no place, and the kernel's events differ in what
        // they print for it. A discard has one.
        let is_placed = event.action != RequestAction::Flush && event.sector != u64::MAX;
        let is_elsewhere = is_placed && event.sectors > 0 && !self.is_within(event.sector);
        if is_elsewhere {
            return;
        }
        if is_data && event.sectors == 0 {
            let is_counted = event.action == RequestAction::Write;
            self.empty_writes += u64::from(is_counted && event.step == RequestStep::Completed);
            return;
        }
        let event = &RequestEvent {
            sector: if is_placed { event.sector } else { 0 },
            ..*event
        };
        match event.step {
            RequestStep::Queued => self.queue(event),
            RequestStep::Issued => self.issue(event),
            RequestStep::PutBack => self.put_back(event),
            RequestStep::Completed => self.complete(event),
        }
    }

    fn is_within(&self, sector: u64) -> bool {
        self.part
            .sectors
            .is_none_or(|(first, count)| (first..first.saturating_add(count)).contains(&sector))
    }

    fn queue(&mut self, event: &RequestEvent) {
        if self.queued.len() >= OPEN_MAX {
            // What was queued and never issued was merged into another request.
            self.queued.retain(|_, at| *at + QUEUED_NS_MAX > event.at);
            if self.queued.len() >= OPEN_MAX {
                self.queued.clear();
            }
        }
        self.queued.insert((event.sector, event.action), event.at);
    }

    fn issue(&mut self, event: &RequestEvent) {
        let queued_at = self
            .queued
            .remove(&(event.sector, event.action))
            .filter(|at| *at + QUEUED_NS_MAX > event.at);
        if let Some(again) = self.put_back.remove(&(event.sector, event.action)) {
            self.put(OpenRequest {
                queued_at: again.queued_at.or(Some(again.issued_at)),
                issued_at: event.at,
                ..again
            });
            return;
        }
        let end = event.sector.saturating_add(event.sectors.into());
        let is_sequential = match event.action {
            RequestAction::Read => self.read_ends.follows(event.sector, end),
            RequestAction::Write => self.write_ends.follows(event.sector, end),
            RequestAction::Flush | RequestAction::Other => false,
        };
        let log_write = if event.action == RequestAction::Flush {
            self.log_write_before(event.at)
        } else {
            None
        };
        if self.outstanding() >= OPEN_MAX {
            self.abandon();
        }
        self.put(OpenRequest {
            sector: event.sector,
            left: event.sectors,
            bytes: u64::from(event.sectors) * SECTOR,
            action: event.action,
            forced: event.forced,
            failed: false,
            is_sequential,
            queued_at,
            issued_at: event.at,
            log_write,
        });
    }

    /// Takes a request back from the driver: the time since its first sight counts when it ends. One
    /// that the driver refused before it was issued is still queued.
    fn put_back(&mut self, event: &RequestEvent) {
        let Some(request) = self.take_out(event.sector, event.action) else {
            return;
        };
        let key = (request.sector, request.action);
        // Two for the same sector cannot be distinguished: one is given up.
        self.abandoned += u64::from(self.put_back.insert(key, request).is_some());
    }

    /// The write that a flush issued `at` this time makes durable. One that ended too long before is
    /// a page write.
    fn log_write_before(&mut self, at: u64) -> Option<EndedRequest> {
        let write = self.last_write.take()?;
        if at.saturating_sub(write.ended_at) <= FLUSH_GAP_NS_MAX {
            return Some(write);
        }
        self.record(FlowKind::PageWrites, write);
        None
    }

    /// Adds an outstanding request. Several may read the same blocks at the same time.
    fn put(&mut self, request: OpenRequest) {
        let key = (request.sector, request.action);
        if let Some(twin) = self.open.insert(key, request) {
            self.twins.push(twin);
        }
    }

    /// Takes an outstanding request out.
    fn take_out(&mut self, sector: u64, action: RequestAction) -> Option<OpenRequest> {
        let request = self.open.remove(&(sector, action))?;
        if !self.twins.is_empty() {
            let is_twin = |one: &OpenRequest| (one.sector, one.action) == (sector, action);
            if let Some(at) = self.twins.iter().position(is_twin) {
                let twin = self.twins.swap_remove(at);
                self.open.insert((sector, action), twin);
            }
        }
        Some(request)
    }

    /// Number of requests that are outstanding.
    fn outstanding(&self) -> usize {
        self.open.len() + self.twins.len() + self.put_back.len()
    }

    /// When the oldest request that is outstanding was issued, on the monotonic clock.
    pub(super) fn oldest(&self) -> Option<Nanos> {
        let all = self.open.values().chain(&self.twins);
        let all = all.chain(self.put_back.values());
        all.map(|one| Nanos(one.issued_at)).min()
    }

    /// Gives up everything that is queued or outstanding: events were lost, and nobody knows of
    /// which requests.
    pub fn abandon(&mut self) {
        self.give_up(|_| true);
        self.queued.clear();
    }

    /// Gives up what was issued too long ago to be outstanding.
    fn abandon_old(&mut self) {
        let latest = self.latest;
        self.give_up(|one| one.issued_at + OPEN_NS_MAX <= latest);
    }

    /// Gives up these requests. A write that a flush was to make durable has ended, whatever became of
    /// the flush.
    fn give_up(&mut self, these: impl Fn(&OpenRequest) -> bool) {
        let open = self.open.extract_if(|_, one| these(one));
        let mut given_up: Vec<OpenRequest> = open.map(|(_, one)| one).collect();
        let put_back = self.put_back.extract_if(|_, one| these(one));
        given_up.extend(put_back.map(|(_, one)| one));
        given_up.extend(self.twins.extract_if(.., |one| these(one)));
        self.abandoned += given_up.len() as u64;
        for write in given_up.into_iter().filter_map(|one| one.log_write) {
            self.record(FlowKind::PageWrites, write);
        }
    }

    fn complete(&mut self, event: &RequestEvent) {
        // A request may also end while it waits to be issued again.
        let request = self
            .take_out(event.sector, event.action)
            .or_else(|| self.put_back.remove(&(event.sector, event.action)));
        let Some(mut request) = request else {
            self.unmatched += 1;
            return;
        };
        request.failed |= event.failed;
        if event.sectors < request.left {
            // A part of it: the rest follows.
            request.left -= event.sectors;
            request.sector += u64::from(event.sectors);
            self.put(request);
            return;
        }
        let ended = EndedRequest {
            bytes: request.bytes,
            failed: request.failed,
            is_sequential: request.is_sequential,
            queued_at: request.queued_at,
            issued_at: request.issued_at,
            ended_at: event.at,
        };
        match request.action {
            RequestAction::Read => {
                let is_random = request.bytes <= RANDOM_BLOCKS_MAX * u64::from(self.part.block);
                let kind = if is_random {
                    FlowKind::RandomReads
                } else {
                    FlowKind::MultiblockReads
                };
                self.record(kind, ended);
            }
            RequestAction::Write if request.forced => self.record(FlowKind::LogWrites, ended),
            RequestAction::Write => {
                if let Some(before) = self.last_write.replace(ended) {
                    self.record(FlowKind::PageWrites, before);
                }
            }
            RequestAction::Flush => {
                if let Some(write) = request.log_write {
                    let durable = EndedRequest {
                        ended_at: event.at,
                        failed: write.failed || request.failed,
                        ..write
                    };
                    self.record(FlowKind::LogWrites, durable);
                }
                self.record(FlowKind::Flushes, ended);
            }
            RequestAction::Other => self.record(FlowKind::Others, ended),
        }
    }

    fn record(&mut self, kind: FlowKind, ended: EndedRequest) {
        let sums = &mut self.flows[kind as usize];
        sums.requests += 1;
        if ended.failed {
            sums.failed += 1;
            return;
        }
        sums.bytes += ended.bytes;
        sums.sequential += u64::from(ended.is_sequential);
        let since = |begin: u64, end: u64| Nanos(end.saturating_sub(begin));
        if let Some(queued) = ended.queued_at {
            sums.queue.record(since(queued, ended.issued_at));
            sums.response.get_or_insert_with(|| sums.device.clone());
        }
        if let Some(response) = &mut sums.response {
            let first = ended.queued_at.unwrap_or(ended.issued_at);
            response.record(since(first, ended.ended_at));
        }
        sums.device.record(since(ended.issued_at, ended.ended_at));
    }

    /// The requests that ended since the last call. A write whose kind is not known yet belongs to
    /// the next interval.
    pub fn take(&mut self) -> TracedRequests {
        self.abandon_old();
        let flows = FlowKind::ALL
            .into_iter()
            .zip(&mut self.flows)
            .filter(|(_, sums)| sums.requests > 0)
            .map(|(kind, sums)| std::mem::take(sums).into_flow(kind))
            .collect();
        TracedRequests {
            flows,
            lost: 0,
            unmatched: std::mem::take(&mut self.unmatched),
            open: self.outstanding() as u64,
            abandoned: std::mem::take(&mut self.abandoned),
            empty_writes: std::mem::take(&mut self.empty_writes),
        }
    }

    /// As [`Requests::take`], at the end of the last interval.
    pub fn take_last(&mut self) -> TracedRequests {
        let open = self.open.values_mut().chain(&mut self.twins);
        let open = open.chain(self.put_back.values_mut());
        let mut writes: Vec<EndedRequest> = open.filter_map(|one| one.log_write.take()).collect();
        writes.extend(self.last_write.take());
        for write in writes {
            self.record(FlowKind::PageWrites, write);
        }
        self.take()
    }
}

impl FlowSums {
    fn into_flow(self, kind: FlowKind) -> RequestFlow {
        RequestFlow {
            kind,
            requests: self.requests,
            failed: self.failed,
            bytes: self.bytes,
            sequential: self.sequential,
            device: self.device,
            queue: self.queue,
            response: self.response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RequestAction::{Flush, Other, Read, Write};
    use RequestStep::{Completed, Issued, PutBack, Queued};
    use proptest::prelude::*;

    fn event(at: u64, step: RequestStep, action: RequestAction, sector: u64) -> RequestEvent {
        let sectors = if action == Flush { 0 } else { 16 };
        RequestEvent {
            at,
            step,
            disk: 1,
            sector,
            sectors,
            action,
            forced: false,
            after_flush: false,
            failed: false,
        }
    }

    fn seen(events: &[RequestEvent]) -> TracedRequests {
        let mut requests = Requests::new(DiskPart {
            sectors: None,
            block: 8192,
        });
        events.iter().for_each(|event| requests.add(event));
        requests.take_last()
    }

    fn flow(found: &TracedRequests, kind: FlowKind) -> &RequestFlow {
        found.flows.iter().find(|flow| flow.kind == kind).unwrap()
    }

    #[test]
    fn a_request_waits_in_its_queue_and_then_in_the_disk() {
        let found = seen(&[
            event(100, Queued, Read, 8),
            event(130, Issued, Read, 8),
            event(140, Issued, Read, 500),
            event(240, Completed, Read, 500),
            event(330, Completed, Read, 8),
        ]);
        let reads = flow(&found, FlowKind::RandomReads);
        assert_eq!((reads.requests, reads.bytes), (2, 2 * 8192));
        assert_eq!((reads.device.sum, reads.queue.sum), (200 + 100, 30));
        assert_eq!(reads.queue.histogram.count(), 1);
        assert_eq!(reads.response().sum, 230 + 100);
        assert_eq!((found.open, found.unmatched), (0, 0));
    }

    #[test]
    fn without_a_queue_the_response_is_the_time_in_the_disk() {
        let found = seen(&[event(1, Issued, Read, 8), event(5, Completed, Read, 8)]);
        let reads = flow(&found, FlowKind::RandomReads);
        assert_eq!((&reads.response, reads.response().sum), (&None, 4));
    }

    #[test]
    fn a_write_is_counted_whatever_becomes_of_its_flush() {
        let write = |at| {
            [
                event(at, Issued, Write, 8),
                event(at + 1, Completed, Write, 8),
            ]
        };
        let flush = |at| event(at, Issued, Flush, 0);
        let mut events: Vec<RequestEvent> = Vec::new();
        // The end of the first flush was lost, that of the last has not come yet.
        for at in [0, 10] {
            events.extend(write(at));
            events.push(flush(at + 2));
        }
        let found = seen(&events);
        let writes = flow(&found, FlowKind::PageWrites);
        assert_eq!((writes.requests, found.open), (2, 2));
        let mut requests = Requests::new(DiskPart {
            sectors: None,
            block: 8192,
        });
        events.iter().for_each(|event| requests.add(event));
        requests.abandon();
        let found = requests.take();
        let writes = flow(&found, FlowKind::PageWrites);
        assert_eq!((writes.requests, found.open, found.abandoned), (2, 0, 2));
    }

    #[test]
    fn the_last_write_before_a_flush_is_durable_when_the_flush_ends() {
        let found = seen(&[
            event(0, Issued, Write, 8),
            event(10, Completed, Write, 8),
            event(20, Issued, Write, 800),
            event(35, Completed, Write, 800),
            event(40, Issued, Flush, 0),
            event(90, Completed, Flush, u64::MAX),
            event(100, Issued, Write, 1600),
            event(101, Completed, Write, 1600),
        ]);
        assert_eq!(flow(&found, FlowKind::PageWrites).device.sum, 10 + 1);
        assert_eq!(flow(&found, FlowKind::LogWrites).device.sum, 90 - 20);
        assert_eq!(flow(&found, FlowKind::Flushes).device.sum, 50);
        let forced = RequestEvent {
            forced: true,
            ..event(0, Issued, Write, 8)
        };
        let found = seen(&[forced, event(7, Completed, Write, 8)]);
        assert_eq!(flow(&found, FlowKind::LogWrites).device.sum, 7);
    }

    #[test]
    fn a_flush_long_after_a_write_does_not_make_it_a_log_write() {
        let kind = |gap: u64| {
            let found = seen(&[
                event(0, Issued, Write, 8),
                event(10, Completed, Write, 8),
                event(10 + gap, Issued, Flush, 0),
                event(20 + gap, Completed, Flush, 0),
            ]);
            let writes: Vec<_> = found
                .flows
                .iter()
                .filter(|flow| flow.kind != FlowKind::Flushes)
                .map(|flow| (flow.kind, flow.requests, flow.device.sum))
                .collect();
            assert_eq!(writes.len(), 1);
            writes[0]
        };
        let longest = FLUSH_GAP_NS_MAX;
        assert_eq!(kind(longest), (FlowKind::LogWrites, 1, 20 + longest));
        assert_eq!(kind(longest + 1), (FlowKind::PageWrites, 1, 10));
        assert_eq!(kind(8_000_000_000), (FlowKind::PageWrites, 1, 10));
    }

    #[test]
    fn a_request_that_ends_in_parts_counts_once() {
        let part = |at, sector, sectors| RequestEvent {
            sectors,
            ..event(at, Completed, Read, sector)
        };
        let found = seen(&[event(0, Issued, Read, 8), part(5, 8, 6), part(9, 14, 10)]);
        let reads = flow(&found, FlowKind::RandomReads);
        assert_eq!(
            (reads.requests, reads.bytes, reads.device.sum),
            (1, 8192, 9)
        );
    }

    #[test]
    fn what_was_outstanding_before_is_counted_apart() {
        let found = seen(&[event(3, Completed, Read, 8), event(4, Issued, Read, 9)]);
        assert_eq!((found.unmatched, found.open), (1, 1));
        assert!(found.flows.is_empty());
    }

    #[test]
    fn a_failed_request_has_no_latency_and_no_bytes() {
        let failed = RequestEvent {
            failed: true,
            ..event(9, Completed, Read, 8)
        };
        let found = seen(&[event(0, Issued, Read, 8), failed]);
        let reads = flow(&found, FlowKind::RandomReads);
        assert_eq!((reads.requests, reads.failed, reads.bytes), (1, 1, 0));
        assert_eq!(reads.device.histogram.count(), 0);
    }

    #[test]
    fn a_partition_has_its_own_sectors_and_every_flush() {
        let mut requests = Requests::new(DiskPart {
            sectors: Some((1000, 100)),
            block: 8192,
        });
        for (at, sector) in [(0, 999), (1, 1000), (2, 1099), (3, 1100)] {
            requests.add(&event(at, Issued, Read, sector));
            requests.add(&event(at + 10, Completed, Read, sector));
        }
        requests.add(&event(50, Issued, Flush, 0));
        requests.add(&event(51, Completed, Flush, 0));
        // Discards within and outside.
        for sector in [500, 1050] {
            requests.add(&event(60, Issued, Other, sector));
            requests.add(&event(61, Completed, Other, sector));
        }
        // A command of the driver: its bytes show at its end only.
        let command = RequestEvent {
            sectors: 0,
            ..event(70, Issued, Other, 0)
        };
        requests.add(&command);
        requests.add(&event(71, Completed, Other, u64::MAX));
        // A write without data, which only asks for the flush: the kernel counts its end.
        for (at, step) in [(80, Issued), (81, Completed)] {
            requests.add(&RequestEvent {
                sectors: 0,
                ..event(at, step, Write, 0)
            });
        }
        let found = requests.take_last();
        assert_eq!(found.empty_writes, 1);
        assert_eq!(flow(&found, FlowKind::RandomReads).requests, 2);
        assert_eq!(flow(&found, FlowKind::Flushes).requests, 1);
        assert_eq!(flow(&found, FlowKind::Others).requests, 1 + 1);
        assert_eq!((found.unmatched, found.open), (0, 0));
    }

    #[test]
    fn a_scan_is_sequential_beside_random_reads() {
        let mut events = Vec::new();
        for at in 0..100u64 {
            for sector in [at * 16 + 16, 1_000_000 + at * 7919 * 16] {
                events.push(event(at * 10, Issued, Read, sector));
                events.push(event(at * 10 + 1, Completed, Read, sector));
            }
        }
        let found = seen(&events);
        let reads = flow(&found, FlowKind::RandomReads);
        assert_eq!((reads.requests, reads.sequential), (200, 99));
    }

    #[test]
    fn a_request_that_was_put_back_waits_since_its_first_sight() {
        let found = seen(&[
            event(0, Queued, Read, 8),
            event(10, Issued, Read, 8),
            event(15, PutBack, Read, 8),
            event(16, Queued, Read, 8),
            event(40, Issued, Read, 8),
            event(100, Completed, Read, 8),
            event(200, Issued, Read, 500),
            event(203, PutBack, Read, 500),
            event(205, Issued, Read, 500),
            event(209, Completed, Read, 500),
            // Refused before it was issued.
            event(300, PutBack, Read, 900),
        ]);
        let reads = flow(&found, FlowKind::RandomReads);
        assert_eq!((reads.requests, reads.device.sum), (2, 60 + 4));
        assert_eq!((reads.queue.sum, reads.response().sum), (40 + 5, 100 + 9));
        assert_eq!((found.open, found.unmatched, found.abandoned), (0, 0, 0));
        // A flush keeps the write that it makes durable.
        let found = seen(&[
            event(0, Issued, Write, 8),
            event(10, Completed, Write, 8),
            event(20, Issued, Flush, 0),
            event(30, PutBack, Flush, 0),
            event(40, Issued, Flush, 0),
            event(90, Completed, Flush, 0),
        ]);
        assert_eq!(flow(&found, FlowKind::LogWrites).device.sum, 90);
        assert_eq!(flow(&found, FlowKind::Flushes).response().sum, 70);
    }

    #[test]
    fn a_stamp_of_a_request_that_was_merged_long_ago_is_not_used() {
        let reads = |issued| {
            let found = seen(&[
                event(0, Queued, Read, 8),
                event(issued, Issued, Read, 8),
                event(issued + 5, Completed, Read, 8),
            ]);
            flow(&found, FlowKind::RandomReads).response().sum
        };
        assert_eq!(reads(QUEUED_NS_MAX - 1), QUEUED_NS_MAX + 4);
        assert_eq!(reads(QUEUED_NS_MAX), 5);
    }

    #[test]
    fn a_request_whose_end_was_not_seen_is_given_up() {
        let later = |at| {
            let found = seen(&[
                event(0, Issued, Read, 8),
                event(at, Issued, Read, 500),
                event(at, Completed, Read, 500),
            ]);
            (found.open, found.abandoned)
        };
        assert_eq!(later(OPEN_NS_MAX - 1), (1, 0));
        assert_eq!(later(OPEN_NS_MAX), (0, 1));
    }

    #[test]
    fn requests_for_the_same_sector_are_bounded_too() {
        let mut requests = Requests::new(DiskPart::default());
        let many = OPEN_MAX as u64 + 1;
        (0..many).for_each(|at| requests.add(&event(at, Issued, Read, 8)));
        let found = requests.take_last();
        assert_eq!((found.open, found.abandoned), (1, many - 1));
    }

    #[test]
    fn large_reads_are_multiblock_reads() {
        let sized = |sectors| {
            let sized = |event: RequestEvent| RequestEvent { sectors, ..event };
            let found = seen(&[
                sized(event(0, Issued, Read, 8)),
                sized(event(1, Completed, Read, 8)),
            ]);
            found.flows[0].kind
        };
        assert_eq!(sized(32), FlowKind::RandomReads);
        assert_eq!(sized(33), FlowKind::MultiblockReads);
    }

    proptest! {
        /// Whatever the order of events, each issued request ends once, is outstanding, or was given
        /// up, and each other completion is unmatched.
        #[test]
        fn requests_are_conserved(events in proptest::collection::vec((0usize..3, 0usize..4, 0u64..5), 0..400)) {
            let mut requests = Requests::new(DiskPart { sectors: None, block: 8192 });
            let (mut issued, mut completed) = (0u64, 0u64);
            for (at, (action, step, sector)) in events.into_iter().enumerate() {
                let (action, step) = ([Read, Write, Flush][action], RequestStep::ALL[step]);
                let sector = if action == Flush { 0 } else { sector };
                // One that was put back is issued again, and is the same.
                let is_again = requests.put_back.contains_key(&(sector, action));
                // Some flushes follow a write within the time of a log write, others do not.
                requests.add(&event(at as u64 * 3_000_000, step, action, sector));
                issued += u64::from(step == Issued && !is_again);
                completed += u64::from(step == Completed);
            }
            let found = requests.take_last();
            // A log write is counted when its flush ends; until then it is with the flush.
            let open = requests.open.values().chain(&requests.twins).chain(requests.put_back.values());
            let with_flush = open.filter(|one| one.log_write.is_some()).count() as u64;
            let ended: u64 = found.flows.iter().map(|flow| flow.requests).sum();
            // Given up: requests that were put back, and the writes of such flushes.
            let rest = issued - ended - found.open - with_flush;
            prop_assert!((found.abandoned..=2 * found.abandoned).contains(&rest), "{rest}");
            prop_assert_eq!(completed, issued - found.open - found.abandoned + found.unmatched);
        }
    }
}
