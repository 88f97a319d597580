//! Memory for outstanding operations: one buffer per slot, aligned for direct I/O, plus a write
//! buffer per slot if there are writes. Data that were read are never written again: they may
//! compress, and two sessions may have read the same data.

use crate::clock;
use rigel_model::Kind;
use rigel_model::workload::content;
use rigel_model::workload::rng::Rng;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Direct I/O needs memory aligned to the logical block; a page works for every device.
const ALIGNMENT: usize = 4096;

/// The buffers of one session. They never move, so the kernel may keep their addresses.
#[derive(Debug)]
pub(super) struct Buffers {
    base: NonNull<u8>,
    layout: Layout,
    /// Offset and length of each piece: one per slot, then one write buffer per slot if there are
    /// writes.
    pieces: Vec<(usize, usize)>,
    slots: usize,
    /// Number of writes so far: makes each written sector unique.
    serial: u64,
}

impl Buffers {
    /// Creates a buffer for each of `lengths`, and a second one each for `writes`, full of random
    /// bytes.
    pub(super) fn new(lengths: &[u32], writes: bool) -> Self {
        let mut end = 0;
        let again = if writes { lengths } else { &[] };
        let pieces: Vec<_> = lengths
            .iter()
            .chain(again)
            .map(|length| {
                let length = *length as usize;
                let piece = (end, length);
                end += length.next_multiple_of(ALIGNMENT);
                piece
            })
            .collect();
        let layout = Layout::from_size_align(end.max(ALIGNMENT), ALIGNMENT)
            .expect("slots times length fits in memory");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout)
        };
        let mut buffers = Self {
            base,
            layout,
            pieces,
            slots: lengths.len(),
            serial: 0,
        };
        // Two sessions must never write the same bytes, even one after the other in the same
        // memory.
        let mut rng = Rng::new(clock::fresh_seed(), base.as_ptr() as u64);
        for piece in 0..buffers.pieces.len() {
            content::fill(buffers.piece(piece), &mut rng);
        }
        buffers
    }

    /// Number of pieces.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The piece for an operation of `kind` in `slot`. For a write, its content is made different
    /// from anything written before.
    ///
    /// # Panics
    /// If the piece is shorter than the operation: the kernel would write beyond it.
    pub(super) fn take(&mut self, slot: usize, kind: Kind, length: u32) -> usize {
        assert!(
            length as usize <= self.length(slot),
            "an operation of {length} bytes in a slot of {}",
            self.length(slot)
        );
        if matches!(kind, Kind::Read | Kind::Scan) {
            return slot;
        }
        // A volume opened for reading has no write buffers, and the kernel refuses the write.
        let piece = if self.pieces.len() > self.slots {
            self.slots + slot
        } else {
            slot
        };
        self.serial += 1;
        let serial = self.serial;
        content::stamp(&mut self.piece(piece)[..length as usize], serial);
        piece
    }

    /// Address of a piece; fixed as long as `self` lives.
    pub(super) fn address(&self, piece: usize) -> *mut u8 {
        // SAFETY: the piece lies inside the allocation.
        unsafe { self.base.as_ptr().add(self.pieces[piece].0) }
    }

    /// Length of a piece in bytes.
    pub(super) fn length(&self, piece: usize) -> usize {
        self.pieces[piece].1
    }

    /// The memory of a piece. No operation may be outstanding on it.
    pub(super) fn piece(&mut self, piece: usize) -> &mut [u8] {
        // SAFETY: the piece lies inside the allocation, overlaps no other, and `self` is borrowed
        // for as long.
        unsafe { std::slice::from_raw_parts_mut(self.address(piece), self.pieces[piece].1) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`; the sessions that own buffers outlive their
        // operations.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "an operation of 8192 bytes in a slot of 4096")]
    fn no_engine_gets_memory_that_is_shorter_than_its_operation() {
        let mut buffers = Buffers::new(&[8192, 4096], false);
        assert_eq!(buffers.take(0, Kind::Read, 8192), 0);
        buffers.take(1, Kind::Read, 8192);
    }
}
