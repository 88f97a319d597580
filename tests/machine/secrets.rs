//! Passwords are never repeated, never sent to an unnamed server, and never sent in clear text
//! without a warning. A terminal shows typed text again afterwards.

use crate::common::{
    DEFAULT_SIGNALS, Missing, Place, Running, header, need, rigel, test, text, wait_until,
};
use proptest::prelude::*;
use rigel_analyse::plan::SqlStop;
use rigel_analyse::plan::SqlTerms;
use rigel_model::record::journal::Header;
use rigel_model::record::journal::Journal;
use rigel_model::{Dbms, RunOptions, SqlTarget, SqlWork, Tables, Target, WarmUp};
use rigel_verbs::curve::CurveRequest;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Verbs that take a target or a file, and options that take one, before an argument.
const VERBS: [&str; 22] = [
    "calibrate",
    "calibrate --out",
    "calibrate sim:1,1ms --destroy",
    "curve",
    "curve sim:1,1ms --rate",
    "soak",
    "soak --for",
    "layers",
    "layers --on",
    "check",
    "check --size",
    "orion -run simple --target",
    "orion -testname",
    "orion",
    "sql run",
    "sql run --conf",
    "sql load",
    "sql drop",
    "sql clean",
    "import",
    "report",
    "compare /nowhere",
];

pub(crate) const SECRET: &str = "Zq7vXk9";

fn run(place: &Place, verb: &str, argument: &str) -> Output {
    let mut command = rigel(place, verb);
    for name in [
        "PGPASSWORD",
        "PGPASSFILE",
        "PGSSLMODE",
        "PGSSLROOTCERT",
        "PGUSER",
        "MYSQL_PWD",
    ] {
        command.env_remove(name);
    }
    command
        .arg(argument)
        .env("HOME", &place.0)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn no_verb_repeats_a_password_in_a_url_of_whatever_shape() {
    let place = Place::new("secrets-shapes");
    let shapes = [
        "postgres://ana:§@h/d",
        "postgres://ana:§/x@h/d",
        "postgres://ana:77/§@h/d",
        "postgres://ana:x?§@h/d",
        "postgres://ana:x#§@h/d",
        "postgres://ana:x@§@h/d",
        "postgres://ana%3A§@h/d",
        "postgres://ana:§ %zz\n@h/d",
        "postgres://h/d?password=§",
        "postgres://h/d?password=x@§",
        "POSTGRES://ana:§@h/d",
        "oracle://ana:§@h/d",
        "http://ana/§@h",
        "host=h password=§",
        "host=h PassWord = '§' dbname=d",
        "dbname=d password\t=§",
    ];
    for verb in VERBS {
        for shape in shapes {
            let output = run(&place, verb, &shape.replace('§', SECRET));
            let words = said(&output);
            assert_eq!(output.status.code(), Some(2), "{verb} {shape}: {words}");
            assert!(!words.contains(SECRET), "{verb} {shape}: {words}");
        }
    }
    let as_one = run(
        &place,
        "calibrate",
        &format!("--out=oracle://ana:{SECRET}@h"),
    );
    assert!(
        as_one.status.code() == Some(2) && !said(&as_one).contains(SECRET),
        "{as_one:?}"
    );
    assert_eq!(
        std::fs::read_dir(&place.0).unwrap().count(),
        0,
        "something was written"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn no_text_around_a_password_makes_it_show(
        verb in 0..VERBS.len(),
        scheme in "(postgres|POSTGRESQL|mysql|mariadb|oracle|x[+.-]y)",
        before in "[a-z:/?#%&= .\\-\\[]{0,6}",
        after in "[a-z:/?#%&= .\\-\\]]{0,6}",
        host in "[a-z.:0-9/?%]{0,8}",
    ) {
        let place = Place::new("secrets-any");
        let url = format!("{scheme}://ana:{before}{SECRET}{after}@{host}");
        let words = said(&run(&place, VERBS[verb], &url));
        prop_assert!(!words.contains(SECRET), "{} {url}: {words}", VERBS[verb]);
    }
}

#[test]
fn a_url_where_a_file_belongs_is_called_one() {
    let place = Place::new("secrets-file");
    let urls = [
        ("check", "postgres://ana@h/d", "postgres://h"),
        ("calibrate", "oracle://h/d", "oracle://h/d"),
        ("check", "s3://bucket", "s3://bucket"),
    ];
    for (verb, url, shown) in urls {
        let words = said(&run(&place, verb, url));
        assert!(
            words.contains(&format!("{shown} is a URL, not a file or device")),
            "{words}"
        );
    }
}

/// A server that implements just enough of a database's protocol to receive a password: it has no
/// TLS, and requests a clear-text password.
pub(crate) struct Thief {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
    over: Arc<AtomicBool>,
}

impl Thief {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heard, over) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicBool::new(false)),
        );
        let (all, end) = (Arc::clone(&heard), Arc::clone(&over));
        thread::spawn(move || {
            for stream in listener
                .incoming()
                .flatten()
                .take_while(|_| !end.load(Ordering::Relaxed))
            {
                let _ = listen(stream, &all);
            }
        });
        Self { port, heard, over }
    }

    pub(crate) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn listen(mut stream: TcpStream, all: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        all.lock().unwrap().extend(&piece[..read]);
        // The request for TLS is this number after its length; the next message names the user.
        if piece[4..8] == 80_877_103_u32.to_be_bytes() {
            stream.write_all(b"N")?;
        } else if piece[0] == b'p' {
            // Whoever sends it is let in, and sees a database without tables.
            stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
        } else if piece[0] == b'P' {
            let row = b"D\0\0\0\x10\0\x02\0\0\0\x01f\0\0\0\x01f";
            let (before, after) = (b"1\0\0\0\x042\0\0\0\x04", b"C\0\0\0\x05\0Z\0\0\0\x05I");
            stream.write_all(&[&before[..], row, after].concat())?;
        } else {
            stream.write_all(b"R\0\0\0\x08\0\0\0\x03")?;
        }
    }
}

