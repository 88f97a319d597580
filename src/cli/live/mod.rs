//! The live view: a screen that shows a run while it measures.
//!
//! Input: events, through [`View::tell`]. Output: frames on the terminal at stderr, and a stop
//! request when a key is pressed. A thread of low priority draws and reads keys, so that the view
//! stays responsive while the run sends no events. Measuring threads only record events. At the
//! end, and also after a panic, the terminal is restored.

mod cells;
mod chart;
mod column;
mod draw;
#[cfg(test)]
#[path = "../../../tests/common/golden.rs"]
mod golden;
pub(super) mod look;
mod point;
mod screen;
mod state;
#[cfg(test)]
mod tests;
mod unit;

pub(super) use state::LiveState;
pub(super) use unit::ThroughputUnit;

use super::stop;
use look::ColourMode;
use rigel_device::clock::Clock;
use rigel_device::observe;
use rigel_model::Nanos;
use screen::{Key, Keys, Screen};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Time between two frames: five per second.
const FRAME: Nanos = Nanos::from_millis(200);

/// Nice value of the drawing thread; the maximum is 19.
const NICE: i32 = 10;

/// The view of a run. Closed on drop.
pub(super) struct View {
    shared: Arc<Shared>,
}

/// State shared by the drawing thread and the thread that watches the run. Lock order: the screen
/// first, then the state.
struct Shared {
    state: Mutex<LiveState>,
    /// `None` once the view is closed.
    screen: Mutex<Option<Screen>>,
    /// Ends the run.
    stop: Arc<AtomicBool>,
    clock: Clock,
}

impl View {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// Why there can be no view, in a few words.
    pub(super) fn open(title: &str, points: usize) -> Result<Self, String> {
        screen::refuse_unusable()?;
        let stop = stop::stop_flag().map_err(|error| error.to_string())?;
        let screen =
            Screen::open().map_err(|error| format!("the terminal cannot be set up: {error}"))?;
        let state = Mutex::new(LiveState::new(title, points));
        let shared = Arc::new(Shared {
            state,
            screen: Mutex::new(Some(screen)),
            stop,
            clock: Clock::real(),
        });
        let view = Self {
            shared: Arc::clone(&shared),
        };
        let spawned = thread::Builder::new()
            .name("live view".into())
            .spawn(move || keep_drawing(&shared));
        spawned.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(view)
    }

    /// Applies `note` to the state, with the current time of the view.
    pub(super) fn update(&self, note: impl FnOnce(&mut LiveState, Nanos)) {
        let now = self.shared.clock.now();
        note(&mut lock(&self.shared.state), now);
    }

    /// Restores the terminal while `print` prints something else.
    pub(super) fn aside(&self, print: impl FnOnce()) {
        let mut screen = lock(&self.shared.screen);
        let was_open = screen.take().is_some();
        screen::restore();
        print();
        if was_open {
            *screen = Screen::open().ok();
        }
    }

    /// Restores the terminal.
    pub(super) fn close(&self) {
        if lock(&self.shared.screen).take().is_some() {
            screen::restore();
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loop of the drawing thread until the view is closed.
fn keep_drawing(shared: &Shared) {
    observe::set_this_thread_aside();
    // If that is not permitted, it draws anyway.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    let mut view = draw::FrameOptions {
        look: ColourMode::of_terminal(),
        frozen: false,
        help: false,
    };
    let mut still: Option<(LiveState, Nanos)> = None;
    let mut keys = Keys::new();
    let mut next = Nanos(0);
    loop {
        let was_key = keys.wait(&shared.clock, next.since(shared.clock.now()));
        let mut screen = lock(&shared.screen);
        // Keys typed after the end are for another program.
        let Some(screen) = screen.as_mut() else {
            return;
        };
        let pressed = if was_key { keys.read() } else { Vec::new() };
        for key in &pressed {
            match key {
                Key::Stop | Key::Interrupt => {
                    if shared.stop.swap(true, Relaxed) && *key == Key::Interrupt {
                        screen::restore();
                        // The flag is already set, so the handler of this signal ends the process.
                        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
                    }
                }
                Key::Freeze => {
                    view.frozen = !view.frozen;
                    let picture = || (lock(&shared.state).clone(), shared.clock.now());
                    still = view.frozen.then(picture);
                }
                Key::Help => view.help = !view.help,
            }
        }
        if shared.clock.now() < next && pressed.is_empty() {
            continue;
        }
        next = shared.clock.now().plus(FRAME);
        screen.draw(|buffer| {
            if let Some((state, at)) = &still {
                draw::draw(buffer, state, *at, view);
            } else {
                let mut state = lock(&shared.state);
                state.draining = shared.stop.load(Relaxed);
                draw::draw(buffer, &state, shared.clock.now(), view);
            }
        });
    }
}
