//! Error rates of comparisons: equal runs that are called different, and different runs that are
//! not. Also their reports.
//!
//! Compares whole calibrations of a simulated device in virtual time, each with its own seed, so
//! the counts are always the same. `RIGEL_PAIRS=2000 cargo test --test it compare:: -- --nocapture`
//! compares more pairs, and prints the counts; docs/methods/compare.md has the results.

use crate::common;
use rigel::analyse::{
    Comparison, Judgement, PointSummary, Scope, Subject, compare, is_precise, summarise_within,
};
use rigel::drive::Terms;
use rigel::engine::sim::Sim;
use rigel::model::{Bytes, CalibrateRequest, Nanos, Ratio, Request, SimSpec};
use rigel::record::PointRecord;
use rigel::record::journal::{Header, Run};
use rigel::report::document::Extent;
use rigel::report::{compare as comparison, text};
use std::sync::atomic::AtomicBool;

/// A calibration of this device with points of one second, so that many runs take little time.
fn calibrate(spec: SimSpec, seed: u64) -> Run {
    calibrate_for(Nanos::from_secs(1), spec, seed)
}

fn calibrate_for(point_most: Nanos, spec: SimSpec, seed: u64) -> Run {
    let request = CalibrateRequest {
        point_most,
        depth_max: 8,
        ..CalibrateRequest::DEFAULT
    };
    let engine = Sim::new(spec, seed);
    let precision = request.precision.get();
    let mut summaries: Vec<PointSummary> = Vec::new();
    let mut points: Vec<PointRecord> = Vec::new();
    while let Some(point) = request.next(spec.bytes.0, seed, &summaries) {
        let terms = Terms {
            workers: 1,
            stop: &AtomicBool::new(false),
            enough: &|classes| {
                classes
                    .first()
                    .is_some_and(|windows| is_precise(windows, precision))
            },
        };
        let record = rigel::drive::point(&engine, &point, &terms, &mut |_| ()).unwrap();
        summaries.push(summarise_within(&record, Some(request.bound)));
        points.push(record);
    }
    Run {
        header: header(spec, &request),
        points,
        imported: Vec::new(),
        cut: false,
    }
}

fn spec(text: &str) -> SimSpec {
    SimSpec {
        bytes: Bytes(1 << 30),
        ..text.parse().unwrap()
    }
}

fn header(spec: SimSpec, request: &CalibrateRequest) -> Header {
    common::header(spec, &Request::Calibrate(request.clone()), "yesterday")
}

/// Compares the first run with the others; checks whether they are slower by 5 %.
fn shown(found: &Comparison) -> String {
    text::render(&comparison::document(&[], found), Extent::Summary)
}

fn against(runs: &[(&str, &Run)]) -> Comparison {
    let subjects: Vec<Subject> = runs
        .iter()
        .map(|(name, run)| comparison::subject(name, run))
        .collect();
    compare(&subjects, Ratio::from_percent(5.0))
}

/// Counts over many comparisons.
#[derive(Debug, Default)]
struct Counts {
    pairs: usize,
    /// Pairs that the verdict calls different.
    different: usize,
    /// Pairs with some headline figure that is certainly slower by more than 5 %.
    slower: usize,
    /// Rows, and the rows that differ by their own interval.
    rows: usize,
    rows_different: usize,
}

impl Counts {
    fn add(&mut self, comparison: &Comparison) {
        let verdict = &comparison.verdicts[0];
        assert!(verdict.judged >= 5, "few figures are judged: {verdict:?}");
        self.pairs += 1;
        self.different += usize::from(!verdict.worse.is_empty() || !verdict.better.is_empty());
        self.slower += usize::from(!comparison.slower.as_ref().unwrap().certain.is_empty());
        for row in &comparison.figures {
            let judgement = row.changes[0].map_or(Judgement::NotKnown, |change| change.judgement);
            self.rows += usize::from(judgement != Judgement::NotKnown);
            self.rows_different +=
                usize::from(matches!(judgement, Judgement::Better | Judgement::Worse));
        }
    }
}

fn pairs() -> u64 {
    std::env::var("RIGEL_PAIRS")
        .ok()
        .and_then(|pairs| pairs.parse().ok())
        .unwrap_or(50)
}

#[test]
fn two_runs_of_the_same_device_are_seldom_called_different() {
    let mut counts = Counts::default();
    let pair = |pair: u64| {
        let run = |which| calibrate(spec("4,1ms"), 1000 + 2 * pair + which);
        against(&[("a", &run(0)), ("b", &run(1))])
    };
    let half = |which| (which..pairs()).step_by(2).map(pair).collect::<Vec<_>>();
    let compared = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        [half(0), other.join().unwrap()].concat()
    });
    compared
        .iter()
        .for_each(|comparison| counts.add(comparison));
    println!("the same device: {counts:?}");
    // Of 50 pairs with a chance of 5 % each, 6 or more occur one time in 26.
    assert!(
        counts.different as f64 <= 0.1 * counts.pairs as f64,
        "{counts:?}"
    );
    assert_eq!(counts.slower, 0, "{counts:?}");
}

