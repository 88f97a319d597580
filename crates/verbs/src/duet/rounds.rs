//! The rounds of a duet: what they say of an arm against the first, and whether that is enough.
//!
//! Input: the visits to each arm. The arms of one round were measured within seconds of each other, in
//! random order: what the storage did meanwhile it did to all of them, and their ratios differ by far less
//! than their throughputs do from round to round.

use super::request::DuetRequest;
use rigel_analyse::point::summary::VisitFigures;
use rigel_analyse::{BoundVerdict, Estimate, Level, Limits, Looks, PointSummary, Wanted};
use rigel_stats::estimate::ERROR_MIN;
use rigel_stats::mean::{Interval, Mean};
use serde::Serialize;

/// Minimum number of rounds for an answer: with fewer nobody knows how they differ.
pub(super) const ROUNDS_LEAST: usize = 8;

/// Number of rounds that count as one value: they are seconds apart.
const BATCH: usize = 1;

/// An upper end beyond this many times the figure says nothing.
const HIGH_MOST: f64 = 1000.0;

/// Longer than this many times the measured time is not suggested.
const TIMES_MOST: f64 = 1000.0;

/// What is known of an arm against the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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

/// A figure by which arms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DuetFigure {
    /// Bytes per second.
    Throughput,
    /// Median response time.
    P50,
    /// Its 99th percentile.
    P99,
}

impl DuetFigure {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }

    fn is_better_if_more(self) -> bool {
        self == Self::Throughput
    }

    /// Its value in a visit with I/Os of `length` bytes; `None` if nothing completed.
    fn of(self, visit: &VisitFigures, length: u32) -> Option<f64> {
        match self {
            Self::Throughput => Some(visit.iops * f64::from(length)),
            Self::P50 => visit.p50_us,
            Self::P99 => visit.p99_us,
        }
    }
}

/// The visits to an arm.
fn visits<'a>(
    request: &DuetRequest,
    done: &'a [PointSummary],
    arm: u32,
) -> impl Iterator<Item = &'a VisitFigures> {
    let coordinates = request.coordinates(arm);
    let point = done.iter().find(|point| point.coordinates == coordinates);
    point.map_or(&[][..], |point| &point.visits).iter()
}

/// A figure of an arm and of the first one in one round; not a number where it is unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundOfTwo {
    own: f64,
    first: f64,
}

impl RoundOfTwo {
    /// The figure as a multiple of the first one's.
    pub(super) fn ratio(self) -> f64 {
        self.own / self.first
    }
}

/// A figure of `arm` and of the first in each round.
pub(super) fn rounds(
    request: &DuetRequest,
    done: &[PointSummary],
    arm: u32,
    figure: DuetFigure,
) -> Vec<RoundOfTwo> {
    let value = |visit: &VisitFigures, arm: u32| {
        let length = request.arms[arm as usize].length;
        figure.of(visit, length).unwrap_or(f64::NAN)
    };
    visits(request, done, arm)
        .zip(visits(request, done, 0))
        .map(|(own, first)| RoundOfTwo {
            own: value(own, arm),
            first: value(first, 0),
        })
        .collect()
}

impl DuetFigure {
    /// The logarithm of the multiple that these rounds show, and what is known of its error. Operations add up,
    /// so that of throughput all rounds together are compared, in which a stall has the weight of its length.
    /// Times of rounds do not add up: of them it is the mean of the logarithms.
    fn log_ratio(self, rounds: &[RoundOfTwo]) -> (f64, Option<Mean>) {
        let all = |of: fn(&RoundOfTwo) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
        if self == Self::Throughput {
            let (own, first) = (all(|round| round.own), all(|round| round.first));
            let ratio = own.iter().sum::<f64>() / first.iter().sum::<f64>();
            let mean = Mean::of_ratio_in(BATCH, &own, &first);
            let of_logarithm = |mean: Mean| Mean {
                value: ratio.ln(),
                error: mean.error / ratio,
                ..mean
            };
            return (ratio.ln(), mean.map(of_logarithm));
        }
        let logs = all(|round| round.ratio().ln());
        let middle = logs.iter().sum::<f64>() / logs.len() as f64;
        (
            middle,
            Mean::of_ratio_in(BATCH, &logs, &vec![1.0; logs.len()]),
        )
    }
}

