//! The load of the host and its devices between two samples.

use rigel_model::{Counters, Sample};
use serde::{Deserialize, Serialize};

/// The load of a device between two samples, from all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceLoad {
    /// Completed reads and writes per second.
    pub iops: f64,
    /// Megabytes (10^6) read and written per second.
    pub megabytes_per_s: f64,
    /// Fraction of time with at least one request in flight.
    pub busy: f64,
    /// Mean number of requests in flight: the sum of their times divided by the elapsed time, by
    /// Little's law.
    #[serde(default)]
    pub queue: f64,
}

/// CPU use between two samples, as fractions of all CPU time, and I/O pressure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostLoad {
    /// CPU time that is neither idle nor waiting for I/O nor stolen.
    pub busy: f64,
    /// CPU time that the hypervisor took for others.
    pub stolen: f64,
    /// Fraction of time in which some task waited for I/O; `None` if the kernel does not count it.
    pub io_pressure: Option<f64>,
}

/// The load of every device that is in both samples; empty if no time passed between them.
pub fn device_loads(before: &Sample, after: &Sample) -> Vec<(String, DeviceLoad)> {
    let seconds = after.at.since(before.at).as_secs_f64();
    if seconds <= 0.0 {
        return Vec::new();
    }
    let load = |name: &String, after: &Counters| {
        let before = before.devices.get(name)?;
        let grown =
            |counter: fn(&Counters) -> u64| counter(after).saturating_sub(counter(before)) as f64;
        let load = DeviceLoad {
            iops: grown(|c| c.reads + c.writes) / seconds,
            megabytes_per_s: grown(|c| c.read_sectors + c.write_sectors) * 512.0 / 1e6 / seconds,
            busy: (grown(|c| c.busy_ms) / 1e3 / seconds).min(1.0),
            queue: grown(|c| c.read_ms + c.write_ms) / 1e3 / seconds,
        };
        Some((name.clone(), load))
    };
    after
        .devices
        .iter()
        .filter_map(|(name, counters)| load(name, counters))
        .collect()
}

/// The load of the host; all zero if no time passed between the samples.
pub fn host_load(before: &Sample, after: &Sample) -> HostLoad {
    let mut ticks = [0.0; 8];
    for (tick, (after, before)) in ticks
        .iter_mut()
        .zip(after.cpu_ticks.iter().zip(before.cpu_ticks))
    {
        // Idle and iowait are known to go backwards by a tick.
        *tick = after.saturating_sub(before) as f64;
    }
    let all: f64 = ticks.iter().sum();
    let share = |part: f64| if all > 0.0 { part / all } else { 0.0 };
    let [_, _, _, idle, waiting, _, _, stolen] = ticks;
    let seconds = after.at.since(before.at).as_secs_f64();
    let pressure = after
        .io_pressure_us
        .zip(before.io_pressure_us)
        .filter(|_| seconds > 0.0);
    HostLoad {
        busy: share(all - idle - waiting - stolen),
        stolen: share(stolen),
        io_pressure: pressure
            .map(|(after, before)| (after.saturating_sub(before) as f64 / 1e6 / seconds).min(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Nanos;

    fn sample(at: u64, counters: Counters) -> Sample {
        let devices = [("sda".to_string(), counters)].into();
        Sample {
            at: Nanos::from_secs(at),
            devices,
            ..Sample::default()
        }
    }

    #[test]
    fn counters_become_rates() {
        let before = sample(
            1,
            Counters {
                reads: 100,
                busy_ms: 5000,
                ..Counters::default()
            },
        );
        let grown = Counters {
            reads: 300,
            writes: 100,
            read_sectors: 10_000,
            write_sectors: 10_000,
            busy_ms: 6000,
            read_ms: 3000,
            write_ms: 500,
            ..Counters::default()
        };
        let loads = device_loads(&before, &sample(3, grown));
        assert_eq!(
            loads,
            [(
                "sda".to_string(),
                DeviceLoad {
                    iops: 150.0,
                    megabytes_per_s: 5.12,
                    busy: 0.5,
                    queue: 1.75
                }
            )]
        );
    }

    #[test]
    fn nothing_is_made_of_no_time_or_of_counters_that_ran_backwards() {
        let some = sample(
            1,
            Counters {
                reads: 100,
                ..Counters::default()
            },
        );
        assert_eq!(device_loads(&some, &some), []);
        assert_eq!(host_load(&some, &some), HostLoad::default());
        let reset = sample(2, Counters::default());
        assert_eq!(device_loads(&some, &reset)[0].1, DeviceLoad::default());
    }

    #[test]
    fn cpu_time_is_reported_as_shares() {
        let mut before = sample(1, Counters::default());
        let mut after = sample(2, Counters::default());
        (before.io_pressure_us, after.io_pressure_us) = (Some(500_000), Some(750_000));
        after.cpu_ticks = [10, 0, 10, 60, 10, 0, 0, 10];
        assert_eq!(
            host_load(&before, &after),
            HostLoad {
                busy: 0.2,
                stolen: 0.1,
                io_pressure: Some(0.25)
            }
        );
    }
}
