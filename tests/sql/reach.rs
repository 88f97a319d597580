//! Curves of sessions, several databases at once, and encrypted connections.

use super::common::{Missing, Place, in_time, need, test, text, wait_until};
use super::{
    assert_agree, assert_offered, begun, client, count, ends, journal_lines, measured, number,
    postgres_15, postgres_18, serve, signal,
};
use super::{program, stderr, witness};
use rigel_database::server::Server;
use rigel_model::record::journal::Run;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

#[test]
fn a_curve_of_sessions_has_intervals_and_can_be_resumed() {
    test(
        "a_curve_of_sessions_has_intervals_and_can_be_resumed",
        || {
            let place = Place::in_memory("sql-curve");
            let server = serve(&postgres_18()?, &place, &[]);
            let url = server.url();
            ends(&place, &format!("sql load {url} --scale 4000"), 0);
            let (output, out) = in_time("the curve was cut short", |factor| {
                let out = format!("run{factor}");
                // Precise enough for none to end early.
                let terms = format!("--point-max {factor}s --precision 0.1% --work-unit 8");
                let child = begun(
                    &place,
                    &format!("curve {url} --sessions 1,2,4 {terms} --no-progress --out {out}"),
                );
                wait_until("the first point is done", || {
                    journal_lines(&place.0.join(&out)) >= 2
                });
                signal(child.id(), "INT");
                let output = child.wait_with_output().unwrap();
                let done = Run::read(&place.0.join(&out)).unwrap().complete().len();
                (done < 3).then_some((output, out))
            });
            let words = stderr(&output);
            assert!(
                output.status.code() == Some(1)
                    && words.contains(&format!("rigel curve --resume {out}")),
                "{words}"
            );
            let document = measured(&place, &format!("curve --resume {out}"));
            let points = document["points"].as_array().unwrap();
            assert_eq!(
                points
                    .iter()
                    .map(|point| point["sessions"].as_u64().unwrap())
                    .collect::<Vec<_>>(),
                [1, 2, 4]
            );
            for point in points {
                // On a busy machine windows can differ so much that there is no interval; then no
                // interval is wrong.
                let known = &point["classes"][0]["confidence"];
                if known["iops"].is_object() && known["p50_us"].is_object() {
                    assert!(count(&known["iops"]["error"]) > 0.0, "{point}");
                    let median = count(&point["classes"][0]["p50_us"]);
                    // An unknown end of an interval is null.
                    let end =
                        |name: &str, open: f64| known["p50_us"][name].as_f64().unwrap_or(open);
                    assert!(
                        end("low", 0.0) <= median && median <= end("high", f64::INFINITY),
                        "{point}"
                    );
                }
                assert_agree(
                    witness(point, "blocks of the tables visited"),
                    "client and server",
                );
                assert!(
                    (count(&point["sql"]["visited"]["per_operation"]) - 8.0).abs() < f64::EPSILON,
                    "{point}"
                );
            }

            let document = measured(
                &place,
                &format!(
                    "curve {url} --rate 20..60/20 --in-flight 4 --work-unit 8 --point-max 2s \
                     --out open"
                ),
            );
            let points = document["points"].as_array().unwrap();
            let offered: Vec<u64> = points
                .iter()
                .map(|point| point["rate_per_s"].as_u64().unwrap())
                .collect();
            assert_eq!(offered, [20, 40, 60]);
            for point in points {
                let class = &point["classes"][0];
                let due = count(&class["offered"]) * count(&point["measured_s"]);
                let (done, unserved) = (count(&class["done"]), count(&class["unserved"]));
                assert!(
                    due > 0.0 && (due - (done + unserved)).abs() < 0.5,
                    "{class}"
                );
            }
            Ok(())
        },
    );
}

#[test]
fn a_soak_offers_its_rate_to_a_database() {
    test("a_soak_offers_its_rate_to_a_database", || {
        let place = Place::in_memory("sql-open-soak");
        let server = serve(&postgres_15()?, &place, &[]);
        let url = server.url();
        ends(&place, &format!("sql load {url} --scale 4000"), 0);
        let terms = "--rate 60 --in-flight 4 --work-unit 4 --update 10% --every 2s --for 6s";
        // A machine that stops for a while skips rounds, and the soak then says so by its status.
        program(
            &place,
            &format!("soak {url} {terms} --no-progress --out run"),
        )
        .output()
        .unwrap();
        let run = Run::read(&place.0.join("run")).unwrap();
        assert_offered(&run.points, 60.0);
        assert!(
            run.points
                .iter()
                .all(|round| round.streams[0].sql.is_some())
        );
        Ok(())
    });
}

