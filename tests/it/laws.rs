//! Laws of the main loop on simulated devices in virtual time: results must match queueing theory.

use crate::common::run;
use rigel_analyse::{self as analyse, RateMet};
use rigel_device::clock::Clock;
use rigel_device::engine::Engine;
use rigel_device::engine::null::Null;
use rigel_device::engine::sim::Sim;
use rigel_drive::Terms;
use rigel_model::record::{End, PointRecord, StreamRecord};
use rigel_model::{
    Arrivals, Coordinates, Load, Mix, Nanos, Pattern, Point, Ratio, Stream, Until, WarmUp,
};
use std::sync::atomic::{AtomicBool, Ordering};

fn stream(name: &str, load: Load) -> Stream {
    Stream {
        objective: None,
        sql: None,
        name: name.into(),
        load,
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        length: 8192,
        rank: None,
        log: None,
    }
}

fn point(streams: Vec<Stream>, until: Until) -> Point {
    Point {
        coordinates: Coordinates::cell(0, 0),
        streams,
        warm_up: WarmUp::NONE,
        until,
        seed: 1,
        window: Point::second(),
    }
}

fn closed(depth: u32, seconds: u64) -> Point {
    point(
        vec![stream("small", Load::Closed { depth })],
        Until::Elapsed(Nanos::from_secs(seconds)),
    )
}

fn open(rate: f64, arrivals: Arrivals, in_flight_max: u32, seconds: u64) -> Point {
    let load = Load::Open {
        rate,
        arrivals,
        in_flight_max,
    };
    point(
        vec![stream("small", load)],
        Until::Elapsed(Nanos::from_secs(seconds)),
    )
}

fn simulate(spec: &str, point: &Point) -> PointRecord {
    run(&Sim::new(spec.parse().unwrap(), 7), point)
}

fn small(record: &PointRecord) -> &StreamRecord {
    record.stream("small").unwrap()
}

fn rate(record: &PointRecord) -> f64 {
    small(record).total().done as f64 / record.measured.as_secs_f64()
}

fn mean_response(record: &PointRecord) -> f64 {
    let total = small(record).total();
    total.response.sum as f64 / total.done as f64 / 1e9
}

/// `value` is within `share` of `expected`.
fn assert_close(value: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (value - expected).abs() <= expected * share,
        "{what}: {value}, expected {expected} ± {}%",
        share * 100.0
    );
}

#[test]
fn a_closed_loop_reaches_the_servers_it_can_keep_busy() {
    for (depth, servers) in [(1, 4), (3, 4), (4, 4), (16, 4), (64, 4)] {
        let mut point = closed(depth, 10);
        // The time to fill the queue is not part of the steady state.
        point.warm_up = WarmUp {
            least: Nanos::from_secs(1),
            most: Nanos::from_secs(2),
        };
        let record = simulate(&format!("{servers},1ms,fixed"), &point);
        let expected = f64::from(depth.min(servers)) / 0.001;
        assert_close(rate(&record), expected, 0.001, &format!("depth {depth}"));
    }
}

#[test]
fn littles_law_holds_in_every_closed_loop() {
    for depth in [1, 2, 7, 32, 200] {
        let record = simulate("8,100us", &closed(depth, 10));
        let outstanding = rate(&record) * mean_response(&record);
        assert_close(
            outstanding,
            f64::from(depth),
            0.01,
            &format!("depth {depth}"),
        );
    }
}

#[test]
fn an_open_loop_waits_as_long_as_erlang_says() {
    // M/M/c, c = 4 servers of 1 ms, offered load a = 3: Erlang's C formula.
    let (c, a) = (4.0, 3.0);
    let terms: f64 = 1.0 + a + a * a / 2.0 + a * a * a / 6.0;
    let last = a.powi(4) / 24.0 * c / (c - a);
    let waits = last / (terms + last);
    let expected = 0.001 + waits * 0.001 / (c - a);
    let record = simulate("4,1ms", &open(3000.0, Arrivals::Poisson, 10_000, 2000));
    assert_close(
        mean_response(&record),
        expected,
        0.02,
        "mean response of M/M/4",
    );
    // M/M/1 at 80 %: the response time is exponential with mean 1 / (mu - lambda), so its p99 is
    // ln(100) times that.
    let record = simulate("1,1ms", &open(800.0, Arrivals::Poisson, 10_000, 4000));
    assert_close(
        mean_response(&record),
        0.005,
        0.05,
        "mean response of M/M/1",
    );
    let p99 = small(&record)
        .total()
        .response
        .histogram
        .quantile(0.99)
        .unwrap()
        .middle()
        / 1e9;
    assert_close(p99, 0.005 * 100f64.ln(), 0.10, "p99 of M/M/1");
}

