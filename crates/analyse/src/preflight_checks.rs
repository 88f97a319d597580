//! Checks before a run: what on this target and host would mislead it.
//!
//! Every finding names the thing, its value, and what to do about it. A *refusal* means that a run
//! would measure something other than the storage, a *warning* that it might, a *note* that the
//! reader should know.

use super::figures::quantity::{count, mb_per_second, rounded_percent};
use super::point::load::{DeviceLoad, device_loads, host_load};
use rigel_model::{
    BlockDevice, Bytes, Finding, FindingName, Host, KIB, MIB, Sample, Severity, TargetFacts,
    VolumeMember,
};

/// Findings about measuring the target on this host. `before` and `after` are samples taken around
/// a time in which Rigel itself did nothing; `buffered` means that I/O will go through the page
/// cache.
pub fn preflight_findings(
    host: &Host,
    facts: &TargetFacts,
    before: &Sample,
    after: &Sample,
    buffered: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &facts.members {
        findings.extend(unwritten(member));
        findings.extend(filesystem(member, buffered));
        findings.extend(mount(member));
        findings.extend(fragments(member));
    }
    findings.extend(memory(host, facts, buffered));
    let mut devices: Vec<&BlockDevice> = facts
        .members
        .iter()
        .flat_map(|member| &member.devices)
        .collect();
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    devices.dedup_by(|one, other| one.name == other.name);
    let loads = device_loads(before, after);
    for device in devices {
        findings.extend(kind_of_device(device));
        findings.extend(queue(device));
        let load = loads.iter().find(|(name, _)| *name == device.name);
        findings.extend(load.and_then(|(_, load)| busy_device(device, load)));
    }
    findings.extend(busy_host(before, after));
    findings.extend(clock(host));
    findings.extend(limits(host));
    // Highest severity first; within one severity, in the order above.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// A note with a hint.
fn advice(name: FindingName, what: String, hint: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Note,
        name: name.name().into(),
        what,
        hint: hint.into(),
        figure: None,
    }
}

/// Warns of blocks that were never written: reads of them return zeros without accessing the
/// device.
fn unwritten(member: &VolumeMember) -> Option<Finding> {
    // One I/O in a thousand does not change a figure with three digits.
    const TOLERATED: f64 = 0.001;
    let path = member.path.display();
    let extents = member.extents?;
    let empty = extents.holes.0 + extents.unwritten.0;
    let share = empty as f64 / member.bytes.0.max(1) as f64;
    let what = format!(
        "{} of {path} was never written ({} in holes, {} allocated): reading it does not access \
         the storage",
        rounded_percent(share),
        extents.holes,
        extents.unwritten
    );
    match share {
        0.0 => None,
        share if share < TOLERATED => Some(Finding::note(FindingName::Holes, what)),
        _ => Some(Finding::refusal(
            FindingName::Holes,
            what,
            "give a directory instead, in which Rigel makes a completely written file; or fill \
             this one; --allow-holes measures it anyway",
        )),
    }
}

/// Warns of filesystems that keep data in memory, or that do more with the blocks than store them.
fn filesystem(member: &VolumeMember, buffered: bool) -> Vec<Finding> {
    let (Some(kind), path) = (member.filesystem.as_deref(), member.path.display()) else {
        return Vec::new();
    };
    let options: Vec<&str> = member
        .mount_options
        .as_deref()
        .unwrap_or_default()
        .split(',')
        .collect();
    let has = |option: &str| options.contains(&option);
    let elsewhere = "measure a file on ext4 or XFS, or the block device itself";
    let mut findings = Vec::new();
    match kind {
        "tmpfs" | "ramfs" | "hugetlbfs" | "devtmpfs" => findings.push(Finding::warning(
            FindingName::MemoryFilesystem,
            format!("{path} is on {kind}, which is memory: no storage is measured"),
            "give a file on the storage to be measured",
        )),
        "overlay" | "aufs" | "ecryptfs" => findings.push(Finding::warning(
            FindingName::LayeredFilesystem,
            format!(
                "{path} is on {kind}, a layer over another filesystem that may copy on write or \
                 buffer"
            ),
            "give a file on the filesystem below, such as a volume mounted into the container",
        )),
        "btrfs" | "zfs" | "bcachefs" if !has("nodatacow") => findings.push(Finding::warning(
            FindingName::CopyOnWrite,
            format!(
                "{path} is on {kind}, which writes every block to a new location and verifies \
                 checksums on reading"
            ),
            if kind == "btrfs" {
                "if the database will not use it like this: chattr +C on the empty directory, then \
                 create the file again"
            } else {
                elsewhere
            },
        )),
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "lustre" | "gpfs" | "beegfs" => {
            findings.push(advice(
                FindingName::NetworkFilesystem,
                format!(
                    "{path} is on {kind}: the network and the server's cache are measured with \
                     the storage"
                ),
                "use a file several times as large as the server's memory",
            ));
        }
        _ => {}
    }
    let own_cache =
        kind == "zfs" || kind.starts_with("fuse") || matches!(kind, "9p" | "vboxsf" | "virtiofs");
    let journalled = has("data=journal");
    if !buffered && (own_cache || journalled) {
        let why = if journalled {
            format!("{kind} with data=journal")
        } else {
            kind.to_string()
        };
        findings.push(Finding::warning(
            FindingName::DirectIo,
            format!("{path} is on {why}, which may accept direct I/O and buffer it anyway"),
            elsewhere,
        ));
    }
    if let Some(option) = options.iter().find(|option| option.starts_with("compress")) {
        findings.push(Finding::warning(
            FindingName::Compression,
            format!(
                "{path} is on {kind} mounted with {option}: compressible data is read faster than \
                 the storage delivers it"
            ),
            "let Rigel make the file (its data does not compress), or mount without compression",
        ));
    }
    findings
}

