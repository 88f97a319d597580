//! A private server made for a run: it works, and nothing of it is left, however the run ends.

use super::common::{self, Place, entries, in_time, kill, test, wait_until};
use super::{
    assert_agree, begun, count, ends, journal_lines, measured, postgres_15, postgres_18, signal,
    witness,
};
use rigel_model::record::End;
use rigel_model::record::journal::Run;
use rigel_model::{Nanos, Until};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Child;

const NOTHING: [PathBuf; 0] = [];

fn made_and_removed(name: &str, bin: &Path, version: &str) {
    let place = Place::new(name);
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let work = "--scale 12000 --buffer-cache 8MiB -t 2 --run-time 2s --warm-up 0s --out run";
    let document = measured(
        &place,
        &format!("sql run --on storage --server-bin {} {work}", bin.display()),
    );
    assert_eq!(entries(&place.0.join("storage")), NOTHING);

    let server = &document["target"]["server"];
    assert!(
        server["version"].as_str().unwrap().starts_with(version),
        "{server}"
    );
    assert!(
        server["plan"]
            .to_string()
            .contains("Index Scan using blocks_1_id"),
        "{server}"
    );
    assert_eq!(server["local"], true);
    let [point] = document["points"].as_array().unwrap().as_slice() else {
        panic!("{document}")
    };
    let sql = &point["sql"];
    assert!(
        count(&sql["operations"]) > 0.0 && sql["sessions"] == 2,
        "{sql}"
    );
    // Exactly the work unit: neither one row less nor one more.
    assert!(
        (count(&sql["visited"]["per_operation"]) - 64.0).abs() < f64::EPSILON,
        "{sql}"
    );
    assert_eq!(point["classes"][0]["failed"], serde_json::json!({}));
    assert_agree(
        witness(point, "blocks of the tables visited"),
        "client and server",
    );
    let reads = witness(point, "blocks read past the buffer cache");
    assert!(reads.0 > 0.0);
    if server["direct"] == true {
        assert_agree(reads, "the server and the kernel");
    }
    let said = document["findings"].to_string();
    // Through the page cache, the report says either that storage delivered the blocks, or that it
    // did not: up to 1 % and 200 blocks, it says nothing.
    assert!(
        server["direct"] == true
            || reads.0 - reads.1 <= (reads.0 * 0.01).max(200.0)
            || said.contains("page cache served"),
        "{reads:?} {said}"
    );

    let report = super::program(&place, "report run --verbose")
        .output()
        .unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    let visited = text.lines().find(|line| line.starts_with("blocks visited"));
    assert!(
        visited.is_some_and(|line| line.split_whitespace().nth(2) == Some("64.00")),
        "{text}"
    );
    // A journal names no programs. Where nothing is left to measure, no server is made.
    // A complete run needs no server, nor its programs.
    let over = ends(&place, "sql run --resume run", 0);
    assert!(
        over.contains("this run is already complete")
            && !over.contains("resuming on")
            && !over.contains("a private PostgreSQL"),
        "{over}"
    );
}

#[test]
fn a_private_server_of_version_15_is_made_measured_and_removed() {
    test(
        "a_private_server_of_version_15_is_made_measured_and_removed",
        || {
            made_and_removed("sql-private-15", &postgres_15()?, "PostgreSQL 15.");
            Ok(())
        },
    );
}

#[test]
fn a_private_server_of_version_18_reads_what_the_kernel_counts() {
    test(
        "a_private_server_of_version_18_reads_what_the_kernel_counts",
        || {
            made_and_removed("sql-private-18", &postgres_18()?, "PostgreSQL 18.");
            Ok(())
        },
    );
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
    !std::fs::read_to_string(format!("/proc/{process}/comm"))
        .is_ok_and(|name| name.trim() == "postgres")
}

/// A run of one minute on a private server that responds.
fn under_way(place: &Place, bin: &Path, more: &str) -> (Child, u32) {
    let storage = place.0.join("storage");
    std::fs::create_dir_all(&storage).unwrap();
    let line = format!(
        "sql run --on storage --server-bin {} --no-progress --out run {more}",
        bin.display()
    );
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
    test(
        "ctrl_c_while_measuring_keeps_the_results_and_removes_the_server",
        || {
            let (bin, name) = (postgres_18()?, "sql-interrupted");
            let (place, server, output, run) = in_time("anything was measured", |factor| {
                let place = Place::new(&format!("{name}-{factor}"));
                let (child, server) =
                    under_way(&place, &bin, "--scale 2000 -t 2 --run-time 1h --warm-up 0s");
                wait_until("it measures", || journal_lines(&place.0.join("run")) > 0);
                common::wait(700 * u64::from(factor));
                signal(child.id(), "INT");
                let output = child.wait_with_output().unwrap();
                let run = Run::read(&place.0.join("run")).unwrap();
                let some = run
                    .points
                    .iter()
                    .any(|point| point.streams[0].total().done > 0);
                some.then_some((place, server, output, run))
            });
            let said = super::stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(
                said.contains("the run ended before it was complete"),
                "{said}"
            );
            let hint = format!("rigel sql run --resume run --server-bin {}", bin.display());
            assert!(said.contains(&hint), "{said}");
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            assert!(is_gone(server), "{server} is still there");
            assert_eq!(
                run.points
                    .iter()
                    .map(|point| &point.end)
                    .collect::<Vec<_>>(),
                [&End::Stopped]
            );
            Ok(())
        },
    );
}

