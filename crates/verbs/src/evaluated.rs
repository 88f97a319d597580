//! A run with its results, whatever its verb.

use crate::ending;
use crate::expect::{ExpectResult, answer, expected_of, lines};
use crate::registry;
use crate::subject::subject;
use crate::verb::{Verb, VerbResult};
use rigel_analyse::compare::subject::Subject;
use rigel_analyse::conclusion::parts::Conclusion;
use rigel_analyse::quantity::capital;
use rigel_analyse::{
    BoundVerdict, HostsAtLoad, NextRun, PointSummary, RunTrust, Sight, TrustLevel, ranks, verified,
};
use rigel_model::record::journal::{self, Header, Run};
use rigel_model::record::{End, RunEnd, StallChange, StallEvent};
use rigel_model::{Error, Expectation, Finding, FindingName, FindingWithCause, Target, failed};
use rigel_report::answers::Answers;
use rigel_report::data::Reported;
use rigel_report::document::Document;
use rigel_report::frame::frame;
use rigel_report::parts;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A run with its results.
pub struct Evaluated {
    /// The run; of a verb whose journals cover weeks without its records.
    pub run: Run,
    /// What was asked for.
    pub verb: Box<dyn Verb>,
    /// What follows.
    pub results: Box<dyn VerbResult>,
    /// What earlier runs say of the next one, if they were looked at.
    pub next_run: Option<NextRun>,
    /// What was expected of a run of another verb than `expect`, if anything was.
    pub expected: Option<ExpectResult>,
}

/// Names the target in the commands of hints, so that they can be followed as they stand. A long name
/// would push the rest of the hint off the screen.
fn name_target(findings: &mut [Finding], target: &Target) {
    const LENGTH_MAX: usize = 40;
    let name = target.argument().filter(|name| name.len() <= LENGTH_MAX);
    if let Some(name) = name {
        for finding in findings {
            finding.hint = finding.hint.replace("TARGET", &name);
        }
    }
}

/// Nobody else uses a server that was made for the run: what to look for on others cannot be followed.
fn for_private_server(findings: &mut [Finding]) {
    for finding in findings {
        if finding.is(FindingName::Witnesses) {
            finding.hint = "nobody else uses this server: both counts are in `rigel report RUN --verbose`, under \
                            Database"
                .into();
        }
    }
}

/// Notes of a point's findings which figure they are about.
fn of_own_figure(point: &mut PointSummary) {
    let figure = point.coordinates.figure();
    let findings = std::mem::take(&mut point.findings).into_iter();
    point.findings = findings.map(|finding| finding.at(figure)).collect();
}

impl Evaluated {
    /// Evaluates a run that was read.
    ///
    /// # Errors
    /// This version does not know its verb, or cannot read its request.
    pub fn of(run: Run) -> Result<Self, Error> {
        Self::of_run_in(run, None)
    }

    /// The same of the run in `place`, its directory or its journal, which hints name.
    ///
    /// # Errors
    /// As [`Evaluated::of`].
    pub fn of_run_in(run: Run, place: Option<&Path>) -> Result<Self, Error> {
        let verb = registry::of(&run.header)?;
        let results = verb.evaluate(&run);
        Ok(Self::new(run, verb, results, place))
    }

