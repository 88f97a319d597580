//! Screens of the live view as text, at several sizes, from runs on a simulated device.

use super::cells::Buffer;
use super::column::LiveColumn;
use super::draw::{FrameOptions, draw};
use super::golden;
use super::look::ColourMode;
use super::point::PointNow;
use super::state::{Activity, HostNow, LiveState};
use super::unit::ThroughputUnit;
use anstyle::{Ansi256Color, RgbColor, Style};
use rigel_analyse::{DeviceLoad, HostLoad, summarise};
use rigel_device::engine::sim::Sim;
use rigel_drive::{Live, LiveClass, Terms};
use rigel_model::record::{
    DiskInterval, FlowKind, Latencies, OperationTimes, Recorder, RequestFlow, SharedWindows,
    TracedRequests, WatchedInterval,
};
use rigel_model::{
    Coordinates, Kind, Load, Mix, Nanos, Outcome, Pattern, Point, Sample, StalledIo, Stream, Until,
    WarmUp,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

const WINDOW: Nanos = Nanos::from_millis(200);

const PLAIN: FrameOptions = FrameOptions {
    look: ColourMode::Plain,
    frozen: false,
    help: false,
};

fn point(depth: u32) -> Point {
    let stream = Stream {
        objective: None,
        name: "small".into(),
        load: Load::Closed { depth },
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        length: 8192,
        sql: None,
        rank: None,
        log: None,
    };
    Point {
        coordinates: Coordinates::at_depth(depth),
        streams: vec![stream],
        warm_up: WarmUp::NONE,
        until: Until::Precise {
            precision: "0.1%".parse().unwrap(),
            least: Nanos::from_secs(1),
            most: Nanos::from_secs(5),
        },
        window: WINDOW,
        seed: 1,
    }
}

/// Four points of a device with eight servers; the last point is incomplete.
fn curve() -> (LiveState, Nanos) {
    let engine = Sim::new("8,100us,slow=2ms@1%".parse().unwrap(), 1);
    let mut state = LiveState::new("curve sim:8,100us", 7);
    let mut now = Nanos(0);
    for (number, depth) in (1..).zip([1, 4, 8, 16]) {
        let point = point(depth);
        state.begin(number, 7, now);
        let terms = Terms {
            workers: 1,
            stop: &AtomicBool::new(false),
            enough: &|_| false,
            cue: None,
        };
        let watch = &mut |live: &Live| state.live(&point, live, &[Sample::default()], now);
        let record = rigel_drive::point(&engine, &point, &terms, watch).unwrap();
        now = now.plus(Nanos::from_secs(5));
        if number < 4 {
            state.end(&record, &summarise(&record));
        }
    }
    state.set_left(Some(22.0), now);
    for at in 0..40u32 {
        let busy = f64::from(at) / 40.0;
        let load = DeviceLoad {
            iops: 80_000.0,
            megabytes_per_s: 655.4,
            busy,
            queue: 7.9,
        };
        let host = HostLoad {
            busy: 0.24,
            stolen: 0.002,
            io_pressure: Some(0.13),
        };
        state.hosts.push_back(HostNow {
            devices: vec![("nvme0n1".into(), load)],
            host: Some(host),
        });
    }
    (state, now)
}

fn picture(width: u16, height: u16, state: &LiveState, now: Nanos, view: FrameOptions) -> Buffer {
    let mut buffer = Buffer::blank(width, height);
    draw(&mut buffer, state, now, view);
    buffer
}

fn screen(width: u16, height: u16, state: &LiveState, now: Nanos, view: FrameOptions) -> String {
    picture(width, height, state, now, view).text()
}

#[test]
fn a_screen_of_every_size_is_as_it_was_looked_at() {
    let (state, now) = curve();
    for (width, height) in [(120, 40), (100, 20), (80, 24), (40, 10), (20, 5)] {
        golden::check(
            &format!("live/{width}x{height}.txt"),
            &screen(width, height, &state, now, PLAIN),
        );
    }
    golden::check(
        "live/help.txt",
        &screen(
            80,
            24,
            &state,
            now,
            FrameOptions {
                help: true,
                frozen: true,
                ..PLAIN
            },
        ),
    );
}

#[test]
fn every_stage_has_a_screen() {
    let mut state = LiveState::new("orion /data/file", 12);
    let now = Nanos::from_secs(75);
    let mut screens = screen(80, 8, &state, now, PLAIN);
    state.fill("filling a scratch file", 512 << 20, 4 << 30, 40.0, now);
    screens += &screen(80, 8, &state, now, PLAIN);
    state.say("creating the indexes");
    screens += &screen(80, 8, &state, now, PLAIN);
    state.begin(1, 12, now);
    state.draining = true;
    screens += &screen(80, 8, &state, now, PLAIN);
    state.wait("round 13", now.plus(Nanos::from_secs(754)));
    screens += &screen(80, 8, &state, now, PLAIN);
    golden::check("live/stages.txt", &screens);
}

#[test]
fn a_watch_shows_its_intervals() {
    let mut state = LiveState::new("watch vda", 0);
    for number in 1..=30_u32 {
        let mut reads = Latencies::default();
        for at in 0..200 {
            let busy = u64::from(100 + 20 * (number % 10));
            reads.record(Nanos::from_micros(busy + at * at / 20));
        }
        let mut flow = RequestFlow {
            kind: FlowKind::RandomReads,
            requests: 200,
            failed: 0,
            bytes: 200 * 8192,
            sequential: 0,
            device: reads,
            queue: Latencies::default(),
            response: None,
        };
        let mut flows = vec![flow.clone()];
        // Flushes are no data: the screen leaves them out.
        flow.kind = FlowKind::Flushes;
        flows.push(flow);
        let interval = WatchedInterval {
            number,
            measured: Nanos::from_secs(1),
            disks: vec![DiskInterval {
                traced: Some(TracedRequests {
                    flows,
                    ..TracedRequests::default()
                }),
                ..DiskInterval::default()
            }],
            ..WatchedInterval::default()
        };
        let window = interval.together();
        assert_eq!(window.done, 200);
        state.observed(&interval);
    }
    state.points = 60;
    let with_end = screen(80, 24, &state, Nanos::from_secs(30), PLAIN);
    state.points = 0;
    let without = screen(80, 8, &state, Nanos::from_secs(30), PLAIN);
    golden::check("live/watch.txt", &(with_end + &without));
    // Its server does not answer.
    let silent = StalledIo {
        silent: Nanos::from_secs(12),
        outstanding: 1,
        oldest: Nanos::from_secs(12),
    };
    for (stalled, is_said) in [(Some(silent), true), (None, false)] {
        state.silent(stalled);
        let shown = screen(80, 8, &state, Nanos::from_secs(30), PLAIN);
        let says = shown.contains("nothing has completed for 12 s");
        assert_eq!(says, is_said, "{shown}");
    }
}

#[test]
fn with_colours_shades_are_colours_and_without_none_is_there() {
    let (state, now) = curve();
    let colours = |look| {
        let picture = picture(120, 40, &state, now, FrameOptions { look, ..PLAIN });
        picture
            .styles()
            .filter_map(Style::get_fg_color)
            .collect::<Vec<_>>()
    };
    assert_eq!(colours(ColourMode::Plain), []);
    assert!(
        colours(ColourMode::Indexed)
            .iter()
            .any(|colour| *colour == Ansi256Color(227).into())
    );
    assert!(
        colours(ColourMode::Full)
            .iter()
            .any(|colour| *colour == RgbColor(254, 232, 56).into())
    );
}

#[test]
fn no_size_and_no_state_makes_it_panic() {
    let (whole, now) = curve();
    let empty = LiveState::new("", 0);
    for state in [&whole, &empty] {
        for (width, height) in (0..60)
            .flat_map(|width| [0, 1, 2, 3, 4, 5, 7, 12, 19, 33].map(|height| (width * 3, height)))
        {
            if width > 0 && height > 0 {
                drop(picture(
                    width,
                    height,
                    state,
                    now,
                    FrameOptions {
                        look: ColourMode::Full,
                        frozen: true,
                        help: width % 2 == 0,
                    },
                ));
            }
        }
    }
}

/// A point whose operations end on request.
struct Told {
    seconds: [Arc<SharedWindows>; 1],
    recorder: Recorder,
}

impl Told {
    fn new() -> Self {
        let seconds = Arc::new(SharedWindows::new(WINDOW));
        let mut recorder = Recorder::new(false, &[Kind::Read], Arc::clone(&seconds));
        recorder.measure_from(Nanos(0));
        Self {
            seconds: [seconds],
            recorder,
        }
    }

    fn over(&mut self, due_ms: u64, done_ms: u64) {
        let [due, done] = [due_ms, done_ms].map(Nanos::from_millis);
        self.recorder.record(
            Kind::Read,
            OperationTimes {
                due,
                start: due,
                done,
            },
            Outcome::Done,
        );
    }

    fn look(&self, state: &mut LiveState, at_ms: u64) {
        let elapsed = Nanos::from_millis(at_ms);
        let live = Live {
            elapsed,
            measuring_since: Some(Nanos(0)),
            classes: &[],
            seconds: &self.seconds,
            stalled: None,
        };
        state.live(&point(1), &live, &[], elapsed);
    }
}

#[test]
fn a_stall_shows_where_it_began_once_it_is_over() {
    let (mut state, mut reported) = (LiveState::new("", 1), Told::new());
    state.begin(1, 1, Nanos(0));
    for at in 0..100 {
        reported.over(at * 10, at * 10 + 1);
    }
    // Nothing ends for two seconds.
    reported.look(&mut state, 1500);
    reported.look(&mut state, 2900);
    let rates = |state: &LiveState| {
        state
            .columns
            .iter()
            .map(|column| column.rate)
            .collect::<Vec<_>>()
    };
    assert_eq!(rates(&state)[..4], [100.0; 4]);
    assert!(
        state
            .columns
            .iter()
            .skip(5)
            .all(|column| column.latency.is_none()),
        "{:?}",
        rates(&state)
    );
    reported.over(1000, 3000);
    reported.over(3000, 3001);
    reported.over(3210, 3211);
    reported.look(&mut state, 4500);
    let slowest_us = state.columns[5].latency.unwrap().max_us;
    assert!((slowest_us - 2e6).abs() < 1e-6, "{slowest_us}");
    assert!(state.columns[0].first && !state.columns[5].first);
}

#[test]
fn a_long_run_takes_no_more_memory_than_a_short_one() {
    let (mut state, mut reported) = (LiveState::new("", 1), Told::new());
    state.begin(1, 1, Nanos(0));
    for at in 0..20_000 {
        reported.over(at * 200, at * 200 + 1);
        if at % 5 == 0 {
            reported.look(&mut state, at * 200);
        }
    }
    assert_eq!(state.columns.len(), 512);
    assert!(
        state
            .point
            .as_ref()
            .is_some_and(|point| point.narrowing.len() <= 64)
    );
    let (rate, half) = state.point.as_ref().and_then(PointNow::interval).unwrap();
    assert!((rate - 5.0).abs() < 0.01 && half < 0.01, "{rate} ± {half}");
    assert_eq!(state.stage, Activity::Running);
}

/// A soak of a model whose rounds of fixed work have windows far wider than the rounds; the last
/// round is incomplete.
#[test]
fn a_soak_shows_a_column_a_round_and_the_seconds_of_the_one_that_runs() {
    let engine = Sim::new("8,100us,slow=2ms@1%".parse().unwrap(), 1);
    let mut state = LiveState::new("soak sim:8,100us", 100);
    let round = |number| Point {
        coordinates: Coordinates::Round {
            round: number,
            outstanding: 8,
        },
        until: Until::Work {
            ops: 100_000,
            most: Nanos::from_secs(60),
        },
        window: Nanos::from_secs(15),
        ..point(8)
    };
    let mut now = Nanos(0);
    for number in 1..=12 {
        let point = round(number);
        state.begin(number as usize, 100, now);
        let terms = Terms {
            workers: 1,
            stop: &AtomicBool::new(false),
            enough: &|_| false,
            cue: None,
        };
        let watch = &mut |live: &Live| state.live(&point, live, &[Sample::default()], now);
        let record = rigel_drive::point(&engine, &point, &terms, watch).unwrap();
        state.end(&record, &summarise(&record));
        now = now.plus(Nanos::from_secs(60));
    }
    assert_eq!(state.columns.len(), 12);
    assert!(
        state
            .columns
            .iter()
            .all(|column| !column.warming && column.latency.is_some()),
        "{:?}",
        state.columns
    );
    state.wait("round 13", now.plus(Nanos::from_secs(42)));
    let mut screens = screen(100, 20, &state, now, PLAIN);
    state.begin(13, 100, now);
    let classes = [LiveClass::default()];
    for second in 0..100 {
        classes[0].done.store(second * 900, Relaxed);
        classes[0].response.store(second * 900 * 850_000, Relaxed);
        let elapsed = Nanos::from_secs(second);
        let live = Live {
            elapsed,
            measuring_since: Some(Nanos(0)),
            classes: &classes,
            seconds: &[],
            stalled: None,
        };
        state.live(&round(13), &live, &[], now.plus(elapsed));
    }
    assert_eq!(
        state.columns.len(),
        12 + 30,
        "a long round does not push out those before it"
    );
    screens += &screen(100, 20, &state, now, PLAIN);
    golden::check("live/soak.txt", &screens);
}

#[test]
fn a_scale_is_that_of_the_columns_in_its_unit() {
    let (mut state, now) = curve();
    // Large reads follow: the columns of small ones are no megabytes.
    state.unit = ThroughputUnit::of(false, 1 << 20);
    for rate in [400.0, 500.0] {
        state.columns.push_back(LiveColumn {
            rate,
            unit: state.unit,
            ..LiveColumn::empty()
        });
    }
    let screen = screen(120, 40, &state, now, PLAIN);
    assert!(screen.contains("524 MB/s"), "{screen}");
    for column in &state.columns {
        let rate = state.unit.rate(column.rate);
        assert!(
            column.unit == state.unit || !screen.contains(&rate),
            "{rate}"
        );
    }
}

#[test]
fn between_points_the_charts_name_their_point() {
    let (mut state, now) = curve();
    state.begin(5, 7, now);
    let screen = screen(120, 40, &state, now, PLAIN);
    assert!(
        screen.contains("starting point 5") && screen.contains("a column is 200 ms"),
        "{screen}"
    );
}
