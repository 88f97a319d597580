//! The syncs of a log, apart from the commits that they make durable.
//!
//! Input: the record of a point. Output: how often a log was synced, for how many commits at once, and how long the
//! calls took alone. The record has no windows of them, so these figures have no intervals; those of commits do.

use crate::figures::latency::LatencySummary;
use rigel_model::Kind;
use rigel_model::record::{KindRecord, PointRecord};
use serde::Serialize;

/// The syncs of a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SyncSummary {
    /// Syncs per second.
    pub per_s: f64,
    /// Commits that a sync made durable, on average.
    pub commits_each: f64,
    /// How long the calls took.
    #[serde(flatten)]
    pub latency: LatencySummary,
}

/// The syncs of a point; `None` if none was a call of its own.
pub(super) fn syncs(record: &PointRecord) -> Option<SyncSummary> {
    let times = record.syncs.as_ref()?;
    let latency = LatencySummary::of(times)?;
    let (mut all, mut measured) = (0, 0);
    for stream in &record.streams {
        let log = stream.kinds.iter().find(|kind| kind.kind == Kind::Log);
        let Some(log) = log.map(KindRecord::total) else {
            continue;
        };
        measured += log.done;
        all += log.done + log.failures() + stream.warm_up_done;
    }
    let commits_each = all as f64 / times.histogram.count() as f64;
    Some(SyncSummary {
        per_s: measured as f64 / record.measured.as_secs_f64() / commits_each,
        commits_each,
        latency,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::reads_of_a_millisecond;
    use rigel_model::Nanos;
    use rigel_model::record::Latencies;

    #[test]
    fn a_sync_is_for_as_many_commits_as_were_made_in_all() {
        let mut record = reads_of_a_millisecond();
        assert_eq!(syncs(&record), None, "nothing was synced");
        let mut times = Latencies::default();
        (0..3000).for_each(|_| times.record(Nanos::from_micros(200)));
        record.syncs = Some(times);
        record.streams[0].kinds[0].kind = Kind::Log;
        record.streams[0].warm_up_done = 2000;
        let found = syncs(&record).unwrap();
        // 12,000 commits with the warm-up; 10,000 in the measured ten seconds.
        assert!((found.commits_each - 4.0).abs() < 1e-9, "{found:?}");
        let per_s = 10_000.0 / record.measured.as_secs_f64() / 4.0;
        assert!((found.per_s - per_s).abs() < 1e-6, "{found:?}");
        assert!((found.latency.max_us - 200.0).abs() < 1e-9, "{found:?}");
    }
}
