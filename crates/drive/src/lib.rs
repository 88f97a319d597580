//! Runs the streams of one data point on any engine.
//!
//! Input: a [`Point`] and an [`Engine`]. Output: the [`PointRecord`]. This crate knows neither why
//! the point is measured nor what kind of target it is. Only [`Session::reap`] waits. So on virtual
//! time a point is deterministic, unless it is stopped early.
//!
//! Workers are threads with one session each. If the engine supports many outstanding operations
//! per session, one worker serves all its streams. If the engine blocks, each outstanding operation
//! gets its own worker. A log with files of its own has an engine beside that of the volume.

mod context;
mod cue;
mod detached;
mod engines;
mod lane;
mod leader;
mod pacer;
mod shown;
mod silence;
mod stage;

pub use context::{Enough, Terms};
pub use cue::Cue;
pub use detached::{DetachedTerms, Judge};
pub use engines::LogEngines;
pub use shown::{Live, Watch};
pub use stage::LiveClass;

use context::{Gate, PointContext};
use engines::Engines;
use lane::{InFlight, Lane, LaneContext, Outstanding};
use leader::{Leader, TICK};
use pacer::Pacer;
use rigel_device::clock;
use rigel_device::engine::{Engine, Session};
use rigel_model::record::{
    CoverageMap, End, KindRecord, PointRecord, SharedWindows, StreamRecord, Suspension, Verified,
    Window,
};
use rigel_model::workload::{Ops, Share};
use rigel_model::{
    Completion, Error, Fault, Kind, Nanos, Outcome, Point, Slot, StalledIo, Stream, Until, WarmUp,
};
use shown::{Deliver, Show, Shown, WATCH};
use silence::{Patience, Silence};
use stage::Stage;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Minimum and maximum number of operations to start before polling for completions.
///
/// The minimum is small because starting all 64 at once makes lock-step batches that cost 5–7 % of
/// a disk's throughput. The batch grows up to the maximum as long as the device answers at once:
/// then the CPU is the limit, and every saved system call counts. Figures in docs/performance.md.
const BATCH: RangeInclusive<usize> = 8..=32;

/// Poll interval while waiting for all workers to be ready.
const GATE: Nanos = Nanos::from_millis(1);

/// A worker of an open loop wakes up this long before its next due time. On an idle machine a sleep
/// ends late by as much.
const AWAKE: Nanos = Nanos::from_micros(100);

/// After this number of consecutive failures a worker pauses before it starts more operations. A
/// lost target fails at once and would keep a CPU busy with failing operations.
const FAILURES_IN_A_ROW: usize = 1000;

/// Length of each such pause.
const BREATHER: Nanos = Nanos::from_millis(100);

/// The names of a point's classes, in the order of its streams.
pub fn classes(point: &Point) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for stream in &point.streams {
        if !names.contains(&stream.name.as_str()) {
            names.push(&stream.name);
        }
    }
    names
}

