//! Printing: results to stdout, everything else to stderr. A reader that went away is no reason to fail; results that
//! could not be printed for any other reason are.
//!
//! What goes to people is spelled out where it could drive their terminal: file names, a server's errors and the texts
//! of a journal may hold anything.

use crate::model::{Error, escaped, escaped_json};
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Why results could not be printed, from the first time on. Kept until the end: a run that cannot show what it found
/// is written to its directory all the same.
static LOST: OnceLock<String> = OnceLock::new();

/// A result for people, who may send it to programs.
pub(super) fn result(text: &str) {
    raw(&escaped(text));
}

/// A result in JSON.
pub(super) fn json(document: &str) {
    raw(&escaped_json(document));
}

/// A result whose own form takes care of what is in it, such as csv and HTML.
pub(super) fn raw(text: &str) {
    let mut out = io::stdout().lock();
    noted(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Remembers that a result could not be printed.
pub(super) fn noted(printed: io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// How the program ends whose verb ended so: results that nobody got are no success.
pub(super) fn concluded(outcome: Result<u8, Error>) -> Result<u8, Error> {
    match (outcome, LOST.get()) {
        (Ok(_), Some(why)) => Err(Error::failed(
            format!("the results could not be written to stdout: {why}"),
            "send them to where there is room; `rigel report` prints those of a run again",
        )),
        (outcome, _) => outcome,
    }
}

/// What people read, whole lines.
pub(super) fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(escaped(text).as_bytes());
}

/// Why it was not done, and what to do about it.
pub(super) fn complain(error: &Error) {
    remark(&format!("rigel: {error}\n"));
}
