//! Conducts points that several ranks measure together.
//!
//! Rank 0 sends the point to all, waits until all are warm, and names a moment from which all
//! measure, each on its own clock. While they measure, every rank sends its counts and its complete
//! windows. Rank 0 shows the sum of all, and judges it: precise enough is decided for all, after a
//! window that lies ahead.
//! Then every rank sends its record, and the records are merged. The other ranks plan, judge and
//! write nothing.
//!
//! A model of a device has no time in common with others. There the first rank measures as if it
//! were alone, and the others as long as it did.

mod news;
mod now;
mod parts;

use super::agreement::{AGREE, PREPARE, clock_of};
use super::bench::{Bench, Event, Listen, ServerCounters};
use news::{News, RankPart};
use now::{RunningSum, Teller};
use parts::ArrivingRecords;
use rigel_analyse as analyse;
use rigel_analyse::plan::ranks::of_rank;
use rigel_drive::Cue;
use rigel_model::record::ranks::{RankClock, RankRecord, merged};
use rigel_model::record::{End, PointRecord, StallEvent, Window};
use rigel_model::{Error, Nanos, Point, Sample, Step, Until, failed};
use rigel_ranks::{ClockOffset, Ranks};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Time from the message that all are warm to the common start: every rank looks for it once within
/// 100 ms, even if its operations take long.
const AHEAD: Nanos = Nanos::from_millis(150);
/// Time a rank may need to open its sessions, beyond the warm-up.
const READY: Nanos = Nanos::from_secs(30);
/// Time for records to arrive after the end of a point.
const RECORD: Nanos = Nanos::from_secs(60);
/// Stalls of other ranks that may wait to be reported.
const STALLS_MAX: usize = 1000;
/// How often state that no message announces is looked at.
const LOOK: Nanos = Nanos::from_millis(10);
/// Wait for a message; what else there is to do is looked at in between.
const LISTEN: Nanos = Nanos::from_millis(50);
/// Exchanges for each measurement of the clocks.
const EXCHANGES: usize = 20;

/// What rank 0 tells the others.
#[derive(Serialize, Deserialize)]
enum Instruction {
    /// Measure this point, after driving another without a record.
    Point {
        point: Box<Point>,
        warming: Option<Box<Point>>,
    },
    /// Measure from this moment on, of the receiver's clock.
    Start(Nanos),
    /// End after this number of windows.
    EndAfter(u64),
    /// Let go of the target, and prepare it again together with all ranks.
    Reopen,
    /// There are no more points.
    Over,
}

/// A point that ranks have measured.
pub(super) struct Together {
    /// The sum.
    pub(super) merged: PointRecord,
    /// By rank.
    pub(super) parts: Vec<RankRecord>,
}

/// One point at rank 0.
struct Conductor<'a> {
    ranks: &'a Ranks,
    bench: &'a Bench,
    point: &'a Point,
    /// The ranks that measure, ascending.
    active: Vec<usize>,
    stop: &'a AtomicBool,
    cue: Cue,
    /// True once rank 0 has measured its part, or if it has none.
    own_is_over: AtomicBool,
    /// What all ranks have done so far.
    now: Mutex<RunningSum>,
    /// Stalls of other ranks that were not reported yet.
    stalls: Mutex<Vec<StallEvent>>,
    offsets: Vec<ClockOffset>,
}

