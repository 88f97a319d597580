//! Predictability of series with known truth: steps, slopes, waves, noise, and a published day.

use crate::common::{Place, rigel};
use proptest::prelude::*;
use rigel_analyse::{
    self as analyse, FALSE_ALARMS_ONE_IN, LatencySummary, ObjectiveCheck, Predictability,
    PredictabilityTerms, Quantity, Recurrence, Round, RoundEnd, SeriesClass, order, predictability,
};
use rigel_model::record::End;
use rigel_model::record::journal::Run;
use rigel_model::workload::rng::Rng;
use rigel_model::{Moment, Objective};

pub(crate) const QUARTER: f64 = 900.0;
pub(crate) const DAY: f64 = 86_400.0;

/// Student's t with three degrees of freedom, scaled to deviation 1: values of ten deviations are
/// not rare.
fn heavy(rng: &mut Rng) -> f64 {
    let squares: f64 = (0..3).map(|_| rng.normal().powi(2)).sum();
    rng.normal() / (squares / 3.0).sqrt() / 3f64.sqrt()
}

/// Noise of deviation 1.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    Independent,
    /// With a correlation of 0.3 between neighbours.
    Correlated,
    /// With heavy tails.
    Heavy,
}

impl Noise {
    pub(crate) fn series(self, rng: &mut Rng, n: usize) -> Vec<f64> {
        let rho: f64 = 0.3;
        let mut at = rng.normal();
        let mut next = || match self {
            Noise::Independent => rng.normal(),
            Noise::Heavy => heavy(rng),
            Noise::Correlated => {
                at = rho * at + (1.0 - rho * rho).sqrt() * rng.normal();
                at
            }
        };
        (0..n).map(|_| next()).collect()
    }
}

pub(crate) fn start() -> Moment {
    "2026-03-02T00:00:00+01:00".parse().unwrap()
}

/// A round that begins at `index` times `every` seconds after the start.
pub(crate) fn round(index: usize, every: f64, rate: f64, p99_us: f64) -> Round {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "whole seconds of a few weeks"
    )]
    let begin = start().plus_seconds((index as f64 * every) as i64);
    Round {
        number: u32::try_from(index).unwrap() + 1,
        begin,
        seconds: 1e6 / rate,
        done: 1e6,
        failed: 0,
        unserved: 0,
        asked: Some(1_000_000),
        offered_per_s: None,
        rate: Some(rate),
        latency: LatencySummary {
            p50_us: Some(p99_us / 3.0),
            p99_us: Some(p99_us),
            max_us: Some(p99_us * 4.0),
            ..LatencySummary::default()
        },
        end: RoundEnd::Whole,
        kept: vec![ObjectiveCheck {
            kept: Some(p99_us < 2000.0),
            share: None,
        }],
        host: None,
    }
}

/// Rounds every quarter of an hour around 5,000 per second and a p99 of 1.5 ms, with noise of
/// `deviation` on the rate and twice that on the latency. `shape` returns, for a round and its time
/// in seconds, an addition to the logarithm of the rate.
pub(crate) fn series(
    seed: u64,
    n: usize,
    noise: (Noise, f64),
    shape: impl Fn(usize, f64) -> f64,
) -> Vec<Round> {
    let mut rng = Rng::new(seed, n as u64);
    let (kind, deviation) = noise;
    let (rates, latencies) = (kind.series(&mut rng, n), kind.series(&mut rng, n));
    let one = |index: usize| {
        let shaped = shape(index, index as f64 * QUARTER);
        let rate = 5000.0 * (shaped + deviation * rates[index]).exp();
        round(
            index,
            QUARTER,
            rate,
            1500.0 * (2.0 * deviation * latencies[index]).exp(),
        )
    };
    (0..n).map(one).collect()
}

pub(crate) fn found(rounds: &[Round]) -> Predictability {
    predictability(
        rounds,
        &PredictabilityTerms {
            share: 0.99,
            ..PredictabilityTerms::default()
        },
    )
}

