//! The verbs that make a run: one folder each, with what it was asked for (`request`), which point
//! comes next (`plan`), what follows from the records (`result`), the answer in a sentence
//! (`conclusion`) and the report (`document`).
//!
//! Input: a journal that was read, or a request. Output: points, results, documents. Pure: nothing
//! here opens a device or reads a clock. A folder imports no other; what two of them need is in a
//! crate below. [`registry`] has a row for each verb, and nothing else knows them all.

pub mod calibrate;
pub mod curve;
pub mod duet;
mod earlier;
pub mod ending;
mod evaluated;
#[cfg(any(test, feature = "examples"))]
pub mod examples;
pub mod expect;
pub mod fit;
#[cfg(test)]
#[path = "../../../tests/common/golden.rs"]
pub(crate) mod golden;
pub mod import;
pub mod layers;
pub mod naming;
pub mod orion;
pub mod registry;
#[cfg(test)]
#[path = "../../../tests/common/screen.rs"]
pub(crate) mod screen;
#[cfg(test)]
mod shares;
pub mod soak;
mod subject;
mod verb;
pub mod watch;

pub use earlier::runs_before;
pub use evaluated::Evaluated;
pub use registry::{of, read};
pub use subject::{of_soak as subject_of_soak, subject};
pub use verb::{RequestData, Verb, VerbResult};