/// Measures a point on all active ranks; called at rank 0. `None` if it was stopped before anything
/// was measured.
///
/// # Errors
/// A rank was lost, could not measure or did not answer.
pub(super) fn measure(
    bench: &Bench,
    ranks: &Ranks,
    (point, warming): (&Point, Option<&Point>),
    stop: &AtomicBool,
    listen: &mut Listen,
) -> Result<Option<Together>, Error> {
    let includes = |rank: &usize| {
        let active = point.coordinates.active_ranks();
        u32::try_from(*rank).is_ok_and(|rank| active.includes(rank))
    };
    let is_model = bench.engine.clock().is_virtual();
    let active: Vec<usize> = (0..ranks.size()).filter(includes).collect();
    let conductor = Conductor {
        ranks,
        bench,
        point,
        now: Mutex::new(running_sum(point, &active, bench, ranks)),
        stalls: Mutex::default(),
        active,
        stop,
        cue: Cue::default(),
        own_is_over: AtomicBool::new(false),
        offsets: if is_model {
            vec![ClockOffset::default(); ranks.size()]
        } else {
            ranks.clock_offsets(EXCHANGES)?
        },
    };
    // Before any session is open, since a server counts for all of them.
    let servers = bench.servers_of_all();
    let before = servers.map(ServerCounters::begin);
    let parts = if is_model {
        conductor.one_after_the_other(warming)
    } else {
        conductor.together(warming, listen)
    };
    conductor.report_stalls(listen);
    let parts = parts?;
    if parts
        .values()
        .all(|(record, _)| record.measured == Nanos(0))
    {
        return Ok(None);
    }
    conductor.show_end(&parts, listen);
    let after = if is_model {
        conductor.offsets.clone()
    } else {
        ranks.clock_offsets(EXCHANGES)?
    };
    let started = parts
        .values()
        .next()
        .map(|(record, _)| record.started.clone());
    let parts = conductor.records(parts, &after);
    let merged = merged(started.unwrap_or_default(), &parts);
    Ok(merged.map(|mut merged| {
        conductor.name_host(&mut merged.end, &parts);
        if let Some((servers, before)) = servers.zip(before) {
            let is_broken = matches!(merged.end, End::Broken(_));
            let end = merged.warm_up.plus(merged.measured);
            let of_servers = |at, server| Sample {
                at,
                server,
                ..Sample::default()
            };
            merged.samples = vec![
                of_servers(Nanos(0), before),
                of_servers(end, servers.end(is_broken, stop)),
            ];
        }
        Together { merged, parts }
    }))
}

/// Prepares a target again; returns its bench.
pub type Reopen<'a> = dyn FnMut(&mut Listen) -> Result<Bench, Error> + 'a;

/// Lets all ranks prepare their targets again, at rank 0, whose own bench is gone. The inner error is
/// that of a rank whose target is not ready: then no rank has one.
///
/// # Errors
/// A rank was lost or did not answer.
pub(super) fn reopen_all(
    ranks: &Ranks,
    again: &mut Reopen,
    listen: &mut Listen,
) -> Result<Result<Bench, Error>, Error> {
    ranks.send_all(&Instruction::Reopen)?;
    reopen(ranks, again, listen)
}

/// The part of every rank in it.
fn reopen(
    ranks: &Ranks,
    again: &mut Reopen,
    listen: &mut Listen,
) -> Result<Result<Bench, Error>, Error> {
    // The guard refuses what another process of the host still holds.
    ranks.barrier(AGREE)?;
    let prepared = again(listen);
    let in_words = |error: &Error| (error.what().to_string(), error.hint().to_string());
    let own = prepared.as_ref().err().map(in_words);
    let of_all = ranks.exchange(&own, PREPARE)?;
    let failed = of_all.iter().position(Option::is_some);
    let Some((rank, (what, hint))) = failed.zip(of_all.iter().flatten().next()) else {
        return Ok(prepared);
    };
    // What all of them say is not that of one.
    let is_of_all = of_all.iter().all(|other| *other == of_all[rank]);
    let what = if is_of_all {
        what.clone()
    } else {
        format!("{}: {what}", ranks.named(rank))
    };
    Ok(Err(Error::failed(what, hint)))
}

/// Tells the other ranks that there are no more points.
///
/// # Errors
/// A connection broke.
pub(super) fn over(ranks: &Ranks) -> Result<(), Error> {
    ranks.send_all(&Instruction::Over)
}

