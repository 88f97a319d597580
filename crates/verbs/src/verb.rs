//! What a verb is, and what follows from a run of one.

use rigel_analyse::compare::difference::Figure;
use rigel_analyse::compare::subject::{Subject, Term};
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::plan::Plan;
use rigel_analyse::{BoundVerdict, HostsAtLoad, PointSummary, ranks};
use rigel_model::record::imported::ClaimedCalibration;
use rigel_model::record::journal::{Header, Run};
use rigel_model::record::{End, StallChange};
use rigel_model::{Error, Finding, FindingName, Invocation};
use rigel_report::data::{self, Reported};
use rigel_report::document::{Document, Section};
use rigel_report::frame::frame;
use rigel_report::parts;
use serde_json::Value;
use std::any::Any;
use std::path::Path;

/// A verb with what it was asked for: its plan, and how a run of it is evaluated.
pub trait Verb: Plan + Any {
    /// The words after `rigel` for a command with `--resume`.
    fn command(&self) -> &'static str {
        self.name()
    }

    /// The request as the journal's header keeps it.
    fn to_value(&self) -> Value;

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

    /// How a run of this verb is called, with default options.
    fn invocation(&self) -> Invocation {
        Invocation::of(self.name(), &self.to_value())
    }

    /// True if more points would follow the measured ones.
    fn is_more_planned(&self, run: &Run, points: &[PointSummary]) -> bool {
        self.next(run.header.facts.usable.0, 0, points).is_some()
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

    /// The run as it is compared with others; `name` is what the user calls it.
    fn subject<'a>(&self, name: &str, run: &'a Run, verb: &dyn Verb) -> Subject<'a>;

    /// The findings about the run as a whole that a comparison counts. Those about a matrix or a
    /// curve are about its shape, and are not counted.
    fn compared_findings(&self) -> &[Finding] {
        &[]
    }

    /// The maximum rate of small reads, where a run has one answer.
    fn max_iops(&self) -> Option<Figure> {
        None
    }

    /// What a calibration by another program claims, if this is one.
    fn claims(&self) -> &[ClaimedCalibration] {
        &[]
    }

    /// Whether any load kept the latency bound; `None` if there was none.
    fn bound_verdict(&self) -> Option<BoundVerdict> {
        None
    }
}

/// A run with its results.
pub struct Evaluated {
    /// The run; of a verb whose journals cover weeks without its records.
    pub run: Run,
    /// What was asked for.
    pub verb: Box<dyn Verb>,
    /// What follows.
    pub results: Box<dyn VerbResult>,
}

impl Evaluated {
    /// Evaluates a run that was read.
    ///
    /// # Errors
    /// This version does not know its verb, or cannot read its request.
    pub fn of(run: Run) -> Result<Self, Error> {
        let verb = super::of(&run.header)?;
        let results = verb.evaluate(&run);
        Ok(Self::new(run, verb, results))
    }

    /// Reads and evaluates the run in `path`, whatever its length.
    ///
    /// # Errors
    /// The journal cannot be read, or is of a verb that this version does not know.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let verb = super::of(&Header::read(path)?)?;
        let (run, results) = verb.scan(path)?;
        Ok(Self::new(run, verb, results))
    }

    /// The results of the verb, with findings that runs of every verb can have.
    pub fn new(run: Run, verb: Box<dyn Verb>, mut results: Box<dyn VerbResult>) -> Self {
        // A soak has its own findings about the hosts, over all rounds.
        if let Some(found) = ranks(&run).filter(|_| verb.name() != "soak") {
            results.findings_mut().extend(found.findings);
        }
        if let Some(ended) = ended_in_stall(&run) {
            // The conclusion names the first warning.
            results.findings_mut().insert(0, ended);
        }
        Self { run, verb, results }
    }

    /// The answer in a sentence or two.
    pub fn conclusion(&self) -> Conclusion {
        self.results.conclusion(&self.run.header)
    }

    /// All findings: those from before the first point, those of the run as a whole, and those of
    /// its points.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of_points = self
            .results
            .points()
            .iter()
            .flat_map(|point| &point.findings);
        let of_run = self.results.findings();
        self.run
            .header
            .findings
            .iter()
            .chain(of_run)
            .chain(of_points)
    }

    /// The run as it is compared with others; `name` is what the user calls it.
    pub fn subject(&self, name: &str) -> Subject<'_> {
        self.results.subject(name, &self.run, &*self.verb)
    }

    /// The report.
    pub fn document(&self) -> Document {
        let frame = frame(&self.run.header, self.conclusion());
        let findings = parts::findings(self.findings());
        let document = self.results.document(&self.run, findings, frame);
        rigel_report::completed(&self.run, document)
    }

    /// The report as one JSON document.
    pub fn json(&self) -> String {
        self.json_with(&[])
    }

    /// The same with all hosts at every load.
    ///
    /// # Errors
    /// One process measured the run alone.
    pub fn json_with_each_host(&self) -> Result<String, Error> {
        Ok(self.json_with(&rigel_report::ranks::each_load(&self.run)?))
    }

    fn json_with(&self, each_host: &[HostsAtLoad]) -> String {
        self.results.json(Reported {
            run: &self.run,
            conclusion: self.conclusion(),
            points: self.results.points(),
            findings: self.findings().collect(),
            each_host,
        })
    }
}

/// Warns of a search that ended before it was complete; `None` if it was.
pub(crate) fn incomplete(verb: &dyn Verb, run: &Run, points: &[PointSummary]) -> Option<Finding> {
    let ended = run
        .joined()
        .iter()
        .all(|record| record.end == End::Complete);
    (!ended || verb.is_more_planned(run, points)).then(|| {
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

/// Warns of a run that ended while nothing completed; `None` if a resumed run measured more.
fn ended_in_stall(run: &Run) -> Option<Finding> {
    let last = run.stalls.last()?;
    // Both are wall-clock times in one format. What began later was measured by a resumed run.
    let is_measured = run
        .points
        .iter()
        .any(|point| point.end == End::Complete && point.started > last.noticed);
    if last.change != StallChange::Ended || is_measured {
        return None;
    }
    let host = last.host.iter().map(|host| format!(" on {host}"));
    let host: String = host.collect();
    Some(Finding::warning(
        FindingName::EndedInStall,
        format!(
            "the run ended at {}{host} while {}",
            last.coordinates, last.stalled
        ),
        "see the log of the kernel (dmesg) and of the device or server; then resume the run",
    ))
}

/// True for the number of ranks of a run that one process measured alone.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(crate) fn is_alone(ranks: &u32) -> bool {
    *ranks == 0
}
