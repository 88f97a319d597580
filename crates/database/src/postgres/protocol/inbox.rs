//! The messages of a server, out of the bytes that arrive.
//!
//! Input: bytes, in pieces of any size. Output: messages, each a tag and its body. The buffer is
//! used again for every message. It grows with the bytes that have arrived, never with the length
//! that a server claims.

use super::error::PostgresError;
use std::io::{self, Read};
use std::ops::Range;

/// Size of a new buffer: the answer to an operation fits many times.
const ROOM: usize = 8 * 1024;

/// Maximum length of a message in bytes. The longest that we ask for is a plan of a few KiB.
pub(super) const MESSAGE_MAX: usize = 1024 * 1024;

/// Received bytes, of which some may be the beginning of a message.
pub(super) struct PostgresInbox {
    buffer: Vec<u8>,
    /// The bytes that no message was made of yet.
    unread: Range<usize>,
}

/// One message of the server: its tag, and where its body is in the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PostgresFrame {
    pub(super) tag: u8,
    body: Range<usize>,
}

impl PostgresInbox {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![0; ROOM],
            unread: 0..0,
        }
    }

    /// The next message, if it has arrived completely. Its body is valid until the next read.
    ///
    /// # Errors
    /// Its length is not possible.
    pub(super) fn next(&mut self) -> Result<Option<PostgresFrame>, PostgresError> {
        let unread = &self.buffer[self.unread.clone()];
        let Some((&[tag, a, b, c, d], _)) = unread.split_first_chunk() else {
            return Ok(None);
        };
        // The length counts itself, and not the tag.
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=MESSAGE_MAX).contains(&length) {
            return Err(PostgresError::Protocol(format!(
                "a message of type {} with a length of {length} bytes",
                shown(tag)
            )));
        }
        if unread.len() <= length {
            return Ok(None);
        }
        let start = self.unread.start;
        self.unread.start += 1 + length;
        let body = start + 5..self.unread.start;
        Ok(Some(PostgresFrame { tag, body }))
    }

    /// True if a message with this tag has arrived completely.
    pub(super) fn has(&self, tag: u8) -> bool {
        let mut unread = &self.buffer[self.unread.clone()];
        while let Some((&[found, a, b, c, d], _)) = unread.split_first_chunk() {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let Some(rest) = unread.get(length.saturating_add(1)..) else {
                return false;
            };
            // A length that is not possible is an error of the next message.
            if found == tag || length < 4 {
                return true;
            }
            unread = rest;
        }
        false
    }

    /// The body of a message that [`next`](Self::next) returned since the last read.
    pub(super) fn body(&self, frame: &PostgresFrame) -> &[u8] {
        &self.buffer[frame.body.clone()]
    }

    /// Reads once. Bodies of earlier messages are no longer valid.
    ///
    /// # Errors
    /// The error of the read; the end of the stream is one.
    pub(super) fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.end == self.buffer.len() {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            if self.unread.end == self.buffer.len() {
                // Bounded: a message is complete, or refused, before this is twice the maximum.
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        let read = loop {
            match from.read(&mut self.buffer[self.unread.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                other => break other?,
            }
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread.end += read;
        Ok(())
    }

    /// Bytes of memory that the buffer takes.
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// A tag as an error shows it: a letter, or its number.
pub(super) fn shown(tag: u8) -> String {
    if tag.is_ascii_graphic() {
        format!("'{}'", char::from(tag))
    } else {
        tag.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns its pieces one by one.
    struct Pieces(Vec<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.first_mut() else {
                return Ok(0);
            };
            let length = piece.len().min(into.len());
            into[..length].copy_from_slice(&piece[..length]);
            piece.drain(..length);
            if piece.is_empty() {
                self.0.remove(0);
            }
            Ok(length)
        }
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[tag][..], &length, body].concat()
    }

    /// Tags and bodies.
    type Messages = Vec<(u8, Vec<u8>)>;

    /// All messages until the end of the stream or an error, and the memory for them.
    fn all(pieces: Vec<Vec<u8>>) -> (Messages, Option<PostgresError>, usize) {
        let (mut inbox, mut found) = (PostgresInbox::new(), Vec::new());
        let mut pieces = Pieces(pieces);
        loop {
            match inbox.next() {
                Ok(Some(frame)) => found.push((frame.tag, inbox.body(&frame).to_vec())),
                Err(error) => return (found, Some(error), inbox.capacity()),
                Ok(None) => {
                    if inbox.read(&mut pieces).is_err() {
                        return (found, None, inbox.capacity());
                    }
                }
            }
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused_before_anything_is_kept() {
        for length in [0u32, 3, 1 << 30, u32::MAX] {
            let bytes = [b"D".as_slice(), &length.to_be_bytes(), &[7; 100]].concat();
            let (found, error, capacity) = all(vec![bytes]);
            assert!(found.is_empty() && capacity == ROOM, "{length}");
            let words = error.unwrap().in_words();
            assert!(
                words.contains(&format!("length of {length} bytes")),
                "{words}"
            );
        }
    }

    #[test]
    fn a_claimed_length_takes_no_memory() {
        let claimed = u32::try_from(MESSAGE_MAX).unwrap().to_be_bytes();
        let (found, error, capacity) = all(vec![[b"D".as_slice(), &claimed, b"few"].concat()]);
        assert_eq!((found.len(), error, capacity), (0, None, ROOM));
    }

    proptest! {
        #[test]
        fn messages_are_the_same_however_they_arrive(
            sent in prop::collection::vec((any::<u8>(), 0..20_000usize), 0..12),
            cuts in prop::collection::vec(1usize..9000, 1..40),
        ) {
            // Of bytes that differ from their neighbours.
            let body = |(tag, length)| (tag, (tag..=u8::MAX).chain(0..tag).cycle().take(length).collect());
            let sent: Messages = sent.into_iter().map(body).collect();
            let mut bytes: &[u8] = &sent.iter().flat_map(|(tag, body)| message(*tag, body)).collect::<Vec<_>>();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if bytes.is_empty() {
                    break;
                }
                let (piece, rest) = bytes.split_at((*cut).min(bytes.len()));
                pieces.push(piece.to_vec());
                bytes = rest;
            }
            let (found, error, capacity) = all(pieces);
            prop_assert_eq!(error, None);
            prop_assert!(capacity <= 4 * 20_000);
            prop_assert_eq!(found, sent);
        }
    }
}
