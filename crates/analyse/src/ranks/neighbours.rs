//! One host that offers a fixed rate while the others climb: what its neighbours do to it.

use super::host::quantiles;
use super::loads::{RankLoads, load_of};
use crate::point::summary::{ClassSummary, summarise};
use rigel_model::Coordinates;
use rigel_model::record::{RankGroup, visits};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::Limits;
use serde::Serialize;

/// The host beside one load of its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NeighboursStep {
    /// Outstanding operations of each neighbour; 0 if they waited.
    pub depth: u32,
    /// Completed operations per second of all neighbours together; `None` if they waited.
    pub neighbours: Option<Estimate>,
    /// Operations per second that the host completed.
    pub iops: Estimate,
    /// The same divided by those that were due.
    pub served: Option<f64>,
    /// The host's median response time; `None` if nothing completed, as for the others.
    pub p50_us: Option<Estimate>,
    /// The host's 99th percentile of response time.
    pub p99_us: Option<Estimate>,
    /// The host's 99.9th percentile of response time.
    pub p999_us: Option<Estimate>,
    /// The p99 divided by that while the neighbours waited.
    pub p99_ratio: Option<f64>,
}

/// One host with a fixed offered rate beside the others.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Neighbours {
    /// Its rank.
    pub rank: u32,
    /// Its name.
    pub host: String,
    /// Operations per second that it offered.
    pub rate_per_s: u64,
    /// Number of rounds.
    pub rounds: u32,
    /// By outstanding operations of each neighbour, ascending.
    pub steps: Vec<NeighboursStep>,
}

impl Neighbours {
    /// From the points of a run; `None` if it has none of this kind.
    pub(super) fn of(group: &RankGroup, loads: &RankLoads<'_>) -> Option<Self> {
        let mut neighbours: Option<Self> = None;
        let mut depths: Vec<(u32, Coordinates)> = Vec::new();
        for at in loads.coordinates() {
            let Coordinates::Neighbours {
                rank,
                rate_per_s,
                depth,
                round,
                ..
            } = at
            else {
                continue;
            };
            let neighbours = neighbours.get_or_insert_with(|| Self {
                rank,
                host: group.label(rank),
                rate_per_s,
                rounds: 0,
                steps: Vec::new(),
            });
            neighbours.rounds = neighbours.rounds.max(round);
            depths.push((depth, load_of(at)));
        }
        let mut neighbours = neighbours?;
        depths.sort_unstable();
        depths.dedup();
        let step =
            |(depth, load): &(u32, Coordinates)| step(loads, neighbours.rank, (*depth, *load));
        neighbours.steps = depths.iter().filter_map(step).collect();
        let alone = neighbours.alone().and_then(|alone| alone.p99_us);
        for step in &mut neighbours.steps {
            let both = step.p99_us.zip(alone).filter(|_| step.depth > 0);
            step.p99_ratio = both
                .filter(|(_, alone)| alone.value > 0.0)
                .map(|(p99, alone)| p99.value / alone.value);
        }
        Some(neighbours)
    }

    /// The host while its neighbours waited.
    pub fn alone(&self) -> Option<&NeighboursStep> {
        self.steps.iter().find(|step| step.depth == 0)
    }

    /// The load of the neighbours from which on the host's p99 is certainly higher than while they
    /// waited: the interval lies above. `None` if there is no such load.
    pub fn disturbed_from(&self) -> Option<&NeighboursStep> {
        let interval = |step: &NeighboursStep| step.p99_us.and_then(|p99| p99.interval);
        let alone = self.alone().and_then(interval)?.high?;
        let is_above = |limits: Limits| limits.low > alone;
        self.steps
            .iter()
            .find(|step| interval(step).is_some_and(is_above))
    }

    /// The highest load of the neighbours.
    pub fn fullest(&self) -> Option<&NeighboursStep> {
        self.steps.last().filter(|step| step.depth > 0)
    }
}

/// The figures of both at one load; `None` if the host measured nothing.
fn step(
    loads: &RankLoads<'_>,
    rank: u32,
    (depth, load): (u32, Coordinates),
) -> Option<NeighboursStep> {
    let parts = loads.parts(load);
    let (_, own) = parts.iter().find(|(of, _)| *of == rank)?;
    let own: ClassSummary = summarise(own).classes.into_iter().next()?;
    let merged = visits::joined_at(&loads.merged(load), load)?;
    let others = summarise(&merged)
        .classes
        .into_iter()
        .find(|class| class.name != own.name);
    let [median, p99, tail] = quantiles(&own);
    Some(NeighboursStep {
        depth,
        neighbours: others.map(|class| class.rate()),
        iops: own.rate(),
        served: own
            .offered
            .filter(|offered| *offered > 0.0)
            .map(|offered| own.iops / offered),
        p50_us: median,
        p99_us: p99,
        p999_us: tail,
        p99_ratio: None,
    })
}
