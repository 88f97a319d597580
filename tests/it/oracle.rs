//! The files for Oracle Database, and what is read from their spools.
//!
//! No Oracle server is here. The files are golden; their shell script runs with a client that is a
//! script itself; the spools were made by hand from the formats of the files, as their first lines
//! say. The loop's logic runs in MariaDB: `tests/sql`. An independent grammar has read the statements:
//! docs/decisions.

use crate::common::{Place, ends, golden, golden_screen, stderr};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CONF: &str = "UPDATE_PCT=20\nSCAN_PCT=10\nRUN_TIME=60\nSCALE=80M\nWORK_UNIT=64\nDO_HOTSPOT=TRUE\n\
                    HOT_SCHEMA_FREQUENCY=5\nTHINK_TM_FREQUENCY=10\nTHINK_TM_MIN=.01\nTHINK_TM_MAX=.02\n";

const FILES: [&str; 11] = [
    "README.txt",
    "1_grants.sql",
    "2_create.sql",
    "3_load.sql",
    "4_index.sql",
    "5_proof.sql",
    "6_start.sql",
    "7_figures.sql",
    "8_session.sql",
    "9_drop.sql",
    "run.sh",
];

fn written(name: &str) -> Place {
    let place = Place::new(name);
    fs::write(place.0.join("slob.conf"), CONF).unwrap();
    ends(
        &place,
        "sql script oracle --conf slob.conf -s 2 -t 2 files",
        0,
    );
    place
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_files_are_these() {
    let place = written("oracle-files");
    for file in FILES {
        let text = read(&place.0.join("files").join(file));
        golden(&format!("oracle/{file}"), &text);
        assert!(!text.contains("{{"), "{file} has a name without a value");
    }
    let mode = fs::metadata(place.0.join("files"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn existing_files_are_never_changed() {
    let place = written("oracle-existing");
    let readme = place.0.join("files/README.txt");
    fs::write(&readme, "mine").unwrap();
    for line in [
        "sql script oracle files",
        "sql script oracle-calibrate files",
    ] {
        let said = stderr(&ends(&place, line, 2));
        assert!(said.contains("cannot make 'files'"), "{said}");
    }
    assert_eq!(read(&readme), "mine");
}

#[test]
fn redo_above_the_limit_is_refused_before_anything_is_written() {
    let place = Place::new("oracle-redo");
    for (line, part) in [
        (
            "sql script oracle --scale 1GiB --max-redo 100MiB files",
            "the load would write about",
        ),
        (
            "sql script oracle --scale 10000 --update 100% --work-loop 1000000 --max-redo 1GiB files",
            "a run would write about",
        ),
        (
            "sql script oracle --tablespace x;y files",
            "is not a plain name",
        ),
    ] {
        let said = stderr(&ends(&place, line, 2));
        assert!(said.contains(part), "{line}: {said}");
        assert!(!place.0.join("files").exists());
    }
}

/// A client that notes how it was called, and answers as the files would.
const CLIENT: &str = r#"#!/bin/sh
echo "arguments: $*" >>"$CALLS"
env >>"$CALLS"
while IFS= read -r line; do
  case $line in
    CONNECT*) echo "$line" >>"$CONNECTS" ;;
    @6_start*) set -- $line; echo "RIGEL|$2|driver|start|1790000000000000" ;;
    @7_figures*) set -- $line
      [ "$3" = before ] && v=0 || v=60000000
      echo "RIGEL|$2|$3|moment|$((1790000010000000 + v))"
      echo "RIGEL|$2|$3|statistic|physical reads|$((v / 1000))" ;;
    @8_session*) set -- $line
      echo "RIGEL|$3|session $2|begin|$4|$4|$5|9"
      echo "RIGEL|$3|session $2|operations|read|100|0|6400|60000000|1000|900000"
      echo "RIGEL|$3|session $2|latency|read|1048576|100"
      echo "RIGEL|$3|session $2|end|$4|$(($4 + 60000000))|0|0|complete" ;;
  esac
done
"#;

