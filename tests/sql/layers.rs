//! `rigel layers` on the installed servers: every layer is measured on the same blocks, and nothing
//! is left.

use crate::common::schema;
use crate::common::{Missing, Place, entries, in_time, rigel, test, text, wait_until};
use crate::{begun, ends, journal_lines, signal};
use rigel_model::record::journal::Run;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The programs of a supported version.
fn programs(bin: impl Into<PathBuf>) -> Result<PathBuf, Missing> {
    let bin = bin.into();
    if bin.join("postgres").exists() {
        Ok(bin)
    } else {
        Err(Missing(format!(
            "{} has no postgres: scripts/setup.sh test brings it",
            bin.display()
        )))
    }
}

/// True of the layers below the database.
fn is_of_files(layer: &Value) -> bool {
    layer["layer"] == "async" || layer["layer"] == "sync"
}

fn every_layer_reads_its_blocks(name: &str, bin: &Path, arguments: &str, layers: &[&str]) {
    let what = "each point had done something, and its server had answered in time";
    let (place, report) = in_time(what, |factor| {
        let place = Place::new(&format!("{name}-{factor}"));
        let command = format!(
            "layers . --scale 64MiB --sessions 2 --rounds 1 --point-time {factor}s --warm-up \
             500ms --no-progress --out run --buffer-cache 8MiB --server-bin {} {arguments}",
            text(bin)
        );
        let output = rigel(&place, &command).arg("--json").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(entries(&place.0), [place.0.join("run")], "{said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        schema::fits("layers", &report);
        let points = report["points"].as_array().unwrap();
        let all = points
            .iter()
            .all(|point| point["classes"][0]["done"].as_u64() > Some(0));
        // Nothing waits for a server that says nothing of itself for seconds.
        let layers = report["layers"]["tables"][0]["layers"].as_array().unwrap();
        let has_answered = |layer: &Value| is_of_files(layer) || layer["server_cpu_us"].is_number();
        (all && layers.iter().all(has_answered)).then_some((place, report))
    });
    let tables = report["layers"]["tables"].as_array().unwrap();
    assert_eq!((tables.len(), &tables[0]["sessions"]), (1, &2.into()));
    let found = tables[0]["layers"].as_array().unwrap();
    let names: Vec<&str> = found
        .iter()
        .map(|layer| layer["layer"].as_str().unwrap())
        .collect();
    assert_eq!(names, layers);
    for layer in found {
        let figure = |name: &str| {
            layer[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name} of {layer}"))
        };
        assert!(
            layer["blocks_per_s"]["value"].as_f64().unwrap() > 0.0,
            "{layer}"
        );
        assert!(
            figure("p50_us") > 0.0 && figure("p99_us") >= figure("p50_us"),
            "{layer}"
        );
        let both = figure("client_cpu_us") + layer["server_cpu_us"].as_f64().unwrap_or(0.0);
        assert!(
            (figure("cpu_s_per_million") - both).abs() < 1e-6 * both,
            "{layer}"
        );
        let has_server = layer["server_cpu_us"].is_number();
        assert_eq!(has_server, !is_of_files(layer), "{layer}");
    }
    for point in report["points"].as_array().unwrap() {
        assert_eq!(point["end"], "complete", "{point}");
        assert_eq!(
            point["classes"][0]["failed"],
            serde_json::json!({}),
            "{point}"
        );
        // Only the table: 64 MiB in blocks of 8 KiB. A server that extends files in steps may leave
        // some blocks empty.
        let blocks = point["classes"][0]["coverage"]["blocks"].as_u64().unwrap();
        assert!((8192..=8192 + 576).contains(&blocks), "{point}");
    }
    // The same from the journal, as text.
    let again = rigel(&place, "report run --verbose").output().unwrap();
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(
        again.contains("Where the rest went") && again.contains("4 database, through buffer cache"),
        "{again}"
    );
}

#[test]
fn every_layer_reads_its_blocks_on_postgresql_15() {
    test("every_layer_reads_its_blocks_on_postgresql_15", || {
        let bin = programs("/usr/lib/postgresql/15/bin")?;
        every_layer_reads_its_blocks(
            "layers-15",
            &bin,
            "--prefetch",
            &["async", "sync", "file", "row", "prefetch"],
        );
        Ok(())
    });
}

#[test]
fn every_layer_reads_its_blocks_on_postgresql_18() {
    test("every_layer_reads_its_blocks_on_postgresql_18", || {
        let bin = programs(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("target/servers/postgresql-18/bin"),
        )?;
        every_layer_reads_its_blocks(
            "layers-18",
            &bin,
            "--prefetch --single --server-set io_method=worker",
            &["async", "sync", "file", "row", "prefetch", "single"],
        );
        Ok(())
    });
}

#[test]
fn an_interrupted_run_of_layers_is_resumed_on_another_server_like_its_own() {
    test(
        "an_interrupted_run_of_layers_is_resumed_on_another_server_like_its_own",
        || {
            let bin = programs(
                Path::new(env!("CARGO_MANIFEST_DIR")).join("target/servers/postgresql-18/bin"),
            )?;
            let (place, said, before) = in_time("the run was interrupted", |factor| {
                let place = Place::new(&format!("layers-resumed-{factor}"));
                let line = format!(
                    "layers . --scale 16MiB --sessions 2 --rounds 2 --point-time {factor}s \
                     --warm-up 0s --no-progress --out run --buffer-cache 4MiB --server-bin {}",
                    text(&bin)
                );
                let child = begun(&place, &line);
                wait_until("two points are complete", || {
                    journal_lines(&place.0.join("run")) > 2
                });
                signal(child.id(), "INT");
                let output = child.wait_with_output().unwrap();
                let run = Run::read(&place.0.join("run")).unwrap();
                (run.complete().len() < 8).then(|| (place, super::stderr(&output), run))
            });
            let again = format!("rigel layers --resume run --server-bin {}", text(&bin));
            assert!(
                said.contains("the run ended before it was complete") && said.contains(&again),
                "{said}"
            );
            assert_eq!(entries(&place.0), [place.0.join("run")], "{said}");
            let unnamed = ends(&place, "layers --resume run", 2);
            assert!(unnamed.contains("was made with --server-bin"), "{unnamed}");
            for line in [
                "layers --resume run --rounds 3",
                "layers . --resume run",
                "sql run --resume run",
            ] {
                ends(&place, line, 2);
            }

            let line = format!(
                "layers --resume run --no-progress --json --server-bin {}",
                text(&bin)
            );
            let output = rigel(&place, &line).output().unwrap();
            assert!(output.status.success(), "{}", super::stderr(&output));
            assert_eq!(entries(&place.0), [place.0.join("run")]);
            let after = Run::read(&place.0.join("run")).unwrap();
            assert_eq!(
                after.points[..before.points.len()],
                before.points,
                "earlier points were touched"
            );
            assert_eq!((after.complete().len(), after.joined().len()), (8, 8));
            assert!(
                after.points.len() <= 9,
                "complete points were measured again"
            );
            // Both rounds of each layer count, though on different servers.
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(
                report["layers"]["tables"][0]["layers"]
                    .as_array()
                    .unwrap()
                    .len(),
                4
            );
            Ok(())
        },
    );
}

#[test]
fn invalid_requests_are_refused_before_anything_is_made() {
    let place = Place::new("layers-refused");
    let refusals = [
        (
            "layers . --server mariadb",
            "no function that reads one block of a file",
        ),
        ("layers . --scale 1000TiB", "free"),
        ("layers . --scale 64MiB --work-unit 8193", "8193 rows"),
        ("layers . --sessions 2000", "--sessions 2000"),
        ("layers . --point-time 1ms", "--point-time"),
        ("layers missing", "missing"),
    ];
    for (arguments, named) in refusals {
        let output = rigel(&place, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(
            said.contains(named) && said.contains("hint: "),
            "{arguments}: {said}"
        );
        assert!(entries(&place.0).is_empty(), "{arguments} left something");
    }
}
