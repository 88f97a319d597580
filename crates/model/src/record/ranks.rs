//! Ranks: one run on several hosts at once, and the sum of what they measured.
//!
//! Input: the record of one point from each rank, with the offset of its clock to the clock of rank
//! 0. Output: one [`PointRecord`] over the time in which all of them measured, with the counts and
//! histograms of all ranks added window by window. A mean of percentiles is never formed. The
//! journal has a line for each rank and point, and then the line of the merged point, which every
//! analysis of a single host reads as it is.

use super::coverage::Coverage;
use super::merge::RankMerge;
use super::recording::{End, KindRecord, Latencies, PointRecord, StreamRecord, Window};
use super::verified::Verified;
use super::visits;
use crate::text::read_in_line;
use crate::{Coordinates, Host, Nanos, Stream, TargetFacts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a window that may remain between the ranks' windows before their sum is doubtful:
/// 100 ms of a second.
pub const SKEW_DOUBTFUL: f64 = 0.1;

/// The skew above which no sum is formed. Windows of half a second and less cannot be so far apart
/// after they were shifted by whole windows.
pub const SKEW_MAX: Nanos = Nanos::from_millis(500);

/// The ranks of a run, in its journal's header.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankGroup {
    /// True if each host has storage of its own (`--separate`): then figures stand side by side,
    /// and their sum is not the rate of one storage.
    #[serde(default)]
    pub separate: bool,
    /// True if all ranks write to one region (`--same-blocks`), and not each to its own part.
    #[serde(default)]
    pub same_blocks: bool,
    /// By rank, from 0.
    pub members: Vec<RankFacts>,
}

impl RankGroup {
    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Number of hosts: of different kernels, by their boot ids.
    pub fn hosts(&self) -> usize {
        let mut boots: Vec<&str> = self
            .members
            .iter()
            .map(|one| one.boot_id.as_str())
            .collect();
        boots.sort_unstable();
        boots.dedup();
        boots.len()
    }

    /// The facts of `rank`.
    pub fn member(&self, rank: u32) -> Option<&RankFacts> {
        self.members.iter().find(|one| one.rank == rank)
    }

    /// What reports call `rank`: its host's name; with `:` and the rank's number if several ranks
    /// have this name.
    pub fn label(&self, rank: u32) -> String {
        let Some(facts) = self.member(rank) else {
            return format!("rank {rank}");
        };
        let name = &facts.host.name;
        let is_shared = self
            .members
            .iter()
            .filter(|one| one.host.name == *name)
            .count()
            > 1;
        if is_shared {
            format!("{name}:{rank}")
        } else {
            name.clone()
        }
    }
}

/// What is known about one rank and the host it runs on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankFacts {
    /// Its number, from 0.
    pub rank: u32,
    /// Identifies the running kernel: ranks of one host have the same.
    pub boot_id: String,
    /// The machine.
    pub host: Host,
    /// The target as this rank sees it, with the settings of its devices.
    pub facts: TargetFacts,
    /// What proves that all ranks mean the same target.
    pub identity: TargetIdentity,
    /// CPUs the rank may run on, as a list: `0-3,8`.
    pub cpu_mask: String,
    /// Its clock at the beginning of the run.
    pub clock: RankClock,
    /// Its wall clock less that of rank 0, in nanoseconds. No figure depends on it.
    pub wall_clock_ahead_ns: i64,
    /// Largest packet of the network interface that leads to rank 0, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Number of paths to the target's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<u32>,
}

/// What identifies a target from every host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetIdentity {
    /// World-wide name or serial number of a device, the UUID of a filesystem, or server and path
    /// of a network filesystem; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Digest of sampled blocks of a device; `None` for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A rank's monotonic clock against that of rank 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RankClock {
    /// Reading of the rank's clock less the reading of rank 0's at the same moment, in nanoseconds.
    pub ahead_ns: i64,
    /// The true difference is within this of `ahead_ns`.
    pub bound: Nanos,
    /// Change of the difference in parts per million of time; 0 if it was measured only once.
    #[serde(default)]
    pub drift_ppm: f64,
    /// False if the two ways to measure the difference, exchanges and barriers, contradict each
    /// other.
    #[serde(default = "agreed")]
    pub agreed: bool,
}

