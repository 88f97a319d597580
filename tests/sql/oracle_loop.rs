//! The loop of `rigel sql script oracle`, in `MariaDB`'s Oracle mode.
//!
//! The text between the marks of `8_session.sql` becomes the body of a package, with these changes:
//! `COMMIT WRITE IMMEDIATE WAIT` is `COMMIT`, and the number of the table is filled in. So what an
//! operation is, where and how many rows, is the same text. What `MariaDB` cannot show is Oracle's: the
//! plan, the hints, the wait for a commit, the clock.

use crate::common::{Place, test};
use crate::{ends, serve_mariadb};
use mysql::prelude::Queryable;
use std::fs;

const ROWS: u64 = 10_000;

/// The text between two marks.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).expect("the mark of the beginning");
    rest.split_once(end).expect("the mark of the end").0
}

/// The generated files for these options.
fn files(place: &Place, options: &str) -> (String, String) {
    let _ = fs::remove_dir_all(place.0.join("files"));
    ends(
        place,
        &format!("sql script oracle --scale {ROWS} --scan-table 50 {options} files"),
        0,
    );
    let read = |name: &str| fs::read_to_string(place.0.join("files").join(name)).unwrap();
    (read("3_load.sql"), read("8_session.sql"))
}

/// A package whose body is the loop's logic, and which notes every operation.
fn package(session: &str, table: u32) -> String {
    let logic = between(
        session,
        "-- The loop's logic: begin\n",
        "  -- The loop's logic: end",
    );
    let logic = logic
        .replace("COMMIT WRITE IMMEDIATE WAIT", "COMMIT")
        .replace("&table_number.", &table.to_string())
        .replace("&table_number", &table.to_string());
    assert!(!logic.contains('&'), "{logic}");
    format!(
        "CREATE OR REPLACE PACKAGE BODY rigel_loop AS\n{logic}
  PROCEDURE work(p_session INTEGER, p_operations INTEGER) AS
    pause INTEGER;
  BEGIN
    begin_session(p_session, 1);
    FOR n IN 1 .. p_operations LOOP
      choose();
      carry_out();
      pause := think_ms();
      INSERT INTO noted VALUES (g_made, g_kind, g_of_first_table, g_first, g_last, g_rows, g_found, pause);
      COMMIT;
    END LOOP;
  END;
END;"
    )
}

#[test]
fn mix_range_and_counts_are_exact() {
    test("mix_range_and_counts_are_exact", || {
        let place = Place::new("oracle-loop");
        let server = serve_mariadb(&place)?;
        let options = mysql::Opts::from_url(server.url()).unwrap();
        let mut session = mysql::Conn::new(options).unwrap();
        let (load, script) = files(
            &place,
            "-s 2 --update 20% --scan 10% --hot-spot 8MiB+8MiB/3 --hot-schema 5 --think 10ms..20ms/7",
        );
        session
            .query_drop("SET sql_mode = ORACLE, autocommit = 0")
            .unwrap();
        keys_are_a_permutation(&mut session, &load);
        for table in [1, 2] {
            make_table(&mut session, table);
        }
        session
            .query_drop(
                "CREATE TABLE noted (made INT, kind INT, of_first INT, first_key INT, last_key INT, \
                 wanted INT, found INT, pause INT)",
            )
            .unwrap();
        session
            .query_drop(
                "CREATE OR REPLACE PACKAGE rigel_loop AS PROCEDURE work(p_session INTEGER, \
                 p_operations INTEGER); END;",
            )
            .unwrap();
        session.query_drop(package(&script, 2)).unwrap();
        session.query_drop("CALL rigel_loop.work(3, 1000)").unwrap();
        counts_are_exact(&mut session);
        Ok(())
    });
}

/// The number that a statement returns.
#[track_caller]
fn number(session: &mut mysql::Conn, statement: &str) -> i64 {
    let found: Option<i64> = session.query_first(statement).unwrap();
    found.unwrap_or_else(|| panic!("{statement}: no row"))
}

