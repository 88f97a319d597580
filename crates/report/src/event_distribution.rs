//! The distributions of waits of a listing: every event with its percentiles and modes, and the
//! buckets of each.

use super::columns::TableOf;
use super::document::{Block, Section};
use super::parts;
use rigel_analyse::{DatabaseResult, EventDistribution, bound_of_bucket, modes};

/// Events whose buckets are in the summary; those of the others are in the full report.
const LISTED_MAX: usize = 12;

/// The sections of the events; none if the files have more than distributions.
pub(super) fn sections(result: &DatabaseResult) -> Vec<Section> {
    let all = &result.distributions;
    if all.is_empty() {
        return Vec::new();
    }
    let caption = "Waits of every event; percentiles by the bound of their bucket";
    let table = TableOf::of(caption, all)
        .text("event", |one| name(one))
        .count("waits", |one| one.waits)
        .number("p50", |one| one.bound_of(0.5))
        .number("p90", |one| one.bound_of(0.9))
        .on_page()
        .number("p99", |one| one.bound_of(0.99))
        .number("p99.9", |one| one.bound_of(0.999))
        .on_page()
        .number("longest", |one| one.bound_of(1.0))
        .text("modes", |one| modes::in_words(&one.modes, bound_of_bucket))
        .on_page()
        .block();
    let lead = "As the view counts them. A mode is a part around a maximum of the share, cut where \
                the share is least.";
    let events = parts::section("events", "Distribution of waits", lead, vec![table]);
    // Where nothing else is known, they are the answer.
    let mut sections = vec![if result.has_streams() {
        events
    } else {
        parts::on_screen(events)
    }];
    let (first, others) = all.split_at(all.len().min(LISTED_MAX));
    let tables = |all: &[EventDistribution]| all.iter().map(buckets).collect::<Vec<Block>>();
    sections.push(parts::section(
        "event-buckets",
        "Buckets",
        "",
        tables(first),
    ));
    if !others.is_empty() {
        sections.push(parts::section(
            "more-event-buckets",
            "Buckets of the other events",
            "",
            tables(others),
        ));
    }
    sections
}

fn name(one: &EventDistribution) -> String {
    one.container.as_ref().map_or_else(
        || one.event.clone(),
        |container| format!("{}, {container}", one.event),
    )
}

fn buckets(one: &EventDistribution) -> Block {
    let caption = format!(
        "{}: {}",
        name(one),
        modes::in_words(&one.modes, bound_of_bucket)
    );
    TableOf::of(&caption, &one.buckets)
        .text("bucket", |bucket| match bucket.high_us {
            Some(high) => format!("up to {}", bound_of_bucket(high)),
            None => format!("above {}", bound_of_bucket(bucket.low_us)),
        })
        .count("waits", |bucket| bucket.count)
        .percent("share", |bucket| bucket.share)
        .percent("cumulated", |bucket| bucket.cumulated)
        .block()
}
