//! Storage that stops answering: the run says so, ends at a signal whatever the device does, keeps what
//! it measured, and can be resumed.
//!
//! The device is a file of this process that answers no read while it is told to hang. It never
//! answers between the hang and the end of the program, which its own log proves.

use crate::common::{
    Loop, Missing, Mounted, Place, begun, in_time, journal_lines, loop_device, need, one_at_a_time,
    processes, rigel, signal, test, text, wait, wait_until,
};
use crate::device::{Behaviour, Device, Served};
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord, StallChange, StallEvent, StreamRecord};
use rigel_model::{GIB, MIB, Nanos};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Reads that the device serves at once; as many are outstanding, so that nothing else is served
/// while it hangs.
const DEPTH: usize = 4;

/// A program that measures a device, and what it has printed to stderr.
struct Measuring {
    child: Child,
    place: Place,
    device: Device,
}

impl Measuring {
    fn start(name: &str, arguments: &str) -> Result<Self, Missing> {
        let place = Place::new(name);
        let behaviour = Behaviour {
            servers: DEPTH,
            ..Behaviour::fixed(Duration::from_millis(1))
        };
        let device = Device::mount(&place.0, 64 * MIB, behaviour)
            .map_err(|error| Missing(error.to_string()))?;
        let printed = File::create(place.0.join("stderr")).unwrap();
        let child = rigel(&place, &arguments.replace("DEVICE", text(&device.path)))
            .stdout(Stdio::null())
            .stderr(printed)
            .spawn()
            .unwrap();
        Ok(Self {
            child,
            place,
            device,
        })
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(self.place.0.join("stderr")).unwrap_or_default()
    }

    fn run(&self) -> Run {
        Run::read(&self.place.0.join("run")).unwrap()
    }

    /// Hangs the device once the first point is in the journal, and waits until that is said.
    fn hang(&self) {
        let run = self.place.0.join("run");
        wait_until("the first point is done", || journal_lines(&run) >= 2);
        self.device.hang(true);
        let says = || self.printed().contains("nothing has completed for");
        wait_until("the stall is said", says);
    }

    fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for the end of the program, during which the device must not answer.
    fn end(&mut self) -> ExitStatus {
        let answered = self.device.answered();
        let mut status = None;
        wait_until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(self.device.answered(), answered, "the device answered");
        status.unwrap()
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.device.hang(false);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True if an operation of the point was outstanding for the whole stall. What of it lies in the
/// warm-up is not measured.
fn spans(point: &PointRecord, event: &StallEvent) -> bool {
    let longest = point.streams.iter().map(StreamRecord::longest).max();
    longest.unwrap_or(0) + point.warm_up.0 >= event.stalled.silent.0
}

fn a_signal_ends(engine: &str) {
    let name = format!("a_signal_ends_a_hung_{engine}");
    test(&name, || {
        let arguments = format!(
            "curve DEVICE --engine {engine} --depth {DEPTH} --precision 0.1% --point-max 60s --out run"
        );
        let mut measuring = Measuring::start(&name, &arguments)?;
        measuring.hang();
        measuring.signal("TERM");
        let status = measuring.end();
        let printed = measuring.printed();
        assert_eq!(status.code(), Some(1), "{printed}");
        let run = measuring.run();
        let changes: Vec<StallChange> = run.stalls.iter().map(|event| event.change).collect();
        assert_eq!(changes.first(), Some(&StallChange::Begun), "{printed}");
        assert_eq!(changes.last(), Some(&StallChange::Ended), "{printed}");
        let outstanding = run.stalls[0].stalled.outstanding;
        assert_eq!(outstanding, DEPTH as u64, "{printed}");
        // What was measured is there, with what was outstanding.
        let (last, complete) = run.points.split_last().unwrap();
        assert!(complete.iter().all(|point| point.end == End::Complete));
        assert!(!complete.is_empty());
        assert!(
            matches!(&last.end, End::Broken(why) if why.contains("nothing has completed")),
            "{:?}",
            last.end
        );
        let stream = &last.streams[0];
        let censored = stream
            .censored
            .as_ref()
            .map_or(0, |left| left.histogram.count());
        // A device that hangs during the warm-up may keep the thread that would begin to measure.
        let is_measured = last.measured > Nanos(0);
        assert!(!is_measured || censored >= DEPTH as u64, "{censored}");
        assert!(!is_measured || spans(last, &run.stalls[0]), "{last:?}");
        assert!(printed.contains("nothing has completed"), "{printed}");
        // Every report says so.
        let report = |arguments: &str| {
            let output = rigel(&measuring.place, arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let document: serde_json::Value =
            serde_json::from_str(&report("report run --json")).unwrap();
        assert_eq!(
            document["stalls"].as_array().unwrap().len(),
            run.stalls.len()
        );
        let sentence = document["conclusion"]["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("while nothing has completed"),
            "{sentence}"
        );
        let shown = report("report run --verbose");
        assert!(shown.contains("while nothing has completed"), "{shown}");
        // The device goes on, and so does the run.
        measuring.device.hang(false);
        let resumed = rigel(&measuring.place, "curve --resume run --no-progress");
        let mut resumed = resumed;
        let resumed = resumed.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut resumed = resumed.spawn().unwrap();
        let before = run.points.len();
        let has_more = || measuring.run().points.len() > before;
        wait_until("a further point is measured", || {
            has_more() || resumed.try_wait().unwrap().is_some()
        });
        assert!(has_more(), "{:?}", resumed.wait_with_output());
        signal(resumed.id(), "INT");
        let output = resumed.wait_with_output().unwrap();
        assert!(output.status.code().is_some());
        Ok(())
    });
}

#[test]
fn a_signal_ends_a_run_on_uring_whose_device_hangs() {
    a_signal_ends("uring");
}

#[test]
fn a_signal_ends_a_run_on_libaio_whose_device_hangs() {
    a_signal_ends("libaio");
}

#[test]
fn a_signal_ends_a_run_on_psync_whose_device_hangs() {
    a_signal_ends("psync");
}

#[test]
fn a_second_signal_ends_a_hung_run_at_once() {
    test("a_second_signal_ends_a_hung_run", || {
        let arguments = format!("curve DEVICE --engine psync --depth {DEPTH} --out run");
        let mut measuring = Measuring::start("hang-second-signal", &arguments)?;
        measuring.hang();
        measuring.signal("INT");
        wait(500);
        measuring.signal("INT");
        let status = measuring.end();
        assert!(!status.success());
        Ok(())
    });
}

#[test]
fn a_device_that_goes_on_is_said_to_go_on() {
    test("a_device_that_goes_on", || {
        let arguments = format!("curve DEVICE --depth {DEPTH} --out run");
        let mut measuring = Measuring::start("hang-goes-on", &arguments)?;
        measuring.hang();
        measuring.device.hang(false);
        let status = {
            let mut status = None;
            wait_until("the program ends", || {
                status = measuring.child.try_wait().unwrap();
                status.is_some()
            });
            status.unwrap()
        };
        let printed = measuring.printed();
        assert!(status.success(), "{printed}");
        assert!(printed.contains("operations complete again"), "{printed}");
        let run = measuring.run();
        let last = run.stalls.last().map(|event| event.change);
        assert_eq!(last, Some(StallChange::Over));
        assert!(run.points.iter().any(|point| spans(point, &run.stalls[0])));
        Ok(())
    });
}

/// The longest stall of a report, in seconds, and the sentence about stalls.
fn longest_stall(measuring: &Measuring) -> (f64, String) {
    let output = rigel(&measuring.place, "report run --json")
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = report["points"].as_array().unwrap();
    let classes = points
        .iter()
        .flat_map(|point| point["classes"].as_array().unwrap());
    let longest = classes.filter_map(|class| class["stalls"]["longest_seconds"].as_f64());
    let mut findings = report["findings"].as_array().unwrap().iter();
    let stall = findings.find(|finding| finding["name"] == "stall");
    let what = stall.map_or_else(String::new, |stall| stall["what"].as_str().unwrap().into());
    (longest.fold(0.0, f64::max), what)
}

/// A hang of several visits' length, wherever in them it begins. The device's own log has how long it held reads.
#[test]
fn a_stall_that_outlasts_visits_is_told_with_its_length() {
    test("a_stall_that_outlasts_visits", || {
        let line = format!(
            "curve DEVICE --depth 1,2,{DEPTH} --point-min 1s --point-max 3s --seed 3 --no-progress --out run"
        );
        let mut measuring = Measuring::start("hang-visits", &line)?;
        let run = measuring.place.0.join("run");
        wait_until("a visit is in the journal", || journal_lines(&run) >= 3);
        measuring.device.hang(true);
        wait(3000);
        measuring.device.hang(false);
        let status = measuring.child.wait().unwrap();
        let printed = measuring.printed();
        assert!(status.success(), "{printed}");
        let log = measuring.device.take();
        let held = log.iter().map(|read| read.went - read.came).max().unwrap();
        let (longest, what) = longest_stall(&measuring);
        assert!(
            longest >= 0.9 * held.as_secs_f64(),
            "{longest} s of {held:?}: {what}"
        );
        let all = span(&log);
        assert!(
            longest <= all.as_secs_f64(),
            "{longest} s of {all:?}: {what}"
        );
        assert!(what.contains("all I/O stalled"), "{what}");
        Ok(())
    });
}

/// The time from the first read that came to the last one that went.
fn span(log: &[Served]) -> Duration {
    let came = log.iter().map(|read| read.came).min().unwrap();
    log.iter().map(|read| read.went).max().unwrap() - came
}

/// The longest time in which no read came.
fn longest_pause(log: &[Served]) -> Duration {
    let mut came: Vec<_> = log.iter().map(|read| read.came).collect();
    came.sort_unstable();
    came.windows(2).map(|two| two[1] - two[0]).max().unwrap()
}

/// A program that was stopped, what its device served, and the longest time of that in its journal. `None` if most of
/// it was between two measurements.
fn stopped(name: &str, load: &str) -> Result<Option<(Measuring, Vec<Served>, Duration)>, Missing> {
    let line = format!("{load} --seed 3 --no-progress --out run");
    let mut measuring = Measuring::start(name, &line)?;
    let run = measuring.place.0.join("run");
    wait_until("it has begun", || journal_lines(&run) >= 1);
    let before = measuring.device.answered();
    wait_until("it reads", || measuring.device.answered() > before + 50);
    // A warm-up takes one second at most.
    wait(2000);
    let all = processes(&measuring.child);
    all.iter().for_each(|process| signal(*process, "STOP"));
    wait(3000);
    all.iter().for_each(|process| signal(*process, "CONT"));
    let status = measuring.child.wait().unwrap();
    assert!(status.code().is_some(), "{}", measuring.printed());
    let points = measuring.run().points.into_iter();
    let suspended = points.flat_map(|point| point.suspended);
    let longest = suspended.map(|one| Duration::from_nanos(one.lasts.0)).max();
    let log = measuring.device.take();
    let longest = longest.filter(|longest| *longest >= longest_pause(&log) / 2);
    Ok(longest.map(|longest| (measuring, log, longest)))
}

/// Stops a program that measures so for three seconds: the report names that pause as its own, and no stall of the
/// storage, of which the device's own log shows none.
fn a_stopped_program_accuses_no_storage(name: &str, load: &str) {
    test(name, || {
        let found = in_time("it was stopped while it measured", |factor| {
            let load = load.replace("SECONDS", &(10 * factor).to_string());
            stopped(&format!("{name}-{factor}"), &load).transpose()
        });
        let (measuring, log, longest) = found?;
        assert!(longest <= span(&log), "{longest:?} of {:?}", span(&log));
        let served = log.iter().map(|read| read.went - read.came).max().unwrap();
        let (stall, what) = longest_stall(&measuring);
        assert!(
            stall < longest.as_secs_f64() / 2.0 || stall <= 2.0 * served.as_secs_f64(),
            "{stall} s: {what}"
        );
        let shown = rigel(&measuring.place, "report run --verbose")
            .output()
            .unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("Rigel itself did not run for"), "{shown}");
        Ok(())
    });
}

#[test]
fn a_stopped_program_accuses_no_storage_of_a_closed_loop() {
    let load = "orion -run advanced -matrix point -num_small 4 -num_large 0 -duration SECONDS --target DEVICE";
    a_stopped_program_accuses_no_storage("stopped-closed", load);
}

#[test]
fn a_stopped_program_accuses_no_storage_of_an_offered_rate() {
    let load = "curve DEVICE --rate 200 --point-min SECONDSs --point-max SECONDSs";
    a_stopped_program_accuses_no_storage("stopped-rate", load);
}

#[test]
fn a_check_of_a_mount_that_hangs_ends_and_names_it() {
    test("a_check_of_a_mount_that_hangs", || {
        let place = Place::new("hang-check");
        let behaviour = Behaviour::fixed(Duration::ZERO);
        let device = Device::mount(&place.0, 64 * MIB, behaviour)
            .map_err(|error| Missing(error.to_string()))?;
        device.hang_all();
        let mut child = rigel(&place, "check")
            .arg(&device.path)
            .stdout(Stdio::null())
            .stderr(File::create(place.0.join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let mut status = None;
        wait_until("the program ends", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        let printed = std::fs::read_to_string(place.0.join("stderr")).unwrap();
        device.hang(false);
        assert_eq!(status.unwrap().code(), Some(1), "{printed}");
        assert!(printed.contains(text(&device.path)), "{printed}");
        assert!(printed.contains("no answer for"), "{printed}");
        Ok(())
    });
}

/// A filesystem that is frozen, until this is dropped.
pub(crate) struct Frozen<'a>(&'a Path);

impl<'a> Frozen<'a> {
    pub(crate) fn begin(directory: &'a Path) -> Result<Self, Missing> {
        need("fsfreeze", &["--freeze", text(directory)]).map(|_| Self(directory))
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = need("fsfreeze", &["--unfreeze", text(self.0)]);
    }
}

/// Starts the program on storage that does not answer, and sends one signal once it has said so.
fn is_said_and_a_signal_ends_it(place: &Place, line: &str) {
    let mut child = rigel(place, line)
        .stdout(Stdio::null())
        .stderr(File::create(place.0.join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let printed = || std::fs::read_to_string(place.0.join("stderr")).unwrap();
    wait_until(&format!("the wait of {line} is said"), || {
        let status = child.try_wait().unwrap();
        assert!(status.is_none(), "{line}: {status:?}, {}", printed());
        printed().contains("waits for storage: nothing has completed for")
    });
    signal(child.id(), "TERM");
    let mut status = None;
    wait_until(&format!("{line} ends"), || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(1), "{line}: {}", printed());
    assert!(printed().contains("left behind"), "{line}: {}", printed());
}

#[test]
fn a_verb_that_reads_files_on_a_mount_that_hangs_says_so_and_a_signal_ends_it() {
    test("a_verb_that_reads_a_mount_that_hangs", || {
        let place = Place::new("hang-read");
        let behaviour = Behaviour::fixed(Duration::ZERO);
        let device = Device::mount(&place.0, 64 * MIB, behaviour)
            .map_err(|error| Missing(error.to_string()))?;
        device.hang_all();
        for verb in [
            "report RUN",
            "import RUN --out imported",
            "compare RUN RUN",
            "advise RUN --for linux",
            "curve --resume RUN",
        ] {
            is_said_and_a_signal_ends_it(&place, &verb.replace("RUN", text(&device.path)));
        }
        // Only now does the storage answer.
        device.hang(false);
        Ok(())
    });
}

#[test]
fn a_watch_notes_when_its_disk_stops_completing_requests_and_when_it_goes_on() {
    test("a_watch_notes_when_its_disk_stops", || {
        let _alone = one_at_a_time();
        let place = Place::new("hang-watch");
        // So slow that it is not read to its end.
        let behaviour = Behaviour::fixed(Duration::from_millis(100));
        let device =
            Device::mount(&place.0, GIB, behaviour).map_err(|error| Missing(error.to_string()))?;
        let disk = Loop::new(&device.path)?;
        let name = disk.0.file_name().unwrap().to_str().unwrap().to_string();
        let mut reader = Command::new("dd")
            .arg(format!("if={}", text(&disk.0)))
            .args(["of=/dev/null", "bs=4096", "iflag=direct"])
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Missing(format!("dd: {error}")))?;
        let run = place.0.join("run");
        let line = format!("watch {} --every 1s --no-progress --out run", text(&disk.0));
        let watch = rigel(&place, &line).stdout(Stdio::null()).spawn().unwrap();
        let stalls = || Run::read(&run).map_or_else(|_| Vec::new(), |run| run.stalls);
        // A machine that stops for a second is a stall of the disk, too: further ones may be there.
        let changes = || {
            let changes = stalls().into_iter().map(|event| event.change);
            changes
                .filter(|change| *change != StallChange::Lasts)
                .collect::<Vec<_>>()
        };
        let last = || changes().last().copied();
        let intervals = || Run::read(&run).map_or(0, |run| run.watched.len());
        wait_until("an interval is in the journal", || intervals() > 0);
        let (begun, over) = (StallChange::Begun, StallChange::Over);
        device.hang(true);
        wait_until("the stall is in the journal", || last() == Some(begun));
        device.hang(false);
        wait_until("its end is in the journal", || last() == Some(over));
        device.hang(true);
        wait_until("it stalls again", || last() == Some(begun));
        signal(watch.id(), "TERM");
        let output = watch.wait_with_output().unwrap();
        device.hang(false);
        let _ = reader.kill();
        let _ = reader.wait();
        assert!(output.status.success(), "{output:?}");
        let changes = changes();
        let (stalls_of, rest) = changes.as_chunks::<2>();
        assert!(rest.is_empty() && stalls_of.len() >= 2, "{changes:?}");
        let (ended, earlier) = stalls_of.split_last().unwrap();
        assert_eq!(*ended, [begun, StallChange::Ended], "{changes:?}");
        assert!(
            earlier.iter().all(|stall| *stall == [begun, over]),
            "{changes:?}"
        );
        for event in stalls() {
            assert_eq!(event.what.as_deref(), Some(name.as_str()));
            assert!(event.stalled.outstanding > 0, "{event:?}");
            assert!(event.stalled.oldest >= event.stalled.silent, "{event:?}");
        }
        let report = |line: &str| {
            let output = rigel(&place, line).output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let shown = report("report run --verbose");
        for part in [
            "nothing has completed for",
            "operations complete again",
            "ended while",
        ] {
            assert!(
                shown.contains(&format!("{name}: {part}")),
                "{part}: {shown}"
            );
        }
        let json: serde_json::Value = serde_json::from_str(&report("report run --json")).unwrap();
        assert_eq!(json["stalls"].as_array().unwrap().len(), stalls().len());
        let findings = json["findings"].as_array().unwrap();
        // A slow machine may lose events, which the sentence of trust names first.
        let causes = json["trust"]["causes"].as_array().unwrap();
        assert!(
            causes.iter().any(|found| found["cause"] == "stall"),
            "{causes:?}"
        );
        let warned = findings.iter().find(|finding| finding["name"] == "stall");
        let warned = warned.unwrap()["what"].as_str().unwrap();
        assert!(
            warned.starts_with(&format!("{name}: nothing has completed for")),
            "{warned}"
        );
        let all = format!("; {} stalls of ten seconds", stalls_of.len());
        assert!(warned.contains(&all), "{all}: {warned}");
        Ok(())
    });
}

#[test]
fn storage_below_the_journal_that_is_slow_after_a_signal_costs_no_report() {
    test("storage_below_the_journal_is_slow", || {
        let (_turn, place, device) = loop_device("hang-journal", 256 * MIB)?;
        need("mkfs.ext4", &["-q", text(&device.0)])?;
        let mounted = Mounted::new(&device.0, &place)?;
        drop(Frozen::begin(&mounted.0)?);
        std::fs::create_dir(place.0.join("storage")).unwrap();
        // One round, and an hour until the next.
        let line = "soak storage --scratch-size 64MiB --work 20ops --every 1h --for 2h --no-progress \
                    --out mounted/run";
        let run = mounted.0.join("run");
        let child = begun(&place, line, &run);
        let frozen = Frozen::begin(&mounted.0).ok();
        assert!(frozen.is_some(), "it could be frozen before");
        signal(child.id(), "INT");
        // A target that takes as long is left behind.
        wait(6000);
        drop(frozen);
        let output = child.wait_with_output().unwrap();
        let (report, said) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            report.contains("The run is not complete: it was stopped after 1 of 2 rounds"),
            "{report}{said}"
        );
        assert!(said.contains("rigel soak --resume mounted/run"), "{said}");
        Ok(())
    });
}

#[test]
fn a_run_that_a_second_signal_ends_says_how_to_go_on() {
    let place = Place::new("hang-second-says");
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let line = "curve storage --scratch-size 64MiB --depth 1,2 --point-min 1s --point-max 1s --no-progress \
                --engine psync --out run";
    // It goes on for twenty seconds at least.
    let child = begun(&place, line, &place.0.join("run"));
    // Stopped, it does not heed the first signal.
    let measuring = processes(&child).into_iter().find(|pid| *pid != child.id());
    signal(measuring.expect("another process measures"), "STOP");
    signal(child.id(), "INT");
    wait(500);
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("ended at once; rigel report run; rigel curve --resume run"),
        "{said}"
    );
}

#[test]
fn what_is_written_to_frozen_storage_is_said_and_a_signal_ends_it() {
    test("what_is_written_to_frozen_storage", || {
        let (_turn, place, device) = loop_device("hang-frozen", 256 * MIB)?;
        need("mkfs.ext4", &["-q", text(&device.0)])?;
        let mounted = Mounted::new(&device.0, &place)?;
        let frozen = Frozen::begin(&mounted.0)?;
        let fio = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/imports/fio_each.json");
        for line in [
            "calibrate mounted --scratch-size 64MiB --out run",
            "check mounted",
            "curve sim:1,1ms --out mounted/run",
            &format!("import {fio} --out mounted/run"),
            &format!("watch {} --out mounted/run", text(&mounted.0)),
        ] {
            is_said_and_a_signal_ends_it(&place, line);
        }
        // Only now does the storage answer.
        drop(frozen);
        Ok(())
    });
}
