//! A target during the checks of the guard.

use super::family::TargetFamily;
use crate::engine::opened::Opened;
use rigel_model::{Error, usage};

/// A target during the checks of the guard.
pub(super) struct CheckedTarget<'a> {
    pub(super) opened: &'a Opened,
    pub(super) family: TargetFamily,
}

impl CheckedTarget<'_> {
    /// A refusal: `found` follows the path, as in "is mounted on /mnt".
    pub(super) fn refusal(&self, found: impl std::fmt::Display, hint: impl Into<String>) -> Error {
        usage!(
            "refused to write to '{path}': it {found}",
            hint,
            path = self.opened.path().display()
        )
    }
}
