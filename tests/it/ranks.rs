//! Runs over several hosts, without any: each rank's points are measured on a model of its own in
//! virtual time, with a clock of its own, and written to a journal as rank 0 would. What a journal
//! says of the sum, the hosts and what they do to each other is compared with what the models are.
//!
//! The reports are in `tests/golden/ranks/`; `UPDATE_GOLDEN=1 cargo test --test it ranks::` writes
//! them again.

use crate::common::{self, Place, header, run};
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::ranks::of_rank;
use rigel_analyse::{HostRounds, RanksResult, SoFar, ranks, summarise};
use rigel_device::engine::sim::Sim;
use rigel_model::record::journal::Run;
use rigel_model::record::journal::{self, Journal};
use rigel_model::record::ranks::merged;
use rigel_model::record::{
    End, PointRecord, RankClock, RankFacts, RankGroup, RankLines, RankLost, RankRecord, RunEnd,
};
use rigel_model::{Bytes, Coordinates, Host, Nanos, Point, SimSpec, Step, Target};
use rigel_report::document::Extent;
use rigel_report::openmetrics::{About, Exposed};
use rigel_report::{self as report, html, text};
use rigel_verbs::Verb;
use rigel_verbs::calibrate::CalibrateRequest;
use rigel_verbs::curve::CurveRequest;
use rigel_verbs::curve::Loads;
use rigel_verbs::examples;
use std::sync::OnceLock;

/// Where a rank's clock stands when rank 0's is at zero: an hour, and not whole windows, apart.
fn ahead(rank: u32) -> i64 {
    i64::from(rank) * 3_600_123_456_789
}

/// What each host is: its model while this many ranks measure.
pub(crate) type Model<'a> = &'a dyn Fn(u32, u32) -> SimSpec;

pub(crate) fn spec(text: &str) -> SimSpec {
    SimSpec {
        bytes: Bytes(1 << 30),
        ..text.parse().unwrap()
    }
}

pub(crate) fn group(size: u32) -> RankGroup {
    let member = |rank: u32| RankFacts {
        rank,
        boot_id: format!("boot-{rank}"),
        host: Host {
            name: format!("h{}", rank + 1),
            kernel: "6.1".into(),
            ..Host::default()
        },
        clock: RankClock {
            ahead_ns: ahead(rank),
            bound: Nanos(15_000),
            drift_ppm: 1.0,
            agreed: true,
        },
        mtu: Some(if rank == 2 { 1500 } else { 9000 }),
        ..RankFacts::default()
    };
    RankGroup {
        members: (0..size).map(member).collect(),
        ..RankGroup::default()
    }
}

/// The records of all active ranks of a point that begins at `now` on rank 0's clock; rank r begins
/// r times 200 µs later.
pub(crate) fn measured(point: &Point, size: u32, now: u64, model: Model<'_>) -> Vec<RankRecord> {
    let active = point.coordinates.active_ranks().count(size);
    let part = |rank: u32| {
        let spec = model(rank, active);
        let own = of_rank(point, rank, size, spec.bytes.0)?;
        let mut record = run(&Sim::new(spec, own.seed), &own);
        // Real CPU time is not the same in two runs of the test.
        record.cpu = Nanos(0);
        record.asked = Some(Box::new(point.clone()));
        let began = i64::try_from(now + u64::from(rank) * 200_000).unwrap() + ahead(rank);
        Some(RankRecord {
            rank,
            clock: RankClock {
                ahead_ns: ahead(rank),
                bound: Nanos(15_000),
                drift_ppm: 1.0,
                agreed: true,
            },
            began: Nanos(u64::try_from(began).unwrap()),
            record,
        })
    };
    (0..size).filter_map(part).collect()
}

/// A run of `size` ranks, through a journal on disk.
pub(crate) fn cluster(name: &str, size: u32, request: impl Verb, model: Model<'_>) -> Run {
    let place = Place::new(&format!("ranks-{name}"));
    journaled(&place, size, request, model);
    Run::read(&place.0.join("run")).unwrap()
}

/// The journal of a short run by three hosts that differ, as text.
pub(crate) fn journal_text() -> String {
    let place = Place::new("ranks-text");
    let slow = |rank, _| spec(if rank == 2 { "2,2ms" } else { "2,1ms" });
    journaled(&place, 3, curve(4), &slow);
    std::fs::read_to_string(place.0.join("run").join(journal::FILE_NAME)).unwrap()
}

