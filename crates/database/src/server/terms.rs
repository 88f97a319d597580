//! The terms of a server, of which its arguments and its URL are made.

use rigel_model::Bytes;
use std::path::Path;

/// Connections beyond the sessions: for loading, watching and sampling.
const MORE_CONNECTIONS: u32 = 20;

/// The terms of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerTerms<'a> {
    pub(super) folder: &'a Path,
    pub(super) buffer_cache: Bytes,
    pub(super) sessions: u32,
    pub(super) direct: bool,
    pub(super) settings: &'a [(String, String)],
}

impl ServerTerms<'_> {
    pub(super) fn connections(&self) -> u32 {
        self.sessions.saturating_add(MORE_CONNECTIONS)
    }
}

/// Percent-encodes a part of a URL: everything except ASCII letters, digits and `-._~` becomes
/// `%XX`.
pub(super) fn percent(text: &str) -> String {
    let mut safe = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            safe.push(byte as char);
        } else {
            safe.push('%');
            safe.extend(
                [byte >> 4, byte & 15]
                    .map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])),
            );
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_so_that_a_url_can_hold_it() {
        assert_eq!(percent("/a b/ü?.s"), "%2Fa%20b%2F%C3%BC%3F.s");
    }
}
