//! A run leaves a readable journal however it ended, and every released format can still be read.
//!
//! `tests/journals/` contains journals of released formats, which never change; their reports are
//! in `tests/golden/journals/`. `UPDATE_GOLDEN=1 cargo test --test it journal::` rewrites the
//! reports.

use crate::common::{
    self, Place, Scratch, ends, entries, in_time, processes, rigel, scratch_file, wait_until,
};
use proptest::prelude::*;
use rigel_model::Coordinates;
use rigel_model::record::journal::Run;
use rigel_model::record::journal::{FORMAT, Journal};
use rigel_report::document::Extent;
use rigel_report::text;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two points of a device with constant service times: a journal of a few thousand bytes.
const SMALL_RUN: &str = "orion -run oltp -num_small 2 -duration 1 --target sim:1,10ms,fixed \
                         --seed 7 --out run --no-progress";

/// The journal of [`SMALL_RUN`].
fn small_journal(place: &Place) -> Vec<u8> {
    let output = rigel(place, SMALL_RUN).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::read(place.0.join("run/journal.jsonl")).unwrap()
}

/// Reads `bytes` as a journal.
fn read(place: &Place, bytes: &[u8]) -> Result<Run, String> {
    let path = place.0.join("some.jsonl");
    std::fs::write(&path, bytes).unwrap();
    Run::read(&path).map_err(|error| error.to_string())
}

/// Offset of each line, and of the end.
fn line_starts(text: &[u8]) -> Vec<usize> {
    let ends = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).collect()
}

#[test]
fn a_journal_cut_anywhere_gives_the_points_before_the_cut() {
    let place = Place::new("journal-cut");
    let whole = small_journal(&place);
    let starts = line_starts(&whole);
    assert_eq!(
        starts.len(),
        5,
        "a header, two points, how it ended, the end"
    );
    let full = read(&place, &whole).unwrap();
    assert!(!full.cut && full.points.len() == 2);
    for cut in starts[1]..whole.len() {
        let run =
            read(&place, &whole[..cut]).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let lines = starts[1..].iter().filter(|start| **start <= cut).count();
        assert_eq!(
            run.points,
            full.points[..(lines - 1).min(2)],
            "cut at {cut}"
        );
        assert!(!run.is_complete(), "cut at {cut}");
        assert_eq!(run.cut, !starts.contains(&cut), "cut at {cut}");
    }
    for cut in 0..starts[1] {
        let error = read(&place, &whole[..cut]).expect_err("there is no header");
        assert!(
            error.contains("contains no run") && error.contains("hint: "),
            "cut at {cut}: {error}"
        );
    }
}

#[test]
fn a_cut_line_is_dropped_and_its_point_runs_again() {
    let place = Place::new("journal-again");
    let whole = small_journal(&place);
    let [last, end] = [2, 3].map(|line| line_starts(&whole)[line]);
    let path = place.0.join("run/journal.jsonl");
    for cut in [last + 1, last + 100, end - 2, end - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let report = rigel(&place, "report run").output().unwrap();
        assert_eq!(report.status.code(), Some(1), "{report:?}");
        assert!(
            String::from_utf8_lossy(&report.stdout).contains("1 of 2 data points"),
            "{report:?}"
        );
        assert!(
            String::from_utf8_lossy(&report.stderr).contains("last line is incomplete"),
            "{report:?}"
        );
        assert_eq!(
            std::fs::read(&path).unwrap(),
            whole[..cut],
            "a report changed the journal"
        );

        let resumed = rigel(&place, "orion --resume run").output().unwrap();
        let said = String::from_utf8_lossy(&resumed.stderr);
        assert!(resumed.status.success(), "{said}");
        assert!(
            said.contains("last line is incomplete") && said.contains("1 of 2 data points to run"),
            "{said}"
        );
        let now = std::fs::read(&path).unwrap();
        assert_eq!(now[..last], whole[..last], "earlier lines were touched");
        let run = Run::read(&path).unwrap();
        assert!(
            !run.cut && run.points.len() == 2 && run.complete().len() == 2,
            "cut at {cut}"
        );
    }
}

/// What `rigel report` prints of the run in `out`, and its JSON.
fn reports(place: &Place, status: i32) -> (String, serde_json::Value) {
    let [text, json] = ["report out", "report out --json"].map(|line| {
        let output = rigel(place, line).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    });
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.join(" "), serde_json::from_str(&json).unwrap())
}

