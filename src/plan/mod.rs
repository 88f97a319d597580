//! Which data point comes next: a plan is a value, and pure.
//!
//! Goes in: a request in the words of its method. Comes out: the points to run, in order, and what the method says
//! about them beforehand (how many, how long). A plan opens nothing, measures nothing and reads no clock.

pub mod calibrate;
pub mod curve;
pub mod layers;
pub mod lun;
pub mod orion;
mod request;
pub mod soak;
