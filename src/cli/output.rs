//! Printing: results to stdout, everything else to stderr. A reader that went away is no reason to fail.

use crate::model::Error;
use std::io::{self, Write};

/// What programs read.
pub(super) fn result(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// What people read, whole lines.
pub(super) fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Why it was not done, and what to do about it.
pub(super) fn complain(error: &Error) {
    remark(&format!("rigel: {error}\n"));
}
