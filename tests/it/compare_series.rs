//! Error rates of series comparisons: equal series called different, and different series that are
//! not. Also their reports.
//!
//! Compares artificial noise with correlated neighbours, and whole soaks of a simulated device in
//! virtual time, each with its own seed, so the counts are always the same. `RIGEL_PAIRS=2000 cargo
//! test --test it compare_series:: -- --nocapture` compares more pairs, and prints the counts;
//! docs/methods/compare.md has the results.

use crate::common;
use crate::compare::golden;
use crate::predictability::start;
use crate::ranks::spec;
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_analyse::{
    Comparison, LatencySummary, PredictabilityTerms, ROUNDS_MIN, Round, RoundEnd, SoakResult,
    compare, predictability, round,
};
use rigel_device::engine::sim::Sim;
use rigel_model::record::journal::Header;
use rigel_model::workload::rng::Rng;
use rigel_model::{Load, Mix, Nanos, Pattern, Ratio, SimSpec};

/// A parsed soak.
type Soak = (Header, SoakResult);

/// A soak of rounds of the same work.
pub(crate) fn request() -> SoakRequest {
    SoakRequest {
        load: Load::Closed { depth: 4 },
        length: 8192,
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        sql: None,
        work: Some(400),
        limit: Nanos::from_secs(900),
        every: Nanos::from_secs(900),
        lasting: Nanos::from_secs(900),
        objectives: vec!["p99<5ms".parse().unwrap()],
        share: Ratio::from_percent(99.0).unwrap(),
    }
}

fn soak(spec: SimSpec, request: &SoakRequest, rounds: Vec<Round>) -> Soak {
    let header = common::header(spec, request, &start().to_string());
    let terms = PredictabilityTerms {
        objectives: request.objectives.clone(),
        share: request.share.get(),
        every_seconds: Some(request.every.as_secs_f64()),
        planned: Some(u32::try_from(rounds.len()).unwrap()),
        is_open: false,
        samples: rigel_analyse::Samples::Rounds,
    };
    let found = predictability(&rounds, &terms);
    (
        header,
        SoakResult {
            rounds,
            found,
            hosts: None,
            verified: None,
            sight: rigel_analyse::Sight::default(),
            findings: Vec::new(),
        },
    )
}

/// Runs this number of rounds on this device.
fn measured(device: &str, seed: u64, rounds: u32) -> Soak {
    let (spec, request) = (spec(device), request());
    let (engine, bytes) = (Sim::new(spec.clone(), seed), spec.bytes.0);
    let one = |number: u32| {
        let point = request.point(number, Nanos(0), bytes, seed);
        let mut record = common::run(&engine, &point);
        record.started = start()
            .plus_seconds(i64::from(number - 1) * 900)
            .to_string();
        round(&record, &request.objectives).unwrap()
    };
    soak(spec, &request, (1..=rounds).map(one).collect())
}

/// Noise with a correlation of `rho` between neighbours.
fn noise(rng: &mut Rng, n: usize, rho: f64) -> Vec<f64> {
    let mut at = rng.normal();
    let mut next = || {
        at = rho * at + (1.0 - rho * rho).sqrt() * rng.normal();
        at
    };
    (0..n).map(|_| next()).collect()
}

/// Rounds around 5,000 a second times `faster`, with noise of 3 % on the rate and 6 % on latencies.
/// The noise of each figure is independent, so each figure is another chance of a false alarm.
fn invented(seed: u64, n: usize, rho: f64, faster: f64) -> Soak {
    let mut rng = Rng::new(seed, n as u64);
    let [rates, medians, tails] = [(); 3].map(|()| noise(&mut rng, n, rho));
    let one = |index: usize| Round {
        number: u32::try_from(index).unwrap() + 1,
        begin: start().plus_seconds(i64::try_from(index).unwrap() * 900),
        seconds: 200.0,
        done: 1e6,
        failed: 0,
        unserved: 0,
        asked: Some(1_000_000),
        offered_per_s: None,
        rate: Some(5000.0 * faster * (0.03 * rates[index]).exp()),
        latency: LatencySummary {
            p50_us: Some(500.0 / faster * (0.06 * medians[index]).exp()),
            p99_us: Some(1500.0 / faster * (0.06 * tails[index]).exp()),
            max_us: Some(9000.0),
            ..LatencySummary::default()
        },
        end: RoundEnd::Whole,
        kept: Vec::new(),
        host: None,
    };
    soak(
        spec("4,1ms"),
        &SoakRequest {
            objectives: Vec::new(),
            ..request()
        },
        (0..n).map(one).collect(),
    )
}

/// Compares the first soak with the others; checks whether they are slower by 5 %.
fn against(soaks: &[(&str, &Soak)]) -> Comparison {
    let subjects: Vec<_> = soaks
        .iter()
        .map(|(name, (header, result))| {
            let verb = rigel_verbs::of(header).unwrap();
            rigel_verbs::subject_of_soak(name, header, &*verb, result, true)
        })
        .collect();
    compare(&subjects, Ratio::from_percent(5.0))
}

