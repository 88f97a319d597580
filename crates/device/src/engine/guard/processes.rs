//! What the processes of this machine hold open or mapped, according to /proc.
//!
//! Input: a process, and a family. Output: the first member that it holds, and how, or why that
//! cannot be seen. Threads may have descriptors of their own, also after the first one has ended, and
//! a mapping stays when its descriptor is closed. Nothing here waits without end for a filesystem
//! that does not answer: FUSE and network filesystems are looked at in a thread that may be left
//! behind, and only if a member can be there.

use super::family::{Relative, TargetFamily};
use crate::bounded;
use crate::engine::mounts::{Mount, mounts_of};
use crate::engine::opened::Identity;
use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Why it is unknown what a process holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// It has ended.
    Ended,
    /// It belongs to another user, and this one may not look.
    OfAnother,
    /// Another reason, in words.
    Because(String),
}

impl Unseen {
    fn of(error: &std::io::Error) -> Self {
        match (error.kind(), error.raw_os_error()) {
            (ErrorKind::NotFound, _) | (_, Some(libc::ESRCH)) => Self::Ended,
            (ErrorKind::PermissionDenied, _) => Self::OfAnother,
            _ => Self::Because(error.to_string()),
        }
    }
}

/// A member that a process holds, and how, to follow "is held open": empty, or " for writing".
pub(super) type Holding<'a> = (&'a Relative, &'static str);

/// What was learned from the processes before.
#[derive(Default)]
pub(super) struct Processes {
    /// Every mount that was met, in any container. The kernel gives each an ID of its own.
    mounts: HashMap<u64, Mount>,
    namespaces: HashSet<PathBuf>,
    /// Mounts that did not answer, and filesystems of mappings that did not, by their device.
    silent: HashSet<u64>,
    silent_mapped: HashSet<(u32, u32)>,
    /// What mapped files are, by device and inode as the kernel shows them.
    mapped: HashMap<(u32, u32, u64), Option<Identity>>,
}

