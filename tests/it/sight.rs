//! What a run cannot have seen: one line under the answer of every verb that measures, and numbers that a model's
//! bucket confirms.

use crate::common::{Place, rigel};
use serde_json::Value;

/// What a command that answers prints, after what it prints beside it: Orion's own text is its output.
fn screen(place: &Place, command: &str) -> String {
    let (output, remarks) = printed(place, command);
    remarks + &output
}

/// What a command prints: its output, and its remarks.
fn printed(place: &Place, command: &str) -> (String, String) {
    let run = rigel(place, &format!("{command} --no-progress"))
        .output()
        .unwrap();
    // 3: something is not met; 4: that is not known.
    assert!(matches!(run.status.code(), Some(0 | 3 | 4)), "{run:?}");
    (
        String::from_utf8(run.stdout).unwrap(),
        String::from_utf8(run.stderr).unwrap(),
    )
}

/// The member `sight` of a report.
fn sight(place: &Place, command: &str) -> (Value, Value) {
    let report: Value =
        serde_json::from_str(&printed(place, &format!("{command} --json")).0).unwrap();
    (report["sight"].clone(), report)
}

#[test]
fn every_verb_that_measures_says_what_it_cannot_see() {
    let day = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples/cloud-day.csv");
    for (name, command) in [
        ("calibrate", "calibrate sim:8,500us --for 30s".to_string()),
        ("curve", "curve sim:8,500us --depth 8".into()),
        ("rate", "curve sim:8,500us --rate 2k".into()),
        ("expect", "expect p99<20ms@1000/s sim:8,500us".into()),
        ("fit", format!("fit {day} sim:8,500us")),
        ("duet", "duet sim:8,500us sim:8,600us".into()),
        ("soak", "soak sim:8,500us --every 1m --for 20m".into()),
        (
            "orion",
            "orion -run advanced -matrix point -num_small 1 -num_large 0 --target sim:2,500us"
                .into(),
        ),
    ] {
        let place = Place::new(&format!("sight-{name}"));
        let text = screen(&place, &format!("{command} --seed 1 --out run"));
        let line = text.replace('\n', " ");
        assert!(
            line.contains("This run cannot see pauses rarer than every "),
            "{text}"
        );
        assert!(line.contains("burst credit over "), "{text}");
        let page = std::fs::read_to_string(place.0.join("run/report.html")).unwrap();
        assert!(page.contains("This run cannot see pauses"), "{name}");
    }
}

#[test]
fn what_is_no_storage_has_no_limits_of_sight() {
    let place = Place::new("sight-null");
    let (sight, _) = sight(&place, "curve null: --depth 1 --out run");
    assert_eq!(sight, serde_json::json!({}));
}

/// A bucket that a run could not use up holds at least what the run cannot see: less would have been empty.
#[test]
fn credit_that_a_run_could_not_use_up_is_no_less_than_it_says() {
    for (target, member, held) in [
        (
            "sim:8,5656854ns,fixed,bandwidth=100MB,limit=156MB/s+2910MB",
            "bytes",
            2910e6,
        ),
        ("sim:8,500us,limit=300MB/s+300000MB", "bytes", 300_000e6),
        (
            "sim:8,500us,limit=6000/s+1500000",
            "operations",
            1_500_000.0,
        ),
    ] {
        for seed in 1..4 {
            let place = Place::new("sight-credit");
            let command = format!("calibrate {target} --for 30s --seed {seed} --out run-{seed}");
            let (sight, report) = sight(&place, &command);
            let unseen = sight["credit_beyond"][member].as_f64();
            let unseen = unseen.unwrap_or_else(|| panic!("{target} {seed}: {report}"));
            assert!(unseen <= held, "{target} {seed}: {unseen} of {held}");
            // A second at the maximum is the least that any run has in one piece.
            let seconds = sight["credit_beyond"][format!("{member}_s")]
                .as_f64()
                .unwrap();
            assert!(seconds > 1.0, "{target} {seed}: {seconds} s");
        }
    }
}

#[test]
fn credit_that_was_used_up_and_a_cache_that_answered_were_seen() {
    let place = Place::new("sight-seen");
    let (credit, _) = sight(
        &place,
        "calibrate sim:8,500us,limit=12000/s+60000 --seed 1 --out a",
    );
    assert!(credit["credit_beyond"].is_null(), "{credit}");
    assert!(
        credit["pauses_rarer_than_s"].as_f64() > Some(10.0),
        "{credit}"
    );
    let (cache, _) = sight(
        &place,
        "calibrate sim:8,200us,fixed,cache=8GiB@20us,size=64MiB --for 30s --seed 1 --out b",
    );
    assert!(cache["cache_beyond_bytes"].is_null(), "{cache}");
    assert!(cache["credit_beyond"].is_object(), "{cache}");
}
