//! What the analysis of a soak says of the patterns that operators have, and of noise: the table of
//! docs/methods/predictability.md.
//!
//! `RIGEL_FIRST=1000000 RIGEL_SERIES=200 cargo test --test it soak_table -- --nocapture` prints the
//! table, from other series than those by which the method was tuned.

use crate::predictability::{DAY, QUARTER, found, round, seeds, told};
use rigel_analyse::{
    LatencySummary, Predictability, Predictable, Quantity, Recurrence, Round, SeriesClass,
};
use rigel_model::workload::rng::Rng;

/// Series per row, unless `RIGEL_SERIES` says otherwise.
const SERIES: u64 = 20;

/// The rates of a series; p99 is the same in every round.
fn rounds(logarithms: impl Iterator<Item = f64>) -> Vec<Round> {
    let rates = logarithms.map(|logarithm| 5000.0 * logarithm.exp());
    let one = |(index, rate)| round(index, QUARTER, rate, 1500.0);
    rates.enumerate().map(one).collect()
}

/// A series of white noise; `shape` returns an addition to the logarithm of the rate for each round,
/// its hour since midnight and its day. Day 0 is a Monday.
fn white(
    seed: u64,
    n: usize,
    deviation: f64,
    shape: impl Fn(usize, f64, usize) -> f64,
) -> Vec<Round> {
    let mut rng = Rng::new(seed, 77);
    let value = |index: usize| {
        let seconds = index as f64 * QUARTER;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few weeks"
        )]
        let day = (seconds / DAY) as usize;
        shape(index, seconds % DAY / 3600.0, day) + deviation * rng.normal()
    };
    rounds((0..n).map(value).collect::<Vec<_>>().into_iter())
}

/// Half white noise and half noise of this correlation, or only the latter; deviation 2 %.
fn alike(seed: u64, n: usize, correlation: f64, with_white: bool) -> Vec<Round> {
    let mut rng = Rng::new(seed, 78);
    let mut at = rng.normal();
    let value = |_| {
        at = correlation * at + (1.0 - correlation * correlation).sqrt() * rng.normal();
        if with_white {
            0.02 * (at + rng.normal()) / std::f64::consts::SQRT_2
        } else {
            0.02 * at
        }
    };
    rounds((0..n).map(value).collect::<Vec<_>>().into_iter())
}

/// True if no sentence or figure is nonsense.
fn is_sensible(found: &Predictability) -> bool {
    let episodes = found
        .episodes
        .iter()
        .all(|slow| slow.worst_rate < slow.usual && (0.0..=1.0).contains(&slow.lost()));
    let changes = found
        .changes
        .iter()
        .all(|change| (0.3..3.0).contains(&change.factor));
    let repeats = found
        .calendar
        .iter()
        .flat_map(|pattern| &pattern.recurrences);
    let mut counted = repeats.map(|one| (one.seen, one.days));
    let counted = counted.all(|(seen, days)| 2 <= seen && seen <= days);
    let text = &found.verdict;
    let words = !text.contains("by -") && !text.contains("NaN") && !text.contains("inf");
    episodes && changes && counted && words
}

/// The times that repeat in the rate.
fn repeats(found: &Predictability) -> Vec<&Recurrence> {
    let of_rate = found
        .calendar
        .iter()
        .filter(|pattern| pattern.of == Quantity::Rate);
    of_rate.flat_map(|pattern| &pattern.recurrences).collect()
}

/// Counts the series of a row of which the analysis says what it should, and prints the row.
fn row(
    name: &str,
    at_least: f64,
    series: impl Fn(u64) -> Vec<Round>,
    is_right: impl Fn(&Predictability) -> bool,
) {
    let (mut right, mut all, mut wrong) = (0_u32, 0_u32, Vec::new());
    let mut example = String::new();
    for seed in seeds(SERIES) {
        let found = found(&series(seed));
        let what = || format!("{name}, seed {seed}: {} {:?}", found.verdict, told(&found));
        assert!(is_sensible(&found), "{}", what());
        all += 1;
        if is_right(&found) {
            right += 1;
            example.clone_from(&found.verdict);
        } else {
            wrong.push(what());
        }
    }
    println!("| {name} | {right} of {all} | {example} |");
    wrong
        .iter()
        .take(3)
        .for_each(|what| println!("WRONG {what}"));
    assert!(
        f64::from(right) >= at_least * f64::from(all),
        "{name}: {right} of {all}"
    );
}

