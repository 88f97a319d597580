//! `rigel fit`: how many times the demand of a database a storage carries.

mod conclusion;
mod document;
mod objectives;
mod plan;
mod request;
pub mod result;

use crate::verb::incomplete;
use crate::{Verb, VerbResult};
pub use document::{FitOfTarget, fits};
pub use objectives::objectives;
pub use request::{FitRequest, FitSessions, OfferedStream, RankDemand};
pub use result::{FitResult, HostStream, TriedMultiple, TriedStream};
use rigel_analyse::compare::over_time::FigureOverTime;
use rigel_analyse::compare::subject::{Scope, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::figures::quantity::{Unit, multiple};
use rigel_analyse::search::unseen;
use rigel_analyse::{BoundVerdict, PointSummary};
use rigel_model::record::journal::{Header, Run};
use rigel_model::{DemandKind, Finding, Target};
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use schemars::Schema;

impl FitRequest {
    /// What the streams must keep, as it is compared.
    fn objectives_in_words(&self) -> String {
        let each = self.objectives.iter().map(ToString::to_string);
        each.collect::<Vec<_>>().join(", ")
    }

    /// The results of a run.
    pub fn results(&self, run: &Run) -> FitResult {
        let mut fit = result::fit(&run.joined(), &run.ranks, self);
        // Behind the findings about the demand: this one is about every figure.
        let place = self.findings.len();
        let suspected = cache_suspected(&run.header, &fit);
        fit.findings.splice(place..place, suspected);
        if let Some(finding) = incomplete(self, run) {
            fit.findings.insert(0, finding);
        }
        fit
    }
}

/// Suspects a cache below the target by the random reads at the lowest multiple. A database has caches
/// of its own.
fn cache_suspected(header: &Header, result: &FitResult) -> Option<Finding> {
    if matches!(header.target, Target::Sql(_)) {
        return None;
    }
    let lowest = result.multiples.first()?.multiple;
    let is_lowest = |point: &&PointSummary| {
        let multiple = point.coordinates.multiple();
        multiple.is_some_and(|multiple| result::is_same(multiple, lowest))
    };
    let point = result.points.iter().find(is_lowest)?;
    let name = DemandKind::RandomReads.words();
    let class = point.classes.iter().find(|class| class.name == name)?;
    let reads = format!("{name} at {} ×", multiple(lowest));
    unseen::suspected_by(header, class, &reads, None)
}

impl Verb for FitRequest {
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        Box::new(self.results(run))
    }

    fn terms(&self, _: &Header) -> Vec<Term> {
        let demand = format!("{} of {}", self.interval.label, self.named);
        let writes = if self.writes { "offered" } else { "left out" };
        let mut terms = vec![
            Term::size(Scope::Small, self.block),
            Term::deciding(Scope::All, "demand", &demand),
            Term::deciding(Scope::All, "writes", &writes),
            Term::deciding(Scope::All, "objectives", &self.objectives_in_words()),
            Term::known("time of a multiple", &self.point_time),
        ];
        if let Some(sessions) = self.sessions {
            terms.extend(Term::sessions(sessions.terms));
            terms.push(Term::deciding(Scope::All, "sessions", &sessions.number));
        }
        terms
    }
}

/// The member of the JSON report that has the results.
const MEMBER: &str = "fit";

impl VerbResult for FitResult {
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

    fn outcome(&self, _: &Header) -> Option<BoundVerdict> {
        Some(self.verdict)
    }

    fn answered(&self) -> Option<FigureOverTime> {
        let degrees = (self.multiples.len() as f64 - 1.0).max(1.0);
        Some(FigureOverTime {
            name: "multiple of the demand".into(),
            unit: Unit::Number,
            headline: true,
            figure: self.carries?.with_degrees(degrees),
        })
    }
}