fn agreed() -> bool {
    true
}

/// What one rank measured of one point: a line of the journal, before that of the merged point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// The rank.
    pub rank: u32,
    /// Its clock at the beginning of the measurement.
    pub clock: RankClock,
    /// Its own clock's reading when it began to measure, after its warm-up.
    pub began: Nanos,
    /// What it measured.
    pub record: PointRecord,
}

/// A rank that was lost, which ends the run: a line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RankLost {
    /// The rank.
    pub rank: u32,
    /// The name of its host.
    #[serde(deserialize_with = "read_in_line")]
    pub host: String,
    /// The point that was measured, or was to be measured next.
    pub coordinates: Coordinates,
    /// How it was noticed, such as `no beat for 10 s`.
    #[serde(deserialize_with = "read_in_line")]
    pub how: String,
}

/// All lines of ranks in a journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankLines {
    /// The records behind each merged point, in the order of the points.
    pub parts: Vec<RankedPoint>,
    /// The ranks that were lost.
    pub lost: Vec<RankLost>,
    /// Records whose merged point has not come.
    pending: Vec<RankRecord>,
}

/// What each rank measured of one merged point.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedPoint {
    /// Position of the merged point among the points of the journal.
    pub at: usize,
    /// By rank.
    pub parts: Vec<RankRecord>,
}

impl RankLines {
    /// Takes the line of one rank and point.
    pub fn record(&mut self, record: RankRecord) {
        // A run that was killed between the lines of one point measures it again.
        let is_again = |other: &RankRecord| {
            other.rank == record.rank || other.record.coordinates != record.record.coordinates
        };
        if self.pending.iter().any(is_again) {
            self.pending.clear();
        }
        self.pending.push(record);
    }

    /// What the lines before that of `point` have of it, by rank: its parts, if it is merged.
    pub fn parts_of(&mut self, point: &PointRecord) -> Vec<RankRecord> {
        let mut parts = std::mem::take(&mut self.pending);
        parts.retain(|part| part.record.coordinates == point.coordinates);
        if point.merge.is_none() {
            return Vec::new();
        }
        parts.sort_by_key(|part| part.rank);
        parts
    }

    /// Takes the line of point number `at`, from 0: if it is merged, the lines before it are its
    /// parts.
    pub fn point(&mut self, at: usize, point: &PointRecord) {
        let parts = self.parts_of(point);
        if !parts.is_empty() {
            self.parts.push(RankedPoint { at, parts });
        }
    }
}

impl RankLines {
    /// Each rank's record of one point, all visits joined.
    pub fn of_each_rank(&self, coordinates: Coordinates) -> Vec<(u32, PointRecord)> {
        let parts = self.parts.iter().flat_map(|point| &point.parts);
        let mut by_rank: BTreeMap<u32, Vec<PointRecord>> = BTreeMap::new();
        for part in parts.filter(|part| part.record.coordinates == coordinates) {
            by_rank
                .entry(part.rank)
                .or_default()
                .push(part.record.clone());
        }
        let joined = |(rank, records): (u32, Vec<PointRecord>)| {
            Some((rank, visits::joined_at(&records, coordinates)?))
        };
        by_rank.into_iter().filter_map(joined).collect()
    }
}

