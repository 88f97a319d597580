//! Laws of `rigel duet` on models in virtual time, whose neighbour comes and goes: how often its answers are
//! wrong, where the truth is known.

use crate::common::run;
use crate::expect::{chance_of, runs_or};
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::visits::time_used;
use rigel_analyse::{BoundVerdict, SoFar};
use rigel_device::engine::Engine;
use rigel_device::engine::sim::Sim;
use rigel_model::record::PointRecord;
use rigel_model::record::visits::joined;
use rigel_model::workload::rng::Rng;
use rigel_model::{Coordinates, Mix, Nanos, Ratio};
use rigel_report::answers::CiSystem;
use rigel_verbs::VerbResult;
use rigel_verbs::duet::{DuetAnswer, DuetArm, DuetFigure, DuetRequest, DuetResult};

fn runs() -> usize {
    runs_or(4)
}

/// Of these runs, as many as an error of 5 % gives but once in ten thousand times.
fn chance(all: usize) -> usize {
    chance_of(0.05, all)
}

fn request(arms: usize, budget_s: u64, slower_most: Option<Ratio>) -> DuetRequest {
    let arm = |number| DuetArm {
        name: format!("device {number}"),
        target: None,
        engine: None,
        length: 8192,
        depth: 16,
        log: None,
    };
    DuetRequest {
        arms: (0..arms).map(arm).collect(),
        budget: Nanos::from_secs(budget_s),
        margin: Ratio::of(2, 100),
        error: Ratio::of(5, 100),
        slower_most,
        mix: Mix::READS,
        rate_per_s: None,
        together: false,
        sql: None,
        server_setting: None,
    }
}

/// Runs a duet of devices whose service times are these multiples of 2 ms, four at a time. A neighbour
/// makes all of them slower by 30 % for some fifty visits, again and again.
fn duet(request: &DuetRequest, slower: &[f64], seed: u64) -> (DuetResult, f64) {
    let mut rng = Rng::new(seed, 77);
    let mut is_busy = false;
    let mut records: Vec<PointRecord> = Vec::new();
    let mut so_far = SoFar::default();
    let mut done = Vec::new();
    while let Some(point) = request.next(1 << 40, seed, &done) {
        assert!(records.len() < 1000, "the run does not end");
        is_busy ^= rng.unit() < 0.02;
        let Coordinates::Arm { arm, .. } = point.coordinates else {
            panic!("{point:?}");
        };
        let service_us = 2000.0 * slower[arm as usize] * if is_busy { 1.3 } else { 1.0 };
        let spec = format!("4,{service_us:.0}us,exponential,size=1TiB");
        let engine = Sim::new(spec.parse().unwrap(), seed ^ records.len() as u64);
        assert_eq!(engine.usable(), 1 << 40);
        records.push(run(&engine, &point));
        done = so_far.of(&records, request.judged()).to_vec();
    }
    (request.of_records(&joined(&records)), time_used(&done))
}

/// Runs duets of a device and of one with `slower` times its service time: for each answer the number of
/// runs. Fails if more intervals miss the truth than may by chance.
fn outcomes(request: &DuetRequest, slower: f64, all: usize, first_seed: u64) -> [usize; 3] {
    let (mut counts, mut held, mut used) = ([0; 3], 0, 0.0);
    for seed in (first_seed..).take(all) {
        let (found, time) = duet(request, &[1.0, slower], seed);
        let of = &found.arms[1].against_first[0];
        counts[match of.answer {
            DuetAnswer::Different => 0,
            DuetAnswer::Equivalent => 1,
            DuetAnswer::Undecided => 2,
        }] += 1;
        let limits = of.ratio.interval.unwrap();
        held += usize::from(limits.contains(1.0 / slower));
        used += time / all as f64;
    }
    let [different, equivalent, undecided] = counts;
    println!(
        "{slower} times the service time: different {different}, equivalent {equivalent}, undecided \
         {undecided}, interval holds {held} of {all}, {used:.0} s"
    );
    assert!(all - held <= chance(all), "{held} of {all}");
    counts
}

#[test]
fn a_device_is_seldom_different_from_itself_whatever_a_neighbour_does() {
    let [different, ..] = outcomes(&request(2, 120, None), 1.0, runs(), 1000);
    assert!(different <= chance(runs()), "{different}");
}

#[test]
fn a_twentieth_is_found_and_a_two_hundredth_is_none_that_matters() {
    let [different, ..] = outcomes(&request(2, 300, None), 1.05, runs(), 2000);
    assert!(runs() - different <= chance(runs()), "{different}");
    // These take ten times as long.
    let few = runs().div_ceil(3);
    let [different, equivalent, _] = outcomes(&request(2, 600, None), 1.005, few, 3000);
    assert!(different <= chance(few), "{different}");
    assert!(equivalent > 0, "no run knows it");
}

