//! The disks below what the user named: a device, a partition, or the directory of a filesystem.
//!
//! Input: a path or a device's name. Output: [`WatchedDisk`]s, and findings about them.

use rigel_analyse::demand::watch_request::WatchedDisk;
use rigel_device::engine::probe::filesystem_below;
use rigel_device::observe::stack::{Node, Sys, device_number};
use rigel_model::{Error, Finding, FindingName, failed, usage};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Maximum depth of devices that are built on others.
const DEPTH_MAX: usize = 8;

/// The disks below `named`, in order, without duplicates, and what the reader should know.
///
/// # Errors
/// It does not exist, or has no block device.
pub fn disks_below(named: &Path) -> Result<(Vec<WatchedDisk>, Vec<Finding>), Error> {
    let number = number_of(named)?;
    let node = Sys::default().node(number).map_err(|error| {
        failed!(
            "the disk of '{named}' ({major}:{minor}) is not known to this system: {error}",
            "in a container the host's disks may be hidden: run it on the host, or give a database",
            named = named.display(),
            major = number.0,
            minor = number.1
        )
    })?;
    let mut disks = Vec::new();
    descend(&node, named, &mut disks, 0);
    let is_itself = disks.iter().any(|disk| disk.name == node.name);
    let findings = (!is_itself).then(|| {
        let below: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        Finding::note(
            FindingName::StackedDevice,
            format!(
                "{} has no queue of its own: the requests are those of the disks that it is made \
                 of ({}), with everything else on them; an array writes a block more than once, and \
                 each write counts",
                node.name,
                below.join(", ")
            ),
        )
    });
    Ok((disks, findings.into_iter().collect()))
}

/// The device number of what the user named.
fn number_of(named: &Path) -> Result<(u32, u32), Error> {
    let hint = "give a directory, a device such as /dev/nvme0n1, or the URL of a database: postgres://HOST/DATABASE, \
                mysql://HOST/DATABASE";
    if let Some((scheme, _)) = named.to_string_lossy().split_once("://") {
        return Err(usage!(
            "'{named}' is no database that can be watched: '{scheme}' is not known",
            hint,
            named = named.display()
        ));
    }
    let missing = |error: std::io::Error| {
        usage!(
            "cannot look at '{named}': {error}",
            hint,
            named = named.display()
        )
    };
    // A bare name such as `nvme0n1`.
    let in_dev = Path::new("/dev").join(named);
    let is_bare = named.components().count() == 1 && !named.exists() && in_dev.exists();
    let path = if is_bare { &in_dev } else { named };
    let metadata = std::fs::metadata(path).map_err(missing)?;
    if metadata.file_type().is_block_device() {
        return Ok(device_number(metadata.rdev()));
    }
    let (filesystem, device) = filesystem_below(path).map_err(missing)?;
    device.filter(|device| device.0 != 0).ok_or_else(|| {
        usage!(
            "'{named}' is on {filesystem}, which has no block device of its own",
            "give the directory or device below it, or watch only the databases by their URLs",
            named = named.display()
        )
    })
}

/// Adds the disk or partition of `node` if it has a queue of requests, else those below it.
fn descend(node: &Node, named: &Path, disks: &mut Vec<WatchedDisk>, depth: usize) {
    let disk = node.disk();
    let whole = disk.as_ref().unwrap_or(node);
    let has_queue = has_queue(whole.directory());
    let below = whole.slaves();
    if has_queue || below.is_empty() || depth == DEPTH_MAX {
        let number = |file: &str| node.text(file)?.parse::<u64>().ok();
        let sectors = disk
            .is_some()
            .then(|| number("start").zip(number("size")))
            .flatten();
        if disks.iter().all(|known| known.name != node.name) {
            disks.push(WatchedDisk {
                name: node.name.clone(),
                number: whole.number,
                sectors,
                named: named.display().to_string(),
            });
        }
        return;
    }
    for slave in below {
        descend(&slave, named, disks, depth + 1);
    }
}

/// True if the kernel makes requests for this disk, which can be traced. Disks in memory (zram, brd,
/// pmem), volumes of ZFS and the head of an `NVMe` disk with several paths take an I/O without one.
pub(super) fn is_traceable(disk: &WatchedDisk) -> bool {
    Sys::default()
        .node(disk.number)
        .is_ok_and(|node| has_queue(node.directory()))
}

/// True if the disk with this directory in /sys has queues of requests.
fn has_queue(directory: &Path) -> bool {
    directory.join("mq").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_disk_with_a_queue_is_traceable() {
        let root = std::env::temp_dir().join(format!("rigel-queues-{}", std::process::id()));
        let (disk, memory) = (root.join("nvme0n1"), root.join("zram0"));
        std::fs::create_dir_all(disk.join("mq/0")).unwrap();
        std::fs::create_dir_all(&memory).unwrap();
        let found = (has_queue(&disk), has_queue(&memory));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, (true, false));
    }

    #[test]
    fn what_has_no_block_device_is_refused_with_what_remains() {
        let refused = disks_below(Path::new("/proc")).unwrap_err().to_string();
        assert!(
            refused.contains("is on proc, which has no block device"),
            "{refused}"
        );
        assert!(refused.contains("databases by their URLs"), "{refused}");
        let missing = disks_below(Path::new("/no/such/place"))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("/no/such/place"), "{missing}");
    }
}