/// The reported changes, in words, for failure messages.
pub(crate) fn told(found: &Predictability) -> Vec<String> {
    let often = found
        .changed_too_often
        .iter()
        .map(|of| format!("{of:?} too often"));
    let changes = found
        .changes
        .iter()
        .map(|change| format!("{:?} {:.3} at {}", change.of, change.factor, change.round));
    let trends = found
        .trends
        .iter()
        .map(|trend| format!("{:?} trend {:.4}", trend.of, trend.factor_per_day));
    let calendar = found.calendar.iter().flat_map(|pattern| {
        let sentence = |one| format!("{:?} {}", pattern.of, pattern.sentence(one));
        pattern.recurrences.iter().map(sentence)
    });
    let spreads = found.spread_changes.iter().map(|change| {
        format!(
            "{:?} spread {:.3} to {:.3}",
            change.of, change.before, change.after
        )
    });
    let slow = found
        .episodes
        .iter()
        .map(|episode| format!("slow from {}", episode.first_round));
    often
        .chain(changes)
        .chain(trends)
        .chain(calendar)
        .chain(spreads)
        .chain(slow)
        .collect()
}

/// Descriptions of the series of noise with a false alarm.
fn false_alarms(
    seeds: std::ops::Range<u64>,
    n: usize,
    noise: Noise,
    deviation: f64,
) -> Vec<String> {
    let alarm = |seed: u64| {
        let said = told(&found(&series(seed, n, (noise, deviation), |_, _| 0.0)));
        (!said.is_empty())
            .then(|| format!("{noise:?}, {n} rounds, seed {seed}: {}", said.join("; ")))
    };
    seeds.filter_map(alarm).collect()
}

/// Seeds of a test. By default the first series, from number 0 on, on which the method was tuned.
/// `RIGEL_SERIES` sets their number and `RIGEL_FIRST` the first, to judge the method on other
/// series.
pub(crate) fn seeds(few: u64) -> std::ops::Range<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let first = number("RIGEL_FIRST").unwrap_or(0);
    first..first + number("RIGEL_SERIES").unwrap_or(few)
}

/// With more series, at most one in a thousand.
#[test]
fn nothing_is_invented_in_two_hundred_series_of_noise() {
    let (mut alarms, mut series) = (Vec::new(), 0);
    for noise in [Noise::Independent, Noise::Correlated, Noise::Heavy] {
        for n in [20, 96, 288] {
            let seeds = seeds(200);
            let many = seeds.end - seeds.start;
            let of_these = false_alarms(seeds, n, noise, 0.03);
            println!("{noise:?}, {n} rounds: {} of {many} series", of_these.len());
            series += many;
            alarms.extend(of_these);
        }
    }
    let allowed = series / u64::from(FALSE_ALARMS_ONE_IN);
    assert!(
        alarms.len() as u64 <= if series > 1800 { allowed } else { 0 },
        "{}",
        alarms.join("\n")
    );
}

/// The reported changes of the rate only.
fn of_rate(found: &Predictability) -> Vec<(u32, f64)> {
    found
        .changes
        .iter()
        .filter(|change| change.of == Quantity::Rate)
        .map(|change| (change.round, change.factor))
        .collect()
}

#[test]
fn a_step_is_found_within_one_round_with_its_size() {
    let (mut wrong, mut held, mut all) = (Vec::new(), 0, 0);
    let cases = [
        (0.9, 0.02),
        (1.1, 0.02),
        (0.7, 0.02),
        (0.7, 0.05),
        (1.3, 0.05),
    ];
    for (factor, deviation) in cases {
        for (n, at) in [(40, 20), (96, 20), (96, 90), (400, 133)] {
            for seed in seeds(20) {
                all += 1;
                let shape = |index: usize, _| if index >= at { f64::ln(factor) } else { 0.0 };
                let rounds = series(seed, n, (Noise::Independent, deviation), shape);
                let found = found(&rounds);
                let changes: Vec<_> = found
                    .changes
                    .iter()
                    .filter(|change| change.of == Quantity::Rate)
                    .collect();
                let right = match changes[..] {
                    [change] => {
                        held += usize::from(change.interval.unwrap().contains(factor));
                        (change.round - 1).abs_diff(u32::try_from(at).unwrap()) <= 1
                            && (change.factor / factor - 1.0).abs()
                                < 4.0 * deviation / f64::sqrt((n - at).min(at) as f64)
                    }
                    _ => false,
                };
                if !right || found.word != SeriesClass::Stepped {
                    wrong.push(format!(
                        "{factor} at {at} of {n} in {deviation}, seed {seed}: {:?}",
                        told(&found)
                    ));
                }
            }
        }
    }
    println!(
        "{all} series: {} wrong; {held} intervals hold the size",
        wrong.len()
    );
    assert!(wrong.len() <= all / 50, "{}", wrong.join("\n"));
    // With only twenty fixed series in each case, chance can lower the coverage.
    assert!(held * 100 >= 88 * all, "{held} of {all}");
}