/// Merges what ranks measured of one point into one record, over the time in which all of them
/// measured. `None` if there are no parts. `started` is rank 0's wall clock at the beginning.
///
/// The beginnings are compared on rank 0's clock. If they lie within a small part of a window,
/// windows of the same number are added. Else the windows of early ranks are shifted by whole
/// windows, so that as little skew as possible remains; windows at the edges are left out. If more than
/// [`SKEW_MAX`] remains there is no sum: the record is [`End::Broken`] and has no windows.
///
/// The record has no samples and no coverage: counters and blocks are each host's own, in its part.
/// Of a database it has the number of rows that were asked for, since the servers count for all.
pub fn merged(started: String, parts: &[RankRecord]) -> Option<PointRecord> {
    let mut parts: Vec<&RankRecord> = parts.iter().collect();
    parts.sort_by_key(|part| part.rank);
    let first = parts.first()?;
    let window = Nanos(first.record.window.0.max(1));
    let place = Place::of(&parts, window);
    let refusal = refusal(&parts, &place.merge);
    let windows = if refusal.is_some() { 0 } else { place.windows };
    let streams = class_names(&parts).into_iter();
    let streams = streams.map(|name| merged_stream(name, &parts, &place, windows));
    let sum = |of: fn(&PointRecord) -> u64| {
        let values = parts.iter().map(|part| of(&part.record));
        values.fold(0, u64::saturating_add)
    };
    let warm_up = parts.iter().map(|part| part.record.warm_up).max();
    Some(PointRecord {
        coordinates: first.record.coordinates,
        started,
        began: Nanos(0),
        warm_up: warm_up.unwrap_or_default(),
        measured: if refusal.is_some() {
            Nanos(0)
        } else {
            place.measured
        },
        end: refusal.map_or_else(|| worst_end(&parts), End::Broken),
        cpu: Nanos(sum(|record| record.cpu.0)),
        cpus: u32::try_from(sum(|record| record.cpus.into())).unwrap_or(u32::MAX),
        window,
        asked: first.record.asked.clone(),
        streams: streams.collect(),
        samples: Vec::new(),
        merge: Some(place.merge.clone()),
        verified: Verified::sum(parts.iter().map(|part| part.record.verified.as_ref())),
        syncs: Latencies::of_parts(parts.iter().map(|part| part.record.syncs.as_ref())),
        visits: Vec::new(),
        silences: Vec::new(),
        suspended: parts
            .iter()
            .flat_map(|part| part.record.suspended.clone())
            .collect(),
        left_out: Nanos(0),
    })
}

/// The classes of all parts. A rank may lack a class of which it was asked for nothing.
fn class_names<'a>(parts: &[&'a RankRecord]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for stream in parts.iter().flat_map(|part| &part.record.streams) {
        if !names.contains(&stream.name.as_str()) {
            names.push(&stream.name);
        }
    }
    names
}

/// The classes that a part must have: those of its point, or else those of the first part.
fn wanted_names<'a>(part: &'a RankRecord, first: &'a PointRecord) -> Vec<&'a str> {
    let asked = part.record.asked.as_ref().filter(|asked| {
        let mut streams = asked.streams.iter();
        streams.any(|stream| stream.rank.is_some())
    });
    let Some(asked) = asked else {
        return first.streams.iter().map(|it| it.name.as_str()).collect();
    };
    let is_own = |stream: &&Stream| asked.is_of_rank(stream, part.rank);
    let own = asked.streams.iter().filter(is_own);
    own.map(|stream| stream.name.as_str()).collect()
}

/// Why no sum can be given, if so.
fn refusal(parts: &[&RankRecord], merge: &RankMerge) -> Option<String> {
    let first = &parts.first()?.record;
    let differs = |part: &&&RankRecord| {
        let names = part.record.streams.iter().map(|it| it.name.as_str());
        part.record.window != first.window || !names.eq(wanted_names(part, first))
    };
    if let Some(other) = parts.iter().find(differs) {
        return Some(format!(
            "ranks {} and {} measured different points",
            parts[0].rank, other.rank
        ));
    }
    (merge.is_common && merge.skew_left > SKEW_MAX).then(|| {
        format!(
            "the ranks began {} apart, which no shift by whole windows mends: no sum is given",
            merge.skew
        )
    })
}

/// Broken if a rank's point broke, else stopped if one was stopped.
fn worst_end(parts: &[&RankRecord]) -> End {
    let broken = parts.iter().find_map(|part| match &part.record.end {
        End::Broken(why) => Some(End::Broken(format!("rank {}: {why}", part.rank))),
        End::Complete | End::Stopped => None,
    });
    let is_stopped = parts.iter().any(|part| part.record.end == End::Stopped);
    broken.unwrap_or(if is_stopped {
        End::Stopped
    } else {
        End::Complete
    })
}

