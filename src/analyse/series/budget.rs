//! Objectives over a series: how long each was kept, and what is left of its error budget.

use super::predictability::PredictabilityTerms;
use super::rounds::{Round, RoundEnd};
use crate::model::{Moment, Objective};
use serde::Serialize;

/// How well an objective was kept.
///
/// A round stands for its interval: the time between rounds or, where there is none, its measured time. A broken round
/// has missed every objective. A stopped round and a skipped one say nothing. But if a round missed the objective and
/// the next ones were skipped, it stands for their time too: a stall longer than a round leaves no other trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveResult {
    /// The objective.
    pub objective: Objective,
    /// The fraction of time for which it must be kept.
    pub share_asked: f64,
    /// Rounds that kept it.
    pub kept: usize,
    /// Rounds that missed it, broken ones included.
    pub missed: usize,
    /// Broken rounds among the missed ones.
    pub broken: usize,
    /// Rounds that say nothing: stopped, or without the figure. Skipped rounds are not counted.
    pub unknown: usize,
    /// Fraction of the known time for which it was kept; `None` if nothing is known.
    pub share_kept: Option<f64>,
    /// Seconds for which it may be missed in the known time.
    pub budget_seconds: f64,
    /// Seconds for which it was missed.
    pub missed_seconds: f64,
    /// The fraction of the budget that is used; above 1 if it is exceeded. `None` if there is no budget.
    pub budget_used: Option<f64>,
    /// True if it was kept for the required fraction of time; `None` if nothing is known.
    pub met: Option<bool>,
    /// The longest breach: consecutive rounds that missed it.
    pub longest_breach: Option<Breach>,
    /// All breaches, in order of time.
    pub breaches: Vec<Breach>,
}

/// Consecutive rounds that missed an objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Breach {
    /// Start of its first round.
    pub begin: Moment,
    /// End of its last round; if the next rounds were skipped, the start of the first one that ran.
    pub end: Moment,
    /// Rounds that missed it.
    pub rounds: usize,
    /// Seconds that these rounds stand for.
    pub seconds: f64,
}

/// The result of each objective.
pub(super) fn objectives(rounds: &[Round], terms: &PredictabilityTerms) -> Vec<ObjectiveResult> {
    let of = |(index, objective): (usize, &Objective)| one(rounds, terms, index, *objective);
    terms.objectives.iter().enumerate().map(of).collect()
}

fn one(rounds: &[Round], terms: &PredictabilityTerms, index: usize, objective: Objective) -> ObjectiveResult {
    let stands_for = |round: &Round| {
        let seconds = terms.every_seconds.unwrap_or(round.seconds);
        if seconds.is_finite() { seconds.max(1.0) } else { 1.0 }
    };
    let (mut kept, mut missed, mut broken, mut unknown) = (0, 0, 0, 0);
    let (mut kept_seconds, mut missed_seconds) = (0.0, 0.0);
    let mut breaches: Vec<Breach> = Vec::new();
    let mut in_breach = false;
    for (at, round) in rounds.iter().enumerate() {
        let seconds = stands_for(round);
        match round.has_kept(index) {
            None => unknown += 1,
            Some(true) => (kept, kept_seconds, in_breach) = (kept + 1, kept_seconds + seconds, false),
            Some(false) => {
                let missing = |next: &Round| next.missing_after(Some(round));
                let next = rounds.get(at + 1).filter(|next| terms.every_seconds.is_some() && missing(next) > 0);
                let seconds = next.map_or(seconds, |next| seconds * f64::from(missing(next) + 1));
                let end = next.map_or(round.finish(), |next| next.begin.max(round.finish()));
                (missed, missed_seconds) = (missed + 1, missed_seconds + seconds);
                broken += usize::from(matches!(round.end, RoundEnd::Broken(_)));
                match breaches.last_mut().filter(|_| in_breach) {
                    Some(breach) => {
                        breach.end = end;
                        breach.rounds += 1;
                        breach.seconds += seconds;
                    }
                    None => breaches.push(Breach { begin: round.begin, end, rounds: 1, seconds }),
                }
                in_breach = true;
            }
        }
    }
    let known = kept_seconds + missed_seconds;
    let budget_seconds = (1.0 - terms.share).max(0.0) * known;
    let share_kept = (known > 0.0).then(|| kept_seconds / known);
    ObjectiveResult {
        objective,
        share_asked: terms.share,
        kept,
        missed,
        broken,
        unknown,
        share_kept,
        budget_seconds,
        missed_seconds,
        budget_used: (budget_seconds > 0.0).then(|| missed_seconds / budget_seconds),
        // The sums of seconds have rounding errors in the last digit.
        met: share_kept.map(|share| share >= terms.share - 1e-9),
        longest_breach: breaches.iter().copied().reduce(|a, b| if b.seconds > a.seconds { b } else { a }),
        breaches,
    }
}
