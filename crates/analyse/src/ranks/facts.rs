//! Facts in which one host differs from the others: where to look first when it is slow.

use rigel_model::record::{RankFacts, RankGroup};
use serde::Serialize;

/// Maximum number of differences that are named: the first are the likeliest causes.
const NAMED_MOST: usize = 3;

/// A fact in which a host differs from the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FactDifference {
    /// The fact.
    pub fact: &'static str,
    /// Its value on this host.
    pub here: String,
    /// The most frequent value on the others.
    pub elsewhere: String,
}

/// Facts of a host by name, those that most often explain a slow host first; without those that are
/// not known.
fn facts(of: &RankFacts) -> Vec<(&'static str, String)> {
    let disk = of
        .facts
        .members
        .iter()
        .flat_map(|member| &member.devices)
        .next();
    let text = |value: &str| Some(value.to_string()).filter(|value| !value.is_empty());
    let facts = [
        ("paths", of.paths.map(|paths| paths.to_string())),
        ("MTU", of.mtu.map(|mtu| mtu.to_string())),
        ("CPUs allowed", text(&of.cpu_mask)),
        (
            "CPU quota",
            // Without one is known, too.
            Some(
                of.host
                    .cpu_quota
                    .map_or("none".into(), |cpus| format!("{cpus:.2}")),
            ),
        ),
        ("kernel", text(&of.host.kernel)),
        ("queue depth", disk.map(|disk| disk.requests.to_string())),
        ("scheduler", disk.and_then(|disk| text(&disk.scheduler))),
        ("transport", disk.and_then(|disk| disk.transport.clone())),
        (
            "largest request",
            disk.map(|disk| format!("{} KiB", disk.request_max_kib)),
        ),
        ("CPU", text(&of.host.cpu)),
        (
            "memory",
            Some(of.host.memory.to_string()).filter(|_| of.host.memory.0 > 0),
        ),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// The first facts in which `rank` differs from what most of the other ranks have.
pub(super) fn differences(group: &RankGroup, rank: u32) -> Vec<FactDifference> {
    let Some(here) = group.member(rank) else {
        return Vec::new();
    };
    let others: Vec<_> = group
        .members
        .iter()
        .filter(|one| one.rank != rank)
        .map(facts)
        .collect();
    let mut differences = Vec::new();
    for (fact, value) in facts(here) {
        let elsewhere: Vec<&String> = others
            .iter()
            .filter_map(|facts| facts.iter().find(|(name, _)| *name == fact))
            .map(|(_, value)| value)
            .collect();
        if let Some(usual) = most_frequent(&elsewhere)
            && *usual != value
        {
            differences.push(FactDifference {
                fact,
                here: value,
                elsewhere: usual.clone(),
            });
        }
    }
    differences.truncate(NAMED_MOST);
    differences
}

/// The first of those that occur most often.
fn most_frequent<'a>(values: &[&'a String]) -> Option<&'a String> {
    let count = |wanted: &String| values.iter().filter(|value| **value == wanted).count();
    let most = values.iter().map(|value| count(value)).max()?;
    values.iter().copied().find(|value| count(value) == most)
}

/// The differences in words; empty if there are none.
pub(super) fn in_words(found: &[FactDifference]) -> String {
    let each =
        |one: &FactDifference| format!("{} {} instead of {}", one.fact, one.here, one.elsewhere);
    found.iter().map(each).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Host;

    fn member(rank: u32, paths: Option<u32>, kernel: &str) -> RankFacts {
        RankFacts {
            rank,
            paths,
            host: Host {
                kernel: kernel.into(),
                ..Host::default()
            },
            ..RankFacts::default()
        }
    }

    #[test]
    fn a_host_is_told_apart_by_what_most_others_have() {
        let members = vec![
            member(0, Some(4), "6.1"),
            member(1, Some(2), "6.1"),
            member(2, Some(4), "5.15"),
            member(3, Some(4), "6.1"),
        ];
        let group = RankGroup {
            members,
            ..RankGroup::default()
        };
        assert_eq!(in_words(&differences(&group, 1)), "paths 2 instead of 4");
        assert_eq!(
            in_words(&differences(&group, 2)),
            "kernel 5.15 instead of 6.1"
        );
        assert_eq!(differences(&group, 0), []);
        assert_eq!(
            differences(&group, 9),
            [],
            "a rank that the header does not have"
        );
    }

    #[test]
    fn what_is_unknown_is_no_difference() {
        let members = vec![member(0, None, "6.1"), member(1, Some(2), "6.1")];
        let group = RankGroup {
            members,
            ..RankGroup::default()
        };
        assert_eq!(
            (differences(&group, 0), differences(&group, 1)),
            (vec![], vec![])
        );
    }
}
