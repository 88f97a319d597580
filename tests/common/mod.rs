//! What several test files need.

#![allow(dead_code, reason = "each test file uses a part of it")]

use rigel::workload::{content, rng::Rng};
use std::io::Write;
use std::path::PathBuf;

/// A file that is removed when it is dropped.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The directory for test files: on the disk that holds the build, because memory filesystems lack what is tested.
pub(crate) fn scratch_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// A file of `bytes` random bytes, on disk, whose name begins with `name`.
pub(crate) fn scratch_file(name: &str, bytes: u64) -> Scratch {
    let path = scratch_directory().join(format!("{name}-{}.dat", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    let mut piece = vec![0; 1 << 20];
    let mut rng = Rng::new(bytes, 0);
    let mut left = bytes;
    while left > 0 {
        content::fill(&mut piece, &mut rng);
        let length = usize::try_from(left.min(piece.len() as u64)).unwrap();
        file.write_all(&piece[..length]).unwrap();
        left -= length as u64;
    }
    file.sync_all().unwrap();
    Scratch { path }
}
