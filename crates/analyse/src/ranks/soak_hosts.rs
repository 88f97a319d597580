//! The hosts of a soak: what each did in all rounds, and in how many of them it was slow.
//!
//! Input: what each rank measured of a round, round by round, so that a journal of weeks is never in
//! memory as a whole. Output: a [`SoakHosts`].

use super::facts::{FactDifference, differences, in_words};
use super::findings;
use super::host::{HOSTS_TO_JUDGE, P99_HIGH, RATE_LOW};
use crate::figures::latency::LatencySummary;
use crate::figures::quantity::{count, time};
use rigel_model::record::journal::Run;
use rigel_model::record::{End, Latencies, RankGroup, RankLost, RankRecord, StreamRecord};
use rigel_model::{Finding, FindingName};
use rigel_stats::robust::median;
use serde::Serialize;
use std::collections::BTreeMap;

/// Share of the rounds from which on a host that is slow in them is worth a warning.
const ROUNDS_WARNED: f64 = 0.5;

/// The hosts of a soak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SoakHosts {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of hosts: of different kernels.
    pub hosts: usize,
    /// The ranks' names, by rank.
    pub names: Vec<String>,
    /// True if each host has storage of its own, so that the sum is not that of one storage.
    pub is_separate: bool,
    /// Number of rounds that all ranks measured to their end.
    pub rounds: u32,
    /// Of two hosts: the number of these rounds in which they differed as much as a slow one of more
    /// hosts would.
    pub two_differ_rounds: u32,
    /// By rank.
    pub by_host: Vec<SoakHost>,
    /// The ranks that were lost. Each loss ended the soak until it was resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<RankLost>,
    /// The exit status of all ranks, by the journal's last line; `None` if it has none: the soak goes
    /// on, or was killed.
    pub end_status: Option<u8>,
}

/// One host in the rounds that all ranks measured to their end.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SoakHost {
    /// Its rank.
    pub rank: u32,
    /// Its name.
    pub host: String,
    /// Operations that it completed.
    pub operations: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations per second of the time that it measured; `None` if it measured nothing.
    pub rate_per_s: Option<f64>,
    /// Its share of the operations of all.
    pub share: f64,
    /// Median response time of its operations in all rounds; `None` if there are none.
    pub p50_us: Option<f64>,
    /// 99th percentile of the same.
    pub p99_us: Option<f64>,
    /// Rounds in which it was slower than the others, of three or more hosts.
    pub slow_rounds: u32,
    /// Rounds that it did not measure to their end, because it was lost or a session broke.
    pub lost_rounds: u32,
    /// The first facts in which it differs from the others, if it was slow in any round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs_in: Vec<FactDifference>,
}

/// What one rank did so far.
#[derive(Debug, Clone, Default)]
struct RankSoFar {
    operations: u64,
    /// Operations that started in time.
    in_time: f64,
    failed: u64,
    seconds: f64,
    response: Latencies,
    slow_rounds: u32,
    broken_rounds: u32,
}

/// The hosts of a soak so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct SoakHostsReader {
    by_rank: BTreeMap<u32, RankSoFar>,
    rounds: u32,
    two_differ_rounds: u32,
}

/// One rank in one round.
struct RankInRound {
    rank: u32,
    rate: f64,
    p99_us: Option<f64>,
}

impl SoakHostsReader {
    /// Takes what each rank measured of a round. Only the first class counts.
    pub(crate) fn add(&mut self, parts: &[RankRecord]) {
        let is_broken = |part: &&RankRecord| matches!(part.record.end, End::Broken(_));
        for part in parts.iter().filter(is_broken) {
            self.by_rank.entry(part.rank).or_default().broken_rounds += 1;
        }
        if parts.iter().any(|part| part.record.end != End::Complete) {
            return;
        }
        self.rounds += 1;
        let in_round = parts.iter().filter_map(|part| self.add_rank(part));
        let in_round: Vec<RankInRound> = in_round.collect();
        let is_open = parts
            .iter()
            .filter_map(|part| part.record.streams.first())
            .any(StreamRecord::is_open);
        self.judge(&in_round, is_open);
    }

    fn add_rank(&mut self, part: &RankRecord) -> Option<RankInRound> {
        let stream: &StreamRecord = part.record.streams.first()?;
        let (total, seconds) = (stream.total(), part.record.measured.as_secs_f64());
        let rate = part.record.rate_of(stream);
        let of_rank = self.by_rank.entry(part.rank).or_default();
        of_rank.operations = of_rank.operations.saturating_add(total.done);
        of_rank.failed = of_rank.failed.saturating_add(total.failures());
        of_rank.in_time += rate * seconds;
        of_rank.seconds += seconds;
        of_rank.response.merge(&total.response);
        (seconds > 0.0).then(|| RankInRound {
            rank: part.rank,
            rate,
            p99_us: LatencySummary::of(&total.response).map(|latency| latency.p99_us),
        })
    }

