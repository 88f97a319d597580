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
use crate::model::{Coordinates, Host, Nanos, TargetFacts};
use serde::{Deserialize, Serialize};

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
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Number of hosts: of different kernels, by their boot ids.
    #[must_use]
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
    #[must_use]
    pub fn member(&self, rank: u32) -> Option<&RankFacts> {
        self.members.iter().find(|one| one.rank == rank)
    }

    /// What reports call `rank`: its host's name; with `:` and the rank's number if several ranks
    /// have this name.
    #[must_use]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLost {
    /// The rank.
    pub rank: u32,
    /// The name of its host.
    pub host: String,
    /// The point that was measured, or was to be measured next.
    pub coordinates: Coordinates,
    /// How it was noticed, such as `no beat for 10 s`.
    pub how: String,
}

/// The end of a run with ranks: the last line of its journal. A run without it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanksEnd {
    /// The exit status of all ranks.
    pub status: u8,
}

/// All lines of ranks in a journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankLines {
    /// The records behind each merged point, in the order of the points.
    pub parts: Vec<RankedPoint>,
    /// The ranks that were lost.
    pub lost: Vec<RankLost>,
    /// How the run ended; `None` if it still runs, was killed, or has no ranks.
    pub ended: Option<RanksEnd>,
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

    /// Takes the line of point number `at`, from 0: if it is merged, the lines before it are its
    /// parts.
    pub fn point(&mut self, at: usize, point: &PointRecord) {
        let mut parts = std::mem::take(&mut self.pending);
        parts.retain(|part| part.record.coordinates == point.coordinates);
        if point.merge.is_some() && !parts.is_empty() {
            parts.sort_by_key(|part| part.rank);
            self.parts.push(RankedPoint { at, parts });
        }
    }
}

/// Merges what ranks measured of one point into one record, over the time in which all of them
/// measured. `None` if there are no parts. `started` is rank 0's wall clock at the beginning.
///
/// The beginnings are compared on rank 0's clock. If they lie within a small part of a window,
/// windows of the same number are added. Else the windows of early ranks are shifted by whole
/// windows, so that the least skew remains; windows at the edges are left out. If more than
/// [`SKEW_MAX`] remains there is no sum: the record is [`End::Broken`] and has no windows.
///
/// The record has no samples and no coverage: counters and blocks are each host's own, in its part.
#[must_use]
pub fn merged(started: String, parts: &[RankRecord]) -> Option<PointRecord> {
    let mut parts: Vec<&RankRecord> = parts.iter().collect();
    parts.sort_by_key(|part| part.rank);
    let first = parts.first()?;
    let window = Nanos(first.record.window.0.max(1));
    let place = Place::of(&parts, window);
    let refusal = refusal(&parts, &place.merge);
    let kept = if refusal.is_some() { 0 } else { place.windows };
    let streams = first.record.streams.iter();
    let streams = streams.map(|stream| merged_stream(&stream.name, &parts, &place, kept));
    let sum = |of: fn(&PointRecord) -> u64| {
        let values = parts.iter().map(|part| of(&part.record));
        values.fold(0, u64::saturating_add)
    };
    let warm_up = parts.iter().map(|part| part.record.warm_up).max();
    Some(PointRecord {
        coordinates: first.record.coordinates,
        started,
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
        visits: Vec::new(),
    })
}

/// Why no sum can be given, if so.
fn refusal(parts: &[&RankRecord], merge: &RankMerge) -> Option<String> {
    let first = &parts.first()?.record;
    let differs = |part: &&&RankRecord| {
        let names = |record: &PointRecord| -> Vec<String> {
            record
                .streams
                .iter()
                .map(|stream| stream.name.clone())
                .collect()
        };
        part.record.window != first.window || names(&part.record) != names(first)
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
        let whole = parts.iter().zip(&skipped).map(|(part, skipped)| {
            let windows = usize::try_from(part.record.measured.0 / window.0).unwrap_or(0);
            windows.saturating_sub(*skipped)
        });
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
        let dropped = parts.iter().map(|part| part.record.measured.0 / window.0);
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

/// How many windows each rank skips so that all begin within the least time of each other, and that
/// time. Beginnings are seen as hands on the dial of one window: the largest gap between two hands
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

/// The class `name` of all parts: `kept` windows, in each part after those that it skips.
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
        length: of_rank().next().map_or(0, |(stream, _)| stream.length),
        loads: of_rank()
            .flat_map(|(stream, _)| stream.loads.clone())
            .collect(),
        patterns: of_rank()
            .flat_map(|(stream, _)| stream.patterns.clone())
            .collect(),
        sql: of_rank().find_map(|(stream, _)| stream.sql.clone()),
        kinds: Vec::new(),
        unserved: Vec::new(),
        drained: 0,
        delay: None,
        warm_up_done: 0,
        coverage: Coverage::default(),
    };
    for (stream, skipped) in of_rank() {
        for theirs in &stream.kinds {
            let at = sum.kinds.iter().position(|kind| kind.kind == theirs.kind);
            let at = at.unwrap_or_else(|| {
                let windows = vec![Window::default(); kept];
                sum.kinds.push(KindRecord {
                    kind: theirs.kind,
                    windows,
                });
                sum.kinds.len() - 1
            });
            let windows = theirs.windows.iter().skip(skipped);
            let ours = sum.kinds[at].windows.iter_mut();
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
    }
    sum
}
