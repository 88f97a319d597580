//! Objectives over a series: for how much of the time each was kept, and what is left of its error budget.

use super::predictability::PredictabilityTerms;
use super::rounds::{Round, RoundEnd};
use crate::model::{Moment, Objective};
use serde::Serialize;

/// How an objective was kept.
///
/// A round stands for its time: the interval between rounds, or, where there is none, as long as it was measured. One
/// that broke has missed every objective; one that somebody stopped, and one that did not take place, says nothing. But
/// where a round missed the objective and the next ones did not take place, it stands for their time too: a stall that
/// is longer than a round leaves no other trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveResult {
    /// The objective.
    pub objective: Objective,
    /// The share of time for which it must be kept.
    pub share_asked: f64,
    /// Rounds that kept it.
    pub kept: usize,
    /// Rounds that missed it, broken ones included.
    pub missed: usize,
    /// Of those, rounds that broke.
    pub broken: usize,
    /// Rounds that say nothing: stopped, or without the figure. Rounds that did not take place are not among them.
    pub unknown: usize,
    /// Share of the known time for which it was kept; none if nothing is known.
    pub share_kept: Option<f64>,
    /// Seconds for which it may be missed in the known time.
    pub budget_seconds: f64,
    /// Seconds for which it was missed.
    pub missed_seconds: f64,
    /// The share of the budget that is used; more than 1 if it is overdrawn. None where there is no budget.
    pub budget_used: Option<f64>,
    /// It was kept for the share of time asked for; none if nothing is known.
    pub met: Option<bool>,
    /// The longest time without a round that kept it.
    pub longest_breach: Option<Breach>,
    /// Every breach, ascending.
    pub breaches: Vec<Breach>,
}

/// Rounds one after the other that missed an objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Breach {
    /// The first of them began.
    pub begin: Moment,
    /// The last of them was over; where the next ones did not take place, the first that did began.
    pub end: Moment,
    /// Rounds that missed it.
    pub rounds: usize,
    /// Seconds that they stand for.
    pub seconds: f64,
}

/// How each objective was kept.
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
        // Of sums of seconds, the last digit is rounding.
        met: share_kept.map(|share| share >= terms.share - 1e-9),
        longest_breach: breaches.iter().copied().reduce(|a, b| if b.seconds > a.seconds { b } else { a }),
        breaches,
    }
}