fn mount(member: &VolumeMember) -> Option<Finding> {
    let read_only = member
        .mount_options
        .as_deref()
        .unwrap_or_default()
        .split(',')
        .any(|option| option == "ro");
    read_only.then(|| {
        Finding::note(
            FindingName::ReadOnly,
            format!(
                "{} is on a filesystem mounted read-only: it can be read but not written",
                member.path.display()
            ),
        )
    })
}

/// Warns of fragments: a large I/O that spans two extents is split, and a disk's arm moves in
/// between.
fn fragments(member: &VolumeMember) -> Option<Finding> {
    const COUNT_MIN: u64 = 16;
    let extents = member
        .extents
        .filter(|extents| extents.count >= COUNT_MIN)?;
    let mean = (extents.written.0 + extents.unwritten.0) / extents.count;
    let rotational = member.devices.iter().any(|device| device.rotational);
    let what = format!(
        "{} is in {} pieces of {} on average",
        member.path.display(),
        extents.count,
        Bytes(mean)
    );
    let hint = "create it again on a filesystem with more free space, or try e4defrag or xfs_fsr";
    if mean < 64 * KIB || (rotational && mean < MIB) {
        Some(Finding::warning(FindingName::Fragmented, what, hint))
    } else if mean < MIB {
        Some(advice(FindingName::Fragmented, what, hint))
    } else {
        None
    }
}

fn memory(host: &Host, facts: &TargetFacts, buffered: bool) -> Option<Finding> {
    if host.memory.0 == 0 || facts.usable.0 >= host.memory.0 {
        return None;
    }
    let what = format!(
        "the target, {}, is smaller than the memory, {}",
        facts.usable, host.memory
    );
    Some(if buffered {
        Finding::warning(
            FindingName::Memory,
            format!("{what}, and with --buffered the kernel caches all of it"),
            "leave out --buffered, or use a target several times as large as the memory",
        )
    } else {
        Finding::note(
            FindingName::Memory,
            format!(
                "{what}: direct I/O bypasses the page cache, but a cache in the storage may still \
                 hold all of it"
            ),
        )
    })
}

fn kind_of_device(device: &BlockDevice) -> Option<Finding> {
    let name = device.name.as_str();
    let is = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if is("loop") {
        Some(Finding::warning(
            FindingName::LoopDevice,
            format!(
                "{name} is a loop device: its file is measured through two layers, and perhaps \
                 through the page cache"
            ),
            format!(
                "measure the file itself, or attach it with losetup --direct-io=on and know what \
                 backs /dev/{name}"
            ),
        ))
    } else if is("zram") || is("ram") {
        Some(Finding::warning(
            FindingName::MemoryDevice,
            format!("{name} is memory: no storage is measured"),
            "give a device of the storage to be measured",
        ))
    } else if is("dm-") || is("md") {
        let model = device
            .model
            .as_deref()
            .map_or(String::new(), |model| format!(" ({model})"));
        Some(Finding::note(
            FindingName::StackedDevice,
            format!(
                "{name}{model} is built on other devices: the measurement includes all of them \
                 and the layer between"
            ),
        ))
    } else if device.rotational {
        Some(Finding::note(
            FindingName::Rotational,
            format!(
                "{name} reports that it is a rotational disk; virtual disks often report this \
                 wrongly"
            ),
        ))
    } else {
        None
    }
}

