//! The demands of `rigel watch`, for `rigel fit`: of each disk and of each database.
//!
//! Input: intervals, one after the other, so that a journal of weeks is never in memory as a whole.
//! Output: [`Demand`]s.

use super::watch_request::WatchRequest;
use super::watched_counters::{CounterChange, of_database};
use super::watched_streams::{SeenStream, demand_stream, of_disk};
use rigel_model::record::journal::Header;
use rigel_model::record::{DatabaseInterval, WatchedInterval};
use rigel_model::{Demand, DemandInterval, Moment, Nanos};

/// The streams of a database, and the time between the readings of its counters.
pub(super) fn of_counters(database: &DatabaseInterval) -> (f64, Vec<SeenStream>) {
    /// Size of a block where the server does not say it.
    const BLOCK: f64 = 8192.0;
    let seconds = database.measured.as_secs_f64();
    let Some([before, after]) = database.counters.as_ref().filter(|_| seconds > 0.0) else {
        return (seconds, Vec::new());
    };
    let block = after.get("block_size").map_or(BLOCK, |block| *block as f64);
    (
        seconds,
        of_database(&CounterChange { before, after }, block),
    )
}

/// True for an interval that was cut short by more than half, as by Ctrl-C: its rates are of too
/// little time to stand beside the others.
pub(super) fn is_short(seconds: f64, every: Nanos) -> bool {
    seconds < every.as_secs_f64() / 2.0
}

/// Those of `all` that were not cut short; all if there are no others.
pub(super) fn not_short<T>(all: &[T], seconds: impl Fn(&T) -> f64, every: Nanos) -> Vec<&T> {
    let whole: Vec<&T> = all
        .iter()
        .filter(|one| !is_short(seconds(one), every))
        .collect();
    if whole.is_empty() {
        all.iter().collect()
    } else {
        whole
    }
}

/// The demands of the intervals of a watch so far.
#[derive(Debug, Clone, Default)]
pub struct WatchDemands {
    demands: Vec<Demand>,
    /// That of the journal; `None` before its first interval.
    request: Option<WatchRequest>,
}

impl WatchDemands {
    /// Adds an interval of the journal with this header.
    pub fn add(&mut self, header: &Header, interval: &WatchedInterval) {
        if self.request.is_none() {
            self.request = header.invocation.asked("watch");
        }
        let Some(request) = &self.request else {
            return;
        };
        let block_bytes = (!request.is_block_assumed).then_some(request.block);
        let begin: Option<Moment> = interval.started.parse().ok();
        let taken = |seconds: f64, streams: &[SeenStream]| DemandInterval {
            label: format!("interval {}", interval.number),
            begin,
            seconds: Some(seconds),
            streams: streams
                .iter()
                .filter_map(|stream| demand_stream(stream, seconds))
                .collect(),
            left_out: None,
            censored: String::new(),
            operations: None,
        };
        let seconds = interval.measured.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        for disk in &interval.disks {
            if let Some(streams) = of_disk(disk) {
                let demand = self.of(&disk.name, header, block_bytes);
                demand.is_device = true;
                demand.intervals.push(taken(seconds, &streams));
            }
        }
        for database in &interval.databases {
            let (seconds, streams) = of_counters(database);
            if database.counters.is_some() && seconds > 0.0 {
                let demand = self.of(&database.name, header, block_bytes);
                demand.log = database.log.or(demand.log);
                demand.intervals.push(taken(seconds, &streams));
            }
        }
    }

    /// The demands; intervals that were cut short are in them only if there are no others.
    pub fn finish(self) -> Vec<Demand> {
        let mut demands = self.demands;
        let every = self.request.map_or(Nanos(0), |request| request.every);
        for demand in &mut demands {
            let seconds = |one: &DemandInterval| one.seconds.unwrap_or(0.0);
            let whole = not_short(&demand.intervals, seconds, every);
            if whole.len() < demand.intervals.len() {
                demand.intervals = whole.into_iter().cloned().collect();
            }
        }
        demands
    }

    /// The demand of the source `name`, which is made if there is none yet.
    fn of(&mut self, name: &str, header: &Header, block_bytes: Option<u32>) -> &mut Demand {
        let demands = &mut self.demands;
        let index = demands.iter().position(|demand| demand.database == name);
        let index = index.unwrap_or_else(|| {
            demands.push(Demand {
                source: "rigel watch".into(),
                database: name.into(),
                release: None,
                host: Some(header.host.name.clone()).filter(|name| !name.is_empty()),
                block_bytes,
                log: None,
                intervals: Vec::new(),
                sum_of: Vec::new(),
                is_device: false,
            });
            demands.len() - 1
        });
        &mut demands[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_short_is_taken_only_if_there_is_nothing_else() {
        let every = Nanos::from_secs(10);
        let kept = |all: &[f64]| -> Vec<f64> {
            let whole = not_short(all, |seconds| *seconds, every);
            whole.into_iter().copied().collect()
        };
        assert_eq!(kept(&[10.0, 4.9, 5.0]), [10.0, 5.0]);
        assert_eq!(kept(&[4.0, 1.0]), [4.0, 1.0]);
        assert!(kept(&[]).is_empty());
    }
}
