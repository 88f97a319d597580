//! Runs the streams of one data point on any engine.
//!
//! Input: a [`Point`] and an [`Engine`]. Output: the [`PointRecord`]. This module knows neither why the point is
//! measured nor what kind of target it is. Only [`Session::reap`] waits. So on virtual time a point is deterministic,
//! unless it is stopped early.
//!
//! Workers are threads with one session each. If the engine supports many outstanding operations per session, one
//! worker serves all streams. If the engine blocks, each outstanding operation gets its own worker.

mod lane;
mod pacer;
mod stage;

pub use stage::LiveClass;

use crate::clock::{self, Clock};
use crate::engine::{Engine, Session};
use crate::model::{Completion, Error, Fault, Kind, Nanos, Outcome, Point, Slot, Stream, Until};
use crate::record::{CoverageMap, End, KindRecord, PointRecord, Recorder, Seconds, StreamRecord, Window};
use crate::workload::{Ops, Share};
use lane::{Flight, Lane, Shared};
use pacer::Pacer;
use stage::{Leader, Stage, TICK};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Minimum and maximum number of operations to start before polling for completions.
///
/// The minimum is small because starting all 64 at once makes lock-step batches that cost 5–7 % of a disk's throughput.
/// The batch grows up to the maximum as long as the device answers at once: then the CPU is the limit, and every saved
/// system call counts. Figures in docs/performance.md.
const BATCH: RangeInclusive<usize> = 8..=32;

/// Poll interval while waiting for all workers to be ready.
const GATE: Nanos = Nanos::from_millis(1);

/// Minimum interval between two calls of [`Watch`].
const WATCH: Nanos = Nanos::from_millis(100);

/// A worker of an open loop wakes up this long before its next due time. On an idle machine a sleep ends late by as
/// much.
const AWAKE: Nanos = Nanos::from_micros(100);

/// After this number of consecutive failures a worker pauses before it starts more operations. A lost target fails at
/// once and would keep a CPU busy with failing operations.
const FAILURES_IN_A_ROW: usize = 1000;

/// Length of each such pause.
const BREATHER: Nanos = Nanos::from_millis(100);

/// State of a running point, for progress displays.
pub struct Live<'a> {
    /// Time since the point began.
    pub elapsed: Nanos,
    /// When measuring began; `None` during the warm-up.
    pub measuring_since: Option<Nanos>,
    /// By class, in the order of [`classes`].
    pub classes: &'a [LiveClass],
    /// The completed windows of each class, in the same order.
    pub seconds: &'a [Arc<Seconds>],
}

/// Decides whether the completed windows of each class are precise enough to end a running point. Used for
/// [`Until::Precise`]. On real time it is called from a thread that does not measure.
pub type Enough<'a> = dyn Fn(&[Vec<Window>]) -> bool + Sync + 'a;

/// Settings for driving a point.
pub struct Terms<'a> {
    /// Minimum number of threads.
    pub workers: usize,
    /// Ends the point early once it is set.
    pub stop: &'a AtomicBool,
    /// Called for points that end by [`Until::Precise`].
    pub enough: &'a Enough<'a>,
}

/// Called about ten times a second while a point runs, from a thread that does not measure. It samples the host and
/// shows progress. On virtual time it is called only at the end.
pub type Watch<'a> = dyn FnMut(&Live) + 'a;

/// The names of a point's classes, in the order of its streams.
#[must_use]
pub fn classes(point: &Point) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for stream in &point.streams {
        if !names.contains(&stream.name.as_str()) {
            names.push(&stream.name);
        }
    }
    names
}

/// The slot lengths of the session with the most slots, over all workers of `point`.
#[must_use]
pub fn slot_lengths(point: &Point, slots_max: usize, workers: usize) -> Vec<u32> {
    let deal = deal(point, slots_max, workers);
    let lengths = |hand: &Vec<usize>| hand.iter().map(|stream| point.streams[*stream].length).collect::<Vec<u32>>();
    deal.iter().map(lengths).max_by_key(Vec::len).unwrap_or_default()
}

