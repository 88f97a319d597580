//! What a series repeats by the calendar: every day at the same time, and every week on the same
//! days.
//!
//! Input: values (logarithms of a rate or a latency) with their local times. Output: the share of
//! each value that the calendar explains, and the times of day and days of the week that stand out.
//! It is the seasonal part of a robust decomposition (Cleveland et al., "STL", Journal of Official
//! Statistics 6, 1990): medians over the days, or weeks, of the differences from a moving median.
//! docs/methods/predictability.md has the method and its measured rates of false claims.

use super::log_series::{LogSeries, WORTH_TELLING};
use super::noise::ROUNDING;
use crate::figures::quantity::listed;
use rigel_stats::mean::deviations;
use rigel_stats::robust::{deviation_of_differences, median, normal_quantile, spread};
use serde::Serialize;
use std::collections::BTreeMap;

/// Minimum number of days, or weeks, on which a time must have come round.
pub(super) const REPEATS_MIN: usize = 3;
/// Share of these days or weeks that must agree.
const AGREE: f64 = 2.0 / 3.0;
/// Significance level of each of the four searches, over all of its times together.
const SIGNIFICANCE: f64 = 2.5e-4;
/// Deviations by which a slot must differ to continue one that is beyond chance.
const CONTINUES: f64 = 2.5;
/// Ratio of the standard error of a median to that of a mean, for normal noise.
const MEDIAN_TO_MEAN: f64 = 1.2533;
/// The median absolute difference uses this share of the information that a variance uses.
const EFFICIENCY: f64 = 0.37;
/// A time belongs to a stretch if it stands out by at least this share of the day's maximum, and of
/// the maximum of all days.
const OF_MAXIMUM: f64 = 0.25;
const OF_ALL_DAYS: f64 = 0.05;
const HOUR: usize = 3600;
const DAY: usize = 86_400;
const WEEK_DAYS: usize = 7;
/// 1970-01-01 was a Thursday.
const FIRST_WEEK_DAY: i64 = 3;

/// A stretch of the day that stands out on certain days of the week.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Recurrence {
    /// Days of the week on which it begins: 0 is Monday, 6 is Sunday.
    pub week_days: Vec<usize>,
    /// Its beginning, in minutes since local midnight.
    pub from_minute: usize,
    /// Its end, in minutes since midnight; not after `from_minute` if it is on the next day.
    pub until_minute: usize,
    /// Ratio of its median value to the usual one.
    pub factor: f64,
    /// Ratio of the value at its most different time to the usual one.
    pub extreme_factor: f64,
    /// On how many days it was seen.
    pub seen: usize,
    /// On how many days it could have been seen.
    pub days: usize,
}

const WEEK_DAY_NAMES: [&str; WEEK_DAYS] = [
    "Mondays",
    "Tuesdays",
    "Wednesdays",
    "Thursdays",
    "Fridays",
    "Saturdays",
    "Sundays",
];

impl Recurrence {
    /// `every night 02:00 to 03:00`, `Saturdays and Sundays`.
    pub fn when(&self) -> String {
        let days = if self.week_days.len() == WEEK_DAYS {
            if self.is_at_night() {
                "every night".into()
            } else {
                "every day".into()
            }
        } else {
            self.named_days()
        };
        if (self.from_minute, self.until_minute) == (0, DAY / 60) {
            return days;
        }
        let time = |minute: usize| format!("{:02}:{:02}", minute / 60, minute % 60);
        format!(
            "{days} {} to {}",
            time(self.from_minute),
            time(self.until_minute)
        )
    }

    /// `6 of 7 nights`.
    pub fn occurrences(&self) -> String {
        let unit = if self.week_days.len() == WEEK_DAYS && self.is_at_night() {
            "nights"
        } else {
            "days"
        };
        format!("{} of {} {unit}", self.seen, self.days)
    }

    /// True if it begins at 22:00 or later, or ends at 06:00 or before.
    fn is_at_night(&self) -> bool {
        let early = self.from_minute < self.until_minute && self.until_minute <= 6 * 60;
        early
            || self.from_minute >= 22 * 60
                && (self.until_minute <= 6 * 60 || self.until_minute > self.from_minute)
    }

    fn named_days(&self) -> String {
        let runs = self.week_days.chunk_by(|one, other| one + 1 == *other);
        let named: Vec<String> = runs
            .flat_map(|run| match run {
                [first, .., last] if run.len() > 2 => {
                    vec![format!(
                        "{} to {}",
                        WEEK_DAY_NAMES[*first], WEEK_DAY_NAMES[*last]
                    )]
                }
                few => few
                    .iter()
                    .map(|day| WEEK_DAY_NAMES[*day].to_string())
                    .collect(),
            })
            .collect();
        listed(&named)
    }
}

