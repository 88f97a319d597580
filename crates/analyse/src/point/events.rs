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
    /// The length of the longest in seconds; absent if there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub longest_seconds: f64,
    /// The sum of the squares of their lengths.
    #[serde(skip)]
    pub squares: f64,
    /// The seconds of them before or after the measured time.
    #[serde(skip)]
    pub beyond_s: f64,
}

/// True if there is nothing to say.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(seconds: &f64) -> bool {
    *seconds <= 0.0
}

impl Events {
    /// One of this length, of which at most so much lies in the measured time; in seconds.
    pub(crate) fn one(seconds: f64, within_s: f64) -> Self {
        let mut one = Self::default();
        one.include(1, seconds);
        one.beyond_s = (seconds - within_s).max(0.0);
        one
    }

    /// True if there were none.
    pub fn is_none(&self) -> bool {
        self.times == 0
    }

    /// Adds those of other measurements.
    pub fn add(&mut self, other: &Self) {
        self.times += other.times;
        self.seconds += other.seconds;
        self.longest_seconds = self.longest_seconds.max(other.longest_seconds);
        self.squares += other.squares;
        self.beyond_s += other.beyond_s;
    }

    /// Adds `times` of one length in seconds.
    pub(super) fn include(&mut self, times: u64, each_s: f64) {
        self.times += times;
        self.seconds += times as f64 * each_s;
        self.longest_seconds = self.longest_seconds.max(each_s);
        self.squares += times as f64 * each_s * each_s;
    }
}

/// Events, and the time in which they were looked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventsSeen {
    /// The events.
    pub events: Events,
    /// The measured time in seconds, and that of events beyond it.
    pub seconds: f64,
}

impl EventsSeen {
    /// Adds those that a measurement of `seconds` met.
    pub fn include(&mut self, events: &Events, seconds: f64) {
        self.events.add(events);
        self.seconds += seconds + events.beyond_s;
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
