//! The conclusion of a series of rounds: its verdict and rating.

use super::parts::{Conclusion, Status, decisive};
use crate::series::soak::SoakResult;
use crate::series::types::{Predictability, SeriesClass};
use rigel_model::Severity;
use rigel_model::record::journal::Header;

impl SoakResult {
    /// The conclusion of a series; `header` is its journal's header.
    pub fn conclusion(&self, header: &Header) -> Conclusion {
        let mut findings = header.findings.iter().chain(&self.findings);
        let has_warnings = findings.any(|finding| finding.severity != Severity::Note);
        let conclusion = Conclusion {
            status: status(&self.found, has_warnings),
            sentence: std::iter::once(self.found.verdict.clone())
                .chain(decisive(&self.findings))
                .collect::<Vec<_>>()
                .join(" "),
        };
        match self.found.outcome() {
            Some(outcome) => conclusion.with_outcome(outcome),
            None => conclusion,
        }
    }
}

fn status(found: &Predictability, has_warnings: bool) -> Status {
    let not_done =
        found.rounds.missing > 0 && found.rounds.broken == 0 && found.rounds.failed_operations == 0;
    let measured = found
        .rate
        .as_ref()
        .is_some_and(|rate| rate.least.value > 0.0);
    let only_late = found.troubles.is_empty() || not_done && measured;
    if !only_late {
        return Status::Bad;
    }
    match found.word {
        SeriesClass::Slowed => Status::Bad,
        SeriesClass::Drifting
        | SeriesClass::Stepped
        | SeriesClass::Erratic
        | SeriesClass::Failing => Status::Warning,
        SeriesClass::Steady | SeriesClass::Calendar | SeriesClass::TooFew if has_warnings => {
            Status::Warning
        }
        SeriesClass::Steady | SeriesClass::Calendar => Status::Good,
        SeriesClass::TooFew => Status::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::rounds as example;
    use crate::series::predictability::predictability;
    use crate::series::rounds::{Round, RoundEnd};
    use crate::series::types::PredictabilityTerms;

    #[test]
    fn a_broken_round_or_a_warning_is_no_good_news() {
        let status_of = |change: &dyn Fn(&mut Round), warning: bool| {
            let mut rounds = example(60);
            change(&mut rounds[7]);
            let found = predictability(&rounds, &PredictabilityTerms::default());
            status(&found, warning)
        };
        assert_eq!(status_of(&|_| (), false), Status::Good);
        assert_eq!(status_of(&|_| (), true), Status::Warning);
        assert_eq!(
            status_of(&|round| round.end = RoundEnd::Broken("gone".into()), false),
            Status::Bad
        );
        assert_eq!(status_of(&|round| round.failed = 3, false), Status::Bad);
        assert_eq!(
            status_of(&|round| round.rate = Some(0.0), false),
            Status::Bad
        );
        // Of 3.6 million operations, more than one in a hundred was offered in vain.
        let overloaded = |count| status_of(&|round| round.unserved = count, false);
        assert_eq!(overloaded(18_000), Status::Good);
        assert_eq!(overloaded(72_000), Status::Bad);
    }
}
