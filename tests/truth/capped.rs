//! A cap by the kernel on the rate of a device. The benchmark `against_fio` includes this file.

use super::common::Missing;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A control group of this process that caps its threads on some devices; removed on drop.
pub(crate) struct Group {
    directory: PathBuf,
    /// Version 1 caps threads; version 2 only whole processes, and this process must return to its
    /// former group.
    home: Option<PathBuf>,
}

impl Group {
    pub(crate) fn new() -> Result<Self, Missing> {
        // Several may exist at the same time.
        static GROUPS: AtomicUsize = AtomicUsize::new(0);
        let (v1, v2) = (
            Path::new("/sys/fs/cgroup/blkio"),
            Path::new("/sys/fs/cgroup"),
        );
        let name = format!(
            "rigel-truth-{}-{}",
            std::process::id(),
            GROUPS.fetch_add(1, Ordering::Relaxed)
        );
        if v1.join("cgroup.procs").exists() {
            let directory = v1.join(name);
            make(&directory)?;
            return Ok(Self {
                directory,
                home: None,
            });
        }
        let controllers = fs::read_to_string(v2.join("cgroup.controllers")).unwrap_or_default();
        if !controllers
            .split_whitespace()
            .any(|controller| controller == "io")
        {
            return Err(Missing("no control group can cap a device's I/O".into()));
        }
        write(&v2.join("cgroup.subtree_control"), "+io")?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("0::/"))
            .unwrap_or_default();
        let directory = v2.join(name);
        make(&directory)?;
        let group = Self {
            directory,
            home: Some(v2.join(own)),
        };
        write(&group.directory.join("cgroup.procs"), "0")?;
        Ok(group)
    }

    /// Limits reads on `device` to `rate` per second.
    pub(crate) fn cap(&self, device: &Path, rate: u32) -> Result<(), Missing> {
        let name = device.file_name().unwrap().to_string_lossy().into_owned();
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        let number = number.trim();
        match self.home {
            None => write(
                &self.directory.join("blkio.throttle.read_iops_device"),
                &format!("{number} {rate}"),
            ),
            Some(_) => write(
                &self.directory.join("io.max"),
                &format!("{number} riops={rate}"),
            ),
        }
    }

    /// Number of reads of `device` by members of the group so far, as the kernel counts them; only
    /// of a group that caps threads.
    #[allow(dead_code, reason = "the benchmark does not use it")]
    pub(crate) fn reads(&self, device: &Path) -> Result<u64, Missing> {
        if self.home.is_some() {
            return Err(Missing("version 2 caps only whole processes".into()));
        }
        let name = device.file_name().unwrap().to_string_lossy().into_owned();
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        let path = self.directory.join("blkio.throttle.io_serviced");
        let text = fs::read_to_string(&path)
            .map_err(|error| Missing(format!("{}: {error}", path.display())))?;
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{} Read ", number.trim())));
        Ok(count.map_or(0, |count| count.parse().unwrap()))
    }

    /// Caps the calling thread, and every thread that it starts, from now on.
    pub(crate) fn enter(&self) -> Result<(), Missing> {
        if self.home.is_none() {
            write(&self.directory.join("tasks"), "0")
        } else {
            Ok(())
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            let _ = write(&home.join("cgroup.procs"), "0");
        }
        // Threads that have just ended leave the group a little later.
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

fn make(directory: &Path) -> Result<(), Missing> {
    fs::create_dir(directory).map_err(|error| Missing(format!("{}: {error}", directory.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Missing> {
    fs::write(path, text)
        .map_err(|error| Missing(format!("'{text}' into {}: {error}", path.display())))
}
