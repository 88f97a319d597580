//! What the figures of a calibration cannot show by themselves: that the whole volume lies in a
//! cache, that flash was not preconditioned.
//!
//! Input: the facts about the target, the records of all visits, and the result. Output: findings.

use crate::figures::quantity::time;
use crate::search::at_load::reads_alone;
use crate::search::calibration::Calibration;
use crate::search::reread::RereadTest;
use crate::{ClassSummary, PointSummary};
use rigel_model::record::journal::Header;
use rigel_model::record::{KindRecord, PointRecord, StreamRecord};
use rigel_model::{
    BlockDevice, Bytes, Distribution, Finding, FindingName, GIB, Kind, Nanos, SimSpec, Step,
    Target, TargetFacts,
};
use rigel_stats::mean::Interval;

/// Caches of arrays and hypervisors are smaller than this, mostly.
const CACHE_MAX: u64 = 64 * GIB;

/// Median of random reads at depth 1, in microseconds, below which a virtual or network device
/// hardly answers without a cache: flash takes 60 us and more by itself, and the hypervisor or the
/// network adds to it.
const VIRTUAL_US: f64 = 60.0;

/// The same for a rotational disk: half a turn at 15,000 per minute takes 2 ms.
const ROTATIONAL_US: f64 = 2000.0;

/// Median above which not even the cache of an array on a network answered.
const ARRAY_CACHE_US: f64 = 1000.0;

/// A model's reads are from its cache if half of them take less than this fraction of the median
/// service time.
const MODEL_FASTER: f64 = 0.5;

/// How often the target must be written before the rate of writes can be one that lasts. SNIA's
/// Performance Test Specification preconditions with twice the capacity of the device.
const PRECONDITIONED_TIMES: f64 = 2.0;

/// Findings about what the run cannot have seen; `visits` are the records as they were measured.
pub fn unseen(header: &Header, visits: &[PointRecord], calibration: &Calibration) -> Vec<Finding> {
    cache_suspected(header, calibration)
        .into_iter()
        .chain(not_preconditioned(header, visits))
        .collect()
}

/// What is known of the medium below the target.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Medium {
    /// A disk of a hypervisor, a network or a loop device: caches of others may be below.
    Virtual,
    /// A rotational disk of this machine.
    Rotational,
    /// Another device of this machine, such as flash.
    Local,
    /// A model whose median service time, without its cache, is this many microseconds.
    Model(f64),
}

impl Medium {
    /// `None` if nothing is known of the devices.
    fn of(target: &Target, facts: &TargetFacts) -> Option<Self> {
        if let Target::Sim(spec) = target {
            return Some(Self::Model(median_service_us(spec)));
        }
        let is_remote = |facts: &TargetFacts| {
            let kinds = ["nfs", "nfs4", "cifs", "smb3", "ceph"];
            facts
                .members
                .iter()
                .filter_map(|member| member.filesystem.as_deref())
                .any(|kind| kinds.contains(&kind))
        };
        let devices = || facts.members.iter().flat_map(|member| &member.devices);
        if devices().any(is_virtual) || is_remote(facts) {
            Some(Self::Virtual)
        } else if devices().any(|device| device.rotational) {
            Some(Self::Rotational)
        } else {
            devices().next().map(|_| Self::Local)
        }
    }
}

fn median_service_us(spec: &SimSpec) -> f64 {
    let of_mean = match spec.distribution {
        Distribution::Fixed => 1.0,
        Distribution::Exponential => std::f64::consts::LN_2,
    };
    spec.service.as_micros_f64() * of_mean
}

