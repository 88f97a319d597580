//! Content of writes: data that neither deduplicate nor compress.
//!
//! Input: a buffer. Output: the same buffer full of random bytes, with every block of 512 unique.
//! Otherwise a device that compresses or deduplicates would do less work than for a database.

use super::rng::Rng;

/// Smallest unit in which devices look for duplicates.
const SECTOR: usize = 512;

/// Fills `buffer` with random bytes.
pub fn fill(buffer: &mut [u8], rng: &mut Rng) {
    for chunk in buffer.chunks_mut(8) {
        chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]);
    }
}

/// Makes every sector of a buffer of random bytes different from all earlier writes of the buffer.
/// `serial` must differ for every write of a run. Cheap enough for the main loop: 8 bytes in 512.
#[inline]
pub fn stamp(buffer: &mut [u8], serial: u64) {
    // An odd factor spreads the serial over all 64 bits, so the stamps do not compress either.
    let stamp = serial.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    for sector in buffer.chunks_exact_mut(SECTOR) {
        for (byte, stamp) in sector.iter_mut().zip(stamp) {
            *byte ^= stamp;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_sector_is_written_twice() {
        let mut buffer = vec![0; 64 * SECTOR];
        fill(&mut buffer, &mut Rng::new(1, 0));
        let mut seen = BTreeSet::new();
        for serial in 1..100 {
            stamp(&mut buffer, serial);
            for sector in buffer.chunks(SECTOR) {
                assert!(
                    seen.insert(sector.to_vec()),
                    "a sector came twice at serial {serial}"
                );
            }
        }
    }
}
