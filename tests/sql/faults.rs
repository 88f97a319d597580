//! Faults: each is reported with its name and a hint, and earlier measurements are kept.

use super::common::{Place, in_time, test, wait_until};
use super::psql::Psql;
use super::{
    begun, client, ends, number, postgres_15, postgres_18, program, serve, serve_mariadb, signal,
    stderr,
};
use mysql::prelude::Queryable;
use rigel_database::server::Server;
use rigel_model::record::journal::Run;
use rigel_model::record::{End, StallChange};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

/// Number of index searches, from the server's counters.
const SEARCHED: &str =
    "SELECT idx_scan FROM pg_stat_user_tables WHERE schemaname = 'rigel' AND relname = 'blocks_1'";

#[test]
fn a_lost_server_ends_the_run_which_can_be_resumed() {
    test("a_lost_server_ends_the_run_which_can_be_resumed", || {
        let place = Place::in_memory("sql-crash");
        let mut server = serve(&postgres_18()?, &place, &[]);
        let url = server.url().to_string();
        ends(&place, &format!("sql load {url} --scale 2000"), 0);
        // Loaded by one server process, and measured on the next.
        server.restart(&AtomicBool::new(false)).unwrap();
        let searched = || number(&mut client(&url), SEARCHED);
        let (output, out) = in_time("the server was ended", |factor| {
            let (before, out) = (searched(), format!("run{factor}"));
            let seconds = 4 * factor;
            let line = format!(
                "sql run {url} -t 2 --run-time {seconds}s --warm-up 0s --no-progress --out {out}"
            );
            let mut child = begun(&place, &line);
            // With two sessions of one operation each, at least eight of ten operations are
            // complete.
            wait_until("it measures", || {
                child.try_wait().unwrap().is_some() || searched() > before + 10
            });
            server.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                server.restart(&AtomicBool::new(false)).unwrap();
                return None;
            }
            Some((output, out))
        });
        let words = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(
            words.contains("the run ended at ") && words.contains("the connection was lost"),
            "{words}"
        );
        assert!(
            words.contains(&format!("rigel sql run --resume {out}")),
            "{words}"
        );
        let run = Run::read(&place.0.join(&out)).unwrap();
        assert!(
            run.points.len() == 1 && matches!(run.points[0].end, End::Broken(_)),
            "{:?}",
            run.points
        );
        assert!(run.points[0].streams[0].total().done > 0);
        let gone = ends(&place, &format!("sql run --resume {out}"), 1);
        assert!(
            gone.contains("cannot be reached") && gone.contains("check that the server is running"),
            "{gone}"
        );

        server.restart(&AtomicBool::new(false)).unwrap();
        ends(&place, &format!("sql run --resume {out}"), 0);
        assert_eq!(Run::read(&place.0.join(&out)).unwrap().complete().len(), 1);
        Ok(())
    });
}

#[test]
fn a_soak_outlives_a_server_that_goes_and_comes_back() {
    test("a_soak_outlives_a_server_that_goes_and_comes_back", || {
        let place = Place::in_memory("sql-soak");
        let mut server = serve(&postgres_18()?, &place, &[]);
        let url = server.url().to_string();
        ends(&place, &format!("sql load {url} --scale 2000"), 0);
        let line = format!(
            "soak {url} --depth 2 --work 20ops --every 2s --for 10h --no-progress --out run"
        );
        let child = begun(&place, &line);
        let rounds =
            || Run::read(&place.0.join("run")).map_or_else(|_| Vec::new(), |run| run.points);
        let broken =
            |record: &rigel_model::record::PointRecord| matches!(record.end, End::Broken(_));
        wait_until("two rounds are done", || rounds().len() >= 2);
        server.kill().unwrap();
        wait_until("a round could not be measured", || {
            rounds().iter().filter(|record| broken(record)).count() >= 2
        });
        server.restart(&AtomicBool::new(false)).unwrap();
        wait_until("it goes on", || {
            rounds()
                .last()
                .is_some_and(|record| record.end == End::Complete)
        });
        signal(child.id(), "INT");
        let output = child.wait_with_output().unwrap();
        let words = stderr(&output);
        assert!(
            output.status.code() == Some(1) && words.contains("rigel soak --resume run"),
            "{words}"
        );
        let ends: Vec<bool> = rounds().iter().map(broken).collect();
        let (first, last) = (
            ends.iter().position(|is| *is).unwrap(),
            ends.iter().rposition(|is| *is).unwrap(),
        );
        assert!(first >= 2 && last < ends.len() - 1, "{ends:?}");
        assert!(
            ends[first..=last].iter().all(|is| *is),
            "it came back in between: {ends:?}"
        );
        Ok(())
    });
}