/// Three points of at most two seconds each.
const THREE: &str = "--scale 2000 --sessions 1,2,3 --run-time 2s --precision 0.1% --warm-up 0s";

/// A run of three points on a private server, ended by `name` after its first point. `None` if it
/// was over before.
fn cut_short(place: &Place, bin: &Path, name: &str, factor: u32) -> Option<Run> {
    let (mut child, _) = under_way(
        place,
        bin,
        &THREE.replace("2s", &format!("{}s", 2 * factor)),
    );
    wait_until("a point is complete", || {
        journal_lines(&place.0.join("run")) > 1
    });
    let status = if name == "KILL" {
        kill(&mut child)
    } else {
        signal(child.id(), name);
        child.wait().unwrap()
    };
    let run = Run::read(&place.0.join("run")).unwrap();
    (!status.success() && run.complete().len() < 3).then_some(run)
}

/// Resumes this run, and checks that it is complete and that its first points are untouched.
#[track_caller]
fn goes_on(place: &Place, bin: &Path, before: &Run) -> String {
    // The journal itself stands for its directory.
    let line = format!(
        "sql run --resume run/journal.jsonl --no-progress --server-bin {}",
        bin.display()
    );
    let said = ends(place, &line, 0);
    assert!(
        said.contains("resuming on a private server in 'storage'"),
        "{said}"
    );
    assert!(
        said.contains("a private PostgreSQL 18.") && said.contains("loaded: 2"),
        "{said}"
    );
    let after = Run::read(&place.0.join("run")).unwrap();
    assert_eq!(after.points[..before.points.len()], before.points);
    assert_eq!((after.complete().len(), after.joined().len()), (3, 3));
    assert!(
        after
            .points
            .iter()
            .all(|point| point.streams[0].total().done > 0)
    );
    assert!(place.0.join("run/report.html").exists());
    said
}

#[test]
fn a_run_on_a_private_server_is_resumed_on_another_one_like_it() {
    test(
        "a_run_on_a_private_server_is_resumed_on_another_one_like_it",
        || {
            let (bin, older) = (postgres_18()?, postgres_15()?);
            let (place, before) = in_time("the run was interrupted", |factor| {
                let place = Place::new(&format!("sql-resumed-{factor}"));
                cut_short(&place, &bin, "INT", factor).map(|run| (place, run))
            });
            let other = ends(
                &place,
                &format!("sql run --resume run --server-bin {}", older.display()),
                2,
            );
            assert!(
                other.contains("this run cannot be resumed: the server was PostgreSQL 18."),
                "{other}"
            );
            let set = format!(
                "sql run --resume run --server-bin {} --server-set fsync=off",
                bin.display()
            );
            let set = ends(&place, &set, 2);
            assert!(
                set.contains("the private server of this run was made with --server-bin"),
                "{set}"
            );
            for (line, named) in [
                (
                    "sql run --resume run --buffer-cache 64MiB",
                    "--buffer-cache",
                ),
                ("sql run --resume run --on storage", "--on"),
                ("sql run --resume run --rate 100", "--rate"),
                (
                    "curve --resume run",
                    "resume it with `rigel sql run --resume run --server-bin",
                ),
                ("layers --resume run", "this run was made by rigel sql run"),
            ] {
                let refused = ends(&place, line, 2);
                assert!(refused.contains(named), "{line}: {refused}");
            }
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            assert_eq!(
                Run::read(&place.0.join("run")).unwrap().points,
                before.points
            );
            goes_on(&place, &bin, &before);
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            Ok(())
        },
    );
}

