//! What to do with a setting: one value, or nothing, with the reason.

use serde::Serialize;

/// What to do with a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Decision {
    /// To set it.
    Set {
        /// The value, as it is written in a configuration.
        value: String,
        /// The reason, in words.
        why: String,
    },
    /// To leave the default.
    Leave {
        /// The reason, in words.
        why: String,
        /// The value to set in the versions before [`since`](super::ProductDefault::since), if the
        /// default of these is not as good.
        before: Option<String>,
    },
    /// Nothing, until it is measured.
    NotMeasured,
}

impl Decision {
    /// To leave the default, in all versions.
    pub(super) fn leave(why: impl Into<String>) -> Self {
        Self::Leave {
            why: why.into(),
            before: None,
        }
    }

    /// To set this value.
    pub(super) fn set(value: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Set {
            value: value.into(),
            why: why.into(),
        }
    }

    /// The same decision with one more reason.
    pub(super) fn because(mut self, more: &str) -> Self {
        if let Self::Set { why, .. } | Self::Leave { why, .. } = &mut self {
            why.push_str("; ");
            why.push_str(more);
        }
        self
    }

    /// The reason in words; empty if nothing was measured.
    pub fn why(&self) -> &str {
        match self {
            Self::Set { why, .. } | Self::Leave { why, .. } => why,
            Self::NotMeasured => "",
        }
    }
}