impl Processes {
    /// The first member of `family` that the process holds. Its descriptor with the number `aside`
    /// does not count.
    pub(super) fn holding<'a>(
        &mut self,
        process: &Path,
        aside: &str,
        family: &'a TargetFamily,
    ) -> Result<Option<Holding<'a>>, Unseen> {
        let tasks = std::fs::read_dir(process.join("task")).map_err(|error| Unseen::of(&error))?;
        // Threads with descriptors that no other one had: mostly the first alone.
        let mut tables: Vec<libc::pid_t> = Vec::new();
        let mut is_mapping_seen = false;
        let mut seen = Err(Unseen::Ended);
        for task in tasks.flatten() {
            let number = task.file_name().to_string_lossy().parse().unwrap_or(0);
            if tables.iter().any(|table| share_descriptors(*table, number)) {
                continue;
            }
            match self.in_descriptors(&task.path(), process, aside, family) {
                Err(Unseen::Ended) => continue,
                Ok(None) => seen = Ok(None),
                outcome => return outcome,
            }
            tables.push(number);
            // Threads share their memory, and one that has ended shows none.
            if !is_mapping_seen {
                match self.in_mappings(&task.path(), process, family) {
                    Err(Unseen::Ended) | Ok(MappingLook::None) => {}
                    Ok(MappingLook::Unheld) => is_mapping_seen = true,
                    Ok(MappingLook::Held(holding)) => return Ok(Some(holding)),
                    Err(unseen) => return Err(unseen),
                }
            }
        }
        seen
    }

    fn in_descriptors<'a>(
        &mut self,
        task: &Path,
        process: &Path,
        aside: &str,
        family: &'a TargetFamily,
    ) -> Result<Option<Holding<'a>>, Unseen> {
        let descriptors = std::fs::read_dir(task.join("fd")).map_err(|error| Unseen::of(&error))?;
        for descriptor in descriptors.flatten() {
            let path = descriptor.path();
            // Pipes, sockets and the like have no path.
            let Ok(link) = std::fs::read_link(&path) else {
                continue;
            };
            if descriptor.file_name() == aside || !link.is_absolute() {
                continue;
            }
            let information = task.join("fdinfo").join(descriptor.file_name());
            let Some(facts) = DescriptorFacts::read(&information) else {
                continue;
            };
            let identity = self.identity(&path, &link, facts.mount, process, family)?;
            let Some(relative) = identity.and_then(|identity| family.find(identity)) else {
                continue;
            };
            if !relative.is_shared_with_readers() {
                return Ok(Some((relative, "")));
            }
            if facts.is_writable {
                return Ok(Some((relative, " for writing")));
            }
        }
        Ok(None)
    }

    /// What a descriptor leads to; `None` also if it can be no member of `family`.
    fn identity(
        &mut self,
        path: &Path,
        link: &Path,
        mount: u64,
        process: &Path,
        family: &TargetFamily,
    ) -> Result<Option<Identity>, Unseen> {
        let mount_facts = self.mount(mount, process);
        if mount_facts.is_some_and(answers) {
            return Ok(std::fs::metadata(path).ok().and_then(|facts| of(&facts)));
        }
        if mount_facts.is_some_and(|mount| !may_have_member(mount, family)) {
            return Ok(None);
        }
        let answer = (!self.silent.contains(&mount)).then(|| look(path, link));
        if let Some(Some(answer)) = answer {
            return Ok(answer.ok().and_then(|facts| of(&facts)));
        }
        self.silent.insert(mount);
        silent(link, family)
    }

    /// The mount with this ID, which a process has or had.
    fn mount(&mut self, id: u64, process: &Path) -> Option<&Mount> {
        if !self.mounts.contains_key(&id) {
            self.read_mounts(process);
        }
        self.mounts.get(&id)
    }

    /// Reads the mounts of the process's container, once.
    fn read_mounts(&mut self, process: &Path) {
        let namespace = std::fs::read_link(process.join("ns/mnt")).unwrap_or_default();
        if self.namespaces.insert(namespace) {
            let mounts = mounts_of(process).unwrap_or_default();
            self.mounts
                .extend(mounts.into_iter().map(|mount| (mount.id, mount)));
        }
    }

    fn in_mappings<'a>(
        &mut self,
        task: &Path,
        process: &Path,
        family: &'a TargetFamily,
    ) -> Result<MappingLook<'a>, Unseen> {
        let text = match std::fs::read(task.join("maps")) {
            Ok(text) => text,
            // A process with more rights than ours shows its descriptors and hides its memory. Whoever
            // maps a device has mostly kept the descriptor: docs/decisions/0022.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Ok(MappingLook::Unheld);
            }
            Err(error) => return Err(Unseen::of(&error)),
        };
        if text.is_empty() {
            return Ok(MappingLook::None);
        }
        let lines = text.split(|byte| *byte == b'\n');
        for mapping in lines.filter_map(FileMapping::parse) {
            let Some(relative) = self.mapped(&mapping, process, family)? else {
                continue;
            };
            if !relative.is_shared_with_readers() {
                return Ok(MappingLook::Held((relative, " (mapped)")));
            }
            if mapping.is_written {
                return Ok(MappingLook::Held((relative, " (mapped) for writing")));
            }
        }
        Ok(MappingLook::Unheld)
    }

    /// The member that is mapped.
    fn mapped<'a>(
        &mut self,
        mapping: &FileMapping,
        process: &Path,
        family: &'a TargetFamily,
    ) -> Result<Option<&'a Relative>, Unseen> {
        let ((major, minor), inode) = (mapping.device, mapping.inode);
        let direct = Identity::File(rustix::fs::makedev(major, minor), inode);
        if let Some(relative) = family.find(direct) {
            return Ok(Some(relative));
        }
        // The number of btrfs is another one than that of its files; a device may be anywhere.
        if !family.has_devices() && !family.has_inode(inode) {
            return Ok(None);
        }
        let key = (major, minor, inode);
        let identity = if let Some(identity) = self.mapped.get(&key) {
            *identity
        } else {
            let identity = self.mapped_identity(mapping, process, family)?;
            self.mapped.insert(key, identity);
            identity
        };
        Ok(identity.and_then(|identity| family.find(identity)))
    }

    fn mapped_identity(
        &mut self,
        mapping: &FileMapping,
        process: &Path,
        family: &TargetFamily,
    ) -> Result<Option<Identity>, Unseen> {
        self.read_mounts(process);
        let of_device = |mount: &&Mount| mount.device == mapping.device;
        let mut mounts = self.mounts.values().filter(of_device).peekable();
        let is_known = mounts.peek().is_some();
        let (mut is_answering, mut may_be) = (is_known, !is_known);
        for mount in mounts {
            is_answering &= answers(mount);
            may_be |= may_have_member(mount, family);
        }
        if !may_be && !family.has_inode(mapping.inode) {
            return Ok(None);
        }
        let path = process.join("map_files").join(&mapping.range);
        let answer = if is_answering {
            Some(std::fs::metadata(&path))
        } else if self.silent_mapped.contains(&mapping.device) {
            None
        } else {
            look(&path, &mapping.path)
        };
        match answer {
            Some(Ok(facts)) => Ok(of(&facts)),
            // The lease says who has mapped a file.
            Some(Err(error))
                if error.kind() == ErrorKind::PermissionDenied && family.has_devices() =>
            {
                Err(Unseen::Because(format!(
                    "what it has mapped may not be looked at ('{}'); run as root",
                    mapping.path.display()
                )))
            }
            // It is mapped no more.
            Some(Err(_)) => Ok(None),
            None => {
                self.silent_mapped.insert(mapping.device);
                silent(&mapping.path, family)
            }
        }
    }
}

