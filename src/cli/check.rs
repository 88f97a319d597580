//! `rigel check`: what a target is, and whether a run on it would be trustworthy.
//!
//! Input: a [`Preflight`]. Output: a document, or JSON for scripts, and the exit status.
//! Apart from `run`, nothing here examines the machine.

use super::calibrate::size_of_io;
use super::membership::Membership;
use super::output;
use super::ranks::JoinArgs;
use super::target::{self, is_url};
use clap::Args;
use rigel_analyse::{
    Conclusion, DeviceLoad, HostLoad, RunTrust, Status, TrustLevel, device_loads, host_load,
    quantity,
};
use rigel_database::access::has_scheme;
use rigel_device::engine::opened::Opened;
use rigel_device::engine::scratch::Scratch;
use rigel_measure::preflight::{self, Preflight, trustworthy};
use rigel_model::{BlockDevice, Bytes, Error, Layout, MIB, VolumeMember, usage};
use rigel_report::columns::pairs;
use rigel_report::data;
use rigel_report::document::{Document, Extent};
use rigel_report::{parts, text};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Check a target and this machine for anything that would make measurements misleading
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 no warnings, 1 failed, 2 wrong usage, 3 a warning, or a \
                  measurement would be refused."
)]
pub struct CheckArgs {
    /// Files, block devices, or one directory (checked with a temporary file of 64 MiB in it)
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Size of the largest planned I/O
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    size: Bytes,
    /// Check for I/O through the page cache instead of direct I/O
    #[arg(long)]
    buffered: bool,
    /// Show all facts and findings, and not one screen of them
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    joining: JoinArgs,
}

/// Examines the targets, prints the findings, and returns the exit status.
pub(super) fn run(args: &CheckArgs, membership: &Membership) -> Result<u8, Error> {
    args.joining.enter(membership, false)?;
    membership.refuse_shared(
        "check",
        "each host has facts and findings of its own",
        "start one process for each host, with --alone",
    )?;
    if let Some(url) = args
        .targets
        .iter()
        .map(|target| target.to_string_lossy())
        .find(|text| has_scheme(text))
    {
        return Err(is_url(&url));
    }
    if let Some(name) = args.targets.iter().find(|target| target::is_model(target)) {
        return Err(usage!(
            "{name} is a model: there is nothing to check",
            "give a directory, a file or a block device, such as /var/lib/data",
            name = name.display()
        ));
    }
    let size = size_of_io("--size", args.size)?;
    let scratch = match &args.targets[..] {
        // For a directory, examines a scratch file in it.
        [directory] if target::is_directory(directory)? => Some(Scratch::make(
            directory,
            Some(Bytes(64 * MIB)),
            false,
            &mut |_, _| true,
        )?),
        _ => None,
    };
    let members: Vec<Opened> = match &scratch {
        Some(scratch) => vec![scratch.opened()?],
        None => args
            .targets
            .iter()
            .map(|path| Opened::open(path))
            .collect::<Result<_, _>>()?,
    };
    let called = scratch.as_ref().map(Scratch::display_name);
    let request = preflight::PreflightRequest {
        members: &[],
        called,
        layout: Layout::Concat,
        grain: size.into(),
        largest: size.into(),
        buffered: args.buffered,
        watch: preflight::WATCH,
    };
    let (members, mut look) = preflight::inspect_members(members, &request)?;
    if scratch.is_none() {
        look.findings.extend(preflight::writing(&members));
    }
    if args.json {
        output::json(&json(&look));
    } else {
        let extent = if args.verbose {
            Extent::Full
        } else {
            Extent::Screen
        };
        output::result(&text::render(&document(&look), extent));
    }
    Ok(exit_status(&look))
}

/// The exit status: 0 if a run would be trustworthy, 3 if a finding could mislead it.
pub fn exit_status(look: &Preflight) -> u8 {
    if trustworthy(&look.findings) { 0 } else { 3 }
}

