//! Times in which storage stood still or was far slower than usual: their number and length.
//!
//! What [`stalls`](super::stalls) and [`lost`](super::lost) find in the windows of a load, and what others
//! add up over loads and runs.

use serde::Serialize;

/// Stalls, or slow phases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Events {
    /// Their number.
    pub times: u64,
    /// The sum of their lengths in seconds; of slow phases, of the time in which nothing would have been
    /// done at the usual rate.
    pub seconds: f64,
    /// The sum of the squares of their lengths.
    #[serde(skip)]
    pub squares: f64,
}

impl Events {
    /// True if there were none.
    pub fn is_none(&self) -> bool {
        self.times == 0
    }

    /// Adds those of other measurements.
    pub fn add(&mut self, other: &Self) {
        self.times += other.times;
        self.seconds += other.seconds;
        self.squares += other.squares;
    }

    /// Adds `times` of one length in seconds.
    pub(super) fn include(&mut self, times: u64, each_s: f64) {
        self.times += times;
        self.seconds += times as f64 * each_s;
        self.squares += times as f64 * each_s * each_s;
    }
}

/// Events, and the time in which they were looked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventsSeen {
    /// The events.
    pub events: Events,
    /// The measured time in seconds.
    pub seconds: f64,
}

impl EventsSeen {
    /// Adds those that a measurement of `seconds` met.
    pub fn include(&mut self, events: &Events, seconds: f64) {
        self.events.add(events);
        self.seconds += seconds;
    }

    /// The number of events.
    pub fn times(&self) -> f64 {
        self.events.times as f64
    }

    /// The relative standard error that they add to the throughput of a measurement of `seconds`: events
    /// that come at random (a compound Poisson process) with rate λ and lengths L have the variance
    /// λ E(L²) / t of the lost share of a time t.
    pub(super) fn error_over(&self, seconds: f64) -> f64 {
        if self.seconds <= 0.0 || seconds <= 0.0 {
            return 0.0;
        }
        (self.events.squares / self.seconds / seconds).sqrt()
    }

    /// Degrees of freedom of that error: twice their number, as for the limits of a Poisson count
    /// (Garwood, Biometrika 28, 1936).
    pub(super) fn degrees(&self) -> f64 {
        2.0 * self.times()
    }
}