#[test]
fn a_slope_is_a_slope_and_no_staircase() {
    for (per_day, n) in [(-0.02, 672), (-0.05, 288), (0.10, 288), (-0.30, 96)] {
        for noise in [Noise::Independent, Noise::Correlated] {
            for seed in 0..10 {
                let rounds = series(seed, n, (noise, 0.02), |_, seconds| per_day * seconds / DAY);
                let found = found(&rounds);
                let what = format!("{per_day} {noise:?} {n} seed {seed}: {:?}", told(&found));
                let [trend] = &found.trends[..] else {
                    panic!("{what}")
                };
                assert!(
                    (trend.factor_per_day.ln() - per_day).abs() < 0.01_f64.max(0.1 * per_day.abs()),
                    "{what}"
                );
                assert!(
                    found.changes.is_empty()
                        && found.calendar.is_empty()
                        && found.episodes.is_empty(),
                    "{what}"
                );
                assert_eq!(found.word, SeriesClass::Drifting, "{what}");
            }
        }
    }
}

#[test]
fn a_daily_wave_repeats_by_the_calendar_at_its_hours() {
    for (amplitude, n) in [(0.05, 1344), (0.10, 672), (0.30, 672)] {
        for noise in [Noise::Independent, Noise::Correlated] {
            for seed in 0..5 {
                // Maximum at 04:00, minimum at 16:00.
                let wave = |_, seconds: f64| {
                    amplitude * (std::f64::consts::TAU * (seconds / DAY - 4.0 / 24.0)).cos()
                };
                let found = found(&series(seed, n, (noise, 0.02), wave));
                let what = format!("{amplitude} {noise:?} {n} seed {seed}: {:?}", told(&found));
                let [pattern] = &found.calendar[..] else {
                    panic!("{what}")
                };
                for (sign, hour) in [(1.0, 4), (-1.0, 16)] {
                    let covers = |one: &&Recurrence| {
                        let length = (one.until_minute + 1440 - one.from_minute) % 1440;
                        let into = (hour * 60 + 1440 - one.from_minute) % 1440;
                        one.factor.ln() * sign > 0.0 && into < length
                    };
                    let Some(part) = pattern.recurrences.iter().find(covers) else {
                        panic!("{what}")
                    };
                    assert!(
                        (part.extreme_factor.ln() * sign / amplitude - 1.0).abs() < 0.5,
                        "{what}"
                    );
                }
                assert!(
                    found.changes.is_empty()
                        && found.trends.is_empty()
                        && found.episodes.is_empty(),
                    "{what}"
                );
                assert_eq!(found.word, SeriesClass::Calendar, "{what}");
            }
        }
    }
}

#[test]
fn a_step_is_found_beside_a_daily_wave() {
    for seed in 0..5 {
        let shape = |index: usize, seconds: f64| {
            0.1 * (std::f64::consts::TAU * seconds / DAY).sin()
                + if index >= 300 { 0.7_f64.ln() } else { 0.0 }
        };
        let found = found(&series(seed, 672, (Noise::Independent, 0.02), shape));
        assert_eq!(found.calendar.len(), 1, "{:?}", told(&found));
        let [(round, factor)] = of_rate(&found)[..] else {
            panic!("{:?}", told(&found))
        };
        assert!(
            round.abs_diff(301) <= 1 && (factor - 0.7).abs() < 0.02,
            "{:?}",
            told(&found)
        );
    }
}

