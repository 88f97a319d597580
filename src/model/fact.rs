//! What was seen of the host and of the targets: facts, kept in the journal with every run.

use super::{Bytes, Nanos, ServerFacts, ServerSample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The machine a run was made on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Node name.
    pub name: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// CPUs this process may run on.
    pub cpus: u32,
    /// Main memory.
    pub memory: Bytes,
    /// The kernel's clock source: `tsc` is fast; `hpet` and others cost more a reading.
    pub clock_source: String,
    /// Nanoseconds one reading of the clock takes, measured.
    pub clock_read_ns: f64,
    /// Limits that decide what can be outstanding.
    pub limits: LimitFacts,
}

/// Limits of the process and of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitFacts {
    /// Asynchronous I/Os the system allows, all processes together (`fs.aio-max-nr`).
    pub aio_max: u64,
    /// Of those, how many are reserved now (`fs.aio-nr`).
    pub aio_used: u64,
    /// Memory the process may lock (`RLIMIT_MEMLOCK`); none = unlimited, as it is with the capability `CAP_IPC_LOCK`.
    pub locked_memory: Option<Bytes>,
    /// Files the process may have open (`RLIMIT_NOFILE`); none = unlimited.
    pub open_files: Option<u64>,
    /// `kernel.io_uring_disabled`: 0 allowed, 1 for the privileged, 2 forbidden; none where the kernel has
    /// no such switch.
    pub io_uring_disabled: Option<u64>,
}

/// What a target is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// The target in the words it was asked for.
    pub name: String,
    /// Bytes that operations can reach.
    pub usable: Bytes,
    /// The files and devices, in the order of the volume; empty for `sim:` and `null:`. Of a database on this machine,
    /// the directory of its data.
    pub members: Vec<VolumeMember>,
    /// The database server, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ServerFacts>>,
}

/// One file or device of a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VolumeMember {
    /// As asked for.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// Its whole size.
    pub bytes: Bytes,
    /// Inode number of a file; 0 for a device, or if it is not known.
    #[serde(default)]
    pub inode: u64,
    /// Direct I/O must be a multiple of this many bytes, in offset, length and memory.
    pub alignment: u32,
    /// Type of the filesystem that a file lies in, such as `ext4`.
    pub filesystem: Option<String>,
    /// Mount options of that filesystem.
    pub mount_options: Option<String>,
    /// How much of a file was ever written; none where the filesystem cannot tell, and for devices.
    pub extents: Option<Extents>,
    /// Major and minor number of the block device that it is, or that its filesystem is on; none for memory
    /// filesystems.
    pub device_number: Option<(u32, u32)>,
    /// The whole disks below.
    pub devices: Vec<BlockDevice>,
}

impl TargetFacts {
    /// What tells these members from `later` ones, in words: the first difference; none if they are the same files and
    /// devices, of the same size.
    #[must_use]
    pub fn difference(&self, later: &TargetFacts) -> Option<String> {
        if let (Some(then), Some(now)) = (&self.server, &later.server) {
            let facts = |server: &ServerFacts| {
                let how = if server.direct { "direct I/O" } else { "the page cache" };
                format!("{} with a buffer cache of {} and {how}", server.version, server.buffer_cache)
            };
            if facts(then) != facts(now) || then.tables != now.tables {
                return Some(format!("the server was {} and is {}, or its tables are others", facts(then), facts(now)));
            }
        }
        if self.members.len() != later.members.len() {
            return Some(format!("it had {} members and has {}", self.members.len(), later.members.len()));
        }
        self.members.iter().zip(&later.members).find_map(|(then, now)| {
            let path = now.path.display();
            let known = then.inode != 0 && now.inode != 0;
            let inode_differs = known && then.inode != now.inode;
            if then.kind != now.kind || inode_differs || then.device_number != now.device_number {
                return Some(format!("'{path}' is another file or device than it was"));
            }
            (then.bytes != now.bytes).then(|| format!("'{path}' had {} and has {}", then.bytes, now.bytes))
        })
    }
}

/// A regular file or a block device; nothing else can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A block device.
    Device,
}

/// How the bytes of a file are backed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// Extents the filesystem keeps for the file.
    pub count: u64,
    /// Bytes backed by written blocks.
    pub written: Bytes,
    /// Bytes allocated and never written: reads are answered with zeros, without the device.
    pub unwritten: Bytes,
    /// Bytes not allocated: likewise.
    pub holes: Bytes,
}

/// A block device and the settings of its queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// The kernel's name, such as `nvme0n1`; a partition's whole disk.
    pub name: String,
    /// Model, where the device tells.
    pub model: Option<String>,
    /// Size.
    pub bytes: Bytes,
    /// True for spinning disks.
    pub rotational: bool,
    /// I/O scheduler in force.
    pub scheduler: String,
    /// `write back` or `write through`.
    pub write_cache: String,
    /// Logical block size in bytes.
    pub logical_block: u32,
    /// Physical block size in bytes.
    pub physical_block: u32,
    /// Requests the queue holds.
    pub requests: u32,
    /// Largest request in KiB; larger I/Os are split.
    pub request_max_kib: u32,
    /// 0: adjacent requests are merged; 2: never.
    pub nomerges: u32,
    /// Polled completion available.
    pub poll: bool,
}

/// Counters of the host at one moment. Only differences mean anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Nanoseconds since the point began.
    pub at: Nanos,
    /// By block device.
    pub devices: BTreeMap<String, Counters>,
    /// CPU time of the whole host in clock ticks: user, nice, system, idle, iowait, irq, softirq, steal.
    pub cpu_ticks: [u64; 8],
    /// Microseconds in which some task waited for I/O (`/proc/pressure/io`); none where the kernel does not count it.
    pub io_pressure_us: Option<u64>,
    /// Major page faults of the whole host.
    pub major_faults: u64,
    /// The threads of this process; none where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_threads: Option<OwnThreads>,
    /// The database server, where one is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ServerSample>>,
}

/// The threads that this process has at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnThreads {
    /// How many there are.
    pub count: u32,
    /// Microseconds in which they were ready to run and had no CPU, all of them together, since each began
    /// (`/proc/self/task/*/schedstat`).
    pub run_delay_us: u64,
}

/// What a block device has done since boot (`/sys/block/*/stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Reads completed.
    pub reads: u64,
    /// Sectors of 512 bytes read.
    pub read_sectors: u64,
    /// Milliseconds reads took, summed.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Sectors of 512 bytes written.
    pub write_sectors: u64,
    /// Milliseconds writes took, summed.
    pub write_ms: u64,
    /// Requests in flight at the moment of the sample.
    pub in_flight: u64,
    /// Milliseconds in which at least one request was in flight.
    pub busy_ms: u64,
}
