//! How often two runs of the same thing are called different, and how often two different ones are not.
//!
//! Whole calibrations of a simulated device, in virtual time, with seeds of their own; so the counts are the same
//! whenever this runs. `RIGEL_PAIRS=2000 cargo test --test compare -- --nocapture` counts more pairs, and shows the
//! counts; docs/methods/compare.md tells what came out.

use rigel::analyse::{Comparison, Judgement, PointSummary, Subject, compare, is_precise, summarise_within};
use rigel::drive::Terms;
use rigel::engine::sim::Sim;
use rigel::model::{Bytes, Host, Nanos, SimSpec, Target, TargetFacts};
use rigel::plan::CalibrateRequest;
use rigel::record::journal::{self, EngineChoice, Header};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Small points, so that many runs take little time.
fn request() -> CalibrateRequest {
    CalibrateRequest { point_most: Nanos::from_secs(2), depth_max: 8, ..CalibrateRequest::DEFAULT }
}

/// The points of a calibration of this device.
fn calibrate(spec: SimSpec, seed: u64) -> Vec<PointSummary> {
    let (request, engine) = (request(), Sim::new(spec, seed));
    let precision = request.precision.get();
    let mut points = Vec::new();
    while let Some(point) = request.next(spec.bytes.0, seed, &points) {
        let terms = Terms {
            workers: 1,
            stop: &AtomicBool::new(false),
            enough: &|classes| classes.first().is_some_and(|windows| is_precise(windows, precision)),
        };
        let record = rigel::drive::point(&engine, &point, &terms, &mut |_| ()).unwrap();
        points.push(summarise_within(&record, Some(request.bound)));
    }
    points
}

fn spec(text: &str) -> SimSpec {
    SimSpec { bytes: Bytes(1 << 30), ..text.parse().unwrap() }
}

fn header(target: Target) -> Header {
    Header {
        format: journal::FORMAT,
        version: "0".into(),
        started: String::new(),
        command: Vec::new(),
        target,
        engine: EngineChoice { name: "sim".into(), buffered: false },
        engine_about: String::new(),
        points: Vec::new(),
        plan: serde_json::Value::Null,
        host: Host::default(),
        facts: TargetFacts::default(),
        findings: Vec::new(),
    }
}

fn against(before: &[PointSummary], after: &[PointSummary]) -> Comparison {
    let header = header(Target::Null { bytes: Bytes(1 << 30) });
    let subject = |points: &[PointSummary]| Subject {
        name: String::new(),
        header: &header,
        terms: Vec::new(),
        points: points.to_vec(),
        tolerance: 0.02,
        whole: true,
        doubts: BTreeMap::new(),
    };
    compare(&[subject(before), subject(after)], Some(0.05))
}

/// What came of many comparisons.
#[derive(Debug, Default)]
struct Counts {
    pairs: usize,
    /// Pairs that the verdict calls different.
    different: usize,
    /// Pairs of which some headline figure is certainly slower by more than 5 %.
    slower: usize,
    /// Rows, and of those the ones that differ by their own interval.
    rows: usize,
    rows_different: usize,
    by_name: BTreeMap<String, usize>,
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
            if matches!(judgement, Judgement::Better | Judgement::Worse) {
                self.rows_different += 1;
                *self.by_name.entry(row.name.clone()).or_default() += 1;
            }
        }
    }
}

fn pairs() -> u64 {
    std::env::var("RIGEL_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(120)
}

#[test]
fn two_runs_of_the_same_device_are_seldom_called_different() {
    let mut counts = Counts::default();
    for pair in 0..pairs() {
        let run = |which| calibrate(spec("4,1ms"), 1000 + 2 * pair + which);
        counts.add(&against(&run(0), &run(1)));
    }
    println!("the same device: {counts:?}");
    // Of 120 pairs with a chance of 5 % each, 12 and more come one time in 50.
    assert!(counts.different as f64 <= 0.1 * counts.pairs as f64, "{counts:?}");
    assert_eq!(counts.slower, 0, "{counts:?}");
}

#[test]
fn a_device_that_is_slower_by_a_tenth_is_found() {
    let mut counts = Counts::default();
    for pair in 0..20 {
        let before = calibrate(spec("4,1ms"), 5000 + pair);
        counts.add(&against(&before, &calibrate(spec("4,1100us"), 6000 + pair)));
    }
    println!("slower by a tenth: {counts:?}");
    assert!(counts.different >= 19, "{counts:?}");
}
