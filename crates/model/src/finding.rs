//! A finding: a sentence about a run that a reader must know, with its evidence and its hint.

use super::figure::Figure;
use super::finding_name::{FindingName, FindingReach};
use super::in_line;
use super::text::read_in_line;
use super::trust_cause::{TrustCause, Weight};
use serde::{Deserialize, Serialize, Serializer};

/// How much a finding matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the figures stand.
    Note,
    /// The figures may mislead.
    Warning,
    /// The run would be meaningless, or is not allowed.
    Refusal,
}

/// A sentence with its evidence and its hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Short stable name, such as `holes` or `scheduler`, for scripts to match on.
    pub name: String,
    /// What was found: names the thing and its value.
    #[serde(deserialize_with = "read_in_line")]
    pub what: String,
    /// What to do about it; empty for a note that needs no action. Older journals have `cure`.
    #[serde(deserialize_with = "read_in_line")]
    pub hint: String,
    /// The only figure that it is about, where an answer has several; absent if it is about all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
}

impl Finding {
    /// A finding that does not affect the figures.
    pub fn note(name: FindingName, what: impl Into<String>) -> Self {
        Self {
            severity: Severity::Note,
            name: name.name().into(),
            what: in_line(&what.into()).into_owned(),
            hint: String::new(),
            figure: name.kind().figure(),
        }
    }

    /// A finding that makes the figures doubtful.
    pub fn warning(name: FindingName, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            name: name.name().into(),
            what: in_line(&what.into()).into_owned(),
            hint: in_line(&hint.into()).into_owned(),
            figure: name.kind().figure(),
        }
    }

    /// A finding that forbids the run.
    pub fn refusal(name: FindingName, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            severity: Severity::Refusal,
            name: name.name().into(),
            what: in_line(&what.into()).into_owned(),
            hint: in_line(&hint.into()).into_owned(),
            figure: name.kind().figure(),
        }
    }

    /// The same, found at a load that is for this figure: the table of findings says whether that matters.
    #[must_use]
    pub fn at(self, figure: Option<Figure>) -> Self {
        let name = FindingName::of(&self.name);
        let is_of_load = name.is_some_and(|name| name.kind().about == FindingReach::Load);
        let figure = self.figure.or(figure.filter(|_| is_of_load));
        Self { figure, ..self }
    }

    /// True if the finding has this name.
    pub fn is(&self, name: FindingName) -> bool {
        self.name == name.name()
    }

    /// Its cause. A name of another version says nothing of the figures that we know of.
    pub fn cause(&self) -> TrustCause {
        FindingName::of(&self.name).map_or(TrustCause::Setup, |name| name.kind().cause)
    }

    /// What it does to the trust in the figures.
    pub fn weight(&self) -> Weight {
        match self.severity {
            Severity::Note => Weight::Aside,
            Severity::Refusal => Weight::Spoil,
            Severity::Warning => {
                FindingName::of(&self.name).map_or(Weight::Doubt, |name| name.kind().weight)
            }
        }
    }
}

/// A finding in JSON: its members and its cause.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FindingWithCause<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    cause: TrustCause,
}

impl<'a> From<&'a Finding> for FindingWithCause<'a> {
    fn from(finding: &'a Finding) -> Self {
        let cause = finding.cause();
        Self { finding, cause }
    }
}

/// Writes findings in JSON, each with its cause.
///
/// # Errors
/// Those of the serializer.
pub fn with_causes<S: Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(findings.iter().map(FindingWithCause::from))
}
