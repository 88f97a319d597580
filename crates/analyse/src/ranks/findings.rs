//! Findings about the ranks of a run.

use super::facts::in_words;
use super::host::{HostFigures, HostsAtLoad};
use super::loads::RankLoads;
use crate::figures::quantity::{count, time};
use crate::point::stalls::StallExtent;
use crate::point::summary::summarise;
use crate::search::run_checks::{SEE_THE_LOGS, at_more_points, is_stalled};
use rigel_model::record::journal::Run;
use rigel_model::record::{
    PointRecord, RankFacts, RankGroup, RankLost, RankRecord, RankedPoint, StreamRecord,
};
use rigel_model::{Finding, FindingName, Nanos};

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
    findings.extend(stalled(&run.ranks.parts, &run.points, group));
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

/// A point in which an operation took far longer than its p99.
struct LongOperation<'a> {
    took_us: f64,
    p99_us: f64,
    class: &'a str,
    point: &'a RankedPoint,
    merged: &'a PointRecord,
}

impl<'a> LongOperation<'a> {
    /// The longest operation of a point, if it took long enough.
    fn of(point: &'a RankedPoint, merged: &'a PointRecord) -> Option<Self> {
        let streams = merged.streams.iter().filter_map(|stream| {
            let p99 = stream.total().response.histogram.quantile(0.99)?;
            let took_us = longest_ns(&point.parts, &stream.name).max()? as f64 / 1e3;
            Some((took_us, p99.middle() / 1e3, &*stream.name))
        });
        let (took_us, p99_us, class) = streams.max_by(|one, other| one.0.total_cmp(&other.0))?;
        is_stalled(took_us, p99_us).then_some(Self {
            took_us,
            p99_us,
            class,
            point,
            merged,
        })
    }

    /// On which hosts, and whether all their I/O stalled; and what to do.
    fn extent(&self, group: &RankGroup) -> (String, &'static str) {
        // Storage that stalls holds operations of all hosts for about as long.
        let is_as_long = |part: &&RankRecord| {
            let mut own = longest_ns(std::slice::from_ref(*part), self.class);
            own.any(|longest| longest as f64 / 1e3 >= self.took_us / 2.0)
        };
        let hosts: Vec<&RankRecord> = self.point.parts.iter().filter(is_as_long).collect();
        if hosts.len() == self.point.parts.len() {
            let extent = StallExtent::of(self.merged, self.class, self.took_us);
            return (format!("{}, on all hosts", extent.words()), SEE_THE_LOGS);
        }
        let names: Vec<String> = hosts.iter().map(|part| group.label(part.rank)).collect();
        let went_on = |part: &&RankRecord| {
            StallExtent::of(&part.record, self.class, self.took_us) == StallExtent::Others
        };
        let names = names.join(" and ");
        if hosts.iter().any(went_on) {
            return (format!(" on {names}, while others completed"), SEE_THE_LOGS);
        }
        (
            format!(" on {names} alone: the other hosts went on"),
            "look at that host first, not at the storage: its CPUs, its paths and links, a pause \
             of its virtual machine",
        )
    }
}

/// The longest operation of a class on each rank, in nanoseconds.
fn longest_ns<'a>(parts: &'a [RankRecord], class: &'a str) -> impl Iterator<Item = u64> + 'a {
    let streams = parts
        .iter()
        .filter_map(move |part| part.record.stream(class));
    streams.map(StreamRecord::longest)
}

