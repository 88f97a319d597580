//! What stands between a run that writes and somebody's data.
//!
//! Goes in: the path of a target, and the paths that were given a second time to say that their content is not wanted.
//! Comes out: leave to write, or the reason why not and its cure. It opens read-only and changes nothing.
//!
//! Refused whatever was said: what is in use (mounted, swap, part of an array or of a logical volume, behind a loop
//! device, held open by another process), what carries a filesystem, a partition table or a database, and what lies
//! among the files of a database or of the system. What Rigel made itself may be written. Everything else may be
//! written if its path was given twice.
//!
//! Must be asked before the target is opened: it takes a descriptor of our own for a reason to look less closely.

use super::mounts::{mounts, parse_device_number, unescape};
use super::probe::{Identity, device_bytes, device_number, identity_of, kind_of, metadata, open};
use super::signature::{REACH, signature};
use crate::clock::Clock;
use crate::model::{Bytes, Error, FileKind, Nanos};
use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Extended attribute of the files Rigel makes; its value is the inode number, so that it means nothing on a copy.
const MARK: &str = "user.rigel.scratch";

/// Leave to write to `path`, whose content may be lost if `destroy` names it as well. Answers which file or device was
/// judged: a path can lead elsewhere by the time it is opened.
///
/// # Errors
/// The target is in use, carries data that somebody may want, or was not named a second time.
pub fn permit_write(path: &Path, destroy: &[PathBuf]) -> Result<Identity, Error> {
    let facts = metadata(path)?;
    let kind = kind_of(&facts, path)?;
    let target = Target { path, kind, identity: identity_of(&facts, kind), family: Family::of(&facts, kind) };
    target.refuse_mounted()?;
    target.refuse_swap()?;
    target.refuse_member()?;
    target.refuse_behind_loop_device()?;
    target.refuse_held()?;
    let file = open(path)?;
    target.refuse_signature(&file)?;
    target.refuse_place(&facts)?;
    if made_by_rigel(path, &file, &facts) || destroy.iter().any(|named| same(named, path)) {
        Ok(target.identity)
    } else {
        Err(target.unnamed(&file, &facts))
    }
}

/// Notes on a file that Rigel has just made that it did. A filesystem without extended attributes keeps no note; the
/// file must then be named twice like any other.
pub(super) fn mark(file: &File) {
    if let Ok(facts) = file.metadata() {
        let value = facts.ino().to_string();
        let _ = rustix::fs::fsetxattr(file, MARK, value.as_bytes(), rustix::fs::XattrFlags::empty());
    }
}

fn made_by_rigel(path: &Path, file: &File, facts: &Metadata) -> bool {
    // A file without a name that this process holds can only be its own scratch file.
    if facts.nlink() == 0 && path.starts_with("/proc/self/fd") {
        return true;
    }
    let mut value = [0; 24];
    facts.is_file()
        && rustix::fs::fgetxattr(file, MARK, &mut value[..])
            .is_ok_and(|length| value[..length] == *facts.ino().to_string().as_bytes())
}