impl Conductor<'_> {
    /// On models: the first rank measures as if it were alone, then all others as long.
    fn one_after_the_other(
        &self,
        warming: Option<&Point>,
    ) -> Result<BTreeMap<usize, RankPart>, Error> {
        let mut parts = BTreeMap::new();
        let Some((first, others)) = self.active.split_first() else {
            return Ok(parts);
        };
        let mut point = self.share(*first);
        if *first == 0 {
            if let Some(warming) = warming {
                self.bench.warm(warming, self.stop, &mut |_| ())?;
            }
            let record = self.bench.measure_point(&point, self.stop, &mut |_| ())?;
            parts.insert(0, (record, Nanos(0)));
        } else {
            self.instruct(*first, point, warming)?;
            self.collect(&mut parts, 1)?;
        }
        let measured = parts.values().map(|(record, _)| record.measured).max();
        for rank in others {
            point = self.share(*rank);
            if !point.until.is_work() {
                point.until = Until::Elapsed(measured.unwrap_or_default().max(point.window));
            }
            self.instruct(*rank, point, warming)?;
        }
        self.collect(&mut parts, self.active.len())?;
        Ok(parts)
    }

    fn instruct(&self, rank: usize, point: Point, warming: Option<&Point>) -> Result<(), Error> {
        let warming = warming.map(|warming| Box::new(warming.clone()));
        let point = Box::new(point);
        self.ranks
            .send(rank, &Instruction::Point { point, warming })
    }

    /// Waits for records until there are `wanted`.
    fn collect(&self, parts: &mut BTreeMap<usize, RankPart>, wanted: usize) -> Result<(), Error> {
        let mut arriving = ArrivingRecords::default();
        while parts.len() < wanted {
            let due = self.ranks.clock().now().plus(LISTEN);
            if let Some((from, news)) = self.ranks.receive(due)?
                && let Some(part) = self.arrived(&mut arriving, from, news)?
            {
                parts.insert(from, part);
            }
        }
        Ok(())
    }

    /// The record of a rank, once all of it has arrived and it is one of this point.
    fn arrived(
        &self,
        arriving: &mut ArrivingRecords,
        from: usize,
        news: News,
    ) -> Result<Option<RankPart>, Error> {
        let arrived = arriving.take(from, news, self.point);
        arrived.map_err(|why| self.ranks.unreadable(from, &why))
    }

    /// On real time: all at once.
    fn together(
        &self,
        warming: Option<&Point>,
        listen: &mut Listen,
    ) -> Result<BTreeMap<usize, RankPart>, Error> {
        for rank in self.active.iter().filter(|rank| **rank != 0) {
            self.instruct(*rank, self.share(*rank), warming)?;
        }
        let is_active = self.active.contains(&0);
        self.own_is_over.store(!is_active, Ordering::Release);
        std::thread::scope(|scope| {
            let conduct = scope.spawn(|| self.conduct());
            let own = is_active.then(|| {
                let own = self.own_part(warming, listen);
                if own.is_err() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                self.own_is_over.store(true, Ordering::Release);
                own
            });
            while own.is_none() && !conduct.is_finished() {
                let clock = self.ranks.clock();
                clock.wait_until(clock.now().plus(LISTEN));
                self.show(&[], listen);
                self.report_stalls(listen);
            }
            let others = conduct.join().expect("a conductor does not panic");
            let mut parts = others?;
            if let Some(own) = own {
                parts.insert(0, own?);
            }
            Ok(parts)
        })
    }

    fn own_part(&self, warming: Option<&Point>, listen: &mut Listen) -> Result<RankPart, Error> {
        if let Some(warming) = warming {
            self.bench.warm(warming, self.stop, &mut |_| ())?;
        }
        let point = self.share(0);
        let mut teller = Teller::default();
        let mut see = |event: Event| {
            if let Event::Stall(event) = event {
                listen(Event::Stall(&self.on_host(0, event.clone())));
            }
            self.report_stalls(listen);
            let Event::Live { live, samples, .. } = event else {
                return;
            };
            let counts = teller.counts(live, &point);
            let windows = teller.windows(live, &point, counts.is_some());
            let mut now = self.now();
            now.add_windows(0, windows);
            if let Some(counts) = counts {
                now.add_counts(0, counts);
            }
            drop(now);
            self.show(samples, listen);
        };
        let cue = Some(&self.cue);
        let record = self
            .bench
            .measure_on_cue(&point, self.stop, cue, &mut see)?;
        self.now().end(0);
        Ok((record, began(&self.cue, self.bench, self.ranks)))
    }

    /// Starts, ends and collects the parts of the other ranks.
    fn conduct(&self) -> Result<BTreeMap<usize, RankPart>, Error> {
        let conducted = self.try_conduct();
        if conducted.is_err() {
            // Rank 0's own part ends too.
            self.stop.store(true, Ordering::Relaxed);
        }
        conducted
    }

    fn try_conduct(&self) -> Result<BTreeMap<usize, RankPart>, Error> {
        let clock = self.ranks.clock();
        let (mut parts, mut warm) = (BTreeMap::new(), BTreeSet::new());
        let mut arriving = ArrivingRecords::default();
        let others = self.active.iter().filter(|rank| **rank != 0).count();
        // A day for an amount of work without a limit.
        let longest = self.point.until.longest();
        let longest = longest.unwrap_or(Nanos::from_secs(24 * 3600));
        let mut due = clock
            .now()
            .plus(self.point.warm_up.most)
            .plus(READY)
            .plus(READY);
        let (mut has_started, mut has_stopped, mut judged) = (false, false, 0);
        while parts.len() < others || !self.own_is_over.load(Ordering::Acquire) {
            let pause = if has_started { LISTEN } else { LOOK };
            match self.ranks.receive(clock.now().plus(pause))? {
                Some((from, News::Warm)) => drop(warm.insert(from)),
                Some((from, News::Windows(changed))) => self.now().add_windows(from, changed),
                Some((from, News::Counts(counts))) => self.now().add_counts(from, counts),
                Some((from, News::Stalled(event))) => {
                    let mut stalls = self.stalls();
                    if stalls.len() < STALLS_MAX {
                        stalls.push(self.on_host(from, event));
                    }
                }
                Some((from, news)) => {
                    if let Some(part) = self.arrived(&mut arriving, from, news)? {
                        self.now().end(from);
                        parts.insert(from, part);
                    }
                }
                None => {}
            }
            if self.cue.is_warm() {
                warm.insert(0);
            }
            let is_any_over = !parts.is_empty()
                || self.active.contains(&0) && self.own_is_over.load(Ordering::Acquire);
            if !has_started && warm.len() == self.active.len() {
                has_started = true;
                self.start(clock.now().plus(AHEAD))?;
                due = clock.now().plus(longest).plus(READY).plus(RECORD);
            } else if !has_started && is_any_over {
                // It broke or was stopped, and the others would wait for it.
                self.stop.store(true, Ordering::Relaxed);
            }
            if let Some(windows) = self.judge(&mut judged) {
                self.cue.end_after(windows);
                self.tell_active(|_| Instruction::EndAfter(windows))?;
            }
            if self.stop.load(Ordering::Relaxed) && !has_stopped {
                has_stopped = true;
                due = due.min(clock.now().plus(RECORD));
            }
            if clock.now() > due {
                let is_own_over = self.own_is_over.load(Ordering::Acquire);
                let has_answered = |rank: usize| {
                    parts.contains_key(&rank)
                        || rank == 0 && is_own_over
                        || !has_started && warm.contains(&rank)
                };
                let missing = self.active.iter().filter(|rank| !has_answered(**rank));
                let missing: Vec<usize> = missing.copied().collect();
                return Err(self.ranks.give_up(&missing, RECORD));
            }
        }
        Ok(parts)
    }

    /// Names the moment of rank 0's clock from which all measure.
    fn start(&self, at: Nanos) -> Result<(), Error> {
        self.cue.start_at(on_engine(at, self.bench, self.ranks));
        self.tell_active(|rank| Instruction::Start(self.offsets[rank].of_root(at)))
    }

    fn tell_active(&self, instruction: impl Fn(usize) -> Instruction) -> Result<(), Error> {
        let mut others = self.active.iter().filter(|rank| **rank != 0);
        others.try_for_each(|rank| self.ranks.send(*rank, &instruction(*rank)))
    }

    /// The number of windows after which the point ends for all, if the sum of all ranks says that
    /// enough was measured.
    fn judge(&self, judged: &mut usize) -> Option<u64> {
        let Until::Precise { least, .. } = self.point.until else {
            return None;
        };
        let now = self.now();
        let counts = || now.windows().map(<[Window]>::len);
        let common = counts().min()?;
        let width = self.point.window;
        // The check is O(windows), so it runs only after their number has grown by 5 %.
        let is_due = common >= (*judged).max(1) * 21 / 20 && common > *judged;
        if !is_due || Nanos(common as u64 * width.0) < least {
            return None;
        }
        *judged = common;
        if !analyse::is_enough(self.point.until, &now.sum(common)) {
            return None;
        }
        // Every rank must learn of it before it is there.
        let furthest = counts().max()? as u64;
        Some(furthest + 2 + Nanos::from_millis(300).0.div_ceil(width.0.max(1)))
    }

    /// A stall of this point at a rank, with the name of its host.
    fn on_host(&self, rank: usize, event: StallEvent) -> StallEvent {
        let member = self.ranks.members().get(rank);
        StallEvent {
            coordinates: Some(self.point.coordinates),
            host: member.map(|member| member.host.clone()),
            ..event
        }
    }

    /// Reports the stalls of other ranks.
    fn report_stalls(&self, listen: &mut Listen) {
        let stalls = std::mem::take(&mut *self.stalls());
        for event in &stalls {
            listen(Event::Stall(event));
        }
    }

    /// Names the host of a rank that broke the point.
    fn name_host(&self, end: &mut End, parts: &[RankRecord]) {
        let End::Broken(why) = end else { return };
        let numbers = parts.iter().map(|part| part.rank as usize);
        let mut named = numbers.filter_map(|rank| {
            let rest = why.strip_prefix(&format!("rank {rank}: "))?;
            Some(format!("{}: {rest}", self.ranks.named(rank)))
        });
        if let Some(named) = named.next() {
            *why = named;
        }
    }

    fn stalls(&self) -> MutexGuard<'_, Vec<StallEvent>> {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> MutexGuard<'_, RunningSum> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what all ranks have done so far, if there is something new.
    fn show(&self, samples: &[Sample], listen: &mut Listen) {
        let picture = self.now().picture_if_due(self.ranks);
        if let Some(picture) = picture {
            picture.show(self.point, samples, listen);
        }
    }

    /// Shows what all ranks have done, at the end.
    fn show_end(&self, parts: &BTreeMap<usize, RankPart>, listen: &mut Listen) {
        let records = parts.iter().map(|(rank, (record, _))| (*rank, record));
        let picture = self.now().final_picture(records, self.ranks);
        let samples = parts.get(&0).map_or(&[][..], |(record, _)| &record.samples);
        if let Some(picture) = picture {
            picture.show(self.point, samples, listen);
        }
    }

    /// The point as one rank measures it. Fixed work is divided among all; that of sessions is the
    /// work of each session.
    fn share(&self, rank: usize) -> Point {
        let mut point = part_of(self.point, rank, self.bench, self.ranks);
        let is_of_each = point.streams.iter().any(|stream| stream.sql.is_some());
        if let Until::Ops(ops) | Until::Work { ops, .. } = &mut point.until
            && !is_of_each
        {
            let (count, rank) = (self.active.len().max(1) as u64, rank as u64);
            *ops = (*ops / count + u64::from(rank < *ops % count)).max(1);
        }
        point
    }

    /// The parts as the journal has them.
    fn records(&self, parts: BTreeMap<usize, RankPart>, after: &[ClockOffset]) -> Vec<RankRecord> {
        let of_rank = |(rank, (mut record, began)): (usize, RankPart)| {
            // All of them did what the plan asked for, each its part.
            record.asked = Some(Box::new(self.point.clone()));
            let (before, after) = (self.offsets[rank], after[rank]);
            RankRecord {
                rank: u32::try_from(rank).unwrap_or(u32::MAX),
                clock: RankClock {
                    drift_ppm: after.drift_ppm_since(before),
                    agreed: before.agreed && after.agreed,
                    ..clock_of(before)
                },
                began,
                record,
            }
        };
        parts.into_iter().map(of_rank).collect()
    }
}

