//! Everything that shares the target's bytes: its partitions, its disk, devices built on it, its
//! backing files and devices, and whatever else is built on those.
//!
//! Input: an open target. Output: a [`TargetFamily`]; each of its members is checked for users. A
//! device is followed down to its backing files and devices, and from those up again to whatever
//! else is built on them. The search ends at files: the filesystem of a backing file is in use and
//! is not overwritten.

use super::refusal;
use crate::engine::opened::{Identity, Opened};
use crate::observe::stack::{Node, Sys, device_number};
use rigel_model::{Error, FileKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Relation of a file or device to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Itself,
    /// The disk that the target is a partition of.
    Disk,
    /// A partition of the target.
    Partition,
    /// A device that is built on one of the others.
    Holder,
    /// A device or file that the target is built on.
    Below,
    /// Another path to bytes of the target: it uses the same file or device, or leads to the same
    /// disk.
    Twin,
}

/// A file or device that is lost if the target is overwritten, or that shares its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relative {
    pub(super) identity: Identity,
    /// Such as `sda1`; for a file, its path.
    pub(super) name: String,
    /// Such as `dm-3 (LVM volume vg-data)`, if more than the name is known.
    pub(super) description: String,
    pub(super) relation: Relation,
    /// Set if it is built on the target's bytes, and so always in use: the name of what it is
    /// built on.
    pub(super) built_on: Option<String>,
}

impl Relative {
    /// A clause about the target, with `verb` about this member: "is mounted", "has a partition
    /// sda1 that is mounted".
    pub(super) fn is(&self, verb: &str) -> String {
        match self.relation {
            Relation::Itself => verb.into(),
            Relation::Disk => format!("is a partition of {}, which {verb}", self.name),
            Relation::Partition => format!("has a partition, {}, that {verb}", self.name),
            Relation::Holder => format!("is part of {}, which {verb}", self.description),
            Relation::Below => format!("is backed by {}, which {verb}", self.description),
            Relation::Twin => format!("shares storage with {}, which {verb}", self.description),
        }
    }

    /// True if readers are harmless: the disk above or a device below the target may well be open
    /// for reading. Only writers there change the target's bytes.
    pub(super) fn is_shared_with_readers(&self) -> bool {
        match self.relation {
            Relation::Disk => true,
            Relation::Below => matches!(self.identity, Identity::Device(_)),
            // Monitors read a disk's state there.
            Relation::Twin => matches!(self.identity, Identity::Generic(_)),
            Relation::Itself | Relation::Partition | Relation::Holder => false,
        }
    }
}

/// A loop device and its backing file or device.
struct Loop {
    node: Node,
    path: PathBuf,
    backing: Option<Identity>,
}

impl Loop {
    fn of(node: Node) -> Option<Self> {
        let path = node.backing_file()?;
        let backing = backing_by_kernel(&node).or_else(|| Identity::at(&path));
        // A loop device that was detached meanwhile has no backing file.
        let is_there = backing.is_some() || node.backing_file().is_some();
        is_there.then_some(Self {
            node,
            path,
            backing,
        })
    }
}

/// The backing file or device according to the kernel, whatever has happened to the path. Only for
/// users who may open the loop device.
fn backing_by_kernel(node: &Node) -> Option<Identity> {
    // struct loop_info64 begins with the device of the file, its inode and, for a device, its own
    // number.
    const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;
    let device = Opened::open(&Path::new("/dev").join(&node.name)).ok()?;
    if device.identity() != Identity::of_device(node.number) {
        return None;
    }
    let mut info = [0u64; 29];
    // SAFETY: the request writes the 232 bytes of a struct loop_info64 to the address it is given.
    let result = unsafe {
        libc::ioctl(
            device.file().as_raw_fd(),
            LOOP_GET_STATUS64 as _,
            info.as_mut_ptr(),
        )
    };
    match info {
        [_, _, number, ..] if result == 0 && number != 0 => Some(Identity::Device(number)),
        [device, inode, ..] if result == 0 => Some(Identity::File(device, inode)),
        _ => None,
    }
}