#[test]
fn a_password_does_not_leave_the_machine_without_tls_unless_it_is_said() {
    let place = Place::new("secrets-clear");
    let thief = Thief::new();
    let ask = |host: &str, query: &str| {
        let url = format!("postgres://ana@{host}:{}/d{query}", thief.port);
        let mut command = rigel(&place, "sql drop");
        command
            .arg(url)
            .env("PGPASSWORD", SECRET)
            .env_remove("PGSSLMODE")
            .stdin(Stdio::null());
        said(&command.output().unwrap())
    };
    // For the kernel this address is this machine, but not for the URL parser.
    let words = ask("0.0.0.0", "");
    assert!(
        words.contains("offers no TLS") && words.contains("sslmode=disable"),
        "{words}"
    );
    assert!(!thief.heard().contains(SECRET), "the password was sent");
    ask("0.0.0.0", "?sslmode=disable");
    assert!(
        thief.heard().contains(SECRET),
        "the server that asks was never reached: {}",
        thief.heard()
    );
}

/// What `rigel sql drop` says of a server at this URL for which there is a password.
fn asked(place: &Place, url: &str) -> String {
    let mut command = rigel(place, "sql drop");
    command
        .arg(url)
        .envs([("PGPASSWORD", SECRET), ("MYSQL_PWD", SECRET)])
        .env_remove("PGSSLMODE")
        .env_remove("PGREQUIREAUTH")
        .stdin(Stdio::null());
    said(&command.output().unwrap())
}

#[test]
fn whoever_listens_on_a_loopback_address_gets_no_password_in_clear_text() {
    let place = Place::new("secrets-loopback");
    let thief = Thief::new();
    for query in [
        "",
        "?sslmode=disable",
        "?sslmode=prefer&sslrootcert=/ca.pem",
    ] {
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
            let url = format!("postgres://ana@{host}:{}/d{query}", thief.port);
            let words = asked(&place, &url);
            assert!(!thief.heard().contains(SECRET), "{url}: {words}");
            assert!(
                query.contains("rootcert")
                    || words.contains("cannot be trusted with the password: it asks for the password in clear text")
                        && words.contains("require_auth=password"),
                "{url}: {words}"
            );
        }
    }
    assert!(thief.heard().contains("ana"), "it was never asked");
    let url = format!(
        "postgres://ana@127.0.0.1:{}/d?require_auth=password",
        thief.port
    );
    asked(&place, &url);
    assert!(thief.heard().contains(SECRET), "{}", thief.heard());
}

