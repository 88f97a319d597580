//! Tables: one row per block, loaded once however often the load is interrupted, and removed
//! without harm to others.

use super::common::{Missing, Place, entries, in_time, kill, need, test, text, wait_until};
use super::psql::Psql;
use super::{begun, client, ends, number, postgres_15, postgres_18, serve};
use rigel_database::{self as sql, Access, LoadEvent, LoadRequest};
use rigel_model::Tables;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of rows in one block.
fn most_in_a_block(client: &mut Psql, table: &str) -> i64 {
    let text = format!(
        "SELECT max(n) FROM (SELECT count(*) n FROM {table} GROUP BY (ctid::text::point)[0]) b"
    );
    number(client, &text)
}

fn every_row_is_there_once(client: &mut Psql, table: &str, rows: i64) {
    let wanted = [
        ("count(*)", rows),
        ("count(DISTINCT id)", rows),
        ("min(id)", 0),
        ("max(id)", rows - 1),
    ];
    for (what, expected) in wanted {
        assert_eq!(
            number(client, &format!("SELECT {what} FROM {table}")),
            expected,
            "{what} of {table}"
        );
    }
    assert_eq!(most_in_a_block(client, table), 1, "{table}");
}

fn loaded_and_dropped(name: &str, bin: &Path) {
    let place = Place::in_memory(name);
    let server = serve(bin, &place, &[]);
    let url = server.url();
    let mut database = client(url);
    assert!(
        ends(&place, &format!("sql drop {url}"), 0)
            .contains("there are no tables of rigel sql load")
    );
    let said = ends(
        &place,
        &format!("sql load {url} --scale 9000 -s 2 --scan-table 100 --load-degree 4"),
        0,
    );
    assert!(said.contains("loaded: 18200 rows in 18"), "{said}");
    for table in ["rigel.blocks_1", "rigel.blocks_2"] {
        every_row_is_there_once(&mut database, table, 9000);
    }
    every_row_is_there_once(&mut database, "rigel.scan_2", 100);
    let rows = database.run(
        "SELECT correlation::float8 FROM pg_stats WHERE tablename = 'blocks_1' AND attname = 'id'",
    );
    let correlation: f64 = rows.unwrap()[0].parse().unwrap();
    assert!(correlation.abs() < 0.1, "{correlation}");

    // A second load does nothing. With another size it is refused.
    let files =
        |database: &mut Psql| number(database, "SELECT sum(relfilenode::bigint) FROM pg_class");
    let before = files(&mut database);
    let said = ends(
        &place,
        &format!("sql load {url} --scale 9000 -s 2 --scan-table 100"),
        0,
    );
    assert!(said.contains("18200 of them by an earlier load"), "{said}");
    let said = ends(
        &place,
        &format!("sql load {url} --scale 9001 -s 2 --scan-table 100"),
        2,
    );
    assert!(
        said.contains("2 tables of 9000 rows") && said.contains("rigel sql drop"),
        "{said}"
    );
    assert_eq!(files(&mut database), before);

    // A foreign table in our schema is left alone, and the schema too.
    database
        .run("CREATE TABLE rigel.mine (a int); INSERT INTO rigel.mine VALUES (7)")
        .unwrap();
    let output = super::program(&place, &format!("sql drop {url}"))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && printed.contains("removed rigel.blocks_2\n"),
        "{printed}"
    );
    assert!(!printed.contains("removed schema"), "{printed}");
    assert_eq!(number(&mut database, "SELECT a FROM rigel.mine"), 7);
    let ours = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE \
                nspname = 'rigel'";
    assert_eq!(number(&mut database, ours), 1);

    // Now the schema is not ours.
    for verb in ["load", "drop", "run"] {
        let said = ends(&place, &format!("sql {verb} {url}"), 2);
        assert!(
            said.contains("a schema named rigel that was not made by rigel sql load"),
            "{verb}: {said}"
        );
    }
    for manifest in [
        "(a int)",
        "(maker text, schemas bigint, scale bigint, scan_blocks bigint, block bigint)",
    ] {
        database
            .run(&format!("CREATE TABLE rigel.manifest {manifest}"))
            .unwrap();
        for verb in ["load", "drop", "run"] {
            ends(&place, &format!("sql {verb} {url}"), 2);
        }
        assert_eq!(number(&mut database, ours), 2);
        database.run("DROP TABLE rigel.manifest").unwrap();
    }
    database.run("DROP SCHEMA rigel CASCADE").unwrap();
    assert!(
        ends(&place, &format!("sql drop {url}"), 0)
            .contains("there are no tables of rigel sql load")
    );
    drop(database);
    server.stop().unwrap();
}

#[test]
fn tables_of_version_15_hold_one_row_to_a_block_and_go_without_harm() {
    test(
        "tables_of_version_15_hold_one_row_to_a_block_and_go_without_harm",
        || {
            loaded_and_dropped("sql-load-15", &postgres_15()?);
            Ok(())
        },
    );
}

#[test]
fn tables_of_version_18_hold_one_row_to_a_block_and_go_without_harm() {
    test(
        "tables_of_version_18_hold_one_row_to_a_block_and_go_without_harm",
        || {
            loaded_and_dropped("sql-load-18", &postgres_18()?);
            Ok(())
        },
    );
}

