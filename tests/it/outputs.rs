//! Files that options name for output: each is tried on everything that must stay as it is. The options come from the
//! definition of the command line, so that the next one is tried, too.

use crate::common::{Place, entries, rigel, stderr, text};
use clap::{Arg, Command};
use std::any::TypeId;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;

/// What Rigel does with a file or a directory that an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileUse {
    /// Reads it, or what is in it.
    Read,
    /// Measures it; the guard says what may be written.
    Measured,
    /// Makes a directory, or files in one that is empty.
    Made,
    /// Removes what a marker says is Rigel's.
    Cleaned,
    /// Writes a file of this name, or files in this directory.
    Output,
}

/// Every option, and every argument by its name, that takes a file or a directory: of these verbs, or of all.
const OPTIONS: &[(&str, &[&str], FileUse)] = &[
    ("against", &[], FileUse::Read),
    ("also", &[], FileUse::Read),
    ("conf", &[], FileUse::Read),
    ("demand", &[], FileUse::Read),
    ("files", &["import"], FileUse::Read),
    ("others", &["compare"], FileUse::Read),
    ("password-file", &[], FileUse::Read),
    ("resume", &[], FileUse::Read),
    ("run", &["advise", "report"], FileUse::Read),
    ("runs", &["compare"], FileUse::Read),
    ("server-bin", &[], FileUse::Read),
    ("destroy", &[], FileUse::Measured),
    ("device", &["watch"], FileUse::Measured),
    ("target", &["orion"], FileUse::Measured),
    ("targets", &[], FileUse::Measured),
    ("urls", &["sql run"], FileUse::Measured),
    ("directory", &["layers"], FileUse::Made),
    (
        "directory",
        &["sql script oracle", "sql script oracle-calibrate"],
        FileUse::Made,
    ),
    ("on", &[], FileUse::Made),
    ("out", &[], FileUse::Made),
    ("plans-on", &[], FileUse::Made),
    ("rank-journals", &[], FileUse::Made),
    ("directory", &["sql clean"], FileUse::Cleaned),
    ("directory", &["man"], FileUse::Output),
    ("html", &[], FileUse::Output),
    ("junit", &[], FileUse::Output),
    ("message", &[], FileUse::Output),
    ("orion-files", &[], FileUse::Output),
    ("testname", &["orion"], FileUse::Output),
];

/// A run that expects something, in no time.
const EXPECT: &str = "expect iops>=1 sim:1,1ms --budget 10s --seed 1 --no-progress";
/// A run of two arms, in no time.
const DUET: &str = "duet sim:1,1ms sim:1,2ms --seed 1 --no-progress";
/// A curve of one point, in no time.
const CURVE: &str = "curve sim:1,1ms --depth 1 --point-max 5s --seed 1 --no-progress";
/// Orion's run of one point, in no time.
const ORION: &str =
    "orion -run oltp -num_small 1 -duration 1 --target sim:1,10ms,fixed --seed 7 --no-progress";

/// The names and the definitions of all verbs that have no verbs of their own.
fn verbs(command: &Command, above: &str) -> Vec<(String, Command)> {
    let mut all = Vec::new();
    for verb in command.get_subcommands() {
        let name = format!("{above}{}", verb.get_name());
        if verb.has_subcommands() {
            all.extend(verbs(verb, &format!("{name} ")));
        } else {
            all.push((name, verb.clone()));
        }
    }
    all
}

fn takes_a_file(arg: &Arg) -> bool {
    let parsed = arg.get_value_parser().type_id();
    let mut names = arg.get_value_names().unwrap_or_default().iter();
    parsed == TypeId::of::<PathBuf>()
        || parsed == TypeId::of::<OsString>()
        || names.any(|name| ["FILE", "DIR", "PATH", "RUN"].contains(&name.as_str()))
}

/// The long name of an option, or the name of an argument.
fn name_of(arg: &Arg) -> String {
    arg.get_long().unwrap_or(arg.get_id().as_str()).to_string()
}

/// What the table says of an option of a verb.
fn uses(verb: &str, name: &str) -> Vec<FileUse> {
    let is_it = |row: &&(&str, &[&str], FileUse)| {
        row.0 == name && (row.1.is_empty() || row.1.contains(&verb))
    };
    OPTIONS.iter().filter(is_it).map(|row| row.2).collect()
}

