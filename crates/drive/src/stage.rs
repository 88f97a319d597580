//! Stage of a point: warming up, measuring, completed. One worker decides it, all workers see it.

use rigel_device::clock;
use rigel_model::{Nanos, Until, WarmUp};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Maximum time after the end in which operations start that were due before it.
const DRAIN_MAX: Nanos = Nanos::from_secs(1);

/// Live counters of one class, for progress and for detecting a steady state during warm-up.
#[derive(Debug, Default)]
pub struct LiveClass {
    /// Operations completed since the point began.
    pub done: AtomicU64,
    /// Sum of their response times, in nanoseconds.
    pub response: AtomicU64,
    /// Operations failed since the point began.
    pub failed: AtomicU64,
}

/// The stage of a point, shared by its workers.
#[derive(Debug)]
pub(super) struct Stage {
    /// When the first worker started.
    origin: OnceLock<Nanos>,
    /// When measuring began; `u64::MAX` before that.
    from: AtomicU64,
    /// When operations stop starting; `u64::MAX` until it is known.
    end: AtomicU64,
    /// When the last operation of fixed work completed.
    last: AtomicU64,
    /// CPU time of the process at `from` and at `end`.
    cpu: [AtomicU64; 2],
    stopped: AtomicBool,
    /// True if operations that are outstanding are no longer waited for.
    given_up: AtomicBool,
    /// The time limit was reached before some worker had completed its part of fixed work.
    cut: AtomicBool,
    until: Until,
}

impl Stage {
    pub(super) fn new(until: Until) -> Self {
        Self {
            origin: OnceLock::new(),
            from: AtomicU64::new(u64::MAX),
            end: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            cpu: [AtomicU64::new(0), AtomicU64::new(0)],
            stopped: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            until,
        }
    }

    /// Starts the point at `now`, once the workers are ready. Only the first call counts.
    ///
    /// Without a warm-up, measuring begins here too, so that no worker starts an operation before
    /// that time is known.
    pub(super) fn set_off(&self, now: Nanos, warm_up: WarmUp) {
        self.origin.get_or_init(|| {
            if warm_up == WarmUp::NONE {
                self.begin_measuring(now);
            }
            now
        });
    }

    /// True once the point has begun.
    pub(super) fn has_set_off(&self) -> bool {
        self.origin.get().is_some()
    }

    /// When the point began; zero before that.
    #[inline]
    pub(super) fn origin(&self) -> Nanos {
        self.origin.get().copied().unwrap_or_default()
    }

    /// When measuring began; the maximum time before that.
    pub(super) fn from(&self) -> Nanos {
        Nanos(self.from.load(Relaxed))
    }

    /// When operations stop starting; the maximum time until that is known.
    pub(super) fn end(&self) -> Nanos {
        Nanos(self.end.load(Relaxed))
    }

    /// Until when operations may start that were due before the end. What waits at the end would
    /// otherwise be missing from the measured response times, and it waited longest.
    pub(super) fn last_start(&self) -> Nanos {
        let end = self.end();
        let is_by_time = matches!(self.until, Until::Elapsed(_) | Until::Precise { .. });
        if is_by_time && !self.was_stopped() {
            end.plus(DRAIN_MAX)
        } else {
            end
        }
    }

    /// True if the point was stopped early.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Stops the point: no operation may start after `now`. Has no effect on a point that has ended
    /// by itself.
    pub(super) fn stop(&self, now: Nanos) {
        if now < self.end() {
            self.stopped.store(true, Relaxed);
            self.end.fetch_min(now.0, Relaxed);
        }
    }

    /// Waits no longer for operations that are outstanding.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
    }

    /// True if operations that are outstanding are no longer waited for.
    #[inline]
    pub(super) fn has_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    /// Records that the time limit was reached before a worker had completed its part of fixed
    /// work.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    /// Records that operations completed at this time.
    #[inline]
    pub(super) fn ended(&self, at: Nanos) {
        if self.until.is_work() {
            self.last.fetch_max(at.0, Relaxed);
        }
    }

    /// Ends the point after the window that contains `now`, so that every window is complete.
    /// Called when enough was measured.
    pub(super) fn end_with_window(&self, now: Nanos, width: Nanos) {
        let from = self.from();
        self.end.fetch_min(
            from.0 + now.since(from).0.div_ceil(width.0) * width.0,
            Relaxed,
        );
    }

    /// Ends the point after this number of windows.
    pub(super) fn end_after(&self, windows: u64, width: Nanos) {
        let from = self.from();
        if from != Nanos::MAX {
            let length = Nanos(windows.saturating_mul(width.0));
            self.end.fetch_min(from.plus(length).0, Relaxed);
        }
    }

    pub(super) fn begin_measuring(&self, now: Nanos) {
        self.cpu[0].store(clock::process_cpu().0, Relaxed);
        if let Until::Elapsed(most) | Until::Precise { most, .. } | Until::Work { most, .. } =
            self.until
        {
            self.end.fetch_min(now.plus(most).0, Relaxed);
        }
        // Stored last: a worker that sees `from` also sees `end`.
        self.from.store(now.0, std::sync::atomic::Ordering::Release);
    }

    pub(super) fn end_measuring(&self) {
        self.cpu[1].store(clock::process_cpu().0, Relaxed);
    }

    /// Duration of the warm-up.
    pub(super) fn warm_up(&self) -> Nanos {
        self.from().min(self.end()).since(self.origin())
    }

    /// CPU time of the process while measuring.
    pub(super) fn cpu(&self) -> Nanos {
        let [from, to] = &self.cpu;
        Nanos(to.load(Relaxed)).since(Nanos(from.load(Relaxed)))
    }

    /// True if fixed work was completed.
    pub(super) fn work_is_done(&self) -> bool {
        let is_work = self.until.is_work();
        is_work && !self.was_stopped() && !self.cut.load(Relaxed)
    }

    /// Duration of the measurement.
    pub(super) fn measured(&self) -> Nanos {
        let end = if self.work_is_done() {
            Nanos(self.last.load(Relaxed))
        } else {
            self.end()
        };
        if self.from() == Nanos::MAX {
            Nanos(0)
        } else {
            end.since(self.from())
        }
    }
}
