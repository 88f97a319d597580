//! The layout of a tracepoint, and the bytes of its events: any text and any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_device::engine::trace::{RequestStep, TracepointFormat, id_of};

fuzz_target!(|input: (&str, &[u8])| {
    let (text, raw) = input;
    for step in RequestStep::ALL {
        if let Ok(format) = TracepointFormat::parse(step, text) {
            let _ = format.event(1, raw);
        }
    }
    let _ = id_of(raw);
});
