//! Content of a target, by its bytes and by udev's findings.
//!
//! Input: an open file or device. Output: a phrase that names its content, or nothing.

use crate::engine::opened::Opened;
use crate::engine::signature::{REACH, signature};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The content of `target` by its first and last bytes: "an ext4 filesystem".
pub(super) fn of(target: &Opened) -> std::io::Result<Option<&'static str>> {
    let (file, size) = (target.file(), target.bytes()?);
    let head = read_at(file, 0, REACH.min(size))?;
    let start = size.saturating_sub(REACH);
    let tail = read_at(file, start, size - start)?;
    Ok(signature(&head, &tail, size))
}

/// udev's last finding on a device: udev knows some formats that this program does not. `database`
/// is the directory of its files, which is missing in some containers.
pub(super) fn known_to_udev(
    database: &Path,
    (major, minor): (u32, u32),
    is_partition: bool,
) -> Option<String> {
    let text = std::fs::read_to_string(database.join(format!("b{major}:{minor}"))).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| {
            line.strip_prefix("E:")?
                .strip_prefix(name)?
                .strip_prefix('=')
        });
        line.filter(|value| !value.is_empty())
    };
    if let Some(content) = value("ID_FS_TYPE")
        .or_else(|| value("ID_FS_USAGE"))
        .or_else(|| value("ID_FS_AMBIVALENT"))
    {
        return Some(content.to_string());
    }
    // A partition inherits the name of the table that contains it.
    let table = value("ID_PART_TABLE_TYPE").filter(|_| !is_partition);
    table.map(|table| format!("a partition table ({table})"))
}

/// Reads up to `length` bytes; fewer at the end of the file.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;

    #[test]
    fn udev_is_heard_about_filesystems_and_tables() {
        let place = TempDir::new("guard-udev");
        let write = |name: &str, text: &str| std::fs::write(place.0.join(name), text).unwrap();
        write(
            "b8:0",
            "S:disk/by-id/x\nE:ID_MODEL=x\nE:ID_PART_TABLE_TYPE=sun\n",
        );
        write(
            "b8:1",
            "E:ID_FS_USAGE=raid\nE:ID_FS_TYPE=promise_fasttrack_raid_member\nE:\
             ID_PART_TABLE_TYPE=gpt\n",
        );
        write("b8:2", "E:ID_PART_TABLE_TYPE=gpt\nE:ID_FS_TYPE=\n");
        let known = |minor, is_partition| known_to_udev(&place.0, (8, minor), is_partition);
        assert_eq!(known(0, false).as_deref(), Some("a partition table (sun)"));
        assert_eq!(
            known(1, true).as_deref(),
            Some("promise_fasttrack_raid_member")
        );
        assert_eq!(known(2, true), None);
        assert_eq!(known(9, false), None);
    }
}
