//! The conclusion of a run: the answer in a sentence or two, and a rating.
//!
//! Input: the results of a run. Output: a [`Conclusion`], which text, JSON and page show alike.

pub mod comparison;
pub mod parts;
pub mod sight;
pub mod soak;
pub mod trust;

pub use parts::{Conclusion, Status};
pub use sight::{Sight, SightReader};
pub use trust::{CauseFound, FigureAsked, FigureTrust, RunTrust, TrustLevel};

impl Status {
    /// Every rating.
    pub const ALL: [Self; 4] = [Self::Good, Self::Plain, Self::Warning, Self::Bad];

    /// Its name in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Plain => "plain",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}
