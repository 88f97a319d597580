//! Counters of the servers while a point runs, read in a thread of its own: a server that hangs must
//! not keep the thread that passes on a stop and says that nothing completes.

use crate::asked::{AskedServer, PATIENCE, Respondent};
use rigel_device::clock;
use rigel_device::engine::{Engine, ServerMonitor};
use rigel_device::observe;
use rigel_model::{Nanos, ServerSample};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between two looks at the waits of sessions.
const LOOK: Duration = Duration::from_millis(100);

/// How often a wait looks whether the program was asked to stop.
const STOP_LOOK: Nanos = Nanos::from_millis(50);

/// Time within which a server must answer at the end of a point: its sessions close first.
const ENDING: Nanos = Nanos::from_secs(8);

/// The same for a point that was stopped or broke.
const ENDING_STOPPED: Nanos = Nanos::from_secs(1);

/// The servers that an engine works on.
struct Servers {
    engine: Arc<dyn Engine>,
    /// True while a point runs.
    is_watching: bool,
}

/// What is asked about the servers.
enum ServerQuestion {
    /// A point begins: the counters before it.
    Begin,
    /// The counters now.
    Now,
    /// The point has ended: the counters after it.
    End,
}

impl Respondent for Servers {
    type Question = ServerQuestion;
    type Answer = Option<Box<ServerSample>>;

    fn answer(&mut self, question: ServerQuestion) -> Self::Answer {
        let monitor = self.engine.server_monitor()?;
        match question {
            ServerQuestion::Begin => {
                self.is_watching = true;
                monitor.begin();
            }
            ServerQuestion::Now => {}
            ServerQuestion::End => {
                self.is_watching = false;
                monitor.flush();
            }
        }
        counters(monitor)
    }

    fn look(&mut self) {
        if let Some(monitor) = self.engine.server_monitor().filter(|_| self.is_watching) {
            monitor.look();
        }
    }
}

/// The counters of servers, with those of their processes if they run on this machine.
fn counters(monitor: &dyn ServerMonitor) -> Option<Box<ServerSample>> {
    let mut server = monitor.counters()?;
    if let Some(processes) = observe::processes_below(&monitor.processes()) {
        server.cpu = Some(processes.cpu);
        server.storage_read = processes.storage_read;
        server.storage_written = processes.storage_written;
    }
    Some(Box::new(server))
}

/// Reads the counters of servers. Nothing here waits for a server that does not answer.
pub(in crate::run) struct ServerCounters(Mutex<AskedServer<Servers>>);

impl ServerCounters {
    /// Those of the engine's servers; `None` if it has none.
    pub(super) fn of(engine: &Arc<dyn Engine>) -> Option<Self> {
        engine.server_monitor()?;
        let servers = Servers {
            engine: Arc::clone(engine),
            is_watching: false,
        };
        Some(Self(Mutex::new(AskedServer::begin(servers, LOOK))))
    }

    /// The counters before a point, which begins.
    pub(in crate::run) fn begin(&self) -> Option<Box<ServerSample>> {
        let mut asked = self.asked();
        asked.ask(ServerQuestion::Begin);
        asked.wait(Nanos(clock::monotonic().0 + PATIENCE.0));
        asked.take().flatten()
    }

    /// The counters after a point, once its sessions are closed. Waits no longer than a moment if
    /// the point was stopped or broke.
    pub(in crate::run) fn end(
        &self,
        is_broken: bool,
        stop: &AtomicBool,
    ) -> Option<Box<ServerSample>> {
        let mut asked = self.asked();
        asked.ask(ServerQuestion::End);
        let begun = clock::monotonic();
        while asked.is_pending() {
            let now = clock::monotonic();
            let is_stopped = is_broken || stop.load(Ordering::Relaxed);
            let limit = if is_stopped { ENDING_STOPPED } else { ENDING };
            if now.since(begun) >= limit {
                break;
            }
            asked.wait(now.plus(STOP_LOOK));
        }
        asked.take().flatten()
    }

    /// Asks for the counters now, unless an earlier question is still open. Returns whether it asked.
    pub(super) fn ask(&self) -> bool {
        let mut asked = self.asked();
        let is_free = !asked.is_pending();
        if is_free {
            asked.ask(ServerQuestion::Now);
        }
        is_free
    }

    /// True while the last question is not answered.
    pub(super) fn is_pending(&self) -> bool {
        self.asked().is_pending()
    }

    /// The answer to the last question; `None` if it is not here, or the server could not give it.
    pub(super) fn answer(&self) -> Option<Box<ServerSample>> {
        self.asked().take().flatten()
    }

    fn asked(&self) -> MutexGuard<'_, AskedServer<Servers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
