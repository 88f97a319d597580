//! The results of `rigel duet`: for each arm, its throughput as a multiple of the first one's.

use super::request::DuetRequest;
use super::rounds::{DuetAnswer, DuetFigure, ROUNDS_LEAST, RoundOfTwo, rounds};
use crate::expect::result::words;
use crate::naming::Naming;
use crate::verb::incomplete;
use rigel_analyse::search::run_checks;
use rigel_analyse::{
    BoundVerdict, ClassSummary, Criteria, Estimate, PointSummary, summarise_judged, widen,
};
use rigel_model::record::journal::Run;
use rigel_model::record::{PointRecord, StreamRecord};
use rigel_model::{Finding, Ratio, arm_letter};
use serde::Serialize;
use std::cmp::Reverse;
use std::slice;

/// A figure of an arm as a multiple of the first one's.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Compared {
    /// Which figure.
    pub figure: DuetFigure,
    /// The multiple, and its interval at the level of the run; without one after too few rounds, or if
    /// nothing completed in one.
    pub ratio: Estimate,
    /// What follows.
    pub answer: DuetAnswer,
    /// Whether it is as fast as it must be; without a limit, whether the answer is known.
    #[serde(skip)]
    pub verdict: BoundVerdict,
    /// If undecided: how much longer would decide it, in seconds, if the figures stay as they are; `None`
    /// if that is unknown or out of reach.
    pub more_s: Option<f64>,
    /// The multiple in each round.
    pub rounds: Vec<f64>,
    /// What was known after each round, from the first on that has an answer.
    #[serde(skip)]
    pub course: Vec<Estimate>,
}

