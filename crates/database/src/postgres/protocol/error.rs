//! What can go wrong between a client and a `PostgreSQL` server.

use rigel_model::Nanos;
use std::io;

/// Maximum number of characters of a text of the server that an error repeats.
const SAID_MAX: usize = 2000;

/// Why a statement, or a connection, failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PostgresError {
    /// The server refused, in its own words.
    Refused(Box<PostgresRefusal>),
    /// The connection cannot be made, or is lost.
    Lost(String),
    /// The server did not answer for this time, which was as long as we wait.
    Silent(Nanos),
    /// The server sent something that the protocol does not allow, or more than is accepted.
    Protocol(String),
    /// The server has no TLS, and the connection requires it.
    NoTls,
    /// The server wants a password, and there is none.
    NoPassword,
    /// The server wants to log us in in a way that is not accepted.
    NotAccepted(String),
}

/// An error message of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PostgresRefusal {
    /// SQLSTATE: five letters and digits; zeros if the server sent none.
    pub(crate) state: [u8; 5],
    /// The primary message.
    message: String,
    /// What may help, if the server knows.
    hint: Option<String>,
    /// True if the server ends the session.
    is_fatal: bool,
}

impl PostgresRefusal {
    /// Reads the fields of an `ErrorResponse`. Unknown fields are ignored, missing ones stay empty.
    pub(super) fn parse(body: &[u8]) -> Self {
        let mut refusal = Self {
            state: *b"00000",
            ..Self::default()
        };
        let fields = body.split(|byte| *byte == 0);
        for (kind, text) in fields.filter_map(<[u8]>::split_first) {
            match kind {
                // The severity that is never translated, from 9.6 on.
                b'V' => refusal.is_fatal = [&b"FATAL"[..], b"PANIC"].contains(&text),
                b'C' => refusal.state = text.try_into().unwrap_or(refusal.state),
                b'M' => refusal.message = words(text),
                b'H' => refusal.hint = Some(words(text)),
                _ => (),
            }
        }
        refusal
    }

    /// True if the server ends the session with this error.
    pub(super) fn is_fatal(&self) -> bool {
        self.is_fatal
    }
}

impl PostgresError {
    /// The SQLSTATE, if the server sent an error message.
    pub(crate) fn state(&self) -> Option<[u8; 5]> {
        match self {
            Self::Refused(refusal) => Some(refusal.state),
            _ => None,
        }
    }

    /// The SQLSTATE as text; empty if there is none.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) => std::str::from_utf8(&refusal.state).unwrap_or(""),
            _ => "",
        }
    }

    /// True if the connection cannot be used any more.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_fatal,
            _ => true,
        }
    }

    /// The message of the server or of the system on one line, with the server's hint if it gave
    /// one.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Refused(refusal) if refusal.message.is_empty() => {
                format!(
                    "the server sent an error without a message, state {}",
                    self.code()
                )
            }
            Self::Refused(refusal) => {
                let hint = refusal.hint.as_ref();
                let hint = hint.map_or(String::new(), |hint| format!(" ({hint})"));
                format!("{}{hint}", refusal.message)
            }
            Self::Protocol(why) => format!("the server does not keep to the protocol: {why}"),
            Self::Silent(time) => {
                format!("the server did not answer for {:.0} s", time.as_secs_f64())
            }
            Self::NoTls => "the server does not support TLS".into(),
            Self::NoPassword => "the server requires a password".into(),
            Self::Lost(why) | Self::NotAccepted(why) => why.clone(),
        }
    }

    /// A breach of the protocol.
    pub(super) fn protocol(why: impl Into<String>) -> Self {
        Self::Protocol(why.into())
    }
}

impl From<io::Error> for PostgresError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
        Self::Lost(match error.kind() {
            // Blocking sockets say `WouldBlock` when their time is up.
            WouldBlock | TimedOut => "the server does not answer".into(),
            UnexpectedEof => "the server closed the connection".into(),
            _ => error.to_string(),
        })
    }
}

/// A text of the server on one line, cut if it is long.
fn words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut text: String = text.chars().take(SAID_MAX).collect();
    if text.contains(['\n', '\r']) {
        text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_state_its_words_and_its_hint() {
        let body = b"SFEHLER\0VERROR\0C42501\0Mpermission denied\nfor schema\0HGRANT it\0\0";
        let error = PostgresError::Refused(Box::new(PostgresRefusal::parse(body)));
        assert_eq!(
            (error.code(), error.in_words().as_str(), error.is_closed()),
            ("42501", "permission denied for schema (GRANT it)", false)
        );
        let fatal = PostgresRefusal::parse(b"VFATAL\0C57P01\0Mover\0\0");
        assert!(fatal.is_fatal() && fatal.state == *b"57P01");
        // Fields that make no sense are no reason to fail.
        let odd = PostgresRefusal::parse(b"C42\0M\xff\0Zx");
        assert_eq!((odd.state, odd.message.as_str()), (*b"00000", "\u{fffd}"));
        let long = PostgresRefusal::parse(&[b"M".as_slice(), &[b'a'; 10_000]].concat());
        assert_eq!(long.message.len(), SAID_MAX);
    }
}