/// What the calendar explains of a series.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    /// The share of each value.
    pub(super) shares: Vec<f64>,
    /// The largest first.
    pub(super) recurrences: Vec<Recurrence>,
}

/// The local times of values.
struct LocalTimes<'a> {
    series: &'a LogSeries,
    /// Seconds that a slot of the day takes, the finest resolution of the search.
    slot: usize,
}

impl LocalTimes<'_> {
    fn slot_of_day(&self, at: usize) -> usize {
        self.second(at) / self.slot
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a second of a day"
    )]
    fn second(&self, at: usize) -> usize {
        (self.series.of_day[at] as usize).min(DAY - 1)
    }

    fn hour(&self, at: usize) -> usize {
        self.second(at) / HOUR
    }

    fn week_day(&self, at: usize) -> usize {
        usize::try_from((self.series.day[at] + FIRST_WEEK_DAY).rem_euclid(7)).unwrap_or(0)
    }

    fn week(&self, at: usize) -> i64 {
        (self.series.day[at] + FIRST_WEEK_DAY).div_euclid(7)
    }
}

/// What the calendar explains; `None` if it explains nothing beyond chance, or the series is
/// shorter than three days.
pub(super) fn calendar(series: &LogSeries) -> Option<Calendar> {
    let n = series.values.len();
    let all: Vec<usize> = (0..n).collect();
    let times = LocalTimes {
        series,
        slot: slot_seconds(series)?,
    };
    let mut left = series.values.clone();
    let mut explain = |span: usize, is_fine: bool, slot: &dyn Fn(usize) -> usize| {
        let weekly = span > DAY;
        let repeat = |at: usize| {
            if weekly {
                times.week(at)
            } else {
                series.day[at]
            }
        };
        let level = moving_median(series, &left, span);
        let cells: Vec<f64> = left
            .iter()
            .zip(&level)
            .map(|(value, level)| value - level)
            .collect();
        let claimed = claimed(&cells, &all, slot, &repeat, is_fine);
        for (at, value) in left.iter_mut().enumerate() {
            *value -= claimed.get(&slot(at)).copied().unwrap_or(0.0);
        }
    };
    explain(DAY, false, &|at| times.hour(at));
    explain(DAY, true, &|at| times.slot_of_day(at));
    explain(WEEK_DAYS * DAY, false, &|at| times.week_day(at));
    explain(WEEK_DAYS * DAY, false, &|at| {
        times.week_day(at) * 24 + times.hour(at)
    });
    let shares: Vec<f64> = series
        .values
        .iter()
        .zip(&left)
        .map(|(value, left)| value - left)
        .collect();
    let recurrences = recurrences(&times, &shares);
    (!recurrences.is_empty()).then_some(Calendar {
        shares,
        recurrences,
    })
}

/// The length of a slot of the day: that of a round, rounded up to a divisor of the hour, between 5
/// minutes and an hour. `None` if the series is shorter than three days or has fewer than 8 rounds
/// a day.
fn slot_seconds(series: &LogSeries) -> Option<usize> {
    let n = series.seconds.len();
    let between: Vec<f64> = series
        .seconds
        .windows(2)
        .map(|two| two[1] - two[0])
        .collect();
    let usual = median(&between)?;
    // Half an interval for rounds that begin a little late.
    let whole = series.seconds.last()? + 1.5 * usual;
    if whole < (REPEATS_MIN * DAY) as f64 || (n as f64) < 8.0 * whole / DAY as f64 {
        return None;
    }
    let fits = |minutes: &usize| (minutes * 60) as f64 >= usual * 0.99;
    Some(
        [5, 10, 15, 20, 30]
            .into_iter()
            .find(fits)
            .map_or(HOUR, |minutes| minutes * 60),
    )
}

/// The median of the values within a day or a week around each, at the ends of the first or last
/// day or week. It follows steps without rounding them off. It is made anew for every hour of a day
/// and every day of a week.
fn moving_median(series: &LogSeries, values: &[f64], span: usize) -> Vec<f64> {
    let (span, step) = (span as f64, if span > DAY { DAY } else { HOUR } as f64);
    let last = series.seconds.last().copied().unwrap_or(0.0);
    let mut medians = Vec::with_capacity(values.len());
    let mut current = (-1.0, 0.0);
    for second in &series.seconds {
        let step_of = (second / step).floor();
        if step_of > current.0 {
            let middle = (step_of + 0.5) * step;
            let from = (middle - span / 2.0).min(last - span + 1.0).max(0.0);
            let first = series.seconds.partition_point(|second| *second < from);
            let end = series
                .seconds
                .partition_point(|second| *second < from + span);
            current = (step_of, median(&values[first..end]).unwrap_or(0.0));
        }
        medians.push(current.1);
    }
    medians
}

