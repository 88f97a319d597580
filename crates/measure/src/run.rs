//! Conducts a run: drives each point and writes its record to the journal.
//!
//! Input: a plan, and a [`Bench`] for each point. Output: the records of the points. Verbs follow
//! the progress through [`Event`]s. If several ranks measure together, this is rank 0.

pub mod agreement;
mod bench;
pub mod ranks;
pub mod soak;

pub use bench::{
    Bench, BenchRequest, Event, Listen, RunningRanks, ServerWatch, SlowestHost, SqlRequest,
};

use rigel_model::record::journal::Journal;
use rigel_model::record::ranks::RankLost;
use rigel_model::record::{End, HowEnded, PointRecord, RunEnd};
use rigel_model::{Coordinates, Error, Nanos, Point};
use rigel_ranks::{Loss, Ranks};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// The next step of a plan.
pub struct Next {
    /// Driven first, without a record.
    pub warming: Option<Point>,
    /// The point.
    pub point: Point,
    /// Points that begin at the same moment, each on a bench of its own; none if several ranks measure.
    pub beside: Vec<Point>,
}

/// A plan: returns the next step, given the points measured so far in order.
pub type NextPoint<'a> = dyn FnMut(&[PointRecord]) -> Option<Next> + 'a;

/// Drives the points that `plan` returns, each on the bench that `bench_of` returns for it, and
/// writes each to `journal` when it ends. `records` are the points of an earlier part of the run.
/// Ends early when `stop` is set: then the current point is the last. If `together` holds several
/// ranks, all of them measure each point, and this is rank 0. The journal's end line is written
/// here only if a rank was lost: else its status follows from the report.
///
/// # Errors
/// A session could not be opened, or the journal could not be written. Records written before that
/// are complete.
pub fn measure<'a>(
    bench_of: &dyn Fn(&Point) -> &'a Bench,
    together: Option<&Ranks>,
    journal: &mut Journal,
    mut records: Vec<PointRecord>,
    plan: &mut NextPoint,
    stop: &AtomicBool,
    listen: &mut Listen,
) -> Result<Vec<PointRecord>, Error> {
    let mut last = records.last().map(|last| last.coordinates);
    while !stop.load(Ordering::Relaxed)
        && let Some(next) = plan(&records)
    {
        let Next {
            warming,
            point,
            beside,
        } = &next;
        let bench = bench_of(point);
        // Of several ranks, each checks its own part, which its own target was prepared for.
        if together.is_none() {
            warming
                .iter()
                .chain([point])
                .try_for_each(|point| bench.check(point))?;
        }
        last = Some(point.coordinates);
        listen(Event::Begin { point });
        let mut parts = Vec::new();
        let measured = if let Some(ranks) = together {
            let measured = ranks::measure(bench, ranks, (point, warming.as_ref()), stop, listen);
            let measured =
                measured.inspect_err(|_| note_loss(ranks, point.coordinates, journal))?;
            let Some(measured) = measured else { continue };
            parts = measured.parts;
            vec![measured.merged]
        } else {
            if let Some(warming) = warming {
                bench.warm(warming, stop, listen)?;
            }
            let others = beside.iter().map(|point| (bench_of(point), point));
            at_once((bench, point), others, stop, listen)?
        };
        // A database that ended a session will most likely end the next one too, or is gone.
        let is_broken = |record: &PointRecord| matches!(record.end, End::Broken(_));
        let is_lost = bench.engine.server_monitor().is_some() && measured.iter().any(is_broken);
        for record in measured {
            // What broke is kept even without a figure: the run is not whole, and says why.
            if record.measured > Nanos(0) || is_broken(&record) {
                journal.point_of_ranks(&parts, &record)?;
                if together.is_some() {
                    listen(Event::Parts(&parts));
                }
                listen(Event::End(&record));
                records.push(record);
            }
        }
        if is_lost {
            break;
        }
    }
    if let Some(ranks) = together {
        let ended = if ranks.lost().is_empty() {
            ranks::over(ranks)
        } else {
            Err(ranks.loss_error())
        };
        // It was noticed between two points, or before the first.
        ended.inspect_err(|_| {
            let next = plan(&records).map(|next| next.point.coordinates);
            if let Some(coordinates) = next.or(last) {
                note_loss(ranks, coordinates, journal);
            }
        })?;
    }
    Ok(records)
}

