//! A soak on a simulated device: its timetable, resuming after every kind of end, and constant
//! memory use.

use crate::common::{self, Mounted, Place, ends, peak_of, rigel, signal, text, wait_until};
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord};
use rigel_model::{Coordinates, Moment, Nanos};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn read(path: &Path) -> Run {
    Run::read(path).unwrap()
}

fn numbers(run: &Run) -> Vec<u32> {
    let number = |record: &PointRecord| match record.coordinates {
        Coordinates::Round { round, .. } => round,
        other => panic!("{other} is no round"),
    };
    run.points.iter().map(number).collect()
}

/// The measurements of a round, without values that differ between processes.
fn measured(record: &PointRecord) -> PointRecord {
    PointRecord {
        cpu: rigel_model::Nanos(0),
        ..record.clone()
    }
}

/// Rounds of fixed work on a model without state.
const ROUNDS: &str = "soak sim:4,100us --work 400ops --every 1m --no-progress";

#[test]
fn rounds_stand_in_the_journal_at_their_times() {
    let place = Place::new("soak-times");
    ends(&place, &format!("{ROUNDS} --for 1h --seed 3 --out run"), 0);
    let run = read(&place.0.join("run"));
    assert_eq!(numbers(&run), (1..=60).collect::<Vec<u32>>());
    let began: Moment = run.header.started.parse().unwrap();
    let request: SoakRequest = run.header.invocation.asked("soak").unwrap();
    let mut longest = Nanos(0);
    for (number, record) in (1..).zip(&run.points) {
        let started: Moment = record.started.parse().unwrap();
        let due = request.due(number, longest);
        let since = started.since(began);
        assert_eq!(since, i64::try_from(due.0 / 1_000_000_000).unwrap());
        assert_eq!(request.number_at(due.plus(record.measured)), number);
        longest = SoakRequest::longest_with(longest, record);
        assert_eq!(record.end, End::Complete);
        assert_eq!(record.streams[0].total().done, 400);
    }
}

#[test]
fn an_interrupted_soak_is_resumed_without_a_difference() {
    let place = Place::new("soak-resume");
    ends(
        &place,
        &format!("{ROUNDS} --for 40m --seed 5 --out whole"),
        0,
    );
    let path = place.0.join("whole/journal.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    let whole = read(&path);
    let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for (number, thousandths) in [0, 300, 310, 770, 999].into_iter().enumerate() {
        let length = header + (bytes.len() - header) * thousandths / 1000;
        let directory = place.0.join(format!("cut-{number}"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("journal.jsonl"), &bytes[..length]).unwrap();
        ends(
            &place,
            &format!("soak --no-progress --resume cut-{number}"),
            0,
        );
        let again = read(&directory);
        assert_eq!(
            again.points.len(),
            whole.points.len(),
            "cut at {thousandths}"
        );
        for (one, other) in whole.points.iter().zip(&again.points) {
            assert_eq!(measured(one), measured(other), "cut at {thousandths}");
        }
    }
    // A completed soak has nothing left to do.
    ends(&place, "soak --no-progress --resume whole", 0);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn the_unit_for_systemd_begins_a_soak_and_resumes_it() {
    let place = Place::new("soak-unit");
    let unit = std::fs::read_to_string("contrib/systemd/rigel-soak@.service").unwrap();
    // As systemd reads it: lines are joined, and two dollars are one.
    let unit = unit.replace("\\\n", " ").replace("$$", "$");
    let setting = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}"))
    };
    let script = setting("ExecStart=/bin/sh -ec '").split('\'').next();
    let script = script
        .unwrap()
        .replace("/usr/local/bin/rigel", env!("CARGO_BIN_EXE_rigel"));
    let start = |target: &str, soak: &str| {
        let mut command = Command::new("sh");
        command.args(["-ec", &script, "soak", target]);
        command.env("SOAK", soak).env("SHOWN", "--no-progress");
        let output = command.current_dir(&place.0).output().unwrap();
        (output.status.code(), common::stderr(&output))
    };
    let soak = "--work 400ops --every 1m --for 40m --slo p99<20ms --slo-share 50% --seed 5";
    let path = place.0.join("run/journal.jsonl");
    let rounds = || read(&place.0.join("run")).points.len();
    // Begun; interrupted half way; complete; killed before anything was written.
    assert_eq!(start("sim:4,100us", soak).0, Some(0));
    let bytes = std::fs::read(&path).unwrap();
    for length in [bytes.len() / 2, bytes.len(), 0] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let (status, said) = start("sim:4,100us", soak);
        assert_eq!((status, rounds()), (Some(0), 40), "{length} bytes: {said}");
    }
    // The unit's own options are right: what is wrong is the target alone.
    let own = setting("Environment=\"SOAK=").trim_end_matches('"');
    assert!(own.contains("--slo"), "{own}");
    std::fs::remove_file(&path).unwrap();
    let (status, said) = start("nowhere", own);
    assert!(status == Some(2) && said.contains("nowhere"), "{said}");
}

