//! Metrics of a running soak for Prometheus, in three formats.
//!
//! Input: the rounds so far, one by one, and the `Accept` header of a scraper. Output: a content
//! type and a body. Pure: an [`Exposed`] opens nothing, reads no clock, and is no larger after a
//! thousand rounds than after ten. docs/methods/metrics.md lists the metrics.

mod accept;
mod exposed;
mod family;
mod protobuf;
mod text;
mod watched;

pub use accept::Format;
pub use exposed::{About, Exposed};
pub use watched::ExposedWatch;
