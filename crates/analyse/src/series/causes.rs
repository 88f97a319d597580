//! Causes of failed operations and broken rounds in a series, each with its count and its first and
//! last date.

use super::rounds::{Round, RoundEnd};
use rigel_model::record::PointRecord;
use rigel_model::{Finding, FindingName, Moment};
use std::collections::BTreeMap;

/// Maximum number of distinct causes of each kind. Later ones count as "other causes", so that
/// memory does not grow.
const CAUSES_MOST: usize = 20;
const OTHERS: &str = "other causes";

/// What went wrong in the rounds of a series, by cause.
#[derive(Debug, Clone, Default)]
pub struct Causes {
    failed: BTreeMap<String, Seen>,
    broken: BTreeMap<String, Seen>,
}

/// How often a cause was seen, and when first and last.
#[derive(Debug, Clone, Copy)]
struct Seen {
    count: u64,
    first: Moment,
    last: Moment,
}

impl Causes {
    /// Adds the failures of a round; `record` is the record the round was made from.
    pub fn add(&mut self, round: &Round, record: &PointRecord) {
        if let RoundEnd::Broken(why) = &round.end {
            see(&mut self.broken, why, 1, round.begin);
        }
        // Only the first class counts, as in the round itself.
        let stream = record.streams.first().filter(|_| round.failed > 0);
        for (cause, count) in stream
            .map(|stream| stream.total().failed)
            .into_iter()
            .flatten()
        {
            see(&mut self.failed, &cause, count, round.begin);
        }
    }

    /// All causes, as warnings for the reader.
    pub fn findings(&self) -> Vec<Finding> {
        let sorts = [
            (
                FindingName::Failures,
                "operations failed",
                &self.failed,
                "see the log of the kernel (dmesg), the device or the database; the figures are \
                 for the other operations",
            ),
            (
                FindingName::BrokenRounds,
                "broken rounds",
                &self.broken,
                "check what happened to the target at that time",
            ),
        ];
        let sorts = sorts
            .into_iter()
            .filter(|(_, _, causes, _)| !causes.is_empty());
        sorts
            .map(|(name, what, causes, hint)| {
                Finding::warning(name, format!("{what}: {}", listed(causes)), hint)
            })
            .collect()
    }
}

fn see(causes: &mut BTreeMap<String, Seen>, cause: &str, count: u64, at: Moment) {
    let cause = if causes.contains_key(cause) || causes.len() < CAUSES_MOST {
        cause
    } else {
        OTHERS
    };
    let seen = causes.entry(cause.to_string()).or_insert(Seen {
        count: 0,
        first: at,
        last: at,
    });
    seen.count += count;
    seen.last = at;
}

/// `900 x SQLSTATE 42P01, 2026-03-01 02:00 to 2026-03-01 09:00`, the most frequent first.
fn listed(causes: &BTreeMap<String, Seen>) -> String {
    let mut causes: Vec<_> = causes.iter().collect();
    causes.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.count));
    let words = |(cause, Seen { count, first, last }): (&String, &Seen)| {
        let until = if first == last {
            String::new()
        } else {
            format!(" to {}", last.short())
        };
        format!("{count} x {cause} ({}{until})", first.short())
    };
    causes.into_iter().map(words).collect::<Vec<_>>().join("; ")
}
