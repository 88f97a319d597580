//! A device whose rate is capped by the kernel: our measurements agree with the kernel's counters,
//! read by read.

use super::bounds::nanos;
use super::capped::Group;
use super::witness::Device;
use super::{LENGTH, engine, engine_names, measure, reads, rigel};
use crate::common::{Missing, Place, need, scratch_file, test, text, wait, wait_until};
use rigel_analyse::plan::Plan;
use rigel_analyse::{PointSummary, summarise};
use rigel_model::record::PointRecord;
use rigel_model::{Layout, MIB, Nanos, Pattern, Step, Until, WarmUp};
use rigel_verbs::calibrate::CalibrateRequest;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const DEPTH: u32 = 16;
/// Reads per second.
const CAP: u32 = 2000;

/// Number of reads of a block device since it exists, from the kernel's counters. Includes reads
/// that the kernel merged with others.
pub(crate) fn reads_done(device: &Path) -> u64 {
    let name = device.file_name().unwrap().to_string_lossy();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    stat.split_whitespace()
        .take(2)
        .map(|field| field.parse::<u64>().unwrap())
        .sum()
}

/// The kernel's count of the reads of a device, and the moments before and after it was read.
pub(crate) struct Look {
    pub(crate) before: u64,
    pub(crate) count: u64,
    pub(crate) after: u64,
}

/// The kernel's counts while something was measured; times in nanoseconds and reads since that was
/// requested.
pub(crate) struct Counted {
    pub(crate) looks: Vec<Look>,
    pub(crate) ended: u64,
}

/// Measures while another thread polls the kernel's count of the reads of a device, which was
/// `start` before.
pub(crate) fn polled<T>(device: &Path, start: u64, measure: impl FnOnce() -> T) -> (T, Counted) {
    let began = Instant::now();
    let now = || nanos(began, Instant::now());
    let looks = Mutex::new(Vec::new());
    let over = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let before = now();
                let count = reads_done(device) - start;
                looks.lock().unwrap().push(Look {
                    before,
                    count,
                    after: now(),
                });
                wait(1);
            }
        });
        let measured = catch_unwind(AssertUnwindSafe(measure));
        over.store(true, Ordering::Relaxed);
        measured
    });
    let measured = measured.unwrap_or_else(|panic| resume_unwind(panic));
    let ended = now();
    let looks = looks.into_inner().unwrap();
    (measured, Counted { looks, ended })
}

/// Measures a point, and waits until the kernel's count equals the recorded number.
fn counted(device: &Path, measure: impl FnOnce() -> PointRecord) -> (PointRecord, Counted) {
    let start = reads_done(device);
    let (record, kernel) = polled(device, start, measure);
    let made = record.streams[0].warm_up_done + record.streams[0].total().done;
    // A read can complete before the kernel has counted it.
    wait_until("the kernel has counted every read", || {
        reads_done(device) - start >= made
    });
    assert_eq!(
        reads_done(device) - start,
        made,
        "reads that the kernel counted, and those in the record"
    );
    (record, kernel)
}

/// Measures a device whose reads by the group are capped at `rate` per second. Its blocks are in the
/// page cache, through which it reads: only the cap is slow. `measure` has a thread of its own,
/// because a thread that enters a group stays there.
pub(crate) fn on_capped<T: Send>(
    name: &str,
    rate: u32,
    measure: impl FnOnce(&Group, &Path) -> Result<T, Missing> + Send,
) -> Result<T, Missing> {
    let file = scratch_file(name, 32 * MIB);
    need("losetup", &["--version"])?;
    let group = Group::new()?;
    let device = Device::new(&file)?;
    let path = device.path();
    group.cap(&path, rate)?;
    let measured = std::thread::scope(|scope| scope.spawn(|| measure(&group, &path)).join());
    measured.unwrap_or_else(|panic| resume_unwind(panic))
}

#[test]
fn a_capped_rate_is_measured_as_the_kernel_counts_it() {
    test("a_capped_rate_is_measured_as_the_kernel_counts_it", || {
        // In the page cache, through which these devices read: only the cap is slow.
        let file = scratch_file("truth-throttle", 32 * MIB);
        need("losetup", &["--version"])?;
        let group = Group::new()?;
        let mut runs = Vec::new();
        for name in engine_names() {
            let device = Device::new(&file)?;
            group.cap(&device.path(), CAP)?;
            runs.push((name, device));
        }
        // One device each, so they can run at the same time without affecting each other.
        std::thread::scope(|scope| {
            let threads: Vec<_> = runs
                .iter()
                .map(|(name, device)| scope.spawn(|| capped(&group, name, &device.path())))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("the rate is the kernel's"))
        })
    });
}

