//! `rigel soak`: the same round repeatedly, for hours to weeks.

use crate::{Verb, VerbResult, subject};
use rigel_analyse::compare::subject::{Scope, Subject, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::series::soak::{SoakReader, SoakResult};
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_analyse::{BoundVerdict, Sight};
use rigel_model::record::Verified;
use rigel_model::record::journal::{self, Header, MeasuredLine, Run};
use rigel_model::{Error, Finding, Load};
use rigel_report::data::Reported;
use rigel_report::document::{Document, Section};
use rigel_report::soak;
use schemars::Schema;
use std::path::Path;

impl Verb for SoakRequest {
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        let mut reader = SoakReader::new(self);
        run.joined().iter().for_each(|record| reader.add(record));
        let parts = run.ranks.parts.iter();
        parts.for_each(|point| reader.add_parts(&point.parts));
        reader.end(run);
        Box::new(reader.result(self))
    }

    fn scan(&self, path: &Path) -> Result<(Run, Box<dyn VerbResult>), Error> {
        let mut reader = SoakReader::new(self);
        let run = journal::scan(path, &mut |_, measured| {
            if let MeasuredLine::Point(record, parts) = measured {
                reader.add(&record);
                reader.add_parts(&parts);
            }
        })?;
        reader.end(&run);
        Ok((run, Box::new(reader.result(self))))
    }

    fn terms(&self, _: &Header) -> Vec<Term> {
        let load = match self.load {
            Load::Closed { depth } => format!("{depth} outstanding"),
            Load::Open {
                rate,
                in_flight_max,
                ..
            } => format!("{rate}/s, {in_flight_max} in flight at most"),
        };
        let work = self.work.map_or_else(
            || "as much as its time allows".into(),
            |work| format!("{work} operations"),
        );
        std::iter::once(Term::size(Scope::Small, self.length))
            .chain(Term::work_of(self.sql, self.mix, self.pattern))
            .chain([
                Term::deciding(Scope::All, "load beside", &"none"),
                Term::deciding(Scope::All, "load", &load),
                Term::deciding(Scope::All, "work of a round", &work),
                Term::known("a round every", &self.every.exact()),
                Term::known("longest round", &self.limit.exact()),
                Term::known("was to last", &self.lasting.exact()),
            ])
            .collect()
    }
}

impl VerbResult for SoakResult {
    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn findings_mut(&mut self) -> &mut Vec<Finding> {
        &mut self.findings
    }

    fn verified(&self) -> Option<Verified> {
        self.verified.clone()
    }

    fn conclusion(&self, header: &Header) -> Conclusion {
        self.conclusion(header)
    }

    fn document(&self, run: &Run, _: Section, frame: Document) -> Document {
        soak::document(&run.header, self, frame)
    }

    fn csv(&self) -> String {
        soak::csv(self)
    }

    fn json(&self, report: Reported) -> String {
        soak::json(report, self)
    }

    fn schema() -> Schema {
        soak::schema()
    }

    fn sight(&self, _: &Run) -> Sight {
        self.sight
    }

    fn outcome(&self, _: &Header) -> Option<BoundVerdict> {
        self.found.outcome()
    }

    fn subject<'a>(&self, name: &str, run: &'a Run, verb: &dyn Verb) -> Option<Subject<'a>> {
        Some(subject::of_soak(
            name,
            &run.header,
            verb,
            self,
            run.is_complete(),
        ))
    }
}
