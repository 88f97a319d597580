//! The conclusion of a run: the answer in a sentence or two, and a rating.
//!
//! Input: the results of a run. Output: a [`Conclusion`], which text, JSON and page show alike.

mod calibration;
mod comparison;
mod curve;
mod fit;
mod imported;
mod layers;
mod matrix;
mod parts;
mod soak;
mod watch;

use crate::request::Header;
use crate::result::RunResult;

pub use fit::{interval_in_words, objective_in_words, objective_of_stream};
pub use parts::{Conclusion, Status};

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

impl RunResult {
    /// The conclusion of a run that began with `header`.
    pub fn conclusion(&self, header: &Header) -> Conclusion {
        match self {
            Self::Matrix(found) => matrix::conclusion(header, found),
            Self::Calibration(found) => calibration::conclusion(header, found),
            Self::Curve(found) => curve::conclusion(header, found),
            Self::Layers(found) => layers::conclusion(header, found),
            Self::Fit(found) => fit::conclusion(header, found),
            Self::Soak(found) => found.conclusion(header),
            Self::Watch(found) => found.conclusion(header),
            Self::Imported(found) => imported::conclusion(header, found),
        }
    }
}
