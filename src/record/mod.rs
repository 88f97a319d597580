//! What is kept of a run: histograms, tallies by the second, coverage, the journal.
//!
//! Goes in: the life of every operation. Comes out: [`PointRecord`]s, and the journal that holds them.
//! This room keeps facts; it never judges and never opens a target.

pub mod coverage;
pub mod histogram;
pub mod imported;
pub mod journal;
mod recording;

pub use coverage::{Coverage, CoverageMap};
pub use histogram::{Band, Histogram};
pub use imported::Imported;
pub use recording::{End, KindRecord, Latencies, PointRecord, Recorder, Seconds, StreamRecord, Times, WINDOW, Window};
