//! Calls `rigel_fuzz::quantities` with what the fuzzer makes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| rigel_fuzz::quantities(input));