/// The figures of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ArmResult {
    /// `A`, `B`.
    pub arm: char,
    /// What sets it apart.
    pub name: String,
    /// Completed I/Os per second; of sessions, operations.
    pub iops: Estimate,
    /// Throughput in megabytes per second.
    pub mb_per_s: f64,
    /// Median response time in microseconds.
    pub p50_us: Option<f64>,
    /// Its 99th percentile.
    pub p99_us: Option<f64>,
    /// Number of visits.
    pub visits: usize,
    /// Against the first arm, by each figure; empty for that one, and before both were measured.
    pub against_first: Vec<Compared>,
}

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DuetResult {
    /// The arms, in the order of their letters.
    pub arms: Vec<ArmResult>,
    /// Differences of no more than this are none.
    pub margin: Ratio,
    /// Probability of a wrong answer, at any arm and at any moment.
    pub error: Ratio,
    /// How much slower than the first an arm may be.
    pub slower_most: Option<Ratio>,
    /// Whether no arm is slower by more: `met`, `not met` or `undecided`; `None` without such a limit.
    pub outcome: Option<&'static str>,
    /// Operations offered to each arm per second.
    pub rate_per_s: Option<u64>,
    /// True if the arms were measured at the same time, and not in turn.
    pub together: bool,
    /// Time that the visits took, in seconds.
    #[serde(skip)]
    pub used_s: f64,
    /// By which figures arms are compared.
    #[serde(skip)]
    pub figures: Vec<DuetFigure>,
    /// The unit of `iops`.
    pub rate: &'static str,
    /// All points, in measuring order.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// Findings about the run as a whole; findings about a point are in the point.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

impl DuetRequest {
    fn naming(&self) -> Naming {
        match self.sql {
            Some(_) => Naming::SESSIONS,
            None if self.is_of_logs() => Naming::COMMITS,
            None => Naming::RAW,
        }
    }

    /// The results of a run.
    pub(super) fn results(&self, run: &Run) -> DuetResult {
        let mut results = self.of_records(&run.joined());
        results.findings.extend(incomplete(self, run));
        results
    }

    /// What the records of all arms show, of each the visits joined.
    pub fn of_records(&self, records: &[PointRecord]) -> DuetResult {
        let criteria = Criteria::from(None);
        let mut points: Vec<PointSummary> = records
            .iter()
            .map(|record| summarise_judged(record, &criteria))
            .collect();
        let used = self.used_s(&points);
        let compared: Vec<Vec<Compared>> = self
            .numbers()
            .map(|arm| self.against_first(&points, arm, used))
            .collect();
        widen(&mut points);
        let arms = self.numbers().zip(&self.arms).zip(compared);
        let arms = arms.map(|((number, arm), against_first)| {
            let coordinates = self.coordinates(number);
            let point = points.iter().find(|point| point.coordinates == coordinates);
            let class = point.and_then(|point| point.classes.first());
            let latency = class.and_then(|class| class.latency);
            let iops = class.map_or_else(|| 0.0.into(), ClassSummary::rate);
            let sessions = point.and_then(|point| point.sql.as_ref());
            let blocks_per_s = sessions.map_or(iops.value, |sql| sql.visited.per_s);
            ArmResult {
                arm: arm_letter(number),
                name: arm.name.clone(),
                iops,
                mb_per_s: blocks_per_s * f64::from(arm.length) / 1e6,
                p50_us: latency.map(|latency| latency.p50_us),
                p99_us: latency.map(|latency| latency.p99_us),
                visits: point.map_or(0, PointSummary::visits_made),
                against_first,
            }
        });
        let found = DuetResult {
            arms: arms.collect(),
            margin: self.margin,
            error: self.error,
            slower_most: self.slower_most,
            outcome: None,
            rate_per_s: self.rate_per_s,
            together: self.together,
            used_s: used,
            figures: self.figures(),
            rate: self.naming().rate,
            findings: stalled(records, &points, self.rate_per_s),
            points,
        };
        DuetResult {
            outcome: self.slower_most.map(|_| words(found.outcome())),
            ..found
        }
    }
}

/// True if far less completes in time than is offered.
pub(super) fn is_overloaded(class: &ClassSummary, rate_per_s: Option<u64>) -> bool {
    const SERVED_LEAST: f64 = 0.5;
    rate_per_s.is_some_and(|rate| class.iops < SERVED_LEAST * rate as f64)
}

/// The stalls of each arm, that with the longest first. Where far more is offered than it can do, nothing
/// completes for long and nothing stalls.
fn stalled(
    records: &[PointRecord],
    points: &[PointSummary],
    rate_per_s: Option<u64>,
) -> Vec<Finding> {
    let is_served = |point: &PointSummary| {
        let class = point.classes.first();
        class.is_some_and(|class| !is_overloaded(class, rate_per_s))
    };
    let pairs = records.iter().zip(points);
    let pairs = pairs.filter(|(_, point)| is_served(point));
    let of_arm = |(record, point): (&PointRecord, &PointSummary)| {
        let found = run_checks::stalled(slice::from_ref(record), slice::from_ref(point))?;
        let arm = format!("of {}, ", arm_letter(point.coordinates.arm()?));
        let what = format!("{arm}{}", found.what.replace("; ", &format!("; {arm}")));
        let longest = record.streams.iter().map(StreamRecord::longest).max();
        Some((longest, Finding { what, ..found }))
    };
    let mut findings: Vec<(Option<u64>, Finding)> = pairs.filter_map(of_arm).collect();
    findings.sort_by_key(|(longest, _)| Reverse(*longest));
    findings.into_iter().map(|(_, finding)| finding).collect()
}

impl DuetRequest {
    /// An arm against the first, by each figure, when these seconds were used.
    fn against_first(&self, points: &[PointSummary], arm: u32, used_s: f64) -> Vec<Compared> {
        let compared = |figure: DuetFigure| {
            let rounds = rounds(self, points, arm, figure);
            let ratio = self.estimate(figure, &rounds)?;
            let so_far = (ROUNDS_LEAST..=rounds.len())
                .filter_map(|count| self.estimate(figure, &rounds[..count]));
            Some(Compared {
                figure,
                ratio,
                answer: self.answer(ratio),
                verdict: self.verdict(figure, ratio),
                more_s: self
                    .times(figure, ratio)
                    .map(|times| (times - 1.0) * used_s),
                course: so_far.collect(),
                rounds: rounds.into_iter().map(RoundOfTwo::ratio).collect(),
            })
        };
        let figures = self.figures().into_iter().filter(|_| arm > 0);
        figures.filter_map(compared).collect()
    }
}

impl ArmResult {
    /// This arm against the first by a figure; `None` for the first, and before both were measured.
    pub fn by(&self, figure: DuetFigure) -> Option<&Compared> {
        self.against_first.iter().find(|of| of.figure == figure)
    }
}

impl DuetResult {
    /// The outcome of the run: whether no arm is slower than it may be; without such a limit, whether
    /// every answer is known.
    pub fn outcome(&self) -> BoundVerdict {
        let of_arm = |arm: &ArmResult| match &arm.against_first[..] {
            [] => BoundVerdict::Undecided,
            compared => BoundVerdict::all_of(compared.iter().map(|of| of.verdict)),
        };
        BoundVerdict::all_of(self.arms.iter().skip(1).map(of_arm))
    }
}