/// The order of keys is a permutation, in which neighbours are far apart.
fn keys_are_a_permutation(session: &mut mysql::Conn, load: &str) {
    let keys = between(
        load,
        "-- The order of keys: begin\n",
        "  -- The order of keys: end",
    );
    session
        .query_drop("CREATE OR REPLACE PACKAGE rigel_keys AS PROCEDURE fill(p_rows INTEGER); END;")
        .unwrap();
    session
        .query_drop(format!(
            "CREATE OR REPLACE PACKAGE BODY rigel_keys AS\n{keys}
  PROCEDURE fill(p_rows INTEGER) AS
  BEGIN
    g_scale := p_rows;
    g_half := CEIL(SQRT(p_rows));
    FOR n IN 0 .. p_rows - 1 LOOP
      INSERT INTO places VALUES (n, key_at(n));
    END LOOP;
    COMMIT;
  END;
END;"
        ))
        .unwrap();
    session
        .query_drop("CREATE TABLE places (place INT, id INT, KEY (id))")
        .unwrap();
    session
        .query_drop(format!("CALL rigel_keys.fill({ROWS})"))
        .unwrap();
    let rows = i64::try_from(ROWS).unwrap();
    assert_eq!(
        number(session, "SELECT COUNT(DISTINCT id) FROM places"),
        rows
    );
    assert_eq!(number(session, "SELECT MIN(id) FROM places"), 1);
    assert_eq!(number(session, "SELECT MAX(id) FROM places"), rows);
    // Of neighbours by key, hardly any are neighbours by place, and their distances differ.
    let near = number(
        session,
        "SELECT COUNT(*) FROM places a JOIN places b ON b.id = a.id + 1 WHERE ABS(a.place - b.place) < 16",
    );
    assert!(near < rows / 50, "{near} of {rows}");
    let distances = number(
        session,
        "SELECT COUNT(DISTINCT CAST(a.place AS SIGNED) - CAST(b.place AS SIGNED)) FROM places a \
         JOIN places b ON b.id = a.id + 1",
    );
    assert!(distances > rows / 4, "{distances}");
}

/// A table of the same columns; its values are all alike, and each update writes others.
fn make_table(session: &mut mysql::Conn, table: u32) {
    let columns: Vec<String> = (1..=19).map(|n| format!("c{n} VARCHAR(128)")).collect();
    let columns = columns.join(", ");
    for (name, rows) in [
        (format!("rigel_blocks_{table}"), ROWS),
        (format!("rigel_scan_{table}"), 50),
    ] {
        session
            .query_drop(format!(
                "CREATE TABLE {name} (id INT PRIMARY KEY, {columns})"
            ))
            .unwrap();
        session
            .query_drop(format!(
                "INSERT INTO {name} (id, c1, c2, c19) SELECT id, 'x', 'x', 'x' FROM places WHERE id <= {rows}"
            ))
            .unwrap();
    }
}

fn counts_are_exact(session: &mut mysql::Conn) {
    let mut counted =
        |what: &str| number(session, &format!("SELECT COUNT(*) FROM noted WHERE {what}"));
    // 20 % of 1000 update; 10 % of the other 800 scan.
    assert_eq!(counted("kind = 2"), 200);
    assert_eq!(counted("kind = 3"), 80);
    assert_eq!(counted("kind = 1"), 720);
    assert_eq!(
        counted("found <> wanted"),
        0,
        "every operation finds its rows"
    );
    assert_eq!(counted("kind <> 3 AND last_key - first_key <> 63"), 0);
    assert_eq!(counted("kind = 3 AND wanted <> 50"), 0);
    assert_eq!(
        counted("kind <> 3 AND (first_key < 1 OR last_key > 10000)"),
        0
    );
    // The window of 8 MiB at 8 MiB: rows 1025 to 2048.
    let outside = "(first_key < 1025 OR last_key > 2048)";
    assert_eq!(
        counted(&format!("kind <> 3 AND MOD(made, 3) = 0 AND {outside}")),
        0
    );
    assert!(counted(&format!("kind <> 3 AND MOD(made, 3) <> 0 AND {outside}")) > 400);
    assert_eq!(counted("(of_first = 1) <> (MOD(made, 5) = 0)"), 0);
    assert_eq!(counted("(pause > 0) <> (MOD(made, 7) = 0)"), 0);
    assert_eq!(counted("pause > 0 AND pause NOT BETWEEN 10 AND 20"), 0);
    // Updates changed the rows of their table, and committed.
    let in_first = counted("kind = 2 AND of_first = 1");
    for (table, updates) in [(1, in_first), (2, 200 - in_first)] {
        let changed = number(
            session,
            &format!(
                "SELECT COUNT(*) FROM rigel_blocks_{table} WHERE c1 <> 'x' AND c19 = c1 AND LENGTH(c1) = 128"
            ),
        );
        assert!(
            updates > 0 && changed >= 64 && changed <= updates * 64,
            "table {table}: {changed} rows by {updates} updates"
        );
    }
}
