//! Calls `rigel_fuzz::conf` with what the fuzzer makes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| rigel_fuzz::conf(input));
