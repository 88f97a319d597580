//! The kernel's mean time of an I/O: it contains the time that a device is known to take, it is
//! contained in Rigel's, and it lacks what an I/O waits for before the queue.

use super::device::Behaviour;
use super::faulty::mount;
use super::throttle::on_capped;
use super::{LENGTH, engine, measure, reads};
use crate::common::{Loop, Place, need, test, text, wait_until};
use rigel_analyse::{ClassSummary, summarise};
use rigel_device::observe::Observer;
use rigel_model::record::PointRecord;
use rigel_model::{Layout, Nanos, Pattern, Sample, Until, WarmUp};
use std::path::Path;
use std::time::Duration;

const OPS: u64 = 400;
const DEPTH: u32 = 8;
/// Reads per second.
const CAP: u32 = 1000;

/// The summary of reads of a device that nobody else uses, with the kernel's counters before and
/// after.
fn measured(device: &Path) -> (PointRecord, ClassSummary) {
    let name = device.file_name().unwrap().to_string_lossy().into_owned();
    let observer = Observer::new([name]);
    let engine = engine(
        "uring",
        &[device.to_path_buf()],
        Layout::Concat,
        LENGTH,
        DEPTH,
    );
    let point = reads(
        Pattern::Uniform,
        LENGTH,
        DEPTH,
        WarmUp::NONE,
        Until::Ops(OPS),
    );
    let reads_of = |sample: &Sample| sample.devices.values().map(|counters| counters.reads).sum();
    let before = observer.sample(Nanos(0));
    let first: u64 = reads_of(&before);
    let mut record = measure(engine.as_ref(), &point);
    // A read can complete before the kernel has counted it.
    wait_until("the kernel has counted every read", || {
        let now: u64 = reads_of(&observer.sample(Nanos(0)));
        now - first >= OPS
    });
    record.samples = vec![before, observer.sample(record.measured)];
    let class = summarise(&record).classes.swap_remove(0);
    (record, class)
}

/// The kernel's mean of these reads, which must not exceed Rigel's: the time of each read in the
/// kernel is a part of the time that Rigel waited for it. Counters are in whole milliseconds.
fn kernel_mean((record, class): &(PointRecord, ClassSummary)) -> f64 {
    let kernel = class
        .kernel_mean_us
        .unwrap_or_else(|| panic!("unknown: {:?}", class.kernel_mean_unknown));
    let done = record.streams[0].total().done as f64;
    let own = record.streams[0].total().response.sum as f64 / 1e3 / done;
    let rounding = 1e3 / done;
    assert!(kernel <= own + rounding, "{kernel} us of {own} us");
    kernel
}

#[test]
fn the_kernels_mean_holds_the_time_of_the_device_and_is_held_by_ours() {
    test(
        "the_kernels_mean_holds_the_time_of_the_device_and_is_held_by_ours",
        || {
            let place = Place::new("truth-kernel-time");
            let service = Duration::from_millis(4);
            let programmed = mount(&place, Behaviour::fixed(service))?;
            let device = need(
                "losetup",
                &["--find", "--show", "--direct-io=on", text(&programmed.path)],
            )?;
            let device = Loop(device.into());
            // The kernel looks for partitions.
            wait_until("nothing else reads the device", || {
                let count = || programmed.take().len();
                count();
                std::thread::sleep(Duration::from_millis(100));
                count() == 0
            });
            let kernel = kernel_mean(&measured(&device.0));
            assert!(kernel >= 4000.0 - 1e3 / OPS as f64, "{kernel} us");
            Ok(())
        },
    );
}

#[test]
fn a_cap_of_a_control_group_is_not_in_the_kernels_mean() {
    test(
        "a_cap_of_a_control_group_is_not_in_the_kernels_mean",
        || {
            let capped = on_capped("truth-kernel-capped", CAP, |group, device| {
                group.enter()?;
                Ok(measured(device))
            })?;
            // On a fast device the reads take too few of the kernel's milliseconds to say a mean.
            match &capped.1.kernel_mean_unknown {
                Some(why) => assert!(why.contains("whole milliseconds"), "{why}"),
                None => assert!(kernel_mean(&capped) > 0.0),
            }
            Ok(())
        },
    );
}
