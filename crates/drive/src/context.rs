//! What the workers of a point share.

use super::cue::Cue;
use super::engines::Engines;
use super::pacer::Pacer;
use super::shown::Shown;
use super::stage::{LiveClass, Stage};
use rigel_device::clock::Clock;
use rigel_device::engine::Engine;
use rigel_model::record::{CoverageMap, SharedWindows, Window};
use rigel_model::{Nanos, Point, StalledIo, Until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Decides whether the completed windows of each class are precise enough to end a running point.
/// Used for [`Until::Precise`]. On real time it is called from a thread that does not measure.
pub type Enough<'a> = dyn Fn(&[Vec<Window>]) -> bool + Sync + 'a;

/// Settings for driving a point.
pub struct Terms<'a> {
    /// Minimum number of threads.
    pub workers: usize,
    /// Ends the point early once it is set.
    pub stop: &'a AtomicBool,
    /// Called for points that end by [`Until::Precise`].
    pub enough: &'a Enough<'a>,
    /// For a point that several ranks measure together, on real time.
    pub cue: Option<&'a Cue>,
}

/// State that the workers of a point share.
pub(super) struct PointContext<'a> {
    pub(super) point: &'a Point,
    pub(super) engines: Engines<'a>,
    pub(super) clock: Clock,
    pub(super) stage: Stage,
    pub(super) terms: &'a Terms<'a>,
    /// Number of workers.
    pub(super) workers: usize,
    /// Number of completed windows at the last precision check.
    pub(super) judged: AtomicUsize,
    /// By stream.
    pub(super) pacers: Vec<Pacer>,
    /// By class.
    pub(super) coverage: Vec<CoverageMap>,
    pub(super) live: Arc<[LiveClass]>,
    pub(super) seconds: Arc<[Arc<SharedWindows>]>,
    /// The class of each stream.
    pub(super) class_of: Vec<usize>,
    pub(super) gate: Gate,
    /// Wall-clock time of the beginning.
    pub(super) started: String,
}

impl<'a> PointContext<'a> {
    /// The engine of a worker, which has slots of these streams.
    pub(super) fn engine_of(&self, streams: &[usize]) -> &'a dyn Engine {
        let first = streams.first().map(|stream| &self.point.streams[*stream]);
        first.map_or(self.engines.volume(), |stream| self.engines.of(stream))
    }

    /// The state of the running point.
    pub(super) fn shown(&self, stalled: Option<StalledIo>) -> Shown {
        let from = self.stage.from();
        let origin = self.stage.has_set_off().then(|| self.stage.origin());
        Shown {
            elapsed: origin.map_or(Nanos(0), |origin| self.clock.now().since(origin)),
            measuring_since: (from != Nanos::MAX).then(|| from.since(self.stage.origin())),
            classes: Arc::clone(&self.live),
            seconds: Arc::clone(&self.seconds),
            stalled,
        }
    }

    /// True once a point that ends by its figures has measured enough. Skips windows that are
    /// incomplete or that a worker may still hold.
    pub(super) fn says_enough(&self) -> bool {
        let Until::Precise { least, .. } = self.point.until else {
            return false;
        };
        let (from, now) = (self.stage.from(), self.clock.now());
        if from == Nanos::MAX || now.since(from) < least || now >= self.stage.end() {
            return false;
        }
        let over = usize::try_from(now.since(from).0 / self.point.window.0)
            .unwrap_or(0)
            .saturating_sub(1);
        // The check is O(windows), so it runs only after their number has grown by 5 %.
        if over < self.judged.load(Ordering::Relaxed).max(1) * 21 / 20 {
            return false;
        }
        self.judged.store(over, Ordering::Relaxed);
        let snapshot = |seconds: &Arc<SharedWindows>| {
            let mut windows = seconds.snapshot();
            windows.resize_with(over, Window::default);
            windows
        };
        (self.terms.enough)(&self.seconds.iter().map(snapshot).collect::<Vec<_>>())
    }
}

/// Start gate: workers wait here until all are ready.
///
/// Not a `Barrier`: its threads leave one after the other, each through a lock. When the first
/// threads kept the CPUs busy, the last of 512 left only after minutes.
pub(super) struct Gate {
    pub(super) ready: AtomicUsize,
    pub(super) open: AtomicBool,
    /// When workers began to become ready.
    pub(super) closed_at: Nanos,
}

impl Gate {
    /// Registers a ready worker. Waits until the gate is open.
    pub(super) fn arrive(&self) {
        self.ready.fetch_add(1, Ordering::Release);
        while !self.open.load(Ordering::Acquire) {
            thread::park();
        }
    }
}
