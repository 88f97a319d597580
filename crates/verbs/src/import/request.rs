//! The request of `rigel import`.

use rigel_analyse::plan::Plan;
use serde::{Deserialize, Serialize};

/// The request of `rigel import`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportRequest {
    /// The files that were read, as the user named them.
    pub files: Vec<String>,
}

impl Plan for ImportRequest {
    fn name(&self) -> &'static str {
        "import"
    }
}