/// A process of `nobody` that listens on a local socket, asks for the password in clear text, as PostgreSQL and as
/// MySQL can, and writes what it hears to a file beside the socket.
const SOCKET_THIEF: &str = r#"
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
path, heard = sys.argv[1:3]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path); os.chmod(path, 0o777); listener.listen()
print("listening", flush=True)
def write(what):
    with open(heard, "ab") as file:
        file.write(what)
while True:
    stream, _ = listener.accept()
    stream.settimeout(60)
    try:
        if path.endswith("mysqld"):
            low = (0xffff & ~0x800).to_bytes(2, "little")
            high = (0x00ff).to_bytes(2, "little")
            body = (b"\x0a8.0.30\x00" + b"\x01\x00\x00\x00" + b"x" * 8 + b"\x00" + low + b"\x21\x02\x00" + high
                + b"\x15" + b"\x00" * 10 + b"y" * 12 + b"\x00" + b"caching_sha2_password\x00")
            stream.sendall(len(body).to_bytes(3, "little") + b"\x00" + body)
            write(stream.recv(4096))
            # The full authentication, which on a socket is the password itself.
            stream.sendall(b"\x02\x00\x00\x02\x01\x04")
            write(stream.recv(4096))
        else:
            write(stream.recv(4096))
            stream.sendall(b"R\x00\x00\x00\x08\x00\x00\x00\x03")
            write(stream.recv(4096))
    except OSError:
        pass
    stream.close()
"#;

#[test]
fn a_socket_that_another_user_made_gets_no_password() {
    test("a_socket_that_another_user_made_gets_no_password", || {
        need(
            "sh",
            &["-c", "test $(id -u) = 0 || { echo needs root; exit 1; }"],
        )?;
        // Where its user may go.
        let place = std::env::temp_dir().join(format!("rigel-secrets-{}", std::process::id()));
        let place = Place(place);
        std::fs::create_dir_all(&place.0).unwrap();
        need("chmod", &["1777", text(&place.0)])?;
        let [postgres, mysql] = [".s.PGSQL.5432", "mysqld"].map(|name| {
            let child = Command::new("python3")
                .args(["-c", SOCKET_THIEF, text(&place.0.join(name))])
                .arg(place.0.join(format!("heard-{name}")))
                .stdout(Stdio::piped())
                .spawn();
            let mut child = child.map_err(|error| Missing(format!("python3: {error}")))?;
            let mut first = String::new();
            let read = BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first);
            assert!(
                read.is_ok()
                    && first
                        == "listening
",
                "{first}"
            );
            Ok(Running(child))
        });
        let _both = (postgres?, mysql?);
        let heard = |name: &str| {
            let heard = std::fs::read(place.0.join(format!("heard-{name}"))).unwrap_or_default();
            String::from_utf8_lossy(&heard).into_owned()
        };
        let (postgres, mysql) = (
            format!("postgres:///d?host={}&user=ana", place.0.display()),
            format!(
                "mysql://ana@localhost/d?socket={}",
                place.0.join("mysqld").display()
            ),
        );
        let words = asked(&place, &postgres);
        assert!(
            words.contains("cannot be trusted with the password")
                && heard(".s.PGSQL.5432").contains("ana"),
            "{words}"
        );
        let words = asked(&place, &mysql);
        assert!(
            words.contains("cannot be trusted with the password")
                && words.contains("sslmode=disable"),
            "{words}"
        );
        for name in [".s.PGSQL.5432", "mysqld"] {
            assert!(!heard(name).contains(SECRET), "{name}: {}", heard(name));
        }
        // Once that is said, or the directory is of whoever listens and closed to others.
        asked(&place, &format!("{postgres}&require_auth=password"));
        assert!(
            heard(".s.PGSQL.5432").contains(SECRET),
            "{}",
            heard(".s.PGSQL.5432")
        );
        need("chmod", &["755", text(&place.0)])?;
        need("chown", &["65534", text(&place.0)])?;
        let words = asked(&place, &mysql);
        assert!(
            heard("mysqld").contains(SECRET),
            "{words} {}",
            heard("mysqld")
        );
        Ok(())
    });
}