/// Verb and name of every option that names files for output.
fn outputs() -> BTreeSet<(String, String)> {
    let mut outputs = BTreeSet::new();
    for (verb, command) in verbs(&rigel::cli::command(), "") {
        for arg in command.get_arguments() {
            if uses(&verb, &name_of(arg)).contains(&FileUse::Output) {
                outputs.insert((verb.clone(), name_of(arg)));
            }
        }
    }
    outputs
}

#[test]
fn what_is_done_with_the_file_of_every_option_is_known() {
    let mut unused: BTreeSet<usize> = (0..OPTIONS.len()).collect();
    for (verb, command) in verbs(&rigel::cli::command(), "") {
        for arg in command.get_arguments() {
            let name = name_of(arg);
            let known = uses(&verb, &name);
            assert!(known.len() < 2, "{name} of rigel {verb}: {known:?}");
            assert!(
                !takes_a_file(arg) || known.len() == 1,
                "{name} of rigel {verb} takes a file: add to OPTIONS what becomes of it; if Rigel writes it, by \
                 OutputFile"
            );
            let is_of_verb = |at: &usize| {
                let row = OPTIONS[*at];
                row.0 == name && (row.1.is_empty() || row.1.contains(&verb.as_str()))
            };
            unused.retain(|at| !is_of_verb(at));
        }
    }
    let unused: Vec<_> = unused.iter().map(|at| OPTIONS[*at]).collect();
    assert!(unused.is_empty(), "no verb has {unused:?}");
}

/// Runs and files to try options on.
struct TriedOutputs {
    place: Place,
}

impl TriedOutputs {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        for line in [
            format!("{EXPECT} --out met"),
            format!("{CURVE} --out a"),
            format!("{CURVE} --out b"),
            format!("{ORION} --out run"),
        ] {
            let output = rigel(&place, &line).output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
        }
        let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals/v0.1.0-file.jsonl");
        std::fs::copy(frozen, place.0.join("of-file.jsonl")).unwrap();
        Self { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.0.join(name)
    }

    /// What the option writes for itself, so that nothing but the file's use can speak against it.
    fn own(&self, verb: &str, option: &str) -> Vec<u8> {
        let new = self.path("own");
        let output = self.run(verb, option, &[], "own");
        let bytes = std::fs::read(&new).unwrap_or_else(|_| panic!("{verb} {option}: {output:?}"));
        std::fs::remove_file(new).unwrap();
        bytes
    }

    /// Runs the verb with `file` as what the option names, and these further arguments.
    fn run(&self, verb: &str, option: &str, further: &[&str], file: &str) -> Output {
        let line = match (verb, option) {
            ("expect", "junit" | "message") => EXPECT.to_string(),
            ("duet", "junit" | "message") => DUET.to_string(),
            ("report", "junit" | "message" | "html") => "report met".to_string(),
            ("compare", "html") => "compare a b".to_string(),
            other => panic!("no command tries the option of {other:?}: add it to this test"),
        };
        let mut command = rigel(&self.place, &line);
        if matches!(verb, "expect" | "duet") {
            command.args(["--out", "made"]);
        }
        let output = command.arg(format!("--{option}")).arg(file);
        let output = output.args(further).output().unwrap();
        let _ = std::fs::remove_dir_all(self.path("made"));
        output
    }

    /// That a line is refused which would write to a file, and that the file stays.
    fn stays(&self, line: &[&str], file: &str) {
        let before = self.state(file);
        let output = rigel(&self.place, "").args(line).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line:?} of {file}: {said}");
        let is_by_use = said.contains(file) && said.contains("hint: name another file");
        assert!(is_by_use, "{line:?}: {said}");
        assert_eq!(self.state(file), before, "{line:?} changed {file}");
        assert!(!self.path("made").exists(), "{line:?} measured first");
    }

    /// Kind, length and bytes of what has this name; a directory's names.
    fn state(&self, name: &str) -> (String, Vec<u8>) {
        let path = self.path(name);
        let Ok(facts) = std::fs::symlink_metadata(&path) else {
            return ("nothing".into(), Vec::new());
        };
        let bytes = match facts.file_type() {
            kind if kind.is_file() => std::fs::read(&path).unwrap(),
            kind if kind.is_dir() => format!("{:?}", entries(&path)).into_bytes(),
            _ => Vec::new(),
        };
        (format!("{:?}", facts.file_type()), bytes)
    }
}

