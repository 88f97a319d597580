//! Error rates of comparisons: equal runs that are called different, and different runs that are
//! not. Also their reports.
//!
//! Compares whole calibrations of a simulated device in virtual time, each with its own seed, so
//! the counts are always the same. `RIGEL_PAIRS=2000 cargo test --test it compare:: -- --nocapture`
//! compares more pairs, and prints the counts; docs/methods/compare.md has the results.

use crate::common;
use crate::ranks::spec;
use rigel_analyse::plan::Plan;
use rigel_analyse::{
    Comparison, Estimate, Judgement, Limits, PointSummary, Scope, Side, SoFar, Subject, compare,
    compare_sides,
};
use rigel_device::engine::sim::Sim;
use rigel_import::{Source, csv_columns::Columns};
use rigel_model::record::PointRecord;
use rigel_model::record::journal::Header;
use rigel_model::record::journal::Run;
use rigel_model::workload::rng::Rng;
use rigel_model::{Bytes, Nanos, Ratio, SimSpec};
use rigel_report::document::Extent;
use rigel_report::{compare as comparison, text};
use rigel_verbs::calibrate::CalibrateRequest;
use rigel_verbs::import::ImportRequest;

/// A calibration of this device with points of one second, so that many runs take little time.
fn calibrate(spec: SimSpec, seed: u64) -> Run {
    calibrate_for(Nanos::from_secs(1), spec, seed)
}

fn calibrate_for(point_most: Nanos, spec: SimSpec, seed: u64) -> Run {
    let request = CalibrateRequest {
        point_most,
        depth_max: 8,
        closing: Nanos(0),
        ..CalibrateRequest::DEFAULT
    };
    calibrate_as(&request, spec, seed)
}

fn calibrate_as(request: &CalibrateRequest, spec: SimSpec, seed: u64) -> Run {
    let engine = Sim::new(spec.clone(), seed);
    let mut so_far = SoFar::default();
    let mut points: Vec<PointRecord> = Vec::new();
    while let Some(point) =
        request.next(spec.bytes.0, seed, so_far.of(&points, Some(request.bound)))
    {
        points.push(common::run(&engine, &point));
    }
    Run {
        points,
        ..Run::begun(header(spec, request))
    }
}

fn header(spec: SimSpec, request: &CalibrateRequest) -> Header {
    common::header(spec, request, "yesterday")
}

/// Compares the first run with the others; checks whether they are slower by 5 %.
fn shown(found: &Comparison) -> String {
    text::render(&comparison::document(&[], found), Extent::Full)
}

/// Compares both texts of a comparison with their golden files.
pub(crate) fn golden(name: &str, found: &Comparison) {
    let screen = text::render(&comparison::document(&[], found), Extent::Screen);
    common::golden_screen(&format!("compare/{name}.txt"), &screen);
    common::golden(&format!("compare/{name}.verbose.txt"), &shown(found));
}

/// Compares two sides of several runs; checks whether the other is slower by 5 %.
fn sides_against(sides: [&[Run]; 2]) -> Comparison {
    let [before, after] = [("a", sides[0]), ("b", sides[1])].map(|(letter, runs)| {
        let numbered = runs.iter().enumerate();
        let subject = |(at, run)| common::subject(&format!("{letter}{}", at + 1), run);
        numbered.map(subject).collect::<Vec<Subject>>()
    });
    let side = |name: &str, runs| Side {
        name: name.into(),
        runs,
    };
    let sides = [side("A", before.as_slice()), side("B", after.as_slice())];
    compare_sides(&sides, Ratio::from_percent(5.0))
}

fn against(runs: &[(&str, &Run)]) -> Comparison {
    let subjects: Vec<Subject> = runs
        .iter()
        .map(|(name, run)| common::subject(name, run))
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
        .unwrap_or(30)
}