fn queue(device: &BlockDevice) -> Vec<Finding> {
    let name = &device.name;
    let mut findings = Vec::new();
    let simple = matches!(
        device.scheduler.as_str(),
        "" | "none" | "noop" | "mq-deadline" | "deadline"
    );
    if !device.rotational && !simple {
        findings.push(Finding::warning(
            FindingName::Scheduler,
            format!(
                "{name} uses the I/O scheduler {}, which costs CPU and delays requests",
                device.scheduler
            ),
            format!("echo none > /sys/block/{name}/queue/scheduler"),
        ));
    }
    if device.write_cache == "write back" {
        findings.push(Finding::note(
            FindingName::WriteCache,
            format!(
                "{name} has a write-back cache: a write completes in the cache, a commit when the \
                 cache is flushed"
            ),
        ));
    }
    // Stacked devices pass requests on and do not merge them.
    let has_queue = device.requests > 0 && !device.scheduler.is_empty();
    if device.nomerges == 0 && has_queue {
        findings.push(Finding::note(
            FindingName::Merges,
            format!(
                "{name} may merge adjacent requests (nomerges 0): its counters may show fewer \
                 I/Os than were issued"
            ),
        ));
    }
    findings
}

/// Warns if others use the device: their load distorts the measurement.
fn busy_device(device: &BlockDevice, load: &DeviceLoad) -> Option<Finding> {
    // A host at rest commits a journal now and then: a few I/Os per second.
    const IOPS: f64 = 50.0;
    const MEGABYTES_PER_S: f64 = 5.0;
    const BUSY: f64 = 0.05;
    (load.iops > IOPS || load.megabytes_per_s > MEGABYTES_PER_S || load.busy > BUSY).then(|| {
        Finding::warning(
            FindingName::OtherLoad,
            format!(
                "{} is in use by others: {} IOPS, {}, busy {} of the time",
                device.name,
                count(load.iops.round()),
                mb_per_second(load.megabytes_per_s),
                rounded_percent(load.busy)
            ),
            "find the process with `iotop -o` or `pidstat -d 1` and stop it, or measure at a \
             quieter time",
        )
    })
}

fn busy_host(before: &Sample, after: &Sample) -> Vec<Finding> {
    const STOLEN: f64 = 0.01;
    const BUSY: f64 = 0.25;
    const PRESSURE: f64 = 0.10;
    let load = host_load(before, after);
    let mut findings = Vec::new();
    if load.stolen > STOLEN {
        findings.push(Finding::warning(
            FindingName::Steal,
            format!(
                "the hypervisor took {} of the CPU time for others",
                rounded_percent(load.stolen)
            ),
            "measure on a less busy host, or at another time: latency includes stolen time",
        ));
    }
    if load.busy > BUSY {
        findings.push(Finding::warning(
            FindingName::CpuBusy,
            format!(
                "the CPUs were {} busy before the measurement",
                rounded_percent(load.busy)
            ),
            "find the process with `top` and stop it: a run needs CPU time",
        ));
    }
    if let Some(pressure) = load.io_pressure.filter(|pressure| *pressure > PRESSURE) {
        findings.push(Finding::warning(
            FindingName::IoPressure,
            format!(
                "tasks waited for I/O {} of the time before the measurement",
                rounded_percent(pressure)
            ),
            "find them with `iotop -o` and stop them, or measure at a quieter time",
        ));
    }
    findings
}

fn clock(host: &Host) -> Option<Finding> {
    // Clock sources that are read without a system call: 20 to 60 ns per reading, against 1000 ns
    // and more.
    const FAST: [&str; 8] = [
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "arch_sys_counter",
        "timebase",
        "tod",
        "riscv_clocksource",
        "stable_counter",
    ];
    let source = host.clock_source.as_str();
    (!source.is_empty() && !FAST.contains(&source)).then(|| {
        Finding::warning(
            FindingName::Clock,
            format!(
                "the clock is {source}: {:.0} ns per reading, for every I/O",
                host.clock_read_ns
            ),
            "see `dmesg | grep -i clocksource` for why it is not tsc; echo tsc > \
             /sys/devices/system/clocksource/clocksource0/current_clocksource if it is available",
        )
    })
}

