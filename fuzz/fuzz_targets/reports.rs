//! Calls `rigel_fuzz::reports` with what the fuzzer makes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rigel_fuzz::reports(input));
