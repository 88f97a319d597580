//! Rigel predicts what a storage platform will do for a database, and proves it.
//!
//! A **plan** decides which *data point* comes next, given the measurements so far. A data point is
//! a few **streams** that run together; each has a *load* (when), a *workload* (what) and a
//! *target* (where). One **loop** drives every load on every engine, and every operation leaves the
//! same **record**: due, start, done, outcome. **Analysis** and **reports** depend only on the
//! records, so they can be repeated next year.
//!
//! | module | purpose |
//! |---|---|
//! | [`model`] | the nouns: plain data, parsed and printed |
//! | [`plan`] | decides which data point comes next |
//! | [`files`] | writes results and reads texts, among hostile users |
//! | [`workload`] | generates operations |
//! | [`engine`] | executes single operations |
//! | [`drive`] | the main loop: load, pacing, threads of one point |
//! | [`record`] | stores results: histograms, windows, coverage, the journal |
//! | [`import`] | parses the results of other tools |
//! | [`observe`] | facts and counters of the host |
//! | [`ranks`] | this process among those that a process manager started on several hosts |
//! | [`server`] | runs a private database server |
//! | [`analyse`] | interprets the records |
//! | [`report`] | presents the results |
//! | [`run`] | runs point after point, and writes them to the journal |
//! | [`script`] | files for a database that Rigel does not reach itself |
//! | [`watch`] | the demand of a live host, without a load of its own |
//! | [`serve`] | a small HTTP server for metrics |
//! | [`preflight`] | the preflight check: facts and warnings |
//! | [`cli`] | one file per verb |
//! | [`clock`] | the only module that reads time |
//! | [`bounded`] | calls that may never return |
//!
//! Start reading at [`run`], then [`drive`]. `docs/ARCHITECTURE.md` has the map and the invariants.

pub mod analyse;
pub mod bounded;
pub mod cli;
pub mod clock;
pub mod drive;
pub mod engine;
pub mod files;
pub mod import;
pub mod model;
pub mod observe;
pub mod plan;
pub mod preflight;
pub mod ranks;
pub mod record;
pub mod report;
pub mod run;
pub mod script;
pub mod serve;
pub mod server;
pub mod watch;
pub mod workload;
