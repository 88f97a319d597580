//! The kernel as a witness: its counters and its block trace of unshared loop devices agree with
//! our count of I/Os and our coverage.

use super::{engine, engine_names, measure, reads};
use crate::common::{Loop, Missing, Place, Scratch, need, scratch_file, test, text, wait_until};
use rigel_model::record::StreamRecord;
use rigel_model::{Bytes, Layout, MIB, Pattern, Until, WarmUp};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sector size of the kernel's event, whatever the device.
const SECTOR: u64 = 512;

/// An idle loop device, and its counters in the kernel.
pub(crate) struct Device {
    /// Lock that keeps udev away from new devices (`systemd.io/BLOCK_DEVICE_LOCKING`).
    _lock: fs::File,
    node: Loop,
    name: String,
    /// As the event prints it: `7,3`.
    number: String,
    /// As the event's filter expects it.
    filter: String,
}

impl Device {
    pub(crate) fn new(file: &Scratch) -> Result<Self, Missing> {
        let node = Loop::new(&file.path)?;
        let lock = fs::File::open(&node.0)
            .map_err(|error| Missing(format!("{}: {error}", text(&node.0))))?;
        let locked = rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive);
        locked.map_err(|error| Missing(format!("a lock on {}: {error}", text(&node.0))))?;
        let name = node.0.file_name().unwrap().to_string_lossy().into_owned();
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        let (major, minor) = number.trim().split_once(':').unwrap();
        let (major, minor): (u64, u64) = (major.parse().unwrap(), minor.parse().unwrap());
        let device = Self {
            _lock: lock,
            node,
            name,
            number: format!("{major},{minor}"),
            filter: format!("dev == {}", major << 20 | minor),
        };
        // First the kernel itself looks for partitions.
        for _ in 0..50 {
            let before = device.counters();
            std::thread::sleep(Duration::from_millis(100));
            if device.counters() == before {
                return Ok(device);
            }
        }
        Err(Missing(format!("something keeps reading {}", device.name)))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.node.0.clone()
    }

    /// What the kernel says of the device in this file of its folder.
    pub(crate) fn setting(&self, file: &str) -> String {
        let text = fs::read_to_string(format!("/sys/block/{}/{file}", self.name)).unwrap();
        text.trim().into()
    }

    /// Reads done, reads merged into others, sectors read, and writes done.
    fn counters(&self) -> [u64; 4] {
        let stat = self.setting("stat");
        let fields: Vec<u64> = stat
            .split_whitespace()
            .map(|field| field.parse().unwrap())
            .collect();
        [fields[0], fields[1], fields[2], fields[4]]
    }
}

/// A private trace of the requests to devices. It and its mount are removed on drop.
struct Trace {
    instance: PathBuf,
    mount: PathBuf,
    _place: Place,
}

/// Traced sectors of one device: number of requested sectors per block.
type Seen = BTreeMap<u64, u64>;

impl Trace {
    fn new(name: &str, devices: &[&Device]) -> Result<Self, Missing> {
        let place = Place::new(&format!("truth-trace-{name}"));
        let mount = place.0.join("mounted");
        fs::create_dir(&mount).unwrap();
        need("mount", &["-t", "tracefs", "tracefs", text(&mount)])?;
        let instance = mount.join(format!("instances/rigel-{name}-{}", std::process::id()));
        let trace = Self {
            instance,
            mount,
            _place: place,
        };
        let missing =
            |what: &Path, error: &std::io::Error| Missing(format!("{}: {error}", what.display()));
        fs::create_dir(&trace.instance).map_err(|error| missing(&trace.instance, &error))?;
        let filters: Vec<&str> = devices
            .iter()
            .map(|device| device.filter.as_str())
            .collect();
        for (file, value) in [
            ("buffer_size_kb", "16384"),
            ("events/block/block_rq_issue/filter", &filters.join(" || ")),
            ("events/block/block_rq_issue/enable", "1"),
        ] {
            let path = trace.instance.join(file);
            fs::write(&path, value).map_err(|error| missing(&path, &error))?;
        }
        Ok(trace)
    }

    /// Returns and clears everything seen so far, by device number, in blocks of `length` bytes.
    fn take(&self, length: u32) -> BTreeMap<String, Seen> {
        self.assert_nothing_lost();
        let text = fs::read_to_string(self.instance.join("trace")).unwrap();
        fs::write(self.instance.join("trace"), "").unwrap();
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        // `… block_rq_issue: 7,0 R 8192 () 1234 + 16 none,0,0 [name]`
        for event in text
            .lines()
            .filter_map(|line| line.split_once("block_rq_issue: ").map(|(_, event)| event))
        {
            let words: Vec<&str> = event.split_whitespace().collect();
            let plus = words
                .iter()
                .position(|word| *word == "+")
                .unwrap_or_else(|| panic!("{event}"));
            assert!(words[1].starts_with('R'), "not a read: {event}");
            let (from, count): (u64, u64) = (
                words[plus - 1].parse().unwrap(),
                words[plus + 1].parse().unwrap(),
            );
            let block = u64::from(length) / SECTOR;
            let seen = seen.entry(words[0].to_string()).or_default();
            // A request may be part of a large I/O, or contain several small neighbours.
            (from..from + count).for_each(|sector| *seen.entry(sector / block).or_default() += 1);
        }
        seen
    }

