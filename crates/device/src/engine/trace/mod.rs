//! The kernel's events of block requests.
//!
//! Input: numbers of disks. Output: [`RequestEvent`]s in order of time, and how many were lost.
//! Nothing is written to the kernel's trace files. Needs `CAP_PERFMON` (or root) and tracefs, which
//! has the layout of events. The kernel drops events of other disks before they reach a ring.
//!
//! Two ways lead from a tracepoint to this process, and each misses what the other has:
//!
//! * A ring of the kernel's performance events for each CPU (`rings`). Some kernels count an event
//!   in the interrupt of an idle CPU, and do not write it: Linux 6.18 as a guest wrote 6 of 1,007
//!   completions, and `perf record` showed the same.
//! * A program of the kernel (`completions`). It also sees idle CPUs. But the kernel runs no
//!   program at a tracepoint while another one runs on that CPU: with programs for all steps, it
//!   skipped 125 to 180 of 350,000 completions, which interrupt those of other steps.
//!
//! So completions, which come in interrupts, come from a program, and the other steps, which come
//! from processes, come from rings. Where no program may be loaded, everything comes from rings.
//! What is missing even so shows in the kernel's counters of the disk, which the journal has too.

mod completions;
mod event;
mod mapping;
mod program;
mod rings;
mod tracefs;
mod tracepoint;

pub use tracepoint::{
    EventLength, RequestAction, RequestEvent, RequestStep, TracepointFormat, id_of,
};

use crate::rights;
use completions::Completions;
use rings::Rings;

/// Events that may still be on their way to a ring are at most this old: they are timed just before
/// they are written, with interrupts off. Only a hypervisor that takes the CPU away comes between, for
/// some ten milliseconds on a busy host.
const SETTLE_NS: u64 = 250_000_000;

/// Events that are held for the reader, at most: 40 MB. What comes later stays in the rings.
const HELD_MAX: usize = 1 << 20;

/// The events of some disks.
#[derive(Debug)]
pub struct BlockTrace {
    rings: Rings,
    /// `None` if the rings have the completions.
    completions: Option<Completions>,
    /// Taken from the rings, and not yet passed on.
    held: Vec<RequestEvent>,
    lost: u64,
}

impl BlockTrace {
    /// Traces the requests of these disks, of which each is `(major, minor)`.
    ///
    /// # Errors
    /// What is missing, in words, such as a right.
    pub fn open(disks: &[(u32, u32)]) -> Result<Self, String> {
        let numbers: Vec<u32> = disks
            .iter()
            .map(|(major, minor)| major << 20 | minor)
            .collect();
        let formats = rights::to_read_layouts(tracefs::formats)?;
        let (ended, others): (Vec<_>, Vec<_>) = formats
            .iter()
            .cloned()
            .partition(|format| format.step == RequestStep::Completed);
        let completions = ended
            .into_iter()
            .next()
            .and_then(|format| rights::to_trace(|| Completions::open(format, &numbers)).ok());
        let of_rings = match &completions {
            Some(_) => others,
            None => formats,
        };
        Ok(Self {
            rings: rights::to_trace(|| Rings::open(of_rings, &numbers))?,
            completions,
            held: Vec::new(),
            lost: 0,
        })
    }

    /// How the events come to this process, in words.
    pub fn about(&self) -> &'static str {
        match &self.completions {
            Some(_) => {
                "tracepoints of the block layer, by perf_event_open, and by eBPF for completions"
            }
            None => "tracepoints of the block layer, by perf_event_open",
        }
    }

    /// Empties the rings into memory of this process. A ring holds a second of a busy disk.
    pub fn collect(&mut self) {
        if self.held.len() >= HELD_MAX {
            return;
        }
        self.rings.read(&mut self.held, &mut self.lost);
        if let Some(completions) = &mut self.completions {
            completions.read(&mut self.held, &mut self.lost);
        }
    }

    /// Passes every event before the time `until` to `each`, in order of time. The clock must be
    /// well beyond `until` ([`Self::settled`]), so that every CPU has written what it saw before.
    pub fn read(&mut self, until: u64, each: &mut dyn FnMut(&RequestEvent)) {
        self.rings.follow_cpus(&mut self.held, &mut self.lost);
        self.collect();
        // Consists of a few runs that are in order already, which this sort takes as they are.
        self.held.sort_by_key(|event| event.at);
        let ready = self.held.partition_point(|event| event.at < until);
        self.held.drain(..ready).for_each(|event| each(&event));
    }

    /// The latest time for [`BlockTrace::read`] when the clock shows `now`.
    pub fn settled(now: u64) -> u64 {
        now.saturating_sub(SETTLE_NS)
    }

    /// Number of events that were lost since the last call: the kernel dropped them because a ring was
    /// full, or they could not be read.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}
