//! Where a point stands: warming up, measuring, over. Decided by one worker, seen by all.

use super::Room;
use crate::clock;
use crate::model::{Nanos, Until, WarmUp};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How often the leading worker looks whether the stage changes.
pub(super) const TICK: Nanos = Nanos::from_millis(100);

/// Ticks that must agree before throughput counts as steady: a second.
const STEADY_TICKS: usize = 10;

/// SNIA's rule for a steady state: within this share of the mean.
const STEADY_WITHIN: f64 = 0.10;

/// Live counters of one class, for progress and for the steadiness of the warm-up.
#[derive(Debug, Default)]
pub struct LiveClass {
    /// Operations done since the point began.
    pub done: AtomicU64,
    /// Their response times in nanoseconds, summed.
    pub response: AtomicU64,
}

/// The stage of a point, shared by its workers.
#[derive(Debug)]
pub(super) struct Stage {
    /// When the first worker set off.
    origin: OnceLock<Nanos>,
    /// When measuring began; `u64::MAX` before that.
    from: AtomicU64,
    /// When no more operations may start; `u64::MAX` until it is known.
    end: AtomicU64,
    /// When the last operation of fixed work ended.
    last: AtomicU64,
    /// CPU time of the process at `from` and at `end`.
    cpu: [AtomicU64; 2],
    stopped: AtomicBool,
    /// Time was over before some worker had done its part of fixed work.
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

    /// The workers are ready, and the time is `now`: whoever says so first decides when the point began. Without a
    /// warm-up measuring begins with it, so that no worker can start an operation before that is known.
    pub(super) fn set_off(&self, now: Nanos, warm_up: WarmUp) {
        self.origin.get_or_init(|| {
            if warm_up == WarmUp::NONE {
                self.begin_measuring(now);
            }
            now
        });
    }

    /// True once the point began.
    pub(super) fn has_set_off(&self) -> bool {
        self.origin.get().is_some()
    }

    /// When the point began; zero before that.
    #[inline]
    pub(super) fn origin(&self) -> Nanos {
        self.origin.get().copied().unwrap_or_default()
    }

    /// When measuring began; the far end of time before that.
    pub(super) fn from(&self) -> Nanos {
        Nanos(self.from.load(Relaxed))
    }

    /// When no more operations may start; the far end of time until that is known.
    pub(super) fn end(&self) -> Nanos {
        Nanos(self.end.load(Relaxed))
    }

    /// True if somebody asked for the end before it was due.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// No operation may start any more. Means nothing once the point has come to its end by itself.
    pub(super) fn stop(&self, now: Nanos) {
        if now < self.end() {
            self.stopped.store(true, Relaxed);
            self.end.fetch_min(now.0, Relaxed);
        }
    }

    /// A worker found the time over before its part of fixed work was done.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    /// Operations ended.
    #[inline]
    pub(super) fn ended(&self, at: Nanos) {
        if matches!(self.until, Until::Ops(_) | Until::Work { .. }) {
            self.last.fetch_max(at.0, Relaxed);
        }
    }

    /// Enough was measured: the point ends with the window that `now` lies in, so that every window is whole.
    pub(super) fn end_with_window(&self, now: Nanos, width: Nanos) {
        let from = self.from();
        self.end.fetch_min(from.0 + now.since(from).0.div_ceil(width.0) * width.0, Relaxed);
    }

    fn begin_measuring(&self, now: Nanos) {
        self.cpu[0].store(clock::process_cpu().0, Relaxed);
        if let Until::Elapsed(most) | Until::Precise { most, .. } | Until::Work { most, .. } = self.until {
            self.end.fetch_min(now.plus(most).0, Relaxed);
        }
        // Last: who sees it sees the end too.
        self.from.store(now.0, std::sync::atomic::Ordering::Release);
    }

    fn end_measuring(&self) {
        self.cpu[1].store(clock::process_cpu().0, Relaxed);
    }

    /// How long it took until measuring began.
    pub(super) fn warm_up(&self) -> Nanos {
        self.from().min(self.end()).since(self.origin())
    }

    /// CPU time of the process while measuring.
    pub(super) fn cpu(&self) -> Nanos {
        let [from, to] = &self.cpu;
        Nanos(to.load(Relaxed)).since(Nanos(from.load(Relaxed)))
    }

    /// Fixed work was done, all of it.
    pub(super) fn work_is_done(&self) -> bool {
        let is_work = matches!(self.until, Until::Ops(_) | Until::Work { .. });
        is_work && !self.was_stopped() && !self.cut.load(Relaxed)
    }

    /// How long was measured.
    pub(super) fn measured(&self) -> Nanos {
        let end = if self.work_is_done() { Nanos(self.last.load(Relaxed)) } else { self.end() };
        if self.from() == Nanos::MAX { Nanos(0) } else { end.since(self.from()) }
    }
}

/// The worker that decides when measuring begins, and passes on a request to stop.
pub(super) struct Leader<'a> {
    room: &'a Room<'a>,
    origin: Nanos,
    next_tick: Nanos,
    /// Operations of each class done by each of the last ticks.
    history: Vec<Vec<u64>>,
    /// CPU time was read when the measurement ended.
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

    /// Moves the stage on if it is time. Answers when it wants to be called again.
    #[inline]
    pub(super) fn tick(&mut self, now: Nanos) -> Nanos {
        if now >= self.room.stage.end() {
            self.finish();
            if self.room.clock.is_virtual() {
                // Nothing is left to decide, and what is outstanding may take years by steps of a tick.
                return Nanos::MAX;
            }
        }
        if now >= self.next_tick {
            self.full_tick(now);
        }
        self.next_tick
    }

    /// The measurement is over: what comes now is waiting for what is outstanding.
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
            // On real time a thread that measures nothing asks.
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

/// True if the last ticks of a running count are alike: each within SNIA's tenth of their mean, or within what
/// chance does to so small a number, three standard deviations of a Poisson count.
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
