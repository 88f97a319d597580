//! Memory for outstanding operations: one piece a slot, aligned for direct I/O.

use crate::clock;
use crate::workload::content;
use crate::workload::rng::Rng;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Direct I/O wants memory aligned to the logical block; a page serves every device.
const ALIGNMENT: usize = 4096;

/// The buffers of one session. They never move, so the kernel may keep their addresses.
#[derive(Debug)]
pub(super) struct Buffers {
    base: NonNull<u8>,
    layout: Layout,
    /// Offset and length of each slot's piece.
    pieces: Vec<(usize, usize)>,
    /// Writes so far: makes every written sector unlike the others.
    serial: u64,
}

impl Buffers {
    /// A buffer of each of `lengths`, full of random bytes.
    pub(super) fn new(lengths: &[u32]) -> Self {
        let mut end = 0;
        let pieces: Vec<_> = lengths
            .iter()
            .map(|length| {
                let length = *length as usize;
                let piece = (end, length);
                end += length.next_multiple_of(ALIGNMENT);
                piece
            })
            .collect();
        let layout = Layout::from_size_align(end.max(ALIGNMENT), ALIGNMENT).expect("slots times length fits in memory");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        let mut buffers = Self { base, layout, pieces, serial: 0 };
        // Two sessions must never write the same bytes, not even one after the other in the same memory.
        let mut rng = Rng::new(clock::fresh_seed(), base.as_ptr() as u64);
        for slot in 0..buffers.pieces.len() {
            content::fill(buffers.piece(slot), &mut rng);
        }
        buffers
    }

    /// Where the buffer of `slot` begins; its address is fixed as long as `self` lives.
    pub(super) fn address(&self, slot: usize) -> *mut u8 {
        // SAFETY: the piece lies inside the allocation.
        unsafe { self.base.as_ptr().add(self.pieces[slot].0) }
    }

    /// Bytes of the buffer of `slot`.
    pub(super) fn length(&self, slot: usize) -> usize {
        self.pieces[slot].1
    }

    /// The buffer of `slot`. No operation may be outstanding on it.
    pub(super) fn piece(&mut self, slot: usize) -> &mut [u8] {
        // SAFETY: the piece lies inside the allocation, overlaps no other, and `self` is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), self.pieces[slot].1) }
    }

    /// Makes the content of the buffer of `slot` unlike anything written before.
    pub(super) fn renew(&mut self, slot: usize, length: u32) {
        self.serial += 1;
        let serial = self.serial;
        content::stamp(&mut self.piece(slot)[..length as usize], serial);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`; the sessions that own buffers outlive their operations.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}
