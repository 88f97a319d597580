//! What rank 0 shows while several ranks measure: the sum that the journal has afterwards.
//!
//! The ranks are threads of this process, joined through a server of PMI-1. They measure a target
//! that does no I/O in real time, and a model of a device in virtual time.

use crate::common::pmi::Dialect;
use crate::common::{Place, header, in_time};
use crate::pmi::{as_ranks, join};
use crate::ranks::spec;
use rigel_measure::run::ranks::{FollowedBenches, follow};
use rigel_measure::run::{self, Bench, BenchRequest, Event, Next, RunningRanks};
use rigel_model::record::journal::Run;
use rigel_model::record::journal::{EngineChoice, Journal};
use rigel_model::record::{End, PointRecord, Window};
use rigel_model::{
    ActiveRanks, Arrivals, Bytes, Coordinates, Load, Mix, Nanos, Pattern, Point, Stream, Target,
    Until, WarmUp,
};
use rigel_verbs::calibrate::CalibrateRequest;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// What was shown of a running point.
#[derive(Debug, Clone)]
struct Shown {
    point: Coordinates,
    /// Completed operations of each class.
    done: Vec<u64>,
    /// Windows of the first class.
    windows: Vec<Window>,
    ranks: RunningRanks,
}

fn stream(name: &str, load: Load, length: u32) -> Stream {
    Stream {
        objective: None,
        name: name.into(),
        load,
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        length,
        sql: None,
        rank: None,
        log: None,
    }
}

fn point(coordinates: Coordinates, streams: Vec<Stream>, until: Until) -> Point {
    Point {
        coordinates,
        streams,
        warm_up: WarmUp::NONE,
        until,
        window: Nanos::from_millis(100),
        seed: 5,
    }
}

/// One point of each sort: a depth, a rate, a cell of a matrix, a round of a soak, and one host
/// alone.
fn points(length: Nanos) -> Vec<Point> {
    let offered = |rate| Load::Open {
        rate,
        arrivals: Arrivals::Poisson,
        in_flight_max: 64,
    };
    let closed = |depth| Load::Closed { depth };
    let rate = Coordinates::Rate {
        rate_per_s: 900,
        in_flight_max: 64,
        large_beside: 0,
    };
    let alone = Coordinates::Hosts {
        active: ActiveRanks::Only(2),
        depth: 2,
        rate_per_s: 300,
        round: 1,
    };
    let round = Coordinates::Round {
        round: 1,
        outstanding: 4,
    };
    let by_time = Until::Elapsed(length);
    let work = Until::Work {
        ops: 301,
        most: length,
    };
    let cell = vec![
        stream("small", offered(300.0), 8192),
        stream("large", offered(60.0), 1 << 20),
    ];
    let cell_at = Coordinates::Cell { small: 1, large: 1 };
    vec![
        point(rate, vec![stream("small", offered(900.0), 8192)], by_time),
        point(cell_at, cell, by_time),
        point(round, vec![stream("round", closed(4), 8192)], work),
        point(alone, vec![stream("small", offered(300.0), 8192)], by_time),
    ]
}

fn bench(target: &Target, points: &[Point]) -> Bench {
    let engine = EngineChoice {
        name: "auto".into(),
        buffered: false,
        verify: false,
    };
    let request = BenchRequest {
        target,
        engine: &engine,
        grain: 8192,
        largest: 1 << 20,
        writes: false,
        destroy: &[],
        allow_holes: false,
        workers: 1,
        seed: 5,
        sql: None,
        part: None,
        host_of_rank: Some("h1"),
        beside: None,
    };
    Bench::prepare(
        &request,
        |_| points.to_vec(),
        &AtomicBool::new(false),
        &mut |_| (),
    )
    .unwrap()
}

/// Measures `points` on three ranks. Returns what rank 0 has shown, and its journal.
fn measured(name: &str, target: &Target, points: &[Point]) -> (Vec<Shown>, Run) {
    let place = Place::new(name);
    let (target, points) = (target.clone(), points.to_vec());
    let directory = place.0.join("run");
    let journal_at = directory.clone();
    let (_, mut shown) = as_ranks(Dialect::Hydra5, 3, move |pmi| {
        let ranks = join(pmi);
        let (bench, stop) = (bench(&target, &points), AtomicBool::new(false));
        let mut shown = Vec::new();
        if ranks.is_root() {
            let header = header(
                spec("2,1ms"),
                &CalibrateRequest::DEFAULT,
                "2026-01-01T00:00:00Z",
            );
            let mut journal = Journal::create(&journal_at, &header).unwrap();
            let mut plan = |records: &[PointRecord]| {
                let point = points.get(records.len())?.clone();
                Some(Next {
                    beside: Vec::new(),
                    warming: None,
                    point,
                })
            };
            let mut listen = |event: Event| {
                if let Event::Live {
                    point, live, ranks, ..
                } = event
                {
                    shown.push(Shown {
                        point: point.coordinates,
                        done: live
                            .classes
                            .iter()
                            .map(|one| one.done.load(Relaxed))
                            .collect(),
                        windows: live.seconds[0].snapshot(),
                        ranks: ranks.expect("ranks measure together").clone(),
                    });
                }
            };
            let records = run::measure(
                &|_| &bench,
                Some(&ranks),
                &mut journal,
                Vec::new(),
                &mut plan,
                &stop,
                &mut listen,
            );
            assert_eq!(records.unwrap().len(), points.len());
        } else {
            follow(
                FollowedBenches::Fixed(&|_| &bench),
                &ranks,
                &stop,
                &mut |_| Ok(()),
            )
            .unwrap();
        }
        ranks.end(0).unwrap();
        shown
    });
    (shown.swap_remove(0), Run::read(&directory).unwrap())
}

