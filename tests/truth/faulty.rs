//! A device with programmed service times, errors and stalls: each must be found, with its size,
//! number and time.
//!
//! The device's own log has the truth, and `bounds` computes how far a measurement may differ from
//! it: as far as the machine itself was late, and no farther. Each test has its own devices.

use super::bounds::{APART, Log, assert_figures_hold, assert_holds};
use super::device::{Behaviour, Device, at_once};
use super::{LENGTH, engine, measure, reads};
use crate::common::{Missing, Place, test};
use rigel_analyse::summarise;
use rigel_model::record::{End, PointRecord};
use rigel_model::{Arrivals, FindingName, Layout, Load, MIB, Nanos, Pattern, Point, Until, WarmUp};
use std::time::Duration;

const SIZE: u64 = 64 * MIB;
/// Narrow windows: no window contains the whole of a test.
const WINDOW: Nanos = Nanos::from_millis(50);

/// Engines, and the number of streams to test each with; each stream has one outstanding read.
const TRIED: [(&str, u64); 5] = [
    ("uring", 1),
    ("uring", 4),
    ("libaio", 4),
    ("psync", 1),
    ("psync", 4),
];
/// The engines with a single stream.
const ONE_STREAM: [(&str, u64); 3] = [("uring", 1), ("libaio", 1), ("psync", 1)];

pub(crate) fn mount(place: &Place, behaviour: Behaviour) -> Result<Device, Missing> {
    Device::mount(&place.0, SIZE, behaviour).map_err(|error| Missing(error.to_string()))
}

/// Tests all of `tried` at the same time, each on its own device with this behaviour.
fn each(
    name: &str,
    tried: &[(&str, u64)],
    behaviour: Behaviour,
    check: impl Fn(&Device, &str, u64) + Sync,
) {
    test(name, || {
        let place = Place::new(&format!("truth-{name}"));
        let devices = tried
            .iter()
            .map(|_| mount(&place, behaviour))
            .collect::<Result<Vec<_>, _>>()?;
        std::thread::scope(|scope| {
            for (device, (name, streams)) in devices.iter().zip(tried) {
                let check = &check;
                scope.spawn(move || check(device, name, *streams));
            }
        });
        Ok(())
    });
}

/// A point with `streams` of one class under `load`; each stream reads its own blocks one after the
/// other.
fn point(streams: u64, load: Load, until: Until) -> Point {
    let mut point = reads(Pattern::Uniform, LENGTH, 1, WarmUp::NONE, until);
    let stream = point.streams.remove(0);
    point.streams = (0..streams)
        .map(|number| {
            let pattern = Pattern::Sequential {
                start: number * APART,
            };
            rigel_model::Stream {
                load,
                pattern,
                ..stream.clone()
            }
        })
        .collect();
    Point {
        window: WINDOW,
        ..point
    }
}

/// The record of a point on a device, and the device's log of it.
fn read(device: &Device, name: &str, point: &Point) -> (PointRecord, Log) {
    let slots = point.streams.iter().map(|stream| stream.load.slots()).sum();
    let engine = engine(
        name,
        std::slice::from_ref(&device.path),
        Layout::Concat,
        LENGTH,
        slots,
    );
    let (record, log) = Log::of(device, || measure(engine.as_ref(), point));
    assert_eq!(record.end, End::Complete, "{name}");
    assert!(log.reads.iter().all(|read| read.bytes == LENGTH), "{name}");
    (record, log)
}

const ALONE: Load = Load::Closed { depth: 1 };

