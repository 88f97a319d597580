//! A demand is the same demand for every command that judges storage by it: the same names, and the same
//! findings against it.

use crate::common::{Place, rigel};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The database of the watch in docs/examples, as its URL and as it is shown.
const URL: &str = "postgres://rigel@%2Fsrv%2Fdemo%2Fpg%2Frigel-sql-4873/postgres";
const SHOWN: &str = "rigel@/srv/demo/pg/rigel-sql-4873 (postgres)";

/// Time of the reads in the example after its interval, and what it would be at 13 us a read.
const READ_US: (&str, &str) = (
    r#""pg_stat_database.blk_read_time_us":9379840"#,
    r#""pg_stat_database.blk_read_time_us":2678101"#,
);

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The watch as it is, or with reads that the page cache answered.
fn watch(place: &Place, from_memory: bool) {
    let journal =
        std::fs::read_to_string(repository("docs/examples/watch-postgres.jsonl")).unwrap();
    assert_eq!(journal.matches(READ_US.0).count(), 1);
    let journal = if from_memory {
        journal.replace(READ_US.0, READ_US.1)
    } else {
        journal
    };
    std::fs::write(place.0.join("watch.jsonl"), journal).unwrap();
}

/// The JSON report of a fit of the watch's `of`.
fn fit_of(place: &Place, of: &str, out: &str) -> Value {
    let options = "--write --multiples 1..1 --point-time 2s --seed 1 --no-progress --json";
    let done = rigel(place, &format!("fit watch.jsonl sim:8,100us {options}"))
        .args(["--out", out, "--of", of])
        .output()
        .unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", shown(&done.stderr)))
}

fn names(findings: &Value) -> Vec<&str> {
    let findings = findings.as_array().expect("findings");
    let names = findings.iter().map(|one| one["name"].as_str().unwrap());
    names.collect()
}

/// What the fit was asked to keep of random reads.
fn objective(report: &Value) -> &str {
    let streams = report["fit"]["multiples"][0]["streams"].as_array();
    let mut streams = streams.expect("streams").iter();
    let reads = streams.find(|one| one["kind"] == "random-reads");
    reads.unwrap()["objective"]["objective"].as_str().unwrap()
}

#[test]
fn a_database_is_named_by_its_url_or_as_it_is_shown() {
    let place = Place::new("demands-names");
    watch(&place, false);
    let of = |name: &str, out: &str| fit_of(&place, name, out)["fit"]["offered"].clone();
    assert_eq!(of(SHOWN, "shown"), of(URL, "url"));
    let wrong = rigel(&place, "fit watch.jsonl sim:8,100us --of sdz").output();
    let said = shown(&wrong.unwrap().stderr);
    for name in ["vda", SHOWN] {
        assert!(said.contains(name), "{said}");
        fit_of(&place, name, &format!("again-{}", name.len()));
    }
}

#[test]
fn reads_that_the_page_cache_answered_are_no_objective() {
    let place = Place::new("demands-memory");
    let memory = "reads-from-memory";
    watch(&place, false);
    let report = fit_of(&place, SHOWN, "disk");
    assert_eq!(objective(&report), "mean<162us");
    assert!(!names(&report["findings"]).contains(&memory), "{report}");
    watch(&place, true);
    let report = fit_of(&place, SHOWN, "memory");
    assert_eq!(objective(&report), "p99<10ms");
    assert!(names(&report["findings"]).contains(&memory), "{report}");
    assert_eq!(report["trust"]["level"], "with care");
    // A disk is the storage, however fast it is.
    let report = fit_of(&place, "vda", "vda");
    assert!(!names(&report["findings"]).contains(&memory), "{report}");
    // The watch says it too, and where to look instead.
    let watched = rigel(&place, "report watch.jsonl --verbose").output();
    let said = shown(&watched.unwrap().stdout);
    assert!(
        said.contains(memory) && said.contains("the disk's own demand"),
        "{said}"
    );
}

#[test]
fn advice_says_against_a_demand_what_a_fit_says() {
    let place = Place::new("demands-advice");
    let whole = std::fs::read_to_string(repository("tests/imports/awr_synthetic.html")).unwrap();
    std::fs::write(place.0.join("cut.html"), &whole[..whole.len() - 40]).unwrap();
    let calibrated = rigel(
        &place,
        "calibrate sim:8,200us --seed 1 --out run --no-progress",
    )
    .output();
    assert!(calibrated.unwrap().status.success());
    let said = |arguments: &str| shown(&rigel(&place, arguments).output().unwrap().stdout);
    let of_fit = said(
        "fit cut.html sim:8,200us --multiples 1..1 --point-time 2s --seed 1 --no-progress --json --out fit",
    );
    let of_fit: Value = serde_json::from_str(&of_fit).unwrap();
    let of_advice = said("advise run --for oracle --json --demand cut.html");
    let of_advice: Value = serde_json::from_str(&of_advice).unwrap();
    let against = names(&of_advice["demand"]["findings"]);
    for name in ["report-cut", "demand-censored", "bursts-unknown"] {
        assert!(against.contains(&name), "{name}: {against:?}");
        assert!(names(&of_fit["findings"]).contains(&name), "{name}");
    }
    assert_eq!(of_advice["trust"]["level"], of_fit["trust"]["level"]);
    for extent in ["", "--verbose"] {
        let text = said(&format!(
            "advise run --for oracle {extent} --demand cut.html"
        ));
        assert!(text.contains("report-cut: cut.html"), "{text}");
        assert!(text.contains("Trust: with care"), "{text}");
    }
}