/// The options that name one file, and are not tried apart.
fn of_one_file() -> Vec<(String, String)> {
    let apart = |option: &(String, String)| {
        ["orion-files", "testname", "directory"].contains(&option.1.as_str())
    };
    outputs().into_iter().filter(|one| !apart(one)).collect()
}

#[test]
fn no_file_for_output_is_anything_but_new_empty_or_its_own() {
    let tried = TriedOutputs::new("outputs-others");
    std::fs::create_dir(tried.path("folder")).unwrap();
    std::fs::write(tried.path("precious"), "precious\n").unwrap();
    symlink("precious", tried.path("link")).unwrap();
    symlink("nowhere", tried.path("dangling")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        tried.path("pipe"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    // What others make that looks like ours from afar.
    std::fs::write(
        tried.path("other.html"),
        "<!doctype html>\n<html lang=\"en\">\n<title>rigel</title>",
    )
    .unwrap();
    std::fs::write(
        tried.path("other.xml"),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pytest\" tests=\"1\">",
    )
    .unwrap();
    std::fs::write(tried.path("other.log"), "rigel expect: met: a\nnotes\n").unwrap();
    let others = [
        "folder",
        "precious",
        "link",
        "dangling",
        "pipe",
        "other.html",
        "other.xml",
        "other.log",
        "met/journal.jsonl",
        "of-file.jsonl",
        "/dev/null",
    ];
    for (verb, option) in of_one_file() {
        for name in others {
            let before = tried.state(name);
            let output = tried.run(&verb, &option, &[], name);
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{verb} --{option} {name}: {said}"
            );
            assert!(said.contains(name), "{verb} --{option} {name}: {said}");
            assert_eq!(tried.state(name), before, "{verb} --{option} {name}");
            assert!(
                !said.contains("Page: "),
                "{verb} --{option} {name}: measured first"
            );
        }
        // One that is new, empty, or from before.
        let own = tried.own(&verb, &option);
        for before in [Vec::new(), own.clone()] {
            std::fs::write(tried.path("again"), &before).unwrap();
            let output = tried.run(&verb, &option, &[], "again");
            let expected = match option.as_str() {
                "message" => [before.as_slice(), own.as_slice()].concat(),
                _ => own.clone(),
            };
            let now = std::fs::read(tried.path("again")).unwrap();
            assert_eq!(now, expected, "{verb} --{option}: {output:?}");
        }
    }
}

#[test]
fn no_file_for_output_is_a_target_or_an_argument_or_in_the_directory_of_the_run() {
    let tried = TriedOutputs::new("outputs-own");
    let profile =
        r#"{"name":"own","about":"x","source":"x","date":"2026-01-02","expect":["iops>=1"]}"#;
    std::fs::write(tried.path("profile.json"), profile).unwrap();
    for (verb, option) in of_one_file() {
        let option = format!("--{option}");
        // Only what it is can speak against it: it begins, and ends, as what is written there.
        let own = tried.own(&verb, &option[2..]);
        for name in ["file", "second", "met/other", "a/report.html"] {
            std::fs::write(tried.path(name), &own).unwrap();
        }
        let _ = std::fs::remove_file(tried.path("other-name"));
        std::fs::hard_link(tried.path("file"), tried.path("other-name")).unwrap();
        match verb.as_str() {
            "expect" | "duet" => {
                let asked: &[&str] = match verb.as_str() {
                    "expect" => &["expect", "iops>=1@depth:1", "file", "second"],
                    _ => &["duet", "file", "second"],
                };
                for name in ["file", "second", "./file", "other-name"] {
                    let line = [asked, &["--out", "made", &option, name]].concat();
                    tried.stays(&line, name);
                }
                // Both answers in one file, whether it is there or not.
                for name in ["again", "absent"] {
                    if name == "again" {
                        std::fs::write(tried.path(name), "").unwrap();
                    }
                    let line = [
                        asked,
                        &["--out", "made", "--junit", name, "--message", name],
                    ];
                    tried.stays(&line.concat(), name);
                }
            }
            "report" => {
                for name in ["met/other", "met/new"] {
                    tried.stays(&["report", "met", &option, name], name);
                    tried.stays(&["report", "met/journal.jsonl", &option, name], name);
                }
                // The target of a journal, named by another path.
                for name in ["file", "other-name"] {
                    let line = ["report", "of-file.jsonl", "--expect", "iops>=1@depth:9"];
                    tried.stays(&[&line[..], &[&option, name]].concat(), name);
                }
            }
            _ => {}
        }
        if verb == "compare" {
            let line = ["compare", "a", "b", &option, "a/journal.jsonl"];
            tried.stays(&line, "a/journal.jsonl");
        }
    }
    for option in ["--junit", "--message"] {
        let line = ["expect", "profile.json", "sim:1,1ms", "--out", "made"];
        tried.stays(
            &[&line[..], &[option, "profile.json"]].concat(),
            "profile.json",
        );
    }
    assert_eq!(
        std::fs::read_to_string(tried.path("profile.json")).unwrap(),
        profile
    );
}

#[test]
fn orions_files_replace_those_of_the_same_run_only() {
    let tried = TriedOutputs::new("outputs-orion");
    let names: Vec<String> = entries(&tried.path("run"))
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_string()))
        .filter(|name| name.starts_with("orion_"))
        .collect();
    assert_eq!(names.len(), 6, "{names:?}");
    std::fs::create_dir(tried.path("folder")).unwrap();
    let again = || {
        rigel(&tried.place, "report run --orion-files folder")
            .output()
            .unwrap()
    };
    assert!(again().status.success() && again().status.success());
    for name in &names {
        let (there, file) = (
            tried.path("run").join(name),
            tried.path("folder").join(name),
        );
        let whole = std::fs::read(&there).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), whole, "{name}");
        // Another's, and of another run.
        let of_text = String::from_utf8(whole.clone()).unwrap();
        for other in ["notes\n".to_string(), of_text.replacen("_2", "_1", 1)] {
            if other == of_text {
                continue;
            }
            std::fs::write(&file, &other).unwrap();
            let refused = again();
            assert_eq!(refused.status.code(), Some(2), "{name}: {refused:?}");
            assert!(stderr(&refused).contains(name), "{refused:?}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), other, "{name}");
        }
        std::fs::write(&file, &whole).unwrap();
    }
    // A new run, whose names have the minute: what is in the way is found before anything is measured.
    let mut is_refused = false;
    while !is_refused {
        let stamp = rigel_device::clock::file_stamp();
        let file = format!("mine_{stamp}_hist.txt");
        std::fs::write(tried.path(&file), "notes\n").unwrap();
        let output = rigel(&tried.place, ORION)
            .args(["-testname", "mine"])
            .output()
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(tried.path(&file)).unwrap(),
            "notes\n"
        );
        is_refused = output.status.code() == Some(2);
        let is_of_minute = stamp == rigel_device::clock::file_stamp();
        assert!(
            !is_of_minute || is_refused && stderr(&output).contains(&file),
            "{output:?}"
        );
    }
}