/// The interval of a multiple, if both ends are known.
fn interval(ratio: Estimate) -> Option<Interval> {
    ratio.interval.and_then(Limits::both)
}

/// Fewest operations of a visit of which the 99th percentile is compared: five are slower.
const OF_P99_LEAST: u64 = 500;

impl DuetRequest {
    /// What arms are compared by: what is offered is served at the same rate by all that can.
    pub(super) fn figures(&self) -> Vec<DuetFigure> {
        match self.rate_per_s {
            None => vec![DuetFigure::Throughput],
            Some(rate) if rate < OF_P99_LEAST => vec![DuetFigure::P50],
            Some(_) => vec![DuetFigure::P50, DuetFigure::P99],
        }
    }

    /// The multiple of a figure that these rounds show, with the interval that holds it at every moment of
    /// the run; `None` if nothing completed, of times also in one of them.
    pub(super) fn estimate(&self, figure: DuetFigure, rounds: &[RoundOfTwo]) -> Option<Estimate> {
        let (middle, mean) = figure.log_ratio(rounds);
        if !middle.is_finite() {
            return None;
        }
        let level = Level {
            looks: Looks::Any,
            error: self.error.get() / ((self.arms.len() - 1) * self.figures().len()) as f64,
            batch: BATCH,
        };
        let interval = mean.filter(|_| rounds.len() >= ROUNDS_LEAST).map(|mean| {
            let error = mean.error.max(ERROR_MIN);
            let interval = Mean { error, ..mean }.at(level).interval();
            let high = interval.high.exp();
            Limits {
                low: interval.low.exp(),
                high: Some(high).filter(|high| *high < HIGH_MOST * middle.exp()),
            }
        });
        Some(Estimate::new(middle.exp(), interval))
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

    /// The multiple of a figure beyond which an arm is slower than it may be.
    fn limit(&self, figure: DuetFigure) -> Option<Wanted> {
        let as_fast = if figure.is_better_if_more() {
            Wanted::AtLeast(1.0)
        } else {
            Wanted::AtMost(1.0)
        };
        Some(as_fast.forgiving(self.slower_most?.get()))
    }

    /// Whether an arm is as fast as it must be; without a limit, whether its answer is known.
    pub(super) fn verdict(&self, figure: DuetFigure, ratio: Estimate) -> BoundVerdict {
        let Some(limit) = self.limit(figure) else {
            return match self.answer(ratio) {
                DuetAnswer::Undecided => BoundVerdict::Undecided,
                DuetAnswer::Different | DuetAnswer::Equivalent => BoundVerdict::Kept,
            };
        };
        ratio.against(limit)
    }

    /// True if more rounds are not needed. A difference that is certain, but may be within the margin, is
    /// measured on: it may turn out to be none that matters.
    pub(super) fn is_decided(&self, figure: DuetFigure, ratio: Estimate) -> bool {
        let is_small = (ratio.value - 1.0).abs() <= self.margin.get();
        let may_be_none =
            self.slower_most.is_none() && is_small && self.answer(ratio) == DuetAnswer::Different;
        self.verdict(figure, ratio) != BoundVerdict::Undecided && !may_be_none
    }

    /// True if an arm is as good as the first, or as it must be.
    pub(super) fn is_as_good(&self, figure: DuetFigure, ratio: Estimate) -> bool {
        match self.slower_most {
            None => self.answer(ratio) == DuetAnswer::Equivalent,
            Some(_) => self.verdict(figure, ratio) == BoundVerdict::Kept,
        }
    }

    /// How many times as much must be measured until an answer is certain.
    pub(super) fn times(&self, figure: DuetFigure, ratio: Estimate) -> Option<f64> {
        let Interval { low, high } = interval(ratio)?;
        let half = (high / low).ln() / 2.0;
        let distance = if let Some(limit) = self.limit(figure) {
            (ratio.value / limit.limit()).ln().abs()
        } else {
            // From no difference, or from the end of the margin.
            let away = ratio.value.ln().abs();
            away.max(self.margin.get().ln_1p() - away)
        };
        let times = (half / distance).powi(2);
        (times.is_finite() && times <= TIMES_MOST).then_some(times.max(1.0))
    }
}
