//! Laws of `rigel expect` on models in virtual time: how often it is wrong at each answer, where the truth
//! is known.

use crate::common::run;
use crate::queues::truths::{Queue, Saturated};
use rigel_analyse::BoundVerdict;
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::visits::time_used;
use rigel_analyse::{PointSummary, SoFar};
use rigel_device::engine::Engine;
use rigel_device::engine::sim::Sim;
use rigel_model::record::PointRecord;
use rigel_model::record::visits::joined;
use rigel_model::{Expectation, Nanos, Ratio};
use rigel_verbs::curve::Loads;
use rigel_verbs::examples::curve;
use rigel_verbs::expect::{ExpectRequest, ExpectResult, ExpectedLine, RunEvidence, expected_by};

/// Runs of each law: as many as `RIGEL_RUNS` asks for, or `usual`.
pub(crate) fn runs_or(usual: usize) -> usize {
    let asked = std::env::var("RIGEL_RUNS").ok();
    asked.map_or(usual, |runs| runs.parse().expect("a number of runs"))
}

fn runs() -> u64 {
    runs_or(10) as u64
}

/// Of `all` runs, as many as this error gives but once in ten thousand times.
pub(crate) fn chance_of(error: f64, all: usize) -> usize {
    let expected = error * all as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small count"
    )]
    let most = (expected + 3.7 * expected.sqrt() + 1.0) as usize;
    most
}

/// The same at the error of 1 %.
fn chance(all: u64) -> usize {
    chance_of(0.01, usize::try_from(all).unwrap())
}

/// Four servers of 4 ms on average: 1,000 reads a second, from depth 4 on.
const DEVICE: &str = "4,4ms";
const SERVICE_S: f64 = 0.004;

fn request(expectations: &[String], budget_s: u64) -> ExpectRequest {
    ExpectRequest {
        expectations: expectations
            .iter()
            .map(|one| one.parse().unwrap())
            .collect(),
        profiles: Vec::new(),
        block: 8192,
        large: ExpectRequest::LARGE,
        budget: Nanos::from_secs(budget_s),
        error: Ratio::from_percent(1.0).unwrap(),
    }
}

/// Measures a whole plan on a model of a device: the records of all loads, and the points as the plan saw
/// them at its end.
fn measured(spec: &str, plan: &dyn Plan, seed: u64) -> (Vec<PointRecord>, Vec<PointSummary>) {
    let engine = Sim::new(spec.parse().unwrap(), seed);
    let mut records: Vec<PointRecord> = Vec::new();
    let mut so_far = SoFar::default();
    let mut done = Vec::new();
    while let Some(point) = plan.next(engine.usable(), seed, &done) {
        assert!(records.len() < 400, "the run does not end");
        records.push(run(&engine, &point));
        done = so_far.of(&records, plan.judged()).to_vec();
    }
    (joined(&records), done)
}

/// Runs the whole list on a model of a device.
fn expect(spec: &str, request: &ExpectRequest, seed: u64) -> (ExpectResult, Vec<PointSummary>) {
    let (records, done) = measured(spec, request, seed);
    (request.of_records(&records, &[]), done)
}

/// The outcomes of runs with these seeds: kept, broken, undecided; and the mean time that they took, in
/// seconds.
fn outcomes(spec: &str, request: &ExpectRequest, first_seed: u64) -> ([usize; 3], f64) {
    let (mut counts, mut used) = ([0; 3], 0.0);
    for seed in first_seed..first_seed + runs() {
        let (found, done) = expect(spec, request, seed);
        counts[match found.outcome {
            BoundVerdict::Kept => 0,
            BoundVerdict::Broken => 1,
            BoundVerdict::Undecided => 2,
            BoundVerdict::NotMeasured => panic!("{:?}", found.lines),
        }] += 1;
        used += time_used(&done);
    }
    (counts, used / runs() as f64)
}

/// The four figures of [`DEVICE`] at their loads, each limit `factor` times as hard to keep as it is for
/// a device that just keeps it.
fn lines(factor: f64) -> Vec<String> {
    let queue = Queue {
        servers: 4,
        service: SERVICE_S,
        rate: 500.0,
    };
    let us = |seconds: f64| format!("{:.0}us", seconds * 1e6 / factor);
    vec![
        format!("iops>={:.1}@depth:8", 1000.0 * factor),
        format!("p50<{}@depth:1", us(SERVICE_S * std::f64::consts::LN_2)),
        format!("p99<{}@500/s", us(queue.quantile(0.99))),
        format!("mean<{}@500/s", us(queue.mean())),
    ]
}

