//! The worker that leads the others: it decides when measuring begins.

use super::context::PointContext;
use crate::model::Nanos;
use std::sync::atomic::Ordering::Relaxed;

/// Interval at which the leading worker checks whether the stage changes.
pub(super) const TICK: Nanos = Nanos::from_millis(100);

/// Number of ticks that must agree before throughput counts as steady: one second.
const STEADY_TICKS: usize = 10;

/// SNIA's rule for a steady state: every value within this fraction of the mean.
const STEADY_WITHIN: f64 = 0.10;

/// The worker that decides when measuring begins, and that forwards a stop request.
pub(super) struct Leader<'a> {
    context: &'a PointContext<'a>,
    origin: Nanos,
    next_tick: Nanos,
    /// Running count of operations of each class, one value per tick.
    history: Vec<Vec<u64>>,
    /// True once the CPU time at the end of the measurement was read.
    through: bool,
}

impl<'a> Leader<'a> {
    pub(super) fn new(context: &'a PointContext<'a>) -> Self {
        let origin = context.stage.origin();
        Self {
            context,
            origin,
            next_tick: origin.plus(TICK),
            history: context.live.iter().map(|_| vec![0]).collect(),
            through: false,
        }
    }

    /// Advances the stage when it is time. Returns when to call it again.
    #[inline]
    pub(super) fn tick(&mut self, now: Nanos) -> Nanos {
        if now >= self.context.stage.end() {
            self.finish();
            if self.context.clock.is_virtual() {
                // Nothing is left to decide, and outstanding operations may take years in steps of
                // one tick.
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
            self.context.stage.end_measuring();
        }
    }

    #[cold]
    fn full_tick(&mut self, now: Nanos) {
        self.next_tick = now.plus(TICK);
        let PointContext {
            stage,
            live,
            terms,
            point,
            clock,
            ..
        } = self.context;
        if terms.stop.load(Relaxed) {
            stage.stop(now);
        }
        if stage.from() != Nanos::MAX {
            // On real time, a thread that does not measure makes this check.
            if clock.is_virtual() && self.context.says_enough() {
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

/// True if the last ticks of a running count agree. Each tick must be within SNIA's tenth of their
/// mean, or within three standard deviations of a Poisson count, which is what chance allows for
/// small numbers.
fn is_steady(counts: &[u64]) -> bool {
    let Some(last) = counts.len().checked_sub(STEADY_TICKS + 1) else {
        return false;
    };
    let steps: Vec<f64> = counts[last..]
        .windows(2)
        .map(|two| (two[1] - two[0]) as f64)
        .collect();
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
