//! The parts of a conclusion: the answer, what objects to it, and what decides it.

use super::trust::{RunTrust, TrustLevel};
use crate::figures::quantity;
use crate::point::summary::PointSummary;
use crate::search::run_checks::is_throttled;
use crate::search::shape::CurveShape;
use rigel_model::{Finding, FindingName};
use rigel_stats::verdict::BoundVerdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// The answer of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Conclusion {
    /// Its rating.
    pub status: Status,
    /// A sentence or two.
    pub sentence: String,
}

/// The rating of a conclusion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No objection.
    Good,
    /// Neither good nor bad.
    #[default]
    Plain,
    /// There are warnings.
    Warning,
    /// A bound was not kept, or something failed.
    Bad,
}

impl Conclusion {
    /// The same with the rating that the trust in its figures allows.
    #[must_use]
    pub fn under(self, trust: &RunTrust) -> Self {
        let status = match (self.status, trust.level) {
            (status, TrustLevel::Good | TrustLevel::NotChecked) => status,
            (Status::Bad, _) | (_, TrustLevel::DoNotUse) => Status::Bad,
            (_, TrustLevel::WithCare) => Status::Warning,
        };
        Self { status, ..self }
    }

    /// A conclusion of which only the outcome is known.
    pub fn of_outcome(outcome: BoundVerdict) -> Self {
        let good = Self {
            status: Status::Good,
            ..Self::default()
        };
        good.with_outcome(outcome)
    }

    /// The same with the rating of this outcome: what is not met, or was not measured, is bad.
    #[must_use]
    pub fn with_outcome(self, outcome: BoundVerdict) -> Self {
        let status = match outcome {
            BoundVerdict::Broken | BoundVerdict::NotMeasured => Status::Bad,
            BoundVerdict::Undecided if self.status != Status::Bad => Status::Warning,
            BoundVerdict::Undecided | BoundVerdict::Kept => self.status,
        };
        Self { status, ..self }
    }
}

/// How much longer would decide what is undecided, in a few words: `5 minutes more`. `None` if it is
/// unknown, or longer than a day.
pub fn time_to_decide(more_s: Option<f64>) -> Option<String> {
    const SAID_LEAST_S: f64 = 1.0;
    const SAID_MOST_S: f64 = 86_400.0;
    let more = more_s.filter(|more| *more <= SAID_MOST_S)?;
    let length = quantity::rounded_length(more.max(SAID_LEAST_S).round());
    Some(format!("{length} more"))
}

/// What a conclusion says besides the answer.
#[derive(Default)]
pub struct Objections {
    /// A property of the storage that the reader must know.
    pub caution: Option<String>,
    /// A bound that was not kept, or operations that failed.
    pub failure: Option<String>,
}

impl Objections {
    /// Builds the conclusion: what failed, then the answer, then what decides it. `findings` are those
    /// of the run as a whole.
    pub fn conclude(self, answer: &str, findings: &[Finding]) -> Conclusion {
        let decisive = decisive(findings);
        let status = match (
            &self.failure,
            self.caution.is_some() || !decisive.is_empty(),
        ) {
            (Some(_), _) => Status::Bad,
            (None, true) => Status::Warning,
            (None, false) => Status::Good,
        };
        let answer = (!answer.is_empty()).then(|| answer.to_string());
        let sentences = self.failure.into_iter().chain(answer).chain(self.caution);
        let sentences: Vec<String> = sentences.chain(decisive).collect();
        Conclusion {
            status,
            sentence: sentences.join(" "),
        }
    }
}