/// The values of the slots that stand out beyond chance: medians over the repeats.
///
/// The test is that of a two-way layout (slots and repeats): a slot's median against the differences
/// between one repeat and the next, of all slots and of its own. Days differ from each other as much
/// as noise makes them differ, however alike neighbouring rounds are.
fn claimed(
    values: &[f64],
    all: &[usize],
    slot: &dyn Fn(usize) -> usize,
    repeat: &dyn Fn(usize) -> i64,
    is_fine: bool,
) -> BTreeMap<usize, f64> {
    let mut rounds: BTreeMap<usize, BTreeMap<i64, Vec<f64>>> = BTreeMap::new();
    for at in all {
        let of_slot = rounds.entry(slot(*at)).or_default();
        of_slot.entry(repeat(*at)).or_default().push(values[*at]);
    }
    // One slow round must count in a fine slot, and must not in an hour.
    let cell = |rounds: &Vec<f64>| {
        if is_fine {
            rounds.iter().sum::<f64>() / rounds.len() as f64
        } else {
            median(rounds).unwrap_or(0.0)
        }
    };
    let cells: Vec<(usize, Vec<f64>)> = rounds
        .iter()
        .map(|(slot, repeats)| (*slot, repeats.values().map(cell).collect()))
        .collect();
    let differences = |cells: &[f64]| -> Vec<f64> {
        cells
            .windows(2)
            .map(|two| (two[1] - two[0]).abs())
            .collect()
    };
    let pooled: Vec<f64> = cells
        .iter()
        .flat_map(|(_, cells)| differences(cells))
        .collect();
    let pooled_deviation = deviation_of_differences(&pooled).max(ROUNDING.sqrt());
    // A moving median lies off the level of most slots if the others all differ the same way.
    let middle_of = |(slot, cells): &(usize, Vec<f64>)| Some((*slot, median(cells)?));
    let mut middles: BTreeMap<usize, f64> = cells.iter().filter_map(middle_of).collect();
    let level = median(&middles.values().copied().collect::<Vec<_>>()).unwrap_or(0.0);
    middles.values_mut().for_each(|middle| *middle -= level);
    // In order of time: by day or week, then by slot.
    let mut differing: BTreeMap<(i64, usize), f64> = BTreeMap::new();
    for (slot, repeats) in &rounds {
        let usual = level + middles.get(slot).copied().unwrap_or(0.0);
        for (repeat, rounds) in repeats {
            differing.insert((*repeat, *slot), cell(rounds) - usual);
        }
    }
    let differing: Vec<f64> = differing.into_values().collect();
    let degrees = (EFFICIENCY * pooled.len() as f64 / alike(&differing)).max(1.0);
    let enough = normal_quantile(SIGNIFICANCE / (2.0 * cells.len() as f64));
    let strength = |(slot, cells): &(usize, Vec<f64>)| {
        let middle = middles.get(slot).copied().unwrap_or(0.0);
        let own = deviation_of_differences(&differences(cells)).max(pooled_deviation);
        let error = MEDIAN_TO_MEAN * own / (cells.len() as f64).sqrt();
        let seen = cells
            .iter()
            .filter(|cell| (**cell - level) * middle.signum() >= middle.abs() / 2.0);
        let is_possible = cells.len() >= REPEATS_MIN
            && middle.abs() >= WORTH_TELLING
            && seen.count() as f64 >= AGREE * cells.len() as f64;
        if is_possible {
            deviations(middle.abs() / error, degrees) * middle.signum()
        } else {
            0.0
        }
    };
    let strengths: Vec<f64> = cells.iter().map(strength).collect();
    let claims = with_neighbours(&strengths, enough);
    let claimed = cells
        .iter()
        .zip(claims)
        .filter(|(_, is_claimed)| *is_claimed);
    claimed
        .map(|((slot, _), _)| (*slot, middles.get(slot).copied().unwrap_or(0.0)))
        .collect()
}

