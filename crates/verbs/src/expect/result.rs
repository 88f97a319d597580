//! The results of `rigel expect`: a line for each expectation, and what follows from all of them.

use super::plan::STALLS_SEEN_LEAST;
use super::request::ExpectRequest;
use super::stalls::RunStalls;
use crate::verb::incomplete;
use rigel_analyse::figures::quantity::{Unit, per_second, rounded_percent};
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::visits::time_used;
use rigel_analyse::search::credit::credit_of_visits;
use rigel_analyse::search::{run_checks, unseen};
use rigel_analyse::{
    BoundVerdict, Estimate, ExpectedVerdict, PointSummary, RateMet, summarise_judged, variation,
    widen,
};
use rigel_model::record::journal::Run;
use rigel_model::record::{PointRecord, SUSPENDED};
use rigel_model::{
    Coordinates, Expectation, ExpectedOf, Finding, Kind, Measure, Ratio, TrustCause, Weight,
};
use serde::{Serialize, Serializer};

/// What is expected, and whether it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ExpectedLine {
    /// Met, not met, undecided, not measured.
    #[serde(serialize_with = "in_words")]
    #[schemars(with = "String")]
    pub outcome: BoundVerdict,
    /// What is expected.
    pub condition: Expectation,
    /// The load at which it was measured: `3000/s`, `depth 32`; empty if at several.
    pub load: String,
    /// The figure, and its interval at the level of this run.
    pub figure: Option<Estimate>,
    /// Its unit.
    pub unit: Unit,
    /// Operations that it is of.
    pub operations: u64,
    /// Time that they were measured for, in seconds.
    pub measured_s: f64,
    /// If undecided: how much longer would decide it, in seconds with warm-ups, if the figure stays as
    /// it is; `None` if that is out of reach.
    pub more_s: Option<f64>,
    /// Why it was not measured, or what else is not met: the rate at which it is expected. Else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ExpectResult {
    /// The outcome of the run: that of its worst line.
    #[serde(serialize_with = "in_words")]
    #[schemars(with = "String")]
    pub outcome: BoundVerdict,
    /// Probability of a wrong answer, in the whole list.
    pub error: Ratio,
    /// True if the intervals hold at every moment of the run, which could end at any of them; else they are
    /// those of one look at a run that is complete.
    #[serde(skip)]
    pub is_sequential: bool,
    /// The lines, as they were given.
    pub lines: Vec<ExpectedLine>,
    /// All points, in measuring order.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// Findings about the run as a whole; findings about a point are in the point.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// The outcome in words.
