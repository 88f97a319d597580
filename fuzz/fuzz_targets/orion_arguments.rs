//! Calls `rigel_fuzz::orion_arguments` with what the fuzzer makes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| rigel_fuzz::orion_arguments(input));