/// Measures a point and others beside it, each on its own bench. Only the first is shown while it runs.
fn at_once<'a>(
    (bench, point): (&Bench, &Point),
    others: impl Iterator<Item = (&'a Bench, &'a Point)>,
    stop: &AtomicBool,
    listen: &mut Listen,
) -> Result<Vec<PointRecord>, Error> {
    std::thread::scope(|scope| {
        let measure_quietly = |(bench, point): (&'a Bench, &'a Point)| {
            scope.spawn(move || {
                let mut stalls = Vec::new();
                let mut hear = |event: Event| {
                    if let Event::Stall(stall) = event {
                        stalls.push(stall.clone());
                    }
                };
                let record = bench.measure_point(point, stop, &mut hear);
                (record, stalls)
            })
        };
        let others: Vec<_> = others.map(measure_quietly).collect();
        let mut records = vec![bench.measure_point(point, stop, listen)];
        for other in others {
            let (record, stalls) = other.join().expect("measuring does not panic");
            stalls.iter().for_each(|stall| listen(Event::Stall(stall)));
            records.push(record);
        }
        let mut records = records.into_iter().collect::<Result<Vec<_>, Error>>()?;
        forget_shared_devices(&mut records);
        Ok(records)
    })
}

/// Removes the counters of the devices that several of these points used at the same time: they would
/// say of each that others used its disk.
fn forget_shared_devices(records: &mut [PointRecord]) {
    let used = |record: &PointRecord| -> BTreeSet<String> {
        let samples = record.samples.iter();
        samples
            .flat_map(|sample| sample.devices.keys().cloned())
            .collect()
    };
    let mut users = BTreeMap::new();
    for name in records.iter().flat_map(used) {
        *users.entry(name).or_insert(0) += 1;
    }
    for sample in records.iter_mut().flat_map(|record| &mut record.samples) {
        sample.devices.retain(|name, _| users[name] == 1);
    }
}

/// The exit status of a run that lost a rank.
pub const LOST_STATUS: u8 = 6;

/// Writes which ranks were lost, if that is why a point failed. What cannot be written is not
/// reported: the loss itself is.
fn note_loss(ranks: &Ranks, coordinates: Coordinates, journal: &mut Journal) {
    if ranks.lost().is_empty() {
        return;
    }
    let line = |loss: &Loss| RankLost {
        rank: u32::try_from(loss.rank).unwrap_or(u32::MAX),
        host: ranks
            .members()
            .get(loss.rank)
            .map_or_else(String::new, |member| member.host.clone()),
        coordinates,
        how: loss.how.clone(),
    };
    let end = RunEnd {
        how: HowEnded::Failed(ranks.loss_error().what().to_string()),
        status: LOST_STATUS,
    };
    let mut lines = ranks.lost().iter().map(line);
    let _ = lines
        .try_for_each(|line| journal.lost(&line))
        .and_then(|()| journal.end(&end));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::examples::sessions;
    use rigel_model::{Counters, Ratio};

    #[test]
    fn a_disk_that_two_points_used_at_once_counts_for_neither() {
        let record = |devices: [&str; 2]| {
            let mut record = sessions(Ratio::ZERO);
            for sample in &mut record.samples {
                let counted = devices.map(|name| (name.to_string(), Counters::default()));
                sample.devices = counted.into();
            }
            record
        };
        let mut records = [record(["sda", "sdb"]), record(["sdb", "sdc"])];
        forget_shared_devices(&mut records);
        let left = records.map(|record| {
            let last = record.samples.last().expect("the record has samples");
            last.devices.keys().cloned().collect::<Vec<_>>()
        });
        assert_eq!(left, [["sda"], ["sdc"]]);
    }
}
