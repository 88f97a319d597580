//! Several hosts that measured together: their sum, their shares, and what they do to each other.
//!
//! Input: a journal with records of ranks. Output: [`RanksResult`], the figures of each host at a
//! load, and findings. docs/methods/ranks-figures.md defines every figure. Nothing here is a mean of
//! percentiles: histograms were added, window by window, over the time in which all ranks measured.

pub mod facts;
pub mod findings;
pub mod host;
pub mod loads;
pub mod neighbours;
pub mod rounds;
pub mod soak_hosts;

pub use facts::FactDifference;
pub use host::{HostFigures, HostsAtLoad};
pub use neighbours::{Neighbours, NeighboursStep};
pub use rounds::{AloneFigures, HostRounds, LadderGrowth, LadderStep};
pub(crate) use soak_hosts::SoakHostsReader;
pub use soak_hosts::{SoakHost, SoakHosts};

use crate::point::summary::summarise_within;
use loads::RankLoads;
use rigel_model::record::journal::Run;
use rigel_model::record::{RankGroup, RankLost, visits};
use rigel_model::{Coordinates, Finding, Target};
use serde::Serialize;

/// The results of a run with several ranks, beside those of its sums.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else of the run"
)]
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RanksResult {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of hosts: of different kernels.
    pub hosts: usize,
    /// The ranks' names, by rank.
    pub names: Vec<String>,
    /// True if each host has storage of its own, so that the sum is not that of one storage.
    pub is_separate: bool,
    /// True if all ranks write to one region.
    pub same_blocks: bool,
    /// True if each rank has a part of the target of its own, because the plan writes.
    pub own_parts: bool,
    /// True if each rank has a scratch file of its own.
    pub own_files: bool,
    /// By rank: the databases that its sessions were on, without passwords; empty if no database was
    /// measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<String>,
    /// All hosts at one load: at the knee in rounds, in the closing measurement, or at the load
    /// with the highest throughput.
    pub at_load: Option<HostsAtLoad>,
    /// Some of the hosts, while the others wait.
    pub rounds: Option<HostRounds>,
    /// More and more hosts at the depth with the highest throughput, if `rounds` are at a lower one:
    /// there, fewer hosts may fill the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fullest_rounds: Option<HostRounds>,
    /// One host with a fixed rate beside the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Neighbours>,
    /// How well the measurements of the hosts lie over each other.
    pub overlap: Overlap,
    /// What was touched, and how large the target is.
    pub reach: CacheReach,
    /// The ranks that were lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<RankLost>,
    /// The exit status of all ranks, by the journal's last line; `None` if it has none: the run goes
    /// on, or was killed.
    pub end_status: Option<u8>,
    /// Findings about the ranks; those of their points are in the points.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// How well the measurements of the ranks lie over each other, over all points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Overlap {
    /// The longest time from the first rank's beginning to the last one's.
    pub skew_us: f64,
    /// The same after shifts by whole windows.
    pub skew_left_us: f64,
    /// Windows at the edges that were left out, of all ranks and points.
    pub windows_dropped: u64,
    /// Windows of all ranks and points, those left out included.
    pub windows: u64,
    /// The widest bound of a clock's difference from rank 0's.
    pub clock_bound_us: f64,
    /// The largest difference of a wall clock from rank 0's.
    pub wall_clock_s: f64,
}

/// How much of the target was read or written: a cache of that size can have answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CacheReach {
    /// Bytes of different blocks that all hosts together touched, at most.
    pub touched_bytes_max: u64,
    /// Bytes of the target.
    pub target_bytes: u64,
}

/// The results of the ranks of a run; `None` if one process measured alone.
pub fn ranks(run: &Run) -> Option<RanksResult> {
    let group = run.header.ranks.as_deref()?;
    let loads = RankLoads::of(run);
    let at_load = loads
        .representative()
        .and_then(|load| at(group, &loads, load));
    let mut rounds = HostRounds::all(group, &loads).into_iter();
    let mut result = RanksResult {
        ranks: group.size(),
        hosts: group.hosts(),
        names: group
            .members
            .iter()
            .map(|member| group.label(member.rank))
            .collect(),
        is_separate: group.separate,
        same_blocks: group.same_blocks,
        own_parts: has_own_parts(group),
        own_files: has_own_files(run),
        databases: databases(group),
        at_load,
        rounds: rounds.next(),
        fullest_rounds: rounds.next(),
        neighbours: Neighbours::of(group, &loads),
        overlap: overlap(run, group),
        reach: reach(run),
        lost: run.ranks.lost.clone(),
        end_status: run.ended.as_ref().map(|end| end.status),
        findings: Vec::new(),
    };
    result.findings = findings::findings(run, group, &loads, result.at_load.as_ref());
    Some(result)
}

