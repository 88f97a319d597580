//! The demand of sessions, offered to a database: which operations, at which rate, what the server
//! did, and what is refused.

use super::common::{Place, test};
use super::{client, count, ends, number, postgres_15, program, serve, serve_mariadb, stderr};
use serde_json::Value;

/// The JSON report of a fit, whatever it answers: how much a machine carries is not the question.
#[track_caller]
fn fitted(place: &Place, line: &str) -> Value {
    let output = program(place, &format!("fit {line} --no-progress --json"))
        .output()
        .unwrap();
    let status = output.status.code();
    assert!(
        [Some(0), Some(3), Some(4)].contains(&status),
        "{line}: {}",
        stderr(&output)
    );
    serde_json::from_slice(&output.stdout).expect("one document on stdout")
}

/// Checks that a fit says what the server did at each multiple: as data, in text and on the page.
#[track_caller]
fn assert_server_is_told(place: &Place, run: &str, document: &Value) {
    let points = document["points"].as_array().unwrap();
    let output = program(place, &format!("report {run} --html"))
        .output()
        .unwrap();
    // A report ends as its run, whatever a busy machine made of that.
    let status = match document["fit"]["verdict"].as_str() {
        Some("kept") => 0,
        Some("broken") => 3,
        Some("undecided") => 4,
        other => panic!("{other:?}"),
    };
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    let page = std::fs::read_to_string(place.0.join(run).join("report.html")).unwrap();
    let text = program(place, &format!("report {run} --verbose"))
        .output()
        .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    let (_, section) = text
        .split_once("What the database did\n")
        .unwrap_or_else(|| panic!("{text}"));
    for words in ["physical reads", "buffer cache", "database time"] {
        assert!(section.contains(words), "{words}: {section}");
    }
    assert!(page.contains("What the database did"));
    for point in points {
        let sql = &point["sql"];
        let server = &sql["server"];
        let rate = |name: &str| count(&server[name]["per_operation"]);
        // The tables are larger than the cache, and an operation visits four blocks at least.
        assert!(rate("physical") > 0.0 && rate("logical") >= 4.0, "{server}");
        let hits = 1.0 - rate("physical") / rate("logical");
        assert!(
            (count(&server["hit_share"]) - hits).abs() < 1e-9,
            "{server}"
        );
        // Samples of a server with little to do may all find it idle.
        let was_active = count(&server["active"]) > 0.0;
        assert_eq!(
            was_active,
            !sql["waits"].as_array().unwrap().is_empty(),
            "{sql}"
        );
    }
    for tried in document["fit"]["multiples"].as_array().unwrap() {
        let row = format!("{} ×", count(&tried["multiple"]));
        assert!(
            section.lines().any(|line| line.starts_with(&row)),
            "{row}: {section}"
        );
    }
}

#[test]
fn a_fit_on_mariadb_says_what_the_server_did() {
    test("a_fit_on_mariadb_says_what_the_server_did", || {
        let place = Place::in_memory("sql-fit-mariadb");
        let server = serve_mariadb(&place)?;
        let url = server.url();
        // 16 KiB a block: twice the buffer cache.
        ends(&place, &format!("sql load {url} --scale 4000"), 0);
        let line = "-t 2 --rate 100 --work-unit 4 --run-time 3s --warm-up 0s";
        ends(
            &place,
            &format!("sql run {url} {line} --no-progress --out demand"),
            0,
        );
        let terms = "--point-time 2s --multiples 1..2 --slo operations:mean<100s --sessions 4";
        let document = fitted(&place, &format!("demand {url} {terms} --out run"));
        assert_server_is_told(&place, "run", &document);
        Ok(())
    });
}

