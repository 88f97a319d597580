//! Stalls: short times in which a device does nothing, or nearly nothing.
//!
//! A closed loop shows a stall as windows without operations. An open loop goes on offering
//! operations, and those that are due at the beginning of a stall wait for all of it: response time
//! jumps within a window, faster than any queue grows.

use super::lost::{SlowPhase, slow_phases, upper_median};
use rigel_model::record::Window;
use serde::Serialize;
use std::ops::Range;

/// The stalls of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Stalls {
    /// Number of stalls.
    pub times: u64,
    /// The sum of their lengths in seconds.
    pub seconds: f64,
}

impl Stalls {
    /// True if there were none.
    pub fn is_none(&self) -> bool {
        self.times == 0
    }

    /// Finds the stalls of a closed loop in its operations in consecutive windows of `width_s`
    /// seconds: slow phases of up to five windows. Longer ones are phases or steps.
    pub(super) fn of_counts(counts: &[f64], width_s: f64) -> Self {
        const WINDOWS_MAX: usize = 5;
        let mut found = Self::default();
        for SlowPhase { windows, lost_s } in slow_phases(counts, width_s) {
            // A phase at either end may have begun or gone on outside.
            let is_inside = windows.start > 0 && windows.end < counts.len();
            if is_inside && windows.len() <= WINDOWS_MAX {
                found.times += 1;
                found.seconds += lost_s;
            }
        }
        found
    }

    /// The stalls of an open loop together.
    pub(super) fn of_jumps(jumps: &[ResponseJump]) -> Self {
        Self {
            times: jumps.len() as u64,
            seconds: jumps.iter().map(|stall| stall.seconds).sum(),
        }
    }
}

/// A stall of an open loop.
pub(super) struct ResponseJump {
    /// The windows whose operations it delayed.
    pub(super) windows: Range<usize>,
    /// Its length.
    seconds: f64,
}

/// Finds the stalls of an open loop in consecutive windows of `width_s` seconds: a window whose
/// upper quartile of response times exceeds that of the previous one by 20 ms, by twice the
/// usual one, and by more than a queue can grow.
///
/// In a window of n operations a queue in equilibrium grows by chance by a standard deviation
/// of sqrt(2 n) operations (as Poisson arrivals and departures do), each of which takes less
/// than 1/n of the window to serve, or else the rate would not be. Five of these deviations are
/// allowed. Windows of fewer than ten operations cannot tell.
pub(super) fn response_jumps(windows: &[Window], width_s: f64) -> Vec<ResponseJump> {
    const LEAST_S: f64 = 0.02;
    const TIMES_USUAL: f64 = 2.0;
    const DEVIATIONS: f64 = 5.0;
    const OPERATIONS_MIN: u64 = 10;
    const RECOVERED: f64 = 0.1;
    let quartiles: Vec<Option<f64>> = windows
        .iter()
        .map(|window| {
            let times = &window.response.histogram;
            let known = times.count() >= OPERATIONS_MIN;
            let band = times.quantile(0.75).filter(|_| known);
            band.map(|band| band.middle() / 1e9)
        })
        .collect();
    let all: Vec<f64> = quartiles.iter().copied().flatten().collect();
    let usual = upper_median(&all);
    let longest = |at: usize| windows.get(at).map_or(0, |window| window.response.max) as f64;
    let mut found: Vec<ResponseJump> = Vec::new();
    for at in 1..windows.len() {
        let (Some(before), Some(now)) = (quartiles[at - 1], quartiles[at]) else {
            continue;
        };
        let count = windows[at].response.histogram.count() as f64;
        let by_queue = DEVIATIONS * width_s * (2.0 / count).sqrt();
        let least = LEAST_S.max(TIMES_USUAL * usual).max(by_queue);
        // A stall that begins in one window may raise the next one further.
        let is_new = found.last().is_none_or(|stall| stall.windows.end < at);
        if now - before >= least && is_new {
            // What was due in the window before may have waited, too, and the queue has to drain.
            let settled = before + RECOVERED * (now - before);
            let is_slow = |place: &usize| quartiles[*place].is_none_or(|one| one > settled);
            let after = (at + 1..windows.len()).take_while(is_slow).count();
            found.push(ResponseJump {
                windows: at - 1..at + 1 + after,
                seconds: (longest(at - 1).max(longest(at)) / 1e9 - before).max(0.0),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::workload::rng::Rng;

    #[test]
    fn short_gaps_of_a_closed_loop_are_stalls_and_steps_are_not() {
        let counts = |at: usize| match at % 10 {
            3 => 20.0,
            4 => 80.0,
            _ => 100.0,
        };
        let series: Vec<f64> = (0..50).map(counts).collect();
        let found = Stalls::of_counts(&series, 0.1);
        assert_eq!(found.times, 5);
        assert!((found.seconds - 5.0 * 0.08).abs() < 1e-9, "{found:?}");
        let step: Vec<f64> = (0..50)
            .map(|at| if at < 30 { 100.0 } else { 10.0 })
            .collect();
        assert!(Stalls::of_counts(&step, 0.1).is_none());
        let few = [4.0, 0.0, 5.0, 3.0, 1.0, 4.0];
        assert!(Stalls::of_counts(&few, 0.1).is_none());
    }

    /// Windows of 100 ms of an open loop with these response times of one server, `rate` operations
    /// a second of `service_s` each on average; it stands still for the first tenth of each
    /// second if `stalls`.
    fn served(seed: u64, rate: f64, service_s: f64, stalls: bool) -> Vec<Window> {
        let mut rng = Rng::new(seed, 0);
        let mut windows = vec![Window::default(); 100];
        let (mut due, mut free) = (0.0, 0.0f64);
        loop {
            due += rng.exponential() / rate;
            if due >= 10.0 {
                return windows;
            }
            let mut end = due.max(free);
            if stalls && end.fract() < 0.1 {
                end = end.floor() + 0.1;
            }
            free = end + rng.exponential() * service_s;
            let at = (0..100).find(|at| due < f64::from(at + 1) / 10.0).unwrap();
            let window = &mut windows[usize::try_from(at).unwrap()];
            let response = std::time::Duration::from_secs_f64(free - due).as_nanos();
            let response = u64::try_from(response).unwrap();
            window.response.histogram.record(response);
            window.response.max = window.response.max.max(response);
        }
    }

    #[test]
    fn an_open_loop_shows_stalls_as_jumps_and_a_queue_does_not_jump() {
        let found = Stalls::of_jumps(&response_jumps(&served(1, 3000.0, 1e-4, true), 0.1));
        assert!((9..=10).contains(&found.times), "{found:?}");
        assert!((found.seconds / found.times as f64 - 0.1).abs() < 0.01);
        for (service, rate) in [(1e-4, 9500.0), (1e-3, 950.0), (5e-3, 190.0), (5e-3, 100.0)] {
            for seed in 0..100 {
                let found =
                    Stalls::of_jumps(&response_jumps(&served(seed, rate, service, false), 0.1));
                assert!(found.is_none(), "{rate} {seed}: {found:?}");
            }
        }
    }
}