/// What a look at the mappings of a thread showed.
enum MappingLook<'a> {
    /// It has none: it has ended, or is the kernel's.
    None,
    Unheld,
    Held(Holding<'a>),
}

/// True if both threads have the same descriptors. False if the kernel does not say.
fn share_descriptors(one: libc::pid_t, other: libc::pid_t) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: the call compares two threads by number, and reads and writes no memory of ours.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0, 0) };
    order == 0
}

/// True if the filesystem answers from this machine alone, so that looking at a file never waits for
/// a server or a program.
fn answers(mount: &Mount) -> bool {
    // What has no disk of its own and answers nevertheless.
    const LOCAL: [&str; 22] = [
        "bcachefs",
        "binfmt_misc",
        "bpf",
        "btrfs",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "hugetlbfs",
        "mqueue",
        "overlay",
        "proc",
        "pstore",
        "ramfs",
        "securityfs",
        "sysfs",
        "tmpfs",
        "tracefs",
        "zfs",
    ];
    let filesystem = mount.filesystem.as_str();
    !filesystem.starts_with("fuse") && (mount.device.0 != 0 || LOCAL.contains(&filesystem))
}

/// True if a member of the family can be on this mount: a file of the same filesystem, or a node of a
/// device, where nodes count as devices.
fn may_have_member(mount: &Mount, family: &TargetFamily) -> bool {
    let (major, minor) = mount.device;
    let has_nodes = !mount.options.split(',').any(|option| option == "nodev");
    (has_nodes && family.has_devices()) || family.has_file_on(rustix::fs::makedev(major, minor))
}

/// Looks at a file in a thread that may be left behind; `None` if there is no answer.
fn look(path: &Path, link: &Path) -> Option<std::io::Result<Metadata>> {
    let what = format!("looking at '{}'", link.display());
    let path = path.to_path_buf();
    bounded::call(&what, bounded::ANSWER, move || std::fs::metadata(path)).ok()
}

/// What a file without an answer means: a file to write to has answered, and is another one.
fn silent(link: &Path, family: &TargetFamily) -> Result<Option<Identity>, Unseen> {
    if !family.has_devices() {
        return Ok(None);
    }
    Err(Unseen::Because(format!(
        "it has '{}' open, whose filesystem does not answer",
        link.display()
    )))
}

/// The identity of a file, a block device, or a character device that may lead to a disk.
fn of(facts: &Metadata) -> Option<Identity> {
    let generic = facts.file_type().is_char_device();
    Identity::of(facts).or_else(|| generic.then(|| Identity::Generic(facts.rdev())))
}

/// What the kernel says of a descriptor.
struct DescriptorFacts {
    mount: u64,
    is_writable: bool,
}

impl DescriptorFacts {
    /// `None` if it was closed meanwhile.
    fn read(information: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(information).ok()?;
        let value = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
        };
        let flags = i32::from_str_radix(value("flags:")?, 8).ok()?;
        Some(Self {
            // Without one it is no mount that is known, and is looked at with care.
            mount: value("mnt_id:")
                .and_then(|id| id.parse().ok())
                .unwrap_or(u64::MAX),
            is_writable: flags & libc::O_ACCMODE != libc::O_RDONLY,
        })
    }
}