/// Takes the record of a point at the rank that measured it.
pub type Keep<'a> = dyn FnMut(&PointRecord) -> Result<(), Error> + 'a;

/// What another rank measures on.
pub enum FollowedBenches<'a> {
    /// The bench of each point.
    Fixed(&'a dyn Fn(&Point) -> &'a Bench),
    /// One bench for all points, which is prepared again when rank 0 says so.
    Reopened(Option<Box<Bench>>, &'a mut Reopen<'a>),
}

impl FollowedBenches<'_> {
    fn of(&self, point: &Point) -> Result<&Bench, Error> {
        match self {
            Self::Fixed(bench_of) => Ok(bench_of(point)),
            Self::Reopened(bench, _) => bench
                .as_deref()
                .ok_or_else(|| failed!("rank 0 sent a point, and no target is ready", "")),
        }
    }

    fn reopen(&mut self, ranks: &Ranks) -> Result<(), Error> {
        match self {
            Self::Fixed(_) => Err(ranks.unreadable(0, "a target is to be prepared again")),
            Self::Reopened(bench, again) => {
                *bench = None;
                // Rank 0 has the error as well, and tries again in the next round.
                *bench = reopen(ranks, *again, &mut |_| ())?.ok().map(Box::new);
                Ok(())
            }
        }
    }
}

