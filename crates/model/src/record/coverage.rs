//! Coverage: which blocks of a volume a stream has touched.
//!
//! Input: positions, from any number of threads. Output: [`Coverage`], the number of distinct
//! blocks and the distribution of operations over the volume, for comparison with the requested
//! pattern. It proves that a run measured the whole volume and not just a corner.
//!
//! The volume is divided into at most 64 slices of a power of two of blocks. Up to 2^26 blocks,
//! each block has a bit (8 MiB). In larger volumes only the first blocks of every slice have one,
//! up to the same memory; the rest are counted per slice. Either way it detects a tool that skips
//! blocks by any rule.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of blocks with their own bit.
const TRACKED_MAX: u64 = 1 << 26;
/// Maximum number of slices, as a power of two.
const SLICE_BITS: u32 = 6;

/// Counters written by the main loop, shared by all workers of a stream.
#[derive(Debug)]
pub struct CoverageMap {
    extent: u64,
    /// Blocks per slice, as a power of two.
    slice_shift: u32,
    /// Blocks per slice that have a bit, as a power of two; at most `slice_shift`.
    tracked_shift: u32,
    bits: Vec<AtomicU64>,
    slices: Vec<AtomicU64>,
    /// Operations on blocks that have a bit; not counted if all blocks have one.
    watched: AtomicU64,
}

/// Summary of the touched blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Blocks in the volume.
    pub extent: u64,
    /// Number of blocks that are tracked individually.
    pub tracked: u64,
    /// Operations on tracked blocks.
    pub operations: u64,
    /// Distinct tracked blocks that were touched.
    pub distinct: u64,
    /// Blocks per slice; the last slice may be shorter.
    pub slice: u64,
    /// Operations in each slice of the volume.
    pub slices: Vec<u64>,
}

impl CoverageMap {
    /// Creates an empty map of a volume of `extent` blocks.
    pub fn new(extent: u64) -> Self {
        let blocks_bits = u64::BITS - extent.saturating_sub(1).leading_zeros();
        let slice_shift = blocks_bits.saturating_sub(SLICE_BITS);
        let tracked_shift = slice_shift.min(TRACKED_MAX.trailing_zeros() - SLICE_BITS);
        let slices = extent.div_ceil(1 << slice_shift);
        let zeros = |count: u64| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            extent,
            slice_shift,
            tracked_shift,
            bits: zeros((slices << tracked_shift).div_ceil(64)),
            slices: zeros(slices),
            watched: AtomicU64::new(0),
        }
    }

    /// Records an operation at `position`, which must be inside the volume.
    #[inline]
    pub fn touch(&self, position: u64) {
        let slice = position >> self.slice_shift;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a slice number is below 64"
        )]
        let index = slice as usize;
        self.slices[index].fetch_add(1, Ordering::Relaxed);
        let within = position & ((1 << self.slice_shift) - 1);
        if within >> self.tracked_shift == 0 {
            if self.tracked_shift < self.slice_shift {
                self.watched.fetch_add(1, Ordering::Relaxed);
            }
            let bit = (slice << self.tracked_shift) | within;
            #[allow(clippy::cast_possible_truncation, reason = "at most TRACKED_MAX / 64")]
            let word = &self.bits[(bit / 64) as usize];
            let mask = 1 << (bit % 64);
            // Plain load first: once most blocks were seen nothing else is needed, and shared cache
            // lines stay shared.
            if word.load(Ordering::Relaxed) & mask == 0 {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// True if `position` was touched; false also where blocks have no bit.
    pub fn has_touched(&self, position: u64) -> bool {
        let within = position & ((1 << self.slice_shift) - 1);
        let bit = ((position >> self.slice_shift) << self.tracked_shift) | within;
        #[allow(clippy::cast_possible_truncation, reason = "at most TRACKED_MAX / 64")]
        let word = || self.bits[(bit / 64) as usize].load(Ordering::Relaxed);
        within >> self.tracked_shift == 0 && word() & (1 << (bit % 64)) != 0
    }

    /// Returns the coverage so far.
    pub fn read(&self) -> Coverage {
        let slices: Vec<u64> = self
            .slices
            .iter()
            .map(|slice| slice.load(Ordering::Relaxed))
            .collect();
        let (slice, run) = (1u64 << self.slice_shift, 1u64 << self.tracked_shift);
        let tracked = (0..slices.len() as u64)
            .map(|i| (self.extent - i * slice).min(run))
            .sum();
        let distinct = self
            .bits
            .iter()
            .map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()))
            .sum();
        let whole = self.tracked_shift == self.slice_shift;
        let operations = if whole {
            slices.iter().sum()
        } else {
            self.watched.load(Ordering::Relaxed)
        };
        Coverage {
            extent: self.extent,
            tracked,
            operations,
            distinct,
            slice,
            slices,
        }
    }
}