/// The published day, like figures of other tools: without the request.
fn cloud_day() -> Vec<Round> {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/examples/cloud-day.csv"
    ))
    .unwrap();
    let lines = text.lines().filter(|line| line.starts_with("20"));
    let line = |(index, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |cell: usize| cells[cell].parse::<f64>().unwrap();
        Round {
            begin: cells[0].parse().unwrap(),
            seconds: number(4),
            done: number(2),
            asked: None,
            rate: Some(number(3)),
            latency: LatencySummary::default(),
            kept: Vec::new(),
            ..round(index, QUARTER, number(3), 1.0)
        }
    };
    lines.enumerate().map(line).collect()
}

#[test]
fn the_published_day_is_analysed_correctly() {
    let found = found(&cloud_day());
    println!("{found:#?}");
    let [slow] = &found.episodes[..] else {
        panic!("{:?}", told(&found))
    };
    assert_eq!(slow.begin.short(), "2016-04-23 19:46");
    assert_eq!(
        (slow.worst.short().as_str(), slow.worst_rate),
        ("2016-04-24 05:00", 416.0)
    );
    assert_eq!(slow.end.unwrap().short(), "2016-04-24 13:53");
    assert!((6200.0..6400.0).contains(&slow.usual), "{}", slow.usual);
    let cut = found.cut.unwrap();
    assert_eq!(
        (cut.rounds, cut.of, cut.in_pieces, cut.inferred),
        (6, 48, 3, true)
    );
    assert_eq!(cut.limit_seconds, Some(3602.0));
    assert_eq!(found.word, SeriesClass::Slowed);
}

/// Rounds of noise around 5,000 a second.
fn noise(n: usize) -> Vec<Round> {
    series(1, n, (Noise::Independent, 0.02), |_, _| 0.0)
}

#[test]
fn a_total_outage_is_a_slowdown_to_nothing() {
    let mut rounds = noise(100);
    for round in &mut rounds[40..50] {
        (round.rate, round.done) = (Some(0.0), 0.0);
        round.latency = LatencySummary::default();
    }
    let found = found(&rounds);
    let [slow] = &found.episodes[..] else {
        panic!("{:?}", told(&found))
    };
    assert_eq!(
        (slow.first_round, slow.rounds, slow.worst_rate),
        (41, 10, 0.0)
    );
    assert_eq!(
        (slow.begin, slow.end),
        (rounds[40].begin, Some(rounds[50].begin))
    );
    assert!((slow.lost() - 1.0).abs() < 1e-12, "{slow:?}");
    assert_eq!(
        (found.word, found.rounds.measured),
        (SeriesClass::Slowed, 100)
    );
    let rate = found.rate.unwrap();
    assert_eq!(
        (
            rate.rounds,
            rate.least.value,
            rate.least_hour.unwrap().of_median
        ),
        (100, 0.0, 0.0)
    );
    assert!(
        found
            .verdict
            .starts_with("In 10 of 100 measured rounds no operation completed. Not predictable"),
        "{}",
        found.verdict
    );
    assert!(found.verdict.contains("fell by 100 %"), "{}", found.verdict);
}

#[test]
fn a_round_or_two_in_which_nothing_was_done_are_no_change_of_level() {
    for empty in [1, 2] {
        for seed in seeds(25) {
            let mut rounds = series(seed, 672, (Noise::Independent, 0.01), |_, _| 0.0);
            let first = 50 + usize::try_from(seed).unwrap() % 500;
            for at in [first, first + 83].into_iter().take(empty) {
                (rounds[at].rate, rounds[at].done) = (Some(0.0), 0.0);
                rounds[at].latency = LatencySummary::default();
            }
            let found = found(&rounds);
            let what = format!(
                "{empty} empty, seed {seed}: {:?}, {}",
                told(&found),
                found.verdict
            );
            assert!(
                told(&found).is_empty() && found.word == SeriesClass::Failing,
                "{what}"
            );
            let fact = format!(
                "In {empty} of 672 measured rounds no operation completed. Among the measured \
                 rounds"
            );
            assert!(found.verdict.starts_with(&fact), "{what}");
        }
    }
}

