//! A directory for the files of unit tests.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// A directory for a unit test, beside the test program: that is on a disk, while /tmp may not be.
/// Removed on drop.
pub(crate) struct TempDir(pub(crate) PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let path = program
            .parent()
            .unwrap()
            .join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Creates a file of `size` bytes and writes the first `written` of them.
    pub(crate) fn file(&self, name: &str, written: usize, size: u64) -> PathBuf {
        let path = self.0.join(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; written]).unwrap();
        file.set_len(size).unwrap();
        path
    }

    #[allow(dead_code, reason = "not every crate that includes this file uses it")]
    pub(crate) fn entries(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
