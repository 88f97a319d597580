//! A run that is interrupted, or runs out of space, keeps its measurements and leaves nothing
//! incomplete.

use crate::common::{
    Mounted, Place, Running, begun, ends, entries, in_time, journal_lines, need, peak_of,
    processes, rigel, scratch_file, signal, test, text, wait, wait_until,
};
use rigel_model::Coordinates;
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A run on a scratch file that gets a signal in a point after its first. Returns its output and
/// its journal.
fn signalled_in_a_point(place: &Place, name: &str, factor: u32) -> Option<(Output, Run)> {
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let line = "orion -run oltp -num_small 3 --target storage --scratch-size 64MiB --out run";
    let line = format!("{line} -duration {}", 2 * factor);
    let child = begun(place, &line, &place.0.join("run"));
    // The warm-up takes one second at most; if it takes longer, the signal arrives during the
    // warm-up.
    wait(1500);
    signal(child.id(), name);
    let output = child.wait_with_output().unwrap();
    let run = Run::read(&place.0.join("run")).unwrap();
    // Too late: the run was complete, or between two points.
    let is_cut = run
        .points
        .last()
        .is_some_and(|point| point.end == End::Stopped);
    is_cut.then_some((output, run))
}

fn interrupted_by(name: &str) {
    let (place, (output, run)) = in_time("a point was interrupted", |factor| {
        let place = Place::new(&format!("interrupt-{name}-{factor}"));
        signalled_in_a_point(&place, name, factor).map(|found| (place, found))
    });
    // The first point and perhaps more, then a stopped one.
    let done = run.points.len() - 1;
    assert!(
        run.points[..done]
            .iter()
            .all(|point| point.end == End::Complete),
        "{:?}",
        run.points
    );
    assert_eq!(
        run.complete(),
        [Coordinates::cell(1, 0), Coordinates::cell(2, 0)][..done]
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!(
            "rigel: stopped: {} of 3 data points are not complete",
            3 - done
        )),
        "{said}"
    );
    assert!(
        said.contains("hint: resume them with `rigel orion --resume run`"),
        "{said}"
    );
    assert_eq!(
        entries(&place.0.join("storage")),
        [] as [PathBuf; 0],
        "the scratch file is still there"
    );

    let printed = String::from_utf8_lossy(&output.stdout);
    let incomplete = format!("Incomplete @ Small={} and Large=0", done + 1);
    assert!(
        printed.contains("@ Small=1 and Large=0") && printed.contains(&incomplete),
        "{printed}"
    );
    let iops = entries(&place.0.join("run"))
        .into_iter()
        .find(|path| text(path).ends_with("_iops.csv"))
        .unwrap();
    let row = std::fs::read_to_string(iops)
        .unwrap()
        .lines()
        .nth(1)
        .unwrap()
        .to_string();
    assert_eq!(
        row.split(',').count(),
        1 + done,
        "an incomplete point is in the csv: {row}"
    );

    let resumed = rigel(&place, "orion --resume run").output().unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(Run::read(&place.0.join("run")).unwrap().complete().len(), 3);
}

#[test]
fn ctrl_c_keeps_the_results_and_says_how_to_resume() {
    interrupted_by("INT");
}

#[test]
fn sigterm_does_as_ctrl_c() {
    interrupted_by("TERM");
}

#[test]
fn a_run_on_a_model_heeds_signals_however_long_or_many_its_operations() {
    let lines = [
        "curve sim:1,300000000h",
        "curve sim:1,1ns,stall=1ns/2ns",
        "orion -run simple -num_disks 1 -duration 4294967295 --target sim:1,100h",
    ];
    for (number, line) in lines.iter().enumerate() {
        for name in ["TERM", "INT"] {
            let place = Place::new(&format!("interrupt-model-{number}-{name}"));
            let mut command = rigel(&place, &format!("{line} --seed 1 --out run"));
            let child = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut running = Running(child);
            wait_until("it measures", || {
                place.0.join("run/journal.jsonl").exists()
                    || running.0.try_wait().unwrap().is_some()
            });
            wait(300);
            if running.0.try_wait().unwrap().is_none() {
                signal(running.0.id(), name);
            }
            wait_until(&format!("{line} ends by SIG{name}"), || {
                running.0.try_wait().unwrap().is_some()
            });
        }
    }
}

