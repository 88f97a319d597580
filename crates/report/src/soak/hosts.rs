//! The section about the hosts of a soak: what each did in all rounds, and when it was slow.

use super::super::columns::TableOf;
use super::super::document::{Block, Section};
use super::super::{parts, ranks};
use rigel_analyse::{SoakHost, SoakHosts};

/// The section.
pub(super) fn section(found: &SoakHosts) -> Section {
    let mut blocks = vec![Block::Text(ranks::counted(
        (found.ranks, found.hosts),
        &found.names,
        &found.lost,
    ))];
    let caption = match found.rounds {
        1 => "Each host, in the round that all of them completed".to_string(),
        rounds => format!("Each host, in the {rounds} rounds that all of them completed"),
    };
    blocks.push(hosts(&caption, &found.by_host));
    blocks.push(Block::Text(what_slow_means(found)));
    blocks.push(Block::Text(ranks::NOT_ASKED.into()));
    parts::section("hosts", "The hosts", ranks::lead(found.is_separate), blocks)
}

fn hosts(caption: &str, hosts: &[SoakHost]) -> Block {
    TableOf::of(caption, hosts)
        .text("host", |host| host.host.clone())
        .count("operations", |host| host.operations as f64)
        .count("op/s", |host| host.rate_per_s)
        .percent("share", |host| host.share)
        .time("p50, all rounds", |host| host.p50_us)
        .on_page()
        .time("p99, all rounds", |host| host.p99_us)
        .count("slow rounds", |host| f64::from(host.slow_rounds))
        .count("lost rounds", |host| f64::from(host.lost_rounds))
        .block()
}

/// What makes a round one in which a host was slow.
fn what_slow_means(hosts: &SoakHosts) -> String {
    match hosts.by_host.len() {
        2 => format!(
            "With two hosts neither is known to be the slow one. They differed in {} of {} rounds: \
             in rate by a fifth, or in p99 by half.",
            hosts.two_differ_rounds, hosts.rounds
        ),
        _ => {
            "A host is slow in a round if its rate is below 80 % of the hosts' median, or its p99 \
              above 150 %; at an offered rate only the p99 counts."
                .into()
        }
    }
}