#[test]
fn a_journal_can_be_read_at_every_cut_of_its_length() {
    let place = Place::new("soak-cut");
    ends(
        &place,
        "soak sim:1,1ms --work 10ops --every 1m --for 4m --no-progress --seed 1 --out run",
        0,
    );
    let path = place.0.join("run/journal.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in 0..=bytes.len() {
        let found = Run::parse(&path, &bytes[..length]);
        if length < header {
            assert!(found.is_err(), "{length} bytes hold no header");
            continue;
        }
        let lines = bytes[header..length].split(|byte| *byte == b'\n').count() - 1;
        let run = found.unwrap_or_else(|error| panic!("{length} bytes: {error}"));
        // Behind the four rounds stands how the soak ended.
        assert_eq!(run.ended.is_some(), lines == 5, "{length} bytes");
        assert_eq!(
            (run.points.len(), run.cut),
            (lines.min(4), bytes[length - 1] != b'\n'),
            "{length} bytes"
        );
    }
}

/// Peak memory of a run in KiB.
fn peak_of_run(place: &Place, line: &str) -> u64 {
    let mut child = rigel(place, line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (status, peak) = peak_of(&mut child);
    assert!(status.success(), "{line}");
    peak / 1024
}

#[test]
fn two_thousand_rounds_take_the_memory_of_two_hundred() {
    let place = Place::new("soak-memory");
    // The peak is polled every other millisecond, and a poll that misses its last value reports
    // less.
    let few = (0..3)
        .map(|time| {
            peak_of_run(
                &place,
                &format!("{ROUNDS} --for 200m --seed 1 --out few{time}"),
            )
        })
        .max();
    let few = few.unwrap();
    let many = peak_of_run(&place, &format!("{ROUNDS} --for 2000m --seed 1 --out many"));
    assert_eq!(read(&place.0.join("many")).points.len(), 2000);
    let journal = std::fs::metadata(place.0.join("many/journal.jsonl"))
        .unwrap()
        .len()
        / 1024;
    assert!(
        many < few + 4096,
        "{few} KiB for 200 rounds, {many} for 2000, with a journal of {journal} KiB"
    );
    let reported = peak_of_run(&place, "report many");
    assert!(
        reported < few + 4096,
        "{reported} KiB to report on 2000 rounds"
    );
    let compared = peak_of_run(&place, "compare few0 many");
    assert!(
        compared < few + 4096,
        "{compared} KiB to compare 2000 rounds with 200"
    );
}

#[test]
fn work_that_exceeds_the_limit_is_cut_and_reported() {
    let place = Place::new("soak-limit");
    // 2000 operations of 1 ms each, one after the other, are limited to one second.
    let line = "soak sim:1,1ms,fixed --depth 1 --work 2000ops --every 1m --limit 1s --for 12m \
                --no-progress --out run";
    ends(&place, line, 0);
    let run = read(&place.0.join("run"));
    for record in &run.points {
        let done = record.streams[0].total().done;
        assert!((990..=1010).contains(&done), "{done} of 2000 in a second");
        assert_eq!(record.measured, rigel_model::Nanos::from_secs(1));
    }
    let said = String::from_utf8(ends(&place, "report run --verbose", 0).stdout).unwrap();
    assert!(said.contains("cut"), "{said}");
}

#[test]
fn rounds_that_failed_or_are_missing_are_in_the_exit_status() {
    let place = Place::new("soak-whole");
    let line = "soak sim:4,100us,errors=1% --work 400ops --every 1m --for 12m --out failed";
    let said = ends(&place, line, 1);
    let cause = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).contains(" x Input/output error") && !bytes.is_empty()
    };
    assert!(
        String::from_utf8_lossy(&said.stderr).contains("operations failed"),
        "{said:?}"
    );
    assert!(
        String::from_utf8_lossy(&said.stderr).contains(" failed: Input/output error"),
        "{said:?}"
    );
    assert!(
        cause(&ends(&place, "report failed --verbose", 1).stdout),
        "{said:?}"
    );
    assert!(
        cause(&ends(&place, "report failed --json", 1).stdout),
        "not in the JSON"
    );
    assert!(
        cause(&ends(&place, "report failed --html -", 1).stdout),
        "not on the page"
    );
    // If it reported a failure, a service manager would restart it forever.
    let again = ends(&place, "soak --no-progress --resume failed", 0);
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("this soak is complete"),
        "{again:?}"
    );
    // Served one after the other, ten operations take ten minutes: every other round finds the
    // previous one still running.
    let line = "soak sim:1,40s,fixed --depth 2 --every 1m --for 12m --no-progress --out missing";
    let said = ends(&place, line, 1);
    assert!(
        String::from_utf8_lossy(&said.stderr).contains("rounds did not take place"),
        "{said:?}"
    );
}

