//! Whatever the bytes of a file are, compressed or not, their text is small and read or refused.
#![no_main]

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use rigel_import::{Source, read, table::Columns, text};
use std::io::Write;

/// How often a compressed file repeats the bytes: few bytes on disk, many in memory.
const TIMES: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..TIMES {
        packed.write_all(bytes).expect("memory takes every byte");
    }
    let packed = packed.finish().expect("memory takes every byte");
    for bytes in [bytes, &packed] {
        if let Ok(text) = text("f", bytes.to_vec()) {
            let _ = read(&[Source { name: "f", text: &text }], None, &Columns::default());
        }
    }
});