/// The runs of every verb that measures a model, the option of their targets, and how they go on.
const EVERY_VERB: [(&str, &str); 7] = [
    ("curve sim:1,10ms,fixed --depth 1,2,4", "curve --resume out"),
    ("calibrate sim:4,1ms --for 3m", "calibrate --resume out"),
    (
        "orion -run oltp -num_small 3 -duration 1 --target sim:1,10ms,fixed",
        "orion --resume out",
    ),
    ("expect iops>=100 sim:4,1ms", "expect --resume out"),
    ("duet sim:4,1ms sim:4,1ms", "duet --resume out"),
    ("soak sim:4,1ms --for 12m --every 1m", "soak --resume out"),
    (
        "curve sim:4,1ms --rate 100,200 --max-latency 1us@p99",
        "curve --resume out",
    ),
];

#[test]
fn the_last_line_says_how_a_run_of_any_verb_ended_and_without_it_no_report_is_of_a_complete_run() {
    for (line, resume) in EVERY_VERB {
        let place = Place::new("journal-ended");
        let path = place.0.join("out/journal.jsonl");
        let measured = rigel(&place, &format!("{line} --seed 7 --out out --no-progress"));
        let measured = { measured }.output().unwrap();
        let status = measured.status.code().unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let (end, before) = lines.split_last().unwrap();
        let ended = format!("{{\"end\":{{\"how\":\"complete\",\"status\":{status}}}}}");
        assert_eq!(*end, ended, "{line}");
        let of = |lines: &[&str]| lines.join("\n") + "\n";
        let (text, json) = reports(&place, status);
        assert!(!text.contains("not complete"), "{line}: {text}");
        assert_eq!(json["ended"]["how"], "complete", "{line}");

        // As if it had been killed after its last point, and after its first.
        for (killed, points) in [(before, before.len() - 1), (&before[..2], 1)] {
            std::fs::write(&path, of(killed)).unwrap();
            let (text, json) = reports(&place, 1);
            assert!(
                text.contains(&format!(
                    "The run is not complete: it was killed after {points} "
                )) && text.contains(&format!("`rigel {resume}`"))
                    && text.contains("Trust: with care: not complete"),
                "{line}: {text}"
            );
            assert_eq!(json["ended"]["how"], "killed", "{line}");
            assert_eq!(json["ended"]["measured"], points, "{line}");
            let resumed = rigel(&place, &format!("{resume} --no-progress"));
            let resumed = { resumed }.output().unwrap();
            let last = std::fs::read_to_string(&path).unwrap();
            let last = last.lines().next_back().unwrap();
            assert!(
                last.starts_with("{\"end\":{\"how\":\"complete\""),
                "{line}: {last}"
            );
            let (text, _) = reports(&place, resumed.status.code().unwrap());
            assert!(!text.contains("not complete"), "{line}: {text}");
        }
    }
}

