//! Known results, or results known to another witness: compares our measurements with a witness of
//! the same run, on the kernel's own facilities.
//!
//! A device with programmed times, errors and stalls logs every read, and measurements must be
//! within the bounds of that log; the kernel's counters and block trace must agree with our count
//! and our coverage, also for a capped device; Orion's files must follow from the journal; written
//! data must be on disk; fio must follow the jobs that we print; and memory is bounded. Nothing
//! here asserts any speed, nor that the machine is in time: all of it holds on a machine that may
//! stop for a second at any moment. `make bench PARTS=truth` reports how close measurements come to
//! the programmed values.
//!
//! Most of it needs root, loop devices and a tool; if they are missing the test reports that it was
//! skipped, and fails if `RIGEL_REQUIRE_ALL` is set. The setup of a test is removed even if the
//! test fails.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod capped;
mod device;
mod faulty;
mod fio;
mod kernel_time;
mod liar;
mod memory;
mod orion;
mod points;
mod ranks;
mod ranks_capped;
mod ranks_neighbours;
mod reread;
mod syncs;
mod throttle;
mod verify;
mod watch;
mod witness;
mod writes;

use common::{Place, text};
use points::{LENGTH, engine, engine_names, measure, reads};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rigel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rigel"))
        .args(arguments)
        .output()
        .unwrap()
}

/// A run of `rigel orion` that must succeed, into the directory `run` of `place`.
#[track_caller]
fn rigel_orion(place: &Place, run: &str, arguments: &[&str]) -> PathBuf {
    let out = place.0.join(run);
    let output = rigel(
        &[
            &[
                "orion",
                "-run",
                "advanced",
                "--out",
                text(&out),
                "--no-progress",
            ],
            arguments,
        ]
        .concat(),
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    out
}

/// The header and the points of a run's journal, parsed line by line as plain JSON.
fn journal(run: &Path) -> (Value, Vec<Value>) {
    let text = fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap()["header"].take();
    // A machine that stops for ten seconds leaves lines of stalls among them.
    let points = lines.filter_map(|mut line| line.get_mut("point").map(Value::take));
    (header, points.collect())
}
