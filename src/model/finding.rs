//! A finding: a sentence about a run that a reader must know, with its evidence and its hint.

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the figures stand.
    Note,
    /// The figures may mislead. Older journals have `doubt`.
    #[serde(alias = "doubt")]
    Warning,
    /// The run would be meaningless, or is not allowed.
    Refusal,
}

/// A sentence with its evidence and its hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Short stable name, such as `holes` or `scheduler`, for scripts to match on.
    pub name: String,
    /// What was found: names the thing and its value.
    pub what: String,
    /// What to do about it; empty for a note that needs no action. Older journals have `cure`.
    #[serde(alias = "cure")]
    pub hint: String,
}

impl Finding {
    /// A finding that does not affect the figures.
    pub fn note(name: &str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Note, name: name.into(), what: what.into(), hint: String::new() }
    }

    /// A finding that makes the figures doubtful.
    pub fn warning(name: &str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, name: name.into(), what: what.into(), hint: hint.into() }
    }

    /// A finding that forbids the run.
    pub fn refusal(name: &str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { severity: Severity::Refusal, name: name.into(), what: what.into(), hint: hint.into() }
    }
}
