//! The command line: one file a verb.
//!
//! Goes in: arguments. Comes out: requests for the other rooms, and everything that is printed. Measures nothing.

pub mod orion_args;