/// True if both paths lead to the same name, symbolic links followed.
fn same(one: &Path, other: &Path) -> bool {
    match (std::fs::canonicalize(one), std::fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// A target while the guard looks at it.
struct Target<'a> {
    path: &'a Path,
    kind: FileKind,
    identity: Identity,
    family: Family,
}

impl Target<'_> {
    /// A refusal: `found` follows the path, as in "is mounted on /mnt".
    fn refusal(&self, found: impl std::fmt::Display, cure: impl Into<String>) -> Error {
        Error::asked(format!("refused to write to '{}': it {found}", self.path.display()), cure)
    }

    fn refuse_mounted(&self) -> Result<(), Error> {
        for mount in mounts() {
            // By its number, or by its source where the filesystem makes up a number of its own.
            let source = || {
                let facts = std::fs::metadata(&mount.source).ok()?;
                facts.file_type().is_block_device().then(|| device_number(facts.rdev()))
            };
            let Some(relative) = self.family.find(mount.device).or_else(|| self.family.find(source()?)) else {
                continue;
            };
            let point = mount.point.display();
            return Err(self.refusal(
                format!("{} mounted on {point} ({})", relative.is("is"), mount.filesystem),
                format!("name another device, or a directory below {point}, where Rigel makes a file of its own"),
            ));
        }
        Ok(())
    }

    fn refuse_swap(&self) -> Result<(), Error> {
        let swaps = std::fs::read("/proc/swaps").unwrap_or_default();
        for line in swaps.split(|byte| *byte == b'\n').skip(1) {
            let Some(field) = line.split(u8::is_ascii_whitespace).next().filter(|field| !field.is_empty()) else {
                continue;
            };
            let swap = unescape(field);
            let Ok(facts) = std::fs::metadata(&swap) else { continue };
            let relative =
                self.family.find(device_number(facts.rdev())).filter(|_| facts.file_type().is_block_device());
            let own = self.kind == FileKind::File && identity_of(&facts, FileKind::File) == self.identity;
            let found = match relative {
                Some(relative) => format!("{} in use as swap", relative.is("is")),
                None if own => "is in use as swap".to_string(),
                None => continue,
            };
            return Err(self.refusal(found, format!("name another target; `swapoff {}` ends its use", quoted(&swap))));
        }
        Ok(())
    }

    /// Part of an array, a logical volume, or anything else that the kernel has built on top.
    fn refuse_member(&self) -> Result<(), Error> {
        let Some(holder) = self.family.0.iter().find(|relative| relative.relation == Relation::Holder) else {
            return Ok(());
        };
        Err(self.refusal(
            format!("is part of {}", holder.description()),
            format!("name /dev/{} itself if that may be written, or another device", holder.name),
        ))
    }

    fn refuse_behind_loop_device(&self) -> Result<(), Error> {
        for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
            let Ok(backing) = std::fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
            let Ok(facts) = std::fs::metadata(backing.trim_end_matches('\n')) else { continue };
            let kind = if facts.file_type().is_block_device() { FileKind::Device } else { FileKind::File };
            if identity_of(&facts, kind) == self.identity {
                let device = entry.file_name().to_string_lossy().into_owned();
                return Err(self.refusal(
                    format!("is what the loop device /dev/{device} stands on"),
                    format!("name /dev/{device} itself, or detach it: losetup --detach /dev/{device}"),
                ));
            }
        }
        Ok(())
    }

    fn refuse_held(&self) -> Result<(), Error> {
        // udev looks into a device for a moment whenever somebody has closed it, and a child between fork and exec
        // holds its parent's files: what is held half a second later is held.
        const LOOKS: u32 = 6;
        let clock = Clock::real();
        let mut held = self.held();
        for _ in 1..LOOKS {
            if held.is_none() {
                return Ok(());
            }
            clock.wait_until(clock.now().plus(Nanos::from_millis(100)));
            held = self.held();
        }
        match held {
            None => Ok(()),
            Some(by) => Err(self.refusal(format!("is held open by {by}"), "end what holds it, or name another target")),
        }
    }

    /// Who holds the target open, if anybody else does.
    fn held(&self) -> Option<String> {
        let own = std::process::id().to_string();
        let mut open_here = false;
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let number = process.file_name().to_string_lossy().into_owned();
            if !number.bytes().all(|byte| byte.is_ascii_digit()) || !self.is_open_in(&process.path().join("fd")) {
                continue;
            }
            if number == own {
                open_here = true;
                continue;
            }
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("process {number} ({})", name.trim()));
        }
        // Processes of other users and of other containers cannot be seen; the kernel knows of them.
        match self.kind {
            FileKind::Device => self
                .claimed_by_kernel()
                .then(|| "the kernel: mounted in another container, part of an array, or claimed by a process".into()),
            FileKind::File if open_here => None,
            FileKind::File => self.open_elsewhere().then(|| "a process that cannot be seen from here".into()),
        }
    }

    fn is_open_in(&self, descriptors: &Path) -> bool {
        std::fs::read_dir(descriptors).into_iter().flatten().flatten().any(|descriptor| {
            let path = descriptor.path();
            // Pipes, sockets and the like have no path. Asking only files spares a wait for servers that do not answer.
            let leads_to_file = std::fs::read_link(&path).is_ok_and(|link| link.is_absolute());
            leads_to_file && std::fs::metadata(&path).is_ok_and(|facts| self.is_held_through(&facts))
        })
    }

    fn is_held_through(&self, facts: &Metadata) -> bool {
        match self.kind {
            FileKind::File => facts.is_file() && identity_of(facts, FileKind::File) == self.identity,
            FileKind::Device => {
                let relative = || self.family.find(device_number(facts.rdev()));
                facts.file_type().is_block_device()
                    && relative()
                        .is_some_and(|relative| matches!(relative.relation, Relation::Itself | Relation::Partition))
            }
        }
    }

    /// An exclusive open of a block device fails while it is mounted, in an array, in use as swap, or claimed
    /// otherwise, in whichever container.
    fn claimed_by_kernel(&self) -> bool {
        let exclusive = libc::O_EXCL | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let opened = OpenOptions::new().read(true).custom_flags(exclusive).open(self.path);
        opened.is_err_and(|error| error.kind() == ErrorKind::ResourceBusy)
    }

    /// The kernel lends a file for writing only to the one process that has it open, or mapped. Where it does not lend
    /// at all, to another than the owner for one, nothing is learnt.
    fn open_elsewhere(&self) -> bool {
        const F_SETLEASE: libc::c_int = 1024;
        const F_SETSIG: libc::c_int = 10;
        // ext2 to ext4, XFS, btrfs, F2FS, tmpfs. Others refuse for reasons of their own: NFS wherever the server has
        // not handed the file over.
        const LENDERS: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];
        let Ok(file) = open(self.path) else { return false };
        let filesystem = rustix::fs::fstatfs(&file).map_or(0, |facts| u64::try_from(facts.f_type).unwrap_or(0));
        if !LENDERS.contains(&filesystem) {
            return false;
        }
        let descriptor = file.as_fd().as_raw_fd();
        // Whoever opens the file in the next moment breaks the lease, and the signal of that must not end us: SIGURG is
        // ignored where nobody asks for it, SIGIO is not.
        // SAFETY: fcntl with an integer argument on a descriptor that lives until the end of this function.
        unsafe { libc::fcntl(descriptor, F_SETSIG, libc::SIGURG) };
        // SAFETY: fcntl with an integer argument on a descriptor that lives until the end of this function.
        let lent = unsafe { libc::fcntl(descriptor, F_SETLEASE, libc::F_WRLCK) };
        let refused = lent < 0 && std::io::Error::last_os_error().kind() == ErrorKind::WouldBlock;
        if lent == 0 {
            // SAFETY: as above.
            unsafe { libc::fcntl(descriptor, F_SETLEASE, libc::F_UNLCK) };
        }
        refused
    }

    fn refuse_signature(&self, file: &File) -> Result<(), Error> {
        let unreadable = |error: std::io::Error| {
            Error::failed(
                format!("refused to write to '{}': what it holds cannot be read: {error}", self.path.display()),
                "Rigel writes only where it has seen that nothing is lost; name another target",
            )
        };
        let size = match self.kind {
            FileKind::File => file.metadata().map_err(unreadable)?.len(),
            FileKind::Device => device_bytes(file).map_err(unreadable)?,
        };
        let head = read_at(file, 0, REACH.min(size)).map_err(unreadable)?;
        let start = size.saturating_sub(REACH);
        let tail = read_at(file, start, size - start).map_err(unreadable)?;
        let Some(found) = signature(&head, &tail, size) else { return Ok(()) };
        let quoted = quoted(self.path);
        let cure = match self.kind {
            FileKind::File => {
                format!("name another file; if nothing in this one is wanted, remove it yourself: rm {quoted}")
            }
            FileKind::Device => format!(
                "name another device; if nothing on this one is wanted, clear it yourself: \
                 wipefs --all {quoted} (or, for a database's data: blkdiscard --force {quoted})"
            ),
        };
        Err(self.refusal(format!("carries {found}"), cure))
    }

    /// A file that lies among the files of a database or of the system belongs to it, whatever is in it.
    fn refuse_place(&self, facts: &Metadata) -> Result<(), Error> {
        // Nobody keeps a file to measure on there, and the kernel's own files act on what is written to them.
        const SYSTEM: [&str; 10] =
            ["/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr"];
        if self.kind == FileKind::Device || facts.nlink() == 0 {
            return Ok(());
        }
        let Ok(place) = std::fs::canonicalize(self.path) else { return Ok(()) };
        if let Some(system) = SYSTEM.iter().find(|system| place.starts_with(system)) {
            return Err(self.refusal(
                format!("lies in {system}, which belongs to the system"),
                "name a file or a directory on the storage to be measured",
            ));
        }
        for directory in place.ancestors().skip(1) {
            if let Some(database) = database_in(directory) {
                return Err(self.refusal(
                    format!("lies in {}, which is {database}", directory.display()),
                    "name a file or a directory outside the database's own",
                ));
            }
        }
        Ok(())
    }

    /// The refusal of a target that would be permitted if it were named twice.
    fn unnamed(&self, file: &File, facts: &Metadata) -> Error {
        let (what, size) = match self.kind {
            FileKind::File => ("file", facts.len()),
            FileKind::Device => ("device", device_bytes(file).unwrap_or_default()),
        };
        self.refusal(
            format!("is a {what} of {} that Rigel did not make, and writing destroys what it holds", Bytes(size)),
            format!("if nothing in it is wanted, say so by naming it again: --destroy {}", quoted(self.path)),
        )
    }
}

