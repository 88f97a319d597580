//! The analysis of a series of rounds: how predictable throughput and latency are, and what changed
//! when.
//!
//! Input: rounds, ascending by time, and their terms. Output: figures of the whole, changes with
//! their dates and sizes, slowdowns, objectives with their budgets, and a verdict in a sentence.
//! Pure, and never fails: it leaves out what it cannot know. docs/methods/predictability.md has
//! every formula with its source.

use super::budget::objectives;
use super::change_points::{Explained, StepFound, VALUES_MIN, explain};
use super::episodes::episodes;
use super::fixed_work::cut_rounds;
use super::host_shift::host_shifts;
use super::log_series::{LogSeries, WORTH_TELLING};
use super::rounds::{Round, RoundEnd};
use super::series_figures::series_figures;
use super::types::{
    CalendarPattern, ChangePoint, Outlier, Predictability, PredictabilityTerms, Predictable,
    Quantity, RangeOfRounds, RoundCounts, SeriesClass, SpreadChange, Trend,
};
use super::verdict::{troubles, verdict};
use rigel_model::{Finding, FindingName, Moment, Resolution};
use rigel_stats::mean::Interval;
use rigel_stats::robust::{median, quantile};

/// The medians on both sides of a change must differ by at least this fraction of its size.
const SEEN: f64 = 0.25;

/// Sorts rounds by their start. Returns a note if they were not in order: the clock was set back.
pub fn order(rounds: &mut [Round]) -> Option<Finding> {
    let goes_back = |two: &&[Round]| two[1].begin < two[0].begin;
    let first = rounds
        .windows(2)
        .find(goes_back)
        .map(|two| (two[1].number, two[0].begin.since(two[1].begin)))?;
    let times = rounds.windows(2).filter(goes_back).count();
    rounds.sort_by_key(|round| round.begin);
    let more = if times > 1 {
        format!(", and {} more times", times - 1)
    } else {
        String::new()
    };
    let what = format!(
        "round {} has a start time {} s before that of the previous round{more}: the clock was \
         set back. Rounds are in the order of their times",
        first.0, first.1
    );
    Some(Finding::note(FindingName::ClockBack, what))
}

/// Analyses a series of rounds.
pub fn predictability(rounds: &[Round], terms: &PredictabilityTerms) -> Predictability {
    let mut in_order;
    let rounds = if rounds.is_sorted_by_key(|round| round.begin) {
        rounds
    } else {
        in_order = rounds.to_vec();
        in_order.sort_by_key(|round| round.begin);
        &in_order
    };
    let counting: Vec<&Round> = rounds
        .iter()
        .filter(|round| round.counts() && known(round.rate).is_some())
        .collect();
    let figures = |value: fn(&Round) -> Option<f64>| {
        let measured = counting
            .iter()
            .filter_map(|round| Some((*round, known(value(round))?)));
        series_figures(&measured.collect::<Vec<_>>())
    };
    let p99_us = figures(|round| round.latency.p99_us);
    let tells = terms.is_open && p99_us.as_ref().is_some_and(|p99| p99.rounds >= VALUES_MIN);
    let mut result = Predictability {
        predictable: Predictable::Undecided,
        word: SeriesClass::TooFew,
        verdict: String::new(),
        resolution: resolution(rounds),
        samples: terms.samples,
        judged_by: if tells {
            Quantity::P99Us
        } else {
            Quantity::Rate
        },
        troubles: Vec::new(),
        rounds: counts(rounds, counting.len(), terms.planned),
        cut: cut_rounds(&counting),
        rate: figures(|round| round.rate),
        p50_us: figures(|round| round.latency.p50_us),
        p99_us,
        ranges: Vec::new(),
        around: Vec::new(),
        changed_too_often: Vec::new(),
        changes: Vec::new(),
        trends: Vec::new(),
        spread_changes: Vec::new(),
        calendar: Vec::new(),
        outliers: Vec::new(),
        episodes: Vec::new(),
        objectives: objectives(rounds, terms),
    };
    for of in [Quantity::Rate, Quantity::P99Us] {
        tell(&mut result, of, &counting);
    }
    result.troubles = troubles(rounds, &counting, &result);
    (result.predictable, result.word, result.verdict) = verdict(&result, &counting);
    result
}

