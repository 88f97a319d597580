//! Rounds in which some of the hosts measure and the others wait: the ladder over numbers of hosts,
//! and each host alone against all together.

use super::host::quantiles;
use super::loads::RankLoads;
use crate::point::summary::{ClassSummary, summarise};
use rigel_model::record::{RankGroup, visits};
use rigel_model::{ActiveRanks, Coordinates};
use rigel_stats::estimate::Estimate;
use serde::Serialize;

/// The same load by a number of hosts.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LadderStep {
    /// Number of ranks that measured; the others waited.
    pub ranks: u32,
    /// Completed operations per second of all of them.
    pub sum: Estimate,
    /// 99th percentile of response time of all their operations.
    pub p99_us: Option<Estimate>,
    /// The sum divided by the number of ranks and by the rate of one: 1 as long as the storage
    /// gives every host what it gave the first alone.
    pub efficiency: Option<f64>,
}

/// Whether a sum grows with the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LadderGrowth {
    /// It does.
    Grows,
    /// It does not: its interval excludes that more hosts add as much as the first ones.
    Level,
    /// The intervals are too wide to tell, or there are none.
    Unknown,
}

/// One host alone, and the same host while all measure, each with the same load.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AloneFigures {
    /// Its rank.
    pub rank: u32,
    /// Its name.
    pub host: String,
    /// Completed operations per second alone.
    pub alone: Estimate,
    /// The same while all hosts measured.
    pub together: Estimate,
    /// 99th percentile of response time alone.
    pub alone_p99_us: Option<Estimate>,
    /// The same while all hosts measured.
    pub together_p99_us: Option<Estimate>,
    /// Closed loop: the rate together as a part of the rate alone.
    pub rate_ratio: Option<Estimate>,
    /// Open loop: the p99 together divided by the p99 alone.
    pub p99_ratio: Option<f64>,
}

/// What the rounds show.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostRounds {
    /// Outstanding operations of each host; in an open loop, its in-flight limit.
    pub depth: u32,
    /// Offered operations per second of each host; `None` in a closed loop.
    pub rate_per_s: Option<u64>,
    /// Number of rounds.
    pub rounds: u32,
    /// By number of hosts, ascending.
    pub ladder: Vec<LadderStep>,
    /// By rank.
    pub alone: Vec<AloneFigures>,
    /// Closed loop: the sum of the rates of these hosts together divided by the sum of the rates
    /// that each had alone.
    pub scaling: Option<f64>,
}

impl HostRounds {
    /// From the points of a run, for each load that has such rounds, in order: the second is the ladder
    /// at the depth with the highest throughput.
    pub(super) fn all(group: &RankGroup, loads: &RankLoads<'_>) -> Vec<Self> {
        let mut of_each: Vec<(u32, u64)> = Vec::new();
        for coordinates in loads.coordinates() {
            if let Coordinates::Hosts {
                depth, rate_per_s, ..
            } = coordinates
                && !of_each.contains(&(depth, rate_per_s))
            {
                of_each.push((depth, rate_per_s));
            }
        }
        let rounds = of_each
            .into_iter()
            .map(|of_each| Self::of(group, loads, of_each));
        rounds.collect()
    }

    fn of(group: &RankGroup, loads: &RankLoads<'_>, (depth, rate_per_s): (u32, u64)) -> Self {
        let own = (depth, rate_per_s);
        let hosts = loads.coordinates().filter(|one| {
            matches!(one, Coordinates::Hosts { depth, rate_per_s, .. }
                if (*depth, *rate_per_s) == own)
        });
        let rounds = hosts.clone().map(|one| match one {
            Coordinates::Hosts { round, .. } => round,
            _ => 0,
        });
        let load = |active| Coordinates::Hosts {
            active,
            depth,
            rate_per_s,
            round: 0,
        };
        let size = u32::try_from(group.size()).unwrap_or(u32::MAX);
        let mut rounds = Self {
            depth,
            rate_per_s: (rate_per_s > 0).then_some(rate_per_s),
            rounds: rounds.max().unwrap_or(0),
            ladder: Vec::new(),
            alone: Vec::new(),
            scaling: None,
        };
        let mut actives: Vec<ActiveRanks> = Vec::new();
        for one in hosts {
            let active = one.active_ranks();
            if !actives.contains(&active) {
                actives.push(active);
            }
        }
        let mut steps: Vec<(u32, ClassSummary)> = actives
            .iter()
            .filter(|active| !matches!(active, ActiveRanks::Only(rank) if *rank > 0))
            .filter_map(|active| Some((active.count(size), class(loads, load(*active))?)))
            .collect();
        steps.sort_by_key(|(ranks, _)| *ranks);
        let first = steps
            .first()
            .filter(|(ranks, _)| *ranks == 1)
            .map(|(_, class)| class.iops);
        rounds.ladder = steps
            .iter()
            .map(|(ranks, class)| LadderStep {
                ranks: *ranks,
                sum: class.rate(),
                p99_us: quantiles(class)[1],
                efficiency: first
                    .filter(|first| *first > 0.0)
                    .map(|first| class.iops / f64::from(*ranks) / first),
            })
            .collect();
        let parts = loads.parts(load(ActiveRanks::All));
        rounds.alone = actives
            .iter()
            .filter_map(|active| match active {
                ActiveRanks::Only(rank) => Some(*rank),
                _ => None,
            })
            .filter_map(|rank| {
                let alone = class(loads, load(ActiveRanks::Only(rank)))?;
                let (_, together) = parts.iter().find(|(other, _)| *other == rank)?;
                let together = summarise(together).classes.into_iter().next()?;
                Some(against(group, rank, &alone, &together))
            })
            .collect();
        rounds.alone.sort_by_key(|one| one.rank);
        let sum = |of: fn(&AloneFigures) -> f64| rounds.alone.iter().map(of).sum::<f64>();
        let (alone, together) = (sum(|one| one.alone.value), sum(|one| one.together.value));
        rounds.scaling = (alone > 0.0 && rate_per_s == 0).then(|| together / alone);
        rounds
    }