/// What decides about the figures wherever it is found: a cache that answered, stalls, burst credit,
/// storage that does not answer.
pub(super) fn decisive(findings: &[Finding]) -> Vec<String> {
    let what = |name: FindingName| {
        let finding = findings.iter().find(|finding| finding.is(name));
        finding.map(|finding| finding.what.as_str())
    };
    let mut sentences = Vec::new();
    if what(FindingName::CacheSuspected).is_some() {
        sentences
            .push("A cache may have answered: half of the reads are too fast for a disk.".into());
    } else if what(FindingName::Cache).is_some() {
        sentences.push("A cache answered some of the reads: without it they take longer.".into());
    }
    if let Some(stall) = what(FindingName::Stall) {
        // How often and how long all I/O stood still stands behind the longest operation.
        let stall = stall.rsplit("; ").next().unwrap_or(stall);
        sentences.push(format!("{}.", quantity::capital(stall)));
    }
    for name in [FindingName::BurstCredit, FindingName::EndedInStall] {
        sentences.extend(what(name).map(|what| format!("{}.", quantity::capital(what))));
    }
    sentences
}

/// Why throughput does not grow with the load, as a clause; empty if no limit is known, or if a cache
/// answered.
pub fn limit(points: &[PointSummary], shape: &CurveShape, findings: &[Finding]) -> &'static str {
    let is_cache =
        |one: &Finding| one.is(FindingName::Cache) || one.is(FindingName::CacheSuspected);
    match shape.cap.filter(|_| !findings.iter().any(is_cache)) {
        None => "",
        Some(_) if is_throttled(points, shape) => ": a throttle holds it there",
        Some(_) => ": a configured limit, or the whole device in use",
    }
}

/// Says how many I/Os failed and why, if any did, and that the figures leave them out.
pub fn failures(points: &[PointSummary]) -> Option<String> {
    failed(points, "the figures are for the others")
}

/// Says how many I/Os failed and why, if any did, and what follows for the figures.
pub fn failed(points: &[PointSummary], so: &str) -> Option<String> {
    let classes = || points.iter().flat_map(|point| &point.classes);
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, count) in classes().flat_map(|class| &class.failed) {
        *causes.entry(cause).or_default() += count;
    }
    let failed: u64 = causes.values().sum();
    let (first, _) = causes.iter().max_by_key(|(_, count)| **count)?;
    let all = failed + classes().map(|class| class.done).sum::<u64>();
    let more = match causes.len() - 1 {
        0 => String::new(),
        more => format!(" and {}", quantity::counted(more as u64, "other cause")),
    };
    if failed == all {
        let all = quantity::counted(all, "I/O");
        return Some(format!("All of {all} failed ({first}{more})."));
    }
    Some(format!(
        "Of {}, {} failed ({first}{more}); {so}.",
        quantity::counted(all, "I/O"),
        quantity::count(failed as f64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_says_what_failed_first_and_what_decides_last() {
        let cap = Finding::note(FindingName::Cap, "a cap");
        let good = Objections::default().conclude("It is.", std::slice::from_ref(&cap));
        assert_eq!(
            (good.status, good.sentence.as_str()),
            (Status::Good, "It is.")
        );
        let stall = Finding::warning(
            FindingName::Stall,
            "at depth 1 an operation took 1 s; all I/O stalled 24 times",
            "a hint",
        );
        let all = Objections {
            caution: Some("Mind it.".into()),
            failure: Some("It broke.".into()),
        };
        let bad = all.conclude("It is.", &[cap, stall]);
        assert_eq!(
            (bad.status, bad.sentence.as_str()),
            (
                Status::Bad,
                "It broke. It is. Mind it. All I/O stalled 24 times."
            )
        );
    }

    #[test]
    fn doubtful_figures_are_no_good_news() {
        let rated = |status, level| {
            let trust = RunTrust {
                level,
                ..RunTrust::default()
            };
            Conclusion {
                status,
                ..Conclusion::default()
            }
            .under(&trust)
            .status
        };
        assert_eq!(rated(Status::Good, TrustLevel::Good), Status::Good);
        assert_eq!(rated(Status::Good, TrustLevel::WithCare), Status::Warning);
        assert_eq!(rated(Status::Bad, TrustLevel::WithCare), Status::Bad);
        assert_eq!(rated(Status::Plain, TrustLevel::DoNotUse), Status::Bad);
    }
}
