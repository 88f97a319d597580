//! Facts about the host and the targets, kept in the journal with every run.

use super::text::{read_device_name, read_in_line};
use super::{Bytes, Nanos, ServerFacts, ServerSample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The machine a run was made on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Host {
    /// Node name.
    #[serde(deserialize_with = "read_in_line")]
    pub name: String,
    /// Kernel release, as `uname -r`.
    #[serde(deserialize_with = "read_in_line")]
    pub kernel: String,
    /// CPU model.
    #[serde(deserialize_with = "read_in_line")]
    pub cpu: String,
    /// CPUs this process may run on.
    pub cpus: u32,
    /// CPU time per time that control groups allow, in CPUs; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
    /// Main memory.
    pub memory: Bytes,
    /// The kernel's clock source: `tsc` is fast; readings of `hpet` and others cost more.
    pub clock_source: String,
    /// Measured time of one reading of the clock, in nanoseconds.
    pub clock_read_ns: f64,
    /// Limits on outstanding I/Os.
    pub limits: LimitFacts,
}

/// Limits of the process and of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitFacts {
    /// Asynchronous I/Os the system allows, all processes together (`fs.aio-max-nr`).
    pub aio_max: u64,
    /// Asynchronous I/Os that are reserved now (`fs.aio-nr`).
    pub aio_used: u64,
    /// Memory the process may lock (`RLIMIT_MEMLOCK`); `None` if unlimited, as with the capability
    /// `CAP_IPC_LOCK`.
    pub locked_memory: Option<Bytes>,
    /// Files the process may have open (`RLIMIT_NOFILE`); `None` if unlimited.
    pub open_files: Option<u64>,
    /// `kernel.io_uring_disabled`: 0 allowed, 1 for the privileged, 2 forbidden; `None` if the
    /// kernel has no such setting.
    pub io_uring_disabled: Option<u64>,
}

/// Facts about a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetFacts {
    /// The target as the user named it.
    pub name: String,
    /// Bytes that operations can reach.
    pub usable: Bytes,
    /// The files and devices, in the order of the volume; empty for `sim:` and `null:`. For a
    /// database on this machine, the directory of its data.
    pub members: Vec<VolumeMember>,
    /// The database server, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ServerFacts>>,
}

/// One file or device of a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VolumeMember {
    /// Path as the user named it.
    pub path: PathBuf,
    /// File or device.
    pub kind: FileKind,
    /// Its whole size.
    pub bytes: Bytes,
    /// Inode number of a file; 0 for a device, or if unknown.
    #[serde(default)]
    pub inode: u64,
    /// Offset, length and memory address of direct I/O must be multiples of this many bytes.
    pub alignment: u32,
    /// Bytes of the largest write that is stored as a whole or not at all, if the write asks for it
    /// (`RWF_ATOMIC`); `None` if the kernel names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_max: Option<Bytes>,
    /// Type of the file's filesystem, such as `ext4`.
    pub filesystem: Option<String>,
    /// Mount options of that filesystem.
    pub mount_options: Option<String>,
    /// The written parts of a file; `None` if the filesystem does not report them, and for
    /// devices.
    pub extents: Option<Extents>,
    /// Major and minor number of the block device, or of its filesystem's device; `None` for
    /// memory filesystems.
    pub device_number: Option<(u32, u32)>,
    /// The underlying whole disks.
    pub devices: Vec<BlockDevice>,
}

