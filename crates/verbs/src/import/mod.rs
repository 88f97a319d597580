//! `rigel import`: figures of other tools.

mod conclusion;
mod document;
mod request;
pub mod result;
mod sweep;

use crate::{Verb, VerbResult, subject};
pub use request::ImportRequest;
pub use result::ImportedResult;
use rigel_analyse::compare::subject::Subject;
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::{DatabaseResult, ImportedSummary, Predictability, ReportedKnee};
use rigel_model::Finding;
use rigel_model::record::imported::ClaimedCalibration;
use rigel_model::record::journal::{Header, Run};
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

impl Verb for ImportRequest {
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        Box::new(ImportedResult::of(&run.imported))
    }
}

/// The members that the JSON report of an import has of its own.
#[derive(Serialize, JsonSchema)]
struct Own<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    imported: &'a [ImportedSummary],
    /// What reports of databases say, and the demand that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<&'a DatabaseResult>,
    /// The knee of the loads, if they are one curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    knee: Option<&'a ReportedKnee>,
    /// The analysis over time of a single throughput series.
    #[serde(skip_serializing_if = "Option::is_none")]
    predictability: Option<&'a Predictability>,
}

impl VerbResult for ImportedResult {
    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn findings_mut(&mut self) -> &mut Vec<Finding> {
        &mut self.findings
    }

    fn conclusion(&self, header: &Header) -> Conclusion {
        conclusion::conclusion(header, self)
    }

    fn document(&self, run: &Run, findings: Section, frame: Document) -> Document {
        document::document(run, self, findings, frame)
    }

    fn csv(&self) -> String {
        document::csv(self)
    }

    fn json(&self, report: Reported) -> String {
        let of_database = self
            .database
            .as_ref()
            .and_then(|found| found.series.as_ref());
        let series = self.series.as_ref().or(of_database);
        report.json(Own {
            imported: &self.sources,
            database: self.database.as_ref(),
            knee: self.knee.as_ref(),
            predictability: series.map(|series| &series.found),
        })
    }

    fn schema() -> Schema {
        data::schema::<Own>()
    }

    fn subject<'a>(&self, name: &str, run: &'a Run, _: &dyn Verb) -> Option<Subject<'a>> {
        Some(subject::of_imported(name, run, self))
    }

    /// Series are analysed, and reports of databases are compared with themselves.
    fn is_checked(&self) -> bool {
        let is_each_analysed = self.series_of_sources.len() == self.sources.len();
        self.series.is_some() || self.database.is_some() || is_each_analysed
    }

    fn claims(&self) -> &[ClaimedCalibration] {
        &self.claims
    }
}