#[test]
fn what_is_offered_is_done_failed_or_unserved() {
    // Offers twice the device's capacity, with errors, and with so few slots that a queue builds up
    // in the tool.
    let record = simulate("4,1ms,errors=5%", &open(8000.0, Arrivals::Uniform, 16, 10));
    let small = small(&record);
    let total = small.total();
    let unserved: u64 = small.unserved.iter().sum();
    let offered = total.done + total.failures() + unserved;
    assert!(offered.abs_diff(80_000) <= 1, "{offered}");
    assert!(
        unserved > 30_000,
        "a device that does half of it leaves the rest: {unserved}"
    );
    assert_close(
        total.failures() as f64 / (total.done + total.failures()) as f64,
        0.05,
        0.1,
        "share of failures",
    );
    // Holds for each second too.
    for (second, window) in small.kinds[0].windows.iter().enumerate() {
        let offered = window.done + window.failures() + small.unserved.get(second).unwrap_or(&0);
        assert!(offered.abs_diff(8000) <= 1, "second {second}: {offered}");
    }
}

#[test]
fn what_waits_at_the_end_is_drained_and_counts_with_its_time_but_not_for_throughput() {
    // Five percent more than the capacity leave about 1,000 operations waiting after 5 s.
    let record = simulate("4,1ms,fixed", &open(4200.0, Arrivals::Uniform, 16, 5));
    let small = small(&record);
    let total = small.total();
    assert_eq!(small.unserved.iter().sum::<u64>(), 0);
    assert!(total.done.abs_diff(21_000) <= 1, "{}", total.done);
    assert!((900..1100).contains(&small.drained), "{}", small.drained);
    // The last one waited longest: for all before it.
    let waited = total.response.max;
    assert!((225_000_000..300_000_000).contains(&waited), "{waited}");
    // Capacity, and the sixteen in flight at the end.
    let in_time = total.done - small.drained;
    assert!((20_000..=20_020).contains(&in_time), "{in_time}");
    let summary = &analyse::summarise(&record).classes[0];
    assert_close(summary.iops, 4000.0, 0.002, "throughput");
    assert_eq!(summary.met, Some(RateMet::No));
}

/// Storage that pauses for milliseconds, several times in each window, lets as many operations wait at one
/// end of a measurement as at any moment: no sign that it does not serve them. More than it serves is never
/// called served.
#[test]
fn a_backlog_like_those_before_it_is_no_overload_whenever_a_measurement_ends() {
    // Eight of 100 us stand still for 5 ms in each 37 ms: 69,000 a second.
    const SPEC: &str = "8,100us,stall=5ms/37ms";
    let at = |rate: f64, end: u64| {
        let mut point = open(rate, Arrivals::Poisson, 16, 0);
        point.until = Until::Elapsed(Nanos::from_millis(2000 + end));
        point.window = Nanos::from_millis(100);
        let record = simulate(SPEC, &point);
        (
            small(&record).drained,
            analyse::summarise(&record).classes[0].met,
        )
    };
    let calm: Vec<_> = (0..40).map(|end| at(40_000.0, end)).collect();
    let is_waiting = |(drained, _): &&(u64, _)| *drained > 16;
    assert!(calm.iter().filter(is_waiting).count() >= 3, "{calm:?}");
    assert!(
        calm.iter().all(|(_, met)| *met == Some(RateMet::Yes)),
        "{calm:?}"
    );
    let over: Vec<_> = (0..40).map(|end| at(71_000.0, end)).collect();
    assert!(
        over.iter().all(|(_, met)| *met != Some(RateMet::Yes)),
        "{over:?}"
    );
}

/// The throughput of storage that is offered more than it serves is what it serves, also where most of the
/// time goes to operations that were due in the warm-up.
#[test]
fn an_overload_is_served_at_the_capacity() {
    // Four of 250 us: 16,000 a second.
    for rate in [20_000.0, 60_000.0, 400_000.0] {
        let mut point = open(rate, Arrivals::Poisson, 256, 3);
        point.warm_up = WarmUp {
            least: Nanos::from_secs(1),
            most: Nanos::from_secs(1),
        };
        let class = &analyse::summarise(&simulate("4,250us", &point)).classes[0];
        assert_eq!(class.met, Some(RateMet::No), "{rate}");
        let share = class.iops / 16_000.0;
        assert!((0.97..1.03).contains(&share), "{rate}: {}", class.iops);
    }
}