#[test]
fn rounds_in_which_every_operation_failed_are_measured() {
    let mut rounds = noise(30);
    for round in &mut rounds {
        (round.rate, round.done, round.failed) = (Some(0.0), 0.0, 1000);
        round.latency = LatencySummary::default();
    }
    let found = found(&rounds);
    assert_eq!(
        (found.rounds.measured, found.word),
        (30, SeriesClass::Failing)
    );
    let rate = found.rate.as_ref().unwrap();
    assert_eq!(
        (rate.median, rate.variation, rate.least_hour),
        (0.0, None, None)
    );
    assert!(
        found
            .verdict
            .starts_with("100 % of operations failed. In 30 of 30"),
        "{}",
        found.verdict
    );
    assert!(
        !found.verdict.contains("NaN") && told(&found).is_empty(),
        "{}",
        found.verdict
    );
}

#[test]
fn failures_are_reported_first_and_are_not_predictable() {
    let mut broken = noise(20);
    for round in &mut broken[3..17] {
        round.end = RoundEnd::Broken("gone".into());
    }
    let mut failed = noise(40);
    for round in &mut failed {
        round.failed = 1_000_000;
    }
    let mut few = noise(40);
    few[5].failed = 3;
    let mut missing = noise(40);
    missing.drain(10..20);
    for (rounds, opening) in [
        (broken, "14 of 20 rounds could not be measured. "),
        (failed, "50 % of operations failed. "),
        (few, "3 of 40000003 operations failed. "),
        (missing, "10 of 40 rounds did not take place. "),
    ] {
        let found = found(&rounds);
        assert!(found.verdict.starts_with(opening), "{}", found.verdict);
        assert!(
            found.word == SeriesClass::Failing && !found.verdict.contains("Predictable"),
            "{}",
            found.verdict
        );
    }
    // A single one in a week is reported among the rounds.
    let mut one = noise(672);
    one[100].end = RoundEnd::Broken("gone".into());
    let found = found(&one);
    assert!(
        found.word == SeriesClass::Steady && found.verdict.starts_with("Predictable"),
        "{}",
        found.verdict
    );
}

#[test]
fn a_lone_round_before_a_gap_is_no_worst_hour() {
    let mut rounds = noise(200);
    rounds[80].rate = Some(1000.0);
    let of_median = |rounds: &[Round]| found(rounds).rate.unwrap().least_hour.unwrap().of_median;
    assert!(
        (0.75..0.85).contains(&of_median(&rounds)),
        "one quarter of an hour in four: {}",
        of_median(&rounds)
    );
    rounds.drain(81..105);
    let before = found(&rounds).rate.unwrap().least_hour.unwrap();
    assert!(before.of_median > 0.7, "{before:?}");
}

/// Rounds of an open loop: throughput shows the offered load, response time the device's behaviour.
#[test]
fn an_open_load_is_judged_by_its_response_time() {
    type Shape<'a> = &'a dyn Fn(f64, &mut Rng) -> f64;
    let judged = |is_open, p99_us: Shape| {
        let mut rounds = series(5, 480, (Noise::Independent, 0.01), |_, _| 0.0);
        let mut rng = Rng::new(6, 0);
        for round in &mut rounds {
            round.latency.p99_us = Some(p99_us(round.begin.since(start()) as f64 / DAY, &mut rng));
        }
        let terms = PredictabilityTerms {
            share: 0.99,
            is_open,
            ..PredictabilityTerms::default()
        };
        let found = predictability(&rounds, &terms);
        (found.word, found.verdict)
    };
    let growing = |days: f64, rng: &mut Rng| 2000.0 * (0.25 * days + 0.05 * rng.normal()).exp();
    let daily = |days: f64, rng: &mut Rng| {
        2000.0 * (0.4 * (std::f64::consts::TAU * days).sin() + 0.05 * rng.normal()).exp()
    };
    let scattered = |_: f64, rng: &mut Rng| 6000.0 * 5_f64.powf(rng.unit());
    let steady = |_: f64, rng: &mut Rng| 2000.0 * (0.05 * rng.normal()).exp();
    let cases: [(Shape, SeriesClass, &str, &str); 4] = [
        (
            &growing,
            SeriesClass::Drifting,
            "Not predictable: p99 rises by ",
            "Predictable in throughput: ",
        ),
        (
            &daily,
            SeriesClass::Calendar,
            "Predictable ",
            "Predictable in throughput: ",
        ),
        (
            &scattered,
            SeriesClass::Erratic,
            "Not predictable: 480 rounds over ",
            "Predictable in throughput: ",
        ),
        (
            &steady,
            SeriesClass::Steady,
            "Predictable in response time: 480 rounds",
            "Predictable: 480 rounds",
        ),
    ];
    for (p99_us, word, open, closed) in cases {
        let (said_word, said) = judged(true, p99_us);
        assert!(
            said_word == word && said.starts_with(open) && !said.contains("But"),
            "{said_word:?}: {said}"
        );
        let (said_word, said) = judged(false, p99_us);
        assert!(
            said_word == word && said.starts_with(closed),
            "{said_word:?}: {said}"
        );
        assert_eq!(
            said.contains(" But p99 "),
            word != SeriesClass::Steady,
            "{said}"
        );
        println!("{said}");
    }
}

