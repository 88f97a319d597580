//! Small files of /proc and /sys.

/// A small file of /proc or /sys without its line end; `None` if it cannot be read or is empty.
pub(super) fn read(path: impl AsRef<std::path::Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// A small file that contains one number.
pub(super) fn read_number<N: std::str::FromStr>(path: impl AsRef<std::path::Path>) -> Option<N> {
    read(path)?.parse().ok()
}