#[test]
fn a_device_that_is_slower_by_a_tenth_is_found() {
    let mut counts = Counts::default();
    for pair in 0..20 {
        let run = |device, seed| calibrate_for(Nanos::from_secs(2), spec(device), seed);
        let (before, after) = (run("4,1ms", 5000 + pair), run("4,1111us", 6000 + pair));
        let comparison = against(&[("a", &before), ("b", &after)]);
        assert_eq!(comparison.verdicts[0].better, Vec::<String>::new());
        counts.add(&comparison);
    }
    println!("slower by a tenth: {counts:?}");
    assert!(counts.different >= 19, "{counts:?}");
}

#[test]
fn certain_and_possible_slowdowns_are_distinguished() {
    let before = calibrate(spec("4,1ms"), 1);
    let slower = |after: &Run| against(&[("a", &before), ("b", after)]).slower.unwrap();
    let much = slower(&calibrate(spec("4,1200us"), 2));
    assert!(much.certain.contains(&(1, "max IOPS".into())), "{much:?}");
    let near = slower(&calibrate(spec("4,1050us"), 3));
    assert!(
        near.certain.is_empty() && !near.possible.is_empty(),
        "{near:?}"
    );
    // A faster run is not slower, by whatever factor.
    let faster = slower(&calibrate(spec("4,500us"), 4));
    assert!(
        faster.certain.is_empty() && faster.possible.is_empty(),
        "{faster:?}"
    );
}

#[test]
fn it_reads_as_it_should() {
    let (before, mut same) = (calibrate(spec("4,1ms"), 1), calibrate(spec("4,1ms"), 2));
    let after = calibrate(spec("4,1200us"), 3);
    common::golden(
        "compare/pair.txt",
        &shown(&against(&[("monday", &before), ("tuesday", &after)])),
    );
    // Other conditions, and a stopped run.
    same.header.host.kernel = "6.9.0".into();
    same.header.engine.buffered = true;
    same.points.pop();
    let all = against(&[
        ("monday", &before),
        ("wednesday", &same),
        ("tuesday", &after),
    ]);
    let text = shown(&all);
    assert!(common::fits_a_terminal(&text), "{text}");
    common::golden("compare/three.txt", &text);
    let json: serde_json::Value = serde_json::from_str(&comparison::json(&all)).unwrap();
    assert_eq!(json["figures"][0]["changes"][1]["judgement"], "worse");
    // The sizes of the models come first: they are the target.
    assert_eq!(
        (
            &json["conditions"][0]["name"],
            &json["conditions"][0]["run"]
        ),
        (&"target".into(), &2.into())
    );
}

#[test]
fn another_target_is_a_condition_and_another_size_of_io_is_not_compared() {
    let (before, mut after) = (calibrate(spec("4,1ms"), 1), calibrate(spec("4,1ms"), 2));
    let found = |after: &Run| against(&[("a", &before), ("b", after)]);
    let conditions = |after: &Run| {
        found(after)
            .conditions
            .into_iter()
            .map(|it| (it.name, it.not_compared))
            .collect::<Vec<_>>()
    };
    let compared = |after: &Run| {
        let rows = found(after).figures;
        rows.into_iter()
            .filter(|row| row.changes[0].is_some())
            .map(|row| row.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(conditions(&after), []);
    let all = compared(&after);
    // Comparing two storage systems is the purpose of comparisons.
    after.header.facts.usable = Bytes(2 << 30);
    after.header.host.kernel = "6.9.0".into();
    assert_eq!(
        conditions(&after),
        [("target size", None), ("kernel", None)]
    );
    assert_eq!(compared(&after), all);
    let Request::Calibrate(request) = &mut after.header.invocation.request else {
        unreachable!("it was calibrated")
    };
    request.block = 16384;
    let expected = [
        ("target size", None),
        ("size of a small I/O", Some(Scope::Small)),
        ("kernel", None),
    ];
    assert_eq!(conditions(&after), expected);
    assert_eq!(compared(&after), ["max MB/s", "one process MB/s"]);
    assert!(
        found(&after)
            .points
            .iter()
            .all(|point| point.class == "large")
    );
    let text = shown(&found(&after));
    assert!(
        text.contains("figures of small I/O") && text.contains("not compared\n"),
        "{text}"
    );
}
