//! The demands of several instances at one time: what each rank of a fit offers.
//!
//! Input: a demand for each instance, and which interval is wanted. Output: the intervals of all of
//! them that are of the same time, and their sum. The busiest time is that of the sum: the busiest
//! hours of each instance would be a load that never was.

use super::database_result::sum;
use rigel_model::{Burst, Demand, DemandAt, DemandInterval};

/// What several instances asked for at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct DemandOfInstances {
    /// In the order of the demands.
    pub each: Vec<DemandInterval>,
    /// All of them together.
    pub sum: DemandInterval,
    /// Number of intervals that all of them have.
    pub intervals: usize,
    /// Share of those in which all together asked for less.
    pub below: f64,
    /// How much busier the busiest ten seconds of all together are than their hour.
    pub burst: Option<Burst>,
}

/// The intervals of these demands at the time that `at` names, by the sum of all; `None` if there is
/// no time of which all of them have an interval.
pub fn at_one_time(demands: &[Demand], at: DemandAt) -> Option<DemandOfInstances> {
    let (first, others) = demands.split_first()?;
    let is_single = demands.iter().all(|demand| demand.intervals.len() == 1);
    let group = |interval: &DemandInterval| -> Option<Vec<DemandInterval>> {
        let of_other = |other: &Demand| {
            let mut intervals = other.intervals.iter();
            let interval = match (middle(interval), is_single) {
                (Some(at), _) => intervals.find(|other| contains(other, at)),
                // Without a time, single intervals are taken to be of the same one.
                (None, true) => intervals.next(),
                (None, false) => None,
            };
            interval.cloned()
        };
        let mut each = vec![interval.clone()];
        for other in others {
            each.push(of_other(other)?);
        }
        Some(each)
    };
    let groups: Vec<Vec<DemandInterval>> = first.intervals.iter().filter_map(group).collect();
    let sums = groups.iter().map(|each| match &each[..] {
        [only] => only.clone(),
        all => sum(&all.iter().collect::<Vec<_>>()),
    });
    let together = Demand {
        intervals: sums.collect(),
        ..first.clone()
    };
    let (chosen, below) = together.interval_at(at)?;
    let position = together
        .intervals
        .iter()
        .position(|interval| std::ptr::eq(interval, chosen))?;
    Some(DemandOfInstances {
        each: groups[position].clone(),
        sum: chosen.clone(),
        intervals: groups.len(),
        below,
        burst: together.burst(),
    })
}

/// The middle of an interval, in seconds of the wall clock.
fn middle(interval: &DemandInterval) -> Option<f64> {
    let begin = interval.begin?.wall_seconds() as f64;
    Some(begin + interval.seconds.unwrap_or(0.0) / 2.0)
}

fn contains(interval: &DemandInterval, at: f64) -> bool {
    let begin = interval.begin.map(|begin| begin.wall_seconds() as f64);
    let into = begin.map(|begin| at - begin);
    into.zip(interval.seconds)
        .is_some_and(|(into, seconds)| (0.0..seconds).contains(&into))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::examples::{self, stream};
    use rigel_model::{DemandKind, Moment};

    /// A demand whose hours have these rates, from `hour` on, a little after the full hour.
    fn demand(name: &str, hour: i64, late_s: i64, rates: &[f64]) -> Demand {
        let midnight: Moment = "2026-04-23T00:00".parse().unwrap();
        let intervals = (hour..).zip(rates).map(|(hour, per_s)| DemandInterval {
            begin: Some(midnight.plus_seconds(3600 * hour + late_s)),
            ..examples::interval(vec![stream(DemandKind::RandomReads, *per_s, Some(8192.0))])
        });
        Demand {
            source: "AWR".into(),
            database: name.into(),
            release: None,
            host: None,
            block_bytes: Some(8192),
            log: None,
            intervals: intervals.collect(),
            sum_of: Vec::new(),
            is_device: false,
        }
    }

    fn rates(found: &DemandOfInstances) -> Vec<f64> {
        let rate = DemandInterval::operations_per_s;
        found
            .each
            .iter()
            .map(rate)
            .chain([rate(&found.sum)])
            .collect()
    }

    #[test]
    fn the_busiest_time_is_that_of_all_instances_together() {
        // Each alone is busiest at another hour, and together they are at 11.
        let one = demand("R/R1", 9, 0, &[50.0, 900.0, 600.0, 10.0]);
        let other = demand("R/R2", 10, 40, &[100.0, 700.0, 800.0]);
        let found = at_one_time(&[one, other], DemandAt::Peak).unwrap();
        assert_eq!(rates(&found), [600.0, 700.0, 1300.0]);
        // The first hour of one is not covered by the other.
        assert_eq!((found.intervals, (found.below * 3.0).round()), (3, 2.0));
    }

    #[test]
    fn instances_without_a_common_time_have_no_demand_together() {
        let (one, other) = (demand("a", 0, 0, &[1.0]), demand("b", 7, 0, &[1.0, 2.0]));
        assert_eq!(at_one_time(&[one.clone(), other], DemandAt::Peak), None);
        assert_eq!(at_one_time(&[], DemandAt::Peak), None);
        // Single reports without a time are what the user put side by side.
        let mut timeless = one;
        timeless.intervals[0].begin = None;
        let found = at_one_time(&[timeless.clone(), timeless], DemandAt::Peak).unwrap();
        assert_eq!(rates(&found), [1.0, 1.0, 2.0]);
    }
}
