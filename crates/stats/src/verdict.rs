//! Whether a figure keeps a limit: three answers, by its interval.

use crate::estimate::Estimate;
use crate::mean::Limits;
use serde::{Deserialize, Serialize};

/// Whether a bound or an expectation is kept, as far as the measured time shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BoundVerdict {
    /// With the confidence of its interval, 95 % unless another is said, the storage keeps it.
    Kept,
    /// With that confidence, it does not.
    Broken,
    /// The measured time shows neither.
    Undecided,
    /// Nothing of the kind was measured, or not the storage was the limit.
    #[serde(rename = "not measured")]
    NotMeasured,
}

impl BoundVerdict {
    /// The sign before it: met, not met, or not known.
    pub fn mark(self) -> char {
        match self {
            Self::Kept => '✓',
            Self::Broken => '✗',
            Self::Undecided | Self::NotMeasured => '?',
        }
    }

    /// The verdict, if certainty of one or the other is known. Within a margin both may be, and it forgives.
    pub fn of(is_kept: bool, is_broken: bool) -> Self {
        match (is_kept, is_broken) {
            (true, _) => Self::Kept,
            (false, true) => Self::Broken,
            (false, false) => Self::Undecided,
        }
    }

    /// Of several verdicts all of which are required: broken if one is, else the one that is known
    /// least.
    pub fn all_of(verdicts: impl Iterator<Item = Self>) -> Self {
        Self::first_of([Self::Broken, Self::NotMeasured, Self::Undecided], verdicts)
            .unwrap_or(Self::Kept)
    }

    /// The same; `None` if there are no verdicts.
    pub fn all_of_some(verdicts: impl Iterator<Item = Self>) -> Option<Self> {
        let mut verdicts = verdicts.peekable();
        verdicts.peek()?;
        Some(Self::all_of(verdicts))
    }

    /// Of several verdicts one of which is enough: kept if one is, else undecided if one is.
    pub fn any_of(verdicts: impl Iterator<Item = Self>) -> Self {
        Self::first_of([Self::Kept, Self::Undecided, Self::NotMeasured], verdicts)
            .unwrap_or(Self::Broken)
    }

    /// The first of `ranked` that is among the verdicts.
    fn first_of(ranked: [Self; 3], verdicts: impl Iterator<Item = Self>) -> Option<Self> {
        let place = |verdict: Self| ranked.iter().position(|one| *one == verdict);
        verdicts.filter_map(place).min().map(|at| ranked[at])
    }
}

/// What a figure is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// This much, or more.
    AtLeast(f64),
    /// This much, or less.
    AtMost(f64),
}

impl Wanted {
    /// The limit.
    pub fn limit(self) -> f64 {
        match self {
            Self::AtLeast(limit) | Self::AtMost(limit) => limit,
        }
    }

    /// As much as a relative margin forgives.
    #[must_use]
    pub fn forgiving(self, margin: f64) -> Self {
        match self {
            Self::AtLeast(limit) => Self::AtLeast(limit * (1.0 - margin)),
            Self::AtMost(limit) => Self::AtMost(limit * (1.0 + margin)),
        }
    }
}

impl Estimate {
    /// Whether it certainly is what is wanted, or certainly not; undecided without an interval.
    pub fn against(self, wanted: Wanted) -> BoundVerdict {
        let Some(Limits { low, high }) = self.interval else {
            return BoundVerdict::Undecided;
        };
        let (is_kept, is_broken) = match wanted {
            Wanted::AtLeast(limit) => (low >= limit, high.is_some_and(|high| high < limit)),
            Wanted::AtMost(limit) => (high.is_some_and(|high| high <= limit), low > limit),
        };
        BoundVerdict::of(is_kept, is_broken)
    }
}

#[cfg(test)]
mod tests {
    use super::BoundVerdict::{Broken, Kept, Undecided};
    use super::*;

    #[test]
    fn an_interval_on_one_side_of_a_limit_decides() {
        let found = |low, high| Estimate::new(10.0, Some(Limits { low, high }));
        let known = found(9.0, Some(11.0));
        let least = [8.0, 9.0, 10.0, 11.0, 12.0].map(|limit| known.against(Wanted::AtLeast(limit)));
        assert_eq!(least, [Kept, Kept, Undecided, Undecided, Broken]);
        let most = [8.0, 9.0, 10.0, 11.0, 12.0].map(|limit| known.against(Wanted::AtMost(limit)));
        assert_eq!(most, [Broken, Undecided, Undecided, Kept, Kept]);
        let open = found(9.0, None);
        let most = [8.0, 20.0].map(|limit| open.against(Wanted::AtMost(limit)));
        assert_eq!(most, [Broken, Undecided]);
        assert_eq!(
            Estimate::from(10.0).against(Wanted::AtLeast(1.0)),
            Undecided
        );
        let forgiving = Wanted::AtLeast(10.0).forgiving(0.1);
        assert_eq!((known.against(forgiving), forgiving.limit()), (Kept, 9.0));
    }
}
