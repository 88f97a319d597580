//! A private server made for a run: it works, and nothing of it is left, however the run ends.

use super::common::{self, Place, entries, in_time, test, wait_until};
use super::{assert_agree, begun, count, ends, lines, measured, postgres_15, postgres_18, signal, witness};
use rigel::model::{Nanos, Until};
use rigel::record::{End, journal};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Child;

const NOTHING: [PathBuf; 0] = [];

fn made_and_removed(name: &str, bin: &Path, version: &str) {
    let place = Place::new(name);
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let work = "--scale 12000 --buffer-cache 8MiB -t 2 --run-time 2s --warm-up 0s --out run";
    let document = measured(&place, &format!("sql run --on storage --server-bin {} {work}", bin.display()));
    assert_eq!(entries(&place.0.join("storage")), NOTHING);

    let server = &document["target"]["server"];
    assert!(server["version"].as_str().unwrap().starts_with(version), "{server}");
    assert!(server["plan"].to_string().contains("Index Scan using blocks_1_id"), "{server}");
    assert_eq!(server["local"], true);
    let [point] = document["points"].as_array().unwrap().as_slice() else { panic!("{document}") };
    let sql = &point["sql"];
    assert!(count(&sql["operations"]) > 0.0 && sql["sessions"] == 2, "{sql}");
    // Exactly the work unit: neither one row less nor one more.
    assert!((count(&sql["visited"]["per_operation"]) - 64.0).abs() < f64::EPSILON, "{sql}");
    assert_eq!(point["classes"][0]["failed"], serde_json::json!({}));
    assert_agree(witness(point, "blocks of the tables visited"), "client and server");
    let reads = witness(point, "blocks read past the buffer cache");
    assert!(reads.0 > 0.0);
    if server["direct"] == true {
        assert_agree(reads, "the server and the kernel");
    }
    let said = document["findings"].to_string();
    // Through the page cache, the report says either that storage delivered the blocks, or that it did not.
    assert!(server["direct"] == true || reads.1 >= reads.0 * 0.99 || said.contains("page cache served"), "{said}");

    let report = super::program(&place, "report run").output().unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("blocks visited                  64.00"), "{text}");
    let refused = ends(&place, "sql run --resume run", 2);
    assert!(refused.contains("the run used a private server"), "{refused}");
}

#[test]
fn a_private_server_of_version_15_is_made_measured_and_removed() {
    test("a_private_server_of_version_15_is_made_measured_and_removed", || {
        made_and_removed("sql-private-15", &postgres_15()?, "PostgreSQL 15.");
        Ok(())
    });
}

#[test]
fn a_private_server_of_version_18_reads_what_the_kernel_counts() {
    test("a_private_server_of_version_18_reads_what_the_kernel_counts", || {
        made_and_removed("sql-private-18", &postgres_18()?, "PostgreSQL 18.");
        Ok(())
    });
}

/// The first process of the server in `storage`, which listens on no port.
fn postmaster(storage: &Path) -> u32 {
    let folder = entries(storage).into_iter().next().unwrap();
    let text = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // Line 6 is the first address on which it listens.
    assert_eq!(lines[5].trim(), "", "{text}");
    lines[0].parse().unwrap()
}

fn is_gone(process: u32) -> bool {
    !std::fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim() == "postgres")
}

/// A run of one minute on a private server that responds.
fn under_way(place: &Place, bin: &Path, more: &str) -> (Child, u32) {
    let storage = place.0.join("storage");
    std::fs::create_dir_all(&storage).unwrap();
    let line = format!("sql run --on storage --server-bin {} --no-progress --out run {more}", bin.display());
    let mut child = begun(place, &line);
    let mut first = String::new();
    // Read exactly one line: the test reads the rest.
    let mut stderr = BufReader::with_capacity(1, child.stderr.take().unwrap());
    stderr.read_line(&mut first).unwrap();
    assert!(first.starts_with("a private PostgreSQL 18."), "{first}");
    child.stderr = Some(stderr.into_inner());
    (child, postmaster(&storage))
}

#[test]
fn ctrl_c_while_measuring_keeps_the_results_and_removes_the_server() {
    test("ctrl_c_while_measuring_keeps_the_results_and_removes_the_server", || {
        let (bin, name) = (postgres_18()?, "sql-interrupted");
        let (place, server, output, run) = in_time("anything was measured", |factor| {
            let place = Place::new(&format!("{name}-{factor}"));
            let (child, server) = under_way(&place, &bin, "--scale 2000 -t 2 --run-time 1h --warm-up 0s");
            wait_until("it measures", || lines(&place.0.join("run")) > 0);
            common::wait(700 * u64::from(factor));
            signal(&child, "INT");
            let output = child.wait_with_output().unwrap();
            let run = journal::read(&place.0.join("run")).unwrap();
            let some = run.points.iter().any(|point| point.streams[0].total().done > 0);
            some.then_some((place, server, output, run))
        });
        let said = super::said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the run ended before it was complete") && said.contains("start another run"), "{said}");
        assert_eq!(entries(&place.0.join("storage")), NOTHING);
        assert!(is_gone(server), "{server} is still there");
        assert_eq!(run.points.iter().map(|point| &point.end).collect::<Vec<_>>(), [&End::Stopped]);
        Ok(())
    });
}

