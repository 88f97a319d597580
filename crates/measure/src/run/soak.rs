//! Conducts a soak: runs rounds on a timetable and writes each to the journal before the next
//! begins.
//!
//! A soak survives problems that end other runs. If a session breaks, its round ends, and the
//! target is prepared again for the next round. The same happens if all operations of a round
//! failed, or if the target's path now leads elsewhere. If the target is missing, the round is
//! recorded as not measured. If the journal cannot be written, rounds are held in memory until it
//! can; once the journal was removed, the soak ends. Rounds that are in memory at the end are written to another
//! journal. A round in the journal is dropped from memory, so memory use does not grow.
//!
//! Several ranks measure each round together, and this is rank 0. They prepare their targets again
//! together. A lost rank, or one that cannot open its sessions, ends the soak: the sum of fewer
//! hosts would be another figure.

use super::bench::{Bench, Event, Listen};
use super::ranks::Reopen;
use rigel_analyse::quantity::counted;
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_device::clock::{self, Clock};
use rigel_model::record::journal::{Header, Journal, refuse_unusable};
use rigel_model::record::ranks::RankRecord;
use rigel_model::record::{End, HowEnded, PointRecord, RunEnd, Window};
use rigel_model::{Coordinates, Error, Moment, Nanos, Point, failed, shell_path};
use rigel_ranks::Ranks;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Poll interval for a stop request while waiting for the next round.
const LOOK: Nanos = Nanos::from_millis(100);

/// A round that would start more than `every / LATE` late is skipped: the next round would cut it
/// short.
const LATE: u64 = 4;

/// Maximum number of rounds held in memory until they can be written: some megabytes.
const HELD_MAX: usize = 100;

/// A soak to start or to resume.
pub struct Soak<'a> {
    /// Options of the soak.
    pub request: &'a SoakRequest,
    /// When the first round was due.
    pub began: Moment,
    /// Last round in the journal; 0 = none.
    pub last: u32,
    /// Longest complete round in the journal; 0 = none.
    pub longest: Nanos,
    /// Seed of all random choices.
    pub seed: u64,
    /// The ranks that measure each round together; `None` if this process measures alone.
    pub together: Option<&'a Ranks>,
    /// The first line of the journal.
    pub header: &'a Header,
}

/// A round, and what each rank measured of it.
type MeasuredRound = (PointRecord, Vec<RankRecord>);

