//! The conductor of a soak: round after round on a timetable, each in the journal before the next one begins.
//!
//! It outlives what ends other runs. A session that broke ends its round, and the target is made ready anew for the
//! next one; so it is if all operations of a round failed, or the target's path leads elsewhere by then. A target that
//! is not there makes a round that could not be measured; a journal that cannot be written holds rounds back until it
//! can. Nothing is kept of a round that is in the journal, so its memory does not grow.

use super::{Bench, Event, Listen};
use crate::clock::{self, Clock};
use crate::model::{Error, Moment, Nanos, Point, SoakRequest};
use crate::record::journal::Journal;
use crate::record::{End, PointRecord, Window};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a wait for the next round looks whether it is to end.
const LOOK: Nanos = Nanos::from_millis(100);

/// A round begins late by no more than this part of the time to the next one; else it does not take place, because
/// one that was begun in the middle would be cut short by the next.
const LATE: u64 = 4;

/// Most rounds that wait to be written: some megabytes.
const HELD_MAX: usize = 100;

/// A soak that is to be made, or to be gone on with.
pub struct Soak<'a> {
    /// What was asked for.
    pub request: &'a SoakRequest,
    /// When the first round was due.
    pub began: Moment,
    /// The last round that is in the journal; 0 for none.
    pub last: u32,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Makes the target ready again.
pub type Again<'a> = dyn FnMut(&mut Listen) -> Result<Bench, Error> + 'a;