#[test]
fn a_measurement_of_a_hundred_years_takes_no_memory_for_each_second() {
    let place = Place::new("interrupt-memory");
    let line = "orion -run simple -num_disks 1 -duration 4294967295 --target sim:1,100h --out run";
    let child = rigel(&place, line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    wait_until("it measures", || place.0.join("run/journal.jsonl").exists());
    wait(1000);
    signal(running.0.id(), "TERM");
    let (status, peak) = peak_of(&mut running.0);
    assert!(
        status.code() == Some(1) && peak < 1 << 30,
        "{status}, {} MiB",
        peak >> 20
    );
}

#[test]
fn an_interrupted_filling_leaves_nothing() {
    let (place, output) = in_time("the filling was interrupted", |factor| {
        let place = Place::new(&format!("interrupt-filling-{factor}"));
        std::fs::create_dir(place.0.join("storage")).unwrap();
        let line = format!(
            "orion -run oltp --target storage --scratch-size {}MiB --out run",
            512 * factor.min(8)
        );
        let mut child = rigel(&place, &line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It installs signal handlers before it creates the file, which has no name.
        let descriptors = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/fd"));
        let is_unnamed = |entry: &std::fs::DirEntry| {
            std::fs::read_link(entry.path())
                .is_ok_and(|link| link.to_string_lossy().contains("storage/"))
        };
        wait_until("it fills a scratch file", || {
            let filling = processes(&child)
                .into_iter()
                .flat_map(descriptors)
                .flatten()
                .flatten()
                .any(|it| is_unnamed(&it));
            filling || child.try_wait().unwrap().is_some()
        });
        signal(child.id(), "INT");
        let output = child.wait_with_output().unwrap();
        // It has a journal if it was already measuring.
        (!place.0.join("run").exists()).then_some((place, output))
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("stopped while the scratch file was being filled"),
        "{said}"
    );
    assert_eq!(entries(&place.0.join("storage")), [] as [PathBuf; 0]);
    assert!(
        !place.0.join("run").exists(),
        "a run that has not begun has a directory"
    );
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let place = Place::new("interrupt-twice");
    let target = scratch_file("interrupt-twice", 4 << 20);
    let line = "orion -run oltp -duration 3600 --out run --target";
    let mut child = rigel(&place, line)
        .arg(&target.path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the run has begun", || {
        place.0.join("run/journal.jsonl").exists()
    });
    signal(child.id(), "INT");
    // Two signals at once are the same. It may have ended by now.
    wait(500);
    let _ = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    wait_until("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!Run::read(&place.0.join("run")).unwrap().cut);
}

/// Twenty points in a moment, of some ten thousand bytes each.
const MANY_POINTS: &str = "orion -run oltp -duration 1 --target sim:4,100us --seed 1 --no-progress";

fn out_of_room(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("No space left on device") && said.contains("cannot write '"),
        "{said}"
    );
    assert!(said.contains("\n  hint: "), "{said}");
}

/// The program with a limit of the size of its files.
fn within(place: &Place, bytes: u64, arguments: &str) -> Output {
    Command::new("prlimit")
        .arg(format!("--fsize={bytes}"))
        .arg(env!("CARGO_BIN_EXE_rigel"))
        .args(arguments.split_whitespace())
        .current_dir(&place.0)
        .output()
        .unwrap()
}

#[test]
fn a_limit_of_file_sizes_ends_a_run_as_a_full_disk_does() {
    test("a_limit_of_file_sizes_ends_a_run", || {
        need("prlimit", &["--version"])?;
        let place = Place::new("interrupt-limit");
        let output = within(&place, 40_000, &format!("{MANY_POINTS} --out run"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("File too large") && said.contains("ulimit -f"),
            "{said}"
        );
        let run = Run::read(&place.0.join("run")).unwrap();
        assert!(!run.cut && !run.points.is_empty() && run.points.len() < 20);
        let resumed = rigel(&place, "orion --resume run").output().unwrap();
        assert!(resumed.status.success(), "{resumed:?}");

        std::fs::create_dir(place.0.join("storage")).unwrap();
        let line = "curve storage --scratch-size 64MiB --depth 1 --out curve";
        let output = within(&place, 10 << 20, line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("filling the scratch file") && said.contains("ulimit -f"),
            "{said}"
        );
        assert!(entries(&place.0.join("storage")).is_empty());
        Ok(())
    });
}

#[test]
fn a_full_disk_keeps_earlier_points_and_the_run_can_be_resumed() {
    test(
        "a_full_disk_keeps_earlier_points_and_the_run_can_be_resumed",
        || {
            let place = Place::new("interrupt-full");
            let small = Mounted::in_memory(&place, "size=160k")?;
            let output = rigel(&place, MANY_POINTS)
                .args(["--out", "small/run"])
                .output()
                .unwrap();
            out_of_room(&output);
            assert!(
                String::from_utf8_lossy(&output.stderr).contains("resume with --resume"),
                "{output:?}"
            );
            let run = Run::read(&small.0.join("run")).unwrap();
            let done = run.points.len();
            assert!(done > 0 && done < 20, "{done} points fitted");
            assert_eq!(
                entries(&small.0.join("run")).len(),
                1,
                "there is more than the journal"
            );
            let report = rigel(&place, "report small/run").output().unwrap();
            let said = String::from_utf8_lossy(&report.stdout);
            assert!(
                report.status.code() == Some(1) && said.contains("The run is not complete: it "),
                "{report:?}"
            );

            small.remount("size=8m")?;
            let output = rigel(&place, "orion --resume small/run").output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let after = Run::read(&small.0.join("run")).unwrap();
            assert_eq!(
                after.points[..done],
                run.points,
                "earlier points were touched"
            );
            assert_eq!(after.complete().len(), 20);
            Ok(())
        },
    );
}

#[test]
fn no_half_of_a_file_passes_for_a_result() {
    test("no_half_of_a_file_passes_for_a_result", || {
        let place = Place::new("interrupt-half");
        let made = rigel(&place, MANY_POINTS)
            .args(["--out", "run"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let small = Mounted::in_memory(&place, "size=16k")?;
        let output = rigel(&place, "report run --orion-files small")
            .output()
            .unwrap();
        out_of_room(&output);
        for path in entries(&small.0) {
            let whole = place.0.join("run").join(path.file_name().unwrap());
            assert_eq!(
                std::fs::read(&path).unwrap(),
                std::fs::read(whole).unwrap(),
                "{}",
                path.display()
            );
        }
        Ok(())
    });
}

#[test]
fn a_place_for_results_that_is_full_or_read_only_is_refused_before_anything_is_measured() {
    test(
        "a_place_for_results_that_is_full_or_read_only_is_refused_before_anything_is_measured",
        || {
            let place = Place::new("interrupt-refused");
            let small = Mounted::in_memory(&place, "size=64k")?;
            for (options, words) in [
                ("size=64k", "64 KiB are free"),
                ("ro", "Read-only file system"),
            ] {
                small.remount(options)?;
                for directory in ["small", "small/run"] {
                    let output = rigel(&place, MANY_POINTS)
                        .args(["--out", directory])
                        .output()
                        .unwrap();
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert_eq!(output.status.code(), Some(2), "{said}");
                    assert!(
                        said.contains(&format!("the result directory '{directory}'")),
                        "{said}"
                    );
                    assert!(
                        said.contains(words) && said.contains("hint: give another with --out DIR"),
                        "{said}"
                    );
                }
            }
            assert!(entries(&small.0).is_empty());
            Ok(())
        },
    );
}

#[test]
fn unreadable_and_unwritable_files_are_named() {
    test("unreadable_and_unwritable_files_are_named", || {
        // Root may do anything: another user runs a copy of the program, in a directory that
        // everybody can reach.
        let home = Place(need("mktemp", &["-d"]).map(PathBuf::from)?);
        let path = |name: &str| home.0.join(name);
        need("cp", &[env!("CARGO_BIN_EXE_rigel"), text(&path("rigel"))])?;
        std::fs::write(path("secret"), vec![1; 4 << 20]).unwrap();
        std::fs::write(path("list.lun"), "secret\n").unwrap();
        std::fs::write(path("hidden.lun"), "secret\n").unwrap();
        need("chmod", &["755", text(&home.0)])?;
        need(
            "chmod",
            &["600", text(&path("secret")), text(&path("hidden.lun"))],
        )?;
        need(
            "runuser",
            &["-u", "nobody", "--", text(&path("rigel")), "--version"],
        )?;
        let as_nobody = |arguments: &str| {
            let mut command = Command::new("runuser");
            command
                .args(["-u", "nobody", "--", text(&path("rigel"))])
                .args(arguments.split_whitespace());
            let output = command.current_dir(&home.0).output().unwrap();
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        for (arguments, words) in [
            ("check secret", "'secret' cannot be read: permission denied"),
            (
                "orion -run oltp -testname list --out /tmp/rigel-unused",
                "'secret' cannot be read: permission denied",
            ),
            (
                "orion -run oltp -testname hidden",
                "'hidden.lun': Permission denied",
            ),
            (
                "orion -run oltp --target sim:",
                "cannot be written to: Permission denied",
            ),
        ] {
            let (status, said) = as_nobody(arguments);
            assert!(
                status == Some(2) && said.contains(words) && said.contains("hint: "),
                "{arguments}: {said}"
            );
        }
        assert!(!Path::new("/tmp/rigel-unused").exists());
        Ok(())
    });
}

#[test]
fn a_complete_run_is_complete_without_its_scratch_file() {
    let place = Place::new("complete-scratch");
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let line = "orion -run oltp -num_small 1 -duration 1 --target storage --scratch-size 64MiB \
                --out run --no-progress";
    let output = rigel(&place, line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let over = rigel(&place, "orion --resume run --no-progress")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&over.stderr);
    assert!(over.status.success(), "{said}");
    assert!(
        said.contains("this run is already complete") && !said.contains("no longer exists"),
        "{said}"
    );
}

/// Writers that commit together do so to a file without a name, and the run goes on with another one.
#[test]
fn an_interrupted_curve_of_commits_is_resumed_and_leaves_no_file() {
    let (place, output) = in_time("the curve was cut short", |factor| {
        let place = Place::new(&format!("interrupt-log-{factor}"));
        std::fs::create_dir(place.0.join("storage")).unwrap();
        let time = format!("{factor}s");
        let line = format!(
            "curve storage --log grow --size 2300 --writers 1,4 --point-min {time} --point-max {time} \
             --no-progress --out run"
        );
        let mut command = rigel(&place, &line);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let run = place.0.join("run");
        wait_until("the first visit is done", || journal_lines(&run) >= 2);
        signal(child.id(), "INT");
        let output = child.wait_with_output().unwrap();
        (output.status.code() == Some(1)).then_some((place, output))
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("rigel curve --resume run"), "{said}");
    assert_eq!(entries(&place.0.join("storage")), Vec::<PathBuf>::new());
    let resumed = rigel(&place, "curve --resume run --json --no-progress")
        .output()
        .unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    let document: serde_json::Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(document["curve"]["log"], "grow");
    let points = document["points"].as_array().unwrap();
    let outstanding = points.iter().map(|point| point["depth"].as_u64());
    assert_eq!(outstanding.collect::<Vec<_>>(), [Some(1), Some(4)]);
    for point in points {
        let class = &point["classes"][0];
        assert_eq!(class["writes"], class["done"], "{class}");
        assert!(class["done"].as_u64().unwrap() > 0, "{class}");
    }
    assert_eq!(entries(&place.0.join("storage")), Vec::<PathBuf>::new());
}

#[test]
fn a_target_that_shrank_is_said() {
    let (place, said) = in_time("reads failed", |factor| {
        let place = Place::new(&format!("interrupt-shrank-{factor}"));
        let file = place.0.join("file");
        std::fs::write(&file, vec![7; 8 << 20]).unwrap();
        let line = format!(
            "curve file --depth 4 --precision 0.1% --point-min {0}s --point-max {0}s --out run",
            2 * factor
        );
        let child = rigel(&place, &line)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("it measures", || journal_lines(&place.0.join("run")) >= 1);
        wait(1200);
        std::fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.contains("I/Os failed").then_some((place, said))
    });
    assert!(
        said.contains("I/Os failed: 'file' shrank from 8 MiB to 1 MiB"),
        "{said}"
    );
    let report = rigel(&place, "report run --verbose").output().unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(
        report.contains("the target may have become smaller"),
        "{report}"
    );
}

#[test]
fn logs_of_many_writers_that_do_not_fit_together_are_refused_before_the_first_is_made() {
    const NAME: &str =
        "logs_of_many_writers_that_do_not_fit_together_are_refused_before_the_first_is_made";
    test(NAME, || {
        let place = Place::new("interrupt-logs");
        // Room for the logs of some writers, beside the scratch file and what stays free.
        let mounted = Mounted::in_memory(&place, "size=330m")?;
        for log in ["grow+own", "reused+own", "grow+own,reused+own"] {
            let line =
                format!("curve small --log {log} --writers 1..64 --scratch-size 64MiB --out run");
            let said = ends(&place, &line, 2);
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            let files = if log.contains(',') { 128 } else { 64 };
            assert!(
                said.contains(&format!("logs of {files} writers in small: "))
                    && said.contains("does not fit")
                    && said.contains("give fewer writers (--writers)"),
                "{said}"
            );
            assert_eq!(entries(&mounted.0), [] as [PathBuf; 0]);
            assert!(!place.0.join("run").exists());
        }
        let line = "curve small --log grow+own --writers 2,4 --scratch-size 64MiB --out run \
                    --precision 0.1% --point-min 1s --point-max 1s";
        ends(&place, line, 0);
        let run = Run::read(&place.0.join("run")).unwrap();
        let is_whole = |point: &PointRecord| point.streams[0].total().failed.is_empty();
        assert!(run.points.iter().all(is_whole));
        assert_eq!(run.complete().len(), 2);
        Ok(())
    });
}
