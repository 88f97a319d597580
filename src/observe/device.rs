//! The disks below a device number, and the settings of their queues.

use super::{read, read_number};
use crate::model::{BlockDevice, Bytes};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Stacks of devices are a handful deep; past this, something points at itself.
const DEPTH_MAX: usize = 16;

/// The whole disk of the device or partition `number`, then everything below it: the members of an array or a logical
/// volume, the device that holds a loop device's file. Empty where /sys knows nothing of it.
#[must_use]
pub fn devices(number: (u32, u32)) -> Vec<BlockDevice> {
    let mut found = Vec::new();
    descend(number, &mut found, 0);
    found
}

/// The names of the whole disks that hold `path`; the first is the uppermost. Empty where nothing is known of it.
#[must_use]
pub fn devices_of(path: &Path) -> Vec<String> {
    let Ok(metadata) = std::fs::metadata(path) else { return Vec::new() };
    let number = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    devices(number).into_iter().take(1).map(|device| device.name).collect()
}

fn descend((major, minor): (u32, u32), found: &mut Vec<BlockDevice>, depth: usize) {
    let Ok(directory) = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) else { return };
    let disk = whole_disk(directory);
    let device = block_device(&disk);
    if depth == DEPTH_MAX || found.iter().any(|known| known.name == device.name) {
        return;
    }
    found.push(device);
    let slaves = std::fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten();
    let mut below: Vec<_> = slaves.filter_map(|slave| parse_number(&read(slave.path().join("dev"))?)).collect();
    below.sort_unstable();
    // A loop device has no slaves; the device that its file lies on is found by the file.
    let backing = read(disk.join("loop/backing_file")).and_then(|file| std::fs::metadata(file).ok());
    below.extend(backing.map(|file| {
        let device = if file.rdev() == 0 { file.dev() } else { file.rdev() };
        (rustix::fs::major(device), rustix::fs::minor(device))
    }));
    for number in below {
        descend(number, found, depth + 1);
    }
}

/// The directory of the disk that the device in `directory` is a partition of, or `directory` itself.
fn whole_disk(directory: PathBuf) -> PathBuf {
    match directory.parent() {
        Some(parent) if directory.join("partition").exists() => parent.to_path_buf(),
        _ => directory,
    }
}

fn block_device(directory: &Path) -> BlockDevice {
    let queue = directory.join("queue");
    let number = |name: &str| read_number(queue.join(name)).unwrap_or_default();
    let flag = |name: &str| read(queue.join(name)).is_some_and(|value| value != "0");
    // SCSI and NVMe tell a model; virtio only a serial number, device mapper the name it was given, loop its file.
    let model = ["device/model", "dm/name", "loop/backing_file"].iter().find_map(|name| read(directory.join(name)));
    BlockDevice {
        name: directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        model,
        // The kernel counts in 512 bytes here whatever the block size.
        bytes: Bytes(read_number::<u64>(directory.join("size")).unwrap_or_default().saturating_mul(512)),
        rotational: flag("rotational"),
        scheduler: read(queue.join("scheduler")).map(|text| parse_scheduler(&text)).unwrap_or_default(),
        write_cache: read(queue.join("write_cache")).unwrap_or_default(),
        logical_block: number("logical_block_size"),
        physical_block: number("physical_block_size"),
        requests: number("nr_requests"),
        request_max_kib: number("max_sectors_kb"),
        nomerges: number("nomerges"),
        poll: flag("io_poll"),
    }
}

/// `254:0`.
fn parse_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The one in force of `none [mq-deadline] kyber`; devices without a queue of their own just say `none`.
fn parse_scheduler(text: &str) -> String {
    let in_force = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    in_force.unwrap_or(text).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_scheduler_in_force_is_the_one_in_brackets() {
        assert_eq!(parse_scheduler("none [mq-deadline] kyber bfq"), "mq-deadline");
        assert_eq!(parse_scheduler("none"), "none");
    }

    #[test]
    fn every_device_of_this_machine_can_be_looked_at() {
        for entry in std::fs::read_dir("/sys/dev/block").into_iter().flatten().flatten() {
            let number = parse_number(&entry.file_name().to_string_lossy()).unwrap();
            let found = devices(number);
            // Nothing at all if the device went away between the two looks.
            assert!(found.iter().all(|device| !device.name.is_empty()), "{number:?} {found:?}");
        }
    }

    #[test]
    fn a_device_that_does_not_exist_has_nothing_below_it() {
        assert_eq!(devices((4095, 1_048_575)), []);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "([\\[\\]: 0-9]|.){0,20}") {
            let _ = (parse_scheduler(&text), parse_number(&text));
        }
    }
}