    /// Reads and evaluates the run in `path`, whatever its length. Another process may still be
    /// writing it.
    ///
    /// # Errors
    /// The journal cannot be read, or is of a verb that this version does not know.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let header = Header::read(path)?;
        // Asked first: a run that ends while it is read has its last line in what is read.
        let is_running = journal::is_being_written(path);
        let verb = registry::of(&header)?;
        let (mut run, results) = verb.scan(path)?;
        run.is_running = is_running && run.ended.is_none();
        Ok(Self::new(run, verb, results, Some(path)))
    }

    /// Reads and evaluates the run in `path`, which this process is about to end so.
    ///
    /// # Errors
    /// As [`Evaluated::read`].
    pub fn read_ending(path: &Path, end: RunEnd) -> Result<Self, Error> {
        let verb = registry::of(&Header::read(path)?)?;
        let (mut run, results) = verb.scan(path)?;
        run.ended = Some(end);
        Ok(Self::new(run, verb, results, Some(path)))
    }

    /// The results of the verb, with findings that runs of every verb can have.
    fn new(
        run: Run,
        verb: Box<dyn Verb>,
        mut results: Box<dyn VerbResult>,
        place: Option<&Path>,
    ) -> Self {
        // A soak has its own findings about the hosts, over all rounds.
        if let Some(found) = ranks(&run).filter(|_| verb.name() != "soak") {
            results.findings_mut().extend(found.findings);
        }
        results.findings_mut().extend(disks_that_stalled(&run));
        let looked = results.verified();
        if let Some(wrong) =
            looked.and_then(|looked| verified::finding(&looked, &run.header.facts.members))
        {
            results.findings_mut().insert(0, wrong);
        }
        if let Some(ended) = ended_in_stall(&run) {
            // The conclusion names the first warning.
            results.findings_mut().insert(0, ended);
        }
        if let Some(incomplete) = ending::finding(&run, &*verb, place) {
            results.findings_mut().insert(0, incomplete);
        }
        name_target(results.findings_mut(), &run.header.target);
        if run.header.target.is_private() {
            for_private_server(results.findings_mut());
            let points = results.points_mut().iter_mut();
            points.for_each(|point| for_private_server(&mut point.findings));
        }
        if !results.figures(&run.header).is_empty() {
            results.points_mut().iter_mut().for_each(of_own_figure);
        }
        let expected = run.header.invocation.options.expected.clone();
        let measured = Self {
            run,
            verb,
            results,
            next_run: None,
            expected: None,
        };
        measured.with_expected(&expected)
    }

    /// The same with what is expected of it, if that is anything.
    #[must_use]
    pub fn with_expected(self, expected: &[Expectation]) -> Self {
        if expected.is_empty() {
            return self;
        }
        Self {
            expected: Some(expected_of(&self.run, self.results.maxima(), expected)),
            ..self
        }
    }

    /// The results, as those of this verb: what was measured here is read again from its journal.
    ///
    /// # Errors
    /// They are of another verb: the journal is no longer that of `what`.
    pub fn results_of<T: VerbResult>(&self, what: &str) -> Result<&T, Error> {
        self.results.downcast_ref::<T>().ok_or_else(|| {
            failed!(
                "the journal is no longer that of {what}",
                "rigel report shows what it is"
            )
        })
    }

    /// The answers: of what was expected of this run, or by its verb itself.
    pub fn answers(&self) -> Option<Answers> {
        let expected = self.expected.as_ref().and_then(VerbResult::answers);
        expected.or_else(|| self.results.answers())
    }

    /// The outcome that the exit status says; `None` if it says only whether the run is complete.
    pub fn outcome(&self) -> Option<BoundVerdict> {
        let expected = self.expected.iter().map(|expected| expected.outcome);
        let own = self.results.outcome(&self.run.header);
        BoundVerdict::all_of_some(own.into_iter().chain(expected))
    }

    /// The same with what it and the runs in the journals `before` it say of the next one.
    #[must_use]
    pub fn with_earlier(self, before: &[PathBuf]) -> Self {
        Self {
            next_run: next_run(&self, before),
            ..self
        }
    }

    /// The answer in a sentence or two.
    pub fn conclusion(&self) -> Conclusion {
        let conclusion = self.conclusion_of_figures();
        let mut findings = self.findings();
        let Some(incomplete) = findings.find(|finding| finding.is(FindingName::Incomplete)) else {
            return conclusion;
        };
        let sentence = format!("{}. {}", capital(&incomplete.what), conclusion.sentence);
        Conclusion {
            sentence,
            ..conclusion
        }
    }

    /// The same without what is said of a run that is not complete.
    fn conclusion_of_figures(&self) -> Conclusion {
        let mut own = self.results.conclusion(&self.run.header);
        let mut findings = self.findings();
        if let Some(wrong) = self
            .findings()
            .find(|finding| finding.is(FindingName::WrongBlocks))
        {
            own.sentence = format!("{}. {}", capital(&wrong.what), own.sentence);
        }
        if let Some(unknown) = self.results.verified().as_ref().and_then(verified::unknown) {
            let _ = write!(own.sentence, " {unknown}");
        }
        if let Some(modes) = findings.find(|finding| finding.is(FindingName::Modes)) {
            let _ = write!(own.sentence, " {}.", capital(&modes.what));
        }
        let Some(expected) = &self.expected else {
            return own.under(&self.trust());
        };
        let sentence = format!("{} {}", answer(expected, &[]), own.sentence);
        Conclusion { sentence, ..own }
            .with_outcome(expected.outcome)
            .under(&self.trust())
    }

    /// How far its figures can be trusted.
    pub fn trust(&self) -> RunTrust {
        let mut figures = self.results.figures(&self.run.header);
        if self.expected.is_some() {
            // What is expected may be of any figure.
            figures.iter_mut().for_each(|asked| asked.decides = true);
        }
        let trust = RunTrust::of_figures(self.findings(), self.results.points(), &figures);
        if self.results.is_checked() {
            trust
        } else {
            trust.unchecked()
        }
    }

    /// What the run cannot have seen. `null:` is no storage.
    pub fn sight(&self) -> Sight {
        if matches!(self.run.header.target, Target::Null { .. }) {
            return Sight::default();
        }
        self.results.sight(&self.run).beside(self.findings())
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
        subject(name, &self.run, &*self.verb, &*self.results)
    }

    /// The report.
    pub fn document(&self) -> Document {
        let trust = self.trust();
        let findings = parts::findings(&trust);
        let next_run = self.next_run.into_iter().map(parts::next_run);
        let sight = self.sight().sentence();
        let verified = self
            .results
            .verified()
            .as_ref()
            .and_then(verified::sentence);
        let frame = Document {
            next: self.verb.next_commands(),
            outcome: self.outcome(),
            standing: sight.into_iter().chain(next_run).chain(verified).collect(),
            ..frame(&self.run.header, self.conclusion(), trust)
        };
        let mut document = self.results.document(&self.run, findings, frame);
        if let Some(expected) = &self.expected {
            let lines = parts::on_screen(lines(&self.run, expected));
            document.sections.insert(0, lines);
        }
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
            ended: ending::reported(&self.run, &*self.verb),
            conclusion: self.conclusion(),
            trust: self.trust(),
            sight: self.sight(),
            next_run: self.next_run,
            expect: self.expected.as_ref().map(|expected| json!(expected)),
            verified: self.results.verified().as_ref().map(Into::into),
            points: self.results.points(),
            findings: self.findings().map(FindingWithCause::from).collect(),
            each_host,
        })
    }
}

