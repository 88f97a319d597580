//! The results of a soak.
//!
//! Input: the records of a soak, one after the other, so that a journal of weeks is never in memory
//! as a whole. Output: a [`SoakResult`].

use super::causes::Causes;
use super::fixed_work::is_without_gap;
use super::imported::rounds;
use super::predictability::{order, predictability};
use super::rounds::{Round, round};
use super::types::{Predictability, PredictabilityTerms, Samples};
use super::wall_clock::WallClock;
use crate::compare::subject::Maxima;
use crate::conclusion::sight::{Sight, SightReader};
use crate::figures::latency::LatencySummary;
use crate::figures::modes::ModesReader;
use crate::figures::quantity::{counted, per_second, time};
use crate::point::events::Events;
use crate::point::stalls::StallsSeen;
use crate::point::suspended;
use crate::ranks::{SoakHosts, SoakHostsReader};
use crate::search::credit::CreditReader;
use crate::search::run_checks::{SEE_THE_LOGS, is_stalled};
use crate::series::soak_request::SoakRequest;
use rigel_model::record::imported::ImportedSeries;
use rigel_model::record::journal::Run;
use rigel_model::record::{Histogram, PointRecord, RankRecord, Suspension, Verified};
use rigel_model::{Finding, FindingName, Load, Objective};

/// A series of rounds with its analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct SoakResult {
    /// The rounds, ascending by time.
    pub rounds: Vec<Round>,
    /// Their analysis.
    pub found: Predictability,
    /// The hosts, if several ranks measured each round together.
    pub hosts: Option<SoakHosts>,
    /// What looking at the blocks of all rounds found.
    pub verified: Option<Verified>,
    /// What its rounds cannot have seen.
    pub sight: Sight,
    /// Findings that are not in the header.
    pub findings: Vec<Finding>,
}

impl SoakResult {
    /// Analyses a series of throughput that another tool measured, as if its samples were rounds.
    /// `None` if there are fewer than two.
    pub fn of_imported(series: &ImportedSeries) -> Option<Self> {
        let mut rounds = rounds(series);
        let findings = order(&mut rounds).into_iter().collect();
        let is_tiled = is_without_gap(&rounds.iter().collect::<Vec<_>>());
        let terms = PredictabilityTerms {
            samples: if is_tiled {
                Samples::Intervals
            } else {
                Samples::Rounds
            },
            ..PredictabilityTerms::default()
        };
        let predictability = predictability(&rounds, &terms);
        (rounds.len() > 1).then_some(Self {
            rounds,
            found: predictability,
            hosts: None,
            verified: None,
            sight: Sight::default(),
            findings,
        })
    }
}

/// The operations that took far longer than the others of their round.
#[derive(Debug, Clone, Copy, Default)]
struct Longest {
    /// Rounds with such an operation, of all.
    rounds: u64,
    of: u64,
    /// The longest, in microseconds.
    max_us: f64,
    /// What most of its round took at most, in microseconds, and the share of them.
    usual_us: f64,
    usual_share: &'static str,
}

impl Longest {
    /// An operation took far longer than the p99; or, where the p99 itself has waited, than the median.
    fn add(&mut self, round: &Round) {
        const WAITING_US: f64 = 500_000.0;
        const WAITING_TIMES: f64 = 500.0;
        self.of += 1;
        let LatencySummary {
            max_us: Some(max_us),
            p99_us: Some(p99_us),
            p50_us: Some(p50_us),
            ..
        } = round.latency
        else {
            return;
        };
        let is_waiting = max_us >= WAITING_US && max_us >= WAITING_TIMES * p50_us;
        // Where less is served than is offered, what waits for ever longer is no stall, unless half did not wait.
        let is_alone = is_stalled(max_us, p99_us) && !round.is_overloaded();
        if is_alone || is_waiting {
            self.rounds += 1;
            if max_us > self.max_us {
                self.max_us = max_us;
                (self.usual_us, self.usual_share) = if is_alone {
                    (p99_us, "99 %")
                } else {
                    (p50_us, "half")
                };
            }
        }
    }

    fn in_words(&self) -> Option<String> {
        (self.rounds > 0).then(|| {
            format!(
                "in {} of {} rounds an operation took far longer than the others, at most {}, where {} took up \
                 to {}",
                self.rounds,
                self.of,
                time(self.max_us),
                self.usual_share,
                time(self.usual_us)
            )
        })
    }
}

/// The times of a round whose operations are of one kind: reads and writes are two modes anyway.
fn of_one_kind(record: &PointRecord) -> Option<Histogram> {
    let [stream] = record.streams.as_slice() else {
        return None;
    };
    let kinds = stream.kinds.iter().filter(|kind| kind.done() > 0);
    (kinds.count() == 1).then(|| stream.total().response.histogram)
}