/// A load by the program, killed after at least the first chunk.
fn killed_load(place: &Place, url: &str, database: &mut Psql) {
    let mut child = begun(
        place,
        &format!("sql load {url} --scale 17000 --scan-table 100"),
    );
    wait_until("a chunk is loaded", || {
        let there = number(
            database,
            "SELECT (to_regclass('rigel.chunks') IS NOT NULL)::int",
        );
        let some = there == 1 && number(database, "SELECT count(*) FROM rigel.chunks") > 0;
        some || child.try_wait().unwrap().is_some()
    });
    kill(&mut child);
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'rigel-%'";
    wait_until("its sessions are gone", || number(database, sessions) == 0);
}

#[test]
fn a_killed_load_is_resumed_and_loads_every_row_once() {
    test("a_killed_load_is_resumed_and_loads_every_row_once", || {
        for (version, bin) in [("15", postgres_15()?), ("18", postgres_18()?)] {
            let place = Place::in_memory(&format!("sql-load-killed-{version}"));
            let server = serve(&bin, &place, &[]);
            let mut database = client(server.url());
            let run = format!("sql run {} -t 1 --run-time 1s --out whole", server.url());
            let said = in_time("the load was killed", |_| {
                killed_load(&place, server.url(), &mut database);
                let output = super::program(&place, &run).output().unwrap();
                if output.status.success() {
                    ends(&place, &format!("sql drop {}", server.url()), 0);
                    std::fs::remove_dir_all(place.0.join("whole")).unwrap();
                    return None;
                }
                assert_eq!(output.status.code(), Some(2), "{output:?}");
                Some(super::stderr(&output))
            });
            assert!(
                said.contains("has no tables of rigel sql load, or not all of them"),
                "{said}"
            );
            let said = ends(
                &place,
                &format!("sql load {} --scale 17000 --scan-table 100", server.url()),
                0,
            );
            assert!(
                said.contains("of them by an earlier load"),
                "{version}: {said}"
            );
            every_row_is_there_once(&mut database, "rigel.blocks_1", 17_000);
            let blocks = number(
                &mut database,
                "SELECT pg_relation_size('rigel.blocks_1') / 8192",
            );
            // Blocks filled by the killed load are reused: only blocks that COPY adds in advance
            // may be empty.
            assert!(
                (17_000..17_400).contains(&blocks),
                "{version}: {blocks} blocks"
            );
            drop(database);
            server.stop().unwrap();
        }
        Ok(())
    });
}

#[test]
fn a_stopped_load_says_so_and_can_be_resumed() {
    test("a_stopped_load_says_so_and_can_be_resumed", || {
        let place = Place::in_memory("sql-load-stopped");
        let server = serve(&postgres_18()?, &place, &[]);
        let access = Access::parse([server.url()], &|_| None).unwrap();
        let tables = Tables {
            schemas: 1,
            scale: 20_000,
            scan_blocks: 50,
            block: 8192,
        };
        let request = LoadRequest {
            tables,
            degree: 1,
            tablespace: None,
        };
        let stop = AtomicBool::new(false);
        let listen = |event| {
            if matches!(event, LoadEvent::Rows { .. }) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let error = sql::load(&access, &request, &stop, &listen).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the load was stopped after 8192 of 20050 rows"),
            "{error}"
        );
        assert_eq!(sql::find(&access).unwrap(), None);
        let loaded = sql::load(&access, &request, &AtomicBool::new(false), &|_| ()).unwrap();
        assert_eq!((loaded.rows_before, loaded.rows), (8192, 20_050));
        assert_eq!(sql::find(&access).unwrap(), Some(tables));
        every_row_is_there_once(&mut client(server.url()), "rigel.blocks_1", 20_000);
        // Removal works even if half of it is already gone.
        assert!(
            sql::remove(&access)
                .unwrap()
                .contains(&"schema rigel".to_string())
        );
        assert_eq!(sql::remove(&access).unwrap(), Vec::<String>::new());
        Ok(())
    });
}

/// A filesystem in memory, unmounted on drop.
struct Small(std::path::PathBuf);

impl Small {
    fn new(place: &Place, size: &str) -> Result<Self, Missing> {
        let point = place.0.join("small");
        std::fs::create_dir(&point).unwrap();
        need(
            "mount",
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=755"),
                "tmpfs",
                text(&point),
            ],
        )
        .map(|_| Self(point))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = need("umount", &[text(&self.0)]);
    }
}

#[test]
fn a_full_disk_ends_the_load_which_can_be_resumed_when_there_is_space() {
    let name = "a_full_disk_ends_the_load_which_can_be_resumed_when_there_is_space";
    test(name, || {
        let bin = postgres_15()?;
        let place = Place::new("sql-load-full");
        let small = Small::new(&place, "220m")?;
        let refused = ends(
            &place,
            &format!("sql run --on small --server-bin {}", bin.display()),
            2,
        );
        assert!(
            refused.contains("free, but the tables and the server need"),
            "{refused}"
        );
        assert_eq!(entries(&small.0), [] as [std::path::PathBuf; 0]);

        let inner = Place(small.0.clone());
        // With a small WAL: the table is what fills the disk.
        let server = serve(
            &bin,
            &inner,
            &[("max_wal_size", "32MB"), ("min_wal_size", "32MB")],
        );
        let line = format!("sql load {} --scale 25000 --scan-table 100", server.url());
        let said = ends(&place, &line, 1);
        assert!(
            said.contains("could not load rows: ") && said.contains("hint: free some space"),
            "{said}"
        );
        need("mount", &["-o", "remount,size=900m", text(&small.0)])?;
        ends(&place, &line, 0);
        every_row_is_there_once(&mut client(server.url()), "rigel.blocks_1", 25_000);
        server.stop().unwrap();
        std::mem::forget(inner);
        assert_eq!(entries(&small.0), [] as [std::path::PathBuf; 0]);
        Ok(())
    });
}
