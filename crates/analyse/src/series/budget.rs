//! Objectives over a series: how long each was kept, whether that is enough, and what is left of its
//! error budget.

use super::rounds::{Round, RoundEnd, measured_share};
use super::types::{Breach, ObjectiveResult, PredictabilityTerms};
use crate::figures::quantity::{count, counted};
use rigel_model::Objective;
use rigel_stats::mean::gamma_limits;
use rigel_stats::verdict::BoundVerdict;

/// The result of each objective.
pub(super) fn objectives(rounds: &[Round], terms: &PredictabilityTerms) -> Vec<ObjectiveResult> {
    let of = |(index, objective): (usize, &Objective)| one(rounds, terms, index, *objective);
    terms.objectives.iter().enumerate().map(of).collect()
}

/// The fraction of all time for which an objective is kept at least, by the numbers of rounds that kept and
/// missed it, which are taken for a random sample of the time: Garwood's limit of a Poisson count.
fn least(kept: usize, missed: usize) -> f64 {
    (1.0 - missed_most(missed) / (kept + missed) as f64).max(0.0)
}

/// The number of rounds that miss an objective at most, where this number of them did.
fn missed_most(missed: usize) -> f64 {
    let [_, most] = gamma_limits(missed as f64 + 1.0);
    most
}

/// Seconds for which an objective was kept, missed, or neither is known.
#[derive(Debug, Clone, Copy, Default)]
struct Seconds {
    kept: f64,
    missed: f64,
    hidden: f64,
}

impl Seconds {
    /// Whether the objective is met for this share of time, at least for `least` of all time.
    fn verdict(self, share: f64, least: Option<f64>) -> BoundVerdict {
        // The sums of seconds have rounding errors in the last digit.
        const ROUNDING: f64 = 1e-9;
        let all = self.kept + self.missed + self.hidden;
        if all <= 0.0 {
            return BoundVerdict::Undecided;
        }
        let is_enough = |seconds: f64| seconds / all >= share - ROUNDING;
        let is_kept = least.is_none_or(|least| least >= share - ROUNDING);
        BoundVerdict::of(
            is_kept && is_enough(self.kept),
            !is_enough(self.kept + self.hidden),
        )
    }
}

impl ObjectiveResult {
    /// Why it is not met, or not known to be, as a sentence; empty if it is met.
    pub(super) fn sentence(&self) -> String {
        let objective = self.objective;
        let asked = share(self.share_asked);
        match (self.outcome, self.share_kept, self.share_least) {
            (BoundVerdict::Kept, ..) => String::new(),
            (BoundVerdict::Broken, kept, _) => {
                let met = share_beside(kept.unwrap_or(0.0), self.share_asked);
                format!(
                    "The objective {objective} was missed: met for {met} of the time, the target is {asked}."
                )
            }
            _ if self.hidden > 0 => format!(
                "Whether the objective {objective} was met is not known: while all I/O stands still, a closed \
                 loop sends none; ask with --rate."
            ),
            (_, Some(_), Some(least)) if self.missed > 0 => format!(
                "The objective {objective} was met in {} of {}, which shows {} of the time, and not {asked}.",
                count(self.kept as f64),
                counted((self.kept + self.missed) as u64, "round"),
                share_beside(least, self.share_asked),
            ),
            (_, Some(_), Some(_)) => {
                let needed = missed_most(0) / (1.0 - self.share_asked);
                let would = if needed.is_finite() {
                    format!("{} would", count(needed.ceil()))
                } else {
                    "rounds with pauses between them never do".into()
                };
                format!(
                    "The objective {objective} was kept in all {}; these cannot show {asked} of the time, {would}.",
                    counted(self.kept as u64, "round")
                )
            }
            _ => format!(
                "Whether the objective {objective} was met is not known: no round has a figure for it."
            ),
        }
    }
}

/// Formats a fraction in percent, never rounded up to 100 %.
pub(super) fn share(value: f64) -> String {
    share_beside(value, 1.0)
}