#[test]
fn a_killed_run_on_a_private_server_is_resumed() {
    test("a_killed_run_on_a_private_server_is_resumed", || {
        let bin = postgres_18()?;
        let (place, before) = in_time("the run was killed", |factor| {
            let place = Place::new(&format!("sql-killed-resumed-{factor}"));
            cut_short(&place, &bin, "KILL", factor).map(|run| (place, run))
        });
        let said = goes_on(&place, &bin, &before);
        // The folder of the killed run's server takes space until it is removed.
        assert!(
            said.contains("`rigel sql clean storage` removes it"),
            "{said}"
        );
        assert_eq!(entries(&place.0.join("storage")).len(), 1);
        ends(&place, "sql clean storage", 0);
        assert_eq!(entries(&place.0.join("storage")), NOTHING);
        Ok(())
    });
}

#[test]
fn a_run_on_a_private_mariadb_is_resumed_with_the_same_settings() {
    test(
        "a_run_on_a_private_mariadb_is_resumed_with_the_same_settings",
        || {
            common::need("mariadbd", &["--version"])?;
            let (place, before) = in_time("the run was interrupted", |factor| {
                let place = Place::new(&format!("sql-resumed-mariadb-{factor}"));
                std::fs::create_dir(place.0.join("storage")).unwrap();
                let points = THREE.replace("2s", &format!("{}s", 2 * factor));
                let line = format!(
                    "sql run --on storage --server mariadb --buffer-cache 8MiB {points} --out run"
                );
                let child = begun(
                    &place,
                    &format!("{line} --no-progress --server-set innodb_io_capacity=500"),
                );
                wait_until("a point is complete", || {
                    journal_lines(&place.0.join("run")) > 1
                });
                signal(child.id(), "INT");
                let output = child.wait_with_output().unwrap();
                let run = Run::read(&place.0.join("run")).unwrap();
                let hint = "`rigel sql run --resume run --server-set innodb_io_capacity=500`";
                assert!(
                    output.status.success() || super::stderr(&output).contains(hint),
                    "{}",
                    super::stderr(&output)
                );
                (run.complete().len() < 3).then_some((place, run))
            });
            let unset = ends(&place, "sql run --resume run", 2);
            assert!(
                unset.contains("was made with --server-set innodb_io_capacity=500"),
                "{unset}"
            );
            // From another directory: paths are those of the first call.
            std::fs::create_dir(place.0.join("elsewhere")).unwrap();
            let mut again = super::program(
                &place,
                "sql run --no-progress --server-set innodb_io_capacity=500",
            );
            again
                .args(["--resume", "../run"])
                .current_dir(place.0.join("elsewhere"));
            let output = again.output().unwrap();
            assert!(output.status.success(), "{}", super::stderr(&output));
            let after = Run::read(&place.0.join("run")).unwrap();
            assert_eq!(
                (&after.points[..before.points.len()], after.complete().len()),
                (&before.points[..], 3)
            );
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            Ok(())
        },
    );
}

/// A run on a private server all of whose processes are suspended, as on storage that does not answer.
fn suspended(name: &str) -> Result<(Place, Child, u32), common::Missing> {
    let place = Place::new(name);
    let (child, server) = under_way(
        &place,
        &postgres_18()?,
        "--scale 2000 -t 2 --run-time 1h --warm-up 0s",
    );
    wait_until("it measures", || journal_lines(&place.0.join("run")) > 0);
    let folder = entries(&place.0.join("storage")).remove(0);
    for process in processes_in(&folder) {
        signal(process, "STOP");
    }
    Ok((place, child, server))
}