/// Which slots are beyond chance, and which continue these: neighbours that differ the same way by
/// what is beyond chance for a single slot. The last slot is a neighbour of the first.
fn with_neighbours(strengths: &[f64], enough: f64) -> Vec<bool> {
    let n = strengths.len();
    let mut claims: Vec<bool> = strengths.iter().map(|z| z.abs() >= enough).collect();
    let mut open: Vec<usize> = (0..n).filter(|at| claims[*at]).collect();
    while let Some(at) = open.pop() {
        for beside in [(at + 1) % n, (at + n - 1) % n] {
            let goes_on = strengths[beside] * strengths[at].signum() >= CONTINUES;
            if goes_on && !claims[beside] {
                claims[beside] = true;
                open.push(beside);
            }
        }
    }
    claims
}

/// The number of neighbouring values that tell as much of a variance as one independent value: one
/// plus twice the squared autocorrelations, up to the first that is not positive (Bartlett 1946;
/// the rule to stop, Geyer 1992).
fn alike(values: &[f64]) -> f64 {
    let limit = 3.0 * spread(values).max(ROUNDING.sqrt());
    let values: Vec<f64> = values
        .iter()
        .map(|value| value.clamp(-limit, limit))
        .collect();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let correlation = |places: usize| -> f64 {
        let pairs = values.iter().zip(&values[places..]);
        pairs.map(|(one, other)| one * other).sum::<f64>() / squares
    };
    let positive = (1..values.len().min(200))
        .map(correlation)
        .take_while(|found| *found > 0.0);
    1.0 + 2.0 * positive.map(|found| found * found).sum::<f64>()
}

/// Names the stretches of the day in which the calendar's share is not 0.
fn recurrences(times: &LocalTimes, shares: &[f64]) -> Vec<Recurrence> {
    let slots = DAY / times.slot;
    let mut table = vec![vec![0.0; slots]; WEEK_DAYS];
    for (at, share) in shares.iter().enumerate() {
        table[times.week_day(at)][times.slot_of_day(at)] = *share;
    }
    // A coarse series has no round in some slots, and a short one none on some days of the week.
    let mut seen = [false; WEEK_DAYS];
    (0..shares.len()).for_each(|at| seen[times.week_day(at)] = true);
    let maximum = shares.iter().map(|share| share.abs()).fold(0.0, f64::max);
    let least = WORTH_TELLING.max(OF_ALL_DAYS * maximum);
    let mut patterns: Vec<(Stretch, Vec<usize>)> = Vec::new();
    for (day, slots) in table.iter().enumerate().filter(|(day, _)| seen[*day]) {
        for stretch in stretches(slots, least) {
            let same = |other: &&mut (Stretch, Vec<usize>)| other.0.is_like(&stretch);
            match patterns.iter_mut().find(same) {
                Some((_, days)) => days.push(day),
                None => patterns.push((stretch, vec![day])),
            }
        }
    }
    let level = |days: &[usize]| {
        let span = if days.len() == WEEK_DAYS {
            DAY
        } else {
            WEEK_DAYS * DAY
        };
        moving_median(times.series, &times.series.values, span)
    };
    let mut all: Vec<Recurrence> = patterns
        .into_iter()
        .map(|(stretch, mut days)| {
            if days.len() == seen.iter().filter(|seen| **seen).count() {
                days = (0..WEEK_DAYS).collect();
            }
            let level = level(&days);
            stretch.recurrence(times, days, &level)
        })
        .collect();
    // What is left of a pattern of other days is no pattern.
    all.retain(|one| one.seen >= REPEATS_MIN && one.seen as f64 >= AGREE * one.days as f64);
    all.sort_by(|one, other| {
        let size = |of: &Recurrence| of.extreme_factor.ln().abs();
        size(other).total_cmp(&size(one))
    });
    all
}

/// Neighbouring slots of the day that differ from the usual level in the same direction.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    first: usize,
    count: usize,
    slots: usize,
    typical: f64,
    extreme: f64,
}

