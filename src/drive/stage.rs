//! Stage of a point: warming up, measuring, completed. One worker decides it, all workers see it.

use super::Room;
use crate::clock;
use crate::model::{Nanos, Until, WarmUp};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Interval at which the leading worker checks whether the stage changes.
pub(super) const TICK: Nanos = Nanos::from_millis(100);

/// Number of ticks that must agree before throughput counts as steady: one second.
const STEADY_TICKS: usize = 10;

/// SNIA's rule for a steady state: every value within this fraction of the mean.
const STEADY_WITHIN: f64 = 0.10;

/// Live counters of one class, for progress and for detecting a steady state during warm-up.
#[derive(Debug, Default)]
pub struct LiveClass {
    /// Operations completed since the point began.
    pub done: AtomicU64,
    /// Sum of their response times, in nanoseconds.
    pub response: AtomicU64,
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
            cut: AtomicBool::new(false),
            until,
        }
    }

    /// Starts the point at `now`, once the workers are ready. Only the first call counts.
    ///
    /// Without a warm-up, measuring begins here too, so that no worker starts an operation before that time is known.
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

    /// True if the point was stopped early.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Stops the point: no operation may start after `now`. Has no effect on a point that has ended by itself.
    pub(super) fn stop(&self, now: Nanos) {
        if now < self.end() {
            self.stopped.store(true, Relaxed);
            self.end.fetch_min(now.0, Relaxed);
        }
    }

    /// Records that the time limit was reached before a worker had completed its part of fixed work.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    /// Records that operations completed at this time.
    #[inline]
    pub(super) fn ended(&self, at: Nanos) {
        if matches!(self.until, Until::Ops(_) | Until::Work { .. }) {
            self.last.fetch_max(at.0, Relaxed);
        }
    }

    /// Ends the point after the window that contains `now`, so that every window is complete. Called when enough was
    /// measured.
    pub(super) fn end_with_window(&self, now: Nanos, width: Nanos) {
        let from = self.from();
        self.end.fetch_min(from.0 + now.since(from).0.div_ceil(width.0) * width.0, Relaxed);
    }

    fn begin_measuring(&self, now: Nanos) {
        self.cpu[0].store(clock::process_cpu().0, Relaxed);
        if let Until::Elapsed(most) | Until::Precise { most, .. } | Until::Work { most, .. } = self.until {
            self.end.fetch_min(now.plus(most).0, Relaxed);
        }
        // Stored last: a worker that sees `from` also sees `end`.
        self.from.store(now.0, std::sync::atomic::Ordering::Release);
    }

    fn end_measuring(&self) {
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
        let is_work = matches!(self.until, Until::Ops(_) | Until::Work { .. });
        is_work && !self.was_stopped() && !self.cut.load(Relaxed)
    }

    /// Duration of the measurement.
    pub(super) fn measured(&self) -> Nanos {
        let end = if self.work_is_done() { Nanos(self.last.load(Relaxed)) } else { self.end() };
        if self.from() == Nanos::MAX { Nanos(0) } else { end.since(self.from()) }
    }
}

/// The worker that decides when measuring begins, and that forwards a stop request.
pub(super) struct Leader<'a> {
    room: &'a Room<'a>,
    origin: Nanos,
    next_tick: Nanos,
    /// Running count of operations of each class, one value per tick.
    history: Vec<Vec<u64>>,
    /// True once the CPU time at the end of the measurement was read.
    through: bool,
}

impl<'a> Leader<'a> {
    pub(super) fn new(room: &'a Room<'a>) -> Self {
        let origin = room.stage.origin();
        Self {
            room,
            origin,
            next_tick: origin.plus(TICK),
            history: room.live.iter().map(|_| vec![0]).collect(),
            through: false,
        }
    }

    /// Advances the stage when it is time. Returns when to call it again.
    #[inline]
    pub(super) fn tick(&mut self, now: Nanos) -> Nanos {
        if now >= self.room.stage.end() {
            self.finish();
            if self.room.clock.is_virtual() {
                // Nothing is left to decide, and outstanding operations may take years in steps of one tick.
                return Nanos::MAX;
            }
        }
        if now >= self.next_tick {
            self.full_tick(now);
        }
        self.next_tick
    }

    /// Ends the measurement. What follows is only waiting for outstanding operations.
    pub(super) fn finish(&mut self) {
        if !self.through {
            self.through = true;
            self.room.stage.end_measuring();
        }
    }

    #[cold]
    fn full_tick(&mut self, now: Nanos) {
        self.next_tick = now.plus(TICK);
        let Room { stage, live, terms, point, clock, .. } = self.room;
        if terms.stop.load(Relaxed) {
            stage.stop(now);
        }
        if stage.from() != Nanos::MAX {
            // On real time, a thread that does not measure makes this check.
            if clock.is_virtual() && self.room.says_enough() {
                stage.end_with_window(now, point.window);
            }
            return;
        }
        for (history, class) in self.history.iter_mut().zip(live) {
            history.push(class.done.load(Relaxed));
        }
        let warm = now.since(self.origin);
        let steady = || self.history.iter().all(|history| is_steady(history));
        if warm >= point.warm_up.most || (warm >= point.warm_up.least && steady()) {
            stage.begin_measuring(now);
        }
    }
}

/// True if the last ticks of a running count agree. Each tick must be within SNIA's tenth of their mean, or within
/// three standard deviations of a Poisson count, which is what chance allows for small numbers.
fn is_steady(counts: &[u64]) -> bool {
    let Some(last) = counts.len().checked_sub(STEADY_TICKS + 1) else { return false };
    let steps: Vec<f64> = counts[last..].windows(2).map(|two| (two[1] - two[0]) as f64).collect();
    let mean = steps.iter().sum::<f64>() / steps.len() as f64;
    let allowed = (mean * STEADY_WITHIN).max(3.0 * mean.sqrt());
    mean > 0.0 && steps.iter().all(|step| (step - mean).abs() <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(steps: &[u64]) -> Vec<u64> {
        let mut sum = 0;
        std::iter::once(0)
            .chain(steps.iter().map(|step| {
                sum += step;
                sum
            }))
            .collect()
    }

    #[test]
    fn steady_is_ten_ticks_alike() {
        assert!(is_steady(&running(&[1000; 10])));
        assert!(!is_steady(&running(&[1000; 9])), "too short");
        assert!(!is_steady(&running(&[0; 10])), "nothing happened");
        let burst: Vec<u64> = [5000, 5000].into_iter().chain([1000; 8]).collect();
        assert!(!is_steady(&running(&burst)));
        let after: Vec<u64> = burst.into_iter().chain([1000; 2]).collect();
        assert!(is_steady(&running(&after)), "the burst has left the window");
    }
}