/// Deals the slots of all streams to the workers in turn. Returns, for each worker, the stream of each of its slots.
fn deal(point: &Point, slots_max: usize, workers: usize) -> Vec<Vec<usize>> {
    let slots: Vec<usize> = point
        .streams
        .iter()
        .enumerate()
        .flat_map(|(index, stream)| std::iter::repeat_n(index, stream.load.slots() as usize))
        .collect();
    let workers = workers.max(slots.len().div_ceil(slots_max)).clamp(1, slots.len().max(1));
    let mut hands = vec![Vec::new(); workers];
    for (number, stream) in slots.into_iter().enumerate() {
        hands[number % workers].push(stream);
    }
    hands
}

/// State that the workers of a point share.
struct Room<'a> {
    point: &'a Point,
    engine: &'a dyn Engine,
    clock: Clock,
    stage: Stage,
    terms: &'a Terms<'a>,
    /// Number of workers.
    workers: usize,
    /// Number of completed windows at the last precision check.
    judged: AtomicUsize,
    /// By stream.
    pacers: Vec<Pacer>,
    /// By class.
    coverage: Vec<CoverageMap>,
    live: Vec<LiveClass>,
    seconds: Vec<Arc<Seconds>>,
    /// The class of each stream.
    class_of: Vec<usize>,
    gate: Gate,
}

impl Room<'_> {
    /// True once a point that ends by precision has measured enough. Skips windows that are incomplete or that a worker
    /// may still hold.
    fn says_enough(&self) -> bool {
        let Until::Precise { least, .. } = self.point.until else { return false };
        let (from, now) = (self.stage.from(), self.clock.now());
        if from == Nanos::MAX || now.since(from) < least || now >= self.stage.end() {
            return false;
        }
        let over = usize::try_from(now.since(from).0 / self.point.window.0).unwrap_or(0).saturating_sub(1);
        // The check is O(windows), so it runs only after their number has grown by 5 %.
        if over < self.judged.load(Ordering::Relaxed).max(1) * 21 / 20 {
            return false;
        }
        self.judged.store(over, Ordering::Relaxed);
        let so_far = |seconds: &Arc<Seconds>| {
            let mut windows = seconds.so_far();
            windows.resize_with(over, Window::default);
            windows
        };
        (self.terms.enough)(&self.seconds.iter().map(so_far).collect::<Vec<_>>())
    }
}

/// Start gate: workers wait here until all are ready.
///
/// Not a `Barrier`: its threads leave one after the other, each through a lock. When the first threads kept the CPUs
/// busy, the last of 512 left only after minutes.
struct Gate {
    ready: AtomicUsize,
    open: AtomicBool,
}

impl Gate {
    /// Registers a ready worker. Waits until the gate is open.
    fn arrive(&self) {
        self.ready.fetch_add(1, Ordering::Release);
        while !self.open.load(Ordering::Acquire) {
            thread::park();
        }
    }
}

