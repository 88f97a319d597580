//! Settings of private servers compared within one run.

use super::common::{Place, entries, test, wait_until};
use super::{begun, ends, journal_lines, postgres_15, postgres_18, program, signal, stderr};
use rigel_model::record::journal::Run;
use std::path::PathBuf;
use std::process::Output;

const NOTHING: [PathBuf; 0] = [];

/// A duet that is begun in this way, and interrupted once its journal has this many visits more.
fn interrupted(place: &Place, line: &str, visits: usize) -> Output {
    let before = journal_lines(&place.0.join("run"));
    let child = begun(place, &format!("duet --no-progress {line}"));
    // The first line is the header.
    let wanted = before.max(1) + visits;
    wait_until("visits are complete", || {
        journal_lines(&place.0.join("run")) >= wanted
    });
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        entries(&place.0.join("storage")),
        NOTHING,
        "{line}: {output:?}"
    );
    output
}

fn storage(name: &str) -> Place {
    let place = Place::new(name);
    std::fs::create_dir(place.0.join("storage")).unwrap();
    place
}

#[test]
fn values_of_a_servers_setting_are_compared_and_resumed() {
    test(
        "values_of_a_servers_setting_are_compared_and_resumed",
        || {
            let (bin, place) = (postgres_18()?, storage("sql-duet"));
            let options = format!(
                "--server-bin {} --server-set jit=off --vary io_method=sync,worker",
                bin.display()
            );
            let line = format!(
                "--on storage {options} --prefetch --scale 2000 --depth 1 --for 1min --out run"
            );
            let output = interrupted(&place, &line, 2);
            let hint = format!(
                "rigel duet --resume run --server-bin {} --server-set jit=off --vary io_method=sync,worker",
                bin.display()
            );
            assert!(stderr(&output).contains(&hint), "{output:?}");
            let before = Run::read(&place.0.join("run")).unwrap();

            // What a journal says is not run without being said again.
            for other in [
                String::new(),
                options.replace("sync,worker", "worker,sync"),
                options.replace("--server-set jit=off ", ""),
                options.split_once(" --vary").unwrap().0.to_string(),
            ] {
                let refused = ends(&place, &format!("duet --resume run {other}"), 2);
                assert!(
                    refused.contains("of this run was made with"),
                    "{other}: {refused}"
                );
            }
            interrupted(&place, &format!("--resume run {options}"), 2);
            let run = Run::read(&place.0.join("run")).unwrap();
            assert!(run.points.len() > before.points.len());
            assert_eq!(run.points[..before.points.len()], before.points);
            let report = program(&place, "report run --json").output().unwrap();
            let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
            crate::common::schema::fits("duet", &report);
            let arms = report["duet"]["arms"].as_array().unwrap();
            let names: Vec<&str> = arms.iter().filter_map(|arm| arm["name"].as_str()).collect();
            assert_eq!(names, ["io_method=sync", "io_method=worker"]);
            assert_eq!(report["duet"]["rate"], "op/s");
            assert!(
                arms.iter()
                    .all(|arm| arm["iops"]["value"].as_f64() > Some(0.0)),
                "{arms:?}"
            );
            Ok(())
        },
    );
}

#[test]
fn a_setting_that_one_server_refuses_leaves_none() {
    test("a_setting_that_one_server_refuses_leaves_none", || {
        let (bin, place) = (postgres_15()?, storage("sql-duet-refused"));
        let line = format!(
            "duet --on storage --server-bin {} --vary wal_level=minimal,nonsense --scale 2000",
            bin.display()
        );
        let refused = ends(&place, &line, 2);
        assert!(refused.contains("nonsense"), "{refused}");
        assert_eq!(entries(&place.0.join("storage")), NOTHING);
        for (line, named) in [
            ("--on storage", "nothing is varied"),
            (
                "--on storage --vary engine=uring,psync",
                "not a setting of a server",
            ),
            ("--on storage --vary jit=on", "two values or more"),
            ("--on storage --vary jit=on,on", "twice"),
            (
                "--on storage --vary jit=on,off --engine psync",
                "is a database",
            ),
            ("--on storage --vary jit=on,off --size 4k", "--size"),
            ("storage --vary jit=on,off", "need --on"),
            ("storage storage --scale 2000", "--on is not"),
            (
                "--on storage storage --vary jit=on,off",
                "leave one of them out",
            ),
        ] {
            let refused = ends(&place, &format!("duet {line}"), 2);
            assert!(refused.contains(named), "{line}: {refused}");
        }
        Ok(())
    });
}
