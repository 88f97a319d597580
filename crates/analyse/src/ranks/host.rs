//! The figures of each host at one load, their sum, and how equal they are.

use super::facts::{FactDifference, differences};
use crate::figures::latency::LatencyFigure;
use crate::figures::quantity::per_second;
use crate::point::summary::{ClassSummary, PointSummary, summarise};
use rigel_model::Coordinates;
use rigel_model::record::{PointRecord, RankGroup};
use rigel_stats::estimate::Estimate;
use rigel_stats::robust::median;
use serde::Serialize;

/// A host with less than this share of the median rate is slow, if the intervals show it.
pub(super) const RATE_LOW: f64 = 0.8;

/// A host whose p99 is more than this many times the median of all hosts' p99 is slow.
pub(super) const P99_HIGH: f64 = 1.5;

/// Minimum number of hosts among which one can be called slow.
pub(super) const HOSTS_TO_JUDGE: usize = 3;

/// One host's figures at one load.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostFigures {
    /// Its rank.
    pub rank: u32,
    /// Its name.
    pub host: String,
    /// Completed operations per second.
    pub iops: Estimate,
    /// Completed operations divided by those that were due on this host, in an open loop: hosts may
    /// be asked for different rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<f64>,
    /// Its share of the sum.
    pub share: f64,
    /// Median response time; `None` if nothing completed, as for the others.
    pub p50_us: Option<Estimate>,
    /// 99th percentile of response time.
    pub p99_us: Option<Estimate>,
    /// 99.9th percentile of response time.
    pub p999_us: Option<Estimate>,
    /// CPU time of the rank per operation; `None` in an open loop, whose threads busy-wait.
    pub cpu_us_per_io: Option<f64>,
    /// True if it is slower than the others by the rules of docs/methods/ranks-figures.md.
    pub is_slow: bool,
    /// The first facts in which it differs from the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs_in: Vec<FactDifference>,
}

/// All hosts at one load.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostsAtLoad {
    /// The load of each host. An offered rate is that of all hosts together.
    #[serde(flatten)]
    pub coordinates: Coordinates,
    /// Completed operations per second of all hosts, from the sums of each window. What the hosts
    /// do to each other is in its interval.
    pub sum: Estimate,
    /// Median response time of all operations together.
    pub p50_us: Option<Estimate>,
    /// 99th percentile of response time of all operations together.
    pub p99_us: Option<Estimate>,
    /// 99.9th percentile of response time of all operations together.
    pub p999_us: Option<Estimate>,
    /// By rank.
    pub hosts: Vec<HostFigures>,
    /// Jain's index of the rates, in a closed loop: 1 if all are equal, 1/n if one host gets
    /// everything.
    pub jain: Option<f64>,
    /// The worst host's p99 divided by the median of the hosts' p99, in an open loop.
    pub p99_worst_to_median: Option<f64>,
    /// True if two hosts differ as much as a slow one of more hosts would.
    pub two_differ: bool,
}

/// The latency quantiles of a class with their intervals.
pub(super) fn quantiles(class: &ClassSummary) -> [Option<Estimate>; 3] {
    use LatencyFigure::{P50, P99, P999};
    [P50, P99, P999].map(|figure| class.time(figure))
}

impl HostsAtLoad {
    /// From the merged record of a point, and the record of each rank. `None` if nothing was
    /// measured.
    pub(super) fn of(
        group: &RankGroup,
        merged: &PointSummary,
        parts: &[(u32, PointRecord)],
    ) -> Option<Self> {
        let all = merged.classes.first()?;
        let summaries: Vec<(u32, PointSummary)> = parts
            .iter()
            .map(|(rank, record)| (*rank, summarise(record)))
            .collect();
        let mut hosts: Vec<HostFigures> = summaries
            .iter()
            .filter_map(|(rank, point)| host(group, *rank, point, &all.name))
            .collect();
        let total: f64 = hosts.iter().map(|host| host.iops.value).sum();
        for host in &mut hosts {
            host.share = if total > 0.0 {
                host.iops.value / total
            } else {
                0.0
            };
        }
        let is_open = all.offered.is_some();
        let two_differ = judge(&mut hosts, is_open);
        for host in hosts.iter_mut().filter(|host| host.is_slow || two_differ) {
            host.differs_in = differences(group, host.rank);
        }
        let [median, p99, tail] = quantiles(all);
        let rates: Vec<f64> = hosts.iter().map(|host| host.iops.value).collect();
        Some(Self {
            coordinates: merged.coordinates,
            sum: all.rate(),
            p50_us: median,
            p99_us: p99,
            p999_us: tail,
            jain: jain(&rates).filter(|_| !is_open),
            p99_worst_to_median: worst_to_median(&hosts).filter(|_| is_open),
            hosts,
            two_differ,
        })
    }