/// Measures what rank 0 sends, until there is no more; called at the other ranks. Each record goes to
/// `keep` before it goes to rank 0.
///
/// # Errors
/// Rank 0 was lost or ended the run, a session could not be opened, or `keep` failed.
pub fn follow(
    mut benches: FollowedBenches<'_>,
    ranks: &Ranks,
    stop: &AtomicBool,
    keep: &mut Keep,
) -> Result<(), Error> {
    loop {
        let due = ranks.clock().now().plus(Nanos::from_secs(1));
        match ranks.receive(due)? {
            Some((_, Instruction::Over)) => return Ok(()),
            Some((_, Instruction::Reopen)) => benches.reopen(ranks)?,
            Some((_, Instruction::Point { point, warming })) => {
                let bench = benches.of(&point)?;
                let asked = warming.as_deref().into_iter().chain([&*point]);
                for point in asked {
                    bench.check(point)?;
                }
                let follower = Follower {
                    bench,
                    ranks,
                    stop,
                    cue: Cue::default(),
                    is_over: AtomicBool::new(false),
                };
                follower.obey(&point, warming.as_deref(), keep)?;
            }
            // What concerned a point that has ended meanwhile.
            Some((_, Instruction::Start(_) | Instruction::EndAfter(_))) | None => {}
        }
    }
}