/// The JSON report: all facts, with the verdict and the load of the devices first. Fields are only added, never renamed
/// or removed.
#[derive(Serialize, JsonSchema)]
struct CheckReport<'a> {
    trustworthy: bool,
    verdict: &'static str,
    trust: RunTrust,
    device_load: BTreeMap<String, DeviceLoad>,
    host_load: HostLoad,
    #[serde(flatten)]
    look: &'a Preflight,
}

/// The JSON Schema of [`json`].
pub fn schema() -> Schema {
    data::schema_of::<CheckReport>()
}

/// The report as one JSON document.
pub fn json(look: &Preflight) -> String {
    data::document(&CheckReport {
        trustworthy: trustworthy(&look.findings),
        verdict: verdict(&trust(look)),
        trust: trust(look),
        device_load: device_loads(&look.before, &look.after)
            .into_iter()
            .collect(),
        host_load: host_load(&look.before, &look.after),
        look,
    })
}

/// The report: whether a run would be trustworthy and what the load is now, then target, host and
/// findings.
pub fn document(look: &Preflight) -> Document {
    let trust = trust(look);
    let title = format!("rigel check of {}", look.target.name);
    let facts = |id: &str, title: &str, facts: Vec<(&str, String)>| {
        parts::section(id, title, "", vec![pairs("", ["", ""], facts)])
    };
    let mut sections = vec![parts::on_screen(facts(
        "load",
        "Load now",
        load_lines(look),
    ))];
    for (at, member) in look.target.members.iter().enumerate() {
        let title = member.path.display().to_string();
        sections.push(facts(
            &format!("target-{at}"),
            &title,
            member_lines(look, member),
        ));
    }
    if look.target.members.len() > 1 {
        let usable = against_memory(look.target.usable, look.host.memory);
        sections.push(facts("together", "together", vec![("usable", usable)]));
    }
    let host = format!("host {}", look.host.name);
    sections.push(facts("host", &host, host_lines(look)));
    sections.push(parts::findings(&trust));
    Document {
        heading: title.clone(),
        title,
        conclusion: Conclusion {
            status: Status::Plain,
            sentence: verdict(&trust).into(),
        }
        .under(&trust),
        trust: Some(trust),
        sections,
        ..Document::default()
    }
}

fn trust(look: &Preflight) -> RunTrust {
    RunTrust::of(look.findings.iter(), &[])
}

fn member_lines(look: &Preflight, member: &VolumeMember) -> Vec<(&'static str, String)> {
    let kind = match member.kind {
        rigel_model::FileKind::File => "file",
        rigel_model::FileKind::Device => "block device",
    };
    let mut lines = vec![(
        "what",
        format!(
            "{kind} of {}",
            against_memory(member.bytes, look.host.memory)
        ),
    )];
    if let Some(filesystem) = &member.filesystem {
        let options = member.mount_options.as_deref().unwrap_or_default();
        lines.push(("filesystem", format!("{filesystem} ({options})")));
        lines.push(("written", written(member)));
    }
    lines.push((
        "alignment",
        format!("{} for direct I/O", Bytes(member.alignment.into())),
    ));
    match member.devices.split_first() {
        None => lines.push(("device", "none known to the kernel".into())),
        Some((first, below)) => {
            lines.push(("device", device(first)));
            lines.push(("", queue(first)));
            for below in below {
                lines.push(("  below", device(below)));
                lines.push(("", queue(below)));
            }
        }
    }
    lines
}

/// `4 GiB, 0.2 times the memory`.
fn against_memory(bytes: Bytes, memory: Bytes) -> String {
    if memory.0 == 0 {
        return bytes.to_string();
    }
    let times = bytes.0 as f64 / memory.0 as f64;
    if times < 0.005 {
        format!("{bytes}, under 0.01 times the memory")
    } else if times < 0.095 {
        format!("{bytes}, {times:.2} times the memory")
    } else {
        format!("{bytes}, {times:.1} times the memory")
    }
}

