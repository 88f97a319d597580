//! The points of a run with ranks by load: several visits or rounds of one load together.

use rigel_model::record::journal::Run;
use rigel_model::record::{PointRecord, RankedPoint, StreamRecord, visits};
use rigel_model::{ActiveRanks, Coordinates, Step};
use std::collections::BTreeMap;

/// The points of a run, and the records of its ranks behind each of them.
pub(super) struct RankLoads<'a> {
    run: &'a Run,
}

/// The load of a point: its coordinates without the number of a round.
pub(super) fn load_of(coordinates: Coordinates) -> Coordinates {
    match coordinates {
        Coordinates::Hosts {
            active,
            depth,
            rate_per_s,
            ..
        } => Coordinates::Hosts {
            active,
            depth,
            rate_per_s,
            round: 0,
        },
        Coordinates::Neighbours {
            rank,
            rate_per_s,
            in_flight_max,
            depth,
            ..
        } => Coordinates::Neighbours {
            rank,
            rate_per_s,
            in_flight_max,
            depth,
            round: 0,
        },
        Coordinates::Round { outstanding, .. } => Coordinates::Round {
            round: 0,
            outstanding,
        },
        other => other,
    }
}

impl<'a> RankLoads<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        Self { run }
    }

    /// The coordinates of all points that ranks measured, in order, each visit on its own.
    pub(super) fn coordinates(&self) -> impl Iterator<Item = Coordinates> + Clone + use<'a> {
        self.run
            .ranks
            .parts
            .iter()
            .filter_map(|point| Some(point.parts.first()?.record.coordinates))
    }

    /// The loads that all ranks measured together, each the same, in order of their first visits.
    pub(super) fn all(&self) -> Vec<Coordinates> {
        let mut loads = Vec::new();
        for load in self.coordinates().map(load_of) {
            let is_of_all =
                load.active_ranks() == ActiveRanks::All && load.step() != Step::Neighbours;
            if is_of_all && !loads.contains(&load) {
                loads.push(load);
            }
        }
        loads
    }

    fn at(&self, load: Coordinates) -> impl Iterator<Item = &'a RankedPoint> {
        let points = self.run.ranks.parts.iter();
        points.filter(move |point| {
            let first = point.parts.first();
            first.is_some_and(|part| load_of(part.record.coordinates) == load)
        })
    }

    /// The merged records at this load, with the load's coordinates.
    pub(super) fn merged(&self, load: Coordinates) -> Vec<PointRecord> {
        let records = self
            .at(load)
            .filter_map(|point| self.run.points.get(point.at));
        records
            .map(|record| PointRecord {
                coordinates: load,
                ..record.clone()
            })
            .collect()
    }

    /// Each rank's record at this load, all visits together.
    pub(super) fn parts(&self, load: Coordinates) -> Vec<(u32, PointRecord)> {
        let mut by_rank: BTreeMap<u32, Vec<PointRecord>> = BTreeMap::new();
        for part in self.at(load).flat_map(|point| &point.parts) {
            let record = PointRecord {
                coordinates: load,
                ..part.record.clone()
            };
            by_rank.entry(part.rank).or_default().push(record);
        }
        by_rank
            .into_iter()
            .filter_map(|(rank, records)| Some((rank, visits::joined_at(&records, load)?)))
            .collect()
    }

    /// The load at which hosts are compared: all together in rounds, else the closing measurement,
    /// else the load of small I/O with the most operations per second; of a fit, the demand as it is,
    /// or the first multiple.
    pub(super) fn representative(&self) -> Option<Coordinates> {
        let all = self.all();
        let of = |wanted: Step| all.iter().copied().find(|load| load.step() == wanted);
        of(Step::Hosts).or_else(|| of(Step::Closing)).or_else(|| {
            let small = all.iter().copied().filter(|load| {
                matches!(
                    load.step(),
                    Step::Depth | Step::Cell | Step::Rate | Step::Round
                )
            });
            small
                .max_by(|one, other| self.rate(*one).total_cmp(&self.rate(*other)))
                .or_else(|| of(Step::Multiple))
        })
    }

    /// Operations per second of the first class, all visits together.
    fn rate(&self, load: Coordinates) -> f64 {
        let records = self
            .at(load)
            .filter_map(|point| self.run.points.get(point.at));
        let (done, seconds) = records.fold((0.0, 0.0), |(done, seconds), record| {
            let stream = record.streams.first().map_or(0, StreamRecord::done);
            (
                done + stream as f64,
                seconds + record.measured.as_secs_f64(),
            )
        });
        if seconds > 0.0 { done / seconds } else { 0.0 }
    }
}
