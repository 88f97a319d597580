//! Answers that are known beforehand, or by somebody else: what we measure is held against a witness of the same run,
//! on the kernel's own facilities.
//!
//! A device with programmed times, errors and stalls logs every read, and what is measured must lie where that log
//! says; the kernel's counters and its block trace must agree with our count and our coverage, of a capped device too;
//! Orion's files must follow from the journal; what was to be written must be on the disk; fio must do what the jobs
//! that we print say; and the memory is bounded. Nothing here asserts how fast anything is, nor that the machine is in
//! time: all of it holds on a machine that stops for a second at any moment. How close what is measured comes to what
//! was programmed is a figure of `make bench PARTS=truth`.
//!
//! Most of it needs root, loop devices and a tool; where they are missing the test says that it was skipped, and fails
//! if `RIGEL_REQUIRE_ALL` is set. What a test sets up is taken down even if the test fails.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod capped;
mod device;
mod faulty;
mod fio;
mod memory;
mod orion;
mod points;
mod throttle;
mod witness;
mod writes;

use common::{Place, text};
use points::{ENGINES, LENGTH, engine, measure, reads};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rigel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rigel")).args(arguments).output().unwrap()
}

/// A run of `rigel orion` that must end well, into the directory `run` of `place`.
#[track_caller]
fn rigel_orion(place: &Place, run: &str, arguments: &[&str]) -> PathBuf {
    let out = place.0.join(run);
    let output = rigel(&[&["orion", "-run", "advanced", "--out", text(&out), "--no-progress"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    out
}

/// The header and the points of a run's journal, as anybody would read them: line by line, as JSON.
fn journal(run: &Path) -> (Value, Vec<Value>) {
    let text = fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap()["header"].take();
    (header, lines.map(|mut line| line["point"].take()).collect())
}