/// The slot lengths of the session with the most slots, over all workers of the streams of `point` that
/// have no log of their own.
pub fn slot_lengths(point: &Point, slots_max: usize, workers: usize) -> Vec<u32> {
    let streams = point.streams.iter().enumerate();
    let of_volume = streams.filter(|(_, stream)| stream.log.is_none());
    let of_volume: Vec<usize> = of_volume.map(|(index, _)| index).collect();
    let slots = deal(point, &of_volume, slots_max, workers);
    let lengths = |slots_of_worker: &Vec<usize>| {
        slots_of_worker
            .iter()
            .map(|stream| point.streams[*stream].length)
            .collect::<Vec<u32>>()
    };
    slots
        .iter()
        .map(lengths)
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

/// Assigns the slots of these streams to workers in turn. Returns, for each worker, the stream of each
/// of its slots.
fn deal(point: &Point, streams: &[usize], slots_max: usize, workers: usize) -> Vec<Vec<usize>> {
    let slots_of =
        |stream: &usize| std::iter::repeat_n(*stream, point.streams[*stream].load.slots() as usize);
    let slots: Vec<usize> = streams.iter().flat_map(slots_of).collect();
    let workers = workers
        .max(slots.len().div_ceil(slots_max))
        .clamp(1, slots.len().max(1));
    let mut slots_of_workers = vec![Vec::new(); workers];
    for (number, stream) in slots.into_iter().enumerate() {
        slots_of_workers[number % workers].push(stream);
    }
    slots_of_workers
}

/// Drives `point` on `engine` until it completes or is stopped.
///
/// Waits for threads that the storage blocks, however long that takes. [`detached`] leaves them
/// behind.
///
/// # Errors
/// A session could not be opened. Later errors are in the record.
///
/// # Panics
/// Never: a point that was driven has a result.
pub fn point(
    engine: &dyn Engine,
    point: &Point,
    terms: &Terms<'_>,
    watch: &mut Watch<'_>,
) -> Result<PointRecord, Error> {
    let mut result = None;
    let mut show = |shown: Shown| shown.show(watch);
    let no_logs = LogEngines::new();
    let engines = Engines::new(engine, &no_logs);
    drive_point(engines, point, terms, &mut show, &mut |driven, _| {
        result = Some(driven);
    });
    result.expect("a point that was driven has a result")
}

/// Drives `point` on the engines of a volume and of logs until it completes or is stopped. A point that
/// was stopped does not wait for storage that does not answer: what is outstanding counts as at least as long as it was
/// outstanding, and threads that it blocks are left behind, with the engines.
///
/// # Panics
/// If the thread that drives the point does.
pub fn detached(
    engines: (&Arc<dyn Engine>, &Arc<LogEngines>),
    point: &Point,
    terms: DetachedTerms<'_>,
    watch: &mut Watch<'_>,
) -> Result<PointRecord, Error> {
    let (volume, _) = engines;
    if volume.clock().is_virtual() {
        self::point(volume.as_ref(), point, &terms.attached(), watch)
    } else {
        detached::drive(drive_point, engines, point, terms, watch)
    }
}

/// Drives `point`, and passes its result to `deliver`. Returns only after every thread has ended,
/// which may be never: the result is delivered before.
fn drive_point(
    engines: Engines,
    point: &Point,
    terms: &Terms<'_>,
    show: &mut Show<'_>,
    deliver: &mut Deliver<'_>,
) {
    let started = clock::wall_time();
    let clock = engines.volume().clock();
    let workers = if clock.is_virtual() { 1 } else { terms.workers };
    let groups = engines.groups(point).into_iter();
    let slots_of_workers: Vec<Vec<usize>> = groups
        .flat_map(|(engine, streams)| deal(point, &streams, engine.slots_max(), workers))
        .collect();
    let names = classes(point);
    let class_of = point.streams.iter().map(|stream| {
        names
            .iter()
            .position(|name| *name == stream.name)
            .unwrap_or(0)
    });
    let extent = |name: &&str| {
        let stream = point
            .streams
            .iter()
            .find(|stream| stream.name == **name)
            .expect("a class has a stream");
        CoverageMap::new(engines.of(stream).usable() / u64::from(stream.length))
    };
    let context = PointContext {
        point,
        engines,
        stage: Stage::new(point.until),
        terms,
        workers: slots_of_workers.len(),
        judged: AtomicUsize::new(0),
        pacers: (0u64..)
            .zip(&point.streams)
            .map(|(i, stream)| Pacer::new(stream.load, point.seed ^ i))
            .collect(),
        coverage: names.iter().map(extent).collect(),
        live: names.iter().map(|_| LiveClass::default()).collect(),
        seconds: names
            .iter()
            .map(|_| Arc::new(SharedWindows::new(point.window)))
            .collect(),
        class_of: class_of.collect(),
        started,
        gate: Gate {
            ready: AtomicUsize::new(0),
            open: AtomicBool::new(clock.is_virtual()),
            closed_at: clock.now(),
        },
        clock,
    };
    run_workers(&context, &slots_of_workers, show, deliver);
}

/// The record of a point whose workers have ended or are left behind.
fn record_of(
    context: &PointContext,
    (opened, works): (Result<(), Error>, &[SharedWork]),
    silence: &Silence,
) -> Result<PointRecord, Error> {
    opened?;
    let (point, stage) = (context.point, &context.stage);
    let mut streams: Vec<StreamRecord> = classes(point)
        .iter()
        .enumerate()
        .map(|(class, name)| empty_record(context, class, name))
        .collect();
    let mut end = match silence.stalled {
        Some(stalled) if stage.has_given_up() => End::Broken(stalled.to_string()),
        _ if stage.was_stopped() => End::Stopped,
        _ => End::Complete,
    };
    let now = context.clock.now();
    let mut looking = Nanos(0);
    for work in works {
        // A worker that the storage blocks does not hold its work.
        let Some(mut work) = work.try_lock().ok().and_then(|mut work| work.take()) else {
            continue;
        };
        work.leave_outstanding(now);
        looking = looking.plus(work.looking);
        for (stream, lane) in work.streams.into_iter().zip(work.lanes) {
            let class = context.class_of[stream];
            lane.into_recorder().merge_into(&mut streams[class]);
        }
        if let Some(Fault(why)) = work.fault {
            end = End::Broken(why);
        }
    }
    add_unserved(context, &mut streams);
    let windows = usize::try_from(stage.measured().0.div_ceil(point.window.0))
        .expect("windows of a measurement fit");
    for kind in streams.iter_mut().flat_map(|stream| &mut stream.kinds) {
        // Windows without due operations exist too, also at the end.
        kind.windows
            .resize_with(kind.windows.len().max(windows), Window::default);
    }
    Ok(PointRecord {
        coordinates: point.coordinates,
        started: context.started.clone(),
        began: stage.from(),
        warm_up: stage.warm_up(),
        measured: stage.measured(),
        end,
        cpu: stage.cpu(),
        cpus: thread::available_parallelism().map_or(0, |cpus| {
            u32::try_from(cpus.get().min(context.workers)).unwrap_or(u32::MAX)
        }),
        window: point.window,
        asked: Some(Box::new(point.clone())),
        streams,
        samples: Vec::new(),
        merge: None,
        verified: context.engines.verified(point).map(|verified| Verified {
            time: looking,
            ..verified
        }),
        syncs: context.engines.syncs(point),
        visits: Vec::new(),
        silences: Vec::new(),
        suspended: suspended_in(stage, silence, point.window),
        left_out: Nanos(0),
    })
}

/// The times in which this program did not run, as far as they touch the measurement.
fn suspended_in(stage: &Stage, silence: &Silence, window: Nanos) -> Vec<Suspension> {
    let times = silence.suspended.iter();
    let within = times.filter_map(|times| Suspension::within(*times, stage.from(), window));
    within.collect()
}

/// The record of a class before anything is poured into it.
fn empty_record(context: &PointContext, class: usize, name: &str) -> StreamRecord {
    let streams: Vec<&Stream> = context
        .point
        .streams
        .iter()
        .filter(|stream| stream.name == name)
        .collect();
    let kinds = Kind::ALL
        .into_iter()
        .filter(|kind| streams.iter().any(|stream| stream.kinds().contains(kind)));
    StreamRecord {
        sql: streams[0].sql,
        name: name.into(),
        length: streams[0].length,
        loads: streams.iter().map(|stream| stream.load).collect(),
        patterns: streams.iter().map(|stream| stream.pattern).collect(),
        kinds: kinds
            .map(|kind| KindRecord {
                kind,
                windows: Vec::new(),
            })
            .collect(),
        unserved: Vec::new(),
        drained: 0,
        censored: None,
        delay: None,
        warm_up_done: 0,
        coverage: context.coverage[class].read(),
    }
}

/// Counts operations that were due while measuring and never started. For fixed work, counts at
/// most the operations that remain of the work.
fn add_unserved(context: &PointContext, streams: &mut [StreamRecord]) {
    let (from, end) = (context.stage.from(), context.stage.end());
    if end == Nanos::MAX || context.stage.work_is_done() {
        return;
    }
    for (stream, pacer) in context.pacers.iter().enumerate() {
        let record = &mut streams[context.class_of[stream]];
        let most = match context.point.until {
            Until::Ops(ops) | Until::Work { ops, .. } => {
                let all = ops * record.loads.len() as u64;
                let total = record.total();
                all.saturating_sub(
                    total.done + total.failures() + record.unserved.iter().sum::<u64>(),
                )
            }
            Until::Elapsed(_) | Until::Precise { .. } => u64::MAX,
        };
        let windows = pacer.unserved(
            from..end,
            context.stage.origin(),
            context.point.window,
            most,
        );
        record
            .unserved
            .resize(record.unserved.len().max(windows.len()), 0);
        record
            .unserved
            .iter_mut()
            .zip(windows)
            .for_each(|(sum, count)| *sum += count);
    }
}

/// What a worker works on. Its worker holds it except while it waits for operations, so that what a
/// blocked worker has measured can be taken.
struct Work<'a> {
    /// The stream of each lane.
    streams: Vec<usize>,
    lanes: Vec<Lane<'a>>,
    table: Vec<InFlight>,
    /// Why the worker ended, if its session broke.
    fault: Option<Fault>,
    /// Time for looking at the bytes of operations that had ended.
    looking: Nanos,
}

