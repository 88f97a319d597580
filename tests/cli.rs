//! The command line as users see it: runs every transcript under `tests/cmd/` and compares its
//! output.
//!
//! `TRYCMD=overwrite cargo test --test cli` rewrites the transcripts; put `[..]` back in place of
//! times. The commands run file by file in a directory with the files that [`furnish`] makes. A
//! repository cannot contain these: a pipe, a file without blocks, directories without files.

mod common;

use common::{Place, rigel, text};
use rigel_model::workload::{content, rng::Rng};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Creates the files that the transcripts use.
fn furnish(place: &Place) {
    let path = |name: &str| place.0.join(name);
    let write = |name: &str, bytes: &[u8]| std::fs::write(path(name), bytes).unwrap();
    let mut random = vec![0; 4 << 20];
    content::fill(&mut random, &mut Rng::new(1, 0));
    write("data", &random);
    // Who would write to it finds nobody else here that has it open.
    write("kept", &random);
    write("tiny", &random[..1 << 20]);
    write("empty", b"");
    write("day.csv", include_bytes!("../docs/examples/cloud-day.csv"));
    write(
        "commits.csv",
        b"time,commits_per_second\n2026-01-01T00:00,5\n2026-01-01T00:10,6\n",
    );
    place.file("holes", 4 << 20);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("data", path("alias")).unwrap();
    std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
    for name in ["folder", "used", "listless.lun"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    write("used/something", b"");
    for target in [
        "data", "tiny", "empty", "holes", "pipe", "folder", "missing",
    ] {
        write(
            &format!("of-{target}.lun"),
            format!("{target}\n").as_bytes(),
        );
    }
    write("of-nothing.lun", b"# no target\n\n");
    write("of-twice.lun", b"data\nempty\ndata\n");
    write("of-alias.lun", b"data\nalias\n");
    write("of-bytes.lun", b"\xff\xfe\n");
}

#[test]
fn transcripts_match_the_programs_output() {
    let place = Place::new("cli");
    furnish(&place);
    let program = env!("CARGO_BIN_EXE_rigel");
    let orion = place.0.join("orion");
    std::os::unix::fs::symlink(program, &orion).unwrap();
    // Transcripts without their own files run in this process's directory; no other test here
    // depends on it.
    std::env::set_current_dir(&place.0).unwrap();
    trycmd::TestCases::new()
        .register_bin("rigel", Path::new(program))
        .register_bin("orion", orion.as_path())
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .case(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/*.trycmd"));
}

const POINT: &str =
    "orion -run advanced -matrix point -num_small 2 -num_large 1 -duration 1 --target sim:4,100us";

#[test]
fn json_is_one_document_and_nothing_else() {
    let place = Place::new("cli-json");
    let run = rigel(&place, &format!("{POINT} --json -verbose --out run"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let document: serde_json::Value =
        serde_json::from_slice(&run.stdout).expect("one document on stdout");
    assert_eq!(document["points"].as_array().map(Vec::len), Some(1));
    let report = rigel(&place, "report run --json").output().unwrap();
    assert_eq!(
        report.stdout, run.stdout,
        "the report differs from what the run printed"
    );
    let check = rigel(&place, "check . --json").output().unwrap();
    let _: serde_json::Value =
        serde_json::from_slice(&check.stdout).expect("one document on stdout");
}

#[test]
fn text_that_scripts_search_for_is_on_stdout_and_in_the_files() {
    let place = Place::new("cli-strings");
    let run = rigel(&place, &format!("{POINT} --out run"))
        .output()
        .unwrap();
    let printed = String::from_utf8(run.stdout).unwrap();
    let file = |end: &str| {
        let entries = std::fs::read_dir(place.0.join("run"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let path = entries
            .into_iter()
            .find(|path| path.to_str().unwrap().ends_with(end))
            .expect(end);
        std::fs::read_to_string(path).unwrap()
    };
    for text in [&printed, &file("_summary.txt")] {
        for words in [
            "Maximum Large MBPS",
            "Maximum Small IOPS",
            "Minimum Small Latency",
        ] {
            let line = text
                .lines()
                .find(|line| line.starts_with(words))
                .expect(words);
            let figure = line
                .split('=')
                .nth(1)
                .and_then(|rest| rest.split_whitespace().next())
                .unwrap_or_default();
            assert!(
                figure.parse::<f64>().is_ok_and(|figure| figure > 0.0),
                "{line}"
            );
        }
    }
    for end in ["_mbps.csv", "_iops.csv", "_lat.csv"] {
        assert!(file(end).starts_with("Large/Small,"), "{end}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_fail() {
    let place = Place::new("cli-pipe");
    let mut made = rigel(&place, &format!("{POINT} --out run"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(made.wait().unwrap().success());
    let verbs = [
        &format!("{POINT} --out piped")[..],
        "report run",
        "report run --json",
        "orion -help",
        "completions bash",
    ];
    for verb in verbs {
        let mut child = rigel(&place, verb)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !said.contains("panic"),
            "{verb}: {}: {said}",
            output.status
        );
    }
}

#[test]
fn runs_of_the_same_name_never_meet() {
    let place = Place::new("cli-twice");
    let files = || {
        let content = |path: PathBuf| (path.clone(), std::fs::read(&path).unwrap_or_default());
        common::entries(&place.0)
            .into_iter()
            .map(content)
            .collect::<Vec<_>>()
    };
    // Each run leaves six files and a directory.
    for runs in 1..=3 {
        let before = files();
        assert!(rigel(&place, POINT).output().unwrap().status.success());
        let after = files();
        assert_eq!(after.len(), 7 * runs, "{after:?}");
        assert!(
            before.iter().all(|file| after.contains(file)),
            "something was overwritten"
        );
    }
    // Two runs that begin at the same moment are separated when they create their directories.
    let two = [(); 2].map(|()| {
        rigel(&place, "curve sim:2,100us --depth 1")
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    });
    two.into_iter()
        .for_each(|mut run| assert!(run.wait().unwrap().success()));
    let curves = common::entries(&place.0)
        .into_iter()
        .filter(|path| text(path).contains("curve_"))
        .collect::<Vec<_>>();
    assert_eq!(curves.len(), 2, "{curves:?}");
    for run in &curves {
        assert!(
            rigel(&place, "report")
                .arg(run)
                .output()
                .unwrap()
                .status
                .success(),
            "{}",
            run.display()
        );
    }
}

#[test]
fn a_target_that_is_not_there_is_named_before_anything_else() {
    let place = Place::new("cli-absent");
    place.file("occupied", 1);
    for verb in [
        "calibrate absent",
        "curve absent --depth 1",
        "soak absent --for 1h",
        "orion -run simple --target absent",
    ] {
        let output = rigel(&place, &format!("{verb} --out occupied"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb}: {said}");
        assert!(
            said.contains("'absent' does not exist") && !said.contains("occupied"),
            "{verb}: {said}"
        );
        // Do not estimate the duration of a refused run.
        assert!(
            output.stdout.is_empty() && !said.contains("to run"),
            "{verb}: {said}"
        );
    }
}
