//! Findings about the ranks of a run.

use super::facts::in_words;
use super::host::{HostFigures, HostsAtLoad};
use super::loads::RankLoads;
use crate::figures::quantity::{count, time};
use crate::point::summary::summarise;
use rigel_model::record::journal::Run;
use rigel_model::record::{RankFacts, RankGroup, RankLost};
use rigel_model::{Finding, FindingName};

/// Allowed drift of a clock in parts per million: quartz is within 100, and NTP slews by up to 500.
const DRIFT_MAX_PPM: f64 = 500.0;

/// Allowed difference of wall clocks, in nanoseconds.
const WALL_CLOCK_MAX_NS: u64 = 1_000_000_000;

/// What to do if two hosts differ.
pub(super) const ADD_A_THIRD: &str =
    "with two hosts neither is known to be the slow one: add a third, or exchange them";

/// What to do about a slow host.
pub(super) const COMPARE_IT: &str =
    "compare the host's paths, links and settings with the others'; the sum includes it";

/// All findings about the ranks; `at` is the load at which hosts are compared.
pub(super) fn findings(
    run: &Run,
    group: &RankGroup,
    loads: &RankLoads<'_>,
    at: Option<&HostsAtLoad>,
) -> Vec<Finding> {
    let mut findings = lost(&run.ranks.lost);
    findings.extend(at.and_then(unequal));
    findings.extend(clocks(run, group));
    findings.extend(wall_clocks(group));
    findings.extend(of_hosts(group, loads, at));
    findings
}

/// A finding for each rank that was lost.
pub(super) fn lost(lost: &[RankLost]) -> Vec<Finding> {
    let each = lost.iter().map(|lost| {
        Finding::warning(
            FindingName::RankLost,
            format!(
                "rank {} on {} was lost at {}: {}; the run ended there",
                lost.rank, lost.host, lost.coordinates, lost.how
            ),
            "mend the host, then resume with --resume and the same number of ranks",
        )
    });
    each.collect()
}

/// Names the slow hosts of three or more; says of two that they differ.
fn unequal(at: &HostsAtLoad) -> Option<Finding> {
    let load = at.load();
    if at.two_differ {
        let [one, other] = at.hosts.as_slice() else {
            return None;
        };
        // What one has and the other has not is one difference, seen from both sides.
        return Some(Finding::warning(
            FindingName::Unequal,
            format!(
                "the two hosts differ at {load}: {} does {}; {} does {}{}",
                one.host,
                figures(one),
                other.host,
                figures(other),
                differences(other)
            ),
            ADD_A_THIRD,
        ));
    }
    let slow: Vec<&HostFigures> = at.hosts.iter().filter(|host| host.is_slow).collect();
    let each: Vec<String> = slow
        .iter()
        .map(|host| format!("{} does {}{}", host.host, figures(host), differences(host)))
        .collect();
    let others = at.hosts.len() - slow.len();
    (!slow.is_empty()).then(|| {
        Finding::warning(
            FindingName::Unequal,
            format!(
                "slower than the other {others} hosts at {load}: {}",
                each.join("; ")
            ),
            COMPARE_IT,
        )
    })
}

/// `1,526/s, p99 9.40 ms`.
fn figures(host: &HostFigures) -> String {
    let p99 = host
        .p99_us
        .map_or_else(|| "unknown".into(), |p99| time(p99.value));
    format!("{}/s, p99 {p99}", count(host.iops.value))
}

/// The facts in which a host differs, behind its figures.
fn differences(host: &HostFigures) -> String {
    match in_words(&host.differs_in) {
        found if found.is_empty() => String::new(),
        found => format!(" (it has {found})"),
    }
}

fn clocks(run: &Run, group: &RankGroup) -> Option<Finding> {
    let parts = run.ranks.parts.iter().flat_map(|point| &point.parts);
    let of_parts = parts.map(|part| (part.rank, part.clock));
    let all = group
        .members
        .iter()
        .map(|member| (member.rank, member.clock))
        .chain(of_parts);
    let mut worst: Option<(u32, f64)> = None;
    for (rank, clock) in all {
        if !clock.agreed {
            return Some(Finding::warning(
                FindingName::RankClock,
                format!(
                    "the clock of {} differs from rank 0's by one amount by exchanges of messages, \
                     and by another by barriers",
                    group.label(rank)
                ),
                "the windows of this run may not lie over each other: look for a clock that is \
                 being set, or a virtual machine that was moved",
            ));
        }
        let drift = clock.drift_ppm.abs();
        if drift > DRIFT_MAX_PPM && worst.is_none_or(|(_, most)| drift > most) {
            worst = Some((rank, drift));
        }
    }
    worst.map(|(rank, drift)| {
        Finding::warning(
            FindingName::RankClock,
            format!(
                "the clock of {} drifts by {} ppm from rank 0's",
                group.label(rank),
                count(drift)
            ),
            "rates of that host are wrong by as much: look at its clock source",
        )
    })
}

fn wall_clocks(group: &RankGroup) -> Option<Finding> {
    let ahead = |member: &RankFacts| member.wall_clock_ahead_ns.unsigned_abs();
    let member = group.members.iter().max_by_key(|member| ahead(member))?;
    (ahead(member) > WALL_CLOCK_MAX_NS).then(|| {
        Finding::warning(
            FindingName::WallClock,
            format!(
                "the wall clock of {} differs from rank 0's by {}",
                group.label(member.rank),
                time(ahead(member) as f64 / 1e3)
            ),
            "no figure depends on it, but logs of the hosts cannot be read side by side: \
             synchronise the clocks",
        )
    })
}

/// What the checks of a single host say of each rank, at the load at which hosts are compared: its
/// own caches, counters, CPUs. Each kind once, with the names of the hosts.
fn of_hosts(group: &RankGroup, loads: &RankLoads<'_>, at: Option<&HostsAtLoad>) -> Vec<Finding> {
    let Some(at) = at else {
        return Vec::new();
    };
    let mut all: Vec<(Vec<String>, Finding)> = Vec::new();
    for (rank, record) in loads.parts(at.coordinates) {
        for finding in summarise(&record).findings {
            let host = group.label(rank);
            match all.iter_mut().find(|(_, known)| known.name == finding.name) {
                Some((hosts, _)) if hosts.contains(&host) => {}
                Some((hosts, _)) => hosts.push(host),
                None => all.push((vec![host], finding)),
            }
        }
    }
    let named = |(hosts, finding): (Vec<String>, Finding)| {
        let more = match hosts.len() - 1 {
            0 => String::new(),
            _ => format!(" (also {})", hosts[1..].join(", ")),
        };
        Finding {
            what: format!("on {}: {}{more}", hosts[0], finding.what),
            ..finding
        }
    };
    all.into_iter().map(named).collect()
}