impl Soak<'_> {
    /// Measures the remaining rounds into `journal`. `bench` is `None` if the target is missing;
    /// `again` makes a new one for the next round.
    ///
    /// # Errors
    /// More rounds than can be held in memory could not be written, or some could not be written at
    /// the end: they are in another journal, which is named. Or the journal was removed, or a rank was
    /// lost or cannot go on.
    pub fn measure(
        &self,
        bench: Option<Bench>,
        again: &mut Reopen,
        journal: &mut Journal,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<(), Error> {
        let mut held = Held::default();
        let measured = self.measure_held(&mut held, bench, again, journal, stop, listen);
        let Err(unwritten) = held.write_all(journal) else {
            return measured;
        };
        let why = measured.err().unwrap_or(unwritten);
        let rounds = counted(held.rounds.len() as u64, "round");
        Err(match held.save_beside(journal.path(), self.header, &why) {
            Some(place) => failed!(
                "{what}; {rounds} that could not be written there: '{saved}'",
                format!("rigel report {}", shell_path(&place)),
                what = why.what(),
                saved = place.display()
            ),
            None => failed!(
                "{what}; lost with it: {rounds} that no other place took",
                why.hint(),
                what = why.what()
            ),
        })
    }

    /// The same with the rounds that could not be written in `held`.
    fn measure_held(
        &self,
        held: &mut Held,
        mut bench: Option<Bench>,
        again: &mut Reopen,
        journal: &mut Journal,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<(), Error> {
        let time = Timetable::new(self, bench.as_ref());
        let mut number = self.last + 1;
        let mut longest = self.longest;
        loop {
            // Skip rounds whose time has passed.
            number = number.max(time.number_now(self));
            let due = self.request.due(number, longest);
            if number > self.request.rounds() || !time.wait_for(due, stop, listen) {
                break;
            }
            if self.is_too_late(time.now(), due) {
                number += 1;
                continue;
            }
            let round = self.round(&mut bench, again, &time, (number, due), stop, listen);
            let round = round.inspect_err(|_| self.note_loss(number, journal))?;
            let Some((mut record, parts)) = round else {
                number += 1;
                continue;
            };
            if let Some(why) = bench.as_ref().and_then(|bench| what_broke(bench, &record)) {
                record.end = End::Broken(why);
            }
            longest = SoakRequest::longest_with(longest, &record);
            let is_broken = matches!(record.end, End::Broken(_));
            if is_broken && !time.is_virtual() {
                bench = None;
            }
            // A round that was stopped before anything was measured is not recorded.
            if record.end != End::Stopped || record.measured > Nanos(0) {
                listen(Event::Parts(&parts));
                listen(Event::End(&record));
                held.put((record, parts), journal, listen)?;
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            number += 1;
        }
        held.write_all(journal)?;
        let Some(ranks) = self.together else {
            return Ok(());
        };
        let ended = if ranks.lost().is_empty() {
            super::ranks::over(ranks)
        } else {
            // It was noticed between two rounds.
            Err(ranks.loss_error())
        };
        ended.inspect_err(|_| self.note_loss(number, journal))
    }

    fn note_loss(&self, number: u32, journal: &mut Journal) {
        let outstanding = self.request.load.slots();
        let round = Coordinates::Round {
            round: number,
            outstanding,
        };
        if let Some(ranks) = self.together {
            super::note_loss(ranks, round, journal);
        }
    }

    fn is_too_late(&self, now: Nanos, due: Nanos) -> bool {
        now.since(due) > Nanos(self.request.every.0 / LATE)
    }

    /// Runs one round, whatever happens to the target. `None` if the target was ready too late for
    /// the round.
    fn round(
        &self,
        bench: &mut Option<Bench>,
        again: &mut Reopen,
        time: &Timetable,
        (number, due): (u32, Nanos),
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<Option<MeasuredRound>, Error> {
        let started = time.wall(self.began).to_string();
        let began = time.now();
        let point = |now: Nanos, usable| {
            let begins = now.since(self.request.place(number));
            self.request.point(number, begins, usable, self.seed)
        };
        let failed = |usable, error: &Error| {
            let point = point(began, usable);
            let record = PointRecord {
                started: started.clone(),
                began: Nanos(0),
                ..unmeasured(point, End::Broken(error.what().to_string()))
            };
            Ok(Some((record, Vec::new())))
        };
        let prepared = match (bench.take(), self.together) {
            (Some(bench), _) => Ok(bench),
            (None, None) => again(listen),
            (None, Some(ranks)) => super::ranks::reopen_all(ranks, again, listen)?,
        };
        let bench = match prepared {
            Ok(prepared) => &*bench.insert(prepared),
            Err(error) => return failed(0, &error),
        };
        let usable = bench.facts.usable.0;
        // Preparing the target took time.
        let now = time.now();
        if self.is_too_late(now, due) {
            return Ok(None);
        }
        let point = point(now, usable);
        listen(Event::Begin { point: &point });
        match self.measured(bench, point, stop, listen) {
            Err(error) if self.together.is_none() => failed(usable, &error),
            measured => measured.map(|(mut record, parts)| {
                record.started = started;
                Some((record, parts))
            }),
        }
    }

    fn measured(
        &self,
        bench: &Bench,
        point: Point,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<MeasuredRound, Error> {
        let Some(ranks) = self.together else {
            let record = bench.measure_point(&point, stop, listen)?;
            return Ok((record, Vec::new()));
        };
        let measured = super::ranks::measure(bench, ranks, (&point, None), stop, listen)?;
        Ok(match measured {
            Some(measured) => (measured.merged, measured.parts),
            None => (unmeasured(point, End::Stopped), Vec::new()),
        })
    }
}

/// Why a completed round says nothing about the target: the target is gone, or all operations
/// failed.
fn what_broke(bench: &Bench, record: &PointRecord) -> Option<String> {
    if record.end != End::Complete {
        return None;
    }
    let mut total = Window::default();
    record
        .streams
        .iter()
        .for_each(|stream| total.merge(&stream.total()));
    let all_failed = || format!("all {} operations failed", total.failures());
    bench
        .lost()
        .or_else(|| (total.done == 0 && total.failures() > 0).then(all_failed))
}

/// Record of a round of which nothing was measured.
fn unmeasured(point: Point, end: End) -> PointRecord {
    PointRecord {
        coordinates: point.coordinates,
        started: String::new(),
        began: Nanos(0),
        warm_up: Nanos(0),
        measured: Nanos(0),
        end,
        cpu: Nanos(0),
        cpus: 0,
        window: point.window,
        asked: Some(Box::new(point)),
        streams: Vec::new(),
        samples: Vec::new(),
        merge: None,
        verified: None,
        syncs: None,
        visits: Vec::new(),
        silences: Vec::new(),
        suspended: Vec::new(),
        left_out: Nanos(0),
    }
}

/// Rounds not written to the journal yet.
#[derive(Default)]
struct Held {
    rounds: VecDeque<MeasuredRound>,
}

impl Held {
    /// Writes this round, after earlier rounds that could not be written.
    fn put(
        &mut self,
        round: MeasuredRound,
        journal: &mut Journal,
        listen: &mut Listen,
    ) -> Result<(), Error> {
        self.rounds.push_back(round);
        match self.write_all(journal) {
            Err(error) if self.rounds.len() < HELD_MAX && !journal.is_removed() => {
                let held = self.rounds.len();
                // Not again after each round of a night.
                if held.is_power_of_two() {
                    let held = counted(held as u64, "round");
                    let what = format!("{error}\n  in memory until they can be written: {held}");
                    listen(Event::Trouble(&what));
                }
                Ok(())
            }
            written => written,
        }
    }

    fn write_all(&mut self, journal: &mut Journal) -> Result<(), Error> {
        while let Some((record, parts)) = self.rounds.front() {
            journal.point_of_ranks(parts, record)?;
            self.rounds.pop_front();
        }
        Ok(())
    }

    /// Writes these rounds to a journal of their own: beside the directory of the other one, or where
    /// temporary files are. Returns its directory, if one of these places took all.
    fn save_beside(&self, journal: &Path, header: &Header, why: &Error) -> Option<PathBuf> {
        let run = journal.parent().and_then(Path::file_name);
        let stem = run.unwrap_or_default().to_string_lossy();
        let name = format!("{stem}-rest-{}", std::process::id());
        let beside = journal.parent().and_then(Path::parent);
        let beside = beside.map(|above| above.join(&name));
        let places = beside.into_iter().chain([std::env::temp_dir().join(name)]);
        places.into_iter().find(|place| {
            // Made here, so that nothing of another user is in it.
            if refuse_unusable(place).is_err() || std::fs::create_dir(place).is_err() {
                return false;
            }
            let saved = self.save(place, header, why).is_ok();
            if !saved {
                let _ = std::fs::remove_dir_all(place);
            }
            saved
        })
    }

    fn save(&self, place: &Path, header: &Header, why: &Error) -> Result<(), Error> {
        let mut journal = Journal::create(place, header)?;
        for (record, parts) in &self.rounds {
            journal.point_of_ranks(parts, record)?;
        }
        journal.end(&RunEnd {
            how: HowEnded::Failed(why.what().to_string()),
            status: why.exit_status(),
        })
    }
}

/// Time since the soak's first round was due.
struct Timetable {
    clock: Clock,
    /// On real time: the time since boot at creation, and the age of the soak at that moment. The
    /// clock for measurements stops while the machine sleeps, but days go on.
    then: Option<(Nanos, Nanos)>,
}

impl Timetable {
    fn new(soak: &Soak, bench: Option<&Bench>) -> Self {
        let engine = bench
            .map(|bench| bench.engine.clock())
            .filter(Clock::is_virtual);
        if let Some(engine) = engine {
            // A model's time begins at zero: on resume, set it to when the next round is due.
            engine.wait_until(soak.request.due(soak.last + 1, soak.longest));
            return Self {
                clock: engine,
                then: None,
            };
        }
        Self {
            clock: Clock::real(),
            then: Some((clock::since_boot(), clock::gone_since(soak.began))),
        }
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

    /// The first round whose time has not passed.
    fn number_now(&self, soak: &Soak) -> u32 {
        soak.request.number_at(self.now())
    }

    /// Wall-clock time. For a model: the start of the soak plus the model's time.
    fn wall(&self, began: Moment) -> Moment {
        if self.is_virtual() {
            began.plus_seconds(i64::try_from(self.now().0 / 1_000_000_000).unwrap_or(i64::MAX))
        } else {
            clock::moment()
        }
    }

    /// Waits until a round is due. Returns false if the soak is stopped first.
    fn wait_for(&self, due: Nanos, stop: &AtomicBool, listen: &mut Listen) -> bool {
        while self.now() < due && !stop.load(Ordering::Relaxed) {
            let left = due.since(self.now());
            listen(Event::Waiting { left });
            let look = if self.is_virtual() {
                left
            } else {
                left.min(LOOK)
            };
            self.clock.wait_until(self.clock.now().plus(look));
        }
        !stop.load(Ordering::Relaxed)
    }
}
