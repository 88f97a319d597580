//! Joins the visits to a point to one record.
//!
//! A search spends a point's time in several visits, spread over the run, so that a slow change of
//! the storage is seen in every figure (randomised multiple interleaved trials: Abedi and Brecht,
//! ICPE 2017). The journal has a record of each visit. Analysis is over their join: the windows of
//! all visits, one after the other.

use super::merge::RankMerge;
use super::recording::{End, Latencies, PointRecord, StreamRecord, Window};
use super::verified::Verified;
use crate::{Coordinates, Kind, Nanos};
use std::collections::HashMap;

/// One record for each point, in the order of their first visits. A visit that was cut short counts
/// only if there is no complete one; then the last counts.
pub fn joined(records: &[PointRecord]) -> Vec<PointRecord> {
    let mut order: Vec<Coordinates> = Vec::new();
    let mut visits: HashMap<Coordinates, Vec<&PointRecord>> = HashMap::new();
    for record in records {
        let of_point = visits.entry(record.coordinates).or_insert_with(|| {
            order.push(record.coordinates);
            Vec::new()
        });
        of_point.push(record);
    }
    order
        .iter()
        .filter_map(|coordinates| of_one_point(&visits[coordinates]))
        .collect()
}

/// The record of one point, as in [`joined`]; `None` if it has no visits.
pub fn joined_at(records: &[PointRecord], coordinates: Coordinates) -> Option<PointRecord> {
    let is_here = |record: &&PointRecord| record.coordinates == coordinates;
    of_one_point(&records.iter().filter(is_here).collect::<Vec<_>>())
}

/// The join of the complete visits to a point, or else its last visit.
fn of_one_point(visits: &[&PointRecord]) -> Option<PointRecord> {
    let is_complete = |record: &&PointRecord| record.end == End::Complete;
    let complete: Vec<&PointRecord> = visits.iter().copied().filter(is_complete).collect();
    let left: Vec<_> = complete
        .iter()
        .filter_map(|visit| visit.outside_suspensions())
        .collect();
    if left.is_empty() {
        return Some((*complete.last().or(visits.last())?).clone());
    }
    let left: Vec<&PointRecord> = left.iter().map(|visit| &**visit).collect();
    let mut joined = join(&left)?;
    let suspended = complete.iter().flat_map(|visit| &visit.suspended);
    joined.suspended = suspended.copied().collect();
    // A visit of which no window is left counts as left out.
    let gone = complete.len() > left.len();
    if gone && joined.left_out == Nanos(0) {
        joined.left_out = joined.window;
    }
    Some(joined)
}

/// The join of these visits to one point; of visits that cannot be joined, the last.
fn join(visits: &[&PointRecord]) -> Option<PointRecord> {
    let (last, first) = (*visits.last()?, *visits.first()?);
    let fits = |visit: &&PointRecord| {
        visit.window == first.window
            && visit.window > Nanos(0)
            && visit.measured.0.is_multiple_of(visit.window.0)
            && visit.streams.len() == first.streams.len()
    };
    if visits.len() < 2 || !visits.iter().all(fits) {
        return Some(last.clone());
    }
    let streams = (0..first.streams.len())
        .map(|at| join_streams(visits, at))
        .collect();
    // A damaged journal may have any numbers.
    let sum = |of: fn(&PointRecord) -> Nanos| {
        visits
            .iter()
            .fold(Nanos(0), |sum, visit| sum.plus(of(visit)))
    };
    let mut samples = Vec::new();
    let mut offset = Nanos(0);
    for visit in visits {
        // The next visit's first sample has the time of this one's last, so that no rate is taken
        // over what happened in between.
        let begin = visit.samples.first().map_or(Nanos(0), |sample| sample.at);
        let shifted = visit.samples.iter().cloned().map(|mut sample| {
            sample.at = offset.plus(sample.at.since(begin));
            sample
        });
        samples.extend(shifted);
        offset = samples.last().map_or(offset, |sample| sample.at);
    }
    Some(PointRecord {
        coordinates: first.coordinates,
        started: first.started.clone(),
        began: first.began,
        warm_up: sum(|visit| visit.warm_up),
        measured: sum(|visit| visit.measured),
        end: End::Complete,
        cpu: sum(|visit| visit.cpu),
        cpus: visits.iter().map(|visit| visit.cpus).max().unwrap_or(0),
        window: first.window,
        asked: first.asked.clone(),
        streams,
        samples,
        merge: RankMerge::of_visits(visits.iter().filter_map(|visit| visit.merge.as_ref())),
        verified: Verified::sum(visits.iter().map(|visit| visit.verified.as_ref())),
        syncs: Latencies::of_parts(visits.iter().map(|visit| visit.syncs.as_ref())),
        visits: visits.iter().map(|visit| (*visit).clone()).collect(),
        silences: Vec::new(),
        suspended: Vec::new(),
        left_out: sum(|visit| visit.left_out),
    })
}