#[test]
fn two_runs_of_the_same_device_are_seldom_called_different() {
    let mut counts = Counts::default();
    let pair = |pair: u64| {
        let run = |which| calibrate(spec("4,3ms"), 1000 + 2 * pair + which);
        against(&[("a", &run(0)), ("b", &run(1))])
    };
    in_two_threads(pairs(), pair)
        .iter()
        .for_each(|comparison| counts.add(comparison));
    println!("the same device: {counts:?}");
    // Of 50 pairs with a chance of 5 % each, 6 or more occur one time in 26.
    assert!(
        counts.different as f64 <= 0.1 * counts.pairs as f64,
        "{counts:?}"
    );
}

#[test]
fn a_device_that_is_slower_by_a_tenth_is_found() {
    let mut counts = Counts::default();
    let count = pairs() / 3;
    for pair in 0..count {
        let run = |device, seed| calibrate_for(Nanos::from_secs(2), spec(device), seed);
        let (before, after) = (run("4,1ms", 5000 + pair), run("4,1111us", 6000 + pair));
        let comparison = against(&[("a", &before), ("b", &after)]);
        assert_eq!(comparison.verdicts[0].better, Vec::<String>::new());
        counts.add(&comparison);
    }
    println!("slower by a tenth: {counts:?}");
    let missed = count - counts.different as u64;
    assert!(missed <= count.div_ceil(20), "{counts:?} of {count}");
}

/// Both halves of the numbers below `count` at once.
fn in_two_threads<T: Send>(count: u64, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let half = |which| (which..count).step_by(2).map(&of).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut all = half(0);
        all.extend(other.join().unwrap());
        all
    })
}

/// Three runs a side of a device whose service time differs from run to run by `deviation`, and
/// that is `slower` on the second side. A mean service time is `service_us`.
fn of_varying_state(number: u64, service_us: f64, deviation: f64, slower: f64) -> Comparison {
    let mut rng = Rng::new(number, 7);
    let mut side = |slower: f64, seed: u64| -> Vec<Run> {
        let run = |at: u64| {
            let service_us = service_us * slower * (deviation * rng.normal()).exp();
            calibrate(spec(&format!("4,{:.0}ns", service_us * 1e3)), seed + at)
        };
        (0..3).map(run).collect()
    };
    let seed = 100_000 + 100 * number;
    let (before, after) = (side(1.0, seed), side(slower, seed + 10));
    sides_against([&before, &after])
}

#[test]
fn three_runs_a_side_of_a_device_that_varies_are_seldom_called_different() {
    let count = pairs() / 5;
    for percent in [1.0, 5.0] {
        let mut counts = Counts::default();
        let of = |number| of_varying_state(number, 3000.0, percent / 100.0, 1.0);
        in_two_threads(count, of)
            .iter()
            .for_each(|comparison| counts.add(comparison));
        println!("a state that varies by {percent} %: {counts:?}");
        // Of 10 with a chance of 5 % each, 3 or more occur one time in 87.
        assert!(
            counts.different as f64 <= (0.1 * counts.pairs as f64).max(2.0),
            "{percent} %: {counts:?}"
        );
        assert_eq!(counts.slower, 0, "{percent} %: {counts:?}");
    }
}

#[test]
fn three_runs_a_side_find_a_tenth_where_the_state_varies_by_half_a_percent() {
    let count = pairs() / 10;
    let mut counts = Counts::default();
    // A fast device, so that a second has enough operations for narrow intervals.
    let of = |number| of_varying_state(number, 300.0, 0.005, 1.1);
    for comparison in in_two_threads(count, of) {
        assert_eq!(comparison.verdicts[0].better, Vec::<String>::new());
        counts.add(&comparison);
    }
    println!("slower by a tenth, three runs a side: {counts:?}");
    assert!(
        counts.different as f64 >= 0.75 * counts.pairs as f64,
        "{counts:?}"
    );
}

