//! Complete calibrations of models whose figures mislead: a volume that lies in a cache whole, and
//! burst credit that runs out during the run.

use crate::common::{Place, rigel};
use serde_json::Value;

/// The JSON report of a calibration.
fn calibrated(place: &Place, target: &str) -> Value {
    let command = format!("calibrate {target} --seed 1 --out run --no-progress --json");
    let run = rigel(place, &command).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    serde_json::from_slice(&run.stdout).expect("one document on stdout")
}

fn names(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings");
    let names = findings.iter().map(|finding| finding["name"].as_str());
    names.map(|name| name.expect("a name")).collect()
}

#[test]
fn a_volume_that_lies_in_a_cache_whole_is_warned_of_in_the_conclusion() {
    let place = Place::new("unseen-cache");
    // All of it fits into the cache, so that no part is faster than the whole.
    let report = calibrated(
        &place,
        "sim:8,200us,fixed,cache=8GiB@20us,size=64MiB --closing 5s",
    );
    assert!(names(&report).contains(&"cache-suspected"), "{report}");
    let conclusion = report["conclusion"]["sentence"].as_str().unwrap();
    assert!(conclusion.contains("may come from a cache"), "{conclusion}");
    assert_eq!(report["conclusion"]["status"], "warning");
}

#[test]
fn a_small_volume_without_a_cache_is_not_warned_of() {
    let place = Place::new("unseen-none");
    let report = calibrated(&place, "sim:8,20us,size=64MiB --closing 5s");
    assert!(!names(&report).contains(&"cache-suspected"), "{report}");
}

#[test]
fn after_burst_credit_the_result_is_the_rate_that_is_sustained() {
    let place = Place::new("unseen-credit");
    let report = calibrated(&place, "sim:16,1ms,limit=2000/s+60000");
    let names = names(&report);
    assert!(names.contains(&"burst-credit"), "{names:?}");
    let most = report["calibration"]["maximum"]["iops"]["value"]
        .as_f64()
        .expect("a maximum");
    assert!(
        (most / 2000.0 - 1.0).abs() < 0.02,
        "{most} for 2000: {names:?}"
    );
}
