//! The only module that reads time.
//!
//! Input: nothing, or a virtual time. Output: nanoseconds since the clock was created, the wall
//! clock for names and headers, and the CPU time of this process. A virtual clock advances only
//! when somebody waits on it. So everything that runs on it is deterministic and takes no time. No
//! other module may name `Instant` or `SystemTime`.

use rigel_model::{Moment, Nanos};
use rustix::time::ClockId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that starts at zero.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's monotonic clock.
    Real {
        /// When the clock was created.
        origin: Instant,
    },
    /// Advances only by [`Clock::wait_until`]; shared by all its clones.
    Virtual {
        /// Nanoseconds since the clock was created.
        now: Arc<AtomicU64>,
    },
}

impl Clock {
    /// Creates a clock on the machine's time; now is zero.
    pub fn real() -> Self {
        Self::Real {
            origin: Instant::now(),
        }
    }

    /// Creates a virtual clock that stays at zero until somebody waits on it.
    pub fn simulated() -> Self {
        Self::Virtual {
            now: Arc::new(AtomicU64::new(0)),
        }
    }

    /// True if waiting on this clock takes no real time.
    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual { .. })
    }

    /// Nanoseconds since the clock was created.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self {
            Self::Real { origin } => nanos(origin.elapsed()),
            Self::Virtual { now } => Nanos(now.load(Ordering::Relaxed)),
        }
    }

    /// Waits until `due`: sleeps on real time, jumps on virtual time.
    pub fn wait_until(&self, due: Nanos) {
        match self {
            Self::Real { .. } => std::thread::sleep(Duration::from_nanos(due.since(self.now()).0)),
            Self::Virtual { now } => {
                now.fetch_max(due.0, Ordering::Relaxed);
            }
        }
    }
}

fn read(clock: ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(clock);
    Nanos(
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// CPU time of all threads of this process, user and system.
pub fn process_cpu() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

/// The machine's monotonic clock, by which the kernel times its events.
pub fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

/// Time since the machine was started, including sleep. Used for timetables of days.
pub fn since_boot() -> Nanos {
    read(ClockId::Boottime)
}

/// Cost of one reading of the real clock in nanoseconds: the mean of a thousand.
pub fn read_cost_ns() -> f64 {
    const READINGS: u32 = 1000;
    let start = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    nanos(start.elapsed()).0 as f64 / f64::from(READINGS)
}

/// Local wall-clock time as `yyyy-mm-ddThh:mm:ss` with its offset from UTC, for headers.
pub fn wall_time() -> String {
    jiff::Zoned::now()
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string()
}

/// The current wall-clock time, to the second.
pub fn moment() -> Moment {
    wall_time()
        .parse()
        .expect("the wall clock's time is a moment")
}

/// Time since `began` by the wall clock; zero if the clock was set back to before it.
pub fn gone_since(began: Moment) -> Nanos {
    Nanos::from_secs(u64::try_from(moment().since(began)).unwrap_or(0))
}

/// Local wall-clock time as `yyyymmdd_hhmm`, for the names of Orion's files.
pub fn file_stamp() -> String {
    jiff::Zoned::now().strftime("%Y%m%d_%H%M").to_string()
}

/// The wall clock, since 1970.
pub fn since_epoch() -> Nanos {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(Nanos(0), nanos)
}

/// A seed that differs from run to run: nanoseconds since 1970.
pub fn fresh_seed() -> u64 {
    since_epoch().0
}

fn nanos(duration: Duration) -> Nanos {
    // Same as `as_nanos`, without 128-bit arithmetic: the cost matters in the main loop.
    Nanos(duration.as_secs() * 1_000_000_000 + u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_moves_only_forward_and_only_by_waiting() {
        let clock = Clock::simulated();
        let same = clock.clone();
        assert_eq!(clock.now(), Nanos(0));
        same.wait_until(Nanos::from_secs(3600));
        assert_eq!(clock.now(), Nanos::from_secs(3600));
        clock.wait_until(Nanos(1));
        assert_eq!(clock.now(), Nanos::from_secs(3600));
    }

    #[test]
    fn real_time_advances() {
        let clock = Clock::real();
        let before = clock.now();
        clock.wait_until(before.plus(Nanos::from_millis(1)));
        assert!(clock.now() >= before.plus(Nanos::from_millis(1)));
    }
}