#[test]
fn a_device_that_keeps_its_limits_is_seldom_blamed() {
    let asked = request(&lines(0.8), 180);
    let ([met, not_met, undecided], used) = outcomes(DEVICE, &asked, 1000);
    println!("0.8 of the truth: met {met}, not met {not_met}, undecided {undecided}, {used:.0} s");
    let all = met + not_met + undecided;
    assert!(not_met <= chance(runs()), "{not_met}");
    assert!(met * 100 >= all * 90, "{met}");
}

#[test]
fn a_device_beyond_its_limits_is_found_within_two_minutes() {
    for line in lines(1.5) {
        let asked = request(std::slice::from_ref(&line), 120);
        let ([met, not_met, undecided], used) = outcomes(DEVICE, &asked, 2000);
        println!("{line}: met {met}, not met {not_met}, undecided {undecided}, {used:.0} s");
        let others = met + undecided;
        assert!(others <= chance(runs()), "{line}: {others} of {}", runs());
    }
}

/// The next visit waits for the end of a stall, so that visits of half a second have only the beginning of it:
/// the rate must be that of all of the time all the same.
#[test]
fn a_rate_counts_stalls_that_outlast_the_visits_with_their_whole_length() {
    // Eight servers of 1 ms on average that stand still for a quarter of the time.
    const SPEC: &str = "8,1ms,stall=1s/4s";
    let all = runs_or(4) as u64;
    let asked = request(&["iops>=6000".into()], 120);
    let rates = (0..all).map(|seed| {
        let (found, _) = expect(SPEC, &asked, 3000 + seed);
        found.lines[0].figure.unwrap().value
    });
    let mean = rates.sum::<f64>() / all as f64;
    assert!(
        (5_600.0..6_400.0).contains(&mean),
        "{mean} instead of 6,000"
    );
}

/// Each load of a list is measured for seconds, so that by luck one of six meets no stall of those that take a
/// tenth of the time. It keeps no limit that it would have missed with them, and is not doubted far from it.
#[test]
fn a_load_that_met_no_stall_is_judged_by_those_of_the_others() {
    // 900 reads a second.
    const SPEC: &str = "4,4ms,stall=1s/10s";
    let at = |limit: u32| [5, 6, 8, 10, 12, 16].map(|depth| format!("iops>={limit}@depth:{depth}"));
    let high = request(&at(960), 180);
    let low = request(&at(300), 180);
    let (mut wrong, mut kept) = (0, 0);
    for seed in 5000..5000 + runs() {
        let (found, _) = expect(SPEC, &high, seed);
        wrong += usize::from(!found.with(BoundVerdict::Kept).is_empty());
        let (found, _) = expect(SPEC, &low, seed);
        kept += found.with(BoundVerdict::Kept).len() as u64;
    }
    let all = runs();
    println!(
        "beside stalls: {wrong} of {all} lists wrong, {kept} of {} lines kept",
        6 * all
    );
    assert!(wrong <= chance(all), "{wrong} of {all}");
    assert!(10 * kept >= 9 * 6 * all, "{kept} of {}", 6 * all);
}

/// One load alone meets a few stalls at most, or the end of one that began in a warm-up.
#[test]
fn a_load_that_met_few_stalls_keeps_no_limit_that_more_would_break() {
    // 850 reads a second, and 4.7 ms each at depth 4.
    const SPEC: &str = "4,4ms,stall=3s/20s";
    let (mut wrong, mut kept) = (0, 0);
    for line in ["iops>=900@depth:8", "mean<4450us@depth:4"] {
        let asked = request(&[line.into()], 60);
        let ([met, ..], _) = outcomes(SPEC, &asked, 6000);
        println!("{line}: met {met} of {}", runs());
        wrong += met;
    }
    for line in ["iops>=300@depth:8", "mean<20ms@depth:4", "p50<20ms@depth:8"] {
        let ([met, ..], _) = outcomes(SPEC, &request(&[line.into()], 60), 7000);
        println!("{line}: met {met} of {}", runs());
        kept += met;
    }
    assert!(wrong <= chance(2 * runs()), "{wrong}");
    assert!(10 * kept >= 9 * 3 * runs_or(10), "{kept}");
}