/// The target and everything that shares its bytes, the target first.
pub(super) struct TargetFamily {
    pub(super) members: Vec<Relative>,
    /// Backing files, with the path that the loop device reports.
    pub(super) files: Vec<(PathBuf, Identity)>,
    loops: Vec<Loop>,
    sys: Sys,
}

impl TargetFamily {
    /// # Errors
    /// /sys cannot be read, does not contain the device, or the backing file of a loop device
    /// cannot be found.
    pub(super) fn of(target: &Opened, sys: &Sys) -> Result<Self, Error> {
        let blind = |error: std::io::Error| {
            refusal::blind(
                target.path(),
                &format!("the devices that share its storage cannot be read from /sys: {error}"),
            )
        };
        let disks = sys.disks().map_err(blind)?;
        let loops = disks.iter().cloned().filter_map(Loop::of).collect();
        let mut family = Self {
            members: Vec::new(),
            files: Vec::new(),
            loops,
            sys: sys.clone(),
        };
        if target.kind() == FileKind::File {
            family.add_file(target.identity(), target.path(), Relation::Itself);
            return Ok(family);
        }
        if let Some(unknown) = family.loops.iter().find(|each| each.backing.is_none()) {
            return Err(refusal::blind(
                target.path(),
                &format!(
                    "the backing of /dev/{} is unknown, and may be this target",
                    unknown.node.name
                ),
            ));
        }
        let number = device_number(target.metadata()?.rdev());
        family.of_device(&sys.node(number).map_err(blind)?, &disks);
        Ok(family)
    }

    fn of_device(&mut self, node: &Node, disks: &[Node]) {
        self.add(node, Relation::Itself, None);
        let disk = node.disk();
        match &disk {
            Some(disk) => self.add(disk, Relation::Disk, None),
            None => node
                .partitions()
                .iter()
                .for_each(|part| self.add(part, Relation::Partition, None)),
        }
        let whole = disk.as_ref().unwrap_or(node);
        self.descend(whole);
        self.add_other_ways(whole, disk.as_ref().map(|_| node), disks);
    }

    /// True if the target is a partition.
    pub(super) fn is_of_partition(&self) -> bool {
        self.members
            .iter()
            .any(|relative| relative.relation == Relation::Disk)
    }

    pub(super) fn find(&self, identity: Identity) -> Option<&Relative> {
        self.members
            .iter()
            .find(|relative| relative.identity == identity)
    }

    /// True if a device is a member.
    pub(super) fn has_devices(&self) -> bool {
        let is_file = |relative: &Relative| matches!(relative.identity, Identity::File(..));
        !self.members.iter().all(is_file)
    }

    /// True if a file of this filesystem is a member.
    pub(super) fn has_file_on(&self, device: u64) -> bool {
        let is_there = |relative: &Relative| matches!(relative.identity, Identity::File(of, _) if of == device);
        self.members.iter().any(is_there)
    }

    /// True if a file with this number, on whatever filesystem, is a member.
    pub(super) fn has_inode(&self, inode: u64) -> bool {
        let is_it =
            |relative: &Relative| matches!(relative.identity, Identity::File(_, of) if of == inode);
        self.members.iter().any(is_it)
    }

    /// Adds a device, and everything built on it.
    fn add(&mut self, node: &Node, relation: Relation, built_on: Option<&str>) {
        let identity = Identity::of_device(node.number);
        if self.find(identity).is_some() {
            return;
        }
        let (name, description) = (node.name.clone(), description(node));
        self.members.push(Relative {
            identity,
            name,
            description,
            relation,
            built_on: built_on.map(str::to_string),
        });
        self.add_generic(node);
        self.ascend(identity, relation, node.holders(), &node.name);
    }

    /// Adds the nodes by which programs send commands to a disk past its block device.
    fn add_generic(&mut self, disk: &Node) {
        for (name, (major, minor)) in disk.generic_nodes() {
            let identity = Identity::Generic(rustix::fs::makedev(major, minor));
            if self.find(identity).is_none() {
                self.members.push(Relative {
                    identity,
                    description: format!("{name} (generic node of {})", disk.name),
                    name,
                    relation: Relation::Twin,
                    built_on: None,
                });
            }
        }
    }

