//! What the facts and records mean.
//!
//! Goes in: facts, samples, recordings. Comes out: derived numbers, and findings with their evidence and cure. Pure,
//! and never fails: what it cannot tell it leaves out, what it doubts it says. It opens nothing and reads no clock, so
//! it works on last year's journal.

mod doubts;
mod load;
mod precise;
mod steady;
mod summary;

pub use doubts::doubts;
pub use load::{DeviceLoad, HostLoad, device_loads, host_load};
pub use precise::is_precise;
pub use steady::{Steady, steady};
pub use summary::{ClassSummary, CoverageSummary, LatencySummary, PointSummary, Witness, summarise};