#[test]
fn a_page_and_orions_files_come_with_the_answers_that_are_asked_for() {
    let tried = TriedOutputs::new("outputs-both");
    // One second decides nothing, and the report ends as the answers say.
    for (line, file, status) in [
        ("report met --html page.html", "page.html", 0),
        (
            "report run --expect iops>=1@depth:1 --html other.html",
            "other.html",
            4,
        ),
        ("report run --expect iops>=1@depth:1 --orion-files .", "", 4),
    ] {
        let output = rigel(&tried.place, line)
            .args(["--junit", "answers.xml", "--message", "answers.txt"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{line}: {output:?}");
        assert!(tried.path(file).exists(), "{line}");
        for answers in ["answers.xml", "answers.txt"] {
            let text = std::fs::read_to_string(tried.path(answers)).unwrap_or_default();
            assert!(text.contains("iops"), "{line}: {answers} has '{text}'");
            std::fs::remove_file(tried.path(answers)).unwrap();
        }
    }
}

#[test]
fn a_manual_page_of_others_stays() {
    let tried = Place::new("outputs-manual");
    std::fs::create_dir(tried.0.join("man")).unwrap();
    let other = tried.0.join("man/rigel.1");
    std::fs::write(&other, ".TH other 1\n").unwrap();
    let refused = rigel(&tried, "man man").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), ".TH other 1\n");
    std::fs::remove_file(other).unwrap();
    for _ in 0..2 {
        assert!(rigel(&tried, "man man").output().unwrap().status.success());
    }
}

