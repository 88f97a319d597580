//! Targets that the kernel serves to other machines: `NVMe` over fabrics, and iSCSI or Fibre
//! Channel with the kernel's target.
//!
//! Input: the files of configfs, if it is mounted. Output: the served files and devices. The
//! kernel's own threads hold them open, so no process shows it; for `NVMe` they do not even claim
//! the device.

use std::path::{Path, PathBuf};

/// Paths of served files and devices, each with the name of its service.
pub(super) fn served(configuration: &Path) -> Vec<(PathBuf, String)> {
    let fabrics = below(&configuration.join("nvmet/subsystems"), &["namespaces"])
        .into_iter()
        .map(|namespace| {
            let subsystem = namespace
                .ancestors()
                .nth(2)
                .and_then(Path::file_name)
                .unwrap_or_default();
            (
                namespace.join("device_path"),
                format!("the NVMe subsystem {}", subsystem.display()),
            )
        });
    let scsi = below(&configuration.join("target/core"), &[])
        .into_iter()
        .map(|storage| {
            let name = storage
                .file_name()
                .unwrap_or_default()
                .display()
                .to_string();
            (storage.join("udev_path"), format!("the SCSI target {name}"))
        });
    let read = |(file, what): (PathBuf, String)| {
        let path = std::fs::read_to_string(file).ok()?;
        let path = path.trim_end_matches('\n');
        path.starts_with('/').then(|| (path.into(), what))
    };
    fabrics.chain(scsi).filter_map(read).collect()
}

/// The entries of each entry of a directory, or of the directory `within` each entry.
fn below(directory: &Path, within: &[&str]) -> Vec<PathBuf> {
    let entries = |directory: PathBuf| {
        std::fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
    };
    entries(directory.to_path_buf())
        .flat_map(|entry| entries(entry.join(within.iter().collect::<PathBuf>())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;

    #[test]
    fn exported_devices_are_read_from_configfs() {
        let place = TempDir::new("guard-served");
        let files = [
            (
                "nvmet/subsystems/nqn.x/namespaces/1/device_path",
                "/dev/sdb\n",
            ),
            (
                "nvmet/subsystems/nqn.x/namespaces/2/device_path",
                "(null)\n",
            ),
            ("target/core/iblock_0/disk/udev_path", "/dev/sdc\n"),
            ("target/core/alua/lu_gps/udev_path", ""),
        ];
        for (file, text) in files {
            let file = place.0.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let expected = [
            ("/dev/sdb", "the NVMe subsystem nqn.x"),
            ("/dev/sdc", "the SCSI target disk"),
        ];
        assert_eq!(
            served(&place.0),
            expected.map(|(path, what)| (path.into(), what.to_string()))
        );
        assert_eq!(served(&place.0.join("absent")), []);
    }
}
