//! `rigel curve` and `rigel sql run`: latency at one load after the other.

mod conclusion;
mod document;
pub(crate) mod plan;
mod request;
pub mod result;
pub mod sessions;

use crate::{Verb, VerbResult};
pub use request::{Background, BackgroundKind, CurveRequest, Loads};
pub use result::CurveResult;
use rigel_analyse::compare::subject::{Scope, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::plan::SqlTerms;
use rigel_analyse::search::unseen;
use rigel_analyse::{BoundVerdict, PointSummary};
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Finding, Mix};
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use schemars::Schema;

impl Verb for CurveRequest {
    fn set_ranks(&mut self, size: u32) {
        self.ranks = size;
    }

    fn command(&self) -> &'static str {
        if self.is_sql_run { "sql run" } else { "curve" }
    }

    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        let mut found = result::curve(&run.joined(), self.bound, self.precision);
        let is_read = self.mix == Mix::READS && self.logs.is_empty() && self.background.is_empty();
        if is_read {
            let suspected = unseen::suspected_at_depths(&run.header, &found.points);
            found.findings.extend(suspected);
        }
        // A curve lasts as long as its points.
        for finding in &mut found.findings {
            finding.hint = finding.hint.replace("`--for 15min`", "`--point-max 60s`");
        }
        Box::new(CurveResult {
            log: self.logs.first().copied(),
            delivered: self.provisioned.map(|sold| found.delivered_of(sold)),
            ..found
        })
    }

    fn terms(&self, _: &Header) -> Vec<Term> {
        let beside = match &self.background[..] {
            [] => "none".to_string(),
            some => join(some),
        };
        let log = (!self.logs.is_empty())
            .then(|| Term::deciding(Scope::All, "file of the log", &join(&self.logs)));
        let ends = |terms: SqlTerms| Term::known("ends by", &format!("{:?}", terms.stop));
        std::iter::once(Term::size(Scope::Small, self.length))
            .chain(Term::work_of(self.sql, self.mix, self.pattern))
            .chain(self.sql.map(ends))
            .chain(log)
            .chain([
                Term::deciding(Scope::All, "load beside", &beside),
                Term::known("longest point", &self.point_most),
            ])
            .collect()
    }
}

fn join<Named: ToString>(all: &[Named]) -> String {
    all.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" and ")
}

/// The member of the JSON report that has the results.
const MEMBER: &str = "curve";

impl VerbResult for CurveResult {
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
        conclusion::conclusion(self, &document::workload(header))
    }

    fn document(&self, run: &Run, findings: Section, frame: Document) -> Document {
        if self.busiest().is_some() {
            sessions::document(run, self, findings, frame)
        } else {
            document::document(run, self, findings, frame)
        }
    }

    fn json(&self, report: Reported) -> String {
        report.json_with(MEMBER, self)
    }

    fn schema() -> Schema {
        data::schema_with::<Self>(MEMBER)
    }

    fn outcome(&self, _: &Header) -> Option<BoundVerdict> {
        self.bound_verdict()
    }
}
