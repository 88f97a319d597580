//! The program: parse, call one verb, return its exit status.

fn main() {}