#[test]
fn a_clock_that_was_set_back_is_noted_and_makes_no_negative_times() {
    let mut rounds = noise(60);
    for round in &mut rounds[30..] {
        round.begin = round.begin.plus_seconds(-3600);
    }
    let unordered = predictability(&rounds, &PredictabilityTerms::default());
    let note = order(&mut rounds).unwrap();
    assert_eq!(note.what.split(" has").next(), Some("round 31"));
    assert!(note.what.contains("2700 s before"), "{}", note.what);
    assert!(rounds.is_sorted_by_key(|round| round.begin) && order(&mut rounds).is_none());
    assert_eq!(
        unordered,
        predictability(&rounds, &PredictabilityTerms::default())
    );
}

#[test]
fn a_missed_round_counts_for_the_rounds_that_it_delayed() {
    let mut rounds = noise(30);
    rounds
        .iter_mut()
        .for_each(|round| round.kept[0].kept = Some(true));
    rounds[9].kept[0].kept = Some(false);
    // Two that follow a missed round, and two that follow a met one.
    rounds.drain(20..22);
    rounds.drain(10..12);
    let terms = PredictabilityTerms {
        objectives: vec!["p99<2ms".parse().unwrap()],
        share: 0.9,
        every_seconds: Some(QUARTER),
        planned: Some(30),
        is_open: false,
        samples: rigel_analyse::Samples::Rounds,
    };
    let found = predictability(&rounds, &terms);
    let result = &found.objectives[0];
    assert_eq!(
        (result.missed, result.kept, result.missed_seconds),
        (1, 25, 3.0 * QUARTER)
    );
    let breach = result.longest_breach.unwrap();
    assert_eq!(
        (breach.begin, breach.end, breach.seconds),
        (rounds[9].begin, rounds[10].begin, 3.0 * QUARTER)
    );
}