/// Drives `point` on `engine` until it completes or is stopped.
///
/// # Errors
/// A session could not be opened. Later errors are in the record.
pub fn point(
    engine: &dyn Engine,
    point: &Point,
    terms: &Terms<'_>,
    watch: &mut Watch<'_>,
) -> Result<PointRecord, Error> {
    let started = clock::wall_time();
    let clock = engine.clock();
    let hands = deal(point, engine.slots_max(), if clock.is_virtual() { 1 } else { terms.workers });
    let names = classes(point);
    let class_of = point.streams.iter().map(|stream| names.iter().position(|name| *name == stream.name).unwrap_or(0));
    let extent = |name: &&str| {
        let stream = point.streams.iter().find(|stream| stream.name == **name).expect("a class has a stream");
        CoverageMap::new(engine.usable() / u64::from(stream.length))
    };
    let room = Room {
        point,
        engine,
        stage: Stage::new(point.until),
        terms,
        workers: hands.len(),
        judged: AtomicUsize::new(0),
        pacers: (0u64..).zip(&point.streams).map(|(i, stream)| Pacer::new(stream.load, point.seed ^ i)).collect(),
        coverage: names.iter().map(extent).collect(),
        live: names.iter().map(|_| LiveClass::default()).collect(),
        seconds: names.iter().map(|_| Arc::new(Seconds::new(point.window))).collect(),
        class_of: class_of.collect(),
        gate: Gate { ready: AtomicUsize::new(0), open: AtomicBool::new(clock.is_virtual()) },
        clock,
    };
    let outcomes = run_workers(&room, &hands, watch);
    let mut streams: Vec<StreamRecord> =
        names.iter().enumerate().map(|(class, name)| empty_record(&room, class, name)).collect();
    let mut end = if room.stage.was_stopped() { End::Stopped } else { End::Complete };
    for outcome in outcomes {
        let (recorders, fault) = outcome?;
        for (stream, recorder) in recorders {
            recorder.pour_into(&mut streams[room.class_of[stream]]);
        }
        if let Some(Fault(why)) = fault {
            end = End::Broken(why);
        }
    }
    add_unserved(&room, &mut streams);
    let stage = &room.stage;
    let windows = usize::try_from(stage.measured().0.div_ceil(point.window.0)).expect("windows of a measurement fit");
    for kind in streams.iter_mut().flat_map(|stream| &mut stream.kinds) {
        // Windows without due operations exist too, also at the end.
        kind.windows.resize_with(kind.windows.len().max(windows), Window::default);
    }
    Ok(PointRecord {
        coordinates: point.coordinates,
        started,
        warm_up: stage.warm_up(),
        measured: stage.measured(),
        end,
        cpu: stage.cpu(),
        cpus: thread::available_parallelism()
            .map_or(0, |cpus| u32::try_from(cpus.get().min(hands.len())).unwrap_or(u32::MAX)),
        window: point.window,
        asked: Some(Box::new(point.clone())),
        streams,
        samples: Vec::new(),
    })
}

/// The record of a class before anything is poured into it.
fn empty_record(room: &Room, class: usize, name: &str) -> StreamRecord {
    let streams: Vec<&Stream> = room.point.streams.iter().filter(|stream| stream.name == name).collect();
    let kinds = Kind::ALL.into_iter().filter(|kind| streams.iter().any(|stream| stream.kinds().contains(kind)));
    StreamRecord {
        sql: streams[0].sql,
        name: name.into(),
        length: streams[0].length,
        loads: streams.iter().map(|stream| stream.load).collect(),
        patterns: streams.iter().map(|stream| stream.pattern).collect(),
        kinds: kinds.map(|kind| KindRecord { kind, windows: Vec::new() }).collect(),
        unserved: Vec::new(),
        delay: None,
        warm_up_done: 0,
        coverage: room.coverage[class].read(),
    }
}

/// Counts operations that were due while measuring and never started. For fixed work, counts at most the operations
/// that remain of the work.
fn add_unserved(room: &Room, streams: &mut [StreamRecord]) {
    let (from, end) = (room.stage.from(), room.stage.end());
    if end == Nanos::MAX || room.stage.work_is_done() {
        return;
    }
    for (stream, pacer) in room.pacers.iter().enumerate() {
        let record = &mut streams[room.class_of[stream]];
        let most = match room.point.until {
            Until::Ops(ops) | Until::Work { ops, .. } => {
                let all = ops * record.loads.len() as u64;
                let total = record.total();
                all.saturating_sub(total.done + total.failures() + record.unserved.iter().sum::<u64>())
            }
            Until::Elapsed(_) | Until::Precise { .. } => u64::MAX,
        };
        let windows = pacer.unserved(from..end, room.stage.origin(), room.point.window, most);
        record.unserved.resize(record.unserved.len().max(windows.len()), 0);
        record.unserved.iter_mut().zip(windows).for_each(|(sum, count)| *sum += count);
    }
}