/// One point at another rank.
struct Follower<'a> {
    bench: &'a Bench,
    ranks: &'a Ranks,
    stop: &'a AtomicBool,
    cue: Cue,
    is_over: AtomicBool,
}

impl Follower<'_> {
    fn obey(&self, point: &Point, warming: Option<&Point>, keep: &mut Keep) -> Result<(), Error> {
        if let Some(warming) = warming {
            self.bench.warm(warming, self.stop, &mut |_| ())?;
        }
        let (mut record, began) = if self.bench.engine.clock().is_virtual() {
            let record = self.bench.measure_point(point, self.stop, &mut |_| ())?;
            (record, Nanos(0))
        } else {
            self.on_cue(point)?
        };
        // Rank 0 sees only its own target. A soak lasts for weeks, in which one is replaced.
        if point.coordinates.step() == Step::Round
            && record.end == End::Complete
            && let Some(why) = self.bench.lost()
        {
            record.end = End::Broken(why);
        }
        keep(&record)?;
        parts::send(record, began, &mut |news| self.ranks.send(0, news))
    }

    fn on_cue(&self, point: &Point) -> Result<RankPart, Error> {
        std::thread::scope(|scope| {
            let heed = scope.spawn(|| {
                let heeded = self.heed();
                if heeded.is_err() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                heeded
            });
            let mut teller = Teller::default();
            let mut see = |event: Event| {
                if let Event::Stall(event) = event {
                    let _ = self.ranks.send(0, &News::Stalled(event.clone()));
                }
                let Event::Live { live, .. } = event else {
                    return;
                };
                let counts = teller.counts(live, point);
                let windows = teller.windows(live, point, counts.is_some());
                // A broken connection is noticed where it is read.
                if !windows.is_empty() {
                    let _ = self.ranks.send(0, &News::Windows(windows));
                }
                if let Some(counts) = counts {
                    let _ = self.ranks.send(0, &News::Counts(counts));
                }
            };
            let cue = Some(&self.cue);
            let record = self.bench.measure_on_cue(point, self.stop, cue, &mut see);
            self.is_over.store(true, Ordering::Release);
            heed.join().expect("a listener does not panic")?;
            Ok((record?, began(&self.cue, self.bench, self.ranks)))
        })
    }

    /// Says that the point is warm, and passes on what rank 0 says.
    fn heed(&self) -> Result<(), Error> {
        let mut has_told = false;
        while !self.is_over.load(Ordering::Acquire) {
            if self.cue.is_warm() && !has_told {
                has_told = true;
                self.ranks.send(0, &News::Warm)?;
            }
            let pause = if has_told { LISTEN } else { LOOK };
            match self.ranks.receive(self.ranks.clock().now().plus(pause))? {
                Some((_, Instruction::Start(at))) => {
                    self.cue.start_at(on_engine(at, self.bench, self.ranks));
                }
                Some((_, Instruction::EndAfter(windows))) => self.cue.end_after(windows),
                Some((_, Instruction::Point { .. } | Instruction::Reopen | Instruction::Over))
                | None => {}
            }
        }
        Ok(())
    }
}

