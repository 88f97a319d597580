//! The quick tests, in one program: laws and searches in virtual time, what verbs print and write, house rules.
//!
//! A file here is a module, declared below; `tidy` fails where one is not. `cargo test --test it tidy::` runs those of
//! one file. No test here changes what a process has only once: its directory, environment, limits.

#[path = "../common/mod.rs"]
mod common;

mod advise;
mod compare;
mod compare_series;
mod curve;
mod docs;
mod html;
mod journal;
mod laws;
mod licences;
mod metrics;
mod mutated;
mod predictability;
mod search;
mod tidy;