#[test]
fn sessions_go_to_several_databases_in_turn() {
    test("sessions_go_to_several_databases_in_turn", || {
        let place = Place::in_memory("sql-turns");
        let server = serve(&postgres_15()?, &place, &[]);
        client(server.url()).run("CREATE DATABASE other").unwrap();
        let urls = [
            server.url().to_string(),
            server.url().replace("/postgres", "/other"),
        ];
        ends(
            &place,
            &format!("sql load {} --scale 2000", urls.join(" ")),
            0,
        );
        let searched = |url: &String| {
            let text = "SELECT idx_scan FROM pg_stat_user_tables WHERE schemaname = 'rigel' AND \
                        relname = 'blocks_1'";
            number(&mut client(url), text)
        };
        let before = urls.each_ref().map(searched);
        let line = format!(
            "sql run {} -t 4 --work-loop 25 --warm-up 0s --out run",
            urls.join(" ")
        );
        let document = measured(&place, &line);
        let since = || [0, 1].map(|of| searched(&urls[of]) - before[of]);
        // A session's counts are available once the server has noticed that it is gone.
        wait_until("all are counted", || since().iter().sum::<i64>() >= 100);
        assert_eq!(since(), [50, 50]);
        let point = &document["points"][0];
        assert_agree(
            witness(point, "blocks of the tables visited"),
            "client and both databases",
        );

        // One of them has no tables.
        ends(&place, &format!("sql drop {}", urls[1]), 0);
        let words = ends(
            &place,
            &format!("sql run {} -t 1 --run-time 1s", urls.join(" ")),
            2,
        );
        assert!(
            words.contains("(other)' has no tables of rigel sql load"),
            "{words}"
        );
        Ok(())
    });
}

#[test]
fn every_kind_of_password_opens_the_door_and_a_wrong_one_does_not() {
    test(
        "every_kind_of_password_opens_the_door_and_a_wrong_one_does_not",
        || {
            let place = Place::in_memory("sql-passwords");
            let address = address_of_this_process(128);
            let server = serve(&postgres_18()?, &place, &[("listen_addresses", &address)]);
            // Ed25519 has no hash for the binding, so that login is not bound.
            for (name, kind) in [("rsa", "rsa:2048"), ("edwards", "ed25519")] {
                let made = certificate_of(&place, name, &format!("IP:{address}"), kind)?;
                present(&server, &made);
                let mut database = client(server.url());
                for (encryption, method) in [
                    ("scram-sha-256", "scram-sha-256"),
                    ("md5", "md5"),
                    ("scram-sha-256", "password"),
                ] {
                    // A password that needs preparing: its two characters become one.
                    let text = format!(
                        "DROP ROLE IF EXISTS eva; SET password_encryption = '{encryption}'; \
                         CREATE ROLE eva LOGIN PASSWORD 'pa\u{df}w\u{f6}rt{method}'"
                    );
                    database.run(&text).unwrap();
                    let rules = format!("local all all trust\nhost all eva 127.0.0.0/8 {method}\n");
                    std::fs::write(server.directory().join("data/pg_hba.conf"), rules).unwrap();
                    database.run("SELECT pg_reload_conf()").unwrap();
                    // On a loopback address any user of the host may answer.
                    let auth = match method {
                        "scram-sha-256" => String::new(),
                        method => format!("&require_auth={method}"),
                    };
                    let said_with = |password: &str, mode: &str| {
                        let url = format!("postgres://eva@{address}/postgres?sslmode={mode}{auth}");
                        let mut program = program(&place, &format!("sql drop {url}"));
                        let output = program.env("PGPASSWORD", password).output().unwrap();
                        (output.status.success(), stderr(&output))
                    };
                    let right = format!("pa\u{df}w\u{f6}rt{method}");
                    wait_until("the rule holds", || {
                        said_with("wrong", "disable")
                            .1
                            .contains("does not accept the password")
                            && said_with(&right, "disable").0
                    });
                    for mode in ["disable", "require"] {
                        let what = format!("{name}, {method}, {mode}");
                        let (done, words) = said_with(&right, mode);
                        assert!(done, "{what}: {words}");
                        let (done, words) = said_with("wrong", mode);
                        assert!(
                            !done && words.contains("does not accept the password of eva"),
                            "{what}: {words}"
                        );
                    }
                }
            }
            Ok(())
        },
    );
}