/// The rounds of a soak so far.
#[derive(Debug, Clone, Default)]
pub struct SoakReader {
    objectives: Vec<Objective>,
    rounds: Vec<Round>,
    causes: Causes,
    credit: CreditReader,
    sight: SightReader,
    modes: ModesReader,
    stalls: StallsSeen,
    longest: Longest,
    verified: Option<Verified>,
    /// Times in which Rigel itself did not run, and whether a round contains one.
    suspended: (Vec<Suspension>, bool),
    of_ranks: SoakHostsReader,
    hosts: Option<SoakHosts>,
    clock: WallClock,
}

impl SoakReader {
    /// A reader for a soak of this request, without rounds yet.
    pub fn new(request: &SoakRequest) -> Self {
        Self {
            objectives: request.objectives.clone(),
            clock: WallClock::new(request.every),
            ..Self::default()
        }
    }

    /// Adds a record; records that are not rounds are ignored, and those in which Rigel itself did not run.
    pub fn add(&mut self, record: &PointRecord) {
        self.suspended.0.extend(&record.suspended);
        let Some(record) = record.outside_suspensions() else {
            return;
        };
        self.suspended.1 |= record.has_suspensions();
        self.add_round(&record);
    }

    fn add_round(&mut self, record: &PointRecord) {
        if let Some(mut round) = round(record, &self.objectives) {
            self.clock.correct(&mut round, record.began);
            self.causes.add(&round, record);
            self.sight.add(record);
            let verified = [self.verified.as_ref(), record.verified.as_ref()];
            self.verified = Verified::sum(verified.into_iter());
            if let Some(times) = of_one_kind(record) {
                self.modes.add(&times);
            }
            self.stalls.add(&Events::stalls_of(record), round.seconds);
            self.longest.add(&round);
            if let Some(rate) = round.counted_rate() {
                self.credit.add(record, rate);
            }
            self.rounds.push(round);
        }
    }

    /// Adds what each rank measured of a round.
    pub fn add_parts(&mut self, parts: &[RankRecord]) {
        self.of_ranks.add(parts);
    }

    /// Takes what the journal says of ranks that were lost and of its end, after the last round.
    pub fn end(&mut self, run: &Run) {
        let group = run.header.ranks.as_deref();
        self.hosts = group.map(|group| self.of_ranks.result(group, run));
    }

    /// Warns of what the throughput of rounds does not show.
    fn stalled(&self) -> Option<Finding> {
        let both = [self.longest.in_words(), self.stalls.in_words("round")];
        let said: Vec<String> = both.into_iter().flatten().collect();
        let is_some = !said.is_empty();
        is_some.then(|| Finding::warning(FindingName::Stall, said.join("; "), SEE_THE_LOGS))
    }

    /// Says that less was served than was offered.
    fn not_served(&self, load: Load) -> Option<Finding> {
        let Load::Open { rate, .. } = load else {
            return None;
        };
        let overloaded = self.rounds.iter().filter(|round| round.is_overloaded());
        let overloaded = overloaded.count();
        let what = format!(
            "in {overloaded} of {} less was served than the {} offered",
            counted(self.rounds.len() as u64, "round"),
            per_second(rate)
        );
        (overloaded > 0).then(|| Finding::note(FindingName::RateNotMet, what))
    }

    /// Analyses the rounds; `request` has their terms.
    pub fn result(mut self, request: &SoakRequest) -> SoakResult {
        let terms = PredictabilityTerms {
            objectives: request.objectives.clone(),
            share: request.share.get(),
            every_seconds: Some(request.every.as_secs_f64()),
            planned: Some(request.rounds()),
            is_open: request.load.is_open(),
            samples: Samples::Rounds,
        };
        let findings = order(&mut self.rounds)
            .into_iter()
            .chain(self.clock.finding())
            .chain(self.causes.findings())
            .chain(self.credit.finding())
            .chain(self.stalled())
            .chain(suspended::of(
                "in rounds",
                &self.suspended.0,
                !self.suspended.1,
            ))
            .chain(self.not_served(request.load))
            .chain(self.modes.finding("I/O of all rounds"))
            .chain(self.hosts.iter().flat_map(SoakHosts::findings))
            .collect();
        let predictability = predictability(&self.rounds, &terms);
        SoakResult {
            rounds: self.rounds,
            found: predictability,
            hosts: self.hosts,
            verified: self.verified,
            sight: self.sight.sight(Maxima::default()),
            findings,
        }
    }
}
