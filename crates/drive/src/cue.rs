//! The common beginning and end of a point that several ranks measure together, which rank 0
//! decides.
//!
//! A rank warms up on its own and says so. It measures from a moment that is the same for all, and
//! ends after a number of windows that is the same for all. It decides neither.

use rigel_model::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The cue of one point, on the clock of its engine. Its clones are the same cue.
#[derive(Debug, Clone, Default)]
pub struct Cue {
    state: Arc<CueState>,
}

#[derive(Debug)]
struct CueState {
    is_warm: AtomicBool,
    /// When to measure from; the maximum until that is known.
    start: AtomicU64,
    /// Number of windows to measure; the maximum until that is known.
    windows: AtomicU64,
    /// When measuring began; the maximum until then.
    began: AtomicU64,
}

impl Default for CueState {
    fn default() -> Self {
        Self {
            is_warm: AtomicBool::new(false),
            start: AtomicU64::new(u64::MAX),
            windows: AtomicU64::new(u64::MAX),
            began: AtomicU64::new(u64::MAX),
        }
    }
}

impl Cue {
    /// True once the point is warm: measuring may begin.
    pub fn is_warm(&self) -> bool {
        self.state.is_warm.load(Ordering::Acquire)
    }

    /// Lets measuring begin at this moment, or at once if it has passed.
    pub fn start_at(&self, at: Nanos) {
        self.state.start.store(at.0, Ordering::Release);
    }

    /// Ends the point after this number of windows. A later call can only make it shorter.
    pub fn end_after(&self, windows: u64) {
        self.state.windows.fetch_min(windows, Ordering::AcqRel);
    }

    /// When measuring began; `None` if it did not.
    pub fn began(&self) -> Option<Nanos> {
        Some(Nanos(self.state.began.load(Ordering::Acquire))).filter(|began| *began != Nanos::MAX)
    }

    pub(super) fn warm(&self) {
        self.state.is_warm.store(true, Ordering::Release);
    }

    /// When measuring begins; the maximum time until that is known.
    pub(super) fn start(&self) -> Nanos {
        Nanos(self.state.start.load(Ordering::Acquire))
    }

    /// Number of windows to measure, once it is known.
    pub(super) fn windows(&self) -> Option<u64> {
        Some(self.state.windows.load(Ordering::Acquire)).filter(|windows| *windows != u64::MAX)
    }

    pub(super) fn note_beginning(&self, from: Nanos) {
        self.state.began.store(from.0, Ordering::Release);
    }
}
