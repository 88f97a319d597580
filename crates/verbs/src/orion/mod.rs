//! `rigel orion`: a matrix of small and large I/O, with Orion's own files.

mod conclusion;
mod document;
pub mod files;
pub mod lun;
pub mod plan;
mod request;
pub mod result;

use crate::{Verb, VerbResult};
pub use request::{LargeType, Matrix, OrionRequest, RunLevel};
pub use result::{MatrixCell, MatrixResult};
use rigel_analyse::PointSummary;
use rigel_analyse::compare::subject::{Scope, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::plan::search::{LARGE, SMALL};
use rigel_model::Finding;
use rigel_model::record::journal::{Header, Run};
use rigel_report::data::{self, NothingOfItsOwn, Reported};
use rigel_report::document::{Document, Section};
use schemars::Schema;

impl Verb for OrionRequest {
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        Box::new(MatrixResult::of(&run.joined()))
    }

    fn terms(&self, header: &Header) -> Vec<Term> {
        let streams = || header.points.iter().flat_map(|point| &point.streams);
        let first = |name: &str| streams().find(|stream| stream.name == name);
        let size = |scope, name| first(name).map(|stream| Term::size(scope, stream.length));
        let work = first(SMALL).or_else(|| first(LARGE));
        size(Scope::Small, SMALL)
            .into_iter()
            .chain(size(Scope::Large, LARGE))
            .chain(
                work.into_iter()
                    .flat_map(|stream| Term::work(stream.mix, stream.pattern)),
            )
            .collect()
    }
}

impl VerbResult for MatrixResult {
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
        report.json(NothingOfItsOwn {})
    }

    fn schema() -> Schema {
        data::schema::<NothingOfItsOwn>()
    }
}
