//! The distributions of waits of a listing: every event with its percentiles and modes, and the
//! buckets of each.

use super::columns::TableOf;
use super::document::{Block, Section};
use super::parts;
use rigel_analyse::{DatabaseResult, EventDistribution, modes};

/// Events whose buckets are in the summary; those of the others are in the full report.
const LISTED_MAX: usize = 12;

/// The sections of the events; none if the files have more than distributions.
pub(super) fn sections(result: &DatabaseResult) -> Vec<Section> {
    let all = &result.distributions;
    if all.is_empty() {
        return Vec::new();
    }
    let caption = "Waits of every event; percentiles are interpolated within their buckets";
    let table = TableOf::of(caption, all)
        .text("event", |one| name(one))
        .count("waits", |one| one.waits)
        .number("p50", |one| quantile(one, 0.5, one.p50_us))
        .number("p90", |one| quantile(one, 0.9, one.p90_us))
        .number("p99", |one| quantile(one, 0.99, one.p99_us))
        .number("p99.9", |one| quantile(one, 0.999, one.p999_us))
        .on_page()
        .text("modes", |one| modes::in_words(&one.modes))
        .block();
    let lead = "As the view counts them. A mode is a part around a maximum of the share, cut where \
                the share is least.";
    let mut sections = vec![parts::section(
        "events",
        "Distribution of waits",
        lead,
        vec![table],
    )];
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

/// A quantile, or the bound of the first bucket, which begins at 0.
fn quantile(one: &EventDistribution, share: f64, us: Option<f64>) -> String {
    let bound = || one.bucket_of(share).and_then(|bucket| bucket.high_us);
    us.map(parts::time)
        .or_else(|| Some(format!("< {}", parts::time(bound()?))))
        .unwrap_or_else(|| "-".into())
}

fn buckets(one: &EventDistribution) -> Block {
    let caption = format!("{}: {}", name(one), modes::in_words(&one.modes));
    TableOf::of(&caption, &one.buckets)
        .text("bucket", |bucket| match bucket.high_us {
            Some(high) => format!("up to {}", parts::time(high)),
            None => format!("above {}", parts::time(bucket.low_us)),
        })
        .count("waits", |bucket| bucket.count)
        .percent("share", |bucket| bucket.share)
        .percent("cumulated", |bucket| bucket.cumulated)
        .block()
}
