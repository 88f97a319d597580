//! The worker that leads the others: it decides when measuring begins.

use super::context::PointContext;
use super::cue::Cue;
use rigel_model::{Load, Nanos};
use std::sync::atomic::Ordering::Relaxed;

/// Interval at which the leading worker checks whether the stage changes.
pub(super) const TICK: Nanos = Nanos::from_millis(100);

/// Interval at which it looks for the common start of several ranks, once the point is warm.
const LOOK: Nanos = Nanos::from_millis(10);

/// Number of ticks that must agree before throughput counts as steady: one second.
const STEADY_TICKS: usize = 10;

/// SNIA's rule for a steady state: every value within this fraction of the mean.
const STEADY_WITHIN: f64 = 0.10;

/// The worker that decides when measuring begins, and that forwards a stop request.
pub(super) struct Leader<'a> {
    context: &'a PointContext<'a>,
    origin: Nanos,
    next_tick: Nanos,
    /// Running counts of each class.
    history: Vec<History>,
    /// True once the CPU time at the end of the measurement was read.
    through: bool,
    /// True if the point is warm and waits for the common start of several ranks.
    waits_for_start: bool,
}

/// Running counts of a class, one value per tick.
#[derive(Clone)]
struct History {
    /// Completed operations.
    done: Vec<u64>,
    /// Sum of their response times, in nanoseconds.
    response: Vec<u64>,
}

impl History {
    /// At the beginning of a point.
    fn new() -> Self {
        Self {
            done: vec![0],
            response: vec![0],
        }
    }

    /// True if the last ticks agree. `offered` is the number of operations that are due in a tick,
    /// in an open loop: its throughput is steady from the beginning, its queue is not.
    fn is_steady(&self, offered: Option<f64>) -> bool {
        is_steady(&self.done)
            && offered.is_none_or(|offered| self.is_overloaded(offered) || !self.is_queue_growing())
    }

    /// True if clearly fewer operations completed in the last ticks than were due: the queue grows
    /// for ever, and there is nothing to wait for.
    fn is_overloaded(&self, offered: f64) -> bool {
        let Some(last) = self.done.len().checked_sub(STEADY_TICKS + 1) else {
            return false;
        };
        let due = offered * STEADY_TICKS as f64;
        let done = (self.done[self.done.len() - 1] - self.done[last]) as f64;
        due - done > STEADY_WITHIN * due + 3.0 * due.sqrt()
    }

    /// True if the mean response time of the last ticks is higher than that of the ticks before,
    /// by more than SNIA's tenth and more than three standard errors.
    fn is_queue_growing(&self) -> bool {
        let Some(last) = self.done.len().checked_sub(STEADY_TICKS + 1) else {
            return true;
        };
        let ticks = self.done[last..]
            .windows(2)
            .zip(self.response[last..].windows(2));
        let means: Vec<f64> = ticks
            .map(|(done, response)| {
                (response[1] - response[0]) as f64 / (done[1] - done[0]).max(1) as f64
            })
            .collect();
        let (before, after) = means.split_at(STEADY_TICKS / 2);
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let squares = |of: &[f64]| {
            let mean = mean(of);
            of.iter().map(|one| (one - mean).powi(2)).sum::<f64>()
        };
        let degrees = (STEADY_TICKS - 2) as f64;
        let variance = (squares(before) + squares(after)) / degrees;
        let error = (variance * 4.0 / STEADY_TICKS as f64).sqrt();
        let rise = mean(after) - mean(before);
        rise > STEADY_WITHIN * mean(before) && rise > 3.0 * error
    }
}

impl<'a> Leader<'a> {
    pub(super) fn new(context: &'a PointContext<'a>) -> Self {
        let origin = context.stage.origin();
        Self {
            context,
            origin,
            next_tick: origin.plus(TICK),
            history: vec![History::new(); context.live.len()],
            through: false,
            waits_for_start: false,
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
            if self.waits_for_start {
                self.look_for_start(now);
            } else {
                self.full_tick(now);
            }
        }
        self.next_tick
    }

    /// Begins to measure at the moment that all ranks begin. Looks often until that is known.
    #[cold]
    fn look_for_start(&mut self, now: Nanos) {
        let PointContext { stage, terms, .. } = self.context;
        if terms.stop.load(Relaxed) {
            stage.stop(now);
        }
        let start = terms.cue.map_or(Nanos(0), Cue::start);
        if now >= start {
            self.waits_for_start = false;
            stage.begin_measuring(now);
            self.next_tick = now.plus(TICK);
        } else {
            self.next_tick = now.plus(LOOK).min(start);
        }
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
        for (history, class) in self.history.iter_mut().zip(live.iter()) {
            history.done.push(class.done.load(Relaxed));
            history.response.push(class.response.load(Relaxed));
        }
        let warm = now.since(self.origin);
        let steady = || {
            let mut classes = self.history.iter().enumerate();
            classes.all(|(class, history)| history.is_steady(self.offered(class)))
        };
        if warm >= point.warm_up.most || (warm >= point.warm_up.least && steady()) {
            if let Some(cue) = terms.cue {
                cue.warm();
                self.waits_for_start = true;
                self.look_for_start(now);
            } else {
                stage.begin_measuring(now);
            }
        }
    }
}

impl Leader<'_> {
    /// The operations of a class that are due in a tick; `None` if they are due whenever others
    /// complete.
    fn offered(&self, class: usize) -> Option<f64> {
        let of_class = self
            .context
            .class_of
            .iter()
            .zip(&self.context.point.streams);
        of_class
            .filter(|(of, _)| **of == class)
            .map(|(_, stream)| match stream.load {
                Load::Open { rate, .. } => Some(rate * TICK.as_secs_f64()),
                Load::Closed { .. } => None,
            })
            .sum()
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
    fn an_open_loop_is_not_steady_while_its_queue_grows() {
        let history = |mean: fn(u64) -> u64| History {
            done: running(&[1000; STEADY_TICKS]),
            response: running(&std::array::from_fn::<_, STEADY_TICKS, _>(|tick| {
                1000 * mean(tick as u64)
            })),
        };
        let grows = history(|tick| 100_000 + 20_000 * tick);
        let (due, overload) = (Some(1000.0), Some(1200.0));
        assert!(grows.is_steady(None) && !grows.is_steady(due));
        assert!(grows.is_steady(overload), "it would grow for ever");
        let varies = history(|tick| 100_000 + 20_000 * (tick % 2));
        assert!(varies.is_steady(due));
        let drains = history(|tick| 500_000 - 20_000 * tick);
        assert!(drains.is_steady(due), "only a growing queue is waited for");
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