/// The rounds of a soak on a model in virtual time.
fn simulated(
    place: &Place,
    line: &str,
    name: &str,
    status: i32,
) -> (Vec<rigel_model::record::PointRecord>, String) {
    let output = rigel(
        place,
        &format!("soak {line} --no-progress --json --out {name}"),
    )
    .output()
    .unwrap();
    assert_eq!(
        output.status.code(),
        Some(status),
        "{line}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (
        Run::read(&place.0.join(name)).unwrap().points,
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_slowdown_of_a_tenth_is_found() {
    let place = Place::new("predictability-step");
    let line = |service: &str, seed: u32| {
        format!("sim:4,{service} --work 4000ops --every 1m --for 40m --seed {seed}")
    };
    let (before, _) = simulated(&place, &line("100us", 1), "before", 0);
    let (after, _) = simulated(&place, &line("110us", 2), "after", 0);
    let objectives: Vec<Objective> = vec!["p99<1s".parse().unwrap()];
    let mut rounds: Vec<Round> = before
        .iter()
        .chain(&after)
        .filter_map(|record| analyse::round(record, &objectives))
        .collect();
    let began = rounds[0].begin;
    for (at, round) in rounds.iter_mut().enumerate() {
        round.number = u32::try_from(at).unwrap() + 1;
        round.begin = began.plus_seconds(60 * i64::try_from(at).unwrap());
    }
    let found = found(&rounds);
    let [(round, factor)] = of_rate(&found)[..] else {
        panic!("{:?}", told(&found))
    };
    assert!(
        round.abs_diff(41) <= 1 && (factor * 1.1 - 1.0).abs() < 0.02,
        "{:?}",
        told(&found)
    );
    assert_eq!(found.word, SeriesClass::Stepped);
    // The operations before a round broke were fast enough, but the round meets no objective.
    let mut broken = before[0].clone();
    let kept = |record: &rigel_model::record::PointRecord| {
        analyse::round(record, &objectives).unwrap().kept[0].kept
    };
    assert_eq!(kept(&broken), Some(true));
    broken.end = End::Broken("gone".into());
    assert_eq!(kept(&broken), Some(false));
}

#[test]
fn stalls_longer_than_a_round_use_up_the_budget_for_as_long_as_they_last() {
    let place = Place::new("predictability-stall");
    let line = "sim:8,1ms,stall=30m/6h --every 10m --for 24h --rate 20 --slo p99<10ms --seed 1";
    let (_, report) = simulated(&place, line, "run", 3);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let result = &report["predictability"]["objectives"][0];
    let stalls = result["breaches"].as_array().unwrap().len();
    assert!(stalls >= 3, "{result}");
    // Rounds after the last stall do not exist, so they are not counted as missing.
    let least = 1800.0 * (stalls as f64 - 1.0) + 600.0;
    assert!(
        result["missed_seconds"].as_f64().unwrap() >= least,
        "{result}"
    );
}

#[test]
fn rounds_of_fixed_work_meet_a_stall_whose_period_divides_theirs() {
    let place = Place::new("predictability-phases");
    let line = "sim:8,1ms,stall=2s/5m --work 200ops --every 15m --for 7d --seed 81003";
    let (_, report) = simulated(&place, line, "run", 0);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let rounds = report["rounds"].as_array().unwrap();
    let is_stalled = |round: &&serde_json::Value| round["max_us"].as_f64().unwrap() > 100_000.0;
    let stalled = rounds.iter().filter(is_stalled).count();
    // It stands still for 0.7 % of the time: five rounds by chance.
    assert!((1..=15).contains(&stalled), "{stalled} of {}", rounds.len());
}

proptest! {
    /// Few rounds, broken ones, equal ones, missing ones, no time at all.
    #[test]
    fn no_series_breaks_it(
        figures in proptest::collection::vec((0u32..4, 0u32..3, 0i64..100_000, 0.0f64..1e7), 0..40), equal: bool
    ) {
        let mut at = 0;
        let one = |(index, (end, gap, seconds, rate)): (usize, &(u32, u32, i64, f64))| {
            at += seconds * i64::from(*gap);
            let end = match end {
                0 => RoundEnd::Broken("gone".into()),
                1 => RoundEnd::Cut,
                _ => RoundEnd::Whole,
            };
            let rate = if equal { 100.0 } else { *rate };
            let known = (*gap > 0).then_some(rate);
            let base = round(index * (1 + *gap as usize), 1.0, 100.0, rate);
            let latency = LatencySummary { p99_us: known, ..base.latency };
            Round { begin: start().plus_seconds(at), seconds: *seconds as f64, rate: known, latency, end, ..base }
        };
        let rounds: Vec<Round> = figures.iter().enumerate().map(one).collect();
        let objectives = vec!["p99<2ms".parse().unwrap()];
        let terms = PredictabilityTerms { objectives, share: 1.0, every_seconds: None, planned: Some(7), is_open: false, samples: rigel_analyse::Samples::Rounds, };
        let found = predictability(&rounds, &terms);
        prop_assert!(!found.verdict.is_empty() && !found.verdict.contains("NaN") && !found.verdict.contains("inf"));
        let result = &found.objectives[0];
        prop_assert_eq!(result.kept + result.missed + result.unknown, rounds.len());
        let counts = found.rounds;
        prop_assert!(counts.measured + counts.broken + counts.stopped <= rounds.len());
        if found.rate.as_ref().is_none_or(|rate| rate.rounds < 10) {
            prop_assert!(matches!(found.word, SeriesClass::TooFew | SeriesClass::Failing));
        }
    }
}

#[test]
fn no_change_and_no_usual_rate_lies_beyond_what_was_measured() {
    let (mut changes, mut slowdowns) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed, 9);
        // Levels that differ by up to a factor of a thousand, of four to forty rounds each.
        let mut levels: Vec<f64> = Vec::new();
        while levels.len() < 240 {
            let (level, length) = (
                7.0 * rng.unit() - 3.5,
                4 + usize::try_from(rng.below(37)).unwrap(),
            );
            levels.resize(levels.len() + length, level);
        }
        let rounds = series(seed, 240, (Noise::Independent, 0.1), |at, _| levels[at]);
        let rates = rounds.iter().filter_map(|round| round.rate);
        let (least, greatest) = rates.fold((f64::INFINITY, 0.0f64), |(least, greatest), rate| {
            (least.min(rate), greatest.max(rate))
        });
        let found = found(&rounds);
        let of_rate = found.changes.iter().filter(|one| one.of == Quantity::Rate);
        for change in of_rate {
            let size = change.factor.ln().abs();
            assert!(size <= 1.25 * (greatest / least).ln(), "{seed}: {change:?}");
            changes += 1;
        }
        for slowdown in &found.episodes {
            assert!(slowdown.usual <= 1.3 * greatest, "{seed}: {slowdown:?}");
            slowdowns += 1;
        }
        let rising = found.trends.iter().filter(|one| one.of == Quantity::Rate);
        for trend in rising {
            let size = trend.factor.ln().abs();
            assert!(size <= 1.3 * (greatest / least).ln(), "{seed}: {trend:?}");
        }
    }
    assert!(changes + slowdowns > 0, "nothing was found in any of them");
}

