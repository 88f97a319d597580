//! Drives a point in a thread that can be left behind.
//!
//! Storage that hangs may keep workers in the kernel, where nothing ends them. The thread that
//! started them then waits for ever, and the caller continues with what was measured.

use super::context::Terms;
use super::cue::Cue;
use super::engines::{Engines, LogEngines};
use super::shown::{Deliver, Show, Shown, Watch};
use rigel_device::bounded;
use rigel_device::engine::Engine;
use rigel_model::record::{PointRecord, Window};
use rigel_model::{Error, Point, failed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Interval at which a stop request is passed on.
const LOOK: Duration = Duration::from_millis(20);

/// Decides whether the completed windows of each class are precise enough to end a running point.
pub type Judge = Box<dyn Fn(&[Vec<Window>]) -> bool + Send + Sync>;

/// Settings for driving a point in a thread of its own: [`Terms`] that this thread owns.
pub struct DetachedTerms<'a> {
    /// Minimum number of threads.
    pub workers: usize,
    /// Ends the point early once it is set.
    pub stop: &'a AtomicBool,
    /// Called for points that end by their figures.
    pub enough: Judge,
    /// For a point that several ranks measure together, on real time.
    pub cue: Option<Cue>,
}

/// What the thread that drives the point sends.
enum DriveMessage {
    Shown(Shown),
    /// The result, and whether something was left behind.
    Result(Box<Result<PointRecord, Error>>, bool),
}

impl DetachedTerms<'_> {
    /// The same for the calling thread.
    pub(super) fn attached(&self) -> Terms<'_> {
        Terms {
            workers: self.workers,
            stop: self.stop,
            enough: &*self.enough,
            cue: self.cue.as_ref(),
        }
    }
}

/// Drives a point in the calling thread, and passes its result on.
pub(super) type Drive = fn(Engines<'_>, &Point, &Terms<'_>, &mut Show<'_>, &mut Deliver<'_>);

/// Calls `drive_point` in a thread of its own, and leaves that behind if it must.
pub(super) fn drive(
    drive_point: Drive,
    (volume, logs): (&Arc<dyn Engine>, &Arc<LogEngines>),
    point: &Point,
    terms: DetachedTerms<'_>,
    watch: &mut Watch<'_>,
) -> Result<PointRecord, Error> {
    let DetachedTerms {
        workers,
        stop,
        enough,
        cue,
    } = terms;
    let own_stop = Arc::new(AtomicBool::new(stop.load(Ordering::Relaxed)));
    let returned = Arc::new(AtomicBool::new(false));
    // Holds one picture: a slow display slows nothing but the display.
    let (sender, messages) = mpsc::sync_channel(1);
    let thread = {
        let (volume, logs, point) = (Arc::clone(volume), Arc::clone(logs), point.clone());
        let (stop, returned) = (Arc::clone(&own_stop), Arc::clone(&returned));
        let drive = move || {
            let terms = Terms {
                workers,
                stop: &stop,
                enough: &*enough,
                cue: cue.as_ref(),
            };
            // Nobody listens any more once the result was taken.
            let mut show = |shown| drop(sender.send(DriveMessage::Shown(shown)));
            let mut deliver = |result, is_left| {
                let _ = sender.send(DriveMessage::Result(Box::new(result), is_left));
            };
            let engines = Engines::new(volume.as_ref(), &logs);
            drive_point(engines, &point, &terms, &mut show, &mut deliver);
            returned.store(true, Ordering::Release);
        };
        thread::Builder::new()
            .spawn(drive)
            .map_err(|error| failed!("no thread could be started: {error}", ""))?
    };
    loop {
        match messages.recv_timeout(LOOK) {
            Ok(DriveMessage::Shown(shown)) => shown.show(watch),
            Ok(DriveMessage::Result(result, is_left)) => {
                if is_left {
                    // Closing its files may block as well.
                    std::mem::forget((Arc::clone(volume), Arc::clone(logs)));
                    bounded::leave(&format!("I/O of {}", point.coordinates), returned);
                } else {
                    let ended = thread.join();
                    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                }
                return *result;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("a point that was driven has a result"),
            },
        }
        if stop.load(Ordering::Relaxed) {
            own_stop.store(true, Ordering::Relaxed);
        }
    }
}