impl TargetFacts {
    /// The first difference between these members and `later` ones, in words; `None` if they are
    /// the same files and devices, of the same size.
    pub fn difference(&self, later: &TargetFacts) -> Option<String> {
        if let (Some(then), Some(now)) = (&self.server, &later.server) {
            let facts = |server: &ServerFacts| {
                let how = if server.direct {
                    "direct I/O"
                } else {
                    "the page cache"
                };
                format!(
                    "{} with a buffer cache of {} and {how}",
                    server.version, server.buffer_cache
                )
            };
            if facts(then) != facts(now) || then.tables != now.tables {
                return Some(format!(
                    "the server was {} and is now {}, or its tables differ",
                    facts(then),
                    facts(now)
                ));
            }
        }
        if self.members.len() != later.members.len() {
            return Some(format!(
                "it had {} members and now has {}",
                self.members.len(),
                later.members.len()
            ));
        }
        self.members
            .iter()
            .zip(&later.members)
            .find_map(|(then, now)| {
                let path = now.path.display();
                let has_inodes = then.inode != 0 && now.inode != 0;
                let inode_differs = has_inodes && then.inode != now.inode;
                if then.kind != now.kind || inode_differs || then.device_number != now.device_number
                {
                    return Some(format!("'{path}' is no longer the same file or device"));
                }
                (then.bytes != now.bytes)
                    .then(|| format!("'{path}' had {} and now has {}", then.bytes, now.bytes))
            })
    }
}

/// A regular file or a block device; nothing else can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A block device.
    Device,
}

/// How the bytes of a file are backed.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Extents {
    /// Extents the filesystem keeps for the file.
    pub count: u64,
    /// Bytes backed by written blocks.
    pub written: Bytes,
    /// Bytes allocated but never written: reads return zeros without accessing the device.
    pub unwritten: Bytes,
    /// Bytes not allocated: reads return zeros as well.
    pub holes: Bytes,
}

/// A block device and the settings of its queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockDevice {
    /// The kernel's name, such as `nvme0n1`; a partition's whole disk.
    #[serde(deserialize_with = "read_device_name")]
    pub name: String,
    /// Model, if the device reports it.
    pub model: Option<String>,
    /// How it is attached, if a hypervisor or a network is between: `virtio`, `xen`, `iscsi`, `fc`
    /// or `nvme-fabrics`; `None` for a local disk, or if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Size.
    pub bytes: Bytes,
    /// True for spinning disks.
    pub rotational: bool,
    /// Active I/O scheduler.
    pub scheduler: String,
    /// `write back` or `write through`.
    pub write_cache: String,
    /// Logical block size in bytes.
    pub logical_block: u32,
    /// Physical block size in bytes.
    pub physical_block: u32,
    /// Number of requests that the queue holds.
    pub requests: u32,
    /// Largest request in KiB; larger I/Os are split.
    pub request_max_kib: u32,
    /// 0: adjacent requests are merged; 2: never.
    pub nomerges: u32,
    /// Polled completion available.
    pub poll: bool,
}

/// Counters of the host at one moment. Only differences are meaningful.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// Nanoseconds since the point began.
    pub at: Nanos,
    /// Counters of each block device.
    pub devices: BTreeMap<String, Counters>,
    /// CPU time of the whole host in clock ticks: user, nice, system, idle, iowait, irq, softirq,
    /// steal.
    pub cpu_ticks: [u64; 8],
    /// Microseconds in which some task waited for I/O (`/proc/pressure/io`); `None` if the kernel
    /// does not count it.
    pub io_pressure_us: Option<u64>,
    /// Major page faults of the whole host.
    pub major_faults: u64,
    /// The threads of this process; `None` if the kernel does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_threads: Option<OwnThreads>,
    /// Counters of the database server, if one is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ServerSample>>,
}

/// The threads of this process at one moment.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct OwnThreads {
    /// Number of threads.
    pub count: u32,
    /// Microseconds in which they were ready to run without a CPU, summed over all threads since
    /// each began (`/proc/self/task/*/schedstat`).
    pub run_delay_us: u64,
}

/// Counters of a block device since boot (`/sys/block/*/stat`).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Counters {
    /// Reads completed.
    pub reads: u64,
    /// Sectors of 512 bytes read.
    pub read_sectors: u64,
    /// Total time of reads in milliseconds.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Sectors of 512 bytes written.
    pub write_sectors: u64,
    /// Total time of writes in milliseconds.
    pub write_ms: u64,
    /// Requests in flight at the time of the sample.
    pub in_flight: u64,
    /// Milliseconds in which at least one request was in flight.
    pub busy_ms: u64,
}