#[test]
fn an_import_that_was_killed_is_made_again() {
    let place = Place::new("journal-import");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/fio_each.json");
    let mut import = rigel(&place, "import --out out");
    let output = import.arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let path = place.0.join("out/journal.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let end = whole.find("{\"end\"").unwrap();
    reports(&place, 0);
    std::fs::write(&path, &whole[..end]).unwrap();
    let (text, _) = reports(&place, 1);
    assert!(text.contains("it was killed after 1 file"), "{text}");
    assert!(text.contains("import the files again"), "{text}");
}

#[test]
fn a_run_that_another_process_still_writes_is_still_running() {
    let place = Place::new("journal-running");
    let path = place.0.join("out/journal.jsonl");
    let line = "curve sim:1,10ms,fixed --depth 1,2,4 --seed 7 --out out --no-progress";
    assert!(rigel(&place, line).status().unwrap().success());
    let whole = std::fs::read(&path).unwrap();
    let second = line_starts(&whole)[2];
    std::fs::write(&path, &whole[..second]).unwrap();
    let writer = Journal::reopen(&path).unwrap();
    let (text, json) = reports(&place, 0);
    assert!(
        text.contains("The run is not complete: it is still running, after 1 of "),
        "{text}"
    );
    assert_eq!(json["ended"]["how"], "running");
    drop(writer);
    let (text, _) = reports(&place, 1);
    assert!(text.contains("it was killed after 1 of "), "{text}");
}

#[test]
fn a_run_is_resumed_by_whatever_a_report_takes() {
    let place = Place::new("journal-named");
    let path = place.0.join("run/journal.jsonl");
    let line = "curve sim:1,10ms,fixed --depth 1,2 --seed 7 --out run --no-progress";
    let output = rigel(&place, line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let whole = std::fs::read(&path).unwrap();
    let last = line_starts(&whole)[2];
    for (name, page) in [
        ("run", "run/report.html"),
        ("run/journal.jsonl", "run/report.html"),
        ("./run/../run", "run/report.html"),
        ("other.jsonl", "report.html"),
    ] {
        let is_other = name == "other.jsonl";
        let journal = if is_other {
            place.0.join(name)
        } else {
            path.clone()
        };
        std::fs::write(&journal, &whole[..last]).unwrap();
        let _ = std::fs::remove_file(place.0.join(page));
        let resumed = rigel(&place, &format!("curve --no-progress --resume {name}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&resumed.stderr);
        assert!(resumed.status.success(), "{name}: {said}");
        assert_eq!(Run::read(&journal).unwrap().complete().len(), 2, "{name}");
        assert!(place.0.join(page).exists(), "{name}: {said}");
        // By any other verb it is refused at once.
        let other = rigel(&place, &format!("calibrate --resume {name}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&other.stderr);
        assert_eq!(other.status.code(), Some(2), "{said}");
        assert!(
            said.contains("this run was made by rigel curve")
                && said.contains("`rigel curve --resume"),
            "{said}"
        );
        let over = rigel(&place, &format!("curve --no-progress --resume {name}"))
            .output()
            .unwrap();
        assert!(over.status.success(), "{over:?}");
        assert!(
            String::from_utf8_lossy(&over.stderr).contains("this run is already complete"),
            "{over:?}"
        );
    }
}

#[test]
fn what_a_journal_has_measured_is_named_before_it_is_opened() {
    let place = Place::new("journal-names");
    let path = place.0.join("run/journal.jsonl");
    let line = "curve sim:1,10ms,fixed --depth 1,2 --seed 7 --out run --no-progress";
    assert!(rigel(&place, line).output().unwrap().status.success());
    let whole = std::fs::read_to_string(&path).unwrap();
    let cut = &whole[..line_starts(whole.as_bytes())[2]];
    let (first, rest) = cut.split_once('\n').unwrap();
    for (target, names) in [
        (
            r#"{"scratch":{"directory":"there","bytes":1048576,"keep":true}}"#,
            &["resuming on a new scratch file in 'there', as the journal says"][..],
        ),
        (
            r#"{"paths":{"members":["one","two\n"],"layout":"concat"}}"#,
            &[
                "resuming on 'one', as the journal says",
                "resuming on 'two\\n', as the journal says",
            ],
        ),
    ] {
        let mut header: serde_json::Value = serde_json::from_str(first).unwrap();
        header["header"]["target"] = serde_json::from_str(target).unwrap();
        header["header"]["plan"]["directory"] = "".into();
        std::fs::write(&path, format!("{header}\n{rest}")).unwrap();
        let resumed = rigel(&place, "curve --resume run --no-progress")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&resumed.stderr);
        for name in names {
            assert!(said.contains(name), "{said}");
        }
        // There is no such directory or file: what is said comes first.
        assert!(!resumed.status.success(), "{said}");
    }
}

#[test]
fn a_journal_that_was_removed_meanwhile_takes_no_more_points() {
    let place = Place::new("journal-removed");
    small_journal(&place);
    let (mut journal, run): (_, Run) = Journal::reopen(&place.0.join("run")).unwrap();
    std::fs::remove_dir_all(place.0.join("run")).unwrap();
    let error = journal.point(&run.points[0]).unwrap_err().to_string();
    assert!(error.contains("was removed during this run"), "{error}");
}

#[test]
fn a_damaged_line_and_a_later_format_are_named() {
    let place = Place::new("journal-damaged");
    let whole = small_journal(&place);
    let text = String::from_utf8(whole).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let of = |lines: &[&str]| format!("{}\n", lines.join("\n"));

    let error = read(
        &place,
        of(&[lines[0], "{\"point\":5}", lines[2]]).as_bytes(),
    )
    .unwrap_err();
    assert!(
        error.contains("some.jsonl' line 2 is damaged") && error.contains("hint: "),
        "{error}"
    );
    let error = read(&place, of(&[lines[0], lines[1], "", lines[2]]).as_bytes()).unwrap_err();
    assert!(error.contains("line 3 is damaged"), "{error}");
    let error = read(&place, of(&[lines[0], lines[1], lines[0]]).as_bytes()).unwrap_err();
    assert!(
        error.contains("line 3 is damaged: a second header"),
        "{error}"
    );
    let error = read(&place, of(&[lines[1], lines[0]]).as_bytes()).unwrap_err();
    assert!(
        error.contains("is not the journal of a run")
            && error.contains("a point before the header"),
        "{error}"
    );

    // A later format may have changed anything else.
    let later = format!(
        "{{\"header\":{{\"format\":{}}}}}\n{{\"unheard of\":1}}\n",
        FORMAT + 1
    );
    let error = read(&place, later.as_bytes()).unwrap_err();
    assert!(
        error.contains(&format!(
            "has format {}, and this version reads format {FORMAT}",
            FORMAT + 1
        )),
        "{error}"
    );
    assert!(error.contains("hint: "), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&Place::new("journal-bytes"), &bytes);
    }

    #[test]
    fn no_damage_makes_the_reader_or_a_report_panic(
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let place = Place::new("journal-hits");
        let mut bytes = std::fs::read(frozen("v0.1.0.jsonl")).unwrap();
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let run = read(&place, &bytes).ok();
        if let Some(measured) = run.and_then(|run| rigel_verbs::Evaluated::of(run).ok()) {
            let _ = text::render(&measured.document(), Extent::Full);
            let _ = (measured.results.csv(), measured.json());
        }
    }
}

fn frozen(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/journals")
        .join(name)
}

#[test]
fn journals_of_every_released_format_are_read_and_reported_as_ever() {
    let place = Place::new("journal-frozen");
    let journals = entries(&frozen(""));
    assert!(!journals.is_empty());
    for journal in journals {
        let name = journal.file_stem().unwrap().to_str().unwrap();
        for (format, options) in [
            ("text", "--format text"),
            ("verbose", "--verbose"),
            ("csv", "--format csv"),
            ("json", "--format json"),
            ("orion", "--format orion"),
        ] {
            let output = rigel(&place, &format!("report {options}"))
                .arg(&journal)
                .output()
                .unwrap();
            assert!(output.status.success(), "{name} as {format}: {output:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            let golden = format!("journals/{name}.{format}");
            if format == "text" {
                common::golden_screen(&golden, &text);
            } else {
                common::golden(&golden, &text);
            }
        }
    }
}

/// Kills a run once its journal has this number of points. Returns `None` if the run ended before,
/// and then removes its output.
fn killed(command: &mut Command, path: &Path, points: usize) -> Option<()> {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("points are done", || {
        std::fs::read(path).is_ok_and(|text| line_starts(&text).len() > 1 + points)
    });
    let was_over = common::kill(&mut child).code().is_some();
    if was_over || Run::read(path).unwrap().complete().len() > points + 1 {
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        return None;
    }
    Some(())
}

#[test]
fn a_killed_run_is_resumed_and_completes() {
    let place = Place::new("journal-killed");
    let target = scratch_file("journal-killed", 8 << 20);
    let path = place.0.join("run/journal.jsonl");
    in_time("it was killed", |factor| {
        let line = "orion -run advanced -matrix detailed -num_small 2 -num_large 1 --out run";
        let mut command = rigel(&place, &format!("{line} -duration {factor} --target"));
        // Two points are complete, the third is running.
        killed(command.arg(&target.path), &path, 2)
    });
    assert_eq!(
        entries(&place.0.join("run")).len(),
        1,
        "Orion's files come at the end"
    );
    let report = rigel(&place, "report run").output().unwrap();
    let said = String::from_utf8_lossy(&report.stdout);
    assert!(
        report.status.code() == Some(1) && said.contains("it was killed after"),
        "{said}"
    );
    let before = std::fs::read(&path).unwrap();
    let done = Run::read(&path).unwrap().complete();

    let resumed = rigel(&place, "orion --resume run").output().unwrap();
    let said = String::from_utf8_lossy(&resumed.stderr);
    assert!(resumed.status.success(), "{said}");
    assert!(
        said.contains(&format!("{} of 5 data points to run", 5 - done.len())),
        "{said}"
    );
    let after = std::fs::read(&path).unwrap();
    assert_eq!(after[..before.len()], before, "earlier lines were touched");
    let run = Run::read(&path).unwrap();
    let cells: Vec<Coordinates> = run.points.iter().map(|point| point.coordinates).collect();
    let planned: Vec<Coordinates> = run
        .header
        .points
        .iter()
        .map(|point| point.coordinates)
        .collect();
    assert_eq!(cells, planned, "every point once");
    assert_eq!(run.complete(), planned);
    assert_eq!(
        entries(&place.0.join("run")).len(),
        8,
        "the journal, its page and Orion's six files"
    );
}

#[test]
fn a_run_with_a_replaced_target_is_not_resumed() {
    let place = Place::new("journal-replaced");
    let target = scratch_file("journal-replaced", 8 << 20);
    in_time("it was killed", |factor| {
        let line =
            "orion -run advanced -matrix basic -num_small 2 -num_large 1 -write 100 --out run";
        let mut command = rigel(&place, &format!("{line} -duration {factor} --target"));
        command.arg(&target.path).arg("--destroy").arg(&target.path);
        killed(&mut command, &place.0.join("run/journal.jsonl"), 1)
    });

    // The permission to destroy is not stored: it must be given again.
    let unnamed = rigel(&place, "orion --resume run").output().unwrap();
    let said = String::from_utf8_lossy(&unnamed.stderr);
    assert!(
        unnamed.status.code() == Some(2) && said.contains("--destroy"),
        "{said}"
    );

    let moved = Scratch {
        path: target.path.with_extension("moved"),
    };
    std::fs::rename(&target.path, &moved.path).unwrap();
    let precious = vec![7; 8 << 20];
    std::fs::write(&target.path, &precious).unwrap();
    let resumed = rigel(&place, "orion --resume run --destroy")
        .arg(&target.path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&resumed.stderr);
    assert!(
        resumed.status.code() == Some(2) && said.contains("is no longer the same file or device"),
        "{said}"
    );
    assert_eq!(std::fs::read(&target.path).unwrap(), precious);

    std::fs::rename(&moved.path, &target.path).unwrap();
    let resumed = rigel(&place, "orion --resume run --destroy")
        .arg(&target.path)
        .output()
        .unwrap();
    assert!(
        resumed.status.success(),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
}

#[test]
fn a_run_still_in_progress_is_not_resumed() {
    let place = Place::new("journal-locked");
    let target = scratch_file("journal-locked", 4 << 20);
    let line = "orion -run oltp -num_small 1 -duration 3600 --out run --target";
    let mut child = rigel(&place, line)
        .arg(&target.path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = place.0.join("run/journal.jsonl");
    wait_until("the run has begun", || {
        std::fs::read(&path).is_ok_and(|text| text.ends_with(b"\n"))
    });
    let second = rigel(&place, "orion --resume run").output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        second.status.code() == Some(2) && said.contains("another process is still writing"),
        "{said}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_run_whose_process_is_still_ending_is_resumed_once_it_has_ended() {
    let resumed = in_time("the lock was released", |factor| {
        let place = Place::new("journal-lock-released");
        let line = "curve sim:8,100us --depth 1,2 --seed 1 --no-progress --out run";
        ends(&place, line, 0);
        let journal = place.0.join("run/journal.jsonl").canonicalize().unwrap();
        let lock = std::fs::File::open(&journal).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let child = rigel(&place, "curve --resume run --no-progress")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let has_opened = |pid: &u32| {
            let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
            let mut files = files.into_iter().flatten().flatten();
            files.any(|file| std::fs::read_link(file.path()).is_ok_and(|link| link == journal))
        };
        let mut looks = 0;
        wait_until("it has opened the journal", || {
            looks += 1;
            processes(&child).iter().any(has_opened) || looks > 300 * factor
        });
        drop(lock);
        let output = child.wait_with_output().unwrap();
        // Too late: this test waited for a CPU, and the program waits two seconds.
        output.status.success().then_some(output)
    });
    assert!(resumed.status.success());
}