#[test]
fn a_session_that_the_server_ends_ends_the_run() {
    test("a_session_that_the_server_ends_ends_the_run", || {
        let place = Place::in_memory("sql-terminated");
        let server = serve(&postgres_15()?, &place, &[]);
        ends(
            &place,
            &format!("sql load {} --scale 2000", server.url()),
            0,
        );
        let line = format!(
            "sql run {} -t 2 --run-time 1h --warm-up 0s --no-progress --out run",
            server.url()
        );
        let mut database = client(server.url());
        let before = number(&mut database, SEARCHED);
        let child = begun(&place, &line);
        // The journal gets its header before every session has its settings.
        wait_until("it measures", || {
            number(&mut database, SEARCHED) > before + 10
        });
        wait_until("a session is ended", || {
            let one = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM \
                       pg_stat_activity WHERE application_name LIKE 'rigel-%' AND \
                       application_name NOT LIKE '%-monitor' LIMIT 1) a";
            number(&mut database, one) == 1
        });
        let output = child.wait_with_output().unwrap();
        let words = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{words}");
        // The reason comes from the server or the kernel, whichever arrives first: it must be
        // reported in any case.
        let why = words
            .split("the connection was lost: ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        assert!(why.is_some_and(|why| !why.trim().is_empty()), "{words}");
        let run = Run::read(&place.0.join("run")).unwrap();
        let [point] = run.points.as_slice() else {
            panic!("{:?}", run.points)
        };
        assert!(
            matches!(&point.end, End::Broken(why) if why.contains("the connection was lost")),
            "{:?}",
            point.end
        );
        Ok(())
    });
}

#[test]
fn missing_databases_and_tables_are_named() {
    test("missing_databases_and_tables_are_named", || {
        let place = Place::new("sql-missing");
        let server = serve(&postgres_15()?, &place, &[]);
        let url = server.url();
        let words = ends(&place, &format!("sql run {url} -t 1 --run-time 1s"), 2);
        assert!(
            words.contains("has no tables of rigel sql load")
                && words.contains("create them: rigel sql load"),
            "{words}"
        );
        let words = ends(&place, &format!("curve {url} --sessions 1"), 2);
        assert!(words.contains("create them: rigel sql load"), "{words}");
        ends(&place, &format!("sql load {url} --scale 2000 -s 2"), 0);
        for (asked, told) in [
            ("--scale 3000", "3000 blocks in each"),
            ("-s 3", "3 tables"),
        ] {
            let words = ends(
                &place,
                &format!("sql run {url} -t 1 --run-time 1s {asked}"),
                2,
            );
            assert!(words.contains(&format!("{told} are requested")), "{words}");
        }
        let words = ends(&place, &format!("sql run {url} --work-unit 2001"), 2);
        assert!(
            words.contains("an operation of 2001 rows does not fit"),
            "{words}"
        );
        let other = url.replace("/postgres", "/nowhere");
        assert!(ends(&place, &format!("sql run {other}"), 1).contains("has no such database"));
        // A table that disappeared after the load.
        client(url).run("DROP TABLE rigel.blocks_1").unwrap();
        let words = ends(
            &place,
            &format!("sql run {url} -t 1 --run-time 1s --no-progress"),
            1,
        );
        assert!(
            words.contains("blocks_1") && words.contains("hint: "),
            "{words}"
        );
        server.stop().unwrap();
        assert!(
            !place
                .0
                .read_dir()
                .unwrap()
                .flatten()
                .any(|entry| entry.path().join("journal.jsonl").exists())
        );
        Ok(())
    });
}