/// Measures a run of `size` ranks, and leaves its journal in the directory `run` of `place`.
fn journaled(place: &Place, size: u32, mut request: impl Verb, model: Model<'_>) {
    let directory = place.0.join("run");
    request.set_ranks(size);
    let mut header = header(model(0, size), &request, "2026-01-01T00:00:00Z");
    header.ranks = Some(Box::new(group(size)));
    let usable = header.facts.usable.0;
    let mut journal = Journal::create(&directory, &header).unwrap();
    let (mut so_far, mut points): (SoFar, Vec<PointRecord>) = (SoFar::default(), Vec::new());
    let mut lines = RankLines::default();
    let mut now = 10_000_000_000;
    loop {
        let done = so_far.of_ranks(&points, &lines, request.bound());
        let Some(point) = request.next(usable, 7, done) else {
            break;
        };
        assert!(
            points.len() < 400,
            "the search does not end: {}",
            point.coordinates
        );
        let parts = measured(&point, size, now, model);
        for part in &parts {
            lines.record(part.clone());
        }
        let sum = merged("2026-01-01T00:00:00Z".into(), &parts).unwrap();
        assert_eq!(sum.end, End::Complete, "{}", point.coordinates);
        journal.point_of_ranks(&parts, &sum).unwrap();
        lines.point(points.len(), &sum);
        points.push(sum);
        now += 30_000_000_000;
    }
    journal.end(&RunEnd::complete(0)).unwrap();
}

/// A calibration that takes little time.
fn calibration() -> CalibrateRequest {
    CalibrateRequest {
        point_most: Nanos::from_secs(3),
        visits_until: Some(Nanos::from_secs(30)),
        depth_max: 32,
        ..common::usual_calibration()
    }
}

/// A curve of one depth.
fn curve(depth: u32) -> CurveRequest {
    CurveRequest {
        in_flight_max: 64,
        point_most: Nanos::from_secs(5),
        ..examples::curve(Loads::Depths(vec![depth]))
    }
}

/// A calibration by three hosts with a device each, the third one slower. Made once.
fn calibrated() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        let models = |rank, active: u32| {
            let device = spec(&format!("{},1ms", if active == 1 { 4 } else { 3 }));
            if rank == 2 {
                SimSpec {
                    service: Nanos::from_millis(2),
                    ..device
                }
            } else {
                device
            }
        };
        cluster("golden", 3, calibration(), &models)
    })
}

fn rounds(found: &RanksResult) -> &HostRounds {
    found.rounds.as_ref().expect("the plan has rounds")
}

#[test]
fn a_journal_has_each_ranks_line_before_the_sum_and_gives_them_back() {
    let run = cluster("journal", 2, curve(8), &|_, _| spec("4,1ms"));
    assert_eq!(
        run.header.ranks.as_ref().map(|group| group.hosts()),
        Some(2)
    );
    assert_eq!(run.ended.as_ref().map(|end| end.status), Some(0));
    assert_eq!(run.ranks.parts.len(), run.points.len());
    for (at, point) in run.ranks.parts.iter().enumerate() {
        assert_eq!(point.at, at);
        let sum = &run.points[point.at];
        let again = merged(sum.started.clone(), &point.parts).unwrap();
        assert_eq!((&again.merge, again.measured), (&sum.merge, sum.measured));
        let histogram = |record: &PointRecord| record.streams[0].total().response.histogram;
        assert!(histogram(&again) == histogram(sum), "{}", sum.coordinates);
        let active = sum.coordinates.active_ranks();
        let ranks: Vec<u32> = point.parts.iter().map(|part| part.rank).collect();
        assert_eq!(
            ranks,
            (0..2)
                .filter(|rank| active.includes(*rank))
                .collect::<Vec<_>>()
        );
        // Counts are conserved: what is in the sum is in the parts, window by window.
        for window in 0..sum.whole_windows() {
            let done = |record: &PointRecord| -> u64 {
                record.streams[0]
                    .windows_at(window)
                    .map(|window| window.done)
                    .sum()
            };
            let parts: u64 = point.parts.iter().map(|part| done(&part.record)).sum();
            assert_eq!(done(sum), parts, "{} window {window}", sum.coordinates);
        }
    }
}

