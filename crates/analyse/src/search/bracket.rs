//! Where rising loads stop being held: the highest that certainly was, the lowest that certainly was
//! not, and what lies between.
//!
//! Input: the verdict of each load. What is held at a load is taken to be held at every lower one, so
//! a load above one that was not held is never the answer.

use rigel_model::{Finding, FindingName};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::Interval;
use rigel_stats::verdict::BoundVerdict;

/// The loads between which the answer lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket<T> {
    /// The highest load that certainly was held, below the lowest that was not.
    pub held: Option<T>,
    /// The lowest load that certainly was not held.
    pub not_held: Option<T>,
    /// The lowest load between these two for which the measured time did not decide.
    pub undecided: Option<T>,
    /// The highest load that certainly was held, if it is above one that was not.
    pub held_above: Option<T>,
    /// True if a load was measured.
    any: bool,
}

impl<T: Copy + PartialOrd> Bracket<T> {
    /// The bracket of these loads, which must be rising.
    pub fn of(loads: impl IntoIterator<Item = (T, BoundVerdict)>) -> Self {
        let mut bracket = Self {
            held: None,
            not_held: None,
            undecided: None,
            held_above: None,
            any: false,
        };
        for (load, verdict) in loads {
            bracket.any = true;
            match (verdict, bracket.not_held) {
                (BoundVerdict::Kept, None) => {
                    (bracket.held, bracket.undecided) = (Some(load), None);
                }
                (BoundVerdict::Kept, Some(_)) => bracket.held_above = Some(load),
                (BoundVerdict::Undecided | BoundVerdict::NotMeasured, None) => {
                    bracket.undecided.get_or_insert(load);
                }
                (BoundVerdict::Broken, None) => bracket.not_held = Some(load),
                (_, Some(_)) => {}
            }
        }
        bracket
    }

    /// Whether any load is held. Undecided if no load was measured, and if the only ones that were
    /// held are above one that was not.
    pub fn verdict(&self) -> BoundVerdict {
        if self.held.is_some() {
            BoundVerdict::Kept
        } else if self.any && self.undecided.is_none() && self.held_above.is_none() {
            BoundVerdict::Broken
        } else {
            BoundVerdict::Undecided
        }
    }

    /// Warns of a load that was held above one that was not; `name` names a load.
    pub fn contradiction(&self, name: impl Fn(T) -> String) -> Option<Finding> {
        let (not_held, above) = self.not_held.zip(self.held_above)?;
        Some(Finding::warning(
            FindingName::Drift,
            format!(
                "{} did not hold, and {} did: the storage changed during the run, and the answer \
                 goes by the lower one",
                name(not_held),
                name(above)
            ),
            "repeat it at another time; rigel soak shows how much the storage varies",
        ))
    }
}

impl Bracket<f64> {
    /// Warns of an answer that hardly says where between these loads it is: over this factor or more, or not at
    /// all. `answer` is what it is the answer to, such as `the multiple`, `name` names a load.
    pub fn uncertainty(
        &self,
        found: Option<Estimate>,
        (answer, hint): (&str, &str),
        name: impl Fn(f64) -> String,
    ) -> Option<Finding> {
        const FACTOR: f64 = 1.5;
        let next = self.undecided.or(self.not_held);
        let what = match (found.and_then(|found| found.interval?.both()), self.held) {
            (Some(ends), _) if ends.high >= FACTOR * ends.low => {
                let ends = format!("{} and {}", name(ends.low), name(ends.high));
                format!("{answer} is known only to lie between {ends}")
            }
            (None, Some(held)) if next.is_some_and(|next| next >= FACTOR * held) => {
                format!("{answer} is known only to lie above {}", name(held))
            }
            (None, None) if self.verdict() == BoundVerdict::Undecided && self.any => {
                format!("{answer} is not known: nothing that was tried certainly held")
            }
            _ => return None,
        };
        Some(Finding::warning(FindingName::RateUncertain, what, hint))
    }

