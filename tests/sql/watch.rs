//! `rigel watch` of servers of the oldest and the newest installed version: what it counts, what it
//! says it cannot see, and how it names a server.

use super::common::{Place, test, wait_until};
use super::{begun, client, count, ends, number, postgres_15, postgres_18, program, serve, signal};
use serde_json::Value;
use std::path::Path;

/// Blocks that the server read since it was made, whoever read them.
const READ: &str = "SELECT sum(blks_read) FROM pg_stat_database";

/// The JSON report of a run.
fn report(place: &Place, run: &str) -> Value {
    let output = program(place, &format!("report {run} --json")).output();
    serde_json::from_slice(&output.unwrap().stdout).expect("one document on stdout")
}

/// True if the counters of an interval show blocks that were read. Where the machine stands still, a server does not
/// answer in time, and intervals have no counters.
fn has_reads(run: &Path) -> bool {
    let text = std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.into_iter().any(|line: Value| {
        let read = |at: usize| {
            let counters = &line["watched"]["databases"][0]["counters"][at];
            counters["pg_stat_database.blks_read"].as_u64()
        };
        read(0) < read(1)
    })
}

/// True if the report has a finding of this name.
fn has(document: &Value, name: &str) -> bool {
    let findings = document["findings"].as_array().unwrap();
    findings.iter().any(|finding| finding["name"] == name)
}

#[test]
fn what_a_user_may_not_see_is_said_and_the_counters_remain() {
    test(
        "what_a_user_may_not_see_is_said_and_the_counters_remain",
        || {
            for bin in [postgres_15()?, postgres_18()?] {
                let place = Place::in_memory("sql-watch");
                let server = serve(&bin, &place, &[("track_io_timing", "off")]);
                let url = server.url();
                ends(&place, &format!("sql load {url} --scale 4000"), 0);
                let mut owner = client(url);
                owner.run("CREATE ROLE plain LOGIN").unwrap();
                let plain = url.replacen("rigel@", "plain@", 1);
                for (user, run, is_hidden) in [(url, "all", false), (plain.as_str(), "some", true)]
                {
                    let before = number(&mut owner, READ);
                    let line =
                        format!("watch {user} --every 1s --for 1h --no-progress --out {run}");
                    let mut child = begun(&place, &line);
                    // Eight times the buffer cache, and not by an index: each visit reads the table again.
                    wait_until("an interval has reads", || {
                        number(&mut owner, "SELECT count(c1) FROM rigel.blocks_1");
                        has_reads(&place.0.join(run))
                    });
                    signal(child.id(), "INT");
                    assert!(child.wait().unwrap().success(), "{line}");
                    // A session publishes its counters at the latest when it ends.
                    owner = client(url);
                    let read = (number(&mut owner, READ) - before) as f64;
                    let document = report(&place, run);
                    assert_eq!(has(&document, "waits-hidden"), is_hidden, "{document}");
                    assert!(has(&document, "times-hidden"), "{document}");
                    let source = &document["watch"]["sources"][0];
                    assert_eq!(source["name"], user);
                    let streams = source["streams"].as_array().unwrap();
                    let reads = streams
                        .iter()
                        .filter(|stream| stream["name"].as_str().unwrap().ends_with("reads"));
                    let seen: f64 = reads.map(|stream| count(&stream["operations"])).sum();
                    // Everybody sees the counters, and no more than there was.
                    assert!(seen > 0.0 && seen <= read, "{seen} of {read}: {document}");
                    // A sentence has the path of the socket, what is pasted back has the URL.
                    let output = program(&place, &format!("report {run} --verbose"))
                        .output()
                        .unwrap();
                    let text = String::from_utf8(output.stdout).unwrap();
                    let path = place.0.to_str().unwrap();
                    let answer = text.split("\n---").next().unwrap();
                    assert!(answer.contains(&format!("@{path}/")), "{text}");
                    assert!(!answer.contains("%2F"), "{text}");
                }
            }
            Ok(())
        },
    );
}