/// Hosts with a device each: twice the hosts do twice as much, and none notices the others.
#[test]
fn hosts_that_share_nothing_add_up() {
    let run = cluster("apart", 4, curve(8), &|_, _| spec("4,1ms"));
    let found = ranks(&run).unwrap();
    let rounds = rounds(&found);
    let sums: Vec<(u32, f64)> = rounds
        .ladder
        .iter()
        .map(|step| (step.ranks, step.sum.value))
        .collect();
    let one = sums[0].1;
    assert_eq!(
        sums.iter().map(|(ranks, _)| *ranks).collect::<Vec<_>>(),
        [1, 2, 4]
    );
    for (ranks, sum) in &sums {
        let share = sum / one / f64::from(*ranks);
        assert!((share - 1.0).abs() < 0.03, "{ranks} ranks: {share}");
    }
    assert_eq!((rounds.hosts_that_fill(), rounds.rounds), (None, 2));
    assert!(
        (rounds.scaling.unwrap() - 1.0).abs() < 0.03,
        "{:?}",
        rounds.scaling
    );
    let at = found.at_load.as_ref().unwrap();
    assert!(at.jain.unwrap() > 0.999, "{:?}", at.jain);
    assert_eq!(at.hosts.iter().filter(|host| host.is_slow).count(), 0);
    let shares: f64 = at.hosts.iter().map(|host| host.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

/// Hosts that share a device of eight servers: at the depth at which all together fill it, one host
/// alone cannot. So the ladder is measured at a greater depth too.
#[test]
fn a_calibration_has_a_ladder_at_the_depth_with_the_most_throughput() {
    let shared = |_, active: u32| spec(&format!("{},2ms", 8 / active));
    let run = cluster("ladder", 4, calibration(), &shared);
    let found = ranks(&run).unwrap();
    let (knee, fullest) = (rounds(&found), found.fullest_rounds.as_ref().unwrap());
    assert!(
        fullest.depth > knee.depth,
        "{} {}",
        fullest.depth,
        knee.depth
    );
    let counts =
        |rounds: &HostRounds| -> Vec<u32> { rounds.ladder.iter().map(|step| step.ranks).collect() };
    assert_eq!(
        (counts(knee), counts(fullest)),
        (vec![1, 2, 4], vec![1, 2, 4])
    );
    let one = |rounds: &HostRounds| rounds.ladder[0].sum.value;
    assert!(one(fullest) > 1.3 * one(knee));
    assert_eq!(fullest.rounds, knee.rounds);
    let text = text::render(&common::evaluated(&run).document(), Extent::Full);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!("fills the storage at depth {} on each", fullest.depth);
    assert!(
        text.contains(&said) || fullest.hosts_that_fill().is_none(),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "More and more ranks, depth {} on each",
            fullest.depth
        )),
        "{text}"
    );
}

/// Hosts that share a device of four servers: whoever measures gets an equal part of it. One host
/// keeps all four busy alone.
#[test]
fn hosts_that_share_a_device_do_not_add_up_and_the_ladder_ends() {
    let shared = |_, active: u32| spec(&format!("{},1ms", 4 / active));
    let run = cluster("shared", 4, curve(8), &shared);
    let found = ranks(&run).unwrap();
    let rounds = rounds(&found);
    let one = rounds.ladder[0].sum.value;
    for step in &rounds.ladder {
        assert!(
            (step.sum.value / one - 1.0).abs() < 0.03,
            "{} ranks: {}",
            step.ranks,
            step.sum.value
        );
    }
    let fill = rounds.hosts_that_fill().expect("the ladder ends");
    assert!((fill - 1.0).abs() < 0.05, "{fill}");
    for host in &rounds.alone {
        let ratio = host.rate_ratio.unwrap().value;
        assert!((ratio - 0.25).abs() < 0.02, "{}: {ratio}", host.host);
    }
    assert!(
        (rounds.scaling.unwrap() - 0.25).abs() < 0.02,
        "{:?}",
        rounds.scaling
    );
}

