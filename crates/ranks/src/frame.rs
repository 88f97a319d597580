//! Frames on a connection between two ranks: a length, a kind, and bytes.

use std::io::{ErrorKind, Read, Write};

/// Maximum length of a frame's bytes. Whatever a peer says, no more is read.
pub const FRAME_MAX: usize = 64 << 20;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// A sign of life.
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
pub(super) fn write(to: &mut impl Write, kind: FrameKind, bytes: &[u8]) -> std::io::Result<()> {
    let too_long = || std::io::Error::new(ErrorKind::InvalidInput, "longer than a frame of 64 MiB");
    let length = u32::try_from(bytes.len())
        .ok()
        .filter(|_| bytes.len() <= FRAME_MAX)
        .ok_or_else(too_long)?;
    // One write for each frame: with Nagle's algorithm off, each write is a packet of its own.
    let mut frame = Vec::with_capacity(5 + bytes.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.push(kind as u8);
    frame.extend_from_slice(bytes);
    to.write_all(&frame)
}

/// Reads a frame. Memory grows with what arrives, not with what was announced.
///
/// # Errors
/// The connection ended or broke, or what arrived is no frame.
pub(super) fn read(from: &mut impl Read) -> std::io::Result<(FrameKind, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let invalid = |why| std::io::Error::new(ErrorKind::InvalidData, why);
    if length > FRAME_MAX {
        return Err(invalid("a frame longer than 64 MiB"));
    }
    let kind = FrameKind::of(head[4]).ok_or_else(|| invalid("a frame of an unknown kind"))?;
    let mut bytes = Vec::new();
    from.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok((kind, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_huge_length_is_refused_before_anything_is_read() {
        let mut head = u32::MAX.to_be_bytes().to_vec();
        head.push(FrameKind::Data as u8);
        let error = read(&mut &head[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        // A length that is allowed, and nothing behind it: memory for what came, and the end.
        let mut head = u32::try_from(FRAME_MAX).unwrap().to_be_bytes().to_vec();
        head.push(FrameKind::Data as u8);
        let error = read(&mut &head[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert!(write(&mut Vec::new(), FrameKind::Data, &vec![0; FRAME_MAX + 1]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut stream = Vec::new();
            write(&mut stream, FrameKind::Fail, &bytes).unwrap();
            write(&mut stream, FrameKind::Beat, &[]).unwrap();
            let mut from = &stream[..];
            prop_assert_eq!(read(&mut from).unwrap(), (FrameKind::Fail, bytes));
            prop_assert_eq!(read(&mut from).unwrap(), (FrameKind::Beat, Vec::new()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut from = &bytes[..];
            while read(&mut from).is_ok() {}
        }
    }
}
