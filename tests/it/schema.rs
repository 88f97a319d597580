//! What `--json` prints is what `rigel schema` says of it.

use crate::common::schema::{compared, fits, schema};
use crate::common::{Place, golden, rigel};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Documents that need a server: tests/sql compares them.
const OF_SERVERS: [&str; 2] = ["layers", "sql"];

/// Commands whose last makes a document of the schema: of models, files and folders, in order.
const COMMANDS: [(&str, &str); 26] = [
    (
        "calibrate",
        "calibrate sim:8,500us --for 30s --seed 1 --out calibration",
    ),
    (
        "calibrate",
        "calibrate sim:8,500us,slow=25ms@1.5%,limit=2000/s+10000 --for 30s --provisioned 2000iops --expect iops>=900 --seed 1 --out \
         capped",
    ),
    (
        "calibrate",
        "calibrate sim:8,500us --for 30s --write --seed 1 --out writes",
    ),
    ("calibrate", "report calibration"),
    (
        "advise",
        "advise calibration --for postgres,mariadb,oracle,linux",
    ),
    (
        "curve",
        "curve sim:8,1ms --depth 1..16 --seed 1 --out depths",
    ),
    (
        "curve",
        "curve sim:8,1ms --rate 10%..120% --max-latency 10ms --background large:2 --seed 1 --out rates",
    ),
    (
        "curve",
        "curve sim:8,1ms --log grow,reused --depth 1,4 --seed 1 --out logs",
    ),
    (
        "orion",
        "orion -run oltp -num_disks 1 -duration 1 --target sim:8,100us --seed 1 --out matrix",
    ),
    (
        "expect",
        "expect iops>=900 p99<25ms@500/s sim:4,4ms --seed 1 --out expected",
    ),
    ("duet", "duet sim:8,1ms sim:8,1.1ms --seed 1 --out duet"),
    (
        "duet",
        "duet sim:8,1ms --vary log=grow,reused --for 30s --seed 1 --out duet-logs",
    ),
    (
        "soak",
        "soak sim:8,1ms,stall=300ms/20s --every 60s --for 20min --slo p99<20ms --seed 1 --out soak",
    ),
    (
        "fit",
        "fit EXAMPLES/watch-postgres.jsonl sim:8,100us --seed 1 --out fit",
    ),
    ("watch", "watch . --every 1s --for 2s --out watch"),
    ("watch", "report EXAMPLES/watch-postgres.jsonl"),
    ("check", "check ."),
    ("profiles", "expect list"),
    ("compare", "compare calibration writes"),
    ("import", "import EXAMPLES/cloud-day.csv --out series"),
    ("import", "import IMPORTS/awr_synthetic.html --out awr"),
    (
        "import",
        "import IMPORTS/statspack_synthetic.lst --out statspack",
    ),
    ("import", "import IMPORTS/fio_three.json --out fio"),
    ("import", "import IMPORTS/iostat.json --out iostat"),
    ("import", "import claim.txt --out claimed"),
    ("claim", "compare calibration claimed"),
];

/// What sqlplus lists of Oracle's own calibration.
const CLAIM: &str = "  MAX_IOPS   MAX_MBPS  MAX_PMBPS    LATENCY NUM_PHYSICAL_DISKS
---------- ---------- ---------- ---------- ------------------
     16000       2000       1000          1                  1
";

/// The document of a command.
fn document(place: &Place, command: &str) -> Value {
    let root = env!("CARGO_MANIFEST_DIR");
    let command = command
        .replace("EXAMPLES", &format!("{root}/docs/examples"))
        .replace("IMPORTS", &format!("{root}/tests/imports"));
    let output = rigel(place, &format!("{command} --json")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{command}: {why}\n{said}"))
}

#[test]
fn every_document_is_as_its_schema_says() {
    let place = Place::new("schema");
    std::fs::write(place.0.join("claim.txt"), CLAIM).unwrap();
    let mut compared = BTreeSet::from(OF_SERVERS);
    for (name, command) in COMMANDS {
        fits(name, &document(&place, command));
        compared.insert(name);
    }
    let names = rigel(&place, "schema").output().unwrap().stdout;
    let names = String::from_utf8(names).unwrap();
    assert_eq!(
        compared,
        names.lines().collect(),
        "each schema has a document"
    );
}

#[test]
fn a_document_that_is_not_as_its_schema_says_is_found() {
    type Change = fn(&mut Value);
    let place = Place::new("schema-refused");
    let whole = document(&place, "curve sim:8,1ms --depth 1 --seed 1 --out one");
    fits("curve", &whole);
    let changes: [(&str, Change); 4] = [
        ("a member is missing", |of| {
            of["points"][0]["classes"][0]
                .as_object_mut()
                .unwrap()
                .remove("iops");
        }),
        ("a member is unknown", |of| {
            of["target"]["colour"] = json!("blue");
        }),
        ("a member is of another type", |of| {
            of["points_planned"] = json!("one");
        }),
        ("a word is unknown", |of| {
            of["trust"]["level"] = json!("perfect");
        }),
    ];
    for (what, change) in changes {
        let mut document = whole.clone();
        change(&mut document);
        assert!(
            compared("curve", &document).is_err(),
            "{what}, and the schema allows it"
        );
    }
}

/// Members may be added and not removed: CHANGELOG.md tells of every line that leaves this file.
#[test]
fn members_that_were_promised_are_there() {
    let place = Place::new("schema-members");
    let names = rigel(&place, "schema").output().unwrap().stdout;
    let mut members = BTreeSet::new();
    for name in String::from_utf8(names).unwrap().lines() {
        let schema = schema(name);
        members_of(name, &schema, &mut members);
        for (of, definition) in schema["$defs"].as_object().into_iter().flatten() {
            members_of(of, definition, &mut members);
        }
    }
    let lines = members.iter().fold(String::new(), |mut lines, member| {
        writeln!(lines, "{member}").unwrap();
        lines
    });
    golden("members.txt", &lines);
}

/// Adds `TYPE.member`, a line each, with a question mark if it can be absent.
fn members_of(of: &str, schema: &Value, members: &mut BTreeSet<String>) {
    let required = schema["required"].as_array();
    for name in schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
    {
        let is_required = required.is_some_and(|all| all.contains(&json!(name)));
        members.insert(format!("{of}.{name}{}", if is_required { "" } else { "?" }));
    }
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        members_of(of, choice, members);
    }
}
