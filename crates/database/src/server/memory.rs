//! Limits the memory of a server, so that the page cache cannot hold its tables.
//!
//! Input: processes and bytes. Output: a new control group that contains them, or the reason why
//! there can be none. Existing groups are never changed.

use super::process;
use rigel_model::{Nanos, shell_path};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Timeout for removing a group.
const REMOVING_MOST: Nanos = Nanos::from_secs(5);

/// The control group of a server. Empty groups cost nothing; it is removed with the server.
#[derive(Debug)]
pub(super) struct ControlGroup {
    directory: PathBuf,
}

/// A control group hierarchy that can limit memory.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Its mount point.
    mount: PathBuf,
    /// The group in which ours is created.
    parent: PathBuf,
    /// The file that contains the limit.
    limit: &'static str,
}

impl Hierarchy {
    /// Finds the hierarchy in the texts of /proc/mounts and /proc/self/cgroup.
    ///
    /// Version 1: our group is created below Rigel's group, so that Rigel's limits also limit the
    /// server. Version 2 allows no groups below a group with processes: ours is created beside
    /// Rigel's group.
    fn find(mounts: &str, own: &str) -> Option<Self> {
        let mounted = |kind: &str, option: &str| {
            mounts.lines().find_map(|line| {
                let mut fields = line.split(' ').skip(1);
                let (place, filesystem, options) = (fields.next()?, fields.next()?, fields.next()?);
                (filesystem == kind
                    && (option.is_empty() || options.split(',').any(|one| one == option)))
                .then(|| PathBuf::from(place))
            })
        };
        let group = |of: &str| {
            own.lines()
                .find_map(|line| line.split_once(':')?.1.strip_prefix(of))
        };
        if let Some(mount) = mounted("cgroup", "memory") {
            let parent = mount.join(group("memory:")?.trim_start_matches('/'));
            return Some(Self {
                mount,
                parent,
                limit: "memory.limit_in_bytes",
            });
        }
        let mount = mounted("cgroup2", "")?;
        let ours = mount.join(group(":")?.trim_start_matches('/'));
        let parent = if ours == mount {
            mount.clone()
        } else {
            ours.parent()?.to_path_buf()
        };
        Some(Self {
            mount,
            parent,
            limit: "memory.max",
        })
    }
}

impl ControlGroup {
    /// The path for a group of this name, or why it cannot be created.
    pub(super) fn place(name: &str) -> Result<PathBuf, String> {
        Ok(hierarchy()?.parent.join(name))
    }

    /// Creates a group at `directory` whose processes and page cache together get at most `bytes`.
    pub(super) fn new(directory: PathBuf, bytes: u64) -> Result<Self, String> {
        let hierarchy = hierarchy()?;
        let failure = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir(&directory).map_err(|error| failure(&directory, error))?;
        let group = Self { directory };
        let limit = group.directory.join(hierarchy.limit);
        if !limit.exists() {
            // With systemd it can be enabled. The parent group is not ours: the administrator
            // decides which controllers it delegates.
            let handing_on = hierarchy.parent.join("cgroup.subtree_control");
            return Err(format!(
                "the control group {} does not delegate memory limits: `echo +memory > {}` \
                 enables it",
                hierarchy.parent.display(),
                shell_path(&handing_on)
            ));
        }
        fs::write(&limit, bytes.to_string()).map_err(|error| failure(&limit, error))?;
        Ok(group)
    }

    /// Moves a process into the group; its later children start in the group.
    pub(super) fn take_in(&self, process: u32) -> Result<(), String> {
        let file = self.directory.join("cgroup.procs");
        fs::write(&file, process.to_string())
            .map_err(|error| format!("{}: {error}", file.display()))
    }

    /// True if the process is in the group.
    pub(super) fn has(&self, process: u32) -> bool {
        let text = fs::read_to_string(self.directory.join("cgroup.procs")).unwrap_or_default();
        text.lines().any(|line| line.parse() == Ok(process))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// Removes a group. Retries, because a killed process leaves its group a moment after it has left
/// /proc.
fn remove(directory: &Path) {
    process::wait_until(
        REMOVING_MOST,
        &AtomicBool::new(false),
        || !matches!(fs::remove_dir(directory), Err(error) if error.kind() == ErrorKind::ResourceBusy),
    );
}

/// Removes a group left by a killed Rigel process, if it is a control group of this name without
/// processes.
pub(super) fn remove_left(directory: &Path, name: &str) {
    let ours = directory.file_name().is_some_and(|last| last == name);
    if ours && hierarchy().is_ok_and(|hierarchy| directory.starts_with(hierarchy.mount)) {
        remove(directory);
    }
}

fn hierarchy() -> Result<Hierarchy, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    Hierarchy::find(&read("/proc/mounts")?, &read("/proc/self/cgroup")?)
        .ok_or_else(|| "this system has no memory control groups".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_made_where_the_version_allows_it() {
        let first = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup \
                     /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\ncgroup2 \
                     /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = Hierarchy::find(first, "5:cpu:/\n4:memory:/jobs/a\n0::/\n").unwrap();
        assert_eq!(found.parent, Path::new("/sys/fs/cgroup/memory/jobs/a"));
        assert_eq!(found.limit, "memory.limit_in_bytes");

        let second = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let found =
            Hierarchy::find(second, "0::/user.slice/user-0.slice/session-1.scope\n").unwrap();
        assert_eq!(
            found.parent,
            Path::new("/sys/fs/cgroup/user.slice/user-0.slice")
        );
        assert_eq!(found.limit, "memory.max");
        assert_eq!(
            Hierarchy::find(second, "0::/\n").unwrap().parent,
            Path::new("/sys/fs/cgroup")
        );

        assert_eq!(Hierarchy::find("proc /proc proc rw 0 0\n", "0::/\n"), None);
    }

    #[test]
    fn a_control_group_that_is_not_ours_is_not_removed() {
        let place = std::env::temp_dir().join(format!("rigel-group-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let name = place.file_name().unwrap().to_str().unwrap();
        remove_left(&place, name);
        assert!(
            place.exists(),
            "a folder outside the control groups was removed"
        );
        fs::remove_dir(&place).unwrap();
    }
}
