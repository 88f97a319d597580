//! Calls `rigel_fuzz::awr` with what the fuzzer makes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| rigel_fuzz::awr(input));
