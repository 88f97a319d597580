//! A device whose service times, errors and stalls are programmed: each must be found, with its size, its number and
//! its time.
//!
//! Only programmed times are asserted on, and they are long against what a busy machine adds; where it is about one
//! time among many, it is the median. What the filesystem costs by itself is measured first, by a device that answers
//! at once.

use super::device::{Behaviour, Device, real_time};
use super::{assert_close, engine, measure, reads, rigel};
use crate::common::{Missing, Place, need, test, text};
use rigel::analyse::{PointSummary, summarise};
use rigel::model::{Arrivals, Layout, Load, MIB, Nanos, Pattern, Until, WarmUp};
use rigel::record::{End, PointRecord, Window};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SIZE: u64 = 64 * MIB;
const LENGTH: u32 = 8192;

/// Engines, and the outstanding operations that each is tried with.
const TRIED: [(&str, u32); 3] = [("uring", 1), ("uring", 4), ("psync", 4)];

/// Runs a test before everything else on this machine, where that is allowed: what is measured is then the device, not
/// what others leave of the CPUs. Rigel's threads, started by `body`, go before those of the device.
fn undisturbed(name: &str, body: impl FnOnce(&Place) -> Result<(), Missing> + Send) {
    let body = || {
        real_time(2);
        body(&Place::new(&format!("truth-{name}")))
    };
    let run = || std::thread::scope(|scope| scope.spawn(body).join());
    test(name, || run().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
}

/// Tests that look at microseconds would delay each other.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static DEVICES: Mutex<()> = Mutex::new(());
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads from `device` under `load`, all of them counted.
fn read(device: &Device, name: &str, load: Load, until: Until) -> (PointRecord, PointSummary) {
    let engine = engine(name, std::slice::from_ref(&device.path), Layout::Concat, LENGTH, load.slots());
    let mut point = reads(Pattern::Uniform, LENGTH, load.slots(), WarmUp::NONE, until);
    point.streams[0].load = load;
    let record = measure(engine.as_ref(), &point);
    assert_eq!(record.end, End::Complete, "{name}");
    let summary = summarise(&record);
    (record, summary)
}

/// What the filesystem itself costs a read, in microseconds, from least to most: medians of a device that takes no
/// time. Least where one read follows at once on the other; most where the CPUs fall asleep between two, as they do at
/// depth 1 while a read takes `service`. Reads that take their time at greater depths lie between the two.
fn overhead(place: &Place, name: &str, service: Nanos) -> Result<(f64, f64), Missing> {
    let device = Device::mount(place, SIZE, Behaviour::fixed(Nanos(0)))?;
    let spaced = Load::Open { rate: 1.0 / service.as_secs_f64(), arrivals: Arrivals::Uniform, in_flight_max: 1 };
    let median = |load| {
        let (record, _) = read(&device, name, load, Until::Ops(500));
        record.streams[0].total().service().histogram.quantile(0.5).expect("reads were done").middle() / 1e3
    };
    let (at_once, spaced) = (median(Load::Closed { depth: 1 }), median(spaced));
    Ok((at_once.min(spaced), at_once.max(spaced)))
}

/// The median of a device that takes `service` is that to within 5 %, beyond what the filesystem costs.
#[track_caller]
fn assert_median(median_us: f64, service: Nanos, overhead: (f64, f64), what: &str) {
    let service = service.as_micros_f64();
    let (least, most) = ((service + overhead.0) * 0.95, (service + overhead.1) * 1.05);
    assert!((least..=most).contains(&median_us), "median of {what}: {median_us}, expected {least} to {most}");
}

/// Operations that took longer than `limit`.
fn longer_than(window: &Window, limit: Nanos) -> u64 {
    window.response.histogram.buckets().filter(|(low, ..)| *low > limit.0).map(|(.., count)| count).sum()
}

#[test]
fn a_service_time_is_measured_to_within_the_overhead() {
    undisturbed("a_service_time_is_measured_to_within_the_overhead", |place| {
        const SERVICE: Nanos = Nanos(500_000);
        let _one = one_at_a_time();
        for (name, depth) in TRIED {
            let overhead = overhead(place, name, SERVICE)?;
            let device = Device::mount(place, SIZE, Behaviour::fixed(SERVICE))?;
            let (_, summary) = read(&device, name, Load::Closed { depth }, Until::Ops(1000));
            let what = format!("{name} at {depth}, overhead {overhead:.0?} us");
            let latency = summary.classes[0].latency.expect("reads were done");
            assert_median(latency.p50_us, SERVICE, overhead, &what);
            assert_eq!((summary.classes[0].done, device.count.served()), (1000, 1000));
        }
        Ok(())
    });
}

#[test]
fn a_slow_half_percent_is_found_beside_the_fast() {
    undisturbed("a_slow_half_percent_is_found_beside_the_fast", |place| {
        const FAST: Nanos = Nanos(300_000);
        const SLOW: Nanos = Nanos::from_millis(50);
        let _one = one_at_a_time();
        for (name, depth) in TRIED {
            let overhead = overhead(place, name, FAST)?;
            let device = Device::mount(place, SIZE, Behaviour { slow: (0.005, SLOW), ..Behaviour::fixed(FAST) })?;
            let (record, summary) = read(&device, name, Load::Closed { depth }, Until::Ops(3000));
            let what = format!("{name} at {depth}, overhead {overhead:.0?} us");
            let latency = summary.classes[0].latency.expect("reads were done");
            assert_median(latency.p50_us, FAST, overhead, &what);
            assert!(latency.p99_us < SLOW.as_micros_f64() / 2.0, "p99 of {what}: {}", latency.p99_us);
            assert_close(latency.p999_us, SLOW.as_micros_f64() + overhead.1, 0.05, &format!("p99.9 of {what}"));
            let slow = longer_than(&record.streams[0].total(), Nanos(SLOW.0 / 2));
            // Where the machine itself stands still, it holds up what is outstanding, and the device cannot know.
            let (least, most) = (device.count.slow(), device.count.slow() + u64::from(depth));
            assert!((least..=most).contains(&slow), "slow reads of {what}: {slow}, the device had {least}");
        }
        Ok(())
    });
}

#[test]
fn errors_are_counted_one_by_one_with_their_cause() {
    undisturbed("errors_are_counted_one_by_one_with_their_cause", |place| {
        let _one = one_at_a_time();
        for (name, depth) in TRIED {
            let device = Device::mount(place, SIZE, Behaviour { errors: 0.01, ..Behaviour::fixed(Nanos(300_000)) })?;
            let (record, summary) = read(&device, name, Load::Closed { depth }, Until::Ops(3000));
            let (total, count) = (record.streams[0].total(), &device.count);
            assert!(count.failed() > 0, "the device failed");
            assert_eq!((total.done, total.failures()), (count.served(), count.failed()), "{name} at {depth}");
            assert_eq!(total.done + total.failures(), 3000, "{name} at {depth}");
            let eio = std::io::Error::from(rustix::io::Errno::IO).to_string();
            assert_eq!(total.failed.keys().collect::<Vec<_>>(), [&eio]);
            let finding = summary.findings.iter().find(|finding| finding.name == "failures").expect("it is told");
            assert!(finding.what.contains(&format!("{} x {eio}", count.failed())), "{}", finding.what);
        }
        Ok(())
    });
}

#[test]
fn a_stall_is_found_with_its_length_its_number_and_its_second() {
    undisturbed("a_stall_is_found_with_its_length_its_number_and_its_second", |place| {
        // These devices mostly wait: they delay neither each other nor the other tests.
        std::thread::scope(|scope| {
            let threads: Vec<_> = TRIED.iter().map(|tried| scope.spawn(|| stall(place, *tried))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("the stall is found"))
        })
    });
}

fn stall(place: &Place, (name, depth): (&str, u32)) -> Result<(), Missing> {
    const AT: Nanos = Nanos::from_millis(1500);
    const STALL: Nanos = Nanos::from_secs(2);
    let behaviour = Behaviour { stall: Some((AT, STALL)), ..Behaviour::fixed(Nanos::from_millis(10)) };
    let device = Device::mount(place, SIZE, behaviour)?;
    let (record, summary) = read(&device, name, Load::Closed { depth }, Until::Elapsed(Nanos::from_secs(4)));
    let what = format!("{name} at {depth}");
    let latency = summary.classes[0].latency.expect("reads were done");
    assert_close(latency.max_us, STALL.as_micros_f64(), 0.05, &format!("greatest latency of {what}"));
    assert_eq!(device.count.held(), u64::from(depth), "the device held up what was outstanding, {what}");
    // An operation belongs to the second in which it was due: what was held up was due just before the stall.
    let windows = &record.streams[0].kinds[0].windows;
    let stalled: Vec<u64> = windows.iter().map(|window| longer_than(window, Nanos(STALL.0 / 2))).collect();
    let mut expected = vec![0; 4];
    let second = device.count.stopped().expect("it stalled").0 / rigel::record::WINDOW.0;
    expected[usize::try_from(second).unwrap()] = device.count.held();
    assert_eq!(stalled, expected, "by second, {what}");
    // The third second passed without an operation, and is there all the same.
    let done: Vec<bool> = windows.iter().map(|window| window.done > 0).collect();
    assert_eq!(done, [true, true, false, true], "by second, {what}");
    Ok(())
}

#[test]
fn as_many_are_served_at_once_as_there_are_servers() {
    undisturbed("as_many_are_served_at_once_as_there_are_servers", |place| {
        const SERVERS: u32 = 4;
        const SERVICE: Nanos = Nanos::from_millis(1);
        let until = Until::Elapsed(Nanos::from_millis(90));
        let _one = one_at_a_time();
        for name in ["uring", "psync"] {
            let behaviour = Behaviour { servers: 4, ..Behaviour::fixed(SERVICE) };
            let overhead = overhead(place, name, SERVICE)?.1 / 1e6;
            for depth in [1, 2, 4, 8] {
                let device = Device::mount(place, SIZE, behaviour)?;
                // Five times over: the median forgets the moments when the machine was busy elsewhere.
                let mut rates = [0.0; 5];
                for rate in &mut rates {
                    let (_, summary) = read(&device, name, Load::Closed { depth }, until);
                    *rate = summary.classes[0].iops;
                }
                rates.sort_by(f64::total_cmp);
                let alone = f64::from(depth) / (SERVICE.as_secs_f64() + overhead);
                let expected = alone.min(f64::from(SERVERS) / SERVICE.as_secs_f64());
                assert_close(rates[2], expected, 0.10, &format!("reads a second of {name} at {depth}"));
            }
        }
        Ok(())
    });
}

#[test]
fn fio_finds_the_same_rate_and_the_same_p99_from_the_jobs_of_a_curve() {
    undisturbed("fio_finds_the_same_rate_and_the_same_p99_from_the_jobs_of_a_curve", |place| {
        let _alone = one_at_a_time();
        need("fio", &["--version"])?;
        // Times that a busy machine adds little to; and p99 lies well among the slow ones.
        let slow = (0.03, Nanos::from_millis(30));
        let behaviour = Behaviour { servers: 4, slow, ..Behaviour::fixed(Nanos::from_millis(10)) };
        let device = Device::mount(place, SIZE, behaviour)?;
        // The two do not measure at the same time, and what a hypervisor takes meanwhile falls on one of them: what
        // differs by chance agrees on another try, and what differs by its nature never does.
        let mut differ = Vec::new();
        for attempt in 0..3 {
            differ = compared_with_fio(place, &device, &place.0.join(format!("run-{attempt}")))?;
            if differ.is_empty() {
                return Ok(());
            }
        }
        panic!("{differ:?}");
    });
}

/// What differs by more than 5 % between our curve of a device and fio's runs of the jobs printed from it.
fn compared_with_fio(place: &Place, device: &Device, run: &Path) -> Result<Vec<String>, Missing> {
    let arguments = ["curve", text(&device.path), "--depth", "1,2,4", "--engine", "uring", "--point-max", "4s"];
    let made = rigel(&[&arguments[..], &["--out", text(run), "--no-progress", "--json"]].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let ours: Value = serde_json::from_slice(&made.stdout).unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    let mut differ = Vec::new();
    for (point, depth) in ours["points"].as_array().unwrap().iter().zip([1, 2, 4]) {
        let job = rigel(&["report", text(run), "--emit-fio", &format!("depth:{depth}")]);
        let path = place.0.join("job.fio");
        fs::write(&path, &job.stdout).unwrap();
        let output = need("fio", &["--output-format=json", text(&path)])?;
        let theirs: Value = serde_json::from_str(&output[output.find('{').unwrap()..]).unwrap();
        let (theirs, ours) = (&theirs["jobs"][0]["read"], &point["classes"][0]);
        let p99 = number(&theirs["lat_ns"]["percentile"]["99.000000"]) / 1e3;
        for (what, ours, theirs) in
            [("IOPS", number(&ours["iops"]), number(&theirs["iops"])), ("p99 in us", number(&ours["p99_us"]), p99)]
        {
            if (ours / theirs - 1.0).abs() > 0.05 {
                differ.push(format!("{what} at depth {depth}: {ours}, and fio has {theirs}"));
            }
        }
    }
    Ok(differ)
}
