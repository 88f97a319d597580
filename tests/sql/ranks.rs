//! Several ranks on databases: each server used by its own ranks, loaded once, removed once, and its
//! counts those of all ranks together.

use super::common::launched::{Rank, start};
use super::common::{Place, test, text};
use super::{assert_agree, client, number, postgres_15, serve, serve_mariadb, witness};
use rigel_model::record::journal::Run;
use serde_json::Value;
use std::process::{Command, Output};

/// Runs this command line on three ranks of one host. Returns what rank 0 printed; the others must
/// be silent, and the status of all the same.
#[track_caller]
fn three_ranks(place: &Place, line: &str, status: i32) -> Output {
    let on_one_host = |_: usize, command: &mut Command| {
        command
            .env("RIGEL_TEST_BOOT_ID", "one")
            .env("HOME", &place.0);
    };
    ended(start(place, line, 3, on_one_host).1, status)
}

#[track_caller]
fn ended(ranks: Vec<Rank>, status: i32) -> Output {
    let mut outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    for output in &outputs {
        assert_eq!(output.status.code(), Some(status), "{outputs:?}");
    }
    let silent = |output: &Output| output.stdout.is_empty() && output.stderr.is_empty();
    assert!(outputs[1..].iter().all(silent), "{outputs:?}");
    outputs.swap_remove(0)
}

#[test]
fn ranks_share_out_servers_which_are_loaded_and_removed_by_one() {
    test("ranks_share_out_servers", || {
        let places = [
            Place::in_memory("ranks-sql-1"),
            Place::in_memory("ranks-sql-2"),
        ];
        let bin = postgres_15()?;
        let servers = places.each_ref().map(|place| serve(&bin, place, &[]));
        let place = Place::new("ranks-sql");
        let urls = format!("{} {}", servers[0].url(), servers[1].url());
        let count = |server: usize, what: &str| number(&mut client(servers[server].url()), what);

        let loaded = three_ranks(&place, &format!("sql load {urls} --scale 2000"), 0);
        let said = String::from_utf8_lossy(&loaded.stderr).into_owned();
        assert_eq!(said.matches("loaded: ").count(), 1, "{said}");
        let again = three_ranks(&place, &format!("sql load {urls} --scale 2000"), 0);
        assert!(String::from_utf8_lossy(&again.stderr).contains("by an earlier load"));
        let rows = "SELECT count(*) FROM rigel.blocks_1";
        assert_eq!((count(0, rows), count(1, rows)), (2000, 2000));

        // Rank 1 alone is on the second server.
        let scans = "SELECT sum(idx_scan) FROM pg_stat_user_tables WHERE relname = 'blocks_1'";
        let before = [count(0, scans), count(1, scans)];
        let line = format!("sql run {urls} -t 1 --work-loop 100 --warm-up 0s --out run --json");
        let output = three_ranks(&place, &line, 0);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let databases = document["ranks"]["databases"].as_array().unwrap();
        let expected = [0, 1, 0].map(|server: usize| servers[server].url());
        assert_eq!(databases, &expected);
        let run = Run::read(&place.0.join("run")).unwrap();
        let mut done = [0; 3];
        for part in run.ranks.parts.iter().flat_map(|point| &point.parts) {
            let total = part.record.streams[0].total().done;
            assert_eq!(total, 100, "every session does its own work");
            done[part.rank as usize] += i64::try_from(total).unwrap();
            assert!(
                part.record
                    .samples
                    .iter()
                    .all(|sample| sample.server.is_none())
            );
        }
        // An operation is one index scan. Sessions publish their counts when they end.
        assert_eq!(count(0, scans) - before[0], done[0] + done[2]);
        assert_eq!(count(1, scans) - before[1], done[1]);
        // All ranks against both servers together.
        let points = document["points"].as_array().unwrap();
        // Together they have the windows that are common to all, if the work took that long.
        let together = &run.joined()[0];
        let counted = together.streams[0].total().done;
        assert_eq!(points[0]["sql"]["operations"], counted);
        if together.merge.as_ref().unwrap().is_common {
            assert!(counted <= 300, "{counted}");
        } else {
            assert_eq!(counted, 300);
        }
        for point in points {
            let counts = witness(point, "blocks of the tables visited");
            assert_agree(counts, "client and servers");
        }

        let removed = three_ranks(&place, &format!("sql drop {urls}"), 0);
        let said = String::from_utf8_lossy(&removed.stdout).into_owned();
        assert_eq!(said.matches("removed schema rigel").count(), 2, "{said}");
        let left = "SELECT count(*) FROM pg_namespace WHERE nspname = 'rigel'";
        assert_eq!((count(0, left), count(1, left)), (0, 0));
        Ok(())
    });
}