fn written(member: &VolumeMember) -> String {
    let Some(extents) = member.extents else {
        return "not reported by the filesystem".into();
    };
    let share = extents.written.0 as f64 / member.bytes.0.max(1) as f64 * 100.0;
    let pieces = if extents.count == 1 {
        "1 extent".into()
    } else {
        format!("{} extents", extents.count)
    };
    // Rounded down, so that only a completely written file shows 100 %.
    let mut text = format!("{:.1} %, in {pieces}", (share * 10.0).floor() / 10.0);
    if extents.holes.0 > 0 {
        let _ = write!(text, ", {} in holes", extents.holes);
    }
    if extents.unwritten.0 > 0 {
        let _ = write!(text, ", {} allocated and never written", extents.unwritten);
    }
    text
}

fn device(device: &BlockDevice) -> String {
    let model = device
        .model
        .as_deref()
        .map_or(String::new(), |model| format!(" ({model})"));
    let medium = if device.rotational {
        "rotational"
    } else {
        "not rotational"
    };
    let (logical, physical) = (device.logical_block, device.physical_block);
    format!(
        "{}{model}, {}, {medium}, {logical}-byte logical and {physical}-byte physical blocks",
        device.name, device.bytes
    )
}

fn queue(device: &BlockDevice) -> String {
    let shown = |text: &str| {
        if text.is_empty() {
            "unknown".to_string()
        } else {
            text.to_string()
        }
    };
    format!(
        "scheduler {}, write cache {}, {} requests of up to {} KiB",
        shown(&device.scheduler),
        shown(&device.write_cache),
        device.requests,
        device.request_max_kib,
    )
}

fn host_lines(look: &Preflight) -> Vec<(&'static str, String)> {
    let (host, limits) = (&look.host, &look.host.limits);
    let unlimited = |limit: Option<String>| limit.unwrap_or_else(|| "unlimited".into());
    let uring = match limits.io_uring_disabled {
        None | Some(0) => "allowed",
        Some(1) => "privileged users only",
        Some(_) => "forbidden",
    };
    let quota = host.cpu_quota.map_or_else(String::new, |cpus| {
        format!(" (control groups allow {cpus:.2})")
    });
    let lines = vec![
        (
            "machine",
            format!(
                "Linux {}, {}, {} CPUs{quota}, {} of memory",
                host.kernel, host.cpu, host.cpus, host.memory
            ),
        ),
        (
            "clock",
            format!(
                "{}, {:.0} ns per reading",
                host.clock_source, host.clock_read_ns
            ),
        ),
        (
            "limits",
            format!(
                "io_uring {uring}, {} of {} asynchronous I/Os in use, locked memory {}, open \
                 files {}",
                limits.aio_used,
                limits.aio_max,
                unlimited(limits.locked_memory.map(|bytes| bytes.to_string())),
                unlimited(limits.open_files.map(|files| files.to_string())),
            ),
        ),
    ];
    lines
}

/// What devices and CPUs do before a run.
fn load_lines(look: &Preflight) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for (name, load) in device_loads(&look.before, &look.after) {
        let busy = quantity::rounded_percent(load.busy);
        lines.push((
            "disk",
            format!(
                "{name}: {} IOPS, {}, busy {busy}",
                quantity::count(load.iops.round()),
                quantity::mb_per_second(load.megabytes_per_s)
            ),
        ));
    }
    let load = host_load(&look.before, &look.after);
    let waiting = load.io_pressure.map_or(String::new(), |share| {
        format!(
            ", waiting for I/O {} of the time",
            quantity::rounded_percent(share)
        )
    });
    lines.push((
        "CPU",
        format!(
            "busy {}, stolen {}{waiting}",
            quantity::rounded_percent(load.busy),
            quantity::rounded_percent(load.stolen)
        ),
    ));
    lines
}

