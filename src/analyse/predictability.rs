//! What a series of rounds says: how much of its throughput and latency can be relied on, and what changed when.
//!
//! Goes in: rounds, ascending by time, and what was asked of them. Comes out: figures of the whole, changes with their
//! dates and sizes, slowdowns, objectives with their budgets, and a verdict in a sentence. Pure, and never fails: what
//! it cannot tell it leaves out. docs/methods/predictability.md has every formula with its source.

use super::budget::{ObjectiveResult, objectives};
use super::change_points::{Explained, Series, StepFound, VALUES_MIN, WORTH_TELLING, Wave, explain};
use super::episodes::{Episode, episodes};
use super::fixed_work::{CutRounds, cut_rounds};
use super::host_shift::{HostShift, host_shifts};
use super::robust::median;
use super::rounds::{Round, RoundEnd};
use super::series_figures::{SeriesFigures, series_figures};
use super::statistics::{Interval, t_quantile};
use super::verdict::{troubles, verdict};
use crate::model::{Finding, Moment, Objective, Resolution};
use serde::Serialize;

/// The share of a change's size by which the medians on both sides of it must differ.
const SEEN: f64 = 0.25;

/// What was asked of a series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PredictabilityTerms {
    /// What each round must keep, in the order of [`Round::kept`].
    pub objectives: Vec<Objective>,
    /// The share of time for which each objective must be kept, such as 0.99.
    pub share: f64,
    /// From the beginning of one round to that of the next, in seconds; none where that is not known.
    pub every_seconds: Option<f64>,
    /// How many rounds were to take place; none where that is not known.
    pub planned: Option<u32>,
    /// Operations were due at times of their own. Then throughput is what was asked for, and response time tells.
    pub is_open: bool,
}

/// What a series of rounds says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predictability {
    /// The verdict in a word.
    pub word: Word,
    /// The verdict in a sentence or two.
    pub verdict: String,
    /// To what moments in it are told.
    #[serde(skip)]
    pub resolution: Resolution,
    /// What the verdict goes by: response time of an open load, where it is known, else throughput.
    pub judged_by: Quantity,
    /// What went wrong so often that no figure of the other rounds makes up for it: rounds without a figure, failed
    /// operations, rounds in which nothing was done. In sentences, which the verdict begins with.
    pub troubles: Vec<String>,
    /// What became of the rounds.
    pub rounds: RoundCounts,
    /// Rounds that a time limit cut; none if there was none, or it cannot be told.
    pub cut: Option<CutRounds>,
    /// Of the rate, in operations a second. None if no round was measured.
    pub rate: Option<SeriesFigures>,
    /// Of the median response time, in microseconds.
    pub p50_us: Option<SeriesFigures>,
    /// Of the time that 99 % do not exceed, in microseconds.
    pub p99_us: Option<SeriesFigures>,
    /// What changed too often for its changes to be told apart. Nothing else is told of it: neither changes nor trends,
    /// nor what follows the day, nor slowdowns, nor single rounds.
    pub changed_too_often: Vec<Quantity>,
    /// Where the level changed for good, ascending by quantity and time.
    pub changes: Vec<ChangePoint>,
    /// What rose or fell steadily.
    pub trends: Vec<Trend>,
    /// What follows the hour of the day.
    pub daily: Vec<DailyPattern>,
    /// Single rounds that stand out from their neighbours.
    pub outliers: Vec<Outlier>,
    /// Slowdowns that began within the series.
    pub episodes: Vec<Episode>,
    /// How the objectives were kept, in their order.
    pub objectives: Vec<ObjectiveResult>,
}

/// A verdict in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Fewer than ten rounds were measured: it is too early to judge.
    TooFew,
    /// The same all the time.
    Steady,
    /// It follows the hour of the day, and is steady but for that.
    Daily,
    /// It rises or falls steadily.
    Drifting,
    /// It changed from one level to another.
    Stepped,
    /// It slowed down for a while, or has not come back since.
    Slowed,
    /// It differs from round to round without a pattern that was found: throughput by more than 10 %, p99 by more than
    /// a quarter.
    Erratic,
    /// Too many rounds could not be measured, operations failed, or nothing was done in some rounds; what was measured
    /// shows no other pattern.
    Failing,
}

