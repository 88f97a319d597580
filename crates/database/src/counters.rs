//! Counters and processes of several servers together, and a check of their caches.

use rigel_model::{Finding, FindingName, ServerFacts, ServerSample};

/// The processes of all servers, without duplicates. Empty if any server is not on this machine:
/// counters of some servers cannot be compared with the total.
pub(super) fn all_or_none(processes: impl Iterator<Item = Option<u32>>) -> Vec<u32> {
    let mut processes = processes.collect::<Option<Vec<u32>>>().unwrap_or_default();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// Warns if the tables (nearly) fit into the server's own cache, which it calls `name`.
pub(super) fn cache_warning(facts: &ServerFacts, name: &str) -> Option<Finding> {
    let (tables, cache) = (facts.tables?.bytes(), facts.buffer_cache);
    (tables.0 < cache.0 * 2).then(|| {
        Finding::warning(
            FindingName::BufferCache,
            format!("the tables have {tables} and the {name} {cache}: it serves most of the reads"),
            "load larger tables (--scale), unless you want to measure logical reads",
        )
    })
}

/// Warns of each setting, given with what makes commits durable, that is not so.
pub(super) fn less_durable(facts: &ServerFacts, wanted: &[(&str, &str)]) -> Vec<Finding> {
    let setting = |name: &str| facts.settings.get(name).map_or("", String::as_str);
    let differs = |(name, wanted): &&(&str, &str)| setting(name) != *wanted;
    let warning = |(name, wanted): &(&str, &str)| {
        Finding::warning(
            FindingName::NotDurable,
            format!(
                "{name} is {} on the server: its commits are less durable than those of other servers",
                setting(name)
            ),
            format!("set {name} = {wanted} before comparing commits with those of another server"),
        )
    };
    wanted.iter().filter(differs).map(warning).collect()
}

/// Sum of the counters of all servers; `None` if one of them does not answer.
pub(super) fn sum_of_all(
    mut samples: impl Iterator<Item = Option<ServerSample>>,
) -> Option<ServerSample> {
    let first = samples.next()??;
    samples.try_fold(first, |sum, next| Some(sum_of(sum, &next?)))
}

/// Sum of the counters of two servers; a counter that one of them does not report is `None`.
fn sum_of(mut sum: ServerSample, other: &ServerSample) -> ServerSample {
    let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    sum.visited = add(sum.visited, other.visited);
    sum.logical = add(sum.logical, other.logical);
    sum.physical = add(sum.physical, other.physical);
    sum.read_time = sum.read_time.zip(other.read_time).map(|(a, b)| a.plus(b));
    sum.written = add(sum.written, other.written);
    sum.log_bytes = add(sum.log_bytes, other.log_bytes);
    sum.log_syncs = add(sum.log_syncs, other.log_syncs);
    sum.commits = add(sum.commits, other.commits);
    for (event, count) in &other.waits {
        *sum.waits.entry(event.clone()).or_default() += count;
    }
    sum.looks = sum.looks.max(other.looks);
    sum
}
