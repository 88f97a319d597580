//! Slowdowns: when each began, was worst and ended.

use super::change_points::{Explained, SEGMENT_MIN, middle_of};
use super::host_shift::{HostShift, host_shifts};
use super::rounds::Round;
use rigel_model::Moment;
use rigel_stats::robust::{median, spread_of_differences, usual};
use serde::Serialize;

/// Minimum distance of a slow round's rate below the usual level: 10 %.
pub const SLOWDOWN: f64 = 0.10;
/// Levels between steps show a slowdown if they are this many times the noise below the usual
/// level, if that is more than `SLOWDOWN`.
const NOISE: f64 = 4.0;
/// The same factor for medians of five rounds, which show slowdowns that are too short or too gradual
/// for steps.
const NOISE_GRADUAL: f64 = 6.0;
/// A level that slope and calendar put further above the greatest rate than this, on the logarithmic scale, is no
/// usual one.
const BEYOND: f64 = 0.25;
/// Minimum number of slow rounds of a slowdown.
const SLOW_MIN: usize = 3;
/// Consecutive rounds at the usual level that end a slowdown.
const BACK: usize = 2;
/// Number of rounds before and after the slowdown that its host counters are compared with.
const AROUND: usize = 12;

/// A period of at least three slow rounds, with throughput well below the usual level.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Episode {
    /// Start of the first slow round.
    pub begin: Moment,
    /// Number of that round.
    pub first_round: u32,
    /// Start of the slowest round.
    pub worst: Moment,
    /// Number of the slowest round.
    pub worst_round: u32,
    /// Rate of the slowest round.
    pub worst_rate: f64,
    /// Start of the first round back at the usual level; `None` if the series ended before.
    pub end: Option<Moment>,
    /// End of the last slow round.
    pub last_slow: Moment,
    /// Number of slow rounds that were measured.
    pub rounds: usize,
    /// The usual rate at the time of the slowest round: the centre of the half of all rounds that
    /// lie closest together, adjusted by slope and hour of the day. Always above the worst
    /// rate.
    pub usual: f64,
    /// The rate below which a round counted as slow at that time.
    pub edge: f64,
    /// What changed on the host; `None` if the host is unknown, empty if nothing changed.
    pub host: Option<Vec<HostShift>>,
}

impl Episode {
    /// True if the moment is within the slowdown or at its end.
    pub fn covers(&self, moment: Moment) -> bool {
        self.begin <= moment && moment <= self.end.unwrap_or(self.last_slow)
    }

    /// The fraction of the usual rate that was lost in the slowest round.
    pub fn lost(&self) -> f64 {
        1.0 - self.worst_rate / self.usual
    }
}

/// The slowdowns in the rounds with a rate, after slope and daily pattern are removed. Only where
/// the level changed beyond chance; from there, a slowdown extends as far as single rounds are
/// below the usual level. `logarithms` are those of the rates.
pub(super) fn episodes(
    known: &[&Round],
    logarithms: &[f64],
    explained: &Explained,
) -> Vec<Episode> {
    let values = &explained.levelled;
    let Some(level) = usual(values) else {
        return Vec::new();
    };
    let tenth = (1.0 - SLOWDOWN).ln();
    let greatest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let short_term = spread_of_differences(values);
    let by_levels = levels(explained);
    // Where the spread changed, that of the time counts.
    let noise = |at: usize| short_term.max(explained.deviations[at]);
    let below = |distance: f64| level + tenth.min(-distance);
    // A median must be below the level of its time, too: a lower level is a change, no slowdown.
    let lowered = |at: usize| (by_levels[at] - level).min(0.0);
    let has_steps = !explained.steps.is_empty();
    let is_far = |at: &usize| {
        let far_level = below(NOISE * explained.noise.max(noise(*at)));
        let far_median = below(NOISE_GRADUAL * noise(*at)) + lowered(*at);
        has_steps && by_levels[*at] < far_level || middle_of(5, values, *at) < far_median
    };
    let edge = |at: usize| below(noise(at));
    let mut episodes = Vec::new();
    let mut start = 0;
    while let Some(from) = (start..values.len()).find(is_far) {
        let to = (from..values.len())
            .find(|at| !is_far(at))
            .unwrap_or(values.len());
        start = to;
        let is_slow = |index: &usize| values[*index] < edge(*index);
        let Some(within) = (from..to).find(is_slow) else {
            continue;
        };
        let first = (0..within)
            .rev()
            .take_while(is_slow)
            .last()
            .unwrap_or(within);
        let is_back = |index: &usize| {
            let next = *index..(*index + BACK).min(values.len());
            next.into_iter().all(|at| values[at] >= edge(at))
        };
        let last = (from..to).rev().find(is_slow).unwrap_or(first);
        let end = (last..values.len()).find(is_back).unwrap_or(values.len());
        start = start.max(end);
        let slow = (first..end).filter(is_slow).count();
        // Rounds that were slow from the beginning have no start; a permanent change of level is
        // reported as a step.
        let is_step = to == values.len() && level_changed(explained, from);
        if first == 0 || from == 0 || slow < SLOW_MIN || is_step {
            continue;
        }
        let Some(worst) = (first..end).min_by(|a, b| values[*a].total_cmp(&values[*b])) else {
            continue;
        };
        // The contribution of slope and hour of the day at that time.
        let then = logarithms[worst] - values[worst];
        if level + then > greatest + BEYOND {
            continue;
        }
        let around = [
            &known[first.saturating_sub(AROUND)..first],
            &known[end..(end + AROUND).min(known.len())],
        ];
        episodes.push(Episode {
            begin: known[first].begin,
            first_round: known[first].number,
            worst: known[worst].begin,
            worst_round: known[worst].number,
            worst_rate: known[worst].rate.unwrap_or(0.0),
            end: known.get(end).map(|round| round.begin),
            last_slow: known[last].finish(),
            rounds: slow,
            usual: (level + then).exp(),
            edge: (edge(worst) + then).exp(),
            host: host_shifts(&around.concat(), &known[first..end]),
        });
    }
    episodes
}

/// The level of each value's segment between steps.
fn levels(explained: &Explained) -> Vec<f64> {
    let values = &explained.levelled;
    let ends = explained
        .steps
        .iter()
        .map(|step| step.at)
        .chain([values.len()]);
    let mut levels = Vec::with_capacity(values.len());
    for end in ends {
        let part = &values[levels.len()..end];
        levels.resize(end, median(part).unwrap_or(0.0));
    }
    levels
}

/// True if about here the last step begins: one level from here to the end.
fn level_changed(explained: &Explained, from: usize) -> bool {
    let behind: Vec<usize> = explained
        .steps
        .iter()
        .map(|step| step.at)
        .filter(|at| at + SEGMENT_MIN > from)
        .collect();
    matches!(behind[..], [at] if at < from + SEGMENT_MIN)
}