#[test]
fn a_device_that_stands_still_a_tenth_of_the_time_is_found() {
    let count = pairs() / 2;
    let pair = |pair: u64| {
        let period_ms = 8000 + pair * 397 % 4001;
        let stalls = format!("4,1ms,stall={}ms/{period_ms}ms", period_ms / 10);
        let run = |device: &str, seed| {
            calibrate_as(&CalibrateRequest::DEFAULT, spec(device), seed + pair)
        };
        let (before, after) = (run("4,1ms", 70_000), run(&stalls, 80_000));
        against(&[("a", &before), ("b", &after)])
    };
    let compared = in_two_threads(count, pair);
    let is_found = |comparison: &&Comparison| {
        let worse = &comparison.verdicts[0].worse;
        worse.contains(&"stalls per minute".into()) && worse.contains(&"time stood still".into())
    };
    let found = compared.iter().filter(is_found).count();
    println!("stands still: found in {found} of {count}");
    assert!(found as f64 >= 0.8 * count as f64, "{found} of {count}");
    let is_better = |comparison: &&Comparison| !comparison.verdicts[0].better.is_empty();
    let better = compared.iter().filter(is_better).count();
    assert!(
        better as f64 <= (0.1 * count as f64).max(1.0),
        "{better} of {count}"
    );
}

/// Slow operations within one window are these devices' own operation, at which other operations
/// complete.
#[test]
fn a_slow_steady_device_has_no_stalls_and_a_difference_of_a_twentieth_is_found() {
    let side = |device: &str, seed| -> Vec<Run> {
        let run = |at| calibrate_as(&CalibrateRequest::DEFAULT, spec(device), seed + at);
        (0..3).map(run).collect()
    };
    let compared = in_two_threads(pairs() / 5, |pair| {
        let seed = 300_000 + 100 * pair;
        sides_against([&side("4,4ms", seed), &side("4,4200us", seed + 10)])
    });
    let stalls = |comparison: &&Comparison| {
        let mut rows = comparison.figures.iter();
        let row = rows.find(|row| row.name == "stalls per minute").unwrap();
        row.figures.iter().flatten().any(|one| one.value > 0.0)
    };
    let is_found = |comparison: &&Comparison| {
        let worse = &comparison.verdicts[0].worse;
        worse.contains(&"max IOPS".into())
    };
    let stalling = compared.iter().filter(stalls).count();
    let found = compared.iter().filter(is_found).count();
    println!(
        "slow and steady: stalls in {stalling}, slower in {found} of {}",
        compared.len()
    );
    assert!(stalling as f64 <= 0.1 * compared.len() as f64, "{stalling}");
    assert!(found as f64 >= 0.8 * compared.len() as f64, "{found}");
}

#[test]
fn short_stalls_are_counted_and_the_time_is_that_of_the_model() {
    for (device, per_minute, share) in [
        ("4,250us,stall=100ms/1s", 60.0, 0.1),
        ("4,250us,stall=1s/10s", 6.0, 0.1),
        ("4,250us,stall=30ms/3s", 20.0, 0.01),
        ("4,250us", 0.0, 0.0),
        // One slow operation does not stop the others.
        ("16,250us,slow=100ms@0.01%", 0.0, 0.0),
    ] {
        let request = CalibrateRequest {
            depth_max: 64,
            ..CalibrateRequest::DEFAULT
        };
        let mut run = calibrate_as(&request, spec(device), 5);
        if device.contains("slow") {
            // At a depth of one or two, a single slow operation is all that is outstanding.
            run.points
                .retain(|point| point.coordinates.depth().is_some_and(|depth| depth >= 8));
        }
        let subject = common::subject("a", &run);
        let sum = |of: fn(&PointSummary) -> f64| subject.points.iter().map(of).sum::<f64>();
        let seconds = sum(|point| point.measured_s);
        let found = [
            60.0 * sum(|point| point.classes[0].stalls.times as f64),
            sum(|point| point.classes[0].stalls.seconds),
        ]
        .map(|it| it / seconds);
        println!("{device}: {found:?} in {seconds} s");
        // Virtual time: the same in every run of the test. The points end where they end.
        for (found, expected) in found.into_iter().zip([per_minute, share]) {
            assert!(
                (found - expected).abs() <= 0.35 * expected,
                "{device}: {found}, and {expected} is true"
            );
        }
    }
}

