//! Mixes of sessions: exact fractions, rows changed as requested, pauses respected, cancelled
//! statements reported.

use super::common::{Place, test, wait_until};
use super::{client, count, ends, measured, number, postgres_15, postgres_18, serve};
use serde_json::Value;

fn kinds(document: &Value) -> [u64; 3] {
    let of = |kind: &str| {
        document["points"][0]["sql"]["kinds"][kind]
            .as_u64()
            .unwrap_or(0)
    };
    [of("read"), of("write"), of("scan")]
}

#[test]
fn sessions_do_exactly_the_requested_work() {
    test("sessions_do_exactly_the_requested_work", || {
        let place = Place::in_memory("sql-mixes");
        let server = serve(&postgres_18()?, &place, &[]);
        let url = server.url();
        let mut database = client(url);
        ends(
            &place,
            &format!("sql load {url} --scale 4000 -s 2 --scan-table 3000"),
            0,
        );
        let mut runs = 0;
        let mut run = |arguments: &str| {
            runs += 1;
            measured(
                &place,
                &format!("sql run {url} --warm-up 0s --out run{runs} {arguments}"),
            )
        };

        // Four sessions of a hundred operations, a tenth of which update eight rows each.
        let document = run("-t 2 --work-loop 100 --update 10% --update-work-unit 8");
        assert_eq!(kinds(&document), [360, 40, 0]);
        let log = |document: &Value| {
            count(&document["points"][0]["sql"]["server"]["log_bytes"]["per_operation"])
        };
        // A row of one kilobyte is logged completely: at least a tenth of eight of them.
        assert!(log(&document) > 800.0, "{}", log(&document));
        let mut changed = |column: &str| {
            let rows = |table| {
                format!("(SELECT count(*) FROM rigel.{table} WHERE {column} ~ '^[0-9]{{20}}x')")
            };
            number(
                &mut database,
                &format!("SELECT {} + {}", rows("blocks_1"), rows("blocks_2")),
            )
        };
        let touched = changed("c1");
        // By chance a few of the 40 overlap.
        assert!((200..=320).contains(&touched), "{touched}");
        assert_eq!((changed("c2"), changed("c19")), (0, touched));
        let document =
            run("-t 2 --work-loop 20 --update 100% --update-work-unit 8 --redo-stress heavy");
        assert_eq!(kinds(&document), [0, 80, 0]);
        assert!(changed("c2") > 300, "{}", changed("c2"));

        // A quarter of the reads scan the table without an index.
        let scans = "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname LIKE 'scan%'";
        let before = number(&mut client(url), scans);
        let document = run("-t 1 --work-loop 40 --scan 25%");
        assert_eq!(kinds(&document), [60, 0, 20]);
        // A session's counts are available once the server has noticed that it is gone.
        wait_until("twenty scans are counted", || {
            number(&mut client(url), scans) - before >= 20
        });
        assert_eq!(number(&mut client(url), scans) - before, 20);

        // All in a range of 64 blocks; each operation visits all of them.
        let document = run("-t 1 --work-loop 20 --hot-spot 8MiB+512KiB/1");
        assert_eq!(
            document["points"][0]["classes"][0]["coverage"]["distinct"],
            128
        );
        // All in the first table.
        let searched = "SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'blocks_2'";
        let before = number(&mut client(url), searched);
        run("-t 1 --work-loop 20 --hot-schema 1");
        assert_eq!(number(&mut client(url), searched), before);

        // Twenty operations with a pause between every two.
        let document = run("-t 1 --work-loop 20 --think 50ms..50ms/1");
        assert!(
            count(&document["points"][0]["measured_s"]) >= 19.0 * 0.05,
            "{document}"
        );
        assert!(
            !document["findings"].to_string().contains("littles-law"),
            "{}",
            document["findings"]
        );
        Ok(())
    });
}

#[test]
fn rows_of_a_list_are_the_same_rows_by_another_plan() {
    test("rows_of_a_list_are_the_same_rows_by_another_plan", || {
        let place = Place::in_memory("sql-prefetch");
        let server = serve(&postgres_18()?, &place, &[]);
        let url = server.url();
        ends(&place, &format!("sql load {url} --scale 4000"), 0);
        let visited = |table: &str, what: &str| {
            let text = format!(
                "SELECT coalesce(sum({what}), 0) FROM pg_statio_user_tables JOIN \
                 pg_stat_user_tables USING (relid) WHERE pg_stat_user_tables.relname = '{table}'"
            );
            number(&mut client(url), &text)
        };
        let blocks = || visited("blocks_1", "heap_blks_read + heap_blks_hit");
        let fetched = || visited("blocks_1", "idx_tup_fetch");
        let before = (blocks(), fetched());
        let document = measured(
            &place,
            &format!(
                "sql run {url} -t 2 --work-unit 16 --work-loop 50 --warm-up 0s --prefetch --out run"
            ),
        );
        assert_eq!(document["points"][0]["classes"][0]["done"], 100);
        assert_eq!(
            document["points"][0]["classes"][0]["failed"],
            serde_json::json!({})
        );
        // A session's counts are available once the server has noticed that it is gone.
        wait_until("every row is counted", || fetched() - before.1 >= 1600);
        // One row to a block: each row of a list is a block, and visited once.
        assert_eq!((blocks() - before.0, fetched() - before.1), (1600, 1600));
        let plan = document["target"]["server"]["plan"].to_string();
        assert!(plan.contains("Bitmap Heap Scan"), "{plan}");
        Ok(())
    });
}