/// Counts over many comparisons.
#[derive(Debug, Default)]
struct Counts {
    pairs: usize,
    /// Number of judged headline figures, three per pair: median throughput, p50 and p99.
    judged: usize,
    /// Pairs that the verdict calls different.
    different: usize,
    /// Pairs with some headline figure that is certainly slower by more than 5 %.
    slower: usize,
}

impl Counts {
    /// Of 100 pairs with a chance of 5 % each, 11 or more occur one time in 90; with 2.5 %, 7 or
    /// more. Of 50 pairs, 6 or more occur one time in 26.
    fn check(&self) {
        let pairs = self.pairs as f64;
        assert!(
            self.different as f64 <= 0.1 * pairs && self.slower as f64 <= 0.06 * pairs,
            "{self:?}"
        );
    }
}

/// Compares `pairs()` pairs on two threads.
fn count(pair: impl Fn(u64) -> [Soak; 2] + Sync) -> Counts {
    let compared = |number: u64| {
        let [one, other] = pair(number);
        against(&[("a", &one), ("b", &other)])
    };
    let half = |which| {
        (which..pairs())
            .step_by(2)
            .map(compared)
            .collect::<Vec<_>>()
    };
    let all = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        [half(0), other.join().unwrap()].concat()
    });
    let mut counts = Counts::default();
    for comparison in all {
        let verdict = &comparison.verdicts[0];
        counts.pairs += 1;
        counts.judged += verdict.judged;
        counts.different += usize::from(!verdict.worse.is_empty() || !verdict.better.is_empty());
        counts.slower += usize::from(!comparison.slower.as_ref().unwrap().certain.is_empty());
    }
    counts
}

fn pairs() -> u64 {
    std::env::var("RIGEL_PAIRS")
        .ok()
        .and_then(|pairs| pairs.parse().ok())
        .unwrap_or(50)
}

/// First seed; another number gives other series.
fn seed() -> u64 {
    std::env::var("RIGEL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1_000_000)
}

#[test]
fn series_of_the_same_noise_are_seldom_called_different() {
    for rho in [0.0, 0.5, 0.8] {
        for rounds in [ROUNDS_MIN, 200] {
            let pair = |pair: u64| {
                [0, 1].map(|which| invented(seed() + 2 * pair + which, rounds, rho, 1.0))
            };
            let counts = count(pair);
            println!("noise that correlates by {rho}, {rounds} rounds: {counts:?}");
            counts.check();
        }
    }
}

#[test]
fn soaks_of_the_same_device_are_seldom_called_different() {
    let counts = count(|pair| [0, 1].map(|which| measured("4,1ms", seed() + 2 * pair + which, 48)));
    println!("the same device: {counts:?}");
    counts.check();
    assert!(
        counts.judged > 2 * counts.pairs,
        "few figures are judged: {counts:?}"
    );
}

#[test]
fn noise_does_not_hide_a_tenth() {
    let counts = count(|pair| {
        [(0, 1.0), (1, 0.9)].map(|(which, of)| invented(seed() + 2 * pair + which, 200, 0.5, of))
    });
    println!("noise that correlates by 0.5, slower by a tenth: {counts:?}");
    assert!(
        counts.different as f64 >= 0.95 * counts.pairs as f64,
        "{counts:?}"
    );
}

#[test]
fn a_device_that_is_slower_by_a_tenth_is_found() {
    let counts = count(|pair| {
        [("4,1ms", 0), ("4,1111us", 1)]
            .map(|(device, which)| measured(device, seed() + 2 * pair + which, 48))
    });
    println!("slower by a tenth: {counts:?}");
    assert!(
        counts.different as f64 >= 0.95 * counts.pairs as f64,
        "{counts:?}"
    );
}

#[test]
fn it_reads_as_it_should() {
    let (before, after) = (measured("4,1ms", 1, 48), measured("4,1200us", 2, 48));
    golden(
        "soaks",
        &against(&[("monday", &before), ("tuesday", &after)]),
    );
    // One soak that ended early, and one with broken rounds.
    let (mut short, mut broken) = (measured("4,1ms", 3, 12), measured("4,1ms", 4, 48));
    short.1.found.rounds.ahead = 36;
    broken
        .1
        .rounds
        .iter_mut()
        .step_by(8)
        .for_each(|round| round.end = RoundEnd::Broken("gone".into()));
    let broken = soak(spec("4,1ms"), &request(), broken.1.rounds);
    let all = against(&[
        ("monday", &before),
        ("wednesday", &short),
        ("thursday", &broken),
    ]);
    golden("soaks_three", &all);
    let json: serde_json::Value = serde_json::from_str(&rigel_report::compare::json(&all)).unwrap();
    assert_eq!(
        (&json["rounds"]["1"], &json["incomplete"]),
        (&12.into(), &serde_json::json!([1, 2]))
    );
    assert_eq!(json["warnings"][2]["broken rounds"], 6);
}