#[test]
fn runs_of_other_sorts_are_refused_by_name() {
    let place = Place::new("soak-others");
    ends(&place, &format!("{ROUNDS} --for 2m --out one"), 0);
    ends(
        &place,
        "soak sim:4,100us --work 500ops --every 1m --no-progress --for 2m --depth 2 --out two",
        0,
    );
    ends(
        &place,
        "curve sim:4,100us --depth 1,2 --no-progress --out curve",
        0,
    );
    for (line, told) in [
        (
            "compare curve one",
            "one is a soak, and curve has no rounds",
        ),
        (
            "compare one two",
            "load 8 outstanding in one and 2 outstanding in two; work of a round 400 operations \
             in one",
        ),
        ("soak --resume one --update 10%", "has its original options"),
    ] {
        let said = ends(&place, line, 2);
        assert!(
            String::from_utf8_lossy(&said.stderr).contains(told),
            "{said:?}"
        );
    }
}

#[test]
fn soaks_are_compared_with_each_other_and_with_an_imported_series() {
    let place = Place::new("soak-compare");
    for (device, run) in [("sim:4,100us", "before"), ("sim:4,120us", "after")] {
        ends(
            &place,
            &format!(
                "soak {device} --work 400ops --every 1m --for 1h --seed 3 --no-progress --out \
                 {run}"
            ),
            0,
        );
    }
    let said = ends(
        &place,
        "compare before after --html page.html --fail-if-slower 5% --single-run",
        3,
    );
    let said = String::from_utf8(said.stdout)
        .unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        said.contains(
            "Certainly slower by more than 5 %: median throughput, median p50, median p99"
        ),
        "{said}"
    );
    let page = std::fs::read_to_string(place.0.join("page.html")).unwrap();
    assert!(
        page.contains("Rounds over time")
            && page.contains("after against before: worse in median throughput")
    );
    // Importing the csv of a soak gives the soak again.
    let csv = ends(&place, "report before --format csv", 0).stdout;
    std::fs::write(place.0.join("before.csv"), csv).unwrap();
    let columns =
        "--time begin --value rate --value p50_us --value p99_us --value max_us --seconds seconds";
    ends(
        &place,
        &format!("import before.csv {columns} --out told"),
        0,
    );
    let said = String::from_utf8(ends(&place, "compare before told --verbose", 0).stdout).unwrap();
    for name in ["median throughput", "median p50", "median p99"] {
        let is_row = |line: &&str| line.starts_with(name) && line.ends_with("no difference shown");
        let row = said
            .lines()
            .find(is_row)
            .unwrap_or_else(|| panic!("{said}"));
        assert!(row.contains(" 1.000 "), "{row}");
    }
}