/// The part of a point that one rank measures, with the work of all; the whole point for a rank that
/// waits.
fn part_of(point: &Point, rank: usize, bench: &Bench, ranks: &Ranks) -> Point {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (own, size) = (number(rank), number(ranks.size()));
    of_rank(point, own, size, bench.facts.usable.0).unwrap_or(point.clone())
}

fn running_sum(point: &Point, active: &[usize], bench: &Bench, ranks: &Ranks) -> RunningSum {
    let parts: Vec<Point> = (0..ranks.size())
        .map(|rank| part_of(point, rank, bench, ranks))
        .collect();
    RunningSum::new(point, active, &parts)
}

/// A moment of this rank's clock on that of the engine, which began at another time.
fn on_engine(at: Nanos, bench: &Bench, ranks: &Ranks) -> Nanos {
    let (here, there) = (ranks.clock().now(), bench.engine.clock().now());
    Nanos(there.plus(at).0.saturating_sub(here.0))
}

/// When measuring began, on this rank's clock; zero if it did not.
fn began(cue: &Cue, bench: &Bench, ranks: &Ranks) -> Nanos {
    let (here, there) = (ranks.clock().now(), bench.engine.clock().now());
    cue.began().map_or(Nanos(0), |began| {
        Nanos(here.plus(began).0.saturating_sub(there.0))
    })
}
