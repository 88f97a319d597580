//! Rigel tells what a storage platform will do for a database, and proves it.
//!
//! A **plan** says which *data point* comes next, given what has been measured so far.
//! A data point is a few **streams** running together; each has a *load* (when), a *workload* (what)
//! and a *target* (where).
//! One **loop** drives every load on every engine, and every operation leaves the same **record**: due, start, done,
//! outcome.
//! **Analysis** and **reports** are functions of the records alone, so they can be run again next year.
//!
//! | room | what it is |
//! |---|---|
//! | [`model`] | the nouns: plain data, parsed and printed |
//! | [`plan`] | which data point comes next |
//! | [`files`] | results that are written and texts that are read, among hostile users |
//! | [`workload`] | which operation comes next |
//! | [`engine`] | how one operation is executed |
//! | [`drive`] | the loop: load, pacing, threads of one point |
//! | [`record`] | what is kept: histograms, windows, coverage, the journal |
//! | [`import`] | other tools' results, read from their files |
//! | [`observe`] | facts and counters of the host |
//! | [`server`] | a database server of Rigel's own |
//! | [`analyse`] | what the records mean |
//! | [`report`] | how it looks |
//! | [`run`] | the conductor: point after point, into the journal |
//! | [`serve`] | a small HTTP server for metrics |
//! | [`look`] | the look before a run: facts and warnings |
//! | [`cli`] | one file a verb |
//! | [`clock`] | the only reader of time |
//!
//! Start reading at [`run`], then [`drive`]. `docs/ARCHITECTURE.md` has the map and the invariants.

pub mod analyse;
pub mod cli;
pub mod clock;
pub mod drive;
pub mod engine;
pub mod files;
pub mod import;
pub mod look;
pub mod model;
pub mod observe;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod serve;
pub mod server;
pub mod workload;
