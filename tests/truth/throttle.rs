//! A device whose rate is capped by the kernel: the cap is what must be measured.

use super::{ENGINES, assert_close, engine, measure, reads};
use crate::common::{Loop, Missing, calibrate, need, scratch_file, test, text};
use rigel::analyse::{Calibration, summarise};
use rigel::model::{Layout, MIB, Nanos, Pattern, Step, Until, WarmUp};
use rigel::plan::CalibrateRequest;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const DEPTH: u32 = 16;
const LENGTH: u32 = 8192;

/// The kernel hands a cap out in slices of a tenth of a second, and may do a whole slice more or less: of a measurement
/// this long that is half a percent.
const MEASURED: Nanos = Nanos::from_secs(20);
/// The opening burst is over by then.
const WARM_UP: WarmUp = WarmUp { least: Nanos::from_millis(1500), most: Nanos::from_secs(3) };

/// A control group of this test, whose threads are capped on some devices; removed at the end.
struct Group {
    directory: PathBuf,
    /// Version 1 caps threads; version 2 only whole processes, and this one must go back to where it was.
    home: Option<PathBuf>,
}

impl Group {
    fn new() -> Result<Self, Missing> {
        // Tests of this file run at the same time.
        static GROUPS: AtomicUsize = AtomicUsize::new(0);
        let (v1, v2) = (Path::new("/sys/fs/cgroup/blkio"), Path::new("/sys/fs/cgroup"));
        let name = format!("rigel-truth-{}-{}", std::process::id(), GROUPS.fetch_add(1, Ordering::Relaxed));
        if v1.join("cgroup.procs").exists() {
            let directory = v1.join(name);
            make(&directory)?;
            return Ok(Self { directory, home: None });
        }
        let controllers = fs::read_to_string(v2.join("cgroup.controllers")).unwrap_or_default();
        if !controllers.split_whitespace().any(|controller| controller == "io") {
            return Err(Missing("no control group can cap a device's I/O".into()));
        }
        write(&v2.join("cgroup.subtree_control"), "+io")?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let directory = v2.join(name);
        make(&directory)?;
        let group = Self { directory, home: Some(v2.join(own)) };
        write(&group.directory.join("cgroup.procs"), "0")?;
        Ok(group)
    }

    /// At most `rate` reads a second on `device`.
    fn cap(&self, device: &Path, rate: u32) -> Result<(), Missing> {
        let name = device.file_name().unwrap().to_string_lossy().into_owned();
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        let number = number.trim();
        match self.home {
            None => write(&self.directory.join("blkio.throttle.read_iops_device"), &format!("{number} {rate}")),
            Some(_) => write(&self.directory.join("io.max"), &format!("{number} riops={rate}")),
        }
    }

    /// The calling thread, and every thread that it starts, is capped from now on.
    fn enter(&self) -> Result<(), Missing> {
        if self.home.is_none() { write(&self.directory.join("tasks"), "0") } else { Ok(()) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            let _ = write(&home.join("cgroup.procs"), "0");
        }
        // Threads that have just ended leave a little later.
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

fn make(directory: &Path) -> Result<(), Missing> {
    fs::create_dir(directory).map_err(|error| Missing(format!("{}: {error}", directory.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Missing> {
    fs::write(path, text).map_err(|error| Missing(format!("'{text}' into {}: {error}", path.display())))
}

#[test]
fn a_capped_rate_is_measured_as_the_cap() {
    test("a_capped_rate_is_measured_as_the_cap", || {
        // Held by the page cache, which these devices read through: nothing but the cap is slow.
        let file = scratch_file("truth-throttle", 32 * MIB);
        need("losetup", &["--version"])?;
        let group = Group::new()?;
        let mut runs = Vec::new();
        for rate in [2000, 500] {
            for name in ENGINES {
                let device = Loop::new(&file.path)?;
                group.cap(&device.0, rate)?;
                runs.push((name, rate, device));
            }
        }
        // A device to each, so they can run at the same time without knowing of each other.
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                runs.iter().map(|(name, rate, device)| scope.spawn(|| capped(&group, name, *rate, device))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("the rate is the cap"))
        })
    });
}

fn capped(group: &Group, name: &str, rate: u32, device: &Loop) -> Result<(), Missing> {
    group.enter()?;
    let engine = engine(name, std::slice::from_ref(&device.0), Layout::Concat, LENGTH, DEPTH);
    let point = reads(Pattern::Uniform, LENGTH, DEPTH, WARM_UP, Until::Elapsed(MEASURED));
    let record = measure(engine.as_ref(), &point);
    let summary = summarise(&record);
    let class = &summary.classes[0];
    let what = format!("{name} on {} capped at {rate}/s", text(&device.0));
    assert_close(class.iops, rate.into(), 0.01, &what);
    // So the time of each is known as well.
    assert_close(class.littles_law, DEPTH.into(), 0.01, &format!("outstanding, {what}"));
    assert!(record.streams[0].warm_up_done > 0, "{what}");
    Ok(())
}

/// Runs of one calibration that must agree.
const RUNS: usize = 10;

#[test]
fn a_calibration_names_the_cap_and_ten_of_them_agree() {
    test("a_calibration_names_the_cap_and_ten_of_them_agree", || {
        let file = scratch_file("truth-calibrate", 32 * MIB);
        need("losetup", &["--version"])?;
        let group = Group::new()?;
        let mut devices = Vec::new();
        for rate in [2000; RUNS].into_iter().chain([5000]) {
            let device = Loop::new(&file.path)?;
            group.cap(&device.0, rate)?;
            devices.push((rate, device));
        }
        // Ten devices of one cap, at the same time: each calibration spends it on waiting.
        let found: Vec<(u32, Calibration)> = std::thread::scope(|scope| {
            let calibrate = |(rate, device): &(u32, Loop)| {
                group.enter()?;
                Ok::<_, Missing>((*rate, search(device)))
            };
            let threads: Vec<_> = devices.iter().map(|one| scope.spawn(move || calibrate(one))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a calibration comes to its end"))
                .collect::<Result<_, _>>()
        })?;
        for (rate, found) in &found {
            let what = format!("capped at {rate}/s");
            let cap = found.curve.cap.unwrap_or_else(|| panic!("{what} and not named: {:?}", found.curve));
            assert_close(cap.throughput, (*rate).into(), 0.01, &what);
            assert!(found.findings.iter().any(|finding| finding.name == "cap"), "{what}: {:?}", found.findings);
            // One read after the other would give several times as many.
            let knee = found.curve.knee.unwrap();
            assert!(knee.load < 2.5, "{what}: {knee:?}");
        }
        let maxima =
            || found.iter().filter(|(rate, _)| *rate == 2000).map(|(_, found)| found.maximum.unwrap().iops.value);
        let (least, greatest) = maxima().fold((f64::MAX, 0.0f64), |(low, high), iops| (low.min(iops), high.max(iops)));
        assert!(greatest / least < 1.01, "{:?}", maxima().collect::<Vec<_>>());
        Ok(())
    });
}

/// The depths of a calibration: what is at rest while it waits for its cap leaves the CPU to the others.
fn search(device: &Loop) -> Calibration {
    let engine = engine("uring", std::slice::from_ref(&device.0), Layout::Concat, LENGTH, 256);
    // Where the machine is busy the kernel hands out a slice late now and then, and makes up for it: such points go on.
    let request = CalibrateRequest { point_most: MEASURED, ..CalibrateRequest::DEFAULT };
    calibrate(engine.as_ref(), &request, 5, |point| point.coordinates.step == Step::Depth)
}