/// Whose data directory this is, by the files that lie in it.
fn database_in(directory: &Path) -> Option<&'static str> {
    /// All of these names together tell.
    const MARKS: &[(&[&str], &str)] = &[
        (&["PG_VERSION"], "a PostgreSQL data directory"),
        (&["ibdata1"], "a MySQL or MariaDB data directory"),
        (&["mysql.ibd"], "a MySQL data directory"),
        (&["aria_log_control"], "a MariaDB data directory"),
        (&["WiredTiger", "WiredTiger.wt"], "a MongoDB data directory"),
        (&["CURRENT", "IDENTITY"], "a RocksDB database"),
        (&["system01.dbf"], "an Oracle data directory"),
        (&["control01.ctl"], "an Oracle data directory"),
    ];
    let there = |name: &&str| directory.join(name).symlink_metadata().is_ok();
    MARKS.iter().find(|(names, _)| names.iter().all(there)).map(|(_, database)| *database)
}

/// Reads up to `length` bytes; fewer where the file ends before.
fn read_at(file: &File, offset: u64, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).expect("at most the reach of a signature")];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if text.chars().all(plain) && !text.is_empty() { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// How a device stands to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Itself,
    /// The disk that the target is a partition of.
    Disk,
    /// A partition of the target.
    Partition,
    /// Something that the kernel has built on one of the others.
    Holder,
}

