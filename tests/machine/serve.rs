//! The metrics server from the view of clients: its responses, and that slow and hostile clients do
//! not affect others.

use crate::common::{Place, in_time, rigel, wait_until};
use proptest::prelude::*;
use rigel::serve::{HttpServer, ListenAddress};
use rigel_report::openmetrics::Format;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// A server whose body is the `Accept` header of the request.
fn server() -> HttpServer {
    let answer = |accept: &str| {
        (
            Format::negotiate(accept).content_type(),
            accept.as_bytes().into(),
        )
    };
    HttpServer::start("127.0.0.1:0".parse().unwrap(), answer).unwrap()
}

fn connect(server: &HttpServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    // So that no test waits forever; not part of the test itself.
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

/// The response to a request, read until the server closes. The server drops slow clients, as this
/// one is if the machine stands still for seconds: then it retries.
fn answer(server: &HttpServer, request: &[u8]) -> Vec<u8> {
    for _ in 0..20 {
        let mut stream = connect(server);
        let mut answer = Vec::new();
        let asked = stream
            .write_all(request)
            .and_then(|()| stream.shutdown(Shutdown::Write));
        if asked.and_then(|()| stream.read_to_end(&mut answer)).is_ok() && !answer.is_empty() {
            return answer;
        }
    }
    panic!(
        "asked 20 times, and never answered: {:?}",
        String::from_utf8_lossy(request)
    );
}

/// The header and body of the response.
fn ask(server: &HttpServer, request: &str) -> (String, String) {
    let answer = String::from_utf8(answer(server, request.as_bytes())).unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer to {request:?}: {answer:?}"));
    (head.into(), body.into())
}

fn status(server: &HttpServer, request: &str) -> String {
    ask(server, request).0.lines().next().unwrap().into()
}

#[test]
fn a_scraper_is_answered_in_the_format_it_asks_for() {
    let server = server();
    for format in Format::ALL {
        let accept = format.content_type();
        let (head, body) = ask(
            &server,
            &format!("GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\naCCept:  {accept} \r\n\r\n"),
        );
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains(&format!("\r\nContent-Type: {}\r\n", format.content_type())),
            "{head}"
        );
        assert!(
            head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())),
            "{head}"
        );
        assert!(head.contains("\r\nConnection: close"), "{head}");
        assert!(
            head.contains("\r\nX-Content-Type-Options: nosniff\r\n"),
            "{head}"
        );
        assert_eq!(body, accept);
    }
    let (_, body) = ask(
        &server,
        "GET /metrics?name=x HTTP/1.0\nAccept: a/b\nAccept: c/d\n\n",
    );
    assert_eq!(body, "a/b,c/d", "two lines are one list");
}

#[test]
fn other_requests_get_an_error() {
    let server = server();
    let (head, body) = ask(
        &server,
        "HEAD /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n",
    );
    assert!(
        head.starts_with("HTTP/1.1 200")
            && head.contains("Content-Length: 10\r\n")
            && body.is_empty(),
        "{head}"
    );
    assert!(
        ask(&server, "GET / HTTP/1.1\r\n\r\n")
            .1
            .contains("/metrics")
    );
    for (request, answer) in [
        ("GET /other HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found"),
        (
            "POST /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 405 Method Not Allowed",
        ),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "HTTP/1.1 505 HTTP Version Not Supported",
        ),
        ("hello\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (
            "GET /metrics HTTP/1.1\r\nHost : evil.example\r\n\r\n",
            "HTTP/1.1 400 Bad Request",
        ),
        ("\r\n\r\n", "HTTP/1.1 400 Bad Request"),
    ] {
        assert_eq!(status(&server, request), answer, "{request}");
    }
    assert!(
        ask(&server, "PUT / HTTP/1.1\r\n\r\n")
            .0
            .contains("\r\nAllow: GET, HEAD\r\n")
    );
}