    /// The middle, in ratio, between the highest load that was held and the lowest that was not, none being held
    /// above `most`. `None` unless both are known.
    pub fn between(&self, most: f64) -> Option<Estimate> {
        let (low, high) = (self.held?, self.not_held.unwrap_or(most).min(most));
        let interval = Interval { low, high };
        (low < high && high.is_finite())
            .then(|| Estimate::new((low * high).sqrt(), Some(interval.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::BoundVerdict::{Broken, Kept, Undecided};
    use super::*;

    #[test]
    fn the_answer_is_the_highest_held_below_the_lowest_not_held() {
        let of = |verdicts: &[BoundVerdict]| Bracket::of((1..).zip(verdicts.iter().copied()));
        let shown = |verdicts: &[BoundVerdict]| {
            let found = of(verdicts);
            (found.held, found.undecided, found.not_held, found.verdict())
        };
        assert_eq!(shown(&[Kept, Kept]), (Some(2), None, None, Kept));
        assert_eq!(
            shown(&[Kept, Undecided, Undecided, Broken]),
            (Some(1), Some(2), Some(4), Kept)
        );
        assert_eq!(shown(&[Kept, Undecided, Kept]), (Some(3), None, None, Kept));
        assert_eq!(
            shown(&[Kept, Broken, Kept, Undecided]),
            (Some(1), None, Some(2), Kept)
        );
        assert_eq!(
            shown(&[Undecided, Broken]),
            (None, Some(1), Some(2), Undecided)
        );
        assert_eq!(shown(&[Broken, Broken]), (None, None, Some(1), Broken));
        // That a higher load was held does not mean that none is.
        assert_eq!(shown(&[Broken, Kept]), (None, None, Some(1), Undecided));
        assert_eq!(shown(&[]), (None, None, None, Undecided));
    }

    #[test]
    fn what_is_between_needs_both_ends() {
        let of = |loads: &[(f64, BoundVerdict)], most: f64| {
            let estimate = Bracket::of(loads.iter().copied()).between(most)?;
            Some((estimate.value, estimate.least(), estimate.greatest()))
        };
        let both = [(1.0, Kept), (4.0, Broken)];
        assert_eq!(of(&both, f64::INFINITY), Some((2.0, 1.0, 4.0)));
        assert_eq!(of(&both, 2.25), Some((1.5, 1.0, 2.25)));
        assert_eq!(of(&both[..1], 2.25), Some((1.5, 1.0, 2.25)));
        assert_eq!(of(&both[..1], f64::INFINITY), None);
        assert_eq!(of(&both[1..], 2.25), None);
        assert_eq!(of(&both, 0.5), None, "held above the maximum");
    }

    #[test]
    fn an_answer_that_is_hardly_known_is_a_warning() {
        let of = |loads: &[(f64, BoundVerdict)], found: Option<[f64; 2]>| {
            let found =
                found.map(|[low, high]| Estimate::new(low, Some(Interval { low, high }.into())));
            let bracket = Bracket::of(loads.iter().copied());
            let finding = bracket.uncertainty(found, ("it", "longer"), |load| load.to_string());
            finding.map(|finding| finding.what)
        };
        let said = |what: &str| Some(format!("it is {what}"));
        let loads = [(2.0, Kept), (4.0, Undecided)];
        assert_eq!(of(&loads, Some([2.0, 2.5])), None);
        assert_eq!(
            of(&loads, Some([2.0, 3.0])),
            said("known only to lie between 2 and 3")
        );
        assert_eq!(of(&loads, None), said("known only to lie above 2"));
        assert_eq!(of(&[(2.0, Kept), (2.5, Undecided)], None), None);
        assert_eq!(of(&[(2.0, Kept)], None), None, "nothing higher was tried");
        assert_eq!(
            of(&loads[1..], None),
            said("not known: nothing that was tried certainly held")
        );
        assert_eq!(of(&[(2.0, Broken)], None), None);
        assert_eq!(of(&[], None), None);
    }

    #[test]
    fn a_load_held_above_one_that_was_not_is_a_warning() {
        let of = |verdicts: &[BoundVerdict]| {
            Bracket::of((1..).zip(verdicts.iter().copied())).contradiction(|load| load.to_string())
        };
        let finding = of(&[Kept, Broken, Broken, Kept]).unwrap();
        assert!(finding.is(FindingName::Drift));
        assert!(
            finding.what.starts_with("2 did not hold, and 4 did:"),
            "{}",
            finding.what
        );
        assert_eq!(of(&[Kept, Undecided, Broken, Broken]), None);
    }
}
