//! Servers that fall silent: one signal ends the program, and it says whom it waited for.

use super::common::{Place, test};
use super::{begun, said, serve_mariadb, signal};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
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
/// statement that contains `last`. Then it says nothing. Returns its port, and a channel as above.
fn falls_silent_at(last: &'static str, socket: PathBuf) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, silent) = channel();
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let (sender, server) = (sender.clone(), UnixStream::connect(&socket).unwrap());
            thread::spawn(move || pass_on(client, server, last, &sender));
        }
    });
    (port, silent)
}

fn pass_on(mut client: TcpStream, server: UnixStream, last: &str, silent: &Sender<()>) {
    let (mut answers, mut answered) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut answers, &mut answered));
    let (mut server, mut bytes) = (server, [0; 4096]);
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let is_last = bytes[..count]
            .windows(last.len())
            .any(|text| text == last.as_bytes());
        if is_last {
            let _ = silent.send(());
        } else if server.write_all(&bytes[..count]).is_err() {
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
    signal(&child, "TERM");
    // This waits for ever if the program does.
    let output = child.wait_with_output().unwrap();
    let printed = said(&output);
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
        for (verb, last) in [
            ("watch URL", "SHOW GLOBAL STATUS"),
            ("sql load URL --scale 64MiB", "information_schema.TABLES"),
        ] {
            let (port, silent) = falls_silent_at(last, socket.clone());
            let url = format!("mysql://rigel@127.0.0.1:{port}/rigel?sslmode=disable");
            one_signal_ends(verb, &url, &silent);
        }
        Ok(())
    });
}