/// True if only this stretch of every day repeats, with about this factor, and the rest is level.
fn is_only(found: &Predictability, minutes: (usize, usize), factor: f64, nights: usize) -> bool {
    let [one] = repeats(found)[..] else {
        return false;
    };
    found.predictable == Predictable::ByTheCalendar
        && found.word == SeriesClass::Calendar
        && (one.from_minute, one.until_minute) == minutes
        && one.week_days.len() == 7
        && (one.factor / factor - 1.0).abs() < 0.05
        && (one.seen, one.days) == (nights, nights)
        && found.episodes.is_empty()
        && found.changes.is_empty()
        && found.trends.is_empty()
}

fn backup(seed: u64, nights: usize, (from, to): (f64, f64), factor: f64) -> Vec<Round> {
    white(seed, nights * 96, 0.015, |_, hour, _| {
        if (from..to).contains(&hour) {
            factor.ln()
        } else {
            0.0
        }
    })
}

#[test]
fn a_backup_every_night_is_named_with_its_hour() {
    for nights in [5, 7, 10, 12, 14] {
        row(
            &format!("backup 02:00-03:00 each night, -40 %, {nights} nights"),
            0.98,
            |seed| backup(seed, nights, (2.0, 3.0), 0.6),
            |found| is_only(found, (120, 180), 0.6, nights),
        );
    }
}

#[test]
fn a_backup_of_two_hours_is_named_with_its_hours() {
    row(
        "backup of 2 h, -20 %, 28 nights",
        0.98,
        |seed| backup(seed, 28, (2.0, 4.0), 0.8),
        |found| is_only(found, (120, 240), 0.8, 28),
    );
}

#[test]
fn four_slow_hours_a_night_do_not_move_the_usual_level() {
    row(
        "nightly 4 h, -30 %, 7 nights",
        0.98,
        |seed| backup(seed, 7, (1.0, 5.0), 0.7),
        |found| {
            let usual = found.rate.as_ref().map_or(0.0, |rate| rate.median);
            is_only(found, (60, 300), 0.7, 7) && (4900.0..5050.0).contains(&usual)
        },
    );
}

#[test]
fn slow_weekends_are_named() {
    row(
        "weekends -20 %, 28 days",
        0.98,
        |seed| {
            white(seed, 28 * 96, 0.015, |_, _, day| {
                if day % 7 >= 5 { 0.8_f64.ln() } else { 0.0 }
            })
        },
        |found| {
            let [one] = repeats(found)[..] else {
                return false;
            };
            found.predictable == Predictable::ByTheCalendar
                && one.when() == "Saturdays and Sundays"
                && (one.factor / 0.8 - 1.0).abs() < 0.02
                && (one.seen, one.days) == (8, 8)
                && found.episodes.is_empty()
                && found.changes.is_empty()
        },
    );
}

#[test]
fn a_stall_twice_a_day_is_named_with_its_times() {
    row(
        "a round at -90 % every 12 h exactly, 14 days",
        0.98,
        |seed| {
            white(seed, 14 * 96, 0.015, |at, _, _| {
                if at % 48 == 0 { 0.1_f64.ln() } else { 0.0 }
            })
        },
        |found| {
            let times: Vec<(usize, usize)> = repeats(found)
                .iter()
                .map(|one| (one.from_minute, one.seen))
                .collect();
            found.predictable == Predictable::ByTheCalendar
                && (times == [(0, 14), (720, 14)] || times == [(720, 14), (0, 14)])
                && found.changes.is_empty()
        },
    );
}

