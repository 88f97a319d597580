//! `rigel watch`: what databases ask of their storage, without a load of its own.

mod conclusion;
mod document;

use crate::subject::of_points;
use crate::{Verb, VerbResult};
use rigel_analyse::compare::subject::Subject;
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::demand::{WatchReader, WatchResult};
use rigel_model::record::journal::{self, Header, MeasuredLine, Run};
use rigel_model::{Error, Finding};
use rigel_report::data::Reported;
use rigel_report::document::{Document, Section};
use serde_json::{Value, json};
use std::path::Path;

/// The intervals of a watch's journal in `path`, and the run without them.
///
/// # Errors
/// The journal cannot be read.
pub fn scan(request: &WatchRequest, path: &Path) -> Result<(Run, WatchResult), Error> {
    let mut reader = WatchReader::default();
    let run = journal::scan(path, &mut |_, measured| {
        if let MeasuredLine::Interval(interval) = measured {
            reader.add(&interval);
        }
    })?;
    Ok((run, reader.result(request)))
}

impl Verb for WatchRequest {
    fn to_value(&self) -> Value {
        json!(self)
    }

    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        let mut reader = WatchReader::default();
        run.watched.iter().for_each(|interval| reader.add(interval));
        Box::new(reader.result(self))
    }

    fn scan(&self, path: &Path) -> Result<(Run, Box<dyn VerbResult>), Error> {
        let (run, results) = scan(self, path)?;
        Ok((run, Box::new(results)))
    }
}

impl VerbResult for WatchResult {
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
        document::document(&run.header, self, findings, frame)
    }

    fn csv(&self) -> String {
        document::csv(self)
    }

    fn json(&self, report: Reported) -> String {
        document::json(report.run, self)
    }

    fn subject<'a>(&self, name: &str, run: &'a Run, verb: &dyn Verb) -> Subject<'a> {
        of_points(name, run, verb, self)
    }
}