/// Where the windows of each rank lie in those of the merged record.
struct Place {
    /// By part: its windows that lie before the first common one.
    skipped: Vec<usize>,
    /// Number of windows of the merged record.
    windows: usize,
    measured: Nanos,
    merge: RankMerge,
}

impl Place {
    fn of(parts: &[&RankRecord], window: Nanos) -> Self {
        // On the clock of rank 0, which may have begun after another host's.
        let began: Vec<i128> = parts
            .iter()
            .map(|part| i128::from(part.began.0) - i128::from(part.clock.ahead_ns))
            .collect();
        let (skipped, left) = shifts(&began, i128::from(window.0));
        let whole = parts
            .iter()
            .zip(&skipped)
            .map(|(part, skipped)| part.record.whole_windows().saturating_sub(*skipped));
        let common = whole.clone().min().unwrap_or(0);
        let first = began.iter().copied().min().unwrap_or(0);
        let last = began.iter().copied().max().unwrap_or(0);
        let ends = parts.iter().zip(&began);
        let end = ends.map(|(part, began)| began + i128::from(part.record.measured.0));
        let all = nanos(end.max().unwrap_or(0) - first);
        let is_common = common > 0;
        let lengths = parts.iter().flat_map(|part| &part.record.streams);
        let lengths = lengths.flat_map(|stream| {
            let kinds = stream.kinds.iter().map(|kind| kind.windows.len());
            kinds.chain([stream.unserved.len()])
        });
        let dropped = parts.iter().map(|part| part.record.whole_windows() as u64);
        let dropped = dropped.fold(0u64, u64::saturating_add);
        let merge = RankMerge {
            ranks: parts.iter().map(|part| part.rank).collect(),
            skew: nanos(last - first),
            skew_left: nanos(if is_common { left } else { last - first }),
            windows_dropped: if is_common {
                dropped.saturating_sub(common as u64 * parts.len() as u64)
            } else {
                0
            },
            clock_bound: parts
                .iter()
                .map(|part| part.clock.bound)
                .max()
                .unwrap_or_default(),
            is_common,
        };
        if is_common {
            let measured = Nanos(window.0.saturating_mul(common as u64));
            Self {
                skipped,
                windows: common,
                measured,
                merge,
            }
        } else {
            let skipped = vec![0; parts.len()];
            Self {
                skipped,
                windows: lengths.max().unwrap_or(0),
                measured: all,
                merge,
            }
        }
    }
}

/// How many windows each rank skips so that all begin as close together as possible, and the time
/// that remains between them. Beginnings are seen as hands on the dial of one window: the largest gap between two hands
/// is where the common windows begin.
fn shifts(began: &[i128], window: i128) -> (Vec<usize>, i128) {
    let mut hands: Vec<i128> = began.iter().map(|at| at.rem_euclid(window)).collect();
    hands.sort_unstable();
    let Some((&least, &most)) = hands.first().zip(hands.last()) else {
        return (Vec::new(), 0);
    };
    // The gap over the top of the dial, then those between neighbours.
    let (mut gap, mut origin) = (least + window - most, least);
    for pair in hands.windows(2) {
        if pair[1] - pair[0] > gap {
            (gap, origin) = (pair[1] - pair[0], pair[1]);
        }
    }
    let turns: Vec<i128> = began
        .iter()
        .map(|at| (at - origin).div_euclid(window))
        .collect();
    let latest = turns.iter().copied().max().unwrap_or(0);
    let skipped = turns
        .iter()
        .map(|turn| usize::try_from(latest - turn).unwrap_or(usize::MAX));
    (skipped.collect(), window - gap)
}

fn nanos(value: i128) -> Nanos {
    Nanos(u64::try_from(value.max(0)).unwrap_or(u64::MAX))
}

