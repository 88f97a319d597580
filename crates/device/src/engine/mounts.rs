//! Mounted filesystems.
//!
//! Input: the text of `/proc/self/mountinfo`. Output: one [`Mount`] per line that can be parsed.

use crate::observe::stack::parse_number;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mounted filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// The kernel's ID of the mount, as `statx` returns for a file.
    pub(super) id: u64,
    /// Major and minor number of its files. For btrfs, NFS, tmpfs and similar filesystems it is
    /// not the number of a block device.
    pub(super) device: (u32, u32),
    /// The directory of the filesystem that is mounted: `/` except for bind mounts, subvolumes and
    /// the like.
    pub(super) root: PathBuf,
    /// Mount point.
    pub(super) point: PathBuf,
    /// Its type, such as `ext4`.
    pub(super) filesystem: String,
    /// The mounted source: for most filesystems on disks, the path of a block device.
    pub(super) source: PathBuf,
    /// Options of the mount, then those of the filesystem, without duplicates.
    pub(super) options: String,
}

impl Mount {
    /// The directories of which an overlay filesystem is made, as whoever mounted it named them: layers, and where
    /// changed files are prepared. Of other filesystems, none.
    pub(super) fn layers(&self) -> Vec<PathBuf> {
        if self.filesystem != "overlay" {
            return Vec::new();
        }
        let options = self
            .options
            .split(',')
            .filter_map(|option| option.split_once('='));
        options
            .flat_map(|(key, value)| {
                let value = unescape(value.as_bytes()).into_os_string().into_vec();
                match key {
                    "lowerdir" | "lowerdir+" | "datadir+" => separated(&value, Some(b':')),
                    "upperdir" | "workdir" => separated(&value, None),
                    _ => Vec::new(),
                }
            })
            .filter(|layer| !layer.as_os_str().is_empty())
            .collect()
    }
}

/// The paths in an option of an overlay filesystem. A backslash takes the meaning from the byte after it.
fn separated(value: &[u8], separator: Option<u8>) -> Vec<PathBuf> {
    let mut paths = vec![Vec::new()];
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        if Some(*byte) == separator {
            paths.push(Vec::new());
        } else if let Some(path) = paths.last_mut() {
            let is_escape = *byte == b'\\';
            path.push(if is_escape {
                *bytes.next().unwrap_or(byte)
            } else {
                *byte
            });
        }
    }
    let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
    paths.into_iter().map(path).collect()
}

/// All mounts visible to this process.
pub(super) fn mounts() -> std::io::Result<Vec<Mount>> {
    mounts_of(Path::new("/proc/self"))
}

/// All mounts visible to the process with this directory of /proc.
pub(super) fn mounts_of(process: &Path) -> std::io::Result<Vec<Mount>> {
    let text = std::fs::read(process.join("mountinfo"))?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect())
}

/// The mount that contains the file at `path` with device number `device`: by its `id` if known,
/// otherwise by the longest matching path.
pub(super) fn mount_of<'a>(
    mounts: &'a [Mount],
    id: Option<u64>,
    device: (u32, u32),
    path: &Path,
) -> Option<&'a Mount> {
    let by_id = id.and_then(|id| mounts.iter().find(|mount| mount.id == id));
    // Later mounts hide earlier ones, and `max_by_key` returns the last of several maxima.
    let by_path = || {
        let depth = |mount: &&Mount| mount.point.components().count();
        mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.point) && mount.device == device)
            .max_by_key(depth)
    };
    by_id
        .or_else(by_path)
        .or_else(|| mounts.iter().find(|mount| mount.device == device))
}

/// Parses a line such as `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root
/// rw,errors=continue`.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let mut fields = line.split(|byte| *byte == b' ');
    let id = text(fields.next()?).parse().ok()?;
    let device = parse_number(&text(fields.nth(1)?))?;
    let root = unescape(fields.next()?);
    let point = unescape(fields.next()?);
    let mut options = text(fields.next()?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let filesystem = text(fields.next()?);
    let source = unescape(fields.next()?);
    for option in text(fields.next().unwrap_or_default()).split(',') {
        if !option.is_empty() && !options.split(',').any(|known| known == option) {
            options = format!("{options},{option}");
        }
    }
    Some(Mount {
        id,
        device,
        root,
        point,
        filesystem,
        source,
        options,
    })
}

/// Undoes the kernel's octal escapes, such as `\040` for a space.
pub(super) fn unescape(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let octal = (*byte == b'\\')
            .then(|| after.get(..3))
            .flatten()
            .and_then(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                u8::from_str_radix(digits, 8).ok()
            });
        path.push(octal.unwrap_or(*byte));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read_with_and_without_optional_fields() {
        let mount = parse_line(
            b"36 35 98:0 /sub /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw,errors=x",
        )
        .unwrap();
        assert_eq!((mount.id, mount.device), (36, (98, 0)));
        assert_eq!(
            (mount.root, mount.point, mount.source),
            ("/sub".into(), "/mnt/a b".into(), "/dev/root".into())
        );
        assert_eq!(
            (mount.filesystem.as_str(), mount.options.as_str()),
            ("ext3", "rw,noatime,errors=x")
        );
        assert_eq!(
            parse_line(b"22 27 0:21 / /proc rw - proc proc rw")
                .unwrap()
                .filesystem,
            "proc"
        );
    }

    #[test]
    fn the_deepest_mount_of_the_device_is_the_one() {
        let line = |id: u64, device: &str, point: &str| {
            parse_line(format!("{id} 1 {device} / {point} rw - ext4 /dev/x rw").as_bytes()).unwrap()
        };
        let mounts = [
            line(1, "8:1", "/"),
            line(2, "8:1", "/data"),
            line(3, "8:2", "/data/deep"),
        ];
        let found = |id, device| {
            mount_of(&mounts, id, device, Path::new("/data/deep/file")).map(|mount| mount.id)
        };
        assert_eq!(found(None, (8, 1)), Some(2));
        assert_eq!(found(None, (8, 2)), Some(3));
        assert_eq!(found(Some(1), (8, 2)), Some(1));
        assert_eq!(found(None, (9, 9)), None);
    }

    #[test]
    fn the_layers_of_an_overlay_are_in_its_options() {
        let layers = |options: &str| {
            let line = format!("9 1 0:40 / /merged rw - overlay overlay rw,{options}");
            parse_line(line.as_bytes()).unwrap().layers()
        };
        // The kernel writes a comma in a name as \\054, and a backslash as \\134.
        assert_eq!(
            layers(r"lowerdir=/a\134:b:/c\054d::/data,upperdir=/up:1,workdir=/w,redirect_dir=on"),
            ["/a:b", "/c,d", "/data", "/up:1", "/w"].map(PathBuf::from)
        );
        assert_eq!(
            layers("lowerdir+=/a,lowerdir+=/b,datadir+=/c"),
            ["/a", "/b", "/c"].map(PathBuf::from)
        );
        let other = b"9 1 8:1 / /x rw - ext4 /dev/sda1 rw,upperdir=/up";
        assert_eq!(parse_line(other).unwrap().layers(), [] as [PathBuf; 0]);
    }

    proptest! {
        #[test]
        fn no_line_makes_the_parser_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (parse_line(&line), unescape(&line), separated(&line, Some(b':')));
        }
    }
}
