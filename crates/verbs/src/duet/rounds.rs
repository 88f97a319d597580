//! The rounds of a duet: what they say of an arm against the first, and whether that is enough.
//!
//! Input: the visits to each arm. The arms of one round were measured within seconds of each other, in
//! random order: what the storage did meanwhile it did to all of them, and the logarithms of their ratios
//! differ by far less than their throughputs do from round to round.

use super::request::DuetRequest;
use rigel_analyse::figures::confidence::ERROR_MIN;
use rigel_analyse::{BoundVerdict, Estimate, Level, Limits, Looks, PointSummary};
use rigel_stats::mean::{Interval, Mean};
use serde::Serialize;

/// Minimum number of rounds for an answer: with fewer nobody knows how they differ.
pub(super) const ROUNDS_LEAST: usize = 8;

/// Longer than this many times the measured time is not suggested.
const TIMES_MOST: f64 = 1000.0;

/// What is known of an arm against the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DuetAnswer {
    /// Its throughput is another one.
    Different,
    /// Its throughput differs by no more than the margin.
    Equivalent,
    /// Neither is certain.
    Undecided,
}

impl DuetAnswer {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Different => "different",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
        }
    }
}

/// Bytes per second of each visit to an arm.
fn throughputs(request: &DuetRequest, done: &[PointSummary], arm: u32) -> Vec<f64> {
    let coordinates = request.coordinates(arm);
    let point = done.iter().find(|point| point.coordinates == coordinates);
    let visits = point.map_or(&[][..], |point| &point.visits);
    let length = f64::from(request.arms[arm as usize].length);
    visits.iter().map(|visit| visit.iops * length).collect()
}

/// The throughput of `arm` as a multiple of the first one's, in each round.
pub(super) fn rounds(request: &DuetRequest, done: &[PointSummary], arm: u32) -> Vec<f64> {
    let (first, own) = (
        throughputs(request, done, 0),
        throughputs(request, done, arm),
    );
    own.iter()
        .zip(first)
        .map(|(own, first)| own / first)
        .collect()
}

/// The interval of a multiple, if both ends are known.
fn interval(ratio: Estimate) -> Option<Interval> {
    ratio.interval.and_then(Limits::both)
}

impl DuetRequest {
    /// The multiple that these of single rounds show, with the interval that holds it at every moment of
    /// the run; `None` if nothing completed in one of them.
    pub(super) fn estimate(&self, rounds: &[f64]) -> Option<Estimate> {
        let logs: Vec<f64> = rounds.iter().map(|ratio| ratio.ln()).collect();
        let middle = logs.iter().sum::<f64>() / logs.len() as f64;
        if !middle.is_finite() {
            return None;
        }
        let level = Level {
            looks: Looks::Any,
            error: self.error.get() / (self.arms.len() - 1) as f64,
            batch: 1,
        };
        let ones = vec![1.0; logs.len()];
        let mean = Mean::of_ratio_in(level.batch, &logs, &ones);
        let interval = mean.filter(|_| logs.len() >= ROUNDS_LEAST).map(|mean| {
            let error = mean.error.max(ERROR_MIN);
            let interval = Mean { error, ..mean }.at(level).interval();
            Limits {
                low: interval.low.exp(),
                high: Some(interval.high.exp()),
            }
        });
        Some(Estimate {
            value: middle.exp(),
            interval,
        })
    }

    /// What a multiple says.
    pub(super) fn answer(&self, ratio: Estimate) -> DuetAnswer {
        let margin = self.margin.get();
        match interval(ratio) {
            Some(of) if of.low >= 1.0 - margin && of.high <= 1.0 + margin => DuetAnswer::Equivalent,
            Some(of) if !of.contains(1.0) => DuetAnswer::Different,
            _ => DuetAnswer::Undecided,
        }
    }

    /// Whether an arm is as fast as it must be; without a limit, whether its answer is known.
    pub(super) fn verdict(&self, ratio: Estimate) -> BoundVerdict {
        let least = self.slower_most.map(|most| 1.0 - most.get());
        match (least, interval(ratio)) {
            (Some(least), Some(of)) if of.low >= least => BoundVerdict::Kept,
            (Some(least), Some(of)) if of.high < least => BoundVerdict::Broken,
            (None, _) if self.answer(ratio) != DuetAnswer::Undecided => BoundVerdict::Kept,
            _ => BoundVerdict::Undecided,
        }
    }

    /// True if more rounds are not needed. A difference that is certain, but may be within the margin, is
    /// measured on: it may turn out to be none that matters.
    pub(super) fn is_decided(&self, ratio: Estimate) -> bool {
        let is_small = (ratio.value - 1.0).abs() <= self.margin.get();
        let may_be_none =
            self.slower_most.is_none() && is_small && self.answer(ratio) == DuetAnswer::Different;
        self.verdict(ratio) != BoundVerdict::Undecided && !may_be_none
    }

    /// How many times as much must be measured until an answer is certain.
    pub(super) fn times(&self, ratio: Estimate) -> Option<f64> {
        let Interval { low, high } = interval(ratio)?;
        let half = (high / low).ln() / 2.0;
        let distance = if let Some(most) = self.slower_most {
            (ratio.value / (1.0 - most.get())).ln().abs()
        } else {
            // From no difference, or from the end of the margin.
            let away = ratio.value.ln().abs();
            away.max(self.margin.get().ln_1p() - away)
        };
        let times = (half / distance).powi(2);
        (times.is_finite() && times <= TIMES_MOST).then_some(times.max(1.0))
    }
}