/// True if a hypervisor or a network is between this machine and the disk: by the way in which it
/// is attached, by the name of its driver, or by a model that only such disks have.
fn is_virtual(device: &BlockDevice) -> bool {
    const DRIVERS: [&str; 6] = ["vd", "xvd", "nbd", "rbd", "drbd", "loop"];
    const MODELS: [&str; 7] = [
        "virtual",
        "qemu",
        "vbox",
        "persistentdisk",
        "nvme_card-pd",
        "elastic block store",
        "msft nvme accelerator",
    ];
    // `vda` and `nbd0`, but no name that only begins with these letters.
    let is_driver = |driver: &str| {
        device.name.strip_prefix(driver).is_some_and(|rest| {
            let is_lettered = driver.ends_with("vd") && rest.len() <= 2;
            is_lettered || rest.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    let model = device.model.as_deref().unwrap_or_default().to_lowercase();
    device.transport.is_some()
        || DRIVERS.into_iter().any(is_driver)
        || (!device.name.starts_with("dm-") && MODELS.iter().any(|known| model.contains(known)))
}

/// The response time in microseconds below which half of the reads at depth 1 speak for a cache, and
/// why; shortest first. None for a target that is too large for a cache, or on local flash.
fn suspicions(target: &Target, facts: &TargetFacts, memory: Bytes) -> Vec<(f64, &'static str)> {
    let Some(medium) = Medium::of(target, facts) else {
        return Vec::new();
    };
    let bytes = facts.usable;
    if bytes.0 >= memory.0 && (medium == Medium::Local || bytes.0 >= CACHE_MAX) {
        return Vec::new();
    }
    let just_written = (
        ARRAY_CACHE_US,
        "Rigel has just written all of it, and a cache of the host or array may still hold it",
    );
    match medium {
        Medium::Virtual => {
            let hardly = "a virtual or network device hardly answers as fast without a cache";
            let is_scratch = matches!(target, Target::Scratch { .. });
            let of_scratch = is_scratch.then_some(just_written);
            std::iter::once((VIRTUAL_US, hardly))
                .chain(of_scratch)
                .collect()
        }
        Medium::Rotational => {
            let why = "a rotational disk cannot answer as fast without a cache";
            vec![(ROTATIONAL_US, why)]
        }
        Medium::Model(service_us) => {
            let why = "the model's device takes longer than that without its cache";
            vec![(MODEL_FASTER * service_us, why)]
        }
        Medium::Local => Vec::new(),
    }
}

/// The median response time of reads in microseconds, which may show a cache; `None` of a handful, whose
/// median is low by chance.
pub fn certain_median_us(reads: &ClassSummary) -> Option<f64> {
    const OPERATIONS_LEAST: u64 = 100;
    let latency = reads.latency.filter(|_| reads.done >= OPERATIONS_LEAST)?;
    Some(latency.p50_us)
}

/// The median of reads at depth 1 below which a cache is suspected to hold all of this target;
/// `None` if none is suspected whatever it is.
pub fn suspect_below(target: &Target, facts: &TargetFacts, memory: Bytes) -> Option<Nanos> {
    let (below_us, _) = suspicions(target, facts, memory).pop()?;
    Some(Nanos::from_micros_f64(below_us))
}

/// Suspects that the whole target lies in a cache, or says that one was seen. The cache test compares
/// a part of the volume with the whole, and if both are in a cache, nothing differs.
fn cache_suspected(header: &Header, calibration: &Calibration) -> Option<Finding> {
    // A part that answered faster than the whole shows that the whole is in no cache.
    if calibration.cache.cache_at_least.is_some() {
        return None;
    }
    let alone = reads_alone(&calibration.points)?;
    suspected_by(header, alone, "reads at depth 1", calibration.cache.reread)
}

/// The suspicion by the reads at the load with the fewest outstanding.
pub fn suspected_at_depths(header: &Header, points: &[PointSummary]) -> Option<Finding> {
    let reads = points.iter().filter(|point| point.step() == Step::Depth);
    let point = reads.min_by_key(|point| point.coordinates.outstanding())?;
    let reads = format!("reads at {}", point.coordinates);
    suspected_by(header, point.classes.first()?, &reads, None)
}

/// The suspicion by reads, which are called so, and what reading parts again showed.
pub fn suspected_by(
    header: &Header,
    class: &ClassSummary,
    reads: &str,
    reread: Option<RereadTest>,
) -> Option<Finding> {
    let p50_us = certain_median_us(class)?;
    let (_, why) = suspicions(&header.target, &header.facts, header.host.memory)
        .into_iter()
        .find(|(below_us, _)| p50_us < *below_us)?;
    let hint = "measure a target several times as large as any cache below: a larger \
                --scratch-size (`df -h` shows what is free), or an existing large file or device";
    if let Some(test) = reread.filter(|test| test.is_cached == Some(true)) {
        return Some(Finding::warning(
            FindingName::Cache,
            format!(
                "a cache below serves reads, and the figures may be the cache's: after the sweep, \
                 parts of {} that had just been read took {} on average at depth 1, others {} \
                 ({})",
                Bytes(test.part_bytes),
                time(test.just_read_us),
                time(test.other_us),
                times(&test)
            ),
            hint,
        ));
    }
    let tested = reread.map_or_else(String::new, |test| {
        let seen = if test.is_cached == Some(false) {
            "no difference, as where a cache holds all of the target, or nothing of it"
        } else {
            "not enough to decide"
        };
        format!(
            ". Tested: after the sweep, parts of {} that had just been read took {} on average, \
             others {} ({}): {seen}",
            Bytes(test.part_bytes),
            time(test.just_read_us),
            time(test.other_us),
            times(&test)
        )
    });
    Some(Finding::warning(
        FindingName::CacheSuspected,
        format!(
            "the figures may come from a cache that holds all of the target, {}: half of the \
             {reads} take {} or less, and {why}{tested}",
            header.facts.usable,
            time(p50_us)
        ),
        hint,
    ))
}

/// `3.25 times, 3.10 to 3.41`.
fn times(test: &RereadTest) -> String {
    let Interval { low, high } = test.ratio_interval;
    format!("{:.2} times, {low:.2} to {high:.2}", test.ratio)
}

/// Warns of writes to flash that was not written full before.
fn not_preconditioned(header: &Header, visits: &[PointRecord]) -> Option<Finding> {
    let has_writes = visits
        .iter()
        .any(|visit| visit.coordinates.step() == Step::Write);
    let mut devices = header
        .facts
        .members
        .iter()
        .flat_map(|member| &member.devices)
        .peekable();
    let is_flash = devices.peek().is_some() && devices.all(|device| !device.rotational);
    if !has_writes || !is_flash {
        return None;
    }
    let size = header.facts.usable.0;
    let filled = match header.target {
        Target::Scratch { .. } => size,
        _ => 0,
    };
    let written = visits
        .iter()
        .map(written_bytes)
        .fold(filled, u64::saturating_add);
    let times = written as f64 / size.max(1) as f64;
    (times < PRECONDITIONED_TIMES).then(|| {
        Finding::warning(
            FindingName::NotPreconditioned,
            format!(
                "the run wrote {}, {times:.1} times the target's size: flash that was not written \
                 twice over before may write faster than it does in the long run",
                Bytes(written)
            ),
            "write it twice before with --precondition, or measure writes for hours with `rigel \
             soak TARGET --for 4h --mix write=100`",
        )
    })
}

/// Bytes written in the measured time.
fn written_bytes(visit: &PointRecord) -> u64 {
    let of_stream = |stream: &StreamRecord| {
        let writes = stream
            .kinds
            .iter()
            .filter(|record| record.kind != Kind::Read)
            .map(KindRecord::done);
        writes
            .fold(0, u64::saturating_add)
            .saturating_mul(stream.length.into())
    };
    visit
        .streams
        .iter()
        .map(of_stream)
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{calibration as example, header, reads_of_a_millisecond};
    use crate::summarise;
    use rigel_model::record::{Coverage, End, KindRecord, Window};
    use rigel_model::{Coordinates, Nanos};

    /// A calibration of which half of the reads at depth 1 took `p50_us` or less.
    fn found(p50_us: f64) -> Calibration {
        let mut point = summarise(&reads_of_a_millisecond());
        point.coordinates = Coordinates::at_depth(1);
        point.classes[0].latency.as_mut().unwrap().p50_us = p50_us;
        Calibration {
            points: vec![point],
            ..example()
        }
    }

    /// The finding about a cache, on a target of `gib` GiB and a host with 16 GiB.
    fn suspected(header: &Header, gib: u64, p50_us: f64) -> bool {
        let mut header = header.clone();
        header.facts.usable = Bytes(gib * GIB);
        header.host.memory = Bytes(16 * GIB);
        cache_suspected(&header, &found(p50_us)).is_some()
    }

    fn on(name: &str, transport: Option<&str>, rotational: bool) -> Header {
        let mut header = header();
        header.facts.members[0].devices = vec![BlockDevice {
            name: name.into(),
            transport: transport.map(String::from),
            rotational,
            ..BlockDevice::default()
        }];
        header
    }

    fn scratch(header: &Header) -> Header {
        Header {
            target: Target::Scratch {
                directory: "/data".into(),
                bytes: None,
                keep: false,
            },
            ..header.clone()
        }
    }

    #[test]
    fn a_small_target_that_answers_faster_than_its_medium_may_lie_in_a_cache() {
        let (virtio, array, disk) = (
            on("vda", None, false),
            on("sdb", Some("fc"), false),
            on("sda", None, true),
        );
        for (header, gib, p50_us, wanted) in [
            (&virtio, 4, 40.0, true),
            (&virtio, 4, 80.0, false),
            (&virtio, 40, 40.0, true),
            (&virtio, 64, 40.0, false),
            (&array, 4, 40.0, true),
            (&disk, 4, 300.0, true),
            (&disk, 4, 6000.0, false),
            (&disk, 1000, 300.0, false),
            // A file that Rigel has just written may be in the cache of an array.
            (&scratch(&virtio), 4, 300.0, true),
            (&scratch(&array), 4, 1500.0, false),
            (&virtio, 4, 300.0, false),
        ] {
            let devices = &header.facts.members[0].devices;
            assert_eq!(
                suspected(header, gib, p50_us),
                wanted,
                "{gib} GiB, {p50_us} us, {:?} on {devices:?}",
                header.target
            );
        }
    }

    #[test]
    fn a_scratch_file_on_a_local_flash_disk_is_not_suspected() {
        let local = scratch(&on("nvme0n1", None, false));
        for p50_us in [8.0, 20.0, 80.0, 300.0] {
            assert!(!suspected(&local, 4, p50_us), "{p50_us} us");
        }
    }

    #[test]
    fn a_cache_that_a_part_of_the_volume_shows_is_not_suspected_again() {
        let (mut found, mut header) = (found(20.0), on("vda", None, false));
        header.facts.usable = Bytes(4 * GIB);
        assert!(cache_suspected(&header, &found).is_some());
        found.points[0].classes[0].done = 20;
        assert!(cache_suspected(&header, &found).is_none(), "by a handful");
        found.points[0].classes[0].done = 10_000;
        found.cache.cache_at_least = Some(GIB);
        assert!(cache_suspected(&header, &found).is_none());
    }

    #[test]
    fn virtual_and_network_disks_are_known_by_transport_driver_or_model() {
        let disk = |name: &str, model: Option<&str>| BlockDevice {
            name: name.into(),
            model: model.map(String::from),
            ..BlockDevice::default()
        };
        for remote in [
            disk("vda", None),
            disk("vdab", None),
            disk("xvdf", None),
            disk("nbd0", None),
            disk("rbd12", None),
            disk("loop3", None),
            disk("sda", Some("QEMU HARDDISK")),
            disk("sda", Some("Virtual disk")),
            disk("sdb", Some("PersistentDisk")),
            disk("nvme1n1", Some("Amazon Elastic Block Store")),
            disk("nvme0n1", Some("MSFT NVMe Accelerator v1.0")),
        ] {
            assert!(is_virtual(&remote), "{remote:?}");
        }
        for local in [
            disk("sda", Some("Samsung SSD 860")),
            disk("nvme0n1", Some("Amazon EC2 NVMe Instance Storage")),
            disk("nvme0n2", Some("nvme_card")),
            disk("dm-0", Some("virtual-data")),
            disk("md0", None),
        ] {
            assert!(!is_virtual(&local), "{local:?}");
        }
    }

    /// A visit with this many writes of 16 KiB.
    fn writes(done: u64) -> PointRecord {
        let window = Window {
            done,
            ..Window::default()
        };
        PointRecord {
            coordinates: Coordinates::Write { depth: 8 },
            started: String::new(),
            began: Nanos(0),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(1),
            end: End::Complete,
            cpu: Nanos(0),
            cpus: 1,
            window: Nanos::from_secs(1),
            asked: None,
            streams: vec![StreamRecord {
                name: "small".into(),
                length: 16 << 10,
                loads: Vec::new(),
                patterns: Vec::new(),
                sql: None,
                kinds: vec![KindRecord {
                    kind: Kind::Write,
                    windows: vec![window],
                }],
                unserved: Vec::new(),
                drained: 0,
                censored: None,
                delay: None,
                warm_up_done: 0,
                coverage: Coverage::default(),
            }],
            samples: Vec::new(),
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: Vec::new(),
            left_out: Nanos(0),
        }
    }

    #[test]
    fn writes_to_flash_count_only_after_twice_the_size_of_the_target() {
        let blocks = (4 * GIB) / (16 << 10);
        let (flash, disk) = (on("nvme0n1", None, false), on("sda", None, true));
        let unprepared = |header: &Header, visits: &[PointRecord]| {
            let found = not_preconditioned(header, visits);
            found.is_some_and(|finding| finding.severity == rigel_model::Severity::Warning)
        };
        assert!(unprepared(&flash, &[writes(blocks), writes(blocks - 1)]));
        assert!(!unprepared(&flash, &[writes(blocks), writes(blocks)]));
        // Making a scratch file has written it once.
        assert!(unprepared(&scratch(&flash), &[writes(blocks - 1)]));
        assert!(!unprepared(&scratch(&flash), &[writes(blocks)]));
        // Without writes there is nothing to judge, and a rotational disk needs no preparation.
        assert!(!unprepared(&flash, &[]));
        assert!(!unprepared(&disk, &[writes(1)]));
    }
}
