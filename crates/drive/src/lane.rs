//! One worker's part of one stream: its slots, operations and recorder.

use super::pacer::{Due, Pacer};
use super::stage::{LiveClass, Stage};
use rigel_model::record::{CoverageMap, OperationTimes, Recorder, SharedWindows};
use rigel_model::workload::Ops;
use rigel_model::{Kind, Nanos, Op, Outcome, Slot, SqlWork, Stream, Until};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// State that all workers of a stream share.
pub(super) struct LaneContext<'a> {
    pub(super) pacer: &'a Pacer,
    pub(super) coverage: &'a CoverageMap,
    pub(super) live: &'a LiveClass,
    pub(super) seconds: &'a Arc<SharedWindows>,
}

/// One worker's part of one stream.
pub(super) struct Lane<'a> {
    shared: LaneContext<'a>,
    ops: Ops,
    /// Prepared operations, one for each free slot, so that preparing them is never timed. Each
    /// has the moment when its slot became free: in a closed loop the operation is due since
    /// then.
    ready: VecDeque<(Op, Nanos)>,
    /// Free slots. The last slot to become free is used first: its buffer is still in the CPU's
    /// cache.
    free: Vec<Slot>,
    /// Counted operations that may still start; `None` = no limit.
    left: Option<u64>,
    recorder: Recorder,
    /// Work of the database sessions, if the target is a database.
    sql: Option<SqlWork>,
    /// Operations completed since the last report to `shared.live`, and the sum of their response
    /// times.
    done: u64,
    response: u64,
    /// Operations failed since then.
    failed: u64,
}

/// Operations that are outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outstanding {
    /// Their number.
    pub(super) count: u64,
    /// When the oldest of them started.
    pub(super) oldest: Nanos,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self {
            count: 0,
            oldest: Nanos::MAX,
        }
    }
}

/// State of a slot: its outstanding operation, or its previous one.
#[derive(Clone, Copy)]
pub(super) struct InFlight {
    pub(super) lane: u16,
    kind: Kind,
    position: u64,
    due: Nanos,
    pub(super) start: Nanos,
    /// Operation of the warm-up: does not count as part of fixed work.
    warm_up: bool,
}

impl<'a> Lane<'a> {
    /// Creates a lane without slots. `share` is this worker's part of fixed work.
    pub(super) fn new(shared: LaneContext<'a>, ops: Ops, stream: &Stream, share: Until) -> Self {
        let open = matches!(shared.pacer, Pacer::Open(_));
        let left = match share {
            Until::Ops(count) | Until::Work { ops: count, .. } => Some(count),
            Until::Elapsed(_) | Until::Precise { .. } => None,
        };
        Self {
            recorder: Recorder::new(open, &stream.kinds(), Arc::clone(shared.seconds)),
            sql: stream.sql,
            shared,
            ops,
            ready: VecDeque::new(),
            free: Vec::new(),
            left,
            done: 0,
            response: 0,
            failed: 0,
        }
    }

    /// Adds a slot to the lane.
    pub(super) fn add_slot(&mut self, lane: u16, slot: Slot) -> InFlight {
        self.free.push(slot);
        self.ready.push_back((self.ops.next_op(), Nanos(0)));
        InFlight {
            lane,
            kind: Kind::Read,
            position: 0,
            due: Nanos(0),
            start: Nanos(0),
            warm_up: false,
        }
    }

    /// True if operations are due on a schedule (open loop).
    pub(super) fn is_open(&self) -> bool {
        matches!(self.shared.pacer, Pacer::Open(_))
    }