#[test]
fn measured_times_lie_between_the_devices_time_and_the_next_read() {
    const OPS: u64 = 150;
    const SLOW: Duration = Duration::from_millis(20);
    let behaviour = Behaviour {
        slow: (50, SLOW),
        ..Behaviour::fixed(Duration::from_micros(500))
    };
    each(
        "what_is_measured_lies_between",
        &TRIED,
        behaviour,
        |device, name, streams| {
            let (record, log) = read(device, name, &point(streams, ALONE, Until::Ops(OPS)));
            let what = format!("{name}, {streams} streams");
            let depth = u32::try_from(streams).unwrap();
            let operations = log.closed(0);
            assert_eq!(log.reads.len() as u64, OPS * streams, "{what}");
            assert_holds(&record, &operations, &what);
            log.assert_conserved(&record, depth, &what);
            assert_figures_hold(&summarise(&record), &record, &operations, depth, &what);
            // All slow reads are present.
            let slow = log.reads.iter().filter(|read| read.slow).count() as u64;
            assert_eq!(slow, OPS * streams / 50, "{what}: by the device");
            let total = record.streams[0].total();
            let found = total
                .response
                .histogram
                .buckets()
                .filter(|(_, high, _)| u128::from(*high) >= SLOW.as_nanos());
            assert!(
                found.map(|(.., count)| count).sum::<u64>() >= slow,
                "{what}: slow ones"
            );
        },
    );
}

#[test]
fn errors_are_counted_one_by_one_with_their_cause_and_their_time() {
    const OPS: u64 = 100;
    let behaviour = Behaviour {
        errors: 20,
        ..Behaviour::fixed(Duration::from_micros(500))
    };
    each(
        "errors_are_counted_one_by_one",
        &TRIED,
        behaviour,
        |device, name, streams| {
            let (record, log) = read(device, name, &point(streams, ALONE, Until::Ops(OPS)));
            let what = format!("{name}, {streams} streams");
            assert_holds(&record, &log.closed(0), &what);
            log.assert_conserved(&record, u32::try_from(streams).unwrap(), &what);
            let total = record.streams[0].total();
            let failed = OPS * streams / 20;
            assert_eq!(
                (total.done, total.failures()),
                (OPS * streams - failed, failed),
                "{what}"
            );
            let eio = std::io::Error::from(rustix::io::Errno::IO).to_string();
            assert_eq!(total.failed.keys().collect::<Vec<_>>(), [&eio], "{what}");
            let summary = summarise(&record);
            let finding = summary
                .findings
                .iter()
                .find(|finding| finding.is(FindingName::Failures))
                .expect("it is told");
            assert!(
                finding.what.contains(&format!("{failed} x {eio}")),
                "{what}: {}",
                finding.what
            );
        },
    );
}

#[test]
fn a_stall_is_found_with_its_length_its_number_and_its_time() {
    const OPS: u64 = 40;
    const STALL: Duration = Duration::from_millis(200);
    let behaviour = Behaviour {
        stall: Some((30, STALL)),
        ..Behaviour::fixed(Duration::from_millis(2))
    };
    each(
        "a_stall_is_found",
        &TRIED,
        behaviour,
        |device, name, streams| {
            let (record, log) = read(device, name, &point(streams, ALONE, Until::Ops(OPS)));
            let what = format!("{name}, {streams} streams");
            let held = log.reads.iter().filter(|read| read.held).count() as u64;
            assert!(
                (1..=streams).contains(&held),
                "{what}: the device held up what was outstanding: {held}"
            );
            // Each operation belongs to the window in which it was due. Windows without any due
            // operation are empty.
            assert_holds(&record, &log.closed(0), &what);
            log.assert_conserved(&record, u32::try_from(streams).unwrap(), &what);
            let greatest = u128::from(record.streams[0].total().response.max);
            assert!(greatest >= STALL.as_nanos(), "{what}: greatest {greatest}");
        },
    );
}