/// Stream number `at` of all visits: their windows one after the other.
fn join_streams(visits: &[&PointRecord], at: usize) -> StreamRecord {
    let mut joined = visits[0].streams[at].clone();
    let windows_of = |kind: Kind| {
        visits.iter().flat_map(move |visit| {
            let record = visit.streams[at].kinds.iter().find(|one| one.kind == kind);
            let windows = record.map_or(&[][..], |record| &record.windows);
            (0..visit.whole_windows()).map(|at| windows.get(at).cloned().unwrap_or_default())
        })
    };
    for record in &mut joined.kinds {
        record.windows = windows_of(record.kind).collect::<Vec<Window>>();
    }
    if visits
        .iter()
        .any(|visit| !visit.streams[at].unserved.is_empty())
    {
        let unserved = visits.iter().flat_map(|visit| {
            let counts = &visit.streams[at].unserved;
            (0..visit.whole_windows()).map(|at| counts.get(at).copied().unwrap_or(0))
        });
        joined.unserved = unserved.collect();
    }
    for visit in &visits[1..] {
        let stream = &visit.streams[at];
        joined.drained = joined.drained.saturating_add(stream.drained);
        if let Some(censored) = &stream.censored {
            joined
                .censored
                .get_or_insert_with(Latencies::default)
                .merge(censored);
        }
        joined.warm_up_done = joined.warm_up_done.saturating_add(stream.warm_up_done);
        if let Some(delay) = &stream.delay {
            joined
                .delay
                .get_or_insert_with(Latencies::default)
                .merge(delay);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Coverage, KindRecord};

    /// A visit of two windows with these counts.
    fn visit(depth: u32, counts: [u64; 2], end: End) -> PointRecord {
        let window = |done| Window {
            done,
            ..Window::default()
        };
        let kinds = vec![KindRecord {
            kind: Kind::Read,
            windows: counts.map(window).to_vec(),
        }];
        let stream = StreamRecord {
            name: "small".into(),
            length: 8192,
            loads: Vec::new(),
            patterns: Vec::new(),
            sql: None,
            kinds,
            unserved: Vec::new(),
            drained: 0,
            censored: None,
            delay: None,
            warm_up_done: 1,
            coverage: Coverage::default(),
        };
        let sample = |at| crate::Sample {
            at: Nanos::from_secs(at),
            ..Default::default()
        };
        PointRecord {
            coordinates: Coordinates::at_depth(depth),
            started: counts[0].to_string(),
            began: Nanos(0),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(2),
            end,
            cpu: Nanos(5),
            cpus: 1,
            window: Nanos::from_secs(1),
            asked: None,
            streams: vec![stream],
            samples: vec![sample(3), sample(5)],
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: Vec::new(),
            left_out: Nanos(0),
        }
    }

    fn counts(record: &PointRecord) -> Vec<u64> {
        record.streams[0].kinds[0]
            .windows
            .iter()
            .map(|window| window.done)
            .collect()
    }

    #[test]
    fn visits_become_one_record_with_all_their_windows() {
        let complete = || End::Complete;
        let records = [
            visit(1, [1, 2], complete()),
            visit(8, [10, 20], complete()),
            visit(1, [3, 4], complete()),
            visit(1, [5, 6], End::Stopped),
        ];
        let joined = joined(&records);
        assert_eq!(joined.len(), 2);
        assert_eq!(counts(&joined[0]), [1, 2, 3, 4]);
        assert_eq!(
            (joined[0].measured, joined[0].cpu),
            (Nanos::from_secs(4), Nanos(10))
        );
        assert_eq!(
            (joined[0].visits.len(), joined[0].streams[0].warm_up_done),
            (2, 2)
        );
        // Between the visits no time passes.
        let at: Vec<u64> = joined[0]
            .samples
            .iter()
            .map(|sample| sample.at.0 / 1_000_000_000)
            .collect();
        assert_eq!(at, [0, 2, 2, 4]);
        assert_eq!(
            (joined[1].clone(), joined[1].visits.len()),
            (records[1].clone(), 0)
        );
    }

    #[test]
    fn visits_of_a_damaged_journal_are_joined_whatever_their_numbers() {
        let mut damaged = visit(1, [1, 2], End::Complete);
        damaged.cpu = Nanos(u64::MAX);
        damaged.warm_up = Nanos(u64::MAX);
        damaged.streams[0].warm_up_done = u64::MAX;
        damaged.samples[1].at = Nanos(u64::MAX);
        let joined = joined(&[damaged.clone(), damaged]);
        assert_eq!(
            (joined[0].cpu, joined[0].streams[0].warm_up_done),
            (Nanos(u64::MAX), u64::MAX)
        );
    }

    #[test]
    fn only_the_last_of_attempts_that_were_cut_short_counts() {
        let records = [
            visit(1, [1, 2], End::Stopped),
            visit(1, [3, 4], End::Stopped),
        ];
        assert_eq!(joined(&records), [records[1].clone()]);
    }
}