impl Coverage {
    /// Expected distinct blocks for independent, equally likely draws: `M (1 - e^(-N/M))`, N draws
    /// over M blocks.
    pub fn expected_uniform(&self) -> f64 {
        if self.tracked == 0 {
            return 0.0;
        }
        let (draws, blocks) = (self.operations as f64, self.tracked as f64);
        -blocks * (-draws / blocks).exp_m1()
    }

    /// Standard deviation of that number: the occupancy problem's variance,
    /// `M e^(-a) (1 - (1 + a) e^(-a))` with `a = N/M` (Feller, vol. 1, and Johnson & Kotz, Urn
    /// Models, 3.2).
    pub fn expected_uniform_deviation(&self) -> f64 {
        if self.tracked == 0 {
            return 0.0;
        }
        let blocks = self.tracked as f64;
        let load = self.operations as f64 / blocks;
        let empty = (-load).exp();
        (blocks * empty * (1.0 - (1.0 + load) * empty))
            .max(0.0)
            .sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn distinct_blocks_are_counted_exactly(
            extent in 1u64..5000, seeds in prop::collection::vec(any::<u64>(), 0..300)
        ) {
            let map = CoverageMap::new(extent);
            let positions: Vec<u64> = seeds.iter().map(|seed| seed % extent).collect();
            positions.iter().for_each(|position| map.touch(*position));
            let coverage = map.read();
            prop_assert_eq!(coverage.distinct, positions.iter().collect::<BTreeSet<_>>().len() as u64);
            prop_assert_eq!(coverage.tracked, extent);
            prop_assert_eq!(coverage.operations, positions.len() as u64);
            prop_assert!(coverage.slices.len() <= 64);
        }
    }

    #[test]
    fn a_volume_of_any_size_takes_at_most_8_mib() {
        for extent in [1 << 26, (1 << 26) + 1, 1 << 35, (1 << 40) - 17] {
            let map = CoverageMap::new(extent);
            map.touch(0);
            map.touch(extent - 1);
            assert!(
                map.bits.len() * 8 <= 8 << 20,
                "{extent}: {} words",
                map.bits.len()
            );
            assert_eq!(map.read().slices.iter().sum::<u64>(), 2);
        }
    }

    #[test]
    fn in_a_volume_watched_in_part_theory_holds_for_the_part() {
        let mut rng = crate::workload::rng::Rng::new(5, 0);
        let map = CoverageMap::new(1 << 27);
        (0..200_000).for_each(|_| map.touch(rng.below(1 << 27)));
        let coverage = map.read();
        assert_eq!(coverage.tracked, 1 << 26);
        let off = (coverage.distinct as f64 - coverage.expected_uniform()).abs();
        assert!(
            off < 5.0 * coverage.expected_uniform_deviation(),
            "{off} {coverage:?}"
        );
    }

    #[test]
    fn a_tool_that_reads_one_block_in_a_mebibyte_is_caught() {
        // 96 GiB in blocks of 8 KiB, one block per MiB: what Orion did, on a small scale.
        let map = CoverageMap::new(96 << 17);
        (0..1_000_000u64).for_each(|i| map.touch((i % 98_304) * 128));
        let coverage = map.read();
        assert_eq!(coverage.distinct, 98_304);
        assert!(coverage.expected_uniform() > 900_000.0);
    }
}
