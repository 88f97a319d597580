//! Refusals of the guard, and what its checks share.

use crate::engine::mounts::{Mount, mounts};
use crate::model::Error;
use std::path::Path;

/// The refusal if a check is not possible: anything that cannot be seen may be there.
pub(super) fn blind(path: &Path, why: &str) -> Error {
    Error::usage(
        format!("refused to write to '{}': {why}", path.display()),
        "Rigel writes only where it can verify that the target is not in use: mount /proc and \
         /sys, run as root for devices, or measure without writes",
    )
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::failed(
        format!(
            "refused to write to '{}': its content cannot be read: {error}",
            path.display()
        ),
        "Rigel writes only where it can verify that no data is lost; give another target",
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

/// Quotes a path for a shell.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if text.chars().all(plain) && !text.is_empty() {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_as_a_shell_takes_it() {
        assert_eq!(
            quoted(Path::new("/dev/disk/by-id/a_b-1:0")),
            "/dev/disk/by-id/a_b-1:0"
        );
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