/// Names the hosts on which the longest operation of the run stalled.
fn stalled(points: &[RankedPoint], sums: &[PointRecord], group: &RankGroup) -> Option<Finding> {
    let long = points
        .iter()
        .filter_map(|point| LongOperation::of(point, sums.get(point.at)?));
    let long: Vec<LongOperation<'_>> = long.collect();
    let worst = long
        .iter()
        .max_by(|one, other| one.took_us.total_cmp(&other.took_us))?;
    let (extent, hint) = worst.extent(group);
    Some(Finding::warning(
        FindingName::Stall,
        format!(
            "at {} an operation took {}, {} times the p99 there{}{extent}",
            worst.merged.coordinates,
            Nanos::from_micros_f64(worst.took_us),
            count((worst.took_us / worst.p99_us).round()),
            at_more_points(long.len() - 1),
        ),
        hint,
    ))
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

/// True for other load on the device of a host that has several ranks: it is that of the others, and
/// their samples are of other moments than this rank's, so the load cannot be subtracted.
fn is_of_own_ranks(group: &RankGroup, rank: u32, finding: &Finding) -> bool {
    let boot_of = |member: &RankFacts| member.boot_id.clone();
    let own = group.member(rank).map(boot_of);
    let of_host = group.members.iter().map(boot_of);
    finding.is(FindingName::DeviceLoad)
        && of_host.filter(|boot| Some(boot) == own.as_ref()).count() > 1
}

/// What the checks of a single host say of each rank, at the load at which hosts are compared: its
/// own caches, counters, CPUs. Each kind once, with the names of the hosts.
fn of_hosts(group: &RankGroup, loads: &RankLoads<'_>, at: Option<&HostsAtLoad>) -> Vec<Finding> {
    let Some(at) = at else {
        return Vec::new();
    };
    let mut all: Vec<(Vec<String>, Finding)> = Vec::new();
    for (rank, record) in loads.parts(at.coordinates) {
        let mut findings = summarise(&record).findings;
        findings.retain(|finding| !is_of_own_ranks(group, rank, finding));
        for finding in findings {
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

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Ratio;
    use rigel_model::record::ranks::merged;
    use rigel_model::record::{RankClock, Window};

    /// Three hosts, of which those in `frozen` have an operation of five seconds, during which they
    /// completed nothing else if `is_all`.
    fn stalled_on(frozen: &[u32], is_all: bool) -> Finding {
        let part = |rank: u32| {
            let mut record = crate::examples::sessions(Ratio::ZERO);
            let windows = &mut record.streams[0].kinds[0].windows;
            for window in windows.iter_mut() {
                (window.response.min, window.response.max) = (40_000_000, 40_000_000);
            }
            if frozen.contains(&rank) {
                for _ in 0..if is_all { 4 } else { 1 } {
                    windows[2].done += 1;
                    windows[2].response.record(Nanos::from_secs(5));
                }
                if is_all {
                    windows[3..7].fill(Window::default());
                }
            }
            RankRecord {
                rank,
                clock: RankClock {
                    agreed: true,
                    ..RankClock::default()
                },
                began: Nanos::from_secs(1),
                record,
            }
        };
        let parts: Vec<RankRecord> = (0..3).map(part).collect();
        let merged = merged(String::new(), &parts).unwrap();
        let names = ["h1", "h2", "h3"].map(|name| RankFacts {
            rank: name.as_bytes()[1].wrapping_sub(b'1').into(),
            host: rigel_model::Host {
                name: name.into(),
                ..rigel_model::Host::default()
            },
            ..RankFacts::default()
        });
        let group = RankGroup {
            members: names.to_vec(),
            ..RankGroup::default()
        };
        stalled(&[RankedPoint { at: 0, parts }], &[merged], &group).unwrap()
    }

    #[test]
    fn several_ranks_of_a_host_are_no_other_load_of_its_device() {
        let member = |(rank, boot): (u32, &str)| RankFacts {
            rank,
            boot_id: boot.into(),
            ..RankFacts::default()
        };
        let members = [(0, "a"), (1, "b"), (2, "a")].map(member);
        let group = RankGroup {
            members: members.to_vec(),
            ..RankGroup::default()
        };
        let is_left_out = |name: FindingName| {
            let finding = Finding::warning(name, "", "");
            [0, 1, 2].map(|rank| is_of_own_ranks(&group, rank, &finding))
        };
        assert_eq!(is_left_out(FindingName::DeviceLoad), [true, false, true]);
        assert_eq!(is_left_out(FindingName::NotFromDevice), [false; 3]);
    }

    #[test]
    fn a_host_on_which_all_stalled_alone_is_named_and_looked_at_first() {
        let found = stalled_on(&[2], true);
        assert!(
            found
                .what
                .ends_with(" on h3 alone: the other hosts went on"),
            "{}",
            found.what
        );
        assert!(!found.what.contains("all I/O stalled"), "{}", found.what);
        assert!(found.hint.starts_with("look at that host first"));
    }

    #[test]
    fn a_stall_of_all_hosts_is_one_of_the_storage() {
        let found = stalled_on(&[0, 1, 2], true);
        assert!(
            found.what.ends_with(": all I/O stalled, on all hosts"),
            "{}",
            found.what
        );
        assert_eq!(found.hint, SEE_THE_LOGS);
    }

    #[test]
    fn one_long_operation_on_a_host_that_went_on_is_one_of_the_storage() {
        let found = stalled_on(&[1], false);
        assert!(
            found.what.ends_with(" on h2, while others completed"),
            "{}",
            found.what
        );
        assert_eq!(found.hint, SEE_THE_LOGS);
    }
}