#[test]
fn the_slow_host_of_three_is_named_with_what_differs_on_it() {
    let slow = |rank, _| spec(if rank == 2 { "4,2ms" } else { "4,1ms" });
    let run = cluster("slow", 3, curve(8), &slow);
    let found = ranks(&run).unwrap();
    let at = found.at_load.as_ref().unwrap();
    let names: Vec<&str> = at
        .hosts
        .iter()
        .filter(|host| host.is_slow)
        .map(|host| host.host.as_str())
        .collect();
    assert_eq!(names, ["h3"]);
    let said = found
        .findings
        .iter()
        .find(|finding| finding.name == "unequal")
        .unwrap();
    assert!(
        said.what.contains("h3") && said.what.contains("MTU 1500 instead of 9000"),
        "{}",
        said.what
    );
    assert_eq!(at.worst().unwrap().host, "h3");
    // 1000 + 1000 + 500 by Jain: 2500² / (3 · 2,250,000).
    assert!((at.jain.unwrap() - 0.926).abs() < 0.01, "{:?}", at.jain);
}

#[test]
fn of_two_hosts_that_differ_neither_is_named() {
    let slow = |rank, _| spec(if rank == 1 { "4,2ms" } else { "4,1ms" });
    let run = cluster("two", 2, curve(8), &slow);
    let found = ranks(&run).unwrap();
    let at = found.at_load.as_ref().unwrap();
    assert!(at.two_differ && at.hosts.iter().all(|host| !host.is_slow));
    let said = found
        .findings
        .iter()
        .find(|finding| finding.name == "unequal")
        .unwrap();
    assert!(said.what.contains("the two hosts differ"), "{}", said.what);
}

/// Percentiles of all operations are those of one histogram of both logs: half of the operations
/// take 1 ms, half 10 ms, and no mean of two percentiles would say so.
#[test]
fn models_that_begin_apart_are_added_up_and_the_skew_is_told() {
    let request = curve(4);
    let point = request.next(1 << 30, 7, &[]).unwrap();
    // A tenth of a window is nothing, more is doubtful.
    for (late_percent, is_doubtful) in [(5, false), (30, true)] {
        let mut parts = measured(&point, 2, 10_000_000_000, &|_, _| spec("4,1ms"));
        let late = Nanos(parts[1].record.window.0 * late_percent / 100);
        parts[1].began = parts[1].began.plus(late);
        let sum = merged("2026-01-01T00:00:00Z".into(), &parts).unwrap();
        let done = |record: &PointRecord| record.streams[0].total().done;
        let of_parts: u64 = parts.iter().map(|part| done(&part.record)).sum();
        assert_eq!((sum.end.clone(), done(&sum)), (End::Complete, of_parts));
        let findings = summarise(&sum).findings;
        let skew = findings.iter().find(|finding| finding.name == "skew");
        assert_eq!(
            skew.is_some(),
            is_doubtful,
            "{late_percent} %: {findings:?}"
        );
    }
}

#[test]
fn percentiles_are_of_all_operations_together() {
    let request = curve(1);
    let two = |rank, _| {
        spec(if rank == 1 {
            "1,10ms,fixed"
        } else {
            "1,1ms,fixed"
        })
    };
    let run = cluster("percentiles", 2, request, &two);
    let sum = run
        .points
        .iter()
        .find(|point| point.coordinates.step() == Step::Depth)
        .unwrap();
    let total = sum.streams[0].total().response.histogram;
    // Of 1100 operations per second 1000 take 1 ms: p90 is theirs, p91 is of the others.
    let band = |q| total.quantile(q).unwrap();
    assert!(
        band(0.9).low <= 1_000_000 && 1_000_000 <= band(0.9).high,
        "{:?}",
        band(0.9)
    );
    assert!(
        band(0.92).low <= 10_000_000 && 10_000_000 <= band(0.92).high,
        "{:?}",
        band(0.92)
    );
}

/// Rates are those of all ranks together, so a search for the rate that keeps a bound finds what
/// all of them can offer.
#[test]
fn an_offered_rate_is_divided_among_the_ranks() {
    let run = calibrated();
    for point in &run.points {
        let Coordinates::Rate { rate_per_s, .. } = point.coordinates else {
            continue;
        };
        let total = point.streams[0].total();
        let unserved: u64 = point.streams[0].unserved.iter().sum();
        let due = (total.done + total.failures() + unserved) as f64 / point.measured.as_secs_f64();
        // Arrivals are random: four standard deviations of their number.
        let expected = rate_per_s as f64;
        let slack = 4.0 * (expected / point.measured.as_secs_f64()).sqrt();
        assert!(
            (due - expected).abs() < slack + 0.01 * expected,
            "{due} of {expected}"
        );
    }
    assert!(
        run.points
            .iter()
            .any(|point| point.coordinates.step() == Step::Rate)
    );
}

