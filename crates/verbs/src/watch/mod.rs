//! `rigel watch`: what databases ask of their storage, without a load of its own.

mod conclusion;
mod document;

use crate::{Verb, VerbResult};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::demand::{WatchReader, WatchResult};
use rigel_model::record::journal::{self, Header, MeasuredLine, Run};
use rigel_model::{Error, Finding};
use rigel_report::data::Reported;
use rigel_report::document::{Document, Section};
use schemars::Schema;
use std::path::Path;

impl Verb for WatchRequest {
    fn next_commands(&self) -> Vec<String> {
        ["rigel fit RUN DIR --write  # does other storage carry it?"]
            .map(String::from)
            .into()
    }

    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult> {
        let mut reader = WatchReader::default();
        run.watched.iter().for_each(|interval| reader.add(interval));
        Box::new(reader.result(self))
    }

    fn scan(&self, path: &Path) -> Result<(Run, Box<dyn VerbResult>), Error> {
        let mut reader = WatchReader::default();
        let run = journal::scan(path, &mut |_, measured| {
            if let MeasuredLine::Interval(interval) = measured {
                reader.add(&interval);
            }
        })?;
        Ok((run, Box::new(reader.result(self))))
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
        document::json(report, self)
    }

    fn schema() -> Schema {
        document::schema()
    }
}