impl Soak<'_> {
    /// Measures the rounds that are still to come, into `journal`. `bench` is ready, unless the target is not there;
    /// `again` makes another one for the next round.
    ///
    /// # Errors
    /// So many rounds could not be written that no more can be held, or some could not at the end.
    pub fn measure(
        &self,
        mut bench: Option<Bench>,
        again: &mut Again,
        journal: &mut Journal,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<(), Error> {
        let time = Timetable::new(self, bench.as_ref());
        let mut held = Held::default();
        let mut number = self.last + 1;
        loop {
            // Rounds whose time is over did not take place.
            number = number.max(time.number_now(self));
            if number > self.request.rounds() || !time.wait_for(self.request.due(number), stop, listen) {
                break;
            }
            let late = time.now().since(self.request.due(number));
            if self.is_too_late(late) {
                number += 1;
                continue;
            }
            let Some(mut record) = self.round(&mut bench, again, &time, (number, late), stop, listen) else {
                number += 1;
                continue;
            };
            if let Some(why) = bench.as_ref().and_then(|bench| what_broke(bench, &record)) {
                record.end = End::Broken(why);
            }
            if matches!(record.end, End::Broken(_)) && !time.is_virtual() {
                bench = None;
            }
            // A round that was ended before anything was measured is none.
            if record.end != End::Stopped || record.measured > Nanos(0) {
                listen(Event::End(&record));
                held.put(record, journal, listen)?;
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            number += 1;
        }
        held.write_all(journal)
    }

    fn is_too_late(&self, late: Nanos) -> bool {
        late > Nanos(self.request.every.0 / LATE)
    }

    /// One round, whatever becomes of it. None if the target was ready too late for it to take place.
    fn round(
        &self,
        bench: &mut Option<Bench>,
        again: &mut Again,
        time: &Timetable,
        (number, late): (u32, Nanos),
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Option<PointRecord> {
        let started = time.wall(self.began);
        let mut usable = 0;
        let mut measure = || {
            if bench.is_none() {
                *bench = Some(again(listen)?);
            }
            let bench = bench.as_ref().expect("it was just made");
            usable = bench.facts.usable.0;
            // Making it ready has taken its time.
            let late = if time.is_virtual() { late } else { time.now().since(self.request.due(number)) };
            if self.is_too_late(late) {
                return Ok(None);
            }
            let point = self.request.point(number, late, usable, self.seed);
            listen(Event::Begin { point: &point });
            bench.measure_point(&point, stop, listen).map(Some)
        };
        let mut record = measure().unwrap_or_else(|error| {
            let point = self.request.point(number, late, usable, self.seed);
            Some(unmeasured(point, error.what().to_string()))
        })?;
        record.started = started.to_string();
        Some(record)
    }
}

/// Why a round that came to its end says nothing of the target: it is gone, or answered nothing but errors.
fn what_broke(bench: &Bench, record: &PointRecord) -> Option<String> {
    if record.end != End::Complete {
        return None;
    }
    let mut total = Window::default();
    record.streams.iter().for_each(|stream| total.merge(&stream.total()));
    let all_failed = || format!("all {} operations failed", total.failures());
    bench.lost().or_else(|| (total.done == 0 && total.failures() > 0).then(all_failed))
}

/// The record of a round in which nothing could be measured.
fn unmeasured(point: Point, why: String) -> PointRecord {
    PointRecord {
        coordinates: point.coordinates,
        started: String::new(),
        warm_up: Nanos(0),
        measured: Nanos(0),
        end: End::Broken(why),
        cpu: Nanos(0),
        cpus: 0,
        window: point.window,
        asked: Some(Box::new(point)),
        streams: Vec::new(),
        samples: Vec::new(),
    }
}

/// Rounds that are not in the journal yet.
#[derive(Default)]
struct Held {
    records: VecDeque<PointRecord>,
}

impl Held {
    /// Writes this round, and those before it that could not be written.
    fn put(&mut self, record: PointRecord, journal: &mut Journal, listen: &mut Listen) -> Result<(), Error> {
        self.records.push_back(record);
        match self.write_all(journal) {
            Err(error) if self.records.len() < HELD_MAX => {
                listen(Event::Trouble(&format!(
                    "{error}\n  {} rounds are held in memory, and written as soon as that can be done",
                    self.records.len()
                )));
                Ok(())
            }
            written => written,
        }
    }

    fn write_all(&mut self, journal: &mut Journal) -> Result<(), Error> {
        while let Some(record) = self.records.front() {
            journal.point(record)?;
            self.records.pop_front();
        }
        Ok(())
    }
}

/// Time since the soak's first round was due.
struct Timetable {
    clock: Clock,
    /// Of real time: the time since boot at some moment, and how long the soak had gone on by then. The clock of
    /// measurements stands still while the machine sleeps, and days go on.
    then: Option<(Nanos, Nanos)>,
}

impl Timetable {
    fn new(soak: &Soak, bench: Option<&Bench>) -> Self {
        let engine = bench.map(|bench| bench.engine.clock()).filter(Clock::is_virtual);
        if let Some(engine) = engine {
            // A model's time begins with it: a soak that is gone on with finds it where the round is due.
            engine.wait_until(soak.request.due(soak.last + 1));
            return Self { clock: engine, then: None };
        }
        Self { clock: Clock::real(), then: Some((clock::since_boot(), clock::gone_since(soak.began))) }
    }

    fn is_virtual(&self) -> bool {
        self.clock.is_virtual()
    }

    fn now(&self) -> Nanos {
        match self.then {
            None => self.clock.now(),
            Some((then, gone)) => clock::since_boot().since(then).plus(gone),
        }
    }

    /// The first round whose time is not over.
    fn number_now(&self, soak: &Soak) -> u32 {
        soak.request.number_at(self.now())
    }

    /// Wall-clock time: of a model, that at which it would be so late.
    fn wall(&self, began: Moment) -> Moment {
        if self.is_virtual() {
            began.plus_seconds(i64::try_from(self.now().0 / 1_000_000_000).unwrap_or(i64::MAX))
        } else {
            clock::moment()
        }
    }

    /// Waits for a round; answers false if it is to end instead.
    fn wait_for(&self, due: Nanos, stop: &AtomicBool, listen: &mut Listen) -> bool {
        while self.now() < due && !stop.load(Ordering::Relaxed) {
            let left = due.since(self.now());
            listen(Event::Waiting { left });
            let look = if self.is_virtual() { left } else { left.min(LOOK) };
            self.clock.wait_until(self.clock.now().plus(look));
        }
        !stop.load(Ordering::Relaxed)
    }
}
