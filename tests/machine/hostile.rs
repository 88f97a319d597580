//! Rigel's files in a hostile environment: links that another user planted under the name of a
//! result, directories that others may write to, texts that control a terminal, a spreadsheet or
//! fio, and endless files.

use crate::common::{
    self, Missing, Mounted, Place, entries, need, rigel, stderr, test, text, wait,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use rigel_device::engine;
use rigel_model::record::journal::Run;
use rigel_model::{Error, drives_a_terminal};
use rigel_report::fio;
use sha2::{Digest, Sha256};
use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// A run of one point in virtual time.
const RUN: &str =
    "orion -run oltp -num_small 1 -duration 1 --target sim:1,10ms,fixed --seed 7 --no-progress";
/// A file that only its owner should change.
const PRECIOUS: &str = "precious\n";
/// Another user: the user `nobody` of every Linux.
const OTHER: u32 = 65534;

/// Makes a run in the directory `run`.
fn a_run(place: &Place) -> PathBuf {
    let output = rigel(place, RUN).args(["--out", "run"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    place.0.join("run")
}

fn precious(place: &Place) -> PathBuf {
    let path = place.0.join("precious");
    std::fs::write(&path, PRECIOUS).unwrap();
    path
}

#[track_caller]
fn is_untouched(path: &Path) {
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        PRECIOUS,
        "the file behind the link was written"
    );
}

/// Tests that only root can run: what root may do in directories of others.
fn as_root(name: &str, body: impl FnOnce(&Place)) {
    test(name, || {
        if need("id", &["-u"])? != "0" {
            return Err(Missing(
                "only root can give a directory to another user".into(),
            ));
        }
        body(&Place::new(name));
        Ok(())
    });
}

#[test]
fn no_result_is_written_through_a_link() {
    let place = Place::new("hostile-links");
    let run = a_run(&place);
    let victim = precious(&place);
    for name in ["page.html", "page.html.unfinished"] {
        symlink(&victim, place.0.join(name)).unwrap();
    }
    // A link in place of the result itself is not a page, wherever it leads.
    let refused = rigel(&place, "report run --html page.html")
        .output()
        .unwrap();
    assert!(
        refused.status.code() == Some(2) && stderr(&refused).contains("it is a symbolic link"),
        "{refused:?}"
    );
    std::fs::remove_file(place.0.join("page.html")).unwrap();
    let written = rigel(&place, "report run --html page.html")
        .output()
        .unwrap();
    is_untouched(&victim);
    assert!(
        written.status.success() && place.0.join("page.html").is_file(),
        "{written:?}"
    );

    std::fs::create_dir(place.0.join("man")).unwrap();
    symlink(&victim, place.0.join("man/rigel.1")).unwrap();
    let refused = rigel(&place, "man man").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    is_untouched(&victim);

    std::fs::create_dir(place.0.join("files")).unwrap();
    for path in entries(&run)
        .iter()
        .filter(|path| text(path).contains("orion_"))
    {
        let name = path.file_name().unwrap().to_str().unwrap();
        symlink(&victim, place.0.join(format!("files/{name}.unfinished"))).unwrap();
    }
    let again = rigel(&place, "report run --orion-files files")
        .output()
        .unwrap();
    is_untouched(&victim);
    assert!(again.status.success(), "{again:?}");
    for path in entries(&run)
        .iter()
        .filter(|path| text(path).contains("orion_"))
    {
        let other = place.0.join("files").join(path.file_name().unwrap());
        assert_eq!(
            std::fs::read(path).unwrap(),
            std::fs::read(other).unwrap(),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_journal_that_is_a_link_is_not_resumed() {
    let place = Place::new("hostile-resume");
    let run = a_run(&place);
    std::fs::create_dir(place.0.join("other")).unwrap();
    symlink(
        run.join("journal.jsonl"),
        place.0.join("other/journal.jsonl"),
    )
    .unwrap();
    let before = std::fs::read(run.join("journal.jsonl")).unwrap();
    let output = rigel(&place, "orion --resume other").output().unwrap();
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("it is a symbolic link"),
        "{output:?}"
    );
    assert_eq!(std::fs::read(run.join("journal.jsonl")).unwrap(), before);
}

#[test]
fn root_refuses_a_result_directory_that_others_can_change() {
    as_root(
        "root_refuses_a_result_directory_that_others_can_change",
        |place| {
            let directory = |name: &str, owner, mode| {
                let path = place.0.join(name);
                std::fs::create_dir(&path).unwrap();
                std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
                chown(&path, Some(owner), Some(owner)).unwrap();
            };
            directory("theirs", OTHER, 0o755);
            directory("group", 0, 0o775);
            directory("all", 0, 0o777);
            directory("sticky", 0, 0o1777);
            directory("ours", 0, 0o755);
            for (name, why) in [
                (
                    "theirs",
                    "'theirs' belongs to user 65534, and root writes no files there",
                ),
                ("group", "others may replace files in 'group' (mode 775)"),
                ("all", "others may replace files in 'all' (mode 777)"),
            ] {
                let line = format!("{RUN} --out {name}");
                let output = rigel(place, &line).output().unwrap();
                let words = stderr(&output);
                assert_eq!(output.status.code(), Some(2), "{words}");
                assert!(
                    words.contains(why)
                        && words.contains("run rigel as the owner of the directory"),
                    "{words}"
                );
                assert_eq!(
                    entries(&place.0.join(name)),
                    [] as [PathBuf; 0],
                    "something was measured first"
                );

                // Orion's files, which are beside each other.
                let here = rigel(place, RUN)
                    .current_dir(place.0.join(name))
                    .output()
                    .unwrap();
                let words = stderr(&here);
                assert!(
                    here.status.code() == Some(2)
                        && words.contains("and root writes no files there"),
                    "{words}"
                );
                assert_eq!(
                    entries(&place.0.join(name)),
                    [] as [PathBuf; 0],
                    "something was written first"
                );
            }
            for name in ["sticky", "ours"] {
                let output = rigel(place, RUN)
                    .current_dir(place.0.join(name))
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{name}: {}", stderr(&output));
            }
            // Whoever owns the directory above could put another one in the place of root's.
            for new in ["theirs/new", "theirs/new/run", "group/new", "all/a/b"] {
                for line in [
                    format!("{RUN} --out {new}"),
                    format!("curve sim: --depth 1 --out {new}"),
                    format!("import precious --out {new}"),
                ] {
                    precious(place);
                    let output = rigel(place, &line).output().unwrap();
                    let words = stderr(&output);
                    assert!(
                        output.status.code() == Some(2)
                            && words.contains(&format!("the directory above the new '{new}'")),
                        "{line}: {words}"
                    );
                }
                assert!(!place.0.join(new).exists(), "{new} was made");
            }
            for new in ["sticky/new/run", "ours/new/run"] {
                let line = format!("{RUN} --out {new}");
                let output = rigel(place, &line).output().unwrap();
                assert!(output.status.success(), "{}", stderr(&output));
            }
        },
    );
}

#[test]
fn root_follows_no_link_of_others_to_a_result_directory() {
    as_root(
        "root_follows_no_link_of_others_to_a_result_directory",
        |place| {
            std::fs::create_dir_all(place.0.join("ours/below")).unwrap();
            std::fs::create_dir(place.0.join("theirs")).unwrap();
            symlink(place.0.join("ours"), place.0.join("theirs/link")).unwrap();
            symlink("ours", place.0.join("link")).unwrap();
            chown(place.0.join("theirs"), Some(OTHER), Some(OTHER)).unwrap();
            let output = rigel(place, RUN)
                .args(["--out", "theirs/link/below"])
                .output()
                .unwrap();
            let words = stderr(&output);
            assert!(
                words
                    .contains("'link' in its path is a symbolic link that another user can change"),
                "{words}"
            );
            assert_eq!(output.status.code(), Some(2), "{words}");
            assert_eq!(entries(&place.0.join("ours/below")), [] as [PathBuf; 0]);
            // A link made by root is as safe as its directory.
            let output = rigel(place, RUN)
                .args(["--out", "link/below"])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            assert!(place.0.join("ours/below/journal.jsonl").is_file());
        },
    );
}

/// Answers of a run that takes no time, added to the file `said`.
fn answered(place: &Place, said: &str) -> Output {
    let line = "expect iops>=1 sim:1,1ms --budget 10s --seed 1 --no-progress --out";
    let number = entries(&place.0).len();
    rigel(place, &format!("{line} made-{number} --message {said}"))
        .output()
        .unwrap()
}

#[test]
fn nothing_is_added_to_a_file_that_another_user_planted() {
    as_root(
        "nothing_is_added_to_a_file_that_another_user_planted",
        |place| {
            let sticky = place.0.join("sticky");
            std::fs::create_dir(&sticky).unwrap();
            std::fs::set_permissions(&sticky, Permissions::from_mode(0o1777)).unwrap();
            // Answers of Rigel end each, so that nothing else speaks against it.
            let answers = "rigel expect: met: x\n";
            let theirs = sticky.join("theirs");
            std::fs::write(&theirs, answers).unwrap();
            chown(&theirs, Some(OTHER), Some(OTHER)).unwrap();
            let empty = sticky.join("empty");
            std::fs::write(&empty, "").unwrap();
            chown(&empty, Some(OTHER), Some(OTHER)).unwrap();
            let ours = place.0.join("ours");
            std::fs::write(&ours, answers).unwrap();
            std::fs::hard_link(&ours, sticky.join("second")).unwrap();
            for (name, why) in [
                ("theirs", "it belongs to user 65534"),
                ("empty", "it belongs to user 65534"),
                ("second", "it has 2 names"),
            ] {
                let before = std::fs::read(sticky.join(name)).unwrap();
                let output = answered(place, &format!("sticky/{name}"));
                let words = stderr(&output);
                assert!(
                    output.status.code() == Some(2) && words.contains(why),
                    "{name}: {words}"
                );
                assert!(!words.contains("Page: "), "{name}: measured first");
                assert_eq!(std::fs::read(sticky.join(name)).unwrap(), before, "{name}");
            }
            for _ in 0..2 {
                let output = answered(place, "sticky/own");
                assert!(output.status.success(), "{}", stderr(&output));
            }
            // A journal there may be anybody's, too.
            let run = a_run(place);
            std::fs::copy(run.join("journal.jsonl"), sticky.join("x.jsonl")).unwrap();
            chown(sticky.join("x.jsonl"), Some(OTHER), Some(OTHER)).unwrap();
            let output = rigel(place, "orion --resume sticky/x.jsonl")
                .output()
                .unwrap();
            let words = stderr(&output);
            assert!(
                !output.status.success() && words.contains("it belongs to user 65534"),
                "{words}"
            );
        },
    );
}

#[test]
fn a_file_that_is_mounted_alone_takes_answers_behind_anything() {
    test(
        "a_file_that_is_mounted_alone_takes_answers_behind_anything",
        || {
            let place = Place::new("hostile-mounted");
            let inside = precious(&place);
            let log = place.0.join("termination-log");
            std::fs::write(&log, "").unwrap();
            need("mount", &["--bind", text(&inside), text(&log)])?;
            let mounted = Mounted(log);
            let output = answered(&place, "termination-log");
            let said = std::fs::read_to_string(&mounted.0).unwrap();
            drop(mounted);
            assert!(output.status.success(), "{}", stderr(&output));
            let added = said.strip_prefix(PRECIOUS);
            assert!(
                added.is_some_and(|added| added.starts_with("rigel expect: met: ")),
                "{said}"
            );
            // A filesystem is no file.
            let small = Mounted::in_memory(&place, "size=1m")?;
            std::fs::write(small.0.join("notes"), PRECIOUS).unwrap();
            let refused = answered(&place, "small/notes");
            assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
            is_untouched(&small.0.join("notes"));
            Ok(())
        },
    );
}

/// A program in place of ssh, which sends what a hostile host could.
const SSH: &str = r#"#!/usr/bin/env bash
run=$(mktemp -d -p "$PWD")
mkdir "$run/run"
cat >/dev/null &
printf 'owned\033[2Jb\u202ec\u009b2Jd µ\rTrust: no\nTrust: good\nmore\n' >"$run/run/said.txt"
echo journal >"$run/run/journal.jsonl"
case $* in
*link*) ln -sf "$PWD/precious" "$run/run/said.txt" ;;
*big*) head -c 300K /dev/zero >"$run/run/big" ;;
esac
tar -C "$run" -cf - run
rm -r "$run"
"#;

#[test]
fn a_host_that_each_host_asks_can_send_only_a_run() {
    let place = Place::new("hostile-each-host");
    precious(&place);
    for (name, text) in [("ssh", SSH), ("program", "")] {
        let path = place.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/ranks/each-host.sh");
    let output = std::process::Command::new("bash")
        .arg(script)
        .args(["./program", "out", "good,link,big", "calibrate", "/x"])
        .env("SSH", "./ssh")
        .env("MOST", "100")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(&place.0)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    drives_nothing("each-host.sh", &output.stdout);
    assert!(
        said.contains("owned[2Jbc2Jd µTrust: no\nTrust: good\n\n"),
        "{said:?}"
    );
    assert!(
        !said.contains("precious") && !said.contains("more"),
        "{said:?}"
    );
    let is_told = said.contains("== big: nothing came back, status 1");
    assert!(is_told && output.status.code() == Some(1), "{output:?}");
    let left = |name: &str| entries(&place.0.join("out").join(name)).len();
    assert_eq!(
        (left(""), left("good"), left("link")),
        (2, 2, 1),
        "{said:?}"
    );
}

/// A directory of another user, with links under every name that root's results could have for a
/// while.
#[test]
fn links_that_wait_for_root_get_nothing() {
    as_root("links_that_wait_for_root_get_nothing", |place| {
        let victim = precious(place);
        let theirs = place.0.join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        let stamp = rigel_device::clock::file_stamp();
        for suffix in [
            "summary.txt",
            "mbps.csv",
            "iops.csv",
            "lat.csv",
            "hist.txt",
            "trace.txt",
        ] {
            symlink(
                &victim,
                theirs.join(format!("orion_{stamp}_{suffix}.unfinished")),
            )
            .unwrap();
        }
        chown(&theirs, Some(OTHER), Some(OTHER)).unwrap();
        let output = rigel(place, RUN).current_dir(&theirs).output().unwrap();
        is_untouched(&victim);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    });
}

#[test]
fn results_that_nobody_got_are_no_success() {
    let place = Place::new("hostile-full");
    a_run(&place);
    let soak = "soak sim:1,1ms --work 10ops --every 1m --for 4m --seed 1 --no-progress --out soak";
    let curve = "curve sim:2,1ms --depth 1,2 --seed 1 --no-progress";
    let calibrate = "calibrate sim:2,1ms --seed 1 --no-progress";
    for (line, out) in [
        (soak, None),
        (curve, Some("curve")),
        (calibrate, Some("calibration")),
        (RUN, Some("other")),
    ] {
        let output = rigel(&place, line)
            .args(out.iter().flat_map(|out| ["--out", out]))
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
    std::fs::write(
        place.0.join("series.csv"),
        "time,reads\n2026-01-01 00:00:00,1\n2026-01-01 00:01:00,2\n",
    )
    .unwrap();
    let lines = [
        "report run".to_string(),
        "report run --json".into(),
        "report run --format csv".into(),
        "report run --format orion".into(),
        "report run --html -".into(),
        "report soak".into(),
        "report soak --json".into(),
        "report soak --format csv".into(),
        "report curve --json".into(),
        "compare run other".into(),
        "compare run other --json".into(),
        "compare run other --html -".into(),
        "advise calibration".into(),
        "advise calibration --json".into(),
        "check .".into(),
        "check . --json".into(),
        "import series.csv --out imported".into(),
        "import series.csv --json --out imported-too".into(),
        "help".into(),
        "--version".into(),
        "help orion".into(),
        "orion -help".into(),
        "completions bash".into(),
        format!("{RUN} --out again"),
        format!("{RUN} --json --out and-again"),
        format!("{curve} --out curve-again"),
        format!("{curve} --json --out curve-and-again"),
        format!("{calibrate} --out calibration-again"),
        soak.replace("--out soak", "--out soak-again"),
    ];
    for line in lines {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = rigel(&place, &line)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let words = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {words}");
        assert!(
            words.contains("the results could not be written to stdout: No space left"),
            "{line}: {words}"
        );
    }
    // The run itself is still complete.
    assert_eq!(
        entries(&place.0.join("again")).len(),
        8,
        "the journal, its page and Orion's six files"
    );

    // A reader that stops early is not an error.
    let mut child = rigel(&place, "report run --html -")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

/// Sets the title of a terminal, clears it with a C1 character, and reverses the direction of text.
const DRIVING: &str = "a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}z";

#[track_caller]
fn drives_nothing(what: &str, bytes: &[u8]) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let found = text
        .chars()
        .find(|c| drives_a_terminal(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(found, None, "{what}: {text:?}");
    assert!(
        text.contains("owned"),
        "{what} does not show the name: {text}"
    );
}

#[test]
fn no_name_drives_the_terminal() {
    let place = Place::new("hostile-escapes");
    let missing = |line: &str| rigel(&place, line).arg(DRIVING).output().unwrap();
    for line in [
        "report",
        "import",
        "check",
        "curve",
        "advise",
        "orion -run oltp --target",
        "curve --resume",
    ] {
        let output = missing(line);
        assert!(!output.status.success());
        drives_nothing(line, &output.stderr);
    }
    std::fs::write(
        place.0.join("mytest.lun"),
        format!("/nonexistent/{DRIVING}\n"),
    )
    .unwrap();
    let output = rigel(&place, "orion -run oltp -testname mytest")
        .output()
        .unwrap();
    drives_nothing("a LUN file", &output.stderr);

    // A foreign journal, with such a text in the fields that reports show.
    let run = a_run(&place).join("journal.jsonl");
    let journal = std::fs::read_to_string(&run).unwrap();
    let (first, points) = journal.split_once('\n').unwrap();
    let in_header = |pointer: &str| {
        let mut header: serde_json::Value = serde_json::from_str(first).unwrap();
        *header
            .pointer_mut(pointer)
            .unwrap_or_else(|| panic!("no {pointer} in {first}")) = DRIVING.into();
        format!("{header}\n{points}")
    };
    let class = journal.replace(
        "\"name\":\"small\"",
        &format!("\"name\":{}", serde_json::to_string(DRIVING).unwrap()),
    );
    let names = [
        "facts/name",
        "engine/name",
        "engine_about",
        "started",
        "version",
    ];
    let headers = names
        .iter()
        .map(|name| (*name, in_header(&format!("/header/{name}"))));
    for (what, hostile) in headers.chain([("class", class)]) {
        std::fs::write(place.0.join("hostile.jsonl"), hostile).unwrap();
        let mut shown = 0;
        for line in [
            "report",
            "report --json",
            "report --format csv",
            "report --format orion",
            "compare run",
        ] {
            let output = rigel(&place, line).arg("hostile.jsonl").output().unwrap();
            let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            let found = text
                .chars()
                .find(|c| drives_a_terminal(*c) && !matches!(c, '\n' | '\t'));
            assert_eq!(found, None, "{line} with such a {what}: {text}");
            shown += usize::from(text.contains("owned"));
        }
        assert!(shown > 0, "no report shows the {what}");
    }
    std::fs::write(
        place.0.join("hostile.jsonl"),
        in_header("/header/facts/name"),
    )
    .unwrap();
    let output = rigel(&place, "report hostile.jsonl --json")
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        document["target"]["name"], DRIVING,
        "JSON says what the journal does"
    );
}

fn fio_job(run: &Run, point: &str) -> Result<String, Error> {
    let grain = rigel_verbs::of(&run.header)?.grain();
    fio::job(run, grain, point, engine::info(&run.header.engine.name))
}

#[test]
fn a_journal_gives_fio_nothing_but_names() {
    let mut run = Run::parse(Path::new("journal"), frozen_on_a_file().as_bytes()).unwrap();
    let point = run.header.points[0].coordinates.name();
    assert!(fio_job(&run, &point).is_ok());
    let whole = run.clone();
    for name in [
        "a\n[global]\nexec_prerun=touch pwned\n[x]",
        "a\r[global]",
        " a",
        "a ",
        "",
        "a;b",
        "a#b",
        "${HOME}",
        "$mb_memory",
        "`id`",
        "a\\",
        "a\u{1b}[2J",
    ] {
        run = whole.clone();
        let rigel_model::Target::Paths { members, .. } = &mut run.header.target else {
            panic!("a run on a file")
        };
        members[0] = name.into();
        let error = fio_job(&run, &point).expect_err(name).to_string();
        assert!(error.contains("cannot be written in a fio job"), "{error}");

        run = whole.clone();
        run.header.points[0].streams[0].name = name.into();
        assert!(fio_job(&run, &point).is_err(), "as a class: {name:?}");
    }
    run = whole.clone();
    run.header.points[0].streams[0].name = "x]\u{20}[y".into();
    assert!(fio_job(&run, &point).is_err());
    run = whole;
    run.header.started = "now\n[global]\nexec_prerun=touch pwned".into();
    assert!(fio_job(&run, &point).is_err());
}

fn frozen_on_a_file() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals/v0.1.0-file.jsonl");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn no_name_of_a_series_is_a_formula_in_a_csv() {
    let place = Place::new("hostile-formula");
    let formula = "=cmd|'/c calc'!A1 /s";
    let series = format!(
        "time,{formula}\n2026-01-01 00:00:00,1\n2026-01-01 00:01:00,2\n2026-01-01 00:02:00,3\n"
    );
    std::fs::write(place.0.join("series.csv"), series).unwrap();
    let output = rigel(&place, "import series.csv --out run")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = rigel(&place, "report run --format csv").output().unwrap();
    let csv = String::from_utf8(output.stdout).unwrap();
    assert!(
        csv.contains(",'=cmd|'/c calc'!A1 /s,") && csv.contains(",2.000,"),
        "{csv}"
    );
    assert!(!csv.contains(",=cmd"), "{csv}");
}

/// The output of a program that must end; it is killed if it reads forever or waits for a writer.
#[track_caller]
fn ends(place: &Place, line: &str) -> Output {
    let mut child = rigel(place, line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..6000 {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().unwrap();
        }
        wait(10);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("does not end: {line}");
}

#[test]
fn nothing_without_an_end_is_read() {
    test("nothing_without_an_end_is_read", || {
        let place = Place::new("hostile-endless");
        need(
            "mkfifo",
            &[text(&place.0.join("pipe")), text(&place.0.join("pipe.lun"))],
        )?;
        std::fs::create_dir(place.0.join("run")).unwrap();
        symlink("/dev/zero", place.0.join("run/journal.jsonl")).unwrap();
        symlink("/dev/zero", place.0.join("zero.lun")).unwrap();
        for line in [
            "report pipe",
            "report /dev/zero",
            "report run",
            "compare pipe /dev/zero",
            "advise /dev/zero",
            "curve --resume run",
            "import pipe --out imported",
            "import /dev/zero --out imported",
            "sql run --on . --conf pipe",
            "sql run --on . --conf /dev/zero",
            "sql run postgres://ana@localhost/shop --password-file pipe",
            "sql run postgres://ana@localhost/shop --password-file /dev/zero",
            "orion -run oltp -testname pipe",
            "orion -run oltp -testname zero",
        ] {
            let output = ends(&place, line);
            let words = stderr(&output);
            assert!(
                matches!(output.status.code(), Some(1 | 2)),
                "{line}: {words}"
            );
            assert!(
                words.contains("it is not a regular file")
                    || words.contains("it is a symbolic link"),
                "{words}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_file_is_read_up_to_its_limit_and_no_further() {
    let place = Place::new("hostile-long");
    // Holes take no space on disk, but would all be read.
    place.file("holes.conf", (1 << 20) + 1);
    place.file("holes.lun", 1 << 40);
    for line in [
        "sql run --on . --conf holes.conf",
        "orion -run oltp -testname holes",
    ] {
        let words = stderr(&ends(&place, line));
        assert!(
            words.contains("it is larger than the limit of 1 MiB"),
            "{words}"
        );
    }
    // A journal with an endless line: holes after a valid beginning.
    let journal = a_run(&place).join("journal.jsonl");
    let whole = Run::read(&journal).unwrap();
    let length = std::fs::metadata(&journal).unwrap().len();
    let file = File::options().append(true).open(&journal).unwrap();
    file.set_len(length + (64 << 20)).unwrap();
    let mut child = rigel(&place, "report run")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (status, peak) = common::peak_of(&mut child);
    assert!(
        status.success(),
        "zeros at the end are what a power cut leaves"
    );
    assert!(peak < 48 << 20, "{peak} bytes for a journal of {length}");
    let read = Run::read(&journal).unwrap();
    assert!(read.cut && read.points == whole.points);
}

#[test]
fn a_pipe_from_a_shell_is_read() {
    let place = Place::new("hostile-pipe");
    let series = "time,reads\n2026-01-01 00:00:00,1\n2026-01-01 00:01:00,2\n";
    for (name, path) in [
        ("one", "/dev/stdin"),
        ("two", "/dev/fd/0"),
        ("three", "/proc/self/fd/0"),
    ] {
        let line = format!("import {path} --out {name}");
        let mut child = rigel(&place, &line)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, series.as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{path}: {}", stderr(&output));
    }
}

#[test]
fn a_password_that_others_can_read_is_not_used() {
    let place = Place::new("hostile-password");
    let path = place.0.join("password");
    std::fs::write(&path, "s3cret\n").unwrap();
    let line = "sql run postgres://ana@127.0.0.1:1/shop --password-file password";
    for mode in [0o666, 0o640, 0o604] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let output = rigel(&place, line).output().unwrap();
        let words = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(
            words.contains(&format!("others may read or write it (mode {mode:o})")),
            "{words}"
        );
        assert!(
            words.contains("chmod 600") && !words.contains("s3cret"),
            "{words}"
        );
    }
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let words = stderr(&rigel(&place, line).output().unwrap());
    assert!(!words.contains("password file"), "{words}");
}

#[test]
fn a_page_lets_a_browser_run_only_its_own_script() {
    let page = rigel_report::html::render(&rigel_report::document::Document::default());
    let policy = page
        .split_once("http-equiv=\"Content-Security-Policy\" content=\"")
        .expect("a policy")
        .1;
    let policy = policy.split_once('"').unwrap().0;
    assert!(
        policy.starts_with("default-src 'none'; ") && !policy.contains("script-src 'unsafe"),
        "{policy}"
    );
    let mut hashes = 0;
    for (opening, closing) in [("<script>", "</script>"), ("<style>", "</style>")] {
        for inside in page
            .split(opening)
            .skip(1)
            .map(|rest| rest.split_once(closing).unwrap().0)
        {
            let hash = BASE64_STANDARD.encode(Sha256::digest(inside));
            assert!(
                policy.contains(&format!("'sha256-{hash}'")),
                "{opening} is not in {policy}"
            );
            hashes += 1;
        }
    }
    assert_eq!(
        (hashes, policy.matches("'sha256-").count()),
        (3, 3),
        "{policy}"
    );
}

#[test]
fn without_a_verb_the_help_goes_to_stdout() {
    let place = Place::new("hostile-no-verb");
    for line in ["", "sql"] {
        let output = rigel(&place, line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(
            help.contains("Usage: rigel") && !help.contains('\u{1b}'),
            "{help}"
        );
        assert_eq!(stderr(&output), "");
    }
}
