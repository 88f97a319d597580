//! Writes: all data counted as written are on disk, no sector repeats another, and nothing is
//! touched without permission.

use super::{engine_names, journal, rigel_orion};
use crate::common::{Place, scratch_file, text};
use rigel_model::MIB;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

const BLOCK: usize = 8192;

/// Operations of one kind over all seconds of a run's only point, by `reads` or `writes`.
fn done(point: &Value) -> BTreeMap<String, u64> {
    let kinds = point["streams"][0]["kinds"].as_array().unwrap();
    let count = |kind: &Value| {
        kind["windows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w["done"].as_u64().unwrap())
            .sum()
    };
    kinds
        .iter()
        .map(|kind| (kind["kind"].as_str().unwrap().to_string(), count(kind)))
        .collect()
}

#[test]
fn writes_are_counted_apart_and_every_one_is_on_the_disk() {
    let place = Place::new("truth-writes");
    std::thread::scope(|scope| {
        for name in engine_names() {
            let place = &place;
            scope.spawn(move || writes_of(place, name));
        }
    });
}

fn writes_of(place: &Place, name: &str) {
    let file = scratch_file(&format!("truth-writes-{name}"), 32 * MIB);
    let target = text(&file.path);
    for (percent, share) in [("100", 1.0), ("50", 0.5)] {
        let before = fs::read(&file.path).unwrap();
        let cell = [
            "-matrix",
            "point",
            "-num_small",
            "4",
            "-num_large",
            "0",
            "-duration",
            "1",
            "-cache_size",
            "0",
        ];
        let what = [
            "-write",
            percent,
            "--engine",
            name,
            "--target",
            target,
            "--destroy",
            target,
        ];
        let run = rigel_orion(
            place,
            &format!("{name}-{percent}"),
            &[&cell[..], &what].concat(),
        );
        let after = fs::read(&file.path).unwrap();
        let (_, points) = journal(&run);
        let done = done(&points[0]);
        let all: u64 = done.values().sum();
        let writes = done["write"];
        let what = format!("{name} -write {percent}: {done:?}");
        assert_eq!(done.contains_key("read"), percent == "50", "{what}");
        // Each operation is drawn independently: allow six standard deviations of chance.
        let chance = 6.0 * (all as f64 * share * (1.0 - share)).sqrt();
        assert!(
            (writes as f64 - all as f64 * share).abs() <= chance,
            "{what}"
        );

        assert_eq!(before.len(), after.len(), "{what}");
        let blocks = before.chunks(BLOCK).zip(after.chunks(BLOCK));
        let changed: Vec<&[u8]> = blocks
            .filter(|(old, new)| old != new)
            .map(|(_, new)| new)
            .collect();
        let coverage = &points[0]["streams"][0]["coverage"];
        let (extent, distinct) = (
            coverage["extent"].as_u64().unwrap(),
            coverage["distinct"].as_u64().unwrap(),
        );
        assert_eq!(extent, (before.len() / BLOCK) as u64);
        if percent == "100" {
            assert_eq!(
                changed.len() as u64,
                distinct,
                "{what}: every block touched is a block written"
            );
        } else {
            assert_close_to_draws(changed.len() as u64, writes, extent, &what);
        }
        let mut sectors = HashSet::new();
        changed
            .iter()
            .flat_map(|block| block.chunks(512))
            .for_each(|sector| {
                assert!(sectors.insert(sector), "{what}: a sector was written twice");
            });
    }
}

/// Checks that `distinct` is the number of blocks that `draws` out of `extent` touch, within six
/// standard deviations.
fn assert_close_to_draws(distinct: u64, draws: u64, extent: u64, what: &str) {
    let (draws, extent) = (draws as f64, extent as f64);
    let missed = (-draws / extent).exp();
    let deviation = (extent * (missed - (1.0 + draws / extent) * missed * missed)).sqrt();
    let expected = extent * (1.0 - missed);
    let off = (distinct as f64 - expected).abs();
    assert!(
        off <= 6.0 * deviation + 1.0,
        "{what}: {distinct} blocks changed, expected {expected} ± {deviation}"
    );
}

#[test]
fn without_leave_nothing_is_written() {
    let place = Place::new("truth-refused");
    let file = scratch_file("truth-refused", 16 * MIB);
    let other = scratch_file("truth-refused-other", MIB);
    let hash = || {
        let mut hasher = DefaultHasher::new();
        fs::read(&file.path).unwrap().hash(&mut hasher);
        (
            hasher.finish(),
            fs::metadata(&file.path).unwrap().modified().unwrap(),
        )
    };
    let before = hash();
    for destroy in [&[][..], &["--destroy", text(&other.path)]] {
        let out = place.0.join("run");
        let output = Command::new(env!("CARGO_BIN_EXE_rigel"))
            .args([
                "orion",
                "-run",
                "oltp",
                "-write",
                "50",
                "-duration",
                "1",
                "--target",
                text(&file.path),
            ])
            .args(["--out", text(&out)])
            .args(destroy)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("--destroy {}", text(&file.path))),
            "no hint: {said}"
        );
        assert!(!out.exists(), "a refused run leaves nothing behind");
        assert_eq!(hash(), before, "the file was touched");
    }
}
