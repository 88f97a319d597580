//! `rigel calibrate`: what a storage can do.

mod bucket;
mod conclusion;
mod document;
pub mod oracle_row;
mod plan;
mod precondition;
mod request;
mod reread;

use crate::verb::incomplete;
use crate::{Verb, VerbResult};
pub use request::{CalibrateRequest, OwnLogs};
use rigel_analyse::compare::subject::{Maxima, Scope, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::search::calibration::{Calibration, calibration};
use rigel_analyse::search::unseen;
pub use rigel_analyse::search::unseen::suspect_below;
use rigel_analyse::{BoundVerdict, FigureAsked, PointSummary};
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Figure, Finding, FindingName, Mix, Pattern};
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use schemars::Schema;

impl CalibrateRequest {
    /// The results of a run.
    pub fn results(&self, run: &Run) -> Calibration {
        let mut calibration = calibration(&run.joined(), self.bound, self.precision);
        let (suspected, others): (Vec<_>, Vec<_>) =
            unseen::unseen(&run.header, &run.points, &calibration)
                .into_iter()
                .partition(|finding| {
                    finding.is(FindingName::CacheSuspected) || finding.is(FindingName::Cache)
                });
        // The conclusion names the first warning, and this one is about every figure.
        calibration.findings.splice(0..0, suspected);
        calibration.findings.extend(others);
        if let Some(finding) = incomplete(self, run) {
            calibration.findings.insert(0, finding);
        }
        let is_model = run.header.target.is_model();
        calibration.standing = calibration.class_standing().filter(|_| !is_model);
        calibration.delivered = self.provisioned.map(|sold| calibration.delivered_of(sold));
        calibration
    }
}

/// The results of the calibration that was read; `None` if the run is of another verb.
pub fn results(run: &Run) -> Option<Calibration> {
    let request: CalibrateRequest = run.header.invocation.asked("calibrate")?;
    Some(request.results(run))
}

impl Verb for CalibrateRequest {
    fn next_commands(&self) -> Vec<String> {
        [
            "rigel advise RUN  # settings of postgres, oracle, mysql, etcd …",
            "rigel fit DEMAND TARGET  # will a database run on it?",
        ]
        .map(String::from)
        .into()
    }

    fn set_ranks(&mut self, size: u32) {
        self.ranks = size;
    }

    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        Box::new(self.results(run))
    }

    fn terms(&self, _: &Header) -> Vec<Term> {
        vec![
            Term::size(Scope::Small, self.block),
            Term::size(Scope::Large, self.large),
        ]
        .into_iter()
        .chain(Term::work(Mix::READS, Pattern::Uniform))
        .chain([
            Term::deciding(Scope::All, "load beside", &"none"),
            Term::known("longest point", &self.point_most),
        ])
        .collect()
    }
}

/// The member of the JSON report that has the results.
const MEMBER: &str = "calibration";

impl VerbResult for Calibration {
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

    /// Max IOPS decides, and what the user asked about.
    fn figures(&self, header: &Header) -> Vec<FigureAsked> {
        let has_writes = self.writes.is_some() || self.large_writes.lasting.is_some();
        let has_logs = !self.log_writes.is_empty() || !self.log_files.is_empty();
        [
            (Figure::MaxIops, true, true),
            (Figure::MaxThroughput, self.large.is_some(), false),
            (Figure::LowLoad, self.low_load.is_some(), false),
            (Figure::SustainedRate, true, request::is_bound_given(header)),
            (Figure::Writes, has_writes, false),
            (Figure::LogWrites, has_logs, false),
        ]
        .into_iter()
        .filter(|(_, is_measured, _)| *is_measured)
        .map(|(figure, _, decides)| FigureAsked { figure, decides })
        .collect()
    }

    fn compared_findings(&self) -> &[Finding] {
        &self.findings
    }

    fn outcome(&self, header: &Header) -> Option<BoundVerdict> {
        request::is_bound_given(header).then(|| self.bound_verdict())
    }

    /// As the report of a calibration has it.
    fn maxima(&self) -> Maxima {
        Maxima {
            iops: self.maximum.map(|maximum| maximum.iops),
            mb_per_s: self.large.map(|large| large.mb_per_s),
        }
    }
}