#[test]
fn a_soak_that_is_not_whole_passes_no_step_of_a_build() {
    let place = Place::new("soak-compare-cut");
    ends(
        &place,
        &format!("{ROUNDS} --for 40m --seed 5 --out whole"),
        0,
    );
    let bytes = std::fs::read(place.0.join("whole/journal.jsonl")).unwrap();
    std::fs::create_dir(place.0.join("cut")).unwrap();
    std::fs::write(
        place.0.join("cut/journal.jsonl"),
        &bytes[..bytes.len() * 3 / 4],
    )
    .unwrap();
    let said = ends(
        &place,
        "compare whole cut --fail-if-slower 5% --single-run --verbose",
        1,
    );
    assert!(
        String::from_utf8_lossy(&said.stdout).contains("cut is incomplete: it ended early"),
        "{said:?}"
    );
    assert!(
        String::from_utf8_lossy(&said.stderr).contains("cut is incomplete"),
        "{said:?}"
    );
}

#[test]
fn a_soak_continues_when_its_target_returns() {
    let place = Place::new("soak-back");
    let file = common::scratch_file("soak-back", 64 << 20);
    let line = format!(
        "soak {} --work 20ops --every 1s --for 10h --no-progress --out run",
        text(&file.path)
    );
    let mut child = rigel(&place, &line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = place.0.join("run/journal.jsonl");
    let rounds = || Run::read(&path).map_or_else(|_| Vec::new(), |run| run.points);
    wait_until("a round is done", || !rounds().is_empty());
    common::kill(&mut child);
    let aside = file.path.with_extension("aside");
    std::fs::rename(&file.path, &aside).unwrap();
    let mut again = rigel(&place, "soak --no-progress --resume run");
    let child = again
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a round is broken", || {
        rounds()
            .iter()
            .any(|record| matches!(record.end, End::Broken(_)))
    });
    std::fs::rename(&aside, &file.path).unwrap();
    wait_until("it goes on", || {
        rounds()
            .last()
            .is_some_and(|record| record.end == End::Complete)
    });
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("the next round tries again"),
        "{said}"
    );
    let report = String::from_utf8(ends(&place, "report run --verbose", 1).stdout).unwrap();
    assert!(
        report.contains("broken rounds: ") && report.contains("does not exist"),
        "{report}"
    );
}

#[test]
fn an_objective_that_is_missed_is_the_exit_status() {
    let place = Place::new("soak-slo");
    let ended = |options: &str, status| {
        let line = format!("{ROUNDS} --seed 1 --for 20m --slo p99<1s {options}");
        let output = ends(&place, &line, status);
        String::from_utf8(output.stdout).unwrap().replace('\n', " ")
    };
    ended("--slo-share 80% --out kept", 0);
    ended("--slo-share 80% --slo p50<10us --out missed", 3);
    // Twenty rounds with pauses between them show no more than 81 % of the time.
    let said = ended("--out few", 4);
    let why = "The objective p99<1s was kept in all 20 rounds; these cannot show 99 % of the time, 367 would.";
    assert!(said.contains(why), "{said}");
    assert!(
        said.find(why) < said.find("Predictable"),
        "it is said first: {said}"
    );
}

#[test]
fn invalid_requests_are_refused_before_anything_is_made() {
    let place = Place::new("soak-refused");
    for (line, words) in [
        (
            "soak sim:1,1ms --for 1d --work 100000",
            "'100000' is not an amount of work",
        ),
        (
            "soak sim:1,1ms --for 1d --work 100k",
            "'100k' is not an amount of work",
        ),
        ("soak sim:1,1ms --for 30s", "is shorter than one round"),
        (
            "soak sim:1,1ms --for 1h --every 10ms",
            "--every 10ms is too short",
        ),
        (
            "soak sim:1,1ms --for 1h --slo p99>2ms",
            "is not an objective",
        ),
        (
            "soak sim:1,1ms --for 1h --slo p99<2ms --slo-share 0%",
            "--slo-share 0% requires nothing",
        ),
        (
            "soak sim:1,1ms --for 1h --every 1m --work 1kops --limit 2m",
            "--limit 120s is longer than --every 60s",
        ),
        ("soak sim:1,1ms --for 1h --slo p99<2", "is not an objective"),
        (
            "soak sim:1,1ms --for 1h --rate 1k..5k",
            "is not a single rate",
        ),
        ("soak sim:1,1ms", "--for"),
        ("soak --resume nowhere", "cannot read the journal"),
    ] {
        let output = ends(&place, line, 2);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains(words) && said.contains("hint: "),
            "{line}: {said}"
        );
    }
    assert!(
        common::entries(&place.0).is_empty(),
        "something was left behind"
    );
}