#[test]
fn one_or_two_empty_rounds_are_no_change() {
    for empty in [1, 2] {
        row(
            &format!("{empty} of 672 rounds at rate 0"),
            1.0,
            |seed| {
                let mut rounds = white(seed, 672, 0.01, |_, _, _| 0.0);
                let first = 50 + usize::try_from(seed).unwrap() % 500;
                for at in [first, first + 83].into_iter().take(empty) {
                    (rounds[at].rate, rounds[at].done) = (Some(0.0), 0.0);
                    rounds[at].latency = LatencySummary::default();
                }
                rounds
            },
            |found| {
                let fact = format!("In {empty} of 672 measured rounds no operation completed.");
                let changed = found.changes.len() + found.trends.len() + found.episodes.len();
                found.verdict.starts_with(&fact)
                    && changed + found.calendar.len() + found.spread_changes.len() == 0
            },
        );
    }
}

#[test]
fn a_small_step_is_mentioned_and_predictable() {
    row(
        "one step of -1.2 %, noise 0.3 %",
        0.98,
        |seed| {
            white(
                seed,
                672,
                0.003,
                |at, _, _| if at >= 300 { -0.012 } else { 0.0 },
            )
        },
        |found| {
            let [change] = &found.changes[..] else {
                return false;
            };
            found.predictable == Predictable::Yes
                && found.word == SeriesClass::Steady
                && (change.factor - 0.988).abs() < 0.001
                && found.verdict.contains("Within that, throughput fell by 1.")
        },
    );
}

#[test]
fn scatter_beyond_the_stated_range_is_not_predictable() {
    row(
        "white noise of 9 %",
        0.98,
        |seed| white(seed, 672, 0.09, |_, _, _| 0.0),
        |found| {
            found.predictable == Predictable::No
                && found.word == SeriesClass::Erratic
                && told(found).is_empty()
        },
    );
}

#[test]
fn a_change_of_the_spread_is_dated() {
    row(
        "noise 1 %, then 8 % from the middle on",
        0.98,
        |seed| {
            let mut rng = Rng::new(seed, 79);
            let deviation = |at: usize| if at < 336 { 0.01 } else { 0.08 };
            rounds(
                (0..672)
                    .map(|at| deviation(at) * rng.normal())
                    .collect::<Vec<_>>()
                    .into_iter(),
            )
        },
        |found| {
            let [change] = &found.spread_changes[..] else {
                return false;
            };
            found.predictable == Predictable::No
                && found.word == SeriesClass::Erratic
                && change.round.abs_diff(337) <= 24
                && (0.015..0.03).contains(&change.before)
                && (0.12..0.22).contains(&change.after)
                && found.changes.is_empty()
                && found.episodes.is_empty()
        },
    );
}

#[test]
fn noise_is_not_called_a_change() {
    let noises = [
        ("white noise", 0.0, false),
        ("AR(1) 0.3", 0.3, false),
        ("AR(1) 0.6", 0.6, false),
        ("AR(1) 0.9", 0.9, false),
        ("white + AR(1) 0.95", 0.95, true),
    ];
    for (name, correlation, with_white) in noises {
        for n in [96, 288, 672] {
            row(
                &format!("{name} of 2 %, {n} rounds"),
                0.95,
                |seed| alike(seed, n, correlation, with_white),
                |found| told(found).is_empty() && found.predictable == Predictable::Yes,
            );
        }
    }
}

/// A step that matters is found in slow noise, too.
#[test]
fn a_large_step_is_found_in_slow_noise() {
    row(
        "a step of -20 % in white + AR(1) 0.95 of 2 %",
        0.95,
        |seed| {
            let mut rounds = alike(seed, 672, 0.95, true);
            for round in &mut rounds[400..] {
                round.rate = round.rate.map(|rate| rate * 0.8);
            }
            rounds
        },
        |found| {
            let [change] = &found.changes[..] else {
                return false;
            };
            found.predictable == Predictable::No
                && found.word == SeriesClass::Stepped
                && change.round.abs_diff(401) <= 1
                && (change.factor / 0.8 - 1.0).abs() < 0.06
        },
    );
}