/// The work of one worker; `None` before it begins, and once it was taken.
type SharedWork<'a> = Mutex<Option<Work<'a>>>;

impl Work<'_> {
    fn in_flight(&self) -> impl Iterator<Item = &InFlight> {
        (0..).zip(&self.table).filter_map(|(slot, flight)| {
            let is_free = self.lanes[usize::from(flight.lane)].is_free(slot);
            (!is_free).then_some(flight)
        })
    }

    /// Records what is outstanding at `now` as operations that were not waited for.
    fn leave_outstanding(&mut self, now: Nanos) {
        let left: Vec<InFlight> = self.in_flight().copied().collect();
        for flight in left {
            self.lanes[usize::from(flight.lane)].leave(&flight, now);
        }
    }
}

fn lock<'a, 'work>(work: &'a SharedWork<'work>) -> MutexGuard<'a, Option<Work<'work>>> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is outstanding at all workers.
fn outstanding(works: &[SharedWork]) -> Outstanding {
    let mut sum = Outstanding::default();
    for work in works {
        let Ok(work) = work.try_lock() else { continue };
        for flight in work.iter().flat_map(Work::in_flight) {
            sum.count += 1;
            sum.oldest = sum.oldest.min(flight.start);
        }
    }
    sum
}

/// Runs the workers, while this thread watches, and delivers the result. On virtual time there is
/// one worker, and it runs in this thread.
fn run_workers(
    context: &PointContext,
    slots_of_workers: &[Vec<usize>],
    show: &mut Show<'_>,
    deliver: &mut Deliver<'_>,
) {
    let works: Vec<SharedWork> = slots_of_workers.iter().map(|_| Mutex::default()).collect();
    let mut see = |stalled: Option<StalledIo>| {
        if context.stage.has_set_off() || stalled.is_some() {
            show(context.shown(stalled));
        }
    };
    let note_beginning = || {
        if let Some(cue) = context.terms.cue {
            cue.note_beginning(context.stage.from());
        }
    };
    if context.clock.is_virtual() {
        let opened = heeding_stop(context, || worker(context, 0, slots_of_workers, &works[0]));
        see(None);
        note_beginning();
        let silence = Silence::new(context.clock.now());
        deliver(record_of(context, (opened, &works), &silence), false);
    } else {
        std::thread::scope(|scope| {
            let (opened, silence) =
                run_threads(scope, context, (slots_of_workers, &works), &mut see);
            see(silence.stalled);
            note_beginning();
            let record = record_of(context, (opened, &works), &silence);
            deliver(record, context.stage.has_given_up());
        });
    }
}

