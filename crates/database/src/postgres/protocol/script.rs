//! A client on a server that only repeats given bytes, for tests and fuzzing.

use super::authentication::PostgresLogin;
use super::client::PostgresClient;
use super::error::PostgresError;
use super::socket::PostgresLink;
use crate::access::{AuthMethods, Binding};
use std::io::{self, Read};
use std::time::Duration;

/// A link whose other end sends these bytes, whatever it receives.
pub(super) struct PostgresScript<'a> {
    pub(super) bytes: &'a [u8],
    /// Maximum number of bytes per read.
    pub(super) piece: usize,
}

impl Read for PostgresScript<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.len().min(into.len()).min(self.piece);
        let (now, later) = self.bytes.split_at(length);
        into[..length].copy_from_slice(now);
        self.bytes = later;
        Ok(length)
    }
}

impl PostgresLink for PostgresScript<'_> {
    fn send(&mut self, _: &mut &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn hears_within(&mut self, _: Duration) -> bool {
        true
    }
}

/// Logs in to a server that sends `bytes`, in reads of at most `piece`, then queries, prepares,
/// executes and copies. Returns how many steps the server answered, the memory that the client took
/// for its messages in bytes, and why it ended.
pub fn converse(bytes: &[u8], piece: usize) -> (usize, usize, Option<String>) {
    let piece = piece.max(1);
    let mut client = PostgresClient::new(PostgresScript { bytes, piece }, None);
    let mut steps = 0;
    let end = steps_of(&mut client, &mut steps).err();
    (steps, client.memory(), end.map(|error| error.in_words()))
}