#[test]
fn a_clock_that_is_set_during_a_soak_makes_no_hours_of_its_minutes() {
    let place = crate::common::Place::new("soak-clock-set");
    let line =
        "soak sim:4,100us --work 400ops --every 1m --for 20m --seed 3 --out out --no-progress";
    let output = crate::common::rigel(&place, line).output().unwrap();
    assert!(
        output.status.code().is_some_and(|code| code != 1),
        "{output:?}"
    );
    let path = place.0.join("out/journal.jsonl");
    let report = || {
        let output = crate::common::rigel(&place, "report out --json")
            .output()
            .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let begins = json["rounds"].as_array().unwrap().iter().map(|round| {
            let begin: Moment = round["begin"].as_str().unwrap().parse().unwrap();
            begin
        });
        let findings = json["findings"].as_array().unwrap();
        let set: Vec<String> = findings
            .iter()
            .filter(|finding| finding["name"] == "clock-set")
            .map(|finding| finding["what"].as_str().unwrap().to_string())
            .collect();
        (begins.collect::<Vec<Moment>>(), set)
    };
    let (before, said) = report();
    assert_eq!((before.len(), said), (20, Vec::new()));
    // An hour back before round 8, two forward before round 13.
    let text = std::fs::read_to_string(&path).unwrap();
    let set = |(at, line): (usize, &str)| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let by = match at {
            8..=12 => -3600,
            13..=20 => 3600,
            _ => 0,
        };
        if by != 0 && line["point"].is_object() {
            let started: Moment = line["point"]["started"].as_str().unwrap().parse().unwrap();
            line["point"]["started"] = started.plus_seconds(by).to_string().into();
        }
        line.to_string() + "\n"
    };
    let edited: String = text.lines().enumerate().map(set).collect();
    std::fs::write(&path, edited).unwrap();
    let (after, said) = report();
    // Times of the timetable and of the engine are whole seconds apart.
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(one, other)| one.since(*other).abs() <= 2),
        "{before:?} {after:?}"
    );
    assert!(
        said.len() == 1 && said[0].contains("before round 8 the clock was set back by"),
        "{said:?}"
    );
}
