//! The parts of a conclusion: the answer, what objects to it, and the warnings that it names.

use crate::figures::quantity;
use crate::point::summary::PointSummary;
use crate::search::run_checks::is_throttled;
use crate::search::shape::CurveShape;
use rigel_model::record::journal::Header;
use rigel_model::{Finding, FindingName, Severity};
use serde::Serialize;
use std::fmt::Write;

/// The answer of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Conclusion {
    /// Its rating.
    pub status: Status,
    /// A sentence or two.
    pub sentence: String,
}

/// The rating of a conclusion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
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

/// What a conclusion adds to the main sentence.
#[derive(Default)]
pub struct Objections {
    /// A property of the storage that the reader must know: a throttle, a long tail.
    pub caution: Option<String>,
    /// A bound that was not kept, or operations that failed.
    pub failure: Option<String>,
}

impl Objections {
    /// Builds the conclusion: `found`, then the objections, then the first warning. `warnings` must
    /// be in order of importance.
    pub fn conclude(&self, found: &str, warnings: &[&Finding]) -> Conclusion {
        let mut sentence = found.to_string();
        for objection in [&self.caution, &self.failure].into_iter().flatten() {
            let _ = write!(sentence, " {objection}");
        }
        let mut kinds: Vec<&Finding> = Vec::new();
        for finding in warnings {
            if kinds.iter().all(|known| known.name != finding.name) {
                kinds.push(finding);
            }
        }
        let more = match kinds.len() {
            0 | 1 => String::new(),
            2 => " There is one more warning.".into(),
            kinds => format!(" There are {} more warnings.", kinds - 1),
        };
        if found.is_empty() {
            sentence = sentence.trim_start().to_string();
        }
        let objected = self.caution.is_some() || self.failure.is_some();
        match kinds.first() {
            Some(first) => {
                let same = warnings
                    .iter()
                    .filter(|finding| finding.name == first.name)
                    .count()
                    - 1;
                let others = if same > 0 {
                    format!(", and {same} more of this kind")
                } else {
                    String::new()
                };
                let _ = write!(
                    sentence,
                    " Warning: {}{others}.{more}",
                    first.what.trim_end_matches('.')
                );
            }
            None if !objected => sentence.push_str(" No check of the run raised a warning."),
            None => {}
        }
        let status = match (&self.failure, kinds.is_empty() && self.caution.is_none()) {
            (Some(_), _) => Status::Bad,
            (None, false) => Status::Warning,
            (None, true) => Status::Good,
        };
        Conclusion { status, sentence }
    }
}

/// The warnings that a conclusion names: first those of the run as a whole, then those of its
/// points, then those of the checks before the run. Failed operations are left out, as they have a
/// sentence of their own.
pub fn warnings<'a>(
    header: &'a Header,
    of_run: &'a [Finding],
    points: &'a [PointSummary],
) -> Vec<&'a Finding> {
    let of_points = points.iter().flat_map(|point| &point.findings);
    let all = of_run.iter().chain(of_points).chain(&header.findings);
    all.filter(|finding| finding.severity != Severity::Note && !finding.is(FindingName::Failures))
        .collect()
}

/// The sentence of finding `cap` if the cap is a throttle; a fully busy device is normal.
pub fn throttle(
    findings: &[Finding],
    points: &[PointSummary],
    shape: &CurveShape,
) -> Option<String> {
    if is_throttled(points, shape) {
        sentence_of(FindingName::Cap, findings)
    } else {
        None
    }
}

/// The finding of this name as a sentence.
pub fn sentence_of(name: FindingName, findings: &[Finding]) -> Option<String> {
    let finding = findings.iter().find(|finding| finding.is(name))?;
    Some(format!("{}.", quantity::capital(&finding.what)))
}

/// Says that I/Os failed, if any did.
pub fn failures(points: &[PointSummary]) -> Option<String> {
    let failed = points
        .iter()
        .flat_map(|point| &point.findings)
        .find(|finding| finding.is(FindingName::Failures))?;
    Some(format!("I/Os failed: {}.", failed.what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_names_what_a_reader_must_know() {
        let warning = Finding::warning(FindingName::Cap, "a warning", "a hint");
        let none = Objections::default();
        assert_eq!(none.conclude("It is.", &[]).status, Status::Good);
        let found = none.conclude("It is.", &[&warning, &warning]);
        assert_eq!(
            (found.status, found.sentence.as_str()),
            (
                Status::Warning,
                "It is. Warning: a warning, and 1 more of this kind."
            )
        );
        let other = Finding::warning(FindingName::Drift, "another", "a hint");
        assert!(
            none.conclude("It is.", &[&warning, &other])
                .sentence
                .ends_with("There is one more warning.")
        );
        let caution = Objections {
            caution: Some("Mind it.".into()),
            failure: None,
        };
        assert_eq!(caution.conclude("It is.", &[]).status, Status::Warning);
        let failure = Objections {
            caution: None,
            failure: Some("It broke.".into()),
        };
        assert_eq!(failure.conclude("It is.", &[&warning]).status, Status::Bad);
    }
}
