//! Differences on the host between the rounds before a change and those after it.

use super::rounds::{Round, RoundHost};
use crate::figures::quantity;
use rigel_stats::robust::{median, spread};
use serde::Serialize;

/// Maximum number of compared rounds on either side, those nearest to the change.
const ROUNDS_MAX: usize = 24;
/// Minimum shift of a median, as a multiple of its noise.
const NOISE: f64 = 3.0;

/// A host counter that changed by clearly more than its noise.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostShift {
    /// The counter.
    pub what: HostCounter,
    /// Its median before the change.
    pub before: f64,
    /// Its median after the change.
    pub after: f64,
}

/// A counter of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostCounter {
    /// Megabytes (10^6) per second that others moved on the disks.
    OthersMbPerS,
    /// Fraction of CPU time taken by the hypervisor.
    Stolen,
    /// Fraction of the CPUs in use.
    CpuBusy,
    /// Fraction of time in which some task waited for I/O.
    IoPressure,
    /// Fraction of time in which the busiest disk was busy.
    DeviceBusy,
    /// I/Os in the busiest disk's queue.
    Queue,
}

impl HostCounter {
    const ALL: [Self; 6] = [
        Self::OthersMbPerS,
        Self::Stolen,
        Self::CpuBusy,
        Self::IoPressure,
        Self::DeviceBusy,
        Self::Queue,
    ];

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

    /// Smallest shift that is worth reporting; for counters without a maximum it grows with a fifth
    /// of the value before.
    fn least(self, before: f64) -> f64 {
        match self {
            Self::OthersMbPerS => 1.0 + 0.2 * before,
            Self::Stolen => 0.01,
            Self::CpuBusy | Self::IoPressure | Self::DeviceBusy => 0.05,
            Self::Queue => 0.5 + 0.2 * before,
        }
    }

    /// Display name.
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

    /// Formats a value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::OthersMbPerS => quantity::mb_per_second(value),
            Self::Queue => format!("{value:.1}"),
            _ => quantity::percent(value),
        }
    }
}

impl HostShift {
    /// A sentence such as `I/O of others went from 0.2 MB/s to 85.0 MB/s`.
    pub fn sentence(&self) -> String {
        format!(
            "{} went from {} to {}",
            self.what.name(),
            self.what.show(self.before),
            self.what.show(self.after)
        )
    }
}

/// The counters that changed from `before` to `after`; `None` if the host is unknown on either
/// side.
pub(super) fn host_shifts(before: &[&Round], after: &[&Round]) -> Option<Vec<HostShift>> {
    let before = &before[before.len().saturating_sub(ROUNDS_MAX)..];
    let after = &after[..after.len().min(ROUNDS_MAX)];
    let has_host = |rounds: &[&Round]| rounds.iter().any(|round| round.host.is_some());
    if !has_host(before) || !has_host(after) {
        return None;
    }
    let shift = |what: HostCounter| {
        let values = |rounds: &[&Round]| -> Vec<f64> {
            rounds
                .iter()
                .filter_map(|round| what.of(round.host.as_ref()?))
                .filter(|value| value.is_finite())
                .collect()
        };
        let (earlier, later) = (values(before), values(after));
        let (was, is) = (median(&earlier)?, median(&later)?);
        let noise = NOISE * spread(&earlier).max(spread(&later))
            / (earlier.len().min(later.len()) as f64).sqrt();
        ((is - was).abs() > noise.max(what.least(was))).then_some(HostShift {
            what,
            before: was,
            after: is,
        })
    };
    Some(HostCounter::ALL.into_iter().filter_map(shift).collect())
}