/// Every kind of round trip, one after the other.
fn steps_of(
    client: &mut PostgresClient<PostgresScript>,
    steps: &mut usize,
) -> Result<(), PostgresError> {
    client.log_in(&PostgresLogin {
        user: "ana",
        database: "shop",
        application: "rigel",
        password: Some("s3cret"),
        certificate: Some(vec![7; 32]),
        methods: AuthMethods::ALL,
        binding: Binding::Prefer,
    })?;
    *steps += 1;
    client.batch("SELECT 1")?;
    *steps += 1;
    client.query("SELECT $1", &["1"])?;
    *steps += 1;
    let statement = client.prepare("SELECT count(*)", &[])?;
    *steps += 1;
    client.run(&statement.call(&[]))?;
    *steps += 1;
    let call = statement.call(&[]);
    client.queue(&call);
    client.queue(&call);
    client.flush_queue()?;
    client.next_answer(false)?;
    client.next_answer(true)?;
    *steps += 1;
    client.copy_in("COPY t FROM STDIN (FORMAT binary)", 0..9, |row, out| {
        out.push(row);
    })?;
    *steps += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::inbox::MESSAGE_MAX;
    use super::*;
    use proptest::prelude::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[tag][..], &length, body].concat()
    }

    const READY: (u8, &[u8]) = (b'Z', b"I");
    const WELCOME: (u8, &[u8]) = (b'R', &[0; 4]);

    fn messages(all: &[(u8, &[u8])]) -> Vec<u8> {
        all.iter()
            .flat_map(|(tag, body)| message(*tag, body))
            .collect()
    }

    /// What a server says in a conversation without any trouble.
    fn polite() -> Vec<u8> {
        let number: &[u8] = &[0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 64];
        messages(&[
            WELCOME,
            (b'S', b"server_version\x0018.4\0"),
            (b'K', &[1; 8]),
            READY,
            (b'C', b"SELECT 1\0"),
            READY,
            (b'1', b""),
            (b'2', b""),
            (b'D', &[0, 2, 0, 0, 0, 1, b'1', 255, 255, 255, 255]),
            (b'C', b"SELECT 1\0"),
            READY,
            (b'1', b""),
            READY,
            (b'2', b""),
            (b'D', number),
            (b'N', b"VNOTICE\0Mby the way\0\0"),
            (b'C', b"SELECT 1\0"),
            READY,
            (b'2', b""),
            (b'D', number),
            (b'C', b"SELECT 1\0"),
            READY,
            (b'2', b""),
            (b'D', number),
            (b'C', b"SELECT 1\0"),
            READY,
            (b'G', &[1, 0, 0]),
            (b'C', b"COPY 9\0"),
            READY,
        ])
    }

    #[track_caller]
    fn ends(bytes: &[u8], steps: usize, why: &str) {
        let (done, _, end) = converse(bytes, 4096);
        let end = end.unwrap_or_default();
        assert!(done == steps && end.contains(why), "{done}: {end}");
    }

    #[test]
    fn a_conversation_is_understood_however_it_arrives() {
        let polite = polite();
        for piece in [1, 2, 7, 100_000] {
            let (steps, _, end) = converse(&polite, piece);
            assert_eq!((steps, end), (7, None));
        }
        for cut in 0..polite.len() {
            let (steps, _, end) = converse(&polite[..cut], 64);
            assert!(
                steps < 7 && end.as_deref() == Some("the server closed the connection"),
                "{cut}"
            );
        }
    }

    #[test]
    fn a_server_that_breaks_the_protocol_is_left_with_a_clear_error() {
        let welcomed = |more: &[(u8, &[u8])]| messages(&[&[WELCOME, READY], more].concat());
        ends(
            &message(b'H', b"TTP/1.1 400"),
            0,
            "unexpected message of type 'H'",
        );
        ends(b"HTTP/1.1 400 Bad Request", 0, "length of 1414811695 bytes");
        ends(&message(b'R', &[0, 0]), 0, "without a method");
        ends(
            &message(b'R', &[0, 0, 0, 7]),
            0,
            "not supported (GSSAPI, number 7)",
        );
        ends(&message(b'R', &[0, 0, 0, 12]), 0, "never began");
        ends(
            &welcomed(&[(b'G', &[1, 0, 0])]),
            1,
            "unexpected message of type 'G'",
        );
        ends(
            &welcomed(&[READY, (b'1', b""), (b'D', &[0, 9]), READY]),
            2,
            "cut short",
        );
        let empty = [READY, (b'1', b""), READY, (b'1', b""), READY, READY];
        ends(&welcomed(&empty), 4, "an answer without a result");
        // An error message ends a step, and one that ends the session ends all.
        let gone: &[u8] = b"VFATAL\0C57P01\0Mterminating connection\0\0";
        ends(&welcomed(&[(b'E', gone)]), 1, "terminating connection");
        let refused: &[u8] = b"VERROR\0C42P01\0Mno table\0\0";
        ends(&welcomed(&[(b'E', refused), READY]), 1, "no table");
    }

    #[test]
    fn an_error_in_a_pipeline_is_that_of_the_call_whose_turn_it_is() {
        let number: &[u8] = &[0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 64];
        let answer = [
            (b'2', b"".as_slice()),
            (b'D', number),
            (b'C', b"SELECT 1\0"),
            READY,
        ];
        let refused: &[u8] = b"VERROR\0C57014\0Mcancelled\0\0";
        let error = [(b'2', b"".as_slice()), (b'E', refused), READY];
        let bytes = messages(
            &[
                &[(b'1', b"".as_slice()), READY],
                &answer[..],
                &error,
                &answer,
            ]
            .concat(),
        );
        for piece in [1, 5, 100_000] {
            let mut client = PostgresClient::new(
                PostgresScript {
                    bytes: &bytes,
                    piece,
                },
                None,
            );
            let call = client.prepare("SELECT count(*)", &[]).unwrap().call(&[]);
            // In one piece, everything has arrived with the first answer.
            assert_eq!(client.has_answer(), piece == 100_000);
            (0..3).for_each(|_| client.queue(&call));
            client.flush_queue().unwrap();
            let mut answers = Vec::new();
            for is_last in [false, false, true] {
                answers.push(client.next_answer(is_last));
            }
            assert_eq!(answers[0].as_ref().unwrap().number, Some(64));
            assert_eq!(answers[1].as_ref().unwrap_err().state(), Some(*b"57014"));
            assert_eq!(answers[2].as_ref().unwrap().number, Some(64));
            assert!(!client.is_closed() && !client.has_answer());
        }
    }

    #[test]
    fn notices_without_end_and_claims_of_length_are_not_waited_for() {
        let notice = message(b'N', b"VNOTICE\0\0");
        ends(&notice.repeat(20_000), 0, "more than 10000 notices");
        ends(
            &[b"N".as_slice(), &u32::MAX.to_be_bytes()].concat(),
            0,
            "length of 4294967295",
        );
        let refused = message(b'E', b"VERROR\0C42P01\0Mno table\0\0").repeat(20_000);
        let welcome = messages(&[WELCOME, READY]);
        ends(&[welcome, refused].concat(), 1, "more than 10000 errors");
        let long = message(b'N', &vec![b'a'; MESSAGE_MAX - 4]);
        let (_, memory, _) = converse(&long.repeat(3), 1000);
        assert!(memory <= 2 * MESSAGE_MAX, "{memory}");
    }

    #[test]
    fn a_server_must_prove_that_it_knows_the_password() {
        let offer: (u8, &[u8]) = (b'R', b"\0\0\0\x0aSCRAM-SHA-256\0SCRAM-SHA-256-PLUS\0\0");
        ends(
            &messages(&[offer, WELCOME]),
            0,
            "no challenge of SCRAM-SHA-256-PLUS",
        );
        // Our random part must come back.
        let odd: (u8, &[u8]) = (b'R', b"\0\0\0\x0br=theirs,s=QSXCR+Q6sek8bf92,i=4096");
        ends(
            &messages(&[offer, odd, WELCOME]),
            0,
            "proof in SCRAM-SHA-256-PLUS is not valid",
        );
        let other: (u8, &[u8]) = (b'R', b"\0\0\0\x0aOAUTHBEARER\0\0");
        ends(&messages(&[other]), 0, "no known method of authentication");
    }

    proptest! {
        #[test]
        fn no_server_makes_the_client_panic_or_take_memory(
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            piece in 1usize..300,
            noise in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut bytes = polite();
            for (place, byte) in places {
                let at = place.index(bytes.len());
                bytes[at] = byte;
            }
            for bytes in [bytes, noise] {
                let (steps, memory, end) = converse(&bytes, piece);
                prop_assert!(steps == 7 || end.is_some_and(|why| !why.is_empty()));
                prop_assert!(memory <= 2 * MESSAGE_MAX);
            }
        }
    }
}
