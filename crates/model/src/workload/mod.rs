//! Generates operations: pure and seeded.
//!
//! Input: a mix, a pattern, an extent and a seed. Output: [`Op`](crate::Op)s, and the
//! content of writes. The same seed always gives the same operations. This module does not know
//! time or targets.

pub mod content;
mod ops;
mod permutation;
pub mod rng;
mod sessions;
mod zipf;

pub use ops::{Ops, Share};
pub use permutation::Permutation;
