//! The terminal: takes it over, draws on it, reads keys, and restores it.

use super::cells::Buffer;
use rigel_device::clock::Clock;
use rigel_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, Once, PoisonError};

/// Timeout for the rest of a key's escape sequence after its first byte, also over a slow line.
const SEQUENCE: Nanos = Nanos::from_millis(50);

/// Columns and rows to assume if the terminal does not report its size.
const UNKNOWN: (u16, u16) = (80, 24);

/// Alternate screen, cleared, without a cursor (xterm control sequences, DEC private modes 1049 and
/// 25).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const CLEAR: &str = "\x1b[2J";

/// How the terminal was set before the live view took it over. A panic in any thread restores it, and
/// a panic hook is handed nothing: so this belongs to the process.
static TAKEN: Mutex<Option<Termios>> = Mutex::new(None);

/// Returns why the live view is not possible, if so.
pub(super) fn refuse_unusable() -> Result<(), String> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let why = if !io::stderr().is_terminal() {
        "stderr is not a terminal"
    } else if !io::stdin().is_terminal() {
        "stdin is not a terminal, so keys cannot be read"
    } else if dumb {
        "TERM names a terminal without cursor control"
    } else if !is_in_foreground() {
        "rigel does not run in the foreground of the terminal"
    } else {
        return Ok(());
    };
    Err(why.to_string())
}

/// True if this process group is in the foreground of the terminal. Otherwise the kernel stops it
/// when it touches the terminal.
fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

fn write(sequences: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(sequences.as_bytes())?;
    stderr.flush()
}

/// Restores the terminal if it was taken over.
pub(super) fn restore() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = taken {
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stderr(), OptionalActions::Now, &before);
    }
}

/// Makes a panic restore the terminal first, so that its message is visible.
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

/// The terminal while it is taken over.
pub(super) struct Screen {
    shown: Buffer,
}

impl Screen {
    /// Takes over the terminal: alternate screen, raw mode.
    pub(super) fn open() -> io::Result<Self> {
        restore_on_panic();
        let before = tcgetattr(io::stderr())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stderr(), OptionalActions::Now, &raw)?;
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        write(ENTER)
            .and_then(|()| Self::of_size(size()))
            .inspect_err(|_| restore())
    }

    fn of_size((width, height): (u16, u16)) -> io::Result<Self> {
        write(CLEAR)?;
        Ok(Self {
            shown: Buffer::blank(width, height),
        })
    }

    /// Draws a frame at the current size of the terminal. Ignores errors of a lost terminal.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) {
        let (width, height) = size();
        let area = self.shown.area();
        if (width, height) != (area.width, area.height)
            && let Ok(anew) = Self::of_size((width, height))
        {
            *self = anew;
        }
        let area = self.shown.area();
        let mut frame = Buffer::blank(area.width, area.height);
        draw(&mut frame);
        let _ = write(&frame.since(&self.shown));
        self.shown = frame;
    }
}

fn size() -> (u16, u16) {
    let size = tcgetwinsize(io::stderr()).map(|size| (size.ws_col, size.ws_row));
    size.ok()
        .filter(|(width, height)| *width > 0 && *height > 0)
        .unwrap_or(UNKNOWN)
}

/// Action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Stop, and keep the measurements.
    Stop,
    /// Like `Stop`; a second time, end at once.
    Interrupt,
    /// Freeze or resume the picture.
    Freeze,
    /// Show or hide the help.
    Help,
}

/// Reads keys.
pub(super) struct Keys {
    is_there: bool,
}

impl Keys {
    pub(super) fn new() -> Self {
        Self { is_there: true }
    }

    /// Waits for a key, at most for `most`. Returns true if there is one.
    pub(super) fn wait(&mut self, clock: &Clock, most: Nanos) -> bool {
        if !self.is_there {
            clock.wait_until(clock.now().plus(most));
            return false;
        }
        let stdin = io::stdin();
        let mut stdins = [PollFd::new(&stdin, PollFlags::IN)];
        let seconds = i64::try_from(most.0 / 1_000_000_000).unwrap_or(0);
        let timeout = Timespec {
            tv_sec: seconds,
            tv_nsec: (most.0 % 1_000_000_000).cast_signed(),
        };
        let is_ready = poll(&mut stdins, Some(&timeout)).is_ok_and(|ready| ready > 0);
        let events = stdins[0].revents();
        // After a hang-up the terminal would be ready forever.
        self.is_there = !events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        is_ready && events.contains(PollFlags::IN)
    }

    /// The pressed keys. Blocks until there is one.
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

/// The keys in the bytes from a terminal. Ignores multi-byte keys such as arrows.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match *first {
            ESCAPE if after.is_empty() || after[0] == ESCAPE => keys.push(Key::Stop),
            ESCAPE => rest = after_sequence(after),
            b'q' | b'Q' => keys.push(Key::Stop),
            // Ctrl-C, which is not a signal in raw mode.
            0x03 => keys.push(Key::Interrupt),
            b'p' | b'P' | b' ' => keys.push(Key::Freeze),
            b'?' | b'h' => keys.push(Key::Help),
            _ => {}
        }
    }
    keys
}

/// Skips an escape sequence after its escape byte: `[` and the bytes up to a letter or `~`, or a
/// key with Alt.
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