/// Adds the rows that sessions asked for, slice by slice: their servers count the same rows for all
/// ranks together.
fn add_slices(sum: &mut Vec<u64>, slices: &[u64]) {
    sum.resize(sum.len().max(slices.len()), 0);
    let pairs = sum.iter_mut().zip(slices);
    pairs.for_each(|(sum, count)| *sum = sum.saturating_add(*count));
}

/// Bytes of an operation of this class: if the ranks' operations differ, their mean, so that bytes
/// per second are right.
fn length(of_ranks: &[&StreamRecord]) -> u32 {
    let Some(first) = of_ranks.first() else {
        return 0;
    };
    if of_ranks.iter().all(|one| one.length == first.length) {
        return first.length;
    }
    let sum = |of: fn(&StreamRecord) -> u128| of_ranks.iter().map(|one| of(one)).sum::<u128>();
    let done = sum(|one| one.done().into());
    let bytes = sum(|one| u128::from(one.done()) * u128::from(one.length));
    bytes
        .checked_div(done)
        .map_or(first.length, |mean| u32::try_from(mean).unwrap_or(u32::MAX))
}

/// The class `name` of all parts that have it: `kept` windows, in each part after those that it
/// skips.
fn merged_stream(name: &str, parts: &[&RankRecord], place: &Place, kept: usize) -> StreamRecord {
    let of_rank = || {
        let skipped = place.skipped.iter().copied();
        parts
            .iter()
            .zip(skipped)
            .filter_map(|(part, skipped)| Some((part.record.stream(name)?, skipped)))
    };
    let mut sum = StreamRecord {
        name: name.to_string(),
        length: length(&of_rank().map(|(stream, _)| stream).collect::<Vec<_>>()),
        loads: of_rank()
            .flat_map(|(stream, _)| stream.loads.clone())
            .collect(),
        patterns: of_rank()
            .flat_map(|(stream, _)| stream.patterns.clone())
            .collect(),
        sql: of_rank().find_map(|(stream, _)| stream.sql),
        kinds: Vec::new(),
        unserved: Vec::new(),
        drained: 0,
        censored: None,
        delay: None,
        warm_up_done: 0,
        coverage: Coverage::default(),
    };
    for (stream, skipped) in of_rank() {
        for theirs in &stream.kinds {
            let index = sum.kinds.iter().position(|kind| kind.kind == theirs.kind);
            let index = index.unwrap_or_else(|| {
                let windows = vec![Window::default(); kept];
                sum.kinds.push(KindRecord {
                    kind: theirs.kind,
                    windows,
                });
                sum.kinds.len() - 1
            });
            let windows = theirs.windows.iter().skip(skipped);
            let ours = sum.kinds[index].windows.iter_mut();
            ours.zip(windows)
                .for_each(|(ours, theirs)| ours.merge(theirs));
        }
        if !stream.unserved.is_empty() {
            sum.unserved.resize(kept, 0);
            let theirs = stream.unserved.iter().skip(skipped);
            let ours = sum.unserved.iter_mut();
            ours.zip(theirs)
                .for_each(|(ours, theirs)| *ours = ours.saturating_add(*theirs));
        }
        // What was drained was due in a part's last windows.
        if skipped + kept
            >= stream
                .kinds
                .iter()
                .map(|kind| kind.windows.len())
                .max()
                .unwrap_or(0)
        {
            sum.drained = sum.drained.saturating_add(stream.drained);
        }
        if let Some(delay) = &stream.delay {
            sum.delay
                .get_or_insert_with(Latencies::default)
                .merge(delay);
        }
        sum.warm_up_done = sum.warm_up_done.saturating_add(stream.warm_up_done);
        if sum.sql.is_some() {
            add_slices(&mut sum.coverage.slices, &stream.coverage.slices);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Load, Pattern};
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// A rank whose windows of a second have these counts, each operation taking the time that is
    /// the rank's number in milliseconds; it began at `began` on its own clock, which is `ahead` of
    /// that of rank 0.
    fn part(rank: u32, counts: &[u64], began: u64, ahead_ns: i64) -> RankRecord {
        let window = |done: &u64| {
            let mut window = Window {
                done: *done,
                ..Window::default()
            };
            for _ in 0..*done {
                let time = u64::from(rank + 1) * 1_000_000;
                window.response.histogram.record(time);
                window.response.sum += time;
                window.response.min = window.response.min.min(time);
                window.response.max = window.response.max.max(time);
            }
            window
        };
        let kinds = vec![KindRecord {
            kind: Kind::Read,
            windows: counts.iter().map(window).collect(),
        }];
        let stream = StreamRecord {
            name: "small".into(),
            length: 8192,
            loads: vec![Load::Closed { depth: 4 }],
            patterns: vec![Pattern::Uniform],
            sql: None,
            kinds,
            unserved: Vec::new(),
            drained: 1,
            censored: None,
            delay: None,
            warm_up_done: 5,
            coverage: Coverage {
                extent: 100,
                tracked: 100,
                ..Coverage::default()
            },
        };
        RankRecord {
            rank,
            clock: RankClock {
                ahead_ns,
                bound: Nanos(20_000 + u64::from(rank)),
                drift_ppm: 0.0,
                agreed: true,
            },
            began: Nanos(began),
            record: PointRecord {
                coordinates: Coordinates::at_depth(4),
                started: String::new(),
                began: Nanos(0),
                warm_up: Nanos(u64::from(rank)),
                measured: Nanos(counts.len() as u64 * SECOND),
                end: End::Complete,
                cpu: Nanos(100),
                cpus: 2,
                window: Nanos(SECOND),
                asked: None,
                streams: vec![stream],
                samples: vec![crate::Sample::default()],
                merge: None,
                verified: None,
                syncs: None,
                visits: Vec::new(),
                silences: Vec::new(),
                suspended: Vec::new(),
                left_out: Nanos(0),
            },
        }
    }

    fn counts(record: &PointRecord) -> Vec<u64> {
        record.streams[0].kinds[0]
            .windows
            .iter()
            .map(|window| window.done)
            .collect()
    }

    fn sum_of(parts: &[RankRecord]) -> PointRecord {
        merged("2026-01-01T00:00:00Z".into(), parts).unwrap()
    }

    #[test]
    fn ranks_that_began_together_are_added_window_by_window() {
        // Clocks an hour and seven seconds apart, and starts within half a millisecond.
        let hour = 3600 * SECOND;
        let parts = [
            part(
                1,
                &[10, 20, 30],
                hour + 5 * SECOND + 500_000,
                i64::try_from(hour).unwrap(),
            ),
            part(0, &[1, 2, 3], 5 * SECOND, 0),
            part(
                2,
                &[100, 200, 300],
                12 * SECOND - 100_000,
                7 * i64::try_from(SECOND).unwrap(),
            ),
        ];
        let sum = sum_of(&parts);
        assert_eq!(counts(&sum), [111, 222, 333]);
        assert_eq!(
            (sum.measured, sum.end.clone()),
            (Nanos::from_secs(3), End::Complete)
        );
        assert_eq!((sum.cpu, sum.cpus, sum.warm_up), (Nanos(300), 6, Nanos(2)));
        let stream = &sum.streams[0];
        assert_eq!(
            (stream.loads.len(), stream.warm_up_done, stream.drained),
            (3, 15, 3)
        );
        assert_eq!(
            (stream.coverage.clone(), sum.samples.len()),
            (Coverage::default(), 0)
        );
        let merge = sum.merge.unwrap();
        assert_eq!(merge.ranks, [0, 1, 2]);
        assert_eq!(
            (merge.skew, merge.skew_left),
            (Nanos(600_000), Nanos(600_000))
        );
        assert_eq!(
            (merge.windows_dropped, merge.clock_bound, merge.is_common),
            (0, Nanos(20_002), true)
        );
    }

    #[test]
    fn percentiles_are_of_all_operations_and_no_mean_of_percentiles() {
        // 90 operations of 1 ms and 10 of 2 ms.
        let sum = sum_of(&[part(0, &[90], 0, 0), part(1, &[10], 0, 0)]);
        let total = sum.streams[0].total();
        let at = |q| total.response.histogram.quantile(q).unwrap();
        assert_eq!(total.response.histogram.count(), 100);
        assert!(at(0.9).low <= 1_000_000 && 1_000_000 <= at(0.9).high);
        assert!(at(0.91).low <= 2_000_000 && 2_000_000 <= at(0.91).high);
        assert_eq!(
            (total.response.sum, total.response.max),
            (110_000_000, 2_000_000)
        );
    }

    #[test]
    fn windows_of_ranks_that_began_apart_are_shifted_and_edges_dropped() {
        // Rank 1 began 2.05 s after rank 0: its first window lies 50 ms after rank 0's third.
        let parts = [
            part(0, &[1, 2, 3, 4, 5], 10 * SECOND, 0),
            part(1, &[30, 40, 50, 60], 12 * SECOND + 50_000_000, 0),
        ];
        let sum = sum_of(&parts);
        assert_eq!(counts(&sum), [33, 44, 55]);
        let merge = sum.merge.unwrap();
        assert_eq!(
            (merge.skew, merge.skew_left),
            (Nanos(2_050_000_000), Nanos(50_000_000))
        );
        assert_eq!(merge.windows_dropped, 3);
        // The operations that rank 0 drained were due in its last window, which counts; those of
        // rank 1 were due in the one that was left out.
        assert_eq!(sum.streams[0].drained, 1);
    }

    #[test]
    fn the_shift_is_the_one_that_leaves_the_least() {
        // 0.95 s apart: a shift by a window leaves 50 ms, none would leave 950 ms.
        let parts = [
            part(0, &[1, 2, 3], 0, 0),
            part(1, &[10, 20, 30], 950_000_000, 0),
        ];
        let sum = sum_of(&parts);
        assert_eq!(
            (counts(&sum), sum.merge.unwrap().skew_left),
            (vec![12, 23], Nanos(50_000_000))
        );
    }

    #[test]
    fn half_a_second_and_more_gives_no_sum() {
        let began = [(0, 0), (1, 350_000_000), (2, 650_000_000)];
        let parts = began.map(|(rank, began)| part(rank, &[1, 2, 3], began, 0));
        let sum = sum_of(&parts);
        assert!(
            matches!(&sum.end, End::Broken(why) if why.contains("650 ms apart")),
            "{:?}",
            sum.end
        );
        assert_eq!((counts(&sum), sum.measured), (vec![], Nanos(0)));
        assert_eq!(sum.merge.unwrap().skew_left, Nanos(650_000_000));
    }

    #[test]
    fn fixed_work_without_a_whole_common_window_counts_from_first_to_last() {
        let mut parts = [part(0, &[7], 0, 0), part(1, &[9], 20_000_000, 0)];
        parts[0].record.measured = Nanos(300_000_000);
        parts[1].record.measured = Nanos(500_000_000);
        let sum = sum_of(&parts);
        assert_eq!((counts(&sum), sum.measured), (vec![16], Nanos(520_000_000)));
        assert!(!sum.merge.unwrap().is_common);
    }

    #[test]
    fn the_worst_end_is_that_of_the_sum() {
        let mut parts = [part(0, &[1], 0, 0), part(3, &[1], 0, 0)];
        parts[0].record.end = End::Stopped;
        assert_eq!(sum_of(&parts).end, End::Stopped);
        parts[1].record.end = End::Broken("gone".into());
        assert_eq!(sum_of(&parts).end, End::Broken("rank 3: gone".into()));
        assert_eq!(merged(String::new(), &[]), None);
    }

    #[test]
    fn ranks_that_measured_different_points_have_no_sum() {
        let mut parts = [part(0, &[1], 0, 0), part(1, &[1], 0, 0)];
        parts[1].record.window = Nanos(SECOND / 10);
        assert!(matches!(sum_of(&parts).end, End::Broken(why) if why.contains("different points")));
    }

    #[test]
    fn lines_of_a_point_that_was_measured_again_replace_the_older_ones() {
        let mut lines = RankLines::default();
        let sum = sum_of(&[part(0, &[1], 0, 0), part(1, &[1], 0, 0)]);
        lines.record(part(0, &[5], 0, 0));
        // Killed here, and resumed.
        lines.record(part(0, &[1], 0, 0));
        lines.record(part(1, &[1], 0, 0));
        lines.point(4, &sum);
        lines.record(part(0, &[2], 0, 0));
        let found: Vec<(usize, usize)> = lines
            .parts
            .iter()
            .map(|point| (point.at, point.parts.len()))
            .collect();
        assert_eq!(found, [(4, 2)], "the last line has no point yet");
        assert_eq!(lines.parts[0].parts[0].record.streams[0].total().done, 1);
    }

    #[test]
    fn a_rank_is_called_by_its_host_and_by_its_number_where_hosts_are_shared() {
        let member = |rank, name: &str| RankFacts {
            rank,
            boot_id: name.into(),
            host: Host {
                name: name.into(),
                ..Host::default()
            },
            ..RankFacts::default()
        };
        let members = vec![member(0, "h1"), member(1, "h2"), member(2, "h2")];
        let group = RankGroup {
            members,
            ..RankGroup::default()
        };
        let labels: Vec<String> = (0..4).map(|rank| group.label(rank)).collect();
        assert_eq!(labels, ["h1", "h2:1", "h2:2", "rank 3"]);
        assert_eq!((group.size(), group.hosts()), (3, 2));
    }

    proptest! {
        /// Whatever the clocks and starts, the sum has exactly the operations of the parts' windows
        /// that it says are common: each rank's counts are a run of its windows, none twice.
        #[test]
        fn the_sum_is_that_of_the_parts_inside_the_common_windows(
            ranks in prop::collection::vec(
                (prop::collection::vec(0u64..40, 1..9), 0u64..4_000_000_000, -5_000_000_000i64..5_000_000_000), 1..6
            )
        ) {
            let parts: Vec<RankRecord> = ranks
                .iter()
                .enumerate()
                .map(|(rank, (counts, began, ahead))| {
                    // On rank 0's clock it began at `began`, ten seconds after the clock's zero.
                    let own = i64::try_from(10 * SECOND + began).unwrap() + ahead;
                    part(u32::try_from(rank).unwrap(), counts, u64::try_from(own).unwrap(), *ahead)
                })
                .collect();
            let sum = sum_of(&parts);
            let merge = sum.merge.clone().unwrap();
            prop_assert!(merge.skew_left <= merge.skew.max(Nanos(SECOND)));
            if let End::Broken(_) = sum.end {
                prop_assert!(merge.skew_left > SKEW_MAX);
                return Ok(());
            }
            let kept = sum.streams[0].kinds[0].windows.len();
            if merge.is_common {
                let all: usize = ranks.iter().map(|(counts, ..)| counts.len()).sum();
                prop_assert_eq!(merge.windows_dropped, (all - kept * parts.len()) as u64);
            }
            let total = sum.streams[0].total();
            prop_assert_eq!(total.done, total.response.histogram.count());
            // The response time identifies the rank.
            for (part, (counts, ..)) in parts.iter().zip(&ranks) {
                let time = u64::from(part.rank + 1) * 1_000_000;
                let of_rank = total.response.histogram.buckets().find(|(low, high, _)| (*low..=*high).contains(&time));
                let mine = of_rank.map_or(0, |(.., count)| count);
                let runs = counts.windows(kept.min(counts.len())).map(|run| run.iter().sum::<u64>());
                prop_assert!(runs.into_iter().any(|run| run == mine), "{mine} of {counts:?}, {kept} kept");
            }
        }

        /// The order in which records arrive does not matter.
        #[test]
        fn the_order_of_the_parts_does_not_matter(starts in prop::collection::vec(0u64..3_000_000_000, 2..5)) {
            let mut parts: Vec<RankRecord> = starts
                .iter()
                .enumerate()
                .map(|(rank, began)| part(u32::try_from(rank).unwrap(), &[3, 1, 4, 1, 5], *began, 0))
                .collect();
            let one = sum_of(&parts);
            parts.reverse();
            prop_assert_eq!(sum_of(&parts), one);
        }
    }
}