/// A file in the memory of a process.
#[derive(Debug, PartialEq, Eq)]
struct FileMapping {
    /// Its addresses, which are its name in `map_files`.
    range: String,
    /// True if what is written to the memory goes to the file.
    is_written: bool,
    /// Number of the filesystem, and of the file in it.
    device: (u32, u32),
    inode: u64,
    path: PathBuf,
}

impl FileMapping {
    /// Parses a line of `/proc/PID/maps`; `None` for memory without a file.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let mut rest: &str = &line;
        let mut field = || {
            let (field, after) = rest.trim_start().split_once(' ').unwrap_or((rest, ""));
            rest = after;
            field.to_string()
        };
        let (range, rights, _offset) = (field(), field(), field());
        let device = field();
        let (major, minor) = device.split_once(':')?;
        let hexadecimal = |text| u32::from_str_radix(text, 16).ok();
        let device = (hexadecimal(major)?, hexadecimal(minor)?);
        let inode = field().parse().ok().filter(|inode| *inode != 0)?;
        Some(Self {
            range,
            is_written: rights.contains('w') && rights.contains('s'),
            device,
            inode,
            path: rest.trim_start().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_descriptor_shows_its_mount_and_whether_it_is_writable() {
        let place = TempDir::new("held-flags");
        let path = place.file("file", 1, 1);
        let facts = |file: &File| {
            let information = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
            DescriptorFacts::read(Path::new(&information)).unwrap()
        };
        let (reads, writes) = (
            File::open(&path).unwrap(),
            File::options().write(true).open(&path).unwrap(),
        );
        assert!(!facts(&reads).is_writable && facts(&writes).is_writable);
        let mut processes = Processes::default();
        let mount = processes.mount(facts(&reads).mount, Path::new("/proc/self"));
        assert!(answers(mount.unwrap()));
    }

    #[test]
    fn a_mapping_is_read_with_blanks_in_its_path() {
        let line = b"7f00-7f10 rw-s 00001000 fd:0a 1234      /dev/my disk (deleted)";
        let mapping = FileMapping::parse(line).unwrap();
        assert_eq!((mapping.device, mapping.inode), ((0xfd, 0x0a), 1234));
        assert_eq!(mapping.path, Path::new("/dev/my disk (deleted)"));
        assert_eq!(
            (mapping.range.as_str(), mapping.is_written),
            ("7f00-7f10", true)
        );
        let private = FileMapping::parse(b"1-2 rw-p 0 08:01 5 /usr/lib/x").unwrap();
        assert!(!private.is_written);
        for none in [
            &b"1-2 rw-p 0 00:00 0 [heap]"[..],
            b"1-2 rw-p 0 00:00 0",
            b"",
        ] {
            assert_eq!(FileMapping::parse(none), None);
        }
    }

    #[test]
    fn servers_and_programs_may_not_answer_and_disks_and_memory_do() {
        let mount = |filesystem: &str, major| Mount {
            id: 1,
            device: (major, 3),
            root: "/".into(),
            point: "/mnt".into(),
            filesystem: filesystem.into(),
            source: "x".into(),
            options: "rw,nodev".into(),
        };
        for (filesystem, major) in [("ext4", 8), ("btrfs", 0), ("tmpfs", 0), ("overlay", 0)] {
            assert!(answers(&mount(filesystem, major)), "{filesystem}");
        }
        for (filesystem, major) in [("nfs4", 0), ("fuse.sshfs", 0), ("fuseblk", 8), ("9p", 0)] {
            assert!(!answers(&mount(filesystem, major)), "{filesystem}");
        }
    }

    #[test]
    fn threads_of_one_process_share_their_descriptors() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(!share_descriptors(own, 0));
        // Where the kernel has the call at all.
        if share_descriptors(own, own) {
            let other = std::thread::spawn(move || {
                let number = rustix::thread::gettid().as_raw_nonzero().get();
                share_descriptors(own, number)
            });
            assert!(other.join().unwrap());
        }
    }
}