#[test]
fn a_limit_at_the_truth_is_undecided_and_the_error_is_that_of_the_list() {
    let mut all = lines(1.0);
    let us = |seconds: f64| format!("{:.0}us", seconds * 1e6);
    let busy = |depth| Saturated {
        servers: 4,
        service: SERVICE_S,
        depth,
    };
    all.extend([
        "iops>=1000@depth:16".into(),
        format!("mean<{}@depth:8", us(busy(8).mean())),
        format!("mean<{}@depth:16", us(busy(16).mean())),
        format!("p99<{}@depth:8", us(busy(8).quantile(0.99))),
        format!("p50<{}@depth:16", us(busy(16).quantile(0.5))),
        format!("p95<{}@depth:1", us(-SERVICE_S * 0.05f64.ln())),
    ]);
    assert_eq!(all.len(), 10);
    let asked = request(&all, 60);
    let (mut wrong, mut undecided) = (0, 0u64);
    for seed in 3000..3000 + runs() {
        let (found, _) = expect(DEVICE, &asked, seed);
        let decided = found.lines.iter();
        let decided = decided.filter(|line| line.outcome != BoundVerdict::Undecided);
        wrong += usize::from(decided.count() > 0);
        undecided += u64::from(found.outcome == BoundVerdict::Undecided);
    }
    let all = runs();
    println!("at the truth: {undecided} of {all} lists of ten undecided, {wrong} with an answer");
    assert!(wrong <= chance(all), "{wrong} of {all}");
}

#[test]
fn reads_and_writes_of_a_mix_are_each_judged_by_their_own() {
    // Its cache answers reads after 100 us; writes take 4 ms. One at a time, half of them writes, that
    // is 244 of each in a second.
    const CACHED: &str = "1,4ms,cache=8MiB@100us,size=2MiB";
    let keeps = [
        "reads>=200@mix:1,50%",
        "writes>=200@mix:1,50%",
        "read mean<200us@mix:1,50%",
        "write mean<5ms@mix:1,50%",
    ];
    let breaks = [
        "reads>=350@mix:1,50%",
        "read p50<50us@mix:1,50%",
        "write mean<2.7ms@mix:1,50%",
        "write p50<1.5ms@mix:1,50%",
    ];
    let all = keeps.iter().chain(&breaks).map(ToString::to_string);
    let request = request(&all.collect::<Vec<_>>(), 180);
    let mut wrong = 0;
    for seed in 1..=runs() {
        let (found, _) = expect(CACHED, &request, 7000 + seed);
        let outcomes = found.lines.iter().map(|line| line.outcome);
        let truth = (0..found.lines.len()).map(|at| at < keeps.len());
        let is_wrong = |(outcome, is_kept): (BoundVerdict, bool)| match outcome {
            BoundVerdict::Kept => !is_kept,
            BoundVerdict::Broken => is_kept,
            _ => true,
        };
        wrong += usize::from(outcomes.zip(truth).any(is_wrong));
        // Operations are counted by kind.
        let of = |at: usize| found.lines[at].operations;
        assert_eq!((of(0), of(1)), (of(2), of(3)), "{seed}");
    }
    assert!(wrong <= chance(runs()), "{wrong} of {}", runs());
}

#[test]
fn a_curve_is_judged_by_its_intervals_and_as_seldom_wrong() {
    // Lists: a quarter to spare, the truth, and 1.5 times it.
    let lists = [0.8, 1.0, 1.5].map(|factor| request(&lines(factor), 180).expectations);
    let (mut met, mut decided, mut missed) = (0, 0, 0);
    for seed in 4000..4000 + runs() {
        let closed = curve(Loads::Depths(vec![1, 8]));
        let mut records = measured(DEVICE, &closed, seed).0;
        records.extend(measured(DEVICE, &curve(Loads::Rates(vec![500])), seed).0);
        let outcome = |list: &[Expectation]| {
            let evidence = RunEvidence {
                records: &records,
                ..RunEvidence::default()
            };
            expected_by(evidence, list).lines
        };
        let [spare, truth, beyond] = lists.each_ref().map(|list| outcome(list));
        let is = |lines: &[ExpectedLine], outcome| {
            lines.iter().filter(|line| line.outcome == outcome).count()
        };
        met += is(&spare, BoundVerdict::Kept);
        decided += usize::from(is(&truth, BoundVerdict::Undecided) < truth.len());
        missed += is(&spare, BoundVerdict::Broken) + is(&beyond, BoundVerdict::Kept);
    }
    println!(
        "of {} curves: {met} lines with a quarter to spare met, {decided} lists at the truth with an \
         answer, {missed} wrong",
        runs()
    );
    let all = usize::try_from(runs()).unwrap();
    assert!(decided <= chance(runs()), "{decided} of {all}");
    assert!(
        missed == 0 && met * 100 >= all * lists[0].len() * 75,
        "{missed}, {met}"
    );
}
