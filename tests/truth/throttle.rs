//! A device whose rate is capped by the kernel: what is measured is what the kernel counts, read by read.

use super::bounds::nanos;
use super::capped::Group;
use super::witness::Device;
use super::{ENGINES, LENGTH, engine, measure, reads};
use crate::common::{Missing, need, scratch_file, test, text, wait, wait_until};
use rigel::analyse::{PointSummary, summarise};
use rigel::model::{CalibrateRequest, Layout, MIB, Nanos, Pattern, Step, Until, WarmUp};
use rigel::record::PointRecord;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const DEPTH: u32 = 16;
/// Reads a second.
const CAP: u32 = 2000;

/// Reads that a block device has done since it is there, by the kernel's own count. A read that the kernel put together
/// with another one counts as well.
fn reads_done(device: &Path) -> u64 {
    let name = device.file_name().unwrap().to_string_lossy();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    stat.split_whitespace().take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// The kernel's count of the reads of a device, and when it was looked at: the moments before and after.
struct Look {
    before: u64,
    count: u64,
    after: u64,
}

/// What the kernel counted while a point was measured, in nanoseconds and reads since it was asked for.
struct Counted {
    looks: Vec<Look>,
    ended: u64,
}

/// Measures a point while another thread looks at the kernel's count all the time, until it is what was recorded.
fn counted(device: &Path, measure: impl FnOnce() -> PointRecord) -> (PointRecord, Counted) {
    let start = reads_done(device);
    let began = Instant::now();
    let now = || nanos(began, Instant::now());
    let looks = Mutex::new(Vec::new());
    let over = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let before = now();
                let count = reads_done(device) - start;
                looks.lock().unwrap().push(Look { before, count, after: now() });
                wait(1);
            }
        });
        let measured = catch_unwind(AssertUnwindSafe(measure));
        over.store(true, Ordering::Relaxed);
        measured
    });
    let record = measured.unwrap_or_else(|panic| resume_unwind(panic));
    let ended = now();
    let made = record.streams[0].warm_up_done + record.streams[0].total().done;
    // A read can be over before the kernel has counted it.
    wait_until("the kernel has counted every read", || reads_done(device) - start >= made);
    assert_eq!(reads_done(device) - start, made, "reads that the kernel counted, and those in the record");
    (record, Counted { looks: looks.into_inner().unwrap(), ended })
}

#[test]
fn a_capped_rate_is_measured_as_the_kernel_counts_it() {
    test("a_capped_rate_is_measured_as_the_kernel_counts_it", || {
        // Held by the page cache, which these devices read through: nothing but the cap is slow.
        let file = scratch_file("truth-throttle", 32 * MIB);
        need("losetup", &["--version"])?;
        let group = Group::new()?;
        let mut runs = Vec::new();
        for name in ENGINES {
            let device = Device::new(&file)?;
            group.cap(&device.path(), CAP)?;
            runs.push((name, device));
        }
        // A device to each, so they can run at the same time without knowing of each other.
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                runs.iter().map(|(name, device)| scope.spawn(|| capped(&group, name, &device.path()))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("the rate is the kernel's"))
        })
    });
}

fn capped(group: &Group, name: &str, device: &Path) -> Result<(), Missing> {
    const OPS: u64 = 800;
    group.enter()?;
    let engine = engine(name, &[device.to_path_buf()], Layout::Concat, LENGTH, DEPTH);
    let tenth = Nanos::from_millis(100);
    let warm_up = WarmUp { least: tenth, most: tenth };
    let point = reads(Pattern::Uniform, LENGTH, DEPTH, warm_up, Until::Ops(OPS));
    let (record, kernel) = counted(device, || measure(engine.as_ref(), &point));
    let stream = &record.streams[0];
    let what = format!("{name} on {}", text(device));
    let (warm_up, done) = (stream.warm_up_done, stream.total().done);
    assert_eq!(done, OPS, "{what}");

    // When the kernel had done more than the warm-up, measuring had begun; when it had done less by more than were
    // outstanding, it had not. A read can be over before the kernel has counted it: of so many at most, that is.
    let places = u64::from(DEPTH);
    let after = kernel.looks.iter().find(|look| look.count > warm_up).map_or(kernel.ended, |look| look.after);
    let before = kernel.looks.iter().rev().find(|look| look.count + 2 * places < warm_up).map_or(0, |look| look.before);
    let unfinished =
        kernel.looks.iter().rev().find(|look| look.count + places < warm_up + done).map_or(0, |look| look.before);
    let (least, most) = (unfinished.saturating_sub(after), kernel.ended - before);
    let measured = record.measured.0;
    assert!((least..=most).contains(&measured), "{what}: measured {measured} ns, by the kernel {least} to {most}");
    let rate = done as f64 / record.measured.as_secs_f64();
    let class = &summarise(&record).classes[0];
    assert!((class.iops / rate - 1.0).abs() < 1e-9, "{what}: {} IOPS, and {rate} by the record", class.iops);
    assert!(class.littles_law <= f64::from(DEPTH) * (1.0 + 1e-9), "{what}: {} outstanding", class.littles_law);
    Ok(())
}

#[test]
fn every_read_of_a_calibration_is_in_its_records() {
    test("every_read_of_a_calibration_is_in_its_records", || {
        let file = scratch_file("truth-calibrate", 32 * MIB);
        need("losetup", &["--version"])?;
        let group = Group::new()?;
        let device = Device::new(&file)?;
        group.cap(&device.path(), CAP)?;
        // A thread of its own: what enters a group stays there.
        std::thread::scope(|scope| scope.spawn(|| calibration(&group, &device.path())).join().expect("all are counted"))
    });
}

/// The depths of a calibration, each as short as may be. What it finds is proved on models, in tests/search.rs.
fn calibration(group: &Group, device: &Path) -> Result<(), Missing> {
    group.enter()?;
    let engine = engine("uring", &[device.to_path_buf()], Layout::Concat, LENGTH, 256);
    let request = CalibrateRequest { point_most: Nanos::from_millis(200), depth_max: 16, ..CalibrateRequest::DEFAULT };
    let mut summaries: Vec<PointSummary> = Vec::new();
    while let Some(point) =
        request.next(engine.usable(), 5, &summaries).filter(|point| point.coordinates.step() == Step::Depth)
    {
        let (record, counted) = counted(device, || crate::common::run(engine.as_ref(), &point));
        let what = point.coordinates.name();
        assert!(record.measured.0 + record.warm_up.0 <= counted.ended, "{what}: {:?}", record.measured);
        summaries.push(summarise(&record));
    }
    assert!(summaries.len() > 1, "the search went on after the first depth");
    Ok(())
}
