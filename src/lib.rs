//! Rigel predicts what a storage platform will do for a database, and proves it: the command line.
//!
//! `docs/ARCHITECTURE.md` has the map of the crates and their invariants.

pub mod cli;
pub mod script;
pub mod serve;
