//! Checks whether a file is among the files of a database or of the system, by every path that
//! shows it.
//!
//! Input: an open file. Output: a refusal that names the directory. A file in such a directory
//! belongs to it, whatever its content.

use super::refusal::{blind, checked_mounts};
use crate::engine::mounts::{Mount, mount_of};
use crate::engine::opened::Opened;
use crate::observe::stack::device_number;
use rigel_model::{Error, files};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The objection to the location of a file, to follow "it", and its hint.
pub(super) fn objection(
    file: &Opened,
    made_by_rigel: bool,
) -> Result<Option<(String, &'static str)>, Error> {
    // Nobody keeps a file to measure there, and writing to the kernel's own files has effects.
    const SYSTEM: [&str; 10] = [
        "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr",
    ];
    let mounts = checked_mounts().map_err(|why| blind(file.path(), &why))?;
    let places = places(file, &mounts)?;
    let merged = merged(&places, &mounts);
    let paths = places.iter().map(|place| &place.path);
    for path in paths.chain(merged.iter().map(|(_, path)| path)) {
        if let Some(system) = SYSTEM.iter().find(|system| path.starts_with(system)) {
            return Ok(Some((
                format!("is in {system}, which belongs to the system"),
                "give a file or a directory on the storage to be measured",
            )));
        }
        for directory in path.ancestors().skip(1) {
            if let Some(database) = database_in(directory) {
                return Ok(Some((
                    format!("is in {}, which is {database}", directory.display()),
                    "give a file or a directory outside the database's own",
                )));
            }
        }
    }
    if let Some((overlay, _)) = merged.first() {
        return Ok(Some((
            format!(
                "is in a layer of the overlay filesystem mounted on {}, whose files it may be part of",
                overlay.point.display()
            ),
            "give a file in the overlay itself, or one outside of its layers",
        )));
    }
    let names = file.metadata()?.nlink();
    if names > 1 && !made_by_rigel {
        return Ok(Some((
            format!(
                "has {names} names (hard links), and another one may belong to a database or the \
                 system"
            ),
            "give a file that has one name; `find -samefile FILE` lists the others of this one",
        )));
    }
    Ok(None)
}

/// A path by which this process can see a file.
#[derive(Debug, PartialEq, Eq)]
struct PlaceOfFile {
    path: PathBuf,
    /// The mount point that it is below; `/` if that is not known.
    mounted: PathBuf,
}

/// Every path by which this process can see the file: where it was opened, and all other mounts of
/// its filesystem or of the part that contains the file.
fn places(file: &Opened, mounts: &[Mount]) -> Result<Vec<PlaceOfFile>, Error> {
    let path = file.place()?;
    let number = files::mount_of(file.file()).ok();
    let own = mount_of(mounts, number, device_number(file.metadata()?.dev()), &path);
    let mut places = own.map_or_else(Vec::new, |own| elsewhere(&path, own, mounts));
    let mounted = own.map_or_else(|| "/".into(), |own| own.point.clone());
    places.insert(0, PlaceOfFile { path, mounted });
    Ok(places)
}

/// The other paths of the file at `path`, which is seen through the mount `own`.
fn elsewhere(path: &Path, own: &Mount, mounts: &[Mount]) -> Vec<PlaceOfFile> {
    let Ok(below) = path.strip_prefix(&own.point) else {
        return Vec::new();
    };
    let inside = own.root.join(below);
    let others = mounts
        .iter()
        .filter(|mount| mount.device == own.device && mount.id != own.id);
    let place = |mount: &Mount| {
        Some(PlaceOfFile {
            path: mount.point.join(inside.strip_prefix(&mount.root).ok()?),
            mounted: mount.point.clone(),
        })
    };
    others.filter_map(place).collect()
}