    fn add_file(&mut self, identity: Identity, path: &Path, relation: Relation) {
        if self.find(identity).is_some() {
            return;
        }
        let name = path.display().to_string();
        let description = format!("'{name}'");
        self.members.push(Relative {
            identity,
            name,
            description,
            relation,
            built_on: None,
        });
        self.ascend(identity, relation, Vec::new(), "it");
    }

    /// Adds everything built on the member `identity`: arrays, volumes and loop devices.
    fn ascend(&mut self, identity: Identity, relation: Relation, holders: Vec<Node>, on: &str) {
        let own = !matches!(relation, Relation::Below | Relation::Twin);
        let above = if own {
            Relation::Holder
        } else {
            Relation::Twin
        };
        for holder in holders {
            self.add(&holder, above, Some(on));
        }
        let standing = self
            .loops
            .iter()
            .filter(|each| each.backing == Some(identity));
        let is_new = |node: &Node| self.find(Identity::of_device(node.number)).is_none();
        for node in standing
            .map(|each| each.node.clone())
            .filter(is_new)
            .collect::<Vec<_>>()
        {
            // A loop device beside the target does not by itself use the target; its users may.
            self.add(&node, above, own.then_some(on));
            node.partitions()
                .iter()
                .for_each(|part| self.add(part, above, own.then_some(on)));
        }
    }

    /// Adds everything that a whole disk is built on.
    fn descend(&mut self, disk: &Node) {
        // A device has claimed its slaves. Other volumes on these slaves share the disk but not the
        // bytes.
        for slave in disk.slaves() {
            let whole = slave.disk();
            for node in [Some(&slave), whole.as_ref()].into_iter().flatten() {
                if !self.push_below(node) {
                    continue;
                }
                self.descend(node);
            }
        }
        let Some(at) = self.loops.iter().position(|each| each.node == *disk) else {
            return;
        };
        let (path, backing) = (self.loops[at].path.clone(), self.loops[at].backing);
        match backing {
            Some(file @ Identity::File(..)) => {
                self.add_file(file, &path, Relation::Below);
                self.files.push((path, file));
            }
            Some(Identity::Device(number)) => self.add_claimed_by_nobody(device_number(number)),
            Some(Identity::Generic(_)) | None => {}
        }
    }

    /// A loop device does not claim the device below it. So others may mount it, mount its
    /// partitions, or build on it.
    fn add_claimed_by_nobody(&mut self, number: (u32, u32)) {
        let Ok(node) = self.sys.node(number) else {
            return;
        };
        self.add(&node, Relation::Below, None);
        let disk = node.disk();
        match &disk {
            Some(disk) => drop(self.push_below(disk)),
            None => node
                .partitions()
                .iter()
                .for_each(|part| self.add(part, Relation::Below, None)),
        }
        self.descend(disk.as_ref().unwrap_or(&node));
    }

    /// Adds a device without the devices built on it. Returns false if it was already a member.
    fn push_below(&mut self, node: &Node) -> bool {
        let identity = Identity::of_device(node.number);
        let is_new = self.find(identity).is_none();
        if is_new {
            let (name, description) = (node.name.clone(), description(node));
            let relation = Relation::Below;
            self.members.push(Relative {
                identity,
                name,
                description,
                relation,
                built_on: None,
            });
            self.add_generic(node);
        }
        is_new
    }

    /// Adds other paths to the same disk, as in a storage network; for a partition, also the same
    /// partition there.
    fn add_other_ways(&mut self, disk: &Node, partition: Option<&Node>, disks: &[Node]) {
        let Some(name) = disk.worldwide_name() else {
            return;
        };
        let is_same = |other: &&Node| {
            other.worldwide_name().as_ref() == Some(&name)
                && other.text("size") == disk.text("size")
        };
        for other in disks
            .iter()
            .filter(|other| other.number != disk.number)
            .filter(is_same)
        {
            // A multipath device is built on all its paths, including the target's: it was already
            // found from below.
            self.add(other, Relation::Twin, None);
            let begins_alike =
                |part: &Node| partition.is_none_or(|own| part.text("start") == own.text("start"));
            for part in other.partitions().iter().filter(|part| begins_alike(part)) {
                self.add(part, Relation::Twin, None);
            }
        }
    }
}