#[test]
fn a_user_without_rights_needs_a_password_and_it_is_never_shown() {
    test(
        "a_user_without_rights_needs_a_password_and_it_is_never_shown",
        || {
            let place = Place::in_memory("sql-password");
            let server = serve(&postgres_15()?, &place, &[]);
            let mut database = client(server.url());
            for statement in [
                "CREATE ROLE ana LOGIN PASSWORD 's3cret'",
                "CREATE DATABASE shop",
                "GRANT CREATE ON DATABASE shop TO ana",
            ] {
                database.run(statement).unwrap();
            }
            let rules = "local all rigel trust\nlocal all all scram-sha-256\n";
            std::fs::write(server.directory().join("data/pg_hba.conf"), rules).unwrap();
            database.run("SELECT pg_reload_conf()").unwrap();
            let url = server
                .url()
                .replace("rigel@", "ana@")
                .replace("/postgres", "/shop");
            wait_until("the rules hold", || Psql::connect(&url).is_err());

            let load = format!("sql load {url} --scale 2000");
            let words = ends(&place, &load, 1);
            assert!(
                words.contains("requires a password") && words.contains("PGPASSWORD"),
                "{words}"
            );
            let wrong = program(&place, &load)
                .env("PGPASSWORD", "wr0ng")
                .output()
                .unwrap();
            let words = stderr(&wrong);
            assert_eq!(wrong.status.code(), Some(1));
            assert!(
                words.contains("does not accept the password of ana")
                    && words.contains("PGPASSWORD"),
                "{words}"
            );
            assert!(!words.contains("wr0ng"), "{words}");
            let inside = load.replace("ana@", "ana:s3cret@");
            let words = ends(&place, &inside, 2);
            assert!(
                words.contains("contains a password") && !words.contains("s3cret"),
                "{words}"
            );

            let by_environment = program(&place, &load)
                .env("PGPASSWORD", "s3cret")
                .output()
                .unwrap();
            assert!(by_environment.status.success(), "{by_environment:?}");
            std::fs::write(place.0.join("password"), "s3cret\n").unwrap();
            std::fs::set_permissions(
                place.0.join("password"),
                std::fs::Permissions::from_mode(0o600),
            )
            .unwrap();
            let line =
                "-t 1 --work-loop 20 --warm-up 0s --no-progress --password-file password --out run";
            let by_file = program(&place, &format!("sql run {url} {line}"))
                .output()
                .unwrap();
            assert!(by_file.status.success(), "{by_file:?}");
            let record = std::fs::read_to_string(place.0.join("run/journal.jsonl")).unwrap();
            assert!(!record.contains("s3cret") && record.contains("ana@"));
            let pass = place.0.join("pass");
            std::fs::write(&pass, "localhost:*:shop:ana:s3cret\n").unwrap();
            let by_pass = |mode| {
                std::fs::set_permissions(&pass, std::fs::Permissions::from_mode(mode)).unwrap();
                program(&place, &format!("sql drop {url}"))
                    .env("PGPASSFILE", &pass)
                    .output()
                    .unwrap()
            };
            let open = by_pass(0o644);
            let words = stderr(&open);
            assert!(
                open.status.code() == Some(1) && words.contains("others may read it"),
                "{words}"
            );
            assert!(by_pass(0o600).status.success());
            Ok(())
        },
    );
}

/// A server whose processes are stopped, as if its machine hung; they continue when this is dropped.
struct Hung<'a>(&'a Server);

impl<'a> Hung<'a> {
    fn begin(server: &'a Server) -> Self {
        let hung = Self(server);
        hung.send("STOP");
        hung
    }

    fn send(&self, signal: &str) {
        for process in self.0.processes() {
            // A process may have ended meanwhile.
            let _ = Command::new("kill")
                .args(["-s", signal, &process.to_string()])
                .status();
        }
    }
}

impl Drop for Hung<'_> {
    fn drop(&mut self) {
        self.send("CONT");
    }
}

/// The program in the background, whose stderr goes to a file.
fn begun_into(place: &Place, line: &str, file: &str) -> Child {
    let printed = File::create(place.0.join(file)).unwrap();
    program(place, line)
        .stdout(Stdio::null())
        .stderr(printed)
        .spawn()
        .unwrap()
}