/// The overlay filesystems that have the file in a layer, and its path in each. A layer ends where another filesystem
/// is mounted in it.
fn merged<'a>(places: &[PlaceOfFile], mounts: &'a [Mount]) -> Vec<(&'a Mount, PathBuf)> {
    let identity = |directory: &Path| {
        let facts = std::fs::metadata(directory).ok()?;
        Some((facts.dev(), facts.ino()))
    };
    let mut merged = Vec::new();
    for mount in mounts {
        let layers = mount.layers();
        for place in places.iter().filter(|_| !layers.is_empty()) {
            let named = layer_directories(&layers, &place.path);
            let named: Vec<_> = named.iter().filter_map(|layer| identity(layer)).collect();
            let above = place.path.ancestors().skip(1);
            let layer = above
                .take_while(|directory| directory.starts_with(&place.mounted))
                .find(|directory| identity(directory).is_some_and(|own| named.contains(&own)));
            if let Some(below) = layer.and_then(|layer| place.path.strip_prefix(layer).ok()) {
                let inside = Path::new("/").join(below);
                let path = inside.strip_prefix(&mount.root).unwrap_or(below);
                merged.push((mount, mount.point.join(path)));
            }
        }
    }
    merged
}

/// The directories that an overlay names as its `layers`. Programs for containers name them from a directory that only
/// they know: it is taken for each that is above the file and has all of them.
fn layer_directories(layers: &[PathBuf], file: &Path) -> Vec<PathBuf> {
    let (absolute, relative): (Vec<PathBuf>, Vec<PathBuf>) = layers
        .iter()
        .cloned()
        .partition(|layer| layer.is_absolute());
    let in_it =
        |above: &Path| -> Vec<PathBuf> { relative.iter().map(|layer| above.join(layer)).collect() };
    let above = file.ancestors().skip(1).map(in_it);
    let has_all = |named: &Vec<PathBuf>| named.iter().all(|layer| layer.is_dir());
    absolute
        .into_iter()
        .chain(above.filter(has_all).flatten())
        .collect()
}

/// The database that owns this data directory, by its files or by its name.
fn database_in(directory: &Path) -> Option<&'static str> {
    /// A directory matches if it has all of these names.
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
    if directory
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(is_tablespace)
    {
        return Some("a PostgreSQL tablespace");
    }
    let there = |name: &&str| directory.join(name).symlink_metadata().is_ok();
    MARKS
        .iter()
        .find(|(names, _)| names.iter().all(there))
        .map(|(_, database)| *database)
}

/// Matches `PG_15_202209061` and `PG_9.6_201608131`: the version of `PostgreSQL` and of its
/// catalogue, which is a date.
fn is_tablespace(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let versions = name
        .strip_prefix("PG_")
        .and_then(|rest| rest.split_once('_'));
    versions.is_some_and(|(version, catalogue)| {
        version.split('.').all(digits) && catalogue.len() == 9 && digits(catalogue)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tablespaces_are_known_by_name() {
        assert!(is_tablespace("PG_15_202209061") && is_tablespace("PG_9.6_201608131"));
        assert!(
            !is_tablespace("PG_VERSION")
                && !is_tablespace("PG_15_2022")
                && !is_tablespace("PG__202209061")
        );
    }

    #[test]
    fn a_file_is_found_by_every_mount_that_shows_it() {
        let mount = |id, device, root: &str, point: &str| Mount {
            id,
            device,
            root: root.into(),
            point: point.into(),
            filesystem: "ext4".into(),
            source: "/dev/sda1".into(),
            options: String::new(),
        };
        let mounts = [
            mount(1, (8, 1), "/", "/"),
            mount(2, (8, 1), "/var/db/base", "/mnt/bound"),
            mount(3, (8, 2), "/", "/other"),
            mount(4, (8, 1), "/var/db", "/mnt/db"),
        ];
        let found = elsewhere(Path::new("/mnt/bound/1/2"), &mounts[1], &mounts);
        let place = |path: &str, mounted: &str| PlaceOfFile {
            path: path.into(),
            mounted: mounted.into(),
        };
        assert_eq!(
            found,
            [
                place("/var/db/base/1/2", "/"),
                place("/mnt/db/base/1/2", "/mnt/db")
            ]
        );
        assert_eq!(
            elsewhere(Path::new("/srv/file"), &mounts[0], &mounts),
            [] as [PlaceOfFile; 0]
        );
    }
}
