//! A finding: a sentence about a run that a reader must know, with its evidence and its cure.

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the figures stand.
    Note,
    /// The figures may mislead.
    Doubt,
    /// Measuring makes no sense, or is not allowed.
    Refusal,
}

/// A sentence with its evidence and its cure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Short stable name, such as `holes` or `scheduler`, for scripts to match on.
    pub name: String,
    /// What was found: names the thing and its value.
    pub what: String,
    /// What to do about it; empty for a note that needs nothing done.
    pub cure: String,
}

impl Finding {
    /// A finding that leaves the figures standing.
    pub fn note(name: &str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Note, name: name.into(), what: what.into(), cure: String::new() }
    }

    /// A finding that puts the figures in doubt.
    pub fn doubt(name: &str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { severity: Severity::Doubt, name: name.into(), what: what.into(), cure: cure.into() }
    }

    /// A finding that forbids the run.
    pub fn refusal(name: &str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { severity: Severity::Refusal, name: name.into(), what: what.into(), cure: cure.into() }
    }
}
