//! Plans: pure values that decide which data point comes next.
//!
//! Input: a request in the terms of its method. Output: the points to run, in order, and their
//! expected number and duration. A plan opens nothing, measures nothing and reads no clock.

pub mod calibrate;
pub mod curve;
mod fit;
pub mod layers;
pub mod lun;
pub mod orion;
mod precondition;
pub mod ranks;
mod request;
mod reread;
mod search;
pub mod soak;
mod visits;