/// The same with as many digits as tell it from another that it is less than.
fn share_beside(value: f64, other: f64) -> String {
    const DIGITS_MOST: usize = 6;
    let percent = value * 100.0;
    let digits = (0..DIGITS_MOST).find(|digits| {
        let shown: f64 = format!("{percent:.digits$}").parse().unwrap_or(percent);
        (shown - percent).abs() < 0.05 && (value < other) == (shown < other * 100.0)
    });
    format!("{percent:.*} %", digits.unwrap_or(DIGITS_MOST))
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
    let mut time = Seconds::default();
    let mut breaches: Vec<Breach> = Vec::new();
    let mut in_breach = false;
    for (at, round) in rounds.iter().enumerate() {
        let seconds = stands_for(round);
        match round.has_kept(index) {
            None => {
                unknown += 1;
                if round.end != RoundEnd::Stopped {
                    (hidden, time.hidden) = (hidden + 1, time.hidden + seconds);
                }
            }
            Some(true) => {
                (kept, time.kept, in_breach) = (kept + 1, time.kept + seconds, false);
            }
            Some(false) => {
                let missing = |next: &Round| next.missing_after(Some(round));
                let next = rounds
                    .get(at + 1)
                    .filter(|next| terms.every_seconds.is_some() && missing(next) > 0);
                let seconds = next.map_or(seconds, |next| seconds * f64::from(missing(next) + 1));
                let end = next.map_or(round.finish(), |next| next.begin.max(round.finish()));
                (missed, time.missed) = (missed + 1, time.missed + seconds);
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
    let judged_seconds = time.kept + time.missed;
    let share_least = measured_share(rounds.iter())
        .filter(|_| kept > 0)
        .map(|_| least(kept, missed));
    let budget_seconds = (1.0 - terms.share).max(0.0) * judged_seconds;
    let share_kept = (judged_seconds > 0.0).then(|| time.kept / judged_seconds);
    ObjectiveResult {
        objective,
        share_asked: terms.share,
        kept,
        missed,
        broken,
        unknown,
        hidden,
        share_kept,
        share_least,
        budget_seconds,
        missed_seconds: time.missed,
        budget_used: (budget_seconds > 0.0).then(|| time.missed / budget_seconds),
        outcome: time.verdict(terms.share, share_least),
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
    use crate::examples::rounds as example;
    use crate::series::rounds::ObjectiveCheck;
    use rigel_model::Ratio;

    /// The result of an objective that every second round of a minute may show, of which the first `missed`
    /// miss it.
    fn judged(rounds: u32, missed: usize, share: &str) -> ObjectiveResult {
        let objective: Objective = "p99<2ms".parse().unwrap();
        let mut all = example(rounds);
        for (at, round) in all.iter_mut().enumerate() {
            round.seconds /= 2.0;
            round.kept = vec![ObjectiveCheck {
                kept: Some(at >= missed),
                share: None,
            }];
        }
        let terms = PredictabilityTerms {
            objectives: vec![objective],
            share: share.parse::<Ratio>().unwrap().get(),
            ..PredictabilityTerms::default()
        };
        objectives(&all, &terms).remove(0)
    }

    #[test]
    fn what_pauses_hide_is_neither_met_nor_missed_and_says_so() {
        let few = judged(72, 0, "99.9%");
        assert_eq!(few.outcome, BoundVerdict::Undecided);
        assert_eq!(
            few.sentence(),
            "The objective p99<2ms was kept in all 72 rounds; these cannot show 99.9 % of the time, 3,669 would."
        );
        let never = judged(72, 0, "100%").sentence();
        assert!(
            never.ends_with("rounds with pauses between them never do."),
            "{never}"
        );
        let enough = judged(370, 0, "99%");
        assert_eq!(
            (enough.outcome, enough.sentence().as_str()),
            (BoundVerdict::Kept, "")
        );
        let some = judged(672, 5, "99%");
        assert_eq!(some.outcome, BoundVerdict::Undecided);
        assert!(
            some.sentence()
                .contains("in 667 of 672 rounds, which shows 98.3 % of the time, and not 99 %"),
            "{}",
            some.sentence()
        );
    }

    #[test]
    fn a_share_that_is_missed_is_not_rounded_to_the_one_that_is_asked() {
        let missed = judged(672, 7, "99%");
        assert_eq!(missed.outcome, BoundVerdict::Broken);
        assert_eq!(
            missed.sentence(),
            "The objective p99<2ms was missed: met for 98.96 % of the time, the target is 99 %."
        );
        assert_eq!(share_beside(0.5, 0.99), "50 %");
        assert_eq!(
            (share(1.0), share(0.9999)),
            ("100 %".into(), "99.99 %".into())
        );
    }

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
