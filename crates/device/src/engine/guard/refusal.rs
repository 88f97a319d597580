//! Refusals of the guard, and what its checks share.

use crate::engine::mounts::{Mount, mounts};
use rigel_model::{Error, failed, usage};
use std::path::Path;

/// The refusal if a check is not possible: anything that cannot be seen may be there.
pub(super) fn blind(path: &Path, why: &str) -> Error {
    usage!(
        "refused to write to '{path}': {why}",
        "Rigel writes only where it can verify that the target is not in use: mount /proc and \
         /sys, run as root for devices, or measure without writes",
        path = path.display()
    )
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    failed!(
        "refused to write to '{path}': its content cannot be read: {error}",
        "Rigel writes only where it can verify that no data is lost; give another target",
        path = path.display()
    )
}

/// All mounts. An empty list is an error, because something is always mounted.
pub(super) fn checked_mounts() -> Result<Vec<Mount>, String> {
    match mounts() {
        Ok(mounts) if !mounts.is_empty() => Ok(mounts),
        Ok(_) => Err("mounts cannot be listed: /proc/self/mountinfo is empty".into()),
        Err(error) => Err(format!(
            "mounts cannot be listed: /proc/self/mountinfo: {error}"
        )),
    }
}