/// The stretches of a day that stand out by at least `least`, which may go on over midnight.
fn stretches(day: &[f64], least: f64) -> Vec<Stretch> {
    let slots = day.len();
    let mut stretches = Vec::new();
    for sign in [-1.0, 1.0] {
        let size: Vec<f64> = day.iter().map(|share| (share * sign).max(0.0)).collect();
        let maximum = day.iter().map(|share| share.abs()).fold(0.0, f64::max);
        let is_in = |slot: usize| {
            let size = size[slot % slots];
            size >= least && size >= OF_MAXIMUM * maximum
        };
        // Half an hour between two others belongs to them.
        let gap = (slots / 48).max(1);
        let belongs = |slot: usize| {
            let after = (0..=gap).find(|by| is_in(slot + by));
            let before = (0..=gap).find(|by| is_in(slot + slots - by));
            after
                .zip(before)
                .is_some_and(|(after, before)| after + before <= gap + 1)
        };
        let begins = |slot: &usize| belongs(*slot) && !belongs(slot + slots - 1);
        let mut first: Vec<usize> = (0..slots).filter(begins).collect();
        if (0..slots).all(belongs) {
            first = vec![0];
        }
        for first in first {
            let count = (0..slots).take_while(|by| belongs(first + by)).count();
            let part: Vec<f64> = (first..first + count)
                .map(|slot| day[slot % slots])
                .collect();
            let extreme = part
                .iter()
                .copied()
                .fold(0.0, |a: f64, b: f64| if b.abs() > a.abs() { b } else { a });
            stretches.push(Stretch {
                first,
                count,
                slots,
                typical: median(&part).unwrap_or(0.0),
                extreme,
            });
        }
    }
    stretches
}

impl Stretch {
    /// True if they are at the same time of day, of about the same size.
    fn is_like(&self, other: &Self) -> bool {
        let near = (self.typical - other.typical).abs() <= 0.25 * self.typical.abs();
        (self.first, self.count) == (other.first, other.count) && near
    }

    /// The stretch on these days of the week, with the days on which it was seen; `level` is the
    /// usual value at each time.
    fn recurrence(self, times: &LocalTimes, week_days: Vec<usize>, level: &[f64]) -> Recurrence {
        let mut days: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (at, level) in level.iter().enumerate() {
            let slot = times.slot_of_day(at);
            let into = (slot + self.slots - self.first) % self.slots;
            // After midnight it belongs to the day on which it began.
            let since = i64::from(slot < self.first);
            let week_day =
                (times.week_day(at) + WEEK_DAYS - usize::from(slot < self.first)) % WEEK_DAYS;
            if into < self.count && week_days.contains(&week_day) {
                let differs = times.series.values[at] - level;
                days.entry(times.series.day[at] - since)
                    .or_default()
                    .push(differs);
            }
        }
        let is_seen = |rounds: &&Vec<f64>| {
            let mean = rounds.iter().sum::<f64>() / rounds.len() as f64;
            mean * self.typical.signum() >= self.typical.abs() / 2.0
        };
        let minutes = times.slot / 60;
        let end = self.first + self.count;
        Recurrence {
            week_days,
            from_minute: self.first * minutes,
            until_minute: if end > self.slots {
                end - self.slots
            } else {
                end
            } * minutes,
            factor: self.typical.exp(),
            extreme_factor: self.extreme.exp(),
            seen: days.values().filter(is_seen).count(),
            days: days.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_repeat_are_named_by_days_and_hours() {
        let every_day: Vec<usize> = (0..WEEK_DAYS).collect();
        for (week_days, from_minute, until_minute, expected) in [
            (
                every_day.clone(),
                120,
                180,
                "every night 02:00 to 03:00, 7 of 8 nights",
            ),
            (
                every_day.clone(),
                1380,
                60,
                "every night 23:00 to 01:00, 7 of 8 nights",
            ),
            (
                every_day.clone(),
                1380,
                1440,
                "every night 23:00 to 24:00, 7 of 8 nights",
            ),
            (every_day, 720, 735, "every day 12:00 to 12:15, 7 of 8 days"),
            (vec![5, 6], 0, 1440, "Saturdays and Sundays, 7 of 8 days"),
            (
                vec![0, 1, 2, 3, 4],
                540,
                1020,
                "Mondays to Fridays 09:00 to 17:00, 7 of 8 days",
            ),
            (
                vec![0, 2, 6],
                0,
                1440,
                "Mondays, Wednesdays and Sundays, 7 of 8 days",
            ),
        ] {
            let one = Recurrence {
                week_days,
                from_minute,
                until_minute,
                factor: 0.6,
                extreme_factor: 0.6,
                seen: 7,
                days: 8,
            };
            assert_eq!(format!("{}, {}", one.when(), one.occurrences()), expected);
        }
    }

    #[test]
    fn a_stretch_may_go_on_over_midnight_and_over_a_short_gap() {
        let mut day = vec![0.0; 96];
        for slot in [0, 1, 3, 94, 95] {
            day[slot] = -0.5;
        }
        day[40] = -0.1;
        let found = stretches(&day, 0.01);
        let [one] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((one.first, one.count), (94, 6));
    }
}
