//! What was different on the host: rounds before a change against rounds after it.

use super::robust::{median, spread};
use super::rounds::{Round, RoundHost};
use serde::Serialize;

/// Rounds nearest to the change that are compared, on either side.
const ROUNDS_MAX: usize = 24;
/// Times the noise of single rounds that a median must move by.
const NOISE: f64 = 3.0;

/// A counter of the host that moved by clearly more than its noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostShift {
    /// Which.
    pub what: HostCounter,
    /// Its median before.
    pub before: f64,
    /// Its median after.
    pub after: f64,
}

/// A counter of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCounter {
    /// Megabytes (10^6) a second that others moved on the disks.
    OthersMbPerS,
    /// Share of the CPU time that the hypervisor took.
    Stolen,
    /// Share of the CPUs in use.
    CpuBusy,
    /// Share of the time some task waited for I/O.
    IoPressure,
    /// Share of the time the busiest disk was busy.
    DeviceBusy,
    /// I/Os in the busiest disk's queue.
    Queue,
}

impl HostCounter {
    const ALL: [Self; 6] =
        [Self::OthersMbPerS, Self::Stolen, Self::CpuBusy, Self::IoPressure, Self::DeviceBusy, Self::Queue];

    fn of(self, host: &RoundHost) -> Option<f64> {
        match self {
            Self::OthersMbPerS => host.others_mb_per_s,
            Self::Stolen => Some(host.stolen),
            Self::CpuBusy => Some(host.cpu_busy),
            Self::IoPressure => host.io_pressure,
            Self::DeviceBusy => host.device_busy,
            Self::Queue => host.queue,
        }
    }

    /// Less than this, plus a fifth of what it was for what has no greatest value, is not worth a word.
    fn least(self, before: f64) -> f64 {
        match self {
            Self::OthersMbPerS => 1.0 + 0.2 * before,
            Self::Stolen => 0.01,
            Self::CpuBusy | Self::IoPressure | Self::DeviceBusy => 0.05,
            Self::Queue => 0.5 + 0.2 * before,
        }
    }

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OthersMbPerS => "I/O of others",
            Self::Stolen => "CPU stolen by the hypervisor",
            Self::CpuBusy => "CPU in use",
            Self::IoPressure => "I/O pressure",
            Self::DeviceBusy => "disk busy",
            Self::Queue => "disk queue",
        }
    }

    /// A value with its unit, for people.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::OthersMbPerS => format!("{value:.1} MB/s"),
            Self::Queue => format!("{value:.1}"),
            _ => format!("{:.1} %", value * 100.0),
        }
    }
}

impl HostShift {
    /// `I/O of others 0.2 to 85.0 MB/s`.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{} went from {} to {}", self.what.name(), self.what.show(self.before), self.what.show(self.after))
    }
}

/// What moved from `before` to `after`. None where either side knows nothing of the host.
pub(super) fn host_shifts(before: &[&Round], after: &[&Round]) -> Option<Vec<HostShift>> {
    let before = &before[before.len().saturating_sub(ROUNDS_MAX)..];
    let after = &after[..after.len().min(ROUNDS_MAX)];
    let known = |rounds: &[&Round]| rounds.iter().any(|round| round.host.is_some());
    if !known(before) || !known(after) {
        return None;
    }
    let shift = |what: HostCounter| {
        let values = |rounds: &[&Round]| -> Vec<f64> {
            rounds.iter().filter_map(|round| what.of(round.host.as_ref()?)).filter(|value| value.is_finite()).collect()
        };
        let (earlier, later) = (values(before), values(after));
        let (was, is) = (median(&earlier)?, median(&later)?);
        let noise = NOISE * spread(&earlier).max(spread(&later)) / (earlier.len().min(later.len()) as f64).sqrt();
        ((is - was).abs() > noise.max(what.least(was))).then_some(HostShift { what, before: was, after: is })
    };
    Some(HostCounter::ALL.into_iter().filter_map(shift).collect())
}