#[test]
fn rounds_that_find_the_disk_full_are_written_when_there_is_room() {
    common::test(
        "rounds_that_find_the_disk_full_are_written_when_there_is_room",
        || {
            let place = Place::new("soak-full");
            let small = Mounted::in_memory(&place, "size=160k")?;
            std::fs::create_dir(place.0.join("storage")).unwrap();
            let line = "soak storage --scratch-size 64MiB --work 20ops --every 1s --for 10h \
                        --no-progress --out small/run";
            let mut child = rigel(&place, line)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut told = BufReader::new(child.stderr.take().unwrap())
                .lines()
                .map_while(Result::ok);
            let journal = small.0.join("run/journal.jsonl");
            let lines = || std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
            wait_until("a round is in the journal", || lines() >= 2);
            // Fill the rest of the space, to the last byte.
            let filler = small.0.join("filler");
            let _ = std::fs::write(&filler, vec![1; 1 << 20]);
            // A line may still fit into the file's last page.
            assert!(
                told.any(|line| line.contains("No space left on device")),
                "it ended, and never said that the disk is full"
            );
            assert!(
                told.any(|line| line.contains("until they can be written: 2 rounds")),
                "it ended with fewer rounds"
            );
            let before = lines();
            std::fs::remove_file(&filler).unwrap();
            wait_until("those and another are written", || lines() >= before + 4);
            signal(child.id(), "INT");
            told.for_each(drop);
            assert_eq!(child.wait().unwrap().code(), Some(1));
            let run = read(&journal);
            let numbers = numbers(&run);
            assert!(
                !run.cut && numbers.windows(2).all(|two| two[0] < two[1]),
                "{numbers:?}"
            );
            Ok(())
        },
    );
}

/// The directory that a soak names for rounds that its journal did not take, and the run in it.
fn rest(said: &str) -> (PathBuf, Run) {
    let named = said.split("could not be written there: '").nth(1);
    let named = named.and_then(|rest| rest.split('\'').next());
    let place = PathBuf::from(named.unwrap_or_else(|| panic!("no place is named: {said}")));
    let run = read(&place);
    (place, run)
}

#[test]
fn a_soak_whose_journal_is_removed_ends_and_writes_its_last_round_elsewhere() {
    let place = Place::new("soak-removed");
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let out = place.0.join("runs/run");
    let line = format!(
        "soak storage --scratch-size 64MiB --work 20ops --every 1s --for 10h --no-progress --out {}",
        text(&out)
    );
    let child = rigel(&place, &line)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let journal = out.join("journal.jsonl");
    wait_until("a round is done", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.lines().count() >= 2)
    });
    std::fs::remove_dir_all(&out).unwrap();
    // Nobody stops it.
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("was removed during this run"), "{said}");
    let (rest, run) = rest(&said);
    assert!(rest.starts_with(place.0.join("runs")), "{rest:?}");
    assert_eq!(run.points.len(), 1, "it went on after that round");
    assert!(!run.is_complete());
}