#[test]
fn a_request_without_end_is_refused_and_the_refusal_arrives() {
    let server = server();
    let long = format!(
        "GET /metrics HTTP/1.1\r\nCookie: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    assert_eq!(
        status(&server, &long),
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
    assert_eq!(status(&server, "GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
}

#[test]
fn clients_that_say_nothing_or_do_not_read_stop_nobody_else_for_long() {
    let huge = |_: &str| ("text/plain", vec![b'x'; 32 << 20].into());
    let server = HttpServer::start("127.0.0.1:0".parse().unwrap(), huge).unwrap();
    // More than there are threads: silent clients, one in the middle of a word, and some that do
    // not read their response.
    let _silent: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    let mut halves = connect(&server);
    halves.write_all(b"GET /met").unwrap();
    let mut greedy = connect(&server);
    greedy.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(status(&server, "GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
    // The silent clients were dropped.
    assert_eq!(halves.read(&mut [0; 16]).unwrap_or(0), 0);
}

#[test]
fn silent_clients_keep_nobody_from_an_answer() {
    let server = server();
    // If others blocked the server, each request would wait for the timeout of a silent client,
    // again and again.
    let silent: Vec<TcpStream> = (0..300).map(|_| connect(&server)).collect();
    for _ in 0..3 {
        assert_eq!(
            status(&server, "GET /metrics HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 200 OK"
        );
    }
    // The first silent client was dropped to make room, even before its timeout.
    assert_eq!((&silent[0]).read(&mut [0; 16]).unwrap_or(0), 0);
}

#[test]
fn a_page_from_elsewhere_cannot_ask_under_its_own_name() {
    let server = server();
    let asked = |host: &str| {
        status(
            &server,
            &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
    };
    for host in [
        "localhost",
        "LOCALHOST:9464",
        "127.0.0.1",
        "127.0.0.1:9464",
        "[::1]:9464",
        "[::1]",
        "192.0.2.1:1",
    ] {
        assert_eq!(asked(host), "HTTP/1.1 200 OK", "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:9464",
        "localhost.evil.example",
        "127.0.0.1.evil.example:9464",
        "",
        ":1",
    ] {
        assert_eq!(asked(host), "HTTP/1.1 421 Misdirected Request", "{host}");
    }
    let two = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n";
    assert_eq!(status(&server, two), "HTTP/1.1 421 Misdirected Request");
    // A server that listens for others may have any name.
    let open = HttpServer::start("0.0.0.0:0".parse().unwrap(), |_| {
        ("text/plain", Arc::from([]))
    })
    .unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", open.address().port())).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: db1.example\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[test]
fn a_target_in_absolute_form_is_answered() {
    let server = server();
    let asked = |target: &str| status(&server, &format!("GET {target} HTTP/1.1\r\n\r\n"));
    for target in [
        "http://127.0.0.1:9464/metrics",
        "HTTP://localhost/metrics?x",
        "http://[::1]:9464",
    ] {
        assert_eq!(asked(target), "HTTP/1.1 200 OK", "{target}");
    }
    assert_eq!(
        asked("http://evil.example/metrics"),
        "HTTP/1.1 421 Misdirected Request"
    );
    assert_eq!(asked("http://localhost/other"), "HTTP/1.1 404 Not Found");
}

#[test]
fn a_dropped_server_is_gone_whoever_is_connected() {
    let server = server();
    let address = server.address();
    let mut waiting = connect(&server);
    assert_eq!(status(&server, "GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(waiting.read(&mut [0; 16]).unwrap_or(0), 0);
    // The address is free at once, for the resumed run.
    let next =
        HttpServer::start(ListenAddress(address), |_| ("text/plain", Arc::from([]))).unwrap();
    assert_eq!(next.address(), address);
}

#[test]
fn a_port_in_use_is_an_error_with_a_hint() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let error =
        HttpServer::start(ListenAddress(address), |_| ("text/plain", Arc::from([]))).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.exit_status(), 2);
    assert!(
        text.contains(&address.to_string()) && text.contains("the port is in use"),
        "{text}"
    );
    assert!(text.contains("hint: use another port"), "{text}");
    // A documentation address belongs to no host.
    let error = HttpServer::start("192.0.2.1:9464".parse().unwrap(), |_| {
        ("text/plain", Arc::from([]))
    })
    .unwrap_err();
    assert!(error.to_string().contains("no such address"), "{error}");
}

/// The answer with the metrics at this address; `None` if there is none, because the run is over.
fn scraped(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn every_point_of_a_run_is_a_round_of_its_metrics() {
    let verbs = [
        (
            "curve",
            "curve null: --depth 1..64 --precision 0.1% --point-max",
        ),
        ("calibrate", "calibrate null: --precision 0.1% --point-max"),
        (
            "orion",
            "orion -run normal -num_disks 8 --target null: -duration",
        ),
    ];
    for (verb, line) in verbs {
        let body = in_time("a point was served", |factor| {
            let place = Place::new(&format!("metrics-{verb}-{factor}"));
            let seconds = if verb == "orion" {
                factor.to_string()
            } else {
                format!("{factor}s")
            };
            let line = format!("{line} {seconds} --no-progress --metrics 127.0.0.1:0 --out run");
            let mut child = rigel(&place, &line)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Open until the end: the run would fail to write to it.
            let mut lines = BufReader::new(child.stderr.take().unwrap())
                .lines()
                .map_while(Result::ok);
            let told = lines
                .find(|line| line.starts_with("metrics are served at http://"))
                .unwrap();
            let address = told
                .trim_start_matches("metrics are served at http://")
                .trim_end_matches("/metrics");
            let mut body = None;
            wait_until("a point is served, or the run is over", || {
                let is_over = child.try_wait().unwrap().is_some();
                body = scraped(address).filter(|body| body.contains("\nrigel_round_number "));
                is_over || body.is_some()
            });
            let _ = child.kill();
            child.wait().unwrap();
            body
        });
        assert!(body.contains(&format!("verb=\"{verb}\"")), "{body}");
        assert!(
            body.contains("\nrigel_operations_total{") && body.contains("engine=\"null\""),
            "{body}"
        );
        assert!(!body.contains("rigel_soak_planned_seconds"), "{body}");
    }
}

#[test]
fn addresses_read_as_people_write_them() {
    for (text, address) in [
        ("127.0.0.1:9464", "127.0.0.1:9464"),
        ("[::1]:9464", "[::1]:9464"),
        (":9464", "127.0.0.1:9464"),
        ("9464", "127.0.0.1:9464"),
        ("localhost:9464", "127.0.0.1:9464"),
        (" 0.0.0.0:80 ", "0.0.0.0:80"),
    ] {
        let address: SocketAddr = address.parse().unwrap();
        let read: ListenAddress = text.parse().unwrap();
        assert_eq!(read, ListenAddress(address), "{text}");
        let remark = read.remark();
        assert_eq!(remark.is_some(), text.contains("0.0.0.0"), "{remark:?}");
    }
    for wrong in [
        "",
        ":",
        "127.0.0.1",
        "::1",
        "99999",
        "+80",
        "-1",
        "host:9464",
        "127.0.0.1:",
        "http://127.0.0.1:1/",
    ] {
        let error = wrong.parse::<ListenAddress>().unwrap_err();
        assert!(error.to_string().contains("hint: "), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser_of_addresses(text in "\\PC*|[0-9.:\\[\\]]*") {
        if let Ok(address) = text.parse::<ListenAddress>() {
            prop_assert_eq!(address.to_string().parse::<ListenAddress>().unwrap(), address);
        }
    }

    #[test]
    fn whatever_is_sent_is_answered_and_the_server_lives(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        static SERVER: std::sync::OnceLock<HttpServer> = std::sync::OnceLock::new();
        let server = SERVER.get_or_init(server);
        let answer = answer(server, &[&bytes[..], b"\r\n\r\n"].concat());
        prop_assert!(answer.starts_with(b"HTTP/1.1 "), "{bytes:?}");
    }
}
