//! Which kind of reads a source means that gives only their mean size.

use rigel_model::DemandKind;

/// Reads of up to this many blocks on average are random reads.
const RANDOM_BLOCKS_MAX: f64 = 2.0;

/// What reads of this mean size are.
pub(super) fn reads_of(bytes: Option<f64>) -> DemandKind {
    let is_large = bytes.is_some_and(|bytes| bytes > RANDOM_BLOCKS_MAX * f64::from(BLOCK_ASSUMED));
    if is_large {
        DemandKind::MultiblockReads
    } else {
        DemandKind::RandomReads
    }
}

/// Size of a block where the demand does not say it: that of PostgreSQL and of most Oracle
/// databases.
pub const BLOCK_ASSUMED: u32 = 8 << 10;
