//! How block devices are stacked on each other and on files, according to /sys.
//!
//! Input: the number of a device. Output: [`Node`]s, one per device, that know their neighbours.
//! Queue settings are read elsewhere. This module opens only small files of /sys.

use super::small_file::read;
use std::io;
use std::path::{Path, PathBuf};

/// /sys, or a copy of the required parts.
#[derive(Debug, Clone)]
pub struct Sys(PathBuf);

impl Default for Sys {
    fn default() -> Self {
        Self("/sys".into())
    }
}

impl Sys {
    /// The same tree in another directory.
    pub fn at(root: &Path) -> Self {
        Self(root.to_path_buf())
    }

    /// The device with this number.
    ///
    /// # Errors
    /// /sys cannot be read, or does not contain the device.
    pub fn node(&self, (major, minor): (u32, u32)) -> io::Result<Node> {
        let directory = std::fs::canonicalize(self.0.join(format!("dev/block/{major}:{minor}")))?;
        Node::at(&directory).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// All whole disks, loop devices, arrays and volumes.
    ///
    /// # Errors
    /// /sys cannot be read.
    pub fn disks(&self) -> io::Result<Vec<Node>> {
        let directory = self.0.join("block");
        std::fs::read_dir(&directory)?; // An error of the directory itself; what is in it may come and go.
        Ok(nodes(&directory))
    }
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Such as `sda1`.
    pub name: String,
    /// Major and minor number.
    pub number: (u32, u32),
    directory: PathBuf,
}

impl Node {
    fn at(directory: &Path) -> Option<Self> {
        let directory = std::fs::canonicalize(directory).ok()?;
        let number = parse_number(&read(directory.join("dev"))?)?;
        let name = directory.file_name()?.to_string_lossy().into_owned();
        Some(Self {
            name,
            number,
            directory,
        })
    }

    /// A small file of the device in /sys; `None` if it is empty or missing.
    pub fn text(&self, file: &str) -> Option<String> {
        read(self.directory.join(file))
    }

    /// Its directory in /sys.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The disk of which it is a partition; `None` for a whole disk.
    pub fn disk(&self) -> Option<Self> {
        self.directory
            .join("partition")
            .exists()
            .then(|| Self::at(self.directory.parent()?))
            .flatten()
    }

    /// Its partitions.
    pub fn partitions(&self) -> Vec<Self> {
        nodes(&self.directory)
            .into_iter()
            .filter(|node| node.directory.join("partition").exists())
            .collect()
    }

    /// Devices that the kernel has built on it: arrays, volumes.
    pub fn holders(&self) -> Vec<Self> {
        nodes(&self.directory.join("holders"))
    }

    /// Devices that the kernel has built it on.
    pub fn slaves(&self) -> Vec<Self> {
        nodes(&self.directory.join("slaves"))
    }

    /// For a loop device, the path of its backing file or device.
    pub fn backing_file(&self) -> Option<PathBuf> {
        let path = std::fs::read(self.directory.join("loop/backing_file")).ok()?;
        let path = path.strip_suffix(b"\n").unwrap_or(&path).to_vec();
        Some(std::os::unix::ffi::OsStringExt::from_vec(path))
            .map(|path: std::ffi::OsString| path.into())
    }

    /// The character devices by which programs send commands to a disk: `sg` and `bsg` of SCSI, `ng`
    /// of `NVMe`; each with its name and number. A partition has none.
    pub fn generic_nodes(&self) -> Vec<(String, (u32, u32))> {
        if self.disk().is_some() {
            return Vec::new();
        }
        let device = self.directory.join("device");
        let scsi = ["scsi_generic", "bsg"].map(|class| device.join(class));
        let below = scsi.iter().flat_map(|directory| {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.path())
        });
        // Beside the disk `nvme0n1`, below its controller or subsystem, is `ng0n1`.
        let of_nvme = self
            .name
            .strip_prefix("nvme")
            .map(|rest| device.join(format!("ng{rest}")));
        let directories = below.chain(of_nvme);
        let mut nodes: Vec<_> = directories
            .filter_map(|directory| {
                let number = parse_number(&read(directory.join("dev"))?)?;
                let name = directory.file_name()?.to_string_lossy().into_owned();
                Some((name, number))
            })
            .collect();
        nodes.sort_unstable();
        nodes
    }

    /// The worldwide name of a disk, the same over all paths to it.
    pub fn worldwide_name(&self) -> Option<String> {
        ["device/wwid", "wwid"]
            .iter()
            .find_map(|file| self.text(file))
    }
}

/// The devices in a directory, sorted by number.
fn nodes(directory: &Path) -> Vec<Node> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut nodes: Vec<Node> = entries
        .filter_map(|entry| Node::at(&entry.path()))
        .collect();
    nodes.sort_unstable_by_key(|node| node.number);
    nodes
}

/// Major and minor number of a device, as the kernel's calls join them.
pub fn device_number(joined: u64) -> (u32, u32) {
    (rustix::fs::major(joined), rustix::fs::minor(joined))
}

/// Parses a device number such as `254:0`.
pub(crate) fn parse_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
