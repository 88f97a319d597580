//! Reads of a database that memory answered in place of its storage: what shows it, and what it means.
//!
//! Input: single-block reads as the database timed them. Output: evidence, and a finding. There is one rule
//! for reports and for counters of servers.

use super::rates::WAITS_MIN;
use rigel_model::{
    Demand, DemandInterval, DemandKind, DemandStream, Finding, FindingName, LatencyShare,
};

/// Below this mean, reads came from memory.
const MEMORY_US: f64 = 50.0;

/// What shows that memory answered these reads; `None` if nothing does. `mean_us` is the highest mean that
/// the source allows.
pub(super) fn evidence(mean_us: Option<f64>, shares: &[LatencyShare]) -> Option<String> {
    if let Some(mean) = mean_us.filter(|mean| *mean < MEMORY_US) {
        return Some(format!(
            "a single-block read takes {mean:.0} us at most on average"
        ));
    }
    let share = memory_share(shares)?;
    Some(format!(
        "{:.0} % of single-block reads take less than 64 us",
        share * 100.0
    ))
}

/// The same of the random reads of a server, by its counters: a warning that names `source`.
pub(super) fn of_counters(source: &str, mean_us: Option<f64>, reads: f64) -> Option<Finding> {
    let mean = mean_us.filter(|_| reads >= WAITS_MIN)?;
    let evidence = evidence(Some(mean), &[])?;
    Some(Finding::warning(
        FindingName::ReadsFromMemory,
        format!(
            "{source}: {evidence}: they came from the page cache of the host or the memory of the \
             storage; the latency is not that of the storage, and the rate of reads is an upper bound"
        ),
        "judge storage by the disk's own demand: rigel watch DIR of the server, then rigel fit --of DISK",
    ))
}

/// The same of an interval that is offered of `demand`; `None` for a device, which is the storage.
pub(super) fn of_demand(demand: &Demand, interval: &DemandInterval) -> Option<Finding> {
    let reads = interval.stream(DemandKind::RandomReads)?;
    if demand.is_device {
        return None;
    }
    let number = reads.per_s.zip(interval.seconds);
    of_counters(
        &demand.database,
        reads.mean_us,
        number.map_or(0.0, |(per_s, seconds)| per_s * seconds),
    )
}

/// True if what is known against a demand says that the latency of this stream is not that of its storage.
pub(super) fn is_of_memory(stream: &DemandStream, findings: &[Finding]) -> bool {
    let mut findings = findings.iter();
    stream.kind.is_read() && findings.any(|one| one.is(FindingName::ReadsFromMemory))
}

/// The share of reads below 64 us, if it is more than a fifth and there is a second mode above.
fn memory_share(all: &[LatencyShare]) -> Option<f64> {
    const MEMORY_BOUND_US: f64 = 64.0;
    const SHARE_MIN: f64 = 0.2;
    let is_below = |one: &&LatencyShare| one.high_us.is_some_and(|high| high <= MEMORY_BOUND_US);
    let share: f64 = all.iter().filter(is_below).map(|one| one.share).sum();
    let above: Vec<f64> = all
        .iter()
        .filter(|one| !is_below(one))
        .map(|one| one.share)
        .collect();
    let has_second_mode = above.windows(2).any(|two| two[1] > two[0]);
    (share > SHARE_MIN && has_second_mode).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::demand;
    use rigel_model::examples::stream;

    fn reads(per_s: f64, mean_us: f64) -> DemandStream {
        DemandStream {
            mean_us: Some(mean_us),
            ..stream(DemandKind::RandomReads, per_s, Some(8192.0))
        }
    }

    #[test]
    fn reads_of_a_server_that_no_disk_answers_are_named_and_those_of_a_disk_are_not() {
        let is_named = |reads: DemandStream, is_device: bool| {
            let mut demand = demand(vec![reads]);
            demand.is_device = is_device;
            of_demand(&demand, &demand.intervals[0]).is_some()
        };
        assert!(is_named(reads(7000.0, 12.8), false));
        assert!(!is_named(reads(7000.0, 60.0), false));
        assert!(!is_named(reads(7000.0, 12.8), true), "a disk is storage");
        assert!(!is_named(reads(0.01, 12.8), false), "36 reads in an hour");
    }
}