pub fn words(outcome: BoundVerdict) -> &'static str {
    match outcome {
        BoundVerdict::Kept => "met",
        BoundVerdict::Broken => "not met",
        BoundVerdict::Undecided => "undecided",
        BoundVerdict::NotMeasured => "not measured",
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn in_words<S: Serializer>(outcome: &BoundVerdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(words(*outcome))
}

impl ExpectResult {
    /// The lines with this outcome.
    pub fn with(&self, outcome: BoundVerdict) -> Vec<&ExpectedLine> {
        let lines = self.lines.iter();
        lines.filter(|line| line.outcome == outcome).collect()
    }
}

impl ExpectRequest {
    /// The results of a run.
    pub(super) fn results(&self, run: &Run) -> ExpectResult {
        let records = run.joined();
        let mut found = self.of_records(&records, &run.header.findings);
        let suspected = unseen::suspected_at_depths(&run.header, &found.points);
        let findings = incomplete(self, run).into_iter().chain(suspected);
        found.findings.splice(0..0, findings);
        found
    }

    /// What the records of all loads show, of each the visits joined, where `before` was found before the
    /// first.
    pub fn of_records(&self, records: &[PointRecord], before: &[Finding]) -> ExpectResult {
        let by = self.judged();
        let mut points: Vec<PointSummary> = records
            .iter()
            .map(|record| summarise_judged(record, &by))
            .collect();
        let varied = variation(&points, false).and_then(run_checks::varied);
        widen(&mut points);
        let credit = points.iter().find_map(credit_of_visits);
        let stalls = RunStalls::of(&points);
        let lines = by.expected.iter().enumerate();
        let lines: Vec<ExpectedLine> = lines
            .map(|(index, (condition, _))| {
                let mut line = line(index, *condition, &points, &stalls);
                if credit.is_some() && line.outcome == BoundVerdict::Undecided {
                    line.more_s = None;
                    line.why = "without the credit it may be decided: measure again now".into();
                }
                line.unless_host_limits(&points, before)
            })
            .collect();
        let stalled = run_checks::stalled(records, &points);
        ExpectResult {
            outcome: BoundVerdict::all_of(lines.iter().map(|line| line.outcome)),
            error: self.error,
            is_sequential: true,
            lines,
            // Credit that ran out is why visits differ.
            findings: credit.or(varied).into_iter().chain(stalled).collect(),
            points,
        }
    }
}

/// A line, by the points that it is about.
fn line(
    index: usize,
    condition: Expectation,
    points: &[PointSummary],
    stalls: &RunStalls,
) -> ExpectedLine {
    let of = |point: &PointSummary| {
        let class = point.classes.iter().find(|class| class.done > 0)?;
        let found = class.expected.iter().find(|found| found.index == index);
        let operations = match condition.kind() {
            None => class.done,
            Some(Kind::Read) => class.reads,
            Some(_) => class.writes,
        };
        Some((stalls.judge(point, &condition, found?), operations))
    };
    let here: Vec<(&PointSummary, ExpectedVerdict, u64)> = points
        .iter()
        .filter_map(|point| of(point).map(|(found, done)| (point, found, done)))
        .collect();
    let value = |found: &ExpectedVerdict| found.figure.map_or(0.0, |figure| figure.value);
    let worst = here
        .iter()
        .max_by(|one, other| value(&one.1).total_cmp(&value(&other.1)));
    let of_points: Vec<PointSummary> = here.iter().map(|of| of.0.clone()).collect();
    let used = time_used(&of_points);
    let mut line = ExpectedLine {
        outcome: BoundVerdict::all_of(here.iter().map(|(_, found, _)| found.verdict)),
        condition,
        load: match here[..] {
            [(point, ..)] => point.coordinates.to_string(),
            _ => String::new(),
        },
        figure: worst.and_then(|(_, found, _)| found.figure),
        unit: unit_of(&condition),
        operations: here.iter().map(|(.., done)| done).sum(),
        measured_s: of_points.iter().map(|point| point.measured_s).sum(),
        more_s: worst.and_then(|(_, found, _)| Some((found.times? - 1.0) * used)),
        why: String::new(),
    };
    let more_s = STALLS_SEEN_LEAST.as_secs_f64() - used;
    let is_longest = matches!(condition.limit.0, Measure::Max(_));
    if here.is_empty() {
        line.outcome = BoundVerdict::NotMeasured;
        line.why = "no operation of this load completed".into();
    } else if line.outcome == BoundVerdict::Broken {
        let unserved = || here.iter().find_map(|(point, ..)| not_served(point));
        let failed = || here.iter().find_map(|(point, ..)| has_failed(point));
        let why = if is_longest { None } else { unserved() };
        line.why = why.or_else(failed).unwrap_or_default();
    } else if is_longest {
        line = line.unless_too_short(more_s);
    }
    line
}

/// Says that an offered rate is not served, if it is not.
pub(super) fn not_served(point: &PointSummary) -> Option<String> {
    let class = point.classes.first()?;
    let offered = class.offered.filter(|_| class.met == Some(RateMet::No))?;
    Some(format!("{} offered, and not served", per_second(offered)))
}

/// Says which share of the I/Os failed, if any did.
fn has_failed(point: &PointSummary) -> Option<String> {
    let class = point.classes.first()?;
    let failed = class.failed.values().sum::<u64>() as f64;
    let share = failed / (failed + class.done as f64);
    (failed > 0.0).then(|| format!("{} of the I/Os failed", rounded_percent(share)))
}

/// The unit of an expectation's figure.
pub(super) fn unit_of(condition: &Expectation) -> Unit {
    match (condition.of, condition.limit.0) {
        (ExpectedOf::Throughput, Measure::Rate(_)) => Unit::MbPerSecond,
        (_, Measure::Rate(_)) => Unit::PerSecond,
        _ => Unit::Microseconds,
    }
}

impl ExpectedLine {
    /// The line of an absence of stalls, unless `more_s` more must be measured for it: a stall that was not
    /// met yet is not excluded within seconds.
    pub(super) fn unless_too_short(mut self, more_s: f64) -> Self {
        if self.outcome == BoundVerdict::Kept && more_s > 0.0 {
            self.outcome = BoundVerdict::Undecided;
            self.more_s = Some(more_s);
        }
        self
    }

    /// True if all I/O stalled for longer than its condition allows an operation to take, by more than
    /// Rigel's own threads can be kept from running without a look that is late.
    fn is_broken_by_a_stall(&self, points: &[PointSummary]) -> bool {
        let Measure::Max(limit) = self.condition.limit.0 else {
            return false;
        };
        let here = points
            .iter()
            .filter(|point| point.coordinates.to_string() == self.load);
        let classes = here.filter_map(|point| point.classes.first());
        let least_s = limit.plus(SUSPENDED).as_secs_f64();
        let mut lengths = classes.map(|class| class.stalls.longest_seconds);
        lengths.any(|longest| longest > least_s)
    }

    /// The line, unless what was measured is not the storage; or not the storage's limit, where it is not
    /// met: who has too little CPU cannot blame a disk.
    pub(super) fn unless_host_limits(
        mut self,
        points: &[PointSummary],
        before: &[Finding],
    ) -> Self {
        let is_here = |at: Coordinates| match self.load.as_str() {
            "" => !self.condition.is_at_best() || self.condition.is_of(at),
            load => at.to_string() == load,
        };
        let of_points = points.iter().filter(|point| is_here(point.coordinates));
        let of_points: Vec<&Finding> = of_points.flat_map(|point| &point.findings).collect();
        let spoils = |one: &&&Finding| one.weight() == Weight::Spoil;
        let before: Vec<&Finding> = before.iter().collect();
        let is_host = |one: &&&Finding| {
            one.cause() == TrustCause::BusyMachine && one.weight() != Weight::Aside
        };
        let spoiled = of_points.iter().chain(&before).find(spoils);
        let busy = of_points.iter().find(is_host);
        let is_excused = self.outcome == BoundVerdict::Broken && !self.is_broken_by_a_stall(points);
        let busy = busy.filter(|_| is_excused);
        if let Some(found) = spoiled.or(busy)
            && self.outcome != BoundVerdict::NotMeasured
        {
            self.why.clone_from(&found.what);
            self.outcome = BoundVerdict::NotMeasured;
            self.more_s = None;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::FindingName;

    fn line(outcome: BoundVerdict) -> ExpectedLine {
        ExpectedLine {
            outcome,
            condition: "iops>=100".parse().unwrap(),
            load: "depth 32".into(),
            figure: Some(90.0.into()),
            unit: Unit::PerSecond,
            operations: 900,
            measured_s: 10.0,
            more_s: None,
            why: String::new(),
        }
    }

    #[test]
    fn a_stall_longer_than_a_busy_host_can_make_is_the_storages() {
        let outcome = |longest_seconds: f64| {
            let record = rigel_analyse::examples::sessions(Ratio::ZERO);
            let mut point = rigel_analyse::summarise(&record);
            point.coordinates = Coordinates::at_depth(32);
            let hint = "give it a CPU";
            let busy = Finding::warning(FindingName::Descheduled, "it waited 33 %", hint);
            point.findings.push(busy);
            point.classes[0].stalls.longest_seconds = longest_seconds;
            let line = ExpectedLine {
                condition: "no stall>1s".parse().unwrap(),
                ..line(BoundVerdict::Broken)
            };
            line.unless_host_limits(&[point], &[]).outcome
        };
        assert_eq!(outcome(5.08), BoundVerdict::Broken);
        assert_eq!(outcome(1.5), BoundVerdict::NotMeasured);
    }

    #[test]
    fn a_busy_machine_excuses_what_is_not_met_and_memory_is_no_storage() {
        let record = rigel_analyse::examples::sessions(Ratio::ZERO);
        let mut point = rigel_analyse::summarise(&record);
        point.coordinates = Coordinates::at_depth(32);
        let busy = Finding::warning(FindingName::CpuStolen, "the hypervisor took 9 %", "");
        point.findings = vec![busy];
        let after = |outcome, point: &PointSummary, before: &[Finding]| {
            let line = line(outcome);
            let line = line.unless_host_limits(std::slice::from_ref(point), before);
            (line.outcome, line.why)
        };
        let (outcome, why) = after(BoundVerdict::Broken, &point, &[]);
        assert_eq!(outcome, BoundVerdict::NotMeasured);
        assert_eq!(why, "the hypervisor took 9 %");
        for outcome in [BoundVerdict::Kept, BoundVerdict::Undecided] {
            assert_eq!(after(outcome, &point, &[]).0, outcome);
        }
        // Another load is not concerned.
        point.coordinates = Coordinates::at_depth(1);
        assert_eq!(
            after(BoundVerdict::Broken, &point, &[]).0,
            BoundVerdict::Broken
        );
        let memory = [Finding::warning(
            FindingName::MemoryDevice,
            "it is zram",
            "give a disk",
        )];
        let (outcome, why) = after(BoundVerdict::Kept, &point, &memory);
        assert_eq!(
            (outcome, why.as_str()),
            (BoundVerdict::NotMeasured, "it is zram")
        );
    }
}