    /// Whether the sum still grew at the end of the ladder.
    pub fn growth(&self) -> LadderGrowth {
        let steps: Vec<LadderGrowth> = self
            .ladder
            .windows(2)
            .map(|pair| growth(&pair[0], &pair[1]))
            .collect();
        let after_growth = steps
            .iter()
            .rposition(|step| *step == LadderGrowth::Grows)
            .map_or(0, |at| at + 1);
        match &steps[after_growth..] {
            [] => LadderGrowth::Grows,
            rest if rest.iter().all(|step| *step == LadderGrowth::Level) => LadderGrowth::Level,
            _ => LadderGrowth::Unknown,
        }
    }

    /// How many hosts would fill the storage: the sum at the end of the ladder divided by the rate
    /// of one host. `None` unless the sum is known to grow no more.
    pub fn hosts_that_fill(&self) -> Option<f64> {
        if self.growth() != LadderGrowth::Level {
            return None;
        }
        let single = self
            .ladder
            .first()
            .filter(|step| step.ranks == 1)?
            .sum
            .value;
        let most = self
            .ladder
            .iter()
            .map(|step| step.sum.value)
            .fold(0.0, f64::max);
        (single > 0.0).then(|| most / single)
    }
}

/// Whether the sum grows from one step of the ladder to the next.
fn growth(before: &LadderStep, after: &LadderStep) -> LadderGrowth {
    let high = before.sum.interval.and_then(|limits| limits.high);
    let low = after.sum.interval.map(|limits| limits.low);
    if high.zip(low).is_some_and(|(high, low)| low > high) {
        return LadderGrowth::Grows;
    }
    let in_full = f64::from(after.ranks) / f64::from(before.ranks);
    let most = after.sum.over(before.sum).interval;
    match most.and_then(|limits| limits.high) {
        Some(most) if most < in_full => LadderGrowth::Level,
        _ => LadderGrowth::Unknown,
    }
}

/// The figures of the merged record at this load, all rounds together.
fn class(loads: &RankLoads<'_>, at: Coordinates) -> Option<ClassSummary> {
    let records = loads.merged(at);
    let joined = visits::joined_at(&records, at)?;
    summarise(&joined).classes.into_iter().next()
}

fn against(
    group: &RankGroup,
    rank: u32,
    alone: &ClassSummary,
    together: &ClassSummary,
) -> AloneFigures {
    let is_open = alone.offered.is_some();
    let ratio_of_rates = || {
        let ratio = together.rate().over(alone.rate());
        Some(ratio).filter(|ratio| ratio.value.is_finite())
    };
    let p99 = |class: &ClassSummary| quantiles(class)[1];
    let ratio_of_p99 = || {
        let (together, alone) = (p99(together)?.value, p99(alone)?.value);
        (alone > 0.0).then(|| together / alone)
    };
    AloneFigures {
        rank,
        host: group.label(rank),
        alone: alone.rate(),
        together: together.rate(),
        alone_p99_us: p99(alone),
        together_p99_us: p99(together),
        rate_ratio: if is_open { None } else { ratio_of_rates() },
        p99_ratio: if is_open { ratio_of_p99() } else { None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_stats::mean::Limits;

    /// A ladder of sums, each with an interval of `share` of it to both sides.
    fn ladder(sums: &[f64], share: f64) -> HostRounds {
        let steps = (1_u32..).zip(sums).map(|(ranks, sum)| LadderStep {
            ranks,
            sum: Estimate::new(
                *sum,
                (share > 0.0).then_some(Limits {
                    low: sum * (1.0 - share),
                    high: Some(sum * (1.0 + share)),
                }),
            ),
            p99_us: None,
            efficiency: None,
        });
        HostRounds {
            depth: 4,
            rate_per_s: None,
            rounds: 2,
            ladder: steps.collect(),
            alone: Vec::new(),
            scaling: None,
        }
    }

    #[test]
    fn a_sum_is_level_only_if_its_interval_excludes_growth() {
        // Three hosts without a common limit, badly measured; and without intervals.
        let unlimited = [157.0, 272.0, 490.0];
        assert_eq!(ladder(&unlimited, 0.4).growth(), LadderGrowth::Unknown);
        assert_eq!(ladder(&unlimited, 0.0).growth(), LadderGrowth::Unknown);
        assert_eq!(ladder(&unlimited, 0.4).hosts_that_fill(), None);
        assert_eq!(ladder(&unlimited, 0.02).growth(), LadderGrowth::Grows);
        let capped = [1000.0, 1500.0, 1500.0];
        assert_eq!(ladder(&capped, 0.02).growth(), LadderGrowth::Level);
        assert_eq!(ladder(&capped, 0.02).hosts_that_fill(), Some(1.5));
        assert_eq!(ladder(&capped, 0.3).growth(), LadderGrowth::Unknown);
    }
}
