//! The terminal: taken, drawn on, read from, and given back as it was.

use crate::clock::Clock;
use crate::model::Nanos;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufWriter, IsTerminal, Stderr};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// How long the rest of a key's sequence may take to come after its first byte, over a slow line as well.
const SEQUENCE: Nanos = Nanos::from_millis(50);

/// The size of a terminal that does not know its own.
const UNKNOWN: Rect = Rect { x: 0, y: 0, width: 80, height: 24 };

/// True while the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Says why there can be no screen, if so.
pub(super) fn refuse_unusable() -> Result<(), String> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let why = if !io::stderr().is_terminal() {
        "stderr is not a terminal"
    } else if !io::stdin().is_terminal() {
        "stdin is not a terminal, and keys come from there"
    } else if dumb {
        "TERM says that this terminal cannot be drawn on"
    } else if !is_in_foreground() {
        "this is not in the foreground of the terminal"
    } else {
        return Ok(());
    };
    Err(why.to_string())
}

/// True if the terminal is that of this process group: another one is stopped by the kernel when it touches it.
fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Gives the terminal back, if it was taken.
pub(super) fn restore() {
    if TAKEN.swap(false, SeqCst) {
        let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// A panic says why on the terminal as it was.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// The terminal, taken.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    area: Rect,
}

impl Screen {
    /// Takes the terminal: another screen, keys without a line's end and without an echo.
    pub(super) fn open() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        TAKEN.store(true, SeqCst);
        let taken = execute!(io::stderr(), EnterAlternateScreen, Hide).and_then(|()| Self::of_size(size()));
        if taken.is_err() {
            restore();
        }
        taken
    }

    /// An empty screen. The terminal is not asked where its cursor stands: the answer would come as keys.
    fn of_size(area: Rect) -> io::Result<Self> {
        execute!(io::stderr(), Clear(ClearType::All))?;
        let backend = CrosstermBackend::new(BufWriter::new(io::stderr()));
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(area) })?;
        Ok(Self { terminal, area })
    }

    /// Draws a frame, as large as the terminal is now. A terminal that is gone is no reason to fail.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Buffer, Rect)) {
        let area = size();
        if area != self.area
            && let Ok(anew) = Self::of_size(area)
        {
            *self = anew;
        }
        let _ = self.terminal.draw(|frame| {
            let area = frame.area();
            draw(frame.buffer_mut(), area);
        });
    }
}

fn size() -> Rect {
    let size = terminal::size().map(|(width, height)| Rect { x: 0, y: 0, width, height });
    size.ok().filter(|area| area.width > 0 && area.height > 0).unwrap_or(UNKNOWN)
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Stop, and keep what was measured.
    Stop,
    /// The same; a second time, end at once.
    Interrupt,
    /// Let the picture stand still, or go on.
    Freeze,
    /// Explain the keys, or no longer.
    Help,
}

/// Reads keys. Not by crossterm's events, whose reader never comes back from a terminal that was hung up.
pub(super) struct Keys {
    is_there: bool,
}

impl Keys {
    pub(super) fn new() -> Self {
        Self { is_there: true }
    }

    /// Waits for a key, `most` at most. True if there is one.
    pub(super) fn wait(&mut self, clock: &Clock, most: Nanos) -> bool {
        if !self.is_there {
            clock.wait_until(clock.now().plus(most));
            return false;
        }
        let stdin = io::stdin();
        let mut stdins = [PollFd::new(&stdin, PollFlags::IN)];
        let seconds = i64::try_from(most.0 / 1_000_000_000).unwrap_or(0);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: (most.0 % 1_000_000_000).cast_signed() };
        let is_ready = poll(&mut stdins, Some(&timeout)).is_ok_and(|ready| ready > 0);
        let events = stdins[0].revents();
        // Hung up: it would be ready for ever.
        self.is_there = !events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        is_ready && events.contains(PollFlags::IN)
    }

    /// The keys that were pressed. Waits for the first if there is none.
    pub(super) fn read(&mut self) -> Vec<Key> {
        let mut bytes = [0; 64];
        let read = rustix::io::read(io::stdin(), &mut bytes);
        self.is_there = !matches!(read, Ok(0));
        let mut pressed = bytes[..read.unwrap_or(0)].to_vec();
        if pressed.last() == Some(&ESCAPE) && self.wait(&Clock::real(), SEQUENCE) {
            let more = rustix::io::read(io::stdin(), &mut bytes).unwrap_or(0);
            pressed.extend_from_slice(&bytes[..more]);
        }
        keys(&pressed)
    }
}

const ESCAPE: u8 = 0x1b;

/// The keys in what a terminal sent. What is more than one byte, such as an arrow, is no key of ours.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match *first {
            ESCAPE if after.is_empty() || after[0] == ESCAPE => found.push(Key::Stop),
            ESCAPE => rest = after_sequence(after),
            b'q' | b'Q' => found.push(Key::Stop),
            // Ctrl-C, which raw mode does not make a signal of.
            0x03 => found.push(Key::Interrupt),
            b'p' | b'P' | b' ' => found.push(Key::Freeze),
            b'?' | b'h' => found.push(Key::Help),
            _ => {}
        }
    }
    found
}

/// What comes after a sequence whose escape is gone: `[` and what follows up to a letter or `~`, or a key with Alt.
fn after_sequence(bytes: &[u8]) -> &[u8] {
    match bytes {
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(&[], |end| &rest[end + 1..])
        }
        [b'O', _, rest @ ..] | [_, rest @ ..] => rest,
        [] => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_arrow_is_not_an_escape() {
        assert_eq!(keys(b"q"), [Key::Stop]);
        assert_eq!(keys(b"\x1b"), [Key::Stop]);
        assert_eq!(keys(b"\x1b[A\x1b[1;5C\x1bOPp\x1bq"), [Key::Freeze]);
        assert_eq!(keys(b"\x03\x03"), [Key::Interrupt; 2]);
        assert_eq!(keys("né?".as_bytes()), [Key::Help]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(keys(&bytes).len() <= bytes.len());
        }
    }
}