/// What became of the rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RoundCounts {
    /// That were to take place; none where that is not known.
    pub planned: Option<u32>,
    /// That have a rate to go by.
    pub measured: usize,
    /// That could not be measured, or not to their end.
    pub broken: usize,
    /// That somebody ended.
    pub stopped: usize,
    /// That did not take place: their numbers are missing before the last.
    pub missing: usize,
    /// That are still to come, or were never begun: planned, after the last.
    pub ahead: usize,
    /// Operations that failed, in all rounds.
    pub failed_operations: u64,
}

/// Which figure of the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Operations a second.
    Rate,
    /// The time that 99 % do not exceed, in microseconds.
    P99Us,
}

impl Quantity {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Rate => "throughput",
            Quantity::P99Us => "p99",
        }
    }
}

/// A figure that changed from one round to the next and stayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangePoint {
    /// What changed.
    pub of: Quantity,
    /// The first round after the change began then.
    pub at: Moment,
    /// Number of that round.
    pub round: u32,
    /// Where it went down or up in several steps the same way, the last of them; none for a change at once.
    pub until: Option<Moment>,
    /// How many times as much it was after.
    pub factor: f64,
    /// 95 % interval of the factor; of a change at once only.
    pub interval: Option<Interval>,
    /// What changed on the host. None where nothing is known of it; empty where nothing moved.
    pub host: Option<Vec<HostShift>>,
}

/// A figure that rose or fell all the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// What rose or fell.
    pub of: Quantity,
    /// How many times as much it was a day later: 0.98 is 2 % less a day.
    pub factor_per_day: f64,
    /// 95 % interval of that.
    pub interval: Interval,
    /// How many times as much it was at the end of the series as at its beginning.
    pub factor: f64,
}

/// A figure that follows the hour of the day.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DailyPattern {
    /// What follows it.
    pub of: Quantity,
    /// Hour at which it is greatest, 0 to 23.
    pub peak_hour: u32,
    /// How many times the day's level it is then.
    pub peak_factor: f64,
    /// Hour at which it is least.
    pub trough_hour: u32,
    /// How many times the day's level it is then.
    pub trough_factor: f64,
    /// Median of the rounds that began in each hour, in times the day's level; none where no round began.
    pub hours: Vec<Option<f64>>,
}

/// A single round that stands out from those around it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlier {
    /// What stands out.
    pub of: Quantity,
    /// When the round began.
    pub at: Moment,
    /// Its number.
    pub round: u32,
    /// Its figure.
    pub value: f64,
    /// How many times the median of the five rounds around it.
    pub factor: f64,
}

/// Puts rounds in the order in which they began. What a reader must know of it, if they were not: a clock that was set
/// back.
#[must_use]
pub fn order(rounds: &mut [Round]) -> Option<Finding> {
    let goes_back = |two: &&[Round]| two[1].begin < two[0].begin;
    let first = rounds.windows(2).find(goes_back).map(|two| (two[1].number, two[0].begin.since(two[1].begin)))?;
    let times = rounds.windows(2).filter(goes_back).count();
    rounds.sort_by_key(|round| round.begin);
    let more = if times > 1 { format!(", and {} more times", times - 1) } else { String::new() };
    let what = format!(
        "by its date round {} began {} s before the one it follows{more}: the clock was set back. Rounds stand in the \
         order of their dates",
        first.0, first.1
    );
    Some(Finding::note("clock-back", what))
}

/// What a series of rounds says.
#[must_use]
pub fn predictability(rounds: &[Round], terms: &PredictabilityTerms) -> Predictability {
    let mut in_order;
    let rounds = if rounds.is_sorted_by_key(|round| round.begin) {
        rounds
    } else {
        in_order = rounds.to_vec();
        in_order.sort_by_key(|round| round.begin);
        &in_order
    };
    let counting: Vec<&Round> = rounds.iter().filter(|round| round.counts() && known(round.rate).is_some()).collect();
    let figures = |value: fn(&Round) -> Option<f64>| {
        let known = counting.iter().filter_map(|round| Some((*round, known(value(round))?)));
        series_figures(&known.collect::<Vec<_>>())
    };
    let p99_us = figures(|round| round.p99_us);
    let tells = terms.is_open && p99_us.as_ref().is_some_and(|p99| p99.rounds >= VALUES_MIN);
    let mut found = Predictability {
        word: Word::TooFew,
        verdict: String::new(),
        resolution: resolution(rounds),
        judged_by: if tells { Quantity::P99Us } else { Quantity::Rate },
        troubles: Vec::new(),
        rounds: counts(rounds, counting.len(), terms.planned),
        cut: cut_rounds(&counting),
        rate: figures(|round| round.rate),
        p50_us: figures(|round| round.p50_us),
        p99_us,
        changed_too_often: Vec::new(),
        changes: Vec::new(),
        trends: Vec::new(),
        daily: Vec::new(),
        outliers: Vec::new(),
        episodes: Vec::new(),
        objectives: objectives(rounds, terms),
    };
    for of in [Quantity::Rate, Quantity::P99Us] {
        tell(&mut found, of, &counting);
    }
    found.troubles = troubles(rounds, &counting, &found.rounds);
    (found.word, found.verdict) = verdict(&found, &counting);
    found
}