/// The resolution that fits the median distance between the starts of rounds.
fn resolution(rounds: &[Round]) -> Resolution {
    let distances = rounds
        .windows(2)
        .map(|two| two[1].begin.since(two[0].begin) as f64);
    median(&distances.collect::<Vec<_>>()).map_or(Resolution::Minutes, Resolution::of_steps)
}

/// Drops NaN, infinite and negative values. Zero is valid: nothing was completed.
pub(crate) fn known(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value >= 0.0)
}

/// The replacement for 0 before taking logarithms: a thousandth of the median of the positive
/// values, or half their minimum if that is less.
fn floor(values: &[f64]) -> f64 {
    let positive: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| *value > 0.0)
        .collect();
    let least = positive.iter().copied().fold(f64::INFINITY, f64::min);
    median(&positive)
        .map_or(1.0, |middle| (middle / 1000.0).min(least / 2.0))
        .max(f64::MIN_POSITIVE)
}

fn counts(rounds: &[Round], measured: usize, planned: Option<u32>) -> RoundCounts {
    let last = rounds.iter().map(|round| round.number).max().unwrap_or(0);
    let first = rounds
        .iter()
        .map(|round| round.number)
        .min()
        .unwrap_or(1)
        .min(1);
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

/// Analyses a quantity and adds what it shows to `result`.
fn tell(result: &mut Predictability, of: Quantity, counting: &[&Round]) {
    let value = |round: &Round| match of {
        Quantity::Rate => known(round.rate),
        Quantity::P99Us => known(round.latency.p99_us),
    };
    let measured: Vec<&Round> = counting
        .iter()
        .copied()
        .filter(|round| value(round).is_some())
        .collect();
    let Some(first) = measured.first() else {
        return;
    };
    let values: Vec<f64> = measured.iter().filter_map(|round| value(round)).collect();
    let series = log_series(&measured, &values, first.begin);
    let Some(mut explained) = explain(&series) else {
        return;
    };
    drop_minor(&mut explained, &series.values);
    result.ranges.extend(range(of, &series, &explained));
    result.around.push((of, explained.around));
    result
        .calendar
        .extend(calendar_pattern(of, &series, &explained));
    result
        .spread_changes
        .extend(explained.spreads.iter().map(|change| SpreadChange {
            of,
            at: measured[change.at].begin,
            round: measured[change.at].number,
            before: change.before.exp_m1(),
            after: change.after.exp_m1(),
        }));
    if explained.too_many || !are_seen(&explained, &series.values) {
        result.changed_too_often.push(of);
        return;
    }
    let changes = changes(&explained, of, &measured);
    if of == Quantity::Rate {
        result.episodes = episodes(&measured, &series.values, &explained);
    }
    // Changes inside slowdowns are not reported again.
    let within = |change: &ChangePoint| {
        result
            .episodes
            .iter()
            .any(|episode| episode.covers(change.at))
    };
    let inside = changes.iter().filter(|change| within(change)).count();
    result.changes.extend(
        changes
            .into_iter()
            .filter(|change| inside <= 2 * result.episodes.len() || !within(change)),
    );
    result.trends.extend(explained.slope.and_then(|slope| {
        let half = slope.spread.half_width();
        let days = series.seconds.last()? / 86_400.0;
        let interval = Interval {
            low: (slope.size - half).exp(),
            high: (slope.size + half).exp(),
        };
        let trend = Trend {
            of,
            factor_per_day: slope.size.exp(),
            interval,
            factor: (slope.size * days).exp(),
        };
        [trend.factor_per_day, trend.factor, interval.high]
            .iter()
            .all(|value| value.is_finite())
            .then_some(trend)
    }));
    let outlier = |at: &usize| {
        let from = at.saturating_sub(2).min(measured.len().saturating_sub(5));
        let around: Vec<f64> = measured[from..(from + 5).min(measured.len())]
            .iter()
            .filter_map(|round| value(round))
            .collect();
        let (value, around) = (
            value(measured[*at])?,
            median(&around).filter(|around| *around > 0.0)?,
        );
        Some(Outlier {
            of,
            at: measured[*at].begin,
            round: measured[*at].number,
            value,
            factor: value / around,
        })
    };
    result
        .outliers
        .extend(explained.outliers.iter().filter_map(outlier));
}

/// True if each change that would be reported is visible in the values: the medians before and
/// after it differ in the same direction, by at least a quarter of its size. If not, its
/// counterpart was not found, or a slope was fitted to compensate for steps that all have the same
/// direction.
fn are_seen(explained: &Explained, values: &[f64]) -> bool {
    let mut parts = told_together(explained).into_iter();
    parts.all(|part| is_seen(explained, &part, values))
}

fn is_seen(explained: &Explained, part: &[StepFound], values: &[f64]) -> bool {
    let size = size_of(part);
    let seen = |values: &[f64]| rise(explained, part, values) / size >= SEEN;
    seen(&explained.levelled) && (part.len() == 1 || seen(values))
}

/// How much greater the median of these values is after the steps than before them.
fn rise(explained: &Explained, part: &[StepFound], values: &[f64]) -> f64 {
    let (from, until) = around(explained, part, values.len());
    let (first, last) = (part[0].at, part[part.len() - 1].at);
    let (before, after) = median(&values[from..first])
        .zip(median(&values[last..until]))
        .unwrap_or_default();
    after - before
}

/// Drops changes that are not visible beside a far greater one: they are where the values on its two sides
/// spread differently, or where it took more than a round.
fn drop_minor(explained: &mut Explained, values: &[f64]) {
    const MINOR: f64 = 0.2;
    let parts = told_together(explained);
    let sizes = parts.iter().map(|part| size_of(part).abs());
    let greatest = sizes.fold(0.0, f64::max);
    let is_minor = |part: &Vec<StepFound>| {
        size_of(part).abs() < MINOR * greatest && !is_seen(explained, part, values)
    };
    let minor: Vec<StepFound> = parts.into_iter().filter(is_minor).flatten().collect();
    explained.steps.retain(|step| !minor.contains(step));
}

/// The change that these steps make together.
fn size_of(part: &[StepFound]) -> f64 {
    part.iter().map(|step| step.change.size).sum()
}

/// The steps that are worth reporting, grouped into changes: three or more consecutive steps in the
/// same direction are one change.
fn told_together(explained: &Explained) -> Vec<Vec<StepFound>> {
    let steps = &explained.steps;
    let same_way =
        steps.chunk_by(|one, other| (one.change.size > 0.0) == (other.change.size > 0.0));
    same_way
        .flat_map(|group| {
            group
                .chunks(if group.len() < 3 { 1 } else { group.len() })
                .map(<[_]>::to_vec)
        })
        .filter(|part| size_of(part).abs() >= WORTH_TELLING)
        .collect()
}

/// The range of values around these steps: from the previous step to the next one.
fn around(explained: &Explained, part: &[StepFound], n: usize) -> (usize, usize) {
    let (first, last) = (part[0].at, part[part.len() - 1].at);
    let before = explained
        .steps
        .iter()
        .rev()
        .find(|step| step.at < first)
        .map_or(0, |step| step.at);
    let after = explained
        .steps
        .iter()
        .find(|step| step.at > last)
        .map_or(n, |step| step.at);
    (before, after)
}

/// The reported changes; three or more consecutive steps in the same direction are one gradual
/// change.
fn changes(explained: &Explained, of: Quantity, known: &[&Round]) -> Vec<ChangePoint> {
    let change = |part: Vec<StepFound>| {
        let (first, last) = (part[0], part[part.len() - 1]);
        // Between several steps others may lie that are too small to be reported.
        let size = match part[..] {
            [only] => only.change.size,
            _ => rise(explained, &part, &explained.levelled),
        };
        let half = first.change.spread.half_width();
        let until = (part.len() > 1).then(|| known[last.at].begin);
        let (before, after) = around(explained, &part, known.len());
        ChangePoint {
            of,
            at: known[first.at].begin,
            round: known[first.at].number,
            until,
            factor: size.exp(),
            interval: until.is_none().then(|| Interval {
                low: (size - half).exp(),
                high: (size + half).exp(),
            }),
            host: host_shifts(&known[before..first.at], &known[last.at..after]),
        }
    };
    told_together(explained).into_iter().map(change).collect()
}

/// The logarithms of values that are not all zero, with the times of their rounds.
fn log_series(known: &[&Round], values: &[f64], first: Moment) -> LogSeries {
    let floor = floor(values);
    let of_round = |of: fn(&Round) -> f64| known.iter().map(|round| of(round)).collect();
    LogSeries {
        seconds: known
            .iter()
            .map(|round| round.begin.since(first) as f64)
            .collect(),
        of_day: of_round(|round| f64::from(round.begin.second_of_day())),
        day: known.iter().map(|round| round.begin.day()).collect(),
        values: values
            .iter()
            .map(|value| if *value > 0.0 { value.ln() } else { floor.ln() })
            .collect(),
    }
}

/// The range that 95 % of the rounds lie in, as they are and without the calendar's share.
fn range(of: Quantity, series: &LogSeries, explained: &Explained) -> Option<RangeOfRounds> {
    let limits = |values: &[f64]| {
        let middle = median(values)?;
        let limit = |share: f64| Some((quantile(values, share)? - middle).exp());
        limit(0.025).zip(limit(0.975))
    };
    let (low, high) = limits(&series.values)?;
    let without: Vec<f64> = match &explained.calendar {
        Some(calendar) => {
            let shares = calendar.shares.iter();
            series
                .values
                .iter()
                .zip(shares)
                .map(|(value, share)| value - share)
                .collect()
        }
        None => series.values.clone(),
    };
    let (low_by_calendar, high_by_calendar) = limits(&without)?;
    Some(RangeOfRounds {
        of,
        low,
        high,
        low_by_calendar,
        high_by_calendar,
    })
}

/// What repeats by the calendar, with the hours of working days and weekends.
fn calendar_pattern(
    of: Quantity,
    series: &LogSeries,
    explained: &Explained,
) -> Option<CalendarPattern> {
    let calendar = explained.calendar.as_ref()?;
    let level = |at: usize| -> f64 {
        let before = explained.steps.iter().filter(|step| step.at <= at);
        before.map(|step| step.change.size).sum()
    };
    let flat: Vec<f64> = (0..explained.levelled.len())
        .map(|at| explained.levelled[at] - level(at))
        .collect();
    let middle = median(&flat).unwrap_or(0.0);
    let hours = |is_weekend: bool| {
        let of_hour = |hour: u32| {
            let is_in = |at: &usize| {
                // 1970-01-01 was a Thursday; Saturday and Sunday are the days 5 and 6 of a week.
                let week_day = (series.day[*at] + 3).rem_euclid(7);
                let begins = f64::from(hour) * 3600.0;
                (week_day >= 5) == is_weekend
                    && (begins..begins + 3600.0).contains(&series.of_day[*at])
            };
            let share = |at: usize| flat[at] - middle + calendar.shares[at];
            let all: Vec<f64> = (0..flat.len()).filter(is_in).map(share).collect();
            median(&all).map(f64::exp)
        };
        (0..24).map(of_hour).collect()
    };
    Some(CalendarPattern {
        of,
        recurrences: calendar.recurrences.clone(),
        working_days: hours(false),
        weekends: hours(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn one_fall_between_parts_that_spread_differently_is_one_change() {
        // Of a soak that was offered 4,000 a second.
        const ON_CREDIT: [f64; 16] = [
            4004.4, 3998.8, 3994.5, 3989.8, 4000.6, 4000.6, 4008.1, 3998.1, 4024.4, 3995.2, 4002.8,
            4016.3, 3997.4, 4002.9, 3998.7, 3987.9,
        ];
        let mut rounds = examples::rounds(120);
        for (at, round) in rounds.iter_mut().enumerate() {
            let noise = f64::from(round.number * 7919 % 101) / 50.0 - 1.0;
            // Credit ends in the 17th round, and a limit spreads by a thousandth of a percent.
            round.rate = Some(match at {
                ..16 => ON_CREDIT[at],
                16 => 3650.9,
                _ => 3004.35 + 0.03 * noise,
            });
        }
        let found = predictability(&rounds, &PredictabilityTerms::default());
        assert!(!found.changed_too_often.contains(&Quantity::Rate));
        let of_rate = found
            .changes
            .iter()
            .filter(|change| change.of == Quantity::Rate);
        let rounds: Vec<u32> = of_rate.map(|change| change.round).collect();
        assert!(matches!(rounds[..], [17 | 18]), "{rounds:?}");
    }
}