    /// True once no more operations may start because the work is done.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left == Some(0)
    }

    /// Returns the slot and operation to start now, or the time before which there is nothing to
    /// start.
    #[inline]
    pub(super) fn next(
        &mut self,
        table: &mut [InFlight],
        now: Nanos,
        stage: &Stage,
    ) -> Result<(Slot, Op), Nanos> {
        if self.free.is_empty() || self.is_exhausted() {
            return Err(Nanos::MAX);
        }
        if let Some(thinks_until) = self.thinks_until(now) {
            return Err(thinks_until);
        }
        let end = stage.end();
        let is_over = now >= end;
        if is_over && !self.is_open() {
            return Err(Nanos::MAX);
        }
        // After the end only what was due before it.
        let due_until = now.min(Nanos(end.0.saturating_sub(1)));
        match self.shared.pacer.take(due_until, stage.origin()) {
            Due::NotBefore(_) if is_over => Err(Nanos::MAX),
            Due::NotBefore(due) => Err(due),
            due => {
                let (Some(slot), Some((op, free_since))) =
                    (self.free.pop(), self.ready.pop_front())
                else {
                    return Err(Nanos::MAX);
                };
                let due = if let Due::Since(due) = due {
                    due
                } else {
                    free_since.max(stage.origin())
                };
                self.recorder.issued(due, now.since(due.max(free_since)));
                if is_over {
                    self.recorder.count_drained();
                }
                let flight = &mut table[usize::from(slot)];
                *flight = InFlight {
                    kind: op.kind,
                    position: op.position,
                    due,
                    start: now,
                    warm_up: false,
                    lane: flight.lane,
                };
                if let Some(left) = &mut self.left {
                    // Decided only here: an operation that is not subtracted from the remaining
                    // work must not be recorded as part of it.
                    flight.warm_up = due < stage.from();
                    *left -= u64::from(!flight.warm_up);
                }
                Ok((slot, op))
            }
        }
    }

    /// Completes the operation in `slot`: records it and prepares the next one.
    #[inline]
    pub(super) fn over(&mut self, slot: Slot, flight: &InFlight, now: Nanos, outcome: Outcome) {
        if flight.warm_up {
            self.recorder.record_warm_up(outcome);
        } else {
            let times = OperationTimes {
                due: flight.due,
                start: flight.start,
                done: now,
            };
            self.recorder.record(flight.kind, times, outcome);
        }
        if outcome == Outcome::Done {
            self.touch(flight);
            self.done += 1;
            self.response += now.since(flight.due).0;
        } else {
            self.failed += 1;
        }
        let op = self.ops.next_op();
        self.ready.push_back((op, now.plus(self.ops.pause())));
        self.free.push(slot);
    }

    /// Until when the next session pauses (think time); `None` if it does not. Only a closed loop
    /// with one slot, such as a database session, can have pauses.
    #[inline]
    fn thinks_until(&self, now: Nanos) -> Option<Nanos> {
        self.sql.as_ref()?.think?;
        self.ready
            .front()
            .map(|(_, from)| *from)
            .filter(|from| now < *from)
    }

    /// Marks the blocks that an operation visited.
    #[inline]
    fn touch(&self, flight: &InFlight) {
        match &self.sql {
            None => self.shared.coverage.touch(flight.position),
            // A scan visits another table.
            Some(_) if flight.kind == Kind::Scan => (),
            Some(work) => {
                let blocks = flight.position..flight.position + work.blocks(flight.kind);
                blocks.for_each(|block| self.shared.coverage.touch(block));
            }
        }
    }

    /// Tells the recorder when measuring began.
    pub(super) fn measure_from(&mut self, from: Nanos) {
        self.recorder.measure_from(from);
    }

    /// Adds the new counts to the live counters.
    #[inline]
    pub(super) fn report(&mut self) {
        if self.done > 0 {
            self.shared
                .live
                .done
                .fetch_add(std::mem::take(&mut self.done), Relaxed);
            self.shared
                .live
                .response
                .fetch_add(std::mem::take(&mut self.response), Relaxed);
        }
        if self.failed > 0 {
            let failed = std::mem::take(&mut self.failed);
            self.shared.live.failed.fetch_add(failed, Relaxed);
        }
    }

    /// True if no operation is outstanding in this slot of the lane.
    pub(super) fn is_free(&self, slot: Slot) -> bool {
        self.free.contains(&slot)
    }

    /// Records an operation that was not waited for: at `now` it was still outstanding.
    pub(super) fn leave(&mut self, flight: &InFlight, now: Nanos) {
        self.recorder.record_censored(flight.due, now);
    }

    /// Returns the recorder.
    pub(super) fn into_recorder(self) -> Recorder {
        self.recorder
    }
}