    /// Counts the round for the hosts that were slow in it. A round has no interval here: how often
    /// a host was slow says what chance does not.
    fn judge(&mut self, in_round: &[RankInRound], is_open: bool) {
        let rates: Vec<f64> = in_round.iter().map(|one| one.rate).collect();
        let p99s: Vec<f64> = in_round.iter().filter_map(|one| one.p99_us).collect();
        if let [one, other] = in_round {
            let far = |ratio: f64, limit: f64| ratio > limit || ratio < 1.0 / limit;
            let by_rate = !is_open && far(one.rate / other.rate, 1.0 / RATE_LOW);
            let times = one.p99_us.zip(other.p99_us);
            let by_p99 = times.is_some_and(|(one, other)| far(one / other, P99_HIGH));
            self.two_differ_rounds += u32::from(by_rate || by_p99);
        }
        let (Some(rate), Some(p99)) = (median(&rates), median(&p99s)) else {
            return;
        };
        if in_round.len() < HOSTS_TO_JUDGE {
            return;
        }
        for one in in_round {
            let by_rate = !is_open && one.rate < RATE_LOW * rate;
            let by_p99 = one.p99_us.is_some_and(|own| own > P99_HIGH * p99);
            let of_rank = self.by_rank.entry(one.rank).or_default();
            of_rank.slow_rounds += u32::from(by_rate || by_p99);
        }
    }

    /// The hosts, with what the journal says of losses and of its end.
    pub(crate) fn result(&self, group: &RankGroup, run: &Run) -> SoakHosts {
        let lines = &run.ranks;
        let all: u64 = self.by_rank.values().map(|one| one.operations).sum();
        let host = |rank: u32| {
            let of_rank = self.by_rank.get(&rank).cloned().unwrap_or_default();
            let latency = LatencySummary::of(&of_rank.response);
            let lost = lines.lost.iter().filter(|lost| lost.rank == rank).count();
            SoakHost {
                rank,
                host: group.label(rank),
                operations: of_rank.operations,
                failed: of_rank.failed,
                rate_per_s: (of_rank.seconds > 0.0).then(|| of_rank.in_time / of_rank.seconds),
                share: of_rank.operations as f64 / all.max(1) as f64,
                p50_us: latency.map(|latency| latency.p50_us),
                p99_us: latency.map(|latency| latency.p99_us),
                slow_rounds: of_rank.slow_rounds,
                lost_rounds: of_rank.broken_rounds + u32::try_from(lost).unwrap_or(u32::MAX),
                differs_in: if of_rank.slow_rounds > 0 {
                    differences(group, rank)
                } else {
                    Vec::new()
                },
            }
        };
        SoakHosts {
            ranks: group.size(),
            hosts: group.hosts(),
            names: group
                .members
                .iter()
                .map(|one| group.label(one.rank))
                .collect(),
            is_separate: group.separate,
            rounds: self.rounds,
            two_differ_rounds: self.two_differ_rounds,
            by_host: group.members.iter().map(|one| host(one.rank)).collect(),
            lost: lines.lost.clone(),
            end_status: run.ended.as_ref().map(|end| end.status),
        }
    }
}

impl SoakHosts {
    /// Findings about the hosts: those that were lost, and those that were slow in most rounds.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = findings::lost(&self.lost);
        let is_often =
            |rounds: u32| rounds > 0 && f64::from(rounds) >= ROUNDS_WARNED * f64::from(self.rounds);
        let figures = |host: &SoakHost| {
            let rate = host.rate_per_s.map_or_else(|| "unknown".into(), count);
            let p99 = host.p99_us.map_or_else(|| "unknown".into(), time);
            format!("{} does {rate}/s, p99 {p99}", host.host)
        };
        if let ([one, other], true) = (&*self.by_host, is_often(self.two_differ_rounds)) {
            findings.push(Finding::warning(
                FindingName::Unequal,
                format!(
                    "the two hosts differ in {} of {} rounds: {}; {}",
                    self.two_differ_rounds,
                    self.rounds,
                    figures(one),
                    figures(other)
                ),
                findings::ADD_A_THIRD,
            ));
        }
        let slow = self
            .by_host
            .iter()
            .filter(|host| is_often(host.slow_rounds));
        let each: Vec<String> = slow
            .map(|host| {
                let facts = match in_words(&host.differs_in) {
                    differences if differences.is_empty() => String::new(),
                    differences => format!(" (it has {differences})"),
                };
                let rounds = format!("{} of {} rounds", host.slow_rounds, self.rounds);
                format!("in {rounds} {}{facts}", figures(host))
            })
            .collect();
        if !each.is_empty() {
            let what = format!("slower than the other hosts: {}", each.join("; "));
            findings.push(Finding::warning(
                FindingName::Unequal,
                what,
                findings::COMPARE_IT,
            ));
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(rounds: &[&[(f64, f64)]], is_open: bool) -> SoakHostsReader {
        let mut reader = SoakHostsReader::default();
        for round in rounds {
            let in_round = (0..).zip(*round).map(|(rank, (rate, p99_us))| RankInRound {
                rank,
                rate: *rate,
                p99_us: Some(*p99_us),
            });
            reader.judge(&in_round.collect::<Vec<_>>(), is_open);
        }
        reader
    }

    #[test]
    fn a_host_is_slow_in_the_rounds_in_which_it_was_and_of_two_none_is() {
        let (even, low, late) = ((100.0, 10.0), (79.0, 10.0), (100.0, 15.1));
        let slow = |reader: &SoakHostsReader| {
            let ranks = reader.by_rank.values();
            ranks.map(|one| one.slow_rounds).collect::<Vec<_>>()
        };
        let rounds: [&[_]; 3] = [&[even, even, low], &[late, even, even], &[even, even, low]];
        assert_eq!(slow(&judged(&rounds, false)), [1, 0, 2]);
        // In an open loop the rate is what was offered.
        assert_eq!(slow(&judged(&rounds, true)), [1, 0, 0]);
        let two: [&[_]; 3] = [&[even, low], &[late, even], &[even, even]];
        let found = judged(&two, false);
        assert_eq!((found.two_differ_rounds, slow(&found).len()), (2, 0));
        assert_eq!(judged(&two, true).two_differ_rounds, 1);
    }
}
