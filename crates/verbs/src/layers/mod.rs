//! `rigel layers`: the same blocks through each layer of a database in turn.

mod conclusion;
mod document;
mod plan;
mod request;
pub mod result;

use crate::{Verb, VerbResult};
pub use request::LayersRequest;
pub use result::{LayerFigures, LayerStep, LayerTable, LayersResult};
use rigel_analyse::PointSummary;
use rigel_analyse::compare::subject::{Scope, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Finding, Mix, Pattern};
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use schemars::Schema;

impl Verb for LayersRequest {
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        Box::new(result::layers(&run.joined(), run.header.host.cpus))
    }

    fn terms(&self, _: &Header) -> Vec<Term> {
        std::iter::once(Term::size(Scope::Small, self.block()))
            .chain(Term::work(Mix::READS, Pattern::Uniform))
            .chain([Term::known("longest point", &self.point_time)])
            .collect()
    }
}

/// The member of the JSON report that has the results.
const MEMBER: &str = "layers";

impl VerbResult for LayersResult {
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
}