#[test]
fn a_page_of_others_beside_a_journal_stays() {
    let tried = Place::new("outputs-page");
    let output = rigel(&tried, &format!("{CURVE} --out run"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::create_dir(tried.0.join("site")).unwrap();
    std::fs::rename(
        tried.0.join("run/journal.jsonl"),
        tried.0.join("site/cut.jsonl"),
    )
    .unwrap();
    let page = tried.0.join("site/report.html");
    std::fs::write(&page, "<!doctype html>\n<html><title>pytest</title>").unwrap();
    let before = std::fs::read(&page).unwrap();
    for line in [
        "curve --resume site/cut.jsonl --no-progress",
        "report site/cut.jsonl --html",
    ] {
        let output = rigel(&tried, line).output().unwrap();
        assert_eq!(std::fs::read(&page).unwrap(), before, "{line}");
        let said = stderr(&output);
        assert!(said.contains("is not a page of Rigel"), "{line}: {said}");
        assert_eq!(output.status.success(), line.starts_with("curve"), "{line}");
    }
    // Its own is replaced.
    std::fs::remove_file(&page).unwrap();
    for _ in 0..2 {
        let line = format!("report site/cut.jsonl --html {}", text(&page));
        assert!(rigel(&tried, &line).output().unwrap().status.success());
    }
}

/// Changes the header of the journal at `path`.
fn changed(path: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let journal = std::fs::read_to_string(path).unwrap();
    let (first, rest) = journal.split_once('\n').unwrap();
    let mut header: serde_json::Value = serde_json::from_str(first).unwrap();
    change(&mut header["header"]);
    std::fs::write(path, format!("{header}\n{rest}")).unwrap();
}

/// Names of the files in a directory.
fn names(directory: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    entries(directory).iter().map(name).collect()
}

#[test]
fn a_journal_names_no_file_that_is_written() {
    let tried = Place::new("outputs-resumed");
    let at = |name: &str| tried.0.join(name);
    let made = rigel(&tried, &format!("{ORION} --out run"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let own = names(&at("run"));
    let summary = own
        .iter()
        .find(|name| name.ends_with("_summary.txt"))
        .unwrap();
    // A copy writes its files beside itself.
    std::fs::create_dir(at("copy")).unwrap();
    std::fs::copy(at("run/journal.jsonl"), at("copy/journal.jsonl")).unwrap();
    std::fs::write(at("run").join(summary), "with notes\n").unwrap();
    let resumed = rigel(&tried, "orion --resume copy").output().unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(
        std::fs::read_to_string(at("run").join(summary)).unwrap(),
        "with notes\n"
    );
    assert_eq!(names(&at("copy")), own);

    // A journal with names of files elsewhere, and lines of its author.
    std::fs::create_dir(at("victim")).unwrap();
    std::fs::create_dir(at("theirs")).unwrap();
    let journal = at("theirs/journal.jsonl");
    std::fs::copy(at("run/journal.jsonl"), &journal).unwrap();
    let victim = at("victim/prod");
    changed(&journal, |header| {
        header["plan"]["prefix"] = text(&victim).into();
        header["plan"]["orion"]["testname"] = format!("{}/../victim/prod", text(&at("x"))).into();
        header["plan"]["stamp"] = "20260102_0304".into();
        header["command"] = serde_json::json!(["-run", "x\n* * * * * root id\n"]);
    });
    let resumed = rigel(&tried, "orion --resume theirs").output().unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(names(&at("victim")), [] as [String; 0]);
    let prod = at("theirs/prod_20260102_0304_summary.txt");
    let written = std::fs::read_to_string(&prod).unwrap();
    assert!(
        !written.lines().any(|line| line.starts_with('*')),
        "{written}"
    );
    // Its own are replaced, and no other's.
    assert!(
        rigel(&tried, "orion --resume theirs")
            .output()
            .unwrap()
            .status
            .success()
    );
    std::fs::write(&prod, "notes\n").unwrap();
    let refused = rigel(&tried, "orion --resume theirs").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&prod).unwrap(), "notes\n");

    // What is no part of a file name is not read.
    for (name, value) in [
        ("stamp", "../../victim/x"),
        ("stamp", "1\n2"),
        ("testname", "a\u{1b}[2J"),
        ("testname", "a\nb"),
        ("testname", "a/"),
    ] {
        std::fs::copy(at("run/journal.jsonl"), &journal).unwrap();
        changed(&journal, |header| match name {
            "stamp" => header["plan"]["stamp"] = value.into(),
            _ => header["plan"]["orion"]["testname"] = value.into(),
        });
        for line in [
            "orion --resume theirs",
            "report theirs --orion-files victim",
        ] {
            let refused = rigel(&tried, line).output().unwrap();
            let said = stderr(&refused);
            assert!(!refused.status.success(), "{line} {value:?}: {said}");
            assert!(
                said.contains("is no part of a file name"),
                "{line} {value:?}: {said}"
            );
        }
    }
    assert_eq!(names(&at("victim")), [] as [String; 0]);
}

#[test]
fn a_resumed_run_with_the_usual_name_has_its_files_beside_it() {
    let tried = Place::new("outputs-usual");
    std::fs::create_dir(tried.0.join("below")).unwrap();
    let made = rigel(&tried, ORION)
        .args(["-testname", "below/mine"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let before = names(&tried.0.join("below"));
    assert_eq!(before.len(), 7, "{before:?}");
    let run = before
        .iter()
        .find(|name| tried.0.join("below").join(name).is_dir());
    let run = run.unwrap();
    for name in before.iter().filter(|name| *name != run) {
        std::fs::remove_file(tried.0.join("below").join(name)).unwrap();
    }
    for run in [run.clone(), format!("{run}/journal.jsonl")] {
        let resumed = rigel(&tried, &format!("orion --resume below/{run}"))
            .output()
            .unwrap();
        assert!(resumed.status.success(), "{resumed:?}");
        assert_eq!(names(&tried.0.join("below")), before);
    }
}

#[test]
fn no_text_of_a_journal_is_a_command_of_a_build_server() {
    const COMMANDS: &str = "x ##vso[task.prependpath]/evil ##[error]y";
    let tried = Place::new("outputs-obeyed");
    let made = rigel(&tried, &format!("{EXPECT} --out run"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    changed(&tried.0.join("run/journal.jsonl"), |header| {
        header["facts"]["name"] = COMMANDS.into();
        header["host"]["name"] = COMMANDS.into();
        header["host"]["cpu"] = format!("a\n::error::b {COMMANDS}").into();
    });
    let printed = |line: &str, variable: Option<&str>| {
        let mut command = rigel(&tried, line);
        for name in ["TF_BUILD", "GITHUB_ACTIONS"] {
            command.env_remove(name);
        }
        let output = command.envs(variable.map(|name| (name, "True"))).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for line in [
        "report run",
        "report run --verbose",
        "report run --json",
        "report run --html -",
    ] {
        let as_it_is = printed(line, None);
        // A page may be shown anywhere.
        assert!(
            as_it_is.contains("##vso[") != line.contains("--html"),
            "{line} does not show the names: {as_it_is}"
        );
        for variable in ["TF_BUILD", "GITHUB_ACTIONS"] {
            let said = printed(line, Some(variable));
            let is_obeyed = |line: &str| line.contains("##") || line.trim().starts_with("::");
            assert!(!said.lines().any(is_obeyed), "{line}: {said}");
        }
    }
    let document: serde_json::Value =
        serde_json::from_str(&printed("report run --json", Some("TF_BUILD"))).unwrap();
    assert!(document.to_string().contains(COMMANDS), "{document}");
    let annotated = printed("report run --annotations azure", None);
    assert!(!annotated.contains("##"), "all is met: {annotated}");
}
