//! Memory that is shared with the kernel: mapped, read by copies, unmapped.
//!
//! The kernel writes into this memory at any time. So no reference to its bytes is made: words are
//! read as atomics, and everything else is copied.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A shared mapping of a descriptor.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone, and any thread may access it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of a descriptor from `offset` on, for reading, or for reading and writing.
    pub(super) fn new(
        descriptor: libc::c_int,
        bytes: usize,
        offset: usize,
        is_writable: bool,
    ) -> io::Result<Self> {
        Self::with_flags(descriptor, bytes, offset, is_writable, libc::MAP_SHARED)
    }

    /// Memory of our own, for tests.
    #[cfg(test)]
    pub(super) fn anonymous(bytes: usize) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Self::with_flags(-1, bytes, 0, true, flags).expect("there is memory for a test")
    }

    fn with_flags(
        descriptor: libc::c_int,
        bytes: usize,
        offset: usize,
        is_writable: bool,
        flags: libc::c_int,
    ) -> io::Result<Self> {
        let write = if is_writable { libc::PROT_WRITE } else { 0 };
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping at no fixed address.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | write,
                flags,
                descriptor,
                offset,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(mapped.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes })
    }

    /// The word of eight bytes at this place, which must be aligned.
    pub(super) fn word(&self, place: usize) -> &AtomicU64 {
        assert!(place.is_multiple_of(8) && place + 8 <= self.bytes);
        // SAFETY: the word lies in the mapping, by the line above, and is aligned, as the mapping is.
        // The kernel accesses it as a word.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(place).cast()) }
    }

    /// The word of four bytes at this place, which must be aligned.
    pub(super) fn half_word(&self, place: usize) -> &AtomicU32 {
        assert!(place.is_multiple_of(4) && place + 4 <= self.bytes);
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(place).cast()) }
    }

    /// Copies the bytes from this place on.
    pub(super) fn copy(&self, place: usize, to: &mut [u8]) {
        assert!(place <= self.bytes && to.len() <= self.bytes - place);
        // SAFETY: the bytes lie in the mapping, by the line above, and `to` is memory of our own.
        unsafe {
            let from = self.base.as_ptr().add(place);
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
        }
    }

    /// Writes bytes at this place, for tests.
    #[cfg(test)]
    pub(super) fn put(&self, place: usize, bytes: &[u8]) {
        assert!(place <= self.bytes && bytes.len() <= self.bytes - place);
        // SAFETY: the place lies in the mapping, by the line above, and nobody else uses it.
        unsafe {
            let to = self.base.as_ptr().add(place);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
