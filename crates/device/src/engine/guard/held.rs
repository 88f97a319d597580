//! Checks whether anybody holds the target, or anything that shares its bytes, open.
//!
//! Input: a target and its family. Output: a refusal that names the holder, or a doubt. Processes
//! are looked at in /proc. The kernel is asked about holders that /proc does not show: for a file by a
//! lease, for a device by an exclusive open. Only /proc shows a process that holds a device without
//! claiming it. So devices are written only if /proc shows all processes.

use super::checked_target::CheckedTarget;
use super::processes::{Processes, Unseen};
use super::refusal::blind;
use crate::clock::Clock;
use crate::engine::opened::Opened;
use rigel_model::{Error, FileKind, Finding, FindingName, Nanos};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// Number of the machine's initial PID namespace (`PROC_PID_INIT_INO` of the kernel).
const ALL_PROCESSES: &str = "pid:[4026531836]";

impl CheckedTarget<'_> {
    pub(super) fn refuse_held(&self) -> Result<(), Error> {
        // udev briefly opens a device after somebody has closed it, and a child between fork and
        // exec holds its parent's files. So only a target that is still held half a second
        // later counts as held.
        const LOOKS: u32 = 6;
        let clock = Clock::real();
        let mut held = self.held()?;
        for _ in 1..LOOKS {
            if held.is_none() {
                return Ok(());
            }
            clock.wait_until(clock.now().plus(Nanos::from_millis(100)));
            held = self.held()?;
        }
        match held {
            None => Ok(()),
            Some(found) => Err(self.refusal(found, "stop the process, or give another target")),
        }
    }

    /// The holder of the target, if anybody else holds it open: "is held open by process 7
    /// (oracle)".
    fn held(&self) -> Result<Option<String>, Error> {
        let unseen = |why: &str| {
            blind(
                self.opened.path(),
                &format!("the processes that have it open cannot be listed: {why}"),
            )
        };
        let is_device = self.opened.kind() == FileKind::Device;
        if is_device {
            refuse_part_of_processes(own_namespace().as_deref()).map_err(unseen)?;
        }
        let own = std::process::id().to_string();
        let judged = self.opened.file().as_raw_fd().to_string();
        let mut open_here = false;
        let mut processes = Processes::default();
        let entries =
            std::fs::read_dir("/proc").map_err(|error| unseen(&format!("/proc: {error}")))?;
        let mut seen = 0;
        for process in entries.flatten() {
            let number = process.file_name().to_string_lossy().into_owned();
            if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            // Our own descriptor of the target does not count.
            let aside = if number == own { judged.as_str() } else { "" };
            let holding = match processes.holding(&process.path(), aside, &self.family) {
                Ok(holding) => holding,
                Err(Unseen::Ended) => None,
                // A lease on a file detects what cannot be seen here.
                Err(_) if !is_device => None,
                Err(Unseen::OfAnother) => {
                    return Err(unseen(&format!(
                        "process {number} belongs to another user; run as root"
                    )));
                }
                Err(Unseen::Because(why)) => {
                    return Err(unseen(&format!("process {number}: {why}")));
                }
            };
            seen += 1;
            let Some((relative, how)) = holding else {
                continue;
            };
            if number == own {
                open_here = true;
                continue;
            }
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Ok(Some(relative.is(&format!(
                "is held open{how} by process {number} ({})",
                name.trim()
            ))));
        }
        if seen == 0 || (is_device && !Path::new("/proc/1").exists()) {
            return Err(unseen(
                "/proc shows only some of the processes; run as root",
            ));
        }
        let kernel = match self.opened.kind() {
            FileKind::Device => self.claimed_by_kernel().then_some(
                "the kernel: mounted in another container, part of an array, or claimed by a \
                 process",
            ),
            FileKind::File if open_here => None,
            FileKind::File => self
                .open_elsewhere()
                .then_some("a process that is not visible from here"),
        };
        Ok(kernel.map(|by| format!("is held open by {by}")))
    }

    /// An exclusive open of a block device fails while the device is mounted, in an array, in use
    /// as swap, or otherwise claimed, in any container.
    fn claimed_by_kernel(&self) -> bool {
        let opened = self.opened.reopen(
            OpenOptions::new().read(true),
            libc::O_EXCL | libc::O_NONBLOCK,
        );
        opened.is_err_and(|error| error.kind() == ErrorKind::ResourceBusy)
    }

    /// The kernel grants a write lease on a file only if nobody else has it open or mapped. Any
    /// other refusal, for example because we are not the owner, says nothing.
    fn open_elsewhere(&self) -> bool {
        const F_SETLEASE: libc::c_int = 1024;
        const F_SETSIG: libc::c_int = 10;
        let file = self.opened.file();
        if !gives_leases(file) {
            return false;
        }
        let descriptor = file.as_fd().as_raw_fd();
        // If another process opens the file in the next moment, it breaks the lease, and that
        // signal must not end us: SIGURG is ignored by default, SIGIO is not.
        // SAFETY: fcntl with an integer argument on a descriptor that lives until the end of this
        // function.
        unsafe { libc::fcntl(descriptor, F_SETSIG, libc::SIGURG) };
        // SAFETY: fcntl with an integer argument on a descriptor that lives until the end of this
        // function.
        let lent = unsafe { libc::fcntl(descriptor, F_SETLEASE, libc::F_WRLCK) };
        let refused = lent < 0 && std::io::Error::last_os_error().kind() == ErrorKind::WouldBlock;
        if lent == 0 {
            // SAFETY: as above.
            unsafe { libc::fcntl(descriptor, F_SETLEASE, libc::F_UNLCK) };
        }
        refused
    }
}

