//! Servers that fall silent: one signal ends the program, and it says whom it waited for.

use super::common::{Place, rigel, test, wait_until};
use super::{begun, serve_mariadb, signal, stderr};
use rigel_model::record::StallChange::{self, Begun, Ended, Over};
use rigel_model::record::journal::Run;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// A server that answers the first message with `greeting`, hears one more, and then says nothing.
/// Returns its port, and a channel that gets a word whenever it has fallen silent.
fn silent_server(greeting: &'static [u8]) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, silent) = channel();
    thread::spawn(move || {
        let mut connections = Vec::new();
        while let Ok((mut connection, _)) = listener.accept() {
            let mut bytes = [0; 4096];
            if !greeting.is_empty() {
                let _ = connection.read(&mut bytes);
                let _ = connection.write_all(greeting);
                let _ = connection.read(&mut bytes);
            }
            connections.push(connection);
            let _ = sender.send(());
        }
    });
    (port, silent)
}

/// Passes everything on between a client and the server with this socket, until the client sends a
/// statement that contains `last` while `is_silent`. Then it says nothing until that is over. Returns
/// its port, and a channel as above.
fn falls_silent_at(
    last: &'static str,
    socket: PathBuf,
    is_silent: &Arc<AtomicBool>,
) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, silent) = channel();
    let is_silent = Arc::clone(is_silent);
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let (sender, server) = (sender.clone(), UnixStream::connect(&socket).unwrap());
            let is_silent = Arc::clone(&is_silent);
            thread::spawn(move || pass_on(client, server, (last, &is_silent), &sender));
        }
    });
    (port, silent)
}

fn pass_on(
    mut client: TcpStream,
    mut server: UnixStream,
    (last, is_silent): (&str, &AtomicBool),
    silent: &Sender<()>,
) {
    let (mut answers, mut answered) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut answers, &mut answered));
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let mut said = bytes[..count].windows(last.len());
        if said.any(|text| text == last.as_bytes()) && is_silent.load(Ordering::Relaxed) {
            let _ = silent.send(());
            wait_until("the server answers again", || {
                !is_silent.load(Ordering::Relaxed)
            });
        }
        if server.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Starts the program on such a server and sends one SIGTERM when it is silent.
fn one_signal_ends(verb: &str, url: &str, silent: &Receiver<()>) {
    let place = Place::new("silent");
    let child = begun(&place, &verb.replace("URL", url));
    // A program that ended before it connected would be waited for without end.
    let connected = silent.recv_timeout(Duration::from_secs(300));
    assert!(connected.is_ok(), "{verb} did not connect");
    signal(child.id(), "TERM");
    // This waits for ever if the program does.
    let output = child.wait_with_output().unwrap();
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{verb}: {printed}");
    assert!(
        printed.contains(url.split('?').next().unwrap())
            && printed.contains("the server did not answer for"),
        "{verb}: {printed}"
    );
}

#[test]
fn one_signal_ends_a_verb_whose_postgres_server_fell_silent() {
    // Authentication is complete; the server is ready.
    let greeting = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    for verb in ["watch URL", "sql load URL --scale 64MiB"] {
        let (port, silent) = silent_server(greeting);
        let url = format!("postgres://ana@127.0.0.1:{port}/shop?sslmode=disable");
        one_signal_ends(verb, &url, &silent);
    }
}

#[test]
fn one_signal_ends_a_verb_whose_mysql_server_does_not_log_it_in() {
    for verb in ["watch URL", "sql load URL --scale 64MiB"] {
        let (port, silent) = silent_server(b"");
        let url = format!("mysql://ana@127.0.0.1:{port}/shop?sslmode=disable");
        one_signal_ends(verb, &url, &silent);
    }
}

#[test]
fn one_signal_ends_a_verb_whose_mysql_server_fell_silent() {
    test("one_signal_ends_a_silent_mysql", || {
        let place = Place::new("silent-mysql");
        let server = serve_mariadb(&place)?;
        let options = mysql::Opts::from_url(server.url()).unwrap();
        let socket = PathBuf::from(options.get_socket().unwrap());
        let is_silent = Arc::new(AtomicBool::new(true));
        for (verb, last) in [
            ("watch URL", "SHOW GLOBAL STATUS"),
            ("sql load URL --scale 64MiB", "information_schema.TABLES"),
        ] {
            let (port, silent) = falls_silent_at(last, socket.clone(), &is_silent);
            let url = format!("mysql://rigel@127.0.0.1:{port}/rigel?sslmode=disable");
            one_signal_ends(verb, &url, &silent);
        }
        is_silent.store(false, Ordering::Relaxed);
        Ok(())
    });
}

#[test]
fn a_watch_notes_when_its_server_stops_answering_and_when_it_goes_on() {
    test("a_watch_notes_when_its_server_stops_answering", || {
        let place = Place::new("silent-watch");
        let server = serve_mariadb(&place)?;
        let options = mysql::Opts::from_url(server.url()).unwrap();
        let socket = PathBuf::from(options.get_socket().unwrap());
        let is_silent = Arc::new(AtomicBool::new(false));
        let (port, _silent) = falls_silent_at("SHOW GLOBAL STATUS", socket, &is_silent);
        let url = format!("mysql://rigel@127.0.0.1:{port}/rigel");
        let line = format!("watch {url}?sslmode=disable --every 1s --no-progress --out run");
        let child = begun(&place, &line);
        let run = place.0.join("run");
        wait_until("an interval is in the journal", || {
            super::journal_lines(&run) > 1
        });
        let changes = || {
            let stalls = Run::read(&run).map_or_else(|_| Vec::new(), |run| run.stalls);
            let changes = stalls.iter().map(|event| event.change);
            changes
                .filter(|change| *change != StallChange::Lasts)
                .collect::<Vec<_>>()
        };
        is_silent.store(true, Ordering::Relaxed);
        wait_until("the silence is in the journal", || changes() == [Begun]);
        is_silent.store(false, Ordering::Relaxed);
        wait_until("its end is in the journal", || changes() == [Begun, Over]);
        is_silent.store(true, Ordering::Relaxed);
        wait_until("it is silent again", || changes() == [Begun, Over, Begun]);
        signal(child.id(), "TERM");
        let output = child.wait_with_output().unwrap();
        is_silent.store(false, Ordering::Relaxed);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(changes(), [Begun, Over, Begun, Ended]);
        let report = |line: &str| {
            let output = rigel(&place, line).output().unwrap();
            assert!(output.status.success(), "{line}: {}", stderr(&output));
            String::from_utf8(output.stdout).unwrap()
        };
        let text = report("report run --verbose");
        for part in [
            "nothing has completed for 1",
            "operations complete again",
            "ended while",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains(&url), "{text}");
        let json: serde_json::Value = serde_json::from_str(&report("report run --json")).unwrap();
        assert!(json["stalls"].as_array().unwrap().len() >= 4, "{json}");
        Ok(())
    });
}