#[test]
fn the_maximum_is_the_one_of_the_report_of_a_calibration() {
    let (before, after) = (calibrate(spec("4,1ms"), 1), calibrate(spec("4,1ms"), 2));
    let found = against(&[("a", &before), ("b", &after)]);
    let row = &found.figures[0];
    assert_eq!(row.name, "max IOPS");
    for (figure, run) in row.figures.iter().zip([&before, &after]) {
        let of_run = rigel_verbs::calibrate::results(run).unwrap();
        let (shown, reported) = (figure.unwrap(), of_run.maximum.unwrap().iops);
        assert!(
            (shown.value - reported.value).abs() < 1e-9,
            "{shown:?} {reported:?}"
        );
        let half = |it: Estimate| it.interval.and_then(Limits::both).unwrap().half_width();
        assert!(
            (half(shown) / half(reported) - 1.0).abs() < 1e-6,
            "{shown:?} {reported:?}"
        );
    }
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
    golden(
        "pair",
        &against(&[("monday", &before), ("tuesday", &after)]),
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
    golden("three", &all);
    let several = sides_against([&[before, same], &[after, calibrate(spec("4,1200us"), 4)]]);
    golden("sides", &several);
    let json: serde_json::Value = serde_json::from_str(&comparison::json(&several)).unwrap();
    assert_eq!(json["sides"][1]["runs"][1]["name"], "b2");
    assert_eq!(
        json["figures"][0]["runs"][1].as_array().map(Vec::len),
        Some(2)
    );
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
    after.header.invocation.request["block"] = 16384.into();
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

/// What fio reports of one depth, as `rigel import` keeps it.
fn of_fio(depth: u32) -> Run {
    let text = include_str!("../imports/fio_depth8_plus.json")
        .replace("\"iodepth\": \"8\"", &format!("\"iodepth\": \"{depth}\""));
    let source = Source {
        name: "fio.json",
        text: &text,
    };
    let header = common::header(spec("4,1ms"), &ImportRequest::default(), "today");
    Run {
        imported: rigel_import::read(&[source], None, &Columns::default()).unwrap(),
        ..Run::begun(header)
    }
}

#[test]
fn another_tools_run_of_one_depth_is_compared_at_that_depth_and_not_with_a_maximum() {
    let ours = calibrate(spec("4,1ms"), 1);
    let at = |depth: u32| {
        let found = common::subject("ours", &ours);
        let mut points = found.points.into_iter();
        let point = points.find(|point| point.coordinates.depth() == Some(depth))?;
        Some(point.classes[0].iops)
    };
    for depth in [2, 8] {
        let found = against(&[("ours", &ours), ("theirs", &of_fio(depth))]);
        let row = |name: &str| found.figures.iter().find(|row| row.name == name).unwrap();
        assert_eq!(row("max IOPS").changes, [None]);
        let rates = row(&format!("IOPS at depth {depth}"));
        let expected = 55_479.76 / at(depth).expect("the search has this depth");
        let ratio = rates.changes[0].unwrap().ratio;
        assert!((ratio / expected - 1.0).abs() < 1e-3, "{ratio} {expected}");
        let said = found.conclusion().sentence;
        assert!(said.contains(&format!("IOPS at depth {depth} ")), "{said}");
        assert!(said.contains("Maxima are not compared"), "{said}");
    }
    // A depth that the search did not visit has nothing beside it.
    assert_eq!(at(11), None);
    assert!(!against(&[("ours", &ours), ("theirs", &of_fio(11))]).has_common(1));
    // Two runs of one search have the same maximum, whatever depths they visited.
    let again = calibrate(spec("4,1ms"), 2);
    let found = against(&[("ours", &ours), ("again", &again)]);
    assert!(
        found.figures[0].changes[0].is_some(),
        "{:?}",
        found.figures[0]
    );
    assert!(
        found
            .figures
            .iter()
            .all(|row| !row.name.starts_with("IOPS at depth"))
    );
}
