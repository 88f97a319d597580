//! Calls `rigel_fuzz::tracepoint` with what the fuzzer makes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&str, &[u8])| rigel_fuzz::tracepoint(input));
