//! Effects of the host on a point: CPU time stolen by the hypervisor, and time that Rigel's own
//! threads waited for a CPU. Both are part of the latencies, and neither comes from the storage.

use super::load::host_load;
use crate::figures::quantity::rounded_percent;
use rigel_model::record::PointRecord;
use rigel_model::{Finding, FindingName, Sample};

/// Allowed fraction of CPU time taken by the hypervisor.
const STOLEN: f64 = 0.01;

/// Allowed fraction of a thread's time that it waits for a CPU.
const DESCHEDULED: f64 = 0.02;

/// Warnings about effects of the host on the figures of a point.
pub(super) fn warnings(record: &PointRecord) -> Vec<Finding> {
    let (Some(first), Some(last)) = (record.samples.first(), record.samples.last()) else {
        return Vec::new();
    };
    stolen(record, first, last)
        .into_iter()
        .chain(descheduled(record, first))
        .collect()
}

fn stolen(record: &PointRecord, first: &Sample, last: &Sample) -> Option<Finding> {
    let stolen = host_load(first, last).stolen;
    (stolen > STOLEN).then(|| {
        Finding::warning(
            FindingName::CpuStolen,
            format!(
                "at {} the hypervisor took {} of the CPU time for others",
                record.coordinates,
                rounded_percent(stolen)
            ),
            "measure on a less busy host, or at another time: latency includes stolen time",
        )
    })
}

/// Warns if Rigel's threads waited for a CPU, by the kernel's count of each thread's time ready to
/// run without one. The count of a finished thread is lost, so the maximum of all samples is used.
fn descheduled(record: &PointRecord, first: &Sample) -> Option<Finding> {
    let before = first.own_threads?;
    let (sample, after) = record
        .samples
        .iter()
        .filter_map(|sample| Some((sample, sample.own_threads?)))
        .max_by_key(|(_, threads)| threads.run_delay_us)?;
    let measuring = f64::from(after.count.saturating_sub(before.count).max(1));
    let waited = after.run_delay_us.saturating_sub(before.run_delay_us) as f64 / 1e6;
    let span = sample.at.since(first.at).as_secs_f64();
    let share = waited / (span * measuring);
    (span > 0.0 && share > DESCHEDULED).then(|| {
        Finding::warning(
            FindingName::Descheduled,
            format!(
                "at {} Rigel's own threads waited for a CPU {} of the time: response times \
                 include this wait, which is not the storage's",
                record.coordinates,
                rounded_percent(share)
            ),
            "stop other processes, give this process more CPUs, or request fewer outstanding I/Os \
             per thread",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::record::{End, WINDOW};
    use rigel_model::{Coordinates, Nanos, OwnThreads};

    fn record(run_delay_us: u64, stolen: u64) -> PointRecord {
        let sample = |at, threads: u32, run_delay_us, stolen| Sample {
            at: Nanos::from_secs(at),
            own_threads: Some(OwnThreads {
                count: threads,
                run_delay_us,
            }),
            cpu_ticks: [0, 0, 0, 100 * at, 0, 0, 0, stolen],
            ..Sample::default()
        };
        PointRecord {
            coordinates: Coordinates::cell(4, 0),
            started: String::new(),
            began: Nanos(0),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(2),
            end: End::Complete,
            cpu: Nanos(0),
            cpus: 2,
            window: WINDOW,
            asked: None,
            streams: Vec::new(),
            // In the last sample the threads have ended, and their counts are gone.
            samples: vec![
                sample(0, 1, 100, 0),
                sample(1, 5, 100 + run_delay_us, 0),
                sample(2, 1, 110, stolen),
            ],
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: Vec::new(),
            left_out: Nanos(0),
        }
    }

    #[test]
    fn time_without_a_cpu_is_a_share_of_the_measuring_threads_time() {
        // Four threads, one second: 3 % of their time.
        let found = warnings(&record(120_000, 0));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].name == "descheduled" && found[0].what.contains("3.0 %"),
            "{found:?}"
        );
        assert_eq!(warnings(&record(40_000, 0)), []);
    }

    #[test]
    fn stolen_time_raises_a_warning() {
        let found = warnings(&record(0, 10));
        assert!(
            found[0].is(FindingName::CpuStolen) && found[0].what.contains("4.8 %"),
            "{found:?}"
        );
    }
}