/// Description such as `dm-3 (LVM volume vg-data)`.
fn description(node: &Node) -> String {
    let (name, owner) = (
        node.text("dm/name").unwrap_or_default(),
        node.text("dm/uuid").unwrap_or_default(),
    );
    let kind = match owner.split('-').next() {
        Some("LVM") => "LVM volume",
        Some("CRYPT") => "encrypted volume",
        Some("mpath") => "multipath device",
        Some(_) if !name.is_empty() => "device mapper volume",
        _ if node.name.starts_with("md") => return format!("{} (RAID array)", node.name),
        _ => return node.name.clone(),
    };
    format!("{} ({kind} {name})", node.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;

    /// A copy of the parts of /sys that describe devices.
    fn sys(place: &TempDir, files: &[(&str, &str)], links: &[(&str, &str)]) -> Sys {
        for (file, content) in files {
            let file = place.0.join("devices").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, content).unwrap();
            if file.file_name().unwrap() == "dev" {
                let (device, number) = (file.parent().unwrap(), content.trim());
                link(device, &place.0.join("dev/block").join(number));
                if !device.join("../dev").exists() {
                    link(
                        device,
                        &place.0.join("block").join(device.file_name().unwrap()),
                    );
                }
            }
        }
        for (from, to) in links {
            let devices = place.0.join("devices");
            link(&devices.join(to), &devices.join(from));
        }
        Sys::at(&place.0)
    }

    fn link(to: &Path, at: &Path) {
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, at).unwrap();
    }

    fn of(sys: &Sys, number: (u32, u32)) -> TargetFamily {
        let mut family = TargetFamily {
            members: Vec::new(),
            files: Vec::new(),
            loops: Vec::new(),
            sys: sys.clone(),
        };
        family.of_device(&sys.node(number).unwrap(), &sys.disks().unwrap());
        family
    }

    fn relations(family: &TargetFamily) -> Vec<(&str, Relation)> {
        family
            .members
            .iter()
            .map(|relative| (relative.name.as_str(), relative.relation))
            .collect()
    }

    #[test]
    fn a_device_on_a_partition_is_also_on_its_disk() {
        let place = TempDir::new("family-volume");
        let files = [
            ("sda/dev", "8:0\n"),
            ("sda/sda1/dev", "8:1\n"),
            ("sda/sda1/partition", "1\n"),
            ("dm-0/dev", "252:0\n"),
            ("dm-0/dm/name", "vg-data\n"),
            ("dm-0/dm/uuid", "LVM-abc\n"),
            ("dm-1/dev", "252:1\n"),
            ("md0/dev", "9:0\n"),
        ];
        let links = [
            ("sda/sda1/holders/dm-0", "dm-0"),
            ("sda/sda1/holders/dm-1", "dm-1"),
            ("dm-0/holders/md0", "md0"),
            ("md0/slaves/dm-0", "dm-0"),
            ("dm-0/slaves/sda1", "sda/sda1"),
            ("dm-1/slaves/sda1", "sda/sda1"),
        ];
        let sys = sys(&place, &files, &links);
        let family = of(&sys, (8, 0));
        let holders = [
            ("dm-0", Relation::Holder),
            ("md0", Relation::Holder),
            ("dm-1", Relation::Holder),
        ];
        let expected = [
            &[("sda", Relation::Itself), ("sda1", Relation::Partition)],
            &holders[..],
        ]
        .concat();
        assert_eq!(relations(&family), expected);
        let is = |number| family.find(Identity::of_device(number)).unwrap().is("is");
        assert_eq!(is((8, 1)), "has a partition, sda1, that is");
        assert_eq!(
            is((252, 0)),
            "is part of dm-0 (LVM volume vg-data), which is"
        );
        assert_eq!(is((9, 0)), "is part of md0 (RAID array), which is");
        let family = of(&sys, (8, 1));
        assert_eq!(
            family.find(Identity::of_device((8, 0))).unwrap().is("is"),
            "is a partition of sda, which is"
        );
        assert!(family.find(Identity::of_device((252, 0))).is_some());

        // Two volumes on one disk do not use each other; they share only the disk below.
        let family = of(&sys, (252, 1));
        let below = [
            ("dm-1", Relation::Itself),
            ("sda1", Relation::Below),
            ("sda", Relation::Below),
        ];
        assert_eq!(relations(&family), below);
        assert!(
            family
                .members
                .iter()
                .all(|relative| relative.built_on.is_none())
        );
    }

    #[test]
    fn another_way_to_the_same_disk_is_found_by_its_worldwide_name() {
        let place = TempDir::new("family-ways");
        let mut files = Vec::new();
        for (disk, number, name) in [
            ("sda", "8:0", "naa.1"),
            ("sdb", "8:16", "naa.1"),
            ("sdc", "8:32", "naa.2"),
        ] {
            let minor: u32 = number[2..].parse().unwrap();
            files.push((format!("{disk}/dev"), number.to_string()));
            files.push((format!("{disk}/device/wwid"), name.to_string()));
            files.push((format!("{disk}/size"), "1000".to_string()));
            for part in 1..3 {
                files.push((
                    format!("{disk}/{disk}{part}/dev"),
                    format!("8:{}", minor + part),
                ));
                files.push((format!("{disk}/{disk}{part}/partition"), part.to_string()));
                files.push((
                    format!("{disk}/{disk}{part}/start"),
                    (part * 2048).to_string(),
                ));
            }
        }
        let files: Vec<_> = files
            .iter()
            .map(|(file, text)| (file.as_str(), text.as_str()))
            .collect();
        let sys = sys(&place, &files, &[]);
        let twins = |number| -> Vec<String> {
            let family = of(&sys, number);
            let twins = family
                .members
                .iter()
                .filter(|relative| relative.relation == Relation::Twin);
            twins.map(|relative| relative.name.clone()).collect()
        };
        assert_eq!(twins((8, 0)), ["sdb", "sdb1", "sdb2"]);
        assert_eq!(twins((8, 2)), ["sdb", "sdb2"]);
        assert_eq!(twins((8, 32)), [""; 0]);
    }

    #[test]
    fn nodes_that_lead_past_the_block_device_are_members() {
        let place = TempDir::new("family-generic");
        let files = [
            ("sda/dev", "8:0\n"),
            ("sda/sda1/dev", "8:1\n"),
            ("sda/sda1/partition", "1\n"),
            ("sda/device/scsi_generic/sg3/dev", "21:3\n"),
            ("sda/device/bsg/0:0:0:0/dev", "252:5\n"),
            ("nvme0n1/dev", "259:0\n"),
            ("nvme0n1/device/ng0n1/dev", "241:0\n"),
        ];
        let sys = sys(&place, &files, &[]);
        let generic = |number, (major, minor)| {
            let family = of(&sys, number);
            let relative = family.find(Identity::Generic(rustix::fs::makedev(major, minor)));
            relative.map(|relative| relative.is("is held"))
        };
        let expected = "shares storage with sg3 (generic node of sda), which is held";
        for number in [(8, 0), (8, 1)] {
            assert_eq!(generic(number, (21, 3)).as_deref(), Some(expected));
            assert!(generic(number, (252, 5)).is_some());
        }
        assert!(generic((259, 0), (241, 0)).unwrap().contains("ng0n1"));
        assert_eq!(generic((259, 0), (21, 3)), None);
    }

    #[test]
    fn without_sys_nothing_is_permitted() {
        let place = TempDir::new("family-blind");
        let file = Opened::open(&place.file("file", 1, 1)).unwrap();
        let said = TargetFamily::of(&file, &Sys::at(&place.0))
            .err()
            .unwrap()
            .to_string();
        assert!(
            said.contains("refused to write") && said.contains("cannot be read from /sys"),
            "{said}"
        );
    }
}
