//! Loading tables: the request, the progress and the result, in any product.

use rigel_model::Tables;
use rigel_model::workload::rng::Rng;

/// Request to load tables.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// The tables to make.
    pub tables: Tables,
    /// Number of connections that load in parallel.
    pub degree: u32,
    /// The tablespace to create them in; `None` = the database's default.
    pub tablespace: Option<String>,
}

/// Progress of making tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadEvent {
    /// Rows were loaded.
    Rows {
        /// Rows loaded so far.
        done: u64,
        /// Rows in total.
        of: u64,
    },
    /// The indexes are being created.
    Indexing,
    /// Rows, blocks and order are being verified.
    Verifying,
}

/// Receives the progress of making tables, from any thread.
pub type LoadListen<'a> = dyn Fn(LoadEvent) + Sync + 'a;

/// Result of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadResult {
    /// Rows that an earlier load had loaded.
    pub rows_before: u64,
    /// Total rows.
    pub rows: u64,
    /// Blocks that contain them.
    pub blocks: u64,
    /// Correlation of key and position; near 0 if neighbouring keys are far apart.
    pub correlation: f64,
}

/// Random characters from a set of 64: letters, digits, a dot and an underscore.
pub(super) fn random_text(rng: &mut Rng, characters: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";
    let mut text = vec![0; characters];
    // 64 bits contain ten characters of six bits.
    for piece in text.chunks_mut(10) {
        let mut bits = rng.bits();
        for character in piece {
            *character = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
    }
    text
}
