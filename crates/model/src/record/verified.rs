//! Blocks that were read and looked at.
//!
//! Input: blocks whose content is known, and what was read of them. Output: how many were as written, those that were
//! not, and what it cost to look.

use crate::{Nanos, WrongBytes};
use serde::{Deserialize, Serialize};

/// What looking at the blocks of a point found. Those that were wrong are among the failures of their class, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Blocks of which every byte was compared with what was written.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks of which it is not known what was written: neither Rigel nor this run did.
    #[serde(default)]
    pub unknown: u64,
    /// Blocks of these that were not as they were written; one that is read twice counts twice.
    #[serde(default)]
    pub wrong_blocks: u64,
    /// CPU time of comparing, after the end of an operation was recorded.
    pub time: Nanos,
    /// The first blocks that were wrong, each once, [`Verified::WRONG_MOST`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<WrongBlock>,
}

/// A block that was not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WrongBlock {
    /// The file or device, by its number in the volume.
    pub member: u32,
    /// Bytes from its beginning to the first wrong sector.
    pub offset: u64,
    /// Bytes of the block.
    pub length: u32,
    /// How it is wrong.
    pub how: WrongBytes,
    /// What the first wrong sector holds.
    pub held: String,
}

impl Verified {
    /// Blocks of a point that are named; all are counted.
    pub const WRONG_MOST: usize = 20;

    /// What was found of several records, in their order; `None` if none was looked at.
    pub fn sum<'a>(all: impl Iterator<Item = Option<&'a Verified>>) -> Option<Verified> {
        all.flatten().cloned().reduce(|mut sum, other| {
            sum.blocks = sum.blocks.saturating_add(other.blocks);
            sum.bytes = sum.bytes.saturating_add(other.bytes);
            sum.unknown = sum.unknown.saturating_add(other.unknown);
            sum.wrong_blocks = sum.wrong_blocks.saturating_add(other.wrong_blocks);
            sum.time = sum.time.plus(other.time);
            other.wrong.into_iter().for_each(|wrong| sum.name(wrong));
            sum
        })
    }

    /// Names a wrong block, unless it is named already, or enough are.
    pub fn name(&mut self, wrong: WrongBlock) {
        if self.wrong.len() < Self::WRONG_MOST && !self.wrong.contains(&wrong) {
            self.wrong.push(wrong);
        }
    }
}