/// That of the usual distance from one round to the next.
fn resolution(rounds: &[Round]) -> Resolution {
    let distances = rounds.windows(2).map(|two| two[1].begin.since(two[0].begin) as f64);
    median(&distances.collect::<Vec<_>>()).map_or(Resolution::Minutes, Resolution::of_steps)
}

/// A figure that is one. A rate of 0 is: the storage did nothing.
pub(super) fn known(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value >= 0.0)
}

/// What stands for 0 where logarithms are taken: a thousandth of the median of the other values, or half the least of
/// them if that is less.
fn floor(values: &[f64]) -> f64 {
    let positive: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
    let least = positive.iter().copied().fold(f64::INFINITY, f64::min);
    median(&positive).map_or(1.0, |middle| (middle / 1000.0).min(least / 2.0)).max(f64::MIN_POSITIVE)
}

fn counts(rounds: &[Round], measured: usize, planned: Option<u32>) -> RoundCounts {
    let last = rounds.iter().map(|round| round.number).max().unwrap_or(0);
    let first = rounds.iter().map(|round| round.number).min().unwrap_or(1).min(1);
    let with = |end: fn(&RoundEnd) -> bool| rounds.iter().filter(|round| end(&round.end)).count();
    let mut numbers: Vec<u32> = rounds.iter().map(|round| round.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    RoundCounts {
        planned,
        measured,
        broken: with(|end| matches!(end, RoundEnd::Broken(_))),
        stopped: with(|end| *end == RoundEnd::Stopped),
        missing: ((last + 1).saturating_sub(first) as usize).saturating_sub(numbers.len()),
        ahead: planned.unwrap_or(0).saturating_sub(last) as usize,
        failed_operations: rounds.iter().map(|round| round.failed).sum(),
    }
}

/// Puts what explains a quantity into what was found.
fn tell(found: &mut Predictability, of: Quantity, counting: &[&Round]) {
    let value = |round: &Round| match of {
        Quantity::Rate => known(round.rate),
        Quantity::P99Us => known(round.p99_us),
    };
    let known: Vec<&Round> = counting.iter().copied().filter(|round| value(round).is_some()).collect();
    let Some(first) = known.first() else { return };
    let values: Vec<f64> = known.iter().filter_map(|round| value(round)).collect();
    let floor = floor(&values);
    let series = Series {
        seconds: known.iter().map(|round| round.begin.since(first.begin) as f64).collect(),
        of_day: known.iter().map(|round| f64::from(round.begin.second_of_day())).collect(),
        values: values.iter().map(|value| if *value > 0.0 { value.ln() } else { floor.ln() }).collect(),
    };
    let Some(explained) = explain(&series) else { return };
    if explained.too_many || !are_seen(&explained, &series.values) {
        found.changed_too_often.push(of);
        return;
    }
    let changes = changes(&explained, of, &known);
    if of == Quantity::Rate {
        found.episodes = episodes(&known, &series.values, &explained);
    }
    // What a slowdown tells is not told again.
    let within = |change: &ChangePoint| found.episodes.iter().any(|episode| episode.covers(change.at));
    let inside = changes.iter().filter(|change| within(change)).count();
    found.changes.extend(changes.into_iter().filter(|change| inside <= 2 * found.episodes.len() || !within(change)));
    found.trends.extend(explained.slope.and_then(|slope| {
        let half = t_quantile(slope.degrees) * slope.error;
        let days = series.seconds.last()? / 86_400.0;
        let interval = Interval { low: (slope.value - half).exp(), high: (slope.value + half).exp() };
        let trend = Trend { of, factor_per_day: slope.value.exp(), interval, factor: (slope.value * days).exp() };
        [trend.factor_per_day, trend.factor, interval.high].iter().all(|value| value.is_finite()).then_some(trend)
    }));
    found.daily.extend(explained.daily.map(|wave| daily(of, wave, &series, &explained)));
    let outlier = |at: &usize| {
        let from = at.saturating_sub(2).min(known.len().saturating_sub(5));
        let around: Vec<f64> =
            known[from..(from + 5).min(known.len())].iter().filter_map(|round| value(round)).collect();
        let (value, around) = (value(known[*at])?, median(&around).filter(|around| *around > 0.0)?);
        Some(Outlier { of, at: known[*at].begin, round: known[*at].number, value, factor: value / around })
    };
    found.outliers.extend(explained.outliers.iter().filter_map(outlier));
}

/// Each change that would be told shows in the values themselves: the median behind it differs from that before it, the
/// same way and by a quarter of its size at least. Where it does not, its counterpart was not found, or a slope was
/// fitted to make good for steps that all go one way.
fn are_seen(explained: &Explained, values: &[f64]) -> bool {
    told_together(explained).iter().all(|part| {
        let (from, until) = around(explained, part, values.len());
        let size: f64 = part.iter().map(|step| step.size.value).sum();
        let (first, last) = (part[0].at, part[part.len() - 1].at);
        let seen = |values: &[f64]| {
            let (before, after) = median(&values[from..first]).zip(median(&values[last..until])).unwrap_or_default();
            (after - before) / size >= SEEN
        };
        seen(&explained.levelled) && (part.len() == 1 || seen(values))
    })
}

/// The steps that are worth telling, put together where they are told as one change: three and more the same way, one
/// after the other.
fn told_together(explained: &Explained) -> Vec<Vec<StepFound>> {
    let steps: Vec<_> = explained.steps.iter().copied().filter(|step| step.size.value.abs() >= WORTH_TELLING).collect();
    let same_way = steps.chunk_by(|one, other| (one.size.value > 0.0) == (other.size.value > 0.0));
    same_way.flat_map(|group| group.chunks(if group.len() < 3 { 1 } else { group.len() }).map(<[_]>::to_vec)).collect()
}

/// From the step before the first of these to the one behind the last.
fn around(explained: &Explained, part: &[StepFound], n: usize) -> (usize, usize) {
    let (first, last) = (part[0].at, part[part.len() - 1].at);
    let before = explained.steps.iter().rev().find(|step| step.at < first).map_or(0, |step| step.at);
    let after = explained.steps.iter().find(|step| step.at > last).map_or(n, |step| step.at);
    (before, after)
}

/// The steps that are worth telling; three and more the same way, one after the other, are one change that took a
/// while.
fn changes(explained: &Explained, of: Quantity, known: &[&Round]) -> Vec<ChangePoint> {
    let change = |part: Vec<StepFound>| {
        let (first, last) = (part[0], part[part.len() - 1]);
        let sum: f64 = part.iter().map(|step| step.size.value).sum();
        let half = t_quantile(first.size.degrees) * first.size.error;
        let until = (part.len() > 1).then(|| known[last.at].begin);
        let (before, after) = around(explained, &part, known.len());
        ChangePoint {
            of,
            at: known[first.at].begin,
            round: known[first.at].number,
            until,
            factor: sum.exp(),
            interval: until.is_none().then(|| Interval { low: (sum - half).exp(), high: (sum + half).exp() }),
            host: host_shifts(&known[before..first.at], &known[last.at..after]),
        }
    };
    told_together(explained).into_iter().map(change).collect()
}

fn daily(of: Quantity, wave: Wave, series: &Series, explained: &Explained) -> DailyPattern {
    let (greatest, least) = wave.extremes();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an hour of the day, below 24")]
    let hour = |second: f64| (second / 3600.0) as u32;
    let level = |at: usize| -> f64 {
        explained.steps.iter().filter(|step| step.at <= at).map(|step| step.size.value).sum::<f64>()
    };
    let flat: Vec<f64> = explained.levelled.iter().enumerate().map(|(at, value)| value - level(at)).collect();
    let middle = median(&flat).unwrap_or(0.0);
    let of_hour = |wanted: u32| {
        let of_hour: Vec<f64> = (0..flat.len())
            .filter(|at| hour(series.of_day[*at]) == wanted)
            .map(|at| flat[at] - middle + wave.at(series.of_day[at]))
            .collect();
        median(&of_hour).map(f64::exp)
    };
    DailyPattern {
        of,
        peak_hour: hour(greatest),
        peak_factor: wave.at(greatest).exp(),
        trough_hour: hour(least),
        trough_factor: wave.at(least).exp(),
        hours: (0..24).map(of_hour).collect(),
    }
}
