//! The disks below a device number, and the settings of their queues.

use super::small_file::read_number;
use super::stack::{Node, Sys, device_number};
use rigel_model::{BlockDevice, Bytes};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum depth: real stacks have a handful of levels; a deeper one contains a cycle.
const DEPTH_MAX: usize = 16;

/// The whole disk of the device or partition `number`, and all devices below it: the members of an
/// array or a logical volume, the device with a loop device's file. Empty if /sys does not know the
/// device.
pub fn devices(number: (u32, u32)) -> Vec<BlockDevice> {
    let mut devices = Vec::new();
    descend(number, &mut devices, 0);
    devices
}

/// The name of the whole disk that contains `path`: the uppermost device of its stack. Empty if
/// unknown.
pub fn devices_of(path: &Path) -> Vec<String> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Vec::new();
    };
    devices(device_number(metadata.dev()))
        .into_iter()
        .take(1)
        .map(|device| device.name)
        .collect()
}

fn descend(number: (u32, u32), found: &mut Vec<BlockDevice>, depth: usize) {
    let Ok(node) = Sys::default().node(number) else {
        return;
    };
    let disk = node.disk().unwrap_or(node);
    if depth == DEPTH_MAX || found.iter().any(|known| known.name == disk.name) {
        return;
    }
    found.push(block_device(&disk));
    let mut below: Vec<_> = disk
        .slaves()
        .into_iter()
        .map(|slave| slave.number)
        .collect();
    // A loop device has no slaves; the device below it is found through its backing file.
    let backing = disk
        .backing_file()
        .and_then(|file| std::fs::metadata(file).ok());
    below.extend(backing.map(|file| {
        let device = if file.rdev() == 0 {
            file.dev()
        } else {
            file.rdev()
        };
        device_number(device)
    }));
    for number in below {
        descend(number, found, depth + 1);
    }
}

fn block_device(disk: &Node) -> BlockDevice {
    let queue = disk.directory().join("queue");
    let number = |name: &str| read_number(queue.join(name)).unwrap_or_default();
    let text = |name: &str| disk.text(&format!("queue/{name}"));
    let flag = |name: &str| text(name).is_some_and(|value| value != "0");
    // SCSI and NVMe report a model; virtio has only a serial number, device mapper its given name,
    // loop its file.
    let model = ["device/model", "dm/name", "loop/backing_file"]
        .iter()
        .find_map(|file| disk.text(file));
    BlockDevice {
        name: disk.name.clone(),
        model,
        transport: transport(&disk.directory().to_string_lossy()).map(String::from),
        // The kernel uses units of 512 bytes here, whatever the block size.
        bytes: Bytes(
            read_number::<u64>(disk.directory().join("size"))
                .unwrap_or_default()
                .saturating_mul(512),
        ),
        rotational: flag("rotational"),
        scheduler: text("scheduler")
            .map(|text| parse_scheduler(&text))
            .unwrap_or_default(),
        write_cache: text("write_cache").unwrap_or_default(),
        logical_block: number("logical_block_size"),
        physical_block: number("physical_block_size"),
        requests: number("nr_requests"),
        request_max_kib: number("max_sectors_kb"),
        nomerges: number("nomerges"),
        poll: flag("io_poll"),
    }
}

/// How a disk is attached, according to its place in /sys, if a hypervisor or a network is between.
/// iSCSI has sessions there, Fibre Channel remote ports.
fn transport(directory: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 5] = [
        ("/virtio", "virtio"),
        ("/vbd-", "xen"),
        ("/session", "iscsi"),
        ("/rport-", "fc"),
        ("/nvme-fabrics/", "nvme-fabrics"),
    ];
    let is_at = |(place, _): &&(&str, &str)| directory.contains(place);
    KNOWN.iter().find(is_at).map(|(_, transport)| *transport)
}

/// The active scheduler in `none [mq-deadline] kyber`; devices without a queue of their own have
/// just `none`.
fn parse_scheduler(text: &str) -> String {
    let in_force = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(name, _)| name);
    in_force.unwrap_or(text).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::stack::parse_number;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_scheduler_in_force_is_the_one_in_brackets() {
        assert_eq!(
            parse_scheduler("none [mq-deadline] kyber bfq"),
            "mq-deadline"
        );
        assert_eq!(parse_scheduler("none"), "none");
    }

    #[test]
    fn a_disk_behind_a_hypervisor_or_a_network_is_known_by_its_place() {
        let pci = "/sys/devices/pci0000:00/0000:00:02.0";
        for (place, wanted) in [
            (format!("{pci}/virtio1/block/vda"), Some("virtio")),
            ("/sys/devices/vbd-51712/block/xvda".into(), Some("xen")),
            (
                "/sys/devices/platform/host2/session1/target2:0:0/2:0:0:1/block/sdb".into(),
                Some("iscsi"),
            ),
            (
                format!("{pci}/host1/rport-1:0-2/target1:0:0/1:0:0:0/block/sdc"),
                Some("fc"),
            ),
            (format!("{pci}/nvme/nvme0/nvme0n1"), None),
            (
                format!("{pci}/ata1/host0/target0:0:0/0:0:0:0/block/sda"),
                None,
            ),
        ] {
            assert_eq!(transport(&place), wanted, "{place}");
        }
    }

    #[test]
    fn every_device_of_this_machine_can_be_looked_at() {
        for entry in std::fs::read_dir("/sys/dev/block")
            .into_iter()
            .flatten()
            .flatten()
        {
            let number = parse_number(&entry.file_name().to_string_lossy()).unwrap();
            let found = devices(number);
            // Empty if the device disappeared between the two reads.
            assert!(
                found.iter().all(|device| !device.name.is_empty()),
                "{number:?} {found:?}"
            );
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
