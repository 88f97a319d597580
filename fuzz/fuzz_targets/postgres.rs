//! Whatever a PostgreSQL server sends, in pieces of whatever size, the client ends with an answer or an error in words, and
//! takes bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_database as sql;

fuzz_target!(|input: (u16, &[u8])| {
    let (piece, bytes) = input;
    let (steps, memory, end) = sql::converse(bytes, piece.into());
    assert!(steps == 6 || end.is_some_and(|why| !why.is_empty()));
    assert!(memory <= 2 * 1024 * 1024, "{memory}");
});