#[test]
fn rounds_that_a_full_disk_never_took_are_written_where_temporary_files_are() {
    common::test("rounds_that_a_full_disk_never_took", || {
        let place = Place::new("soak-full-end");
        let small = Mounted::in_memory(&place, "size=160k")?;
        for name in ["storage", "temporary"] {
            std::fs::create_dir(place.0.join(name)).unwrap();
        }
        let line = "soak storage --scratch-size 64MiB --work 20ops --every 1s --for 10h \
                    --no-progress --out small/run";
        let mut child = rigel(&place, line)
            .env("TMPDIR", place.0.join("temporary"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let journal = small.0.join("run/journal.jsonl");
        wait_until("a round is done", || {
            std::fs::read_to_string(&journal).is_ok_and(|text| text.lines().count() >= 2)
        });
        let _ = std::fs::write(small.0.join("filler"), vec![1; 1 << 20]);
        assert!(told.any(|line| line.contains("until they can be written: 2 rounds")));
        signal(child.id(), "INT");
        let said: Vec<String> = told.collect();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let (rest, after) = rest(&said.join("\n"));
        assert!(rest.starts_with(place.0.join("temporary")), "{rest:?}");
        // Together they have every round once.
        let all = [numbers(&read(&journal)), numbers(&after)].concat();
        assert!(after.points.len() >= 2, "{all:?}");
        assert!(all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
        Ok(())
    });
}

#[test]
fn reports_work_during_a_soak_and_ctrl_c_keeps_the_results() {
    let place = Place::new("soak-running");
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let line =
        "soak storage --scratch-size 64MiB --depth 2 --every 1s --for 1h --no-progress --out run";
    let child = rigel(&place, line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = place.0.join("run/journal.jsonl");
    let rounds =
        || std::fs::read_to_string(&path).map_or(0, |text| text.matches("{\"point\"").count());
    wait_until("three rounds are done", || rounds() >= 3);
    let said = String::from_utf8(ends(&place, "report run --verbose", 0).stdout).unwrap();
    assert!(said.contains("rounds"), "{said}");
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("rigel soak --resume run"),
        "{said}"
    );
    let run = read(&path);
    assert!(run.points.len() >= 3 && !run.cut);
    assert!(
        run.points
            .iter()
            .all(|record| matches!(record.end, End::Complete | End::Stopped))
    );
    assert!(
        common::entries(&place.0.join("storage")).is_empty(),
        "{}",
        text(&place.0)
    );
}

/// Starts a soak on a file. Returns its child process, and a function for the rounds in its
/// journal.
fn soak_on(place: &Place, file: &Path) -> (std::process::Child, impl Fn() -> Vec<PointRecord>) {
    let line = format!(
        "soak {} --work 20ops --every 1s --for 1h --no-progress --out run",
        text(file)
    );
    let child = rigel(place, &line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = place.0.join("run/journal.jsonl");
    (child, move || {
        Run::read(&path).map_or_else(|_| Vec::new(), |run| run.points)
    })
}

fn is_broken_by(record: &PointRecord, words: &str) -> bool {
    matches!(&record.end, End::Broken(why) if why.contains(words))
}

#[test]
fn a_soak_notices_that_its_file_was_replaced_and_takes_it_up_again_when_it_is_back() {
    let place = Place::new("soak-replaced");
    let file = common::scratch_file("soak-replaced", 1 << 20);
    let other = common::scratch_file("soak-replacement", 1 << 20);
    let aside = place.0.join("aside");
    let (mut child, rounds) = soak_on(&place, &file.path);
    wait_until("a round is done", || {
        rounds()
            .last()
            .is_some_and(|record| record.end == End::Complete)
    });
    // In one step: at no moment is the name missing.
    std::fs::hard_link(&file.path, &aside).unwrap();
    std::fs::rename(&other.path, &file.path).unwrap();
    wait_until("it is noticed", || {
        rounds()
            .iter()
            .any(|record| is_broken_by(record, "no longer the"))
    });
    wait_until("it is not measured", || {
        rounds()
            .last()
            .is_some_and(|record| is_broken_by(record, "was replaced"))
    });
    std::fs::rename(&aside, &file.path).unwrap();
    wait_until("it goes on", || {
        rounds()
            .last()
            .is_some_and(|record| record.end == End::Complete)
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_round_in_which_every_operation_failed_is_broken() {
    let place = Place::new("soak-emptied");
    let file = common::scratch_file("soak-emptied", 1 << 20);
    let (mut child, rounds) = soak_on(&place, &file.path);
    wait_until("a round is done", || {
        rounds()
            .last()
            .is_some_and(|record| record.end == End::Complete)
    });
    std::fs::File::options()
        .write(true)
        .open(&file.path)
        .unwrap()
        .set_len(0)
        .unwrap();
    wait_until("a round breaks", || {
        rounds()
            .iter()
            .any(|record| is_broken_by(record, "operations failed"))
    });
    wait_until("the target is looked at", || {
        rounds()
            .last()
            .is_some_and(|record| is_broken_by(record, "is empty"))
    });
    child.kill().unwrap();
    child.wait().unwrap();
}