/// Runs `work`, the only worker on virtual time, and forwards a stop request meanwhile.
///
/// The leading worker also polls for stop requests, but on virtual time: hours or any number of
/// operations may lie between two polls.
fn heeding_stop<Worked>(context: &PointContext, work: impl FnOnce() -> Worked) -> Worked {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = || {
            while !over.load(Ordering::Acquire) {
                // Wait first, so that a short point does not depend on real time.
                thread::park_timeout(Duration::from_nanos(WATCH.0));
                if context.terms.stop.load(Ordering::Relaxed) {
                    context.stage.stop(context.clock.now());
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

/// Runs one thread for each worker, and calls `see` periodically. Returns when all have ended, or
/// when those that remain are left behind. Also what was seen of the time: what is outstanding then.
fn run_threads<'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    context: &'a PointContext,
    (slots_of_workers, works): (&'a [Vec<usize>], &'a [SharedWork<'a>]),
    see: &mut dyn FnMut(Option<StalledIo>),
) -> (Result<(), Error>, Silence) {
    let (mut threads, mut result) = (Vec::with_capacity(slots_of_workers.len()), Ok(()));
    for (number, work) in works.iter().enumerate() {
        match thread::Builder::new().spawn_scoped(scope, move || {
            worker(context, number, slots_of_workers, work)
        }) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                context.stage.stop(context.clock.now());
                let what = format!(
                    "only {number} threads could be started, and {} are needed: {error}",
                    slots_of_workers.len()
                );
                let hint = "request fewer outstanding I/Os, or use --engine uring";
                result = Err(Error::failed(what, hint));
                break;
            }
        }
    }
    let is_over = || threads.iter().all(ScopedJoinHandle::is_finished);
    let mut silence = Silence::new(context.clock.now());
    let mut looked = context.clock.now();
    // A server may not answer while sessions are opened.
    while context.gate.ready.load(Ordering::Acquire) < threads.len() && !is_over() {
        context.clock.wait_until(context.clock.now().plus(GATE));
        if context.clock.now().since(looked) >= WATCH {
            looked = context.clock.now();
            let patience = watch_point(context, works, &mut silence);
            see(silence.stalled);
            if patience != Patience::Wait {
                break;
            }
        }
    }
    if let Some(cue) = context.terms.cue
        && context.point.warm_up == WarmUp::NONE
        && !context.stage.has_given_up()
    {
        await_start(context, cue);
    }
    context.gate.open.store(true, Ordering::Release);
    threads.iter().for_each(|thread| thread.thread().unpark());
    looked = context.clock.now();
    while !is_over() {
        context.clock.wait_until(context.clock.now().plus(WATCH));
        let now = context.clock.now();
        silence.note_late(looked, now);
        looked = now;
        let patience = watch_point(context, works, &mut silence);
        see(silence.stalled);
        if patience == Patience::LeaveThreads {
            break;
        }
    }
    for thread in threads {
        if thread.is_finished() {
            let opened = thread.join().expect("a worker does not panic");
            result = result.and(opened);
        }
    }
    (result, silence)
}

/// Ends the point if it is time, and looks whether the storage answers.
fn watch_point(context: &PointContext, works: &[SharedWork], silence: &mut Silence) -> Patience {
    let (stage, now) = (&context.stage, context.clock.now());
    let is_stop_requested = context.terms.stop.load(Ordering::Relaxed);
    // The leading worker also sees a stop request, unless an operation blocks it.
    if is_stop_requested {
        stage.stop(now);
    }
    if context.says_enough() {
        stage.end_with_window(now, context.point.window);
    }
    if let Some(windows) = context.terms.cue.and_then(Cue::windows) {
        stage.end_after(windows, context.point.window);
    }
    let completed = |class: &LiveClass| {
        class.done.load(Ordering::Relaxed) + class.failed.load(Ordering::Relaxed)
    };
    let ready = context.gate.ready.load(Ordering::Acquire);
    let completed = context.live.iter().map(completed).sum::<u64>() + ready as u64;
    // A point that has ended by itself waits no longer either, once a stop is requested.
    let is_stopped = stage.was_stopped() || is_stop_requested;
    let ending = (is_stopped, stage.has_given_up());
    let patience = silence.look(now, completed, ending, || {
        let mut outstanding = outstanding(works);
        let opening = works.len().saturating_sub(ready) as u64;
        if opening > 0 {
            outstanding.count += opening;
            outstanding.oldest = outstanding.oldest.min(context.gate.closed_at);
        }
        outstanding
    });
    match patience {
        Patience::End => {
            stage.stop(now);
            stage.give_up();
        }
        Patience::GiveUp => stage.give_up(),
        Patience::Wait | Patience::LeaveThreads => (),
    }
    patience
}

/// Waits for the common start of a point without a warm-up, which measures from its first
/// operation on.
fn await_start(context: &PointContext, cue: &Cue) {
    cue.warm();
    while !context.terms.stop.load(Ordering::Relaxed) {
        let (now, start) = (context.clock.now(), cue.start());
        if now >= start {
            return;
        }
        context.clock.wait_until(now.plus(GATE).min(start));
    }
}

/// One worker: opens its session, waits for the others, and runs its slots. What it measured is in
/// `work` afterwards.
fn worker<'a>(
    context: &'a PointContext,
    number: usize,
    slots_of_workers: &[Vec<usize>],
    work: &SharedWork<'a>,
) -> Result<(), Error> {
    let slots_of_worker = &slots_of_workers[number];
    let lengths: Vec<u32> = slots_of_worker
        .iter()
        .map(|stream| context.point.streams[*stream].length)
        .collect();
    let engine = context.engine_of(slots_of_worker);
    let session = engine.open(&lengths);
    let (streams, lanes, table) = make_lanes(context, number, slots_of_workers);
    *lock(work) = Some(Work {
        streams,
        lanes,
        table,
        fault: None,
        looking: Nanos(0),
    });
    context.gate.arrive();
    context
        .stage
        .set_off(context.clock.now(), context.point.warm_up);
    let mut session = match session {
        Ok(session) => session,
        Err(error) => {
            // The other workers have begun or will begin, and find that the point has ended.
            context.stage.stop(context.clock.now());
            return Err(error);
        }
    };
    let mut leader = (number == 0).then(|| Leader::new(context));
    let verifies = engine.verifies();
    let driven = drive(context, (session.as_mut(), verifies), work, &mut leader);
    if driven == Ok(DriveEnd::Outstanding) {
        // The kernel may still write to its buffers.
        std::mem::forget(session);
    }
    if let Err(fault) = driven {
        context.stage.stop(context.clock.now());
        if let Some(work) = lock(work).as_mut() {
            work.fault = Some(fault);
        }
    }
    if let Some(leader) = &mut leader {
        leader.finish();
    }
    Ok(())
}

/// Creates the lanes of worker `number`: one for each stream that it has slots of, and one for each
/// database session. Also returns its slots, numbered as in `slots_of_workers`.
fn make_lanes<'a>(
    context: &'a PointContext,
    number: usize,
    slots_of_workers: &[Vec<usize>],
) -> (Vec<usize>, Vec<Lane<'a>>, Vec<InFlight>) {
    let (mut streams, mut lanes, mut table) = (Vec::new(), Vec::new(), Vec::new());
    for (slot, stream) in slots_of_workers[number].iter().enumerate() {
        let is_session = is_of_sessions(&context.point.streams[*stream]);
        let index = streams.iter().position(|known| known == stream);
        let lane = index.filter(|_| !is_session).unwrap_or_else(|| {
            let share = if is_session {
                share_of_session(*stream, number, slot, slots_of_workers)
            } else {
                share_of_worker(*stream, number, slots_of_workers)
            };
            streams.push(*stream);
            lanes.push(make_lane(context, share));
            lanes.len() - 1
        });
        let slot = Slot::try_from(slot).expect("slots of a session fit");
        table.push(lanes[lane].add_slot(u16::try_from(lane).expect("few lanes"), slot));
    }
    (streams, lanes, table)
}

/// True if each slot of the stream is a database session, with a table, a mix and pauses of its own.
fn is_of_sessions(stream: &Stream) -> bool {
    stream.sql.is_some_and(|work| work.pipeline <= 1)
}

/// The part of a stream that worker `number` has: as much as any other that serves it.
fn share_of_worker(stream: usize, number: usize, slots_of_workers: &[Vec<usize>]) -> Share {
    let has_part = |slots_of_worker: &&Vec<usize>| slots_of_worker.contains(&stream);
    Share {
        stream: index(stream),
        worker: index(number),
        turn: slots_of_workers[..number].iter().filter(has_part).count() as u64,
        workers: slots_of_workers.iter().filter(has_part).count() as u64,
    }
}

/// The part of a stream that the session in `slot` of worker `number` has: as much as any other
/// session, whichever worker serves it.
fn share_of_session(
    stream: usize,
    number: usize,
    slot: usize,
    slots_of_workers: &[Vec<usize>],
) -> Share {
    // The slots of all workers, in the order in which they were assigned.
    let place = |number: usize, slot: usize| slot * slots_of_workers.len() + number;
    let places: Vec<usize> = slots_of_workers
        .iter()
        .enumerate()
        .flat_map(|(number, slots)| {
            let of_stream = slots.iter().enumerate().filter(|(_, one)| **one == stream);
            of_stream.map(move |(slot, _)| place(number, slot))
        })
        .collect();
    let own = place(number, slot);
    Share {
        stream: index(stream),
        worker: index(own),
        turn: places.iter().filter(|place| **place < own).count() as u64,
        workers: places.len() as u64,
    }
}

fn index(index: usize) -> u32 {
    u32::try_from(index).expect("streams, workers and sessions are few")
}

/// Creates the lane for this share of a stream.
fn make_lane<'a>(context: &'a PointContext, share: Share) -> Lane<'a> {
    let stream = share.stream as usize;
    let spec = &context.point.streams[stream];
    let class = context.class_of[stream];
    let (pacer, coverage) = (&context.pacers[stream], &context.coverage[class]);
    let shared = LaneContext {
        pacer,
        coverage,
        live: &context.live[class],
        seconds: &context.seconds[class],
    };
    // Fixed work is divided among all that serve the stream. The first ones take the remainder.
    let part = |count: u64| {
        Until::Ops(count / share.workers + u64::from(share.turn < count % share.workers))
    };
    let left = match context.point.until {
        Until::Ops(count) | Until::Work { ops: count, .. } => part(count),
        by_time @ (Until::Elapsed(_) | Until::Precise { .. }) => by_time,
    };
    let extent = context.engines.of(spec).usable() / u64::from(spec.length);
    let ops = Ops::new(spec, extent, context.point.seed, share);
    Lane::new(shared, ops, spec, left)
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DriveEnd {
    /// Nothing is outstanding.
    AllDone,
    /// It no longer waited for what is outstanding.
    Outstanding,
}