fn total(windows: &[Window]) -> u64 {
    windows.iter().map(|window| window.done).sum()
}

/// The last that was shown of each point has what all ranks did, window by window, and what was
/// shown before it is no more than that.
fn is_what_the_journal_has(shown: &[Shown], run: &Run) {
    for lines in &run.ranks.parts {
        let merged = &run.points[lines.at];
        assert_eq!(merged.end, End::Complete, "{}", merged.coordinates);
        let of_point = || shown.iter().filter(|one| one.point == merged.coordinates);
        let last = of_point().next_back().expect("the end of a point is shown");
        assert_eq!(last.ranks.ranks, lines.parts.len());
        assert_eq!(last.ranks.hosts, lines.parts.len());
        let streams = || lines.parts.iter().map(|part| &part.record.streams[0]);
        for (at, window) in last.windows.iter().enumerate() {
            let of_ranks = streams().flat_map(|stream| stream.windows_at(at));
            let done: u64 = of_ranks.map(|window| window.done).sum();
            assert_eq!(window.done, done, "{}, window {at}", merged.coordinates);
        }
        let recorded = |stream: &rigel_model::record::StreamRecord| stream.kinds[0].windows.len();
        assert_eq!(Some(last.windows.len()), streams().map(recorded).min());
        for (class, stream) in merged.streams.iter().enumerate() {
            let all: u64 = lines
                .parts
                .iter()
                .map(|part| part.record.streams[class].done())
                .sum();
            assert!(
                last.done[class] >= all,
                "{}, {}",
                merged.coordinates,
                stream.name
            );
        }
        for pair in of_point().collect::<Vec<_>>().windows(2) {
            let grows = pair[0]
                .done
                .iter()
                .zip(&pair[1].done)
                .all(|(was, is)| was <= is);
            assert!(
                grows && total(&pair[0].windows) <= total(&pair[1].windows),
                "{pair:?}"
            );
            let mut windows = pair[0].windows.iter().zip(&last.windows);
            assert!(windows.all(|(then, at_last)| then.done <= at_last.done));
        }
    }
}

#[test]
fn the_running_sum_of_hosts_in_real_time_is_that_of_the_journal() {
    let target = Target::Null {
        bytes: Bytes(1 << 30),
    };
    let (shown, run) = in_time("all ranks had sent their windows", |factor| {
        let points = points(Nanos::from_millis(2500 * u64::from(factor)));
        let (shown, run) = measured(&format!("ranks-live-{factor}"), &target, &points);
        let is_underway = |point: &&Point| {
            let mut seen = shown.iter().filter(|one| one.point == point.coordinates);
            // The last is shown after the end.
            matches!(point.until, Until::Work { .. })
                || seen
                    .next()
                    .is_some_and(|_| seen.any(|one| !one.windows.is_empty()))
                    && seen.next().is_some()
        };
        points
            .iter()
            .all(|point| is_underway(&point))
            .then_some((shown, run))
    });
    is_what_the_journal_has(&shown, &run);
    let names = shown.iter().filter_map(|one| one.ranks.slowest.as_ref());
    let names: Vec<&str> = names.map(|slowest| &*slowest.name).collect();
    assert!(!names.is_empty());
    assert!(
        names.iter().all(|name| ["h1", "h2", "h3"].contains(name)),
        "{names:?}"
    );
}

#[test]
fn the_running_sum_of_models_is_that_of_the_journal() {
    let target = Target::Sim(spec("2,1ms"));
    let (shown, run) = measured("ranks-live-model", &target, &points(Nanos::from_secs(3)));
    is_what_the_journal_has(&shown, &run);
    assert_eq!(shown.len(), 4, "each point once, at its end");
    let sum = |at: usize| total(&shown[at].windows);
    assert_eq!(sum(2), 301, "a round's work is that of all ranks");
    assert!(sum(0) > 2000 && sum(3) > 600, "{} and {}", sum(0), sum(3));
}