#[test]
fn a_line_of_pgpass_gives_no_password_to_another_server() {
    let place = Place::new("secrets-pgpass");
    let (first, second) = (Thief::new(), Thief::new());
    let file = place.0.join(".pgpass");
    std::fs::write(&file, format!("*:{}:*:*:{SECRET}\n", first.port)).unwrap();
    need("chmod", &["600", text(&file)]).ok().unwrap();
    let url = |thief: &Thief| {
        format!(
            "postgres://ana@127.0.0.1:{}/d?require_auth=password",
            thief.port
        )
    };
    let mut command = rigel(&place, "sql drop");
    command.args([url(&first), url(&second)]);
    command.env("HOME", &place.0).stdin(Stdio::null());
    for name in ["PGPASSWORD", "PGPASSFILE", "PGSSLMODE"] {
        command.env_remove(name);
    }
    command.output().unwrap();
    assert!(second.heard().contains("ana"), "the second was never asked");
    assert!(!second.heard().contains(SECRET), "{}", second.heard());
    assert!(first.heard().contains(SECRET), "{}", first.heard());
}

#[test]
fn a_resumed_run_sends_no_password_that_was_not_given_for_it() {
    let place = Place::new("secrets-resume");
    let thief = Thief::new();
    let url = format!(
        "postgres://ana@127.0.0.1:{}/d?require_auth=password",
        thief.port
    );
    let head = resumable(&url);
    drop(Journal::create(&place.0.join("run"), &head).unwrap());
    std::fs::write(place.0.join(".pgpass"), format!("*:*:*:*:{SECRET}\n")).unwrap();
    need("chmod", &["600", text(&place.0.join(".pgpass"))])
        .ok()
        .unwrap();
    let resume = |more: &str| {
        let mut command = rigel(&place, &format!("curve --resume run {more}"));
        command
            .env("PGPASSWORD", SECRET)
            .env("HOME", &place.0)
            .env_remove("PGSSLMODE")
            .stdin(Stdio::null());
        said(&command.output().unwrap())
    };
    let words = resume("");
    assert!(words.contains(&format!("resuming on '{url}'")), "{words}");
    assert!(
        words.contains("PGPASSWORD is not used for a server") && words.contains("--password-file"),
        "{words}"
    );
    assert!(
        !thief.heard().contains(SECRET),
        "the password was sent: {}",
        thief.heard()
    );
    assert!(
        thief.heard().contains("ana"),
        "the server of the journal was never asked: {words}"
    );
    std::fs::write(place.0.join("password"), format!("{SECRET}\n")).unwrap();
    need("chmod", &["600", text(&place.0.join("password"))])
        .ok()
        .unwrap();
    resume("--password-file password");
    assert!(
        thief.heard().contains(SECRET),
        "a password that is given now is used: {}",
        thief.heard()
    );
}

/// The header of a journal of a curve on a database at `url`, sufficient to resume it.
pub(crate) fn resumable(url: &str) -> Header {
    let mut request: CurveRequest = serde_json::from_value(curve_request()).unwrap();
    request.sql = Some(SqlTerms {
        work: SqlWork::reads(Tables {
            schemas: 1,
            scale: 1000,
            scan_blocks: 0,
            block: 8192,
        }),
        stop: SqlStop::Precise,
        warm_up: WarmUp::NONE,
        statement_timeout: None,
    });
    let mut head = header(
        "1,1ms".parse().unwrap(),
        &request,
        "2026-01-01 00:00:00 +0000",
    );
    head.target = Target::Sql(SqlTarget {
        dbms: Dbms::Postgres,
        urls: vec![url.into()],
        private_in: None,
        private: None,
    });
    head.invocation.options = RunOptions {
        seed: 1,
        directory: "/".into(),
        ..RunOptions::default()
    };
    head
}

/// The request of a curve, from its own journal.
pub(crate) fn curve_request() -> serde_json::Value {
    let place = Place::new("secrets-curve");
    let done = rigel(
        &place,
        "curve sim:1,1ms --depth 1 --seed 1 --no-progress --out run",
    )
    .output()
    .unwrap();
    assert!(done.status.success(), "{}", said(&done));
    let journal = std::fs::read_to_string(place.0.join("run/journal.jsonl")).unwrap();
    let head: serde_json::Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    head["header"]["plan"]["curve"].clone()
}

