//! Mapping of several files to one volume.
//!
//! Input: a byte offset in the volume. Output: a member and the offset in it. Every byte of the
//! volume is exactly one byte of one member. An I/O never crosses two members: the rest at the end
//! of a member, less than one *grain*, is not used.

use rigel_model::{Bytes, Error, Layout, usage};

/// The layout of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeMap {
    layout: Layout,
    /// End of each member in a concatenation. For a stripe set only the last value matters.
    ends: Vec<u64>,
    /// First byte of the part that is used.
    start: u64,
    usable: u64,
}

impl VolumeMap {
    /// Creates a volume of members of `sizes` bytes. `grain` is the size of the largest I/O in
    /// bytes.
    ///
    /// # Errors
    /// The volume is too small for two I/Os, or a stripe is not a multiple of the largest I/O.
    pub fn new(sizes: &[u64], layout: Layout, grain: u64) -> Result<Self, Error> {
        let stripe = match layout {
            Layout::Concat => grain,
            Layout::Stripe { stripe } => stripe.0,
        };
        if stripe == 0 || !stripe.is_multiple_of(grain) {
            return Err(usage!(
                "a stripe of {stripe} would split I/Os of {grain}",
                "make the stripe a multiple of the largest I/O",
                stripe = Bytes(stripe),
                grain = Bytes(grain)
            ));
        }
        let whole = |size: u64| size / stripe * stripe;
        let ends: Vec<u64> = match layout {
            Layout::Concat => sizes
                .iter()
                .scan(0, |end, size| {
                    *end += whole(*size);
                    Some(*end)
                })
                .collect(),
            Layout::Stripe { .. } => {
                // Stripes rotate over all members, so the smallest member limits the volume.
                let least = sizes.iter().copied().min().map_or(0, whole);
                (1..=sizes.len() as u64)
                    .map(|members| members * least)
                    .collect()
            }
        };
        let usable = ends.last().copied().unwrap_or(0);
        if usable < 2 * grain {
            return Err(usage!(
                "the targets have {all} together, which is too small for two I/Os of {grain}",
                "give larger targets, or a smaller stripe or I/O size",
                all = Bytes(sizes.iter().fold(0, |sum, size| sum.saturating_add(*size))),
                grain = Bytes(grain)
            ));
        }
        Ok(Self {
            layout,
            ends,
            start: 0,
            usable,
        })
    }

    /// Only part number `index` of `of` equal parts, from 0, which begins and ends with a grain.
    ///
    /// # Errors
    /// A part is too small for two I/Os.
    pub fn part(mut self, index: u64, of: u64, grain: u64) -> Result<Self, Error> {
        let size = self.usable / of.max(1) / grain.max(1) * grain;
        if size < 2 * grain {
            return Err(usage!(
                "a volume of {usable} divided among {of} ranks is too small for two I/Os of \
                 {grain} each",
                "give larger targets, fewer ranks, or --same-blocks",
                usable = Bytes(self.usable),
                grain = Bytes(grain)
            ));
        }
        self.start = index * size;
        self.usable = size;
        Ok(self)
    }

    /// Size of the volume in bytes.
    pub fn usable(&self) -> u64 {
        self.usable
    }

    /// Where member `index` begins in a concatenation.
    pub fn start_of(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The member that contains the byte at `offset`, and the offset in it.
    ///
    /// # Panics
    /// If the volume, or the part that is used, ends before `offset`: nothing may be written there.
    #[inline]
    pub fn locate(&self, offset: u64) -> (usize, u64) {
        assert!(
            offset < self.usable,
            "an offset beyond the end of the volume"
        );
        let offset = self.start + offset;
        if let [_] = self.ends[..] {
            return (0, offset);
        }
        match self.layout {
            Layout::Concat => {
                let member = self.ends.partition_point(|end| *end <= offset);
                (member, offset - self.start_of(member))
            }
            Layout::Stripe { stripe } => {
                let members = self.ends.len() as u64;
                let (turn, within) = (offset / stripe.0, offset % stripe.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "below the number of members"
                )]
                let member = (turn % members) as usize;
                (member, turn / members * stripe.0 + within)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_concatenation_leaves_out_partial_blocks() {
        let map = VolumeMap::new(&[1000, 300, 500], Layout::Concat, 200).unwrap();
        assert_eq!(map.usable(), 1000 + 200 + 400);
        assert_eq!(map.locate(999), (0, 999));
        assert_eq!(map.locate(1000), (1, 0));
        assert_eq!(map.locate(1200), (2, 0));
    }

    #[test]
    fn parts_are_disjoint_and_of_equal_size() {
        let map = || VolumeMap::new(&[1000, 500], Layout::Concat, 100).unwrap();
        let parts = [0, 1, 2, 3].map(|index| map().part(index, 4, 100).unwrap());
        assert!(parts.iter().all(|part| part.usable() == 300));
        let starts = parts.each_ref().map(|part| part.locate(0));
        assert_eq!(starts, [(0, 0), (0, 300), (0, 600), (0, 900)]);
        assert_eq!(parts[3].locate(299), (1, 199));
        assert!(map().part(0, 8, 100).is_err(), "one I/O each");
    }

    #[test]
    #[should_panic(expected = "beyond the end of the volume")]
    fn no_member_lies_beyond_the_end_of_a_part() {
        let map = VolumeMap::new(&[1000], Layout::Concat, 100).unwrap();
        let part = map.part(0, 2, 100).unwrap();
        assert_eq!(part.locate(499), (0, 499));
        let _ = part.locate(500);
    }

    #[test]
    fn stripes_take_turns() {
        let map = VolumeMap::new(&[1000, 900], Layout::Stripe { stripe: Bytes(400) }, 200).unwrap();
        assert_eq!(map.usable(), 1600);
        assert_eq!(
            [0, 400, 800, 1200, 1300].map(|offset| map.locate(offset)),
            [(0, 0), (1, 0), (0, 400), (1, 400), (1, 500)]
        );
    }

    #[test]
    fn a_stripe_smaller_than_an_io_is_refused() {
        let error = VolumeMap::new(
            &[1 << 20],
            Layout::Stripe {
                stripe: Bytes(4096),
            },
            8192,
        )
        .unwrap_err();
        assert_eq!(error.exit_status(), 2);
    }

    proptest! {
        #[test]
        fn every_block_of_the_volume_is_one_block_of_one_member(
            sizes in prop::collection::vec(0u64..4000, 1..6), turns in 1u64..4, striped in any::<bool>()
        ) {
            let grain = 100;
            let layout = if striped { Layout::Stripe { stripe: Bytes(turns * grain) } } else { Layout::Concat };
            let Ok(map) = VolumeMap::new(&sizes, layout, grain) else { return Ok(()) };
            let mut seen = BTreeSet::new();
            for block in 0..map.usable() / grain {
                let (member, offset) = map.locate(block * grain);
                prop_assert!(offset + grain <= sizes[member], "block {block} ends outside member {member}");
                prop_assert_eq!(map.locate(block * grain + grain - 1), (member, offset + grain - 1));
                prop_assert!(seen.insert((member, offset)));
            }
        }
    }
}