/// An address of this machine on which nobody else listens; another `part`, another address.
fn address_of_this_process(part: u32) -> String {
    let number = std::process::id();
    format!(
        "127.{}.{}.{}",
        part + number % 64,
        number / 256 % 256,
        1 + number % 250
    )
}

/// A self-signed certificate for `name`, and its key.
fn certificate(
    place: &Place,
    name: &str,
    made_out_to: &str,
) -> Result<(PathBuf, PathBuf), Missing> {
    certificate_of(place, name, made_out_to, "rsa:2048")
}

/// The same with a key of this kind.
fn certificate_of(
    place: &Place,
    name: &str,
    made_out_to: &str,
    kind: &str,
) -> Result<(PathBuf, PathBuf), Missing> {
    let (certificate, key) = (
        place.0.join(format!("{name}.pem")),
        place.0.join(format!("{name}.key")),
    );
    let subject = format!("subjectAltName={made_out_to}");
    let arguments = ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=rigel"];
    let files = [
        "-newkey",
        kind,
        "-addext",
        &subject,
        "-keyout",
        text(&key),
        "-out",
        text(&certificate),
    ];
    need("openssl", &[&arguments[..], &files[..]].concat())?;
    Ok((certificate, key))
}

/// Makes the server use this certificate from now on.
fn present(server: &Server, (certificate, key): &(PathBuf, PathBuf)) {
    let data = server.directory().join("data");
    let owner = std::fs::metadata(&data).unwrap();
    for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
        let path = data.join(name);
        std::fs::copy(from, &path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let mut database = client(server.url());
    database.run("ALTER SYSTEM SET ssl = on").unwrap();
    database.run("SELECT pg_reload_conf()").unwrap();
    wait_until("the server has it", || {
        number(&mut database, "SELECT (current_setting('ssl') = 'on')::int") == 1
    });
}

#[test]
fn connections_are_protected_as_requested() {
    test("connections_are_protected_as_requested", || {
        let place = Place::in_memory("sql-tls");
        let address = address_of_this_process(64);
        let right = certificate(&place, "right", &format!("IP:{address}"))?;
        let wrong = certificate(&place, "wrong", "DNS:elsewhere.example")?;
        let server = serve(&postgres_15()?, &place, &[("listen_addresses", &address)]);
        let rules = "local all all trust\nhostssl all all 127.0.0.0/8 trust\n";
        std::fs::write(server.directory().join("data/pg_hba.conf"), rules).unwrap();
        present(&server, &right);
        let reached = |how: &str| {
            let output = program(
                &place,
                &format!("sql drop postgres://rigel@{address}/postgres?{how}"),
            )
            .output()
            .unwrap();
            (output.status.success(), stderr(&output))
        };
        let rooted = |mode: &str, root: &Path| {
            reached(&format!("sslmode={mode}&sslrootcert={}", root.display()))
        };
        for how in ["", "sslmode=prefer", "sslmode=require"] {
            assert!(reached(how).0, "{how}: {}", reached(how).1);
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            assert!(
                rooted(mode, &right.0).0,
                "{mode}: {}",
                rooted(mode, &right.0).1
            );
            let (done, words) = rooted(mode, &wrong.0);
            assert!(
                !done && words.contains("cannot be reached"),
                "{mode}, of another authority: {words}"
            );
        }
        let (done, words) = reached("sslmode=disable");
        assert!(!done && words.contains("no encryption"), "{words}");
        let (done, words) = rooted("verify-full", Path::new("absent.pem"));
        assert!(
            !done && words.contains("sslrootcert 'absent.pem' cannot be used"),
            "{words}"
        );

        // From the right authority, but for another name. The server gets a new certificate.
        present(&server, &wrong);
        wait_until("the other certificate is presented", || {
            rooted("verify-ca", &wrong.0).0
        });
        let (done, words) = rooted("verify-full", &wrong.0);
        assert!(!done && words.contains("not valid for name"), "{words}");
        Ok(())
    });
}
