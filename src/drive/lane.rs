//! One worker's part of one stream: its slots, its operations, its record.

use super::pacer::{Due, Pacer};
use super::stage::{LiveClass, Stage};
use crate::model::{Kind, Nanos, Op, Outcome, Slot, Until};
use crate::record::{CoverageMap, Recorder, Times};
use crate::workload::Ops;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// What all workers of a stream share.
pub(super) struct Shared<'a> {
    pub(super) pacer: &'a Pacer,
    pub(super) coverage: &'a CoverageMap,
    pub(super) live: &'a LiveClass,
}

/// One worker's part of one stream.
pub(super) struct Lane<'a> {
    shared: Shared<'a>,
    ops: Ops,
    /// Slots that are free, longest free first, so that operations start in the order they were made.
    free: VecDeque<Slot>,
    /// Operations that may still start, of those that count; none = no limit.
    left: Option<u64>,
    recorder: Recorder,
    /// Done since the last report to `shared.live`, and their response times summed.
    done: u64,
    response: u64,
}

/// An operation on its way. A free slot holds the next operation already, so making it is never timed.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    pub(super) lane: u16,
    op: Op,
    due: Nanos,
    start: Nanos,
    /// Does not count as part of fixed work.
    warm_up: bool,
}

impl<'a> Lane<'a> {
    /// A lane without slots. `share` is this worker's part of the operations of fixed work.
    pub(super) fn new(shared: Shared<'a>, ops: Ops, kinds: &[Kind], share: Until) -> Self {
        let open = matches!(shared.pacer, Pacer::Open(_));
        let left = match share {
            Until::Ops(count) => Some(count),
            Until::Elapsed(_) => None,
        };
        Self { shared, ops, free: VecDeque::new(), left, recorder: Recorder::new(open, kinds), done: 0, response: 0 }
    }

    /// Gives the lane a slot, with the first operation in it.
    pub(super) fn add_slot(&mut self, lane: u16, slot: Slot) -> Flight {
        self.free.push_back(slot);
        Flight { lane, op: self.ops.next_op(), due: Nanos(0), start: Nanos(0), warm_up: false }
    }

    /// True once no more operations may start because the work is done.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left == Some(0)
    }

    /// The slot and operation to start now, or the time before which nothing is to be done.
    #[inline]
    pub(super) fn next(&mut self, table: &mut [Flight], now: Nanos, stage: &Stage) -> Result<(Slot, Op), Nanos> {
        let Some(slot) = self.free.front().copied() else { return Err(Nanos::MAX) };
        if self.is_exhausted() {
            return Err(Nanos::MAX);
        }
        match self.shared.pacer.take(now, stage.origin()) {
            Due::NotBefore(due) => Err(due),
            Due::Since(due) => {
                self.free.pop_front();
                let flight = &mut table[usize::from(slot)];
                (flight.due, flight.start) = (due, now);
                if let Some(left) = &mut self.left {
                    // Decided here once: what is not taken off the work left must not be recorded as part of it.
                    flight.warm_up = due < stage.from();
                    *left -= u64::from(!flight.warm_up);
                }
                Ok((slot, flight.op))
            }
        }
    }

    /// The operation in `slot` is over: records it and makes the next one.
    #[inline]
    pub(super) fn over(&mut self, slot: Slot, flight: &mut Flight, now: Nanos, outcome: Outcome) {
        if flight.warm_up {
            self.recorder.record_warm_up(outcome);
        } else {
            let times = Times { due: flight.due, start: flight.start, done: now };
            self.recorder.record(flight.op.kind, times, outcome);
        }
        if outcome == Outcome::Done {
            self.shared.coverage.touch(flight.op.position);
            self.done += 1;
            self.response += now.since(flight.due).0;
        }
        flight.op = self.ops.next_op();
        self.free.push_back(slot);
    }

    /// Measuring began.
    pub(super) fn measure_from(&mut self, from: Nanos) {
        self.recorder.measure_from(from);
    }

    /// Reports to the live counters.
    #[inline]
    pub(super) fn report(&mut self) {
        if self.done > 0 {
            self.shared.live.done.fetch_add(std::mem::take(&mut self.done), Relaxed);
            self.shared.live.response.fetch_add(std::mem::take(&mut self.response), Relaxed);
        }
    }

    /// What was recorded.
    pub(super) fn into_recorder(self) -> Recorder {
        self.recorder
    }
}