    /// The ring buffer is not read while it is filled, so it must have held everything.
    fn assert_nothing_lost(&self) {
        let mut cpus = 0;
        for cpu in fs::read_dir(self.instance.join("per_cpu"))
            .unwrap()
            .flatten()
        {
            let stats = fs::read_to_string(cpu.path().join("stats")).unwrap();
            for line in stats.lines() {
                let Some((name, value)) = line.split_once(": ") else {
                    continue;
                };
                if ["overrun", "commit overrun", "dropped events"].contains(&name) {
                    assert_eq!(value.trim(), "0", "{line}");
                    cpus += 1;
                }
            }
        }
        assert!(cpus > 0, "no counter of lost events was found");
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::write(
            self.instance.join("events/block/block_rq_issue/enable"),
            "0",
        );
        let _ = fs::remove_dir(&self.instance);
        let _ = need("umount", &[text(&self.mount)]);
    }
}

/// Number of whole blocks read in `seen`, counting repeated reads.
fn blocks(seen: &Seen, length: u32) -> u64 {
    let sectors = u64::from(length) / SECTOR;
    assert!(
        seen.values().all(|count| count.is_multiple_of(sectors)),
        "a part of a block was read"
    );
    seen.values().sum::<u64>() / sectors
}

#[test]
fn counters_and_trace_agree_with_count_and_coverage() {
    test("counters_and_trace_agree_with_count_and_coverage", || {
        let file = scratch_file("truth-witness", 64 * MIB);
        let device = Device::new(&file)?;
        let trace = Trace::new("agree", &[&device])?;
        for name in engine_names() {
            for (length, ops, depth) in [(8192, 12_000, 16), (1 << 20, 300, 4)] {
                let what = format!("{name}, {length} bytes");
                let engine = engine(name, &[device.path()], Layout::Concat, length, depth);
                let before = device.counters();
                let record = measure(
                    engine.as_ref(),
                    &reads(
                        Pattern::Uniform,
                        length,
                        depth,
                        WarmUp::NONE,
                        Until::Ops(ops),
                    ),
                );
                // A read can complete before the kernel has counted it.
                let joined = |[reads, merged, ..]: [u64; 4]| reads + merged;
                let all = || length != 8192 || joined(device.counters()) - joined(before) >= ops;
                wait_until("the kernel has counted every read", all);
                let after = device.counters();
                let stream = &record.streams[0];
                assert_eq!(
                    (stream.total().done, stream.total().failures()),
                    (ops, 0),
                    "{what}"
                );
                let [reads, merged, sectors, writes] =
                    [0, 1, 2, 3].map(|field| after[field] - before[field]);
                assert_eq!(
                    (sectors * SECTOR, writes),
                    (ops * u64::from(length), 0),
                    "{what}: bytes and writes"
                );
                if length == 8192 {
                    assert_eq!(
                        reads + merged,
                        ops,
                        "{what}: requests and those that joined others"
                    );
                }
                let seen = trace
                    .take(length)
                    .remove(&device.number)
                    .unwrap_or_default();
                assert_eq!(blocks(&seen, length), ops, "{what}: blocks in the trace");
                assert_eq!(
                    seen.len() as u64,
                    stream.coverage.distinct,
                    "{what}: distinct blocks"
                );
                assert_spread(&seen, stream, &what);
            }
        }
        Ok(())
    });
}

/// Checks that the trace saw as many I/Os in each slice of the volume as our coverage counted.
fn assert_spread(seen: &Seen, stream: &StreamRecord, what: &str) {
    let coverage = &stream.coverage;
    let sectors = u64::from(stream.length) / SECTOR;
    let mut slices = vec![0; coverage.slices.len()];
    for (block, count) in seen {
        slices[usize::try_from(block / coverage.slice).unwrap()] += count / sectors;
    }
    assert_eq!(slices, coverage.slices, "{what}: I/Os in each slice");
}

#[test]
fn each_member_of_a_stripe_set_gets_its_half() {
    test("each_member_of_a_stripe_set_gets_its_half", || {
        const LENGTH: u32 = 8192;
        const OPS: u64 = 10_240;
        let files = ["truth-stripe-a", "truth-stripe-b"].map(|name| scratch_file(name, 64 * MIB));
        let devices = [Device::new(&files[0])?, Device::new(&files[1])?];
        let trace = Trace::new("stripe", &[&devices[0], &devices[1]])?;
        let paths = devices.each_ref().map(Device::path);
        let stripe = 64 * 1024;
        for (name, pattern) in [
            ("uring", Pattern::Uniform),
            ("psync", Pattern::Uniform),
            ("uring", Pattern::Sequential { start: 24 }),
        ] {
            let layout = Layout::Stripe {
                stripe: Bytes(stripe),
            };
            let engine = engine(name, &paths, layout, LENGTH, 16);
            let before = devices.each_ref().map(Device::counters);
            let record = measure(
                engine.as_ref(),
                &reads(pattern, LENGTH, 16, WarmUp::NONE, Until::Ops(OPS)),
            );
            let after = devices.each_ref().map(Device::counters);
            let seen = trace.take(LENGTH);
            let seen = devices
                .each_ref()
                .map(|device| seen.get(&device.number).cloned().unwrap_or_default());
            let parts = seen.each_ref().map(|seen| blocks(seen, LENGTH));
            assert_eq!(parts.iter().sum::<u64>(), OPS, "{name} {pattern:?}");
            assert_eq!(
                [0, 1]
                    .map(|member| (after[member][2] - before[member][2]) * SECTOR
                        / u64::from(LENGTH)),
                parts,
                "{name} {pattern:?}: the counters and the trace"
            );
            assert_eq!(
                (seen[0].len() + seen[1].len()) as u64,
                record.streams[0].coverage.distinct
            );
            // Turns are exact; with independent draws a half is a half within six standard
            // deviations of chance.
            let chance = if pattern == Pattern::Uniform {
                6 * (OPS / 4).isqrt()
            } else {
                0
            };
            assert!(
                parts[0].abs_diff(OPS / 2) <= chance,
                "{name} {pattern:?}: {parts:?}"
            );
        }
        Ok(())
    });
}