/// Result of a worker: a recorder for each of its streams, and the fault that ended it, if any.
type Worked = Result<(Vec<(usize, Recorder)>, Option<Fault>), Error>;

/// Runs one worker for each hand, while this thread watches. On virtual time there is one worker, and it runs in this
/// thread.
fn run_workers(room: &Room, hands: &[Vec<usize>], watch: &mut Watch<'_>) -> Vec<Worked> {
    let see = |watch: &mut Watch<'_>| {
        if !room.stage.has_set_off() {
            return;
        }
        let from = room.stage.from();
        watch(&Live {
            elapsed: room.clock.now().since(room.stage.origin()),
            measuring_since: (from != Nanos::MAX).then(|| from.since(room.stage.origin())),
            classes: &room.live,
            seconds: &room.seconds,
        });
    };
    let outcomes = if room.clock.is_virtual() {
        vec![heeding_stop(room, || worker(room, 0, hands))]
    } else {
        std::thread::scope(|scope| run_threads(scope, room, hands, &mut || see(watch)))
    };
    see(watch);
    outcomes
}

/// Runs `work`, the only worker on virtual time, and forwards a stop request meanwhile.
///
/// The leading worker also polls for stop requests, but on virtual time: hours or any number of operations may lie
/// between two polls.
fn heeding_stop<Worked>(room: &Room, work: impl FnOnce() -> Worked) -> Worked {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = || {
            while !over.load(Ordering::Acquire) {
                // Wait first, so that a short point does not depend on real time.
                thread::park_timeout(Duration::from_nanos(WATCH.0));
                if room.terms.stop.load(Ordering::Relaxed) {
                    room.stage.stop(room.clock.now());
                }
            }
        };
        // If no thread can be started, the leading worker still polls for stop requests.
        let watcher = thread::Builder::new().spawn_scoped(scope, watch);
        let worked = work();
        over.store(true, Ordering::Release);
        if let Ok(watcher) = watcher {
            watcher.thread().unpark();
        }
        worked
    })
}

/// Runs one thread for each hand, and calls `see` periodically.
fn run_threads<'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, 'a>,
    room: &'a Room,
    hands: &'a [Vec<usize>],
    see: &mut dyn FnMut(),
) -> Vec<Worked> {
    let (mut threads, mut refused) = (Vec::with_capacity(hands.len()), None);
    for number in 0..hands.len() {
        match thread::Builder::new().spawn_scoped(scope, move || worker(room, number, hands)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                room.stage.stop(room.clock.now());
                let what = format!("only {number} threads could be started, and {} are needed: {error}", hands.len());
                refused = Some(Err(Error::failed(what, "request fewer outstanding I/Os, or use --engine uring")));
                break;
            }
        }
    }
    let is_over = || threads.iter().all(ScopedJoinHandle::is_finished);
    while room.gate.ready.load(Ordering::Acquire) < threads.len() && !is_over() {
        room.clock.wait_until(room.clock.now().plus(GATE));
    }
    room.gate.open.store(true, Ordering::Release);
    threads.iter().for_each(|thread| thread.thread().unpark());
    while !is_over() {
        room.clock.wait_until(room.clock.now().plus(WATCH));
        // The leading worker also sees a stop request, unless an operation blocks it.
        if room.terms.stop.load(Ordering::Relaxed) {
            room.stage.stop(room.clock.now());
        }
        if room.says_enough() {
            room.stage.end_with_window(room.clock.now(), room.point.window);
        }
        see();
    }
    threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).chain(refused).collect()
}