    /// The load in words: of each rank, or of all together if it is a rate.
    pub fn load(&self) -> String {
        match (self.coordinates, self.coordinates.rate_of_each()) {
            (_, Some(rate)) => format!("{} by each rank", per_second(rate as f64)),
            (Coordinates::Hosts { depth, .. }, None) => format!("depth {depth} on each rank"),
            (Coordinates::Rate { .. }, None) => {
                format!("{} of all ranks together", self.coordinates)
            }
            (Coordinates::Multiple { .. }, None) => {
                format!("{} of the demand", self.coordinates)
            }
            (other, None) => format!("{other} on each rank"),
        }
    }

    /// The host with the highest p99: what waits for all hosts waits for it.
    pub fn worst(&self) -> Option<&HostFigures> {
        let p99 = |host: &HostFigures| host.p99_us.map_or(0.0, |p99| p99.value);
        self.hosts
            .iter()
            .max_by(|one, other| p99(one).total_cmp(&p99(other)))
    }

    /// The hosts with the lowest and the highest rate in a closed loop; in an open one, those that
    /// completed the smallest and the largest part of what was due on them.
    pub fn extremes(&self) -> Option<(&HostFigures, &HostFigures)> {
        let figure = |host: &HostFigures| host.served.unwrap_or(host.iops.value);
        let by_figure =
            |one: &&HostFigures, other: &&HostFigures| figure(one).total_cmp(&figure(other));
        self.hosts
            .iter()
            .min_by(by_figure)
            .zip(self.hosts.iter().max_by(by_figure))
    }
}

/// The figures of one rank's class `name`; `None` if it was not asked for it.
fn host(group: &RankGroup, rank: u32, point: &PointSummary, name: &str) -> Option<HostFigures> {
    let class = point.classes.iter().find(|class| class.name == name)?;
    let [median, p99, tail] = quantiles(class);
    Some(HostFigures {
        rank,
        host: group.label(rank),
        iops: class.rate(),
        served: class
            .offered
            .filter(|offered| *offered > 0.0)
            .map(|offered| class.iops / offered),
        share: 0.0,
        p50_us: median,
        p99_us: p99,
        p999_us: tail,
        cpu_us_per_io: point.cpu_us_per_io,
        is_slow: false,
        differs_in: Vec::new(),
    })
}