#[test]
fn the_script_collects_one_spool_and_shows_no_password() {
    let place = written("oracle-run");
    let files = place.0.join("files");
    let client = place.0.join("client");
    fs::write(&client, CLIENT).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.0.join("secret"), "tiger&1\n").unwrap();
    let run = |arguments: &str| {
        std::process::Command::new("sh")
            .args(["-c", &format!("exec sh files/run.sh {arguments} 3<secret")])
            .current_dir(&place.0)
            .env("RIGEL_SQLPLUS", &client)
            .env("RIGEL_CONNECT", "bench@//db1:1521/pdb1")
            .env("RIGEL_PASSWORD_FD", "3")
            .env("RIGEL_YES", "1")
            .env("CALLS", place.0.join("calls"))
            .env("CONNECTS", place.0.join("connects"))
            .output()
            .unwrap()
    };
    let output = run("run first");
    assert!(output.status.success(), "{output:?}");
    let calls = read(&place.0.join("calls"));
    assert!(calls.contains("arguments: -S /nolog") && !calls.contains("tiger"));
    let connects = read(&place.0.join("connects"));
    assert!(
        connects
            .lines()
            .all(|line| line == "CONNECT bench/\"tiger&1\"@//db1:1521/pdb1"),
        "{connects}"
    );
    let spool = read(&files.join("spool_first.txt"));
    assert!(
        spool.contains("|driver|end|4\n") && !spool.contains("tiger"),
        "{spool}"
    );
    let mode = fs::metadata(files.join("spool_first.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "others may not read it");
    let found = imported(&place, "files/spool_first.txt");
    let figures = &found["database"]["loops"][0];
    assert_eq!(figures["sessions"], 4);
    assert_eq!(figures["kinds"][0]["done"], 400);

    // A name is used once, and no name leaves the directory.
    assert!(stderr(&run("run first")).contains("there is a spool_first.txt already"));
    assert!(stderr(&run("run ../x")).contains("letters, digits and _ only"));
}

#[test]
fn a_password_in_the_name_of_the_user_is_refused_and_not_shown() {
    let place = written("oracle-password");
    let output = std::process::Command::new("sh")
        .args(["files/run.sh", "proof"])
        .current_dir(&place.0)
        .env("RIGEL_SQLPLUS", "true")
        .env("RIGEL_CONNECT", "scott/tiger@db")
        .output()
        .unwrap();
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("contains a password"));
    assert!(!said.contains("tiger"), "{said}");
}

// ---- spools ----

fn sample(sessions: u32) -> String {
    read(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/imports/spool_made_by_hand_{sessions}.txt")),
    )
}

/// The JSON report of imported files.
#[track_caller]
fn imported(place: &Place, files: &str) -> Value {
    let output = ends(place, &format!("import {files} --json"), 0);
    serde_json::from_slice(&output.stdout).expect("one document")
}

fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] != "note")
        .map(|finding| (text(&finding["name"]), text(&finding["what"])))
        .collect()
}

#[test]
fn a_spool_becomes_a_report() {
    let place = Place::new("oracle-spool");
    fs::write(place.0.join("two.txt"), sample(2)).unwrap();
    ends(&place, "import two.txt --out run", 0);
    let output = ends(&place, "report run --verbose", 0);
    let text = String::from_utf8(output.stdout).unwrap();
    // The date of the import and the version are not of the spool.
    let body = text.split_once("\n\n").unwrap().1;
    let body = body.split("\nAll of it: ").next().unwrap();
    golden("oracle/spool.txt", body);
    assert!(text.contains("made by hand for tests"));
}