/// A server hangs while it is measured; `searched` counts what it did.
fn a_server_hangs(place: &Place, server: &Server, searched: &mut dyn FnMut() -> i64) {
    let url = server.url();
    ends(place, &format!("sql load {url} --scale 2000"), 0);
    let before = searched();
    let line = format!("sql run {url} -t 2 --run-time 1h --warm-up 0s --out run");
    let mut child = begun_into(place, &line, "stderr");
    wait_until("it measures", || searched() > before + 10);
    let printed = || std::fs::read_to_string(place.0.join("stderr")).unwrap();
    let hung = Hung::begin(server);
    wait_until("the stall is said", || {
        printed().contains("nothing has completed for")
    });
    signal(child.id(), "TERM");
    let mut status = None;
    wait_until("the program ends while the server hangs", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(1), "{}", printed());
    drop(hung);
    let run = Run::read(&place.0.join("run")).unwrap();
    let changes: Vec<StallChange> = run.stalls.iter().map(|event| event.change).collect();
    assert_eq!(changes.first(), Some(&StallChange::Begun), "{}", printed());
    assert_eq!(changes.last(), Some(&StallChange::Ended), "{}", printed());
    let [point] = run.points.as_slice() else {
        panic!("{:?}", run.points)
    };
    // Either the loop gives up first, or a session.
    let is_said = |why: &str| {
        why.contains("nothing has completed") || why.contains("the server did not answer")
    };
    assert!(
        matches!(&point.end, End::Broken(why) if is_said(why)),
        "{:?}",
        point.end
    );
    // What was measured before is there.
    assert!(point.streams[0].total().done > 0);
    let before = searched();
    let mut child = begun_into(place, "sql run --resume run", "resumed");
    wait_until("the resumed run measures", || searched() > before + 10);
    signal(child.id(), "INT");
    child.wait().unwrap();
}

#[test]
fn a_signal_ends_a_run_whose_postgres_hangs() {
    test("a_signal_ends_a_run_whose_postgres_hangs", || {
        let place = Place::in_memory("sql-hang");
        let server = serve(&postgres_15()?, &place, &[]);
        let url = server.url().to_string();
        let mut searched = || {
            let mut database = client(&url);
            let is_loaded = number(
                &mut database,
                "SELECT count(*) FROM pg_namespace WHERE nspname = 'rigel'",
            );
            if is_loaded == 0 {
                0
            } else {
                number(&mut database, SEARCHED)
            }
        };
        a_server_hangs(&place, &server, &mut searched);
        Ok(())
    });
}

#[test]
fn a_signal_ends_a_run_whose_mariadb_hangs() {
    test("a_signal_ends_a_run_whose_mariadb_hangs", || {
        let place = Place::in_memory("sql-hang-mariadb");
        let server = serve_mariadb(&place)?;
        let url = server.url().to_string();
        let mut searched = || {
            let options = mysql::Opts::from_url(&url).unwrap();
            let mut database = mysql::Conn::new(options).unwrap();
            let row: (String, i64) = database
                .query_first("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")
                .unwrap()
                .unwrap();
            row.1
        };
        a_server_hangs(&place, &server, &mut searched);
        Ok(())
    });
}

#[test]
fn a_watch_says_that_a_server_does_not_answer_and_ends() {
    test("a_watch_says_that_a_server_does_not_answer", || {
        let place = Place::in_memory("sql-hang-watch");
        let server = serve(&postgres_15()?, &place, &[]);
        let line = format!("watch {} --every 1s --for 10h --out run", server.url());
        let mut child = begun_into(&place, &line, "stderr");
        let printed = || std::fs::read_to_string(place.0.join("stderr")).unwrap();
        wait_until("it watches", || printed().contains("interval 2: "));
        let hung = Hung::begin(&server);
        wait_until("the gap is said", || {
            printed().contains("the server did not answer in time")
        });
        wait_until("the stall is said", || {
            printed().contains("nothing has completed for 1")
        });
        signal(child.id(), "TERM");
        wait_until("the program ends while the server hangs", || {
            child.try_wait().unwrap().is_some()
        });
        drop(hung);
        // Of the intervals without an answer none says "0/s".
        let printed = printed();
        let after = printed.split("did not answer in time").nth(1).unwrap();
        assert!(!after.contains("0/s"), "{printed}");
        Ok(())
    });
}
