//! Slowdowns: when one began, when it was worst, when it was over.

use super::change_points::{Explained, SEGMENT_MIN, middle_of_five};
use super::host_shift::{HostShift, host_shifts};
use super::robust::{median, spread_of_differences, usual};
use super::rounds::Round;
use crate::model::Moment;
use serde::Serialize;

/// How far below the usual level a round must be, at least, to belong to a slowdown: 10 %.
pub const SLOWDOWN: f64 = 0.10;
/// Or so many times the noise, if that is more, for a slowdown to be seen: of levels between steps,
const NOISE: f64 = 4.0;
/// and of medians of five rounds, where the level changed so gradually that there are no steps.
const NOISE_GRADUAL: f64 = 6.0;
/// Rounds at the usual level, one after the other, that end a slowdown.
const BACK: usize = 2;
/// Rounds before and after that the host is compared with.
const AROUND: usize = 12;

/// A time in which throughput was well below its usual level: at least three rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Episode {
    /// The first slow round began then.
    pub begin: Moment,
    /// Number of that round.
    pub first_round: u32,
    /// The slowest round began then.
    pub worst: Moment,
    /// Its number.
    pub worst_round: u32,
    /// Its rate.
    pub worst_rate: f64,
    /// The first round that was back at the usual level began then; none if the series ended before.
    pub end: Option<Moment>,
    /// When the last slow round was over.
    pub last_slow: Moment,
    /// Measured rounds that were slow.
    pub rounds: usize,
    /// The usual rate when it was worst: the middle of the half of all rounds that lie closest together, with what the
    /// slope and hour of the day make of it then. Always above the worst rate.
    pub usual: f64,
    /// Below this rate a round counted as slow then.
    pub edge: f64,
    /// What changed on the host. None where nothing is known of it; empty where nothing moved.
    pub host: Option<Vec<HostShift>>,
}

impl Episode {
    /// A moment lies within it, or at its end.
    #[must_use]
    pub fn covers(&self, moment: Moment) -> bool {
        self.begin <= moment && moment <= self.end.unwrap_or(self.last_slow)
    }

    /// The share of the usual rate that was lost at worst.
    #[must_use]
    pub fn lost(&self) -> f64 {
        1.0 - self.worst_rate / self.usual
    }
}

/// The slowdowns of rounds that have a rate, by what explains their rates: beside slope and daily pattern. Only where
/// the level changed beyond chance; from there a slowdown reaches as far as single rounds are below the usual level.
/// `logarithms` are those of the rates.
pub(super) fn episodes(known: &[&Round], logarithms: &[f64], explained: &Explained) -> Vec<Episode> {
    let values = &explained.levelled;
    let Some(level) = usual(values) else { return Vec::new() };
    let tenth = (1.0 - SLOWDOWN).ln();
    let short_term = spread_of_differences(values);
    let (levels_around, times) = if explained.steps.is_empty() {
        ((0..values.len()).map(|at| middle_of_five(values, at)).collect(), NOISE_GRADUAL * short_term)
    } else {
        (levels(explained), NOISE * explained.noise)
    };
    let seen_below = level + tenth.min(-times);
    let edge = level + tenth.min(-short_term);
    let mut episodes = Vec::new();
    let mut at = 0;
    while let Some(from) = (at..values.len()).find(|index| levels_around[*index] < seen_below) {
        let to = (from..values.len()).find(|index| levels_around[*index] >= seen_below).unwrap_or(values.len());
        at = to;
        let is_slow = |index: &usize| values[*index] < edge;
        let Some(within) = (from..to).find(is_slow) else { continue };
        let first = (0..within).rev().take_while(is_slow).last().unwrap_or(within);
        let is_back = |index: &usize| values[*index..].iter().take(BACK).all(|value| *value >= edge);
        let last = (from..to).rev().find(is_slow).unwrap_or(first);
        let end = (last..values.len()).find(is_back).unwrap_or(values.len());
        at = at.max(end);
        let slow = (first..end).filter(is_slow).count();
        // What was slow from the beginning has no beginning; what changed level for good is told as that.
        let is_step = to == values.len() && level_changed(explained, from);
        if first == 0 || from == 0 || slow < SEGMENT_MIN || is_step {
            continue;
        }
        let Some(worst) = (first..end).min_by(|a, b| values[*a].total_cmp(&values[*b])) else { continue };
        // What slope and hour of the day add to the level then.
        let then = logarithms[worst] - values[worst];
        let around = [&known[first.saturating_sub(AROUND)..first], &known[end..(end + AROUND).min(known.len())]];
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
            edge: (edge + then).exp(),
            host: host_shifts(&around.concat(), &known[first..end]),
        });
    }
    episodes
}

/// The level that steps leave around each value.
fn levels(explained: &Explained) -> Vec<f64> {
    let values = &explained.levelled;
    let ends = explained.steps.iter().map(|step| step.at).chain([values.len()]);
    let mut levels = Vec::with_capacity(values.len());
    for end in ends {
        let part = &values[levels.len()..end];
        levels.resize(end, median(part).unwrap_or(0.0));
    }
    levels
}

/// From about here on there is one level to the end.
fn level_changed(explained: &Explained, from: usize) -> bool {
    let behind: Vec<usize> = explained.steps.iter().map(|step| step.at).filter(|at| at + SEGMENT_MIN > from).collect();
    matches!(behind[..], [at] if at < from + SEGMENT_MIN)
}
