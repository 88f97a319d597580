//! The quick tests, in one program: laws and searches in virtual time, output of verbs, house
//! rules.
//!
//! Each file here is a module, declared below; `tidy` fails if one is not. `cargo test --test it
//! tidy::` runs the tests of one file. No test here changes global state of the process: its
//! directory, environment, limits.

#[path = "../common/mod.rs"]
mod common;

mod advise;
mod circles;
mod compare;
mod compare_series;
mod curve;
mod demands;
mod docs;
mod duet;
mod expect;
mod fit;
mod fuzz;
mod html;
mod journal;
mod laws;
mod licences;
mod metrics;
mod mutated;
mod one_screen;
mod oracle;
mod outputs;
mod pmi;
mod predictability;
mod queues;
mod ranks;
mod ranks_fit;
mod ranks_live;
mod ranks_soak;
mod schema;
mod search;
mod sight;
mod soak_table;
mod tidy;
mod unsafe_code;
mod unseen;