#[test]
fn ctrl_c_while_loading_leaves_nothing() {
    test("ctrl_c_while_loading_leaves_nothing", || {
        let (bin, name) = (postgres_18()?, "sql-interrupted-loading");
        let (place, server, output) = in_time("the load was interrupted", |factor| {
            let place = Place::new(&format!("{name}-{factor}"));
            let (child, server) = under_way(&place, &bin, &format!("--scale {}000 -t 2", 60 * factor.min(8)));
            signal(&child, "INT");
            let output = child.wait_with_output().unwrap();
            // It has a journal if it was already measuring.
            (!place.0.join("run").exists()).then_some((place, server, output))
        });
        let said = super::said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the load was stopped after"), "{said}");
        assert_eq!(entries(&place.0.join("storage")), NOTHING);
        assert!(is_gone(server) && !place.0.join("run").exists());
        Ok(())
    });
}

#[test]
fn what_a_killed_run_leaves_is_cleaned_up() {
    test("what_a_killed_run_leaves_is_cleaned_up", || {
        let place = Place::new("sql-killed");
        let (mut child, server) = under_way(&place, &postgres_18()?, "--scale 20000 -t 2");
        let in_use = ends(&place, "sql clean storage", 1);
        assert!(in_use.contains(&format!("in use by rigel {}", child.id())), "{in_use}");
        signal(&child, "KILL");
        child.wait().unwrap();
        let output = super::program(&place, "sql clean storage").output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && printed.contains("a postgres server of rigel"), "{output:?}");
        assert_eq!(entries(&place.0.join("storage")), NOTHING);
        wait_until("the server is gone", || is_gone(server));
        assert!(ends(&place, "sql clean storage", 0).contains("there are no private servers left here"));
        Ok(())
    });
}

/// A typical file of SLOB's users, with keys that only Oracle knows.
const SLOB: &str = "\
# SLOB 2.5.2
UPDATE_PCT=25
SCAN_PCT=0
RUN_TIME=2
WORK_LOOP=0
SCALE=10000
SCAN_TABLE_SZ=1M
WORK_UNIT=64
REDO_STRESS=LITE
LOAD_PARALLEL_DEGREE=2

THREADS_PER_SCHEMA=1

DATABASE_STATISTICS_TYPE=statspack   # Permitted values: [statspack|awr]

#### Settings for SQL*Net connectivity:
#ADMIN_SQLNET_SERVICE=slob
SYSDBA_PASSWD='change_on_install'
DBA_PRIV_USER=system

DO_HOTSPOT=TRUE
HOTSPOT_MB=8
HOTSPOT_OFFSET_MB=16
HOTSPOT_FREQUENCY=3
HOT_SCHEMA_FREQUENCY=0

THINK_TM_FREQUENCY=0
THINK_TM_MIN=.1
THINK_TM_MAX=.5
";

const PGIO: &str = "\
UPDATE_PCT=0
RUN_TIME=2
NUM_SCHEMAS=1
NUM_THREADS=2
WORK_UNIT=255
UPDATE_WORK_UNIT=8
SCALE=80M
DBNAME=pgio
CONNECT_STRING=pgio
CREATE_BASE_TABLE=TRUE
";

#[test]
fn the_files_of_slob_and_pgio_run_unchanged() {
    test("the_files_of_slob_and_pgio_run_unchanged", || {
        let bin = postgres_18()?;
        let place = Place::new("sql-conf");
        std::fs::write(place.0.join("slob.conf"), SLOB).unwrap();
        std::fs::write(place.0.join("pgio.conf"), PGIO).unwrap();
        std::fs::create_dir(place.0.join("storage")).unwrap();
        let run = |arguments: &str, out: &str| {
            let line = format!("sql run --on storage --server-bin {} {arguments} --out {out}", bin.display());
            let line = format!("{line} --warm-up 0s --no-progress --json");
            let output = super::program(&place, &line).output().unwrap();
            let said = super::said(&output);
            assert!(output.status.success(), "{said}");
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            (document, said)
        };
        let (document, said) = run("--conf slob.conf -s 2 -t 2", "slob");
        let tables = &document["target"]["server"]["tables"];
        assert_eq!((&tables["schemas"], &tables["scale"]), (&2.into(), &10_000.into()));
        let sql = &document["points"][0]["sql"];
        assert_eq!(sql["sessions"], 4);
        let kinds = |kind: &str| count(&sql["kinds"][kind]);
        // A quarter of each deck of four cards: at most one card of each session is missing.
        assert!((kinds("write") * 4.0 - (kinds("write") + kinds("read"))).abs() <= 16.0, "{sql}");
        let asked = journal::read(&place.0.join("slob")).unwrap().points[0].asked.as_ref().unwrap().until;
        assert_eq!(asked, Until::Elapsed(Nanos::from_secs(2)), "RUN_TIME is 2");
        assert!(said.contains("slob.conf: ") && said.contains("SYSDBA_PASSWD"), "{said}");
        assert!(!said.contains("change_on_install") && !document.to_string().contains("change_on_install"), "{said}");

        let (document, said) = run("--conf pgio.conf", "pgio");
        let sql = &document["points"][0]["sql"];
        assert!((count(&sql["visited"]["per_operation"]) - 255.0).abs() < f64::EPSILON, "{sql}");
        assert_eq!(sql["sessions"], 2);
        assert!(said.contains("pgio.conf: ") && said.contains("CREATE_BASE_TABLE"), "{said}");
        Ok(())
    });
}
