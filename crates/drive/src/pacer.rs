//! Computes when the operations of a stream are due.
//!
//! Input: a load and the current time. Output: due times. In a closed loop an operation is due as
//! soon as the previous one completes. The tool's own time to issue it counts as response time, so
//! Little's law holds. An open loop has a schedule of due times. All workers of a stream take them
//! from one queue, because splitting the rate among workers would measure the tool's own queues.

use rigel_model::workload::rng::Rng;
use rigel_model::{Arrivals, Load, Nanos};
use std::ops::Range;
use std::sync::Mutex;

/// The due times of one stream, shared by its workers.
#[derive(Debug)]
pub(super) enum Pacer {
    /// An operation is due as soon as there is a free slot.
    Closed,
    /// Operations are due on a schedule.
    Open(Mutex<Schedule>),
}

/// The endless queue of due times of an open loop.
#[derive(Debug)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    /// Mean gap between due times, in nanoseconds.
    gap: f64,
    rng: Rng,
    /// When the next operation is due, in nanoseconds since the beginning of the point. Includes a
    /// fraction: a rate of 300,000 a second has no integer gap.
    next: f64,
}

/// Answer of a pacer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// An operation is due since its slot became free.
    SinceFree,
    /// An operation is due since this moment.
    Since(Nanos),
    /// No operation is due before this moment.
    NotBefore(Nanos),
}

impl Pacer {
    /// Creates the pacer for `load`.
    pub(super) fn new(load: Load, seed: u64) -> Self {
        match load {
            Load::Closed { .. } => Pacer::Closed,
            Load::Open { rate, arrivals, .. } => {
                let mut schedule = Schedule {
                    arrivals,
                    gap: 1e9 / rate,
                    rng: Rng::new(seed, u64::MAX),
                    next: 0.0,
                };
                schedule.step();
                Pacer::Open(Mutex::new(schedule))
            }
        }
    }

    /// Takes the next due time unless it is after `now`. `origin` is when the point began.
    #[inline]
    pub(super) fn take(&self, now: Nanos, origin: Nanos) -> Due {
        match self {
            Pacer::Closed => Due::SinceFree,
            Pacer::Open(schedule) => lock(schedule).take(now, origin),
        }
    }

    /// Counts the operations that were due in `measured` and were not taken, at most `most`, per
    /// window of `width`. `origin` is when the point began. Consumes the schedule: an operation
    /// counted here is never due again.
    pub(super) fn unserved(
        &self,
        measured: Range<Nanos>,
        origin: Nanos,
        width: Nanos,
        most: u64,
    ) -> Vec<u64> {
        let mut windows = Vec::new();
        if let Pacer::Open(schedule) = self {
            let mut schedule = lock(schedule);
            let mut count = 0;
            while count < most
                && let Due::Since(due) =
                    schedule.take(Nanos(measured.end.0.saturating_sub(1)), origin)
            {
                if due >= measured.start {
                    count += 1;
                    let window = usize::try_from(due.since(measured.start).0 / width.0)
                        .expect("windows of a measurement fit");
                    windows.resize(windows.len().max(window + 1), 0);
                    windows[window] += 1;
                }
            }
        }
        windows
    }
}

fn lock(schedule: &Mutex<Schedule>) -> std::sync::MutexGuard<'_, Schedule> {
    schedule
        .lock()
        .expect("nothing panics while it holds the schedule")
}

impl Schedule {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "due times are positive and below 2^53"
    )]
    fn take(&mut self, now: Nanos, origin: Nanos) -> Due {
        let due = Nanos(self.next as u64).plus(origin);
        if due > now {
            return Due::NotBefore(due);
        }
        self.step();
        Due::Since(due)
    }

    fn step(&mut self) {
        self.next += match self.arrivals {
            Arrivals::Poisson => self.gap * self.rng.exponential(),
            Arrivals::Uniform => self.gap,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(rate: f64, arrivals: Arrivals) -> Pacer {
        Pacer::new(
            Load::Open {
                rate,
                arrivals,
                in_flight_max: 1,
            },
            7,
        )
    }

    #[test]
    fn a_uniform_schedule_does_not_drift() {
        let pacer = open(300_000.0, Arrivals::Uniform);
        let end = Nanos::from_secs(10);
        let count = std::iter::from_fn(|| match pacer.take(end, Nanos(0)) {
            Due::Since(_) => Some(()),
            _ => None,
        })
        .count();
        assert!(count.abs_diff(3_000_000) <= 1, "{count}");
    }

    #[test]
    fn operations_that_never_started_are_unserved_and_counted_once() {
        const SPAN: Range<Nanos> = Nanos(0)..Nanos::from_secs(3);
        let pacer = open(1000.0, Arrivals::Uniform);
        let taken = (0..500)
            .filter(|_| matches!(pacer.take(Nanos::from_secs(1), Nanos(0)), Due::Since(_)))
            .count();
        let unserved = pacer.unserved(SPAN, Nanos(0), Nanos::from_secs(1), u64::MAX);
        assert_eq!(taken as u64 + unserved.iter().sum::<u64>(), 2999);
        assert_eq!(unserved[1], 1000);
        assert!(
            pacer
                .unserved(SPAN, Nanos(0), Nanos::from_secs(1), u64::MAX)
                .is_empty()
        );
    }

    #[test]
    fn poisson_arrivals_keep_their_rate() {
        let pacer = open(10_000.0, Arrivals::Poisson);
        let counts = pacer.unserved(
            Nanos(0)..Nanos::from_secs(100),
            Nanos(0),
            Nanos::from_secs(1),
            u64::MAX,
        );
        let mean = counts.iter().sum::<u64>() as f64 / 100.0;
        let variance = counts
            .iter()
            .map(|c| (*c as f64 - mean).powi(2))
            .sum::<f64>()
            / 99.0;
        // A Poisson count of 10,000: the mean of 100 is within 5 x 10, the variance is about the
        // mean.
        assert!((mean - 10_000.0).abs() < 50.0, "{mean}");
        assert!((0.5..2.0).contains(&(variance / mean)), "{variance}");
    }
}