/// Jain's fairness index, `(sum x)^2 / (n sum x^2)` (Jain, Chiu and Hawe, DEC-TR-301, 1984); `None`
/// without two rates, or if all are zero.
pub(super) fn jain(rates: &[f64]) -> Option<f64> {
    let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|x| x * x).sum());
    (rates.len() > 1 && squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

fn p99s(hosts: &[HostFigures]) -> Vec<f64> {
    hosts
        .iter()
        .filter_map(|host| Some(host.p99_us?.value))
        .collect()
}

fn worst_to_median(hosts: &[HostFigures]) -> Option<f64> {
    let all = p99s(hosts);
    let middle = median(&all)?;
    let worst = all.iter().copied().fold(0.0, f64::max);
    (all.len() > 1 && middle > 0.0).then(|| worst / middle)
}

/// Marks the slow hosts of three or more. Of two, neither is the culprit: true if they differ.
fn judge(hosts: &mut [HostFigures], is_open: bool) -> bool {
    let rates: Vec<f64> = hosts.iter().map(|host| host.iops.value).collect();
    let (Some(rate), Some(p99)) = (median(&rates), median(&p99s(hosts))) else {
        return false;
    };
    if let [one, other] = hosts {
        let (slower, faster) = if one.iops.value < other.iops.value {
            (one, other)
        } else {
            (other, one)
        };
        let apart = below(slower.iops, faster.iops);
        let by_rate = !is_open && apart && slower.iops.value < RATE_LOW * faster.iops.value;
        let times = slower.p99_us.zip(faster.p99_us);
        let by_p99 = times.is_some_and(|(a, b)| {
            let (low, high) = if a.value < b.value { (a, b) } else { (b, a) };
            high.value > P99_HIGH * low.value && (below(low, high) || high.interval.is_none())
        });
        return by_rate || by_p99;
    }
    if hosts.len() < HOSTS_TO_JUDGE {
        return false;
    }
    let middle = hosts
        .iter()
        .map(|host| host.iops)
        .min_by(|a, b| (a.value - rate).abs().total_cmp(&(b.value - rate).abs()));
    for host in hosts {
        let by_rate = !is_open
            && host.iops.value < RATE_LOW * rate
            && middle.is_some_and(|middle| below(host.iops, middle));
        let by_p99 = host.p99_us.is_some_and(|own| {
            // A rate that is not served has no interval, and is far above.
            let low = own.interval.map_or(own.value, |limits| limits.low);
            own.value > P99_HIGH * p99 && low > p99
        });
        host.is_slow = by_rate || by_p99;
    }
    false
}

/// True if the interval of `one` ends below that of `other`; false if one is not known.
fn below(one: Estimate, other: Estimate) -> bool {
    let high = one.interval.and_then(|limits| limits.high);
    let low = other.interval.map(|limits| limits.low);
    high.zip(low).is_some_and(|(high, low)| high < low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_stats::mean::Limits;

    fn estimate(value: f64) -> Estimate {
        let interval = Some(Limits {
            low: value * 0.98,
            high: Some(value * 1.02),
        });
        Estimate::new(value, interval)
    }

    fn figures(rates_and_p99: &[(f64, f64)]) -> Vec<HostFigures> {
        let host = |(rank, (rate, p99)): (usize, &(f64, f64))| HostFigures {
            rank: u32::try_from(rank).unwrap(),
            host: format!("h{}", rank + 1),
            iops: estimate(*rate),
            served: None,
            share: 0.0,
            p50_us: None,
            p99_us: Some(estimate(*p99)),
            p999_us: None,
            cpu_us_per_io: None,
            is_slow: false,
            differs_in: Vec::new(),
        };
        rates_and_p99.iter().enumerate().map(host).collect()
    }

    /// The names of the slow hosts, and whether two differ.
    fn judged(rates_and_p99: &[(f64, f64)], is_open: bool) -> (Vec<String>, bool) {
        let mut hosts = figures(rates_and_p99);
        let differ = judge(&mut hosts, is_open);
        let slow = hosts.into_iter().filter(|host| host.is_slow);
        (slow.map(|host| host.host).collect(), differ)
    }

    #[test]
    fn the_index_is_one_for_equal_rates_and_one_nth_for_a_single_taker() {
        assert_eq!(jain(&[7.0, 7.0, 7.0]), Some(1.0));
        assert_eq!(jain(&[0.0, 9.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[5.0]), jain(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn a_slow_host_of_three_is_named_and_of_two_neither_is() {
        let slow = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_string())
                .collect::<Vec<_>>()
        };
        let (even, low, late) = ((100.0, 10.0), (79.0, 10.0), (100.0, 16.0));
        assert_eq!(judged(&[even, low, even], false), (slow(&["h2"]), false));
        assert_eq!(judged(&[even, even, late], false), (slow(&["h3"]), false));
        assert_eq!(
            judged(&[even, even, (81.0, 14.9)], false),
            (slow(&[]), false)
        );
        // In an open loop the rate is what was asked for.
        assert_eq!(judged(&[even, low, even], true), (slow(&[]), false));
        assert_eq!(judged(&[even, low], false), (slow(&[]), true));
        assert_eq!(judged(&[even, late], true), (slow(&[]), true));
        assert_eq!(judged(&[even, (90.0, 12.0)], false), (slow(&[]), false));
    }

    #[test]
    fn a_low_rate_whose_interval_reaches_the_others_is_not_slow() {
        let mut hosts = figures(&[(100.0, 10.0), (75.0, 10.0), (100.0, 10.0)]);
        hosts[1].iops.interval = Some(Limits {
            low: 40.0,
            high: Some(110.0),
        });
        assert!(!judge(&mut hosts, false));
        assert!(hosts.iter().all(|host| !host.is_slow));
    }
}