/// One worker: opens its session, waits for the others, and runs its slots.
fn worker(room: &Room, number: usize, hands: &[Vec<usize>]) -> Worked {
    let hand = &hands[number];
    let lengths: Vec<u32> = hand.iter().map(|stream| room.point.streams[*stream].length).collect();
    let session = room.engine.open(&lengths);
    let (streams, mut lanes, mut table) = make_lanes(room, number, hands);
    room.gate.arrive();
    room.stage.set_off(room.clock.now(), room.point.warm_up);
    let mut session = match session {
        Ok(session) => session,
        Err(error) => {
            // The other workers have begun or will begin, and find that the point has ended.
            room.stage.stop(room.clock.now());
            return Err(error);
        }
    };
    let mut leader = (number == 0).then(|| Leader::new(room));
    let fault = drive(room, session.as_mut(), &mut lanes, &mut table, &mut leader).err();
    if fault.is_some() {
        room.stage.stop(room.clock.now());
    }
    if let Some(leader) = &mut leader {
        leader.finish();
    }
    let recorders = streams.into_iter().zip(lanes.into_iter().map(Lane::into_recorder)).collect();
    Ok((recorders, fault))
}

/// Creates the lanes of worker `number`: one for each stream that has slots in its hand. Also returns its slots,
/// numbered as in the hand.
fn make_lanes<'a>(room: &'a Room, number: usize, hands: &[Vec<usize>]) -> (Vec<usize>, Vec<Lane<'a>>, Vec<Flight>) {
    let (mut streams, mut lanes, mut table) = (Vec::new(), Vec::new(), Vec::new());
    for (slot, stream) in hands[number].iter().enumerate() {
        let lane = streams.iter().position(|known| known == stream).unwrap_or_else(|| {
            streams.push(*stream);
            lanes.push(make_lane(room, *stream, number, hands));
            lanes.len() - 1
        });
        let slot = Slot::try_from(slot).expect("slots of a session fit");
        table.push(lanes[lane].add_slot(u16::try_from(lane).expect("few streams"), slot));
    }
    (streams, lanes, table)
}

/// Creates the lane of `stream` in worker `number`.
fn make_lane<'a>(room: &'a Room, stream: usize, number: usize, hands: &[Vec<usize>]) -> Lane<'a> {
    let spec = &room.point.streams[stream];
    let class = room.class_of[stream];
    let (pacer, coverage) = (&room.pacers[stream], &room.coverage[class]);
    let shared = Shared { pacer, coverage, live: &room.live[class], seconds: &room.seconds[class] };
    // Fixed work is divided among the workers that serve the stream. The first workers take the remainder.
    let has_part = |hand: &&Vec<usize>| hand.contains(&stream);
    let workers = hands.iter().filter(has_part).count() as u64;
    let turn = hands[..number].iter().filter(has_part).count() as u64;
    let part = |count: u64| Until::Ops(count / workers + u64::from(turn < count % workers));
    let left = match room.point.until {
        Until::Ops(count) | Until::Work { ops: count, .. } => part(count),
        by_time @ (Until::Elapsed(_) | Until::Precise { .. }) => by_time,
    };
    let extent = room.engine.usable() / u64::from(spec.length);
    let index = |index: usize| u32::try_from(index).expect("streams and workers are few");
    let share = Share { stream: index(stream), worker: index(number), turn, workers };
    let ops = Ops::new(spec, extent, room.point.seed, share);
    Lane::new(shared, ops, spec, left)
}