/// A stall of 400 ms is seen with all of its length that lies in the measurement, whenever it begins:
/// in the warm-up, between, or in the last milliseconds.
#[test]
fn a_stall_is_as_long_as_its_part_in_the_measurement_whenever_it_begins() {
    const STALL: Nanos = Nanos::from_millis(400);
    const WARM_UP: Nanos = Nanos::from_millis(300);
    // The period is 10 s, and its stall is at the end.
    const BEGINS: Nanos = Nanos::from_millis(9600);
    const MEASURED: Nanos = Nanos::from_millis(1700);
    // A few operations.
    const SLACK: Nanos = Nanos::from_millis(1);
    let mut point = closed(4, 1);
    point.until = Until::Elapsed(MEASURED);
    point.window = Nanos::from_millis(100);
    point.warm_up = WarmUp {
        least: WARM_UP,
        most: WARM_UP,
    };
    let mut cut = 0;
    for phase in (0..2400).step_by(7).chain(2295..2310) {
        // The point begins so long before the stall, up to the stall's length after its beginning.
        let begins = BEGINS.plus(STALL).since(Nanos::from_millis(phase));
        let sim = Sim::new("8,100us,fixed,stall=400ms/10s".parse().unwrap(), 7);
        sim.clock().wait_until(begins);
        let record = run(&sim, &point);
        let from = begins.plus(record.warm_up);
        let end = from.plus(record.measured);
        let stall = BEGINS.max(from)..BEGINS.plus(STALL);
        if stall.start.plus(SLACK) >= end || stall.end <= stall.start.plus(Nanos::from_millis(20)) {
            continue;
        }
        let expected = stall.end.since(stall.start).since(SLACK);
        let what = format!("{phase} ms: {expected:?}");
        assert!(small(&record).longest() >= expected.0, "{what}");
        // Each operation of the record is in a window, or censored: those of before the measurement.
        let censored = small(&record).censored.as_ref();
        let censored = censored.map_or(0, |censored| censored.histogram.count());
        assert!(censored <= 4, "{what}: {censored}");
        cut += u64::from(BEGINS < from);
        let summary = analyse::summarise(&record);
        let latency = summary.classes[0].latency.unwrap();
        assert!(
            latency.max_us >= Nanos(expected.0).as_micros_f64(),
            "{what}"
        );
        assert!(
            latency.max_us >= 50.0 * latency.p99_us,
            "{what}: {latency:?}"
        );
    }
    assert!(cut > 10, "no stall began before the measurement");
}

#[test]
fn a_stall_shows_fully_in_an_open_loop_and_hides_in_a_closed_one() {
    // 300 ms of every 2 s, so 15 % of arrivals meet a stall and wait 0 to 300 ms, uniformly
    // distributed.
    let spec = "64,100us,fixed,stall=300ms/2s";
    let record = simulate(spec, &open(1000.0, Arrivals::Uniform, 10_000, 100));
    let response = small(&record).total().response.histogram;
    let p99 = response.quantile(0.99).unwrap().middle() / 1e9;
    // The slowest 1 % of all are the slowest fifteenth of those that met a stall: 280 ms and more.
    assert_close(p99, 0.280, 0.01, "p99 of the open loop");
    let record = simulate(spec, &closed(1, 100));
    let response = small(&record).total().response.histogram;
    assert!(
        response.quantile(0.999).unwrap().high < 200_000,
        "a closed loop sends nothing into the stall"
    );
    assert!(
        small(&record).total().response.max > 290_000_000,
        "but its slowest operation saw it"
    );
}

#[test]
fn of_fixed_work_no_more_than_the_work_is_ever_due() {
    let work = |seconds| {
        let load = Load::Open {
            rate: 8000.0,
            arrivals: Arrivals::Uniform,
            in_flight_max: 16,
        };
        let until = Until::Work {
            ops: 20_000,
            most: Nanos::from_secs(seconds),
        };
        let record = simulate("4,1ms", &point(vec![stream("small", load)], until));
        (
            small(&record).total().done,
            small(&record).unserved.iter().sum::<u64>(),
            record.measured.as_secs_f64(),
        )
    };
    // Of 8,000 a second 4,000 are served: after five seconds the work is done, and a limit of one
    // minute does not add operations.
    let (done, unserved, seconds) = work(60);
    assert_eq!((done, unserved), (20_000, 0));
    assert_close(seconds, 5.0, 0.05, "seconds until the work is done");
    // Stopped after three seconds, when all work had been due for half a second, and after one,
    // when less than half had been.
    let (done, unserved, _) = work(3);
    assert!(
        done + unserved == 20_000 && unserved > 7_000,
        "{done} and {unserved}"
    );
    let (done, unserved, _) = work(1);
    assert!(
        (done + unserved).abs_diff(8000) <= 1,
        "{done} and {unserved}"
    );
}