/// What `measured` and the runs before it say of the next one. Runs whose figures are not to be used
/// do not count.
fn next_run(measured: &Evaluated, before: &[PathBuf]) -> Option<NextRun> {
    measured.results.maxima().iops?;
    let read = |path: &PathBuf| {
        let earlier = Evaluated::read(path).ok()?;
        (earlier.trust().level != TrustLevel::DoNotUse).then_some(earlier)
    };
    let earlier: Vec<Evaluated> = before.iter().filter_map(read).collect();
    let subjects: Vec<_> = earlier.iter().map(|one| one.subject("")).collect();
    NextRun::of(&measured.subject(""), &subjects)
}

/// Warns of watched disks on which nothing completed for ten seconds or longer.
fn disks_that_stalled(run: &Run) -> Vec<Finding> {
    // Of a server, an interval without an answer is a finding.
    let disks = run.stalls.iter().filter_map(|event| event.what.as_deref());
    let disks: BTreeSet<&str> = disks.filter(|what| !what.contains("://")).collect();
    let of = |disk: &str| {
        let events = || {
            let of_disk = |event: &&StallEvent| event.what.as_deref() == Some(disk);
            run.stalls.iter().filter(of_disk)
        };
        let longest = events().max_by_key(|event| event.stalled.silent)?;
        let is_begun = |event: &&StallEvent| event.change == StallChange::Begun;
        let times = match events().filter(is_begun).count() {
            0 | 1 => String::new(),
            count => format!("; {count} stalls of ten seconds or longer"),
        };
        Some(Finding::warning(
            FindingName::Stall,
            format!("{disk}: {}, at {}{times}", longest.stalled, longest.noticed),
            "see the log of the kernel (dmesg) and of the device",
        ))
    };
    disks.into_iter().filter_map(of).collect()
}

/// Warns of a run that ended while nothing completed; `None` if a resumed run measured more.
fn ended_in_stall(run: &Run) -> Option<Finding> {
    let last = run.stalls.last()?;
    // A watch says so of each disk, and of each interval in which a server did not answer.
    let coordinates = last.coordinates?;
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
            coordinates, last.stalled
        ),
        "see the log of the kernel (dmesg) and of the device or server; then resume the run",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_for_others_on_a_private_server() {
        let hint = "check what else uses the server: other sessions, a vacuum";
        let mut findings = [FindingName::Witnesses, FindingName::OtherLoad]
            .map(|name| Finding::warning(name, "it was so", hint));
        for_private_server(&mut findings);
        assert!(findings[0].hint.contains("nobody else uses this server"));
        assert_eq!(findings[1].hint, hint);
    }
}
