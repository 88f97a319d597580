//! Frames on a connection between two ranks: a length, a kind, and sealed bytes.
//!
//! The bytes of a frame are encrypted, and a tag proves that they, the length, the kind, and the
//! number of the frame on its connection are those of the peer that knows the run's secret. Whoever
//! changes, leaves out, repeats or swaps frames on the way ends the connection.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;
use std::io::{ErrorKind, Read, Write};

/// Maximum length of a frame's bytes, and of a message that is sent deflated once it is inflated: who
/// receives it needs memory for all of it. Whatever a peer says, no more is read. A longer message is sent
/// in parts by whoever makes it.
pub(crate) const FRAME_MAX: usize = 16 << 20;

/// Length of what stands before a frame's bytes: their number, and the kind.
const HEAD: usize = 5;
/// Length of the tag behind a frame's bytes.
const TAG: usize = 16;

/// The frames of one direction of a connection: their key, and the number of the next one.
pub(super) struct Seal {
    key: LessSafeKey,
    next: u64,
}

impl Seal {
    /// The seal of the direction that `name` names, by what both sides of a handshake share.
    pub(super) fn of(shared: &hkdf::Prk, name: &[u8]) -> Self {
        let name = [name];
        let key = shared.expand(&name, &CHACHA20_POLY1305);
        let key = UnboundKey::from(key.expect("a key is shorter than 255 digests"));
        Self {
            key: LessSafeKey::new(key),
            next: 0,
        }
    }

    /// Each number is used once: a frame a nanosecond would last for 580 years.
    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// A heartbeat.
    Beat = 0,
    /// A question for the peer's clock: eight bytes that come back.
    Ping = 1,
    /// The answer: the same eight bytes, and the clock.
    Pong = 2,
    /// A message, as JSON.
    Data = 3,
    /// The same, deflated.
    Deflated = 4,
    /// Everybody stops.
    Stop = 5,
    /// The sender cannot go on, and says why.
    Fail = 6,
    /// The end of the run, with the status of all.
    End = 7,
}

impl FrameKind {
    fn of(number: u8) -> Option<Self> {
        [
            Self::Beat,
            Self::Ping,
            Self::Pong,
            Self::Data,
            Self::Deflated,
            Self::Stop,
            Self::Fail,
            Self::End,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == number)
    }
}

/// Writes a frame, whole.
///
/// # Errors
/// The connection broke, or the bytes are more than a frame holds.
pub(super) fn write(
    to: &mut impl Write,
    seal: &mut Seal,
    kind: FrameKind,
    bytes: &[u8],
) -> std::io::Result<()> {
    let too_long = || std::io::Error::new(ErrorKind::InvalidInput, "longer than a frame of 16 MiB");
    let length = u32::try_from(bytes.len())
        .ok()
        .filter(|_| bytes.len() <= FRAME_MAX)
        .ok_or_else(too_long)?;
    // One write for each frame: with Nagle's algorithm off, each write is a packet of its own.
    let mut frame = Vec::with_capacity(HEAD + bytes.len() + TAG);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.push(kind as u8);
    frame.extend_from_slice(bytes);
    let (head, sealed) = frame.split_at_mut(HEAD);
    let nonce = seal.nonce();
    let tag = seal
        .key
        .seal_in_place_separate_tag(nonce, Aad::from(head), sealed)
        .map_err(|_| std::io::Error::other("a frame cannot be sealed"))?;
    frame.extend_from_slice(tag.as_ref());
    to.write_all(&frame)
}

/// Reads a frame. Memory grows with what arrives, not with what was announced.
///
/// # Errors
/// The connection ended or broke, or what arrived is no frame.
pub(super) fn read(from: &mut impl Read, seal: &mut Seal) -> std::io::Result<(FrameKind, Vec<u8>)> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let invalid = |why| std::io::Error::new(ErrorKind::InvalidData, why);
    if length > FRAME_MAX {
        return Err(invalid("a frame longer than 16 MiB"));
    }
    let kind = FrameKind::of(head[4]).ok_or_else(|| invalid("a frame of an unknown kind"))?;
    let mut bytes = Vec::new();
    let sealed = length + TAG;
    from.by_ref().take(sealed as u64).read_to_end(&mut bytes)?;
    if bytes.len() < sealed {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let nonce = seal.nonce();
    seal.key
        .open_in_place(nonce, Aad::from(&head), &mut bytes)
        .map_err(|_| invalid("a frame was changed, left out or repeated on its way"))?;
    bytes.truncate(length);
    Ok((kind, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seal() -> Seal {
        let shared = hkdf::Salt::new(hkdf::HKDF_SHA256, b"nonces").extract(b"secret");
        Seal::of(&shared, b"one way")
    }

    /// The bytes of three frames.
    fn frames() -> [Vec<u8>; 3] {
        let mut ours = seal();
        [b"one".as_slice(), b"two", b"six"].map(|bytes| {
            let mut frame = Vec::new();
            write(&mut frame, &mut ours, FrameKind::Data, bytes).unwrap();
            frame
        })
    }

    #[test]
    fn a_frame_that_was_changed_left_out_repeated_or_swapped_is_none() {
        let [first, second, third] = frames();
        let read_all = |bytes: &[&[u8]]| {
            let bytes = bytes.concat();
            let (mut from, mut theirs) = (&bytes[..], seal());
            let mut count = 0;
            loop {
                match read(&mut from, &mut theirs) {
                    Ok(_) => count += 1,
                    Err(error) => return (count, error.kind()),
                }
            }
        };
        assert_eq!(
            read_all(&[&first, &second, &third]),
            (3, ErrorKind::UnexpectedEof)
        );
        for position in 0..second.len() {
            let mut changed = second.clone();
            changed[position] ^= 1;
            let (count, error) = read_all(&[&first, &changed, &third]);
            assert_eq!(count, 1, "byte {position}: {error:?}");
        }
        let broken = (1, ErrorKind::InvalidData);
        assert_eq!(read_all(&[&first, &third]), broken, "left out");
        assert_eq!(read_all(&[&first, &first, &second]), broken, "repeated");
        assert_eq!(read_all(&[&first, &third, &second]), broken, "swapped");
        assert!(!second.windows(3).any(|bytes| bytes == b"two"), "readable");
    }

    #[test]
    fn a_huge_length_is_refused_before_anything_is_read() {
        let mut head = u32::MAX.to_be_bytes().to_vec();
        head.push(FrameKind::Data as u8);
        let error = read(&mut &head[..], &mut seal()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        // A length that is allowed, and nothing behind it: memory for what came, and the end.
        let mut head = u32::try_from(FRAME_MAX).unwrap().to_be_bytes().to_vec();
        head.push(FrameKind::Data as u8);
        let error = read(&mut &head[..], &mut seal()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        let long = vec![0; FRAME_MAX + 1];
        assert!(write(&mut Vec::new(), &mut seal(), FrameKind::Data, &long).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let (mut stream, mut ours, mut theirs) = (Vec::new(), seal(), seal());
            write(&mut stream, &mut ours, FrameKind::Fail, &bytes).unwrap();
            write(&mut stream, &mut ours, FrameKind::Beat, &[]).unwrap();
            let mut from = &stream[..];
            prop_assert_eq!(read(&mut from, &mut theirs).unwrap(), (FrameKind::Fail, bytes));
            prop_assert_eq!(read(&mut from, &mut theirs).unwrap(), (FrameKind::Beat, Vec::new()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (mut from, mut theirs) = (&bytes[..], seal());
            while read(&mut from, &mut theirs).is_ok() {}
        }
    }
}
