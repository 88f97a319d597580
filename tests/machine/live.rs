//! The live view in a real terminal: its output, its keys, and that the terminal is restored.

use crate::common::{self, DEFAULT_SIGNALS, Missing, Place, need, test, wait_until};
use rigel_model::record::End;
use rigel_model::record::journal::Run;
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// A run in its own terminal, through `script` of util-linux. Collects the output of the terminal.
struct Session {
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Session {
    fn start(place: &Place, environment: &str, line: &str) -> Result<Self, Missing> {
        need("script", &["--version"])?;
        let program = env!("CARGO_BIN_EXE_rigel");
        let run = format!("sh -c 'echo $$ > pid; exec env {environment} {program} {line}'");
        let line = format!("stty cols 120 rows 40; {run}; echo status $?; stty -a");
        let mut child = Command::new("env")
            .args([
                DEFAULT_SIGNALS,
                "script",
                "--quiet",
                "--flush",
                "--return",
                "--command",
                &line,
                "/dev/null",
            ])
            .current_dir(&place.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut from, into) = (child.stdout.take().unwrap(), Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut piece) {
                into.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Ok(Self {
            child,
            shown,
            reader,
        })
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn wait_for(&self, text: &str) {
        wait_until(text, || self.shown().contains(text));
    }

    fn press(&mut self, keys: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(keys).unwrap();
    }

    /// The whole output, after the end.
    fn end(mut self) -> String {
        self.child.wait().unwrap();
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }
}

/// A curve that takes minutes unless it is stopped.
fn long(name: &str, environment: &str) -> Result<(Place, Session), Missing> {
    let place = Place::new(name);
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let line = "curve storage --scratch-size 64MiB --rate 100,200 --precision 0.1% --point-max 1h \
                --live --out run";
    let session = Session::start(
        &place,
        format!("{environment} TERM=xterm-256color").trim_start(),
        line,
    )?;
    Ok((place, session))
}

/// Checks that the terminal is restored: its own screen, the cursor, line mode, echo.
fn given_back(shown: &str) {
    assert_eq!(shown.matches(ENTER).count(), 1, "{shown}");
    let after = shown
        .split(LEAVE)
        .nth(1)
        .unwrap_or_else(|| panic!("the screen was not left: {shown}"));
    assert!(
        shown.contains("\x1b[?25l") && shown.contains("\x1b[?25h"),
        "the cursor is gone: {shown}"
    );
    for setting in ["icanon", "isig", "echo ", "opost"] {
        assert!(
            after.contains(setting) && !after.contains(&format!("-{setting}")),
            "{setting}: {after}"
        );
    }
}

#[test]
fn q_keeps_the_results_and_restores_the_terminal() {
    test("q_keeps_the_results_and_restores_the_terminal", || {
        let (place, mut session) = long("live-q", "")?;
        session.wait_for("of 3600.0 s at most");
        session.press(b"q");
        let shown = session.end();
        given_back(&shown);
        assert!(shown.contains("\x1b[36m"), "colours: {shown}");
        let after = shown.split(LEAVE).nth(1).unwrap();
        assert!(
            after.contains("status 1") && after.contains("rigel curve --resume run"),
            "{after}"
        );
        let run = Run::read(&place.0.join("run")).unwrap();
        assert_eq!(
            run.points
                .iter()
                .map(|point| &point.end)
                .collect::<Vec<_>>(),
            [&End::Stopped]
        );
        assert!(run.points[0].streams[0].total().done > 0);
        Ok(())
    });
}

#[test]
fn ctrl_c_twice_ends_at_once_and_without_colours_none_are_sent() {
    test(
        "ctrl_c_twice_ends_at_once_and_without_colours_none_are_sent",
        || {
            let (_place, mut session) = long("live-c", "NO_COLOR=1")?;
            session.wait_for("of 3600.0 s at most");
            // An arrow is not an escape key, and does nothing.
            session.press(b"\x1b[A\x03\x03");
            let shown = session.end();
            given_back(&shown);
            assert!(
                !shown.contains("\x1b[38;5;") && shown.contains("status 1"),
                "{shown}"
            );
            Ok(())
        },
    );
}

#[test]
fn a_signal_and_an_error_give_the_terminal_back_too() {
    test("a_signal_and_an_error_give_the_terminal_back_too", || {
        for signal in ["TERM", "HUP"] {
            let (place, session) = long(&format!("live-{signal}"), "")?;
            session.wait_for("of 3600.0 s at most");
            let pid = std::fs::read_to_string(place.0.join("pid")).unwrap();
            need("kill", &["-s", signal, pid.trim()])?;
            given_back(&session.end());
            let run = Run::read(&place.0.join("run")).unwrap();
            assert_eq!(
                run.points
                    .iter()
                    .map(|point| &point.end)
                    .collect::<Vec<_>>(),
                [&End::Stopped],
                "{signal}"
            );
        }

        let place = Place::new("live-error");
        place.file("empty", 0);
        let session = Session::start(&place, "TERM=xterm", "curve empty --live --out none")?;
        let shown = session.end();
        given_back(&shown);
        // The error is printed on the restored terminal.
        let after = shown.split(LEAVE).nth(1).unwrap();
        assert!(
            after.contains("status 2") && after.contains("'empty' is empty"),
            "{shown}"
        );
        Ok(())
    });
}

#[test]
fn a_hang_up_that_is_ignored_stays_ignored() {
    test("a_hang_up_that_is_ignored_stays_ignored", || {
        need("env", &["--ignore-signal=HUP", "true"])?;
        let (place, mut session) = long("live-nohup", "--ignore-signal=HUP")?;
        session.wait_for("of 3600.0 s at most");
        let pid = std::fs::read_to_string(place.0.join("pid")).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .unwrap()
            .trim();
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() & 1, 1, "{status}");
        session.press(b"q");
        given_back(&session.end());
        Ok(())
    });
}

#[test]
fn a_soak_is_shown_round_by_round() {
    test("a_soak_is_shown_round_by_round", || {
        let place = Place::new("live-soak");
        std::fs::create_dir(place.0.join("storage")).unwrap();
        let line =
            "soak storage --scratch-size 64MiB --work 10Mops --every 1s --for 10h --live --out run";
        let mut session = Session::start(&place, "TERM=xterm", line)?;
        // Only changes are sent, so sentences may arrive in pieces: the journal shows when rounds
        // are complete.
        let rounds = || Run::read(&place.0.join("run")).map_or(0, |run| run.points.len());
        wait_until("two rounds are over", || rounds() >= 2);
        session.press(b"q");
        let shown = session.end();
        given_back(&shown);
        assert!(
            shown.contains("operations") && shown.contains("rigel soak --resume run"),
            "{shown}"
        );
        Ok(())
    });
}

#[test]
fn a_model_is_shown_point_by_point() {
    test("a_model_is_shown_point_by_point", || {
        let place = Place::new("live-sim");
        let session = Session::start(
            &place,
            "TERM=xterm",
            "curve sim:8,100us --seed 1 --live --out run",
        )?;
        let shown = session.end();
        given_back(&shown);
        assert!(shown.contains("status 0"), "{shown}");
        Ok(())
    });
}

#[test]
fn without_a_terminal_progress_is_printed_in_lines_with_the_reason() {
    let place = Place::new("live-none");
    let run = |line: &str| -> Output {
        common::rigel(&place, line)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let output = run("curve sim:8,100us --seed 1 --live --out run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(
        said.starts_with("no live view: stderr is not a terminal; progress is printed in lines\n"),
        "{said}"
    );
    assert!(
        said.contains("point 1 of") && !said.contains('\x1b'),
        "{said}"
    );
    for line in [
        "curve sim: --live --no-progress",
        "orion -run oltp --target sim: --live --no-progress",
    ] {
        let output = run(line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("--no-progress") && said.contains("--live"),
            "{said}"
        );
    }
}

#[test]
fn on_a_terminal_the_answer_of_orion_is_one_screen() {
    test("on_a_terminal_the_answer_of_orion_is_one_screen", || {
        let place = Place::new("live-orion");
        let line = "orion -run simple -duration 1 --target sim:4,100us --seed 1 --out run \
                    --no-progress";
        let text = Session::start(&place, "TERM=xterm", line)?.end();
        assert!(text.contains("status 0"), "{text}");
        let end = text.find("status 0").unwrap();
        let lines: Vec<&str> = text[..end].lines().map(str::trim_end).collect();
        let widest = lines.iter().map(|line| line.chars().count()).max();
        assert!(lines.len() <= 24 && widest <= Some(80), "{text}");
        let has = |what: &str| lines.iter().any(|line| line.contains(what));
        assert!(has("small I/Os of 8 KiB per second"), "{text}");
        assert!(
            has("Orion's files: run/orion_") && !has("Histogram"),
            "{text}"
        );
        // What a program reads is as Orion prints it.
        let piped = Command::new(env!("CARGO_BIN_EXE_rigel"))
            .args(line.replace("--out run", "--out piped").split_whitespace())
            .current_dir(&place.0)
            .output()
            .unwrap();
        let piped = String::from_utf8_lossy(&piped.stdout).into_owned();
        assert!(piped.starts_with("ORION: ORacle IO Numbers"), "{piped}");
        assert!(piped.contains("Latency Histogram @ Small="), "{piped}");
        Ok(())
    });
}
