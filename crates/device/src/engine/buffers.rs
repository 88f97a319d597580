//! Memory for outstanding operations: one buffer per slot, aligned for direct I/O, plus a write
//! buffer per slot if there are writes. Data that were read are never written again: they may
//! compress, and two sessions may have read the same data.

use super::verification::{SubmittedOp, VolumeContents};
use rigel_model::{Kind, Op, Outcome, Slot};
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
    /// The operation in each slot, and its piece.
    submitted: Vec<(SubmittedOp, usize)>,
}

impl Buffers {
    /// Creates a buffer for each of `lengths`, and a second one each for `writes`.
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
            submitted: vec![Default::default(); lengths.len()],
        };
        for piece in 0..buffers.pieces.len() {
            // The kernel gives memory its pages only now.
            buffers.piece(piece).fill(1);
        }
        buffers
    }

    /// Number of pieces.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The piece for `op` in `slot`, which goes to an offset of a file. For a write, its content is made.
    ///
    /// # Panics
    /// If the piece is shorter than the operation: the kernel would write beyond it.
    #[inline]
    pub(super) fn take(
        &mut self,
        slot: Slot,
        op: Op,
        place: (usize, u64),
        contents: &VolumeContents,
    ) -> usize {
        let slot = usize::from(slot);
        let length = op.length as usize;
        assert!(
            length <= self.length(slot),
            "an operation of {length} bytes in a slot of {}",
            self.length(slot)
        );
        if matches!(op.kind, Kind::Read | Kind::Scan) {
            contents.begin_read(place, op.length, &mut self.submitted[slot].0);
            self.submitted[slot].1 = slot;
            return slot;
        }
        // A volume opened for reading has no write buffers, and the kernel refuses the write.
        let piece = if self.pieces.len() > self.slots {
            self.slots + slot
        } else {
            slot
        };
        let mut submitted = std::mem::take(&mut self.submitted[slot].0);
        contents.begin_write(place, &mut self.piece(piece)[..length], &mut submitted);
        self.submitted[slot] = (submitted, piece);
        piece
    }

    /// Looks at the bytes of the operation in `slot`, which has ended. Returns its outcome.
    pub(super) fn look(
        &mut self,
        slot: Slot,
        outcome: Outcome,
        contents: &VolumeContents,
    ) -> Outcome {
        let (mut submitted, piece) = std::mem::take(&mut self.submitted[usize::from(slot)]);
        let outcome = contents.end(&mut submitted, self.piece(piece), outcome);
        self.submitted[usize::from(slot)] = (submitted, piece);
        outcome
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
        let contents = VolumeContents::of_new_file();
        let op = Op {
            position: 0,
            length: 8192,
            kind: Kind::Read,
        };
        assert_eq!(buffers.take(0, op, (0, 0), &contents), 0);
        buffers.take(1, op, (0, 0), &contents);
    }
}