/// A device that is lost if the target is overwritten, or that shares the target's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Relative {
    name: String,
    number: (u32, u32),
    relation: Relation,
    directory: PathBuf,
}

impl Relative {
    /// `is` of the target itself, or of the relative: "is mounted", "has a partition sda1 that is mounted".
    fn is(&self, verb: &str) -> String {
        match self.relation {
            Relation::Itself => verb.into(),
            Relation::Disk => format!("is a partition of {}, which {verb}", self.name),
            Relation::Partition => format!("has a partition, {}, that {verb}", self.name),
            Relation::Holder => format!("is part of {}, which {verb}", self.description()),
        }
    }

    /// `dm-3 (LVM volume vg-data)`.
    fn description(&self) -> String {
        let text =
            |file: &str| std::fs::read_to_string(self.directory.join(file)).unwrap_or_default().trim().to_string();
        let (name, owner) = (text("dm/name"), text("dm/uuid"));
        let kind = match owner.split('-').next() {
            Some("LVM") => "LVM volume",
            Some("CRYPT") => "encrypted volume",
            Some("mpath") => "multipath device",
            Some(_) if !name.is_empty() => "device mapper volume",
            _ if self.name.starts_with("md") => return format!("{} (RAID array)", self.name),
            _ => return self.name.clone(),
        };
        format!("{} ({kind} {name})", self.name)
    }
}

/// A device and all that share its bytes; of a file, nobody.
struct Family(Vec<Relative>);

impl Family {
    fn of(facts: &Metadata, kind: FileKind) -> Self {
        if kind == FileKind::File {
            return Self(Vec::new());
        }
        let number = device_number(facts.rdev());
        let Ok(directory) = std::fs::canonicalize(format!("/sys/dev/block/{}:{}", number.0, number.1)) else {
            // Without /sys, what is mounted and what is swap is still found by number.
            let itself =
                Relative { name: String::new(), number, relation: Relation::Itself, directory: PathBuf::new() };
            return Self(vec![itself]);
        };
        Self::in_directory(&directory)
    }

    /// The family of the device that a directory of /sys tells of.
    fn in_directory(directory: &Path) -> Self {
        let mut family = Self(Vec::new());
        family.add(directory, Relation::Itself);
        if directory.join("partition").exists() {
            directory.parent().into_iter().for_each(|disk| family.add(disk, Relation::Disk));
        } else {
            entries(directory).filter(|entry| entry.join("partition").exists()).for_each(|partition| {
                family.add(&partition, Relation::Partition);
            });
        }
        family
    }

