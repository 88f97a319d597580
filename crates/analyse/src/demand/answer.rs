//! Yes, no, or undecided.

use serde::Serialize;

/// An answer from figures that have intervals: whether storage serves a demand, whether a setting
/// matters for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Certainly.
    Yes,
    /// Certainly not.
    No,
    /// The figures do not decide it.
    Undecided,
}

impl Answer {
    /// Whether both are so.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Undecided,
        }
    }

    /// The answer in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Undecided => "undecided",
        }
    }
}
