//! The state of a running point, for those who look at it.

use super::stage::LiveClass;
use rigel_model::record::{PointRecord, SharedWindows};
use rigel_model::{Error, Nanos, StalledIo};
use std::sync::Arc;

/// Minimum interval between two calls of [`Watch`].
pub(super) const WATCH: Nanos = Nanos::from_millis(100);

/// State of a running point, for progress displays.
pub struct Live<'a> {
    /// Time since the point began.
    pub elapsed: Nanos,
    /// When measuring began; `None` during the warm-up.
    pub measuring_since: Option<Nanos>,
    /// By class, in the order of the plan.
    pub classes: &'a [LiveClass],
    /// The completed windows of each class, in the same order.
    pub seconds: &'a [Arc<SharedWindows>],
    /// The outstanding operations, if none has completed for ten seconds.
    pub stalled: Option<StalledIo>,
}

/// Called about ten times a second while a point runs, from a thread that does not measure. It
/// samples the host and shows progress. On virtual time it is called only at the end.
pub type Watch<'a> = dyn FnMut(&Live) + 'a;

/// The state of a running point, which may be shown by another thread.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) elapsed: Nanos,
    pub(super) measuring_since: Option<Nanos>,
    pub(super) classes: Arc<[LiveClass]>,
    pub(super) seconds: Arc<[Arc<SharedWindows>]>,
    pub(super) stalled: Option<StalledIo>,
}

impl Shown {
    pub(super) fn show(&self, watch: &mut Watch<'_>) {
        watch(&Live {
            elapsed: self.elapsed,
            measuring_since: self.measuring_since,
            classes: &self.classes,
            seconds: &self.seconds,
            stalled: self.stalled,
        });
    }
}

/// Takes the state of a running point.
pub(super) type Show<'a> = dyn FnMut(Shown) + 'a;

/// Takes the result of a point, and whether operations or threads were left behind.
pub(super) type Deliver<'a> = dyn FnMut(Result<PointRecord, Error>, bool) + 'a;