#[test]
fn pipelined_sessions_do_the_same_work_and_are_labelled() {
    test(
        "pipelined_sessions_do_the_same_work_and_are_labelled",
        || {
            let place = Place::in_memory("sql-pipeline");
            let server = serve(&postgres_15()?, &place, &[]);
            let url = server.url();
            ends(
                &place,
                &format!("sql load {url} --scale 4000 --scan-table 200"),
                0,
            );
            let done = "SELECT n_tup_upd + idx_tup_fetch FROM pg_stat_user_tables WHERE \
                        relname = 'blocks_1'";
            let before = number(&mut client(url), done);
            let line = "-t 2 --work-loop 100 --work-unit 4 --update 25% --scan 20% --warm-up 0s \
                        --pipeline 8";
            let document = measured(&place, &format!("sql run {url} {line} --out run"));
            // The mix is exact, and no operation is lost, counted twice or failed.
            assert_eq!(kinds(&document), [120, 50, 30]);
            let point = &document["points"][0];
            assert_eq!(point["classes"][0]["failed"], serde_json::json!({}));
            // By the server's count: a read fetches four rows, an update finds and changes four.
            let wanted = 120 * 4 + 50 * 8;
            wait_until("every row is counted", || {
                number(&mut client(url), done) - before >= wanted
            });
            assert_eq!(number(&mut client(url), done) - before, wanted);
            assert_eq!(
                (&point["sessions"], &point["sql"]["pipeline"]),
                (&2.into(), &8.into())
            );
            let findings = document["findings"].to_string();
            assert!(
                findings.contains("pipelined") && !findings.contains("littles-law"),
                "{findings}"
            );
            for page in ["run/report.html", "run/journal.jsonl"] {
                let text = std::fs::read_to_string(place.0.join(page)).unwrap();
                assert!(text.contains("8 operations in flight"), "{page}");
            }

            // Errors end the operations that they belong to, and the session goes on.
            let line = "-t 1 --scan 50% --work-loop 40 --pipeline 4 --statement-timeout 1ms \
                        --warm-up 0s --no-progress --out failing";
            ends(
                &place,
                &format!("sql load {url} --scale 4000 --scan-table 200"),
                0,
            );
            let mut database = client(url);
            database.run("BEGIN; LOCK TABLE rigel.scan_1").unwrap();
            ends(&place, &format!("sql run {url} {line}"), 1);
            database.run("ROLLBACK").unwrap();
            let output = super::program(&place, "report failing --json")
                .output()
                .unwrap();
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            let class = &document["points"][0]["classes"][0];
            let failed: f64 = class["failed"]
                .as_object()
                .unwrap()
                .iter()
                .filter(|(cause, _)| cause.contains("57014"))
                .map(|(_, failed)| count(failed))
                .sum();
            assert!(failed >= 20.0, "{class}");
            assert!(
                (count(&class["done"]) + failed - 40.0).abs() < 0.5,
                "{class}"
            );

            // An open loop, and a soak.
            let line = "--rate 200 --in-flight 2 --work-unit 4 --point-max 1s --pipeline 4";
            let document = measured(&place, &format!("curve {url} {line} --out open"));
            let class = &document["points"][0]["classes"][0];
            let due = count(&class["offered"]) * count(&document["points"][0]["measured_s"]);
            let ended = count(&class["done"]) + count(&class["unserved"]);
            assert!(due > 0.0 && (due - ended).abs() < 0.5, "{class}");
            assert_eq!(document["points"][0]["in_flight_max"], 8);
            let line = "--work 100ops --every 1h --for 1h --depth 2 --work-unit 4 --pipeline 4";
            let document = measured(&place, &format!("soak {url} {line} --out soak"));
            assert!(
                document["findings"].to_string().contains("pipelined"),
                "{document}"
            );
            Ok(())
        },
    );
}

#[test]
fn a_statement_that_the_server_ends_is_a_failed_operation() {
    test(
        "a_statement_that_the_server_ends_is_a_failed_operation",
        || {
            let place = Place::in_memory("sql-timeout");
            let server = serve(&postgres_18()?, &place, &[]);
            ends(
                &place,
                &format!("sql load {} --scale 2000 --scan-table 4000", server.url()),
                0,
            );
            let line = "-t 1 --scan 100% --work-loop 5 --statement-timeout 1ms --warm-up 0s \
                        --no-progress --out run";
            let output = super::program(&place, &format!("sql run {} {line}", server.url()))
                .output()
                .unwrap();
            let said = super::stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("5 I/Os failed"), "{said}");
            let printed = String::from_utf8(output.stdout).unwrap();
            assert!(printed.contains("57014"), "{printed}");
            let output = super::program(&place, "report run --json")
                .output()
                .unwrap();
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            crate::common::schema::fits("sql", &document);
            let failed = &document["points"][0]["classes"][0]["failed"];
            assert!(
                failed.to_string().contains("57014") && failed.to_string().contains('5'),
                "{failed}"
            );
            Ok(())
        },
    );
}
