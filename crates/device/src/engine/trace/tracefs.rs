//! The kernel's description of its tracepoints, in tracefs.
//!
//! Input: nothing. Output: [`TracepointFormat`]s, or what is missing in words. Read only.

use super::tracepoint::{RequestStep, TracepointFormat};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::io;

/// The layouts of the tracepoints of requests that this kernel has.
///
/// # Errors
/// What is missing, in words, such as a right.
pub(super) fn formats() -> Result<Vec<TracepointFormat>, String> {
    let tracefs = tracefs()?;
    RequestStep::ALL
        .into_iter()
        .map(|step| (step, format_of(&tracefs, step)))
        .filter(|(step, format)| format.is_ok() || !step.is_optional())
        .map(|(_, format)| format)
        .collect()
}

/// The directory of tracefs: where it is mounted, or else a mount of our own that nobody else sees.
fn tracefs() -> Result<OwnedFd, String> {
    let directory = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH;
    let mut refused = None;
    for path in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        let opened = rustix::fs::open(path, directory, Mode::empty()).and_then(|found| {
            rustix::fs::accessat(
                &found,
                "events/block",
                rustix::fs::Access::EXISTS,
                rustix::fs::AtFlags::empty(),
            )
            .map(|()| found)
        });
        match opened {
            Ok(found) => return Ok(found),
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
                refused = Some(format!("{path} may not be read by this user"));
            }
            Err(_) => {}
        }
    }
    own_tracefs().map_err(|error| {
        refused.unwrap_or_else(|| {
            format!("tracefs is not mounted at /sys/kernel/tracing, and cannot be mounted: {error}")
        })
    })
}

/// A mount that is in no directory, and ends with its descriptor.
fn own_tracefs() -> rustix::io::Result<OwnedFd> {
    use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )
}

fn format_of(tracefs: &OwnedFd, step: RequestStep) -> Result<TracepointFormat, String> {
    let name = step.tracepoint();
    let path = format!("events/block/{name}/format");
    let text = rustix::fs::openat(
        tracefs,
        &path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(io::Error::from)
    .and_then(|file| io::read_to_string(std::fs::File::from(file)));
    match text {
        Ok(text) => TracepointFormat::parse(step, &text)
            .map_err(|field| format!("this kernel's {name} has no field {field} that is known")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err("the layout of the kernel's events may be read by root only".into())
        }
        Err(error) => Err(format!("this kernel has no tracepoint {name}: {error}")),
    }
}
