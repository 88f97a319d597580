//! `rigel advise --plans-on`: both plans are executed on a private server, each block is read once,
//! and nothing is left.

use super::common::{Place, entries, test};
use super::{ends, postgres_15, program, stderr};
use serde_json::Value;
use std::path::PathBuf;

const NOTHING: [PathBuf; 0] = [];

#[test]
fn plans_of_a_private_server_are_measured_and_judged_by_what_storage_delivered() {
    test(
        "plans_of_a_private_server_are_measured_and_judged_by_what_storage_delivered",
        || {
            let bin = postgres_15()?;
            let place = Place::new("sql-plans");
            std::fs::create_dir(place.0.join("storage")).unwrap();
            ends(
                &place,
                "calibrate sim:8,100us --seed 1 --closing 0s --out run --no-progress",
                0,
            );
            let line = format!(
                "advise run --for postgres --plans-on storage --plans-scale 256MiB --server-bin {} \
             --json",
                bin.display()
            );
            let output = program(&place, &line).output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            let plans = &document["plans"];
            let times = plans["times"].as_array().unwrap();
            let of = |plan: &str| {
                let chosen = times.iter().filter(|time| time["plan"] == plan);
                chosen
                    .map(|time| {
                        let number = |name: &str| time[name].as_u64().unwrap();
                        (number("rows"), number("blocks_read"))
                    })
                    .collect::<Vec<_>>()
            };
            let (by_index, sequential) = (of("index"), of("sequential"));
            assert_eq!((by_index.len(), sequential.len()), (25, 10));
            // One row to a block: an index scan reads as many blocks as rows, and blocks of the index,
            // less what the buffer cache of 4096 blocks still has.
            for (rows, blocks) in by_index {
                assert!(
                    blocks <= rows + rows / 50 + 16,
                    "{blocks} blocks for {rows} rows"
                );
                assert!(blocks + 4096 >= rows, "{blocks} blocks for {rows} rows");
            }
            let table = plans["table_rows"].as_u64().unwrap();
            for (_, blocks) in sequential {
                assert!(
                    blocks <= table + 16 && blocks + 4096 >= table,
                    "{blocks} of {table}"
                );
            }
            // There is a cost, or the reason why there is none, and the advice says which.
            let text = document["products"].to_string();
            if plans["crossing"].is_null() {
                assert!(plans["why_not"].is_string(), "{plans}");
                assert!(text.contains("no cost follows from them"), "{text}");
            } else {
                assert!(plans["cached"][0].as_f64().unwrap() <= 0.05, "{plans}");
                assert!(
                    text.contains("by plans on a private PostgreSQL 15"),
                    "{text}"
                );
            }
            Ok(())
        },
    );
}

#[test]
fn plans_are_refused_where_they_say_nothing() {
    let place = Place::new("sql-plans-refused");
    ends(
        &place,
        "calibrate sim:8,100us --seed 1 --closing 0s --out run --no-progress",
        0,
    );
    let other = ends(&place, "advise run --for mysql --plans-on .", 2);
    assert!(other.contains("a setting of PostgreSQL"), "{other}");
    let small = ends(
        &place,
        "advise run --for postgres --plans-on . --plans-scale 64MiB",
        2,
    );
    assert!(small.contains("too small"), "{small}");
}