#[test]
fn a_spool_has_what_it_was_made_of() {
    let place = Place::new("oracle-figures");
    fs::write(place.0.join("two.txt"), sample(2)).unwrap();
    let report = imported(&place, "two.txt");
    assert_eq!(findings(&report), []);
    let figures = &report["database"]["loops"][0];
    let rows: f64 = figures["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["done"].as_f64().unwrap() * kind["rows_each"].as_f64().unwrap())
        .sum();
    // Every row was read from storage, by one wait.
    let witness = &figures["witnesses"][3];
    assert_eq!(witness["first"][1].as_f64(), Some(rows));
    assert_eq!(witness["second"][1].as_f64(), Some(rows));
    for kind in figures["kinds"].as_array().unwrap() {
        let of = |name: &str| kind[name].as_f64().unwrap();
        let quantiles: Vec<f64> = ["min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"]
            .map(of)
            .to_vec();
        assert!(
            quantiles.windows(2).all(|two| two[0] <= two[1]),
            "{quantiles:?}"
        );
    }
    let stream = &report["database"]["demands"][0]["intervals"][0]["streams"][0];
    assert_eq!(stream["kind"], "random-reads");
    assert!(!stream["latencies"].as_array().unwrap().is_empty());
}

#[test]
fn spools_of_more_and_more_sessions_are_a_curve() {
    let place = Place::new("oracle-curve");
    for sessions in [4, 1, 2] {
        fs::write(place.0.join(format!("{sessions}.txt")), sample(sessions)).unwrap();
    }
    let report = imported(&place, "4.txt 1.txt 2.txt");
    let loads: Vec<&Value> = report["imported"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|source| source["loads"].as_array().unwrap())
        .filter(|load| load["kind"] == "mixed")
        .collect();
    let depths: Vec<&Value> = loads.iter().map(|load| &load["outstanding"]).collect();
    assert_eq!(depths, [1, 2, 4]);
    let rates: Vec<f64> = loads
        .iter()
        .map(|load| load["iops"].as_f64().unwrap())
        .collect();
    assert!(rates.windows(2).all(|two| two[0] < two[1]), "{rates:?}");
}

#[test]
fn a_spool_that_is_not_whole_says_so() {
    let place = Place::new("oracle-broken");
    let whole = sample(2);
    let cut = whole.find("RIGEL|made_2|session 2|latency").unwrap();
    for (name, text, finding, part) in [
        (
            "cut",
            whole[..cut].to_string(),
            "incomplete",
            "1 of 2 sessions printed their end",
        ),
        (
            "cut",
            whole[..cut].to_string(),
            "report-cut",
            "is cut short",
        ),
        (
            "error",
            whole.replace(
                "RIGEL|made_2|session 2|begin",
                "ERROR at line 1:\nORA-00257: archiver error\nRIGEL|made_2|session 2|begin",
            ),
            "spool-errors",
            "ORA-00257",
        ),
        (
            "failures",
            whole.replace(
                "RIGEL|made_2|session 2|end",
                "RIGEL|made_2|session 2|failed|-1555|7\nRIGEL|made_2|session 2|end",
            ),
            "failures",
            "7 by ORA-01555",
        ),
        (
            "batched",
            whole.replace(
                "own|after|Batched IO vector read count|20000",
                "own|after|Batched IO vector read count|20400",
            ),
            "witnesses",
            "'Batched IO vector read count' is 400",
        ),
        (
            "archiving",
            whole.replace("|0|0|complete", "|0|0|archiving"),
            "incomplete",
            "logs that could not be archived",
        ),
    ] {
        fs::write(place.0.join("spool.txt"), &text).unwrap();
        assert!(text != whole, "{name}");
        let found = findings(&imported(&place, "spool.txt"));
        assert!(
            found
                .iter()
                .any(|(kind, what)| kind == finding && what.contains(part)),
            "{name}: {found:?}"
        );
    }
    fs::write(
        place.0.join("mixed.txt"),
        format!("{}{}", sample(1), sample(2)),
    )
    .unwrap();
    let mixed = stderr(&ends(&place, "import mixed.txt", 2));
    assert!(
        mixed.contains("lines of two runs, made_1 and made_2"),
        "{mixed}"
    );
    let before = whole.find("RIGEL|made_2|session 1").unwrap();
    fs::write(place.0.join("nothing.txt"), &whole[..before]).unwrap();
    let nothing = stderr(&ends(&place, "import nothing.txt", 1));
    assert!(nothing.contains("has no session that ended"), "{nothing}");
}

// ---- CALIBRATE_IO ----

/// As `calibrate_io.sql` prints it; made by hand.
const CLAIMED: &str = "\
RIGEL|calibrate_io|spool|1|MADE|CDB$ROOT
RIGEL|calibrate_io|asked|1|20
RIGEL|calibrate_io|old|2025-01-01T00:00:00|2025-01-01T00:05:00|1000|100|90|9|1
RIGEL|calibrate_io|parameter|filesystemio_options|SETALL
RIGEL|calibrate_io|files|4|4
RIGEL|calibrate_io|returned|160000|501|0
RIGEL|calibrate_io|status|READY
RIGEL|calibrate_io|row|2026-11-21T10:00:00|2026-11-21T10:05:00|160000|501|480|0|1
RIGEL|calibrate_io|end
";

#[test]
fn a_claim_stands_beside_a_calibration() {
    let place = Place::new("oracle-claim");
    ends(
        &place,
        "calibrate sim:8,100us --seed 1 --out ours --no-progress",
        0,
    );
    fs::write(place.0.join("claimed.txt"), CLAIMED).unwrap();
    let output = ends(&place, "import claimed.txt --out theirs", 0);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("a latency below 0.5 ms"), "{text}");

    let output = ends(&place, "compare ours theirs", 0);
    golden_screen(
        "oracle/claimed.txt",
        &String::from_utf8(output.stdout).unwrap(),
    );
    let output = ends(&place, "compare theirs ours --json", 0);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Eight servers of 100 us do 80,000 per second: half of the claim.
    let ours = found["by_mean"]["iops"]["value"].as_f64().unwrap();
    assert!((ours / 80_000.0 - 1.0).abs() < 0.02, "{ours}");
    assert_eq!(found["bound_ms"], 20.0);

    let said = stderr(&ends(&place, "compare theirs theirs/journal.jsonl", 2));
    assert!(said.contains("given twice"), "{said}");
    ends(&place, "curve sim:8,5ms --out curve --no-progress", 0);
    let said = self::stderr(&ends(&place, "compare curve theirs", 2));
    assert!(
        said.contains("stands beside one calibration of Rigel's only"),
        "{said}"
    );
}
