//! What a verb is, and what follows from a run of one.

use rigel_analyse::compare::over_time::FigureOverTime;
use rigel_analyse::compare::subject::{Maxima, Subject, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::plan::Plan;
use rigel_analyse::{BoundVerdict, FigureAsked, PointSummary, Sight, SightReader, SoFar};
use rigel_model::record::imported::ClaimedCalibration;
use rigel_model::record::journal::{Header, Run};
use rigel_model::record::{End, Ending, HowEnded, Verified};
use rigel_model::{Error, Finding, FindingName, Invocation, PrivateServer};
use rigel_report::answers::Answers;
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use schemars::Schema;
use serde::Serialize;
use serde_json::{Value, json};
use std::any::Any;
use std::path::Path;

/// What every request can do because it is plain data.
pub trait RequestData {
    /// The request as the journal's header keeps it.
    fn to_value(&self) -> Value;

    /// A copy.
    fn boxed(&self) -> Box<dyn Verb>;
}

impl<T: Verb + Serialize + Clone> RequestData for T {
    fn to_value(&self) -> Value {
        json!(self)
    }

    fn boxed(&self) -> Box<dyn Verb> {
        Box::new(self.clone())
    }
}

/// A verb with what it was asked for: its plan, and how a run of it is evaluated.
pub trait Verb: Plan + RequestData + Any {
    /// The words after `rigel` for a command with `--resume`.
    fn command(&self) -> &'static str {
        self.name()
    }

    /// The options after `--resume RUN` that make the private server of a run again, each with a space
    /// before it: they are not taken from a journal.
    fn server_options(&self, server: &PrivateServer) -> String {
        server.confirmed_options()
    }

    /// Says that `size` ranks measure together, before the first point is planned. Plans that stay
    /// as they are, and are measured by all ranks, ignore it.
    fn set_ranks(&mut self, _size: u32) {}

    /// The results of a run.
    fn evaluate(&self, run: &Run) -> Box<dyn VerbResult>;

    /// Reads a run and evaluates it. A verb whose journals cover weeks reads them in one pass, and
    /// the run that it returns has no records.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn scan(&self, path: &Path) -> Result<(Run, Box<dyn VerbResult>), Error> {
        let run = Run::read(path)?;
        let results = self.evaluate(&run);
        Ok((run, results))
    }

    /// The options that affect the figures of a run, for a comparison.
    fn terms(&self, _header: &Header) -> Vec<Term> {
        Vec::new()
    }

    /// Commands that are useful after a run, each with its purpose; `RUN` stands for the run.
    fn next_commands(&self) -> Vec<String> {
        Vec::new()
    }

    /// How a run of this verb is called, with default options.
    fn invocation(&self) -> Invocation {
        Invocation::of(self.name(), &self.to_value())
    }

    /// True if more points would follow the measured ones: of these the plan is asked as while
    /// measuring, not of the points of results, whose intervals all points together decide.
    fn is_more_planned(&self, run: &Run) -> bool {
        let mut so_far = SoFar::default();
        let done = so_far.of_ranks(&run.joined(), &run.ranks, self.judged());
        self.next(run.header.facts.usable.0, 0, done).is_some()
    }
}

impl dyn Verb {
    /// The request itself, if it is of this verb.
    pub fn downcast_ref<T: Verb>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// The same, to change it.
    pub fn downcast_mut<T: Verb>(&mut self) -> Option<&mut T> {
        (self as &mut dyn Any).downcast_mut()
    }
}

impl dyn VerbResult {
    /// The results themselves, if they are of this verb.
    pub fn downcast_ref<T: VerbResult>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// The results of a run: reports in every form are made from them alone, so that they cannot
/// contradict each other.
pub trait VerbResult: Any {
    /// Findings about the run as a whole.
    fn findings(&self) -> &[Finding];

    /// The same, to add to.
    fn findings_mut(&mut self) -> &mut Vec<Finding>;

    /// The measured points, in order; empty for rounds and for figures of another tool.
    fn points(&self) -> &[PointSummary] {
        &[]
    }

    /// The same, to add to their findings.
    fn points_mut(&mut self) -> &mut [PointSummary] {
        &mut []
    }

    /// What looking at the blocks of the run found; `None` if nobody looked.
    fn verified(&self) -> Option<Verified> {
        Verified::sum(self.points().iter().map(|point| point.verified.as_ref()))
    }

    /// The answer in a sentence or two.
    fn conclusion(&self, header: &Header) -> Conclusion;

    /// The report: completes `frame`, which has the heading and the conclusion.
    fn document(&self, run: &Run, findings: Section, frame: Document) -> Document;

    /// The report as CSV.
    fn csv(&self) -> String {
        data::csv(self.points())
    }

    /// The report as JSON: the members of every verb with its own.
    fn json(&self, report: Reported) -> String;

    /// The JSON Schema of that report.
    fn schema() -> Schema
    where
        Self: Sized;

    /// Its answers of yes or no, if it has any.
    fn answers(&self) -> Option<Answers> {
        None
    }

    /// The run as it is compared with others, if that is not by its points; `name` is what the user
    /// calls it.
    fn subject<'a>(&self, _name: &str, _run: &'a Run, _verb: &dyn Verb) -> Option<Subject<'a>> {
        None
    }

    /// The findings about the run as a whole that a comparison counts. Those about a matrix or a
    /// curve are about its shape, and are not counted.
    fn compared_findings(&self) -> &[Finding] {
        &[]
    }

    /// The maxima that a run has one answer for.
    fn maxima(&self) -> Maxima {
        Maxima::default()
    }

    /// What a run answers besides its points, where another run may answer it differently.
    fn answered(&self) -> Option<FigureOverTime> {
        None
    }

    /// The figures of an answer that has several, each of loads of its own; none if every load is for the one answer.
    fn figures(&self, _header: &Header) -> Vec<FigureAsked> {
        Vec::new()
    }

    /// What the run cannot have seen, by what was done and when. Figures of another tool have no visits.
    fn sight(&self, run: &Run) -> Sight {
        SightReader::of(&run.points).sight(self.maxima())
    }

    /// True if checks could have raised warnings about the figures.
    fn is_checked(&self) -> bool {
        true
    }

    /// What a calibration by another program claims, if this is one.
    fn claims(&self) -> &[ClaimedCalibration] {
        &[]
    }

    /// Whether what was asked for is kept, as the exit statuses of the run and of its reports say it;
    /// `None` if nothing was.
    fn outcome(&self, _header: &Header) -> Option<BoundVerdict> {
        None
    }
}

/// Warns of a search that ended before it was complete; `None` if it was, or if the run's end says it.
pub(crate) fn incomplete(verb: &dyn Verb, run: &Run) -> Option<Finding> {
    let is_said = match run.ending() {
        Ending::Said(end) => end.how != HowEnded::Complete,
        Ending::Killed | Ending::Running => true,
        Ending::Unknown => false,
    };
    if is_said {
        return None;
    }
    let ended = run
        .joined()
        .iter()
        .all(|record| record.end == End::Complete);
    (!ended || verb.is_more_planned(run)).then(|| {
        Finding::warning(
            FindingName::Incomplete,
            "the run ended before it was complete: the figures cover only the part that was measured",
            format!(
                "resume it with `rigel {} --resume DIR`, with its directory",
                verb.command()
            ),
        )
    })
}
