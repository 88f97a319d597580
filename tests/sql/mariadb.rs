//! `MariaDB` as a target: one row per page, resumed loads, runs that count correctly, foreign
//! objects left alone.
//!
//! Each test starts its own server on a socket, below the build's folder, and removes it.

use super::assert_offered;
use crate::common::{Missing, Place, in_time, need, rigel, test, text, wait_until};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord};
use rigel_model::{Kind, ServerSample};
use std::process::{Child, Command, Output, Stdio};

/// A server with an empty data directory, ended and removed on drop.
struct Server {
    child: Child,
    place: Place,
}

impl Server {
    fn start(name: &str) -> Result<Self, Missing> {
        let place = Place::new(&format!("mariadb-{name}"));
        let (data, socket) = (place.0.join("data"), place.0.join("socket"));
        // The kernel allows 107 bytes for a socket's path.
        if text(&socket).len() > 107 {
            return Err(Missing(format!(
                "'{}' is too long for a socket",
                socket.display()
            )));
        }
        // The server refuses to run as root.
        let is_root = rustix::process::getuid().is_root();
        let user = if is_root {
            "mysql".to_string()
        } else {
            need("id", &["-un"])?
        };
        if is_root {
            need("chown", &["mysql", text(&place.0)])?;
        }
        let (user, data) = (
            format!("--user={user}"),
            format!("--datadir={}", data.display()),
        );
        // Servers that start at the same time would remove each other's temporary tables.
        let temporary = format!("--tmpdir={}", place.0.display());
        let install = [
            "--no-defaults",
            &user,
            &data,
            &temporary,
            "--auth-root-authentication-method=normal",
        ];
        need("mariadb-install-db", &install)?;
        let log = std::fs::File::create(place.0.join("log")).unwrap();
        let child = Command::new("mariadbd")
            .args([
                "--no-defaults",
                &user,
                &data,
                &temporary,
                "--skip-networking",
                "--innodb-buffer-pool-size=8M",
            ])
            .arg(format!("--socket={}", socket.display()))
            .args([
                "--innodb-flush-method=O_DIRECT",
                "--performance-schema=ON",
                "--max-statement-time=0",
            ])
            .args(["--performance-schema-consumer-events-waits-current=ON"])
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| Missing(format!("mariadbd: {error}")))?;
        let server = Self { child, place };
        wait_until("the server answers", || server.try_connect(None).is_ok());
        server.execute(None, "CREATE DATABASE shop");
        Ok(server)
    }

    fn try_connect(&self, database: Option<&str>) -> mysql::Result<Conn> {
        let socket = text(&self.place.0.join("socket")).to_string();
        Conn::new(
            OptsBuilder::new()
                .user(Some("root"))
                .db_name(database)
                .socket(Some(socket)),
        )
    }

    fn connect(&self) -> Conn {
        self.try_connect(Some("shop")).unwrap()
    }

    fn execute(&self, database: Option<&str>, statement: &str) {
        self.try_connect(database)
            .unwrap()
            .query_drop(statement)
            .unwrap();
    }

    fn number(&self, query: &str) -> u64 {
        self.connect().query_first(query).unwrap().unwrap()
    }

    fn tables(&self) -> Vec<String> {
        self.connect().query("SHOW TABLES").unwrap()
    }

    fn url(&self, user: &str, database: &str) -> String {
        format!(
            "mysql://{user}@localhost/{database}?socket={}",
            text(&self.place.0.join("socket"))
        )
    }

    /// `rigel sql` with these arguments; the second is the URL.
    fn sql(&self, verb: &str, arguments: &str) -> Command {
        rigel(
            &self.place,
            &format!("sql {verb} {} {arguments}", self.url("root", "shop")),
        )
    }

    fn done(&self, verb: &str, arguments: &str) -> Output {
        let output = self.sql(verb, arguments).output().unwrap();
        assert!(output.status.success(), "{verb} {arguments}: {output:?}");
        output
    }

    fn refused(&self, verb: &str, arguments: &str, status: i32, words: &str) {
        let output = self.sql(verb, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(status) && said.contains(words),
            "{output:?}"
        );
    }

    /// The only point of a run with these arguments.
    fn point(&self, name: &str, arguments: &str) -> PointRecord {
        self.done(
            "run",
            &format!("--warm-up 0s --no-progress --out {name} {arguments}"),
        );
        Run::read(&self.place.0.join(name))
            .unwrap()
            .points
            .remove(0)
    }

    /// After a load the purge visits every written row, and the pages that it reads are counted
    /// too.
    fn wait_for_purge(&self) {
        let history = "SELECT VARIABLE_VALUE + 0 FROM information_schema.GLOBAL_STATUS WHERE \
                       VARIABLE_NAME = 'INNODB_HISTORY_LIST_LENGTH'";
        wait_until("the server has cleaned up after the load", || {
            self.connect()
                .query_first::<f64, _>(history)
                .unwrap()
                .unwrap()
                < 1.0
        });
    }

    fn leaf_pages(&self, table: &str) -> u64 {
        self.number(&format!(
            "SELECT stat_value FROM mysql.innodb_index_stats WHERE database_name = 'shop' AND \
             table_name = '{table}' AND index_name = 'PRIMARY' AND stat_name = 'n_leaf_pages'"
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Number of successful operations of a kind; any failed operation fails the test.
fn done(point: &PointRecord, kind: Kind) -> u64 {
    let Some(total) = point.streams[0].total_of(kind) else {
        return 0;
    };
    assert!(total.failed.is_empty(), "{:?}", total.failed);
    total.done
}

/// Change of the server's counter from the first sample to the last.
fn counted(point: &PointRecord, counter: impl Fn(&ServerSample) -> Option<u64>) -> u64 {
    let samples: Vec<_> = point
        .samples
        .iter()
        .filter_map(|sample| sample.server.as_deref())
        .collect();
    counter(samples.last().unwrap()).unwrap() - counter(samples[0]).unwrap()
}

const SIZE: &str = "-s 2 --scale 2000 --scan-table 100";

#[test]
fn a_page_holds_one_row_and_a_run_counts_them() {
    test("a_page_holds_one_row_and_a_run_counts_them", || {
        let server = Server::start("rows")?;
        server.execute(Some("shop"), "CREATE TABLE orders (id INT PRIMARY KEY)");
        let said = server.done("load", SIZE);
        assert!(
            String::from_utf8_lossy(&said.stderr).contains("loaded: 4200 rows in 42"),
            "{said:?}"
        );
        for table in ["rigel_blocks_1", "rigel_blocks_2"] {
            assert!(
                (2000..=2022).contains(&server.leaf_pages(table)),
                "{}",
                server.leaf_pages(table)
            );
            let (least, most): (u64, u64) = server
                .connect()
                .query_first(format!(
                    "SELECT MIN(id), MAX(id) FROM {table} WHERE c1 IS NOT NULL"
                ))
                .unwrap()
                .unwrap();
            assert_eq!((least, most), (0, 1999));
        }
        reads_are_as_many_pages(&server);
        updates_are_as_many_rows(&server);
        let removed = server.done("drop", "");
        assert_eq!(
            String::from_utf8_lossy(&removed.stdout).lines().count(),
            6,
            "{removed:?}"
        );
        assert_eq!(server.tables(), ["orders"]);
        let nothing = server.done("drop", "");
        assert!(
            String::from_utf8_lossy(&nothing.stderr)
                .contains("there are no tables of rigel sql load"),
            "{nothing:?}"
        );
        Ok(())
    });
}

fn reads_are_as_many_pages(server: &Server) {
    server.wait_for_purge();
    let point = server.point("reads", "-t 2 --work-loop 200 --work-unit 20");
    assert_eq!(
        (&point.end, done(&point, Kind::Read)),
        (&End::Complete, 800)
    );
    // The pool has space for an eighth of the tables, and contains the upper pages of the index.
    let physical = counted(&point, |sample| sample.physical);
    assert!(
        (8_000..=17_000).contains(&physical),
        "{physical} pages for 16,000 rows"
    );
    let storage = counted(&point, |sample| sample.storage_read);
    assert!(
        storage.abs_diff(physical * 16_384) <= storage / 50,
        "{storage} bytes for {physical} pages"
    );
    assert!(counted(&point, |sample| sample.read_time.map(|time| time.0)) > 0);
    // A wait is seen at most once per look and session, with four sessions.
    let last = point.samples.last().unwrap().server.as_ref().unwrap();
    assert!(
        last.waits.values().sum::<u64>() <= 4 * last.looks,
        "{last:?}"
    );
    assert!(
        last.looks < 20 || !last.waits.is_empty(),
        "looked at often, and nothing was seen: {last:?}"
    );
    one_row_is_one_page(server);
    let scans = server.point("scans", "-t 1 --work-loop 4 --scan 100%");
    assert_eq!(done(&scans, Kind::Scan), 8);
}

/// A statement that also looked at the row after its last one would read two pages.
fn one_row_is_one_page(server: &Server) {
    let point = server.point("single", "-t 2 --work-loop 500 --work-unit 1");
    let physical = counted(&point, |sample| sample.physical);
    assert!(
        (1000..=2600).contains(&physical),
        "{physical} pages for {} rows",
        done(&point, Kind::Read)
    );
}

fn updates_are_as_many_rows(server: &Server) {
    let before: u64 = server.number("SELECT COUNT(DISTINCT c1) FROM rigel_blocks_1");
    let point = server.point("updates", "-t 2 --work-loop 50 --work-unit 16 --update 50%");
    assert_eq!(
        (done(&point, Kind::Read), done(&point, Kind::Write)),
        (100, 100)
    );
    assert_eq!(counted(&point, |sample| sample.commits), 100);
    assert!(counted(&point, |sample| sample.log_bytes) > 100 * 16 * 420);
    assert_ne!(
        server.number("SELECT COUNT(DISTINCT c1) FROM rigel_blocks_1"),
        before
    );
    // The same length as before: no page was split.
    assert!(
        server.number(
            "SELECT MIN(LENGTH(c1) + LENGTH(c19)) FROM rigel_blocks_2 WHERE id IS NOT NULL"
        ) == 840
    );
    let heavy = server.point(
        "heavy",
        "-t 1 --work-loop 5 --work-unit 4 --update 100% --redo-stress heavy",
    );
    assert_eq!(done(&heavy, Kind::Write), 10);
}

#[test]
fn open_loops_offer_their_rates_and_a_pipeline_is_refused() {
    test(
        "open_loops_offer_their_rates_and_a_pipeline_is_refused",
        || {
            let server = Server::start("open")?;
            server.done("load", SIZE);
            let url = server.url("root", "shop");
            let run = |line: &str, statuses: &[i32]| {
                let output = rigel(&server.place, &format!("{line} --no-progress")).output();
                let output = output.unwrap();
                let status = output.status.code().unwrap();
                assert!(statuses.contains(&status), "{line}: {output:?}");
                String::from_utf8_lossy(&output.stderr).into_owned()
            };
            let points = |name: &str| Run::read(&server.place.0.join(name)).unwrap().points;
            let terms = "--work-unit 4 --update 20%";
            let few = "--rate 40,80 --in-flight 4 --point-max 2s";
            run(&format!("curve {url} {few} {terms} --out curve"), &[0]);
            let curve = points("curve");
            assert_eq!(curve.len(), 2);
            assert_offered(&curve[..1], 40.0);
            assert_offered(&curve[1..], 80.0);
            let rounds = "--rate 60 --in-flight 4 --every 2s --for 4s";
            // A machine that stops for a while skips rounds, and the soak then says so by its status.
            run(&format!("soak {url} {rounds} {terms} --out soak"), &[0, 1]);
            assert_offered(&points("soak"), 60.0);

            // What the demand's operations were is what is offered.
            let at = "--multiples 1..1 --point-time 2s --slo operations:mean<100s";
            let line = format!("fit curve {url} {at} --write --out fit");
            run(&line, &[0, 3, 4]);
            let work = points("fit")[0].streams[0].sql.unwrap();
            assert_eq!((work.read_rows, work.updates.get()), (4, 0.2));

            for verb in ["sql run", "curve", "soak --for 1h"] {
                let said = run(&format!("{verb} {url} --pipeline 2"), &[2]);
                assert!(said.contains("--pipeline is for PostgreSQL"), "{said}");
            }
            Ok(())
        },
    );
}

#[test]
fn a_killed_load_is_resumed() {
    test("a_killed_load_is_resumed", || {
        let server = Server::start("killed")?;
        let size = "--scale 12000 --scan-table 10 --load-degree 2";
        in_time("the load was killed", |_| {
            let mut child = server
                .sql("load", size)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let chunks = "SELECT COUNT(*) FROM information_schema.TABLES t WHERE t.TABLE_NAME = \
                          'rigel_scan_1'";
            wait_until("the tables are made", || server.number(chunks) > 0);
            wait_until("two chunks are there", || {
                server.number("SELECT COUNT(*) FROM rigel_chunks") >= 2
            });
            child.kill().unwrap();
            child.wait().unwrap();
            let is_cut = server.number("SELECT COUNT(*) FROM rigel_chunks") < 13;
            if !is_cut {
                server.done("drop", "");
            }
            is_cut.then_some(())
        });
        server.refused(
            "run",
            "--run-time 1s",
            2,
            "has no tables of rigel sql load, or not all of them",
        );
        server.refused("load", "--scale 3000", 2, "12000 rows");
        server.done("load", size);
        assert_eq!(server.number("SELECT COUNT(*) FROM rigel_chunks"), 13);
        assert_eq!(
            server.number("SELECT COUNT(DISTINCT id) FROM rigel_blocks_1 FORCE INDEX (id)"),
            12_000
        );
        assert!((12_000..=12_122).contains(&server.leaf_pages("rigel_blocks_1")));
        // A second load of complete tables changes nothing.
        server.done("load", size);
        assert_eq!(server.number("SELECT COUNT(*) FROM rigel_chunks"), 13);
        Ok(())
    });
}

#[test]
fn views_and_triggers_of_another_user_run_no_code() {
    test("views_and_triggers_of_another_user_run_no_code", || {
        let server = Server::start("code")?;
        // Code of mallory that tells with whose rights it ran.
        for statement in [
            "CREATE TABLE ran (a INT)",
            "CREATE FUNCTION lured() RETURNS BIGINT SQL SECURITY INVOKER BEGIN INSERT INTO ran \
             VALUES (1); RETURN 0; END",
            "CREATE TABLE rigel_manifest (maker VARCHAR(64) PRIMARY KEY, `schemas` BIGINT \
             UNSIGNED, scale BIGINT UNSIGNED, scan_blocks BIGINT UNSIGNED, block BIGINT UNSIGNED, \
             loaded BOOLEAN) ENGINE=InnoDB COMMENT='rigel sql load'",
            "INSERT INTO rigel_manifest VALUES ('rigel sql load', 1, 2000, 1, 16384, FALSE)",
            "CREATE SQL SECURITY INVOKER VIEW rigel_chunks AS SELECT 'x' AS name, lured() AS first",
        ] {
            server.execute(Some("shop"), statement);
        }
        let runs = || server.number("SELECT COUNT(*) FROM ran");
        server.execute(Some("shop"), "DO (SELECT MAX(first) FROM rigel_chunks)");
        let before = runs();
        assert!(before > 0, "the view runs no code at all");
        let size = "--scale 2000 --scan-table 1";
        let is_refused = |words: &str| {
            for (verb, arguments) in [("load", size), ("run", "--run-time 1s"), ("drop", "")] {
                server.refused(verb, arguments, 2, words);
                assert_eq!(runs(), before, "{verb} ran it");
            }
        };
        is_refused("named rigel_chunks that is a view, which could run code");
        server.execute(Some("shop"), "DROP VIEW rigel_chunks");
        server.execute(
            Some("shop"),
            "CREATE TRIGGER lure BEFORE UPDATE ON rigel_manifest FOR EACH ROW INSERT INTO ran \
             VALUES (2)",
        );
        is_refused("named rigel_manifest that has the trigger 'lure'");
        server.execute(Some("shop"), "DROP TRIGGER lure");
        server.execute(
            Some("shop"),
            "CREATE TABLE rigel_scan_1 (a INT) ENGINE=MyISAM",
        );
        is_refused("named rigel_scan_1 of the engine 'MyISAM'");
        Ok(())
    });
}

#[test]
fn tables_of_others_are_left_alone_and_a_wrong_password_is_reported() {
    test(
        "tables_of_others_are_left_alone_and_a_wrong_password_is_reported",
        || {
            let server = Server::start("guards")?;
            server.execute(
                Some("shop"),
                "CREATE TABLE rigel_manifest (maker TEXT) COMMENT 'mine'",
            );
            for (verb, arguments) in [("load", SIZE), ("run", "--run-time 1s"), ("drop", "")] {
                server.refused(
                    verb,
                    arguments,
                    2,
                    "rigel_manifest that was not made by rigel sql load",
                );
            }
            server.execute(Some("shop"), "RENAME TABLE rigel_manifest TO rigel_scan_2");
            server.refused(
                "load",
                SIZE,
                2,
                "rigel_scan_2 that was not made by rigel sql load",
            );
            assert_eq!(server.tables(), ["rigel_scan_2"]);

            server.execute(None, "CREATE USER ana@localhost IDENTIFIED BY 'right'");
            let run = |password: Option<&str>, database: &str| {
                let mut command = rigel(
                    &server.place,
                    &format!("sql drop {}", server.url("ana", database)),
                );
                command.env_remove("MYSQL_PWD").stdin(Stdio::null());
                if let Some(word) = password {
                    command.env("MYSQL_PWD", word);
                }
                let output = command.output().unwrap();
                String::from_utf8_lossy(&output.stderr).into_owned()
            };
            assert!(
                run(Some("wrong"), "shop").contains("does not accept the password"),
                "{}",
                run(Some("wrong"), "shop")
            );
            assert!(
                run(None, "shop").contains("MYSQL_PWD"),
                "{}",
                run(None, "shop")
            );
            assert!(
                run(Some("right"), "shop").contains("grant this user access"),
                "{}",
                run(Some("right"), "shop")
            );

            // A load creates a missing database, which stays.
            let load = format!(
                "sql load {} --scale 1000 --scan-table 1",
                server.url("root", "new")
            );
            assert!(
                rigel(&server.place, &load)
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
            let drop = format!("sql drop {}", server.url("root", "new"));
            assert!(
                rigel(&server.place, &drop)
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
            let left: Vec<String> = server
                .try_connect(Some("new"))
                .unwrap()
                .query("SHOW TABLES")
                .unwrap();
            assert!(left.is_empty(), "{left:?}");
            Ok(())
        },
    );
}

#[test]
fn a_killed_server_breaks_the_run_and_keeps_the_results() {
    test(
        "a_killed_server_breaks_the_run_and_keeps_the_results",
        || {
            let mut server = Server::start("broken")?;
            server.done("load", "--scale 1000 --scan-table 1");
            server.wait_for_purge();
            // An operation visits 64 rows, a few pages each: with two sessions of one operation
            // each, some are complete.
            let gets = "SELECT VARIABLE_VALUE + 0 FROM information_schema.GLOBAL_STATUS WHERE \
                        VARIABLE_NAME = 'INNODB_BUFFER_POOL_READ_REQUESTS'";
            let pages = || {
                server
                    .connect()
                    .query_first::<f64, _>(gets)
                    .unwrap()
                    .unwrap()
            };
            let before = pages();
            let run = server.sql(
                "run",
                "-t 2 --run-time 1h --warm-up 0s --no-progress --out run",
            );
            let mut run = { run }
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let journal = server.place.0.join("run/journal.jsonl");
            wait_until("sessions read", || {
                journal.exists() && pages() > before + 50_000.0
            });
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            wait_until("the run is over", || run.try_wait().unwrap().is_some());
            let output = run.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(1), "{output:?}");
            let point = Run::read(&server.place.0.join("run"))
                .unwrap()
                .points
                .remove(0);
            assert!(
                matches!(&point.end, End::Broken(why) if why.contains("the connection was lost")),
                "{:?}",
                point.end
            );
            assert!(done(&point, Kind::Read) > 0, "{said}");
            Ok(())
        },
    );
}
