//! I/O through a real database: load, measure, remove, and the handling of each fault.
//!
//! Every test has its own private server, of the oldest and the newest supported version, with
//! tables of a few thousand rows. Nothing here asserts any speed. If a version is not installed the
//! test reports that it was skipped, and fails if `RIGEL_REQUIRE_ALL` is set.

#[path = "../common/mod.rs"]
mod common;

mod duet;
mod faults;
mod fit;
mod layers;
mod load;
mod mariadb;
mod mixes;
mod oracle_loop;
mod plans;
mod private;
mod programs;
mod psql;
mod ranks;
mod reach;
mod servers;
mod silent;
mod trust;
mod watch;

use common::{Missing, Place, journal_lines, rigel, signal, stderr};
use psql::Psql;
use rigel_database::server::{Server, ServerRequest};
use rigel_model::record::{End, PointRecord};
use rigel_model::{Bytes, Dbms, MIB};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

fn postgres_15() -> Result<PathBuf, Missing> {
    programs::copying(Path::new("/usr/lib/postgresql/15/bin"), "15")
}

fn postgres_18() -> Result<PathBuf, Missing> {
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/servers/postgresql-18/bin");
    programs::copying(&brought, "18")
}

/// A server in a folder of `place`, with a buffer cache smaller than any table here.
fn serve(bin: &Path, place: &Place, settings: &[(&str, &str)]) -> Server {
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(name, value)| ((*name).to_string(), (*value).to_string()))
        .collect();
    let request = ServerRequest {
        dbms: Dbms::Postgres,
        directory: &place.0,
        bin: Some(bin),
        buffer_cache: Bytes(4 * MIB),
        sessions: 8,
        settings: &settings,
    };
    started(&request)
}

fn started(request: &ServerRequest) -> Server {
    Server::start(request, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"))
}

/// A private `MariaDB`.
fn serve_mariadb(place: &Place) -> Result<Server, Missing> {
    let bin = Path::new("/usr/sbin");
    if !bin.join("mariadbd").exists() {
        return Err(Missing(format!(
            "{} has no mariadbd: scripts/setup.sh test brings it",
            bin.display()
        )));
    }
    let request = ServerRequest {
        dbms: Dbms::Mysql,
        directory: &place.0,
        bin: Some(bin),
        buffer_cache: Bytes(32 * MIB),
        sessions: 4,
        settings: &[],
    };
    Ok(started(&request))
}

fn client(url: &str) -> Psql {
    Psql::connect(url).unwrap_or_else(|why| panic!("{why}"))
}

/// The number that a statement returns.
fn number(client: &mut Psql, statement: &str) -> i64 {
    let rows = client.run(&format!("SELECT ({statement})::bigint"));
    rows.unwrap()[0].parse().unwrap()
}

/// The program, without any password except what the test gives it.
fn program(place: &Place, line: &str) -> Command {
    let mut command = rigel(place, line);
    for name in [
        "PGPASSWORD",
        "PGPASSFILE",
        "PGSSLMODE",
        "PGSSLROOTCERT",
        "PGUSER",
    ] {
        command.env_remove(name);
    }
    command.env("HOME", &place.0).stdin(Stdio::null());
    command
}

/// Runs the program, which must end with this status. Returns its stderr.
#[track_caller]
fn ends(place: &Place, line: &str, status: i32) -> String {
    let output = program(place, line).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{line}: {output:?}");
    stderr(&output)
}

/// The JSON report of a run.
#[track_caller]
fn measured(place: &Place, line: &str) -> Value {
    let output = program(place, &format!("{line} --no-progress --json"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one document on stdout")
}

/// Starts the program in the background.
fn begun(place: &Place, line: &str) -> Child {
    program(place, line)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A count in a report.
#[track_caller]
fn count(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Both counts of a witness.
#[track_caller]
fn witness(point: &Value, what: &str) -> (f64, f64) {
    let witnesses = point["sql"]["witnesses"].as_array().unwrap();
    let found = witnesses
        .iter()
        .find(|witness| witness["what"] == what)
        .unwrap_or_else(|| panic!("{witnesses:?}"));
    (count(&found["first"][1]), count(&found["second"][1]))
}

/// Checks that two counts agree within 1 %, with a tolerance for catalogue reads when sessions
/// begin.
#[track_caller]
fn assert_agree((one, other): (f64, f64), what: &str) {
    assert!(
        one > 0.0 && (one - other).abs() <= (one * 0.01).max(200.0),
        "{what}: {one} and {other}"
    );
}

/// Checks that the operations of an open loop were due at this rate, within five standard deviations
/// of random arrivals, and that each is accounted for: done, failed or unserved.
#[track_caller]
fn assert_offered(records: &[PointRecord], rate: f64) {
    assert!(!records.is_empty());
    for record in records {
        assert_eq!(record.end, End::Complete);
        let stream = &record.streams[0];
        let total = stream.total();
        let due = total.done + total.failures() + stream.unserved.iter().sum::<u64>();
        let wanted = rate * record.measured.as_secs_f64();
        assert!(
            (due as f64 - wanted).abs() < 5.0 * wanted.sqrt() + 2.0,
            "{due} due, of {wanted}"
        );
    }
}