    /// Adds the device in a directory of /sys and whatever is built on it.
    fn add(&mut self, directory: &Path, relation: Relation) {
        let number = std::fs::read_to_string(directory.join("dev")).ok().and_then(|text| parse_device_number(&text));
        let Some(number) = number.filter(|number| self.find(*number).is_none()) else { return };
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.0.push(Relative { name, number, relation, directory: directory.to_path_buf() });
        for holder in entries(&directory.join("holders")) {
            if let Ok(holder) = std::fs::canonicalize(holder) {
                self.add(&holder, Relation::Holder);
            }
        }
    }

    fn find(&self, number: (u32, u32)) -> Option<&Relative> {
        self.0.iter().find(|relative| relative.number == number)
    }
}

/// The paths in a directory; none if it cannot be read.
fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_as_a_shell_takes_it() {
        assert_eq!(quoted(Path::new("/dev/disk/by-id/a_b-1:0")), "/dev/disk/by-id/a_b-1:0");
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }

    /// A copy of the parts of /sys that tell of a logical volume on a partition; removed at the end.
    struct Sys(PathBuf);

    impl Sys {
        fn new() -> Self {
            let program = std::env::current_exe().unwrap();
            let path = program.parent().unwrap().join(format!("guard-sys-{}", std::process::id()));
            let write = |file: &str, content: &str| {
                let file = path.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, content).unwrap();
            };
            write("sda/dev", "8:0\n");
            write("sda/sda1/dev", "8:1\n");
            write("sda/sda1/partition", "1\n");
            write("dm-0/dev", "252:0\n");
            write("dm-0/dm/name", "vg-data\n");
            write("dm-0/dm/uuid", "LVM-abc\n");
            write("md0/dev", "9:0\n");
            for (directory, holder) in [("sda/sda1", "dm-0"), ("dm-0", "md0")] {
                std::fs::create_dir_all(path.join(directory).join("holders")).unwrap();
                let link = path.join(directory).join("holders").join(holder);
                let _ = std::os::unix::fs::symlink(path.join(holder), link);
            }
            Self(path)
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_built_on_a_partition_is_built_on_its_disk() {
        let sys = Sys::new();
        let family = Family::in_directory(&sys.0.join("sda"));
        let relations: Vec<_> = family.0.iter().map(|relative| (relative.name.as_str(), relative.relation)).collect();
        let expected = [
            ("sda", Relation::Itself),
            ("sda1", Relation::Partition),
            ("dm-0", Relation::Holder),
            ("md0", Relation::Holder),
        ];
        assert_eq!(relations, expected);
        assert_eq!(family.find((8, 1)).unwrap().is("is"), "has a partition, sda1, that is");
        assert_eq!(family.find((252, 0)).unwrap().is("is"), "is part of dm-0 (LVM volume vg-data), which is");
        assert_eq!(family.find((9, 0)).unwrap().description(), "md0 (RAID array)");

        let family = Family::in_directory(&sys.0.join("sda/sda1"));
        assert_eq!(family.find((8, 0)).unwrap().is("is"), "is a partition of sda, which is");
        assert!(family.find((252, 0)).is_some());

        let path = Path::new("/dev/sda1");
        let target = Target { path, kind: FileKind::Device, identity: Identity::Device(0), family };
        let said = target.refuse_member().unwrap_err().to_string();
        assert!(said.contains("/dev/sda1': it is part of dm-0 (LVM volume vg-data)"), "{said}");
    }

    #[test]
    fn the_kernel_tells_of_an_open_file_that_proc_does_not_show() {
        let program = std::env::current_exe().unwrap();
        let path = program.parent().unwrap().join(format!("guard-lease-{}", std::process::id()));
        let written = File::create(&path).unwrap();
        let facts = metadata(&path).unwrap();
        let target = Target {
            path: &path,
            kind: FileKind::File,
            identity: identity_of(&facts, FileKind::File),
            family: Family(Vec::new()),
        };
        let (while_open, by_name) = (target.open_elsewhere(), target.held());
        drop(written);
        let after = target.open_elsewhere();
        std::fs::remove_file(&path).unwrap();
        // This process's own descriptor is no reason to refuse: `held` finds it and asks no further.
        assert_eq!(by_name, None);
        assert!(while_open, "an open file was lent");
        assert!(!after, "a file that nobody holds was not lent");
    }
}