#[test]
fn a_socket_is_no_server_that_several_hosts_share_and_tables_must_be_alike() {
    test("a_socket_is_no_server_that_several_hosts_share", || {
        let places = [
            Place::in_memory("ranks-alike-1"),
            Place::in_memory("ranks-alike-2"),
        ];
        let bin = postgres_15()?;
        let servers = places.each_ref().map(|place| serve(&bin, place, &[]));
        let place = Place::new("ranks-alike");
        for (server, scale) in servers.iter().zip([1000, 2000]) {
            super::ends(
                &place,
                &format!("sql load {} --scale {scale}", server.url()),
                0,
            );
        }
        let line = format!(
            "sql run {} -t 1 --work-loop 9 --warm-up 0s --out run",
            servers[0].url()
        );
        let (_server, ranks) = start(&place, &line, 2, |_, _| ());
        let output = ended(ranks, 2);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("is another server on each of the 2 hosts"),
            "{said}"
        );
        // Each host with a server of its own: then it is what was asked for.
        let (_server, ranks) = start(&place, &format!("{line} --separate"), 2, |_, _| ());
        ended(ranks, 0);
        let run = Run::read(&place.0.join("run")).unwrap();
        let parts = run.ranks.parts.iter().flat_map(|point| &point.parts);
        // After a point each host waits for its server; a sample in between may be of the host alone.
        let ends = parts.map(|part| part.record.samples.last().unwrap().server.is_some());
        let ends: Vec<bool> = ends.collect();
        assert!(ends.len() >= 2 && ends.iter().all(|end| *end), "{ends:?}");

        let urls = format!("{} {}", servers[0].url(), servers[1].url());
        let line = format!("sql run {urls} -t 1 --work-loop 9 --warm-up 0s --out other");
        let output = three_ranks(&place, &line, 2);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("rank 1 on ") && said.contains("another size"),
            "{said}"
        );
        assert!(!place.0.join("other").exists());
        Ok(())
    });
}

/// A server whose folder has a second path, and so its socket a second URL: refused by ranks and by
/// one process.
fn is_one_server_by_two_urls(name: &str, of_server: &Place, url: &str) {
    let place = Place::new(name);
    let alias = place.0.join("alias");
    std::os::unix::fs::symlink(&of_server.0, &alias).unwrap();
    let percent = |path: &std::path::Path| text(path).replace('/', "%2F");
    let other = url
        .replace(&percent(&of_server.0), &percent(&alias))
        .replace(text(&of_server.0), text(&alias));
    assert_ne!(url, other);
    super::ends(&place, &format!("sql load {url} --scale 1000"), 0);
    let line = format!("sql run {url} {other} -t 1 --work-loop 9 --warm-up 0s --out run");
    let of_ranks = three_ranks(&place, &line, 2).stderr;
    let of_ranks = String::from_utf8_lossy(&of_ranks).into_owned();
    for said in [of_ranks, super::ends(&place, &line, 2)] {
        assert!(said.contains("is the same server as"), "{said}");
        assert!(!place.0.join("run").exists());
    }
}

#[test]
fn a_server_that_is_given_by_two_urls_is_refused_by_ranks_and_by_one_process() {
    test("a_server_that_is_given_by_two_urls", || {
        let of_server = Place::in_memory("ranks-twice-server");
        let server = serve(&postgres_15()?, &of_server, &[]);
        is_one_server_by_two_urls("ranks-twice", &of_server, server.url());
        Ok(())
    });
}

#[test]
fn a_mariadb_that_is_given_by_two_urls_is_refused_and_two_of_them_are_not() {
    test("a_mariadb_that_is_given_by_two_urls", || {
        let of_server = Place::new("ranks-twice-mariadb");
        let server = serve_mariadb(&of_server)?;
        is_one_server_by_two_urls("ranks-twice-m", &of_server, server.url());
        // Another server of this machine, with the same names.
        let of_other = Place::new("ranks-other-mariadb");
        let other = serve_mariadb(&of_other)?;
        let place = Place::new("ranks-two-m");
        super::ends(&place, &format!("sql load {} --scale 1000", other.url()), 0);
        let (one, two) = (server.url(), other.url());
        let line = format!("sql run {one} {two} -t 2 --work-loop 9 --warm-up 0s --out run");
        super::ends(&place, &line, 0);
        Ok(())
    });
}