#[test]
fn at_an_offered_rate_response_times_are_compared() {
    let offered = DuetRequest {
        rate_per_s: Some(1000),
        ..request(2, 60, None)
    };
    let mut wrong = 0;
    for seed in 0..runs() as u64 {
        let (found, _) = duet(&offered, &[1.0, 1.0], 4000 + seed);
        let compared = &found.arms[1].against_first;
        let figures: Vec<DuetFigure> = compared.iter().map(|of| of.figure).collect();
        assert_eq!(figures, [DuetFigure::P50, DuetFigure::P99]);
        let is_wrong = compared.iter().any(|of| of.answer == DuetAnswer::Different);
        wrong += usize::from(is_wrong);
    }
    assert!(wrong <= chance(runs()), "{wrong}");

    // At three fifths of what the second can, its response times are those of a slower device, and the
    // rate is the same.
    let (found, _) = duet(&offered, &[1.0, 1.2], 5000);
    let [first, second] = &found.arms[..] else {
        panic!("{found:?}");
    };
    assert!((second.iops.value / first.iops.value - 1.0).abs() < 0.05);
    for of in &second.against_first {
        assert_eq!(of.answer, DuetAnswer::Different, "{of:?}");
        assert!(of.ratio.interval.unwrap().low > 1.0, "{of:?}");
    }
    // A hundred visits of some operations each have no 99th percentile.
    let few = DuetRequest {
        rate_per_s: Some(100),
        ..offered
    };
    let (found, _) = duet(&few, &[1.0, 1.0], 6000);
    assert_eq!(found.arms[1].against_first.len(), 1);
}

#[test]
fn arms_together_measure_the_same_second_and_one_that_is_behind_alone() {
    let asked = DuetRequest {
        together: true,
        ..request(3, 60, None)
    };
    let (usable, seed) = (1 << 40, 7);
    let mut records: Vec<PointRecord> = Vec::new();
    for round in 0..10 {
        let done = SoFar::default().of(&records, asked.judged()).to_vec();
        let mut points = vec![asked.next(usable, seed, &done).unwrap()];
        points.extend(asked.beside(usable, seed, &done));
        let times: Vec<_> = points.iter().map(|of| (of.warm_up, of.until)).collect();
        assert!(times.iter().all(|own| *own == times[0]), "{times:?}");
        // The first round ended after its first arm.
        let arms: Vec<u32> = points
            .iter()
            .filter_map(|of| of.coordinates.arm())
            .collect();
        assert_eq!(
            arms,
            if round == 1 {
                vec![1, 2]
            } else {
                vec![0, 1, 2]
            }
        );
        for point in &points[..if round == 0 { 1 } else { points.len() }] {
            let engine = Sim::new("8,1ms,size=1TiB".parse().unwrap(), round);
            records.push(run(&engine, point));
        }
    }
    let found = asked.of_records(&joined(&records));
    assert!(found.arms.iter().all(|arm| arm.visits == 9), "{found:?}");
    let done = SoFar::default().of(&records, asked.judged()).to_vec();
    assert!((found.used_s - time_used(&done) / 3.0).abs() < 1e-9);
}

#[test]
fn an_arm_may_be_as_slow_as_is_allowed_and_the_error_is_that_of_all_arms() {
    let asked = request(4, 300, Some(Ratio::of(5, 100)));
    let (found, _) = duet(&asked, &[1.0, 1.1, 1.0, 0.9], 5);
    let verdicts: Vec<_> = found.arms[1..]
        .iter()
        .map(|arm| arm.against_first[0].verdict)
        .collect();
    let (kept, broken) = (BoundVerdict::Kept, BoundVerdict::Broken);
    assert_eq!(verdicts, [broken, kept, kept]);
    assert_eq!(found.outcome(), broken);
    let answers = found.answers().unwrap();
    let words: Vec<_> = answers.all.iter().map(|answer| answer.word).collect();
    assert_eq!(words, ["slower", "not slower", "not slower"]);
    assert_eq!(answers.annotations(CiSystem::Github).lines().count(), 1);
    assert!(answers.junit("it").contains(r#"tests="3" failures="1""#));
    let visits: Vec<usize> = found.arms.iter().map(|arm| arm.visits).collect();
    assert!(visits.iter().all(|count| *count == visits[0]), "{visits:?}");
}