fn limits(host: &Host) -> Vec<Finding> {
    const AIO_LEFT_MIN: u64 = 4096;
    const LOCKED_MIN: u64 = 64 * MIB;
    const FILES_MIN: u64 = 1024;
    let limits = &host.limits;
    let mut findings = Vec::new();
    match limits.io_uring_disabled {
        Some(2) => findings.push(advice(
            FindingName::IoUring,
            "io_uring is forbidden on this host (kernel.io_uring_disabled = 2): libaio is used"
                .into(),
            "sysctl kernel.io_uring_disabled=0",
        )),
        Some(1) => findings.push(advice(
            FindingName::IoUring,
            "io_uring is for privileged users only on this host (kernel.io_uring_disabled = 1): \
             others use libaio"
                .into(),
            "run as root, join the group of kernel.io_uring_group, or sysctl \
             kernel.io_uring_disabled=0",
        )),
        _ => {}
    }
    let left = limits.aio_max.saturating_sub(limits.aio_used);
    if limits.aio_max > 0 && left < AIO_LEFT_MIN {
        findings.push(advice(
            FindingName::Aio,
            format!(
                "{} of {} asynchronous I/Os (fs.aio-nr, fs.aio-max-nr) are in use: libaio may get \
                 none",
                limits.aio_used, limits.aio_max
            ),
            "sysctl fs.aio-max-nr=1048576",
        ));
    }
    if let Some(locked) = limits.locked_memory.filter(|locked| locked.0 < LOCKED_MIN) {
        findings.push(advice(
            FindingName::LockedMemory,
            format!(
                "this user may lock only {locked} of memory: io_uring may have to work without \
                 registered buffers"
            ),
            "ulimit -l unlimited",
        ));
    }
    if let Some(files) = limits.open_files.filter(|files| *files < FILES_MIN) {
        findings.push(advice(
            FindingName::OpenFiles,
            format!("at most {files} files may be open at once"),
            format!("ulimit -n {FILES_MIN}"),
        ));
    }
    if host.cpus == 1 {
        findings.push(Finding::note(
            FindingName::Cpus,
            "a single CPU generates the load and runs everything else".to_string(),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::{Counters, Extents, FileKind, GIB, LimitFacts, Nanos};

    fn host() -> Host {
        Host {
            cpus: 8,
            memory: Bytes(GIB),
            clock_source: "tsc".into(),
            clock_read_ns: 25.0,
            limits: LimitFacts {
                aio_max: 65536,
                aio_used: 0,
                locked_memory: None,
                open_files: Some(20_000),
                io_uring_disabled: Some(0),
            },
            ..Host::default()
        }
    }

    fn device() -> BlockDevice {
        BlockDevice {
            name: "nvme0n1".into(),
            bytes: Bytes(100 * GIB),
            scheduler: "none".into(),
            write_cache: "write through".into(),
            requests: 1023,
            nomerges: 2,
            ..BlockDevice::default()
        }
    }

    /// A file of 4 GiB, completely written, on a quiet fast device.
    fn facts() -> TargetFacts {
        let member = VolumeMember {
            path: "/data/file".into(),
            kind: FileKind::File,
            bytes: Bytes(4 * GIB),
            inode: 0,
            alignment: 512,
            atomic_write_max: None,
            filesystem: Some("ext4".into()),
            mount_options: Some("rw,relatime".into()),
            extents: Some(Extents {
                count: 4,
                written: Bytes(4 * GIB),
                ..Extents::default()
            }),
            device_number: Some((259, 0)),
            devices: vec![device()],
        };
        TargetFacts {
            server: None,
            name: "/data/file".into(),
            usable: Bytes(4 * GIB),
            members: vec![member],
        }
    }

    fn samples() -> (Sample, Sample) {
        let devices = [("nvme0n1".to_string(), Counters::default())];
        let before = Sample {
            devices: devices.into(),
            io_pressure_us: Some(0),
            ..Sample::default()
        };
        let after = Sample {
            at: Nanos::from_secs(1),
            cpu_ticks: [1, 0, 1, 798, 0, 0, 0, 0],
            ..before.clone()
        };
        (before, after)
    }

    fn found(host: &Host, facts: &TargetFacts) -> Vec<Finding> {
        let (before, after) = samples();
        preflight_findings(host, facts, &before, &after, false)
    }

    /// Names and severities of the findings after `change` is applied to a member without findings.
    fn with_member(change: impl FnOnce(&mut VolumeMember)) -> Vec<(String, Severity)> {
        let mut facts = facts();
        change(&mut facts.members[0]);
        named(&found(&host(), &facts))
    }

    fn with_device(change: impl FnOnce(&mut BlockDevice)) -> Vec<(String, Severity)> {
        with_member(|member| change(&mut member.devices[0]))
    }

    fn with_host(change: impl FnOnce(&mut Host)) -> Vec<(String, Severity)> {
        let mut host = host();
        change(&mut host);
        named(&found(&host, &facts()))
    }

    fn with_after(change: impl FnOnce(&mut Sample)) -> Vec<(String, Severity)> {
        let (before, mut after) = samples();
        change(&mut after);
        named(&preflight_findings(
            &host(),
            &facts(),
            &before,
            &after,
            false,
        ))
    }

    fn named(findings: &[Finding]) -> Vec<(String, Severity)> {
        for finding in findings {
            assert!(!finding.what.is_empty());
            assert!(
                finding.severity == Severity::Note || !finding.hint.is_empty(),
                "a warning without a hint: {finding:?}"
            );
        }
        findings
            .iter()
            .map(|finding| (finding.name.clone(), finding.severity))
            .collect()
    }

    fn only(name: &str, severity: Severity) -> Vec<(String, Severity)> {
        vec![(name.to_string(), severity)]
    }

    #[test]
    fn a_written_file_on_a_quiet_disk_leaves_no_warning() {
        assert_eq!(found(&host(), &facts()), []);
    }

    #[test]
    fn blocks_never_written_forbid_the_run() {
        let holes = |holes: u64, unwritten: u64| {
            with_member(|member| {
                let written = Bytes(4 * GIB - holes - unwritten);
                member.extents = Some(Extents {
                    count: 4,
                    written,
                    unwritten: Bytes(unwritten),
                    holes: Bytes(holes),
                });
            })
        };
        assert_eq!(holes(GIB, 0), only("holes", Severity::Refusal));
        assert_eq!(holes(0, GIB), only("holes", Severity::Refusal));
        assert_eq!(holes(4096, 0), only("holes", Severity::Note));
    }

    #[test]
    fn a_target_smaller_than_the_memory_matters_when_it_is_cached() {
        let (before, after) = samples();
        let large = Host {
            memory: Bytes(64 * GIB),
            ..host()
        };
        let severity =
            |buffered| preflight_findings(&large, &facts(), &before, &after, buffered)[0].severity;
        assert_eq!(
            (severity(false), severity(true)),
            (Severity::Note, Severity::Warning)
        );
    }

    #[test]
    fn unusual_filesystems_raise_findings() {
        let on = |kind: &str, options: &str| {
            with_member(|member| {
                member.filesystem = Some(kind.into());
                member.mount_options = Some(options.into());
            })
        };
        assert_eq!(
            on("tmpfs", "rw"),
            only("memory-filesystem", Severity::Warning)
        );
        assert_eq!(
            on("overlay", "rw"),
            only("layered-filesystem", Severity::Warning)
        );
        assert_eq!(on("btrfs", "rw"), only("copy-on-write", Severity::Warning));
        assert_eq!(on("btrfs", "rw,nodatacow"), []);
        assert_eq!(on("nfs4", "rw"), only("network-filesystem", Severity::Note));
        assert_eq!(on("fuse.sshfs", "rw"), only("direct-io", Severity::Warning));
        assert_eq!(
            on("ext4", "rw,data=journal"),
            only("direct-io", Severity::Warning)
        );
        assert_eq!(
            on("f2fs", "rw,compress_algorithm=zstd"),
            only("compression", Severity::Warning)
        );
        assert_eq!(on("xfs", "ro,noatime"), only("read-only", Severity::Note));
        assert_eq!(on("xfs", "rw,errors=remount-ro"), []);
    }

    #[test]
    fn a_fragmented_file_raises_a_finding() {
        let pieces = |count: u64, rotational: bool| {
            with_member(|member| {
                member.extents = Some(Extents {
                    count,
                    written: Bytes(4 * GIB),
                    ..Extents::default()
                });
                member.devices[0].rotational = rotational;
            })
        };
        assert_eq!(pieces(100, false), []);
        assert_eq!(pieces(8192, false), only("fragmented", Severity::Note));
        assert_eq!(
            pieces(8192, true)[0],
            ("fragmented".into(), Severity::Warning)
        );
        assert_eq!(
            pieces(1 << 20, false),
            only("fragmented", Severity::Warning)
        );
    }

    #[test]
    fn the_settings_of_a_device_are_judged() {
        assert_eq!(
            with_device(|device| device.scheduler = "bfq".into()),
            only("scheduler", Severity::Warning)
        );
        assert_eq!(
            with_device(|device| device.scheduler = "mq-deadline".into()),
            []
        );
        assert_eq!(
            with_device(|device| device.write_cache = "write back".into()),
            only("write-cache", Severity::Note)
        );
        assert_eq!(
            with_device(|device| device.nomerges = 0),
            only("merges", Severity::Note)
        );
        assert_eq!(
            with_device(|device| device.rotational = true),
            only("rotational", Severity::Note)
        );
        for (name, finding, severity) in [
            ("loop3", "loop-device", Severity::Warning),
            ("zram0", "memory-device", Severity::Warning),
            ("dm-0", "stacked-device", Severity::Note),
            ("md127", "stacked-device", Severity::Note),
        ] {
            assert_eq!(
                with_device(|device| device.name = name.into()),
                only(finding, severity)
            );
        }
    }

    #[test]
    fn a_device_below_two_members_is_judged_once() {
        let mut facts = facts();
        facts.members[0].devices[0].nomerges = 0;
        facts.members.push(facts.members[0].clone());
        assert_eq!(
            named(&found(&host(), &facts)),
            only("merges", Severity::Note)
        );
    }

    #[test]
    fn load_of_others_raises_findings_with_figures() {
        let (before, mut after) = samples();
        let busy = Counters {
            reads: 1000,
            read_sectors: 16_000,
            busy_ms: 400,
            ..Counters::default()
        };
        after.devices.insert("nvme0n1".into(), busy);
        let found = preflight_findings(&host(), &facts(), &before, &after, false);
        assert_eq!(named(&found), only("other-load", Severity::Warning));
        assert!(
            found[0].what.contains("1,000 IOPS, 8.19 MB/s, busy 40 %"),
            "{}",
            found[0].what
        );
        assert_eq!(
            with_after(|after| after.cpu_ticks[7] = 100),
            only("steal", Severity::Warning)
        );
        assert_eq!(
            with_after(|after| after.cpu_ticks[0] = 800),
            only("cpu-busy", Severity::Warning)
        );
        assert_eq!(
            with_after(|after| after.io_pressure_us = Some(500_000)),
            only("io-pressure", Severity::Warning)
        );
    }

    #[test]
    fn a_slow_clock_and_low_limits_raise_findings() {
        assert_eq!(
            with_host(|host| host.clock_source = "hpet".into()),
            only("clock", Severity::Warning)
        );
        assert_eq!(with_host(|host| host.clock_source = "kvm-clock".into()), []);
        assert_eq!(
            with_host(|host| host.limits.aio_used = 65_000),
            only("aio", Severity::Note)
        );
        assert_eq!(
            with_host(|host| host.limits.io_uring_disabled = Some(2)),
            only("io-uring", Severity::Note)
        );
        assert_eq!(
            with_host(|host| host.limits.locked_memory = Some(Bytes(65536))),
            only("locked-memory", Severity::Note)
        );
        assert_eq!(
            with_host(|host| host.limits.open_files = Some(256)),
            only("open-files", Severity::Note)
        );
        assert_eq!(
            with_host(|host| host.cpus = 1),
            only("cpus", Severity::Note)
        );
    }

    #[test]
    fn the_worst_comes_first() {
        let mut facts = facts();
        facts.members[0].extents = Some(Extents {
            count: 1,
            holes: Bytes(4 * GIB),
            ..Extents::default()
        });
        facts.members[0].devices[0].nomerges = 0;
        facts.members[0].devices[0].scheduler = "bfq".into();
        let severities: Vec<_> = found(&host(), &facts)
            .iter()
            .map(|finding| finding.severity)
            .collect();
        assert_eq!(
            severities,
            [Severity::Refusal, Severity::Warning, Severity::Note]
        );
    }

    #[test]
    fn nothing_known_is_nothing_found() {
        assert_eq!(
            named(&preflight_findings(
                &Host::default(),
                &TargetFacts::default(),
                &Sample::default(),
                &Sample::default(),
                true
            )),
            []
        );
    }
}