/// The main loop: takes due operations while a slot is free, submits them, reaps until the next due time, and records.
///
/// It reads the clock once per turn, for any number of operations: a reading costs as much as all other work for one
/// operation.
fn drive(
    room: &Room,
    session: &mut dyn Session,
    lanes: &mut [Lane],
    table: &mut [Flight],
    leader: &mut Option<Leader>,
) -> Result<(), Fault> {
    let stage = &room.stage;
    let mut over: Vec<Completion> = Vec::with_capacity(table.len());
    let (mut outstanding, mut measuring, mut batch, mut first) = (0, false, *BATCH.start(), 0);
    let (mut failures, mut again) = (0, Nanos(0));
    let alert = stay_alert(room, lanes);
    let mut now = room.clock.now();
    loop {
        let mut wake = leader.as_mut().map_or(now.plus(TICK), |leader| leader.tick(now));
        learn_beginning(&mut measuring, lanes, stage);
        let end = stage.end();
        if now < end && now < again {
            wake = wake.min(end).min(again);
        } else if now < end {
            wake = wake.min(end);
            let mut left = batch;
            // Each turn begins with the next lane. Otherwise the first lane would take every batch when all operations
            // complete at once.
            first = if first + 1 < lanes.len() { first + 1 } else { 0 };
            let (before, from_first) = lanes.split_at_mut(first);
            for lane in from_first.iter_mut().chain(before) {
                wake = wake.min(submit_due(session, lane, table, &mut left, now, stage)?);
            }
            outstanding += batch - left;
        }
        if outstanding == 0 {
            let exhausted = lanes.iter().all(Lane::is_exhausted);
            if now >= end && !exhausted {
                stage.cut();
            }
            if now >= end || exhausted {
                return Ok(());
            }
        }
        session.reap(if alert { asleep_until(wake, now) } else { wake }, &mut over)?;
        now = room.clock.now();
        outstanding -= over.len();
        batch = if outstanding == 0 { (batch * 2).min(*BATCH.end()) } else { *BATCH.start() };
        let any_over = !over.is_empty();
        // Check again: the leading worker may have begun measuring meanwhile.
        learn_beginning(&mut measuring, lanes, stage);
        for Completion { slot, outcome } in over.drain(..) {
            failures = if outcome == Outcome::Done { 0 } else { failures + 1 };
            let flight = &table[usize::from(slot)];
            lanes[usize::from(flight.lane)].over(slot, flight, now, outcome);
        }
        if any_over && failures >= FAILURES_IN_A_ROW {
            again = now.plus(BREATHER);
        }
        stage.ended(now);
        lanes.iter_mut().for_each(Lane::report);
    }
}

/// Passes the beginning of the measurement on to the lanes, as soon as it is known.
#[inline]
fn learn_beginning(measuring: &mut bool, lanes: &mut [Lane], stage: &Stage) {
    if !*measuring && stage.from() != Nanos::MAX {
        *measuring = true;
        lanes.iter_mut().for_each(|lane| lane.measure_from(stage.from()));
    }
}

/// True if this worker must wake up on time: one of its streams is an open loop, and there are fewer workers than CPUs.
/// For an open loop it also sets the timer slack to its minimum: by default the kernel may extend a sleep by 50 µs.
fn stay_alert(room: &Room, lanes: &[Lane]) -> bool {
    if room.clock.is_virtual() || !lanes.iter().any(Lane::is_open) {
        return false;
    }
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    room.workers < thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// How long a worker that must wake up on time may sleep. It wakes up before the next operation is due, then polls.
fn asleep_until(wake: Nanos, now: Nanos) -> Nanos {
    if wake.since(now) > AWAKE { Nanos(wake.0 - AWAKE.0) } else { Nanos(0) }
}

/// Submits the due operations of `lane`, as far as `batch` allows. Returns until when the loop may wait: zero if the
/// batch is full and more may be due.
fn submit_due(
    session: &mut dyn Session,
    lane: &mut Lane,
    table: &mut [Flight],
    batch: &mut usize,
    now: Nanos,
    stage: &Stage,
) -> Result<Nanos, Fault> {
    while *batch > 0 {
        match lane.next(table, now, stage) {
            Ok((slot, op)) => session.submit(slot, op)?,
            Err(until) => return Ok(until),
        }
        *batch -= 1;
    }
    Ok(Nanos(0))
}