#[test]
fn fixed_work_is_exact_whatever_the_depth() {
    for (depth, ops) in [(1, 1), (1, 1000), (7, 1000), (64, 63), (64, 10_007)] {
        let point = point(
            vec![stream("small", Load::Closed { depth })],
            Until::Ops(ops),
        );
        let record = simulate("8,100us", &point);
        let total = small(&record).total();
        assert_eq!(
            (total.done, total.response.histogram.count()),
            (ops, ops),
            "depth {depth}"
        );
        assert_eq!(small(&record).coverage.operations, ops);
    }
}

#[test]
fn fixed_work_is_exact_after_a_warm_up_and_across_workers() {
    let engine = Null::new(Clock::real(), 1 << 30);
    let mut point = point(
        vec![stream("small", Load::Closed { depth: 5 })],
        Until::Ops(100_003),
    );
    point.warm_up = WarmUp {
        least: Nanos(0),
        most: Nanos::from_millis(20),
    };
    let terms = Terms {
        workers: 3,
        stop: &AtomicBool::new(false),
        enough: &|_| false,
        cue: None,
    };
    let record = rigel_drive::point(&engine, &point, &terms, &mut |_| ()).unwrap();
    assert_eq!(small(&record).total().done, 100_003);
    assert!(record.warm_up > Nanos(0));
}

#[test]
fn two_streams_share_a_device_and_are_counted_separately() {
    let streams = vec![
        stream("small", Load::Closed { depth: 3 }),
        stream("large", Load::Closed { depth: 1 }),
    ];
    let record = simulate(
        "4,1ms,fixed",
        &point(streams, Until::Elapsed(Nanos::from_secs(10))),
    );
    assert_close(rate(&record), 3000.0, 0.001, "small");
    assert_eq!(record.stream("large").unwrap().total().done, 10_000);
}

#[test]
fn no_stream_starves_where_everything_is_answered_at_once() {
    let streams = vec![
        stream("small", Load::Closed { depth: 64 }),
        stream("large", Load::Closed { depth: 2 }),
    ];
    let engine = Null::new(Clock::real(), 1 << 30);
    let record = run(
        &engine,
        &point(streams, Until::Elapsed(Nanos::from_millis(300))),
    );
    // Whatever the amount of work: two of 66 slots get as many turns as each of the others, up to a
    // few turns.
    let [small, large] = [0, 1].map(|of| record.streams[of].total().done);
    assert!(
        small > 0 && large * 64 + 64 >= small && small + 64 >= large * 16,
        "{small} and {large}"
    );
}

#[test]
fn reads_and_writes_are_counted_separately() {
    let mut stream = stream("small", Load::Closed { depth: 4 });
    stream.mix = Mix {
        writes: Ratio::from_percent(25.0).unwrap(),
        durable: false,
    };
    let record = simulate("4,1ms,fixed", &point(vec![stream], Until::Ops(100_000)));
    let kinds = &small(&record).kinds;
    assert_eq!(kinds.len(), 2);
    assert_eq!(kinds[0].total().done + kinds[1].total().done, 100_000);
    assert_close(kinds[1].total().done as f64, 25_000.0, 0.03, "writes");
}

#[test]
fn the_warm_up_ends_when_throughput_is_steady_and_counts_nothing() {
    let mut point = closed(4, 10);
    point.warm_up = WarmUp {
        least: Nanos::from_secs(1),
        most: Nanos::from_secs(20),
    };
    let record = simulate("4,1ms,fixed", &point);
    assert!(
        (1.0..1.5).contains(&record.warm_up.as_secs_f64()),
        "{}",
        record.warm_up
    );
    assert_eq!(record.measured, Nanos::from_secs(10));
    assert_eq!(small(&record).total().done, 40_000);
    // Stalls of 0.5 s in every second are never steady.
    let record = simulate("4,1ms,fixed,stall=500ms/1s", &point);
    assert_close(record.warm_up.as_secs_f64(), 20.0, 0.01, "warm-up");
}

#[test]
fn the_same_seed_gives_the_same_record() {
    let mut records = [0, 1].map(|_| simulate("8,100us,errors=1%", &closed(16, 5)));
    records
        .iter_mut()
        .for_each(|record| (record.started, record.cpu) = (String::new(), Nanos(0)));
    assert_eq!(records[0], records[1]);
}