/// Runs `rigel sql drop` in a terminal, and calls `end` when it asks for the password. Returns the
/// terminal's settings afterwards.
fn settings_after(name: &str, end: impl FnOnce(&Place, &mut dyn Write)) -> Result<String, Missing> {
    need("script", &["--version"])?;
    let place = Place::new(name);
    let thief = Thief::new();
    let url = format!(
        "postgres://ana@127.0.0.1:{}/d?require_auth=password",
        thief.port
    );
    let asks = "sh -c 'echo $$ >pid; exec \"$0\" sql drop \"$1\"'";
    let program = env!("CARGO_BIN_EXE_rigel");
    let line = format!(
        "trap : INT; {asks} {program} '{url}'; stty -a >settings.new; mv settings.new settings"
    );
    let mut command = Command::new("env");
    command
        .args([DEFAULT_SIGNALS, "script", "-qec", &line, "/dev/null"])
        .current_dir(&place.0)
        .env("HOME", &place.0)
        .env("SHELL", "/bin/sh");
    command
        .env_remove("PGPASSWORD")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut terminal = command
        .spawn()
        .map_err(|error| Missing(format!("script: {error}")))?;
    let mut shown = terminal.stdout.take().unwrap();
    let text = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&text);
    let reader = thread::spawn(move || {
        let mut piece = [0; 256];
        while let Ok(read @ 1..) = shown.read(&mut piece) {
            seen.lock().unwrap().extend(&piece[..read]);
        }
    });
    let asked = || String::from_utf8_lossy(&text.lock().unwrap()).contains("password for");
    wait_until("the password is asked for", asked);
    let silent = || {
        let pid = std::fs::read_to_string(place.0.join("pid")).unwrap();
        let terminal = format!("/proc/{}/fd/0", pid.trim());
        need("stty", &["-a", "-F", &terminal]).is_ok_and(|settings| settings.contains("-echo "))
    };
    wait_until("the terminal is silent", silent);
    let mut input = terminal.stdin.take().unwrap();
    end(&place, &mut input);
    wait_until("the program has ended", || {
        place.0.join("settings").exists()
    });
    drop(input);
    let _ = terminal.kill();
    let _ = terminal.wait();
    let _ = reader.join();
    Ok(std::fs::read_to_string(place.0.join("settings")).unwrap())
}

fn assert_shows(settings: &str) {
    assert!(
        settings.contains(" echo ") && !settings.contains("-echo "),
        "{settings}"
    );
}

fn send(place: &Place, signal: &str) {
    let pid = std::fs::read_to_string(place.0.join("pid")).unwrap();
    need("kill", &["-s", signal, pid.trim()]).ok().unwrap();
}

#[test]
fn the_terminal_shows_what_is_typed_after_a_question_that_was_interrupted() {
    test(
        "the_terminal_shows_what_is_typed_after_a_question_that_was_interrupted",
        || {
            assert_shows(&settings_after("secrets-int", |_, input| {
                input.write_all(b"\x03").unwrap();
            })?);
            for signal in ["TERM", "HUP"] {
                let name = format!("secrets-{signal}");
                assert_shows(&settings_after(&name, |place, _| send(place, signal))?);
            }
            assert_shows(&settings_after("secrets-answer", |_, input| {
                input.write_all(b"guess\n").unwrap();
            })?);
            Ok(())
        },
    );
}

#[test]
fn the_terminal_shows_what_is_typed_while_a_question_is_suspended() {
    test(
        "the_terminal_shows_what_is_typed_while_a_question_is_suspended",
        || {
            let settings = settings_after("secrets-stop", |place, _| {
                send(place, "TSTP");
                let pid = std::fs::read_to_string(place.0.join("pid")).unwrap();
                let stat = format!("/proc/{}/stat", pid.trim());
                wait_until("it is stopped", || {
                    std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))
                });
                let terminal = format!("/proc/{}/fd/0", pid.trim());
                assert_shows(&need("stty", &["-a", "-F", &terminal]).ok().unwrap());
                // It asks again, again without echo, until it is ended.
                send(place, "CONT");
                let silent = || {
                    need("stty", &["-a", "-F", &terminal]).is_ok_and(|text| text.contains("-echo "))
                };
                wait_until("the terminal is silent again", silent);
                send(place, "TERM");
            })?;
            assert_shows(&settings);
            Ok(())
        },
    );
}