#[test]
fn a_lost_rank_is_told() {
    let mut run = cluster("lost", 2, curve(8), &|_, _| spec("4,1ms"));
    run.ended = None;
    run.ranks.lost = vec![RankLost {
        rank: 1,
        host: "h2".into(),
        coordinates: Coordinates::at_depth(8),
        how: "no beat for 10 s".into(),
    }];
    let found = ranks(&run).unwrap();
    let said = found
        .findings
        .iter()
        .find(|finding| finding.name == "rank-lost")
        .unwrap();
    assert!(
        said.what.contains("rank 1 on h2") && said.what.contains("no beat for 10 s"),
        "{}",
        said.what
    );
}

#[test]
fn the_report_is_as_the_golden_files_have_it() {
    let run = calibrated();
    let measured = common::evaluated(run);
    let document = report::with_each_host(run, measured.document()).unwrap();
    for (name, extent) in [("three", Extent::Screen), ("three.verbose", Extent::Full)] {
        let said = text::render(&document, extent);
        if extent == Extent::Screen {
            common::golden_screen(&format!("ranks/{name}.txt"), &said);
        } else {
            common::golden(&format!("ranks/{name}.txt"), &said);
        }
    }
    common::golden("ranks/three.csv", &report::csv_of_hosts(run).unwrap());
    let json: serde_json::Value =
        serde_json::from_str(&measured.json_with_each_host().unwrap()).unwrap();
    assert_eq!(json["ranks"]["hosts"], 3);
    assert_eq!(
        json["ranks"]["rounds"]["ladder"].as_array().unwrap().len(),
        3
    );
    assert_eq!(json["ranks"]["at_load"]["hosts"][2]["is_slow"], true);
    assert!(json["each_host"].as_array().unwrap().len() > 5);
    let page = html::render(&document);
    for id in ["hosts-ladder", "hosts-alone", "per-host"] {
        assert!(page.contains(id), "the page has {id}");
    }
}

#[test]
fn metrics_have_each_rank() {
    let run = cluster("metrics", 2, curve(8), &|_, _| spec("4,1ms"));
    let mut exposed = Exposed::new(About {
        verb: "curve".into(),
        target: "sim".into(),
        engine: "sim".into(),
        started: "2026-01-01T00:00:00Z".parse().unwrap(),
        planned: None,
        objectives: Vec::new(),
        share: 0.0,
    });
    let (group, mut done) = (run.header.ranks.clone().unwrap(), [0; 2]);
    for point in &run.ranks.parts {
        exposed.add_ranks(&group, &point.parts);
        for part in &point.parts {
            done[part.rank as usize] += part.record.streams[0].total().done;
        }
    }
    let text = String::from_utf8(exposed.answer("").1.to_vec()).unwrap();
    for (rank, done) in done.iter().enumerate() {
        let line = format!(
            "rigel_rank_operations_total{{rank=\"h{}\"}} {done}",
            rank + 1
        );
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(
        text.contains("rigel_rank_round_response_p99_seconds{rank=\"h2\"}"),
        "{text}"
    );
}

#[test]
fn what_one_process_measured_has_no_hosts() {
    let request = calibration();
    let run = Run::begun(header(spec("4,1ms"), &request, ""));
    assert_eq!(ranks(&run), None);
    assert!(report::csv_of_hosts(&run).is_err());
}

#[test]
fn in_a_directory_each_rank_has_a_file_of_its_own() {
    let mut run = cluster("own-files", 2, curve(8), &|_, _| spec("4,1ms"));
    let shared = ranks(&run).expect("several ranks");
    run.header.target = Target::Scratch {
        directory: ".".into(),
        bytes: None,
        keep: false,
    };
    let own = ranks(&run).expect("several ranks");
    assert_eq!([shared.own_files, own.own_files], [false, true]);
    assert_eq!(own.reach.target_bytes, 2 * shared.reach.target_bytes);
    let text = text::render(&common::evaluated(&run).document(), Extent::Full);
    assert!(text.contains("a scratch file of its own"), "{text}");
}