/// All hosts at every load that all of them measured, in order; empty if one process measured
/// alone.
pub fn each_load(run: &Run) -> Vec<HostsAtLoad> {
    let Some(group) = run.header.ranks.as_deref() else {
        return Vec::new();
    };
    let loads = RankLoads::of(run);
    loads
        .all()
        .into_iter()
        .filter_map(|load| at(group, &loads, load))
        .collect()
}

fn at(group: &RankGroup, loads: &RankLoads<'_>, load: Coordinates) -> Option<HostsAtLoad> {
    let merged = visits::joined_at(&loads.merged(load), load)?;
    HostsAtLoad::of(group, &summarise_within(&merged, None), &loads.parts(load))
}

fn overlap(run: &Run, group: &RankGroup) -> Overlap {
    let mut overlap = Overlap::default();
    let micros = |nanos: u64| nanos as f64 / 1e3;
    for merge in run.points.iter().filter_map(|point| point.merge.as_ref()) {
        overlap.skew_us = overlap.skew_us.max(micros(merge.skew.0));
        overlap.skew_left_us = overlap.skew_left_us.max(micros(merge.skew_left.0));
        overlap.windows_dropped = overlap
            .windows_dropped
            .saturating_add(merge.windows_dropped);
        overlap.clock_bound_us = overlap.clock_bound_us.max(micros(merge.clock_bound.0));
    }
    let windows = run.ranks.parts.iter().flat_map(|point| &point.parts);
    let windows = windows.map(|part| part.record.whole_windows() as u64);
    overlap.windows = windows.fold(0, u64::saturating_add);
    let ahead = group
        .members
        .iter()
        .map(|member| member.wall_clock_ahead_ns.unsigned_abs());
    overlap.wall_clock_s = ahead.max().unwrap_or(0) as f64 / 1e9;
    overlap
}

fn databases(group: &RankGroup) -> Vec<String> {
    let members = group.members.iter();
    let on_server = members.filter(|member| member.facts.server.is_some());
    on_server.map(|member| member.facts.name.clone()).collect()
}

/// In a directory, each rank makes a scratch file, which has no name that others could open.
fn has_own_files(run: &Run) -> bool {
    matches!(run.header.target, Target::Scratch { .. })
}

/// A part is an equal share of the target.
fn has_own_parts(group: &RankGroup) -> bool {
    let Some(first) = group.members.first() else {
        return false;
    };
    let whole: u64 = first
        .facts
        .members
        .iter()
        .map(|member| member.bytes.0)
        .sum();
    whole > 0 && group.size() > 1 && first.facts.usable.0 <= whole / 2
}

/// Blocks that several ranks or points touched are counted each time: so it is an upper bound.
fn reach(run: &Run) -> CacheReach {
    let each = run.header.facts.usable.0;
    let ranks = run.header.ranks.as_ref().map_or(1, |group| group.size());
    let target = if has_own_files(run) {
        each.saturating_mul(ranks as u64)
    } else {
        each
    };
    let streams = run.ranks.parts.iter().flat_map(|point| &point.parts);
    let bytes = streams.flat_map(|part| &part.record.streams).map(|stream| {
        let coverage = &stream.coverage;
        // Of a large volume only a sample of the blocks is watched.
        let each = coverage.extent as f64 / coverage.tracked.max(1) as f64;
        coverage.distinct as f64 * each * f64::from(stream.length)
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a sum of counts; float casts saturate"
    )]
    let touched = bytes.sum::<f64>() as u64;
    CacheReach {
        touched_bytes_max: if target > 0 {
            touched.min(target)
        } else {
            touched
        },
        target_bytes: target,
    }
}
