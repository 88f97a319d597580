//! Objectives over a series: how long each was kept, and what is left of its error budget.

use super::rounds::{Round, RoundEnd, measured_share};
use super::types::{Breach, ObjectiveResult, PredictabilityTerms};
use rigel_model::Objective;
use rigel_stats::mean::gamma_limits;

/// The result of each objective.
pub(super) fn objectives(rounds: &[Round], terms: &PredictabilityTerms) -> Vec<ObjectiveResult> {
    let of = |(index, objective): (usize, &Objective)| one(rounds, terms, index, *objective);
    terms.objectives.iter().enumerate().map(of).collect()
}

/// The fraction of all time for which an objective is kept at least, by the numbers of rounds that kept and
/// missed it, which are taken for a random sample of the time: Garwood's limit of a Poisson count.
fn least(kept: usize, missed: usize) -> f64 {
    let [_, most] = gamma_limits(missed as f64 + 1.0);
    (1.0 - most / (kept + missed) as f64).max(0.0)
}

fn one(
    rounds: &[Round],
    terms: &PredictabilityTerms,
    index: usize,
    objective: Objective,
) -> ObjectiveResult {
    let stands_for = |round: &Round| {
        let seconds = terms.every_seconds.unwrap_or(round.seconds);
        if seconds.is_finite() {
            seconds.max(1.0)
        } else {
            1.0
        }
    };
    let (mut kept, mut missed, mut broken, mut unknown, mut hidden) = (0, 0, 0, 0, 0);
    let (mut kept_seconds, mut missed_seconds, mut hidden_seconds) = (0.0, 0.0, 0.0);
    let mut breaches: Vec<Breach> = Vec::new();
    let mut in_breach = false;
    for (at, round) in rounds.iter().enumerate() {
        let seconds = stands_for(round);
        match round.has_kept(index) {
            None => {
                unknown += 1;
                if round.end != RoundEnd::Stopped {
                    (hidden, hidden_seconds) = (hidden + 1, hidden_seconds + seconds);
                }
            }
            Some(true) => {
                (kept, kept_seconds, in_breach) = (kept + 1, kept_seconds + seconds, false);
            }
            Some(false) => {
                let missing = |next: &Round| next.missing_after(Some(round));
                let next = rounds
                    .get(at + 1)
                    .filter(|next| terms.every_seconds.is_some() && missing(next) > 0);
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
                    None => breaches.push(Breach {
                        begin: round.begin,
                        end,
                        rounds: 1,
                        seconds,
                    }),
                }
                in_breach = true;
            }
        }
    }
    let judged_seconds = kept_seconds + missed_seconds;
    // The sums of seconds have rounding errors in the last digit.
    let is_enough =
        |seconds: f64| seconds / (judged_seconds + hidden_seconds) >= terms.share - 1e-9;
    let met = match (
        is_enough(kept_seconds),
        is_enough(kept_seconds + hidden_seconds),
    ) {
        _ if judged_seconds + hidden_seconds <= 0.0 => None,
        (false, true) => None,
        (is_kept, _) => Some(is_kept),
    };
    let budget_seconds = (1.0 - terms.share).max(0.0) * judged_seconds;
    let share_kept = (judged_seconds > 0.0).then(|| kept_seconds / judged_seconds);
    ObjectiveResult {
        objective,
        share_asked: terms.share,
        kept,
        missed,
        broken,
        unknown,
        hidden,
        share_kept,
        share_least: measured_share(rounds.iter())
            .filter(|_| kept > 0)
            .map(|_| least(kept, missed)),
        budget_seconds,
        missed_seconds,
        budget_used: (budget_seconds > 0.0).then(|| missed_seconds / budget_seconds),
        met,
        longest_breach: breaches
            .iter()
            .copied()
            .reduce(|a, b| if b.seconds > a.seconds { b } else { a }),
        breaches,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_with_pauses_say_of_all_time_no_more_than_their_number_shows() {
        // Garwood's upper limits of 0 and of 2 events are 3.69 and 7.22.
        for (kept, missed, most) in [(36, 0, 3.69), (98, 2, 7.22), (1, 0, 3.69)] {
            let all = (kept + missed) as f64;
            let expected = (1.0_f64 - most / all).max(0.0);
            assert!(
                (least(kept, missed) - expected).abs() < 0.003,
                "{kept}, {missed}"
            );
        }
    }
}
