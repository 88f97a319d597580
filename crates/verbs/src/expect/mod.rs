//! `rigel expect`: whether storage keeps what is expected of it.

mod baseline;
mod conclusion;
mod document;
mod of_run;
pub mod plan;
mod profile;
mod request;
pub mod result;
mod stalls;

use crate::{Verb, VerbResult};
pub use baseline::Baseline;
pub(crate) use conclusion::answer;
pub(crate) use document::lines;
pub use of_run::{RunEvidence, expected_by, expected_of};
pub(crate) use plan::STALLS_SEEN_LEAST;
pub use profile::{Expected, Profile, ProfileUsed};
pub use request::ExpectRequest;
pub use result::{ExpectResult, ExpectedLine};
use rigel_analyse::compare::subject::{Scope, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::{BoundVerdict, PointSummary};
use rigel_model::Finding;
use rigel_model::record::journal::{Header, Run};
use rigel_report::answers::{Answers, TestCase};
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use schemars::Schema;

impl Verb for ExpectRequest {
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        Box::new(self.results(run))
    }

    fn terms(&self, _: &Header) -> Vec<Term> {
        vec![
            Term::size(Scope::Small, self.block),
            Term::size(Scope::Large, self.large),
            Term::known("time of all visits", &self.budget),
        ]
    }
}

/// The member of the JSON report that has the results.
const MEMBER: &str = "expect";

impl VerbResult for ExpectResult {
    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn findings_mut(&mut self) -> &mut Vec<Finding> {
        &mut self.findings
    }

    fn points(&self) -> &[PointSummary] {
        &self.points
    }

    fn points_mut(&mut self) -> &mut [PointSummary] {
        &mut self.points
    }

    fn conclusion(&self, header: &Header) -> Conclusion {
        conclusion::conclusion(header, self)
    }

    fn document(&self, run: &Run, findings: Section, frame: Document) -> Document {
        document::document(run, self, findings, frame)
    }

    fn json(&self, report: Reported) -> String {
        report.json_with(MEMBER, self)
    }

    fn schema() -> Schema {
        data::schema_with::<Self>(MEMBER)
    }

    fn answers(&self) -> Option<Answers> {
        let answer = |line: &ExpectedLine| TestCase {
            name: line.condition.to_string(),
            verdict: line.outcome,
            word: result::words(line.outcome),
            said: conclusion::said(line),
            seconds: line.measured_s,
        };
        Some(Answers {
            verb: "expect",
            all: self.lines.iter().map(answer).collect(),
        })
    }

    fn outcome(&self, _: &Header) -> Option<BoundVerdict> {
        Some(self.outcome)
    }
}
