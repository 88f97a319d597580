//! What a soak tells Prometheus while it runs, in the three formats that scrapers ask for.
//!
//! Goes in: the rounds so far, one by one, and the `Accept` of a scraper. Comes out: a content type and a body. Pure:
//! an [`Exposed`] opens nothing, knows no clock, and is no larger after a thousand rounds than after ten.
//! docs/methods/metrics.md lists the metrics.

mod accept;
mod exposed;
mod family;
mod protobuf;
mod text;

pub use accept::Format;
pub use exposed::{About, Exposed};