#[test]
fn in_an_open_loop_operations_due_during_a_stall_wait_for_its_end() {
    const OPS: u64 = 200;
    const GAP: Nanos = Nanos::from_millis(1);
    const STALL: Duration = Duration::from_millis(100);
    let behaviour = Behaviour {
        stall: Some((50, STALL)),
        ..Behaviour::fixed(Duration::from_micros(100))
    };
    each(
        "in_an_open_loop",
        &ONE_STREAM,
        behaviour,
        |device, name, _| {
            let load = Load::Open {
                rate: 1000.0,
                arrivals: Arrivals::Uniform,
                in_flight_max: 1,
            };
            let (record, log) = read(device, name, &point(1, load, Until::Ops(OPS)));
            // Due times follow from arithmetic, whenever operations could start: one every
            // millisecond, the first after one.
            assert_holds(&record, &log.open(GAP), name);
            let windows = &record.streams[0].kinds[0].windows;
            let due = |window: u64| {
                OPS.min((window + 1) * 50 - 1) - OPS.min((window * 50).saturating_sub(1))
            };
            let expected: Vec<u64> = (0..windows.len() as u64).map(due).collect();
            assert_eq!(
                windows.iter().map(|window| window.done).collect::<Vec<_>>(),
                expected,
                "{name}"
            );
            // Each read that was due during the stall waited for the rest of it, although the
            // device had only one of them.
            let waited: u128 = (1..STALL.as_millis()).map(|left| left * 1_000_000).sum();
            let sum = u128::from(record.streams[0].total().response.sum);
            assert!(sum >= waited, "{name}: {sum} of {waited}");
            assert_eq!(record.streams[0].unserved.iter().sum::<u64>(), 0, "{name}");
            assert_eq!(
                record.streams[0]
                    .delay
                    .as_ref()
                    .expect("an open loop has it")
                    .histogram
                    .count(),
                OPS,
                "{name}"
            );
        },
    );
}

#[test]
fn the_warm_up_is_excluded_read_by_read_and_time_ends_the_point() {
    const LENGTHS: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_millis(200));
    let behaviour = Behaviour {
        slow: (7, Duration::from_millis(5)),
        ..Behaviour::fixed(Duration::from_millis(1))
    };
    each(
        "the_warm_up_is_told_apart",
        &ONE_STREAM,
        behaviour,
        |device, name, _| {
            let mut point = point(1, ALONE, Until::Elapsed(LENGTHS.1));
            point.warm_up = WarmUp {
                least: LENGTHS.0,
                most: LENGTHS.0,
            };
            let (record, log) = read(device, name, &point);
            let stream = &record.streams[0];
            assert!(record.warm_up >= LENGTHS.0, "{name}: {:?}", record.warm_up);
            assert_eq!(record.measured, LENGTHS.1, "{name}");
            let warm_up = usize::try_from(stream.warm_up_done).unwrap();
            assert_eq!(
                log.reads.len() as u64,
                stream.warm_up_done + stream.total().done,
                "{name}: no read is lost"
            );
            assert_holds(&record, &log.closed(warm_up), name);
        },
    );
}

#[test]
fn the_requested_number_of_operations_is_outstanding() {
    test("the_requested_number_of_operations_is_outstanding", || {
        const OPS: u64 = 64;
        let place = Place::new("truth-outstanding");
        let behaviour = Behaviour::fixed(Duration::from_micros(500));
        let mut tried = Vec::new();
        for name in super::engine_names() {
            for depth in [1, 2, 4, 8] {
                // The device answers none of the first reads before it has as many as it can serve.
                let together = u64::from(depth).min(behaviour.servers as u64);
                tried.push((
                    name,
                    depth,
                    together,
                    mount(
                        &place,
                        Behaviour {
                            together,
                            ..behaviour
                        },
                    )?,
                ));
            }
        }
        std::thread::scope(|scope| {
            for (name, depth, together, device) in &tried {
                scope.spawn(move || {
                    let point = Point {
                        window: WINDOW,
                        ..reads(
                            Pattern::Uniform,
                            LENGTH,
                            *depth,
                            WarmUp::NONE,
                            Until::Ops(OPS),
                        )
                    };
                    let (record, log) = read(device, name, &point);
                    let what = format!("{name} at {depth}");
                    assert_eq!(
                        (log.reads.len() as u64, record.streams[0].total().done),
                        (OPS, OPS),
                        "{what}"
                    );
                    assert_eq!(
                        at_once(&log.reads) as u64,
                        *together,
                        "{what}: reads at once, by the device"
                    );
                    log.assert_conserved(&record, *depth, &what);
                    log.assert_none_shorter(&record, &what);
                });
            }
        });
        Ok(())
    });
}