#[test]
fn a_request_to_stop_ends_the_point_and_keeps_its_results() {
    let stop = AtomicBool::new(false);
    let engine = Null::new(Clock::real(), 1 << 30);
    let mut calls = 0;
    let terms = Terms {
        workers: 2,
        stop: &stop,
        enough: &|_| false,
        cue: None,
    };
    let record = rigel_drive::point(&engine, &closed(4, 3600), &terms, &mut |_| {
        calls += 1;
        stop.store(calls > 3, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(record.end, End::Stopped);
    assert!(record.measured < Nanos::from_secs(3600));
    let total = small(&record).total();
    assert!(total.done > 0);
    assert_eq!(total.done, total.response.histogram.count());
}

#[test]
fn a_point_that_ends_by_its_precision_ends_with_a_whole_window_as_soon_as_enough_was_seen() {
    let (least, most) = (Nanos::from_secs(1), Nanos::from_secs(60));
    let mut point = closed(4, 0);
    point.until = Until::Precise {
        precision: Ratio::from_percent(2.0).unwrap(),
        least,
        most,
    };
    point.window = Nanos::from_millis(200);
    let engine = Sim::new("4,1ms,fixed".parse().unwrap(), 7);
    for (wanted, expected_ms) in [
        (0, 1000..=1200),
        (50, 10_000..=10_600),
        (usize::MAX, 60_000..=60_000),
    ] {
        let enough = |classes: &[Vec<rigel_model::record::Window>]| classes[0].len() >= wanted;
        let terms = Terms {
            workers: 1,
            stop: &AtomicBool::new(false),
            enough: &enough,
            cue: None,
        };
        let record = rigel_drive::point(&engine, &point, &terms, &mut |_| ()).unwrap();
        let measured = record.measured.0 / 1_000_000;
        assert!(
            expected_ms.contains(&measured) && measured.is_multiple_of(200),
            "{wanted}: {measured} ms"
        );
        assert_eq!(
            (record.end, record.streams[0].kinds[0].windows.len() as u64),
            (End::Complete, measured / 200)
        );
    }
}

#[test]
fn an_open_loop_separates_its_own_delay_from_the_targets() {
    // One server, far too slow for the offered rate: all of the wait is in the target, none in the
    // tool.
    let record = simulate("1,10ms,fixed", &open(1000.0, Arrivals::Poisson, 8, 5));
    let delay = small(&record).delay.as_ref().unwrap();
    assert_eq!((delay.max, delay.histogram.count() > 100), (0, true));
    assert!(
        simulate("1,10ms,fixed", &closed(8, 5)).streams[0]
            .delay
            .is_none()
    );
}

#[test]
fn a_failing_target_is_retried_slowly_and_every_operation_is_counted() {
    for load in [closed(8, 10), open(50_000.0, Arrivals::Poisson, 8, 10)] {
        let record = simulate("8,100us,fixed,errors=100%", &load);
        let stream = small(&record);
        let total = stream.total();
        // A thousand in a row, and then at most one batch of 32 every 100 ms.
        assert!(
            total.done == 0 && (1000..1000 + 110 * 32).contains(&total.failures()),
            "{}",
            total.failures()
        );
        assert_eq!(record.end, End::Complete);
        if let Load::Open { rate, .. } = load.streams[0].load {
            let offered = (total.failures() + stream.unserved.iter().sum::<u64>()) as f64;
            assert_close(
                offered,
                rate * 10.0,
                0.01,
                "offered = done + failed + unserved",
            );
        }
    }
    // Failures of half of them are no reason to pause: a thousand in a row do not occur.
    let record = simulate("8,100us,fixed,errors=50%", &closed(8, 10));
    let total = small(&record).total();
    assert_close(
        (total.done + total.failures()) as f64,
        8e5,
        0.001,
        "operations in ten seconds",
    );
}

#[test]
fn every_operation_of_an_open_loop_has_a_delay_and_those_of_the_first_turn_too() {
    // On real time a worker's first turn comes after the beginning of the point: at this rate many
    // operations are due by then.
    let mut point = open(1e7, Arrivals::Uniform, 64, 1);
    point.until = Until::Ops(1000);
    let record = run(&Null::new(Clock::real(), 1 << 30), &point);
    let stream = small(&record);
    assert_eq!(
        (
            stream.total().done,
            stream.delay.as_ref().unwrap().histogram.count()
        ),
        (1000, 1000)
    );
}
