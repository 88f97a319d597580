//! Calls `rigel_fuzz::postgres` with what the fuzzer makes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| rigel_fuzz::postgres(input));