/// One sentence on how trustworthy a run would be.
fn verdict(trust: &RunTrust) -> &'static str {
    match trust.level {
        TrustLevel::Good | TrustLevel::NotChecked => "A run here would be trustworthy.",
        TrustLevel::WithCare => "A run here could mislead.",
        TrustLevel::DoNotUse => "A run here would not measure the storage.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::{
        Counters, Extents, FileKind, GIB, Host, LimitFacts, Nanos, Sample, Severity, TargetFacts,
    };

    fn look() -> Preflight {
        let device = BlockDevice {
            name: "nvme0n1".into(),
            model: Some("Fast Disk".into()),
            bytes: Bytes(931 * GIB),
            scheduler: "none".into(),
            write_cache: "write back".into(),
            logical_block: 512,
            physical_block: 4096,
            requests: 1023,
            request_max_kib: 1280,
            ..BlockDevice::default()
        };
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
                count: 3,
                written: Bytes(3 * GIB),
                holes: Bytes(GIB),
                ..Extents::default()
            }),
            device_number: Some((259, 0)),
            devices: vec![device],
        };
        let host = Host {
            name: "db1".into(),
            kernel: "6.1.0".into(),
            cpu: "Some CPU".into(),
            cpus: 8,
            cpu_quota: None,
            memory: Bytes(16 * GIB),
            clock_source: "tsc".into(),
            clock_read_ns: 25.4,
            limits: LimitFacts {
                aio_max: 65536,
                aio_used: 10,
                locked_memory: Some(Bytes(8 << 20)),
                open_files: None,
                io_uring_disabled: Some(0),
            },
        };
        let target = TargetFacts {
            server: None,
            name: "/data/file".into(),
            usable: Bytes(4 * GIB),
            members: vec![member],
        };
        let at_rest = [("nvme0n1".to_string(), Counters::default())];
        let busy = Counters {
            reads: 40,
            read_sectors: 640,
            busy_ms: 20,
            ..Counters::default()
        };
        let before = Sample {
            devices: at_rest.into(),
            io_pressure_us: Some(0),
            ..Sample::default()
        };
        let after = Sample {
            at: Nanos::from_secs(1),
            devices: [("nvme0n1".to_string(), busy)].into(),
            cpu_ticks: [8, 0, 0, 792, 0, 0, 0, 0],
            io_pressure_us: Some(30_000),
            ..Sample::default()
        };
        let findings = rigel_analyse::preflight_findings(&host, &target, &before, &after, false);
        Preflight {
            host,
            target,
            before,
            after,
            findings,
        }
    }

    #[test]
    fn the_screen_has_the_verdict_first_and_all_of_it_has_the_facts() {
        let document = document(&look());
        let screen = text::render(&document, Extent::Screen);
        assert!(
            screen.starts_with(
                "rigel check of /data/file\n\nA run here would not measure the storage.\n"
            ),
            "{screen}"
        );
        assert!(screen.contains("nvme0n1: 40 IOPS"), "{screen}");
        assert!(
            screen.contains("  cache  give a directory instead"),
            "{screen}"
        );
        assert!(!screen.contains("nomerges"), "{screen}");
        let all = text::render(&document, Extent::Full);
        for fact in [
            "file of 4 GiB, 0.2 times the memory",
            "75.0 %, in 3 extents, 1 GiB in holes",
            "scheduler none, write cache write back, 1023 requests of up to 1280 KiB",
            "io_uring allowed, 10 of 65536 asynchronous I/Os in use",
            "holes: 25 % of /data/file was never written",
            "merges: nvme0n1 may merge adjacent requests (nomerges 0)",
            "hint: ulimit -l unlimited",
        ] {
            assert!(all.contains(fact), "{fact}: {all}");
        }
    }

    #[test]
    fn the_json_holds_the_look_and_its_verdict() {
        let look = look();
        let json: serde_json::Value = serde_json::from_str(&json(&look)).unwrap();
        assert_eq!(json["trustworthy"], false);
        assert_eq!(json["device_load"]["nvme0n1"]["iops"], 40.0);
        assert_eq!(json["findings"][0]["name"], "holes");
        assert_eq!(
            json["target"]["members"][0]["devices"][0]["name"],
            "nvme0n1"
        );
        assert_eq!(serde_json::from_value::<Preflight>(json).unwrap(), look);
    }

    #[test]
    fn the_exit_status_says_whether_a_run_would_be_trustworthy() {
        let mut look = look();
        assert_eq!(exit_status(&look), 3);
        look.findings
            .retain(|finding| finding.severity == Severity::Note);
        assert_eq!(exit_status(&look), 0);
        assert_eq!(verdict(&trust(&look)), "A run here would be trustworthy.");
    }
}