fn capped(group: &Group, name: &str, device: &Path) -> Result<(), Missing> {
    const OPS: u64 = 800;
    group.enter()?;
    let engine = engine(name, &[device.to_path_buf()], Layout::Concat, LENGTH, DEPTH);
    let tenth = Nanos::from_millis(100);
    let warm_up = WarmUp {
        least: tenth,
        most: tenth,
    };
    let point = reads(Pattern::Uniform, LENGTH, DEPTH, warm_up, Until::Ops(OPS));
    let (record, kernel) = counted(device, || measure(engine.as_ref(), &point));
    let stream = &record.streams[0];
    let what = format!("{name} on {}", text(device));
    let (warm_up, done) = (stream.warm_up_done, stream.total().done);
    assert_eq!(done, OPS, "{what}");

    // When the kernel had counted more than the warm-up, measuring had begun. When its count was
    // lower by more than the outstanding reads, it had not. A read can complete before the
    // kernel has counted it, but only as many as are outstanding.
    let places = u64::from(DEPTH);
    let after = kernel
        .looks
        .iter()
        .find(|look| look.count > warm_up)
        .map_or(kernel.ended, |look| look.after);
    let before = kernel
        .looks
        .iter()
        .rev()
        .find(|look| look.count + 2 * places < warm_up)
        .map_or(0, |look| look.before);
    let unfinished = kernel
        .looks
        .iter()
        .rev()
        .find(|look| look.count + places < warm_up + done)
        .map_or(0, |look| look.before);
    let (least, most) = (unfinished.saturating_sub(after), kernel.ended - before);
    let measured = record.measured.0;
    assert!(
        (least..=most).contains(&measured),
        "{what}: measured {measured} ns, by the kernel {least} to {most}"
    );
    let rate = done as f64 / record.measured.as_secs_f64();
    let class = &summarise(&record).classes[0];
    assert!(
        (class.iops / rate - 1.0).abs() < 1e-9,
        "{what}: {} IOPS, and {rate} by the record",
        class.iops
    );
    assert!(
        class.littles_law <= f64::from(DEPTH) * (1.0 + 1e-9),
        "{what}: {} outstanding",
        class.littles_law
    );
    Ok(())
}

#[test]
fn every_read_of_a_calibration_is_in_its_records() {
    test("every_read_of_a_calibration_is_in_its_records", || {
        on_capped("truth-calibrate", CAP, calibration)
    });
}

/// The depths of a calibration, each as short as possible. Its results are tested on models, in
/// tests/it/search.rs.
fn calibration(group: &Group, device: &Path) -> Result<(), Missing> {
    group.enter()?;
    let engine = engine(
        "uring",
        &[device.to_path_buf()],
        Layout::Concat,
        LENGTH,
        256,
    );
    let request = CalibrateRequest {
        point_least: Nanos(0),
        point_most: Nanos::from_millis(200),
        depth_max: 16,
        ..CalibrateRequest::DEFAULT
    };
    let mut summaries: Vec<PointSummary> = Vec::new();
    while let Some(point) = request
        .next(engine.usable(), 5, &summaries)
        .filter(|point| point.coordinates.step() == Step::Depth)
    {
        let (record, counted) = counted(device, || crate::common::run(engine.as_ref(), &point));
        let what = point.coordinates.name();
        assert!(
            record.measured.0 + record.warm_up.0 <= counted.ended,
            "{what}: {:?}",
            record.measured
        );
        summaries.push(summarise(&record));
    }
    assert!(
        summaries.len() > 1,
        "the search went on after the first depth"
    );
    Ok(())
}

#[test]
fn no_multiple_far_above_the_cap_is_held() {
    test("no_multiple_far_above_the_cap_is_held", || {
        let place = Place::new("truth-fit");
        on_capped("truth-fit", CAP, |group, device| fit(group, device, &place))
    });
}

/// Offers 500 reads per second and multiples of them to the device.
fn fit(group: &Group, device: &Path, place: &Place) -> Result<(), Missing> {
    const DEMANDED: u32 = 500;
    group.enter()?;
    let demand = place.0.join("demand.csv");
    std::fs::write(
        &demand,
        format!(
            "begin,reads_per_second,seconds\n2026-01-01T00:00,{DEMANDED},60\n\
             2026-01-01T00:01,{DEMANDED},60\n"
        ),
    )
    .unwrap();
    let before = reads_done(device);
    let output = rigel(&[
        "fit",
        text(&demand),
        text(device),
        "--slo",
        "random reads p99<1s",
        "--point-time",
        "2s",
        "--json",
        "--out",
        text(&place.0.join("run")),
    ]);
    let made = reads_done(device) - before;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let multiples = document["fit"]["multiples"].as_array().unwrap();
    assert!(!multiples.is_empty(), "{document}");
    let figure = |one: &Value, name: &str| one[name].as_f64().unwrap();
    // In two seconds, 1.5 times the cap leaves a backlog of a second, on any machine.
    for one in multiples {
        let multiple = figure(one, "multiple");
        let is_far_above = multiple * f64::from(DEMANDED) >= 1.5 * f64::from(CAP);
        assert!(
            one["verdict"] != "kept" || !is_far_above,
            "{multiple} is held: {one}"
        );
    }
    let (_, points) = super::journal(&place.0.join("run"));
    let done: u64 = points
        .iter()
        .flat_map(|point| point["streams"].as_array().unwrap())
        .map(|stream| stream["warm_up_done"].as_u64().unwrap())
        .sum();
    assert!(
        done <= made,
        "{done} reads in the warm-ups, {made} by the kernel"
    );
    Ok(())
}