/// The main loop: takes due operations while a slot is free, submits them, reaps until the next due
/// time, and records.
///
/// It reads the clock once per turn, for any number of operations: a reading costs as much as all
/// other work for one operation.
fn drive(
    context: &PointContext,
    (session, verifies): (&mut dyn Session, bool),
    shared: &SharedWork,
    leader: &mut Option<Leader>,
) -> Result<DriveEnd, Fault> {
    let stage = &context.stage;
    let is_virtual = context.clock.is_virtual();
    let mut over: Vec<Completion> = Vec::new();
    let (mut outstanding, mut measuring, mut batch, mut first) = (0, false, *BATCH.start(), 0);
    let (mut failures, mut again) = (0, Nanos(0));
    let mut held = lock(shared);
    let alert = held
        .as_ref()
        .is_some_and(|work| stay_alert(context, &work.lanes));
    let mut now = context.clock.now();
    loop {
        // It was taken if this worker was blocked for so long that it was left behind.
        let Some(Work { lanes, table, .. }) = held.as_mut() else {
            return Ok(DriveEnd::Outstanding);
        };
        let mut wake = leader
            .as_mut()
            .map_or(now.plus(TICK), |leader| leader.tick(now));
        learn_beginning(&mut measuring, lanes, stage);
        let end = stage.end();
        // At the end, the loop looks once whether anything is left.
        let last_start = if now < end { end } else { stage.last_start() };
        if now < last_start && now < again {
            wake = wake.min(last_start).min(again);
        } else if now < last_start {
            wake = wake.min(last_start);
            let mut left = batch;
            // Each turn begins with the next lane. Otherwise the first lane would take every batch
            // when all operations complete at once.
            first = if first + 1 < lanes.len() {
                first + 1
            } else {
                0
            };
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
                return Ok(DriveEnd::AllDone);
            }
        } else if !is_virtual && stage.has_given_up() {
            return Ok(DriveEnd::Outstanding);
        }
        drop(held);
        session.reap(
            if alert { asleep_until(wake, now) } else { wake },
            &mut over,
        )?;
        now = context.clock.now();
        held = lock(shared);
        let Some(Work {
            lanes,
            table,
            looking,
            ..
        }) = held.as_mut()
        else {
            return Ok(DriveEnd::Outstanding);
        };
        outstanding -= over.len();
        batch = if outstanding == 0 {
            (batch * 2).min(*BATCH.end())
        } else {
            *BATCH.start()
        };
        let any_over = !over.is_empty();
        if verifies && any_over {
            look(session, &mut over);
            *looking = looking.plus(context.clock.now().since(now));
        }
        // Check again: the leading worker may have begun measuring meanwhile.
        learn_beginning(&mut measuring, lanes, stage);
        for Completion { slot, outcome } in over.drain(..) {
            let has_failed = outcome != Outcome::Done;
            failures = usize::from(has_failed) * (failures + 1);
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

/// Looks at the bytes of operations that have ended: those that are wrong have failed.
fn look(session: &mut dyn Session, over: &mut [Completion]) {
    for one in over {
        one.outcome = session.look(one.slot, one.outcome);
    }
}

/// Passes the beginning of the measurement on to the lanes, as soon as it is known.
#[inline]
fn learn_beginning(measuring: &mut bool, lanes: &mut [Lane], stage: &Stage) {
    if !*measuring && stage.from() != Nanos::MAX {
        *measuring = true;
        lanes
            .iter_mut()
            .for_each(|lane| lane.measure_from(stage.from()));
    }
}

/// True if this worker must wake up on time: one of its streams is an open loop, and there are
/// fewer workers than CPUs. For an open loop it also sets the timer slack to its minimum: by
/// default the kernel may extend a sleep by 50 µs.
fn stay_alert(context: &PointContext, lanes: &[Lane]) -> bool {
    if context.clock.is_virtual() || !lanes.iter().any(Lane::is_open) {
        return false;
    }
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    context.workers < thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// How long a worker that must wake up on time may sleep. It wakes up before the next operation is
/// due, then polls.
fn asleep_until(wake: Nanos, now: Nanos) -> Nanos {
    if wake.since(now) > AWAKE {
        Nanos(wake.0 - AWAKE.0)
    } else {
        Nanos(0)
    }
}

/// Submits the due operations of `lane`, as far as `batch` allows. Returns until when the loop may
/// wait: zero if the batch is full and more may be due.
fn submit_due(
    session: &mut dyn Session,
    lane: &mut Lane,
    table: &mut [InFlight],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_the_work_alike_whichever_worker_serves_them() {
        // Two streams, of five and three sessions, dealt to any number of workers.
        let slots: Vec<usize> = [vec![0; 5], vec![1; 3]].concat();
        for workers in 1..=slots.len() {
            let mut dealt = vec![Vec::new(); workers];
            for (number, stream) in slots.iter().enumerate() {
                dealt[number % workers].push(*stream);
            }
            let mut shares = Vec::new();
            for (number, of_worker) in dealt.iter().enumerate() {
                for (slot, stream) in of_worker.iter().enumerate() {
                    shares.push(share_of_session(*stream, number, slot, &dealt));
                }
            }
            shares.sort_by_key(|share| share.worker);
            // As if each had a worker of its own.
            let expected: Vec<Share> = (0..8u32)
                .map(|session| Share {
                    stream: u32::from(session >= 5),
                    worker: session,
                    turn: u64::from(if session < 5 { session } else { session - 5 }),
                    workers: if session < 5 { 5 } else { 3 },
                })
                .collect();
            assert_eq!(shares, expected, "{workers} workers");
        }
    }
}
