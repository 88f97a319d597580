//! Empties the kernel's rings of events, whatever the rest of the program waits for.
//!
//! Input: a [`BlockTrace`]. Output: its events. A ring holds about a second of a busy disk, and a
//! journal on that disk may take longer to be written.

use rigel_device::engine::trace::{BlockTrace, RequestEvent};
use rigel_device::rights;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A trace whose rings a thread of its own empties.
#[derive(Debug)]
pub(super) struct TraceReader {
    trace: Arc<Mutex<BlockTrace>>,
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TraceReader {
    /// Starts a thread that empties the rings of `trace` once in each interval `every`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn begin(trace: BlockTrace, every: Duration) -> io::Result<Self> {
        let trace = Arc::new(Mutex::new(trace));
        let is_ended = Arc::new(AtomicBool::new(false));
        let (shared, ended) = (Arc::clone(&trace), Arc::clone(&is_ended));
        let thread = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || {
                // Rings that are open need none.
                let _ = rights::give_up_all();
                while !ended.load(Ordering::Relaxed) {
                    locked(&shared).collect();
                    std::thread::park_timeout(every);
                }
            })?;
        Ok(Self {
            trace,
            is_ended,
            thread: Some(thread),
        })
    }

    /// How the events come to this process, in words.
    pub(super) fn about(&self) -> &'static str {
        locked(&self.trace).about()
    }

    /// Passes every event before the time `until` to `each`, as [`BlockTrace::read`] does, and returns
    /// how many were lost since the last call.
    pub(super) fn read(&self, until: u64, each: &mut dyn FnMut(&RequestEvent)) -> u64 {
        let mut trace = locked(&self.trace);
        trace.read(until, each);
        trace.take_lost()
    }
}

impl Drop for TraceReader {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

/// The trace, also after a panic elsewhere: events are added one by one, so that none is half there.
fn locked(trace: &Mutex<BlockTrace>) -> MutexGuard<'_, BlockTrace> {
    trace.lock().unwrap_or_else(PoisonError::into_inner)
}
