//! Which operation comes next: pure and seeded.
//!
//! Goes in: a mix, a pattern, an extent and a seed. Comes out: [`Op`](crate::model::Op)s, and the bytes that
//! writes carry.
//! The same seed gives the same operations for ever. This room knows nothing of time or of targets.

pub mod content;
mod ops;
mod permutation;
pub mod rng;
mod sessions;
mod zipf;

pub use ops::{Ops, Share};
pub use permutation::Permutation;
