//! Answers that are known beforehand, or by somebody else: what we measure is held against them, on the kernel's own
//! facilities.
//!
//! A cap on a device must come out as the rate, and the times, errors and stalls of a programmed one as they were
//! programmed; the kernel's counters and its block trace must agree with our count and our coverage; Orion's files must
//! follow from the journal; what was to be written must be on the disk; fio must do what the jobs that we print say; and
//! the memory is bounded. Nothing here asserts how fast anything is.
//!
//! Most of it needs root, loop devices and a tool; where they are missing the test says that it was skipped, and fails
//! if `RIGEL_REQUIRE_ALL` is set. What a test sets up is taken down even if the test fails.

#[path = "../common/mod.rs"]
mod common;

mod device;
mod faulty;
mod fio;
mod memory;
mod orion;
mod throttle;
mod witness;
mod writes;

use common::{Place, text};
use rigel::clock::Clock;
use rigel::drive::Terms;
use rigel::engine::Engine;
use rigel::engine::layout::VolumeMap;
use rigel::engine::libaio::Libaio;
use rigel::engine::opened::Opened;
use rigel::engine::psync::Psync;
use rigel::engine::uring::Uring;
use rigel::engine::volume::Volume;
use rigel::model::{Coordinates, Layout, Load, Mix, Pattern, Point, Stream, Until, WarmUp};
use rigel::record::PointRecord;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

/// Engines that work on files and devices.
const ENGINES: [&str; 3] = ["uring", "libaio", "psync"];

/// The engine `name` on the volume of `paths`, for reading `length` bytes at a time at `depth`.
fn engine(name: &str, paths: &[PathBuf], layout: Layout, length: u32, depth: u32) -> Box<dyn Engine> {
    let size = |path: &PathBuf| {
        use std::io::{Seek, SeekFrom};
        fs::File::open(path).unwrap().seek(SeekFrom::End(0)).unwrap()
    };
    let sizes: Vec<u64> = paths.iter().map(size).collect();
    let map = VolumeMap::new(&sizes, layout, length.into()).unwrap();
    let members: Vec<_> = paths.iter().map(|path| Opened::open(path).unwrap()).collect();
    let volume = Volume::to_read(&members, map, true).unwrap();
    match name {
        "psync" => Box::new(Psync::new(Clock::real(), volume)),
        "libaio" => Box::new(Libaio::new(Clock::real(), volume)),
        "uring" => Box::new(Uring::new(Clock::real(), volume, &vec![length; depth as usize]).unwrap()),
        _ => panic!("no engine {name}"),
    }
}

/// A closed loop of reads.
fn reads(pattern: Pattern, length: u32, depth: u32, warm_up: WarmUp, until: Until) -> Point {
    let stream =
        Stream { sql: None, name: "small".into(), load: Load::Closed { depth }, mix: Mix::READS, pattern, length };
    Point {
        coordinates: Coordinates::cell(depth, 0),
        streams: vec![stream],
        warm_up,
        until,
        seed: 5,
        window: Point::second(),
    }
}

fn measure(engine: &dyn Engine, point: &Point) -> PointRecord {
    let terms = Terms { workers: 1, stop: &AtomicBool::new(false), enough: &|_| false };
    rigel::drive::point(engine, point, &terms, &mut |_| ()).unwrap()
}

/// `value` is within `share` of `expected`.
#[track_caller]
fn assert_close(value: f64, expected: f64, share: f64, what: &str) {
    assert!((value - expected).abs() <= expected * share, "{what}: {value}, expected {expected} ± {}%", share * 100.0);
}

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