/// The processes that work in this folder.
fn processes_in(folder: &Path) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_there = |process: &u32| {
        std::fs::read_link(format!("/proc/{process}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    };
    numbers.filter(is_there).collect()
}

#[test]
fn a_signal_ends_a_private_server_that_hangs_and_nothing_of_it_is_left() {
    test(
        "a_signal_ends_a_private_server_that_hangs_and_nothing_of_it_is_left",
        || {
            let (place, child, server) = suspended("sql-hangs")?;
            signal(child.id(), "TERM");
            let output = child.wait_with_output().unwrap();
            let said = super::stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(
                said.contains("waiting for the private server in '"),
                "{said}"
            );
            assert!(is_gone(server), "{server} is still there");
            assert_eq!(entries(&place.0.join("storage")), NOTHING, "{said}");
            assert!(!said.contains("what is left"), "{said}");
            Ok(())
        },
    );
}

#[test]
fn a_second_signal_leaves_a_private_server_that_hangs_and_says_so() {
    test(
        "a_second_signal_leaves_a_private_server_that_hangs_and_says_so",
        || {
            let (place, mut child, server) = suspended("sql-hangs-left")?;
            signal(child.id(), "TERM");
            // The same moment counts as one signal.
            common::wait(400);
            signal(child.id(), "TERM");
            let mut said = String::new();
            let mut stderr = child.stderr.take().unwrap();
            std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
            let named = "what is left of a private server in 'storage': `rigel sql clean storage`";
            assert!(said.contains(named), "{said}");
            assert!(!is_gone(server), "it ended by itself");
            ends(&place, "sql clean storage", 0);
            // Killed; whoever inherits its process takes note of it later.
            wait_until("the server is gone", || is_gone(server));
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            Ok(())
        },
    );
}

#[test]
fn a_run_that_got_no_session_leaves_no_results() {
    test("a_run_that_got_no_session_leaves_no_results", || {
        let place = Place::new("sql-no-session");
        let server = super::serve(&postgres_18()?, &place, &[("max_connections", "12")]);
        ends(
            &place,
            &format!("sql load {} --scale 1000 --load-degree 1", server.url()),
            0,
        );
        let run = |sessions: u32| {
            format!(
                "sql run {} -t {sessions} --run-time 1s --warm-up 0s --out run",
                server.url()
            )
        };
        let said = ends(&place, &run(60), 1);
        assert!(said.contains("no connections left"), "{said}");
        assert!(!place.0.join("run").exists(), "{said}");
        ends(&place, &run(1), 0);
        Ok(())
    });
}

#[test]
fn ctrl_c_while_loading_leaves_nothing() {
    test("ctrl_c_while_loading_leaves_nothing", || {
        let (bin, name) = (postgres_18()?, "sql-interrupted-loading");
        let (place, server, output) = in_time("the load was interrupted", |factor| {
            let place = Place::new(&format!("{name}-{factor}"));
            let (child, server) = under_way(
                &place,
                &bin,
                &format!("--scale {}000 -t 2", 60 * factor.min(8)),
            );
            signal(child.id(), "INT");
            let output = child.wait_with_output().unwrap();
            // It has a journal if it was already measuring.
            (!place.0.join("run").exists()).then_some((place, server, output))
        });
        let said = super::stderr(&output);
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
        assert!(
            common::processes(&child)
                .iter()
                .any(|pid| in_use.contains(&format!("in use by rigel {pid}"))),
            "{in_use}"
        );
        kill(&mut child);
        // A process that attended to it ends a moment later.
        let mut output = None;
        wait_until("it is in use by nobody", || {
            let cleaned = super::program(&place, "sql clean storage")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&cleaned.stderr).into_owned();
            output = Some(cleaned);
            !said.contains("in use by rigel")
        });
        let output = output.expect("it was cleaned");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && printed.contains("a postgres server of rigel"),
            "{output:?}"
        );
        assert_eq!(entries(&place.0.join("storage")), NOTHING);
        wait_until("the server is gone", || is_gone(server));
        assert!(
            ends(&place, "sql clean storage", 0).contains("there are no private servers left here")
        );
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
            let line = format!(
                "sql run --on storage --server-bin {} {arguments} --out {out}",
                bin.display()
            );
            let line = format!("{line} --warm-up 0s --no-progress --json");
            let output = super::program(&place, &line).output().unwrap();
            let said = super::stderr(&output);
            assert!(output.status.success(), "{said}");
            assert_eq!(entries(&place.0.join("storage")), NOTHING);
            let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            (document, said)
        };
        let (document, said) = run("--conf slob.conf -s 2 -t 2", "slob");
        let tables = &document["target"]["server"]["tables"];
        assert_eq!(
            (&tables["schemas"], &tables["scale"]),
            (&2.into(), &10_000.into())
        );
        let sql = &document["points"][0]["sql"];
        assert_eq!(sql["sessions"], 4);
        let kinds = |kind: &str| count(&sql["kinds"][kind]);
        // A quarter of each deck of four cards: at most one card of each session is missing.
        assert!(
            (kinds("write") * 4.0 - (kinds("write") + kinds("read"))).abs() <= 16.0,
            "{sql}"
        );
        let asked = Run::read(&place.0.join("slob")).unwrap().points[0]
            .asked
            .as_ref()
            .unwrap()
            .until;
        assert_eq!(asked, Until::Elapsed(Nanos::from_secs(2)), "RUN_TIME is 2");
        assert!(
            said.contains("slob.conf: ") && said.contains("SYSDBA_PASSWD"),
            "{said}"
        );
        assert!(
            !said.contains("change_on_install")
                && !document.to_string().contains("change_on_install"),
            "{said}"
        );

        let (document, said) = run("--conf pgio.conf", "pgio");
        let sql = &document["points"][0]["sql"];
        assert!(
            (count(&sql["visited"]["per_operation"]) - 255.0).abs() < f64::EPSILON,
            "{sql}"
        );
        assert_eq!(sql["sessions"], 2);
        assert!(
            said.contains("pgio.conf: ") && said.contains("CREATE_BASE_TABLE"),
            "{said}"
        );
        Ok(())
    });
}
