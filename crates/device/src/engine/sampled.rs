//! Blocks of a target that were read to recognise it from another host.
//!
//! Input: an open target. Output: its size, and digests of blocks at equal distances. Reads by
//! direct I/O where possible: another host's writes are not in this host's page cache. It changes
//! nothing.

use super::opened::Opened;
use rigel_model::{Error, failed};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

/// Number of blocks.
const BLOCKS: u64 = 64;
/// Size of a block: a multiple of every device's own.
const BLOCK: usize = 4096;

/// What a target contains, in a few bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledBlocks {
    /// Size of the target.
    pub bytes: u64,
    /// Digest of the first block.
    pub first: String,
    /// Digest of all sampled blocks.
    pub all: String,
    /// True if all sampled blocks hold zeros, which any new disk does.
    pub is_empty: bool,
}

impl SampledBlocks {
    /// Reads blocks of an open target.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(target: &Opened) -> Result<Self, Error> {
        let failed = |error: std::io::Error| {
            failed!(
                "'{path}' cannot be read: {error}",
                "",
                path = target.path().display()
            )
        };
        let bytes = target.bytes().map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true);
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let file = target.reopen(&options, direct).ok();
        let mut sampled = Sampler::new(file.as_ref().unwrap_or(target.file()), target.file());
        let blocks = bytes / BLOCK as u64;
        let step = (blocks / BLOCKS).max(1);
        for number in (0..blocks).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            sampled.add(number * BLOCK as u64).map_err(failed)?;
        }
        Ok(Self {
            bytes,
            first: sampled.first.unwrap_or_default(),
            all: hex(&sampled.all.finalize()),
            is_empty: sampled.is_empty,
        })
    }
}

/// Reads block after block.
struct Sampler<'a> {
    file: &'a File,
    /// Without direct I/O, where that is refused.
    cached: &'a File,
    /// Twice a block: one of its addresses is aligned for direct I/O.
    memory: Vec<u8>,
    first: Option<String>,
    all: Sha256,
    is_empty: bool,
}

impl<'a> Sampler<'a> {
    fn new(file: &'a File, cached: &'a File) -> Self {
        Self {
            file,
            cached,
            memory: vec![0; 2 * BLOCK],
            first: None,
            all: Sha256::new(),
            is_empty: true,
        }
    }

    fn add(&mut self, offset: u64) -> std::io::Result<()> {
        let start = self.memory.as_ptr().align_offset(BLOCK).min(BLOCK);
        let block = &mut self.memory[start..start + BLOCK];
        self.file
            .read_exact_at(block, offset)
            .or_else(|_| self.cached.read_exact_at(block, offset))?;
        self.first
            .get_or_insert_with(|| hex(&Sha256::digest(&*block)));
        self.all.update(&*block);
        self.is_empty &= block.iter().all(|byte| *byte == 0);
        Ok(())
    }
}

/// A digest of `blocks` blocks of a file at equal distances, the last one included, in 64 digits.
/// Reads by the page cache, so it is what this host would read.
///
/// # Errors
/// It cannot be read.
pub(super) fn digest_of(file: &File, bytes: u64, blocks: u64) -> std::io::Result<String> {
    let mut sampled = Sampler::new(file, file);
    let whole = bytes / BLOCK as u64;
    let last = whole.saturating_sub(1);
    let blocks = blocks.min(whole);
    for number in 0..blocks {
        let block = last * number / blocks.saturating_sub(1).max(1);
        sampled.add(block * BLOCK as u64)?;
    }
    Ok(hex(&sampled.all.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;

    #[test]
    fn files_are_told_apart_by_size_and_content() {
        let place = TempDir::new("sampled");
        let sampled = |name: &str, bytes: &[u8]| {
            let path = place.0.join(name);
            std::fs::write(&path, bytes).unwrap();
            SampledBlocks::of(&Opened::open(&path).unwrap()).unwrap()
        };
        let mut content: Vec<u8> = (0..1 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
        let one = sampled("one", &content);
        assert_eq!(sampled("same", &content), one);
        assert!(!one.is_empty);
        assert_eq!(one.bytes, 1 << 20);
        content[(1 << 20) - (1 << 14)] ^= 1;
        let other = sampled("other", &content);
        assert_eq!(other.first, one.first);
        assert_ne!(other.all, one.all, "block 252 of 256 is sampled");
        content[0] ^= 1;
        assert_ne!(sampled("first", &content).first, one.first);
        assert!(sampled("zeros", &vec![0; 1 << 16]).is_empty);
        assert_ne!(sampled("short", &content[..1 << 19]).bytes, one.bytes);
    }
}
