//! `rigel duet`: which of two or more is faster, measured in turn within one run.

mod conclusion;
mod document;
mod plan;
mod request;
mod result;
mod rounds;

use crate::{Verb, VerbResult};
pub use request::{DuetArm, DuetRequest, SERVER_BIN};
pub use result::{ArmResult, Compared, DuetResult};
use rigel_analyse::compare::subject::Term;
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::{BoundVerdict, PointSummary, Sight, SightReader};
use rigel_model::record::PointRecord;
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Finding, PrivateServer};
use rigel_report::answers::Answers;
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
pub use rounds::{DuetAnswer, DuetFigure};
use schemars::Schema;
use std::collections::BTreeSet;

impl Verb for DuetRequest {
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        Box::new(self.results(run))
    }

    fn server_options(&self, server: &PrivateServer) -> String {
        self.server_options(server)
    }

    fn terms(&self, _: &Header) -> Vec<Term> {
        let arms = self.arms.iter().map(|arm| arm.name.clone());
        vec![
            Term::known("arms", &arms.collect::<Vec<_>>().join(", ")),
            Term::known("time of all visits", &self.budget),
        ]
    }
}

/// The number of the arm that a visit is of.
fn arm_of(visit: &PointRecord) -> Option<u32> {
    visit.coordinates.arm()
}

/// The member of the JSON report that has the results.
const MEMBER: &str = "duet";

impl VerbResult for DuetResult {
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

    fn conclusion(&self, _: &Header) -> Conclusion {
        conclusion::conclusion(self)
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

    /// That of the arm that sees less: each may be storage of its own.
    fn sight(&self, run: &Run) -> Sight {
        let arms: BTreeSet<u32> = run.points.iter().filter_map(arm_of).collect();
        let of_arm = |arm| {
            let visits = run.points.iter().filter(|visit| arm_of(visit) == Some(arm));
            SightReader::of(visits).sight(self.maxima())
        };
        let sights = arms.into_iter().map(of_arm);
        sights.reduce(Sight::and).unwrap_or_default()
    }

    fn answers(&self) -> Option<Answers> {
        Some(Answers {
            verb: "duet",
            all: conclusion::answers(self),
        })
    }

    fn outcome(&self, _: &Header) -> Option<BoundVerdict> {
        let outcome = DuetResult::outcome(self);
        // Without a limit, a known answer keeps nothing: its status is that of any complete run.
        let is_limit = self.slower_most.is_some() || outcome != BoundVerdict::Kept;
        is_limit.then_some(outcome)
    }
}