/// Refuses a namespace that shows only a part of the machine's processes.
fn refuse_part_of_processes(namespace: Option<&Path>) -> Result<(), &'static str> {
    match namespace {
        Some(namespace) if namespace == Path::new(ALL_PROCESSES) => Ok(()),
        Some(_) => Err(
            "this container has its own process namespace; run outside of it, or with the host's \
             (--pid=host)",
        ),
        None => Err("/proc/self/ns/pid cannot be read"),
    }
}

/// True for a filesystem that gives a lease on every file that nobody else has open.
fn gives_leases(file: &File) -> bool {
    // ext2 to ext4, XFS, btrfs, F2FS, tmpfs. Others refuse for reasons of their own: NFS if the
    // server has not delegated the file.
    const LENDERS: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];
    let filesystem =
        rustix::fs::fstatfs(file).map_or(0, |facts| u64::try_from(facts.f_type).unwrap_or(0));
    LENDERS.contains(&filesystem)
}

/// The PID namespace of this process.
fn own_namespace() -> Option<PathBuf> {
    std::fs::read_link("/proc/self/ns/pid").ok()
}

/// Why not all processes of the machine can be looked at; `None` if they can.
fn part_of_processes(namespace: Option<&Path>, is_root: bool) -> Option<&'static str> {
    if refuse_part_of_processes(namespace).is_err() {
        Some("this container has its own process namespace")
    } else {
        (!is_root).then_some("the files of other users' processes cannot be seen")
    }
}

/// The doubt about a file that others may hold: its filesystem gives no leases, and not all processes
/// of the machine can be seen. `None` if there is no doubt.
pub(super) fn doubt(target: &Opened) -> Option<Finding> {
    if target.kind() == FileKind::Device || gives_leases(target.file()) {
        return None;
    }
    let why = part_of_processes(
        own_namespace().as_deref(),
        rustix::process::geteuid().is_root(),
    )?;
    Some(Finding::warning(
        FindingName::HoldersUnseen,
        format!(
            "it cannot be verified that nobody else has '{}' open: {why}, and the filesystem gives \
             no leases",
            target.path().display()
        ),
        "make sure that no other container, host or user has it open, or let Rigel make a scratch \
         file",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::guard::family::TargetFamily;
    use crate::engine::temp_dir::TempDir;
    use crate::observe::stack::Sys;

    #[test]
    fn the_kernel_reports_an_open_file_that_proc_does_not_show() {
        let place = TempDir::new("held-lease");
        let path = place.0.join("file");
        let written = File::create(&path).unwrap();
        let opened = Opened::open(&path).unwrap();
        let target = CheckedTarget {
            opened: &opened,
            family: TargetFamily::of(&opened, &Sys::default()).unwrap(),
        };
        let (while_open, by_name) = (target.open_elsewhere(), target.held());
        drop(written);
        // This process's own descriptor is no reason to refuse: `held` finds it and checks no
        // further.
        assert_eq!(by_name, Ok(None));
        assert!(while_open, "an open file was lent");
        assert!(
            !target.open_elsewhere(),
            "a file that nobody holds was not lent"
        );
    }

    #[test]
    fn a_file_without_leases_is_doubtful_where_processes_are_hidden() {
        let all = Some(Path::new(ALL_PROCESSES));
        assert_eq!(part_of_processes(all, true), None);
        assert!(
            part_of_processes(all, false)
                .unwrap()
                .contains("other users")
        );
        let container = part_of_processes(Some(Path::new("pid:[4026532345]")), true);
        assert!(container.unwrap().contains("container"));
        // A filesystem that gives leases leaves no doubt, whatever can be seen.
        let place = TempDir::new("held-doubt");
        let opened = Opened::open(&place.file("file", 1, 1)).unwrap();
        assert!(!gives_leases(opened.file()) || doubt(&opened).is_none());
    }

    #[test]
    fn only_the_machines_own_namespace_shows_all_processes() {
        assert_eq!(
            refuse_part_of_processes(Some(Path::new("pid:[4026531836]"))),
            Ok(())
        );
        assert!(
            refuse_part_of_processes(Some(Path::new("pid:[4026532345]")))
                .unwrap_err()
                .contains("container")
        );
        assert!(refuse_part_of_processes(None).is_err());
    }
}
