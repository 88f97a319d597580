//! Helpers shared by several test files.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod fake_root;
// The unit tests of crates include it too.
mod golden;
pub(crate) mod launched;
pub(crate) mod pmi;
pub(crate) mod schema;
mod screen;

use rigel_analyse::Subject;
use rigel_analyse::plan::Plan;
use rigel_analyse::{Calibration, SoFar, calibration, is_enough};
use rigel_device::engine::Engine;
use rigel_drive::Terms;
use rigel_model::record::journal::Header;
use rigel_model::record::journal::Run;
use rigel_model::record::journal::{self, EngineChoice};
use rigel_model::record::visits::joined;
use rigel_model::record::{PointRecord, Window};
use rigel_model::workload::{content, rng::Rng};
use rigel_model::{Host, Nanos, Point, SimSpec, Target, TargetFacts};
use rigel_verbs::calibrate::CalibrateRequest;
use rigel_verbs::{Evaluated, Verb};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A file that is removed when it is dropped.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Directory for test files: on the disk of the build, because memory filesystems lack features
/// under test.
pub(crate) fn scratch_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// A file of `bytes` random bytes on disk, with a name that begins with `name`.
pub(crate) fn scratch_file(name: &str, bytes: u64) -> Scratch {
    let path = scratch_directory().join(format!("{name}-{}.dat", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    let mut piece = vec![0; 1 << 20];
    let mut rng = Rng::new(bytes, 0);
    let mut left = bytes;
    while left > 0 {
        content::fill(&mut piece, &mut rng);
        let length = usize::try_from(left.min(piece.len() as u64)).unwrap();
        file.write_all(&piece[..length]).unwrap();
        left -= length as u64;
    }
    file.sync_all().unwrap();
    Scratch { path }
}

/// Drives a point, if requested until its precision is reached.
pub(crate) fn run(engine: &dyn Engine, point: &Point) -> PointRecord {
    let enough = |classes: &[Vec<Window>]| is_enough(point.until, &classes[0]);
    let terms = Terms {
        workers: 1,
        stop: &AtomicBool::new(false),
        enough: &enough,
        cue: None,
    };
    rigel_drive::point(engine, point, &terms, &mut |_| ()).unwrap()
}

/// The usual calibration with short closing measurements, since a model's time is not free either.
pub(crate) fn usual_calibration() -> CalibrateRequest {
    CalibrateRequest {
        closing: Nanos::from_secs(5),
        ..CalibrateRequest::DEFAULT
    }
}

/// Runs a calibration as long as its next point is `wanted`.
pub(crate) fn calibrate(
    engine: &dyn Engine,
    request: &CalibrateRequest,
    seed: u64,
    wanted: impl Fn(&Point) -> bool,
) -> Calibration {
    let mut records: Vec<PointRecord> = Vec::new();
    let mut so_far = SoFar::default();
    let usable = engine.usable();
    while let Some(point) = request
        .next(usable, seed, so_far.of(&records, Some(request.bound)))
        .filter(&wanted)
    {
        assert!(
            records.len() < 400,
            "the search does not end: {}",
            point.coordinates
        );
        if let Some(warming) = request.warming(point.coordinates, usable, seed) {
            run(engine, &warming);
        }
        let record = run(engine, &point);
        records.push(record);
    }
    calibration(&joined(&records), request.bound, request.precision)
}

/// Why a test cannot run here.
pub(crate) struct Missing(pub(crate) String);

/// Runs the body of a test, or reports why it cannot run.
pub(crate) fn test(name: &str, body: impl FnOnce() -> Result<(), Missing>) {
    if let Err(Missing(reason)) = body() {
        assert!(
            std::env::var_os("RIGEL_REQUIRE_ALL").is_none(),
            "{name} must run here, and cannot: {reason}"
        );
        say_skipped(name, &reason);
    }
}

/// Prints the message past the test harness, which hides the output of passing tests.
pub(crate) fn say_skipped(name: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
}

/// Sends a signal to a process, which must be there.
#[track_caller]
pub(crate) fn signal(process: u32, name: &str) {
    let process = process.to_string();
    let status = Command::new("kill").args(["-s", name, &process]).status();
    assert!(status.unwrap().success(), "kill -s {name} {process}");
}

/// What a program wrote to stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the program, which must end with this status.
#[track_caller]
pub(crate) fn ends(place: &Place, line: &str, status: i32) -> Output {
    let output = rigel(place, line).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{line}\n{said}");
    output
}

/// Runs a program that the test needs. Its failure is a reason to skip the test.
pub(crate) fn need(program: &str, arguments: &[&str]) -> Result<String, Missing> {
    let output = Command::new(program)
        .args(arguments)
        .env(
            "PATH",
            "/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/\
             bin",
        )
        .output()
        .map_err(|error| Missing(format!("{program}: {error}")))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    } else {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        Err(Missing(format!(
            "{program} {}: {said}",
            arguments.join(" ")
        )))
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are plain")
}

/// Directory of one test, removed on drop.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    /// Tests of one program run at once, some with the same name.
    pub(crate) fn new(name: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let own = format!("{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A directory in memory, if this process may mount: for a database whose disk is not under
    /// test.
    pub(crate) fn in_memory(name: &str) -> Self {
        let place = Self::new(name);
        let _ = need(
            "mount",
            &["-t", "tmpfs", "-o", "size=3g", "tmpfs", text(&place.0)],
        );
        place
    }

    /// A file of `bytes` without allocated blocks, as made by `truncate`.
    pub(crate) fn file(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.0.join(name);
        File::create(&path).unwrap().set_len(bytes).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let device = |path: &Path| path.metadata().map(|facts| facts.dev()).ok();
        if device(&self.0) != self.0.parent().and_then(device) {
            let _ = need("umount", &["--lazy", text(&self.0)]);
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A loop device on a file, detached on drop.
pub(crate) struct Loop(pub(crate) PathBuf);

impl Loop {
    /// A device on the file, where it can be seen who holds one: Rigel writes nowhere else.
    pub(crate) fn new(file: &Path) -> Result<Self, Missing> {
        /// The first process namespace of every machine, by the kernel's `PROC_PID_INIT_INO`.
        const ALL_PROCESSES: &str = "pid:[4026531836]";
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        if namespace != Path::new(ALL_PROCESSES) {
            let why = "a container with its own process namespace does not show who holds a device";
            return Err(Missing(why.into()));
        }
        need("losetup", &["--find", "--show", "--partscan", text(file)])
            .map(|device| Self(device.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = need("partx", &["--delete", text(&self.0)]);
        let _ = need("losetup", &["--detach", text(&self.0)]);
    }
}

/// A loop device of `bytes` in a directory of its own, and the turn of its test, which ends last.
pub(crate) fn loop_device(name: &str, bytes: u64) -> Result<(File, Place, Loop), Missing> {
    let turn = one_at_a_time();
    let place = Place::new(name);
    let device = Loop::new(&place.file("file", bytes))?;
    Ok((turn, place, device))
}

/// A mounted filesystem, unmounted on drop.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    pub(crate) fn new(device: &Path, place: &Place) -> Result<Self, Missing> {
        let point = place.0.join("mounted");
        std::fs::create_dir_all(&point).unwrap();
        need("mount", &[text(device), text(&point)]).map(|_| Self(point))
    }

    /// A small filesystem in memory in the directory `small`, which is soon full.
    pub(crate) fn in_memory(place: &Place, options: &str) -> Result<Self, Missing> {
        let point = place.0.join("small");
        std::fs::create_dir(&point).unwrap();
        need(
            "mount",
            &["-t", "tmpfs", "-o", options, "tmpfs", text(&point)],
        )
        .map(|_| Self(point))
    }

    pub(crate) fn remount(&self, options: &str) -> Result<(), Missing> {
        need(
            "mount",
            &["-o", &format!("remount,{options}"), text(&self.0)],
        )
        .map(drop)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = need("umount", &[text(&self.0)]);
    }
}

/// Lock for tests with loop devices. The kernel assigns them by number, so a test could get a
/// device that another test, of this or another program, is about to detach. Held while the file is
/// open.
pub(crate) fn one_at_a_time() -> File {
    let lock = File::create(scratch_directory().join("devices.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    lock
}

/// The program with these arguments, run in the directory of the test.
pub(crate) fn rigel(place: &Place, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rigel"));
    command
        .args(arguments.split_whitespace())
        .current_dir(&place.0);
    command
}

/// A program that is ended with its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program with this command line, and waits until its journal in `run` has a measurement.
pub(crate) fn begun(place: &Place, line: &str, run: &Path) -> Child {
    let mut command = rigel(place, line);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().unwrap();
    wait_until("something is measured", || journal_lines(run) >= 2);
    child
}

/// An option of `env` for what a test sends signals to. The tests may run below `nohup` or in the
/// background of a shell, whose ignored signals every child inherits.
pub(crate) const DEFAULT_SIGNALS: &str = "--default-signal=HUP,INT,QUIT,TERM";

/// The sorted entries of a directory.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    entries
}

/// A run as it is compared with others.
pub(crate) fn subject<'a>(name: &str, run: &'a Run) -> Subject<'a> {
    let verb = rigel_verbs::of(&run.header).unwrap();
    rigel_verbs::subject(name, run, &*verb, &*verb.evaluate(run))
}

/// A run with its results.
pub(crate) fn evaluated(run: &Run) -> Evaluated {
    Evaluated::of(run.clone()).unwrap()
}

/// The header of the journal of a run on a model.
pub(crate) fn header(spec: SimSpec, request: &dyn Verb, started: &str) -> Header {
    let (name, usable) = (spec.to_string(), spec.bytes);
    Header {
        format: journal::FORMAT,
        version: "0".into(),
        started: started.into(),
        command: Vec::new(),
        target: Target::Sim(spec),
        engine: EngineChoice {
            name: "sim".into(),
            buffered: false,
            verify: false,
        },
        engine_about: String::new(),
        points: Vec::new(),
        invocation: request.invocation(),
        host: Host::default(),
        facts_of_others: Vec::new(),
        facts: TargetFacts {
            server: None,
            name,
            usable,
            members: Vec::new(),
        },
        findings: Vec::new(),
        ranks: None,
        says_end: false,
    }
}

/// The processes of a program: the one that was started, and the one that it started to touch the
/// storage.
pub(crate) fn processes(child: &Child) -> Vec<u32> {
    let id = child.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    std::iter::once(id).chain(children).collect()
}

/// Kills a program, and waits until both of its processes have ended.
pub(crate) fn kill(child: &mut Child) -> std::process::ExitStatus {
    let all = processes(child);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let has_ended = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
        state.is_none_or(|state| state.starts_with('Z'))
    };
    wait_until("its processes have ended", || all.iter().all(has_ended));
    status
}

/// Peak memory of a program so far, in bytes; 0 once it has ended.
pub(crate) fn peak_so_far(child: &Child) -> u64 {
    let peaks = processes(child).into_iter().map(peak_of_process);
    peaks.max().unwrap_or(0)
}

fn peak_of_process(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// Waits until a process ends. Returns its exit status and its peak memory in bytes.
pub(crate) fn peak_of(child: &mut Child) -> (ExitStatus, u64) {
    let mut peak = 0;
    loop {
        // The kernel stores the peak. Frequent polling only avoids missing its last value.
        peak = peak_so_far(child).max(peak);
        if let Some(status) = child.try_wait().unwrap() {
            return (status, peak);
        }
        wait(2);
    }
}

/// Waits for this number of milliseconds.
pub(crate) fn wait(milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
}

/// Waits until a condition is true, and gives up after minutes. That is not a bound on speed. It
/// counts naps instead of time, so that a machine that stands still for a while does not fail the
/// test.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if is_so() {
            return;
        }
        wait(10);
    }
    panic!("waited in vain until {what}");
}

/// Number of complete lines of a run's journal.
pub(crate) fn journal_lines(run: &Path) -> usize {
    std::fs::read_to_string(run.join("journal.jsonl")).map_or(0, |text| text.matches('\n').count())
}

/// Retries something that must happen during a run. An attempt gets a factor for the length of its
/// run. It returns `None` if the run ended first because the test was delayed; then a longer run is
/// tried.
#[track_caller]
pub(crate) fn in_time<T>(what: &str, attempt: impl FnMut(u32) -> Option<T>) -> T {
    let found = [1, 8, 64].into_iter().find_map(attempt);
    found.unwrap_or_else(|| {
        panic!("three runs, the last 64 times as long as the first, were over before {what}")
    })
}

/// Fails if `text` differs from the golden file `name`; `UPDATE_GOLDEN=1` rewrites the file.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    golden::check(name, text);
}

/// As [`golden`], for the text that is shown by default: it fits on a screen.
#[track_caller]
pub(crate) fn golden_screen(name: &str, text: &str) {
    screen::must_fit(text);
    golden::check(name, text);
}