#[test]
fn operations_of_a_run_are_offered_to_a_database() {
    test("operations_of_a_run_are_offered_to_a_database", || {
        let place = Place::in_memory("sql-fit");
        let server = serve(&postgres_15()?, &place, &[]);
        let url = server.url();
        ends(&place, &format!("sql load {url} --scale 4000"), 0);
        let line = "-t 2 --rate 100 --work-unit 4 --update 20% --run-time 3s --warm-up 0s";
        ends(
            &place,
            &format!("sql run {url} {line} --no-progress --out demand"),
            0,
        );
        let updated = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'blocks_1'";
        let before = number(&mut client(url), updated);
        let terms = "--point-time 2s --multiples 1..2 --slo 'operations mean<100s' --sessions 4";
        let terms = terms.replace("'operations mean<100s'", "operations:mean<100s");

        let reads = fitted(&place, &format!("demand {url} {terms} --out reads"));
        // A fifth of the operations updates, and is left out: nothing was written.
        assert_eq!(number(&mut client(url), updated), before);
        let whole = fitted(&place, &format!("demand {url} {terms} --write --out whole"));
        assert!(number(&mut client(url), updated) > before);
        let offered = |document: &Value| {
            let offered = document["fit"]["offered"].as_array().unwrap();
            assert_eq!(offered.len(), 1, "{offered:?}");
            assert_eq!(
                (&offered[0]["kind"], &offered[0]["in_flight_max"]),
                (&"operations".into(), &4.into())
            );
            count(&offered[0]["per_s"])
        };
        let (part, all) = (offered(&reads), offered(&whole));
        assert!((part - 0.8 * all).abs() < 1e-6, "{part} of {all}");

        for (document, per_s) in [(&reads, part), (&whole, all)] {
            let conclusion = document["conclusion"]["sentence"].as_str().unwrap();
            assert!(
                conclusion.contains("operations mean < 100 s"),
                "{conclusion}"
            );
            let multiples = document["fit"]["multiples"].as_array().unwrap();
            assert_eq!(multiples[0]["multiple"], 1.0);
            for tried in multiples {
                // Points are in the order in which they were measured, multiples by size.
                let thousandths = count(&tried["multiple"]) * 1e3;
                let points = document["points"].as_array().unwrap().iter();
                let mut points =
                    points.filter(|point| (count(&point["thousandths"]) - thousandths).abs() < 0.5);
                let point = points.next_back().unwrap();
                // Random arrivals of two seconds: five standard deviations about the mean.
                let wanted = per_s * count(&tried["multiple"]);
                let seconds = count(&point["measured_s"]);
                let stream = &tried["streams"][0];
                let due = count(&stream["offered_per_s"]);
                let near = 5.0 * (wanted / seconds).sqrt() + 1.0;
                assert!((due - wanted).abs() < near, "{due} of {wanted}: {tried}");
                let class = &point["classes"][0];
                let ended = count(&class["done"]) + count(&class["unserved"]);
                assert!((due * seconds - ended).abs() < 0.5, "{class}");
            }
        }
        let said = reads["conclusion"]["sentence"].as_str().unwrap();
        assert!(said.starts_with("Reads only"), "{said}");

        assert_server_is_told(&place, "whole", &whole);
        // The report again.
        let output = program(&place, "report reads --verbose").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("--write offers them") && text.contains("4 sessions: reads of 4 rows"),
            "{text}"
        );
        Ok(())
    });
}

#[test]
fn what_cannot_be_offered_to_a_database_is_refused() {
    test("what_cannot_be_offered_to_a_database_is_refused", || {
        let place = Place::in_memory("sql-fit-refused");
        let url = "postgres://nobody@localhost:1/none";
        std::fs::write(
            place.0.join("day.csv"),
            "time,reads_per_second\n2026-01-01T00:00,500\n2026-01-01T00:10,600\n",
        )
        .unwrap();
        // Before anything is connected to: there is no server at that address.
        for (line, words) in [
            (
                format!("fit day.csv {url}"),
                "not which operations asked for it",
            ),
            (
                format!("fit day.csv {url} --destroy {url}"),
                "a database has --write instead",
            ),
            (
                "fit day.csv sim:8,100us --sessions 4".to_string(),
                "--sessions is for a database",
            ),
        ] {
            let said = ends(&place, &line, 2);
            assert!(said.contains(words), "{line}: {said}");
        }
        Ok(())
    });
}
