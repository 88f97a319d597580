//! What one stream of a demand must keep: as given, or, one choice for every command that judges storage
//! by a demand, as assumed. A stream whose latency the database saw must be as fast as it was; other
//! reads, log writes and operations must keep the usual limits; page writes must only be served.

use super::memory::is_of_memory;
use crate::figures::quantity::bound_in_words;
use rigel_model::{
    DemandInterval, DemandKind, DemandStream, Error, Finding, Measure, Nanos, Objective,
    quantile_name, usage,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the operations of one stream of a demand must keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StreamObjective {
    /// The stream.
    pub kind: DemandKind,
    /// The limit on its response times.
    pub objective: Objective,
    /// True if the user did not give it.
    #[serde(default)]
    pub is_assumed: bool,
}

impl fmt::Display for StreamObjective {
    /// `random reads p99<2ms`: the form that [`StreamObjective::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.words(), self.objective)
    }
}

impl FromStr for StreamObjective {
    type Err = Error;

    /// Parses `log writes p99<5ms`, or as one word `log-writes:p99<5ms`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let kinds = DemandKind::ALL.map(DemandKind::words).join(", ");
            usage!(
                "'{text}' is not an objective of a stream",
                "write it as 'random reads p99<2ms' or 'log writes mean<1ms', in quotes; streams: \
                 {kinds}"
            )
        };
        let text = text.trim();
        let (kind, rest) = DemandKind::ALL
            .into_iter()
            .find_map(|kind| {
                let words = kind.words();
                let one_word = words.replace(' ', "-");
                let rest = text.strip_prefix(words).or(text.strip_prefix(&one_word));
                Some((kind, rest?))
            })
            .ok_or_else(wrong)?;
        let limit = rest.trim_start_matches([' ', ':']).trim_end();
        let objective: Objective = limit.parse().map_err(|_| wrong())?;
        if let Measure::Rate(_) = objective.0 {
            return Err(wrong());
        }
        Ok(Self {
            kind,
            objective,
            is_assumed: false,
        })
    }
}

/// `random reads p99 < 2 ms`.
pub fn objective_of_stream(one: &StreamObjective) -> String {
    format!("{} {}", one.kind.words(), objective_in_words(one.objective))
}

/// `p99 < 2 ms`.
pub fn objective_in_words(objective: Objective) -> String {
    let limited = |what: &str, limit: Nanos| format!("{what} < {}", bound_in_words(&limit.exact()));
    match objective.0 {
        Measure::Quantile(quantile, limit) => limited(&quantile_name(quantile), limit),
        Measure::Mean(limit) => limited("mean", limit),
        Measure::Max(limit) => limited("max", limit),
        Measure::Rate(rate) => format!("rate > {rate}"),
    }
}

/// The objective of a stream of this interval where none is given; `None` if it must only be served.
/// `findings` are the doubts about the demand.
pub fn assumed(
    interval: &DemandInterval,
    stream: &DemandStream,
    findings: &[Finding],
) -> Option<StreamObjective> {
    const READS: Nanos = Nanos::from_millis(10);
    const LOG_WRITES: Nanos = Nanos::from_millis(20);
    const OPERATIONS: Nanos = Nanos::from_millis(20);
    // What Exadata's cells answer from flash over RDMA is no bar for other storage.
    let is_exadata = interval.stream(DemandKind::SmartScans).is_some();
    let is_comparable = !is_exadata && !is_of_memory(stream, findings);
    let measure = match stream.mean_us.filter(|_| is_comparable) {
        Some(us) => Measure::Mean(Nanos::from_micros_f64(us.round().max(1.0))),
        None if stream.kind.is_read() => Measure::Quantile(0.99, READS),
        None if stream.kind == DemandKind::LogWrites => Measure::Quantile(0.99, LOG_WRITES),
        None if stream.kind == DemandKind::Operations => Measure::Quantile(0.99, OPERATIONS),
        None => return None,
    };
    Some(StreamObjective {
        kind: stream.kind,
        objective: Objective(measure),
        is_assumed: true,
    })
}

/// Why an objective was assumed.
pub fn why_assumed(objective: Objective) -> &'static str {
    match objective.0 {
        Measure::Mean(_) => "as good as the database saw it",
        _ => "usual, because the demand has no latency that is a bar for this storage",
    }
}

/// `random reads mean < 850 µs (as good as the database saw it)`.
pub fn assumed_in_words(one: &StreamObjective) -> String {
    format!(
        "{} ({})",
        objective_of_stream(one),
        why_assumed(one.objective)
    )
}
